"""Utilities around the transforms."""

from __future__ import annotations

from . import checkpoint

__all__ = ["checkpoint"]


def __dir__() -> list[str]:
    return __all__
