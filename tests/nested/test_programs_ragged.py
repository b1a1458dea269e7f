"""Random ragged programs in every mode, and the programs that once failed."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.testing.ragged_programs import MODES, draw, judge

# Seed, number and mode of programs that found a defect.
FOUND = [
    (0, 18, "hessians"), (0, 37, "ensemble_first"), (0, 99, "ensemble_first"), (0, 106, "hessians"), (0, 126, "ensemble_of_maps"),
    (0, 144, "value"), (0, 180, "ensemble_of_maps"), (0, 223, "value"), (0, 330, "ensemble_first"), (0, 450, "hessians"),
]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_programs(mode: str) -> None:
    with np.errstate(all="ignore"):
        for number in range(25):
            judge(draw(11, number), mode, number)


@pytest.mark.parametrize(("seed", "number", "mode"), FOUND)
def test_found(seed: int, number: int, mode: str) -> None:
    with np.errstate(all="ignore"):
        judge(draw(seed, number), mode, number)
