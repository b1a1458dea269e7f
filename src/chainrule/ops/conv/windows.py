"""Sliding windows: ``Tensor.unfold``, ``nn.functional.unfold`` (im2col) and ``fold`` (col2im), each other's transposes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.primitives import clone_p
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import wrap_dim
from ...core.straight import straight
from ...core.tensor import Tensor
from ..shape.in_each import by_sizes
from ..shape.slices import narrow
from ..shape.strided import memory_view
from ..shape.views import reshape
from .convolution import Geometry

# -- windows of one dim -------------------------------------------------------------------------------------------------


@op("unfold", view=True, sizes="n", linear="each")
def unfold_p(x: Any, *, dim: int, size: int, step: int, gap: int, n: int) -> Any:
    """Windows of `size` entries, `gap` apart, every `step` along `dim` (of n entries); the window's axis comes last."""
    axis = x.ndim + dim
    s = x.strides[axis]
    count = _count(n, size, step, gap)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :], size)
    strides = (*x.strides[:axis], s * step, *x.strides[axis + 1 :], s * gap)
    return memory_view(x, shape, strides, 0, "unfold")


def _count(n: int, size: int, step: int, gap: int) -> int:
    return (n - (size - 1) * gap - 1) // step + 1 if size else n // step + 1


@op("refold", sizes="n", moves=True)
def refold_p(g: Any, *, dim: int, size: int, step: int, gap: int, n: int) -> Any:
    """Windows added up where they overlap: the transpose of unfold."""
    axis = g.ndim - 1 + dim
    work = np.float32 if g.dtype in dt.HALVES else g.dtype
    out = np.zeros((*g.shape[:axis], n, *g.shape[axis + 1 : -1]), work)
    count = g.shape[axis]
    key: list[Any] = [slice(None)] * out.ndim
    if size <= count:
        for k in range(size):
            key[axis] = slice(k * gap, k * gap + (count - 1) * step + 1, step)
            out[tuple(key)] += g[..., k]
    else:
        for w in range(count):
            key[axis] = slice(w * step, w * step + (size - 1) * gap + 1, gap)
            out[tuple(key)] += np.moveaxis(g[(slice(None),) * axis + (w,)], -1, axis)
    return out.astype(g.dtype, copy=False)


unfold_p.vjp([lambda g, y, x, **kw: refold_p(g, **kw)])
refold_p.jvp([lambda t, y, g, **kw: refold_p(t, **kw)])
refold_p.vjp([lambda c, y, g, **kw: unfold_p(c, **kw)])


@public("", methods="unfold", out=False)
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of `size` entries, every `step` entries of `dimension`; the window is a new last dim (a view).

    >>> chainrule.arange(5).unfold(0, 3, 1)
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    d = wrap_dim(dimension, self.ndim, "dimension")
    n = self.shape[d] if self.ndim else 1
    if size < 0:
        raise RuntimeError(f"unfold: size is {size} but must be >= 0")
    if size > n:
        raise RuntimeError(f"unfold: maximum size for tensor at dimension {dimension} is {n} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"unfold: step is {step} but must be > 0")
    if not self.ndim:
        if size == 0:
            return narrow(reshape(self, 1), 0, 0, 0)
        return reshape(self, 1)
    return unfold_p(self, dim=d, size=size, step=step, gap=1, n=n)


@public("unfold_copy")
def unfold_copy(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """A copy of ``input.unfold(dimension, size, step)``."""
    return clone_p.bind(unfold(input, dimension, size, step), order="C")


# -- patches of images ----------------------------------------------------------------------------------------------------


def _pair(name: str, what: str, v: Any, least: int) -> tuple[int, int]:
    p = (v, v) if isinstance(v, int) else tuple(v)
    if len(p) == 1:
        p = p * 2
    if len(p) != 2:
        raise RuntimeError(f"{name}: expected {what} to be an int or a pair, got {v!r}")
    if min(p) < least:
        raise RuntimeError(f"{name}: {what} should be {'greater than zero' if least else 'non-negative'}, but got {p}")
    return p


def _settings(name: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    return (
        _pair(name, "kernel_size", kernel_size, 1),
        _pair(name, "dilation", dilation, 1),
        _pair(name, "padding", padding, 0),
        _pair(name, "stride", stride, 1),
    )


@op("patches", linear="each", moves=True)
def patches_p(x: Any, *, geo: Geometry) -> Any:
    """``(..., C, *size) -> (..., C * kernel, patches)``."""
    c = x.shape[-geo.d - 1]
    y = geo.windows(x).reshape(*x.shape[: -geo.d - 1], c * math.prod(geo.kernel), math.prod(geo.output))
    return y.copy() if np.may_share_memory(y, x) else y


@op("add_patches", linear="each", moves=True)
def add_patches_p(y: Any, *, geo: Geometry) -> Any:
    """The transpose of `patches`: what overlaps is added up."""
    work = y.astype(np.float32) if y.dtype in dt.HALVES else y
    c = y.shape[-2] // math.prod(geo.kernel)
    x = geo.add_up(work.reshape(*y.shape[:-2], c, *geo.kernel, *geo.output))
    return np.ascontiguousarray(x).astype(y.dtype, copy=False)


patches_p.vjp([lambda g, y, x, *, geo: add_patches_p(g, geo=geo)])
add_patches_p.vjp([lambda g, x, y, *, geo: patches_p(g, geo=geo)])


@public("nn.functional.unfold im2col", out=False)
@straight
@by_sizes
def im2col(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Patches of images as columns: ``(N, C, H, W) -> (N, C * kh * kw, patches)``."""
    k, d, p, s = _settings("unfold", kernel_size, dilation, padding, stride)
    if input.ndim not in (3, 4) or 0 in input.shape[-3:]:
        raise RuntimeError(
            f"unfold: Expected 3D or 4D (batch mode) input with possibly 0 batch size and other non-zero dimensions, got {list(input.shape)}"
        )
    out = tuple(_count(n + 2 * p1, k1, s1, d1) for n, k1, d1, p1, s1 in zip(input.shape[-2:], k, d, p, s, strict=True))
    if min(out) < 1:
        raise RuntimeError(
            f"unfold: input of shape {list(input.shape)} with kernel_size {k}, dilation {d}, padding {p}, stride {s} gives the "
            f"calculated shape of the array of sliding blocks as {out}, but its components must be at least one"
        )
    return patches_p(input, geo=Geometry(input.shape[-2:], k, out, s, p, d))


@public("nn.functional.fold col2im", out=False)
@straight
@by_sizes
def col2im(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Columns added up to images, the transpose of unfold: ``(N, C * kh * kw, patches) -> (N, C, H, W)``."""
    k, d, p, s = _settings("fold", kernel_size, dilation, padding, stride)
    out = _pair("fold", "output_size", output_size, 1)
    if input.ndim not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError(
            f"fold: expected 2D or 3D (batch mode) input with non-zero dimensions, got {list(input.shape)}"
        )
    rows, patches = input.shape[-2:]
    if rows % (k[0] * k[1]):
        raise RuntimeError(
            f"fold: expected size of input's dimension 1 to be divisible by the product of kernel_size {k}, but got {rows}"
        )
    h, w = out[0] + 2 * p[0], out[1] + 2 * p[1]
    oh, ow = _count(h, k[0], s[0], d[0]), _count(w, k[1], s[1], d[1])
    if oh < 1 or ow < 1 or oh * ow != patches:
        raise RuntimeError(
            f"fold: given output_size {out}, kernel_size {k}, dilation {d}, padding {p}, stride {s}, expected size of input's dimension 2 "
            f"to match the calculated number of sliding blocks {oh} * {ow} = {oh * ow}, but got {patches}"
        )
    return add_patches_p(input, geo=Geometry(out, k, (oh, ow), s, p, d))


sample("Tensor.unfold", S(7, 2), 0, 3, 2)
sample("Tensor.unfold", S(2, 5), 1, 2, 1)
sample("Tensor.unfold", S(6), 0, 0, 2)
sample("unfold_copy", S(3, 8), -1, 5, 3)
sample("nn.functional.unfold", S(2, 2, 5, 4), (2, 3), padding=1, stride=2)
sample("nn.functional.unfold", S(2, 6, 5), 2, dilation=2)
sample("nn.functional.fold", S(1, 8, 12), (4, 5), 2)
