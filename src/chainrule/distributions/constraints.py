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


class _IndependentConstraint(Constraint):
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

    def __init__(self, *bounds: Any, **named: Any) -> None:
        names = [name for name, _ in self._tests]
        given = dict(zip(names, bounds, strict=False))
        if len(bounds) + len(named) != len(names) or {*given, *named} != {*names}:
            raise TypeError(
                f"{type(self).__name__} takes {', '.join(names)}; got {len(bounds)} bounds and {list(named)}"
            )
        for name in names:
            setattr(self, name, given[name] if name in given else named[name])

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
_IntegerLessThan = _bounded("_IntegerLessThan", ("upper_bound", "<="), discrete=True)


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


def _predicate(
    name: str,
    inside: Callable[[Any], Any],
    event_dim: int = 0,
    discrete: bool = False,
    base: type[Constraint] = Constraint,
) -> type[Constraint]:
    """A set by its predicate, of which there is one: a class of its own, so that others can derive from it and register by it."""
    check = lambda self, value: inside(value)
    return type(
        name, (base,), {"check": check, "event_dim": event_dim, "is_discrete": discrete, "__module__": __name__}
    )


def _is_real(x: Any) -> Any:
    return x == x  # NaN alone is not


def _zero_or_one(x: Any) -> Any:
    return (x == 0) | (x == 1)


def _lower(x: Any) -> Any:
    return (x.tril() == x).flatten(-2).all(-1)


def _with_positive_diagonal(x: Any) -> Any:
    return _lower(x) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def _unit_rows(x: Any) -> Any:
    tol = cr.finfo(x.dtype).eps * x.shape[-1] * 10
    return ((x**2).sum(-1).sqrt() - 1).abs().lt(tol).all(-1)


def _same_transposed(x: Any) -> Any:
    return (x - x.mT).abs().le(1e-6 + 1e-5 * x.mT.abs()).flatten(-2).all(-1)


def _as_many_rows_as_columns(x: Any) -> Any:
    return cr.full(tuple(x.shape[:-2]), bool(x.shape[-2] == x.shape[-1]))


def _factorises(x: Any) -> Any:
    return _same_transposed(x) & (cr.linalg.cholesky_ex(x).info == 0)


def _eigenvalues_not_negative(x: Any) -> Any:
    return _same_transposed(x) & (cr.linalg.eigvalsh(x) >= -1e-6).all(-1)


def _adds_to_one(x: Any) -> Any:
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)


_Real = _predicate("_Real", _is_real)
_Boolean = _predicate("_Boolean", _zero_or_one, discrete=True)
_OneHot = _predicate("_OneHot", lambda x: _zero_or_one(x).all(-1) & x.sum(-1).eq(1), 1, True)
_Simplex = _predicate("_Simplex", _adds_to_one, 1)
_LowerTriangular = _predicate("_LowerTriangular", _lower, 2)
_LowerCholesky = _predicate("_LowerCholesky", _with_positive_diagonal, 2)
_CorrCholesky = _predicate("_CorrCholesky", lambda x: _with_positive_diagonal(x) & _unit_rows(x), 2)
_Square = _predicate("_Square", _as_many_rows_as_columns, 2)
_Symmetric = _predicate("_Symmetric", _same_transposed, 2, base=_Square)
_PositiveSemidefinite = _predicate("_PositiveSemidefinite", _eigenvalues_not_negative, 2, base=_Symmetric)
_PositiveDefinite = _predicate("_PositiveDefinite", _factorises, 2, base=_Symmetric)


independent, interval, half_open_interval, integer_interval = (
    _IndependentConstraint,
    _Interval,
    _HalfOpenInterval,
    _IntegerInterval,
)
greater_than, greater_than_eq, less_than, multinomial = _GreaterThan, _GreaterThanEq, _LessThan, _Multinomial
cat, stack = _Cat, _Stack
dependent = _Dependent()
dependent_property = _DependentProperty


def is_dependent(constraint: Any) -> bool:
    """Whether the set depends on the parameters of a distribution."""
    return isinstance(constraint, _Dependent)


real, boolean, one_hot, simplex = _Real(), _Boolean(), _OneHot(), _Simplex()
real_vector = independent(real, 1)
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
positive, nonnegative, unit_interval = greater_than(0.0), greater_than_eq(0.0), interval(0.0, 1.0)
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
square, symmetric = _Square(), _Symmetric()
positive_semidefinite, positive_definite = _PositiveSemidefinite(), _PositiveDefinite()
