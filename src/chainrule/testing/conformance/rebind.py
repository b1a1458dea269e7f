"""Run the database's own Python helpers on another library, by giving them that library where they say ``torch``.

Some entries are defined by a lambda (``lambda x, shape: x.view(shape)``), and many samples come with a helper that
makes an output independent of its gauge or keeps an input Hermitian. These are PyTorch's definition of the entry, so
they are executed as they are, with every global that means PyTorch replaced.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import torch

# Helpers that only guard PyTorch's own global state and have nothing to guard in another library.
_STAND_INS: dict[str, Any] = {"freeze_rng_state": contextlib.nullcontext}


class Namespace:
    """Attribute access like ``torch.linalg.norm``, answered by the library, then by PyTorch's Python source rebound."""

    def __init__(self, library: Any, original: Any, rebinder: Rebinder, *, strict: bool) -> None:
        self.__dict__.update(_library=library, _original=original, _rebinder=rebinder, _strict=strict)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._library, name, None) if self._library is not None else None
        original = getattr(self._original, name, None)
        if isinstance(original, types.ModuleType):
            return Namespace(found, original, self._rebinder, strict=self._strict)
        if found is not None:
            return found
        if not self._strict and isinstance(original, types.FunctionType):
            return self._rebinder(original)
        if original in (torch.SymInt, torch.SymFloat, torch.SymBool):  # only asked whether a dim is one of these
            return original
        if self._original is torch and hasattr(self._library.Tensor, name):
            return getattr(self._library.Tensor, name)
        raise AttributeError(f"{getattr(self._library, '__name__', 'the library')} has no {name!r}")


class Rebinder:
    """Copies of Python functions whose globals and closures refer to `library` instead of PyTorch."""

    def __init__(self, library: Any, *, strict: bool) -> None:
        self._torch = Namespace(library, torch, self, strict=strict)
        self._worlds: dict[int, dict[str, Any]] = {}
        self._done: dict[Any, Any] = {}

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(fn, functools.partial):
            return functools.partial(self(fn.func), *fn.args, **fn.keywords)
        if not isinstance(fn, types.FunctionType) or not self._is_pytorch(fn):
            return fn
        if fn not in self._done:
            self._done[fn] = self._copy(fn)
        return self._done[fn]

    @staticmethod
    def _is_pytorch(fn: types.FunctionType) -> bool:
        return (fn.__module__ or "").split(".")[0] == "torch"

    def _copy(self, fn: types.FunctionType) -> types.FunctionType:
        closure = fn.__closure__
        cells = tuple(types.CellType(self._value(c.cell_contents)) for c in closure) if closure else None
        copy = types.FunctionType(fn.__code__, self._world(fn.__globals__), fn.__name__, fn.__defaults__, cells)
        copy.__kwdefaults__ = fn.__kwdefaults__
        return copy

    def _world(self, globals_: dict[str, Any]) -> dict[str, Any]:
        key = id(globals_)
        if key not in self._worlds:
            self._worlds[key] = _World(globals_, self)
        return self._worlds[key]

    def _value(self, value: Any) -> Any:
        if value is torch:
            return self._torch
        if isinstance(value, types.ModuleType) and value.__name__.startswith("torch."):
            found: Any = self._torch
            for part in value.__name__.split(".")[1:]:
                found = getattr(found, part)
            return found
        if isinstance(value, type) and issubclass(value, torch.Tensor):
            return self._torch.Tensor
        if isinstance(value, (types.FunctionType, functools.partial)):
            return _STAND_INS.get(getattr(value, "__name__", "")) or self(value)
        return value


class _World(dict):  # type: ignore[type-arg]
    """Globals of a module, rebound the first time a name is read, so that nothing unused is touched."""

    def __init__(self, original: dict[str, Any], rebinder: Rebinder) -> None:
        super().__init__()
        self._original, self._rebinder = original, rebinder
        super().__setitem__("__builtins__", original.get("__builtins__", sys.modules["builtins"]))

    def __missing__(self, name: str) -> Any:
        value = self._rebinder._value(self._original[name])
        self[name] = value
        return value
