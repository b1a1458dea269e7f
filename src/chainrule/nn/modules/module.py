"""Module and the hooks of all modules, under PyTorch's path."""

import sys as _sys
from types import ModuleType as _ModuleType
from typing import Any

from ..hooks import CALLS as _CALLS
from ..hooks import EVERYWHERE as _EVERYWHERE
from ..hooks import (
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ..module import Module
from ..state import EXTRA as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401
from ..state import LoadResult as _IncompatibleKeys  # noqa: F401


class _Tables(_ModuleType):
    """The tables of hooks of all modules can be replaced, as programs do that want none left."""


def _table(name: str) -> property:
    def get(self: Any) -> Any:
        return getattr(_EVERYWHERE, name)

    def replace(self: Any, table: Any) -> None:
        for key in getattr(_EVERYWHERE, name):
            _CALLS.pop(key, None)
        setattr(_EVERYWHERE, name, table)
        if name in ("forward_pre", "forward", "backward", "backward_pre"):
            _CALLS.update(dict.fromkeys(table, True))

    return property(get, replace)


_Tables._global_forward_pre_hooks, _Tables._global_forward_hooks = _table("forward_pre"), _table("forward")  # type: ignore[attr-defined]
_Tables._global_backward_hooks, _Tables._global_backward_pre_hooks = _table("backward"), _table("backward_pre")  # type: ignore[attr-defined]
_Tables._global_forward_hooks_always_called = _table("forward_always")  # type: ignore[attr-defined]
_Tables._global_forward_hooks_with_kwargs = _table("forward_with_kwargs")  # type: ignore[attr-defined]
_sys.modules[__name__].__class__ = _Tables


def _has_any_global_hook() -> bool:
    return bool(_CALLS)


def _addindent(s_: str, numSpaces: int) -> str:
    return s_.replace("\n", "\n" + " " * numSpaces)


__all__ = [
    "Module", "register_module_backward_hook", "register_module_buffer_registration_hook", "register_module_forward_hook",
    "register_module_forward_pre_hook", "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip
