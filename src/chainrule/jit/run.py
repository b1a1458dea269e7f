"""How a program runs on arrays: parts of the graph as machine code, and between them single ops as they are.

Without a compiler, or where a part cannot be rendered, the simplified graph is replayed op by op: that is also what compiled code is
compared with in the tests (``CHAINRULE_JIT=replay``).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from ..core.dispatch import STACK
from ..core.tensor import Tensor
from .graph import Graph, Node, Var, replay
from .memory import Places

Run = Callable[..., tuple[ndarray, ...]]
LENT = 1 << 15  # bytes from which results and intermediate values of a large function lie in memory of the pool


class Part:
    """Consecutive nodes of a graph: what they read, what others read of them, and how they run."""

    def __init__(self, nodes: list[Node], compiled: bool) -> None:
        self.nodes, self.compiled = nodes, compiled
        self.inputs: list[Var] = []
        self.outputs: list[Var] = []
        self.run: Run | None = None
        self.compute: Any = None
        self.reason = ""
        self.code = ""


def compiled(graph: Graph, name: str) -> Any:
    """The function from arrays to a tuple of arrays."""
    from .schedule import of_one_type
    from .writes import values_alone

    run: Any
    graph = values_alone(graph)
    if os.environ.get("CHAINRULE_JIT", "") == "replay":
        run = replayed(graph)
        run.parts = []
        return run
    graph = of_one_type(graph)
    parts = divide(graph)
    for p in parts:
        if p.compiled:
            _compile(p, name)
        else:
            p.reason = "no code for " + ", ".join(sorted({n.op.name for n in p.nodes}))
    if not any(p.run is not None for p in parts):
        run = replayed(graph)
    elif len(parts) == 1 and parts[0].inputs == graph.inputs and parts[0].outputs == graph.outputs:
        run = parts[0].run
    else:
        run = joined(graph, parts)
    run.parts = parts
    return run


def replayed(graph: Graph) -> Run:
    """The graph replayed op by op."""
    constants = [c.value for c in graph.constants()]

    def run(*xs: Any) -> tuple[Any, ...]:
        token = STACK.set(())  # the graph is all there is: no level around has a say in it
        try:
            return own([y._value for y in replay(graph, [Tensor(x) for x in xs])], [*xs, *constants])
        finally:
            STACK.reset(token)

    return run


def own(ys: list[ndarray], others: list[ndarray], loose: Sequence[int] | None = None) -> tuple[ndarray, ...]:
    """Results with memory of their own: none shows what an argument, a constant or another result holds.

    `loose` are the numbers of those that may; the others are known to be new.
    """
    which = range(len(ys)) if loose is None else loose
    if not which:
        return tuple(ys)
    fresh = set(range(len(ys))).difference(which)
    places = Places([*others, *[ys[i] for i in fresh]])
    for i in which:
        y = ys[i]
        if places.shared(y) or 0 in y.strides:
            y = ys[i] = y.copy()
        places.add(y)
    return tuple(ys)


def joined(graph: Graph, parts: list[Part]) -> Run:
    """The parts one after the other."""
    constants = [c.value for c in graph.constants()]
    plans: list[tuple[Part, Graph | None]] = [
        (p, None if p.run is not None else Graph(p.inputs, p.nodes, p.outputs)) for p in parts
    ]
    new = {v for p in parts if p.run is not None for v in p.outputs}
    loose = [i for i, v in enumerate(graph.outputs) if v not in new or v in graph.outputs[:i]]

    def run(*xs: Any) -> tuple[Any, ...]:
        env: dict[Var, Any] = dict(zip(graph.inputs, xs, strict=True))
        token = STACK.set(())
        try:
            for p, g in plans:
                ins = [env[v] for v in p.inputs]
                if g is None:
                    env.update(zip(p.outputs, p.run(*ins), strict=True))  # type: ignore[misc]
                else:
                    env.update(zip(p.outputs, [y._value for y in replay(g, [Tensor(x) for x in ins])], strict=True))
        finally:
            STACK.reset(token)
        return own([env[v] if v.value is None else v.value for v in graph.outputs], [*xs, *constants], loose)

    return run


# -- parts --------------------------------------------------------------------------------------------------------------------


def divide(graph: Graph) -> list[Part]:
    """Nodes with code of one kind together, the others by themselves."""
    from .lower import FLOATS
    from .schedule import kind, ordered

    types = Counter(v.dtype for n in graph.nodes for v in n.outs if v.dtype in FLOATS)
    compute = types.most_common(1)[0][0] if types else np.dtype(np.float32)
    other = FLOATS[compute == FLOATS[0]]
    kinds = {n: kind(n, compute) if types else "none" for n in graph.nodes}
    parts: list[Part] = []
    before = ""
    for n in ordered(graph, kinds):
        now = kinds[n]
        if now != before:
            parts.append(Part([], now != "none"))
            parts[-1].compute = other if now == "other" else compute
            before = now
        parts[-1].nodes.append(n)
    for p in parts:
        _ends(p, graph)
    return parts


def _ends(p: Part, graph: Graph) -> None:
    """What a part reads, and which of its results are read by others."""
    made = {v for n in p.nodes for v in n.outs}
    seen: dict[Var, None] = {}
    for n in p.nodes:
        for a in n.args:
            if isinstance(a, Var) and a.value is None and a not in made:
                seen[a] = None
    mine = set(p.nodes)
    used: dict[Var, None] = {}
    for n in graph.nodes:
        if n not in mine:
            used.update((a, None) for a in n.args if isinstance(a, Var) and a in made)
    p.outputs = list(dict.fromkeys([*[v for v in graph.outputs if v in made], *used]))
    p.inputs = [*[v for v in graph.inputs if v in seen], *[v for v in seen if v not in set(graph.inputs)]]
    if (
        set(graph.outputs) == set(p.outputs)
        and len(p.nodes) == len(graph.nodes)
        and len(set(graph.outputs)) == len(graph.outputs)
    ):
        p.inputs, p.outputs = list(graph.inputs), list(graph.outputs)


def _compile(p: Part, name: str) -> None:
    from ..kernels import compiler
    from .lower import VIEWS

    if not compiler.available():
        p.reason = f"no compiler: {compiler.reason}"
        return
    if all(n.op.name in VIEWS or n.op.name in ("detach", "clone") for n in p.nodes) or not p.outputs:
        p.reason = "views alone"
        return
    from .values import Unrenderable

    try:
        p.run = kernel(p, name)
    except Unrenderable as e:
        p.reason = str(e)


def kernel(p: Part, name: str) -> Run:
    """A part as one function of machine code."""
    from ..kernels import runtime
    from ..kernels.pool import empty
    from .lower import Lowering

    graph = Graph(p.inputs, p.nodes, p.outputs)
    low = Lowering(graph, p.compute, f"jit_{''.join(c if c.isalnum() else '_' for c in name)}")
    f, entry, p.code = _linked(low.k)
    shapes = [(v.shape, v.dtype) for v in p.outputs]
    temps = [(s, d) for _, s, d in low.nests.temps]
    # Parameters in the order in which the kernel has them: inputs, outputs, then constants and temporary arrays as they came.
    fixed = dict(zip([q.name for q in low.k.params if q.name.startswith("c")], low.constants, strict=True))
    rest = [q.name for q in low.k.params[len(p.inputs) + len(p.outputs) :]]
    where = {name: i for i, (name, _, _) in enumerate(low.nests.temps)}
    plan = [fixed[r] if r in fixed else where[r] for r in rest]
    threads = runtime.pool if low.parallel else (lambda: 0)
    simple = not temps
    status = where[low.status.name] if low.status is not None else -1
    again = replayed(graph)
    tail = tuple(plan)
    new = np.empty if not low.parallel else partial(empty, least=LENT)

    def run(*xs: Any) -> tuple[ndarray, ...]:
        ys = tuple([new(s, d) for s, d in shapes])
        if simple:
            more = tail
        else:
            own_temps = [new(s, d) for s, d in temps]
            if status >= 0:
                own_temps[status][0] = 0
            more = tuple([own_temps[t] if t.__class__ is int else t for t in plan])
        if f(threads(), *xs, *ys, *more) is False:
            f(threads(), *[np.ascontiguousarray(x).reshape(x.shape) for x in xs], *ys, *more)
        if status >= 0 and own_temps[status][0]:  # an op that fails, or is not for machine code: it says so itself
            return again(*xs)
        return ys

    cost = sum(v.size * 4 for n in graph.nodes for v in n.outs) * max(
        [n.kw.get("length", 1) for n in graph.nodes] + [1]
    )
    run.plan = Plan(f, shapes, temps, tail, new, threads, low.parallel, entry, cost, low.k.polls, status >= 0)  # type: ignore[attr-defined]
    return run


def _linked(k: Any) -> tuple[Any, int, str]:
    """The kernel as a function, the address of its code (0 where that is not to be had), and its text."""
    from ..kernels import binding, compiler, llvm
    from ..kernels.llvm_text import GLUE

    ir = llvm.render(k, compiler.DATA_OFFSET or 0)
    how = GLUE if llvm.many(k) else ""
    if binding.supported() and compiler.FLAGS_OFFSET is not None:
        try:
            got = compiler.link(
                ir + binding.wrapper(k.params, compiler.FLAGS_OFFSET, k.polls, how), ["pycall", "entry"], k.name
            )
            return binding.bind(got, "pycall", k.name), got["entry"], ir
        except RuntimeError:  # an interpreter that does not export its functions
            pass
    return compiler.compile_kernel(k), 0, ir


class Plan(NamedTuple):
    """What a call of a kernel needs: results, temporary arrays, and what follows them among the parameters."""

    kernel: Any
    shapes: list[Any]
    temps: list[Any]
    tail: tuple[Any, ...]  # constants, and numbers of temporary arrays
    new: Any
    threads: Any
    parallel: bool
    entry: int  # the address of the code, 0 where it cannot be called directly
    cost: int  # element operations, roughly
    polls: bool  # whether it can be interrupted
    fails: bool  # whether it has a status to look at
