"""Fourier transforms and windows: inverses, symmetry, precision, and the derivatives at the entries that mirror themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule.func import grad, jacfwd, jacrev, vmap

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("norm", [None, "forward", "ortho"])
@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_inverses(n: int, norm: str | None) -> None:
    """Each transform is undone by its inverse of the same norm."""
    x = cr.tensor(RNG.standard_normal((3, n)))
    z = x + 1j * cr.tensor(RNG.standard_normal((3, n)))
    f = cr.fft
    for y, want in (
        (f.ifft(f.fft(z, norm=norm), norm=norm), z),
        (f.irfft(f.rfft(x, norm=norm), n=n, norm=norm), x),
        (f.hfft(f.ihfft(x, norm=norm), n=n, norm=norm), x),
        (f.irfftn(f.rfftn(x, norm=norm), s=(3, n), norm=norm), x),
        (f.hfft2(f.ihfft2(x, norm=norm), s=(3, n), norm=norm), x),
    ):
        np.testing.assert_allclose(y.numpy(), want.numpy(), atol=1e-12)


@pytest.mark.parametrize("n", [5, 6])
def test_imaginary_part_of_mirrored_entries_counts_nothing(n: int) -> None:
    """irfft does not look at Im z[0] and, for even n, Im z[n / 2]: its derivative there is 0."""
    z = cr.tensor(RNG.standard_normal(n // 2 + 1) + 1j * RNG.standard_normal(n // 2 + 1))
    g = grad(lambda z: (cr.fft.irfft(z, n=n) ** 3).sum())(z).numpy()
    assert g[0].imag == 0 and (g[1:-1].imag != 0).all()
    assert (g[-1].imag == 0) == (n % 2 == 0)
    t = torch.tensor(z.numpy(), requires_grad=True)
    (torch.fft.irfft(t, n=n) ** 3).sum().backward()
    np.testing.assert_allclose(g, t.grad.numpy(), atol=1e-12)


def test_jacobians() -> None:
    """Both modes give the matrix of the transform."""
    x = cr.tensor(RNG.standard_normal(5))
    w = np.exp(-2j * np.pi * np.outer(np.arange(3), np.arange(5)) / 5)
    parts = lambda x: cr.view_as_real(cr.fft.rfft(x))
    want = np.stack([w.real, w.imag], 1)
    np.testing.assert_allclose(jacfwd(parts)(x).numpy(), want, atol=1e-12)
    np.testing.assert_allclose(jacrev(parts)(x).numpy(), want, atol=1e-12)


def test_precision_is_kept() -> None:
    """float32 stays 32 bit, float16 gives the half-precision complex type, bfloat16 has none."""
    x = cr.ones(4)
    assert cr.fft.rfft(x).dtype is cr.complex64 and cr.fft.irfft(cr.fft.rfft(x)).dtype is cr.float32
    assert cr.fft.fft(x.half()).dtype is cr.complex32 and cr.fft.fft(x.int()).dtype is cr.complex64
    with pytest.raises(RuntimeError, match="bfloat16"):
        cr.fft.fft(x.bfloat16())


def test_infinite_cotangent_makes_no_nan() -> None:
    """Weights of mirrored entries act on the parts of a complex number."""
    from chainrule.ops.signal.fourier import mirrored_p

    y = mirrored_p(cr.tensor([1 + 1j, complex(np.inf, 1), 3j]), dim=-1, n=4, times=2.0).numpy()
    np.testing.assert_array_equal(y, np.array([1 + 1j, complex(np.inf, 2), 3j], np.complex64))


@pytest.mark.parametrize("center", [True, False])
def test_stft_and_back(center: bool) -> None:
    """istft undoes stft for a window without zeros, also where the window differs between examples of vmap."""
    x = cr.tensor(RNG.standard_normal((2, 40)))
    w = cr.tensor(RNG.uniform(0.5, 1.5, (3, 8)))

    def there_and_back(w: cr.Tensor) -> cr.Tensor:
        y = cr.stft(x, 8, 2, window=w, center=center, return_complex=True)
        return cr.istft(y, 8, 2, window=w, center=center, length=40)

    y = vmap(there_and_back)(w)
    np.testing.assert_allclose(y.numpy(), np.broadcast_to(x.numpy(), (3, 2, 40)), atol=1e-12)


def test_istft_refuses_uncovered_points() -> None:
    """A window that is zero where only one frame reaches cannot be divided by."""
    z = cr.ones(5, 4) + 0j
    with pytest.raises(RuntimeError, match="window overlap add"):
        cr.istft(z, 8, window=cr.hann_window(8), center=False)
    with pytest.warns(UserWarning, match="past the last frame"):
        assert cr.istft(z, 8, length=30).shape == (30,)


def test_kaiser_of_large_beta() -> None:
    """I0(beta) overflows float32 from beta = 92 on; the window does not."""
    from scipy.signal.windows import kaiser

    np.testing.assert_allclose(cr.signal.windows.kaiser(9, beta=800.0, dtype=cr.float64).numpy()[4], 1)
    np.testing.assert_allclose(
        cr.signal.windows.kaiser(64, beta=100.0).numpy(), kaiser(64, 100.0).astype(np.float32), rtol=1e-5
    )


@pytest.mark.parametrize("name", ["hann", "hamming", "bartlett", "blackman", "kaiser"])
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_windows(name: str, n: int) -> None:
    """The functions of the length agree with PyTorch, periodic and symmetric."""
    for periodic in (True, False):
        want = getattr(torch, f"{name}_window")(n, periodic, dtype=torch.float64)
        got = getattr(cr, f"{name}_window")(n, periodic, dtype=cr.float64)
        np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-14)
