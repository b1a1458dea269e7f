"""The standard's functions of data types."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core import dtypes as dt
from ..core.tensor import Tensor
from ..interop.numpy.value import Array
from .call import array, back, check_device

_KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f", "complex floating": "c", "numeric": "iufc",
}  # fmt: skip


def _type(x: Any) -> Any:
    """The NumPy type of an array or type; numbers stay."""
    if type(x) is Array:
        return x.dtype
    if isinstance(x, Tensor):
        return x.dtype.np
    return x.np if isinstance(x, dt.DType) else x


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """In another type."""
    check_device(device)
    a = array(x, "astype")
    d = np.dtype(_type(dtype))
    return back(a if not copy and d == a.dtype else a.astype(d, copy=copy), x)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether the promotion rules lead from one type to another."""
    return bool(np.can_cast(_type(from_), _type(to)))


class finfo_object(NamedTuple):
    """The limits of a floating type."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


class iinfo_object(NamedTuple):
    """The limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: Any


def finfo(type: Any, /) -> finfo_object:
    """The limits of a floating type, or of an array's."""
    d = np.dtype(_type(type))
    i = np.finfo(d)
    return finfo_object(int(i.bits), float(i.eps), float(i.max), float(i.min), float(i.smallest_normal), i.dtype)


def iinfo(type: Any, /) -> iinfo_object:
    """The limits of an integer type, or of an array's."""
    i = np.iinfo(np.dtype(_type(type)))
    return iinfo_object(int(i.bits), int(i.max), int(i.min), i.dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a type is of a kind, or is another type."""
    d = np.dtype(_type(dtype))
    if isinstance(kind, tuple):
        return any(isdtype(d, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"isdtype: kind {kind!r} is not known; there are {', '.join(_KINDS)}")
        return d.kind in _KINDS[kind]
    return d == np.dtype(_type(kind))


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The type that arrays, types and numbers are promoted to."""
    if not arrays_and_dtypes:
        raise ValueError("result_type: at least one array or type is needed")
    return np.result_type(*[_type(x) for x in arrays_and_dtypes])
