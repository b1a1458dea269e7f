"""Convolutions as sums over taps, against windows summed by einsum, over random geometries, layouts and leading axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.kernels import compiler
from chainrule.ops.conv import direct
from chainrule.ops.conv.convolution import Geometry

pytestmark = pytest.mark.skipif(not compiler.available(), reason="no compiler here: plain bodies run")


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small images too, and many remainders."""
    monkeypatch.setattr(direct, "WORK", 0)
    monkeypatch.setattr(direct, "PLANES", 1 << 10)


def draw(rng: Any) -> tuple[Geometry, int, int, int]:
    d = int(rng.integers(1, 4))
    k, s, e, p = (tuple(int(v) for v in rng.integers(low, high, d)) for low, high in ((1, 5), (1, 4), (1, 3), (0, 5)))
    reach = [(a - 1) * b for a, b in zip(k, e, strict=True)]
    size = tuple(max(1, r + 1 - 2 * a + int(rng.integers(0, 9))) for r, a in zip(reach, p, strict=True))
    out = tuple((n + 2 * a - r - 1) // t + 1 for n, a, r, t in zip(size, p, reach, s, strict=True))
    n, c, o = (int(v) for v in rng.integers(1, 10, 3))
    return Geometry(size, k, out, s, p, e), min(n, 3), min(c, 4), o


def layouts(rng: Any, shape: tuple[int, ...], kind: Any) -> list[Any]:
    """The same entries contiguous, reversed twice, in Fortran's order, and as every other entry of a larger array."""
    x = rng.standard_normal(shape).astype(kind)
    wide = np.full((*shape[:-1], 2 * shape[-1]), np.nan, kind)
    wide[..., ::2] = x
    return [x, np.ascontiguousarray(x[..., ::-1])[..., ::-1], np.asfortranarray(x), wide[..., ::2]]


@pytest.mark.parametrize("seed", range(40))
def test_three_sums_and_their_transposes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    geo, n, c, o = draw(rng)
    xs = layouts(rng, (n, c, *geo.size), np.float64)
    ws = layouts(rng, (o, c, *geo.kernel), np.float64)
    ys = layouts(rng, (n, o, *geo.output), np.float64)
    wins = geo.windows(xs[0]).reshape(n, c, np.prod(geo.kernel), np.prod(geo.output))
    want = np.einsum("nckp,ock->nop", wins, ws[0].reshape(o, c, -1)).reshape(ys[0].shape)
    for x, w, y in zip(xs, ws, ys, strict=True):
        np.testing.assert_allclose(direct.conv(x, w, geo), want, atol=1e-12)
        # <y, conv(x, w)> = <conv_input(y, w), x> = <conv_weight(x, y), w>
        whole = (want * y).sum()
        back, across = direct.conv_input(y, w, geo), direct.conv_weight(x, y, geo)
        assert back.shape == x.shape and across.shape == w.shape
        np.testing.assert_allclose([(back * x).sum(), (across * w).sum()], whole, atol=1e-10)
    # A transpose is linear: one entry at a time shows each of its columns.
    for _ in range(6):
        at = tuple(int(rng.integers(m)) for m in ys[0].shape)
        one = np.zeros_like(ys[0])
        one[at] = 1
        np.testing.assert_allclose((direct.conv_input(one, ws[0], geo) * xs[0]).sum(), want[at], atol=1e-12)


def test_leading_axes_broadcast() -> None:
    rng = np.random.default_rng(3)
    geo = Geometry((7, 6), (3, 2), (7, 5), (1, 1), (1, 0), (1, 1))
    x, w = rng.standard_normal((2, 1, 3, 4, 7, 6)), rng.standard_normal((5, 6, 4, 3, 2))
    got = direct.conv(x, w, geo)
    assert got.shape == (2, 5, 3, 6, 7, 5)
    y = rng.standard_normal(got.shape)
    back, across = direct.conv_input(y, w, geo), direct.conv_weight(x, y, geo)
    assert back.shape == (2, 5, 3, 4, 7, 6) and across.shape == (2, 5, 6, 4, 3, 2)
    for i in range(2):
        for j in range(5):
            np.testing.assert_array_equal(got[i, j], direct.conv(x[i, 0], w[j], geo))
            np.testing.assert_array_equal(back[i, j], direct.conv_input(y[i, j], w[j], geo))
            np.testing.assert_array_equal(across[i, j], direct.conv_weight(x[i, 0], y[i, j], geo))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_pixel_that_is_no_number_stays_where_windows_read_it(value: float) -> None:
    geo = Geometry((5, 9), (3, 3), (5, 9), (1, 1), (1, 1), (1, 1))
    x, w = np.ones((1, 1, 5, 9)), np.ones((1, 1, 3, 3))
    x[0, 0, 2, 8] = value
    y = direct.conv(x, w, geo)
    touched = np.zeros((5, 9), bool)
    touched[1:4, 7:9] = True
    assert (np.isfinite(y[0, 0]) == ~touched).all()


def test_float32_weights_sum_long_stretches_precisely() -> None:
    rng = np.random.default_rng(0)
    geo = Geometry((64, 64), (3, 3), (64, 64), (1, 1), (1, 1), (1, 1))
    x, y = 1 + rng.random((8, 2, 64, 64)), 1 + rng.random((8, 3, 64, 64))
    want = direct.conv_weight(x, y, geo)
    got = direct.conv_weight(x.astype(np.float32), y.astype(np.float32), geo)
    assert abs(got / want - 1).max() < 4e-7
