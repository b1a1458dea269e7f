"""Weighted sums of entries by number and their transposes, compiled, against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.kernels import compiler
from chainrule.kernels import gathers as kernels
from chainrule.ops.conv.gathers import gather_add_p, gather_dot_p, gather_sum_p

pytestmark = pytest.mark.skipif(not compiler.available(), reason="no compiler here: plain bodies run")


def _refuse(*args: Any) -> Any:
    raise kernels.NotSupported


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 7, 4, 15), (2, 40, 1, 16), (5, 9, 16, 300)], ids=str)
@pytest.mark.parametrize("kind, tolerance", [(np.float64, 1e-13), (np.float32, 2e-5)])
def test_three_sums(sizes: tuple[int, int, int, int], kind: Any, tolerance: float) -> None:
    c, s, t, p = sizes
    rng = np.random.default_rng(s)
    x, w, y = (rng.standard_normal(z).astype(kind) for z in ((2, c, s), (3, 1, t, p), (c, p)))
    at = rng.integers(-1, s, (2, t, p))
    pairs = [(gather_sum_p, (x, w)), (gather_add_p, (y, w)), (gather_dot_p, (x, y))]
    for op, (a, b) in pairs:
        got = op.body(a, b, at, entries=s)
        with pytest.MonkeyPatch.context() as m:
            m.setattr(kernels, "run", _refuse)
            want = op.body(a, b, at, entries=s)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, atol=tolerance)


def test_what_is_not_read_spoils_nothing() -> None:
    x, w = np.array([[np.inf, 2.0]]), np.array([[np.nan, 1.0]])
    at = np.array([[-1, 1]])
    np.testing.assert_array_equal(gather_sum_p.body(x, w, at, entries=2), [[0.0, 2.0]])
    np.testing.assert_array_equal(gather_add_p.body(np.ones((1, 2)), w, at, entries=2), [[0.0, 1.0]])
