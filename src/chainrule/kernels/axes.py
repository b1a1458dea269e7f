"""Maps along the last axes of an array: sums over windows, resizing, maxima, for windows of any form along each axis.

What a result reads is a table for the last axis (so many entries for each result, padded), and a list for all axes before it: a line of
the result is a sum of lines of the input, then a sum along that line. The transpose of such a map is such a map.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported, kernel_type, prod
from .lang import DType, Kernel, i64
from .pool import empty

PARTS = 8  # parts of the work, at least, where arrays are few and lines are many


class Tables(NamedTuple):
    """Which lines (a list for each result, from `first` on) and which entries of them (`longest` rows of a table) a result reads."""

    first: Any  # [lines out + 1]
    line: Any  # [taps]
    line_weight: Any  # [taps], or None: all are one
    entry: Any  # [longest, m]
    count: Any  # [m]
    entry_weight: Any  # [longest, m], or None


def _build_sum(dtype: DType, weighted: bool, divided: str) -> Kernel:
    """`divided` says which values are divided by the product of two numbers, of their line and of their column: "", "x" or "y"."""
    k = Kernel(f"axes_{dtype}{'_weighted' if weighted else ''}{'_' + divided if divided else ''}", dtype)
    x, y, row = k.array("x", dtype), k.array("y", dtype), k.array("row", dtype)
    first, line, entry, count = (k.array(n, i64) for n in ("first", "line", "entry", "count"))
    line_weight, entry_weight = (k.array(n, dtype) for n in ("wl", "we")) if weighted else (None, None)
    by_line, by_column = (k.array(n, dtype) for n in ("bl", "bc")) if divided else (None, None)
    arrays, lines, n, out, m, longest, parts, part = (
        k.size(s) for s in ("arrays", "lines", "n", "out", "m", "longest", "parts", "part")
    )
    with k.grid(arrays * parts, cost=part * (n + m * longest)) as g:
        a, start = g // parts, g % parts * part
        with k.loop(start, k.minimum(start + part, out)) as r:
            low, high = first[r], first[r + 1]
            with k.lanes(n, unroll=2) as j:
                total = k.var(dtype, 0.0, varying=True)
                with k.loop(low, high) as t:
                    at = line[t]
                    v = x[(a * lines + at) * n + j]
                    if divided == "x":
                        v = v / (by_line[at] * by_column[j])  # type: ignore[index]
                    total.set(total.get() + (v if line_weight is None else v * line_weight[t]))
                row[g * n + j] = total.get()
            with k.lanes(m, unroll=2) as j:
                total = k.var(dtype, 0.0, varying=True)
                with k.loop(0, longest) as b:
                    v = row[g * n + entry[b * m + j]]
                    v = v if entry_weight is None else v * entry_weight[b * m + j]
                    total.set(total.get() + k.select(count[j] > b, v, 0.0))
                v = total.get()
                y[(a * out + r) * m + j] = v / (by_line[r] * by_column[j]) if divided == "y" else v  # type: ignore[index]
    return k


def _build_max(dtype: DType) -> Kernel:
    """The first of the largest entries, in the order of memory, and its place; the last NaN wins."""
    k = Kernel(f"axes_max_{dtype}", dtype)
    x, y, place = k.array("x", dtype), k.array("y", dtype), k.array("place", i64)
    first, line, entry, count = (k.array(n, i64) for n in ("first", "line", "entry", "count"))
    arrays, lines, n, out, m, longest, parts, part = (
        k.size(s) for s in ("arrays", "lines", "n", "out", "m", "longest", "parts", "part")
    )
    with k.grid(arrays * parts, cost=part * m * longest * 2) as g:
        a, start = g // parts, g % parts * part
        with k.loop(start, k.minimum(start + part, out)) as r:
            low, high = first[r], first[r + 1]
            with k.lanes(m, unroll=1) as j:
                best = k.var(dtype, float("-inf"), varying=True)
                where = k.var(i64, line[low] * n + entry[j], varying=True)
                with k.loop(low, high) as t:
                    base = line[t] * n
                    with k.loop(0, longest) as b:
                        at = base + entry[b * m + j]
                        v = x[a * lines * n + at]
                        old = best.get()
                        new = ((v > old) | v.ne(v)) & (count[j] > b)
                        best.set(k.select(new, v, old))
                        where.set(k.select(new, at, where.get()))
                y[(a * out + r) * m + j] = best.get()
                place[(a * out + r) * m + j] = where.get()
    return k


def _prepare(kind: str, dtype: np.dtype, weighted: bool, divided: str) -> Any:
    t = kernel_type(dtype)
    if t.size < 4:
        raise NotSupported
    return compiler.compile_kernel(_build_max(t) if kind == "max" else _build_sum(t, weighted, divided))


_calls = Calls(_prepare)


def _parts(arrays: int, out: int) -> tuple[int, int]:
    part = max(1, -(-out // max(1, -(-PARTS // max(arrays, 1)))))
    return -(-out // part), part


def sums_at(xd: Any, sizes: tuple[int, int, int], tables: Tables, by: Any, divided: str, shape: tuple[int, ...]) -> Any:
    """`sums` as a function of arrays of one type and size to one of a shape, or None; it gives None for what is not contiguous."""
    arrays, lines, n = sizes
    out, (longest, m) = len(tables.first) - 1, tables.entry.shape
    f = _calls["sum", xd, tables.line_weight is not None, divided]
    if f is None or not prod(shape):
        return None
    parts, part = _parts(arrays, out)
    more = () if tables.line_weight is None else (tables.line_weight, tables.entry_weight)
    tail = (tables.first, tables.line, tables.entry, tables.count, *more, *(by if divided else ()))
    tail += (arrays, lines, n, out, m, longest, parts, part)
    threads = runtime.pool

    def go(x: Any) -> Any:
        y = empty(shape, xd)
        return None if f(threads(), x, y, empty((arrays * parts * n,), xd), *tail) is False else y

    return go


def maxima_at(xd: Any, sizes: tuple[int, int, int], tables: Tables, shape: tuple[int, ...]) -> Any:
    """`maxima` as a function of arrays of one type and size to two of a shape, or None; it gives None for what is not contiguous."""
    arrays, lines, n = sizes
    out, (longest, m) = len(tables.first) - 1, tables.entry.shape
    f = _calls["max", xd, False, ""]
    if f is None or not prod(shape):
        return None
    parts, part = _parts(arrays, out)
    tail = (tables.first, tables.line, tables.entry, tables.count, arrays, lines, n, out, m, longest, parts, part)
    threads = runtime.pool

    def go(x: Any) -> Any:
        y, place = empty(shape, xd), empty(shape, np.int64)
        return None if f(threads(), x, y, place, *tail) is False else (y, place)

    return go


def sums(x: Any, tables: Tables, by: Any, divided: str) -> Any:
    """x [arrays, lines, n] -> [arrays, lines out, m]; `by` are the divisors of lines and of columns (of x or of the result)."""
    arrays, lines, n = x.shape
    out, (longest, m) = len(tables.first) - 1, tables.entry.shape
    f = _calls["sum", x.dtype, tables.line_weight is not None, divided]
    if f is None:
        raise NotSupported
    y = empty((arrays, out, m), x.dtype)
    if y.size:
        parts, part = _parts(arrays, out)
        row = empty((arrays * parts * n,), x.dtype)
        more = () if tables.line_weight is None else (tables.line_weight, tables.entry_weight)
        head = (x, y, row, tables.first, tables.line, tables.entry, tables.count, *more, *(by if divided else ()))
        if f(runtime.pool(), *head, arrays, lines, n, out, m, longest, parts, part) is False:
            raise NotSupported
    return y


def maxima(x: Any, tables: Tables) -> tuple[Any, Any]:
    """x [arrays, lines, n] -> the largest entries [arrays, lines out, m], and their places among lines * n."""
    arrays, lines, n = x.shape
    out, (longest, m) = len(tables.first) - 1, tables.entry.shape
    f = _calls["max", x.dtype, False, ""]
    if f is None:
        raise NotSupported
    y, place = empty((arrays, out, m), x.dtype), empty((arrays, out, m), np.int64)
    if y.size:
        parts, part = _parts(arrays, out)
        args = (x, y, place, tables.first, tables.line, tables.entry, tables.count)
        if f(runtime.pool(), *args, arrays, lines, n, out, m, longest, parts, part) is False:
            raise NotSupported
    return y, place
