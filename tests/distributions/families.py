"""Examples of every family: a name and arguments, arrays as data of either library."""

from __future__ import annotations

from typing import Any

import numpy as np

RNG = np.random.default_rng(0)


def up(*shape: int) -> np.ndarray:
    """Positive numbers."""
    return RNG.uniform(0.4, 2.5, shape)


def share(*shape: int) -> np.ndarray:
    """Probabilities."""
    return RNG.uniform(0.1, 0.9, shape)


def simplex(*shape: int) -> np.ndarray:
    """Probabilities that are 1 together."""
    x = RNG.uniform(0.1, 1.0, shape)
    return x / x.sum(-1, keepdims=True)


def real(*shape: int) -> np.ndarray:
    """Numbers."""
    return RNG.standard_normal(shape)


def spd(*shape: int) -> np.ndarray:
    """Positive definite matrices."""
    a = RNG.standard_normal((*shape, shape[-1]))
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])


def tril(*shape: int) -> np.ndarray:
    """Lower triangles with positive diagonals."""
    return np.linalg.cholesky(spd(*shape))


S = np.float64
FAMILIES: list[tuple[str, dict[str, Any]]] = [
    ("Bernoulli", {"probs": share(3, 2)}),
    ("Bernoulli", {"logits": real(2)}),
    ("Beta", {"concentration1": up(3), "concentration0": up(2, 3)}),
    ("Beta", {"concentration1": up(3) + 1, "concentration0": up(3) + 1}),
    ("Binomial", {"total_count": 5, "probs": share(3)}),
    ("Binomial", {"total_count": np.array([2.0, 5.0]), "logits": real(2)}),
    ("Categorical", {"probs": up(2, 4)}),
    ("Categorical", {"logits": real(4)}),
    ("Cauchy", {"loc": real(3), "scale": up(3)}),
    ("Chi2", {"df": up(3) * 4}),
    ("ContinuousBernoulli", {"probs": np.array([0.1, 0.5, 0.4995, 0.7])}),
    ("ContinuousBernoulli", {"logits": real(3)}),
    ("Dirichlet", {"concentration": up(2, 3)}),
    ("Dirichlet", {"concentration": up(3) + 1}),
    ("Exponential", {"rate": up(3, 2)}),
    ("FisherSnedecor", {"df1": up(3) * 4, "df2": up(3) * 3 + 4}),
    ("Gamma", {"concentration": up(3), "rate": up(2, 3)}),
    ("GeneralizedPareto", {"loc": real(3), "scale": up(3), "concentration": np.array([0.0, 0.3, -0.4])}),
    ("Geometric", {"probs": share(3)}),
    ("Geometric", {"logits": real(3)}),
    ("Gumbel", {"loc": real(3), "scale": up(3)}),
    ("HalfCauchy", {"scale": up(3)}),
    ("HalfNormal", {"scale": up(3)}),
    ("InverseGamma", {"concentration": up(3) + 2, "rate": up(3)}),
    ("Kumaraswamy", {"concentration1": up(3) + 1, "concentration0": up(3) + 1}),
    ("LKJCholesky", {"dim": 3, "concentration": up(2)}),
    ("Laplace", {"loc": real(3), "scale": up(3)}),
    ("LogNormal", {"loc": real(3), "scale": up(3) / 2}),
    ("LogisticNormal", {"loc": real(2, 3), "scale": up(2, 3)}),
    ("LowRankMultivariateNormal", {"loc": real(2, 4), "cov_factor": real(4, 2), "cov_diag": up(4)}),
    ("Multinomial", {"total_count": 4, "probs": simplex(2, 3)}),
    ("Multinomial", {"total_count": 3, "logits": real(3)}),
    ("MultivariateNormal", {"loc": real(2, 3), "covariance_matrix": spd(3)}),
    ("MultivariateNormal", {"loc": real(3), "precision_matrix": spd(2, 3)}),
    ("MultivariateNormal", {"loc": real(2, 3), "scale_tril": tril(2, 3)}),
    ("NegativeBinomial", {"total_count": np.array([3.0, 1.5]), "probs": share(2)}),
    ("NegativeBinomial", {"total_count": 4.0, "logits": real(2)}),
    ("Normal", {"loc": real(3), "scale": up(2, 3)}),
    ("Normal", {"loc": 0.3, "scale": 1.5}),
    ("OneHotCategorical", {"probs": up(2, 4)}),
    ("OneHotCategoricalStraightThrough", {"logits": real(3)}),
    ("Pareto", {"scale": up(3), "alpha": up(3) + 2}),
    ("Poisson", {"rate": up(3) * 3}),
    ("RelaxedBernoulli", {"temperature": S(0.7), "probs": share(3)}),
    ("RelaxedOneHotCategorical", {"temperature": S(0.7), "logits": real(2, 3)}),
    ("StudentT", {"df": up(3) * 3, "loc": real(3), "scale": up(3)}),
    ("Uniform", {"low": real(3) - 3, "high": real(3) + 3}),
    ("VonMises", {"loc": real(3), "concentration": up(3)}),
    ("Weibull", {"scale": up(3), "concentration": up(3) + 1.0}),
    ("Wishart", {"df": up(2) + 3, "covariance_matrix": spd(2, 3)}),
    ("Wishart", {"df": S(4.5), "scale_tril": tril(2, 2)}),
]


def make(lib: Any, name: str, kw: dict[str, Any], **more: Any) -> Any:
    """The distribution of either library."""
    given = {k: lib.tensor(v) if isinstance(v, np.ndarray | np.floating) else v for k, v in kw.items()}
    return getattr(lib.distributions, name)(**given, **more)
