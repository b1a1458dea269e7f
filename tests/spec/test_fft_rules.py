"""Rules of Fourier transforms: every norm, one-sided or not, signals cut and padded."""

from __future__ import annotations

import numpy as np
import pytest

from .judge import array, judge, row

NORMS = pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])


@row("fft")
@NORMS
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_dimensional(name: str, norm: str) -> None:
    f = lambda m, x, **k: getattr(m.fft, name)(x, norm=norm, **k)
    real_only, complex_only = name in ("rfft", "ihfft"), name in ("irfft", "hfft")
    for cx in (False, True):
        if cx and real_only:
            continue
        for length in (4, 5):
            judge(f"fft.{name}", lambda m, x: f(m, x), array(2, length, cx=cx))
        # Cut, padded, along another dim.
        for n in (3, 6, 7, 1) if not complex_only else (4, 6, 7, 1):
            judge(f"fft.{name}", lambda m, x, n=n: f(m, x, n=n), array(2, 5, cx=cx))
        judge(f"fft.{name}", lambda m, x: f(m, x, dim=0), array(4, 2, cx=cx))


@row("fft")
@NORMS
@pytest.mark.parametrize(
    "name",
    ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn", "hfft2", "ihfft2", "hfftn", "ihfftn"],
)
def test_several_dimensions(name: str, norm: str) -> None:
    real_only = name.startswith(("rfft", "ihfft"))
    x = array(2, 3, 4, cx=not real_only)
    judge(f"fft.{name}", lambda m, x: getattr(m.fft, name)(x, norm=norm), x)
    judge(f"fft.{name}", lambda m, x: getattr(m.fft, name)(x, s=(4, 3), dim=(0, 2), norm=norm), x)
    judge(f"fft.{name}", lambda m, x: getattr(m.fft, name)(x, s=(3, 5), norm=norm, dim=(-1, 1)), x)


@row("fft")
def test_frequencies_are_shifted() -> None:
    for name in ("fftshift", "ifftshift"):
        judge(f"fft.{name}", lambda m, x, name=name: getattr(m.fft, name)(x), array(3, 4, cx=True))
        judge(f"fft.{name}", lambda m, x, name=name: getattr(m.fft, name)(x, dim=1), array(3, 5))


STFT = {
    "plain": {"n_fft": 4, "onesided": True},
    "two-sided": {"n_fft": 4, "onesided": False},
    "hop": {"n_fft": 4, "hop_length": 2, "win_length": 3},
    "not centred": {"n_fft": 4, "hop_length": 3, "center": False},
    "normalized": {"n_fft": 5, "normalized": True, "pad_mode": "constant"},
}


@row("fft")
@pytest.mark.parametrize("name", STFT)
def test_stft(name: str) -> None:
    kw = STFT[name]
    window = lambda m: m.hann_window(kw.get("win_length", kw["n_fft"]), dtype=m.float64) + 0.5
    f = lambda m, x: m.stft(x, window=window(m), return_complex=True, **kw)
    judge("stft hann_window", f, array(2, 12))
    judge("stft hann_window", f, array(12))
    g = lambda m, x, w: m.stft(x, window=w, return_complex=True, **kw)
    judge("stft", g, array(9), array(kw.get("win_length", kw["n_fft"]), low=0.5))
    if kw.get("onesided") is False:
        judge("stft hann_window", f, array(12, cx=True))


@row("fft")
@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_istft(onesided: bool, normalized: bool) -> None:
    def f(m, z, length=None):
        w = m.hann_window(4, dtype=m.float64) + 0.5
        return m.istft(z, 4, hop_length=2, window=w, onesided=onesided, normalized=normalized, length=length)

    z = array(2, 3 if onesided else 4, 6, cx=True)
    judge("istft hann_window", f, z)
    judge("istft hann_window", lambda m, z: f(m, z, 7), z)

    def there_and_back(m, x):
        w = m.hann_window(4, dtype=m.float64) + 0.5
        kw = {"hop_length": 2, "window": w, "onesided": onesided, "normalized": normalized}
        y = m.istft(m.stft(x, 4, return_complex=True, **kw), 4, length=12, **kw)
        return y if not y.is_complex() else y.real

    judge("stft istft hann_window", there_and_back, np.sin(np.arange(12.0)))
