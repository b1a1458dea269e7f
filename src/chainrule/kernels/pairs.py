"""Pairs of points: Euclidean distances of all rows of two matrices, and sums of weighted differences, without an array of differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported, kernel_type
from .lang import DType, Kernel, Value, f64
from .pool import empty

ROWS, COLUMNS = 4, 4  # points side by side; coordinates side by side where pairs are summed


def _build_distances(dtype: DType) -> Kernel:
    """y[i, j] = |a[i] - b[j]|: a [batch, p, m], bt [batch, m, r]."""
    k = Kernel(f"distances_{dtype}", dtype)
    a, bt, y = k.array("a", dtype), k.array("bt", dtype), k.array("y", dtype)
    batch, p, r, m = (k.size(n) for n in ("batch", "p", "r", "m"))

    def some(n: Value, first: Value, count: int) -> None:
        with k.lanes(r, unroll=1 if dtype is not f64 else 2) as j:
            sums = [k.var(f64, 0.0, varying=True) for _ in range(count)]  # squares of large numbers need the range
            with k.loop(0, m) as i:
                column = bt[(n * m + i) * r + j]
                for q, s in enumerate(sums):
                    d = (a[(n * p + first + q) * m + i] - column).to(f64)
                    s.set(k.fma(d, d, s.get()))
            for q, s in enumerate(sums):
                y[(n * p + first + q) * r + j] = k.sqrt(s.get())

    blocks = (p + (ROWS - 1)) // ROWS
    with k.grid(batch * blocks, cost=m * r * (ROWS // 2)) as g:
        n, first = g // blocks, g % blocks * ROWS
        with k.when(p - first >= ROWS):
            some(n, first, ROWS)
        with k.when(p - first < ROWS), k.loop(first, p) as i:
            some(n, i, 1)
    return k


def _build_pull(dtype: DType) -> Kernel:
    """y[i] = sum_j w[i, j] (a[i] - b[j]): w [batch, p, r], a [batch, p, m], bt [batch, m, r]."""
    k = Kernel(f"pull_{dtype}", dtype)
    w, a, bt, y = (k.array(n, dtype) for n in ("w", "a", "bt", "y"))
    batch, p, r, m = (k.size(n) for n in ("batch", "p", "r", "m"))
    with k.grid(batch * p, cost=m * r) as g:
        n = g // p

        def some(first: Value, count: int) -> None:
            sums = [k.acc("add", wide=f64) for _ in range(count)]
            here = [a[g * m + first + q] for q in range(count)]
            with k.reducing(r, sums, unroll=1) as j:
                weight = w[g * r + j]
                for q, s in enumerate(sums):
                    s.fma(weight, here[q] - bt[(n * m + first + q) * r + j])
            for q, s in enumerate(sums):
                y[g * m + first + q] = s.total()

        whole = m // COLUMNS * COLUMNS
        with k.loop(0, whole, COLUMNS) as i:
            some(i, COLUMNS)
        with k.loop(whole, m) as i:
            some(i, 1)
    return k


def _prepare(kind: str, dtype: np.dtype) -> Any:
    t = kernel_type(dtype)
    if t.size < 4:
        raise NotSupported
    return compiler.compile_kernel(_build_pull(t) if kind == "pull" else _build_distances(t))


_calls = Calls(_prepare)


def _flat(lead: tuple[int, ...], x: Any) -> Any:
    x = x if x.shape[:-2] == lead else np.broadcast_to(x, (*lead, *x.shape[-2:]))
    return np.ascontiguousarray(x)


def _sizes(lead: tuple[int, ...], a: Any, b: Any) -> tuple[int, int, int, int]:
    n = 1
    for s in lead:
        n *= s
    return n, a.shape[-2], b.shape[-2], a.shape[-1]


def distances(a: Any, b: Any) -> Any:
    """``|a[i] - b[j]|`` of the rows of matrices, whose leading axes broadcast."""
    f = _calls["distances", a.dtype]
    if f is None or b.dtype is not a.dtype:
        raise NotSupported
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    scale = _scale(a, b)
    if scale != 1:
        a, b = a * scale, b * scale
    a, bt = _flat(lead, a), _flat(lead, b.swapaxes(-1, -2))
    y = empty((*lead, a.shape[-2], b.shape[-2]), a.dtype)
    if y.size and f(runtime.pool(), a, bt, y, *_sizes(lead, a, b)) is False:
        raise NotSupported
    return y if scale == 1 else y / scale


def _scale(a: Any, b: Any) -> float:
    """A power of two that keeps squares within the range of double precision."""
    if a.dtype.itemsize < 8 or not a.size or not b.size:
        return 1
    top = max(-a.min(), a.max(), -b.min(), b.max())
    return 1 if 1e-140 < top < 1e140 or not top or not np.isfinite(top) else 2.0 ** -int(np.log2(top))


def pull(w: Any, a: Any, b: Any) -> Any:
    """``sum_j w[i, j] (a[i] - b[j])``."""
    f = _calls["pull", a.dtype]
    if f is None or b.dtype is not a.dtype or w.dtype is not a.dtype:
        raise NotSupported
    lead = np.broadcast_shapes(w.shape[:-2], a.shape[:-2], b.shape[:-2])
    w, a, bt = _flat(lead, w), _flat(lead, a), _flat(lead, b.swapaxes(-1, -2))
    y = empty((*lead, *a.shape[-2:]), a.dtype)
    if y.size and f(runtime.pool(), w, a, bt, y, *_sizes(lead, a, b)) is False:
        raise NotSupported
    return y
