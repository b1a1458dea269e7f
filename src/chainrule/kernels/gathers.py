"""Weighted sums of entries by number, ``y[c, p] = sum_t w[t, p] x[c, at[t, p]]``, and the two sums that are its transposes.

A number below zero reads nothing. In the sums that add to entries by number, the order is that of the numbers: results do not depend
on threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported, kernel_type
from .lang import DType, Kernel, Value, i64
from .pool import empty

BLOCK = 256  # places of a grid index, where channels are summed


def _build(kind: str, dtype: DType) -> Kernel:
    k = Kernel(f"gather_{kind}_{dtype}", dtype)
    names = {"sum": ("x", "w", "y"), "add": ("y", "w", "x"), "dot": ("x", "y", "w")}[kind]
    arrays = {n: k.array(n, dtype) for n in names}
    x, y, w = arrays["x"], arrays["y"], arrays["w"]
    at = k.array("at", i64)
    batch, channels, entries, taps, places = (k.size(n) for n in ("batch", "channels", "entries", "taps", "places"))

    def read(base: Value, number: Value) -> Value:
        return x[base + k.select(number >= 0, number, 0)]

    if kind == "dot":
        blocks = (places + (BLOCK - 1)) // BLOCK
        with k.grid(batch * blocks, cost=taps * channels * BLOCK) as g:
            b, start = g // blocks, g % blocks * BLOCK
            with k.lanes(k.minimum(places - start, BLOCK), unroll=1) as j, k.loop(0, taps) as t:
                line = (b * taps + t) * places + start
                number = at[line + j]
                total = k.var(dtype, 0.0, varying=True)
                with k.loop(0, channels) as c:
                    v = read((b * channels + c) * entries, number)
                    total.set(k.fma(v, y[(b * channels + c) * places + start + j], total.get()))
                w[line + j] = k.select(number >= 0, total.get(), 0.0)
        return k
    with k.grid(batch * channels, cost=taps * places * 4) as g:
        tables = g // channels * taps * places
        if kind == "sum":
            with k.lanes(places, unroll=1) as j:
                total = k.var(dtype, 0.0, varying=True)
                with k.loop(0, taps) as t:
                    line = tables + t * places
                    number = at[line + j]
                    v = read(g * entries, number) * w[line + j]
                    total.set(total.get() + k.select(number >= 0, v, 0.0))
                y[g * places + j] = total.get()
        else:
            with k.lanes(entries) as j:
                x[g * entries + j] = 0.0
            with k.loop(0, taps) as t, k.loop(0, places) as p:
                number = at[tables + t * places + p]
                with k.when(number >= 0):
                    here = g * entries + number
                    x[here] = k.fma(w[tables + t * places + p], y[g * places + p], x[here])
    return k


def _prepare(kind: str, dtype: np.dtype) -> Any:
    t = kernel_type(dtype)
    if t.size < 4:
        raise NotSupported
    return compiler.compile_kernel(_build(kind, t))


_calls = Calls(_prepare)


def run(kind: str, a: Any, b: Any, at: Any, sizes: tuple[int, int, int, int, int]) -> Any:
    """`kind`: "sum" of x and w, "add" of y and w, "dot" of x and y; `sizes` are batch, channels, entries, taps, places."""
    f = _calls[kind, a.dtype]
    if f is None or b.dtype is not a.dtype:
        raise NotSupported
    n, c, s, t, p = sizes
    out = empty({"sum": (n, c, p), "add": (n, c, s), "dot": (n, t, p)}[kind], a.dtype)
    if out.size and f(runtime.pool(), a, b, out, at, n, c, s, t, p) is False:
        raise NotSupported
    return out
