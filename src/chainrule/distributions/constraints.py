"""Constraints: sets of values, as predicates. ``constraint.check(value)`` says for each event whether it is inside.

`event_dim` is the number of trailing dimensions that one event takes, `is_discrete` whether the set is one of points.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import chainrule as cr

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
    "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "less_than", "lower_cholesky",
    "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite",
    "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A set of values; a predicate makes one of it."""

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Any) -> Any:
        """For each event whether it is inside."""
        raise NotImplementedError(f"{type(self).__name__} needs a method check")

    def __repr__(self) -> str:
        name = type(self).__name__.removeprefix("_")
        own = {k: v for k, v in vars(self).items() if not k.startswith("_")}
        return f"{name}({', '.join(f'{k}={v}' for k, v in own.items())})" if own else f"{name}()"


class _Simple(Constraint):
    """A set by its predicate."""

    def __init__(self, name: str, predicate: Callable[[Any], Any], event_dim: int = 0, discrete: bool = False) -> None:
        self._name, self._predicate = name, predicate
        self.__dict__.update(_event=event_dim, _discrete=discrete)

    event_dim = property(lambda self: self._event)
    is_discrete = property(lambda self: self._discrete)

    def check(self, value: Any) -> Any:
        return self._predicate(value)

    def __repr__(self) -> str:
        return f"{self._name}()"


class _Dependent(Constraint):
    """A set that depends on the parameters of a distribution: an instance knows it."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:
        """Whether it is a set of points, where that is known."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        """The dimensions of an event, where they are known."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        pick = lambda a, b: b if a is NotImplemented else a
        return _Dependent(is_discrete=pick(is_discrete, self._is_discrete), event_dim=pick(event_dim, self._event_dim))

    def check(self, value: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint: ask an instance of the distribution")


class _DependentProperty(property, _Dependent):
    """A property that gives the set, of an instance; of the class, that it depends."""

    def __init__(self, fn: Any = None, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        property.__init__(self, fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Any) -> Any:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _Independent(Constraint):
    """An event is inside if all entries of its last `reinterpreted_batch_ndims` dimensions are."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value: Any) -> Any:
        inside = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        if inside.ndim < n:
            expected = self.base_constraint.event_dim + n
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.ndim}")
        return inside.reshape((*inside.shape[: inside.ndim - n], -1)).all(-1) if n else inside


class MixtureSameFamilyConstraint(Constraint):
    """The set of a mixture's components."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim)

    def check(self, value: Any) -> Any:
        n = self.event_dim
        inside = self.base_constraint.check(value.unsqueeze(-1 - n))
        return inside.all(-1)


_COMPARE = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}


class _Bounded(Constraint):
    """Numbers between bounds, of which each is inside, outside or absent; whole ones if `is_discrete`."""

    _tests: tuple[tuple[str, str], ...] = ()

    def __init__(self, *bounds: Any) -> None:
        for (name, _), b in zip(self._tests, bounds, strict=True):
            setattr(self, name, b)

    def check(self, value: Any) -> Any:
        inside = (value % 1 == 0) if self.is_discrete else None
        for name, how in self._tests:
            ok = _COMPARE[how](value, getattr(self, name))
            inside = ok if inside is None else inside & ok
        return inside


def _bounded(name: str, *tests: tuple[str, str], discrete: bool = False) -> type[_Bounded]:
    return type(name, (_Bounded,), {"_tests": tests, "is_discrete": discrete, "__module__": __name__})


_GreaterThan = _bounded("_GreaterThan", ("lower_bound", ">"))
_GreaterThanEq = _bounded("_GreaterThanEq", ("lower_bound", ">="))
_LessThan = _bounded("_LessThan", ("upper_bound", "<"))
_Interval = _bounded("_Interval", ("lower_bound", ">="), ("upper_bound", "<="))
_HalfOpenInterval = _bounded("_HalfOpenInterval", ("lower_bound", ">="), ("upper_bound", "<"))
_IntegerInterval = _bounded("_IntegerInterval", ("lower_bound", ">="), ("upper_bound", "<="), discrete=True)
_IntegerGreaterThan = _bounded("_IntegerGreaterThan", ("lower_bound", ">="), discrete=True)


class _Multinomial(Constraint):
    """Counts that are at most `upper_bound` together."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Any) -> Any:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _Joined(Constraint):
    """One set for each part of a dimension."""

    def __init__(self, cseq: Any, dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))


class _Cat(_Joined):
    """Parts of these lengths along a dimension."""

    def __init__(self, cseq: Any, dim: int = 0, lengths: Any = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value: Any) -> Any:
        parts, start = [], 0
        for c, n in zip(self.cseq, self.lengths, strict=True):
            parts.append(c.check(value.narrow(self.dim, start, n)))
            start += n
        return cr.cat(parts, self.dim)


class _Stack(_Joined):
    """Entries of a dimension."""

    @property
    def event_dim(self) -> int:
        """The dimensions of an event, with the stacked one if it is behind an entry's."""
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Any) -> Any:
        parts = [value.select(self.dim, i) for i in range(value.shape[self.dim])]
        return cr.stack([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


def _lower(x: Any) -> Any:
    return (x.tril() == x).flatten(-2).all(-1)


def _lower_cholesky(x: Any) -> Any:
    return _lower(x) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def _unit_rows(x: Any) -> Any:
    tol = cr.finfo(x.dtype).eps * x.shape[-1] * 10
    return ((x**2).sum(-1).sqrt() - 1).abs().lt(tol).all(-1)


def _symmetric(x: Any) -> Any:
    return (x - x.mT).abs().le(1e-6 + 1e-5 * x.mT.abs()).flatten(-2).all(-1)


def _square(x: Any) -> Any:
    return cr.full(tuple(x.shape[:-2]), bool(x.shape[-2] == x.shape[-1]))


def _positive_definite(x: Any) -> Any:
    return _symmetric(x) & (cr.linalg.cholesky_ex(x).info == 0)


def _simplex(x: Any) -> Any:
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)


independent, interval, half_open_interval, integer_interval = (
    _Independent,
    _Interval,
    _HalfOpenInterval,
    _IntegerInterval,
)
greater_than, greater_than_eq, less_than, multinomial = _GreaterThan, _GreaterThanEq, _LessThan, _Multinomial
cat, stack = _Cat, _Stack
dependent = _Dependent()
dependent_property = _DependentProperty


def _is_real(x: Any) -> Any:
    return x == x  # NaN alone is not


real = _Simple("Real", _is_real)
real_vector = independent(real, 1)
boolean = _Simple("Boolean", lambda x: (x == 0) | (x == 1), discrete=True)
one_hot = _Simple("OneHot", lambda x: ((x == 0) | (x == 1)).all(-1) & x.sum(-1).eq(1), 1, True)
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
simplex = _Simple("Simplex", _simplex, 1)
lower_triangular = _Simple("LowerTriangular", _lower, 2)
lower_cholesky = _Simple("LowerCholesky", _lower_cholesky, 2)
corr_cholesky = _Simple("CorrCholesky", lambda x: _lower_cholesky(x) & _unit_rows(x), 2)
square = _Simple("Square", _square, 2)
symmetric = _Simple("Symmetric", _symmetric, 2)
positive_semidefinite = _Simple(
    "PositiveSemidefinite", lambda x: _symmetric(x) & (cr.linalg.eigvalsh(x) >= -1e-6).all(-1), 2
)
positive_definite = _Simple("PositiveDefinite", _positive_definite, 2)
