"""The functions that are measured: exact values and slopes in mpmath, where to look, the same function elsewhere.

Slopes are written so that they keep their digits where the function itself has saturated; a difference quotient would not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]

INF = float("inf")
ALL = (-INF, INF)
POSITIVE = (0.0, INF)


@dataclass(frozen=True)
class Function:
    """A function of one argument, or of two: `spans` are where each is looked at, `near` the points where it is hard."""

    name: str
    value: Callable[..., Any]
    slopes: tuple[Callable[..., Any] | None, ...]
    spans: tuple[tuple[float, float], ...]
    near: tuple[float, ...] = ()
    family: str = "elementary"
    torch: str = ""  # the name there, where it is another one; "-" for none
    scipy: str = ""  # a name of scipy.special; "np.sin" of NumPy; "-" for none
    before: tuple[Any, ...] = ()  # arguments in front of the tensors: the order of polygamma
    after: tuple[Any, ...] = ()


TABLE: dict[str, Function] = {}


def _add(name: str, value: Any, slope: Any, *spans: tuple[float, float], label: str = "", **kw: Any) -> None:
    slopes = slope if isinstance(slope, tuple) else (slope,)
    TABLE[label or name] = Function(name, value, slopes, spans or (ALL,), **kw)


# -- exact helpers ----------------------------------------------------------------------------------------------------


def _sech2(x: Any) -> Any:
    e = mp.exp(-2 * abs(x))
    return 4 * e / (1 + e) ** 2


def sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x)) if x >= 0 else mp.exp(x) / (1 + mp.exp(x))


def _sigmoid_slope(x: Any) -> Any:
    e = mp.exp(-abs(x))
    return e / (1 + e) ** 2


def density(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def cdf(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _quantile(p: Any) -> Any:
    from scipy.special import ndtri

    # Newton from SciPy's value doubles the digits with every step.
    x = mp.mpf(float(ndtri(float(p))))
    for _ in range(4):
        x -= (cdf(x) - p) / density(x)
    return x


def _erfinv(x: Any) -> Any:
    from scipy.special import erfinv

    y = mp.mpf(float(erfinv(float(x))))
    if abs(x) < mp.mpf("1e-40"):
        return x * mp.sqrt(mp.pi) / 2
    for _ in range(4):
        rest = mp.erf(y) - x if abs(x) < 0.5 else (1 - x) - mp.erfc(y) if x > 0 else mp.erfc(-y) - (1 + x)
        y -= rest * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return y


def _sinc_slope(x: Any) -> Any:
    z = mp.pi * x
    if abs(x) < mp.mpf("1e-12"):
        return -mp.pi * z / 3 * (1 - z * z / 10)
    return (mp.cospi(x) - mp.sincpi(x)) / x


def _spherical_slope(x: Any) -> Any:
    return -x / 3 * (1 - x * x / 10) if abs(x) < mp.mpf("1e-12") else (mp.cos(x) - mp.sin(x) / x) / x


def _gelu_tanh_inner(x: Any) -> Any:
    return 2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)


def _gelu_tanh_slope(x: Any) -> Any:
    u = _gelu_tanh_inner(x)
    return sigmoid(u) + x * _sigmoid_slope(u) * 2 * mp.sqrt(2 / mp.pi) * (1 + 3 * mp.mpf("0.044715") * x * x)


def _softplus(x: Any) -> Any:
    return max(x, mp.mpf(0)) + mp.log1p(mp.exp(-abs(x)))


def _mish_slope(x: Any) -> Any:
    s = _softplus(x)
    return mp.tanh(s) + x * sigmoid(x) * _sech2(s)


def _tanhshrink(x: Any) -> Any:
    return x**3 * (mp.mpf(1) / 3 - 2 * x * x / 15) if abs(x) < mp.mpf("1e-10") else x - mp.tanh(x)


def _bessel_ie(n: int) -> Any:
    return lambda x: mp.besseli(n, x) * mp.exp(-abs(x))


def _bessel_ke(n: int) -> Any:
    return lambda x: mp.besselk(n, x) * mp.exp(x)


def _i0e_slope(x: Any) -> Any:
    return (mp.besseli(1, abs(x)) - mp.besseli(0, x)) * mp.exp(-abs(x)) * mp.sign(x)


def _i1e_slope(x: Any) -> Any:
    a = abs(x)
    return ((mp.besseli(0, a) + mp.besseli(2, a)) / 2 - mp.besseli(1, a)) * mp.exp(-a)


def _difference(f: Any) -> Any:
    """The slope by central differences in three times the digits; for functions that nowhere saturate."""

    def slope(*xs: Any, i: int) -> Any:
        with mp.workprec(mp.mp.prec * 3):
            h = (abs(xs[i]) if xs[i] else mp.mpf(1)) * mp.mpf(2) ** (-mp.mp.prec // 3)
            up, down = ([x + (s * h if j == i else 0) for j, x in enumerate(xs)] for s in (1, -1))
            return (f(*up) - f(*down)) / (2 * h)

    return slope


# -- elementary -------------------------------------------------------------------------------------------------------

_LN2 = lambda: mp.log(2)
_add("exp", mp.exp, mp.exp, (-750, 712), scipy="np.exp")
_add("exp2", lambda x: mp.power(2, x), lambda x: mp.power(2, x) * _LN2(), (-1080, 1026), scipy="np.exp2")
_add("expm1", mp.expm1, mp.exp, (-750, 712), scipy="np.expm1")
_add("log", mp.log, lambda x: 1 / x, POSITIVE, near=(1.0,), scipy="np.log")
_add("log2", lambda x: mp.log(x) / _LN2(), lambda x: 1 / (x * _LN2()), POSITIVE, near=(1.0,), scipy="np.log2")
_add("log10", mp.log10, lambda x: 1 / (x * mp.log(10)), POSITIVE, near=(1.0,), scipy="np.log10")
_add("log1p", mp.log1p, lambda x: 1 / (1 + x), (-1.0, INF), scipy="np.log1p")
_add("sqrt", mp.sqrt, lambda x: 1 / (2 * mp.sqrt(x)), POSITIVE, scipy="np.sqrt")
_add("rsqrt", lambda x: 1 / mp.sqrt(x), lambda x: -1 / (2 * x * mp.sqrt(x)), POSITIVE, scipy="-")
_add("reciprocal", lambda x: 1 / x, lambda x: -1 / (x * x), scipy="np.reciprocal")
_add("square", lambda x: x * x, lambda x: 2 * x, scipy="np.square")
_add("sin", mp.sin, mp.cos, scipy="np.sin")
_add("cos", mp.cos, lambda x: -mp.sin(x), scipy="np.cos")
_add("tan", mp.tan, lambda x: 1 / mp.cos(x) ** 2, scipy="np.tan")
_add("asin", mp.asin, lambda x: 1 / mp.sqrt((1 - x) * (1 + x)), (-1, 1), scipy="np.arcsin")
_add("acos", mp.acos, lambda x: -1 / mp.sqrt((1 - x) * (1 + x)), (-1, 1), scipy="np.arccos")
_add("atan", mp.atan, lambda x: 1 / (1 + x * x), scipy="np.arctan")
_add("sinh", mp.sinh, mp.cosh, (-712, 712), scipy="np.sinh")
_add("cosh", mp.cosh, mp.sinh, (-712, 712), scipy="np.cosh")
_add("tanh", mp.tanh, _sech2, (-380, 380), scipy="np.tanh")
_add("asinh", mp.asinh, lambda x: 1 / mp.sqrt(x * x + 1), scipy="np.arcsinh")
_add("acosh", mp.acosh, lambda x: 1 / mp.sqrt((x - 1) * (x + 1)), (1, INF), scipy="np.arccosh")
_add("atanh", mp.atanh, lambda x: 1 / ((1 - x) * (1 + x)), (-1, 1), scipy="np.arctanh")
_add("sigmoid", sigmoid, _sigmoid_slope, (-750, 750), scipy="expit")
_add("rad2deg", lambda x: x * 180 / mp.pi, lambda x: 180 / mp.pi, scipy="np.rad2deg")
_add("deg2rad", lambda x: x * mp.pi / 180, lambda x: mp.pi / 180, scipy="np.deg2rad")
for _n in (-2, 3, 7):
    _add(
        "pow",
        lambda x, n=_n: x**n,
        lambda x, n=_n: n * x ** (n - 1),
        label=f"pow(x, {_n})",
        scipy="np.power",
        after=(_n,),
    )

# -- special ----------------------------------------------------------------------------------------------------------


def _special(name: str, value: Any, slope: Any, *spans: Any, **kw: Any) -> None:
    _add(f"special.{name}", value, slope, *spans, label=kw.pop("label", name), family="special", **kw)


_C = lambda: 2 / mp.sqrt(mp.pi)
_special("erf", mp.erf, lambda x: _C() * mp.exp(-x * x), (-28, 28))
_special("erfc", mp.erfc, lambda x: -_C() * mp.exp(-x * x), (-28, 28))
_special("erfcx", lambda x: mp.exp(x * x) * mp.erfc(x), lambda x: 2 * x * mp.exp(x * x) * mp.erfc(x) - _C(), (-26, 1e8))
_special("erfinv", _erfinv, lambda x: mp.exp(_erfinv(x) ** 2) / _C(), (-1, 1))
_special("ndtr", cdf, density, (-39, 39))
_special("ndtri", _quantile, lambda p: 1 / density(_quantile(p)), (0, 1))
_special(
    "log_ndtr",
    lambda x: mp.log(cdf(x)) if x < 1 else mp.log1p(-cdf(-x)),
    lambda x: density(x) / cdf(x),
    (-1e6, 39),
)
_special(
    "gammaln", lambda x: mp.re(mp.loggamma(x)), lambda x: mp.psi(0, x), (-20, 30), POSITIVE, near=(1, 2), label="lgamma"
)
_special("digamma", lambda x: mp.psi(0, x), lambda x: mp.psi(1, x), (-20, 30), POSITIVE, near=(1.4616321449683623,))
for _n in (1, 2, 4):
    _special(
        "polygamma", lambda x, n=_n: mp.psi(n, x), lambda x, n=_n: mp.psi(n + 1, x), (-15, 30), (1e-30, 1e30),
        label=f"polygamma({_n}, x)", before=(_n,),
    )  # fmt: skip
_special(
    "multigammaln",
    lambda x: mp.mpf(3) / 2 * mp.log(mp.pi) + sum(mp.loggamma(x - mp.mpf(j) / 2) for j in range(3)),
    lambda x: sum(mp.psi(0, x - mp.mpf(j) / 2) for j in range(3)),
    (1, 1e6), label="mvlgamma(x, 3)", after=(3,),
)  # fmt: skip
_special("sinc", mp.sincpi, _sinc_slope, (-30, 30), (-1e6, 1e6), (-1e-3, 1e-3), scipy="np.sinc")
_special("entr", lambda x: -x * mp.log(x), lambda x: -1 - mp.log(x), POSITIVE, near=(1.0, 0.36787944117144233))
_special("logit", lambda x: mp.log(x / (1 - x)), lambda x: 1 / (x * (1 - x)), (0, 1), near=(0.5,))
_special("i0", lambda x: mp.besseli(0, x), lambda x: mp.besseli(1, x), (-715, 715))
_special("i1", lambda x: mp.besseli(1, x), lambda x: (mp.besseli(0, x) + mp.besseli(2, x)) / 2, (-715, 715))
_special("i0e", _bessel_ie(0), _i0e_slope, (-30, 30), (-1e4, 1e4))
_special("i1e", _bessel_ie(1), _i1e_slope, (-30, 30), (-1e4, 1e4))
_special("bessel_j0", lambda x: mp.besselj(0, x), lambda x: -mp.besselj(1, x), (-50, 50), (-1e5, 1e5), scipy="j0")
_special(
    "bessel_j1",
    lambda x: mp.besselj(1, x),
    lambda x: (mp.besselj(0, x) - mp.besselj(2, x)) / 2,
    (-50, 50), (-1e5, 1e5), scipy="j1",
)  # fmt: skip
_special("bessel_y0", lambda x: mp.bessely(0, x), lambda x: -mp.bessely(1, x), (0, 50), (1e-30, 1e5), scipy="y0")
_special(
    "bessel_y1",
    lambda x: mp.bessely(1, x),
    lambda x: (mp.bessely(0, x) - mp.bessely(2, x)) / 2,
    (0, 50), (1e-30, 1e5), scipy="y1",
)  # fmt: skip
for _n, _k in ((0, "k0"), (1, "k1")):
    _special(
        f"modified_bessel_{_k}", lambda x, n=_n: mp.besselk(n, x),
        lambda x, n=_n: -mp.besselk(1, x) if n == 0 else -(mp.besselk(0, x) + mp.besselk(2, x)) / 2,
        (0, 50), (1e-30, 745), scipy=_k,
    )  # fmt: skip
_special(
    "scaled_modified_bessel_k0",
    _bessel_ke(0),
    lambda x: (mp.besselk(0, x) - mp.besselk(1, x)) * mp.exp(x),
    (0, 50), (1e-30, 1e6), scipy="k0e",
)  # fmt: skip
_special(
    "scaled_modified_bessel_k1",
    _bessel_ke(1),
    lambda x: (mp.besselk(1, x) - (mp.besselk(0, x) + mp.besselk(2, x)) / 2) * mp.exp(x),
    (0, 50), (1e-30, 1e6), scipy="k1e",
)  # fmt: skip
_special("spherical_bessel_j0", mp.sinc, _spherical_slope, (-30, 30), (-1e6, 1e6), scipy="-")
_special("airy_ai", mp.airyai, lambda x: mp.airyai(x, derivative=1), (-20, 20), (-1e3, 106), scipy="-")

# -- activations ------------------------------------------------------------------------------------------------------


def _activation(name: str, value: Any, slope: Any, *spans: Any, **kw: Any) -> None:
    _add(
        f"nn.functional.{name}", value, slope, *spans, label=kw.pop("label", name), family="activation", scipy="-", **kw
    )


_activation("gelu", lambda x: x * cdf(x), lambda x: cdf(x) + x * density(x), (-40, 40), (-6, 6))
_activation(
    "gelu",
    lambda x: x * sigmoid(_gelu_tanh_inner(x)),
    _gelu_tanh_slope,
    (-22, 22),
    (-6, 6),
    label="gelu(tanh)",
    after=("tanh",),
)
_activation("silu", lambda x: x * sigmoid(x), lambda x: sigmoid(x) * (1 + x * sigmoid(-x)), (-760, 760), (-10, 10))
_activation("mish", lambda x: x * mp.tanh(_softplus(x)), _mish_slope, (-760, 760), (-10, 10))
_activation(
    "softplus",
    lambda x: x if x > 20 else _softplus(x),
    lambda x: mp.mpf(1) if x > 20 else sigmoid(x),
    (-750, 750),
    (-30, 30),
)
_activation("logsigmoid", lambda x: -_softplus(-x), lambda x: sigmoid(-x), (-750, 750), (-30, 30))
_activation(
    "elu", lambda x: x if x > 0 else mp.expm1(x), lambda x: mp.mpf(1) if x > 0 else mp.exp(x), (-750, 10), (-5, 5)
)
_activation(
    "celu",
    lambda x: x if x > 0 else mp.mpf(1.5) * mp.expm1(x / mp.mpf(1.5)),
    lambda x: mp.mpf(1) if x > 0 else mp.exp(x / mp.mpf(1.5)),
    (-1100, 10), (-5, 5), label="celu(x, 1.5)", after=(1.5,),
)  # fmt: skip
_SELU = (mp.mpf("1.6732632423543772848170429916717"), mp.mpf("1.0507009873554804934193349852946"))
_activation(
    "selu",
    lambda x: _SELU[1] * (x if x > 0 else _SELU[0] * mp.expm1(x)),
    lambda x: _SELU[1] if x > 0 else _SELU[1] * _SELU[0] * mp.exp(x),
    (-750, 10), (-5, 5),
)  # fmt: skip
_activation("softsign", lambda x: x / (1 + abs(x)), lambda x: 1 / (1 + abs(x)) ** 2)
_activation("tanhshrink", _tanhshrink, lambda x: mp.tanh(x) ** 2, (-30, 30), (-1, 1))
_activation(
    "hardswish",
    lambda x: x * min(max(x + 3, mp.mpf(0)), mp.mpf(6)) / 6,
    lambda x: mp.mpf(0) if x < -3 else mp.mpf(1) if x > 3 else (2 * x + 3) / 6,
    (-10, 10), near=(-3,),
)  # fmt: skip
_activation(
    "hardsigmoid",
    lambda x: min(max(x + 3, mp.mpf(0)), mp.mpf(6)) / 6,
    lambda x: mp.mpf(1) / 6 if -3 < x < 3 else mp.mpf(0),
    (-10, 10), near=(-3,),
)  # fmt: skip

# -- two arguments ----------------------------------------------------------------------------------------------------


def _two(name: str, value: Any, slopes: tuple[Any, Any], *spans: Any, **kw: Any) -> None:
    _add(name, value, slopes, *spans, family="two arguments", label=kw.pop("label", name.split(".")[-1]), **kw)


def _log_sum(a: Any, b: Any) -> Any:
    return max(a, b) + mp.log1p(mp.exp(-abs(a - b)))


_two(
    "pow",
    mp.power,
    (lambda a, b: b * mp.power(a, b - 1), lambda a, b: mp.power(a, b) * mp.log(a)),
    (1e-20, 1e20),
    (-15, 15),
    scipy="np.power",
)
_two(
    "atan2",
    mp.atan2,
    (lambda a, b: b / (a * a + b * b), lambda a, b: -a / (a * a + b * b)),
    (-1e3, 1e3),
    (-1e3, 1e3),
    scipy="np.arctan2",
)
_two(
    "hypot",
    mp.hypot,
    (lambda a, b: a / mp.hypot(a, b), lambda a, b: b / mp.hypot(a, b)),
    (-1e3, 1e3),
    (-1e3, 1e3),
    scipy="np.hypot",
)
_two(
    "special.xlogy",
    lambda a, b: a * mp.log(b),
    (lambda a, b: mp.log(b), lambda a, b: a / b),
    (-1e3, 1e3),
    (1e-30, 1e30),
    near=(1.0,),
)
_two(
    "special.xlog1py",
    lambda a, b: a * mp.log1p(b),
    (lambda a, b: mp.log1p(b), lambda a, b: a / (1 + b)),
    (-1e3, 1e3),
    (-1.0, 1e30),
)
_two(
    "logaddexp", _log_sum, (lambda a, b: sigmoid(a - b), lambda a, b: sigmoid(b - a)), (-30, 30), (-30, 30), scipy="np.logaddexp",
)  # fmt: skip
_two(
    "logaddexp2",
    lambda a, b: _log_sum(a * _LN2(), b * _LN2()) / _LN2(),
    (lambda a, b: sigmoid((a - b) * _LN2()), lambda a, b: sigmoid((b - a) * _LN2())),
    (-40, 40), (-40, 40), scipy="np.logaddexp2",
)  # fmt: skip
_two(
    "special.zeta", mp.zeta, (lambda s, q: mp.zeta(s, q, 1), lambda s, q: -s * mp.zeta(s + 1, q)), (1.01, 40), (0.1, 40)
)
_two(
    "special.gammainc",
    lambda a, x: mp.gammainc(a, 0, x, regularized=True),
    (
        lambda a, x: _difference(lambda a, x: mp.gammainc(a, 0, x, regularized=True))(a, x, i=0),
        lambda a, x: mp.exp((a - 1) * mp.log(x) - x) / mp.gamma(a),
    ),
    (0.05, 60), (0.05, 90), label="igamma",
)  # fmt: skip
_two(
    "special.gammaincc",
    lambda a, x: mp.gammainc(a, x, regularized=True),
    (None, lambda a, x: -mp.exp((a - 1) * mp.log(x) - x) / mp.gamma(a)),
    (0.05, 60), (0.05, 90), label="igammac",
)  # fmt: skip

# -- polynomials ------------------------------------------------------------------------------------------------------

_N = 8


def _coefficients(first: list[int], step: Callable[[int], tuple[Any, Any, Any]]) -> list[Fraction]:
    """The polynomial of degree _N, highest power first: ``p_{k+1} = (a x + b) p_k - c p_{k-1}`` with (a, b, c) = step(k)."""
    before, now = [Fraction(1)], [Fraction(v) for v in first]
    for k in range(1, _N):
        a, b, c = map(Fraction, step(k))
        shifted = [a * v for v in now] + [Fraction(0)]
        for i, v in enumerate(now):
            shifted[i + 1] += b * v
        for i, v in enumerate(before):
            shifted[i + 2] -= c * v
        before, now = now, shifted
    return now


def _polynomial(name: str, c: list[Fraction], low: float, high: float, inner: int = 0) -> None:
    d = [v * (len(c) - 1 - i) for i, v in enumerate(c[:-1])]

    def at(p: list[Fraction], x: Any) -> Any:
        return mp.polyval([mp.mpf(v.numerator) / v.denominator for v in p], 2 * x - 1 if inner else x)

    _add(
        f"special.{name}", lambda x: at(c, x), lambda x: at(d, x) * (2 if inner else 1), (low, high),
        label=f"{name}(x, {_N})", family="polynomials", scipy="-", after=(_N,),
    )  # fmt: skip


for _k, _first in (("t", [1, 0]), ("u", [2, 0]), ("v", [2, -1]), ("w", [2, 1])):
    _c = _coefficients(_first, lambda k: (2, 0, 1))
    _polynomial(f"chebyshev_polynomial_{_k}", _c, -1.0, 1.0)
    _polynomial(f"shifted_chebyshev_polynomial_{_k}", _c, 0.0, 1.0, inner=1)
_polynomial("hermite_polynomial_h", _coefficients([2, 0], lambda k: (2, 0, 2 * k)), -5.0, 5.0)
_polynomial("hermite_polynomial_he", _coefficients([1, 0], lambda k: (1, 0, k)), -5.0, 5.0)
_laguerre = _coefficients([-1, 1], lambda k: (Fraction(-1, k + 1), Fraction(2 * k + 1, k + 1), Fraction(k, k + 1)))
_polynomial("laguerre_polynomial_l", _laguerre, 0.0, 20.0)
_legendre = _coefficients([1, 0], lambda k: (Fraction(2 * k + 1, k + 1), 0, Fraction(k, k + 1)))
_polynomial("legendre_polynomial_p", _legendre, -1.0, 1.0)
