"""chainrule: differentiable NumPy. PyTorch's operators and derivative rules, JAX's composable transforms, ragged tensors."""

# Written by `make surface` from the declarations of the ops.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, object as _object, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Self, overload

from .core.dtypes import DType
from .core.errors import ChainruleError
from .core.tensor import Size, Tensor
from .return_types import CholeskyEx, Eig, Geqrf, Histogram, HistogramDD, InvEx, LDL, LDLEx, LUFactor, LUFactorEx, Lstsq, MinMax, PLU, QR, SVD, SVDV, Slogdet, SolveEx, Sorted, StdMean, TriangularSolve, ValuesIndices, VarMean
from .typing import DTypeLike, DeviceLike, Ints, Layout, Number, Operand

__all__ = ["AcceleratorError", "BFloat16Storage", "BFloat16Tensor", "BoolStorage", "BoolTensor", "ByteStorage", "ByteTensor", "ChainruleError", "CharStorage", "CharTensor", "ComplexDoubleStorage", "ComplexFloatStorage", "DisableTorchFunction", "DisableTorchFunctionSubclass", "DoubleStorage", "DoubleTensor", "EscapedError", "Event", "FloatStorage", "FloatTensor", "Generator", "GradScaler", "HalfStorage", "HalfTensor", "IntStorage", "IntTensor", "LongStorage", "LongTensor", "MissingRuleError", "OutOfMemoryError", "ShortStorage", "ShortTensor", "Size", "Storage", "Stream", "Tensor", "TypedStorage", "UntypedStorage", "abs", "abs_", "absolute", "accelerator", "acos", "acos_", "acosh", "acosh_", "adaptive_avg_pool1d", "adaptive_max_pool1d", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addmv_", "addr", "adjoint", "affine_grid_generator", "alias_copy", "all", "allclose", "alpha_dropout", "alpha_dropout_", "amax", "amin", "aminmax", "amp", "angle", "any", "arange", "arccos", "arccos_", "arccosh", "arccosh_", "arcsin", "arcsin_", "arcsinh", "arcsinh_", "arctan", "arctan2", "arctan_", "arctanh", "arctanh_", "are_deterministic_algorithms_enabled", "argmax", "argmin", "argsort", "argwhere", "array_api", "as_strided", "as_strided_", "as_strided_copy", "as_strided_scatter", "as_tensor", "asarray", "asin", "asin_", "asinh", "asinh_", "associative_scan", "atan", "atan2", "atan_", "atanh", "atanh_", "atleast_1d", "atleast_2d", "atleast_3d", "autocast", "autocast_decrement_nesting", "autocast_increment_nesting", "autograd", "avg_pool1d", "backends", "baddbmm", "bartlett_window", "batch_norm", "batch_norm_backward", "bernoulli", "bfloat16", "bilinear", "binary_cross_entropy_with_logits", "bincount", "binomial", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman_window", "block_diag", "bmm", "bool", "broadcast_shapes", "broadcast_tensors", "broadcast_to", "bucketize", "can_cast", "cartesian_prod", "cat", "ccol_indices_copy", "cdist", "cdouble", "ceil", "ceil_", "celu", "celu_", "cfloat", "chain_matmul", "chalf", "channel_shuffle", "channels_last", "channels_last_3d", "cholesky", "cholesky_inverse", "cholesky_solve", "chunk", "clamp", "clamp_", "clamp_max", "clamp_max_", "clamp_min", "clamp_min_", "clear_autocast_cache", "clip", "clip_", "clone", "col2im", "col_indices_copy", "column_stack", "combinations", "compile", "compiler", "complex", "complex128", "complex32", "complex64", "concat", "concatenate", "cond", "conj", "conj_physical", "conj_physical_", "constant_pad_nd", "contiguous", "contiguous_format", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution", "convolution_backward", "copysign", "corrcoef", "cos", "cos_", "cosh", "cosh_", "cosine_embedding_loss", "cosine_similarity", "count_nonzero", "cov", "cpu", "cross", "crow_indices_copy", "ctc_loss", "cuda", "cudnn_batch_norm", "cudnn_batch_norm_backward", "cummax", "cummin", "cumprod", "cumsum", "cumulative_trapezoid", "custom_op", "debug", "default_generator", "deg2rad", "deg2rad_", "det", "detach", "detach_", "detach_copy", "device", "diag", "diag_embed", "diagflat", "diagonal", "diagonal_copy", "diagonal_scatter", "diff", "digamma", "dist", "distributed", "distributions", "div", "divide", "dot", "double", "dropout", "dropout_", "dsmm", "dsplit", "dstack", "dtype", "e", "einsum", "embedding", "embedding_dense_backward", "empty", "empty_like", "empty_permuted", "empty_strided", "enable_grad", "eq", "equal", "erf", "erf_", "erfc", "erfc_", "erfinv", "exp", "exp2", "exp2_", "exp_", "expand_copy", "explain", "expm1", "expm1_", "eye", "feature_alpha_dropout", "feature_alpha_dropout_", "feature_dropout", "feature_dropout_", "fft", "fill", "fill_", "find_nan", "finfo", "fix", "fix_", "flatten", "flip", "fliplr", "flipud", "float", "float16", "float32", "float64", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float_power", "floor", "floor_", "floor_divide", "fmax", "fmin", "fmod", "fori_loop", "frac", "frac_", "frexp", "frobenius_norm", "from_dlpack", "from_file", "from_numpy", "frombuffer", "full", "full_like", "func", "futures", "fx", "gather", "gcd", "gcd_", "ge", "geqrf", "ger", "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype", "get_default_device", "get_default_dtype", "get_deterministic_debug_mode", "get_device", "get_device_module", "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads", "get_rng_state", "gradient", "greater", "greater_equal", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "group_norm", "gru", "gru_cell", "gt", "half", "hamming_window", "hann_window", "hardshrink", "hash_tensor", "heaviside", "hinge_embedding_loss", "histc", "histogram", "histogramdd", "hsmm", "hsplit", "hspmm", "hstack", "hub", "hypot", "i0", "i0_", "igamma", "igammac", "iinfo", "im2col", "imag", "index_add", "index_copy", "index_fill", "index_put", "index_put_", "index_reduce", "index_select", "indices_copy", "inf", "inference_mode", "initial_seed", "inner", "install_as_torch", "instance_norm", "int", "int16", "int32", "int64", "int8", "inverse", "is_autocast_available", "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled", "is_complex", "is_conj", "is_deterministic_algorithms_warn_only_enabled", "is_distributed", "is_floating_point", "is_grad_enabled", "is_inference", "is_inference_mode_enabled", "is_neg", "is_nonzero", "is_same_size", "is_signed", "is_storage", "is_tensor", "is_vulkan_available", "is_warn_always_enabled", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "istft", "jagged", "jit", "kaiser_window", "kl_div", "kron", "kthvalue", "layer_norm", "layout", "lcm", "lcm_", "ldexp", "ldexp_", "le", "lerp", "less", "less_equal", "lgamma", "library", "linalg", "linspace", "load", "lobpcg", "log", "log10", "log10_", "log1p", "log1p_", "log2", "log2_", "log_", "log_sigmoid", "log_softmax", "logaddexp", "logaddexp2", "logcumsumexp", "logdet", "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logit_", "logspace", "logsumexp", "long", "lstm", "lstm_cell", "lt", "lu", "lu_solve", "lu_unpack", "manual_seed", "map", "margin_ranking_loss", "masked", "masked_fill", "masked_scatter", "masked_select", "matmul", "matrix_exp", "matrix_power", "max", "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool2d_with_indices_backward", "max_pool3d", "max_pool3d_with_indices", "maximum", "mean", "median", "memory_format", "meshgrid", "min", "minimum", "miopen_batch_norm", "miopen_batch_norm_backward", "mm", "mode", "moveaxis", "movedim", "mps", "msort", "mtia", "mul", "multinomial", "multiply", "multiprocessing", "mv", "mvlgamma", "nan", "nan_to_num", "nan_to_num_", "nanmean", "nanmedian", "nanquantile", "nansum", "narrow", "narrow_copy", "native_batch_norm", "native_batch_norm_backward", "native_channel_shuffle", "native_dropout", "native_dropout_backward", "native_group_norm", "native_group_norm_backward", "native_layer_norm", "native_layer_norm_backward", "ne", "neg", "neg_", "negative", "negative_", "nested", "newaxis", "nextafter", "nn", "no_grad", "nonzero", "nonzero_static", "norm", "norm_except_dim", "normal", "not_equal", "nuclear_norm", "numel", "numpy", "ones", "ones_like", "optim", "orgqr", "ormqr", "outer", "overrides", "pairwise_distance", "pca_lowrank", "pdist", "permute", "permute_copy", "pi", "pinverse", "pixel_shuffle", "pixel_unshuffle", "poisson", "poisson_nll_loss", "polar", "polygamma", "positive", "pow", "prelu", "preserve_format", "prod", "profile", "profiler", "progress", "promote_types", "put", "qr", "quantile", "quasirandom", "rad2deg", "rad2deg_", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "random", "randperm", "range", "ravel", "real", "reciprocal", "reciprocal_", "relu", "relu_", "remainder", "renorm", "repeat_interleave", "reshape", "resize_as_", "resize_as_sparse_", "resolve_conj", "resolve_neg", "result_type", "return_types", "rms_norm", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell", "roll", "rot90", "round", "round_", "row_indices_copy", "row_stack", "rrelu", "rrelu_", "rsqrt", "rsqrt_", "rsub", "saddmm", "save", "scalar_tensor", "scan", "scatter", "scatter_add", "scatter_reduce", "scipy", "searchsorted", "seed", "segment_reduce", "select", "select_copy", "select_scatter", "selu", "selu_", "serialization", "set_autocast_cache_enabled", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype", "set_default_device", "set_default_dtype", "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal", "set_grad_enabled", "set_num_interop_threads", "set_num_threads", "set_printoptions", "set_rng_state", "set_warn_always", "sgn", "short", "show", "sigmoid", "sigmoid_", "sign", "signal", "signbit", "sin", "sin_", "sinc", "sinc_", "sinh", "sinh_", "slice", "slice_copy", "slice_inverse", "slice_scatter", "slogdet", "smm", "softmax", "sort", "sparse", "sparse_bsc", "sparse_bsc_tensor", "sparse_bsr", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo", "sparse_coo_tensor", "sparse_csc", "sparse_csc_tensor", "sparse_csr", "sparse_csr_tensor", "special", "split", "split_copy", "split_with_sizes", "split_with_sizes_copy", "spmm", "sqrt", "sqrt_", "square", "square_", "squeeze", "squeeze_copy", "sspaddmm", "stack", "std", "std_mean", "stft", "strided", "sub", "subtract", "sum", "summary", "svd", "svd_lowrank", "swapaxes", "swapdims", "switch", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum", "t", "t_copy", "take", "take_along_dim", "tan", "tan_", "tanh", "tanh_", "tensor", "tensor_split", "tensordot", "testing", "threshold", "threshold_", "tile", "to_dlpack", "topk", "torch_version", "trace", "transpose", "transpose_copy", "trapezoid", "trapz", "tree", "triangular_solve", "tril", "tril_indices", "triplet_margin_loss", "triu", "triu_indices", "true_divide", "trunc", "trunc_", "typename", "types", "typing", "uint16", "uint32", "uint64", "uint8", "unbind", "unbind_copy", "unflatten", "unfold_copy", "unique", "unique_consecutive", "unravel_index", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "unsqueeze", "unsqueeze_copy", "use_deterministic_algorithms", "utils", "values_copy", "vander", "var", "var_mean", "vdot", "verify", "version", "view_as_complex", "view_as_complex_copy", "view_as_real", "view_as_real_copy", "view_copy", "vmap", "vsplit", "vstack", "where", "while_loop", "xlogy", "xlogy_", "xpu", "zero_", "zeros", "zeros_like"]

__version__: _str

from .world.cuda import OutOfMemoryError as AcceleratorError
BFloat16Storage: type[Any]
class BFloat16Tensor(Tensor):
    """``BFloat16Tensor(data)`` or ``BFloat16Tensor(*sizes)``: a tensor of type bfloat16; ``isinstance(x, BFloat16Tensor)`` tests for it."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
BoolStorage: type[Any]
class BoolTensor(Tensor):
    """``BoolTensor(data)`` or ``BoolTensor(*sizes)``: a tensor of type bool; ``isinstance(x, BoolTensor)`` tests for it."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
ByteStorage: type[Any]
class ByteTensor(Tensor):
    """``ByteTensor(data)`` or ``ByteTensor(*sizes)``: a tensor of type uint8; ``isinstance(x, ByteTensor)`` tests for it."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
from .core.errors import ChainruleError as ChainruleError
CharStorage: type[Any]
class CharTensor(Tensor):
    """``CharTensor(data)`` or ``CharTensor(*sizes)``: a tensor of type int8; ``isinstance(x, CharTensor)`` tests for it."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
ComplexDoubleStorage: type[Any]
ComplexFloatStorage: type[Any]
from .core.overriding import DisableTorchFunction as DisableTorchFunction
from .core.overriding import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
DoubleStorage: type[Any]
class DoubleTensor(Tensor):
    """``DoubleTensor(data)`` or ``DoubleTensor(*sizes)``: a tensor of type float64; ``isinstance(x, DoubleTensor)`` tests for it."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
from .core.errors import EscapedError as EscapedError
from .world.devices import Event as Event
FloatStorage: type[Any]
class FloatTensor(Tensor):
    """``FloatTensor(data)`` or ``FloatTensor(*sizes)``: a tensor of type float32; ``isinstance(x, FloatTensor)`` tests for it."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
class Generator:
    """A source of random numbers: ``Generator().manual_seed(0)``."""
    def __init__(self, device: DeviceLike = 'cpu') -> None:
        ...
    @property
    def device(self) -> Any:
        """Where the numbers are made."""
    def manual_seed(self, seed: _int) -> Generator:
        """Start anew from a seed."""
    def initial_seed(self) -> _int:
        """The seed this generator started from."""
    def seed(self) -> _int:
        """Start anew from a fresh seed, which is returned."""
    def get_state(self) -> Tensor:
        """The state as a tensor of bytes, to be given to ``set_state``."""
    def bytes(self) -> Any:
        """The state as it is now."""
    def set_state(self, new_state: Tensor) -> Generator:
        """Return to a state."""
    def set_bytes(self, new_state: Any) -> Generator:
        """Return to a state that `bytes` gave."""
    def clone_state(self) -> Generator:
        """Another generator that goes on from here."""
    def graphsafe_get_state(self) -> Generator:
        """This generator: there are no captured graphs."""
    def graphsafe_set_state(self, state: Generator) -> Generator:
        """Go on from where another generator is."""
from .amp.scaler import GradScaler as GradScaler
HalfStorage: type[Any]
class HalfTensor(Tensor):
    """``HalfTensor(data)`` or ``HalfTensor(*sizes)``: a tensor of type float16; ``isinstance(x, HalfTensor)`` tests for it."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
IntStorage: type[Any]
class IntTensor(Tensor):
    """``IntTensor(data)`` or ``IntTensor(*sizes)``: a tensor of type int32; ``isinstance(x, IntTensor)`` tests for it."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
LongStorage: type[Any]
class LongTensor(Tensor):
    """``LongTensor(data)`` or ``LongTensor(*sizes)``: a tensor of type int64; ``isinstance(x, LongTensor)`` tests for it."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
from .core.errors import MissingRuleError as MissingRuleError
from .world.cuda import OutOfMemoryError as OutOfMemoryError
ShortStorage: type[Any]
class ShortTensor(Tensor):
    """``ShortTensor(data)`` or ``ShortTensor(*sizes)``: a tensor of type int16; ``isinstance(x, ShortTensor)`` tests for it."""
    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ...
from .core.tensor import Size as Size
Storage: type[Any]
from .world.devices import Stream as Stream
from .core.tensor import Tensor as Tensor
from .world.storages import TypedStorage as TypedStorage
UntypedStorage: type[Any]
def abs(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; its derivative at 0 is 0."""
def abs_(self: Tensor) -> Tensor:
    """In-place version of :meth:`abs`."""
def absolute(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The absolute value; its derivative at 0 is 0."""
from .world import accelerator as accelerator
def acos(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The inverse cosine."""
def acos_(self: Tensor) -> Tensor:
    """In-place version of :meth:`acos`."""
def acosh(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine."""
def acosh_(self: Tensor) -> Tensor:
    """In-place version of :meth:`acosh`."""
def adaptive_avg_pool1d(input: Tensor, output_size: _int | Sequence[_int | None] | None) -> Tensor:
    """The mean over `output_size` windows that share the last 1 dim(s) as evenly as they can."""
def adaptive_max_pool1d(input: Tensor, output_size: _int | Sequence[_int | None] | None, return_indices: _bool = True) -> _tuple[Tensor, Tensor]:
    """adaptive_max_pool1d and the places of the maxima in the last 1 dim(s), flattened."""
def add(input: Operand, other: Operand, *, alpha: Operand = 1, out: Tensor | None = None) -> Tensor:
    """``input + alpha * other``."""
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Operand = 1, alpha: Operand = 1, out: Tensor | None = None) -> Tensor:
    """``beta * input + alpha * sum_b batch1[b] @ batch2[b]``, as few products of longer matrices."""
def addcdiv(input: Tensor, tensor1: Operand, tensor2: Operand, *, value: Operand = 1, out: Tensor | None = None) -> Tensor:
    """``input + value * tensor1 / tensor2``."""
def addcmul(input: Tensor, tensor1: Operand, tensor2: Operand, *, value: Operand = 1, out: Tensor | None = None) -> Tensor:
    """``input + value * tensor1 * tensor2``."""
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Operand = 1, alpha: Operand = 1, out: Tensor | None = None) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``."""
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Operand = 1, alpha: Operand = 1, out: Tensor | None = None) -> Tensor:
    """``beta * input + alpha * (mat @ vec)``."""
def addmv_(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Operand = 1, alpha: Operand = 1) -> Tensor:
    """In-place version of :meth:`addmv`."""
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Operand = 1, alpha: Operand = 1, out: Tensor | None = None) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``."""
def adjoint(input: Tensor) -> Tensor:
    """The conjugate of the last two dims exchanged."""
def affine_grid_generator(theta: Tensor, size: Ints, align_corners: _bool) -> Tensor:
    """`affine_grid`, by ATen's name."""
def alias_copy(input: Tensor, *args: Any, out: Tensor | Sequence[Tensor] | None = None, **kw: Any) -> Any:
    """A copy of what :func:`alias` gives."""
def all(input: Tensor, dim: Ints | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether all of the entries over `dim` (one, several, None: all) are not 0."""
def allclose(input: Tensor, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
    """Whether all elements are close, see :func:`isclose`."""
def alpha_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """Dropout to the negative saturation value of SELU that keeps mean and variance."""
def alpha_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """In-place version of :func:`alpha_dropout`."""
def amax(input: Tensor, dim: Ints = (), keepdim: _bool = False, *, fill: Operand | None = None) -> Tensor:
    """The largest entry over `dim` (one, several or all); ties share the gradient."""
def amin(input: Tensor, dim: Ints = (), keepdim: _bool = False, *, fill: Operand | None = None) -> Tensor:
    """The smallest entry over `dim` (one, several or all); ties share the gradient."""
def aminmax(input: Tensor, *, dim: _int | None = None, keepdim: _bool = False) -> MinMax:
    """The smallest and the largest entry along `dim`, or of all: ``(min, max)``; ties share the derivative."""
from . import amp as amp
def angle(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The angle of a complex number, in (-pi, pi]; of a real one 0 or pi. Its derivative at 0 is 0."""
def any(input: Tensor, dim: Ints | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether any of the entries over `dim` (one, several, None: all) are not 0."""
@overload
def arange(end: Operand, /, *, out: Tensor | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None) -> Tensor:
    """``start, start + step, ...`` up to but not including `end`."""
@overload
def arange(start: Operand, end: Operand, step: Operand = 1, *, out: Tensor | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None) -> Tensor:
    """``start, start + step, ...`` up to but not including `end`."""
@overload
def arange(*, start: Operand = 0, end: Operand, step: Operand = 1, out: Tensor | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None) -> Tensor:
    """``start, start + step, ...`` up to but not including `end`."""
def arccos(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The inverse cosine."""
def arccos_(self: Tensor) -> Tensor:
    """In-place version of :meth:`arccos`."""
def arccosh(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine."""
def arccosh_(self: Tensor) -> Tensor:
    """In-place version of :meth:`arccosh`."""
def arcsin(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The inverse sine."""
def arcsin_(self: Tensor) -> Tensor:
    """In-place version of :meth:`arcsin`."""
def arcsinh(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine."""
def arcsinh_(self: Tensor) -> Tensor:
    """In-place version of :meth:`arcsinh`."""
def arctan(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The inverse tangent."""
def arctan2(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """The angle of the point (other, input); its derivative at the origin is 0."""
def arctan_(self: Tensor) -> Tensor:
    """In-place version of :meth:`arctan`."""
def arctanh(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent."""
def arctanh_(self: Tensor) -> Tensor:
    """In-place version of :meth:`arctanh`."""
def are_deterministic_algorithms_enabled() -> _bool:
    """What was asked for with ``use_deterministic_algorithms``."""
def argmax(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, fill: _int | None = None, out: Tensor | None = None) -> Tensor:
    """The index of the largest entry along `dim`, or in the flattened tensor; the first of equals."""
def argmin(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, fill: _int | None = None, out: Tensor | None = None) -> Tensor:
    """The index of the smallest entry along `dim`, or in the flattened tensor; the first of equals."""
def argsort(input: Tensor, dim: _int = -1, descending: _bool = False, stable: _bool = False) -> Tensor:
    """The positions that sort `input` along `dim`."""
def argwhere(input: Tensor) -> Tensor:
    """The positions of nonzero elements, a row each."""
from . import array_api as array_api
def as_strided(input: Tensor, size: Ints, stride: Ints, storage_offset: _int | None = None) -> Tensor:
    """A view of the storage of `input`: element i lies at ``storage_offset + sum(i * stride)``."""
def as_strided_(self: Tensor, size: Ints, stride: Ints, storage_offset: _int | None = None) -> Tensor:
    """Make `self` the view of its storage that :func:`as_strided` gives."""
def as_strided_copy(input: Tensor, size: Ints, stride: Ints, storage_offset: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """A copy of ``as_strided(input, size, stride, storage_offset)``."""
def as_strided_scatter(input: Tensor, src: Tensor, size: Ints, stride: Ints, storage_offset: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """A copy of `input` in whose storage `src` was written to ``as_strided(size, stride, storage_offset)``."""
def as_tensor(data: Any, dtype: DTypeLike | None = None, device: DeviceLike | None = None, copy: _bool | None = None, requires_grad: _bool = False) -> Tensor:
    """`data` as a tensor, sharing memory where it can."""
def asarray(obj: Any, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, copy: _bool | None = None, requires_grad: _bool | None = None) -> Tensor:
    """`obj` as a tensor, sharing memory where it can; a buffer of bytes is read as numbers of type `dtype`."""
def asin(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The inverse sine."""
def asin_(self: Tensor) -> Tensor:
    """In-place version of :meth:`asin`."""
def asinh(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine."""
def asinh_(self: Tensor) -> Tensor:
    """In-place version of :meth:`asinh`."""
from .jit.control import associative_scan as associative_scan
def atan(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The inverse tangent."""
def atan2(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """The angle of the point (other, input); its derivative at the origin is 0."""
def atan_(self: Tensor) -> Tensor:
    """In-place version of :meth:`atan`."""
def atanh(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent."""
def atanh_(self: Tensor) -> Tensor:
    """In-place version of :meth:`atanh`."""
@overload
def atleast_1d(tensor: Tensor, /) -> Tensor:
    """0-d tensors as vectors of one element."""
@overload
def atleast_1d(tensors: Sequence[Tensor], /) -> _tuple[Tensor, ...]:
    """0-d tensors as vectors of one element."""
@overload
def atleast_1d(first: Tensor, second: Tensor, /, *rest: Tensor) -> _tuple[Tensor, ...]:
    """0-d tensors as vectors of one element."""
@overload
def atleast_2d(tensor: Tensor, /) -> Tensor:
    """Numbers and vectors as matrices of one row."""
@overload
def atleast_2d(tensors: Sequence[Tensor], /) -> _tuple[Tensor, ...]:
    """Numbers and vectors as matrices of one row."""
@overload
def atleast_2d(first: Tensor, second: Tensor, /, *rest: Tensor) -> _tuple[Tensor, ...]:
    """Numbers and vectors as matrices of one row."""
@overload
def atleast_3d(tensor: Tensor, /) -> Tensor:
    """Numbers and vectors as ``(1, n, 1)``, matrices as ``(m, n, 1)``."""
@overload
def atleast_3d(tensors: Sequence[Tensor], /) -> _tuple[Tensor, ...]:
    """Numbers and vectors as ``(1, n, 1)``, matrices as ``(m, n, 1)``."""
@overload
def atleast_3d(first: Tensor, second: Tensor, /, *rest: Tensor) -> _tuple[Tensor, ...]:
    """Numbers and vectors as ``(1, n, 1)``, matrices as ``(m, n, 1)``."""
from .amp.cast import autocast as autocast
from .amp.cast import autocast_decrement_nesting as autocast_decrement_nesting
from .amp.cast import autocast_increment_nesting as autocast_increment_nesting
from . import autograd as autograd
def avg_pool1d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
    """The mean over windows of the last dim; padding counts as zeros unless ``count_include_pad=False``."""
from .world import backends as backends
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Operand = 1, alpha: Operand = 1, out: Tensor | None = None) -> Tensor:
    """``beta * input + alpha * (batch1 @ batch2)``, batch by batch."""
def bartlett_window(window_length: _int, periodic: _bool = True, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, pin_memory: _bool | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = 1 - |2 n / N - 1|``, N the length if `periodic`, else one less."""
def batch_norm(input: Tensor, weight: Operand | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: _bool, momentum: _float, eps: _float, cudnn_enabled: _bool = True) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` for each channel, in ATen's order of arguments."""
def batch_norm_backward(grad_out: Tensor, input: Tensor, weight: Tensor, running_mean: Tensor | None, running_var: Tensor | None, save_mean: Tensor | None, save_var: Tensor | None, update: _bool, eps: _float, output_mask: Sequence[_bool], reserve: Tensor | None) -> _tuple[Any, Any, Any]:
    """The gradients of batch norm; `reserve` belongs to other devices."""
def bernoulli(input: Tensor, p: _float | _str | Tensor | None = None, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """1 with probability `input` (or `p`), else 0, in the type of `input` or of `out`."""
bfloat16: DType
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``y[..., k] = sum_ij input1[..., i] weight[k, i, j] input2[..., j] + bias[k]``."""
def binary_cross_entropy_with_logits(*args: Any, **kw: Any) -> Tensor:
    """``binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)``: ``-weight * (pos_weight * target * log(s) + (1 - target) * log(1 - s))`` with ``s = sigmoid(input)``."""
def bincount(input: Tensor, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
    """How often, or with what total weight, each number from 0 on occurs in a vector of non-negative integers."""
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """The number of successes in `count` trials of probability `prob`."""
def bitwise_and(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """The and of two integers, bit by bit, or of two truth values."""
def bitwise_left_shift(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input << other``; bits that leave the type are lost."""
def bitwise_not(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """An integer with every bit turned around, or the other truth value."""
def bitwise_or(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """The or of two integers, bit by bit, or of two truth values."""
def bitwise_right_shift(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input >> other``, which keeps the sign."""
def bitwise_xor(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """The xor of two integers, bit by bit, or of two truth values."""
def blackman_window(window_length: _int, periodic: _bool = True, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, pin_memory: _bool | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = 0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)``, N the length if `periodic`, else one less."""
def block_diag(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """The matrix with the given matrices (or rows, or numbers) on its diagonal, zero elsewhere."""
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The products of two batches of matrices."""
bool: DType
def broadcast_shapes(*shapes: Ints) -> Size:
    """The shape that all shapes broadcast to."""
def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> _tuple[Tensor, ...]:
    """Tensors broadcast against each other."""
def broadcast_to(input: Tensor, size: Sequence[_int]) -> Tensor:
    """`input` broadcast to `size`."""
def bucketize(input: Operand, boundaries: Tensor, *, out_int32: _bool = False, right: _bool = False, out: Tensor | None = None) -> Tensor:
    """The bucket of each value between sorted boundaries."""
from .core.dtypes import can_cast as can_cast
def cartesian_prod(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """All tuples with one element of each vector, as rows."""
def cat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along an existing dim."""
def ccol_indices_copy(input: Tensor) -> Tensor:
    """A copy of ``input.ccol_indices()``."""
def cdist(x1: Tensor, x2: Tensor, p: _float = 2.0, compute_mode: _str = 'use_mm_for_euclid_dist_if_necessary') -> Tensor:
    """``|x1[i] - x2[j]|`` of order `p` between all rows of two (batches of) matrices."""
cdouble: DType
def ceil(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The smallest integer not below x."""
def ceil_(self: Tensor) -> Tensor:
    """In-place version of :meth:`ceil`."""
def celu(input: Tensor, alpha: _float = 1.0) -> Tensor:
    """``max(input, 0) + min(alpha * (e**(input / alpha) - 1), 0)``."""
def celu_(input: Tensor, alpha: _float = 1.0) -> Tensor:
    """In-place version of :func:`celu`."""
cfloat: DType
def chain_matmul(*tensors: Tensor | Sequence[Tensor], out: Tensor | None = None) -> Tensor:
    """The product of several matrices in the cheapest order; the first and last may be vectors."""
chalf: DType
def channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """Channel ``g k + i`` (of g groups) moved to ``i g + k``: the groups interleaved."""
channels_last: memory_format
channels_last_3d: memory_format
def cholesky(input: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The triangular factor of a Hermitian positive-definite matrix."""
def cholesky_inverse(L: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``(L L^H)^-1`` (``(U^H U)^-1`` with `upper`) from a triangular factor."""
def cholesky_solve(B: Tensor, L: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``X`` with ``L L^H X = B`` (``U^H U X = B`` with `upper`) for a triangular factor."""
def chunk(input: Tensor, chunks: _int, dim: _int = 0) -> _tuple[Tensor, ...]:
    """At most `chunks` pieces of `dim`, of equal size but the last."""
def clamp(input: Tensor, min: Operand | None = None, max: Operand | None = None, *, out: Tensor | None = None) -> Tensor:
    """``input`` limited to [min, max], numbers or tensors; the bounds get the gradient where they are taken."""
def clamp_(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """In-place version of :meth:`clamp`."""
def clamp_max(input: Tensor, max: Operand, *, out: Tensor | None = None) -> Tensor:
    """``min(input, max)``."""
def clamp_max_(input: Tensor, max: Operand) -> Tensor:
    """In-place version of :meth:`clamp_max`."""
def clamp_min(input: Tensor, min: Operand, *, out: Tensor | None = None) -> Tensor:
    """``max(input, min)``."""
def clamp_min_(input: Tensor, min: Operand) -> Tensor:
    """In-place version of :meth:`clamp_min`."""
from .amp.cast import clear_autocast_cache as clear_autocast_cache
def clip(input: Tensor, min: Operand | None = None, max: Operand | None = None, *, out: Tensor | None = None) -> Tensor:
    """``input`` limited to [min, max], numbers or tensors; the bounds get the gradient where they are taken."""
def clip_(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """In-place version of :meth:`clip`."""
def clone(input: Tensor, *, memory_format: Layout | None = None) -> Tensor:
    """A copy of `input`, differentiable."""
def col2im(input: Tensor, output_size: _int | Sequence[_int | None] | None, kernel_size: Ints, dilation: Ints = 1, padding: Ints | _str = 0, stride: Ints = 1) -> Tensor:
    """Columns added up to images, the transpose of unfold: ``(N, C * kh * kw, patches) -> (N, C, H, W)``."""
def col_indices_copy(input: Tensor) -> Tensor:
    """A copy of ``input.col_indices()``."""
def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Vectors as columns, joined along dim 1."""
def combinations(input: Tensor, r: _int = 2, with_replacement: _bool = False) -> Tensor:
    """All ways to take r elements of a vector, as rows in the order of :mod:`itertools`."""
from .jit.api import compile as compile
from .world import compiler as compiler
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``real + i imag`` from two real tensors of one type."""
complex128: DType
complex32: DType
complex64: DType
def concat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along an existing dim."""
def concatenate(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along an existing dim."""
from .jit.control import cond as cond
def conj(input: Tensor) -> Tensor:
    """The complex conjugate; real tensors as they are."""
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate; real tensors as they are."""
def conj_physical_(input: Tensor) -> Tensor:
    """In-place version of :meth:`conj_physical`."""
def constant_pad_nd(input: Tensor, pad: Sequence[_int], value: Operand = 0) -> Tensor:
    """The last dims padded by ``pad = (before last, after last, before last but one, ...)`` with `value`."""
def contiguous(input: Tensor, memory_format: Layout | None = None) -> Tensor:
    """`input` itself if its elements lie in the order of `memory_format` (row-major), else a copy that does."""
contiguous_format: memory_format
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints | _str = 0, dilation: Ints = 1, groups: _int = 1) -> Tensor:
    """``y[n, o, p] = bias[o] + sum_(c, k) weight[o, c, k] input[n, c, stride p + dilation k - padding]`` over L."""
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints | _str = 0, dilation: Ints = 1, groups: _int = 1) -> Tensor:
    """``y[n, o, p] = bias[o] + sum_(c, k) weight[o, c, k] input[n, c, stride p + dilation k - padding]`` over HW."""
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints | _str = 0, dilation: Ints = 1, groups: _int = 1) -> Tensor:
    """``y[n, o, p] = bias[o] + sum_(c, k) weight[o, c, k] input[n, c, stride p + dilation k - padding]`` over DHW."""
def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: _int = 0) -> Tensor:
    """conv1d of ``(time, batch, channels)`` with a weight ``(kernel, in, out)``."""
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints | _str = 0, output_padding: Ints = 0, groups: _int = 1, dilation: Ints = 1) -> Tensor:
    """The transpose of conv1d as a linear map of its input: every input entry adds its multiple of the kernel."""
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints | _str = 0, output_padding: Ints = 0, groups: _int = 1, dilation: Ints = 1) -> Tensor:
    """The transpose of conv2d as a linear map of its input: every input entry adds its multiple of the kernel."""
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints | _str = 0, output_padding: Ints = 0, groups: _int = 1, dilation: Ints = 1) -> Tensor:
    """The transpose of conv3d as a linear map of its input: every input entry adds its multiple of the kernel."""
def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints | _str, dilation: Ints, transposed: _bool, output_padding: Ints, groups: _int) -> Tensor:
    """conv or conv_transpose over all dims of `weight` but two."""
def convolution_backward(grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: Any, stride: Ints, padding: Ints | _str, dilation: Ints, transposed: _bool, output_padding: Ints, groups: _int, output_mask: Any) -> _tuple[Any, Any, Any]:
    """The gradients of input, weight and bias of `convolution` that `output_mask` asks for, None for the others."""
def copysign(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``|input|`` with the sign of `other`."""
def corrcoef(input: Tensor) -> Tensor:
    """``cov_ij / sqrt(cov_ii cov_jj)``, limited to [-1, 1]."""
def cos(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The cosine."""
def cos_(self: Tensor) -> Tensor:
    """In-place version of :meth:`cos`."""
def cosh(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic cosine."""
def cosh_(self: Tensor) -> Tensor:
    """In-place version of :meth:`cosh`."""
def cosine_embedding_loss(*args: Any, **kw: Any) -> Tensor:
    """``cosine_embedding_loss(input1, input2, target, margin, reduction)``: ``1 - cos(input1, input2)`` where the target is 1, ``max(0, cos - margin)`` where it is -1."""
def cosine_similarity(x1: Tensor, x2: Tensor, dim: _int = 1, eps: _float = 1e-08) -> Tensor:
    """``<x1 / max(|x1|, eps), x2 / max(|x2|, eps)>`` along `dim`."""
def count_nonzero(input: Tensor, dim: Ints | None = None) -> Tensor:
    """The number of entries over `dim` that are not 0."""
def cov(input: Tensor, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """``X X^H / (n - correction)`` of centred variables (rows) and observations (columns), weighted where asked."""
from .world import cpu as cpu
def cross(input: Tensor, other: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The cross product along `dim`; without it, along the first dim of size 3."""
def crow_indices_copy(input: Tensor) -> Tensor:
    """A copy of ``input.crow_indices()``."""
def ctc_loss(*args: Any, **kw: Any) -> Tensor:
    """``ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)``: Minus the log of the probability that the steps of `log_probs` (T, N, C) spell `targets`, blanks and repeats removed."""
from .world import cuda as cuda
def cudnn_batch_norm(input: Tensor, weight: Operand | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: _bool, exponential_average_factor: _float, epsilon: _float) -> _tuple[Tensor, Tensor, Tensor, Tensor]:
    """Batch norm, the mean, ``1 / sqrt(var + eps)``, and bytes that the backward function is handed: none are needed here."""
def cudnn_batch_norm_backward(input: Tensor, grad_output: Tensor, weight: Operand | None, running_mean: Tensor | None, running_var: Tensor | None, save_mean: Tensor | None, save_var: Tensor | None, epsilon: _float, reserveSpace: Any) -> _tuple[Tensor, Tensor, Tensor]:
    """The gradients of input, weight and bias of batch norm in training; `reserveSpace` is what the forward function returned."""
def cummax(input: Tensor, dim: _int, *, out: Tensor | Sequence[Tensor] | None = None) -> ValuesIndices:
    """The largest entry so far along `dim`, and where it stands (the last of equals): ``(values, indices)``."""
def cummin(input: Tensor, dim: _int, *, out: Tensor | Sequence[Tensor] | None = None) -> ValuesIndices:
    """The smallest entry so far along `dim`, and where it stands (the last of equals): ``(values, indices)``."""
def cumprod(input: Tensor, dim: _int, *, dtype: DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """``y[k] = x[0] * ... * x[k]`` along `dim`; right at zeros to any order."""
def cumsum(input: Tensor, dim: _int, *, dtype: DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """``y[k] = x[0] + ... + x[k]`` along `dim`."""
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Operand | None = None, dim: _int = -1) -> Tensor:
    """The running integral of `y` along `dim` by the trapezoidal rule, over points `x` or with spacing `dx`."""
from .custom import custom_op as custom_op
from . import debug as debug
default_generator: Generator
def deg2rad(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``pi x / 180``."""
def deg2rad_(self: Tensor) -> Tensor:
    """In-place version of :meth:`deg2rad`."""
def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant; its derivatives are polynomials in A, for singular matrices as for others."""
def detach(input: Tensor) -> Tensor:
    """The same value, sharing memory, through which no derivative flows."""
def detach_(self: Tensor) -> Tensor:
    """Cut this tensor off from what made it; a view would keep its base's history, and is refused."""
def detach_copy(input: Tensor) -> Tensor:
    """A copy of what :func:`detach` gives."""
from .core.device import device as device
def diag(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The matrix with the vector `input` on a diagonal, or the diagonal of the matrix `input`."""
def diag_embed(input: Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1, *, out: Tensor | None = None) -> Tensor:
    """Matrices with the last dim of `input` on a diagonal of the new dims `dim1` and `dim2`, zero elsewhere."""
def diagflat(input: Tensor, offset: _int = 0) -> Tensor:
    """The matrix with all elements of `input` on a diagonal."""
def diagonal(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """The diagonal of two dims, as the last dim."""
def diagonal_copy(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
    """A copy of what :func:`diagonal` gives."""
def diagonal_scatter(input: Tensor, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """A copy of `input` with a diagonal of two dims replaced by `src`."""
def diff(input: Tensor, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """The `n`-th differences ``x[k + 1] - x[k]`` along `dim`, of `input` between what is prepended and appended."""
def digamma(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``d/dx lgamma(x)``; at 0 infinite, NaN at the negative integers."""
def dist(input: Tensor, other: Tensor, p: _float = 2) -> Tensor:
    """The norm of order `p` of ``input - other``."""
from . import distributed as distributed
from . import distributions as distributions
def div(input: Operand, other: Operand, *, rounding_mode: _str | None = None, out: Tensor | None = None) -> Tensor:
    """``input / other``; with ``rounding_mode`` "floor" or "trunc" rounded, and the derivative zero."""
def divide(input: Operand, other: Operand, *, rounding_mode: _str | None = None, out: Tensor | None = None) -> Tensor:
    """``input / other``; with ``rounding_mode`` "floor" or "trunc" rounded, and the derivative zero."""
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``sum(a * b)`` of two vectors."""
double: DType
def dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """`input` with elements set to 0 with probability `p`, the others scaled by ``1 / (1 - p)``."""
def dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """In-place version of :func:`dropout`."""
def dsmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices of which at least one is sparse."""
def dsplit(input: Tensor, indices_or_sections: Ints | Tensor | None = None, *, indices: Any = None, sections: Ints | Tensor | None = None) -> _tuple[Tensor, ...]:
    """Equal pieces of dim 2, or cut at indices."""
def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined along dim 2."""
from .core.dtypes import DType as dtype
e: _float
def einsum(equation: _str | Tensor, *operands: Any) -> Tensor:
    """Sums of products in Einstein's notation, contracted pair by pair in the order that opt_einsum finds."""
def embedding(input: Tensor, weight: Tensor, padding_idx: _int | None = None, max_norm: _float | None = None, norm_type: _float = 2.0, scale_grad_by_freq: _bool = False, sparse: _bool = False) -> Tensor:
    """Rows of the table `weight` by number; the row `padding_idx` gets no gradient."""
def embedding_dense_backward(grad_output: Tensor, indices: Tensor, num_weights: _int, padding_idx: _int, scale_grad_by_freq: _bool) -> Tensor:
    """The gradient of an embedding's table: row k is the sum of the rows of `grad_output` whose index is k."""
def empty(*sizes: Ints, size: Ints | None = None, out: Tensor | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None, memory_format: Layout | None = None) -> Tensor:
    """A tensor of the given sizes whose contents are unspecified (here: zeros)."""
def empty_like(input: Tensor, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, memory_format: Layout | None = None, pin_memory: _bool | None = None) -> Tensor:
    """A tensor with the shape and type of `input` whose contents are unspecified (here: zeros)."""
def empty_permuted(size: Ints, physical_layout: Ints, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None) -> Tensor:
    """A dense tensor whose dims lie in memory in the order `physical_layout`."""
def empty_strided(size: Ints, stride: Ints, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None) -> Tensor:
    """A tensor of the given sizes and strides whose contents are unspecified (here: zeros)."""
from .core.grad_mode import enable_grad as enable_grad
def eq(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Where both are equal."""
def equal(input: Tensor, other: Tensor) -> _bool:
    """Whether both have the same shape and the same elements (NaN differs from itself)."""
def erf(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The error function ``2/sqrt(pi) * integral of exp(-s**2) from 0 to x``."""
def erf_(self: Tensor) -> Tensor:
    """In-place version of :meth:`erf`."""
def erfc(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``1 - erf(x)``, accurate in the right tail."""
def erfc_(self: Tensor) -> Tensor:
    """In-place version of :meth:`erfc`."""
def erfinv(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The inverse of erf on (-1, 1); infinite at the ends."""
def exp(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``e**x``."""
def exp2(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``2**x``."""
def exp2_(self: Tensor) -> Tensor:
    """In-place version of :meth:`exp2`."""
def exp_(self: Tensor) -> Tensor:
    """In-place version of :meth:`exp`."""
def expand_copy(self: Tensor, *size: Ints, implicit: _bool = False, **kw: Any) -> Tensor:
    """A copy of what :func:`expand` gives."""
from .jit.api import explain as explain
def expm1(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``e**x - 1``, accurate near 0."""
def expm1_(self: Tensor) -> Tensor:
    """In-place version of :meth:`expm1`."""
def eye(n: _int, m: _int | None = None, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None, out: Tensor | None = None) -> Tensor:
    """The n-by-m matrix with ones on the diagonal."""
def feature_alpha_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """:func:`alpha_dropout` of whole channels (dimension 1)."""
def feature_alpha_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """In-place version of :func:`feature_alpha_dropout`."""
def feature_dropout(input: Tensor, p: _float, train: _bool) -> Tensor:
    """:func:`dropout` of whole channels (dimension 1)."""
def feature_dropout_(input: Tensor, p: _float, train: _bool) -> Tensor:
    """In-place version of :func:`feature_dropout`."""
from . import fft as fft
def fill(input: Tensor, value: Operand) -> Tensor:
    """A tensor like `input` filled with one number or 0-d tensor."""
def fill_(self: Tensor, value: Operand) -> Tensor:
    """Write one number to all elements."""
from .people.find_nan import find_nan as find_nan
from .core.dtypes import finfo as finfo
def fix(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """x without its fraction."""
def fix_(self: Tensor) -> Tensor:
    """In-place version of :meth:`fix`."""
def flatten(input: Tensor, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
    """The dims from `start_dim` to `end_dim` joined into one."""
@overload
def flip(input: Tensor, *dims: Ints) -> Tensor:
    """The order of entries along `dims` reversed."""
@overload
def flip(input: Tensor, *, dims: Ints) -> Tensor:
    """The order of entries along `dims` reversed."""
def fliplr(input: Tensor) -> Tensor:
    """Dim 1 reversed."""
def flipud(input: Tensor) -> Tensor:
    """Dim 0 reversed."""
float: DType
float16: DType
float32: DType
float64: DType
float8_e4m3fn: DType
float8_e4m3fnuz: DType
float8_e5m2: DType
float8_e5m2fnuz: DType
float8_e8m0fnu: DType
def float_power(input: Operand, exponent: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input ** exponent`` in double precision (complex where an argument is)."""
def floor(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The largest integer not above x."""
def floor_(self: Tensor) -> Tensor:
    """In-place version of :meth:`floor`."""
def floor_divide(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input // other``, rounded down."""
def fmax(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """The larger one; a number beats NaN."""
def fmin(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """The smaller one; a number beats NaN."""
def fmod(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``a - trunc(a / b) b``: the remainder with the sign of `input`."""
from .jit.control import fori_loop as fori_loop
def frac(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``x - trunc(x)``."""
def frac_(self: Tensor) -> Tensor:
    """In-place version of :meth:`frac`."""
def frexp(input: Tensor, *, out: Tensor | Sequence[Tensor] | None = None) -> _tuple[Tensor, Tensor]:
    """Mantissa in [0.5, 1) and exponent: ``input == mantissa * 2**exponent``."""
def frobenius_norm(input: Tensor, dim: Ints | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The 2-norm over `dim` or all."""
def from_dlpack(ext_tensor: Any, *, device: DeviceLike | None = None, copy: _bool | None = None) -> Tensor:
    """A tensor that shares the memory of another library's array, which has ``__dlpack__``."""
def from_file(filename: _str, shared: _bool | None = None, size: _int = 0, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, pin_memory: _bool = False) -> Tensor:
    """A vector of `size` numbers in a file; with `shared`, what is written goes to the file."""
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor that shares memory with a NumPy array."""
def frombuffer(buffer: Any, *, dtype: DTypeLike, count: _int = -1, offset: _int = 0, requires_grad: _bool = False) -> Tensor:
    """A vector that shares the memory of an object with the buffer protocol."""
def full(size: Ints, fill_value: Operand, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None, out: Tensor | None = None) -> Tensor:
    """A tensor of the given size filled with one number."""
def full_like(input: Tensor, fill_value: Operand, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, memory_format: Layout | None = None, pin_memory: _bool | None = None) -> Tensor:
    """A tensor with the shape and type of `input` filled with one number."""
from . import func as func
from .world import futures as futures
from .world import fx as fx
def gather(input: Tensor, dim: _int, index: Tensor, *, sparse_grad: _bool = False, out: Tensor | None = None) -> Tensor:
    """``y[a][b] = input[index[a][b]][b]`` for dim 0, ``input[a][index[a][b]]`` for dim 1, and so on."""
def gcd(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """The greatest common divisor."""
def gcd_(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """In-place version of :meth:`gcd`."""
def ge(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input >= other``."""
def geqrf(input: Tensor, *, out: Tensor | Sequence[Tensor] | None = None) -> Geqrf:
    """R in the upper triangle and Householder vectors below it, with their factors tau: what householder_product takes."""
def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``y[i, j] = input[i] * vec2[j]``."""
from .amp.cast import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from .amp.cast import get_autocast_dtype as get_autocast_dtype
from .amp.cast import get_autocast_gpu_dtype as get_autocast_gpu_dtype
def get_default_device() -> Any:
    """The device on which new tensors are made."""
from .core.dtypes import get_default_dtype as get_default_dtype
def get_deterministic_debug_mode() -> _int:
    """0, 1 or 2, as set."""
def get_device(input: Tensor) -> _int:
    """The number of the accelerator that holds the tensor: -1, the CPU."""
def get_device_module(device: DeviceLike | None = None) -> Any:
    """The module of a device: ``chainrule.cuda`` for "cuda"."""
def get_float32_matmul_precision() -> _str:
    """What was set with ``set_float32_matmul_precision``."""
def get_num_interop_threads() -> _int:
    """1: operations follow one another."""
def get_num_threads() -> _int:
    """The number of threads that compiled kernels use."""
def get_rng_state() -> Tensor:
    """The default generator's state."""
def gradient(input: Tensor, *, spacing: Operand | Sequence[Operand] | None = None, dim: Ints | None = None, edge_order: _int = 1) -> _tuple[Tensor, ...]:
    """Partial derivatives of sampled values along each of `dim`, by central differences."""
def greater(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input > other``."""
def greater_equal(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input >= other``."""
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> Tensor:
    """`grid_sample` with modes as numbers: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""
def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> Tensor:
    """`grid_sample` with modes as numbers: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""
def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> Tensor:
    """`grid_sample` with modes as numbers: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""
def group_norm(input: Tensor, num_groups: _int, weight: Operand | None = None, bias: Tensor | None = None, eps: _float = 1e-05, cudnn_enabled: _bool = True) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias``, statistics over each group of channels of each example."""
def gru(*args: Any, **kw: Any) -> _tuple[Tensor, ...]:
    """``h' = (1 - z) n + z h`` over the steps of sequences, in `num_layers` layers: the states of all steps and the last states."""
def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """One step of a GRU: ``h' = n + z (h - n)``."""
def gt(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input > other``."""
half: DType
def hamming_window(window_length: _int, periodic: _bool = True, alpha: _float = 0.54, beta: _float = 0.46, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, pin_memory: _bool | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = alpha - beta cos(2 pi n / N)``, N the length if `periodic`, else one less."""
def hann_window(window_length: _int, periodic: _bool = True, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, pin_memory: _bool | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = (1 - cos(2 pi n / N)) / 2``, N the length if `periodic`, else one less."""
def hardshrink(input: Tensor, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """``input`` where ``|input| > lambd``, else 0."""
def hash_tensor(input: Tensor, dim: Ints = (), *, keepdim: _bool = False, mode: _int = 0, out: Tensor | None = None) -> Tensor:
    """The exclusive or, over `dim` or all, of the bits of the entries as 64-bit numbers; a uint64."""
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0 below 0, 1 above 0, and `values` at 0."""
def hinge_embedding_loss(*args: Any, **kw: Any) -> Tensor:
    """``hinge_embedding_loss(input, target, margin, reduction)``: ``input`` where the target is 1, ``max(0, margin - input)`` where it is -1."""
def histc(input: Tensor, bins: _int = 100, min: _float = 0, max: _float = 0, *, out: Tensor | None = None) -> Tensor:
    """How many entries fall in each of `bins` equal bins between `min` and `max`; between the extremes if these are equal."""
def histogram(input: Tensor, bins: Ints | Tensor | Sequence[Tensor], *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False, out: Tensor | Sequence[Tensor] | None = None) -> Histogram:
    """The (weighted) number of entries in each bin, or their density, and the edges: ``(hist, bin_edges)``."""
def histogramdd(input: Tensor, bins: Ints | Tensor | Sequence[Tensor], *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False) -> HistogramDD:
    """The histogram of points, the rows of `input`, in as many dims as it has columns: ``(hist, bin_edges of each)``."""
def hsmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix with sparse rows and dense columns."""
def hsplit(input: Tensor, indices_or_sections: Ints | Tensor | None = None, *, indices: Any = None, sections: Ints | Tensor | None = None) -> _tuple[Tensor, ...]:
    """Equal pieces of dim 1 (of dim 0 for vectors), or cut at indices."""
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix with sparse rows and dense columns."""
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined along dim 1, vectors along dim 0."""
from .world import hub as hub
def hypot(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``sqrt(a**2 + b**2)`` without overflow."""
def i0(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function I_0."""
def i0_(self: Tensor) -> Tensor:
    """In-place version of :meth:`i0`."""
def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``P(a, x) = 1/Gamma(a) * integral of s**(a-1) e**-s from 0 to x``, with a = `input` and x = `other`."""
def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``Q(a, x) = 1 - P(a, x)``, with a = `input` and x = `other`, accurate in the right tail."""
from .core.dtypes import iinfo as iinfo
def im2col(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints | _str = 0, stride: Ints = 1) -> Tensor:
    """Patches of images as columns: ``(N, C, H, W) -> (N, C * kh * kw, patches)``."""
def imag(input: Tensor) -> Tensor:
    """The imaginary part of a complex tensor, sharing memory."""
def index_add(input: Tensor, dim: _int, index: Tensor, source: Tensor, *, alpha: Operand = 1, out: Tensor | None = None) -> Tensor:
    """`input` with ``alpha * source`` added at the entries `index` of `dim`; repeated indices add up."""
def index_copy(input: Tensor, dim: _int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`input` with the entries `index` of `dim` replaced by those of `source`."""
def index_fill(input: Tensor, dim: _int, index: Tensor, value: Operand) -> Tensor:
    """`input` with the entries `index` of `dim` set to `value`, a number or a 0-d tensor."""
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: _bool = False) -> Tensor:
    """`input` with ``input[indices]`` replaced by `values`, or with them added."""
def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: _bool = False) -> Tensor:
    """In-place version of :meth:`index_put`."""
def index_reduce(input: Tensor, dim: _int, index: Tensor, source: Tensor, reduce: _str, *, include_self: _bool = True, out: Tensor | None = None) -> Tensor:
    """`input` with `source` reduced ("prod", "mean", "amax", "amin") into the entries `index` of `dim`."""
def index_select(input: Tensor, dim: _int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Entries `index` (a vector) of `dim`."""
def indices_copy(input: Tensor) -> Tensor:
    """A copy of ``input.indices()``."""
inf: _float
from .core.grad_mode import inference_mode as inference_mode
def initial_seed() -> _int:
    """The seed of the default generator."""
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sum of products over the last dims of both."""
from .as_torch import install_as_torch as install_as_torch
def instance_norm(input: Tensor, weight: Operand | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, use_input_stats: _bool, momentum: _float, eps: _float, cudnn_enabled: _bool = True) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` of each channel of each example, in ATen's order of arguments."""
int: DType
int16: DType
int32: DType
int64: DType
int8: DType
def inverse(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``A^-1``; a singular matrix raises."""
from .amp.cast import is_autocast_available as is_autocast_available
from .amp.cast import is_autocast_cache_enabled as is_autocast_cache_enabled
from .amp.cast import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from .amp.cast import is_autocast_enabled as is_autocast_enabled
def is_complex(input: Tensor) -> _bool:
    """Whether the type is complex."""
def is_conj(input: Tensor) -> _bool:
    """Whether conjugation (or negation) is pending: never, it is applied at once."""
def is_deterministic_algorithms_warn_only_enabled() -> _bool:
    """What was asked for with ``use_deterministic_algorithms``."""
def is_distributed(input: Tensor) -> _bool:
    """False: a tensor is in one process."""
def is_floating_point(input: Tensor) -> _bool:
    """Whether the type is real floating."""
from .core.grad_mode import is_grad_enabled as is_grad_enabled
def is_inference(x: Tensor) -> _bool:
    """Whether a tensor was made in inference mode: never, such tensors are ordinary here."""
from .core.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
def is_neg(input: Tensor) -> _bool:
    """Whether conjugation (or negation) is pending: never, it is applied at once."""
def is_nonzero(input: Tensor) -> _bool:
    """Whether a tensor of one element is not 0."""
def is_same_size(input: Tensor, other: Tensor) -> _bool:
    """Whether two tensors have the same shape."""
def is_signed(input: Tensor) -> _bool:
    """Whether the type has negative numbers."""
def is_storage(obj: Any) -> _bool:
    """Whether an object is a storage."""
def is_tensor(obj: Any) -> _bool:
    """Whether `obj` is a chainrule tensor."""
def is_vulkan_available() -> _bool:
    """False."""
def is_warn_always_enabled() -> _bool:
    """What was asked for with ``set_warn_always``."""
def isclose(input: Tensor, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
    """``|input - other| <= atol + rtol |other|``, element by element; equal infinities are close."""
def isfinite(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether neither infinite nor NaN (in both parts)."""
def isin(elements: Operand, test_elements: Operand, *, assume_unique: _bool = False, invert: _bool = False, out: Tensor | None = None) -> Tensor:
    """Whether each element occurs among `test_elements`."""
def isinf(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether infinite (in either part)."""
def isnan(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether it is NaN; a complex number is where a part of it is."""
def isneginf(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether negative infinity."""
def isposinf(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether positive infinity."""
def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is 0."""
def istft(input: Tensor, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex: _bool = False) -> Tensor:
    """The signal whose stft is nearest to `input` in the sense of least squares."""
jagged: Layout
from .jit.api import jit as jit
def kaiser_window(window_length: _int, periodic: _bool = True, beta: _float = 12.0, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, pin_memory: _bool | None = None, requires_grad: _bool = False) -> Tensor:
    """``w[n] = I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta)``, N the length if `periodic`, else one less."""
def kl_div(*args: Any, **kw: Any) -> Tensor:
    """``kl_div(input, target, reduction)``: ``target * (log(target) - input)`` for log-probabilities `input`; "batchmean" divides the sum by the first dim."""
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: every element of `input` times the whole of `other`."""
def kthvalue(input: Tensor, k: _int, dim: _int = -1, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> ValuesIndices:
    """The `k`-th smallest entry along `dim`, counted from 1: ``(values, indices)``."""
def layer_norm(input: Tensor, normalized_shape: Sequence[_int], weight: Operand | None = None, bias: Tensor | None = None, eps: _float = 1e-05, cudnn_enable: _bool = True) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dims, those of `normalized_shape`."""
from .core.device import layout as layout
def lcm(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """The least common multiple."""
def lcm_(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """In-place version of :meth:`lcm`."""
def ldexp(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input * 2**other``."""
def ldexp_(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """In-place version of :meth:`ldexp`."""
def le(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input <= other``."""
def lerp(input: Tensor, end: Tensor, weight: Operand | None, *, out: Tensor | None = None) -> Tensor:
    """``input + weight * (end - input)``, exact at weights 0 and 1; `weight` is a number or a tensor."""
def less(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input < other``."""
def less_equal(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input <= other``."""
def lgamma(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``log|Gamma(x)|``; infinite at 0, -1, -2, ..."""
from .world import library as library
from . import linalg as linalg
def linspace(start: Operand, end: Operand, steps: _int, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None, out: Tensor | None = None) -> Tensor:
    """`steps` numbers evenly spaced from `start` to `end`; differentiable in ends that are tensors."""
def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: _bool | None = None, mmap: Any = None, **_: Any) -> Any:
    """Read what ``save`` wrote, or ``torch.save``: only tensors and plain containers are accepted, since pickles can run code."""
def lobpcg(A: Tensor, k: _int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: _int | None = None, iK: Tensor | None = None, niter: _int | None = None, tol: _float | None = None, largest: _bool | None = None, method: _str | None = None, tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None) -> _tuple[Tensor, Tensor]:
    """``A X = B X diag(E)``: the `k` largest (or smallest) eigenvalues E in this order and their vectors X, ``X^H B X = I``."""
def log(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm."""
def log10(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 10."""
def log10_(self: Tensor) -> Tensor:
    """In-place version of :meth:`log10`."""
def log1p(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + x)``, accurate near 0."""
def log1p_(self: Tensor) -> Tensor:
    """In-place version of :meth:`log1p`."""
def log2(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 2."""
def log2_(self: Tensor) -> Tensor:
    """In-place version of :meth:`log2`."""
def log_(self: Tensor) -> Tensor:
    """In-place version of :meth:`log`."""
def log_sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(1 / (1 + e**-input))``, accurate in both tails."""
def log_softmax(input: Tensor, dim: _int, dtype: DTypeLike | None = None, *, out: Tensor | None = None) -> Tensor:
    """``log(softmax(x))`` over `dim`, without underflow."""
def logaddexp(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``log(exp(input) + exp(other))`` without overflow."""
def logaddexp2(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``log2(2**input + 2**other)`` without overflow."""
def logcumsumexp(input: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor:
    """``y[k] = log(e**x[0] + ... + e**x[k])`` along `dim`, without overflow."""
def logdet(A: Tensor) -> Tensor:
    """``log(det A)``: NaN for a negative determinant, -inf for a singular matrix."""
def logical_and(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether both are true (not 0)."""
def logical_not(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether it is 0."""
def logical_or(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether one is true (not 0)."""
def logical_xor(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether exactly one is true (not 0)."""
def logit(input: Tensor, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """``log(x / (1 - x))``, NaN outside [0, 1]; with `eps`, x is first limited to [eps, 1 - eps], and constant beyond."""
def logit_(input: Tensor, eps: _float | None = None) -> Tensor:
    """In-place version of :meth:`logit`."""
def logspace(start: Operand, end: Operand, steps: _int, base: _float = 10.0, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None, out: Tensor | None = None) -> Tensor:
    """``base ** linspace(start, end, steps)``."""
def logsumexp(input: Tensor, dim: Ints, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``log(sum(exp(input)))`` over `dim`, without overflow."""
long: DType
def lstm(*args: Any, **kw: Any) -> _tuple[Tensor, ...]:
    """``c' = f c + i tanh(.), h' = o tanh(c')`` over the steps of sequences, in `num_layers` layers: the states of all steps and the last states and cells."""
def lstm_cell(input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> _tuple[Tensor, Tensor]:
    """One step of an LSTM: ``h' = o tanh(c')`` and ``c' = f c + i tanh(.)``."""
def lt(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input < other``."""
def lu(A: Tensor, pivot: _bool = True, get_infos: _bool = False) -> LUFactor | LUFactorEx:
    """L and U packed into one matrix and the row interchanges; with `get_infos` the first zero pivots."""
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``X`` with ``A X = b`` from A's LU factorization."""
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: _bool = True, unpack_pivots: _bool = True, *, out: Tensor | Sequence[Tensor] | None = None) -> PLU:
    """``P, L, U`` from what lu_factor returns."""
def manual_seed(seed: _int) -> Generator:
    """Seed the default generator."""
from .jit.control import map_ as map
def margin_ranking_loss(*args: Any, **kw: Any) -> Tensor:
    """``margin_ranking_loss(input1, input2, target, margin, reduction)``: ``max(0, -target * (input1 - input2) + margin)``."""
from . import masked as masked
def masked_fill(input: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """`input` with `value` (a number or a 0-d tensor) where the mask holds."""
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`input` with the elements of `source`, one after the other, where the mask holds."""
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements of `input` where the mask holds, in one dim."""
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input @ other``: vectors, matrices, and batches of matrices whose leading dims broadcast."""
def matrix_exp(A: Tensor) -> Tensor:
    """``I + A + A A / 2 + ...``."""
def matrix_power(A: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """``A A ... A``, n factors, by squaring; of the inverse for a negative n."""
@overload
def max(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The largest entry of all; ``(values, indices)`` along `dim`; or, of two tensors, the largest elementwise."""
@overload
def max(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> ValuesIndices:
    """The largest entry of all; ``(values, indices)`` along `dim`; or, of two tensors, the largest elementwise."""
@overload
def max(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The largest entry of all; ``(values, indices)`` along `dim`; or, of two tensors, the largest elementwise."""
@overload
def max_pool1d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: Literal[False] = False) -> Tensor:
    """The maximum over windows of the last 1 dim(s); padding never wins."""
@overload
def max_pool1d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Any:
    """The maximum over windows of the last 1 dim(s); padding never wins."""
def max_pool1d_with_indices(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = True) -> _tuple[Tensor, Tensor]:
    """The maxima over windows of the last 1 dim(s), and their places in these dims, flattened."""
@overload
def max_pool2d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: Literal[False] = False) -> Tensor:
    """The maximum over windows of the last 2 dim(s); padding never wins."""
@overload
def max_pool2d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Any:
    """The maximum over windows of the last 2 dim(s); padding never wins."""
def max_pool2d_with_indices(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = True) -> _tuple[Tensor, Tensor]:
    """The maxima over windows of the last 2 dim(s), and their places in these dims, flattened."""
def max_pool2d_with_indices_backward(grad_output: Tensor, self: Tensor, kernel_size: Ints, stride: Ints, padding: Ints | _str, dilation: Ints, ceil_mode: _bool, indices: Tensor) -> Tensor:
    """Zeros like `self` with `grad_output` added at the places `indices` of the last two dims, flattened."""
@overload
def max_pool3d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: Literal[False] = False) -> Tensor:
    """The maximum over windows of the last 3 dim(s); padding never wins."""
@overload
def max_pool3d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Any:
    """The maximum over windows of the last 3 dim(s); padding never wins."""
def max_pool3d_with_indices(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = True) -> _tuple[Tensor, Tensor]:
    """The maxima over windows of the last 3 dim(s), and their places in these dims, flattened."""
def maximum(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """The larger one; NaN wins; a tie is shared."""
def mean(input: Tensor, dim: Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """The arithmetic mean of all elements, or over `dim`."""
@overload
def median(input: Tensor) -> Tensor:
    """The lower median of the entries, NaN if one is; ``(values, indices)`` along `dim`, or of all."""
@overload
def median(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> ValuesIndices:
    """The lower median of the entries, NaN if one is; ``(values, indices)`` along `dim`, or of all."""
from .core.device import memory_format as memory_format
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: _str | None = None) -> _tuple[Tensor, ...]:
    """Grids of coordinates: tensor i varies along dim i ("ij"), with the first two exchanged for "xy"."""
@overload
def min(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smallest entry of all; ``(values, indices)`` along `dim`; or, of two tensors, the smallest elementwise."""
@overload
def min(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> ValuesIndices:
    """The smallest entry of all; ``(values, indices)`` along `dim`; or, of two tensors, the smallest elementwise."""
@overload
def min(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smallest entry of all; ``(values, indices)`` along `dim`; or, of two tensors, the smallest elementwise."""
def minimum(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """The smaller one; NaN wins; a tie is shared."""
def miopen_batch_norm(input: Tensor, weight: Operand | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: _bool, exponential_average_factor: _float, epsilon: _float) -> _tuple[Tensor, Tensor, Tensor]:
    """Batch norm, the mean and ``1 / sqrt(var + eps)`` (empty in evaluation), as :func:`native_batch_norm` has them."""
def miopen_batch_norm_backward(input: Tensor, grad_output: Tensor, weight: Operand | None, running_mean: Tensor | None, running_var: Tensor | None, save_mean: Tensor | None, save_var: Tensor | None, epsilon: _float) -> _tuple[Tensor, Tensor, Tensor]:
    """The gradients of input, weight and bias of batch norm in training; `save_var` is ``1 / sqrt(var + eps)``."""
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices."""
def mode(input: Tensor, dim: _int = -1, keepdim: _bool = False, *, out: Tensor | Sequence[Tensor] | None = None) -> ValuesIndices:
    """The most frequent entry along `dim`, the smallest of equally frequent ones: ``(values, indices)``."""
def moveaxis(input: Tensor, source: Ints, destination: Ints) -> Tensor:
    """Dims moved from `source` to `destination`, the others keeping their order."""
def movedim(input: Tensor, source: Ints, destination: Ints) -> Tensor:
    """Dims moved from `source` to `destination`, the others keeping their order."""
from .world import mps as mps
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`input` sorted along dim 0."""
from .world import mtia as mtia
def mul(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input * other``."""
def multinomial(input: Tensor, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Indices drawn from each row with probabilities proportional to `input`, with or without replacement."""
def multiply(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input * other``."""
from .world import multiprocessing as multiprocessing
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A matrix times a vector."""
def mvlgamma(input: Tensor, p: _int, *, out: Tensor | None = None) -> Tensor:
    """``p (p-1)/4 log(pi) + sum over j < p of lgamma(x - j/2)``, the logarithm of the multivariate gamma function."""
nan: _float
def nan_to_num(input: Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """`input` with NaN replaced (default 0), and the infinities (default the largest and smallest number of the type)."""
def nan_to_num_(input: Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
    """In-place version of :meth:`nan_to_num`."""
def nanmean(input: Tensor, dim: Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """The mean over `dim` of the entries that are not NaN."""
@overload
def nanmedian(input: Tensor) -> Tensor:
    """The lower median of the entries that are not NaN; ``(values, indices)`` along `dim`, or of all."""
@overload
def nanmedian(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Sequence[Tensor] | None = None) -> ValuesIndices:
    """The lower median of the entries that are not NaN; ``(values, indices)`` along `dim`, or of all."""
def nanquantile(input: Tensor, q: Operand, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear', out: Tensor | None = None) -> Tensor:
    """The `q`-quantiles of the entries that are not NaN, along `dim` or of all."""
def nansum(input: Tensor, dim: Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """The sum over `dim` with NaN counted as 0, and without derivative."""
def narrow(input: Tensor, dim: _int, start: Operand, length: _int) -> Tensor:
    """`length` entries of `dim` from `start` on."""
def narrow_copy(input: Tensor, dim: _int, start: Operand, length: _int) -> Tensor:
    """A copy of what :func:`narrow` gives."""
def native_batch_norm(input: Tensor, weight: Operand | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: _bool, momentum: _float, eps: _float, *, out: Tensor | Sequence[Tensor] | None = None) -> _tuple[Tensor, Tensor, Tensor]:
    """Batch norm, the mean and ``1 / sqrt(var + eps)`` (empty in evaluation); derivatives of all three are counted."""
def native_batch_norm_backward(grad_out: Tensor, input: Tensor, weight: Operand | None, running_mean: Tensor | None, running_var: Tensor | None, save_mean: Tensor | None, save_invstd: Tensor | None, train: _bool, eps: _float, output_mask: Sequence[_bool]) -> _tuple[Any, Any, Any]:
    """The gradients of input, weight and bias that `output_mask` asks for, None for the others."""
def native_channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """Channel ``g k + i`` (of g groups) moved to ``i g + k``: the groups interleaved."""
def native_dropout(input: Tensor, p: _float, train: _bool | None = True) -> _tuple[Tensor, Tensor]:
    """``(input * mask / (1 - p), mask)``; without training ``(input, ones)``."""
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: _float) -> Tensor:
    """``grad_output * mask * scale``."""
def native_group_norm(input: Tensor, weight: Operand | None, bias: Tensor | None, N: _int, C: _int, HxW: _int, group: _int, eps: _float, *, out: Tensor | Sequence[Tensor] | None = None) -> _tuple[Tensor, Tensor, Tensor]:
    """Group norm, mean and ``1 / sqrt(var + eps)`` [N, groups]; derivatives of all three are counted."""
def native_group_norm_backward(grad_out: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Operand | None, N: _int, C: _int, HxW: _int, group: _int, output_mask: Sequence[_bool]) -> _tuple[Any, Any, Any]:
    """The gradients of input, weight and bias that `output_mask` asks for, None for the others."""
def native_layer_norm(input: Tensor, normalized_shape: Sequence[_int], weight: Operand | None, bias: Tensor | None, eps: _float, *, out: Tensor | Sequence[Tensor] | None = None) -> _tuple[Tensor, Tensor, Tensor]:
    """Layer norm, the mean and ``1 / sqrt(var + eps)``; derivatives of all three are counted."""
def native_layer_norm_backward(grad_out: Tensor, input: Tensor, normalized_shape: Sequence[_int], mean: Tensor, rstd: Tensor, weight: Operand | None, bias: Tensor | None, output_mask: Sequence[_bool]) -> _tuple[Any, Any, Any]:
    """The gradients of input, weight and bias that `output_mask` asks for, None for the others."""
def ne(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Where both differ."""
def neg(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``-x``."""
def neg_(self: Tensor) -> Tensor:
    """In-place version of :meth:`neg`."""
def negative(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``-x``."""
def negative_(self: Tensor) -> Tensor:
    """In-place version of :meth:`negative`."""
from . import nested as nested
newaxis: None
def nextafter(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """The next number of this type after `input` towards `other`."""
from . import nn as nn
from .core.grad_mode import no_grad as no_grad
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = False, out: Tensor | None = None) -> Tensor:
    """The positions of nonzero elements: a row each, or with ``as_tuple`` an index tensor for each dim."""
@overload
def nonzero(input: Tensor, *, as_tuple: _bool = False, out: Tensor | Sequence[Tensor] | None = None) -> Any:
    """The positions of nonzero elements: a row each, or with ``as_tuple`` an index tensor for each dim."""
def nonzero_static(input: Tensor, *, size: _int, fill_value: _int = -1, out: Tensor | None = None) -> Tensor:
    """The positions of the first `size` nonzero elements, padded with rows of `fill_value`."""
def norm(input: Tensor, p: _float | _str | Tensor = 'fro', dim: Ints | None = None, keepdim: _bool = False, dtype: DTypeLike | None = None, *, out: Tensor | None = None) -> Tensor:
    """The vector norm of order `p` over `dim` or all; 'fro' is the 2-norm, 'nuc' the sum of singular values."""
def norm_except_dim(v: Tensor, pow: _float = 2, dim: _int = 0) -> Tensor:
    """The norm of order `pow` of each slice of `dim`, its other dims kept as size 1; of the whole tensor for dim -1."""
def normal(mean: Operand, std: Operand = 1.0, size: Ints | None = None, *, generator: Generator | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None, out: Tensor | None = None) -> Tensor:
    """Normal numbers: ``normal(mean, std)`` with tensors or numbers, or ``normal(mean, std, size)``."""
def not_equal(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Where both differ."""
def nuclear_norm(input: Tensor, dim: Ints = (-2, -1), keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The sum of the singular values of the matrices in the two dims `dim`."""
def numel(input: Tensor) -> _int:
    """The number of elements."""
from . import numpy as numpy
def ones(*sizes: Ints, size: Ints | None = None, out: Tensor | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None) -> Tensor:
    """A tensor of the given sizes filled with 1."""
def ones_like(input: Tensor, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, memory_format: Layout | None = None, pin_memory: _bool | None = None) -> Tensor:
    """A tensor with the shape and type of `input` filled with 1."""
from . import optim as optim
def orgqr(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first n columns of ``H_1 ... H_k`` with ``H_i = I - tau[i] v_i v_i^H``, v_i below the diagonal of A's column i."""
def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: _bool = True, transpose: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``Q other`` (or ``other Q``; ``Q^H`` with `transpose`) for the square Q of Householder vectors `input` and factors `tau`."""
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``y[i, j] = input[i] * vec2[j]``."""
from . import overrides as overrides
def pairwise_distance(x1: Tensor, x2: Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False) -> Tensor:
    """``|x1 - x2 + eps|_p`` along the last dim of the broadcast result."""
def pca_lowrank(A: Tensor, q: _int | None = None, center: _bool = True, niter: _int = 2) -> _tuple[Tensor, Tensor, Tensor]:
    """``U, S, V``: principal components of the rows of A, its columns centred unless ``center=False``."""
def pdist(input: Tensor, p: _float = 2.0) -> Tensor:
    """``|x[i] - x[j]|`` of order `p` for all pairs of rows ``i < j``."""
@overload
def permute(input: Tensor, *dims: Ints) -> Tensor:
    """Dims in the order `dims`."""
@overload
def permute(input: Tensor, *, dims: Ints) -> Tensor:
    """Dims in the order `dims`."""
def permute_copy(input: Tensor, *dims: Ints, **kw: Any) -> Tensor:
    """A copy of what :func:`permute` gives."""
pi: _float
def pinverse(input: Tensor, rcond: Operand = 1e-15) -> Tensor:
    """The Moore-Penrose inverse; singular values up to ``rcond * largest`` count as zero."""
def pixel_shuffle(input: Tensor, upscale_factor: _int, *, out: Tensor | None = None) -> Tensor:
    """``(*, C r^2, H, W) -> (*, C, H r, W r)``."""
def pixel_unshuffle(input: Tensor, downscale_factor: _int, *, out: Tensor | None = None) -> Tensor:
    """``(*, C, H r, W r) -> (*, C r^2, H, W)``."""
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Counts k with probability ``exp(-input) input**k / k!``, in the type of `input`."""
def poisson_nll_loss(*args: Any, **kw: Any) -> Tensor:
    """``poisson_nll_loss(input, target, log_input, full, eps, reduction)``: ``e**input - target * input``, or without ``log_input`` ``input - target * log(input + eps)``."""
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``abs (cos(angle) + i sin(angle))``."""
def polygamma(n: _int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``(d/dx)**n digamma(x)`` for ``n = 0, 1, 2, ...``, differentiable to any order."""
def positive(input: Tensor) -> Tensor:
    """`input` itself."""
def pow(input: Operand, exponent: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input ** exponent``; 0 ** 0 is 1 (NaN for a complex tensor as exponent), and its derivatives are 0."""
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``input`` where positive, else ``weight * input``, with one weight in all or one for every entry of dim 1."""
preserve_format: memory_format
def prod(input: Tensor, dim: Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """The product of all elements, or over one dim; right for any number of zeros at every order."""
from .people.profile import profile as profile
from .world import profiler as profiler
from .people.progress import progress as progress
from .core.dtypes import promote_types as promote_types
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
    """`input` with its flattened elements at `index` replaced by (or increased by) `source`."""
def qr(input: Tensor, some: _bool = True, *, out: Tensor | Sequence[Tensor] | None = None) -> QR:
    """``input = Q R``, reduced unless ``some=False``."""
def quantile(input: Tensor, q: Operand, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear', out: Tensor | None = None) -> Tensor:
    """The `q`-quantiles along `dim` or of all, between neighbours by `interpolation`; NaN where an entry is."""
from . import quasirandom as quasirandom
def rad2deg(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``180 x / pi``."""
def rad2deg_(self: Tensor) -> Tensor:
    """In-place version of :meth:`rad2deg`."""
def rand(*sizes: Ints, size: Ints | None = None, out: Tensor | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None, generator: Generator | None = None) -> Tensor:
    """Uniform numbers in [0, 1)."""
def rand_like(input: Tensor, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, memory_format: Layout | None = None, generator: Generator | None = None) -> Tensor:
    """Uniform numbers in [0, 1). Shape and type of `input`."""
@overload
def randint(high: _int, size: Ints, *, generator: Generator | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None) -> Tensor:
    """Integers in [low, high): ``randint(high, size)`` or ``randint(low, high, size)``."""
@overload
def randint(low: _int, high: _int, size: Ints, *, generator: Generator | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None) -> Tensor:
    """Integers in [low, high): ``randint(high, size)`` or ``randint(low, high, size)``."""
def randint_like(input: Tensor, *args: Any, low: _int | None = None, high: _int | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, memory_format: Layout | None = None, generator: Generator | None = None) -> Tensor:
    """Integers in [low, high) with the shape and type of `input`."""
def randn(*sizes: Ints, size: Ints | None = None, out: Tensor | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None, generator: Generator | None = None) -> Tensor:
    """Normal numbers with mean 0 and variance 1."""
def randn_like(input: Tensor, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, memory_format: Layout | None = None, generator: Generator | None = None) -> Tensor:
    """Normal numbers with mean 0 and variance 1. Shape and type of `input`."""
from . import random as random
def randperm(n: _int, *, generator: Generator | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None, out: Tensor | None = None) -> Tensor:
    """A random order of 0, ..., n - 1."""
def range(start: Operand, end: Operand | None = None, step: Operand = 1, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None, out: Tensor | None = None) -> Tensor:
    """``start, start + step, ...`` up to and including `end` (deprecated in PyTorch: use arange)."""
def ravel(input: Tensor) -> Tensor:
    """All elements in one dim."""
def real(input: Tensor) -> Tensor:
    """The real part, sharing memory; a real tensor itself."""
def reciprocal(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``1 / x``."""
def reciprocal_(self: Tensor) -> Tensor:
    """In-place version of :meth:`reciprocal`."""
def relu(input: Tensor) -> Tensor:
    """``max(input, 0)``; the derivative at 0 is 0."""
def relu_(input: Tensor) -> Tensor:
    """In-place version of :meth:`relu`."""
def remainder(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``a - floor(a / b) b``: the remainder with the sign of `other`."""
def renorm(input: Tensor, p: _float, dim: _int, maxnorm: _float, *, out: Tensor | None = None) -> Tensor:
    """`input` with each slice of `dim` whose norm of order `p` exceeds `maxnorm` scaled down to it."""
def repeat_interleave(input: Tensor, repeats: Ints | Tensor | None = None, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor:
    """Each entry of `dim` (of the flattened tensor without one) repeated, all equally often or each by its own count."""
@overload
def reshape(input: Tensor, *shape: Ints) -> Tensor:
    """The same elements in row-major order with another shape; a view where possible."""
@overload
def reshape(input: Tensor, *, shape: Ints) -> Tensor:
    """The same elements in row-major order with another shape; a view where possible."""
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Layout | None = None) -> Tensor:
    """Give `self` the shape of a template; see :func:`resize_`."""
def resize_as_sparse_(self: Tensor, the_template: Tensor) -> Tensor:
    """`self` with the sizes of another sparse tensor, in place."""
def resolve_conj(input: Tensor) -> Tensor:
    """`input` itself: conjugation and negation are never pending."""
def resolve_neg(input: Tensor) -> Tensor:
    """`input` itself: conjugation and negation are never pending."""
def result_type(tensor1: Operand, tensor2: Operand) -> DType:
    """The type of an operation between the two."""
from . import return_types as return_types
def rms_norm(input: Tensor, normalized_shape: Sequence[_int], weight: Tensor | None = None, eps: _float | None = None, *, mask: Tensor | None = None, lengths: Ints | Tensor | None = None) -> Tensor:
    """``x / sqrt(mean(x**2) + eps) * weight`` over the last dims, those of `normalized_shape`; see layer_norm for `mask`."""
def rnn_relu(*args: Any, **kw: Any) -> _tuple[Tensor, ...]:
    """``h' = relu(W x + b + V h + d)`` over the steps of sequences, in `num_layers` layers: the states of all steps and the last states."""
def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """One step: ``h' = relu(W x + b + V h + d)``."""
def rnn_tanh(*args: Any, **kw: Any) -> _tuple[Tensor, ...]:
    """``h' = tanh(W x + b + V h + d)`` over the steps of sequences, in `num_layers` layers: the states of all steps and the last states."""
def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """One step: ``h' = tanh(W x + b + V h + d)``."""
def roll(input: Tensor, shifts: Ints, dims: Ints | None = None) -> Tensor:
    """Entries moved along `dims` by `shifts`, around the end; without dims, of the flattened tensor."""
def rot90(input: Tensor, k: _int = 1, dims: Sequence[_int] = (0, 1)) -> Tensor:
    """Turned by k quarter turns from ``dims[0]`` towards ``dims[1]``."""
def round(input: Tensor, *, decimals: _int = 0, out: Tensor | None = None) -> Tensor:
    """The nearest integer, or number with so many decimals; halves go to the even one."""
def round_(input: Tensor, *, decimals: _int = 0) -> Tensor:
    """In-place version of :meth:`round`."""
def row_indices_copy(input: Tensor) -> Tensor:
    """A copy of ``input.row_indices()``."""
def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined along dim 0, vectors as rows."""
def rrelu(input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, generator: Generator | None = None) -> Tensor:
    """``input`` where positive, else ``a * input`` with a uniform in [lower, upper], or its mean without ``training``."""
def rrelu_(input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, generator: Generator | None = None) -> Tensor:
    """In-place version of :func:`rrelu`."""
def rsqrt(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``1 / sqrt(x)``."""
def rsqrt_(self: Tensor) -> Tensor:
    """In-place version of :meth:`rsqrt`."""
def rsub(input: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """``other - alpha * input``."""
def saddmm(mat: Tensor, mat1: Tensor, mat2: Tensor, beta: Operand = 1, alpha: Operand = 1) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)`` with a sparse `mat1`; the result is dense."""
def save(obj: Any, f: Any, pickle_module: Any = ..., pickle_protocol: _int = 4, **_: Any) -> None:
    """Write an object to a file: a dict of tensors to ``*.safetensors`` in that format, anything else pickled."""
def scalar_tensor(s: Ints, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, layout: Layout | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None) -> Tensor:
    """A 0-d tensor."""
from .jit.control import scan as scan
def scatter(input: Tensor, dim: _int, index: Tensor, src: Operand | None = None, *, value: Operand | None = None, reduce: _str | None = None, out: Tensor | None = None) -> Tensor:
    """`input` with `src` (a tensor or a number) written where gather would read."""
def scatter_add(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`input` with `src` added where gather would read."""
def scatter_reduce(input: Tensor, dim: _int, index: Tensor, src: Tensor, reduce: _str, *, include_self: _bool = True, out: Tensor | None = None) -> Tensor:
    """`input` with `src` reduced ("sum", "prod", "mean", "amax", "amin") into the places that gather would read."""
from . import scipy as scipy
def searchsorted(sorted_sequence: Tensor, input: Operand | None = None, *, out_int32: _bool = False, right: _bool = False, side: _str | None = None, sorter: Tensor | None = None, values: Operand | None = None, out: Tensor | None = None) -> Tensor:
    """Where each value would be inserted into the sorted sequences (along their last dim) to keep them sorted."""
def seed() -> _int:
    """Seed the default generator afresh."""
def segment_reduce(data: Tensor, reduce: _str, *, lengths: Tensor | None = None, indices: Any = None, offsets: Tensor | None = None, axis: _int = 0, unsafe: _bool = False, initial: Operand | None = None) -> Tensor:
    """Consecutive entries of `axis` reduced ("sum", "mean", "max", "min", "prod") in segments of the given lengths (or offsets)."""
def select(input: Tensor, dim: _int, index: _int | Tensor) -> Tensor:
    """Entry `index` of `dim`, which disappears."""
def select_copy(input: Tensor, dim: _int, index: _int | Tensor) -> Tensor:
    """A copy of what :func:`select` gives."""
def select_scatter(input: Tensor, src: Tensor, dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy of `input` with entry `index` of `dim` replaced by `src`."""
def selu(input: Tensor) -> Tensor:
    """elu with the alpha and the scale that keep mean 0 and variance 1."""
def selu_(input: Tensor) -> Tensor:
    """In-place version of :func:`selu`."""
from .world import serialization as serialization
from .amp.cast import set_autocast_cache_enabled as set_autocast_cache_enabled
from .amp.cast import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from .amp.cast import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from .amp.cast import set_autocast_dtype as set_autocast_dtype
from .amp.cast import set_autocast_enabled as set_autocast_enabled
from .amp.cast import set_autocast_gpu_dtype as set_autocast_gpu_dtype
def set_default_device(device: DeviceLike) -> None:
    """Make new tensors on this device: the CPU or ``meta``, the only ones there are; None takes it back."""
from .core.dtypes import set_default_dtype as set_default_dtype
def set_default_tensor_type(t: Any) -> None:
    """Set the default floating type by the name of a constructor, ``"torch.DoubleTensor"``."""
def set_deterministic_debug_mode(debug_mode: _int | _str) -> None:
    """0 or "default", 1 or "warn", 2 or "error": remembered, as every algorithm here is deterministic."""
def set_float32_matmul_precision(precision: _str) -> None:
    """Remember "highest", "high" or "medium": products are always computed in the type of their arguments."""
def set_flush_denormal(mode: _bool) -> _bool:
    """False: the processor's treatment of tiny numbers is left as it is."""
from .core.grad_mode import set_grad_enabled as set_grad_enabled
def set_num_interop_threads(n: _int) -> None:
    """Accepted: operations follow one another."""
def set_num_threads(n: _int) -> None:
    """Set the number of threads that compiled kernels use; results do not depend on it."""
from .core.printing import set_printoptions as set_printoptions
def set_rng_state(new_state: Tensor) -> None:
    """Return the default generator to a state."""
def set_warn_always(b: _bool) -> None:
    """Remember the wish: warnings go through Python's filters."""
def sgn(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``z / |z|``, and 0 at 0."""
short: DType
from .people.show import show as show
def sigmoid(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``1 / (1 + e**-x)``."""
def sigmoid_(self: Tensor) -> Tensor:
    """In-place version of :meth:`sigmoid`."""
def sign(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """-1, 0 or 1 by the sign of x."""
from . import signal as signal
def signbit(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Whether the sign bit is set; -0.0 has it."""
def sin(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The sine."""
def sin_(self: Tensor) -> Tensor:
    """In-place version of :meth:`sin`."""
def sinc(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``sin(pi x) / (pi x)``, 1 at 0 and 0 at the other integers; smooth to any order."""
def sinc_(self: Tensor) -> Tensor:
    """In-place version of :meth:`sinc`."""
def sinh(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic sine."""
def sinh_(self: Tensor) -> Tensor:
    """In-place version of :meth:`sinh`."""
def slice(input: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
    """Entries ``start, start + step, ...`` before `end` of `dim`, a view."""
def slice_copy(input: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
    """A copy of what :func:`slice` gives."""
def slice_inverse(self: Tensor, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
    """The tensor whose slice is `self` and that equals `src` where the slice does not reach."""
def slice_scatter(input: Tensor, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """A copy of `input` with the entries ``start:end:step`` of `dim` replaced by `src`."""
def slogdet(A: Tensor, *, out: Tensor | Sequence[Tensor] | None = None) -> Slogdet:
    """``sign, logabsdet`` with ``det A = sign * exp(logabsdet)``, without overflow; sign is a phase for complex A."""
def smm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix, as a sparse one."""
def softmax(input: Tensor, dim: _int, dtype: DTypeLike | None = None, *, out: Tensor | None = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` over `dim`."""
def sort(input: Tensor, dim: _int = -1, descending: _bool = False, stable: _bool | None = None, *, out: Tensor | Sequence[Tensor] | None = None) -> Sorted:
    """Values along `dim` in order, and their positions; equal values keep their order."""
from . import sparse as sparse
sparse_bsc: Layout
def sparse_bsc_tensor(ccol_indices: Any, row_indices: Any, values: Operand | Sequence[Any], size: Sequence[_int] | None = None, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor:
    """A sparse tensor by columns of blocks: where each begins, the rows of its entries, and the numbers. Dims in front are a batch."""
sparse_bsr: Layout
def sparse_bsr_tensor(crow_indices: Any, col_indices: Any, values: Operand | Sequence[Any], size: Sequence[_int] | None = None, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor:
    """A sparse tensor by rows of blocks: where each begins, the columns of its entries, and the numbers. Dims in front are a batch."""
def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Operand | Sequence[Any], size: Sequence[_int] | None = None, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor:
    """A sparse tensor in the compressed layout `layout`: sparse_csr, sparse_csc, sparse_bsr or sparse_bsc."""
sparse_coo: Layout
def sparse_coo_tensor(indices: Any, values: Operand | Sequence[Any] | None = None, size: Sequence[_int] | None = None, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None, is_coalesced: _bool | None = None) -> Tensor:
    """A sparse tensor from coordinates ``[sparse dims, nnz]`` and numbers ``[nnz, *dense dims]``; coordinates may repeat."""
sparse_csc: Layout
def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Operand | Sequence[Any], size: Sequence[_int] | None = None, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor:
    """A sparse tensor by columns: where each begins, the rows of its entries, and the numbers. Dims in front are a batch."""
sparse_csr: Layout
def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Operand | Sequence[Any], size: Sequence[_int] | None = None, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor:
    """A sparse tensor by rows: where each begins, the columns of its entries, and the numbers. Dims in front are a batch."""
from . import special as special
def split(tensor: Tensor, split_size_or_sections: Ints | None = None, dim: _int = 0, *, split_size: Ints | None = None) -> _tuple[Tensor, ...]:
    """Pieces of `dim`: of one size (the last may be smaller), or of the listed sizes."""
def split_copy(tensor: Tensor, split_size_or_sections: Ints | None = None, dim: _int = 0, *, split_size: Ints | None = None) -> _tuple[Tensor, ...]:
    """A copy of what :func:`split` gives."""
def split_with_sizes(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0) -> _tuple[Tensor, ...]:
    """Pieces of `dim` of the listed sizes."""
def split_with_sizes_copy(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0) -> _tuple[Tensor, ...]:
    """A copy of what :func:`split_with_sizes` gives."""
def spmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices of which at least one is sparse."""
def sqrt(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The square root."""
def sqrt_(self: Tensor) -> Tensor:
    """In-place version of :meth:`sqrt`."""
def square(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``x * x``."""
def square_(self: Tensor) -> Tensor:
    """In-place version of :meth:`square`."""
def squeeze(input: Tensor, dim: Ints | None = None) -> Tensor:
    """Dims of size 1 removed: all, or those listed."""
def squeeze_copy(input: Tensor, dim: Ints | None = None) -> Tensor:
    """A copy of what :func:`squeeze` gives."""
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Operand = 1, alpha: Operand = 1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` with sparse `input` and `mat1`, as a sparse tensor."""
def stack(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors of one shape joined along a new dim."""
def std(input: Tensor, dim: Ints | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _float | None = None, out: Tensor | None = None) -> Tensor:
    """The square root of the variance over `dim`; its derivative where it is 0 is 0."""
def std_mean(input: Tensor, dim: Ints | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _float | None = None) -> StdMean:
    """The standard deviation and the mean over `dim`."""
def stft(input: Tensor, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, pad_mode: _str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: _bool | None = None) -> Tensor:
    """``y[k, m] = sum_n window[n] x[m hop_length + n] exp(-2 pi i k n / n_fft)``: frequencies k of the frames m of a signal."""
strided: Layout
def sub(input: Operand, other: Operand, *, alpha: Operand = 1, out: Tensor | None = None) -> Tensor:
    """``input - alpha * other``."""
def subtract(input: Operand, other: Operand, *, alpha: Operand = 1, out: Tensor | None = None) -> Tensor:
    """``input - alpha * other``."""
def sum(input: Tensor, dim: Ints | None = None, keepdim: _bool = False, *, dtype: DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """The sum of all elements, or over `dim`."""
from .people.summary import summary as summary
def svd(input: Tensor, some: _bool = True, compute_uv: _bool = True, *, out: Tensor | Sequence[Tensor] | None = None) -> SVDV:
    """``input = U diag(S) V^H``; U and V are zeros without `compute_uv`."""
def svd_lowrank(A: Tensor, q: _int | None = 6, niter: _int | None = 2, M: Tensor | None = None) -> _tuple[Tensor, Tensor, Tensor]:
    """``U, S, V`` of rank q with ``A - M`` nearly ``U diag(S) V^H`` (Halko, Martinsson, Tropp 2009)."""
def swapaxes(input: Tensor, axis0: _int, axis1: _int) -> Tensor:
    """Two dims exchanged."""
def swapdims(input: Tensor, dim0: Any, dim1: _int | None = None) -> Tensor:
    """Two dims exchanged; with one tuple, all dims in that order, as NumPy has it."""
from .jit.control import switch as switch
def sym_float(*args: Any, _f: Any = ...) -> Any:
    """A number as a float."""
def sym_int(*args: Any, _f: Any = ...) -> Any:
    """A number as an int."""
def sym_ite(*args: Any, _f: Any = ...) -> Any:
    """One of two numbers."""
def sym_max(*args: Any, _f: Any = ...) -> Any:
    """The greater of two numbers."""
def sym_min(*args: Any, _f: Any = ...) -> Any:
    """The smaller of two numbers."""
def sym_not(*args: Any, _f: Any = ...) -> Any:
    """The other truth value."""
def sym_sqrt(*args: Any, _f: Any = ...) -> Any:
    """The square root of a number."""
def sym_sum(*args: Any, _f: Any = ...) -> Any:
    """The sum of a list of numbers."""
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; vectors and scalars as they are."""
def t_copy(input: Tensor) -> Tensor:
    """A copy of what :func:`t` gives."""
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Elements of the flattened input at `index`, in the shape of index."""
def take_along_dim(input: Tensor, indices: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """gather with the other dims broadcast; without `dim`, of the flattened input."""
def tan(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The tangent."""
def tan_(self: Tensor) -> Tensor:
    """In-place version of :meth:`tan`."""
def tanh(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent."""
def tanh_(self: Tensor) -> Tensor:
    """In-place version of :meth:`tanh`."""
def tensor(data: Any, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor:
    """A new tensor with a copy of `data`: a number, nested lists, an array or a tensor."""
def tensor_split(input: Tensor, indices_or_sections: Ints | Tensor | None = None, dim: _int = 0, *, indices: Any = None, sections: Ints | Tensor | None = None, tensor_indices_or_sections: Ints | Tensor | None = None) -> _tuple[Tensor, ...]:
    """Pieces of `dim`: so many nearly equal ones, or cut at the listed indices."""
def tensordot(a: Tensor, b: Tensor, dims: Ints | Sequence[Sequence[_int]] | Tensor = 2, *, out: Tensor | None = None) -> Tensor:
    """The sum of products over pairs of dims: the last `dims` of a with the first of b, or the listed ones; `axes` is NumPy's name."""
from . import testing as testing
def threshold(input: Tensor, threshold: _float, value: _float, *, out: Tensor | None = None) -> Tensor:
    """``input`` where it is above the threshold, else ``value``."""
def threshold_(input: Tensor, threshold: _float, value: _float, *, out: Tensor | None = None) -> Tensor:
    """In-place version of :func:`threshold`."""
def tile(input: Tensor, *dims: Ints) -> Tensor:
    """`input` laid side by side; missing leading counts are 1."""
def to_dlpack(tensor: Tensor) -> Any:
    """The memory of a tensor for another library, as an opaque capsule."""
def topk(input: Tensor, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True, *, out: Tensor | Sequence[Tensor] | None = None) -> Sorted:
    """The k largest (or smallest) entries along `dim`, in order, and their positions."""
from .world import torch_version as torch_version
def trace(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``sum_i x[i, i]`` of a matrix."""
def transpose(input: Tensor, dim0: Any, dim1: _int | None = None) -> Tensor:
    """Two dims exchanged; with one tuple, all dims in that order, as NumPy has it."""
def transpose_copy(input: Tensor, dim0: Any, dim1: _int | None = None) -> Tensor:
    """A copy of what :func:`transpose` gives."""
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Operand | None = None, dim: _int = -1) -> Tensor:
    """The integral of `y` along `dim` by the trapezoidal rule, over points `x` or with spacing `dx`."""
def trapz(y: Tensor, x: Tensor | None = None, *, dx: Operand | None = None, dim: _int = -1) -> Tensor:
    """The integral of `y` along `dim` by the trapezoidal rule, over points `x` or with spacing `dx`."""
from . import tree as tree
def triangular_solve(input: Tensor, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *, out: Tensor | Sequence[Tensor] | None = None) -> TriangularSolve:
    """``X`` with ``A X = input`` (``A^T X = input`` with `transpose`) for a triangular A, and a copy of A."""
def tril(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The lower triangle of the last two dims, zeros elsewhere."""
def tril_indices(row: _int, col: _int, offset: _int = 0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, layout: Layout | None = None, pin_memory: _bool | None = None) -> Tensor:
    """Row and column numbers of the elements on and below a diagonal, in row-major order."""
def triplet_margin_loss(*args: Any, **kw: Any) -> Tensor:
    """``triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)``: ``max(0, margin + d(anchor, positive) - d(anchor, negative))`` with the p-norm distance d."""
def triu(input: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The upper triangle of the last two dims, zeros elsewhere."""
def triu_indices(row: _int, col: _int, offset: _int = 0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, layout: Layout | None = None, pin_memory: _bool | None = None) -> Tensor:
    """Row and column numbers of the elements on and above a diagonal, in row-major order."""
def true_divide(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input / other``."""
def trunc(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """x without its fraction."""
def trunc_(self: Tensor) -> Tensor:
    """In-place version of :meth:`trunc`."""
def typename(obj: Any) -> _str:
    """The type's name, as PyTorch prints it."""
from .world import types as types
from . import typing as typing
uint16: DType
uint32: DType
uint64: DType
uint8: DType
def unbind(input: Tensor, dim: _int = 0) -> _tuple[Tensor, ...]:
    """All entries of `dim`."""
def unbind_copy(input: Tensor, dim: _int = 0) -> _tuple[Tensor, ...]:
    """A copy of what :func:`unbind` gives."""
def unflatten(input: Tensor, dim: _int, sizes: Sequence[_int]) -> Tensor:
    """One dim split into several; one of `sizes` may be -1."""
def unfold_copy(input: Tensor, dimension: _int, size: _int, step: _int, *, out: Tensor | None = None) -> Tensor:
    """A copy of ``input.unfold(dimension, size, step)``."""
@overload
def unique(input: Tensor, sorted: _bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
    """The different values (or slices of `dim`), in order; where each element went; how often each occurs."""
@overload
def unique(input: Tensor, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any:
    """The different values (or slices of `dim`), in order; where each element went; how often each occurs."""
@overload
def unique_consecutive(input: Tensor, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _int | None = None) -> Tensor:
    """The values (or slices of `dim`) that differ from the one before; where each went; how long each run is."""
@overload
def unique_consecutive(input: Tensor, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any:
    """The values (or slices of `dim`) that differ from the one before; where each went; how long each run is."""
def unravel_index(indices: Tensor, shape: Ints) -> _tuple[Tensor, ...]:
    """The coordinates in a tensor of `shape` of elements given by their place in row-major order."""
def unsafe_chunk(input: Tensor, chunks: _int, dim: _int = 0) -> _tuple[Tensor, ...]:
    """:func:`chunk`; here views are always safe."""
def unsafe_split(input: Tensor, split_size: _int, dim: _int = 0) -> _tuple[Tensor, ...]:
    """:func:`split`; here views are always safe."""
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0) -> _tuple[Tensor, ...]:
    """:func:`split_with_sizes`; here views are always safe."""
def unsqueeze(input: Tensor, dim: _int) -> Tensor:
    """A dim of size 1 inserted at `dim`."""
def unsqueeze_copy(input: Tensor, dim: _int) -> Tensor:
    """A copy of what :func:`unsqueeze` gives."""
def use_deterministic_algorithms(mode: _bool, *, warn_only: _bool = False) -> None:
    """Remember the wish: every algorithm here is deterministic."""
from . import utils as utils
def values_copy(input: Tensor) -> Tensor:
    """A copy of ``input.values()``."""
def vander(x: Tensor, N: _int | None = None, increasing: _bool = False) -> Tensor:
    """Powers of a vector as columns: ``x^(N-1), ..., x, 1``, or the other way round."""
def var(input: Tensor, dim: Ints | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _float | None = None, out: Tensor | None = None) -> Tensor:
    """``sum(|x - mean|**2) / (n - correction)`` over `dim`."""
def var_mean(input: Tensor, dim: Ints | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _float | None = None) -> VarMean:
    """The variance and the mean over `dim`."""
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``sum(conj(a) * b)`` of two vectors."""
from .people.verify import verify as verify
from .world import version as version
def view_as_complex(input: Tensor) -> Tensor:
    """A complex view of a real tensor whose last dimension holds real and imaginary part."""
def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """:func:`view_as_complex` as a new tensor."""
def view_as_real(input: Tensor) -> Tensor:
    """A real view of a complex tensor, with the two parts along a new last dimension."""
def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """:func:`view_as_real` as a new tensor."""
def view_copy(self: Tensor, *shape: Ints, dtype: DTypeLike | None = None, size: Ints | None = None) -> Tensor:
    """A copy of what :func:`view` gives."""
from .transforms.batch import vmap as vmap
def vsplit(input: Tensor, indices_or_sections: Ints | Tensor | None = None, *, indices: Any = None, sections: Ints | Tensor | None = None) -> _tuple[Tensor, ...]:
    """Equal pieces of dim 0, or cut at indices."""
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joined along dim 0, vectors as rows."""
@overload
def where(condition: Tensor) -> _tuple[Tensor, ...]:
    """``input`` where the condition holds, else ``other``. Cotangents of the branch not taken are absent, not 0 * inf."""
@overload
def where(condition: Tensor, input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input`` where the condition holds, else ``other``. Cotangents of the branch not taken are absent, not 0 * inf."""
from .jit.control import while_loop as while_loop
def xlogy(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input * log(other)``, and 0 where `input` is 0."""
def xlogy_(self: Tensor, other: Operand) -> Tensor:
    """In-place version of :meth:`xlogy`."""
from .world import xpu as xpu
def zero_(self: Tensor) -> Tensor:
    """Write 0 to all elements."""
def zeros(*sizes: Ints, size: Ints | None = None, out: Tensor | None = None, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, pin_memory: _bool | None = None) -> Tensor:
    """A tensor of the given sizes filled with 0."""
def zeros_like(input: Tensor, *, dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, requires_grad: _bool = False, memory_format: Layout | None = None, pin_memory: _bool | None = None) -> Tensor:
    """A tensor with the shape and type of `input` filled with 0."""
def _adaptive_avg_pool2d(input: Tensor, output_size: _int | Sequence[_int | None] | None) -> Tensor:
    """The mean over `output_size` windows that share the last 2 dim(s) as evenly as they can."""
def _adaptive_avg_pool3d(input: Tensor, output_size: _int | Sequence[_int | None] | None) -> Tensor:
    """The mean over `output_size` windows that share the last 3 dim(s) as evenly as they can."""
def _addmm_activation(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Operand = 1, alpha: Operand = 1, use_gelu: _bool = False, out: Tensor | None = None) -> Tensor:
    """``relu`` (or ``gelu``) of ``beta * self + alpha * (mat1 @ mat2)``."""
def _batch_norm_no_update(input: Tensor, weight: Operand | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, momentum: _float, eps: _float) -> _tuple[Tensor, Tensor, Tensor, Tensor]:
    """Batch norm in evaluation; the fourth result, what another device would reserve, is empty."""
def _batch_norm_with_update(input: Tensor, weight: Operand | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, momentum: _float, eps: _float) -> _tuple[Tensor, Tensor, Tensor, Tensor]:
    """Batch norm in training; the fourth result, what another device would reserve, is empty."""
def _chunk_cat(tensors: Sequence[Tensor], dim: _int, num_chunks: _int, *, out: Tensor | None = None) -> Tensor:
    """Each tensor cut along `dim` in `num_chunks` (padded with zeros) and flattened behind it, then joined."""
def _convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints | _str, dilation: Ints, transposed: _bool, output_padding: Ints, groups: _int, *flags: _bool) -> Tensor:
    """`convolution`; the flags choose among other systems' libraries."""
def _convolution_mode(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: _str, dilation: Ints, groups: _int) -> Tensor:
    """`convolution` with padding 'same' or 'valid'."""
def _euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    """``|x1[i] - x2[j]|`` between all rows, by a matrix product."""
def _fft_c2c(input: Tensor, dim: Ints, normalization: _int, forward: _bool, *, out: Tensor | None = None) -> Tensor:
    """The transform of a complex tensor along `dim`, or the transform backwards; `normalization`: 0 none, 1 1/sqrt(n), 2 1/n."""
def _fft_c2r(input: Tensor, dim: Ints, normalization: _int, last_dim_size: _int, *, out: Tensor | None = None) -> Tensor:
    """The real signal, `last_dim_size` points long in the last of `dim`, whose transform has `input` as its one side."""
def _fft_r2c(input: Tensor, dim: Ints, normalization: _int, onesided: _bool, *, out: Tensor | None = None) -> Tensor:
    """The transform of a real tensor along `dim`, of the last of them one side or all; `normalization` as in _fft_c2c."""
def _fused_dropout(input: Tensor, p: _float, generator: Generator | None = None) -> _tuple[Tensor, Tensor]:
    """``(input * mask / p, mask)`` where `p` is the probability to keep; the mask is of type uint8."""
def _fused_rms_norm(input: Tensor, normalized_shape: Sequence[_int], weight: Operand | None = None, eps: _float | None = None) -> _tuple[Tensor, Tensor]:
    """RMS norm and ``1 / sqrt(mean(x**2) + eps)``; derivatives of both are counted."""
def _fused_rms_norm_backward(grad_out: Tensor, input: Tensor, normalized_shape: Sequence[_int], rstd: Tensor, weight: Operand | None, output_mask: Sequence[_bool]) -> _tuple[Any, Any]:
    """The gradients of input and weight that `output_mask` asks for, None for the others."""
def _grid_sampler_2d_cpu_fallback(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool) -> Tensor:
    """`grid_sample` with modes as numbers: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""
def _int_mm(self: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``self @ mat2`` of 8-bit integers as int32. The products are added in float64, which holds every such sum."""
def _log_softmax(input: Tensor, dim: _int, half_to_float: _bool, *, out: Tensor | None = None) -> Tensor:
    """log_softmax over `dim`; with ``half_to_float`` a 16-bit input gives a float32 result."""
def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: _int, input_dtype: DTypeLike, *, out: Tensor | None = None) -> Tensor:
    """``g - exp(y) * sum(g)`` over `dim`: the cotangent of log_softmax's input from its output `y`."""
def _masked_scale(grad_output: Tensor, mask: Tensor, scale: _float) -> Tensor:
    """``grad_output * mask * scale``."""
def _native_batch_norm_legit(input: Tensor, weight: Operand | None, bias: Tensor | None, *args: Any, out: Tensor | Sequence[Tensor] | None = None, **kw: Any) -> _tuple[Tensor, Tensor, Tensor]:
    """Batch norm with statistics to update, ``(..., running_mean, running_var, training, momentum, eps)``, or without the two."""
def _native_batch_norm_legit_functional(input: Tensor, weight: Operand | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, training: _bool, momentum: _float, eps: _float) -> _tuple[Tensor, ...]:
    """Batch norm that returns new running statistics, as results four and five, and writes to nothing."""
def _native_batch_norm_legit_no_training(input: Tensor, weight: Operand | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, momentum: _float, eps: _float) -> _tuple[Tensor, Tensor, Tensor]:
    """Batch norm in evaluation."""
def _nested_from_padded(padded: Tensor, cpu_nested_shape_example: Tensor, fuse_transform_0213: _bool = False) -> Tensor:
    """:func:`nested.from_padded`, under the name of the operator."""
def _prelu_kernel(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    ...
def _safe_softmax(input: Tensor, dim: _int, dtype: DTypeLike | None = None, *, out: Tensor | None = None) -> Tensor:
    """softmax over `dim`, with zeros instead of NaN where all entries are ``-inf``."""
def _scaled_mm(self: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None, scale_result: Any = None, out_dtype: Any = None, use_fast_accum: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``(scale_a * self) @ (scale_b * mat2) + bias`` of 8-bit floats, computed in float32; the scales are numbers, a column and a row."""
def _scaled_mm_v2(self: Tensor, mat2: Tensor, scale_a: Any, recipe_a: Any, swizzle_a: Any, scale_b: Any, recipe_b: Any, swizzle_b: Any, bias: Tensor | None = None, out_dtype: Any = None, contraction_dim: Any = (), use_fast_accum: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """:func:`_scaled_mm` with the scales in lists: one for all elements (recipe 0), or one for each row or column (recipe 1)."""
def _segment_reduce(data: Tensor, reduce: _str, *, lengths: Tensor | None = None, indices: Any = None, offsets: Tensor | None = None, axis: _int = 0, unsafe: _bool = False, initial: Operand | None = None) -> Tensor:
    """Consecutive entries of `axis` reduced ("sum", "mean", "max", "min", "prod") in segments of the given lengths (or offsets)."""
def _softmax(input: Tensor, dim: _int, half_to_float: _bool, *, out: Tensor | None = None) -> Tensor:
    """softmax over `dim`; with ``half_to_float`` a 16-bit input gives a float32 result."""
def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: _int, input_dtype: DTypeLike, *, out: Tensor | None = None) -> Tensor:
    """``y * (g - sum(y * g))`` over `dim`: the cotangent of softmax's input from its output `y`."""
def _test_warn_in_autograd(self: Tensor) -> Tensor:
    """`self`; whoever differentiates it is warned, once for each derivative that is taken."""
def _trilinear(i1: Tensor, i2: Tensor, i3: Tensor, expand1: Sequence[_int], expand2: Sequence[_int], expand3: Sequence[_int], sumdim: Sequence[_int], unroll_dim: _int = 1) -> Tensor:
    """``(i1 * i2 * i3).sum(sumdim)`` with dims of size 1 put into each at `expand1`, `expand2`, `expand3`."""
def _unsafe_masked_index(input: Tensor, mask: Tensor, indices: Any, fill: Operand) -> Tensor:
    """``input[indices]`` where the mask holds, else `fill`; indices need only be in range where it holds."""
def _unsafe_masked_index_put_accumulate(input: Tensor, mask: Tensor, indices: Any, values: Tensor) -> Tensor:
    """`input` with `values` added at `indices` where the mask holds."""
def _upsample_bicubic2d_aa(input: Tensor, output_size: _int | Sequence[_int | None] | None, *rest: Any, scale_factors: _float | Sequence[_float] | None = None, **kw: Any) -> Tensor:
    """``(N, C, *spatial)`` resized to `output_size` (bicubic, antialiased)."""
def _upsample_bilinear2d_aa(input: Tensor, output_size: _int | Sequence[_int | None] | None, *rest: Any, scale_factors: _float | Sequence[_float] | None = None, **kw: Any) -> Tensor:
    """``(N, C, *spatial)`` resized to `output_size` (bilinear, antialiased)."""
def _weight_norm(v: Tensor, g: Tensor, dim: _int = 0) -> Tensor:
    """``v g / |v|``, the norm over all dims but `dim`; -1 stands for the norm of the whole tensor."""
def _weight_norm_differentiable_backward(grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: _int = 0) -> _tuple[Tensor, Tensor]:
    """The gradients of v and g, differentiable in all arguments: the saved norm is a variable, not a constant."""
def _weight_norm_interface(v: Tensor, g: Tensor, dim: _int = 0) -> _tuple[Tensor, Tensor]:
    """``v g / |v|`` and the norm ``|v|`` (float32 for 16-bit types); the norm is differentiable as well."""
def _weight_norm_interface_backward(grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: _int = 0) -> _tuple[Tensor, Tensor]:
    """The gradients of v and g, differentiable in all arguments: the saved norm is a variable, not a constant."""
