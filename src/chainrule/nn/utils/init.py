"""Modules without their initial values."""

from __future__ import annotations

import inspect
from typing import Any

from ..module import Module


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters are left to whoever fills them next."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    kept = {
        name: value for name, value in vars(module_cls).items() if name in ("reset_parameters", "_reset_parameters")
    }
    quiet = type(module_cls.__name__, (module_cls,), {name: lambda self: None for name in kept})
    m = quiet(*args, **kwargs)
    m.__class__ = module_cls
    return m
