"""scan as a loop in machine code: of scalars where everything is small, else of loops over what is carried in memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..kernels.lang import NUMPY_NAMES
from .graph import Node, Var
from .machine_branches import polled
from .nests import prod
from .scalars import TINY, Scalars, array_of, load, scalars, tiny
from .values import Ex, Mem, Num, contiguous, leaves, padded, viewed


def scan(body: Any, n: Node) -> None:
    """Render a scan node into the body around it."""
    from .lower import is_range

    kw = n.kw
    nc, nx, length = kw["nc"], kw["nx"], kw["length"]
    graph = kw["body"].graph
    carry, xs, consts = n.args[:nc], n.args[nc : nc + nx], n.args[nc + nx :]
    rows = []
    for a in xs:
        ranged = a.value is not None and is_range(a.value)
        rows.append(int(a.value[0]) if ranged else body.memory(a))
    places = [body.place(v) for v in n.outs]
    k = body.k
    small = tiny(graph)
    if small:
        start = [scalars(body, a) for a in carry]
        held = [[k.var(NUMPY_NAMES[a.dtype.name], x) for x in s.reshape(-1)] for a, s in zip(carry, start, strict=True)]
        fixed = [scalars(body, a) for a in consts]
    else:
        bufs = [body.carried(a, v.dtype) for a, v in zip(carry, n.outs, strict=False)]
        fixed = [body.memory(a) if not isinstance(body.value(a), Num) else body.value(a) for a in consts]
        turned = _turned(body, graph, nc + nx, fixed) if length > 4 else {}
    with k.loop(0, length) as at:
        i: Any = (length - 1) - at if kw["reverse"] else at
        polled(k, at, graph)
        if small:
            ins = [array_of([v.get() for v in vs], c.shape) for vs, c in zip(held, carry, strict=True)]
            ins += [load(body, r, i, v.shape) for r, v in zip(rows, graph.inputs[nc : nc + nx], strict=True)]
            outs = Scalars(body.low, graph, [*ins, *fixed]).run()
            for vs, y in zip(held, outs[:nc], strict=True):
                for v, x in zip(vs, y.reshape(-1), strict=True):
                    v.set(x)
            for m, y in zip(places[nc:], outs[nc:], strict=True):
                base = i * prod(m.shape[1:]) + m.offset
                for e, x in enumerate(y.reshape(-1)):
                    m.array[base + e if e else base] = x
        else:
            step(body, graph, bufs, rows, fixed, places[nc:], i, turned)
    for c, m in enumerate(places[:nc]):
        if small:
            for e, x in enumerate(held[c]):
                m.array[m.offset + e] = x.get()
        else:
            body.nests.put(bufs[c], m)
    for m, v in zip(places, n.outs, strict=True):
        body.env[v] = m


def _turned(body: Any, graph: Any, first: int, fixed: list[Any]) -> dict[Var, Mem]:
    """Matrices that a loop multiplies vectors by, transposed once before it: then lanes run over rows of the result."""
    out = {}
    for v, m in zip(graph.inputs[first:], fixed, strict=True):
        if (
            isinstance(m, Mem)
            and len(v.shape) == 2
            and any(n.op.name == "matvec" and n.args[0] is v for n in graph.nodes)
        ):
            t = viewed(m, lambda a: a.transpose(1, 0), v.shape[::-1])
            out[v] = body.nests.put(t, body.nests.temp(t.shape, v.dtype))
    return out


def step(
    body: Any, graph: Any, bufs: list[Mem], rows: list[Any], fixed: list[Any], ys: list[Mem], i: Any, turned: Any
) -> None:
    """One step on memory: what is carried is put aside first, since the old values are read until the end."""
    from .lower import Body

    nests = body.nests

    def slice_of(m: Mem) -> Mem:
        if not isinstance(m.offset, int) or m.strides[0]:
            return Mem(m.array, m.shape[1:], m.strides[1:], i * m.strides[0] + m.offset)
        return Mem(m.array, m.shape[1:], m.strides[1:], m.offset)

    ins: list[Any] = list(bufs)
    for r in rows:
        ins.append(slice_of(r) if isinstance(r, Mem) else Ex(lambda k, r=r: i + r, [], (), 1))
    inner = Body(body.low, graph, [*ins, *fixed])
    inner.transposed = turned
    outs = [slice_of(Mem(y.array, y.shape, contiguous(y.shape), y.offset)) for y in ys]
    nc = len(bufs)
    inner.nodes(dict(zip(graph.outputs[nc:], outs, strict=True)))
    inner.finish_all(list(zip(graph.outputs[nc:], outs, strict=True)))
    last: list[Any] = []
    for c, (v, b) in enumerate(zip(graph.outputs[:nc], bufs, strict=True)):
        if _in_place(inner.value(v), b, [inner.value(u) for k, u in enumerate(graph.outputs[:nc]) if k != c]):
            last.append((v, b))
        else:
            x = inner.value(v)
            if not isinstance(x, Mem) or x.array in [t.array for t in bufs]:
                x = nests.put(x, nests.temp(b.shape, v.dtype))
            last.append((x, b))
    for x, b in [(x, b) for x, b in last if not isinstance(x, Mem)]:
        nests.put(inner.value(x), b)
    for x, b in [(x, b) for x, b in last if isinstance(x, Mem)]:
        nests.put(x, b)


def _in_place(x: Any, b: Mem, others: list[Any]) -> bool:
    """Whether a carried value can be computed where it lies: it reads itself element by element, and no other reads it."""
    if not isinstance(x, Ex) or padded(x):
        return False
    for m, strides in leaves(x, b.shape).values():
        if m.array is b.array and ((m.offset is not b.offset and m.offset != b.offset) or strides != b.strides):
            return False
    return not any(padded(o) or any(m.array is b.array for m, _ in leaves(o, o.shape).values()) for o in others)


# -- a batch of small loops: every example has a lane -------------------------------------------------------------------------------


def batch_size(n: Node) -> int:
    """The number of examples where every carried value has them in front and is small otherwise; else 0."""
    from .lower import is_range

    if n.op.name != "scan":
        return 0
    nc, nx = n.kw["nc"], n.kw["nx"]
    graph = n.kw["body"].graph
    sizes = {v.shape[0] for v in graph.inputs[:nc] if v.shape}
    if len(sizes) != 1 or (b := sizes.pop()) < 256 or not all(v.shape for v in graph.inputs[:nc]):
        return 0
    if len(graph.outputs) != nc and not n.outs[nc:]:
        return 0
    for v in (*graph.inputs, *[v for m in graph.nodes for v in m.outs], *graph.outputs):
        if v.size // (b if v.shape[:1] == (b,) else 1) > TINY:
            return 0
    if any(a.dtype.kind in "ib" and not (a.value is not None and is_range(a.value)) for a in n.args):
        return 0
    if any(a.dtype.kind != "i" for a in n.args[nc : nc + nx]) and any(
        v.shape[:1] != (b,) for v in graph.inputs[nc : nc + nx]
    ):
        return 0
    return b


def batched_scan(body: Any, n: Node, b: int) -> None:
    """All steps for a vector of examples, then the next: what is carried stays in registers."""
    from .lower import is_range

    kw = n.kw
    nc, nx, length = kw["nc"], kw["nx"], kw["length"]
    graph, k, nests = kw["body"].graph, body.k, body.nests
    carry, xs, consts = n.args[:nc], n.args[nc : nc + nx], n.args[nc + nx :]
    rows = [int(a.value[0]) if a.value is not None and is_range(a.value) else body.memory(a) for a in xs]
    start = [body.memory(a) for a in carry]
    fixed = [body.value(a) if isinstance(body.value(a), Num) else body.memory(a) for a in consts]
    # Results lie with the examples next to one another: that is how lanes store.
    outs = [nests.temp((prod(v.shape) // b, b), v.dtype) for v in n.outs]

    def cells(m: Any, lane: Any, shape: tuple[int, ...], extra: Any = 0) -> np.ndarray:
        """The scalars of an example, with an axis of size 1 where the batch is."""
        batched = shape[:1] == (b,)
        one = (1, *shape[1:]) if batched else shape
        if isinstance(m, Num):
            return array_of([k.const(float(m.number), k.compute)] * prod(one), one)
        strides = m.strides[len(m.strides) - len(shape) :]
        out = []
        for ix in np.ndindex(*one):
            fixed_at = sum(i * s for i, s in zip(ix, strides, strict=True))
            at: Any = extra + m.offset + fixed_at if not isinstance(extra, int) else m.offset + fixed_at
            if batched and strides[0]:
                step = lane if strides[0] == 1 else None
                at = nests.index(at, (strides[0],), [lane]) if step is None else at + lane
            out.append(m.array[at])
        return array_of(out, one)

    def one(at: list[Any], lanes: bool) -> None:
        j = at[0]
        held = []
        for a, m in zip(carry, start, strict=True):
            held.append([k.var(k.compute, x, varying=True) for x in cells(m, j, a.shape).reshape(-1)])
        const = [cells(m, j, v.shape) for m, v in zip(fixed, graph.inputs[nc + nx :], strict=True)]
        with k.loop(0, length) as step:
            i: Any = (length - 1) - step if kw["reverse"] else step
            ins = [array_of([v.get() for v in vs], (1, *a.shape[1:])) for vs, a in zip(held, carry, strict=True)]
            for r, v in zip(rows, graph.inputs[nc : nc + nx], strict=True):
                ins.append(cells(r, j, v.shape, i * r.strides[0]) if isinstance(r, Mem) else array_of([i + r], ()))
            got = Scalars(body.low, graph, [*ins, *const], b).run()
            for vs, y in zip(held, got[:nc], strict=True):
                for v, x in zip(vs, y.reshape(-1), strict=True):
                    v.set(x)
            for m, y in zip(outs[nc:], got[nc:], strict=True):
                for e, x in enumerate(y.reshape(-1)):
                    m.array[(i * y.size + e) * b + j] = x
        for m, vs in zip(outs, held, strict=False):
            for e, v in enumerate(vs):
                m.array[e * b + j] = v.get()

    nests.over((b,), length * len(graph.nodes), one, 1)
    for c, (m, v) in enumerate(zip(outs, n.outs, strict=True)):
        if c < nc:
            shape: tuple[int, ...] = (*v.shape[1:], b)
            order: tuple[int, ...] = (len(shape) - 1, *range(len(shape) - 1))
        else:
            shape = (v.shape[0], *v.shape[2:], b)
            order = (0, len(shape) - 1, *range(1, len(shape) - 1))
        whole = Mem(m.array, shape)
        body.env[v] = viewed(whole, partial(np.transpose, axes=order), v.shape)
