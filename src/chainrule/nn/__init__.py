"""Neural networks: modules, parameters, initialisers, and the functions under ``nn.functional``."""

import typing as _typing
from typing import Any as _Any

from . import attention, common_types, functional, init, modules, parallel, parameter, utils
from .functional_call import functional_call, stack_module_state
from .module import Module as Module
from .modules import *
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "common_types",
    "factory_kwargs",
    "functional",
    "functional_call",
    "init",
    "modules",
    "parallel",
    "parameter",
    "stack_module_state",
    "utils",
]
__all__ += modules.__all__


def factory_kwargs(kwargs: dict[str, _Any] | None) -> dict[str, _Any]:
    """``device``, ``dtype`` and ``memory_format`` of a module's keyword arguments, also those under ``factory_kwargs``."""
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    unknown = kwargs.keys() - simple - {"factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {sorted(unknown)}")
    out = dict(kwargs.get("factory_kwargs", {}))
    for key in simple & kwargs.keys():
        if key in out:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        out[key] = kwargs[key]
    return out


def _lazy(name: str) -> _Any:
    """``nn.grad``, which needs the transforms, when it is first asked for."""
    if name in ("grad", "_reduction"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if not _typing.TYPE_CHECKING:  # a type checker would take any misspelt name for one of these
    __getattr__ = _lazy


def __dir__() -> list[str]:
    return __all__
