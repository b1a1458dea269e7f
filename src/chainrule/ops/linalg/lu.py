"""The LU factorization: packed, unpacked, and solving with it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ... import kernels
from ...core import dtypes as dt
from ...core.declare import op
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import broadcast_shapes, constant
from ...core.straight import straight
from ...core.tensor import Tensor
from ..index.gather import gather_p
from ..shape.slices import cat
from ..shape.triangles import tril, triu
from .common import adjoint, floating, identity, mm, raise_info, same_dtype, square
from .triangular import trsm_p, trsm_right


class PLU(NamedTuple):
    """``A = P L U``."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    """L below the diagonal (its ones left out) and U in one matrix, and the interchanges, from 1."""

    LU: Tensor
    pivots: Tensor


class LUFactorEx(NamedTuple):
    """As LUFactor, with the index (from 1) of the first zero pivot, or 0."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


# -- bodies -------------------------------------------------------------------------------------------------------------


def _eliminate(a: Any, pivot: bool) -> tuple[Any, Any]:
    """Gaussian elimination column by column, for all matrices at once."""
    count, m, n = a.shape
    a, k = a.copy(), min(m, n)
    piv = np.broadcast_to(np.arange(k), (count, k)).copy()
    rows = np.arange(count)
    for j in range(k):
        if pivot:
            # LAPACK measures complex pivots by |re| + |im|.
            size = np.abs(a[:, j:, j].real) + np.abs(a[:, j:, j].imag) if a.dtype.kind == "c" else np.abs(a[:, j:, j])
            p = j + np.argmax(size, axis=1)
            piv[:, j] = p
            top = a[rows, p].copy()
            a[rows, p] = a[:, j]
            a[:, j] = top
        d = a[:, j, j, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            low = a[:, j + 1 :, j] / d
        if pivot:
            low = np.where(d == 0, a[:, j + 1 :, j], low)
        a[:, j + 1 :, j] = low
        a[:, j + 1 :, j + 1 :] -= low[:, :, None] * a[:, None, j, j + 1 :]
    return a, piv


def _permutation(piv: Any, m: int) -> Any:
    """The permutation of m rows that interchanges (from 0) one after the other make."""
    flat = piv.reshape(math.prod(piv.shape[:-1]), piv.shape[-1])
    perm = np.broadcast_to(np.arange(m), (len(flat), m)).copy()
    rows = np.arange(len(flat))
    for j in range(flat.shape[-1]):
        other = perm[rows, flat[:, j]].copy()
        perm[rows, flat[:, j]] = perm[:, j]
        perm[:, j] = other
    return perm.reshape(*piv.shape[:-1], m)


def lu_body(a: Any, pivot: bool) -> Any:
    """Packed L and U, interchanges (from 1), the first zero pivot, the permutation of rows and its inverse."""
    if pivot:
        try:
            return kernels.matrices.lu(a)
        except kernels.NotSupported:
            pass
    lead, (m, n) = a.shape[:-2], a.shape[-2:]
    k = min(m, n)
    flat = a.reshape(math.prod(lead), m, n)
    if not pivot or not a.size or len(flat) > k or k <= 4:
        lu, piv = _eliminate(flat, pivot)
    else:
        from scipy.linalg import get_lapack_funcs

        (getrf,) = get_lapack_funcs(("getrf",), dtype=a.dtype)
        lu, piv = np.empty_like(flat), np.empty((len(flat), k), np.int64)
        for i, x in enumerate(flat):
            lu[i], piv[i], _ = getrf(x)
    d = np.diagonal(lu, 0, -2, -1) == 0
    info = np.where(d.any(-1), np.argmax(d, -1) + 1, 0) if k else np.zeros(len(flat), np.int64)
    perm = _permutation(piv, m)
    shape = lambda v: v.reshape((*lead, *v.shape[1:]))
    return (
        shape(lu),
        shape((piv + 1).astype(np.int32)),
        shape(info.astype(np.int32)),
        shape(perm),
        shape(np.argsort(perm, axis=-1)),
    )


@op("lu_factor", core="(m,n)->(m,n),(k),(),(m),(m)", integer_outputs=(1, 2, 3, 4))
def lu_p(a: Any, *, pivot: bool) -> Any:
    """Packed L and U, interchanges (from 1), the first zero pivot, the permutation of rows and its inverse."""
    return lu_body(a, pivot)


def _rows(x: Tensor, perm: Tensor) -> Tensor:
    """The rows of x in the order `perm`."""
    lead = broadcast_shapes(x.shape[:-2], perm.shape[:-1])
    x = x.expand(*lead, *x.shape[-2:])
    i = perm.unsqueeze(-1).expand(*x.shape)
    return gather_p.bind(x, i, dim=-2, old=tuple(x.shape))


def _unit_lower(lu: Tensor, k: int) -> Tensor:
    return tril(lu[..., :k], -1) + identity(lu.shape[-2], lu, k)


# With F = L^-1 P^T dA U^-1 for the square part: dL = L stril(F), dU = triu(F) U; what lies beside or below it follows.


@lu_p.jvp
def _(t: Any, y: Any, a: Any, *, pivot: bool) -> Any:
    lu, _, _, perm, _ = y
    m, n = lu.shape[-2:]
    k = min(m, n)
    d = _rows(t[0], perm)
    top = lu[..., :k, :k]
    f = trsm_p.bind(top, trsm_right(top, d[..., :k, :k]), upper=False, unit=True)
    low, up = tril(f, -1), triu(f)
    out = mm(_unit_lower(top, k), low) + mm(up, triu(top))
    if n > m:
        beside = trsm_p.bind(top, d[..., k:], upper=False, unit=True) - mm(low, lu[..., k:])
        out = cat((out, beside), -1)
    elif m > n:
        out = cat((out, trsm_right(top, d[..., k:, :]) - mm(lu[..., k:, :], up)), -2)
    return out, None, None, None, None


@lu_p.vjp
def _(g: Any, y: Any, a: Any, *, pivot: bool) -> Any:
    lu, _, _, _, back = y
    g = g[0]
    m, n = lu.shape[-2:]
    k = min(m, n)
    top, g1 = lu[..., :k, :k], g[..., :k, :k]
    # Triangular systems with adjoint factors: L^H is upper, U^H lower.
    left = lambda b: trsm_p.bind(adjoint(top), b, upper=True, unit=True)
    right = lambda b: adjoint(trsm_p.bind(top, adjoint(b), upper=True, unit=False))
    gl = mm(adjoint(_unit_lower(top, k)), tril(g1, -1))
    gu = mm(triu(g1), adjoint(triu(top)))
    if n > m:
        gl = gl - mm(g[..., k:], adjoint(lu[..., k:]))
    elif m > n:
        gu = gu - mm(adjoint(lu[..., k:, :]), g[..., k:, :])
    out = left(right(tril(gl, -1) + triu(gu)))
    if n > m:
        out = cat((out, left(g[..., k:])), -1)
    elif m > n:
        out = cat((out, right(g[..., k:, :])), -2)
    return (_rows(out, back),)


@op("pivots_to_permutation", differentiable=False)
def pivots_p(piv: Any, *, m: int) -> Any:
    """The permutation of m rows made by interchanges (from 1)."""
    return _permutation(piv.astype(np.int64) - 1, m)


@op("invert_permutation", differentiable=False)
def invert_p(perm: Any) -> Any:
    """The inverse permutation."""
    return np.argsort(perm, axis=-1)


@op("permutation_matrix", differentiable=False)
def permutation_matrix_p(perm: Any, *, dtype: Any) -> Any:
    """``P`` with ``P[perm[j], j] = 1``."""
    return (perm[..., None, :] == np.arange(perm.shape[-1])[:, None]).astype(dtype)


# -- public -------------------------------------------------------------------------------------------------------------


def _factor(name: str, a: Tensor, pivot: bool, check: bool) -> tuple[Tensor, ...]:
    floating(name, a)
    y = lu_p(a, pivot=bool(pivot))
    if check:
        _raise_singular(name, y[2])
    return y


def _raise_singular(name: str, info: Tensor) -> None:
    raise_info(
        name,
        info,
        "U[{0},{0}] is zero, and lu_solve would divide by it. linalg.lu and linalg.lu_factor_ex do not raise.",
    )


@public("linalg.lu_factor")
@straight
def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactor:
    """L and U packed into one matrix, and the row interchanges; raises where a pivot is zero."""
    lu, piv, *_ = _factor("linalg.lu_factor", A, pivot, check=True)
    return LUFactor(lu, piv)


@public("linalg.lu_factor_ex")
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorEx:
    """As lu_factor, with the first zero pivot of each matrix (0: none) instead of an error."""
    return LUFactorEx(*_factor("linalg.lu_factor_ex", A, pivot, check_errors)[:3])


@public("linalg.lu")
@straight
def linalg_lu(A: Tensor, *, pivot: bool = True) -> PLU:
    """``A = P L U``: P a permutation (empty without `pivot`), L unit lower and U upper triangular."""
    lu, _, _, perm, _ = _factor("linalg.lu", A, pivot, check=False)
    k = min(A.shape[-2:])
    p = permutation_matrix_p(perm, dtype=A.dtype.np) if pivot else constant(np.zeros((0,)), A)
    return PLU(p, _unit_lower(lu, k), triu(lu[..., :k, :]))


@public("lu", methods="lu", out=False)
@straight
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> LUFactor | LUFactorEx:
    """L and U packed into one matrix and the row interchanges; with `get_infos` the first zero pivots."""
    y = _factor("lu", A, pivot, check=not get_infos)
    return LUFactorEx(*y[:3]) if get_infos else LUFactor(*y[:2])


@public("lu_unpack")
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> PLU:
    """``P, L, U`` from what lu_factor returns."""
    if not isinstance(LU_data, Tensor) or LU_data.ndim < 2:
        raise RuntimeError("lu_unpack: LU_data must be a tensor with at least 2 dimensions")
    if LU_pivots.dtype is not dt.int32:
        raise RuntimeError(
            f"lu_unpack: LU_pivots is expected to be a contiguous tensor of int32, got {LU_pivots.dtype}. Use what lu_factor returns"
        )
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    if unpack_pivots and (tuple(LU_pivots.shape) != (*LU_data.shape[:-2], k)):
        raise RuntimeError(
            f"lu_unpack: expected LU_pivots of shape {[*LU_data.shape[:-2], k]} for LU_data {list(LU_data.shape)}, got {list(LU_pivots.shape)}"
        )
    empty = constant(np.zeros((0,)), LU_data)
    p = permutation_matrix_p(pivots_p(LU_pivots, m=m), dtype=LU_data.dtype.np) if unpack_pivots else empty
    if not unpack_data:
        return PLU(p, empty, empty)
    return PLU(p, _unit_lower(LU_data, k), triu(LU_data[..., :k, :]))


@public("linalg.lu_solve")
def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """``X`` with ``A X = B`` (``X A = B`` with ``left=False``; ``A^H`` with `adjoint`) from A's LU factorization."""
    name = "linalg.lu_solve"
    square(name, LU, "LU")
    floating(name, B, "B")
    same_dtype(name, LU, B, "LU and B")
    if pivots.dtype is not dt.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32, got {pivots.dtype}")
    if tuple(pivots.shape) != tuple(LU.shape[:-1]):
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of the matrix: "
            f"LU is {list(LU.shape)}, pivots are {list(pivots.shape)}"
        )
    if B.shape[-2 if left else -1] != LU.shape[-1]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A {list(LU.shape)} and B {list(B.shape)} for {'AX = B' if left else 'XA = B'}"
        )
    broadcast_shapes(LU.shape[:-2], B.shape[:-2], what=f"{name}: batch dimensions of LU and B")
    if not left:
        return _adjoint(linalg_lu_solve(LU, pivots, _adjoint(B), adjoint=not adjoint))
    perm = pivots_p(pivots, m=LU.shape[-1])
    if not adjoint:
        y = trsm_p(LU, _rows(B, perm), upper=False, unit=True)
        return trsm_p(LU, y, upper=True, unit=False)
    h = _adjoint(LU)
    y = trsm_p(h, trsm_p(h, B, upper=False, unit=False), upper=True, unit=True)
    return _rows(y, invert_p(perm))


_adjoint = adjoint


@public("lu_solve", methods="lu_solve")
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """``X`` with ``A X = b`` from A's LU factorization."""
    return linalg_lu_solve(LU_data, LU_pivots, b)


# -- samples ------------------------------------------------------------------------------------------------------------

sample("linalg.lu", S(2, 3, 3), f=lambda a: tuple(linalg_lu(a)))
sample("linalg.lu", S(2, 4), f=lambda a: tuple(linalg_lu(a)))
sample("linalg.lu", S(4, 2), f=lambda a: tuple(linalg_lu(a)))
sample("linalg.lu_factor", S(3, 3, spd=True), pivot=False)
sample("linalg.lu_factor", S(6, 6))
sample("linalg.lu_solve", S(3, 3), S(3, 2), f=lambda a, b: linalg_lu_solve(*lu_factor(a), b))
sample(
    "linalg.lu_solve", S(3, 3), S(2, 2, 3), f=lambda a, b: linalg_lu_solve(*lu_factor(a), b, left=False, adjoint=True)
)
