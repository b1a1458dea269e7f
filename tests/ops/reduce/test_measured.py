"""What ``make precision`` measures of reductions, on small arrays; and that it would notice."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import chainrule as cr
from chainrule.testing.precision import reductions

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("name", [*reductions.REDUCTIONS, *reductions.SCANS])
def test_within_the_limit(name: str) -> None:
    for row in reductions.rows([2000], list(reductions.TYPES), [name], torch):
        mine, other = row[-2:]
        assert mine <= reductions.LIMIT * max(other, 1.0), row


@pytest.mark.parametrize("name", [*reductions.REDUCTIONS, *reductions.SCANS])
def test_an_error_of_three_units_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every = {**reductions.REDUCTIONS, **reductions.SCANS}
    f, truth, unit = every[name]

    def off(x: cr.Tensor, axis: object) -> cr.Tensor:
        return f(x, axis) * (1 + (8 * 2.0**-24 if isinstance(x, cr.Tensor) else 0))

    table = reductions.SCANS if name in reductions.SCANS else reductions.REDUCTIONS
    monkeypatch.setitem(table, name, (off, truth, unit))
    found = [r[-2] > reductions.LIMIT * max(r[-1], 1.0) for r in reductions.rows([64], ["float32"], [name], torch)]
    assert any(found)


def test_the_page(tmp_path: object) -> None:
    page = tmp_path / "precision.md"  # type: ignore[operator]
    page.write_text(f"before\n{reductions.BEGIN}\nold\n{reductions.END}\nafter\n")
    worst = {("sum", "float32", "4x4"): [1.5, "contiguous, axis 0", 2.0], ("sum", "float32", "8x2"): [2.5, "x", np.inf]}
    reductions.write(worst, 7, 0, tmp_path)  # type: ignore[arg-type]
    text = page.read_text()
    assert "old" not in text and "| sum | float32 | 2.50 | 8x2, x | all |" in text
    assert re.match(r"before\n.*after\n$", text, re.S) and math.isclose(text.count("7 errors"), 1)
