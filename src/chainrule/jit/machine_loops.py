"""scan as a loop in machine code: of scalars where everything is small, else of loops over what is carried in memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..kernels.lang import Value
from ..kernels.pointwise import OPS
from .elements import element
from .graph import Node, Var
from .nests import prod
from .values import Ex, Mem, Num, Unrenderable, apply, contiguous, leaves, padded, viewed

TINY = 16  # elements of a value that is a set of scalars
MOST = 4000  # scalar operations in a body
ADD = OPS["add"]
STRUCTURAL = {"reshape", "expand", "permute", "slice", "unslice", "cat", "unsum", "alias", "detach", "diagonal", "flip"}


def scan(body: Any, n: Node) -> None:
    """Render a scan node into the body around it."""
    kw = n.kw
    nc, nx, length = kw["nc"], kw["nx"], kw["length"]
    graph = kw["body"].graph
    carry, xs, consts = n.args[:nc], n.args[nc : nc + nx], n.args[nc + nx :]
    rows = []
    for a in xs:
        ranged = a.value is not None and a.value.dtype.kind == "i"
        rows.append(int(a.value[0]) if ranged else body.memory(a))
    places = [body.place(v) for v in n.outs]
    k = body.k
    small = _tiny(graph)
    if small:
        start = [_scalars(body, a) for a in carry]
        held = [[k.var(k.compute, x) for x in s.reshape(-1)] for s in start]
        fixed = [_scalars(body, a) for a in consts]
    else:
        bufs = [body.nests.put(body.value(a), body.nests.temp(a.shape, a.dtype)) for a in carry]
        fixed = [body.memory(a) if not isinstance(body.value(a), Num) else body.value(a) for a in consts]
        turned = _turned(body, graph, nc + nx, fixed) if length > 4 else {}
    with k.loop(0, length) as step:
        i: Any = (length - 1) - step if kw["reverse"] else step
        if small:
            ins = [_array([v.get() for v in vs], c.shape) for vs, c in zip(held, carry, strict=True)]
            ins += [_load(body, r, i, v.shape) for r, v in zip(rows, graph.inputs[nc : nc + nx], strict=True)]
            outs = Scalars(k, graph, [*ins, *fixed]).run()
            for vs, y in zip(held, outs[:nc], strict=True):
                for v, x in zip(vs, y.reshape(-1), strict=True):
                    v.set(x)
            for m, y in zip(places[nc:], outs[nc:], strict=True):
                base = i * prod(m.shape[1:]) + m.offset
                for e, x in enumerate(y.reshape(-1)):
                    m.array[base + e if e else base] = x
        else:
            _step(body, graph, bufs, rows, fixed, places[nc:], i, turned)
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


def _step(
    body: Any, graph: Any, bufs: list[Mem], rows: list[Any], fixed: list[Any], ys: list[Mem], i: Any, turned: Any
) -> None:
    """One step on memory: what is carried is put aside first, since the old values are read until the end."""
    from .lower import Body

    nests = body.nests

    def slice_of(m: Mem) -> Mem:
        if not isinstance(m.offset, int) or m.strides[0]:
            return Mem(m.array, m.shape[1:], m.strides[1:], i * m.strides[0] + m.offset)
        return Mem(m.array, m.shape[1:], m.strides[1:], m.offset)

    compute = body.k.compute
    ins: list[Any] = list(bufs)
    for r in rows:
        ins.append(slice_of(r) if isinstance(r, Mem) else Ex(lambda k, r=r: (i + r).to(compute), [], (), 1))
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
                x = nests.put(x, nests.temp(b.shape, body.low.compute))
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


# -- scalars ------------------------------------------------------------------------------------------------------------------


def _tiny(graph: Any) -> bool:
    total = 0
    for n in graph.nodes:
        if n.op.name not in STRUCTURAL | {"sum", "matmul", "matvec", "vecmat", "outer", "dot", "clone"}:
            if n.op.form != "pointwise" or n.op.name in ("sin", "cos"):  # these look at all lanes at once
                return False
        for v in n.outs:
            if v.size > TINY:
                return False
        total += max([v.size for v in (*n.outs, *[a for a in n.args if isinstance(a, Var)])], default=0)
    return total <= MOST and all(v.size <= TINY for v in (*graph.inputs, *graph.outputs))


def _array(xs: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    a = np.empty(len(xs), object)
    a[:] = xs
    return a.reshape(shape)


def _load(body: Any, m: Any, i: Any, shape: tuple[int, ...]) -> np.ndarray:
    if not isinstance(m, Mem):
        return _array([(i + m).to(body.k.compute)], ())
    base = i * m.strides[0] + m.offset
    flat = [sum(a * s for a, s in zip(ix, m.strides[1:], strict=True)) for ix in np.ndindex(*shape)]
    return _array([m.array[base + e if e else base] for e in flat], shape)


def _scalars(body: Any, a: Any) -> np.ndarray:
    """An argument as scalars, read now."""
    x = body.value(a)
    if isinstance(x, Num):
        return _array([body.k.const(float(x.number), body.k.compute) for _ in range(prod(x.shape))], x.shape)
    m = body.memory(a)
    flat = [sum(i * s for i, s in zip(ix, m.strides, strict=True)) for ix in np.ndindex(*m.shape)]
    return _array([m.array[m.offset + e] for e in flat], m.shape)


# -- a batch of small loops: every example has a lane -------------------------------------------------------------------------------


def batch_size(n: Node) -> int:
    """The number of examples where every carried value has them in front and is small otherwise; else 0."""
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
    if any(a.dtype.kind != "i" for a in n.args[nc : nc + nx]) and any(
        v.shape[:1] != (b,) for v in graph.inputs[nc : nc + nx]
    ):
        return 0
    return b


def batched_scan(body: Any, n: Node, b: int) -> None:
    """All steps for a vector of examples, then the next: what is carried stays in registers."""
    kw = n.kw
    nc, nx, length = kw["nc"], kw["nx"], kw["length"]
    graph, k, nests = kw["body"].graph, body.k, body.nests
    carry, xs, consts = n.args[:nc], n.args[nc : nc + nx], n.args[nc + nx :]
    rows = [int(a.value[0]) if a.value is not None and a.value.dtype.kind == "i" else body.memory(a) for a in xs]
    start = [body.memory(a) for a in carry]
    fixed = [body.value(a) if isinstance(body.value(a), Num) else body.memory(a) for a in consts]
    # Results lie with the examples next to one another: that is how lanes store.
    outs = [nests.temp((prod(v.shape) // b, b), v.dtype) for v in n.outs]

    def cells(m: Any, lane: Any, shape: tuple[int, ...], extra: Any = 0) -> np.ndarray:
        """The scalars of an example, with an axis of size 1 where the batch is."""
        batched = shape[:1] == (b,)
        one = (1, *shape[1:]) if batched else shape
        if isinstance(m, Num):
            return _array([k.const(float(m.number), k.compute)] * prod(one), one)
        strides = m.strides[len(m.strides) - len(shape) :]
        out = []
        for ix in np.ndindex(*one):
            fixed_at = sum(i * s for i, s in zip(ix, strides, strict=True))
            at: Any = extra + m.offset + fixed_at if not isinstance(extra, int) else m.offset + fixed_at
            if batched and strides[0]:
                step = lane if strides[0] == 1 else None
                at = nests.index(at, (strides[0],), [lane]) if step is None else at + lane
            out.append(m.array[at])
        return _array(out, one)

    def one(at: list[Any], lanes: bool) -> None:
        j = at[0]
        held = []
        for a, m in zip(carry, start, strict=True):
            held.append([k.var(k.compute, x, varying=True) for x in cells(m, j, a.shape).reshape(-1)])
        const = [cells(m, j, v.shape) for m, v in zip(fixed, graph.inputs[nc + nx :], strict=True)]
        with k.loop(0, length) as step:
            i: Any = (length - 1) - step if kw["reverse"] else step
            ins = [_array([v.get() for v in vs], (1, *a.shape[1:])) for vs, a in zip(held, carry, strict=True)]
            for r, v in zip(rows, graph.inputs[nc : nc + nx], strict=True):
                ins.append(
                    cells(r, j, v.shape, i * r.strides[0])
                    if isinstance(r, Mem)
                    else _array([(i + r).to(k.compute)], ())
                )
            got = Scalars(k, graph, [*ins, *const], b).run()
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


class Scalars:
    """Runs a graph on arrays of scalars: views, joins and paddings are those of the bodies, and cost nothing."""

    def __init__(self, k: Any, graph: Any, ins: list[np.ndarray], batch: int = 0) -> None:
        self.k, self.graph, self.batch = k, graph, batch
        self.env: dict[Var, Any] = dict(zip(graph.inputs, ins, strict=True))

    def value(self, a: Any) -> Any:
        if not isinstance(a, Var):
            return a
        if a.value is not None:
            whole = a.value[:1] if self.batch and a.shape[:1] == (self.batch,) else a.value
            if whole is not a.value and not bool((a.value == whole).all()):
                raise Unrenderable("a constant that differs between examples")
            out = np.empty(whole.shape, object)
            out[...] = whole.tolist() if whole.shape else whole.item()
            return out
        return self.env[a]

    def run(self) -> list[np.ndarray]:
        """The outputs; elements that are still numbers become constants."""
        for n in self.graph.nodes:
            y = self.env[n.outs[0]] = self.node(n)
            if self.batch and y.shape != self.seen(n.outs[0].shape):
                raise Unrenderable("a loop whose examples are not apart")
        outs = []
        for v in self.graph.outputs:
            shape = self.seen(v.shape)
            y = np.broadcast_to(self.value(v), shape)
            flat = [x if isinstance(x, Value) else self.k.const(float(x), self.k.compute) for x in y.reshape(-1)]
            outs.append(_array(flat, shape))
        return outs

    def seen(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape with one example in place of all."""
        return (1, *shape[1:]) if self.batch and shape[:1] == (self.batch,) else shape

    def node(self, n: Node) -> Any:
        name, args = n.op.name, [self.value(a) for a in n.args]
        if name in ("detach", "alias", "clone"):
            return args[0]
        if self.batch:
            self._apart(n, name, args)
        if name in STRUCTURAL:
            if name == "cat":
                return np.concatenate(args, axis=n.kw["dim"])
            y = n.op.body(args[0], **n.kw)
            return y if isinstance(y, np.ndarray) else _array([y], ())
        if name == "sum":
            return self._sum(args[0], tuple(args[0].ndim + d for d in n.kw["dim"]), n.kw["keepdim"])
        if name == "outer":
            return self._each(lambda k, a, b: a * b, args[0][..., :, None], args[1][..., None, :])
        if name in ("matmul", "matvec", "vecmat", "dot"):
            a, b = args
            if name in ("vecmat", "dot"):
                a = a[..., None, :]
            if name in ("matvec", "dot"):
                b = b[..., :, None]
            y = self._sum(self._each(lambda k, p, q: p * q, a[..., :, :, None], b[..., None, :, :]), (-2,), False)
            y = y[..., 0, :] if name in ("vecmat", "dot") else y
            return y[..., 0] if name in ("matvec", "dot") else y
        kinds = ["f" if not (isinstance(a, Var) and a.dtype.kind == "b") else "b" for a in n.args]
        found = element(n, kinds)
        if found is None:
            raise Unrenderable(name)
        return self._each(found[0], *args)

    def _apart(self, n: Node, name: str, args: list[Any]) -> None:
        """Refuse what mixes examples: a sum over them, their order, or products that contract them."""
        a = n.args[0]
        batched = [isinstance(v, Var) and v.shape[:1] == (self.batch,) for v in n.args]
        if name in ("flip", "diagonal", "unslice", "slice") and any(batched):
            if (
                name == "flip"
                or (name == "diagonal" and len(a.shape) < 3)
                or len(n.kw.get("key", ())) >= len(n.outs[0].shape if name == "unslice" else a.shape)
            ):
                raise Unrenderable(name)
        if name == "sum" and batched[0] and any(len(a.shape) + d == 0 for d in n.kw["dim"]):
            raise Unrenderable("a sum over examples")
        if name in ("matmul", "matvec", "vecmat", "outer", "dot") and any(batched):
            core = {"matmul": (2, 2), "matvec": (2, 1), "vecmat": (1, 2), "outer": (1, 1), "dot": (1, 1)}[name]
            for v, c, f in zip(n.args, core, batched, strict=True):
                if f and len(v.shape) <= c:
                    raise Unrenderable("a product of examples")

    def _each(self, f: Any, *args: Any) -> np.ndarray:
        arrays = [a if isinstance(a, np.ndarray) else _array([a], ()) for a in args]
        b = np.broadcast(*arrays)
        out = [self._one(f, list(xs)) for xs in b]
        return _array(out, b.shape)

    def _one(self, f: Any, xs: list[Any]) -> Any:
        """One element; what padding with zeros adds is left out."""
        if f is ADD and not isinstance(xs[0], Value) and xs[0] == 0:
            return xs[1]
        if f is ADD and not isinstance(xs[1], Value) and xs[1] == 0:
            return xs[0]
        return apply(self.k, f, xs, self.k.compute)

    def _sum(self, a: np.ndarray, axes: tuple[int, ...], keepdim: bool) -> np.ndarray:
        axes = tuple(sorted(d % a.ndim for d in axes))
        kept = [d for d in range(a.ndim) if d not in axes]
        rows = a.transpose(*kept, *axes).reshape(*[a.shape[d] for d in kept], -1)
        out = np.empty(rows.shape[:-1], object)
        for ix in np.ndindex(*rows.shape[:-1]):
            total = rows[(*ix, 0)]
            for x in rows[ix][1:]:
                total = self._one(ADD, [total, x])
            out[ix] = total
        return out.reshape([1 if d in axes else s for d, s in enumerate(a.shape)]) if keepdim else out
