"""``python -m chainrule.testing.mutants``: bend every rule, run what touches it, print what nobody noticed.

First every law runs once on every sample while the slots of all rules are watched. Each mutant then meets the laws whose run went
through its slot, the cheapest first; what survives these meets the entries of the operator database that go through it.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import multiprocessing
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.op import OPS
from ...core.samples import SAMPLES
from ..laws import LAWS, case_of
from .bend import Mutant, Slot, has_rules, mutated, recording, watch_everything, ways

TRIES = 12  # runs of a law that a mutant meets at most
ENTRIES = 6  # entries of the database that a survivor of the laws meets at most

ANOTHER = "of another example"
_CANCEL = "what it divides by is a pole, which cancels in every function that has a derivative"
# Mutants that compute the same, and why: nobody can notice them.
EQUIVALENT = {
    Mutant(Slot("overwrite", "batch", 0), ANOTHER): "of what is overwritten only the shape counts",
    Mutant(
        Slot("settle", "batch", 1), ANOTHER
    ): "of what rounding is measured by only the greatest element of all examples counts",
    **{Mutant(Slot("over_split", "batch", i), ANOTHER): _CANCEL for i in range(3)},
}

Run = tuple[int, bool, int]  # sample, complex?, law
Kinds = dict[Slot, set[str]]


@dataclass
class Map:
    """Which runs go through which slot, with their seconds, and what was seen in the slots."""

    runs: dict[tuple[Slot, str], dict[Any, float]] = field(default_factory=lambda: defaultdict(dict))
    kinds: Kinds = field(default_factory=lambda: defaultdict(set))

    def add(self, run: Any, seconds: float, seen: Kinds) -> None:
        for slot, kinds in seen.items():
            for kind in kinds:
                self.runs[slot, kind][run] = seconds
            self.kinds[slot] |= kinds

    def of(self, m: Mutant) -> dict[Any, float]:
        """The runs in which the mutant makes a difference at its slot."""
        return self.runs[m.slot, "complex" if m.way == "conjugated" else "nonzero"]


def _run(run: Run) -> None:
    index, cx, law = run
    LAWS[law](case_of(SAMPLES[index], cx), np.random.default_rng(0))


def _quietly(f: Callable[..., Any], *args: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return f(*args)


def _watch(index: int) -> list[tuple[Run, float, Kinds]]:
    out = []
    for cx in (False, True) if SAMPLES[index].cx else (False,):
        for law in range(len(LAWS)):
            start = time.perf_counter()
            with recording() as seen:
                try:
                    _quietly(_run, (index, cx, law))
                except Exception as e:  # a run that fails without a mutant cannot tell one
                    print(f"fails unbent: {LAWS[law].__name__} of {SAMPLES[index]!r}: {e}", flush=True)
                    continue
            out.append(((index, cx, law), time.perf_counter() - start, seen))
    return out


def _watch_entry(name: str) -> tuple[str, float, Kinds]:
    start = time.perf_counter()
    with recording() as seen:
        _failing(name)
    return name, time.perf_counter() - start, seen


@functools.cache
def _library() -> Any:
    from ..conformance.adapters import load_library
    from ..conformance.entry import single_thread

    single_thread()
    return load_library("chainrule")


def _failing(name: str) -> list[tuple[str, str]]:
    """(column, status) of the cells of an entry that are not right."""
    from ..conformance.database import all_entries
    from ..conformance.entry import judge_entry
    from ..conformance.record import FAST

    entry = next(e for e in all_entries() if e.name == name)
    cells = judge_entry(entry, _library(), FAST)["cells"]
    return [(c, cell["status"]) for c, cell in cells.items() if cell["status"] in ("wrong", "raised")]


@functools.cache
def _right_without(name: str) -> tuple[tuple[str, str], ...]:
    return tuple(_failing(name))


def _by_law(task: tuple[Mutant, list[Run]]) -> tuple[Mutant, str | None]:
    """(mutant, who noticed it) among the runs of laws."""
    m, runs = task
    for run in runs:
        try:
            with mutated(m):
                _quietly(_run, run)
        except Exception as e:
            return m, f"{LAWS[run[2]].__name__} of {SAMPLES[run[0]]!r}: {type(e).__name__}"
    return m, None


def _by_entry(task: tuple[Mutant, list[str]]) -> tuple[Mutant, str | None]:
    """(mutant, who noticed it) among entries of the database."""
    m, names = task
    for name in names:
        before = _quietly(_right_without, name)
        with mutated(m):
            found = _quietly(_failing, name)
        if new := [c for c, s in found if (c, s) not in before]:
            return m, f"{name}: {', '.join(new)}"
    return m, None


# -- the hunt ---------------------------------------------------------------------------------------------------------


def _wanted(slot: Slot, only: Sequence[str]) -> bool:
    return not only or any(fnmatch.fnmatchcase(slot.op, p) for p in only)


def all_mutants(seen: Map, only: Sequence[str]) -> list[Mutant]:
    """Every mutant of every slot that can be bent somewhere, those aside that compute the same."""
    slots = sorted(s for s, k in seen.kinds.items() if "nonzero" in k and _wanted(s, only))
    return [m for s in slots for m in ways(s, frozenset(seen.kinds[s])) if m not in EQUIVALENT]


def _cheapest(runs: dict[Any, float], count: int) -> list[Any]:
    return sorted(runs, key=lambda r: (runs[r], r))[:count]


def _reason(m: Mutant, seen: Map) -> str:
    laws = sorted({LAWS[r[2]].__name__ for r in seen.of(m)})
    return f"gone through by {len(seen.of(m))} runs ({', '.join(laws) or 'none'})"


def hunt(only: Sequence[str], limit: int, jobs: int, matrix: bool) -> int:
    """Run it and print the kill rate; 0 when at least 99 of 100 mutants were noticed."""
    start, seen = time.perf_counter(), Map()
    fork = multiprocessing.get_context("fork")
    with fork.Pool(jobs, watch_everything) as pool:
        for found in pool.imap_unordered(_watch, range(len(SAMPLES)), chunksize=8):
            for run in found:
                seen.add(*run)
    with fork.Pool(jobs) as pool:
        mutants = all_mutants(seen, only)
        step = max(1, len(mutants) // limit) if limit else 1
        mutants = mutants[::step][: limit or None]
        print(
            f"{len(mutants)} mutants of {len({m.slot.op for m in mutants})} ops ({time.perf_counter() - start:.0f} s)"
        )
        tasks = [(m, _cheapest(seen.of(m), TRIES)) for m in mutants]
        left = [m for m, who in pool.imap_unordered(_by_law, tasks, chunksize=4) if who is None]
        by_laws = len(mutants) - len(left)
        print(f"{by_laws} noticed by the laws, {len(left)} left ({time.perf_counter() - start:.0f} s)")
        if left and matrix:
            with fork.Pool(jobs, watch_everything) as watchers:
                touched = _touched_by_entries(watchers)
            tasks_left = [(m, _cheapest(touched.of(m), ENTRIES)) for m in left]
            left = [m for m, who in pool.imap_unordered(_by_entry, tasks_left) if who is None]
    _report(mutants, sorted(left), seen)
    print(f"{time.perf_counter() - start:.0f} s")
    return 0 if len(left) <= 0.01 * len(mutants) else 1


def _touched_by_entries(pool: Any) -> Map:
    from ..conformance.database import all_entries

    touched = Map()
    names = [e.name for e in all_entries() if _library().has(e)]
    for found in pool.imap_unordered(_watch_entry, names, chunksize=8):
        touched.add(*found)
    return touched


def _report(mutants: Sequence[Mutant], left: Sequence[Mutant], seen: Map) -> None:
    for m in left:
        print(f"survived  {m}  ({_reason(m, seen)})")
    for m, why in EQUIVALENT.items():
        print(f"the same  {m}  ({why})")
    still = sorted({s.op for s, k in seen.kinds.items() if "tensor" in k and "nonzero" not in k})
    names = {s.op for s in seen.kinds}
    silent = sorted(n for n, o in OPS.items() if o.differentiable and has_rules(o) and n not in names)
    if still:
        print(f"zero in every sample: {len(still)} ops with such a slot ({', '.join(still)})")
    if silent:
        print(f"no sample goes through a rule of: {', '.join(silent)}")
    n = len(mutants)
    print(f"{n - len(left)} of {n} mutants noticed ({100 * (n - len(left)) / max(n, 1):.2f} %)")


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m chainrule.testing.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="ops or globs, comma-separated")
    parser.add_argument("--limit", type=int, default=0, help="that many mutants, spread over all")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--laws", action="store_true", help="the laws alone, without the operator database")
    args = parser.parse_args(argv)
    only = [p.strip() for p in args.only.split(",") if p.strip()]
    return hunt(only, args.limit, args.jobs, matrix=not args.laws)
