"""Functions of matrices that LAPACK computes one matrix at a time: square root, logarithm, Sylvester's equation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.declare import op
from ...core.samples import S, sample
from ...core.tensor import Tensor
from ..shape.slices import cat
from .matmul import matmul


def _each(f: Callable[..., Any], *xs: Any) -> Any:
    """`f` of every matrix of a stack, as LAPACK's drivers for one matrix have it."""
    lead = np.broadcast_shapes(*[x.shape[:-2] for x in xs])
    if not lead:
        return np.ascontiguousarray(f(*xs))
    xs = tuple([np.broadcast_to(x, lead + x.shape[-2:]) for x in xs])
    ys = [f(*[x[i] for x in xs]) for i in np.ndindex(*lead)]
    return np.stack(ys).reshape(lead + ys[0].shape) if ys else np.zeros(lead + xs[-1].shape[-2:], xs[-1].dtype)


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose."""
    return x.mT.conj() if x.dtype.is_complex else x.mT


@op("sylvester", core="(m,m),(n,n),(m,n)->(m,n)")
def sylvester_p(a: Any, b: Any, q: Any) -> Any:
    """The solution x of ``a x + x b = q``."""
    from scipy.linalg import solve_sylvester

    return _each(solve_sylvester, a, b, q)


@sylvester_p.jvp
def _(t: Any, y: Any, a: Any, b: Any, q: Any) -> Any:
    ta, tb, tq = t
    return sylvester_p(a, b, tq - matmul(ta, y) - matmul(y, tb))


@sylvester_p.vjp
def _(g: Any, y: Any, a: Any, b: Any, q: Any) -> Any:
    h = sylvester_p(adjoint(a), adjoint(b), g)
    return lambda: -matmul(h, adjoint(y)), lambda: -matmul(adjoint(y), h), h


def _through_blocks(f: Any, a: Tensor, e: Tensor) -> Tensor:
    """The derivative of a function of matrices: the upper right block of ``f([[a, e], [0, a]])``."""
    n = a.shape[-1]
    top, low = cat([a, e], -1), cat([a * 0, a], -1)
    return f(cat([top, low], -2)).narrow(-2, 0, n).narrow(-1, n, n)


@op("logm", core="(n,n)->(n,n)")
def logm_p(a: Any) -> Any:
    """The principal logarithm of a matrix."""
    from scipy.linalg import logm

    return _each(lambda m: _real_if_close(logm(m), m), a)


def _real_if_close(y: Any, a: Any) -> Any:
    return (
        y.real.astype(a.dtype)
        if a.dtype.kind == "f"
        and y.dtype.kind == "c"
        and not np.abs(y.imag).max(initial=0) > 1e-9 * (1 + np.abs(y.real).max(initial=0))
        else y
    )


logm_p.jvp([lambda t, y, a: _through_blocks(logm_p, a, t)])
logm_p.vjp([lambda g, y, a: _through_blocks(logm_p, adjoint(a), g)])


@op("sqrtm", core="(n,n)->(n,n)")
def sqrtm_p(a: Any) -> Any:
    """The principal square root of a matrix."""
    from scipy.linalg import sqrtm

    return _each(lambda m: _real_if_close(sqrtm(m), m), a)


sqrtm_p.jvp([lambda t, y, a: sylvester_p(y, y, t)])
sqrtm_p.vjp([lambda g, y, a: sylvester_p(adjoint(y), adjoint(y), g)])

sample("sylvester", S(3, 3, spd=True), S(2, 2, spd=True), S(3, 2), f=lambda a, b, q: sylvester_p(a, b, q))
sample("sylvester", S(2, 3, 3, spd=True), S(2, 2, spd=True), S(3, 2), f=lambda a, b, q: sylvester_p(a, b, q))
sample("logm", S(3, 3, spd=True), f=lambda a: logm_p(a))
sample("sqrtm", S(2, 3, 3, spd=True), f=lambda a: sqrtm_p(a))
