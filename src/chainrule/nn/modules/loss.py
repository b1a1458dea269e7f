"""Losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from ...core import dtypes as dt
from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from .distance import PairwiseDistance
from .linear import Linear
from .thin import reduction_of, thin


class _Loss(Module):
    """A module with a `reduction`: "mean", "sum" or "none"."""

    reduction: str

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction_of(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    """A loss with a weight for each class or entry."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


def _shown_class_dim(self: Any) -> str:
    """Where the classes are, if not where PyTorch has them."""
    return "" if self.class_dim == 1 else f"class_dim={self.class_dim}"


@thin("l1_loss", "input, target")
class L1Loss(_Loss):
    """``|x - y|``."""

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@thin("nll_loss", "input, target")
class NLLLoss(_WeightedLoss):
    """``-x[y]`` of log-probabilities."""

    weight: Tensor | None = None
    size_average: Any = None
    ignore_index: int = -100
    reduce: Any = None
    reduction: str = "mean"
    _: KW_ONLY
    class_dim: int = 1

    extra_repr = _shown_class_dim


@thin("poisson_nll_loss", "log_input, target")
class PoissonNLLLoss(_Loss):
    """``exp(x) - y x``."""

    log_input: bool = True
    full: bool = False
    size_average: Any = None
    eps: float = 1e-8
    reduce: Any = None
    reduction: str = "mean"


@thin("gaussian_nll_loss", "input, target, var")
class GaussianNLLLoss(_Loss):
    """``(log v + (x - y)**2 / v) / 2``."""

    _: KW_ONLY
    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"


@thin("kl_div", "input, target")
class KLDivLoss(_Loss):
    """``y (log y - x)`` of log-probabilities x."""

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"
    log_target: bool = False


@thin("mse_loss", "input, target")
class MSELoss(_Loss):
    """``(x - y)**2``."""

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@thin("binary_cross_entropy", "input, target")
class BCELoss(_WeightedLoss):
    """``-y log x - (1 - y) log(1 - x)``."""

    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@thin("binary_cross_entropy_with_logits", "input, target")
class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of ``sigmoid(x)``."""

    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"
    pos_weight: Tensor | None = None


@thin("hinge_embedding_loss", "input, target")
class HingeEmbeddingLoss(_Loss):
    """x where y is 1, ``max(0, margin - x)`` where it is -1."""

    margin: float = 1.0
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@thin("multilabel_margin_loss", "input, target")
class MultiLabelMarginLoss(_Loss):
    """The margins of several right classes."""

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@thin("smooth_l1_loss", "input, target")
class SmoothL1Loss(_Loss):
    """Quadratic within +-beta, linear outside."""

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"
    beta: float = 1.0


@thin("huber_loss", "input, target")
class HuberLoss(_Loss):
    """Quadratic within +-delta, linear outside."""

    reduction: str = "mean"
    delta: float = 1.0


@thin("soft_margin_loss", "input, target")
class SoftMarginLoss(_Loss):
    """``log(1 + exp(-y x))``."""

    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@thin("cross_entropy", "input, target")
class CrossEntropyLoss(_WeightedLoss):
    """``-log softmax(x)[y]``."""

    weight: Tensor | None = None
    size_average: Any = None
    ignore_index: int = -100
    reduce: Any = None
    reduction: str = "mean"
    label_smoothing: float = 0.0
    _: KW_ONLY
    class_dim: int = 1

    extra_repr = _shown_class_dim


@thin("multilabel_soft_margin_loss", "input, target")
class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross entropy of each class."""

    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@thin("cosine_embedding_loss", "input1, input2, target")
class CosineEmbeddingLoss(_Loss):
    """``1 - cos`` where y is 1, ``max(0, cos - margin)`` where it is -1."""

    margin: float = 0.0
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@thin("margin_ranking_loss", "input1, input2, target")
class MarginRankingLoss(_Loss):
    """``max(0, -y (x1 - x2) + margin)``."""

    margin: float = 0.0
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@thin("multi_margin_loss", "input, target")
class MultiMarginLoss(_WeightedLoss):
    """``max(0, margin - x[y] + x[i])**p``."""

    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"

    def _check_options(self) -> None:
        if self.p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: only p == 1 and p == 2 supported, got {self.p}")
        if self.weight is not None and self.weight.ndim != 1:
            raise AssertionError(f"MultiMarginLoss: weight must be 1-D or None, got {self.weight.ndim}-D")


@thin("triplet_margin_loss", "anchor, positive, negative")
class TripletMarginLoss(_Loss):
    """``max(0, d(a, p) - d(a, n) + margin)``."""

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@thin("ctc_loss", "log_probs, targets, input_lengths=None, target_lengths=None")
class CTCLoss(_Loss):
    """The probability of all alignments of a sequence."""

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False


class NLLLoss2d(NLLLoss):
    """The older name of NLLLoss."""


class TripletMarginWithDistanceLoss(_Loss):
    """``max(0, d(a, p) - d(a, n) + margin)`` with a distance of your own."""

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin}")
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """``max(0, d(a, p) - d(a, n) + margin)``."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How PyTorch's chunked cross entropy is to save memory: hints, which change no value here."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        """Refuse hints that PyTorch refuses."""
        if self.acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(f"LinearCrossEntropyOptions: invalid acc_policy: {self.acc_policy!r}")
        name, colon, factor = (self.chunking_method or "auto").partition(":")
        if (colon and not (name == "aspect_ratio" and factor.isdigit() and int(factor) > 0)) or (
            not colon and name != "auto"
        ):
            raise ValueError(f"LinearCrossEntropyOptions: invalid chunking_method: {self.chunking_method!r}")
        if self.batch_chunk_size is not None and (type(self.batch_chunk_size) is not int or self.batch_chunk_size < 1):
            raise ValueError(
                f"LinearCrossEntropyOptions: batch_chunk_size must be a positive int, got {self.batch_chunk_size!r}"
            )
        if self.acc_dtype is not None and self.acc_dtype not in (dt.float16, dt.bfloat16, dt.float32, dt.float64):
            raise ValueError(f"LinearCrossEntropyOptions: unsupported acc_dtype: {self.acc_dtype}")


class LinearCrossEntropyLoss(_WeightedLoss):
    """The cross entropy of a linear layer's classes: ``-log softmax(x W^T + b)[y]``; `out_features` are further dims of the classes."""

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        super().__init__(weight, reduction=reduction)
        rows = num_classes
        for n in out_features:
            rows *= n
        self.linear = Linear(in_features, rows, bias, device, dtype)
        self.num_classes, self.out_features = num_classes, tuple(out_features)
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The cross entropy."""
        w: Tensor = self.linear.weight
        b = self.linear.bias
        if self.out_features:
            w = w.reshape(self.num_classes, *self.out_features, w.shape[-1])
            b = None if b is None else b.reshape(self.num_classes, *self.out_features)
        return F.linear_cross_entropy(
            input,
            w,
            target,
            linear_bias=b,
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LinearCrossEntropyLoss",
    "LinearCrossEntropyOptions",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]
