"""Reductions and normalisations of the elements that a mask selects; filled by the ops."""

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

__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]

def amax(input: Tensor, dim: Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """The largest entry over `dim` of the entries where `mask` holds."""
def amin(input: Tensor, dim: Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """The smallest entry over `dim` of the entries where `mask` holds."""
def argmax(input: Tensor, dim: Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """The index of the largest entry over `dim` where `mask` holds."""
def argmin(input: Tensor, dim: Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """The index of the smallest entry over `dim` where `mask` holds."""
def cumprod(input: Tensor, dim: _int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """Running products along `dim`, of the entries where `mask` holds."""
def cumsum(input: Tensor, dim: _int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """Running sums along `dim`, of the entries where `mask` holds."""
def log_softmax(input: Tensor, dim: _int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """``x - log(sum(exp(x)))`` along `dim`, of the entries where `mask` holds."""
def logaddexp(input: Tensor, other: Tensor, *, dtype: DTypeLike | None = None, input_mask: Tensor | None = None, other_mask: Tensor | None = None) -> Tensor:
    """``log(exp(input) + exp(other))`` of the entries where their masks hold; -inf where neither does."""
def logsumexp(input: Tensor, dim: Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """``log(sum(exp(x)))`` over `dim` of the entries where `mask` holds; -inf where none does."""
def mean(input: Tensor, dim: Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """The mean over `dim` of the entries where `mask` holds; NaN where none does."""
def median(input: Tensor, dim: _int = -1, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """The lower median along `dim` of the entries where `mask` holds; NaN where none does."""
def norm(input: Tensor, ord: _float | _str | Tensor = 2.0, dim: Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """The norm of order `ord` over `dim` of the entries where `mask` holds."""
def normalize(input: Tensor, ord: _float, dim: _int, *, eps: _float = 1e-12, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """``x / max(|x|, eps)`` along `dim`, the norm of order `ord` taken over the entries where `mask` holds."""
def prod(input: Tensor, dim: Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """The product over `dim` of the entries where `mask` holds; 1 where none does."""
def softmax(input: Tensor, dim: _int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` along `dim`, of the entries where `mask` holds."""
def softmin(input: Tensor, dim: _int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """``exp(-x) / sum(exp(-x))`` along `dim`, of the entries where `mask` holds."""
def std(input: Tensor, dim: Ints | None = None, unbiased: _bool | None = None, *, correction: _float | None = None, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """The square root of the masked variance; its derivative where it is 0 is 0."""
def sum(input: Tensor, dim: Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """The sum over `dim` of the entries where `mask` holds; 0 where none does."""
def var(input: Tensor, dim: Ints | None = None, unbiased: _bool | None = None, *, correction: _float | None = None, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: Tensor | None = None) -> Tensor:
    """``sum(|x - mean|**2) / (n - correction)`` over `dim` of the n entries where `mask` holds; NaN where none does."""
