"""Multi-head attention: projections, heads, masks, and the attention itself."""

from __future__ import annotations

import math
from typing import Any

from ...core import dtypes as dt
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import zeros
from ...core.tensor import Tensor
from ..elementwise.select import where
from ..linalg.matmul import linear, matmul, rounded_once
from ..reduce.reductions import softmax
from ..shape.slices import cat
from .attention import weights as safe_weights


def _project(query: Tensor, key: Tensor, value: Tensor, w: Any, b: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values through the three blocks of rows of one weight."""
    ws = w if isinstance(w, tuple) else w.chunk(3)
    bs = (None, None, None) if b is None else b.chunk(3)
    q, k, v = (linear(x, wi, bi) for x, wi, bi in zip((query, key, value), ws, bs, strict=True))
    return q, k, v


def _additive(mask: Any, name: str, d: dt.DType) -> Any:
    """A mask as numbers to add to the scores: -inf where a boolean mask holds."""
    if mask is None:
        return None
    if mask.dtype is dt.bool_:
        return where(mask, float("-inf"), zeros(tuple(mask.shape), d))
    if mask.dtype.category != dt.FLOAT:
        raise RuntimeError(
            f"multi_head_attention_forward: only bool and floating types of {name} are supported, got {mask.dtype}"
        )
    return mask


def _check(query: Tensor, key: Tensor, value: Tensor, embed: int, heads: int, attn_mask: Any, padding: Any) -> bool:
    """Whether the input is batched, after PyTorch's checks."""
    n, what = query.ndim, "multi_head_attention_forward"
    if n not in (2, 3):
        raise AssertionError(
            f"{what}: query should be unbatched 2D or batched 3D tensor but received {n}-D query tensor"
        )
    if key.ndim != n or value.ndim != n:
        kind = "batched (3-D)" if n == 3 else "unbatched (2-D)"
        raise AssertionError(
            f"{what}: For {kind} `query`, expected `key` and `value` to be {n}-D but found {key.ndim}-D and {value.ndim}-D tensors respectively"
        )
    if padding is not None and padding.ndim != n - 1:
        raise AssertionError(
            f"{what}: expected `key_padding_mask` to be `None` or {n - 1}-D but found {padding.ndim}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.ndim not in (2, 3):
            raise AssertionError(
                f"{what}: expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.ndim}-D tensor instead"
            )
        shape = (heads, query.shape[0], key.shape[0])
        if n == 2 and attn_mask.ndim == 3 and tuple(attn_mask.shape) != shape:
            raise AssertionError(f"{what}: Expected `attn_mask` shape to be {shape} but got {tuple(attn_mask.shape)}")
    if query.shape[-1] != embed:
        raise AssertionError(f"{what}: was expecting embedding dimension of {embed}, but got {query.shape[-1]}")
    if embed % heads:
        raise AssertionError(f"{what}: embed_dim {embed} not divisible by num_heads {heads}")
    if key.shape[0] != value.shape[0]:
        raise AssertionError(
            f"{what}: key and value must have the same length, got {list(key.shape)} and {list(value.shape)}"
        )
    return n == 3


def _check_masks(mask: Any, padding: Any, sizes: tuple[int, int, int, int]) -> None:
    batch, heads, length, source = sizes
    if mask is not None:
        shape = (length, source) if mask.ndim == 2 else (batch * heads, length, source)
        if tuple(mask.shape) != shape:
            raise RuntimeError(
                f"multi_head_attention_forward: The shape of the {mask.ndim}D attn_mask is {tuple(mask.shape)}, but should be {shape}."
            )
    if padding is not None and tuple(padding.shape) != (batch, source):
        raise AssertionError(
            f"multi_head_attention_forward: expecting key_padding_mask shape of {(batch, source)}, but got {tuple(padding.shape)}"
        )


@public("nn.functional.multi_head_attention_forward", out=False)
@rounded_once
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Any, in_proj_bias: Any,
    bias_k: Any, bias_v: Any, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor, out_proj_bias: Any,
    training: bool = True, key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None, v_proj_weight: Any = None,
    static_k: Any = None, static_v: Any = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """``concat_h(softmax(q_h k_h^T / sqrt(d) + mask) v_h) W_o + b_o`` and the attention weights; inputs are [length, batch, embedding]."""
    batched = _check(query, key, value, embed_dim_to_check, num_heads, attn_mask, key_padding_mask)
    if is_causal and attn_mask is None:
        raise RuntimeError("multi_head_attention_forward: need attn_mask if specifying the is_causal hint")
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, embed = query.shape
    w = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight
    q, k, v = _project(query, key, value, w, in_proj_bias)
    mask, padding = _additive(attn_mask, "attn_mask", q.dtype), _additive(key_padding_mask, "key_padding_mask", q.dtype)
    extra = 0
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("multi_head_attention_forward: bias cannot be added to static key or value.")
        k, v, extra = cat([k, bias_k.expand(1, batch, embed)]), cat([v, bias_v.expand(1, batch, embed)]), 1
    d = embed // num_heads

    def heads(x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], batch * num_heads, d).transpose(0, 1)

    q = heads(q)
    k = heads(k) if static_k is None else static_k
    v = heads(v) if static_v is None else static_v
    if add_zero_attn:
        blank = zeros((batch * num_heads, 1, d), k.dtype)
        k, v, extra = cat([k, blank], 1), cat([v, blank], 1), extra + 1
    source = k.shape[1]
    _check_masks(attn_mask, key_padding_mask, (batch, num_heads, length, source - extra))
    scores = matmul(q * (1.0 / math.sqrt(d)), k.mT)
    if mask is not None:
        scores = scores + _wider(mask, extra)
    if padding is not None:
        p = _wider(padding, extra).reshape(batch, 1, 1, source)
        scores = (scores.reshape(batch, num_heads, length, source) + p).reshape(batch * num_heads, length, source)
    # Where only the values are wanted, a query that may see no key gets 0, as in scaled_dot_product_attention.
    weights = softmax(scores, -1) if need_weights else safe_weights(scores, mask is not None or padding is not None)
    if training and dropout_p > 0:
        from ..random.dropout import native_dropout

        weights = native_dropout(weights, dropout_p, True)[0]
    y = matmul(weights, v).transpose(0, 1).reshape(length * batch, embed)
    y = linear(y, out_proj_weight, out_proj_bias).reshape(length, batch, out_proj_weight.shape[0])
    shown: Tensor | None = None
    if need_weights:
        shown = weights.reshape(batch, num_heads, length, source)
        shown = shown.mean(1) if average_attn_weights else shown
    if not batched:
        y = y.squeeze(1)
        shown = None if shown is None else shown.squeeze(0)
    return y, shown


def _wider(mask: Tensor, extra: int) -> Tensor:
    """A mask with columns of zeros for the keys that were added."""
    return mask if not extra else cat([mask, zeros((*mask.shape[:-1], extra), mask.dtype)], -1)


# -- samples ----------------------------------------------------------------------------------------------------------

sample(
    "multi_head_attention_forward",
    S(3, 2, 4), S(5, 2, 4), S(5, 2, 4), S(12, 4), S(12), S(4, 4), S(4),
    f=lambda q, k, v, w, b, wo, bo: multi_head_attention_forward(q, k, v, 4, 2, w, b, None, None, False, 0.0, wo, bo),
    cx=False,
)  # fmt: skip
