"""Nests of nests rearranged: shapes, choices of components, joins, padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import primitives
from ...core.errors import ChainruleError
from ...ops.elementwise.select import where_p
from ...ops.index.rows import add_rows_p, take_rows_p
from ...ops.reduce import reductions as reduce
from ...ops.shape import functional as copies
from ...ops.shape import slices
from .array import NestedArray, pick, pointwise_nested
from .deep import DeepArray, _pointwise, aligned, deep_of, lifted
from .deep_sizes import inner_size, is_deep
from .shape import Window, _cat_components, _front_key, reshaped
from .sizes import Geometry, Nest, RaggedInt, geometry_of, packing_of

ndarray = np.ndarray
add: Any = add_rows_p.body

# -- the same value ---------------------------------------------------------------------------------------------------

primitives.detach_p.on(DeepArray)(lambda x: x)
primitives.clone_p.on(DeepArray)(lambda x, order="K": x.copy())
where_p.on(DeepArray)(lambda c, a, b: _pointwise(np.where, [c, a, b], "where"))

# -- shape ------------------------------------------------------------------------------------------------------------


def _elements(x: Any) -> Any:
    return x if isinstance(x, ndarray) else x.rows


def shaped(x: Any, full: tuple[Any, ...]) -> Any:
    """The elements, which lie in order, with the shape `full`."""
    a = _elements(x)
    if is_deep(full):
        return deep_of(a, full)
    if any(type(s) is RaggedInt for s in full):
        if isinstance(x, DeepArray):
            x = x.flattened() if isinstance(full[0], Nest) or full[0] == x.outer.n else a
        return reshaped(x, full)
    return a.reshape(full)


@primitives.reshape_p.on(DeepArray)
def _(x: Any, *, shape: tuple[Any, ...], old: tuple[Any, ...]) -> Any:
    return shaped(x, (*x.shape[: x.ndim - len(old)], *shape))


@primitives.permute_p.on(DeepArray)
def _(x: DeepArray, *, dims: tuple[int, ...]) -> Any:
    nd, outer = x.ndim, len(x.lead)
    order = [*range(nd - len(dims)), *[d + nd for d in dims]]
    at = order.index(outer)
    if order[at + 1] != outer + 1:
        raise ChainruleError(
            f"permute: of a nest of nests (shape {list(x.shape)}) the dims of the inner components move among each other alone"
        )
    within = tuple(d - (d > outer) - nd + 1 for d in order if d != outer)  # the inner components are one dim
    return DeepArray(primitives.permute_p.bodies[NestedArray](x.inner, dims=within), x.outer)


def broadcast(x: Any, full: tuple[Any, ...]) -> Any:
    """The operand repeated to the shape `full` of a nest of nests."""
    at = next(i for i, s in enumerate(full) if isinstance(s, RaggedInt))
    k = len(full) - at - 1
    like = deep_of(np.broadcast_to(np.zeros((), x.dtype), _count(full, at)), full)
    v = aligned(x, like.outer, k, "expand")
    inner = pointwise_nested(lambda a, b: a, [v, like.inner], "expand")
    if inner.rows.shape != like.inner.rows.shape or inner.rows.strides != like.inner.rows.strides:
        inner = NestedArray(
            np.ascontiguousarray(np.broadcast_to(inner.rows, like.inner.rows.shape)), like.inner.geometry
        )
    return DeepArray(inner, like.outer)


def _count(full: tuple[Any, ...], at: int) -> tuple[int, ...]:
    """The number of elements of a shape, behind its leading axes."""
    n: Any = Nest(np.ones(len(full[at].values), np.int64))
    for s in full[at:]:
        n = n * s
    return (*full[: at - 1], int(n))


@primitives.expand_p.on(DeepArray)
def _(x: Any, *, shape: tuple[Any, ...], old: tuple[Any, ...]) -> Any:
    lead = tuple(x.shape[: x.ndim - len(old)])
    if lead and len(shape) > len(old):
        x = shaped(x, (*lead, *(1,) * (len(shape) - len(old)), *x.shape[x.ndim - len(old) :]))
    full = (*lead, *shape)
    if is_deep(full):
        return broadcast(x, full)
    raise ChainruleError(f"expand: a nest of nests of shape {list(x.shape)} cannot be expanded to {list(full)}")


@reduce.unsum_p.on(DeepArray)
def _(g: Any, *, dim: tuple[int, ...], keepdim: bool, old: tuple[Any, ...]) -> Any:
    lead = tuple(g.shape[: g.ndim - (len(old) if keepdim else len(old) - len(dim))])
    if not keepdim:
        g = shaped(g, lead + reduce.kept(old, dim))
    return broadcast(g, lead + old)


# -- choices ----------------------------------------------------------------------------------------------------------


def picked(x: DeepArray, members: ndarray) -> DeepArray:
    """Some outer components."""
    return DeepArray(pick(x.inner, x.outer.rows_of(members)), packing_of((RaggedInt(x.counts[members]),), len(members)))


def _parts(x: DeepArray, key: tuple[Any, ...]) -> Any:
    k = x.inner.geometry.k
    whole = slice(None)
    lead, first, (sent, *inner) = _front_key(key, k + 1, len(x.lead))
    if any(not isinstance(v, slice) or v != whole for v in lead):
        x = DeepArray(NestedArray(x.inner.rows[lead], x.inner.geometry), x.outer)
    nested: Any = slices.slice_p.bodies[NestedArray]
    if not isinstance(first, slice):
        i = range(x.outer.n)[int(first)]
        one = pick(x.inner, np.arange(*x.outer.offsets[i : i + 2]))
        return nested(one, key=(sent, *inner), old=())
    if first != whole:
        x = picked(x, np.arange(x.outer.n)[first])
    if sent != whole:
        w = Window(Geometry(x.outer, ()), (sent,))
        chosen = pick(x.inner, w.source)  # type: ignore[arg-type]
        if not isinstance(sent, slice):
            return nested(chosen, key=(whole, *inner), old=())
        x = DeepArray(chosen, packing_of(w.columns, x.outer.n))
    if all(isinstance(v, slice) and v == whole for v in inner):
        return x
    return lifted(slices.slice_p, (x,), {"key": tuple(inner), "old": x.shape})


@slices.slice_p.on(DeepArray)
def _(x: Any, *, key: tuple[Any, ...], old: tuple[Any, ...]) -> Any:
    if isinstance(x, DeepArray):
        return _parts(x, key)
    # Rows of one size for each inner component, of which each takes a part of its own.
    return DeepArray(slices.slice_p.bodies[NestedArray](x.rows, key=_inner_key(key), old=old), x.geometry.packing)


def _inner_key(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(slice(inner_size(k.start), inner_size(k.stop), k.step) if isinstance(k, slice) else k for k in key)


@slices.unslice_p.on(DeepArray)
def _(c: Any, *, key: tuple[Any, ...], old: tuple[Any, ...]) -> Any:
    full = (*c.shape[: c.ndim - sum(isinstance(k, slice) for k in key)], *old)
    if not is_deep(full):
        y = slices.unslice_p.bodies[NestedArray](c.inner, key=_inner_key(key), old=old)
        return NestedArray(y, Geometry(c.outer, y.shape[len(c.lead) + 1 :]))
    at = next(i for i, s in enumerate(full) if isinstance(s, RaggedInt))
    shape = _count(full, at)
    places = _parts(deep_of(np.arange(int(np.prod(shape))).reshape(shape), full), key)
    out = np.zeros(int(np.prod(shape)), c.dtype)
    out[_elements(places).reshape(-1)] = _elements(c).reshape(-1)
    return deep_of(out.reshape(shape), full)


@copies.set_slice_p.on(DeepArray)
def _(x: DeepArray, v: Any, *, key: tuple[Any, ...], old: tuple[Any, ...]) -> DeepArray:
    lead, first, (sent, *inner) = _front_key(key, x.inner.geometry.k + 1, len(x.lead))
    if first != slice(None) or sent != slice(None):
        raise ChainruleError("replacing whole components of a nest of nests is possible with x[i] = component")
    low = (*lead, slice(None), *_inner_key(tuple(inner)))
    part = v.inner if isinstance(v, DeepArray) else v
    return DeepArray(copies.set_slice_p.bodies[NestedArray](x.inner, part, key=low, old=old), x.outer)


@take_rows_p.on(DeepArray)
def _(x: Any, i: Any, *, r: int, s: int, n: Any) -> Any:
    if not isinstance(x, DeepArray) or not x.inner.geometry.k <= r <= x.inner.geometry.k + 1:
        return lifted(take_rows_p, (x, i), {"r": r, "s": s, "n": n})
    if r == x.inner.geometry.k:
        raise ChainruleError(
            f"indexing the inner components of a nest of nests (shape {list(x.shape)}) with a tensor is not possible; take slices, "
            "x[:, 1:], or single ones, x[:, 0]"
        )
    i = i.reshape(-1)
    return picked(x, np.where(i < 0, i + x.outer.n, i))


@add_rows_p.on(DeepArray)
def _(c: Any, i: Any, *, n: Any, r: int, s: int) -> Any:
    if type(n) is not Nest or n.columns is None:
        return lifted(add_rows_p, (c, i), {"n": n, "r": r, "s": s})
    full = (*c.lead, n, *n.columns)
    out = deep_of(np.zeros(_count(full, len(c.lead) + 1), c.dtype), full)
    i = i.reshape(-1)
    g = out.inner.geometry
    rows = g.packing.rows_of(out.outer.rows_of(np.where(i < 0, i + out.outer.n, i)))
    return DeepArray(NestedArray(add(c.rows, rows, n=g.packing.total, r=len(g.trail), s=1), g), out.outer)


# -- joins, padding ---------------------------------------------------------------------------------------------------


@slices.cat_p.on(DeepArray)
def _(*xs: Any, dim: int, ns: Any) -> Any:
    k = next(x for x in xs if isinstance(x, DeepArray)).inner.geometry.k
    bad = next((x for x in xs if isinstance(x, ndarray) or x.ndim != xs[0].ndim), None)
    if bad is not None:
        raise ChainruleError(
            f"cat: nests of nests are joined with nests of nests, but one operand has the shape {list(bad.shape)}"
        )
    if dim + k >= 0:
        return lifted(slices.cat_p, xs, {"dim": dim, "ns": ns})
    sizes = zip(*[x.shape[-k:] for x in xs], strict=True)
    ragged = [any(isinstance(s, RaggedInt) or s != cs[0] for s in cs) for cs in sizes]
    xs = tuple([_ragged_in(x, ragged) for x in xs])
    counts = [x.counts for x in xs]
    if dim + k < -2:  # the axis of another map: the components stay as they are
        rows = slices.cat_p.bodies[NestedArray](*[x.inner for x in xs], dim=dim + 1, ns=ns)
        return DeepArray(rows, xs[0].outer)
    inner = _cat_components([x.inner for x in xs])
    if dim + k == -2:
        return DeepArray(inner, packing_of((RaggedInt(np.concatenate(counts)),), sum(map(len, counts))))
    if len({len(c) for c in counts}) > 1:
        raise ChainruleError(f"cat: the nests of nests have {[len(c) for c in counts]} components")
    order = np.argsort(np.concatenate([x.outer.owner for x in xs]), kind="stable")
    total = np.sum(counts, axis=0)
    return DeepArray(pick(inner, order), packing_of((RaggedInt(total),), len(total)))


def _ragged_in(x: Any, ragged: list[bool]) -> DeepArray:
    """A nest of components of equal sizes, or a nest of nests, as a nest of nests that is ragged in these dims of the inner components."""
    k, deep = len(ragged), isinstance(x, DeepArray)
    sizes = x.inner.geometry.columns if deep else x.shape[-k:]
    if deep and all((type(s) is RaggedInt) == r for s, r in zip(sizes, ragged, strict=True)):
        return x
    outer = x.outer if deep else x.geometry.packing
    cols = tuple(
        [
            RaggedInt(np.full(outer.total, s)) if r and type(s) is not RaggedInt else s
            for s, r in zip(sizes, ragged, strict=True)
        ]
    )
    g = geometry_of(cols, outer.total)
    return DeepArray(NestedArray(x.rows.reshape((*x.lead, *g.rows)), g), outer)


def padded_deep(x: DeepArray, value: float, size: tuple[int, ...] | None, pad: Any) -> ndarray:
    """The components at the corners of one array."""
    k = x.inner.geometry.k
    rows = pad(x.inner, value, None if size is None else size[len(size) - k :])
    mid = NestedArray(rows, Geometry(x.outer, rows.shape[rows.ndim - k :]))
    return pad(mid, value, None if size is None else size[len(size) - k - 1 :])


def unpadded_deep(a: ndarray, full: tuple[Any, ...], unpad: Any) -> DeepArray:
    """The corners of an array as a nest of nests of the shape `full` (without leading axes)."""
    like = deep_of(np.zeros(_count(full, 1)), full)
    k = like.inner.geometry.k
    mid = unpad(a, Geometry(like.outer, a.shape[a.ndim - k :]))
    return DeepArray(unpad(mid.rows, like.inner.geometry), like.outer)
