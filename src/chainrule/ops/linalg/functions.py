"""Functions of matrices (exponential, power, condition number) and small products of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import broadcast_shapes, constant, wrap_dim
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.select import where
from ..shape.slices import cat, diagonal
from .common import adjoint, floating, identity, mm, square, widened
from .inverse import inv, inv_p
from .norms import linalg_norm
from .svd import svdvals

# -- exponential --------------------------------------------------------------------------------------------------------


@op("matrix_exp", core="(n,n)->(n,n)")
def matrix_exp_p(a: Any) -> Any:
    """The exponential, by scaling and squaring, in 64 bits: the powers that decide about the scaling overflow long before it does."""
    if a.size == 0:
        return a.copy()
    from scipy.linalg import expm

    with np.errstate(over="ignore"):
        return expm(a.astype(np.result_type(a.dtype, np.float64), copy=False)).astype(a.dtype, copy=False)


def _directional(a: Tensor, e: Tensor) -> Tensor:
    """The derivative at a in the direction e: the corner of ``exp([[a, e], [0, a]])``."""
    lead = broadcast_shapes(a.shape[:-2], e.shape[:-2])
    n = a.shape[-1]
    a, e = a.expand(*lead, n, n), e.expand(*lead, n, n)
    block = cat((cat((a, e), -1), cat((a * 0, a), -1)), -2)
    return matrix_exp_p.bind(block)[..., :n, n:]


matrix_exp_p.jvp([lambda t, y, a: _directional(a, t)])
matrix_exp_p.vjp([lambda g, y, a: _directional(adjoint(a), g)])


@public("linalg.matrix_exp matrix_exp", methods="matrix_exp", out=False)
def matrix_exp(A: Tensor) -> Tensor:
    """``I + A + A A / 2 + ...``."""
    if isinstance(A, Tensor) and A.dtype.np in dt.HALVES:  # in 32 bits, and rounded once
        return matrix_exp(A.to(dt.float32)).to(A.dtype)
    square("linalg.matrix_exp", A)
    return matrix_exp_p(A)


# -- powers -------------------------------------------------------------------------------------------------------------


@public("linalg.matrix_power matrix_power", methods="matrix_power")
@straight
def matrix_power(A: Tensor, n: int) -> Tensor:
    """``A A ... A``, n factors, by squaring; of the inverse for a negative n."""
    if not isinstance(A, Tensor) or A.ndim < 2:
        raise RuntimeError(
            f"linalg.matrix_power: The input tensor A must have at least 2 dimensions, got {list(getattr(A, 'shape', ()))}"
        )
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"linalg.matrix_power: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    if not isinstance(n, int):
        raise TypeError(f"linalg.matrix_power: n must be an int, got {type(n).__name__}")
    if n == 0:
        return identity(A.shape[-1], A).expand(*A.shape).clone()
    base = inv(A) if n < 0 else A
    n = abs(n)
    out: Any = None
    while n:
        if n & 1:
            out = base if out is None else mm(out, base)
        n >>= 1
        if n:
            base = mm(base, base)
    return out.clone() if out is A else out


# -- condition ----------------------------------------------------------------------------------------------------------


@public("linalg.cond")
def cond(A: Tensor, p: Any = None) -> Tensor:
    """``|A| |A^-1|`` in a norm: 'fro', 'nuc', inf, -inf, 1, -1, 2, -2 (None: 2); infinite for a singular matrix."""
    name = "linalg.cond"
    floating(name, A)
    if p is None or (not isinstance(p, str) and p in (2, -2)):
        s = svdvals(A)
        if s.shape[-1] == 0:
            return s.sum(-1)
        big, small = s[..., 0], s[..., -1]
        return small / big if p == -2 else big / small
    if not (p in ("fro", "nuc") if isinstance(p, str) else p in (1, -1, float("inf"), -float("inf"))):
        raise RuntimeError(f"{name} got an invalid norm type: {p!r}")
    square(name, A)
    if A.shape[-1] == 0:
        return (A.real if A.dtype.is_complex else A).sum((-2, -1))
    y, info = inv_p(A)
    bad = info > 0
    safe = where(bad.unsqueeze(-1).unsqueeze(-1), 1, y)
    r = linalg_norm(A, p, (-2, -1)) * linalg_norm(safe, p, (-2, -1))
    return where(bad, float("inf"), r)


# -- vectors ------------------------------------------------------------------------------------------------------------


@public("linalg.vecdot")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """``sum(conj(x) * y)`` along `dim`."""
    name = "linalg.vecdot"
    for v, arg in ((x, "x"), (y, "y")):
        if v.dtype.category < dt.FLOAT:
            raise RuntimeError(f"{name}: Expected a floating point or complex tensor as {arg}. Got {v.dtype}")
    broadcast_shapes(x.shape, y.shape, what=name)
    d = wrap_dim(dim, max(x.ndim, y.ndim))
    return ((x.conj() if x.dtype.is_complex else x) * y).sum(d)


def _cross(name: str, a: Tensor, b: Tensor, dim: int) -> Tensor:
    if a.ndim != b.ndim:
        raise RuntimeError(
            f"{name}: inputs must have the same number of dimensions, got {list(a.shape)} and {list(b.shape)}"
        )
    d = wrap_dim(dim, a.ndim)
    if a.ndim == 0 or a.shape[d] != 3 or b.shape[d] != 3:
        raise RuntimeError(
            f"{name}: inputs dimension {dim} must have length 3. Got {list(a.shape)} and {list(b.shape)}"
        )
    broadcast_shapes(a.shape, b.shape, what=name)
    # (a x b)[i] = a[i+1] b[i+2] - a[i+2] b[i+1], indices modulo 3.
    (a, b), narrow = widened(a, b) if a.dtype is b.dtype else ([a, b], lambda y: y)
    return narrow((a.roll(-1, d) * b.roll(-2, d)) - (a.roll(-2, d) * b.roll(-1, d)))


@public("linalg.cross")
@straight
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of length 3 along `dim`."""
    return _cross("linalg.cross", input, other, dim)


@public("cross", methods="cross")
@straight
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product along `dim`; without it, along the first dim of size 3."""
    if dim is None:
        if input.ndim != other.ndim:
            raise RuntimeError(f"cross: inconsistent tensors dimensions input: {input.ndim} other: {other.ndim}")
        shape = broadcast_shapes(input.shape, other.shape, what="cross")
        dim = next((i for i, n in enumerate(shape) if n == 3), None)
        if dim is None:
            raise RuntimeError(
                f"cross: no dimension of size 3 in input, got {list(input.shape)} and {list(other.shape)}"
            )
    return _cross("cross", input, other, dim)


@public("linalg.diagonal", out=False)
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A diagonal of the matrices in two dims, as a view."""
    return diagonal(A, offset, dim1, dim2)


@public("linalg.vander", out=False)
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """``V[..., i, j] = x[..., i] ** j`` for j < N (default: the length of x)."""
    if x.ndim == 0:
        x = x.unsqueeze(0)
    n = x.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError(f"linalg.vander: N must be greater than 1, got {n}")
    if x.dtype.category <= dt.INT:
        x = x.to(dt.int64)
    powers = x.unsqueeze(-1).expand(*x.shape, n - 1).cumprod(-1)
    ones = constant(np.ones((1,)), x).expand(*x.shape, 1)
    return cat((ones, powers), -1)


# -- samples ------------------------------------------------------------------------------------------------------------

sample("linalg.matrix_exp", S(2, 3, 3, low=-1, high=1))
sample("linalg.matrix_exp", Given([[0.0, 1.0], [0.0, 0.0]], grad=True))
sample("linalg.matrix_power", S(2, 3, 3), 5)
sample("linalg.matrix_power", S(3, 3, spd=True), -2)
sample("linalg.matrix_power", S(3, 3), 0)
sample("linalg.cond", S(3, 3, spd=True))
sample("linalg.cond", S(3, 3, spd=True), "fro")
sample("linalg.vecdot", S(2, 3), S(2, 3))
sample("linalg.cross", S(2, 3), S(1, 3))
sample("linalg.vander", Given([0.0, 1.5, -2.0], grad=True), N=4)
