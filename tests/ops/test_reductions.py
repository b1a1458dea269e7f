"""Reductions, scans, norms and distances where they are delicate: zeros, ties, infinities, cancellation, long scans."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule.func import grad, hessian, jvp, vmap

INF = math.inf


def grad_of(f, *x):
    return grad(lambda v: f(v).sum())(cr.tensor(np.array(x, float))).numpy()


def torch_grad(f, *x):
    v = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    f(v).sum().backward()
    return np.zeros(v.shape) if v.grad is None else v.grad.numpy()


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, 4, INF, -INF, -1, -2])
@pytest.mark.parametrize("x", [(0.0, 0.0, 0.0), (3.0, -3.0, 0.0), (3.0, 1.0, 2.0), (1.0, 1.0, 1.0)])
def test_norm_subgradients_are_pytorchs(p, x):
    got = grad_of(lambda v: cr.linalg.vector_norm(v, p), *x)
    np.testing.assert_allclose(got, torch_grad(lambda v: torch.linalg.vector_norm(v, p), *x), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1.0, 1e160, 1e200])
@pytest.mark.parametrize("p", [2, 3, 1.5])
def test_norms_neither_overflow_nor_underflow(scale, p):
    x = np.array([3.0, -4.0, 12.0])
    y = cr.linalg.vector_norm(cr.tensor(x * scale), p).item()
    assert y == pytest.approx(np.linalg.norm(x, p) * scale, rel=1e-13)
    np.testing.assert_allclose(
        grad_of(lambda v: cr.linalg.vector_norm(v, p), *x * scale), grad_of(lambda v: v.norm(p), *x)
    )


def test_even_norms_are_smooth_at_zero_entries():
    h = hessian(lambda v: cr.linalg.vector_norm(v, 4) ** 4)(cr.tensor([0.0, 2.0], dtype=cr.float64)).numpy()
    np.testing.assert_allclose(h, [[0, 0], [0, 48]], atol=1e-12)


@pytest.mark.parametrize(
    "f", [lambda m, v: m.nanmedian(v), lambda m, v: m.max(v), lambda m, v: m.median(v), lambda m, v: m.min(v)]
)
@pytest.mark.parametrize("x", [(1.0, 3.0, 3.0, 1.0), (2.0, 2.0, 2.0), (math.nan, 1.0, math.nan)])
def test_ties_share(f, x):
    np.testing.assert_allclose(grad_of(lambda v: f(cr, v), *x), torch_grad(lambda v: f(torch, v), *x))


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("correction", [0, 1, 3, 4])
@pytest.mark.parametrize("dim", [None, 0])
def test_variance_without_degrees_of_freedom(correction, dim):
    for x in ((1.0, 2.0, 4.0), (2.0, 2.0, 2.0)):
        got = grad_of(lambda v: cr.var(v, dim, correction=correction), *x)
        np.testing.assert_array_equal(got, torch_grad(lambda v: torch.var(v, dim, correction=correction), *x))


def test_std_at_zero():
    assert grad_of(cr.std, 2.0, 2.0, 2.0).tolist() == [0, 0, 0]


def test_cumprod_through_zeros_at_second_order():
    x = cr.tensor([2.0, 0.0, 3.0, 0.0, 5.0], dtype=cr.float64)
    h = hessian(lambda v: v.cumprod(0).sum())(x).numpy()
    v = torch.tensor(x.numpy(), requires_grad=True)
    want = torch.autograd.functional.hessian(lambda u: sum(torch.stack(list(u[:k])).prod() for k in range(1, 6)), v)
    np.testing.assert_allclose(h, want.numpy(), atol=1e-12)


def test_cumprod_overflow_stays_where_it_is():
    # Products of later entries overflow, but the zero in front keeps them out of the values.
    x = cr.tensor([0.0] + [1e10] * 100, dtype=cr.float64)
    _, t = jvp(lambda v: v.cumprod(0), (x,), (cr.tensor([0.0] + [1.0] * 100, dtype=cr.float64),))
    np.testing.assert_array_equal(t.numpy(), np.zeros(101))


def test_long_linear_scans_agree_with_short_ones():
    rng = np.random.default_rng(0)
    x = cr.tensor(rng.uniform(0.8, 1.2, (3, 200)))
    g = grad(lambda v: (v.cumprod(-1) * v).sum())
    one = np.stack([g(x.narrow(0, i, 1)).numpy()[0] for i in range(3)])
    many = g(cr.tensor(np.repeat(x.numpy(), 100, 0))).numpy()[::100]
    np.testing.assert_allclose(one, many, rtol=1e-12)


def test_logcumsumexp_far_from_zero():
    x = (-INF, -800.0, 900.0, -800.0, 901.0)
    got = grad_of(lambda v: v.logcumsumexp(0), *x)
    y = np.logaddexp.accumulate(np.array(x))
    want = [sum(math.exp(a - y[k]) for k in range(i, 5) if y[k] != -INF) for i, a in enumerate(x)]
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_cdist_of_close_and_equal_points():
    rng = np.random.default_rng(1)
    a = rng.standard_normal((300, 20)) + 1e3
    b = np.concatenate([a[:100], a[100:200] + 1e-7, a[200:] + 1])
    y = cr.cdist(cr.tensor(a), cr.tensor(b)).numpy()
    want = np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))
    np.testing.assert_allclose(y, want, rtol=1e-9)
    assert (np.diag(y)[:100] == 0).all()
    assert np.isfinite(grad(lambda v: cr.cdist(v, cr.tensor(b)).sum())(cr.tensor(a)).numpy()).all()


def test_means_of_half_precision_do_not_overflow():
    x = cr.full((70000,), 2.0, dtype=cr.float16)
    assert x.mean().item() == 2.0
    assert x.std().item() == 0.0


def test_bincount_under_vmap_needs_a_length():
    x = cr.tensor([[0, 1, 1], [2, 2, 2]])
    assert vmap(lambda v: cr.bincount(v, minlength=3))(x).tolist() == [[1, 2, 0], [0, 0, 3]]
    with pytest.raises(RuntimeError, match="minlength"):
        vmap(cr.bincount)(x)


def test_quantile_is_differentiable_in_q():
    x = cr.tensor([1.0, 5.0, 2.0, 10.0], dtype=cr.float64)
    assert grad(lambda q: cr.quantile(x, q))(cr.tensor(0.5, dtype=cr.float64)).item() == pytest.approx(9.0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "amax", "logsumexp", "mean", "std", "norm", "prod"])
def test_masked_out_entries_do_not_count(name):
    f = getattr(cr.masked, name)
    x, m = np.array([[1.0, math.nan, 3.0]]), cr.tensor([[True, False, True]])
    y = f(cr.tensor(x), dim=1, mask=m).numpy()
    np.testing.assert_allclose(y[..., [0, -1]] if y.ndim == 2 else y, f(cr.tensor(x[:, [0, 2]]), dim=1).numpy())
    g = grad(lambda v: f(v, dim=1, mask=m).nan_to_num(neginf=0.0).sum())(cr.tensor(x)).numpy()
    assert np.isfinite(g).all() and g[0, 1] == 0
