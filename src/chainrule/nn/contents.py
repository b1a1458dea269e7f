"""All that ``chainrule.nn`` shows, imported together when the first of it is asked for."""

from . import attention, common_types, functional, init, modules, parallel, parameter, utils
from .functional_call import functional_call, stack_module_state
from .modules import *  # noqa: F403
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter", "attention", "common_types", "functional",
    "functional_call", "init", "modules", "parallel", "parameter", "stack_module_state", "utils",
]  # fmt: skip
__all__ += modules.__all__
