"""Distributions of distributions: transformed, independent, mixtures."""

from __future__ import annotations

from typing import Any

import chainrule as cr
from chainrule import Size, Tensor

from . import constraints
from .discrete import Categorical
from .distribution import Distribution
from .transform_base import ComposeTransform, Transform, sum_rightmost


class TransformedDistribution(Distribution):
    """``t_n(... t_1(x))`` with x of another distribution."""

    arg_constraints: Any = {}

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        if len(base_shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {tuple(base_shape)}."
            )
        forward = whole.forward_shape(base_shape)
        base_distribution = base_distribution.expand(
            whole.inverse_shape(forward)[: len(whole.inverse_shape(forward)) - base_event]
        )
        more = whole.domain.event_dim - base_event
        self.base_dist = Independent(base_distribution, more) if more > 0 else base_distribution
        change = whole.codomain.event_dim - whole.domain.event_dim
        event_dim = max(whole.codomain.event_dim, base_event + change)
        cut = len(forward) - event_dim
        super().__init__(forward[:cut], forward[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with parameters of another, broadcast shape."""
        new = self._get_checked_instance(TransformedDistribution, _instance)
        shape = Size(batch_shape)
        inner = ComposeTransform(self.transforms).inverse_shape(shape + self.event_shape)
        new.base_dist = self.base_dist.expand(inner[: len(inner) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        Distribution.__init__(new, shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """Where the last transform goes."""
        if not self.transforms:
            return self.base_dist.support
        s = self.transforms[-1].codomain
        n = len(self.event_shape)
        return constraints.independent(s, n - s.event_dim) if n > s.event_dim else s

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether the base has."""
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, without a derivative."""
        with cr.no_grad():
            x = self.base_dist.sample(sample_shape)
            for t in self.transforms:
                x = t(x)
            return x.detach()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of the parameters."""
        x = self.base_dist.rsample(sample_shape)
        for t in self.transforms:
            x = t(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        """That of the base, less the logarithms of the determinants."""
        if self._validate_args:
            self._validate_sample(value)
        event, y = len(self.event_shape), value
        total: Any = 0.0
        for t in reversed(self.transforms):
            x = t.inv(y)
            event += t.domain.event_dim - t.codomain.event_dim
            total = total - sum_rightmost(t.log_abs_det_jacobian(x, y), event - t.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return total + sum_rightmost(base, event - len(self.base_dist.event_shape))

    def _up(self, value: Tensor) -> Tensor:
        """Probabilities, turned around where the transforms go down."""
        sign: Any = 1
        for t in self.transforms:
            sign = sign * t.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        """That of the base, where the value comes from."""
        for t in reversed(self.transforms):
            value = t.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._up(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        """Where the cdf is `value`."""
        value = self.base_dist.icdf(self._up(value))
        for t in self.transforms:
            value = t(value)
        return value

    def __repr__(self) -> str:
        if type(self) is TransformedDistribution:
            return f"TransformedDistribution({self.base_dist!r}, {self.transforms!r})"
        return super().__repr__()


class Independent(Distribution):
    """The last dimensions of a batch as dimensions of one event."""

    arg_constraints: Any = {}

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        n = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > n:
            raise ValueError(
                f"Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual {reinterpreted_batch_ndims} vs {n}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        event = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(shape[: len(shape) - event], shape[len(shape) - event :], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with parameters of another, broadcast shape."""
        new = self._get_checked_instance(Independent, _instance)
        shape = Size(batch_shape)
        new.base_dist = self.base_dist.expand(shape + self.event_shape[: self.reinterpreted_batch_ndims])
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        Distribution.__init__(new, shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        """That of the base, for all of an event."""
        n = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_dist.support, n) if n else self.base_dist.support

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether the base has, and no dimensions are taken."""
        return not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, without a derivative."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of the parameters."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The sum over an event."""
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        """The sum over an event."""
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, where no dimensions are taken."""
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(Distribution):
    """One of the components, the last dimension of the batch of a distribution, chosen by a categorical one."""

    arg_constraints: Any = {}

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of distributions.Distribution")
        weights, shape = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(tuple(weights)), reversed(tuple(shape)), strict=False):
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({tuple(weights)}) is not compatible with `component_distribution.batch_shape` ({tuple(shape)})"
                )
        n = mixture_distribution.logits.shape[-1]
        if n != component_distribution.batch_shape[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({n}) does not equal `component_distribution.batch_shape[-1]` ({component_distribution.batch_shape[-1]})"
            )
        self._mixture_distribution, self._component_distribution, self._num_component = (
            mixture_distribution, component_distribution, n,
        )  # fmt: skip
        super().__init__(shape, component_distribution.event_shape, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with parameters of another, broadcast shape."""
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        shape = Size(batch_shape)
        new._component_distribution = self._component_distribution.expand((*shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(shape)
        new._num_component = self._num_component
        Distribution.__init__(new, shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        """That of the components."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether the components are numbers with a density and a distribution function."""
        return (
            not self.event_shape and self._component_distribution.has_rsample and _has_cdf(self._component_distribution)
        )

    def _weights(self) -> Tensor:
        p = self._mixture_distribution.probs
        return p.reshape((*p.shape, *(1,) * len(self.event_shape)))

    @property
    def _over(self) -> int:
        return -1 - len(self.event_shape)

    @property
    def mean(self) -> Tensor:
        """The mean of the means."""
        return (self._weights() * self._component_distribution.mean).sum(self._over)

    @property
    def variance(self) -> Tensor:
        """The mean of the variances and the variance of the means."""
        w, c = self._weights(), self._component_distribution
        apart = c.mean - self.mean.unsqueeze(self._over)
        return (w * (c.variance + apart**2)).sum(self._over)

    def _inner(self, value: Tensor) -> Tensor:
        return value.unsqueeze(self._over)

    def cdf(self, value: Tensor) -> Tensor:
        """The mean of the cdfs."""
        return (self._component_distribution.cdf(self._inner(value)) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the mean of the densities."""
        if self._validate_args:
            self._validate_sample(value)
        logs = self._component_distribution.log_prob(self._inner(value))
        return cr.logsumexp(logs + cr.log_softmax(self._mixture_distribution.logits, -1), -1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, without a derivative."""
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        with cr.no_grad():
            which = self._mixture_distribution.expand(self.batch_shape).sample(shape)
            all_ = self._component_distribution.sample(shape)
            event = tuple(self.event_shape)
            at = which.reshape((*which.shape, 1, *(1,) * len(event))).expand((*which.shape, 1, *event))
            return all_.gather(self._over, at).squeeze(self._over).detach()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws x as functions of the parameters, with ``F(x) = u`` where u is what it is now.

        Two steps of Newton from x, which change nothing but derivatives: these are right up to the third order.
        """
        if not self.has_rsample:
            return super().rsample(sample_shape)
        x = self.sample(sample_shape)
        u = self.cdf(x).detach()
        checks, self._validate_args = self._validate_args, False
        try:
            for _ in range(2):
                x = x - (self.cdf(x) - u) / self.log_prob(x).exp()
        finally:
            self._validate_args = checks
        return x

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution!r},\n  {self._component_distribution!r})"


def _has_cdf(d: Distribution) -> bool:
    return type(d).cdf is not Distribution.cdf
