"""PyTorch's data types and type promotion over NumPy's.

A :class:`DType` names an element type; ``DType.np`` is the NumPy dtype that holds it. Promotion follows PyTorch's
categories: bool < integer < floating < complex, where tensors with dimensions outrank 0-d tensors, which outrank
Python numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

BOOL, INT, FLOAT, COMPLEX = range(4)
PREFIX = ["chainrule"]  # what names are printed under; "torch" where chainrule stands in for PyTorch


class DType:
    """An element type, e.g. ``chainrule.float32``."""

    __slots__ = ("category", "itemsize", "name", "np", "rank")

    name: str
    np: np.dtype[Any]
    category: int
    rank: int
    itemsize: int

    def __init__(self, name: str, np_dtype: Any, category: int, rank: int) -> None:
        self.name = name
        self.np = np.dtype(np_dtype)
        self.category = category
        self.rank = rank
        self.itemsize = self.np.itemsize

    def __repr__(self) -> str:
        return f"{PREFIX[0]}.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_by_name, (self.name,))

    @property
    def dtype(self) -> Any:
        """NumPy's type: ``np.dtype(chainrule.float32)`` asks for it."""
        return self.np

    @property
    def is_floating_point(self) -> bool:
        """Whether the type is a real floating type."""
        return self.category == FLOAT

    @property
    def is_complex(self) -> bool:
        """Whether the type is complex."""
        return self.category == COMPLEX

    @property
    def is_signed(self) -> bool:
        """Whether the type can hold negative numbers."""
        return self.name != "bool" and not self.name.startswith("uint")

    def to_real(self) -> DType:
        """The real type of the same precision."""
        return {"complex32": float16, "complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> DType:
        """The complex type of the same precision."""
        return {"float64": complex128, "float16": complex32, "complex32": complex32, "complex128": complex128}.get(
            self.name, complex64
        )


bool_ = DType("bool", np.bool_, BOOL, 0)
uint8 = DType("uint8", np.uint8, INT, 0)
int8 = DType("int8", np.int8, INT, 1)
int16 = DType("int16", np.int16, INT, 2)
int32 = DType("int32", np.int32, INT, 3)
int64 = DType("int64", np.int64, INT, 4)
uint16 = DType("uint16", np.uint16, INT, 2)
uint32 = DType("uint32", np.uint32, INT, 3)
uint64 = DType("uint64", np.uint64, INT, 4)
float16 = DType("float16", np.float16, FLOAT, 1)
bfloat16 = DType("bfloat16", ml_dtypes.bfloat16, FLOAT, 1)
float32 = DType("float32", np.float32, FLOAT, 2)
float64 = DType("float64", np.float64, FLOAT, 3)
complex32 = DType("complex32", ml_dtypes.complex32, COMPLEX, 1)
complex64 = DType("complex64", np.complex64, COMPLEX, 2)
complex128 = DType("complex128", np.complex128, COMPLEX, 3)

ALL = (
    bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64, float16, bfloat16, float32, float64,
    complex32, complex64, complex128,
)  # fmt: skip
# Numbers of 8 bits are stored, compared by conversion and computed with in float32; they take no part in promotion.
FLOAT8 = tuple(
    DType(name, getattr(ml_dtypes, name), FLOAT, 0)
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
)
# What 8-bit types without infinities make of what they cannot hold: the largest number; powers of two have no sign and no zero.
FITTED: dict[np.dtype, Callable[[np.ndarray], np.ndarray]] = {
    FLOAT8[0].np: lambda x: np.clip(x, -448, 448),
    FLOAT8[4].np: lambda x: np.maximum(np.abs(x.astype(np.float64)), 2.0**-127),
}
NAMES: dict[str, DType] = {d.name: d for d in (*ALL, *FLOAT8)} | {
    "half": float16, "float": float32, "double": float64, "short": int16, "int": int32, "long": int64,
    "chalf": complex32, "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip
FROM_NP: dict[np.dtype, DType] = {d.np: d for d in (*ALL, *FLOAT8)}
HALVES = frozenset((float16.np, bfloat16.np))
REALS = HALVES | {float32.np, float64.np}
# What 16-bit parts are computed in, and what a result computed so becomes.
WORK = {float16.np: float32.np, bfloat16.np: float32.np, complex32.np: complex64.np} | {
    d.np: float32.np for d in FLOAT8
}
NARROW = {
    float16.np: {float32.np: float16.np, complex64.np: complex32.np},
    bfloat16.np: {float32.np: bfloat16.np},
    complex32.np: {complex64.np: complex32.np, float32.np: float16.np},
} | {d.np: {float32.np: d.np} for d in FLOAT8}

_default = float32


def _by_name(name: str) -> DType:
    return NAMES[name]


def get_default_dtype() -> DType:
    """The floating type that Python floats become."""
    return _default


def set_default_dtype(d: DType) -> None:
    """Set the floating type that Python floats become."""
    global _default
    if d.category != FLOAT:
        raise TypeError(f"set_default_dtype: only floating-point types are supported as the default type, got {d}")
    _default = d
    _result.cache_clear()


def as_dtype(d: Any) -> DType:
    """`d` as a DType: accepts DType, NumPy dtypes and the Python types bool, int, float, complex."""
    if isinstance(d, DType):
        return d
    if d is bool:
        return bool_
    if d is int:
        return int64
    if d is float:
        return float64
    if d is complex:
        return complex128
    try:
        return FROM_NP[np.dtype(d)]
    except (TypeError, KeyError):
        raise TypeError(
            f"{d!r} is not a data type chainrule knows; use one of {', '.join(x.name for x in ALL)}"
        ) from None


@functools.cache
def promote_types(a: DType, b: DType) -> DType:
    """The smallest type to which both `a` and `b` convert, by PyTorch's table."""
    if a is b:
        return a
    if a.category > b.category:
        a, b = b, a
    if (a in FLOAT8 or b in FLOAT8) and a.category == b.category:
        raise RuntimeError(f"Promotion for Float8 Types is not supported, attempted to promote {a} and {b}")
    if a.category == b.category:
        if a.category == INT:
            if "uint8" in (a.name, b.name):
                other = b if a is uint8 else a
                return int16 if other is int8 else other
            if not (a.is_signed and b.is_signed) and a.rank == b.rank:
                raise TypeError(f"promotion of {a} and {b} is not defined; convert one of them with .to(...)")
        elif a.category == FLOAT and a.rank == b.rank:
            return float32
        return a if a.rank > b.rank else b
    if b.category == COMPLEX and a.category == FLOAT:
        return complex128 if a is float64 else complex64 if b is complex32 and a is not float16 else b
    return b


# What PyTorch's messages and legacy classes call the types.
SCALAR_TYPES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "uint8": "Byte", "int8": "Char", "int16": "Short",
    "int32": "Int", "int64": "Long", "bool": "Bool", "complex32": "ComplexHalf", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip


def scalar_type(d: DType) -> str:
    """``Long`` for int64: what PyTorch's messages call a type."""
    return SCALAR_TYPES.get(d.name, d.name)


def scalar_dtype(x: Any) -> DType:
    """The type of a Python number: bool, int64, the default float, the default complex."""
    if isinstance(x, bool | np.bool_):
        return bool_
    if isinstance(x, int | np.integer):
        return int64
    if isinstance(x, complex | np.complexfloating) and not isinstance(x, float):
        return _default.to_complex()
    return _default


@functools.cache
def _result(dims: frozenset[DType], zeros: frozenset[DType], scalars: frozenset[DType]) -> DType:
    def fold(ds: frozenset[DType]) -> DType | None:
        out: DType | None = None
        for d in sorted(ds, key=lambda d: d.name):
            out = d if out is None else promote_types(out, d)
        return out

    out: DType | None = None
    for part in (fold(dims), fold(zeros), fold(scalars)):
        if part is None:
            continue
        if out is None:
            out = part
        elif part.category > out.category:
            # A number of a higher category lifts the category but keeps the precision where it can.
            if out.category == FLOAT and part.category == COMPLEX:
                out = out.to_complex()
            else:
                out = part
    assert out is not None
    return out


def result_of(kinds: Any) -> DType:
    """The promoted type of ``(dtype, rank)`` pairs; rank is the number of dims, or -1 for a Python number."""
    dims: set[DType] = set()
    zeros: set[DType] = set()
    scalars: set[DType] = set()
    for d, n in kinds:
        (dims if n > 0 else zeros if n == 0 else scalars).add(d)
    if not (dims or zeros):
        # PyTorch gives numbers among themselves their own types.
        return functools.reduce(promote_types, scalars)
    return _result(frozenset(dims), frozenset(zeros), frozenset(scalars))


def can_cast(from_: DType, to: DType) -> bool:
    """Whether PyTorch's rules allow a result of type `from_` to be written into `to`: categories never go down.

    >>> can_cast(float64, float32), can_cast(float32, int64)
    (True, False)
    """
    if from_.category == COMPLEX and to.category != COMPLEX:
        return False
    if from_.category == FLOAT and to.category < FLOAT:
        return False
    return not (from_.category == INT and to.category == BOOL)


class finfo:
    """Machine limits of a floating type: eps, max, min, tiny, bits."""

    def __init__(self, type: Any = None) -> None:
        d = (_default if type is None else as_dtype(type)).to_real()
        if d.category != FLOAT:
            raise TypeError(f"finfo: requires a floating point input type; use iinfo to handle {d}")
        info = ml_dtypes.finfo(d.np)
        self.bits, self.dtype = int(info.bits), d.name
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        self.resolution = float(info.resolution)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:
    """Limits of an integer type: max, min, bits."""

    def __init__(self, type: Any) -> None:
        d = as_dtype(type)
        if d.category != INT:
            raise TypeError(f"iinfo: requires an integer input type; use finfo to handle {d}")
        info = np.iinfo(d.np)
        self.bits, self.max, self.min, self.dtype = info.bits, int(info.max), int(info.min), d.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)
