"""Elementary functions in the loop language: a few ulp over the whole range, infinities, NaN, signed zeros and subnormals right.

Each is straight-line code on one value, so that a loop over it vectorises. Polynomials are near-minimax (Chebyshev) fits of the
function named beside them; the tests compare every function with mpmath. f32 and f64; 16-bit arguments arrive as f32.
"""

from __future__ import annotations

from dataclasses import dataclass

from .lang import DType, Kernel, Value, f32, f64, i32, i64

INF, NAN = float("inf"), float("nan")


@dataclass(frozen=True)
class _Format:
    """What the functions need to know of a floating-point format."""

    int_: DType
    mantissa: int
    bias: int
    magic: float  # adding it rounds to an integer, which then sits in the low bits
    ln2_hi: float  # n * ln2_hi is exact for every exponent n
    ln2_lo: float
    exp_min: float  # a factor of 1000 does not bring e**exp_min back
    exp_max: float
    tiny: float  # smallest normal number
    exp_q: tuple[float, ...]  # (exp(r) - 1 - r)/r² on |r| <= ln(2)/2
    log_r: tuple[float, ...]  # (2 atanh(s) - 2s)/s³ in s², for (1+s)/(1-s) in [sqrt(1/2), sqrt(2)]
    erf_p: tuple[float, ...]  # erf(x)/x - 1 in x², |x| <= 1
    erfcx_k: float
    erfcx_p: tuple[float, ...]  # (1 + 2x) exp(x²) erfc(x) in (x-k)/(x+k), x >= erfcx_min
    erfcx_min: float
    half_pi: tuple[float, float, float]
    sin_p: tuple[float, ...]  # (sin(r) - r)/r³ in r², |r| <= pi/4
    cos_p: tuple[float, ...]  # (cos(r) - 1 + r²/2)/r⁴ in r²
    trig_max: float  # beyond it the argument is reduced by the C library


_F32 = _Format(
    i32, 23, 127, 12582912.0, 0.693145751953125, 1.428606765330187e-06, -116.0, 89.0, 2.0**-126,
    exp_q=(0.5, 0.16666573286056519, 0.04166654869914055, 0.008363774046301842, 0.0013926926767453551),
    log_r=(0.6666666865348816, 0.4000012278556824, 0.28550779819488525, 0.23331613838672638),
    erf_p=(
        0.1283791670955126, -0.3761262595653534, 0.11283594369888306, -0.02685421146452427, 0.005189087241888046,
        -0.000801686430349946, 7.875874871388078e-05,
    ),
    erfcx_k=2.0,
    erfcx_p=(
        1.2769783735275269, -0.09276381880044937, -0.16603052616119385, 0.16405101120471954, -0.054217834025621414,
        -0.00803065113723278, 0.008709282614290714, 0.0012520764721557498, -0.001421653782017529, -0.00040035121492110193,
        0.00017048668814823031, 7.987508433870971e-05,
    ),
    erfcx_min=0.0,
    half_pi=(1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    sin_p=(-0.166666641831398, 0.008332724682986736, -0.00019582831009756774),
    cos_p=(0.0416666641831398, -0.0013888279208913445, 2.4542870960431173e-05),
    trig_max=65536.0,
)  # fmt: skip

_F64 = _Format(
    i64, 52, 1023, 6755399441055744.0, 0.693147180559663, 2.8235290563031577e-13, -758.0, 710.0, 2.0**-1022,
    exp_q=(
        0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326084, 0.0013888888888883711, 0.0001984126987500228,
        2.480158732567746e-05, 2.755725517000089e-06, 2.755727347871858e-07, 2.5105312729622103e-08, 2.09147553258932e-09,
    ),
    log_r=(
        0.6666666666666666, 0.40000000000000885, 0.28571428570799784, 0.22222222392581045, 0.18181795547521137,
        0.15386244737621665, 0.13268638369266825, 0.13088034850927555,
    ),
    erf_p=(
        0.1283791670955126, -0.3761263890318375, 0.11283791670954879, -0.026866170645076792, 0.0052239776248180145,
        -0.000854832698083379, 0.0001205533111164271, -1.4925595266831182e-05, 1.6461000484121368e-06,
        -1.6350312701054695e-07, 1.4659775274047436e-08, -1.1372848856791674e-09, 5.957176147748911e-11,
    ),
    erfcx_k=4.0,
    erfcx_p=(
        1.2329951186255526, -0.13962111684056253, 0.015379652102619027, 0.0680970542546948, -0.10103906603625375,
        0.09373283499828751, -0.06633036581360713, 0.03716751553818893, -0.01619773403826592, 0.0050319699756138135,
        -0.0007577734486762808, -0.00019925671345040716, 0.00015062249512264785, -2.4398983809134553e-05,
        -1.1224732247350099e-05, 5.708642804404816e-06, 2.9955790685566775e-07, -8.225595632060746e-07,
        6.70245283372925e-08, 1.0568025135821213e-07, -1.2224048303153483e-08, -1.0476718674669427e-08,
    ),
    erfcx_min=0.5,
    half_pi=(1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
    sin_p=(
        -0.16666666666666666, 0.008333333333333331, -0.00019841269841264567, 2.7557319218954762e-06,
        -2.505210610025599e-08, 1.6058510875319195e-10, -7.585486485235938e-13,
    ),
    cos_p=(
        0.041666666666666664, -0.0013888888888887241, 2.480158729853226e-05, -2.7557317151858866e-07,
        2.0876121534608454e-09, -1.1380868171449914e-11,
    ),
    trig_max=2.0**30,
)  # fmt: skip

_FORMATS = {f32: _F32, f64: _F64}


def _format(x: Value) -> _Format:
    assert x.dtype is not None
    return _FORMATS[x.dtype]


def _poly(k: Kernel, x: Value, c: tuple[float, ...]) -> Value:
    """c[0] + c[1] x + ... (Horner)"""
    assert x.dtype is not None
    y = k.const(c[-1], x.dtype)
    for a in reversed(c[:-1]):
        y = k.fma(y, x, a)
    return y


def _power_of_two(k: Kernel, n: Value, fmt: _Format, dtype: DType) -> Value:
    """2**n for n in the range of normal exponents."""
    return ((n + fmt.bias) << fmt.mantissa).bits(dtype)


def _reduce_exp(k: Kernel, x: Value, fmt: _Format) -> tuple[Value, Value]:
    """n and expm1(r) with x = n ln(2) + r, |r| <= ln(2)/2"""
    t = k.fma(x, 1.4426950408889634, fmt.magic)
    n = t.bits(fmt.int_) - k.const(fmt.magic, x.dtype).bits(fmt.int_)  # type: ignore[arg-type]
    nf = t - fmt.magic
    r = k.fma(-nf, fmt.ln2_lo, k.fma(-nf, fmt.ln2_hi, x))
    return n, k.fma(r * r, _poly(k, r, fmt.exp_q), r)


def exp(k: Kernel, x: Value, factor: Value | None = None) -> Value:
    """factor e**x (|factor| <= 1000), right also where e**x alone is subnormal"""
    fmt = _format(x)
    x = k.minimum(k.const(fmt.exp_max, x.dtype), k.maximum(k.const(fmt.exp_min, x.dtype), x))  # type: ignore[arg-type]
    n, p = _reduce_exp(k, x, fmt)
    half = n >> 1  # in two steps, so that subnormal results are rounded once
    y = p + 1.0 if factor is None else (p + 1.0) * factor
    return y * _power_of_two(k, half, fmt, x.dtype) * _power_of_two(k, n - half, fmt, x.dtype)  # type: ignore[arg-type]


def expm1(k: Kernel, x: Value) -> Value:
    """e**x - 1, accurate near 0"""
    fmt = _format(x)
    lo = -20.0 if x.dtype is f32 else -40.0
    y = k.minimum(k.const(fmt.exp_max, x.dtype), k.maximum(k.const(lo, x.dtype), x))  # type: ignore[arg-type]
    n, p = _reduce_exp(k, y, fmt)
    u = _power_of_two(k, n - 1, fmt, x.dtype)  # type: ignore[arg-type]
    y = k.fma(u, p, u - 0.5) * 2.0
    return k.select(abs(x) < 2.0**-60, x, y)


def _log_core(k: Kernel, x: Value, fmt: _Format, low: Value | None) -> Value:
    """log(x) + low for positive normal or subnormal x"""
    small = x < fmt.tiny
    x = k.select(small, x * 2.0**fmt.mantissa, x)
    bits = x.bits(fmt.int_)
    root = k.const(0.7071067811865476, x.dtype).bits(fmt.int_)  # type: ignore[arg-type]
    e = (bits - root) >> fmt.mantissa
    f = (bits - (e << fmt.mantissa)).bits(x.dtype) - 1.0  # type: ignore[arg-type]
    ef = e.to(x.dtype) - k.select(small, k.const(float(fmt.mantissa), x.dtype), 0.0)  # type: ignore[arg-type]
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    r = z * _poly(k, z, fmt.log_r)
    tail = k.fma(s, half + r, ef * fmt.ln2_lo if low is None else k.fma(ef, fmt.ln2_lo, low))
    return k.fma(ef, fmt.ln2_hi, f - (half - tail))


def log(k: Kernel, x: Value) -> Value:
    """Natural logarithm: -inf at 0, NaN below."""
    y = _log_core(k, x, _format(x), None)
    y = k.select(x < INF, y, x)  # inf and NaN stay
    return k.select(x > 0.0, y, k.select(x.eq(0.0), -INF, k.select(x < 0.0, NAN, x)))


def log1p(k: Kernel, x: Value) -> Value:
    """log(1 + x), accurate near 0"""
    u = x + 1.0
    lost = k.select(x < 1.0, x - (u - 1.0), 1.0 - (u - x))  # what rounding took from 1 + x
    y = _log_core(k, u, _format(x), lost / u)
    y = k.select(abs(x) < 2.0**-60, x, k.select(u < INF, y, x))
    return k.select(x > -1.0, y, k.select(x.eq(-1.0), -INF, k.select(x < -1.0, NAN, x)))


def tanh(k: Kernel, x: Value) -> Value:
    """(e**2x - 1)/(e**2x + 1)"""
    a = k.minimum(k.const(10.0 if x.dtype is f32 else 20.0, x.dtype), abs(x))  # type: ignore[arg-type]
    t = expm1(k, a + a)
    return k.copysign(t / (t + 2.0), x)


def sigmoid(k: Kernel, x: Value) -> Value:
    """1/(1 + e**-x), without overflow on either side"""
    e = exp(k, -abs(x))
    return k.select(x < 0.0, e, 1.0) / (e + 1.0)


def log_sigmoid(k: Kernel, x: Value) -> Value:
    """-log(1 + e**-x)"""
    return k.minimum(x, 0.0) - log1p(k, exp(k, -abs(x)))


def softplus(k: Kernel, x: Value) -> Value:
    """log(1 + e**x)"""
    return k.maximum(x, 0.0) + log1p(k, exp(k, -abs(x)))


def _exp_minus_square(k: Kernel, x: Value, scale: float) -> Value:
    """exp(-scale x²) with the rounding error of the square put back (scale: a power of two)"""
    hi = x * x
    lo = k.fma(x, x, -hi)
    e = exp(k, hi * -scale)
    return k.select(hi < INF, k.fma(e, lo * -scale, e), 0.0)


def _erfcx(k: Kernel, a: Value) -> Value:
    """exp(a²) erfc(a) for a >= 1/2, or for every a >= 0 where the format says so"""
    fmt = _format(a)
    a = k.minimum(k.const(1e30, a.dtype), a)  # type: ignore[arg-type]
    t = (a - fmt.erfcx_k) / (a + fmt.erfcx_k)
    return _poly(k, t, fmt.erfcx_p) / k.fma(a, 2.0, 1.0)


def _erf_small(k: Kernel, x: Value) -> Value:
    """erf(x) for |x| <= 1"""
    return k.fma(x, _poly(k, x * x, _format(x).erf_p), x)


def erf(k: Kernel, x: Value) -> Value:
    """2/sqrt(pi) times the integral of exp(-t²) from 0 to x"""
    a = abs(x)
    small = a < 1.0
    big = 1.0 - _exp_minus_square(k, a, 1.0) * _erfcx(k, a)
    y = k.select(small, _erf_small(k, k.select(small, x, 0.0)), k.copysign(big, x))
    return k.select(x.eq(x), y, x)


def erfc(k: Kernel, x: Value) -> Value:
    """1 - erf(x), accurate in the tail"""
    a = abs(x)
    tail = _exp_minus_square(k, a, 1.0) * _erfcx(k, a)
    y = k.select(a < 0.5, 1.0 - _erf_small(k, k.select(a < 0.5, x, 0.0)), k.select(x < 0.0, 2.0 - tail, tail))
    return k.select(x.eq(x), y, x)


def normal_cdf(k: Kernel, x: Value) -> tuple[Value, Value]:
    """The standard normal distribution function, accurate in the tail, and exp(-x²/2)"""
    e = _exp_minus_square(k, x, 0.5)
    z = x * 0.7071067811865476
    a = abs(z)
    tail = e * _erfcx(k, a) * 0.5
    if _format(x).erfcx_min == 0.0:
        return k.select(x < 0.0, tail, 1.0 - tail), e
    small = a < 0.5
    centre = k.fma(_erf_small(k, k.select(small, z, 0.0)), 0.5, 0.5)
    return k.select(small, centre, k.select(x < 0.0, tail, 1.0 - tail)), e


def _trig(k: Kernel, x: Value, shift: int, name: str) -> Value:
    """sin(x + shift pi/2) for |x| <= trig_max; beyond, lane by lane, from the C library"""
    fmt = _format(x)
    inside = abs(x) <= fmt.trig_max
    a = k.select(inside, x, 0.0)
    t = k.fma(a, 0.6366197723675814, fmt.magic)
    q = t.bits(fmt.int_) + shift
    nf = t - fmt.magic
    r = k.fma(-nf, fmt.half_pi[2], k.fma(-nf, fmt.half_pi[1], k.fma(-nf, fmt.half_pi[0], a)))
    z = r * r
    s = k.fma(r * z, _poly(k, z, fmt.sin_p), r)
    c = k.fma(z * z, _poly(k, z, fmt.cos_p), k.fma(z, -0.5, 1.0))
    y = k.select((q & 1).eq(0), s, c)
    y = k.select((q & 2).eq(0), y, -y)
    if shift == 0:
        y = k.select(a.eq(0.0), a, y)
    out = k.var(x.dtype, y, varying=x.varying)  # type: ignore[arg-type]
    far = abs(x) > fmt.trig_max
    with k.when(k.any(far) if x.varying else far):
        out.set(k.select(inside, y, k.libm(name, x)))
    return k.select(x.eq(x), out.get(), x)


def sin(k: Kernel, x: Value) -> Value:
    """Sine, of any finite argument; NaN at the infinities."""
    return _trig(k, x, 0, "sin")


def cos(k: Kernel, x: Value) -> Value:
    """Cosine, of any finite argument; NaN at the infinities."""
    return _trig(k, x, 1, "cos")


def rsqrt(k: Kernel, x: Value) -> Value:
    """1/sqrt(x)"""
    return 1.0 / k.sqrt(x)


def gelu(k: Kernel, x: Value) -> Value:
    """x P(X <= x) for a standard normal X"""
    p, e = normal_cdf(k, x)
    # On the left the bell is multiplied last: it may be subnormal, the rest is near 0.4.
    left = e * (x * (_erfcx(k, abs(x * 0.7071067811865476)) * 0.5))
    return k.select(x.eq(-INF), -0.0, k.select(x < -1.0, left, x * p))


def gelu_derivative(k: Kernel, x: Value) -> Value:
    """P(X <= x) + x exp(-x²/2)/sqrt(2 pi)"""
    p, e = normal_cdf(k, x)
    z = k.select(e > 0.0, x, 0.0)
    left = e * k.fma(z, 0.3989422804014327, _erfcx(k, abs(x * 0.7071067811865476)) * 0.5)
    return k.select(x < -1.0, left, k.fma(z * 0.3989422804014327, e, p))


_GELU_TANH = (0.7978845608028654, 0.044715)


def gelu_tanh(k: Kernel, x: Value) -> Value:
    """x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x³))), written as x sigmoid(2 u)"""
    u = _GELU_TANH[0] * k.fma(x * x * x, _GELU_TANH[1], x)
    return k.select(x.eq(-INF), -0.0, x * sigmoid(k, u + u))


def gelu_tanh_derivative(k: Kernel, x: Value) -> Value:
    """s + 2 x s (1 - s) u', with s = sigmoid(2 u)"""
    u = _GELU_TANH[0] * k.fma(x * x * x, _GELU_TANH[1], x)
    s, t = sigmoid(k, u + u), sigmoid(k, -(u + u))
    du = k.fma(x * x, 3 * _GELU_TANH[0] * _GELU_TANH[1], _GELU_TANH[0])
    flat = (s * t).eq(0.0)
    return k.select(flat, s, s + 2.0 * x * s * t * du)


def silu(k: Kernel, x: Value) -> Value:
    """x sigmoid(x)"""
    left, d = x_times_exp(k, x), exp(k, -abs(x)) + 1.0
    return k.select(x.eq(-INF), -0.0, k.select(x < 0.0, left, x) / d)


def x_times_exp(k: Kernel, x: Value) -> Value:
    """x exp(-|x|) for x <= 0"""
    return exp(k, -abs(x), k.maximum(k.const(-1000.0, x.dtype), x))  # type: ignore[arg-type]


def silu_derivative(k: Kernel, x: Value) -> Value:
    """s (1 + x (1 - s)), with s = sigmoid(x)"""
    e = exp(k, -abs(x))
    d = e + 1.0
    # Left e**x (x + 1 + e**x) / d**2: at the minimum, near -1.28, x + 1 is exact, and far out the product is rounded once.
    z = k.maximum(k.const(-1000.0, x.dtype), x)  # type: ignore[arg-type]
    left = exp(k, -abs(x), z + 1.0 + e) / (d * d) + 0.0  # 0 at -inf, not -0
    right = k.fma(k.select(e > 0.0, x, 0.0) * e, 1.0 / d, 1.0) / d
    return k.select(x < 0.0, left, right)


FUNCTIONS = {
    f.__name__: f
    for f in (
        exp, expm1, log, log1p, tanh, sigmoid, log_sigmoid, softplus, erf, erfc, sin, cos, rsqrt, gelu, gelu_derivative,
        gelu_tanh, gelu_tanh_derivative, silu, silu_derivative,
    )
}  # fmt: skip
FUNCTIONS["sqrt"] = lambda k, x: k.sqrt(x)
