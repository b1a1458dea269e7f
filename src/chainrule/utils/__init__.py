"""Utilities around the transforms."""

from __future__ import annotations

import weakref
from typing import Any

from . import checkpoint


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchange all that two tensors are: values, attributes, classes; whoever holds one holds the other's value afterwards."""
    for name in ("_value", "_interp", "_aux", "_meta"):
        a, b = getattr(t1, name), getattr(t2, name)
        setattr(t1, name, b)
        setattr(t2, name, a)
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    own, other = dict(t1.__dict__), dict(t2.__dict__)
    for t, new in ((t1, other), (t2, own)):
        t.__dict__.clear()
        t.__dict__.update(new)
        if getattr(t._aux, "owner", None) is not None:  # a leaf knows the tensor it belongs to
            t._aux.owner = weakref.ref(t)


def set_module(obj: Any, mod: str) -> None:
    """Say in which module an object lives."""
    obj.__module__ = mod


__all__ = ["checkpoint", "data", "deterministic", "set_module", "swap_tensors"]


def __getattr__(name: str) -> Any:
    """Data loading and settings are imported when first used."""
    if name in ("data", "deterministic"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
