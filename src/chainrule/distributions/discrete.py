"""Families of counts and of categories."""

from __future__ import annotations

import math
from typing import Any

import chainrule as cr
from chainrule import Tensor

from ..nn import functional as F
from . import constraints
from .distribution import Distribution, ExponentialFamily, Family, holds
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


class _Odds(Family):
    """A distribution by a probability or by its log-odds: one of them is given, the other follows."""

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    _params = {"probs": 0, "logits": 0}

    def _either(self, probs: Any, logits: Any, validate_args: bool | None, **more: Any) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name, value = ("logits", logits) if probs is None else ("probs", probs)
        *others, v = broadcast_all(*more.values(), value)
        for k, x in zip(more, others, strict=True):
            setattr(self, k, x)
        setattr(self, name, v)
        Distribution.__init__(self, v.shape, validate_args=validate_args)

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
        return logits_to_probs(self.logits, is_binary=True)

    def _check(self, value: Any) -> None:
        if self._validate_args:
            self._validate_sample(value)


class Bernoulli(_Odds, ExponentialFamily):
    """1 with probability p, else 0."""

    support = constraints.boolean
    has_enumerate_support = True
    _params = {"probs": 0, "logits": 0}
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._either(probs, logits, validate_args)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self) -> Tensor:
        """The likelier one; NaN if there is none."""
        return cr.where(self.probs == 0.5, math.nan, (self.probs >= 0.5).to(self.probs.dtype))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, without a derivative."""
        with cr.no_grad():
            return cr.bernoulli(self.probs.expand(tuple(self._extended_shape(sample_shape))))

    def log_prob(self, value: Tensor) -> Tensor:
        """``x logit - log(1 + exp(logit))``."""
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        """``-p log(p) - (1-p) log(1-p)``."""
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0 and 1."""
        return self._enumerated(cr.arange(2, dtype=self._param.dtype), expand)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (cr.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return cr.log1p(cr.exp(x))


class Geometric(_Odds):
    """k failures before the first success: ``(1-p)**k p``."""

    support = constraints.nonnegative_integer
    _params = {"probs": 0, "logits": 0}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._either(probs, logits, validate_args)
        if self._validate_args and probs is not None and not holds(self.probs > 0):
            raise ValueError(
                f"Expected parameter probs of distribution {self!r} to be positive but found invalid values:\n{self.probs}"
            )

    mean = property(lambda self: 1 / self.probs - 1)
    mode = property(lambda self: cr.zeros_like(self.probs))
    variance = property(lambda self: (1 / self.probs - 1) / self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, without a derivative."""
        with cr.no_grad():
            u = cr.rand(tuple(self._extended_shape(sample_shape)), dtype=self.probs.dtype)
            return (cr.log(u.clamp(min=cr.finfo(u.dtype).tiny)) / cr.log1p(-self.probs)).floor().detach()

    def log_prob(self, value: Tensor) -> Tensor:
        """``k log(1-p) + log(p)``."""
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        free = cr.where((probs == 1) & (value == 0), 0.0, probs)
        return value * cr.log1p(-free) + self.probs.log()

    def entropy(self) -> Tensor:
        """The entropy of a trial, divided by p."""
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Binomial(_Odds):
    """Successes in `total_count` trials."""

    arg_constraints = {**_Odds.arg_constraints, "total_count": constraints.nonnegative_integer}
    has_enumerate_support = True
    _params = {"total_count": 0, "probs": 0, "logits": 0}
    total_count: Tensor

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._either(probs, logits, validate_args, total_count=total_count)
        self.total_count = self.total_count.to(self._param.dtype)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """0, ..., `total_count`."""
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, without a derivative."""
        shape = tuple(self._extended_shape(sample_shape))
        with cr.no_grad():
            return cr.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._check(value)
        n, k, logit = self.total_count, value, self.logits
        choose = cr.lgamma(n + 1) - cr.lgamma(k + 1) - cr.lgamma(n - k + 1)
        up = logit.clamp(min=0)
        return choose + k * logit - n * (up + cr.log1p(cr.exp(-logit.abs())))

    def entropy(self) -> Tensor:
        """The sum over all values, for one `total_count`."""
        n = int(self.total_count.max())
        if bool((self.total_count != n).any()):
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        p = self.log_prob(self.enumerate_support(False))
        return -(cr.exp(p) * p).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0, ..., `total_count`."""
        n = int(self.total_count.max())
        if bool((self.total_count != n).any()):
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        return self._enumerated(cr.arange(1 + n, dtype=self._param.dtype), expand)


class NegativeBinomial(_Odds):
    """Successes before `total_count` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _params = {"total_count": 0, "probs": 0, "logits": 0}
    total_count: Tensor

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._either(probs, logits, validate_args, total_count=total_count)
        self.total_count = self.total_count.to(self._param.dtype)

    mean = property(lambda self: self.total_count * cr.exp(self.logits))
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / cr.sigmoid(-self.logits))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """A Poisson number whose rate is a gamma number."""
        from .positive import Gamma

        with cr.no_grad():
            rate = Gamma(self.total_count, cr.exp(-self.logits), validate_args=False).sample(sample_shape)
            return cr.poisson(rate)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        self._check(value)
        n = self.total_count
        norm = -cr.lgamma(n + value) + cr.lgamma(1.0 + value) + cr.lgamma(n)
        norm = cr.where(n + value == 0, 0.0, norm)
        return n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits) - norm


class Poisson(Family, ExponentialFamily):
    """``rate**k exp(-rate) / k!``."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _params = {"rate": 0}
    rate: Tensor

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    mean = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())
    variance = property(lambda self: self.rate)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, without a derivative."""
        with cr.no_grad():
            return cr.poisson(self.rate.expand(tuple(self._extended_shape(sample_shape))))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return cr.xlogy(value, rate) - rate - cr.lgamma(value + 1)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.exp()


class Categorical(Distribution):
    """A number 0, ..., n-1, with these probabilities (or with logarithms of them, up to a constant)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _params = {"probs": 1, "logits": 1}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = logits if probs is None else probs
        if given.ndim < 1:
            raise ValueError(f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    def _expand_more(self, new: Any, shape: Any) -> None:
        new._num_events = self._num_events

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """0, ..., n-1."""
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    @property
    def _param(self) -> Tensor:
        return self.probs if "probs" in self.__dict__ else self.logits

    param_shape = property(lambda self: self._param.shape)
    mean = property(lambda self: cr.full(tuple(self.batch_shape), math.nan, dtype=self.probs.dtype))
    mode = property(lambda self: self.probs.argmax(-1))
    variance = property(lambda self: cr.full(tuple(self.batch_shape), math.nan, dtype=self.probs.dtype))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, without a derivative."""
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        with cr.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            n = math.prod(shape)
            if not n or not rows.shape[0]:
                return cr.zeros(tuple(self._extended_shape(shape)), dtype=cr.int64)
            return cr.multinomial(rows, n, True).mT.reshape(tuple(self._extended_shape(shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        if self._validate_args:
            self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        shape = cr.broadcast_shapes(tuple(value.shape[:-1]), tuple(self.logits.shape[:-1]))
        logits = self.logits.expand((*shape, self._num_events))
        return logits.gather(-1, value.expand((*shape, 1))).squeeze(-1)

    def entropy(self) -> Tensor:
        """``-sum p log(p)``."""
        low = cr.finfo(self.logits.dtype).min
        return -(self.logits.clamp(min=low) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0, ..., n-1."""
        return self._enumerated(cr.arange(self._num_events), expand)


class OneHotCategorical(Distribution):
    """A category as a row with 1 in its place."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with parameters of another, broadcast shape."""
        new = self._get_checked_instance(OneHotCategorical, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        Distribution.__init__(new, cr.Size(batch_shape), self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    _param = property(lambda self: self._categorical._param)
    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    mean = property(lambda self: self._categorical.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    def _row(self, index: Tensor) -> Tensor:
        return F.one_hot(index, self._categorical._num_events).to(self._param.dtype)

    @property
    def mode(self) -> Tensor:
        """The likeliest one."""
        return self._row(self.probs.argmax(-1))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, without a derivative."""
        return self._row(self._categorical.sample(sample_shape)).detach()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        """``-sum p log(p)``."""
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The rows of the unit matrix."""
        return self._enumerated(cr.eye(self.event_shape[0], dtype=self._param.dtype), expand, 1)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Draws whose derivative is that of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """``x + p - p``, of which the last is a constant."""
        p = self.probs
        return self.sample(sample_shape) + (p - p.detach())


class Multinomial(Distribution):
    """How often each category came in `total_count` draws."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with parameters of another, broadcast shape."""
        new = self._get_checked_instance(Multinomial, _instance)
        new.total_count, new._categorical = self.total_count, self._categorical.expand(batch_shape)
        Distribution.__init__(new, cr.Size(batch_shape), self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts that are `total_count` together."""
        return constraints.multinomial(self.total_count)

    _param = property(lambda self: self._categorical._param)
    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, without a derivative."""
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        draws = self._categorical.sample((self.total_count, *shape))
        return F.one_hot(draws, self._categorical._num_events).to(self.probs.dtype).sum(0).detach()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability."""
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = cr.where((value == 0) & (logits == -math.inf), 0.0, logits)
        return cr.lgamma(value.sum(-1) + 1) - cr.lgamma(value + 1).sum(-1) + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        """By the binomial distributions of the counts."""
        n = cr.as_tensor(float(self.total_count), dtype=self.probs.dtype)
        counts = Binomial(self.total_count, self.probs, validate_args=False)
        support = counts.enumerate_support(expand=False)[1:]
        weights = cr.exp(counts.log_prob(support))
        return n * self._categorical.entropy() - cr.lgamma(n + 1) + (weights * cr.lgamma(support + 1)).sum((0, -1))
