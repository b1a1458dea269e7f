"""Nested bodies of reductions, normalising exponentials, scans and orders: segments of rows, or lines padded in buckets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...ops.index import sort
from ...ops.linalg import norms
from ...ops.reduce import counts as aggregate
from ...ops.reduce import extrema, scan
from ...ops.reduce import reductions as reduce
from .array import NestedArray, pack, spread_rows
from .segments import Split, along, need_entries, over_components, reduce_nested, reduced, segments
from .sizes import Geometry, RaggedInt

ndarray = np.ndarray


def _wide(x: NestedArray) -> ndarray:
    return x.rows.astype(np.float32) if x.dtype in dt.HALVES else x.rows


# -- sums, products, extrema, truth -------------------------------------------------------------------------------------

reduce.sum_p.on(NestedArray)(lambda x, *, dim, keepdim, old: reduce_nested(np.add, x, dim, keepdim, 0, "sum"))
reduce.prod_p.on(NestedArray)(lambda x, *, dim, keepdim, old: reduce_nested(np.multiply, x, (dim,), keepdim, 1, "prod"))
aggregate.all_p.on(NestedArray)(lambda x, *, dim, keepdim: reduce_nested(np.logical_and, x, dim, keepdim, True, "all"))
aggregate.any_p.on(NestedArray)(lambda x, *, dim, keepdim: reduce_nested(np.logical_or, x, dim, keepdim, False, "any"))


def _limit(d: np.dtype, low: bool) -> Any:
    if d.kind in "iu":
        return np.iinfo(d).min if low else np.iinfo(d).max
    return not low if d.kind == "b" else -np.inf if low else np.inf


def _extremum(p: Any, ufunc: Any, low: bool) -> None:
    @p.on(NestedArray)
    def _(x: NestedArray, *, dim: tuple[int, ...], keepdim: bool, old: Any) -> Any:
        if -(x.geometry.k + 1) not in dim:
            need_entries(x, dim, p.name)
        return reduce_nested(ufunc, x, dim, keepdim, _limit(x.dtype, low), p.name)


_extremum(extrema.amax_p, np.maximum, True)
_extremum(extrema.amin_p, np.minimum, False)

# -- moments and norms ----------------------------------------------------------------------------------------------------


def _above(x: NestedArray, dim: tuple[int, ...]) -> bool:
    """Whether dims reach beyond the components."""
    return any(d < -x.geometry.k for d in dim)


@reduce.var_p.on(NestedArray)
def _(x: NestedArray, *, dim: tuple[int, ...], dof: Any, whole: bool, keepdim: bool, old: Any) -> Any:
    if _above(x, dim):
        run = lambda a, axes: reduce.var_p.body(a, dim=axes, dof=dof, whole=whole, keepdim=True, old=a.shape)
        return over_components(x, dim, keepdim, run, "var")
    s, d = Split(x.geometry, dim), x.dtype
    rows = x.rows.astype(np.complex128 if d.kind == "c" else np.float64)  # rounded once, in the end
    with np.errstate(divide="ignore", invalid="ignore"):
        c = s.reduce(np.add, rows, 0)
        c /= s.count(x.geometry)
        c = np.subtract(rows, s.spread(c), out=rows)
        c2 = np.square(c, out=c) if d.kind != "c" else np.square(c.real) + np.square(c.imag)
        y = reduced(x, s.reduce(np.add, c2, 0), dim, True)
        y = _over(y, np.maximum(dof.values if type(dof) is RaggedInt else dof, 0.0), len(x.lead))
        y = y.astype(np.finfo(d).dtype if d.kind == "c" else d, copy=False)
    return y if keepdim else _drop(y, dim)


@reduce.std_p.on(NestedArray)
def _(x: NestedArray, **kw: Any) -> Any:
    y = reduce.var_p.bodies[NestedArray](x, **kw)
    with np.errstate(invalid="ignore"):
        return NestedArray(np.sqrt(y.rows), y.geometry) if isinstance(y, NestedArray) else np.sqrt(y)


def _over(y: Any, divisor: Any, at: int) -> Any:
    """A (possibly nested) result over one number, or over one for each component; `at` is the axis of the components."""
    if not np.ndim(divisor):
        return (
            NestedArray(y.rows / y.dtype.type(divisor), y.geometry)
            if isinstance(y, NestedArray)
            else y / y.dtype.type(divisor)
        )
    divisor = divisor.astype(y.dtype)
    if isinstance(y, NestedArray):
        each = divisor[y.geometry.packing.owner]
        return NestedArray(y.rows / each.reshape((-1, *(1,) * len(y.geometry.trail))), y.geometry)
    return y / divisor.reshape((-1, *(1,) * (y.ndim - at - 1)))


def _drop(y: Any, dim: tuple[int, ...]) -> Any:
    """The reduced dims of size 1 dropped."""
    if isinstance(y, NestedArray):
        k = y.geometry.k
        return pack(
            y.rows, tuple(c for d, c in enumerate(y.geometry.columns) if d - k not in dim), y.geometry.n, y.lead
        )
    return y.reshape(tuple(m for i, m in enumerate(y.shape) if i - y.ndim not in dim))


@norms.vector_norm_p.on(NestedArray)
def _(x: NestedArray, *, ord: float, dim: tuple[int, ...], keepdim: bool, old: Any) -> Any:
    if _above(x, dim):
        run = lambda a, axes: norms.vector_norm_p.body(a, ord=ord, dim=axes, keepdim=True, old=a.shape)
        return over_components(x, dim, keepdim, run, "norm")
    s, a = Split(x.geometry, dim), np.abs(_wide(x))
    with np.errstate(all="ignore"):
        if ord == 0:
            y = s.reduce(np.add, (a != 0).astype(a.dtype), 0)
        elif math.isinf(ord):
            if ord < 0 or s.segments is None:
                need_entries(x, dim, "norm")
            y = s.reduce(np.maximum, a, 0) if ord > 0 else s.reduce(np.minimum, a, np.inf)
        else:
            # Scaled by the largest (or smallest) entry: powers neither over- nor underflow.
            m = s.reduce(np.maximum, a, 0) if ord > 0 else s.reduce(np.minimum, a, np.inf)
            m = np.where((m > 0) & np.isfinite(m), m, 1).astype(a.dtype)
            b = a / s.spread(m)
            y = s.reduce(np.add, b if ord == 1 else np.square(b) if ord == 2 else np.power(b, ord), 0)
            y = m * (y if ord == 1 else np.sqrt(y) if ord == 2 else np.power(y, 1 / ord))
    return reduced(x, y.astype(x.rows.real.dtype, copy=False), dim, keepdim)


def _called(name: str, p: Any, **kw: Any) -> Any:
    """The dense body of an op along one axis, with the name for its errors."""

    def f(*xs: Any) -> Any:
        return p.body(*xs[:-1], dim=xs[-1], **kw)

    f.what = name  # type: ignore[attr-defined]
    return f


# -- softmax and its relatives --------------------------------------------------------------------------------------------


def _shifted(x: NestedArray, dim: tuple[int, ...]) -> tuple[Split, ndarray, ndarray]:
    """The split, the rows less the maximum of their group, and the maxima."""
    s, rows = Split(x.geometry, dim), _wide(x)
    top = s.reduce(np.maximum, rows.real if rows.dtype.kind == "c" else rows, -np.inf)
    top = np.where(np.isfinite(top), top, 0).astype(top.dtype, copy=False)
    return s, rows - s.spread(top), top


@reduce.logsumexp_p.on(NestedArray)
def _(x: NestedArray, *, dim: tuple[int, ...], keepdim: bool, old: Any) -> Any:
    if _above(x, dim):
        run = lambda a, axes: reduce.logsumexp_p.body(a, dim=axes, keepdim=True, old=a.shape)
        return over_components(x, dim, keepdim, run, "logsumexp")
    s, z, top = _shifted(x, dim)
    with np.errstate(divide="ignore"):
        y = np.log(s.reduce(np.add, np.exp(z, out=z), 0)) + top
    return reduced(x, y.astype(x.dtype, copy=False), dim, keepdim)


def _compiled(what: str, g: Geometry, dim: int, *rows: ndarray) -> ndarray | None:
    """A compiled loop over the segments of a ragged last dim, where there is one for the arrays."""
    if g.trail or dim != -1 or rows[0].ndim != 1 or rows[0].size < 1 << 13:
        return None
    from . import kernels as nested_kernels

    s = segments(g.packing, (g.u - 1,))
    try:
        return nested_kernels.run(what, s.bounds, *rows)
    except nested_kernels.NotSupported:
        return None


@reduce.softmax_p.on(NestedArray)
def _(x: NestedArray, *, dim: int) -> Any:
    if dim < -x.geometry.k:
        return along([x], dim, _called("softmax", reduce.softmax_p))
    if dim + x.geometry.k >= x.geometry.u:
        return NestedArray(reduce.softmax_p.body(x.rows, dim=dim), x.geometry)
    y = _compiled("softmax", x.geometry, dim, x.rows)
    if y is not None:
        return NestedArray(y, x.geometry)
    s, z, _ = _shifted(x, (dim,))
    e = np.exp(z, out=z)
    e /= s.spread(s.reduce(np.add, e, 0))
    return NestedArray(e.astype(x.dtype, copy=False), x.geometry)


@reduce.softmax_pull_p.on(NestedArray)
def _(t: Any, y: Any, *, dim: int) -> Any:
    g = (y if isinstance(y, NestedArray) else t).geometry
    if (
        isinstance(t, NestedArray)
        and isinstance(y, NestedArray)
        and t.geometry.same(g)
        and t.rows.shape == y.rows.shape
    ):
        a, b = t.rows, y.rows
    else:
        a, b = (
            np.ascontiguousarray(np.broadcast_to(r, (*r.shape[: r.ndim - len(g.rows)], *g.rows)))
            for r in (spread_rows(v, g) for v in (t, y))
        )
    if dim < -g.k:
        return along([NestedArray(a, g), NestedArray(b, g)], dim, _called("softmax", reduce.softmax_pull_p))
    if dim + g.k >= g.u:
        return NestedArray(reduce.softmax_pull_p.body(a, b, dim=dim), g)
    y = _compiled("pull", g, dim, a, b)
    if y is not None:
        return NestedArray(y, g)
    d, s = b.dtype, Split(g, (dim,))
    a, b = (v.astype(np.float32) if d in dt.HALVES else v for v in (a, b))
    z = a * b
    return NestedArray((z - b * s.spread(s.reduce(np.add, z, 0))).astype(d, copy=False), g)


@reduce.log_softmax_p.on(NestedArray)
def _(x: NestedArray, *, dim: int) -> Any:
    if dim < -x.geometry.k:
        return along([x], dim, _called("log_softmax", reduce.log_softmax_p))
    if dim + x.geometry.k >= x.geometry.u:
        return NestedArray(reduce.log_softmax_p.body(x.rows, dim=dim), x.geometry)
    s, z, _ = _shifted(x, (dim,))
    return NestedArray((z - s.spread(np.log(s.reduce(np.add, np.exp(z), 0)))).astype(x.dtype, copy=False), x.geometry)


# -- scans and orders -----------------------------------------------------------------------------------------------------

for _p, _pad in ((scan.cumsum_p, 0), (scan.cumprod_p, 1), (scan.logcumsumexp_p, 0)):
    _p.on(NestedArray)(lambda x, *, dim, _p=_p, _pad=_pad, **kw: along([x], dim, _called(_p.name, _p, **kw), (_pad,)))


@scan.shift_p.on(NestedArray)
def _(x: NestedArray, *, dim: int, first: float) -> Any:
    g = x.geometry
    if dim < -g.k:
        return along([x], dim, lambda a, axis: scan.shift_p.body(a, dim=axis, first=first))
    if dim + g.k >= g.u:
        return NestedArray(scan.shift_p.body(x.rows, dim=dim, first=first), g)
    p, d = g.packing, dim + g.k
    coords = [np.maximum(c - 1, 0) if i == d else c for i, c in enumerate(p.coordinates)]
    rows = x.rows.take(p.row_of(p.owner, coords), axis=x.axis)
    rows[(..., p.coordinates[d] == 0, *(slice(None),) * len(g.trail))] = first
    return NestedArray(rows, g)


@scan.linear_scan_p.on(NestedArray)
def _(a: Any, b: Any, *, dim: int, back: bool = False) -> Any:
    g = (a if isinstance(a, NestedArray) else b).geometry
    a, b = (
        v
        if isinstance(v, NestedArray) and v.geometry.same(g)
        else NestedArray(np.ascontiguousarray(np.broadcast_to(spread_rows(v, g), g.rows)), g)
        for v in (a, b)
    )
    return along([a, b], dim, lambda u, v, axis: scan.linear_scan_p.body(u, v, dim=axis, back=back), (0, 0))


def _index_along(p: Any, name: str, low: bool, whole: bool) -> None:
    @p.on(NestedArray)
    def _(x: NestedArray, *, dim: int) -> Any:
        return along([x], dim, _called(name, p), (_limit(x.dtype, low),), whole)


_index_along(extrema.argmax_p, "argmax", True, False)
_index_along(extrema.argmin_p, "argmin", False, False)


@sort.sort_p.on(NestedArray)
def _(x: NestedArray, *, dim: int, descending: bool, old: Any) -> Any:
    # Entries after the end must come last; equal ones keep their order, so the end follows what equals it.
    d = x.dtype
    pad = _limit(d, True) if descending else np.nan if d.kind == "f" or d in dt.HALVES else _limit(d, False)

    def f(a: ndarray, axis: int) -> Any:
        return sort.sort_p.body(a, dim=axis, descending=descending, old=None)

    f.what = "sort"  # type: ignore[attr-defined]
    return along([x], dim, f, (pad,))
