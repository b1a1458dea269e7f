"""Kullback-Leibler divergences: ``KL(p, q) = E_p log p - E_p log q``.

Between families on the line the first term is the negative entropy, and the second follows from a few means under p (of x, of log x, of
exp(s x)): one line for each p gives the means, one for each q what it needs. Where p has values that q cannot have, it is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import total_ordering
from typing import Any

import chainrule as cr
from chainrule import Tensor

from .composed import Independent, TransformedDistribution
from .discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from .distribution import Distribution, ExponentialFamily
from .location_scale import Cauchy, Gumbel, Laplace, Normal, Uniform
from .multivariate import Dirichlet, LowRankMultivariateNormal, MultivariateNormal
from .positive import Beta, ContinuousBernoulli, Exponential, Gamma
from .transform_base import sum_rightmost
from .transformed import HalfNormal, Pareto
from .utils import euler_constant

__all__ = ["kl_divergence", "register_kl"]

_TABLE: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}
_FOUND: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """Decorate ``f(p, q)``, the divergence of these types; of those derived from them too, where nothing nearer is registered."""
    for t in (type_p, type_q):
        if not isinstance(t, type):  # a library's distributions may have a root of their own
            raise TypeError(f"register_kl: Expected type_p and type_q to be classes of distributions but got {t!r}")

    def declare(f: Any) -> Any:
        _TABLE[type_p, type_q] = f
        _FOUND.clear()
        return f

    return declare


@total_ordering
class _Near:
    """Pairs of types by how far up they are: one derived from another is nearer."""

    def __init__(self, *types: type) -> None:
        self.types = types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Near) and self.types == other.types

    def __hash__(self) -> int:
        return hash(self.types)

    def __le__(self, other: _Near) -> bool:
        for a, b in zip(self.types, other.types, strict=True):
            if not issubclass(a, b):
                return False
            if a is not b:
                break
        return True


def _find(p: type, q: type) -> Callable[[Any, Any], Tensor]:
    matches = [(a, b) for a, b in _TABLE if issubclass(p, a) and issubclass(q, b)]
    if not matches:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {p.__name__} and q type {q.__name__}")
    left = min(_Near(*m) for m in matches).types
    right = min(_Near(*reversed(m)) for m in matches).types[::-1]
    if left != right and _TABLE[left] is not _TABLE[right]:  # type: ignore[index]
        import warnings

        warnings.warn(
            f"Ambiguous kl_divergence({p.__name__}, {q.__name__}). Please register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _TABLE[left]  # type: ignore[index]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """``E_p log(p / q)``."""
    pair = type(p), type(q)
    f = _FOUND.get(pair)
    if f is None:
        f = _FOUND[pair] = _find(*pair)
    return f(p, q)


# -- on the line --------------------------------------------------------------------------------------------------------


def _xlogx_mean(a: Any, b: Any) -> Any:
    """The mean of ``log x`` over [a, b]."""
    return (cr.xlogy(b, b) - cr.xlogy(a, a)) / (b - a) - 1


# The interval of values of p.
VALUES: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    Normal: lambda p: (-math.inf, math.inf),
    Laplace: lambda p: (-math.inf, math.inf),
    Gumbel: lambda p: (-math.inf, math.inf),
    Exponential: lambda p: (0.0, math.inf),
    Gamma: lambda p: (0.0, math.inf),
    Pareto: lambda p: (p.scale, math.inf),
    Beta: lambda p: (0.0, 1.0),
    ContinuousBernoulli: lambda p: (0.0, 1.0),
    Uniform: lambda p: (p.low, p.high),
}
# The mean of log x under p.
LOG: dict[type, Callable[[Any], Any]] = {
    Beta: lambda p: cr.digamma(p.concentration1) - cr.digamma(p._total),
    Exponential: lambda p: -euler_constant - p.rate.log(),
    Gamma: lambda p: cr.digamma(p.concentration) - p.rate.log(),
    Pareto: lambda p: p.scale.log() + 1 / p.alpha,
    Uniform: lambda p: _xlogx_mean(p.low, p.high),
}
# The mean of log(1 - x) under p.
LOG_REST: dict[type, Callable[[Any], Any]] = {
    Beta: lambda p: cr.digamma(p.concentration0) - cr.digamma(p._total),
    Uniform: lambda p: _xlogx_mean(1 - p.high, 1 - p.low),
}
# The mean of exp(-s x) under p.
DECAY: dict[type, Callable[[Any, Any], Any]] = {
    Normal: lambda p, s: cr.exp(-s * p.loc + (s * p.scale) ** 2 / 2),
    Exponential: lambda p, s: p.rate / (p.rate + s),
    Gamma: lambda p, s: (p.rate / (p.rate + s)) ** p.concentration,
    Gumbel: lambda p, s: cr.exp(-s * p.loc + cr.lgamma(1 + s * p.scale)),
    Uniform: lambda p, s: (cr.exp(-s * p.low) - cr.exp(-s * p.high)) / (s * (p.high - p.low)),
}
# The mean of |x - m| under p.
AWAY: dict[type, Callable[[Any, Any], Any]] = {
    Normal: lambda p, m: _normal_away((p.loc - m) / p.scale) * p.scale,
    Laplace: lambda p, m: (p.loc - m).abs() + p.scale * cr.exp(-(p.loc - m).abs() / p.scale),
}


def _normal_away(z: Tensor) -> Tensor:
    return math.sqrt(2 / math.pi) * cr.exp(-z * z / 2) + z * cr.erf(z / math.sqrt(2))


def _normal(p: Any, q: Any, mean: Any) -> Any:
    z = (p.variance + (mean - q.loc) ** 2) / q.scale**2
    return -z / 2 - q.scale.log() - math.log(2 * math.pi) / 2


def _gamma(p: Any, q: Any, mean: Any, log: Any) -> Any:
    a, r = q.concentration, q.rate
    return a * r.log() - cr.lgamma(a) + (a - 1) * log - r * mean


def _beta(p: Any, q: Any, mean: Any, log: Any, rest: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    return cr.lgamma(a + b) - cr.lgamma(a) - cr.lgamma(b) + (a - 1) * log + (b - 1) * rest


# E_p log q, from the mean of x and the tables named, each a mean under p.
CROSS: dict[type, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    Normal: (_normal, ()),
    Exponential: (lambda p, q, mean: q.rate.log() - q.rate * mean, ()),
    Gamma: (_gamma, (LOG,)),
    Beta: (_beta, (LOG, LOG_REST)),
    Pareto: (lambda p, q, mean, log: q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * log, (LOG,)),
    ContinuousBernoulli: (lambda p, q, mean: mean * q.logits + cr.log1p(-q.probs) + q._log_constant(), ()),
    Uniform: (lambda p, q, mean: -(q.high - q.low).log() + 0 * mean, ()),
    Gumbel: (
        lambda p, q, mean, decay: -(mean - q.loc) / q.scale - cr.exp(q.loc / q.scale) * decay - q.scale.log(), (DECAY,),
    ),
    Laplace: (lambda p, q, mean, away: -away / q.scale - (2 * q.scale).log(), (AWAY,)),
}  # fmt: skip


def _argument(table: Any, q: Any) -> tuple[Any, ...]:
    return (1 / q.scale,) if table is DECAY else (q.loc,) if table is AWAY else ()


def _on_the_line(P: type, Q: type) -> Callable[[Any, Any], Tensor]:
    cross, tables = CROSS[Q]

    def divergence(p: Any, q: Any) -> Tensor:
        (a, b), (low, high) = VALUES[P](p), VALUES[Q](q)
        outside = (low > a) | (high < b)
        mean = p.mean
        if isinstance(outside, bool) and outside:
            return cr.full(
                tuple(cr.broadcast_shapes(tuple(p.batch_shape), tuple(q.batch_shape))), math.inf, dtype=mean.dtype
            )
        value = -p.entropy() - cross(p, q, mean, *[t[P](p, *_argument(t, q)) for t in tables])
        return value if isinstance(outside, bool) else cr.where(outside, math.inf, value)

    return divergence


def _never(p: Any, q: Any) -> Tensor:
    shape = cr.broadcast_shapes(tuple(p.batch_shape), tuple(q.batch_shape))
    return cr.full(tuple(shape), math.inf, dtype=p.mean.dtype)


for _p in VALUES:
    for _q, (_, _tables) in CROSS.items():
        if all(_p in t for t in _tables):
            register_kl(_p, _q)(_on_the_line(_p, _q))
        elif (_p in (Normal, Laplace, Gumbel) and _q in (Gamma, Pareto, Beta)) or (
            _p in (Exponential, Gamma, Pareto) and _q is Beta
        ):
            register_kl(_p, _q)(_never)
register_kl(ContinuousBernoulli, Pareto)(_never)
for _p in (Exponential, Gamma, Beta):
    register_kl(_p, Pareto)(_never)  # q begins above 0


@register_kl(Cauchy, Cauchy)
def _cauchy_cauchy(p: Any, q: Any) -> Tensor:
    return ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log() - (4 * p.scale * q.scale).log()


@register_kl(HalfNormal, HalfNormal)
def _halfnormal_halfnormal(p: Any, q: Any) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


# -- counts and categories ------------------------------------------------------------------------------------------------


def _trial(p: Any, q: Any) -> Tensor:
    """One trial: ``p log(p/q) + (1-p) log((1-p)/(1-q))``."""
    a, b = p.probs, q.probs
    one = cr.where(b == 0, math.inf, cr.where(a == 0, 0.0, a * (a.log() - b.log())))
    zero = cr.where(b == 1, math.inf, cr.where(a == 1, 0.0, (1 - a) * (cr.log1p(-a) - cr.log1p(-b))))
    return cr.where((a == 0) & (b == 0), 0.0, one) + cr.where((a == 1) & (b == 1), 0.0, zero)


register_kl(Bernoulli, Bernoulli)(_trial)


@register_kl(Binomial, Binomial)
def _binomial_binomial(p: Any, q: Any) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    value = p.total_count * (p.probs * (p.logits - q.logits) + cr.log1p(-p.probs) - cr.log1p(-q.probs))
    return cr.where(p.total_count > q.total_count, math.inf, value)


@register_kl(Categorical, Categorical)
def _categorical_categorical(p: Any, q: Any) -> Tensor:
    t = p.probs * (p.logits - q.logits)
    t = cr.where((q.probs == 0).expand(tuple(t.shape)), math.inf, t)
    return cr.where((p.probs == 0).expand(tuple(t.shape)), 0.0, t).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _onehotcategorical_onehotcategorical(p: Any, q: Any) -> Tensor:
    return kl_divergence(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _geometric_geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - cr.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson_poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


register_kl(Poisson, Bernoulli)(_never)
register_kl(Poisson, Binomial)(_never)

# -- vectors --------------------------------------------------------------------------------------------------------------


@register_kl(Dirichlet, Dirichlet)
def _dirichlet_dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    n = a.sum(-1)
    norm = cr.lgamma(n) - cr.lgamma(b.sum(-1)) - (cr.lgamma(a) - cr.lgamma(b)).sum(-1)
    return norm + ((a - b) * (cr.digamma(a) - cr.digamma(n).unsqueeze(-1))).sum(-1)


def _normal_vectors(p: Any, q: Any) -> Tensor:
    """``(log |Q|/|P| + tr(Q**-1 P) + |x|_Q**2 - n) / 2``, x between the means."""
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between normal vectors of different sizes, {tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )
    shape = tuple(cr.broadcast_shapes(tuple(p.batch_shape), tuple(q.batch_shape)))
    n = p.event_shape[0]
    low_p, low_q = p.scale_tril.expand((*shape, n, n)), q.scale_tril.expand((*shape, n, n))
    logs = lambda m: m.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    d = (q.loc - p.loc).expand((*shape, n)).unsqueeze(-1)
    both = cr.linalg.solve_triangular(low_q, cr.cat([low_p, d], -1), upper=False)
    return logs(low_q) - logs(low_p) + 0.5 * ((both * both).sum((-2, -1)) - n)


for _p in (MultivariateNormal, LowRankMultivariateNormal):
    for _q in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(_p, _q)(_normal_vectors)

# -- distributions of distributions ---------------------------------------------------------------------------------------


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponentialfamily_exponentialfamily(p: Any, q: Any) -> Tensor:
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
        )
    a, b = p._natural_params, q._natural_params
    f = p._log_normalizer
    grads = cr.func.grad(lambda *x: f(*x).sum(), tuple(range(len(a))))(*a)
    value = q._log_normalizer(*b) - f(*a)
    for x, y, g in zip(a, b, grads, strict=True):
        value = value - sum_rightmost((y - x) * g, len(q.event_shape))
    return value


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformeddistribution_transformeddistribution(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL between distributions that are transformed in different ways is not implemented")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent_independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "KL between Independents that take different numbers of dimensions is not implemented"
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
