"""Divergences, transforms, constraints and distributions of distributions beside PyTorch's."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import kl as torch_kl

import chainrule as cr
from chainrule import distributions as D

from .families import make, real, share, simplex, spd, tril, up

LIBS = pytest.mark.parametrize("lib", [cr, torch], ids=["chainrule", "torch"])


@pytest.fixture(autouse=True)
def doubles() -> Any:
    cr.set_default_dtype(cr.float64)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    cr.manual_seed(0)
    yield
    cr.set_default_dtype(cr.float32)
    torch.set_default_dtype(torch.float32)


def same(a: Any, b: Any, rtol: float = 1e-9) -> None:
    assert tuple(a.shape) == tuple(b.shape)
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=rtol, atol=1e-11)


PLACE = [{"loc": real(3), "scale": up(3)} for _ in range(2)]
MATRICES = [{"loc": real(2, 4), "covariance_matrix": spd(4)}, {"loc": real(4), "scale_tril": tril(2, 4)}]
EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "Normal": PLACE, "Laplace": PLACE, "Gumbel": PLACE, "Cauchy": PLACE, "LogNormal": PLACE,
    "Gamma": [{"concentration": up(3), "rate": up(3)} for _ in range(2)],
    "Chi2": [{"df": up(3) * 3} for _ in range(2)],
    "Exponential": [{"rate": up(3)} for _ in range(2)],
    "Pareto": [{"scale": up(3), "alpha": up(3) + 2} for _ in range(2)],
    "Beta": [{"concentration1": up(3), "concentration0": up(3)} for _ in range(2)],
    "ContinuousBernoulli": [{"probs": share(3)}, {"logits": real(3)}],
    "Uniform": [
        {"low": np.array([0.2, -0.5, 0.1]), "high": np.array([0.7, 0.5, 2.0])}, {"low": real(3) - 3, "high": real(3) + 3},
        {"low": np.array([0.3, -0.4, 3.5]), "high": np.array([0.6, 0.4, 4.0])},
    ],
    "HalfNormal": [{"scale": up(3)} for _ in range(2)],
    "Bernoulli": [{"probs": share(3)}, {"logits": real(3)}, {"probs": np.array([0.0, 1.0, 0.5])}],
    "Binomial": [{"total_count": 5, "probs": share(3)} for _ in range(2)],
    "Geometric": [{"probs": share(3)}, {"logits": real(3)}],
    "Poisson": [{"rate": up(3) * 2} for _ in range(2)],
    "Categorical": [{"probs": simplex(2, 3)}, {"logits": real(2, 3)}, {"probs": np.array([[0.5, 0.5, 0.0], [0.0, 0.3, 0.7]])}],
    "OneHotCategorical": [{"probs": simplex(2, 3)}, {"logits": real(2, 3)}],
    "OneHotCategoricalStraightThrough": [{"probs": simplex(2, 3)}, {"logits": real(2, 3)}],
    "Dirichlet": [{"concentration": up(2, 3)} for _ in range(2)],
    "MultivariateNormal": MATRICES,
    "LowRankMultivariateNormal": [{"loc": real(2, 4), "cov_factor": real(4, 2), "cov_diag": up(4)} for _ in range(2)],
}  # fmt: skip


def pairs() -> list[tuple[str, str]]:
    """All pairs of families for which PyTorch has a divergence of its own."""
    names = EXAMPLES
    table = {(p.__name__, q.__name__) for p, q in torch_kl._KL_REGISTRY}
    more = {(n, n) for n in ("Chi2", "LogNormal", "OneHotCategoricalStraightThrough")}
    return sorted((p, q) for p, q in table | more if p in names and q in names)


@pytest.mark.parametrize(("p", "q"), pairs(), ids=str)
@pytest.mark.filterwarnings("ignore")
def test_divergences(p: str, q: str) -> None:
    for a, b in itertools.product(EXAMPLES[p], EXAMPLES[q]):
        want = torch.distributions.kl_divergence(make(torch, p, a), make(torch, q, b))
        same(D.kl_divergence(make(cr, p, a), make(cr, q, b)), want, 1e-7)


def test_divergences_of_draws() -> None:
    """A few in the table that PyTorch has not: the mean over draws of log p - log q."""
    for p, q in (
        (D.Beta(2.0, 3.0), D.Gamma(2.0, 1.5)),
        (D.Laplace(0.3, 0.7), D.Laplace(1.0, 2.0)),
        (D.Uniform(1.2, 2.0), D.Pareto(1.0, 2.0)),
        (D.Gumbel(0.1, 0.8), D.Gumbel(0.5, 1.5)),
        (D.Normal(0.1, 0.8), D.Laplace(0.5, 1.5)),
        (D.ContinuousBernoulli(0.3), D.ContinuousBernoulli(0.8)),
    ):
        x = p.sample((40_000,))
        each = (p.log_prob(x) - q.log_prob(x)).numpy()
        assert abs(each.mean() - float(D.kl_divergence(p, q))) < 6 * each.std() / 200


@LIBS
def test_registering(lib: Any) -> None:
    d = lib.distributions

    class Odd(d.Normal):
        pass

    @d.register_kl(Odd, d.Normal)
    def _(p: Any, q: Any) -> Any:
        return lib.tensor(42.0)

    assert float(d.kl_divergence(Odd(0.0, 1.0), d.Normal(0.0, 1.0))) == 42
    assert float(d.kl_divergence(d.Normal(0.0, 1.0), Odd(0.0, 1.0))) == 0
    with pytest.raises(NotImplementedError, match="No KL"):
        d.kl_divergence(d.Normal(0.0, 1.0), d.Categorical(lib.ones(2)))
    if lib is cr:
        with pytest.raises(TypeError, match="classes of distributions"):
            d.register_kl("Normal", d.Normal)


def transforms(lib: Any) -> list[tuple[Any, tuple[int, ...]]]:
    t, d = lib.tensor, lib.distributions
    return [
        (d.ExpTransform(), (3,)),
        (d.SigmoidTransform(), (3,)),
        (d.SoftplusTransform(), (3,)),
        (d.TanhTransform(), (3,)),
        (d.AffineTransform(t(1.5), t(-2.0)), (3,)),
        (d.AffineTransform(0.5, 3.0, event_dim=1), (2, 3)),
        (d.ComposeTransform([d.ExpTransform(), d.PowerTransform(t(1.7)), d.AffineTransform(1.0, 2.0)]), (3,)),
        (d.ComposeTransform([d.ExpTransform(), d.ReshapeTransform((4,), (2, 2))]), (3, 4)),
        (d.StickBreakingTransform(), (2, 3)),
        (d.CorrCholeskyTransform(), (2, 6)),
        (d.IndependentTransform(d.ExpTransform(), 1), (2, 3)),
        (d.ReshapeTransform((6,), (2, 3)), (4, 6)),
        (d.CatTransform([d.ExpTransform(), d.TanhTransform()], dim=0, lengths=[1, 2]), (3, 2)),
        (d.StackTransform([d.ExpTransform(), d.TanhTransform()], dim=0), (2, 3)),
        (d.CumulativeDistributionTransform(d.Normal(0.3, 1.5)), (3,)),
        (d.transforms.identity_transform, (3,)),
        (d.ExpTransform().inv, (3,)),
    ]


@pytest.mark.parametrize("k", range(len(transforms(torch))))
def test_transforms(k: int) -> None:
    (ours, shape), (theirs, _) = transforms(cr)[k], transforms(torch)[k]
    x = np.random.default_rng(k).standard_normal(shape)
    if k == 16:
        x = np.abs(x)
    a, b = cr.tensor(x), torch.tensor(x)
    y, z = ours(a), theirs(b)
    same(y, z)
    same(ours.inv(y), theirs.inv(z), 1e-7)
    same(ours.log_abs_det_jacobian(a, y), theirs.log_abs_det_jacobian(b, z))
    same(ours.inv.log_abs_det_jacobian(y, a), theirs.inv.log_abs_det_jacobian(z, b))
    assert ours.bijective and ours.inv.inv == ours
    assert ours.domain.event_dim == theirs.domain.event_dim and ours.codomain.event_dim == theirs.codomain.event_dim
    assert tuple(ours.forward_shape(shape)) == tuple(y.shape) and tuple(ours.inverse_shape(tuple(y.shape))) == shape
    assert bool(ours.codomain.check(y).all())
    cached = ours.with_cache(1)
    if k not in (15, 16):
        w = cached(a)
        assert cached.inv(w) is a or isinstance(cached, D.ComposeTransform)
    try:
        want = theirs.sign
    except NotImplementedError:
        return
    assert int(ours.sign) == int(want)


def test_transforms_that_are_equal() -> None:
    assert D.ExpTransform() == D.ExpTransform() and D.ExpTransform() != D.TanhTransform()
    assert D.AffineTransform(1.0, 2.0) == D.AffineTransform(1.0, 2.0) != D.AffineTransform(1.0, 3.0)
    assert pickle.loads(pickle.dumps(D.AffineTransform(1.0, 2.0))) == D.AffineTransform(1.0, 2.0)


CONSTRAINTS = [
    ("real", ()), ("positive", ()), ("nonnegative", ()), ("unit_interval", ()), ("greater_than", (1.5,)), ("less_than", (1.5,)),
    ("interval", (-1.0, 2.5)), ("half_open_interval", (-1.0, 2.5)), ("simplex", ()), ("lower_cholesky", ()), ("positive_definite", ()),
    ("corr_cholesky", ()), ("real_vector", ()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), CONSTRAINTS, ids=str)
def test_to_constraints(name: str, args: Any) -> None:
    """biject_to and transform_to give PyTorch's maps, and land inside."""
    shapes: dict[str, tuple[int, ...]] = {
        "lower_cholesky": (2, 3, 3),
        "positive_definite": (2, 3, 3),
        "corr_cholesky": (2, 3),
    }
    x = np.random.default_rng(0).standard_normal(shapes.get(name, (2, 4)))
    for way in ("transform_to", "biject_to"):
        made = []
        for lib in (cr, torch):
            c = getattr(lib.distributions.constraints, name)
            c = c(*args) if args else c
            if way == "biject_to" and name in ("lower_cholesky", "positive_definite"):
                with pytest.raises(NotImplementedError, match="Cannot transform"):
                    lib.distributions.biject_to(c)
                return
            t = getattr(lib.distributions, way)(c)
            y = t(lib.tensor(x))
            assert bool(c.check(y).all())
            made.append(y)
        same(*made)


def test_checks_of_constraints() -> None:
    rng = np.random.default_rng(0)
    eye, low = np.eye(3), np.tril(rng.uniform(0.5, 1, (3, 3)))
    values = [
        np.array([-1.5, 0.0, 0.5, 1.0, 3.0, np.nan]),
        simplex(2, 3),
        np.ones(3),
        eye,
        low,
        low @ low.T,
        -eye,
        eye[:2],
    ]
    for name in (
        "boolean one_hot nonnegative_integer positive_integer real real_vector positive nonnegative unit_interval simplex lower_triangular "
        "lower_cholesky corr_cholesky square symmetric positive_semidefinite positive_definite"
    ).split():
        ours, theirs = getattr(D.constraints, name), getattr(torch.distributions.constraints, name)
        assert ours.event_dim == theirs.event_dim and ours.is_discrete == theirs.is_discrete
        for v in values:
            if v.ndim < theirs.event_dim or (v.shape == (2, 3) and theirs.event_dim == 2 and name != "square"):
                continue
            assert ours.check(cr.tensor(v)).tolist() == theirs.check(torch.tensor(v)).tolist(), (name, v)
    with pytest.raises(ValueError, match="dependent"):
        D.constraints.dependent.check(cr.ones(1))
    assert isinstance(D.Uniform.support, property)


def composed(lib: Any) -> list[Any]:
    d, t = lib.distributions, lib.tensor
    loc, scale = t(np.array([[0.1, -0.5, 2.0], [1.0, 0.3, -0.2]])), t(np.array([0.5, 1.5, 0.8]))
    mix = d.Categorical(t(np.array([0.2, 0.5, 0.3])))
    return [
        d.Independent(d.Normal(loc, scale), 1),
        d.Independent(d.Bernoulli(t(np.array([0.2, 0.7]))), 0),
        d.TransformedDistribution(d.Normal(loc, scale), [d.ExpTransform(), d.AffineTransform(1.0, -2.0)]),
        d.TransformedDistribution(d.Normal(loc, scale), [d.StickBreakingTransform()]),
        d.TransformedDistribution(d.Independent(d.Normal(loc, scale), 1), [d.ReshapeTransform((3,), (3, 1))]),
        d.TransformedDistribution(d.Uniform(t(0.0), t(1.0)), [d.SigmoidTransform().inv, d.AffineTransform(loc, scale)]),
        d.MixtureSameFamily(d.Categorical(t(np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]))), d.Normal(loc, scale)),
        d.MixtureSameFamily(mix, d.Independent(d.Normal(t(np.ones((3, 2))), scale[:, None]), 1)),
        d.MixtureSameFamily(mix, d.Poisson(scale * 3)),
    ]


@pytest.mark.parametrize("k", range(9))
def test_distributions_of_distributions(k: int) -> None:
    ours, theirs = composed(cr)[k], composed(torch)[k]
    for a, b in ((ours, theirs), (ours.expand((4, *ours.batch_shape)), theirs.expand((4, *theirs.batch_shape)))):
        assert tuple(a.batch_shape) == tuple(b.batch_shape) and tuple(a.event_shape) == tuple(b.event_shape)
        x = b.sample((5,))
        assert tuple(a.sample((5,)).shape) == tuple(x.shape)
        same(a.log_prob(cr.tensor(x.numpy())), b.log_prob(x))
        for what in ("mean", "variance", "entropy"):
            try:
                want = getattr(b, what)
                want = want() if callable(want) else want
            except NotImplementedError:
                continue
            got = getattr(a, what)
            same(got() if callable(got) else got, want)
        for what in ("cdf",):
            try:
                want = getattr(b, what)(x)
            except NotImplementedError:
                continue
            same(getattr(a, what)(cr.tensor(x.numpy())), want)
    assert repr(ours)


@LIBS
def test_a_mixture_refuses(lib: Any) -> None:
    d = lib.distributions
    with pytest.raises(ValueError, match="Categorical"):
        d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(lib.zeros(2), 1.0))
    with pytest.raises(ValueError, match="does not equal"):
        d.MixtureSameFamily(d.Categorical(lib.ones(3)), d.Normal(lib.zeros(2), 1.0))
    with pytest.raises(ValueError, match="reinterpreted_batch_ndims"):
        d.Independent(d.Normal(0.0, 1.0), 1)
