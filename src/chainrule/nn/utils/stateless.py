"""Modules as functions of their tensors, by PyTorch's older names."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ..functional_call import functional_call, swapped
from ..module import Module

_functional_call = functional_call


def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> AbstractContextManager[None]:
    """The module with other tensors in the place of its own, inside a ``with``."""
    return swapped(module, parameters_and_buffers, tie_weights, strict)


__all__ = ["functional_call"]
