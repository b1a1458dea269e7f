"""The order in which nodes run: those with code of one kind together, so that a function falls into few parts.

Single numbers of another precision than the function's (the coefficients of an optimiser, the steps that it has counted) are a kind of their
own: their part computes in theirs, whatever it reads and writes.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from heapq import heappop, heappush
from typing import Any

import numpy as np

from ..core.op import OPS
from .elements import element, kinds_of
from .graph import Graph, Node, Var
from .simplify import has_effect

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
KINDS = (
    "other",
    "none",
    "code",
)  # in the order in which they are preferred: code waits until there is as much of it as there can be


def of_one_type(g: Graph) -> Graph:
    """A number in double precision beside an array of float32 counts as one of its type: a node of its own makes it one."""
    made: dict[Var, Var] = {}
    nodes: list[Node] = []
    for n in g.nodes:
        if (
            n.op.form == "pointwise"
            and not n.several
            and n.op.name not in ("to", "to_int")
            and n.outs[0].dtype == SINGLE
        ):
            args = list(n.args)
            for i, a in enumerate(args):
                if isinstance(a, Var) and a.dtype == DOUBLE and a.shape == () and a.value is None:
                    if a not in made:
                        to = Node(OPS["to"], [a], {"dtype": SINGLE})
                        to.outs = (Var((), SINGLE, to),)
                        nodes.append(to)
                        made[a] = to.outs[0]
                    args[i] = made[a]
            if any(a is not b for a, b in zip(args, n.args, strict=True)):
                m = Node(n.op, args, n.kw)
                m.outs, m.place = n.outs, n.place
                n = m
        nodes.append(n)
    return Graph(g.inputs, nodes, g.outputs)


def _is_number(n: Node, dtype: np.dtype) -> bool:
    """Whether a node computes one number of this type from such numbers."""
    if (
        n.several
        or n.cut
        or n.op.form != "pointwise"
        or any(v.size != 1 for v in (*n.args, *n.outs) if isinstance(v, Var))
    ):
        return False
    same = all(v.dtype == dtype for v in (*n.args, *n.outs) if isinstance(v, Var))
    return same and n.op.name not in ("to", "to_int") and element(n, kinds_of(n)) is not None


def _converts(n: Node) -> bool:
    """Whether a node makes a number of one of the two types one of the other."""
    return n.op.name == "to" and all(
        isinstance(v, Var) and v.size == 1 and v.dtype in (SINGLE, DOUBLE) for v in (*n.args, *n.outs)
    )


def kind(n: Node, compute: np.dtype) -> str:
    """Which kind of part a node belongs to: "code" of the function's type, numbers of the "other" type, or "none"."""
    from .lower import can_render

    if can_render(n, compute):
        return "code"
    other = DOUBLE if compute == SINGLE else SINGLE
    if _converts(n):  # where both types have room
        return "other" if other == DOUBLE else "code"
    return "other" if _is_number(n, other) else "none"


def ordered(g: Graph, kinds: dict[Node, str]) -> list[Node]:
    """The nodes in an order in which neighbours are of one kind as long as possible; effects stay in theirs."""
    readers: dict[Node, list[int]] = {n: [] for n in g.nodes}
    waits = [0] * len(g.nodes)
    made = {v: n for n in g.nodes for v in n.outs}
    last: Any = None
    for i, n in enumerate(g.nodes):
        before = {made[a] for a in n.args if isinstance(a, Var) and a in made}
        if has_effect(n) or n.op.name == "draw":
            if last is not None:
                before.add(last)
            last = n
        waits[i] = len(before)
        for m in before:
            readers[m].append(i)
    ready: dict[str, list[int]] = {k: [] for k in KINDS}
    for i, n in enumerate(g.nodes):
        if not waits[i]:
            heappush(ready[kinds[n]], i)
    out: list[Node] = []
    while len(out) < len(g.nodes):
        now = ready[next(k for k in KINDS if ready[k])]
        while now:
            n = g.nodes[heappop(now)]
            out.append(n)
            for j in readers[n]:
                waits[j] -= 1
                if not waits[j]:
                    heappush(ready[kinds[g.nodes[j]]], j)
    return out


def power_of(c: float) -> Any:
    """``c ** x`` for a positive number c: the product in the exponent is exact where x is a whole number of a size that steps have."""
    with localcontext(prec=40):
        exact = Decimal(c).ln()
    head, exponent = math.frexp(float(exact))
    high = math.ldexp(round(math.ldexp(head, 26)), exponent - 26)
    with localcontext(prec=40):
        low = float(exact - Decimal(high))

    def f(k: Any, base: Any, x: Any) -> Any:
        from ..kernels.pointwise import OPS as functions

        return functions["exp"](k, x * high) * functions["exp"](k, x * low)

    return f
