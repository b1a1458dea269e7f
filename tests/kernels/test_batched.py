"""A leading batch axis with weights of its own: one call equals a call per example, to a rounding."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule import kernels

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no kernel compiler here")
B = 3


def draw(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape) + 0.5


def same(batched, examples):
    """Compare the outputs of one batched call with the stacked outputs of a call per example."""
    for i, got in enumerate(batched):
        want = np.stack([e[i] for e in examples])
        assert got.size == want.size
        np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(
    "shape, dim",
    [((6, 40), 0), ((40, 6), 1), ((200, 33), 1), ((5, 6, 3), 1), ((5, 6, 20), 1), ((2, 3, 70000), 1), ((7, 9), None)],
)
def test_weight_norm(shape, dim):
    gshape = () if dim is None else tuple(s if i == dim else 1 for i, s in enumerate(shape))
    v, gw, g = draw(B, *shape), draw(B, *shape) * 2, draw(B, *gshape)
    w, norm = kernels.weight_norm(v, g, dim, batch=B)
    assert norm.shape == (B, *gshape)
    same((w, norm), [kernels.weight_norm(v[b], np.asarray(g[b]), dim) for b in range(B)])
    got = kernels.weight_norm_backward(gw, v, g, norm, dim, norm, batch=B)
    one = [np.asarray(norm[b]) for b in range(B)]
    same(got, [kernels.weight_norm_backward(gw[b], v[b], np.asarray(g[b]), one[b], dim, one[b]) for b in range(B)])


@pytest.mark.parametrize("shape", [(4, 6, 8, 8), (5, 6, 3), (200, 33), (3, 2, 50000)])
def test_batch_norm(shape):
    c = shape[1]
    x, gy, w, b = draw(B, *shape), draw(B, *shape) * 2, draw(B, c), draw(B, c)
    y, mean, rstd, var = kernels.batch_norm(x, w, b, 1e-3, batch=B)
    assert mean.shape == rstd.shape == var.shape == (B, c)
    same((y, mean, rstd, var), [kernels.batch_norm(x[e], w[e], b[e], 1e-3) for e in range(B)])
    for train in (True, False):
        extra = (mean, rstd) if train else (None, None)
        got = kernels.batch_norm_backward(gy, x, mean, rstd, w, train, *extra, batch=B)
        assert got[1].shape == (B, c)
        each = [(mean[e], rstd[e]) if train else (None, None) for e in range(B)]
        same(got, [kernels.batch_norm_backward(gy[e], x[e], mean[e], rstd[e], w[e], train, *each[e]) for e in range(B)])
    got = kernels.batch_norm_eval(x, w, b, mean, rstd, batch=B)
    same((got,), [(kernels.batch_norm_eval(x[e], w[e], b[e], mean[e], rstd[e]),) for e in range(B)])


@pytest.mark.parametrize("shape, groups", [((4, 6, 8, 8), 3), ((5, 6, 3), 2), ((7, 32), 4)])
def test_group_norm(shape, groups):
    c = shape[1]
    x, gy, w, b = draw(B, *shape), draw(B, *shape) * 2, draw(B, c), draw(B, c)
    y, mean, rstd = kernels.group_norm(x, groups, w, b, 1e-3, batch=B)
    assert mean.shape == (B, shape[0], groups)
    same((y, mean, rstd), [kernels.group_norm(x[e], groups, w[e], b[e], 1e-3) for e in range(B)])
    got = kernels.group_norm_backward(gy, x, mean, rstd, w, groups, mean, rstd, batch=B)
    assert got[1].shape == (B, c)
    same(
        got,
        [kernels.group_norm_backward(gy[e], x[e], mean[e], rstd[e], w[e], groups, mean[e], rstd[e]) for e in range(B)],
    )


@pytest.mark.parametrize("rows, n", [(5, 7), (64, 40), (90, 1000)])
def test_layer_and_rms_norm(rows, n):
    x, gy, w, b = draw(B, rows, n), draw(B, rows, n) * 2, draw(B, n), draw(B, n)
    y, mean, rstd = kernels.layer_norm(x, w, b, 1e-3, batch=B)
    same((y, mean, rstd), [kernels.layer_norm(x[e], w[e], b[e], 1e-3) for e in range(B)])
    m, r = mean.reshape(B, rows), rstd.reshape(B, rows)
    every = (True, True, True)
    for extra in ((None, None), (mean, rstd)):
        got = kernels.layer_norm_backward(gy, x, mean, rstd, w, every, *extra, batch=B)
        assert got[1].shape == (B, n)
        each = [(m[e], r[e]) if extra[0] is not None else (None, None) for e in range(B)]
        same(got, [kernels.layer_norm_backward(gy[e], x[e], m[e], r[e], w[e], every, *each[e]) for e in range(B)])
    got = kernels.layer_norm_double_backward(x, w, b, gy, x, mean, rstd, w, batch=B)
    same(got, [kernels.layer_norm_double_backward(x[e], w[e], b[e], gy[e], x[e], m[e], r[e], w[e]) for e in range(B)])
    got = kernels.layer_norm_tangent(x, gy, mean, rstd, w, b, w, batch=B)
    same(got, [kernels.layer_norm_tangent(x[e], gy[e], m[e], r[e], w[e], b[e], w[e]) for e in range(B)])
    got = kernels.layer_norm_backward_tangent(gy, x, x, gy, mean, rstd, rstd, mean, w, b, batch=B)
    same(
        got,
        [
            kernels.layer_norm_backward_tangent(gy[e], x[e], x[e], gy[e], m[e], r[e], r[e], m[e], w[e], b[e])
            for e in range(B)
        ],
    )
    y, rstd = kernels.rms_norm(x, w, 1e-3, batch=B)
    r = rstd.reshape(B, rows)
    same((y, rstd), [kernels.rms_norm(x[e], w[e], 1e-3) for e in range(B)])
    got = kernels.rms_norm_backward(gy, x, rstd, w, batch=B)
    same(got, [kernels.rms_norm_backward(gy[e], x[e], r[e], w[e]) for e in range(B)])


def test_a_batch_of_another_length_is_refused():
    x, w = draw(4, 6, 8), draw(3, 6)
    for f in (
        lambda: kernels.batch_norm(x.reshape(4, 2, 3, 8), w, w, 1e-5, batch=3),
        lambda: kernels.group_norm(x.reshape(4, 2, 3, 8), 3, w, w, 1e-5, batch=3),
        lambda: kernels.layer_norm(x, w, w, 1e-5, batch=5),
        lambda: kernels.weight_norm(x, w, 0, batch=3),
    ):
        with pytest.raises(kernels.NotSupported):
            f()
