"""Sparse linear systems, by SuperLU: ``spsolve(A, b)``, whose derivatives are solves with the same factors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.errors import ChainruleError
from ...core.registry import public
from ...core.tensor import Tensor
from ...payloads.sparse.pattern import Pattern
from .products import sampled_p, spmm_p
from .values import as_list, coalesced, is_sparse


def _factor(v: np.ndarray, p: Pattern) -> Any:
    """The LU factors of the matrices of a pattern with the numbers ``v[batch, count]``, on one diagonal."""
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import splu

    # A backward pass solves with the transpose of the same matrix: the factors of the last two stay with the pattern.
    kept = p.memo.setdefault("factors", [])
    for numbers, lu in kept:
        if numbers.dtype == v.dtype and np.array_equal(numbers, v):
            return lu
    start, rows, order = p.columns()
    n, batch = p.shape[-1], len(v)
    at = np.arange(batch)[:, None]
    starts = np.concatenate([[0], (start[1:] + at * start[-1]).reshape(-1)])
    numbers = (v if order is None else v[:, order]).reshape(-1)
    big = csc_matrix((numbers, (rows + at * n).reshape(-1), starts), shape=(batch * n, batch * n))
    try:
        lu = splu(big)
    except RuntimeError as e:
        raise ChainruleError(f"spsolve: the matrix of shape {list(p.shape)} is singular ({e})") from None
    kept[:] = [*kept[-1:], (v.copy(), lu)]
    return lu


@op("spsolve", core="(c),(n,k)->(n,k)")
def spsolve_p(v: Any, b: Any, *, pattern: Pattern, transposed: bool) -> Any:
    """The solution of ``A x = b``, A (or its transpose) the matrix of a pattern with the listed numbers `v`."""
    d = np.result_type(v.dtype, b.dtype)
    work = np.result_type(d, np.float64)
    n, k = b.shape[-2:]
    lead = np.broadcast_shapes(v.shape[:-1], b.shape[:-2])
    batch = math.prod(v.shape[:-1])
    numbers = v if v.ndim == 2 else v.reshape(batch, v.shape[-1])
    lu = _factor(numbers, pattern) if numbers.dtype == work else _factor(numbers.astype(work), pattern)
    if batch == 1:
        # One matrix: all right-hand sides side by side.
        count = math.prod(b.shape[:-2])
        flat = np.moveaxis(b.reshape((count, n, k)), 1, 0).reshape(n, count * k)
        x = lu.solve(np.ascontiguousarray(flat.astype(work, copy=False)), "T" if transposed else "N")
        return np.moveaxis(x.reshape(n, count, k), 1, 0).reshape((*lead, n, k)).astype(d, copy=False)
    full = np.broadcast_to(b, (*lead, n, k))
    if v.shape[:-1] != lead:
        numbers = np.broadcast_to(v, (*lead, v.shape[-1])).reshape(-1, v.shape[-1])
        lu = _factor(np.ascontiguousarray(numbers.astype(work, copy=False)), pattern)
    x = lu.solve(np.ascontiguousarray(full.reshape(-1, k).astype(work, copy=False)), "T" if transposed else "N")
    return x.reshape((*lead, n, k)).astype(d, copy=False)


def _conj(x: Tensor) -> Tensor:
    return x.conj() if x.dtype.category == dt.COMPLEX else x


@spsolve_p.jvp(sparse=True)
def _(t: Any, y: Any, v: Any, b: Any, *, pattern: Pattern, transposed: bool) -> Any:
    # A x = b, so A dx = db - dA x.
    right = t[1]
    if t[0] is not None:
        part = spmm_p.bind(t[0], y, pattern=pattern, transposed=transposed)
        right = -part if right is None else right - part
    return spsolve_p.bind(v, right, pattern=pattern, transposed=transposed)


@spsolve_p.vjp
def _(g: Any, y: Any, v: Any, b: Any, *, pattern: Pattern, transposed: bool) -> Any:
    w = spsolve_p.bind(_conj(v), g, pattern=pattern, transposed=not transposed)
    return lambda: -sampled_p.bind(w, _conj(y), pattern=pattern, transposed=transposed), w


@public("sparse.spsolve", out=False)
def spsolve(input: Tensor, other: Tensor, *, left: bool = True) -> Tensor:
    """The solution x of ``input x = other`` with a sparse square matrix and a dense right-hand side, a vector or a matrix.

    By SuperLU in double precision. The gradient is a solve with the transposed matrix, by the same factors; that of the
    matrix stands on its pattern.

    >>> a = chainrule.tensor([[2.0, 0.0], [1.0, 4.0]]).to_sparse_csr()
    >>> chainrule.sparse.spsolve(a, chainrule.tensor([2.0, 5.0]))
    tensor([1., 1.])
    """
    if not is_sparse(input):
        raise RuntimeError(
            "spsolve: expected a sparse matrix: write A.to_sparse_csr(), or linalg.solve for a dense one"
        )
    if not left:
        x = spsolve(input.transpose(-1, -2), other.transpose(-1, -2) if other.ndim > 1 else other)
        return x.transpose(-1, -2) if other.ndim > 1 else x
    v, p = as_list(coalesced(input))
    if p.ndim != 2 or p.dense or p.shape[0] != p.shape[1]:
        raise RuntimeError(f"spsolve: expected a square matrix, got a sparse tensor of shape {list(input.shape)}")
    if is_sparse(other):
        other = other.to_dense()
    if other.ndim not in (1, 2) or other.shape[0] != p.shape[0]:
        raise RuntimeError(
            f"spsolve: a matrix of shape {list(p.shape)} and a right-hand side of shape {list(other.shape)}"
        )
    if v.dtype is not other.dtype:
        raise RuntimeError(f"spsolve: expected arguments of one dtype, got {v.dtype} and {other.dtype}")
    if v.dtype.category < dt.FLOAT:
        raise RuntimeError(f"spsolve: expected floating or complex numbers, got {v.dtype}")
    b = other if other.ndim == 2 else other.unsqueeze(-1)
    x = spsolve_p.bind(v, b, pattern=p, transposed=False)
    return x if other.ndim == 2 else x.squeeze(-1)
