"""Products with sparse matrices. Two bilinear ops of numbers are each other's derivatives, so every order follows:

``spmm``: the matrix with the numbers v times a dense one, ``y[i] = sum over entries p of row i of v[p] x[column p]``;
``sampled``: a dense product at the places of a pattern alone, ``v[p] = <a[row p], x[column p]>``.

Of two sparse matrices, ``pairs`` multiplies the numbers that meet: its three roles (left, right, product) change places under
differentiation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.errors import ChainruleError
from ...core.registry import public
from ...core.shapes import zeros_beside
from ...core.tensor import Tensor
from ...fallback import NotSupported
from ...payloads.sparse.pattern import Pattern, at_places
from ..elementwise.operators import scaled
from ..index.moving import sums
from .values import as_list, coalesced, is_sparse, like, make, parts


def _conj(x: Any) -> Any:
    return x.conj() if x.dtype.category == dt.COMPLEX else x


def _rows(p: Pattern, transposed: bool) -> tuple[Any, Any, Any]:
    return p.columns() if transposed else p.rows()


def _lead(v: Any, core: int) -> tuple[int, ...]:
    return v.shape[: v.ndim - core]


def _batched(lead: tuple[int, ...], v: Any, core: int) -> Any:
    """An operand with its leading axes as one, or one of size 1 where all examples have the same."""
    mine = _lead(v, core)
    if math.prod(mine) == 1:
        return v.reshape((1, *v.shape[v.ndim - core :]))
    return np.broadcast_to(v, (*lead, *v.shape[v.ndim - core :])).reshape((math.prod(lead), *v.shape[v.ndim - core :]))


@op("spmm", core="(c),(n,k)->(m,k)", linear="each")
def spmm_p(v: Any, x: Any, *, pattern: Pattern, transposed: bool) -> Any:
    """The matrix of a pattern with the listed numbers `v`, or its transpose, times dense rows."""
    start, column, order = _rows(pattern, transposed)
    d = np.result_type(v.dtype, x.dtype) if v.dtype != x.dtype else v.dtype
    v, x = v.astype(d, copy=False), x.astype(d, copy=False)
    lead = np.broadcast_shapes(_lead(v, 1), _lead(x, 2))
    n, k = x.shape[-2:]
    rows, count = len(start) - 1, math.prod(lead)
    if not _lead(v, 1) and lead and count > 1:
        # One matrix for all examples: their columns side by side.
        wide = np.moveaxis(x.reshape((count, n, k)), 0, 1)
        y = spmm_p.body(v, wide.reshape((n, count * k)), pattern=pattern, transposed=transposed)
        return np.moveaxis(y.reshape((rows, count, k)), 1, 0).reshape((*lead, rows, k))
    vb, xb = _batched(lead, v, 1), _batched(lead, x, 2)
    try:
        from ...kernels import sparse

        y = sparse.rows_times(start, column, order, vb, xb)
    except NotSupported:
        y = _rows_times(start, column, order, vb, xb)
    return y.reshape((*lead, *y.shape[-2:]))


def _rows_times(start: Any, column: Any, order: Any, v: Any, x: Any) -> Any:
    """The same by scipy.sparse, the matrices of a batch on one diagonal: for complex numbers and integers."""
    from scipy.sparse import csr_matrix

    d, batch, n = v.dtype, max(len(v), len(x)), x.shape[-2]
    work = dt.WORK.get(d, d)
    if work == np.dtype(bool):
        work = np.dtype(np.int64)
    v, x = v.astype(work, copy=False), x.astype(work, copy=False)
    v = np.broadcast_to(v if order is None else v[:, order], (batch, len(column)))
    x = np.broadcast_to(x, (batch, *x.shape[1:]))
    at = np.arange(batch)[:, None]
    starts = np.concatenate([[0], (start[1:] + at * start[-1]).reshape(-1)])
    columns = (column + at * n).reshape(-1)
    rows = len(start) - 1
    big = csr_matrix((np.ascontiguousarray(v).reshape(-1), columns, starts), shape=(batch * rows, batch * n))
    y = big @ np.ascontiguousarray(x).reshape(batch * n, x.shape[-1])
    return np.asarray(y).reshape(batch, rows, x.shape[-1]).astype(d, copy=False)


@op("sampled", core="(m,k),(n,k)->(c)", linear="each")
def sampled_p(a: Any, x: Any, *, pattern: Pattern, transposed: bool) -> Any:
    """The numbers of ``a @ x.T`` (of ``x @ a.T`` where transposed) at the places of a pattern, listed."""
    start, column, order = _rows(pattern, transposed)
    d = np.result_type(a.dtype, x.dtype) if a.dtype != x.dtype else a.dtype
    a, x = a.astype(d, copy=False), x.astype(d, copy=False)
    lead = np.broadcast_shapes(_lead(a, 2), _lead(x, 2))
    ab, xb = _batched(lead, a, 2), _batched(lead, x, 2)
    try:
        from ...kernels import sparse

        v = sparse.sampled(start, column, order, ab, xb)
    except NotSupported:
        v = _sampled(start, column, order, ab, xb)
    return v.reshape((*lead, v.shape[-1]))


def _sampled(start: Any, column: Any, order: Any, a: Any, x: Any) -> Any:
    d, batch = a.dtype, max(len(a), len(x))
    work = dt.WORK.get(d, d)
    a, x = a.astype(work, copy=False), x.astype(work, copy=False)
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    v = np.zeros((batch, len(column)), work)
    step = max(1, (1 << 22) // max(1, x.shape[-1] * batch))  # entries at a time: their rows are copied
    for at in range(0, len(column), step):
        part = slice(at, at + step)
        v[:, part if order is None else order[part]] = np.einsum("bpk,bpk->bp", a[:, row[part]], x[:, column[part]]) \
            if len(a) == len(x) else (a[:, row[part]] * x[:, column[part]]).sum(-1)  # fmt: skip
    return v.astype(d, copy=False)


spmm_p.vjp([
    lambda g, y, v, x, *, pattern, transposed: sampled_p.bind(g, _conj(x), pattern=pattern, transposed=transposed),
    lambda g, y, v, x, *, pattern, transposed: spmm_p.bind(_conj(v), g, pattern=pattern, transposed=not transposed),
])  # fmt: skip
sampled_p.vjp([
    lambda g, y, a, x, *, pattern, transposed: spmm_p.bind(g, _conj(x), pattern=pattern, transposed=transposed),
    lambda g, y, a, x, *, pattern, transposed: spmm_p.bind(g, _conj(a), pattern=pattern, transposed=not transposed),
])  # fmt: skip


# -- sparse times sparse ------------------------------------------------------------------------------------------------------


class Pairs:
    """Which numbers of three lists meet in a product: entry k says ``third[c[k]] += first[a[k]] * second[b[k]]``."""

    __slots__ = ("at", "sizes")

    def __init__(self, at: tuple[Any, Any, Any], sizes: tuple[int, int, int]) -> None:
        self.at, self.sizes = at, sizes


@op("sparse_pairs", core="(m),(n)->(k)", linear="each")
def pairs_p(a: Any, b: Any, *, pairs: Pairs, roles: tuple[int, int, int]) -> Any:
    """The sums of products of the numbers that meet: `roles` says which lists `a`, `b` and the result are."""
    i, j, k = (pairs.at[r] for r in roles)
    n = pairs.sizes[roles[2]]
    m = a[..., i] * b[..., j]
    flat = m.reshape(math.prod(m.shape[:-1]), m.shape[-1])
    at = (k + np.arange(len(flat))[:, None] * n).reshape(-1)
    return sums(flat.reshape(-1, 1), at, len(flat) * n).astype(m.dtype, copy=False).reshape((*m.shape[:-1], n))


def _swap(roles: tuple[int, int, int], k: int) -> tuple[int, int, int]:
    """The roles for the derivative in operand `k`: the cotangent stands in for it."""
    a, b, c = roles
    return (c, b, a) if k == 0 else (a, c, b)


pairs_p.vjp([
    lambda g, y, a, b, *, pairs, roles: pairs_p.bind(g, _conj(b), pairs=pairs, roles=_swap(roles, 0)),
    lambda g, y, a, b, *, pairs, roles: pairs_p.bind(_conj(a), g, pairs=pairs, roles=_swap(roles, 1)),
])  # fmt: skip


def _meeting(p: Pattern, q: Pattern) -> tuple[Pairs, Pattern]:
    """The pairs of numbers of two matrices (or batches of them) that meet in their product, and its pattern."""
    found = p.plans.setdefault(q, {}).get("product")
    if found is None:
        start, column, order = q.rows()
        rows, mine, perm = p.rows()
        counts = start[mine + 1] - start[mine]
        left = np.repeat(np.arange(len(mine)), counts)
        offset = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
        right = np.repeat(start[mine], counts) + offset
        i = np.repeat(np.arange(len(rows) - 1), np.diff(rows))[left]
        s, t = p.sparse_shape, q.sparse_shape
        k = column[right]  # on a diagonal of blocks: the batch is counted in both
        keys, at = np.unique(i * t[-1] + k % max(t[-1], 1), return_inverse=True)
        shape = (*s[:-1], t[-1])
        a = left if perm is None else perm[left]
        b = right if order is None else order[right]
        found = Pairs((a, b, at.reshape(-1)), (p.count, q.count, len(keys))), at_places(keys, shape)
        p.plans[q]["product"] = found
    return found


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """The product of matrices (or batches of them) of which at least one is sparse."""
    for x in (a, b):
        if is_sparse(x) and parts(x)[1].dense:
            raise ChainruleError(f"matmul: a sparse tensor with dense dims (shape {list(x.shape)}) is no matrix")
    if a.dtype is not b.dtype:
        raise RuntimeError(f"matmul: expected the arguments to have the same dtype, but got {a.dtype} and {b.dtype}")
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"matmul: mat1 and mat2 shapes cannot be multiplied ({list(a.shape)} and {list(b.shape)})")
    if is_sparse(a) and is_sparse(b):
        (va, p), (vb, q) = as_list(a), as_list(b)
        if p.sparse_shape[:-2] != q.sparse_shape[:-2]:
            raise RuntimeError(
                f"matmul: the batches {list(a.shape[:-2])} and {list(b.shape[:-2])} of sparse matrices differ"
            )
        pairs, r = _meeting(p, q)
        v = pairs_p.bind(va, vb, pairs=pairs, roles=(0, 1, 2))
        return like("coo" if parts(a)[1].layout == "coo" else "csr", v, r)
    if is_sparse(a):
        return _times(a, b)
    return _times(b.transpose(-1, -2), a.transpose(-1, -2)).transpose(-1, -2)


def _times(s: Tensor, x: Tensor) -> Tensor:
    """Sparse times dense; matrices of a batch on one diagonal."""
    v, p = as_list(s)
    v, p = _direct(s, v, p)
    batch = p.sparse_shape[:-2]
    n, m = p.sparse_shape[-2:]
    if not batch:
        return spmm_p.bind(v, x, pattern=p, transposed=False)
    full = np.broadcast_shapes(batch, tuple(x.shape[:-2]))
    if full != batch:
        raise RuntimeError(f"matmul: a batch {list(batch)} of sparse matrices times one of {list(x.shape[:-2])}")
    k = x.shape[-1]
    rows = x.expand(*batch, m, k).reshape((math.prod(batch) * m, k))
    return spmm_p.bind(v, rows, pattern=p, transposed=False).reshape((*batch, n, k))


def _direct(s: Tensor, v: Tensor, p: Pattern) -> tuple[Tensor, Pattern]:
    """The pattern of rows itself where there is one: its order by rows is at hand."""
    q = parts(s)[1]
    return (v, q) if q.layout in ("csr", "csc") and not q.batch else (v, p)


def sample(a: Tensor, b: Tensor, p: Pattern) -> Tensor:
    """The listed numbers of ``a @ b`` at the places of a pattern."""
    batch = p.sparse_shape[:-2]
    n, m = p.sparse_shape[-2:]
    bt = b.transpose(-1, -2)
    if not batch:
        return sampled_p.bind(a, bt, pattern=p, transposed=False)
    k, r = a.shape[-1], math.prod(batch)
    a, bt = a.expand(*batch, n, k).reshape((r * n, k)), bt.expand(*batch, m, k).reshape((r * m, k))
    return sampled_p.bind(a, bt, pattern=p, transposed=False)


# -- public -------------------------------------------------------------------------------------------------------------------


@public("sparse.sampled_addmm")
def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` at the places of `input`, a sparse matrix by rows.

    >>> s = chainrule.eye(2).to_sparse_csr()
    >>> chainrule.sparse.sampled_addmm(s, chainrule.ones(2, 3), chainrule.ones(3, 2)).to_dense()
    tensor([[4., 0.],
            [0., 4.]])
    """
    if not is_sparse(input):
        raise RuntimeError("sampled_addmm: Expected input to be a sparse tensor: write input.to_sparse_csr()")
    n, m = input.shape[-2:]
    if mat1.shape[-2] != n or mat2.shape[-1] != m or mat1.shape[-1] != mat2.shape[-2]:
        raise RuntimeError(
            f"sampled_addmm: the product of {list(mat1.shape)} and {list(mat2.shape)} has not the shape {list(input.shape)} of input"
        )
    if not input.dtype is mat1.dtype is mat2.dtype:
        raise RuntimeError(
            f"sampled_addmm: expected arguments of one dtype, got {input.dtype}, {mat1.dtype} and {mat2.dtype}"
        )
    v, p = parts(input)
    s = scaled(sample(mat1, mat2, p).reshape(v.shape), alpha)
    return make(s if not isinstance(beta, Tensor) and beta == 0 else scaled(v, beta) + s, p)


@public("sparse.mm", out=False)
def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of matrices of which at least one is sparse; with `reduce`, the products of a row by their sum, mean, amax or amin.

    >>> s = chainrule.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    >>> chainrule.sparse.mm(s, chainrule.ones(2, 3))
    tensor([[2., 2., 2.],
            [0., 0., 0.]])
    """
    if mat1.ndim != 2 or mat2.ndim != 2:
        raise RuntimeError(f"sparse.mm: expected two matrices, got shapes {list(mat1.shape)} and {list(mat2.shape)}")
    if reduce is None or reduce == "sum":
        return multiply(mat1, mat2) if is_sparse(mat1) or is_sparse(mat2) else mat1.mm(mat2)
    if not is_sparse(mat1) or is_sparse(mat2):
        raise RuntimeError("sparse.mm: with reduce= the first matrix is sparse and the second dense")
    if reduce not in ("mean", "amax", "amin"):
        raise RuntimeError(f"sparse.mm: reduce must be 'sum', 'mean', 'amax' or 'amin', got {reduce!r}")
    v, p = as_list(coalesced(mat1))
    start, _, _ = p.rows()
    counts = np.diff(start)
    if reduce == "mean":
        y = spmm_p.bind(v, mat2, pattern=p, transposed=False)
        return y / Tensor(np.maximum(counts, 1).astype(y.dtype.np)[:, None])
    return _extreme(v, p, mat2, reduce)


def _extreme(v: Tensor, p: Pattern, x: Tensor, reduce: str) -> Tensor:
    """The largest (smallest) of the products of each row and column; 0 in rows without an entry."""
    row, column = p.coordinates
    each = v.unsqueeze(-1) * x.index_select(0, Tensor(column.astype(np.int64)))
    n, k = p.shape[0], x.shape[1]
    to = Tensor(np.repeat(row.astype(np.int64)[:, None], k, axis=1))
    start = zeros_beside((n, k), x)
    return start.scatter_reduce(0, to, each, reduce, include_self=False)


@public("sparse.addmm saddmm", out=False)
def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)`` with a sparse `mat1`; the result is dense."""
    return mat.addmm(mat1, mat2, beta=beta, alpha=alpha)


@public("smm", methods="smm", out=False)
def smm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix, as a sparse one."""
    return multiply(input, mat2).to_sparse()


@public("sspaddmm", methods="sspaddmm", out=False)
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` with sparse `input` and `mat1`, as a sparse tensor."""
    return scaled(input, beta) + scaled(multiply(mat1, mat2).to_sparse(), alpha)


@public("spmm dsmm", out=False)
def spmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices of which at least one is sparse."""
    return mm(mat1, mat2)


@public("hspmm hsmm", out=False)
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix with sparse rows and dense columns."""
    return multiply(mat1, mat2).to_sparse(1)
