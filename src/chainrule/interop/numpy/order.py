"""Sorting and searching: methods of ndarray on Arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from ...core.views import assign
from .methods import computed
from .value import Array, as_constant, cast, from_numpy, made, method, wrap


def sorted_copy(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, stable: Any = None, descending: bool = False
) -> Array:
    """``np.sort``: a sorted copy."""
    x = a if type(a) is Array else wrap(as_constant(a, "sort"))
    t = x._t if axis is not None else x._t.reshape(-1)
    if t._interp is None and not descending:
        return from_numpy(np.sort(t._value, axis=-1 if axis is None else axis, kind="stable"), [t._value])
    if x._d.kind == "c":
        i = np.argsort(t.concrete("sort of complex numbers"), axis=-1 if axis is None else axis, kind="stable")
        return made(t.gather(-1 if axis is None else axis, Tensor(i)), x._d)
    return made(t.sort(dim=-1 if axis is None else axis, stable=True, descending=descending)[0], x._d)


def sort(self: Array, axis: int = -1, kind: Any = None, order: Any = None, stable: Any = None) -> None:
    """Sort in place."""
    assign(self._t, sorted_copy(self, axis)._t, "sort")


method(sort)


@computed
def argsort(self: Array, axis: Any = -1, kind: Any = None, order: Any = None, stable: Any = None) -> Array:
    """The places that sort an axis."""
    t = self._t.reshape(-1) if axis is None else self._t
    return wrap(t.argsort(dim=-1 if axis is None else axis, stable=True))


def partition(self: Array, kth: Any, axis: int = -1, kind: Any = None, order: Any = None) -> None:
    """Partition in place: what is fully sorted is partitioned too."""
    self.sort(axis)


method(partition)


@computed
def argpartition(self: Array, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Array:
    """The places that partition an axis."""
    return self.argsort(axis)


@computed
def searchsorted(self: Array, v: Any, side: str = "left", sorter: Any = None) -> Array:
    """Where elements would stand in a sorted array."""
    x = wrap(as_constant(v))
    d = np.result_type(self._d, x._d)
    base = self._t if sorter is None else self.take(sorter)._t
    return wrap(PUBLIC["searchsorted"](cast(base, d).detach(), cast(x._t, d).detach(), side=side))
