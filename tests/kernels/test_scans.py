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
        for product, fn in ((False, np.add), (True, np.multiply)):
            with np.errstate(over="ignore", under="ignore"):
                want = fn.accumulate(x.astype(np.float64), axis=d).astype(dtype)
            np.testing.assert_array_equal(kernels.scans.scan(x, d, product), want)
            turned = np.asfortranarray(x)
            np.testing.assert_array_equal(kernels.scans.scan(turned, d, product), want)


def test_there_is_no_scan_of_nothing_or_of_integers():
    for x in (np.ones((0, 3), np.float32), np.ones((3, 3), np.int64)):
        with pytest.raises(kernels.NotSupported):
            kernels.scans.scan(x, -1, False)
