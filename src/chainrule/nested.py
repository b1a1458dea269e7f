"""Nested tensors: components of different sizes in one tensor, through every transform.

>>> x = chainrule.nested.nested_tensor([[1.0, 2.0, 3.0], [4.0]])
>>> chainrule.func.grad(lambda x: (x * x).sum())(x)
nested_tensor([
  [2., 4., 6.],
  [8.]
])
>>> chainrule.vmap(lambda v: v.softmax(0).max())(x).shape
chainrule.Size([2])
"""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, repeat
from typing import Any

import numpy as np

from .core import dtypes as dt
from .core.declare import op
from .core.dispatch import CUT
from .core.errors import ChainruleError
from .core.registry import house, prop, public
from .core.tensor import Meta, Tensor
from .core.views import DETACH, Unseen, meta, root_of
from .ops.shape.slices import slice_p
from .payloads.nested import bodies as _bodies  # noqa: F401  (declares how ops run on nests)
from .payloads.nested.array import NestedArray, flat, padded, unpad
from .payloads.nested.deep import DeepArray, deep_of, deep_shape_of, joined, lists_components
from .payloads.nested.deep_shape import padded_deep, unpadded_deep
from .payloads.nested.deep_sizes import DeepInt, is_deep
from .payloads.nested.exchange import from_arrow, from_awkward, to_arrow, to_awkward
from .payloads.nested.graphs import segment_max, segment_mean, segment_min, segment_softmax, segment_sum
from .payloads.nested.sizes import Nest, Packing, RaggedInt, geometry_of, lazy, plain

__all__ = [
    "as_nested_tensor",
    "from_arrow",
    "from_awkward",
    "from_padded",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "owners",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_softmax",
    "segment_sum",
    "to_arrow",
    "to_awkward",
    "to_padded_tensor",
]


def _shape(shapes: list[tuple[int, ...]]) -> tuple[Any, ...]:
    """The shape of a nest of components of these shapes; dims that differ are ragged, and the first where none differs."""
    k = len(shapes[0]) if shapes else 1
    if len(set(map(len, shapes))) > 1:
        i, s = next((i, s) for i, s in enumerate(shapes) if len(s) != k)
        raise ChainruleError(
            f"nested_tensor: all components must have the same number of dims; component 0 has {k} (shape {list(shapes[0])}), "
            f"component {i} has {len(s)} (shape {list(s)})"
        )
    sizes = np.fromiter(chain.from_iterable(shapes), np.int64, len(shapes) * k).reshape(len(shapes), k)
    ragged = (sizes != sizes[:1]).any(0) if shapes else np.zeros(k, bool)
    if k and not ragged.any():
        ragged[0] = True
    if not k:
        raise ChainruleError(
            "nested_tensor: components must have at least one dim; stack() makes one tensor of numbers"
        )
    return geometry_of(
        tuple(RaggedInt(np.ascontiguousarray(sizes[:, d])) if ragged[d] else int(sizes[0, d]) for d in range(k)),
        len(shapes),
    ).shape


# -- joining components, differentiably ---------------------------------------------------------------------------------


@op("nest", view=True, sizes="shape")
def nest_p(values: Any, *, shape: tuple[Any, ...]) -> Any:
    """Flat values (the last axis) as a nest of components of sizes ``shape[1:]``."""
    g = geometry_of(shape[1:], int(shape[0]))
    return NestedArray(np.ascontiguousarray(values).reshape((*values.shape[:-1], *g.rows)), g)


@op("unnest", view=True, sizes="shape", linear="each")
def unnest_p(x: Any, *, shape: tuple[Any, ...]) -> Any:
    """The packed elements of a nest of shape `shape`, flat."""
    return flat(x, len(x.lead))


for _p in (nest_p, unnest_p):
    _p.on(NestedArray)(_p.body)
nest_p.on(DeepArray)(lambda values, *, shape: deep_of(values, (*values.shape[:-1], *shape)))
unnest_p.on(DeepArray)(lambda x, *, shape: flat(x.inner, len(x.lead)))
nest_p.jvp([lambda t, y, v, *, shape: nest_p.bind(t, shape=shape)])
nest_p.vjp([lambda g, y, v, *, shape: unnest_p.bind(g, shape=shape)])
unnest_p.vjp([lambda g, y, x, *, shape: nest_p.bind(g, shape=shape)])


@op("unbind_nest", sizes="shape")
def unbind_nest_p(x: Any, *, shape: tuple[Any, ...]) -> Any:
    """The components of a nest of shape `shape`, as many tensors."""
    if not x.lead:
        return tuple(x.components())
    g, lead = x.geometry, x.lead
    at, sizes = g.packing.offsets.tolist(), g.packing.sizes.tolist()
    inner = (slice(None),) * len(g.trail)
    return tuple(
        x.rows[(..., slice(a, b), *inner)].reshape((*lead, *s, *g.trail))
        for a, b, s in zip(at[:-1], at[1:], sizes, strict=True)
    )


@op("join_nest", batch="expand", sizes="shape")
def join_nest_p(*xs: Any, shape: tuple[Any, ...]) -> Any:
    """Components of one type as a nest of shape `shape`: the transpose of taking it apart."""
    k, g = len(shape) - 1, geometry_of(shape[1:], int(shape[0]))
    lead = xs[0].shape[: xs[0].ndim - k]
    if not lead and g.u == 1:
        return NestedArray(np.concatenate(xs), g)
    rows = np.concatenate([x.reshape((*lead, int(np.prod(x.shape[x.ndim - k :])))) for x in xs], axis=-1)
    return NestedArray(rows.reshape((*lead, *g.rows)), g)


for _p in (unbind_nest_p, join_nest_p):
    _p.on(NestedArray)(_p.body)
unbind_nest_p.on(DeepArray)(lambda x, *, shape: tuple(x.components()))
join_nest_p.on(DeepArray)(lambda *xs, shape: joined(xs, shape))


@join_nest_p.jvp
def _(t: Any, y: Any, *xs: Any, shape: tuple[Any, ...]) -> Any:
    return join_nest_p(*t, shape=shape)


@join_nest_p.vjp
def _(g: Any, y: Any, *xs: Any, shape: tuple[Any, ...]) -> Any:
    return unbind_nest_p(g, shape=shape)


@unbind_nest_p.jvp
def _(t: Any, y: Any, x: Any, *, shape: tuple[Any, ...]) -> Any:
    return unbind_nest_p(t[0], shape=shape)


@unbind_nest_p.vjp
def _(g: Any, y: Any, x: Any, *, shape: tuple[Any, ...]) -> Any:
    return (join_nest_p(*g, shape=shape),)


def _as_tensor(c: Any, dtype: Any) -> Tensor:
    if isinstance(c, Tensor):
        return c if dtype is None else c.to(dtype)
    from .ops.shape.create import tensor

    return tensor(c, dtype=dtype)


def as_nested_tensor(
    ts: Tensor | Sequence[Any], dtype: dt.DType | None = None, device: Any = None, layout: Any = None
) -> Tensor:
    """Components joined into one nested tensor, through which derivatives flow back to them.

    Components are tensors, arrays or nested lists of numbers with the same number of dims; dims whose sizes differ are ragged. A
    tensor is taken apart along its first dim. `layout` and `device` are accepted and without effect.

    >>> a, b = chainrule.ones(2), chainrule.ones(3)
    >>> chainrule.func.grad(lambda a: chainrule.nested.as_nested_tensor([3 * a, b]).sum())(a)
    tensor([3., 3.])
    """
    if isinstance(ts, Tensor):
        if ts.is_nested:
            return ts if dtype is None else ts.to(dtype)
        if ts.ndim < 2:
            raise RuntimeError(f"as_nested_tensor: Expected tensor argument to have dim() > 1, got {ts.ndim}")
        ts = ts.unbind(0)
    parts = list(_listed(ts))
    with _no_collection():
        plain = _joined(parts) if parts else None
    if plain is not None:
        return plain if dtype is None else plain.to(dtype)
    nests = _nests(parts)
    if nests is not None:
        return _of_nests(nests, dtype)
    blank = [isinstance(c, list | tuple) and not len(c) for c in parts]  # an empty list says nothing of a type
    parts = [_as_tensor(c, dtype) for c in parts]
    shape = _shape([tuple(p.shape) for p in parts])
    if not parts:
        d = dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)
        return nest_p(Tensor(np.zeros(0, d.np)), shape=shape)
    d = dt.result_of((p.dtype, p.ndim) for p, b in zip(parts, blank, strict=True) if not b or all(blank))
    return join_nest_p(*[p if p.dtype is d else p.to(d) for p in parts], shape=shape)


def _nests(parts: list[Any]) -> list[Tensor] | None:
    """The components as nests, where some of them are: nested tensors, or lists of components of different sizes."""
    if not any((isinstance(c, Tensor) and c.is_nested) or lists_components(c) for c in parts):
        return None
    out = []
    for i, c in enumerate(parts):
        if isinstance(c, Tensor) and not c.is_nested:
            raise ChainruleError(
                f"nested_tensor: component {i} is dense, of shape {list(c.shape)}, but others are nested; write nested_tensor(...) of it, "
                "which makes it a nest of its entries"
            )
        out.append(c if isinstance(c, Tensor) else as_nested_tensor(c))
    return out


def _of_nests(nests: list[Tensor], dtype: Any) -> Tensor:
    if any(type(s) is DeepInt for t in nests for s in t.shape):
        raise ChainruleError(
            "nested_tensor: nests of nests of nests are not possible; join the innermost ones, cat(nests), and keep how many each has"
        )
    d = dt.result_of((t.dtype, t.ndim) for t in nests) if dtype is None else dt.as_dtype(dtype)
    shape = deep_shape_of([tuple(_whole(t, "a component of a nested tensor")) for t in nests])
    ragged = [type(s) is DeepInt for s in shape[2:]]
    return join_nest_p(*[_ragged_as(t if t.dtype is d else t.to(d), ragged) for t in nests], shape=shape)


def _ragged_as(t: Tensor, ragged: list[bool]) -> Tensor:
    """A nest as one that is ragged in these dims of the components; its gradient has its own structure."""
    shape = tuple(t.shape)
    if [type(s) is RaggedInt for s in shape[1:]] == ragged:
        return t
    n = int(shape[0])
    each = [np.broadcast_to(plain(s), (n,)) for s in shape[1:]]
    cols = tuple(
        RaggedInt(np.array(v, np.int64)) if r else int(v[0]) if n else 0 for v, r in zip(each, ragged, strict=True)
    )
    return nest_p(unnest_p(t, shape=shape), shape=geometry_of(cols, n).shape)


def _joined(parts: list[Any]) -> Tensor | None:
    """Arrays and tensors without history joined at once, or None where there are others, or several types."""
    values = [c._value if isinstance(c, Tensor) and c._interp is None else c for c in parts]
    if set(map(type, values)) != {np.ndarray}:
        return None
    types = {v.dtype for v in values}
    if len(types) > 1 or values[0].dtype not in dt.FROM_NP:
        return None
    return Tensor(join_nest_p.body(*values, shape=_shape([v.shape for v in values])))


def _listed(components: Any) -> Any:
    if not hasattr(components, "__iter__") or isinstance(components, str | bytes):
        raise TypeError(
            f"nested_tensor: expected a list of tensors, arrays or lists of numbers, got {type(components).__name__}"
        )
    return components


def nested_tensor(
    tensor_list: Tensor | Sequence[Any],
    *,
    dtype: dt.DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new nested tensor with copies of the components: tensors, arrays or nested lists of numbers.

    Dims whose sizes differ are ragged, the first one where none does. `layout`, `device` and `pin_memory` are accepted and without
    effect.

    >>> x = chainrule.nested.nested_tensor([[1.0, 2.0], [3.0]], requires_grad=True)
    >>> x
    nested_tensor([
      [1., 2.],
      [3.]
    ], requires_grad=True)
    >>> x.shape
    chainrule.Size([2, j2/1])
    """
    parts = tensor_list.unbind(0) if isinstance(tensor_list, Tensor) else _listed(tensor_list)
    # Joining copies; what was made without history needs no other copy.
    t = as_nested_tensor([c.detach() if isinstance(c, Tensor) and c._interp is not None else c for c in parts], dtype)
    t = Tensor(t._value, t._interp, t._aux)
    return t.requires_grad_() if requires_grad else t


def nested_tensor_from_jagged(values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None, jagged_dim: int | None = None,
                              min_seqlen: int | None = None, max_seqlen: int | None = None) -> Tensor:  # fmt: skip
    """A nested tensor from packed rows ``[total, ...]`` and where its components start, or how long they are; both: with gaps.

    `jagged_dim` is the ragged dim of the result, 1 unless told. Derivatives flow back to `values`. The limits are accepted and not
    needed.

    >>> v = chainrule.arange(5.0)
    >>> chainrule.nested.nested_tensor_from_jagged(v, offsets=chainrule.tensor([0, 2, 5])).tolist()
    [[0.0, 1.0], [2.0, 3.0, 4.0]]
    >>> chainrule.nested.nested_tensor_from_jagged(v, chainrule.tensor([0, 2, 5]), lengths=chainrule.tensor([1, 2])).tolist()
    [[0.0], [2.0, 3.0]]
    """
    if offsets is None and lengths is None:
        raise ChainruleError("nested_tensor_from_jagged: at least one of offsets or lengths is required")
    ls: Any = None if lengths is None else np.asarray(lengths.numpy(), np.int64)
    off = np.concatenate([[0], np.cumsum(ls)]) if offsets is None else np.asarray(offsets.numpy(), np.int64)
    ls = np.diff(off) if ls is None else ls
    starts = off[: len(ls)]
    d = 1 if jagged_dim is None else jagged_dim
    rows = values if d == 1 else values.movedim(d - 1, 0)
    ends = starts + ls
    bad = np.flatnonzero((ls < 0) | (starts < 0) | (ends > rows.shape[0]))
    if len(bad) or len(off) not in (len(ls), len(ls) + 1):
        where = (
            f"component {bad[0]} would be rows {starts[bad[0]]} to {ends[bad[0]]} of {rows.shape[0]}"
            if len(bad)
            else f"{len(ls)} lengths and {len(off)} offsets"
        )
        raise ChainruleError(f"nested_tensor_from_jagged: offsets and lengths do not fit the values: {where}")
    total = int(ls.sum())
    if total != rows.shape[0] or (starts != np.concatenate([[0], np.cumsum(ls)])[:-1]).any():
        take = np.repeat(starts - np.concatenate([[0], np.cumsum(ls)])[:-1], ls) + np.arange(total)
        rows = rows.index_select(0, Tensor(take))
    x = nest_p(rows.reshape(-1).contiguous(), shape=geometry_of((RaggedInt(ls), *rows.shape[1:]), len(ls)).shape)
    if d == 1:
        return x
    return x.movedim(1, d)


def narrow(tensor: Tensor, dim: int, start: int | Tensor, length: int | Tensor, layout: Any = None) -> Tensor:
    """Parts of the rows of an ordinary tensor ``[N, S, ...]``: `length` entries from `start` on, a number each or one for all.

    >>> m = chainrule.arange(6.0).reshape(2, 3)
    >>> chainrule.nested.narrow(m, 1, start=0, length=chainrule.tensor([1, 3])).tolist()
    [[0.0], [3.0, 4.0, 5.0]]
    """
    if dim != 1:
        raise ChainruleError(f"nested.narrow: only dim=1 can be narrowed, got dim={dim}")
    n = tensor.shape[0]

    def vector(v: Any) -> np.ndarray:
        return np.broadcast_to(np.asarray(v.numpy() if isinstance(v, Tensor) else v, np.int64), (n,))

    s, m = vector(start), vector(length)
    bad = np.flatnonzero((s < 0) | (m < 0) | (s + m > tensor.shape[1]))
    if len(bad):
        i = bad[0]
        raise ChainruleError(
            f"nested.narrow: component {i} would be entries {s[i]} to {s[i] + m[i]} of dimension 1, which has size {tensor.shape[1]}"
        )
    take = np.repeat(np.arange(n) * tensor.shape[1] + s - np.concatenate([[0], np.cumsum(m)])[:-1], m) + np.arange(
        int(m.sum())
    )
    rows = tensor.reshape(n * tensor.shape[1], *tensor.shape[2:]).index_select(0, Tensor(take))
    return nest_p(rows.reshape(-1), shape=geometry_of((RaggedInt(np.array(m)), *tensor.shape[2:]), n).shape)


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """The elements of each row of a matrix where the mask holds, as a nested tensor.

    >>> m = chainrule.arange(6.0).reshape(2, 3)
    >>> chainrule.nested.masked_select(m, m % 2 == 0).tolist()
    [[0.0, 2.0], [4.0]]
    """
    if mask.dtype is not dt.bool_ or tensor.ndim != 2:
        raise ChainruleError(
            f"nested.masked_select: expected a matrix and a boolean mask, got shape {list(tensor.shape)} and a mask of type {mask.dtype}"
        )
    m = np.broadcast_to(mask.numpy(), tuple(tensor.shape))
    return nest_p(tensor.expand(*m.shape)[Tensor(m)], shape=geometry_of((RaggedInt(m.sum(1)),), m.shape[0]).shape)


# -- padding ------------------------------------------------------------------------------------------------------------


@op("pad_nest", sizes="shape")
def pad_nest_p(x: Any, *, shape: tuple[Any, ...], size: tuple[int, ...] | None, value: float) -> Any:
    """The components of a nest of shape `shape` at the corners of one array."""
    return padded(x, value, size)


@op("unpad_nest", sizes="shape")
def unpad_nest_p(a: Any, *, shape: tuple[Any, ...], size: tuple[int, ...] | None) -> Any:
    """The corners of an array as a nest of shape `shape`."""
    return unpad(a, geometry_of(shape[1:], int(shape[0])))


for _p in (pad_nest_p, unpad_nest_p):
    _p.on(NestedArray)(_p.body)
pad_nest_p.on(DeepArray)(lambda x, *, shape, size, value: padded_deep(x, value, size, padded))
unpad_nest_p.on(DeepArray)(lambda a, *, shape, size: unpadded_deep(a, shape, unpad))
pad_nest_p.jvp([lambda t, y, x, *, shape, size, value: pad_nest_p(t, shape=shape, size=size, value=0.0)])
pad_nest_p.vjp([lambda g, y, x, *, shape, size, value: unpad_nest_p(g, shape=shape, size=tuple(g.shape))])
unpad_nest_p.jvp([lambda t, y, a, *, shape, size: unpad_nest_p(t, shape=shape, size=size)])
unpad_nest_p.vjp([lambda g, y, a, *, shape, size: pad_nest_p(g, shape=shape, size=size, value=0.0)])


@public("", methods="to_padded_tensor", out=False)
def to_padded_tensor(input: Tensor, padding: float = 0.0, output_size: Sequence[int] | None = None) -> Tensor:
    """The components at the corners of one ordinary tensor, the rest filled with `padding`.

    `output_size` may ask for more than the greatest sizes.

    >>> chainrule.nested.nested_tensor([[1.0, 2.0], [3.0]]).to_padded_tensor(-1.0)
    tensor([[ 1.,  2.],
            [ 3., -1.]])
    """
    return pad_nest_p(
        input,
        shape=_whole(input, "to_padded_tensor()"),
        size=None if output_size is None else tuple(output_size),
        value=float(padding),
    )


def from_padded(padded: Tensor, sizes: Tensor | Sequence[Any], *, fuse_transform_0213: bool = False) -> Tensor:
    """A nested tensor from the corners of an ordinary one; `sizes` has a row of component sizes (or one length) each.

    `fuse_transform_0213`: the padded tensor is ``[batch, heads, time, features]``, the components are ``[time, heads * features]``.

    >>> chainrule.nested.from_padded(chainrule.arange(6.0).reshape(2, 3), sizes=[1, 3]).tolist()
    [[0.0], [3.0, 4.0, 5.0]]
    """
    if fuse_transform_0213:
        if padded.ndim != 4:
            raise ChainruleError(
                f"nested.from_padded: fuse_transform_0213 wants a tensor [batch, heads, time, features], got {list(padded.shape)}"
            )
        n, heads, time, features = padded.shape
        padded = padded.permute(0, 2, 1, 3).reshape(n, time, heads * features)
    s = np.asarray(sizes.numpy() if isinstance(sizes, Tensor) else sizes, np.int64)
    s = s.reshape(len(s), 1 if s.ndim < 2 else s.shape[1])
    if len(s) != padded.shape[0] or s.shape[1] >= padded.ndim:
        raise ChainruleError(
            f"nested.from_padded: {len(s)} rows of {s.shape[1]} sizes do not fit a tensor of shape {list(padded.shape)}"
        )
    for i, d in np.argwhere((s < 0) | (s > np.array(padded.shape[1 : 1 + s.shape[1]]))):
        raise ChainruleError(
            f"nested.from_padded: component {i} has size {s[i, d]} in dimension {d + 1}, where the padded tensor has {padded.shape[d + 1]}"
        )
    g = geometry_of(
        (*[RaggedInt(np.ascontiguousarray(s[:, d])) for d in range(s.shape[1])], *padded.shape[1 + s.shape[1] :]),
        len(s),
    )
    return unpad_nest_p(padded, shape=g.shape, size=tuple(padded.shape))


# -- parts ----------------------------------------------------------------------------------------------------------------


def _whole(x: Tensor, what: str) -> tuple[Any, ...]:
    """The shape of a nested tensor, after checking that it is one and that its nesting dim is in sight."""
    shape = tuple(x.shape)
    if not shape or type(shape[0]) is not Nest:
        why = (
            "inside a vmap over its components it is one component"
            if x.is_nested
            else f"this one is dense, of shape {list(shape)}"
        )
        raise ChainruleError(f"{what} is for nested tensors; {why}")
    return shape


def _packing(x: Tensor, what: str) -> Packing:
    shape = _whole(x, what)
    if is_deep(shape):
        return _pattern(shape).flattened().geometry.packing
    return geometry_of(shape[1:], int(shape[0])).packing


def _pattern(shape: tuple[Any, ...]) -> DeepArray:
    """Something of the shape of a nest of nests."""
    return deep_of(np.zeros(int(math.prod(shape[1:], start=shape[0])), np.bool_), shape)


def _rows(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of the packed rows of a nest."""
    return _pattern(shape).rows.shape if is_deep(shape) else geometry_of(shape[1:], int(shape[0])).rows


def values(self: Tensor) -> Tensor:
    """The packed rows of a nested tensor, ``[total, ...]``, through which derivatives flow; writes to them reach it.

    >>> chainrule.nested.nested_tensor([[1.0, 2.0], [3.0]]).values()
    tensor([1., 2., 3.])
    """
    shape = _whole(self, "values()")
    return unnest_p(self, shape=shape).reshape(_rows(shape))


@public("", methods="offsets", out=False)
def offsets(self: Tensor) -> Tensor:
    """Where each component starts in ``values()``, and the end.

    >>> chainrule.nested.nested_tensor([[1.0, 2.0], [3.0]]).offsets()
    tensor([0, 2, 3])
    """
    return Tensor(_packing(self, "offsets()").offsets.copy())


@public("", methods="lengths", out=False)
def lengths(self: Tensor) -> Tensor:
    """The number of packed rows of each component.

    >>> chainrule.nested.nested_tensor([[1.0, 2.0], [3.0]]).lengths()
    tensor([2, 1])
    """
    return Tensor(_packing(self, "lengths()").counts.copy())


def _jagged(name: str) -> Callable[[Callable[[Tensor], Any]], Any]:
    """An inner property of nests, which other tensors do not have."""

    def register(f: Callable[[Tensor], Any]) -> Any:
        def get(self: Tensor) -> Any:
            if not self.is_nested:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)
            return f(self)

        get.__doc__ = f.__doc__
        return prop(name)(get)

    return register


@_jagged("_offsets")
def _offsets(self: Tensor) -> Tensor:
    """Where each component starts in the rows, and the end."""
    return self.offsets()


@_jagged("_lengths")
def _lengths(self: Tensor) -> None:
    """None: between the rows of components there are none that belong to nobody."""
    return None


@_jagged("_ragged_idx")
def _ragged_idx(self: Tensor) -> int:
    """The first dim whose size differs between components."""
    return next(i for i, n in enumerate(self.shape) if isinstance(n, RaggedInt))


@_jagged("_max_seqlen")
def _max_seqlen(self: Tensor) -> int:
    """The greatest size of the ragged dim."""
    return int(_packing(self, "_max_seqlen").counts.max(initial=0))


@_jagged("_min_seqlen")
def _min_seqlen(self: Tensor) -> int:
    """The least size of the ragged dim."""
    counts = _packing(self, "_min_seqlen").counts
    return int(counts.min()) if len(counts) else 0


@_jagged("_max_seqlen_tensor")
def _max_seqlen_tensor(self: Tensor) -> None:
    """None: the greatest size is no part of a nest, it follows from the sizes."""
    return None


@_jagged("_min_seqlen_tensor")
def _min_seqlen_tensor(self: Tensor) -> None:
    """None: the least size is no part of a nest, it follows from the sizes."""
    return None


@public("", methods="_get_max_seqlen", out=False)
def _get_max_seqlen(self: Tensor) -> int:
    """The greatest size of the ragged dim."""
    return self._max_seqlen


@public("", methods="_get_min_seqlen", out=False)
def _get_min_seqlen(self: Tensor) -> int:
    """The least size of the ragged dim."""
    return self._min_seqlen


def owners(x: Tensor) -> Tensor:
    """The number of the component that each packed row belongs to.

    >>> chainrule.nested.owners(chainrule.nested.nested_tensor([[1.0, 2.0], [3.0]])).tolist()
    [0, 0, 1]
    """
    return Tensor(_packing(x, "owners()").owner.copy())


@public("", methods="_nested_tensor_size", out=False)
def nested_sizes(self: Tensor) -> Tensor:
    """The matrix ``[components, dims]`` of sizes.

    >>> chainrule.nested.nested_tensor([[[1.0, 2.0]], [[3.0]]])._nested_tensor_size().tolist()
    [[1, 2], [1, 1]]
    """
    shape = _whole(self, "sizes")
    if is_deep(shape):
        raise ChainruleError(
            "the sizes of a nest of nests are no matrix: take those of each nest, x[i]._nested_tensor_size()"
        )
    return Tensor(geometry_of(shape[1:], int(shape[0])).sizes.copy())


@public("", methods="_nested_tensor_strides", out=False)
def nested_strides(self: Tensor) -> Tensor:
    """The matrix ``[components, dims]`` of strides: each component is row-major.

    >>> chainrule.nested.nested_tensor([[[1.0, 2.0]], [[3.0]]])._nested_tensor_strides().tolist()
    [[2, 1], [1, 1]]
    """
    sizes = nested_sizes(self).numpy()
    after = np.concatenate([sizes[:, 1:], np.ones((len(sizes), 1), sizes.dtype)], 1)
    return Tensor(np.ascontiguousarray(np.cumprod(after[:, ::-1], 1)[:, ::-1]))


def components(x: Tensor) -> tuple[Tensor, ...]:
    """The components of a nested tensor as views, through which derivatives flow back and writes reach it.

    >>> [c.tolist() for c in chainrule.nested.nested_tensor([[1.0, 2.0], [3.0]]).unbind()]
    [[1.0, 2.0], [3.0]]
    """
    shape = _whole(x, "unbind()")
    if not shape[0]:
        return ()
    with _no_collection():
        cs = unbind_nest_p(x, shape=shape)
        _register_components(x, cs, shape)
    return cs


class _ComponentMeta(Meta):
    """The Meta of one of many components, which finds the view op that leads to it when asked: few ever are."""

    def __init__(self, number: int, family: tuple[Any, ...]) -> None:
        self.number, self.family = number, family

    @lazy
    def base(self) -> Tensor:
        """The root of the views."""
        return self.family[0]

    @lazy
    def chain(self) -> tuple[Any, ...]:
        """The links from the root to the nest, and the slice of this component."""
        _, links, shape = self.family
        return (*links, (slice_p, {"key": (self.number, *(slice(None),) * (len(shape) - 1)), "old": shape}))


def _register_components(x: Tensor, cs: tuple[Tensor, ...], shape: tuple[Any, ...]) -> None:
    """Make each component a view of the nest: `register_view` for all at once."""
    root = root_of(x)
    links = x._meta.chain if x._meta is not None else ()
    if x._interp is not None:
        links = (
            (*links, Unseen(CUT.get()))
            if CUT.get() >= 0
            else (*links, DETACH)
            if cs[0]._interp is not x._interp
            else links
        )
    # Loops in C: a component takes little more than its tensor and its array.
    for c, k in zip(cs, map(_ComponentMeta, range(len(cs)), repeat((root, links, shape))), strict=True):
        c._meta = k
    m = meta(root)
    m.views = [*(w for w in m.views or () if w() is not None), *map(weakref.ref, cs)]


@contextmanager
def _no_collection() -> Iterator[None]:
    """Many objects that all stay: walking them again and again for garbage costs more than making them."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


house(__name__, __all__)


def __dir__() -> list[str]:
    return __all__
