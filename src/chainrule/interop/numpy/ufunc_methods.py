"""The methods of ufuncs: reduce, accumulate, outer, at, reduceat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import MissingRuleError
from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from .indexing import places
from .ufuncs import call
from .value import Array, arrays_in, as_constant, cast, from_numpy, is_concrete, made, to_numpy, wrap

_REDUCERS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_SCANS = {"add": "cumsum", "multiply": "cumprod"}


def _concrete(*xs: Any) -> bool:
    return all(is_concrete(x) for x in arrays_in(list(xs), []))


def _in_its_type(method: Callable[..., Any], a: Array, *args: Any) -> Array:
    """An array in the type that a ufunc's method computes in. NumPy itself says which, and refuses what it refuses, on one element."""
    d = method(np.ones((1,) * a.ndim, a._d), *args).dtype
    return a if d == a._d else made(cast(a._t, d), d)


def reduce(
    ufunc: Any,
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """``ufunc.reduce``: by the reduction of that name, else element after element along the axis."""
    extra = {k: v for k, v in (("initial", initial), ("where", where)) if v is not None and v is not np._NoValue}
    if _concrete(a, initial, where):
        return from_numpy(
            ufunc.reduce(
                to_numpy(a), axis=axis, dtype=dtype, keepdims=keepdims, **{k: to_numpy(v) for k, v in extra.items()}
            )
        )
    a = wrap(as_constant(a))
    name = _REDUCERS.get(ufunc.__name__)
    if name is None or (dtype is not None and name not in ("sum", "prod")):
        a = _in_its_type(ufunc.reduce, a, axis, dtype)
    if name is not None:
        return getattr(a, name)(
            axis=axis, keepdims=keepdims, **extra, **({"dtype": dtype} if name in ("sum", "prod") else {})
        )
    if ufunc.__name__ == "logaddexp" and not extra:
        dims = tuple(range(a.ndim)) if axis is None else axis
        return wrap(PUBLIC["logsumexp"](a._t, dims, keepdim=keepdims))
    if where is not None and where is not np._NoValue:
        raise MissingRuleError(
            f"{ufunc.__name__}.reduce: where= is taken by the reductions of {', '.join(_REDUCERS)} alone"
        )
    axes = range(a.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    for k in sorted((k % a.ndim for k in axes), reverse=True):
        parts = [wrap(t) for t in a._t.unbind(k)]
        y = initial if "initial" in extra else parts.pop(0)
        for p in parts:
            y = call(ufunc, y, p)
        a = wrap(y._t.unsqueeze(k)) if keepdims else y
        extra = {}
    return a


def accumulate(ufunc: Any, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """``ufunc.accumulate``: all the values on the way of ``reduce``."""
    if _concrete(array):
        return from_numpy(ufunc.accumulate(to_numpy(array), axis, dtype))
    a = wrap(as_constant(array))
    if ufunc.__name__ in _SCANS:
        return getattr(a, _SCANS[ufunc.__name__])(axis=axis, dtype=dtype)
    if ufunc.__name__ in ("maximum", "minimum"):
        return wrap(PUBLIC["cummax" if ufunc.__name__ == "maximum" else "cummin"](a._t, axis)[0])
    a = _in_its_type(ufunc.accumulate, a, axis, dtype)
    ys: list[Any] = []
    for t in a._t.unbind(axis):
        ys.append(wrap(t) if not ys else call(ufunc, ys[-1], wrap(t)))
    return wrap(PUBLIC["stack"]([y._t for y in ys], axis)) if ys else a


def outer(ufunc: Any, a: Any, b: Any, **kw: Any) -> Any:
    """``ufunc.outer``: every element of the first operand with every one of the second."""
    ta, tb = as_constant(a), as_constant(b)
    return ufunc(wrap(ta.reshape(tuple(ta.shape) + (1,) * tb.ndim)), wrap(tb), **kw)


def reduceat(ufunc: Any, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """``ufunc.reduceat``: reductions of stretches of an axis."""
    if _concrete(array):
        return from_numpy(ufunc.reduceat(to_numpy(array), to_numpy(indices), axis, dtype))
    a = _in_its_type(lambda one: ufunc.reduceat(one, [0], axis, dtype), wrap(as_constant(array)))
    n, at = a.shape[axis], [int(i) for i in np.asarray(to_numpy(indices))]
    parts = []
    for k, i in enumerate(at):
        end = at[k + 1] if k + 1 < len(at) else n
        parts.append(reduce(ufunc, wrap(a._t.narrow(axis, i, max(end - i, 1))), axis, dtype)._t)
    return wrap(PUBLIC["stack"](parts, axis))


def at(ufunc: Any, a: Any, indices: Any, b: Any = None) -> None:
    """``ufunc.at``: an unbuffered write, in which a place that repeats is worked on as often as it occurs."""
    if type(a) is not Array:
        raise TypeError(
            f"{ufunc.__name__}.at: the array written to is an ndarray, which cannot hold a derivative. Make it inside the function with np.zeros_like(x)"
        )
    where = places(a, indices)
    v = None if b is None else as_constant(b).expand(tuple(where.shape)).reshape(-1)
    flat, where = a._t.reshape(-1), where.reshape(-1)
    if ufunc.__name__ in ("add", "subtract"):
        w = cast(v, a._d)  # type: ignore[arg-type]
        flat = flat.index_add(0, where, -w if ufunc.__name__ == "subtract" else w)
    else:
        for chosen in _rounds(where.concrete(f"{ufunc.__name__}.at")):
            k = where[chosen]
            args = [wrap(flat[k])] + ([] if v is None else [wrap(v[chosen])])
            flat = flat.index_put((k,), cast(call(ufunc, *args)._t, a._d))
    a[...] = wrap(flat.reshape(tuple(a.shape)))


def _rounds(where: np.ndarray) -> list[Any]:
    """The positions of the first occurrences of every place, of the second ones, and so on: in a round no place repeats."""
    order = np.argsort(where, kind="stable")
    ordered = where[order]
    first = np.searchsorted(ordered, ordered)
    turn = np.arange(where.size) - first
    return [Tensor(np.sort(order[turn == k])) for k in range(turn.max() + 1 if turn.size else 0)]


METHODS = {"reduce": reduce, "accumulate": accumulate, "outer": outer, "reduceat": reduceat, "at": at}
