"""Reduce along each row, map the row, and sum columns: arrays [rows, n], a few rows at a time.

Layer norm, RMS norm and softmax, their reverse rules, second-order rules and tangents are all of this form. A `RowPlan` says what
is reduced, what comes of it and what is summed over the rows (gradients of weights). Column sums are partial sums over chunks of
rows, chunked by shape only, then added in order in double precision: results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import compiler, pool, runtime
from .calls import NotSupported, scratch_of, streams
from .lang import Array, DType, Kernel, Value, compute_type, f64, precise_type

CHUNK_ROWS = 256  # the most rows per partial sum
SMALL_BYTES = 1 << 19  # results up to this size fit the cache together with the arguments
SHORT_BYTES = 1 << 10  # rows up to this length end before they are under way: several at once

Terms = list[tuple[Value, Value | None]]


class RowPlan:
    """What one operator computes of a row. Values: x per element, vec per column, coef per row."""

    name = ""
    reductions: tuple[tuple[str, ...], ...] = ()  # per stage, the kind of each reduction: add, max
    # (rows in flight, vectors of a row in flight). Small problems and short rows: rows share the loads of per-column values and hide
    # each other's latency. Large ones: one stream of memory after the other, which is what prefetching and write combining like.
    small, large = (4, 1), (1, 4)
    arrays = 2  # arrays of the size of the input that it goes through
    precise = True  # in f64 for 16-bit elements
    exact = False  # whether finish() takes sums in double precision
    stored: int | None = (
        None  # the stage whose first term is written to the output, and read there by apply() instead of the inputs
    )
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
    p: RowPlan,
    k: Kernel,
    n: Value,
    row0: Value,
    count: int,
    unroll: int,
    shift: Value,
    partial: Array | None,
    into: list[Value],
) -> None:
    """All stages and the map for `count` neighbouring rows, whose per-column values start at `shift`."""
    rows = [row0 + r if r else row0 for r in range(count)]
    base = [r * n for r in rows]
    coef = [p.start(r) for r in rows]
    for s, kinds in enumerate(p.reductions):
        accs = [[k.acc(op, wide=f64 if op == "add" else None) for op in kinds] for _ in rows]
        with k.reducing(n, [a for row in accs for a in row], unroll=unroll) as j:
            vec = [v[shift + j] for v in p.vectors]
            for r in range(count):
                x = [a[base[r] + j] for a in p.inputs]
                terms = p.terms(s, x, vec, coef[r])
                if s == p.stored:
                    p.outputs[0][base[r] + j] = terms[0][0]
                for acc, (a, b) in zip(accs[r], terms, strict=True):
                    if b is None:
                        acc.add(a)
                    else:
                        acc.fma(a, b)
        for r in range(count):
            coef[r] = coef[r] + p.finish(
                s, rows[r], [a.total() if p.exact else a.total().to(k.compute) for a in accs[r]], coef[r]
            )
    if not p.outputs and partial is None:
        return
    with k.lanes(n, unroll=unroll) as j:
        vec = [v[shift + j] for v in p.vectors]
        sums = [partial[at + j] for at in into] if partial is not None else []
        for r in range(count):
            x = [a[base[r] + j] for a in (p.inputs if p.stored is None else p.outputs)]
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
    if compute is not args[0]:  # conversions fill the pipeline: more copies would only take longer to compile
        at_once, unroll = min(at_once, 2 if p.arrays < 4 else 1), 1
    k = p.k = Kernel(f"{p.name}_{'_'.join(map(str, args))}{'_large' if large else ''}", compute)
    p.declare(k, stream)
    width = len(p.columns)
    partial = k.array("partial", k.compute) if width else None  # [chunks, columns, n]
    batch, rows, n, chunk = k.size("batch"), k.size("rows"), k.size("n"), k.size("chunk")
    chunks = (rows + chunk - 1) // chunk
    with k.grid(batch * chunks, cost=chunk * n) as g:
        b = g // chunks
        end = (b + 1) * rows
        first = b * rows + g % chunks * chunk
        last, shift = k.minimum(first + chunk, end), b * n
        into = [(g * width + q) * n for q in range(width)]
        if partial is not None:
            with k.lanes(n) as j:
                for at in into:
                    partial[at + j] = 0.0
        if at_once > 1:
            whole = first + (last - first) // at_once * at_once
            with k.loop(first, whole, at_once) as i:
                _block(p, k, n, i, at_once, unroll, shift, partial, into)
            first = whole
        with k.loop(first, last) as i:
            _block(p, k, n, i, 1, unroll, shift, partial, into)
    if partial is not None:
        wide = 8 * k.width
        blocks = (n + (wide - 1)) // wide
        with k.grid(batch * blocks, cost=chunks * wide) as g:
            b, start = g // blocks, g % blocks * wide
            with k.lanes(k.minimum(n - start, wide), unroll=2) as j:
                for q, out in enumerate(p.columns):
                    t = k.var(f64, 0.0, varying=True)
                    with k.loop(0, chunks) as c:
                        t.set(t.get() + partial[((b * chunks + c) * width + q) * n + start + j].to(f64))
                    out[b * n + start + j] = t.get()
    k.columns = width
    return k


_compiled: dict[tuple[Any, ...], tuple[Callable[..., None], int]] = {}


def prepare(
    make: type[RowPlan], args: tuple[Any, ...], rows: int, n: int, nbytes: int, batch: int = 1
) -> Callable[..., Any]:
    """A function of the arrays, then the scalars, in the order in which the plan declares them.

    args[0] is the elements' type; nbytes is the size of the result. `rows` counts all of them; per-column arrays are
    [batch, n], each for a batch-th of the rows. Like a kernel it returns False, having done nothing, if an array is not contiguous.
    """
    if not rows * n * batch or rows % batch:
        raise NotSupported
    rows //= batch
    dtype: DType = args[0]
    stream, large = streams(nbytes, n * dtype.size, make.arrays), nbytes > SMALL_BYTES and n * dtype.size > SHORT_BYTES
    key = (make, args, stream, large)
    entry = _compiled.get(key)
    if entry is None:
        k = build(make, args, precise_type(dtype) if make.precise else compute_type(dtype), stream, large)
        entry = _compiled[key] = compiler.compile_kernel(k), k.columns
    f, columns = entry
    threads = runtime.pool
    if not columns:
        at_once = max(make.large[0], make.small[0])
        return lambda *head: f(threads(), *head, batch, rows, n, at_once)
    chunk = 32 if rows <= 1024 else min((rows + 127) // 128 * 4, CHUNK_ROWS)
    acc = scratch_of(dtype)
    count = batch * -(-rows // chunk) * columns * n
    empty = pool.empty if count * acc.itemsize >= pool.MIN_BYTES else np.empty

    def go(*head: Any) -> Any:
        partial = empty((count,), acc)
        return f(threads(), *head, partial, batch, rows, n, chunk)

    return go
