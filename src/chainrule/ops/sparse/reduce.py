"""Sums, softmax and diagonals of sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.errors import ChainruleError
from ...core.registry import public
from ...core.shapes import constant, wrap_dim
from ...core.tensor import Tensor
from ...payloads.sparse.pattern import Pattern
from .values import as_list, coalesced, is_sparse, like, make, moved, parts


@public("sparse.sum", out=False)
def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of a sparse tensor over `dim`, sparse where sparse dims are left; over all dims a number.

    >>> chainrule.sparse.sum(chainrule.eye(2).to_sparse())
    tensor(2.)
    """
    x = input if dtype is None else input.to(dtype)
    return x.sum() if dim is None else x.sum(dim)


class Groups:
    """Numbers in groups: sums over each, and one number of each group for all of its members, as moves between two patterns."""

    def __init__(self, which: np.ndarray, dense_shape: tuple[int, ...]) -> None:
        self.keys, self.which = np.unique(which, return_inverse=True)
        n = len(self.keys)
        self.members = Pattern("coo", (n, *dense_shape), (self.which.reshape(1, -1),), len(dense_shape), None, False)
        self.groups = Pattern("coo", (n, *dense_shape), (np.arange(n).reshape(1, -1),), len(dense_shape))

    def total(self, v: Tensor) -> Tensor:
        """The sum of each group."""
        return moved(v, self.members, self.groups)

    def spread(self, v: Tensor) -> Tensor:
        """The number of its group for each member."""
        return moved(v, self.groups, self.members)

    def extreme(self, v: Tensor, reduce: str = "amax") -> Tensor:
        """The largest (or with "amin" smallest, "prod" the product) of each group."""
        start = constant(np.zeros((len(self.keys), *v.shape[1:])), v)
        to = Tensor(self.which.reshape(-1, *(1,) * (v.ndim - 1)).astype(np.int64)).expand(*v.shape)
        return start.scatter_reduce(0, to, v, reduce, include_self=False)


def groups_along(p: Pattern, dims: tuple[int, ...]) -> Groups:
    """The numbers of a pattern by coordinates that differ in sparse dims `dims` alone."""
    key = ("along", dims)
    found = p.memo.get(key)
    if found is None:
        which = np.zeros(p.count, np.int64)
        for d, (c, n) in enumerate(zip(p.index[0], p.sparse_shape, strict=True)):
            if d not in dims:
                which = which * n + c
        found = p.memo[key] = Groups(which, p.dense_shape)
    return found


def _softmax(name: str, input: Tensor, dim: int, dtype: Any, log: bool) -> Tensor:
    if not is_sparse(input):
        raise RuntimeError(
            f"sparse.{name}: expected a sparse tensor; write x.to_sparse(), or chainrule.{name} for a dense one"
        )
    x = input if dtype is None else input.to(dtype)
    was = parts(x)[1]
    v, p = as_list(coalesced(x) if was.layout == "coo" else x)
    d = wrap_dim(dim, p.ndim) + p.ndim
    s = len(p.sparse_shape)
    if d >= s:
        y = v.log_softmax(d - s + 1) if log else v.softmax(d - s + 1)
    else:
        g = groups_along(p, (d,))
        z = v - g.spread(g.extreme(v.detach()))
        e = z.exp()
        total = g.total(e)
        y = z - g.spread(total.log()) if log else e / g.spread(total)
    return make(y, p) if was.layout == "coo" else make(y.reshape(was.values_shape), was)


@public("sparse.softmax", out=False)
def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` along `dim` over the stored numbers: what is not stored counts as minus infinity.

    >>> x = chainrule.tensor([[1.0, 1.0, 0.0]]).to_sparse()
    >>> chainrule.sparse.softmax(x, 1).to_dense()
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    return _softmax("softmax", input, dim, dtype, False)


@public("sparse.log_softmax", out=False)
def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """``x - log(sum(exp(x)))`` along `dim` over the stored numbers: what is not stored counts as minus infinity."""
    return _softmax("log_softmax", input, dim, dtype, True)


@public("sparse.spdiags", out=False)
def spdiags(diagonals: Tensor, offsets: Tensor, shape: tuple[int, int], layout: Any = None) -> Tensor:
    """The sparse matrix with the rows of `diagonals` on the diagonals `offsets`; entry j of a row stands in column j.

    >>> d = chainrule.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> chainrule.sparse.spdiags(d, chainrule.tensor([0, -1]), (3, 3)).to_dense()
    tensor([[1., 0., 0.],
            [4., 2., 0.],
            [0., 5., 3.]])
    """
    k = np.atleast_1d(np.asarray(offsets.concrete("sparse.spdiags: offsets")))
    n, m = (int(s) for s in shape)
    rows = diagonals if diagonals.ndim == 2 else diagonals.reshape(1, -1)
    if rows.shape[0] != len(k):
        raise RuntimeError(
            f"spdiags: Number of diagonals ({rows.shape[0]}) does not match the number of offsets ({len(k)})"
        )
    if len(np.unique(k)) != len(k):
        raise RuntimeError("spdiags: Offset tensor contains duplicate values")
    j = np.broadcast_to(np.arange(min(rows.shape[1], m)), (len(k), min(rows.shape[1], m)))
    i = j - k[:, None]
    inside = (i >= 0) & (i < n)
    which, at = np.nonzero(inside)
    p = Pattern("coo", (n, m), (np.stack([i[inside], j[inside]]),), 0, None, False)
    v = rows.reshape(-1).index_select(0, Tensor(which * rows.shape[1] + at))
    q = p.coalesce()
    name = "coo" if layout is None else layout.name.removeprefix("sparse_")
    if name not in ("coo", "csr", "csc"):
        raise RuntimeError(
            f"spdiags: only the layouts sparse_coo, sparse_csr and sparse_csc are supported, got {layout!r}"
        )
    return like(name, moved(v, p, q), q)


# -- reductions of the stored numbers alone (chainrule.masked) -----------------------------------------------------------------


def over_stored(name: str, input: Tensor, dim: Any, keepdim: bool, mask: Tensor | None) -> Tensor:
    """A reduction over the stored numbers of a sparse tensor (where a sparse mask is True): sum, mean, prod, amax or amin, sparse again."""
    if mask is not None:
        if not is_sparse(mask):
            mask = mask.expand(*input.shape).to_sparse()
        on = parts(coalesced(mask))
        keep = np.asarray(on[0].concrete(f"masked.{name}: mask")).reshape(-1).astype(bool)
        c = on[1].as_coo()
        only = Pattern("coo", c.shape, (c.index[0][:, keep],), c.dense, None, c.coalesced)
        input = make(*_common(input, only))
    was = parts(input)[1]
    v, p = as_list(coalesced(input) if was.layout == "coo" else input)
    if p.dense:
        raise ChainruleError(
            f"masked.{name}: not available for sparse tensors with dense dims; write x.to_dense() and a mask"
        )
    if v.dtype.category < dt.FLOAT and name in ("sum", "prod"):
        v = v.to(dt.int64)
    n = p.ndim
    dims = (
        tuple(range(n))
        if dim is None or dim == ()
        else tuple(wrap_dim(d, n) + n for d in ((dim,) if isinstance(dim, int) else dim))
    )
    g = groups_along(p, tuple(sorted(dims)))
    y = g.total(v) if name in ("sum", "mean") else g.extreme(v, name)
    if name == "mean":
        y = y / Tensor(np.bincount(g.which.reshape(-1), minlength=len(g.keys)).astype(y.dtype.np))
    left = [d for d in range(n) if d not in dims]
    keys = np.unravel_index(g.keys, tuple(p.shape[d] for d in left)) if left else ()
    if not left and not keepdim:
        return y.sum() if name == "sum" else y.reshape(())
    index = np.zeros((n, len(g.keys)), np.int64)
    for d, at in zip(left, keys, strict=True):
        index[d] = at
    shape = tuple(1 if d in dims else p.shape[d] for d in range(n))
    if not keepdim:
        index, shape = index[left], tuple(p.shape[d] for d in left)
    return like(was.layout, y, Pattern("coo", shape, (index,)))


def _common(x: Tensor, only: Pattern) -> tuple[Tensor, Pattern]:
    """The numbers of `x` at the places that it shares with a pattern."""
    from ...payloads.sparse.pattern import meet

    v, p = as_list(coalesced(x))
    q = meet(p, only)
    return moved(v, p, q), q
