"""Compositions that put a dim in front, or need its size, on nested tensors: of each component by itself, mapped over all."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ...core.device import strided
from ...core.payload import COMPOSED
from ...core.shapes import wrap_dim
from ...core.sizes import SEEN, is_ragged
from ...core.tensor import Tensor


def same_size(a: Any, b: Any) -> bool:
    """Whether two sizes agree: a ragged one also with a number that all its values are, 1 among them."""
    return bool(a == b) or (a.agrees(b) if is_ragged(a) else is_ragged(b) and b.agrees(a))


def all_dense(*xs: Tensor) -> bool:
    """Whether no tensor is nested or sparse and no size ragged; whoever never made such a tensor pays two comparisons for it."""
    if COMPOSED and any(x.layout is not strided for x in xs):
        return False
    return not SEEN or not any(x.is_nested or any(is_ragged(s) for s in x.shape) for x in xs)


def whole_nest(x: Any) -> bool:
    """Whether `x` is a nested tensor whose nesting dim is in sight."""
    return isinstance(x, Tensor) and x.is_nested and hasattr(x.shape[0], "each")


def nest_in_sight(x: Any) -> bool:
    """Whether the first dim of `x` is that of the components of a nest, or of the inner ones of a nest of nests."""
    if whole_nest(x):
        return True
    if not isinstance(x, Tensor) or not x.is_nested or not is_ragged(x.shape[0]):
        return False
    return not hasattr(x.shape[0], "outer") and any(hasattr(s, "outer") for s in x.shape)


def nest_like(values: Tensor, x: Tensor) -> Tensor:
    """Packed values as a nest with the structure of `x`."""
    from ...nested import nest_p

    return nest_p(values.reshape(-1), shape=tuple(x.shape))


def in_each(*mapped: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function ``f(input, ..., dim, ...)`` that on a nested `input` runs in each component, along a dim of it.

    `mapped` are further arguments with an entry for each component; others are the same for all, unless they are nested.
    """

    def declare(f: Callable[..., Any]) -> Callable[..., Any]:
        sig = inspect.signature(f)
        first = next(iter(sig.parameters))

        @functools.wraps(f)
        def call(*args: Any, **kw: Any) -> Any:
            x: Any = args[0] if args else kw.get(first)
            if not SEEN or not whole_nest(x):
                return f(*args, **kw)
            bound = sig.bind(*args, **kw)
            bound.apply_defaults()
            a = bound.arguments
            dims: dict[str, int] = {k: wrap_dim(a[k], x.ndim) for k in ("dim", "dim1", "dim2") if k in a}
            if -x.ndim in dims.values():
                return f(*args, **kw)
            a.update(dims)
            names = [first, *[k for k, v in a.items() if k != first and (_own(v, x) if k in mapped else whole_nest(v))]]
            from ...transforms.batch import vmap

            def one(*mine: Tensor) -> Any:
                a.update(zip(names, mine, strict=True))
                return f(*bound.args, **bound.kwargs)

            return vmap(one)(*[a[k] for k in names])

        return call

    return declare


def _own(v: Any, x: Tensor) -> bool:
    """Whether an argument beside the nest `x` has an entry for each component."""
    return isinstance(v, Tensor) and v.ndim > 0 and v.shape[0] == x.shape[0]


def by_sizes(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a batch ``(N, C, *sizes)`` that on ragged sizes runs once for each that occurs; N may be the nesting dim."""

    @functools.wraps(f)
    def call(*args: Any, **kw: Any) -> Any:
        x = args[0] if args else kw.get("input")
        if not SEEN or not isinstance(x, Tensor) or not any(is_ragged(s) for s in x.shape):
            return f(*args, **kw)
        from ...payloads.nested.by_sizes import call_by_sizes, call_on_batch

        args, kw = (args, kw) if args else ((x,), {k: v for k, v in kw.items() if k != "input"})
        return (call_on_batch if nest_in_sight(x) else call_by_sizes)(f, args, kw)

    return call
