"""Eigenvalues and eigenvectors, Hermitian and general."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.op import op
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.tensor import Tensor
from ..diagonals import diag_embed
from .common import (
    LinAlgError,
    adjoint,
    check_gauge,
    commutator_p,
    diag_of,
    hermitian,
    is_complex,
    mm,
    near_p,
    over_gaps_p,
    repeated,
    skew,
    square,
)
from .solve import solve_p


class Eig(NamedTuple):
    """``A V = V diag(L)``."""

    eigenvalues: Tensor
    eigenvectors: Tensor


# -- Hermitian ----------------------------------------------------------------------------------------------------------


def _failed(name: str) -> LinAlgError:
    return LinAlgError(f"{name}: The algorithm failed to converge because the input matrix is ill-conditioned.")


@op("eigh", core="(n,n)->(n),(n,n)")
def eigh_p(a: Any, *, uplo: Any) -> Any:
    """``L, V`` with ``a = V diag(L) V^H``, L ascending, from the lower or upper triangle of a."""
    try:
        return tuple(np.linalg.eigh(a, uplo))
    except np.linalg.LinAlgError:
        raise _failed("linalg.eigh") from None


@op("eigvalsh", core="(n,n)->(n)")
def eigvalsh_p(a: Any, *, uplo: Any) -> Any:
    """The eigenvalues alone, ascending."""
    try:
        return np.linalg.eigvalsh(a, uplo)
    except np.linalg.LinAlgError:
        raise _failed("linalg.eigvalsh") from None


# The matrix is taken as Hermitian: with P = V^H dA V, dL = diag(P) and V^H dV = P / (L[j] - L[i]) off the diagonal.


@op("hermitian_part", core="(n,n)->(n,n)")
def from_triangle_p(a: Any, *, uplo: str) -> Any:
    """The Hermitian matrix with this lower or upper triangle."""
    half = np.tril(a, -1) if uplo == "L" else np.triu(a, 1)
    d = np.diagonal(a, 0, -2, -1).real[..., None, :] * np.eye(a.shape[-1], dtype=a.real.dtype)
    return half + np.conj(np.swapaxes(half, -1, -2)) + d


from_triangle_p.jvp([lambda t, y, a, *, uplo: hermitian(t)])
from_triangle_p.vjp([lambda g, y, a, *, uplo: hermitian(g)])


def _over_gaps(p: Tensor, w: Tensor, v: Tensor, a: Tensor, uplo: str) -> tuple[Tensor, Tensor]:
    """``p / (w[j] - w[i])``, 0 between equal values, and which are equal."""
    near = near_p.bind(w)
    if repeated(near):
        return commutator_p.bind(mm(adjoint(v), from_triangle_p.bind(a, uplo=uplo), v), p), near
    return over_gaps_p.bind(w, p), near


@eigh_p.jvp
def _(t: Any, y: Any, a: Any, *, uplo: str) -> Any:
    w, v = y
    p = mm(adjoint(v), mm(hermitian(t[0]), v))
    d = diag_of(p)
    return d.real if is_complex(p) else d, mm(v, _over_gaps(p, w, v, a, uplo)[0])


@eigh_p.vjp(sparse=True)
def _(g: Any, y: Any, a: Any, *, uplo: str) -> Any:
    (gw, gv), (w, v) = g, y
    vh = adjoint(v)
    if gv is None:
        return (mm(v * gw.unsqueeze(-2), vh),)
    z = mm(vh, gv)
    p, near = _over_gaps(skew(z), w, v, a, uplo)
    check_gauge("linalg.eigh", "eigenvectors", "eigenvalues", z, near, gw)
    if gw is not None:
        p = p + diag_embed(gw)
    return (mm(v, p, vh),)


@eigvalsh_p.jvp
def _(t: Any, y: Any, a: Any, *, uplo: str) -> Any:
    _, v = eigh_p.bind(a, uplo=uplo)
    d = (mm(hermitian(t[0]), v) * (v.conj() if is_complex(v) else v)).sum(-2)
    return d.real if is_complex(d) else d


@eigvalsh_p.vjp
def _(g: Any, y: Any, a: Any, *, uplo: str) -> Any:
    _, v = eigh_p.bind(a, uplo=uplo)
    return (mm(v * g.unsqueeze(-2), adjoint(v)),)


def _uplo(name: str, uplo: Any) -> str:
    if not isinstance(uplo, str) or uplo.upper() not in ("L", "U"):
        raise RuntimeError(f"{name}: Expected UPLO argument to be 'L' or 'U', but got {uplo!r}")
    return uplo.upper()


@public("linalg.eigh")
def eigh(A: Tensor, UPLO: str = "L") -> Eig:
    """``A = V diag(L) V^H`` of a Hermitian matrix, L real and ascending, read from its lower (or upper) triangle."""
    square("linalg.eigh", A)
    return Eig(*eigh_p(A, uplo=_uplo("linalg.eigh", UPLO)))


@public("linalg.eigvalsh")
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a Hermitian matrix, ascending."""
    square("linalg.eigvalsh", A)
    uplo = _uplo("linalg.eigvalsh", UPLO)
    return eigvalsh_p(A, uplo=uplo) if A._interp is None else eigh_p(A, uplo=uplo)[0]


# -- general ------------------------------------------------------------------------------------------------------------


def _complex(x: Any) -> Any:
    return x if x.dtype.kind == "c" else x.astype(np.result_type(x.dtype, np.complex64))


def _finite(name: str, a: Any) -> None:
    if not np.isfinite(a).all():
        raise LinAlgError(f"{name}: the input matrix A contains infinities or NaN")


@op("eig", core="(n,n)->(n),(n,n)")
def eig_p(a: Any) -> Any:
    """``L, V`` with ``a V = V diag(L)``, complex, the columns of V of norm 1."""
    _finite("linalg.eig", a)
    try:
        w, v = np.linalg.eig(a)
    except np.linalg.LinAlgError:
        raise _failed("linalg.eig") from None
    return _complex(w), _complex(v)


@op("eigvals", core="(n,n)->(n)")
def eigvals_p(a: Any) -> Any:
    """The eigenvalues alone."""
    _finite("linalg.eigvals", a)
    try:
        return _complex(np.linalg.eigvals(a))
    except np.linalg.LinAlgError:
        raise _failed("linalg.eigvals") from None


# With P = V^-1 dA V, dV = V X, X = P / (L[j] - L[i]) off the diagonal; columns of norm 1 lose what lies along them.


@eig_p.jvp
def _(t: Any, y: Any, a: Any) -> Any:
    w, v = y
    p = solve_p.bind(v, mm(t[0].to(v.dtype), v))
    dv = mm(v, over_gaps_p.bind(w, p))
    along = (v.conj() * dv).real.sum(-2, True)
    return diag_of(p), dv - v * along


@eig_p.vjp(sparse=True)
def _(g: Any, y: Any, a: Any) -> Any:
    (gw, gv), (w, v) = g, y
    vh = adjoint(v)
    if gv is None:
        return (solve_p.bind(vh, gw.unsqueeze(-1) * vh),)
    z = mm(vh, gv)
    along = diag_of(z).real
    z = z - mm(vh, v) * along.unsqueeze(-2)
    _check_phase(diag_of(z).imag, z)
    p = over_gaps_p.bind(w.conj(), z)
    if gw is not None:
        p = p + diag_embed(gw)
    return (solve_p.bind(vh, mm(p, vh)),)


def _check_phase(d: Tensor, z: Tensor) -> None:
    # Only the phases: eigenvectors of a repeated eigenvalue of a general matrix need not be orthogonal.
    check_gauge(
        "linalg.eig",
        "eigenvectors",
        "eigenvalues",
        diag_embed(d).to(z.dtype) * 1j,
        Tensor(np.eye(z.shape[-1], dtype=bool)),
    )


@eigvals_p.jvp
def _(t: Any, y: Any, a: Any) -> Any:
    _, v = eig_p.bind(a)
    return diag_of(solve_p.bind(v, mm(t[0].to(v.dtype), v)))


@eigvals_p.vjp
def _(g: Any, y: Any, a: Any) -> Any:
    _, v = eig_p.bind(a)
    vh = adjoint(v)
    return (solve_p.bind(vh, g.unsqueeze(-1) * vh),)


@public("linalg.eig")
def eig(A: Tensor) -> Eig:
    """``A V = V diag(L)`` of a square matrix; L and V are complex, the columns of V have norm 1."""
    square("linalg.eig", A)
    return Eig(*eig_p(A))


@public("linalg.eigvals")
def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of a square matrix, complex, in no particular order."""
    square("linalg.eigvals", A)
    return eigvals_p(A) if A._interp is None else eig_p(A)[0]


# -- samples ------------------------------------------------------------------------------------------------------------


def _free(a: Tensor) -> tuple[Tensor, Tensor]:
    w, v = eigh(hermitian(a))
    return w, v.abs() ** 2


def _projector(a: Tensor) -> Tensor:
    v = eigh(a)[1][..., 1:3]
    return mm(v, adjoint(v))


def _free_eig(a: Tensor) -> tuple[Tensor, Tensor]:
    w, v = eig(a)
    return w, v.abs() ** 2


sample("linalg.eigh", S(2, 3, 3), f=_free)
sample("linalg.eigvalsh", S(3, 3), f=lambda a: eigvalsh(hermitian(a), "U"))
# Neither the projector on the eigenvectors of a repeated value nor the sum of the values depends on the choice of vectors.
sample("linalg.eigh", Given(np.diag([2.0, 2.0, 1.0, 3.0]), grad=True), f=lambda a: _projector(hermitian(a)))
sample("linalg.eigh", Given(np.eye(3), grad=True), f=lambda a: eigh(hermitian(a))[0].sum(-1))
sample("linalg.eig", S(2, 3, 3), f=_free_eig)
sample("linalg.eigvals", S(3, 3))
