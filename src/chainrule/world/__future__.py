"""``torch.__future__``: what becomes of a module's parameters when it is converted or a state is loaded."""

from ..nn.conversion import Parameters as _Parameters


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Let new parameters take the place of the old ones in ``Module.to`` and its like, instead of giving these a new value."""
    _Parameters.overwrite = bool(value)


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether new parameters take the place of the old ones."""
    return _Parameters.overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Let parameters change places with new ones (``utils.swap_tensors``) in ``Module.to``, its like and ``load_state_dict``."""
    _Parameters.swap = bool(value)


def get_swap_module_params_on_conversion() -> bool:
    """Whether parameters change places with new ones."""
    return _Parameters.swap


__all__ = [
    "get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion", "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]  # fmt: skip
