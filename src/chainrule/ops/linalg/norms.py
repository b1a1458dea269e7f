"""Norms of vectors and of matrices.

The derivative of a norm is taken from one function, `_slope`: 0 at the zero vector, shared by ties for infinite orders.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import kernels
from ...core import dtypes as dt
from ...core.declare import op
from ...core.dispatch import innermost, look, recorder_of
from ...core.errors import Unfit
from ...core.registry import PUBLIC, public
from ...core.samples import Given, S, sample
from ...core.shapes import sizes_of, wrap_dim
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.parts import abs, real, sgn
from ..elementwise.power import pow_p
from ..elementwise.publish import zeros_like
from ..elementwise.select import where
from ..reduce.adding import ABS, LARGE, SQUARE, folded, shape_of, total
from ..reduce.reductions import axes, spread, sum, sum_p, wide, widen

INF = math.inf

# -- vectors ----------------------------------------------------------------------------------------------------------


def _power_sum(a: Any, p: float, dim: Any) -> Any:
    """``sum |a|**p`` of real numbers, in double precision: squares of narrower numbers stay in its range."""
    if p in (1, 2):
        return total(a, dim, True, term=SQUARE if p == 2 else ABS, wide=True)
    return total(np.power(np.abs(a), p, dtype=np.float64), dim, True)


def _root(s: Any, p: float) -> Any:
    return np.sqrt(s) if p == 2 else s if p == 1 else np.power(s, 1 / p)


def _rescaled(a: Any, y: Any, s: Any, p: float, dim: Any) -> Any:
    """The norm `y` again, from entries divided by the largest (or smallest), where the sum `s` over- or underflowed."""
    info = np.finfo(s.dtype)
    if np.all(np.isfinite(s) & (s > info.tiny / info.eps)):
        return y
    a = np.abs(a)
    m = (np.maximum if p > 0 else np.minimum).reduce(a, axis=dim, keepdims=True)
    ok = (m > 0) & np.isfinite(m)
    m = np.where(ok, m, 1)
    return np.where(ok, m * _root(_power_sum(a / m, p, dim), p), y).astype(y.dtype, copy=False)


def _folded(xs: list[Any], kw: dict[str, Any]) -> Any:
    """The compiled loop for small arrays of narrow floats."""
    p, x, dim, keepdim = kw["ord"], xs[0], kw["dim"], kw["keepdim"]
    if p in (1, 2):
        return folded(kernels.folds.norm_2 if p == 2 else kernels.folds.norm_1, x, dim, keepdim)
    if p == INF:
        return folded(kernels.folds.greatest, x, dim, keepdim)
    return None if p <= 0 or math.isinf(p) or p != p else folded(kernels.folds.norm_p, x, dim, keepdim, float(p))


@op("vector_norm", sizes="old")
def vector_norm_p(x: Any, *, ord: float, dim: tuple[int, ...], keepdim: bool, old: tuple[int, ...]) -> Any:
    """``(sum |x|**p)**(1/p)`` over `dim`; order 0 counts the non-zeros, the infinite orders take the extremes of |x|."""
    if (go := _folded([x], {"ord": ord, "dim": dim, "keepdim": keepdim})) is not None:
        return go(x)
    d = np.finfo(x.dtype).dtype if x.dtype.kind == "c" else x.dtype
    a = np.abs(x) if x.dtype.kind == "c" else widen(x)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        if ord == 0:
            y = np.add.reduce(a != 0, axis=dim, keepdims=True)
        elif math.isinf(ord):
            y = (np.maximum if ord > 0 else np.minimum).reduce(np.abs(a), axis=dim, keepdims=True)
        else:
            s = _power_sum(a, ord, dim)
            y = _rescaled(a, _root(s, ord), s, ord, dim) if a.size else _root(s, ord)
        return np.asarray(y).astype(d, copy=False).reshape(shape_of(x.shape, dim, keepdim))


def _quickly(xs: list[Any], kw: dict[str, Any]) -> Any:
    """One call of compiled code: of larger arrays of float32, of which no square is out of the range of float64."""
    x, p = xs[0], kw["ord"]
    if (go := _folded(xs, kw)) is not None or p not in (1, 2) or x.size < LARGE or x.dtype != np.float32:
        return go
    sums = kernels.sums.at(x, kw["dim"], kw["keepdim"], SQUARE if p == 2 else ABS, True)
    if sums is None:
        return None

    def quick(x: Any) -> Any:
        s = sums(x)
        return vector_norm_p.body(x, **kw) if s is None else (np.sqrt(s, s) if p == 2 else s).astype(np.float32)

    return quick


vector_norm_p.special = _quickly


def _slope(x: Any, y: Any, p: float, dim: Any, keepdim: bool, old: Any) -> Any:
    """What a norm changes by with each entry of `x`, as a vector of the direction of `x`."""
    if p == 1:
        return sgn.bind(x)
    top = spread(y, old, dim, keepdim)
    if math.isinf(p):
        a = abs.bind(x)
        hit = ((a == top) | ((a != a) & (top != top))).to(top.dtype)
        return sgn.bind(x) * (hit / sum_p(hit, dim=dim, keepdim=True, old=old))
    dead = top == 0
    u = x / where(dead, 1, top)  # entries relative to the norm: their powers neither over- nor underflow
    if p > 0 and p % 2 == 0:
        # A polynomial, with derivatives of every order at 0.
        return where(dead, 0, u if p == 2 else u * pow_p.bind(real(u * u.conj()), int(p) // 2 - 1))
    off = dead | (x == 0)
    u = where(off, 1, u)
    return where(off, 0, sgn.bind(u) * pow_p.bind(abs.bind(u), p - 1))


@vector_norm_p.jvp
def _(t: Any, y: Any, x: Any, *, ord: float, dim: Any, keepdim: bool, old: Any) -> Any:
    if ord == 0:
        return zeros_like(y)
    t, v = wide(t[0]), wide(y)  # 16-bit floats: rounded once
    part = real(t * _slope(wide(x), v, ord, dim, keepdim, old).conj())
    return sum_p(part, dim=dim, keepdim=keepdim, old=old).to(y.dtype)


@vector_norm_p.vjp
def _(g: Any, y: Any, x: Any, *, ord: float, dim: Any, keepdim: bool, old: Any) -> Any:
    if ord == 0:
        return (None,)
    slope = _slope(wide(x), wide(y), ord, dim, keepdim, old)
    return ((spread(wide(g), old, dim, keepdim) * slope).to(x.dtype),)


def _converted(name: str, x: Any, dtype: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: expected a tensor, got {type(x).__name__}")
    if x.dtype.category < dt.FLOAT:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype}")
    if dtype is None:
        return x
    d = dt.as_dtype(dtype)
    if d.category < dt.FLOAT:
        raise RuntimeError(f"{name}: dtype should be floating point or complex. Got {d}")
    if (d.category == dt.COMPLEX) != (x.dtype.category == dt.COMPLEX):
        kind = "complex" if x.dtype.category == dt.COMPLEX else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {d}")
    if dt.promote_types(x.dtype, d) is not d:
        raise RuntimeError(
            f"{name}: the dtype of the input ({x.dtype}) should be convertible without narrowing to the specified dtype ({d})"
        )
    return x.to(d)


@public("linalg.vector_norm")
@straight
def vector_norm(x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """``(sum |x|**ord)**(1/ord)`` over `dim`, one, several or (None) all."""
    if isinstance(ord, complex):
        raise RuntimeError(f"linalg.vector_norm: Expected a non-complex scalar as the order of norm, got {ord}")
    if isinstance(ord, str) or not isinstance(ord, int | float):
        raise TypeError(f"linalg.vector_norm: argument 'ord' must be a number, got {ord!r}")
    v = _converted("linalg.vector_norm", x, dtype)
    s = sizes_of(v)
    dims = axes(dim, len(s))
    if ord < 0 or ord == INF:
        for d in dims:
            if s[d] == 0:
                raise RuntimeError(
                    f"linalg.vector_norm cannot compute the {ord} norm of x with shape {list(s)} over dim {d + len(s)}: "
                    f"this dimension is empty and the operation does not have an identity"
                )
    return vector_norm_p(v, ord=float(ord), dim=dims, keepdim=keepdim, old=s)


# -- matrices ---------------------------------------------------------------------------------------------------------


def _recorded(zero: Tensor) -> bool:
    """Whether jit records: it cannot know which matrices will be zero, where the nuclear norm has a kink, and looks at every call."""

    def check(v: Any) -> None:
        if np.any(v):
            raise Unfit("jit: the nuclear norm of a matrix of zeros has a kink: call this one without jit")

    if recorder_of(zero) is None:
        return False
    look(zero, check)
    return True


def _singular_values(m: Tensor) -> Tensor:
    svdvals = PUBLIC.get("linalg.svdvals")
    if svdvals is None:
        raise RuntimeError("linalg.matrix_norm: orders 2, -2 and 'nuc' need chainrule.linalg.svdvals, which is missing")
    return svdvals(m)


def _largest(s: Tensor, dim: int, keepdim: bool) -> Tensor:
    """The maximum of values that are not negative; 0 of none."""
    return s.amax(dim, keepdim) if s.shape[dim] else s.sum(dim, keepdim)


def _matrix_dims(name: str, x: Tensor, dim: Any) -> tuple[int, int]:
    if isinstance(dim, int) or len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {dim}")
    if x.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions. Got shape {list(x.shape)}")
    d0, d1 = (wrap_dim(d, x.ndim) for d in dim)
    if d0 == d1:
        raise RuntimeError(f"{name}: dims must be different. Got {tuple(dim)}")
    return d0, d1


@public("linalg.matrix_norm")
@straight
def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """A norm of the matrices in the two dims `dim`: 'fro', 'nuc', or of order inf, -inf, 1, -1, 2, -2."""
    name = "linalg.matrix_norm"
    x = _converted(name, A, dtype)
    d0, d1 = _matrix_dims(name, x, dim)
    if ord == "fro":
        return vector_norm(x, 2, (d0, d1), keepdim)
    if ord == "nuc" or (not isinstance(ord, str) and ord in (2, -2)):
        m = x.movedim((d0, d1), (-2, -1))
        zero = (m == 0).all(-1).all(-1)
        kink = ord == "nuc" and bool(m.numel() and not _recorded(zero) and innermost(zero).any())
        if kink:
            # Of the subgradients at 0 the one that U V^H gives, as a linear function: its derivatives of higher order are 0.
            r, c = m.shape[-2:]
            one = np.eye(r, c, dtype=x.dtype.np)
            there = sum(real(m * Tensor(one)), (-2, -1))
            m = where(zero.reshape(*zero.shape, 1, 1), Tensor(one * np.arange(1, c + 1, dtype=one.dtype)), m)
        s = _singular_values(m)
        y = sum(s, -1) if ord == "nuc" else _largest(s, -1, False) if ord > 0 else s.amin(-1)
        if kink:
            y = where(zero, there, y)
        shape = tuple(1 if i - x.ndim in (d0, d1) else n for i, n in enumerate(x.shape))
        return y.reshape(shape) if keepdim else y
    if isinstance(ord, complex):
        raise RuntimeError(f"{name}: Expected a non-complex scalar as the order of norm, got {ord}")
    if isinstance(ord, str) or ord not in (1, -1, INF, -INF):
        raise RuntimeError(f"{name}: Order {ord} not supported; use 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2")
    inner, outer = (d0, d1) if ord in (1, -1) else (d1, d0)
    s = vector_norm(x, 1, inner, True)
    y = _largest(s, outer, True) if ord > 0 else s.amin(outer, True)
    return y if keepdim else y.squeeze((d0, d1))


@public("linalg.norm")
def linalg_norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """A vector norm over one dim or all, a matrix norm over two; without `ord` the 2-norm of what `dim` selects."""
    x = _converted("linalg.norm", A, dtype)
    if ord is None:
        return vector_norm(x, 2, dim, keepdim)
    if dim is None:
        if x.ndim not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {x.ndim}D."
            )
        dims = tuple(range(x.ndim))
    else:
        dims = (dim,) if isinstance(dim, int) else tuple(dim)
        if len(dims) not in (1, 2):
            raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if isinstance(ord, str) or len(dims) == 2:
        if len(dims) == 2 and len({wrap_dim(d, x.ndim) for d in dims}) == 1:
            raise RuntimeError(f"linalg.norm: dim {dims[0]} appears multiple times in the list of dims")
        return matrix_norm(x, ord, dims, keepdim)
    return vector_norm(x, ord, dims, keepdim)


@public("norm", methods="norm")
@straight
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The vector norm of order `p` over `dim` or all; 'fro' is the 2-norm, 'nuc' the sum of singular values."""
    if p is None or (p == "fro" and not isinstance(dim, str)):
        if p == "fro" and isinstance(dim, list | tuple) and len(dim) > 2:
            raise RuntimeError(f"norm: Expected at most 2 dims for p='fro', but got {list(dim)} instead.")
        return vector_norm(input, 2, dim, keepdim, dtype=dtype)
    if isinstance(p, str):
        if p != "nuc":
            raise RuntimeError(f"norm: Order {p} not supported; use a number, 'fro' or 'nuc'")
        return matrix_norm(input, "nuc", tuple(range(input.ndim)) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(input, p, dim, keepdim, dtype=dtype)


@public("frobenius_norm")
def frobenius_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The 2-norm over `dim` or all."""
    return vector_norm(input, 2, dim, keepdim)


@public("nuclear_norm")
def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of the singular values of the matrices in the two dims `dim`."""
    return matrix_norm(input, "nuc", dim, keepdim)


@public("norm_except_dim", out=False)
def norm_except_dim(v: Tensor, pow: float = 2, dim: int = 0) -> Tensor:
    """The norm of order `pow` of each slice of `dim`, its other dims kept as size 1; of the whole tensor for dim -1."""
    if dim == -1:
        return vector_norm(v, pow)
    d = wrap_dim(dim, v.ndim)
    others = tuple(i for i in range(-v.ndim, 0) if i != d)
    # A vector has slices of one element each.
    return vector_norm(v, pow, others, True) if others else vector_norm(v.unsqueeze(-1), pow, (-1,))


@public("renorm", methods="renorm", inplace="renorm_")
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """`input` with each slice of `dim` whose norm of order `p` exceeds `maxnorm` scaled down to it."""
    if isinstance(p, complex) or not p > 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported: p is {p}")
    if isinstance(maxnorm, complex) or not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    d = wrap_dim(dim, input.ndim)
    wide = dt.complex128 if input.dtype.category == dt.COMPLEX else dt.float64
    if input.dtype is not wide and input.dtype.category >= dt.FLOAT:
        # Rounded once: along the slice itself the gradient is what two terms leave of each other.
        return renorm(input.to(wide), p, dim, maxnorm).to(input.dtype)
    n = vector_norm(input, p, tuple(i for i in range(-input.ndim, 0) if i != d), True)
    # The small number is PyTorch's.
    return input * where(n > maxnorm, maxnorm / (n + 1e-7), 1.0)


# -- samples ------------------------------------------------------------------------------------------------------------

for _p in (0, 1, 2, 3, INF):
    sample("norm_except_dim", S(3, low=0.3), _p, cx=_p != 0)
for _p in (0, 0.5, 1, 1.5, 2, 2.5, 3, 4, INF, -1, -2.5, -INF):
    sample("linalg.vector_norm", S(2, 3, low=0.3), _p, cx=_p != 0)
    sample("linalg.vector_norm", S(2, 3), _p, 1, True, cx=_p != 0)
sample("linalg.vector_norm", Given([0.0, 1.0, -2.0], grad=True), 4)
sample("linalg.vector_norm", Given([1e200, 1e199], grad=True), f=lambda x: vector_norm(x) / 1e200)
sample("linalg.vector_norm", S(), 2, f=lambda x, p: vector_norm(x + 3, p, 0))
for _o in ("fro", 1, -1, INF, -INF):
    sample("linalg.matrix_norm", S(2, 3), _o)
    sample("linalg.matrix_norm", S(2, 3, 2), _o, (0, 2), True)
sample("linalg.norm", S(2, 3), dim=0)
sample("linalg.norm", S(2, 3), 3, 1)
sample("norm", S(2, 3))
sample("norm", S(2, 3), 3, (0, 1), True)
sample("norm_except_dim", S(2, 3, 2), 2, 1)
sample("norm_except_dim", S(2, 3), 3, -1)
sample("renorm", S(3, 4), 2, 0, 1.5)
sample("renorm", S(3, 4), 1.5, 1, 0.5)
