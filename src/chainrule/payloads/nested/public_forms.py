"""Functions whose Python code asks for concrete sizes, in a form for ragged ones: indexing, ranges, random numbers.

The functions themselves (``x[...]``, ``arange``, ``rand``) come here where they meet a ragged size; nothing is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dispatch import innermost
from ...core.dtypes import DType, bool_, get_default_dtype
from ...core.errors import ChainruleError
from ...core.shapes import zeros
from ...core.tensor import Tensor
from ...ops.index.rows import take_rows_p, wrap_index_p
from ...ops.shape.slices import slice_p, take_slice
from ...ops.shape.views import broadcast_tensors
from .array import NestedArray
from .deep_sizes import DeepInt, inner_size, is_deep
from .sizes import Nest, RaggedInt


def draw_ragged(shape: tuple[Any, ...], sample: Callable[..., Any], rng: Any, levels: list[Any]) -> Tensor:
    """Random numbers of a ragged shape; `levels` are the vmaps that draw for each of their examples."""
    like = zeros(shape, get_default_dtype())
    chain = []
    t: Any = like
    while t._interp is not None:
        chain.append(t._interp)
        t = t._value
    v = innermost(like)
    others = [level for level in levels if level not in chain]
    y = Tensor(NestedArray(np.asarray(sample(rng, (*[level.size for level in others], *v.rows.shape))), v.geometry))
    for level in [*others, *reversed(chain)]:
        y = Tensor(y, level)
    return y


def arange_ragged(start: Any, end: Any, step: Any, d: DType) -> Tensor:
    """``start, start + step, ...`` up to but not including `end`, which differ between the components."""
    n = -((start - end) // step)
    n = n.like(np.maximum(n.values, 0).astype(np.int64))
    # Outside of a map over the components the result has a dim for them.
    shape = (n,) if n.level is not None else n.whole()
    return ((zeros(shape, d) + 1).cumsum(-1) - 1) * step + start


def _bounds(k: Any) -> list[RaggedInt]:
    return [v for v in (k.start, k.stop) if isinstance(v, RaggedInt)] if isinstance(k, slice) else []


def slice_dense(x: Tensor, key: Any) -> Tensor | None:
    """``x[..., :sizes]`` of a dense tensor: for each component its own part; None where no bound is ragged.

    Outside of a map over the components the result has a dim for them in front: that of `x`, where what is sliced stands behind
    it, or a new one.
    """
    items = key if type(key) is tuple else (key,)
    sizes = [v for k in items for v in _bounds(k)]
    if not sizes:
        return None
    if Ellipsis in [k for k in items if not isinstance(k, Tensor)]:
        at = next(i for i, k in enumerate(items) if k is Ellipsis)
        items = (*items[:at], *(slice(None),) * (x.ndim - len(items) + 1), *items[at + 1 :])
    if any(not isinstance(k, slice) for k in items[: max(i for i, k in enumerate(items) if _bounds(k)) + 1]):
        raise ChainruleError(
            "a slice with a ragged bound takes whole dims in front of it: x[:, :sizes]; index these afterwards"
        )
    n = len(sizes[0].values)
    if type(sizes[0]) is DeepInt and sizes[0].level is None:
        return _slice_deep(x, items, sizes[0])
    if sizes[0].level is None:
        if _bounds(items[0]):
            x = x.unsqueeze(0).expand(n, *x.shape)
        elif x.shape[0] != n:
            raise ChainruleError(
                f"a slice with one bound for each of {n} components takes a part of each entry of dim 0, but there are {x.shape[0]}"
            )
        else:
            items = items[1:]
    own = tuple(k if _bounds(k) else slice(None) for k in items)
    shape = tuple(x.shape) if sizes[0].level is not None else tuple(x.shape[1:])
    y = slice_p(x, key=(*own, *(slice(None),) * (len(shape) - len(own))), old=shape)
    rest = tuple(slice(None) if _bounds(k) else k for k in items)
    if all(_whole(k) for k in rest):
        return y
    return y[rest if sizes[0].level is not None else (slice(None), *rest)]


def _slice_deep(x: Tensor, items: tuple[Any, ...], size: DeepInt) -> Tensor:
    """``x[:sizes]`` for each inner component of a nest of nests."""
    from ...nested import nest_p, unnest_p

    if any(_bounds(k) for k in items[1:]) or not _bounds(items[0]):
        raise ChainruleError(
            "a slice with one bound for each inner component of a nest of nests takes the first dim: x[:sizes]"
        )
    part = slice(*[inner_size(v) for v in (items[0].start, items[0].stop)])
    y = slice_dense(x, part)
    shape = tuple(y.shape)  # type: ignore[union-attr]
    whole = (*DeepInt(shape[1].values, size.outer).whole(), *shape[2:])
    full = (Nest(np.ones(len(size.outer), np.int64), whole[1:]), *whole[1:])
    z = nest_p(unnest_p(y, shape=shape), shape=full)
    return z if len(items) == 1 else z[(slice(None), slice(None), slice(None), *items[1:])]


# -- x[...] ---------------------------------------------------------------------------------------------------------------


def _is_index(k: Any) -> bool:
    return isinstance(k, Tensor | np.ndarray | list)


def _whole(k: Any) -> bool:
    return isinstance(k, slice) and k == slice(None)


def index_nested(x: Tensor, key: Any) -> Tensor | None:
    """``x[key]`` where tensors index dims of the components, which they do in each by itself; None where the dense way will do."""
    items = key if type(key) is tuple else (key,)
    shape = tuple(x.shape)
    if items and is_deep(shape) and (y := _one_index(x, items)) is not None:
        return y
    if not items or type(shape[0]) is not Nest:
        return None
    first = items[0]
    if isinstance(first, Tensor) and first.is_nested:
        return _masked(x, first, items)
    if isinstance(first, int | np.integer) or (
        isinstance(first, Tensor) and not first.ndim and first.dtype is not bool_
    ):
        y = x.select(0, int(first))
        return y if len(items) == 1 else y[items[1:]]
    if isinstance(first, slice) and not _whole(first):
        y = take_slice(x, -len(shape), first)
        return y if len(items) == 1 else y[(slice(None), *items[1:])]
    if len(items) == 1 or not any(_is_index(k) for k in items):
        return None
    dots = [i for i, k in enumerate(items) if k is Ellipsis]
    if dots:
        taken = sum(k is not None and k is not Ellipsis for k in items)
        items = (*items[: dots[0]], *(slice(None),) * (len(shape) - taken), *items[dots[0] + 1 :])
        first = items[0]
    if _whole(first):
        return _in_each(x, items[1:])
    if _is_index(first):
        return _paired(x, items)
    return None


def _one_index(x: Tensor, items: tuple[Any, ...]) -> Tensor | None:
    """``x[..., i, ...]`` of a nest of nests with one list of numbers, beside whole dims; None for other indices."""
    at = [p for p, k in enumerate(items) if not isinstance(k, slice) and k is not Ellipsis]
    if len(at) != 1 or not _is_index(items[at[0]]) or any(isinstance(k, slice) and not _whole(k) for k in items):
        return None
    i = items[at[0]] if isinstance(items[at[0]], Tensor) else Tensor(np.asarray(items[at[0]]))
    if i.dtype is bool_ or i.ndim != 1 or i.is_nested:
        return None
    behind = Ellipsis in [k for k in items[: at[0]] if not isinstance(k, Tensor)]
    d = at[0] - len(items) if behind else at[0] - x.ndim
    size = x.shape[d]
    i = wrap_index_p(i, n=size, dim=d + x.ndim)
    return take_rows_p(x, i, r=-d - 1, s=1, n=size)


def _masked(x: Tensor, mask: Tensor, items: tuple[Any, ...]) -> Tensor:
    """The elements (or packed rows) where a nested mask holds, of all components one after the other."""
    from ...nested import values

    if len(items) > 1 or mask.dtype is not bool_:
        raise ChainruleError(
            "a nested tensor in front of an index must be a mask; index the components with x[:, i] or under vmap instead"
        )
    v, m = values(x), values(mask)
    if tuple(mask.shape) != tuple(x.shape)[: mask.ndim] or tuple(v.shape)[: m.ndim] != tuple(m.shape):
        raise IndexError(
            f"the mask of shape {list(mask.shape)} must have the shape of the nested tensor, {list(x.shape)}, or of its dims up to "
            f"the last ragged one"
        )
    return v[m]


def _in_each(x: Tensor, key: tuple[Any, ...]) -> Tensor:
    """``x[:, *key]``: dense indices are the same for every component, nested ones each component's own."""
    from ...func import vmap

    own = [i for i, k in enumerate(key) if isinstance(k, Tensor) and k.is_nested]
    if not own:
        return vmap(lambda c: c[key])(x)

    def one(c: Tensor, *mine: Tensor) -> Tensor:
        full = list(key)
        for i, k in zip(own, mine, strict=True):
            full[i] = k
        return c[tuple(full)]

    return vmap(one)(x, *[key[i] for i in own])


def _paired(x: Tensor, items: tuple[Any, ...]) -> Tensor | None:
    """``x[i, ..., j]``: component ``i[k]`` at ``j[k]``, for index tensors of one shape."""
    from ...func import vmap

    found = {p: k if isinstance(k, Tensor) else Tensor(np.asarray(k)) for p, k in enumerate(items) if _is_index(k)}
    if found[0].dtype is bool_:
        found[0] = Tensor(np.flatnonzero(found[0].concrete("indexing with a boolean mask")))
    if len(found) == 1:
        return x[found[0]][(slice(None), *items[1:])]
    spots = list(found)
    if spots != list(range(len(spots))):
        return None
    lists = broadcast_tensors(*found.values())
    y = vmap(lambda c, *j: c[(*j, *items[len(spots) :])])(x[lists[0].reshape(-1)], *[i.reshape(-1) for i in lists[1:]])
    return y if lists[0].ndim == 1 else y.reshape(*lists[0].shape, *y.shape[1:])
