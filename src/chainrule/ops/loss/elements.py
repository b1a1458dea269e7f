"""Losses that compare input and target element by element, and what all losses share: reductions and weights."""

from __future__ import annotations

import builtins
import math
import sys
import warnings
from typing import Any

import numpy as np

from ...core.declare import op, pointwise
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import broadcast_shapes
from ...core.straight import straight
from ...core.tensor import Tensor
from ..activation.smooth import log_sigmoid_p, sigmoid_slope
from ..elementwise.compare import clamp_min_p
from ..elementwise.elementary import exp, km, log, log1p
from ..elementwise.formulas import compiled, smooth
from ..elementwise.numbers import varies
from ..elementwise.parts import abs
from ..elementwise.power import square_p
from ..elementwise.publish import zeros_like
from ..elementwise.select import where
from ..linalg.matmul import rounded_once
from ..shape.create import full_like

REDUCTIONS = ("none", "mean", "sum")


def _warn(text: str) -> None:
    """A warning at the line that called the package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith(f"{__name__.partition('.')[0]}."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def reduction_of(reduction: Any, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """``"none"``, ``"mean"`` or ``"sum"`` from PyTorch's arguments, old ones and ATen's numbers 0, 1, 2 included."""
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        _warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    if isinstance(reduction, int) and 0 <= reduction <= 2:
        reduction = REDUCTIONS[reduction]
    if reduction == "elementwise_mean":
        reduction = "mean"
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction; write 'none', 'mean' or 'sum'")
    return str(reduction)


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The loss as it is, its mean, or its sum."""
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def difference(name: str, input: Tensor, target: Tensor) -> Tensor:
    """``input - target``, with a warning where they broadcast and an error where they cannot."""
    if tuple(input.shape) != tuple(target.shape):
        broadcast_shapes(input.shape, target.shape, what=f"{name} of input and target")
        _warn(
            f"{name}: target has shape {list(target.shape)}, input {list(input.shape)}; they broadcast, which is rarely "
            f"meant. Please ensure they have the same size."
        )
    return input - target


def weighted(loss: Tensor, weight: Tensor | None, input: Tensor, reduction: str, by_weight: bool = True) -> Tensor:
    """A loss times its weights, reduced; the mean is over the sum of the weights, or over the elements."""
    if weight is None:
        return reduced(loss, reduction)
    if tuple(weight.shape) != tuple(input.shape):
        raise ValueError(f"weight and input must have the same size, got {list(weight.shape)} and {list(input.shape)}")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" and by_weight else reduced(loss, reduction)


# -- powers of the difference -------------------------------------------------------------------------------------------


@public("nn.functional.mse_loss", out=False)
@straight
@rounded_once
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``(input - target)**2``."""
    r = reduction_of(reduction, size_average, reduce)
    d = difference("mse_loss", input, target)
    return weighted(square_p.bind(d), weight, input, r)


@public("nn.functional.l1_loss", out=False)
@straight
@rounded_once
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``|input - target|``."""
    r = reduction_of(reduction, size_average, reduce)
    return weighted(abs.bind(difference("l1_loss", input, target)), weight, input, r)


huber_p = smooth(
    "huber",
    (
        lambda d, *, delta: np.where(np.abs(d) > delta, (np.abs(d) - 0.5 * delta) * delta, d * d * 0.5),
        lambda k, d, *, delta: k.select(builtins.abs(d) > delta, (builtins.abs(d) - 0.5 * delta) * delta, d * d * 0.5),
    ),
    (
        lambda d, *, delta: np.minimum(np.maximum(d, d.dtype.type(-delta)), d.dtype.type(delta)),
        lambda k, d, *, delta: k.select(d < -delta, -delta, k.select(d > delta, delta, d)),
    ),
    lambda d, *, delta: where(abs.bind(d) > delta, 0, zeros_like(d) + 1),
    static=True,
    cost=1,
    usual=({"delta": 1.0},),
)


@public("nn.functional.smooth_l1_loss", out=False)
@straight
@rounded_once
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """``d**2 / (2 beta)`` where ``|d| < beta`` for ``d = input - target``, else ``|d| - beta / 2``."""
    r = reduction_of(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta, got beta={beta}")
    d = difference("smooth_l1_loss", input, target)
    if beta == 0:
        return reduced(abs.bind(d), r)
    loss = reduced(_huber(d, beta), r)  # of many numbers, one is divided
    return loss if type(beta) is float and beta == 1 else loss / beta


def _huber(d: Tensor, delta: Any) -> Tensor:
    """``d**2 / 2`` where ``|d| <= delta``, else ``delta * (|d| - delta / 2)``."""
    if varies(delta):
        a = abs.bind(d)
        return where(a <= delta, d * d / 2, delta * (a - delta / 2))
    return huber_p.bind(d, delta=float(delta))


@public("nn.functional.huber_loss", out=False)
@straight
@rounded_once
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """``d**2 / 2`` where ``|d| <= delta`` for ``d = input - target``, else ``delta * (|d| - delta / 2)``."""
    r = reduction_of(reduction)
    if delta <= 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta, got delta={delta}")
    d = difference("huber_loss", input, target)
    return weighted(_huber(d, delta), weight, input, r, by_weight=False)


# -- probabilities --------------------------------------------------------------------------------------------------------

LEAST = 1e-12  # PyTorch's bound of the denominator x (1 - x)


def _log_at_least(x: Any, log_of: Any) -> Any:
    return np.maximum(log_of(x), x.dtype.type(-100))


bce_p = pointwise(
    "binary_cross_entropy",
    lambda x, t: (t - 1) * _log_at_least(-x, np.log1p) - t * _log_at_least(x, np.log),
    lambda t, y, x, z: t * ((x - z) / clamp_min_p.bind((1 - x) * x, LEAST)),
    lambda t, y, x, z: t * (clamp_min_p.bind(log1p.bind(-x), -100.0) - clamp_min_p.bind(log.bind(x), -100.0)),
)


@op("check_unit_interval", differentiable=False)
def check_unit_interval_p(x: Any) -> Any:
    """x, after checking that it lies in [0, 1]."""
    if x.size and not (x.min() >= 0 and x.max() <= 1):
        raise RuntimeError(
            "binary_cross_entropy: all elements of input should be between 0 and 1; for logits use ..._with_logits"
        )
    return x


@public("nn.functional.binary_cross_entropy", out=False)
@straight
@rounded_once
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-weight * (target * log(input) + (1 - target) * log(1 - input))``, with logarithms of at least -100."""
    r = reduction_of(reduction, size_average, reduce)
    if tuple(target.shape) != tuple(input.shape):
        raise ValueError(
            f"binary_cross_entropy: Using a target size ({target.shape}) that is different to the input size ({input.shape}) is refused. "
            f"Please ensure they have the same size."
        )
    check_unit_interval_p.bind(input.detach())
    loss = bce_p.bind(input, target)
    return reduced(loss if weight is None else loss * weight, r)


def _bce_logits(x: Any, z: Any) -> Any:
    # All terms are positive for targets in [0, 1]: nothing cancels.
    return np.where(x >= 0, (1 - z) * x, -z * x) + np.log1p(np.exp(-np.abs(x)))


def _bce_logits_kernel(k: Any, x: Any, z: Any) -> Any:
    return k.select(x >= 0.0, (1.0 - z) * x, -z * x) + km().log1p(k, km().exp(k, -builtins.abs(x)))


def _bce_logits_pull(g: Any, x: Any, z: Any) -> Any:
    e = np.exp(-np.abs(x))
    return g * (np.where(x >= 0, (1 - z) - z * e, (1 - z) * e - z) / (1 + e))


def _bce_logits_pull_kernel(k: Any, g: Any, x: Any, z: Any) -> Any:
    e = km().exp(k, -builtins.abs(x))
    return g * (k.select(x >= 0.0, (1.0 - z) - z * e, (1.0 - z) * e - z) / (e + 1.0))


bce_logits_p = pointwise(
    "bce_logits",
    compiled("bce_logits", _bce_logits, _bce_logits_kernel, least=0),
    lambda t, y, x, z: bce_logits_pull_p.bind(t, x, z),
    lambda t, y, x, z: -t * x,
)
bce_logits_pull_p = pointwise(
    "bce_logits_pull",
    compiled("bce_logits_pull", _bce_logits_pull, _bce_logits_pull_kernel, least=0),
    lambda s, y, g, x, z: bce_logits_pull_p.bind(s, x, z),
    lambda s, y, g, x, z: s * (g * sigmoid_slope(x)),
    lambda s, y, g, x, z: -s * g,
)


@public("nn.functional.binary_cross_entropy_with_logits", out=False)
@straight
@rounded_once
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """``-weight * (pos_weight * target * log(s) + (1 - target) * log(1 - s))`` with ``s = sigmoid(input)``."""
    r = reduction_of(reduction, size_average, reduce)
    if tuple(target.shape) != tuple(input.shape):
        raise ValueError(
            f"binary_cross_entropy_with_logits: target size ({list(target.shape)}) must be the same as input size ({list(input.shape)})"
        )
    if pos_weight is None:
        loss = bce_logits_p.bind(input, target)
    else:
        # Both logarithms on their own side of 0: neither the loss nor any derivative cancels in a tail.
        loss = (target - 1) * log_sigmoid_p.bind(-input) - target * log_sigmoid_p.bind(input) * pos_weight
    return reduced(loss if weight is None else loss * weight, r)


@public("nn.functional.soft_margin_loss", out=False)
@straight
@rounded_once
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """``log(1 + e**(-target * input))``, without overflow."""
    r = reduction_of(reduction, size_average, reduce)
    broadcast_shapes(input.shape, target.shape, what="soft_margin_loss of input and target")
    return reduced(-log_sigmoid_p.bind(target * input), r)


def xlogx(x: Tensor) -> Tensor:
    """``x * log(x)``, and 0 with derivative 0 at 0."""
    zero = x == 0
    return where(zero, 0, x * log.bind(where(zero, 1, x)))


@public("nn.functional.kl_div", out=False)
@straight
@rounded_once
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """``target * (log(target) - input)`` for log-probabilities `input`; "batchmean" divides the sum by the first dim."""
    batchmean = reduction == "batchmean" and size_average is None and reduce is None
    r = "sum" if batchmean else reduction_of(reduction, size_average, reduce)
    broadcast_shapes(input.shape, target.shape, what="kl_div of input and target")
    loss = reduced(exp.bind(target) * (target - input) if log_target else xlogx(target) - target * input, r)
    return loss / input.shape[0] if batchmean and input.ndim else loss


@public("nn.functional.poisson_nll_loss", out=False)
@straight
@rounded_once
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``e**input - target * input``, or without ``log_input`` ``input - target * log(input + eps)``.

    ``full`` adds Stirling's approximation of ``log(target!)`` where the target is above 1.
    """
    r = reduction_of(reduction, size_average, reduce)
    broadcast_shapes(input.shape, target.shape, what="poisson_nll_loss of input and target")
    loss = exp.bind(input) - target * input if log_input else input - target * log.bind(input + eps)
    if full:
        many = target > 1
        z = where(many, target, 1)
        loss = loss + where(many, z * log.bind(z) - z + log.bind(z * (2 * math.pi)) * 0.5, 0)
    return reduced(loss, r)


@op("check_nonnegative", differentiable=False)
def check_nonnegative_p(x: Any, *, name: str, what: str) -> Any:
    """x, after checking that no entry is negative."""
    if x.size and x.min() < 0:
        raise ValueError(f"{name}: {what} has negative entry/entries, the least is {x.min()}")
    return x


@public("nn.functional.gaussian_nll_loss", out=False)
@straight
@rounded_once
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """``(log(v) + (input - target)**2 / v) / 2`` with ``v = max(var, eps)``, plus ``log(2 pi) / 2`` if ``full``."""
    if isinstance(var, float | int):
        if var < 0:
            raise ValueError(f"gaussian_nll_loss: var has negative entry/entries, got {var}")
        var = full_like(input, var)
    check_nonnegative_p.bind(var.detach(), name="gaussian_nll_loss", what="var")
    have, want = tuple(var.shape), tuple(input.shape)
    if have != want:
        if have == want[:-1]:
            var = var.unsqueeze(-1)
        elif len(have) != len(want) or sum(v for v, n in zip(have, want, strict=True) if v != n) != 1:
            raise ValueError(
                f"gaussian_nll_loss: var is of incorrect size: {list(have)} for input {list(want)}; give it input's size, or "
                f"without the last dim, or with one dim of size 1"
            )
    if reduction not in REDUCTIONS:
        raise ValueError(f"gaussian_nll_loss: reduction {reduction} is not valid; write 'none', 'mean' or 'sum'")
    broadcast_shapes(input.shape, target.shape, what="gaussian_nll_loss of input and target")
    v = clamp_min_p.bind(var, eps)
    loss = (log.bind(v) + (input - target) ** 2 / v) * 0.5
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


# -- samples ------------------------------------------------------------------------------------------------------------

for _n in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "poisson_nll_loss"):
    for _r in REDUCTIONS:
        sample(f"nn.functional.{_n}", S(2, 3), S(2, 3), reduction=_r, cx=_n == "l1_loss")
    sample(f"nn.functional.{_n}", S(), S(), cx=False)
    sample(f"nn.functional.{_n}", S(0, 3), S(0, 3), reduction="sum", cx=False)
for _n in ("mse_loss", "l1_loss", "huber_loss"):
    sample(f"nn.functional.{_n}", S(2, 3), S(2, 3), weight=S(2, 3, low=0.5), cx=False)
sample("nn.functional.smooth_l1_loss", S(4), S(4), beta=0.5, cx=False)
sample("nn.functional.huber_loss", S(4), S(4), delta=0.5, cx=False)
sample("nn.functional.binary_cross_entropy", S(2, 3, low=0.1, high=0.9), S(2, 3, low=0.0, high=1.0), S(3), cx=False)
sample(
    "nn.functional.binary_cross_entropy", S(3, low=0.1, high=0.9), S(3, low=0.0, high=1.0), reduction="none", cx=False
)
for _r in REDUCTIONS:
    sample(
        "nn.functional.binary_cross_entropy_with_logits",
        S(2, 3),
        S(2, 3),
        S(2, 3),
        pos_weight=S(3),
        reduction=_r,
        cx=False,
    )
sample("nn.functional.binary_cross_entropy_with_logits", S(2, 3), S(2, 3, low=0.0, high=1.0), S(3), cx=False)
sample("nn.functional.binary_cross_entropy_with_logits", Given([-800.0, -40.0, 40.0, 800.0], grad=True), S(4), cx=False)
sample(
    "nn.functional.soft_margin_loss",
    Given([-800.0, -40.0, 40.0, 800.0], grad=True),
    Given([1.0, -1.0, 1.0, 1.0]),
    cx=False,
)
sample("nn.functional.kl_div", S(2, 3), S(2, 3, low=0.1), reduction="batchmean", cx=False)
sample("nn.functional.kl_div", S(2, 3), S(2, 3), reduction="none", log_target=True, cx=False)
sample("nn.functional.kl_div", S(3), Given([0.0, 0.25, 0.75]), cx=False)
sample("nn.functional.poisson_nll_loss", S(4, low=0.5), S(4, low=1.5, high=4.0), log_input=False, full=True, cx=False)
sample("nn.functional.gaussian_nll_loss", S(2, 3), S(2, 3), S(2, low=0.5), full=True, cx=False)
sample("nn.functional.gaussian_nll_loss", S(2, 3), S(3), S(2, 1, low=0.5), reduction="none", cx=False)
