"""Reading images between their pixels: grid_sample and affine_grid, as compositions.

Along every spatial dim a point reads one (nearest), two (linear) or four (cubic) entries. The places are integers, without
derivative; the weights are polynomials of the point's distance to them, so derivatives in the grid follow, of every order.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import pointwise
from ...core.errors import ZERO
from ...core.primitives import permute_p
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.select import where_p
from ..linalg.matmul import matmul
from ..shape.views import reshape
from .gathers import gather_sum_p
from .pool_sum import widened
from .resample import cubic_weights

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")

# -- coordinates --------------------------------------------------------------------------------------------------------------

nearbyint = pointwise("nearbyint", np.rint, ZERO, types="none", doc="The nearest integer, the even one of two.")
unit = pointwise(
    "unit", np.ones_like, ZERO, types="none", doc="One, whatever the argument: its derivative is zero, not missing."
)


def _clipped(c: Tensor, n: int) -> Tensor:
    """`c` between 0 and n - 1; flat outside and at the edges, and 0 for what is not a number."""
    return where_p.bind(c > 0, where_p.bind(c < n - 1, c, float(n - 1)), 0.0)


def _reflected(c: Tensor, n: int, align: bool) -> Tensor:
    """`c` mirrored at the centres (align) or the outer edges of the first and last pixel, as often as needed."""
    low, span = (0.0, float(n - 1)) if align else (-0.5, float(n))
    if span == 0:
        return _clipped(c, 1)
    away = where_p.bind(c < low, low - c, c - low)
    flips = (away / span).floor().detach()
    rest = away - flips * span
    odd = (flips * 0.5).floor() * 2 != flips
    return _clipped(where_p.bind(odd, span - rest, rest) + low, n)


def _padded(c: Tensor, n: int, padding: str, align: bool) -> Tensor:
    if padding == "border":
        return _clipped(c, n)
    return _reflected(c, n, align) if padding == "reflection" else c


def _reads(c: Tensor, n: int, mode: str, padding: str, align: bool) -> tuple[list[Tensor], list[Any]]:
    """The places (whole floats, perhaps outside) that a point at `c` reads along a dim of n entries, and the weights."""
    if mode == "bicubic":
        # Beyond reach of the image nothing changes any more, except by reflection.
        c = c if padding == "reflection" else c.clamp(-4.0, n + 4.0)
        low = c.detach().floor()
        places = [_padded(low + float(k), n, padding, align) for k in (-1, 0, 1, 2)]
        return places, cubic_weights(c - low, -0.75)
    c = _padded(c, n, padding, align)
    if padding == "zeros":
        c = where_p.bind((c < -2.0) | (c > n + 1.0), -2.0, c)
    if mode == "nearest":
        c = where_p.bind(c == c, c, -2.0)
        return [nearbyint.bind(c.detach())], [unit.bind(c)]
    low = c.detach().floor()
    t = c - low
    return [low, low + 1.0], [1 - t, t]


def _unnormalised(g: Tensor, n: int, align: bool) -> Tensor:
    """-1..1 as 0..n-1 between the centres of the outer pixels (align), or as -1/2..n-1/2 between their edges."""
    return (g + 1) * ((n - 1) / 2) if align else ((g + 1) * n - 1) / 2


def _sampled(x: Tensor, grid: Tensor, mode: str, padding: str, align: bool) -> Tensor:
    """``(N, C, *size), (N, *out, d) -> (N, C, *out)``."""
    d = x.ndim - 2
    size, out = tuple(x.shape[2:]), tuple(grid.shape[1:-1])
    batch, channels, pixels, points = x.shape[0], x.shape[1], math.prod(size), math.prod(out)
    place: Any = None  # (N, reads, points)
    weight: Any = None
    outside: Any = None  # a point that is not a number is not outside: it reads NaN
    for k, n in enumerate(size):
        c = reshape(_unnormalised(grid.select(-1, d - 1 - k), n, align), batch, *(1,) * d, points)
        places, weights = _reads(c, n, mode, padding, align)
        i = _joined(places, k - d - 1)
        if padding == "zeros":
            out_of = (i < 0.0) | (i > float(n - 1))
            outside = out_of if outside is None else outside | out_of
        i = _clipped(i, n).to(dt.int64)
        place = i if place is None else place * n + i
        w = _joined(weights, k - d - 1)
        weight = w if weight is None else weight * w
    if outside is not None:
        # What lies outside is not read at all, so that an infinite pixel stays where it is.
        place = where_p.bind(outside, -1, place)
    reads = math.prod(place.shape[1:-1])
    place = reshape(place, batch, reads, points)
    weight = reshape(weight, batch, reads, points)
    y = gather_sum_p(reshape(x, batch, channels, pixels), weight, place, entries=pixels)
    return reshape(y, batch, channels, *out)


def _joined(parts: list[Tensor], axis: int) -> Tensor:
    from ..shape.slices import cat

    return cat(parts, axis) if len(parts) > 1 else parts[0]


# -- PyTorch's names ------------------------------------------------------------------------------------------------------------


def _check(name: str, x: Any, grid: Any, mode: str) -> None:
    for what, v in (("input", x), ("grid", grid)):
        if not isinstance(v, Tensor):
            raise TypeError(f"{name}: {what} must be a tensor, got {type(v).__name__}")
    if x.dtype is not grid.dtype:
        raise RuntimeError(
            f"{name}: expected input and grid to have same dtype, but input is {x.dtype} and grid is {grid.dtype}"
        )
    shapes = f"input {list(x.shape)} and grid {list(grid.shape)}"
    if x.shape[0] != grid.shape[0]:
        raise RuntimeError(f"{name}: expected grid and input to have same batch size, but got {shapes}")
    if grid.shape[-1] != x.ndim - 2:
        raise RuntimeError(f"{name}: expected grid to have size {x.ndim - 2} in last dimension, but got {shapes}")
    if x.ndim not in (4, 5) or grid.ndim != x.ndim:
        raise RuntimeError(f"{name}: expected 4D or 5D input and grid with same number of dimensions, but got {shapes}")
    if 0 in x.shape[1:]:
        raise RuntimeError(
            f"{name}: expected input to have non-empty spatial dimensions and channels, but got {shapes}"
        )
    if mode == "bicubic" and x.ndim == 5:
        raise RuntimeError(f"{name}: bicubic interpolation only supports 4D input, got {shapes}")


@public("nn.functional.grid_sample", out=False)
@straight
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """``(N, C, *size)`` read at the points `grid` ``(N, *out, d)``, each (x, y[, z]) from -1 to 1 over the image: ``(N, C, *out)``.

    `mode`: bilinear, nearest, bicubic. `padding_mode`: what lies outside is zeros, the border, or a reflection.
    """
    if mode not in MODES:
        raise ValueError(f"grid_sample: expected mode to be one of {', '.join(MODES)}, but got: {mode!r}")
    if padding_mode not in PADDINGS:
        raise ValueError(
            f"grid_sample: expected padding_mode to be one of {', '.join(PADDINGS)}, but got: {padding_mode!r}"
        )
    _check("grid_sample", input, grid, mode)
    return _sampled(widened(input), widened(grid), mode, padding_mode, bool(align_corners)).to(input.dtype)


@public("grid_sampler grid_sampler_2d grid_sampler_3d _grid_sampler_2d_cpu_fallback", out=False)
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`grid_sample` with modes as numbers: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""
    if interpolation_mode not in (0, 1, 2) or padding_mode not in (0, 1, 2):
        raise RuntimeError(
            f"grid_sampler: interpolation_mode and padding_mode must be 0, 1 or 2, got {interpolation_mode} and {padding_mode}"
        )
    return grid_sample(input, grid, MODES[interpolation_mode], PADDINGS[padding_mode], align_corners)


def _centres(n: int, align: bool, kind: Any) -> np.ndarray:
    """The centres of n pixels over -1..1, whose ends are centres of the outer pixels (align) or their edges."""
    if n == 1:
        return np.zeros(1, kind)
    c = np.linspace(-1, 1, n)
    return (c if align else c * (n - 1) / n).astype(kind)


@public("nn.functional.affine_grid", out=False)
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The points ``theta @ (x, y[, z], 1)`` over the pixels of an image of `size` ``(N, C, *spatial)``, for grid_sample."""
    name = "affine_grid"
    if not isinstance(theta, Tensor) or theta.dtype.category != dt.FLOAT:
        got = theta.dtype if isinstance(theta, Tensor) else type(theta).__name__
        raise ValueError(f"{name}: Expected theta to have floating point type, but got {got}")
    size = tuple(int(k) for k in size)
    d = len(size) - 2
    if d not in (2, 3):
        raise NotImplementedError(
            f"{name} only supports 4D and 5D sizes, for 2D and 3D affine transforms. Got size {size}."
        )
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (d, d + 1):
        raise ValueError(
            f"{name}: Expected a batch of {d}D affine matrices of shape Nx{d}x{d + 1} for size {size}. Got theta {list(theta.shape)}."
        )
    if min(size) <= 0:
        raise ValueError(f"{name}: expected non-zero, positive output size. Got {size}")
    if theta.shape[0] != size[0]:
        raise RuntimeError(f"{name}: size {size} and theta {list(theta.shape)} differ in the batch")
    if align_corners and min(size[2:]) == 1:
        warnings.warn(
            f"{name}: with align_corners=True a dim of one pixel has its centre at 0; with align_corners=False its pixel spans the whole range. "
            f"See the documentation of affine_grid for details.",
            stacklevel=2,
        )
    wide = widened(theta)
    kind = wide.dtype.np
    axes = np.meshgrid(*[_centres(n, bool(align_corners), kind) for n in size[2:]], indexing="ij")
    base = np.stack([*reversed(axes), np.ones_like(axes[0])], -1).reshape(-1, d + 1)
    y = matmul(Tensor(base), permute_p(wide, dims=(-3, -1, -2)))
    return reshape(y, size[0], *size[2:], d).to(theta.dtype)


@public("affine_grid_generator", out=False)
def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """`affine_grid`, by ATen's name."""
    return affine_grid(theta, size, align_corners)


# -- samples --------------------------------------------------------------------------------------------------------------------

_FAR = np.array([[[[-0.9, 0.3], [1.7, -2.6]], [[0.13, 4.4], [-9.3, 0.21]]]])
for _mode in MODES:
    for _pad in PADDINGS:
        sample("nn.functional.grid_sample", S(1, 2, 3, 4), Given(_FAR, grad=True), _mode, _pad, cx=False)
sample("nn.functional.grid_sample", S(1, 1, 3, 4), Given(_FAR, grad=True), "bilinear", "reflection", True, cx=False)
sample("nn.functional.grid_sample", S(2, 1, 2, 3, 4), S(2, 1, 3, 2, 3), align_corners=True, cx=False)
sample("nn.functional.affine_grid", S(2, 2, 3), (2, 1, 3, 4), True, cx=False)
sample("nn.functional.affine_grid", S(1, 3, 4), (1, 1, 2, 1, 3), cx=False)
