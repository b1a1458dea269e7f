"""Sorting and searching: sort, topk, unique, searchsorted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ... import kernels
from ...core import dtypes as dt
from ...core.declare import op
from ...core.errors import ChainruleError
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import constant, wrap_dim, zeros
from ...core.sizes import is_ragged
from ...core.straight import straight
from ...core.tensor import Tensor
from ...fallback import NotSupported
from ...kernels import indexing
from ...kernels.ordering import LEAST
from ..shape.in_each import nest_like, whole_nest
from .gather import check_range_p, gather_p, scatter_p
from .rows import blank


class Sorted(NamedTuple):
    """Sorted values and where they came from."""

    values: Tensor
    indices: Tensor


def _last(f: Any, x: Any, dim: int, *args: Any) -> Any:
    """``f(x, *args)`` of a function on the last axis, on another one."""
    if dim == -1:
        return f(x, *args)
    return tuple([np.ascontiguousarray(np.moveaxis(y, -1, dim)) for y in f(np.moveaxis(x, dim, -1), *args)])


def in_order(x: Any, dim: int, descending: bool = False) -> tuple[Any, Any]:
    """Values along `dim` in order, stably, NaN greatest, and their old positions."""
    if (go := kernels.ranks.first(x, dim, x.shape[dim], descending)) is not None:
        return go(x)
    if x.size >= LEAST:
        try:
            return _last(kernels.ordering.sort, x, dim, descending)
        except kernels.NotSupported:
            pass
    i = _order(x, dim, descending)
    return np.take_along_axis(x, i, dim), i


def _order(x: Any, dim: int, descending: bool) -> Any:
    if x.dtype in dt.HALVES:
        x = x.astype(np.float32)
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    # Reversed before and after: equal entries keep their order, and NaN comes first, as the greatest.
    key = [slice(None)] * x.ndim
    key[dim] = slice(None, None, -1)
    back = np.argsort(x[tuple(key)], axis=dim, kind="stable")[tuple(key)]
    return x.shape[dim] - 1 - back


@op("sort", integer_outputs=(1,), grows="old")
def sort_p(x: Any, *, dim: int, descending: bool, old: tuple[int, ...]) -> Any:
    """Values along `dim` in order, stably, and their old positions."""
    return in_order(x, dim, descending)


@sort_p.jvp
def _(t: Any, y: Any, x: Any, *, dim: int, descending: bool, old: tuple[int, ...]) -> Any:
    return gather_p(t[0], y[1], dim=dim, old=old), None


@sort_p.vjp
def _(g: Any, y: Any, x: Any, *, dim: int, descending: bool, old: tuple[int, ...]) -> Any:
    return (scatter_p(blank(old, g[0]), y[1], g[0], dim=dim, ss=old),)  # every position occurs once


@op("top", integer_outputs=(1,), grows="old")
def top_p(x: Any, *, k: int, dim: int, largest: bool, old: tuple[int, ...]) -> Any:
    """The first `k` values that a sort along `dim` would give, and their old positions."""
    if (go := kernels.ranks.first(x, dim, k, largest)) is not None:
        return go(x)
    if x.size >= LEAST:
        try:
            return _last(kernels.ordering.top, x, dim, k, largest)
        except kernels.NotSupported:
            pass
    key = [slice(None)] * x.ndim
    key[dim] = slice(k)
    i = np.ascontiguousarray(_order(x, dim, largest)[tuple(key)])
    return np.take_along_axis(x, i, dim), i


sort_p.special = lambda xs, kw: kernels.ranks.first(xs[0], kw["dim"], xs[0].shape[kw["dim"]], kw["descending"])
top_p.special = lambda xs, kw: kernels.ranks.first(xs[0], kw["dim"], kw["k"], kw["largest"])


@top_p.jvp
def _(t: Any, y: Any, x: Any, *, k: int, dim: int, largest: bool, old: tuple[int, ...]) -> Any:
    return gather_p(t[0], y[1], dim=dim, old=old), None


@top_p.vjp
def _(g: Any, y: Any, x: Any, *, k: int, dim: int, largest: bool, old: tuple[int, ...]) -> Any:
    # Every position occurs once: what is written there is the sum.
    return (scatter_p(blank(old, g[0]), y[1], g[0], dim=dim, ss=tuple(g[0].shape)),)


@public("sort", methods="sort")
@straight
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Sorted:
    """Values along `dim` in order, and their positions; equal values keep their order."""
    if input.dtype.category == dt.COMPLEX:
        raise RuntimeError(f"sort(): input of complex type {input.dtype} has no order")
    d = wrap_dim(dim, input.ndim)
    if input.ndim == 0:
        return Sorted(input.clone(), constant(0, input, dt.int64))
    return Sorted(*sort_p(input, dim=d, descending=bool(descending), old=tuple(input.shape)))


@public("argsort", methods="argsort", out=False)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The positions that sort `input` along `dim`."""
    return sort(input, dim, descending, True).indices


@public("msort", methods="msort")
def msort(input: Tensor) -> Tensor:
    """`input` sorted along dim 0."""
    return sort(input, 0).values


@public("topk", methods="topk")
@straight
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Sorted:
    """The k largest (or smallest) entries along `dim`, in order, and their positions."""
    d = wrap_dim(dim, input.ndim)
    if input.ndim == 0:
        if k not in (0, 1):
            raise RuntimeError(f"topk: selected index k={k} out of range for a 0-d input")
        return Sorted(input.clone(), constant(0, input, dt.int64))
    if not 0 <= k <= input.shape[d]:
        raise RuntimeError(f"topk: selected index k out of range: k={k} for dimension {d} of size {input.shape[d]}")
    if input.dtype.category == dt.COMPLEX:
        raise RuntimeError(f"topk(): input of complex type {input.dtype} has no order")
    if whole_nest(input) or any(map(is_ragged, input.shape)):
        values, indices = sort(input, d, largest)
        return Sorted(values.narrow(d, 0, k), indices.narrow(d, 0, k))
    return Sorted(*top_p(input, k=int(k), dim=d, largest=bool(largest), old=tuple(input.shape)))


# -- unique -----------------------------------------------------------------------------------------------------------


def _alone(input: Tensor, dim: int | None, return_inverse: bool, return_counts: bool) -> Any:
    """The answer where there is one element (or one slice of `dim`), so that no size depends on values, else None."""
    if input.numel() != 1 and (dim is None or input.numel() == 0 or input.shape[wrap_dim(dim, input.ndim)] != 1):
        return None
    out = [input.reshape(1).clone() if dim is None else input.clone()]
    if return_inverse:
        out.append(zeros(tuple(input.shape) if dim is None else (1,), dt.int64))
    if return_counts:
        out.append(zeros((1,), dt.int64) + 1)
    return out[0] if len(out) == 1 else tuple(out)


def _chosen(input: Tensor, at: Any, dim: int | None) -> Tensor:
    """The elements (or slices of `dim`) at these places, the first of those that are equal: through them goes the derivative."""
    return input.reshape(-1).index_select(0, Tensor(at)) if dim is None else input.index_select(dim, Tensor(at))


def _unique(v: Any, dim: int | None) -> tuple[Any, Any, Any]:
    """Where each kind occurs first, which kind each entry is, how often each occurs. As in PyTorch no NaN equals another."""
    return np.unique(v, return_index=True, return_inverse=True, return_counts=True, axis=dim, equal_nan=False)[1:]


def _kinds(v: Any, inverse: bool) -> tuple[Any, Any, Any]:
    """`_unique` of all entries, by one sort."""
    if not v.size:
        return _unique(v, None)
    s, order = in_order(v.reshape(-1), -1)
    fresh = np.empty(s.size, bool)
    fresh[0] = True
    np.not_equal(s[1:], s[:-1], out=fresh[1:])
    starts = np.flatnonzero(fresh)
    kind = order
    if inverse:
        kind = np.empty_like(order)
        kind[order] = np.cumsum(fresh) - 1
    return order[starts], kind, np.diff(starts, append=s.size)


@public("unique", methods="unique", out=False)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different values (or slices of `dim`), in order; where each element went; how often each occurs."""
    if dim is None and whole_nest(input):
        if return_inverse:
            y, inverse, *more = unique(input.values(), sorted, True, return_counts)
            return y, nest_like(inverse, input), *more
        return unique(input.values(), sorted, False, return_counts)
    if whole_nest(input):
        raise ChainruleError(
            f"unique: nested tensors have no slices of dim {dim} to compare; leave out dim for the values of all components, or take "
            "unique(x.values(), dim=0) for their rows"
        )
    if (one := _alone(input, dim, return_inverse, return_counts)) is not None:
        return one
    v = input.concrete("unique()")
    if dim is not None:
        dim = wrap_dim(dim, input.ndim) + input.ndim
        if 0 in v.shape and v.shape[dim] == 0 and v.ndim > 1 and any(s == 0 for k, s in enumerate(v.shape) if k != dim):
            raise RuntimeError(
                "unique: There are 0 sized dimensions, and they aren't selected by dim, so unique cannot be applied"
            )
    at, inv, counts = _kinds(v, return_inverse) if dim is None else _unique(v, dim)
    inv = inv.reshape(v.shape if dim is None else (-1,))
    out = (
        [_chosen(input, at, dim)]
        + [Tensor(inv.astype(np.int64))] * return_inverse
        + [Tensor(counts.astype(np.int64))] * return_counts
    )
    return out[0] if len(out) == 1 else tuple(out)


@public("unique_consecutive", methods="unique_consecutive", out=False)
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The values (or slices of `dim`) that differ from the one before; where each went; how long each run is."""
    if whole_nest(input):
        raise ChainruleError(
            f"unique: nested tensors have no slices of dim {dim} to compare; leave out dim for the values of all components, or take "
            "unique(x.values(), dim=0) for their rows"
        )
    if (one := _alone(input, dim, return_inverse, return_counts)) is not None:
        return one
    v = input.concrete("unique_consecutive()")
    d = 0 if dim is None else wrap_dim(dim, input.ndim) + input.ndim
    rows = v.reshape(-1) if dim is None else np.moveaxis(v, d, 0)
    n = rows.shape[0]
    new = np.ones(n, bool)
    if n > 1:
        new[1:] = (rows[1:] != rows[:-1]).reshape(n - 1, -1).any(1)
    at = np.flatnonzero(new)
    inv = np.cumsum(new) - 1
    out = [_chosen(input, at, None if dim is None else d)]
    if return_inverse:
        out.append(Tensor(inv.reshape(v.shape if dim is None else (-1,)).astype(np.int64)))
    if return_counts:
        out.append(Tensor(np.diff(np.append(at, n)).astype(np.int64)))
    return out[0] if len(out) == 1 else tuple(out)


# -- searching --------------------------------------------------------------------------------------------------------


@op("searchsorted", core="(n),(m)->(m)", differentiable=False)
def searchsorted_p(seq: Any, v: Any, *, right: bool) -> Any:
    """How many entries of each sorted sequence lie before each value."""
    n = seq.shape[-1]
    if seq.ndim == 1:
        try:
            return indexing.bisect(np.ascontiguousarray(seq), np.ascontiguousarray(v), right)
        except NotSupported:
            pass
    # NumPy's search is fast but sorts NaN last and remembers the value before; PyTorch's halves whatever it is given.
    if seq.ndim == 1 and n <= v.size and (seq[1:] >= seq[:-1]).all():
        return np.searchsorted(seq, v, "right" if right else "left").astype(np.int64)
    lead = np.broadcast_shapes(seq.shape[:-1], v.shape[:-1])
    v = np.broadcast_to(v, (*lead, v.shape[-1]))
    low, high = np.zeros(v.shape, np.int64), np.full(v.shape, n)
    if seq.ndim > 1:
        seq = np.broadcast_to(seq, (*lead, n))
    for _ in range(n.bit_length()):
        middle = (low + high) >> 1
        at = np.minimum(middle, n - 1)
        x = seq[at] if seq.ndim == 1 else np.take_along_axis(seq, at, -1)
        after = ~(x > v if right else x >= v) & (low < high)
        low, high = np.where(after, middle + 1, low), np.where(after, high, middle)
    return low


@public("searchsorted")
@straight
def searchsorted(sorted_sequence: Tensor, input: Any = None, *, out_int32: bool = False, right: bool = False, side: str | None = None,
                 sorter: Tensor | None = None, values: Any = None) -> Tensor:  # fmt: skip
    """Where each value would be inserted into the sorted sequences (along their last dim) to keep them sorted."""
    v = values if input is None else input
    if side is not None:
        if side not in ("left", "right"):
            raise RuntimeError(f"searchsorted(): side can only be 'left' or 'right' but got {side}")
        if right and side == "left":
            raise RuntimeError(
                "searchsorted(): side and right can't be set to opposites, got side of left while right was True"
            )
        right = side == "right"
    if not isinstance(v, Tensor):
        v = constant(v, sorted_sequence)
    seq = sorted_sequence
    if seq.ndim == 0:
        raise RuntimeError(
            "searchsorted(): sorted_sequence (boundaries) must have at least one dim, but it is a scalar"
        )
    if v.ndim == 0 and seq.ndim > 1:
        raise RuntimeError(
            f"searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor dim({seq.ndim})"
        )
    if seq.dtype is not v.dtype:
        raise RuntimeError(
            f"searchsorted(): boundaries and input value tensors should have same dtype, but got {seq.dtype} and {v.dtype}"
        )
    if seq.ndim > 1 and tuple(seq.shape[:-1]) != tuple(v.shape[:-1]):
        raise RuntimeError(
            f"searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, got {list(seq.shape)} and {list(v.shape)}"
        )
    if sorter is not None:
        if sorter.shape != seq.shape:
            raise RuntimeError(
                f"searchsorted(): boundary and sorter must have the same size, but got {list(seq.shape)} and {list(sorter.shape)}"
            )
        if sorter.dtype is not dt.int64:
            raise RuntimeError(f"searchsorted(): sorter must be a tensor of long dtype but got {sorter.dtype}")
        check_range_p.bind(sorter, n=seq.shape[-1], name="searchsorted: sorter", dim=seq.ndim - 1)
        seq = gather_p(seq, sorter, dim=-1, old=tuple(seq.shape))
    y = searchsorted_p(seq, v.reshape(1) if v.ndim == 0 else v, right=right)
    return y.reshape(*v.shape).to(dt.int32 if out_int32 else dt.int64)


@public("bucketize")
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The bucket of each value between sorted boundaries."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    v = input if isinstance(input, Tensor) else constant(input, boundaries)
    return searchsorted(boundaries, v.reshape(-1), out_int32=out_int32, right=right).reshape(*v.shape)


def _beside(v: Any, like: Tensor) -> Tensor:
    """A number as a tensor of its own type, where `like` is."""
    a = np.asarray(v)
    return constant(a, like, dt.as_dtype(a.dtype))


@public("isin")
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element occurs among `test_elements`."""
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError("isin(): at least one of elements and test_elements must be a tensor")
    e = elements if isinstance(elements, Tensor) else _beside(elements, test_elements)
    t = (test_elements if isinstance(test_elements, Tensor) else _beside(test_elements, e)).reshape(-1)
    hit = (e.unsqueeze(-1) == t).any(-1)
    return ~hit if invert else hit


# -- samples ----------------------------------------------------------------------------------------------------------

sample("sort", S(3, 4), 1, cx=False)
sample("sort", S(3, 4), 0, descending=True, cx=False)
sample("sort", S(), cx=False)
sample("topk", S(3, 4), 2, cx=False)
sample("topk", S(3, 4), 2, 0, largest=False, cx=False)
sample("msort", S(3, 4), cx=False)
sample("sort", Given([3.0, -1.0, 2.0], grad=True), cx=False)
