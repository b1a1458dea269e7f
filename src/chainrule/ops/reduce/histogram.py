"""Histograms: histc, histogram, histogramdd, bincount. Linear in the weights; counts do not change with the values, edges do."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import kernels
from ...core import dtypes as dt
from ...core.declare import fused, op
from ...core.dispatch import values
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import constant, zeros
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.select import where
from ..index.rows import add_rows_p
from ..shape.create import ones_like
from ..shape.slices import stack

Histogram = namedtuple("Histogram", "hist bin_edges")
HistogramDD = namedtuple("HistogramDD", "hist bin_edges")


def _range_array(x: Any, *, name: str, widen: float) -> Any:
    if x.shape[-1] == 0:
        return (np.array(np.broadcast_to(np.asarray([0, 1], x.dtype), (*x.shape[:-1], 2))),)
    lo, hi = x.min(-1), x.max(-1)
    if not (np.isfinite(lo) & np.isfinite(hi)).all():
        raise RuntimeError(f"{name}: the range of input [{lo}, {hi}] is not finite; pass the range to use")
    same = lo == hi
    return (np.stack([np.where(same, lo - widen, lo), np.where(same, hi + widen, hi)], -1).astype(x.dtype),)


def _range(x: Any, *, name: str, widen: float) -> Any:
    """The smallest and the largest entry of the last axis, moved apart by `widen` each where they are equal."""
    if x.shape[-1] == 0:
        return (zeros((*x.shape[:-1], 1), x.dtype).expand(*x.shape[:-1], 2) + constant([0, 1], x),)
    r = stack([x.amin(-1), x.amax(-1)], -1)
    apart = constant([-widen, widen], x)
    return (where(r.narrow(-1, 0, 1) == r.narrow(-1, 1, 1), r + apart, r),)


bin_range_p = fused("bin_range", _range, lambda **kw: (1,), lambda **kw: (1,), _range_array)


@op("bin_edges", linear="each")
def bin_edges_p(r: Any, *, bins: int) -> Any:
    """``bins + 1`` edges evenly spaced between the two entries of the last axis."""
    return np.linspace(r[..., 0], r[..., 1], bins + 1, axis=-1).astype(r.dtype)


@bin_edges_p.vjp
def _(g: Any, y: Any, r: Any, *, bins: int) -> Any:
    up = constant(np.linspace(0.0, 1.0, bins + 1), g)
    return (stack([(g * (1 - up)).sum(-1), (g * up).sum(-1)], -1),)


def _outside(k: Any, x: Any, lo: Any, hi: Any, n: int) -> Any:
    return np.where((x >= lo) & (x <= hi), np.minimum(k, n - 1), n)


@op("bin_even", batch="expand", differentiable=False)
def bin_even_p(x: Any, r: Any, *, n: int) -> Any:
    """The bin, of `n` equal ones over the range `r`, of each entry of the last axis; `n` if it is in none."""
    lo, hi = r[..., :1], r[..., 1:]
    with np.errstate(invalid="ignore", over="ignore"):
        k = np.nan_to_num((x - lo) / (hi - lo) * n, nan=0, posinf=0, neginf=0).astype(np.int64)
        return _outside(k, x, lo, hi, n)


def _upper_bound(e: Any, x: Any) -> Any:
    """How many of the sorted entries of each row of `e` are not above those of `x`: one bisection for all rows."""
    at, left = np.zeros(x.shape, np.int64), np.full(x.shape, e.shape[-1])
    e = np.broadcast_to(e, x.shape[:-1] + e.shape[-1:])
    while left.any():
        half = left // 2
        mid = at + half
        above = np.take_along_axis(e, np.minimum(mid, e.shape[-1] - 1), -1) > x
        step = ~above & (left > 0)
        at = np.where(step, mid + 1, at)
        left = np.where(step, left - half - 1, half)
    return at


@op("bin_between", batch="expand", differentiable=False)
def bin_between_p(x: Any, e: Any, *, n: int) -> Any:
    """The bin, of those between the `n` + 1 edges `e`, of each entry of the last axis; `n` if it is in none."""
    k = _upper_bound(e, x) - 1
    return _outside(k, x, e[..., :1], e[..., -1:], n)


def _totals(k: Tensor, w: Any, n: int, like: Tensor) -> Tensor:
    """The sum of the weights in each bin; those in bin n are dropped."""
    if w is None:
        w = ones_like(k, dtype=dt.float64)
    return add_rows_p(w, k, n=n + 1, r=0, s=1).narrow(-1, 0, n).to(like.dtype)


def _floating(name: str, x: Any) -> None:
    if x.dtype.category != dt.FLOAT:
        raise NotImplementedError(f"{name}: not implemented for input of {x.dtype}; convert it to a floating type")


@public("histc", methods="histc")
@straight
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many entries fall in each of `bins` equal bins between `min` and `max`; between the extremes if these are equal."""
    _floating("histc", input)
    if bins <= 0:
        raise RuntimeError(f"histc(): bins must be > 0, but got {bins}")
    if not (math.isfinite(min) and math.isfinite(max)):
        raise RuntimeError(f"histc: range of [{min}, {max}] is not finite")
    if min > max:
        raise RuntimeError(f"histc: max must be larger than min, got min={min}, max={max}")
    x = input.reshape(-1)
    r = bin_range_p(x, name="histc", widen=1.0)[0] if min == max else constant([min, max], x)
    return _totals(bin_even_p(x, r, n=int(bins)), None, int(bins), x)


def _edges(name: str, x: Tensor, bins: Any, span: Any) -> Tensor:
    """The bin edges for one variable."""
    if isinstance(bins, Tensor):
        if bins.dtype is not x.dtype:
            raise RuntimeError(f"{name}(): bins and input must have the same dtype, got {bins.dtype} and {x.dtype}")
        if bins.ndim != 1 or bins.numel() == 0:
            raise RuntimeError(f"{name}(): bins must be 1D and non-empty, got shape {list(bins.shape)}")
        return bins
    if bins <= 0:
        raise RuntimeError(f"{name}(): bins must be > 0, but got {bins}")
    if span is None:
        r = bin_range_p(x, name=name, widen=0.5)[0]
    else:
        lo, hi = span
        if not (math.isfinite(lo) and math.isfinite(hi) and lo <= hi):
            raise RuntimeError(f"{name}(): range must be finite with min <= max, got [{lo}, {hi}]")
        r = constant([lo - 0.5, hi + 0.5] if lo == hi else [lo, hi], x)
    return bin_edges_p(r, bins=int(bins))


def _weights(name: str, weight: Any, input: Tensor, shape: Any) -> Any:
    if weight is None:
        return None
    if weight.dtype is not input.dtype:
        raise RuntimeError(f"{name}(): weight and input must have the same dtype, got {weight.dtype} and {input.dtype}")
    if tuple(weight.shape) != tuple(shape):
        raise RuntimeError(
            f"{name}(): weight must have shape {list(shape)}, one entry a value, but has {list(weight.shape)}"
        )
    return weight.reshape(-1)


@public("histogram", methods="histogram")
def histogram(
    input: Tensor,
    bins: Any,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """The (weighted) number of entries in each bin, or their density, and the edges: ``(hist, bin_edges)``.

    `bins` is the number of equal bins over `range` (default: between the extremes), or their edges.
    """
    _floating("histogram", input)
    if isinstance(bins, Tensor) and range is not None:
        raise RuntimeError("histogram(): range cannot be given together with a tensor of bin edges")
    x = input.reshape(-1)
    w = _weights("histogram", weight, input, input.shape)
    e = _edges("histogram", x, bins, range)
    n = e.shape[0] - 1
    hist = _totals(bin_between_p(x, e, n=n), w, n, x)
    if density:
        hist = hist / (hist.sum() * (e.narrow(0, 1, n) - e.narrow(0, 0, n)))
    return Histogram(hist, e)


@public("histogramdd", out=False)
def histogramdd(
    input: Tensor,
    bins: Any,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> HistogramDD:
    """The histogram of points, the rows of `input`, in as many dims as it has columns: ``(hist, bin_edges of each)``.

    `bins` is a number of bins, one a column, or a tensor of edges a column; `range` is ``(min, max)`` of each column in turn.
    """
    _floating("histogramdd", input)
    if input.ndim < 2:
        raise RuntimeError(f"histogramdd(): input must have at least 2 dimensions, got shape {list(input.shape)}")
    m = input.shape[-1]
    x = input.reshape(-1, m)
    bins = [bins] * m if isinstance(bins, int) else list(bins)
    if len(bins) != m:
        raise RuntimeError(
            f"histogramdd(): bins must have one entry for each of the {m} columns of input, but has {len(bins)}"
        )
    if range is not None and len(range) != 2 * m:
        raise RuntimeError(
            f"histogramdd(): for a {m}-dimensional histogram range should have {2 * m} elements, but got {len(range)}"
        )
    w = _weights("histogramdd", weight, input, input.shape[:-1])
    edges: list[Tensor] = []
    place: Any = None
    out: Any = None
    total = 1
    for i, b in enumerate(bins):
        c = x.select(1, i)
        e = _edges("histogramdd", c, b, None if range is None else range[2 * i : 2 * i + 2])
        n = e.shape[0] - 1
        k = bin_between_p(c, e, n=n)
        bad = k == n
        place, out = (k, bad) if place is None else (place * n + k, out | bad)
        edges.append(e)
        total *= n
    hist = _totals(where(out, total, place), w, total, x).reshape([e.shape[0] - 1 for e in edges])
    if density:
        hist = hist / hist.sum()
        for i, e in enumerate(edges):
            n = e.shape[0] - 1
            hist = hist / (e.narrow(0, 1, n) - e.narrow(0, 0, n)).reshape(
                [n if j == i else 1 for j, _ in enumerate(edges)]
            )
    return HistogramDD(hist, tuple(edges))


@public("bincount", methods="bincount", out=False)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often, or with what total weight, each number from 0 on occurs in a vector of non-negative integers.

    Under `vmap` the length cannot differ between examples: there `minlength` must exceed every entry.
    """
    if input.dtype.category != dt.INT:
        raise NotImplementedError(f"bincount: not implemented for input of {input.dtype}, only for integers")
    if minlength < 0:
        raise RuntimeError(f"bincount: minlength should be >= 0, got {minlength}")
    v = input._value
    if (
        weights is None
        and input.__class__ is Tensor
        and input._interp is None
        and type(v) is np.ndarray
        and v.ndim == 1
        and 0 < v.size < kernels.indexing.LEAST
    ):
        try:
            return Tensor(np.bincount(v, None, minlength))
        except (TypeError, ValueError):  # a number below 0, or a type that it does not take
            pass
    v = values(input, "bincount, whose length depends on the largest entry,")
    v = getattr(v, "rows", v)  # of the components of a nest all together
    if input.ndim != 1 or (v.size and v.min() < 0):
        raise RuntimeError(
            f"bincount only supports 1-d non-negative integral inputs, got input of shape {list(input.shape)}"
            f"{f' with entry {v.min()}' if v.size else ''}"
        )
    if weights is not None and tuple(weights.shape) != tuple(input.shape):
        raise RuntimeError(
            f"bincount: weights should be 1-d and have the same length as input, got {list(weights.shape)} and {list(input.shape)}"
        )
    n = max(int(v.max()) + 1 if v.size else 0, minlength)
    if (v.ndim > 1 or input.is_nested) and n > minlength:
        raise RuntimeError(
            f"bincount: under vmap pass minlength > the largest entry (at least {n}), since all examples need the same length"
        )
    if weights is None and input._interp is None and type(v) is np.ndarray and v.size >= kernels.indexing.LEAST:
        try:
            return Tensor(kernels.indexing.count(v.astype(np.int64, copy=False), n))
        except kernels.NotSupported:
            pass
    if weights is None:
        w = ones_like(input, dtype=dt.int64)
    else:
        w = weights if weights.dtype.name in ("float32", "float64") else weights.to(dt.float64)
    if n == 0:
        return constant(np.zeros(0), w)
    return add_rows_p(w, input.to(dt.int64), n=n, r=0, s=1)


# -- samples ------------------------------------------------------------------------------------------------------------

_X = Given([0.1, 0.7, 0.75, 2.0, -3.0, 1.0])
sample("bincount", Given([0, 2, 2, 1]), S(4, low=0.5), cx=False)
sample(
    "histogram",
    _X,
    3,
    weight=S(6, low=0.5),
    range=(0.0, 1.0),
    f=lambda x, b, **kw: histogram(x, b, **kw).hist,
    cx=False,
)
sample("histogram", S(5), 3, f=lambda x, b: tuple(histogram(x, b, density=True)), cx=False)
sample(
    "histogram", S(4), Given([0.0, 0.5, 1.5], grad=True), f=lambda x, b: tuple(histogram(x, b, density=True)), cx=False
)
sample("histogramdd", S(4, 2), (2, 3), f=lambda x, b: histogramdd(x, b).bin_edges, cx=False)
