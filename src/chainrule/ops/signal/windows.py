"""Windows for spectral analysis: ``signal.windows`` and the ``*_window`` functions, computed in double precision.

A symmetric window of M points is a function of ``n / (M - 1)``; a periodic one is the symmetric window of M + 1 points
without its last.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.device import strided
from ...core.registry import public
from ...core.tensor import Tensor
from ..shape.create import finish

# -- shapes of windows ------------------------------------------------------------------------------------------------


def _cosines(m: int, periodic: bool, a: Sequence[float]) -> np.ndarray:
    """``a0 - a1 cos(z) + a2 cos(2 z) - ...`` with ``z = 2 pi n / (M - 1)``, or ``/ M`` if periodic."""
    z = 2 * np.pi / (m if periodic else m - 1) * np.arange(m)
    return sum(((-1) ** i * w * np.cos(i * z) for i, w in enumerate(a)), np.zeros(m))


def _triangle(m: int, periodic: bool) -> np.ndarray:
    return 1 - np.abs(2 / (m if periodic else m - 1) * np.arange(m) - 1)


def _bessel(m: int, periodic: bool, beta: float) -> np.ndarray:
    from scipy.special import i0e

    u = 2 / (m if periodic else m - 1) * np.arange(m) - 1
    x = abs(beta) * np.sqrt(np.maximum(1 - u * u, 0))
    # I0(x) / I0(beta) by the scaled function, which cannot overflow.
    return i0e(x) * np.exp(x - abs(beta)) / i0e(beta)


def _short(m: int) -> np.ndarray | None:
    """Windows of no or one point: nothing, and 1."""
    return np.ones(m) if m < 2 else None


# -- signal.windows -----------------------------------------------------------------------------------------------------


def _check(name: str, M: Any, dtype: Any, layout: Any) -> tuple[int, dt.DType]:
    """The length and type of a window of ``signal.windows``."""
    m = operator.index(M)
    if m < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={m}")
    if layout is not None and layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: layout={layout}")
    d = dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)
    if d is not dt.float32 and d is not dt.float64:
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: dtype={d}")
    return m, d


@public("signal.windows.general_cosine", out=False)
def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
                   requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``w[n] = sum_i (-1)^i a[i] cos(2 pi i n / (M - 1))``; ``/ M`` where not `sym`."""
    return _general_cosine("general_cosine", M, a, sym, dtype, layout, device, requires_grad)


def _general_cosine(
    name: str, M: int, a: Any, sym: bool, dtype: Any, layout: Any, device: Any, requires_grad: bool
) -> Tensor:
    m, d = _check(name, M, dtype, layout)
    w = _short(m)
    if w is None:
        if not isinstance(a, Iterable):
            raise TypeError(f"{name}: Coefficients must be a list/tuple, got a={a!r}")
        a = [float(v) for v in a]
        if not a:
            raise ValueError(f"{name}: Coefficients cannot be empty, got a={a!r}")
        w = _cosines(m, not sym, a)
    return finish(w, d, requires_grad, device)


@public("signal.windows.general_hamming", out=False)
def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
                    requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``w[n] = alpha - (1 - alpha) cos(2 pi n / (M - 1))``; ``/ M`` where not `sym`."""
    return _general_cosine("general_hamming", M, [alpha, 1 - alpha], sym, dtype, layout, device, requires_grad)


def _fixed(name: str, doc: str, a: list[float]) -> None:
    def window(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False) -> Tensor:  # fmt: skip
        return _general_cosine(name, M, a, sym, dtype, layout, device, requires_grad)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"``w[n] = {doc}``, ``z = 2 pi n / (M - 1)``, or ``/ M`` where not `sym`."
    public(f"signal.windows.{name}", out=False)(window)


_fixed("hamming", "0.54 - 0.46 cos(z)", [0.54, 0.46])
_fixed("hann", "(1 - cos(z)) / 2", [0.5, 0.5])
_fixed("blackman", "0.42 - 0.5 cos(z) + 0.08 cos(2 z)", [0.42, 0.5, 0.08])
_fixed(
    "nuttall",
    "0.3635819 - 0.4891775 cos(z) + 0.1365995 cos(2 z) - 0.0106411 cos(3 z)",
    [0.3635819, 0.4891775, 0.1365995, 0.0106411],
)


@public("signal.windows.bartlett", out=False)
def bartlett(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``w[n] = 1 - |2 n / (M - 1) - 1|``; ``/ M`` where not `sym`."""
    m, d = _check("bartlett", M, dtype, layout)
    w = _short(m)
    return finish(_triangle(m, not sym) if w is None else w, d, requires_grad, device)


@public("signal.windows.cosine", out=False)
def cosine(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``w[n] = sin(pi (n + 1/2) / M)``; ``/ (M + 1)`` where not `sym`."""
    m, d = _check("cosine", M, dtype, layout)
    points = m + (not sym and m > 1)
    return finish(np.sin(np.pi / max(points, 1) * (np.arange(m) + 0.5)), d, requires_grad, device)


def _middle(m: int, sym: bool) -> float:
    return (m if not sym and m > 1 else m - 1) / 2


@public("signal.windows.exponential", out=False)
def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None,
                device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``w[n] = exp(-|n - center| / tau)``; the center is ``(M - 1) / 2``, or ``M / 2`` where not `sym`."""
    m, d = _check("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"exponential: Tau must be positive, got: tau={tau} instead.")
    if sym and center is not None:
        raise ValueError(
            f"exponential: Center must be None for symmetric windows, got center={center}; use sym=False with it"
        )
    c = _middle(m, sym) if center is None else center
    return finish(np.exp(-np.abs(np.arange(m) - c) / tau), d, requires_grad, device)


@public("signal.windows.gaussian", out=False)
def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``w[n] = exp(-(n - c)^2 / (2 std^2))`` with c = ``(M - 1) / 2``, or ``M / 2`` where not `sym`."""
    m, d = _check("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"gaussian: Standard deviation must be positive, got: std={std} instead.")
    k = (np.arange(m) - _middle(m, sym)) / (std * math.sqrt(2))
    return finish(np.exp(-k * k), d, requires_grad, device)


@public("signal.windows.kaiser", out=False)
def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``w[n] = I0(beta sqrt(1 - u^2)) / I0(beta)`` with ``u = 2 n / (M - 1) - 1``, or ``/ M`` where not `sym`."""
    m, d = _check("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"kaiser: beta must be non-negative, got: {beta} instead.")
    w = _short(m)
    return finish(_bessel(m, not sym, beta) if w is None else w, d, requires_grad, device)


# -- functions of the length --------------------------------------------------------------------------------------------


def _named(
    name: str, window_length: Any, dtype: Any, layout: Any, shape: Any, requires_grad: bool, device: Any
) -> Tensor:
    try:
        m = operator.index(window_length)
    except TypeError:
        raise TypeError(f"{name}: argument 'window_length' must be int, not {type(window_length).__name__}") from None
    if m < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={m}")
    if layout is not None and layout is not strided:
        raise RuntimeError(f"{name} is not implemented for sparse types, got: layout={layout}")
    d = dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)
    if d.category != dt.FLOAT:
        raise RuntimeError(f"{name} expects floating point dtypes, got: dtype={d}")
    w = _short(m)
    a = shape(m) if w is None else w
    if isinstance(a, Tensor):
        raise TypeError(
            f"{name}: the window's parameter must be a number, got a tensor; it has no derivative, write float(...) of it"
        )
    return finish(a, d, requires_grad, device)


@public("hann_window", out=False)
def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
                pin_memory: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``w[n] = (1 - cos(2 pi n / N)) / 2``, N the length if `periodic`, else one less.

    >>> chainrule.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _named("hann_window", window_length, dtype, layout, lambda m: _cosines(m, periodic, (0.5, 0.5)), requires_grad, device)  # fmt: skip


@public("hamming_window", out=False)
def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None,
                   layout: Any = None, device: Any = None, pin_memory: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``w[n] = alpha - beta cos(2 pi n / N)``, N the length if `periodic`, else one less."""
    return _named("hamming_window", window_length, dtype, layout, lambda m: _cosines(m, periodic, (alpha, beta)), requires_grad, device)  # fmt: skip


@public("blackman_window", out=False)
def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
                    pin_memory: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``w[n] = 0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)``, N the length if `periodic`, else one less."""
    return _named("blackman_window", window_length, dtype, layout, lambda m: _cosines(m, periodic, (0.42, 0.5, 0.08)), requires_grad, device)  # fmt: skip


@public("bartlett_window", out=False)
def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
                    pin_memory: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``w[n] = 1 - |2 n / N - 1|``, N the length if `periodic`, else one less."""
    return _named("bartlett_window", window_length, dtype, layout, lambda m: _triangle(m, periodic), requires_grad, device)  # fmt: skip


@public("kaiser_window", out=False)
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, layout: Any = None,
                  device: Any = None, pin_memory: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``w[n] = I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta)``, N the length if `periodic`, else one less."""
    return _named("kaiser_window", window_length, dtype, layout, lambda m: _bessel(m, periodic, beta), requires_grad, device)  # fmt: skip
