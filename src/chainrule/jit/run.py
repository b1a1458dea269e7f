"""How a program runs on arrays: the simplified graph, op by op. This is what compiled code is compared with, and its fallback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import may_share_memory, ndarray

from ..core.dispatch import STACK
from ..core.tensor import Tensor
from .graph import Graph, replay


def compiled(graph: Graph, name: str) -> Callable[..., Any]:
    """The function from arrays to a tuple of arrays."""
    return replayed(graph)


def replayed(graph: Graph) -> Callable[..., Any]:
    """The graph replayed op by op."""
    constants = [c.value for c in graph.constants()]

    def run(*xs: Any) -> tuple[Any, ...]:
        token = STACK.set(())  # the graph is all there is: no level around has a say in it
        try:
            return own([y._value for y in replay(graph, [Tensor(x) for x in xs])], [*xs, *constants])
        finally:
            STACK.reset(token)

    return run


def own(ys: list[ndarray], others: list[ndarray]) -> tuple[ndarray, ...]:
    """Results with memory of their own: none shows what an argument, a constant or another result holds."""
    out: list[ndarray] = []
    for y in ys:
        if any(y is x or (y.size and may_share_memory(y, x)) for x in (*others, *out)) or 0 in y.strides:
            y = y.copy()
        out.append(y)
    return tuple(out)
