"""``profiler``: the names; blocks are timed as a whole."""

from __future__ import annotations

import enum
import time
from typing import Any


class ProfilerActivity(enum.Enum):
    """What is measured."""

    CPU, CUDA, XPU = range(3)


class record_function:
    """A named block, as a ``with`` or a decorator."""

    def __init__(self, name: str, args: Any = None) -> None:
        self.name = name

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *exc: Any) -> None:
        pass

    def __call__(self, f: Any) -> Any:
        return f


class profile:
    """``with profile() as p:`` measures the time of the block; ``p.total`` is in seconds."""

    def __init__(self, *args: Any, **kw: Any) -> None:
        self.total = 0.0

    def __enter__(self) -> profile:
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.total = time.perf_counter() - self._start

    def step(self) -> None:
        """The next step begins."""

    start, stop = __enter__, __exit__

    def key_averages(self, *args: Any, **kw: Any) -> Any:
        """Itself: one row."""
        return self

    def table(self, *args: Any, **kw: Any) -> str:
        """The time of the block."""
        return f"total {self.total:.6f} s"


def schedule(**kw: Any) -> Any:
    """Accepted."""
    return lambda step: None


def tensorboard_trace_handler(*args: Any, **kw: Any) -> Any:
    """Accepted."""
    return lambda p: None
