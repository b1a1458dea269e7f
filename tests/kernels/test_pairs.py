"""Distances and weighted differences of all pairs of points, compiled, against differences kept in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.kernels import compiler, pairs

pytestmark = pytest.mark.skipif(not compiler.available(), reason="no compiler here: plain bodies run")


@pytest.mark.parametrize("kind, tolerance", [(np.float64, 1e-14), (np.float32, 3e-7)])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 17, 3), (4, 16, 4), (9, 40, 7), (3, 5000, 2)], ids=str)
def test_all_pairs(sizes: tuple[int, int, int], kind: Any, tolerance: float) -> None:
    p, r, m = sizes
    rng = np.random.default_rng(p * r)
    a, b, w = (rng.standard_normal(z).astype(kind) for z in ((2, p, m), (3, 1, r, m), (2, p, r)))
    apart = a[..., :, None, :].astype(np.float64) - b[..., None, :, :]
    got = pairs.distances(a, b)
    assert got.shape == (3, 2, p, r) and got.dtype == kind
    np.testing.assert_allclose(got, np.sqrt(np.square(apart).sum(-1)), rtol=tolerance)
    np.testing.assert_array_equal(pairs.distances(np.asfortranarray(a), b[..., ::-1, :])[..., ::-1], got)
    want = (w[..., None] * apart).sum(-2)
    np.testing.assert_allclose(pairs.pull(w, a, b), want, atol=tolerance * 4 * np.sqrt(r) * 10)


@pytest.mark.parametrize("size", [1e-200, 1e-160, 1e160, 1e200])
def test_the_whole_range(size: float) -> None:
    a, b = np.array([[3.0, 0.0]]) * size, np.array([[0.0, 4.0], [3.0, 0.0]]) * size
    np.testing.assert_allclose(pairs.distances(a, b), [[5 * size, 0]], rtol=1e-15)
    if 1e-30 < size**0.1 < 1e30:
        a32, b32 = (np.float32(v / size * 1e25) for v in (a, b))
        np.testing.assert_allclose(pairs.distances(a32, b32), [[5e25, 0]], rtol=1e-7)


def test_infinite_points() -> None:
    y = pairs.distances(np.array([[np.inf, 0.0], [1.0, np.nan]]), np.array([[0.0, 0.0], [np.inf, 0.0]]))
    assert y[0, 0] == np.inf and np.isnan(y[0, 1]) and np.isnan(y[1]).all()
