"""Gradients of convolutions as functions: the transposes of a convolution as a linear map of its input and of its weight."""

from __future__ import annotations

from typing import Any

from ..core.registry import PUBLIC
from ..core.tensor import Tensor
from ..transforms.reverse import vjp


def _pull(rank: int, at: Any, of: Any, g: Tensor, options: tuple[Any, ...]) -> Tensor:
    """The transpose of ``x -> conv(of(x))`` at zeros, where a linear map is what it is anywhere."""
    conv = PUBLIC[f"nn.functional.conv{rank}d"]
    stride, padding, dilation, groups = options
    zeros = PUBLIC["zeros"](tuple(at), dtype=g.dtype)
    return vjp(lambda x: conv(*of(x), None, stride, padding, dilation, groups), zeros)[1](g)[0]


def conv1d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d with respect to its input."""
    return _pull(1, input_size, lambda x: (x, weight), grad_output, (stride, padding, dilation, groups))


def conv1d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d with respect to its weight."""
    return _pull(1, weight_size, lambda w: (input, w), grad_output, (stride, padding, dilation, groups))


def conv2d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d with respect to its input."""
    return _pull(2, input_size, lambda x: (x, weight), grad_output, (stride, padding, dilation, groups))


def conv2d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d with respect to its weight."""
    return _pull(2, weight_size, lambda w: (input, w), grad_output, (stride, padding, dilation, groups))


def conv3d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d with respect to its input."""
    return _pull(3, input_size, lambda x: (x, weight), grad_output, (stride, padding, dilation, groups))


def conv3d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d with respect to its weight."""
    return _pull(3, weight_size, lambda w: (input, w), grad_output, (stride, padding, dilation, groups))
