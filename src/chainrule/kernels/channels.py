"""Reduce, then map, per channel: arrays seen as [batch, outer, n, inner], sums over outer and inner, an output that uses them.

Weight norm, batch norm and their backwards are all of this form, in every layout. A `Plan` says what is summed and what is made
of the sums; this file makes loops of it, one of four ways, chosen by shape only (never by the number of threads, so that every
sum is grouped alike):

rows      outer = 1 and rows that stay in the cache: one grid index per row
channels  the same, a channel being `outer` pieces of `inner`
columns   inner = 1 (or small): partial sums over chunks of rows, lanes along the columns
split     few or long channels: partial sums over pieces of each channel
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import compiler, pool, runtime
from .calls import F64, NotSupported, scratch_of, streams
from .lang import Array, DType, Kernel, Value, f64, precise_type

CHUNK_ROWS = 128  # rows per partial sum in the columns layout
ROWS_AT_ONCE = 8  # rows added up in registers before the partial sum in memory is touched; half as many of wide numbers
PIECE = 1 << 15  # elements per partial sum in the split layout
CACHED_BYTES = 1 << 20  # a channel larger than this is not read again from the cache


class Plan:
    """What one operator sums and maps. `k` is the kernel being recorded; values are per element or per channel."""

    name = ""
    stages = 1
    arrays = 2  # arrays of the size of the input that it goes through
    inputs: list[Array]
    outputs: list[Array]

    def declare(self, k: Kernel, stream: bool) -> None:
        """Create the parameters: self.inputs (arrays read per element), self.outputs, and whatever finish() uses."""
        raise NotImplementedError

    def start(self, c: Value) -> list[Value]:
        """Coefficients known before the first stage: `starts` of them."""
        return []

    def terms(self, stage: int, x: list[Value], coef: list[Value]) -> list[tuple[Value, Value | None]]:
        """What is summed in a stage: products (a, b) or single values (a, None)."""
        raise NotImplementedError

    def finish(self, stage: int, c: Value, sums: list[Value], coef: list[Value]) -> list[Value]:
        """Coefficients of channel c from the sums of a stage; may store per-channel results."""
        raise NotImplementedError

    def apply(self, x: list[Value], coef: list[Value]) -> list[Value]:
        """The outputs of one element."""
        raise NotImplementedError

    # how many coefficients are known at the start, and how many sums and coefficients each stage makes
    starts = 0
    exact = False  # whether finish() takes sums in double precision
    sums: tuple[int, ...] = (1,)
    coefs: tuple[int, ...] = (1,)


def _reduce(p: Plan, k: Kernel, stage: int, accs: list[Any], x: list[Value], coef: list[Value]) -> None:
    for acc, (a, b) in zip(accs, p.terms(stage, x, coef), strict=True):
        if b is None:
            acc.add(a)
        else:
            acc.fma(a, b)


def _given(p: Plan, k: Kernel, total: Value) -> Value:
    """A sum as finish() takes it."""
    return total if p.exact else total.to(k.compute)


def _rows(p: Plan, k: Kernel) -> None:
    n, inner = k.size("n"), k.size("inner")
    with k.grid(n, cost=inner) as c:
        base, coef = c * inner, p.start(c)
        for s in range(p.stages):
            accs = [k.sum() for _ in range(p.sums[s])]
            with k.reducing(inner, accs) as j:
                _reduce(p, k, s, accs, [a[base + j] for a in p.inputs], coef)
            coef = coef + p.finish(s, c, [_given(p, k, a.total()) for a in accs], coef)
        with k.lanes(inner) as j:
            for out, y in zip(p.outputs, p.apply([a[base + j] for a in p.inputs], coef), strict=True):
                out[base + j] = y


def _channels(p: Plan, k: Kernel) -> None:
    batch, outer, n, inner = k.size("batch"), k.size("outer"), k.size("n"), k.size("inner")
    with k.grid(batch * n, cost=outer * inner) as c:
        start = c // n * (outer - 1) * n + c  # ((b outer + i) n + c mod n) = start + i n
        coef = p.start(c)
        for s in range(p.stages):
            accs = [k.sum() for _ in range(p.sums[s])]
            with k.loop(0, outer) as i:
                base = (start + i * n) * inner
                with k.reducing(inner, accs) as j:
                    _reduce(p, k, s, accs, [a[base + j] for a in p.inputs], coef)
                with k.when((i & 15).eq(15)):
                    for a in accs:
                        a.carry()
            coef = coef + p.finish(s, c, [_given(p, k, a.total()) for a in accs], coef)
        with k.loop(0, outer) as i:
            base = (start + i * n) * inner
            with k.lanes(inner) as j:
                for out, y in zip(p.outputs, p.apply([a[base + j] for a in p.inputs], coef), strict=True):
                    out[base + j] = y


def _scratch(p: Plan, k: Kernel) -> tuple[Array, Array]:
    return k.array("partial", f64), k.array("coef", k.compute)


def _columns(p: Plan, k: Kernel, grouped: bool) -> None:
    """Columns of [outer, n * inner]; grouped: inner > 1 neighbouring columns belong to one channel."""
    partial, coefs = _scratch(p, k)
    batch, outer, n, inner = k.size("batch"), k.size("outer"), k.size("n"), k.size("inner")
    width = n * inner if grouped else n
    every = batch * width
    chunks = (outer + (CHUNK_ROWS - 1)) // CHUNK_ROWS
    at_once = ROWS_AT_ONCE if k.compute.size == 4 and not grouped else ROWS_AT_ONCE // 2
    unroll = 2 if k.compute.size == 4 and not grouped else 1

    def coef_at(index: Value, count: int) -> list[Value]:
        kept = [coefs[every * q + index] for q in range(count)]
        return kept if grouped else p.start(index) + kept

    have = 0
    if grouped and p.starts:  # neighbouring columns share a channel: spread its coefficients out
        with k.grid(batch * n, cost=inner) as c:
            known = p.start(c)
            with k.loop(0, inner) as e:
                for q, y in enumerate(known):
                    coefs[c * inner + e + every * q] = y
        have = p.starts
    for s in range(p.stages):
        m = p.sums[s]
        with k.grid(batch * chunks, cost=width * CHUNK_ROWS) as g:
            b = g // chunks
            end = (b + 1) * outer
            first = b * outer + g % chunks * CHUNK_ROWS
            last = k.minimum(first + CHUNK_ROWS, end)
            whole = first + (last - first) // at_once * at_once
            into, channel = g * m * width, b * width
            with k.lanes(width) as j:
                for q in range(m):
                    partial[into + q * width + j] = 0.0

            def add(
                i: Value,
                rows: int,
                s: int = s,
                m: int = m,
                into: Value = into,
                channel: Value = channel,
                have: int = have,
            ) -> None:
                with k.lanes(width, unroll=unroll) as j:
                    coef = coef_at(channel + j, have)
                    total: list[Any] = [None] * m  # of few rows: then put aside in double precision
                    for r in range(rows):
                        x = [a[(i + r) * width + j] for a in p.inputs]
                        for q, (a, b) in enumerate(p.terms(s, x, coef)):
                            if total[q] is None:
                                total[q] = a if b is None else a * b
                            else:
                                total[q] = total[q] + a if b is None else k.fma(a, b, total[q])
                    for q in range(m):
                        at = into + q * width + j
                        partial[at] = partial.raw(at) + total[q].to(f64)

            with k.loop(first, whole, at_once) as i:
                add(i, at_once)
            with k.loop(whole, last) as i:
                add(i, 1)
        if grouped:
            with k.grid(batch * n, cost=inner * chunks) as c:
                total = []
                for q in range(m):
                    t = k.var(f64, 0.0)
                    with k.loop(0, chunks) as b, k.loop(0, inner) as e:
                        t.set(t.get() + partial.raw(((c // n * chunks + b) * m + q) * width + c % n * inner + e))
                    total.append(_given(p, k, t.get()))
                new = p.finish(s, c, total, coef_at(c * inner, have))
                with k.loop(0, inner) as e:
                    for q, y in enumerate(new):
                        coefs[c * inner + e + every * (have + q)] = y
        else:
            block = 16 * k.width
            blocks = (n + (block - 1)) // block
            with k.grid(batch * blocks, cost=chunks * block) as g:
                b, start = g // blocks, g % blocks * block
                with k.lanes(k.minimum(n - start, block), unroll=2) as j:
                    total = []
                    for q in range(m):
                        t = k.var(f64, 0.0, varying=True)
                        with k.loop(0, chunks) as c:
                            t.set(t.get() + partial.raw(((b * chunks + c) * m + q) * width + start + j))
                        total.append(_given(p, k, t.get()))
                    at = b * n + start + j
                    for q, y in enumerate(p.finish(s, at, total, coef_at(at, have))):
                        coefs[every * (have + q) + at] = y
        have += p.coefs[s]
    with k.grid(batch * outer, cost=width) as i:
        row = batch * outer - 1 - i  # backwards: what was read last is still in the cache
        base, channel = row * width, row // outer * width
        with k.lanes(width) as j:
            coef = coef_at(channel + j, have)
            for out, y in zip(p.outputs, p.apply([a[base + j] for a in p.inputs], coef), strict=True):
                out[base + j] = y


def _split(p: Plan, k: Kernel) -> None:
    partial, coefs = _scratch(p, k)
    batch, outer, n, inner = k.size("batch"), k.size("outer"), k.size("n"), k.size("inner")
    oc, ic = k.size("outer_chunk"), k.size("inner_chunk")
    so, si = (outer + oc - 1) // oc, (inner + ic - 1) // ic
    pieces, every = so * si, batch * n

    def coef_at(c: Value, count: int) -> list[Value]:
        return p.start(c) + [coefs[c + every * q] for q in range(count)]

    have = 0
    for s in range(p.stages):
        m = p.sums[s]
        with k.grid(every * pieces, cost=oc * ic) as g:
            c, part = g // pieces, g % pieces
            first, start = part // si * oc, part % si * ic
            length, coef = k.minimum(inner - start, ic), coef_at(c, have)
            accs = [k.sum() for _ in range(m)]
            with k.loop(first, k.minimum(first + oc, outer)) as i:
                base = ((c // n * outer + i) * n + c % n) * inner + start
                with k.lanes(length) as j:
                    _reduce(p, k, s, accs, [a[base + j] for a in p.inputs], coef)
            for q, acc in enumerate(accs):
                partial[g * m + q] = acc.total()
        with k.grid(every, cost=pieces) as c:
            total = []
            for q in range(m):
                t = k.var(f64, 0.0)
                with k.loop(0, pieces) as b:
                    t.set(t.get() + partial.raw((c * pieces + b) * m + q))
                total.append(_given(p, k, t.get()))
            for q, y in enumerate(p.finish(s, c, total, coef_at(c, have))):
                coefs[c + every * (have + q)] = y
        have += p.coefs[s]
    with k.grid(every * outer * si, cost=ic) as g0:
        g = every * outer * si - 1 - g0
        row, start = g // si, g % si * ic
        base, coef = row * inner + start, coef_at(row // (outer * n) * n + row % n, have)
        with k.lanes(k.minimum(inner - start, ic)) as j:
            for out, y in zip(p.outputs, p.apply([a[base + j] for a in p.inputs], coef), strict=True):
                out[base + j] = y


LAYOUTS: dict[str, Callable[[Plan, Kernel], None]] = {
    "rows": _rows,
    "channels": _channels,
    "columns": lambda p, k: _columns(p, k, grouped=False),
    "grouped": lambda p, k: _columns(p, k, grouped=True),
    "split": _split,
}

_compiled: dict[tuple[Any, ...], Callable[..., None]] = {}


def build(make: type[Plan], args: tuple[Any, ...], dtype: DType, layout: str, stream: bool) -> Kernel:
    """Record the kernel of a plan in a layout."""
    p = make(*args)
    k = Kernel(f"{p.name}_{layout}_{'_'.join(map(str, args))}", precise_type(dtype))
    p.declare(k, stream)
    LAYOUTS[layout](p, k)
    return k


def layout_of(outer: int, n: int, inner: int, itemsize: int) -> str:
    """Which loops to use: a function of the shape alone."""
    if inner == 1 and outer > 1:
        return "columns"
    size = outer * inner
    if outer > 1 and inner < 16:
        return "grouped"
    if (size * itemsize > CACHED_BYTES and n < 4096) or (n < 8 and size > 2 * PIECE):
        return "split"
    return "rows" if outer == 1 else "channels"


def prepare(
    make: type[Plan], args: tuple[Any, ...], dtype: DType, shape: tuple[int, int, int, int], nbytes: int
) -> Callable[..., Any]:
    """A function of the arrays, then the scalars, in the order in which the plan declares them.

    The arrays are seen as [batch, outer, n, inner], per-channel arrays as [batch, n]; nbytes is the size of the result.
    Like a kernel it returns False, having done nothing, if an array is not contiguous.
    """
    batch, outer, n, inner = shape
    if not batch * outer * n * inner:
        raise NotSupported
    layout = layout_of(outer, batch * n, inner, dtype.size)
    stream = streams(nbytes, (n if inner == 1 else inner) * dtype.size, make.arrays)
    key = (make, args, dtype, layout, stream)
    f = _compiled.get(key)
    if f is None:
        f = _compiled[key] = compiler.compile_kernel(build(make, args, dtype, layout, stream))
    threads = runtime.pool
    if layout == "rows":
        rows = batch * n
        return lambda *head: f(threads(), *head, rows, inner)
    if layout == "channels":
        return lambda *head: f(threads(), *head, batch, outer, n, inner)
    acc = scratch_of(dtype)
    m, q = max(make.sums, default=0), make.starts + sum(make.coefs)
    tail: tuple[int, ...] = shape
    if layout == "split":
        ic = min(inner, PIECE)
        oc = max(1, PIECE // ic)
        count, width = batch * n * -(-outer // oc) * -(-inner // ic) * m, batch * n
        tail = (*tail, oc, ic)
    else:
        width = batch * n * inner
        count = -(-outer // CHUNK_ROWS) * m * width

    def go(*head: Any) -> Any:
        partial, coef = pool.empty((count,), F64), pool.empty((width * q,), acc)
        return f(threads(), *head, partial, coef, *tail)

    return go
