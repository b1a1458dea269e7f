"""Multi-head attention, on tensors and on ragged sequences."""

from __future__ import annotations

from typing import Any

from ...core import dtypes as dt
from ...core.tensor import Tensor
from .. import functional as F
from .. import init
from ..module import Module
from .linear import NonDynamicallyQuantizableLinear, blank


class MultiheadAttention(Module):
    """``concat_h(softmax(q_h k_h^T / sqrt(d)) v_h) W_o + b_o`` of heads ``q_h = q W_q``, ``k_h = k W_k``, ``v_h = v W_v``.

    Inputs are [length, batch, features], with `batch_first` [batch, length, features], without a batch [length, features], or
    nested [batch, length of its own, features], for which no masks of padding are needed.
    """

    bias_k: Any
    bias_v: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError(f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}")

        def weight(*shape: int, there: bool = True) -> Any:
            return blank(*shape, dtype=dtype, device=device) if there else None

        e, same = embed_dim, self._qkv_same_embed_dim
        for name, shape in (
            ("q_proj_weight", (e, e)),
            ("k_proj_weight", (e, self.kdim)),
            ("v_proj_weight", (e, self.vdim)),
        ):
            self.register_parameter(name, weight(*shape, there=not same))
        self.register_parameter("in_proj_weight", weight(3 * e, e, there=same))
        self.register_parameter("in_proj_bias", weight(3 * e, there=bias))
        self.out_proj = NonDynamicallyQuantizableLinear(e, e, bias, device, dtype)
        if add_bias_kv:
            self.bias_k, self.bias_v = weight(1, 1, e), weight(1, 1, e)
        else:
            self.bias_k = self.bias_v = None
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Xavier's uniform numbers for the projections, zeros for their biases."""
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for x in (self.bias_k, self.bias_v):
            if x is not None:
                init.xavier_normal_(x)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)  # of a state from before keys had a size of their own
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The attention, and with `need_weights` the weights, those of the heads averaged or not."""
        if query.is_nested or key.is_nested or value.is_nested:
            return self._nested(
                query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
            )
        swap = self.batch_first and query.ndim == 3
        if swap:
            if key is value:
                query, key = (query, query) if query is key else (query, key)
                first = query.transpose(0, 1)
                key = first if key is query else key.transpose(0, 1)
                query, value = first, key
            else:
                query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        y, w = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (y.transpose(0, 1) if swap else y), w

    def _nested(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        padding: Tensor | None,
        need_weights: bool,
        mask: Tensor | None,
        average: bool,
        causal: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """Ragged sequences: every one attends to its own, without padding."""
        if not (query.is_nested and key.is_nested and value.is_nested):
            raise ValueError("MultiheadAttention: query, key and value must all be nested, or none of them")
        if padding is not None:
            raise ValueError("MultiheadAttention: nested sequences have their own lengths; leave key_padding_mask out")
        if mask is not None and not causal:
            raise ValueError("MultiheadAttention: nested sequences take is_causal=True, not an attn_mask")
        if self.bias_k is not None or self.add_zero_attn:
            raise ValueError("MultiheadAttention: nested sequences do not go with add_bias_kv and add_zero_attn")
        if self._qkv_same_embed_dim:
            ws = self.in_proj_weight.chunk(3)
        else:
            ws = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        bs = (None, None, None) if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        if query is key is value and self._qkv_same_embed_dim:
            all3 = F.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        else:
            all3 = tuple(F.linear(x, w, b) for x, w, b in zip((query, key, value), ws, bs, strict=True))
        q, k, v = (x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2) for x in all3)
        p = self.dropout if self.training else 0.0
        if need_weights:
            y, weights = self._with_weights(q, k, v, causal, p)
        else:
            y, weights = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=causal), None
        y = F.linear(y.transpose(1, 2).flatten(-2), self.out_proj.weight, self.out_proj.bias)
        return y, weights.mean(1) if average and weights is not None else weights

    def _with_weights(self, q: Tensor, k: Tensor, v: Tensor, causal: bool, p: float) -> tuple[Tensor, Tensor]:
        from ...ops.activation import attention

        w = attention.weights(attention.scores(q, k, self.head_dim**-0.5, None, causal), causal)
        w = F.dropout(w, p) if p else w
        return w @ v, w

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """The two masks as one, [batch, heads, length, length], and which kinds there were: 0 of pairs, 1 of padding, 2 both."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length = query.shape[:2]
        merged = (
            attn_mask.view(batch, -1, length, length) if attn_mask.ndim == 3 else attn_mask.view(1, 1, length, length)
        )
        merged = merged.expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            pads = key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
            merged = merged | pads if merged.dtype is dt.bool_ else merged + pads
        return merged, 2


__all__ = ["MultiheadAttention"]
