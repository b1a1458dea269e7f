"""Compiled sums: one function of the sequence of entries, whichever loop computes it, in every layout, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule import kernels
from chainrule.kernels import sums

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no kernel compiler here")

F64 = np.dtype(np.float64)
TERMS = {
    sums.PLAIN: (lambda x: x, np.add),
    sums.ABS: (np.abs, np.add),
    sums.SQUARE: (np.square, np.add),
    sums.FACTOR: (lambda x: x, np.multiply),
}


def draw(*shape, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * rng.choice([1, 1000], size=shape)).astype(dtype)


def layouts(x):
    """The same matrix in memory orders that take every loop: rows, columns, dense and few, next to each other and apart."""
    m, n = x.shape
    apart = np.zeros((3 * m, 2 * n), x.dtype)
    apart[::3, ::2] = x
    return [x, np.asfortranarray(x), apart[::3, ::2], np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]]


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("k", [1, 3, 17, 65, 140])
@pytest.mark.parametrize("n", [1, 5, 17, 31, 100, 511, 513, 1100, 16385])
def test_every_loop_gives_the_same_bits(n, k, term):
    f, fold = TERMS[term]
    x = draw(n, k) if term != sums.FACTOR else np.exp2(draw(n, k) / 1e5)
    want = fold.reduce(f(x.astype(np.longdouble)), axis=0)
    size = np.abs(want) if term == sums.FACTOR else np.add.reduce(np.abs(f(x.astype(np.float64))), axis=0)
    first = sums.total(x, (0,), term, None, F64)
    exact = n * 2.0**-52 if term in (sums.SQUARE, sums.FACTOR) else 2.0**-24 * 4
    assert np.all(np.abs(first[0] - want) <= exact * size)
    for a in layouts(x)[1:]:
        np.testing.assert_array_equal(sums.total(a, (0,), term, None, F64), first)
    np.testing.assert_array_equal(sums.total(np.ascontiguousarray(x.T), (1,), term, None, F64)[:, 0], first[0])
    np.testing.assert_array_equal(sums.total(x.T, (1,), term, None, F64)[:, 0], first[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(
    "shape,dim", [((7, 40, 30), (0, 2)), ((7, 40, 30), (1,)), ((600, 3, 5), (0, 1)), ((4, 5, 6, 70), (0, 2, 3))]
)
def test_shifted_squares_over_any_axes(shape, dim, dtype):
    x = draw(*shape, dtype=dtype)
    mean = np.ascontiguousarray(x.astype(np.float64).mean(dim, keepdims=True))
    want = np.add.reduce((x.astype(np.longdouble) - mean) ** 2, axis=dim, keepdims=True)
    got = sums.total(x, dim, sums.SQUARE, mean, F64)
    np.testing.assert_allclose(got, want.astype(np.float64), rtol=1e-14)
    turned = np.asfortranarray(x)
    np.testing.assert_array_equal(sums.total(turned, dim, sums.SQUARE, mean, F64), got)


def test_threads_change_no_bit():
    cases = [(draw(40000, 3), (0,)), (draw(300, 700), (0,)), (draw(300, 700), (1,)), (draw(300_000, 1), (0, 1))]
    before, results = kernels.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            kernels.set_num_threads(threads)
            results.append([sums.total(x, d, sums.PLAIN, None, x.dtype).tobytes() for x, d in cases])
    finally:
        kernels.set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_infinities_and_nan_stay_where_they_are():
    x = np.ones((5000, 7), np.float32)
    x[4000, 2], x[10, 3], x[11, 3], x[4999, 5] = np.inf, np.inf, -np.inf, np.nan
    for a in layouts(x):
        y = sums.total(a, (0,), sums.PLAIN, None, x.dtype)[0]
        np.testing.assert_array_equal(y, [5000, 5000, np.inf, np.nan, 5000, np.nan, 5000])


def test_the_order_of_axes_depends_on_the_shape_alone():
    assert sums.stages((1024, 1024), (-2, -1)) == ((1,), (0,))
    assert sums.stages((10**6, 4), (-2, -1)) == ((0, 1),)
    assert sums.stages((64, 8, 32, 32), (-4, -2, -1)) == ((2, 3), (0,))
    assert sums.stages((10**5, 64, 8), (-3, -1)) == ((0,), (2,))
