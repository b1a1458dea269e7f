"""Reduce along each row, map the row, and sum columns: arrays [rows, n], a few rows at a time.

Layer norm, RMS norm and softmax, their reverse rules, second-order rules and tangents are all of this form. A `RowPlan` says what
is reduced, what comes of it and what is summed over the rows (gradients of weights). Column sums are partial sums over chunks of
rows, chunked by shape only, then added in order: results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import compiler, pool, runtime
from .calls import NotSupported, scratch_of, streams
from .lang import Array, DType, Kernel, Value, compute_type, precise_type

SMALL_BYTES = 1 << 19  # results up to this size fit the cache together with the arguments

Terms = list[tuple[Value, Value | None]]


class RowPlan:
    """What one operator computes of a row. Values: x per element, vec per column, coef per row."""

    name = ""
    reductions: tuple[tuple[str, ...], ...] = ()  # per stage, the kind of each reduction: add, max
    # (rows in flight, vectors of a row in flight). Small problems: rows share the loads of per-column values and hide each
    # other's latency. Large ones: one stream of memory after the other, which is what prefetching and write combining like.
    small, large = (4, 1), (1, 4)
    precise = True  # in f64 for 16-bit elements
    k: Kernel
    inputs: list[Array]
    vectors: list[Array]
    outputs: list[Array]
    columns: list[Array]

    def declare(self, k: Kernel, stream: bool) -> None:
        raise NotImplementedError

    def start(self, row: Value) -> list[Value]:
        """Coefficients known before the first stage."""
        return []

    def terms(self, stage: int, x: list[Value], vec: list[Value], coef: list[Value]) -> Terms:
        raise NotImplementedError

    def finish(self, stage: int, row: Value, sums: list[Value], coef: list[Value]) -> list[Value]:
        """New coefficients from a stage's reductions; may store per-row results."""
        raise NotImplementedError

    def apply(self, x: list[Value], vec: list[Value], coef: list[Value]) -> tuple[list[Value], Terms]:
        """The outputs of one element, and what it adds to the column sums."""
        raise NotImplementedError


def _block(
    p: RowPlan, k: Kernel, n: Value, row0: Value, count: int, unroll: int, partial: Array | None, into: list[Value]
) -> None:
    """All stages and the map for `count` neighbouring rows."""
    rows = [row0 + r if r else row0 for r in range(count)]
    base = [r * n for r in rows]
    coef = [p.start(r) for r in rows]
    for s, kinds in enumerate(p.reductions):
        accs = [[k.acc(op) for op in kinds] for _ in rows]
        with k.reducing(n, [a for row in accs for a in row], unroll=unroll) as j:
            vec = [v[j] for v in p.vectors]
            for r in range(count):
                x = [a[base[r] + j] for a in p.inputs]
                for acc, (a, b) in zip(accs[r], p.terms(s, x, vec, coef[r]), strict=True):
                    if b is None:
                        acc.add(a)
                    else:
                        acc.fma(a, b)
        for r in range(count):
            coef[r] = coef[r] + p.finish(s, rows[r], [a.total() for a in accs[r]], coef[r])
    if not p.outputs and partial is None:
        return
    with k.lanes(n, unroll=unroll) as j:
        vec = [v[j] for v in p.vectors]
        sums = [partial[at + j] for at in into] if partial is not None else []
        for r in range(count):
            x = [a[base[r] + j] for a in p.inputs]
            outs, terms = p.apply(x, vec, coef[r])
            for out, y in zip(p.outputs, outs, strict=True):
                out[base[r] + j] = y
            for q, (a, b) in enumerate(terms):
                sums[q] = sums[q] + a if b is None else k.fma(a, b, sums[q])
        for at, total in zip(into, sums, strict=True):
            assert partial is not None
            partial[at + j] = total


def build(make: type[RowPlan], args: tuple[Any, ...], compute: DType, stream: bool, large: bool = False) -> Kernel:
    """Record the kernel of a plan."""
    p = make(*args)
    at_once, unroll = p.large if large else p.small
    k = p.k = Kernel(f"{p.name}_{'_'.join(map(str, args))}{'_large' if large else ''}", compute)
    p.declare(k, stream)
    width = len(p.columns)
    partial = k.array("partial", k.compute) if width else None  # [chunks, columns, n]
    rows, n, chunk = k.size("rows"), k.size("n"), k.size("chunk")
    with k.grid((rows + chunk - 1) // chunk, cost=chunk * n) as g:
        first = g * chunk
        last = k.minimum(first + chunk, rows)
        into = [(g * width + q) * n for q in range(width)]
        if partial is not None:
            with k.lanes(n) as j:
                for at in into:
                    partial[at + j] = 0.0
        if at_once > 1:
            whole = first + (last - first) // at_once * at_once
            with k.loop(first, whole, at_once) as i:
                _block(p, k, n, i, at_once, unroll, partial, into)
            first = whole
        with k.loop(first, last) as i:
            _block(p, k, n, i, 1, unroll, partial, into)
    if partial is not None:
        chunks = (rows + chunk - 1) // chunk
        wide = 8 * k.width
        with k.grid((n + (wide - 1)) // wide, cost=chunks * wide) as g:
            start = g * wide
            with k.lanes(k.minimum(n - start, wide), unroll=2) as j:
                for q, out in enumerate(p.columns):
                    t = k.var(k.compute, 0.0, varying=True)
                    with k.loop(0, chunks) as c:
                        t.set(t.get() + partial[(c * width + q) * n + start + j])
                    out[start + j] = t.get()
    k.columns = width
    return k


_compiled: dict[tuple[Any, ...], tuple[Callable[..., None], int]] = {}


def prepare(make: type[RowPlan], args: tuple[Any, ...], rows: int, n: int, nbytes: int) -> Callable[..., None]:
    """A function of the ids of the arrays, then the scalars, in the order in which the plan declares them.

    args[0] is the elements' type; nbytes is the size of the result.
    """
    if not rows * n:
        raise NotSupported
    dtype: DType = args[0]
    stream, large = streams(nbytes, n * dtype.size), nbytes > SMALL_BYTES
    key = (make, args, stream, large)
    entry = _compiled.get(key)
    if entry is None:
        k = build(make, args, precise_type(dtype) if make.precise else compute_type(dtype), stream, large)
        entry = _compiled[key] = compiler.compile_kernel(k), k.columns
    f, columns = entry
    threads = runtime.pool
    if not columns:
        at_once = make.large[0] if large else make.small[0]
        return lambda *head: f(threads(), *head, rows, n, at_once)
    chunk = 32 if rows <= 1024 else (rows + 127) // 128 * 4
    acc = scratch_of(dtype)
    count = -(-rows // chunk) * columns * n
    empty = pool.empty if count * acc.itemsize >= pool.MIN_BYTES else np.empty

    def go(*head: Any) -> None:
        partial = empty((count,), acc)
        f(threads(), *head, id(partial), rows, n, chunk)

    return go
