"""The nested payload: one buffer of packed rows and the geometry of the components.

Bodies of the structural primitives on it stand here. None of them loops over components: reductions are segment reductions,
broadcasting repeats rows, matrix products run on a few buckets of similar lengths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.errors import ChainruleError, missing
from ..core.op import Op
from ..core.tensor import PAYLOADS
from .ragged import Geometry, RaggedInt, geometry_of, is_ragged

ndarray = np.ndarray


class NestedArray:
    """Components of different sizes in one buffer: ``rows[total, *trail]`` and a :class:`Geometry`."""

    __slots__ = ("__weakref__", "geometry", "rows")
    is_nested = True
    base = None

    def __init__(self, rows: ndarray, geometry: Geometry) -> None:
        self.rows, self.geometry = rows, geometry

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.geometry.shape

    @property
    def ndim(self) -> int:
        return self.geometry.k + 1

    @property
    def dtype(self) -> np.dtype:
        return self.rows.dtype

    @property
    def itemsize(self) -> int:
        return self.rows.itemsize

    @property
    def size(self) -> int:
        return self.rows.size

    @property
    def strides(self) -> tuple[int, ...]:
        raise ChainruleError("a nested tensor has no strides: its components differ in size. Look at .values() and .offsets()")

    def astype(self, d: Any, copy: bool = True) -> NestedArray:
        return NestedArray(self.rows.astype(d, copy=copy), self.geometry)

    def copy(self, order: str = "C") -> NestedArray:
        return NestedArray(self.rows.copy(), self.geometry)

    @property
    def real(self) -> NestedArray:
        return NestedArray(self.rows.real, self.geometry)

    @property
    def imag(self) -> NestedArray:
        return NestedArray(self.rows.imag, self.geometry)

    def filled(self, make: Callable[..., Any], d: Any) -> NestedArray:
        """A nest of the same geometry whose buffer ``make(shape, dtype)`` makes."""
        return NestedArray(make(self.rows.shape, d), self.geometry)

    def components(self) -> list[ndarray]:
        """The components as arrays that share the buffer."""
        g = self.geometry
        flat, width = self.rows.reshape(-1), int(np.prod(g.trail))
        return [flat[a * width : b * width].reshape(tuple(s)) for a, b, s in zip(g.offsets[:-1], g.offsets[1:], g.sizes, strict=True)]

    def __reduce__(self) -> Any:
        return _rebuild, (self.rows, self.geometry.sizes, self.geometry.ragged, self.geometry.template)

    def __repr__(self) -> str:
        from ..core.printing import array_text

        parts = ",\n  ".join(array_text(c.astype(np.float32) if c.dtype in dt.HALVES else c, 2) for c in self.components())
        name = dt.FROM_NP[self.dtype]
        note = "" if name in (dt.get_default_dtype(), dt.int64, dt.bool_) else f", dtype={name}"
        return f"nested_tensor([\n  {parts}\n]{note})"


def _rebuild(rows: ndarray, sizes: ndarray, ragged: tuple[bool, ...], template: tuple[int, ...]) -> NestedArray:
    return NestedArray(rows, Geometry(sizes, ragged, template))


def pack(rows: Any, shape: tuple[Any, ...], n: int) -> Any:
    """Rows as a nest of `n` components of sizes `shape`, or as an ordinary array where nothing is ragged."""
    if not is_ragged(shape):
        return np.ascontiguousarray(rows).reshape((n, *shape))
    g = geometry_of(shape, n)
    return NestedArray(np.ascontiguousarray(rows).reshape((g.total, *g.trail)), g)


def nest_of(shape: tuple[Any, ...]) -> int:
    """The number of components that a ragged shape speaks of."""
    return next(len(s.values) for s in shape if type(s) is RaggedInt)


# -- pointwise: operands brought to packed rows -------------------------------------------------------------------------


def target_shape(shapes: list[tuple[Any, ...]], what: str) -> tuple[Any, ...]:
    """The component shape that component shapes broadcast to."""
    k = max(len(s) for s in shapes)
    out: list[Any] = [1] * k
    for s in shapes:
        for d in range(1, len(s) + 1):
            a, b = out[-d], s[-d]
            if type(b) is int and b == 1 or a == b:
                continue
            if type(a) is int and a == 1:
                out[-d] = b
                continue
            raise ChainruleError(_differ(a, b, k - d, what))
    return tuple(out)


def _differ(a: Any, b: Any, d: int, what: str) -> str:
    va, vb = (np.asarray(v.values if type(v) is RaggedInt else v) for v in (a, b))
    if va.ndim and vb.ndim and va.shape != vb.shape:
        return f"{what}: the nests have {len(va)} and {len(vb)} components"
    bad = np.broadcast_to(va != vb, np.broadcast_shapes(va.shape, vb.shape))
    at = int(np.argmax(bad)) if bad.ndim else 0
    sa, sb = (v[at] if v.ndim else v for v in (va, vb))
    return (
        f"{what}: component {at} differs in dimension {d + 1}: sizes {sa} and {sb}. The operands must have components of the same "
        f"sizes, or size 1 where they are to be repeated"
    )


def spread_rows(x: Any, g: Geometry, what: str = "broadcast") -> Any:
    """An operand broadcast to the packed rows of `g`: shape ``[total or 1, *trail or ones]``."""
    if isinstance(x, RaggedInt):
        return x.values[g.owner].reshape((-1, *(1,) * len(g.trail)))
    if isinstance(x, NestedArray):
        if x.geometry.same(g):
            return x.rows
        return _repeat_nested(x, g, what)
    if not isinstance(x, ndarray) or x.ndim == 0:
        return x
    u, t = g.ragged_until, len(g.trail)
    if x.ndim <= t:
        return x.reshape((1,) * (t + 1 - x.ndim) + x.shape)
    lead, tail = x.shape[: x.ndim - t], x.shape[x.ndim - t :]
    if x.ndim == g.k + 1:
        if lead[0] not in (1, g.n):
            raise ChainruleError(f"{what}: a dense operand of shape {x.shape} does not fit a nest of {g.n} components")
        if all(m == 1 for m in lead[1:]):
            v = x.reshape((lead[0], *tail))
            return v if lead[0] == 1 else v[g.owner]
        index: list[Any] = [g.owner if lead[0] == g.n and lead[0] != 1 else np.zeros(g.total, np.int64)]
        dims = range(u)
        lead = lead[1:]
    else:
        index, dims = [], range(u - len(lead), u)
        if all(m == 1 for m in lead):
            return x.reshape((1, *tail))
    for d, m in zip(dims, lead, strict=True):
        if m == 1:
            index.append(np.zeros(g.total, np.int64))
        elif g.columns[d] == m:
            index.append(g.coordinates[d])
        else:
            raise ChainruleError(_differ(g.columns[d], m, d, what))
    return x[tuple(index)]


def _repeat_nested(x: NestedArray, g: Geometry, what: str) -> ndarray:
    """A nest with some sizes 1 (or fewer dims) repeated to a larger geometry."""
    h = x.geometry
    if h.n != g.n:
        raise ChainruleError(f"{what}: the nests have {h.n} and {g.n} components")
    pad = g.k - h.k
    target_shape([g.columns, h.columns], what)
    elements = _element_view(g)
    coords = elements[1][pad:]
    at = np.zeros(len(elements[0]), np.int64)
    for d, c in enumerate(coords):
        size = h.sizes[elements[0], d]
        at = at * size + np.where(size == 1, 0, c)
    flat = x.rows.reshape(-1)
    starts = h.offsets[:-1] * int(np.prod(h.trail))
    return flat[starts[elements[0]] + at].reshape((g.total, *g.trail))


def _element_view(g: Geometry) -> tuple[ndarray, list[ndarray]]:
    """Owner and coordinates of every single element."""
    width = int(np.prod(g.trail))
    owner = np.repeat(g.owner, width)
    coords = [np.repeat(c, width) for c in g.coordinates]
    inner = np.indices(g.trail).reshape(len(g.trail), -1) if g.trail else np.zeros((0, 1), np.int64)
    return owner, [*coords, *[np.tile(i, g.total) for i in inner]]


def pointwise_nested(fn: Callable[..., Any], vals: list[Any], name: str) -> Any:
    """A pointwise body on operands of which at least one is nested (or a ragged size)."""
    nests = [v.geometry for v in vals if isinstance(v, NestedArray)]
    if not nests:
        # A dense [components, ...] operand with a ragged size: one number for each component.
        k = max(v.ndim for v in vals if isinstance(v, ndarray))
        full = [v.values.reshape((-1, *(1,) * (k - 1))) if isinstance(v, RaggedInt) else v for v in vals]
        d = next(v.dtype for v in vals if isinstance(v, ndarray))
        return fn(*[v.astype(d) if isinstance(v, ndarray) and v.dtype.kind == "i" and d.kind in "fc" else v for v in full])
    g = nests[0]
    comps = [h.columns for h in nests]
    comps += [v.shape if v.ndim <= g.k else v.shape[1:] for v in vals if isinstance(v, ndarray) and v.ndim]
    if any(c != g.columns for c in comps):
        g = geometry_of(target_shape(comps, name), g.n)
    first = next(v for v in vals if isinstance(v, NestedArray)).dtype
    rows = [spread_rows(v, g, name) for v in vals]
    rows = [r.astype(first) if isinstance(v, RaggedInt) else r for r, v in zip(rows, vals, strict=True)]
    y = fn(*rows)
    want = (g.total, *g.trail)
    return NestedArray(y if y.shape == want else np.broadcast_to(y, want).copy(), g)


# -- reductions: segments of rows -----------------------------------------------------------------------------------------


class Segments:
    """How reducing some dims groups the packed rows: an order, where groups start, and what is left."""

    def __init__(self, g: Geometry, dims: tuple[int, ...]) -> None:
        k, u = g.k, g.ragged_until
        pos = {d + k for d in dims}
        self.inner = tuple(d - k for d in pos if d >= u)
        outer = sorted(d for d in pos if d < u)
        keep = [d for d in range(u) if d not in outer]
        self.sizes = np.array(g.sizes)
        self.sizes[:, sorted(pos)] = 1
        kept = g.sizes[:, keep].prod(1, dtype=np.int64) if keep else np.ones(g.n, np.int64)
        self.count = int(kept.sum())
        self.order: ndarray | None = None
        self.trivial = not outer
        if self.trivial:
            self.lengths = np.ones(g.total, np.int64)
            return
        reduced = g.sizes[:, outer].prod(1, dtype=np.int64)
        self.lengths = np.repeat(reduced, kept)
        if outer != list(range(u - len(outer), u)):
            starts = np.concatenate([[0], np.cumsum(kept)])[:-1]
            at = np.zeros(g.total, np.int64)
            for d in keep:
                at = at * g.sizes[g.owner, d] + g.coordinates[d]
            self.group = starts[g.owner] + at
            self.order = np.argsort(self.group, kind="stable")

    @property
    def starts(self) -> ndarray:
        return np.concatenate([[0], np.cumsum(self.lengths)])[:-1]

    def spread(self, per_group: ndarray) -> ndarray:
        """A value for each group, repeated for its rows in their original order."""
        if self.trivial:
            return per_group
        return per_group[self.group] if self.order is not None else np.repeat(per_group, self.lengths, axis=0)

    def reduce(self, ufunc: Any, rows: ndarray, identity: Any, dtype: Any = None) -> ndarray:
        """One reduced row for each group; empty groups get the identity."""
        if self.inner:
            rows = ufunc.reduce(rows, axis=self.inner, keepdims=True, dtype=dtype)
        if self.trivial:
            return rows
        if self.order is not None:
            rows = rows[self.order]
        out = np.full((len(self.lengths), *rows.shape[1:]), identity, rows.dtype if dtype is None else dtype)
        full = self.lengths > 0
        if full.any():
            # reduceat returns an element, not the identity, for an empty segment: leave those out.
            out[full] = ufunc.reduceat(rows, self.starts[full], axis=0, dtype=dtype)
        return out


def _segments(g: Geometry, dims: tuple[int, ...]) -> Segments:
    cache = g.__dict__.setdefault("_segments", {})
    s = cache.get(dims)
    if s is None:
        s = cache[dims] = Segments(g, dims)
    return s


def reduced(x: NestedArray, rows: ndarray, dims: tuple[int, ...], keepdim: bool) -> Any:
    """Reduced rows as a nest, or as an ordinary array where no ragged dim is left."""
    g, k = x.geometry, x.geometry.k
    cols = tuple(1 if d - k in dims else c for d, c in enumerate(g.columns))
    if not keepdim:
        cols = tuple(c for d, c in enumerate(cols) if d - k not in dims)
    return pack(rows, cols, g.n)


def reduce_nested(ufunc: Any, x: NestedArray, dim: tuple[int, ...], keepdim: bool, identity: Any, old: Any = None) -> Any:
    """A ufunc reduction over dims of the components, and over the nesting dim where it is listed."""
    k = x.geometry.k
    over_nest = -(k + 1) in dim
    inside = tuple(d for d in dim if d != -(k + 1))
    d = x.dtype
    work = np.float32 if d in dt.HALVES else np.int64 if d.kind in "iub" and ufunc in (np.add, np.multiply) else None
    if over_nest and len(inside) == k:
        y = ufunc.reduce(x.rows, axis=None, dtype=work) if x.rows.size or identity is None else np.asarray(identity, work or d)
        y = np.asarray(y).reshape((1,) * (k + 1) if keepdim else ())
        return y.astype(d) if d in dt.HALVES else y
    if over_nest and not inside:
        if any(type(c) is RaggedInt for c in x.geometry.columns):
            raise ChainruleError("a reduction over the nesting dim alone needs components of equal sizes; reduce over the ragged dims too, or pad first")
        y = ufunc.reduce(x.rows.reshape(x.shape), axis=0, keepdims=keepdim, dtype=work)
        return y.astype(d) if d in dt.HALVES else y
    s = _segments(x.geometry, inside)
    rows = s.reduce(ufunc, x.rows, identity, work)
    y = reduced(x, rows, inside, keepdim)
    y = y.astype(d) if d in dt.HALVES else y
    if over_nest:
        if isinstance(y, NestedArray):
            raise ChainruleError("a reduction over the nesting dim needs the ragged dims to be reduced too")
        y = ufunc.reduce(y, axis=0, keepdims=keepdim)
    return y


# -- padding and buckets --------------------------------------------------------------------------------------------------


def padded(x: NestedArray, value: float = 0.0, size: tuple[int, ...] | None = None) -> ndarray:
    """The components at the corners of one array of the greatest sizes."""
    g = x.geometry
    top = tuple(int(v) for v in (g.sizes.max(0) if g.n else g.template))
    full = tuple(size[1:]) if size is not None else top
    for d, (a, b) in enumerate(zip(full, top, strict=True)):
        if a < b:
            raise ChainruleError(f"to_padded_tensor: the output size {a} of dimension {d + 1} is less than the greatest component's {b}")
    out = np.full((g.n, *full), value, x.dtype)
    inner = tuple(slice(0, m) for m in g.trail)
    out[(g.owner, *g.coordinates, *inner)] = x.rows
    return out


def unpad(a: ndarray, g: Geometry) -> NestedArray:
    """The components of geometry `g` read from the corners of an array."""
    inner = tuple(slice(0, m) for m in g.trail)
    return NestedArray(np.ascontiguousarray(a[(g.owner, *g.coordinates, *inner)]).reshape((g.total, *g.trail)), g)


def buckets(lengths: ndarray, most: int = 12) -> list[ndarray]:
    """Components grouped by similar length, so that padding within a group wastes little: at most `most` groups."""
    if not len(lengths):
        return []
    order = np.argsort(lengths, kind="stable")
    cost = lengths[order].astype(np.float64) + 1
    edges = np.searchsorted(np.log2(cost), np.linspace(np.log2(cost[0]), np.log2(cost[-1]), most + 1)[1:-1], side="right")
    return [part for part in np.split(order, np.unique(edges)) if len(part)]


def pick(x: Any, members: ndarray) -> Any:
    """Some components of a nest (or of a dense batch)."""
    if not isinstance(x, NestedArray):
        return x[members]
    g = x.geometry
    counts = g.counts[members]
    rows = np.repeat(g.offsets[:-1][members] - np.concatenate([[0], np.cumsum(counts)])[:-1], counts) + np.arange(int(counts.sum()))
    return NestedArray(x.rows[rows], g.take(members))


def join(parts: list[tuple[ndarray, Any]], shape: tuple[Any, ...], n: int, d: Any) -> Any:
    """Components computed in groups put back in order, as a nest (or densely where nothing is ragged)."""
    if not is_ragged(shape):
        out = np.empty((n, *shape), d)
        for members, y in parts:
            out[members] = y
        return out
    g = geometry_of(shape, n)
    rows = np.empty((g.total, *g.trail), d)
    for members, y in parts:
        counts = g.counts[members]
        at = np.repeat(g.offsets[:-1][members] - np.concatenate([[0], np.cumsum(counts)])[:-1], counts) + np.arange(int(counts.sum()))
        trail = tuple(slice(0, m) for m in g.trail)
        coords = [c[at] for c in g.coordinates]
        owner = np.repeat(np.arange(len(members)), counts)
        rows[at] = y[(owner, *coords, *trail)]
    return NestedArray(rows, g)


def body_for(op: Op) -> Callable[..., Any]:
    """The body of an op on nests: the one declared with ``op.on(NestedArray)``, or for pointwise ops its own on packed rows."""
    declared = op.impls.get(NestedArray)
    if declared is not None:
        return declared
    if op.form == "pointwise":
        fn = op.fn  # type: ignore[attr-defined]
        return lambda *vals, **kw: pointwise_nested((lambda *rows: fn(*rows, **kw)) if kw else fn, list(vals), op.name)
    raise missing(op.name, "body for nested tensors", f"@{op.name}.on(NestedArray)")


PAYLOADS[NestedArray] = body_for
PAYLOADS[RaggedInt] = body_for

__all__ = [
    "NestedArray", "Segments", "buckets", "join", "nest_of", "pack", "padded", "pick", "pointwise_nested", "reduce_nested",
    "reduced", "spread_rows", "unpad",
]  # fmt: skip
