"""Functions whose Python code asks for concrete sizes, in a form for ragged ones: diff, chunk, split, unbind, random numbers."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dispatch import innermost
from ..core.dtypes import as_dtype, bool_, get_default_dtype, int64
from ..core.errors import ChainruleError
from ..core.registry import METHODS, PUBLIC
from ..core.shapes import wrap_dim, zeros
from ..core.tensor import Tensor
from ..core.tree import flatten, unflatten
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
    items = key if type(key) is tuple else (key,)
    if items and any(isinstance(k, Tensor | np.ndarray | list | slice) for k in items) and self.is_nested:
        first, shape = items[0], tuple(self.shape)
        if isinstance(first, Tensor) and first.is_nested:
            if len(items) > 1 or first.dtype is not bool_:
                raise ChainruleError(
                    "a nested index must be a mask of the whole nested tensor; index the components under vmap instead"
                )
            return self.values()[first.values()]
        if isinstance(first, slice) and first != slice(None) and type(shape[0]) is Nest:
            y = take_slice(self, -len(shape), first)
            return y if len(items) == 1 else y[(slice(None), *items[1:])]
        if len(items) > 1 and any(isinstance(k, Tensor | np.ndarray | list) for k in items):
            y = _indexed(self, items)
            if y is not None:
                return y
    return _dense_getitem(self, key)


_getitem.__doc__ = _dense_getitem.__doc__
Tensor.__getitem__ = _getitem  # type: ignore[method-assign]


_strided_is_contiguous = Tensor.is_contiguous


def _is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Whether the elements lie in memory in row-major order without gaps; packed rows always do."""
    return self.is_nested or _strided_is_contiguous(self, memory_format)


Tensor.is_contiguous = _is_contiguous  # type: ignore[method-assign]


# -- new tensors of ragged sizes ----------------------------------------------------------------------------------------------


def _ragged_size(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    s = tuple(args[0]) if len(args) == 1 and isinstance(args[0], list | tuple) else args
    return s if any(type(n) is RaggedInt for n in s) else None


def _creation(name: str, value: float) -> None:
    dense = PUBLIC[name]

    @functools.wraps(dense)
    def call(*size: Any, **kw: Any) -> Tensor:
        s = _ragged_size(size)
        if s is None:
            return dense(*size, **kw)
        y = zeros(s, get_default_dtype() if kw.get("dtype") is None else as_dtype(kw["dtype"]))
        return y + value if value else y

    PUBLIC[name] = call
    setattr(sys.modules["chainrule"], name, call)


_creation("zeros", 0)
_creation("ones", 1)

_dense_arange = PUBLIC["arange"]


@functools.wraps(_dense_arange)
def _arange(*args: Any, **kw: Any) -> Tensor:
    if len(args) != 1 or type(args[0]) is not RaggedInt:
        return _dense_arange(*args, **kw)
    d = int64 if kw.get("dtype") is None else as_dtype(kw["dtype"])
    return (zeros(args, d) + 1).cumsum(-1) - 1


PUBLIC["arange"] = _arange
sys.modules["chainrule"].arange = _arange  # type: ignore[attr-defined]

# -- Jacobians: the elements of a nested output count as one dim, those of a nested input keep their structure ----------------------


def _flat_call(func: Callable[..., Any], spec: Any, shapes: list[Any], has_aux: bool) -> Callable[..., Any]:
    """`func` as a function of flat vectors in place of nested arguments, with flat vectors in place of nested results."""
    from ..nested import nest_p, unnest_p

    def dense(y: Any) -> Any:
        leaves, tree = flatten(y)
        return unflatten(
            [
                unnest_p(v, shape=tuple(v.shape))
                if isinstance(v, Tensor) and v.is_nested and type(v.shape[0]) is Nest
                else v
                for v in leaves
            ],
            tree,
        )

    def call(*args: Any, **kw: Any) -> Any:
        leaves = flatten(args)[0]
        y = func(
            *unflatten([v if s is None else nest_p(v, shape=s) for v, s in zip(leaves, shapes, strict=True)], spec),
            **kw,
        )
        return (dense(y[0]), y[1]) if has_aux else dense(y)

    return call


def _flat_args(args: Any) -> tuple[Any, Any, list[Any]]:
    """Arguments with flat vectors in place of nested ones, their structure, and the shapes of the nested ones."""
    from ..nested import unnest_p

    leaves, spec = flatten(args)
    shapes = [
        tuple(v.shape) if isinstance(v, Tensor) and v.is_nested and type(v.shape[0]) is Nest else None for v in leaves
    ]
    return (
        unflatten([v if s is None else unnest_p(v, shape=s) for v, s in zip(leaves, shapes, strict=True)], spec),
        spec,
        shapes,
    )


def _jacobian(make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def of(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **kw: Any) -> Callable[..., Any]:
        @functools.wraps(func)
        def jacobian(*args: Any, **kws: Any) -> Any:
            from ..nested import nest_p

            flat_args, spec, shapes = _flat_args(args)
            result = make(_flat_call(func, spec, shapes, has_aux), argnums, has_aux=has_aux, **kw)(*flat_args, **kws)
            if all(s is None for s in shapes):
                return result
            nums = (argnums,) if isinstance(argnums, int) else argnums
            at = np.cumsum([0, *[len(flatten(a)[0]) for a in args]])
            mine = [shapes[j] for i in nums for j in range(at[i], at[i + 1] if i != -1 else at[-1])]
            leaves, tree = flatten(result[0] if has_aux else result)
            out = unflatten(
                [v if (s := mine[j % len(mine)]) is None else nest_p(v, shape=s) for j, v in enumerate(leaves)], tree
            )
            return (out, result[1]) if has_aux else out

        return jacobian

    return of


def _checker(check: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(check)
    def of(func: Callable[..., Any], inputs: Any, *args: Any, **kw: Any) -> Any:
        inputs = inputs if isinstance(inputs, tuple | list) else (inputs,)
        flat_args, spec, shapes = _flat_args(
            tuple(
                v.detach().requires_grad_(v.requires_grad) if isinstance(v, Tensor) and v.is_nested else v
                for v in inputs
            )
        )
        if all(s is None for s in shapes):
            return check(func, inputs, *args, **kw)
        leaves = tuple(
            v if s is None else v.detach().requires_grad_(v.requires_grad)
            for v, s in zip(flat_args, shapes, strict=True)
        )
        return check(_flat_call(func, spec, shapes, False), leaves, *args, **kw)

    return of


def _install() -> None:
    from .. import autograd, func

    for module, names, wrap in (
        (func, ("jacrev", "jacfwd"), _jacobian),
        (autograd, ("gradcheck", "gradgradcheck"), _checker),
    ):
        for name in names:
            setattr(module, name, wrap(getattr(module, name)))


_install()
