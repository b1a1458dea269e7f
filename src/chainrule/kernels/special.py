"""Special functions and accurate slopes in the loop language. As in `math`, the tests compare every one with mpmath."""

from __future__ import annotations

from .lang import DType, Kernel, Value, f32
from .math import (
    _erf_small,
    _erfcx,
    _exp_minus_square,
    _format,
    _poly,
    exp,
    log,
    log1p,
    normal_cdf,
    tanh,
    x_times_exp,
)  # fmt: skip

# (x - tanh(x))/x³ in x², |x| <= 1.1
_SHRINK = {
    32: (0.3333333134651184, -0.13333266973495483, 0.05395646020770073, -0.021788517013192177, 0.008583045564591885,
         -0.0030424310825765133, 0.0008070681942626834, -0.00011044531129300594),
    64: (0.3333333333333333, -0.13333333333333303, 0.05396825396822559, -0.02186948853514754, 0.008863235510970152,
         -0.00359212781933908, 0.0014558327297988388, -0.0005900185605352732, 0.0002390944213943405, -9.681398179803085e-05,
         3.905260115246625e-05, -1.5531500809013306e-05, 5.934923184991773e-06, -2.0759948758530103e-06,
         6.181518900734351e-07, -1.4196176352273447e-07, 2.1717785702451332e-08, -1.6258990457364146e-09),
}  # fmt: skip
# (sin(pi m)/m - pi)/m² in m², |m| <= 1/2
_SINPI = {
    32: (-5.167712688446045, 2.550163984298706, -0.5992589592933655, 0.08208367228507996, -0.007084376644343138),
    64: (-5.16771278004997, 2.5501640398773455, -0.599264529320791, 0.08214588661108452, -0.007370430944815148,
         0.0004663027953732641, -2.19152828364736e-05, 7.949255930925136e-07, -2.2349219540136354e-08),
}  # fmt: skip
# sinc'(x)/x in x², |x| <= 1/2
_SINC_SLOPE = {
    32: (-3.289868116378784, 3.246969699859619, -1.1445107460021973, 0.20918019115924835, -0.023440716788172722, 0.0017092771595343947),
    64: (-3.289868133696453, 3.2469697011334144, -1.1445109447325053, 0.2091827825412377, -0.023460810354539764,
         0.0017811455160969443, -9.766222875399631e-05, 4.0499337173753925e-06, -1.314366917986631e-07, 3.3421451610804613e-09),
}  # fmt: skip
_PI = {32: (3.1415927410125732, -8.742278000372485e-08), 64: (3.141592653589793, 1.2246467991473532e-16)}


def _bits(x: Value) -> int:
    return 32 if x.dtype is f32 else 64


def _dtype(x: Value) -> DType:
    assert x.dtype is not None
    return x.dtype


# -- slopes from the argument: what is left of them where the function has saturated ------------------------------------


def sech2(k: Kernel, x: Value) -> Value:
    """tanh'(x) = 4 e / (1 + e)² with e = exp(-2|x|)"""
    e = exp(k, -(abs(x) * 2.0), k.const(4.0, _dtype(x)))
    d = k.fma(e, 0.25, 1.0)
    return e / (d * d)


def sigmoid_slope(k: Kernel, x: Value) -> Value:
    """e / (1 + e)² with e = exp(-|x|)"""
    e = exp(k, -abs(x))
    return e / ((e + 1.0) * (e + 1.0))


def mish(k: Kernel, x: Value) -> Value:
    """x tanh(log(1 + e**x)) = x u (u + 2) / (u (u + 2) + 2) with u = e**x"""
    u = exp(k, -abs(x))
    left = x_times_exp(k, x) * (u + 2.0) / k.fma(u, u + 2.0, 2.0)
    v = k.fma(u, 2.0, 1.0)  # with u = e**-x
    right = x * (v / k.fma(u * 2.0, u, v))
    return k.select(x < 0.0, left, right)


def mish_slope(k: Kernel, x: Value) -> Value:
    """w + x sigmoid(x) (1 - w²) with w = tanh(log(1 + e**x)), all of it in u = exp(-|x|)"""
    u = exp(k, -abs(x))
    z = k.select(u > 0.0, x, 0.0)
    d = k.fma(u, u + 2.0, 2.0)
    left = k.fma(x_times_exp(k, x) * 4.0, (u + 1.0) / d, u * (u + 2.0)) / d
    v = k.fma(u, 2.0, 1.0)
    d = k.fma(u * 2.0, u, v)
    right = k.fma(z * 4.0 * u, u * (u + 1.0) / d, v) / d
    return k.select(x < 0.0, left, right)


def tanhshrink(k: Kernel, x: Value) -> Value:
    """x - tanh(x), without cancellation near 0"""
    near = abs(x) < 1.1
    z = k.select(near, x, 0.0)
    z2 = z * z
    return k.select(near, z * (z2 * _poly(k, z2, _SHRINK[_bits(x)])), x - tanh(k, x))


# -- the normal distribution --------------------------------------------------------------------------------------------


def bell(k: Kernel, x: Value, scale: float) -> Value:
    """exp(-scale x²), scale a power of two"""
    return k.select(x.eq(x), _exp_minus_square(k, x, scale), x)


def erfcx(k: Kernel, a: Value) -> Value:
    """exp(a²) erfc(a) for a >= 0"""
    y = _erfcx(k, a)
    if _format(a).erfcx_min > 0.0:
        z = k.minimum(a, 0.5)
        y = k.select(a < 0.5, (1.0 - _erf_small(k, z)) / _exp_minus_square(k, z, 1.0), y)
    return y


def ndtr(k: Kernel, x: Value) -> Value:
    """P(X <= x) for a standard normal X"""
    return normal_cdf(k, x)[0]


def log_ndtr(k: Kernel, x: Value) -> Value:
    """log P(X <= x)"""
    z = x * 0.7071067811865476
    a = abs(z)
    e, scaled = _exp_minus_square(k, x, 0.5), _erfcx(k, a) * 0.5
    left = k.fma(x * -0.5, x, log(k, scaled))
    right = log1p(k, -(e * scaled))
    y = k.select(x < 0.0, left, right)
    if _format(x).erfcx_min > 0.0:
        small = a < 0.5
        y = k.select(small, log(k, k.fma(_erf_small(k, k.select(small, z, 0.0)), 0.5, 0.5)), y)
    return k.select(x.eq(x), y, x)


# -- the gamma function -------------------------------------------------------------------------------------------------


def lgamma(k: Kernel, x: Value) -> Value:
    """log|Gamma(x)|, by the C library: it is right beside its zeros, on both sides of 0"""
    return k.libm("lgamma", x)


# -- sin(pi x) / (pi x) -------------------------------------------------------------------------------------------------


def _sinpi(k: Kernel, m: Value) -> Value:
    """sin(pi m) for 0 <= m <= 1/2"""
    hi, lo = _PI[_bits(m)]
    m2 = m * m
    return k.fma(m, hi, m * k.fma(m2, _poly(k, m2, _SINPI[_bits(m)]), lo))


def _half_turn(k: Kernel, a: Value) -> tuple[Value, Value]:
    """sin(pi a) and cos(pi a) for a >= 0, from the exact distance to the nearest integer"""
    r = a - k.rint(a * 0.5) * 2.0
    m = k.minimum(abs(r), 1.0 - abs(r))
    c = _sinpi(k, 0.5 - m)
    return k.copysign(_sinpi(k, m), r), k.select(abs(r) > 0.5, -c, c)


def sinc(k: Kernel, x: Value) -> Value:
    """sin(pi x)/(pi x), 1 at 0 and exactly 0 at the other integers; NaN at the infinities, as the sine"""
    a = abs(x)
    return k.select(a < 1e-30, 1.0, _half_turn(k, a)[0] / (a * _PI[_bits(x)][0]))


def sinc_slope(k: Kernel, x: Value) -> Value:
    """(cos(pi x) - sinc(x))/x, near 0 by a polynomial"""
    a = abs(x)
    near = a <= 0.5
    z = k.select(near, x, 0.0)
    s, c = _half_turn(k, a)
    far = (c - s / (a * _PI[_bits(x)][0])) / a
    return k.select(near, z * _poly(k, z * z, _SINC_SLOPE[_bits(x)]), k.select(x < 0.0, -far, far))
