"""What ``use_deterministic_algorithms`` does to memory that is never written to: ``fill_uninitialized_memory = False`` leaves it alone."""

from __future__ import annotations

import sys
from types import ModuleType

from ..ops.shape.create import Unwritten

fill_uninitialized_memory: bool


class _Module(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether ``empty`` and its like fill memory with NaN or the largest integer under deterministic algorithms."""
        return Unwritten.fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, on: bool) -> None:
        if not isinstance(on, bool):
            raise RuntimeError(f"expected a bool, but got {type(on).__name__}")
        Unwritten.fill = on


sys.modules[__name__].__class__ = _Module
