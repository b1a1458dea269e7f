"""Products with a sparse matrix: its rows times a dense matrix, and a dense product at its places alone.

A matrix is where each of its rows begins, the columns, and the order in which its numbers are read (so that the transpose reads
the same numbers). One row of the result is one index of the grid; the columns of the dense matrix are lanes, their sums
stay in registers. A batch shares the indices; a step of 0 from one example to the next says that all have the same operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported, kernel_type
from .lang import BY_NAME, Kernel, i64, precise_type
from .pool import empty

AHEAD = 4  # rows of the dense matrix that are asked for in advance
LINE = 64


def build_rows(name: str, ordered: bool) -> Kernel:
    """``y[b, i, :] = sum over p in start[i]..start[i+1] of v[b, order[p]] * x[b, column[p], :]``"""
    t = BY_NAME[name]
    k = Kernel(f"sparse_rows_{'ordered_' if ordered else ''}{name}", precise_type(t))
    start, column, order = k.array("start", i64), k.array("column", i64), k.array("order", i64)
    v, x, y = k.array("v", t), k.array("x", t), k.array("y", t)
    batch, rows, n, vstep, xstep = (k.size(s) for s in ("batch", "rows", "n", "vstep", "xstep"))
    per = LINE // t.size
    with k.grid(batch * rows, cost=n * 8) as g:
        i, b = g % rows, g // rows
        first, last = start[i], start[i + 1]
        vb, xb = b * vstep, b * xstep
        end = start[rows] - 1
        with k.lanes(n, unroll=4) as j:
            s = k.var(k.compute, 0.0, varying=True)
            with k.loop(first, last) as p:
                s.set(k.fma(v[vb + (order[p] if ordered else p)], x[xb + column[p] * n + j], s.get()))
            y[g * n + j] = s.get()
        # The rows that the next indices of the grid read.
        with k.loop(last, k.minimum(last + AHEAD * 2, end)) as p:
            row = xb + column[p] * n
            with k.loop(0, k.minimum(n, 4 * per), per) as c:
                k.prefetch(x, row + c)
    return k


def build_sampled(name: str, ordered: bool) -> Kernel:
    """``v[b, order[p]] = sum over c of a[b, i, c] * x[b, column[p], c]`` for the entries p of row i."""
    t = BY_NAME[name]
    k = Kernel(f"sparse_sampled_{'ordered_' if ordered else ''}{name}", precise_type(t))
    start, column, order = k.array("start", i64), k.array("column", i64), k.array("order", i64)
    a, x, v = k.array("a", t), k.array("x", t), k.array("v", t)
    batch, rows, n, count, astep, xstep = (k.size(s) for s in ("batch", "rows", "n", "count", "astep", "xstep"))
    per = LINE // t.size
    with k.grid(batch * rows, cost=n * 8) as g:
        i, b = g % rows, g // rows
        ab, xb, vb = b * astep + i * n, b * xstep, b * count
        last = start[i + 1]
        end = start[rows] - 1
        with k.loop(start[i], last) as p:
            far = k.minimum(p + AHEAD, end)
            row = xb + column[far] * n
            with k.loop(0, k.minimum(n, 4 * per), per) as c:
                k.prefetch(x, row + c)
            s = k.acc("add")
            with k.lanes(n, unroll=4) as j:
                s.fma(a[ab + j], x[xb + column[p] * n + j])
            v[vb + (order[p] if ordered else p)] = s.total()
    return k


_compiled: dict[tuple[Any, ...], Callable[..., Any]] = {}


def _prepare(dtype: np.dtype, ordered: bool, sampled: bool) -> Any:
    key = (str(kernel_type(dtype)), ordered, sampled)
    f = _compiled.get(key)
    if f is None:
        k = (build_sampled if sampled else build_rows)(*key[:2])
        f = _compiled[key] = compiler.compile_kernel(k)
    return f


_calls = Calls(_prepare)
_NONE = np.zeros(1, np.int64)


def _step(x: np.ndarray, core: int) -> int:
    """How far apart the examples of a batch lie; 0 where there is one for all."""
    return x[0].size if x.ndim > core and len(x) > 1 else 0


def rows_times(start: Any, column: Any, order: Any, v: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The matrix with the numbers ``v[batch or 1, count]`` times ``x[batch or 1, columns, n]``."""
    call = _calls[v.dtype, order is not None, False]
    if call is None or v.dtype != x.dtype:
        raise NotSupported
    batch, rows, n = max(len(v), len(x)), len(start) - 1, x.shape[-1]
    v, x = np.ascontiguousarray(v), np.ascontiguousarray(x)
    y = empty((batch, rows, n), x.dtype)
    where = _NONE if order is None else order
    if not y.size:
        return y
    if call(runtime.pool(), start, column, where, v, x, y, batch, rows, n, _step(v, 1), _step(x, 2)) is False:
        raise NotSupported
    return y


def sampled(start: Any, column: Any, order: Any, a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """``a[batch or 1, rows, n]`` times the transpose of ``x[batch or 1, columns, n]`` at the places of the matrix."""
    call = _calls[a.dtype, order is not None, True]
    if call is None or a.dtype != x.dtype:
        raise NotSupported
    batch, rows, n, count = max(len(a), len(x)), len(start) - 1, x.shape[-1], len(column)
    a, x = np.ascontiguousarray(a), np.ascontiguousarray(x)
    v = empty((batch, count), x.dtype)
    where = _NONE if order is None else order
    if not v.size:
        return v
    if call(runtime.pool(), start, column, where, a, x, v, batch, rows, n, count, _step(a, 2), _step(x, 2)) is False:
        raise NotSupported
    return v
