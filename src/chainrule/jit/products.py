"""Large products of matrices on all threads: blocks of the right factor are copied to where they lie in one piece, and rows of the left
one pass by them.

A BLAS library has threads of its own, which wait for work by turning in circles on the cores that the other grids of a kernel want; and
its loops are made for other sizes than a layer has.
"""

from __future__ import annotations

from typing import Any

from .values import Mem

ROWS, VECTORS = 6, 4  # of the result side by side: they fill the registers
DEPTH = 64  # rows of a block of the right factor, which stays in the first cache
HIGH = 16 * ROWS  # rows of the left one that pass by a block, at least
BLOCKS = 64  # of which there are no more than this where the rows are many


def product_in_blocks(nests: Any, a: Mem, b: Mem, target: Mem) -> None:
    """``target = a b`` for matrices of any strides: one grid, or loops where the kernel is one thread's."""
    k = nests.k
    (m, depth), n = a.shape, b.shape[1]
    columns = VECTORS * (64 // k.compute.size)
    if nests.block is None:
        nests.block = k.local("block", k.compute, DEPTH * columns)
    block = nests.block
    across = -(-n // columns)
    high = min(m, HIGH * max(1, m * across // (HIGH * BLOCKS)))
    with nests.section(-(-m // high) * across, high * min(n, columns) * depth // 4) as g:
        down = g // across
        first, start = down * high, (g - down * across) * columns
        wide = columns if n % columns == 0 else n if n < columns else k.minimum(n - start, columns)
        rows = high if m % high == 0 else k.minimum(m - first, high)

        def tile(at: Any, deep: Any, top: Any, count: int) -> None:
            heads = [target.offset + (top + r) * target.strides[0] + start for r in range(count)]
            with k.lanes(wide, unroll=VECTORS) as j:
                if deep is depth:
                    sums = [k.var(k.compute, 0.0, varying=True) for _ in heads]
                else:  # what the blocks before gave: the same code for the first one, which has nothing before it
                    sums = [k.var(k.compute, k.select(at > 0, target.array[h + j], 0.0), varying=True) for h in heads]
                with k.loop(0, deep) as i:
                    row = block[i * columns + j]
                    for r, s in enumerate(sums):
                        x = a.array[a.offset + (top + r) * a.strides[0] + (at + i) * a.strides[1]]
                        s.set(k.fma(x, row, s.get()))
                for h, s in zip(heads, sums, strict=True):
                    target.array[h + j] = s.get()

        def part(at: Any, deep: Any) -> None:
            with k.loop(0, deep) as i:
                line = b.offset + (at + i) * b.strides[0] + start * b.strides[1]
                if b.strides[1] == 1:
                    with k.lanes(wide, unroll=VECTORS) as j:
                        block[i * columns + j] = b.array[line + j]
                else:
                    with k.loop(0, wide) as j:
                        block[i * columns + j] = b.array[line + j * b.strides[1]]
            rest = m % ROWS  # of the last rows: all others are whole
            whole = rows // ROWS
            with k.loop(0, whole) as t:
                tile(at, deep, first + t * ROWS, ROWS)
            if rest and m <= high:
                tile(at, deep, first + whole * ROWS, rest)
            elif rest:
                with k.when(first + rows >= m):
                    tile(at, deep, first + whole * ROWS, rest)

        if depth <= DEPTH:
            part(0, depth)
        else:
            with k.loop(0, depth, DEPTH) as at:
                part(at, DEPTH if depth % DEPTH == 0 else k.minimum(depth - at, DEPTH))
