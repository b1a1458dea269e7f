"""Elementary functions of one number.

An op is one declaration: NumPy's function and, an input each, the linear rule ``(t, y, *xs) -> tangent``.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ...core.declare import pointwise
from ...core.op import Op
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.types import FLOAT_NUMS
from .formulas import RoundedOnce, compiled
from .parts import imag, real
from .select import where


def elementary(name: str, fn: Any, rule: Any, doc: str, aliases: str = "", special: str = "") -> Op:
    """Declare and publish a floating function of one argument, with its in-place method."""
    p = pointwise(name, fn, rule, types="float", doc=doc)
    names = f"{name} {aliases}"
    methods = " ".join(n for n in names.split() if "." not in n)
    inplace = " ".join(f"{n}_" for n in methods.split())
    return public(f"{names} {special}", methods=methods, inplace=inplace)(p)


def _log1p(x: Any) -> Any:
    if x.dtype.kind != "c":
        return np.log1p(x)
    # log|1 + z| from |1 + z|**2 - 1, which does not cancel near 0.
    a, b = x.real, x.imag
    near = np.abs(x) < 0.5
    size = np.where(near, 0.5 * np.log1p(np.where(near, a * (2 + a) + b * b, 0)), np.log(np.hypot(1 + a, b)))
    y = np.empty_like(x)
    y.real, y.imag = size, np.arctan2(b, 1 + a)
    y[np.isnan(x)] = complex(np.nan, np.nan)
    return y


def slope(name: str, plain: Any, kernel: Any, curve: Any, least: int | None = None) -> Op:
    """The op ``t f'(x)``: in NumPy, as a kernel for large arrays, and ``curve(x)``, the logarithmic derivative of f'."""
    p: Op = pointwise(
        name,
        compiled(name, plain, kernel, least=least),
        lambda s, y, t, x: p.bind(s, x),
        lambda s, y, t, x: s * (y * curve(x)),
        fast=FLOAT_NUMS,
    )
    return p


def km() -> Any:
    """The functions of the kernels' loop language, imported when first compiled."""
    from ...kernels import math

    return math


def ks() -> Any:
    """The special functions of the kernels' loop language, imported when first compiled."""
    from ...kernels import special

    return special


exp = elementary("exp", np.exp, lambda t, y, x: t * y, "``e**x``.")
exp2 = elementary("exp2", np.exp2, lambda t, y, x: t * (y * LN2), "``2**x``.", special="special.exp2")
expm1_slope = slope("expm1_slope", lambda t, x: t * np.exp(x), lambda k, t, x: t * km().exp(k, x), lambda x: 1)
expm1 = elementary(
    "expm1", np.expm1, lambda t, y, x: expm1_slope.bind(t, x), "``e**x - 1``, accurate near 0.", special="special.expm1"
)
log = elementary("log", np.log, lambda t, y, x: t / x, "The natural logarithm.")
log2 = elementary("log2", np.log2, lambda t, y, x: t * (1 / LN2) / x, "The logarithm to base 2.")
log10 = elementary("log10", np.log10, lambda t, y, x: t * (1 / LN10) / x, "The logarithm to base 10.")
log1p = elementary(
    "log1p", _log1p, lambda t, y, x: t / (x + 1), "``log(1 + x)``, accurate near 0.", special="special.log1p"
)
sqrt = elementary("sqrt", np.sqrt, lambda t, y, x: t / (y * 2), "The square root.")
rsqrt = elementary("rsqrt", lambda x: 1 / np.sqrt(x), lambda t, y, x: t * (y * y * y * -0.5), "``1 / sqrt(x)``.")
reciprocal = elementary("reciprocal", lambda x: 1 / x, lambda t, y, x: -t * (y * y), "``1 / x``.")
sin = elementary("sin", np.sin, lambda t, y, x: t * cos.bind(x), "The sine.")
cos = elementary("cos", np.cos, lambda t, y, x: -t * sin.bind(x), "The cosine.")
tan = elementary("tan", np.tan, lambda t, y, x: t * (y * y + 1), "The tangent.")
# (1 - x)(1 + x) and not 1 - x * x: the rounded square would take the last digits near 1.
asin_slope = slope(
    "asin_slope",
    lambda t, x: t / np.sqrt(1 - x * x if x.dtype.kind == "c" else (1 - x) * (1 + x)),
    lambda k, t, x: t / k.sqrt((1.0 - x) * (x + 1.0)),
    lambda x: x / ((1 - x) * (1 + x)),
)
asin = elementary("asin", np.arcsin, lambda t, y, x: asin_slope.bind(t, x), "The inverse sine.", "arcsin")
acos = elementary("acos", np.arccos, lambda t, y, x: -asin_slope.bind(t, x), "The inverse cosine.", "arccos")


def _atan_slope(t: Any, x: Any) -> Any:
    if x.dtype.kind == "c":
        return t / (x * x + 1)
    h = np.hypot(x, x.dtype.type(1))  # the square would overflow half way
    return t / h / h


atan_slope = slope(
    "atan_slope",
    _atan_slope,
    lambda k, t, x: k.select(builtins.abs(x) > 1e10, t / builtins.abs(x) / builtins.abs(x), t / k.fma(x, x, 1.0)),
    lambda x: x * -2 / (x * x + 1),
)
atan = elementary("atan", np.arctan, lambda t, y, x: atan_slope.bind(t, x), "The inverse tangent.", "arctan")
sinh = elementary("sinh", np.sinh, lambda t, y, x: t * cosh.bind(x), "The hyperbolic sine.")
cosh = elementary("cosh", np.cosh, lambda t, y, x: t * sinh.bind(x), "The hyperbolic cosine.")


def _tanh_slope(t: Any, x: Any) -> Any:
    # Where tanh is 1 to the last digit, 1 - tanh(x)**2 has none. Divided twice: the square of cosh would overflow too soon.
    if x.dtype.kind == "c":
        y = np.tanh(x)
        return t * (1 - y * y)
    c = np.cosh(x)
    return t / c / c


tanh_slope = slope("tanh_slope", _tanh_slope, lambda k, t, x: t * ks().sech2(k, x), lambda x: tanh.bind(x) * -2)
tanh = elementary(
    "tanh", np.tanh, lambda t, y, x: tanh_slope.bind(t, x), "The hyperbolic tangent.", special="nn.functional.tanh"
)
asinh_slope = slope(
    "asinh_slope",
    # The square would overflow half way.
    lambda t, x: t / (np.sqrt(x * x + 1) if x.dtype.kind == "c" else np.hypot(x, x.dtype.type(1))),
    lambda k, t, x: t / k.select(builtins.abs(x) > 1e10, builtins.abs(x), k.sqrt(k.fma(x, x, 1.0))),
    lambda x: -x / (x * x + 1),
)
asinh = elementary(
    "asinh", np.arcsinh, lambda t, y, x: asinh_slope.bind(t, x), "The inverse hyperbolic sine.", "arcsinh"
)
acosh = elementary(
    "acosh",
    np.arccosh,
    RoundedOnce(lambda t, y, x: t / (sqrt.bind(x - 1) * sqrt.bind(x + 1))),
    "The inverse hyperbolic cosine.",
    "arccosh",
)
atanh_slope = slope(
    "atanh_slope",
    lambda t, x: t / ((1 - x) * (1 + x)),
    lambda k, t, x: t / ((1.0 - x) * (x + 1.0)),
    lambda x: x * 2 / ((1 - x) * (1 + x)),
)
atanh = elementary(
    "atanh", np.arctanh, lambda t, y, x: atanh_slope.bind(t, x), "The inverse hyperbolic tangent.", "arctanh"
)
LN2, LN10 = float(np.log(2.0)), float(np.log(10.0))


def _sigmoid(x: Any) -> Any:
    if x.dtype.kind == "c":
        # As PyTorch writes it: far left, where e**-x overflows, it is NaN off the real axis.
        return 1 / (1 + np.exp(-x))
    # 0.5 tanh(x/2) + 0.5 loses the left tail; exp(-|x|) neither overflows nor cancels.
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def _sigmoid_slope(t: Any, x: Any) -> Any:
    if x.dtype.kind == "c":
        y = _sigmoid(x)
        return t * (y * (1 - y))
    c = np.cosh(x * x.dtype.type(0.5))
    return t * t.dtype.type(0.25) / c / c


sigmoid_pull = slope(
    "sigmoid_slope",
    _sigmoid_slope,
    lambda k, t, x: t * ks().sigmoid_slope(k, x),
    lambda x: tanh.bind(x * 0.5) * -1,
)
sigmoid = elementary(
    "sigmoid",
    compiled("sigmoid", _sigmoid, lambda k, x: km().sigmoid(k, x), least=0),
    lambda t, y, x: sigmoid_pull.bind(t, x),
    "``1 / (1 + e**-x)``.",
    special="special.expit nn.functional.sigmoid",
)


# -- samples ------------------------------------------------------------------------------------------------------------

_UNARY = "neg exp exp2 expm1 sin cos tan sinh cosh tanh atan asinh sigmoid square reciprocal sgn abs"
for _n in _UNARY.split():
    sample(_n, S(2, 3), cx=_n not in ("exp2",))
for _n in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt"):
    sample(_n, S(2, 3, low=0.3, high=2.0))
for _n in ("asin", "acos", "atanh"):
    sample(_n, S(3, low=-0.9, high=0.9))
sample("acosh", S(3, low=1.2, high=3.0))
for _n in ("floor", "ceil", "trunc", "sign"):
    sample(_n, S(4), cx=False)
for _n in ("add", "sub", "mul", "div"):
    sample(_n, S(2, 3), S(2, 3))
    sample(_n, S(3, 1, low=0.5), S(4, low=0.5))
    sample(_n, S(2), 3.0)
    sample(_n, S(), S(2, 2, low=0.5))
sample("add", S(3), S(3), alpha=2.5)
for _r in ("floor", "trunc"):
    sample("div", S(3), S(3, low=0.5), rounding_mode=_r, cx=False)
sample("maximum", S(2, 3), S(3), cx=False)
sample("minimum", S(2, 3), S(2, 1), cx=False)
sample("clamp", S(5), -0.5, 0.5, cx=False)
sample("clamp", S(5), S(5, low=-1.0, high=-0.5), S(5, low=0.5, high=1.0), cx=False)
sample("clamp", S(5), min=S(5), cx=False)
sample("clamp", S(5), max=S(5), cx=False)
sample("where", Given([[True, False, True]]), S(2, 3), S(3))
sample("eq", S(2, 3), S(3), f=lambda a, b: where(a.sign() == b.sign(), a * b, a), cx=False)
sample("masked_fill", S(2, 3), Given([True, False, True]), S())
sample("conj", S(3))
sample("real", S(3), f=lambda x: real(x * (2 + 1j)))
sample("imag", S(3), f=lambda x: imag(x * (2 + 1j)))
