"""Utilities around the transforms."""

from __future__ import annotations

from typing import Any

from . import checkpoint

__all__ = ["checkpoint", "data"]


def __getattr__(name: str) -> Any:
    """Data loading is imported when first used."""
    if name == "data":
        import importlib

        return importlib.import_module(f"{__name__}.data")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
