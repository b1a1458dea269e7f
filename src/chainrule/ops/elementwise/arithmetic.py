"""Arithmetic beyond the four operations: remainders, angles, signs, integers, fused forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op, pointwise
from ...core.errors import ZERO
from ...core.op import Op
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.types import REAL_NUMS
from .numbers import varies
from .operators import floor_divide_p
from .parts import trunc
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


def real_op(name: str, fn: Any, *rules: Any, kinds: str = "biuf", types: str = "same", doc: str = "") -> Op:
    """A pointwise op of real numbers, of the NumPy kinds `kinds`."""
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
    real_op(
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
    real_op(
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
    real_op("fmax", np.fmax, *_first(lambda a, b: a >= b), doc="The larger one; a number beats NaN."),
    "tt",
    inplace=False,
)
fmin = publish(
    real_op("fmin", np.fmin, *_first(lambda a, b: a <= b), doc="The smaller one; a number beats NaN."),
    "tt",
    inplace=False,
)

# -- plane geometry ---------------------------------------------------------------------------------------------------

hypot = publish(
    real_op(
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
    real_op(
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
    real_op("rad2deg", np.rad2deg, lambda t, y, x: t * (180 / np.pi), types="float", doc="``180 x / pi``.")
)
deg2rad = public("deg2rad", methods="deg2rad", inplace="deg2rad_")(
    real_op("deg2rad", np.deg2rad, lambda t, y, x: t * (np.pi / 180), types="float", doc="``pi x / 180``.")
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
    real_op("copysign", np.copysign, _copysign_rule, ZERO, types="float", doc="``|input|`` with the sign of `other`."),
    "t*",
)
frac = public("frac", methods="frac", inplace="frac_")(
    real_op("frac", lambda x: x - np.trunc(x), lambda t, y, x: t, kinds="f", doc="``x - trunc(x)``.")
)
heaviside_p = real_op(
    "heaviside",
    lambda x, v: np.where(x == 0, v, (x > 0).astype(x.dtype)),
    ZERO,
    lambda t, y, x, v: where(x == 0, t, 0),
)


@public("heaviside", methods="heaviside", inplace="heaviside_")
@straight
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below 0, 1 above 0, and `values` at 0."""
    need_tensors("heaviside", input=input, values=values)
    if input.dtype is not values.dtype:
        raise RuntimeError(
            f"heaviside is not yet implemented for tensors with different dtypes. Got {input.dtype} and {values.dtype}; convert one with .to(...)"
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
@straight
def addcmul(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``."""
    if varies(value):
        return input + value * (tensor1 * tensor2)
    if isinstance(value, Tensor):
        value = value.item()
    _value_fits("addcmul", value, (input, tensor1, tensor2))
    return addcmul_p.bind(input, tensor1, tensor2, value=value)


@public("addcdiv", methods="addcdiv", inplace="addcdiv_")
@straight
def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``."""
    if varies(value):
        return input + value * (tensor1 / tensor2)
    if isinstance(value, Tensor):
        value = value.item()
    if all(isinstance(x, Tensor) and x.dtype.category <= dt.INT for x in (tensor1, tensor2)):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported; write input + value * tensor1 / tensor2 for "
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
@straight
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """``input + weight * (end - input)``, exact at weights 0 and 1; `weight` is a number or a tensor."""
    for name, x in (("end", end), ("weight", weight)):
        if isinstance(x, Tensor) and x.dtype is not input.dtype and not (name == "weight" and x.ndim == 0):
            raise RuntimeError(f"lerp: expected type {input.dtype} for `{name}` but got {x.dtype}")
    return lerp_p.bind(input, end, weight)


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


# -- samples ------------------------------------------------------------------------------------------------------------

for _n in ("fmod", "remainder"):
    sample(_n, S(5, low=-5.0, high=5.0), S(5, low=0.7, high=2.0), cx=False)
    sample(_n, S(2, 3), -0.7, cx=False)
for _n in ("fmax", "fmin", "hypot", "atan2", "copysign"):
    sample(_n, S(2, 3, low=0.2), S(3, low=0.2), cx=False)
    sample(_n, S(), S(2, low=0.5), cx=False)
sample("copysign", S(2, 3), S(3), cx=False)
sample("copysign", Given([1.5, -0.5, 2.0, -1.0], grad=True), Given([-1.0, -2.0, 0.5, 3.0], grad=True), cx=False)
sample("nextafter", S(4), S(4), cx=False)
sample("atan2", Given([0.0, 1.0, -1.0], grad=True), Given([1.0, 1.0, -2.0], grad=True), cx=False)
for _n in ("rad2deg", "deg2rad", "frac", "positive"):
    sample(_n, S(4), cx=_n == "positive")
sample("frexp", S(4), cx=False, f=lambda x: frexp(x)[0])
sample("ldexp", S(3), S(3))
sample("ldexp", S(3), Given([1, -2, 3]))
sample("heaviside", Given([0.0, -1.0, 2.0]), S(3), cx=False)
for _n in ("addcmul", "addcdiv"):
    sample(_n, S(2, 3), S(3), S(2, 1, low=0.5), value=0.5)
    sample(_n, S(), S(2), S(2, low=0.5))
sample("lerp", S(2, 3), S(3), 0.3)
sample("lerp", S(2, 3), S(3), S(2, 1))
sample("fill", S(2, 2), S())
