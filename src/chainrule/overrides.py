"""``__torch_function__``: how a class takes part in our functions (see :mod:`chainrule.core.overriding`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from .core import overriding
from .core.overriding import (
    MODES,
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    ask,
    enable,
    enable_methods,
    modes_seen,
    overloaded,
)
from .core.registry import METHODS, PUBLIC
from .core.tensor import Tensor

enable()


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments is of a class with ``__torch_function__``, and is to be asked."""
    return bool(MODES.get()) or (not overriding.OFF.get() and bool(overloaded(relevant_args)))


def has_torch_function_unary(x: Any) -> bool:
    """:func:`has_torch_function` of one argument."""
    return has_torch_function((x,))


def has_torch_function_variadic(*args: Any) -> bool:
    """:func:`has_torch_function` of several arguments."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """The result of `public_api` by the classes of the relevant arguments."""
    r = ask(public_api, tuple(relevant_args), args, kwargs)
    if r is NotImplemented:
        raise TypeError(f"handle_torch_function: no argument of {public_api!r} is of a class with __torch_function__")
    return r


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[[Any], Any]:
    """A decorator: the function asks the classes of what ``dispatcher(*args, **kwargs)`` returns."""

    def wrap(f: Any) -> Any:
        @functools.wraps(f)
        def call(*args: Any, **kwargs: Any) -> Any:
            r = ask(call, dispatcher(*args, **kwargs), args, kwargs)
            return f(*args, **kwargs) if r is NotImplemented else r

        return call

    return wrap


def is_tensor_like(inp: Any) -> bool:
    """Whether `inp` is a tensor, or of a class with ``__torch_function__``."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether `func` is a method of Tensor, or the ``__get__`` of a property."""
    return func in METHODS.values() or getattr(func, "__name__", "") == "__get__"


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that ask, by the namespace they are in."""
    import chainrule

    out: dict[Any, list[Callable[..., Any]]] = {Tensor: list(METHODS.values())}
    for name, f in PUBLIC.items():
        space: Any = chainrule
        for part in name.split(".")[:-1]:
            space = getattr(space, part)
        out.setdefault(space, []).append(f)
    return out


def get_ignored_functions() -> set[Callable[..., Any]]:
    """The functions that do not ask."""
    return {PUBLIC[n] for n in overriding._UNASKED if n in PUBLIC}


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For every function that asks, one with its signature that returns -1."""
    return {f: (lambda *args, **kwargs: -1) for fs in get_overridable_functions().values() for f in fs}


def resolve_name(f: Callable[..., Any]) -> str:
    """The name under which a function is found."""
    return f"{f.__module__.replace('chainrule', 'torch', 1)}.{f.__qualname__}"


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """The functions whose results a subclass does not take over: none that return tensors."""
    return set()


def enable_reentrant_dispatch() -> Any:
    """A ``with`` in which functions ask as they do outside."""
    import contextlib

    return contextlib.nullcontext()


def redispatch_function(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``func`` without asking the classes of its arguments."""
    with DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


class TorchFunctionMode:
    """``with Mode():`` hands every function and method called inside to ``Mode.__torch_function__``."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """To be written by a subclass; this one calls the function."""
        return func(*args, **(kwargs or {}))

    def __enter__(self) -> TorchFunctionMode:
        enable_methods()
        modes_seen[:] = [True]
        self.__dict__.setdefault("_tokens", []).append(MODES.set((*MODES.get(), self)))
        return self

    def __exit__(self, *exc: Any) -> None:
        MODES.reset(self.__dict__["_tokens"].pop())

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance, to be entered."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""


__all__ = [
    "BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode",
    "enable_reentrant_dispatch", "get_default_nowrap_functions", "redispatch_function", "get_ignored_functions",
    "get_overridable_functions", "get_testing_overrides", "handle_torch_function", "has_torch_function", "has_torch_function_unary",
    "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
