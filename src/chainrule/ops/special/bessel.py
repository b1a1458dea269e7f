"""Bessel functions, their modified, scaled and spherical relatives, and the Airy function.

Each family is closed under differentiation:

* ``J_n' = (J_{n-1} - J_{n+1}) / 2``, the same for Y_n; ``I_n' = (I_{n-1} + I_{n+1}) / 2``, and K_n with the other sign;
* with a power of ``1 - cos`` or ``cosh - 1`` in the integral that defines it, the scaled I and K: ``A_k' = -A_{k+1}``, ``C_k' = -C_{k+1}``;
* ``j_n(x) / x**n``, smooth at 0: its derivative is ``-x`` times the next one;
* ``Ai'' = x Ai``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.declare import pointwise
from ...core.op import Op
from ...core.samples import Given, S, sample
from ..elementwise.elementary import ks
from ..elementwise.formulas import compiled
from ..elementwise.parts import sign
from ..elementwise.select import where
from .base import gauss_legendre, in_double, scipy_special, unary

# -- J, Y, I, K of integer order --------------------------------------------------------------------------------------


def _family(name: str, values: Callable[[int, Any], Any], below: float, above: float) -> Op:
    """The functions F_n (n >= 2, static) with ``F_n' = below F_{n-1} + above F_{n+1}``."""

    @in_double
    def body(x: Any, *, n: int) -> Any:
        return values(n, x)

    def rule(t: Any, y: Any, x: Any, *, n: int) -> Any:
        return t * (order(x, n - 1) * below + order(x, n + 1) * above)

    def order(x: Any, n: int) -> Any:
        return p.bind(x, n=n) if n > 1 else FIRST[name][n].bind(x)

    p: Op = pointwise(name, body, rule, types="float", static=True)
    return p


def _j(n: int, x: Any) -> Any:
    import scipy.special as sc

    # Beyond n the recurrence upwards is stable, and fits J_0 and J_1 where all of them lose digits far out.
    far = np.abs(x) > 20 + n
    z = np.where(far, x, 1.0)
    before, now = sc.j0(z), sc.j1(z)
    for k in range(1, n):
        before, now = now, 2 * k / z * now - before
    return np.where(far, now, sc.jv(n, np.where(far, 0, x)))


def _k(n: int, x: Any) -> Any:
    import scipy.special as sc

    # All terms are positive: the recurrence upwards loses nothing, and ends where K_0 and K_1 do.
    before, now = sc.k0(x), sc.k1(x)
    for j in range(1, n):
        before, now = now, before + 2 * j / x * now
    return now


def _unscaled(y: Any, x: Any) -> Any:
    """``y exp(|x|)``, in two steps: the exponential alone overflows before the product does."""
    half = np.exp(np.abs(x) * 0.5)
    return y * half * half


def _i(n: int, x: Any) -> Any:
    import scipy.special as sc

    return np.where(np.isinf(x), np.copysign(np.inf, x) ** n, _unscaled(sc.ive(n, x), x))


def _first_kind(name: str) -> Any:
    """I_0 or I_1 by SciPy, and up to the largest number where that says infinity too soon."""
    value, scaled = scipy_special(name), scipy_special(f"{name}e")

    def body(x: Any) -> Any:
        y = value(x)
        # One product finds out whether there is anything to look for.
        if np.isfinite(np.vdot(w := np.ravel(y), w)):
            return y
        with np.errstate(all="ignore"):
            y = np.where(np.isinf(y) & np.isfinite(x), _unscaled(scaled(x), x), y).astype(y.dtype, copy=False)
            return np.where(np.isinf(x), np.abs(x) if name == "i0" else x, y)  # where SciPy says NaN

    body.__name__ = name
    return body


FIRST: dict[str, tuple[Op, Op]] = {}
jn_p = _family("bessel_jn", _j, 0.5, -0.5)
yn_p = _family("bessel_yn", scipy_special("yn"), 0.5, -0.5)
in_p = _family("bessel_in", _i, 0.5, 0.5)
kn_p = _family("bessel_kn", _k, -0.5, -0.5)

bessel_j0 = unary("bessel_j0", scipy_special("j0"), lambda t, y, x: -t * bessel_j1.bind(x), "The Bessel function J_0.")
bessel_j1 = unary(
    "bessel_j1",
    scipy_special("j1"),
    lambda t, y, x: t * ((bessel_j0.bind(x) - jn_p.bind(x, n=2)) * 0.5),
    "The Bessel function J_1.",
)
bessel_y0 = unary(
    "bessel_y0",
    scipy_special("y0"),
    lambda t, y, x: -t * bessel_y1.bind(x),
    "The Bessel function Y_0; -inf at 0, NaN for negative arguments.",
)
bessel_y1 = unary(
    "bessel_y1",
    scipy_special("y1"),
    # At 0 the difference would be inf - inf.
    lambda t, y, x: t * where(x == 0, float("inf"), (bessel_y0.bind(x) - yn_p.bind(x, n=2)) * 0.5),
    "The Bessel function Y_1; -inf at 0, NaN for negative arguments.",
)
i0 = unary(
    "i0",
    _first_kind("i0"),
    lambda t, y, x: t * i1.bind(x),
    "The modified Bessel function I_0.",
    "i0 special.i0 special.modified_bessel_i0",
    "i0",
)
i1 = unary(
    "i1",
    _first_kind("i1"),
    lambda t, y, x: t * ((i0.bind(x) + in_p.bind(x, n=2)) * 0.5),
    "The modified Bessel function I_1; its derivative at 0 is 1/2.",
    "special.i1 special.modified_bessel_i1",
)
modified_bessel_k0 = unary(
    "modified_bessel_k0",
    scipy_special("k0"),
    lambda t, y, x: -t * modified_bessel_k1.bind(x),
    "The modified Bessel function K_0; infinite at 0, NaN for negative arguments.",
)
modified_bessel_k1 = unary(
    "modified_bessel_k1",
    scipy_special("k1"),
    lambda t, y, x: t * ((modified_bessel_k0.bind(x) + kn_p.bind(x, n=2)) * -0.5),
    "The modified Bessel function K_1; infinite at 0, NaN for negative arguments.",
)
FIRST.update(
    bessel_jn=(bessel_j0, bessel_j1),
    bessel_yn=(bessel_y0, bessel_y1),
    bessel_in=(i0, i1),
    bessel_kn=(modified_bessel_k0, modified_bessel_k1),
)

# -- scaled I: A_n(x) = 1/pi * integral of (1 - cos s)**n exp(-|x| (1 - cos s)) over [0, pi] ----------------------------


@in_double
def _scaled_i(x: Any, *, n: int) -> Any:
    x = np.abs(x)
    # A periodic integrand: equidistant points converge faster than any power, here to the last digit for x < 40.
    near, m = np.minimum(x, 40.0), 56
    total = np.zeros(x.shape)
    for j in range(m):
        u = 2 * math.sin(math.pi * (j + 0.5) / (2 * m)) ** 2
        total = total + u**n * np.exp(-near * u)
    # Beyond, w**2 = 1 - cos s, cut where the exponential has vanished.
    far = np.clip(x, 40.0, 1e300)
    depth = 45.0 + 2 * n
    end = np.sqrt(np.minimum(depth / far, 1.5))
    tail = np.zeros(x.shape)
    for v, w in gauss_legendre(48):
        u = (end * v) ** 2
        tail = tail + w * u**n * np.exp(-far * u) / np.sqrt(2 - u)
    return np.where(x < 40, total / m, tail * end * (2 / math.pi))


FAR = 1e3  # beyond, three terms of the expansion in 1/x say more than the difference of what is nearly equal


def _scaled_i_single(x: Any, *, n: int) -> Any:
    """The same for single precision and n = 1 or 2, by the functions themselves: what cancels leaves nine digits and more."""
    if x.dtype != np.float32 or n not in (1, 2):
        return _scaled_i(x, n=n)
    import scipy.special as sc

    a = np.abs(x).astype(np.float64)
    near = np.clip(a, 1e-30, FAR)
    i0, i1 = sc.i0e(near), sc.i1e(near)
    y = i0 - i1 if n == 1 else 2.0 * (i0 - i1) - i1 / near
    if (a > FAR).any():
        far = np.maximum(a, FAR)
        r = 1.0 / far
        tail = (0.5 + r * (0.1875 + r * 0.17578125)) if n == 1 else r * (0.75 + r * (0.46875 + r * 0.615234375))
        y = np.where(a > FAR, tail * r / np.sqrt(2 * np.pi * far), y)
    return np.where(a == a, y, a).astype(x.dtype)


scaled_i_p = pointwise(
    "scaled_i",
    _scaled_i_single,
    lambda t, y, x, *, n: t * (sign.bind(x) * -scaled_i_p.bind(x, n=n + 1)),
    types="float",
    static=True,
)
i0e = unary(
    "i0e",
    scipy_special("i0e"),
    lambda t, y, x: t * (sign.bind(x) * -scaled_i_p.bind(x, n=1)),
    "``exp(-|x|) I_0(x)``; at its kink at 0 the derivative is 0, between the two slopes.",
)
i1e = unary(
    "i1e",
    scipy_special("i1e"),
    # i1e = sign(x) (A_0 - A_1)
    lambda t, y, x: t * (scaled_i_p.bind(x, n=2) - scaled_i_p.bind(x, n=1)),
    "``exp(-|x|) I_1(x)``; its derivative at 0 is 1/2.",
)

# -- scaled K: C_k(x) = integral of (cosh s - 1)**k exp(-x (cosh s - 1)) over s > 0 -------------------------------------


@in_double
def _scaled_k(x: Any, *, k: int) -> Any:
    import scipy.special as sc

    # Near 0 the binomial sum over exp(x) K_j is dominated by its last term.
    tiny = np.minimum(x, 0.01)
    small = (-1.0) ** k * math.comb(2 * k, k) * sc.kve(0, tiny)
    for j in range(1, k + 1):
        small = small + 2 * (-1.0) ** (k - j) * math.comb(2 * k, k - j) * sc.kve(j, tiny)
    # Elsewhere the integrand is even, analytic and falls doubly exponentially: equidistant points again.
    rest, m = np.clip(x, 0.01, 1e300), 60
    step = np.arccosh(1 + (45.0 + 4 * k) / rest) / m
    step = np.where(rest > 1e6, np.sqrt(2 * (45.0 + 4 * k) / rest) / m, step)
    total = np.full(x.shape, 0.5 if k == 0 else 0.0)
    for j in range(1, m + 1):
        u = 2 * np.sinh(0.5 * j * step) ** 2
        total = total + u**k * np.exp(-rest * u)
    return np.where(x == 0, np.inf, np.where(x < 0.01, small / 2.0**k, total * step))


scaled_k_p = pointwise(
    "scaled_k",
    _scaled_k,
    lambda t, y, x, *, k: -t * scaled_k_p.bind(x, k=k + 1),
    types="float",
    static=True,
)
scaled_modified_bessel_k0 = unary(
    "scaled_modified_bessel_k0",
    scipy_special("k0e"),
    lambda t, y, x: -t * scaled_k_p.bind(x, k=1),
    "``exp(x) K_0(x)``; infinite at 0, NaN for negative arguments.",
)
scaled_modified_bessel_k1 = unary(
    "scaled_modified_bessel_k1",
    scipy_special("k1e"),
    # k1e = C_0 + C_1
    lambda t, y, x: -t * (scaled_k_p.bind(x, k=1) + scaled_k_p.bind(x, k=2)),
    "``exp(x) K_1(x)``; infinite at 0, NaN for negative arguments.",
)

# -- spherical Bessel functions and sinc: s_n(x) = j_n(x) / x**n, even and entire ---------------------------------------


def _spherical(x: Any, *, n: int) -> Any:
    import scipy.special as sc

    work = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    with np.errstate(all="ignore"):
        near = np.abs(work) < n + 1.5
        # The power series sum of (-x**2/2)**k / (k! (2n+2k+1)!!); it hardly cancels below n + 1.5.
        z = np.where(near, work * work, 0) * -0.5
        term = np.full(work.shape, 1.0 / math.prod(range(1, 2 * n + 2, 2)), work.dtype)
        total = term
        for k in range(1, 24 + 2 * n):
            term = term * z / (k * (2 * n + 2 * k + 1))
            total = total + term
        far = np.where(near, n + 2.0, work)
        r = np.where(near, total, np.where(np.isinf(far), 0, sc.spherical_jn(n, far) / far**n))
        return r.astype(x.dtype)


spherical_p = pointwise(
    "spherical",
    _spherical,
    lambda t, y, x, *, n: t * (x * -spherical_p.bind(x, n=n + 1)),
    types="float",
    static=True,
)


def _spherical_j0(x: Any) -> Any:
    return in_double(_sin_over)(x)


def _sin_over(x: Any) -> Any:
    return np.where(np.isinf(x), 0.0, np.where(x == 0, 1.0, np.sin(x) / np.where(x == 0, 1, x)))


def _times_next(x: Any) -> Any:
    """``x s_1(x) = (sin(x)/x - cos(x)) / x``, without its cancellation near 0 and infinity times 0 far out."""
    return x * spherical_p.bind(x, n=1)


spherical_bessel_j0 = unary(
    "spherical_bessel_j0", _spherical_j0, lambda t, y, x: -t * _times_next(x), "``sin(x) / x``, and 1 at 0."
)


def _plain_sinc(x: Any) -> Any:
    """With the sine of the distance to the nearest integer, at which it is exactly 0."""
    if x.dtype.kind == "c":
        return np.sinc(x)
    a = np.abs(x.astype(np.float64, copy=False))
    s, _ = _half_turn(a)
    with np.errstate(all="ignore"):
        y = np.where(a == 0, 1.0, s / (math.pi * a))
    return y.astype(x.dtype, copy=False)


def _half_turn(a: Any) -> tuple[Any, Any]:
    """``sin(pi a)`` and ``cos(pi a)`` for ``a >= 0``, reduced before the rounding of pi."""
    with np.errstate(all="ignore"):
        r = a - np.rint(a * 0.5) * 2
    m = np.minimum(np.abs(r), 1 - np.abs(r))
    return np.copysign(np.sin(math.pi * m), r), np.where(np.abs(r) > 0.5, -1, 1) * np.sin(math.pi * (0.5 - m))


def _plain_sinc_slope(t: Any, x: Any) -> Any:
    """t times ``(cos(pi x) - sinc(x)) / x``, near 0 ``-pi (pi x) s_1(pi x)``."""
    if x.dtype.kind == "c":
        z = x * math.pi
        return t * (z * _spherical(z, n=1) * -math.pi)
    z = x.astype(np.float64, copy=False)
    a = np.abs(z)
    s, c = _half_turn(a)
    near = np.where(a < 0.5, z, 0) * math.pi
    with np.errstate(all="ignore"):
        y = np.where(a < 0.5, near * _spherical(near, n=1) * -math.pi, np.copysign(1, z) * (c - s / (math.pi * a)) / a)
    return t * y.astype(x.dtype, copy=False)


def _sinc_curve(x: Any) -> Any:
    """``-pi**2 (s_1(z) - z**2 s_2(z))`` at ``z = pi x``."""
    z = x * math.pi
    return (spherical_p.bind(z, n=1) - z * (z * spherical_p.bind(z, n=2))) * -(math.pi**2)


sinc_slope_p = pointwise(
    "sinc_slope",
    compiled("sinc_slope", _plain_sinc_slope, lambda k, t, x: t * ks().sinc_slope(k, x), least=0),
    lambda s, y, t, x: sinc_slope_p.bind(s, x),
    lambda s, y, t, x: s * (t * _sinc_curve(x)),
)
sinc = unary(
    "sinc",
    compiled("sinc", _plain_sinc, lambda k, x: ks().sinc(k, x), least=0),
    lambda t, y, x: sinc_slope_p.bind(t, x),
    "``sin(pi x) / (pi x)``, 1 at 0 and 0 at the other integers; smooth to any order.",
    "sinc special.sinc",
    "sinc",
)

# -- Airy ---------------------------------------------------------------------------------------------------------------


def _airy_both(x: Any) -> tuple[Any, Any]:
    """``Ai(x)`` and ``Ai'(x)``, also far left, where SciPy's lose their phase."""
    import scipy.special as sc

    far = x < -60
    value, slope, _, _ = sc.airy(np.where(far | (x > 120), 0, x))
    # PyTorch says NaN at both infinities.
    value, slope = (np.where(x > 120, np.where(x == np.inf, np.nan, 0.0), v) for v in (value, slope))
    if not far.any():
        return value, slope
    # Ai(-z) = (cos(p) U_even + sin(p) U_odd) / (sqrt(pi) z**(1/4)) with p = 2/3 z**(3/2) - pi/4
    z = np.where(far, -x, 60.0).astype(np.longdouble)
    xi = z * np.sqrt(z) * 2 / 3
    sin, cos = np.sin(xi).astype(np.float64), np.cos(xi).astype(np.float64)
    sin, cos = (sin - cos) * math.sqrt(0.5), (sin + cos) * math.sqrt(0.5)
    # Beyond 2**53 one rounding of x turns the phase by more than a turn: no value is better than PyTorch's, whose pi/4 is rounded away.
    lost = xi > 2.0**53
    if lost.any():
        double = 2 * z.astype(np.float64) * np.sqrt(z.astype(np.float64)) / 3
        sin, cos = np.where(lost, -np.cos(double), sin), np.where(lost, np.sin(double), cos)
    w = (1 / xi).astype(np.float64)
    u = [1.0]
    for k in range(1, 10):
        u.append(u[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1)))
    v = [c * (6 * k + 1) / (1 - 6 * k) for k, c in enumerate(u)]

    def alternating(c: list[float], first: int) -> Any:
        return sum((-1) ** (k // 2) * c[k] * w**k for k in range(first, 10, 2))

    root = np.sqrt(np.sqrt(z)).astype(np.float64)
    left = (cos * alternating(u, 0) + sin * alternating(u, 1)) / (math.sqrt(math.pi) * root)
    down = (sin * alternating(v, 0) - cos * alternating(v, 1)) * (root / math.sqrt(math.pi))
    return np.where(far, left, value), np.where(far, down, slope)


@in_double
def _airy(x: Any) -> Any:
    return _airy_both(x)[0]


@in_double
def _airy_slope(x: Any) -> Any:
    return _airy_both(x)[1]


airy_slope_p = pointwise("airy_slope", _airy_slope, lambda t, y, x: t * (x * airy_ai.bind(x)), types="float")
airy_ai = unary(
    "airy_ai", _airy, lambda t, y, x: t * airy_slope_p.bind(x), "The Airy function Ai, with ``Ai'' = x Ai``."
)

# -- samples ----------------------------------------------------------------------------------------------------------

for _n in ("bessel_j0", "bessel_j1", "i0", "i1", "airy_ai", "spherical_bessel_j0", "sinc"):
    sample(f"special.{_n}", S(2, 3), cx=_n == "sinc")
    sample(f"special.{_n}", Given([0.0, 1e-4, -5.0, 6.0], grad=True), cx=_n == "sinc")
for _n in ("bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1"):
    sample(f"special.{_n}", S(2, 3, low=0.3, high=6.0), cx=False)
for _n in ("scaled_modified_bessel_k0", "scaled_modified_bessel_k1"):
    sample(f"special.{_n}", S(3, low=0.3, high=6.0), cx=False)
    sample(f"special.{_n}", Given([0.005, 0.5, 50.0, 1e4], grad=True), cx=False)
sample("special.airy_ai", Given([-59.0, -61.0, 3.0], grad=True), cx=False)
sample("special.bessel_j1", Given([-30.0, 21.0, 23.0], grad=True), cx=False)
sample("special.i0e", Given([0.3, -2.0, 39.0, -41.0, 500.0], grad=True), cx=False)
sample("special.i1e", Given([0.3, -2.0, 39.0, -41.0, 500.0], grad=True), cx=False)
