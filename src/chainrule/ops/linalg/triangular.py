"""Triangular systems, and what is solved with them: Cholesky factors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ... import kernels
from ...core.declare import op
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import broadcast_shapes
from ...core.straight import straight
from ...core.tensor import Tensor
from ..shape.triangles import tril, triu
from .common import adjoint, floating, identity, mm, same_dtype, square


def _substitute(a: Any, b: Any, upper: bool, unit: bool) -> Any:
    """Substitution row by row, for all systems at once."""
    n = a.shape[-1]
    x = np.array(np.broadcast_to(b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])))
    for i in range(n - 1, -1, -1) if upper else range(n):
        done = slice(i + 1, n) if upper else slice(0, i)
        if done.stop > done.start:
            x[..., i, :] -= (a[..., None, i, done] @ x[..., done, :])[..., 0, :]
        if not unit:
            x[..., i, :] /= a[..., i, i, None]
    return x


@op("solve_triangular", core="(n,n),(n,k)->(n,k)")
def trsm_p(a: Any, b: Any, *, upper: bool, unit: bool) -> Any:
    """``x`` with ``tri(a) x = b`` for the upper or lower triangle of a, its diagonal taken as ones with `unit`."""
    try:
        return kernels.matrices.triangular(a, b, upper, unit)
    except kernels.NotSupported:
        pass
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    count = int(np.prod(lead))
    n, k = b.shape[-2:]
    d = np.result_type(a.dtype, b.dtype)
    a, b = a.astype(d, copy=False), b.astype(d, copy=False)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if count == 0 or n * k == 0 or count > n or (n <= 4 and count > 1):
            return _substitute(a, b, upper, unit)
        from scipy.linalg import get_blas_funcs

        (trsm,) = get_blas_funcs(("trsm",), dtype=d)
        a = np.broadcast_to(a, (*lead, n, n)).reshape(count, n, n)
        b = np.broadcast_to(b, (*lead, n, k)).reshape(count, n, k)
        x = np.empty((count, n, k), d)
        for i in range(count):
            # The transpose of a C-ordered matrix is Fortran-ordered as it lies.
            x[i] = trsm(1.0, a[i].T, b[i], side=0, lower=upper, trans_a=1, diag=unit)
        return x.reshape(*lead, n, k)


def _triangle(x: Tensor, upper: bool, unit: bool) -> Tensor:
    return triu(x, int(unit)) if upper else tril(x, -int(unit))


trsm_p.jvp(
    [
        lambda t, x, a, b, *, upper, unit: -trsm_p.bind(a, mm(_triangle(t, upper, unit), x), upper=upper, unit=unit),
        lambda t, x, a, b, *, upper, unit: trsm_p.bind(a, t, upper=upper, unit=unit),
    ]
)


@trsm_p.vjp
def _(g: Any, x: Any, a: Any, b: Any, *, upper: bool, unit: bool) -> Any:
    gb = trsm_p.bind(adjoint(a), g, upper=not upper, unit=unit)
    return lambda: -_triangle(mm(gb, adjoint(x)), upper, unit), gb


def trsm_right(r: Tensor, b: Tensor) -> Tensor:
    """``x`` with ``x triu(r) = b``."""
    return trsm_p.bind(r.mT, b.mT, upper=False, unit=False).mT


@public("linalg.solve_triangular")
@straight
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """``X`` with ``A X = B`` (``X A = B`` with ``left=False``) for a triangular A; what lies beyond its triangle is not read."""
    name = "linalg.solve_triangular"
    square(name, A)
    floating(name, B, "B")
    same_dtype(name, A, B)
    if A.shape[-1] != B.shape[-2 if left else -1]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        )
    broadcast_shapes(A.shape[:-2], B.shape[:-2], what=f"{name}: batch dimensions of A and B")
    if left:
        return trsm_p(A, B, upper=bool(upper), unit=bool(unitriangular))
    return trsm_p(A.mT, B.mT, upper=not upper, unit=bool(unitriangular)).mT


class TriangularSolve(NamedTuple):
    """The solution, and the matrix."""

    solution: Tensor
    cloned_coefficient: Tensor


@public("triangular_solve", methods="triangular_solve")
def triangular_solve(
    input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> TriangularSolve:
    """``X`` with ``A X = input`` (``A^T X = input`` with `transpose`) for a triangular A, and a copy of A."""
    name = "triangular_solve"
    square(name, A)
    floating(name, input, "b")
    same_dtype(name, A, input, "A and b")
    if A.shape[-1] != input.shape[-2]:
        raise RuntimeError(
            f"{name}: Incompatible matrix sizes: each A matrix is {A.shape[-2]} by {A.shape[-1]} but each b matrix is "
            f"{input.shape[-2]} by {input.shape[-1]}"
        )
    broadcast_shapes(A.shape[:-2], input.shape[:-2], what=f"{name}: batch dimensions of A and b")
    a, up = (A.mT, not upper) if transpose else (A, bool(upper))
    return TriangularSolve(trsm_p(a, input, upper=up, unit=bool(unitriangular)), A.clone())


# -- from a Cholesky factor ---------------------------------------------------------------------------------------------


@public("cholesky_solve", methods="cholesky_solve")
@straight
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """``X`` with ``L L^H X = B`` (``U^H U X = B`` with `upper`) for a triangular factor."""
    name = "cholesky_solve"
    square(name, L, "L")
    floating(name, B, "B")
    same_dtype(name, L, B, "L and B")
    if L.shape[-1] != B.shape[-2]:
        raise RuntimeError(f"{name}: Incompatible matrix sizes: L is {list(L.shape)}, B is {list(B.shape)}")
    broadcast_shapes(L.shape[:-2], B.shape[:-2], what=f"{name}: batch dimensions of L and B")
    h = adjoint(L)
    first, second = (h, L) if upper else (L, h)
    return trsm_p(second, trsm_p(first, B, upper=False, unit=False), upper=True, unit=False)


@public("cholesky_inverse", methods="cholesky_inverse")
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """``(L L^H)^-1`` (``(U^H U)^-1`` with `upper`) from a triangular factor."""
    square("cholesky_inverse", L, "L")
    low = adjoint(L) if upper else L
    w = trsm_p(low, identity(L.shape[-1], L), upper=False, unit=False)
    return mm(adjoint(w), w)


# -- samples ------------------------------------------------------------------------------------------------------------

sample("linalg.solve_triangular", S(2, 3, 3, spd=True), S(2, 3, 2), upper=True)
sample("linalg.solve_triangular", S(3, 3, spd=True), S(2, 2, 3), upper=False, left=False)
sample("linalg.solve_triangular", S(3, 3), S(3, 1), upper=False, unitriangular=True)
sample("linalg.solve_triangular", S(6, 6, spd=True), S(6, 2), upper=False)
sample("triangular_solve", S(3, 2), S(3, 3, spd=True), transpose=True)
sample("cholesky_solve", S(3, 2), S(3, 3, spd=True))
sample("cholesky_inverse", S(2, 3, 3, spd=True), upper=True)
