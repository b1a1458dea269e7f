"""Random numbers: moments, vmap's modes, reproducibility, and dropout at any order."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, jacfwd, jacrev, vmap

N = 20000
# name -> (a draw from x, a tensor of ones; mean; variance)
DRAWS = {
    "bernoulli": (lambda x: cr.bernoulli(x * 0.4), 0.4, 0.24),
    "normal": (lambda x: cr.normal(x, 2.0), 1.0, 4.0),
    "poisson": (lambda x: cr.poisson(x * 3), 3.0, 3.0),
    "binomial": (lambda x: cr.binomial(x * 10, x * 0.3), 3.0, 2.1),
    "uniform_": (lambda x: x.clone().uniform_(-1, 3), 1.0, 16 / 12),
    "normal_": (lambda x: x.clone().normal_(2, 0.5), 2.0, 0.25),
    "exponential_": (lambda x: x.clone().exponential_(2.0), 0.5, 0.25),
    "geometric_": (lambda x: x.clone().geometric_(0.4), 2.5, 3.75),
    "log_normal_": (lambda x: x.clone().log_normal_(0, 0.5), np.exp(0.125), (np.exp(0.25) - 1) * np.exp(0.25)),
    "random_": (lambda x: x.clone().random_(2, 7), 4.0, 2.0),
    "dropout": (lambda x: cr.nn.functional.dropout(x, 0.3), 1.0, 0.3 / 0.7),
    "native_dropout": (lambda x: cr.native_dropout(x, 0.3, True)[0], 1.0, 0.3 / 0.7),
}


@pytest.mark.parametrize("name", DRAWS)
def test_mean_and_variance(name: str) -> None:
    draw, mean, variance = DRAWS[name]
    cr.manual_seed(0)
    y = draw(cr.ones(N, dtype=cr.float64)).numpy()
    assert abs(y.mean() - mean) < 6 * np.sqrt(variance / N)
    assert abs(y.var() - variance) < 0.15 * variance


@pytest.mark.parametrize("name", DRAWS)
def test_randomness_modes(name: str) -> None:
    draw, x = DRAWS[name][0], cr.ones(3, 200)
    same = vmap(draw, randomness="same")(x).numpy()
    assert (same == same[:1]).all()
    different = vmap(draw, randomness="different")(x).numpy()
    assert (different[0] != different[1]).any() and (different[1] != different[2]).any()
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(draw)(x)


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_repeats_the_draw(name: str) -> None:
    draw, x = DRAWS[name][0], cr.ones(50)
    runs = []
    for _ in range(2):
        cr.manual_seed(7)
        runs.append(draw(x).numpy().copy())
    assert (runs[0] == runs[1]).all()


def test_cauchy_quartiles() -> None:
    cr.manual_seed(0)
    y = cr.empty(N, dtype=cr.float64).cauchy_(1.0, 2.0).numpy()
    assert np.allclose(np.quantile(y, [0.25, 0.5, 0.75]), [-1, 1, 3], atol=0.15)


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial_follows_the_probabilities(replacement: bool) -> None:
    cr.manual_seed(0)
    p = np.array([0.1, 0.0, 0.2, 0.7])
    k = cr.multinomial(cr.tensor(np.tile(5 * p, (N, 1))), 2, replacement).numpy()
    assert np.allclose(np.bincount(k[:, 0], minlength=4) / N, p, atol=0.015)
    assert not (k == 1).any()
    assert replacement or (k[:, 0] != k[:, 1]).all()


def test_multinomial_rows_do_not_mix() -> None:
    rows = np.eye(5)[[3, 0, 4, 1]]
    k = cr.multinomial(cr.tensor(rows), 6, replacement=True).numpy()
    assert (k == np.array([3, 0, 4, 1])[:, None]).all()


def test_second_derivative_of_dropout() -> None:
    x = cr.tensor([1.0, -2.0, 0.5, 3.0, 1.5, -1.0], dtype=cr.float64)

    def f(x: cr.Tensor) -> cr.Tensor:
        cr.manual_seed(3)
        return (cr.nn.functional.dropout(x, 0.5) ** 3).sum()

    cr.manual_seed(3)
    kept = (cr.nn.functional.dropout(cr.ones_like(x), 0.5) / 2).numpy()
    assert 0 < kept.sum() < 6
    h = jacfwd(jacrev(f), randomness="same")(x).numpy()
    assert np.allclose(h, np.diag(6 * 8 * kept * x.numpy()))


@pytest.mark.parametrize(
    "name", ["dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"]
)
def test_edges_of_the_dropout_family(name: str) -> None:
    f = getattr(cr.nn.functional, name)
    x = cr.randn(2, 3, *{"dropout1d": (2,), "dropout3d": (2, 2, 1)}.get(name, (2, 2)))
    assert f(x, 0.0, training=True) is x
    assert f(x, 0.7, training=False) is x
    assert (f(x, 1.0, training=True).numpy() == 0).all()
    with pytest.raises(ValueError, match="p="):
        f(x, 1.5)


def test_whole_channels_are_dropped() -> None:
    y = cr.nn.functional.dropout2d(cr.ones(40, 5, 3, 3), 0.5).numpy()
    assert (y == y[:, :, :1, :1]).all() and 0 < (y == 0).mean() < 1
    y = cr.nn.functional.dropout1d(cr.ones(50, 4), 0.5).numpy()
    assert (y == y[:, :1]).all() and 0 < (y == 0).mean() < 1


def test_a_sample_has_no_derivative() -> None:
    assert (grad(lambda m: cr.normal(m, 1.0).sum())(cr.ones(3)).numpy() == 0).all()
