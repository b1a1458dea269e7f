"""A function run both ways: its values, then the derivative of their sum by all floating arguments and by the leaves it captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.reverse import Leaf
from ..core.tensor import Tensor
from ..core.tree import flatten, unflatten
from ..core.walk import reachable
from ..interop.numpy.value import Array
from .tap import Tap

Pull = Callable[[], list[tuple[str, Any]]]


def is_float(x: Any) -> bool:
    """Whether something is a floating or complex tensor, array or NumPy number."""
    if isinstance(x, Array):
        x = x.tensor
    if isinstance(x, Tensor):
        return x.dtype.category >= dt.FLOAT
    return isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "fc"


def floats(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` with its floating results alone, as a tuple."""
    return lambda *xs: tuple(v for v in flatten(f(*xs))[0] if is_float(v))


def both_ways(f: Callable[..., Any], args: Any, tap: Tap) -> tuple[list[Any], Pull]:
    """The floating values of ``f(*args)``, and a function that takes the derivatives: pairs of a name and a cotangent."""
    leaves, tree = flatten(args)
    if any(isinstance(a, np.ndarray | Array) for a in leaves):
        return _by_transform(f, args, tap)
    names: dict[int, str] = {}
    with tap.paused():
        now = [a.detach().requires_grad_() if isinstance(a, Tensor) and is_float(a) else a for a in leaves]
        for k, a in enumerate(now):
            if isinstance(a, Tensor) and is_float(a):
                names[id(a)] = f"argument {k}"
    ys = list(floats(f)(*unflatten(now, tree)))
    return ys, lambda now=now: _gradients(ys, names, tap)  # `now` holds the leaves


def _gradients(ys: list[Any], names: dict[int, str], tap: Tap) -> list[tuple[str, Any]]:
    from .. import autograd

    with tap.paused():
        tops = [y for y in ys if isinstance(y, Tensor) and y.requires_grad]
        found = [
            n.variable for n in reachable([y.grad_fn for y in tops if y.grad_fn is not None]) if isinstance(n, Leaf)
        ]
        variables = [x for x in found if x is not None]
        ones = [y.detach() * 0 + 1 for y in tops]
    if not variables:
        return []
    gs = autograd.grad(tops, variables, ones, allow_unused=True)
    return [
        (names.get(id(x), f"the captured tensor of shape {list(x.shape)}"), g)
        for x, g in zip(variables, gs, strict=True)
        if g is not None
    ]


def _by_transform(f: Callable[..., Any], args: Any, tap: Tap) -> tuple[list[Any], Pull]:
    """For NumPy arrays, which have no ``requires_grad``."""
    from .. import func

    ys, pull = func.vjp(floats(f), *args)

    def gradients() -> list[tuple[str, Any]]:
        with tap.paused():
            ones: Any = tuple(v * 0 + 1 for v in ys)
        out = [(f"argument {k}", g) for k, g in enumerate(flatten(pull(ones))[0])]
        return out + _gradients(list(ys), {}, tap)

    return list(ys), gradients
