"""Few long sums of products: as exact in every layout as sums are, whatever loop the BLAS library has for them."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr

F = cr.nn.functional


def errors(got, x, y):
    """Of ``x y`` in roundings of the sum of the terms' sizes as if these were independent."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    unit = np.sqrt(np.square(x) @ np.square(y)) * 2.0**-24
    return np.abs(got.numpy(force=True) - x @ y) / unit


@pytest.mark.parametrize("k", [1024, 4096, 4100, 300_000])
@pytest.mark.parametrize(("m", "n"), [(1, 3), (2, 2), (6, 8), (16, 16)])
@pytest.mark.parametrize("mean", [0.0, 0.5])
def test_products(m, n, k, mean):
    rng = np.random.default_rng(k + m)
    a, b = ((rng.normal(size=s) + mean).astype(np.float32) for s in ((m, k), (k, n)))
    most = 16 if mean == 0 else 16 + k * 2.0**-9  # a sum as large as k mean**2 is rounded in its own last place
    for x in (cr.tensor(a), cr.tensor(np.ascontiguousarray(a.T)).T):
        for y in (cr.tensor(b), cr.tensor(np.ascontiguousarray(b.T)).T):
            assert errors(x @ y, a, b).max() < most
            assert errors(cr.bmm(cr.stack([x, x]), cr.stack([y, y]))[1], a, b).max() < most
            assert errors(x @ y[:, 0], a, b[:, :1].ravel()).max() < most
            assert errors(x[0] @ y, a[0], b).max() < most
            assert errors(F.linear(x, y.T, cr.zeros(n)), a, b).max() < most


@pytest.mark.parametrize("shape", [(4096,), (8, 512), (1500,)])
def test_the_gradient_of_a_weight_over_a_long_batch(shape):
    rng = np.random.default_rng(1)
    x, g = (cr.tensor(rng.normal(size=(*shape, n)), dtype=cr.float32) for n in (2, 3))
    flat = lambda t: t.numpy().reshape(-1, t.shape[-1])
    got = cr.func.grad(lambda w: (F.linear(x, w) * g).sum())(cr.zeros(3, 2))
    assert errors(got, flat(g).T, flat(x)).max() < 16


def test_without_terms_and_results():
    assert (cr.ones(0, 2000) @ cr.ones(2000, 3)).shape == (0, 3)
    assert (cr.ones(2, 2000, dtype=cr.float64) @ cr.ones(2000, 0, dtype=cr.float64)).shape == (2, 0)
    x = cr.ones(2, 2000, dtype=cr.complex64)
    assert (x @ x.T).tolist() == [[2000, 2000], [2000, 2000]]
