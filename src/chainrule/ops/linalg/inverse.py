"""Inverses: of matrices, of tensors, and the pseudoinverse with what follows from it (rank, least squares)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import constant, wrap_dims
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.select import where
from .common import adjoint, concrete_info, factored, floating, hermitian, mm, raise_info, same_dtype, square, widened
from .eig import eigvalsh
from .solve import solve
from .svd import svdvals


class InvEx(NamedTuple):
    """The inverse, and the index (from 1) of the first zero pivot, or 0."""

    inverse: Tensor
    info: Tensor


@op("inv", core="(n,n)->(n,n),()", integer_outputs=(1,))
def inv_p(a: Any) -> Any:
    """The inverse, infinite where there is none, and the first zero pivot."""
    lead = a.shape[:-2]
    try:
        return np.linalg.inv(a), np.zeros(lead, np.int32)
    except np.linalg.LinAlgError:
        from .lu import lu_body

        info = lu_body(a, True)[2]
        bad = (info > 0)[..., None, None]
        safe = np.where(bad, np.eye(a.shape[-1], dtype=a.dtype), a)
        return np.where(bad, np.asarray(np.inf, a.dtype), np.linalg.inv(safe)), info


@inv_p.jvp
def _(t: Any, y: Any, a: Any) -> Any:
    return -mm(y[0], t[0], y[0]), None


@inv_p.vjp
def _(g: Any, y: Any, a: Any) -> Any:
    h = adjoint(y[0])
    return (-mm(h, g[0], h),)


@public("linalg.inv_ex")
def inv_ex(A: Tensor, *, check_errors: bool = False) -> InvEx:
    """``A^-1`` and, instead of an error, the first zero pivot of each matrix (0: none)."""
    square("linalg.inv_ex", A)
    y, info = inv_p(A)
    if check_errors:
        _check("linalg.inv_ex", info)
    return InvEx(y, info)


@public("linalg.inv inverse", methods="inverse")
@straight
def inv(A: Tensor) -> Tensor:
    """``A^-1``; a singular matrix raises."""
    square("linalg.inv", A)
    y, info = inv_p(A)
    _check("linalg.inv", info)
    return y


def _check(name: str, info: Tensor) -> None:
    raise_info(
        name,
        info,
        "The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular.",
    )


# -- of tensors ---------------------------------------------------------------------------------------------------------


@public("linalg.tensorinv")
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A as a map from its last dims to its first `ind` dims."""
    name = "linalg.tensorinv"
    if ind <= 0:
        raise RuntimeError(f"{name}: Expected a strictly positive integer for 'ind', got {ind}")
    first, last = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    n, m = math.prod(first), math.prod(last)
    if n != m:
        raise RuntimeError(
            f"{name}: Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), "
            f"but got {m} != {n} for shape {list(A.shape)} and ind={ind}"
        )
    floating(name, A, "A", 0)
    (a,), narrow = widened(A)
    y, info = inv_p(a.reshape(n, m))
    raise_info(
        name, info, "Failed to invert the input tensor, because it is singular. The diagonal element {} is zero."
    )
    return narrow(y.reshape(*last, *first))


@public("linalg.tensorsolve")
def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Tensor:
    """``X`` with ``tensordot(A, X, X.ndim) = B``; `dims` of A are moved to the end first."""
    name = "linalg.tensorsolve"
    floating(name, A, "A", 0)
    same_dtype(name, A, B)
    if dims is not None:
        gone = [d + A.ndim for d in wrap_dims(tuple(dims), A.ndim, "dims")] if len(dims) else []
        A = A.permute([i for i in range(A.ndim) if i not in gone] + gone)
    shape = tuple(A.shape[B.ndim :])
    n, m = math.prod(A.shape[: B.ndim]), math.prod(shape)
    if n != m or n != B.numel():
        raise RuntimeError(
            f"{name}: Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {m} != {n} for A {list(A.shape)} and B {list(B.shape)}"
        )
    return solve(A.reshape(n, m), B.reshape(n)).reshape(*shape)


# -- pseudoinverse ------------------------------------------------------------------------------------------------------


@op("pinv", core="(m,n),(),()->(n,m)")
def pinv_p(a: Any, atol: Any, rtol: Any, *, hermitian: bool) -> Any:
    """The pseudoinverse; singular values up to ``max(atol, rtol * largest)`` count as zero."""
    if a.size == 0:
        lead = np.broadcast_shapes(a.shape[:-2], np.shape(atol), np.shape(rtol))
        return np.zeros((*lead, a.shape[-1], a.shape[-2]), a.dtype)
    if hermitian:
        s, v = np.linalg.eigh(a)
        u = v
        vh = np.conj(np.swapaxes(v, -1, -2))
    else:
        u, s, vh = factored("linalg.pinv", a, False)
        v = np.conj(np.swapaxes(vh, -1, -2))
    top = np.max(np.abs(s), axis=-1, keepdims=True)
    keep = np.abs(s) > np.maximum(np.asarray(atol)[..., None], np.asarray(rtol)[..., None] * top)
    r = np.where(keep, 1 / np.where(keep, s, 1), 0).astype(s.dtype)
    return (v * r[..., None, :]) @ np.conj(np.swapaxes(u, -1, -2))


# Golub and Pereyra (1973), for matrices of constant rank.


@pinv_p.jvp
def _(t: Any, y: Any, a: Any, atol: Any, rtol: Any, *, hermitian: bool) -> Any:
    h, yh, d = adjoint(t[0]), adjoint(y), -mm(y, t[0], y)
    m, n = a.shape[-2:]
    across = mm(mm(y, yh), h)
    d = d + across - mm(mm(across, a), y)
    along = mm(h, mm(yh, y))
    return d + along - mm(y, mm(a, along)) if m and n else d


@pinv_p.vjp
def _(g: Any, y: Any, a: Any, atol: Any, rtol: Any, *, hermitian: bool) -> Any:
    gh, yh = adjoint(g), adjoint(y)
    across = mm(gh, mm(y, yh))
    along = mm(mm(yh, y), gh)
    ga = -mm(yh, g, yh) + across - mm(a, mm(y, across)) + along - mm(mm(along, y), a)
    return ga, None, None


def tolerances(name: str, a: Tensor, atol: Any, rtol: Any) -> tuple[Tensor, Tensor]:
    """Absolute and relative tolerance as tensors: by default rounding, if no absolute one is asked for."""
    real = a.dtype.to_real()
    eps = float(np.finfo(real.np).eps) * max(a.shape[-2:])

    def given(v: Any, what: str) -> Tensor:
        if isinstance(v, Tensor):
            if v.dtype.is_complex:
                raise RuntimeError(f"{name}: {what} tensor of complex type is not supported, got {v.dtype}")
            return v.detach().to(real)
        return constant(v, a, real)

    t = given(0.0 if atol is None else atol, "atol")
    r = where(t > 0, constant(0, a, real), constant(eps, a, real)) if rtol is None else given(rtol, "rtol")
    return t, r


@public("linalg.pinv")
@straight
def pinv(A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """The Moore-Penrose inverse; singular values up to ``max(atol, rtol * largest)`` count as zero."""
    name = "linalg.pinv"
    (square if hermitian else floating)(name, A)
    t, r = tolerances(name, A, atol, rtol if rcond is None else rcond)
    return pinv_p(A, t, r, hermitian=bool(hermitian))


@public("pinverse", methods="pinverse", out=False)
@straight
def pinverse(input: Tensor, rcond: Any = 1e-15) -> Tensor:
    """The Moore-Penrose inverse; singular values up to ``rcond * largest`` count as zero."""
    return pinv(input, rcond)


@public("linalg.matrix_rank")
def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """The number of singular values above ``max(atol, rtol * largest)``."""
    name = "linalg.matrix_rank"
    (square if hermitian else floating)(name, A)
    if tol is not None:
        atol, rtol = tol, 0.0
    t, r = tolerances(name, A, atol, rtol)
    a = A.detach()
    s = eigvalsh(a).abs() if hermitian else svdvals(a)
    if 0 in A.shape[-2:]:
        return s.sum(-1).long()
    bound = (r * s.amax(-1)).maximum(t)
    return (s > bound.unsqueeze(-1)).sum(-1)


# -- least squares ------------------------------------------------------------------------------------------------------


class Lstsq(NamedTuple):
    """The solution, the squared residuals, the rank and the singular values; those that the driver does not give are empty."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


@public("linalg.lstsq", out=False)
@straight
def lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: str | None = None) -> Lstsq:
    """The X of least norm that minimises ``|A X - B|``."""
    name = "linalg.lstsq"
    if isinstance(A, Tensor) and A.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions, got {list(A.shape)}")
    if isinstance(B, Tensor) and B.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension")
    floating(name, A, "A")
    same_dtype(name, A, B)
    floating(name, B, "B", 1)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got {driver!r}")
    driver = driver or "gelsy"
    m, n = A.shape[-2:]
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))
    if A.ndim - B.ndim not in (0, 1) and not vector:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1, "
            f"got {list(A.shape)} and {list(B.shape)}"
        )
    b = B.unsqueeze(-1) if vector else B
    if b.shape[-2] != m:
        raise RuntimeError(
            f"{name}: input.size(-2) should match other.size(-{1 if vector else 2}), got {list(A.shape)} and {list(B.shape)}"
        )
    real = A.dtype.to_real()
    eps = float(np.finfo(real.np).eps) * max(m, n)
    tol = constant(eps if rcond is None else rcond, A, real)
    zero = constant(0, A, real)
    x = mm(pinv_p(A, zero, tol, hermitian=False), b)
    empty = constant([], A, real)
    rank, values = constant([], A, dt.int64), empty
    if driver != "gels":
        s = svdvals(A)
        rank = (s > tol * s.amax(-1, True)).sum(-1) if min(m, n) else s.sum(-1).long()
        values = s if driver in ("gelsd", "gelss") else empty
    residuals = empty
    if m > n and driver != "gelsy" and (driver == "gels" or (concrete_info(rank) == n).all()):
        e = mm(A, x) - b
        residuals = (e * e.conj()).real.sum(-2) if e.dtype.is_complex else (e * e).sum(-2)
    return Lstsq(x.squeeze(-1) if vector else x, residuals, rank, values)


# -- samples ------------------------------------------------------------------------------------------------------------

sample("linalg.inv", S(2, 3, 3, spd=True))
sample("linalg.tensorinv", S(2, 3, 6), ind=2)
sample("linalg.tensorsolve", S(2, 3, 6), S(2, 3))
sample("linalg.pinv", S(2, 3, 3))
sample("linalg.pinv", S(4, 2))
sample("linalg.pinv", S(2, 4))
sample("linalg.pinv", S(3, 3), f=lambda a: pinv(hermitian(a), hermitian=True))
# Rank 2 of 3, and the rank stays.
sample("linalg.pinv", S(4, 2), S(2, 3), f=lambda a, b: pinv(mm(a, b)))
sample("linalg.pinv", Given([[1.0, 0], [0, 0]], grad=True), f=lambda a: pinv(a * Tensor(np.diag([1.0, 0.0]))))
sample("linalg.lstsq", S(4, 2), S(4, 3), f=lambda a, b: lstsq(a, b, driver="gelsd")[:2])
sample("linalg.lstsq", S(2, 4), S(2), f=lambda a, b: lstsq(a, b)[0])
