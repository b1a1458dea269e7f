"""Short-time Fourier transforms: the transforms of overlapping windows of a signal, and the signal back from them."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.dispatch import look
from ...core.primitives import expand_p, permute_p
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import constant
from ...core.tensor import Tensor
from ..conv.windows import refold_p, unfold_p
from ..elementwise.arithmetic import need_tensors
from ..elementwise.complex import view_as_real
from ..shape.pad import constant_pad_p, pad
from ..shape.slices import narrow, slice_p
from ..shape.views import reshape
from .fourier import c2c_p, c2r_p, floating, r2c_p


def _int(name: str, what: str, v: Any, default: int = 0) -> int:
    try:
        return default if v is None else operator.index(v)
    except TypeError:
        raise TypeError(f"{name}: argument '{what}' must be int, not {type(v).__name__}") from None


def _window(name: str, window: Tensor | None, win_length: int, n_fft: int, d: dt.DType) -> Tensor | None:
    """The window filled up with zeros on both sides to `n_fft` entries; None where all of it is 1."""
    if window is not None:
        need_tensors(name, window=window)
        if tuple(window.shape) != (win_length,):
            raise RuntimeError(
                f"{name}: expected a 1D window tensor of size equal to win_length={win_length}, but got window with size {list(window.shape)}"
            )
    elif win_length == n_fft:
        return None
    else:
        window = Tensor(np.ones(win_length, d.to_real().np))
    if win_length == n_fft:
        return window
    left = (n_fft - win_length) // 2
    return constant_pad_p(window, pads=((left, n_fft - win_length - left),), value=0)


@public("stft", methods="stft", out=False)
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """``y[k, m] = sum_n window[n] x[m hop_length + n] exp(-2 pi i k n / n_fft)``: frequencies k of the frames m of a signal.

    `input` is a signal or a batch of them, ``(L)`` or ``(B, L)``. With `center` the signal is first padded by ``n_fft // 2`` on
    both sides (`pad_mode`), so that frame m has ``x[m hop_length]`` in its middle. `normalized` divides by ``sqrt(n_fft)``;
    `onesided` (the default for real signals) keeps ``k <= n_fft / 2``. Without `return_complex` real and imaginary part are a last
    dim of size 2. `align_to_window` lets the first window, not the first frame, begin with the signal.
    """
    need_tensors("stft", input=input)
    n_fft = _int("stft", "n_fft", n_fft)
    hop = _int("stft", "hop_length", hop_length, n_fft // 4)
    win = _int("stft", "win_length", win_length, n_fft)
    x = input
    if x.dtype.category < dt.FLOAT:
        raise RuntimeError(f"stft: expected input to be a tensor of floating point or complex values, got {x.dtype}")
    if x.ndim not in (1, 2):
        raise RuntimeError(f"stft: expected input to be a 1D or 2D tensor, got shape {list(x.shape)}")
    is_complex = any(v is not None and v.dtype.category == dt.COMPLEX for v in (x, window))
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs; use return_complex=True"
        )
    if center and align_to_window is not None:
        raise RuntimeError("stft: align_to_window should only be set when center=False")
    if center and n_fft > 1:
        lead = (1,) * (3 - x.ndim)
        x = pad(reshape(x, *lead, *x.shape), (n_fft // 2, n_fft // 2), pad_mode)
        x = reshape(x, *x.shape[len(lead) :])
    if not 0 < n_fft <= x.shape[-1]:
        raise RuntimeError(
            f"stft: expected 0 < n_fft <= {x.shape[-1]}, the length of the (padded) input, but got n_fft={n_fft}"
        )
    if hop <= 0:
        raise RuntimeError(f"stft: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"stft: expected 0 < win_length <= n_fft={n_fft}, but got win_length={win}")
    if onesided and is_complex:
        raise RuntimeError("stft: Cannot have onesided output if window or input is complex; use onesided=False")
    w = _window("stft", window, win, n_fft, x.dtype)
    if align_to_window and win < n_fft:
        left = (n_fft - win) // 2
        x = constant_pad_p(x, pads=((left, n_fft - win - left),), value=0)

    frames = unfold_p.bind(x, dim=-1, size=n_fft, step=hop, gap=1, n=x.shape[-1])
    if w is not None:
        frames = frames * w
    frames = floating("stft", frames)
    scale = "root" if normalized else "none"
    if is_complex:
        y = c2c_p(frames, dims=(-1,), norm=scale, forward=True)
    else:
        y = r2c_p(frames, dims=(-1,), norm=scale, n=n_fft, onesided=onesided is None or bool(onesided))
    y = permute_p(y, dims=(-1, -2) if y.ndim == 2 else (-3, -1, -2))
    return view_as_real(y) if return_complex is False else y


def _covered(v: Any) -> None:
    least = np.abs(getattr(v, "rows", v)).min(initial=np.inf)
    if least < 1e-11:
        raise RuntimeError(
            f"istft: window overlap add min: {least} is not positive: some points are covered by no frame where the window is not "
            f"zero; use a smaller hop_length, another window, or center=True"
        )


@public("istft", methods="istft", out=False)
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose stft is nearest to `input` in the sense of least squares.

    ``x = sum_m window * frame_m / sum_m window^2``, both sums over the frames that cover a point, frame_m being the inverse
    transform of column m. `input` is ``(K, frames)`` or ``(B, K, frames)``; `length` cuts the signal or fills it up with zeros.
    """
    need_tensors("istft", input=input)
    n_fft = _int("istft", "n_fft", n_fft)
    hop = _int("istft", "hop_length", hop_length, n_fft // 4)
    win = _int("istft", "win_length", win_length, n_fft)
    z = input
    if z.dtype.category != dt.COMPLEX:
        raise RuntimeError(
            f"istft requires a complex-valued input tensor matching the output from stft with return_complex=True, got input of type {z.dtype}"
        )
    if z.ndim not in (2, 3) or 0 in z.shape:
        raise RuntimeError(
            f"istft: expected input to be a 2D or 3D tensor that is not empty, got shape {list(z.shape)}"
        )
    rows, count = z.shape[-2:]
    half = rows != n_fft if onesided is None else onesided
    if rows != (n_fft // 2 + 1 if half else n_fft):
        raise RuntimeError(
            f"istft: expected the frequency dimension (2nd to the last) of input to have size {n_fft // 2 + 1 if half else n_fft} for "
            f"n_fft={n_fft} and onesided={bool(half)}, but got {rows}"
        )
    if not 0 < win <= n_fft:
        raise RuntimeError(f"istft: expected 0 < win_length <= n_fft={n_fft}, but got win_length={win}")
    if not 0 < hop <= win:
        raise RuntimeError(f"istft: expected 0 < hop_length <= win_length={win}, but got hop_length={hop}")
    w = _window("istft", window, win, n_fft, z.dtype)
    if return_complex and half:
        raise RuntimeError(
            "istft: Cannot have onesided input with return_complex=True; give all frequencies, onesided=False"
        )
    if not return_complex and w is not None and w.dtype.category == dt.COMPLEX:
        raise RuntimeError("istft: Complex windows are incompatible with return_complex=False; use return_complex=True")
    total = n_fft + hop * (count - 1)
    start = n_fft // 2 if center else 0
    end = total - start if length is None else start + _int("istft", "length", length)
    if end <= start:
        raise RuntimeError(f"istft: no points are left: {total} points, center={center}, length={length}")

    scale = "root" if normalized else "all"
    z = permute_p(z, dims=(-1, -2) if z.ndim == 2 else (-3, -1, -2))
    if return_complex:
        frames = c2c_p(z, dims=(-1,), norm=scale, forward=False)
    else:
        frames = c2r_p(z if half else narrow(z, -1, 0, n_fft // 2 + 1), dims=(-1,), norm=scale, n=n_fft)
    square: Tensor = constant(np.ones(n_fft), z, z.dtype.to_real())
    if w is not None:
        frames, square = frames * w, w * w
    fold = {"dim": -1, "size": n_fft, "step": hop, "gap": 1, "n": total}
    y = refold_p(frames, **fold)
    envelope = refold_p(expand_p.bind(square, shape=(count, n_fft), old=(n_fft,)), **fold)
    kept = (slice(start, min(end, total)),)
    y = slice_p.bind(y, key=kept, old=(total,))
    envelope = slice_p.bind(envelope, key=kept, old=(total,))
    look(envelope, _covered)
    y = y / envelope
    if end > total:
        warnings.warn(
            f"istft: the length asked for reaches {end - total} points past the last frame; they are zero",
            UserWarning,
            stacklevel=2,
        )
        y = constant_pad_p(y, pads=((0, end - total),), value=0)
    return y


# -- samples ----------------------------------------------------------------------------------------------------------

_hann = Given(np.array([0.1, 0.6, 1.2, 0.7, 0.2]), grad=True)
sample("stft", S(9), 4, return_complex=True)
sample("stft", S(9), 4, return_complex=False)
sample("stft", S(2, 9), 5, 2, window=_hann, return_complex=True, normalized=True, pad_mode="constant")
sample("stft", S(2, 9), 6, 2, 5, window=_hann, center=False, onesided=False, return_complex=True)
sample("stft", S(8), 6, 1, 3, center=False, align_to_window=True, return_complex=True)
sample("istft", S(3, 4), f=lambda x: _istft(x, 4))
sample("istft", S(2, 3, 4), _hann, f=lambda x, w: _istft(x, 5, 2, window=w.real if w.is_complex() else w, length=6))
sample(
    "istft",
    S(6, 3),
    _hann,
    f=lambda x, w: _istft(x, 6, 2, 5, window=w, center=True, return_complex=True, normalized=True),
)
sample("istft", S(6, 3), f=lambda x: _istft(x, 6, 2, center=False))


def _istft(x: Tensor, *args: Any, **kw: Any) -> Tensor:
    return istft(x if x.is_complex() else x * (1 + 2j), *args, **kw)
