"""Products of tall matrices with small ones, a b + c and its transpose aᵀ b, on the same threads as all other kernels.

A BLAS library keeps threads of its own, which wait for work by turning in circles; next to kernels on the same cores each library
then slows the other down. For matrices of a few kilobytes, which stay in the first cache whole, a plain blocked loop reaches the
speed of the machine, so that the layers of a small network need no other threads at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported, kernel_type, scratch_of
from .lang import Array, DType, Kernel, Value
from .pool import empty

ROWS = 6  # rows of the result side by side: with four vectors each they fill the registers
VECTORS = 4
BLOCK = 10 * ROWS  # rows per grid index
DEPTH = 64  # rows of a block of b that is copied to where it lies in one piece, and stays in the first cache
DEEP = 16 * ROWS  # columns of a block of a, in the transposed product: each copies the blocks of b anew
PARTS = 16  # partial sums of the transposed product, at most
LEAST = 4  # blocks of rows in one: each partial sum is as large as the result, and is written and read


class _Blocks:
    """What both products share: blocks of b, and sums of rows times such a block."""

    def __init__(self, name: str, dtype: DType) -> None:
        self.k, self.dtype = Kernel(name, dtype), dtype
        self.a, self.b = self.k.array("a", dtype), self.k.array("b", dtype)
        self.columns = VECTORS * (64 // dtype.size)
        self.block = self.k.local("block", dtype, DEPTH * self.columns)

    def copy(self, first: Value, rows: Value, n: Value, start: Value, wide: Value) -> None:
        """These rows of b, from a column on, as a block."""
        k = self.k
        with k.loop(0, rows) as i, k.lanes(wide, unroll=VECTORS) as j:
            self.block[i * self.columns + j] = self.b[(first + i) * n + start + j]

    def add(self, out: Array, heads: list[Value], rows: Value, wide: Value, value: Any, begin: Any) -> None:
        """``out[head + j] = begin + sum_i value(q, i) block[i, j]`` for each head, the q-th of them."""
        k = self.k
        with k.lanes(wide, unroll=VECTORS) as j:
            sums = [k.var(self.dtype, begin(h, j), varying=True) for h in heads]
            with k.loop(0, rows) as i:
                row = self.block[i * self.columns + j]
                for q, s in enumerate(sums):
                    s.set(k.fma(value(q, i), row, s.get()))
            for h, s in zip(heads, sums, strict=True):
                out[h + j] = s.get()


def _in_tiles(k: Kernel, n: Value, body: Any) -> None:
    """``body(first, count)`` for tiles of ROWS, and for what is left one by one."""
    whole = n // ROWS * ROWS
    with k.loop(0, whole, ROWS) as i:
        body(i, ROWS)
    with k.loop(whole, n) as i:
        body(i, 1)


def _build_rows(dtype: DType, bias: bool) -> Kernel:
    """y = a b (+ c): a [m, k], b [k, n], c [n]."""
    p = _Blocks(f"matmul_{dtype}{'_bias' if bias else ''}", dtype)
    k, a = p.k, p.a
    c = k.array("c", dtype) if bias else None
    y = k.array("y", dtype)
    m, depth, n = k.size("m"), k.size("k"), k.size("n")
    with (
        k.grid((m + (BLOCK - 1)) // BLOCK, cost=depth * n * (BLOCK // 8)) as g,
        k.loop(0, n, p.columns) as start,
        k.loop(0, depth, DEPTH) as at,
    ):
        first = g * BLOCK
        wide, deep = k.minimum(n - start, p.columns), k.minimum(depth - at, DEPTH)
        p.copy(at, deep, n, start, wide)

        def tiles(begin: Any) -> None:
            def tile(i: Value, count: int) -> None:
                heads = [(first + i + r) * n + start for r in range(count)]
                p.add(y, heads, deep, wide, lambda r, d: a[(first + i + r) * depth + at + d], begin)

            _in_tiles(k, k.minimum(BLOCK, m - first), tile)

        with k.when(at < 1):
            tiles(lambda head, j: c[start + j] if c is not None else 0.0)
        with k.when(at >= 1):
            tiles(lambda head, j: y[head + j])
    return k


def _build_transposed(dtype: DType) -> Kernel:
    """y = aᵀ b: a [m, k], b [m, n]; partial sums over chunks of rows, added in order."""
    p = _Blocks(f"matmul_transposed_{dtype}", dtype)
    k, a = p.k, p.a
    y, partial = k.array("y", dtype), k.array("partial", dtype)
    turned = k.local("turned", dtype, DEPTH * DEEP)
    m, depth, n, chunk = k.size("m"), k.size("k"), k.size("n"), k.size("chunk")
    chunks, down = (m + (chunk - 1)) // chunk, (depth + (DEEP - 1)) // DEEP
    with k.grid(chunks * down, cost=n * chunk * (DEEP // 8)) as g:
        part, column = g // down, g % down * DEEP
        into, begin = (part * depth + column) * n, part * chunk
        deep, last = k.minimum(depth - column, DEEP), k.minimum(begin + chunk, m)
        with k.loop(begin, last, DEPTH) as first:
            rows = k.minimum(last - first, DEPTH)
            with k.loop(0, rows) as i, k.lanes(deep, unroll=1) as j:
                turned[i * DEEP + j] = a[(first + i) * depth + column + j]
            with k.loop(0, n, p.columns) as start:
                wide = k.minimum(n - start, p.columns)
                p.copy(first, rows, n, start, wide)

                def tiles(begin: Any, rows: Value = rows, start: Value = start, wide: Value = wide) -> None:
                    def tile(d: Value, count: int) -> None:
                        heads = [into + (d + q) * n + start for q in range(count)]
                        p.add(partial, heads, rows, wide, lambda q, i: turned[i * DEEP + d + q], begin)

                    _in_tiles(k, deep, tile)

                with k.when(first < begin + 1):
                    tiles(lambda head, j: 0.0)
                with k.when(first >= begin + 1):
                    tiles(lambda head, j: partial[head + j])
    with k.grid(depth, cost=n * chunks) as q, k.lanes(n) as j:
        total = k.var(dtype, 0.0, varying=True)
        with k.loop(0, chunks) as c:
            total.set(total.get() + partial[(c * depth + q) * n + j])
        y[q * n + j] = total.get()
    return k


def _prepare(kind: str, xd: np.dtype) -> Any:
    dtype = kernel_type(xd)
    if dtype.size < 4:
        raise NotSupported
    k = _build_transposed(dtype) if kind == "transposed" else _build_rows(dtype, kind == "bias")
    return compiler.compile_kernel(k), scratch_of(dtype)


_calls = Calls(_prepare)


def matmul(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
    """a b, or a b + c with a vector c."""
    (m, k), n = a.shape, b.shape[1]
    call = _calls["bias" if c is not None else "plain", a.dtype]
    if call is None or b.shape[0] != k or b.dtype != a.dtype or not m * k * n:
        raise NotSupported
    y = empty((m, n), a.dtype)
    if c is None:
        done = call[0](runtime.pool(), a, b, y, m, k, n)
    elif c.shape != (n,) or c.dtype != a.dtype:
        raise NotSupported
    else:
        done = call[0](runtime.pool(), a, b, c, y, m, k, n)
    if done is False:
        raise NotSupported
    return y


def matmul_transposed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """aᵀ b, a sum over the rows of both."""
    (m, k), n = a.shape, b.shape[1]
    call = _calls["transposed", a.dtype]
    if call is None or b.shape[0] != m or b.dtype != a.dtype or not m * k * n:
        raise NotSupported
    f, scratch = call
    chunk = max(LEAST, -(-m // (PARTS * DEPTH))) * DEPTH
    y, partial = np.empty((k, n), a.dtype), empty((-(-m // chunk) * k * n,), scratch)
    if f(runtime.pool(), a, b, y, partial, m, k, n, chunk) is False:
        raise NotSupported
    return y
