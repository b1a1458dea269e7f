"""The error function and the normal distribution.

The scaled function ``erfcx`` belongs to a family closed under differentiation, ``E_n(x) = exp(x**2) i^n erfc(x)`` with i^n
the n-fold integral: ``E_n' = -2 (n + 1) E_{n+1}``, which has no cancellation in the right tail, unlike ``2 x erfcx(x) - c``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.declare import pointwise
from ...core.errors import ZERO
from ...core.samples import Given, S, sample
from ...core.types import FLOAT_NUMS
from ..elementwise.elementary import km, ks, slope
from ..elementwise.formulas import compiled
from ..elementwise.select import where
from .base import gauss_legendre, in_double, real_only, scipy_special, unary

TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
SQRT_PI_OVER_TWO = math.sqrt(math.pi) / 2
SQRT_2PI = math.sqrt(2 * math.pi)
SQRT_HALF = math.sqrt(0.5)


def _bell(x: Any, *, scale: float) -> Any:
    """``exp(-scale x**2)``; the square is split, since one rounding of it would cost a digit for every ten of it."""
    z = np.minimum(np.abs(x.astype(np.float64, copy=False)), 60.0)
    high = z.astype(np.float32).astype(np.float64)
    return (np.exp(high * high * -scale) * np.exp((z - high) * (z + high) * -scale)).astype(x.dtype, copy=False)


bell_p = pointwise(
    "bell",
    compiled("bell", _bell, lambda k, x, *, scale: ks().bell(k, x, scale), least=0),
    lambda t, y, x, *, scale: t * (y * (x * (-2 * scale))),
    static=True,
)


def bell(x: Any, scale: float) -> Any:
    """``exp(-scale x**2)`` for a scale that is a power of two, to the last digit also far out."""
    return bell_p.bind(x, scale=scale)


def _plain_erfc(x: Any) -> Any:
    import scipy.special as sc

    real_only("erfc", x)
    # SciPy's own ends with the normal numbers.
    z = np.clip(x, 5.0, 30.0)
    return np.where(x > 5, _bell(z, scale=1.0) * sc.erfcx(z), sc.erfc(x)).astype(x.dtype, copy=False)


def plain_ndtr(x: Any) -> Any:
    """The normal distribution function in NumPy and SciPy."""
    import scipy.special as sc

    real_only("ndtr", x)
    # Left of -1 exp(-x**2 / 2) erfcx(-x / sqrt(2)) / 2: the rounding of x / sqrt(2) hardly matters to erfcx.
    z = np.clip(x, -60.0, -1.0)
    left = _bell(z, scale=0.5) * (sc.erfcx(z * -SQRT_HALF) * 0.5)
    return np.where(x < -1, left, sc.ndtr(x)).astype(x.dtype, copy=False)


def _bell_slope(name: str, factor: float, scale: float) -> Any:
    """The op ``t factor exp(-scale x**2)``."""
    return slope(
        name,
        lambda t, x: t * (_bell(x, scale=scale) * x.dtype.type(factor)),
        lambda k, t, x: t * (ks().bell(k, x, scale) * factor),
        lambda x: x * (-2 * scale),
        least=0,
    )


erf_slope = _bell_slope("erf_slope", TWO_OVER_SQRT_PI, 1.0)
ndtr_slope = _bell_slope("ndtr_slope", 1 / SQRT_2PI, 0.5)
erf = unary(
    "erf",
    compiled("erf", scipy_special("erf"), lambda k, x: km().erf(k, x)),
    lambda t, y, x: erf_slope.bind(t, x),
    "The error function ``2/sqrt(pi) * integral of exp(-s**2) from 0 to x``.",
    "erf special.erf",
    "erf",
)
erfc = unary(
    "erfc",
    compiled("erfc", _plain_erfc, lambda k, x: km().erfc(k, x), least=0),
    lambda t, y, x: -erf_slope.bind(t, x),
    "``1 - erf(x)``, accurate in the right tail.",
    "erfc special.erfc",
    "erfc",
)


def _inverse_slope(name: str, scale: float, unit: float, rest: tuple[Any, Any], bend: float) -> Any:
    """The op ``t f'(x)`` of an inverse y = f(x) of erf: ``scale erfcx(unit |y|) / rest(x)``, with the exact distance to the nearer end.

    ``exp(y**2)`` would multiply the rounding of y. The curvature is ``f'' = bend y f'**2``; y is a function of x, so the rule of x has it all.
    """

    def plain(t: Any, y: Any, x: Any) -> Any:
        import scipy.special as sc

        return t * (sc.erfcx(np.minimum(np.abs(y) * y.dtype.type(unit), 1e30)) * y.dtype.type(scale) / rest[0](x))

    p: Any = pointwise(
        name,
        compiled(name, plain, lambda k, t, y, x: t * (ks().erfcx(k, abs(y) * unit) * scale / rest[1](k, x)), least=0),
        lambda s, z, t, y, x: p.bind(s, y, x),
        ZERO,
        lambda s, z, t, y, x: p.bind(p.bind(s * t, y, x) * (y * bend), y, x),
        fast=FLOAT_NUMS,
    )
    return p


erfinv_slope = _inverse_slope(
    "erfinv_slope", SQRT_PI_OVER_TWO, 1.0, (lambda x: 1 - np.abs(x), lambda k, x: 1.0 - abs(x)), 2.0
)
ndtri_slope = _inverse_slope(
    "ndtri_slope",
    math.sqrt(math.pi / 2),
    SQRT_HALF,
    (lambda x: np.minimum(x, 1 - x), lambda k, x: k.minimum(x, 1.0 - x)),
    1.0,
)
_erfinv64 = scipy_special("erfinv")


def _erfinv(x: Any) -> Any:
    # SciPy's algorithm for single precision is less accurate than a rounded double.
    return _erfinv64(x.astype(np.float64)).astype(np.float32) if x.dtype == np.float32 else _erfinv64(x)


erfinv = unary(
    "erfinv",
    _erfinv,
    lambda t, y, x: erfinv_slope.bind(t, y, x),
    "The inverse of erf on (-1, 1); infinite at the ends.",
    "erfinv special.erfinv",
    "erfinv",
)


def plain_erfcx(x: Any) -> Any:
    """exp(x**2) erfc(x); in double precision left of 0 as 2 exp(x**2), whose square is not rounded, less that on the right."""
    import scipy.special as sc

    real_only("erfcx", x)
    y = sc.erfcx(x)
    if x.dtype != np.float64 or not (x < 0).any():
        return y
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(x < 0, 2 * _bell(x, scale=-1.0) - sc.erfcx(np.abs(x)), y)


@in_double
def _scaled_integral(x: Any, *, n: int) -> Any:
    """``E_n(x) = 2/sqrt(pi) * integral of s**n / n! * exp(-s**2 - 2 x s) over s > 0``."""
    if n == 0:
        return plain_erfcx(x)
    # Left of 0 the recurrence 2k E_k = E_{k-2} - 2x E_{k-1} adds positive terms; right of it the integral does.
    left = np.minimum(x, 0)
    before, now = np.full(x.shape, TWO_OVER_SQRT_PI), plain_erfcx(left)
    for k in range(1, n + 1):
        before, now = now, (before - 2 * left * now) / (2 * k)
    right = np.clip(x, 0, 1e300)
    depth = 45.0 + 4 * n
    # exp(-s**2 - 2 x s) = exp(-depth) at the end of the interval; written so that large x neither cancels nor overflows.
    end = depth / (right + np.hypot(right, math.sqrt(depth)))
    total = np.zeros(x.shape)
    for u, w in gauss_legendre(48):
        s = end * u
        total = total + w * s**n * np.exp(-s * (s + 2 * right))
    return np.where(x < 0, now, total * end * (TWO_OVER_SQRT_PI / math.factorial(n)))


def _scaled_integral_single(x: Any, *, n: int) -> Any:
    """The same for single precision and n = 1, by the recurrence: what cancels leaves ten digits."""
    if x.dtype != np.float32 or n != 1:
        return _scaled_integral(x, n=n)
    import scipy.special as sc

    a = x.astype(np.float64)
    near = np.minimum(a, 100.0)
    y = TWO_OVER_SQRT_PI / 2 - near * sc.erfcx(near)
    if (a > 100.0).any():
        r = 1.0 / np.square(np.maximum(a, 100.0))
        y = np.where(a > 100.0, TWO_OVER_SQRT_PI / 2 * r * (0.5 - r * (0.75 - r * 1.875)), y)
    with np.errstate(over="ignore"):
        return y.astype(x.dtype)


erfc_integral_p = pointwise(
    "erfc_integral",
    _scaled_integral_single,
    lambda t, y, x, *, n: t * (erfc_integral_p.bind(x, n=n + 1) * (-2.0 * (n + 1))),
    types="float",
    static=True,
)
erfcx = unary(
    "erfcx",
    plain_erfcx,
    lambda t, y, x: t * (erfc_integral_p.bind(x, n=1) * -2.0),
    "``exp(x**2) * erfc(x)``, the scaled complementary error function.",
)

ndtr = unary(
    "ndtr",
    compiled("ndtr", plain_ndtr, lambda k, x: ks().ndtr(k, x), least=0),
    lambda t, y, x: ndtr_slope.bind(t, x),
    "The distribution function of the standard normal, ``erfc(-x / sqrt(2)) / 2``.",
)
ndtri = unary(
    "ndtri",
    scipy_special("ndtri"),
    lambda t, y, x: ndtri_slope.bind(t, y, x),
    "The quantile function of the standard normal, the inverse of ndtr; infinite at 0 and 1.",
)


def _plain_log_ndtr(x: Any) -> Any:
    import scipy.special as sc

    real_only("log_ndtr", x)
    tail = np.log1p(-plain_ndtr(-np.maximum(x, 0)))
    return np.where(x > 0, tail, sc.log_ndtr(np.minimum(x, 0))).astype(x.dtype, copy=False)


@in_double
def _hazard(x: Any) -> Any:
    """``density / ndtr``; left of 0 that is ``sqrt(2/pi) / erfcx(-x / sqrt(2))``, far right the density alone."""
    import scipy.special as sc

    left = math.sqrt(2 / math.pi) / sc.erfcx(np.minimum(x, 0) * -SQRT_HALF)
    right = np.maximum(x, 0)
    return np.where(x < 0, left, _bell(right, scale=0.5) * (1 / SQRT_2PI) / sc.ndtr(right))


def _hazard_rule(t: Any, y: Any, x: Any) -> Any:
    # h' = -h (x + h), whose sum cancels on the left: there x + h = sqrt(2) E_1 / E_0, and far out h' = -1 + 1/x**2 - ...
    far, left = x < -1e8, x < 0
    z = where(left & ~far, x, 0) * -SQRT_HALF
    ratio = erfc_integral_p.bind(z, n=1) / erfc_integral_p.bind(z, n=0) * math.sqrt(2)
    return t * where(far, -1, -y * where(left, ratio, x + y))


hazard_p = pointwise("hazard", _hazard, _hazard_rule, types="float")
log_ndtr = unary(
    "log_ndtr",
    compiled("log_ndtr", _plain_log_ndtr, lambda k, x: ks().log_ndtr(k, x), least=0),
    lambda t, y, x: t * hazard_p.bind(x),
    "``log(ndtr(x))``, accurate in both tails.",
)

# -- samples ----------------------------------------------------------------------------------------------------------

for _n in ("erf", "erfc", "special.erfcx", "special.ndtr", "special.log_ndtr"):
    sample(_n, S(2, 3), cx=False)
    sample(_n, Given([0.0, -3.0, 5.0], grad=True), cx=False)
sample("bell", S(4), f=lambda x: bell(x, 0.5), cx=False)
sample("special.erfcx", Given([0.0, 1e-3, 30.0, 1e4], grad=True), cx=False)
sample("special.log_ndtr", Given([-100.0, -20.0, 0.0, 20.0], grad=True), cx=False)
sample("erfinv", S(3, low=-0.9, high=0.9), cx=False)
sample("erfinv", S(), f=lambda x: erfinv.bind(x / 3), cx=False)
sample("erfinv", Given([0.0, 1e-3, -0.99], grad=True), cx=False)
sample("special.ndtri", Given([0.5, 1e-3, 0.999], grad=True), cx=False)
sample("special.ndtri", S(3, low=0.05, high=0.95), cx=False)
