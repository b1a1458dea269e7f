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
BACK = 8  # entries of a row that is read from its end in one turn of the loop
PITCH = HIGH + 1  # columns of a tile do not fall on one line of the cache


def build(name: str, side: str) -> Kernel:
    """``y[a, i, j] = x[a s0 + i s1 + j s2]`` over [k, m, n]; `side` says whether s1 is 1 ("on"), -1 ("back") or any step ("any")."""
    t = BY_NAME[name]
    k = Kernel(f"copy_tiles_{side}_{name}", f64 if t.size == 8 else f32)
    x, y = k.strided("x", t), k.array("y", t)
    count, m, n = k.size("k"), k.size("m"), k.size("n")
    s0, s1, s2 = k.size("s0"), k.size("s1"), k.size("s2")
    tile = k.local("tile", t, WIDE * PITCH)
    down, across = (m + (HIGH - 1)) // HIGH, (n + (WIDE - 1)) // WIDE
    with k.grid(count * down * across, cost=HIGH * WIDE * 2) as g:
        a, top, left = g // (down * across), g // across % down * HIGH, g % across * WIDE
        base, width, height = a * s0 + left * s2 + top * s1, k.minimum(n - left, WIDE), k.minimum(m - top, HIGH)
        if side == "any":
            with k.loop(0, width) as j, k.loop(0, height) as i:
                tile[j * PITCH + i] = x.raw(base + j * s2 + i * s1)
        else:
            low = base - (height - 1) if side == "back" else base
            with k.loop(0, width) as j, k.lanes(height, unroll=1) as i:
                tile[j * PITCH + i] = x.raw(low + j * s2 + i)
        with k.loop(0, height) as i, k.lanes(width, unroll=2) as j:
            y[(a * m + top + i) * n + left + j] = tile.raw((height - 1 - i if side == "back" else i) + j * PITCH)
    return k


def build_back(name: str, _: Any) -> Kernel:
    """``y[a, i, j] = x[a s0 + i s1 - j]`` over [k, m, n]: rows from their ends."""
    t = BY_NAME[name]
    k = Kernel(f"copy_back_{name}", f64 if t.size == 8 else f32)
    x, y = k.strided("x", t), k.array("y", t)
    count, m, n, s0, s1 = (k.size(s) for s in ("k", "m", "n", "s0", "s1"))
    with k.grid(count * m, cost=n) as g:
        base, whole = g // m * s0 + g % m * s1, n // BACK * BACK
        for begin, end, step in ((0, whole, BACK), (whole, n, 1)):
            with k.loop(begin, end, step) as j:
                for r in range(step):
                    y[g * n + j + r] = x.raw(base - (j + r))
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


BUILDERS: dict[str, Callable[..., Kernel]] = {"tiles": build, "back": build_back, "triangle": build_triangle}


def _prepare(what: str, name: str, how: Any) -> Callable[..., Any]:
    return compiler.compile_kernel(BUILDERS[what](name, how))


_calls = Calls(_prepare)


def _prepare_copy(d: np.dtype, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """The loop for arrays of a layout, and its sizes."""
    t, n = MOVED.get(d.itemsize), len(shape)
    if t is None or d.hasobject or n > 3 or 0 in shape or any(s % t.size for s in strides):
        raise NotSupported
    steps = [s // t.size for s in strides]
    sizes = (*(1,) * (3 - n), *shape)
    if n and steps[-1] == -1:
        f = _calls["back", t.name, None]
        return None if f is None else (f, (*sizes, *((0, 0, *steps[:-1])[-2:])))
    if n < 2 or not abs(steps[-1]) > abs(steps[-2]) > 0:
        raise NotSupported
    f = _calls["tiles", t.name, {1: "on", -1: "back"}.get(steps[-2], "any")]
    return None if f is None else (f, (*sizes, *(0,) * (3 - n), *steps))


_layouts = Calls(_prepare_copy)


def contiguous(x: np.ndarray) -> np.ndarray:
    """A copy of `x` that lies in rows, in pooled memory."""
    y = empty(x.shape, x.dtype)
    found = (
        _layouts[x.dtype, x.shape, x.strides] if x.ndim and x.strides[-1] != x.itemsize and x.flags.aligned else None
    )
    if found is None or found[0](runtime.pool(), x, y, *found[1]) is False:
        np.copyto(y, x)
    return y


def triangle(x: np.ndarray, d: int, lower: bool) -> np.ndarray:
    """The lower or upper triangle of the last two axes, from the d-th diagonal on; zeros elsewhere."""
    t = MOVED.get(x.dtype.itemsize)
    f = None if t is None or x.dtype.hasobject or not x.size else _calls["triangle", t.name, lower]
    if f is None:
        raise NotSupported
    y = empty(x.shape, x.dtype)
    m, n = x.shape[-2:]
    f(runtime.pool(), np.ascontiguousarray(x), y, x.size // n, m, n, d)
    return y


__all__ = ["NotSupported", "contiguous", "triangle"]
