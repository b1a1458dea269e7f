"""Solving linear systems, and the Cholesky factor."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.declare import op
from ...core.dispatch import unseen
from ...core.errors import see
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import broadcast_shapes
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.select import where
from ..shape.triangles import tril
from .common import LinAlgError, adjoint, concrete_info, hermitian, identity, raise_info, square
from .matmul import matmul_p
from .triangular import trsm_p

# -- solve ------------------------------------------------------------------------------------------------------------


@op("solve", core="(n,n),(n,k)->(n,k)")
def solve_p(a: Any, b: Any) -> Any:
    """``x`` with ``a x = b``."""
    d = np.result_type(a.dtype, b.dtype)
    try:
        return np.linalg.solve(a, b).astype(d, copy=False)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "linalg.solve: The solver failed because the input matrix A is singular; add a multiple of the identity, or write linalg.lstsq"
            + see("Singular matrices, repeated eigenvalues")
        ) from None


# dx = A^-1 (db - dA x); reverse: gb = A^-H g, gA = -gb x^H.
solve_p.jvp([lambda t, x, a, b: -solve_p.bind(a, matmul_p.bind(t, x)), lambda t, x, a, b: solve_p.bind(a, t)])


@solve_p.vjp
def _(g: Any, x: Any, a: Any, b: Any) -> Any:
    gb = solve_p.bind(adjoint(a), g)
    return lambda: -matmul_p.bind(gb, adjoint(x)), gb


@public("linalg.solve")
@straight
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """``X`` with ``A X = B`` (or ``X A = B`` with ``left=False``); B may be a vector or a batch of vectors."""
    square("linalg.solve", A)
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {A.dtype} and B of type {B.dtype} instead"
        )
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))
    if vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side B is not supported for left=False. Pass a matrix."
        )
    b = B.unsqueeze(-1) if vector else B
    if not left:
        return solve(A.mT, b.mT).mT
    if b.ndim < 2 or b.shape[-2] != A.shape[-1]:
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A {list(A.shape)} and B {list(B.shape)}: each has to have the same number of rows"
        )
    broadcast_shapes(A.shape[:-2], b.shape[:-2], what="linalg.solve: batch dimensions of A and B")
    x = solve_p(A, b)
    return x.squeeze(-1) if vector else x


class SolveEx(NamedTuple):
    """The solution, and the index (from 1) of the first zero pivot, or 0."""

    result: Tensor
    info: Tensor


@public("linalg.solve_ex")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveEx:
    """As solve, with the first zero pivot of each matrix (0: none) instead of an error."""
    from .lu import lu_p

    square("linalg.solve_ex", A)
    info = lu_p(A.detach(), pivot=True)[2]
    bad = info > 0
    if not unseen(info, "the success of a factorization") and not (concrete_info(info) > 0).any():
        return SolveEx(solve(A, B, left=left), info)
    if check_errors:
        raise_info("linalg.solve_ex", info, "The solver failed because the input matrix is singular (zero pivot {}).")
    x = solve(where(bad.unsqueeze(-1).unsqueeze(-1), identity(A.shape[-1], A), A), B, left=left)
    while bad.ndim < x.ndim:
        bad = bad.unsqueeze(-1)
    return SolveEx(where(bad, float("inf"), x), info)


# -- cholesky ---------------------------------------------------------------------------------------------------------


@op("cholesky", core="(n,n)->(n,n),()", integer_outputs=(1,))
def cholesky_p(a: Any) -> Any:
    """``L`` with ``L L^H = a`` from the lower triangle of a, and the order of the first minor that is not positive (0: none)."""
    try:
        return np.linalg.cholesky(a), np.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        from scipy.linalg import get_lapack_funcs

        (potrf,) = get_lapack_funcs(("potrf",), dtype=a.dtype)
        flat = a.reshape(-1, *a.shape[-2:])
        low, info = np.empty_like(flat), np.empty(len(flat), np.int32)
        for i, x in enumerate(flat):
            low[i], info[i] = potrf(x, lower=1, clean=1)
        return low.reshape(a.shape), info.reshape(a.shape[:-2])


def half_tril(x: Tensor) -> Tensor:
    """The lower triangle with the diagonal halved: the projection that Cholesky's derivative needs."""
    low = tril(x)
    n = x.shape[-1]
    half = np.ones((n, n), x.dtype.to_real().np)
    np.fill_diagonal(half, 0.5)
    return low * Tensor(half)


@cholesky_p.jvp
def _(t: Any, y: Any, a: Any) -> Any:
    # dL = L Phi(L^-1 dA L^-H)
    low = y[0]
    inner = _low(low, adjoint(_low(low, adjoint(hermitian(t[0])))))
    return matmul_p.bind(low, half_tril(inner)), None


@cholesky_p.vjp
def _(g: Any, y: Any, a: Any) -> Any:
    h = adjoint(y[0])
    phi = half_tril(matmul_p.bind(h, tril(g[0])))
    s = trsm_p.bind(h, phi, upper=True, unit=False)
    return (hermitian(adjoint(trsm_p.bind(h, adjoint(s), upper=True, unit=False))),)


def _low(a: Tensor, b: Tensor) -> Tensor:
    return trsm_p.bind(a, b, upper=False, unit=False)


def _factor(name: str, a: Tensor, upper: bool, check: bool = True) -> tuple[Tensor, Tensor]:
    low, info = cholesky_p(adjoint(a) if upper else a)
    if check:
        raise_info(
            name,
            info,
            "The factorization could not be completed because the input is not positive-definite "
            "(the leading minor of order {} is not positive-definite).",
        )
    return adjoint(low) if upper else low, info


@public("linalg.cholesky")
@straight
def linalg_cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The triangular factor of a Hermitian positive-definite matrix: ``A = L L^H``, or ``A = U^H U`` with ``upper``."""
    square("linalg.cholesky", A)
    return _factor("linalg.cholesky", A, upper)[0]


class CholeskyEx(NamedTuple):
    """The factor, and the order of the first minor that is not positive-definite, or 0."""

    L: Tensor
    info: Tensor


@public("linalg.cholesky_ex")
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """The triangular factor and, instead of an error, the order of the first minor that is not positive-definite."""
    square("linalg.cholesky_ex", A)
    return CholeskyEx(*_factor("linalg.cholesky_ex", A, upper, check_errors))


@public("cholesky", methods="cholesky")
@straight
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The triangular factor of a Hermitian positive-definite matrix."""
    square("cholesky", input, "input")
    return _factor("cholesky", input, upper)[0]


# -- samples ------------------------------------------------------------------------------------------------------------

sample("linalg.solve", S(2, 3, 3, spd=True), S(2, 3, 2))
sample("linalg.solve", S(3, 3, spd=True), S(3))
sample("linalg.solve", S(3, 3, spd=True), S(2, 3), left=False)
sample("linalg.cholesky", S(2, 3, 3, spd=True), f=lambda a: linalg_cholesky(hermitian(a)))
sample("linalg.cholesky", S(3, 3, spd=True), f=lambda a: linalg_cholesky(hermitian(a), upper=True))
