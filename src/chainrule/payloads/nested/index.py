"""Nested bodies of indexing: rows by number, gather and scatter; every index becomes a place in the flat buffer."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.errors import ChainruleError
from ...ops.index.gather import check_range_p, gather_p, scatter_add_p, scatter_p, scatter_winners_p
from ...ops.index.rows import add_rows_p, last_writes_p, set_rows_p, take_rows_p, wrap_index_p
from ...ops.loss import classes as loss_class
from .array import NestedArray, flat, pack, pick
from .shape import spread as repeated
from .sizes import Geometry, Nest, RaggedInt, geometry_of, is_ragged

ndarray = np.ndarray
add: Any = add_rows_p.body


def _sizes(n: Any, like: Any, rank: int = 0) -> Any:
    """A ragged size as numbers beside an index: one for each packed row, or for each component; their axis is the first of the last `rank`."""
    if type(n) is not RaggedInt:
        return n
    if isinstance(like, NestedArray):
        return n.values[like.geometry.packing.owner].reshape((-1, *(1,) * len(like.geometry.trail)))
    if rank:
        at = like.ndim - rank
        return n.values[: like.shape[at]].reshape((-1, *(1,) * (rank - 1)))
    at = next((i for i, m in enumerate(like.shape) if m == len(n.values)), None)
    return (
        n.values.min(initial=np.iinfo(np.int64).max)
        if at is None
        else n.values.reshape((-1, *(1,) * (like.ndim - at - 1)))
    )


def places(x: NestedArray) -> ndarray:
    """The component and the place in it of each nonzero element, a row each."""
    owner, coords = x.geometry.elements()
    return np.stack([owner, *coords], 1)[flat(x) != 0]


@wrap_index_p.on(NestedArray)
def _(i: Any, *, n: Any, dim: int) -> Any:
    rows = i.rows if isinstance(i, NestedArray) else i
    size = _sizes(n, i)
    bad: Any = np.argwhere(np.broadcast_to((rows < -size) | (rows >= size), rows.shape)) if rows.size else ()
    if len(bad):
        at = bad[0][0] if not isinstance(i, NestedArray) else i.geometry.packing.owner[bad[0][i.axis]]
        raise IndexError(
            f"index {rows[tuple(bad[0])]} is out of bounds for dimension {dim} of component {at}, of size {n}"
        )
    if type(n) is RaggedInt and not isinstance(i, NestedArray) and np.ndim(size) == 0:
        return i  # the same index for all components: the end of each is its own
    rows = np.where(rows < 0, rows + size, rows)
    return NestedArray(rows, i.geometry) if isinstance(i, NestedArray) else rows


@check_range_p.on(NestedArray)
def _(i: Any, *, n: Any, name: str, dim: int, rank: int = 0) -> Any:
    rows = i.rows if isinstance(i, NestedArray) else i
    if rows.size and ((rows < 0) | (rows >= _sizes(n, i, rank))).any():
        raise RuntimeError(f"{name}(): an index is out of bounds for dimension {dim} with size {n}")
    return i


@loss_class.check_classes_p.on(NestedArray)
def _(t: Any, *, n: Any, ignore: int | None, name: str) -> Any:
    rows, size = t.rows if isinstance(t, NestedArray) else t, _sizes(n, t)
    bad = (rows < 0) | (rows >= size)
    bad = bad if ignore is None else bad & (rows != ignore)
    if bad.any():
        raise IndexError(f"{name}: Target {rows[bad].flat[0]} is out of bounds for {n} classes")
    return t


# -- rows -----------------------------------------------------------------------------------------------------------------


def _one(size: Any) -> bool:
    return type(size) is not RaggedInt and size == 1


class _Places:
    """Where taking rows reads: the sizes of the result, and for each of its blocks the place in the flat buffer of `g`.

    `g` are components ``[*front, n, *rest]``; the index has ``[*front, *mid]`` (fewer or repeated dims in front, aligned from
    the end), each component its own where it has an axis for them, and each example of other vmaps where it has axes (`lead`) for these.
    """

    def __init__(self, g: Geometry, i: Any, r: int, s: int) -> None:
        d = g.k - 1 - r
        cols = g.columns
        nested = isinstance(i, NestedArray)
        m = i.geometry.k - s if nested else min(i.ndim - s, d)
        sizes = i.geometry.columns if nested else i.shape[i.ndim - s - m :]
        self.lead: tuple[int, ...] = i.lead if nested else i.shape[: max(i.ndim - s - m - 1, 0)]
        front = list(cols[:d])
        for q in range(m):
            if _one(front[d - m + q]):
                front[d - m + q] = sizes[q]
        self.columns = (*front, *sizes[m:], *cols[d + 1 :])
        # Whole blocks of the uniform dims after the indexed one move together.
        tail = min(r, len(g.trail)) if d < g.u else r
        self.width = int(np.prod(g.trail[len(g.trail) - tail :]))
        self.count = g.packing.total * int(np.prod(g.trail[: len(g.trail) - tail]))  # such blocks in the buffer
        owner, coords = geometry_of(self.columns[: len(self.columns) - tail], g.n).elements()
        at = [np.zeros_like(c) if _one(n) else c for c, n in zip(coords[d - m : d], sizes, strict=False)]
        at += coords[d : d + s]
        if nested:
            value = flat(i, len(self.lead))[..., i.geometry.element_at(owner, at)]
        else:
            if i.ndim - s > m:
                at = [owner if i.shape[len(self.lead)] != 1 else np.zeros_like(owner), *at]
            value = np.broadcast_to(i[(..., *at)], (*self.lead, *owner.shape))
        size = cols[d].values[owner] if type(cols[d]) is RaggedInt else cols[d]
        bad = np.argwhere((value < -size) | (value >= size))
        if len(bad):
            q = bad[0][-1]
            raise IndexError(
                f"index {value[tuple(bad[0])]} is out of bounds for dimension {d + 1} of component {owner[q]}, of size "
                f"{size if np.ndim(size) == 0 else size[q]}"
            )
        value = np.where(value < 0, value + size, value)
        mine = [np.zeros_like(c) if _one(n) else c for c, n in zip(coords[:d], cols, strict=False)]
        self.place = geometry_of(cols[: g.k - tail], g.n).element_at(owner, [*mine, value, *coords[d + s :]])

    def spots(self, lead: tuple[int, ...]) -> Any:
        """The places as an index of blocks after leading axes."""
        if self.place.ndim == 1:
            return (..., self.place, slice(None))
        return (*_grid(lead), np.broadcast_to(self.place, (*lead, self.place.shape[-1])))


def _grid(lead: tuple[int, ...]) -> list[ndarray]:
    """An index for each leading axis, to stand beside one more axis."""
    return [np.arange(m).reshape((-1, *(1,) * (len(lead) - j))) for j, m in enumerate(lead)]


def _equal_sized(x: ndarray, i: NestedArray, r: int, s: int) -> NestedArray:
    """Dense rows ``[*lead, n components or none, *front, n, *rest]`` as a nest of equal components beside a nested index."""
    m, n = i.geometry.k - s, i.geometry.n
    have = x.ndim - r - 1
    inner = (1,) * (m - have) + x.shape[max(have - m, 0) :]
    lead = x.shape[: max(have - m - 1, 0)]
    g = geometry_of(inner, n)
    x = x.reshape((*lead, x.shape[have - m - 1] if have > m else 1, *inner))
    return NestedArray(np.broadcast_to(x, (*lead, n, *inner)), g)


@take_rows_p.on(NestedArray)
def _(x: Any, i: Any, *, r: int, s: int, n: Any) -> Any:
    if not isinstance(x, NestedArray):
        g = i.geometry
        if x.ndim == r + 1 or i.ndim == s:  # one table for all components
            y = np.take(x, i.rows, axis=x.ndim - r - 1)
            return pack(y, (*g.columns, *x.shape[x.ndim - r :]), g.n, (*x.shape[: x.ndim - r - 1], *i.lead))
        x = _equal_sized(x, i, r, s)
    g = x.geometry
    if r > g.k:
        return NestedArray(np.take(x.rows, i, axis=x.axis - (r - g.k)), g)
    if r == g.k:
        if isinstance(i, NestedArray) or s != 1:
            raise ChainruleError(
                "indexing the nesting dim of a nested tensor takes a one-dimensional index, which lists components"
            )
        i = i.reshape(-1)
        return pick(x, np.where(i < 0, i + g.n, i))
    p = _Places(g, i, r, s)
    lead = np.broadcast_shapes(x.lead, p.lead)
    blocks = flat(x, len(x.lead)).reshape((*x.lead, p.count, p.width))
    if p.lead:
        return pack(np.broadcast_to(blocks, (*lead, *blocks.shape[-2:]))[p.spots(lead)], p.columns, g.n, lead)
    return pack(blocks.take(p.place, axis=-2), p.columns, g.n, lead)


@add_rows_p.on(NestedArray)
def _(c: Any, i: Any, *, n: Any, r: int, s: int) -> Any:
    rest = tuple(c.shape[c.ndim - r :])
    if isinstance(i, NestedArray) and i.ndim == s:  # all components add to one table
        at, lead = i.rows.reshape(-1), c.lead
        width = tuple(int(m) for m in rest)
        return add(c.rows.reshape((*lead, len(at), *width)), at, n=n, r=len(width), s=1)
    if type(n) is Nest and n.columns is not None and isinstance(c, NestedArray) and r == c.geometry.k:
        return _add_components(c, i, n)
    if isinstance(c, NestedArray) and r > c.geometry.k:
        axis = c.axis - (r - c.geometry.k) - s + 1
        return NestedArray(add(c.rows, i, n=int(n), r=-axis - s, s=s), c.geometry)
    count = next((len(v.values) for v in (n, *rest) if type(v) is RaggedInt), None)
    if count is None:
        count = (c if isinstance(c, NestedArray) else i).geometry.n
    if isinstance(c, NestedArray):
        lead, front = c.lead, c.geometry.columns[: c.geometry.k - r - s]
    else:
        mid = c.ndim - r - s  # axes in front: leading ones, the components, dims of the components
        ahead: int = max((v.at for v in (n, *rest) if type(v) is RaggedInt), default=0)
        m = i.geometry.k - s if isinstance(i, NestedArray) else max(mid, i.ndim - s) - ahead - 1
        lead, front = tuple(c.shape[: max(mid - m - 1, 0)]), tuple(c.shape[max(mid - m, 0) : mid])
    if isinstance(i, NestedArray):
        own = i.geometry.columns[: i.geometry.k - s]
        front = (*own[: len(own) - len(front)], *front)
        front = tuple(b if _one(a) else a for a, b in zip(front, (*(1,) * (len(front) - len(own)), *own), strict=True))
    g = geometry_of((*front, n, *rest), count)
    p = _Places(g, i, r, s)
    lead = np.broadcast_shapes(lead, p.lead)
    c = spread(c, lead, count, p.columns)
    values = flat(c, len(lead)).reshape((*lead, p.place.shape[-1], p.width))
    return pack(add(values, p.place, n=p.count, r=1, s=1), g.columns, count, lead)


def spread(v: Any, lead: tuple[int, ...], n: int, columns: tuple[Any, ...]) -> Any:
    """An operand repeated to components of sizes `columns`, after leading axes."""
    if is_ragged(columns):
        return repeated(v, lead, geometry_of(columns, n))
    if not n:
        return np.zeros((*lead, 0, *columns), v.dtype)
    if isinstance(v, NestedArray):  # ragged dims of sizes that happen to be equal
        v = v.rows.reshape((*v.lead, n, *[int(c.most) if type(c) is RaggedInt else c for c in v.geometry.columns]))
    return np.broadcast_to(v, (*lead, n, *columns))


def _add_components(c: NestedArray, i: ndarray, n: Any) -> NestedArray:
    """Zeros with components added at the components that they were picked from."""
    g = geometry_of(n.columns, int(n))
    i = i.reshape(-1)
    members = np.where(i < 0, i + g.n, i)
    return NestedArray(add(c.rows, g.packing.rows_of(members), n=g.packing.total, r=len(g.trail), s=1), g)


@set_rows_p.on(NestedArray)
def _(x: Any, i: Any, v: Any, *, r: int, s: int) -> Any:
    nests = [a for a in (x, i, v) if isinstance(a, NestedArray)]
    n = nests[0].geometry.n
    if isinstance(x, NestedArray) and isinstance(v, NestedArray) and r > x.geometry.k and v.geometry.same(x.geometry):
        return NestedArray(set_rows_p.body(x.rows, i, v.rows, r=r - x.geometry.u, s=s), x.geometry)
    if isinstance(x, NestedArray) and r >= x.geometry.k:
        raise ChainruleError(
            f"writing along the nesting dim of a nested tensor (shape {list(x.shape)}) is possible with x[i] = component, "
            "or by cat() of parts"
        )
    if isinstance(x, NestedArray):
        g, lead = x.geometry, x.lead
    else:  # rows of one size in all components, at places that differ in number
        g = geometry_of(tuple(x.shape[x.ndim - r - 1 :]), n)
        lead = tuple(x.shape[: max(x.ndim - r - 2, 0)])
    p = _Places(g, i, r, s)
    vl = v.lead if isinstance(v, NestedArray) else v.shape[: max(v.ndim - len(p.columns) - 1, 0)]
    values = spread(v, vl, n, p.columns)
    lead = np.broadcast_shapes(lead, vl, p.lead)
    old = (
        flat(x, len(x.lead))
        if isinstance(x, NestedArray)
        else np.broadcast_to(x, (*lead, n, *g.columns)).reshape((*lead, -1))
    )
    out = np.array(np.broadcast_to(old, (*lead, old.shape[-1]))).reshape((*lead, p.count, p.width))
    out[p.spots(lead)] = flat(values, len(vl)).reshape((*vl, p.place.shape[-1], p.width))
    if isinstance(x, NestedArray):
        return NestedArray(out.reshape((*lead, *g.rows)), g)
    return out.reshape((*lead, n, *g.columns))


@last_writes_p.on(NestedArray)
def _(i: NestedArray, *, s: int) -> NestedArray:
    # Every index notes its place; of repeated ones of a component (in the dims in front of its own, of an entry) the last note stays.
    g = i.geometry
    if g.u <= g.k - s:
        return NestedArray(last_writes_p.body(i.rows, s=s), g)
    at = flat(i, len(i.lead))
    top = int(at.max(initial=0)) + 1
    group, count = np.repeat(g.packing.owner, g.width), g.n
    if g.k > s:
        owner, coords = g.elements()
        kinds, group = np.unique(np.stack([owner, *coords[: g.k - s]]), axis=1, return_inverse=True)
        group, count = group.reshape(-1), kinds.shape[1]
    at = at + group * top
    order = np.broadcast_to(np.arange(at.shape[-1]), at.shape)
    note = np.empty((*i.lead, count * top), np.int64)
    np.put_along_axis(note, at, order, -1)
    return NestedArray((np.take_along_axis(note, at, -1) == order).reshape(i.rows.shape), g)


# -- gather and scatter -----------------------------------------------------------------------------------------------------


def _spots(g: Geometry, i: Any, dim: int) -> tuple[ndarray, int]:
    """For each element of an index, the place in the flat buffer that it means along `dim`, and the leading axes of the index."""
    if isinstance(i, NestedArray):
        h, front = i.geometry, len(i.lead)
    else:
        front = i.ndim - g.k - 1
        h = geometry_of(i.shape[front + 1 :], i.shape[front])
    owner, coords = h.elements()
    if dim + g.k < 0:  # entries of other components
        return g.element_at(flat(i, front), coords), front
    coords[dim + g.k] = flat(i, front)
    return g.element_at(owner, coords), front


@gather_p.on(NestedArray)
def _(x: Any, i: Any, *, dim: int, old: Any) -> Any:
    x = _nested(x, i)
    place, front = _spots(x.geometry, i, dim)
    values = flat(x, len(x.lead))
    y = (
        values.take(place, axis=-1)
        if not front
        else np.take_along_axis(np.broadcast_to(values, (*place.shape[:-1], values.shape[-1])), place, -1)
    )
    if isinstance(i, NestedArray):
        return NestedArray(y.reshape((*y.shape[:-1], *i.geometry.rows)), i.geometry)
    return y.reshape((*y.shape[:-1], *i.shape[front:]))


def _nested(x: Any, i: Any) -> NestedArray:
    """A dense operand as a nest whose components happen to have equal sizes."""
    if isinstance(x, NestedArray):
        return x
    k = i.geometry.k
    g = geometry_of(x.shape[x.ndim - k :], i.geometry.n)
    return NestedArray(np.broadcast_to(x, (*x.shape[: max(x.ndim - k - 1, 0)], g.n, *x.shape[x.ndim - k :])), g)


def _scatter(p: Any, adds: bool) -> None:
    @p.on(NestedArray)
    def _(x: Any, i: Any, src: Any, *, dim: int, ss: Any) -> Any:
        dense = not isinstance(x, NestedArray)
        x = _nested(x, i)
        place, _front = _spots(x.geometry, i, dim)
        if tuple(src.shape[-x.geometry.k :]) != tuple(i.shape[-x.geometry.k :]):
            raise ChainruleError(
                f"{p.name}: on nested tensors src must have the sizes of index, got {list(src.shape)} and {list(i.shape)}"
            )
        out = flat(x, len(x.lead))
        values = flat(src, src.ndim - x.geometry.k - 1)
        lead = np.broadcast_shapes(out.shape[:-1], place.shape[:-1], values.shape[:-1])
        if adds:
            wide = values.astype(dt.WORK.get(values.dtype, values.dtype))
            out = np.broadcast_to(out, (*lead, out.shape[-1])) + add(
                np.broadcast_to(wide, (*lead, wide.shape[-1])), place, n=out.shape[-1], r=0, s=1
            )
        else:
            out = np.array(np.broadcast_to(out, (*lead, out.shape[-1])))
            out[(*_grid(lead), np.broadcast_to(place, (*lead, place.shape[-1])))] = values
        out = out.astype(x.dtype, copy=False)
        g = x.geometry
        return (
            out.reshape((*lead, *((g.n, *g.columns) if dense else g.rows)))
            if dense
            else NestedArray(out.reshape((*lead, *g.rows)), g)
        )


_scatter(scatter_add_p, True)
_scatter(scatter_p, False)


@scatter_winners_p.on(NestedArray)
def _(i: Any, *, dim: int, old: Any) -> Any:
    g = geometry_of(
        tuple(old[len(old) - i.geometry.k :])
        if isinstance(i, NestedArray)
        else tuple(s for s in old if not isinstance(s, bool))[-len(i.shape) + 1 :],
        i.geometry.n if isinstance(i, NestedArray) else i.shape[0],
    )
    place, _front = _spots(g, i, dim)
    last = np.full((*place.shape[:-1], g.packing.total * g.width), -1, np.int64)
    number = np.broadcast_to(np.arange(place.shape[-1]), place.shape)
    np.put_along_axis(last, place, number, -1)
    won = np.take_along_axis(last, place, -1) == number
    return (
        NestedArray(won.reshape((*place.shape[:-1], *i.geometry.rows)), i.geometry)
        if isinstance(i, NestedArray)
        else won.reshape(i.shape)
    )
