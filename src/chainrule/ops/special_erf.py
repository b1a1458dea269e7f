"""The error function and the normal distribution.

The scaled function ``erfcx`` belongs to a family closed under differentiation, ``E_n(x) = exp(x**2) i^n erfc(x)`` with i^n
the n-fold integral: ``E_n' = -2 (n + 1) E_{n+1}``, which has no cancellation in the right tail, unlike ``2 x erfcx(x) - c``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.op import pointwise
from ..core.samples import Given, S, sample
from .pointwise import exp, where
from .special_base import gauss_legendre, in_double, scipy_special, unary

TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
SQRT_PI_OVER_TWO = math.sqrt(math.pi) / 2
SQRT_2PI = math.sqrt(2 * math.pi)
SQRT_HALF = math.sqrt(0.5)

erf = unary(
    "erf",
    scipy_special("erf"),
    lambda t, y, x: t * (exp.call(-(x * x)) * TWO_OVER_SQRT_PI),
    "The error function ``2/sqrt(pi) * integral of exp(-s**2) from 0 to x``.",
    "erf special.erf",
    "erf",
)
erfc = unary(
    "erfc",
    scipy_special("erfc"),
    lambda t, y, x: t * (exp.call(-(x * x)) * -TWO_OVER_SQRT_PI),
    "``1 - erf(x)``, accurate in the right tail.",
    "erfc special.erfc",
    "erfc",
)
erfinv = unary(
    "erfinv",
    scipy_special("erfinv"),
    lambda t, y, x: t * (exp.call(y * y) * SQRT_PI_OVER_TWO),
    "The inverse of erf on (-1, 1); infinite at the ends.",
    "erfinv special.erfinv",
    "erfinv",
)


@in_double
def _scaled_integral(x: Any, *, n: int) -> Any:
    """``E_n(x) = 2/sqrt(pi) * integral of s**n / n! * exp(-s**2 - 2 x s) over s > 0``."""
    import scipy.special as sc

    if n == 0:
        return sc.erfcx(x)
    # Left of 0 the recurrence 2k E_k = E_{k-2} - 2x E_{k-1} adds positive terms; right of it the integral does.
    left = np.minimum(x, 0)
    before, now = np.full(x.shape, TWO_OVER_SQRT_PI), sc.erfcx(left)
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


erfc_integral_p = pointwise(
    "erfc_integral",
    _scaled_integral,
    lambda t, y, x, *, n: t * (erfc_integral_p.call(x, n=n + 1) * (-2.0 * (n + 1))),
    promote="float",
    static=True,
)
erfcx = unary(
    "erfcx",
    scipy_special("erfcx"),
    lambda t, y, x: t * (erfc_integral_p.call(x, n=1) * -2.0),
    "``exp(x**2) * erfc(x)``, the scaled complementary error function.",
)

ndtr = unary(
    "ndtr",
    scipy_special("ndtr"),
    lambda t, y, x: t * normal_density(x),
    "The distribution function of the standard normal, ``erfc(-x / sqrt(2)) / 2``.",
)
ndtri = unary(
    "ndtri",
    scipy_special("ndtri"),
    lambda t, y, x: t * (exp.call(y * y * 0.5) * SQRT_2PI),
    "The quantile function of the standard normal, the inverse of ndtr; infinite at 0 and 1.",
)


def normal_density(x: Any) -> Any:
    """``exp(-x**2 / 2) / sqrt(2 pi)``."""
    return exp.call(x * x * -0.5) * (1 / SQRT_2PI)


def _log_ndtr_rule(t: Any, y: Any, x: Any) -> Any:
    # density / ndtr is 0/0 in the left tail; there it is sqrt(2/pi) / erfcx(-x / sqrt(2)).
    left = x < 0
    tail = math.sqrt(2 / math.pi) / erfcx.call(where(left, x, 0) * -SQRT_HALF)
    return t * where(left, tail, normal_density(where(left, 0, x)) / ndtr.call(where(left, 0, x)))


log_ndtr = unary("log_ndtr", scipy_special("log_ndtr"), _log_ndtr_rule, "``log(ndtr(x))``, accurate in both tails.")

# -- samples ----------------------------------------------------------------------------------------------------------

for _n in ("erf", "erfc", "special.erfcx", "special.ndtr", "special.log_ndtr"):
    sample(_n, S(2, 3), cx=False)
    sample(_n, Given([0.0, -3.0, 5.0], grad=True), cx=False)
sample("special.erfcx", Given([0.0, 1e-3, 30.0, 1e4], grad=True), cx=False)
sample("special.log_ndtr", Given([-100.0, -20.0, 0.0, 20.0], grad=True), cx=False)
sample("erfinv", S(3, low=-0.9, high=0.9), cx=False)
sample("erfinv", S(), f=lambda x: erfinv.call(x / 3), cx=False)
sample("special.ndtri", S(3, low=0.05, high=0.95), cx=False)
