"""What a compiled function writes to a tensor lies in an array that nobody else has: it becomes the tensor's, instead of being copied.

Only where nobody could tell: who holds the old array, a view of it, or the plain tensor in a leaf, sees every write in the memory that he
knows, and keeps what he saved.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np

from ..core.reverse import Leaf, edge_of
from ..core.tensor import Tensor
from ..core.views import meta


def _others(x: Tensor, origin: Any) -> int:
    """How many hold the array of a plain tensor beside it and what it was made from."""
    a = x._value
    return getrefcount(a) - (origin is not None and origin._value is a)


def _holders(x: Any) -> int:
    inner = x._value
    return getrefcount(inner)


_ALONE, _ONE = _others(Tensor(np.zeros(1)), None), _holders(Tensor(Tensor(np.zeros(1)), object()))


def _unseen(x: Tensor) -> bool:
    """Whether no view shows the memory of a tensor."""
    m = x._meta
    return m is None or (m.base is None and (not m.views or all(w() is None for w in m.views)))


def hand_over(x: Tensor, new: Tensor) -> bool:
    """Let the array of `new`, which is nobody's, be that of `x`, a plain tensor or a leaf; whether that could be done unseen."""
    inner, origin, b = x, None, new._value
    if new._interp is not None or type(b) is not np.ndarray or not _unseen(x):
        return False
    if x._interp is not None:
        if type(x._aux) is not Leaf or x._value._interp is not None or _holders(x) > _ONE:
            return False
        inner = x._value
        origin = inner.__dict__.get("origin")
        # What a Parameter was made from shows the same memory: if only the Parameter still has it, nobody looks.
        if not _unseen(inner) or (origin is not None and (getrefcount(origin) > 3 or not _unseen(origin))):
            return False
    a = inner._value
    if type(a) is not np.ndarray or a.dtype is not b.dtype or a.shape != b.shape or not a.flags.writeable:
        return False
    if not (a.flags.c_contiguous and b.flags.c_contiguous) or (a.base is not None and not hasattr(a.base, "storage")):
        return False
    del a
    if _others(inner, origin) > _ALONE:
        return False
    if inner is x:
        x._value = b
    else:
        x._value = Tensor(b)
    m = meta(x)
    m.version += 1
    m.pinned = False
    return True


# -- graphs that were walked ----------------------------------------------------------------------------------------------------


def _node(y: Any) -> Any:
    """The node of the imperative style that made a tensor; None if there is none."""
    i = y._interp
    if i is None or i.kind != "reverse" or (i.level % 1 == 0 and i.level != 0) or isinstance(y._aux, Leaf):
        return None
    return edge_of(y._aux)[0]


def is_spent(y: Tensor) -> bool:
    """Whether ``backward()`` has freed what a walk from `y` needs: another one is refused."""
    todo, seen = [_node(y)], set()
    while todo:
        n = todo.pop()
        if n is None or id(n) in seen or isinstance(n, Leaf):
            continue
        if n.args is None and n.store is None:
            return True
        seen.add(id(n))
        todo += [edge_of(p)[0] for p in n.parents if p is not None]
    return False


def release(r: Any, results: list[Any], given: list[Any]) -> bool:
    """Free the node of a call of which every result that it made is spent, or loses its derivative where it is written; whether it is."""
    cut = {
        k
        for target, what, k in r.writes
        if what == "grad" or _is_leaf(given[target] if type(target) is int else target)
    }
    nodes = {}
    for k, y in enumerate(results):
        if (n := _node(y)) is not None:
            if k not in r.spent and k not in cut:
                return False
            nodes[id(n)] = n
    for n in nodes.values():
        n.release()
    return True


def _is_leaf(x: Any) -> bool:
    return type(x._aux) is Leaf
