"""The public namespaces under ``chainrule``: modules filled with what the ops publish under a dotted name."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from .core.registry import PUBLIC, address, fill, house


def install(root: ModuleType) -> None:
    """Fill ``chainrule.linalg``, ``chainrule.special``, ... with the published names; one that has no file is made."""
    prefixes: set[str] = set()
    for name in PUBLIC:
        parts = name.split(".")[:-1]
        prefixes.update(".".join(parts[: k + 1]) for k in range(len(parts)))
    for prefix in sorted(prefixes):
        full = f"{root.__name__}.{prefix}"
        try:
            module: Any = importlib.import_module(full)
        except ModuleNotFoundError as e:
            if e.name != full:
                raise
            module = ModuleType(full, f"Operators under ``{prefix}``; see their docstrings.")
            sys.modules[full] = module
            head, _, tail = prefix.rpartition(".")
            setattr(sys.modules[f"{root.__name__}.{head}" if head else root.__name__], tail, module)
        if names := fill(module, prefix):
            module.__all__ = names
            module.__dir__ = lambda names=names: names
    results: Any = importlib.import_module(f"{root.__name__}.return_types")
    for cls in result_types():
        address(cls, f"return_types.{cls.__name__}")
        setattr(results, cls.__name__, cls)
    results.__all__ = sorted({cls.__name__ for cls in result_types()})


def result_types() -> Iterator[type]:
    """The named tuples that published functions return."""
    for f in PUBLIC.values():
        yield from types_of(f)


def types_of(f: Any) -> Iterator[type]:
    """The named tuples that a function says it returns."""
    returns = getattr(f, "__annotations__", {}).get("return", "")
    if returns not in ("Tensor", "Any"):
        known = getattr(inspect.unwrap(f), "__globals__", {})
        for word in re.findall(r"\w+", str(returns)):
            if hasattr(known.get(word), "_fields"):
                yield known[word]


def public_names(root: ModuleType, modules: tuple[str, ...]) -> list[str]:
    """The root's `modules`, and all that is in it and is no module."""
    names = set(modules)
    for name, value in vars(root).items():
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "annotations":
            names.add(name)
    house(root.__name__, sorted(names))
    return sorted(names)
