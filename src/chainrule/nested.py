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

from collections.abc import Sequence
from typing import Any

import numpy as np

from .core import dtypes as dt
from .core.dispatch import innermost
from .core.errors import ChainruleError
from .core.op import op
from .core.registry import public
from .core.tensor import Tensor
from .payloads import nested_bodies as _bodies
from .payloads.nested import NestedArray, padded, unpad
from .payloads.ragged import Geometry, RaggedInt, geometry_of

__all__ = ["as_nested_tensor", "from_padded", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor"]


def _geometry(shapes: list[tuple[int, ...]]) -> Geometry:
    """The geometry of components of these shapes; dims that differ are ragged, and the first where none differs."""
    k = len(shapes[0]) if shapes else 1
    for i, s in enumerate(shapes):
        if len(s) != k:
            raise ChainruleError(f"nested_tensor: all components must have the same number of dims; component 0 has {k}, component {i} has {len(s)} (shape {s})")
    sizes = np.array(shapes, np.int64).reshape(len(shapes), k)
    differ = [bool(len(sizes) and (sizes[:, d] != sizes[0, d]).any()) for d in range(k)]
    if not any(differ) and k:
        differ[0] = True
    return Geometry(sizes, tuple(differ))


# -- joining components, differentiably ---------------------------------------------------------------------------------


@op("nest", batch="none")
def nest_p(values: Any, *, shape: tuple[Any, ...]) -> Any:
    """Flat values as a nest of components of sizes ``shape[1:]``."""
    g = geometry_of(shape[1:], shape[0])
    return NestedArray(values.reshape((g.total, *g.trail)), g)


@op("unnest", batch="none")
def unnest_p(x: Any, *, shape: tuple[Any, ...]) -> Any:
    """The packed elements of a nest of shape `shape`, flat."""
    return x.rows.reshape(-1) if isinstance(x, NestedArray) else np.broadcast_to(x, shape).reshape(-1)


unnest_p.on(NestedArray)(unnest_p.impl)
nest_p.on(NestedArray)(nest_p.impl)
nest_p.jvp([lambda t, y, v, *, shape: nest_p(t, shape=shape)])
nest_p.vjp([lambda g, y, v, *, shape: unnest_p(g, shape=shape)])
unnest_p.jvp([lambda t, y, x, *, shape: unnest_p(t, shape=shape)])
unnest_p.vjp([lambda g, y, x, *, shape: nest_p(g, shape=shape)])


def _as_tensor(c: Any, dtype: Any) -> Tensor:
    if isinstance(c, Tensor):
        return c if dtype is None else c.to(dtype)
    from .ops.create import tensor

    return tensor(c, dtype=dtype)


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Tensor:
    """Components joined into one nested tensor, through which derivatives flow back to them."""
    if isinstance(ts, Tensor):
        if ts.is_nested:
            return ts if dtype is None else ts.to(dtype)
        parts = list(ts.unbind(0))
    else:
        parts = [_as_tensor(c, dtype) for c in ts]
    g = _geometry([tuple(p.shape) for p in parts])
    from .ops.shape import cat

    flat = cat([p.reshape(-1) for p in parts]) if parts else Tensor(np.zeros(0, (dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)).np))
    return nest_p(flat, shape=g.shape)


def nested_tensor(tensor_list: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A new nested tensor with copies of the components: tensors, arrays or nested lists of numbers."""
    if isinstance(tensor_list, Tensor) and not tensor_list.is_nested:
        tensor_list = list(tensor_list.unbind(0))
    parts = [c.detach() if isinstance(c, Tensor) else c for c in (tensor_list.unbind() if isinstance(tensor_list, Tensor) else tensor_list)]
    t = as_nested_tensor(parts, dtype).detach().clone()
    t = Tensor(t._value, t._interp, t._aux)
    return t.requires_grad_() if requires_grad else t


def nested_tensor_from_jagged(values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None, jagged_dim: int | None = None,
                              min_seqlen: int | None = None, max_seqlen: int | None = None) -> Tensor:  # fmt: skip
    """A nested tensor from packed rows ``[total, ...]`` and where its components start (or how long they are; both: gaps)."""
    if offsets is None and lengths is None:
        raise ChainruleError("nested_tensor_from_jagged: at least one of offsets or lengths is required")
    ls = None if lengths is None else np.asarray(lengths.numpy(), np.int64)
    off = np.concatenate([[0], np.cumsum(ls)]) if offsets is None else np.asarray(offsets.numpy(), np.int64)
    ls = np.diff(off) if ls is None else ls
    starts = off[: len(ls)]
    d = 1 if jagged_dim is None else jagged_dim
    rows = values if d == 1 else values.movedim(d - 1, 0)
    total = int(ls.sum())
    if total != rows.shape[0] or (starts != np.concatenate([[0], np.cumsum(ls)])[:-1]).any():
        take = np.repeat(starts - np.concatenate([[0], np.cumsum(ls)])[:-1], ls) + np.arange(total)
        rows = rows.index_select(0, Tensor(take))
    x = nest_p(rows.reshape(-1), shape=(len(ls), RaggedInt(ls), *rows.shape[1:]))
    if d == 1:
        return x
    return x.movedim(1, d)


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = None) -> Tensor:
    """Parts of the rows of an ordinary tensor ``[N, S, ...]``: `length` entries from `start` on, a number each or one for all."""
    if dim != 1:
        raise ChainruleError(f"nested.narrow: only dim=1 can be narrowed, got dim={dim}")
    n = tensor.shape[0]

    def vector(v: Any) -> np.ndarray:
        return np.broadcast_to(np.asarray(v.numpy() if isinstance(v, Tensor) else v, np.int64), (n,))

    s, m = vector(start), vector(length)
    take = np.repeat(np.arange(n) * tensor.shape[1] + s - np.concatenate([[0], np.cumsum(m)])[:-1], m) + np.arange(int(m.sum()))
    rows = tensor.reshape(n * tensor.shape[1], *tensor.shape[2:]).index_select(0, Tensor(take))
    return nest_p(rows.reshape(-1), shape=(n, RaggedInt(np.array(m)), *tensor.shape[2:]))


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """The elements of each row of a matrix where the mask holds, as a nested tensor."""
    m = np.broadcast_to(mask.numpy(), tuple(tensor.shape))
    return nest_p(tensor.expand(*m.shape)[Tensor(m)], shape=(m.shape[0], RaggedInt(m.sum(1))))


# -- padding ------------------------------------------------------------------------------------------------------------


@op("pad_nest", batch="none")
def pad_nest_p(x: Any, *, shape: tuple[Any, ...], size: tuple[int, ...] | None, value: float) -> Any:
    """The components of a nest of shape `shape` at the corners of one array."""
    return padded(x, value, size)


@op("unpad_nest", batch="none")
def unpad_nest_p(a: Any, *, shape: tuple[Any, ...], size: tuple[int, ...] | None) -> Any:
    """The corners of an array as a nest of shape `shape`."""
    return unpad(a, geometry_of(shape[1:], shape[0]))


pad_nest_p.on(NestedArray)(pad_nest_p.impl)
unpad_nest_p.on(NestedArray)(unpad_nest_p.impl)
pad_nest_p.jvp([lambda t, y, x, *, shape, size, value: pad_nest_p(t, shape=shape, size=size, value=0.0)])
pad_nest_p.vjp([lambda g, y, x, *, shape, size, value: unpad_nest_p(g, shape=shape, size=tuple(g.shape))])
unpad_nest_p.jvp([lambda t, y, a, *, shape, size: unpad_nest_p(t, shape=shape, size=size)])
unpad_nest_p.vjp([lambda g, y, a, *, shape, size: pad_nest_p(g, shape=shape, size=size, value=0.0)])


@public("", methods="to_padded_tensor", out=False)
def to_padded_tensor(input: Tensor, padding: float = 0.0, output_size: Sequence[int] | None = None) -> Tensor:
    """The components at the corners of one ordinary tensor, the rest filled with `padding`."""
    return pad_nest_p(input, shape=tuple(input.shape), size=None if output_size is None else tuple(output_size), value=float(padding))


def from_padded(padded: Tensor, sizes: Any) -> Tensor:
    """A nested tensor from the corners of an ordinary one; `sizes` has a row of component sizes (or one length) each."""
    s = np.asarray(sizes.numpy() if isinstance(sizes, Tensor) else sizes, np.int64)
    s = s.reshape(len(s), -1)
    full = np.concatenate([s, np.broadcast_to(np.array(padded.shape[1 + s.shape[1] :], np.int64), (len(s), padded.ndim - 1 - s.shape[1]))], 1)
    g = Geometry(full, tuple(d < s.shape[1] for d in range(full.shape[1])))
    return unpad_nest_p(padded, shape=g.shape, size=tuple(padded.shape))


# -- parts ----------------------------------------------------------------------------------------------------------------


def _payload(x: Tensor, what: str) -> NestedArray:
    v = innermost(x)
    if not isinstance(v, NestedArray):
        raise ChainruleError(f"{what} is for nested tensors; this one is dense, of shape {list(x.shape)}")
    return v


@public("", methods="values", out=False)
def values(self: Tensor) -> Tensor:
    """The packed rows of a nested tensor, ``[total, ...]``, through which derivatives flow."""
    v = _payload(self, "values()")
    return unnest_p(self, shape=tuple(self.shape)).reshape(v.rows.shape)


@public("", methods="offsets", out=False)
def offsets(self: Tensor) -> Tensor:
    """Where each component starts in ``values()``, and the end."""
    return Tensor(_payload(self, "offsets()").geometry.offsets.copy())


@public("", methods="lengths", out=False)
def lengths(self: Tensor) -> Tensor:
    """The number of packed rows of each component."""
    return Tensor(_payload(self, "lengths()").geometry.counts.copy())


@public("", methods="_nested_tensor_size", out=False)
def nested_sizes(self: Tensor) -> Tensor:
    """The matrix of component sizes."""
    return Tensor(_payload(self, "sizes").geometry.sizes.copy())


_installed = _bodies
