"""progress: a bar in a terminal, a few lines in a pipe or a log file, one line that changes in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterable, Sized
from typing import Any, Generic, TextIO, TypeVar

T = TypeVar("T")


class progress(Generic[T]):
    """Iterate behind a progress bar: ``for batch in (bar := cr.progress(loader, "training")): ...; bar.set(loss=loss)``.

    In a terminal it is one line that is redrawn at most twenty times a second; where the output is a pipe or a file, a line at every tenth of the
    way; nothing at all with ``CHAINRULE_PROGRESS=0``. An int counts: ``cr.progress(100)``.
    """

    def __init__(
        self, items: Iterable[T] | int, text: str = "", *, total: int | None = None, file: TextIO | None = None
    ) -> None:
        self.items: Iterable[Any] = range(items) if isinstance(items, int) else items
        self.text, self.file = text, file or sys.stderr
        self.total = total if total is not None else len(self.items) if isinstance(self.items, Sized) else None
        self.notes: dict[str, Any] = {}
        self.count = 0
        self.kind = _kind(self.file)
        self._shown = 0.0
        self._tenth = -1

    def set(self, **notes: Any) -> None:
        """Show these values behind the bar."""
        self.notes.update(notes)

    def __len__(self) -> int:
        if self.total is None:
            raise TypeError("progress: the number of items is not known")
        return self.total

    def __iter__(self) -> Generator[T, None, None]:
        self._start = time.perf_counter()
        try:
            for item in self.items:
                yield item
                self.count += 1
                self._draw()
        finally:
            self._draw(last=True)

    def _draw(self, last: bool = False) -> None:
        if self.kind == "off":
            return
        now = time.perf_counter()
        if self.kind == "log":
            tenth = 10 * self.count // self.total if self.total else int((now - self._start) // 10)
            if (tenth != self._tenth and not last) or (last and not self.total):
                self._tenth = tenth
                print(self.line(now), file=self.file, flush=True)
        elif last or now - self._shown > 0.05:
            self._shown = now
            print(f"\r{self.line(now, bar=True)}\x1b[K" if self.kind == "terminal" else f"\r{self.line(now, bar=True):<100}", end="\n" if last else "",
                  file=self.file, flush=True)  # fmt: skip

    def line(self, now: float, bar: bool = False) -> str:
        """What is shown: text, bar, count, time, notes."""
        spent = now - self._start
        parts = [self.text] if self.text else []
        if self.total:
            share = self.count / self.total
            if bar:
                full = int(24 * share)
                parts.append(
                    f"[{'█' * full}{'░' * (24 - full)}]"
                    if _unicode(self.file)
                    else f"[{'#' * full}{'.' * (24 - full)}]"
                )
            left = spent / self.count * (self.total - self.count) if self.count else 0.0
            parts.append(f"{self.count}/{self.total}")
            parts.append(f"{_clock(spent)}, {_clock(left)} left" if self.count < self.total else _clock(spent))
        else:
            parts += [str(self.count), _clock(spent)]
        parts += [f"{k} {_short(v)}" for k, v in self.notes.items()]
        return "  ".join(parts)


def _kind(file: Any) -> str:
    """ "terminal", "notebook", "log" or "off"."""
    import os

    if os.environ.get("CHAINRULE_PROGRESS") == "0":
        return "off"
    if getattr(file, "isatty", lambda: False)():
        return "terminal" if os.environ.get("TERM") != "dumb" else "log"
    return "notebook" if "ipykernel" in sys.modules and file in (sys.stderr, sys.stdout) else "log"


def _unicode(file: Any) -> bool:
    return "utf" in (getattr(file, "encoding", None) or "").lower()


def _clock(s: float) -> str:
    return f"{s:.1f} s" if s < 60 else f"{int(s) // 60}:{int(s) % 60:02d}"


def _short(v: Any) -> str:
    v = v.item() if hasattr(v, "item") else v
    return f"{v:.4g}" if isinstance(v, float) else str(v)
