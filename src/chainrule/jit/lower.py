"""From graph to kernel: each node becomes an expression, a view, or loops that put it into memory.

Pointwise nodes are expressions, computed where they are read, unless they are costly and read more than once (or at a broadcast). Views
are index maps. Sums, products and what has to lie somewhere get memory: that of an output, where they are one.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np

from ..core.op import OPS
from ..kernels.blas import blas
from ..kernels.lang import NUMPY_NAMES, Kernel, i64
from .elements import element, kinds_of
from .graph import Graph, Node, Var
from .nests import Nests, prod
from .products import product_in_blocks
from .simplify import bodies
from .small_matrices import SMALL_MATRICES, small_matrix
from .values import Ex, Mem, Num, Pad, Unrenderable, broadcast, padded, resolved, viewed

WHOLE = np.dtype(np.int64)
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
LARGE = 1 << 15  # elements from which loops run in parallel
MUCH = 1 << 21  # multiplications from which many small products, or loops that have some, run by themselves
HUGE = 1 << 28  # and one that is cut into blocks for all threads,
WIDE = 1 << 11  # whose result has as many elements as that
INLINE = 1 << 12  # multiplications up to which a product is a loop of ours, not a call of BLAS
ALONE = 1 << 18  # multiplications up to which OpenBLAS does not wake its threads
CHEAP = 9  # additions: what costs no more is computed again where it is read
LONG = 60  # additions: an expression does not grow beyond
VIEWS = {"reshape", "expand", "permute", "slice", "unsum", "alias", "diagonal", "flip"}
SAME = {"detach", "alias"}
PRODUCTS = {"matmul", "matvec", "vecmat", "outer", "dot", "linear"}
OTHERS = {"sum", "unslice", "cat", "stack", "clone", "to"}


def can_render(n: Node, compute: np.dtype) -> bool:
    """Whether there is code for a node, as far as its op and types say."""
    name = n.op.name
    for v in (*n.args, *n.outs):
        if isinstance(v, Var):
            if v.size == 0 or not (v.dtype == compute or v.dtype.kind == "b" or v.dtype == WHOLE or v.uniform):
                return False
        elif not isinstance(v, bool | int | float):
            return False
    if name in LOOPS:
        return LOOPS[name](n, compute)
    if n.cut or n.several or n.op.effect:
        return False
    if name == "linear" and not (len(n.args[0].shape) > 1 and [len(v.shape) for v in n.args[1:]] == [2, 1]):
        return False
    if name in PRODUCTS | SMALL_MATRICES:
        return all(v.dtype == compute for v in (*n.args, *n.outs)) and (
            _work(n) <= (HUGE if _one_product(n) else MUCH) if name in PRODUCTS else small_matrix(n)
        )
    if name in ("to", "to_int"):
        a, b = n.args[0].dtype, n.outs[0].dtype
        return b == compute or (b == WHOLE and a.kind == "b")
    if name in VIEWS | SAME | OTHERS:
        return name in VIEWS | SAME or n.outs[0].dtype == compute
    if n.op.form != "pointwise" or len(n.outs) != 1:
        return False
    return element(n, kinds_of(n)) is not None


def _can_run(g: Graph, compute: np.dtype, most: int = 1 << 16) -> bool:
    """Whether there is code for all of a body, and none of its values is large: those have threads of their own elsewhere."""
    good = all(v.size <= most for v in (*g.inputs, *[v for m in g.nodes for v in m.outs]))
    return good and all(can_render(m, compute) and (m.op.name not in PRODUCTS or _work(m) <= MUCH) for m in g.nodes)


def _can_scan(n: Node, compute: np.dtype) -> bool:
    g = n.kw["body"].graph
    from .machine_loops import batch_size

    if n.kw["length"] < 1 or not all(isinstance(a, Var) for a in n.args):
        return False
    return _can_run(g, compute, 1 << 62 if batch_size(n) else 1 << 16)


def _can_while(n: Node, compute: np.dtype) -> bool:
    programs = [n.kw["test"], n.kw["body"]]
    return all(isinstance(a, Var) for a in n.args) and all(_can_run(p.graph, compute) for p in programs)


def _can_switch(n: Node, compute: np.dtype) -> bool:
    return all(isinstance(a, Var) for a in n.args) and all(_can_run(p.graph, compute) for p in n.kw["branches"])


LOOPS = {"scan": _can_scan, "while_loop": _can_while, "switch": _can_switch}


def is_range(a: np.ndarray) -> bool:
    """Whether an array counts up by ones."""
    return a.dtype.kind == "i" and a.ndim == 1 and bool((a == np.arange(len(a)) + a[0]).all())


def _work(n: Node) -> int:
    if n.op.name == "linear":
        return int(n.args[0].size * n.outs[0].shape[-1])
    return (
        max(v.size for v in n.args) * n.outs[0].shape[-1]
        if n.op.name == "matmul"
        else max(v.size for v in (*n.args, *n.outs))
    )


def _one_product(n: Node) -> bool:
    """Whether a node is one product of two matrices that is large enough to be cut."""
    if n.op.name not in ("linear", "matmul") or n.outs[0].size < WIDE:
        return False
    return n.op.name == "linear" or (len(n.args[0].shape) > 1 and len(n.args[1].shape) == 2)


def _multiplies(graph: Graph) -> bool:
    """Whether there is a product that may go to BLAS."""
    return any(
        (n.op.name in ("matmul", "matvec", "vecmat", "linear") and _work(n) >= INLINE)
        or any(map(_multiplies, bodies(n)))
        for n in graph.nodes
    )


class Lowering:
    """Renders a graph whose nodes all can be rendered."""

    def __init__(self, graph: Graph, compute: np.dtype, name: str) -> None:
        from .machine_loops import batch_size

        self.compute = np.dtype(compute)
        loops = any(n.op.name in LOOPS and not batch_size(n) for n in graph.nodes)
        sizes = [v.size for v in graph.inputs] + [v.size for n in graph.nodes for v in n.outs]
        self.parallel = not loops and max(sizes, default=0) >= LARGE
        self.k = Kernel(name, NUMPY_NAMES[self.compute.name])
        self.nests = Nests(self.k, self.parallel)
        self.graph = graph
        self.constants: list[np.ndarray] = []
        self.kept: dict[int, Mem] = {}
        self.status: Any = None
        ins: list[Any] = [self._input(i, v) for i, v in enumerate(graph.inputs)]
        outs = [Mem(self.k.array(f"y{i}", NUMPY_NAMES[v.dtype.name]), v.shape) for i, v in enumerate(graph.outputs)]
        for n in graph.nodes:  # parameters come before any code
            self._prepare(n)
        self.table: Any = None
        if (
            not self.parallel
            and _multiplies(graph)
            and (gemm := blas(f"{'s' if self.compute.itemsize == 4 else 'd'}gemm"))
        ):
            self.table = self.k.array(f"c{len(self.constants)}", i64)
            self.constants.append(np.array([gemm]))
        if self.parallel:
            Body(self, graph, ins).run(outs)
        else:
            with self.k.grid(1):
                Body(self, graph, ins).run(outs)

    def _input(self, i: int, v: Var) -> Mem:
        return Mem(self.k.array(f"x{i}", NUMPY_NAMES[v.dtype.name]), v.shape)

    def _prepare(self, n: Node) -> None:
        for a in n.args:
            if isinstance(a, Var) and a.value is not None and not (n.op.name == "scan" and is_range(a.value)):
                self.constant(a)
        for g in bodies(n):
            for m in g.nodes:
                self._prepare(m)

    def constant(self, v: Var) -> Any:
        """A constant as a number, or as an array that every call brings, in the layout that it has."""
        a = v.value
        if v.uniform:
            x = a.flat[0].item()
            return Num(x, v.shape)
        if id(a) not in self.kept:
            order = sorted(range(a.ndim), key=lambda d: -abs(a.strides[d]))
            base = np.ascontiguousarray(a.transpose(order))
            m = Mem(self.k.array(f"c{len(self.constants)}", NUMPY_NAMES[a.dtype.name]), base.shape)
            back = [order.index(d) for d in range(a.ndim)]
            self.kept[id(a)] = viewed(m, lambda t: t.transpose(back), a.shape)
            self.constants.append(base)
        return self.kept[id(a)]

    def fail(self, cond: Any) -> None:
        """Where the condition holds, the call's status says that something went wrong: everything runs again, op by op."""
        if self.status is None:
            self.status = self.nests.state("status")
        with self.k.when(cond):
            self.status[0] = 1


def _cast(dtype: Any) -> Any:
    """The conversion to a type; of a number in a loop's company, which apply() leaves a whole one."""

    def f(k: Kernel, v: Any) -> Any:
        return v.to(dtype)

    f.whole = True  # type: ignore[attr-defined]
    return f


class Body:
    """Renders the nodes of one graph, of the function or of a loop in it."""

    def __init__(self, low: Lowering, graph: Graph, ins: list[Any]) -> None:
        self.low, self.graph, self.nests, self.k = low, graph, low.nests, low.k
        self.env: dict[Var, Any] = dict(zip(graph.inputs, ins, strict=True))
        self.readers: dict[Var, int] = {}
        for n in graph.nodes:
            for a in n.args:
                if isinstance(a, Var):
                    self.readers[a] = self.readers.get(a, 0) + 1
        for v in graph.outputs:
            self.readers[v] = self.readers.get(v, 0) + 1
        self.places: dict[Var, Mem] = {}
        self.transposed: dict[Var, Mem] = {}

    def run(self, outs: list[Mem]) -> None:
        """All nodes, and the outputs where they belong."""
        self.nodes(dict(zip(reversed(self.graph.outputs), reversed(outs), strict=True)))
        self.finish_all(list(zip(self.graph.outputs, outs, strict=True)))

    def nodes(self, places: dict[Var, Mem]) -> None:
        """All nodes; those whose place is known are put there if they are put anywhere."""
        self.places.update((v, m) for v, m in places.items() if v.node is not None)
        for n in self.graph.nodes:
            getattr(self, "do_" + n.op.name, self.do_pointwise)(n)

    def finish_all(self, outs: list[tuple[Var, Mem]]) -> None:
        """Outputs where they belong, those of one shape in one nest."""
        groups: dict[Any, list[tuple[Any, Mem]]] = {}
        for v, m in outs:
            x = self.value(v)
            if isinstance(x, Ex) and not padded(x) and x.shape == v.shape and v.dtype == self.low.compute:
                groups.setdefault(v.shape, []).append((x, m))
        for pairs in groups.values():
            self.nests.put_all(pairs)
        for v, m in outs:
            self.finish(v, m)

    def finish(self, v: Var, m: Mem) -> None:
        """An output where it belongs."""
        got = self.value(v)
        if not (isinstance(got, Mem) and got.array is m.array):
            self.nests.put(broadcast(got, v.shape), m)
        elif not got.is_contiguous():
            raise Unrenderable("an output of another layout")

    def value(self, a: Any) -> Any:
        """What stands for an argument."""
        if not isinstance(a, Var):
            return Num(a, ())
        if a.value is not None:
            return self.low.constant(a)
        return resolved(self.env[a])

    def place(self, v: Var) -> Mem:
        """Where a value is put: where the output is to be, or anywhere."""
        return self.places.pop(v, None) or self.nests.temp(v.shape, v.dtype)

    def memory(self, a: Any) -> Mem:
        """An argument in memory; who reads it later finds it there."""
        x = self.value(a)
        if isinstance(x, Mem):
            return x
        dtype = a.dtype if isinstance(a, Var) else self.low.compute
        m = self.nests.put(
            x, self.place(a) if isinstance(a, Var) and a.value is None else self.nests.temp(x.shape, dtype)
        )
        if isinstance(a, Var) and a.value is None:
            self.env[a] = m
        return m

    def carried(self, a: Any, dtype: Any) -> Mem:
        """An argument in memory that a loop will write to; who reads the argument later does not look there."""
        x = self.value(a)
        if isinstance(x, Ex) and x.readers > 1:
            x = self.memory(a)
        return self.nests.put(x, self.nests.temp(a.shape, dtype))

    def keep(self, v: Var, x: Any) -> None:
        """Note a value; in memory at once where it is costly and read more than once, or long."""
        if isinstance(x, Ex | Pad) and ((self.readers.get(v, 0) > 1 and x.cost > CHEAP) or x.cost > LONG):
            if isinstance(x, Pad) or x.padded or v.dtype != self.low.compute:
                x = self.nests.put(x, self.place(v))
            else:
                x.readers = self.readers.get(v, 0)
        self.env[v] = x

    # -- nodes ------------------------------------------------------------------------------------------------------------
    def do_pointwise(self, n: Node) -> None:
        out = n.outs[0]
        found = element(n, kinds_of(n))
        if found is None:
            raise Unrenderable(n.op.name)
        f, cost = found
        add = n.op.name == "add" and out.dtype == self.low.compute
        args = []
        for a in n.args:
            x = self.value(a)
            if (
                (isinstance(x, Pad) and not (add and x.shape == out.shape))
                or (isinstance(x, Ex) and x.cost >= 4 and prod(x.shape) < out.size)
                or (isinstance(x, Ex) and x.kind == "add" and not add and padded(x))
                or (add and isinstance(x, Ex) and padded(x) and x.shape != out.shape)
            ):
                x = self.memory(a)
            args.append(x)
        total = cost + sum(x.cost for x in args)
        self.keep(out, Ex(f, args, out.shape, total, "add" if add else ""))

    def do_clone(self, n: Node) -> None:
        self.env[n.outs[0]] = self.value(n.args[0])

    do_detach = do_alias = do_clone

    def do_to(self, n: Node) -> None:
        x, out = self.value(n.args[0]), n.outs[0]
        if isinstance(x, Num) or n.args[0].dtype == out.dtype:
            self.env[out] = x
            return
        to = NUMPY_NAMES[out.dtype.name]
        self.keep(out, Ex(_cast(to), [x], out.shape, 1 + x.cost))

    do_to_int = do_to

    def view(self, n: Node, view: Any) -> None:
        out, a = n.outs[0], n.args[0]
        x = self.value(a)
        if isinstance(x, Ex) and (x.readers or x.padded or (out.size > prod(x.shape) and x.cost >= 4)):
            x = self.memory(a)
        got = viewed(x, view, out.shape)
        if got is None:
            x = self.memory(a)
            got = viewed(x, view, out.shape)
            if got is None:
                got = viewed(self.nests.put(x, self.nests.temp(x.shape, a.dtype)), view, out.shape)
        if got is None:
            raise Unrenderable(n.op.name)
        self.env[out] = got

    def do_reshape(self, n: Node) -> None:
        op, kw = n.op, n.kw
        self.view(n, lambda a: op.body(a, **kw))

    do_expand = do_permute = do_slice = do_unsum = do_diagonal = do_reshape

    def do_flip(self, n: Node) -> None:
        raise Unrenderable("flip")

    def do_unslice(self, n: Node) -> None:
        out, kw = n.outs[0], n.kw
        cut = OPS["slice"].body
        inner = self.value(n.args[0])
        if isinstance(inner, Pad) or padded(inner):
            inner = self.memory(n.args[0])
        self.keep(out, Pad(inner, out.shape, lambda a: cut(a, key=kw["key"], old=kw["old"])))

    def do_cat(self, n: Node) -> None:
        out, dim = n.outs[0], n.kw["dim"]
        target = self.place(out)
        at = 0
        for a in n.args:
            size = a.shape[dim]
            key = (..., slice(at, at + size), *[slice(None)] * (-dim - 1))
            part = viewed(target, itemgetter(key), a.shape)
            if part is None:
                raise Unrenderable("cat")
            self.nests.put(self.value(a), part)
            at += size
        self.env[out] = target

    def do_stack(self, n: Node) -> None:
        out, dim = n.outs[0], n.kw["dim"]
        target = self.place(out)
        for i, a in enumerate(n.args):
            part = viewed(target, itemgetter((..., i, *[slice(None)] * (-dim - 1))), a.shape)
            if part is None:
                raise Unrenderable("stack")
            self.nests.put(self.value(a), part)
        self.env[out] = target

    def do_sum(self, n: Node) -> None:
        out, a = n.outs[0], n.args[0]
        x = self.value(a)
        axes = tuple(sorted(len(a.shape) + d for d in n.kw["dim"]))
        if isinstance(x, Num):
            self.env[out] = Num(x.number * prod(a.shape[d] for d in axes), out.shape)
            return
        if isinstance(x, Pad) or padded(x):
            x = self.memory(a)
        target = self.place(out)
        flat = tuple(s for d, s in enumerate(a.shape) if d not in axes)
        plain = viewed(target, lambda t: t.reshape(flat), flat) if n.kw["keepdim"] else target
        self.nests.reduce(x, axes, plain)
        self.env[out] = target

    def do_outer(self, n: Node) -> None:
        out = n.outs[0]
        x = self._shaped(n.args[0], lambda a: a[..., None], (*n.args[0].shape, 1))
        y = self._shaped(n.args[1], lambda a: a[..., None, :], (*n.args[1].shape[:-1], 1, n.args[1].shape[-1]))
        self.keep(out, Ex(lambda k, a, b: a * b, [x, y], out.shape, 1 + x.cost + y.cost))

    def _shaped(self, a: Any, view: Any, shape: tuple[int, ...]) -> Any:
        x = self.value(a)
        if (isinstance(x, Ex) and (x.cost >= 4 or x.readers)) or padded(x):
            x = self.memory(a)
        got = viewed(x, view, shape)
        return got if got is not None else viewed(self.memory(a), view, shape)

    def do_dot(self, n: Node) -> None:
        x, y = [self._shaped(a, lambda t: t, a.shape) for a in n.args]
        self._contract(n, x, y, -1)

    def do_matvec(self, n: Node) -> None:
        a, x = n.args
        if a in self.transposed and len(x.shape) == 1:
            left = self._shaped(x, lambda t: t[:, None], (*x.shape, 1))
            return self._contract(n, left, self.transposed[a], -2)
        right = self._shaped(x, lambda t: t[..., None, :], (*x.shape[:-1], 1, x.shape[-1]))
        if len(a.shape) == 2 and len(x.shape) > 1:  # many vectors: one product with the transposed matrix
            m = viewed(self.memory(a), lambda t: t.transpose(1, 0), a.shape[::-1])
            v = self.memory(x)
            rows = prod(x.shape[:-1])
            flat = viewed(v, lambda t: t.reshape(rows, x.shape[-1]), (rows, x.shape[-1]))
            if flat is not None:
                return self._product(n, flat, m, (rows, a.shape[0]))
        return self._contract(n, self._shaped(a, lambda t: t, a.shape), right, -1)

    def do_vecmat(self, n: Node) -> None:
        x, a = n.args
        if len(a.shape) == 2 and len(x.shape) > 1:
            rows = prod(x.shape[:-1])
            flat = viewed(self.memory(x), lambda t: t.reshape(rows, x.shape[-1]), (rows, x.shape[-1]))
            if flat is not None:
                return self._product(n, flat, self.memory(a), (rows, a.shape[1]))
        left = self._shaped(x, lambda t: t[..., :, None], (*x.shape, 1))
        return self._contract(n, left, self._shaped(a, lambda t: t, a.shape), -2)

    def _contract(self, n: Node, a: Any, b: Any, axis: int) -> None:
        shape = tuple(np.broadcast_shapes(a.shape, b.shape))
        target = self.place(n.outs[0])
        both = Ex(
            lambda k, x, y: x * y, [broadcast(a, shape), broadcast(b, shape)], shape, 1 + a.cost + b.cost, "product"
        )
        self.nests.reduce(both, (len(shape) + axis,), target)
        self.env[n.outs[0]] = target

    def _product(self, n: Node, a: Mem, b: Mem, shape: tuple[int, ...]) -> None:
        out = n.outs[0]
        target = self.place(out)
        flat = viewed(target, lambda t: t.reshape(shape), shape)
        if not self._gemm(a, b, flat):
            self.nests.product(a, b, flat)
        self.env[out] = target

    def do_matmul(self, n: Node) -> None:
        a, b = n.args
        out = n.outs[0]
        x, y = self.value(a), self.value(b)
        if isinstance(x, Num) or isinstance(y, Num):  # rows or columns that are all alike
            one, other, axis = (x, b, -2) if isinstance(x, Num) else (y, a, -1)
            part = self._shaped(other, lambda t: t, other.shape)
            shape = (*part.shape[:axis], *part.shape[len(part.shape) + axis + 1 :])
            row = self.nests.temp(shape, out.dtype)
            number = one.number
            self.nests.reduce(
                Ex(lambda k, v: v * number, [part], part.shape, 1 + part.cost), (len(part.shape) + axis,), row
            )
            wide = viewed(
                row,
                lambda t: np.expand_dims(t, axis),
                (*shape[: len(shape) + axis + 1], 1, *shape[len(shape) + axis + 1 :]),
            )
            self.env[out] = broadcast(wide, out.shape)
            return
        left, right = self.memory(a), self.memory(b)
        if len(left.shape) > 2 and len(right.shape) == 2:  # many rows: one product
            rows = prod(left.shape[:-1])
            flat = viewed(left, lambda t: t.reshape(rows, left.shape[-1]), (rows, left.shape[-1]))
            if flat is not None:
                return self._product(n, flat, right, (rows, right.shape[1]))
        target = self.place(out)
        if not self._gemm(left, right, target):
            self.nests.product(left, right, target)
        self.env[out] = target

    def _gemm(self, a: Mem, b: Mem, target: Mem) -> bool:
        """A product of matrices by BLAS, where it is large enough for that; its parts are small enough to run on this thread alone."""
        (m, depth), n = a.shape[-2:], b.shape[-1]
        if len(target.shape) != 2 or m * depth * n < INLINE or min(m, depth, n) < 4:
            return False
        if len(a.shape) != 2 or len(b.shape) != 2 or target.strides != (n, 1):
            return False
        if self.low.parallel or m * depth * n >= ALONE:
            product_in_blocks(self.nests, a, b, target)
            return True
        if self.low.table is None:
            return False
        layouts = []
        for x in (a, b):
            rows, cols = x.shape
            if x.strides[1] == 1 and x.strides[0] >= cols:
                layouts.append((x, x.strides[0], False))
            elif x.strides[0] == 1 and x.strides[1] >= rows:
                layouts.append((x, x.strides[1], True))
            else:
                layouts.append((self.nests.put(x, self.nests.temp(x.shape, self.low.compute)), cols, False))
        (a, lda, turned), (b, ldb, transposed) = layouts
        step = max(1, min(m, ALONE // (depth * n)))
        address = self.low.table.raw(0)
        for start in range(0, m, step):
            rows = min(step, m - start)
            first = start * (1 if turned else lda)
            self.k.gemm(
                address,
                (rows, n, depth),
                (a.array, a.offset + first if first else a.offset, lda),
                (b.array, b.offset, ldb),
                (target.array, target.offset + start * n if start else target.offset, n),
                transposed,
                False,
                turned,
            )
        return True

    def do_linear(self, n: Node) -> None:
        """x wᵀ + b: the product of all rows of x, to which b is added where it is read."""
        x, w, b = n.args
        out = n.outs[0]
        rows = prod(x.shape[:-1])
        left = self._matrix(x, (rows, x.shape[-1]))
        right = viewed(self.memory(w), lambda t: t.transpose(1, 0), w.shape[::-1])
        target = self.nests.temp(out.shape, out.dtype)
        flat = viewed(target, lambda t: t.reshape(rows, w.shape[0]), (rows, w.shape[0]))
        if not self._gemm(left, right, flat):
            self.nests.product(left, right, flat)
        self.keep(out, Ex(lambda k, y, b: y + b, [target, self.value(b)], out.shape, 1))

    def _matrix(self, a: Any, shape: tuple[int, int]) -> Mem:
        """A value in memory as a matrix."""
        m = self.memory(a)
        got = viewed(m, lambda t: t.reshape(shape), shape)
        if got is None:
            got = viewed(self.nests.put(m, self.nests.temp(m.shape, a.dtype)), lambda t: t.reshape(shape), shape)
        return got

    def do_solve(self, n: Node) -> None:
        from .small_matrices import by_scalars

        by_scalars(self, n)

    do_solve_triangular = do_solve

    def do_while_loop(self, n: Node) -> None:
        from .machine_branches import while_loop

        while_loop(self, n)

    def do_switch(self, n: Node) -> None:
        from .machine_branches import switch

        switch(self, n)

    def do_scan(self, n: Node) -> None:
        from .machine_loops import batch_size, batched_scan, scan

        if b := batch_size(n):
            batched_scan(self, n, b)
        else:
            scan(self, n)
