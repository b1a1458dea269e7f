"""Where the time goes: ranges that the program names, and the ops that ran on arrays inside them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from ..core.op import OPS, Op
from ..core.watch import WATCHED


class FunctionEvent:
    """One range or op: its name, when it began and how long it took, in microseconds."""

    def __init__(self, name: str, start: float, end: float, parent: FunctionEvent | None = None) -> None:
        self.name = self.key = name
        self.start, self.end, self.cpu_parent = start, end, parent
        self.cpu_children: list[FunctionEvent] = []
        self.count = 1

    @property
    def cpu_time_total(self) -> float:
        """Microseconds from beginning to end."""
        return self.end - self.start

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds that were spent in none of the ranges inside."""
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.name}: {self.cpu_time_total:.1f} us>"


class FunctionEventAvg:
    """All events of one name together."""

    def __init__(self, key: str) -> None:
        self.key, self.count, self.cpu_time_total, self.self_cpu_time_total = key, 0, 0.0, 0.0

    @property
    def cpu_time(self) -> float:
        """Microseconds a call."""
        return self.cpu_time_total / max(self.count, 1)

    def add(self, e: FunctionEvent) -> None:
        """Count another event."""
        self.count += 1
        self.cpu_time_total += e.cpu_time_total
        self.self_cpu_time_total += e.self_cpu_time_total


class EventList(list[Any]):
    """Events, in the order in which they began."""

    def table(self, sort_by: str | None = None, row_limit: int = 100, **kw: Any) -> str:
        """The events as lines of text: name, calls, own and total microseconds."""
        rows = sorted(self, key=lambda e: -getattr(e, sort_by)) if sort_by else list(self)
        lines = [f"{'Name':<32}{'Calls':>8}{'Self CPU us':>16}{'CPU total us':>16}"]
        lines += [
            f"{e.key:<32}{e.count:>8}{e.self_cpu_time_total:>16.1f}{e.cpu_time_total:>16.1f}" for e in rows[:row_limit]
        ]
        return "\n".join(lines)

    __str__ = table

    def key_averages(self, *args: Any, **kw: Any) -> EventList:
        """The events of each name together."""
        found: dict[str, FunctionEventAvg] = {}
        for e in self:
            found.setdefault(e.key, FunctionEventAvg(e.key)).add(e)
        return EventList(found.values())

    def total_average(self) -> FunctionEventAvg:
        """All events together."""
        total = FunctionEventAvg("Total")
        for e in self:
            total.add(e)
        return total

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each counted once."""
        return sum(e.self_cpu_time_total for e in self)


_ACTIVE: ContextVar[tuple[Any, FunctionEvent | None] | None] = ContextVar("chainrule_profile", default=None)


def _now() -> float:
    return time.perf_counter() * 1e6


class record_function:
    """A named range, as a context manager or a decorator; under ``profile`` its time is noted."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._open: list[Any] = []

    def __enter__(self) -> record_function:
        active = _ACTIVE.get()
        if active is None:
            self._open.append(None)
        else:
            events, parent = active
            e = FunctionEvent(self.name, _now(), 0.0, parent)
            events.append(e)
            if parent is not None:
                parent.cpu_children.append(e)
            self._open.append((e, _ACTIVE.set((events, e))))
        return self

    def __exit__(self, *exc: Any) -> None:
        top = self._open.pop()
        if top is not None:
            top[0].end = _now()
            _ACTIVE.reset(top[1])

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def run(*args: Any, **kw: Any) -> Any:
            with record_function(self.name):
                return f(*args, **kw)

        return run


def _timed(op: Op, run: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*args: Any, **kw: Any) -> Any:
        if _ACTIVE.get() is None:
            return run(*args, **kw)
        with record_function(op.name):
            return run(*args, **kw)

    return timed


class profile:
    """Inside, the ops that run on arrays and the ranges of ``record_function`` are timed.

    ``print(p.key_averages().table(sort_by="cpu_time_total"))`` shows them. Python's operators between small plain arrays (``a * b``) go
    straight to NumPy and are not seen: their time counts as that of the range around them.
    """

    _count = 0

    def __init__(self, enabled: bool = True, **options: Any) -> None:
        self.enabled, self.options = enabled, options
        self.function_events: EventList = EventList()

    def __enter__(self) -> profile:
        if self.enabled:
            self._token = _ACTIVE.set((self.function_events, None))
            WATCHED.on += 1  # ops then run one by one
            if not profile._count:
                for op in OPS.values():
                    op.__dict__["run"] = _timed(op, type(op).run.__get__(op))
                    if "bind" in op.__dict__:
                        op.__dict__["_bind"] = op.__dict__.pop("bind")
            profile._count += 1
        return self

    def __exit__(self, *exc: Any) -> None:
        if self.enabled:
            _ACTIVE.reset(self._token)
            WATCHED.on -= 1
            profile._count -= 1
            if not profile._count:
                for op in OPS.values():
                    op.__dict__.pop("run", None)
                    if "_bind" in op.__dict__:
                        op.__dict__["bind"] = op.__dict__.pop("_bind")

    def key_averages(self, *args: Any, **kw: Any) -> EventList:
        """The events of each name together."""
        return self.function_events.key_averages()

    def total_average(self) -> FunctionEventAvg:
        """All events together."""
        return self.function_events.total_average()

    def table(self, *args: Any, **kw: Any) -> str:
        """The events as lines of text."""
        return self.function_events.table(*args, **kw)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each counted once."""
        return self.function_events.self_cpu_time_total

    def __iter__(self) -> Iterator[Any]:
        return iter(self.function_events)

    def __str__(self) -> str:
        return self.function_events.table()


class emit_nvtx:
    """Ranges for NVIDIA's tools: there are no CUDA devices here, so nothing is emitted."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> emit_nvtx:
        return self

    def __exit__(self, *exc: Any) -> None: ...


class emit_itt(emit_nvtx):
    """Ranges for Intel's tools: nothing is emitted."""


def kineto_available() -> bool:
    """Whether PyTorch's tracing library is there: never."""
    return False


__all__ = [
    "EventList", "FunctionEvent", "FunctionEventAvg", "emit_itt", "emit_nvtx", "kineto_available", "profile", "record_function",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
