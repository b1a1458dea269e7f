"""Reductions: sums, products, extrema, moments; softmax and its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.op import FLOAT_NUMS, op
from ..core.registry import public
from ..core.shapes import sizes_of, wrap_dim, wrap_dims
from ..core.samples import Given, S, sample
from ..core.tensor import Tensor
from .pointwise import abs, exp, log, where, zeros_like
from .shape import reshape_p


def kept(shape: tuple[int, ...], dim: tuple[int, ...]) -> tuple[int, ...]:
    """`shape` with the dims in `dim` set to 1."""
    n = len(shape)
    return tuple([1 if i - n in dim else s for i, s in enumerate(shape)])


def spread(y: Tensor, old: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """A reduced tensor with its dims back, as size 1."""
    return y if keepdim else reshape_p.bind(y, shape=kept(old, dim), old=tuple(s for i, s in enumerate(old) if i - len(old) not in dim))


def _accumulate(fn: Any, x: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
    """A NumPy reduction that gives int64 for small integers and accumulates 16-bit floats in float32."""
    d = x.dtype
    if d.num in FLOAT_NUMS:
        return fn(x, dim, None, None, keepdim)
    if d in dt.HALVES:
        return fn(x, axis=dim, keepdims=keepdim, dtype=np.float32).astype(d)
    return fn(x, axis=dim, keepdims=keepdim, dtype=np.int64)


def to_dtype(x: Tensor, dtype: Any) -> Tensor:
    """`x` converted where a ``dtype=`` was given."""
    return x if dtype is None else x.to(dt.as_dtype(dtype))


ALL_DIMS = [tuple(range(-n, 0)) for n in range(8)]

# -- sum, mean --------------------------------------------------------------------------------------------------------


@op("sum")
def sum_p(x: Any, *, dim: tuple[int, ...], keepdim: bool, old: tuple[int, ...]) -> Any:
    """The sum over `dim`."""
    return _accumulate(np.add.reduce, x, dim, keepdim)


sum_p.jvp([lambda t, y, x, *, dim, keepdim, old: sum_p(t, dim=dim, keepdim=keepdim, old=old)])
sum_p.vjp([lambda g, y, x, *, dim, keepdim, old: unsum_p.bind(g, dim=dim, keepdim=keepdim, old=old)])


@op("unsum")
def unsum_p(g: Any, *, dim: tuple[int, ...], keepdim: bool, old: tuple[int, ...]) -> Any:
    """`g` repeated along the summed dims of sizes `old`: the transpose of the sum."""
    if g.ndim == 0:
        return np.ndarray(old, g.dtype, g, 0, (0,) * len(old))
    lead = g.shape[: g.ndim - (len(old) if keepdim else len(old) - len(dim))]
    g = g if keepdim else g.reshape(lead + kept(old, dim))
    if type(g) is np.ndarray and g.flags.c_contiguous:
        steps = tuple([s if m == n else 0 for m, n, s in zip(g.shape, lead + old, g.strides, strict=True)])
        return np.ndarray(lead + old, g.dtype, g, 0, steps)
    return np.broadcast_to(g, lead + old)


unsum_p.jvp([lambda t, y, g, **kw: unsum_p.bind(t, **kw)])
unsum_p.vjp([lambda c, y, g, **kw: sum_p.bind(c, **kw)])


@public("sum", methods="sum")
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum of all elements, or over `dim`.

    >>> chainrule.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(0)
    tensor([4., 6.])
    """
    x = input if dtype is None else input.to(dt.as_dtype(dtype))
    old = sizes_of(x)
    n = len(old)
    dims = ALL_DIMS[n] if dim is None and axis is None and n < 8 else wrap_dims(dim if axis is None else axis, n)
    return sum_p.bind(x, dim=dims, keepdim=keepdim or keepdims, old=old)


@public("mean", methods="mean")
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None) -> Tensor:
    """The arithmetic mean of all elements, or over `dim`."""
    x = to_dtype(input, dtype)
    if x.dtype.category < dt.FLOAT:
        raise RuntimeError(f"mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {x.dtype}; pass dtype=")
    s = x.shape
    ds = wrap_dims(dim if axis is None else axis, len(s))
    n = 1
    for d in ds:
        n *= s[d]
    return sum_p(x, dim=ds, keepdim=keepdim, old=tuple(s)) / (n if n else float("nan"))


# -- products: any number of zeros, any order -------------------------------------------------------------------------


@op("prod")
def prod_p(x: Any, *, dim: int, keepdim: bool, old: tuple[int, ...]) -> Any:
    """The product over one dim."""
    return _accumulate(np.multiply.reduce, x, (dim,), keepdim)


def others(x: Tensor, dim: int) -> Tensor:
    """For each entry of `dim` the product of the others, by prefix and suffix products (zeros need no special case)."""
    n = x.shape[dim]
    if n == 1:
        return zeros_like(x) + 1
    one = zeros_like(x.narrow(dim, 0, 1)) + 1
    from .scan import running_product
    from .shape import cat, flip

    before = cat([one, running_product(x.narrow(dim, 0, n - 1), dim)], dim)
    after = flip(cat([one, running_product(flip(x.narrow(dim, 1, n - 1), dim), dim)], dim), dim)
    return before * after


@prod_p.jvp
def _(t: Any, y: Any, x: Any, *, dim: int, keepdim: bool, old: tuple[int, ...]) -> Any:
    return sum_p(t[0] * others(x, dim), dim=(dim,), keepdim=keepdim, old=old) if x.shape[dim] else zeros_like(y)


@prod_p.vjp
def _(g: Any, y: Any, x: Any, *, dim: int, keepdim: bool, old: tuple[int, ...]) -> Any:
    return (spread(g, old, (dim,), keepdim) * others(x, dim).conj() if x.shape[dim] else zeros_like(x),)


@public("prod", methods="prod")
def prod(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product of all elements, or over one dim; right for any number of zeros at every order."""
    x = to_dtype(input, dtype)
    if dim is None:
        x, dim = x.reshape(-1), 0
    elif x.ndim == 0:
        wrap_dim(dim, 0)
        return prod_p(x.reshape(1), dim=-1, keepdim=False, old=(1,))
    return prod_p(x, dim=wrap_dim(dim, x.ndim), keepdim=keepdim, old=tuple(x.shape))


# -- extrema: ties share the gradient evenly --------------------------------------------------------------------------


def _extremum(name: str, fn: Any) -> Any:
    @op(name)
    def p(x: Any, *, dim: tuple[int, ...], keepdim: bool, old: tuple[int, ...]) -> Any:
        return fn(x, axis=dim, keepdims=keepdim)

    def share(x: Any, y: Any, old: Any, dim: Any, keepdim: bool, like: Any) -> Any:
        top = spread(y, old, dim, keepdim)
        hit = ((x == top) | ((x != x) & (top != top))).to(like.dtype)  # a NaN result comes from the NaNs
        return hit / sum_p(hit, dim=dim, keepdim=True, old=old)

    p.jvp([lambda t, y, x, *, dim, keepdim, old: sum_p(t * share(x, y, old, dim, keepdim, t), dim=dim, keepdim=keepdim, old=old)])
    p.vjp([lambda g, y, x, *, dim, keepdim, old: spread(g, old, dim, keepdim) * share(x, y, old, dim, keepdim, g)])

    def public_form(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        s = input.shape
        if input.dtype.category == dt.COMPLEX:
            raise RuntimeError(f"{name}: not implemented for complex input")
        ds = wrap_dims(dim, len(s))
        for d in ds or range(-len(s), 0):
            if s[d] == 0:
                raise IndexError(f"{name}(): Expected reduction dim {d + len(s)} to have non-zero size (input has shape {list(s)}).")
        return p(input, dim=ds, keepdim=keepdim, old=tuple(s))

    public_form.__name__ = name
    public_form.__doc__ = f"The {'largest' if name == 'amax' else 'smallest'} entry over `dim` (one, several or all); ties share the gradient."
    return p, public(name, methods=name)(public_form)


amax_p, amax = _extremum("amax", np.maximum.reduce)
amin_p, amin = _extremum("amin", np.minimum.reduce)

# -- logsumexp, softmax -----------------------------------------------------------------------------------------------


def _finite_max(x: Any, dim: Any) -> Any:
    m = np.maximum.reduce(x.real if x.dtype.kind == "c" else x, axis=dim, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(m), m, 0).astype(m.dtype)


@op("logsumexp")
def logsumexp_p(x: Any, *, dim: tuple[int, ...], keepdim: bool, old: tuple[int, ...]) -> Any:
    """``log sum exp x`` over `dim`, shifted by the maximum."""
    d = x.dtype
    if d in dt.HALVES:
        x = x.astype(np.float32)
    m = _finite_max(x, dim)
    y = np.log(np.add.reduce(np.exp(x - m), axis=dim, keepdims=True)) + m
    y = y if keepdim else y.reshape(tuple(s for i, s in enumerate(y.shape) if i - y.ndim not in dim))
    return y.astype(d)


def _weights(x: Any, y: Any, dim: Any, keepdim: bool, old: Any) -> Any:
    top = spread(y, old, dim, keepdim)
    e = exp.call(x - where(top == float("-inf"), 0, top) if top.dtype.category != dt.COMPLEX else x - top)
    # At +inf, exp(inf - inf) is NaN; PyTorch's answer is the same.
    return e


logsumexp_p.jvp([lambda t, y, x, *, dim, keepdim, old: sum_p(t * _weights(x, y, dim, keepdim, old), dim=dim, keepdim=keepdim, old=old)])
logsumexp_p.vjp([lambda g, y, x, *, dim, keepdim, old: spread(g, old, dim, keepdim) * _weights(x, y, dim, keepdim, old).conj()])


@public("logsumexp special.logsumexp", methods="logsumexp")
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """``log(sum(exp(input)))`` over `dim`, without overflow."""
    x = input if input.dtype.category >= dt.FLOAT else input.to(dt.get_default_dtype())
    s = x.shape
    return logsumexp_p(x, dim=wrap_dims(dim, len(s)), keepdim=keepdim, old=tuple(s))


@op("softmax")
def softmax_p(x: Any, *, dim: int) -> Any:
    """``exp x / sum exp x`` over `dim`."""
    d = x.dtype
    if d in dt.HALVES:
        x = x.astype(np.float32)
    e = np.exp(x - np.maximum.reduce(x, axis=dim, keepdims=True, initial=-np.inf))
    return (e / np.add.reduce(e, axis=dim, keepdims=True)).astype(d, copy=False)


def _softmax_rule(t: Any, y: Any, x: Any, *, dim: int) -> Any:
    return y * (t - (y * t).sum(dim, True))


softmax_p.jvp([_softmax_rule])
softmax_p.vjp([_softmax_rule])


@op("log_softmax")
def log_softmax_p(x: Any, *, dim: int) -> Any:
    """``x - log sum exp x`` over `dim`."""
    d = x.dtype
    if d in dt.HALVES:
        x = x.astype(np.float32)
    z = x - np.maximum.reduce(x, axis=dim, keepdims=True, initial=-np.inf)
    return (z - np.log(np.add.reduce(np.exp(z), axis=dim, keepdims=True))).astype(d, copy=False)


log_softmax_p.jvp([lambda t, y, x, *, dim: t - (exp.call(y) * t).sum(dim, True)])
log_softmax_p.vjp([lambda g, y, x, *, dim: g - exp.call(y) * g.sum(dim, True)])


def _soft(p: Any, x: Tensor, dim: Any, dtype: Any) -> Tensor:
    x = to_dtype(x, dtype)
    if x.dtype.category == dt.COMPLEX:
        raise RuntimeError(f"{p.name}: not implemented for complex input")
    if x.dtype.category < dt.FLOAT:
        x = x.to(dt.get_default_dtype())
    if x.ndim == 0:
        wrap_dim(dim, 0)
        return p(x.reshape(1), dim=-1).reshape(())
    return p(x, dim=wrap_dim(dim, x.ndim))


@public("softmax special.softmax", methods="softmax")
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` over `dim`."""
    return _soft(softmax_p, input, dim, dtype)


@public("log_softmax special.log_softmax", methods="log_softmax")
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """``log(softmax(x))`` over `dim`, without underflow."""
    return _soft(log_softmax_p, input, dim, dtype)


# -- variance ---------------------------------------------------------------------------------------------------------


def _correction(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, Any]:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        correction = 1 if unbiased else 0
    return dim, 1 if correction is None else correction


def moments(x: Tensor, dim: Any, correction: Any, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Variance and mean over `dim`; a complex variance is the mean of ``|x - m|**2``."""
    if x.dtype.category < dt.FLOAT:
        raise RuntimeError(f"std and var only support floating point and complex dtypes, got input of {x.dtype}")
    s = x.shape
    ds = wrap_dims(dim, len(s))
    n = 1
    for d in ds:
        n *= s[d]
    m = mean(x, ds, True) if ds else x
    c = x - m
    c2 = c * c if x.dtype.category == dt.FLOAT else (c * c.conj()).real
    total = sum_p(c2, dim=ds, keepdim=keepdim, old=tuple(s))
    left = n - correction
    v = total / left if left > 0 else total * float("nan") if n == 0 or left == 0 and n <= 1 else total / 0.0
    return v, m if keepdim or not ds else m.reshape(tuple(k for i, k in enumerate(s) if i - len(s) not in ds))


@public("var", methods="var")
def var(input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Tensor:
    """``sum(|x - mean|**2) / (n - correction)`` over `dim`."""
    dim, correction = _correction(dim, unbiased, correction)
    return moments(input, dim, correction, keepdim)[0]


def root(v: Tensor) -> Tensor:
    """The square root with derivative 0 at 0, the subgradient that PyTorch gives std and norms."""
    zero = v == 0
    return where(zero, 0, where(zero, 1, v).sqrt())


@public("std", methods="std")
def std(input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Tensor:
    """The square root of the variance over `dim`; its derivative where it is 0 is 0."""
    dim, correction = _correction(dim, unbiased, correction)
    return root(moments(input, dim, correction, keepdim)[0])


__all__ = ["abs", "log"]

# -- samples ------------------------------------------------------------------------------------------------------------

for _n in ("sum", "mean", "logsumexp", "var", "std", "amax", "amin"):
    _cx = _n not in ("amax", "amin")
    sample(_n, S(2, 3), dim=-1, cx=_cx)
    sample(_n, S(2, 3, 2), dim=(0, -1), keepdim=True, cx=_cx)
for _n in ("sum", "mean", "prod", "var", "std"):
    sample(_n, S(2, 3))
    sample(_n, S(5))
sample("var", S(2, 3), dim=1, correction=0)
sample("prod", S(2, 3), 1)
sample("prod", Given([[0.0, 2.0, 3.0], [0.0, 0.0, 4.0]], grad=True), 1)
sample("prod", Given([0.0, 2.0, 3.0], grad=True))
for _n in ("softmax", "log_softmax"):
    sample(_n, S(2, 3), dim=-1, cx=False)
    sample(_n, S(2, 3), dim=0, cx=False)
    sample(_n, S(), dim=0, cx=False)
