"""Order statistics: median, kthvalue, mode, quantile.

By dim, the derivative goes to the entry whose index is returned; over a whole tensor the entries that tie share it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import kernels
from ...core import dtypes as dt
from ...core.declare import op
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import constant, wrap_dim
from ...core.sizes import is_ragged
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.views import write_out
from ...kernels.ordering import LEAST
from ..elementwise.select import where
from ..index.gather import gather_p
from ..index.sort import in_order
from ..linalg.matmul import rounded_once
from .extrema import check_size, chosen, ordered
from .reductions import evenly, widen
from .scan import ValuesIndices

# -- median -----------------------------------------------------------------------------------------------------------


def _first_equal(x: Any, v: Any, dim: int) -> Any:
    """The index along `dim` of the first entry equal to `v`, NaN counting as equal to NaN."""
    return np.argmax((x == v) | ((x != x) & (v != v)), axis=dim, keepdims=True)


def _kth(x: Any, dim: int, k: int) -> Any:
    """The index along `dim` of the first entry equal to the one that sorting would put at place `k`, or None where there is no loop for it."""
    if x.size < LEAST:
        return None
    try:
        return np.moveaxis(kernels.ordering.nth(np.moveaxis(x, dim, -1), k), -1, dim)
    except kernels.NotSupported:
        return None


@op("kth_index", differentiable=False)
def kth_index_p(x: Any, *, dim: int, k: int) -> Any:
    """The index along `dim` of the entry that sorting would put at place `k`; NaN counts as largest."""
    if (go := kernels.ranks.place("nth", x, dim, k)) is not None:
        return go(x)
    if (i := _kth(x, dim, k)) is not None:
        return i
    x = widen(x)
    v = np.take(np.partition(x, k, axis=dim), [k], axis=dim)
    return _first_equal(x, v, dim)


kth_index_p.special = lambda xs, kw: kernels.ranks.place("nth", xs[0], kw["dim"], kw["k"])


@op("median_index", differentiable=False)
def median_index_p(x: Any, *, dim: int) -> Any:
    """The index along `dim` of the lower median; of the first NaN if there is one."""
    k = (x.shape[dim] - 1) // 2
    if (go := kernels.ranks.place("median", x, dim, k)) is not None:
        return go(x)
    nan = x.dtype.kind not in "iub" and bool(np.isnan(x).any())
    if not nan and (i := _kth(x, dim, k)) is not None:
        return i
    x = widen(x)
    v = np.take(np.partition(x, k, axis=dim), [k], axis=dim)
    if x.dtype.kind == "f":
        v = np.where(np.isnan(x).any(axis=dim, keepdims=True), np.nan, v)
    return _first_equal(x, v, dim)


median_index_p.special = lambda xs, kw: kernels.ranks.place(
    "median", xs[0], kw["dim"], (xs[0].shape[kw["dim"]] - 1) // 2
)


@op("nanmedian_index", differentiable=False)
def nanmedian_index_p(x: Any, *, dim: int) -> Any:
    """The index along `dim` of the lower median of what is not NaN."""
    if (go := _nanmedian([x], {"dim": dim})) is not None:
        return go(x)
    if x.dtype.kind in "iub" or not np.isnan(x).any():
        return median_index_p.body(x, dim=dim)
    x = widen(x)
    n = np.sum(x == x, axis=dim, keepdims=True)
    v = np.take_along_axis(np.sort(x, axis=dim), np.maximum((n - 1) // 2, 0), dim)
    return _first_equal(x, v, dim)


def _nanmedian(xs: list[Any], kw: dict[str, Any]) -> Any:
    return kernels.ranks.place("nanmedian", xs[0], kw["dim"], (xs[0].shape[kw["dim"]] - 1) // 2)


nanmedian_index_p.special = _nanmedian


def _median(name: str, index: Any, what: str) -> Any:
    def pick(x: Any, *, axis: Any, keepdims: bool) -> Any:
        i = index.body(x, dim=-1)
        return np.take_along_axis(x, i, -1)[..., 0]

    over_all = evenly(f"{name}_all", pick)

    def special(xs: list[Any], kw: dict[str, Any]) -> Any:
        go = None if kw["keepdim"] or xs[0].ndim != 1 else index.special(xs, {"dim": -1})
        return None if go is None else lambda x: x[go(x)[0]]

    over_all.special = special

    def form(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        x = ordered(name, input, bools=False)
        if dim is not None:
            return chosen(name, index, x, dim, keepdim)
        n = x.numel()
        if n == 0:
            if x.dtype.category < dt.FLOAT:
                raise RuntimeError(f"{name}(): input has no elements (shape {list(x.shape)}), and {x.dtype} has no NaN")
            return constant(np.nan, x)
        return over_all(x.reshape(n), dim=(-1,), keepdim=False, old=(n,))

    form.__name__ = name
    form.__doc__ = (
        f"The lower median of {what}; ``(values, indices)`` along `dim`, or of all.\n\n"
        f"Of all, the entries equal to it share the derivative."
    )
    return public(name, methods=name)(straight(form, name))


median = _median("median", median_index_p, "the entries, NaN if one is")
nanmedian = _median("nanmedian", nanmedian_index_p, "the entries that are not NaN")

# -- kthvalue, mode ---------------------------------------------------------------------------------------------------


def _apart(input: Tensor, out: Any) -> None:
    """Raise where a tensor to write to shares memory with the one to read from."""
    for o in out or ():
        if isinstance(o, Tensor) and o._interp is None and input._interp is None and o.numel() > 1:
            if np.may_share_memory(o._value, input._value):
                raise RuntimeError(
                    "kthvalue(): unsupported operation: out shares memory with input; pass another tensor"
                )


@public("kthvalue", out=False)
def kthvalue_out(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The `k`-th smallest entry along `dim`, counted from 1: ``(values, indices)``."""
    _apart(input, out)
    y = kthvalue(input, k, dim, keepdim)
    return y if out is None else write_out(out, y)


@public("", methods="kthvalue", out=False)
@straight
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """The `k`-th smallest entry along `dim`, counted from 1: ``(values, indices)``."""
    x = ordered("kthvalue", input, bools=False)
    d = wrap_dim(dim, x.ndim)
    n = x.shape[d] if x.ndim else 1
    check_size("kthvalue", x.shape, d)
    if not 1 <= k <= n:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}: k is {k}, size {n}")
    return chosen("kthvalue", kth_index_p, x, dim, keepdim, k=int(k) - 1)


@op("mode_index", differentiable=False)
def mode_index_p(x: Any, *, dim: int) -> Any:
    """The index along `dim` of the most frequent entry: of the smallest of equally frequent ones, its last occurrence."""
    if (go := kernels.ranks.place("mode", x, dim)) is not None:
        return go(x)
    s, order = in_order(np.moveaxis(widen(x), dim, -1), -1)
    place = np.broadcast_to(np.arange(s.shape[-1]), s.shape)
    fresh = np.ones(s.shape, bool)
    fresh[..., 1:] = s[..., 1:] != s[..., :-1]
    run = place - np.maximum.accumulate(np.where(fresh, place, 0), axis=-1)
    at = np.argmax(run, axis=-1, keepdims=True)
    return np.moveaxis(np.take_along_axis(order, at, -1), -1, dim)


mode_index_p.special = lambda xs, kw: kernels.ranks.place("mode", xs[0], kw["dim"])


@public("mode", methods="mode")
@straight
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """The most frequent entry along `dim`, the smallest of equally frequent ones: ``(values, indices)``."""
    return chosen("mode", mode_index_p, ordered("mode", input), dim, keepdim)


# -- quantiles --------------------------------------------------------------------------------------------------------


@op("sorting", differentiable=False)
def sorting_p(x: Any) -> Any:
    """The permutation that sorts the last axis, NaN last."""
    return in_order(x, -1)[1]


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _check_quantile(name: str, x: Tensor, q: Any, interpolation: str) -> Tensor:
    if x.dtype.category != dt.FLOAT:
        raise RuntimeError(
            f"{name}(): input tensor must be either float or double dtype, or a 16-bit float, got {x.dtype}"
        )
    if x.numel() == 0:
        raise RuntimeError(f"{name}(): input tensor must be non-empty, got shape {list(x.shape)}")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}(): interpolation must be one of {', '.join(_INTERPOLATIONS)}, but got {interpolation!r}"
        )
    if not isinstance(q, Tensor):
        q = constant(q, x)
        if not 0 <= float(q._value) <= 1:
            raise RuntimeError(f"{name}(): q must be in the range [0, 1] but got {float(q._value)}")
    if q.ndim > 1:
        raise RuntimeError(f"{name}(): q must be a scalar or 1D tensor, got shape {list(q.shape)}")
    if q.dtype is not x.dtype:
        raise RuntimeError(f"{name}(): q tensor must be same dtype as the input tensor, got {q.dtype} and {x.dtype}")
    check_fraction_p.bind(q, name=name)
    return q


@op("check_fraction", differentiable=False)
def check_fraction_p(q: Any, *, name: str) -> Any:
    """`q` itself, after checking that it lies in [0, 1]."""
    if not ((q >= 0) & (q <= 1)).all():
        raise RuntimeError(f"{name}(): q values must be in the range [0, 1]")
    return q


@rounded_once
def _quantile(name: str, input: Tensor, q: Any, dim: Any, keepdim: bool, interpolation: str, skip: bool) -> Tensor:
    q = _check_quantile(name, input, q, interpolation)
    rank = input.ndim
    if dim is None:
        x, d = input.reshape(-1), -1
    else:
        d = wrap_dim(dim, rank)
        x = input.movedim(d, -1) if rank else input.reshape(1)
    n = x.shape[-1]
    s = gather_p(x, sorting_p(x), dim=-1, old=tuple(x.shape))
    nan = x != x
    if is_ragged(n):  # as many as each row has, beside it
        n = (nan | ~nan).sum(-1, True)
    flat = q.reshape(-1)
    if skip:
        top = ((~nan).sum(-1, True) - 1).clamp(min=0).to(x.dtype)
        place = flat * top
    else:  # a NaN sorts last, and the quantile of a row with one is NaN
        place = where(nan.any(-1, True), n - 1.0, flat * (n - 1))

    def at(r: Tensor) -> Tensor:
        return gather_p(s, r.to(dt.int64), dim=-1, old=tuple(s.shape))

    if interpolation == "lower":
        y = at(place.floor())
    elif interpolation == "higher":
        y = at(place.ceil())
    elif interpolation == "nearest":
        y = at(place.round())
    else:
        low, high = at(place.floor()), at(place.ceil())
        w = place - place.floor() if interpolation == "linear" else place * 0 + 0.5
        step = high - low
        # From the nearer neighbour, so that a weight of 1 gives the upper one exactly.
        y = where(w < 0.5, low + w * step, high - (1 - w) * step)
    if q.ndim == 0:
        y = y.squeeze(-1)
    elif y.ndim > 1:
        y = y.movedim(-1, 0)
    if keepdim:
        lead = (q.shape[0],) if q.ndim else ()
        kept = (1,) * rank if dim is None else tuple(1 if i - rank == d else m for i, m in enumerate(input.shape))
        y = y.reshape(lead + kept)
    return y


@public("quantile", methods="quantile")
@straight
def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The `q`-quantiles along `dim` or of all, between neighbours by `interpolation`; NaN where an entry is.

    The interpolation is one of linear, lower, higher, midpoint, nearest. A vector `q` puts its axis in front.
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@public("nanquantile", methods="nanquantile")
@straight
def nanquantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The `q`-quantiles of the entries that are not NaN, along `dim` or of all."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


# -- samples ------------------------------------------------------------------------------------------------------------

for _n in ("median", "nanmedian"):
    sample(_n, S(2, 3), cx=False)
    sample(_n, S(), cx=False)
    sample(_n, S(2, 4), 1, cx=False)
    sample(_n, S(3, 2), 0, True, cx=False)
sample("kthvalue", S(2, 4), 2, cx=False)
sample("kthvalue", S(3, 2), 3, 0, True, cx=False)
sample("mode", S(2, 4), cx=False)
sample("mode", S(), cx=False)
for _n in ("quantile", "nanquantile"):
    sample(_n, S(2, 4), 0.3, cx=False)
    sample(_n, S(2, 4), S(3, low=0.05, high=0.95), 1, True, cx=False)
    for _i in _INTERPOLATIONS[1:]:
        sample(_n, S(3, 4), 0.4, 0, interpolation=_i, cx=False)
