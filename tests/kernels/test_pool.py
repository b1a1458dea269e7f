"""The buffer pool: reuse, bounds, and nothing handed out while somebody can still see it."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from chainrule.kernels.pool import MIN_BYTES, BufferPool

N = MIN_BYTES // 4


@pytest.fixture
def pool():
    return BufferPool(limit=16 * MIN_BYTES)


def test_memory_is_reused_after_the_last_reference_dies(pool):
    a = pool.empty((N,), np.float32)
    where = a.ctypes.data
    del a
    assert pool.stats()["held_bytes"] >= MIN_BYTES
    b = pool.empty((N // 8, 8), np.float32)
    assert b.ctypes.data == where and pool.stats()["hits"] == 1 and pool.stats()["held_bytes"] == 0


@pytest.mark.parametrize(
    "hold",
    [
        lambda a: a[3:5],
        lambda a: a.reshape(-1, 4).T[1:2],
        lambda a: a.view(np.int32)[:1],
        lambda a: memoryview(a),
        lambda a: memoryview(a)[2:3],
        lambda a: np.frombuffer(a, np.uint8, 10),
        lambda a: np.asarray(a)[None, :7],
        lambda a: np.lib.stride_tricks.as_strided(a, (2, 2), (4, 4)),
        lambda a: np.from_dlpack(a)[:3],
        lambda a: a.flat,
        lambda a: iter(a),
        lambda a: np.nditer(a),
    ],
)
def test_nothing_is_handed_out_while_something_points_at_it(pool, hold):
    a = pool.empty((N,), np.float32)
    where = a.ctypes.data
    kept = hold(a)
    del a
    gc.collect()
    others = [pool.empty((N,), np.float32) for _ in range(3)]
    assert all(b.ctypes.data != where for b in others)
    del kept
    gc.collect()
    assert pool.empty((N,), np.float32).ctypes.data == where


def test_values_survive_in_a_view(pool):
    a = pool.empty((N,), np.float32)
    a[:] = 7.0
    v = a[100:200]
    del a
    for _ in range(5):
        pool.empty((N,), np.float32)[:] = 1.0
    assert (v == 7.0).all()


def test_small_arrays_come_from_numpy(pool):
    a = pool.empty((10,), np.float32)
    assert a.base is None and pool.stats()["misses"] == 0


def test_arrays_are_aligned_and_contiguous(pool):
    for shape in ((N,), (17, N // 3), (3, 5, N)):
        a = pool.empty(shape, np.float64)
        assert a.ctypes.data % 64 == 0 and a.flags.c_contiguous and a.flags.writeable and a.shape == shape


def test_what_is_held_is_bounded(pool):
    arrays = [pool.empty((N * (1 + i % 3),), np.float32) for i in range(40)]
    assert pool.stats()["used_bytes"] >= 40 * MIN_BYTES
    del arrays
    s = pool.stats()
    assert s["used_bytes"] == 0 and s["held_bytes"] <= s["limit_bytes"] and s["dropped"] > 0
    pool.clear()
    assert pool.stats()["held_bytes"] == 0


def test_wasted_space_is_an_eighth_at_most(pool):
    for n in (MIN_BYTES, MIN_BYTES + 1, 3 * MIN_BYTES + 5, (1 << 26) + 1, (1 << 26) - 1):
        assert n <= pool._class_of(n) <= n * 9 // 8 + 4096


def test_threads_never_share_a_buffer(pool):
    wrong = []

    def work(mark):
        for _ in range(200):
            a = pool.empty((N,), np.int32)
            a[::4096] = mark
            v = a[:: N // 4]
            del a
            if not (v == mark).all():
                wrong.append(mark)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert pool.stats()["used_bytes"] == 0


def test_an_array_outlives_its_pool():
    pool = BufferPool(limit=4 * MIN_BYTES)
    a = pool.empty((N,), np.float32)
    a[:] = 3.0
    del pool
    gc.collect()
    assert (a == 3.0).all()
