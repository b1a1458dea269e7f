"""Draws as functions of their parameters: exact derivatives of each draw, of every order and mode, and of means over draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special as sc
import torch

import chainrule as cr
from chainrule import distributions as D
from chainrule.func import grad, hessian, jvp, vmap

from .families import FAMILIES, make

F64 = {"dtype": cr.float64}


def seeded(f: Any) -> Any:
    """The same draws at every call."""

    def run(*args: Any) -> Any:
        cr.manual_seed(5)
        return f(*args)

    return run


ONE: dict[str, tuple[Any, tuple[float, ...]]] = {
    "Gamma": (lambda a, r: D.Gamma(a, r).rsample((4,)), (0.7, 2.0)),
    "Chi2": (lambda n: D.Chi2(n).rsample((4,)), (3.0,)),
    "Beta": (lambda a, b: D.Beta(a, b).rsample((4,)), (0.8, 2.5)),
    "StudentT": (lambda n, m, s: D.StudentT(n, m, s).rsample((4,)), (3.0, 0.5, 2.0)),
    "VonMises": (lambda m, k: D.VonMises(m, k).rsample((4,)), (0.1, 1.7)),
    "Dirichlet": (lambda a, b: D.Dirichlet(cr.stack([a, b, a + b])).rsample((4,)), (0.9, 1.5)),
    "FisherSnedecor": (lambda a, b: D.FisherSnedecor(a, b).rsample((4,)), (3.0, 6.0)),
    "InverseGamma": (lambda a, r: D.InverseGamma(a, r).rsample((4,)), (2.5, 1.5)),
    "Kumaraswamy": (lambda a, b: D.Kumaraswamy(a, b).rsample((4,)), (1.5, 2.5)),
    "GeneralizedPareto": (lambda c: D.GeneralizedPareto(c * 0, c * 0 + 1, c).rsample((4,)), (0.2,)),
    "ContinuousBernoulli": (lambda p: D.ContinuousBernoulli(p).rsample((4,)), (0.3,)),
    "LKJCholesky": (lambda c: D.LKJCholesky(3, c).rsample((4,)), (1.5,)),
    "Wishart": (lambda n: D.Wishart(n, cr.eye(2, **F64)).rsample((4,)), (3.5,)),
    "Mixture": (
        lambda w, m, s: D.MixtureSameFamily(
            D.Categorical(logits=cr.stack([w, -w])), D.Normal(cr.stack([m, -m]), cr.stack([s, s * 2]))
        ).rsample((4,)),
        (0.3, 1.0, 0.7),
    ),
    "GammaMixture": (
        lambda w, a: D.MixtureSameFamily(
            D.Categorical(logits=cr.stack([w, -w])), D.Gamma(cr.stack([a, 2 * a]), cr.ones(2, **F64))
        ).rsample((4,)),
        (0.3, 1.2),
    ),
}


@pytest.mark.parametrize("name", ONE)
def test_derivatives_of_draws(name: str) -> None:
    """The first and second derivative of central differences, where the same numbers give the draw; all modes alike.

    A mixture's draw goes on along F(x) = u, which no fixed numbers do: there the derivative of u itself must be 0.
    """
    f, at = ONE[name]
    f = seeded(f)
    xs = tuple(cr.tensor(v, **F64) for v in at)
    shape = tuple(f(*xs).shape)
    w = cr.tensor(np.random.default_rng(0).standard_normal(shape))
    e, one = 1e-5, cr.ones((), **F64)
    for i in range(len(xs)):
        along = lambda t, i=i: f(*[t if j == i else x for j, x in enumerate(xs)])
        front = jvp(along, (xs[i],), (one,))[1]
        back = grad(lambda t, along=along: (along(t) * w).sum())
        np.testing.assert_allclose(float(back(xs[i])), float((front * w).sum()), rtol=1e-9, atol=1e-10)
        over = [
            jvp(g, (xs[i],), (one,))[1] for g in (back, lambda t, along=along: (jvp(along, (t,), (one,))[1] * w).sum())
        ]
        np.testing.assert_allclose(float(over[0]), float(over[1]), rtol=1e-8, atol=1e-9)
        if "Mixture" in name:
            continue
        ends = [along(xs[i] + s).numpy() for s in (e, -e)]
        np.testing.assert_allclose(front.numpy(), (ends[0] - ends[1]) / (2 * e), rtol=2e-6, atol=1e-8)
        slopes = [float(back(xs[i] + s)) for s in (e, -e)]
        np.testing.assert_allclose(float(over[0]), (slopes[0] - slopes[1]) / (2 * e), rtol=2e-5, atol=1e-6)


def mixture(w: Any, m: Any, s: Any) -> Any:
    return D.MixtureSameFamily(
        D.Categorical(logits=cr.stack([w, -w])), D.Normal(cr.stack([m, -m]), cr.stack([s, s * 2]))
    )


def test_draws_of_mixtures_keep_their_rank() -> None:
    """u = F(x(theta), theta) does not change with theta: its derivatives of orders one to three are zero."""
    xs = tuple(cr.tensor(v, **F64) for v in (0.3, 1.0, 0.7))

    def rank(t: Any) -> Any:
        cr.manual_seed(3)
        d = mixture(*[x + t * k for k, x in zip((0.5, -0.3, 0.2), xs, strict=True)])
        return d.cdf(d.rsample((5,)))

    f, t, one = rank, cr.tensor(0.0, **F64), cr.ones((), **F64)
    for _ in range(3):
        f = lambda t, f=f: jvp(f, (t,), (one,))[1]
        np.testing.assert_allclose(f(t).numpy(), 0, atol=1e-9)

    # and x itself moves: as the first derivative by hand says
    def draw(t: Any) -> Any:
        cr.manual_seed(3)
        return mixture(xs[0], xs[1] + t, xs[2]).rsample((5,))

    x = draw(t)
    d = mixture(*xs)
    by_hand = -grad(lambda m: mixture(xs[0], m, xs[2]).cdf(x).sum())(xs[1])
    total = (jvp(draw, (t,), (one,))[1] * d.log_prob(x).exp()).sum()
    np.testing.assert_allclose(float(total), float(by_hand), rtol=1e-9)


def test_gamma_draws_by_the_formula() -> None:
    a = np.array([0.05, 0.3, 1.0, 5.0, 60.0, 500.0])
    x = D.Gamma(t := cr.tensor(a).requires_grad_(), 1.0).rsample()
    x.sum().backward()
    v, e = x.detach().numpy(), 1e-6
    slope = (sc.gammainc(a * (1 + e), v) - sc.gammainc(a * (1 - e), v)) / (2 * e * a)
    density = np.exp(sc.xlogy(a - 1, v) - v - sc.gammaln(a))
    np.testing.assert_allclose(t.grad.numpy(), -slope / density, rtol=1e-5)


MEANS: list[tuple[Any, Any, Any]] = [
    (lambda a: D.Gamma(a, 2.0), 1.5, lambda a: (a * (a + 1)) / 4),
    (lambda a: D.Beta(a, 2.0), 1.5, lambda a: a * (a + 1) / ((a + 2) * (a + 3))),
    (lambda n: D.StudentT(n), 6.0, lambda n: n / (n - 2)),
    (lambda a: D.Chi2(a), 3.0, lambda a: a * (a + 2)),
]


@pytest.mark.parametrize("k", range(len(MEANS)))
def test_derivatives_of_means(k: int) -> None:
    """The derivative of the mean of x**2 is the mean of the derivative: within five standard errors of 40,000 draws."""
    make_, at, square = MEANS[k]
    cr.manual_seed(k)
    t = cr.tensor(at, **F64)
    (_, each) = jvp(lambda a: make_(a).rsample((40_000,)) ** 2, (t,), (cr.ones_like(t),))
    want = float(grad(square)(t))
    v = each.numpy()
    assert abs(v.mean() - want) < 5 * v.std() / np.sqrt(v.size)


def test_circular_moments_of_von_mises() -> None:
    cr.manual_seed(0)
    k = cr.tensor(2.0, **F64)
    (x, t) = jvp(lambda k: cr.cos(D.VonMises(0.0, k).rsample((8_000,))), (k,), (cr.ones_like(k),))
    ratio = sc.i1(2.0) / sc.i0(2.0)
    assert abs(float(x.mean()) - ratio) < 0.02
    slope = 1 - ratio / 2 - ratio**2
    assert abs(float(t.mean()) - slope) < 0.03


RSAMPLE = [(n, k) for n, k in FAMILIES if make(cr, n, k).has_rsample]


@pytest.mark.parametrize(("name", "kw"), RSAMPLE, ids=[f"{n}-{'-'.join(k)}" for n, k in RSAMPLE])
def test_vmap_of_draws_and_densities(name: str, kw: dict[str, Any]) -> None:
    """Under vmap over parameters, with checks on: densities as in a loop, draws of every example, gradients of both."""
    names = [k for k, v in kw.items() if isinstance(v, np.ndarray | np.floating)]
    other = {k: v for k, v in kw.items() if k not in names}
    stacked = [cr.tensor(np.stack([kw[k], kw[k]])) for k in names]
    value = make(cr, name, kw).sample()

    def density(*ps: Any) -> Any:
        return getattr(D, name)(**dict(zip(names, ps, strict=True)), **other).log_prob(value).sum()

    def draw(*ps: Any) -> Any:
        x = getattr(D, name)(**dict(zip(names, ps, strict=True)), **other).rsample((2,))
        return (x * cr.arange(x.numel(), dtype=x.dtype).reshape(x.shape)).sum()

    if not names:
        return
    one = tuple(s[0] for s in stacked)
    np.testing.assert_allclose(vmap(density)(*stacked).numpy(), float(density(*one)), rtol=1e-9)
    many = vmap(grad(density, tuple(range(len(names)))))(*stacked)
    single = grad(density, tuple(range(len(names))))(*one)
    for a, b in zip(many, single, strict=True):
        np.testing.assert_allclose(a.numpy(), np.broadcast_to(b.numpy(), a.shape), rtol=1e-7, atol=1e-9)
    out = vmap(draw, randomness="different")(*stacked)
    assert tuple(out.shape) == (2,) and (float(out[0]) != float(out[1]) or name.startswith("OneHot"))
    got = vmap(grad(draw, tuple(range(len(names)))), randomness="same")(*stacked)
    for g in got:
        assert bool(g.isfinite().all())
        np.testing.assert_allclose(g[0].numpy(), g[1].numpy(), rtol=1e-9, atol=1e-12)


def test_hessian_of_a_density_like_pytorch() -> None:
    x = np.array([0.3, 1.2, 2.0])
    p = np.array([1.3, 0.8])
    ours = hessian(lambda p: D.Gamma(p[0], p[1]).log_prob(cr.tensor(x)).sum())(cr.tensor(p))
    theirs = torch.autograd.functional.hessian(
        lambda p: torch.distributions.Gamma(p[0], p[1]).log_prob(torch.tensor(x)).sum(), torch.tensor(p)
    )
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-9)


def test_reinforce_and_elbo_run() -> None:
    """Two everyday programs: a score-function gradient, and a variational bound with reparametrised draws."""
    logits = cr.zeros(3, requires_grad=True)
    d = D.Categorical(logits=logits)
    a = d.sample((200,))
    (-(d.log_prob(a) * (a == 2).float()).mean()).backward()
    assert float(logits.grad[2]) < 0
    loc, log_scale = cr.zeros(2, requires_grad=True), cr.zeros(2, requires_grad=True)
    opt = cr.optim.Adam([loc, log_scale], lr=0.1)
    target = D.Independent(D.Normal(cr.tensor([1.0, -2.0]), cr.tensor([0.5, 2.0])), 1)
    cr.manual_seed(0)
    for _ in range(200):
        opt.zero_grad()
        q = D.Independent(D.Normal(loc, log_scale.exp()), 1)
        D.kl_divergence(q, target).backward()
        opt.step()
    np.testing.assert_allclose(loc.detach().numpy(), [1, -2], atol=0.05)
    np.testing.assert_allclose(log_scale.exp().detach().numpy(), [0.5, 2], atol=0.1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_draws_of_small_concentrations_follow_the_distribution_near_the_ends(dtype: str) -> None:
    """A bound of the precision of numbers near 1 put a fiftieth of the draws of Beta(0.1, 0.2) on one number."""
    one = cr.ones((), dtype=getattr(cr, dtype))
    cr.manual_seed(0)
    low = float(np.finfo(dtype).tiny)
    for d in (
        D.Beta(0.1 * one, 0.2 * one),
        D.Dirichlet(cr.stack([0.1 * one, 0.2 * one])),
        D.Kumaraswamy(0.1 * one, one),
    ):
        x = d.sample((4000,))
        x = (x if x.ndim == 1 else x[:, 0]).numpy()
        assert x.dtype == dtype and low <= x.min() and x.max() < 1
        for at in (1e-30, 1e-16, 1e-8, 1e-3):
            want = at**0.1 if isinstance(d, D.Kumaraswamy) else sc.betainc(0.1, 0.2, at)
            assert abs((x < at).mean() - want) < 5 * (want / 4000) ** 0.5
    tiny = D.Beta(0.01 * one, 0.01 * one).sample((4000,))
    assert (tiny == 0.5).double().mean() < 0.01  # both gamma numbers at the smallest float32


def test_a_gamma_number_of_concentration_zero_is_zero() -> None:
    assert (D.NegativeBinomial(cr.tensor([0.0, 0.0]), probs=cr.tensor([0.9, 0.0])).sample((5,)) == 0).all()
