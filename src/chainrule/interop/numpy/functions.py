"""``__array_function__``: NumPy's functions on Arrays and tensors.

In this order: what must be a view or a write; where no transform is involved, NumPy itself; what is written here with ops (`NATIVE`); NumPy's own
Python code (:mod:`.shadow`); and an error that names the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import MissingRuleError
from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from ...core.views import assign
from . import methods as m
from .direct import total
from .order import sorted_copy
from .shadow import LIKE, NATIVE, function
from .ufuncs import operate, write_out
from .value import (
    Array,
    agreed,
    arrays_in,
    as_constant,
    cast,
    from_numpy,
    is_concrete,
    made,
    result_type,
    to_numpy,
    wrap,
)

VIEWS: set[Any] = set()
# Functions of values alone: truth values, places, names of types. They have no derivative and need none.
VALUES: set[Any] = {
    np.ravel_multi_index,
    np.packbits,
    np.unpackbits,
    np.array2string,
    np.array_repr,
    np.array_str,
    np.histogram_bin_edges,
    np.array_equiv,
    np.array_equal,
    np.may_share_memory,
    np.shares_memory,
    np.savetxt,
    np.save,
    np.savez,
    np.savez_compressed,
    np.einsum_path,
    np.unique_counts,
    np.unique_inverse,
    np.unique_all,
    np.setdiff1d,
}


# Those of them that hand the elements to somebody else, where no derivative follows.
LEAVING = frozenset("save savez savez_compressed savetxt".split())


def native(*functions: Any, view: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare what a function of NumPy's does on Arrays."""

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        for g in functions:
            NATIVE[g] = f
            if view:
                VIEWS.add(g)
        return f

    return register


def run(func: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """A function of NumPy's on Arrays."""
    if func in LIKE:
        return LIKE[func](*args, **kw)
    f = NATIVE.get(func)
    if f is not None and func in VIEWS:
        return f(*args, **kw)
    found = arrays_in([args, kw], [])
    if all(is_concrete(x) for x in found) and func not in CALLING:
        out = kw.pop("out", None)
        y = from_numpy(func(*to_numpy(args), **to_numpy(kw)), [to_numpy(x) for x in found])
        return y if out is None else write_out(func.__name__, out, y)
    if f is not None:
        return f(*args, **kw)
    if func in VALUES:
        return from_numpy(func(*_values(args, func.__name__), **_values(kw, func.__name__)))
    f = function(func)
    if f is None:
        raise MissingRuleError(
            f"{func.__module__}.{func.__name__}: has no derivative here (python -m chainrule coverage numpy lists the functions that have); "
            f"apply it to chainrule.numpy.stop_gradient(x) if its value is a constant"
        )
    return f(*args, **kw)


def _values(x: Any, what: str) -> Any:
    k = type(x)
    if k is Array:
        return x._bare(what) if what in LEAVING else x._t.concrete(what)
    if k is list or k is tuple:
        return k([_values(v, what) for v in x])
    return {n: _values(v, what) for n, v in x.items()} if k is dict else x


def _types(x: Any) -> Any:
    return x._d if type(x) is Array else x


# Functions of types alone, which every example of a batch has in common.
for _f in (np.result_type, np.can_cast, np.min_scalar_type):
    NATIVE[_f] = lambda *args, _f=_f, **kw: _f(*[_types(a) for a in args], **kw)
    VIEWS.add(_f)
for _f in (np.iscomplexobj, np.isrealobj):  # type: ignore[assignment]
    NATIVE[_f] = lambda x, _f=_f: _f(np.empty(0, x._d))
    VIEWS.add(_f)

# Functions that call a function of the user's: it must see Arrays, whatever their level.
CALLING = {np.apply_along_axis, np.apply_over_axes, np.piecewise}


_KNOWN = (Array, Tensor, np.ndarray, np.generic)


def array_function(self: Any, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy's protocol for functions."""
    if args and (x := args[0]).__class__ is Array and (x._level is not None or x._box._interp is not None):
        f = NATIVE.get(func)
        if f is not None:
            for t in types:
                if t is not Array and t is not np.ndarray:
                    break
            else:
                return f(*args, **kwargs)  # the common case
    for t in types:
        if not issubclass(t, _KNOWN):
            return NotImplemented
    return run(func, args, dict(kwargs))


def tensor_function(self: Tensor, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy's protocol for functions of tensors: the results are tensors, with their derivatives."""
    for t in types:
        if not issubclass(t, _KNOWN):
            return NotImplemented
    y = run(func, _wrapped(args), _wrapped(dict(kwargs)))
    return y if any(issubclass(t, Array) for t in types) else unwrapped(y)


def _wrapped(x: Any) -> Any:
    if isinstance(x, Tensor):
        return wrap(x)
    k = type(x)
    if k is list or k is tuple:
        return k([_wrapped(v) for v in x])
    return {n: _wrapped(v) for n, v in x.items()} if k is dict else x


def unwrapped(y: Any) -> Any:
    """Arrays among results as tensors."""
    if type(y) is Array:
        return y._t
    if isinstance(y, tuple) and hasattr(y, "_fields"):
        return type(y)(*[unwrapped(v) for v in y])
    return type(y)([unwrapped(v) for v in y]) if isinstance(y, list | tuple) else y


Array.__array_function__ = array_function
Tensor.__array_function__ = tensor_function  # type: ignore[assignment, method-assign]


def tensor_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """The Array API standard's functions."""
    from ...array_api import at_version

    return at_version(api_version)


Tensor.__array_namespace__ = tensor_namespace  # type: ignore[assignment, method-assign]


# -- methods under their function names --------------------------------------------------------------------------------------


def _with_method(name: str) -> Callable[..., Any]:
    bound = getattr(Array, name)

    def call(a: Any, *args: Any, **kw: Any) -> Any:
        kw = {k: v for k, v in kw.items() if v is not np._NoValue}
        return bound(a if type(a) is Array else wrap(as_constant(a, name)), *args, **kw)

    return call


for _n in (
    "prod all any mean var std argmax argmin cumsum cumprod trace repeat choose argsort argpartition searchsorted "
    "clip ptp nonzero"
).split():
    NATIVE[getattr(np, _n)] = _with_method(_n)
for _n in "reshape ravel transpose swapaxes squeeze diagonal copy".split():
    NATIVE[getattr(np, _n)] = _with_method(_n)
    VIEWS.add(getattr(np, _n))
NATIVE[np.max] = NATIVE[np.amax] = _with_method("max")
NATIVE[np.min] = NATIVE[np.amin] = _with_method("min")
NATIVE[np.round] = NATIVE[np.around] = _with_method("round")
NATIVE[np.astype] = lambda x, dtype, /, *, copy=True, device=None: x.astype(dtype, copy=copy)
NATIVE[np.take] = lambda a, indices, axis=None, out=None, mode="raise": _with_method("take")(
    a, indices, axis, out=out, mode=mode
)
NATIVE[np.compress] = lambda condition, a, axis=None, out=None: _with_method("compress")(a, condition, axis, out=out)
NATIVE[np.put] = lambda a, ind, v, mode="raise": a.put(ind, v, mode)
VIEWS |= {np.put, np.linalg.diagonal}


@native(np.linalg.diagonal)
def _matrix_diagonal(x: Any, /, *, offset: int = 0) -> Array:
    return wrap(as_constant(x)).diagonal(offset, -2, -1)


@native(np.sum)
def _sum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, **kw: Any) -> Any:
    if axis is None and dtype is None and out is None and not kw and (y := total(a)) is not None:
        return y
    return Array.sum(a if type(a) is Array else wrap(as_constant(a)), axis=axis, dtype=dtype, out=out, **kw)


@native(np.flatnonzero)
def _flatnonzero(a: Any) -> Any:
    return wrap(as_constant(a)).ravel().nonzero()[0]


@native(np.argwhere)
def _argwhere(a: Any) -> Any:
    return from_numpy(np.argwhere(agreed(as_constant(a) != 0, "argwhere")))


@native(np.sort)
def _sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    return sorted_copy(a, axis)


@native(np.lexsort)
def _lexsort(keys: Any, axis: int = -1) -> Any:
    """The places that sort by several keys, of which the last counts most."""
    each = [wrap(as_constant(k, "lexsort")) for k in keys]
    at = each[0].argsort(axis)
    for k in each[1:]:
        at = np.take_along_axis(at, np.take_along_axis(k, at, axis).argsort(axis), axis)
    return at


@native(np.partition)
def _partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    return sorted_copy(a, axis)


# -- joining and choosing --------------------------------------------------------------------------------------------------


def common(xs: Any, dtype: Any = None) -> tuple[list[Tensor], Any]:
    """Tensors of several arrays in NumPy's common type, and this type."""
    xs = [x if type(x) is Array or isinstance(x, int | float | complex) else wrap(as_constant(x)) for x in xs]
    d = np.dtype(dtype) if dtype is not None else result_type(*xs)
    return [cast(as_constant(x), d) for x in xs], d


@native(np.concatenate)
def _concatenate(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    ts, d = common(list(arrays), dtype)
    if axis is None:
        ts, axis = [t.reshape(-1) for t in ts], 0
    if any(not t.ndim for t in ts):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    if len({t.ndim for t in ts}) > 1:
        raise ValueError(
            f"concatenate: all the arrays must have the same number of dimensions, got {[t.ndim for t in ts]}"
        )
    y = made(PUBLIC["cat"](ts, axis), d)
    return y if out is None else write_out("concatenate", out, y)


@native(np.stack)
def _stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    ts, d = common(list(arrays), dtype)
    if len({tuple(t.shape) for t in ts}) > 1:
        raise ValueError("all input arrays must have the same shape")
    y = made(PUBLIC["stack"](ts, axis), d)
    return y if out is None else write_out("stack", out, y)


@native(np.where)
def _where(condition: Any, *xy: Any) -> Any:
    c = cast(as_constant(condition), np.dtype(bool))
    if not xy:
        return wrap(c).nonzero()
    ts, d = common(xy)
    return made(PUBLIC["where"](c, *ts), d)


@native(np.broadcast_to, view=True)
def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    x = wrap(as_constant(array))
    s = (shape,) if isinstance(shape, int) else tuple(shape)
    if np.broadcast_shapes(x.shape, s) != s:
        raise ValueError(f"broadcast_to: an array of shape {x.shape} does not broadcast to {s}")
    return made(x._t.expand(s), x._d)


@native(np.broadcast_arrays, view=True)
def _broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    xs = [wrap(as_constant(a)) for a in args]
    s = np.broadcast_shapes(*[x.shape for x in xs])
    return tuple([made(x._t.expand(s), x._d) for x in xs])


@native(np.moveaxis, view=True)
def _moveaxis(a: Any, source: Any, destination: Any) -> Any:
    x = wrap(as_constant(a))
    each = [m.axes_of(k, x.ndim) for k in (source, destination)]
    if len(each[0]) != len(each[1]):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    return made(x._t.movedim(*each), x._d)


for _f in (  # type: ignore[assignment]
    np.expand_dims,
    np.rollaxis,
    np.flip,
    np.atleast_1d,
    np.atleast_2d,
    np.atleast_3d,
    np.split,
    np.array_split,
    np.hsplit,
    np.vsplit,
    np.dsplit,
    np.rot90,
    np.fliplr,
    np.flipud,
    np.real,
    np.imag,
    np.matrix_transpose,
    np.linalg.matrix_transpose,
    np.permute_dims,
    *([np.unstack] if hasattr(np, "unstack") else []),  # of NumPy 2.1
):
    NATIVE[_f] = function(_f)
    VIEWS.add(_f)


@native(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    x = wrap(as_constant(a))
    if axis is None:
        return made(x._t.reshape(-1).roll(int(shift), 0).reshape(x.shape), x._d)
    shifts, axes = np.broadcast_arrays(shift, axis)
    return made(
        x._t.roll(tuple(int(s) for s in np.atleast_1d(shifts)), tuple(int(k) for k in np.atleast_1d(axes))), x._d
    )


@native(np.lib.stride_tricks.sliding_window_view, view=True)
def _sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    a = wrap(as_constant(x))
    sizes = tuple(window_shape) if np.iterable(window_shape) else (window_shape,)
    if any(n < 0 for n in sizes):
        raise ValueError("`window_shape` cannot contain negative values")
    axes = tuple(range(a.ndim)) if axis is None else m.axes_of(axis, a.ndim)
    if len(sizes) != len(axes):
        raise ValueError(f"sliding_window_view: window_shape {sizes} has a size for each of the axes {axes}, or must")
    t = a._t
    for n, k in zip(sizes, axes, strict=True):
        if n > t.shape[k]:
            raise ValueError("window shape cannot be larger than input array shape")
        t = t.unfold(k, int(n), 1)
    return made(t, a._d)


# -- constants like another ---------------------------------------------------------------------------------------------------


def _like(name: str) -> None:
    def make(
        a: Any,
        *value: Any,
        dtype: Any = None,
        order: Any = "K",
        subok: bool = True,
        shape: Any = None,
        device: Any = None,
        **kw: Any,
    ) -> Array:
        x = wrap(as_constant(a))
        if value and name != "full_like":
            dtype, value = value[0], ()
        if name == "full_like":
            v = value[0] if value else kw["fill_value"]
            d = np.dtype(dtype) if dtype is not None else x._d
            s = x.shape if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
            return made(cast(as_constant(v), d).expand(s).clone(), d)
        maker = np.ones if name == "ones_like" else np.zeros
        y = maker(x.shape if shape is None else shape, x._d if dtype is None else dtype)
        return made(Tensor(y), y.dtype)

    NATIVE[getattr(np, name)] = make
    VIEWS.add(getattr(np, name))


for _n in ("zeros_like", "ones_like", "empty_like", "full_like"):
    _like(_n)


# -- writes -------------------------------------------------------------------------------------------------------------------


def _target(a: Any, name: str) -> Array:
    if isinstance(a, Tensor):
        return wrap(a)
    if type(a) is not Array:
        raise TypeError(
            f"{name}: the array written to is an ndarray, which cannot hold a derivative. "
            "Make it inside the function with np.zeros_like(x) or np.zeros(shape, like=x)"
        )
    return a


@native(np.copyto, view=True)
def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if type(dst) is np.ndarray and all(is_concrete(x) for x in (src, where)):
        np.copyto(dst, to_numpy(src), casting, to_numpy(where))  # type: ignore[arg-type]
        return
    a = _target(dst, "copyto")
    s = src if type(src) is Array else wrap(as_constant(src))
    if not np.can_cast(
        s._d if not isinstance(src, int | float | complex) else np.result_type(src, a._d),
        a._d,
        casting,  # type: ignore[arg-type]
    ):
        raise TypeError(f"copyto: cannot cast from {s._d} to {a._d} by the rule {casting!r}")
    v = cast(s._t, a._d).expand(a.shape)
    assign(a._t, v if where is True else PUBLIC["where"](as_constant(where), v, a._t), "copyto")


@native(np.putmask, view=True)
def _putmask(a: Any, mask: Any, values: Any) -> None:
    x = _target(a, "putmask")
    v = cast(as_constant(values), x._d).reshape(-1)
    each = v[Tensor(np.arange(x.size) % v.numel())].reshape(x.shape)
    assign(x._t, PUBLIC["where"](cast(as_constant(mask), np.dtype(bool)), each, x._t), "putmask")


@native(np.place, view=True)
def _place(arr: Any, mask: Any, vals: Any) -> None:
    x = _target(arr, "place")
    at = np.flatnonzero(as_constant(mask).concrete("place"))
    x.put(at, vals)


@native(np.fill_diagonal, view=True)
def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    x = _target(a, "fill_diagonal")
    flat = np.zeros(x.shape, np.int8)
    np.fill_diagonal(flat, 1, wrap)
    x.put(np.flatnonzero(flat), val)


@native(np.take_along_axis)
def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    return function(np.take_along_axis)(wrap(as_constant(arr)), indices, axis)


@native(np.put_along_axis, view=True)
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    function(np.put_along_axis)(_target(arr, "put_along_axis"), indices, values, axis)


from . import fft, linalg, numeric, statistics  # noqa: E402, F401

__all__ = ["MissingRuleError", "array_function", "native", "operate", "run", "unwrapped"]
