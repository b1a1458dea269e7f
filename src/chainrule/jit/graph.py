"""The graph of a recorded function: a list of ops in order, on numbered values. Replaying it with ``op.bind`` is what it means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..core.dispatch import CUT, grad_cut
from ..core.grad_mode import inference_mode
from ..core.tensor import Tensor
from ..core.views import pin

ALL = 2  # of a node: no derivative is seen around it; 1 says so of reverse mode alone


class Var:
    """A value of a graph: its shape and type, and the node that makes it (None for inputs and constants)."""

    __slots__ = ("_uniform", "dtype", "index", "node", "shape", "strides", "value")

    def __init__(self, shape: tuple[int, ...], dtype: Any, node: Node | None = None, index: int = 0) -> None:
        self.shape, self.dtype, self.node, self.index = shape, dtype, node, index
        self.value: Any = None  # the array of a constant
        self._uniform: bool | None = None
        self.strides: tuple[int, ...] | None = None  # without jit, in elements; where somebody asked (see layouts.py)

    @property
    def uniform(self) -> bool:
        """Whether this is a constant with one number everywhere; looked at once."""
        if self._uniform is None:
            self._uniform = self.value is not None and _one_number(self.value)
        return self._uniform

    @property
    def size(self) -> int:
        n = 1
        for s in self.shape:
            n *= s
        return n

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def _one_number(a: np.ndarray) -> bool:
    if a.size == 0:
        return False
    if a.size == 1 or not any(a.strides):
        return True
    first = a.flat[0]
    few = a[tuple(slice(None, None, max(1, n // 4)) for n in a.shape)]
    return bool((few == first).all()) and bool((a == first).all())


class Node:
    """One op: its arguments (values of the graph, or numbers), its static data and its results."""

    __slots__ = ("args", "cut", "kw", "op", "outs", "place", "several")

    def __init__(self, op: Any, args: Sequence[Any], kw: dict[str, Any], cut: int = 0) -> None:
        self.op, self.args, self.kw, self.cut = op, tuple(args), kw, cut  # the grad mode: 0, 1 or ALL
        self.outs: tuple[Var, ...] = ()
        self.several = False
        self.place: Any = None  # where the user wrote it

    def results(self, ys: Any) -> None:
        """Make the values that stand for the results `ys` (payloads)."""
        self.several = type(ys) is tuple
        self.outs = tuple(Var(y.shape, y.dtype, self, i) for i, y in enumerate(ys if self.several else (ys,)))

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.outs}>"


class Graph:
    """A function as inputs, nodes in order, and outputs."""

    def __init__(self, inputs: list[Var], nodes: list[Node], outputs: list[Var]) -> None:
        self.inputs, self.nodes, self.outputs = inputs, nodes, outputs
        self._last: list[list[Var]] | None = None

    def constants(self) -> list[Var]:
        """The constants that nodes and outputs read, each once."""
        seen: dict[Var, None] = {}
        for v in [*(a for n in self.nodes for a in n.args), *self.outputs]:
            if isinstance(v, Var) and v.value is not None:
                seen[v] = None
        return list(seen)

    def last_uses(self) -> list[list[Var]]:
        """For each node the values that nobody reads after it."""
        if self._last is None:
            kept = {*self.outputs}
            out: list[list[Var]] = [[] for _ in self.nodes]
            for i in range(len(self.nodes) - 1, -1, -1):
                n = self.nodes[i]
                for v in (*n.args, *n.outs):
                    if isinstance(v, Var) and v.value is None and v not in kept:
                        kept.add(v)
                        out[i].append(v)
            self._last = out
        return self._last

    def text(self) -> str:
        """The graph to read: one line a node."""
        names = {v: f"x{i}" for i, v in enumerate(self.inputs)}
        names |= {v: f"c{i}" for i, v in enumerate(self.constants())}
        lines = [f"inputs   {', '.join(f'{names[v]}: {v!r}' for v in self.inputs)}"]
        lines += [f"constant {names[v]}: {v!r}" for v in self.constants()]
        count = 0
        for n in self.nodes:
            for v in n.outs:
                names[v] = f"v{count}"
                count += 1
            left = ", ".join(f"{names[v]}: {v!r}" for v in n.outs)
            args = ", ".join(names[a] if isinstance(a, Var) else repr(a) for a in n.args)
            static = "".join(f", {k}={_short(v)}" for k, v in n.kw.items())
            lines.append(f"  {left} = {n.op.name}({args}{static})")
        lines.append(f"outputs  {', '.join(names[v] for v in self.outputs)}")
        return "\n".join(lines)


def _short(v: Any) -> str:
    if isinstance(v, np.ndarray):
        return f"<array {list(v.shape)}>"
    text = repr(v)
    return text if len(text) < 60 else text[:57] + "..."


def constant(a: Any) -> Var:
    """An array as a value of a graph."""
    v = Var(a.shape, a.dtype)
    v.value = a
    return v


def shielded(args: list[Any]) -> list[Any]:
    """The arguments of a user's body: a write to one goes to a copy, for others have the same memory."""
    return [pin(a, True) if isinstance(a, Tensor) and a._interp is None else a for a in args]


def replay(graph: Graph, inputs: Iterable[Any]) -> list[Any]:
    """The outputs of the graph on tensors of any level: every op runs once, in order."""
    env: dict[Var, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for node, done in zip(graph.nodes, graph.last_uses(), strict=True):
        args = [(env[a] if a.value is None else Tensor(a.value)) if a.__class__ is Var else a for a in node.args]
        if node.op.writes:
            args = shielded(args)
        if node.cut == ALL:
            with inference_mode():
                y = (node.op.anew or node.op.bind)(*args, **node.kw)
        elif node.cut:
            token = CUT.set(grad_cut(False))
            try:
                y = (node.op.anew or node.op.bind)(*args, **node.kw)
            finally:
                CUT.reset(token)
        else:
            y = (node.op.anew or node.op.bind)(*args, **node.kw)
        if node.several:
            env.update(zip(node.outs, y, strict=True))
        else:
            env[node.outs[0]] = y
        for v in done:
            env.pop(v, None)
    return [env[v] if v.value is None else Tensor(v.value) for v in graph.outputs]
