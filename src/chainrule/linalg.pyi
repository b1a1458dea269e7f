"""Linear algebra: decompositions, solvers, norms and functions of matrices, with their derivatives; filled by the ops."""

# Written by `make surface` from the declarations of the ops.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, object as _object, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Self, overload

from .core.dtypes import DType
from .core.errors import ChainruleError
from . import Generator
from .core.tensor import Size, Tensor
from .return_types import CholeskyEx, Eig, Geqrf, Histogram, HistogramDD, InvEx, LDL, LDLEx, LUFactor, LUFactorEx, Lstsq, MinMax, PLU, QR, SVD, SVDV, Slogdet, SolveEx, Sorted, StdMean, TriangularSolve, ValuesIndices, VarMean
from .typing import DTypeLike, DeviceLike, Ints, Layout, Number, Operand

__all__ = ["LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm"]

class LinAlgError(ChainruleError):
    """A matrix for which the asked-for result does not exist."""
def cholesky(A: Tensor, *, upper: _bool = False, out: Tensor | None = None) -> Tensor:
    """The triangular factor of a Hermitian positive-definite matrix: ``A = L L^H``, or ``A = U^H U`` with ``upper``."""
def cholesky_ex(A: Tensor, *, upper: _bool = False, check_errors: _bool = False, out: Tensor | Sequence[Tensor] | None = None) -> CholeskyEx:
    """The triangular factor and, instead of an error, the order of the first minor that is not positive-definite."""
def cond(A: Tensor, p: _float | _str | Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """``|A| |A^-1|`` in a norm: 'fro', 'nuc', inf, -inf, 1, -1, 2, -2 (None: 2); infinite for a singular matrix."""
def cross(input: Tensor, other: Tensor, *, dim: _int = -1, out: Tensor | None = None) -> Tensor:
    """The cross product of vectors of length 3 along `dim`."""
def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant; its derivatives are polynomials in A, for singular matrices as for others."""
def diagonal(A: Tensor, *, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
    """A diagonal of the matrices in two dims, as a view."""
def eig(A: Tensor, *, out: Tensor | Sequence[Tensor] | None = None) -> Eig:
    """``A V = V diag(L)`` of a square matrix; L and V are complex, the columns of V have norm 1."""
def eigh(A: Tensor, UPLO: _str = 'L', *, out: Tensor | Sequence[Tensor] | None = None) -> Eig:
    """``A = V diag(L) V^H`` of a Hermitian matrix, L real and ascending, read from its lower (or upper) triangle."""
def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of a square matrix, complex, in no particular order."""
def eigvalsh(A: Tensor, UPLO: _str = 'L', *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of a Hermitian matrix, ascending."""
def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first n columns of ``H_1 ... H_k`` with ``H_i = I - tau[i] v_i v_i^H``, v_i below the diagonal of A's column i."""
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``A^-1``; a singular matrix raises."""
def inv_ex(A: Tensor, *, check_errors: _bool = False, out: Tensor | Sequence[Tensor] | None = None) -> InvEx:
    """``A^-1`` and, instead of an error, the first zero pivot of each matrix (0: none)."""
def ldl_factor(A: Tensor, *, hermitian: _bool = False, out: Tensor | Sequence[Tensor] | None = None) -> LDL:
    """``A = L D L^T`` (``L D L^H`` with `hermitian`) from the lower triangle, packed, with the interchanges."""
def ldl_factor_ex(A: Tensor, *, hermitian: _bool = False, check_errors: _bool = False, out: Tensor | Sequence[Tensor] | None = None) -> LDLEx:
    """As ldl_factor, with the first zero block of each matrix (0: none) instead of an error."""
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: _bool = False, out: Tensor | None = None) -> Tensor:
    """``X`` with ``A X = B`` from A's LDL factorization."""
def lstsq(A: Tensor, B: Tensor, rcond: Operand | None = None, *, driver: _str | None = None) -> Lstsq:
    """The X of least norm that minimises ``|A X - B|``."""
def lu(A: Tensor, *, pivot: _bool = True, out: Tensor | Sequence[Tensor] | None = None) -> PLU:
    """``A = P L U``: P a permutation (empty without `pivot`), L unit lower and U upper triangular."""
def lu_factor(A: Tensor, *, pivot: _bool = True, out: Tensor | Sequence[Tensor] | None = None) -> LUFactor:
    """L and U packed into one matrix, and the row interchanges; raises where a pivot is zero."""
def lu_factor_ex(A: Tensor, *, pivot: _bool = True, check_errors: _bool = False, out: Tensor | Sequence[Tensor] | None = None) -> LUFactorEx:
    """As lu_factor, with the first zero pivot of each matrix (0: none) instead of an error."""
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: _bool = True, adjoint: _bool = False, out: Tensor | None = None) -> Tensor:
    """``X`` with ``A X = B`` (``X A = B`` with ``left=False``; ``A^H`` with `adjoint`) from A's LU factorization."""
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input @ other``: vectors, matrices, and batches of matrices whose leading dims broadcast."""
def matrix_exp(A: Tensor) -> Tensor:
    """``I + A + A A / 2 + ...``."""
def matrix_norm(A: Tensor, ord: _float | _str | Tensor = 'fro', dim: Ints = (-2, -1), keepdim: _bool = False, *, dtype: DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """A norm of the matrices in the two dims `dim`: 'fro', 'nuc', or of order inf, -inf, 1, -1, 2, -2."""
def matrix_power(A: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """``A A ... A``, n factors, by squaring; of the inverse for a negative n."""
def matrix_rank(A: Tensor, tol: Operand | None = None, hermitian: _bool = False, *, atol: Operand | None = None, rtol: Operand | None = None, out: Tensor | None = None) -> Tensor:
    """The number of singular values above ``max(atol, rtol * largest)``."""
def multi_dot(*tensors: Tensor | Sequence[Tensor], out: Tensor | None = None) -> Tensor:
    """The product of several matrices in the cheapest order; the first and last may be vectors."""
def norm(A: Tensor, ord: _float | _str | Tensor | None = None, dim: Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """A vector norm over one dim or all, a matrix norm over two; without `ord` the 2-norm of what `dim` selects."""
def pinv(A: Tensor, rcond: Operand | None = None, hermitian: _bool = False, *, atol: Operand | None = None, rtol: Operand | None = None, out: Tensor | None = None) -> Tensor:
    """The Moore-Penrose inverse; singular values up to ``max(atol, rtol * largest)`` count as zero."""
def qr(A: Tensor, mode: _str = 'reduced', *, out: Tensor | Sequence[Tensor] | None = None) -> QR:
    """``A = Q R`` with orthonormal columns in Q and R upper triangular; `mode` is "reduced", "complete" or "r" (R alone)."""
def slogdet(A: Tensor, *, out: Tensor | Sequence[Tensor] | None = None) -> Slogdet:
    """``sign, logabsdet`` with ``det A = sign * exp(logabsdet)``, without overflow; sign is a phase for complex A."""
def solve(A: Tensor, B: Tensor, *, left: _bool = True, out: Tensor | None = None) -> Tensor:
    """``X`` with ``A X = B`` (or ``X A = B`` with ``left=False``); B may be a vector or a batch of vectors."""
def solve_ex(A: Tensor, B: Tensor, *, left: _bool = True, check_errors: _bool = False, out: Tensor | Sequence[Tensor] | None = None) -> SolveEx:
    """As solve, with the first zero pivot of each matrix (0: none) instead of an error."""
def solve_triangular(A: Tensor, B: Tensor, *, upper: _bool, left: _bool = True, unitriangular: _bool = False, out: Tensor | None = None) -> Tensor:
    """``X`` with ``A X = B`` (``X A = B`` with ``left=False``) for a triangular A; what lies beyond its triangle is not read."""
def svd(A: Tensor, full_matrices: _bool = True, *, driver: Any = None, out: Tensor | Sequence[Tensor] | None = None) -> SVD:
    """``A = U diag(S) Vh`` with orthonormal columns in U and rows in Vh, S descending; square U and Vh with `full_matrices`."""
def svdvals(A: Tensor, *, driver: Any = None, out: Tensor | None = None) -> Tensor:
    """The singular values of A, descending."""
def tensorinv(A: Tensor, ind: _int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse of A as a map from its last dims to its first `ind` dims."""
def tensorsolve(A: Tensor, B: Tensor, dims: Ints | None = None, *, out: Tensor | None = None) -> Tensor:
    """``X`` with ``tensordot(A, X, X.ndim) = B``; `dims` of A are moved to the end first."""
def vander(x: Tensor, *, N: _int | None = None) -> Tensor:
    """``V[..., i, j] = x[..., i] ** j`` for j < N (default: the length of x)."""
def vecdot(x: Tensor, y: Tensor, *, dim: _int = -1, out: Tensor | None = None) -> Tensor:
    """``sum(conj(x) * y)`` along `dim`."""
def vector_norm(x: Tensor, ord: _float = 2, dim: Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """``(sum |x|**ord)**(1/ord)`` over `dim`, one, several or (None) all."""
