"""Random ragged programs in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.testing.ragged_programs import MODES, draw, judge
from chainrule.testing.ragged_programs.program import Program


@pytest.mark.parametrize("mode", MODES)
def test_programs(mode: str) -> None:
    with np.errstate(all="ignore"):
        for number in range(20):
            judge(draw(11, number), mode, number)


def test_a_wrong_digit_is_noticed_and_a_tie_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that the last digit of the inputs decides are passed over, and no others."""
    judge(draw(911, 3488), "value", 3488)  # the order of equal entries of a product
    assert judge(draw(2002, 3165), "value", 3165)
    assert not judge(draw(2002, 3165), "second", 3165)  # the sine of 1e16, and so its slope
    assert judge(draw(2002, 3111), "value", 3111)  # windows whose sizes agree
    right = Program.on_nests

    def wrong(self: Program, *a: Any) -> list[Any]:
        return [y * 1.00001 if y.dtype.is_floating_point else y for y in right(self, *a)]

    monkeypatch.setattr(Program, "on_nests", wrong)
    for mode in ("value", "first", "second", "ensemble_second"):
        noticed = 0
        for number in range(30):
            try:
                judge(draw(11, number), mode, number)
            except AssertionError:
                noticed += 1
        assert noticed >= 20, mode
