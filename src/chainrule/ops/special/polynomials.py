"""Orthogonal polynomials: Chebyshev of four kinds (also shifted), Hermite, Laguerre, Legendre.

One op carries them all: ``polynomial(x, n; kind, k)`` is the k-th derivative in x, itself a classical polynomial of another
parameter, so that derivatives of every order are values of the same op. The degree n is a tensor or a number, rounded
towards 0; the polynomial of a negative degree is 0, and nothing depends smoothly on n.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import pointwise
from ...core.errors import ZERO
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.tensor import Tensor
from .base import in_double, one_tensor

# Beyond these degrees closed forms are faster than recurrences, and near +-1 more accurate.
LONG, LONG_AT_END = 1000, 50
# Recurrences take n steps; degrees beyond these bounds give NaN. A float64 tells degrees apart up to 2**53.
STEPS, CLOSED_STEPS = 10**7, 2**53
SHORT, TOGETHER = 32, 1 << 13  # degrees up to which the recurrence runs in a wider type, on so many elements at a time


def _falling(n: Any, k: int) -> Any:
    """``n (n - 1) ... (n - k + 1)``."""
    r = np.ones(n.shape)
    for j in range(k):
        r = r * (n - j)
    return r


def _angle(n: Any, x: Any, cosine: Callable[..., Any], sine: Callable[..., Any], angle: Any) -> dict[str, Any]:
    """The Chebyshev polynomials of all kinds at ``x = cosine(angle) >= 0``."""
    zero = angle == 0
    safe = np.where(zero, 1.0, angle)
    return {
        "t": cosine(n * angle),
        "u": np.where(zero, n + 1.0, sine((n + 1) * safe) / sine(safe)),
        "v": cosine((n + 0.5) * angle) / cosine(angle / 2),
        "w": np.where(zero, 2.0 * n + 1, sine((n + 0.5) * safe) / sine(safe / 2)),
    }


def _closed(n: Any, x: Any, kind: str) -> Any:
    """A Chebyshev polynomial in trigonometric form, hyperbolic outside [-1, 1]."""
    size = np.abs(x)
    inside = _angle(n, size, np.cos, np.sin, np.arccos(np.minimum(size, 1)))
    outside = _angle(n, size, np.cosh, np.sinh, np.arccosh(np.maximum(size, 1)))
    # The parity of T and U is that of n; V and W change places.
    other = {"v": "w", "w": "v"}.get(kind, kind)
    right, left = (np.where(size <= 1, inside[c], outside[c]) for c in (kind, other))
    return np.where(x >= 0, right, np.where(n % 2 == 0, left, -left))


def _chebyshev(n: Any, x: Any, k: int, kind: str) -> Any:
    import scipy.special as sc

    if k:
        if kind == "t":
            return n * 2.0 ** (k - 1) * math.factorial(k - 1) * sc.eval_gegenbauer(n - k, float(k), x)
        if kind == "u":
            return 2.0**k * math.factorial(k) * sc.eval_gegenbauer(n - k, k + 1.0, x)
        # V and W are Jacobi polynomials with parameters -+1/2, scaled by n! / (1/2)_n.
        a = -0.5 if kind == "v" else 0.5
        scale = np.exp(sc.gammaln(n + 1.0) - sc.gammaln(n + 0.5)) * math.sqrt(math.pi)
        return scale * sc.poch(n + 1.0, k) / 2.0**k * sc.eval_jacobi(n - k, a + k, -a + k, x)
    size = np.abs(x)
    closed = (n > LONG) | ((n > LONG_AT_END) & (size > 0.9) & (size <= 1))
    m = np.where(closed, 0, n)
    if kind == "t":
        y = sc.eval_chebyt(m, x)
    else:
        y = sc.eval_chebyu(m, x)
        if kind != "u":
            below = np.where(m > 0, sc.eval_chebyu(np.maximum(m - 1, 0), x), 0.0)
            y = y - below if kind == "v" else y + below
    return np.where(closed, _closed(n, x, kind), y) if closed.any() else y


def _hermite_h(n: Any, x: Any, k: int) -> Any:
    import scipy.special as sc

    return 2.0**k * _falling(n, k) * sc.eval_hermite(n - k, x)


def _hermite_he(n: Any, x: Any, k: int) -> Any:
    import scipy.special as sc

    return _falling(n, k) * sc.eval_hermitenorm(n - k, x)


def _laguerre(n: Any, x: Any, k: int) -> Any:
    import scipy.special as sc

    return (-1.0) ** k * sc.eval_genlaguerre(n - k, float(k), x)


def _legendre(n: Any, x: Any, k: int) -> Any:
    import scipy.special as sc

    if k == 0:
        return sc.eval_legendre(n, x)
    return math.prod(range(1, 2 * k, 2)) * sc.eval_gegenbauer(n - k, k + 0.5, x)


KINDS: dict[str, Callable[..., Any]] = {
    "t": lambda n, x, k: _chebyshev(n, x, k, "t"),
    "u": lambda n, x, k: _chebyshev(n, x, k, "u"),
    "v": lambda n, x, k: _chebyshev(n, x, k, "v"),
    "w": lambda n, x, k: _chebyshev(n, x, k, "w"),
    "h": _hermite_h,
    "he": _hermite_he,
    "l": _laguerre,
    "p": _legendre,
}


# The polynomial of degree 1, and that of degree j + 1 from those of degrees j and j - 1.
RECURRENCES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "t": (lambda x: x, lambda j, x, p, q: 2 * x * p - q),
    "u": (lambda x: 2 * x, lambda j, x, p, q: 2 * x * p - q),
    "v": (lambda x: 2 * x - 1, lambda j, x, p, q: 2 * x * p - q),
    "w": (lambda x: 2 * x + 1, lambda j, x, p, q: 2 * x * p - q),
    "h": (lambda x: 2 * x, lambda j, x, p, q: 2 * (x * p - j * q)),
    "he": (lambda x: x, lambda j, x, p, q: x * p - j * q),
    "l": (lambda x: 1 - x, lambda j, x, p, q: ((2 * j + 1 - x) * p - j * q) / (j + 1)),
    "p": (lambda x: x, lambda j, x, p, q: ((2 * j + 1) * x * p - j * q) / (j + 1)),
}


def _polynomial(x: Any, n: Any, *, kind: str, k: int) -> Any:
    few = k == 0 and x.dtype.kind == "f" and n.size and n.max() <= SHORT
    return _short(x, n, kind) if few else _any_degree(x, n, kind=kind, k=k)


def _short(x: Any, n: Any, kind: str) -> Any:
    """By recurrence in a wider type: near its roots a polynomial has few digits otherwise."""
    d, shape = x.dtype, np.broadcast_shapes(x.shape, n.shape)
    n = np.maximum(np.trunc(n), -1)
    least, most = int(n.min()), int(n.max())
    x = np.broadcast_to(x, shape).reshape(-1)
    n = np.broadcast_to(n, shape).reshape(-1)
    y = np.empty(x.shape, d)
    first, after = RECURRENCES[kind]
    wide = np.longdouble if d == np.float64 else np.float64
    with np.errstate(over="ignore", invalid="ignore"):
        for a in range(0, x.size, TOGETHER):
            b = slice(a, a + TOGETHER)
            v = x[b].astype(wide)
            q, p = np.ones_like(v), first(v)
            r = p if least == most > 0 else np.where(n[b] == 0, q, np.where(n[b] == 1, p, 0))
            for j in range(1, most):
                p, q = after(j, v, p, q), p
                r = p if least == most else np.where(n[b] == j + 1, p, r)
            y[b] = r
    return y.reshape(shape)


@in_double
def _any_degree(x: Any, n: Any, *, kind: str, k: int) -> Any:
    x, n = np.broadcast_arrays(x, n)
    limit = CLOSED_STEPS if kind in "tuvw" and k == 0 else STEPS
    # NaN, infinities and what no int64 holds are no degrees; like negative ones they give 0.
    valid = np.abs(n) < 2.0**63
    degree = np.trunc(np.where(valid & (n <= limit), np.maximum(n, -1.0), -1.0)).astype(np.int64)
    # Degrees below k differentiate to 0; they stay out of the recurrences.
    y = KINDS[kind](np.maximum(degree, k), x, k)
    # A recurrence that overflows ends in inf - inf; closed forms say the same.
    lost = (valid & (n > limit)) | (np.isinf(y) & np.isfinite(x))
    return np.where(degree < k, np.where(valid & (n > limit), np.nan, 0.0), np.where(lost, np.nan, y))


polynomial_p = pointwise(
    "polynomial",
    _polynomial,
    lambda t, y, x, n, *, kind, k: t * polynomial_p.bind(x, n, kind=kind, k=k + 1),
    ZERO,
    types="float",
    static=True,
)


def _declare(name: str, kind: str, doc: str, shifted: bool = False) -> None:
    def function(input: Any, n: Any) -> Tensor:
        one_tensor(name, input=input, n=n)
        if (
            shifted
            and all(isinstance(v, Tensor) for v in (input, n))
            and input.dtype.category < dt.FLOAT <= n.dtype.category
        ):
            input = input.to(n.dtype)  # before it becomes a float of the default type
        return polynomial_p.bind(input * 2.0 - 1.0 if shifted else input, n, kind=kind, k=0)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}\n\nElementwise in `input` and the degree `n` (rounded towards 0; 0 where negative), differentiable in `input`."
    public(f"special.{name}")(function)


_declare("chebyshev_polynomial_t", "t", "``T_n(x)``, with ``T_n(cos a) = cos(n a)``.")
_declare("chebyshev_polynomial_u", "u", "``U_n(x)``, with ``U_n(cos a) = sin((n+1) a) / sin(a)``.")
_declare("chebyshev_polynomial_v", "v", "``V_n(x)``, with ``V_n(cos a) = cos((n+1/2) a) / cos(a/2)``.")
_declare("chebyshev_polynomial_w", "w", "``W_n(x)``, with ``W_n(cos a) = sin((n+1/2) a) / sin(a/2)``.")
for _k in "tuvw":
    _declare(
        f"shifted_chebyshev_polynomial_{_k}", _k, f"``{_k.upper()}_n(2x - 1)``, orthogonal on [0, 1].", shifted=True
    )
_declare("hermite_polynomial_h", "h", "The physicists' Hermite polynomial ``H_n(x)``, with ``H_n' = 2n H_{n-1}``.")
_declare(
    "hermite_polynomial_he", "he", "The probabilists' Hermite polynomial ``He_n(x)``, with ``He_n' = n He_{n-1}``."
)
_declare("laguerre_polynomial_l", "l", "The Laguerre polynomial ``L_n(x)``.")
_declare("legendre_polynomial_p", "p", "The Legendre polynomial ``P_n(x)``.")

# -- samples ----------------------------------------------------------------------------------------------------------

for _n in ("chebyshev_polynomial_", "shifted_chebyshev_polynomial_"):
    for _k in "tuvw":
        sample(f"special.{_n}{_k}", S(2, 4, low=-0.9, high=1.2), Given([0.0, 1.0, 4.0, 7.0]), cx=False)
        sample(f"special.{_n}{_k}", Given([0.0, 1.0, -1.0, 0.5], grad=True), 3, cx=False)
for _n in ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"):
    sample(f"special.{_n}", S(2, 4, low=-0.9, high=1.2), Given([0, 1, 4, 6]), cx=False)
    sample(f"special.{_n}", S(), 5, cx=False)
