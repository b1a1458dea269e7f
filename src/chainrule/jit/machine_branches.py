"""while_loop, cond and switch as machine code: on scalars where everything is small, else on memory."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from ..kernels.lang import NUMPY_NAMES, Value, bool_, i64
from .graph import Node
from .scalars import Scalars, array_of, scalars, tiny
from .values import Mem, Num

BETWEEN = 1 << 23  # element operations between two looks at whether somebody wants the program to stop


def polled(k: Any, step: Value, graph: Any) -> None:
    """Look from time to time whether the loop shall go on; `step` counts."""
    cost = max(sum(v.size for n in graph.nodes for v in n.outs), 1)
    every = 1
    while every * 2 * cost <= BETWEEN and every < 1 << 16:
        every *= 2
    k.poll((step & (every - 1)).eq(every - 1) if every > 1 else step.eq(step))


def while_loop(body: Any, n: Node) -> None:
    """Render a while_loop node into the body around it."""
    from .lower import Body
    from .machine_loops import step

    k, kw = body.k, n.kw
    nc, nt = kw["nc"], kw["nt"]
    test, graph = kw["test"].graph, kw["body"].graph
    carry, tk, bk = n.args[:nc], n.args[nc : nc + nt], n.args[nc + nt :]
    places = [body.place(v) for v in n.outs]
    count = k.var(i64, 0)
    if tiny(test) and tiny(graph):
        held = [
            [k.var(NUMPY_NAMES[v.dtype.name], x) for x in scalars(body, a).reshape(-1)]
            for a, v in zip(carry, n.outs, strict=True)
        ]
        ask, fixed = [scalars(body, a) for a in tk], [scalars(body, a) for a in bk]
        with k.repeat():
            ins = [array_of([v.get() for v in vs], c.shape) for vs, c in zip(held, carry, strict=True)]
            live = (
                Scalars(body.low, test, [*ins, *ask]).run()[0].reshape(-1)
            )  # of a batch: as long as one of them goes on
            k.leave(reduce(or_, live) ^ True)
            for vs, y in zip(held, Scalars(body.low, graph, [*ins, *fixed]).run(), strict=True):
                for v, x in zip(vs, y.reshape(-1), strict=True):
                    v.set(x)
            count.set(count.get() + 1)
            polled(k, count.get(), graph)
        for m, vs in zip(places, held, strict=True):
            for e, x in enumerate(vs):
                m.array[m.offset + e] = x.get()
    else:
        bufs = [body.carried(a, v.dtype) for a, v in zip(carry, n.outs, strict=True)]
        asked, fixed = settled(body, tk), settled(body, bk)
        with k.repeat():
            inner = Body(body.low, test, [*bufs, *asked])
            inner.nodes({})
            k.leave(_some(body, inner.memory(test.outputs[0])) ^ True)
            step(body, graph, bufs, [], fixed, [], 0, {})
            count.set(count.get() + 1)
            polled(k, count.get(), graph)
        for m, b in zip(places, bufs, strict=True):
            body.nests.put(b, m)
    for m, v in zip(places, n.outs, strict=True):
        body.env[v] = m


def _some(body: Any, m: Mem) -> Value:
    """Whether one of the elements is true."""
    k = body.k
    if not m.shape:
        return m.array[m.offset]
    found = k.var(bool_, False)
    with k.loop(0, m.shape[0]) as i:
        found.set(found.get() | m.array[body.nests.index(m.offset, m.strides, [i])])
    return found.get()


def settled(body: Any, args: Any) -> list[Any]:
    """Arguments as numbers or memory: what is read inside a loop or a branch is computed before it."""
    return [x if isinstance(x := body.value(a), Num) else body.memory(a) for a in args]


def switch(body: Any, n: Node) -> None:
    """Render a switch node into the body around it."""
    from .lower import Body

    k, branches = body.k, [p.graph for p in n.kw["branches"]]
    at = body.memory(n.args[0])
    index = at.array[at.offset]
    ins = settled(body, n.args[1:])
    places = [body.place(v) for v in n.outs]
    for b, g in enumerate(branches):
        with k.when(chosen(index, b, len(branches))):
            inner = Body(body.low, g, list(ins))
            inner.run([Mem(m.array, m.shape, m.strides, m.offset) for m in places])
    for m, v in zip(places, n.outs, strict=True):
        body.env[v] = m


def chosen(index: Value, b: int, count: int) -> Value:
    """Whether a branch is the one with this index; the first and the last take what is beyond them."""
    if count == 1:
        return index.eq(index)
    return index <= 0 if b == 0 else index >= b if b == count - 1 else index.eq(b)


__all__ = ["chosen", "polled", "settled", "switch", "while_loop"]
