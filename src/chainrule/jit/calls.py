"""A call of a recorded function: its program on the tensors as they are now, and what it writes to them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..core.dispatch import CUT, STACK, grad_cut, innermost
from ..core.reverse import Leaf
from ..core.tensor import Tensor
from ..core.tree import unflatten
from ..core.views import assign, meta
from .hand_over import hand_over, release
from .holds import gradient
from .memory import Places, apart


def is_imperative(x: Tensor) -> bool:
    """Whether a tensor is a leaf of the imperative style, or depends on one."""
    i = x._interp
    return i is not None and i.kind == "reverse" and (i.level == 0 or i.level % 1 != 0) and type(x._aux) is Leaf


def _walks_back(y: Tensor) -> bool:
    """Whether `y` belongs to a level of reverse mode; forward mode, a tape that it walks too, sees what no_grad hides."""
    i: Any = y._interp
    return i is not None and i.kind == "reverse" and not i.keep_all


def _stripped(y: Tensor) -> Tensor:
    while _walks_back(y):
        y = y._value
    return y


def _is_free(x: Tensor) -> bool:
    """Whether a plain tensor's memory is nobody's but its own and that of its views."""
    m = x._meta
    return x._interp is None and (m is None or (m.base is None and not m.pinned))


def call(r: Any, leaves: list[Any]) -> Any:
    """What the function returns, from its recording, after what it writes."""
    given = [x for x in leaves if isinstance(x, Tensor)]
    boxes = _boxes(r, given)
    free = [x for x in (*given, *boxes) if _is_free(x)] if r.spent else []
    token = CUT.set(grad_cut(True)) if r.opens else None  # what it does not open is marked in the graph
    try:
        ys = r.program(*given, *boxes, *r.foreign)
    finally:
        if token is not None:
            CUT.reset(token)
    now = {id(b): t for b, t in zip(r.boxes, boxes, strict=True) if t is not b}
    results = [_stripped(y) if p else y for y, p in zip(ys, r.plain([*given, *boxes, *r.foreign]), strict=True)]
    if r.spent and release(r, results, given):
        for leaf in free:  # nobody keeps what the call's node kept
            if leaf._meta is not None:
                leaf._meta.pinned = False
    del ys  # whoever holds a result holds what a walk back from it needs
    for target, what, k in r.writes:
        x: Any = given[target] if isinstance(target, int) else now.get(id(target), target)
        if what == "value":
            _write(x, results[k])
        elif what == "new":
            own = results[k].clone()  # a state may be written to in place
            x._value, x._interp, x._aux, x._meta = own._value, own._interp, own._aux, None
        elif k < 0:
            x.grad = None
        else:
            meta(x).grad = results[k].detach() if x._interp is not None else results[k]
    out = []
    for kind, v in r.outputs:
        out.append(results[v] if kind == "out" else given[v] if kind == "arg" else now.get(id(v), v))
    return unflatten(out, r.spec)


def _boxes(r: Any, given: list[Any]) -> list[Tensor]:
    """The tensors of the function as they are now: a gradient is the one that its tensor has."""
    return [
        b if x is None else gradient(given[x] if isinstance(x, int) else x)
        for b, x in zip(r.boxes, r.owners, strict=True)
    ]


def overlapping(r: Any, leaves: list[Any]) -> bool:
    """Whether a tensor that the function writes to shares its memory with another input: then the inputs are not independent."""
    given = [x for x in leaves if isinstance(x, Tensor)]
    boxes = _boxes(r, given)
    arrays = [innermost(y) for y in (*given, *boxes)]
    if apart(arrays):
        return False
    places, times = Places(arrays), Counter(map(id, arrays))
    now = {id(b): t for b, t in zip(r.boxes, boxes, strict=True)}
    for target, what, _ in r.writes:
        if what == "value":
            x: Any = given[target] if isinstance(target, int) else now.get(id(target), target)
            a = innermost(x)
            if a.size and (times[id(a)] > 1 or places.shared(a, but=a)):
                return True
    return len({id(x) for x in given}) < len(given)


def _write(x: Any, new: Tensor) -> None:
    """What the function wrote to a tensor shows in it."""
    leaf = is_imperative(x)
    if leaf:
        new = new.detach()
    if not STACK.get() and hand_over(x, new):
        return
    if leaf:
        token = CUT.set(float("inf"))
        try:
            assign(x, new, "jit")
        finally:
            CUT.reset(token)
    else:
        assign(x, new, "jit")
