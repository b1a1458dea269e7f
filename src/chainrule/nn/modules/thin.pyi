"""Modules that only hold the options of a function: activations, dropout, distances, losses, paddings of shapes."""

# Written by `make surface` from the declarations of the ops.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, object as _object, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Self, overload

from ...core.dtypes import DType
from ...core.errors import ChainruleError
from ... import Generator
from ...core.tensor import Size, Tensor
from ...return_types import CholeskyEx, Eig, Geqrf, Histogram, HistogramDD, InvEx, LDL, LDLEx, LUFactor, LUFactorEx, Lstsq, MinMax, PLU, QR, SVD, SVDV, Slogdet, SolveEx, Sorted, StdMean, TriangularSolve, ValuesIndices, VarMean
from ...typing import DTypeLike, DeviceLike, Ints, Layout, Number, Operand

from ..module import Module
from ..parameter import Parameter

__all__ = ["Thin", "L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss", "CrossEntropyLoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss", "PoissonNLLLoss", "GaussianNLLLoss", "SoftMarginLoss", "HingeEmbeddingLoss", "MarginRankingLoss", "CosineEmbeddingLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss", "MultiMarginLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "CTCLoss", "ReLU", "ReLU6", "LeakyReLU", "ELU", "CELU", "SELU", "GELU", "SiLU", "Mish", "Hardtanh", "Hardsigmoid", "Hardswish", "Hardshrink", "Softshrink", "Tanhshrink", "Softplus", "Softsign", "LogSigmoid", "Threshold", "GLU", "Softmax", "Softmin", "LogSoftmax", "CosineSimilarity", "PairwiseDistance", "PixelShuffle", "PixelUnshuffle", "ChannelShuffle", "LocalResponseNorm", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "RReLU", "PReLU", "Sigmoid", "Tanh", "Softmax2d"]

class Thin(Module):
    def forward(self, *inputs: Any) -> Any: ...
class L1Loss(Thin):
    """``|x - y|``."""
    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: _str = 'mean') -> None: ...
class MSELoss(Thin):
    """``(x - y)**2``."""
    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: _str = 'mean') -> None: ...
class SmoothL1Loss(Thin):
    """Quadratic within +-beta, linear outside."""
    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: _str = 'mean', beta: _float = 1.0) -> None: ...
class HuberLoss(Thin):
    """Quadratic within +-delta, linear outside."""
    def __init__(self, reduction: _str = 'mean', delta: _float = 1.0) -> None: ...
class CrossEntropyLoss(Thin):
    """``-log softmax(x)[y]``."""
    def __init__(self, weight: Any = None, size_average: Any = None, ignore_index: _float = -100, reduce: Any = None, reduction: _str = 'mean', label_smoothing: _float = 0.0, class_dim: _float = 1) -> None: ...
class NLLLoss(Thin):
    """``-x[y]`` of log-probabilities."""
    def __init__(self, weight: Any = None, size_average: Any = None, ignore_index: _float = -100, reduce: Any = None, reduction: _str = 'mean', class_dim: _float = 1) -> None: ...
class BCELoss(Thin):
    """``-y log x - (1 - y) log(1 - x)``."""
    def __init__(self, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: _str = 'mean') -> None: ...
class BCEWithLogitsLoss(Thin):
    """Binary cross entropy of ``sigmoid(x)``."""
    def __init__(self, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: _str = 'mean', pos_weight: Any = None) -> None: ...
class KLDivLoss(Thin):
    """``y (log y - x)`` of log-probabilities x."""
    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: _str = 'mean', log_target: _bool = False) -> None: ...
class PoissonNLLLoss(Thin):
    """``exp(x) - y x``."""
    def __init__(self, log_input: _bool = True, full: _bool = False, size_average: Any = None, eps: _float = 1e-08, reduce: Any = None, reduction: _str = 'mean') -> None: ...
class GaussianNLLLoss(Thin):
    """``(log v + (x - y)**2 / v) / 2``."""
    def __init__(self, full: _bool = False, eps: _float = 1e-06, reduction: _str = 'mean') -> None: ...
class SoftMarginLoss(Thin):
    """``log(1 + exp(-y x))``."""
    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: _str = 'mean') -> None: ...
class HingeEmbeddingLoss(Thin):
    """x where y is 1, ``max(0, margin - x)`` where it is -1."""
    def __init__(self, margin: _float = 1.0, size_average: Any = None, reduce: Any = None, reduction: _str = 'mean') -> None: ...
class MarginRankingLoss(Thin):
    """``max(0, -y (x1 - x2) + margin)``."""
    def __init__(self, margin: _float = 0.0, size_average: Any = None, reduce: Any = None, reduction: _str = 'mean') -> None: ...
class CosineEmbeddingLoss(Thin):
    """``1 - cos`` where y is 1, ``max(0, cos - margin)`` where it is -1."""
    def __init__(self, margin: _float = 0.0, size_average: Any = None, reduce: Any = None, reduction: _str = 'mean') -> None: ...
class TripletMarginLoss(Thin):
    """``max(0, d(a, p) - d(a, n) + margin)``."""
    def __init__(self, margin: _float = 1.0, p: _float = 2.0, eps: _float = 1e-06, swap: _bool = False, size_average: Any = None, reduce: Any = None, reduction: _str = 'mean') -> None: ...
class TripletMarginWithDistanceLoss(Thin):
    """``max(0, d(a, p) - d(a, n) + margin)`` with a distance of your own."""
    def __init__(self, distance_function: Any = None, margin: _float = 1.0, swap: _bool = False, reduction: _str = 'mean') -> None: ...
class MultiMarginLoss(Thin):
    """``max(0, margin - x[y] + x[i])**p``."""
    def __init__(self, p: _float = 1, margin: _float = 1.0, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: _str = 'mean') -> None: ...
class MultiLabelMarginLoss(Thin):
    """The margins of several right classes."""
    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: _str = 'mean') -> None: ...
class MultiLabelSoftMarginLoss(Thin):
    """Binary cross entropy of each class."""
    def __init__(self, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: _str = 'mean') -> None: ...
class CTCLoss(Thin):
    """The probability of all alignments of a sequence."""
    def __init__(self, blank: _float = 0, reduction: _str = 'mean', zero_infinity: _bool = False) -> None: ...
class ReLU(Thin):
    """``max(x, 0)``."""
    def __init__(self, inplace: _bool = False) -> None: ...
class ReLU6(Thin):
    """``min(max(x, 0), 6)``."""
    def __init__(self, inplace: _bool = False) -> None: ...
class LeakyReLU(Thin):
    """``x`` above 0, ``negative_slope x`` below."""
    def __init__(self, negative_slope: _float = 0.01, inplace: _bool = False) -> None: ...
class ELU(Thin):
    """``x`` above 0, ``alpha (exp(x) - 1)`` below."""
    def __init__(self, alpha: _float = 1.0, inplace: _bool = False) -> None: ...
class CELU(Thin):
    """``max(x, 0) + min(0, alpha (exp(x / alpha) - 1))``."""
    def __init__(self, alpha: _float = 1.0, inplace: _bool = False) -> None: ...
class SELU(Thin):
    """The self-normalising ELU."""
    def __init__(self, inplace: _bool = False) -> None: ...
class GELU(Thin):
    """``x Phi(x)`` with the normal distribution function."""
    def __init__(self, approximate: _str = 'none') -> None: ...
class SiLU(Thin):
    """``x sigmoid(x)``."""
    def __init__(self, inplace: _bool = False) -> None: ...
class Mish(Thin):
    """``x tanh(softplus(x))``."""
    def __init__(self, inplace: _bool = False) -> None: ...
class Hardtanh(Thin):
    """x clipped to an interval."""
    def __init__(self, min_val: _float = -1.0, max_val: _float = 1.0, inplace: _bool = False) -> None: ...
class Hardsigmoid(Thin):
    """``clip(x / 6 + 1/2, 0, 1)``."""
    def __init__(self, inplace: _bool = False) -> None: ...
class Hardswish(Thin):
    """``x hardsigmoid(x)``."""
    def __init__(self, inplace: _bool = False) -> None: ...
class Hardshrink(Thin):
    """0 within +-lambd, x outside."""
    def __init__(self, lambd: _float = 0.5) -> None: ...
class Softshrink(Thin):
    """x moved towards 0 by lambd."""
    def __init__(self, lambd: _float = 0.5) -> None: ...
class Tanhshrink(Thin):
    """``x - tanh(x)``."""
    def __init__(self) -> None: ...
class Softplus(Thin):
    """``log(1 + exp(beta x)) / beta``."""
    def __init__(self, beta: _float = 1.0, threshold: _float = 20.0) -> None: ...
class Softsign(Thin):
    """``x / (1 + |x|)``."""
    def __init__(self) -> None: ...
class LogSigmoid(Thin):
    """``log(sigmoid(x))``."""
    def __init__(self) -> None: ...
class Threshold(Thin):
    """x above a threshold, else a value."""
    def __init__(self, threshold: Any, value: Any, inplace: _bool = False) -> None: ...
class GLU(Thin):
    """The first half of `dim` times the sigmoid of the second."""
    def __init__(self, dim: _int = -1) -> None: ...
class Softmax(Thin):
    """``exp(x) / sum(exp(x))`` along `dim`."""
    def __init__(self, dim: Any = None) -> None: ...
class Softmin(Thin):
    """The softmax of ``-x`` along `dim`."""
    def __init__(self, dim: Any = None) -> None: ...
class LogSoftmax(Thin):
    """``x - log(sum(exp(x)))`` along `dim`."""
    def __init__(self, dim: Any = None) -> None: ...
class CosineSimilarity(Thin):
    """``<x1, x2> / (|x1| |x2|)`` along `dim`."""
    def __init__(self, dim: _int = 1, eps: _float = 1e-08) -> None: ...
class PairwiseDistance(Thin):
    """``|x1 - x2 + eps|_p`` over the last dim."""
    def __init__(self, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False) -> None: ...
class PixelShuffle(Thin):
    """[C r r, H, W] as [C, H r, W r]."""
    def __init__(self, upscale_factor: Any) -> None: ...
class PixelUnshuffle(Thin):
    """[C, H r, W r] as [C r r, H, W]."""
    def __init__(self, downscale_factor: Any) -> None: ...
class ChannelShuffle(Thin):
    """The channels of groups interleaved."""
    def __init__(self, groups: Any) -> None: ...
class LocalResponseNorm(Thin):
    """``x / (k + alpha mean(x**2))**beta``, the mean over neighbouring channels."""
    def __init__(self, size: Any, alpha: _float = 0.0001, beta: _float = 0.75, k: _float = 1.0) -> None: ...
class Dropout(Thin):
    """In training, zero with probability p, else ``x / (1 - p)``."""
    def __init__(self, p: _float = 0.5, inplace: _bool = False) -> None: ...
class Dropout1d(Thin):
    """Dropout of whole channels [N, C, L]."""
    def __init__(self, p: _float = 0.5, inplace: _bool = False) -> None: ...
class Dropout2d(Thin):
    """Dropout of whole channels [N, C, H, W]."""
    def __init__(self, p: _float = 0.5, inplace: _bool = False) -> None: ...
class Dropout3d(Thin):
    """Dropout of whole channels [N, C, D, H, W]."""
    def __init__(self, p: _float = 0.5, inplace: _bool = False) -> None: ...
class AlphaDropout(Thin):
    """Dropout that keeps mean and variance behind a SELU."""
    def __init__(self, p: _float = 0.5, inplace: _bool = False) -> None: ...
class FeatureAlphaDropout(Thin):
    """AlphaDropout of whole channels."""
    def __init__(self, p: _float = 0.5, inplace: _bool = False) -> None: ...
class RReLU(Thin):
    """Leaky ReLU with a random slope in training."""
    def __init__(self, lower: _float = 0.125, upper: _float = 0.3333333333333333, inplace: _bool = False) -> None: ...
class PReLU(Module):
    """``max(x, 0) + a min(x, 0)`` with a learned `a`, one or one a channel."""
    weight: Parameter
    def __init__(self, num_parameters: _int = 1, init: _float = 0.25, device: DeviceLike | None = None, dtype: DTypeLike | None = None) -> None:
        ...
    def forward(self, input: Tensor) -> Tensor:
        """``max(x, 0) + a min(x, 0)``."""
    def extra_repr(self) -> _str:
        """The number of parameters."""
class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""
    def forward(self, input: Tensor) -> Tensor:
        """``1 / (1 + exp(-x))``."""
class Tanh(Module):
    """``tanh(x)``."""
    def forward(self, input: Tensor) -> Tensor:
        """``tanh(x)``."""
class Softmax2d(Module):
    """Softmax over the channels of [N, C, H, W] or [C, H, W]."""
    def forward(self, input: Tensor) -> Tensor:
        """Softmax over dim -3."""
