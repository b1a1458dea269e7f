"""The standard's manipulation, indexing, searching, sorting, set, statistical and utility functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interop.numpy.order import sorted_copy
from ..interop.numpy.value import Array, wrap
from .call import array, back, dtype, operand


# -- manipulation -----------------------------------------------------------------------------------------------------------
def broadcast_arrays(*arrays: Any) -> list[Any]:
    """All in their common shape."""
    return list(back(np.broadcast_arrays(*[array(x, "broadcast_arrays") for x in arrays]), *arrays))


def broadcast_to(x: Any, /, shape: Any) -> Any:
    """In a shape it broadcasts to."""
    return back(np.broadcast_to(array(x, "broadcast_to"), shape), x)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """Joined along an axis."""
    return back(np.concatenate([array(x, "concat") for x in arrays], axis=axis), *arrays)


def expand_dims(x: Any, /, axis: Any) -> Any:
    """With a dimension of size one more."""
    return back(np.expand_dims(array(x, "expand_dims"), axis), x)


def flip(x: Any, /, *, axis: Any = None) -> Any:
    """In the reverse order along axes."""
    return back(np.flip(array(x, "flip"), axis).copy(), x)


def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """Axes moved to other places."""
    return back(np.moveaxis(array(x, "moveaxis"), source, destination), x)


def permute_dims(x: Any, /, axes: Any) -> Any:
    """The axes in another order."""
    return back(array(x, "permute_dims").transpose(tuple(axes)), x)


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    """Each element several times."""
    return back(array(x, "repeat").repeat(repeats, axis), x)


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    """The elements in another shape."""
    a = array(x, "reshape")
    y = a.reshape(tuple(shape))
    if copy is False and a._t._interp is None and a.size and not np.may_share_memory(a._t._value, y._t._value):
        raise ValueError(f"reshape: {a.shape} as {y.shape} is a copy with these strides, which copy=False forbids")
    return back(y.copy() if copy else y, x)


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """Elements moved along an axis, around the end."""
    return back(np.roll(array(x, "roll"), shift, axis), x)


def squeeze(x: Any, /, axis: Any) -> Any:
    """Without dimensions of size one."""
    return back(array(x, "squeeze").squeeze(axis), x)


def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    """Joined along a new axis."""
    return back(np.stack([array(x, "stack") for x in arrays], axis=axis), *arrays)


def tile(x: Any, repetitions: Any, /) -> Any:
    """Copies of the whole, side by side."""
    return back(np.tile(array(x, "tile"), tuple(repetitions)), x)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The slices along an axis."""
    return back(tuple(np.moveaxis(array(x, "unstack"), axis, 0)), x)


# -- indexing and searching -------------------------------------------------------------------------------------------------
def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """The elements at indices along an axis."""
    return back(array(x, "take").take(array(indices, "take"), axis), x, indices)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """At each place the element of its lane that the index names."""
    return back(np.take_along_axis(array(x, "take_along_axis"), array(indices, "take_along_axis"), axis), x, indices)


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Where the first greatest element is."""
    return back(array(x, "argmax").argmax(axis, keepdims=keepdims), x)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Where the first least element is."""
    return back(array(x, "argmin").argmin(axis, keepdims=keepdims), x)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """How many elements are not zero."""
    a = array(x, "count_nonzero")
    return back((a != 0).sum(axis=axis, keepdims=keepdims, dtype=np.int64), x)  # type: ignore[attr-defined]


def nonzero(x: Any, /) -> tuple[Any, ...]:
    """The places of the elements that are not zero."""
    a = array(x, "nonzero")
    if not a.ndim:
        raise ValueError("nonzero: a 0-d array has no places; write reshape(x, (1,))")
    return back(a.nonzero(), x)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Where elements would stand in a sorted array."""
    s = None if sorter is None else array(sorter, "searchsorted")
    return back(array(x1, "searchsorted").searchsorted(array(x2, "searchsorted"), side, s), x1, x2)


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """From one or the other, by a condition."""
    return back(np.where(array(condition, "where"), operand(x1, "where"), operand(x2, "where")), condition, x1, x2)


# -- order and sets -----------------------------------------------------------------------------------------------------------
def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The places that sort an axis; equal elements keep their order."""
    a = array(x, "argsort")
    if not descending:
        return back(a.argsort(axis, stable=True), x)
    # Equal elements keep their order in a falling sort, if the reversed axis is sorted and read from its end.
    n = a.shape[axis]
    return back(n - 1 - np.flip(np.flip(a, axis).argsort(axis, stable=True), axis), x)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Sorted along an axis."""
    y = sorted_copy(array(x, "sort"), axis)
    return back(np.flip(y, axis).copy() if descending else y, x)


def unique_all(x: Any, /) -> Any:
    """The different elements, where each is first, which each element is, and how often each occurs."""
    return back(np.unique_all(array(x, "unique_all")), x)


def unique_counts(x: Any, /) -> Any:
    """The different elements, and how often each occurs."""
    return back(np.unique_counts(array(x, "unique_counts")), x)


def unique_inverse(x: Any, /) -> Any:
    """The different elements, and which of them each element is."""
    return back(np.unique_inverse(array(x, "unique_inverse")), x)


def unique_values(x: Any, /) -> Any:
    """The different elements."""
    return back(np.unique_values(array(x, "unique_values")), x)


# -- statistics ---------------------------------------------------------------------------------------------------------------
def _total_type(a: Array, d: Any) -> Any:
    """Sums of narrow integers are made in the default integer type."""
    return d if d is not None else a.dtype if a.dtype.kind in "fc" else np.uint64 if a.dtype.kind == "u" else np.int64


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """All the sums on the way, with 0 before them if it is asked for."""
    return _cumulative(x, axis, dtype, include_initial, "cumsum", 0)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """All the products on the way, with 1 before them if it is asked for."""
    return _cumulative(x, axis, dtype, include_initial, "cumprod", 1)


def _cumulative(x: Any, axis: int | None, d: Any, initial: bool, name: str, first: int) -> Any:
    a = array(x, "cumulative_sum" if first == 0 else "cumulative_prod")
    if axis is None:
        if a.ndim > 1:
            raise ValueError(f"cumulative functions want an axis for an array of {a.ndim} dimensions")
        if not a.ndim:
            a = a.reshape(1)
        axis = 0
    d = np.dtype(_total_type(a, dtype(d)))
    y = getattr(a, name)(axis=axis, dtype=d)
    if initial:
        shape = list(y.shape)
        shape[axis] = 1
        y = np.concatenate([np.full(tuple(shape), first, d), y], axis=axis)
    return back(y, x)


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The greatest element."""
    return back(array(x, "max").max(axis=axis, keepdims=keepdims), x)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The arithmetic mean."""
    return back(array(x, "mean").mean(axis=axis, keepdims=keepdims), x)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The least element."""
    return back(array(x, "min").min(axis=axis, keepdims=keepdims), x)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product."""
    a = array(x, "prod")
    return back(a.prod(axis=axis, dtype=_total_type(a, _np_type(dtype)), keepdims=keepdims), x)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The standard deviation."""
    return back(array(x, "std").std(axis=axis, ddof=correction, keepdims=keepdims), x)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum."""
    a = array(x, "sum")
    return back(a.sum(axis=axis, dtype=_total_type(a, _np_type(dtype)), keepdims=keepdims), x)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The variance."""
    return back(array(x, "var").var(axis=axis, ddof=correction, keepdims=keepdims), x)


_np_type = dtype


# -- utilities and products ---------------------------------------------------------------------------------------------------
def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether all elements are true."""
    return back(array(x, "all").all(axis=axis, keepdims=keepdims), x)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether one element is true."""
    return back(array(x, "any").any(axis=axis, keepdims=keepdims), x)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """The differences of neighbours, n times."""
    more = {k: array(v, "diff") for k, v in (("prepend", prepend), ("append", append)) if v is not None}
    return back(np.diff(array(x, "diff"), n, axis, **more), x)


def matmul(x1: Any, x2: Any, /) -> Any:
    """The product of matrices."""
    return back(np.matmul(array(x1, "matmul"), array(x2, "matmul")), x1, x2)


def matrix_transpose(x: Any, /) -> Any:
    """The last two dimensions exchanged."""
    return back(array(x, "matrix_transpose").mT, x)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Products summed over pairs of axes."""
    return back(np.tensordot(array(x1, "tensordot"), array(x2, "tensordot"), axes), x1, x2)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """``sum(conj(x1) x2)`` along an axis, counted from the end."""
    return back(np.vecdot(array(x1, "vecdot"), array(x2, "vecdot"), axis=axis), x1, x2)  # type: ignore[call-overload]


__all__ = [n for n in dir() if not n.startswith("_")]
_ = wrap
