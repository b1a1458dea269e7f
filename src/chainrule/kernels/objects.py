"""Where Python's and NumPy's objects keep what compiled code compares: looked for on real objects, once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from . import binding, compiler

DIMS, STRIDES, DESCR, FLAGS, NDIM = 16, 24, 40, 48, 8  # in an ndarray, counted from its data pointer


def word(at: int) -> int | None:
    """The eight bytes at an address."""
    return ctypes.c_void_p.from_address(at).value


def slot(make: Callable[[], Any], name: str) -> int | None:
    """Where an object that `make` gives keeps a slot, found by a value that only it can have."""
    t, mark = make(), object()
    setattr(t, name, mark)
    found = [o for o in range(16, type(t).__basicsize__, 8) if word(id(t) + o) == id(mark)]
    return found[0] if len(found) == 1 else None


def _of_function(name: str) -> int | None:
    """Where a function keeps an attribute: the same place in several of them, and NULL where there is none."""

    def make(i: int) -> Any:
        return lambda a=i, *, b=i: a

    fs = [make(i + 1000) for i in range(3)]
    found = [
        o for o in range(16, FunctionType.__basicsize__, 8) if all(word(id(f) + o) == id(getattr(f, name)) for f in fs)
    ]
    return found[0] if found else None


def _layout(tensor: Callable[[], Any]) -> dict[str, int] | None:
    if compiler.DATA_OFFSET is None or compiler.FLAGS_OFFSET != compiler.DATA_OFFSET + FLAGS or not binding.supported():
        return None
    d = compiler.DATA_OFFSET
    for a in (np.zeros((3, 5)), np.zeros(7, np.float32)):
        dims, strides = word(id(a) + d + DIMS), word(id(a) + d + STRIDES)
        if word(id(a) + 8) != id(np.ndarray) or word(id(a) + d + DESCR) != id(a.dtype) or not dims or not strides:
            return None
        if (
            ctypes.c_int.from_address(id(a) + d + NDIM).value != a.ndim
            or word(dims) != a.shape[0]
            or word(strides) != a.strides[0]
        ):
            return None
    one, two = [a, d, a], (a, d)
    if (
        word(id(one) + 16) != 3
        or word(word(id(one) + 24) or 0) != id(a)
        or word(id(two) + 16) != 2
        or word(id(two) + 24) != id(a)
    ):
        return None
    cell: Any = (lambda x: lambda: x)(a).__closure__
    cell = cell[0]
    if word(id(cell) + 16) != id(a):
        return None
    out = {"value": slot(tensor, "_value"), "interp": slot(tensor, "_interp"), "code": _of_function("__code__"), "defaults": _of_function("__defaults__"),
           "kwdefaults": _of_function("__kwdefaults__")}  # fmt: skip
    return None if None in out.values() else out  # type: ignore[return-value]


_known: list[Any] = []


def layout(tensor: Callable[[], Any]) -> dict[str, int] | None:
    """Offsets, or None where something is not where it is expected; `tensor` makes one."""
    if not _known:
        _known.append(_layout(tensor))
    return _known[0]
