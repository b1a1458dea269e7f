"""numpy.fft on Arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.registry import PUBLIC
from .functions import native
from .shadow import NATIVE, function
from .value import Array, as_constant, cast, dtype_of, wrap


def _float(a: Any) -> Any:
    x = wrap(as_constant(a, "fft"))
    if x._d == np.float16:
        return cast(x._t, np.dtype(np.float32))
    return x._t if x._d.kind in "fc" else cast(x._t, np.dtype(float))


def _one(name: str) -> None:
    f = PUBLIC[f"fft.{name}"]

    def transform(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Array:
        y = wrap(f(_float(a), n, axis, norm or "backward"))
        return y.astype(np.float16) if name in ("irfft", "hfft") and dtype_of(a) == np.float16 else y

    native(getattr(np.fft, name))(transform)


def _many(name: str) -> None:
    f = PUBLIC[f"fft.{name}"]
    two = name.endswith("2")

    def transform(
        a: Any, s: Any = None, axes: Any = (-2, -1) if two else None, norm: Any = None, out: Any = None
    ) -> Array:
        t = _float(a)
        if s is not None and axes is None:
            axes = tuple(range(-len(s), 0))
        if two and axes is None:
            return wrap(PUBLIC[f"fft.{name[:-1]}n"](t, s, axes, norm or "backward"))
        return wrap(f(t, None if s is None else tuple(s), None if axes is None else tuple(axes), norm or "backward"))

    native(getattr(np.fft, name))(transform)


for _n in "fft ifft rfft irfft hfft ihfft".split():
    _one(_n)
for _n in "fft2 ifft2 fftn ifftn rfft2 irfft2 rfftn irfftn".split():
    _many(_n)
for _f in (np.fft.fftshift, np.fft.ifftshift):
    NATIVE[_f] = function(_f)
