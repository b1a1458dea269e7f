"""Neural networks: modules, parameters, initialisers, and the functions under ``nn.functional``."""

import typing as _typing
from typing import Any as _Any


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


if _typing.TYPE_CHECKING:  # what comes below at run time would make any misspelt name right for a type checker
    from . import attention, common_types, functional, init, modules, parallel, parameter, utils
    from .functional_call import functional_call, stack_module_state
    from .modules import *
    from .parallel import DataParallel
    from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

    __all__ = [
        "Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter", "attention", "common_types", "factory_kwargs",
        "functional", "functional_call", "init", "modules", "parallel", "parameter", "stack_module_state", "utils",
    ]  # fmt: skip
    __all__ += modules.__all__  # type: ignore[has-type]
else:

    def __getattr__(name: str) -> _Any:
        """Everything at once, when the first name is asked for, so that ``import chainrule`` stays quick."""
        import importlib

        if name in ("grad", "_reduction"):
            return importlib.import_module(f"{__name__}.{name}")
        if "__all__" not in globals() and (name == "__all__" or not name.startswith("__")):
            contents = importlib.import_module(f"{__name__}.contents")
            globals().update({n: getattr(contents, n) for n in contents.__all__})
            globals()["__all__"] = sorted(["factory_kwargs", *contents.__all__])
            return globals()[name] if name in globals() else __getattr__(name)
        module = importlib.import_module(__name__)  # with the module, so that Python can suggest a name that is meant
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=module)

    def __dir__() -> list[str]:
        return __getattr__("__all__") if "__all__" not in globals() else __all__
