"""A layer and the batch norm behind it as one layer."""

from __future__ import annotations

import copy
from typing import Any

from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from ..module import Module
from ..parameter import Parameter


def _fused(
    w: Tensor, b: Any, mean: Tensor, var: Tensor, eps: float, bn_w: Any, bn_b: Any, shape: tuple[int, ...]
) -> Any:
    """``w s`` and ``(b - mean) s + bn_b`` with ``s = bn_w / sqrt(var + eps)`` along the dim of the outputs."""
    b = PUBLIC["zeros_like"](mean) if b is None else b
    bn_w = PUBLIC["ones_like"](mean) if bn_w is None else bn_w
    bn_b = PUBLIC["zeros_like"](mean) if bn_b is None else bn_b
    s = bn_w * (var + eps).rsqrt()
    new_w = (w * s.reshape(*shape)).to(w.dtype)
    new_b = ((b - mean) * s + bn_b).to(b.dtype)
    return Parameter(new_w.detach(), w.requires_grad), Parameter(new_b.detach(), b.requires_grad)


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution (or a transposed one) with the batch norm behind it."""
    shape = (1, -1) if transpose else (-1, 1)
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape + (1,) * (conv_w.ndim - 2))


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer with the batch norm behind it."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, (-1, 1))


def _check(layer: Module, bn: Module) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Fusion needs running statistics: the batch norm has track_running_stats=False")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that computes what `conv` and then `bn` compute in evaluation."""
    _check(conv, bn)
    new = copy.deepcopy(conv)
    new.weight, new.bias = fuse_conv_bn_weights(
        new.weight, new.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return new


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer that computes what `linear` and then `bn` compute in evaluation."""
    _check(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            f"To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got {linear.out_features} and {bn.num_features}"
        )
    new = copy.deepcopy(linear)
    new.weight, new.bias = fuse_linear_bn_weights(
        new.weight, new.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return new
