"""Arrays in, arrays out, for functions that are written on tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.tensor import Tensor
from ..core.tree import flatten, tree_map
from ..interop.numpy.transform import leave
from ..interop.numpy.value import Array, as_constant, cast, wrap


def kind_of(*xs: Any) -> str:
    """What results are to be: arrays of a transform, tensors, or plain arrays."""
    leaves = flatten(list(xs))[0]
    if any(type(x) is Array for x in leaves):
        return "Array"
    return "Tensor" if any(isinstance(x, Tensor) for x in leaves) else "ndarray"


def hand_out(y: Any, kind: str) -> Any:
    """Tensors as results of a kind."""
    if kind == "Tensor":
        return y
    return tree_map(lambda t: wrap(t) if kind == "Array" and isinstance(t, Tensor) else leave(t), y)


def floating(x: Any) -> Tensor:
    """An argument as a floating tensor."""
    t = as_constant(x)
    return t if t.dtype.np.kind in "fc" else t.to(dt.FROM_NP[np.dtype(float)])


def on_tensors(n: int, one_type: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function whose first `n` arguments, by place or by name, are arrays, written on tensors; `one_type` makes those of their common type."""

    def declare(f: Callable[..., Any]) -> Callable[..., Any]:
        code: CodeType = f.__code__
        names = code.co_varnames[:n]

        @functools.wraps(f)
        def call(*args: Any, **kw: Any) -> Any:
            named = [k for k in names if k in kw]
            kind = kind_of(*args[:n], *[kw[k] for k in named])
            given = [_floating(x) for x in (*args[:n], *[kw[k] for k in named])]
            if one_type:
                d = np.result_type(*[x.dtype.np for x in flatten(given)[0] if isinstance(x, Tensor)])
                given = [x if x is None else tree_map(lambda t: cast(t, d), x) for x in given]
            k = len(given) - len(named)
            kw |= dict(zip(named, given[k:], strict=True))
            return hand_out(f(*given[:k], *args[n:], **kw), kind)

        return call

    return declare


def _floating(x: Any) -> Any:
    return x if x is None else tree_map(floating, x)


def value(y: Any) -> np.ndarray:
    """The number beneath all levels, for SciPy's compiled code."""
    t = y._t if type(y) is Array else y
    return np.asarray(t.detach().concrete("a solver of SciPy's")) if isinstance(t, Tensor) else np.asarray(y)


def seen_as(t: Tensor, kind: str) -> Any:
    """A tensor as the user's function wants to see it."""
    return t if kind == "Tensor" else wrap(t)


def result(y: Any) -> Tensor:
    """What a user's function returned, as a tensor; lists of numbers are stacked."""
    return as_constant(y)
