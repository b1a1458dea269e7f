"""numpy.linalg on Arrays: chainrule's decompositions and solvers under NumPy's names, arguments and result types."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.linalg import LinAlgError, _linalg

from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from .functions import common, native
from .methods import axes_of
from .value import Array, as_constant, batched, cast, from_numpy, made, wrap

la = np.linalg


def matrix(a: Any, what: str) -> Tensor:
    """A stack of matrices of a floating type."""
    x = wrap(as_constant(a, what))
    if x.ndim < 2:
        raise LinAlgError(f"{what}: {x.ndim}-dimensional array given. Array must be at least two-dimensional")
    return x._t if x._d.kind in "fc" else cast(x._t, np.dtype(float))


def _square(a: Any, what: str) -> Tensor:
    t = matrix(a, what)
    if t.shape[-1] != t.shape[-2]:
        raise LinAlgError(f"{what}: Last 2 dimensions of the array must be square, got shape {tuple(t.shape)}")
    return t


@native(la.inv)
def inv(a: Any) -> Array:
    """The inverse."""
    return wrap(PUBLIC["linalg.inv"](_square(a, "inv")))


@native(la.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """The Moore-Penrose inverse."""
    t = matrix(a, "pinv")
    r = 1e-15 if rcond is None and rtol is None else rtol if rcond is None else rcond
    return wrap(PUBLIC["linalg.pinv"](t, rtol=r, hermitian=hermitian))


@native(la.det)
def det(a: Any) -> Array:
    """The determinant."""
    return wrap(PUBLIC["linalg.det"](_square(a, "det")))


@native(la.slogdet)
def slogdet(a: Any) -> Any:
    """Sign and logarithm of the absolute value of the determinant."""
    s, d = PUBLIC["linalg.slogdet"](_square(a, "slogdet"))
    return _linalg.SlogdetResult(wrap(s), wrap(d))


@native(la.solve)
def solve(a: Any, b: Any) -> Array:
    """The solution of ``a x = b``; `b` is a vector only if it has one dimension."""
    (x, y), d = common([a, b])
    if d.kind not in "fc":
        x, y = cast(x, np.dtype(float)), cast(y, np.dtype(float))
    _square(wrap(x), "solve")
    if y.ndim == 1:
        return wrap(PUBLIC["linalg.solve"](x, y.unsqueeze(-1)).squeeze(-1))
    return wrap(PUBLIC["linalg.solve"](x, y))


@native(la.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """The least-squares solution, residuals, rank and singular values.

    Under vmap the residuals are there wherever they would be at full rank: a shape cannot differ from example to example.
    """
    x, y = matrix(a, "lstsq"), wrap(as_constant(b))._t
    d = np.result_type(x.dtype.np, y.dtype.np)
    x, y = cast(x, d), cast(y, d)
    m, n = x.shape[-2:]
    s = PUBLIC["linalg.svdvals"](x)
    least = np.finfo(x.dtype.np).eps * max(m, n) if rcond is None else rcond
    if batched(s):
        rank: Any = made((s.detach() > s.detach().amax(-1, True) * least).sum(-1), np.dtype(np.int64))
    else:
        values = s.detach().concrete("lstsq: the rank")
        rank = np.intp((values > values.max(initial=0) * least).sum())
    sol = PUBLIC["matmul"](
        PUBLIC["linalg.pinv"](x, rtol=np.finfo(x.dtype.np).eps * max(m, n) if rcond in (None, -1) else rcond), y
    )
    r = y - PUBLIC["matmul"](x, sol)
    res = (r.abs().square() if r.dtype.is_complex else r * r).sum(0)
    if m <= n or (not isinstance(rank, Array) and rank != n):
        res = Tensor(np.zeros(0, res.dtype.np))
    elif not res.ndim:
        res = res.reshape(1)
    return wrap(sol), wrap(res), rank, wrap(s)


@native(la.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Array:
    """The triangular factor of a positive definite matrix."""
    t = _hermitian(a, "U" if upper else "L", "cholesky")
    try:
        return wrap(PUBLIC["linalg.cholesky"](t, upper=upper))
    except LinAlgError:
        raise
    except RuntimeError as e:
        raise LinAlgError(str(e)) from None


@native(la.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """An orthonormal and a triangular factor."""
    t = matrix(a, "qr")
    if mode == "r":
        return wrap(PUBLIC["linalg.qr"](t, mode="reduced")[1])
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode {mode!r} has no derivative here; use 'reduced', 'complete' or 'r'")
    q, r = PUBLIC["linalg.qr"](t, mode=mode)
    return _linalg.QRResult(wrap(q), wrap(r))


@native(la.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """``u @ diag(s) @ vh``."""
    t = matrix(a, "svd")
    if not compute_uv:
        return wrap(PUBLIC["linalg.svdvals"](t))
    u, s, vh = PUBLIC["linalg.svd"](t, full_matrices=full_matrices)
    return _linalg.SVDResult(wrap(u), wrap(s), wrap(vh))


@native(la.svdvals)
def svdvals(x: Any, /) -> Array:
    """The singular values."""
    return wrap(PUBLIC["linalg.svdvals"](matrix(x, "svdvals")))


def _hermitian(a: Any, uplo: str, what: str) -> Tensor:
    """The matrix that one triangle stands for: NumPy reads no more, so the other has no derivative."""
    t = _square(a, what)
    lower = uplo.upper() == "L"
    part = PUBLIC["tril"](t, -1) if lower else PUBLIC["triu"](t, 1)
    d = PUBLIC["diag_embed"](t.diagonal(0, -2, -1).real if t.dtype.is_complex else t.diagonal(0, -2, -1))
    return part + (part.mT.conj() if t.dtype.is_complex else part.mT) + d


@native(la.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues in rising order and eigenvectors of a Hermitian matrix, of which one triangle is read."""
    w, v = PUBLIC["linalg.eigh"](_hermitian(a, UPLO, "eigh"), UPLO.upper())
    return _linalg.EighResult(wrap(w), wrap(v))


@native(la.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Array:
    """Eigenvalues of a Hermitian matrix."""
    return wrap(PUBLIC["linalg.eigvalsh"](_hermitian(a, UPLO, "eigvalsh"), UPLO.upper()))


def _real_if(a: Tensor, w: Tensor) -> bool:
    """Whether NumPy hands back real numbers: for a real matrix without complex eigenvalues; for a batch of examples it cannot be asked."""
    x: Any = w
    while x._interp is not None:
        if x._interp.kind == "vmap":
            return False
        x = x._value
    return not a.dtype.is_complex and bool((x._value.imag == 0).all())


def _real_vectors(v: Tensor) -> Tensor:
    """Complex vectors that happen to be real as real ones. Their phases are free: the one of the largest element is made zero, also where they move."""
    if not v.numel():
        return v.real
    u = v.gather(-2, v.detach().abs().argmax(-2, True)).sgn()
    return (v * u.conj()).real * u.detach().real


@native(la.eig)
def eig(a: Any) -> Any:
    """Eigenvalues and eigenvectors."""
    t = _square(a, "eig")
    w, v = PUBLIC["linalg.eig"](t)
    if _real_if(t, w):
        w, v = w.real, _real_vectors(v)
    return _linalg.EigResult(wrap(w), wrap(v))


@native(la.eigvals)
def eigvals(a: Any) -> Array:
    """Eigenvalues."""
    t = _square(a, "eigvals")
    w = PUBLIC["linalg.eigvals"](t)
    return wrap(w.real if _real_if(t, w) else w)


@native(la.matrix_power)
def matrix_power(a: Any, n: int) -> Array:
    """The n-th power of a matrix."""
    x = wrap(as_constant(a))
    return wrap(PUBLIC["linalg.matrix_power"](x._t if n >= 0 else _square(a, "matrix_power"), n))


def _float(x: Any) -> Tensor:
    a = wrap(as_constant(x))
    return a._t if a._d.kind in "fc" else cast(a._t, np.dtype(float))


@native(la.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """A norm of vectors or matrices; 0 has the derivative 0."""
    t = _float(x)
    if axis is None:
        if ord is None or (ord in ("f", "fro") and t.ndim == 2) or (ord == 2 and t.ndim == 1):
            y = PUBLIC["linalg.vector_norm"](t.reshape(-1))
            return wrap(y.reshape((1,) * t.ndim) if keepdims else y)
        axes = tuple(range(t.ndim))
    else:
        axes = axes_of(axis, t.ndim)
    if len(axes) == 1:
        return wrap(PUBLIC["linalg.vector_norm"](t, 2 if ord is None else ord, axes, keepdim=keepdims))
    if len(axes) == 2:
        return wrap(PUBLIC["linalg.matrix_norm"](t, "fro" if ord in (None, "f") else ord, axes, keepdim=keepdims))
    raise ValueError("Improper number of dimensions to norm.")


@native(la.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """A norm of vectors."""
    t = _float(x)
    if axis is None:
        y = PUBLIC["linalg.vector_norm"](t.reshape(-1), ord)
        return wrap(y.reshape((1,) * t.ndim) if keepdims else y)
    return wrap(PUBLIC["linalg.vector_norm"](t, ord, axes_of(axis, t.ndim), keepdim=keepdims))


@native(la.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """A norm of matrices."""
    return wrap(PUBLIC["linalg.matrix_norm"](_float(x), ord, (-2, -1), keepdim=keepdims))


@native(la.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The number of singular values that are not negligible."""
    x = _float(A)
    if not batched(x):
        return from_numpy(
            np.linalg.matrix_rank(x.concrete("matrix_rank"), tol, hermitian, **({} if rtol is None else {"rtol": rtol}))
        )
    if x.ndim < 2:
        return wrap(cast((x != 0).any(), np.dtype(np.int64)))
    s = wrap(PUBLIC["linalg.svdvals"](x))
    if tol is None:
        r = max(x.shape[-2:]) * np.finfo(s.dtype).eps if rtol is None else rtol
        tol = s.max(axis=-1, keepdims=True) * (r if isinstance(r, float | int) else np.expand_dims(r, -1))
    return np.count_nonzero(s > tol, axis=-1)


@native(la.cond)
def cond(x: Any, p: Any = None) -> Array:
    """The condition number."""
    return wrap(PUBLIC["linalg.cond"](matrix(x, "cond"), p))


@native(la.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Array:
    """The product of several matrices, in the order that costs least."""
    ts, d = common(list(arrays))
    return made(PUBLIC["linalg.multi_dot"](ts), d)


@native(la.matmul)
def matmul(x1: Any, x2: Any, /) -> Any:
    """The product of matrices."""
    return np.matmul(x1, x2)


@native(la.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """``sum(conj(x1) x2)`` along an axis."""
    (x, y), d = common([x1, x2])
    x, y = PUBLIC["broadcast_tensors"](x, y)
    return made((x.conj() * y if d.kind == "c" else x * y).sum(axis), d)
