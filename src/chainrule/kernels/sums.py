"""Sums over the rows of a matrix (gradients of biases) and over all elements (losses), on all threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported, kernel_type
from .lang import DType, Kernel
from .rows import RowPlan, prepare

BLOCK = 1 << 14  # elements per partial sum


class _Columns(RowPlan):
    """sum(x) over the rows"""

    name = "column_sums"
    arrays = 1

    def __init__(self, dtype: DType):
        self.dtype = dtype

    def declare(self, k: Kernel, stream: bool) -> None:
        self.inputs, self.vectors, self.outputs = [k.array("x", self.dtype)], [], []
        self.columns = [k.array("y", self.dtype)]

    def apply(self, x, vec, coef):
        return [], [(x[0], None)]


def _prepare(xd: np.dtype, rows: int, n: int) -> Any:
    dtype = kernel_type(xd)
    return prepare(_Columns, (dtype,), rows, n, rows * n * dtype.size)


_calls = Calls(_prepare)


def column_sums(x: np.ndarray, n: int) -> np.ndarray:
    """The sums over all but the last n elements of contiguous x, of length n."""
    go = _calls[x.dtype, x.size // n, n] if n else None
    y = np.empty(n, x.dtype)
    if go is None or go(x, y) is False:
        raise NotSupported
    return y


def _build_total(dtype: DType) -> Kernel:
    """Partial sums of blocks of x."""
    k = Kernel(f"total_{dtype}", dtype)
    x, partial, n = k.array("x", dtype), k.array("partial", dtype), k.size("n")
    with k.grid((n + (BLOCK - 1)) // BLOCK, cost=BLOCK) as g:
        start, acc = g * BLOCK, k.acc()
        with k.reducing(k.minimum(n - start, BLOCK), [acc]) as j:
            acc.add(x[start + j])
        partial[g] = acc.total()
    return k


def _prepare_total(xd: np.dtype) -> Any:
    dtype = kernel_type(xd)
    if dtype.size < 4:
        raise NotSupported
    return compiler.compile_kernel(_build_total(dtype))


_totals = Calls(_prepare_total)


def total(x: np.ndarray) -> np.ndarray:
    """The sum of all elements of contiguous x; the partial sums of blocks are added in double precision."""
    f = _totals[x.dtype,]
    partial = np.empty(-(-x.size // BLOCK), x.dtype)
    if f is None or not x.size or f(runtime.pool(), x, partial, x.size) is False:
        raise NotSupported
    return np.add.reduce(partial, dtype=np.float64).astype(x.dtype)[()]
