"""The named tuples that functions return, such as ``linalg.svd``; filled by the ops."""

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
from .typing import DTypeLike, DeviceLike, Ints, Layout, Number, Operand

__all__ = ["CholeskyEx", "Eig", "Geqrf", "Histogram", "HistogramDD", "InvEx", "LDL", "LDLEx", "LUFactor", "LUFactorEx", "Lstsq", "MinMax", "PLU", "QR", "SVD", "SVDV", "Slogdet", "SolveEx", "Sorted", "StdMean", "TriangularSolve", "ValuesIndices", "VarMean"]

class CholeskyEx(NamedTuple):
    """The factor, and the order of the first minor that is not positive-definite, or 0."""
    L: Tensor
    info: Tensor
class Eig(NamedTuple):
    """``A V = V diag(L)``."""
    eigenvalues: Tensor
    eigenvectors: Tensor
class Geqrf(NamedTuple):
    """R in the upper triangle, the reflectors below it, and their factors."""
    a: Tensor
    tau: Tensor
class Histogram(NamedTuple):
    """Histogram(hist, bin_edges)"""
    hist: Tensor
    bin_edges: Tensor
class HistogramDD(NamedTuple):
    """HistogramDD(hist, bin_edges)"""
    hist: Tensor
    bin_edges: _tuple[Tensor, ...]
class InvEx(NamedTuple):
    """The inverse, and the index (from 1) of the first zero pivot, or 0."""
    inverse: Tensor
    info: Tensor
class LDL(NamedTuple):
    """L and the blocks of D packed into one matrix, and the interchanges (LAPACK's)."""
    LD: Tensor
    pivots: Tensor
class LDLEx(NamedTuple):
    """As LDL, with the index (from 1) of the first zero block, or 0."""
    LD: Tensor
    pivots: Tensor
    info: Tensor
class LUFactor(NamedTuple):
    """L below the diagonal (its ones left out) and U in one matrix, and the interchanges, from 1."""
    LU: Tensor
    pivots: Tensor
class LUFactorEx(NamedTuple):
    """As LUFactor, with the index (from 1) of the first zero pivot, or 0."""
    LU: Tensor
    pivots: Tensor
    info: Tensor
class Lstsq(NamedTuple):
    """The solution, the squared residuals, the rank and the singular values; those that the driver does not give are empty."""
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor
class MinMax(NamedTuple):
    """MinMax(min, max)"""
    min: Tensor
    max: Tensor
class PLU(NamedTuple):
    """``A = P L U``."""
    P: Tensor
    L: Tensor
    U: Tensor
class QR(NamedTuple):
    """``A = Q R``."""
    Q: Tensor
    R: Tensor
class SVD(NamedTuple):
    """``A = U diag(S) Vh``."""
    U: Tensor
    S: Tensor
    Vh: Tensor
class SVDV(NamedTuple):
    """``A = U diag(S) V^H``."""
    U: Tensor
    S: Tensor
    V: Tensor
class Slogdet(NamedTuple):
    """``det = sign * exp(logabsdet)``."""
    sign: Tensor
    logabsdet: Tensor
class SolveEx(NamedTuple):
    """The solution, and the index (from 1) of the first zero pivot, or 0."""
    result: Tensor
    info: Tensor
class Sorted(NamedTuple):
    """Sorted values and where they came from."""
    values: Tensor
    indices: Tensor
class StdMean(NamedTuple):
    """StdMean(std, mean)"""
    std: Tensor
    mean: Tensor
class TriangularSolve(NamedTuple):
    """The solution, and the matrix."""
    solution: Tensor
    cloned_coefficient: Tensor
class ValuesIndices(NamedTuple):
    """ValuesIndices(values, indices)"""
    values: Tensor
    indices: Tensor
class VarMean(NamedTuple):
    """VarMean(var, mean)"""
    var: Tensor
    mean: Tensor
