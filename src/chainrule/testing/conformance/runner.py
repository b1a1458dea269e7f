"""Workers in processes of their own: a hang or a crash in an op costs one row, not the run."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .adapters import Library, load_library
from .entry import quiet, single_thread

Job = Callable[[Any, Library], Any]
_context: Any = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")


class _Worker:
    """A child that answers one item at a time."""

    def __init__(self, job: Job, library: str, items: Sequence[Any]) -> None:
        self.connection, theirs = _context.Pipe()
        self.process = _context.Process(target=_serve, args=(theirs, job, library, items), daemon=True)
        self.process.start()
        theirs.close()
        self.current: int | None = None
        self.deadline = 0.0

    def give(self, index: int, timeout: float) -> None:
        self.current, self.deadline = index, time.monotonic() + timeout
        self.connection.send(index)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _serve(connection: Any, job: Job, library: str, items: Sequence[Any]) -> None:
    single_thread()
    lib: Library | None = None
    while True:
        try:
            index = connection.recv()
        except EOFError:
            return
        try:
            with quiet():
                lib = lib or load_library(library)
                connection.send(("done", job(items[index], lib)))
        except Exception as e:
            connection.send(("failed", f"{type(e).__name__}: {e}"))


def run_all(
    job: Job, items: Sequence[Any], library: str, *, jobs: int, timeout: float
) -> Iterator[tuple[int, str, Any]]:
    """(index, outcome, result) of items as they finish; outcome is ``done``, ``failed``, ``timeout`` or ``crashed``."""
    waiting = list(range(len(items)))[::-1]
    workers = [_Worker(job, library, items) for _ in range(min(jobs, max(len(items), 1)))]
    try:
        for w in workers:
            _feed(w, waiting, timeout)
        while busy := [w for w in workers if w.current is not None]:
            pause = max(0.0, min(w.deadline for w in busy) - time.monotonic())
            ready = multiprocessing.connection.wait([w.connection for w in busy], pause)
            for w in busy:
                index = w.current
                assert index is not None
                if w.connection in ready:
                    try:
                        outcome, result = w.connection.recv()
                    except (EOFError, ConnectionResetError):
                        w.process.join()
                        outcome, result = "crashed", f"the process ended with code {w.process.exitcode}"
                elif time.monotonic() >= w.deadline:
                    outcome, result = "timeout", f"no answer in {timeout:g} s"
                else:
                    continue
                if outcome in ("crashed", "timeout"):
                    w.stop()
                    fresh = _Worker(job, library, items)
                    workers[workers.index(w)] = w = fresh
                w.current = None
                _feed(w, waiting, timeout)
                yield index, outcome, result
    finally:
        for w in workers:
            w.stop()


def _feed(worker: _Worker, waiting: list[int], timeout: float) -> None:
    if waiting:
        worker.give(waiting.pop(), timeout)
