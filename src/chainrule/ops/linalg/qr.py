"""The QR factorization and its Householder form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.declare import fused, op
from ...core.errors import ChainruleError
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import broadcast_shapes
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.elementary import sqrt
from ..elementwise.select import where
from ..shape.slices import cat
from ..shape.triangles import tril, triu
from .common import adjoint, floating, identity, is_complex, mm, same_dtype, widened
from .triangular import trsm_p, trsm_right


class QR(NamedTuple):
    """``A = Q R``."""

    Q: Tensor
    R: Tensor


@op("qr", core="(m,n)->(m,k),(k,n)")
def qr_p(a: Any, *, mode: Any) -> Any:
    """``Q, R`` with ``a = Q R``, R upper triangular with a real diagonal; for mode "r" Q is empty."""
    if mode == "r":
        return np.zeros((0,), a.dtype), np.linalg.qr(a, "r")
    return tuple(np.linalg.qr(a, mode))


def _half_triu(x: Tensor) -> Tensor:
    """The upper triangle of ``x + x^H`` with the diagonal halved."""
    n = x.shape[-1]
    mask = np.triu(np.ones((n, n), x.dtype.to_real().np))
    np.fill_diagonal(mask, 0.5)
    return (x + adjoint(x)) * Tensor(mask)


def _defined(m: int, n: int, mode: str) -> None:
    if mode == "r":
        raise ChainruleError(
            "linalg.qr: The derivative depends on Q, which is not computed when mode='r'. Use mode='reduced' and take R"
        )
    if mode == "complete" and m > n:
        raise ChainruleError(
            f"linalg.qr: The QR decomposition is not differentiable when mode='complete' and nrows > ncols ({m} > {n}): the last "
            f"columns of Q are arbitrary. Use mode='reduced'"
        )


# Tall or square, with C = Q^H dA R^-1 and W = dR R^-1, which is upper triangular with a real diagonal: W = half_triu(C + C^H).


@qr_p.jvp
def _(t: Any, y: Any, a: Any, *, mode: str) -> Any:
    _defined(a.shape[-2], a.shape[-1], mode)
    q, r = y
    z = trsm_right(r, t[0])
    w = _half_triu(mm(adjoint(q), z))
    return z - mm(q, w), mm(w, r)


@qr_p.vjp
def _(g: Any, y: Any, a: Any, *, mode: str) -> Any:
    _defined(a.shape[-2], a.shape[-1], mode)
    (gq, gr), (q, r) = g, y
    w = mm(gr, adjoint(r)) - mm(adjoint(q), gq)
    n = w.shape[-1]
    mask = np.triu(np.ones((n, n), w.dtype.to_real().np))
    np.fill_diagonal(mask, 0.5)
    w = w * Tensor(mask)
    # X R^H = B is R X^H = B^H.
    return (adjoint(trsm_p.bind(r, adjoint(gq + mm(q, w + adjoint(w))), upper=True, unit=False)),)


def _qr(a: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    m, n = a.shape[-2:]
    if mode == "r" or m >= n:
        return qr_p(a, mode=mode)
    # The first columns fix Q; the others follow: R = [R1, Q^H A2].
    q, r = qr_p(a[..., :m], mode="reduced")
    return q, cat((r, mm(adjoint(q), a[..., m:])), -1)


def orthonormal(a: Tensor) -> Tensor:
    """Orthonormal columns with the span of a's: Q of the reduced factorization."""
    return qr_p(a, mode="reduced")[0]


@public("linalg.qr")
@straight
def linalg_qr(A: Tensor, mode: str = "reduced") -> QR:
    """``A = Q R`` with orthonormal columns in Q and R upper triangular; `mode` is "reduced", "complete" or "r" (R alone)."""
    floating("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"linalg.qr: mode must be one of 'reduced', 'complete' or 'r', got {mode!r}")
    return QR(*_qr(A, mode))


@public("qr", methods="qr")
@straight
def qr(input: Tensor, some: bool = True) -> QR:
    """``input = Q R``, reduced unless ``some=False``."""
    floating("qr", input, "input")
    return QR(*_qr(input, "reduced" if some else "complete"))


# -- Householder form ---------------------------------------------------------------------------------------------------


class Geqrf(NamedTuple):
    """R in the upper triangle, the reflectors below it, and their factors."""

    a: Tensor
    tau: Tensor


def _geqrf_array(a: Any) -> Any:
    """LAPACK's factorization."""
    h, tau = np.linalg.qr(a, "raw")
    return np.ascontiguousarray(np.swapaxes(h, -1, -2)), tau


def _geqrf(a: Any) -> Any:
    """The QR factorization as LAPACK leaves it: R and Householder vectors, and their factors.

    Column by column: ``H = I - tau u u^H`` with ``u = (1, v)`` takes the column (alpha, x) to (beta, 0), with beta real and of the
    other sign than alpha, ``v = x / (alpha - beta)``, ``tau = (beta - alpha) / beta``; H is the identity where x is 0 and alpha real.
    """
    k = min(a.shape[-2:])
    taus, parts = [], []
    for _ in range(k):
        alpha, x = a[..., :1, :1], a[..., 1:, :1]
        re = alpha.real if is_complex(alpha) else alpha
        size = (x.abs() ** 2).sum(-2, keepdim=True) + ((alpha.imag**2) if is_complex(alpha) else 0)
        idle = size == 0
        length = sqrt(where(idle, 1, re * re + size))
        beta = where(idle, re, where(re >= 0, -length, length)).to(a.dtype)
        v = x / where(idle, 1, alpha - beta)
        tau = where(idle, 0, (beta - alpha) / where(idle, 1, beta))
        rest = a[..., 1:]
        u = cat([tau * 0 + 1, v], -2)
        rest = rest - u @ (tau.conj() * (adjoint(u) @ rest))
        parts.append((beta, v, rest[..., :1, :]))
        taus.append(tau[..., 0])
        a = rest[..., 1:, :]
    for beta, v, row in reversed(parts):
        a = cat([cat([beta, row], -1), cat([v, a], -1)], -2)
    return a, cat(taus, -1) if taus else a[..., 0, :0]


geqrf_p = fused("geqrf", _geqrf, lambda: (2,), lambda: (2, 1), _geqrf_array)


@public("geqrf", methods="geqrf")
def geqrf(input: Tensor) -> Geqrf:
    """R in the upper triangle and Householder vectors below it, with their factors tau: what householder_product takes."""
    floating("geqrf", input, "input")
    return Geqrf(*geqrf_p(input))


def _reflectors(a: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """``V, T`` with ``H_1 ... H_k = I - V T V^H``: T^-1 is diag(1/tau) plus the strict upper triangle of V^H V."""
    k = tau.shape[-1]
    v = tril(a[..., :k], -1) + identity(a.shape[-2], a, k)
    d = tau.unsqueeze(-1)
    w = triu(mm(adjoint(v), v), 1) * d
    # (I + D W) T = D has an answer for tau = 0 too.
    return v, trsm_p.bind(w, identity(k, a) * d, upper=True, unit=True)


@public("linalg.householder_product orgqr", methods="orgqr")
def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first n columns of ``H_1 ... H_k`` with ``H_i = I - tau[i] v_i v_i^H``, v_i below the diagonal of A's column i."""
    name = "linalg.householder_product"
    floating(name, A, "input")
    floating(name, tau, "tau", 1)
    m, n = A.shape[-2:]
    k = tau.shape[-1]
    if m < n:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1], got {list(A.shape)}"
        )
    if n < k:
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1], got {list(A.shape)} and {list(tau.shape)}"
        )
    if A.ndim - tau.ndim != 1 or tuple(A.shape[:-2]) != tuple(tau.shape[:-1]):
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], got {list(tau.shape)} and {list(A.shape)}"
        )
    same_dtype(name, A, tau, "input and tau")
    (a, tau), narrow = widened(A, tau)  # T may be much larger than the product
    v, t = _reflectors(a, tau)
    return narrow(identity(m, a, n) - mm(v, t, adjoint(v[..., :n, :])))


@public("ormqr", methods="ormqr")
def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """``Q other`` (or ``other Q``; ``Q^H`` with `transpose`) for the square Q of Householder vectors `input` and factors `tau`."""
    floating("ormqr", input, "input")
    floating("ormqr", other, "other")
    floating("ormqr", tau, "tau", 1)
    rows = other.shape[-2 if left else -1]
    if rows < tau.shape[-1]:
        raise RuntimeError(
            f"torch.ormqr: other.shape[{-2 if left else -1}] must be greater than or equal to tau.shape[-1], got {rows} and {tau.shape[-1]}"
        )
    if rows != input.shape[-2]:
        raise RuntimeError(
            f"torch.ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2], got {rows} and {input.shape[-2]}"
        )
    if tau.shape[-1] > input.shape[-1]:
        raise RuntimeError(
            f"ormqr: tau.shape[-1] must be less than or equal to input.shape[-1], got {tau.shape[-1]} and {input.shape[-1]}"
        )
    if input.ndim - tau.ndim != 1 or tuple(input.shape[:-2]) != tuple(tau.shape[:-1]):
        raise RuntimeError(
            f"ormqr: Expected batch dimensions of tau to be equal to input.shape[:-2], got {list(tau.shape)} and {list(input.shape)}"
        )
    if input.ndim != other.ndim or tuple(input.shape[:-2]) != tuple(other.shape[:-2]):
        raise RuntimeError(
            f"ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], got {list(other.shape)} and {list(input.shape)}"
        )
    same_dtype("ormqr", input, tau, "input and tau")
    same_dtype("ormqr", input, other, "input and other")
    broadcast_shapes(input.shape[:-2], other.shape[:-2], what="ormqr: batch dimensions of input and other")
    (input, tau, other), narrow = widened(input, tau, other)
    v, t = _reflectors(input, tau)
    t = adjoint(t) if transpose else t
    if left:
        return narrow(other - mm(v, mm(t, mm(adjoint(v), other))))
    return narrow(other - mm(mm(mm(other, v), t), adjoint(v)))


# -- samples ------------------------------------------------------------------------------------------------------------

sample("linalg.qr", S(2, 3, 3), f=lambda a: tuple(linalg_qr(a)))
sample("linalg.qr", S(4, 2), f=lambda a: tuple(linalg_qr(a)))
sample("linalg.qr", S(2, 4), f=lambda a: tuple(linalg_qr(a, "complete")))
sample("linalg.householder_product", S(2, 4, 3), S(2, 2))
sample("linalg.householder_product", S(3, 2), Given([0.0, 0.0], grad=True))
sample("ormqr", S(4, 3), S(2), S(4, 2))
sample("ormqr", S(4, 3), S(3), S(2, 4), left=False, transpose=True)
for _m, _n in ((3, 3), (4, 2), (2, 3)):
    sample("geqrf", S(_m, _n))
sample("geqrf", S(2, 3, 2))
