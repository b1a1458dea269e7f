"""Every family beside PyTorch's in float64: shapes, moments, densities and their derivatives, supports, expansion."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr

from .families import FAMILIES, make

pytestmark = pytest.mark.filterwarnings("ignore:Singular sample")  # PyTorch's, of Wishart's draws
# PyTorch has Bessel functions to eight digits, and no modes where these are not at the formula's place.
DIGITS = {"VonMises": 2e-6}
NO_MODE = ("Kumaraswamy",)
EACH = pytest.mark.parametrize(("name", "kw"), FAMILIES, ids=[f"{n}-{'-'.join(k)}" for n, k in FAMILIES])


@pytest.fixture(autouse=True)
def doubles() -> Any:
    cr.set_default_dtype(cr.float64)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    cr.manual_seed(0)
    yield
    cr.set_default_dtype(cr.float32)
    torch.set_default_dtype(torch.float32)


def pair(name: str, kw: dict[str, Any]) -> tuple[Any, Any]:
    return make(cr, name, kw), make(torch, name, kw)


def same(a: Any, b: Any, rtol: float = 1e-10) -> None:
    assert tuple(a.shape) == tuple(b.shape)
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=rtol, atol=1e-11)


@EACH
def test_shapes_and_moments(name: str, kw: dict[str, Any]) -> None:
    ours, theirs = pair(name, kw)
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape) and tuple(ours.event_shape) == tuple(theirs.event_shape)
    assert ours.has_enumerate_support == theirs.has_enumerate_support and (ours.has_rsample or not theirs.has_rsample)
    assert set(ours.arg_constraints) == set(theirs.arg_constraints)
    for what in ("mean", "mode", "variance", "stddev", "entropy", "perplexity"):
        try:
            want = getattr(theirs, what)
            want = want() if callable(want) else want
        except NotImplementedError:
            continue
        got = getattr(ours, what)
        if not (what == "mode" and name in NO_MODE):
            same(got() if callable(got) else got, want, DIGITS.get(name, 1e-9))
    for k in kw:
        if isinstance(getattr(theirs, k, None), torch.Tensor):
            same(getattr(ours, k), getattr(theirs, k))
    if theirs.has_enumerate_support:
        for expand in (True, False):
            try:
                want = theirs.enumerate_support(expand)
            except NotImplementedError:
                with pytest.raises(NotImplementedError):
                    ours.enumerate_support(expand)
                continue
            same(ours.enumerate_support(expand), want)


@EACH
def test_densities_and_their_derivatives(name: str, kw: dict[str, Any]) -> None:
    theirs = make(torch, name, kw)
    x = theirs.sample((3,)).numpy()
    runs = []
    for lib in (cr, torch):
        leaves = {
            k: lib.tensor(v).requires_grad_() if isinstance(v, np.ndarray | np.floating) and k != "total_count" else v
            for k, v in kw.items()
        }
        leaves = {k: lib.tensor(v) if isinstance(v, np.ndarray) else v for k, v in leaves.items()}
        d = getattr(lib.distributions, name)(**leaves, validate_args=False)
        value = lib.tensor(x)
        smooth = value.is_floating_point() and not d.support.is_discrete
        value = value.requires_grad_() if smooth else value
        lp = d.log_prob(value)
        wrt = [v for v in leaves.values() if isinstance(v, lib.Tensor) and v.requires_grad] + (
            [value] if smooth else []
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            grads = lib.autograd.grad(lp.sin().sum(), wrt, allow_unused=True) if wrt else ()
        runs.append([lp, *[lib.zeros_like(v) if g is None else g for g, v in zip(grads, wrt, strict=True)]])
    for a, b in zip(*runs, strict=True):
        if "scale_tril" in kw and a.ndim >= 2 and a.shape[-1] == a.shape[-2] != 1:
            a, b = a.tril(), b.tril()  # the rest is not read: its derivative is 0
        same(a, b, DIGITS.get(name, 1e-8))


@EACH
def test_distribution_functions(name: str, kw: dict[str, Any]) -> None:
    ours, theirs = pair(name, kw)
    x = theirs.sample((3,))
    try:
        want = theirs.cdf(x)
    except NotImplementedError:
        return
    same(ours.cdf(cr.tensor(x.numpy())), want, 1e-9)
    u = np.random.default_rng(1).uniform(0.05, 0.95, tuple(x.shape))
    try:
        want = theirs.icdf(torch.tensor(u))
    except NotImplementedError:
        return
    same(ours.icdf(cr.tensor(u)), want, 1e-9)


@EACH
def test_expanded(name: str, kw: dict[str, Any]) -> None:
    ours, theirs = pair(name, kw)
    shape = (4, *theirs.batch_shape)
    a, b = ours.expand(shape), theirs.expand(shape)
    assert type(a) is type(ours) and tuple(a.batch_shape) == shape and tuple(a.event_shape) == tuple(b.event_shape)
    x = b.sample((2,))
    same(a.log_prob(cr.tensor(x.numpy())), b.log_prob(x), DIGITS.get(name, 1e-8))
    assert a.sample((2,)).shape == tuple(x.shape)
    try:
        want = b.mean
    except NotImplementedError:
        return
    same(a.mean, want, 1e-9)


@EACH
def test_supports(name: str, kw: dict[str, Any]) -> None:
    """The same answers about draws and about other values; those outside are refused by log_prob."""
    ours, theirs = pair(name, kw)
    assert ours.support.event_dim == theirs.support.event_dim and ours.support.is_discrete == theirs.support.is_discrete
    x = theirs.sample((2,)).numpy().astype(float)
    for v in (x, x + 0.25, -x, x * np.nan, x + 100.0):
        got, want = ours.support.check(cr.tensor(v)), theirs.support.check(torch.tensor(v))
        assert got.tolist() == want.tolist()
        if not bool(want.all()):
            with pytest.raises(ValueError, match="support"):
                ours.log_prob(cr.tensor(v))
    draws = ours.sample((20,))
    assert bool(ours.support.check(draws).all()) and not draws.requires_grad
    if draws.ndim > 1:
        with pytest.raises(ValueError, match=r"broadcastable|event_shape"):
            ours.log_prob(cr.zeros((7, *[s + 1 for s in draws.shape[1:]])))


@EACH
def test_draws_have_the_moments(name: str, kw: dict[str, Any]) -> None:
    ours = make(cr, name, kw)
    n = 4000
    x = ours.sample((n,))
    assert tuple(x.shape) == (n, *ours.batch_shape, *ours.event_shape)
    try:
        mean, variance = ours.mean.numpy(), ours.variance.numpy()
    except NotImplementedError:
        return
    if name in ("VonMises", "Categorical") or not np.isfinite(variance).all() or not np.isfinite(mean).all():
        return
    error = 6 * np.sqrt(variance / n) + 1e-12
    assert (np.abs(x.numpy().mean(0) - mean) < error).all()


BAD: list[tuple[str, dict[str, Any]]] = [
    ("Normal", {"loc": 0.0, "scale": -1.0}),
    ("Bernoulli", {"probs": 1.5}),
    ("Gamma", {"concentration": 1.0, "rate": 0.0}),
    ("Uniform", {"low": 1.0, "high": 0.0}),
    ("Chi2", {"df": -1.0}),
    ("Categorical", {"probs": np.array([-0.1, 1.1])}),
    ("Dirichlet", {"concentration": np.array([0.0, 1.0])}),
    ("MultivariateNormal", {"loc": np.zeros(2), "scale_tril": np.ones((2, 2))}),
    ("MultivariateNormal", {"loc": np.zeros(2), "covariance_matrix": -np.eye(2)}),
    ("Normal", {"loc": float("nan"), "scale": 1.0}),
    ("Bernoulli", {"probs": 0.5, "logits": 0.0}),
    ("Wishart", {"df": np.float64(0.5), "covariance_matrix": np.eye(3)}),
    ("LKJCholesky", {"dim": 1}),
]


@pytest.mark.parametrize(("name", "kw"), BAD, ids=str)
def test_parameters_that_are_refused(name: str, kw: dict[str, Any]) -> None:
    for lib in (cr, torch):
        given = {k: lib.tensor(v) if isinstance(v, float) else v for k, v in kw.items()}
        with pytest.raises(ValueError, match=r".") as e:
            make(lib, name, given)
        assert e.value is not None


def test_ones_own_families() -> None:
    class Own(cr.distributions.Normal):
        def __init__(self, a: Any) -> None:
            super().__init__(a, 1.0)

    with pytest.raises(NotImplementedError, match=r"custom \.expand"):
        Own(cr.zeros(2)).expand((3, 2))
    with pytest.raises(NotImplementedError):
        cr.distributions.Distribution().sample()
    from chainrule.distributions.normal import Normal
    from chainrule.distributions.transformed_distribution import TransformedDistribution

    assert Normal is cr.distributions.Normal and TransformedDistribution is cr.distributions.TransformedDistribution
