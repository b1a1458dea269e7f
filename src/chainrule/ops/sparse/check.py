"""gradcheck of functions of sparse tensors: as functions of their stored numbers, or with all elements stored."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.registry import public
from ...core.tensor import Tensor
from ...payloads.sparse.pattern import Pattern, at_places, convert
from .values import dense, is_sparse, make, moved, parts


def _everywhere(x: Tensor) -> Tensor:
    """The tensor with all of its elements stored, zeros too."""
    v, p = parts(x)
    full = at_places(np.arange(int(np.prod(p.sparse_shape))), p.sparse_shape, p.dense_shape)
    q = full if p.layout == "coo" else convert(full, p.layout, p.block)
    return make(moved(v, p, q), q)


def of_numbers(func: Callable[..., Any], args: list[Any], masked: bool = True) -> tuple[Callable[..., Any], list[Any]]:
    """`func` as a function with dense arguments and results: the stored numbers stand for sparse tensors."""
    patterns: list[Pattern | None] = []
    inputs: list[Any] = []
    for a in args:
        if not is_sparse(a):
            patterns.append(None)
            inputs.append(a)
            continue
        v, p = parts(a.detach() if masked else _everywhere(a.detach()))
        patterns.append(p)
        inputs.append(v.detach().clone().requires_grad_(a.requires_grad))

    def plain(y: Any) -> Any:
        return dense(y) if is_sparse(y) else y

    def f(*xs: Any) -> Any:
        y = func(*[x if p is None else make(x, p) for x, p in zip(xs, patterns, strict=True)])
        return type(y)(plain(v) for v in y) if isinstance(y, tuple | list) else plain(y)

    return f, inputs


@public("sparse.as_sparse_gradcheck", out=False)
def as_sparse_gradcheck(gradcheck: Callable[..., Any]) -> Callable[..., Any]:
    """A gradcheck that takes functions of sparse tensors; ``masked=True`` for derivatives in the stored numbers alone.

    >>> check = chainrule.sparse.as_sparse_gradcheck(chainrule.autograd.gradcheck)
    >>> x = chainrule.eye(2, dtype=chainrule.float64).to_sparse().requires_grad_()
    >>> check(lambda x: x.to_dense() ** 2, (x,), masked=True)
    True
    """

    @functools.wraps(gradcheck)
    def check(func: Callable[..., Any], inputs: Any, *, masked: bool = False, **kw: Any) -> Any:
        args = [inputs] if isinstance(inputs, Tensor) else list(inputs)
        f, numbers = of_numbers(func, args, masked)
        return gradcheck(f, tuple(numbers), **kw)

    return check
