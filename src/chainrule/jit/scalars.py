"""Small arrays as sets of scalars: graphs run on NumPy arrays of the loop language's values, so that views, joins and paddings cost nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.lang import NUMPY_NAMES, Value, bool_, i64
from ..kernels.pointwise import OPS
from .elements import element, kinds_of
from .graph import Node, Var
from .nests import prod
from .small_matrices import SMALL_MATRICES, small_matrix, solved
from .values import Mem, Num, Unrenderable, apply

TINY = 16  # elements of a value that is a set of scalars
MOST = 4000  # scalar operations in a body
ADD = OPS["add"]
STRUCTURAL = {
    "reshape",
    "expand",
    "permute",
    "slice",
    "unslice",
    "cat",
    "stack",
    "unsum",
    "alias",
    "detach",
    "diagonal",
    "flip",
}


def tiny(graph: Any) -> bool:
    """Whether all values of a graph are sets of scalars, and not too many of them."""
    total = 0
    for n in graph.nodes:
        if n.op.name == "switch":
            if not all(tiny(p.graph) for p in n.kw["branches"]):
                return False
        elif n.op.name in SMALL_MATRICES:
            if not small_matrix(n):
                return False
            total += 40
        elif n.op.name not in STRUCTURAL | {
            "sum",
            "matmul",
            "matvec",
            "vecmat",
            "outer",
            "dot",
            "clone",
            "to",
            "to_int",
        }:
            if n.op.form != "pointwise":
                return False
        for v in n.outs:
            if v.size > TINY:
                return False
        total += max([v.size for v in (*n.outs, *[a for a in n.args if isinstance(a, Var)])], default=0)
    return total <= MOST and all(v.size <= TINY for v in (*graph.inputs, *graph.outputs))


def array_of(xs: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    """An array of objects."""
    a = np.empty(len(xs), object)
    a[:] = xs
    return a.reshape(shape)


def load(body: Any, m: Any, i: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Row i of something stacked, as scalars; of a range of whole numbers, which is known by its first."""
    if not isinstance(m, Mem):
        return array_of([i + m], ())
    base = i * m.strides[0] + m.offset
    flat = [sum(a * s for a, s in zip(ix, m.strides[1:], strict=True)) for ix in np.ndindex(*shape)]
    return array_of([m.array[base + e if e else base] for e in flat], shape)


def scalars(body: Any, a: Any) -> np.ndarray:
    """An argument as scalars, read now."""
    x = body.value(a)
    if isinstance(x, Num):
        return array_of([constant(body.k, x.number, a)] * prod(x.shape), x.shape)
    m = body.memory(a)
    flat = [sum(i * s for i, s in zip(ix, m.strides, strict=True)) for ix in np.ndindex(*m.shape)]
    return array_of([m.array[m.offset + e] for e in flat], m.shape)


def constant(k: Any, x: Any, v: Any) -> Value:
    """A number as a value of the type that a value of the graph has."""
    d = NUMPY_NAMES[v.dtype.name] if isinstance(v, Var) and v.dtype.kind in "bi" else k.compute
    return k.const(bool(x) if d is bool_ else int(x) if d is i64 else float(x), d)


class Scalars:
    """Runs a graph on arrays of scalars: views, joins and paddings are those of the bodies, and cost nothing."""

    def __init__(self, low: Any, graph: Any, ins: list[np.ndarray], batch: int = 0) -> None:
        self.low, self.k, self.graph, self.batch = low, low.k, graph, batch
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
            if n.op.name == "switch":
                self._switch(n)
                continue
            y = self.env[n.outs[0]] = self.node(n)
            if self.batch and y.shape != self.seen(n.outs[0].shape):
                raise Unrenderable("a loop whose examples are not apart")
        outs = []
        for v in self.graph.outputs:
            shape = self.seen(v.shape)
            y = np.broadcast_to(self.value(v), shape)
            flat = [x if isinstance(x, Value) else constant(self.k, x, v) for x in y.reshape(-1)]
            outs.append(array_of(flat, shape))
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
        if name in ("to", "to_int"):
            to = NUMPY_NAMES[n.outs[0].dtype.name]
            xs = [x if isinstance(x, Value) else constant(self.k, x, n.args[0]) for x in args[0].reshape(-1)]
            return array_of([x.to(to) for x in xs], args[0].shape)
        if name in SMALL_MATRICES:
            if self.batch:
                raise Unrenderable(name)
            return solved(self.k, self.low.fail, n, *args)
        if name in STRUCTURAL:
            if name == "cat":
                return np.concatenate(args, axis=n.kw["dim"])
            if name == "stack":
                return np.stack(args, axis=n.kw["dim"])
            y = n.op.body(args[0], **n.kw)
            return y if isinstance(y, np.ndarray) else array_of([y], ())
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
        found = element(n, kinds_of(n))
        if found is None:
            raise Unrenderable(name)
        return self._each(found[0], *args)

    def _switch(self, n: Node) -> None:
        """One of the branches: its results are variables that are set in it."""
        from .machine_branches import chosen

        branches = [p.graph for p in n.kw["branches"]]
        index, *ins = [self.value(a) for a in n.args]
        at = index[()]
        if self.batch or not isinstance(at, Value):
            raise Unrenderable("switch")
        outs = [[self.k.var(NUMPY_NAMES[v.dtype.name], constant(self.k, 0, v)) for _ in range(v.size)] for v in n.outs]
        for b, g in enumerate(branches):
            with self.k.when(chosen(at, b, len(branches))):
                for vs, y in zip(outs, Scalars(self.low, g, ins).run(), strict=True):
                    for v, x in zip(vs, y.reshape(-1), strict=True):
                        v.set(x)
        for vs, v in zip(outs, n.outs, strict=True):
            self.env[v] = array_of([x.get() for x in vs], v.shape)

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
        arrays = [a if isinstance(a, np.ndarray) else array_of([a], ()) for a in args]
        b = np.broadcast(*arrays)
        out = [self._one(f, list(xs)) for xs in b]
        return array_of(out, b.shape)

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
