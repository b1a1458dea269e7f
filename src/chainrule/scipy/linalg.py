"""scipy.linalg with derivatives: functions of matrices, Sylvester's equation, structured systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.registry import PUBLIC
from ..core.tensor import Tensor
from ..interop.numpy.value import Array, wrap
from ..ops.linalg.matrix_functions import logm_p, sqrtm_p, sylvester_p
from ..ops.linalg.schur import schur_p
from .kinds import on_tensors, result


@on_tensors(1)
def expm(A: Any) -> Any:
    """The exponential of a matrix."""
    return PUBLIC["linalg.matrix_exp"](A)


@on_tensors(1)
def logm(A: Any) -> Any:
    """The principal logarithm of a matrix."""
    return logm_p(A)


@on_tensors(1)
def sqrtm(A: Any) -> Any:
    """The principal square root of a matrix."""
    return sqrtm_p(A)


@on_tensors(1)
def schur(a: Any, output: str = "real", **kw: Any) -> Any:
    """``a = Z T Z^H``, as ``(T, Z)``: T upper triangular with ``output="complex"``, with blocks of two rows for complex eigenvalues with ``"real"``.

    The phases of the complex vectors have no derivative: a loss must not depend on them.
    """
    if output not in ("real", "r", "complex", "c"):
        raise ValueError(f"schur: output must be 'real' or 'complex', got {output!r}")
    if kw.pop("sort", None) is not None:
        raise NotImplementedError("schur: sort has no derivative here; sort the eigenvalues afterwards")
    _harmless("schur", kw)
    return schur_p(a + 0j if output[0] == "c" and not a.dtype.is_complex else a)


@on_tensors(3, one_type=True)
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The solution of ``a x + x b = q``."""
    return sylvester_p(a, b, q)


@on_tensors(2, one_type=True)
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """The solution of ``a x + x a^H = q``."""
    return sylvester_p(a, a.mT.conj() if a.dtype.is_complex else a.mT, q)


def _harmless(what: str, kw: dict[str, Any]) -> None:
    """Refuse settings that are no hints about memory and checks: what is left out must not change a result."""
    rest = [k for k in kw if not k.startswith("overwrite_") and k not in ("check_finite", "lwork")]
    if rest:
        raise TypeError(f"{what}: {', '.join(rest)} is not taken here")


def _from_triangle(a: Tensor, lower: bool, conjugate: bool) -> Tensor:
    """The symmetric (Hermitian) matrix that one triangle stands for: LAPACK reads no more, so the other has no derivative."""
    part = PUBLIC["tril"](a, -1) if lower else PUBLIC["triu"](a, 1)
    d = a.diagonal(0, -2, -1)
    if not a.dtype.is_complex or not conjugate:
        return part + part.mT + PUBLIC["diag_embed"](d)
    return part + part.mT.conj() + PUBLIC["diag_embed"](d.real).to(a.dtype)


def _assumed(a: Tensor, what: str, lower: bool) -> Tensor:
    """The part of a matrix that a solver reads that was told its structure."""
    if what in ("pos", "positive definite", "her", "hermitian"):
        return _from_triangle(a, lower, True)
    if what in ("sym", "symmetric"):
        return _from_triangle(a, lower, False)
    if what == "diagonal":
        return PUBLIC["diag_embed"](a.diagonal(0, -2, -1))
    if what == "tridiagonal":
        return PUBLIC["triu"](PUBLIC["tril"](a, 1), -1)
    if what == "upper triangular":
        return PUBLIC["triu"](a)
    if what == "lower triangular":
        return PUBLIC["tril"](a)
    if what in ("gen", "general", "banded"):
        return a
    raise ValueError(f"solve: {what!r} is not a known structure of assume_a=")


@on_tensors(2, one_type=True)
def solve(a: Any, b: Any, *, assume_a: Any = None, lower: bool = False, transposed: bool = False, **kw: Any) -> Any:
    """The solution of ``a x = b``, with ``transposed`` of ``a^T x = b``. Of a matrix with the structure `assume_a` no more is read than that needs."""
    _harmless("solve", kw)
    if assume_a is not None:
        a = _assumed(a, assume_a, lower)
    if transposed:
        a = a.mT
    return PUBLIC["linalg.solve"](a, b.unsqueeze(-1)).squeeze(-1) if b.ndim == 1 else PUBLIC["linalg.solve"](a, b)


def _transposed(a: Tensor, trans: Any) -> Tensor:
    t = {"N": 0, "T": 1, "C": 2}.get(trans, trans)
    return a if t == 0 else a.mT if t == 1 else a.mT.conj()


@on_tensors(2, one_type=True)
def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, **kw: Any
) -> Any:
    """The solution of ``a x = b`` for a triangular matrix."""
    _harmless("solve_triangular", kw)
    upper = not lower
    if trans not in (0, "N"):
        a, upper = _transposed(a, trans), lower
    y = PUBLIC["linalg.solve_triangular"](
        a, b.unsqueeze(-1) if b.ndim == 1 else b, upper=upper, unitriangular=unit_diagonal
    )
    return y.squeeze(-1) if b.ndim == 1 else y


@on_tensors(1)
def cholesky(a: Any, lower: bool = False, **kw: Any) -> Any:
    """The triangular factor of a positive definite matrix; the upper one unless `lower`."""
    _harmless("cholesky", kw)
    return PUBLIC["linalg.cholesky"](_from_triangle(a, lower, True), upper=not lower)


def cho_factor(a: Any, lower: bool = False, **kw: Any) -> Any:
    """The Cholesky factor for `cho_solve`."""
    _harmless("cho_factor", kw)
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: Any, b: Any, **kw: Any) -> Any:
    """The solution of a positive definite system from its Cholesky factor."""
    _harmless("cho_solve", kw)
    c, lower = c_and_lower
    y = solve_triangular(c, b, 0 if lower else "C", lower)
    return solve_triangular(c, y, "C" if lower else 0, lower)


def _toeplitz(c: Tensor, r: Tensor) -> Tensor:
    n, m = c.shape[-1], r.shape[-1]
    line = PUBLIC["cat"]([c.flip(-1), r.narrow(-1, 1, m - 1)], -1)
    at = np.arange(n - 1, -1, -1)[:, None] + np.arange(m)
    return line[..., Tensor(at)]


@on_tensors(1)
def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with this first column and row on its diagonals."""
    return _toeplitz(c, (c.conj() if c.dtype.is_complex else c) if r is None else result(r))


@on_tensors(2, one_type=True)
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """The solution of a Toeplitz system, given by its first column, or column and row."""
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, c_or_cr.conj() if c_or_cr.dtype.is_complex else c_or_cr)
    m = _toeplitz(c, r)
    return PUBLIC["linalg.solve"](m, b.unsqueeze(-1)).squeeze(-1) if b.ndim == 1 else PUBLIC["linalg.solve"](m, b)


def solve_banded(l_and_u: Any, ab: Any, b: Any, **kw: Any) -> Any:
    """The solution of a system with a banded matrix in diagonal ordered form."""
    _harmless("solve_banded", kw)
    return _banded(ab, b, *l_and_u)


@on_tensors(2, one_type=True)
def _banded(ab: Any, b: Any, low: int, up: int) -> Any:
    n = ab.shape[-1]
    m: Any = 0.0
    for k in range(-low, up + 1):
        row = ab.select(-2, up - k)
        d = row.narrow(-1, k, n - k) if k >= 0 else row.narrow(-1, 0, n + k)
        m = m + PUBLIC["diag_embed"](d, k)
    return PUBLIC["linalg.solve"](m, b.unsqueeze(-1)).squeeze(-1) if b.ndim == 1 else PUBLIC["linalg.solve"](m, b)


@on_tensors(1)
def inv(a: Any, **kw: Any) -> Any:
    """The inverse."""
    _harmless("inv", kw)
    return PUBLIC["linalg.inv"](a)


@on_tensors(1)
def det(a: Any, **kw: Any) -> Any:
    """The determinant."""
    _harmless("det", kw)
    return PUBLIC["linalg.det"](a)


@on_tensors(2, one_type=True)
def eigh(a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, **kw: Any) -> Any:
    """Eigenvalues in rising order, and vectors, of ``a v = w v`` or ``a v = w b v``, `b` positive definite; one triangle of each is read."""
    _harmless("eigh", kw)
    a = _from_triangle(a, lower, True)
    if b is None:
        return PUBLIC["linalg.eigvalsh"](a) if eigvals_only else tuple(PUBLIC["linalg.eigh"](a))
    # b = L L^H turns it into the ordinary problem of L^-1 a L^-H, whose vectors are L^H v.
    low = PUBLIC["linalg.cholesky"](_from_triangle(b, lower, True))
    half = PUBLIC["linalg.solve_triangular"](low, a, upper=False)
    c = PUBLIC["linalg.solve_triangular"](low, half.mT.conj(), upper=False)
    if eigvals_only:
        return PUBLIC["linalg.eigvalsh"](c)
    w, u = PUBLIC["linalg.eigh"](c)
    return w, PUBLIC["linalg.solve_triangular"](low.mT.conj(), u, upper=True)


def eigvalsh(a: Any, b: Any = None, *, lower: bool = True, **kw: Any) -> Any:
    """The eigenvalues of `eigh`."""
    return eigh(a, b, lower=lower, eigvals_only=True, **kw)


@on_tensors(1)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, **kw: Any) -> Any:
    """``a = u @ diag(s) @ vh``."""
    kw.pop("lapack_driver", None)
    _harmless("svd", kw)
    if not compute_uv:
        return PUBLIC["linalg.svdvals"](a)
    return tuple(PUBLIC["linalg.svd"](a, full_matrices=full_matrices))


@on_tensors(1)
def svdvals(a: Any, **kw: Any) -> Any:
    """The singular values."""
    _harmless("svdvals", kw)
    return PUBLIC["linalg.svdvals"](a)


@on_tensors(1)
def qr(a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", **kw: Any) -> Any:
    """An orthonormal and a triangular factor; with ``mode="r"`` the triangular one alone, in a tuple."""
    _harmless("qr", kw)
    if mode not in ("full", "economic", "r"):
        raise ValueError(f"qr: mode {mode!r} has no derivative here; use 'full', 'economic' or 'r'")
    q, r = PUBLIC["linalg.qr"](a, mode="complete" if mode == "full" else "reduced")
    if mode != "r":
        return q, r
    return (PUBLIC["constant_pad_nd"](r, (0, 0, 0, a.shape[-2] - r.shape[-2])),)  # Q's other columns are arbitrary


@on_tensors(1)
def pinv(a: Any, *, atol: Any = None, rtol: Any = None, **kw: Any) -> Any:
    """The Moore-Penrose inverse."""
    _harmless("pinv", kw)
    r = max(a.shape[-2:]) * float(np.finfo(a.dtype.np).eps) if rtol is None and atol is None else rtol or 0.0
    return PUBLIC["linalg.pinv"](a, atol=atol, rtol=r)


@on_tensors(1)
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, **kw: Any) -> Any:
    """A norm of vectors or matrices."""
    _harmless("norm", kw)
    y = np.linalg.norm(wrap(a), ord, axis, keepdims)
    return y._t if isinstance(y, Array) else result(y)


@on_tensors(1)
def lu(a: Any, permute_l: bool = False, **kw: Any) -> Any:
    """``a = p @ l @ u``, with ``permute_l`` the factors ``p @ l`` and u."""
    _harmless("lu", kw)
    p, low, up = PUBLIC["linalg.lu"](a)
    return (PUBLIC["matmul"](p, low), up) if permute_l else (p.real if p.dtype.is_complex else p, low, up)
