"""The LDL factorization of symmetric and Hermitian matrices that need not be definite."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import broadcast_shapes
from ...core.tensor import Tensor
from .common import floating, is_complex, raise_info, same_dtype, square, widened


class LDL(NamedTuple):
    """L and the blocks of D packed into one matrix, and the interchanges (LAPACK's)."""

    LD: Tensor
    pivots: Tensor


class LDLEx(NamedTuple):
    """As LDL, with the index (from 1) of the first zero block, or 0."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


@op("ldl_factor", core="(n,n)->(n,n),(n),()", integer_outputs=(1, 2))
def ldl_factor_p(a: Any, *, hermitian: bool) -> Any:
    """Bunch and Kaufman's factorization of the lower triangle, as LAPACK packs it. No rules: a derivative of it is missing."""
    from scipy.linalg import get_lapack_funcs

    n = a.shape[-1]
    flat = a.reshape(int(np.prod(a.shape[:-2])), n, n)
    ld, piv, info = flat.copy(), np.zeros((len(flat), n), np.int32), np.zeros(len(flat), np.int32)
    if a.size:
        name = "hetrf" if hermitian and a.dtype.kind == "c" else "sytrf"
        factor, work = get_lapack_funcs((name, name + "_lwork"), dtype=a.dtype)
        lwork = int(work(n, lower=1)[0].real)
        for i, x in enumerate(flat):
            y, piv[i], info[i] = factor(x, lower=1, lwork=lwork)
            ld[i] = np.tril(y)
    shape = lambda v: v.reshape((*a.shape[:-2], *v.shape[1:]))
    return shape(ld), shape(piv), shape(np.maximum(info, 0))


def _check_pivots(piv: Any) -> None:
    """Refuse what no factorization gives: LAPACK would read and write wherever it points."""
    for row in piv.tolist():
        k, n = 0, len(row)
        while k < n:
            pair = row[k] < 0
            if not 1 <= abs(row[k]) <= n or (pair and (k + 1 == n or row[k + 1] != row[k])):
                raise RuntimeError(
                    f"linalg.ldl_solve: pivots {row} are not those of a factorization of a {n} x {n} matrix; pass what ldl_factor gave"
                )
            k += 1 + pair


@op("ldl_solve", core="(n,n),(n),(n,k)->(n,k)")
def ldl_solve_p(ld: Any, piv: Any, b: Any, *, hermitian: bool) -> Any:
    """``x`` with ``a x = b`` from a's packed factorization."""
    from scipy.linalg import get_lapack_funcs

    lead = np.broadcast_shapes(ld.shape[:-2], piv.shape[:-1], b.shape[:-2])
    n, k = b.shape[-2:]
    count = int(np.prod(lead))
    out = np.empty((count, n, k), b.dtype)
    if out.size:
        name = "hetrs" if hermitian and ld.dtype.kind == "c" else "sytrs"
        (solve,) = get_lapack_funcs((name,), dtype=ld.dtype)
        ld = np.broadcast_to(ld, (*lead, n, n)).reshape(count, n, n)
        piv = np.broadcast_to(piv, (*lead, n)).reshape(count, n)
        b = np.broadcast_to(b, (*lead, n, k)).reshape(count, n, k)
        _check_pivots(piv)
        for i in range(count):
            out[i] = solve(ld[i], piv[i], b[i], lower=1)[0]
    return out.reshape(*lead, n, k)


def _in_b(t: Any, ld: Any) -> None:
    if t is not None:
        raise RuntimeError(
            "linalg.ldl_solve: the derivative with respect to LD is not implemented. Differentiate linalg.solve instead"
        )


@ldl_solve_p.jvp(sparse=True)
def _(t: Any, y: Any, ld: Any, piv: Any, b: Any, *, hermitian: bool) -> Any:
    _in_b(t[0], ld)
    return ldl_solve_p.bind(ld, piv, t[2], hermitian=hermitian)


@ldl_solve_p.vjp
def _(g: Any, y: Any, ld: Any, piv: Any, b: Any, *, hermitian: bool) -> Any:
    def gb() -> Tensor:
        # A Hermitian matrix is its own adjoint, a symmetric one the conjugate of it.
        if hermitian or not is_complex(ld):
            return ldl_solve_p.bind(ld, piv, g, hermitian=hermitian)
        return ldl_solve_p.bind(ld, piv, g.conj(), hermitian=hermitian).conj()

    return lambda: _in_b(g, ld), None, gb


@public("linalg.ldl_factor_ex")
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> LDLEx:
    """As ldl_factor, with the first zero block of each matrix (0: none) instead of an error."""
    square("linalg.ldl_factor_ex", A)
    y = LDLEx(*ldl_factor_p(A, hermitian=bool(hermitian)))
    if check_errors:
        raise_info("linalg.ldl_factor_ex", y.info, "The block D[{}] is exactly zero: the matrix is singular.")
    return y


@public("linalg.ldl_factor")
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> LDL:
    """``A = L D L^T`` (``L D L^H`` with `hermitian`) from the lower triangle, packed, with the interchanges."""
    square("linalg.ldl_factor", A)
    ld, piv, info = ldl_factor_p(A, hermitian=bool(hermitian))
    raise_info("linalg.ldl_factor", info, "The block D[{}] is exactly zero: the matrix is singular.")
    return LDL(ld, piv)


@public("linalg.ldl_solve")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """``X`` with ``A X = B`` from A's LDL factorization."""
    name = "linalg.ldl_solve"
    square(name, LD, "LD")
    floating(name, B, "B")
    same_dtype(name, LD, B, "LD and B")
    if B.shape[-2] != LD.shape[-1]:
        raise RuntimeError(f"{name}: Incompatible shapes of LD {list(LD.shape)} and B {list(B.shape)}")
    if pivots.dtype.category > dt.INT:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {pivots.dtype}")
    if tuple(pivots.shape) != tuple(LD.shape[:-1]):
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots {list(pivots.shape)} and LD {list(LD.shape)}"
        )
    broadcast_shapes(LD.shape[:-2], B.shape[:-2], what=f"{name}: batch dimensions of LD and B")
    (ld, b), narrow = widened(LD, B)
    return narrow(ldl_solve_p(ld, pivots, b, hermitian=bool(hermitian)))


# -- samples ------------------------------------------------------------------------------------------------------------

sample(
    "linalg.ldl_solve",
    S(3, 3, spd=True, grad=False),
    S(2, 3, 2),
    f=lambda a, b: ldl_solve(*ldl_factor(a, hermitian=True), b, hermitian=True),
)
