"""Random numbers of recorded functions.

A derivative of a compiled part computes its forward values again, or runs beside them: numbers drawn inside of it would be other
numbers. So what is drawn is an input of that part: of a loop's body as a stack with a slice for each step (:func:`apart`), of a
function that somebody differentiates or maps as values drawn before the call (:func:`before`). Bodies of which that cannot be said
(how often a ``while`` draws is not known) have no compiled derivative: the function then runs without jit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.declare import op
from ..core.dispatch import active_vmaps
from ..core.tensor import Tensor
from ..ops.random.generator import draw, draw_p, seed_p, set_state_p, state_p
from .graph import Graph, Node, Var
from .record import NotRecorded


@op("draw_steps", on_tensors=True, differentiable=False)
def draw_steps_p(*, draws: tuple[dict[str, Any], ...], length: int, reverse: bool) -> Any:
    """What `draws` gives in each of `length` steps, stacked; the numbers are those of a loop that draws them in every step."""
    from ..ops.shape.slices import stack

    rows: list[list[Any]] = [[] for _ in range(_count(draws))]
    order = range(length - 1, -1, -1) if reverse else range(length)
    for _ in order:
        at = 0
        for d in draws:
            got = draw_steps_p.spec(**d) if "draws" in d else (draw(d["name"], d["shape"], d["sample"], d["source"]),)
            for v in got:
                rows[at].append(v)
                at += 1
    if reverse:
        for r in rows:
            r.reverse()
    if not length:
        return tuple([Tensor(np.zeros((0, *v.shape), v.dtype)) for v in sampled(draws)])
    if active_vmaps():
        return tuple([stack(r) for r in rows])
    return tuple([Tensor(np.stack([v._value for v in r])) for r in rows])


draw_steps_p.effect = True
RANDOM = (draw_p, draw_steps_p, seed_p, state_p, set_state_p)


def _count(draws: tuple[dict[str, Any], ...]) -> int:
    return sum(_count(d["draws"]) if "draws" in d else 1 for d in draws)


def _parts(kw: dict[str, Any]) -> list[Any]:
    """The programs among the static data of a loop or branch that draw."""
    return [p for v in kw.values() for p in (v if type(v) is tuple else (v,)) if getattr(p, "draws", False) is True]


def sources(kw: dict[str, Any]) -> list[Any]:
    """The generators that an op with these static data goes to."""
    if "source" in kw:
        return [kw["source"]]
    if "draws" in kw:
        return [s for d in kw["draws"] for s in sources(d)]
    return [s for p in _parts(kw) for n in p.graph.nodes for s in sources(n.kw)]


@contextmanager
def untouched(kw: dict[str, Any]) -> Iterator[None]:
    """What an op with these static data does to generators is undone: the call that follows a recording is the one that draws."""
    states = [(g, g.bytes()) for g in sources(kw)]
    try:
        yield
    finally:
        for g, state in states:
            g.set_bytes(state)


def sampled(draws: tuple[dict[str, Any], ...]) -> list[np.ndarray]:
    """One step's numbers, for their shapes and types."""
    out: list[np.ndarray] = []
    for d in draws:
        if "draws" in d:
            out += [np.broadcast_to(v, (d["length"], *v.shape)) for v in sampled(d["draws"])]
        else:
            out.append(np.asarray(d["sample"](d["source"].rng, d["shape"])))
    return out


def is_random(n: Node) -> bool:
    """Whether a node draws, or does something to a generator; a loop or branch inside it may."""
    return n.op in RANDOM or bool(_parts(n.kw))


def refuse(*programs: Any) -> None:
    """Leave the function without jit where a derivative of what draws was asked for."""
    if any(p.draws for p in programs):
        raise NotRecorded("the derivative of a loop or branch that draws random numbers")


def apart(graph: Graph) -> tuple[list[Node], Graph] | None:
    """The nodes that draw, and the graph without them, whose last inputs are their results; None where they are not apart from the rest."""
    nodes = [n for n in graph.nodes if is_random(n)]
    own = {v for n in nodes for v in n.outs}
    if any(
        n.op not in RANDOM or any(isinstance(a, Var) and a.value is None and a not in own for a in n.args)
        for n in nodes
    ):
        return None
    rest = [n for n in graph.nodes if n.op not in RANDOM]
    return nodes, Graph([*graph.inputs, *[v for n in nodes for v in n.outs]], rest, graph.outputs)


def drawn(nodes: list[Node]) -> list[Any]:
    """The results of nodes that draw, here and now."""
    made: dict[Var, Any] = {}
    for n in nodes:
        args = [(made[a] if a in made else Tensor(a.value)) if isinstance(a, Var) else a for a in n.args]
        y = n.op.bind(*args, **n.kw)
        made.update(zip(n.outs, y if n.several else (y,), strict=True))
    return list(made.values())
