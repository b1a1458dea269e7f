"""Neural networks: modules, parameters, initialisers, and the functions under ``nn.functional``."""

from . import functional, init, modules, parameter, utils
from .functional_call import functional_call, stack_module_state
from .module import Module as Module
from .modules import *
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "functional_call",
    "init",
    "modules",
    "parameter",
    "stack_module_state",
    "utils",
]
__all__ += modules.__all__


def __dir__() -> list[str]:
    return __all__
