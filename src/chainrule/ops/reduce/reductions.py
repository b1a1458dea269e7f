"""Reductions: sums, products, extrema, moments; softmax and its relatives."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any

import numpy as np

from ... import kernels
from ...core import dtypes as dt
from ...core.arguments import around, checked
from ...core.declare import op, pointwise
from ...core.dispatch import innermost
from ...core.primitives import reshape_p
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import sizes_of, wrap_dim, wrap_dims
from ...core.sizes import is_ragged
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.types import FLOAT_NUMS, REAL_NUMS
from ...core.views import write_out
from ..elementwise.elementary import exp
from ..elementwise.publish import zeros_like
from ..elementwise.select import where
from ..shape.slices import flip_p
from .adding import (
    FACTOR,
    LARGE,
    PLAIN,
    WIDER,
    add,
    adds,
    folded,
    product,
    shape_of,
    side_by_side,
    spreads,
    total,
    variance,
)


def kept(shape: tuple[int, ...], dim: tuple[int, ...]) -> tuple[int, ...]:
    """`shape` with the dims in `dim` set to 1."""
    n = len(shape)
    return tuple([1 if i - n in dim else s for i, s in enumerate(shape)])


def spread(y: Tensor, old: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> Tensor:
    """A reduced tensor with its dims back, as size 1."""
    return (
        y
        if keepdim
        else reshape_p.bind(y, shape=kept(old, dim), old=tuple(s for i, s in enumerate(old) if i - len(old) not in dim))
    )


def to_dtype(x: Tensor, dtype: Any) -> Tensor:
    """`x` converted where a ``dtype=`` was given."""
    return x if dtype is None else x.to(dt.as_dtype(dtype))


def widen(x: Any) -> Any:
    """An array, 16-bit floats as float32."""
    return x.astype(np.float32) if x.dtype in dt.HALVES else x


def wide(x: Tensor) -> Tensor:
    """16-bit floats as float32: what a rule computes from them is rounded once, and a sum does not overflow."""
    d = dt.WORK.get(x.dtype.np)
    return x if d is None else x.to(dt.FROM_NP[d])


LEAST = 1 << 13  # elements from which a compiled loop is worth its call
F32 = np.dtype(np.float32)
ALL_DIMS = [tuple(range(-n, 0)) for n in range(8)]


def axes(dim: Any, n: int) -> tuple[int, ...]:
    """`dim` (one, several, or None or () for all) counted from the end; a 0-d tensor has none."""
    if type(dim) is int and -n <= dim < n:
        return (dim - n,) if dim >= 0 else (dim,)
    dims = wrap_dims(dim, n)
    return dims if n else ()


def count(shape: Any, dims: tuple[int, ...]) -> int:
    """The number of elements that a reduction over `dims` takes together."""
    n = 1
    for d in dims:
        n *= shape[d]
    return n


# -- sum, mean --------------------------------------------------------------------------------------------------------


@op("sum", sizes="old", linear="each", moves=True)
def sum_p(x: Any, *, dim: tuple[int, ...], keepdim: bool, old: tuple[int, ...]) -> Any:
    """The sum over `dim`."""
    if x.dtype is F32 and (go := folded(kernels.folds.total, x, dim, keepdim)) is not None:
        return go(x)
    if x.size < LARGE and x.dtype.num in FLOAT_NUMS:
        return side_by_side(add, x, dim, keepdim)
    if x.dtype is F32 and (go := kernels.sums.at(x, dim, keepdim, PLAIN)) is not None and (y := go(x)) is not None:
        return y
    return total(x, dim, keepdim)


_adds = adds(kernels.folds.total, sum_p.body, PLAIN)
sum_p.special = lambda xs, kw: _adds(xs, kw) if xs[0].dtype is F32 or xs[0].size >= LARGE else None
sum_p.vjp([lambda g, y, x, *, dim, keepdim, old: unsum_p.bind(g, dim=dim, keepdim=keepdim, old=old)])
sum_p.straight = sum_p.pull_rules, lambda n, g: unsum_p.body(g, **n.kw)


@op("unsum", sizes="old", moves=True)
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


@public("", methods="sum")
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of all elements, or over `dim`.

    >>> chainrule.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(0)
    tensor([4., 6.])
    """
    x = input
    if dtype is not None:
        d = dt.as_dtype(dtype)
        if d.category <= dt.INT:
            return sum(input.to(d), dim, keepdim).to(d)
        x = input.to(d)
    old = sizes_of(x)
    n = len(old)
    dims = ALL_DIMS[n] if dim is None and n < 8 else axes(dim, n)
    return sum_p.bind(x, dim=dims, keepdim=keepdim, old=old)


# The method is on the way of every gradient: there the op by itself is as short.
public("sum")(straight(sum, taped=False))


@public("mean", methods="mean")
@straight
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The arithmetic mean of all elements, or over `dim`."""
    x = to_dtype(input, dtype)
    if x.dtype.category < dt.FLOAT:
        raise RuntimeError(
            f"mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {x.dtype}; pass dtype="
        )
    if x.dtype.np in dt.HALVES:  # rounded once, and the sum cannot overflow
        return mean(x.to(dt.float32), dim, keepdim).to(x.dtype)
    s = sizes_of(x)
    ds = axes(dim, len(s))
    return sum_p.bind(x, dim=ds, keepdim=keepdim, old=s) / (count(s, ds) or float("nan"))


# -- products: any number of zeros, any order -------------------------------------------------------------------------


@op("prod", sizes="old")
def prod_p(x: Any, *, dim: int, keepdim: bool, old: tuple[int, ...]) -> Any:
    """The product over one dim."""
    return product(x, (dim,), keepdim)


prod_p.special = adds(kernels.folds.product, prod_p.body, FACTOR)


def others(x: Tensor, dim: int) -> Tensor:
    """For each entry of `dim` the product of the others (zeros need no special case)."""
    if x.shape[dim] == 1:
        return zeros_like(x) + 1
    if not is_nested(x):
        return others_p(x, dim=dim)
    from .scan import cumprod_p, shift_p

    before = shift_p(cumprod_p(x, dim=dim), dim=dim, first=1)
    after = shift_p(cumprod_p(flip_p(x, dims=(dim,)), dim=dim), dim=dim, first=1)
    return before * flip_p(after, dims=(dim,))


@op("others")
def others_p(x: Any, *, dim: int) -> Any:
    """For each entry of `dim` the product of the others: that of all over the entry, where it is in range and none is 0."""
    w = widen(x)
    y = _quotients(w, dim) if w.dtype.kind == "f" and w.size else None
    if y is None:
        from .scan import cumprod_p, reversed_along, shift_p

        before, after = (
            shift_p.body(cumprod_p.body(v, dim=dim), dim=dim, first=1) for v in (w, reversed_along(w, dim))
        )
        y = before * reversed_along(after, dim)
    return y.astype(x.dtype, copy=False)


def _quotients(x: Any, dim: int) -> Any:
    """The product of all over each entry; None where that is not the product of the others."""
    p = product(x, (dim,), True, True)
    size = np.abs(p)
    own, all = np.finfo(x.dtype), np.finfo(p.dtype)
    if ((size >= own.tiny) & (size <= own.max)).all():
        return p.astype(x.dtype) / x
    if x.dtype == p.dtype or not (size <= all.max).all():
        return None
    # Beyond the range of double precision no entry but 0 brings a product back to that of the narrower type.
    gone = size < all.tiny
    if gone.any() and not x.all():
        return None
    return (p.astype(x.dtype) if gone.all() else p) / x


def _all_but_two(t: Any, x: Any, dim: int) -> Any:
    """``sum_j t[j] *`` the product of all entries but i and j."""
    from .scan import cumprod_p, linear_scan_p, shift_p

    def around(x: Any, t: Any) -> Any:
        """The products of what comes before each entry, and their tangents."""
        y = shift_p(cumprod_p(x, dim=dim), dim=dim, first=1)
        return y, shift_p(linear_scan_p(x, t * y, dim=dim), dim=dim, first=0)

    before, t_before = around(x, t)
    after, t_after = (flip_p(v, dims=(dim,)) for v in around(flip_p(x, dims=(dim,)), flip_p(t, dims=(dim,))))
    return t_before * after + before * t_after


others_p.jvp([lambda t, y, x, *, dim: _all_but_two(t, x, dim)])
others_p.vjp([lambda g, y, x, *, dim: _all_but_two(g, x.conj(), dim)])


@prod_p.jvp
def _(t: Any, y: Any, x: Any, *, dim: int, keepdim: bool, old: tuple[int, ...]) -> Any:
    return sum_p(t[0] * others(x, dim), dim=(dim,), keepdim=keepdim, old=old) if x.shape[dim] else zeros_like(y)


@prod_p.vjp
def _(g: Any, y: Any, x: Any, *, dim: int, keepdim: bool, old: tuple[int, ...]) -> Any:
    return (spread(g, old, (dim,), keepdim) * others(x, dim).conj() if x.shape[dim] else zeros_like(x),)


@public("prod", methods="prod")
@straight
def prod(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product of all elements, or over one dim; right for any number of zeros at every order."""
    if dtype is not None and (d := dt.as_dtype(dtype)).category <= dt.INT:
        return prod(input.to(d), dim, keepdim).to(d)
    x = to_dtype(input, dtype)
    if dim is None:
        x, dim = x.reshape(-1), 0
    elif x.ndim == 0:
        wrap_dim(dim, 0)
        return prod_p(x.reshape(1), dim=-1, keepdim=False, old=(1,))
    return prod_p(x, dim=wrap_dim(dim, x.ndim), keepdim=keepdim, old=tuple(x.shape))


# -- extrema: ties share the gradient evenly --------------------------------------------------------------------------


def evenly(name: str, fn: Any) -> Any:
    """An op that picks a value over `dim` by ``fn(x, axis=, keepdims=)``; the entries equal to it share its derivative."""

    @op(name, sizes="old")
    def p(x: Any, *, dim: tuple[int, ...], keepdim: bool, old: tuple[int, ...]) -> Any:
        return fn(x, axis=dim, keepdims=keepdim)

    def share(x: Any, y: Any, old: Any, dim: Any, keepdim: bool, like: Any) -> Any:
        top = spread(y, old, dim, keepdim)
        hit = ((x == top) | ((x != x) & (top != top))).to(like.dtype)  # a NaN result comes from the NaNs
        return hit / sum_p(hit, dim=dim, keepdim=True, old=old)

    def push(t: Any, y: Any, x: Any, *, dim: Any, keepdim: bool, old: Any) -> Any:
        return sum_p(t * share(x, y, old, dim, keepdim, t), dim=dim, keepdim=keepdim, old=old)

    p.jvp([push])
    p.vjp([lambda g, y, x, *, dim, keepdim, old: spread(g, old, dim, keepdim) * share(x, y, old, dim, keepdim, g)])
    return p


def published(name: str, f: Any) -> Any:
    """Publish a function and method whose ``out=`` tensors must have the types of the results, without conversion."""

    def writing(f: Any) -> Any:
        @functools.wraps(f)
        def call(*args: Any, out: Any = None, **kw: Any) -> Any:
            y = f(*args, **kw)
            if out is None:
                return y
            one = not isinstance(out, tuple | list)
            for o, v in zip([out] if one else out, [y] if one else y, strict=True):
                if isinstance(o, Tensor) and o.dtype is not v.dtype:
                    raise RuntimeError(
                        f"{name}: Expected out tensor to have dtype {v.dtype}, that of input, but got {o.dtype}"
                    )
            return write_out(out, y)

        return checked(call)

    public(name, out=False)(around(f, writing))
    return public("", methods=name, out=False)(f)


# -- logsumexp, softmax -----------------------------------------------------------------------------------------------


def _finite_max(x: Any, dim: Any) -> Any:
    m = np.maximum.reduce(x.real if x.dtype.kind == "c" else x, axis=dim, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(m), m, 0).astype(m.dtype)


@op("logsumexp", sizes="old")
def logsumexp_p(x: Any, *, dim: tuple[int, ...], keepdim: bool, old: tuple[int, ...]) -> Any:
    """``log sum exp x`` over `dim`, shifted by the maximum."""
    if (go := folded(kernels.folds.log_sum_exp, x, dim, keepdim)) is not None:
        return go(x)
    d = x.dtype
    if d in dt.HALVES:
        x = x.astype(np.float32)
    m = _finite_max(x, dim)
    with np.errstate(divide="ignore"):
        y = np.log(total(np.exp(x - m), dim, True)) + m
    y = y if keepdim else y.reshape(tuple(s for i, s in enumerate(y.shape) if i - y.ndim not in dim))
    return y.astype(d, copy=False)


logsumexp_p.special = lambda xs, kw: folded(kernels.folds.log_sum_exp, xs[0], kw["dim"], kw["keepdim"])


def _weights(x: Any, y: Any, dim: Any, keepdim: bool, old: Any) -> Any:
    top = spread(y, old, dim, keepdim)
    empty = (top.real if top.dtype.category == dt.COMPLEX else top) == float("-inf")
    return exp.bind(x - where(empty, 0, top))


logsumexp_p.jvp(
    [
        lambda t, y, x, *, dim, keepdim, old: sum_p(
            t * _weights(x, y, dim, keepdim, old), dim=dim, keepdim=keepdim, old=old
        )
    ]
)
logsumexp_p.vjp(
    [lambda g, y, x, *, dim, keepdim, old: spread(g, old, dim, keepdim) * _weights(x, y, dim, keepdim, old).conj()]
)


@public("logsumexp special.logsumexp", methods="logsumexp")
@straight
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """``log(sum(exp(input)))`` over `dim`, without overflow."""
    x = input if input.dtype.category >= dt.FLOAT else input.to(dt.get_default_dtype())
    s = sizes_of(x)
    return logsumexp_p(x, dim=axes(dim, len(s)), keepdim=keepdim, old=s)


@op("softmax")
def softmax_p(x: Any, *, dim: int) -> Any:
    """``exp x / sum exp x`` over `dim`."""
    d = x.dtype
    if d in dt.HALVES:
        x = x.astype(np.float32)
    elif x.dtype.num in REAL_NUMS and (go := kernels.softmax_along(x, dim, False)) is not None:
        return go(x)
    e = np.exp(x - np.maximum.reduce(x, axis=dim, keepdims=True, initial=-np.inf))
    return (e / total(e, (dim,), True)).astype(d, copy=False)


@op("softmax_pull", batch="expand")
def softmax_pull_p(t: Any, y: Any, *, dim: int) -> Any:
    """``y (t - sum(y t))`` over `dim`: what a softmax `y` does to a tangent and, being its own transpose, to a cotangent."""
    d = y.dtype
    if d.num in REAL_NUMS and (go := kernels.softmax_pull_along(t, y, dim, False)) is not None:
        return go(t, y)
    t, y = widen(t), widen(y)
    return (y * (t - total(y * t, (dim,), True))).astype(d, copy=False)


softmax_pull_p.jvp(
    [
        lambda s, o, t, y, *, dim: softmax_pull_p(s, y, dim=dim),
        lambda s, o, t, y, *, dim: s * (t - (y * t).sum(dim, True)) - y * (s * t).sum(dim, True),
    ]
)
softmax_pull_p.vjp(
    [
        lambda g, o, t, y, *, dim: softmax_pull_p(g, y, dim=dim),
        lambda g, o, t, y, *, dim: g * (t - (y * t).sum(dim, True)) - t * (g * y).sum(dim, True),
    ]
)

softmax_p.jvp([lambda t, y, x, *, dim: softmax_pull_p(t, y, dim=dim)])
softmax_p.vjp([lambda g, y, x, *, dim: softmax_pull_p(g, y, dim=dim)])


@op("log_softmax")
def log_softmax_p(x: Any, *, dim: int) -> Any:
    """``x - log sum exp x`` over `dim`."""
    d = x.dtype
    if d in dt.REALS and (go := kernels.softmax_along(x, dim, True)) is not None:
        return go(x)
    if d in dt.HALVES:
        x = x.astype(np.float32)
    z = x - np.maximum.reduce(x, axis=dim, keepdims=True, initial=-np.inf)
    return (z - np.log(total(np.exp(z), (dim,), True))).astype(d, copy=False)


for _p, _log in ((softmax_p, False), (log_softmax_p, True)):
    _p.special = lambda xs, kw, _l=_log: (
        kernels.softmax_along(xs[0], kw["dim"], _l) if xs[0].dtype.num in REAL_NUMS else None
    )


def _less_share(g: Any, y: Any, s: Any) -> Any:
    if y.size < LEAST:
        return np.where(y > -0.7, (g - s) - np.expm1(y) * s, g - np.exp(y) * s)
    z = np.asarray(g - np.exp(y) * s)
    likely = np.broadcast_to(y > -0.7, z.shape)
    if likely.any():
        # Of 1 - p, with p close to 1, the rounding of p would leave few digits.
        g, y, s = (np.broadcast_to(a, z.shape)[likely] for a in (g, y, s))
        z[likely] = (g - s) - np.expm1(y) * s
    return z


less_share_p = pointwise(
    "less_share",
    _less_share,
    lambda t, z, g, y, s: t,
    lambda t, z, g, y, s: -t * (exp.bind(y) * s),
    lambda t, z, g, y, s: -t * exp.bind(y),
    fast=frozenset(),
    doc="``g - exp(y) s``, where exp(y) is a probability.",
)


def _push_log_softmax(t: Any, y: Any, x: Any, *, dim: int) -> Any:
    w = wide(t)
    return (w - (exp.bind(wide(y)) * w).sum(dim, True)).to(t.dtype)


def _pull_log_softmax(g: Any, y: Any, x: Any, *, dim: int) -> Any:
    if not is_nested(g):
        return log_softmax_pull_p(g, y, dim=dim)
    w = wide(g)
    return less_share_p.bind(w, wide(y), w.sum(dim, True)).to(g.dtype)


log_softmax_p.jvp([_push_log_softmax])
log_softmax_p.vjp([_pull_log_softmax])


@op("log_softmax_pull", batch="expand")
def log_softmax_pull_p(g: Any, y: Any, *, dim: int) -> Any:
    """``g - exp(y) sum(g)`` over `dim`: what a log_softmax `y` does to a cotangent."""
    d = y.dtype
    if d.num in REAL_NUMS and (go := kernels.softmax_pull_along(g, y, dim, True)) is not None:
        return go(g, y)
    g, y = widen(g), widen(y)
    return _less_share(g, y, total(g, (dim,), True)).astype(d, copy=False)


log_softmax_pull_p.jvp(
    [
        lambda t, o, g, y, *, dim: log_softmax_pull_p(t, y, dim=dim),
        lambda t, o, g, y, *, dim: -t * (exp.bind(wide(y)) * wide(g).sum(dim, True)).to(t.dtype),
    ]
)
log_softmax_pull_p.vjp(
    [
        lambda c, o, g, y, *, dim: _push_log_softmax(c, y, None, dim=dim),
        lambda c, o, g, y, *, dim: -c * (exp.bind(wide(y)) * wide(g).sum(dim, True)).to(c.dtype),
    ]
)
for _p, _log in ((softmax_pull_p, False), (log_softmax_pull_p, True)):
    _p.special = lambda xs, kw, _l=_log: (
        kernels.softmax_pull_along(xs[0], xs[1], kw["dim"], _l) if xs[1].dtype.num in REAL_NUMS else None
    )


def _soft(p: Any, x: Tensor, dim: Any, dtype: Any) -> Tensor:
    x = to_dtype(x, dtype)
    if x.dtype.category == dt.COMPLEX:
        raise RuntimeError(f"{p.name}: not implemented for complex input")
    if x.dtype.category < dt.FLOAT:
        raise NotImplementedError(f"{p.name}: not implemented for input of {x.dtype}; pass dtype=")
    if x.ndim == 0:
        wrap_dim(dim, 0)
        return p(x.reshape(1), dim=-1).reshape(())
    return p(x, dim=wrap_dim(dim, x.ndim))


@public("softmax special.softmax", methods="softmax")
@straight
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` over `dim`."""
    return _soft(softmax_p, input, dim, dtype)


@public("log_softmax special.log_softmax", methods="log_softmax")
@straight
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """``log(softmax(x))`` over `dim`, without underflow."""
    return _soft(log_softmax_p, input, dim, dtype)


@public("_softmax_backward_data", out=True)
def softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """``y * (g - sum(y * g))`` over `dim`: the cotangent of softmax's input from its output `y`."""
    return softmax_pull_p(grad_output, output, dim=wrap_dim(dim, output.ndim)).to(dt.as_dtype(input_dtype))


@public("_log_softmax_backward_data", out=True)
def log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """``g - exp(y) * sum(g)`` over `dim`: the cotangent of log_softmax's input from its output `y`."""
    g = wide(grad_output)
    return less_share_p.bind(g, wide(output), sum(g, dim, True)).to(dt.as_dtype(input_dtype))


# -- means in double precision ------------------------------------------------------------------------------------------


@op("wide_mean", linear="each")
def mean_p(x: Any, *, dim: tuple[int, ...], keepdim: bool, old: tuple[int, ...]) -> Any:
    """The mean over `dim`, added in double precision and rounded once."""
    if (go := folded(kernels.folds.mean, x, dim, keepdim)) is not None:
        return go(x)
    d = x.dtype
    if d in WIDER and d.kind != "c":
        y = total(x, dim, keepdim, mean=np.zeros(shape_of(x.shape, dim, True)), wide=True)
    else:
        y = total(x, dim, keepdim)
    return (y / (count(old, dim) or float("nan"))).astype(d, copy=False)


mean_p.special = lambda xs, kw: folded(kernels.folds.mean, xs[0], kw["dim"], kw["keepdim"])
mean_p.vjp([lambda g, y, x, *, dim, keepdim, old: unsum_p.bind(g / count(old, dim), dim=dim, keepdim=keepdim, old=old)])


def is_nested(x: Tensor) -> bool:
    """Whether `x` holds components of their own sizes."""
    return type(innermost(x)) is not np.ndarray


def exact_mean(x: Tensor, dim: tuple[int, ...], keepdim: bool, old: tuple[int, ...]) -> Tensor:
    """The mean beside a variance, or in its derivative: as exact as that, since what is left of ``x - mean(x)`` may be small."""
    if is_nested(x):
        return sum_p(x, dim=dim, keepdim=keepdim, old=old) / (count(old, dim) or float("nan"))
    return mean_p.bind(x, dim=dim, keepdim=keepdim, old=old)


# -- variance ---------------------------------------------------------------------------------------------------------


@op("var", sizes="dof old")
def var_p(x: Any, *, dim: tuple[int, ...], dof: float, whole: bool, keepdim: bool, old: tuple[int, ...]) -> Any:
    """``sum(|x - mean(x)|**2) / max(dof, 0)`` over `dim`."""
    return variance(x, dim, keepdim, count(old, dim), dof, False)


def _pull_moment(g: Any, slope: Any, x: Any, dim: Any, keepdim: bool, old: Any) -> Any:
    return (spread(wide(g), old, dim, keepdim) * slope).to(x.dtype)


def _push_moment(t: Any, slope: Any, y: Any, dim: Any, keepdim: bool, old: Any) -> Any:
    part = wide(t) * slope.conj()
    part = part.real if part.dtype.category == dt.COMPLEX else part
    return sum_p(part, dim=dim, keepdim=keepdim, old=old).to(y.dtype)


def _var_slope(x: Any, dim: Any, dof: float, whole: bool, old: Any) -> Any:
    x = wide(x)
    c = x - exact_mean(x, dim, True, old)
    if is_ragged(dof) or dof > 0:
        return c * (2 / dof)
    # Without a degree of freedom the variance is infinite, or 0/0; PyTorch's slope has no sign over the whole tensor.
    if whole and isinstance(dof, int | float):
        return where(c == 0, float("nan"), float("inf"))
    return c * (2 / dof if dof else float("inf"))


@var_p.jvp
def _(t: Any, y: Any, x: Any, *, dim: Any, dof: float, whole: bool, keepdim: bool, old: Any) -> Any:
    return _push_moment(t[0], _var_slope(x, dim, dof, whole, old), y, dim, keepdim, old)


@var_p.vjp
def _(g: Any, y: Any, x: Any, *, dim: Any, dof: float, whole: bool, keepdim: bool, old: Any) -> Any:
    return _pull_moment(g, _var_slope(x, dim, dof, whole, old), x, dim, keepdim, old)


@op("std", sizes="dof old")
def std_p(x: Any, *, dim: tuple[int, ...], dof: float, whole: bool, keepdim: bool, old: tuple[int, ...]) -> Any:
    """``sqrt(sum(|x - mean(x)|**2) / max(dof, 0))`` over `dim`, rounded once: the variance may be out of range."""
    return variance(x, dim, keepdim, count(old, dim), dof, True)


for _p, _root in ((var_p, False), (std_p, True)):
    _p.special = lambda xs, kw, _f=_root: folded(
        spreads(_f), xs[0], kw["dim"], kw["keepdim"], max(float(kw["dof"]), 0.0)
    )


def _std_slope(x: Any, y: Any, dim: Any, dof: Any, whole: bool, keepdim: bool, old: Any) -> Any:
    top = spread(wide(y), old, dim, keepdim)
    if not (is_ragged(dof) or dof > 0):
        return _var_slope(x, dim, dof, whole, old) / (top * 2)
    x = wide(x)
    c = x - exact_mean(x, dim, True, old)
    dead = top == 0  # the subgradient that PyTorch gives
    return where(dead, 0, c / where(dead, 1, top)) * (1 / dof)


@std_p.jvp
def _(t: Any, y: Any, x: Any, *, dim: Any, dof: float, whole: bool, keepdim: bool, old: Any) -> Any:
    return _push_moment(t[0], _std_slope(x, y, dim, dof, whole, keepdim, old), y, dim, keepdim, old)


@std_p.vjp
def _(g: Any, y: Any, x: Any, *, dim: Any, dof: float, whole: bool, keepdim: bool, old: Any) -> Any:
    return _pull_moment(g, _std_slope(x, y, dim, dof, whole, keepdim, old), x, dim, keepdim, old)


def moment(name: str, x: Tensor, dim: Any, unbiased: Any, correction: Any, keepdim: bool, p: Any = var_p) -> Tensor:
    """The variance over `dim`, or with `std_p` its root; a complex one is the mean of ``|x - m|**2``."""
    if x.dtype.category < dt.FLOAT:
        raise RuntimeError(
            f"{name}: std and var only support floating point and complex dtypes, got input of {x.dtype}"
        )
    if unbiased is not None:
        if correction is not None:
            raise TypeError(f"{name}: pass either unbiased= or correction=, not both")
        correction = int(unbiased)
    s = sizes_of(x)
    ds = axes(dim, len(s))
    dof = count(s, ds) - (1 if correction is None else correction)
    return p.bind(x, dim=ds, dof=dof, whole=dim is None, keepdim=keepdim, old=s)


def _flag_first(dim: Any, unbiased: Any) -> tuple[Any, Any]:
    """``var(x, False)`` means unbiased=False."""
    return (None, dim) if isinstance(dim, bool) else (dim, unbiased)


def root(v: Tensor) -> Tensor:
    """The square root with derivative 0 at 0, the subgradient that PyTorch gives std and norms."""
    zero = v == 0
    return where(zero, 0, where(zero, 1, v).sqrt())


@public("var", methods="var")
@straight
def var(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Tensor:
    """``sum(|x - mean|**2) / (n - correction)`` over `dim`."""
    return moment("var", input, *_flag_first(dim, unbiased), correction, keepdim)


@public("std", methods="std")
@straight
def std(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Tensor:
    """The square root of the variance over `dim`; its derivative where it is 0 is 0."""
    return moment("std", input, *_flag_first(dim, unbiased), correction, keepdim, std_p)


def _with_mean(name: str, p: Any, x: Tensor, dim: Any, unbiased: Any, correction: Any, keepdim: bool) -> list[Tensor]:
    dim, unbiased = _flag_first(dim, unbiased)
    w = wide(x)  # both derivatives are added before they are rounded
    v = moment(name, w, dim, unbiased, correction, keepdim, p)
    s = sizes_of(w)
    m = exact_mean(w, axes(dim, len(s)), keepdim, s)
    return [v, m] if w is x else [v.to(x.dtype.to_real()), m.to(x.dtype)]


VarMean = namedtuple("VarMean", "var mean")
StdMean = namedtuple("StdMean", "std mean")


@public("var_mean", out=False)
@straight
def var_mean(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> VarMean:
    """The variance and the mean over `dim`."""
    return VarMean(*_with_mean("var_mean", var_p, input, dim, unbiased, correction, keepdim))


@public("std_mean", out=False)
@straight
def std_mean(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> StdMean:
    """The standard deviation and the mean over `dim`."""
    return StdMean(*_with_mean("std_mean", std_p, input, dim, unbiased, correction, keepdim))


# -- samples ------------------------------------------------------------------------------------------------------------

for _n in ("sum", "mean", "logsumexp", "var", "std"):
    sample(_n, S(2, 3), dim=-1)
    sample(_n, S(2, 3, 2), dim=(0, -1), keepdim=True)
for _n in ("sum", "mean", "prod", "var", "std"):
    sample(_n, S(2, 3))
    sample(_n, S(5))
for _n in ("sum", "mean"):
    sample(_n, S(), 0)
sample("logsumexp", Given([800.0, 900.0, 899.0], grad=True), 0)
sample("sum", S(0, 3), 0)
sample("var", S(2, 3), dim=1, correction=0)
sample("var", S(4), correction=0.5)
sample("var_mean", S(2, 3), dim=1)
sample("std_mean", S(2, 3), dim=0, keepdim=True)
sample("prod", S(2, 3), 1)
sample("prod", S(2, 3, 2), 0, True)
sample("prod", Given([[0.0, 2.0, 3.0], [0.0, 0.0, 4.0]], grad=True), 1)
sample("prod", Given([0.0, 2.0, 3.0], grad=True))
for _n in ("softmax", "log_softmax"):
    sample(_n, S(2, 3), dim=-1, cx=False)
    sample(_n, S(2, 3), dim=0, cx=False)
    sample(_n, S(), dim=0, cx=False)
