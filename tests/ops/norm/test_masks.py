"""Masks and lengths: statistics of the positions that count, nothing from the others, not even NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, vmap

F = cr.nn.functional
rng = np.random.default_rng(0)
LENGTHS = [2, 4, 1]


def padded(*shape: int, dim: int) -> Any:
    """An input whose padding is NaN."""
    a = rng.standard_normal(shape)
    for k, n in enumerate(LENGTHS):
        a[(k, *[slice(None)] * (dim - 1), slice(n, None))] = np.nan
    return cr.tensor(a)


def clean(x: Any) -> Any:
    return cr.where(x != x, 0.0, x)


def test_batch_norm_learns_from_what_counts() -> None:
    x, w, b = padded(3, 2, 4, dim=2), cr.tensor([2.0, 3.0]).double(), cr.tensor([0.5, 1.0]).double()
    m, v = cr.zeros(2, dtype=cr.float64), cr.ones(2, dtype=cr.float64)
    y = F.batch_norm(x, m, v, w, b, True, 0.3, lengths=LENGTHS)
    flat = cr.cat([x[k, :, :n] for k, n in enumerate(LENGTHS)], 1).T
    m2, v2 = cr.zeros(2, dtype=cr.float64), cr.ones(2, dtype=cr.float64)
    want = F.batch_norm(flat, m2, v2, w, b, True, 0.3)
    got = cr.cat([y[k, :, :n] for k, n in enumerate(LENGTHS)], 1).T
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-10)
    np.testing.assert_allclose([m.numpy(), v.numpy()], [m2.numpy(), v2.numpy()], rtol=1e-10)
    assert all(not y[k, :, n:].numpy().any() for k, n in enumerate(LENGTHS))


@pytest.mark.parametrize("name", ["batch", "batch, evaluation", "group", "instance", "layer", "rms"])
def test_padding_has_no_influence(name: str) -> None:
    dim = 1 if name in ("layer", "rms") else 2
    x = padded(3, 4, 4, dim=dim)
    w = cr.tensor(rng.standard_normal(4))

    def f(x: Any) -> Any:
        if name == "batch":
            return F.batch_norm(x, None, None, w, w, True, lengths=LENGTHS)
        if name == "batch, evaluation":
            return F.batch_norm(x, w, w * w, w, w, lengths=LENGTHS)
        if name == "group":
            return F.group_norm(x, 2, w, w, lengths=LENGTHS)
        if name == "instance":
            return F.instance_norm(x, None, None, w, w, lengths=LENGTHS)
        if name == "layer":
            return F.layer_norm(x, (4, 4), None, None, lengths=LENGTHS)
        return F.rms_norm(x, (4, 4), None, lengths=LENGTHS)

    def loss(x: Any) -> Any:
        return (f(x) ** 3).sum()

    other = clean(x) + cr.where(x != x, 7.0, 0.0)
    np.testing.assert_allclose(f(x).numpy(), f(other).numpy(), rtol=1e-12)
    g = grad(loss)(x).numpy()
    np.testing.assert_allclose(g, grad(loss)(other).numpy(), rtol=1e-12)
    assert np.isfinite(g).all() and not g[np.isnan(x.numpy())].any()


def test_full_mask_is_no_mask() -> None:
    x, w = cr.tensor(rng.standard_normal((3, 4, 5))), cr.tensor(rng.standard_normal(4))
    on = cr.ones(1, dtype=cr.bool)
    for f in (
        lambda **kw: F.batch_norm(x, None, None, w, w, True, **kw),
        lambda **kw: F.group_norm(x, 2, w, w, **kw),
        lambda **kw: F.instance_norm(x, None, None, w, w, **kw),
        lambda **kw: F.layer_norm(x, (4, 5), **kw),
        lambda **kw: F.rms_norm(x, (5,), **kw),
    ):
        np.testing.assert_allclose(f(mask=on).numpy(), f().numpy(), rtol=1e-9, atol=1e-12)


def test_lengths_under_vmap_and_in_modules() -> None:
    x, n = cr.tensor(rng.standard_normal((2, 3, 4, 5))), cr.tensor([[1, 2, 5], [5, 3, 4]])
    m = cr.nn.BatchNorm1d(4, track_running_stats=False).double()
    got = vmap(lambda x, n: m(x, lengths=n))(x, n)
    for k in range(2):
        np.testing.assert_allclose(
            got[k].detach().numpy(), m(x[k], lengths=n[k]).detach().numpy(), rtol=1e-10, atol=1e-12
        )


def test_errors_name_the_argument() -> None:
    x = cr.ones(3, 4, 5)
    with pytest.raises(TypeError, match="mask must be a bool"):
        F.layer_norm(x, (5,), mask=cr.ones(5))
    with pytest.raises(ValueError, match="mask or lengths"):
        F.layer_norm(x, (5,), mask=cr.ones(5, dtype=cr.bool), lengths=[1, 2, 3])
    with pytest.raises(ValueError, match="lengths must have one entry"):
        F.batch_norm(x, None, None, training=True, lengths=[1, 2])
