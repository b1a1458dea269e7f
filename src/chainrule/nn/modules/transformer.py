"""The transformer of "Attention is all you need": its layers, encoder and decoder."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.dispatch import active_vmaps, grad_enabled
from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from .. import functional as F
from .. import init
from ..module import Module
from .activation import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]
_RELU = PUBLIC["nn.functional.relu"]


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """-inf above the diagonal, else 0: every place sees those up to its own."""
    full = PUBLIC["full"]((sz, sz), float("-inf"), dtype=dt.get_default_dtype() if dtype is None else dtype)
    return full.triu(1)


def _get_seq_len(src: Tensor, batch_first: bool) -> int | None:
    if src.is_nested:
        return None
    n = src.ndim
    return src.shape[0] if n == 2 else src.shape[1 if batch_first else 0]


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Whether a mask is the causal one, where nobody says."""
    if is_causal is not None:
        return is_causal
    if mask is None or active_vmaps():
        return False
    causal = _generate_square_subsequent_mask(
        mask.shape[-2] if size is None else size, dtype=mask.dtype if mask.dtype.category == dt.FLOAT else None
    )
    if mask.dtype is dt.bool_:
        causal = causal != 0
    return tuple(mask.shape) == tuple(causal.shape) and bool((mask == causal).all())


def _get_clones(module: Module, n: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


def _as_numbers(mask: Tensor | None, name: str, d: Any) -> Tensor | None:
    """A mask as numbers to add: -inf where a boolean mask holds."""
    if mask is None or mask.dtype.category == dt.FLOAT:
        return mask
    if mask.dtype is not dt.bool_:
        raise AssertionError(f"only bool and floating types of {name} are supported, got {mask.dtype}")
    return PUBLIC["zeros"](mask.shape, dtype=d).masked_fill(mask, float("-inf"))


class _Layer(Module):
    """The two linear maps of a layer and its activation."""

    activation: Any

    def _set(
        self, d_model: int, dim_feedforward: int, dropout: float, bias: bool, activation: Activation, **kw: Any
    ) -> None:
        self.linear1 = Linear(d_model, dim_feedforward, bias, **kw)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **kw)
        if activation is _RELU:
            activation = "relu"  # the function that has the name now: states refer to it by that
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("activation", F.relu)

    def _feed(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and two linear maps, each added to its input and normalised (with `norm_first`, normalised before)."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = _RELU,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        kw = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **kw)
        self._set(d_model, dim_feedforward, dropout, bias, activation, **kw)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **kw)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **kw)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The layer of a sequence, which may be nested."""
        padding = _as_numbers(src_key_padding_mask, "src_key_padding_mask", src.dtype)
        mask = _as_numbers(src_mask, "src_mask", src.dtype)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal=is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal=is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        y = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False, is_causal=is_causal
        )
        return self.dropout1(y[0])

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._feed(x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output and two linear maps, each added to its input and normalised."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = _RELU,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        kw = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **kw)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **kw)
        self._set(d_model, dim_feedforward, dropout, bias, activation, **kw)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **kw)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **kw)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, **kw)
        self.dropout1, self.dropout2, self.dropout3 = Dropout(dropout), Dropout(dropout), Dropout(dropout)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The layer of a sequence and the encoder's output, which may be nested."""
        x = tgt
        own = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        other = memory_mask, memory_key_padding_mask, memory_is_causal
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        y = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        return self.dropout1(y[0])

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        y = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        return self.dropout2(y[0])

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._feed(x))


class TransformerEncoder(Module):
    """Layers one after the other; copies of one."""

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        a: Any = getattr(encoder_layer, "self_attn", None)
        plain = type(encoder_layer) is TransformerEncoderLayer and not encoder_layer.norm_first
        fits = plain and a.batch_first and a.in_proj_bias is not None and not a.num_heads % 2
        self.use_nested_tensor = bool(enable_nested_tensor and fits)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """All layers."""
        padding = _as_numbers(src_key_padding_mask, "src_key_padding_mask", src.dtype)
        numbers = _as_numbers(mask, "mask", src.dtype)
        causal = _detect_is_causal_mask(mask, is_causal, _get_seq_len(src, self._batch_first()))
        lengths = self._lengths(src, mask, src_key_padding_mask)
        x = src
        if lengths is not None:
            from ...nested import from_padded

            x, padding = from_padded(src, lengths.tolist()), None
        for layer in self.layers:
            x = layer(x, src_mask=numbers, is_causal=causal, src_key_padding_mask=padding)
        if lengths is not None:
            x = x.to_padded_tensor(0.0, tuple(src.shape))
        return x if self.norm is None else self.norm(x)

    def _lengths(self, src: Tensor, mask: Any, padding: Any) -> Any:
        """The lengths of the sequences, where they can be computed without their padding, as PyTorch does: in evaluation,
        nothing recorded, a boolean mask of padding that begins behind the sequence. The padding of the result is then 0."""
        if padding is None or mask is not None or not self.use_nested_tensor or self.training or src.ndim != 3:
            return None
        if src._interp is not None or padding._interp is not None or padding.dtype is not dt.bool_:
            return None
        if grad_enabled() and any(p.requires_grad for p in self.parameters()):
            return None
        keep = ~padding._value
        lengths = keep.sum(1)
        aligned = bool((keep == (np.arange(keep.shape[1]) < lengths[:, None])).all())
        return lengths if aligned and lengths.size and lengths.min() > 0 else None

    def _batch_first(self) -> bool:
        first = self.layers[0] if len(self.layers) else None
        return bool(getattr(getattr(first, "self_attn", None), "batch_first", False))


class TransformerDecoder(Module):
    """Layers one after the other; copies of one."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """All layers."""
        first = self.layers[0] if len(self.layers) else None
        batch_first = bool(getattr(getattr(first, "self_attn", None), "batch_first", False))
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, _get_seq_len(tgt, batch_first))
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder of the source and a decoder of the target."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = _RELU,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        norm = {"bias": bias, "device": device, "dtype": dtype}
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            layer = TransformerEncoderLayer(*options, device=device, dtype=dtype)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, LayerNorm(d_model, layer_norm_eps, **norm))
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            last = TransformerDecoderLayer(*options, device=device, dtype=dtype)
            self.decoder = TransformerDecoder(last, num_decoder_layers, LayerNorm(d_model, layer_norm_eps, **norm))
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The decoder of the target and of the encoded source."""
        if not src.is_nested:
            batch = 0 if self.batch_first else 1
            if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
                raise RuntimeError(
                    f"the batch number of src and tgt must be equal, got {list(src.shape)} and {list(tgt.shape)}"
                )
            if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
                raise RuntimeError(
                    f"the feature number of src and tgt must be equal to d_model ({self.d_model}), got {list(src.shape)} and {list(tgt.shape)}"
                )
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """-inf above the diagonal, else 0: every place sees those up to its own."""
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        """Xavier's uniform numbers for all that has more than one dim."""
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)


__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]  # fmt: skip
