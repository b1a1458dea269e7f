"""The singular value decomposition, and low-rank approximations from it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.op import op
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.tensor import Tensor
from ..diagonals import diag_embed
from ..shape import cat
from .common import (
    LinAlgError,
    adjoint,
    check_gauge,
    diag_of,
    floating,
    gap_reciprocals,
    hermitian,
    is_complex,
    mm,
    near_zero_p,
    reciprocal,
    skew,
)


class SVD(NamedTuple):
    """``A = U diag(S) Vh``."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class SVDV(NamedTuple):
    """``A = U diag(S) V^H``."""

    U: Tensor
    S: Tensor
    V: Tensor


@op("svd", core="(m,n)->(m,k),(k),(k,n)")
def svd_p(a: Any, *, full: bool) -> Any:
    """``U, S, Vh`` with ``a = U diag(S) Vh``; square U and Vh with `full`."""
    try:
        return tuple(np.linalg.svd(a, full_matrices=full))
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix is ill-conditioned."
        ) from None


@op("svdvals", core="(m,n)->(k)")
def svdvals_p(a: Any) -> Any:
    """The singular values alone, in descending order."""
    try:
        return np.linalg.svd(a, compute_uv=False)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "linalg.svdvals: The algorithm failed to converge because the input matrix is ill-conditioned."
        ) from None


def _parts(y: Any) -> tuple[Any, ...]:
    """The thin factors, the vectors beyond them (or None) and the reciprocals of s."""
    u, s, vh = y
    k = s.shape[-1]
    v = adjoint(vh)
    u1, u2 = (u, None) if u.shape[-1] == k else (u[..., :k], u[..., k:])
    v1, v2 = (v, None) if v.shape[-1] == k else (v[..., :k], v[..., k:])
    return u1, u2, s, v1, v2, reciprocal(s, near_zero_p.bind(s)).unsqueeze(-2)


def _sum_reciprocals(s: Tensor) -> Tensor:
    """``1 / (s[i] + s[j])``, 0 where both vanish."""
    zero = near_zero_p.bind(s)
    return reciprocal(s.unsqueeze(-2) + s.unsqueeze(-1), zero.unsqueeze(-2).logical_and(zero.unsqueeze(-1)))


# With dU = U X, dV = V Y (X, Y skew) and P = U^H dA V: herm(P) = (X + Y)/2 * (s_j - s_i), skew(P) = (X - Y)/2 * (s_j + s_i).
# Only the first is singular for repeated values, and there the choice X + Y = 0 is a matter of gauge.


@svd_p.jvp
def _(t: Any, y: Any, a: Any, *, full: bool) -> Any:
    u, u2, s, v, v2, r = _parts(y)
    da = t[0]
    dav, dau = mm(da, v), mm(adjoint(da), u)
    p = mm(adjoint(u), dav)
    f, _ = gap_reciprocals(s)
    x, z = hermitian(p) * f, skew(p) * _sum_reciprocals(s)
    du, dv = mm(u, x + z), mm(v, x - z)
    m, n, k = a.shape[-2], a.shape[-1], s.shape[-1]
    if m > k:
        du = du + (dav - mm(u, p)) * r
    if n > k:
        dv = dv + (dau - mm(v, adjoint(p))) * r
    if u2 is not None:
        du = cat((du, -mm(u, adjoint(mm(adjoint(u2), dav) * r))), -1)
    if v2 is not None:
        dv = cat((dv, -mm(v, adjoint(mm(adjoint(v2), dau) * r))), -1)
    return du, diag_of(p).real if is_complex(p) else diag_of(p), adjoint(dv)


@svd_p.vjp(sparse=True)
def _(g: Any, y: Any, a: Any, *, full: bool) -> Any:
    gu, gs, gvh = g
    u, u2, s, v, v2, r = _parts(y)
    m, n, k = a.shape[-2], a.shape[-1], s.shape[-1]
    vh = adjoint(v)
    if gu is None and gvh is None:
        return (mm(u * gs.unsqueeze(-2), vh),)
    gv = None if gvh is None else adjoint(gvh)
    gu1, gu2 = (gu, None) if u2 is None or gu is None else (gu[..., :k], gu[..., k:])
    gv1, gv2 = (gv, None) if v2 is None or gv is None else (gv[..., :k], gv[..., k:])
    wu = None if gu1 is None else mm(adjoint(u), gu1)
    wv = None if gv1 is None else mm(vh, gv1)
    plus = wu if wv is None else wv if wu is None else wu + wv
    minus = wu if wv is None else -wv if wu is None else wu - wv
    f, near = gap_reciprocals(s)
    check_gauge("linalg.svd", "singular vectors", "singular values", plus, near, gs)
    p = skew(plus) * f + skew(minus) * _sum_reciprocals(s)
    if gs is not None:
        p = p + diag_embed(gs)
    left, right = mm(u, p), None
    if gu1 is not None and m > k:
        left = left + (gu1 - mm(u, wu)) * r
    if gu2 is not None:
        left = left - mm(u2, adjoint(mm(adjoint(u), gu2))) * r
    if gv1 is not None and n > k:
        right = (gv1 - mm(v, wv)) * r
    if gv2 is not None:
        part = mm(v2, adjoint(mm(vh, gv2))) * r
        right = -part if right is None else right - part
    ga = mm(left, vh)
    return (ga if right is None else ga + mm(u, adjoint(right)),)


@svdvals_p.jvp
def _(t: Any, y: Any, a: Any) -> Any:
    u, _, vh = svd_p.bind(a, full=False)
    d = (mm(adjoint(u), t[0]) * vh).sum(-1) if not is_complex(a) else (mm(adjoint(u), t[0]) * vh.conj()).real.sum(-1)
    return d


@svdvals_p.vjp
def _(g: Any, y: Any, a: Any) -> Any:
    u, _, vh = svd_p.bind(a, full=False)
    return (mm(u * g.unsqueeze(-2), vh),)


@public("linalg.svd")
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: Any = None) -> SVD:
    """``A = U diag(S) Vh`` with orthonormal columns in U and rows in Vh, S descending; square U and Vh with `full_matrices`."""
    floating("linalg.svd", A)
    _no_driver("linalg.svd", driver)
    return SVD(*svd_p(A, full=bool(full_matrices)))


@public("linalg.svdvals")
def svdvals(A: Tensor, *, driver: Any = None) -> Tensor:
    """The singular values of A, descending."""
    floating("linalg.svdvals", A)
    _no_driver("linalg.svdvals", driver)
    # What will be differentiated needs the vectors as well: one factorization instead of two.
    return svdvals_p(A) if A._interp is None else svd_p(A, full=False)[1]


@public("svd", methods="svd")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SVDV:
    """``input = U diag(S) V^H``; U and V are zeros without `compute_uv`."""
    floating("svd", input, "input")
    if not compute_uv:
        m, n = input.shape[-2:]
        lead = tuple(input.shape[:-2])
        zu, zv = (Tensor(np.zeros((*lead, k, k), input.dtype.np)) for k in (m, n))
        return SVDV(zu, svdvals(input), zv)
    u, s, vh = svd_p(input, full=not some)
    return SVDV(u, s, adjoint(vh))


def _no_driver(name: str, driver: Any) -> None:
    if driver is not None:
        raise RuntimeError(
            f"{name}: keyword argument `driver=` is only supported on CUDA inputs with the cuSOLVER backend."
        )


# -- low rank -----------------------------------------------------------------------------------------------------------


def _basis(a: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal columns that nearly span the range of a, by subspace iteration on a fixed random sketch."""
    from .qr import orthonormal

    r = np.random.default_rng(0).standard_normal((a.shape[-1], q))
    if is_complex(a):
        r = r + 1j * np.random.default_rng(1).standard_normal(r.shape)
    y = orthonormal(mm(a, Tensor(r.astype(a.dtype.np))))
    for _ in range(niter):
        y = orthonormal(mm(a, orthonormal(mm(adjoint(a), y))))
    return y


@public("svd_lowrank", out=False)
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """``U, S, V`` of rank q with ``A - M`` nearly ``U diag(S) V^H`` (Halko, Martinsson, Tropp 2009)."""
    floating("svd_lowrank", A)
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    m, n = A.shape[-2:]
    if not 0 <= q <= min(m, n):
        raise ValueError(f"svd_lowrank: q(={q}) must be non-negative and not greater than min(m, n)={min(m, n)}")
    a = A if M is None else A - M
    wide = m < n
    if wide:
        a = adjoint(a)
    basis = _basis(a, q, niter)
    u, s, vh = svd_p(mm(adjoint(basis), a), full=False)
    u, v = mm(basis, u), adjoint(vh)
    return (v, s, u) if wide else (u, s, v)


@public("pca_lowrank", out=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """``U, S, V``: principal components of the rows of A, its columns centred unless ``center=False``."""
    floating("pca_lowrank", A)
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"pca_lowrank: q(={q}) must be non-negative and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"pca_lowrank: niter(={niter}) must be non-negative")
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)


# -- samples ------------------------------------------------------------------------------------------------------------


def _free(a: Tensor, full: bool) -> tuple[Tensor, ...]:
    """Functions of the factors that do not depend on phases, nor on the choice of the vectors beyond the thin ones."""
    u, s, vh = linalg_svd(a, full)
    k = s.shape[-1]
    u2, v2 = u[..., k:], vh[..., k:, :]
    return u[..., :k].abs() ** 2, s, mm(u[..., :k], vh[..., :k, :]), mm(u2, adjoint(u2)), mm(adjoint(v2), v2)


sample("linalg.svd", S(2, 3, 3), f=lambda a: _free(a, True))
sample("linalg.svd", S(4, 2), f=lambda a: _free(a, False))
sample("linalg.svd", S(4, 2), f=lambda a: _free(a, True))
sample("linalg.svd", S(2, 4), f=lambda a: _free(a, True))
sample("linalg.svdvals", S(2, 3, 2))
# Repeated singular values: the nuclear norm does not depend on the choice of vectors.
sample("linalg.svd", Given(np.eye(3), grad=True), f=lambda a: linalg_svd(a)[1].sum(-1))
sample("linalg.svd", Given([[2.0, 0, 0], [0, 2, 0]], grad=True), f=lambda a: linalg_svd(a, False)[1].sum(-1))
