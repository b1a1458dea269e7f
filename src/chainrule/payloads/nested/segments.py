"""Reductions and scans of nests: segments of packed rows, and lines of a ragged dim padded in buckets of similar lengths."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.errors import ChainruleError
from ...ops.reduce import adding
from .array import LARGE, NestedArray, pack
from .sizes import Geometry, Packing, RaggedInt

ndarray = np.ndarray

# -- reductions: segments of rows -----------------------------------------------------------------------------------------


class Segments:
    """How reducing some of the dims of a packing groups its rows: an order, where groups start, how long they are."""

    def __init__(self, p: Packing, outer: tuple[int, ...]) -> None:
        keep = [d for d in range(p.u) if d not in outer]
        kept = p.sizes[:, keep].prod(1, dtype=np.int64) if keep else np.ones(p.n, np.int64)
        self.order: ndarray | None = None
        self.lengths = np.repeat(p.sizes[:, list(outer)].prod(1, dtype=np.int64), kept) if keep else p.counts
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.full = self.lengths > 0
        self.all_full = bool(self.full.all())
        self.nonempty = self.starts if self.all_full else self.starts[self.full]
        if list(outer) != list(range(p.u - len(outer), p.u)):
            starts = np.cumsum(kept) - kept
            at = np.zeros(p.total, np.int64)
            for d in keep:
                at = at * p.sizes[p.owner, d] + p.coordinates[d]
            self.group = starts[p.owner] + at
            self.order = np.argsort(self.group, kind="stable")

    @functools.cached_property
    def bounds(self) -> ndarray:
        """Where each segment starts, and the end."""
        return np.concatenate([[0], np.cumsum(self.lengths)])

    def sorted(self, rows: ndarray, axis: int) -> ndarray:
        """The rows, those of a group next to each other."""
        return rows if self.order is None else rows.take(self.order, axis=axis)

    def unsorted(self, rows: ndarray, axis: int) -> ndarray:
        """The rows back in their own order."""
        if self.order is None:
            return rows
        back = np.empty_like(self.order)
        back[self.order] = np.arange(len(back))
        return rows.take(back, axis=axis)

    def spread(self, per_group: ndarray, axis: int) -> ndarray:
        """A value for each group, repeated for its rows in their original order."""
        if self.order is not None:
            return per_group.take(self.group, axis=axis)
        return np.repeat(per_group, self.lengths, axis=axis)

    def reduce(self, ufunc: Any, rows: ndarray, identity: Any, axis: int, dtype: Any = None) -> ndarray:
        """One reduced row for each group; empty groups get the identity."""
        if (
            ufunc is np.add
            and dtype is None
            and rows.ndim == 1
            and self.order is None
            and rows.size >= LARGE
            and rows.dtype.kind == "f"
        ):
            from . import kernels as nested_kernels

            try:
                return nested_kernels.run("sum", self.bounds, rows)
            except nested_kernels.NotSupported:
                pass
        rows = self.sorted(rows, axis)
        if self.all_full and len(self.lengths):
            return ufunc.reduceat(rows, self.starts, axis=axis, dtype=dtype)
        shape = list(rows.shape)
        shape[axis] = len(self.lengths)
        out: Any = np.full(shape, identity, rows.dtype if dtype is None else dtype)
        if len(self.nonempty):
            # reduceat returns an element, not the identity, for an empty segment: leave those out.
            out[(..., self.full, *(slice(None),) * (-axis - 1))] = ufunc.reduceat(
                rows, self.nonempty, axis=axis, dtype=dtype
            )
        return out


def segments(p: Packing, outer: tuple[int, ...]) -> Segments:
    """The segments that reducing the dims `outer` of a packing makes, found once."""
    s = p.memo.get(("segments", outer))
    if s is None:
        s = p.memo["segments", outer] = Segments(p, outer)
    return s


def dense(ufunc: Any, a: ndarray, axes: tuple[int, ...], identity: Any, dtype: Any = None) -> ndarray:
    """A ufunc reduction over negative axes of an array, kept as 1; sums and products as those of dense tensors."""
    if ufunc in (np.add, np.multiply) and a.dtype.kind not in "iub" and a.size:
        a = a if dtype is None else a.astype(dtype, copy=False)
        return adding.total(a, axes, True) if ufunc is np.add else adding.product(a, axes, True)
    extra = {} if identity is None else {"initial": identity}
    return ufunc.reduce(a, axis=axes, keepdims=True, dtype=dtype, **extra)


class Split:
    """Dims of components (counted from the end) as dims of packed rows, which segments reduce, and dims inside of a row."""

    def __init__(self, g: Geometry, dims: tuple[int, ...]) -> None:
        self.outer = tuple(sorted(d + g.k for d in dims if d + g.k < g.u))
        self.inner = tuple(sorted(d for d in dims if d + g.k >= g.u))
        self.axis = -len(g.trail) - 1
        self.segments = segments(g.packing, self.outer) if self.outer else None

    def reduce(self, ufunc: Any, rows: ndarray, identity: Any, dtype: Any = None) -> ndarray:
        """Rows reduced over the dims, which stay with size 1."""
        if self.inner:
            rows = dense(ufunc, rows, self.inner, identity, dtype)
        return rows if self.segments is None else self.segments.reduce(ufunc, rows, identity, self.axis, dtype)

    def count(self, g: Geometry) -> Any:
        """How many entries each reduced one stands for."""
        inner = math.prod(g.trail[d] for d in self.inner)
        return inner if self.segments is None else inner * self.segments.lengths.reshape((-1, *(1,) * len(g.trail)))

    def spread(self, rows: ndarray) -> ndarray:
        """Reduced rows repeated to where they came from (dims inside of rows broadcast)."""
        return rows if self.segments is None else self.segments.spread(rows, self.axis)


def reduced(x: NestedArray, rows: ndarray, dims: tuple[int, ...], keepdim: bool) -> Any:
    """Reduced rows as a nest, or as an ordinary array where no ragged dim is left."""
    g, k = x.geometry, x.geometry.k
    cols = tuple([1 if d - k in dims else c for d, c in enumerate(g.columns) if keepdim or d - k not in dims])
    return pack(rows, cols, g.n, x.lead)


def settled(x: NestedArray, dim: tuple[int, ...], what: str, several: bool = False) -> Any:
    """`x` before a step over the nesting dim: the ragged dims that stay must agree, and become uniform (or all is one array)."""
    g, k = x.geometry, x.geometry.k
    cols: list[Any] = []
    for d, c in enumerate(g.columns):
        if type(c) is RaggedInt and d - k not in dim:
            bad: Any = np.flatnonzero(c.values != c.values[:1]) if g.n else ()
            if len(bad):
                i, e = int(bad[0]), d + 1 + len(x.lead)
                raise ChainruleError(
                    f"{what} over the nesting dim needs components of equal sizes in the dims that stay, but in dimension {e} component 0 has "
                    f"size {c.values[0]} and component {i} has {c.values[i]} (shape {list(x.shape)}). "
                    + (
                        f"Reduce over it too, dim={tuple(sorted({*[v + x.ndim for v in dim], e}))}, or pad"
                        if several
                        else "Pad"
                    )
                    + " first: x.to_padded_tensor(value)"
                )
            c = int(c.values[0]) if g.n else 0
        cols.append(c)
    return pack(x.rows, tuple(cols), g.n, x.lead)


def over_components(x: NestedArray, dim: tuple[int, ...], keepdim: bool, f: Any, what: str) -> ndarray:
    """``f(array, axes)``, which keeps reduced axes with size 1, over the nesting dim and others: nothing ragged is left."""
    from .permute import permuted

    y, k = settled(x, dim, what, True), x.geometry.k
    full = tuple(1 if i - x.ndim in dim else s for i, s in enumerate(y.shape))
    if isinstance(y, NestedArray):
        # The ragged dims first, so that those that stay are axes of the rows.
        cols = y.geometry.columns
        order = sorted(range(k), key=lambda d: type(cols[d]) is not RaggedInt)
        y = y if order == list(range(k)) else permuted(y, order)
        t = len(y.geometry.trail)
        axes = {-t - 1, *[order.index(d + k) - k for d in dim if d >= -k and type(cols[d + k]) is not RaggedInt]}
        r = f(y.rows, tuple(sorted(axes | {d + k - t for d in dim if d < -k - 1})))
    else:
        r = f(y, dim)
    r = np.asarray(r).reshape([int(s) for s in full])
    return r if keepdim else r.reshape([s for i, s in enumerate(r.shape) if i - r.ndim not in dim])


def reduce_nested(
    ufunc: Any, x: NestedArray, dim: tuple[int, ...], keepdim: bool, identity: Any, what: str = "sum"
) -> Any:
    """A ufunc reduction over dims of the components, over the nesting dim and over axes in front of it where listed."""
    g, k = x.geometry, x.geometry.k
    d = x.dtype
    work = np.float32 if d in dt.HALVES else np.int64 if d.kind in "iub" and ufunc in (np.add, np.multiply) else None
    within = tuple(i for i in dim if i >= -k)
    above = tuple(i for i in dim if i < -k)
    if -(k + 1) in above:
        total = over_components(x, dim, keepdim, lambda a, axes: dense(ufunc, a, axes, identity, work), what)
        return total.astype(d, copy=False) if d in dt.HALVES else total
    y: Any = x
    if within:
        s = Split(g, within)
        y = reduced(x, s.reduce(ufunc, x.rows, identity, work), within, True)
    if above:
        if isinstance(y, NestedArray):
            y = NestedArray(dense(ufunc, y.rows, tuple(i + k + 1 + y.axis for i in above), identity, work), y.geometry)
        else:
            y = dense(ufunc, y, above, identity, work)
    y = y.astype(d) if d in dt.HALVES else y
    if keepdim or not dim:
        return y
    if isinstance(y, NestedArray):
        lead = tuple(m for i, m in enumerate(y.lead) if i - y.ndim not in above)
        return pack(y.rows, tuple(c for i, c in enumerate(y.geometry.columns) if i - k not in within), g.n, lead)
    return y.reshape(tuple(m for i, m in enumerate(y.shape) if i - y.ndim not in dim))


# -- lines: one ragged dim, padded in buckets --------------------------------------------------------------------------------


def buckets(lengths: ndarray, most: int = 12) -> list[ndarray]:
    """Numbers grouped by similar length, so that padding within a group wastes little: at most `most` groups."""
    if not len(lengths):
        return []
    order = np.argsort(lengths, kind="stable")
    cost = np.log2(lengths[order].astype(np.float64) + 1)
    edges = np.searchsorted(cost, np.linspace(cost[0], cost[-1], most + 1)[1:-1], side="right")
    return [part for part in np.split(order, np.unique(edges)) if len(part)]


def line_buckets(s: Segments) -> list[tuple[ndarray, ndarray, ndarray]]:
    """For buckets of segments: which segments, their rows as a padded matrix of numbers, and which of these are real."""
    found = getattr(s, "lines", None)
    if found is None:
        found = []
        for part in buckets(s.lengths):
            n = s.lengths[part]
            step = np.arange(int(n.max()))
            real = step < n[:, None]
            found.append((part, np.where(real, s.starts[part][:, None] + step, 0), real))
        s.lines = found  # type: ignore[attr-defined]
    return found


def along(xs: list[NestedArray], dim: int, f: Any, pads: tuple[Any, ...] = (0,), whole: bool = True) -> Any:
    """``f(*arrays, axis)`` along a dim of components of one geometry; entries after a component's end are `pads`.

    `f` gives an array or a tuple of arrays: of the same shape (entries after the end are dropped again), or with
    ``whole=False`` of size 1 along the dim.
    """
    x = xs[0]
    g, k = x.geometry, x.geometry.k
    if dim < -k:
        return _along_components(xs, dim, f, whole)
    if dim + k >= g.u:
        y = f(*[v.rows for v in xs], dim)
        ys = [
            pack(v, (*g.packing.columns, *v.shape[v.ndim - len(g.trail) :]), g.n, x.lead)
            for v in (y if isinstance(y, tuple) else (y,))
        ]
        return tuple(ys) if isinstance(y, tuple) else ys[0]
    s, axis = segments(g.packing, (dim + k,)), x.axis
    if not whole:
        need_entries(x, (dim,), getattr(f, "what", "this op"))
    front = [np.moveaxis(s.sorted(v.rows, axis), axis, 0) for v in xs]
    outs: list[ndarray] = []
    many = False
    lines = line_buckets(s) or [
        (np.zeros(0, np.int64), np.zeros((0, int(not whole)), np.int64), np.zeros((0, int(not whole)), bool))
    ]
    for part, at, real in lines:
        if not at.shape[1] and len(lines) > 1:
            continue
        blocks = []
        for v, pad in zip(front, pads, strict=True):
            a = v[at] if len(v) else np.zeros((*at.shape, *v.shape[1:]), v.dtype)
            a[~real] = pad
            blocks.append(a)
        y = f(*blocks, 1)
        many = isinstance(y, tuple)
        results = y if isinstance(y, tuple) else (y,)
        if not outs:
            outs = [np.zeros((len(front[0]) if whole else len(s.lengths), *v.shape[2:]), v.dtype) for v in results]
        for out, v in zip(outs, results, strict=True):
            if whole:
                out[at[real]] = v[real]
            else:
                out[part] = v[:, 0]
    back = [np.moveaxis(o, 0, axis) for o in outs]
    if whole:
        res = [NestedArray(np.ascontiguousarray(s.unsorted(o, axis)), g) for o in back]
    else:
        res = [reduced(x, o, (dim,), True) for o in back]
    return tuple(res) if many else res[0]


def _along_components(xs: list[NestedArray], dim: int, f: Any, whole: bool) -> Any:
    """``f`` along the nesting dim (or an axis in front of it) of components of equal sizes."""
    x = xs[0]
    inner = tuple(range(-x.geometry.k, 0)) if dim < -x.geometry.k - 1 else ()
    if inner:
        y = f(*[v.rows for v in xs], dim + x.geometry.u)
    else:
        y = f(*[settled(v, (dim,), getattr(f, "what", "this op")) for v in xs], dim)
    ys = y if isinstance(y, tuple) else (y,)
    if whole:
        ys = tuple([NestedArray(v.reshape((*x.lead, *x.geometry.rows)), x.geometry) for v in ys])
    elif inner:
        ys = tuple([NestedArray(v, x.geometry) for v in ys])
    return ys if isinstance(y, tuple) else ys[0]


def need_entries(x: NestedArray, dims: tuple[int, ...], what: str) -> None:
    """Raise unless every component has entries in each of the dims."""
    for d, size in enumerate(x.geometry.columns):
        if d - x.geometry.k in dims and not np.all(size.values if type(size) is RaggedInt else size):
            at = int(np.argmin(size.values)) if type(size) is RaggedInt else 0
            raise IndexError(
                f"{what}: component {at} has no entries in dimension {d + 1} to choose from (input of shape {list(x.shape)})"
            )
