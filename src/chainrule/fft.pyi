"""Discrete Fourier transforms; filled by the ops."""

# Written by `make surface` from the declarations of the ops.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, object as _object, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Self, overload

from .core.dtypes import DType
from .core.errors import ChainruleError
from . import Generator
from .core.tensor import Size, Tensor
from .return_types import CholeskyEx, Eig, Geqrf, Histogram, HistogramDD, InvEx, LDL, LDLEx, LUFactor, LUFactorEx, Lstsq, MinMax, PLU, QR, SVD, SVDV, Slogdet, SolveEx, Sorted, StdMean, TriangularSolve, ValuesIndices, VarMean
from .typing import DTypeLike, DeviceLike, Ints, Layout, Number, Operand

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]

def fft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """``y[k] = sum_n x[n] exp(-2 pi i k n / N)`` along `dim`."""
def fft2(input: Tensor, s: Ints | None = None, dim: Ints = (-2, -1), norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """``y[k] = sum_n x[n] exp(-2 pi i k n / N)`` along two dims."""
def fftfreq(n: _int, d: _float = 1.0, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, out: Tensor | None = None) -> Tensor:
    """``[0, 1, ..., (N - 1) // 2, -(N // 2), ..., -1] / (N d)``: the frequency of each entry of fft, `d` the sampling interval."""
def fftn(input: Tensor, s: Ints | None = None, dim: Ints | None = None, norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """``y[k] = sum_n x[n] exp(-2 pi i k n / N)`` along `dim`, by default all."""
def fftshift(input: Tensor, dim: Ints | None = None) -> Tensor:
    """Entries along `dim` (all dims) moved by ``N // 2``: the zero frequency goes to the middle."""
def hfft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The (real) transform of a signal with ``x[-n] = conj(x[n])``, given by its first half, along `dim`."""
def hfft2(input: Tensor, s: Ints | None = None, dim: Ints = (-2, -1), norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The (real) transform of a signal with ``x[-n] = conj(x[n])``, given by its first half, along two dims."""
def hfftn(input: Tensor, s: Ints | None = None, dim: Ints | None = None, norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The (real) transform of a signal with ``x[-n] = conj(x[n])``, given by its first half, along `dim`, by default all."""
def ifft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """``y[n] = 1/N sum_k x[k] exp(2 pi i k n / N)``, the inverse of fft, along `dim`."""
def ifft2(input: Tensor, s: Ints | None = None, dim: Ints = (-2, -1), norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """``y[n] = 1/N sum_k x[k] exp(2 pi i k n / N)``, the inverse of fft, along two dims."""
def ifftn(input: Tensor, s: Ints | None = None, dim: Ints | None = None, norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """``y[n] = 1/N sum_k x[k] exp(2 pi i k n / N)``, the inverse of fft, along `dim`, by default all."""
def ifftshift(input: Tensor, dim: Ints | None = None) -> Tensor:
    """The inverse of fftshift: the middle entry goes to the front."""
def ihfft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The first half of the inverse transform of a real spectrum, the inverse of hfft, along `dim`."""
def ihfft2(input: Tensor, s: Ints | None = None, dim: Ints = (-2, -1), norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The first half of the inverse transform of a real spectrum, the inverse of hfft, along two dims."""
def ihfftn(input: Tensor, s: Ints | None = None, dim: Ints | None = None, norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The first half of the inverse transform of a real spectrum, the inverse of hfft, along `dim`, by default all."""
def irfft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The real signal whose rfft is `input`, by default of ``2 (size - 1)`` points, along `dim`."""
def irfft2(input: Tensor, s: Ints | None = None, dim: Ints = (-2, -1), norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The real signal whose rfft is `input`, by default of ``2 (size - 1)`` points, along two dims."""
def irfftn(input: Tensor, s: Ints | None = None, dim: Ints | None = None, norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The real signal whose rfft is `input`, by default of ``2 (size - 1)`` points, along `dim`, by default all."""
def rfft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The first ``N // 2 + 1`` entries (of the last dim) of the transform of a real signal along `dim`."""
def rfft2(input: Tensor, s: Ints | None = None, dim: Ints = (-2, -1), norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The first ``N // 2 + 1`` entries (of the last dim) of the transform of a real signal along two dims."""
def rfftfreq(n: _int, d: _float = 1.0, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, out: Tensor | None = None) -> Tensor:
    """``[0, 1, ..., N // 2] / (N d)``: the frequency of each entry of rfft, `d` the sampling interval."""
def rfftn(input: Tensor, s: Ints | None = None, dim: Ints | None = None, norm: _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The first ``N // 2 + 1`` entries (of the last dim) of the transform of a real signal along `dim`, by default all."""
