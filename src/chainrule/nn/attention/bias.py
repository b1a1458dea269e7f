"""Causal masks for queries and keys of different lengths, which differ in the corner they start from."""

from __future__ import annotations

import enum
import warnings
from typing import Any

import chainrule as cr
from chainrule import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Whether the first query sees the first key, or the last query the last key."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask as `attn_mask` of scaled_dot_product_attention: true where a query sees a key."""

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise TypeError(f"CausalBias: variant must be a CausalVariant, got {variant!r}")
        if variant == CausalVariant.LOWER_RIGHT and seq_len_q > seq_len_kv:
            warnings.warn(
                f"CausalBias: of {seq_len_q} queries over {seq_len_kv} keys the first {seq_len_q - seq_len_kv} see nothing, and have no "
                f"attention",
                stacklevel=3,
            )
        shift = 0 if variant == CausalVariant.UPPER_LEFT else seq_len_kv - seq_len_q
        mask: Any = cr.ones(seq_len_q, seq_len_kv, dtype=cr.bool).tril(shift).as_subclass(cls)
        mask.variant, mask.seq_len_q, mask.seq_len_kv = variant, seq_len_q, seq_len_kv
        return mask

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        """All is done."""


def _of(variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise ValueError(f"{variant.name.lower()}: expected the numbers of queries and of keys, got {size}")
    return CausalBias(variant, *size)


def causal_upper_left(*size: int) -> CausalBias:
    """The mask in which query i sees the keys up to i."""
    return _of(CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask in which the last query sees all keys, and each one before it one less: for keys of earlier calls that are kept."""
    return _of(CausalVariant.LOWER_RIGHT, size)
