"""Versions that compare by their numbers."""

from __future__ import annotations

import re
from typing import Any


class TorchVersion(str):
    """A version string: ``TorchVersion("2.13.0") >= (2, 1)``, ``> "1.9"``."""

    @staticmethod
    def _key(v: Any) -> tuple[int, ...]:
        parts = v if isinstance(v, tuple | list) else re.findall(r"\d+", str(v).partition("+")[0])
        return tuple(int(p) for p in parts)

    def __lt__(self, other: Any) -> bool:
        return self._key(self) < self._key(other)

    def __le__(self, other: Any) -> bool:
        return self._key(self) <= self._key(other)

    def __gt__(self, other: Any) -> bool:
        return self._key(self) > self._key(other)

    def __ge__(self, other: Any) -> bool:
        return self._key(self) >= self._key(other)

    def __eq__(self, other: object) -> bool:
        return self._key(self) == self._key(other)

    def __hash__(self) -> int:
        return str.__hash__(self)


__version__ = TorchVersion("2.13.0")
