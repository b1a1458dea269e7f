"""`python -m chainrule.testing.programs`: a campaign of random programs, its counts, and what fails, made small and grouped."""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .cells import CELLS, Verdict, check
from .maker import from_seed
from .program import Program
from .shrink import failure, shrink, suspects

STATES = ("right", "wrong", "raised", "no oracle")


@dataclass
class Group:
    """Failures of one class: how many there were, in which cells, and the smallest program."""

    count: int = 0
    cells: Counter[str] = field(default_factory=Counter)
    program: Program | None = None
    verdict: Verdict | None = None

    def offer(self, program: Program, verdict: Verdict) -> None:
        if self.program is None or len(program.body) < len(self.program.body):
            self.program, self.verdict = program, verdict


@dataclass
class Tally:
    """What a campaign has found."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    silent: Counter[str] = field(default_factory=Counter)
    groups: dict[tuple[str, ...], Group] = field(default_factory=dict)
    programs: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def join(self, other: Tally) -> None:
        self.counts += other.counts
        self.silent += other.silent
        self.kinds += other.kinds
        self.programs += other.programs
        for key, g in other.groups.items():
            mine = self.groups.setdefault(key, Group())
            mine.count += g.count
            mine.cells += g.cells
            if g.program is not None and g.verdict is not None:
                mine.offer(g.program, g.verdict)


def campaign(seeds: range, cells: list[str] | None, effort: float = 4.0, per_class: int = 3) -> Tally:
    """Run the programs of these seeds. Of each class of failure only a few are made small."""
    tally, met = Tally(), Counter[tuple[str, str]]()
    for seed in seeds:
        program = from_seed(seed)
        tally.programs += 1
        tally.kinds.update(set(program.kinds))
        verdicts = check(program, cells)
        bad = []
        for v in verdicts:
            tally.counts[v.cell, v.state] += 1
            if v.state == "no oracle":
                tally.silent[failure(Verdict("", "raised", v.note))[1]] += 1
            elif v.state != "right":
                bad.append(v)
        # One program stands in for its other cells when these fail alike.
        for key, vs in _alike(bad).items():
            # Wrong results in the same cells are likely, but not surely, of one class.
            alike = key if key[0] == "raised" else (key[0], ", ".join(v.cell for v in vs))
            met[alike] += 1
            if met[alike] > (per_class if key[0] == "raised" else 8 * per_class):
                group = tally.groups.setdefault(key if key[0] == "raised" else (key[0], "more of these"), Group())
                group.count += 1
                group.cells.update(v.cell for v in vs)
                continue
            small, verdict = shrink(program, vs[0].cell, vs[0], effort)
            name = key if key[0] == "raised" else (key[0], *suspects(small))
            group = tally.groups.setdefault(name, Group())
            group.count += 1
            group.cells.update(v.cell for v in vs)
            group.offer(small, verdict)
    return tally


def _alike(bad: list[Verdict]) -> dict[tuple[str, str], list[Verdict]]:
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for v in bad:
        groups.setdefault(failure(v), []).append(v)
    return groups


def report(tally: Tally, seconds: float) -> str:
    """Counts by cell, then the classes of failures, the most frequent first."""
    rows = [f"{tally.programs} programs, {tally.programs / seconds:.1f} a second", ""]
    rows.append(f"{'':18}" + "".join(f"{s:>11}" for s in STATES))
    ran = [c for c in CELLS if any(tally.counts[c, s] for s in STATES)]
    rows += [f"{c:18}" + "".join(f"{tally.counts[c, s]:>11}" for s in STATES) for c in ran]
    if tally.silent:
        rows += ["", "no oracle:"] + [f"{n:>8}  {why}" for why, n in tally.silent.most_common()]
    for key, g in sorted(tally.groups.items(), key=lambda kv: -kv[1].count):
        cells = ", ".join(f"{c} {n}" for c, n in g.cells.most_common())
        rows += ["", f"## {g.count} x {' | '.join(key)}", f"cells: {cells}"]
        if g.program is not None and g.verdict is not None:
            rows += [f"{g.verdict.cell}: {g.verdict.note}", "```python", g.program.source().rstrip(), "```"]
    return "\n".join(rows) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Exit status 1 when a cell of a program is wrong or raises."""
    parser = argparse.ArgumentParser(prog="python -m chainrule.testing.programs", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="first seed; programs have seeds seed * 10**7 + 0, 1, ...")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cells", nargs="*", choices=list(CELLS), help="these cells only")
    parser.add_argument("--effort", type=float, default=4.0, help="seconds to make one failing program small")
    parser.add_argument("--report", type=Path, help="write the report to this file too")
    parser.add_argument("--show", type=int, help="print the program of this seed, its judge's text and its verdicts")
    a = parser.parse_args(argv)
    if a.show is not None:
        program = from_seed(a.show)
        print(program.source(), program.text(judge=True), sep="\n")
        for v in check(program, a.cells):
            print(f"{v.cell:18}{v.state:11}{v.note}")
        return 0
    start = time.monotonic()
    first = a.seed * 10**7
    parts = [(range(first + k, first + a.count, a.jobs), a.cells, a.effort) for k in range(a.jobs)]
    tally = Tally()
    if a.jobs == 1:
        tally = campaign(*parts[0])
    else:
        with multiprocessing.get_context("spawn").Pool(a.jobs) as pool:
            for part in pool.starmap(campaign, parts):
                tally.join(part)
    text = report(tally, time.monotonic() - start)
    print(text, end="")
    if a.report:
        a.report.write_text(text)
    return int(any(tally.counts[c, s] for c in CELLS for s in ("wrong", "raised")))
