"""Entries and rows of arrays by number: read, written, added up. Compiled loops on large arrays, NumPy on small ones.

The bodies of the ops of :mod:`.getitem`, on arrays: what they compute is said there.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from ... import kernels
from ...core import dtypes as dt
from ...kernels.indexing import LEAST

NotSupported = kernels.NotSupported
indexing = kernels.indexing
TOGETHER = 1 << 18
_least: Any = np.minimum.reduce
_most: Any = np.maximum.reduce


def out_of_range(i: Any, low: int, high: int) -> bool:
    """Is an index below `low` or not below `high`."""
    if i.size >= LEAST:
        try:
            return indexing.outside(i, low, high)
        except NotSupported:
            pass
    return bool(i.size and (_least(i, None) < low or _most(i, None) >= high))


# -- rows ---------------------------------------------------------------------------------------------------------------


def _lying(x: Any) -> bool:
    """Is a matrix the transpose of one that lies in rows."""
    return x.ndim == 2 and x.flags.f_contiguous and not x.flags.c_contiguous


def take(x: Any, i: Any, axis: int) -> Any:
    """``x[..., i, ...]`` along an axis; i in range."""
    if x.size >= LEAST and i.size and x.flags.aligned:
        i = i.astype(np.int64, copy=False)
        try:
            if _lying(x) and axis == 0:  # rows that lie in columns: the result lies as they do
                y = indexing.take(x.T[:, :, None], i.reshape(1, -1, 1), i.size)[:, :, 0]
                return y.T.reshape((*i.shape, x.shape[1])) if i.ndim != 1 else y.T
            whole = np.ascontiguousarray(x).reshape((prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])))
            y = indexing.take(whole, i.reshape(1, -1, 1), i.size)
            return y.reshape(x.shape[:axis] + i.shape + x.shape[axis + 1 :])
        except NotSupported:
            pass
    return x.take(i, axis)


def sums(g: Any, i: Any, n: int) -> Any:
    """``y[s] = sum of g[k] with i[k] = s`` of rows ``g[k]``, added pairwise or in double precision and not rounded again."""
    if g.size >= LEAST and g.dtype in dt.REALS and len(i):
        try:
            at = i.astype(np.int64, copy=False)
            if g.shape[1] == 1 or _lying(g):
                base = np.zeros((g.shape[1], n, 1), g.dtype)
                return indexing.add(base, at.reshape(1, -1, 1), np.ascontiguousarray(g.T)[:, :, None])[:, :, 0].T
            return indexing.add_rows(np.ascontiguousarray(g), at, n)
        except NotSupported:
            pass
    if g.size < LEAST and g.dtype in dt.REALS:
        width = g.shape[1]
        if not g.size or not n:
            return np.zeros((n, width))
        at = i if width == 1 else ((i * width)[:, None] + _runs((width,))[0]).reshape(-1)
        return np.bincount(at, g.reshape(-1), n * width).reshape(n, width)
    g = g.astype(dt.WORK.get(g.dtype, g.dtype), copy=False)
    d, width = g.dtype, g.shape[1]
    if d.kind == "c":
        pairs = sums(np.ascontiguousarray(g).view(g.real.dtype), i, n)
        return np.ascontiguousarray(pairs).view(np.result_type(pairs, np.complex64))
    if not g.size or d.kind != "f":
        y = np.zeros((n, width), d)
        np.add.at(y, i, g)
    elif n <= 4 * len(i):
        y = np.zeros((n, width))
        step = max(TOGETHER // width, n)  # index and numbers grow to 64 bits: not all at once
        for a in range(0, len(i), step):
            at = i[a : a + step] if width == 1 else (i[a : a + step, None] * width + np.arange(width)).reshape(-1)
            y += np.bincount(at, g[a : a + step].reshape(-1), n * width).reshape(n, width)
    else:  # few of many
        y = np.zeros((n, width), d)
        order = np.argsort(i, kind="stable")
        kinds = i[order]
        starts = np.flatnonzero(np.concatenate([[True], kinds[1:] != kinds[:-1]]))
        y[kinds[starts]] = np.add.reduceat(g[order], starts, axis=0)
    return y


# -- entries along one axis, an index of the rank of the array ------------------------------------------------------------


def open_grid(i: Any, dim: int) -> tuple[Any, ...]:
    """An index of all axes that is `i` along `dim`, and runs along the others."""
    grid: list[Any] = list(_runs(i.shape))
    grid[dim] = i
    return tuple(grid)


@functools.lru_cache(maxsize=256)
def _runs(shape: tuple[int, ...]) -> tuple[Any, ...]:
    """0, 1, 2, … along each axis of a shape, with sizes of 1 along the others."""
    n = len(shape)
    runs = tuple([np.arange(m).reshape([-1 if k == a else 1 for k in range(n)]) for a, m in enumerate(shape)])
    for r in runs:
        r.flags.writeable = False
    return runs


def _flat(i: Any, dim: int, shape: tuple[int, ...]) -> Any:
    """The places in an array of a shape, flattened, that an index along `dim` speaks of."""
    d = dim % i.ndim
    flat: Any = None
    step = 1
    for a in range(len(shape) - 1, -1, -1):
        part = i if a == d else _runs(i.shape)[a]
        part = part * step if step != 1 else part
        flat = part if flat is None else flat + part
        step *= shape[a]
    return np.broadcast_to(flat, i.shape).reshape(-1) if flat.shape != i.shape else flat.reshape(-1)


def folded(x: Any, i: Any, dim: int) -> tuple[Any, Any]:
    """An array and an index of the same other axes as ``[a, n, b]``; NotSupported for others."""
    d = dim % x.ndim
    if x.shape[:d] != i.shape[:d] or x.shape[d + 1 :] != i.shape[d + 1 :]:
        raise NotSupported
    a, b = prod(x.shape[:d]), prod(x.shape[d + 1 :])
    i = np.ascontiguousarray(i, np.int64)
    return np.ascontiguousarray(x).reshape((a, x.shape[d], b)), i.reshape((a, i.shape[d], b))


def quickly(body: Any, what: str, xs: list[Any], dim: int) -> Any:
    """`body` for arrays like `xs`, small ones that lie as they should, by one call of compiled code; None where there is none."""
    x, i, *rest = xs
    if any(v.shape != i.shape or v.dtype != x.dtype for v in rest) or (what == "add" and x.dtype not in dt.REALS):
        return None
    go = indexing.at(what, x, i, dim)
    if go is None:
        return None

    def quick(*xs: Any) -> Any:
        y = go(*xs)
        return body(*xs, dim) if y is None else y

    return quick


def gather(x: Any, i: Any, dim: int) -> Any:
    """``y[a][b] = x[i[a][b]][b]`` for dim 0, and so on."""
    if i.size >= LEAST:
        try:
            a, at = folded(x, i, dim)
            return indexing.take(a, at, at.shape[1]).reshape(i.shape)
        except NotSupported:
            pass
    return x[open_grid(i, dim)]


def scatter_add(x: Any, i: Any, src: Any, dim: int) -> Any:
    """`x` with `src`, which has the shape of `i`, added at the places that gather would read."""
    if x.dtype in dt.REALS and src.dtype == x.dtype and (go := indexing.at("add", x, i, dim)) is not None:
        y = go(*[np.ascontiguousarray(v) for v in (x, i, src)])
        if y is not None:
            return y
    if i.size >= LEAST and x.dtype in dt.REALS and src.dtype == x.dtype:
        try:
            a, at = folded(x, i, dim)
            return indexing.add(a, at, np.ascontiguousarray(src).reshape(at.shape)).reshape(x.shape)
        except NotSupported:
            pass
    if x.dtype in dt.REALS and i.size < LEAST:
        if not i.size:
            return x.copy()
        y = np.bincount(_flat(i, dim, x.shape), src.reshape(-1), x.size).reshape(x.shape)
        return (x + y).astype(x.dtype, copy=False)
    at = np.ravel_multi_index(np.broadcast_arrays(*open_grid(i, dim)), x.shape) if i.size else i
    return (x + sums(src.reshape(-1, 1), at.reshape(-1), x.size).reshape(x.shape)).astype(x.dtype, copy=False)


def scatter(x: Any, i: Any, src: Any, dim: int) -> Any:
    """`x` with `src`, which has the shape of `i`, written to the places that gather would read."""
    if i.size >= LEAST:
        try:
            a, at = folded(x, i, dim)
            return indexing.put(a, at, np.ascontiguousarray(src).reshape(at.shape)).reshape(x.shape)
        except NotSupported:
            pass
    out = x.copy()
    out[open_grid(i, dim)] = src
    return out


def winners(i: Any, dim: int, old: tuple[int, ...]) -> Any:
    """True where a scatter's write to an array of sizes `old` is the last to its place."""
    if i.size >= LEAST:
        d = dim % i.ndim
        shape = (prod(i.shape[:d]), i.shape[d], prod(i.shape[d + 1 :]))
        try:
            return indexing.last(np.ascontiguousarray(i, np.int64).reshape(shape), old[d]).reshape(i.shape)
        except NotSupported:
            pass
    last = np.full(old, -1, np.int64)
    number = np.arange(i.size).reshape(i.shape)
    last[open_grid(i, dim)] = number
    return last[open_grid(i, dim)] == number
