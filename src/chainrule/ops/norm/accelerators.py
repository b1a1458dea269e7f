"""The accelerators' entry points of batch norm: the same mathematics, their signatures and reserve outputs, on any device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.registry import public
from ...core.samples import S, sample
from ...core.tensor import Tensor
from .batch import native_batch_norm, native_batch_norm_backward


@public("miopen_batch_norm", out=False)
def miopen_batch_norm(
    input: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    exponential_average_factor: float,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch norm, the mean and ``1 / sqrt(var + eps)`` (empty in evaluation), as :func:`native_batch_norm` has them."""
    return native_batch_norm(
        input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon
    )


@public("cudnn_batch_norm", out=False)
def cudnn_batch_norm(
    input: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    exponential_average_factor: float,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Batch norm, the mean, ``1 / sqrt(var + eps)``, and bytes that the backward function is handed: none are needed here."""
    results = miopen_batch_norm(
        input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon
    )
    return (*results, Tensor(np.zeros(0, np.uint8)))


@public("miopen_batch_norm_backward", out=False)
def miopen_batch_norm_backward(
    input: Tensor,
    grad_output: Tensor,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    save_mean: Any,
    save_var: Any,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of input, weight and bias of batch norm in training; `save_var` is ``1 / sqrt(var + eps)``."""
    return native_batch_norm_backward(
        grad_output, input, weight, running_mean, running_var, save_mean, save_var, True, epsilon, (True, True, True)
    )


@public("cudnn_batch_norm_backward", out=False)
def cudnn_batch_norm_backward(
    input: Tensor,
    grad_output: Tensor,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    save_mean: Any,
    save_var: Any,
    epsilon: float,
    reserveSpace: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of input, weight and bias of batch norm in training; `reserveSpace` is what the forward function returned."""
    return miopen_batch_norm_backward(
        input, grad_output, weight, running_mean, running_var, save_mean, save_var, epsilon
    )


for _n in ("cudnn_batch_norm", "miopen_batch_norm"):
    sample(_n, S(3, 2, 2), S(2), S(2), None, None, True, 0.1, 1e-3, cx=False)
sample("miopen_batch_norm_backward", S(3, 2), S(3, 2), S(2), None, None, S(2), S(2), 1e-3, cx=False)
sample("cudnn_batch_norm_backward", S(3, 2), S(3, 2), S(2), None, None, S(2), S(2), 1e-3, None, cx=False)
