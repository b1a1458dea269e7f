"""Functions whose Python code asks for concrete sizes, in a form for ragged ones: diff, chunk, split, unbind, random numbers."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dispatch import innermost
from ..core.dtypes import get_default_dtype
from ..core.errors import ChainruleError
from ..core.registry import METHODS, PUBLIC
from ..core.shapes import wrap_dim, zeros
from ..core.tensor import Tensor
from ..ops.shape import take_slice
from .nested import NestedArray
from .ragged import Nest, RaggedInt


def ragged_form(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a published function of one tensor take another way for nested ones, where it returns something."""

    def install(f: Callable[..., Any]) -> Callable[..., Any]:
        dense = PUBLIC[name]

        @functools.wraps(dense)
        def call(input: Tensor, *args: Any, **kw: Any) -> Any:
            if isinstance(input, Tensor) and input.is_nested:
                y = f(input, *args, **kw)
                if y is not None:
                    return y
            return dense(input, *args, **kw)

        PUBLIC[name] = METHODS[name] = call
        setattr(sys.modules["chainrule"], name, call)
        setattr(Tensor, name, call)
        return f

    return install


def _ragged(x: Tensor, dim: int) -> tuple[int, Any]:
    d = wrap_dim(dim, x.ndim)
    n = x.shape[d]
    return d, n if type(n) is RaggedInt else None


@ragged_form("diff")
def diff(x: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences along a ragged dim; components of at most n entries have none."""
    d, size = _ragged(x, dim)
    if size is None or prepend is not None or append is not None:
        return None
    for _ in range(n):
        x = take_slice(x, d, slice(1, None)) - take_slice(x, d, slice(None, -1))
    return x


@ragged_form("chunk")
def chunk(x: Tensor, chunks: int, dim: int = 0) -> Any:
    """As many pieces of a ragged dim as asked for, each a part of every component; short components fill the first ones."""
    d, n = _ragged(x, dim)
    if n is None:
        return None
    size = -(-n // chunks)
    return tuple(take_slice(x, d, slice(i * size, (i + 1) * size)) for i in range(chunks))


@ragged_form("split")
def split(x: Tensor, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Pieces of a ragged dim, up to the end of the longest component."""
    d, n = _ragged(x, dim)
    if n is None:
        return None
    size = split_size_or_sections
    if not isinstance(size, list | tuple):
        return tuple(
            take_slice(x, d, slice(a, a + size)) for a in range(0, max(int(n.values.max(initial=0)), 1), int(size))
        )
    bad = np.flatnonzero(sum(size, 0 * n).values != n.values)
    if len(bad):
        raise ChainruleError(
            f"split: the sizes {list(size)} do not add up to {n.values[bad[0]]}, the size of component {bad[0]} in dimension {d + x.ndim}"
        )
    out, at = [], 0
    for s in size:
        out.append(take_slice(x, d, slice(at, at + s)))
        at = at + s
    return tuple(out)


@ragged_form("unbind")
def unbind(x: Tensor, dim: int = 0) -> Any:
    """The components of a nested tensor, in one step."""
    from ..nested import unbind_nest_p

    shape = tuple(x.shape)
    if wrap_dim(dim, len(shape)) + len(shape) or type(shape[0]) is not Nest:
        return None
    return unbind_nest_p(x, shape=shape) if shape[0] else ()


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


def _indexed(x: Tensor, key: tuple[Any, ...]) -> Any:
    """``x[:, ..., tensors]``: tensors that index dims of the components do so in each component."""
    from ..func import vmap

    if Ellipsis in [k for k in key if not isinstance(k, Tensor | np.ndarray | list)]:
        at = next(i for i, k in enumerate(key) if k is Ellipsis)
        taken = sum(k is not None and k is not Ellipsis for k in key)
        key = (*key[:at], *(slice(None),) * (x.ndim - taken), *key[at + 1 :])
    if not (isinstance(key[0], slice) and key[0] == slice(None)) or type(x.shape[0]) is not Nest or not x.shape[0]:
        return None
    return vmap(lambda c: c[key[1:]])(x)


_dense_getitem = Tensor.__getitem__


def _getitem(self: Tensor, key: Any) -> Tensor:
    if type(key) is tuple and key and self.is_nested and any(isinstance(k, Tensor | np.ndarray | list) for k in key):
        y = _indexed(self, key)
        if y is not None:
            return y
    return _dense_getitem(self, key)


_getitem.__doc__ = _dense_getitem.__doc__
Tensor.__getitem__ = _getitem  # type: ignore[method-assign]
