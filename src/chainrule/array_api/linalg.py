"""The standard's linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interop.numpy.value import Array
from .call import array, back
from .functions import matmul, matrix_transpose, tensordot, vecdot

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
    "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip
_la: Any = np.linalg


def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """The triangular factor of a positive definite matrix."""
    y = _la.cholesky(array(x, "cholesky"))
    if upper:
        y = np.conj(y).mT if y.dtype.kind == "c" else y.mT
    return back(y, x)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The vector product."""
    a, b = array(x1, "cross"), array(x2, "cross")
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError(f"cross: both arrays must have size 3 along axis {axis}, got shapes {a.shape} and {b.shape}")
    return back(np.cross(a, b, axis=axis), x1, x2)


def det(x: Any, /) -> Any:
    """The determinant."""
    return back(_la.det(array(x, "det")), x)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonal of matrices."""
    return back(array(x, "diagonal").diagonal(offset, -2, -1), x)


def eigh(x: Any, /) -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices."""
    return back(_la.eigh(array(x, "eigh")), x)


def eigvalsh(x: Any, /) -> Any:
    """Eigenvalues of Hermitian matrices."""
    return back(_la.eigvalsh(array(x, "eigvalsh")), x)


def inv(x: Any, /) -> Any:
    """The inverse."""
    return back(_la.inv(array(x, "inv")), x)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """A norm of matrices."""
    return back(_la.matrix_norm(array(x, "matrix_norm"), keepdims=keepdims, ord=ord), x)


def matrix_power(x: Any, n: int, /) -> Any:
    """The n-th power."""
    return back(_la.matrix_power(array(x, "matrix_power"), n), x)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """The number of singular values that are not negligible."""
    a = array(x, "matrix_rank")
    if a.ndim < 2:
        raise np.linalg.LinAlgError("matrix_rank: 1-dimensional array given. Array must be at least two-dimensional")
    s = _la.svdvals(a)
    if rtol is None:
        tol = s.max(axis=-1, keepdims=True, initial=0.0) * (max(a.shape[-2:]) * np.finfo(s.dtype).eps)
    else:
        r = rtol if isinstance(rtol, int | float) else array(rtol, "matrix_rank")[..., None]
        tol = s.max(axis=-1, keepdims=True, initial=0.0) * r
    return back((s > tol).sum(axis=-1), x)


def outer(x1: Any, x2: Any, /) -> Any:
    """Every element of one vector with every element of another."""
    a, b = array(x1, "outer"), array(x2, "outer")
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"outer: both arguments must have one dimension, got {a.ndim} and {b.ndim}")
    return back(np.outer(a, b), x1, x2)


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """The Moore-Penrose inverse."""
    a = array(x, "pinv")
    if rtol is None:
        rtol = max(a.shape[-2:]) * float(np.finfo(a.dtype).eps)
    return back(_la.pinv(a, rtol=rtol), x)


def qr(x: Any, /, *, mode: str = "reduced") -> Any:
    """An orthonormal and a triangular factor."""
    return back(_la.qr(array(x, "qr"), mode=mode), x)


def slogdet(x: Any, /) -> Any:
    """Sign and logarithm of the absolute value of the determinant."""
    return back(_la.slogdet(array(x, "slogdet")), x)


def solve(x1: Any, x2: Any, /) -> Any:
    """The solution of ``x1 y = x2``."""
    return back(_la.solve(array(x1, "solve"), array(x2, "solve")), x1, x2)


def svd(x: Any, /, *, full_matrices: bool = True) -> Any:
    """``u @ diag(s) @ vh``."""
    return back(_la.svd(array(x, "svd"), full_matrices=full_matrices), x)


def svdvals(x: Any, /) -> Any:
    """The singular values."""
    return back(_la.svdvals(array(x, "svdvals")), x)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sum of the diagonal."""
    a = array(x, "trace")
    d = (
        np.dtype(dtype)
        if dtype is not None
        else a.dtype
        if a.dtype.kind in "fc"
        else np.dtype(np.uint64 if a.dtype.kind == "u" else np.int64)
    )
    return back(a.diagonal(offset, -2, -1).sum(axis=-1, dtype=d), x)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """A norm of vectors."""
    return back(_la.vector_norm(array(x, "vector_norm"), axis=axis, keepdims=keepdims, ord=ord), x)


_ = Array
