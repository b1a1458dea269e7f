"""Compiled running sums and products: the bits of NumPy's in double precision, rounded once."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule import kernels

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no kernel compiler here")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(
    "shape", [(100, 33), (7, 1000), (1, 5000), (5000, 1), (3, 70, 65), (9, 500), (16, 300), (2, 3, 4, 200)]
)
def test_scans_are_numpys_in_double_precision(shape, dtype):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    for d in range(-len(shape), 0):
        for what, fn in ((kernels.scans.SUM, np.add), (kernels.scans.PRODUCT, np.multiply)):
            for back in (False, True):
                source = np.flip(x, d) if back else x
                with np.errstate(over="ignore", under="ignore"):
                    want = fn.accumulate(source.astype(np.float64), axis=d).astype(dtype)
                want = np.flip(want, d) if back else want
                np.testing.assert_array_equal(kernels.scans.scan(x, d, what, back), want)
                np.testing.assert_array_equal(kernels.scans.scan(np.asfortranarray(x), d, what, back), want)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (7, 100), (100, 7), (3, 70, 65)])
def test_recurrences_go_step_by_step(shape, back):
    rng = np.random.default_rng(0)
    c, x = (rng.normal(size=shape) for _ in range(2))
    for d in range(-len(shape), 0):
        a, b = (np.moveaxis(v, d, 0) for v in (c, x))
        h = np.zeros_like(b)
        n = len(b)
        for i in range(n - 1, -1, -1) if back else range(n):
            j = i + 1 if back else i - 1
            h[i] = b[i] + (a[j if back else i] * h[j] if 0 <= j < n else 0)
        got = kernels.scans.scan(x, d, kernels.scans.LINEAR, back, c)
        np.testing.assert_allclose(got, np.moveaxis(h, 0, d), rtol=1e-13, atol=1e-13)


def test_there_is_no_scan_of_nothing_or_of_integers():
    for x in (np.ones((0, 3), np.float32), np.ones((3, 3), np.int64)):
        with pytest.raises(kernels.NotSupported):
            kernels.scans.scan(x, -1, kernels.scans.SUM)
