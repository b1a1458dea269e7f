"""Rows and entries by number, and order: compiled loops against NumPy, in every type, layout and size around vectors."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from chainrule import kernels
from chainrule.kernels import indexing, ordering

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no kernel compiler here")
SHAPES = [(1, 1, 1, 1), (5, 7, 1, 9), (3, 6, 70, 4), (2, 5, 16, 33), (100, 3, 2, 5), (1, 9, 130, 1)]
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]


def draw(shape, dtype, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 10).astype(dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, np.int64, np.int32, np.uint8, np.bool_, np.complex64])
@pytest.mark.parametrize("a, n, b, m", SHAPES)
def test_entries_are_read_written_and_added(a, n, b, m, dtype):
    x, src = draw((a, n, b), dtype), draw((a, m, b), dtype, 1)
    i = np.random.default_rng(2).integers(0, n, (a, m, b))
    A, J, B = np.ix_(*map(range, i.shape))
    for at in (i, np.asfortranarray(i), i[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]):
        assert indexing.take(x, at, m).tobytes() == np.take_along_axis(x, i, 1).tobytes()
        written = x.copy()
        written[A, i, B] = src
        assert indexing.put(x, at, src).tobytes() == written.tobytes()
        if dtype in FLOATS:
            total = x.astype(np.float64)
            np.add.at(total, (A, i, B), src.astype(np.float64))
            np.testing.assert_array_equal(indexing.add(x, at, src), total.astype(dtype))
    note = np.full(x.shape, -1)
    note[A, i, B] = np.broadcast_to(J, i.shape)
    np.testing.assert_array_equal(indexing.last(i, n), note[A, i, B] == J)
    shared = i[:1, :, :1]  # one index for all rows and columns
    assert indexing.take(x, shared, m).tobytes() == x[:, shared[0, :, 0]].tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n, m, width", [(1, 1, 1), (7, 30, 17), (50, 3, 64), (3, 200, 130)])
def test_rows_are_added_in_double_precision(n, m, width, dtype):
    g, i = draw((m, width), dtype), np.random.default_rng(1).integers(0, n, m)
    total = np.zeros((n, width))
    np.add.at(total, i, g.astype(np.float64))
    np.testing.assert_array_equal(indexing.add_rows(g, i, n), total.astype(dtype))
    np.testing.assert_array_equal(indexing.count(i, n), np.bincount(i, minlength=n))


def test_results_do_not_depend_on_the_number_of_threads():
    g, i = draw((5000, 40), np.float32), np.random.default_rng(1).integers(0, 300, 5000)
    before = kernels.get_num_threads()
    results = []
    for threads in (1, 2, 3):
        kernels.set_num_threads(threads)
        results.append((indexing.add_rows(g, i, 300).tobytes(), ordering.sort(g, True)[1].tobytes()))
    kernels.set_num_threads(before)
    assert len(set(results)) == 1


def test_indices_out_of_range_are_seen():
    i = np.arange(9000)
    assert not indexing.outside(i, 0, 9000)
    assert indexing.outside(i, 0, 8999) and indexing.outside(i, 1, 9000) and indexing.outside(i - 9001, -9000, 10)


def order(x, descending):
    x = x.astype(np.float32) if x.dtype.itemsize == 2 else x
    if not descending:
        return np.argsort(x, axis=-1, kind="stable")
    return x.shape[-1] - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]


@pytest.mark.parametrize("dtype", [*FLOATS, np.int64, np.int32])
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 65, 100, 700])
def test_sorts_and_selections_are_stable(n, dtype):
    x = draw((9, n), dtype)
    if n > 10 and dtype in FLOATS:
        x[0, :6] = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan]
        x[1] = np.round(x[1].astype(np.float32)).astype(dtype)
        x[2] = 1
    w = x.astype(np.float32) if np.dtype(dtype).itemsize == 2 else x
    for descending in (False, True):
        want = order(x, descending)
        y, place = ordering.sort(x, descending)
        np.testing.assert_array_equal(place, want)
        assert y.tobytes() == np.take_along_axis(x, want, -1).tobytes()
        for m in {1, max(1, n // 2), n}:
            y, place = ordering.top(x, m, descending)
            np.testing.assert_array_equal(place, want[:, :m])
            assert y.tobytes() == np.take_along_axis(x, want[:, :m], -1).tobytes()
    up = order(x, False)
    for q in {0, n // 3, n - 1}:
        v = np.take_along_axis(w, up[:, q : q + 1], -1)
        first = np.argmax((w == v) | ((w != w) & (v != v)), axis=-1, keepdims=True)
        np.testing.assert_array_equal(ordering.nth(x, q), first)


def test_there_is_no_order_of_nothing():
    with pytest.raises(kernels.NotSupported):
        ordering.sort(np.zeros((3, 0), np.float32), False)
    with pytest.raises(kernels.NotSupported):
        indexing.take(np.zeros((0, 3, 1), np.float32), np.zeros((1, 2, 1), np.int64), 2)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("a, n, b, m", SHAPES)
def test_extrema_of_what_is_written_to_a_place(a, n, b, m, dtype):
    x, src = draw((a, n, b), dtype), draw((a, m, b), dtype, 1)
    src.flat[::7] = np.nan
    src.flat[3::11] = -np.inf
    x.flat[::13] = -0.0
    i = np.random.default_rng(2).integers(0, n, (a, m, b))
    A, _, B = np.ix_(*map(range, i.shape))
    for low, fn, worst in ((False, np.maximum, -np.inf), (True, np.minimum, np.inf)):
        for include in (True, False):
            want = x.astype(np.float64)
            if not include:
                want[A, i, B] = worst
            with np.errstate(invalid="ignore"):
                fn.at(want, (A, i, B), src.astype(np.float64))
            for at in (i, i[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]):
                got = indexing.extreme(x, at, src, low, include)
                assert got.dtype == dtype
                np.testing.assert_array_equal(got.astype(np.float64), want)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 64, 1000])
def test_places_in_a_sequence_are_found_by_halving_it(n, dtype):
    x = np.sort(draw(n, dtype).astype(np.float64)).astype(dtype)
    v = np.concatenate([draw(300, dtype, 1), x, np.array([np.nan, np.inf, -np.inf], dtype)])
    for right in (False, True):
        want = np.searchsorted(x.astype(np.float64), v.astype(np.float64), "right" if right else "left")
        np.testing.assert_array_equal(indexing.bisect(x, v, right), want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m, n, rest", [(1, 1, ()), (7, 3, ()), (9, 4, (5,)), (30, 40, (2, 3)), (16, 8, (100,))])
def test_rows_are_summed_by_one_call(m, n, rest, dtype):
    g, i = draw((m, *rest), dtype), np.random.default_rng(2).integers(0, n, m)
    want = np.zeros((n, *rest))
    np.add.at(want, i, g.astype(np.float64))
    np.testing.assert_array_equal(indexing.summing(g.dtype, (), m, n, rest)(g, i), want.astype(dtype))
    assert indexing.summing(g.dtype, (), m, n, rest)(g, np.repeat(i, 2)[::2]) is None or m == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "lead, m, n, rest",
    [
        ((), 9, 40, ()),
        ((), 5, 300, (7,)),
        ((), 64, 70, (100,)),
        ((3, 2), 9, 4, ()),
        ((2,), 6, 11, (5,)),
        ((), 1, 9, (33,)),
    ],
)
def test_rows_are_summed_by_one_call_few_or_many_or_in_each(lead, m, n, rest, dtype):
    g, i = draw((*lead, m, *rest), dtype), np.random.default_rng(2).integers(0, n, m)
    want = np.zeros((*lead, n, *rest))
    np.add.at(want, (*[slice(None)] * len(lead), i), g.astype(np.float64))
    np.testing.assert_array_equal(indexing.summing(g.dtype, lead, m, n, rest)(g, i), want.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8, np.complex64])
@pytest.mark.parametrize("shape, m", [((1, 9), 3), ((5, 7), 20), ((2, 3, 64), 65), ((70, 100), 8)])
def test_entries_of_lines_are_read_by_one_call(shape, m, dtype):
    x, i = draw(shape, np.float64).astype(dtype), np.random.default_rng(2).integers(0, shape[-1], m)
    line = indexing.line(x, i)
    if line is None:
        assert dtype is np.complex64 and np.dtype(dtype).itemsize not in indexing.MOVED
        return
    np.testing.assert_array_equal(line(x, i), x[..., i])
    assert line(x, np.repeat(i, 2)[::2]) is None


def test_bags_are_summed_without_their_rows():
    x, i = draw((50, 33), np.float32), np.random.default_rng(2).integers(0, 50, 40)
    lengths = np.array([0, 7, 1, 30, 0, 2])
    want = [x[p].astype(np.float64).sum(0) for p in np.split(i, np.cumsum(lengths)[:-1])]
    np.testing.assert_allclose(indexing.bags(x, i, lengths), want, rtol=1e-6, atol=1e-5)
    with pytest.raises(kernels.NotSupported):
        indexing.bags(x, i, np.array([30, 20]))


@pytest.mark.parametrize("at", [0, 4095, 4096, 9999])
def test_one_index_that_is_out_of_range_is_found(at):
    i = np.arange(10000) % 7
    assert not indexing.outside_of(i, 0, 7)(i)
    i[at] = 7
    assert indexing.outside_of(i, 0, 7)(i)
    assert not indexing.outside_of(i, 0, 8)(i)
