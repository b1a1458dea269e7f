"""Order in rows of a few entries, each compared with all: sorts, the greatest, the k-th, medians, the most frequent.

The order is that of :mod:`.ordering`: stable, NaN greatest, -0 equal to 0. Other dims than the last are copied to the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported, kernel_type, prod
from .lang import BY_NAME, Kernel, Value, compute_type, f32, f64, i64
from .ordering import FEW, INTS, key, key_type

MOST = 1 << 12  # entries


class _Row:
    """The kernel over rows: their keys in memory of its own, and how often something holds of them."""

    def __init__(self, what: str, name: str, turned: bool) -> None:
        t = BY_NAME[name]
        self.kind = key_type(t)
        compute = compute_type(t) if t.kind == "f" else f64 if self.kind is i64 else f32
        self.k = k = Kernel(f"rank_{what}_{'down' if turned else 'up'}_{name}", compute)
        self.turned, self.x = turned, k.array("x", t)
        self.keys = k.local("keys", self.kind, FEW)

    def keyed(self, row: Value, n: Value) -> None:
        with self.k.lanes(n, unroll=1) as j:
            self.keys[j] = key(self.k, self.x, row * n + j, self.turned)

    def count(self, n: Value, holds: Callable[[Value, Value], Value]) -> Value:
        """How many keys there are with ``holds(key, where)``."""
        k = self.k
        s = k.acc("add", wide=f64)
        with k.lanes(n, unroll=1) as b:
            s.add(k.select(holds(self.keys[b], b), k.const(1.0, k.compute), 0.0))
        return s.total().to(i64)


def build_sort(name: str, turned: bool) -> Kernel:
    """``y[row, j]`` and ``place[row, j]`` for j below m: the first entries of a row in order, and where they were."""
    r = _Row("sort", name, turned)
    k, x = r.k, r.x
    y, place = k.array("y", x.dtype), k.array("place", i64)
    rows, n, m = k.size("rows"), k.size("n"), k.size("m")
    with k.grid(rows, cost=n * n) as row:
        r.keyed(row, n)
        with k.loop(0, n) as a:
            mine = r.keys[a]
            rank = r.count(n, lambda v, b, mine=mine, a=a: (v < mine) | (v.eq(mine) & (b < a)))  # type: ignore[misc]
            with k.when(rank < m):
                place[row * m + rank] = a
                y[row * m + rank] = x.raw(row * n + a)
    return k


def build_pick(what: str, name: str) -> Kernel:
    """``place[row]`` of the first entry equal to the one at place `m` of a sort: for a median the first NaN where there is one.

    Of a mode, of the most frequent entries the smallest, where it stands last.
    """
    r = _Row(what, name, False)
    k, x = r.k, r.x
    place = k.array("place", i64)
    rows, n, m = k.size("rows"), k.size("n"), k.size("m")
    with k.grid(rows, cost=n * n) as row:
        r.keyed(row, n)
        at, best, value = k.var(i64, 0), k.var(i64, 0), k.var(r.kind, 0)
        wanted = m
        if what in ("median", "nanmedian") and x.dtype.kind == "f":
            nan = (1 << (8 * r.kind.size - 1)) - 1
            nans = r.count(n, lambda v, b: v.eq(nan))
            wanted = k.select(nans > 0, n - 1, m) if what == "median" else k.maximum((n - nans - 1) // 2, 0)
        with k.loop(0, n) as j:
            a = j if what == "mode" else n - 1 - j
            mine = r.keys[a]
            same = r.count(n, lambda v, b, mine=mine: v.eq(mine))  # type: ignore[misc]
            if what == "mode":
                better = (same > best.get()) | (same.eq(best.get()) & (mine <= value.get()))
                best.set(k.select(better, same, best.get()))
                value.set(k.select(better, mine, value.get()))
            else:
                less = r.count(n, lambda v, b, mine=mine: v < mine)  # type: ignore[misc]
                better = (less <= wanted) & (wanted < less + same)
            at.set(k.select(better, a, at.get()))
        place[row] = at.get()
    return k


def _compiled(what: str, name: str, turned: bool) -> Callable[..., Any]:
    return compiler.compile_kernel(build_sort(name, turned) if what == "sort" else build_pick(what, name))


_kernels = Calls(_compiled)


def _prepare(what: str, xd: np.dtype, shape: tuple[int, ...], dim: int, m: int, turned: bool) -> Any:
    """The function of arrays of one type and shape."""
    name = INTS.get(xd) or kernel_type(xd).name
    ndim = len(shape)
    n = shape[dim]
    if not 0 < n <= FEW or not prod(shape) or prod(shape) > MOST or (what == "sort" and not 0 < m <= n):
        raise NotSupported
    f = _kernels[what, name, turned]
    if f is None:
        raise NotSupported
    rows, d = prod(shape) // n, dim % ndim
    order: Any = None if d == ndim - 1 else (*[a for a in range(ndim) if a != d], d)
    back: Any = None if order is None else tuple([order.index(a) for a in range(ndim)])
    lead = tuple([s for a, s in enumerate(shape) if a != d])
    out = (*lead, m) if what == "sort" else (*lead, 1)
    threads, new, i64_ = runtime.pool, np.empty, np.dtype(np.int64)

    def pick(x: np.ndarray) -> np.ndarray:
        a = x if order is None else x.transpose(order).copy()
        place = new(out, i64_)
        if f(threads(), a, place, rows, n, m) is False:
            f(threads(), a.copy(), place, rows, n, m)
        return place if back is None else place.transpose(back).copy()

    def sort(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a = x if order is None else x.transpose(order).copy()
        y, place = new(out, xd), new(out, i64_)
        if f(threads(), a, y, place, rows, n, m) is False:
            f(threads(), a.copy(), y, place, rows, n, m)
        return (y, place) if back is None else (y.transpose(back).copy(), place.transpose(back).copy())

    return sort if what == "sort" else pick


_calls = Calls(_prepare)


def first(x: np.ndarray, dim: int, m: int, descending: bool) -> Any:
    """The first m entries of a sort along `dim` and their places, as a function of arrays like `x`; None where there is none."""
    return _calls["sort", x.dtype, x.shape, dim, m, descending]


def place(what: str, x: np.ndarray, dim: int, k: int = 0) -> Any:
    """Where the "nth" entry (the k-th of a sort), the "median", "nanmedian" or "mode" stands along `dim`, as a function of arrays like `x`, or None."""
    return _calls[what, x.dtype, x.shape, dim, k, False]
