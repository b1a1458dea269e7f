"""The ops that the interpreters and views themselves need: reshape, permute, expand, alias, clone, overwrite, detach."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import ZERO
from .op import OPS, Pointwise, op, pointwise
from .tensor import Tensor

# -- shapes -----------------------------------------------------------------------------------------------------------


@op("reshape", view=True)
def reshape_p(x: Any, *, shape: tuple[int, ...], old: tuple[int, ...]) -> Any:
    """The last axes, of sizes `old`, rearranged to `shape`."""
    return x.reshape(x.shape[: x.ndim - len(old)] + shape)


reshape_p.jvp([lambda t, y, x, *, shape, old: reshape_p(t, shape=shape, old=old)])
reshape_p.vjp([lambda g, y, x, *, shape, old: reshape_p(g, shape=old, old=shape)])


@op("permute", view=True)
def permute_p(x: Any, *, dims: tuple[int, ...]) -> Any:
    """The last ``len(dims)`` axes in the order `dims` (negative)."""
    n, k = x.ndim, len(dims)
    return x.transpose((*range(n - k), *[n + d for d in dims]))


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    n = len(dims)
    inv = [0] * n
    for i, d in enumerate(dims):
        inv[d + n] = i - n
    return tuple(inv)


permute_p.jvp([lambda t, y, x, *, dims: permute_p(t, dims=dims)])
permute_p.vjp([lambda g, y, x, *, dims: permute_p(g, dims=_inverse(dims))])


@op("alias", view=True)
def alias_p(x: Any) -> Any:
    """The same memory as another tensor."""
    return x.view() if type(x) is np.ndarray else x


alias_p.jvp([lambda t, y, x: t])
alias_p.vjp([lambda g, y, x: g])


def alias(x: Tensor) -> Tensor:
    """A view of all of `x`."""
    return alias_p(x)


@op("expand", view=True)
def expand_p(x: Any, *, shape: tuple[int, ...], old: tuple[int, ...]) -> Any:
    """The last axes, of sizes `old`, broadcast to `shape`."""
    k = x.ndim - len(old)
    full = x.shape[:k] + shape
    if len(shape) != len(old):
        x = x.reshape(x.shape[:k] + (1,) * (len(shape) - len(old)) + x.shape[k:])
    if type(x) is np.ndarray and x.flags.c_contiguous:
        # np.broadcast_to does the same in ten times the time.
        steps = tuple([s if m == n else 0 for m, n, s in zip(x.shape, full, x.strides, strict=True)])
        return np.ndarray(full, x.dtype, x, 0, steps)
    return np.broadcast_to(x, full)


def _unexpand(g: Any, y: Any, x: Any, *, shape: tuple[int, ...], old: tuple[int, ...]) -> Any:
    """The sum over what was repeated. Leading axes that belong to nobody here (a batch) stay."""
    total = OPS["sum"].bind
    n, k = len(shape), len(shape) - len(old)
    ones = tuple(
        [
            d
            for d in range(-len(old), 0)
            if type(old[d]) is int and old[d] == 1 and not (type(shape[d]) is int and shape[d] == 1)
        ]
    )
    if ones:
        g = total(g, dim=ones, keepdim=True, old=shape)
    return total(g, dim=tuple(range(-n, k - n)), keepdim=False, old=(*shape[:k], *old)) if k else g


expand_p.jvp([lambda t, y, x, *, shape, old: expand_p(t, shape=shape, old=old)])
expand_p.vjp([_unexpand])


# -- values -----------------------------------------------------------------------------------------------------------


class Whole(Pointwise):
    """A pointwise op of one tensor and static data that no promotion and no alignment concerns."""

    def concrete(self, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        return Tensor(self.fn(args[0]._value, **kw))

    def batched(self, size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
        return self.call(*args, **kw)


clone_p = Whole(
    "clone",
    lambda x, order="K": x.copy(order),
    (lambda t, y, x, **kw: t,),
    promote="none",
    fast=frozenset(),
    static=True,
)

overwrite_p = pointwise(
    "overwrite",
    lambda x, new: np.array(np.broadcast_to(new, np.broadcast_shapes(x.shape, new.shape))),
    ZERO,
    lambda t, y, x, new: t,
    promote="none",
    fast=frozenset(),
    doc="`new` in the shape of `x`, what a write of all elements leaves: the derivative in `x` is zero.",
)


@op("detach", differentiable=False)
def detach_p(x: Any) -> Any:
    """The same value without a derivative."""
    return x
