"""Solving linear systems, and the Cholesky factor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.op import op
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import broadcast_shapes
from ...core.tensor import Tensor
from ..index import tril
from ..matmul import matmul_p
from .common import LinAlgError, adjoint, square

# -- solve ------------------------------------------------------------------------------------------------------------


@op("solve", core="(n,n),(n,k)->(n,k)")
def solve_p(a: Any, b: Any) -> Any:
    """``x`` with ``a x = b``."""
    d = np.result_type(a.dtype, b.dtype)
    try:
        return np.linalg.solve(a, b).astype(d, copy=False)
    except np.linalg.LinAlgError:
        raise LinAlgError("linalg.solve: The solver failed because the input matrix A is singular.") from None


# dx = A^-1 (db - dA x); reverse: gb = A^-H g, gA = -gb x^H.
solve_p.jvp([lambda t, x, a, b: -solve_p.bind(a, matmul_p.bind(t, x)), lambda t, x, a, b: solve_p.bind(a, t)])


@solve_p.vjp
def _(g: Any, x: Any, a: Any, b: Any) -> Any:
    gb = solve_p.bind(adjoint(a), g)
    return lambda: -matmul_p.bind(gb, adjoint(x)), gb


@public("linalg.solve")
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


# -- cholesky ---------------------------------------------------------------------------------------------------------


@op("cholesky", core="(n,n)->(n,n)")
def cholesky_p(a: Any) -> Any:
    """The lower triangular ``L`` with ``L L^H = a``, which reads the lower triangle of a."""
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "linalg.cholesky: The factorization could not be completed because the input A is not positive-definite."
        ) from None


def half_tril(x: Tensor) -> Tensor:
    """The lower triangle with the diagonal halved: the projection that Cholesky's derivative needs."""
    low = tril(x)
    n = x.shape[-1]
    half = np.ones((n, n), x.dtype.to_real().np)
    np.fill_diagonal(half, 0.5)
    return low * Tensor(half)


def _hermitian(t: Tensor) -> Tensor:
    return (t + adjoint(t)) / 2


@cholesky_p.jvp
def _(t: Any, y: Any, a: Any) -> Any:
    # dL = L Phi(L^-1 dA L^-H)
    inner = solve_p.bind(y, adjoint(solve_p.bind(y, adjoint(_hermitian(t[0])))))
    return matmul_p.bind(y, half_tril(inner))


@cholesky_p.vjp
def _(g: Any, y: Any, a: Any) -> Any:
    phi = half_tril(matmul_p.bind(adjoint(y), tril(g)))
    yh = adjoint(y)
    s = solve_p.bind(yh, phi)
    return (_hermitian(adjoint(solve_p.bind(yh, adjoint(s)))),)


@public("linalg.cholesky")
def linalg_cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The triangular factor of a Hermitian positive-definite matrix: ``A = L L^H``, or ``A = U^H U`` with ``upper``."""
    square("linalg.cholesky", A)
    low = cholesky_p(adjoint(A) if upper else A)
    return low.mH if upper else low


@public("cholesky", methods="cholesky")
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The triangular factor of a Hermitian positive-definite matrix."""
    square("cholesky", input, "input")
    low = cholesky_p(input)
    return low.mH if upper else low


# -- samples ------------------------------------------------------------------------------------------------------------

sample("linalg.solve", S(2, 3, 3, spd=True), S(2, 3, 2))
sample("linalg.solve", S(3, 3, spd=True), S(3))
sample("linalg.solve", S(3, 3, spd=True), S(2, 3), left=False)
sample("linalg.cholesky", S(2, 3, 3, spd=True), f=lambda a: linalg_cholesky(_hermitian(a)))
sample("linalg.cholesky", S(3, 3, spd=True), f=lambda a: linalg_cholesky(_hermitian(a), upper=True))
