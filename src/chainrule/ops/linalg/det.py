"""Determinants, right for singular matrices at every order."""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np

from ...core.declare import op
from ...core.op import Op
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.select import where
from .common import adjoint, diag_of, is_complex, mm, square
from .inverse import inv_p


class Slogdet(NamedTuple):
    """``det = sign * exp(logabsdet)``."""

    sign: Tensor
    logabsdet: Tensor


# -- derivatives of the determinant -------------------------------------------------------------------------------------
#
# C_k(A, E_1 .. E_k) is the matrix with sum(C_k * T) = D^(k+1) det(A)[E_1, .., E_k, T]: C_0 holds the cofactors. Differentiating
# C_k gives C_(k+1), and the form is symmetric in the E_i and T, so each C_k is its own transpose: one family of polynomials,
# closed under both modes, and no division by the determinant.
#
# Between bases of singular vectors A is diagonal, S. There
#     D^k det(S)[M_1 .. M_k] = sum over distinct i_1 .. i_k of  T[i_1 .. i_k]  sum over permutations p of  sign(p) prod M_l[i_l, i_p(l)]
# where T is the product of the singular values other than s[i_1], .., s[i_k].


def _products_of_others(s: Any, k: int) -> Any:
    """``T[..., i_1, .., i_k]``: the product of the s other than these, 0 where two indices agree."""
    n = s.shape[-1]
    zero = s == 0
    safe = np.where(zero, 1, s)
    total = np.prod(safe, axis=-1)
    left = np.sum(zero, axis=-1)
    shape = lambda v, l: v.reshape(*v.shape[:-1], *(n if i == l else 1 for i in range(k)))
    t = total.reshape(*total.shape, *(1,) * k)
    z = left.reshape(*left.shape, *(1,) * k)
    for l in range(k):
        t = t / shape(safe, l)
        z = z - shape(zero, l)
    t = np.where(z == 0, t, 0)
    i = np.indices((n,) * k)
    for a, b in itertools.combinations(range(k), 2):
        t = np.where(i[a] == i[b], 0, t)
    return t


def _sign(p: tuple[int, ...]) -> int:
    return -1 if sum(a > b for a, b in itertools.combinations(p, 2)) % 2 else 1


def _by_inverse(a: Any, *es: Any) -> Any:
    """``C_0`` or ``C_1`` from determinant and inverse, and which matrices are far enough from singular for that; or None."""
    try:
        inv = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return None
    size = np.abs(a).sum(-2).max(-1) * np.abs(inv).sum(-2).max(-1)
    near = ~(size < 1e4)
    if near.all():
        return None
    t, det = np.swapaxes(inv, -1, -2), np.linalg.det(a)[..., None, None]
    if not es:
        return det * t, near
    w = inv @ es[0]
    return det * (np.trace(w, axis1=-2, axis2=-1)[..., None, None] * t - np.swapaxes(w @ inv, -1, -2)), near


def _cofactors(a: Any, *es: Any) -> Any:
    """``C_k(a, e_1 .. e_k)``."""
    k, n, d = len(es), a.shape[-1], a.dtype
    wide = np.result_type(d, np.float64)
    lead = np.broadcast_shapes(a.shape[:-2], *[e.shape[:-2] for e in es])
    if n == 0 or k >= n or 0 in lead:
        return np.zeros((*lead, n, n), d)
    if k <= 1 and (quick := _by_inverse(a.astype(wide, copy=False), *es)) is not None:
        y, near = quick[0].astype(d, copy=False), quick[1]
        if near.any():  # each matrix by its own way
            at = np.broadcast_to(near, lead)
            y = np.array(np.broadcast_to(y, (*lead, n, n)))
            y[at] = _by_singular_values(*[np.broadcast_to(x, (*lead, n, n))[at] for x in (a, *es)])
        return y
    return _by_singular_values(a, *es)


def _by_singular_values(a: Any, *es: Any) -> Any:
    """``C_k(a, e_1 .. e_k)`` of any matrices."""
    k, n, d = len(es), a.shape[-1], a.dtype
    wide = np.result_type(d, np.float64)
    lead = np.broadcast_shapes(a.shape[:-2], *[e.shape[:-2] for e in es])
    finite = np.isfinite(a).all(axis=(-2, -1), keepdims=True)  # LAPACK does not come back from an infinity
    u, s, vh = np.linalg.svd(np.where(finite, a.astype(wide, copy=False), 0))
    uh, v = np.conj(np.swapaxes(u, -1, -2)), np.conj(np.swapaxes(vh, -1, -2))
    ms = [uh @ e.astype(wide, copy=False) @ v for e in es]
    t = _products_of_others(s, k + 1)
    total = np.zeros((*lead, n, n), wide)
    here = np.arange(n)
    for p in itertools.permutations(range(k + 1)):
        terms: list[Any] = [t, [..., *range(k + 1)]]
        for l in range(k):
            m = ms[l]
            terms += [m, [..., l, p[l]]]
        if p[k] == k:
            part = np.einsum(*terms, [..., k])
            total[..., here, here] += _sign(p) * part
        else:
            total += _sign(p) * np.einsum(*terms, [..., k, p[k]])
    phase = np.linalg.det(u) * np.linalg.det(vh)
    total = phase[..., None, None] * (np.conj(u) @ total @ np.conj(vh))
    return np.where(finite, total, np.nan).astype(d, copy=False)


@functools.cache
def cofactor_op(k: int) -> Op:
    """The op ``C_k``."""
    p = op(f"cofactors_{k}", core=",".join(["(n,n)"] * (k + 1)) + "->(n,n)")(_cofactors)
    conj = lambda x: x.conj() if is_complex(x) else x

    @p.jvp(sparse=True)
    def _(t: Any, y: Any, a: Any, *es: Any) -> Any:
        total = None if t[0] is None else cofactor_op(k + 1).bind(a, *es, t[0])
        for i in range(k):
            if t[i + 1] is not None:
                part = p.bind(a, *es[:i], t[i + 1], *es[i + 1 :])
                total = part if total is None else total + part
        return total

    @p.vjp
    def _(g: Any, y: Any, a: Any, *es: Any) -> Any:
        h = conj(g)
        swap = lambda i: lambda: conj(p.bind(a, *es[:i], h, *es[i + 1 :]))
        return (lambda: conj(cofactor_op(k + 1).bind(a, *es, h)), *[swap(i) for i in range(k)])

    return p


@op("det", core="(n,n)->()")
def det_p(a: Any) -> Any:
    """The determinant."""
    return np.asarray(np.linalg.det(a)).astype(a.dtype, copy=False)


@det_p.jvp
def _(t: Any, y: Any, a: Any) -> Any:
    return (cofactor_op(0).bind(a) * t[0]).sum((-2, -1))


@det_p.vjp
def _(g: Any, y: Any, a: Any) -> Any:
    c = cofactor_op(0).bind(a)
    return (g.unsqueeze(-1).unsqueeze(-1) * (c.conj() if is_complex(c) else c),)


@public("linalg.det det", methods="det")
@straight
def det(A: Tensor) -> Tensor:
    """The determinant; its derivatives are polynomials in A, for singular matrices as for others."""
    square("linalg.det", A)
    return det_p(A)


# -- logarithms ---------------------------------------------------------------------------------------------------------


@op("slogdet", core="(n,n)->(),()")
def slogdet_p(a: Any) -> Any:
    """Sign (or phase) and logarithm of the modulus of the determinant."""
    s, m = np.linalg.slogdet(a)
    return np.asarray(s).astype(a.dtype, copy=False), np.asarray(m)


# d log det = tr(A^-1 dA): its real part belongs to the modulus, its imaginary part turns the phase.


@slogdet_p.jvp
def _(t: Any, y: Any, a: Any) -> Any:
    z = diag_of(mm(inv_p.bind(a)[0], t[0])).sum(-1)
    return (y[0] * (z.imag * 1j), z.real) if is_complex(z) else (None, z)


@slogdet_p.vjp(sparse=True)
def _(g: Any, y: Any, a: Any) -> Any:
    gs, gm = g
    z = gm
    if is_complex(a) and gs is not None:
        # The sign's modulus is fixed: only the part of its cotangent across it counts.
        across = (gs * y[0].conj()).imag * 1j
        z = across if z is None else z + across
    if z is None:
        return (None,)
    return (adjoint(inv_p.bind(a)[0]) * z.unsqueeze(-1).unsqueeze(-1),)


@public("linalg.slogdet slogdet", methods="slogdet")
@straight
def slogdet(A: Tensor) -> Slogdet:
    """``sign, logabsdet`` with ``det A = sign * exp(logabsdet)``, without overflow; sign is a phase for complex A."""
    square("linalg.slogdet", A)
    return Slogdet(*slogdet_p(A))


@public("logdet", methods="logdet", out=False)
def logdet(A: Tensor) -> Tensor:
    """``log(det A)``: NaN for a negative determinant, -inf for a singular matrix."""
    square("logdet", A)
    sign, m = slogdet_p(A)
    return m + sign.log() if is_complex(A) else where(sign == -1, float("nan"), m)


# -- samples ------------------------------------------------------------------------------------------------------------

sample("linalg.det", S(2, 3, 3))
sample("linalg.det", S(1, 1))
sample("linalg.det", Given([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]], grad=True))
sample("linalg.det", Given([[1.0, 2, 3], [2, 4, 6], [3, 6, 9]], grad=True))
sample("linalg.det", Given(np.zeros((2, 2)), grad=True))
sample("linalg.det", Given(np.zeros((3, 3)), grad=True))
# Third and fourth derivatives come from the ops themselves.
sample("linalg.det", Given(np.diag([1.0, 0, 0, 2]), grad=True), S(4, 4), f=lambda a, e: cofactor_op(1)(a, e), cx=True)
sample("linalg.slogdet", S(2, 3, 3))
sample("logdet", S(3, 3, spd=True))
