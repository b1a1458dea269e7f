"""Python's multiprocessing: tensors travel as what they hold."""

from __future__ import annotations

from multiprocessing import *  # noqa: F403
from multiprocessing import get_context
from typing import Any


def get_all_sharing_strategies() -> set[str]:
    """How tensors travel: one way."""
    return {"file_system"}


def get_sharing_strategy() -> str:
    """How tensors travel."""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted: tensors are copied from process to process."""


def spawn(
    fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
) -> Any:
    """Run ``fn(i, *args)`` in `nprocs` processes; with `join` wait for all, and raise if one failed."""
    context: Any = get_context(start_method)
    running = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]
    for p in running:
        p.start()
    if not join:
        return running
    for p in running:
        p.join()
    failed = [i for i, p in enumerate(running) if p.exitcode]
    if failed:
        raise RuntimeError(f"spawn: process {failed[0]} terminated with exit code {running[failed[0]].exitcode}")
    return None
