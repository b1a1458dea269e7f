"""Whose memory an array shows: who shares some with whom is asked at every call, of many arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy import may_share_memory


def _owner(a: np.ndarray) -> Any:
    """What holds the memory that an array shows."""
    b: Any = a
    while isinstance(b, np.ndarray) and b.base is not None:
        b = b.base
    return b


def apart(arrays: list[Any]) -> bool:
    """Whether every array has memory of its own, as one sees at a glance: what it is that they show need not be looked at."""
    owners = set()
    for a in arrays:
        if type(a) is not np.ndarray:
            return False
        if (owner := a.base) is None:
            owner = a
        elif not hasattr(owner, "storage"):
            return False
        owners.add(id(owner))
    return len(owners) == len(arrays)


class Places:
    """Arrays by the owner of their memory: those of two owners are apart, unless one is not ours and may show anything."""

    def __init__(self, arrays: Iterable[np.ndarray] = ()) -> None:
        self.of: dict[int, list[np.ndarray]] = {}
        self.foreign: list[np.ndarray] = []
        self.owners: list[Any] = []  # their numbers stay theirs
        for a in arrays:
            self.add(a)

    def add(self, a: np.ndarray) -> None:
        owner = _owner(a)
        if isinstance(owner, np.ndarray) or hasattr(owner, "storage"):  # NumPy's memory, or the pool's
            self.owners.append(owner)
            self.of.setdefault(id(owner), []).append(a)
        else:
            self.foreign.append(a)

    def _near(self, a: np.ndarray) -> Iterator[np.ndarray]:
        owner = _owner(a)
        if isinstance(owner, np.ndarray) or hasattr(owner, "storage"):
            yield from self.of.get(id(owner), ())
        else:
            for group in self.of.values():
                yield from group
        yield from self.foreign

    def shared(self, a: np.ndarray, but: Any = None) -> bool:
        """Whether `a` is one of the arrays other than `but`, or shows memory of one."""
        return any(b is not but and (b is a or (a.size > 0 and may_share_memory(a, b))) for b in self._near(a))
