"""The singular value decomposition, and low-rank approximations from it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.declare import op
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import zeros_beside
from ...core.straight import straight
from ...core.tensor import Tensor
from ..shape.diagonals import diag_embed
from ..shape.slices import cat
from .common import (
    LinAlgError,
    adjoint,
    check_free,
    check_phase,
    diag_of,
    factored,
    floating,
    hermitian,
    is_complex,
    mm,
    over_gaps_p,
    over_sums_p,
    over_values_p,
    skew,
    widened,
)
from .germ import free, may_move, moving, over_split, phases, pulled, restarts, split, turned


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
def svd_p(a: Any, *, full: bool, turn: bool = False) -> Any:
    """``U, S, Vh`` with ``a = U diag(S) Vh``; square U and Vh with `full`; `turn`: see germ.turned."""
    u, s, vh = factored("linalg.svd", a, full)
    if turn:
        u, v = turned(s, u, np.conj(np.swapaxes(vh, -1, -2)), zeros=True)
        vh = np.conj(np.swapaxes(v, -1, -2))
    return u, s, vh


@op("svdvals", core="(m,n)->(k)", differentiable=False)
def svdvals_p(a: Any) -> Any:
    """The singular values alone, in descending order, where no derivative is taken."""
    try:
        return np.linalg.svd(a, compute_uv=False)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "linalg.svdvals: The algorithm failed to converge because the input matrix is ill-conditioned."
        ) from None


def _parts(y: Any) -> tuple[Any, ...]:
    """The thin factors and the vectors beyond them (or None)."""
    u, s, vh = y
    k = s.shape[-1]
    v = adjoint(vh)
    u1, u2 = (u, None) if u.shape[-1] == k else (u[..., :k], u[..., k:])
    v1, v2 = (v, None) if v.shape[-1] == k else (v[..., :k], v[..., k:])
    return u1, u2, s, v1, v2


class _Divisions:
    """Divisions by differences, sums and values of s; those that are 0 move along a germ (see germ.py)."""

    def __init__(self, s: Tensor) -> None:
        self.s = s

    def gaps(self, p: Tensor, of: Tensor) -> Tensor:
        """``p / (s[j] - s[i])``, 0 on the diagonal; p is what is left of matrices like `of`."""
        return over_split(over_gaps_p.bind(self.s, p), self.s, p, of)

    def sums(self, p: Tensor, of: Tensor) -> Tensor:
        """``p / (s[j] + s[i])``."""
        return over_split(over_sums_p.bind(self.s, p), self.s, p, of, "sums")

    def values(self, x: Tensor, of: Tensor) -> Tensor:
        """``x / s[j]``."""
        return over_split(over_values_p.bind(self.s, x), self.s, x, of, "values")


restarts(svd_p)


# With dU = U X, dV = V Y (X, Y skew) and P = U^H dA V: herm(P) = (X + Y)/2 * (s_j - s_i), skew(P) = (X - Y)/2 * (s_j + s_i).
# Only the first is singular for repeated values; both are where several are zero.


def _larger(gu: Any, gv: Any) -> Any:
    """A matrix as large as both cotangents, one of which may be missing."""
    if gu is None or gv is None:
        return gv if gu is None else gu
    return cat((gu.detach(), gv.detach()), -2)


def _beyond(u: Tensor, u2: Tensor, x: Tensor, p: Tensor, s: Tensor) -> Tensor:
    """The tangent of the vectors beyond the thin ones, which may be turned among themselves."""
    d, n = -mm(u, adjoint(x)), u2.shape[-1]
    return d + mm(u2, free(p, s, n)) if s.shape[-1] and n > (not is_complex(p)) else d


@svd_p.jvp
def _(t: Any, y: Any, a: Any, *, full: bool, turn: bool) -> Any:
    u, u2, s, v, v2 = _parts((y[0], split(y[1], zeros=True), y[2]))
    by = _Divisions(s)
    da = t[0]
    dav, dau = mm(da, v), mm(adjoint(da), u)
    p = mm(adjoint(u), dav)
    x, z = by.gaps(hermitian(p), p), by.sums(skew(p), p)
    if is_complex(p):
        x = x + phases(p, s)
    du, dv = mm(u, x + z), mm(v, x - z)
    m, n, k = a.shape[-2], a.shape[-1], s.shape[-1]
    if m > k:
        du = du + by.values(dav - mm(u, p), dav)
    if n > k:
        dv = dv + by.values(dau - mm(v, adjoint(p)), dau)
    if u2 is not None:
        du = cat((du, _beyond(u, u2, by.values(mm(adjoint(u2), dav), dav), p, s)), -1)
    if v2 is not None:
        dv = cat((dv, _beyond(v, v2, by.values(mm(adjoint(v2), dau), dau), p, s)), -1)
    return du, diag_of(p).real if is_complex(p) else diag_of(p), adjoint(dv)


@svd_p.vjp(sparse=True)
def _(g: Any, y: Any, a: Any, *, full: bool, turn: bool) -> Any:
    gu, gs, gvh = g
    u, u2, s, v, v2 = _parts(y)
    m, n, k = a.shape[-2], a.shape[-1], s.shape[-1]
    vh = adjoint(v)
    if gu is None and gvh is None:
        return (pulled(mm(u * gs.unsqueeze(-2), vh), gs, gs),)
    gv = None if gvh is None else adjoint(gvh)
    gu1, gu2 = (gu, None) if u2 is None or gu is None else (gu[..., :k], gu[..., k:])
    gv1, gv2 = (gv, None) if v2 is None or gv is None else (gv[..., :k], gv[..., k:])
    wu: Any = None if gu1 is None else mm(adjoint(u), gu1)
    wv: Any = None if gv1 is None else mm(vh, gv1)
    total: Any = wu if wv is None else wv if wu is None else wu + wv
    minus = wu if wv is None else -wv if wu is None else wu - wv
    by, of = _Divisions(split(s, zeros=True)), _larger(gu1, gv1)
    check_phase("linalg.svd", "singular vectors", total, of, s, gs)
    check_free("linalg.svd", u2, gu2)
    check_free("linalg.svd", v2, gv2)
    p = by.gaps(skew(total), of) + by.sums(skew(minus), of)
    if gs is not None:
        p = p + diag_embed(gs)
    ga = mm(u, p, vh)
    if gu1 is not None and m > k:
        across = gu1 - mm(u, wu)
        ga = ga + mm(by.values(across if gu2 is None else across - mm(u2, adjoint(mm(adjoint(u), gu2))), of), vh)
    if gv1 is not None and n > k:
        across = gv1 - mm(v, wv)
        ga = ga + mm(u, adjoint(by.values(across if gv2 is None else across - mm(v2, adjoint(mm(vh, gv2))), of)))
    return (pulled(ga, of, gu, gvh),)


def _svd(a: Tensor, full: bool, turn: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    u, s, vh = svd_p(a, full=full, turn=moving(a))
    return u, split(s, zeros=True) if moving(a) else s, vh


svd_p.anew = _svd


@public("linalg.svd")
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: Any = None) -> SVD:
    """``A = U diag(S) Vh`` with orthonormal columns in U and rows in Vh, S descending; square U and Vh with `full_matrices`."""
    floating("linalg.svd", A)
    _no_driver("linalg.svd", driver)
    return SVD(*_svd(A, bool(full_matrices)))


@public("linalg.svdvals")
@straight
def svdvals(A: Tensor, *, driver: Any = None) -> Tensor:
    """The singular values of A, descending."""
    floating("linalg.svdvals", A)
    _no_driver("linalg.svdvals", driver)
    if not may_move(A):
        return svdvals_p(A)
    s = svd_p(A, full=False, turn=False)[1]
    return split(s, zeros=True) if moving(A) else s


@public("svd", methods="svd")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SVDV:
    """``input = U diag(S) V^H``; U and V are zeros without `compute_uv`."""
    floating("svd", input, "input")
    if not compute_uv:
        m, n = input.shape[-2:]
        lead = tuple(input.shape[:-2])
        zu, zv = (zeros_beside((*lead, k, k), input) for k in (m, n))
        return SVDV(zu, svdvals(input), zv)
    u, s, vh = _svd(input, not some)
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
    # The errors of one basis are in the next, and in what is projected on it.
    xs, narrow = widened(A) if M is None else widened(A, M)
    a = xs[0] if M is None else xs[0] - xs[1]
    wide = m < n
    if wide:
        a = adjoint(a)
    basis = _basis(a, q, niter)
    u, s, vh = _svd(mm(adjoint(basis), a), False)
    u, s, v = narrow(mm(basis, u)), narrow(s), narrow(adjoint(vh))
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


def _projector(vh: Tensor) -> Tensor:
    return mm(adjoint(vh), vh)


sample("linalg.svd", S(2, 3, 3), f=lambda a: _free(a, True))
sample("linalg.svd", S(4, 2), f=lambda a: _free(a, False))
sample("linalg.svd", S(4, 2), f=lambda a: _free(a, True))
sample("linalg.svd", S(2, 4), f=lambda a: _free(a, True))
sample("linalg.svdvals", S(2, 3, 2))
# Repeated singular values: neither the polar factor nor the nuclear norm depends on the choice of vectors.
sample("linalg.svd", Given(np.eye(3), grad=True), f=lambda a: mm(*linalg_svd(a)[::2]))
sample(
    "linalg.svd",
    Given(np.diag([0.5, 0.5, 0.0])[:, :2], grad=True),
    f=lambda a: _projector(adjoint(linalg_svd(a, False)[0])),
)
sample("linalg.svd", Given(np.diag([2.0, 2.0, 1.0]), grad=True), f=lambda a: _projector(linalg_svd(a)[2][..., :2, :]))
sample("linalg.svd", Given(np.eye(3), grad=True), f=lambda a: linalg_svd(a)[1].sum(-1))
sample("linalg.svd", Given([[2.0, 0, 0], [0, 2, 0]], grad=True), f=lambda a: linalg_svd(a, False)[1].sum(-1))
