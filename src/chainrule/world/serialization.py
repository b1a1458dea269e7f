"""``save`` and ``load``, and the classes that a file may hold beside tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO, Any

from ..interop import system
from ..interop.system import load, save

FILE_LIKE = str | IO[bytes]
MAP_LOCATION = Callable[[Any, str], Any] | str | dict[str, str] | None
DEFAULT_PROTOCOL = 2


class SourceChangeWarning(Warning):
    """Of whole modules whose source has changed since they were pickled."""


def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Let ``load`` make instances of these classes."""
    system.SAFE.extend(safe_globals)


def get_safe_globals() -> list[Any]:
    """What ``add_safe_globals`` was given."""
    return list(system.SAFE)


def clear_safe_globals() -> None:
    """Forget what ``add_safe_globals`` was given."""
    system.SAFE.clear()


class safe_globals:
    """``with safe_globals([Class]):`` lets ``load`` make instances of these classes."""

    def __init__(self, safe_globals: Sequence[Any]) -> None:
        self.classes = list(safe_globals)

    def __enter__(self) -> None:
        self.before = list(system.SAFE)
        system.SAFE.extend(self.classes)

    def __exit__(self, *exc: Any) -> None:
        system.SAFE[:] = self.before


__all__ = [
    "SourceChangeWarning",
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]
