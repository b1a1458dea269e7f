"""Batches of small matrices: LU with partial pivoting, triangular systems. One grid index is one matrix; the algorithms are LAPACK's, row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported, kernel_type, prod
from .lang import DType, Kernel, Value, i32, i64
from .pool import empty

MOST = 32  # rows: beyond, LAPACK's blocks are worth the call for each matrix


def build_lu(dtype: DType) -> Kernel:
    """``P a = L U``: packed factors, interchanges (from 1), the first zero pivot (from 1), the permutation of rows and its inverse."""
    k = Kernel(f"lu_{dtype}", dtype)
    a, lu = k.array("a", dtype), k.array("lu", dtype)
    piv, info, perm, back = k.array("piv", i32), k.array("info", i32), k.array("perm", i64), k.array("back", i64)
    count, m, n, least = (k.size(s) for s in ("count", "m", "n", "least"))
    with k.grid(count, cost=m * n * least) as g:
        base, rows = g * m * n, g * m
        with k.lanes(m * n, unroll=1) as e:
            lu[base + e] = a[base + e]
        with k.loop(0, m) as i:
            perm[rows + i] = i
        first = k.var(i64, 0)
        with k.loop(0, least) as j:
            top, at = k.var(dtype, -1.0), k.var(i64, j)
            with k.loop(j, m) as i:
                size = abs(lu[base + i * n + j])
                # As LAPACK's search: a NaN is greater than what comes before it.
                better = (size > top.get()) | (size.ne(size) & top.get().eq(top.get()))
                at.set(k.select(better, i, at.get()))
                top.set(k.select(better, size, top.get()))
            p = at.get()
            piv[g * least + j] = (p + 1).to(i32)
            with k.when(p.ne(j)):
                with k.loop(0, n) as c:
                    v = lu[base + p * n + c]
                    w = lu[base + j * n + c]
                    lu[base + p * n + c] = w
                    lu[base + j * n + c] = v
                one = perm[rows + p]
                two = perm[rows + j]
                perm[rows + p] = two
                perm[rows + j] = one
            pivot = lu[base + j * n + j]
            with k.when(pivot.eq(0.0) & first.get().eq(0)):
                first.set(j + 1)
            with k.loop(j + 1, m) as i:
                v = lu[base + i * n + j]
                factor = k.select(pivot.eq(0.0), v, v / pivot)
                lu[base + i * n + j] = factor
                with k.lanes(n - j - 1, unroll=1) as c:
                    here = base + i * n + (j + 1) + c
                    lu[here] = lu[here] - factor * lu[base + j * n + (j + 1) + c]
        info[g] = first.get().to(i32)
        with k.loop(0, m) as i:
            back[rows + perm[rows + i]] = i
    return k


def build_triangular(dtype: DType, upper: bool, unit: bool) -> Kernel:
    """``x`` with ``tri(a) x = b``."""
    k = Kernel(f"triangular_{'upper' if upper else 'lower'}{'_unit' if unit else ''}_{dtype}", dtype)
    a, b, x = k.array("a", dtype), k.array("b", dtype), k.array("x", dtype)
    count, n, m = k.size("count"), k.size("n"), k.size("m")
    with k.grid(count, cost=n * n * m) as g, k.loop(0, n) as s:
        i = n - 1 - s if upper else s
        row, line = (g * n + i) * n, (g * n + i) * m

        def each(work: Callable[[Value], None]) -> None:
            with k.lanes(m, unroll=1) as c:
                work(c)

        def begin(c: Value, line: Value = line) -> None:
            x[line + c] = b[line + c]

        each(begin)
        with k.loop(i + 1, n) if upper else k.loop(0, i) as other:
            factor = a[row + other]
            with k.lanes(m, unroll=1) as c:
                x[line + c] = x[line + c] - factor * x[(g * n + other) * m + c]
        if not unit:
            d = a[row + i]
            with k.lanes(m, unroll=1) as c:
                x[line + c] = x[line + c] / d
    return k


def _lu(xd: np.dtype) -> Callable[..., Any]:
    return compiler.compile_kernel(build_lu(_real(xd)))


def _triangular(xd: np.dtype, upper: bool, unit: bool) -> Callable[..., Any]:
    return compiler.compile_kernel(build_triangular(_real(xd), upper, unit))


def _real(xd: np.dtype) -> DType:
    t = kernel_type(xd)
    if t.size < 4:
        raise NotSupported
    return t


_lus, _triangulars = Calls(_lu), Calls(_triangular)
I32, I64 = np.dtype(np.int32), np.dtype(np.int64)


def lu(a: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of matrices ``a[..., m, n]``: packed L and U, interchanges (from 1), the first zero pivot (0: none), the permutation of rows and its inverse."""
    shape = a.shape
    m, n = shape[-2:]
    f = _lus[(a.dtype,)] if m <= MOST and n <= MOST and a.size else None
    if f is None:
        raise NotSupported
    lead, least = shape[:-2], min(m, n)
    y = empty(shape, a.dtype)
    piv, info, perm, back = (
        np.empty((*lead, least), I32),
        np.empty(lead, I32),
        np.empty((*lead, m), I64),
        np.empty((*lead, m), I64),
    )
    count = prod(lead)
    if f(runtime.pool(), a, y, piv, info, perm, back, count, m, n, least) is False:
        f(runtime.pool(), a.copy(), y, piv, info, perm, back, count, m, n, least)
    return y, piv, info, perm, back


def triangular(a: np.ndarray, b: np.ndarray, upper: bool, unit: bool) -> np.ndarray:
    """``x[..., n, m]`` with ``tri(a) x = b`` for as many a as b."""
    n, m = b.shape[-2:]
    if n > MOST or not b.size or a.shape[:-2] != b.shape[:-2] or a.dtype is not b.dtype:
        raise NotSupported
    f = _triangulars[a.dtype, upper, unit]
    if f is None:
        raise NotSupported
    x = empty(b.shape, b.dtype)
    count = prod(b.shape[:-2])
    if f(runtime.pool(), a, b, x, count, n, m) is False:
        f(runtime.pool(), a.copy(), b.copy(), x, count, n, m)
    return x
