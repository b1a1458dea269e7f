"""Nested tensors from and to Awkward Array and Apache Arrow, which need not be installed; buffers are shared where they can be."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.errors import ChainruleError
from ...core.tensor import Tensor
from .array import NestedArray
from .sizes import RaggedInt, geometry_of


def _module(name: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"{what} needs the package {name}, which is not installed: pip install {name}") from None


def _nest(values: np.ndarray, offsets: np.ndarray, what: str) -> Tensor:
    """Packed rows and where components start as a nest that shares the rows."""
    if values.dtype not in dt.FROM_NP:
        raise ChainruleError(f"{what}: numbers of type {values.dtype} have no counterpart")
    offsets = np.asarray(offsets, np.int64)
    rows = values[int(offsets[0]) : int(offsets[-1])] if len(offsets) else values[:0]
    g = geometry_of((RaggedInt(np.diff(offsets)), *rows.shape[1:]), max(len(offsets) - 1, 0))
    return Tensor(NestedArray(np.ascontiguousarray(rows), g))


def _packed(x: Tensor, what: str) -> tuple[np.ndarray, np.ndarray]:
    """The rows and offsets of a nest that is ragged in its first dim alone."""
    if not x.is_nested:
        raise ChainruleError(f"{what} is for nested tensors; this one is dense, of shape {list(x.shape)}")
    v = x.detach()._value
    if not isinstance(v, NestedArray) or v.lead or v.geometry.u != 1:
        raise ChainruleError(f"{what}: only the first dim of the components may be ragged, got shape {list(x.shape)}")
    return v.rows, v.geometry.packing.offsets


def from_awkward(array: Any) -> Tensor:
    """A nested tensor ``[n, j, ...]`` from an Awkward array of lists of numbers, or of equal arrays of numbers.

    >>> chainrule.nested.from_awkward([[1.0, 2.0], [3.0]]).tolist()  # doctest: +SKIP
    [[1.0, 2.0], [3.0]]
    """
    ak = _module("awkward", "from_awkward")
    layout = ak.to_packed(ak.Array(array)).layout
    if not layout.is_list or layout.is_regular:
        raise ChainruleError(f"from_awkward: expected lists of numbers, got the type {ak.type(array)}")
    offsets = np.asarray(ak.num(ak.Array(layout), axis=1))
    try:
        values = np.asarray(ak.to_numpy(ak.Array(layout.content), allow_missing=False))
    except ValueError:
        raise ChainruleError(
            f"from_awkward: the lists must hold numbers, or arrays of equal sizes, without missing ones, got the type {ak.type(array)}"
        ) from None
    return _nest(values, np.concatenate([[0], np.cumsum(offsets)]), "from_awkward")


def to_awkward(x: Tensor) -> Any:
    """An Awkward array of lists that shares the packed rows of a nested tensor ``[n, j, ...]``.

    >>> chainrule.nested.to_awkward(chainrule.nested.nested_tensor([[1.0, 2.0], [3.0]]))  # doctest: +SKIP
    <Array [[1, 2], [3]] type='2 * var * float32'>
    """
    ak = _module("awkward", "to_awkward")
    rows, offsets = _packed(x, "to_awkward()")
    content = ak.from_numpy(rows, regulararray=True).layout
    return ak.Array(ak.contents.ListOffsetArray(ak.index.Index64(offsets), content))


def from_arrow(array: Any) -> Tensor:
    """A nested tensor ``[n, j]`` (or ``[n, j, k]`` from lists of fixed-size lists) from an Arrow list array, without a copy.

    >>> chainrule.nested.from_arrow(pyarrow.array([[1.0, 2.0], [3.0]])).tolist()  # doctest: +SKIP
    [[1.0, 2.0], [3.0]]
    """
    pa = _module("pyarrow", "from_arrow")
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        raise ChainruleError(f"from_arrow: expected a list array, got the type {array.type}")
    if array.null_count:
        raise ChainruleError(f"from_arrow: {array.null_count} lists are missing; fill or drop them first")
    offsets = array.offsets.to_numpy()
    first = int(offsets[0]) if len(offsets) else 0
    values, shape = array.values.slice(first, int(offsets[-1]) - first if len(offsets) else 0), []
    while pa.types.is_fixed_size_list(values.type) and not values.null_count:
        shape.append(values.type.list_size)
        values = values.flatten()  # unlike .values, from where a slice starts
    t = values.type
    if values.null_count or not (pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_boolean(t)):
        raise ChainruleError(
            f"from_arrow: the lists must hold numbers, or fixed-size lists of numbers, without missing ones, got the type {array.type}"
            + (f" with {values.null_count} missing" if values.null_count else "")
        )
    rows = values.to_numpy(zero_copy_only=not pa.types.is_boolean(t))
    return _nest(rows.reshape(-1, *shape), offsets - first, "from_arrow")


def to_arrow(x: Tensor) -> Any:
    """An Arrow list array that shares the packed rows of a nested tensor ``[n, j, ...]``.

    >>> chainrule.nested.to_arrow(chainrule.nested.nested_tensor([[1.0, 2.0], [3.0]])).to_pylist()  # doctest: +SKIP
    [[1.0, 2.0], [3.0]]
    """
    pa = _module("pyarrow", "to_arrow")
    rows, offsets = _packed(x, "to_arrow()")
    values = pa.array(np.ascontiguousarray(rows).reshape(-1))
    for m in reversed(rows.shape[1:]):
        values = pa.FixedSizeListArray.from_arrays(values, m)
    return pa.LargeListArray.from_arrays(pa.array(offsets), values)
