"""Families on the positive numbers and on the unit interval: gamma and its relatives, exponential, beta, continuous Bernoulli."""

from __future__ import annotations

import math
from typing import Any

import chainrule as cr
from chainrule import Tensor

from ..ops.random.implicit import gamma_inverse_p
from . import constraints
from .distribution import ExponentialFamily, Family, holds
from .utils import broadcast_all, clamp_probs, inside, lazy_property, logits_to_probs, probs_to_logits, uniform


def standard_gamma(concentration: Tensor) -> Tensor:
    """Draws of the gamma distribution as functions of its concentration."""
    u = uniform(tuple(concentration.shape), concentration)
    tiny = cr.finfo(concentration.dtype).tiny
    return gamma_inverse_p.bind(concentration, u).clamp(min=tiny)


class Exponential(Family, ExponentialFamily):
    """``rate exp(-rate x)``."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _params = {"rate": 0}
    _mean_carrier_measure = 0
    rate: Tensor

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    mean = property(lambda self: 1 / self.rate)
    mode = property(lambda self: cr.zeros_like(self.rate))
    stddev = property(lambda self: 1 / self.rate)
    variance = property(lambda self: self.rate**-2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of the rate."""
        return -cr.log1p(-uniform(self._extended_shape(sample_shape), self.rate)) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """``log(rate) - rate x``."""
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        """``1 - exp(-rate x)``."""
        if self._validate_args:
            self._validate_sample(value)
        return -cr.expm1(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        """Where the cdf is `value`."""
        return -cr.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        """``1 - log(rate)``."""
        return 1 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return -(-x).log()


class Gamma(Family, ExponentialFamily):
    """``rate**a x**(a-1) exp(-rate x) / Gamma(a)``, a the concentration."""

    arg_constraints: Any = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _params = {"concentration": 0, "rate": 0}
    _mean_carrier_measure = 0
    concentration: Tensor
    rate: Tensor

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration=concentration, rate=rate)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate**2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of both parameters."""
        shape = tuple(self._extended_shape(sample_shape))
        value = standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        return value.clamp(min=cr.finfo(value.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        value = cr.as_tensor(value, dtype=self.rate.dtype)
        if self._validate_args:
            self._validate_sample(value)
        a, r = self.concentration, self.rate
        return cr.xlogy(a, r) + cr.xlogy(a - 1, value) - r * value - cr.lgamma(a)

    def entropy(self) -> Tensor:
        """``a - log(rate) + lgamma(a) + (1 - a) digamma(a)``."""
        a = self.concentration
        return a - self.rate.log() + cr.lgamma(a) + (1 - a) * cr.digamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        """The incomplete gamma function."""
        if self._validate_args:
            self._validate_sample(value)
        return cr.special.gammainc(self.concentration, self.rate * value)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return cr.lgamma(x + 1) + (x + 1) * (-y.reciprocal()).log()


class Chi2(Gamma):
    """The sum of squares of `df` normal numbers: ``Gamma(df / 2, 1 / 2)``."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with parameters of another, broadcast shape."""
        return super().expand(batch_shape, self._get_checked_instance(Chi2, _instance))

    @property
    def df(self) -> Tensor:
        """The number of squares."""
        return self.concentration * 2


class FisherSnedecor(Family):
    """The ratio of two chi-squared numbers, each divided by its `df`."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _params = {"df1": 0, "df2": 0}
    df1: Tensor
    df2: Tensor

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, df1=df1, df2=df2)

    @property
    def mean(self) -> Tensor:
        """``df2 / (df2 - 2)``, for df2 > 2."""
        return cr.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        """For df1 > 2."""
        m = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return cr.where(self.df1 > 2, m, math.nan)

    @property
    def variance(self) -> Tensor:
        """For df2 > 4."""
        a, b = self.df1, cr.where(self.df2 > 4, self.df2, math.nan)
        return 2 * b**2 * (a + b - 2) / (a * (b - 2) ** 2 * (b - 4))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of the parameters."""
        shape = tuple(self._extended_shape(sample_shape))
        x, y = (standard_gamma(d.expand(shape) / 2) / d for d in (self.df1, self.df2))
        tiny = cr.finfo(x.dtype).tiny
        return (x / y.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        norm = cr.lgamma(a + b) - cr.lgamma(a) - cr.lgamma(b)
        return norm + a * ratio.log() + (a - 1) * value.log() - (a + b) * cr.log1p(ratio * value)


class Beta(Family, ExponentialFamily):
    """``x**(a-1) (1-x)**(b-1) / B(a, b)``, a and b the concentrations of 1 and of 0."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _params = {"concentration1": 0, "concentration0": 0}
    concentration1: Tensor
    concentration0: Tensor
    _mean_carrier_measure = 0

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration1=concentration1, concentration0=concentration0)

    @property
    def _total(self) -> Tensor:
        return self.concentration1 + self.concentration0

    @property
    def _dirichlet(self) -> Any:
        from .multivariate import Dirichlet

        both = cr.stack([self.concentration1, self.concentration0], -1)
        return Dirichlet(both, validate_args=False)

    mean = property(lambda self: self.concentration1 / self._total)
    mode = property(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self) -> Tensor:
        """``a b / ((a + b)**2 (a + b + 1))``."""
        n = self._total
        return self.concentration1 * self.concentration0 / (n**2 * (n + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of both parameters, in double: small concentrations give gamma numbers below every float32."""
        shape = tuple(self._extended_shape(sample_shape))
        a, b = (standard_gamma(c.expand(shape).double()) for c in (self.concentration1, self.concentration0))
        return inside((a / (a + b)).to(self.concentration1.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        norm = cr.lgamma(a) + cr.lgamma(b) - cr.lgamma(a + b)
        return cr.xlogy(a - 1, value) + cr.special.xlog1py(b - 1, -value) - norm

    def entropy(self) -> Tensor:
        """In digammas."""
        a, b, n = self.concentration1, self.concentration0, self._total
        norm = cr.lgamma(a) + cr.lgamma(b) - cr.lgamma(n)
        return norm - (a - 1) * cr.digamma(a) - (b - 1) * cr.digamma(b) + (n - 2) * cr.digamma(n)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return cr.lgamma(x) + cr.lgamma(y) - cr.lgamma(x + y)


class GeneralizedPareto(Family):
    """``(1 + c z)**(-1 - 1/c) / scale`` with ``z = (x - loc) / scale``, c the concentration; exponential for c = 0."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _params = {"loc": 0, "scale": 0, "concentration": 0}
    loc: Tensor
    scale: Tensor
    concentration: Tensor

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From `loc` to ``loc - scale / c`` if c < 0, else without end."""
        c = self.concentration
        end = cr.where(c < 0, self.loc - self.scale / cr.where(c < 0, c, -1.0), math.inf)
        return constraints.interval(self.loc, end)

    def _near(self) -> tuple[Any, Tensor]:
        """Where c is 0 for all that can be told, and c with 1 in its place there."""
        c = self.concentration
        zero = c.abs() < cr.finfo(c.dtype).eps
        return zero, cr.where(zero, 1.0, c)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of the parameters."""
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def _log_above(self, value: Tensor) -> Tensor:
        zero, c = self._near()
        z = (value - self.loc) / self.scale
        return cr.where(zero, -z, -cr.log1p(cr.where(zero, 0.0, c * z)) / c)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        zero, c = self._near()
        return self._log_above(value) * cr.where(zero, 1.0, c + 1) - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of a draw above `value`."""
        if self._validate_args:
            self._validate_sample(value)
        return self._log_above(value)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of the cdf."""
        return cr.log1p(-cr.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a draw up to `value`."""
        return -cr.expm1(self.log_survival_function(value))

    def icdf(self, value: Tensor) -> Tensor:
        """Where the cdf is `value`."""
        zero, c = self._near()
        log = cr.log1p(-value)
        return self.loc + self.scale * cr.where(zero, -log, cr.expm1(-c * log) / c)

    @property
    def mean(self) -> Tensor:
        """For c < 1."""
        c = self.concentration
        return cr.where(c < 1, self.loc + self.scale / (1 - cr.where(c < 1, c, 0.0)), math.inf)

    @property
    def variance(self) -> Tensor:
        """For c < 1/2."""
        c = cr.where(self.concentration < 0.5, self.concentration, 0.0)
        return cr.where(self.concentration < 0.5, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.inf)

    def entropy(self) -> Tensor:
        """``log(scale) + c + 1``."""
        return self.scale.log() + self.concentration + 1

    mode = property(lambda self: self.loc)


class ContinuousBernoulli(Family, ExponentialFamily):
    """``C(p) p**x (1-p)**(1-x)`` in [0, 1]."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _params = {"probs": 0, "logits": 0}
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._lims = lims
        if validate_args is not None:
            self._validate_args = validate_args
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            if self._validate_args and not holds(constraints.unit_interval.check(self.probs)):
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super(Family, self).__init__(self._param.shape, validate_args=validate_args)

    def _expand_more(self, new: Any, shape: Any) -> None:
        new._lims = self._lims

    @property
    def _param(self) -> Tensor:
        return self.probs if "probs" in self.__dict__ else self.logits

    param_shape = property(lambda self: self._param.shape)

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside(self) -> Any:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Tensor:
        return cr.where(self._outside(), self.probs, self._lims[0])

    def _log_constant(self) -> Tensor:
        """``log(2 atanh(1 - 2p) / (1 - 2p))``, by its series near p = 1/2."""
        p = self._cut()
        low, high = cr.where(p <= 0.5, p, 0.0), cr.where(p >= 0.5, p, 1.0)
        exact = cr.log((cr.log1p(-p) - cr.log(p)).abs()) - cr.where(p <= 0.5, cr.log1p(-2 * low), cr.log(2 * high - 1))
        x = (self.probs - 0.5) ** 2
        return cr.where(self._outside(), exact, math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        """By the series near p = 1/2."""
        p, x = self._cut(), self.probs - 0.5
        exact = p / (2 * p - 1) + 1 / (cr.log1p(-p) - cr.log(p))
        return cr.where(self._outside(), exact, 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    @property
    def variance(self) -> Tensor:
        """By the series near p = 1/2."""
        p, x = self._cut(), (self.probs - 0.5) ** 2
        exact = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / (cr.log1p(-p) - cr.log(p)) ** 2
        return cr.where(self._outside(), exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of the parameter."""
        return self.icdf(uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return value * logits - cr.nn.functional.softplus(logits) + self._log_constant()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a draw up to `value`."""
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut()
        inner = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        whole = cr.where(self._outside(), inner, value)
        return cr.where(value <= 0, 0.0, cr.where(value >= 1, 1.0, whole))

    def icdf(self, value: Tensor) -> Tensor:
        """Where the cdf is `value`."""
        p = self._cut()
        inner = (cr.log1p(-p + value * (2 * p - 1)) - cr.log1p(-p)) / (cr.log(p) - cr.log1p(-p))
        return cr.where(self._outside(), inner, value)

    def entropy(self) -> Tensor:
        """``-E log_prob``, which is linear in x."""
        q = cr.log1p(-self.probs)
        return self.mean * (q - cr.log(self.probs)) - self._log_constant() - q

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        out = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = cr.where(out, x, self._lims[0] - 0.5)
        return cr.where(out, cr.log(cr.special.expm1(cut).abs()) - cr.log(cut.abs()), 0.5 * x + x**2 / 24 - x**4 / 2880)
