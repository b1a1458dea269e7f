"""The standard's functions that make arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.tensor import Tensor
from ..interop.capsule import take
from ..interop.numpy.shadow import asarray as _asarray
from ..interop.numpy.value import Array, check_array, from_numpy, holds_arrays, made, wrap
from .call import array, back, check_device, dtype


def _made(y: np.ndarray) -> Array:
    return made(Tensor(y), y.dtype)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Array:
    """Evenly spaced numbers."""
    check_device(device)
    if stop is None:
        start, stop = 0, start
    return _made(np.arange(start, stop, step, dtype=_type(dtype)))


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
    """Anything that is like an array as an Array."""
    check_device(device)
    d = _type(dtype)
    if isinstance(obj, Tensor):
        obj = wrap(obj)
    if type(obj) is Array:
        if copy is False and d is not None and d != obj.dtype:
            raise ValueError(f"asarray: {obj.dtype} as {d} is a copy, which copy=False forbids")
        return _asarray(obj, d, copy=bool(copy))
    if holds_arrays(obj):
        return _asarray(obj, d)
    if not isinstance(obj, np.ndarray) and copy is False:
        if (
            not hasattr(obj, "__array__")
            and not hasattr(obj, "__buffer__")
            and not isinstance(obj, bytes | bytearray | memoryview)
        ):
            raise ValueError("asarray: of a list or a number there is only a copy, which copy=False forbids")
    a = np.array(obj, dtype=d, copy=copy if copy is False else None)
    if a.dtype == object or a.dtype not in dt.FROM_NP:
        check_array(a, "asarray")
    if a is obj and copy:
        a = a.copy()
    return _made(np.asarray(a))


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An array to be written to."""
    check_device(device)
    return _made(np.empty(shape, _type(dtype) or np.float64))


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """An array to be written to, of the shape and type of another."""
    check_device(device)
    return back(np.empty_like(array(x, "empty_like"), dtype=_type(dtype)), x)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Array:
    """Ones on a diagonal."""
    check_device(device)
    return _made(np.eye(n_rows, n_cols, k=k, dtype=_type(dtype) or np.float64))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array that shares the memory of another library's."""
    check_device(device)
    return from_numpy(take(x, copy))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """One value everywhere."""
    check_device(device)
    if type(fill_value) is Array or isinstance(fill_value, Tensor):
        v = array(fill_value, "full")
        s = (shape,) if isinstance(shape, int) else tuple(shape)
        y = np.broadcast_to(v, s).copy()
        return y if dtype is None else y.astype(_type(dtype))
    return _made(np.full(shape, fill_value, _type(dtype)))


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """One value everywhere, in the shape of another."""
    check_device(device)
    return back(np.full_like(array(x, "full_like"), fill_value, dtype=_type(dtype)), x)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Array:
    """Evenly spaced numbers between two."""
    check_device(device)
    return _made(np.linspace(start, stop, num, endpoint=endpoint, dtype=_type(dtype)))


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Any]:
    """The coordinates of the points of a grid."""
    kinds = {array(x, "meshgrid").dtype for x in arrays}
    if len(kinds) > 1:
        raise ValueError(f"meshgrid: the arrays must be of one type, got {', '.join(sorted(map(str, kinds)))}")
    return list(back(tuple(np.meshgrid(*[array(x, "meshgrid") for x in arrays], indexing=indexing)), *arrays))  # type: ignore[call-overload]


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Ones."""
    check_device(device)
    return _made(np.ones(shape, _type(dtype) or np.float64))


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones, in the shape of another."""
    check_device(device)
    return back(np.ones_like(array(x, "ones_like"), dtype=_type(dtype)), x)


def tril(x: Any, /, *, k: int = 0) -> Any:
    """The lower triangle."""
    return back(np.tril(array(x, "tril"), k), x)


def triu(x: Any, /, *, k: int = 0) -> Any:
    """The upper triangle."""
    return back(np.triu(array(x, "triu"), k), x)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Zeros."""
    check_device(device)
    return _made(np.zeros(shape, _type(dtype) or np.float64))


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros, in the shape of another."""
    check_device(device)
    return back(np.zeros_like(array(x, "zeros_like"), dtype=_type(dtype)), x)


_type = dtype
