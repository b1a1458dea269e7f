"""A recorded function as one op: its rules are recordings of the replayed graph's tangents, cotangents and batches.

So ``grad(jit(f))``, ``jvp`` and ``vmap`` of it run compiled as well, to any order. Inside another recording the op is replayed, and so
becomes a part of that one.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from sys import getrefcount
from types import FrameType
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.batching import Batching
from ..core.derive import jvp_through, vjp_through
from ..core.dispatch import CUT, active_vmaps, living, recorder
from ..core.errors import Unfit
from ..core.op import Op
from ..core.shapes import zeros_like_tensor
from ..core.tensor import Tensor
from ..core.views import grow
from .draws import apart, drawn, is_random
from .graph import Graph, Node, Var, replay
from .record import JitError, NotRecorded, Recorder, example, faithful
from .simplify import simplify


class Program:
    """A graph that runs, and its derivatives, made when they are asked for."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name
        self._derived: dict[Any, Any] = {}
        self.base: Program | None = None  # the same without further outputs
        self.examples: list[np.ndarray] = []  # of the inputs, where the program is a part of another
        self._lock = threading.RLock()
        self.draws = any(map(is_random, graph.nodes))
        self._apart: tuple[list[Node], Program] | None = None
        self._run: Callable[..., Any] | None = None

    def __call__(self, *xs: Any) -> tuple[Any, ...]:
        """The outputs on tensors of any level."""
        if self.draws and recorder() is None and (active_vmaps() or any(x._interp is not None for x in xs)):
            if (parts := self.apart()) is not None:
                nodes, rest = parts
                return CALL.bind(*xs, *drawn(nodes), program=rest)
            raise NotRecorded("the derivative of a loop or branch that draws random numbers")
        return CALL.bind(*xs, program=self)

    def apart(self) -> tuple[list[Node], Program] | None:
        """The nodes that draw, and the program that takes what they gave; None where they depend on the rest."""
        if self._apart is None and (parts := apart(self.graph)) is not None:
            self._apart = parts[0], Program(parts[1], self.name)
        return self._apart

    def arrays(self, *xs: Any) -> tuple[np.ndarray, ...]:
        """The outputs on arrays."""
        run = self._run
        if run is None:
            from .run import compiled

            with self._lock:
                run = self._run = self._run or compiled(self.graph, self.name)
        return run(*xs)

    def derived(self, key: Any, f: Callable[..., Any], xs: list[Any]) -> Any:
        """``f(*xs)`` from a recording made when first asked for. f returns tensors, or None for what is zero."""
        try:
            program, pattern = self.made(key, f, xs)
        except NotRecorded:
            return tuple(f(*xs))
        try:
            it = iter(program(*xs))
        except Unfit:  # compiled for distinct eigenvalues, say
            return tuple(f(*xs))
        return tuple([next(it) if p else None for p in pattern])

    def made(self, key: Any, f: Callable[..., Any], xs: list[Any]) -> tuple[Program, tuple[bool, ...]]:
        """The program of ``f(*xs)``, recorded when first asked for, and which of its results are not None."""
        found = self._derived.get(key)
        if found is None:
            with self._lock:
                found = self._derived.get(key)
                if found is None:
                    found = faithful(lambda: record(f, xs, f"{self.name}.{key[0]}"))
                    if "vmap" not in key[0]:  # the function itself runs too, and prints
                        found[0].graph = silent(found[0].graph)
                    self._derived[key] = found
        return found


def silent(g: Graph) -> Graph:
    """The graph without what it prints."""
    return Graph(g.inputs, [n for n in g.nodes if n.op.name != "debug_print"], g.outputs)


def record(f: Callable[..., Any], xs: list[Any], name: str) -> tuple[Program, tuple[bool, ...]]:
    """``f(*xs)`` as a program, and which of its results are not None."""
    token = CUT.set(-1.0)
    try:
        with Recorder() as level:
            args = [level.argument(x) for x in xs]
            ys = list(f(*args))
            pattern = tuple([y is not None for y in ys])
            outs = [level.settle(y) for y in ys if y is not None]
            graph = level.graph(outs)
    finally:
        CUT.reset(token)
    assert not level.foreign
    return Program(simplify(graph), name), pattern


def capture(f: Callable[..., Any], xs: list[Any], name: str) -> tuple[Program, list[Tensor]]:
    """``f(*xs)``, a part of a function, as a program; the tensors around that it reads are further inputs."""
    with Recorder() as level:
        args = [level.argument(x) for x in xs]
        boxes = {id(a) for a in args}
        ys = list(f(*args))
        returned = {id(y) for y in ys}
        graph = level.graph([level.settle(y) for y in ys])
        touched = living(level.touched)
        for x in touched:
            if id(x) not in boxes | returned and getrefcount(x) > 3 and not only_base(x, ys, touched):
                raise JitError(
                    f"{name}: a tensor of shape {tuple(x.shape)} from outside was written to in its body. Carry it: pass it in and "
                    f"return its new value."
                )
    program = Program(simplify(graph), name)
    program.examples = [example(x) for x in (*xs, *level.foreign)]
    return program, level.foreign


def only_base(x: Tensor, ys: Any, listed: list[Tensor]) -> bool:
    """Whether `x` (an element of `listed`) is there as the base of returned views alone: nobody sees it."""
    base = id(x)  # no cell of our own may hold x
    metas = [y._meta for y in ys if isinstance(y, Tensor) and y._meta is not None and id(y._meta.base) == base]
    views = {
        id(h) for m in metas for h in (m, vars(m))
    }  # an object holds by itself, or by its dict once that was asked for
    return bool(views) and all(r is listed or id(r) in views or isinstance(r, FrameType) for r in gc.get_referrers(x))


def _body(*xs: Any, program: Program) -> Any:
    return program.arrays(*xs)


CALL = Op("jit_call", _body, batch=lambda op, size, args, flags, kw: _batch(size, args, flags, kw["program"]))


def _spread(ys: Any, pattern: tuple[bool, ...]) -> tuple[Any, ...]:
    it = iter(ys)
    return tuple([next(it) if p else None for p in pattern])


@CALL.jvp(sparse=True)
def _(ts: Any, y: Any, *xs: Any, program: Program) -> Any:
    have = tuple([t is not None for t in ts])
    n = len(xs)

    def push(*both: Any) -> Any:
        got = jvp_through(_replayer(program), list(_spread(both[n:], have)), list(both[:n]), {})
        return (None,) * len(program.graph.outputs) if got is None else got

    return program.derived(("jvp", have), push, [*xs, *[t for t in ts if t is not None]])


@CALL.vjp(sparse=True, keep=(False, None))
def _(g: Any, y: Any, *xs: Any, program: Program, need: Any) -> Any:
    have, need = tuple([v is not None for v in g]), tuple(need)
    n = len(xs)

    def pull(*both: Any) -> Any:
        got = vjp_through(_replayer(program), list(_spread(both[n:], have)), list(both[:n]), {}, list(need))
        reached = reaching(program.graph, have)
        zero = [v is None and w and r for v, w, r in zip(got, need, reached, strict=True)]
        return [zeros_like_tensor(x) if z else v for x, v, z in zip(both, got, zero, strict=False)]

    return program.derived(("vjp", have, need), pull, [*xs, *[v for v in g if v is not None]])


CALL.asks_need = True
CALL.none_is_zero = False  # it says that there is none: the input has no part in the outputs that were asked about


def _replayer(program: Program) -> Callable[..., Any]:
    return lambda *xs: tuple(replay(program.graph, xs))


def _batch(size: int, args: list[Any], flags: list[bool], program: Program) -> Any:
    def mapped(*xs: Any) -> Any:
        with Batching(size, "different") as level:
            ys = replay(program.graph, [Tensor(x, level) if b else x for x, b in zip(xs, flags, strict=True)])
            ys = [level.settle(v) for v in ys]
            return [v._value if v._interp is level else grow(v, size) for v in ys]

    return program.derived(("vmap", size, tuple(flags)), mapped, args)


def reaching(graph: Graph, outputs: Sequence[bool]) -> list[bool]:
    """For each input whether one of these outputs has a derivative in it, be it zero, as far as the ops on the way say."""
    live = {v for v, o in zip(graph.outputs, outputs, strict=True) if o}
    for n in reversed(graph.nodes):
        if n.op.differentiable and not n.cut and not live.isdisjoint(n.outs):
            live.update(a for a in n.args if isinstance(a, Var))
    return [v in live and dt.FROM_NP[v.dtype].category >= dt.FLOAT for v in graph.inputs]


def differentiable(graph: Graph, tracked: Sequence[bool]) -> list[bool]:
    """For each output whether it has a derivative in one of these inputs, as far as the ops on the way say."""
    live: set[Any] = {
        v for v, t in zip(graph.inputs, tracked, strict=True) if t and dt.FROM_NP[v.dtype].category >= dt.FLOAT
    }
    for n in graph.nodes:
        if n.op.differentiable and not n.cut and not live.isdisjoint(n.args):
            live.update(v for v in n.outs if dt.FROM_NP[v.dtype].category >= dt.FLOAT)
    return [v in live for v in graph.outputs]
