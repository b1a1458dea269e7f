"""Sparse tensors: products, solves, sums and softmax of tensors most of whose elements are zero, through every transform."""

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

__all__ = ["BFloat16Tensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor", "LongTensor", "ShortTensor", "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "from_scipy", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "spsolve", "sum", "to_scipy"]

class BFloat16Tensor(Tensor):
    """``sparse.BFloat16Tensor(indices, values, size)`` or ``sparse.BFloat16Tensor(*sizes)``: a sparse tensor, of sizes alone one of type bfloat16 without entries; ``isinstance(x, sparse.BFloat16Tensor)`` tests for type and layout. New code: sparse_coo_tensor."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
class ByteTensor(Tensor):
    """``sparse.ByteTensor(indices, values, size)`` or ``sparse.ByteTensor(*sizes)``: a sparse tensor, of sizes alone one of type uint8 without entries; ``isinstance(x, sparse.ByteTensor)`` tests for type and layout. New code: sparse_coo_tensor."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
class CharTensor(Tensor):
    """``sparse.CharTensor(indices, values, size)`` or ``sparse.CharTensor(*sizes)``: a sparse tensor, of sizes alone one of type int8 without entries; ``isinstance(x, sparse.CharTensor)`` tests for type and layout. New code: sparse_coo_tensor."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
class DoubleTensor(Tensor):
    """``sparse.DoubleTensor(indices, values, size)`` or ``sparse.DoubleTensor(*sizes)``: a sparse tensor, of sizes alone one of type float64 without entries; ``isinstance(x, sparse.DoubleTensor)`` tests for type and layout. New code: sparse_coo_tensor."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
class FloatTensor(Tensor):
    """``sparse.FloatTensor(indices, values, size)`` or ``sparse.FloatTensor(*sizes)``: a sparse tensor, of sizes alone one of type float32 without entries; ``isinstance(x, sparse.FloatTensor)`` tests for type and layout. New code: sparse_coo_tensor."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
class HalfTensor(Tensor):
    """``sparse.HalfTensor(indices, values, size)`` or ``sparse.HalfTensor(*sizes)``: a sparse tensor, of sizes alone one of type float16 without entries; ``isinstance(x, sparse.HalfTensor)`` tests for type and layout. New code: sparse_coo_tensor."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
class IntTensor(Tensor):
    """``sparse.IntTensor(indices, values, size)`` or ``sparse.IntTensor(*sizes)``: a sparse tensor, of sizes alone one of type int32 without entries; ``isinstance(x, sparse.IntTensor)`` tests for type and layout. New code: sparse_coo_tensor."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
class LongTensor(Tensor):
    """``sparse.LongTensor(indices, values, size)`` or ``sparse.LongTensor(*sizes)``: a sparse tensor, of sizes alone one of type int64 without entries; ``isinstance(x, sparse.LongTensor)`` tests for type and layout. New code: sparse_coo_tensor."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
class ShortTensor(Tensor):
    """``sparse.ShortTensor(indices, values, size)`` or ``sparse.ShortTensor(*sizes)``: a sparse tensor, of sizes alone one of type int16 without entries; ``isinstance(x, sparse.ShortTensor)`` tests for type and layout. New code: sparse_coo_tensor."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, beta: Operand = 1, alpha: Operand = 1) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)`` with a sparse `mat1`; the result is dense."""
def as_sparse_gradcheck(gradcheck: Callable[..., Any]) -> Callable[..., Any]:
    """A gradcheck that takes functions of sparse tensors; ``masked=True`` for derivatives in the stored numbers alone."""
class check_sparse_tensor_invariants:
    """PyTorch's switch for checks of index data. Here they are always checked, since compiled loops trust them."""
    def __init__(self, enable: _bool = True) -> None:
        ...
def from_scipy(matrix: Any, requires_grad: _bool = False) -> Tensor:
    """A sparse tensor that shares its numbers with one of scipy.sparse, and but for coo its indices, which must not be written to."""
def log_softmax(input: Tensor, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
    """``x - log(sum(exp(x)))`` along `dim` over the stored numbers: what is not stored counts as minus infinity."""
def mm(mat1: Tensor, mat2: Tensor, reduce: _str | None = None) -> Tensor:
    """The product of matrices of which at least one is sparse; with `reduce`, the products of a row by their sum, mean, amax or amin."""
def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Operand = 1.0, alpha: Operand = 1.0, out: Tensor | None = None) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` at the places of `input`, a sparse matrix by rows."""
def softmax(input: Tensor, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` along `dim` over the stored numbers: what is not stored counts as minus infinity."""
def spdiags(diagonals: Tensor, offsets: Tensor, shape: _tuple[_int, _int], layout: Layout | None = None) -> Tensor:
    """The sparse matrix with the rows of `diagonals` on the diagonals `offsets`; entry j of a row stands in column j."""
def spsolve(input: Tensor, other: Tensor, *, left: _bool = True) -> Tensor:
    """The solution x of ``input x = other`` with a sparse square matrix and a dense right-hand side, a vector or a matrix."""
def sum(input: Tensor, dim: Ints | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """The sum of a sparse tensor over `dim`, sparse where sparse dims are left; over all dims a number."""
def to_scipy(input: Tensor) -> Any:
    """A sparse matrix as an array of scipy.sparse that shares its numbers and indices; blocks of columns become rows of blocks."""
