"""Calls that are known, as compiled code reads them (:mod:`..kernels.recall`): which arguments they had, and what they come down to.

Plain tensors are described by their type and shape, tensors of one tape likewise, numbers and tuples of them by their value, other constants by
identity.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .reverse import Reverse
from .tensor import Tensor

CAPACITY = 8  # calls in a list
ARRAYS = 14  # tensors among the arguments
# The kinds of arguments, as the code has them; of what is LYING strides are compared too.
SAME, PLAIN, INT, FLOAT, TAPED, INTS, LYING = range(7)
SMALL = 1 << 62  # whole numbers that are compared by value

MAKE: list[Callable[[type, type], Any]] = []  # what makes the code; set where there are kernels


def machine() -> Callable[..., Any] | None:
    """The code that recognises calls, or None where there is none."""
    return MAKE[0](Tensor, Reverse) if MAKE else None


class Recall:
    """The calls of one function that are known, as the code reads them, at `address`."""

    __slots__ = ("address", "at", "held", "list")

    def __init__(self) -> None:
        self.list = (ctypes.c_int64 * (1 + CAPACITY))()
        self.address = ctypes.addressof(self.list)
        self.held: list[Any] = []
        self.at = 0

    def clear(self) -> None:
        """Forget all."""
        self.list[0] = self.at = 0
        self.held.clear()

    def note(self, default: Any, args: Any, kw: Any, array: Callable[[Any], Any], what: Any, run: bool) -> None:
        """Remember what a call like this comes down to: a function of its arrays to be run, or what is to be returned.

        `array` gives the array of a tensor and its kind; None for what is no tensor.
        """
        words: list[int] = [id(default), run, id(what), len(args), len(kw)]
        held: list[Any] = [default, what]
        arrays = 0
        for name, v in [*((None, a) for a in args), *kw.items()]:
            if name is not None:
                name = sys.intern(name)
                words.append(id(name))
                held.append(name)
            got = array(v)
            if got is not None:
                a, kind = got
                arrays += 1
                words += [kind, id(a.dtype), a.ndim, *a.shape, *(a.strides if kind == LYING else ())]
                held.append(a.dtype)
            elif v.__class__ is int and abs(v) < SMALL:
                words += [INT, v]
            elif v.__class__ is float:
                words += [FLOAT, *struct.unpack("q", struct.pack("d", v))]
            elif v.__class__ is tuple and v and all(n.__class__ is int and abs(n) < SMALL for n in v):
                words += [INTS, len(v), *v]
            elif fixed(v):
                words += [SAME, id(v)]
                held.append(v)
            else:
                return
        if arrays > ARRAYS:
            return
        entry = (ctypes.c_int64 * len(words))(*words)
        k = self.at % CAPACITY
        if k == len(self.held):
            self.held.append(None)
        old = self.held[k]
        self.list[1 + k] = ctypes.addressof(entry)
        self.held[k] = (entry, held)
        self.list[0] = len(self.held)
        self.at += 1
        del old


def fixed(v: Any) -> bool:
    """Whether an object is what it is for good, so that its identity says all."""
    if v.__class__ is tuple:
        return all(map(fixed, v))
    return v is None or v is ... or isinstance(v, bool | int | float | str | np.dtype)


_SIMPLE = (int, bool, str, type(None), np.dtype, type(Ellipsis))


def static(v: Any, key: list[Any]) -> bool:
    """Add static data to a key; False for what is not plain enough."""
    c = v.__class__
    if c is float:
        if v != v:
            return False
        key += (c, v or repr(v))
    elif c in _SIMPLE:
        key += (c, v)
    elif c is tuple or c is list:
        key += (c, len(v))
        for w in v:
            if w.__class__ is int:
                key.append(w)
            elif not static(w, key):
                return False
    elif c is slice:
        key.append(c)
        return all(static(w, key) for w in (v.start, v.stop, v.step))
    else:
        return False
    return True
