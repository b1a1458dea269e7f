"""Convolution as sums over taps: ``y[o, q] = sum_j w[o, j] x[q + at[j]]`` for all places q of an image at once.

An image that is padded, and whose places are sorted by their remainder modulo the stride, has for each tap (a channel and a place of
the kernel) one fixed distance between what an output place reads and the output place itself, in any number of dims and for any stride,
padding and dilation. So a convolution is a product whose one factor is read where it lies: no columns are copied. The transposed
convolution is the same sum for each remainder; the gradient of the weight sums over the places instead of the taps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported, kernel_type
from .lang import DType, Kernel, f64, i64

# Rows of the result side by side -> vectors of each: together they fill the registers.
SHAPES = {8: 2, 6: 4, 4: 4, 2: 4, 1: 4}
STRETCH = (
    256  # taps times vectors that are summed before the next rows, so that what they read stays in the first cache
)
BOTH = {6: 4, 4: 4, 1: 8}  # outputs -> taps of a tile of the weight's gradient
LONG = 2048  # places that are summed before the sum is put aside


def _build_sum(dtype: DType, rows: int) -> Kernel:
    """x [images], w [matrices, blocks of rows, taps, rows], y [images, outputs, pitch]."""
    k = Kernel(f"taps_{dtype}_{rows}", dtype)
    x, w, y = k.array("x", dtype), k.array("w", dtype), k.array("y", dtype)
    at, image, matrix = k.array("at", i64), k.array("image", i64), k.array("matrix", i64)
    images, places, taps, outputs, pitch = (k.size(n) for n in ("images", "places", "taps", "outputs", "pitch"))
    vectors = SHAPES[rows]
    wide = vectors * k.width
    tiles, blocks = (places + (wide - 1)) // wide, (outputs + (rows - 1)) // rows
    stretch = STRETCH // vectors
    with k.grid(images * tiles, cost=taps * outputs * (wide // 8)) as g:
        b, start = g // tiles, g % tiles * wide
        base, into = image[b] + start, b * outputs * pitch + start
        weights = matrix[b] * blocks * taps * rows
        with k.loop(0, taps, stretch) as first, k.loop(0, blocks) as o:
            last = k.minimum(first + stretch, taps)
            panel = weights + o * taps * rows
            lines = [into + k.minimum(o * rows + r, outputs - 1) * pitch for r in range(rows)]
            with k.lanes(k.minimum(places - start, wide), unroll=vectors) as j:
                sums = [k.var(dtype, 0.0, varying=True) for _ in lines]
                with k.loop(first, last) as t:
                    v = x[base + at[t] + j]
                    for r, s in enumerate(sums):
                        s.set(k.fma(w[panel + t * rows + r], v, s.get()))
                with k.when(first > 0):  # a sum of sums: the error of one long chain would grow with its length
                    for s, line in zip(sums, lines, strict=True):
                        s.set(s.get() + y[line + j])
                # Rows past the end repeat the last one, and are written first.
                for s, line in reversed(list(zip(sums, lines, strict=True))):
                    y[line + j] = s.get()
    return k


def _build_both(dtype: DType, rows: int) -> Kernel:
    """w[o, t] = the sum of y[o, q] x[q + at[t]] over images and places: y [images, outputs, pitch], w [matrices, outputs, taps]."""
    k = Kernel(f"taps_weight_{dtype}_{rows}", dtype)
    x, y, w = k.array("x", dtype), k.array("y", dtype), k.array("w", dtype)
    at, image, partner = k.array("at", i64), k.array("image", i64), k.array("partner", i64)
    matrices, images, places, taps, outputs, pitch, often = (
        k.size(n) for n in ("matrices", "images", "places", "taps", "outputs", "pitch", "often")
    )
    count = BOTH[rows]
    across, down = (taps + (count - 1)) // count, (outputs + (rows - 1)) // rows
    with k.grid(matrices * across * down, cost=images * places * rows * count // 8) as g:
        m, tile = g // (across * down), g % (across * down)
        o, t = tile % down * rows, tile // down * count
        lines = [k.minimum(o + r, outputs - 1) for r in range(rows)]
        reads = [at[k.minimum(t + q, taps - 1)] for q in range(count)]
        sums = [[k.acc("add", wide=f64) for _ in range(count)] for _ in range(rows)]
        with k.loop(0, images) as n:
            base, other = image[m * images + n], partner[m * images + n] * outputs * pitch
            heads = [other + line * pitch for line in lines]
            with k.loop(0, places, LONG) as first:
                with k.lanes(k.minimum(places - first, LONG), unroll=1) as j:
                    left = [y[h + first + j] for h in heads]
                    for q in range(count):
                        v = x[base + reads[q] + first + j]
                        for r in range(rows):
                            sums[r][q].fma(left[r], v)
                with k.when((n % often).eq(often - 1)):
                    for row in sums:
                        for s in row:
                            s.carry()
        for r in range(rows):
            for q in range(count):
                with k.when(((o + r) < outputs) & ((t + q) < taps)):
                    w[(m * outputs + o + r) * taps + t + q] = sums[r][q].total()
    return k


def _prepare(kind: str, dtype: np.dtype, rows: int) -> Any:
    t = kernel_type(dtype)
    if t.size < 4:
        raise NotSupported
    return compiler.compile_kernel((_build_sum if kind == "sum" else _build_both)(t, rows))


_calls = Calls(_prepare)


def _rows(n: int, shapes: Any) -> int:
    """The tile that wastes least on n rows, the largest of those."""
    return min(shapes, key=lambda r: (-(-n // r) * r * (1 if r > 1 or n == 1 else 4), -r))


def sums(x: Any, w: Any, at: Any, image: Any, matrix: Any, y: Any, places: int) -> None:
    """y[b, o, q] = sum_t w[matrix[b], o, t] x[image[b] + at[t] + q]: `x` flat, `w` [matrices, outputs, taps], `y` [images, outputs, pitch]."""
    images, outputs, pitch = y.shape
    m, _, taps = w.shape
    rows = _rows(outputs, SHAPES)
    f = _calls["sum", x.dtype, rows]
    if f is None:
        raise NotSupported
    blocks = -(-outputs // rows)
    if blocks * rows != outputs:
        full = np.zeros((m, blocks * rows, taps), w.dtype)
        full[:, :outputs] = w
        w = full
    panels = np.ascontiguousarray(w.reshape(m, blocks, rows, taps).swapaxes(2, 3))
    if f(runtime.pool(), x, panels, y, at, image, matrix, images, places, taps, outputs, pitch) is False:
        raise NotSupported


def products(x: Any, y: Any, at: Any, image: Any, partner: Any, w: Any, places: int) -> None:
    """w[m, o, t] = sum_(n, q) y[partner[m, n], o, q] x[image[m, n] + at[t] + q]."""
    matrices, outputs, taps = w.shape
    rows = 1 if outputs < 3 else 4 if outputs < 5 else 6
    f = _calls["both", x.dtype, rows]
    if f is None:
        raise NotSupported
    images, pitch = image.size // matrices, y.shape[-1]
    often = max(1, LONG // max(places, 1))
    if f(runtime.pool(), x, y, w, at, image, partner, matrices, images, places, taps, outputs, pitch, often) is False:
        raise NotSupported
