"""Every normalisation kernel against its plain body in float64: types, layouts, odd sizes, optional arguments, statistics."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from chainrule import kernels
from chainrule.kernels import calls
from tests.kernels import reference as ref
from tests.kernels.reference import BF16, TYPES, close

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no kernel compiler here")
F64 = np.float64


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def draw(rng, shape, dtype, shift=0.0):
    return (rng.standard_normal(shape) + shift).astype(dtype)


def wide(*arrays):
    return [a.astype(F64) for a in arrays]


# rows, columns, channels, grouped columns, split channels, the whole, tails of every kind
WEIGHTS = [
    ((16, 64), 0), ((16, 64), 1), ((5, 7), 0), ((5, 7), 1), ((300, 33), 1), ((33, 300), 0), ((1, 1), 0), ((1, 9), 1),
    ((6, 5, 3, 3), 0), ((6, 5, 3, 3), 1), ((6, 5, 4, 33), 1), ((3, 4, 5), 2), ((7, 3, 40, 50), 1), ((2, 70000), 0),
    ((5, 7), None), ((5, 7), -1), ((300, 400), None), ((13,), 0), ((9, 130, 1000), 1),
]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape, dim", WEIGHTS, ids=str)
def test_weight_norm(rng, shape, dim, dtype):
    whole = dim in (None, -1)
    axes = tuple(i for i in range(len(shape)) if whole or i != dim)
    gshape = () if whole else tuple(s if i == dim else 1 for i, s in enumerate(shape))
    v, gw, g = draw(rng, shape, dtype), draw(rng, shape, dtype), np.asarray(draw(rng, gshape, dtype, 2.0))
    w, norm = kernels.weight_norm(v, g, dim)
    assert w.dtype == dtype and norm.dtype == (F64 if dtype == F64 else np.float32) and norm.shape == gshape
    v8, gw8, g8 = wide(v, gw, g)
    want_w, want_norm = ref.weight_norm(v8, g8, axes)
    assert close(w, want_w, factor=4)
    assert close(norm, want_norm.reshape(gshape), factor=4)
    gn = draw(rng, gshape, norm.dtype)
    for cotangent in (None, np.asarray(gn)):
        gv, gg = kernels.weight_norm_backward(gw, v, g, norm, dim, cotangent)
        n8 = norm.astype(F64)
        want_v, want_g = ref.weight_norm_backward(gw8, v8, g8, n8, axes, 0.0 if cotangent is None else gn.astype(F64))
        size = np.abs(g8 / n8) * (np.abs(gw8) + np.abs(v8) * np.abs(want_g) / n8)
        assert close(gv, want_v, size + 1)
        assert close(gg, want_g.reshape(gshape), (np.abs(gw8 * v8).sum(axes, keepdims=True) / n8).reshape(gshape))


@pytest.mark.parametrize("shape, dim", [((4, 50), 0), ((50, 4), 1), ((3, 4, 20), 1), ((4, 4, 5), 1)])
def test_weight_norm_of_zeros_is_finite(rng, shape, dim):
    v = draw(rng, shape, np.float32)
    np.moveaxis(v, dim, 0)[1] = 0.0
    g = np.ones([s if i == dim else 1 for i, s in enumerate(shape)], np.float32)
    w, norm = kernels.weight_norm(v, g, dim)
    gv, gg = kernels.weight_norm_backward(np.ones_like(v), v, g, norm, dim)
    for a in (w, norm, gv, gg):
        assert np.isfinite(a).all()
        assert (np.moveaxis(a, dim, 0)[1] == 0).all()
        assert (np.moveaxis(a, dim, 0)[0] != 0).any()


def test_weight_norm_keeps_nan(rng):
    v = draw(rng, (4, 40), np.float32)
    v[2, 39] = np.nan
    w, norm = kernels.weight_norm(v, np.ones((4, 1), np.float32), 0)
    assert np.isnan(norm[2, 0]) and np.isnan(w[2]).all() and np.isfinite(w[[0, 1, 3]]).all()


ROWS = [(1500, 201), (64, 256), (1, 1), (3, 5), (7, 16), (130, 33), (5, 4100), (2, 70001), (1100, 17)]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("rows, n", ROWS)
@pytest.mark.parametrize("affine", ["both", "weight", "none", "float32"])
def test_layer_norm(rng, rows, n, dtype, affine):
    if affine == "float32" and dtype.itemsize != 2:
        pytest.skip("a weight of another type: for 16-bit inputs")
    vector = np.float32 if affine == "float32" else dtype
    x, gy = draw(rng, (rows, n), dtype, 1.0), draw(rng, (rows, n), dtype)
    w = None if affine == "none" else draw(rng, n, vector, 1.0)
    b = draw(rng, n, vector) if affine in ("both", "float32") else None
    y, mean, rstd = kernels.layer_norm(x, w, b, 1e-3)
    x8, gy8 = wide(x, gy)
    w8 = 1.0 if w is None else w.astype(F64)
    b8 = 0.0 if b is None else b.astype(F64)
    h, m, r, _ = ref.normalise(x8, (1,), 1e-3)
    assert close(y, h * w8 + b8, np.abs(h * w8).max() + np.abs(b8).max(), factor=16)
    assert close(mean, m[:, 0], 1.0) and close(rstd, r[:, 0], factor=16)
    m, r = mean.astype(F64)[:, None], rstd.astype(F64)[:, None]
    h = (x8 - m) * r
    gm, gr = draw(rng, rows, mean.dtype), draw(rng, rows, mean.dtype)
    for given in (False, True):
        extra = (gm, gr) if given else (None, None)
        gx, gw, gb = kernels.layer_norm_backward(gy, x, mean, rstd, w, (True, True, True), *extra)
        cot = (gm.astype(F64)[:, None], gr.astype(F64)[:, None]) if given else (0.0, 0.0)
        want = ref.normalise_backward(gy8 * w8, h, r, (1,), *cot)
        assert close(gx, want, (r * np.abs(gy8 * w8).max() + np.abs(r * r * h)) * 4)
    assert close(gw, (gy8 * h).sum(0), np.abs(gy8 * h).sum(0)) and close(gb, gy8.sum(0), np.abs(gy8).sum(0))
    assert gw.dtype == gb.dtype == (x.dtype if w is None else w.dtype)


@pytest.mark.parametrize("mask", list(itertools.product([False, True], repeat=3))[1:], ids=str)
def test_layer_norm_backward_makes_what_is_asked_for(rng, mask):
    x, gy, w = draw(rng, (9, 40), F64), draw(rng, (9, 40), F64), draw(rng, 40, F64)
    _, mean, rstd = kernels.layer_norm(x, w, w, 1e-5)
    every = kernels.layer_norm_backward(gy, x, mean, rstd, w)
    some = kernels.layer_norm_backward(gy, x, mean, rstd, w, mask)
    for wanted, a, b in zip(mask, every, some, strict=True):
        assert np.array_equal(a, b) if wanted else b is None


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("rows, n", ROWS)
def test_rms_norm(rng, rows, n, dtype):
    x, gy, w = draw(rng, (rows, n), dtype, 1.0), draw(rng, (rows, n), dtype), draw(rng, n, dtype)
    y, rstd = kernels.rms_norm(x, w, 1e-3)
    x8, gy8, w8 = wide(x, gy, w)
    h, _, r, _ = ref.normalise(x8, (1,), 1e-3, center=False)
    assert close(y, h * w8, factor=16) and close(rstd, r[:, 0], factor=16)
    r = rstd.astype(F64)[:, None]
    h = x8 * r
    gr = draw(rng, rows, rstd.dtype)
    gx, gw = kernels.rms_norm_backward(gy, x, rstd, w, gr=gr)
    want = ref.normalise_backward(gy8 * w8, h, r, (1,), 0.0, gr.astype(F64)[:, None], center=False)
    assert close(gx, want, (r * np.abs(gy8 * w8).max() + np.abs(r * r * h)) * 4)
    assert close(gw, (gy8 * h).sum(0), np.abs(gy8 * h).sum(0))
    assert np.array_equal(kernels.rms_norm(x, None, 1e-3)[0], kernels.rms_norm(x, np.ones(n, dtype), 1e-3)[0])


BATCHES = [(4, 6, 8, 8), (5, 6, 3), (50, 33), (1, 3, 20), (3, 2, 100, 101), (130, 5, 2), (2, 17, 16), (2, 1, 70000)]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", BATCHES, ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(rng, shape, dtype, affine):
    c = shape[1]
    axes = (0, *range(2, len(shape)))
    x, gy = draw(rng, shape, dtype, 2.0), draw(rng, shape, dtype)
    w, b = (draw(rng, c, dtype, 1.0), draw(rng, c, dtype)) if affine else (None, None)
    x8, gy8 = wide(x, gy)
    spread = (1, c, *(1,) * (len(shape) - 2))
    w8 = w.astype(F64).reshape(spread) if affine else 1.0
    b8 = b.astype(F64).reshape(spread) if affine else 0.0
    y, mean, rstd, var = kernels.batch_norm(x, w, b, 1e-3)
    h, m, r, v = ref.normalise(x8, axes, 1e-3)
    assert close(y, h * w8 + b8, np.abs(h * w8).max() + np.abs(b8).max(), factor=32)
    assert close(mean, m.ravel(), 1.0, factor=16) and close(var, v.ravel(), factor=32)
    assert close(rstd, r.ravel(), factor=32)
    m, r = mean.astype(F64).reshape(spread), rstd.astype(F64).reshape(spread)
    h = (x8 - m) * r
    count = np.prod([shape[a] for a in axes])
    size = r * np.abs(w8) * (np.abs(gy8).max() + np.abs(h))
    gm, gr = draw(rng, c, mean.dtype), draw(rng, c, mean.dtype)
    for train, given in ((True, False), (True, True), (False, False)):
        gx, gw, gb = kernels.batch_norm_backward(gy, x, mean, rstd, w, train, *((gm, gr) if given else (None, None)))
        cot = (gm.astype(F64).reshape(spread), gr.astype(F64).reshape(spread)) if given else (0.0, 0.0)
        want = ref.normalise_backward(gy8 * w8, h, r, axes, *cot) if train else gy8 * w8 * r
        assert close(gx, want, size + np.abs(cot[0] - cot[1] * r * r * h) / count, factor=32)
        assert close(gw, (gy8 * h).sum(axes), np.abs(gy8 * h).sum(axes))
        assert close(gb, gy8.sum(axes), np.abs(gy8).sum(axes))
    assert close(kernels.batch_norm_eval(x, w, b, mean, rstd), h * w8 + b8, np.abs(h * w8) + np.abs(b8))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(
    "shape, groups", [((4, 6, 8, 8), 3), ((5, 6, 3), 2), ((50, 32), 4), ((3, 4, 33), 4), ((2, 6, 50), 1)]
)
@pytest.mark.parametrize("affine", [True, False])
def test_group_norm(rng, shape, groups, dtype, affine):
    n, c = shape[:2]
    inner = int(np.prod(shape[2:]))
    x, gy = draw(rng, shape, dtype, 1.0), draw(rng, shape, dtype)
    w, b = (draw(rng, c, dtype, 1.0), draw(rng, c, dtype)) if affine else (None, None)
    x8, gy8 = (a.reshape(n, groups, c // groups, inner) for a in wide(x, gy))
    w8, b8 = (a.astype(F64).reshape(1, groups, c // groups, 1) if affine else d for a, d in ((w, 1.0), (b, 0.0)))
    y, mean, rstd = kernels.group_norm(x, groups, w, b, 1e-3)
    h, m, r, _ = ref.normalise(x8, (2, 3), 1e-3)
    assert close(y, (h * w8 + b8).reshape(shape), np.abs(h * w8).max() + np.abs(b8).max(), factor=16)
    assert close(mean, m.reshape(n, groups), 1.0) and close(rstd, r.reshape(n, groups), factor=16)
    m, r = (a.astype(F64).reshape(n, groups, 1, 1) for a in (mean, rstd))
    h = (x8 - m) * r
    gm, gr = draw(rng, (n, groups), mean.dtype), draw(rng, (n, groups), mean.dtype)
    for given in (False, True):
        gx, gw, gb = kernels.group_norm_backward(gy, x, mean, rstd, w, groups, *((gm, gr) if given else (None, None)))
        cot = (gm.astype(F64).reshape(m.shape), gr.astype(F64).reshape(m.shape)) if given else (0.0, 0.0)
        want = ref.normalise_backward(gy8 * w8, h, r, (2, 3), *cot).reshape(shape)
        size = r * np.abs(w8) * (np.abs(gy8).max() + np.abs(h)) + np.abs(cot[0]) + np.abs(cot[1] * r * r * h)
        assert close(gx, want, size.reshape(shape), factor=16)
        assert close(gw, (gy8 * h).sum((0, 3)).ravel(), np.abs(gy8 * h).sum((0, 3)).ravel())
        assert close(gb, gy8.sum((0, 3)).ravel(), np.abs(gy8).sum((0, 3)).ravel())


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("rows, n", ROWS)
def test_softmax(rng, rows, n, dtype):
    x, g = (draw(rng, (rows, n), dtype, 1.0) * 4).astype(dtype), draw(rng, (rows, n), dtype)
    x8, g8 = wide(x, g)
    want = x8 - x8.max(1, keepdims=True)
    want -= np.log(np.exp(want).sum(1, keepdims=True))
    y, ly = kernels.softmax(x), kernels.log_softmax(x)
    # exp(x - max) inherits the rounding of x - max, which is as large as the range of the row.
    assert close(y, np.exp(want), np.exp(want) * 16 + 1e-30)
    assert close(ly, want, np.abs(x8).max(), factor=4)
    y8, ly8 = wide(y, ly)
    s = (g8 * y8).sum(1, keepdims=True)
    terms = np.abs(y8) * (np.abs(g8) + np.abs(g8 * y8).sum(1, keepdims=True))
    eps = float(np.finfo(np.float32).eps) if dtype != F64 else float(np.finfo(F64).eps)
    for got, exact, size in (
        (kernels.softmax_backward(g, y), y8 * (g8 - s), terms),
        (
            kernels.log_softmax_backward(g, ly),
            g8 - np.exp(ly8) * g8.sum(1, keepdims=True),
            np.abs(g8) + np.exp(ly8) * np.abs(g8).sum(1, keepdims=True),
        ),
    ):
        assert np.all(np.abs(got.astype(F64) - exact) <= ref.last_place(exact, dtype) + 8 * eps * size)


def test_softmax_of_infinities():
    x = np.array([[-np.inf, 0.0, 1.0], [np.inf, 0.0, 1.0], [-np.inf, -np.inf, -np.inf], [np.nan, 0.0, 1.0]], np.float32)
    y = kernels.softmax(x)
    assert y[0, 0] == 0 and abs(y[0].sum() - 1) < 1e-6
    assert np.isnan(y[1, 0]) and np.isnan(y[2:]).all()


def test_layouts_that_are_not_taken(rng):
    x = draw(rng, (8, 6), np.float32)
    w = draw(rng, 8, np.float32)
    refused = [
        lambda: kernels.layer_norm(x.T, w, w, 1e-5),
        lambda: kernels.layer_norm(x.astype(np.int32), w, w, 1e-5),
        lambda: kernels.layer_norm(np.zeros((0, 8), np.float32), w, w, 1e-5),
        lambda: kernels.layer_norm(x.astype(">f4"), w[:6].copy(), None, 1e-5),
        lambda: kernels.layer_norm(x, w, w, 1e-5),  # weights of the wrong length
        lambda: kernels.layer_norm(x.astype(F64), w[:6].copy(), None, 1e-5),  # f32 weights with f64 elements
        lambda: kernels.weight_norm(x[::2], draw(rng, (4, 1), np.float32), 0),
        lambda: kernels.weight_norm(x, draw(rng, (7, 1), np.float32), 0),
        lambda: kernels.softmax(x.T),
        lambda: kernels.batch_norm(x.astype(np.complex64), None, None, 1e-5),
        lambda: kernels.group_norm(x, 4, None, None, 1e-5),
    ]
    for f in refused:
        with pytest.raises(kernels.NotSupported):
            f()


def cases(rng):
    """Problems large enough for several threads, of every layout."""
    v = draw(rng, (700, 300), np.float32)
    x = draw(rng, (24, 33, 18, 19), np.float32)
    row, col = np.ones((700, 1), np.float32), np.ones((1, 300), np.float32)
    w, c = draw(rng, 300, np.float32), draw(rng, 33, np.float32)

    def both(forward, backward):
        out = forward()
        return (*out, *backward(*out))

    yield lambda: both(
        lambda: kernels.weight_norm(v, row, 0), lambda w, n: kernels.weight_norm_backward(v, v, row, n, 0)
    )
    yield lambda: both(
        lambda: kernels.weight_norm(v, col, 1), lambda w, n: kernels.weight_norm_backward(v, v, col, n, 1)
    )
    yield lambda: kernels.weight_norm(v, np.ones((), np.float32), None)
    yield lambda: kernels.weight_norm(x, np.ones((1, 33, 1, 1), np.float32), 1)
    yield lambda: both(
        lambda: kernels.layer_norm(v, w, w, 1e-5), lambda y, m, r: kernels.layer_norm_backward(v, v, m, r, w)
    )
    yield lambda: both(
        lambda: kernels.batch_norm(x, c, c, 1e-5)[:3], lambda y, m, r: kernels.batch_norm_backward(x, x, m, r, c)
    )
    yield lambda: both(
        lambda: kernels.batch_norm(v, w, w, 1e-5)[:3], lambda y, m, r: kernels.batch_norm_backward(v, v, m, r, w)
    )
    yield lambda: both(
        lambda: kernels.group_norm(x, 3, c, c, 1e-5), lambda y, m, r: kernels.group_norm_backward(x, x, m, r, c, 3)
    )
    yield lambda: (kernels.softmax(v), kernels.log_softmax_backward(v, v))


def test_results_do_not_depend_on_the_number_of_threads(rng):
    before = kernels.get_num_threads()
    try:
        for case in cases(rng):
            results = []
            for threads in (1, 2, 3, 7):
                kernels.set_num_threads(threads)
                results.append([a.tobytes() for a in case()])
            assert all(r == results[0] for r in results)
    finally:
        kernels.set_num_threads(before)


def test_many_python_threads_at_once(rng):
    import threading

    before = kernels.get_num_threads()
    kernels.set_num_threads(3)
    try:
        v, g = draw(rng, (600, 500), np.float32), np.ones((600, 1), np.float32)
        want = kernels.weight_norm(v, g, 0)[0].tobytes()
        wrong = []

        def work():
            wrong.extend(1 for _ in range(30) if kernels.weight_norm(v, g, 0)[0].tobytes() != want)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong
    finally:
        kernels.set_num_threads(before)


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), BF16], ids=str)
def test_large_results_that_bypass_the_cache(rng, dtype, monkeypatch):
    monkeypatch.setattr(calls, "STREAM_BYTES", 1 << 24)  # of a processor with a small cache
    v = draw(rng, (2048, 8192 if dtype == BF16 else 4096), dtype)
    g = np.ones((2048, 1), dtype)
    w, _ = kernels.weight_norm(v, g, 0)
    some = slice(None, None, 97)
    v8 = v[some].astype(F64)
    assert close(w[some], v8 / np.sqrt((v8 * v8).sum(1, keepdims=True)), factor=4)
    assert w.nbytes >= calls.STREAM_BYTES and w.ctypes.data % 64 == 0
