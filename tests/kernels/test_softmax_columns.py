"""softmax and log_softmax along any dim, and their reverse rules, beside NumPy in float64."""

import numpy as np
import pytest

from chainrule import kernels

pytestmark = pytest.mark.skipif(not kernels.available(), reason="llvmlite is not there")
SHAPES = [(3, 5), (2, 7, 300), (4, 1, 3), (5, 3), (2, 3, 4, 5), (17, 1000)]
DIGITS = {"f4": 1e-6, "f8": 1e-14, "f2": 2e-3}


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("log", [False, True])
def test_softmax_along_every_dim(shape, log, dtype):
    rng = np.random.default_rng(0)
    x = (3 * rng.standard_normal(shape)).astype(dtype)
    x.flat[3], x.flat[7] = -np.inf, np.nan
    g = rng.standard_normal(shape).astype(dtype)
    w, tol = x.astype(np.float64), DIGITS[dtype]
    for dim in range(-len(shape), 0):
        with np.errstate(invalid="ignore"):
            z = w - w.max(dim, keepdims=True)
            want = z - np.log(np.exp(z).sum(dim, keepdims=True))
        want = want if log else np.exp(want)
        got = kernels.softmax_along(x, dim, log)(x)
        assert got.dtype == x.dtype
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=4 * tol, atol=8 * tol)
        y = np.nan_to_num(want, nan=0.5, neginf=-30.0).astype(dtype)
        a, b = g.astype(np.float64), y.astype(np.float64)
        want = a - np.exp(b) * a.sum(dim, keepdims=True) if log else b * (a - (a * b).sum(dim, keepdims=True))
        pull = kernels.softmax_pull_along(g, y, dim, log)
        got = pull(g, y).astype(np.float64)
        np.testing.assert_allclose(got, want, rtol=4 * tol, atol=16 * tol * max(1.0, np.abs(want).max()))
        # Neither depends on the layout.
        turned = [np.ascontiguousarray(v.T).T for v in (g, y)]
        np.testing.assert_array_equal(pull(*turned).astype(np.float64), got)


def test_what_is_left_of_a_probability_close_to_one():
    y = np.array([[-1e-6], [-13.8]])
    y32, g = y.astype(np.float32), np.array([[1.0], [0.0]], np.float32)
    got = kernels.softmax_pull_along(g, y32, 0, True)(g, y32)
    np.testing.assert_allclose(got[0, 0], -np.expm1(np.float64(y32[0, 0])), rtol=1e-6)
