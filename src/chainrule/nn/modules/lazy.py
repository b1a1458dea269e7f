"""Modules whose shapes the first input tells."""

from __future__ import annotations

from typing import Any

from ..parameter import is_lazy


class LazyModuleMixin:
    """Put before a module's class: its uninitialized parameters get their shapes from ``initialize_parameters(*input)``.

    The first call does that, and the module becomes one of the class `cls_to_become`. Loading a state does it too.
    """

    cls_to_become: Any = None
    _load_hook: Any
    _initialize_hook: Any

    def __init__(self, *args: Any, **kw: Any) -> None:
        super().__init__(*args, **kw)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)  # type: ignore[attr-defined]
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)  # type: ignore[attr-defined]

    def _lazy_load_hook(self, state_dict: Any, prefix: str, *_: Any) -> None:
        """Shapes from the state that is loaded."""
        for name, x in self._own_state():  # type: ignore[attr-defined]
            new = state_dict.get(prefix + name)
            if new is not None and is_lazy(x) and not is_lazy(new):
                x.materialize(new.shape)

    def initialize_parameters(self, *args: Any, **kw: Any) -> None:
        """Give the parameters their shapes and values, from the first input; to be written."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        own: Any = self
        return any(is_lazy(x) for x in (*own._parameters.values(), *own._buffers.values()))

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        """The hook before the first call."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        delattr(module, "_initialize_hook")
        delattr(module, "_load_hook")
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


__all__ = ["LazyModuleMixin"]
