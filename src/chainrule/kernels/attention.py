"""Attention, ``softmax(q kᵀ scale) v``, and its reverse rule, a few queries at a time: the memory is linear in the number of keys.

A grid index is a head (forward: a part of its queries). Keys are transposed once, so that the scores of several queries are a product
whose lanes are keys; the weights of these queries are all that is ever kept. A causal head stops at the last key that its queries see.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import compiler, math, runtime
from .calls import Calls, NotSupported, kernel_type, prod
from .lang import Array, DType, Kernel, Value, i64
from .pool import empty

ROWS, VECTORS = (
    8,
    2,
)  # queries at once, and vectors of keys or features of each: together they fill half of the registers
PARTS = 8  # parts of the work, at least, where heads are few


class _Heads:
    """What both kernels share: the arrays of a head, its transposed keys, and the weights of a few queries."""

    def __init__(self, k: Kernel, dtype: DType, causal: bool) -> None:
        self.k, self.dtype, self.causal = k, dtype, causal
        self.q, self.keys, self.v = (k.array(n, dtype) for n in ("q", "k", "v"))
        self.at = [k.array(n, i64) for n in ("q_at", "k_at", "v_at")]

    def sizes(self) -> None:
        k = self.k
        self.heads, self.queries, self.seen = k.size("heads"), k.size("queries"), k.size("seen")
        self.depth, self.width = k.size("depth"), k.size("width")
        self.scale = k.scalar("scale")

    def transposed(self, x: Array, start: Value, n: Value, out: Array, into: Value) -> None:
        """out[i, j] = x[j, i] for the keys j and the n features i."""
        k = self.k
        with k.loop(0, n) as i, k.lanes(self.seen) as j:
            out[into + i * self.seen + j] = x[start + j * n + i]

    def across(self, count: int, a: Array, at: Value, n: Value, t: Array, t_at: Value, limit: Value, done: Any) -> None:
        """For `count` rows of a, [count, n], and t, [n, seen]: done(r, j, (a t)[r, j])."""
        k = self.k
        with k.lanes(limit, unroll=VECTORS) as j:
            sums = [k.var(self.dtype, 0.0, varying=True) for _ in range(count)]
            with k.loop(0, n) as i:
                column = t[t_at + i * self.seen + j]
                for r, s in enumerate(sums):
                    s.set(k.fma(a[at + r * n + i], column, s.get()))
            for r, s in enumerate(sums):
                done(r, j, s.get())

    def along(
        self, count: int, p: Array, p_at: Value, limit: Value, x: Array, start: Value, n: Value, done: Any
    ) -> None:
        """For `count` rows of p, [count, limit], and x, [limit, n]: done(r, j, (p x)[r, j])."""
        k = self.k
        with k.lanes(n, unroll=VECTORS) as j:
            sums = [k.var(self.dtype, 0.0, varying=True) for _ in range(count)]
            with k.loop(0, limit) as i:
                row = x[start + i * n + j]
                for r, s in enumerate(sums):
                    s.set(k.fma(p[p_at + r * self.seen + i], row, s.get()))
            for r, s in enumerate(sums):
                done(r, j, s.get())

    def limit(self, first: Value, count: int) -> Value:
        return self.k.minimum(self.seen, first + count) if self.causal else self.seen

    def exponentials(
        self, count: int, first: Value, q_at: Value, kt: Array, kt_at: Value, p: Array, p_at: Value, limit: Value
    ) -> list[Value]:
        """p[r, j] = exp(score - the largest one) of `count` queries; returns what each row is to be multiplied by."""
        k = self.k

        def store(r: int, j: Value, s: Value) -> None:
            s = s * self.scale
            p[p_at + r * self.seen + j] = k.select(j <= first + r, s, float("-inf")) if self.causal else s

        self.across(count, self.q, q_at + first * self.depth, self.depth, kt, kt_at, limit, store)
        factors = []
        for r in range(count):
            row = p_at + r * self.seen
            top, each = k.acc("max"), k.sum()
            with k.lanes(limit) as j:
                top.add(p[row + j])
            high = top.total()
            if self.causal:  # a query that sees nothing gets nothing
                high = k.select(high.eq(float("-inf")), 0.0, high)
            with k.lanes(limit, unroll=2) as j:
                e = math.exp(k, p[row + j] - high)
                p[row + j] = e
                each.add(e)
            total = each.total().to(self.dtype)
            if self.causal:
                total = k.select(total.eq(0.0), 1.0, total)
            factors.append(1.0 / total)
        return factors

    def blocks(self, first: Value, last: Value, body: Any) -> None:
        """body(start, count) for the queries from `first` to `last`, several at a time."""
        k = self.k
        whole = first + (last - first) // ROWS * ROWS
        with k.loop(first, whole, ROWS) as i:
            body(i, ROWS)
        with k.loop(whole, last) as i:
            body(i, 1)


def _forward(dtype: DType, causal: bool) -> Kernel:
    k = Kernel(f"attention_{dtype}{'_causal' if causal else ''}", dtype)
    h = _Heads(k, dtype, causal)
    y, kt, p = k.array("y", dtype), k.array("kt", dtype), k.array("p", dtype)
    h.sizes()
    parts, part = k.size("parts"), k.size("part")
    with k.grid(h.heads * parts, cost=part * h.seen * (h.depth + h.width) // 8) as g:
        head, first = g // parts, g % parts * part
        last = k.minimum(first + part, h.queries)
        q_at, k_at, v_at = (a[head] for a in h.at)
        kt_at, p_at = g * h.seen * h.depth, g * h.seen * ROWS
        h.transposed(h.keys, k_at, h.depth, kt, kt_at)

        def block(start: Value, count: int) -> None:
            limit = h.limit(start, count)
            factors = h.exponentials(count, start, q_at, kt, kt_at, p, p_at, limit)

            def store(r: int, j: Value, s: Value) -> None:
                y[(head * h.queries + start + r) * h.width + j] = s * factors[r]

            h.along(count, p, p_at, limit, h.v, v_at, h.width, store)

        h.blocks(first, last, block)
    return k


def _backward(dtype: DType, causal: bool) -> Kernel:
    """The cotangents of q, k and v for a cotangent u; those of k and v grow query by query."""
    k = Kernel(f"attention_back_{dtype}{'_causal' if causal else ''}", dtype)
    h = _Heads(k, dtype, causal)
    u, u_at = k.array("u", dtype), k.array("u_at", i64)
    gq, gk, gv = (k.array(n, dtype) for n in ("gq", "gk", "gv"))
    kt, vt, p, s = (k.array(n, dtype) for n in ("kt", "vt", "p", "s"))
    h.sizes()
    with k.grid(h.heads, cost=h.queries * h.seen * (h.depth + h.width)) as head:
        q_at, k_at, v_at = (a[head] for a in h.at)
        g_at = u_at[head]
        kt_at, vt_at, p_at = head * h.seen * h.depth, head * h.seen * h.width, head * h.seen * ROWS
        gk_at, gv_at = head * h.seen * h.depth, head * h.seen * h.width
        h.transposed(h.keys, k_at, h.depth, kt, kt_at)
        h.transposed(h.v, v_at, h.width, vt, vt_at)
        with k.lanes(h.seen * h.depth) as j:
            gk[gk_at + j] = 0.0
        with k.lanes(h.seen * h.width) as j:
            gv[gv_at + j] = 0.0

        def grow(count: int, w: Array, limit: Value, x: Array, start: Value, n: Value, out: Array, into: Value) -> None:
            """out[i] += sum_r w[r, i] x[r]: rows of x stay in registers while the keys go by."""
            with k.lanes(n, unroll=1) as j:
                rows = [x[start + r * n + j] for r in range(count)]
                with k.loop(0, limit) as i:
                    t = out[into + i * n + j]
                    for r, v in enumerate(rows):
                        t = k.fma(w[p_at + r * h.seen + i], v, t)
                    out[into + i * n + j] = t

        def block(start: Value, count: int) -> None:
            limit = h.limit(start, count)
            factors = h.exponentials(count, start, q_at, kt, kt_at, p, p_at, limit)

            def store(r: int, j: Value, v: Value) -> None:
                s[p_at + r * h.seen + j] = v

            h.across(count, u, g_at + start * h.width, h.width, vt, vt_at, limit, store)
            for r in range(count):
                row = p_at + r * h.seen
                both = k.sum()
                with k.lanes(limit) as j:
                    w = p[row + j] * factors[r]
                    p[row + j] = w
                    both.fma(w, s[row + j])
                mean = both.total().to(dtype)
                with k.lanes(limit) as j:
                    s[row + j] = p[row + j] * (s[row + j] - mean) * h.scale

            def put(r: int, j: Value, v: Value) -> None:
                gq[(head * h.queries + start + r) * h.depth + j] = v

            h.along(count, s, p_at, limit, h.keys, k_at, h.depth, put)
            grow(count, s, limit, h.q, q_at + start * h.depth, h.depth, gk, gk_at)
            grow(count, p, limit, u, g_at + start * h.width, h.width, gv, gv_at)

        h.blocks(k.const(0, i64), h.queries, block)
    return k


def _prepare(kind: str, dtype: np.dtype, causal: bool) -> Any:
    t = kernel_type(dtype)
    if t.size < 4:
        raise NotSupported
    return compiler.compile_kernel((_backward if kind == "back" else _forward)(t, causal))


_calls = Calls(_prepare)


def _heads(lead: tuple[int, ...], x: Any) -> tuple[Any, Any]:
    """x contiguous, and where its matrix for each of the heads `lead` starts."""
    own = x.shape[:-2]
    step = x.shape[-2] * x.shape[-1]
    if own == lead:
        return np.ascontiguousarray(x), np.arange(0, step * prod(lead), step) if step else np.zeros(
            prod(lead), np.int64
        )
    at = np.arange(prod(own)).reshape(*(1,) * (len(lead) - len(own)), *own) * step
    return np.ascontiguousarray(x), np.ascontiguousarray(np.broadcast_to(at, lead).reshape(-1))


def _checked(kind: str, causal: bool, q: Any, *rest: Any) -> Any:
    f = _calls[kind, q.dtype, causal]
    if f is None or any(x.dtype is not q.dtype for x in rest) or not all(x.size for x in (q, *rest)):
        raise NotSupported
    return f


def attention(q: Any, k: Any, v: Any, scale: float, causal: bool) -> Any:
    """``softmax(q kᵀ scale) v``: q [..., queries, depth], k [..., keys, depth], v [..., keys, width], whose leading axes broadcast."""
    f = _checked("forward", causal, q, k, v)
    lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    n, (l, d), (s, e) = prod(lead), q.shape[-2:], v.shape[-2:]
    parts = max(1, min(-(-PARTS // n), l // ROWS))
    part = -(-l // parts // ROWS) * ROWS
    parts = -(-l // part)
    (q, qa), (k, ka), (v, va) = (_heads(lead, x) for x in (q, k, v))
    y = empty((*lead, l, e), q.dtype)
    kt, p = empty((n * parts * d * s,), q.dtype), empty((n * parts * ROWS * s,), q.dtype)
    if f(runtime.pool(), q, k, v, qa, ka, va, y, kt, p, n, l, s, d, e, scale, parts, part) is False:
        raise NotSupported
    return y


def attention_back(g: Any, q: Any, k: Any, v: Any, scale: float, causal: bool) -> tuple[Any, Any, Any]:
    """The cotangents of q, k and v, each with the leading axes that all have together."""
    f = _checked("back", causal, q, k, v, g)
    lead = np.broadcast_shapes(*(x.shape[:-2] for x in (g, q, k, v)))
    n, (l, d), (s, e) = prod(lead), q.shape[-2:], v.shape[-2:]
    (q, qa), (k, ka), (v, va), (g, ga) = (_heads(lead, x) for x in (q, k, v, g))
    gq, gk, gv = (empty((*lead, *x.shape[-2:]), q.dtype) for x in (q, k, v))
    kt, vt = empty((n * d * s,), q.dtype), empty((n * e * s,), q.dtype)
    p, w = (empty((n * ROWS * s,), q.dtype) for _ in range(2))
    if f(runtime.pool(), q, k, v, qa, ka, va, g, ga, gq, gk, gv, kt, vt, p, w, n, l, s, d, e, scale) is False:
        raise NotSupported
    return gq, gk, gv
