"""Distribution: the base of all of them."""

from __future__ import annotations

from typing import Any, ClassVar

import chainrule as cr
from chainrule import Size, Tensor

from ..core.dispatch import innermost, look, recorder_of
from . import constraints
from .utils import lazy_property


def holds(inside: Any) -> bool:
    """Whether all are: under transforms, too, where this asks about every example."""
    if isinstance(inside, Tensor) and recorder_of(inside) is not None:
        look(inside, _refuse_outside)  # what jit records is asked at every call
        return True
    return bool(innermost(inside).all()) if isinstance(inside, Tensor) else bool(inside)


def _refuse_outside(inside: Any) -> None:
    if not inside.all():
        raise ValueError(
            "a distribution in a compiled function got a parameter or a value outside of what its constraints allow"
        )


class Distribution:
    """Independent draws of shape `batch_shape`, each an event of shape `event_shape`."""

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    _params: ClassVar[dict[str, int]] = {}  # parameters, and how many dimensions of an event each of them has
    arg_constraints: Any = None
    support: Any = None

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether parameters and values are checked, where a distribution is not told."""
        if value not in (True, False):
            raise ValueError("set_default_validate_args: expected True or False")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args and self.arg_constraints is not None:
            for name, constraint in self.arg_constraints.items():
                if isinstance(constraint, constraints._Dependent):
                    continue
                found = next((vars(c)[name] for c in type(self).__mro__ if name in vars(c)), None)
                if name not in self.__dict__ and isinstance(found, lazy_property):
                    continue  # follows from another parameter
                value = getattr(self, name)
                if not holds(constraint.check(value)):
                    raise ValueError(
                        f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} to "
                        f"satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                    )

    @property
    def batch_shape(self) -> Size:
        """The shape of the independent draws."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw."""
        return self._event_shape

    @property
    def mean(self) -> Any:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def mode(self) -> Any:
        """Where the density is largest."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.variance.sqrt()

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with parameters of another, broadcast shape."""
        family = next((c for c in type(self).__mro__ if "_params" in vars(c) and c is not Distribution), None)
        if family is None:
            raise NotImplementedError(f"{type(self).__name__} needs a method expand")
        new = self._get_checked_instance(family, _instance)
        shape = Size(batch_shape)
        for name, dims in self._params.items():
            if name in self.__dict__:
                v = self.__dict__[name]
                new.__dict__[name] = v.expand(tuple(shape) + tuple(v.shape[v.ndim - dims :]))
        self._expand_more(new, shape)
        Distribution.__init__(new, shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_more(self, new: Any, shape: Size) -> None:
        """What beside the parameters an expanded copy needs."""

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, without a derivative."""
        with cr.no_grad():
            return self.rsample(sample_shape).detach()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as functions of the parameters."""
        raise NotImplementedError(
            f"{type(self).__name__} has no rsample(): its draws are no functions of its parameters"
        )

    def sample_n(self, n: int) -> Tensor:
        """``sample((n,))``."""
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a draw up to `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Where the cdf is `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, along a new first dimension."""
        raise NotImplementedError(f"{type(self).__name__} has no finite support to enumerate")

    def _enumerated(self, values: Tensor, expand: bool, event: int = 0) -> Tensor:
        own = tuple(values.shape[values.ndim - event :])
        values = values.reshape((-1, *(1,) * len(self.batch_shape), *own))
        return values.expand((-1, *self.batch_shape, *own)) if expand else values

    def entropy(self) -> Tensor:
        """The mean of ``-log_prob``."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy in closed form")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return cr.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return Size(shape + tuple(self._batch_shape) + tuple(self._event_shape))

    def _validate_sample(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        n = len(self._event_shape)
        if n and tuple(value.shape[value.ndim - n :]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {tuple(value.shape)} vs {tuple(self._event_shape)}."
            )
        for i, j in zip(
            reversed(tuple(value.shape)), reversed(tuple(self._batch_shape + self._event_shape)), strict=False
        ):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {tuple(value.shape)} vs {tuple(self._batch_shape + self._event_shape)}."
                )
        support = self.support
        if support is None:
            raise NotImplementedError(
                f"{type(self).__name__} has no support to check values with: pass validate_args=False"
            )
        if not holds(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support ({support!r}) "
                f"of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        names = [n for n in (self.arg_constraints or {}) if n in self.__dict__]
        show = lambda v: v if v.numel() == 1 else v.size()
        parts = [f"{n}: {show(self.__dict__[n])}" for n in names]
        return f"{type(self).__name__}({', '.join(parts)})"


class Family(Distribution):
    """A distribution by a list of parameters: they are broadcast to one shape, which is that of the batch."""

    def _set(self, validate_args: bool | None, event: Any = (), **given: Any) -> None:
        from .utils import broadcast_all

        for k, v in zip(given, broadcast_all(*given.values()), strict=True):
            setattr(self, k, v)
        Distribution.__init__(self, next(iter(self.__dict__.values())).shape, event, validate_args)


class ExponentialFamily(Distribution):
    """Distributions with densities ``exp(<eta, t(x)> - A(eta) + k(x))``: the entropy is ``A - <eta, A'> - E k``."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """By the derivative of the log-normaliser (Bregman divergence)."""
        params = self._natural_params
        a = self._log_normalizer(*params)
        grads = cr.func.grad(lambda *p: self._log_normalizer(*p).sum(), tuple(range(len(params))))(*params)
        dots = [(p * g).reshape((*self.batch_shape, -1)).sum(-1) for p, g in zip(params, grads, strict=True)]
        return a - sum(dots) - self._mean_carrier_measure
