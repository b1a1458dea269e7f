"""Families on the line by place and width: normal, Laplace, Cauchy, Student's t, uniform, von Mises on the circle."""

from __future__ import annotations

import math
from typing import Any

import chainrule as cr
from chainrule import Tensor

from ..ops.random.implicit import von_mises_inverse_p
from . import constraints
from .distribution import ExponentialFamily, Family, holds
from .positive import Chi2
from .utils import standard_normal, uniform

_LOG_2PI = math.log(2 * math.pi)
_PLACE = {"loc": constraints.real, "scale": constraints.positive}


class _LocationScale(Family):
    """``loc + scale z``: subclasses give the density, the distribution function and the quantiles of z."""

    arg_constraints = _PLACE
    support = constraints.real
    has_rsample = True
    _params = {"loc": 0, "scale": 0}

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    def _z(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (value - self.loc) / self.scale

    def _draw(self, shape: Any) -> Tensor:
        return self._quantile(uniform(shape, self.loc))

    def _quantile(self, u: Tensor) -> Tensor:
        raise NotImplementedError

    def _log_density(self, z: Tensor) -> Tensor:
        raise NotImplementedError

    def _below(self, z: Tensor) -> Tensor:
        raise NotImplementedError

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of the parameters."""
        return self.loc + self.scale * self._draw(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        return self._log_density(self._z(value)) - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a draw up to `value`."""
        return self._below(self._z(value))

    def icdf(self, value: Tensor) -> Tensor:
        """Where the cdf is `value`."""
        return self.loc + self.scale * self._quantile(value)


class Normal(_LocationScale, ExponentialFamily):
    """``exp(-z**2 / 2) / sqrt(2 pi)``."""

    _params = {"loc": 0, "scale": 0}
    _mean_carrier_measure = 0
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale**2)

    def _draw(self, shape: Any) -> Tensor:
        return standard_normal(shape, self.loc)

    def _log_density(self, z: Tensor) -> Tensor:
        return -(z * z) / 2 - _LOG_2PI / 2

    def _below(self, z: Tensor) -> Tensor:
        return cr.special.ndtr(z)

    def _quantile(self, u: Tensor) -> Tensor:
        return cr.special.ndtri(u)

    def entropy(self) -> Tensor:
        """``1/2 + log(2 pi)/2 + log(scale)``."""
        return 0.5 + _LOG_2PI / 2 + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        v = self.scale**2
        return self.loc / v, -0.5 / v

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return -0.25 * x**2 / y + 0.5 * (-math.pi / y).log()


class Laplace(_LocationScale):
    """``exp(-|z|) / 2``."""

    _params = {"loc": 0, "scale": 0}
    variance = property(lambda self: 2 * self.scale**2)
    stddev = property(lambda self: 2**0.5 * self.scale)

    def _log_density(self, z: Tensor) -> Tensor:
        return -z.abs() - math.log(2)

    def _below(self, z: Tensor) -> Tensor:
        return 0.5 - 0.5 * z.sign() * cr.expm1(-z.abs())

    def _quantile(self, u: Tensor) -> Tensor:
        h = u - 0.5
        return -h.sign() * cr.log1p(-2 * h.abs())

    def entropy(self) -> Tensor:
        """``1 + log(2 scale)``."""
        return 1 + (2 * self.scale).log()


class Cauchy(_LocationScale):
    """``1 / (pi (1 + z**2))``."""

    _params = {"loc": 0, "scale": 0}
    mean = property(lambda self: cr.full_like(self.loc, math.nan))
    variance = property(lambda self: cr.full_like(self.loc, math.inf))

    def _log_density(self, z: Tensor) -> Tensor:
        return -math.log(math.pi) - cr.log1p(z * z)

    def _below(self, z: Tensor) -> Tensor:
        return cr.atan(z) / math.pi + 0.5

    def _quantile(self, u: Tensor) -> Tensor:
        return cr.tan(math.pi * (u - 0.5))

    def entropy(self) -> Tensor:
        """``log(4 pi scale)``."""
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(_LocationScale):
    """``exp(-z - exp(-z))``: the largest of many."""

    _params = {"loc": 0, "scale": 0}
    mean = property(lambda self: self.loc + self.scale * 0.57721566490153286060)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: self.stddev**2)

    def _log_density(self, z: Tensor) -> Tensor:
        return -z - cr.exp(-z)

    def _below(self, z: Tensor) -> Tensor:
        return cr.exp(-cr.exp(-z))

    def _quantile(self, u: Tensor) -> Tensor:
        return -cr.log(-cr.log(u))

    def entropy(self) -> Tensor:
        """``log(scale) + 1 + Euler's constant``."""
        return self.scale.log() + 1.57721566490153286060


class StudentT(Family):
    """``loc + scale z / sqrt(c / df)``, z normal and c of the chi-squared distribution."""

    arg_constraints = {"df": constraints.positive, **_PLACE}
    support = constraints.real
    has_rsample = True
    _params = {"df": 0, "loc": 0, "scale": 0}

    df: Tensor
    loc: Tensor
    scale: Tensor

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self._set(validate_args, df=df, loc=loc, scale=scale)

    mode = property(lambda self: self.loc)

    @property
    def mean(self) -> Tensor:
        """`loc`, for df > 1."""
        return cr.where(self.df > 1, self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        """``scale**2 df / (df - 2)`` for df > 2, infinite for df > 1."""
        two = cr.where(self.df > 2, self.df, 3.0)
        v = cr.where(self.df > 2, self.scale**2 * two / (two - 2), math.inf)
        return cr.where(self.df > 1, v, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of the parameters, of `df` too."""
        shape = self._extended_shape(sample_shape)
        z = standard_normal(shape, self.df)
        c = Chi2(self.df.expand(tuple(shape)), validate_args=False).rsample()
        return self.loc + self.scale * z * cr.rsqrt(c / self.df)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        z, n = (value - self.loc) / self.scale, self.df
        norm = self.scale.log() + 0.5 * (n * math.pi).log() + cr.lgamma(n / 2) - cr.lgamma((n + 1) / 2)
        return -0.5 * (n + 1) * cr.log1p(z * z / n) - norm

    def entropy(self) -> Tensor:
        """In digammas of df."""
        n = self.df
        beta = cr.lgamma(0.5 * n) + math.lgamma(0.5) - cr.lgamma(0.5 * (n + 1))
        half = 0.5 * (n + 1)
        return self.scale.log() + half * (cr.digamma(half) - cr.digamma(0.5 * n)) + 0.5 * n.log() + beta


class Uniform(Family):
    """``1 / (high - low)`` in [low, high]."""

    has_rsample = True
    _params = {"low": 0, "high": 0}
    low: Tensor
    high: Tensor

    @property
    def arg_constraints(self) -> Any:
        """`low` below `high`."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, low=low, high=high)
        if self._validate_args and not holds(self.low < self.high):
            raise ValueError("Uniform is not defined when low>= high")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """[low, high]."""
        return constraints.interval(self.low, self.high)

    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: math.nan * self.high)
    stddev = property(lambda self: (self.high - self.low) / 12**0.5)
    variance = property(lambda self: (self.high - self.low) ** 2 / 12)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of the ends."""
        u = cr.rand(tuple(self._extended_shape(sample_shape)), dtype=self.low.dtype)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """``-log(high - low)`` inside, ``-inf`` outside."""
        if self._validate_args:
            self._validate_sample(value)
        inside = self.low.le(value) & self.high.gt(value)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        """The part of the interval below `value`."""
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        """Where the cdf is `value`."""
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        """``log(high - low)``."""
        return (self.high - self.low).log()


class VonMises(Family):
    """``exp(concentration cos(x - loc)) / (2 pi I0(concentration))`` on the circle."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = True
    _params = {"loc": 0, "concentration": 0}
    loc: Tensor
    concentration: Tensor

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, concentration=concentration)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        """The circular variance, ``1 - I1/I0``."""
        k = self.concentration
        return 1 - cr.special.i1e(k) / cr.special.i0e(k)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Angles in [-pi, pi) as functions of the parameters."""
        shape = tuple(self._extended_shape(sample_shape))
        x = von_mises_inverse_p.bind(self.concentration.expand(shape), uniform(shape, self.loc)) + self.loc
        return cr.remainder(x + math.pi, 2 * math.pi) - math.pi

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        return k * (cr.cos(value - self.loc) - 1) - _LOG_2PI - cr.special.i0e(k).log()
