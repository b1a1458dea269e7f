"""Collate: from a list of examples, which may be nests of containers, to one nest of tensors."""

from __future__ import annotations

import collections.abc as abc
import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.dtypes import float64
from ....core.registry import PUBLIC
from ....core.tensor import Tensor

_STRINGS = (str, bytes)
NUMBERS = "biufc"


def _rebuild(like: Any, entries: Any) -> Any:
    """A container of the kind of `like` with other entries; a plain one where that kind cannot be made."""
    try:
        if isinstance(like, abc.MutableMapping):
            new = copy.copy(like)
            new.update(entries)
            return new
        if isinstance(like, abc.MutableSequence) and not isinstance(like, list):
            made = copy.copy(like)
            for i, e in enumerate(entries):
                made[i] = e
            return made
        return type(like)(entries)
    except TypeError:
        return dict(entries) if isinstance(like, abc.Mapping) else list(entries)


def default_convert(data: Any) -> Any:
    """Arrays and NumPy's numbers in a nest as tensors; everything else as it is."""
    if isinstance(data, Tensor):
        return data
    if type(data).__module__ == "numpy":
        if isinstance(data, np.ndarray) and data.dtype.kind not in NUMBERS:
            return data
        return PUBLIC["as_tensor"](data)
    if isinstance(data, abc.Mapping):
        return _rebuild(data, {k: default_convert(v) for k, v in data.items()})
    if isinstance(data, tuple):
        parts = [default_convert(v) for v in data]
        return type(data)(*parts) if hasattr(data, "_fields") else parts
    if isinstance(data, abc.Sequence) and not isinstance(data, _STRINGS):
        return _rebuild(data, [default_convert(v) for v in data])
    return data


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """One nest from a list of nests: what is in the same place goes through the function of `collate_fn_map` for its type."""
    elem = batch[0]
    kind = type(elem)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for t, f in collate_fn_map.items():
            if isinstance(elem, t):
                return f(batch, collate_fn_map=collate_fn_map)
    again = lambda part: collate(part, collate_fn_map=collate_fn_map)
    if isinstance(elem, abc.Mapping):
        return _rebuild(elem, {k: again([d[k] for d in batch]) for k in elem})
    if isinstance(elem, tuple) and hasattr(elem, "_fields"):
        return kind(*[again(part) for part in zip(*batch, strict=True)])
    if isinstance(elem, abc.Sequence):
        if any(len(e) != len(elem) for e in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [again(part) for part in zip(*batch, strict=True)]
        return parts if isinstance(elem, tuple) else _rebuild(elem, parts)
    raise TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}. Give collate_fn= to the "
        f"DataLoader to say how such examples become a batch."
    )


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Tensors of one shape, stacked."""
    return PUBLIC["stack"](list(batch), 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Arrays of one shape, as one tensor."""
    if batch[0].dtype.kind not in NUMBERS:
        raise TypeError(
            f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {batch[0].dtype}"
        )
    return collate([PUBLIC["as_tensor"](b) for b in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """NumPy's numbers as a tensor of their type."""
    return PUBLIC["as_tensor"](np.array(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Python's numbers are in double precision, and stay so."""
    return PUBLIC["tensor"](batch, dtype=float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Whole numbers and truth values."""
    return PUBLIC["tensor"](batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Strings stay a list."""
    return batch


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """One nest of tensors from a list of examples: tensors are stacked, numbers become tensors, containers stay what they are."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
