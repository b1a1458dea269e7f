"""Module and the hooks of all modules, under PyTorch's path."""

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

_global_forward_pre_hooks, _global_forward_hooks = _EVERYWHERE.forward_pre, _EVERYWHERE.forward
_global_forward_hooks_always_called = _EVERYWHERE.forward_always
_global_forward_hooks_with_kwargs = _EVERYWHERE.forward_with_kwargs
_global_backward_hooks, _global_backward_pre_hooks = _EVERYWHERE.backward, _EVERYWHERE.backward_pre


def _has_any_global_hook() -> bool:
    return bool(_CALLS)


def _addindent(s_: str, numSpaces: int) -> str:
    return s_.replace("\n", "\n" + " " * numSpaces)


__all__ = [
    "Module", "register_module_backward_hook", "register_module_buffer_registration_hook", "register_module_forward_hook",
    "register_module_forward_pre_hook", "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip
