"""Compiled loops over segments of packed numbers: softmax over a ragged dim and its derivative, sums, one pass each, in threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...fallback import NotSupported as NotSupported
from ...kernels import compiler, math, runtime
from ...kernels.calls import kernel_type
from ...kernels.lang import DType, Kernel, compute_type, f64, i64
from ...kernels.pool import empty

LEAST = 1 << 13  # elements from which a compiled loop is worth its call
TOGETHER = 512  # segments that one thread takes at a time
Segment = Callable[[Any, Any, Any], None]
_made: dict[tuple[DType, str], Callable[..., None]] = {}


def _softmax(k: Kernel, dtype: DType) -> Segment:
    x, y = k.array("x", dtype), k.array("y", dtype)

    def segment(i: Any, a: Any, n: Any) -> None:
        top = k.acc("max")
        with k.reducing(n, [top], unroll=1) as j:
            top.add(x[a + j])
        m = top.total()
        total = k.acc("add", wide=f64)
        with k.reducing(n, [total], unroll=1) as j:
            total.add(math.exp(k, x[a + j] - m))
        r = (1.0 / total.total()).to(k.compute)
        with k.lanes(n, unroll=1) as j:
            y[a + j] = math.exp(k, x[a + j] - m) * r

    return segment


def _pull(k: Kernel, dtype: DType) -> Segment:
    t, y, z = k.array("t", dtype), k.array("y", dtype), k.array("z", dtype)

    def segment(i: Any, a: Any, n: Any) -> None:
        total = k.acc("add", wide=f64)
        with k.reducing(n, [total], unroll=1) as j:
            total.fma(t[a + j], y[a + j])
        s = total.total().to(k.compute)
        with k.lanes(n, unroll=1) as j:
            z[a + j] = y[a + j] * (t[a + j] - s)

    return segment


def _sum(k: Kernel, dtype: DType) -> Segment:
    x, y = k.array("x", dtype), k.array("y", dtype)

    def segment(i: Any, a: Any, n: Any) -> None:
        total = k.acc("add", wide=f64)
        with k.reducing(n, [total], unroll=1) as j:
            total.add(x[a + j])
        y[i] = total.total()

    return segment


def _compiled(what: str, d: np.dtype) -> Callable[..., None]:
    dtype = kernel_type(d)
    f = _made.get((dtype, what))
    if f is None:
        k = Kernel(f"segment_{what}_{dtype}", compute_type(dtype))
        segment = {"softmax": _softmax, "pull": _pull, "sum": _sum}[what](k, dtype)
        offsets, n = k.array("offsets", i64), k.size("n")
        with k.grid((n + (TOGETHER - 1)) // TOGETHER, cost=TOGETHER * 64) as g:
            first = g * TOGETHER
            with k.loop(first, k.minimum(first + TOGETHER, n)) as i:
                a = offsets[i]
                segment(i, a, offsets[i + 1] - a)
        f = _made[dtype, what] = compiler.compile_kernel(k)
    return f


def run(what: str, offsets: np.ndarray, *xs: np.ndarray) -> np.ndarray:
    """``softmax(x)``, ``pull(t, y) = y (t - sum(y t))`` or ``sum(x)`` of each segment of packed numbers."""
    x = xs[0]
    if (
        x.size < LEAST
        or not compiler.available()
        or any(v.dtype != x.dtype or not v.flags.c_contiguous or v.size != x.size for v in xs)
    ):
        raise NotSupported
    f = _compiled(what, x.dtype)
    y = empty((len(offsets) - 1,) if what == "sum" else x.shape, x.dtype)
    f(runtime.pool(), *xs, y, offsets, len(offsets) - 1)
    return y
