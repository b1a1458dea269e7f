"""What `compile` makes of a module: a module whose calls run as machine code."""

from __future__ import annotations

import copy
from typing import Any

from ..jit.api import jit
from .module import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """``compile(module)``: its calls run compiled; parameters, attributes and everything else are the module's, under ``_orig_mod``."""

    _orig_mod: Module

    def __init__(self, module: Module) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled"] = jit(module)
        self.training = module.training

    def forward(self, *args: Any, **kw: Any) -> Any:
        """The module on these arguments, from a recording of calls like this one."""
        return self._compiled(*args, **kw)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_modules", ()):
            return self.__dict__["_modules"][name]
        return getattr(self.__dict__["_modules"]["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        module = self.__dict__.get("_modules", {}).get("_orig_mod")
        if module is None or name in ("_orig_mod", "training") or hasattr(type(self), name):
            super().__setattr__(name, value)
        else:
            setattr(module, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizedModule:
        return OptimizedModule(copy.deepcopy(self._orig_mod, memo))

    def __reduce__(self) -> Any:
        return OptimizedModule, (self._orig_mod,)


def __dir__() -> list[str]:
    return __all__
