"""Indexing as NumPy has it: negative steps and Arrays among the indices, on top of the tensor's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.declare import op
from ...core.samples import S, sample
from ...core.tensor import Tensor
from ...core.views import assign
from .value import Array, arrays_in, as_constant, cast, common_value, holds_arrays, made, wrap


def _index(i: Any) -> Any:
    k = type(i)
    if k is int or k is slice or i is None or i is Ellipsis:
        if k is slice and any(type(v) is Array for v in (i.start, i.stop, i.step)):
            return slice(*[v.__index__() if type(v) is Array else v for v in (i.start, i.stop, i.step)])
        return i
    if k is Array:
        return mask_of(i._t) if i._t.dtype.np.kind == "b" else i._t
    if k is bool or isinstance(i, np.bool_):
        return bool(i)
    if isinstance(i, np.integer):
        return int(i)
    if isinstance(i, Tensor):
        return i
    a = np.asarray(i) if not holds_arrays(i) else None
    if a is None:
        return as_constant(i)
    if a.dtype == object or a.dtype.kind not in "iub":
        if a.size == 0:
            return Tensor(a.astype(np.int64))
        raise IndexError(
            f"only integers, slices, ellipsis, newaxis and arrays of integers or truth values are indices, got {i!r}"
        )
    return Tensor(a.astype(np.int64) if a.dtype.kind in "iu" else a.copy())


def mask_of(t: Tensor) -> Tensor:
    """A mask as an index: plain where it is the same for all examples, so that it says which elements; else for a write alone."""
    v = common_value(t, "a mask as an index") if t._interp is not None else None
    return t if v is None else Tensor(v)


def _takes(i: Any) -> int:
    """How many axes an index is about."""
    if i is None or i is Ellipsis or type(i) is bool:
        return 0
    return i.ndim if isinstance(i, Tensor) and i.dtype.np.kind == "b" else 1


def _with_axes(t: Tensor, index: tuple[Any, ...]) -> list[tuple[Any, int]]:
    """Each index with the first axis that it is about."""
    used, axis, out = sum([_takes(i) for i in index]), 0, []
    for i in index:
        out.append((i, axis))
        axis += t.ndim - used if i is Ellipsis else _takes(i)
    return out


def _nowhere(t: Tensor, index: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index with masks that have no elements, which NumPy takes for sizes of any kind, as index arrays without elements."""
    out: list[Any] = []
    for i, axis in _with_axes(t, index):
        if isinstance(i, Tensor) and i.dtype.np.kind == "b" and i.ndim and 0 in i.shape:
            sizes = tuple(t.shape)[axis : axis + i.ndim]
            if len(sizes) < i.ndim or any(m not in (0, n) for m, n in zip(i.shape, sizes, strict=True)):
                raise IndexError(
                    f"a mask of shape {tuple(i.shape)} is no index of dimensions {axis} and following of an array of shape {tuple(t.shape)}"
                )
            out += [Tensor(np.zeros(0, np.int64))] * i.ndim
        else:
            out.append(i)
    return tuple(out)


def prepare(t: Tensor, index: Any) -> tuple[Tensor, Any]:
    """The tensor and index that select the same, without negative steps: the tensor is flipped instead."""
    if type(index) is not tuple:
        if type(index) is int or (
            type(index) is slice
            and (index.step is None or (type(index.step) is int and index.step > 0))
            and type(index.start) is not Array
            and type(index.stop) is not Array
        ):
            return t, index
        index = (index,)
    index = tuple([_index(i) for i in index])
    if any(isinstance(i, Tensor) and i.ndim and 0 in i.shape and i.dtype.np.kind == "b" for i in index):
        index = _nowhere(t, index)
    if any(isinstance(i, Tensor) and i.ndim for i in index):
        # Beside arrays a number is an array too, and takes part in where their common dimensions go.
        index = tuple([Tensor(np.array([i])) if type(i) is int else i for i in index])
    if not any(type(i) is slice and i.step is not None and i.step < 0 for i in index):
        return t, index if len(index) != 1 else index[0]
    out: list[Any] = []
    flips = []
    for i, axis in _with_axes(t, index):
        if type(i) is slice and i.step is not None and i.step < 0:
            n = t.shape[axis]
            r = range(*i.indices(n))
            flips.append(axis)
            out.append(slice(n - 1 - r[0], n - 1 - r[-1] + 1, -i.step) if len(r) else slice(0, 0))
        else:
            out.append(i)
    return reverse(t, dims=tuple([k - t.ndim for k in flips])), tuple(out)


@op("reversed", view=True, linear="each")
def reverse(x: Any, *, dims: tuple[int, ...]) -> Any:
    """The axes in reverse order, as a view: what a negative step means in NumPy."""
    return x[tuple([slice(None, None, -1) if k - x.ndim in dims else slice(None) for k in range(x.ndim)])]


reverse.vjp([lambda g, y, x, *, dims: reverse(g, dims=dims)])
sample("reversed", S(2, 3), f=lambda x: reverse(x, dims=(-1,)))
sample("reversed", S(2, 3), f=lambda x: reverse(x, dims=(-2, -1)))


def getitem(self: Array, index: Any) -> Array:
    """``x[index]``: a view where it is a slice; one element by numbers alone is a value that later writes to the array leave as it is."""
    t, i = prepare(self._t, index)
    y = t[i]
    if not y.ndim and not has_ellipsis(index):
        y = y.clone()
    return made(y, self._d)


def has_ellipsis(index: Any) -> bool:
    """Whether an index has dots: what it selects is an array, also where that has no dimensions."""
    return index is Ellipsis or (type(index) is tuple and any(i is Ellipsis for i in index))


def places(a: Array, index: Any) -> Tensor:
    """The numbers of the elements that an index selects, in row-major order."""
    n = Tensor(np.arange(a.size).reshape(a.shape))
    t, i = prepare(n, index)
    return t[i]


def setitem(self: Array, index: Any, value: Any) -> None:
    """``x[index] = value``: NumPy's casting, under every transform."""
    v = cast(as_constant(value, "setitem"), self._d)
    if index is Ellipsis or (type(index) is slice and index == slice(None)):
        assign(self._t, v.expand(self.shape) if tuple(v.shape) != self.shape else v, "setitem")
        return
    t, i = prepare(self._t, index)
    extra = v.ndim - t[i].ndim if v.ndim else 0
    for _ in range(max(extra, 0)):
        if v.shape[0] != 1:
            break
        v = v.squeeze(0)
    t[i] = v


Array.__getitem__ = getitem
Array.__setitem__ = setitem
__all__ = ["arrays_in", "getitem", "places", "setitem", "wrap"]
