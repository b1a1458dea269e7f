"""The standard's Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..interop.numpy.value import from_numpy
from .call import array, back, check_device

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def _one(name: str) -> Callable[..., Any]:
    g = getattr(np.fft, name)

    def f(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
        return back(g(array(x, name), n=n, axis=axis, norm=norm), x)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"The transform `{name}` along an axis."
    return f


def _many(name: str) -> Callable[..., Any]:
    g = getattr(np.fft, name)

    def f(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
        if s is not None and axes is None:
            axes = tuple(range(-len(s), 0))
        return back(g(array(x, name), s=s, axes=axes, norm=norm), x)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"The transform `{name}` along axes."
    return f


fft, ifft, rfft, irfft, hfft, ihfft = (_one(n) for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = (_many(n) for n in ("fftn", "ifftn", "rfftn", "irfftn"))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of `fft`."""
    check_device(device)
    return from_numpy(np.fft.fftfreq(n, d).astype(np.float64 if dtype is None else np.dtype(dtype)))


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of `rfft`."""
    check_device(device)
    return from_numpy(np.fft.rfftfreq(n, d).astype(np.float64 if dtype is None else np.dtype(dtype)))


def fftshift(x: Any, /, *, axes: Any = None) -> Any:
    """Frequency 0 in the middle."""
    return back(np.fft.fftshift(array(x, "fftshift"), axes), x)


def ifftshift(x: Any, /, *, axes: Any = None) -> Any:
    """Frequency 0 in front."""
    return back(np.fft.ifftshift(array(x, "ifftshift"), axes), x)
