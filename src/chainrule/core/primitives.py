"""The ops that the interpreters and views themselves need: reshape, permute, expand, alias, clone, overwrite, detach."""

from __future__ import annotations

from typing import Any

import numpy as np

from .declare import op, pointwise
from .errors import ZERO
from .op import OPS
from .shapes import broadcast_array
from .tensor import Tensor

# -- shapes -----------------------------------------------------------------------------------------------------------


@op("reshape", view=True, sizes="shape old", linear="each")
def reshape_p(x: Any, *, shape: tuple[int, ...], old: tuple[int, ...]) -> Any:
    """The last axes, of sizes `old`, rearranged to `shape`."""
    return x.reshape(x.shape[: x.ndim - len(old)] + shape)


def _reshaped(xs: list[Any], kw: dict[str, Any]) -> Any:
    shape = xs[0].shape[: xs[0].ndim - len(kw["old"])] + kw["shape"]
    return lambda x: x.reshape(shape)


reshape_p.special = _reshaped
reshape_p.vjp([lambda g, y, x, *, shape, old: reshape_p(g, shape=old, old=shape)])


@op("permute", view=True, linear="each")
def permute_p(x: Any, *, dims: tuple[int, ...]) -> Any:
    """The last ``len(dims)`` axes in the order `dims` (negative)."""
    n, k = x.ndim, len(dims)
    return x.transpose((*range(n - k), *[n + d for d in dims]))


def _permuted(xs: list[Any], kw: dict[str, Any]) -> Any:
    n, k = xs[0].ndim, len(kw["dims"])
    order = (*range(n - k), *[n + d for d in kw["dims"]])
    return lambda x: x.transpose(order)


permute_p.special = _permuted


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    n = len(dims)
    inv = [0] * n
    for i, d in enumerate(dims):
        inv[d + n] = i - n
    return tuple(inv)


permute_p.vjp([lambda g, y, x, *, dims: permute_p(g, dims=_inverse(dims))])


@op("alias", view=True, moves=True)
def alias_p(x: Any) -> Any:
    """The same memory as another tensor."""
    return x.view() if type(x) is np.ndarray else x


alias_p.jvp([lambda t, y, x: t])
alias_p.vjp([lambda g, y, x: g])


def alias(x: Tensor) -> Tensor:
    """A view of all of `x`."""
    return alias_p(x)


@op("expand", view=True, sizes="shape old", linear="each")
def expand_p(x: Any, *, shape: tuple[int, ...], old: tuple[int, ...]) -> Any:
    """The last axes, of sizes `old`, broadcast to `shape`."""
    k = x.ndim - len(old)
    full = x.shape[:k] + shape
    if len(shape) != len(old):
        x = x.reshape(x.shape[:k] + (1,) * (len(shape) - len(old)) + x.shape[k:])
    return broadcast_array(x, full) if type(x) is np.ndarray else np.broadcast_to(x, full)


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


expand_p.vjp([_unexpand])


# -- values -----------------------------------------------------------------------------------------------------------


clone_p = pointwise(
    "clone",
    lambda x, order="K": x.copy(order),
    lambda t, y, x, **kw: t,
    types="none",
    static=True,
)

overwrite_p = pointwise(
    "overwrite",
    lambda x, new: np.array(np.broadcast_to(new, np.broadcast_shapes(x.shape, new.shape))),
    ZERO,
    lambda t, y, x, new: t,
    types="none",
    doc="`new` in the shape of `x`, what a write of all elements leaves: the derivative in `x` is zero.",
)


@op("detach", differentiable=False)
def detach_p(x: Any) -> Any:
    """The same value without a derivative."""
    return x
