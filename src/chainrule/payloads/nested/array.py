"""The nested payload: one buffer of packed rows and the geometry of the components.

What the bodies of ops on it share stands here. Nothing loops over components: reductions are segment reductions,
broadcasting repeats rows, scans and products run on a few buckets of similar lengths.

The buffer has shape ``[*lead, rows, *trail]``. Leading axes are those of a vmap over something other than the components
(the rows of a Jacobian, an ensemble of weights): all such nests have one geometry.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.errors import ChainruleError
from ...kernels.pool import empty
from .sizes import Geometry, Nest, RaggedInt, geometry_of, is_ragged

ndarray = np.ndarray
# Functions whose result has the type of their (equal) arguments: large results are written to buffers that are used again,
# since fresh memory costs more than the arithmetic.
KEEPING = frozenset((np.add, np.subtract, np.multiply, np.negative, np.maximum, np.minimum, np.square))
LARGE = 1 << 15


class NestedArray:
    """Components of different sizes in one buffer: ``rows[*lead, total, *trail]`` and a :class:`Geometry`."""

    __slots__ = ("__weakref__", "geometry", "rows")
    is_nested = True
    base = None

    def __init__(self, rows: ndarray, geometry: Geometry) -> None:
        self.rows, self.geometry = rows, geometry

    @property
    def axis(self) -> int:
        """The axis of the packed rows in the buffer, from the end."""
        return -len(self.geometry.trail) - 1

    @property
    def lead(self) -> tuple[int, ...]:
        """The sizes of the axes in front of the nesting dim."""
        return self.rows.shape[: self.rows.ndim - len(self.geometry.trail) - 1]

    @property
    def shape(self) -> tuple[Any, ...]:
        g, lead = self.geometry, self.lead
        if not lead:
            return g.shape
        return (*lead, *[s.moved(len(lead)) if type(s) is RaggedInt else s for s in g.shape])

    @property
    def ndim(self) -> int:
        return self.rows.ndim + self.geometry.u

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
        raise ChainruleError(
            "a nested tensor has no strides: its components differ in size. Look at .values() and .offsets()"
        )

    @property
    def matrix(self) -> ndarray | None:
        """The elements with all dims but the last as one, where the last is uniform."""
        trail = self.geometry.trail
        return self.rows.reshape(-1, trail[-1]) if trail and trail[-1] else None

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

    def components(self) -> list[ndarray]:
        """The components as arrays that share the buffer."""
        g, p = self.geometry, self.geometry.packing
        if self.lead:
            return [c for batch in self.rows for c in NestedArray(batch, g).components()]
        offsets = p.offsets.tolist()
        rows = self.rows
        if g.u == 1:
            return [rows[a:b] for a, b in pairwise(offsets)]
        sizes = p.sizes.tolist()
        return [
            self.rows[a:b].reshape((*s, *g.trail)) for a, b, s in zip(offsets[:-1], offsets[1:], sizes, strict=True)
        ]

    def numpy(self) -> list[ndarray]:
        """The components as a list of arrays, which is what a nested tensor is in NumPy."""
        return self.components()

    def tolist(self) -> list[Any]:
        return [c.tolist() for c in self.components()]

    def __len__(self) -> int:
        return int(self.shape[0])

    def __reduce__(self) -> Any:
        c = self.geometry.columns
        return _rebuild, (self.rows, self.geometry.n, tuple(s.values if type(s) is RaggedInt else s for s in c))

    def __deepcopy__(self, memo: Any) -> NestedArray:
        return self.copy()

    def _no_array(self) -> ndarray:
        raise ChainruleError(
            "a nested tensor is not one array: write [c.numpy() for c in x.unbind()] for a list of arrays, x.values().numpy() "
            "for the packed rows, or x.to_padded_tensor(0.0).numpy()"
        )

    def text(self) -> str:
        """The components as they print, one below the other."""
        from ...core.printing import component_texts

        parts = ",\n  ".join(component_texts(self.components()))
        return f"[\n  {parts}\n]" if parts else "[]"


def _rebuild(rows: ndarray, n: int, columns: tuple[Any, ...]) -> NestedArray:
    return NestedArray(rows, geometry_of(tuple(RaggedInt(c) if isinstance(c, ndarray) else c for c in columns), n))


def pack(rows: Any, shape: tuple[Any, ...], n: int, lead: tuple[int, ...] = ()) -> Any:
    """Rows as a nest of `n` components of sizes `shape`, or as an ordinary array where nothing is ragged."""
    if not is_ragged(shape):
        return np.ascontiguousarray(rows).reshape((*lead, n, *shape))
    g = geometry_of(shape, n)
    return NestedArray(np.ascontiguousarray(rows).reshape((*lead, *g.rows)), g)


def count_of(shape: tuple[Any, ...]) -> int:
    """The number of components that a ragged shape speaks of."""
    return next(len(s.values) for s in shape if type(s) is RaggedInt)


def nest_at(full: tuple[Any, ...]) -> int:
    """Where the nesting dim stands in a ragged shape: the ragged sizes in it know."""
    for i, s in enumerate(full):
        if type(s) is Nest:
            return i
    n = count_of(full)
    at = max(s.at for s in full if type(s) is RaggedInt)
    if at < len(full) and type(full[at]) is not RaggedInt and full[at] == n:
        return at
    raise ChainruleError(
        f"the shape {list(full)} has ragged sizes of {n} components, but no dim of that size in front of them"
    )


def flat(x: Any, lead: int = 0) -> ndarray:
    """The elements in order, after `lead` leading axes."""
    a = x.rows if isinstance(x, NestedArray) else x
    return (
        a.reshape((*a.shape[:lead], -1))
        if a.size or not lead
        else a.reshape((*a.shape[:lead], int(np.prod(a.shape[lead:]))))
    )


# -- pointwise: operands brought to packed rows -------------------------------------------------------------------------


def target_shape(shapes: list[tuple[Any, ...]], what: str) -> tuple[Any, ...]:
    """The component shape that component shapes broadcast to."""
    k = max(len(s) for s in shapes)
    out: list[Any] = [1] * k
    for s in shapes:
        for d in range(1, len(s) + 1):
            a, b = out[-d], s[-d]
            if (type(b) is not RaggedInt and b == 1) or a is b:
                continue
            if type(a) is not RaggedInt and a == 1:
                out[-d] = b
                continue
            if not np.array_equal(*np.broadcast_arrays(a.values if type(a) is RaggedInt else a, b.values if type(b) is RaggedInt else b)
                                  if type(a) is not type(b) or type(a) is not RaggedInt else (a.values, b.values)):  # fmt: skip
                raise ChainruleError(differ(a, b, k - d, what))
            if type(b) is RaggedInt and type(a) is not RaggedInt:
                out[-d] = b
    return tuple(out)


def differ(a: Any, b: Any, d: int, what: str) -> str:
    """The message that names the first component in which two sizes of dim `d` differ."""
    va, vb = (np.asarray(v.values if type(v) is RaggedInt else v) for v in (a, b))
    if va.ndim and vb.ndim and va.shape != vb.shape:
        return f"{what}: the nests have {len(va)} and {len(vb)} components"
    bad = np.broadcast_to(va != vb, np.broadcast_shapes(va.shape, vb.shape))
    at = int(np.argmax(bad)) if bad.ndim else 0
    sa, sb = (v[at] if v.ndim else v for v in (va, vb))
    return (
        f"{what}: component {at} differs in dimension {d + 1}: sizes {sa} and {sb}. The operands must have components of the same "
        f"sizes, or size 1 where they are to be repeated"
        + (
            "; a ragged dim is not repeated, even where all its sizes are 1: write x[:, 0].unsqueeze(1) for x[:, :1]"
            if any(v.ndim and (v == 1).all() for v in (va, vb))
            else ""
        )
    )


def spread_rows(x: Any, g: Geometry, what: str = "broadcast") -> Any:
    """An operand broadcast to the packed rows of `g`: shape ``[*lead, total or 1, *trail or ones]``."""
    if isinstance(x, NestedArray):
        h = x.geometry
        if (
            h.packing is g.packing
            and len(h.trail) == len(g.trail)
            and all(m in (1, n) for m, n in zip(h.trail, g.trail, strict=True))
        ):
            return x.rows  # what differs broadcasts within a row
        return x.rows.reshape((*x.lead, *g.rows)) if h.same(g) else _repeat_nested(x, g, what)
    if not isinstance(x, ndarray) or x.ndim == 0:
        return x
    u, t = g.u, len(g.trail)
    if x.ndim <= t:
        return x.reshape((1,) * (t + 1 - x.ndim) + x.shape)
    # lead | nesting dim | u dims of rows | a row's shape
    tail = x.shape[x.ndim - t :]
    inner = x.shape[max(x.ndim - t - u, 0) : x.ndim - t]
    top = x.shape[max(x.ndim - t - u - 1, 0) : x.ndim - t - u] if x.ndim > t + u else ()
    lead = x.shape[: x.ndim - t - u - 1] if x.ndim > t + u else ()
    if top and top[0] not in (1, g.n):
        raise ChainruleError(
            f"{what}: a dense operand of shape {list(x.shape)} does not fit a nest of {g.n} components"
        )
    if all(m == 1 for m in inner):
        v = x.reshape((*lead, top[0] if top else 1, *tail))
        return v if not top or top[0] == 1 else v.take(g.packing.owner, axis=-t - 1)
    p = g.packing
    index: list[Any] = [p.owner if top[0] == g.n else np.zeros(p.total, np.int64)] if top else []
    for d, m in zip(range(u - len(inner), u), inner, strict=True):
        size = g.columns[d]
        if m == 1:
            index.append(np.zeros(p.total, np.int64))
        elif (size.values == m).all() if type(size) is RaggedInt else size == m:
            index.append(p.coordinates[d])
        else:
            raise ChainruleError(differ(size, m, d, what))
    return x[(*(slice(None),) * len(lead), *index)]


def _repeat_nested(x: NestedArray, g: Geometry, what: str) -> ndarray:
    """A nest with some sizes 1 (or fewer dims) repeated to a larger geometry."""
    h = x.geometry
    if h.n != g.n:
        raise ChainruleError(f"{what}: the nests have {h.n} and {g.n} components")
    target_shape([g.columns, h.columns], what)
    key = ("repeat", g.trail, h.trail, h.packing.columns)
    memo = g.packing.memo
    source = memo.get(key)
    if source is None:
        owner, coords = g.elements()
        one = [
            np.zeros_like(c) if type(s) is not RaggedInt and s == 1 else c
            for c, s in zip(coords[g.k - h.k :], h.columns, strict=True)
        ]
        source = memo[key] = h.element_at(owner, one)
    y = flat(x, len(x.lead)).take(source, axis=-1)
    return y.reshape((*x.lead, *g.rows))


def component_shape(v: Any, k: int) -> tuple[Any, ...]:
    """The sizes of an operand in the dims of a component."""
    if isinstance(v, NestedArray):
        return v.geometry.columns
    return v.shape[max(v.ndim - k, 0) :]


def pointwise_nested(fn: Callable[..., Any], vals: list[Any], name: str) -> Any:
    """A pointwise body on operands of which at least one is nested."""
    first = next(v for v in vals if isinstance(v, NestedArray))
    g = first.geometry
    p, t = g.packing, len(g.trail)
    rows, sizes = [], set()
    for v in vals:
        if type(v) is NestedArray:
            if v.geometry.packing is not p or len(v.geometry.trail) != t:
                break
            sizes.add(v.geometry.trail)
            rows.append(v.rows)
        elif isinstance(v, ndarray) and v.ndim > t:
            break
        else:
            if isinstance(v, ndarray) and v.ndim:
                sizes.add(v.shape)
            rows.append(v)
    else:
        # Everything has the same packed rows: what differs broadcasts within a row.
        if len(sizes) == 1 or _within(sizes):
            same = len(sizes) == 1 or g.trail == np.broadcast_shapes(*sizes)
            y = (
                fn(*rows, out=empty(first.rows.shape, first.dtype))
                if same and fn in KEEPING and first.rows.size >= LARGE
                else fn(*rows)
            )
            trail = y.shape[y.ndim - t :]
            return NestedArray(y, g if trail == g.trail else Geometry(p, trail))
    k = max(v.geometry.k for v in vals if isinstance(v, NestedArray))
    # A dense operand with more dims than the components and the nesting dim grows them: [N, 3, ...] with a nest [N, j].
    g = geometry_of(
        target_shape([component_shape(v, k) for v in vals if isinstance(v, ndarray | NestedArray)], name), g.n
    )
    return _shaped(fn(*[spread_rows(v, g, name) for v in vals]), g)


def _within(sizes: set[tuple[int, ...]]) -> bool:
    try:
        np.broadcast_shapes(*sizes)
    except ValueError:
        return False
    return True


def _shaped(y: Any, g: Geometry) -> NestedArray:
    want = (*y.shape[: max(y.ndim - len(g.rows), 0)], *g.rows)
    return NestedArray(y if y.shape == want else np.broadcast_to(y, want).copy(), g)


# -- padding and groups of components ----------------------------------------------------------------------------------------


def padded(x: NestedArray, value: float = 0.0, size: tuple[int, ...] | None = None) -> ndarray:
    """The components at the corners of one array of the greatest sizes."""
    g, p = x.geometry, x.geometry.packing
    top = (*[int(v) for v in (p.sizes.max(0) if g.n else [c if type(c) is int else 0 for c in p.columns])], *g.trail)
    full = tuple(size[len(size) - g.k :]) if size is not None else top
    for d, (a, b) in enumerate(zip(full, top, strict=True)):
        if a < b:
            raise ChainruleError(
                f"to_padded_tensor: the output size {a} of dimension {d + 1} is less than the greatest component's {b}"
            )
    out: Any = np.full((*x.lead, g.n, *full), value, x.dtype) if value else np.zeros((*x.lead, g.n, *full), x.dtype)
    out[(..., p.owner, *p.coordinates, *[slice(0, m) for m in g.trail])] = x.rows
    return out


def unpad(a: Any, g: Geometry) -> NestedArray:
    """The components of geometry `g` read from the corners of an array."""
    p = g.packing
    rows = a[(..., p.owner, *p.coordinates, *[slice(0, m) for m in g.trail])]
    return NestedArray(np.ascontiguousarray(rows).reshape((*a.shape[: a.ndim - g.k - 1], *g.rows)), g)


def pick(x: Any, members: ndarray) -> NestedArray:
    """Some components of a nest."""
    g = x.geometry
    return NestedArray(x.rows.take(g.packing.rows_of(members), axis=x.axis), g.take(members))


def by_exact_size(g: Geometry) -> list[ndarray]:
    """The numbers of the components of each size that occurs."""
    memo = g.packing.memo
    found = memo.get("exact")
    if found is None:
        sizes = g.packing.sizes
        kinds, which = np.unique(
            sizes if g.u > 1 else sizes[:, 0] if g.u else np.zeros(g.n), axis=0, return_inverse=True
        )
        order = np.argsort(which.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(which.reshape(-1), minlength=len(kinds)))
        found = memo["exact"] = np.split(order, ends[:-1]) if g.n else []
    return found


def groups(g: Geometry, limit: int = 24) -> list[tuple[ndarray, tuple[int, ...]]]:
    """Components by size, with the greatest sizes of each group: exactly where few sizes occur, else in buckets."""
    memo = g.packing.memo
    found = memo.get(("groups", limit))
    if found is None:
        ragged = [d for d, c in enumerate(g.packing.columns) if type(c) is RaggedInt]
        sizes = g.packing.sizes
        key = sizes[:, ragged]
        kinds, which = np.unique(key, axis=0, return_inverse=True)
        if len(kinds) > limit:
            per = max(2, int(limit ** (1 / len(ragged))))
            cost = np.log2(key.astype(np.float64) + 1)
            low, high = cost.min(0), cost.max(0)
            bins = np.minimum(((cost - low) / np.where(high > low, high - low, 1) * per).astype(np.int64), per - 1)
            kinds, which = np.unique(bins, axis=0, return_inverse=True)
        order = np.argsort(which.reshape(-1), kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(which.reshape(-1), minlength=len(kinds)))[:-1]) if g.n else []
        found = memo["groups", limit] = [(m, tuple(int(v) for v in sizes[m].max(0))) for m in parts if len(m)]
    return found


def join(parts: list[tuple[ndarray, Any]], shape: tuple[Any, ...], n: int, d: Any, lead: tuple[int, ...] = ()) -> Any:
    """Components computed in padded groups put back in order, as a nest (or densely where nothing is ragged)."""
    none = (slice(None),) * len(lead)
    if not is_ragged(shape):
        out: Any = np.zeros((*lead, n, *[int(s) for s in shape]), d)
        for members, y in parts:
            out[(*none, members)] = y[(..., *[slice(0, int(s)) for s in shape])] if shape else y
        return out
    g = geometry_of(shape, n)
    p = g.packing
    rows: Any = np.zeros((*lead, *g.rows), d)
    for members, y in parts:
        at = p.rows_of(members)
        owner = np.repeat(np.arange(len(members)), p.counts[members])
        rows[(*none, at)] = y[(*none, owner, *[c[at] for c in p.coordinates], *[slice(0, m) for m in g.trail])]
    return NestedArray(rows, g)


__all__ = [
    "LARGE", "Nest", "NestedArray", "component_shape", "count_of", "differ", "flat", "groups", "join",
    "nest_at", "pack", "padded", "pick", "pointwise_nested", "spread_rows", "target_shape", "unpad",
]  # fmt: skip
