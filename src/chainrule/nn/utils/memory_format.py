"""How the weights of convolutions lie in memory."""

from __future__ import annotations

from typing import Any, TypeVar

from ...core.imperative import no_grad
from ...core.views import assign
from ..module import Module

M = TypeVar("M", bound=Module)


def _convert(module: M, rank: int, memory_format: Any) -> M:
    from ..modules import conv

    kinds = (conv.Conv2d, conv.ConvTranspose2d) if rank == 4 else (conv.Conv3d, conv.ConvTranspose3d)
    for m in module.modules():
        if isinstance(m, kinds):
            with no_grad():
                w = m.weight.detach().clone()
                assign(m.weight, w.contiguous(memory_format=memory_format), "memory_format")
    return module


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Lay the weights of 2-D convolutions out as `memory_format` says."""
    return _convert(module, 4, memory_format)


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Lay the weights of 3-D convolutions out as `memory_format` says."""
    return _convert(module, 5, memory_format)
