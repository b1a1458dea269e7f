"""The gamma function: lgamma, digamma, polygamma, mvlgamma, the Hurwitz zeta function.

Closed under differentiation: ``polygamma(n)' = polygamma(n + 1)``, and with ``Z_n = (d/ds)**n zeta(s, q)``:
``dZ_n/ds = Z_{n+1}``, ``dZ_n/dq = -s Z_n(s + 1, q) - n Z_{n-1}(s + 1, q)``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.declare import pointwise
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.elementary import ks
from ..elementwise.formulas import compiled
from .base import in_double, one_tensor, real_only, scipy_special, unary

# -- lgamma and its derivatives ---------------------------------------------------------------------------------------

_gammaln = scipy_special("gammaln")
# lgamma(1 + z) = -gamma z + sum of zeta(k)/k (-z)**k, and with zeta(k) - 1, and 1 - gamma for -gamma, lgamma(2 + z)
_EULER, _TERMS = 0.5772156649015329, 28


def _near(z: Any, first: float, one: int) -> Any:
    import scipy.special as sc

    c = [0.0, first, *((sc.zetac(k) + one) / k * (-1) ** k for k in range(2, _TERMS))]
    return np.polynomial.polynomial.polyval(z, c)


@in_double
def _plain_lgamma(x: Any) -> Any:
    """SciPy's, but beside the zeros at 1 and 2, where it loses its digits; at -inf it is infinite, as in C."""
    y = np.where(np.isneginf(x), np.inf, _gammaln(x))
    for at, first, one in ((1.0, -_EULER, 1), (2.0, 1 - _EULER, 0)):
        y = np.where(np.abs(x - at) < 0.25, _near(np.clip(x - at, -0.25, 0.25), first, one), y)
    return y


_compiled_lgamma = compiled("lgamma", _plain_lgamma, lambda k, x: ks().lgamma(k, x), least=0)


def _lgamma(x: Any) -> Any:
    """In double by the C library; single precision is SciPy's, which computes it in double."""
    real_only("lgamma", x)
    if x.dtype == np.float64:
        return _compiled_lgamma(x)
    y = _gammaln(x)
    return np.where(np.isneginf(x), np.inf, y).astype(x.dtype) if np.isneginf(x).any() else y


lgamma = unary(
    "lgamma",
    _lgamma,
    lambda t, y, x: t * digamma.bind(x),
    "``log|Gamma(x)|``; infinite at 0, -1, -2, ...",
    "lgamma special.gammaln",
    "lgamma",
)
digamma = unary(
    "digamma",
    scipy_special("psi"),
    lambda t, y, x: t * polygamma_p.bind(x, n=1),
    "``d/dx lgamma(x)``; at 0 infinite, NaN at the negative integers.",
    "digamma special.digamma special.psi",
    "digamma",
)


def _cotangent_derivative(x: Any, n: int) -> Any:
    """``(d/dx)**n cot(pi x)``, a polynomial in the cotangent."""
    frac = x - np.round(x)
    c = np.polynomial.Polynomial([0.0, 1.0])
    p = c
    for _ in range(n):
        p = p.deriv() * (-1 - c**2) * math.pi
    return p(1 / np.tan(math.pi * frac))


@in_double
def _polygamma(x: Any, *, n: int) -> Any:
    import scipy.special as sc

    # The sum behind zeta takes |x| steps left of 0; there psi_n(x) = (-1)**n psi_n(1 - x) - pi (d/dx)**n cot(pi x).
    far = x < -20
    q = np.where(far, 1 - x, x)
    y = (-1.0) ** (n + 1) * math.factorial(n) * sc.zeta(n + 1.0, q)
    if far.any():
        at = np.where(far, x, 0.5)
        other = (-1.0) ** n * y - math.pi * _cotangent_derivative(at, n)
        y = np.where(far, np.where(at == np.round(at), (-1.0) ** (n + 1) * np.inf, other), y)
    return y


polygamma_p = pointwise(
    "polygamma", _polygamma, lambda t, y, x, *, n: t * polygamma_p.bind(x, n=n + 1), types="float", static=True
)


@public("polygamma special.polygamma")
@straight
def polygamma(n: int, input: Tensor) -> Tensor:
    """``(d/dx)**n digamma(x)`` for ``n = 0, 1, 2, ...``, differentiable to any order.

    >>> chainrule.polygamma(1, chainrule.tensor([1.0]))
    tensor([1.6449])
    """
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"polygamma: argument n must be an int, not {type(n).__name__}")
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n, got n={n}")
    return polygamma_p.bind(input, n=n) if n else digamma.bind(input)


def _polygamma_method(self: Tensor, n: int) -> Tensor:
    """``(d/dx)**n digamma(x)``."""
    return polygamma(n, self)


public("", methods="polygamma", inplace="polygamma_")(_polygamma_method)


@public("mvlgamma special.multigammaln", methods="mvlgamma", inplace="mvlgamma_")
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """``p (p-1)/4 log(pi) + sum over j < p of lgamma(x - j/2)``, the logarithm of the multivariate gamma function."""
    if p < 1:
        raise RuntimeError(f"mvlgamma: p has to be greater than or equal to 1, got {p}")
    steps = Tensor(np.arange(p) * -0.5)
    # Unlike a constant tensor of the default type, this one follows the type of the input.
    x = input if input.is_floating_point() else input.to(_default())
    terms = lgamma.bind(x.unsqueeze(-1) + steps.to(x.dtype))
    return terms.sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


def _default() -> Any:
    from ...core.dtypes import get_default_dtype

    return get_default_dtype()


# -- the Hurwitz zeta function ----------------------------------------------------------------------------------------

# B_2j / (2j)!, the coefficients of the Euler-Maclaurin formula.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330, 854513 / 138,
              -236364091 / 2730, 8553103 / 6)  # fmt: skip
_EULER_MACLAURIN = tuple(b / math.factorial(2 * j + 2) for j, b in enumerate(_BERNOULLI))


_ZETA_OVERFLOW = 2.5e13


@in_double
def _zeta(s: Any, q: Any, *, n: int) -> Any:
    """``(d/ds)**n`` of the sum of ``(q + k)**-s`` over k >= 0."""
    import scipy.special as sc

    if n == 0:
        # Where every term underflows and s**23 overflows, PyTorch's sum is 0 * inf; SciPy's too, but for its shortcut at large q.
        return np.where((q > 1e8) & (s > _ZETA_OVERFLOW), np.nan, sc.zeta(s, q))
    s, q = np.broadcast_arrays(s, q)
    defined, pole = (s > 1) & (q > 0), (s == 1) & (q > 0)
    s, a = np.where(defined, s, 2.0), np.where(defined, q, 1.0)
    # Terms are added until the Euler-Maclaurin tail converges fast, or until they are negligible against the second (the first is 0 at q = 1).
    enough = np.maximum(12.0, (s + 26) / 2)
    total = np.zeros(s.shape)
    first = a
    while True:
        more = (a < enough) & (s * np.log(a / (first + 1)) < 46)
        if not more.any():
            break
        total = np.where(more, total + (-np.log(a)) ** n * a**-s, total)
        a = np.where(more, a + 1, a)
    total = total + np.where(a < enough, 0, _zeta_tail(s, a, n))
    return np.where(defined, total, np.where(pole, np.inf * (-1) ** n, np.nan))


def _zeta_tail(s: Any, a: Any, n: int) -> Any:
    """``(d/ds)**n`` of the sum of ``(a + k)**-s`` for large a, by Euler-Maclaurin on Taylor coefficients in s."""
    log, power = -np.log(a), a**-s
    exponential = [power * log**k / math.factorial(k) for k in range(n + 1)]
    # a / (s - 1) + 1/2 + sum of B_2j/(2j)! (s)_{2j-1} a**(1-2j), as a polynomial in the step of s
    factor = [a * (-1.0) ** k / (s - 1) ** (k + 1) for k in range(n + 1)]
    factor[0] = factor[0] + 0.5
    rising = [s, np.ones_like(s), *[np.zeros_like(s)] * (n - 1)][: n + 1]
    for j, b in enumerate(_EULER_MACLAURIN):
        scale = b * a ** (-1.0 - 2 * j)
        factor = [f + scale * r for f, r in zip(factor, rising, strict=True)]
        for m in (2 * j + 1, 2 * j + 2):
            rising = [(s + m) * rising[k] + (rising[k - 1] if k else 0) for k in range(n + 1)]
    return math.factorial(n) * sum(exponential[k] * factor[n - k] for k in range(n + 1))


def _zeta_in_q(t: Any, y: Any, s: Any, q: Any, *, n: int) -> Any:
    above = -(s * zeta_p.bind(s + 1, q, n=n))
    return t * (above - zeta_p.bind(s + 1, q, n=n - 1) * n if n else above)


zeta_p = pointwise(
    "zeta",
    _zeta,
    lambda t, y, s, q, *, n: t * zeta_p.bind(s, q, n=n + 1),
    _zeta_in_q,
    types="float",
    static=True,
)


@public("special.zeta")
def zeta(input: Any, other: Any) -> Tensor:
    """The Hurwitz zeta function ``sum over k >= 0 of (other + k)**-input``, differentiable in both arguments."""
    one_tensor("zeta", input=input, other=other)
    return zeta_p.bind(input, other, n=0)


# -- samples ----------------------------------------------------------------------------------------------------------

sample("lgamma", S(2, 3, low=0.3, high=4.0), cx=False)
sample("lgamma", Given([-0.5, -2.25, 30.0], grad=True), cx=False)
sample("lgamma", S(0), cx=False)
sample("digamma", S(3, low=0.3, high=4.0), cx=False)
sample("digamma", Given([-0.5, -30.25], grad=True), cx=False)
for _n in range(4):
    sample("polygamma", _n, S(3, low=0.6, high=4.0), cx=False)
sample("polygamma", 2, Given([-25.3, -0.4, 1e3], grad=True), cx=False)
sample("mvlgamma", S(2, 2, low=2.5, high=5.0), 3, cx=False)
sample("mvlgamma", S(low=2.5, high=5.0), p=1, cx=False)
sample("special.zeta", S(2, 3, low=1.5, high=5.0), S(3, low=0.4, high=3.0), cx=False)
sample("special.zeta", 2.5, S(3, low=0.4, high=3.0), cx=False)
sample("special.zeta", Given([1.01, 8.0, 60.0], grad=True), Given([1.0, 0.5, 11.0], grad=True), cx=False)
sample("special.zeta", Given([2.0, 3.0]), Given([-0.5, -1.5], grad=True), cx=False)
