"""Nests of nests (documents of sentences of words): one nest of all inner components, and how many each outer one has.

An op that speaks of dims of the inner components runs on all of them as one nest, as it would under a map over them. What is left
once their ragged dims are gone is an ordinary nest, with the inner components as its rows. Only what reaches further (joining,
choosing, reductions over whole outer components) has a body of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import ChainruleError
from ...core.op import Op
from ...core.payload import Payload, register
from ...core.sizes import ragged_in
from ...core.tensor import Tensor
from .array import NestedArray, pointwise_nested
from .bodies import AXES, NESTED, _axes, own_ranks
from .deep_sizes import DeepInt, inner_size, is_deep
from .norm import by_spec, on_rows
from .sizes import Geometry, Nest, Packing, RaggedInt, _ones, geometry_of, packing_of, plain

ndarray = np.ndarray


class DeepArray:
    """The `inner` components of all outer ones as one nest, and the packing that says how many each outer one has."""

    __slots__ = ("__weakref__", "inner", "outer")
    is_nested = True
    base = None

    def __init__(self, inner: NestedArray, outer: Packing) -> None:
        self.inner, self.outer = inner, outer
        if not NESTED.deep:
            NESTED.deep.append(DEEP)

    @property
    def counts(self) -> ndarray:
        """How many inner components each outer one has."""
        return self.outer.counts

    @property
    def lead(self) -> tuple[int, ...]:
        return self.inner.lead

    @property
    def columns(self) -> tuple[Any, ...]:
        """The sizes of an outer component."""
        c = self.counts
        inner = self.inner.geometry.columns
        return (RaggedInt(c), *[DeepInt(s.values, c) if type(s) is RaggedInt else s for s in inner])

    @property
    def shape(self) -> tuple[Any, ...]:
        cols, lead = self.columns, self.lead
        own = tuple([s.moved(len(lead)) if isinstance(s, RaggedInt) else s for s in cols]) if lead else cols
        return (*lead, Nest(_ones(self.outer.n), cols), *own)

    @property
    def ndim(self) -> int:
        return self.inner.ndim + 1

    @property
    def rows(self) -> ndarray:
        return self.inner.rows

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.inner.dtype

    @property
    def itemsize(self) -> int:
        return self.inner.itemsize

    @property
    def size(self) -> int:
        return self.inner.size

    @property
    def strides(self) -> tuple[int, ...]:
        return self.inner.strides

    @property
    def real(self) -> DeepArray:
        return DeepArray(self.inner.real, self.outer)

    @property
    def imag(self) -> DeepArray:
        return DeepArray(self.inner.imag, self.outer)

    def astype(self, d: Any, copy: bool = True) -> DeepArray:
        return DeepArray(self.inner.astype(d, copy), self.outer)

    def copy(self, order: str = "C") -> DeepArray:
        return DeepArray(self.inner.copy(order), self.outer)

    def flattened(self) -> NestedArray:
        """The packed rows of all inner components of each outer one as one ragged dim."""
        p = self.inner.geometry.packing
        ends = p.offsets[self.outer.offsets]
        g = Geometry(packing_of((RaggedInt(np.diff(ends)),), self.outer.n), self.inner.geometry.trail)
        return NestedArray(self.inner.rows, g)

    def components(self) -> list[NestedArray]:
        """The outer components as nests."""
        g, p = self.inner.geometry, self.inner.geometry.packing
        out = []
        for a, b in zip(self.outer.offsets[:-1].tolist(), self.outer.offsets[1:].tolist(), strict=True):
            rows: Any = self.inner.rows
            part = rows[(..., slice(p.offsets[a], p.offsets[b]), *(slice(None),) * len(g.trail))]
            out.append(NestedArray(part, g.take(np.arange(a, b))))
        return out

    def numpy(self) -> list[list[ndarray]]:
        """The outer components as lists of arrays."""
        return [c.components() for c in self.components()]

    def tolist(self) -> list[Any]:
        return [c.tolist() for c in self.components()]

    def __len__(self) -> int:
        return int(self.shape[0])

    def __reduce__(self) -> Any:
        return _rebuild, (self.inner, self.counts)

    def __deepcopy__(self, memo: Any) -> DeepArray:
        return self.copy()

    def text(self) -> str:
        """The nests as they print, one below the other."""
        cs = self.components()
        shown = [c.text().replace("\n", "\n  ") for c in (cs if len(cs) <= 6 else [*cs[:3], *cs[-3:]])]
        if len(cs) > 6:
            shown.insert(3, "...")
        parts = ",\n  ".join(shown)
        return f"[\n  {parts}\n]" if parts else "[]"


def _rebuild(inner: NestedArray, counts: ndarray) -> DeepArray:
    if int(counts.sum()) != inner.geometry.n or (counts < 0).any():
        raise ChainruleError(
            f"a nest of nests of {counts.tolist()} components does not fit a nest of {inner.geometry.n}"
        )
    return DeepArray(inner, packing_of((RaggedInt(counts),), len(counts)))


def deep_of(rows: ndarray, full: tuple[Any, ...]) -> DeepArray:
    """Elements in order as a nest of nests of the shape `full`; leading axes in front of the nesting dim."""
    at = next(i for i, s in enumerate(full) if isinstance(s, RaggedInt))
    counts = full[at].values
    if not at or full[at - 1] != len(counts):
        raise ChainruleError(
            f"reshape: no dim stands between those of the outer and of the inner components of a nest of nests, as in {list(full)}"
        )
    g = geometry_of(tuple(map(inner_size, full[at + 1 :])), int(counts.sum()))
    return DeepArray(
        NestedArray(np.ascontiguousarray(rows).reshape((*full[: at - 1], *g.rows)), g),
        packing_of((RaggedInt(counts),), len(counts)),
    )


def joined(xs: tuple[Any, ...], full: tuple[Any, ...]) -> DeepArray:
    """Nests with the same leading axes as the components of a nest of nests of the shape `full`."""
    lead = xs[0].lead
    flats = [x.rows.reshape((*lead, int(np.prod(x.rows.shape[len(lead) :])))) for x in xs]
    return deep_of(np.concatenate(flats, axis=-1), (*lead, *full))


def deep_shape_of(shapes: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The shape of a nest of nests of these shapes; dims of the inner components that differ anywhere are ragged, or where none does those that are."""
    k = len(shapes[0])
    bad = next((i for i, s in enumerate(shapes) if len(s) != k), None)
    if bad is not None:
        raise ChainruleError(
            f"nested_tensor: all components must have the same number of dims; component 0 has {k} (shape {list(shapes[0])}), "
            f"component {bad} has {len(shapes[bad])} (shape {list(shapes[bad])})"
        )
    counts = np.array([int(s[0]) for s in shapes], np.int64)
    sizes = [
        np.concatenate([np.broadcast_to(plain(s[d]), (int(s[0]),)) for s in shapes]).astype(np.int64)
        for d in range(1, k)
    ]
    ragged = [bool((v != v[:1]).any()) for v in sizes]
    if not any(ragged):
        ragged = [any(type(s[d]) is RaggedInt for s in shapes) for d in range(1, k)]
    one = next((i for i, s in enumerate(shapes) if int(s[0])), 0)
    cols = [
        DeepInt(v, counts) if r else int(v[0]) if len(v) else int(shapes[one][d])
        for d, (v, r) in enumerate(zip(sizes, ragged, strict=True), 1)
    ]
    full = (RaggedInt(counts), *cols)
    return (Nest(_ones(len(shapes)), full), *full)


def lists_components(c: Any) -> bool:
    """Whether a list lists components: tensors or arrays with dims, or lists that make no array."""
    if not isinstance(c, list | tuple) or not len(c):
        return False
    if any(isinstance(v, Tensor | np.ndarray) for v in c):
        return all(isinstance(v, Tensor | np.ndarray | list | tuple) and (not hasattr(v, "ndim") or v.ndim) for v in c)
    if not all(isinstance(v, list | tuple) for v in c):
        return False
    return len({len(v) for v in c}) > 1 or any(map(lists_components, c))


def grouped(y: Any, outer: Packing, lead: int) -> Any:
    """A result for all inner components as one of the outer ones."""
    if isinstance(y, NestedArray):
        return DeepArray(y, outer)
    return NestedArray(np.ascontiguousarray(y), Geometry(outer, y.shape[lead + 1 :]))


def rows_of(v: Any, outer: Packing, k: int, what: str) -> Any:
    """An operand beside a nest of nests as the nest of all inner components (with `k` dims) takes it."""
    if isinstance(v, DeepArray):
        if v.outer is not outer and not np.array_equal(v.counts, outer.counts):
            raise ChainruleError(
                f"{what}: the nests of nests have {v.counts.tolist()} and {outer.counts.tolist()} components"
            )
        return v.inner
    if isinstance(v, NestedArray):
        g = v.geometry
        if g.u == 1 and np.array_equal(g.packing.counts, outer.counts):
            return v.rows
        raise ChainruleError(
            f"{what}: a nest of shape {list(v.shape)} does not fit a nest of nests with {outer.counts.tolist()} components"
        )
    return v


def _pointwise(fn: Callable[..., Any], vals: list[Any], name: str) -> Any:
    x = next(v for v in vals if isinstance(v, DeepArray))
    outer, k = x.outer, max(v.inner.geometry.k for v in vals if isinstance(v, DeepArray))
    return DeepArray(pointwise_nested(fn, [aligned(v, outer, k, name) for v in vals], name), outer)


def aligned(v: Any, outer: Packing, k: int, name: str) -> Any:
    """An operand that broadcasts against ``[*lead, components, inner components, k dims]``, for the nest of all inner components."""
    if isinstance(v, NestedArray) and v.ndim - len(v.lead) != k + 2:
        raise ChainruleError(
            f"{name}: a nest of shape {list(v.shape)} beside a nest of nests with {k + 2} dims; write x.unsqueeze(-1) for each dim that it lacks"
        )
    if not isinstance(v, ndarray) or v.ndim <= k:
        return rows_of(v, outer, k, name)
    at = v.ndim - k - 1
    if v.shape[at] != 1 or (at and v.shape[at - 1] not in (1, outer.n)):
        raise ChainruleError(
            f"{name}: a dense operand of shape {list(v.shape)} does not fit a nest of nests with {outer.counts.tolist()} components"
        )
    v = v.reshape((*v.shape[:at], *v.shape[at + 1 :]))
    return v if not at or v.shape[at - 1] == 1 else v.take(outer.owner, axis=at - 1)


def lifted(op: Op, vals: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """An op along dims of the inner components, on all of them as one nest."""
    deep = [v for v in vals if isinstance(v, DeepArray)]
    low = {n: _within(v) if n in op.sizes else v for n, v in kw.items()}
    if deep:
        outer = deep[0].outer
    else:
        counts = next(s.outer for n in op.sizes for s in ragged_in(kw.get(n)) if type(s) is DeepInt)
        outer = packing_of((RaggedInt(counts),), len(counts))
    axes = _axes(op, kw)
    k = max(
        [v.inner.geometry.k for v in deep] + [len(v) for n, v in low.items() if n in op.sizes and type(v) is tuple],
        default=0,
    )
    if deep and axes is not None and any(-k - 2 <= d < -k for d in axes):
        raise ChainruleError(
            f"{op.name}: along the dims of a nest of nests in front of those of the inner components (shape {list(deep[0].shape)}) is "
            f"not possible; take the last {k} dim{'s' * (k > 1)}, map over the nests, or join them: cat(x.unbind())"
        )
    if deep and axes is not None and any(d < -k for d in axes):
        # Axes of other maps, which stand in front of both nesting dims.
        low = {n: _in_front(v, k) if n in AXES else v for n, v in low.items()}
        if "old" in low:
            low["old"] = deep[0].inner.shape
    if deep and low.get("r", 0) > k:  # entries of such an axis: of the dims behind it one is no dim of the inner nest
        low["r"] -= 1
    ranks = _ranks(op, vals, low)
    xs = [
        rows_of(v, outer, k, op.name) if r is None else aligned(v, outer, r, op.name)
        for v, r in zip(vals, ranks, strict=True)
    ]
    y = NESTED.body_of(op, xs, low)(*xs, **low)
    if all(x is v for x, v in zip(xs, vals, strict=True)):
        return y  # nothing here differs between the inner components
    lead = max(len(v.lead) for v in vals if isinstance(v, DeepArray | NestedArray))
    if axes is not None and low.get("keepdim") is False:
        lead -= sum(d < -k - 2 for d in axes)
    lead = max(lead, *[x.ndim - r - 1 for x, r in zip(xs, ranks, strict=True) if r is not None], 0)
    return tuple([grouped(v, outer, lead) for v in y]) if isinstance(y, tuple) else grouped(y, outer, lead)


def _ranks(op: Op, vals: tuple[Any, ...], kw: dict[str, Any]) -> list[int | None]:
    """How many dims behind those of both nests each dense operand may have, where that is known: others stand in front of them."""
    ranks: list[int | None] = [None] * len(vals)
    # A nest beside nests of nests has one row for each inner component.
    dims = [
        v.inner.geometry.k
        if isinstance(v, DeepArray)
        else v.ndim - len(v.lead) - 2
        if isinstance(v, NestedArray)
        else None
        for v in vals
    ]
    if any(k is not None for k in dims):
        ranks = [*(own_ranks(op, dims, kw) or ranks)]
    return [r if isinstance(v, ndarray) else None for r, v in zip(ranks, vals, strict=True)]


def _in_front(dim: Any, k: int) -> Any:
    """Dims of a nest of nests as the nest of all inner components has them, which has one dim less in front of its `k`."""
    if isinstance(dim, tuple | list):
        return tuple([_in_front(d, k) for d in dim])
    return dim if dim >= -k else dim + 1


def _within(v: Any) -> Any:
    """Static sizes as the nest of all inner components has them: without the dims in front of these."""
    if type(v) is not tuple:
        return inner_size(v)
    front = max((i + 1 for i, s in enumerate(v) if type(s) is RaggedInt), default=0)
    return tuple(map(inner_size, v[front:]))


def _fused(op: Op, vals: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """A fused op of rows: on all rows where it gives nothing for all of them together, else by its body in plain ops."""
    x = next(v for v in vals if isinstance(v, DeepArray))
    nd = kw.get("nd")
    if nd is not None and nd not in op.spec.outs(**kw) and all(isinstance(v, DeepArray | ndarray) for v in vals):
        y = on_rows(op, [rows_of(v, x.outer, 0, op.name) for v in vals], {**kw, "rank": x.inner.ndim})
        if y is not None:
            return tuple([grouped(v, x.outer, len(x.lead)) for v in y])
    return by_spec(op, vals, kw)


def _speaks(s: Any) -> bool:
    """Whether an entry of static data is, or has, a size of a nest of nests."""
    return type(s) is DeepInt or (type(s) is slice and DeepInt in (type(s.start), type(s.stop)))


class Deep(Payload):
    """Nests of nests as what tensors hold."""

    array = DeepArray
    layout = "jagged"

    def body(self, op: Op) -> Any:
        declared = op.bodies.get(DeepArray)
        if declared is not None:
            return declared
        if op.form == "pointwise":
            fn: Any = op.body
            return lambda *vals, **kw: _pointwise((lambda *r: fn(*r, **kw)) if kw else fn, list(vals), op.name)
        if op.form == "fused":
            return lambda *vals, **kw: _fused(op, vals, kw)
        return lambda *vals, **kw: lifted(op, vals, kw)

    def concerns(self, op: Op, vals: Any, kw: dict[str, Any]) -> bool:
        """Whether an op on nests has nests of nests among its operands, or makes one."""
        if any(type(v) is DeepArray for v in vals):
            return True
        for n in op.sizes:
            v = kw.get(n)
            if (
                type(v) is DeepInt
                or (type(v) is tuple and any(map(_speaks, v)))
                or (type(v) is Nest and is_deep(v.columns or ()))
            ):
                return True
        return False

    def asarray(self, like: Any, x: Any, dtype: np.dtype[Any]) -> Any:
        return x if type(x) in (DeepArray, NestedArray) else np.asarray(x, dtype)

    def write(self, target: Any, value: Any) -> bool:
        return False

    def numpy(self, x: Any) -> Any:
        return x.numpy()


DEEP = register(Deep())
DeepInt.payload = DEEP

from . import deep_reduce, deep_shape  # noqa: E402, F401
