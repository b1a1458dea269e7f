"""What a benchmark module is made of: `rows()` yields a `Row` for each piece of work, measured with `best_of`.

The machine may be busy with other things, so the libraries take short turns within each of many rounds and the best
turn of each counts: a disturbance that hits one library's turn does not decide the ratio. Each turn begins with a pause
and a call that is not timed: the worker threads of the library before go on spinning for some milliseconds after
their last job, on a core that belongs to the next, and the caches are full of its data.
"""

from __future__ import annotations

import gc
import importlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

OURS = "chainrule"
SETTLE_S = 0.03  # longer than the worker threads of any of the libraries spin: those of OpenMP do so for some 16 ms


@dataclass(frozen=True)
class Row:
    """One piece of work: best seconds of each library, and the budgets as the largest allowed ratio to a peer.

    `limit` is an absolute budget in seconds, for work that has no peer to be compared with.
    """

    name: str
    seconds: Mapping[str, float]
    budgets: Mapping[str, float]
    limit: float | None = None

    def ratio(self, peer: str) -> float:
        """Our time over the peer's: below 1 is faster than the peer."""
        return self.seconds[OURS] / self.seconds[peer]

    def verdicts(self) -> Iterator[tuple[str, float, float]]:
        """`(peer, measured, budget)` for each budget whose peer was measured; '' stands for the absolute limit."""
        for peer, budget in self.budgets.items():
            if peer in self.seconds:
                yield peer, self.ratio(peer), budget
        if self.limit is not None:
            yield "", self.seconds[OURS], self.limit

    @property
    def unmeasured(self) -> list[str]:
        """Peers that a budget names and that are not installed here: the budget is open, not met."""
        return [peer for peer in self.budgets if peer not in self.seconds]

    @property
    def good(self) -> bool:
        return not self.unmeasured and all(got <= budget for _, got, budget in self.verdicts())


@contextmanager
def no_gc() -> Iterator[None]:
    """The garbage collector off: its pauses belong to whoever happens to run when they come."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
            gc.collect()


def best_of(work: Mapping[str, Callable[[], object]], rounds: int = 60, slice_s: float = 0.004) -> dict[str, float]:
    """The best seconds per call of each function, over `rounds` rounds in which every function has one turn.

    A turn is as many calls as fit into `slice_s` (at least one), found once per function after a warm-up.
    """
    calls = {}
    for name, f in work.items():
        f()
        f()
        start = time.perf_counter()
        f()
        once = time.perf_counter() - start
        calls[name] = max(1, math.ceil(slice_s / max(once, 1e-7)))
    best = dict.fromkeys(work, math.inf)
    with no_gc():
        for _ in range(rounds):
            for name, f in work.items():
                n = range(calls[name])
                time.sleep(SETTLE_S)
                f()
                start = time.perf_counter()
                for _ in n:
                    f()
                best[name] = min(best[name], (time.perf_counter() - start) / len(n))
            gc.collect(0)
    return best


def optional(name: str) -> ModuleType | None:
    """The module, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def show_time(seconds: float) -> str:
    """`1.23 µs`, `45.6 ms`, `0.21 s`: three digits and a unit."""
    for unit, scale in (("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 1000 * scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds:.3g} s"
