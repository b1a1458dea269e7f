"""scipy.ndimage: linear filters, differentiable in the image, in the weights and in the widths of Gaussians.

A filter is a product: the image, extended at its edges as `mode` says, seen through a window that moves along it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.registry import PUBLIC
from ..core.tensor import Tensor
from .kinds import floating, hand_out, kind_of, value

_CONSTANT = ("constant", "grid-constant")


def _of_tensors(f: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that is SciPy's own where no derivative is involved."""

    @functools.wraps(f)
    def call(input: Any, *args: Any, **kw: Any) -> Any:
        kind = kind_of(input, *args, *kw.values())
        if kind == "ndarray":
            import scipy.ndimage

            return getattr(scipy.ndimage, f.__name__)(input, *args, **kw)
        if kw.pop("output", None) is not None:
            raise TypeError(f"{f.__name__}: output= is not taken inside a transform; use the result")
        return hand_out(f(floating(input), *args, **kw), kind)

    return call


def _places(n: int, before: int, after: int, mode: str) -> np.ndarray:
    """The elements of an axis of `n` that stand at -before ... n + after - 1."""
    at = np.arange(-before, n + after)
    if mode in ("reflect", "grid-mirror"):
        at = at % (2 * n)
        return np.where(at < n, at, 2 * n - 1 - at)
    if mode == "mirror":
        at = at % max(2 * n - 2, 1)
        return np.where(at < n, at, 2 * n - 2 - at)
    if mode == "nearest":
        return at.clip(0, n - 1)
    if mode in ("wrap", "grid-wrap"):
        return at % n
    raise ValueError(
        f"boundary mode {mode!r} is not known; there are reflect, mirror, nearest, wrap, constant and their grid- forms"
    )


def _windows(x: Tensor, axis: int, size: int, mode: str, cval: float, origin: int) -> Tensor:
    """What a window of `size` elements sees at each place of an axis: as a last dimension."""
    if not -(size // 2) <= origin <= (size - 1) // 2:
        raise ValueError("invalid origin")
    before = size // 2 + origin
    after = size - 1 - before
    if mode in _CONSTANT:
        pads = [0, 0] * (x.ndim - 1 - axis) + [before, after]
        x = PUBLIC["constant_pad_nd"](x, pads, cval)
    else:
        x = x[(slice(None),) * axis + (Tensor(_places(x.shape[axis], before, after, mode)),)]
    return x.unfold(axis, size, 1)


def _correlate(x: Tensor, weights: Any, axis: int, mode: str, cval: float, origin: int) -> Tensor:
    w = floating(weights)
    if w.ndim != 1 or not w.numel():
        raise RuntimeError(f"filter weights must be a sequence of numbers, got shape {tuple(w.shape)}")
    w = w if w.dtype.is_complex else w.to(x.dtype)
    return PUBLIC["matmul"](_windows(x, axis % x.ndim, w.shape[0], mode, cval, origin), w)


@_of_tensors
def correlate1d(
    input: Any, weights: Any, axis: int = -1, mode: str = "reflect", cval: float = 0.0, origin: int = 0
) -> Any:
    """``y[i] = sum_j w[j] x[i + j - len(w) // 2 - origin]`` along an axis."""
    return _correlate(input, weights, axis, mode, cval, origin)


def _mirrored(size: int, origin: int) -> int:
    """The origin of the reversed window."""
    return -origin - (size % 2 == 0)


@_of_tensors
def convolve1d(
    input: Any, weights: Any, axis: int = -1, mode: str = "reflect", cval: float = 0.0, origin: int = 0
) -> Any:
    """`correlate1d` with the weights reversed."""
    w = floating(weights).flip(0)
    return _correlate(input, w, axis, mode, cval, _mirrored(w.shape[0], origin))


def _each(v: Any, n: int) -> list[Any]:
    """One setting for each axis."""
    if isinstance(v, str) or not np.iterable(v):
        return [v] * n
    v = list(v)
    if len(v) != n:
        raise RuntimeError(f"sequence argument must have length equal to the number of axes, {n}, got {len(v)}")
    return v


def _whole(x: Tensor, weights: Any, mode: Any, cval: float, origin: Any, reverse: bool) -> Tensor:
    w = floating(weights)
    if w.ndim != x.ndim:
        raise RuntimeError(f"filter weights array has incorrect shape: {w.ndim} dimensions, the input has {x.ndim}")
    origins = _each(origin, x.ndim)
    if reverse:
        w = w.flip(tuple(range(w.ndim)))
        origins = [_mirrored(n, o) for n, o in zip(w.shape, origins, strict=True)]
    w = w if w.dtype.is_complex else w.to(x.dtype)
    n = x.ndim
    for k, (size, m, o) in enumerate(zip(w.shape, _each(mode, n), origins, strict=True)):
        x = _windows(x, k, size, m, cval, o)
    return PUBLIC["tensordot"](x, w, dims=(list(range(n, 2 * n)), list(range(n))))


@_of_tensors
def correlate(input: Any, weights: Any, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0) -> Any:
    """The sum of the weights times what stands around each place."""
    return _whole(input, weights, mode, cval, origin, False)


@_of_tensors
def convolve(input: Any, weights: Any, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0) -> Any:
    """`correlate` with the weights reversed."""
    return _whole(input, weights, mode, cval, origin, True)


def _gaussian(
    x: Tensor, sigma: Any, axis: int, order: int, mode: str, cval: float, truncate: float, radius: Any
) -> Tensor:
    if order < 0:
        raise ValueError("order must be non-negative")
    s = floating(sigma).to(x.dtype)
    r = int(truncate * float(value(s)) + 0.5) if radius is None else int(radius)
    at = Tensor(np.arange(-r, r + 1).astype(x.dtype.np))
    w = (-0.5 * (at / s) ** 2).exp()
    w = w / w.sum()
    # The n-th derivative of a Gaussian is itself times a polynomial.
    q: list[Any] = [1.0]
    for _ in range(order):
        slope = [k * c for k, c in enumerate(q)][1:] + [0.0, 0.0]
        q = [a - b / (s * s) for a, b in zip(slope, [0.0, *q], strict=True)]
    if order:
        w = w * sum((c * at**k for k, c in enumerate(q)), start=at * 0)
    return _correlate(x, w.flip(0), axis, mode, cval, 0)


@_of_tensors
def gaussian_filter1d(
    input: Any, sigma: Any, axis: int = -1, order: int = 0, mode: str = "reflect", cval: float = 0.0, truncate: float = 4.0, *,
    radius: Any = None,
) -> Any:  # fmt: skip
    """A Gaussian of width `sigma` along an axis, or one of its derivatives."""
    return _gaussian(input, sigma, axis, order, mode, cval, truncate, radius)


def _axes(x: Tensor, axes: Any) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if axes is None else tuple(k % x.ndim for k in np.atleast_1d(axes))


def _widths(sigma: Any, n: int) -> list[Any]:
    if getattr(sigma, "ndim", 0) or isinstance(sigma, list | tuple):
        return [sigma[k] for k in range(n)] if len(sigma) == n else _each(sigma, n)
    return [sigma] * n


@_of_tensors
def gaussian_filter(
    input: Any, sigma: Any, order: Any = 0, mode: Any = "reflect", cval: float = 0.0, truncate: float = 4.0, *,
    radius: Any = None, axes: Any = None,
) -> Any:  # fmt: skip
    """A Gaussian of width `sigma` along each axis."""
    along = _axes(input, axes)
    n = len(along)
    each = zip(along, _widths(sigma, n), _each(order, n), _each(mode, n), _each(radius, n), strict=True)
    for k, s, o, m, r in each:
        if not isinstance(s, int | float) or s > 1e-15:
            input = _gaussian(input, s, k, o, m, cval, truncate, r)
    return input


@_of_tensors
def uniform_filter1d(
    input: Any, size: int, axis: int = -1, mode: str = "reflect", cval: float = 0.0, origin: int = 0
) -> Any:
    """The mean of `size` neighbours along an axis."""
    return _correlate(input, np.full(size, 1.0 / size), axis, mode, cval, origin)


@_of_tensors
def uniform_filter(
    input: Any, size: Any = 3, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None
) -> Any:
    """The mean of `size` neighbours along each axis."""
    along = _axes(input, axes)
    n = len(along)
    for k, s, m, o in zip(along, _each(size, n), _each(mode, n), _each(origin, n), strict=True):
        input = _correlate(input, np.full(s, 1.0 / s), k, m, cval, o)
    return input


def _edges(x: Tensor, axis: int, mode: Any, cval: float, across: list[float]) -> Tensor:
    modes = _each(mode, x.ndim)
    axis %= x.ndim
    x = _correlate(x, [-1.0, 0.0, 1.0], axis, modes[axis], cval, 0)
    for k in range(x.ndim):
        if k != axis:
            x = _correlate(x, across, k, modes[k], cval, 0)
    return x


@_of_tensors
def sobel(input: Any, axis: int = -1, mode: Any = "reflect", cval: float = 0.0) -> Any:
    """Sobel's filter: differences along an axis, weighted means across it."""
    return _edges(input, axis, mode, cval, [1.0, 2.0, 1.0])


@_of_tensors
def prewitt(input: Any, axis: int = -1, mode: Any = "reflect", cval: float = 0.0) -> Any:
    """Prewitt's filter: differences along an axis, sums across it."""
    return _edges(input, axis, mode, cval, [1.0, 1.0, 1.0])


@_of_tensors
def laplace(input: Any, mode: Any = "reflect", cval: float = 0.0, *, axes: Any = None) -> Any:
    """The sum of second differences."""
    along = _axes(input, axes)
    return sum(
        _correlate(input, [1.0, -2.0, 1.0], k, m, cval, 0) for k, m in zip(along, _each(mode, len(along)), strict=True)
    )


def _derivatives(x: Tensor, sigma: Any, order: int, mode: Any, cval: float, axes: Any, kw: Any) -> list[Tensor]:
    """The derivatives along each axis of the image seen through a Gaussian."""
    along = _axes(x, axes)
    n = len(along)
    out = []
    for k in range(n):
        y = x
        for j, s, m in zip(along, _widths(sigma, n), _each(mode, n), strict=True):
            y = _gaussian(y, s, j, order if j == along[k] else 0, m, cval, kw.get("truncate", 4.0), kw.get("radius"))
        out.append(y)
    return out


@_of_tensors
def gaussian_laplace(
    input: Any, sigma: Any, mode: Any = "reflect", cval: float = 0.0, *, axes: Any = None, **kw: Any
) -> Any:
    """The sum of second derivatives of the image seen through a Gaussian."""
    return sum(_derivatives(input, sigma, 2, mode, cval, axes, kw))


@_of_tensors
def gaussian_gradient_magnitude(
    input: Any, sigma: Any, mode: Any = "reflect", cval: float = 0.0, *, axes: Any = None, **kw: Any
) -> Any:
    """The length of the gradient of the image seen through a Gaussian."""
    s = sum(y * y for y in _derivatives(input, sigma, 1, mode, cval, axes, kw))
    flat = s == 0
    return PUBLIC["where"](flat, 0.0, PUBLIC["where"](flat, 1.0, s).sqrt())


def __getattr__(name: str) -> Any:
    import scipy.ndimage

    return getattr(scipy.ndimage, name)


__all__ = [
    "convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter", "gaussian_filter1d", "gaussian_gradient_magnitude",
    "gaussian_laplace", "laplace", "prewitt", "sobel", "uniform_filter", "uniform_filter1d",
]  # fmt: skip
