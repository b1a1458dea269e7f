"""Windows for spectral analysis; filled by the ops."""

# Written by `make surface` from the declarations of the ops.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, object as _object, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Self, overload

from ..core.dtypes import DType
from ..core.errors import ChainruleError
from .. import Generator
from ..core.tensor import Size, Tensor
from ..return_types import CholeskyEx, Eig, Geqrf, Histogram, HistogramDD, InvEx, LDL, LDLEx, LUFactor, LUFactorEx, Lstsq, MinMax, PLU, QR, SVD, SVDV, Slogdet, SolveEx, Sorted, StdMean, TriangularSolve, ValuesIndices, VarMean
from ..typing import DTypeLike, DeviceLike, Ints, Layout, Number, Operand

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall"]

def bartlett(M: _int, *, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = 1 - |2 n / (M - 1) - 1|``; ``/ M`` where not `sym`."""
def blackman(M: _int, *, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = 0.42 - 0.5 cos(z) + 0.08 cos(2 z)``, ``z = 2 pi n / (M - 1)``, or ``/ M`` where not `sym`."""
def cosine(M: _int, *, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = sin(pi (n + 1/2) / M)``; ``/ (M + 1)`` where not `sym`."""
def exponential(M: _int, *, center: _float | None = None, tau: _float = 1.0, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = exp(-|n - center| / tau)``; the center is ``(M - 1) / 2``, or ``M / 2`` where not `sym`."""
def gaussian(M: _int, *, std: _float = 1.0, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = exp(-(n - c)^2 / (2 std^2))`` with c = ``(M - 1) / 2``, or ``M / 2`` where not `sym`."""
def general_cosine(M: _int, *, a: Iterable[_float], sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = sum_i (-1)^i a[i] cos(2 pi i n / (M - 1))``; ``/ M`` where not `sym`."""
def general_hamming(M: _int, *, alpha: _float = 0.54, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = alpha - (1 - alpha) cos(2 pi n / (M - 1))``; ``/ M`` where not `sym`."""
def hamming(M: _int, *, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = 0.54 - 0.46 cos(z)``, ``z = 2 pi n / (M - 1)``, or ``/ M`` where not `sym`."""
def hann(M: _int, *, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = (1 - cos(z)) / 2``, ``z = 2 pi n / (M - 1)``, or ``/ M`` where not `sym`."""
def kaiser(M: _int, *, beta: _float = 12.0, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = I0(beta sqrt(1 - u^2)) / I0(beta)`` with ``u = 2 n / (M - 1) - 1``, or ``/ M`` where not `sym`."""
def nuttall(M: _int, *, sym: _bool = True, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = 0.3635819 - 0.4891775 cos(z) + 0.1365995 cos(2 z) - 0.0106411 cos(3 z)``, ``z = 2 pi n / (M - 1)``, or ``/ M`` where not `sym`."""
