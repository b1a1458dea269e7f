"""How an op runs on nested tensors: by the body declared for them, on packed rows, or once for each size that occurs.

A declared body (``op.on(NestedArray)``) comes first. Without one, pointwise ops run on the packed rows, and so do ops whose
dims are all within a row. Any other op runs on the components of each size together: right for every op, and as fast as a
dense one where few sizes occur; ops that meet many sizes deserve a body of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import ChainruleError, missing
from ...core.op import Op
from ...core.payload import Payload, register
from ...ops.reduce import order as statistics
from .array import NestedArray, pack, pointwise_nested
from .sizes import Geometry, Nest, RaggedInt, is_ragged

ndarray = np.ndarray
AXES = ("dim", "dims", "dim1", "dim2", "axis")


class Nested(Payload):
    """Ragged arrays as what tensors hold."""

    array = NestedArray
    layout = "jagged"

    def __init__(self) -> None:
        self.deep: list[Any] = []  # the payload of nests of nests, once there is one

    def body_for(self, op: Op, vals: Any, kw: dict[str, Any]) -> Any:
        for deep in self.deep:
            if deep.concerns(op, vals, kw):
                return deep.body(op)
        return self.body_of(op, vals, kw)

    def body_of(self, op: Op, vals: Any, kw: dict[str, Any]) -> Any:
        """The body on nests that are no nests of nests."""
        if _in_front(op, vals, kw):
            return lambda *vals, **kw: _on_members(op, vals, kw, self.body(op))
        if "keepdim" in kw and len(vals) == 1 and _beside_members(vals[0], _axes(op, kw)):
            return lambda x, **kw: _over_members(op, x, kw, self.body(op))
        return self.body(op)

    def body(self, op: Op) -> Any:
        """The body of an op on nests: the declared one, or by its form."""
        declared = op.bodies.get(NestedArray)
        if declared is not None:
            return declared
        if op.form == "pointwise":
            fn: Any = op.body
            return lambda *vals, **kw: pointwise_nested(
                (lambda *rows: fn(*rows, **kw)) if kw else fn, list(vals), op.name
            )
        if op.form == "fused":
            return nested_norm.fused_body(op)
        return lambda *vals, **kw: generic(op, vals, kw)

    def asarray(self, like: Any, x: Any, dtype: np.dtype[Any]) -> Any:
        return x if type(x) is NestedArray else np.asarray(x, dtype)

    def write(self, target: Any, value: Any) -> bool:
        return False

    def numpy(self, x: Any) -> Any:
        return x.numpy()


NESTED = Nested()
register(NESTED)
RaggedInt.payload = NESTED


def _axes(op: Op, kw: dict[str, Any]) -> list[int] | None:
    """The dims that an op works along, counted from the end; None where it does not say."""
    if type(op.core) is list:
        return list(range(-max(op.core), 0))
    found = [kw[k] for k in AXES if k in kw]
    if not found:
        return None
    return [d for v in found for d in (v if isinstance(v, tuple | list) else (v,))]


# How many dims of its operands an op speaks of, as its batching rule has it, where that is not declared as `core`.
CORES: dict[str, Any] = {
    "take_rows": lambda r, s: (r + 1, s),
    "add_rows": lambda r, s: (r + s, s),
    "set_rows": lambda r, s: (r + 1, s, r + s),
    **dict.fromkeys(("conv", "conv_input", "conv_weight"), lambda geo: (geo.d + 2, geo.d + 2)),
}


def own_ranks(op: Op, dims: list[int | None], kw: dict[str, Any]) -> list[int] | None:
    """How many dims of each operand belong to a component, where nests (which have `dims`) meet dense operands; None where nothing says so."""
    core = op.core if type(op.core) is list else None
    if op.name in CORES:
        core = CORES[op.name](**{n: v for n, v in kw.items() if n != "n"})
    if core is not None:
        front = max(0, *[k - c for k, c in zip(dims, core, strict=False) if k is not None])
        return [c + front for c in core[: len(dims)]]
    return [max(k for k in dims if k is not None)] * len(dims) if any(n in AXES for n in kw) else None


def _in_front(op: Op, vals: Any, kw: dict[str, Any]) -> bool:
    """Whether an op works along axes in front of the nesting dim, which are those of other maps, and at most within rows beside."""
    nests = [v for v in vals if isinstance(v, NestedArray)]
    if not any(v.rows.ndim > len(v.geometry.trail) + 1 for v in nests):
        return False
    axes, g = _axes(op, kw), nests[0].geometry
    return (
        bool(axes)
        and min(axes) < -g.k - 1  # type: ignore[arg-type]
        and all(-v.ndim <= d < -g.k - 1 or d >= -len(g.trail) for d in axes for v in nests)  # type: ignore[union-attr]
        and all(v.geometry.same(g) for v in nests)
        and all(isinstance(v, NestedArray) or not np.ndim(v) for v in vals)
    )


def _on_members(op: Op, vals: tuple[Any, ...], kw: dict[str, Any], otherwise: Any) -> Any:
    """An op along axes in front of the nesting dim: on the packed rows, which are as good as one array there.

    What changes the number of dims in another way than a reduction (`stack`, `unfold`) knows of these axes itself.
    """
    nests = [v for v in vals if isinstance(v, NestedArray)]
    g = nests[0].geometry
    t, u = len(g.trail), g.u
    low = {n: _moved(v, t, u) if n in AXES else _rows_shape(v, g) for n, v in kw.items()}
    y = op.body(*[v.rows if isinstance(v, NestedArray) else v for v in vals], **low)
    axes = _axes(op, kw) or []
    gone = len(axes) if kw.get("keepdim") is False else 0
    inner = t - sum(d >= -t for d in axes) if gone else t
    ys = y if isinstance(y, tuple) else (y,)
    if any(v.ndim != nests[0].rows.ndim - gone or v.shape[v.ndim - inner - 1] != g.packing.total for v in ys):
        return otherwise(*vals, **kw)
    outs = tuple([NestedArray(v, Geometry(g.packing, v.shape[v.ndim - inner :])) for v in ys])
    return outs if isinstance(y, tuple) else outs[0]


def _beside_members(x: Any, axes: list[int] | None) -> bool:
    """Whether a reduction goes over axes in front of the nesting dim and over ragged dims behind it, and not over it."""
    if not isinstance(x, NestedArray) or not axes or x.rows.ndim == len(x.geometry.trail) + 1:
        return False
    g = x.geometry
    return min(axes) < -g.k - 1 and -g.k - 1 not in axes and any(-g.k <= d < -len(g.trail) for d in axes)


def _over_members(op: Op, x: NestedArray, kw: dict[str, Any], body: Any) -> Any:
    """A reduction of that kind: the axes in front become the last ones of the components."""
    axes: Any = _axes(op, kw)
    front = [d for d in axes if d < -x.geometry.k - 1]
    m, keepdim = len(front), kw["keepdim"]
    y = nested_shape.permute_nested(x, dims=(*[d for d in range(-x.ndim, 0) if d not in front], *front))
    kw = {**kw, "dim": (*[d - m for d in axes if d not in front], *range(-m, 0)), "keepdim": False}
    if "old" in kw:
        kw["old"] = y.shape[len(y.lead) :]
    z = body(y, **kw)
    full = tuple(1 if i - x.ndim in axes else s for i, s in enumerate(x.shape))
    return nested_shape.reshaped(z, full) if keepdim else z


def _moved(dim: Any, t: int, u: int) -> Any:
    """Dims of a nest as those of its packed rows, of which the last `t` are the same and the others stand `u` further back."""
    return tuple([_moved(d, t, u) for d in dim]) if isinstance(dim, tuple | list) else dim if dim >= -t else dim + u


def _rows_shape(v: Any, g: Geometry) -> Any:
    """The shape of packed rows, for that of a nest; other static data as they are."""
    if type(v) is not tuple or not is_ragged(v) or len(v) <= g.k:
        return v
    return (*v[: len(v) - g.k - 1], *g.rows)


def generic(op: Op, vals: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """An op without a body for nests: on packed rows where its dims allow it, else on the components of each size."""
    nests = [v for v in vals if isinstance(v, NestedArray)]
    if not nests or op.body is None:
        raise missing(op.name, "body for nested tensors", f"@{op.name}.on(NestedArray)")
    g = nests[0].geometry
    axes = _axes(op, kw)
    if axes is not None and any(d < -g.k for d in axes):
        return _over_nesting(op, vals, kw, tuple(axes))
    if (
        axes is not None
        and all(d + v.geometry.k >= v.geometry.u for d in axes for v in nests)
        and all(v.geometry.packing is g.packing for v in nests)
        and not _ragged_in(kw.values())
    ):
        if all(not isinstance(v, ndarray) or v.ndim <= len(g.trail) for v in vals):
            y = op.body(*[v.rows if isinstance(v, NestedArray) else v for v in vals], **kw)
            lead = _lead(nests)
            ys = [
                pack(v, (*g.packing.columns, *v.shape[len(lead) + 1 :]), g.n, lead)
                for v in (y if isinstance(y, tuple) else (y,))
            ]
            return tuple(ys) if isinstance(y, tuple) else ys[0]
    return by_size(op, vals, kw, nests)


def _lead(nests: list[NestedArray]) -> tuple[int, ...]:
    """The batch axes of a result of nests, some of which may be without: those are the same for every example."""
    lead = nests[0].lead
    return lead if all(v.lead == lead for v in nests) else np.broadcast_shapes(*[v.lead for v in nests])


def _over_nesting(op: Op, vals: tuple[Any, ...], kw: dict[str, Any], axes: tuple[int, ...]) -> Any:
    """An op along the nesting dim of components of equal sizes: as on one array; what keeps the shape is a nest again."""
    x = next(v for v in vals if isinstance(v, NestedArray))
    dense = [nested_segments.settled(v, axes, op.name) if isinstance(v, NestedArray) else v for v in vals]
    if any(isinstance(v, NestedArray) for v in dense):
        raise ChainruleError(
            f"{op.name}: the nesting dim of a nested tensor cannot be chosen here; take another dim, or to_padded_tensor() first"
        )
    y = op.body(*dense, **kw)
    shape = next(d.shape for v, d in zip(vals, dense, strict=True) if v is x)
    ys = [
        NestedArray(np.ascontiguousarray(v).reshape((*x.lead, *x.geometry.rows)), x.geometry) if v.shape == shape else v
        for v in (y if isinstance(y, tuple) else (y,))
    ]
    return tuple(ys) if isinstance(y, tuple) else ys[0]


def by_size(op: Op, vals: tuple[Any, ...], kw: dict[str, Any], nests: list[NestedArray], one: int | None = None) -> Any:
    """The op once for each combination of sizes that occurs, on all components that have it; `one` is a dim that it reduces to 1."""
    g, n = nests[0].geometry, nests[0].geometry.n
    dims = [v.geometry.k if isinstance(v, NestedArray) else None for v in vals]
    known = own_ranks(op, dims, kw)
    ranks = known or [g.k] * len(vals)
    lead = _lead(nests)
    if known:
        dense = [v.shape[: max(v.ndim - r - 1, 0)] for v, r in zip(vals, ranks, strict=True) if isinstance(v, ndarray)]
        lead = np.broadcast_shapes(lead, *dense)
    if any(v.geometry.n != n for v in nests):
        raise ChainruleError(f"{op.name}: the nests have {[v.geometry.n for v in nests]} components")
    # Static data may tell components apart that have the same size.
    key = np.concatenate(
        [*[v.geometry.packing.sizes for v in nests], *[r.values[:, None] for r in _ragged_in(kw.values())]], 1
    )
    kinds, which = np.unique(key, axis=0, return_inverse=True)
    which = which.reshape(-1)
    order = np.argsort(which, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(which, minlength=len(kinds)))[:-1]) if n else [np.zeros(0, np.int64)]
    results, many = [], False
    for members in parts:
        own = [_same_size(v, members, n, r) for v, r in zip(vals, ranks, strict=True)]
        y = op.body(*own, **{k: _one(v, members, n) for k, v in kw.items()})
        many = isinstance(y, tuple)
        results.append((members, y if isinstance(y, tuple) else (y,)))
    outs = [_gathered([(m, ys[j]) for m, ys in results], g, n, lead, one) for j in range(len(results[0][1]))]
    return tuple(outs) if many else outs[0]


def _ragged_in(values: Any) -> list[RaggedInt]:
    """The ragged numbers in static data."""
    found: list[RaggedInt] = []
    for v in values:
        if type(v) is RaggedInt:
            found.append(v)
        elif type(v) in (tuple, list):
            found += _ragged_in(v)
        elif type(v) is slice:
            found += _ragged_in((v.start, v.stop, v.step))
    return found


def _one(v: Any, members: ndarray, n: int) -> Any:
    """Static data as one group of components sees it."""
    if type(v) is RaggedInt:
        return v.values[members[0]].item() if len(members) else 0
    if type(v) is Nest:
        return len(members)
    if type(v) is tuple:
        return tuple(_one(s, members, n) for s in v)
    return slice(*[_one(s, members, n) for s in (v.start, v.stop, v.step)]) if type(v) is slice else v


def _same_size(v: Any, members: ndarray, n: int, k: int) -> Any:
    """The components of one size as one array."""
    if isinstance(v, NestedArray):
        p = v.geometry.packing
        sizes = p.sizes[members[0]] if len(members) else [c if type(c) is int else 0 for c in p.columns]
        rows = v.rows.take(p.rows_of(members), axis=v.axis)
        return rows.reshape((*v.lead, len(members), *[int(s) for s in sizes], *v.geometry.trail))
    if isinstance(v, ndarray) and v.ndim > k and v.shape[v.ndim - k - 1] == n:
        return v.take(members, axis=v.ndim - k - 1)
    return v


def _gathered(
    parts: list[tuple[ndarray, ndarray]], g: Any, n: int, lead: tuple[int, ...], one: int | None = None
) -> Any:
    """Results of groups of components of one size each, put together in order."""
    at = len(lead) + 1
    shapes = [y.shape[at:] for _, y in parts]
    alike = len(shapes[0]) == g.k
    cols: list[Any] = []
    for j in range(len(shapes[0])):
        if one is not None and j == one + g.k:
            cols.append(1)
            continue
        differs = any(s[j] != shapes[0][j] for s in shapes)
        mine = [c for c in g.columns if type(c) is RaggedInt]
        ragged = (
            type(g.columns[j]) is RaggedInt
            if alike
            else any(
                all(s[j] == c.values[m[0]] for (m, _), s in zip(parts, shapes, strict=True) if len(m)) for c in mine
            )
        )
        if differs or ragged:
            v = np.zeros(n, np.int64)
            for (m, _), s in zip(parts, shapes, strict=True):
                v[m] = s[j]
            cols.append(RaggedInt(v))
        else:
            cols.append(shapes[0][j])
    return assembled(parts, cols, n, lead)


def assembled(parts: list[tuple[ndarray, ndarray]], cols: list[Any], n: int, lead: tuple[int, ...]) -> Any:
    """Arrays ``[*lead, members, ...]`` of groups of components as one nest of sizes `cols`, or array where none is ragged."""
    first = parts[0][1]
    none = (slice(None),) * len(lead)
    if not is_ragged(cols):
        out: Any = np.empty((*lead, n, *cols), first.dtype)
        for m, y in parts:
            out[(*none, m)] = y
        return out
    empty = pack(
        np.zeros(
            (*lead, int(np.prod([c.values if type(c) is RaggedInt else np.full(n, c) for c in cols], axis=0).sum())),
            first.dtype,
        ),
        tuple(cols),
        n,
        lead,
    )
    p = empty.geometry.packing
    for m, y in parts:
        if len(m):
            at = p.rows_of(m)
            empty.rows[(*none, at)] = y.reshape((*lead, len(at), *empty.geometry.trail))
    return empty


from . import index as nested_index  # noqa: E402
from . import norm as nested_norm  # noqa: E402
from . import products as nested_products  # noqa: E402
from . import reduce as nested_reduce  # noqa: E402
from . import segments as nested_segments  # noqa: E402
from . import shape as nested_shape  # noqa: E402

BODIES = (nested_index, nested_products, nested_reduce, nested_shape)


def _chooses(p: Op, name: str) -> None:
    """The body of an op that finds one entry along a dim, which stays with size 1."""

    @p.on(NestedArray)
    def _(x: NestedArray, *, dim: int, **kw: Any) -> Any:
        g = x.geometry
        if not 0 <= dim + g.k < g.u:
            return generic(p, (x,), {"dim": dim, **kw})
        nested_segments.need_entries(x, (dim,), name)
        return (
            by_size(p, (x,), {"dim": dim, **kw}, [x], dim)
            if g.n
            else nested_segments.reduced(x, np.zeros((*x.lead, 0, *g.trail), np.int64), (dim,), True)
        )


for _p, _name in (
    (statistics.kth_index_p, "kthvalue"),
    (statistics.median_index_p, "median"),
    (statistics.nanmedian_index_p, "nanmedian"),
    (statistics.mode_index_p, "mode"),
):
    _chooses(_p, _name)
