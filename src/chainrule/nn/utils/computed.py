"""Attributes of a module that are computed from its parameters each time they are read.

The module gets a class of its own that has a property for each such attribute. The classes are made once for a base class and a
set of names, and know how to be pickled and copied.
"""

from __future__ import annotations

import functools
from typing import Any

from ..module import Module


class Computed:
    """How one attribute is computed, and what an assignment to it does."""

    def compute(self, module: Module) -> Any:
        """The value."""
        raise NotImplementedError

    def store(self, module: Module, value: Any) -> None:
        """Make `value` the value."""
        raise NotImplementedError


def _rebuild(base: type, names: tuple[str, ...]) -> Any:
    cls: Any = class_for(base, names)
    return cls.__new__(cls)


def _property(name: str) -> property:
    def get(self: Any) -> Any:
        try:
            return self.__dict__["_computed"][name].compute(self)
        except AttributeError as e:  # else Module.__getattr__ would hide what went wrong
            raise RuntimeError(f"{name} could not be computed: {e}") from e

    return property(get, lambda self, value: self.__dict__["_computed"][name].store(self, value))


@functools.cache
def class_for(base: type, names: tuple[str, ...]) -> type:
    """The class of modules of class `base` with these computed attributes."""

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        return _rebuild, (base, names), self.__dict__

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if name in names:
            self.__dict__["_computed"][name].store(self, value)
        else:
            Module.__setattr__(self, name, value)

    body: dict[str, Any] = {n: _property(n) for n in names}
    body |= {
        "__reduce_ex__": __reduce_ex__,
        "__setattr__": __setattr__,
        "_plain_class": base,
        "__module__": base.__module__,
        "__doc__": base.__doc__,
    }
    return type(f"Parametrized{base.__name__}", (base,), body)


def plain_class(module: Module) -> type:
    """The class of the module before any attribute was computed."""
    return getattr(type(module), "_plain_class", type(module))


def install(module: Module, name: str, how: Computed) -> None:
    """Make an attribute a computed one."""
    table = module.__dict__.setdefault("_computed", {})
    table[name] = how
    object.__setattr__(module, "__class__", class_for(plain_class(module), tuple(sorted(table))))


def uninstall(module: Module, name: str) -> None:
    """Make a computed attribute an ordinary one again."""
    table = module.__dict__["_computed"]
    del table[name]
    base = plain_class(module)
    object.__setattr__(module, "__class__", class_for(base, tuple(sorted(table))) if table else base)
    if not table:
        del module.__dict__["_computed"]
