"""The older way to a function of a module's parameters: ``f, params = make_functional(model)``, then ``f(params, x)``.

What :func:`functional_call` does with names, these do by position; the model itself is left as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from .functional_call import stack_module_state, swapped
from .module import Module

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "make_functional",
    "make_functional_with_buffers",
]


def _named(what: str, names: Sequence[str], values: Any) -> dict[str, Any]:
    values = tuple(values)
    if len(values) != len(names):
        raise ValueError(
            f"the function of a module takes {len(names)} {what}, one for each of its own, not {len(values)}"
        )
    return dict(zip(names, values, strict=True))


class FunctionalModule:
    """``f(params, *args)``: a module with its parameters as the first argument."""

    def __init__(self, model: Module, names: Sequence[str]) -> None:
        self.stateless_model, self.param_names = model, tuple(names)

    def __call__(self, params: Any, *args: Any, **kw: Any) -> Any:
        with swapped(self.stateless_model, _named("parameters", self.param_names, params)):
            return self.stateless_model(*args, **kw)


class FunctionalModuleWithBuffers(FunctionalModule):
    """``f(params, buffers, *args)``: a module with its parameters and buffers as the first arguments."""

    def __init__(self, model: Module, names: Sequence[str], buffer_names: Sequence[str]) -> None:
        super().__init__(model, names)
        self.buffer_names = tuple(buffer_names)

    def __call__(self, params: Any, buffers: Any, *args: Any, **kw: Any) -> Any:
        values = _named("parameters", self.param_names, params) | _named("buffers", self.buffer_names, buffers)
        with swapped(self.stateless_model, values):
            return self.stateless_model(*args, **kw)


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """A function of parameters, and copies of the model's; a model with buffers needs :func:`make_functional_with_buffers`."""
    if next(model.named_buffers(), None) is not None:
        raise RuntimeError(
            "make_functional(model): the model has buffers. Please use make_functional_with_buffers(model) instead."
        )
    own = copy.deepcopy(model)
    names, params = _split(own.named_parameters())
    return FunctionalModule(own, names), _quiet(params, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A function of parameters and buffers, and copies of the model's."""
    own = copy.deepcopy(model)
    names, params = _split(own.named_parameters())
    buffer_names, buffers = _split(own.named_buffers())
    return FunctionalModuleWithBuffers(own, names, buffer_names), _quiet(params, disable_autograd_tracking), buffers


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The function of one model, and the parameters and buffers of all of them, stacked for ``vmap``."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    params, buffers = stack_module_state(models)
    f = make_functional_with_buffers(models[0])[0]
    return f, tuple(params[n] for n in f.param_names), tuple(buffers[n] for n in f.buffer_names)


def _split(named: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    pairs = list(named)
    return tuple(n for n, _ in pairs), tuple(x for _, x in pairs)


def _quiet(params: tuple[Any, ...], quiet: bool) -> tuple[Any, ...]:
    if quiet:
        for p in params:
            p.requires_grad_(False)
    return params


def __dir__() -> list[str]:
    return __all__
