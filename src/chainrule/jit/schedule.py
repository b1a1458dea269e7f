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
# In the order in which they are preferred: code waits until there is as much of it as there can be.
KINDS = ("first", "other", "none", "code")


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
    kinds = {**kinds, **dict.fromkeys(_first(g, kinds), "first")}
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
    return _sunk(g, out, kinds)


def _sunk(g: Graph, nodes: list[Node], kinds: dict[Node, str]) -> list[Node]:
    """Pointwise nodes in the part that reads them first, where that keeps no more in memory: their results need no memory there."""
    part: dict[Node, int] = {}
    what: list[str] = []
    for n in nodes:
        if not what or what[-1] != kinds[n]:
            what.append(kinds[n])
        part[n] = len(what) - 1
    first: dict[Var, int] = dict.fromkeys(g.outputs, -1)  # what is returned stays where it is
    for n in reversed(nodes):
        to = min([first.get(v, -1) for v in n.outs], default=-1)
        if kinds[n] == "code" and n.op.form == "pointwise" and to > part[n] and what[to] == "code":
            kept = sum(a.size for a in n.args if isinstance(a, Var) and a.node is not None)
            if kept <= sum(v.size for v in n.outs):
                part[n] = to
        for a in n.args:
            if isinstance(a, Var):
                first[a] = min(first.get(a, part[n]), part[n])
    return sorted(nodes, key=part.__getitem__)


def _first(g: Graph, kinds: dict[Node, str]) -> list[Node]:
    """Code for single numbers from which those of another precision are made (a step more): it does not wait for the rest."""
    numbers: dict[Var, Node] = {}  # what is made of inputs by code for single numbers alone
    out: dict[Node, None] = {}
    for n in g.nodes:
        made = [numbers[a] for a in n.args if isinstance(a, Var) and a in numbers]
        if kinds[n] == "other":
            todo = made
            while todo:
                if (m := todo.pop()) not in out:
                    out[m] = None
                    todo += [numbers[a] for a in m.args if isinstance(a, Var) and a in numbers]
        elif (
            kinds[n] == "code"
            and n.op.form == "pointwise"
            and all(v.size == 1 for v in (*n.args, *n.outs) if isinstance(v, Var))
        ):
            if all(not isinstance(a, Var) or a.node is None or a in numbers for a in n.args):
                numbers.update(dict.fromkeys(n.outs, n))
    return list(out)


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
