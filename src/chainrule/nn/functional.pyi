"""The functions of neural networks, without state: what the ops publish under ``nn.functional``."""

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

__all__ = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "affine_grid", "alpha_dropout", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "elu_", "embedding", "embedding_bag", "feature_alpha_dropout", "fold", "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d", "fractional_max_pool3d_with_indices", "gaussian_nll_loss", "gelu", "glu", "grid_sample", "group_norm", "grouped_mm", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_", "linear", "linear_cross_entropy", "local_response_norm", "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss", "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "multi_head_attention_forward", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "native_channel_shuffle", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6", "relu_", "rms_norm", "rrelu", "rrelu_", "scaled_dot_product_attention", "selu", "selu_", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_", "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold", "upsample", "upsample_bilinear", "upsample_nearest"]

def adaptive_avg_pool1d(input: Tensor, output_size: _int | Sequence[_int | None] | None) -> Tensor:
    """The mean over `output_size` windows that share the last 1 dim(s) as evenly as they can."""
def adaptive_avg_pool2d(input: Tensor, output_size: _int | Sequence[_int | None] | None) -> Tensor:
    """The mean over `output_size` windows that share the last 2 dim(s) as evenly as they can."""
def adaptive_avg_pool3d(input: Tensor, output_size: _int | Sequence[_int | None] | None) -> Tensor:
    """The mean over `output_size` windows that share the last 3 dim(s) as evenly as they can."""
@overload
def adaptive_max_pool1d(input: Tensor, output_size: _int | Sequence[_int | None] | None, return_indices: Literal[False] = False) -> Tensor:
    """The maximum over `output_size` windows that share the last 1 dim(s) as evenly as they can."""
@overload
def adaptive_max_pool1d(input: Tensor, output_size: _int | Sequence[_int | None] | None, return_indices: _bool = False) -> Any:
    """The maximum over `output_size` windows that share the last 1 dim(s) as evenly as they can."""
def adaptive_max_pool1d_with_indices(input: Tensor, output_size: _int | Sequence[_int | None] | None, return_indices: _bool = True) -> _tuple[Tensor, Tensor]:
    """adaptive_max_pool1d and the places of the maxima in the last 1 dim(s), flattened."""
@overload
def adaptive_max_pool2d(input: Tensor, output_size: _int | Sequence[_int | None] | None, return_indices: Literal[False] = False) -> Tensor:
    """The maximum over `output_size` windows that share the last 2 dim(s) as evenly as they can."""
@overload
def adaptive_max_pool2d(input: Tensor, output_size: _int | Sequence[_int | None] | None, return_indices: _bool = False) -> Any:
    """The maximum over `output_size` windows that share the last 2 dim(s) as evenly as they can."""
def adaptive_max_pool2d_with_indices(input: Tensor, output_size: _int | Sequence[_int | None] | None, return_indices: _bool = True) -> _tuple[Tensor, Tensor]:
    """adaptive_max_pool2d and the places of the maxima in the last 2 dim(s), flattened."""
@overload
def adaptive_max_pool3d(input: Tensor, output_size: _int | Sequence[_int | None] | None, return_indices: Literal[False] = False) -> Tensor:
    """The maximum over `output_size` windows that share the last 3 dim(s) as evenly as they can."""
@overload
def adaptive_max_pool3d(input: Tensor, output_size: _int | Sequence[_int | None] | None, return_indices: _bool = False) -> Any:
    """The maximum over `output_size` windows that share the last 3 dim(s) as evenly as they can."""
def adaptive_max_pool3d_with_indices(input: Tensor, output_size: _int | Sequence[_int | None] | None, return_indices: _bool = True) -> _tuple[Tensor, Tensor]:
    """adaptive_max_pool3d and the places of the maxima in the last 3 dim(s), flattened."""
def affine_grid(theta: Tensor, size: Ints, align_corners: _bool | None = None) -> Tensor:
    """The points ``theta @ (x, y[, z], 1)`` over the pixels of an image of `size` ``(N, C, *spatial)``, for grid_sample."""
def alpha_dropout(input: Tensor, p: _float = 0.5, training: _bool = False, inplace: _bool = False) -> Tensor:
    """Dropout for SELU, which keeps mean and variance."""
def avg_pool1d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
    """The mean over windows of the last dim; padding counts as zeros unless ``count_include_pad=False``."""
def avg_pool2d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None) -> Tensor:
    """The mean over windows of the last two dims (the sum over `divisor_override`, where given)."""
def avg_pool3d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None) -> Tensor:
    """The mean over windows of the last three dims (the sum over `divisor_override`, where given)."""
def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None, bias: Tensor | None = None, training: _bool = False, momentum: _float = 0.1, eps: _float = 1e-05, *, mask: Tensor | None = None, lengths: Ints | Tensor | None = None, channel_dim: _int = 1) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` for each channel of x [N, C, ...], or with channels in `channel_dim`."""
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``y[..., k] = sum_ij input1[..., i] weight[k, i, j] input2[..., j] + bias[k]``."""
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None, reduce: _bool | None = None, reduction: _str = 'mean') -> Tensor:
    """``-weight * (target * log(input) + (1 - target) * log(1 - input))``, with logarithms of at least -100."""
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None, reduce: _bool | None = None, reduction: _str = 'mean', pos_weight: Tensor | None = None) -> Tensor:
    """``-weight * (pos_weight * target * log(s) + (1 - target) * log(1 - s))`` with ``s = sigmoid(input)``."""
def celu(input: Tensor, alpha: _float = 1.0, inplace: _bool = False) -> Tensor:
    """``max(input, 0) + min(alpha * (e**(input / alpha) - 1), 0)``."""
def celu_(input: Tensor, alpha: _float = 1.0) -> Tensor:
    """In-place version of :func:`celu`."""
def channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """Channel ``g k + i`` (of g groups) moved to ``i g + k``: the groups interleaved."""
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
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0, size_average: _bool | None = None, reduce: _bool | None = None, reduction: _str = 'mean') -> Tensor:
    """``1 - cos(input1, input2)`` where the target is 1, ``max(0, cos - margin)`` where it is -1."""
def cosine_similarity(x1: Tensor, x2: Tensor, dim: _int = 1, eps: _float = 1e-08) -> Tensor:
    """``<x1 / max(|x1|, eps), x2 / max(|x2|, eps)>`` along `dim`."""
def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None, ignore_index: _int = -100, reduce: _bool | None = None, reduction: _str = 'mean', label_smoothing: _float = 0.0, *, class_dim: _int = 1) -> Tensor:
    """``-sum_c weight[c] target[c] log_softmax(input)[c]`` with classes in `class_dim`, for class indices or probabilities."""
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Ints | Tensor | None = None, target_lengths: Ints | Tensor | None = None, blank: _int = 0, reduction: _str = 'mean', zero_infinity: _bool = False) -> Tensor:
    """Minus the log of the probability that the steps of `log_probs` (T, N, C) spell `targets`, blanks and repeats removed."""
def dropout(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """`input` with elements set to 0 with probability `p`, the others scaled."""
def dropout1d(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, L) or (C, L)."""
def dropout2d(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, H, W)."""
def dropout3d(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
def elu(input: Tensor, alpha: _float = 1.0, inplace: _bool = False) -> Tensor:
    """``input`` where positive, else ``alpha * (e**input - 1)``."""
def elu_(input: Tensor, alpha: _float = 1.0) -> Tensor:
    """In-place version of :func:`elu`."""
def embedding(input: Tensor, weight: Tensor, padding_idx: _int | None = None, max_norm: _float | None = None, norm_type: _float = 2.0, scale_grad_by_freq: _bool = False, sparse: _bool = False) -> Tensor:
    """Rows of the table `weight` by number; the row `padding_idx` gets no gradient."""
def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: _float | None = None, norm_type: _float = 2, scale_grad_by_freq: _bool = False, mode: _str = 'mean', sparse: _bool = False, per_sample_weights: Tensor | None = None, include_last_offset: _bool = False, padding_idx: _int | None = None) -> Tensor:
    """Rows of the table `weight` summed, averaged or maximised in bags: the rows of a 2-D input, or segments from `offsets`."""
def feature_alpha_dropout(input: Tensor, p: _float = 0.5, training: _bool = False, inplace: _bool = False) -> Tensor:
    """Alpha dropout of whole channels."""
def fold(input: Tensor, output_size: _int | Sequence[_int | None] | None, kernel_size: Ints, dilation: Ints = 1, padding: Ints | _str = 0, stride: Ints = 1) -> Tensor:
    """Columns added up to images, the transpose of unfold: ``(N, C * kh * kw, patches) -> (N, C, H, W)``."""
@overload
def fractional_max_pool2d(input: Tensor, kernel_size: Ints, output_size: _int | Sequence[_int | None] | None = None, output_ratio: _float | Sequence[_float] | None = None, return_indices: Literal[False] = False, _random_samples: Tensor | None = None) -> Tensor:
    """The maximum over windows of the last 2 dims whose places are random, `output_size` or `output_ratio` of them."""
@overload
def fractional_max_pool2d(input: Tensor, kernel_size: Ints, output_size: _int | Sequence[_int | None] | None = None, output_ratio: _float | Sequence[_float] | None = None, return_indices: _bool = False, _random_samples: Tensor | None = None) -> Any:
    """The maximum over windows of the last 2 dims whose places are random, `output_size` or `output_ratio` of them."""
def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: Ints, output_size: _int | Sequence[_int | None] | None = None, output_ratio: _float | Sequence[_float] | None = None, return_indices: _bool = True, _random_samples: Tensor | None = None) -> _tuple[Tensor, Tensor]:
    """The maximum over windows of the last 2 dims whose places are random, `output_size` or `output_ratio` of them. With their places."""
@overload
def fractional_max_pool3d(input: Tensor, kernel_size: Ints, output_size: _int | Sequence[_int | None] | None = None, output_ratio: _float | Sequence[_float] | None = None, return_indices: Literal[False] = False, _random_samples: Tensor | None = None) -> Tensor:
    """The maximum over windows of the last 3 dims whose places are random, `output_size` or `output_ratio` of them."""
@overload
def fractional_max_pool3d(input: Tensor, kernel_size: Ints, output_size: _int | Sequence[_int | None] | None = None, output_ratio: _float | Sequence[_float] | None = None, return_indices: _bool = False, _random_samples: Tensor | None = None) -> Any:
    """The maximum over windows of the last 3 dims whose places are random, `output_size` or `output_ratio` of them."""
def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: Ints, output_size: _int | Sequence[_int | None] | None = None, output_ratio: _float | Sequence[_float] | None = None, return_indices: _bool = True, _random_samples: Tensor | None = None) -> _tuple[Tensor, Tensor]:
    """The maximum over windows of the last 3 dims whose places are random, `output_size` or `output_ratio` of them. With their places."""
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Operand, full: _bool = False, eps: _float = 1e-06, reduction: _str = 'mean') -> Tensor:
    """``(log(v) + (input - target)**2 / v) / 2`` with ``v = max(var, eps)``, plus ``log(2 pi) / 2`` if ``full``."""
def gelu(input: Tensor, approximate: _str = 'none', *, out: Tensor | None = None) -> Tensor:
    """``input * Phi(input)`` with the normal distribution function Phi, or its "tanh" approximation."""
def glu(input: Tensor, dim: _int = -1, *, out: Tensor | None = None) -> Tensor:
    """``a * sigmoid(b)`` with `a` and `b` the halves of the input along `dim`."""
def grid_sample(input: Tensor, grid: Tensor, mode: _str = 'bilinear', padding_mode: _str = 'zeros', align_corners: _bool | None = None) -> Tensor:
    """``(N, C, *size)`` read at the points `grid` ``(N, *out, d)``, each (x, y[, z]) from -1 to 1 over the image: ``(N, C, *out)``."""
def group_norm(input: Tensor, num_groups: _int, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05, *, mask: Tensor | None = None, lengths: Ints | Tensor | None = None) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias``, statistics over each group of channels of each example of x [N, C, ...]."""
def grouped_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None) -> Tensor:
    """A product for each group: `offs` has the ends of the groups in that dim of a 2-D matrix which the other's groups answer to."""
def gumbel_softmax(logits: Tensor, tau: _float = 1, hard: _bool = False, eps: _float = 1e-10, dim: _int = -1) -> Tensor:
    """softmax of ``(logits + gumbel noise) / tau``; ``hard`` gives one-hot values with the soft one's derivative."""
def hardshrink(input: Tensor, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """``input`` where ``|input| > lambd``, else 0."""
def hardsigmoid(input: Tensor, inplace: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``min(max(input + 3, 0), 6) / 6``."""
def hardswish(input: Tensor, inplace: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``input * min(max(input + 3, 0), 6) / 6``."""
def hardtanh(input: Tensor, min_val: _float = -1.0, max_val: _float = 1.0, inplace: _bool = False) -> Tensor:
    """``min(max(input, min_val), max_val)``; unlike clamp's, its derivative at the bounds is 0."""
def hardtanh_(input: Tensor, min_val: _float = -1.0, max_val: _float = 1.0) -> Tensor:
    """In-place version of :func:`hardtanh`."""
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: _float = 1.0, size_average: _bool | None = None, reduce: _bool | None = None, reduction: _str = 'mean') -> Tensor:
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1."""
def huber_loss(input: Tensor, target: Tensor, reduction: _str = 'mean', delta: _float = 1.0, weight: Tensor | None = None) -> Tensor:
    """``d**2 / 2`` where ``|d| <= delta`` for ``d = input - target``, else ``delta * (|d| - delta / 2)``."""
def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: _bool = True, momentum: _float = 0.1, eps: _float = 1e-05, *, mask: Tensor | None = None, lengths: Ints | Tensor | None = None) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias``, statistics of each channel of each example of x [N, C, ...]."""
def interpolate(input: Tensor, size: Ints | None = None, scale_factor: _float | Sequence[_float] | None = None, mode: _str = 'nearest', align_corners: _bool | None = None, recompute_scale_factor: _bool | None = None, antialias: _bool = False) -> Tensor:
    """`input` ``(N, C, *spatial)`` resized to `size`, or by `scale_factor`."""
def kl_div(input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _bool | None = None, reduction: _str = 'mean', log_target: _bool = False) -> Tensor:
    """``target * (log(target) - input)`` for log-probabilities `input`; "batchmean" divides the sum by the first dim."""
def l1_loss(input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _bool | None = None, reduction: _str = 'mean', weight: Tensor | None = None) -> Tensor:
    """``|input - target|``."""
def layer_norm(input: Tensor, normalized_shape: Sequence[_int], weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05, *, mask: Tensor | None = None, lengths: Ints | Tensor | None = None) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dims, those of `normalized_shape`."""
def leaky_relu(input: Tensor, negative_slope: _float = 0.01, inplace: _bool = False) -> Tensor:
    """``input`` where positive, else ``negative_slope * input``."""
def leaky_relu_(input: Tensor, negative_slope: _float = 0.01) -> Tensor:
    """In-place version of :func:`leaky_relu`."""
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``."""
def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None, weight: Tensor | None = None, reduction: _str = 'mean', ignore_index: _int | None = None, label_smoothing: _float = 0.0, options: Any = None) -> Tensor:
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``; `options` are hints and change no value."""
def local_response_norm(input: Tensor, size: _int, alpha: _float = 0.0001, beta: _float = 0.75, k: _float = 1.0) -> Tensor:
    """``x / (k + alpha mean(x**2))**beta``, the mean over `size` neighbouring channels, zeros beyond the ends."""
def log_softmax(input: Tensor, dim: _int | None = None, _stacklevel: _int = 3, dtype: DTypeLike | None = None) -> Tensor:
    """``log(softmax(x))`` over `dim`, without underflow."""
def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(1 / (1 + e**-input))``, accurate in both tails."""
def lp_pool1d(input: Tensor, norm_type: _int | _float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: _bool = False) -> Tensor:
    """``(sum x^p)^(1/p)`` over windows of the last 1 dim(s), p = `norm_type`."""
def lp_pool2d(input: Tensor, norm_type: _int | _float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: _bool = False) -> Tensor:
    """``(sum x^p)^(1/p)`` over windows of the last 2 dim(s), p = `norm_type`."""
def lp_pool3d(input: Tensor, norm_type: _int | _float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: _bool = False) -> Tensor:
    """``(sum x^p)^(1/p)`` over windows of the last 3 dim(s), p = `norm_type`."""
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0, size_average: _bool | None = None, reduce: _bool | None = None, reduction: _str = 'mean') -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``."""
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
@overload
def max_pool3d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: Literal[False] = False) -> Tensor:
    """The maximum over windows of the last 3 dim(s); padding never wins."""
@overload
def max_pool3d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = False) -> Any:
    """The maximum over windows of the last 3 dim(s); padding never wins."""
def max_pool3d_with_indices(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, dilation: Ints = 1, ceil_mode: _bool = False, return_indices: _bool = True) -> _tuple[Tensor, Tensor]:
    """The maxima over windows of the last 3 dim(s), and their places in these dims, flattened."""
def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, output_size: _int | Sequence[_int | None] | None = None) -> Tensor:
    """Zeros with `input` written at the places `indices` that max_pool1d found: its partial inverse."""
def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, output_size: _int | Sequence[_int | None] | None = None) -> Tensor:
    """Zeros with `input` written at the places `indices` that max_pool2d found: its partial inverse."""
def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints | _str = 0, output_size: _int | Sequence[_int | None] | None = None) -> Tensor:
    """Zeros with `input` written at the places `indices` that max_pool3d found: its partial inverse."""
def mish(input: Tensor, inplace: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``input * tanh(softplus(input))``."""
def mse_loss(input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _bool | None = None, reduction: _str = 'mean', weight: Tensor | None = None) -> Tensor:
    """``(input - target)**2``."""
def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: _int, num_heads: _int, in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: _bool, dropout_p: _float, out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: _bool = True, key_padding_mask: Tensor | None = None, need_weights: _bool = True, attn_mask: Tensor | None = None, use_separate_proj_weight: _bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None, average_attn_weights: _bool = True, is_causal: _bool = False) -> _tuple[Tensor, Tensor | None]:
    """``concat_h(softmax(q_h k_h^T / sqrt(d) + mask) v_h) W_o + b_o`` and the attention weights; inputs are [length, batch, embedding]."""
def multi_margin_loss(input: Tensor, target: Tensor, p: _int = 1, margin: _float = 1.0, weight: Tensor | None = None, size_average: _bool | None = None, reduce: _bool | None = None, reduction: _str = 'mean') -> Tensor:
    """``sum_{j != y} weight[y] * max(0, margin - x[y] + x[j])**p / C`` for a row x of C scores and its class y."""
def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _bool | None = None, reduction: _str = 'mean') -> Tensor:
    """``sum_{j in T} sum_{i not in T} max(0, 1 - x[j] + x[i]) / C``: T are the row's targets before its first -1."""
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None, reduce: _bool | None = None, reduction: _str = 'mean') -> Tensor:
    """``-mean_c weight[c] * (target[c] log s(x[c]) + (1 - target[c]) log s(-x[c]))`` with s the sigmoid, over the last dim."""
def native_channel_shuffle(input: Tensor, groups: _int) -> Tensor:
    """Channel ``g k + i`` (of g groups) moved to ``i g + k``: the groups interleaved."""
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None, ignore_index: _int = -100, reduce: _bool | None = None, reduction: _str = 'mean', *, class_dim: _int = 1) -> Tensor:
    """``-weight[target] * input[target]`` for log-probabilities with classes in `class_dim`; "mean" divides by the weights."""
def normalize(input: Tensor, p: _float = 2.0, dim: _int = 1, eps: _float = 1e-12, *, out: Tensor | None = None) -> Tensor:
    """``input / max(|input|_p, eps)`` along `dim`."""
def one_hot(tensor: Tensor, num_classes: _int = -1) -> Tensor:
    """Zeros with a one at the class's place in a new last dim."""
def pad(input: Tensor, pad: Sequence[_int], mode: _str = 'constant', value: _float | None = None) -> Tensor:
    """The last dims padded by ``pad = (before last, after last, before last but one, ...)``; negative pads cut off."""
def pairwise_distance(x1: Tensor, x2: Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False) -> Tensor:
    """``|x1 - x2 + eps|_p`` along the last dim of the broadcast result."""
def pdist(input: Tensor, p: _float = 2.0) -> Tensor:
    """``|x[i] - x[j]|`` of order `p` for all pairs of rows ``i < j``."""
def pixel_shuffle(input: Tensor, upscale_factor: _int, *, out: Tensor | None = None) -> Tensor:
    """``(*, C r^2, H, W) -> (*, C, H r, W r)``."""
def pixel_unshuffle(input: Tensor, downscale_factor: _int, *, out: Tensor | None = None) -> Tensor:
    """``(*, C, H r, W r) -> (*, C r^2, H, W)``."""
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: _bool = True, full: _bool = False, size_average: _bool | None = None, eps: _float = 1e-08, reduce: _bool | None = None, reduction: _str = 'mean') -> Tensor:
    """``e**input - target * input``, or without ``log_input`` ``input - target * log(input + eps)``."""
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``input`` where positive, else ``weight * input``, with one weight in all or one for every entry of dim 1."""
def relu(input: Tensor, inplace: _bool = False) -> Tensor:
    """``max(input, 0)``; the derivative at 0 is 0."""
def relu6(input: Tensor, inplace: _bool = False) -> Tensor:
    """``min(max(input, 0), 6)``; the derivative at 0 and at 6 is 0."""
def relu_(input: Tensor) -> Tensor:
    """In-place version of :meth:`relu`."""
def rms_norm(input: Tensor, normalized_shape: Sequence[_int], weight: Tensor | None = None, eps: _float | None = None, *, mask: Tensor | None = None, lengths: Ints | Tensor | None = None) -> Tensor:
    """``x / sqrt(mean(x**2) + eps) * weight`` over the last dims, those of `normalized_shape`; see layer_norm for `mask`."""
def rrelu(input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, inplace: _bool = False) -> Tensor:
    """``input`` where positive, else ``a * input`` with a uniform in [lower, upper], or its mean without ``training``."""
def rrelu_(input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False, generator: Generator | None = None) -> Tensor:
    """In-place version of :func:`rrelu`."""
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: _float = 0.0, is_causal: _bool = False, scale: _float | None = None, enable_gqa: _bool = False) -> Tensor:
    """``softmax(query key^T scale + mask) value`` over the last two dims; nested sequences of any lengths."""
def selu(input: Tensor, inplace: _bool = False) -> Tensor:
    """elu with the alpha and the scale that keep mean 0 and variance 1."""
def selu_(input: Tensor) -> Tensor:
    """In-place version of :func:`selu`."""
def sigmoid(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``1 / (1 + e**-x)``."""
def silu(input: Tensor, inplace: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``input * sigmoid(input)``, real or complex."""
def smooth_l1_loss(input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _bool | None = None, reduction: _str = 'mean', beta: _float = 1.0) -> Tensor:
    """``d**2 / (2 beta)`` where ``|d| < beta`` for ``d = input - target``, else ``|d| - beta / 2``."""
def soft_margin_loss(input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _bool | None = None, reduction: _str = 'mean') -> Tensor:
    """``log(1 + e**(-target * input))``, without overflow."""
def softmax(input: Tensor, dim: _int | None = None, _stacklevel: _int = 3, dtype: DTypeLike | None = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` over `dim`."""
def softmin(input: Tensor, dim: _int | None = None, _stacklevel: _int = 3, dtype: DTypeLike | None = None) -> Tensor:
    """``softmax(-input)`` over `dim`."""
def softplus(input: Tensor, beta: _float = 1.0, threshold: _float = 20.0, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + e**(beta * input)) / beta``, and ``input`` itself where ``beta * input > threshold``."""
def softshrink(input: Tensor, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """``sign(input) * max(|input| - lambd, 0)``."""
def softsign(input: Tensor) -> Tensor:
    """``input / (1 + |input|)``."""
def tanh(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent."""
def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""
def threshold(input: Tensor, threshold: _float, value: _float, inplace: _bool = False) -> Tensor:
    """``input`` where it is above the threshold, else ``value``."""
def threshold_(input: Tensor, threshold: _float, value: _float, *, out: Tensor | None = None) -> Tensor:
    """In-place version of :func:`threshold`."""
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: _float = 1.0, p: _float = 2, eps: _float = 1e-06, swap: _bool = False, size_average: _bool | None = None, reduce: _bool | None = None, reduction: _str = 'mean') -> Tensor:
    """``max(0, margin + d(anchor, positive) - d(anchor, negative))`` with the p-norm distance d."""
def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: _float = 1.0, swap: _bool = False, reduction: _str = 'mean') -> Tensor:
    """:func:`triplet_margin_loss` with any distance function of two tensors."""
def unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints | _str = 0, stride: Ints = 1) -> Tensor:
    """Patches of images as columns: ``(N, C, H, W) -> (N, C * kh * kw, patches)``."""
def upsample(input: Tensor, size: Ints | None = None, scale_factor: _float | Sequence[_float] | None = None, mode: _str = 'nearest', align_corners: _bool | None = None) -> Tensor:
    """`interpolate`, by its older name."""
def upsample_bilinear(input: Tensor, size: Ints | None = None, scale_factor: _float | Sequence[_float] | None = None) -> Tensor:
    """`interpolate` with ``mode="bilinear", align_corners=True``."""
def upsample_nearest(input: Tensor, size: Ints | None = None, scale_factor: _float | Sequence[_float] | None = None) -> Tensor:
    """`interpolate` with ``mode="nearest"``."""
