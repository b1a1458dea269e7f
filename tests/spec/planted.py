"""``python -m tests.spec.planted``: is every row sharp? Errors are planted in what a row's tests go through, and one of them must fail.

The slots of all rules are watched while the tests of the list run. A row's own slots are those that the fewest rows go through; each
of them is bent, as ``python -m chainrule.testing.mutants`` does, and the row's tests run on it. In rows without a slot of their own
(kernels, entry points) the values of their own ops are bent.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from chainrule.core.op import OPS
from chainrule.core.tensor import Tensor
from chainrule.testing.mutants.bend import FACTOR, Mutant, Slot, mutated, recording, watching, ways
from chainrule.testing.mutants.hunt import EQUIVALENT

FOLDER = "tests/spec"
VALUE = "value scaled by 1.001"
QUIET = ["-q", "--show-capture=no", "--no-header", "--no-summary", "--tb=no", "-p", "no:cacheprovider"]


class Watch:
    """What the tests of every row go through: slots of rules, and ops that ran."""

    def __init__(self) -> None:
        self.rows: dict[Slot, set[str]] = defaultdict(set)
        self.tests: dict[tuple[str, Slot, str], list[str]] = defaultdict(list)  # by what was seen in the slot there
        self.seconds: dict[str, float] = {}
        self.covered: set[str] = set()

    def seen(self, row: str, slot: Slot) -> set[str]:
        """What the row's own tests saw in a slot: a conjugate is no error where they are real, whatever others pass through it."""
        return {k for k in ("nonzero", "complex") if (row, slot, k) in self.tests}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        rows = [i for m in item.iter_markers("row") for i in m.args]
        self.covered.update(rows)
        ran: set[str] = set()
        start = time.perf_counter()
        with recording() as seen, running(ran):
            result = yield
        self.seconds[item.nodeid] = time.perf_counter() - start
        for name in ran:
            seen.setdefault(Slot(name, "value", 0), set()).add("nonzero")
        for slot, kinds in seen.items():
            if "nonzero" in kinds:
                self.rows[slot].update(rows)
                for r in rows:
                    for k in kinds:
                        self.tests[r, slot, k].append(item.nodeid)
        return result


@contextlib.contextmanager
def running(ran: set[str]) -> Iterator[None]:
    """The names of the ops whose bodies run inside."""
    with contextlib.ExitStack() as stack:
        for o in list(OPS.values()):
            stack.enter_context(_run_of(o, lambda o, args, kw: ran.add(o.name) or type(o).run(o, args, kw)))
        yield


@contextlib.contextmanager
def _run_of(o: Any, run: Any) -> Iterator[None]:
    o.run = lambda args, kw: run(o, args, kw)
    try:
        yield
    finally:
        del o.run


@contextlib.contextmanager
def bent_value(name: str) -> Iterator[None]:
    """The op with its first result a little off."""

    def run(o: Any, args: Any, kw: Any) -> Any:
        y = type(o).run(o, args, kw)
        first = y[0] if type(y) is tuple else y
        if type(first) is not Tensor or first._value.dtype.kind not in "fc":
            return y
        new = Tensor(first._value * first._value.dtype.type(FACTOR))
        return (new, *y[1:]) if type(y) is tuple else new

    with _run_of(OPS[name], run):
        yield


def of_rows(w: Watch, count: int, seed: int, some: int | None = None) -> Iterator[tuple[str, Mutant, list[str]]]:
    """For each row (or `some` of them) `count` mutants of its own, and the tests that go through them, the quickest first."""
    rng = random.Random(seed)
    every = sorted({r for rows in w.rows.values() for r in rows})
    for row in every if some is None else sorted(rng.sample(every, min(some, len(every)))):
        mine = [s for s in w.rows if row in w.rows[s]]
        for kind in (True, False):
            slots = [s for s in mine if (s.part == "value") is not kind]
            rarest = sorted(slots, key=lambda s: (len(w.rows[s]), rng.random()))[: 2 * count]
            few = max(3, min((len(w.rows[s]) for s in rarest), default=0))
            made = [
                m
                for s in rarest
                if len(w.rows[s]) <= few
                for m in ([Mutant(s, VALUE)] if s.part == "value" else ways(s, frozenset(w.seen(row, s))))
                if m not in EQUIVALENT
            ]
            for m in rng.sample(made, min(count, len(made))):
                kind = "complex" if m.way == "conjugated" else "nonzero"
                yield row, m, sorted(set(w.tests[row, m.slot, kind]), key=lambda t: w.seconds[t])
            if made:
                break


def _fails(task: tuple[str, Mutant, list[str]]) -> tuple[str, Mutant, bool]:
    row, m, tests = task
    with bent_value(m.slot.op) if m.way == VALUE else mutated(m), contextlib.redirect_stdout(io.StringIO()):
        code = pytest.main([*QUIET, "-x", *tests])
    return row, m, code == pytest.ExitCode.TESTS_FAILED


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.spec.planted", description=__doc__)
    parser.add_argument("--count", type=int, default=4, help="errors a row")
    parser.add_argument("--rows", type=int, help="so many rows, drawn; all when not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="a part of the tests, as pytest's -k")
    args = parser.parse_args(argv)
    w = Watch()
    with watching():
        pytest.main([*QUIET, "-k", args.only, FOLDER], [w])
    tasks = list(of_rows(w, args.count, args.seed, args.rows))
    rows = {row for row, _, _ in tasks}
    print(f"{len(tasks)} errors in {len(rows)} rows", flush=True)
    missed = 0
    with multiprocessing.get_context("fork").Pool(args.jobs, maxtasksperchild=20) as pool:
        for row, m, noticed in pool.imap_unordered(_fails, tasks):
            if not noticed:
                missed += 1
                print(f"not noticed  {row}: {m if m.way != VALUE else f'{m.slot.op}: {m.way}'}", flush=True)
    print(f"{len(tasks) - missed} of {len(tasks)} noticed")
    if args.rows is None and (silent := sorted(w.covered - rows)):
        print(f"no error of their own: {', '.join(silent)}")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
