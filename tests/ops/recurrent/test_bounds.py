"""Compiled loops look at addresses alone: steps that speak of rows that are not there are refused before they run."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.kernels import available
from chainrule.kernels.recurrent import forward_loop


@pytest.mark.skipif(not available(), reason="no kernel compiler here")
@pytest.mark.parametrize("steps", [[3, 2, 1], [4, 1], [2, -1, 4]], ids=["too many rows", "too many states", "negative"])
def test_rows_that_are_not_there(steps: list[int]) -> None:
    count = np.array(steps, np.int64)
    at = np.concatenate([[0], np.cumsum(count)[:-1]])
    x, h, w, b = np.zeros((5, 1, 2)), np.zeros((3, 1, 2)), np.zeros((1, 2, 2)), np.zeros((1, 2))
    with pytest.raises(RuntimeError, match=r"batch_sizes .* need .* rows"):
        forward_loop("tanh", x, h, None, w, b, None, at, count)


@pytest.mark.skipif(not available(), reason="no kernel compiler here")
def test_rows_that_are_there() -> None:
    count = np.array([3, 2], np.int64)
    x, h, w, b = np.ones((5, 1, 2)), np.zeros((3, 1, 2)), np.zeros((1, 2, 2)), np.zeros((1, 2))
    y = forward_loop("tanh", x, h, None, w, b, None, np.array([0, 3]), count)[0]
    np.testing.assert_allclose(y, np.tanh(1.0))
