"""Eigenvalues and eigenvectors, Hermitian and general."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.declare import op
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.tensor import Tensor
from ..shape.diagonals import diag_embed
from .common import (
    LinAlgError,
    adjoint,
    check_phase,
    diag_of,
    hermitian,
    is_complex,
    mm,
    over_gaps_p,
    skew,
    square,
)
from .germ import may_move, moving, over_split, phases, pulled, restarts, split, turned
from .solve import solve_p


class Eig(NamedTuple):
    """``A V = V diag(L)``."""

    eigenvalues: Tensor
    eigenvectors: Tensor


# -- Hermitian ----------------------------------------------------------------------------------------------------------


def _failed(name: str) -> LinAlgError:
    return LinAlgError(f"{name}: The algorithm failed to converge because the input matrix is ill-conditioned.")


@op("eigh", core="(n,n)->(n),(n,n)")
def eigh_p(a: Any, *, uplo: Any, turn: bool = False) -> Any:
    """``L, V`` with ``a = V diag(L) V^H``, L ascending, from the lower or upper triangle of a; `turn`: see germ.turned."""
    try:
        w, v = np.linalg.eigh(a, uplo)
    except np.linalg.LinAlgError:
        raise _failed("linalg.eigh") from None
    return (w, *turned(w, v)) if turn else (w, v)


@op("eigvalsh", core="(n,n)->(n)", differentiable=False)
def eigvalsh_p(a: Any, *, uplo: Any) -> Any:
    """The eigenvalues alone, ascending, where no derivative is taken."""
    try:
        return np.linalg.eigvalsh(a, uplo)
    except np.linalg.LinAlgError:
        raise _failed("linalg.eigvalsh") from None


# The matrix is taken as Hermitian: with P = V^H dA V, dL = diag(P) and V^H dV = P / (L[j] - L[i]) off the diagonal. Equal values are
# split along a germ (see germ.py), where their gaps are not 0.


restarts(eigh_p)


def _over_gaps(p: Tensor, w: Tensor, of: Tensor) -> Tensor:
    """``p / (w[j] - w[i])`` off the diagonal; p is what is left of matrices like `of`."""
    return over_split(over_gaps_p.bind(w, p), w, p, of)


@eigh_p.jvp
def _(t: Any, y: Any, a: Any, *, uplo: str, turn: bool) -> Any:
    w, v = split(y[0]), y[1]
    p = mm(adjoint(v), mm(hermitian(t[0]), v))
    d = diag_of(p)
    if not is_complex(p):
        return d, mm(v, _over_gaps(p, w, p))
    return d.real, mm(v, _over_gaps(p, w, p) + phases(p, w))


@eigh_p.vjp(sparse=True)
def _(g: Any, y: Any, a: Any, *, uplo: str, turn: bool) -> Any:
    (gw, gv), (w, v) = g, y
    vh = adjoint(v)
    if gv is None:
        return (pulled(mm(v * gw.unsqueeze(-2), vh), gw, gw),)
    w, z = split(w), mm(vh, gv)
    check_phase("linalg.eigh", "eigenvectors", z, gv, w, gw)
    p = _over_gaps(skew(z), w, gv)
    if gw is not None:
        p = p + diag_embed(gw)
    return (pulled(mm(v, p, vh), gv, gv),)


def _uplo(name: str, uplo: Any) -> str:
    if not isinstance(uplo, str) or uplo.upper() not in ("L", "U"):
        raise RuntimeError(f"{name}: Expected UPLO argument to be 'L' or 'U', but got {uplo!r}")
    return uplo.upper()


@public("linalg.eigh")
def eigh(A: Tensor, UPLO: str = "L") -> Eig:
    """``A = V diag(L) V^H`` of a Hermitian matrix, L real and ascending, read from its lower (or upper) triangle."""
    square("linalg.eigh", A)
    return Eig(*_eigh(A, uplo=_uplo("linalg.eigh", UPLO)))


def _eigh(a: Tensor, *, uplo: str, turn: bool = False) -> tuple[Tensor, Tensor]:
    w, v = eigh_p(a, uplo=uplo, turn=moving(a))
    return split(w) if moving(a) else w, v


eigh_p.anew = _eigh


@public("linalg.eigvalsh")
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a Hermitian matrix, ascending."""
    square("linalg.eigvalsh", A)
    uplo = _uplo("linalg.eigvalsh", UPLO)
    if not may_move(A):
        return eigvalsh_p(A, uplo=uplo)
    w = eigh_p(A, uplo=uplo, turn=False)[0]
    return split(w) if moving(A) else w


# -- general ------------------------------------------------------------------------------------------------------------


def _complex(x: Any) -> Any:
    return x if x.dtype.kind == "c" else x.astype(np.result_type(x.dtype, np.complex64))


def _finite(name: str, a: Any) -> None:
    if not np.isfinite(a).all():
        raise LinAlgError(f"torch.{name}: input tensor should not contain infs or NaNs.")


SLACK = 64.0  # equal eigenvalues of a matrix that is not normal differ by more than rounding


@op("eig", core="(n,n)->(n),(n,n)")
def eig_p(a: Any, *, turn: bool = False) -> Any:
    """``L, V`` with ``a V = V diag(L)``, complex, the columns of V of norm 1; `turn`: see germ.turned."""
    _finite("linalg.eig", a)
    try:
        w, v = map(_complex, np.linalg.eig(a))
    except np.linalg.LinAlgError:
        raise _failed("linalg.eig") from None
    if turn:
        (v,) = turned(w, v, slack=SLACK)
        v = v / np.sqrt((v * v.conj()).real.sum(-2, keepdims=True))
    return w, v


@op("eigvals", core="(n,n)->(n)", differentiable=False)
def eigvals_p(a: Any) -> Any:
    """The eigenvalues alone, where no derivative is taken."""
    _finite("linalg.eigvals", a)
    try:
        return _complex(np.linalg.eigvals(a))
    except np.linalg.LinAlgError:
        raise _failed("linalg.eigvals") from None


# With P = V^-1 dA V, dV = V X, X = P / (L[j] - L[i]) off the diagonal; columns of norm 1 lose what lies along them.

restarts(eig_p)


@eig_p.jvp
def _(t: Any, y: Any, a: Any, *, turn: bool) -> Any:
    w, v = split(y[0], SLACK), y[1]
    p = solve_p.bind(v, mm(t[0].to(v.dtype), v))
    dv = mm(v, _over_gaps(p, w, p) + phases(p, w))
    along = (v.conj() * dv).real.sum(-2, True)
    return diag_of(p), dv - v * along


@eig_p.vjp(sparse=True)
def _(g: Any, y: Any, a: Any, *, turn: bool) -> Any:
    (gw, gv), (w, v) = g, y
    vh = adjoint(v)
    if gv is None:
        return (pulled(solve_p.bind(vh, gw.unsqueeze(-1) * vh), gw, gw),)
    w, z = split(w, SLACK), mm(vh, gv)
    check_phase("linalg.eig", "eigenvectors", z, gv, w, gw)
    z = z - mm(vh, v) * diag_of(z).real.unsqueeze(-2)
    p = _over_gaps(z, w.conj(), gv)
    if gw is not None:
        p = p + diag_embed(gw)
    return (pulled(solve_p.bind(vh, mm(p, vh)), gv, gv, unitary=False),)


@public("linalg.eig")
def eig(A: Tensor) -> Eig:
    """``A V = V diag(L)`` of a square matrix; L and V are complex, the columns of V have norm 1."""
    square("linalg.eig", A)
    return Eig(*_eig(A))


def _eig(a: Tensor, *, turn: bool = False) -> tuple[Tensor, Tensor]:
    w, v = eig_p(a, turn=moving(a))
    return split(w, SLACK) if moving(a) else w, v


eig_p.anew = _eig


@public("linalg.eigvals")
def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of a square matrix, complex, in no particular order."""
    square("linalg.eigvals", A)
    if not may_move(A):
        return eigvals_p(A)
    w = eig_p(A, turn=False)[0]
    return split(w, SLACK) if moving(A) else w


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
