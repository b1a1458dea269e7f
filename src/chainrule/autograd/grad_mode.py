"""The modes of recording, under PyTorch's module name."""

from ..core.imperative import enable_grad, inference_mode, no_grad, set_grad_enabled
from . import set_multithreading_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


def __dir__() -> list[str]:
    return __all__
