"""The pools that are sums over windows: avg_pool, adaptive_avg_pool, lp_pool.

A pool over several dims is a map along each of them (:class:`.maps.Taps`), which lists which entries every result adds up, so an
infinite entry spoils only the results that read it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.select import where_p
from ..shape.in_each import by_sizes
from ..shape.slices import keeps_format
from .convolution import spread
from .maps import Taps, axes_map_p, maps_of

# -- windows --------------------------------------------------------------------------------------------------------------


def _ranges(n: int, start: np.ndarray, count: np.ndarray, step: int = 1) -> Taps:
    o = np.repeat(np.arange(len(start)), count)
    k = np.arange(len(o)) - np.repeat(np.cumsum(count) - count, count)
    return Taps(n, len(start), o, np.repeat(start, count) + k * step)


@functools.lru_cache(256)
def window_taps(n: int, kernel: int, stride: int, pad: int, dilation: int, m: int) -> Taps:
    """Sums over m windows; what lies in the padding is left out."""
    start = np.arange(m) * stride - pad
    stop = np.minimum(start + (kernel - 1) * dilation + 1, n)
    start = np.where(start < 0, start + -(start // dilation) * dilation, start)
    return _ranges(n, start, np.maximum(-((start - stop) // dilation), 0), dilation)


@functools.lru_cache(256)
def adaptive_taps(n: int, m: int) -> Taps:
    """Sums over m windows that share n entries as evenly as they can: from floor(o n / m) to ceil((o + 1) n / m)."""
    o = np.arange(m)
    start = o * n // max(m, 1)
    return _ranges(n, start, -(-(o + 1) * n // max(m, 1)) - start)


def pooled(name: str, n: int, k: int, s: int, p: int, e: int, ceil: bool) -> int:
    """The number of windows of size k (dilated by e) at stride s over n entries with padding p on both sides."""
    m = (n + 2 * p - e * (k - 1) - 1 + (s - 1 if ceil else 0)) // s + 1
    if ceil and (m - 1) * s >= n + p:
        m -= 1  # the last window starts inside the input or its left padding
    if m < 1:
        raise RuntimeError(
            f"{name}: input size {n} with kernel_size {k}, stride {s}, padding {p}, dilation {e} gives output size {m}: Output size is too small"
        )
    return m


def check_input(name: str, x: Any, d: int) -> None:
    """Refuse what is not ``(N, C, *spatial)`` or ``(C, *spatial)`` with no size but N zero."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: input must be a tensor, got {type(x).__name__}")
    if x.ndim not in (d + 1, d + 2) or 0 in x.shape[x.ndim - d - 1 :]:
        raise RuntimeError(
            f"{name}: Expected {d + 1}D or {d + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got {list(x.shape)}"
        )


Settings = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def settings(name: str, d: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any) -> Settings:
    """kernel_size, stride (which may be missing: the kernel), padding and dilation as tuples, checked."""
    k = spread(name, "kernel_size", kernel_size, d)
    given = stride is not None and not (isinstance(stride, tuple | list) and not stride)
    s = spread(name, "stride", stride, d) if given else k
    p, e = spread(name, "padding", padding, d), spread(name, "dilation", dilation, d)
    for what, v in (("kernel_size", k), ("stride", s), ("dilation", e)):
        for v1 in v:
            if v1 <= 0:
                raise RuntimeError(f"{name}: {what.replace('_', ' ')} should be greater than zero, but got {what}={v1}")
            if v1 >= 2**31:
                raise RuntimeError(f"{name}: {what}: integer out of range, got {v1}")
    for k1, p1, e1 in zip(k, p, e, strict=True):
        if p1 < 0:
            raise RuntimeError(f"{name}: pad must be non-negative, but got pad: {p1} (padding)")
        if p1 > ((k1 - 1) * e1 + 1) // 2:
            raise RuntimeError(
                f"{name}: pad should be at most half of effective kernel size, but got padding={p1}, kernel_size={k1} and dilation={e1}"
            )
    return k, s, p, e


def widened(x: Tensor) -> Tensor:
    """16-bit floats as float32: sums are rounded once, at the end."""
    wide = dt.WORK.get(x.dtype.np)
    return x if wide is None else x.to(dt.FROM_NP[wide])


# -- averages ---------------------------------------------------------------------------------------------------------------


def _mean(x: Tensor, taps: tuple[Taps, ...], counts: tuple[tuple[int, ...], ...]) -> Tensor:
    """Sums divided by the product over axes of `counts`; integers towards zero."""
    if x.dtype.category < dt.FLOAT:
        by: Any = functools.reduce(np.multiply.outer, [np.array(c) for c in counts])
        return axes_map_p(x, maps=maps_of(taps)).div(Tensor(by.astype(x.dtype.np)), rounding_mode="trunc")
    return axes_map_p(widened(x), maps=maps_of(taps, counts)).to(x.dtype)


@functools.lru_cache(256)
def _windows(
    name: str, size: Any, k: Any, s: Any, p: Any, ceil: bool, include: bool
) -> tuple[tuple[Taps, ...], tuple[tuple[int, ...], ...]]:
    """The windows along each dim, and how many entries each counts."""
    taps, counts = [], []
    for n, k1, s1, p1 in zip(size, k, s, p, strict=True):
        m = pooled(name, n, k1, s1, p1, 1, ceil)
        taps.append(window_taps(n, k1, s1, p1, 1, m))
        start = np.arange(m) * s1 - p1
        stop = np.minimum(start + k1, n + p1)
        count = stop - start if include else np.minimum(stop, n) - np.maximum(start, 0)
        counts.append(tuple(np.maximum(count, 1).tolist()))
    return tuple(taps), tuple(counts)


def _avg_pool(
    name: str, d: int, x: Any, kernel_size: Any, stride: Any, padding: Any, ceil: bool, include: bool, override: Any
) -> Tensor:
    k, s, p, _ = settings(name, d, kernel_size, stride, padding, 1)
    if override is not None and override == 0:
        raise RuntimeError(f"{name}: divisor must be not zero, got divisor_override=0")
    check_input(name, x, d)
    if x.dtype.category not in (dt.FLOAT, dt.COMPLEX) and x.dtype is not dt.int64:
        raise RuntimeError(f"{name}: not implemented for input of type {x.dtype}")
    taps, counts = _windows(name, tuple(x.shape[x.ndim - d :]), k, s, p, ceil, include)
    if override is not None:
        counts = tuple((override if i == 0 else 1,) * t.m for i, t in enumerate(taps))
    return _mean(x, taps, counts)


@public("avg_pool1d nn.functional.avg_pool1d", out=False)
@by_sizes
def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean over windows of the last dim; padding counts as zeros unless ``count_include_pad=False``."""
    return _avg_pool("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@public("nn.functional.avg_pool2d _C._nn.avg_pool2d", out=False)
@keeps_format
@straight
@by_sizes
def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean over windows of the last two dims (the sum over `divisor_override`, where given)."""
    return _avg_pool(
        "avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@public("nn.functional.avg_pool3d _C._nn.avg_pool3d", out=False)
@keeps_format
@by_sizes
def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean over windows of the last three dims (the sum over `divisor_override`, where given)."""
    return _avg_pool(
        "avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def target_sizes(name: str, x: Tensor, output_size: Any, d: int) -> tuple[int, ...]:
    """`output_size` of an adaptive pool as `d` sizes; None stands for the size that is there."""
    size = tuple(x.shape[x.ndim - d :])
    out: Any = (output_size,) * d if output_size is None or isinstance(output_size, int) else tuple(output_size)
    if len(out) == 1:
        out = out * d
    if len(out) != d:
        raise RuntimeError(f"{name}: output_size must be an int or {d} of them, got {output_size!r}")
    out = tuple(n if m is None else int(m) for m, n in zip(out, size, strict=True))
    if any(m < 0 for m in out):
        raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0, got {out}")
    return out


def check_adaptive(name: str, x: Any, d: int) -> None:
    """Refuse what is not ``(N, C, *spatial)`` or ``(C, *spatial)`` with spatial sizes that are not zero."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: input must be a tensor, got {type(x).__name__}")
    if x.ndim not in (d + 1, d + 2):
        raise RuntimeError(f"{name}: Expected {d + 1}D or {d + 2}D tensor for input, but got {list(x.shape)}")
    if 0 in x.shape[1:]:
        raise RuntimeError(
            f"{name}: Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(x.shape)}"
        )


def adaptive_mean(name: str, d: int, x: Tensor, output_size: Any) -> Tensor:
    """The mean over windows that share the last `d` dims as evenly as they can."""
    check_adaptive(name, x, d)
    out = target_sizes(name, x, output_size, d)
    taps = tuple(adaptive_taps(n, m) for n, m in zip(x.shape[x.ndim - d :], out, strict=True))
    return _mean(x, taps, tuple(tuple(np.diff(t.first).tolist()) for t in taps))


def _declare_adaptive(d: int, names: str) -> Callable[..., Tensor]:
    def pool(input: Tensor, output_size: Any) -> Tensor:
        return adaptive_mean(f"adaptive_avg_pool{d}d", d, input, output_size)

    pool.__name__ = pool.__qualname__ = f"adaptive_avg_pool{d}d"
    pool.__doc__ = f"The mean over `output_size` windows that share the last {d} dim(s) as evenly as they can."
    return public(names, out=False)(keeps_format(straight(by_sizes(pool))))


adaptive_avg_pool1d = _declare_adaptive(1, "adaptive_avg_pool1d nn.functional.adaptive_avg_pool1d")
adaptive_avg_pool2d = _declare_adaptive(2, "_adaptive_avg_pool2d nn.functional.adaptive_avg_pool2d")
adaptive_avg_pool3d = _declare_adaptive(3, "_adaptive_avg_pool3d nn.functional.adaptive_avg_pool3d")


# -- power means --------------------------------------------------------------------------------------------------------------


def _lp_pool(d: int, x: Tensor, p: float, kernel_size: Any, stride: Any, ceil: bool) -> Tensor:
    k = spread(f"lp_pool{d}d", "kernel_size", kernel_size, d)
    if math.isinf(p):  # the limits of the norm: the largest and the smallest absolute value
        from .pool_max import max_pool

        sign = 1 if p > 0 else -1
        return sign * max_pool(f"lp_pool{d}d", d, sign * x.abs(), kernel_size, stride, 0, 1, ceil)[0]
    mean = _avg_pool(f"lp_pool{d}d", d, x.pow(p), kernel_size, stride, 0, ceil, True, None)
    total = mean * math.prod(k)
    if p == 1:
        return total
    # A window of zeros is a corner of the norm: its derivative there is zero, not 0 * inf.
    empty = total == 0
    return where_p.bind(empty, 0.0, where_p.bind(empty, 1.0, total).pow(1.0 / p)).to(x.dtype)


def _declare_lp(d: int) -> None:
    def pool(
        input: Tensor, norm_type: int | float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Tensor:
        return _lp_pool(d, input, norm_type, kernel_size, stride, ceil_mode)

    pool.__name__ = pool.__qualname__ = f"lp_pool{d}d"
    pool.__doc__ = f"``(sum x^p)^(1/p)`` over windows of the last {d} dim(s), p = `norm_type`."
    public(f"nn.functional.lp_pool{d}d", out=False)(straight(by_sizes(pool)))


for _d in (1, 2, 3):
    _declare_lp(_d)


sample("nn.functional.avg_pool1d", S(2, 7), 3, 2, 1)
sample("nn.functional.avg_pool1d", S(2, 3, 8), 3, 2, 1, True, False)
sample("nn.functional.avg_pool2d", S(1, 2, 5, 4), (3, 2), stride=(2, 1), padding=1)
sample("nn.functional.avg_pool2d", S(2, 6, 5), 2, ceil_mode=True, divisor_override=3)
sample("nn.functional.avg_pool3d", S(1, 4, 3, 5), 2, stride=1)
sample("nn.functional.adaptive_avg_pool1d", S(2, 7), 3)
sample("nn.functional.adaptive_avg_pool2d", S(2, 1, 5, 4), (7, None))
sample("nn.functional.adaptive_avg_pool3d", S(2, 5, 4, 3), (1, 2, 3))
sample("nn.functional.lp_pool1d", S(1, 6, low=0.5), 3, 2, cx=False)
sample("nn.functional.lp_pool2d", S(1, 2, 4, 5), 2, (2, 3), stride=1, ceil_mode=True, cx=False)
sample("nn.functional.lp_pool1d", Given([[1.0, -3.0, 2.0, 4.0]], grad=True), math.inf, 2, 1, cx=False)
sample("nn.functional.lp_pool2d", S(1, 2, 4, 5), -math.inf, (2, 3), stride=1, cx=False)
sample("nn.functional.lp_pool1d", Given([[1.0, 2.0, 0.5, 1.0]], grad=True), 1, 2, cx=False)
