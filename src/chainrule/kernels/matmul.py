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
TILE = 4  # the same for the transposed product
BLOCK = 10 * ROWS  # rows per grid index
CHUNK = 256  # rows per partial sum of the transposed product


def _build_rows(dtype: DType, bias: bool) -> Kernel:
    """y = a b (+ c): a [m, k], b [k, n], c [n]."""
    k = Kernel(f"matmul_{dtype}{'_bias' if bias else ''}", dtype)
    a, b = k.array("a", dtype), k.array("b", dtype)
    c = k.array("c", dtype) if bias else None
    y = k.array("y", dtype)
    m, depth, n = k.size("m"), k.size("k"), k.size("n")

    def rows(first: Value, count: int) -> None:
        with k.lanes(n) as j:
            start = c[j] if c is not None else k.const(0.0, dtype)
            sums = [k.var(dtype, start, varying=True) for _ in range(count)]
            with k.loop(0, depth) as i:
                column = b[i * n + j]
                for r, s in enumerate(sums):
                    s.set(k.fma(a[(first + r) * depth + i], column, s.get()))
            for r, s in enumerate(sums):
                y[(first + r) * n + j] = s.get()

    with k.grid((m + (BLOCK - 1)) // BLOCK, cost=depth * n * (BLOCK // 8)) as g:
        first = g * BLOCK
        last = k.minimum(first + BLOCK, m)
        whole = first + (last - first) // ROWS * ROWS
        with k.loop(first, whole, ROWS) as i:
            rows(i, ROWS)
        with k.loop(whole, last) as i:
            rows(i, 1)
    return k


def _build_transposed(dtype: DType) -> Kernel:
    """y = aᵀ b: a [m, k], b [m, n]; partial sums over chunks of rows, added in order."""
    k = Kernel(f"matmul_transposed_{dtype}", dtype)
    a, b, y, partial = k.array("a", dtype), k.array("b", dtype), k.array("y", dtype), k.array("partial", dtype)
    m, depth, n = k.size("m"), k.size("k"), k.size("n")
    chunks, tiles = (m + (CHUNK - 1)) // CHUNK, (depth + (TILE - 1)) // TILE

    def columns(out: Array, into: Value, first: Value, last: Value, column: Value, count: int) -> None:
        with k.lanes(n) as j:
            sums = [k.var(dtype, 0.0, varying=True) for _ in range(count)]
            with k.loop(first, last) as i:
                row = b[i * n + j]
                for q, s in enumerate(sums):
                    s.set(k.fma(a[i * depth + column + q], row, s.get()))
            for q, s in enumerate(sums):
                out[into + q * n + j] = s.get()

    with k.grid(chunks * tiles, cost=n * (CHUNK * TILE // 8)) as g:
        chunk, column = g // tiles, g % tiles * TILE
        first = chunk * CHUNK
        last = k.minimum(first + CHUNK, m)
        into = (chunk * depth + column) * n
        with k.when(depth - column >= TILE):
            columns(partial, into, first, last, column, TILE)
        with k.when(depth - column < TILE), k.loop(column, depth) as q:
            columns(partial, (chunk * depth + q) * n, first, last, q, 1)
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
    y, partial = np.empty((k, n), a.dtype), empty((-(-m // CHUNK) * k * n,), scratch)
    if f(runtime.pool(), a, b, y, partial, m, k, n) is False:
        raise NotSupported
    return y
