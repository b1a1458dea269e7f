"""Mixed programs give what mathematics says, under every transform: a sample of `python -m chainrule.testing.programs`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings

import chainrule as cr
from chainrule.testing.programs import Line, Program, Var
from chainrule.testing.programs.cells import CELLS, check
from chainrule.testing.programs.cli import campaign, main
from chainrule.testing.programs.judge import Judge, Point
from chainrule.testing.programs.maker import from_seed
from chainrule.testing.programs.shrink import failure, shrink
from chainrule.testing.programs.strategy import programs
from chainrule.testing.programs.tables import FAMILIES

BLOCKS, SIZE = 16, 16


def assert_right(program: Program) -> None:
    for v in check(program):
        if v.state not in ("right", "no oracle"):
            small, verdict = shrink(program, v.cell, v, seconds=3)
            pytest.fail(f"{verdict.cell}: {verdict.state}, {verdict.note}\n{small.source()}", pytrace=False)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_programs(block: int) -> None:
    for seed in range(block * SIZE, (block + 1) * SIZE):
        assert_right(from_seed(seed))


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(programs())
def test_programs_that_hypothesis_draws(program: Program) -> None:
    note(program.source())
    for v in check(program):
        assert v.state in ("right", "no oracle"), f"{v.cell}: {v.state}, {v.note}"


# -- the generator ----------------------------------------------------------------------------------------------------


def test_every_family_is_drawn_and_judged() -> None:
    """No statement is out of reach, programs have derivatives, and nearly all have an oracle."""
    families: Counter[str] = Counter()
    makers: set[str] = set()
    for seed in range(1500):
        kinds = from_seed(seed).kinds
        families.update({k.split("/")[0] for k in kinds})
        makers.update(kinds)
    assert set(families) >= {f.name for f in FAMILIES}
    assert min(families[f.name] for f in FAMILIES) > 50
    assert len(makers) > 250
    gradients = silent = 0
    for seed in range(60):
        program = from_seed(seed)
        silent += check(program, ["value"])[0].state == "no oracle"
        rng = np.random.default_rng(seed)
        gradients += bool(np.abs(Point(Judge(program), rng.uniform(-1, 1, program.shape)).gradient).max() > 1e-6)
    assert gradients > 44
    assert silent <= 3


def test_a_seed_stands_for_a_program() -> None:
    assert from_seed(7).source() == from_seed(7).source()
    assert from_seed(7).source() != from_seed(8).source()
    assert "import torch as cr" in from_seed(7).source("torch")


# -- the judge --------------------------------------------------------------------------------------------------------


def program(*lines: Line, returns: str = "v2", shape: tuple[int, ...] = (3,)) -> Program:
    return Program(shape, lines, (returns,), 0)


V1, V2 = Var("v1", (3,), 1), Var("v2", (3,), 2)
SINE = program(Line("sin", "{o} = cr.sin({0})", ("x",), (V1,)), Line("mul", "{o} = {0} * {1}", ("v1", "x"), (V2,)))


def states(p: Program, *cells: str) -> set[str]:
    return {v.state for v in check(p, list(cells) or None)}


@pytest.mark.parametrize("cell", [c for c in CELLS if c not in ("value", "vmap")])
def test_the_judge_rejects_a_derivative(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A derivative that is off by 1.001, where all values are right, is found in every cell."""
    right = cr.sin
    assert states(SINE, cell) == {"right"}
    monkeypatch.setattr(cr, "sin", lambda x: 1.001 * right(x) - 0.001 * right(x.detach()))
    assert states(SINE, cell) == {"wrong"}


@pytest.mark.parametrize("cell", ["value", "vmap"])
def test_the_judge_rejects_a_value(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = cr.sin
    monkeypatch.setattr(cr, "sin", lambda x: right(x) * (1 + 1e-7))
    assert states(SINE, cell) == {"wrong"}


def test_the_judge_holds_fixed_what_is_cut() -> None:
    """d/dx (x sin(c)), c = x held fixed, is sin(x); a program that does not cut is wrong in every derivative."""
    cut = program(
        Line("detach", "{o} = {0}.detach()", ("x",), (V1,), judge="{o} = cut({0})"),
        Line("mul", "{o} = {0} * cr.sin({1})", ("x", "v1"), (V2,)),
    )
    assert states(cut) == {"right"}
    not_cut = cut.with_lines((Line("detach", "{o} = {0} * 1.0", ("x",), (V1,), judge="{o} = cut({0})"), cut.lines[1]))
    assert {v.cell for v in check(not_cut) if v.state == "right"} == {"value", "vmap"}


def test_no_grad_cuts_reverse_mode_alone() -> None:
    body = (Line("sin", "{o} = cr.sin({0})", ("x",), (V1,)),)
    line = Line("no_grad", "with cr.no_grad():", body=body, marks=frozenset({"no_grad"}))
    p = program(line, Line("mul", "{o} = {0} * {1}", ("v1", "x"), (V2,)))
    assert states(p) == {"right"}
    x = np.array([0.3, 0.5, -0.7])
    point = Point(Judge(p), x)
    w = point.weights[0]
    np.testing.assert_allclose(point.gradient, w * np.sin(x))
    np.testing.assert_allclose(point.tangent(np.ones(3)), (w * (np.sin(x) + x * np.cos(x))).sum())


def test_the_judge_rejects_a_lost_write() -> None:
    p = program(
        Line("sin", "{o} = cr.sin({0})", ("x",), (V1,)),
        Line("write", "{0}[1:].clone().mul_(0.5)", ("v1",), judge="{0}[1:].mul_(0.5)"),
        Line("mul", "{o} = {0} * {1}", ("v1", "x"), (V2,)),
    )
    assert "right" not in states(p)


# -- small programs, and the command line -----------------------------------------------------------------------------


def test_failures_are_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong derivative of one op is shown by a program of a line or two."""
    right = cr.tanh
    monkeypatch.setattr(cr, "tanh", lambda x: 1.001 * right(x) - 0.001 * right(x.detach()))
    seed = next(s for s in range(1000) if "cr.tanh(" in from_seed(s).body and states(from_seed(s), "grad") == {"wrong"})
    (verdict,) = check(from_seed(seed), ["grad"])
    small, again = shrink(from_seed(seed), "grad", verdict, seconds=10)
    assert failure(again) == failure(verdict)
    assert "tanh" in small.body
    assert len(small.lines) <= 3


def test_a_campaign_counts_and_groups(monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Any) -> None:
    def broken(x: Any, *args: Any, **kw: Any) -> Any:
        raise ZeroDivisionError("no sine today")

    monkeypatch.setattr(cr, "sin", broken)
    tally = campaign(range(12), ["value"], effort=1)
    (group,) = [g for key, g in tally.groups.items() if "no sine" in key[1]]
    assert group.program is not None and "cr.sin(" in group.program.body
    assert tally.counts["value", "raised"] == group.count
    path = tmp_path / "report.md"
    assert main(["--count", "12", "--cells", "value", "--effort", "0.2", "--report", str(path)]) == 1
    assert "no sine today" in path.read_text()
    assert path.read_text() == capsys.readouterr().out
