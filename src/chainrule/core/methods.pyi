"""What the ops attach to Tensor: methods, operators, properties."""

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

from .imperative import RemovableHandle

class Methods:
    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""
    @property
    def T(self) -> Tensor:
        """All dims in reverse order."""
    def __abs__(self) -> Tensor:
        """The absolute value; its derivative at 0 is 0."""
    def __add__(self, other: Operand) -> Tensor:
        ...
    def __and__(self, other: Operand) -> Tensor:
        """The and of two integers, bit by bit, or of two truth values."""
    def __array_function__(self, func: Any, types: Any, args: _tuple[Any, ...], kwargs: dict[_str, Any]) -> Any:
        """NumPy's protocol for functions of tensors: the results are tensors, with their derivatives."""
    def __array_namespace__(self, *, api_version: _str | None = None) -> Any:
        """The Array API standard's functions."""
    __array_priority__: _float
    def __array_ufunc__(self, ufunc: Any, method: _str, *inputs: Any, **kw: Any) -> Any:
        """NumPy's protocol for ufuncs on tensors: the result is a tensor, with its derivative."""
    def __contains__(self, element: _object) -> _bool:
        """Whether one of the elements equals `element`."""
    def __copy__(self) -> Tensor:
        """``copy.copy(x)``: another tensor of the same value and derivative, as a view."""
    def __delitem__(self, key: Any) -> None:
        """No element of a tensor can be taken away."""
    def __div__(self, other: Operand) -> Tensor:
        """divide(x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None, subok=True[, signature])"""
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: _bool | None = None) -> Any:
        """The memory of this tensor for another library; of bfloat16 and of memory that may not be written to, too."""
    def __dlpack_device__(self) -> _tuple[_int, _int]:
        """The CPU, in DLPack's numbers."""
    def __eq__(self, other: _object) -> Tensor: ...  # type: ignore[override]
    def __floordiv__(self, other: Operand) -> Tensor:
        """``input // other``, rounded down."""
    def __ge__(self, other: Operand) -> Tensor:
        """``input >= other``."""
    def __getitem__(self, key: Any) -> Tensor:
        """``x[key]``: ints, slices, None, Ellipsis, boolean masks and index tensors, mixed."""
    def __gt__(self, other: Operand) -> Tensor:
        """``input > other``."""
    def __iadd__(self, other: Operand) -> Self:
        """In-place version of :meth:`__iadd`."""
    def __iand__(self, other: Operand) -> Self:
        """In-place version of :meth:`__iand`."""
    def __idiv__(self, other: Operand) -> Self:
        """In-place version of :meth:`__idiv`."""
    def __ifloordiv__(self, other: Operand) -> Self:
        """In-place version of :meth:`__ifloordiv`."""
    def __ilshift__(self, other: Operand) -> Self:
        """In-place version of :meth:`__ilshift`."""
    def __imod__(self, other: Operand) -> Self:
        """In-place version of :meth:`__imod`."""
    def __imul__(self, other: Operand) -> Self:
        """In-place version of :meth:`__imul`."""
    __init_subclass__: Any
    def __invert__(self) -> Tensor:
        """``~x``: an integer with every bit turned around, or the other truth value."""
    def __ior__(self, other: Operand) -> Self:
        """In-place version of :meth:`__ior`."""
    def __ipow__(self, other: Operand) -> Self:
        """In-place version of :meth:`__ipow`."""
    def __irshift__(self, other: Operand) -> Self:
        """In-place version of :meth:`__irshift`."""
    def __isub__(self, other: Operand) -> Self:
        """In-place version of :meth:`__isub`."""
    def __itruediv__(self, other: Operand) -> Self:
        """In-place version of :meth:`__itruediv`."""
    def __ixor__(self, other: Operand) -> Self:
        """In-place version of :meth:`__ixor`."""
    def __le__(self, other: Operand) -> Tensor:
        """``input <= other``."""
    def __lshift__(self, other: Operand) -> Tensor:
        """``self`` shifted; floating numbers are multiplied by a power of two."""
    def __lt__(self, other: Operand) -> Tensor:
        """``input < other``."""
    def __matmul__(self, other: Tensor) -> Tensor:
        """``input @ other``: vectors, matrices, and batches of matrices whose leading dims broadcast."""
    def __mod__(self, other: Operand) -> Tensor:
        """``a - floor(a / b) b``: the remainder with the sign of `other`."""
    def __mul__(self, other: Operand) -> Tensor:
        """``input * other``."""
    def __ne__(self, other: _object) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor:
        """``-x``."""
    def __or__(self, other: Operand) -> Tensor:
        """The or of two integers, bit by bit, or of two truth values."""
    def __pos__(self) -> Tensor:
        ...
    def __pow__(self, exponent: Operand) -> Tensor:
        """``input ** exponent``; 0 ** 0 is 1 (NaN for a complex tensor as exponent), and its derivatives are 0."""
    def __radd__(self, other: Operand) -> Tensor:
        ...
    def __rand__(self, other: Operand) -> Tensor:
        ...
    def __rdiv__(self, other: Operand) -> Tensor:
        ...
    def __reversed__(self) -> Tensor:
        """``reversed(x)``: the entries of dim 0 in the other order."""
    def __rfloordiv__(self, other: Operand) -> Tensor:
        ...
    def __rlshift__(self, other: Operand) -> Tensor:
        """``other`` shifted by ``self``."""
    def __rmatmul__(self, other: Operand) -> Tensor:
        ...
    def __rmod__(self, other: Operand) -> Tensor:
        """``other % self``."""
    def __rmul__(self, other: Operand) -> Tensor:
        ...
    def __ror__(self, other: Operand) -> Tensor:
        ...
    def __rpow__(self, other: Operand) -> Tensor:
        ...
    def __rrshift__(self, other: Operand) -> Tensor:
        """``other`` shifted by ``self``."""
    def __rshift__(self, other: Operand) -> Tensor:
        """``self`` shifted; floating numbers are multiplied by a power of two."""
    def __rsub__(self, other: Operand) -> Tensor:
        ...
    def __rtruediv__(self, other: Operand) -> Tensor:
        ...
    def __rxor__(self, other: Operand) -> Tensor:
        ...
    def __setitem__(self, key: Any, value: Operand | Sequence[Any]) -> None:
        """``x[key] = value``."""
    def __sub__(self, other: Operand) -> Tensor:
        ...
    __torch_function__: Any
    def __truediv__(self, other: Operand) -> Tensor:
        """divide(x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None, subok=True[, signature])"""
    def __xor__(self, other: Operand) -> Tensor:
        """The xor of two integers, bit by bit, or of two truth values."""
    @property
    def _base(self) -> Tensor | None:
        """The tensor that this one is a view of."""
    def _dimI(self) -> _int:
        """The number of sparse dims; 0 of a dense tensor. The dims of a batch are none."""
    def _dimV(self) -> _int:
        """The number of dense dims: all of a dense tensor."""
    def _get_max_seqlen(self) -> _int:
        """The greatest size of the ragged dim."""
    def _get_min_seqlen(self) -> _int:
        """The least size of the ragged dim."""
    def _indices(self) -> Tensor:
        """The coordinates as they are, repeated ones too."""
    def _is_view(self) -> _bool:
        """Whether this tensor is a view of another."""
    @property
    def _lengths(self) -> Any:
        """None: between the rows of components there are none that belong to nobody."""
    _make_subclass: Any
    _make_wrapper_subclass: Any
    @property
    def _max_seqlen(self) -> Any:
        """The greatest size of the ragged dim."""
    @property
    def _max_seqlen_tensor(self) -> Any:
        """None: the greatest size is no part of a nest, it follows from the sizes."""
    @property
    def _min_seqlen(self) -> Any:
        """The least size of the ragged dim."""
    @property
    def _min_seqlen_tensor(self) -> Any:
        """None: the least size is no part of a nest, it follows from the sizes."""
    def _nested_tensor_size(self) -> Tensor:
        """The matrix ``[components, dims]`` of sizes."""
    def _nested_tensor_strides(self) -> Tensor:
        """The matrix ``[components, dims]`` of strides: each component is row-major."""
    def _nnz(self) -> _int:
        """The number of stored entries: coordinates, or blocks."""
    @property
    def _offsets(self) -> Any:
        """Where each component starts in the rows, and the end."""
    @property
    def _ragged_idx(self) -> Any:
        """The first dim whose size differs between components."""
    def _typed_storage(self) -> Any:
        """The elements of the memory that this tensor's family of views shares."""
    @property
    def _values(self) -> Any:
        """``x._values()``: the stored numbers as they are, those of repeated coordinates too; ``x._values``: the rows of a nest."""
    @property
    def _version(self) -> _int:
        """How many in-place writes this tensor's family of views has seen."""
    def abs(self) -> Tensor:
        """The absolute value; its derivative at 0 is 0."""
    def abs_(self) -> Self:
        """In-place version of :meth:`abs`."""
    def absolute(self) -> Tensor:
        """The absolute value; its derivative at 0 is 0."""
    def absolute_(self) -> Self:
        """In-place version of :meth:`absolute`."""
    def acos(self) -> Tensor:
        """The inverse cosine."""
    def acos_(self) -> Self:
        """In-place version of :meth:`acos`."""
    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine."""
    def acosh_(self) -> Self:
        """In-place version of :meth:`acosh`."""
    def add(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
        """``input + alpha * other``."""
    def add_(self, other: Operand, *, alpha: Operand = 1) -> Self:
        """In-place version of :meth:`add`."""
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Operand = 1, alpha: Operand = 1) -> Tensor:
        """``beta * input + alpha * sum_b batch1[b] @ batch2[b]``, as few products of longer matrices."""
    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Operand = 1, alpha: Operand = 1) -> Self:
        """In-place version of :meth:`addbmm`."""
    def addcdiv(self, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
        """``input + value * tensor1 / tensor2``."""
    def addcdiv_(self, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Self:
        """In-place version of :meth:`addcdiv`."""
    def addcmul(self, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
        """``input + value * tensor1 * tensor2``."""
    def addcmul_(self, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Self:
        """In-place version of :meth:`addcmul`."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Operand = 1, alpha: Operand = 1) -> Tensor:
        """``beta * input + alpha * (mat1 @ mat2)``."""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: Operand = 1, alpha: Operand = 1) -> Self:
        """In-place version of :meth:`addmm`."""
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Operand = 1, alpha: Operand = 1) -> Tensor:
        """``beta * input + alpha * (mat @ vec)``."""
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: Operand = 1, alpha: Operand = 1) -> Self:
        """In-place version of :meth:`addmv`."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: Operand = 1, alpha: Operand = 1) -> Tensor:
        """``beta * input + alpha * outer(vec1, vec2)``."""
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: Operand = 1, alpha: Operand = 1) -> Self:
        """In-place version of :meth:`addr`."""
    def adjoint(self) -> Tensor:
        """The conjugate of the last two dims exchanged."""
    def all(self, dim: Ints | None = None, keepdim: _bool = False) -> Tensor:
        """Whether all of the entries over `dim` (one, several, None: all) are not 0."""
    def allclose(self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
        """Whether all elements are close, see :func:`isclose`."""
    def amax(self, dim: Ints = (), keepdim: _bool = False, *, fill: Operand | None = None) -> Tensor:
        """The largest entry over `dim` (one, several or all); ties share the gradient."""
    def amin(self, dim: Ints = (), keepdim: _bool = False, *, fill: Operand | None = None) -> Tensor:
        """The smallest entry over `dim` (one, several or all); ties share the gradient."""
    def aminmax(self, *, dim: _int | None = None, keepdim: _bool = False) -> MinMax:
        """The smallest and the largest entry along `dim`, or of all: ``(min, max)``; ties share the derivative."""
    def angle(self) -> Tensor:
        """The angle of a complex number, in (-pi, pi]; of a real one 0 or pi. Its derivative at 0 is 0."""
    def any(self, dim: Ints | None = None, keepdim: _bool = False) -> Tensor:
        """Whether any of the entries over `dim` (one, several, None: all) are not 0."""
    def apply_(self, f: Any) -> Self:
        """Write ``f(element)`` to every element; slow, for Python functions of numbers."""
    def arccos(self) -> Tensor:
        """The inverse cosine."""
    def arccos_(self) -> Self:
        """In-place version of :meth:`arccos`."""
    def arccosh(self) -> Tensor:
        """The inverse hyperbolic cosine."""
    def arccosh_(self) -> Self:
        """In-place version of :meth:`arccosh`."""
    def arcsin(self) -> Tensor:
        """The inverse sine."""
    def arcsin_(self) -> Self:
        """In-place version of :meth:`arcsin`."""
    def arcsinh(self) -> Tensor:
        """The inverse hyperbolic sine."""
    def arcsinh_(self) -> Self:
        """In-place version of :meth:`arcsinh`."""
    def arctan(self) -> Tensor:
        """The inverse tangent."""
    def arctan2(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """The angle of the point (other, input); its derivative at the origin is 0."""
    def arctan2_(self, other: Operand, *, out: Tensor | None = None) -> Self:
        """In-place version of :meth:`arctan2`."""
    def arctan_(self) -> Self:
        """In-place version of :meth:`arctan`."""
    def arctanh(self) -> Tensor:
        """The inverse hyperbolic tangent."""
    def arctanh_(self) -> Self:
        """In-place version of :meth:`arctanh`."""
    def argmax(self, dim: _int | None = None, keepdim: _bool = False, *, fill: _int | None = None) -> Tensor:
        """The index of the largest entry along `dim`, or in the flattened tensor; the first of equals."""
    def argmin(self, dim: _int | None = None, keepdim: _bool = False, *, fill: _int | None = None) -> Tensor:
        """The index of the smallest entry along `dim`, or in the flattened tensor; the first of equals."""
    def argsort(self, dim: _int = -1, descending: _bool = False, stable: _bool = False) -> Tensor:
        """The positions that sort `input` along `dim`."""
    def argwhere(self) -> Tensor:
        """The positions of nonzero elements, a row each."""
    def as_strided(self, size: Ints, stride: Ints, storage_offset: _int | None = None) -> Tensor:
        """A view of the storage of `input`: element i lies at ``storage_offset + sum(i * stride)``."""
    def as_strided_(self, size: Ints, stride: Ints, storage_offset: _int | None = None) -> Self:
        """Make `self` the view of its storage that :func:`as_strided` gives."""
    def as_strided_scatter(self, src: Tensor, size: Ints, stride: Ints, storage_offset: _int | None = None) -> Tensor:
        """A copy of `input` in whose storage `src` was written to ``as_strided(size, stride, storage_offset)``."""
    def as_subclass(self, cls: _type) -> Tensor:
        """The same value as an instance of a subclass of Tensor."""
    def asin(self) -> Tensor:
        """The inverse sine."""
    def asin_(self) -> Self:
        """In-place version of :meth:`asin`."""
    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine."""
    def asinh_(self) -> Self:
        """In-place version of :meth:`asinh`."""
    def atan(self) -> Tensor:
        """The inverse tangent."""
    def atan2(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """The angle of the point (other, input); its derivative at the origin is 0."""
    def atan2_(self, other: Operand, *, out: Tensor | None = None) -> Self:
        """In-place version of :meth:`atan2`."""
    def atan_(self) -> Self:
        """In-place version of :meth:`atan`."""
    def atanh(self) -> Tensor:
        """The inverse hyperbolic tangent."""
    def atanh_(self) -> Self:
        """In-place version of :meth:`atanh`."""
    def backward(self, gradient: Tensor | None = None, retain_graph: _bool | None = None, create_graph: _bool = False, inputs: Tensor | Sequence[Tensor] | None = None) -> None:
        """Add to ``.grad`` of the leaves the gradient of this tensor (a scalar, or with its cotangent `gradient`)."""
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Operand = 1, alpha: Operand = 1) -> Tensor:
        """``beta * input + alpha * (batch1 @ batch2)``, batch by batch."""
    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Operand = 1, alpha: Operand = 1) -> Self:
        """In-place version of :meth:`baddbmm`."""
    def bernoulli(self, p: _float | _str | Tensor | None = None, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
        """1 with probability `input` (or `p`), else 0, in the type of `input` or of `out`."""
    def bernoulli_(self, p: _float | Tensor = 0.5, *, generator: Generator | None = None) -> Self:
        """Fill with 1 with probability `p` (a number or a tensor), else 0."""
    def bfloat16(self, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to chainrule.bfloat16."""
    def bincount(self, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
        """How often, or with what total weight, each number from 0 on occurs in a vector of non-negative integers."""
    def bitwise_and(self, other: Operand) -> Tensor:
        """The and of two integers, bit by bit, or of two truth values."""
    def bitwise_and_(self, other: Operand) -> Self:
        """In-place version of :meth:`bitwise_and`."""
    def bitwise_left_shift(self, other: Operand) -> Tensor:
        """``input << other``; bits that leave the type are lost."""
    def bitwise_left_shift_(self, other: Operand) -> Self:
        """In-place version of :meth:`bitwise_left_shift`."""
    def bitwise_not(self) -> Tensor:
        """An integer with every bit turned around, or the other truth value."""
    def bitwise_not_(self) -> Self:
        """In-place version of :meth:`bitwise_not`."""
    def bitwise_or(self, other: Operand) -> Tensor:
        """The or of two integers, bit by bit, or of two truth values."""
    def bitwise_or_(self, other: Operand) -> Self:
        """In-place version of :meth:`bitwise_or`."""
    def bitwise_right_shift(self, other: Operand) -> Tensor:
        """``input >> other``, which keeps the sign."""
    def bitwise_right_shift_(self, other: Operand) -> Self:
        """In-place version of :meth:`bitwise_right_shift`."""
    def bitwise_xor(self, other: Operand) -> Tensor:
        """The xor of two integers, bit by bit, or of two truth values."""
    def bitwise_xor_(self, other: Operand) -> Self:
        """In-place version of :meth:`bitwise_xor`."""
    def bmm(self, mat2: Tensor) -> Tensor:
        """The products of two batches of matrices."""
    def bool(self, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to chainrule.bool."""
    def broadcast_to(self, size: Sequence[_int]) -> Tensor:
        """`input` broadcast to `size`."""
    def byte(self, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to chainrule.uint8."""
    def cauchy_(self, median: _float = 0.0, sigma: _float = 1.0, *, generator: Generator | None = None) -> Self:
        """Fill with numbers of the Cauchy distribution."""
    def ccol_indices(self) -> Tensor:
        """Where the columns begin."""
    def cdouble(self, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to chainrule.complex128."""
    def ceil(self) -> Tensor:
        """The smallest integer not below x."""
    def ceil_(self) -> Self:
        """In-place version of :meth:`ceil`."""
    def cfloat(self, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to chainrule.complex64."""
    def chalf(self, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to chainrule.complex32."""
    def char(self, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to chainrule.int8."""
    def cholesky(self, upper: _bool = False) -> Tensor:
        """The triangular factor of a Hermitian positive-definite matrix."""
    def cholesky_inverse(self, upper: _bool = False) -> Tensor:
        """``(L L^H)^-1`` (``(U^H U)^-1`` with `upper`) from a triangular factor."""
    def cholesky_solve(self, L: Tensor, upper: _bool = False) -> Tensor:
        """``X`` with ``L L^H X = B`` (``U^H U X = B`` with `upper`) for a triangular factor."""
    def chunk(self, chunks: _int, dim: _int = 0) -> _tuple[Tensor, ...]:
        """At most `chunks` pieces of `dim`, of equal size but the last."""
    def clamp(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """``input`` limited to [min, max], numbers or tensors; the bounds get the gradient where they are taken."""
    def clamp_(self, min: Operand | None = None, max: Operand | None = None) -> Self:
        """In-place version of :meth:`clamp`."""
    def clamp_max(self, max: Operand) -> Tensor:
        """``min(input, max)``."""
    def clamp_max_(self, max: Operand) -> Self:
        """In-place version of :meth:`clamp_max`."""
    def clamp_min(self, min: Operand) -> Tensor:
        """``max(input, min)``."""
    def clamp_min_(self, min: Operand) -> Self:
        """In-place version of :meth:`clamp_min`."""
    def clip(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """``input`` limited to [min, max], numbers or tensors; the bounds get the gradient where they are taken."""
    def clip_(self, min: Operand | None = None, max: Operand | None = None) -> Self:
        """In-place version of :meth:`clip`."""
    def clone(self, *, memory_format: Layout | None = None) -> Tensor:
        """A copy of `input`, differentiable."""
    def coalesce(self) -> Tensor:
        """Coordinates in order, each once; the numbers at one place added up."""
    def col_indices(self) -> Tensor:
        """The columns that the stored entries stand in."""
    def conj(self) -> Tensor:
        """The complex conjugate; real tensors as they are."""
    def conj_(self) -> Self:
        """In-place version of :meth:`conj`."""
    def conj_physical(self) -> Tensor:
        """The complex conjugate; real tensors as they are."""
    def conj_physical_(self) -> Self:
        """In-place version of :meth:`conj_physical`."""
    def const_data_ptr(self) -> _int:
        """The address of the first element."""
    def contiguous(self, memory_format: Layout | None = None) -> Tensor:
        """`input` itself if its elements lie in the order of `memory_format` (row-major), else a copy that does."""
    def copy_(self, src: Operand, non_blocking: _bool = False) -> Self:
        """Write `src`, broadcast and converted, to `self`."""
    def copysign(self, other: Operand) -> Tensor:
        """``|input|`` with the sign of `other`."""
    def copysign_(self, other: Operand) -> Self:
        """In-place version of :meth:`copysign`."""
    def corrcoef(self) -> Tensor:
        """``cov_ij / sqrt(cov_ii cov_jj)``, limited to [-1, 1]."""
    def cos(self) -> Tensor:
        """The cosine."""
    def cos_(self) -> Self:
        """In-place version of :meth:`cos`."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine."""
    def cosh_(self) -> Self:
        """In-place version of :meth:`cosh`."""
    def count_nonzero(self, dim: Ints | None = None) -> Tensor:
        """The number of entries over `dim` that are not 0."""
    def cov(self, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
        """``X X^H / (n - correction)`` of centred variables (rows) and observations (columns), weighted where asked."""
    def cpu(self, memory_format: Layout | None = None) -> Tensor:
        """`self`: the elements are always in main memory."""
    def cross(self, other: Tensor, dim: _int | None = None) -> Tensor:
        """The cross product along `dim`; without it, along the first dim of size 3."""
    def crow_indices(self) -> Tensor:
        """Where the rows begin."""
    def cuda(self, device: DeviceLike | None = None, non_blocking: _bool = False, memory_format: Layout | None = None) -> Tensor:
        """Raises: there is no device cuda here."""
    def cummax(self, dim: _int) -> ValuesIndices:
        """The largest entry so far along `dim`, and where it stands (the last of equals): ``(values, indices)``."""
    def cummin(self, dim: _int) -> ValuesIndices:
        """The smallest entry so far along `dim`, and where it stands (the last of equals): ``(values, indices)``."""
    def cumprod(self, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
        """``y[k] = x[0] * ... * x[k]`` along `dim`; right at zeros to any order."""
    def cumprod_(self, dim: _int, *, dtype: DTypeLike | None = None) -> Self:
        """In-place version of :meth:`cumprod`."""
    def cumsum(self, dim: _int, *, dtype: DTypeLike | None = None) -> Tensor:
        """``y[k] = x[0] + ... + x[k]`` along `dim`."""
    def cumsum_(self, dim: _int, *, dtype: DTypeLike | None = None) -> Self:
        """In-place version of :meth:`cumsum`."""
    @property
    def data(self) -> Tensor:
        """The value without its derivative, sharing memory (PyTorch's ``.data``)."""
    @data.setter
    def data(self, value: Tensor) -> None: ...
    def deg2rad(self) -> Tensor:
        """``pi x / 180``."""
    def deg2rad_(self) -> Self:
        """In-place version of :meth:`deg2rad`."""
    def dense_dim(self) -> _int:
        """The number of dense dims: all of a dense tensor."""
    def det(self) -> Tensor:
        """The determinant; its derivatives are polynomials in A, for singular matrices as for others."""
    def detach(self) -> Tensor:
        """The same value, sharing memory, through which no derivative flows."""
    def detach_(self) -> Self:
        """Cut this tensor off from what made it; a view would keep its base's history, and is refused."""
    def diag(self, diagonal: _int = 0) -> Tensor:
        """The matrix with the vector `input` on a diagonal, or the diagonal of the matrix `input`."""
    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
        """Matrices with the last dim of `input` on a diagonal of the new dims `dim1` and `dim2`, zero elsewhere."""
    def diagflat(self, offset: _int = 0) -> Tensor:
        """The matrix with all elements of `input` on a diagonal."""
    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """The diagonal of two dims, as the last dim."""
    def diagonal_scatter(self, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """A copy of `input` with a diagonal of two dims replaced by `src`."""
    def diff(self, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
        """The `n`-th differences ``x[k + 1] - x[k]`` along `dim`, of `input` between what is prepended and appended."""
    def digamma(self) -> Tensor:
        """``d/dx lgamma(x)``; at 0 infinite, NaN at the negative integers."""
    def digamma_(self) -> Self:
        """In-place version of :meth:`digamma`."""
    def dim_order(self, ambiguity_check: Any = False) -> _tuple[_int, ...]:
        """The dims in the order in which they lie in memory, the slowest first."""
    def dist(self, other: Tensor, p: _float = 2) -> Tensor:
        """The norm of order `p` of ``input - other``."""
    def div(self, other: Operand, *, rounding_mode: _str | None = None) -> Tensor:
        """``input / other``; with ``rounding_mode`` "floor" or "trunc" rounded, and the derivative zero."""
    def div_(self, other: Operand, *, rounding_mode: _str | None = None) -> Self:
        """In-place version of :meth:`div`."""
    def divide(self, other: Operand, *, rounding_mode: _str | None = None) -> Tensor:
        """``input / other``; with ``rounding_mode`` "floor" or "trunc" rounded, and the derivative zero."""
    def divide_(self, other: Operand, *, rounding_mode: _str | None = None) -> Self:
        """In-place version of :meth:`divide`."""
    def dot(self, tensor: Tensor) -> Tensor:
        """``sum(a * b)`` of two vectors."""
    def double(self, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to chainrule.float64."""
    def dsplit(self, indices_or_sections: Ints | Tensor | None = None, *, indices: Any = None, sections: Ints | Tensor | None = None) -> _tuple[Tensor, ...]:
        """Equal pieces of dim 2, or cut at indices."""
    def eq(self, other: Operand) -> Tensor:
        """Where both are equal."""
    def eq_(self, other: Operand) -> Self:
        """In-place version of :meth:`eq`."""
    def equal(self, other: Tensor) -> _bool:
        """Whether both have the same shape and the same elements (NaN differs from itself)."""
    def erf(self) -> Tensor:
        """The error function ``2/sqrt(pi) * integral of exp(-s**2) from 0 to x``."""
    def erf_(self) -> Self:
        """In-place version of :meth:`erf`."""
    def erfc(self) -> Tensor:
        """``1 - erf(x)``, accurate in the right tail."""
    def erfc_(self) -> Self:
        """In-place version of :meth:`erfc`."""
    def erfinv(self) -> Tensor:
        """The inverse of erf on (-1, 1); infinite at the ends."""
    def erfinv_(self) -> Self:
        """In-place version of :meth:`erfinv`."""
    def exp(self) -> Tensor:
        """``e**x``."""
    def exp2(self) -> Tensor:
        """``2**x``."""
    def exp2_(self) -> Self:
        """In-place version of :meth:`exp2`."""
    def exp_(self) -> Self:
        """In-place version of :meth:`exp`."""
    @overload
    def expand(self, *size: Ints, implicit: _bool = False) -> Tensor:
        """Dims of size 1 repeated without copying; -1 keeps a size."""
    @overload
    def expand(self, *, size: Ints, implicit: _bool = False) -> Tensor:
        """Dims of size 1 repeated without copying; -1 keeps a size."""
    def expand_as(self, other: Tensor) -> Tensor:
        """`self` broadcast to the shape of `other`."""
    def expm1(self) -> Tensor:
        """``e**x - 1``, accurate near 0."""
    def expm1_(self) -> Self:
        """In-place version of :meth:`expm1`."""
    def exponential_(self, lambd: _float = 1.0, *, generator: Generator | None = None) -> Self:
        """Fill with numbers of density ``lambd exp(-lambd x)``."""
    def fill_(self, value: Operand) -> Self:
        """Write one number to all elements."""
    def fill_diagonal_(self, fill_value: Operand, wrap: _bool = False) -> Self:
        """Write one number to the diagonal; with `wrap` it starts again below a tall matrix."""
    def fix(self) -> Tensor:
        """x without its fraction."""
    def fix_(self) -> Self:
        """In-place version of :meth:`fix`."""
    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """The dims from `start_dim` to `end_dim` joined into one."""
    @overload
    def flip(self, *dims: Ints) -> Tensor:
        """The order of entries along `dims` reversed."""
    @overload
    def flip(self, *, dims: Ints) -> Tensor:
        """The order of entries along `dims` reversed."""
    def fliplr(self) -> Tensor:
        """Dim 1 reversed."""
    def flipud(self) -> Tensor:
        """Dim 0 reversed."""
    def float(self, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to chainrule.float32."""
    def float_power(self, exponent: Operand) -> Tensor:
        """``input ** exponent`` in double precision (complex where an argument is)."""
    def float_power_(self, exponent: Operand) -> Self:
        """In-place version of :meth:`float_power`; `self` must have the double type of the result."""
    def floor(self) -> Tensor:
        """The largest integer not above x."""
    def floor_(self) -> Self:
        """In-place version of :meth:`floor`."""
    def floor_divide(self, other: Operand) -> Tensor:
        """``input // other``, rounded down."""
    def floor_divide_(self, other: Operand) -> Self:
        """In-place version of :meth:`floor_divide`."""
    def fmax(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """The larger one; a number beats NaN."""
    def fmin(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """The smaller one; a number beats NaN."""
    def fmod(self, other: Operand) -> Tensor:
        """``a - trunc(a / b) b``: the remainder with the sign of `input`."""
    def fmod_(self, other: Operand) -> Self:
        """In-place version of :meth:`fmod`."""
    def frac(self) -> Tensor:
        """``x - trunc(x)``."""
    def frac_(self) -> Self:
        """In-place version of :meth:`frac`."""
    def frexp(self) -> _tuple[Tensor, Tensor]:
        """Mantissa in [0.5, 1) and exponent: ``input == mantissa * 2**exponent``."""
    def gather(self, dim: _int, index: Tensor, *, sparse_grad: _bool = False) -> Tensor:
        """``y[a][b] = input[index[a][b]][b]`` for dim 0, ``input[a][index[a][b]]`` for dim 1, and so on."""
    def gcd(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """The greatest common divisor."""
    def gcd_(self, other: Operand, *, out: Tensor | None = None) -> Self:
        """In-place version of :meth:`gcd`."""
    def ge(self, other: Operand) -> Tensor:
        """``input >= other``."""
    def ge_(self, other: Operand) -> Self:
        """In-place version of :meth:`ge`."""
    def geometric_(self, p: _float, *, generator: Generator | None = None) -> Self:
        """Fill with the number of trials up to the first success: k >= 1 with probability ``(1 - p)**(k - 1) p``."""
    def geqrf(self) -> Geqrf:
        """R in the upper triangle and Householder vectors below it, with their factors tau: what householder_product takes."""
    def ger(self, vec2: Tensor) -> Tensor:
        """``y[i, j] = input[i] * vec2[j]``."""
    def get_device(self) -> _int:
        """-1: the CPU, which has no number."""
    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward() accumulated, or None."""
    @grad.setter
    def grad(self, value: Tensor | None) -> None: ...
    @property
    def grad_fn(self) -> Any:
        """The node that made this tensor, or None for leaves."""
    def greater(self, other: Operand) -> Tensor:
        """``input > other``."""
    def greater_(self, other: Operand) -> Self:
        """In-place version of :meth:`greater`."""
    def greater_equal(self, other: Operand) -> Tensor:
        """``input >= other``."""
    def greater_equal_(self, other: Operand) -> Self:
        """In-place version of :meth:`greater_equal`."""
    def gt(self, other: Operand) -> Tensor:
        """``input > other``."""
    def gt_(self, other: Operand) -> Self:
        """In-place version of :meth:`gt`."""
    def half(self, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to chainrule.float16."""
    def hardshrink(self, lambd: _float = 0.5) -> Tensor:
        """``input`` where ``|input| > lambd``, else 0."""
    def has_names(self) -> _bool:
        """False: dimensions have no names here."""
    def hash_tensor(self, dim: Ints = (), *, keepdim: _bool = False, mode: _int = 0) -> Tensor:
        """The exclusive or, over `dim` or all, of the bits of the entries as 64-bit numbers; a uint64."""
    def heaviside(self, values: Tensor) -> Tensor:
        """0 below 0, 1 above 0, and `values` at 0."""
    def heaviside_(self, values: Tensor) -> Self:
        """In-place version of :meth:`heaviside`."""
    def histc(self, bins: _int = 100, min: _float = 0, max: _float = 0) -> Tensor:
        """How many entries fall in each of `bins` equal bins between `min` and `max`; between the extremes if these are equal."""
    def histogram(self, bins: Ints | Tensor | Sequence[Tensor], *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False) -> Histogram:
        """The (weighted) number of entries in each bin, or their density, and the edges: ``(hist, bin_edges)``."""
    def hpu(self, device: DeviceLike | None = None, non_blocking: _bool = False, memory_format: Layout | None = None) -> Tensor:
        """Raises: there is no device hpu here."""
    def hsplit(self, indices_or_sections: Ints | Tensor | None = None, *, indices: Any = None, sections: Ints | Tensor | None = None) -> _tuple[Tensor, ...]:
        """Equal pieces of dim 1 (of dim 0 for vectors), or cut at indices."""
    def hypot(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """``sqrt(a**2 + b**2)`` without overflow."""
    def hypot_(self, other: Operand, *, out: Tensor | None = None) -> Self:
        """In-place version of :meth:`hypot`."""
    def i0(self) -> Tensor:
        """The modified Bessel function I_0."""
    def i0_(self) -> Self:
        """In-place version of :meth:`i0`."""
    def igamma(self, other: Tensor) -> Tensor:
        """``P(a, x) = 1/Gamma(a) * integral of s**(a-1) e**-s from 0 to x``, with a = `input` and x = `other`."""
    def igamma_(self, other: Tensor) -> Self:
        """In-place version of :meth:`igamma`."""
    def igammac(self, other: Tensor) -> Tensor:
        """``Q(a, x) = 1 - P(a, x)``, with a = `input` and x = `other`, accurate in the right tail."""
    def igammac_(self, other: Tensor) -> Self:
        """In-place version of :meth:`igammac`."""
    @property
    def imag(self) -> Tensor:
        """The imaginary part of a complex tensor, sharing memory."""
    @imag.setter
    def imag(self, value: Tensor) -> None: ...
    def index_add(self, dim: _int, index: Tensor, source: Tensor, *, alpha: Operand = 1) -> Tensor:
        """`input` with ``alpha * source`` added at the entries `index` of `dim`; repeated indices add up."""
    def index_add_(self, dim: _int, index: Tensor, source: Tensor, *, alpha: Operand = 1) -> Self:
        """In-place version of :meth:`index_add`."""
    def index_copy(self, dim: _int, index: Tensor, source: Tensor) -> Tensor:
        """`input` with the entries `index` of `dim` replaced by those of `source`."""
    def index_copy_(self, dim: _int, index: Tensor, source: Tensor) -> Self:
        """In-place version of :meth:`index_copy`."""
    def index_fill(self, dim: _int, index: Tensor, value: Operand) -> Tensor:
        """`input` with the entries `index` of `dim` set to `value`, a number or a 0-d tensor."""
    def index_fill_(self, dim: _int, index: Tensor, value: Operand) -> Self:
        """In-place version of :meth:`index_fill`."""
    def index_put(self, indices: Any, values: Tensor, accumulate: _bool = False) -> Tensor:
        """`input` with ``input[indices]`` replaced by `values`, or with them added."""
    def index_put_(self, indices: Any, values: Tensor, accumulate: _bool = False) -> Self:
        """In-place version of :meth:`index_put`."""
    def index_reduce(self, dim: _int, index: Tensor, source: Tensor, reduce: _str, *, include_self: _bool = True) -> Tensor:
        """`input` with `source` reduced ("prod", "mean", "amax", "amin") into the entries `index` of `dim`."""
    def index_reduce_(self, dim: _int, index: Tensor, source: Tensor, reduce: _str, *, include_self: _bool = True) -> Self:
        """In-place version of :meth:`index_reduce`."""
    def index_select(self, dim: _int, index: Tensor) -> Tensor:
        """Entries `index` (a vector) of `dim`."""
    def indices(self) -> Tensor:
        """The coordinates of the stored numbers, ``[sparse dims, nnz]``."""
    def inner(self, other: Tensor) -> Tensor:
        """The sum of products over the last dims of both."""
    def int(self, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to chainrule.int32."""
    def inverse(self) -> Tensor:
        """``A^-1``; a singular matrix raises."""
    def ipu(self, device: DeviceLike | None = None, non_blocking: _bool = False, memory_format: Layout | None = None) -> Tensor:
        """Raises: there is no device ipu here."""
    def is_coalesced(self) -> _bool:
        """Whether coordinates are known to be in order, each once."""
    @property
    def is_cpu(self) -> _bool:
        """True: tensors are on the CPU."""
    def is_distributed(self) -> _bool:
        """False: a tensor is in one process."""
    def is_inference(self, device: DeviceLike | None = None) -> _bool:
        """False: memory is ordinary memory."""
    @property
    def is_leaf(self) -> _bool:
        """Whether the tensor was not made by a recorded op."""
    def is_nonzero(self) -> _bool:
        """Whether a tensor of one element is not 0."""
    def is_pinned(self, device: DeviceLike | None = None) -> _bool:
        """False: memory is ordinary memory."""
    def is_same_size(self, other: Tensor) -> _bool:
        """Whether two tensors have the same shape."""
    def is_set_to(self, tensor: Tensor) -> _bool:
        """Whether both are the same view of the same memory."""
    def is_shared(self, device: DeviceLike | None = None) -> _bool:
        """False: memory is ordinary memory."""
    def is_signed(self) -> _bool:
        """Whether the type has negative numbers."""
    def isclose(self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
        """``|input - other| <= atol + rtol |other|``, element by element; equal infinities are close."""
    def isfinite(self) -> Tensor:
        """Whether neither infinite nor NaN (in both parts)."""
    def isinf(self) -> Tensor:
        """Whether infinite (in either part)."""
    def isnan(self) -> Tensor:
        """Whether it is NaN; a complex number is where a part of it is."""
    def isneginf(self) -> Tensor:
        """Whether negative infinity."""
    def isposinf(self) -> Tensor:
        """Whether positive infinity."""
    def isreal(self) -> Tensor:
        """Whether the imaginary part is 0."""
    def istft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex: _bool = False) -> Tensor:
        """The signal whose stft is nearest to `input` in the sense of least squares."""
    def kron(self, other: Tensor) -> Tensor:
        """The Kronecker product: every element of `input` times the whole of `other`."""
    def kthvalue(self, k: _int, dim: _int = -1, keepdim: _bool = False) -> ValuesIndices:
        """The `k`-th smallest entry along `dim`, counted from 1: ``(values, indices)``."""
    def lcm(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """The least common multiple."""
    def lcm_(self, other: Operand, *, out: Tensor | None = None) -> Self:
        """In-place version of :meth:`lcm`."""
    def ldexp(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """``input * 2**other``."""
    def ldexp_(self, other: Operand, *, out: Tensor | None = None) -> Self:
        """In-place version of :meth:`ldexp`."""
    def le(self, other: Operand) -> Tensor:
        """``input <= other``."""
    def le_(self, other: Operand) -> Self:
        """In-place version of :meth:`le`."""
    def lengths(self) -> Tensor:
        """The number of packed rows of each component."""
    def lerp(self, end: Tensor, weight: Operand | None) -> Tensor:
        """``input + weight * (end - input)``, exact at weights 0 and 1; `weight` is a number or a tensor."""
    def lerp_(self, end: Tensor, weight: Operand | None) -> Self:
        """In-place version of :meth:`lerp`."""
    def less(self, other: Operand) -> Tensor:
        """``input < other``."""
    def less_(self, other: Operand) -> Self:
        """In-place version of :meth:`less`."""
    def less_equal(self, other: Operand) -> Tensor:
        """``input <= other``."""
    def less_equal_(self, other: Operand) -> Self:
        """In-place version of :meth:`less_equal`."""
    def lgamma(self) -> Tensor:
        """``log|Gamma(x)|``; infinite at 0, -1, -2, ..."""
    def lgamma_(self) -> Self:
        """In-place version of :meth:`lgamma`."""
    def log(self) -> Tensor:
        """The natural logarithm."""
    def log10(self) -> Tensor:
        """The logarithm to base 10."""
    def log10_(self) -> Self:
        """In-place version of :meth:`log10`."""
    def log1p(self) -> Tensor:
        """``log(1 + x)``, accurate near 0."""
    def log1p_(self) -> Self:
        """In-place version of :meth:`log1p`."""
    def log2(self) -> Tensor:
        """The logarithm to base 2."""
    def log2_(self) -> Self:
        """In-place version of :meth:`log2`."""
    def log_(self) -> Self:
        """In-place version of :meth:`log`."""
    def log_normal_(self, mean: _float = 1.0, std: _float = 2.0, *, generator: Generator | None = None) -> Self:
        """Fill with numbers whose logarithm is normal with this mean and standard deviation."""
    def log_softmax(self, dim: _int, dtype: DTypeLike | None = None) -> Tensor:
        """``log(softmax(x))`` over `dim`, without underflow."""
    def logaddexp(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """``log(exp(input) + exp(other))`` without overflow."""
    def logaddexp2(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """``log2(2**input + 2**other)`` without overflow."""
    def logcumsumexp(self, dim: _int) -> Tensor:
        """``y[k] = log(e**x[0] + ... + e**x[k])`` along `dim`, without overflow."""
    def logdet(self) -> Tensor:
        """``log(det A)``: NaN for a negative determinant, -inf for a singular matrix."""
    def logical_and(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """Whether both are true (not 0)."""
    def logical_and_(self, other: Operand, *, out: Tensor | None = None) -> Self:
        """In-place version of :meth:`logical_and`."""
    def logical_not(self) -> Tensor:
        """Whether it is 0."""
    def logical_not_(self) -> Self:
        """In-place version of :meth:`logical_not`."""
    def logical_or(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """Whether one is true (not 0)."""
    def logical_or_(self, other: Operand, *, out: Tensor | None = None) -> Self:
        """In-place version of :meth:`logical_or`."""
    def logical_xor(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """Whether exactly one is true (not 0)."""
    def logical_xor_(self, other: Operand, *, out: Tensor | None = None) -> Self:
        """In-place version of :meth:`logical_xor`."""
    def logit(self, eps: _float | None = None) -> Tensor:
        """``log(x / (1 - x))``, NaN outside [0, 1]; with `eps`, x is first limited to [eps, 1 - eps], and constant beyond."""
    def logit_(self, eps: _float | None = None) -> Self:
        """In-place version of :meth:`logit`."""
    def logsumexp(self, dim: Ints, keepdim: _bool = False) -> Tensor:
        """``log(sum(exp(input)))`` over `dim`, without overflow."""
    def long(self, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to chainrule.int64."""
    def lt(self, other: Operand) -> Tensor:
        """``input < other``."""
    def lt_(self, other: Operand) -> Self:
        """In-place version of :meth:`lt`."""
    def lu(self, pivot: _bool = True, get_infos: _bool = False) -> LUFactor | LUFactorEx:
        """L and U packed into one matrix and the row interchanges; with `get_infos` the first zero pivots."""
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """``X`` with ``A X = b`` from A's LU factorization."""
    @property
    def mH(self) -> Tensor:
        """The conjugate of the last two dims exchanged."""
    @property
    def mT(self) -> Tensor:
        """The last two dims exchanged."""
    def map2_(self, x: Tensor, y: Tensor, f: Any) -> Self:
        """Write ``f(self element, x element, y element)`` to every element; slow, for Python functions of numbers."""
    def map_(self, tensor: Tensor, f: Any) -> Self:
        """Write ``f(self element, tensor element)`` to every element; slow, for Python functions of numbers."""
    def masked_fill(self, mask: Tensor, value: Operand) -> Tensor:
        """`input` with `value` (a number or a 0-d tensor) where the mask holds."""
    def masked_fill_(self, mask: Tensor, value: Operand) -> Self:
        """In-place version of :meth:`masked_fill`."""
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """`input` with the elements of `source`, one after the other, where the mask holds."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Self:
        """In-place version of :meth:`masked_scatter`."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements of `input` where the mask holds, in one dim."""
    def matmul(self, other: Tensor) -> Tensor:
        """``input @ other``: vectors, matrices, and batches of matrices whose leading dims broadcast."""
    def matrix_exp(self) -> Tensor:
        """``I + A + A A / 2 + ...``."""
    def matrix_power(self, n: _int) -> Tensor:
        """``A A ... A``, n factors, by squaring; of the inverse for a negative n."""
    @overload
    def max(self) -> Tensor:
        """The largest entry of all; ``(values, indices)`` along `dim`; or, of two tensors, the largest elementwise."""
    @overload
    def max(self, dim: _int, keepdim: _bool = False) -> ValuesIndices:
        """The largest entry of all; ``(values, indices)`` along `dim`; or, of two tensors, the largest elementwise."""
    @overload
    def max(self, other: Tensor) -> Tensor:
        """The largest entry of all; ``(values, indices)`` along `dim`; or, of two tensors, the largest elementwise."""
    def maximum(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """The larger one; NaN wins; a tie is shared."""
    def mean(self, dim: Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The arithmetic mean of all elements, or over `dim`."""
    @overload
    def median(self) -> Tensor:
        """The lower median of the entries, NaN if one is; ``(values, indices)`` along `dim`, or of all."""
    @overload
    def median(self, dim: _int, keepdim: _bool = False) -> ValuesIndices:
        """The lower median of the entries, NaN if one is; ``(values, indices)`` along `dim`, or of all."""
    @overload
    def min(self) -> Tensor:
        """The smallest entry of all; ``(values, indices)`` along `dim`; or, of two tensors, the smallest elementwise."""
    @overload
    def min(self, dim: _int, keepdim: _bool = False) -> ValuesIndices:
        """The smallest entry of all; ``(values, indices)`` along `dim`; or, of two tensors, the smallest elementwise."""
    @overload
    def min(self, other: Tensor) -> Tensor:
        """The smallest entry of all; ``(values, indices)`` along `dim`; or, of two tensors, the smallest elementwise."""
    def minimum(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """The smaller one; NaN wins; a tie is shared."""
    def mm(self, mat2: Tensor) -> Tensor:
        """The product of two matrices."""
    def mode(self, dim: _int = -1, keepdim: _bool = False) -> ValuesIndices:
        """The most frequent entry along `dim`, the smallest of equally frequent ones: ``(values, indices)``."""
    def module_load(self, other: Tensor, assign: _bool = False) -> Tensor:
        """What a module that loads a state makes of `other` for this tensor: its value copied here, or with `assign` itself."""
    def moveaxis(self, source: Ints, destination: Ints) -> Tensor:
        """Dims moved from `source` to `destination`, the others keeping their order."""
    def movedim(self, source: Ints, destination: Ints) -> Tensor:
        """Dims moved from `source` to `destination`, the others keeping their order."""
    def msort(self) -> Tensor:
        """`input` sorted along dim 0."""
    def mtia(self, device: DeviceLike | None = None, non_blocking: _bool = False, memory_format: Layout | None = None) -> Tensor:
        """Raises: there is no device mtia here."""
    def mul(self, other: Operand) -> Tensor:
        """``input * other``."""
    def mul_(self, other: Operand) -> Self:
        """In-place version of :meth:`mul`."""
    def multinomial(self, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
        """Indices drawn from each row with probabilities proportional to `input`, with or without replacement."""
    def multiply(self, other: Operand) -> Tensor:
        """``input * other``."""
    def multiply_(self, other: Operand) -> Self:
        """In-place version of :meth:`multiply`."""
    def mv(self, vec: Tensor) -> Tensor:
        """A matrix times a vector."""
    def mvlgamma(self, p: _int) -> Tensor:
        """``p (p-1)/4 log(pi) + sum over j < p of lgamma(x - j/2)``, the logarithm of the multivariate gamma function."""
    def mvlgamma_(self, p: _int) -> Self:
        """In-place version of :meth:`mvlgamma`."""
    @property
    def names(self) -> _tuple[None, ...]:
        """None for every dimension: dimensions have no names here."""
    def nan_to_num(self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """`input` with NaN replaced (default 0), and the infinities (default the largest and smallest number of the type)."""
    def nan_to_num_(self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Self:
        """In-place version of :meth:`nan_to_num`."""
    def nanmean(self, dim: Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The mean over `dim` of the entries that are not NaN."""
    @overload
    def nanmedian(self) -> Tensor:
        """The lower median of the entries that are not NaN; ``(values, indices)`` along `dim`, or of all."""
    @overload
    def nanmedian(self, dim: _int, keepdim: _bool = False) -> ValuesIndices:
        """The lower median of the entries that are not NaN; ``(values, indices)`` along `dim`, or of all."""
    def nanquantile(self, q: Operand, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> Tensor:
        """The `q`-quantiles of the entries that are not NaN, along `dim` or of all."""
    def nansum(self, dim: Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The sum over `dim` with NaN counted as 0, and without derivative."""
    def narrow(self, dim: _int, start: Operand, length: _int) -> Tensor:
        """`length` entries of `dim` from `start` on."""
    def narrow_copy(self, dim: _int, start: _int, length: _int) -> Tensor:
        """A copy of ``self.narrow(dim, start, length)``."""
    def ne(self, other: Operand) -> Tensor:
        """Where both differ."""
    def ne_(self, other: Operand) -> Self:
        """In-place version of :meth:`ne`."""
    def neg(self) -> Tensor:
        """``-x``."""
    def neg_(self) -> Self:
        """In-place version of :meth:`neg`."""
    def negative(self) -> Tensor:
        """``-x``."""
    def negative_(self) -> Self:
        """In-place version of :meth:`negative`."""
    def new(self, *args: Any, device: DeviceLike | None = None) -> Tensor:
        """A tensor of this one's type from data or from sizes; ``new_tensor`` and ``new_empty`` say which."""
    def new_empty(self, *sizes: Ints, size: Ints | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None) -> Tensor:
        """A tensor of the type of `self` whose contents are unspecified (here: zeros)."""
    def new_empty_strided(self, size: Ints, stride: Ints, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None) -> Tensor:
        """A tensor of the type of `self` with the given sizes and strides."""
    def new_full(self, size: Ints, fill_value: Operand, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None) -> Tensor:
        """A tensor of the type of `self` filled with one number."""
    def new_ones(self, *sizes: Ints, size: Ints | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None) -> Tensor:
        """A tensor of the type of `self` filled with 1."""
    def new_tensor(self, data: Any, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: _bool = False) -> Tensor:
        """A tensor with a copy of `data` and the type of `self`."""
    def new_zeros(self, *sizes: Ints, size: Ints | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None) -> Tensor:
        """A tensor of the type of `self` filled with 0."""
    def nextafter(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """The next number of this type after `input` towards `other`."""
    def nextafter_(self, other: Operand, *, out: Tensor | None = None) -> Self:
        """In-place version of :meth:`nextafter`."""
    def nnz(self) -> _int:
        """The number of stored entries."""
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor:
        """The positions of nonzero elements: a row each, or with ``as_tuple`` an index tensor for each dim."""
    @overload
    def nonzero(self, *, as_tuple: _bool = False) -> Any:
        """The positions of nonzero elements: a row each, or with ``as_tuple`` an index tensor for each dim."""
    def nonzero_static(self, *, size: _int, fill_value: _int = -1) -> Tensor:
        """The positions of the first `size` nonzero elements, padded with rows of `fill_value`."""
    def norm(self, p: _float | _str | Tensor = 'fro', dim: Ints | None = None, keepdim: _bool = False, dtype: DTypeLike | None = None) -> Tensor:
        """The vector norm of order `p` over `dim` or all; 'fro' is the 2-norm, 'nuc' the sum of singular values."""
    def normal_(self, mean: _float = 0.0, std: _float = 1.0, *, generator: Generator | None = None) -> Self:
        """Fill with normal numbers."""
    def not_equal(self, other: Operand) -> Tensor:
        """Where both differ."""
    def not_equal_(self, other: Operand) -> Self:
        """In-place version of :meth:`not_equal`."""
    def offsets(self) -> Tensor:
        """Where each component starts in ``values()``, and the end."""
    def orgqr(self, tau: Tensor) -> Tensor:
        """The first n columns of ``H_1 ... H_k`` with ``H_i = I - tau[i] v_i v_i^H``, v_i below the diagonal of A's column i."""
    def ormqr(self, tau: Tensor, other: Tensor, left: _bool = True, transpose: _bool = False) -> Tensor:
        """``Q other`` (or ``other Q``; ``Q^H`` with `transpose`) for the square Q of Householder vectors `input` and factors `tau`."""
    def outer(self, vec2: Tensor) -> Tensor:
        """``y[i, j] = input[i] * vec2[j]``."""
    @property
    def output_nr(self) -> _int:
        ...
    @overload
    def permute(self, *dims: Ints) -> Tensor:
        """Dims in the order `dims`."""
    @overload
    def permute(self, *, dims: Ints) -> Tensor:
        """Dims in the order `dims`."""
    def pin_memory(self, device: DeviceLike | None = None) -> Tensor:
        """`self`: memory is ordinary memory."""
    def pinverse(self, rcond: Operand = 1e-15) -> Tensor:
        """The Moore-Penrose inverse; singular values up to ``rcond * largest`` count as zero."""
    def polygamma(self, n: _int) -> Tensor:
        """``(d/dx)**n digamma(x)``."""
    def polygamma_(self, n: _int) -> Self:
        """In-place version of :meth:`polygamma`."""
    def positive(self) -> Tensor:
        """`input` itself."""
    def pow(self, exponent: Operand) -> Tensor:
        """``input ** exponent``; 0 ** 0 is 1 (NaN for a complex tensor as exponent), and its derivatives are 0."""
    def pow_(self, exponent: Operand) -> Self:
        """In-place version of :meth:`pow`."""
    def prelu(self, weight: Tensor) -> Tensor:
        """``input`` where positive, else ``weight * input``, with one weight in all or one for every entry of dim 1."""
    def prod(self, dim: Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The product of all elements, or over one dim; right for any number of zeros at every order."""
    def put(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """`input` with its flattened elements at `index` replaced by (or increased by) `source`."""
    def put_(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Self:
        """In-place version of :meth:`put`."""
    def qr(self, some: _bool = True) -> QR:
        """``input = Q R``, reduced unless ``some=False``."""
    def quantile(self, q: Operand, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> Tensor:
        """The `q`-quantiles along `dim` or of all, between neighbours by `interpolation`; NaN where an entry is."""
    def rad2deg(self) -> Tensor:
        """``180 x / pi``."""
    def rad2deg_(self) -> Self:
        """In-place version of :meth:`rad2deg`."""
    def random_(self, *args: Any, to: _int | None = None, generator: Generator | None = None, **kw: Any) -> Self:
        """Fill with integers uniform in [from, to): ``random_()``, ``random_(to)``, ``random_(from, to)``."""
    def ravel(self) -> Tensor:
        """All elements in one dim."""
    @property
    def real(self) -> Tensor:
        """The real part, sharing memory; a real tensor itself."""
    @real.setter
    def real(self, value: Tensor) -> None: ...
    def reciprocal(self) -> Tensor:
        """``1 / x``."""
    def reciprocal_(self) -> Self:
        """In-place version of :meth:`reciprocal`."""
    def register_hook(self, hook: Callable[[Tensor], Any]) -> RemovableHandle:
        """Call ``hook(grad)`` when backward computes this tensor's gradient; what it returns replaces the gradient."""
    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        """Call ``hook(tensor)`` after backward() has added to this leaf's ``.grad``."""
    def relu(self) -> Tensor:
        """``max(input, 0)``; the derivative at 0 is 0."""
    def relu_(self) -> Self:
        """In-place version of :meth:`relu`."""
    def remainder(self, other: Operand) -> Tensor:
        """``a - floor(a / b) b``: the remainder with the sign of `other`."""
    def remainder_(self, other: Operand) -> Self:
        """In-place version of :meth:`remainder`."""
    def renorm(self, p: _float, dim: _int, maxnorm: _float) -> Tensor:
        """`input` with each slice of `dim` whose norm of order `p` exceeds `maxnorm` scaled down to it."""
    def renorm_(self, p: _float, dim: _int, maxnorm: _float) -> Self:
        """In-place version of :meth:`renorm`."""
    @overload
    def repeat(self, *sizes: Ints) -> Tensor:
        """`self` laid side by side, so many times along each dim."""
    @overload
    def repeat(self, *, repeats: Ints) -> Tensor:
        """`self` laid side by side, so many times along each dim."""
    def repeat_interleave(self, repeats: Ints | Tensor | None = None, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor:
        """Each entry of `dim` (of the flattened tensor without one) repeated, all equally often or each by its own count."""
    def requires_grad_(self, requires_grad: _bool = True) -> Self:
        """Record what is done with this tensor from here on (or stop to)."""
    @overload
    def reshape(self, *shape: Ints) -> Tensor:
        """The same elements in row-major order with another shape; a view where possible."""
    @overload
    def reshape(self, *, shape: Ints) -> Tensor:
        """The same elements in row-major order with another shape; a view where possible."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """`self` with the shape of `other`."""
    def resize_(self, *size: Ints, memory_format: Layout | None = None) -> Self:
        """Give `self` other sizes: its memory, in order, cut off or continued with unspecified elements (here: zeros)."""
    def resize_as_(self, the_template: Tensor, *, memory_format: Layout | None = None) -> Self:
        """Give `self` the shape of a template; see :func:`resize_`."""
    def resize_as_sparse_(self, the_template: Tensor) -> Self:
        """`self` with the sizes of another sparse tensor, in place."""
    def retain_grad(self) -> None:
        """Let backward() fill ``.grad`` of this non-leaf tensor."""
    @property
    def retains_grad(self) -> _bool:
        ...
    def roll(self, shifts: Ints, dims: Ints | None = None) -> Tensor:
        """Entries moved along `dims` by `shifts`, around the end; without dims, of the flattened tensor."""
    def rot90(self, k: _int = 1, dims: Sequence[_int] = (0, 1)) -> Tensor:
        """Turned by k quarter turns from ``dims[0]`` towards ``dims[1]``."""
    def round(self, *, decimals: _int = 0) -> Tensor:
        """The nearest integer, or number with so many decimals; halves go to the even one."""
    def round_(self, *, decimals: _int = 0) -> Self:
        """In-place version of :meth:`round`."""
    def row_indices(self) -> Tensor:
        """The rows that the stored entries stand in."""
    def rsqrt(self) -> Tensor:
        """``1 / sqrt(x)``."""
    def rsqrt_(self) -> Self:
        """In-place version of :meth:`rsqrt`."""
    def rsub(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
        """``other - alpha * input``."""
    def scatter(self, dim: _int, index: Tensor, src: Operand | None = None, *, value: Operand | None = None, reduce: _str | None = None) -> Tensor:
        """`input` with `src` (a tensor or a number) written where gather would read."""
    def scatter_(self, dim: _int, index: Tensor, src: Operand | None = None, *, value: Operand | None = None, reduce: _str | None = None) -> Self:
        """In-place version of :meth:`scatter`."""
    def scatter_add(self, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """`input` with `src` added where gather would read."""
    def scatter_add_(self, dim: _int, index: Tensor, src: Tensor) -> Self:
        """In-place version of :meth:`scatter_add`."""
    def scatter_reduce(self, dim: _int, index: Tensor, src: Tensor, reduce: _str, *, include_self: _bool = True) -> Tensor:
        """`input` with `src` reduced ("sum", "prod", "mean", "amax", "amin") into the places that gather would read."""
    def scatter_reduce_(self, dim: _int, index: Tensor, src: Tensor, reduce: _str, *, include_self: _bool = True) -> Self:
        """In-place version of :meth:`scatter_reduce`."""
    def select(self, dim: _int, index: _int | Tensor) -> Tensor:
        """Entry `index` of `dim`, which disappears."""
    def select_scatter(self, src: Tensor, dim: _int, index: _int) -> Tensor:
        """A copy of `input` with entry `index` of `dim` replaced by `src`."""
    def set_(self, source: Tensor | None = None, storage_offset: _int = 0, size: Ints | None = None, stride: Ints | None = None) -> Self:
        """Make `self` share the memory of `source`, with other sizes and strides if given."""
    def sgn(self) -> Tensor:
        """``z / |z|``, and 0 at 0."""
    def sgn_(self) -> Self:
        """In-place version of :meth:`sgn`."""
    def share_memory_(self, device: DeviceLike | None = None) -> Self:
        """`self`: memory is ordinary memory."""
    def short(self, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to chainrule.int16."""
    def sigmoid(self) -> Tensor:
        """``1 / (1 + e**-x)``."""
    def sigmoid_(self) -> Self:
        """In-place version of :meth:`sigmoid`."""
    def sign(self) -> Tensor:
        """-1, 0 or 1 by the sign of x."""
    def sign_(self) -> Self:
        """In-place version of :meth:`sign`."""
    def signbit(self) -> Tensor:
        """Whether the sign bit is set; -0.0 has it."""
    def sin(self) -> Tensor:
        """The sine."""
    def sin_(self) -> Self:
        """In-place version of :meth:`sin`."""
    def sinc(self) -> Tensor:
        """``sin(pi x) / (pi x)``, 1 at 0 and 0 at the other integers; smooth to any order."""
    def sinc_(self) -> Self:
        """In-place version of :meth:`sinc`."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine."""
    def sinh_(self) -> Self:
        """In-place version of :meth:`sinh`."""
    def slice_inverse(self, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
        """The tensor whose slice is `self` and that equals `src` where the slice does not reach."""
    def slice_scatter(self, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
        """A copy of `input` with the entries ``start:end:step`` of `dim` replaced by `src`."""
    def slogdet(self) -> Slogdet:
        """``sign, logabsdet`` with ``det A = sign * exp(logabsdet)``, without overflow; sign is a phase for complex A."""
    def smm(self, mat2: Tensor) -> Tensor:
        """The product of a sparse and a dense matrix, as a sparse one."""
    def softmax(self, dim: _int, dtype: DTypeLike | None = None) -> Tensor:
        """``exp(x) / sum(exp(x))`` over `dim`."""
    def sort(self, dim: _int = -1, descending: _bool = False, stable: _bool | None = None) -> Sorted:
        """Values along `dim` in order, and their positions; equal values keep their order."""
    def sparse_dim(self) -> _int:
        """The number of sparse dims; 0 of a dense tensor. The dims of a batch are none."""
    def sparse_mask(self, mask: Tensor) -> Tensor:
        """The elements of `self`, dense or sparse, at the places of the sparse tensor `mask`."""
    def sparse_resize_(self, size: Ints, sparse_dim: _int, dense_dim: _int) -> Self:
        """Other sizes for a tensor by coordinates, in place; what is stored must fit, and new dims need one without numbers."""
    def sparse_resize_and_clear_(self, size: Ints, sparse_dim: _int, dense_dim: _int) -> Self:
        """Other sizes for a tensor by coordinates, in place, with nothing stored."""
    def split(self, split_size_or_sections: Ints | None = None, dim: _int = 0, *, split_size: Ints | None = None) -> _tuple[Tensor, ...]:
        """Pieces of `dim`: of one size (the last may be smaller), or of the listed sizes."""
    def split_with_sizes(self, split_sizes: Sequence[_int], dim: _int = 0) -> _tuple[Tensor, ...]:
        """Pieces of `dim` of the listed sizes."""
    def sqrt(self) -> Tensor:
        """The square root."""
    def sqrt_(self) -> Self:
        """In-place version of :meth:`sqrt`."""
    def square(self) -> Tensor:
        """``x * x``."""
    def square_(self) -> Self:
        """In-place version of :meth:`square`."""
    def squeeze(self, dim: Ints | None = None) -> Tensor:
        """Dims of size 1 removed: all, or those listed."""
    def squeeze_(self, dim: Ints | None = None) -> Self:
        """Make `self` the view that :meth:`squeeze` gives."""
    def sspaddmm(self, mat1: Tensor, mat2: Tensor, *, beta: Operand = 1, alpha: Operand = 1) -> Tensor:
        """``beta * input + alpha * (mat1 @ mat2)`` with sparse `input` and `mat1`, as a sparse tensor."""
    def std(self, dim: Ints | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _float | None = None) -> Tensor:
        """The square root of the variance over `dim`; its derivative where it is 0 is 0."""
    def stft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, pad_mode: _str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: _bool | None = None) -> Tensor:
        """``y[k, m] = sum_n window[n] x[m hop_length + n] exp(-2 pi i k n / n_fft)``: frequencies k of the frames m of a signal."""
    def storage(self) -> Any:
        """The elements of the memory that this tensor's family of views shares."""
    def storage_type(self) -> Any:
        """The class of storages for elements of this type."""
    def sub(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
        """``input - alpha * other``."""
    def sub_(self, other: Operand, *, alpha: Operand = 1) -> Self:
        """In-place version of :meth:`sub`."""
    def subtract(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
        """``input - alpha * other``."""
    def subtract_(self, other: Operand, *, alpha: Operand = 1) -> Self:
        """In-place version of :meth:`subtract`."""
    def sum(self, dim: Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """The sum of all elements, or over `dim`."""
    def sum_to_size(self, *size: Ints) -> Tensor:
        """The sum over the dims along which `size` would have to be expanded to the shape of `self`."""
    def svd(self, some: _bool = True, compute_uv: _bool = True) -> SVDV:
        """``input = U diag(S) V^H``; U and V are zeros without `compute_uv`."""
    def swapaxes(self, axis0: _int, axis1: _int) -> Tensor:
        """Two dims exchanged."""
    def swapaxes_(self, axis0: _int, axis1: _int) -> Self:
        """Make `self` the view that :meth:`swapaxes` gives."""
    def swapdims(self, dim0: Any, dim1: _int | None = None) -> Tensor:
        """Two dims exchanged; with one tuple, all dims in that order, as NumPy has it."""
    def swapdims_(self, dim0: Any, dim1: _int | None = None) -> Self:
        """Make `self` the view that :meth:`swapdims` gives."""
    def t(self) -> Tensor:
        """The transpose of a matrix; vectors and scalars as they are."""
    def t_(self) -> Self:
        """Make `self` the view that :meth:`t` gives."""
    def take(self, index: Tensor) -> Tensor:
        """Elements of the flattened input at `index`, in the shape of index."""
    def take_along_dim(self, indices: Tensor, dim: _int | None = None) -> Tensor:
        """gather with the other dims broadcast; without `dim`, of the flattened input."""
    def tan(self) -> Tensor:
        """The tangent."""
    def tan_(self) -> Self:
        """In-place version of :meth:`tan`."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""
    def tanh_(self) -> Self:
        """In-place version of :meth:`tanh`."""
    def tensor_split(self, indices_or_sections: Ints | Tensor | None = None, dim: _int = 0, *, indices: Any = None, sections: Ints | Tensor | None = None, tensor_indices_or_sections: Ints | Tensor | None = None) -> _tuple[Tensor, ...]:
        """Pieces of `dim`: so many nearly equal ones, or cut at the listed indices."""
    def tile(self, *dims: Ints) -> Tensor:
        """`input` laid side by side; missing leading counts are 1."""
    @overload
    def to(self, dtype: DTypeLike, non_blocking: _bool = False, copy: _bool = False, *, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to a type: ``x.to(chainrule.float64)``, ``x.to(other)``; itself where nothing changes."""
    @overload
    def to(self, device: DeviceLike | None = None, dtype: DTypeLike | None = None, non_blocking: _bool = False, copy: _bool = False, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to a type: ``x.to(chainrule.float64)``, ``x.to(other)``; itself where nothing changes."""
    @overload
    def to(self, other: Tensor, non_blocking: _bool = False, copy: _bool = False, *, memory_format: Layout | None = None) -> Tensor:
        """`self` converted to a type: ``x.to(chainrule.float64)``, ``x.to(other)``; itself where nothing changes."""
    def to_dense(self, dtype: DTypeLike | None = None, *, masked_grad: _bool = True) -> Tensor:
        """The dense tensor. `masked_grad`: the derivative is that of the stored elements alone; else of all of them, and dense."""
    def to_numpy(self) -> Any:
        """The values as a NumPy array, without a derivative: what pandas and matplotlib ask for."""
    def to_padded_tensor(self, padding: _float = 0.0, output_size: Sequence[_int] | None = None) -> Tensor:
        """The components at the corners of one ordinary tensor, the rest filled with `padding`."""
    def to_sparse(self, sparse_dim: _int | None = None, *, layout: Layout | None = None, blocksize: Any = None, dense_dim: _int | None = None) -> Tensor:
        """The tensor in a sparse layout, by coordinates unless told: of a dense one the elements that are not zero."""
    def to_sparse_bsc(self, blocksize: Any, dense_dim: _int | None = None) -> Tensor:
        """The tensor by columns of blocks; dims in front of the last two are a batch."""
    def to_sparse_bsr(self, blocksize: Any, dense_dim: _int | None = None) -> Tensor:
        """The tensor by rows of blocks; dims in front of the last two are a batch."""
    def to_sparse_coo(self) -> Tensor:
        """The tensor by coordinates."""
    def to_sparse_csc(self, dense_dim: _int | None = None) -> Tensor:
        """The tensor by columns; dims in front of the last two are a batch."""
    def to_sparse_csr(self, dense_dim: _int | None = None) -> Tensor:
        """The tensor by rows; dims in front of the last two are a batch."""
    def topk(self, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> Sorted:
        """The k largest (or smallest) entries along `dim`, in order, and their positions."""
    def trace(self) -> Tensor:
        """``sum_i x[i, i]`` of a matrix."""
    def transpose(self, dim0: Any, dim1: _int | None = None) -> Tensor:
        """Two dims exchanged; with one tuple, all dims in that order, as NumPy has it."""
    def transpose_(self, dim0: Any, dim1: _int | None = None) -> Self:
        """Make `self` the view that :meth:`transpose` gives."""
    def triangular_solve(self, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False) -> TriangularSolve:
        """``X`` with ``A X = input`` (``A^T X = input`` with `transpose`) for a triangular A, and a copy of A."""
    def tril(self, diagonal: _int = 0) -> Tensor:
        """The lower triangle of the last two dims, zeros elsewhere."""
    def tril_(self, diagonal: _int = 0) -> Self:
        """In-place version of :meth:`tril`."""
    def triu(self, diagonal: _int = 0) -> Tensor:
        """The upper triangle of the last two dims, zeros elsewhere."""
    def triu_(self, diagonal: _int = 0) -> Self:
        """In-place version of :meth:`triu`."""
    def true_divide(self, other: Operand) -> Tensor:
        """``input / other``."""
    def true_divide_(self, other: Operand) -> Self:
        """In-place version of :meth:`true_divide`."""
    def trunc(self) -> Tensor:
        """x without its fraction."""
    def trunc_(self) -> Self:
        """In-place version of :meth:`trunc`."""
    @overload
    def type(self) -> _str:
        """The type's name, as ``"torch.FloatTensor"``; or `self` converted to `dtype`, which may be such a name."""
    @overload
    def type(self, dtype: DTypeLike | _str | _type[Tensor], non_blocking: _bool = False) -> Tensor:
        """The type's name, as ``"torch.FloatTensor"``; or `self` converted to `dtype`, which may be such a name."""
    def type_as(self, other: Tensor) -> Tensor:
        """`self` converted to the type of `other`."""
    def unbind(self, dim: _int = 0) -> _tuple[Tensor, ...]:
        """All entries of `dim`."""
    def unflatten(self, dim: _int, sizes: Sequence[_int]) -> Tensor:
        """One dim split into several; one of `sizes` may be -1."""
    def unfold(self, dimension: _int, size: _int, step: _int) -> Tensor:
        """All windows of `size` entries, every `step` entries of `dimension`; the window is a new last dim (a view)."""
    def uniform_(self, from_: _float = 0.0, to: _float = 1.0, *, generator: Generator | None = None, **kw: Any) -> Self:
        """Fill with numbers uniform in [from, to)."""
    @overload
    def unique(self, sorted: _bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
        """The different values (or slices of `dim`), in order; where each element went; how often each occurs."""
    @overload
    def unique(self, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any:
        """The different values (or slices of `dim`), in order; where each element went; how often each occurs."""
    @overload
    def unique_consecutive(self, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
        """The values (or slices of `dim`) that differ from the one before; where each went; how long each run is."""
    @overload
    def unique_consecutive(self, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any:
        """The values (or slices of `dim`) that differ from the one before; where each went; how long each run is."""
    def unsafe_chunk(self, chunks: _int, dim: _int = 0) -> _tuple[Tensor, ...]:
        """:func:`chunk`; here views are always safe."""
    def unsafe_split(self, split_size: _int, dim: _int = 0) -> _tuple[Tensor, ...]:
        """:func:`split`; here views are always safe."""
    def unsafe_split_with_sizes(self, split_sizes: Sequence[_int], dim: _int = 0) -> _tuple[Tensor, ...]:
        """:func:`split_with_sizes`; here views are always safe."""
    def unsqueeze(self, dim: _int) -> Tensor:
        """A dim of size 1 inserted at `dim`."""
    def unsqueeze_(self, dim: _int) -> Self:
        """Make `self` the view that :meth:`unsqueeze` gives."""
    def untyped_storage(self) -> Any:
        """The bytes of the memory that this tensor's family of views shares."""
    def values(self) -> Tensor:
        """The stored numbers of a sparse tensor, or the packed rows of a nested one; derivatives flow through them."""
    def var(self, dim: Ints | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _float | None = None) -> Tensor:
        """``sum(|x - mean|**2) / (n - correction)`` over `dim`."""
    def vdot(self, other: Tensor) -> Tensor:
        """``sum(conj(a) * b)`` of two vectors."""
    @overload
    def view(self, *shape: Ints) -> Tensor:
        """A reshape that never copies: an error where the layout in memory does not allow a view."""
    @overload
    def view(self, dtype: DType) -> Tensor:
        """A reshape that never copies: an error where the layout in memory does not allow a view."""
    @overload
    def view(self, *, size: Ints) -> Tensor:
        """A reshape that never copies: an error where the layout in memory does not allow a view."""
    def view_as(self, other: Tensor) -> Tensor:
        """`self` with the shape of `other`."""
    def vsplit(self, indices_or_sections: Ints | Tensor | None = None, *, indices: Any = None, sections: Ints | Tensor | None = None) -> _tuple[Tensor, ...]:
        """Equal pieces of dim 0, or cut at indices."""
    def where(self, condition: Tensor, other: Operand) -> Tensor:
        """``self`` where the condition holds, else ``other``."""
    def xlogy(self, other: Operand) -> Tensor:
        """``input * log(other)``, and 0 where `input` is 0."""
    def xlogy_(self, other: Operand) -> Self:
        """In-place version of :meth:`xlogy`."""
    def xpu(self, device: DeviceLike | None = None, non_blocking: _bool = False, memory_format: Layout | None = None) -> Tensor:
        """Raises: there is no device xpu here."""
    def zero_(self) -> Self:
        """Write 0 to all elements."""
