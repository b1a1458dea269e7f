"""The public namespaces under ``chainrule``: modules filled with what the ops publish under a dotted name."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from .core.registry import PUBLIC, fill


def install(root: ModuleType) -> None:
    """Make ``chainrule.linalg``, ``chainrule.special``, ... from the published names."""
    prefixes: set[str] = set()
    for name in PUBLIC:
        parts = name.split(".")[:-1]
        prefixes.update(".".join(parts[: k + 1]) for k in range(len(parts)))
    for prefix in sorted(prefixes):
        full = f"{root.__name__}.{prefix}"
        try:
            module = importlib.import_module(full)
        except ModuleNotFoundError as e:
            if e.name != full:
                raise
            module = ModuleType(full, f"Operators under ``{prefix}``; see their docstrings.")
            sys.modules[full] = module
            head, _, tail = prefix.rpartition(".")
            setattr(sys.modules[f"{root.__name__}.{head}" if head else root.__name__], tail, module)
        names = fill(module, prefix)
        module.__all__ = names + [n for n in getattr(module, "__all__", []) if n not in names]  # type: ignore[attr-defined]
