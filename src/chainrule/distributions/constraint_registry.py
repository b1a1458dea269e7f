"""From all numbers to a constraint: ``biject_to(constraint)`` one to one, ``transform_to(constraint)`` in a way that is good for descent."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table from constraints to functions that make a transform to them."""

    def __init__(self) -> None:
        self._registry: dict[Any, Callable[[Any], Any]] = {}

    @staticmethod
    def _key(constraint: Any) -> Any:
        """A set is found by its class."""
        return constraint if isinstance(constraint, type) else type(constraint)

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Register a function of a constraint (or, with no function, decorate one)."""
        if factory is None:
            return lambda f: self.register(constraint, f)
        if not isinstance(constraint, constraints.Constraint) and not (
            isinstance(constraint, type) and issubclass(constraint, constraints.Constraint)
        ):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[self._key(constraint)] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        f = self._registry.get(self._key(constraint))
        if f is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return f(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*which: Any) -> Callable[[Any], Any]:
    def declare(f: Any) -> Any:
        for c in which:
            biject_to.register(c, f)
            transform_to.register(c, f)
        return f

    return declare


def _affine(loc: Any, scale: Any) -> Any:
    return transforms.AffineTransform(loc, scale)


_both(constraints.real)(lambda c: transforms.identity_transform)
_both(constraints.greater_than, constraints.greater_than_eq)(
    lambda c: transforms.ComposeTransform([transforms.ExpTransform(), _affine(c.lower_bound, 1)])
)
_both(constraints.less_than)(
    lambda c: transforms.ComposeTransform([transforms.ExpTransform(), _affine(c.upper_bound, -1)])
)
biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
for _c in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_c, lambda c: transforms.PositiveDefiniteTransform())
_both(constraints.corr_cholesky)(lambda c: transforms.CorrCholeskyTransform())


@_both(constraints.interval, constraints.half_open_interval)
def _interval(c: Any) -> Any:
    low, high = c.lower_bound, c.upper_bound
    if isinstance(low, float | int) and isinstance(high, float | int) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    if isinstance(high, float | int) and math.isinf(high):
        return transforms.ComposeTransform([transforms.ExpTransform(), _affine(low, 1)])
    return transforms.ComposeTransform([transforms.SigmoidTransform(), _affine(low, high - low)])


for _r in (biject_to, transform_to):
    _r.register(
        constraints.independent,
        lambda c, r=_r: transforms.IndependentTransform(r(c.base_constraint), c.reinterpreted_batch_ndims),
    )
    _r.register(constraints.cat, lambda c, r=_r: transforms.CatTransform([r(k) for k in c.cseq], c.dim, c.lengths))
    _r.register(constraints.stack, lambda c, r=_r: transforms.StackTransform([r(k) for k in c.cseq], c.dim))
