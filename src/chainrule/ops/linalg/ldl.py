"""The LDL factorization of symmetric and Hermitian matrices that need not be definite.

``A[perm][:, perm] = L D L^T`` (``L^H`` with `hermitian`): L is unit lower triangular, D has blocks of one or two rows. LAPACK packs both into one
matrix, the columns of L in the order that the rows had when each was made. Of two rows of a block each is the *partner* of the other; the row of
a block of its own is its own partner.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import broadcast_shapes, constant
from ...core.tensor import Tensor
from ..elementwise.select import where
from ..index.gather import gather_p
from ..shape.slices import cat, diagonal
from ..shape.triangles import tril
from .common import diag_of, floating, identity, mm, raise_info, same_dtype, square, widened
from .lu import invert_p
from .triangular import trsm_p


class LDL(NamedTuple):
    """L and the blocks of D packed into one matrix, and the interchanges (LAPACK's)."""

    LD: Tensor
    pivots: Tensor


class LDLEx(NamedTuple):
    """As LDL, with the index (from 1) of the first zero block, or 0."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


# -- bodies -------------------------------------------------------------------------------------------------------------


@op("ldl_factor", core="(n,n)->(n,n),(n),()", integer_outputs=(1, 2))
def ldl_factor_p(a: Any, *, hermitian: bool) -> Any:
    """Bunch and Kaufman's factorization of the lower triangle, as LAPACK packs it, its interchanges and the first zero block (or 0)."""
    from scipy.linalg import get_lapack_funcs

    n = a.shape[-1]
    flat = a.reshape(int(np.prod(a.shape[:-2])), n, n)
    ld, piv, info = flat.copy(), np.zeros((len(flat), n), np.int32), np.zeros(len(flat), np.int32)
    if a.size:
        name = "hetrf" if hermitian and a.dtype.kind == "c" else "sytrf"
        factor, work = get_lapack_funcs((name, name + "_lwork"), dtype=a.dtype)
        lwork = int(work(n, lower=1)[0].real)
        for i, x in enumerate(flat):
            y, piv[i], info[i] = factor(x, lower=1, lwork=lwork)
            ld[i] = np.tril(y)
    shape = lambda v: v.reshape((*a.shape[:-2], *v.shape[1:]))
    return shape(ld), shape(piv), shape(np.maximum(info, 0))


@op("ldl_order", core="(n)->(n),(n),(n,n),(n,n),(n,n)", differentiable=False)
def ldl_order_p(piv: Any) -> Any:
    """From interchanges: the order of A's rows, each row's partner, the row at which each entry of L is packed, the way back, and where L is.

    What no factorization gives is refused: it would point anywhere.
    """
    n = piv.shape[-1]
    flat = piv.reshape(int(np.prod(piv.shape[:-1])), n)
    perm = np.broadcast_to(np.arange(n), flat.shape).copy()
    partner, rows = perm.copy(), np.broadcast_to(np.arange(n)[:, None], (len(flat), n, n)).copy()
    for i, p in enumerate(flat.tolist()):
        k = 0
        while k < n:
            pair, other = p[k] < 0, abs(p[k]) - 1
            last = k + pair
            if not last <= other < n or (pair and p[k] != p[last]):
                rule = "|pivot| >= 1" if other < 0 else "|pivot| <= LD.size(-2)" if other >= n else "others"
                raise RuntimeError(
                    f"linalg.ldl_solve: expected {rule}: pivots {p} are not those of a factorization of a {n} x {n} matrix; pass what ldl_factor gave"
                )
            swap, swapped = [last, other], [other, last]
            perm[i, swap] = perm[i, swapped]
            rows[i, swap, :k] = rows[i, swapped, :k]
            partner[i, k], partner[i, last] = last, k
            k = last + 1
    shape = lambda v: v.reshape((*piv.shape[:-1], *v.shape[1:]))
    inside = np.tri(n, k=-1, dtype=bool) & (partner[:, None, :] != np.arange(n)[:, None])
    return shape(perm), shape(partner), shape(rows), shape(np.argsort(rows, axis=-2)), shape(inside)


# -- parts --------------------------------------------------------------------------------------------------------------


def _take(x: Tensor, i: Tensor) -> Tensor:
    """``x[i[a, b], b]`` of matrices, batches broadcast."""
    lead = broadcast_shapes(x.shape[:-2], i.shape[:-2])
    x, i = x.expand(*lead, *x.shape[-2:]), i.expand(*lead, *i.shape[-2:])
    return gather_p.bind(x, i, dim=-2, old=tuple(x.shape))


def _rows(x: Tensor, order: Tensor) -> Tensor:
    """The rows of x in an order."""
    return _take(x, order.unsqueeze(-1).expand(*order.shape, x.shape[-1]))


def _flip(x: Tensor, hermitian: bool) -> Tensor:
    """``x^H`` for Hermitian, ``x^T`` for symmetric matrices."""
    return x.mT.conj() if hermitian and x.dtype.category == dt.COMPLEX else x.mT


class _Blocks:
    """L and D of a packed factorization: systems with either, and products with L."""

    def __init__(self, ld: Tensor, piv: Tensor, hermitian: bool) -> None:
        self.perm, self.partner, rows, self.packed, self.inside = ldl_order_p.bind(piv)
        self.hermitian = hermitian
        self.low = _take(where(self.inside, ld, 0), rows)
        d, beside = diag_of(ld), diagonal(ld, -1, -2, -1)
        mirrored = beside.conj() if hermitian and ld.dtype.category == dt.COMPLEX else beside
        here = constant(np.arange(ld.shape[-1]), self.partner)
        up, down = self.partner > here, self.partner < here
        pad = d[..., :1] * 0
        # What stands beside the diagonal in each row of a block of two; ones elsewhere, as it is divided by.
        beside = where(down, cat((pad, beside), -1), where(up, cat((mirrored, pad), -1), 1))
        self.two = (up | down).unsqueeze(-1)
        self.d, self.beside = d.unsqueeze(-1), beside.unsqueeze(-1)

    def solve_d(self, b: Tensor) -> Tensor:
        """``D^-1 b``. Blocks of two are scaled by what stands beside their diagonal, which is larger than that."""
        other = lambda x: _rows(x, self.partner)
        d, e = self.d, self.beside
        rd, re, rb = other(d), other(e), other(b)
        det = where(self.two, (d / e) * (rd / re) - 1, 1)
        return where(self.two, ((rd / re) * (b / e) - rb / re) / det, b / where(self.two, 1, d))

    def solve_l(self, b: Tensor) -> Tensor:
        """``L^-1 b``."""
        return trsm_p.bind(self.low, b, upper=False, unit=True)

    def solve_upper(self, b: Tensor) -> Tensor:
        """``L^-T b``, or ``L^-H b``."""
        return trsm_p.bind(_flip(self.low, self.hermitian), b, upper=True, unit=True)


# -- rules --------------------------------------------------------------------------------------------------------------

# With M = L^-1 dA L^-T: dD are M's blocks, and dL = L K where K D is what lies below them. The interchanges stay.


@ldl_factor_p.jvp
def _(t: Any, y: Any, a: Any, *, hermitian: bool) -> Any:
    ld, piv, _ = y
    b = _Blocks(ld, piv, hermitian)
    below = tril(t[0], -1)
    diag = diag_of(t[0])
    if hermitian and diag.dtype.category == dt.COMPLEX:
        diag = diag.real.to(diag.dtype)
    d = below + _flip(below, hermitian) + diag.unsqueeze(-1) * identity(ld.shape[-1], ld)
    d = _rows(_rows(d, b.perm).mT, b.perm).mT
    m = _flip(b.solve_l(_flip(b.solve_l(d), hermitian)), hermitian)
    k = _flip(b.solve_d(_flip(where(b.inside, m, 0), hermitian)), hermitian)
    return where(b.inside, _take(k + mm(b.low, k), b.packed), tril(m)), None, None


# -- public -------------------------------------------------------------------------------------------------------------


@public("linalg.ldl_factor_ex")
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> LDLEx:
    """As ldl_factor, with the first zero block of each matrix (0: none) instead of an error."""
    square("linalg.ldl_factor_ex", A)
    y = LDLEx(*ldl_factor_p(A, hermitian=bool(hermitian)))
    if check_errors:
        raise_info("linalg.ldl_factor_ex", y.info, "The block D[{}] is exactly zero: the matrix is singular.")
    return y


@public("linalg.ldl_factor")
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> LDL:
    """``A = L D L^T`` (``L D L^H`` with `hermitian`) from the lower triangle, packed, with the interchanges."""
    square("linalg.ldl_factor", A)
    ld, piv, info = ldl_factor_p(A, hermitian=bool(hermitian))
    raise_info("linalg.ldl_factor", info, "The block D[{}] is exactly zero: the matrix is singular.")
    return LDL(ld, piv)


@public("linalg.ldl_solve")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """``X`` with ``A X = B`` from A's LDL factorization."""
    name = "linalg.ldl_solve"
    square(name, LD, "LD")
    floating(name, B, "B")
    same_dtype(name, LD, B, "LD and B")
    if B.shape[-2] != LD.shape[-1]:
        raise RuntimeError(f"{name}: Incompatible shapes of LD {list(LD.shape)} and B {list(B.shape)}")
    if pivots.dtype.category > dt.INT:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {pivots.dtype}")
    if tuple(pivots.shape) != tuple(LD.shape[:-1]):
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots {list(pivots.shape)} and LD {list(LD.shape)}"
        )
    broadcast_shapes(LD.shape[:-2], B.shape[:-2], what=f"{name}: batch dimensions of LD and B")
    (ld, b), narrow = widened(LD, B)
    f = _Blocks(ld, pivots, bool(hermitian))
    x = f.solve_upper(f.solve_d(f.solve_l(_rows(b, f.perm))))
    return narrow(_rows(x, invert_p(f.perm)))


# -- samples ------------------------------------------------------------------------------------------------------------

# The lower triangle alone is read. A small diagonal asks for blocks of two rows, and for interchanges.
_SMALL = 0.1 * np.eye(5) + np.ones((5, 5)) - np.eye(5)

for _h in (False, True):
    sample("linalg.ldl_factor", S(5, 5), f=lambda a, h=_h: ldl_factor(a, hermitian=h).LD)
    sample("linalg.ldl_factor", S(2, 5, 5), f=lambda a, h=_h: ldl_factor(a * Tensor(_SMALL), hermitian=h).LD)
    sample(
        "linalg.ldl_solve",
        S(4, 4),
        S(2, 4, 2),
        f=lambda a, b, h=_h: ldl_solve(*ldl_factor(a, hermitian=h), b, hermitian=h),
    )
sample("linalg.ldl_factor_ex", S(1, 1), f=lambda a: ldl_factor_ex(a).LD)
sample("linalg.ldl_factor_ex", S(2, 0, 0), f=lambda a: ldl_factor_ex(a).LD)
