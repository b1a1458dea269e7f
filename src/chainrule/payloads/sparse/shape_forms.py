"""Sums and changes of shape of sparse tensors: new coordinates for the same numbers, or for some of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.errors import ChainruleError
from ...core.tensor import Tensor
from ...ops.sparse.values import as_list, coalesced, index_tensor, is_sparse, like, make, parts
from .forms import form
from .pattern import Pattern


def _coo(shape: tuple[int, ...], index: np.ndarray, dense: int, coalesced: bool = False) -> Pattern:
    return Pattern("coo", shape, (np.ascontiguousarray(index),), dense, None, coalesced)


def take(v: Tensor, i: np.ndarray) -> Tensor:
    """Some of the listed numbers."""
    return v.index_select(0, index_tensor(i))


def _again(v: Tensor, p: Pattern, was: Pattern) -> Tensor:
    """The result in the layout that the argument had, where it is still one of matrices."""
    if was.layout == "coo":
        return make(v, p)
    block = was.block if was.block and not (p.shape[-2] % was.block[0] or p.shape[-1] % was.block[1]) else None
    return like("csr" if was.block and not block else was.layout, v, p, block)


@form("sum")
def _sum(x: Tensor, *, dim: tuple[int, ...], keepdim: bool, old: tuple[int, ...]) -> Any:
    v, p = as_list(x)
    was, n, s = parts(x)[1], p.ndim, len(p.sparse_shape)
    over = {d % n for d in dim}
    inner = tuple(d - s + 1 for d in over if d >= s)
    if inner:
        v = v.sum(inner, keepdim)
    dense = tuple(1 if d in over else p.shape[d] for d in range(s, n) if keepdim or d not in over)
    gone = [d for d in range(s) if d in over]
    if len(gone) == s:
        v = v.sum(0)
        return v.reshape((*(1,) * s, *dense)) if keepdim else v
    if keepdim:
        index = p.index[0].copy()
        index[gone] = 0
        shape = tuple(1 if d in over else m for d, m in enumerate(p.sparse_shape))
    else:
        index = np.delete(p.index[0], gone, axis=0)
        shape = tuple(m for d, m in enumerate(p.sparse_shape) if d not in over)
    q = _coo((*shape, *dense), index, len(dense), not gone and p.coalesced)
    y = coalesced(make(v, q))
    return y if was.layout == "coo" or len(shape) < 2 else _again(*parts(y), was)


@form("permute")
def _permute(x: Tensor, *, dims: tuple[int, ...]) -> Any:
    v, p = parts(x)
    n, s = p.ndim, len(p.sparse_shape)
    order = [*range(n - len(dims)), *[d % n for d in dims]]
    if order == list(range(n)):
        return make(v, p)
    if any((i < s) != (d < s) for i, d in enumerate(order)):
        raise ChainruleError(
            f"permute: the sparse tensor has {s} sparse and {p.dense} dense dims, which cannot change places; got dims {order}"
        )
    swapped = [*range(s - 2), s - 1, s - 2, *range(s, n)]
    if p.layout != "coo" and order == swapped:
        t = p.transposed()
        return make(v.transpose(-1 - p.dense, -2 - p.dense) if p.block else v, t)
    c = p.as_coo()
    v = v.reshape(c.values_shape).permute(0, *[d - s + 1 for d in order[s:]])
    q = _coo(tuple(p.shape[d] for d in order), c.index[0][order[:s]], p.dense)
    return _again(v, q, p)


@form("reshape")
def _reshape(x: Tensor, *, shape: tuple[int, ...], old: tuple[int, ...]) -> Any:
    v, p = as_list(x)
    was = parts(x)[1]
    want = (*x.shape[: x.ndim - len(old)], *shape)
    if want == p.shape:
        return make(*parts(x))
    k = len(want) - p.dense
    if k < 0 or tuple(want[k:]) != p.dense_shape:
        # Where the dense dims change too: the last place that keeps the sparse elements apart from the dense ones.
        splits = [i for i in range(len(want), 0, -1) if math.prod(want[:i]) == math.prod(p.sparse_shape)]
        k = next((i for i in splits if math.prod(want[i:]) == math.prod(p.dense_shape)), -1)
        if k < 0:
            raise ChainruleError(
                f"reshape: the dense dims {list(p.dense_shape)} of a sparse tensor do not mix with the sparse ones; got shape {list(want)}"
            )
        v = v.reshape(v.shape[0], *want[k:])
    head = tuple(want[:k])
    index = np.stack(np.unravel_index(p.flat, head)) if head else np.zeros((0, p.count), np.int64)
    q = _coo(tuple(want), index, len(want) - k, p.coalesced)
    return _again(v, q, was) if len(head) >= 2 else make(v, q)


@form("expand")
def _expand(x: Tensor, *, shape: tuple[int, ...], old: tuple[int, ...]) -> Any:
    have = tuple(x.shape)
    want = (*have[: len(have) - len(old)], *shape)
    k = len(want) - len(have)
    v, p = parts(x)
    if tuple(want[k:]) == have:
        return make(v.expand(*want[:k], *v.shape), p) if k else make(v, p)
    raise ChainruleError(
        f"expand: a sparse tensor of shape {list(have)} cannot be repeated to {list(want)}; write x.to_dense().expand(...)"
    )


@form("slice")
def _slice(x: Tensor, *, key: tuple[Any, ...], old: tuple[int, ...]) -> Any:
    v, p = as_list(x)
    was = parts(x)[1]
    s = len(p.sparse_shape)
    keys = [*(slice(None),) * (p.ndim - len(key)), *key]
    keep = np.ones(p.count, bool)
    index: list[np.ndarray] = []
    shape: list[int] = []
    for c, n, k in zip(p.index[0], p.sparse_shape, keys[:s], strict=True):
        if not isinstance(k, slice):
            keep &= c == k % n
            continue
        r = range(*k.indices(n))
        at, rest = np.divmod(c - r.start, r.step)
        keep &= (rest == 0) & (at >= 0) & (at < len(r))
        index.append(at)
        shape.append(len(r))
    if p.dense and any(k != slice(None) for k in keys[s:]):
        v = v[(slice(None), *keys[s:])]
    dense = tuple(v.shape[1:])
    if not keep.all():
        v = take(v, np.flatnonzero(keep))
    if not index:  # one entry of the sparse dims
        return v.sum(0, dtype=v.dtype)
    q = _coo((*shape, *dense), np.stack(index)[:, keep], len(dense), p.coalesced and _rising(keys[:s]))
    return _again(v, q, was) if len(shape) >= 2 else make(v, q)


def _rising(keys: list[Any]) -> bool:
    return all(not isinstance(k, slice) or k.step is None or k.step > 0 for k in keys)


@form("take_rows")
def _take_rows(x: Tensor, i: Tensor, *, r: int, s: int, n: int) -> Any:
    if s != 1 or not is_sparse(x):
        return None
    v, p = as_list(x)
    was = parts(x)[1]
    rows = np.asarray(i.concrete("index_select() of a sparse tensor"), np.int64)
    first = p.index[0][0]
    order = np.argsort(first, kind="stable")
    start = np.searchsorted(first[order], rows)
    counts = np.searchsorted(first[order], rows, side="right") - start
    new = np.repeat(np.arange(len(rows)), counts)
    offset = np.arange(len(new)) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen = order[np.repeat(start, counts) + offset]
    index = p.index[0][:, chosen]
    index[0] = new
    q = _coo((len(rows), *p.shape[1:]), index, p.dense, p.coalesced)
    return _again(take(v, chosen), q, was)


@form("cat")
def _cat(*xs: Tensor, dim: int, ns: tuple[int, ...]) -> Any:
    from ...ops.shape.slices import cat

    if not all(is_sparse(x) for x in xs):
        raise ChainruleError(
            "cat: sparse and dense tensors cannot be joined; write x.to_dense() or x.to_sparse() first"
        )
    lists = [as_list(x) for x in xs]
    first, was = lists[0][1], parts(xs[0])[1]
    d, s = dim % first.ndim, len(first.sparse_shape)
    if any(p.dense != first.dense for _, p in lists):
        raise ChainruleError("cat: the sparse tensors differ in their number of dense dims")
    shape = tuple(sum(ns) if k == d else m for k, m in enumerate(first.shape))
    if d >= s:
        if not all(p.same(_reshaped(first, p.shape)) for _, p in lists):
            raise ChainruleError(
                f"cat: along the dense dim {d} sparse tensors must have one pattern; join along a sparse dim"
            )
        return _again(cat([v for v, _ in lists], d - s + 1), _reshaped(first, shape), was)
    index = []
    for at, (_, p) in zip(np.cumsum([0, *ns[:-1]]), lists, strict=True):
        i = p.index[0].astype(np.int64)
        i[d] += at
        index.append(i)
    ordered = d == 0 and all(p.coalesced for _, p in lists)
    q = _coo(shape, np.concatenate(index, axis=1), first.dense, ordered)
    return _again(cat([v for v, _ in lists], 0), q, was)


def _reshaped(p: Pattern, shape: tuple[int, ...]) -> Pattern:
    return Pattern("coo", shape, p.index, p.dense, None, p.coalesced)


@form("vector_norm")
def _norm(x: Tensor, *, ord: float, dim: tuple[int, ...], keepdim: bool, old: tuple[int, ...]) -> Any:
    from ...ops.linalg.norms import vector_norm_p

    v, p = as_list(coalesced(x))
    if len(dim) < p.ndim or ord < 0:
        return None
    s = tuple(v.shape)
    y = vector_norm_p(v, ord=ord, dim=tuple(range(-len(s), 0)), keepdim=False, old=s)
    return y.reshape((1,) * p.ndim) if keepdim else y


@form("any")
def _any(x: Tensor, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    v, p = as_list(x)
    if len(dim) < p.ndim:
        return None
    return v.any().reshape((1,) * p.ndim) if keepdim else v.any()


@form("filled")
def _filled(x: Tensor, *, value: Any) -> Any:
    from ...ops.shape.writes import filled_p

    if value != 0:
        raise ChainruleError(f"fill_: a sparse tensor cannot be filled with {value}, only with 0; fill its values()")
    v, p = parts(x)
    return make(filled_p.bind(v, value=0), p)


def index_select(x: Tensor, d: int, index: Tensor) -> Tensor:
    """Entries `index` of a dim of a sparse tensor."""
    v, p = as_list(x)
    s = len(p.sparse_shape)
    if d >= s:
        v = v.index_select(d - s + 1, index)
        return _again(v, _reshaped(p, (*p.sparse_shape, *v.shape[1:])), parts(x)[1])
    front = [d, *[k for k in range(s) if k != d], *range(s, p.ndim)]
    back = [front.index(k) for k in range(p.ndim)]
    y = _take_rows(x.permute(*front), index, r=p.ndim - 1, s=1, n=p.shape[d])
    y = y.permute(*back)
    return coalesced(y) if y.is_sparse else y


@form("matmul")
def _matmul(a: Tensor, b: Tensor) -> Any:
    from ...ops.sparse.products import multiply

    return multiply(a, b)


@form("linear")
def _linear(x: Tensor, w: Tensor, b: Tensor) -> Any:
    from ...ops.sparse.products import multiply

    y = multiply(x, w.transpose(-1, -2)) if x.ndim == 2 else None
    if y is None:
        rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        y = multiply(rows, w.transpose(-1, -2)).reshape((*x.shape[:-1], w.shape[0]))
    return y + b
