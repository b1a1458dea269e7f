"""Similarities of vectors: cosine, pairwise distance, normalisation to unit length, bilinear forms."""

from __future__ import annotations

import math

from ...core import dtypes as dt
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import broadcast_shapes, wrap_dim
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.compare import clamp_min_p
from .matmul import rounded_once
from .norms import vector_norm


@public("nn.functional.normalize")
@straight
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """``input / max(|input|_p, eps)`` along `dim`."""
    d = wrap_dim(dim, input.ndim)
    if input.ndim == 0:
        return normalize(input.reshape(1), p, 0, eps).reshape(())
    return input / clamp_min_p.bind(vector_norm(input, p, d, True), eps)


def _common(name: str, a: Tensor, b: Tensor, what: tuple[str, str]) -> tuple[Tensor, Tensor]:
    """Both tensors in their common floating type, after checking that they broadcast."""
    broadcast_shapes(a.shape, b.shape, what=f"{name} of {what[0]} and {what[1]}")
    d = dt.promote_types(a.dtype, b.dtype)
    if d.category < dt.FLOAT:
        raise RuntimeError(
            f"{name}: expected common dtype to be floating point, yet common dtype is {d}; convert {what[0]} or {what[1]}"
        )
    return a.to(d), b.to(d)


@public("cosine_similarity nn.functional.cosine_similarity", out=False)
@straight
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """``<x1 / max(|x1|, eps), x2 / max(|x2|, eps)>`` along `dim`."""
    x1, x2 = _common("cosine_similarity", x1, x2, ("x1", "x2"))
    n = max(x1.ndim, x2.ndim)
    d = wrap_dim(dim, n)
    if n == 0:
        return cosine_similarity(x1.reshape(1), x2.reshape(1), 0, eps).reshape(())
    shape = broadcast_shapes(x1.shape, x2.shape)
    # Both must have the dim itself, not one of size 1 that stands for many.
    x1, x2 = (x if x.ndim >= -d and x.shape[d] == shape[d] else x.expand(*shape) for x in (x1, x2))
    u1, u2 = (x / clamp_min_p.bind(vector_norm(x, 2, d, True), eps) for x in (x1, x2))
    return (u1 * u2).sum(d)


@public("pairwise_distance nn.functional.pairwise_distance", out=False)
@straight
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """``|x1 - x2 + eps|_p`` along the last dim of the broadcast result."""
    broadcast_shapes(x1.shape, x2.shape, what="pairwise_distance of x1 and x2")
    d = x1 - x2 + eps
    return vector_norm(d, p, -1, keepdim) if d.ndim else vector_norm(d.reshape(1), p, 0)


@public("bilinear nn.functional.bilinear", out=False)
@rounded_once
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``y[..., k] = sum_ij input1[..., i] weight[k, i, j] input2[..., j] + bias[k]``."""
    if weight.ndim != 3:
        raise RuntimeError(f"bilinear: weight must be [out, in1, in2], got {list(weight.shape)}")
    if input1.ndim != input2.ndim:
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got input1 {list(input1.shape)} and input2 {list(input2.shape)}"
        )
    if input1.ndim == 0 or tuple(input1.shape[:-1]) != tuple(input2.shape[:-1]):
        raise RuntimeError(
            f"bilinear(): input batch dimensions do not match: got input1 {list(input1.shape)} and input2 {list(input2.shape)}"
        )
    out, m, n = weight.shape
    if input1.shape[-1] != m or input2.shape[-1] != n:
        raise RuntimeError(
            f"bilinear(): the last dims of input1 {list(input1.shape)} and input2 {list(input2.shape)} must be the last two of weight "
            f"{list(weight.shape)}"
        )
    if bias is not None and tuple(bias.shape) != (out,):
        raise RuntimeError(
            f"bilinear(): bias size must be [{out}] as weight {list(weight.shape)} says, got {list(bias.shape)}"
        )
    lead = tuple(input1.shape[:-1])
    rows = math.prod(lead)
    # A product of matrices over input1 for each output, then one sum of products with input2. Were it one product for
    # all outputs, input1's gradient would be one of out * n terms: three times the rounding of float32.
    half = input1.reshape(rows, m) @ weight
    y = (half * input2.reshape(rows, n)).sum(-1).mT.reshape(*lead, out)
    return y if bias is None else y + bias


# -- samples ------------------------------------------------------------------------------------------------------------

sample("nn.functional.normalize", S(2, 3))
sample("nn.functional.normalize", S(3), 3.0, 0)
sample("nn.functional.normalize", S(2, 3), math.inf, 0, cx=False)
sample("cosine_similarity", S(2, 3), S(2, 3), cx=False)
sample("cosine_similarity", S(2, 3), S(3), -1, cx=False)
sample("cosine_similarity", S(2, 1), S(2, 3), 1, cx=False)
sample("cosine_similarity", S(), S(), 0, cx=False)
for _p in (0.5, 1.0, 1.5, 2.0, 3.0, math.inf):
    sample("pairwise_distance", S(2, 3), S(3), _p, cx=False)
sample("pairwise_distance", S(2, 3), S(2, 3), keepdim=True, cx=False)
sample("bilinear", S(2, 3), S(2, 4), S(5, 3, 4), S(5))
sample("bilinear", S(2, 2, 3), S(2, 2, 1), S(2, 3, 1))
sample("nn.functional.normalize", Given([[0.0, 3.0, 4.0], [1.0, 0.0, 0.0]], grad=True))
