"""Imperative differentiation and its tools: grad, backward, Function, forward_ad, functional, gradcheck, detect_anomaly."""

from __future__ import annotations

from typing import Any

from ..core.edges import Engine
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
from .anomaly import AnomalyError, detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from .function import Function, once_differentiable

# Imported at once: a later import of the module would put it in place of the function of its name.
from .gradcheck import GradcheckError, gradcheck, gradgradcheck


class _VariableMeta(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor)

    def __subclasscheck__(cls, c: type) -> bool:
        return issubclass(c, Tensor)


class Variable(metaclass=_VariableMeta):
    """The old name of Tensor: ``Variable(x, requires_grad=True)`` is x itself, without its history."""

    _execution_engine = Engine

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        return (Tensor() if data is None else data.detach()).requires_grad_(requires_grad)


def variable(*args: Any, **kw: Any) -> Any:
    """The old way to make a tensor, which PyTorch has taken away."""
    raise RuntimeError("chainrule.autograd.variable(...) is deprecated, use chainrule.tensor(...) instead")


class set_multithreading_enabled:
    """A setting that is kept and has no effect, from here on or inside a ``with``: backward runs in the thread that asked for it."""

    now = True

    def __init__(self, mode: bool) -> None:
        self.before = set_multithreading_enabled.now
        set_multithreading_enabled.now = bool(mode)

    def __enter__(self) -> None: ...
    def __exit__(self, *exc: Any) -> None:
        set_multithreading_enabled.now = self.before


def is_multithreading_enabled() -> bool:
    """What was asked for with ``set_multithreading_enabled``."""
    return set_multithreading_enabled.now


def __getattr__(name: str) -> Any:
    import importlib

    if name in ("forward_ad", "functional", "graph", "profiler", "grad_mode"):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "kineto_available":
        return importlib.import_module(f"{__name__}.profiler").kineto_available
    if name == "SavedTensor":
        return importlib.import_module("chainrule.core.saved").SavedTensor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AnomalyError", "Function", "GradcheckError", "Variable", "backward", "detect_anomaly", "enable_grad", "forward_ad", "functional", "grad",
    "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "is_grad_enabled",
    "is_multithreading_enabled", "no_grad", "once_differentiable", "profiler", "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled",
    "variable",
]  # fmt: skip

_house(__name__, __all__)


def __dir__() -> list[str]:
    return __all__
