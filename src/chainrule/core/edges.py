"""Places in the graph of the imperative style, and the backward that is running."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple

from .reverse import Node, Pick, edge_of
from .tensor import Tensor
from .walk import _towards, reachable


class GradientEdge(NamedTuple):
    """A result of a node: what ``grad`` and ``backward`` take in place of the tensor, which need not be alive."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge at which the gradient of a tensor arrives."""
    if not tensor._recorded:
        raise RuntimeError(
            "get_gradient_edge: It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    x = tensor
    while x._interp.kind != "reverse":  # type: ignore[union-attr]
        x = x._value
    node, k = edge_of(x._aux)
    return GradientEdge(node, k, x._aux if type(x._aux) is Pick else None)


def node_at(edge: GradientEdge) -> Node:
    """The node on the tape that stands for an edge."""
    return edge.ownership_token or (Pick(edge.node, edge.output_nr) if edge.output_nr else edge.node)


_number = itertools.count().__next__


class Task:
    """A backward that is running: its number, and the nodes it will visit."""

    __slots__ = ("_visits", "callbacks", "number", "starts", "wanted")

    def __init__(self, starts: list[Node], wanted: list[Node] | None) -> None:
        self.number, self.starts, self.wanted = _number(), starts, wanted
        self._visits: set[Node] | None = None
        self.callbacks: list[Callable[[], Any]] | None = None

    def finish(self) -> None:
        """Run what was to be called at the end, and what that asks for in turn."""
        token = TASK.set(self)
        try:
            for f in self.callbacks or ():  # may grow while it is walked
                f()
        finally:
            TASK.reset(token)

    def reaches(self, node: Node) -> bool:
        """Whether a cotangent comes to a node."""
        if self._visits is None:
            w = self.wanted
            self._visits = (
                set(reachable(dict.fromkeys(self.starts))) if w is None else _towards(self.starts, set(w), False)[1]
            )
        return node in self._visits


class Engine:
    """What PyTorch calls the execution engine: one can ask it to call something when backward ends."""

    @staticmethod
    def queue_callback(f: Callable[[], Any]) -> None:
        """Call `f` when the backward that is running has added all gradients."""
        task = TASK.get()
        if task is None:
            raise RuntimeError("queue_callback: Final callbacks can only be installed during backward pass.")
        task.callbacks = [] if task.callbacks is None else task.callbacks
        task.callbacks.append(f)


TASK: ContextVar[Task | None] = ContextVar("chainrule_backward", default=None)
