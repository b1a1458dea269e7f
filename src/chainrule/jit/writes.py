"""Writes that change a value and not its history, as an op: what ``no_grad`` and ``detach`` hide from a derivative taken later."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.declare import op as declare_op
from .graph import Graph, Node, Var
from .simplify import bodies, simplify


@declare_op("write_past", batch="expand")
def write_past_p(x: Any, new: Any, *, forward: bool) -> Any:
    """`new`, which a reverse pass takes for `x`.

    Forward mode is not concerned by ``no_grad`` and goes with `new`; what was written to a detached view (``forward=False``) has the
    tangent of `x` as well.
    """
    return np.array(np.broadcast_to(new, np.broadcast_shapes(x.shape, new.shape)))


@write_past_p.jvp(sparse=True)
def _(ts: Any, y: Any, x: Any, new: Any, *, forward: bool) -> Any:
    t, past = ts[1] if forward else ts[0], ts[0]
    return t if not forward or t is None or past is None else write_past_p.bind(past, t, forward=True)


@write_past_p.vjp
def _(g: Any, y: Any, x: Any, new: Any, *, forward: bool) -> Any:
    return g, None


def values_alone(g: Graph) -> Graph:
    """The graph for whoever asks for values and no derivatives: what is written is what is there, and ``no_grad`` means nothing."""
    if not _speaks_of_history(g):
        return g
    swap: dict[Var, Any] = {}
    nodes: list[Node] = []
    for n in g.nodes:
        args = [swap.get(a, a) if isinstance(a, Var) else a for a in n.args]
        y = n.outs[0]
        if n.op is write_past_p or n.op.name == "overwrite":
            new = args[1]
            if isinstance(new, Var) and new.shape == y.shape and new.dtype == y.dtype:
                swap[y] = new
                continue
        m = Node(n.op, args, {k: _inside(v) for k, v in n.kw.items()})
        m.outs, m.several, m.place = n.outs, n.several, n.place
        nodes.append(m)
    return simplify(Graph(g.inputs, nodes, [swap.get(v, v) for v in g.outputs]))


def _speaks_of_history(g: Graph) -> bool:
    return any(
        n.cut or n.op is write_past_p or n.op.name == "overwrite" or any(map(_speaks_of_history, bodies(n)))
        for n in g.nodes
    )


def _inside(v: Any) -> Any:
    """The same for the programs in a node's static data: bodies of loops and branches."""
    from .program import Program

    if isinstance(v, tuple) and any(isinstance(p, Program) for p in v):
        return tuple(map(_inside, v))
    if not isinstance(v, Program) or not _speaks_of_history(v.graph):
        return v
    new = Program(values_alone(v.graph), v.name)
    new.examples = v.examples
    return new
