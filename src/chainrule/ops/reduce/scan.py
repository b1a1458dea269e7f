"""Scans along one dim: running sums, products, extrema, and the linear recurrence they differentiate through."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from ... import kernels
from ...core import dtypes as dt
from ...core.declare import op
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import wrap_dim
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.elementary import exp
from ..elementwise.select import where
from ..shape.slices import flip_p
from .adding import LARGE, WIDER
from .reductions import to_dtype, widen


def along(p: Any, x: Tensor, dim: Any, **kw: Any) -> Any:
    """The scan `p` of `x` along `dim`; a 0-d tensor counts as one of a single element."""
    d = wrap_dim(dim, x.ndim)
    return p(x, dim=d, **kw) if x.ndim else p(x.reshape(1), dim=-1, **kw).reshape(())


def _typed(p: Any, x: Tensor, dim: Any, dtype: Any) -> Any:
    """The scan `p` in a type of choice; without one, integers are counted in int64."""
    x = to_dtype(x, dtype)
    if dtype is not None and x.dtype is dt.bool_:
        raise NotImplementedError(f"{p.name}: not implemented for dtype={x.dtype}; leave it out to count in int64")
    return along(p, x, dim) if dtype is None or x.dtype.category != dt.INT else along(p, x, dim, narrow=True)


BLOCK = 1 << 18  # elements that are in double precision at a time


def reversed_along(x: Any, dim: int) -> Any:
    """A view of `x` from the end of `dim` to its beginning."""
    key = [slice(None)] * x.ndim
    key[dim] = slice(None, None, -1)
    return x[tuple(key)]


def accumulate(fn: Any, x: Any, dim: int, narrow: bool = False, back: bool = False) -> Any:
    """NumPy's running `fn` along `dim`, in order and in double precision; of integers in int64, or `narrow` in their own type."""
    d = x.dtype
    if x.size >= LARGE and fn is not np.logaddexp and d.kind not in "iub":
        try:
            return kernels.scans.scan(x, dim, kernels.scans.PRODUCT if fn is np.multiply else kernels.scans.SUM, back)
        except kernels.NotSupported:
            pass
    if back:
        return reversed_along(accumulate(fn, reversed_along(x, dim), dim, narrow), dim).copy()
    if d.kind in "iub":
        return fn.accumulate(x, axis=dim, dtype=d if narrow else np.int64)
    work = WIDER.get(d)
    if work is None:
        return fn.accumulate(x, axis=dim)
    with np.errstate(over="ignore", under="ignore"):
        if x.size <= BLOCK:
            return fn.accumulate(x.astype(work), axis=dim).astype(d)
        y = np.empty_like(x)
        rows, out = np.moveaxis(x, dim, 0), np.moveaxis(y, dim, 0)
        step, last = max(1, BLOCK * len(rows) // x.size), None
        for i in range(0, len(rows), step):
            part = rows[i : i + step].astype(work)
            if last is not None:
                part[0] = fn(last, part[0])
            out[i : i + step] = fn.accumulate(part, axis=0, out=part)
            last = part[-1].copy()
    return y


# -- sums -------------------------------------------------------------------------------------------------------------


@op("cumsum")
def cumsum_p(x: Any, *, dim: int, narrow: bool = False, back: bool = False) -> Any:
    """Running sums along `dim`, from its beginning or from its end `back`."""
    return accumulate(np.add, x, dim, narrow, back)


def backwards(p: Any, x: Tensor, dim: int, **kw: Any) -> Tensor:
    """The scan `p` from the end of `dim` to its beginning."""
    return flip_p(p(flip_p(x, dims=(dim,)), dim=dim, **kw), dims=(dim,))


def _accumulated(fn: Any) -> Any:
    """Of small arrays of float32: in double precision and rounded."""

    def special(xs: list[Any], kw: dict[str, Any]) -> Any:
        x, dim = xs[0], kw["dim"]
        if x.dtype != np.float32 or x.size >= LARGE or kw.get("back"):
            return None
        d, work = x.dtype, WIDER[x.dtype]
        return lambda x: fn.accumulate(x, dim, work).astype(d)

    return special


cumsum_p.special = _accumulated(np.add)
cumsum_p.jvp([lambda t, y, x, *, dim, narrow=False, back=False: cumsum_p(t, dim=dim, back=back)])
cumsum_p.vjp([lambda g, y, x, *, dim, narrow=False, back=False: cumsum_p(g, dim=dim, back=not back)])


@public("cumsum", methods="cumsum", inplace="cumsum_")
@straight
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """``y[k] = x[0] + ... + x[k]`` along `dim`."""
    return _typed(cumsum_p, input, dim, dtype)


# -- the linear recurrence --------------------------------------------------------------------------------------------


@op("shift")
def shift_p(x: Any, *, dim: int, first: float) -> Any:
    """``y[k] = x[k - 1]`` along `dim`, with `first` in front."""
    y = np.empty_like(x)
    a, b = np.moveaxis(y, dim, 0), np.moveaxis(x, dim, 0)
    a[:1] = first
    a[1:] = b[:-1]
    return y


shift_p.jvp([lambda t, y, x, *, dim, first: shift_p(t, dim=dim, first=0)])
shift_p.vjp([lambda g, y, x, *, dim, first: backwards(shift_p, g, dim, first=0)])


@op("linear_scan", batch="expand")
def linear_scan_p(a: Any, b: Any, *, dim: int, back: bool = False) -> Any:
    """``h[k] = a[k] h[k - 1] + b[k]`` along `dim`, ``h[-1] = 0``; or `back`, its transpose in b: ``h[k] = a[k + 1] h[k + 1] + b[k]``."""
    d = b.dtype
    if b.size >= LARGE:
        try:
            return kernels.scans.scan(b, dim, kernels.scans.LINEAR, back, a)
        except kernels.NotSupported:
            pass
    if back:
        a, b = shift_p.body(reversed_along(a, dim), dim=dim, first=0), reversed_along(b, dim)
        return reversed_along(linear_scan_p.body(a, b, dim=dim), dim).copy()
    both = np.result_type(a, b)
    h = b.astype(WIDER.get(both, both))  # a copy
    rows, coef = np.moveaxis(h, dim, 0), np.moveaxis(a, dim, 0)
    n = len(rows)
    # Long scans of few numbers: log2(n) passes over all of them instead of n passes over each.
    if n > 64 and rows.size < 64 * n:
        _by_doubling(rows, coef.copy())
        if np.isfinite(h).all():
            return h.astype(d, copy=False)
        # Products of coefficients can overflow where the recurrence itself does not.
        np.copyto(rows, np.moveaxis(b, dim, 0))
    for k in range(1, n):
        rows[k] += coef[k] * rows[k - 1]
    return h.astype(d, copy=False)


def _by_doubling(h: Any, a: Any) -> None:
    s = 1
    with np.errstate(over="ignore", invalid="ignore"):
        while s < len(h):
            h[s:] += a[s:] * h[:-s]
            a[s:] = a[s:] * a[:-s]
            s *= 2


@linear_scan_p.jvp(sparse=True)
def _(t: Any, y: Any, a: Any, b: Any, *, dim: int, back: bool = False) -> Any:
    ta, tb = t
    if ta is not None:
        if back:  # what a tangent of a[k + 1] adds to h[k]
            ta = backwards(shift_p, ta * y, dim, first=0)
        else:
            ta = ta * shift_p(y, dim=dim, first=0)
        tb = ta if tb is None else ta + tb
    return linear_scan_p(a, tb, dim=dim, back=back)


@linear_scan_p.vjp
def _(g: Any, y: Any, a: Any, b: Any, *, dim: int, back: bool = False) -> Any:
    gb = linear_scan_p(a.conj(), g, dim=dim, back=not back)
    if back:
        return lambda: shift_p(gb, dim=dim, first=0) * y.conj(), gb
    return lambda: gb * shift_p(y, dim=dim, first=0).conj(), gb


# -- products: zeros anywhere, any order ------------------------------------------------------------------------------


@op("cumprod")
def cumprod_p(x: Any, *, dim: int, narrow: bool = False) -> Any:
    """Running products along `dim`."""
    return accumulate(np.multiply, x, dim, narrow)


# y[k] = x[k] y[k-1] is differentiated as a recurrence, so that nothing is ever divided by an x that may be zero.
cumprod_p.special = _accumulated(np.multiply)
cumprod_p.jvp([lambda t, y, x, *, dim, narrow=False: linear_scan_p(x, t * shift_p(y, dim=dim, first=1), dim=dim)])
cumprod_p.vjp(
    [
        lambda g, y, x, *, dim, narrow=False: (
            linear_scan_p(x.conj(), g, dim=dim, back=True) * shift_p(y, dim=dim, first=1).conj()
        )
    ]
)


@public("cumprod", methods="cumprod", inplace="cumprod_")
@straight
def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """``y[k] = x[0] * ... * x[k]`` along `dim`; right at zeros to any order."""
    return _typed(cumprod_p, input, dim, dtype)


# -- log of running sums of exponentials ------------------------------------------------------------------------------


def _log_add_exp(a: Any, b: Any) -> Any:
    """``log(e**a + e**b)`` of complex numbers, the larger modulus taken out."""
    swap = a.real < b.real
    big, small = np.where(swap, b, a), np.where(swap, a, b)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = big + np.log1p(np.exp(small - big))
    # e**-inf is 0 whatever the angle; the other term is the sum.
    return np.where(np.isneginf(small.real), big, r)


@op("logcumsumexp")
def logcumsumexp_p(x: Any, *, dim: int) -> Any:
    """``log(e**x[0] + ... + e**x[k])`` along `dim`, without overflow."""
    d = x.dtype
    if (d.kind != "c" and d not in dt.WORK) or d in dt.HALVES:
        return accumulate(np.logaddexp, x, dim)
    y = x.astype(np.complex128)
    v = np.moveaxis(y, dim, 0)
    for k in range(1, len(v)):  # in order: the multiple of 2 pi in the imaginary part depends on it
        v[k] = _log_add_exp(v[k - 1], v[k])
    return y.astype(d, copy=False)


def _empty_sums(y: Tensor) -> Tensor:
    return (y.real if y.dtype.category == dt.COMPLEX else y) == float("-inf")


def _steps(y: Tensor, dim: int) -> Tensor:
    """``e**(y[k-1] - y[k])``: how much of the sum at k was there at k - 1."""
    empty = _empty_sums(y)
    return exp.bind(where(empty, 0, shift_p(y, dim=dim, first=-np.inf) - where(empty, 0, y)))


def _fresh(x: Tensor, y: Tensor) -> Tensor:
    """``e**(x[k] - y[k])``: how much of the sum at k is new; 0 where the sum is."""
    empty = _empty_sums(y)
    return where(empty, 0, exp.bind(where(empty, 0, x) - where(empty, 0, y)))


logcumsumexp_p.jvp([lambda t, y, x, *, dim: linear_scan_p(_steps(y, dim), t * _fresh(x, y), dim=dim)])
logcumsumexp_p.vjp(
    [lambda g, y, x, *, dim: linear_scan_p(_steps(y, dim).conj(), g, dim=dim, back=True) * _fresh(x, y).conj()]
)


@public("logcumsumexp", methods="logcumsumexp")
@straight
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """``y[k] = log(e**x[0] + ... + e**x[k])`` along `dim`, without overflow."""
    if input.dtype.category < dt.FLOAT:
        raise RuntimeError(f"logcumsumexp: not implemented for input of {input.dtype}; convert it to a floating type")
    return along(logcumsumexp_p, input, dim)


# -- running extrema --------------------------------------------------------------------------------------------------

ValuesIndices = namedtuple("ValuesIndices", "values indices")


def _running(name: str, fn: Any, what: str) -> Any:
    @op(f"{name}_index", differentiable=False)
    def p(x: Any, *, dim: int) -> Any:
        if (go := special([x], {"dim": dim})) is not None:
            return go(x)
        x = widen(x)
        v = np.moveaxis(x, dim, -1)
        # The last of several equal entries counts, and a NaN stays.
        hit = (v == fn.accumulate(v, axis=-1)) | (v != v)
        k = np.where(hit, np.arange(v.shape[-1]), 0)
        return np.moveaxis(np.maximum.accumulate(k, axis=-1), -1, dim)

    def special(xs: list[Any], kw: dict[str, Any]) -> Any:
        return kernels.scans.extremes(xs[0], kw["dim"], fn is np.maximum) if xs[0].dtype.kind != "b" else None

    p.special = special

    def form(input: Tensor, dim: int) -> ValuesIndices:
        from ..index.gather import gather_p

        if input.dtype.category == dt.COMPLEX:
            raise RuntimeError(f"{name}: not implemented for complex input ({input.dtype})")
        d = wrap_dim(dim, input.ndim)
        x = input if input.ndim else input.reshape(1)
        i = p(x, dim=d)
        y = gather_p(x, i, dim=d, old=tuple(x.shape))
        return ValuesIndices(y, i) if input.ndim else ValuesIndices(y.reshape(()), i.reshape(()))

    form.__name__ = name
    form.__doc__ = (
        f"The {what} entry so far along `dim`, and where it stands (the last of equals): ``(values, indices)``."
    )
    return public(name, methods=name)(straight(form, name))


cummax = _running("cummax", np.maximum, "largest")
cummin = _running("cummin", np.minimum, "smallest")

# -- samples ------------------------------------------------------------------------------------------------------------

for _n in ("cumsum", "cumprod", "logcumsumexp"):
    sample(_n, S(2, 3), dim=1)
    sample(_n, S(2, 3), dim=0)
    sample(_n, S(), dim=0)
    sample(_n, S(2, 0, 3), dim=1)
sample("cumprod", Given([[0.0, 2.0, 0.0, 3.0], [1.0, 0.0, 4.0, 5.0]], grad=True), 1)
sample("cumprod", S(80, low=0.7, high=1.3), 0)
sample("logcumsumexp", Given([700.0, 800.0, -800.0, 799.0], grad=True), 0)
sample("logcumsumexp", S(70, 2), 0, cx=False)
for _n in ("cummax", "cummin"):
    sample(_n, S(2, 4), 1, cx=False)
    sample(_n, S(3, 2), 0, cx=False)
    sample(_n, S(), 0, cx=False)
