"""Families that are transformed ones: log-normal, half-normal, Weibull, Pareto, Kumaraswamy, relaxed categories, ..."""

from __future__ import annotations

import math
from typing import Any

import chainrule as cr
from chainrule import Tensor

from ..nn import functional as F
from . import constraints
from .composed import TransformedDistribution
from .discrete import Categorical, _Odds
from .distribution import Distribution
from .location_scale import Cauchy, Normal, Uniform
from .positive import Exponential, Gamma
from .transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    StickBreakingTransform,
)
from .utils import broadcast_all, clamp_probs, euler_constant, inside, uniform


class _Of(TransformedDistribution):
    """A transformed distribution whose parameters are those of its base, or its own."""

    _own: tuple[str, ...] = ()

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with parameters of another, broadcast shape."""
        family = next(c for c in type(self).__mro__ if "_own" in vars(c))
        new = self._get_checked_instance(family, _instance)
        for k in self._own:
            setattr(new, k, getattr(self, k).expand(tuple(batch_shape)))
        new.base_dist = self.base_dist.expand(batch_shape)
        new.transforms = self._transforms(new)
        Distribution.__init__(new, cr.Size(batch_shape), self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _transforms(self, new: Any) -> list[Any]:
        """The transforms of an expanded copy."""
        return self.transforms


class LogNormal(_Of):
    """``exp(x)`` with x normal."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _own = ()

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + self.scale**2 / 2).exp())
    mode = property(lambda self: (self.loc - self.scale**2).exp())
    variance = property(lambda self: cr.expm1(self.scale**2) * (2 * self.loc + self.scale**2).exp())

    def entropy(self) -> Tensor:
        """That of x, and its mean."""
        return self.base_dist.entropy() + self.loc


class _Half(_Of):
    """``|x|`` of a distribution that is symmetric around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: cr.zeros_like(self.scale))

    def log_prob(self, value: Tensor) -> Tensor:
        """Twice the density, and none below 0."""
        if self._validate_args:
            self._validate_sample(value)
        return cr.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """``2 F(x) - 1``."""
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        """Where the cdf is `value`."""
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        """A bit less than that of x."""
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """``|x|`` with x normal."""

    _own = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        TransformedDistribution.__init__(self, Normal(0, scale, validate_args=False), AbsTransform(), validate_args)

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale**2 * (1 - 2 / math.pi))


class HalfCauchy(_Half):
    """``|x|`` with x of the Cauchy distribution."""

    _own = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        TransformedDistribution.__init__(self, Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args)

    mean = property(lambda self: cr.full_like(self.scale, math.inf))
    variance = property(lambda self: self.base_dist.variance)


class Pareto(_Of):
    """``scale exp(x / alpha)`` with x exponential: ``alpha scale**alpha / y**(alpha + 1)``."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    _own = ("scale", "alpha")

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, self._transforms(self), validate_args=validate_args)

    def _transforms(self, new: Any) -> list[Any]:
        return [ExpTransform(), AffineTransform(loc=0, scale=new.scale)]

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From `scale` on."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        """Infinite for alpha <= 1."""
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    mode = property(lambda self: self.scale)

    @property
    def variance(self) -> Tensor:
        """Infinite for alpha <= 2."""
        a = self.alpha.clamp(min=2)
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))

    def entropy(self) -> Tensor:
        """``log(scale / alpha) + 1 + 1 / alpha``."""
        return (self.scale / self.alpha).log() + 1 + self.alpha.reciprocal()


class Weibull(_Of):
    """``scale x**(1 / concentration)`` with x exponential."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _own = ("scale", "concentration")

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(cr.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, self._transforms(self), validate_args=validate_args)

    def _transforms(self, new: Any) -> list[Any]:
        return [PowerTransform(new.concentration.reciprocal()), AffineTransform(loc=0, scale=new.scale)]

    concentration_reciprocal = property(lambda self: self.concentration.reciprocal())
    mean = property(lambda self: self.scale * cr.exp(cr.lgamma(1 + self.concentration_reciprocal)))

    @property
    def mode(self) -> Tensor:
        """0 for concentrations below 1."""
        k = self.concentration
        return self.scale * ((k - 1).clamp(min=0) / k) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        """In gamma functions."""
        r = self.concentration_reciprocal
        return self.scale**2 * (cr.exp(cr.lgamma(1 + 2 * r)) - cr.exp(2 * cr.lgamma(1 + r)))

    def entropy(self) -> Tensor:
        """``euler (1 - 1/k) + log(scale / k) + 1``."""
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + cr.log(self.scale * r) + 1


class Kumaraswamy(_Of):
    """``(1 - (1 - u)**(1/b))**(1/a)``: like beta, with a distribution function that is simple."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _own = ("concentration1", "concentration0")

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        one = cr.ones_like(self.concentration0)
        base = Uniform(cr.zeros_like(one), one, validate_args=validate_args)
        super().__init__(base, self._transforms(self), validate_args=validate_args)

    def _transforms(self, new: Any) -> list[Any]:
        return [
            PowerTransform(new.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(new.concentration1.reciprocal()),
        ]

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of the parameters, away from the ends."""
        x = uniform(self._extended_shape(sample_shape), self.concentration1)
        for t in self.transforms:
            x = t(x)
        return inside(x)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, without a derivative."""
        with cr.no_grad():
            return self.rsample(sample_shape).detach()

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        up = 1 + n / a
        return cr.exp(b.log() + cr.lgamma(up) + cr.lgamma(b) - cr.lgamma(up + b))

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1) ** 2)

    @property
    def mode(self) -> Tensor:
        """``((a - 1) / (a b - 1))**(1/a)``, for a, b >= 1."""
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1) & (a * b > 1)
        ratio = cr.where(inside, (a - 1) / cr.where(inside, a * b - 1, 1.0), math.nan)
        return ratio ** a.reciprocal()

    def entropy(self) -> Tensor:
        """In digammas."""
        t1, t0 = 1 - self.concentration1.reciprocal(), 1 - self.concentration0.reciprocal()
        h0 = cr.digamma(self.concentration0 + 1) + euler_constant
        return t0 + t1 * h0 - self.concentration1.log() - self.concentration0.log()


class InverseGamma(_Of):
    """``1 / x`` with x of the gamma distribution."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _own = ()

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        power = PowerTransform(-cr.ones((), dtype=base.rate.dtype))
        super().__init__(base, power, validate_args=validate_args)

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)
    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def mean(self) -> Tensor:
        """Infinite for concentrations up to 1."""
        a = self.concentration
        return cr.where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def variance(self) -> Tensor:
        """Infinite for concentrations up to 2."""
        a = self.concentration
        return cr.where(a > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        """In digammas."""
        a = self.concentration
        return a + self.rate.log() + cr.lgamma(a) - (1 + a) * cr.digamma(a)


class LogisticNormal(_Of):
    """Shares of a stick, broken at normal numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    _own = ()

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)


# -- relaxed categories -------------------------------------------------------------------------------------------------


class LogitRelaxedBernoulli(_Odds):
    """The log-odds of a relaxed trial: ``(logit + logistic noise) / temperature``."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _params = {"probs": 0, "logits": 0}

    def __init__(
        self, temperature: Tensor, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._either(probs, logits, validate_args)

    def _expand_more(self, new: Any, shape: Any) -> None:
        new.temperature = self.temperature

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of the parameters."""
        u = uniform(self._extended_shape(sample_shape), self.logits)
        p = clamp_probs(self.probs.expand(tuple(self._extended_shape(sample_shape))))
        return (u.log() - cr.log1p(-u) + p.log() - cr.log1p(-p)) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        d = logits - value * self.temperature
        return cr.as_tensor(self.temperature, dtype=d.dtype).log() + d - 2 * F.softplus(d)


class _Relaxed(TransformedDistribution):
    """The parameters of the base, whose temperature says how near to a choice a draw is."""

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with parameters of another, broadcast shape."""
        return super().expand(batch_shape, type(self).__new__(type(self)) if _instance is None else _instance)

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)


class RelaxedBernoulli(_Relaxed):
    """A number in (0, 1) that is near 0 or 1 at low temperatures."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Tensor, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args)


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a relaxed category: the softmax of ``(logits + Gumbel noise) / temperature``."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature: Tensor, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical, self.temperature = Categorical(probs, logits), temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with parameters of another, broadcast shape."""
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        new.temperature, new._categorical = self.temperature, self._categorical.expand(batch_shape)
        Distribution.__init__(new, cr.Size(batch_shape), self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    param_shape = property(lambda self: self._categorical.param_shape)
    logits = property(lambda self: self._categorical.logits)
    probs = property(lambda self: self._categorical.probs)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of the parameters."""
        g = -(-uniform(self._extended_shape(sample_shape), self.logits).log()).log()
        return cr.log_softmax((self.logits + g) / self.temperature, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        n = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        t = cr.as_tensor(self.temperature, dtype=logits.dtype)
        score = logits - value * t
        score = (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1)
        return score + math.lgamma(n) + t.log() * (n - 1)


class RelaxedOneHotCategorical(_Relaxed):
    """Shares that are near a row with a single 1 at low temperatures."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature: Tensor, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(ExpRelaxedCategorical(temperature, probs, logits), ExpTransform(), validate_args)
