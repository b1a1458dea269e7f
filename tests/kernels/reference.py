"""Plain NumPy bodies of the kernels, in float64, and the measure of error the tests use."""

from __future__ import annotations

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
TYPES = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), BF16]
BITS = {"float32": (24, -126), "float64": (53, -1022), "float16": (11, -14), "bfloat16": (8, -126)}


def last_place(want: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The unit in the last place that a value has in a type."""
    digits, low = BITS[dtype.name]
    exponent = np.floor(np.log2(np.maximum(np.abs(want), 1e-300)))
    return 2.0 ** (np.maximum(exponent, low) - digits + 1)


def close(got: np.ndarray, want: np.ndarray, scale: float | np.ndarray = 1.0, factor: float = 8.0) -> bool:
    """Within a rounding error of the float64 value; `scale` is the size of the terms that it is a sum of.

    16-bit results: within one unit in the last place of that type, plus what float64 itself leaves open where terms cancel.
    Others: within `factor` roundings of the terms.
    """
    assert got.shape == want.shape, (got.shape, want.shape)
    error, size = np.abs(got.astype(np.float64) - want), np.maximum(np.abs(want), scale)
    if got.dtype.itemsize == 2:
        return bool(np.all(error <= last_place(want, got.dtype) + 64 * np.finfo(np.float64).eps * size))
    return bool(np.all(error <= factor * np.finfo(got.dtype).eps * size))


def weight_norm(v, g, axes):
    norm = np.sqrt((v * v).sum(axes, keepdims=True))
    return v * g / norm, norm


def weight_norm_backward(gw, v, g, norm, axes, gn=0.0):
    s = (gw * v).sum(axes, keepdims=True)
    return g / norm * (gw - v * s / norm**2) + gn * v / norm, s / norm


def normalise(x, axes, eps, center=True):
    """h, mean, rstd, variance over the axes"""
    m = x.mean(axes, keepdims=True) if center else 0.0
    var = ((x - m) ** 2).mean(axes, keepdims=True)
    r = 1 / np.sqrt(var + eps)
    return (x - m) * r, m, r, var


def normalise_backward(u, h, r, axes, gm=0.0, gr=0.0, center=True):
    """The cotangent of x from that of h, mean and rstd"""
    n = np.prod([h.shape[a] for a in axes])
    p = u - h * (u * h).mean(axes, keepdims=True)
    if center:
        p = p - u.mean(axes, keepdims=True)
    return r * p + (gm - gr * r * r * h) / n
