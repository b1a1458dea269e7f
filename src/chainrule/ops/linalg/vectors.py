"""Products with vectors, each one op: ``A x``, ``x A``, ``x · y`` and the outer product. They are each other's derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import LARGE, op
from ...core.dispatch import innermost
from ...core.shapes import sizes_of
from ...core.types import FLOAT_NUMS
from .long_sums import LONG, in_parts, is_long


def _plain(rank_a: int, rank_b: int, f: Any) -> Any:
    """`f` of two arrays of these ranks and of one float type; None of others."""

    def quick(a: Any, b: Any) -> Any:
        if a.ndim == rank_a and b.ndim == rank_b and a.dtype is b.dtype and a.dtype.num in FLOAT_NUMS:
            return f(a, b)
        return None

    return quick


def _wide(f: Any, a: Any, b: Any) -> Any:
    """16-bit floats computed in float32 and rounded once."""
    d = a.dtype
    return f(a.astype(np.float32), b.astype(np.float32)).astype(d) if d in dt.HALVES else f(a, b)


def _conj(x: Any) -> Any:
    return x.conj() if innermost(x).dtype.kind == "c" else x


def _summed(a: Any, g: Any, *xs: Any) -> bool:
    """Whether `a` is one matrix for all the leading axes of the others: then the sum over them is part of a product."""
    return len(sizes_of(a)) == 2 and all(len(sizes_of(x)) == len(sizes_of(g)) > 1 for x in xs)


def _sum_of_outer(u: Any, v: Any) -> Any:
    """The sum of ``outer(u, v)`` over all leading axes, as one product."""
    from .matmul import _rows, product

    return product(_rows(u).mT, _rows(v))


multiply, ndarray = np.multiply, np.ndarray


def _by_vector(a: Any, x: Any) -> Any:
    """``a x`` of one matrix and one vector."""
    return in_parts(a, x[:, None])[:, 0] if len(x) >= LONG and is_long(a, x[:, None]) else np.dot(a, x)


@op("matvec", core="(m,n),(n)->(m)", linear="each", quick=_plain(2, 1, _by_vector))
def matvec_p(a: Any, x: Any) -> Any:
    """``y_i = sum_j a_ij x_j`` over the last axes."""
    return _wide(lambda a, x: np.matmul(a, x[..., None])[..., 0], a, x)


matvec_p.vjp(
    [
        lambda g, y, a, x: _sum_of_outer(g, _conj(x)) if _summed(a, g, x) else outer_p.bind(g, _conj(x)),
        lambda g, y, a, x: vecmat_p.bind(g, _conj(a)),
    ]
)


def _small_matvec(n: Any, g: Any) -> Any:
    """Both cotangents of a small matrix times a vector, in arrays."""
    if g.ndim != 1 or len(g) >= LONG:
        return None
    (a, x), (pa, px) = n.args, n.parents
    ga = gx = None
    if px is not None:
        a = a._value
        if a.__class__ is not ndarray or a.ndim != 2 or a.dtype is not g.dtype:
            return None
        gx = g.dot(a)
    if pa is not None:
        x = x._value
        if x.__class__ is not ndarray or x.ndim != 1 or x.dtype is not g.dtype:
            return None
        ga = multiply.outer(g, x)
    return ga, gx


matvec_p.straight = matvec_p.pull_rules, _small_matvec


def _vector_by(x: Any, a: Any) -> Any:
    """``x a`` of one vector and one matrix."""
    return in_parts(x[None], a)[0] if len(x) >= LONG and is_long(x[None], a) else np.dot(x, a)


@op("vecmat", core="(n),(n,k)->(k)", linear="each", quick=_plain(1, 2, _vector_by))
def vecmat_p(x: Any, a: Any) -> Any:
    """``y_j = sum_i x_i a_ij`` over the last axes."""
    return _wide(lambda x, a: np.matmul(x[..., None, :], a)[..., 0, :], x, a)


vecmat_p.vjp(
    [
        lambda g, y, x, a: matvec_p.bind(_conj(a), g),
        lambda g, y, x, a: _sum_of_outer(_conj(x), g) if _summed(a, g, x) else outer_p.bind(_conj(x), g),
    ]
)


def _small_vecmat(n: Any, g: Any) -> Any:
    """Both cotangents of a vector times a small matrix, in arrays."""
    if g.ndim != 1 or len(g) >= LONG:
        return None
    (x, a), (px, pa) = n.args, n.parents
    ga = gx = None
    if px is not None:
        a = a._value
        if a.__class__ is not ndarray or a.ndim != 2 or a.dtype is not g.dtype:
            return None
        gx = a.dot(g)
    if pa is not None:
        x = x._value
        if x.__class__ is not ndarray or x.ndim != 1 or x.dtype is not g.dtype:
            return None
        ga = multiply.outer(x, g)
    return gx, ga


vecmat_p.straight = vecmat_p.pull_rules, _small_vecmat


def _outer(x: Any, y: Any) -> Any:
    """``x_i y_j`` of two vectors."""
    if x.size * y.size >= (mul := LARGE["mul"]).least and (z := mul(x[:, None], y)) is not None:
        return z
    return np.multiply.outer(x, y)


@op("outer", core="(m),(n)->(m,n)", linear="each", quick=_plain(1, 1, _outer))
def outer_p(x: Any, y: Any) -> Any:
    """``x_i y_j`` over the last axes."""
    return _wide(lambda x, y: x[..., :, None] * y[..., None, :], x, y)


outer_p.vjp([lambda g, z, x, y: matvec_p.bind(g, _conj(y)), lambda g, z, x, y: vecmat_p.bind(_conj(x), g)])


@op("dot", core="(n),(n)->()", linear="each", quick=_plain(1, 1, np.ndarray.dot))
def dot_p(x: Any, y: Any) -> Any:
    """``sum_i x_i y_i`` over the last axis."""
    return _wide(lambda x, y: np.matmul(x[..., None, :], y[..., :, None])[..., 0, 0], x, y)


def _dotted(xs: list[Any], kw: dict[str, Any]) -> Any:
    x, y = xs
    return (
        (lambda x, y: x.dot(y)) if x.ndim == y.ndim == 1 and x.dtype is y.dtype and x.dtype.num in FLOAT_NUMS else None
    )


dot_p.special = _dotted


def _scaled(g: Any, x: Any) -> Any:
    return (g.unsqueeze(-1) if len(sizes_of(g)) else g) * _conj(x)


dot_p.vjp([lambda g, z, x, y: _scaled(g, y), lambda g, z, x, y: _scaled(g, x)])
