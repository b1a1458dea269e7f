"""Copies of arrays that do not lie in rows, in tiles that are turned round in a few kilobytes of memory: cache lines are read once, and whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported
from .indexing import MOVED
from .lang import BY_NAME, Kernel, f32, f64, i64
from .pool import empty

HIGH, WIDE = 16, 64  # rows and columns of a tile of the copy
PITCH = HIGH + 1  # columns of a tile do not fall on one line of the cache


def build(name: str, unit: bool) -> Kernel:
    """``y[a, i, j] = x[a s0 + i s1 + j s2]`` over [k, m, n]; `unit`: s1 is 1."""
    t = BY_NAME[name]
    k = Kernel(f"copy_tiles{'_unit' if unit else ''}_{name}", f64 if t.size == 8 else f32)
    x, y = k.strided("x", t), k.array("y", t)
    count, m, n = k.size("k"), k.size("m"), k.size("n")
    s0, s1, s2 = k.size("s0"), k.size("s1"), k.size("s2")
    tile = k.local("tile", t, WIDE * PITCH)
    down, across = (m + (HIGH - 1)) // HIGH, (n + (WIDE - 1)) // WIDE
    with k.grid(count * down * across, cost=HIGH * WIDE * 2) as g:
        a, top, left = g // (down * across), g // across % down * HIGH, g % across * WIDE
        base, width, height = a * s0 + left * s2 + top * s1, k.minimum(n - left, WIDE), k.minimum(m - top, HIGH)
        if unit:
            with k.loop(0, width) as j, k.lanes(height, unroll=1) as i:
                tile[j * PITCH + i] = x.raw(base + j * s2 + i)
        else:
            with k.loop(0, width) as j, k.loop(0, height) as i:
                tile[j * PITCH + i] = x.raw(base + j * s2 + i * s1)
        with k.loop(0, height) as i, k.lanes(width, unroll=2) as j:
            y[(a * m + top + i) * n + left + j] = tile.raw(i + j * PITCH)
    return k


def build_triangle(name: str, lower: bool) -> Kernel:
    """``y[i, j] = x[i, j]`` where j is at most (or, for the upper triangle, at least) i modulo m, plus d; else 0."""
    t = BY_NAME[name]
    k = Kernel(f"triangle_{'lower' if lower else 'upper'}_{name}", f64 if t.size == 8 else f32)
    x, y = k.array("x", t), k.array("y", t)
    rows, m, n, d = k.size("rows"), k.size("m"), k.size("n"), k.size("d")
    zero = k.const(0 if t.kind == "i" else 0.0, t)
    with k.grid(rows, cost=n) as i:
        # The entries that stay are [first, last).
        edge = k.minimum(k.maximum(i % m + d + (1 if lower else 0), 0), n)
        first, last = (k.const(0, i64), edge) if lower else (edge, n)
        at = i * n
        with k.lanes(first, unroll=4) as j:
            y[at + j] = zero
        with k.lanes(last - first, unroll=4) as j:
            y[at + first + j] = x.raw(at + first + j)
        with k.lanes(n - last, unroll=4) as j:
            y[at + last + j] = zero
    return k


def _prepare(name: str, unit: bool, triangle: bool = False) -> Callable[..., Any]:
    return compiler.compile_kernel((build_triangle if triangle else build)(name, unit))


_calls = Calls(_prepare)


def contiguous(x: np.ndarray) -> np.ndarray:
    """A copy of `x` that lies in rows, in pooled memory."""
    y = empty(x.shape, x.dtype)
    t = MOVED.get(x.dtype.itemsize)
    across = x.ndim in (2, 3) and x.size and abs(x.strides[-1]) > abs(x.strides[-2]) > 0
    if across and t is not None and x.flags.aligned and not x.dtype.hasobject:
        f = _calls[t.name, x.strides[-2] == t.size]
        steps = [s // t.size for s in x.strides]
        if f is not None and all(s % t.size == 0 for s in x.strides):
            f(runtime.pool(), x, y, *(1,) * (3 - x.ndim), *x.shape, *(0,) * (3 - x.ndim), *steps)
            return y
    np.copyto(y, x)
    return y


def triangle(x: np.ndarray, d: int, lower: bool) -> np.ndarray:
    """The lower or upper triangle of the last two axes, from the d-th diagonal on; zeros elsewhere."""
    t = MOVED.get(x.dtype.itemsize)
    f = None if t is None or x.dtype.hasobject or not x.size else _calls[t.name, lower, True]
    if f is None:
        raise NotSupported
    y = empty(x.shape, x.dtype)
    m, n = x.shape[-2:]
    f(runtime.pool(), np.ascontiguousarray(x), y, x.size // n, m, n, d)
    return y


__all__ = ["NotSupported", "contiguous", "triangle"]
