"""Resizing images: interpolate and its relatives, each a linear map along every spatial dim in turn.

Entry o of the result lies at ``(o + 1/2) scale - 1/2`` of the input, with align_corners at ``o scale``. Nearest reads one entry
there, linear two, cubic four (Keys' kernel), Lanczos six; with antialias the kernel is widened to what an entry of the result covers.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.registry import public
from ...core.samples import S, sample
from ...core.straight import straight
from ...core.tensor import Tensor
from ..shape.in_each import by_sizes
from ..shape.slices import keeps_format
from .maps import Taps, axes_map_p, maps_of
from .pool_sum import adaptive_mean, widened

# -- which entries, with which weights --------------------------------------------------------------------------------------


def _scale(n: int, m: int, factor: float | None, align: bool, kind: Any) -> Any:
    """Entries of the input for one of the result."""
    if align:
        return kind(n - 1) / kind(m - 1) if m > 1 else kind(0)
    return kind(1.0 / factor) if factor is not None and factor > 0 else kind(n) / kind(m)


def cubic_weights(t: Any, a: float) -> list[Any]:
    """Keys' cubic convolution: the weights of the entries at -1, 0, 1, 2 for a point at 0 <= t < 1."""

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((x - 5) * x + 8) * x * a - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _nearest(n: int, m: int, scale: Any, exact: bool) -> Taps:
    o = np.arange(m)
    at = (o + 0.5) * scale if exact else o * scale
    return Taps(n, m, o, np.minimum(np.floor(np.float32(at)).astype(np.int64), n - 1))


def _linear(n: int, m: int, scale: Any, align: bool) -> Taps:
    o = np.arange(m)
    if n == m:
        return Taps(n, m, o, o)
    x = o * scale if align else np.maximum((o + scale.dtype.type(0.5)) * scale - scale.dtype.type(0.5), 0)
    low = np.minimum(np.floor(x).astype(np.int64), n - 1)
    t = np.clip(x - low, 0, 1)
    i = np.stack([low, np.minimum(low + 1, n - 1)], 1)
    return Taps(n, m, np.repeat(o, 2), i.reshape(-1), np.stack([1 - t, t], 1).reshape(-1))


def _cubic(n: int, m: int, scale: Any, align: bool) -> Taps:
    o = np.arange(m)
    x = o * scale if align else (o + scale.dtype.type(0.5)) * scale - scale.dtype.type(0.5)
    low = np.floor(x).astype(np.int64)
    i = np.clip(low[:, None] + np.arange(-1, 3), 0, n - 1)
    return Taps(n, m, np.repeat(o, 4), i.reshape(-1), np.stack(cubic_weights(x - low, -0.75), 1).reshape(-1))


def _hat(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0)


def _keys(x: np.ndarray) -> np.ndarray:
    x, a = np.abs(x), -0.5
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _lanczos(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


# The kernels that can be widened, with how far they reach.
_KERNELS: dict[str, tuple[int, Any]] = {"bilinear": (1, _hat), "bicubic": (2, _keys), "lanczos": (3, _lanczos)}


def _antialiased(n: int, m: int, scale: Any, mode: str) -> Taps:
    if n == m:
        return Taps(n, m, np.arange(m), np.arange(m))
    wide = max(scale, type(scale)(1))
    reach, kernel = _KERNELS[mode]
    support = reach * wide
    center = (np.arange(m) + scale.dtype.type(0.5)) * scale
    start = np.maximum((center - support + 0.5).astype(np.int64), 0)
    stop = np.minimum((center + support + 0.5).astype(np.int64), n)
    count = stop - start
    o = np.repeat(np.arange(m), count)
    i = np.arange(len(o)) - np.repeat(np.cumsum(count) - count, count) + start[o]
    w = kernel((i - center[o] + 0.5) / wide)
    return Taps(n, m, o, i, w / np.bincount(o, w, m)[o])


@functools.lru_cache(256)
def taps_of(mode: str, n: int, m: int, factor: float | None, align: bool, antialias: bool, single: bool) -> Taps:
    """The map of one dim from n to m entries.

    `single` says that the nearest entry is found in float32, as in PyTorch: it jumps. Weights that are continuous in the
    position are computed in float64 and rounded once.
    """
    scale = _scale(n, m, factor, align, np.float32 if single and mode.startswith("nearest") else np.float64)
    if mode in ("nearest", "nearest-exact"):
        return _nearest(n, m, scale, mode == "nearest-exact")
    if antialias:
        return _antialiased(n, m, scale, mode)
    return _cubic(n, m, scale, align) if mode == "bicubic" else _linear(n, m, scale, align)


def resized(
    x: Tensor, mode: str, out: tuple[int, ...], factors: Any, align: bool = False, antialias: bool = False
) -> Tensor:
    """`x` with its last dims resized to `out`; `factors` override the ratios of sizes where they are not None."""
    d = len(out)
    single = x.dtype not in (dt.float64, dt.complex128)
    size = x.shape[x.ndim - d :]
    if d == 2 and mode == "nearest":
        # PyTorch: in images a size kept or doubled repeats entries evenly, whatever factor led to that size.
        factors = tuple(None if m in (n, 2 * n) else f for n, m, f in zip(size, out, factors, strict=True))
    taps = tuple(
        taps_of(mode, int(n), m, f, align, antialias, single) for n, m, f in zip(size, out, factors, strict=True)
    )
    if x.dtype.category < dt.FLOAT and not mode.startswith("nearest"):
        info = np.iinfo(x.dtype.np)
        for k in range(d - 1, -1, -1):  # an image of integers after every dim
            y = axes_map_p(x.to(dt.float32), maps=maps_of((taps[k], *(None,) * (d - 1 - k))))
            x = y.round().clamp(info.min, info.max).to(x.dtype)
        return x
    return axes_map_p(widened(x), maps=maps_of(taps)).to(x.dtype)


# -- interpolate ----------------------------------------------------------------------------------------------------------------

_DIMS = {"linear": 1, "bilinear": 2, "bicubic": 2, "lanczos": 2, "trilinear": 3}
_MODES = ("nearest", "nearest-exact", "area", *_DIMS)


def _per_dim(name: str, what: str, v: Any, d: int) -> tuple[Any, ...]:
    if isinstance(v, list | tuple):
        if len(v) != d:
            raise ValueError(
                f"{name}: Input and {what} must have the same number of spatial dimensions, but got input with {d} spatial dims and {what} of {v}"
            )
        return tuple(v)
    return (v,) * d


@public("nn.functional.interpolate", out=False)
@keeps_format
@straight
@by_sizes
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """`input` ``(N, C, *spatial)`` resized to `size`, or by `scale_factor`.

    `mode`: nearest, nearest-exact, area (1 to 3 spatial dims), linear (1), bilinear, bicubic, lanczos (2), trilinear (3).

    >>> chainrule.nn.functional.interpolate(chainrule.arange(3.0).reshape(1, 1, 3), scale_factor=2)
    tensor([[[0., 0., 1., 1., 2., 2.]]])
    """
    name = "interpolate"
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}: input must be a tensor, got {type(input).__name__}")
    if mode not in _MODES:
        raise NotImplementedError(f"{name}: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if mode in ("nearest", "nearest-exact", "area"):
        if align_corners is not None:
            raise ValueError(
                f"{name}: align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear, not {mode}"
            )
    d = input.ndim - 2
    if d < 1 or d > 3:
        raise NotImplementedError(
            f"{name}: Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D, {list(input.shape)}) for mode {mode}"
        )
    if size is not None and scale_factor is not None:
        raise ValueError(f"{name}: only one of size or scale_factor should be defined, got {size} and {scale_factor}")
    if size is None and scale_factor is None:
        raise ValueError(f"{name}: either size or scale_factor should be defined")
    have = tuple(input.shape[2:])
    factors: tuple[Any, ...] = (None,) * d
    if size is not None:
        if recompute_scale_factor:
            raise ValueError(
                f"{name}: recompute_scale_factor is not meaningful with an explicit size, give scale_factor"
            )
        out = _per_dim(name, "size", size, d)
        if not all(isinstance(k, int | np.integer) for k in out):
            raise TypeError(f"{name}: expected size to be one of int or a list of ints, but got {size!r}")
    else:
        factors = tuple(float(f) for f in _per_dim(name, "scale_factor", scale_factor, d))
        out = tuple(math.floor(n * f) for n, f in zip(have, factors, strict=True))
        if recompute_scale_factor:
            factors = (None,) * d
    out = tuple(int(k) for k in out)
    if antialias and mode not in _KERNELS:
        raise ValueError(f"{name}: Anti-alias option is restricted to {', '.join(_KERNELS)} modes, not {mode}")
    if mode == "lanczos" and not antialias:
        raise ValueError(f"{name}: Lanczos mode requires antialias=True")
    if mode == "lanczos" and align_corners:
        raise ValueError(f"{name}: Lanczos mode does not support align_corners=True")
    if mode == "area":
        return adaptive_mean(name, d, input, out)
    if _DIMS.get(mode, d) != d:
        raise NotImplementedError(
            f"{name}: Got {input.ndim}D input {list(input.shape)}, but {mode} mode needs {_DIMS[mode] + 2}D input"
        )
    _check_sizes(name, input, out)
    return resized(input, mode, out, factors, bool(align_corners), antialias)


def _check_sizes(name: str, x: Tensor, out: tuple[int, ...]) -> None:
    if any(n <= 0 for n in (*x.shape[2:], *out)):
        raise RuntimeError(
            f"{name}: Input and output sizes should be greater than 0, but got input {list(x.shape)} and output size {list(out)}"
        )
    if 0 in x.shape[1:]:
        raise RuntimeError(f"{name}: Non-empty data tensor expected but got input of sizes {list(x.shape)}")


@public("nn.functional.upsample", out=False)
def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """`interpolate`, by its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@public("nn.functional.upsample_nearest", out=False)
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with ``mode="nearest"``."""
    return interpolate(input, size, scale_factor, mode="nearest")


@public("nn.functional.upsample_bilinear", out=False)
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with ``mode="bilinear", align_corners=True``."""
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# -- ATen's names: the size, then align_corners where it has a meaning, then a scale for every dim --------------------------------


def _aten(short: str, mode: str, d: int, antialias: bool = False) -> None:
    names = ([] if mode.startswith("nearest") else ["align_corners"]) + _SCALES[d]

    def resize(input: Tensor, output_size: Any, *rest: Any, scale_factors: Any = None, **kw: Any) -> Tensor:
        if rest and isinstance(
            rest[-1], list | tuple
        ):  # ATen's other form: one list of factors, `output_size` may be None
            *rest, scale_factors = rest  # type: ignore[assignment]
        if len(rest) > len(names) or set(kw) - set(names[len(rest) :]):
            raise TypeError(
                f"{short}(input, output_size, {', '.join(names)}): got {len(rest) + 2} positional arguments and {sorted(kw)}"
            )
        given = dict(zip(names, rest, strict=False)) | kw
        if input.ndim != d + 2:
            raise RuntimeError(
                f"{short}: It is expected input size to be {d + 2}, but got size {input.ndim} ({list(input.shape)})"
            )
        factors = tuple(given.get(k) for k in _SCALES[d]) if scale_factors is None else tuple(scale_factors)
        if (output_size is None) != (scale_factors is not None):
            raise RuntimeError(
                f"{short}: Must specify exactly one of output_size and scale_factors, got {output_size} and {scale_factors}"
            )
        if output_size is None:
            output_size = [math.floor(n * f) for n, f in zip(input.shape[2:], factors, strict=True)]
        if len(output_size) != d:
            raise RuntimeError(f"{short}: It is expected output_size equals to {d}, but got size {len(output_size)}")
        out = tuple(int(k) for k in output_size)
        _check_sizes(short, input, out)
        return resized(input, mode, out, factors, bool(given.get("align_corners", False)), antialias)

    resize.__name__ = resize.__qualname__ = short
    resize.__doc__ = f"``(N, C, *spatial)`` resized to `output_size` ({mode}{', antialiased' if antialias else ''})."
    public(short if antialias else f"_C._nn.{short}", out=False)(keeps_format(resize))


_SCALES = {1: ["scales"], 2: ["scales_h", "scales_w"], 3: ["scales_d", "scales_h", "scales_w"]}
for _d in (1, 2, 3):
    _aten(f"upsample_nearest{_d}d", "nearest", _d)
    _aten(f"_upsample_nearest_exact{_d}d", "nearest-exact", _d)
_aten("upsample_linear1d", "linear", 1)
_aten("upsample_bilinear2d", "bilinear", 2)
_aten("upsample_bicubic2d", "bicubic", 2)
_aten("upsample_trilinear3d", "trilinear", 3)
_aten("_upsample_bilinear2d_aa", "bilinear", 2, True)
_aten("_upsample_bicubic2d_aa", "bicubic", 2, True)


sample("nn.functional.interpolate", S(1, 2, 5), 7)
sample("nn.functional.interpolate", S(1, 1, 3, 4), scale_factor=(1.5, 0.6), mode="nearest-exact")
sample("nn.functional.interpolate", S(1, 1, 4), 9, mode="linear", align_corners=True)
sample("nn.functional.interpolate", S(1, 1, 4, 5), scale_factor=1.7, mode="bilinear", recompute_scale_factor=True)
sample("nn.functional.interpolate", S(1, 1, 4, 5), (3, 7), mode="bicubic", align_corners=False)
sample("nn.functional.interpolate", S(1, 1, 7, 5), (3, 7), mode="bicubic", antialias=True)
sample("nn.functional.interpolate", S(1, 1, 7, 5), (3, 7), mode="bilinear", antialias=True)
sample("nn.functional.interpolate", S(1, 1, 7, 5), (3, 7), mode="lanczos", antialias=True)
sample("nn.functional.interpolate", S(1, 1, 3, 4, 2), 3, mode="trilinear")
sample("nn.functional.interpolate", S(1, 1, 7, 5), (3, 7), mode="area")
sample("_C._nn.upsample_bilinear2d", S(1, 1, 3, 2), (5, 3), True)
