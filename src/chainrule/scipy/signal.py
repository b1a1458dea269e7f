"""scipy.signal: convolutions in any number of dimensions."""

from __future__ import annotations

from typing import Any

from ..core.registry import PUBLIC
from .kinds import on_tensors


@on_tensors(2)
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The convolution of two arrays, by Fourier transforms over all axes."""
    if in1.ndim != in2.ndim:
        raise ValueError(
            f"convolve: both arrays must have the same number of dimensions, got {in1.ndim} and {in2.ndim}"
        )
    full = tuple([a + b - 1 for a, b in zip(in1.shape, in2.shape, strict=True)])
    axes = tuple(range(in1.ndim))
    if in1.dtype.is_complex or in2.dtype.is_complex:
        y = PUBLIC["fft.ifftn"](PUBLIC["fft.fftn"](in1, full, axes) * PUBLIC["fft.fftn"](in2, full, axes), full, axes)
    else:
        y = PUBLIC["fft.irfftn"](
            PUBLIC["fft.rfftn"](in1, full, axes) * PUBLIC["fft.rfftn"](in2, full, axes), full, axes
        )
    if mode == "full":
        return y
    for k, (a, b) in enumerate(zip(in1.shape, in2.shape, strict=True)):
        n = a if mode == "same" else max(a, b) - min(a, b) + 1
        start = (b - 1) // 2 if mode == "same" else min(a, b) - 1
        y = y.narrow(k, start, n)
    return y


fftconvolve = convolve


@on_tensors(2)
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """Products of one array with the conjugate of the shifts of another, summed."""
    if mode == "valid" and any(a < b for a, b in zip(in1.shape, in2.shape, strict=True)):
        return correlate(in2, in1, mode).flip(tuple(range(in1.ndim))).conj()
    v = in2.flip(tuple(range(in2.ndim)))
    return convolve(in1, v.conj() if v.dtype.is_complex else v, mode)
