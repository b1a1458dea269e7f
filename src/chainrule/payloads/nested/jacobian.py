"""Jacobians and numerical checks of nested tensors: their elements count as one dim, in the order of ``values()``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.tensor import Tensor
from ...core.tree import flatten, unflatten
from ...ops.shape.ranges import arange
from .sizes import Nest

Function = Callable[..., Any]


def ragged_basis(leaves: list[Tensor], total: Any) -> list[Tensor]:
    """Unit vectors of the space of the leaves of one component: as many as the largest one needs, the others get zeros."""
    count = arange(total.most).unsqueeze(-1)
    out, at = [], 0 * total
    for x in leaves:
        n = x.numel()
        e = count == arange(n) + at
        out.append(e.to(x.dtype).reshape(total.most, *x.shape))
        at = at + n
    return out


def _nest_shape(v: Any) -> tuple[Any, ...] | None:
    if not (isinstance(v, Tensor) and v.is_nested):
        return None
    shape = tuple(v.shape)
    return shape if shape and type(shape[0]) is Nest else None


def flat_results(y: Any) -> Any:
    """A tree of results with vectors in place of nested tensors."""
    from ...nested import unnest_p

    leaves, spec = flatten(y)
    shapes = [_nest_shape(v) for v in leaves]
    return unflatten([v if s is None else unnest_p.bind(v, shape=s) for v, s in zip(leaves, shapes, strict=True)], spec)


def flat_function(func: Function, args: tuple[Any, ...], has_aux: bool = False) -> tuple[Function, Any, list[Any]]:
    """`func` with vectors in place of nested arguments and results, its arguments, and a map back for each of their leaves."""
    from ...nested import nest_p

    leaves, spec = flatten(args)
    shapes = [_nest_shape(v) for v in leaves]

    def call(*vectors: Any) -> Any:
        vs = flatten(vectors)[0]
        y = func(*unflatten([back(v) for back, v in zip(backs, vs, strict=True)], spec))
        if not has_aux:
            return flat_results(y)
        return (
            (flat_results(y[0]), y[1]) if isinstance(y, tuple) and len(y) == 2 else y
        )  # the transform says what is wrong

    def nest(s: tuple[Any, ...]) -> Callable[[Tensor], Tensor]:
        return lambda v: nest_p.bind(v, shape=s)

    backs: list[Any] = [(lambda v: v) if s is None else nest(s) for s in shapes]
    return call, unflatten([flat_results(v) for v in leaves], spec), backs
