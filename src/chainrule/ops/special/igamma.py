"""The incomplete gamma functions, differentiable in both arguments to any order.

With ``P_n = (d/da)**n P(a, x)``: ``dP_n/da = P_{n+1}`` and ``dP_n/dx = (d/da)**n f(a, x)``, where ``f = x**(a-1) e**-x / Gamma(a)``
is the density of the gamma distribution. P_n is computed on the smaller side of the distribution: left of the mode by the
power series of P (by quadrature for large a), right of it by quadrature of the tail; since P + Q = 1 the two sides differ by sign.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.declare import pointwise
from ...core.dtypes import COMPLEX, FLOAT
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.tensor import Tensor
from ..elementwise.elementary import log
from ..elementwise.select import where
from .base import gauss_legendre, in_double, one_tensor
from .gamma import digamma, polygamma_p

SERIES_BELOW = 100.0  # the series needs about 9 sqrt(a) terms
DEPTH = 45.0  # tails are cut where they have fallen by e**-DEPTH


_ATANH = [1 / (2 * k + 3) for k in range(14)]


def log1p_minus(u: Any) -> Any:
    """``log(1 + u) - u`` without cancellation near 0."""
    r = u / (2 + u)
    near = np.abs(u) < 0.4
    r2 = np.where(near, r * r, 0)
    # log(1 + u) = 2 atanh(r)
    series = np.polynomial.polynomial.polyval(r2, _ATANH)
    return np.where(near, r * (2 * r2 * series - u), np.log1p(u) - u)


def _log_gamma_over_power(a: Any) -> Any:
    """``lgamma(a + 1) - (a log(a) - a + log(2 pi a) / 2)``, the error of Stirling's formula, for a >= 10."""
    b = 1 / (a * a)
    return (
        1 / 12 - b * (1 / 360 - b * (1 / 1260 - b * (1 / 1680 - b * (1 / 1188 - b * (691 / 360360 - b / 156)))))
    ) / a


def poisson(a: Any, x: Any) -> Any:
    """``x**a e**-x / Gamma(a + 1)``; for large a around its maximum at x = a, so that nothing cancels."""
    import scipy.special as sc

    big = a >= 10
    b = np.where(big, a, 10.0)
    u = (x - b) / b
    # far from b the difference would swallow a small x
    slope = np.where(np.abs(u) < 0.4, log1p_minus(u), np.log(x / b) - u)
    saddle = np.exp(b * slope - _log_gamma_over_power(b)) / np.sqrt(2 * math.pi * b)
    return np.where(big, saddle, np.exp(sc.xlogy(a, x) - x) * sc.rgamma(a + 1))


@in_double
def _density(a: Any, x: Any) -> Any:
    """``x**(a-1) e**-x / Gamma(a)``, and its limits at x = 0 and infinity."""
    a, x = np.broadcast_arrays(a, x)
    # a - 1 would round a small a away
    inside = np.where(a < 1, poisson(a, x) * a / np.where(x == 0, np.inf, x), poisson(a - 1, x))
    at_zero = np.where((x == 0) & (a < 1) & (a != np.floor(a)), np.inf * _gamma_sign(a), inside)
    return np.where(np.isinf(x) & (x > 0), 0.0, np.where(x < 0, np.nan, at_zero))


def _gamma_sign(a: Any) -> Any:
    """The sign of ``Gamma(a)``."""
    import scipy.special as sc

    return sc.gammasgn(a)


def _density_in_x(t: Any, y: Any, a: Any, x: Any) -> Any:
    # f' = f (a - 1 - x) / x, which at x = 0 is f(a - 1, x) - f(a, x).
    zero = x == 0
    inner = y * ((a - 1 - x) / where(zero, 1, x))
    return t * where(zero, gamma_density_p.bind(a - 1, where(zero, x, 1)) - y, inner)


gamma_density_p = pointwise(
    "gamma_density",
    _density,
    lambda t, y, a, x: t * density_in_a(a, x, 1, y),
    _density_in_x,
    types="float",
)


def density_in_a(a: Any, x: Any, n: int, y: Any = None) -> Any:
    """``(d/da)**n f(a, x)``, by the complete Bell polynomials in ``log(x) - digamma(a)`` and its derivatives.

    At x = 0 it is the limit for a > 1, which is 0.
    """
    y = gamma_density_p.bind(a, x) if y is None else y
    if n == 0:
        return y
    a = a if isinstance(a, Tensor) else y * 0 + a
    x = x if isinstance(x, Tensor) else y * 0 + x
    zero = x == 0
    slopes = [log.bind(where(zero, 1, x)) - digamma.bind(a)]
    slopes += [-polygamma_p.bind(a, n=k) for k in range(1, n)]
    return where(zero, 0, y * _bell(slopes)[n])


def _bell(slopes: list[Any]) -> list[Any]:
    """``f**-1 (d/da)**k f`` for k = 0, ..., n from the derivatives 1, ..., n of ``log f``."""
    out: list[Any] = [1.0]
    for m in range(len(slopes)):
        out.append(sum(math.comb(m, k) * out[m - k] * slopes[k] for k in range(m + 1)))
    return out


# -- derivatives in a -------------------------------------------------------------------------------------------------


def _polygammas(a: Any, n: int) -> list[Any]:
    """``-digamma(a + 1)`` and the derivatives up to n - 1 of it."""
    import scipy.special as sc

    return [-sc.psi(a + 1), *(-sc.polygamma(k, a + 1) for k in range(1, n))]


def _series(a: Any, x: Any, n: int) -> Any:
    """``(d/da)**n`` of the sum of ``x**(a+k) e**-x / Gamma(a+k+1)`` over k >= 0, for x <= max(a, 1)."""
    term, slopes = poisson(a, x), _polygammas(a, n)
    slopes[0] = slopes[0] + np.log(x)
    total = np.zeros(a.shape)
    size = np.zeros(a.shape)
    for k in range(1, 1000):
        part = term * _bell(slopes)[n]
        total = total + part
        size = np.maximum(size, np.abs(part))
        if not np.any(np.abs(part) > 1e-18 * size) and k > n + 2:
            break
        b = 1 / (a + k)
        term = term * x * b
        slopes = [s - (-1) ** j * math.factorial(j) * b ** (j + 1) for j, s in enumerate(slopes)]
    return total


def _tail(a: Any, x: Any, n: int, side: float) -> Any:
    """``(d/da)**n`` of the integral of the density from x outwards, to the right (side 1) or to the left (side -1)."""
    slopes = _polygammas(a, n)
    slopes[0] = slopes[0] + np.log(x)
    rate, bend = np.abs(a - 1 - x) / x, np.abs(a - 1) / (x * x)
    end = 2 * DEPTH / (rate + np.sqrt(rate * rate + 2 * DEPTH * bend))
    if side < 0:
        end = np.minimum(end, x * (1 - 1e-14))
    else:
        # Newton on the convex function s - (a - 1) log(1 + s/x) = DEPTH comes down from above after one step.
        for _ in range(6):
            u = end / x
            value = (x - a + 1) * u - (a - 1) * log1p_minus(u) - DEPTH
            end = np.where(a > 1, end - value / (1 - (a - 1) / (x + end)), DEPTH)
    total = np.zeros(a.shape)
    large = np.max(a) > SERIES_BELOW
    for v, w in gauss_legendre(72):
        u = side * v * end / x
        grow = np.log1p(u)
        bell = _bell([slopes[0] + grow, *slopes[1:]])
        # f = a h with h = x**(a-1) e**-x / Gamma(a+1), regular at a = 0
        part = a * bell[n] + n * bell[n - 1]
        fall = (a - 1) * log1p_minus(u) + (a - 1 - x) * u if large else (a - 1) * grow - x * u
        total = total + w * part * np.exp(fall)
    return total * (end / x) * poisson(a, x)


@in_double
def _igamma_in_a(a: Any, x: Any, *, n: int) -> Any:
    """``(d/da)**n P(a, x)`` for n >= 1; 0 at x = 0 and at infinity."""
    a, x = np.broadcast_arrays(a, x)
    inside = (x > 0) & np.isfinite(x) & (a >= 0) & np.isfinite(a)
    left = x <= np.maximum(a, 1)
    series = inside & left & (a < SERIES_BELOW)
    out = np.where((a >= 0) & (x >= 0), 0.0, np.nan)
    out = np.array(out)
    for mask, f in (
        (series, lambda a, x: _series(a, x, n)),
        (inside & left & ~series, lambda a, x: _tail(a, x, n, -1.0)),
        (inside & ~left, lambda a, x: -_tail(a, x, n, 1.0)),
    ):
        if mask.any():
            out[mask] = f(a[mask], x[mask])
    return out


igamma_in_a_p = pointwise(
    "igamma_in_a",
    _igamma_in_a,
    lambda t, y, a, x, *, n: t * igamma_in_a_p.bind(a, x, n=n + 1),
    lambda t, y, a, x, *, n: t * density_in_a(a, x, n),
    types="float",
    static=True,
)


def _lower(a: Any, x: Any) -> Any:
    import scipy.special as sc

    # Like pow, NaN does not spread where the other argument alone decides.
    return _decided(sc.gammainc(a, x), a, x, 0.0)


def _upper(a: Any, x: Any) -> Any:
    import scipy.special as sc

    return _decided(sc.gammaincc(a, x), a, x, 1.0)


def _decided(y: Any, a: Any, x: Any, at_infinite_a: float) -> Any:
    if not np.isnan(y).any():
        return y
    y = np.where(np.isposinf(a) & np.isnan(x), at_infinite_a, y)
    return np.where(np.isnan(a) & np.isposinf(x), 1 - at_infinite_a, y)


igamma_p = pointwise(
    "igamma",
    in_double(_lower),
    lambda t, y, a, x: t * igamma_in_a_p.bind(a, x, n=1),
    lambda t, y, a, x: t * gamma_density_p.bind(a, x),
    types="float",
)
igammac_p = pointwise(
    "igammac",
    in_double(_upper),
    lambda t, y, a, x: -t * igamma_in_a_p.bind(a, x, n=1),
    lambda t, y, a, x: -t * gamma_density_p.bind(a, x),
    types="float",
)


def _check(name: str, input: Any, other: Any) -> None:
    one_tensor(name, input=input, other=other)
    for arg, v in (("input", input), ("other", other)):
        if isinstance(v, Tensor) and not FLOAT <= v.dtype.category < COMPLEX:
            raise NotImplementedError(
                f"{name} is not implemented for {v.dtype} ({arg}); it takes real floating-point tensors"
            )


@public("igamma special.gammainc", methods="igamma", inplace="igamma_")
def igamma(input: Tensor, other: Tensor) -> Tensor:
    """``P(a, x) = 1/Gamma(a) * integral of s**(a-1) e**-s from 0 to x``, with a = `input` and x = `other`.

    >>> a, x = chainrule.tensor(1.0), chainrule.tensor(2.0)
    >>> chainrule.func.grad(chainrule.igamma, argnums=(0, 1))(a, x)
    (tensor(-0.2208), tensor(0.1353))
    """
    _check("igamma", input, other)
    return igamma_p.bind(input, other)


@public("igammac special.gammaincc", methods="igammac", inplace="igammac_")
def igammac(input: Tensor, other: Tensor) -> Tensor:
    """``Q(a, x) = 1 - P(a, x)``, with a = `input` and x = `other`, accurate in the right tail."""
    _check("igammac", input, other)
    return igammac_p.bind(input, other)


# -- samples ----------------------------------------------------------------------------------------------------------

for _n in ("igamma", "igammac"):
    sample(_n, S(2, 3, low=0.3, high=4.0), S(3, low=0.2, high=5.0), cx=False)
    sample(_n, S(low=0.3, high=4.0), S(2, low=0.2, high=5.0), cx=False)
    sample(
        _n,
        Given([2.0, 30.0, 30.0, 150.0, 150.0], grad=True),
        Given([2.0, 25.0, 40.0, 140.0, 160.0], grad=True),
        cx=False,
    )
