"""Distributions: densities, draws as functions of the parameters, constraints and transforms, divergences."""

from __future__ import annotations

import sys as _sys

from . import (
    composed,
    constraint_registry,
    constraints,
    discrete,
    kl,
    location_scale,
    multivariate,
    positive,
    transformed,
    transforms,
    utils,
)
from .composed import Independent, MixtureSameFamily, TransformedDistribution
from .constraint_registry import biject_to, transform_to
from .discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from .distribution import Distribution, ExponentialFamily
from .kl import kl_divergence, register_kl
from .location_scale import Cauchy, Gumbel, Laplace, Normal, StudentT, Uniform, VonMises
from .multivariate import Dirichlet, LKJCholesky, LowRankMultivariateNormal, MultivariateNormal, Wishart
from .positive import Beta, Chi2, ContinuousBernoulli, Exponential, FisherSnedecor, Gamma, GeneralizedPareto
from .transformed import (
    HalfCauchy,
    HalfNormal,
    InverseGamma,
    Kumaraswamy,
    LogisticNormal,
    LogNormal,
    Pareto,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
    Weibull,
)
from .transforms import *

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet", "Distribution", "Exponential",
    "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent",
    "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal",
    "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT",
    "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart", "biject_to", "constraint_registry", "constraints", "kl",
    "kl_divergence", "register_kl", "transform_to", "transforms", "utils", *transforms.__all__,
]  # fmt: skip

# Where PyTorch has them: one module for each family.
_PLACES = {
    location_scale: "cauchy gumbel laplace normal studentT uniform von_mises",
    positive: "beta chi2 continuous_bernoulli exponential fishersnedecor gamma generalized_pareto",
    discrete: "bernoulli binomial categorical geometric multinomial negative_binomial one_hot_categorical poisson",
    multivariate: "dirichlet lkj_cholesky lowrank_multivariate_normal multivariate_normal wishart",
    transformed: "half_cauchy half_normal inverse_gamma kumaraswamy log_normal logistic_normal pareto relaxed_bernoulli relaxed_categorical weibull",
    composed: "independent mixture_same_family transformed_distribution",
}
for _module, _names in _PLACES.items():
    for _name in _names.split():
        _sys.modules.setdefault(f"{__name__}.{_name}", _module)
        globals().setdefault(_name, _module)
_sys.modules.setdefault(f"{__name__}.exp_family", _sys.modules[f"{__name__}.distribution"])


def __dir__() -> list[str]:
    return __all__
