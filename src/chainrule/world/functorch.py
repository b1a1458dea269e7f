"""``functorch``: what PyTorch's transforms were called before they were ``torch.func``."""

from __future__ import annotations

from typing import Any

from .. import func
from ..nn.made_functional import combine_state_for_ensemble, make_functional, make_functional_with_buffers
from . import refusal

__all__ = [*func.__all__, "combine_state_for_ensemble", "make_functional", "make_functional_with_buffers"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "make_fx":
        return refusal.named("functorch.make_fx", "fx")
    return getattr(func, name)


def __dir__() -> list[str]:
    return __all__
