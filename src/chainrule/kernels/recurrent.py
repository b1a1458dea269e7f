"""Recurrent layers: the whole loop over time in one kernel, forward and backward. Products go through BLAS, gates are fused.

Rows are packed: step t has ``count[t]`` sequences, in rows ``at[t]`` and following; states have a row for each sequence, and a step
replaces the first ``count[t]`` of them. So sequences of different lengths, and the way from the end to the start, are the same loop:
`at` and `count` stand in the order of the steps. A row has `batch` examples, and there are as many matrices (or one for all).
Sequences know nothing of each other: each thread goes through all steps with a part of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import compiler, math, runtime
from .calls import NotSupported, kernel_type
from .lang import Array, DType, Kernel, Value, i64
from .pool import empty

GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}  # per hidden unit, before the activations
ROWS, VECTORS = 8, 2  # of a tile of a product: a part of few examples reads the matrix once
PART, PARTS = 8, 8  # examples of a part, at least; and how many parts there are where that leaves more
KEPT = {"lstm": 4, "gru": 4, "tanh": 0, "relu": 0}  # what the backward loop reads of them

_compiled: dict[tuple[Any, ...], Callable[..., Any]] = {}


class _Loop:
    """What the two loops share: the parameters, the products and the walk over rows."""

    def __init__(self, name: str, dtype: DType) -> None:
        self.k = k = Kernel(name, dtype)
        self.dtype = dtype
        self.at, self.count = k.array("at", i64), k.array("count", i64)

    def array(self, name: str) -> Array:
        return self.k.array(name, self.dtype)

    def sizes(self) -> None:
        k = self.k
        self.part, self.parts = k.size("part"), k.size("parts")
        self.steps, self.batch, self.matrices = k.size("steps"), k.size("batch"), k.size("matrices")
        self.hidden, self.width = k.size("hidden"), k.size("width")

    @contextmanager
    def walk(self, work: Value, back: bool = False) -> Iterator[tuple[Value, Value, Value]]:
        """The steps of each part of the sequences: where a step's rows start, and the part's first row of them and its last.

        Backward, `earlier` and `carried` say where the rows of the step before start, and how many there are.
        """
        k, q = self.k, self.matrices
        with k.grid(self.parts, self.steps * self.part * q * work // 8) as part, k.loop(0, self.steps) as s:
            t = self.steps - 1 - s if back else s
            rows = self.count[t] * (self.batch // q)
            if back:
                one = k.maximum(t - 1, 0)
                self.earlier = self.at[one] * self.batch
                self.carried = k.select(t < 1, 0, self.count[one] * self.batch)
            yield (
                self.at[t] * self.batch,
                k.minimum(part * self.part, rows) * q,
                k.minimum((part + 1) * self.part, rows) * q,
            )

    def before(self, rows: Array, state: Array, r: Value, row: Value, j: Value) -> Value:
        """What a row started from: its sequence's row of the step before, or the state where that has none."""
        k, hidden = self.k, self.hidden
        goes_on = r < self.carried
        one = k.select(goes_on, self.earlier + r, row)
        return k.select(goes_on, rows[one * hidden + j], state[r * hidden + j])

    def product(
        self, first: Value, last: Value, a: tuple[Array, Value], w: Array, c: tuple[Array, Value], inner: Value, outer: Value,
        add: bool = False,
    ) -> None:  # fmt: skip
        """c = a w for these rows of a step, with one matrix for all examples or one for each.

        BLAS would pack the matrix anew at each step, which takes as long as the product of few rows; here it comes in panels of
        columns, packed once.
        """
        k, q = self.k, self.matrices
        start, stop, cols = first // q, last // q, VECTORS * k.width
        panels = (outer + (cols - 1)) // cols
        with k.loop(0, q) as b:
            from_, into = a[1] + b * inner, c[1] + b * outer

            def tile(
                first: Value, panel: Value, count: int, b: Value = b, from_: Value = from_, into: Value = into
            ) -> None:
                start = panel * cols
                at = (b * panels + panel) * inner * cols
                heads = [from_ + (first + r) * inner * q for r in range(count)]
                tails = [into + (first + r) * outer * q + start for r in range(count)]
                with k.lanes(k.minimum(outer - start, cols), unroll=VECTORS) as j:
                    sums = [k.var(self.dtype, c[0][t + j] if add else 0.0, varying=True) for t in tails]
                    with k.loop(0, inner) as i:
                        column = w[at + i * cols + j]
                        for s, h in zip(sums, heads, strict=True):
                            s.set(k.fma(a[0][h + i], column, s.get()))
                    for s, t in zip(sums, tails, strict=True):
                        c[0][t + j] = s.get()

            with k.loop(0, panels) as panel:
                whole = start + (stop - start) // ROWS * ROWS
                with k.loop(start, whole, ROWS) as r:
                    tile(r, panel, ROWS)
                with k.loop(whole, stop) as r:
                    tile(r, panel, 1)


def _panels(w: Any, dtype: DType) -> Any:
    """[matrices, k, n] as [matrices, panels, k, columns of a panel], the last panel filled up with zeros."""
    cols = VECTORS * (64 // dtype.size)
    q, k, n = w.shape
    m = -(-n // cols)
    out = np.zeros((q, m * cols, k) if n % cols else (0,), w.dtype)
    full = w
    if n % cols:
        full = out.transpose(0, 2, 1)
        full[:, :, :n] = w
    return np.ascontiguousarray(full.reshape(q, k, m, cols).transpose(0, 2, 1, 3))


def _forward(mode: str, dtype: DType, projected: bool, extra: bool = False) -> Kernel:
    p = _Loop(f"{mode}_loop_{dtype}{'_projected' if projected else ''}", dtype)
    k = p.k
    x, w, b = p.array("x"), p.array("w"), p.array("b")
    wr = p.array("wr") if projected else None
    h, z, y = p.array("h"), p.array("z"), p.array("y")
    lstm = mode == "lstm"
    c, cells, mid = (p.array("c"), p.array("cells"), p.array("mid") if projected else None) if lstm else (None,) * 3
    gates = p.array("gates") if KEPT[mode] else None
    p.sizes()
    hidden, width = p.hidden, p.width
    g = hidden * GATES[mode]
    sigmoid, tanh = math.sigmoid, math.tanh
    with p.walk(width * g) as (at, first, last):
        zero = at - at
        p.product(first, last, (h, zero), w, (z, zero), width, g)
        with k.loop(first, last) as r:
            row = at + r
            bias = (r % p.matrices) * g
            with k.lanes(hidden, unroll=1) as j:

                def pre(
                    q: int, r: Value = r, row: Value = row, bias: Value = bias, j: Value = j
                ) -> tuple[Value, Value]:
                    return x[row * g + hidden * q + j], z[r * g + hidden * q + j] + b[bias + hidden * q + j]

                if lstm:
                    a = [u + v for u, v in (pre(q) for q in range(4))]
                    i, f, m, o = sigmoid(k, a[0]), sigmoid(k, a[1]), tanh(k, a[2]), sigmoid(k, a[3])
                    new = k.fma(f, c[r * hidden + j], i * m)  # type: ignore[index]
                    c[r * hidden + j] = new  # type: ignore[index]
                    cells[row * hidden + j] = new  # type: ignore[index]
                    out = o * tanh(k, new)
                    for q, v in enumerate((i, f, m, o)):
                        gates[(row * 4 + q) * hidden + j] = v  # type: ignore[index]
                    if mid is not None:
                        mid[r * hidden + j] = out
                elif mode == "gru":
                    (xr, hr), (xz, hz), (xn, hn) = (pre(q) for q in range(3))
                    rr, zz, inner = sigmoid(k, xr + hr), sigmoid(k, xz + hz), hn
                    m = tanh(k, k.fma(rr, inner, xn))
                    out = k.fma(zz, h[r * hidden + j] - m, m)
                    for q, v in enumerate((rr, zz, m, inner)):
                        gates[(row * 4 + q) * hidden + j] = v  # type: ignore[index]
                else:
                    u, v = pre(0)
                    out = tanh(k, u + v) if mode == "tanh" else _relu(k, u + v)
                if mid is None:
                    h[r * hidden + j] = out
                    y[row * hidden + j] = out
        if mid is not None:
            assert wr is not None
            p.product(first, last, (mid, zero), wr, (h, zero), hidden, width)
            with k.lanes((last - first) * width) as j:
                y[(at + first) * width + j] = h[first * width + j]
    return k


def _relu(k: Kernel, a: Value) -> Value:
    return k.select(a < 0.0, 0.0, a)  # NaN goes through


def _backward(mode: str, dtype: DType, projected: bool, extra: bool) -> Kernel:
    """`extra`: cells and gates have cotangents of their own, as they do when the backward loop was differentiated."""
    p = _Loop(f"{mode}_loop_backward_{dtype}{'_projected' if projected else ''}{'_extra' if extra else ''}", dtype)
    k = p.k
    gy, dh, w = p.array("gy"), p.array("dh"), p.array("w")
    wr = p.array("wr") if projected else None
    lstm, gru = mode == "lstm", mode == "gru"
    dc, cells, c0 = (p.array(s) for s in ("dc", "cells", "c0")) if lstm else (None,) * 3
    gates = p.array("gates") if KEPT[mode] else None
    gcells = p.array("gcells") if extra and lstm else None
    ggates = p.array("ggates") if extra else None
    h0 = p.array("h0") if gru else None
    y = p.array("y") if not lstm else None
    dx = p.array("dx")
    dq = p.array("dq") if gru else None
    gh, gm = (p.array("gh"), p.array("gm")) if projected else (None, None)
    p.sizes()
    hidden, width = p.hidden, p.width
    g = hidden * GATES[mode]
    with p.walk(width * g, back=True) as (at, first, last):
        zero = at - at
        if projected:
            assert gh is not None and gm is not None and wr is not None
            with k.lanes((last - first) * width) as j:
                gh[(at + first) * width + j] = gy[(at + first) * width + j] + dh[first * width + j]
            p.product(first, last, (gh, at * width), wr, (gm, zero), width, hidden)
        with k.loop(first, last) as r:
            row = at + r
            with k.lanes(hidden, unroll=1) as j:
                u = gm[r * hidden + j] if gm is not None else gy[row * hidden + j] + dh[r * hidden + j]
                if gates is not None:
                    kept = [gates[(row * 4 + q) * hidden + j] for q in range(4)]

                def own(q: int, v: Value, row: Value = row, j: Value = j) -> Value:
                    return v if ggates is None else v + ggates[(row * 4 + q) * hidden + j]

                if lstm:
                    i, f, m, o = kept
                    c = math.tanh(k, cells[row * hidden + j])  # type: ignore[index]
                    d = k.fma(u * o, 1.0 - c * c, dc[r * hidden + j])  # type: ignore[index]
                    d = d if gcells is None else d + gcells[row * hidden + j]
                    dc[r * hidden + j] = d * f  # type: ignore[index]
                    each = [d * m, d * p.before(cells, c0, r, row, j), d * i, u * c]  # type: ignore[arg-type]
                    slopes = [i * (1.0 - i), f * (1.0 - f), 1.0 - m * m, o * (1.0 - o)]
                    for q in range(4):
                        dx[(row * 4 + q) * hidden + j] = own(q, each[q]) * slopes[q]
                elif gru:
                    rr, zz, m, inner = kept
                    dn = own(2, u * (1.0 - zz)) * (1.0 - m * m)
                    dz = own(1, u * (p.before(y, h0, r, row, j) - m)) * (zz * (1.0 - zz))  # type: ignore[arg-type]
                    dr = own(0, dn * inner) * (rr * (1.0 - rr))
                    dh[r * hidden + j] = u * zz
                    for q, (a, b) in enumerate(((dr, dr), (dz, dz), (dn, own(3, dn * rr)))):
                        dx[row * g + hidden * q + j] = a
                        dq[row * g + hidden * q + j] = b  # type: ignore[index]
                else:
                    v = y[row * hidden + j]  # type: ignore[index]
                    dx[row * g + j] = u * (1.0 - v * v) if mode == "tanh" else k.select(v > 0.0, u, 0.0)
        p.product(first, last, (dq if dq is not None else dx, at * g), w, (dh, zero), g, width, add=gru)
    return k


def _loop(
    mode: str, dtype: np.dtype, projected: bool, back: bool, extra: bool = False
) -> tuple[Callable[..., Any], DType]:
    """The compiled loop and the type; NotSupported where there is none."""
    t = kernel_type(dtype)
    if t.size < 4 or not compiler.available():
        raise NotSupported
    key = (mode, t, projected, back, extra)
    f = _compiled.get(key)
    if f is None:
        f = _compiled[key] = compiler.compile_kernel((_backward if back else _forward)(mode, t, projected, extra))
    return f, t


def _parts(examples: int) -> tuple[int, int]:
    """How many examples (of each matrix) a part has, and how many parts there are: by their number alone, whatever threads there are."""
    size = max(PART, -(-examples // (PARTS * PART)) * PART)
    return size, max(1, -(-examples // size))


def _check_rows(rows: int, sequences: int, at: Any, count: Any) -> None:
    """Refuse steps that speak of rows that are not there: compiled loops look at nothing but addresses."""
    if len(at) and (int((at + count).max()) > rows or int(count.max()) > sequences or int(count.min()) < 0):
        raise RuntimeError(
            f"recurrent layer: batch_sizes {count.tolist()} need {int((at + count).max())} rows of data and {int(count.max())} states, "
            f"but there are {rows} rows and {sequences} states"
        )


def forward_loop(
    mode: str, x: Any, h: Any, c: Any, w: Any, b: Any, wr: Any, at: Any, count: Any
) -> tuple[Any, Any, Any]:
    """y, the cells and the kept gates; the states `h` and `c` are replaced by the last ones.

    x [rows, batch, gates], h [sequences, batch, width], c [sequences, batch, hidden], w [matrices, gates, width], b [matrices, gates],
    wr [matrices, width, hidden].
    """
    f, t = _loop(mode, x.dtype, wr is not None, False)
    rows, batch, g = x.shape
    _check_rows(rows, len(h), at, count)
    hidden, width = g // GATES[mode], h.shape[-1]
    y = empty((rows, batch, width), x.dtype)
    z = empty((len(h), batch, g), x.dtype)
    cells = empty((rows, batch, hidden), x.dtype) if mode == "lstm" else None
    gates = empty((rows, batch, KEPT[mode] * hidden), x.dtype) if KEPT[mode] else None
    mid = None if wr is None else empty((len(h), batch, hidden), x.dtype)
    wp, wrp = _panels(w.transpose(0, 2, 1), t), None if wr is None else _panels(wr.transpose(0, 2, 1), t)
    args = [v for v in (x, wp, b, wrp, h, z, y, c, cells, mid, gates) if v is not None]
    parts = _parts(len(h) * (batch // len(w)))
    if f(runtime.pool(), at, count, *args, *parts, len(at), batch, len(w), hidden, width) is False:
        raise NotSupported
    return y, cells, gates


def backward_loop(
    mode: str, gy: Any, dh: Any, dc: Any, gcells: Any, ggates: Any, y: Any, cells: Any, gates: Any, state: Any, w: Any, wr: Any,
    at: Any, count: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The cotangents of x, of the products with h, and (projected) of y; those of the states, `dh` and `dc`, are replaced.

    `state` are the cells (LSTM) or states (GRU) that the first rows started from; `gcells` and `ggates` are given together or not at all.
    """
    extra = ggates is not None
    f, t = _loop(mode, gy.dtype, wr is not None, True, extra)
    rows, batch, width = gy.shape
    _check_rows(rows, len(dh), at, count)
    g = w.shape[1]
    hidden = g // GATES[mode]
    dx = empty((rows, batch, g), gy.dtype)
    dq = empty((rows, batch, g), gy.dtype) if mode == "gru" else None
    gh, gm = (None, None) if wr is None else (empty(gy.shape, gy.dtype), empty((len(dh), batch, hidden), gy.dtype))
    if mode == "lstm":
        own = [dc, cells, state, gates, gcells, ggates]
    else:
        own = [gates, ggates, state, y] if mode == "gru" else [y]
    wp, wrp = _panels(w, t), None if wr is None else _panels(wr, t)
    args = [v for v in (gy, dh, wp, wrp, *own, dx, dq, gh, gm) if v is not None]
    parts = _parts(len(dh) * (batch // len(w)))
    if f(runtime.pool(), at, count, *args, *parts, len(at), batch, len(w), hidden, width) is False:
        raise NotSupported
    return dx, dq, gh
