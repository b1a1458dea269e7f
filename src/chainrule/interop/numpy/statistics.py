"""NumPy's order statistics and averages without a look at values, so that they batch: quantiles, medians, what ignores NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from .functions import native
from .methods import axes_of
from .shadow import function
from .ufuncs import write_out
from .value import Array, as_constant, batched, cast, dtype_of, holds_arrays, made, result_type, wrap

_METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
# Hyndman and Fan's continuous estimates: element number (n + 1 - a - b) q + a, counted from 1.
_ESTIMATES = {
    "weibull": (0.0, 0.0),
    "hazen": (0.5, 0.5),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
    "interpolated_inverted_cdf": (0.0, 1.0),
}
_BETWEEN = ("linear", "midpoint", *_ESTIMATES)


def _float(a: Any) -> Array:
    x = wrap(as_constant(a))
    return x if x._d.kind in "fc" else made(cast(x._t, np.dtype(float)), np.dtype(float))


def _merged(x: Array, axis: Any) -> tuple[Tensor, tuple[int, ...]]:
    """The reduced axes as one, the last."""
    axes = axes_of(axis, x.ndim)
    t = x._t.movedim(axes, tuple(range(-len(axes), 0))) if axes else x._t.unsqueeze(-1)
    return t.reshape((*t.shape[: t.ndim - max(len(axes), 1)], -1)), axes


def _position(count: Any, q: Any, method: str) -> tuple[Any, Any, Any]:
    """Between which elements of a sorted axis a quantile lies, and how far."""
    if method in _ESTIMATES:
        a, b = _ESTIMATES[method]
        at = np.minimum(np.maximum((count + 1 - a - b) * q + a - 1, 0), np.maximum(count - 1, 0))
    else:
        at = q * (count - 1)
    low = np.floor(at)
    part = at - low
    if method == "lower":
        part = part * 0
    elif method == "higher":
        part = (part > 0) * 1.0
    elif method == "nearest":
        part = np.where(part == 0.5, (low % 2) * 1.0, (part > 0.5) * 1.0)
    elif method == "midpoint":
        part = (part > 0) * 0.5
    return low, np.minimum(low + 1, np.maximum(count - 1, 0)), part


def quantile_of(a: Any, q: Any, axis: Any, method: str, keepdims: bool, skip_nan: bool) -> Array:
    """Quantiles along axes; NaN where one is among the elements, unless those are skipped."""
    x = _float(a) if method in _BETWEEN else wrap(as_constant(a))
    t, axes = _merged(x, axis)
    s = t.sort(dim=-1)[0]  # NaN come last
    # What lies between elements is of the common type.
    d = np.result_type(dtype_of(a), q) if method in _BETWEEN else x._d
    if ((q < 0) | (q > 1)).any():
        raise ValueError("Quantiles must be in the range [0, 1]")
    bad = t.isnan()
    parts = []
    for each in q.reshape(-1):
        if skip_nan:
            count = wrap(cast((~bad).sum(-1), x._d))
            low, high, part = _position(count, float(each), method)
            at = [cast(np.maximum(v, 0)._t, np.dtype(np.int64)).unsqueeze(-1) for v in (low, high)]
            lo, hi = [PUBLIC["gather"](s, -1, i).squeeze(-1) for i in at]
            y = cast(lo, d) + cast(hi - lo, d) * cast(part._t, d)
        else:
            low, high, part = _position(s.shape[-1], float(each), method)
            lo, hi = s.select(-1, int(low)), s.select(-1, int(high))
            y = cast(lo, d) + cast(hi - lo, d) * float(part) if part else cast(lo, d)
            y = PUBLIC["where"](bad.any(-1), cast(s.select(-1, -1), d), y)
        if keepdims:
            for k in sorted(axes):
                y = y.unsqueeze(k)
        parts.append(y)
    y = PUBLIC["stack"](parts).reshape((*q.shape, *parts[0].shape)) if q.ndim else parts[0]
    return wrap(y)


def _declare(func: Any, scale: float, skip_nan: bool) -> None:
    def quantile(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
    ) -> Any:
        if weights is not None or holds_arrays(q) or (method not in _METHODS and method not in _ESTIMATES):
            return function(func)(a, q, axis, out, overwrite_input, method, keepdims, weights=weights)
        d = dtype_of(a)
        at = np.asarray(q, d if isinstance(q, int | float) and getattr(d, "kind", "") == "f" else None)
        y = quantile_of(a, at / at.dtype.type(scale), axis, method, keepdims is True, skip_nan)
        return y if out is None else write_out(func.__name__, out, y)

    native(func)(quantile)


_declare(np.quantile, 1.0, False)
_declare(np.percentile, 100.0, False)
_declare(np.nanquantile, 1.0, True)
_declare(np.nanpercentile, 100.0, True)


def _half(a: Any) -> Any:
    """0.5 in the type of what is halved."""
    return np.asarray(0.5, d if (d := np.result_type(dtype_of(a))).kind == "f" else float)


@native(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """The middle element, or the mean of the middle two."""
    y = quantile_of(a, _half(a), axis, "linear", keepdims, False)
    return y if out is None else write_out("median", out, y)


@native(np.nanmedian)
def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    """The median of what is not NaN."""
    y = quantile_of(a, _half(a), axis, "linear", keepdims is True, True)
    return y if out is None else write_out("nanmedian", out, y)


@native(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    """``sum(w a) / sum(w)``."""
    x = _float(a)
    keep = keepdims is True
    if weights is None:
        y = x.mean(axis=axis, keepdims=keep)
        total: Any = np.full_like(y, x.size / max(y.size, 1))
    else:
        w = _float(weights)
        if w.shape != x.shape:
            axes = axes_of(axis, x.ndim) if axis is not None else None
            if axes is None:
                raise TypeError("Axis must be specified when shapes of a and weights differ.")
            if w.shape != tuple([x.shape[k] for k in axes]):
                raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
            w = w.transpose(tuple(np.argsort(axes))).reshape(
                tuple([n if k in axes else 1 for k, n in enumerate(x.shape)])
            )
            w = np.broadcast_to(w, x.shape)  # type: ignore[assignment]
        total = w.astype(np.result_type(x._d, w._d)).sum(axis=axis, keepdims=keep)
        y = (x * w).sum(axis=axis, keepdims=keep) / total
    return (y, total) if returned else y


def _kept(kw: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in kw.items() if v is not np._NoValue and v is not None}


def _not_nan(x: Array, where: Any) -> Array:
    mask = wrap(~x._t.isnan())
    return mask if where in (None, np._NoValue) else np.logical_and(mask, where)


def _moment(name: str) -> None:
    def reduction(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *args: Any, where: Any = None, **kw: Any
    ) -> Any:
        x = _float(a)
        if args:
            kw["ddof"] = args[0]
        y = getattr(x, name)(axis=axis, dtype=dtype, where=_not_nan(x, where), **_kept(kw))
        return y if out is None else write_out(f"nan{name}", out, y)

    native(getattr(np, f"nan{name}"))(reduction)


for _n in ("mean", "var", "std"):
    _moment(_n)


def _extreme(name: str, fill: float) -> None:
    def reduction(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = None
    ) -> Any:
        x = wrap(as_constant(a))
        if x._d.kind not in "fc":
            return getattr(x, name)(
                axis=axis, out=out, keepdims=keepdims is True, **_kept({"initial": initial, "where": where})
            )
        bad = wrap(x._t.isnan())
        v = made(PUBLIC["where"](bad._t, Tensor(np.asarray(fill, x._d)), x._t), x._d)
        y = getattr(v, name)(axis=axis, keepdims=keepdims is True, **_kept({"initial": initial, "where": where}))
        if initial in (None, np._NoValue):
            none = bad.all(axis=axis, keepdims=keepdims is True)
            y = made(PUBLIC["where"](none._t, Tensor(np.asarray(np.nan, x._d)), y._t), x._d)
        return y if out is None else write_out(f"nan{name}", out, y)

    native(getattr(np, f"nan{name}"))(reduction)


_extreme("max", -np.inf)
_extreme("min", np.inf)


def _place(name: str, fill: float) -> None:
    def place(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        x = wrap(as_constant(a))
        if not batched(x._t):
            return function(getattr(np, f"nan{name}"))(x, axis, out, keepdims=keepdims)
        v = PUBLIC["where"](x._t.isnan(), fill, x._t) if x._d.kind == "f" else x._t
        y = getattr(made(v, x._d), name)(axis=axis, keepdims=keepdims is True)
        return y if out is None else write_out(f"nan{name}", out, y)

    native(getattr(np, f"nan{name}"))(place)


_place("argmax", -np.inf)
_place("argmin", np.inf)


@native(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """How many elements are not zero."""
    nonzero: Any = wrap(as_constant(a)) != 0
    return nonzero.sum(axis=axis, keepdims=keepdims, dtype=np.int64)


@native(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    """Whether elements are minus infinity."""
    return np.equal(x, -np.inf, out=out)


@native(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    """Whether elements are infinity."""
    return np.equal(x, np.inf, out=out)


@native(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """How many elements lie between edges, or the sums of their weights. Under vmap the edges are those of all examples: numbers, or a range."""
    x = wrap(as_constant(a))
    if not batched(x._t):
        return function(np.histogram)(a, bins, range, density, weights)
    edges = np.histogram_bin_edges(np.zeros(0), bins, range) if range is not None or np.ndim(bins) else None
    if edges is None:
        raise ValueError("histogram: under vmap the edges must be the same for all examples; pass range= or the edges")
    t = x._t.reshape(-1)
    at = PUBLIC["searchsorted"](Tensor(edges), cast(t, edges.dtype), right=True) - 1
    n = len(edges) - 1
    at = PUBLIC["where"](t == float(edges[-1]), n - 1, at)
    inside = at.unsqueeze(-1) == Tensor(np.arange(n))
    if weights is None:
        counts = wrap(inside.sum(0))
    else:
        w = wrap(as_constant(weights))
        counts = made(PUBLIC["where"](inside, w._t.reshape(-1).unsqueeze(-1), 0).sum(0), w._d)
    return (counts / np.diff(edges) / counts.sum() if density else counts), edges


@native(np.geomspace)
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Numbers between two whose quotients are equal."""
    a, b = (_float(v) for v in (start, stop))
    if not batched(a._t) and not batched(b._t):
        return function(np.geomspace)(start, stop, num, endpoint, dtype, axis)
    d = np.result_type(a._d, b._d)
    if d.kind == "c":
        raise TypeError("geomspace: of complex numbers it has no rule under vmap; write np.exp(np.linspace(...))")
    lo, hi = a.astype(d), b.astype(d)
    y = np.exp(linspace(np.log(np.abs(lo)), np.log(np.abs(hi)), num, endpoint)) * np.sign(lo)
    y = made(y._t.movedim(0, axis), d)
    return y if dtype is None else y.astype(dtype)


@native(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Evenly spaced numbers between two, which may be arrays."""
    n = int(num)
    if n < 0:
        raise ValueError(f"Number of samples, {n}, must be non-negative.")
    d = np.result_type(result_type(start, stop), 0.0)  # numbers of Python's leave the type to the arrays
    lo, hi = PUBLIC["broadcast_tensors"](cast(as_constant(start), d), cast(as_constant(stop), d))
    steps = n - 1 if endpoint else n
    w = Tensor((np.arange(n) / max(steps, 1)).astype(d).reshape((n,) + (1,) * lo.ndim))
    y = lo + w * (hi - lo)
    if endpoint and n > 1:
        y = PUBLIC["cat"]([y.narrow(0, 0, n - 1), hi.unsqueeze(0)])
    out = made(y.movedim(0, axis), d)
    out = out if dtype is None else out.astype(dtype)
    return (out, made((hi - lo) / steps if steps > 0 else lo * np.nan, d)) if retstep else out
