"""Arithmetic, elementary functions, comparisons, selection.

An op is one declaration: NumPy's function and, an input each, the linear rule ``(t, y, *xs) -> tangent``.
"""

from __future__ import annotations

import builtins
from cmath import isfinite
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import pointwise
from ...core.dispatch import innermost
from ...core.errors import ZERO
from ...core.op import Op
from ...core.registry import check_out, prop, public
from ...core.reverse import Masked
from ...core.samples import Given, S, sample
from ...core.shapes import zeros_like_tensor
from ...core.tensor import Tensor
from ...core.types import ALL_NUMS, COMPLEX_NUMS, FLOAT_NUMS, REAL_NUMS
from ...core.views import register_view, write_out
from .formulas import compiled, on_large

INTS = frozenset(d.np.num for d in (dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64))


def publish(p: Op, takes: str = "**", aliases: str = "", methods: str = "", inplace: bool = True) -> Op:
    """Publish a pointwise op of two arguments under its name and aliases; `takes` says which must be tensors.

    "tt" both, "t*" the first, "**" at least one. `methods` are operators and further methods without an in-place form.
    """
    names = f"{p.name} {aliases}".split()
    plain = [n for n in names if "." not in n]
    f = _checked(p, takes)
    public(" ".join(names), out=False)(f)
    # Operators always get a tensor as self: the check is for calls by name.
    own: Any = f if takes == "tt" else p
    public("", methods=" ".join([*plain, methods]), inplace=" ".join(f"{n}_" for n in plain) if inplace else "")(own)
    return p


def _checked(p: Op, takes: str) -> Any:
    call, name, one, two = p.bind, p.name, takes[0] == "t", takes[1] == "t"

    def function(input: Any, other: Any, *, out: Any = None) -> Any:
        if not isinstance(input, Tensor) and (one or not isinstance(other, Tensor)):
            raise TypeError(f"{name}: argument input must be a tensor, got {type(input).__name__}")
        if two and not isinstance(other, Tensor):
            raise TypeError(f"{name}: argument other must be a tensor, got {type(other).__name__}")
        if out is None:
            return call(input, other)
        check_out(name, out, (input, other), fresh=False)
        return write_out(out, call(input, other))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = p.__doc__
    function.op = p  # type: ignore[attr-defined]
    return function


def zeros_like(x: Any) -> Any:
    """Zeros with the shape and type of `x`, without its history."""
    return zeros_like_tensor(x)


# -- arithmetic -------------------------------------------------------------------------------------------------------


def _sum(name: str, fn: Any, *rules: Any) -> Op:
    """``a + b`` or ``a - b``. PyTorch multiplies complex `b` by alpha = 1 + 0j first, which turns an infinite part into NaN."""

    def checked(a: Any, b: Any) -> Any:
        y = fn(a, b)
        # One product finds out whether there is anything to look for.
        if y.dtype.kind == "c" and not isfinite(np.vdot(w := np.asarray(y).ravel("K"), w)):
            return fn(a, b * y.dtype.type(1 + 0j))
        return y

    return pointwise(name, fn, *rules, fast=ALL_NUMS - COMPLEX_NUMS, other=checked, large=on_large(name))


add_p = _sum("add", np.add, lambda t, y, a, b: t, lambda t, y, a, b: t)
sub_p = _sum("sub", np.subtract, lambda t, y, a, b: t, lambda t, y, a, b: -t)
mul_p = pointwise(
    "mul",
    np.multiply,
    lambda t, y, a, b: t * b,
    lambda t, y, a, b: t * a,
    large=on_large("mul"),
    doc="``input * other``.",
)
div_p = pointwise(
    "div",
    np.true_divide,
    lambda t, y, a, b: t / b,
    lambda t, y, a, b: -t * (y / b),
    types="float",
    large=on_large("div"),
)


def _negative(x: Any) -> Any:
    if x.dtype.kind == "b":
        raise RuntimeError(
            "neg: the `-` operator on a bool tensor (input) is not supported; invert a mask with `~` or logical_not()"
        )
    return np.negative(x)


neg = public("neg negative", methods="neg negative __neg__", inplace="neg_ negative_")(
    pointwise("neg", np.negative, lambda t, y, x: -t, fast=ALL_NUMS - {dt.bool_.np.num}, other=_negative, doc="``-x``.")
)


def _floor_divide(a: Any, b: Any) -> Any:
    if a.dtype.kind in "cb":
        raise NotImplementedError(f"floor_divide: not implemented for an input of type {dt.FROM_NP[a.dtype].name}")
    if a.dtype.kind in "iu" and np.any(np.asarray(b) == 0):
        raise RuntimeError("floor_divide: integer division by zero in other")
    return np.floor_divide(a, b)


floor_divide_p = pointwise(
    "floor_divide", _floor_divide, ZERO, ZERO, fast=frozenset(), doc="``input // other``, rounded down."
)


def _trunc_divide(a: Any, b: Any) -> Any:
    if a.dtype.kind in "cb":
        raise NotImplementedError(
            f"div: with rounding_mode 'trunc' not implemented for an input of type {dt.FROM_NP[a.dtype].name}"
        )
    return _trunc_int(a, b) if a.dtype.kind in "iu" else np.trunc(a / b)


trunc_divide_p = pointwise("trunc_divide", _trunc_divide, ZERO, ZERO, fast=frozenset())


def _trunc_int(a: Any, b: Any) -> Any:
    if np.any(b == 0):
        raise RuntimeError("div: integer division by zero in other")
    q, r = np.divmod(a, b)
    return q + ((r != 0) & ((a < 0) != (b < 0))).astype(a.dtype)


def scaled(x: Any, alpha: Any, other: Any = None) -> Any:
    """``alpha * x`` for a sum with `other`, without the multiplication for 1; among booleans alpha is one too."""
    if isinstance(alpha, int | float) and alpha == 1:
        return x
    if _is_bool(x) and _is_bool(other):
        return mul_p.bind(x, bool(alpha)) if isinstance(x, Tensor) else x and bool(alpha)
    return mul_p.bind(x, alpha)


def _is_bool(x: Any) -> bool:
    return x.dtype is dt.bool_ if isinstance(x, Tensor) else isinstance(x, bool)


@public("add", methods="add", inplace="add_")
def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """``input + alpha * other``.

    >>> chainrule.add(chainrule.tensor([1.0, 2.0]), 10, alpha=2)
    tensor([21., 22.])
    """
    _check_alpha("add", input, other, alpha)
    return add_p.bind(input, scaled(other, alpha, input))


def _check_alpha(name: str, a: Any, b: Any, alpha: Any) -> None:
    if alpha == 1 and not isinstance(alpha, bool):
        return
    if isinstance(alpha, float) and all(
        isinstance(x, int) or (isinstance(x, Tensor) and x.dtype.category <= dt.INT) for x in (a, b)
    ):
        raise RuntimeError(f"{name}: for integral input tensors, argument alpha must not be a floating point number")
    if isinstance(alpha, bool) and not all(isinstance(x, Tensor) and x.dtype is dt.bool_ for x in (a, b)):
        raise RuntimeError(f"{name}: Boolean alpha only supported for Boolean results")


@public("sub subtract", methods="sub subtract", inplace="sub_ subtract_")
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """``input - alpha * other``."""
    for x in (input, other):
        if isinstance(x, bool) or (isinstance(x, Tensor) and x.dtype is dt.bool_):
            raise RuntimeError(
                "sub: subtraction, the `-` operator, with a bool tensor is not supported. Use `^`, logical_xor() or "
                "`~` for input or other instead."
            )
    _check_alpha("sub", input, other, alpha)
    return sub_p.bind(input, scaled(other, alpha))


@public("rsub", methods="rsub", out=False)
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """``other - alpha * input``."""
    if not isinstance(input, Tensor):
        raise TypeError(f"rsub: argument input must be a tensor, got {type(input).__name__}")
    return sub(other, input, alpha=alpha)


public("mul multiply", methods="mul multiply __mul__", inplace="mul_ multiply_")(mul_p)
public("", inplace="__imul__")(mul_p)


@public("div divide", methods="div divide", inplace="div_ divide_")
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """``input / other``; with ``rounding_mode`` "floor" or "trunc" rounded, and the derivative zero."""
    if rounding_mode is None:
        return div_p.bind(input, other)
    if rounding_mode == "floor":
        return floor_divide_p.bind(input, other)
    if rounding_mode == "trunc":
        return trunc_divide_p.bind(input, other)
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


@public("true_divide", methods="true_divide", inplace="true_divide_")
def true_divide(input: Any, other: Any) -> Tensor:
    """``input / other``."""
    return div_p.bind(input, other)


public("floor_divide", methods="floor_divide __floordiv__", inplace="floor_divide_ __ifloordiv__")(floor_divide_p)


# -- elementary functions ---------------------------------------------------------------------------------------------


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
    lambda t, y, x: t / (sqrt.bind(x - 1) * sqrt.bind(x + 1)),
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

# -- rounding, sign, complex parts ------------------------------------------------------------------------------------


def rounding(name: str, fn: Any, doc: str = "") -> Op:
    """A function with steps: its derivative is zero, integers are left alone, complex numbers are refused."""

    def body(x: Any) -> Any:
        if x.dtype.kind in "cb":
            raise NotImplementedError(f"{name}: not implemented for an input of type {dt.FROM_NP[x.dtype].name}")
        return x.copy() if x.dtype.kind in "iu" else fn(x)

    return pointwise(name, body, ZERO, fast=REAL_NUMS, doc=doc)


floor = public("floor", methods="floor", inplace="floor_")(
    rounding("floor", np.floor, "The largest integer not above x.")
)
ceil = public("ceil", methods="ceil", inplace="ceil_")(rounding("ceil", np.ceil, "The smallest integer not below x."))
trunc = public("trunc fix", methods="trunc fix", inplace="trunc_ fix_")(
    rounding("trunc", np.trunc, "x without its fraction.")
)


def real(input: Tensor) -> Tensor:
    """The real part."""
    return real_p.bind(input) if input.dtype.category == dt.COMPLEX else input


def imag(input: Tensor) -> Tensor:
    """The imaginary part."""
    if input.dtype.category != dt.COMPLEX:
        raise NotImplementedError("imag is not implemented for tensors with non-complex dtypes.")
    return imag_p.bind(input)


def _to_complex(x: Tensor) -> Tensor:
    return x.to(x.dtype.to_complex())


real_p = pointwise("real", np.real, lambda t, y, z: real(t), vjp=lambda g, y, z: (_to_complex(g),), fast=FLOAT_NUMS)
imag_p = pointwise(
    "imag", np.imag, lambda t, y, z: imag(t), vjp=lambda g, y, z: (_to_complex(g) * 1j,), fast=FLOAT_NUMS
)
conj_p = pointwise("conj", np.conjugate, lambda t, y, z: conj(t), vjp=lambda g, y, z: (conj(g),))


@public("conj", methods="conj", inplace="conj_ conj_physical_", out=False)
def conj(input: Tensor) -> Tensor:
    """The complex conjugate; real tensors as they are."""
    return conj_p.bind(input) if input.dtype.category == dt.COMPLEX else input


@public("conj_physical", methods="conj_physical")
def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate; real tensors as they are."""
    return conj_p.bind(input) if input.dtype.category == dt.COMPLEX else input


@prop("real")
@public("real", out=False)
def real_view(input: Tensor) -> Tensor:
    """The real part, sharing memory; a real tensor itself."""
    y = real(input)
    if y is not input:
        register_view(real_p, input, y, {})
    return y


@prop("imag")
@public("imag", out=False)
def imag_view(input: Tensor) -> Tensor:
    """The imaginary part of a complex tensor, sharing memory."""
    y = imag(input)
    register_view(imag_p, input, y, {})
    return y


def _sgn(x: Any) -> Any:
    if x.dtype.kind == "c":
        a = np.abs(x)
        return np.where(a == 0, 0, x / np.where(a == 0, 1, a)).astype(x.dtype)
    return _sign(x)


def _sign(x: Any) -> Any:
    if x.dtype.kind == "c":
        raise NotImplementedError("sign: not implemented for a complex input; use sgn for z / |z|")
    # NaN has the sign 0, as in PyTorch.
    return x.copy() if x.dtype.kind == "b" else np.subtract(x > 0, x < 0, dtype=x.dtype)


def _sgn_rule(t: Any, y: Any, z: Any) -> Any:
    if z.dtype.category != dt.COMPLEX:
        return None
    a = abs.bind(z)
    zero = a == 0
    # t - y Re(conj(y) t), without the cancellation.
    return where(zero, 0, y * 1j * (imag(conj(y) * t) / where(zero, 1, a)))


sgn = public("sgn", methods="sgn", inplace="sgn_")(
    pointwise("sgn", _sgn, _sgn_rule, vjp=lambda g, y, z: (_sgn_rule(g, y, z),), doc="``z / |z|``, and 0 at 0.")
)
sign = public("sign", methods="sign", inplace="sign_")(
    pointwise("sign", _sign, ZERO, doc="-1, 0 or 1 by the sign of x.")
)
abs = public("abs absolute", methods="abs absolute __abs__", inplace="abs_ absolute_")(
    pointwise(
        "abs",
        np.abs,
        lambda t, y, z: real(conj(sgn.bind(z)) * t),
        vjp=lambda g, y, z: (g * sgn.bind(z),),
        doc="The absolute value; its derivative at 0 is 0.",
    )
)

# -- comparison -------------------------------------------------------------------------------------------------------


eq = publish(pointwise("eq", np.equal, doc="Where both are equal."), "t*")
ne = publish(pointwise("ne", np.not_equal, doc="Where both differ."), "t*", "not_equal")
public("", methods="__eq__", out=False)(eq)
public("", methods="__ne__", out=False)(ne)
lt = publish(pointwise("lt", np.less, types="real", doc="``input < other``."), "t*", "less", "__lt__")
le = publish(pointwise("le", np.less_equal, types="real", doc="``input <= other``."), "t*", "less_equal", "__le__")
gt = publish(pointwise("gt", np.greater, types="real", doc="``input > other``."), "t*", "greater", "__gt__")
ge = publish(
    pointwise("ge", np.greater_equal, types="real", doc="``input >= other``."), "t*", "greater_equal", "__ge__"
)
isnan = public("isnan", methods="isnan")(
    pointwise(
        "isnan",
        lambda x: np.isnan(x) if x.dtype.kind in "fc" else np.zeros(x.shape, bool),
        doc="Whether it is NaN; a complex number is where a part of it is.",
    )
)

# -- maximum, minimum, clamp: where two inputs tie, each gets half ------------------------------------------------------


def _choose(worse: Any) -> tuple[Any, Any]:
    # Where one is NaN, neither is worse and both get the whole, as in PyTorch.
    def first(t: Any, y: Any, a: Any, b: Any) -> Any:
        return where(a == b, t / 2, where(worse(a, b), 0, t))

    def second(t: Any, y: Any, a: Any, b: Any) -> Any:
        return where(a == b, t / 2, where(worse(b, a), 0, t))

    return first, second


maximum = publish(
    pointwise(
        "maximum",
        np.maximum,
        *_choose(lambda a, b: a < b),
        types="real",
        doc="The larger one; NaN wins; a tie is shared.",
    ),
    "tt",
    inplace=False,
)
minimum = publish(
    pointwise(
        "minimum",
        np.minimum,
        *_choose(lambda a, b: a > b),
        types="real",
        doc="The smaller one; NaN wins; a tie is shared.",
    ),
    "tt",
    inplace=False,
)

clamp_min_p = pointwise(
    "clamp_min",
    np.maximum,
    lambda t, y, x, lo: where(x >= lo, t, 0),
    lambda t, y, x, lo: where(x < lo, t, 0),
    types="real",
    doc="``max(input, min)``.",
)
clamp_max_p = pointwise(
    "clamp_max",
    np.minimum,
    lambda t, y, x, hi: where(x <= hi, t, 0),
    lambda t, y, x, hi: where(x > hi, t, 0),
    types="real",
    doc="``min(input, max)``.",
)
clamp_p = pointwise(
    "clamp",
    lambda x, lo, hi: np.minimum(np.maximum(x, lo), hi),
    lambda t, y, x, lo, hi: where((x >= lo) & (x <= hi), t, 0),
    lambda t, y, x, lo, hi: where((x < lo) & (lo < hi), t, 0),
    lambda t, y, x, lo, hi: where((x > hi) | (hi < lo), t, 0),
    types="real",
)


@public("clamp clip", methods="clamp clip", inplace="clamp_ clip_")
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """``input`` limited to [min, max], numbers or tensors; the bounds get the gradient where they are taken."""
    if min is None and max is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")
    if max is None:
        return clamp_min_p.bind(input, min)
    return clamp_max_p.bind(input, max) if min is None else clamp_p.bind(input, min, max)


@public("clamp_min", methods="clamp_min", inplace="clamp_min_")
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """``max(input, min)``."""
    if not isinstance(input, Tensor):
        raise TypeError(f"clamp_min: argument input must be a tensor, got {type(input).__name__}")
    return clamp_min_p.bind(input, min)


@public("clamp_max", methods="clamp_max", inplace="clamp_max_")
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """``min(input, max)``."""
    if not isinstance(input, Tensor):
        raise TypeError(f"clamp_max: argument input must be a tensor, got {type(input).__name__}")
    return clamp_max_p.bind(input, max)


# -- where ------------------------------------------------------------------------------------------------------------


def _mask_like(c: Any, g: Any) -> Any:
    return c if c.shape == g.shape else c.expand(*g.shape)


where_p = pointwise(
    "where",
    lambda c, a, b: np.where(c, a, b),
    None,
    lambda t, y, c, a, b: where_p.bind(c, t, 0),
    lambda t, y, c, a, b: where_p.bind(c, 0, t),
    types="choice",
    vjp=lambda g, y, c, a, b: (
        None,
        lambda: Masked(where_p.bind(c, g, 0), _mask_like(c, g)),
        lambda: Masked(where_p.bind(c, 0, g), _mask_like(~c, g)),
    ),
)


@public("where")
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """``input`` where the condition holds, else ``other``. Cotangents of the branch not taken are absent, not 0 * inf.

    >>> x = chainrule.tensor([0.0, 1.0])
    >>> chainrule.func.grad(lambda x: chainrule.where(x > 0, x.log(), x).sum())(x)
    tensor([1., 1.])
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if not isinstance(condition, Tensor) or condition.dtype.name not in ("bool", "uint8"):
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {getattr(condition, 'dtype', type(condition))}"
        )
    if condition.dtype is not dt.bool_:
        condition = condition.to(dt.bool_)
    return where_p.bind(condition, input, other)


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """``self`` where the condition holds, else ``other``."""
    return where(condition, self, other)


public("", methods="where")(_where_method)


@public("masked_fill", methods="masked_fill", inplace="masked_fill_", out=False)
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`input` with `value` (a number or a 0-d tensor) where the mask holds."""
    if mask.dtype is not dt.bool_:
        raise RuntimeError(f"masked_fill only supports boolean masks, but got mask with dtype {mask.dtype}")
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"masked_fill only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
            )
        if value.dtype.category == dt.COMPLEX and input.dtype.category != dt.COMPLEX:
            raise RuntimeError(
                f"masked_fill: value of {value.dtype} cannot be converted to type {input.dtype} without overflow"
            )
        value = value.to(input.dtype)
    elif dt.scalar_dtype(value).category > input.dtype.category:
        raise RuntimeError(f"masked_fill: value cannot be converted to type {input.dtype} without overflow")
    return where_p.bind(mask, value, input)


# -- logic ------------------------------------------------------------------------------------------------------------


def _bitwise(name: str, fn: Any, dunder: str) -> Op:
    def checked(a: Any, b: Any) -> Any:
        if a.dtype.kind in "fc" or np.asarray(b).dtype.kind in "fc":
            raise NotImplementedError(
                f"{name} is not implemented for floating-point or complex tensors (input or other)"
            )
        return fn(a, b)

    doc = f"The {dunder} of two integers, bit by bit, or of two truth values."
    p = pointwise(name, checked, fast=frozenset(INTS | {dt.bool_.np.num}), doc=doc)
    public("", methods=f"__{dunder}__", inplace=f"__i{dunder}__")(p)
    public("", methods=f"__r{dunder}__", out=False)(_swapped(p))
    return publish(p)


def _swapped(p: Op) -> Any:
    """The reflected operator of a commutative op."""
    call = p.bind

    def method(self: Tensor, other: Any) -> Tensor:
        if not isinstance(self, Tensor):
            raise TypeError(f"__r{p.name}__: argument self must be a tensor, got {type(self).__name__}")
        return call(self, other)

    return method


bitwise_and = _bitwise("bitwise_and", np.bitwise_and, "and")
bitwise_or = _bitwise("bitwise_or", np.bitwise_or, "or")
bitwise_xor = _bitwise("bitwise_xor", np.bitwise_xor, "xor")


def _invert(x: Any) -> Any:
    if x.dtype.kind in "fc":
        raise NotImplementedError("bitwise_not is not implemented for floating-point or complex tensors (input)")
    return np.invert(x)


bitwise_not = public("bitwise_not", methods="bitwise_not __invert__", inplace="bitwise_not_")(
    pointwise("bitwise_not", _invert, doc="An integer with every bit turned around, or the other truth value.")
)


# -- operators --------------------------------------------------------------------------------------------------------


def _reverse(p: Op) -> Any:
    def method(self: Tensor, other: Any) -> Tensor:
        if not isinstance(self, Tensor):
            raise TypeError(f"__r{p.name}__: argument self must be a tensor, got {type(self).__name__}")
        return p.bind(other, self)

    return method


def _sub_operator(self: Tensor, other: Any) -> Tensor:
    if innermost(self).dtype.num in FLOAT_NUMS and type(other) in (Tensor, int, float):
        return sub_p.bind(self, other)
    return sub(self, other)


public("", methods="__add__", inplace="__iadd__")(add_p)
public("", methods="__radd__", out=False)(_swapped(add_p))
public("", methods="__rmul__", out=False)(_swapped(mul_p))
public("", methods="__truediv__ __div__", inplace="__itruediv__ __idiv__")(div_p)
public("", methods="__sub__", inplace="__isub__")(_sub_operator)


def _rsub_operator(self: Tensor, other: Any) -> Tensor:
    if not isinstance(self, Tensor):
        raise TypeError(f"__rsub__: argument self must be a tensor, got {type(self).__name__}")
    if type(other) in (int, float) and innermost(self).dtype.num in FLOAT_NUMS:
        return sub_p.bind(other, self)
    return sub(other, self)


public("", methods="__rsub__")(_rsub_operator)
public("", methods="__rtruediv__ __rdiv__")(_reverse(div_p))
public("", methods="__rfloordiv__")(_reverse(floor_divide_p))
public("", methods="__pos__", out=False)(lambda self: self)

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
