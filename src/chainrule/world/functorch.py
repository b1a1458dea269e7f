"""``functorch``: what PyTorch's transforms were called before they were ``torch.func``."""

from __future__ import annotations

import functools
import warnings
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
    value = getattr(func, name)
    return _renamed(name) if callable(value) and name in func.__all__ else value


@functools.cache
def _renamed(name: str) -> Any:
    """A transform by its old name, which says the new one when it is called."""
    transform = getattr(func, name)

    @functools.wraps(transform)
    def call(*args: Any, **kw: Any) -> Any:
        warnings.warn(
            f"functorch.{name} is deprecated, as in PyTorch. Please use `torch.{'' if name == 'vmap' else 'func.'}{name}` instead",
            FutureWarning,
            stacklevel=2,
        )
        return transform(*args, **kw)

    return call


def __dir__() -> list[str]:
    return __all__
