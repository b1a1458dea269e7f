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
    _swap_families(t1, t2)


def _swap_families(t1: Any, t2: Any) -> None:
    """Bases and views know each other by what they are now."""
    other = {id(t1): t2, id(t2): t1}
    for t in (t1, t2):
        if t._meta is not None and t._meta.base is not None:
            t._meta.base = other.get(id(t._meta.base), t._meta.base)
    roots = {id(r): r for t in (t1, t2) for r in (t, t._meta and t._meta.base) if r is not None and r._meta is not None}
    for root in roots.values():
        views = [other.get(id(v), v) for w in root._meta.views or () if (v := w()) is not None]
        root._meta.views = [weakref.ref(v) for v in views] or None
        for v in views:
            v._meta.base = root


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
