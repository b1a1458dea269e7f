"""Bodies of the structural primitives on nested tensors: shapes, slices, joins, reductions, scans, products, indexing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.errors import ChainruleError
from ..ops import convert, index, matmul, pointwise, reduce, scan, shape
from .nested import (
    NestedArray,
    _element_view,
    _segments,
    buckets,
    join,
    nest_of,
    pack,
    padded,
    pick,
    pointwise_nested,
    reduce_nested,
    reduced,
    spread_rows,
)
from .ragged import Geometry, RaggedInt, geometry_of, is_ragged

ndarray = np.ndarray

# -- the same value ---------------------------------------------------------------------------------------------------

convert.detach_p.on(NestedArray)(lambda x: x)
convert.clone_p.on(NestedArray)(lambda x, order="K": x.copy())
pointwise.where_p.on(NestedArray)(lambda c, a, b: pointwise_nested(np.where, [c, a, b], "where"))

# -- shape ------------------------------------------------------------------------------------------------------------


def _full(x: Any, new: tuple[Any, ...], old: int) -> tuple[Any, ...]:
    """A new shape for the last `old` axes as the shape of the whole."""
    return tuple(x.shape[: x.ndim - old]) + tuple(new)


def _flat(x: Any) -> ndarray:
    return (x.rows if isinstance(x, NestedArray) else x).reshape(-1)


@shape.reshape_p.on(NestedArray)
def _(x: Any, *, shape: tuple[Any, ...], old: tuple[Any, ...]) -> Any:
    full = _full(x, shape, len(old))
    flat = _flat(x)
    if not is_ragged(full):
        return flat.reshape(full)
    if type(full[0]) is RaggedInt:
        # The nesting dim was merged with what follows: all packed rows, as an ordinary array.
        return flat.reshape((-1, *full[1:]))
    n = full[0]
    g = geometry_of(full[1:], n)
    if isinstance(x, NestedArray):
        have = x.geometry.sizes.prod(1)
        bad = np.flatnonzero(have != g.sizes.prod(1)) if x.geometry.n == n else np.zeros(1, np.int64)
        if len(bad):
            raise ChainruleError(f"reshape: component {bad[0]} of shape {x.geometry.sizes[bad[0]].tolist()} does not fit into {g.sizes[bad[0]].tolist()}")
    return NestedArray(flat.reshape((g.total, *g.trail)), g)


@shape.permute_p.on(NestedArray)
def _(x: NestedArray, *, dims: tuple[int, ...]) -> Any:
    g, m = x.geometry, len(dims)
    if m == g.k + 1:
        if dims[0] != -m:
            raise ChainruleError("permute: the nesting dim of a nested tensor must stay the first; use unbind() or to_padded_tensor()")
        dims = dims[1:]
    perm = [*range(g.k - len(dims)), *[d + g.k for d in dims]]
    if perm == list(range(g.k)):
        return x
    u = g.ragged_until
    cols = tuple(g.columns[p] for p in perm)
    if perm[:u] == list(range(u)):
        axes = (0, *[p - u + 1 for p in perm[u:]])
        return NestedArray(np.ascontiguousarray(x.rows.transpose(axes)), geometry_of(cols, g.n))
    return NestedArray(*_permuted(x, cols, perm))


def _permuted(x: NestedArray, cols: tuple[Any, ...], perm: list[int]) -> tuple[ndarray, Geometry]:
    """Elements gathered in the order of permuted dims; the order is found once for a geometry."""
    g = x.geometry
    key = ("permute", *perm)
    found = g.__dict__.setdefault("_orders", {}).get(key)
    if found is None:
        h = geometry_of(cols, g.n)
        # Whole blocks of dims that stay last move together.
        still = 0
        while still < len(g.trail) and still < len(h.trail) and perm[g.k - 1 - still] == g.k - 1 - still:
            still += 1
        width = int(np.prod(g.trail[len(g.trail) - still :]))
        hh = geometry_of(cols[: g.k - still], g.n)
        owner, coords = _element_view(hh)
        source = np.zeros(len(owner), np.int64)
        back = {p: i for i, p in enumerate(perm)}
        for d in range(g.k - still):
            source = source * g.sizes[owner, d] + coords[back[d]]
        starts = g.offsets[:-1] * (int(np.prod(g.trail)) // max(width, 1))
        found = g.__dict__["_orders"][key] = (starts[owner] + source, width, h)
    order, width, h = found
    return x.rows.reshape(-1, width)[order].reshape((h.total, *h.trail)), h


@shape.expand_p.on(NestedArray)
def _(x: Any, *, shape: tuple[Any, ...], old: tuple[Any, ...]) -> Any:
    full = _full(x, shape, len(old))
    return _broadcast(x, full)


def _broadcast(x: Any, full: tuple[Any, ...]) -> Any:
    if not is_ragged(full):
        return np.broadcast_to(x, full)
    g = geometry_of(full[1:], nest_of(full))
    rows = spread_rows(x, g, "expand")
    want = (g.total, *g.trail)
    return NestedArray(np.ascontiguousarray(np.broadcast_to(rows, want)) if np.shape(rows) != want else rows, g)


@reduce.unsum_p.on(NestedArray)
def _(g: Any, *, dim: tuple[int, ...], keepdim: bool, old: tuple[Any, ...]) -> Any:
    lead = tuple(g.shape[: g.ndim - (len(old) if keepdim else len(old) - len(dim))])
    if not keepdim:
        ones = lead + reduce.kept(old, dim)
        g = pack(_flat(g), ones[1:], ones[0]) if isinstance(g, NestedArray) else g.reshape(ones)
    return _broadcast(g, lead + old)


# -- slices -----------------------------------------------------------------------------------------------------------


class _Slice:
    """Where a basic index reads: for every packed row of the result, its row in the source."""

    def __init__(self, g: Geometry, key: tuple[Any, ...]) -> None:
        u = g.ragged_until
        self.inner = tuple(key[u:])
        start = np.zeros((g.n, u), np.int64)
        step = np.ones(u, np.int64)
        cols: list[Any] = []
        self.kept: list[int] = []
        for d, k in enumerate(key[:u]):
            size = g.sizes[:, d]
            if not isinstance(k, slice):
                at = k.values if isinstance(k, RaggedInt) else np.full(g.n, int(k))
                at = np.where(at < 0, at + size, at)
                bad = np.flatnonzero((at < 0) | (at >= size))
                if len(bad):
                    raise IndexError(f"index {k} is out of bounds for dimension {d + 1} of component {bad[0]}, which has size {size[bad[0]]}")
                start[:, d] = at
                continue
            a, b, s = _bound(k.start, size, 0), _bound(k.stop, size, size), 1 if k.step is None else int(k.step)
            start[:, d], step[d] = a, s
            length = np.maximum(-(-(b - a) // s), 0)
            cols.append(RaggedInt(length) if type(g.columns[d]) is RaggedInt or (length != length[:1]).any() else int(length[0]) if g.n else 0)
            self.kept.append(d)
        sizes = [len(range(*k.indices(m))) for k, m in zip(self.inner, g.trail, strict=True) if isinstance(k, slice)]
        self.columns = (*cols, *sizes)
        rows = geometry_of(tuple(cols), g.n)
        owner, coords = (rows.owner, rows.coordinates) if rows.ragged_until == rows.k else _element_view(rows)
        place = [start[owner, d] for d in range(u)]
        for d, c in zip(self.kept, coords, strict=True):
            place[d] = place[d] + step[d] * c
        self.source = g.row_of(owner, place)


def _bound(v: Any, size: ndarray, default: Any) -> ndarray:
    if v is None:
        return np.broadcast_to(np.asarray(default), size.shape)
    a = v.values if isinstance(v, RaggedInt) else np.full(size.shape, int(v))
    return np.clip(np.where(a < 0, a + size, a), 0, size)


def _component_key(g: Geometry, key: tuple[Any, ...]) -> tuple[Any, ...]:
    return (slice(None),) * (g.k - len(key)) + tuple(key)


@shape.slice_p.on(NestedArray)
def _(x: NestedArray, *, key: tuple[Any, ...], old: tuple[Any, ...]) -> Any:
    g = x.geometry
    if len(key) == g.k + 1:
        first, key = key[0], key[1:]
        if not isinstance(first, slice):
            one = x.components()[int(first)]
            return one[tuple(key)]
        if first != slice(None):
            x = pick(x, np.arange(g.n)[first])
            g = x.geometry
    key = _component_key(g, key)
    if all(isinstance(k, slice) and k == slice(None) for k in key):
        return x
    s = _Slice(g, key)
    return pack(x.rows[s.source][(slice(None), *s.inner)], s.columns, g.n)


@shape.unslice_p.on(NestedArray)
def _(c: Any, *, key: tuple[Any, ...], old: tuple[Any, ...]) -> Any:
    if len(key) == len(old) and not is_ragged(old[:1]) and type(old[0]) is int and len(old) > 1 and nest_of(old) == old[0] and _top(c, key, old):
        g = geometry_of(old[1:], old[0])
        out = np.zeros((g.total, *g.trail), c.dtype)
        first, rest = key[0], key[1:]
        members = np.arange(g.n)[first] if isinstance(first, slice) else np.arange(g.n)[[int(first)]]
        sub = g.take(members)
        at = np.repeat(g.offsets[:-1][members] - np.concatenate([[0], np.cumsum(g.counts[members])])[:-1], g.counts[members]) + np.arange(int(g.counts[members].sum()))
        block = np.zeros((sub.total, *sub.trail), c.dtype)
        s = _Slice(sub, tuple(rest))
        src = _flat(c)
        place = block[s.source]
        place[(slice(None), *s.inner)] = src.reshape(place[(slice(None), *s.inner)].shape)
        block[s.source] = place
        out[at] = block
        return NestedArray(out, g)
    n = nest_of(old)
    missing_dims = tuple(c.shape[1 : c.ndim - sum(isinstance(k, slice) for k in key)])
    g = geometry_of((*missing_dims, *old), n)
    s = _Slice(g, _component_key(g, key))
    out = np.zeros((g.total, *g.trail), c.dtype)
    place = out[s.source]
    place[(slice(None), *s.inner)] = _flat(c).reshape(place[(slice(None), *s.inner)].shape)
    out[s.source] = place
    return NestedArray(out, g)


def _top(c: Any, key: tuple[Any, ...], old: tuple[Any, ...]) -> bool:
    """Whether a slice's key starts at the nesting dim (rather than at the components' first dim under vmap)."""
    kept = sum(isinstance(k, slice) for k in key)
    return c.ndim == kept


def _mirror(x: NestedArray, dims: tuple[int, ...]) -> NestedArray:
    g, u = x.geometry, x.geometry.ragged_until
    pos = {d + g.k for d in dims}
    if -1 in pos:
        x, pos = pick(x, np.arange(g.n)[::-1]), pos - {-1}
        g = x.geometry
    outer = [d for d in pos if d < u]
    rows = x.rows
    if outer:
        coords = [g.sizes[g.owner, d] - 1 - c if d in outer else c for d, c in enumerate(g.coordinates)]
        rows = rows[g.row_of(g.owner, coords)]
    key = tuple(slice(None, None, -1) if d in pos else slice(None) for d in range(u, g.k))
    return NestedArray(np.ascontiguousarray(rows[(slice(None), *key)]), g)


shape.flip_p.on(NestedArray)(lambda x, *, dims: _mirror(x, dims))


@shape.cat_p.on(NestedArray)
def _(*xs: Any, dim: int, ns: Any) -> Any:
    nests = [x for x in xs if isinstance(x, NestedArray)]
    if not nests:
        # Dense parts whose sizes along `dim` are ragged cannot be: a dense operand has plain sizes.
        return np.concatenate(shape._common(xs), axis=dim)
    g0 = nests[0].geometry
    d = dim + g0.k
    want = dt.result_of((dt.FROM_NP[x.dtype], x.ndim) for x in xs).np
    if d == -1:
        parts = [x if isinstance(x, NestedArray) else pack(x, tuple(RaggedInt(np.full(len(x), m)) if r else m for m, r in zip(x.shape[1:], g0.ragged, strict=True)), len(x)) for x in xs]
        sizes = np.concatenate([p.geometry.sizes for p in parts])
        g = Geometry(sizes, g0.ragged, g0.template)
        return NestedArray(np.concatenate([p.rows.astype(want, copy=False) for p in parts]), g)
    n = g0.n
    shapes = [x.shape[1:] for x in xs]
    total: Any = 0
    for s in shapes:
        total = total + s[d]
    for i, s in enumerate(shapes):
        for j, (a, b) in enumerate(zip(s, shapes[0], strict=True)):
            if j != d and not a == b:
                raise ChainruleError(f"cat: tensor {i} differs from the first in dimension {j + 1}: {a!r} and {b!r}")
    cols = tuple(total if j == d else next((s[j] for s in shapes if type(s[j]) is RaggedInt), c) for j, c in enumerate(shapes[0]))
    g = geometry_of(cols, n)
    out = np.empty(g.total * int(np.prod(g.trail)), want)
    at: Any = np.zeros(n, np.int64)
    for x, s in zip(xs, shapes, strict=True):
        h = geometry_of(tuple(s), n)
        owner, coords = _element_view(h)
        coords[d] = coords[d] + at[owner]
        place = np.zeros(len(owner), np.int64)
        for j, c in enumerate(coords):
            place = place * g.sizes[owner, j] + c
        out[g.offsets[:-1][owner] * int(np.prod(g.trail)) + place] = _flat(x)
        at = at + (s[d].values if type(s[d]) is RaggedInt else s[d])
    return NestedArray(out.reshape((g.total, *g.trail)), g)


# -- reductions -------------------------------------------------------------------------------------------------------

reduce.sum_p.on(NestedArray)(lambda x, *, dim, keepdim, old: reduce_nested(np.add, x, dim, keepdim, 0))
reduce.prod_p.on(NestedArray)(lambda x, *, dim, keepdim, old: reduce_nested(np.multiply, x, (dim,), keepdim, 1))


def _limit(x: Any, low: bool) -> Any:
    if x.dtype.kind in "iu":
        return np.iinfo(x.dtype).min if low else np.iinfo(x.dtype).max
    return False if x.dtype.kind == "b" else -np.inf if low else np.inf


reduce.amax_p.on(NestedArray)(lambda x, *, dim, keepdim, old: reduce_nested(np.maximum, x, dim, keepdim, _limit(x, True)))
reduce.amin_p.on(NestedArray)(lambda x, *, dim, keepdim, old: reduce_nested(np.minimum, x, dim, keepdim, _limit(x, False)))


def _shifted(x: NestedArray, dim: tuple[int, ...]) -> tuple[Any, ndarray, ndarray]:
    """Segments, ``exp(rows - max)`` of each segment, and the maxima."""
    s = _segments(x.geometry, dim)
    rows = x.rows.astype(np.float32) if x.dtype in dt.HALVES else x.rows
    top = s.reduce(np.maximum, rows, -np.inf)
    top = np.where(np.isfinite(top), top, 0).astype(rows.dtype)
    return s, rows - s.spread(top), top


@reduce.logsumexp_p.on(NestedArray)
def _(x: NestedArray, *, dim: tuple[int, ...], keepdim: bool, old: Any) -> Any:
    s, z, top = _shifted(x, dim)
    y = np.log(s.reduce(np.add, np.exp(z), 0)) + top
    return reduced(x, y.astype(x.dtype), dim, keepdim)


@reduce.softmax_p.on(NestedArray)
def _(x: NestedArray, *, dim: int) -> Any:
    if dim == -x.ndim:
        raise ChainruleError("softmax over the nesting dim of a nested tensor is not defined; choose another dim")
    s, z, _ = _shifted(x, (dim,))
    e = np.exp(z)
    return NestedArray((e / s.spread(s.reduce(np.add, e, 0))).astype(x.dtype, copy=False), x.geometry)


@reduce.log_softmax_p.on(NestedArray)
def _(x: NestedArray, *, dim: int) -> Any:
    s, z, _ = _shifted(x, (dim,))
    return NestedArray((z - s.spread(np.log(s.reduce(np.add, np.exp(z), 0)))).astype(x.dtype, copy=False), x.geometry)


# -- along one dim: on rows where the dim is uniform, else on buckets of padded components ----------------------------------


def along(x: NestedArray, dim: int, f: Any, pad: Any = 0) -> Any:
    """``f(array, axis)`` applied along a dim of the components; entries after a component's end are `pad` and dropped again.

    `f` may return one array or a tuple of arrays of the same shape.
    """
    g = x.geometry
    if dim + g.k >= g.ragged_until:
        y = f(x.rows, dim)
        return tuple(NestedArray(v, g) for v in y) if isinstance(y, tuple) else NestedArray(y, g)
    parts: list[tuple[ndarray, Any]] = []
    for members in buckets(g.sizes[:, dim + g.k]):
        parts.append((members, f(padded(pick(x, members), pad), dim)))
    if not parts:
        y = f(np.zeros((0, *[1] * g.k), x.dtype), dim)
        return tuple(NestedArray(x.rows.astype(v.dtype), g) for v in y) if isinstance(y, tuple) else NestedArray(x.rows.astype(y.dtype), g)
    if isinstance(parts[0][1], tuple):
        return tuple(join([(m, y[j]) for m, y in parts], g.columns, g.n, parts[0][1][j].dtype) for j in range(len(parts[0][1])))
    return join(parts, g.columns, g.n, parts[0][1].dtype)


scan.cumsum_p.on(NestedArray)(lambda x, *, dim: along(x, dim, lambda a, axis: scan.cumsum_p.impl(a, dim=axis)))


# -- products ---------------------------------------------------------------------------------------------------------


@matmul.matmul_p.on(NestedArray)
def _(a: Any, b: Any) -> Any:
    d = np.result_type(a.dtype, b.dtype)
    work = np.float32 if a.dtype in dt.HALVES else d
    if isinstance(a, NestedArray) and isinstance(b, ndarray) and b.ndim == 2 and a.geometry.trail:
        g = a.geometry
        y = np.matmul(a.rows.astype(work, copy=False), b.astype(work, copy=False)) if len(g.trail) > 1 else np.dot(a.rows.astype(work, copy=False), b.astype(work, copy=False))
        return NestedArray(y.astype(d, copy=False), geometry_of((*g.columns[:-1], b.shape[-1]), g.n))
    n = a.shape[0] if isinstance(a, NestedArray) else b.shape[0]
    ca, cb = _columns(a, n), _columns(b, n)
    if not ca[-1] == cb[-2]:
        raise ChainruleError(f"matmul: the last dim of input ({ca[-1]!r}) must equal the second to last of other ({cb[-2]!r}) in every component")
    lead = _broadcast_columns(ca[:-2], cb[:-2])
    out = (*lead, ca[-2], cb[-1])
    size = np.ones(n, np.int64)
    for c in (*ca, *cb):
        if type(c) is RaggedInt:
            size = np.maximum(size, c.values)
    parts = []
    for members in buckets(size):
        pa, pb = (_dense(x, members, n) for x in (a, b))
        parts.append((members, np.matmul(pa.astype(work, copy=False), pb.astype(work, copy=False)).astype(d, copy=False)))
    return join(parts, out, n, d)


def _columns(x: Any, n: int) -> tuple[Any, ...]:
    return tuple(x.shape[1:]) if isinstance(x, NestedArray) or (x.ndim > 2 and x.shape[0] == n) else tuple(x.shape)


def _dense(x: Any, members: ndarray, n: int) -> ndarray:
    if isinstance(x, NestedArray):
        return padded(pick(x, members))
    return x[members] if x.ndim > 2 and x.shape[0] == n else x


def _broadcast_columns(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    from .nested import target_shape

    return target_shape([a, b], "matmul")


# -- indexing ---------------------------------------------------------------------------------------------------------

index.wrap_index_p.on(NestedArray)(lambda i, *, n, dim: NestedArray(index.wrap_index_p.impl(i.rows, n=n, dim=dim), i.geometry))
index.check_range_p.on(NestedArray)(lambda i, *, n, name, dim: i)


@index.take_rows_p.on(NestedArray)
def _(x: Any, i: Any, *, r: int, s: int, n: Any) -> Any:
    if isinstance(i, NestedArray) and not isinstance(x, NestedArray):
        g = i.geometry
        rest = x.shape[x.ndim - r :]
        if x.ndim == r + 1:
            return pack(x[i.rows], (*g.columns, *rest), g.n)
        owner = g.owner.reshape((-1, *(1,) * len(g.trail)))
        return pack(x[owner, i.rows], (*g.columns, *rest), g.n)
    g = x.geometry
    if g.k == r and not isinstance(i, NestedArray):
        y = pick(x, i.reshape(-1))
        return y if i.ndim == 1 else pack(_flat(y), y.geometry.columns, y.geometry.n)
    if g.ragged_until != 1 or g.k != r + 1:
        raise ChainruleError("indexing with a tensor: on a nested tensor the indexed dim must be the nesting dim or the only ragged dim")
    length = g.sizes[:, 0]
    if isinstance(i, NestedArray):
        h = i.geometry
        return pack(x.rows[g.offsets[:-1][h.owner] + i.rows], (*h.columns, *g.trail), g.n)
    lead = i if i.ndim > s else np.broadcast_to(i, (g.n, *i.shape))
    limit = length.reshape((-1, *(1,) * s))
    bad = np.argwhere((lead >= limit) | (lead < -limit))
    if len(bad):
        raise IndexError(f"index {lead[tuple(bad[0])]} is out of bounds for component {bad[0][0]}, which has size {length[bad[0][0]]}")
    return x.rows[g.offsets[:-1].reshape(limit.shape) + np.where(lead < 0, lead + limit, lead)]


@index.add_rows_p.on(NestedArray)
def _(c: Any, i: Any, *, n: Any, r: int, s: int) -> Any:
    if isinstance(i, NestedArray) and type(n) is int:
        g = i.geometry
        rows = _flat(c).reshape((i.rows.size, -1))
        flat = i.rows.reshape(-1)
        if i.ndim == s:  # at the top: all components add to one table
            out = np.zeros((n, rows.shape[1]), rows.dtype)
            np.add.at(out, flat, rows)
            return out.reshape((n, *c.shape[c.ndim - r :]))
        out = np.zeros((g.n * n, rows.shape[1]), rows.dtype)
        np.add.at(out, flat + np.repeat(g.owner, int(np.prod(g.trail))) * n, rows)
        return out.reshape((g.n, n, *c.shape[c.ndim - r :]))
    if type(n) is RaggedInt:
        count = len(n.values)
        rest = tuple(c.shape[c.ndim - r :])
        g = geometry_of((n, *rest), count)
        out = np.zeros((g.total, *rest), c.dtype)
        if isinstance(i, NestedArray):
            at = g.offsets[:-1][i.geometry.owner] + i.rows
        else:
            lead = i if i.ndim > s else np.broadcast_to(i, (count, *i.shape))
            size = n.values.reshape((-1, *(1,) * s))
            at = g.offsets[:-1].reshape(size.shape) + np.where(lead < 0, lead + size, lead)
        np.add.at(out, at.reshape(-1), _flat(c).reshape((-1, *rest)))
        return NestedArray(out, g)
    raise ChainruleError("adding rows at these indices is not defined for nested tensors")


@index.gather_p.on(NestedArray)
def _(x: Any, i: Any, *, dim: int, old: Any) -> Any:
    g = i.geometry if isinstance(i, NestedArray) else x.geometry
    if dim + g.k < g.ragged_until:
        raise ChainruleError("gather: on nested tensors the dim must be uniform")
    xr, ir = (spread_rows(v, v.geometry if isinstance(v, NestedArray) else g) for v in (x, i))
    return NestedArray(np.take_along_axis(xr, ir, axis=dim), i.geometry)


def _scatter(name: str) -> Any:
    p = getattr(index, name)

    def body(x: Any, i: Any, src: Any, *, dim: int, ss: Any) -> Any:
        g = x.geometry if isinstance(x, NestedArray) else i.geometry
        rows = [v.rows if isinstance(v, NestedArray) else spread_rows(v, g) for v in (x, i, src)]
        return NestedArray(p.impl(*rows, dim=dim, ss=ss), g)

    return body


for _name in ("scatter_add_p", "scatter_p"):
    getattr(index, _name).on(NestedArray)(_scatter(_name))
