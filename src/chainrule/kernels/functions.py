"""Functions of one and two numbers as formulas of the loop language: what NumPy and SciPy compute one number at a time, in vectors.

Those marked narrow are for float32 (and the 16-bit floats), and computed in double precision: what they return is the rounded result, but for a few in a
million. Their polynomials are Chebyshev fits of the function named beside them, to some 1e-10.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable
from typing import Any

from .calls import NotSupported
from .lang import Kernel, Value, f32, f64
from .math import INF, NAN, _poly, exp, expm1, log, log1p
from .special import erfcx as erfcx_right

# atan(sqrt(z))/sqrt(z) on [0, 1]; erfinv(x)/x with w = -log(1 - x²): in w - 2.5 up to w = 5, in sqrt(w) - 3.2 up to 4.2², in sqrt(w) - 7.2 up to 10.3²;
# lgamma(x)/((x - 1)(x - 2)) in x - 1.5 on [0.78, 2.22]
_ATAN = (
    0.9999999999997498, -0.33333333321782244, 0.1999999911068461, -0.1428568710621083, 0.11110672929948794,
    -0.09086614178003435, 0.0766447474322461, -0.06540740562584578, 0.05469183478407004, -0.04251176283712073,
    0.028635316448546336, -0.015417876446161362, 0.006036446601162829, -0.001498491806275239,
    0.00017498050088751024,
)  # fmt: skip
_ERFINV_A = (
    1.501409351110789, 0.24664027674342928, -0.004177317724310294, -0.0012527079020959405,
    0.00021825026400414552, -4.996092536891337e-06, -3.4166189940765605e-06, 4.787384094118245e-07,
    1.3416265516933966e-08, -1.086833700689238e-08, 9.075789083497197e-10, 1.2183628711494253e-10,
    -3.118846645881927e-11, 5.097888233206546e-13, 5.52215739725242e-13, -3.6086031489517634e-14,
    -4.852045242047136e-15,
)  # fmt: skip
_ERFINV_B = (
    3.0336365744272524, 1.0046924423861645, 0.005973167472219161, -0.00429418420821247, 0.0029508589585938157,
    -0.001992807355517368, 0.0010781708127963955, -0.0003587319221643124, -1.1235560063766506e-05,
    9.58543457997062e-05, -5.56135495323483e-05, 7.006803796321414e-06, 8.204832140863504e-06,
    -3.338461134025746e-06,
)  # fmt: skip
_ERFINV_C = (
    7.0707183297043175, 1.0083914942310557, -0.0005075561560555929, 1.0530325681507412e-05,
    4.614433310546957e-06, -1.286389378004379e-06, 2.44951611670848e-07, -4.069638588867694e-08,
    7.278141556135561e-09, -1.2346787034877596e-09, 5.620476455600879e-11, 5.956711426182772e-12,
    7.63321094883993e-12, -1.5919052767242773e-12,
)  # fmt: skip
_LGAMMA = (
    0.4831289505420121, -0.14595989592088693, 0.06291140075654984, -0.031308486749738206,
    0.016797114725806937, -0.009425647525284193, 0.00544614562487495, -0.003211695346930903,
    0.0019259304150285367, -0.001167491743767665, 0.0006953428699523355, -0.000423464613747926,
    0.00032139052515622326, -0.0002095997087398601, 1.8313182557937357e-05, -1.009494190574754e-06,
    0.00011664192998059176, -7.84730344897659e-05,
)  # fmt: skip
_HALF_LOG_TWO_PI = 0.9189385332046728

Formula = Callable[..., Value]


def narrow(f: Formula) -> Formula:
    """A formula of float64 for float32 alone."""

    def formula(k: Kernel, *xs: Value, **static: Any) -> Value:
        if k.compute is not f32:
            raise NotSupported
        return f(k, *[x.to(f64) for x in xs], **static).to(f32)

    formula.__name__, formula.__doc__ = f.__name__, f.__doc__
    return formula


def _const(k: Kernel, x: float, like: Value) -> Value:
    assert like.dtype is not None
    return k.const(x, like.dtype)


# -- choices, signs, rounding ---------------------------------------------------------------------------------------------


def maximum(k: Kernel, a: Value, b: Value) -> Value:
    """The larger one; NaN wins"""
    return k.select(a.ne(a), a, k.maximum(a, b))


def minimum(k: Kernel, a: Value, b: Value) -> Value:
    """The smaller one; NaN wins"""
    return k.select(a.ne(a), a, k.minimum(a, b))


def clamp(k: Kernel, x: Value, low: Value, high: Value) -> Value:
    """min(max(x, low), high)"""
    return minimum(k, maximum(k, x, low), high)


def fmax(k: Kernel, a: Value, b: Value) -> Value:
    """The larger one; a number beats NaN"""
    return k.select(b.ne(b), a, k.maximum(a, b))


def fmin(k: Kernel, a: Value, b: Value) -> Value:
    """The smaller one; a number beats NaN"""
    return k.select(b.ne(b), a, k.minimum(a, b))


def frac(k: Kernel, x: Value) -> Value:
    """x - trunc(x)"""
    return x - k.trunc(x)


def nan_to_num(k: Kernel, x: Value, nan: float, posinf: float, neginf: float) -> Value:
    """NaN and the infinities replaced"""
    y = k.select(x.ne(x), nan, x)
    return k.select(x.eq(INF), posinf, k.select(x.eq(-INF), neginf, y))


def lerp(k: Kernel, a: Value, b: Value, w: Value) -> Value:
    """a + w (b - a), from the nearer end"""
    d = b - a
    return k.select(abs(w) < 0.5, a + w * d, b - d * (1.0 - w))


def addcmul(k: Kernel, x: Value, a: Value, b: Value, value: float) -> Value:
    """x + value a b"""
    return x + a * b if value == 1 else x + a * value * b


def addcdiv(k: Kernel, x: Value, a: Value, b: Value, value: float) -> Value:
    """x + value a / b"""
    return x + a / b if value == 1 else x + a * value / b


# -- logarithms and powers ------------------------------------------------------------------------------------------------


def logaddexp(k: Kernel, a: Value, b: Value) -> Value:
    """log(e**a + e**b)"""
    m = maximum(k, a, b)
    y = m + log1p(k, exp(k, -abs(a - b)))
    return k.select(a.eq(b), a + numbers.log(2.0), k.select(abs(m) < INF, y, m))


def _exp2_minus(k: Kernel, d: Value) -> Value:
    """2**-d for d >= 0; what rounding takes from d log(2) is put back, for e**-x makes x times as much of it"""
    log2 = numbers.log(2.0) if d.dtype is f64 else 0.6931471824645996
    d = k.minimum(d, _const(k, 2000.0, d))
    x = d * log2
    lost = k.fma(d, log2, -x) + d * (2.3190468138462996e-17 if d.dtype is f64 else -1.904654299957768e-09)
    y = exp(k, -x)
    return k.fma(-y, lost, y)


def logaddexp2(k: Kernel, a: Value, b: Value) -> Value:
    """log2(2**a + 2**b)"""
    m = maximum(k, a, b)
    y = m + log1p(k, _exp2_minus(k, abs(a - b))) * (1.0 / numbers.log(2.0))
    return k.select(a.eq(b), a + 1.0, k.select(abs(m) < INF, y, m))


@narrow
def logit(k: Kernel, x: Value) -> Value:
    """log(x / (1 - x))"""
    return log(k, x / (1.0 - x))


@narrow
def xlogy(k: Kernel, x: Value, y: Value) -> Value:
    """x log(y), 0 where x is and y is no NaN"""
    return k.select(y.ne(y), y, k.select(x.eq(0.0), 0.0, x * log(k, y)))


@narrow
def entr(k: Kernel, x: Value) -> Value:
    """-x log(x), 0 at 0 and -inf below"""
    y = -(x * log(k, x))
    return k.select(x > 0.0, k.select(x < INF, y, -INF), k.select(x.eq(0.0), 0.0, k.select(x < 0.0, -INF, x)))


@narrow
def power(k: Kernel, x: Value, y: Value) -> Value:
    """x**y: 1 where y is 0 or x is 1; of a negative x by the parity of a whole y"""
    a = abs(x)
    size = exp(k, y * log(k, a))
    size = k.select(a.eq(1.0), 1.0, k.select(y.eq(0.0), 1.0, size))
    half = y * 0.5
    whole = k.trunc(y).eq(y)
    odd = whole & k.trunc(half).ne(half)
    negative = k.copysign(_const(k, 1.0, x), x) < 0.0
    size = k.select(negative & odd, -size, size)
    bad = (x < 0.0) & (a < INF) & (k.trunc(y).ne(y)) & (abs(y) < INF)
    y1 = k.select(bad, NAN, size)
    # NaN to the power 0 is 1, and so is 1 to the power NaN.
    lost = (x.ne(x) & y.ne(0.0)) | (y.ne(y) & x.ne(1.0))
    return k.select(lost, NAN, k.select(y.eq(0.0), 1.0, k.select(x.eq(1.0), 1.0, y1)))


def less_share(k: Kernel, g: Value, y: Value, s: Value) -> Value:
    """g - exp(y) s, where exp(y) is a probability: close to 1, what is left of it by expm1"""
    return k.select(y > -0.7, (g - s) - expm1(k, y) * s, g - exp(k, y) * s)


# -- remainders -----------------------------------------------------------------------------------------------------------


def _fmod(k: Kernel, a: Value, b: Value) -> Value:
    """The remainder of |a| by |b|, exact: where the quotient has many digits, by multiples of |b| first"""
    x, y = abs(a), abs(b)

    def step(r: Value, by: Value) -> Value:
        left = k.fma(-k.trunc(r / by), by, r)
        return k.select(left < 0.0, left + by, left)  # the quotient was rounded up to a whole number

    r = k.var(f64, x, varying=x.varying or y.varying)
    many = (x / y >= 2.0**48) & (x < INF) & (y > 0.0)
    with k.when(k.any(many) if many.varying else many):
        for digits in (240, 192, 144, 96, 48):
            r.set(step(r.get(), y * 2.0**digits))
    last = step(r.get(), y)
    return k.select(y.eq(INF), k.select(x < INF, x, NAN), last)


@narrow
def fmod(k: Kernel, a: Value, b: Value) -> Value:
    """a - trunc(a/b) b, with the sign of a"""
    return k.copysign(_fmod(k, a, b), a)


@narrow
def remainder(k: Kernel, a: Value, b: Value) -> Value:
    """a - floor(a/b) b, with the sign of b"""
    m = k.copysign(_fmod(k, a, b), a)
    turned = ((b < 0.0) & (m > 0.0)) | ((b > 0.0) & (m < 0.0))
    return k.select(m.eq(0.0), k.copysign(_const(k, 0.0, a), b), k.select(turned, m + b, m))


@narrow
def floor_divide(k: Kernel, a: Value, b: Value) -> Value:
    """floor(a/b), from the exact remainder"""
    m = k.copysign(_fmod(k, a, b), a)
    turned = ((b < 0.0) & (m > 0.0)) | ((b > 0.0) & (m < 0.0))
    q = (a - m) / b - k.select(turned, 1.0, k.const(0.0, f64))
    q = k.select(q.eq(0.0), k.copysign(_const(k, 0.0, a), a / b), k.rint(q))
    return k.select(b.eq(0.0), a / b, q)


# -- plane geometry -------------------------------------------------------------------------------------------------------


@narrow
def hypot(k: Kernel, a: Value, b: Value) -> Value:
    """sqrt(a² + b²); infinite where one is, NaN or not beside it"""
    y = k.sqrt(k.fma(a, a, b * b))
    return k.select(abs(a).eq(INF), INF, k.select(abs(b).eq(INF), INF, y))


def _atan_unit(k: Kernel, t: Value) -> Value:
    """atan(t) on [0, 1]"""
    return t * _poly(k, t * t, _ATAN)


@narrow
def atan2(k: Kernel, y: Value, x: Value) -> Value:
    """The angle of the point (x, y)"""
    a, b = abs(y), abs(x)
    top, low = k.maximum(a, b), k.minimum(a, b)
    t = k.select(top.eq(0.0), 0.0, k.select(low.eq(INF), 1.0, low / top))
    r = _atan_unit(k, t)
    r = k.select(a > b, numbers.pi / 2 - r, r)
    r = k.select(k.copysign(_const(k, 1.0, x), x) < 0.0, numbers.pi - r, r)
    return k.select(x.ne(x), x, k.select(y.ne(y), y, k.copysign(r, y)))


# -- the inverse of the error function --------------------------------------------------------------------------------------


def _inverse_over(k: Kernel, w: Value) -> Value:
    """erfinv(x)/x as a function of w = -log(1 - x²)"""
    s = k.sqrt(w)
    far = k.select(s < 4.15, _poly(k, s - 3.2, _ERFINV_B), _poly(k, s - 7.2, _ERFINV_C))
    return k.select(w < 5.0, _poly(k, w - 2.5, _ERFINV_A), far)


@narrow
def erfinv(k: Kernel, x: Value) -> Value:
    """The inverse of erf: infinite at -1 and 1, NaN beyond"""
    y = x * _inverse_over(k, -log(k, (1.0 - x) * (x + 1.0)))
    y = k.select(abs(x).eq(1.0), k.copysign(_const(k, INF, x), x), y)
    return k.select(abs(x) <= 1.0, y, NAN)


@narrow
def ndtri(k: Kernel, p: Value) -> Value:
    """The inverse of the normal distribution function"""
    y = (p * 2.0 - 1.0) * 1.4142135623730951 * _inverse_over(k, -log(k, p * 4.0 * (1.0 - p)))
    y = k.select(p.eq(0.0), -INF, k.select(p.eq(1.0), INF, y))
    return k.select((p >= 0.0) & (p <= 1.0), y, NAN)


# -- the scaled complementary error function ----------------------------------------------------------------------------------

_INV_SQRT_PI = 0.5641895835477563


def _scaled_tail(k: Kernel, a: Value) -> Value:
    """exp(a²) erfc(a) for a >= 0, to the largest float32"""
    return k.select(a > 1e20, _INV_SQRT_PI / a, erfcx_right(k, a))


@narrow
def erfcx(k: Kernel, x: Value) -> Value:
    """exp(x²) erfc(x)"""
    y = _scaled_tail(k, abs(x))
    return k.select(x.ne(x), x, k.select(x < 0.0, exp(k, x * x) * 2.0 - y, y))


@narrow
def erfc_integral(k: Kernel, x: Value, n: int) -> Value:
    """1/sqrt(pi) - x erfcx(x), which is the n-th in its family for n = 1; far right by its series"""
    if n != 1:
        raise NotSupported
    y = _scaled_tail(k, abs(x))
    y = _INV_SQRT_PI - k.select(x < 0.0, exp(k, x * x) * 2.0 - y, y) * x
    far = x > 100.0
    r = 1.0 / k.select(far, x * x, 1.0)
    y = k.select(far, r * (0.5 - r * (0.75 - r * 1.875)) * _INV_SQRT_PI, y)
    return k.select(x.ne(x), x, y)


@narrow
def hazard(k: Kernel, x: Value) -> Value:
    """The density of the normal distribution over its distribution function"""
    scaled, e = _scaled_tail(k, abs(x) * 0.7071067811865476), exp(k, x * x * -0.5)
    right = e * 0.3989422804014327 / (1.0 - e * scaled * 0.5)
    return k.select(x.ne(x), x, k.select(x < 0.0, 0.7978845608028654 / scaled, right))


# -- the gamma function and its derivatives ---------------------------------------------------------------------------------

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)  # lgamma: of 1/z in 1/z²
_DIGAMMA = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760)  # of 1/z² in 1/z²; to the zero at 1.46
_TRIGAMMA = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66)  # of 1/z³ in 1/z²
_PAIRS = (0.0, 6.0, 10.0, 12.0)  # (x + i)(x + 7 - i) = x² + 7x + i (7 - i)


def _product(k: Kernel, t: Value) -> tuple[Value, Value, Value]:
    """p(t) = t (t + 6)(t + 10)(t + 12) and its first two derivatives; p(x² + 7x) is x (x + 1) ... (x + 7)"""
    c = (0.0, 720.0, 252.0, 28.0, 1.0)
    p = _poly(k, t, c)
    first = _poly(k, t, tuple(i * a for i, a in enumerate(c))[1:])
    second = _poly(k, t, tuple(i * (i - 1) * a for i, a in enumerate(c))[2:])
    return p, first, second


def _reflected(k: Kernel, x: Value) -> tuple[Value, Value, Value]:
    """x or 1 - x, whichever is right of 1/2; sin(pi x) up to its sign, and cos(pi x)/sin(pi x)"""
    left = x < 0.5
    f = x - k.rint(x)  # in [-1/2, 1/2]
    f2 = f * f
    s = f * _poly(k, f2, _SIN_PI)
    c = _poly(k, f2, _COS_PI)
    return k.select(left, 1.0 - x, x), s, c / s


_SIN_PI = tuple((-1) ** i * numbers.pi ** (2 * i + 1) / numbers.factorial(2 * i + 1) for i in range(10))
_COS_PI = tuple((-1) ** i * numbers.pi ** (2 * i) / numbers.factorial(2 * i) for i in range(10))


@narrow
def lgamma(k: Kernel, x: Value) -> Value:
    """log|Gamma(x)|; infinite at 0, -1, -2, ..."""
    a, s, _ = _reflected(k, x)
    near, small, left = (a > 0.78) & (a < 2.22), a < 1e12, x < 0.5
    u = k.select(near, a, 1.5) - 1.5
    close = k.fma(u, u, -0.25) * _poly(k, u, _LGAMMA)
    z = k.select(small, a + 8.0, a)
    w = 1.0 / z
    stirling = (z - 0.5) * log(k, z) - z + _HALF_LOG_TWO_PI + w * _poly(k, w * w, _STIRLING)
    b = k.select(small, a, 1.0)
    p = k.select(near | (a >= 1e12), 1.0, _product(k, b * (b + 7.0))[0])
    other = log(k, k.select(left, p * numbers.pi / abs(s), p))
    right = k.select(near, close, stirling)
    y = k.select(left, k.select(s.eq(0.0), INF, other - right), right - other)
    return k.select(abs(x).eq(INF), INF, k.select(x.ne(x), x, y))


@narrow
def digamma(k: Kernel, x: Value) -> Value:
    """lgamma'(x); at 0 infinite, with the sign turned, NaN at the negative integers"""
    a, _, cot = _reflected(k, x)
    b = k.select(a < 1e12, a, 1.0)
    p, first, _ = _product(k, b * (b + 7.0))
    z = a + 8.0
    w = 1.0 / z
    y = log(k, z) - w * 0.5 + w * w * _poly(k, w * w, _DIGAMMA) - k.select(a < 1e12, (b * 2.0 + 7.0) * first / p, 0.0)
    y = k.select(x < 0.5, y - cot * numbers.pi, y)
    pole = k.select(x.eq(0.0), k.copysign(_const(k, INF, x), -x), NAN)
    y = k.select((x <= 0.0) & k.rint(x).eq(x), pole, y)
    return k.select(x.eq(INF), INF, k.select(x.eq(-INF), NAN, k.select(x.ne(x), x, y)))


@narrow
def trigamma(k: Kernel, x: Value) -> Value:
    """digamma'(x); infinite at 0, -1, -2, ..."""
    a, s, _ = _reflected(k, x)
    b = k.select(a < 1e12, a, 1.0)
    p, first, second = _product(k, b * (b + 7.0))
    # The sum of 1/(x + i)² is -(log p)'' with p a function of t = x² + 7x.
    d, t1 = first / p, b * 2.0 + 7.0
    shift = t1 * t1 * (d * d - second / p) - d * 2.0
    z = a + 8.0
    w = 1.0 / z
    y = w + w * w * 0.5 + w * w * w * _poly(k, w * w, _TRIGAMMA) + k.select(a < 1e12, shift, 0.0)
    y = k.select(x < 0.5, numbers.pi**2 / (s * s) - y, y)
    y = k.select((x <= 0.0) & k.rint(x).eq(x), INF, y)
    return k.select(x.eq(INF), 0.0, k.select(x.eq(-INF), INF, k.select(x.ne(x), x, y)))


def polygamma(k: Kernel, x: Value, n: int) -> Value:
    """The n-th derivative of digamma, for n = 1"""
    if n != 1:
        raise NotSupported
    return trigamma(k, x)


FUNCTIONS: dict[str, Formula] = {
    f.__name__: f
    for f in (
        clamp, fmax, fmin, frac, nan_to_num, lerp, addcmul, addcdiv, logaddexp, logaddexp2, logit, xlogy, entr, fmod,
        remainder, floor_divide, hypot, atan2, erfinv, ndtri, lgamma, digamma, polygamma, erfcx, erfc_integral, hazard,
    )
}  # fmt: skip
FUNCTIONS["pow"] = power
FUNCTIONS["less_share"] = less_share
FUNCTIONS["clamp_min"] = maximum
FUNCTIONS["clamp_max"] = minimum
FUNCTIONS["maximum"] = maximum
FUNCTIONS["minimum"] = minimum
FUNCTIONS["floor"] = lambda k, x: k.floor(x)
FUNCTIONS["ceil"] = lambda k, x: k.ceil(x)
FUNCTIONS["trunc"] = lambda k, x: k.trunc(x)
FUNCTIONS["copysign"] = lambda k, a, b: k.copysign(a, b)
FUNCTIONS["deg2rad"] = lambda k, x: x * (numbers.pi / 180)
FUNCTIONS["rad2deg"] = lambda k, x: x * (180 / numbers.pi)
