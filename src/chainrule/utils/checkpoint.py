"""Checkpointing: forget what a part of the program saved, and compute it again when backward comes by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.dispatch import GRAD_MODE
from ..core.op import Op
from ..core.reverse import Node, Pick, Reverse, _count, walk_back
from ..core.tensor import Tensor
from ..core.tree import flatten, unflatten
from ..core.views import pin
from ..ops.random import default_generator

__all__ = ["checkpoint", "checkpoint_sequential"]


class _Again(Op):
    """Stands for a whole call on the tape; its reverse rule runs the call again and walks back through that."""

    def __init__(self, run: Callable[[], list[Any]], level: Reverse, edge: list[Node], places: list[int]) -> None:
        self.name = "checkpoint"
        self.run, self.level, self.edge, self.places = run, level, edge, places
        self.sparse_vjp = True
        self.differentiable, self.integer_outputs = True, frozenset()

    def pull(self, g: Any, y: Any, xs: Any, kw: Any, need: list[bool]) -> list[Any]:
        alive, self.level.alive = self.level.alive, True
        mode = GRAD_MODE.set(True)
        try:
            ys = self.run()
        finally:
            GRAD_MODE.reset(mode)
            self.level.alive = alive
        starts = [(ys[i]._aux, gi) for i, gi in zip(self.places, g, strict=True) if gi is not None]
        rewrap = self.level if any(gi is not None and gi._interp is self.level for gi in g) else None
        got = walk_back(starts, wanted=self.edge, rewrap=rewrap)
        return [got.get(n) for n in self.edge]


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, context_fn: Any = None,
               determinism_check: str = "default", debug: bool = False, preserve_rng_state: bool = True, early_stop: bool = True,
               **kw: Any) -> Any:  # fmt: skip
    """``function(*args)``, keeping nothing but its inputs for backward; it runs again when backward needs it.

    Works under every transform and for tensors the function captures. Random numbers are drawn alike both times.

    >>> x = chainrule.tensor(2.0)
    >>> chainrule.func.grad(lambda x: checkpoint(lambda v: v.sin() * v, x))(x)
    tensor(0.0770)
    """
    state = default_generator.get_state() if preserve_rng_state else None
    held, spec = flatten((args, kw))
    held = [pin(a) if isinstance(a, Tensor) else a for a in held]

    def run() -> Any:
        a, k = unflatten(held, spec)
        return function(*a, **k)

    start = _count()
    out = run()
    ys, yspec = flatten(out)
    level = max(
        (y._interp for y in ys if isinstance(y, Tensor) and y._interp is not None), key=lambda i: i.level, default=None
    )
    if not isinstance(level, Reverse):
        return out
    places = [i for i, y in enumerate(ys) if isinstance(y, Tensor) and y._interp is level and y._aux.seq > start]
    edge = _edge([ys[i]._aux for i in places], start)
    if not places or not edge:
        return out

    def again() -> list[Any]:
        if state is None:
            return flatten(run())[0]
        now = default_generator.get_state()
        default_generator.set_state(state)
        try:
            return flatten(run())[0]
        finally:
            default_generator.set_state(now)

    node = Node(_Again(again, level, edge, places), (), None, tuple(edge), {}, (None,) * len(edge))
    node.nout = len(places)
    node.outs = [(tuple(ys[i].shape), ys[i].dtype) for i in places]
    for k, i in enumerate(places):
        ys[i] = Tensor(ys[i]._value, level, Pick(node, k))
    return unflatten(ys, yspec)


def _edge(nodes: list[Node], start: int) -> list[Node]:
    """The nodes made before `start` that these depend on."""
    seen: set[Any] = {None}
    edge: list[Node] = []
    stack = list(nodes)
    while stack:
        n = stack.pop()
        if n in seen:
            continue
        seen.add(n)
        if n.seq < start:
            edge.append(n)
        else:
            stack.extend(n.parents)
    return edge


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kw: Any
) -> Any:
    """Run modules one after the other, each of `segments` groups under a checkpoint."""
    fs = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = -(-len(fs) // segments)

    def group(part: list[Any]) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for f in part:
                x = f(x)
            return x

        return run

    for a in range(0, len(fs), size):
        input = checkpoint(group(fs[a : a + size]), input, use_reentrant=use_reentrant, **kw)
    return input
