"""Random ragged programs in every mode."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.testing.ragged_programs import MODES, draw, judge


@pytest.mark.parametrize("mode", MODES)
def test_programs(mode: str) -> None:
    with np.errstate(all="ignore"):
        for number in range(20):
            judge(draw(11, number), mode, number)
