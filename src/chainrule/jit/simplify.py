"""Passes over a graph that need no thought of code: what is dead, what is computed twice, what does nothing.

Each is a function from graph to graph; replaying the result gives what replaying the argument gave.
"""

from __future__ import annotations

from math import frexp
from typing import Any

import numpy as np

from .graph import Graph, Node, Var, constant

_SAME_SHAPE = {"reshape", "expand"}
_SAME = {"alias"}
_LOOPS = {"scan", "while_loop", "switch"}


def simplify(g: Graph) -> Graph:
    """All passes, in order."""
    return dead(scalings(identities(common(dead(at_rest(g))))))


def dead(g: Graph) -> Graph:
    """Without the nodes whose results nobody reads; those with an effect stay."""
    live: set[Var] = set(g.outputs)
    kept: list[Node] = []
    for n in reversed(g.nodes):
        if has_effect(n) or not live.isdisjoint(n.outs):
            kept.append(n)
            live.update(a for a in n.args if isinstance(a, Var))
    kept.reverse()
    return Graph(g.inputs, kept, g.outputs)


def at_rest(g: Graph) -> Graph:
    """Without reading and returning the states of generators from which nothing is drawn in between, as checkpoints do."""
    if not any(n.op.name == "generator_state" for n in g.nodes):
        return g
    now: dict[int, Var] = {}  # the state that each generator is known to be in
    swap: dict[Var, Var] = {}
    nodes: list[Node] = []
    for n in g.nodes:
        n = _with_args(n, swap)
        name, source = n.op.name, id(n.kw.get("source"))
        if name == "generator_state":
            if source in now:
                swap[n.outs[0]] = now[source]
                continue
            now[source] = n.outs[0]
        elif name == "generator_set_state":
            state = n.args[0]
            if now.get(source) is state:
                continue
            if isinstance(state, Var):
                now[source] = state
        elif name in ("draw", "generator_seed"):
            now.pop(source, None)
        elif has_effect(n):  # a loop may draw from any
            now.clear()
        nodes.append(n)
    kept = _rewired(g, swap, nodes)
    read = {a for n in nodes for a in n.args if isinstance(a, Var)} | set(kept.outputs)
    return Graph(g.inputs, [n for n in nodes if n.op.name != "generator_state" or n.outs[0] in read], kept.outputs)


def has_effect(n: Node) -> bool:
    """Whether a node must run even where nobody reads its result: it prints or checks, or a loop or branch inside it does."""
    if n.op.effect:
        return True
    return any(has_effect(m) for g in bodies(n) for m in g.nodes)


def bodies(n: Node) -> list[Graph]:
    """The graphs inside a node: bodies of loops, and branches."""
    inner = [n.kw[k] for k in ("body", "test", "branches") if k in n.kw] if n.op.name in _LOOPS else []
    return [p.graph for x in inner for p in (x if isinstance(x, tuple) else (x,))]


def frozen(v: Any) -> Any:
    """A static datum as something to compare and hash; what cannot be is only equal to itself."""
    if isinstance(v, tuple | list):
        return (type(v), *[frozen(x) for x in v])
    if isinstance(v, dict):
        return (dict, *[(k, frozen(x)) for k, x in v.items()])
    if isinstance(v, slice):
        return (slice, frozen(v.start), frozen(v.stop), frozen(v.step))
    if isinstance(v, np.ndarray):
        return (np.ndarray, v.shape, v.dtype.str, v.tobytes()) if v.size <= 4096 else (np.ndarray, id(v))
    if isinstance(v, float | complex):  # 0.0 and -0.0 are equal, and so are 1 and 1.0 and True
        return (type(v), repr(v))
    try:
        hash(v)
    except TypeError:
        return (type(v), id(v))
    return (type(v), v)


def _rewired(g: Graph, swap: dict[Var, Var], nodes: list[Node]) -> Graph:
    return Graph(g.inputs, nodes, [swap.get(v, v) for v in g.outputs])


def _with_args(n: Node, swap: dict[Var, Var]) -> Node:
    if not any(isinstance(a, Var) and a in swap for a in n.args):
        return n
    new = Node(n.op, [swap.get(a, a) if isinstance(a, Var) else a for a in n.args], n.kw, n.cut)
    new.outs, new.several, new.place = n.outs, n.several, n.place
    return new


def common(g: Graph) -> Graph:
    """Nodes with the same op, arguments and static data are one; equal small constants too. Effects are never merged."""
    seen: dict[Any, Node] = {}
    swap: dict[Var, Var] = {}
    constants: dict[Any, Var] = {}
    for c in g.constants():
        if c.value.nbytes <= 4096:
            key = (c.shape, c.dtype.str, c.value.strides, c.value.tobytes())
            first = constants.setdefault(key, c)
            if first is not c:
                swap[c] = first
    nodes: list[Node] = []
    for n in g.nodes:
        n = _with_args(n, swap)
        if has_effect(n):
            nodes.append(n)
            continue
        key = (
            n.op,
            n.cut,
            tuple(id(a) if isinstance(a, Var) else frozen(a) for a in n.args),
            tuple((k, frozen(n.kw[k])) for k in sorted(n.kw)),
        )
        first_node = seen.setdefault(key, n)
        if first_node is n:
            nodes.append(n)
        else:
            swap.update(zip(n.outs, first_node.outs, strict=True))
    return _rewired(g, swap, nodes)


def identities(g: Graph) -> Graph:
    """Without ops that return their argument: reshapes and expansions to the same shape, aliases, x * 1, x / 1, x - 0."""
    swap: dict[Var, Var] = {}
    nodes: list[Node] = []
    for n in g.nodes:
        n = _with_args(n, swap)
        x = _kept(n)
        if x is None and not n.cut:
            x, n = _unit_product(n)
        if x is not None and not n.cut:
            swap[n.outs[0]] = x
        else:
            nodes.append(n)
    return _rewired(g, swap, nodes)


def _kept(n: Node) -> Var | None:
    """The argument that a node returns as it is."""
    if len(n.outs) != 1 or not n.args or n.op.effect:
        return None
    x, y = n.args[0], n.outs[0]
    name = n.op.name
    if isinstance(x, Var) and x.shape == y.shape and x.dtype == y.dtype:
        if name in _SAME or (name in _SAME_SHAPE and len(n.args) == 1):
            return x
        if len(n.args) == 2 and y.dtype.kind == "f":
            b = n.args[1]
            if (name in ("mul", "div") and _is(b, 1)) or (name == "sub" and _is(b, 0)):
                return x
    if name == "mul" and len(n.args) == 2 and isinstance(n.args[1], Var) and _is(x, 1):
        b = n.args[1]
        if b.shape == y.shape and b.dtype == y.dtype and y.dtype.kind == "f":
            return b
    return None


def _unit_product(n: Node) -> tuple[Var | None, Node]:
    """A product with an identity matrix is the other factor, or its transpose, which is what Jacobians of linear maps are made of."""
    y, name = n.outs[0], n.op.name
    if name not in ("matmul", "matvec", "vecmat"):
        return None, n
    a, b = n.args
    if name in ("matmul", "vecmat") and _is_identity(a) and b.shape == y.shape and b.dtype == y.dtype:
        return b, n
    if name == "matmul" and _is_identity(b) and a.shape == y.shape and a.dtype == y.dtype:
        return a, n
    if name == "matvec" and _is_identity(b) and len(a.shape) == 2 and a.dtype == y.dtype:  # each row is a unit vector
        from ..core.op import OPS

        new = Node(OPS["permute"], [a], {"dims": (-1, -2)}, n.cut)
        new.outs, new.place = n.outs, n.place
        y.node = new
        return None, new
    return None, n


def _is_identity(a: Any) -> bool:
    if not isinstance(a, Var) or a.value is None or a.value.ndim != 2 or a.dtype.kind != "f":
        return False
    v = a.value
    n = v.shape[0]
    return v.shape[1] == n and n <= 512 and bool((v.diagonal() == 1).all()) and int(np.count_nonzero(v)) == n


def scalings(g: Graph) -> Graph:
    """x * a * b as x * (a b) where one of the numbers is a power of two: that rounds alike."""
    made: dict[Var, tuple[Var, float]] = {}  # a value as another one times a number
    nodes: list[Node] = []
    for n in g.nodes:
        found = _scaled(n)
        if found is not None:
            x, c = found
            if n.cut:  # what was computed under no_grad is a value of its own: its factor is no part of a derivative
                nodes.append(n)
                continue
            before = made.get(x)
            if before is not None:
                y, b = before
                both = b * c
                if (_power_of_two(b) or _power_of_two(c)) and 1e-30 < abs(both) < 1e30:
                    new = Node(n.op, [y, both], n.kw, n.cut)
                    new.outs, new.place = n.outs, n.place
                    n.outs[0].node = n = new
                    x, c = y, both
            made[n.outs[0]] = (x, c)
        nodes.append(n)
    return Graph(g.inputs, nodes, g.outputs)


def _scaled(n: Node) -> tuple[Var, float] | None:
    """The value and the number that a node multiplies."""
    if n.op.name != "mul" or len(n.args) != 2 or n.kw or n.outs[0].dtype.kind != "f":
        return None
    for x, c in (n.args, n.args[::-1]):
        if isinstance(x, Var) and not x.uniform and x.shape == n.outs[0].shape and x.dtype == n.outs[0].dtype:
            if isinstance(c, int | float) and not isinstance(c, bool):
                return x, float(c)
            if isinstance(c, Var) and c.uniform and c.dtype == x.dtype:
                return x, float(c.value.flat[0])
    return None


def _power_of_two(c: float) -> bool:
    return abs(frexp(c)[0]) == 0.5


def _is(a: Any, number: int) -> bool:
    """Whether an operand is this number, in every element."""
    if not isinstance(a, Var):
        return isinstance(a, int | float) and a == number and not (number == 0 and str(a).startswith("-"))
    if not a.uniform:
        return False
    v = a.value.flat[0]
    return bool(v == number) and not (number == 0 and bool(np.signbit(v)))


__all__ = ["at_rest", "common", "constant", "dead", "frozen", "has_effect", "identities", "scalings", "simplify"]
