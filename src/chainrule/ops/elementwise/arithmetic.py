"""Arithmetic beyond the four operations: remainders, angles, fused forms, logarithms of sums, the bits of floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op, pointwise
from ...core.errors import ZERO, ChainruleError
from ...core.op import Op
from ...core.registry import METHODS, public
from ...core.samples import Given, S, sample
from ...core.tensor import Tensor
from ...core.types import REAL_NUMS
from ...core.views import assign
from .elementary import exp2, log, sigmoid
from .formulas import RoundedOnce
from .numbers import varies
from .operators import floor_divide_p
from .parts import rounding, trunc
from .power import pow
from .publish import INTS, publish
from .select import where

REAL_INT = REAL_NUMS | INTS
LN2 = float(np.log(2.0))


def refused(name: str, d: dt.DType, take: str = "float32") -> NotImplementedError:
    """The error for arguments of a type that an op is not defined for."""
    return NotImplementedError(
        f"{name}: not implemented for arguments of type {d.name}; convert them, x.to(chainrule.{take})"
    )


def only(name: str, fn: Any, kinds: str) -> Any:
    """`fn` on arrays whose NumPy kind is among `kinds` (b bool, i u integers, f floats, c complex); others are refused."""

    def body(*xs: Any, **kw: Any) -> Any:
        d = xs[0].dtype
        if d.kind not in kinds:
            raise refused(name, dt.FROM_NP[d], "float32" if "f" in kinds else "int64")
        return fn(*xs, **kw)

    return body


def need_tensors(name: str, **xs: Any) -> None:
    """Refuse arguments that are not tensors, by name."""
    for k, x in xs.items():
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: argument {k} must be a tensor, got {type(x).__name__}")


def _real(name: str, fn: Any, *rules: Any, kinds: str = "biuf", types: str = "same", doc: str = "") -> Op:
    fast = REAL_NUMS if types == "float" else REAL_INT
    return pointwise(name, only(name, fn, kinds), *rules, types=types, fast=fast, doc=doc)


# -- remainders -------------------------------------------------------------------------------------------------------


def _divides(name: str, fn: Any) -> Any:
    def body(a: Any, b: Any) -> Any:
        if a.dtype.kind in "iu" and np.any(np.equal(b, 0)):
            raise RuntimeError(f"{name}: ZeroDivisionError, an integer in other is 0")
        return fn(a, b)

    return body


fmod = publish(
    _real(
        "fmod",
        _divides("fmod", np.fmod),
        lambda t, y, a, b: t,
        lambda t, y, a, b: -t * trunc.bind(a / b),
        kinds="iuf",
        doc="``a - trunc(a / b) b``: the remainder with the sign of `input`.",
    ),
    "t*",
)
remainder = publish(
    _real(
        "remainder",
        _divides("remainder", np.remainder),
        lambda t, y, a, b: t,
        lambda t, y, a, b: -t * floor_divide_p.bind(a, b),
        kinds="iuf",
        doc="``a - floor(a / b) b``: the remainder with the sign of `other`.",
    ),
    "**",
    methods="__mod__",
)
public("", inplace="__imod__")(remainder)


@public("", methods="__rmod__", out=False)
def _rmod(self: Tensor, other: Any) -> Tensor:
    """``other % self``."""
    return remainder.bind(other, self)


# -- extrema that ignore NaN: a tie belongs to the first input ------------------------------------------------------------


def _first(better: Any) -> tuple[Any, Any]:
    def one(t: Any, y: Any, a: Any, b: Any) -> Any:
        return where(better(a, b) | (b != b), t, 0)

    def two(t: Any, y: Any, a: Any, b: Any) -> Any:
        return where(better(a, b) | (b != b), 0, t)

    return one, two


fmax = publish(
    _real("fmax", np.fmax, *_first(lambda a, b: a >= b), doc="The larger one; a number beats NaN."), "tt", inplace=False
)
fmin = publish(
    _real("fmin", np.fmin, *_first(lambda a, b: a <= b), doc="The smaller one; a number beats NaN."),
    "tt",
    inplace=False,
)

# -- plane geometry ---------------------------------------------------------------------------------------------------

hypot = publish(
    _real(
        "hypot",
        np.hypot,
        lambda t, y, a, b: t * (a / y),
        lambda t, y, a, b: t * (b / y),
        kinds="f",
        doc="``sqrt(a**2 + b**2)`` without overflow.",
    ),
    "tt",
)


def _over_square(u: Any, a: Any, b: Any) -> Any:
    """``u / (a**2 + b**2)`` without overflow, 0 at the origin."""
    r = hypot.bind(a, b)
    zero = r == 0
    r = where(zero, 1, r)
    return where(zero, 0, u / r / r)


atan2 = publish(
    _real(
        "atan2",
        np.arctan2,
        lambda t, y, a, b: t * _over_square(b, a, b),
        lambda t, y, a, b: -t * _over_square(a, a, b),
        types="float",
        doc="The angle of the point (other, input); its derivative at the origin is 0.",
    ),
    "tt",
    "arctan2",
)
rad2deg = public("rad2deg", methods="rad2deg", inplace="rad2deg_")(
    _real("rad2deg", np.rad2deg, lambda t, y, x: t * (180 / np.pi), types="float", doc="``180 x / pi``.")
)
deg2rad = public("deg2rad", methods="deg2rad", inplace="deg2rad_")(
    _real("deg2rad", np.deg2rad, lambda t, y, x: t * (np.pi / 180), types="float", doc="``pi x / 180``.")
)

# -- signs, fractions, steps ------------------------------------------------------------------------------------------


def _signbit(x: Any) -> Any:
    if x.dtype.kind == "c":
        raise NotImplementedError("signbit: a complex number has no sign; take that of a part, x.real or x.imag")
    return np.signbit(x) if x.dtype.kind == "f" else np.less(x, 0)


signbit = public("signbit", methods="signbit")(
    pointwise("signbit", _signbit, fast=REAL_INT, doc="Whether the sign bit is set; -0.0 has it.")
)


def _copysign_rule(t: Any, y: Any, a: Any, b: Any) -> Any:
    # y / a would be NaN for infinite a.
    return where(a == 0, 0, where(signbit.bind(a) == signbit.bind(y), t, -t))


copysign = publish(
    _real("copysign", np.copysign, _copysign_rule, ZERO, types="float", doc="``|input|`` with the sign of `other`."),
    "t*",
)
frac = public("frac", methods="frac", inplace="frac_")(
    _real("frac", lambda x: x - np.trunc(x), lambda t, y, x: t, kinds="f", doc="``x - trunc(x)``.")
)
heaviside_p = _real(
    "heaviside",
    lambda x, v: np.where(x == 0, v, (x > 0).astype(x.dtype)),
    ZERO,
    lambda t, y, x, v: where(x == 0, t, 0),
)


@public("heaviside", methods="heaviside", inplace="heaviside_")
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below 0, 1 above 0, and `values` at 0."""
    need_tensors("heaviside", input=input, values=values)
    if input.dtype is not values.dtype:
        raise RuntimeError(
            f"heaviside: input and values must have one type, got {input.dtype} and {values.dtype}; convert one with .to(...)"
        )
    return heaviside_p.bind(input, values)


def _nextafter(a: Any, b: Any) -> Any:
    d = dt.FROM_NP[a.dtype]
    if d.category != dt.FLOAT:
        raise refused("nextafter", d)
    return np.nextafter(a, b)


nextafter = publish(
    pointwise(
        "nextafter",
        _nextafter,
        lambda t, y, a, b: where(a == b, 0, t),
        ZERO,
        types="narrow",  # neighbours are those of the argument's own type
        fast=REAL_NUMS,
        doc="The next number of this type after `input` towards `other`.",
    ),
    "tt",
)

# -- integers ---------------------------------------------------------------------------------------------------------


def _integers(name: str, fn: Any, doc: str) -> Op:
    def body(a: Any, b: Any) -> Any:
        if a.dtype.kind not in "iu":
            raise NotImplementedError(
                f"{name}: not implemented for arguments of type {dt.FROM_NP[a.dtype].name}; give integers"
            )
        return fn(a, b)

    return publish(pointwise(name, body, fast=INTS, doc=doc), "tt")


gcd = _integers("gcd", np.gcd, "The greatest common divisor.")
lcm = _integers("lcm", np.lcm, "The least common multiple.")

# -- scaling by powers of two -----------------------------------------------------------------------------------------


def _times(x: Any, p: Any) -> Any:
    """``x p`` of complex numbers; the difference of two products that overflow is still right (a fused one would be)."""
    y = np.asarray(x * p)
    lost = np.isnan(y) & np.isfinite(x) & np.isfinite(p)
    if lost.any():
        k = np.finfo(y.dtype).maxexp // 2
        z = np.asarray(x * y.real.dtype.type(2.0**-k) * p)
        for part, small in ((y.real, z.real), (y.imag, z.imag)):
            np.copyto(part, np.ldexp(small, k), where=lost & np.isnan(part))
    return y


def _ldexp(x: Any, e: Any) -> Any:
    if x.dtype.kind == "c":
        return _times(x, np.power(x.dtype.type(2), e))
    # In two steps: 2**e alone may overflow or vanish where the product does not.
    h = np.where(np.isfinite(e), np.trunc(e * x.dtype.type(0.5)), 0).astype(x.dtype)
    return x * np.exp2(h) * np.exp2(e - h)


ldexp = publish(
    pointwise(
        "ldexp",
        _ldexp,
        lambda t, y, x, e: ldexp.bind(t, e),
        lambda t, y, x, e: t * (y * LN2),
        types="float",
        fast=frozenset(),
        doc="``input * 2**other``.",
    ),
    "tt",
)


@op("frexp", integer_outputs=(1,))
def frexp_p(x: Any) -> Any:
    """Mantissa in [0.5, 1) and exponent, ``x == mantissa * 2**exponent``."""
    if dt.FROM_NP[x.dtype].category != dt.FLOAT:
        raise RuntimeError(f"frexp: only floating-point types are supported, got {dt.FROM_NP[x.dtype].name} for input")
    m, e = np.frexp(x.astype(np.float32) if x.dtype in dt.HALVES else x)
    return np.asarray(m).astype(x.dtype, copy=False), np.asarray(e, np.int32)


frexp_p.jvp(lambda t, y, x: (ldexp.bind(t[0], -y[1]), None))
frexp_p.vjp(lambda g, y, x: (ldexp.bind(g[0], -y[1]),))


@public("frexp", methods="frexp")
def frexp(input: Tensor) -> tuple[Tensor, Tensor]:
    """Mantissa in [0.5, 1) and exponent: ``input == mantissa * 2**exponent``."""
    return frexp_p(input)


# -- fused forms ------------------------------------------------------------------------------------------------------

addcmul_p = pointwise(
    "addcmul",
    lambda x, a, b, *, value: x + x.dtype.type(value) * a * b,
    lambda t, y, x, a, b, *, value: t,
    lambda t, y, x, a, b, *, value: t * (b * value),
    lambda t, y, x, a, b, *, value: t * (a * value),
    static=True,
)
addcdiv_p = pointwise(
    "addcdiv",
    lambda x, a, b, *, value: x + x.dtype.type(value) * a / b,
    lambda t, y, x, a, b, *, value: t,
    lambda t, y, x, a, b, *, value: t * value / b,
    lambda t, y, x, a, b, *, value: -t * (a / b * value) / b,
    static=True,
)


def _value_fits(name: str, value: Any, xs: tuple[Any, ...]) -> None:
    d = dt.result_of((x.dtype, x.ndim) if isinstance(x, Tensor) else (dt.scalar_dtype(x), -1) for x in xs)
    if dt.scalar_dtype(value).category > d.category:
        raise RuntimeError(f"{name}: value {value!r} cannot be converted to the result type {d} without loss")


@public("addcmul", methods="addcmul", inplace="addcmul_")
def addcmul(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``."""
    if varies(value):
        return input + value * (tensor1 * tensor2)
    if isinstance(value, Tensor):
        value = value.item()
    _value_fits("addcmul", value, (input, tensor1, tensor2))
    return addcmul_p.bind(input, tensor1, tensor2, value=value)


@public("addcdiv", methods="addcdiv", inplace="addcdiv_")
def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``."""
    if varies(value):
        return input + value * (tensor1 / tensor2)
    if isinstance(value, Tensor):
        value = value.item()
    if all(isinstance(x, Tensor) and x.dtype.category <= dt.INT for x in (tensor1, tensor2)):
        raise RuntimeError(
            "addcdiv: integer division of tensor1 by tensor2 is not supported; write input + value * tensor1 / tensor2 for "
            "true division, or use div(..., rounding_mode='trunc')"
        )
    _value_fits("addcdiv", value, (input, tensor1, tensor2))
    return addcdiv_p.bind(input, tensor1, tensor2, value=value)


def _lerp(a: Any, b: Any, w: Any) -> Any:
    if a.dtype.kind not in "fc":
        raise refused("lerp", dt.FROM_NP[a.dtype])
    d = b - a
    # From the nearer end: exact at weight 0 and at weight 1.
    return np.where(np.abs(w) < 0.5, a + w * d, b - d * (1 - w)).astype(a.dtype, copy=False)


lerp_p = pointwise(
    "lerp",
    _lerp,
    lambda t, y, a, b, w: t * (1 - w),
    lambda t, y, a, b, w: t * w,
    lambda t, y, a, b, w: t * (b - a),
)


@public("lerp", methods="lerp", inplace="lerp_")
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """``input + weight * (end - input)``, exact at weights 0 and 1; `weight` is a number or a tensor."""
    for name, x in (("end", end), ("weight", weight)):
        if isinstance(x, Tensor) and x.dtype is not input.dtype and not (name == "weight" and x.ndim == 0):
            raise RuntimeError(f"lerp: expected type {input.dtype} for `{name}` but got {x.dtype}")
    return lerp_p.bind(input, end, weight)


# -- powers and logarithms --------------------------------------------------------------------------------------------


@public("float_power", methods="float_power")
def float_power(input: Any, exponent: Any) -> Tensor:
    """``input ** exponent`` in double precision (complex where an argument is)."""
    if not isinstance(exponent, Tensor):
        need_tensors("float_power", input=input)
    d = dt.complex128 if any(_is_complex(x) for x in (input, exponent)) else dt.float64
    a, b = (x.to(d) if isinstance(x, Tensor) else x for x in (input, exponent))
    if not isinstance(a, Tensor):
        a = complex(a) if d is dt.complex128 else float(a)
    return pow(a, b)


def _is_complex(x: Any) -> bool:
    return x.dtype.category == dt.COMPLEX if isinstance(x, Tensor) else isinstance(x, complex)


@public("", methods="float_power_", out=False)
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """In-place version of :meth:`float_power`; `self` must have the double type of the result."""
    y = float_power(self, exponent)
    if y.dtype is not self.dtype:
        raise ChainruleError(f"float_power_: the base has type {self.dtype} but the result requires {y.dtype}")
    return assign(self, y, "float_power_")


def _xlogy(x: Any, y: Any) -> Any:
    r = x * np.log(np.where((x == 0) & (y == y), 1, y))
    return r.astype(x.dtype, copy=False)


def _xlogy_first(t: Any, r: Any, x: Any, y: Any) -> Any:
    y = y if isinstance(y, Tensor) else x.new_full((), y)
    flat = (x == 0) & (y <= 0)
    return where(flat, 0, t * log.bind(where(flat, 1, y)))


def _xlogy_second(t: Any, r: Any, x: Any, y: Any) -> Any:
    # Along x = 0 the function is the constant 0, also at y = 0.
    flat = (x == 0) & (y == 0)
    return where(flat, 0, t * (x / where(flat, 1, y)))


xlogy = publish(
    _real(
        "xlogy",
        _xlogy,
        _xlogy_first,
        _xlogy_second,
        types="float",
        doc="``input * log(other)``, and 0 where `input` is 0.",
    ),
    "**",
    "special.xlogy",
)


def _logaddexp(a: Any, b: Any) -> Any:
    if a.dtype.kind == "f":
        return np.logaddexp(a, b)
    if a.dtype.kind != "c":
        raise NotImplementedError(f"logaddexp: not implemented for arguments of type {dt.FROM_NP[a.dtype].name}")
    first = a.real >= b.real
    high, low = np.where(first, a, b), np.where(first, b, a)
    same = (a.real == b.real) & np.isinf(a.real)
    y = high + np.log1p(np.exp(low - np.where(same, 0, high)))
    y = np.where(same, np.where(a.real > 0, np.log(np.exp(a) + np.exp(b)), low), y)
    return np.where(np.isnan(a) | np.isnan(b), complex(np.nan, np.nan), y).astype(a.dtype, copy=False)


def _share(t: Any, a: Any, b: Any) -> Any:
    """t times the share of exp(a) in exp(a) + exp(b); one half where both are the same infinity."""
    same = (a == b) & (_magnitude(a) == float("inf"))
    return t * sigmoid.bind(where(same, 0, a - b))


def _share2(t: Any, a: Any, b: Any) -> Any:
    """t times the share of 2**a in 2**a + 2**b: the difference, rounded once, is the only error."""
    same = (a == b) & (_magnitude(a) == float("inf"))
    d = where(same, 0, a - b)
    up = d >= 0
    e = exp2.bind(where(up, 0, d))  # 2**d without overflow
    return t * where(up, 1 / (1 + exp2.bind(-where(up, d, 0))), e / (1 + e))


def _magnitude(a: Any) -> Any:
    return a.abs() if isinstance(a, Tensor) else abs(a)


logaddexp = publish(
    pointwise(
        "logaddexp",
        _logaddexp,
        RoundedOnce(lambda t, y, a, b: _share(t, a, b)),
        RoundedOnce(lambda t, y, a, b: _share(t, b, a)),
        fast=REAL_NUMS,
        doc="``log(exp(input) + exp(other))`` without overflow.",
    ),
    "tt",
    inplace=False,
)
logaddexp2 = publish(
    _real(
        "logaddexp2",
        np.logaddexp2,
        RoundedOnce(lambda t, y, a, b: _share2(t, a, b)),
        RoundedOnce(lambda t, y, a, b: _share2(t, b, a)),
        kinds="f",
        doc="``log2(2**input + 2**other)`` without overflow.",
    ),
    "tt",
    inplace=False,
)

# -- rounding to decimals, replacing what is not finite -----------------------------------------------------------------

round_p = rounding("round", np.rint)


def _round_decimals(x: Any, *, decimals: int) -> Any:
    if x.dtype.kind != "f":
        raise NotImplementedError(
            f"round: with decimals={decimals}, input must be floating, got {dt.FROM_NP[x.dtype].name}"
        )
    ten = x.dtype.type(10.0 ** abs(decimals))
    return np.rint(x * ten) / ten if decimals > 0 else np.rint(x / ten) * ten


round_decimals_p = pointwise("round_decimals", _round_decimals, ZERO, static=True, fast=frozenset())


@public("round special.round", methods="round", inplace="round_")
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest integer, or number with so many decimals; halves go to the even one."""
    return round_p.bind(input) if decimals == 0 else round_decimals_p.bind(input, decimals=decimals)


def _nan_to_num(x: Any, *, nan: float, posinf: float, neginf: float) -> Any:
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf) if x.dtype.kind in "fc" else x.copy()


def _finite_part(t: Any, y: Any, x: Any, **kw: Any) -> Any:
    return where(x.isfinite(), t, 0)


nan_to_num_p = pointwise("nan_to_num", _nan_to_num, _finite_part, static=True, fast=frozenset())


@public("nan_to_num", methods="nan_to_num", inplace="nan_to_num_")
def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """`input` with NaN replaced (default 0), and the infinities (default the largest and smallest number of the type)."""
    if input.dtype.category < dt.FLOAT:
        return input.clone()
    info = dt.finfo(input.dtype)
    if varies(nan, posinf, neginf):
        finite = nan_to_num_p.bind(input, nan=0.0, posinf=0.0, neginf=0.0)
        for at, v, default in (
            (input != input, nan, 0.0),
            (input == float("inf"), posinf, info.max),
            (input == -float("inf"), neginf, info.min),
        ):
            finite = where(at, default if v is None else v, finite)
        return finite
    return nan_to_num_p.bind(
        input,
        nan=0.0 if nan is None else nan,
        posinf=info.max if posinf is None else posinf,
        neginf=info.min if neginf is None else neginf,
    )


# -- the trivial ones -------------------------------------------------------------------------------------------------


@public("positive", methods="positive", out=False)
def positive(input: Tensor) -> Tensor:
    """`input` itself."""
    if input.dtype is dt.bool_:
        raise NotImplementedError("positive: the + operator is not implemented for a bool tensor (input)")
    return input


@public("fill", out=False)
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like `input` filled with one number or 0-d tensor."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"fill only supports a 0-dimensional value tensor, but got one with {value.ndim} dimensions"
            )
        return value.to(input.dtype).expand(*input.shape).clone()
    return input.new_full(tuple(input.shape), value)


# -- the functions that write to their argument -----------------------------------------------------------------------

_IN_PLACE = """abs acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil clamp clamp_max clamp_min clip
conj_physical cos cosh deg2rad exp exp2 expm1 fix floor frac gcd lcm ldexp log log10 log1p log2 nan_to_num neg negative rad2deg
reciprocal round rsqrt sigmoid sin sinh sqrt square tan tanh trunc xlogy"""
for _n in _IN_PLACE.split():
    public(f"{_n}_", out=False)(METHODS[f"{_n}_"])

# -- samples ------------------------------------------------------------------------------------------------------------

for _n in ("fmod", "remainder"):
    sample(_n, S(5, low=-5.0, high=5.0), S(5, low=0.7, high=2.0), cx=False)
    sample(_n, S(2, 3), -0.7, cx=False)
for _n in ("fmax", "fmin", "hypot", "atan2", "copysign", "logaddexp", "logaddexp2", "xlogy"):
    sample(_n, S(2, 3, low=0.2), S(3, low=0.2), cx=_n == "logaddexp")
    sample(_n, S(), S(2, low=0.5), cx=False)
sample("copysign", S(2, 3), S(3), cx=False)
sample("copysign", Given([1.5, -0.5, 2.0, -1.0], grad=True), Given([-1.0, -2.0, 0.5, 3.0], grad=True), cx=False)
sample("nextafter", S(4), S(4), cx=False)
sample("atan2", Given([0.0, 1.0, -1.0], grad=True), Given([1.0, 1.0, -2.0], grad=True), cx=False)
sample("logaddexp", Given([800.0, -900.0, 0.0], grad=True), Given([800.5, 900.0, 0.0], grad=True), cx=False)
sample("xlogy", Given([0.0, 2.0], grad=False), Given([3.0, 0.5], grad=True), cx=False)
for _n in ("rad2deg", "deg2rad", "frac", "round", "nan_to_num", "positive"):
    sample(_n, S(4), cx=_n in ("positive", "nan_to_num"))
sample("round", S(4), decimals=2, cx=False)
sample("frexp", S(4), cx=False, f=lambda x: frexp(x)[0])
sample("ldexp", S(3), S(3))
sample("ldexp", S(3), Given([1, -2, 3]))
sample("heaviside", Given([0.0, -1.0, 2.0]), S(3), cx=False)
for _n in ("addcmul", "addcdiv"):
    sample(_n, S(2, 3), S(3), S(2, 1, low=0.5), value=0.5)
    sample(_n, S(), S(2), S(2, low=0.5))
sample("lerp", S(2, 3), S(3), 0.3)
sample("lerp", S(2, 3), S(3), S(2, 1))
sample("float_power", S(3, low=0.3), S(3))
sample("fill", S(2, 2), S())
