"""Imperative differentiation and its tools: grad, backward, Function, forward_ad, functional, gradcheck, detect_anomaly."""

from __future__ import annotations

from typing import Any

from ..core.imperative import (
    backward,
    enable_grad,
    grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from ..core.registry import house as _house
from ..core.tensor import Tensor
from .anomaly import AnomalyError, detect_anomaly, set_detect_anomaly
from .function import Function

# Imported at once: a later import of the module would put it in place of the function of its name.
from .gradcheck import GradcheckError, gradcheck, gradgradcheck

Variable = Tensor


def __getattr__(name: str) -> Any:
    import importlib

    if name in ("forward_ad", "functional"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AnomalyError", "Function", "GradcheckError", "Variable", "backward", "detect_anomaly", "enable_grad", "forward_ad", "functional", "grad",
    "gradcheck", "gradgradcheck", "inference_mode", "is_grad_enabled", "no_grad", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip

_house(__name__, __all__)


def __dir__() -> list[str]:
    return __all__
