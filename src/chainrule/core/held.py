"""The memory of a leaf: a step of an optimiser writes into it, unless somebody saved what is there.

A leaf is a box around a plain tensor around an array. A tape that saved the value holds that plain tensor, and so does a saved
view of it; a saved detached value has marked the leaf as pinned. Arrays that ``p.detach().numpy()`` gave hold neither: they share
the memory, and see the step.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np

from .reverse import Leaf
from .tensor import Tensor
from .views import assign, root_of


def _holders(p: Tensor) -> int:
    inner = p._value
    return getrefcount(inner)


def _pinned(x: Tensor) -> bool:
    return x._meta is not None and x._meta.pinned


_ALONE = _holders(Tensor(Tensor(np.zeros(1)), object()))


def shared_memory(p: Tensor) -> Any:
    """The payload of a leaf where a write to its memory changes nothing that was saved; else None."""
    if p._interp is None or type(p._aux) is not Leaf or p._value._interp is not None:
        return None
    inner = p._value
    if _pinned(inner) or _pinned(root_of(p)):
        return None
    origin = inner.__dict__.get("origin")  # what a Parameter was made from
    if origin is not None and (_pinned(origin) or (origin._interp is not None and _holders(origin) > _ALONE)):
        return None
    v = inner._value
    del inner
    if _holders(p) > _ALONE:
        return None
    a = rows(v)
    if not isinstance(a, np.ndarray):
        return None
    return v if a.flags.writeable and not (0 in a.strides and a.size > 1) else None


def rows(payload: Any) -> np.ndarray:
    """The array of a payload: a nest moves as its packed rows."""
    return getattr(payload, "rows", payload)


def rebind(p: Tensor, payload: Any, what: str) -> None:
    """Give `p` another payload; as a leaf it stays one, and no longer shares memory with what it was made from."""
    if p._interp is not None and p._interp.kind == "reverse" and root_of(p) is not p:
        p._value = Tensor(payload)
    else:
        assign(p, Tensor(payload), what)
        if p._meta is not None and p._meta.base is None:
            p._meta.pinned = False  # the family has moved to memory that nobody saved
