"""What reverse mode of a loop keeps of each step beside what is carried: the results of products and the like, which are dear to compute again.

The body's reverse program computes forward values again from what is carried. Those that the way back reads, and that rest on a
product, a factorization or whatever is neither pointwise nor a view, are stacked by the loop forward instead. What loops inside of the
body give is never kept: it is by them that checkpoints save memory.
"""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .graph import Graph, Node, Var, replay
from .program import Program, silent
from .simplify import common, dead

VIEWS = {
    "reshape",
    "expand",
    "permute",
    "slice",
    "unslice",
    "unsum",
    "alias",
    "detach",
    "clone",
    "diagonal",
    "flip",
    "to",
    "cat",
    "stack",
}
LOOPS = {"scan", "while_loop", "switch", "draw", "jit_call"}
TIMES = 8  # what is kept of a step is no more than so many times what is carried


def kept(body: Program, pull: Program, forward: dict[Var, Var], nc: int, key: Any) -> tuple[Program, Program, int]:
    """The body that also returns what is carried and what is kept, the reverse program that reads it, and how many values that is.

    `forward` says which inputs of the reverse program are which of the body.
    """
    found = body._derived.get(key)
    if found is None:
        found = body._derived[key] = _split(body, pull, forward, nc)
    return found


def _split(body: Program, pull: Program, forward: dict[Var, Var], nc: int) -> tuple[Program, Program, int]:
    g, p = body.graph, pull.graph
    known: set[Var] = set(forward)
    heavy: set[Var] = set()
    looped: set[Var] = set()
    first: list[Node] = []
    for n in p.nodes:
        ins = [a for a in n.args if isinstance(a, Var) and a.value is None]
        if n.op.effect or n.cut or not known.issuperset(ins):
            continue
        first.append(n)
        known.update(n.outs)
        if n.op.name in LOOPS or not looped.isdisjoint(ins):
            looped.update(n.outs)
        elif not heavy.isdisjoint(ins) or (n.op.form != "pointwise" and n.op.name not in VIEWS):
            heavy.update(n.outs)
    mine = set(first)
    reads = dict.fromkeys([a for n in p.nodes if n not in mine for a in n.args if isinstance(a, Var)] + p.outputs)
    limit = TIMES * sum(v.size for v in g.inputs[:nc])
    stacked = [v for v in reads if v in heavy and v not in looped and v.size <= limit]
    while stacked and sum(v.size for v in stacked) > limit:
        stacked.remove(max(stacked, key=lambda v: v.size))
    # Forward: the body's nodes, and those of the reverse program that lead to what is kept, as one graph.
    extra = [_moved(n, forward) for n in first]
    whole = dead(Graph(g.inputs, [*g.nodes, *extra], [*g.outputs, *g.inputs[:nc], *stacked]))
    there = Program(silent(common(whole)), body.name)  # the loop itself runs too, and prints
    there.examples, there.base = body.examples, body
    # Back: what is kept is read.
    new = {v: Var(v.shape, v.dtype) for v in stacked}
    nodes = [_moved(n, new) for n in p.nodes]
    back = Program(dead(Graph([*p.inputs, *new.values()], nodes, [new.get(v, v) for v in p.outputs])), pull.name)
    shown = replay(Graph(g.inputs, whole.nodes, stacked), [Tensor(x) for x in body.examples]) if stacked else []
    back.examples = [*pull.examples, *[x._value for x in shown]]
    return there, back, len(stacked)


def _moved(n: Node, swap: dict[Var, Var]) -> Node:
    if not any(isinstance(a, Var) and a in swap for a in n.args):
        return n
    new = Node(n.op, [swap.get(a, a) if isinstance(a, Var) else a for a in n.args], n.kw, n.cut)
    new.outs, new.several, new.place = n.outs, n.several, n.place
    return new
