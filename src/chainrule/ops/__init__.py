"""The operators, one file per family of mathematics. Importing this package declares them all."""

from __future__ import annotations

import importlib
import pkgutil


def _load(package: str, path: list[str]) -> None:
    for m in sorted(pkgutil.iter_modules(path), key=lambda m: m.name):
        module = importlib.import_module(f"{package}.{m.name}")
        if m.ispkg:
            _load(f"{package}.{m.name}", list(module.__path__))


importlib.import_module(f"{__name__}.elementwise.formulas")  # first: pointwise ops find their loops there
_load(__name__, list(__path__))
