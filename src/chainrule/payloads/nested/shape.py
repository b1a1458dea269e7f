"""Nested bodies of the primitives that rearrange: reshape, permute, expand, slices, flips, joins, padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core import primitives
from ...core.errors import ChainruleError
from ...core.op import OPS
from ...ops.elementwise.complex import view_as_complex_p, view_as_real_p
from ...ops.elementwise.select import where_p
from ...ops.reduce import reductions as reduce
from ...ops.shape import functional as copies
from ...ops.shape import pad, slices
from .array import NestedArray, count_of, differ, flat, nest_at, pack, pick, pointwise_nested, spread_rows
from .permute import permuted
from .sizes import Geometry, RaggedInt, bound, geometry_of, is_ragged, packing_of

ndarray = np.ndarray

# -- the same value ---------------------------------------------------------------------------------------------------

primitives.detach_p.on(NestedArray)(lambda x: x)
primitives.clone_p.on(NestedArray)(lambda x, order="K": x.copy())


@view_as_real_p.on(NestedArray)
def _(z: NestedArray) -> NestedArray:
    g = z.geometry
    return pack(view_as_real_p.body(z.rows), (*g.columns, 2), g.n, z.lead)


@view_as_complex_p.on(NestedArray)
def _(x: NestedArray) -> Any:
    g = x.geometry
    if g.trail:
        return pack(view_as_complex_p.body(x.rows), g.columns[:-1], g.n, x.lead)
    from .bodies import by_size

    return by_size(view_as_complex_p, (x,), {}, [x])


where_p.on(NestedArray)(lambda c, a, b: pointwise_nested(np.where, [c, a, b], "where"))

# -- shape ------------------------------------------------------------------------------------------------------------


def reshaped(x: Any, full: tuple[Any, ...]) -> Any:
    """The elements with the shape `full`."""
    a = x.rows if isinstance(x, NestedArray) else x
    if not is_ragged(full):
        return a.reshape(full)
    n = count_of(full)
    if a is x and not any(type(s) is not RaggedInt and s == n for s in full):
        # What a step over the nesting dim left: sizes that are equal in all components.
        sizes = [(s.most if (s.values == s.most).all() else -1) if type(s) is RaggedInt else s for s in full]
        if -1 not in sizes and int(np.prod(sizes)) == a.size:
            return a.reshape(sizes)
    at = nest_at(full)
    g = geometry_of(full[at + 1 :], n)
    if isinstance(x, NestedArray) and x.geometry.n == n and x.geometry.packing is not g.packing:
        have, want = x.geometry.sizes.prod(1), g.sizes.prod(1)
        bad = np.flatnonzero(have * int(np.prod(x.lead)) != want * int(np.prod(full[:at])))
        if len(bad):
            i = bad[0]
            raise ChainruleError(
                f"reshape: component {i} of shape {x.geometry.sizes[i].tolist()} does not fit into {g.sizes[i].tolist()}"
            )
    return NestedArray(a.reshape((*full[:at], *g.rows)), g)


@primitives.reshape_p.on(NestedArray)
def _(x: Any, *, shape: tuple[Any, ...], old: tuple[Any, ...]) -> Any:
    return reshaped(x, (*x.shape[: x.ndim - len(old)], *shape))


@primitives.permute_p.on(NestedArray)
def permute_nested(x: NestedArray, *, dims: tuple[int, ...]) -> Any:
    g, nd, front = x.geometry, x.ndim, len(x.lead)
    perm = [*range(nd - len(dims)), *[d + nd for d in dims]]
    if perm == list(range(nd)):
        return x
    at = perm.index(front)
    before, after = perm[:at], perm[at + 1 :]
    packed = list(range(front + 1, front + 1 + g.u))
    if any(d in packed and type(g.columns[d - front - 1]) is not RaggedInt for d in before):
        # Uniform dims among the packed ones become part of the rows first.
        last = [d for d in packed if d in before]
        order = [*[d for d in range(front + 1, nd) if d not in last], *last]
        x = permuted(x, [d - front - 1 for d in order])
        now = [*range(front + 1), *order]
        return permute_nested(x, dims=tuple(now.index(d) - nd for d in perm))
    if any(d in packed for d in before):
        raise ChainruleError(
            "permute: the nesting dim of a nested tensor must stay in front of its ragged dims; use unbind() or to_padded_tensor()"
        )
    # Axes of the buffer: the rows stand for the nesting dim and the packed dims.
    axis = {d: d if d < front else d - g.u for d in range(nd) if d not in packed}
    if after[: g.u] == packed:
        rows = x.rows.transpose([*[axis[d] for d in before], front, *[axis[d] for d in after[g.u :]]])
        return NestedArray(np.ascontiguousarray(rows), Geometry(g.packing, rows.shape[at + 1 :]))
    # First what moves to the front and back again, as whole axes; then the elements within the components.
    rest = [d for d in range(nd) if d != front and d not in packed and d not in before]
    y = NestedArray(x.rows.transpose([*[axis[d] for d in before], front, *[axis[d] for d in rest]]), g)
    y.geometry = Geometry(g.packing, y.rows.shape[at + 1 :])
    now = [*packed, *rest]
    return permuted(y, [now.index(d) for d in after])


def broadcast(x: Any, full: tuple[Any, ...]) -> Any:
    """The operand repeated to the shape `full`."""
    if not is_ragged(full):
        return np.broadcast_to(x, full)
    at = nest_at(full)
    return spread(x, full[:at], geometry_of(full[at + 1 :], count_of(full)))


def spread(x: Any, lead: tuple[int, ...], g: Geometry) -> NestedArray:
    """The operand repeated to leading axes and components of a geometry."""
    rows = spread_rows(x, g, "expand")
    want = (*lead, *g.rows)
    return NestedArray(rows if np.shape(rows) == want else np.ascontiguousarray(np.broadcast_to(rows, want)), g)


@primitives.expand_p.on(NestedArray)
def _(x: Any, *, shape: tuple[Any, ...], old: tuple[Any, ...]) -> Any:
    lead = tuple(x.shape[: x.ndim - len(old)])
    if lead and len(shape) > len(old):
        x = reshaped(x, (*lead, *(1,) * (len(shape) - len(old)), *x.shape[x.ndim - len(old) :]))
    return broadcast(x, (*lead, *shape))


@reduce.unsum_p.on(NestedArray)
def _(g: Any, *, dim: tuple[int, ...], keepdim: bool, old: tuple[Any, ...]) -> Any:
    lead = tuple(g.shape[: g.ndim - (len(old) if keepdim else len(old) - len(dim))])
    if not keepdim:
        g = reshaped(g, lead + reduce.kept(old, dim)) if isinstance(g, NestedArray) else np.expand_dims(g, tuple(dim))
    return broadcast(g, lead + old)


# -- slices -----------------------------------------------------------------------------------------------------------


class Window:
    """Where a basic index of the components reads: for every packed row of the result, its row in the source."""

    def __init__(self, g: Geometry, key: tuple[Any, ...]) -> None:
        p, u = g.packing, g.u
        # Ints as slices of length 1: the axes stay where they are.
        whole = [
            k if isinstance(k, slice) else slice(int(k) % m if m else 0, int(k) % m + 1 if m else 1)
            for k, m in zip(key[u:], g.trail, strict=True)
        ]
        self.inner = tuple(whole)
        sizes = [len(range(*k.indices(m))) for k, m in zip(key[u:], g.trail, strict=True) if isinstance(k, slice)]
        if all(isinstance(k, slice) and k == slice(None) for k in key[:u]):
            self.source: ndarray | None = None
            self.columns = (*p.columns, *sizes)
            return
        start, step = np.zeros((g.n, u), np.int64), np.ones(u, np.int64)
        cols: list[Any] = []
        kept: list[int] = []
        for d, k in enumerate(key[:u]):
            size = p.sizes[:, d]
            if not isinstance(k, slice):
                at = k.values if isinstance(k, RaggedInt) else np.full(g.n, int(k))
                at = np.where(at < 0, at + size, at)
                bad = np.flatnonzero((at < 0) | (at >= size))
                if len(bad):
                    raise IndexError(
                        f"index {k} is out of bounds for dimension {d + 1} of component {bad[0]}, which has size {size[bad[0]]}"
                    )
                start[:, d] = at
                continue
            a, b, s = bound(k.start, size, 0), bound(k.stop, size, size), 1 if k.step is None else int(k.step)
            start[:, d], step[d] = a, s
            length = np.maximum(-(-(b - a) // s), 0)
            ragged = type(p.columns[d]) is RaggedInt or isinstance(k.start, RaggedInt) or isinstance(k.stop, RaggedInt)
            cols.append(RaggedInt(length) if ragged else len(range(*k.indices(p.columns[d]))))
            kept.append(d)
        self.columns = (*cols, *sizes)
        rows = geometry_of(tuple(cols), g.n)
        owner, coords = rows.elements()
        place = [start[owner, d] for d in range(u)]
        for d, c in zip(kept, coords, strict=True):
            place[d] = place[d] + step[d] * c
        self.source = p.row_of(owner, place)


def window(g: Geometry, key: tuple[Any, ...]) -> Window:
    """The window of a key, found once for keys without ragged entries."""
    try:
        name = ("window", g.trail, tuple((k.start, k.stop, k.step) if isinstance(k, slice) else k for k in key))
        w = g.packing.memo.get(name)
        if w is None:
            w = g.packing.memo[name] = Window(g, key)
        return w
    except TypeError:
        return Window(g, key)


def _front_key(key: tuple[Any, ...], k: int, front: int) -> tuple[tuple[Any, ...], Any, tuple[Any, ...]]:
    """A key split into those of the axes in front, of the nesting dim and of the components."""
    full = (slice(None),) * (front + 1 + k - len(key)) + tuple(key)
    return full[:front], full[front], full[front + 1 :]


def _own_sizes(x: ndarray, key: tuple[Any, ...]) -> NestedArray:
    """Dense components ``[*lead, n, *sizes]`` as a nest that is ragged in the dims of which each component takes a part of its own."""
    k = len(key)
    n = count_of(tuple(v for s in key if isinstance(s, slice) for v in (s.start, s.stop)))
    return pack(x, _own_columns(x.shape[x.ndim - k :], key, n), n, x.shape[: x.ndim - k - 1])


def _own(k: Any) -> bool:
    """Whether each component takes a part of its own."""
    return isinstance(k, slice) and RaggedInt in (type(k.start), type(k.stop))


def _own_columns(sizes: tuple[int, ...], key: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    return tuple(RaggedInt(np.full(n, m)) if _own(k) else m for m, k in zip(sizes, key, strict=True))


@slices.slice_p.on(NestedArray)
def _(x: Any, *, key: tuple[Any, ...], old: tuple[Any, ...]) -> Any:
    if not isinstance(x, NestedArray):
        x = _own_sizes(x, key)
    lead, first, key = _front_key(key, x.geometry.k, len(x.lead))
    if any(not isinstance(k, slice) or k != slice(None) for k in lead):
        x = NestedArray(x.rows[lead], x.geometry)
    g = x.geometry
    if not isinstance(first, slice):
        i = range(g.n)[int(first)]
        a, b = g.packing.offsets[i : i + 2]
        rows_of: Any = x.rows
        one = rows_of[(..., slice(a, b), *(slice(None),) * len(g.trail))].reshape(
            (*x.lead, *g.packing.sizes[i], *g.trail)
        )
        return one[(..., *key)]
    if first != slice(None):
        x = pick(x, np.arange(g.n)[first])
        g = x.geometry
    if all(isinstance(k, slice) and k == slice(None) for k in key):
        return x
    w = window(g, key)
    rows = x.rows if w.source is None else x.rows.take(w.source, axis=x.axis)
    return pack(rows[(..., *w.inner)], w.columns, g.n, x.lead)


@slices.unslice_p.on(NestedArray)
def _(c: Any, *, key: tuple[Any, ...], old: tuple[Any, ...]) -> Any:
    full = (*c.shape[: c.ndim - sum(isinstance(k, slice) for k in key)], *old)
    dense = None if is_ragged(full) else tuple(int(m) for m in full)
    if dense is not None and any(map(_own, key)):  # parts of components of one size
        full = (*full[: -len(key)], *_own_columns(full[-len(key) :], key, int(full[-len(key) - 1])))
    elif dense is not None:
        out = np.zeros(full, c.dtype)
        out[(..., *key)] = c
        return out
    at, n = nest_at(full), count_of(full)
    g = geometry_of(full[at + 1 :], n)
    lead, first, key = _front_key(key, g.k, at)
    out = np.zeros((*full[:at], *g.rows), c.dtype)
    target: Any = None
    sub = g
    if not isinstance(first, slice) or first != slice(None):
        members = np.atleast_1d(np.arange(n)[first if isinstance(first, slice) else int(first)])
        sub, target = g.take(members), g.packing.rows_of(members)
    w = window(sub, key)
    if w.source is not None:
        target = w.source if target is None else target[w.source]
    part = out[lead]
    # One advanced index, next to the leading axes: the others are slices, so no axis moves.
    spot = (..., slice(None) if target is None else target, *w.inner)
    part[spot] = flat(c).reshape(part[spot].shape)
    return NestedArray(out, g) if dense is None else out.reshape(dense)


# -- orders -----------------------------------------------------------------------------------------------------------


def _moved(x: NestedArray, dims: dict[int, Any], inner: Any) -> NestedArray:
    """Rows taken from other coordinates: ``dims[d](coordinate, size)`` of the packed dims, `inner(rows)` for the others."""
    g, p = x.geometry, x.geometry.packing
    rows = x.rows
    if dims:
        coords = [dims[d](c, p.sizes[p.owner, d]) if d in dims else c for d, c in enumerate(p.coordinates)]
        rows = rows.take(p.row_of(p.owner, coords), axis=x.axis)
    return NestedArray(np.ascontiguousarray(inner(rows)), g)


@slices.flip_p.on(NestedArray)
def _(x: NestedArray, *, dims: tuple[int, ...]) -> NestedArray:
    g = x.geometry
    if -g.k - 1 in dims:
        x = pick(x, np.arange(g.n)[::-1])
        g = x.geometry
    outer = {d + g.k: (lambda c, size: size - 1 - c) for d in dims if 0 <= d + g.k < g.u}
    inner = tuple(d for d in dims if d + g.k >= g.u)
    front = tuple(d + g.u for d in dims if d + g.k < -1)
    return _moved(x, outer, lambda rows: np.flip(rows, (*inner, *front)))


@slices.roll_p.on(NestedArray)
def _(x: NestedArray, *, shifts: tuple[int, ...], dims: tuple[int, ...]) -> NestedArray:
    g = x.geometry
    outer, inner = {}, []
    for s, d in zip(shifts, dims, strict=True):
        if d == -g.k - 1:
            x = pick(x, (np.arange(g.n) - s) % max(g.n, 1))
            g = x.geometry
        elif d < -g.k:
            inner.append((s, d + g.u))
        elif d + g.k < g.u:
            s = s.values[g.packing.owner] if isinstance(s, RaggedInt) else s
            outer[d + g.k] = lambda c, size, s=s: (c - s) % np.maximum(size, 1)
        else:
            inner.append((s, d))
    return _moved(x, outer, lambda rows: np.roll(rows, [s for s, _ in inner], [d for _, d in inner]))


def _triangular(name: str, below: bool) -> None:
    """The nested body of tril or triu: entries on one side of a diagonal of the last two dims."""
    p = OPS[name]

    @p.on(NestedArray)
    def _(x: NestedArray, *, k: int) -> NestedArray:
        g = x.geometry
        if g.k < 2:
            raise ChainruleError(f"{name}: the components must have at least 2 dims, got {list(x.shape)}")
        key = (name, k, g.trail)
        keep = g.packing.memo.get(key)
        if keep is None:
            _, c = g.elements()
            keep = c[-1] - c[-2] <= k if below else c[-1] - c[-2] >= k
            keep = g.packing.memo[key] = keep.reshape(g.rows)
        return NestedArray(np.where(keep, x.rows, x.dtype.type(0)), g)


_triangular("tril", True)
_triangular("triu", False)


class Diagonal:
    """Where a diagonal of two dims of the components lies: its sizes, the diagonal last, and the places of its elements."""

    def __init__(self, g: Geometry, offset: int, dims: tuple[int, int]) -> None:
        if min(dims) < -g.k:
            raise ChainruleError(f"diagonal: the nesting dim has none; shape {list(g.shape)}")
        a, b = (d + g.k for d in dims)
        down, right = max(-offset, 0), max(offset, 0)
        size = np.minimum(g.sizes[:, a] - down, g.sizes[:, b] - right).clip(0)
        ragged = RaggedInt in (type(g.columns[a]), type(g.columns[b]))
        m, n = g.columns[a], g.columns[b]
        length: Any = RaggedInt(size) if ragged else max(min(m - down, n - right), 0)
        rest = [d for d in range(g.k) if d not in (a, b)]
        self.columns = (*[g.columns[d] for d in rest], length)
        owner, coords = geometry_of(self.columns, g.n).elements()
        at: list[Any] = [None] * g.k
        at[a], at[b] = coords[-1] + down, coords[-1] + right
        for d, c in zip(rest, coords, strict=False):
            at[d] = c
        self.place = g.element_at(owner, at)


def _diagonal(g: Geometry, offset: int, dims: tuple[int, int]) -> Diagonal:
    key = ("diagonal", g.trail, offset, dims)
    found = g.packing.memo.get(key)
    if found is None:
        found = g.packing.memo[key] = Diagonal(g, offset, dims)
    return found


@slices.diagonal_p.on(NestedArray)
def _(x: NestedArray, *, offset: int, dim1: int, dim2: int, old: tuple[Any, ...]) -> Any:
    d = _diagonal(x.geometry, offset, (dim1, dim2))
    return pack(flat(x, len(x.lead)).take(d.place, axis=-1), d.columns, x.geometry.n, x.lead)


@slices.undiagonal_p.on(NestedArray)
def _(c: Any, *, offset: int, dim1: int, dim2: int, old: tuple[Any, ...]) -> Any:
    full = (*c.shape[: c.ndim - len(old) + 1], *old)
    if not is_ragged(full):
        return slices.undiagonal_p.body(c, offset=offset, dim1=dim1, dim2=dim2, old=old)
    at = nest_at(full)
    g = geometry_of(full[at + 1 :], count_of(full))
    out = np.zeros((*full[:at], g.packing.total * g.width), c.dtype)
    out[..., _diagonal(g, offset, (dim1, dim2)).place] = flat(c, at)
    return NestedArray(out.reshape((*full[:at], *g.rows)), g)


@copies.set_slice_p.on(NestedArray)
def _(x: NestedArray, v: Any, *, key: tuple[Any, ...], old: tuple[Any, ...]) -> NestedArray:
    lead, first, key = _front_key(key, x.geometry.k, len(x.lead))
    if first != slice(None):
        raise ChainruleError("replacing whole components of a nested tensor is possible with x[i] = component")
    w = window(x.geometry, key)
    out: Any = x.rows.astype(np.result_type(x.dtype, v.dtype)) if x.dtype.kind != v.dtype.kind else x.rows.copy()
    spot = (..., slice(None) if w.source is None else w.source, *w.inner)
    part = out[lead]  # a view: of axes of other maps there are slices and single entries
    part[spot] = flat(v).reshape(part[spot].shape)
    return NestedArray(out, x.geometry)


# -- joins and padding ------------------------------------------------------------------------------------------------


def _alike(xs: tuple[Any, ...], along: int | None) -> list[NestedArray]:
    """Operands as nests that are ragged in the same dims: where one of them is, or (`along` components) where they differ."""
    k = next(x.geometry.k for x in xs if isinstance(x, NestedArray))
    sizes = [x.geometry.columns if isinstance(x, NestedArray) else x.shape[x.ndim - k :] for x in xs]
    ragged = [
        any(type(c) is RaggedInt for c in cs) or (along == -1 and any(c != cs[0] for c in cs))
        for cs in zip(*sizes, strict=True)
    ]
    out = []
    for x, cs in zip(xs, sizes, strict=True):
        n = x.geometry.n if isinstance(x, NestedArray) else x.shape[x.ndim - k - 1]
        if isinstance(x, NestedArray) and all((type(c) is RaggedInt) == r for c, r in zip(cs, ragged, strict=True)):
            out.append(x)
            continue
        cols = tuple(
            RaggedInt(np.full(n, c)) if r and type(c) is not RaggedInt else c for c, r in zip(cs, ragged, strict=True)
        )
        lead = x.lead if isinstance(x, NestedArray) else x.shape[: x.ndim - k - 1]
        out.append(pack(x.rows if isinstance(x, NestedArray) else x, cols, n, lead))
    return out


@slices.cat_p.on(NestedArray)
def _(*xs: Any, dim: int, ns: Any) -> Any:
    first = next((x for x in xs if isinstance(x, NestedArray)), None)
    if first is None:
        return np.concatenate(slices._common(xs), axis=dim)
    want = dt.result_of((dt.FROM_NP[x.dtype], x.ndim) for x in xs).np
    d = dim + first.geometry.k
    parts = [x.astype(want, copy=False) for x in _alike(xs, d)]
    g0 = parts[0].geometry
    if d < -1:
        return NestedArray(np.concatenate([p.rows for p in parts], axis=dim + g0.u), g0)
    if d == -1:
        return _cat_components(parts)
    for i, p in enumerate(parts):
        for j, (a, b) in enumerate(zip(g0.columns, p.geometry.columns, strict=True)):
            if j != d and not a == b:
                raise ChainruleError(differ(a, b, j, f"cat: tensor {i}"))
    if d >= g0.u:
        rows = np.concatenate([p.rows for p in parts], axis=dim)
        return NestedArray(rows, Geometry(g0.packing, rows.shape[rows.ndim - len(g0.trail) :]))
    total: Any = 0
    for p in parts:
        total = total + p.geometry.columns[d]
    g = geometry_of(tuple(total if j == d else c for j, c in enumerate(g0.columns)), g0.n)
    out: Any = np.empty((*first.lead, *g.rows), want)
    at: Any = np.zeros(g.n, np.int64)
    inner = (slice(None),) * len(g.trail)
    for p in parts:
        h = p.geometry.packing
        coords = list(h.coordinates)
        coords[d] = coords[d] + at[h.owner]
        out[(..., g.packing.row_of(h.owner, coords), *inner)] = p.rows
        size = p.geometry.columns[d]
        at = at + (size.values if type(size) is RaggedInt else size)
    return NestedArray(out, g)


def _cat_components(parts: list[NestedArray]) -> NestedArray:
    """The components of several nests one after the other."""
    cols = [
        RaggedInt(np.concatenate([c.values for c in cs])) if type(cs[0]) is RaggedInt else cs[0]
        for cs in zip(*[p.geometry.columns for p in parts], strict=True)
    ]
    g = geometry_of(tuple(cols), sum(p.geometry.n for p in parts))
    flats = [flat(p, len(p.lead)) for p in parts]
    return NestedArray(np.concatenate(flats, axis=-1).reshape((*parts[0].lead, *g.rows)), g)


@pad.constant_pad_p.on(NestedArray)
def _(x: NestedArray, *, pads: Any, value: Any) -> NestedArray:
    g = x.geometry
    if len(pads) > g.k and any(p != (0, 0) for p in pads[: len(pads) - g.k]):
        raise ChainruleError("pad: the nesting dim of a nested tensor cannot be padded; cat() more components to it")
    pads = ((0, 0),) * (g.k - len(pads)) + tuple(pads[max(len(pads) - g.k, 0) :])
    outer, inner = pads[: g.u], pads[g.u :]
    rows = x.rows if all(p == (0, 0) for p in inner) else pad.constant_pad_p.body(x.rows, pads=inner, value=value)
    trail = rows.shape[rows.ndim - len(g.trail) :] if g.trail else ()
    if all(p == (0, 0) for p in outer):
        return NestedArray(rows, Geometry(g.packing, trail))
    p = g.packing
    cols = []
    for d, (c, (a, b)) in enumerate(zip(p.columns, outer, strict=True)):
        size = c + (a + b)
        if np.min(size.values if type(size) is RaggedInt else size, initial=0) < 0:
            at = int(np.argmin(size.values)) if type(size) is RaggedInt else 0
            raise ChainruleError(
                f"pad: component {at} would have a negative size in dimension {d + 1}: {p.sizes[at, d]} with padding {a} and {b}"
            )
        cols.append(size)
    h = packing_of(tuple(cols), g.n)
    out: Any = np.full((*x.lead, h.total, *trail), value, rows.dtype)
    coords, real = [], np.ones(p.total, bool)
    for d, (c, (a, b)) in enumerate(zip(p.coordinates, outer, strict=True)):
        a, b = (v.values[p.owner] if type(v) is RaggedInt else v for v in (a, b))
        real &= (c >= np.maximum(-a, 0)) & (c < p.sizes[p.owner, d] - np.maximum(-b, 0))
        coords.append(c + a)
    place = h.row_of(p.owner[real], [c[real] for c in coords])
    keep = (slice(None),) * len(trail)
    source: Any = rows
    out[(..., place, *keep)] = source[(..., real, *keep)]
    return NestedArray(out, Geometry(h, trail))
