"""softmax and log_softmax along a dim, and their reverse rules (in terms of the result y).

Along the last dim rows are vectors; along another one vectors lie on neighbouring sequences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import compiler, math, runtime
from .calls import Calls, NotSupported, kernel_type, prod
from .functions import less_share
from .lang import BY_NAME, DType, Kernel, Value, compute_type, f64
from .pool import empty
from .rows import RowPlan, prepare


class _Forward(RowPlan):
    """y = exp(x - m)/s or (x - m) - log(s), with m = max(x), s = sum(exp(x - m))"""

    name = "softmax"
    reductions = (("max",), ("add",))
    small, large = (4, 1), (1, 2)
    precise = False

    def __init__(self, dtype: DType, log: bool):
        self.dtype, self.log = dtype, log

    def declare(self, k: Kernel, stream: bool) -> None:
        self.inputs, self.vectors, self.columns = [k.array("x", self.dtype)], [], []
        self.outputs = [k.array("y", self.dtype, stream)]
        # The exponentials wait in the output for their sum, unless they would be rounded there or leave the cache.
        self.stored = 1 if not (self.log or stream) and compute_type(self.dtype) is self.dtype else None

    def terms(self, stage: Any, x: Any, vec: Any, coef: Any) -> Any:
        return [(x[0], None)] if stage == 0 else [(math.exp(self.k, x[0] - coef[0]), None)]

    def finish(self, stage: Any, row: Any, sums: Any, coef: Any) -> Any:
        if stage == 0:
            return [sums[0]]
        return [math.log(self.k, sums[0]) if self.log else 1.0 / sums[0]]

    def apply(self, x: Any, vec: Any, coef: Any) -> Any:
        if self.stored is not None:
            return [x[0] * coef[1]], []
        d = x[0] - coef[0]
        return [d - coef[1] if self.log else math.exp(self.k, d) * coef[1]], []


class _Backward(RowPlan):
    """gx = y (g - sum(g y)), or g - exp(y) sum(g) for log_softmax"""

    name = "softmax_backward"
    arrays = 3
    reductions = (("add",),)
    precise = False

    def __init__(self, dtype: DType, log: bool):
        self.dtype, self.log = dtype, log

    def declare(self, k: Kernel, stream: bool) -> None:
        self.inputs, self.vectors, self.columns = [k.array("g", self.dtype), k.array("y", self.dtype)], [], []
        self.outputs = [k.array("gx", self.dtype, stream)]

    def terms(self, stage: Any, x: Any, vec: Any, coef: Any) -> Any:
        return [(x[0], None if self.log else x[1])]

    def finish(self, stage: Any, row: Any, sums: Any, coef: Any) -> Any:
        return [sums[0]]

    def apply(self, x: Any, vec: Any, coef: Any) -> Any:
        g, y = x
        return [less_share(self.k, g, y, coef[0]) if self.log else (g - coef[0]) * y], []


def _prepare(plan: type[RowPlan], xd: np.dtype, shape: tuple[int, ...], log: bool) -> Any:
    dtype = kernel_type(xd)
    if not shape or not shape[-1]:
        raise NotSupported
    n = shape[-1]
    return prepare(plan, (dtype, log), prod(shape) // n, n, prod(shape) * dtype.size)


_calls = Calls(_prepare)


def _prepare_last(xd: np.dtype, shape: tuple[int, ...], log: bool) -> Any:
    """The function of arrays of one type and shape."""
    go = _prepare(_Forward, xd, shape, log)

    def last(x: np.ndarray) -> np.ndarray:
        y = empty(shape, xd)
        if go(x, y) is False:
            go(x.copy(), y)
        return y

    return last


_last = Calls(_prepare_last)


TILE = 256  # sequences side by side


def build_columns(name: str, log: bool, pull: bool) -> Kernel:
    """The same over the middle dim of [k1, n, k2], row by row."""
    t = BY_NAME[name]
    k = Kernel(f"{'log_' if log else ''}softmax_columns{'_backward' if pull else ''}_{name}", compute_type(t))
    sources = [k.array("g", t), k.array("y", t)] if pull else [k.array("x", t)]
    out = k.array("gx" if pull else "z", t)
    k1, n, k2 = k.size("k1"), k.size("n"), k.size("k2")
    total, most, scale = (
        k.local("total", f64, TILE),
        k.local("most", k.compute, TILE),
        k.local("scale", k.compute, TILE),
    )
    tiles = (k2 + (TILE - 1)) // TILE
    with k.grid(k1 * tiles, cost=n * k.minimum(k2, TILE) * 16) as part:
        first = part % tiles * TILE
        base, width = part // tiles * n * k2 + first, k.minimum(k2 - first, TILE)

        def rows(step: Callable[[Value, Value, list[Value]], None]) -> None:
            """``step(column, place, entries)`` for every row."""
            with k.loop(0, n) as i, k.lanes(width, unroll=2) as j:
                here = base + i * k2 + j
                step(j, here, [a[here] for a in sources])

        def add(j: Value, here: Value, v: list[Value]) -> None:
            total[j] = total.raw(j) + (v[0] if log else v[0] * v[1]).to(f64)

        def pulled(j: Value, here: Value, v: list[Value]) -> None:
            out[here] = less_share(k, v[0], v[1], scale[j]) if log else (v[0] - scale[j]) * v[1]

        def greatest(j: Value, here: Value, v: list[Value]) -> None:
            most[j] = k.maximum(v[0], most[j])

        stored = not log and k.compute is t  # the exponentials wait where they belong, unless they would be rounded

        def add_exp(j: Value, here: Value, v: list[Value]) -> None:
            e = math.exp(k, v[0] - most[j])
            total[j] = total.raw(j) + e.to(f64)
            if stored:
                out[here] = e

        def scaled(j: Value, here: Value, v: list[Value]) -> None:
            d = v[0] - most[j]
            out[here] = out[here] * scale[j] if stored else d - scale[j] if log else math.exp(k, d) * scale[j]

        with k.lanes(width) as j:
            total[j] = 0.0
            most[j] = -math.INF
        if not pull:
            rows(greatest)
        rows(add if pull else add_exp)
        with k.lanes(width) as j:
            s = total.raw(j).to(k.compute)
            scale[j] = s if pull else math.log(k, s) if log else 1.0 / s
        rows(pulled if pull else scaled)
    return k


def _columns(name: str, log: bool, pull: bool) -> Any:
    return compiler.compile_kernel(build_columns(name, log, pull))


_column_loops = Calls(_columns)


def _prepare_along(xd: np.dtype, shape: tuple[int, ...], dim: int, log: bool, pull: bool) -> Any:
    """The function of x, or of g and y, of one type and shape; it copies those that do not lie in rows."""
    k2 = prod(shape[dim:][1:])
    if not prod(shape):
        raise NotSupported
    if k2 == 1:
        rows = _prepare(_Backward if pull else _Forward, xd, (*shape[:dim], shape[dim]), log)
        run: Any = lambda *arrays: rows(*arrays)
    else:
        f, sizes, threads = (
            _column_loops[kernel_type(xd).name, log, pull],
            (prod(shape[:dim]), shape[dim], k2),
            runtime.pool,
        )
        if f is None:
            raise NotSupported
        run = lambda *arrays: f(threads(), *arrays, *sizes)

    def go(*arrays: np.ndarray) -> np.ndarray:
        y = empty(shape, xd)
        if run(*arrays, y) is False:
            run(*[a.copy() for a in arrays], y)
        return y

    return go


_along = Calls(_prepare_along)


def along(x: np.ndarray, dim: int, log: bool) -> Any:
    """softmax or log_softmax over a negative dim, as a function of arrays like `x`; None where there is none."""
    return _last[x.dtype, x.shape, log] if dim == -1 else _along[x.dtype, x.shape, dim, log, False]


def pull_along(g: np.ndarray, y: np.ndarray, dim: int, log: bool) -> Any:
    """Their reverse rules, as a function of arrays like `g` and `y`; None where there is none."""
    return _along[y.dtype, y.shape, dim, log, True] if g.shape == y.shape and g.dtype == y.dtype else None


def _forward(x: np.ndarray, log: bool) -> np.ndarray:
    go = _calls[_Forward, x.dtype, x.shape, log]
    y = empty(x.shape, x.dtype)
    if go is None or go(x, y) is False:
        raise NotSupported
    return y


def _backward(g: np.ndarray, y: np.ndarray, log: bool) -> np.ndarray:
    go = _calls[_Backward, y.dtype, y.shape, log]
    if go is None or g.shape != y.shape or g.dtype != y.dtype:
        raise NotSupported
    gx = empty(y.shape, y.dtype)
    if go(g, y, gx) is False:
        raise NotSupported
    return gx


def softmax(x: np.ndarray) -> np.ndarray:
    """exp(x - max)/sum over the last dim"""
    return _forward(x, False)


def log_softmax(x: np.ndarray) -> np.ndarray:
    """x - log(sum(exp(x))) over the last dim"""
    return _forward(x, True)


def softmax_backward(g: np.ndarray, y: np.ndarray) -> np.ndarray:
    """y (g - sum(g y))"""
    return _backward(g, y, False)


def log_softmax_backward(g: np.ndarray, y: np.ndarray) -> np.ndarray:
    """g - exp(y) sum(g)"""
    return _backward(g, y, True)
