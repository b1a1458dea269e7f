"""Second-order kernels of layer norm and RMS norm against derivatives of plain float64 bodies."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from chainrule import kernels
from tests.kernels.reference import BF16, TYPES, last_place

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no kernel compiler here")
torch = pytest.importorskip("torch")


def forward(x, w, b, center, eps=1e-3):
    m = x.mean(1) if center else torch.zeros(x.shape[0], dtype=x.dtype)
    r = 1 / torch.sqrt(((x - m[:, None]) ** 2).mean(1) + eps)
    return (x - m[:, None]) * r[:, None] * w + b, m, r


def backward(gy, x, m, r, w, center):
    """The reverse rule as a function of independent m and r."""
    h, u = (x - m[:, None]) * r[:, None], gy * w
    p = u - h * (u * h).mean(1, keepdim=True)
    if center:
        p = p - u.mean(1, keepdim=True)
    return r[:, None] * p, (gy * h).sum(0), gy.sum(0)


def inputs(rows, n, dtype, center):
    rng = np.random.default_rng(rows * n)

    def draw(*shape, shift=0.0):
        return (rng.standard_normal(shape) + shift).astype(dtype)

    x, w = draw(rows, n, shift=1.0), draw(n, shift=1.0)
    mean, rstd = kernels.layer_norm(x, w, w, 1e-3)[1:] if center else (None, kernels.rms_norm(x, w, 1e-3)[1])
    return draw, x, w, mean, rstd


def wide(a, like):
    return torch.zeros(like, dtype=torch.float64) if a is None else torch.from_numpy(a.astype(np.float64))


def agree(got, want, dtype):
    want = want.detach().numpy()
    size = max(1.0, float(np.abs(want).max()))
    tolerance = 400 * (np.finfo(np.float64).eps if got.dtype == np.float64 else np.finfo(np.float32).eps) * size
    if got.dtype.itemsize == 2:  # computed in float64: one rounding, up to cancellation
        tolerance = last_place(want, got.dtype) + 1e-12 * size
    assert got.shape == want.shape
    np.testing.assert_array_less(np.abs(got.astype(np.float64) - want), tolerance + 1e-300)


SHAPES = [(5, 7), (3, 64), (9, 130)]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("rows, n", SHAPES)
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("tangents", list(itertools.product([False, True], repeat=2)), ids=str)
def test_tangent(rows, n, dtype, center, tangents):
    draw, x, w, mean, rstd = inputs(rows, n, dtype, center)
    tx, (tw, tb) = draw(rows, n), (draw(n) if t else None for t in tangents)
    got = kernels.layer_norm_tangent(x, tx, mean, rstd, w, tw, tb)
    args = [wide(a, s) for a, s in ((x, x.shape), (w, n), (None, n))]
    dirs = [wide(a, s) for a, s in ((tx, x.shape), (tw, n), (tb, n))]
    _, want = torch.func.jvp(lambda *a: forward(*a, center), tuple(args), tuple(dirs))
    if dtype.itemsize == 2:  # the kernel is given f32 statistics: so is the reference
        m, r = wide(mean, rows), wide(rstd, rows)
        h = (args[0] - m[:, None]) * r[:, None]
        t = dirs[0] - h * (h * dirs[0]).mean(1, keepdim=True)
        t = t - dirs[0].mean(1, keepdim=True) if center else t
        want = (r[:, None] * t * args[1] + h * dirs[1] + dirs[2], *want[1:])
    for g, e in zip(got, want, strict=True):
        if g is not None:
            agree(g, e, dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("rows, n", SHAPES)
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("given", list(itertools.product([False, True], repeat=3)), ids=str)
def test_double_backward(rows, n, dtype, center, given):
    draw, x, w, mean, rstd = inputs(rows, n, dtype, center)
    gy = draw(rows, n)
    a, b, d = (draw(*s) if g else None for g, s in zip(given, ((rows, n), (n,), (n,)), strict=True))
    got = kernels.layer_norm_double_backward(a, b, d, gy, x, mean, rstd, w)
    args = [wide(v, s).requires_grad_() for v, s in ((gy, gy.shape), (x, x.shape), (mean, rows), (rstd, rows), (w, n))]
    outs = backward(*args, center)
    cots = [wide(c, o.shape) for c, o in zip((a, b, d), outs, strict=True)]
    want = torch.autograd.grad(outs, args, cots)
    for g, e in zip(got, want, strict=True):
        if g is not None:
            agree(g, e, dtype)
        else:
            assert not center


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("rows, n", SHAPES)
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("given", list(itertools.product([False, True], repeat=4)), ids=str)
def test_tangent_of_backward(rows, n, dtype, center, given):
    draw, x, w, mean, rstd = inputs(rows, n, dtype, center)
    gy = draw(rows, n)
    tgy, tx, tw = (draw(*s) if g else None for g, s in zip(given, ((rows, n), (rows, n), (n,)), strict=False))
    tm, tr = (draw(rows).astype(rstd.dtype) if given[3] else None for _ in range(2))
    tm = tm if center else None
    got = kernels.layer_norm_backward_tangent(gy, tgy, x, tx, mean, tm, rstd, tr, w, tw)
    args = [wide(v, s) for v, s in ((gy, gy.shape), (x, x.shape), (mean, rows), (rstd, rows), (w, n))]
    dirs = [wide(v, s) for v, s in ((tgy, gy.shape), (tx, x.shape), (tm, rows), (tr, rows), (tw, n))]
    _, want = torch.func.jvp(lambda *a: backward(*a, center), tuple(args), tuple(dirs))
    for g, e in zip(got, want, strict=True):
        if g is not None:
            agree(g, e, dtype)
        else:
            assert not given[0]


def test_without_a_weight():
    draw, x, _, mean, rstd = inputs(6, 20, np.dtype(np.float64), True)
    one, gy, a = np.ones(20), draw(6, 20), draw(6, 20)
    for f in (
        lambda w: kernels.layer_norm_double_backward(a, None, None, gy, x, mean, rstd, w)[:4],
        lambda w: kernels.layer_norm_backward_tangent(gy, a, x, None, mean, None, rstd, None, w),
        lambda w: kernels.layer_norm_tangent(x, a, mean, rstd, w),
    ):
        for p, q in zip(f(None), f(one), strict=True):
            np.testing.assert_allclose(p, q, rtol=1e-13)
    assert BF16.itemsize == 2
