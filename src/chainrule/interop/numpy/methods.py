"""The methods of ndarray on Arrays, with NumPy's argument names; NumPy's functions of the same names call them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.errors import MissingRuleError
from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from .ufuncs import operate, write_out
from .value import Array, agreed, arrays_in, as_constant, cast, from_numpy, is_concrete, made, method, to_numpy, wrap

_NONE = (None, np._NoValue)


def computed(f: Callable[..., Any]) -> Callable[..., Any]:
    """A method that makes a new array: where no transform is involved, NumPy's own does it. Takes ``out=``."""
    name = f.__name__

    @functools.wraps(f)
    def call(self: Any, *args: Any, out: Any = None, **kw: Any) -> Any:
        if type(self) is not Array:
            self = wrap(as_constant(self, name))
        if kw:
            kw = {k: v for k, v in kw.items() if v is not np._NoValue}
        if self._t._interp is None and all(is_concrete(x) for x in arrays_in([args, kw], [])):
            y = from_numpy(getattr(self._t._value, name)(*to_numpy(args), **to_numpy(kw)), [self._t._value])
        else:
            y = f(self, *args, **kw)
        return y if out is None else write_out(name, out, y)

    return method(call)


def view(f: Callable[..., Any]) -> Callable[..., Any]:
    """A method that selects or rearranges: always the tensor's own view, so that writes reach the base."""

    @functools.wraps(f)
    def call(self: Any, *args: Any, **kw: Any) -> Any:
        if type(self) is not Array:
            self = wrap(as_constant(self, f.__name__))
        return made(f(self, *args, **kw), self._d)

    return method(call)


def axes_of(axis: Any, n: int) -> tuple[int, ...]:
    """The axes of a reduction, counted from the front."""
    if axis is None:
        return tuple(range(n))
    if type(axis) is int and -n <= axis < n:
        return (axis % n,)
    axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    return np.lib.array_utils.normalize_axis_tuple(axes, n)


# -- reductions -----------------------------------------------------------------------------------------------------------


def _limits(d: np.dtype[Any]) -> tuple[Any, Any]:
    if d.kind == "b":
        return False, True
    if d.kind in "iu":
        return np.iinfo(d).min, np.iinfo(d).max
    return -np.inf, np.inf


def _masked(self: Array, where: Any, fill: Any) -> Tensor:
    if where is None or where is True or where is np._NoValue:
        return self._t
    m = as_constant(where)
    return PUBLIC["where"](m, self._t, Tensor(np.asarray(fill, self._d)))


def _sum_type(d: Any, dtype: Any) -> Any:
    if dtype is not None:
        return np.dtype(dtype)
    if d.kind in "bi":
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if d.kind == "u" else d


@computed
def sum(
    self: Array, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """The sum along axes."""
    t = _masked(self, where, 0)
    d = _sum_type(self._d, dtype)
    if d is not self._d:
        t = cast(t, d)
    if axis is None and not keepdims:
        t = t.sum()
    elif dims := axes_of(axis, t.ndim):
        t = t.sum(dims, keepdim=bool(keepdims))
    t = cast(t, d)  # sums of unsigned integers are int64 in PyTorch
    return made(t if initial in _NONE else t + cast(as_constant(initial), d), d)


@computed
def prod(
    self: Array, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """The product along axes."""
    d = _sum_type(self._d, dtype)
    t = cast(_masked(self, where, 1), d)
    for k in sorted(axes_of(axis, t.ndim), reverse=True):
        t = cast(t.prod(k, keepdim=bool(keepdims)), d)
    return made(t if initial in _NONE else t * cast(as_constant(initial), d), d)


def _extreme(name: str, pair: str, low: int) -> None:
    def reduction(
        self: Array, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Array:
        if self._d.kind == "c":
            return _complex_extreme(self, name, axis, keepdims, initial, where)
        t = _masked(self, where, _limits(self._d)[low])
        dims = axes_of(axis, t.ndim)
        t = getattr(t, "a" + name)(dims, keepdim=bool(keepdims)) if dims else t
        return made(t if initial in _NONE else PUBLIC[pair](t, cast(as_constant(initial), self._d)), self._d)

    reduction.__name__, reduction.__doc__ = (
        name,
        f"The {pair} along axes; of several equal ones each has its share of the derivative.",
    )
    computed(reduction)


def place_of_complex(t: Tensor, name: str) -> Tensor:
    """Where on the last axis the first extreme complex number is: by the real, then by the imaginary part, NaN before all, as NumPy has it."""
    where, low = PUBLIC["where"], -np.inf if name == "max" else np.inf
    t = t.detach()
    bad, re, im = t.isnan(), t.real, t.imag
    among = re == getattr(where(bad, low, re), "a" + name)(-1, keepdim=True)
    # `among` is never empty where there is no NaN; its extreme imaginary part belongs to an element of it, also when that is infinite.
    best = among & (im == getattr(where(among, im, low), "a" + name)(-1, keepdim=True))
    return where(bad.any(-1, keepdim=True), bad, best).to(dt.int64).argmax(-1)


def _complex_extreme(self: Array, name: str, axis: Any, keepdims: bool, initial: Any, where: Any) -> Array:
    """The extreme of complex numbers, ordered by real and then imaginary part."""
    dims = axes_of(axis, self.ndim)
    t = _masked(self, where, None if initial in _NONE else initial)
    t = t.movedim(dims, tuple(range(-len(dims), 0))) if dims else t.unsqueeze(-1)
    t = t.reshape((*t.shape[: t.ndim - max(len(dims), 1)], -1))
    if initial not in _NONE:
        t = PUBLIC["cat"]([t, cast(as_constant(initial), self._d).expand((*t.shape[:-1], 1))], -1)
    y = t.gather(-1, place_of_complex(t, name).unsqueeze(-1)).squeeze(-1)
    for k in sorted(dims) if keepdims else ():
        y = y.unsqueeze(k)
    return made(y, self._d)


_extreme("max", "maximum", 0)
_extreme("min", "minimum", 1)


def _truth(name: str) -> None:
    def reduction(self: Array, axis: Any = None, keepdims: bool = False, where: Any = None) -> Array:
        t = _masked(made(cast(self._t, np.dtype(bool)), np.dtype(bool)), where, name == "all")
        for k in sorted(axes_of(axis, t.ndim), reverse=True):
            t = getattr(t, name)(k, keepdim=bool(keepdims))
        return made(t, np.dtype(bool))

    reduction.__name__, reduction.__doc__ = name, f"Whether {name} elements along axes are true."
    computed(reduction)


_truth("all")
_truth("any")


def _count(self: Array, axis: Any, where: Any) -> Any:
    """How many elements take part: a number, or with a mask an array with the reduced axes kept."""
    dims = axes_of(axis, self.ndim)
    if where is None or where is True or where is np._NoValue:
        return int(np.prod([self.shape[k] for k in dims], dtype=np.int64))
    m = wrap(cast(as_constant(where).expand(self.shape), np.dtype(np.int64)))
    return m.sum(axis=dims, keepdims=True)


def _mean_type(d: Any, dtype: Any) -> Any:
    return np.dtype(dtype) if dtype is not None else d if d.kind in "fc" else np.dtype(np.float64)


@computed
def mean(self: Array, axis: Any = None, dtype: Any = None, keepdims: bool = False, where: Any = None) -> Array:
    """The arithmetic mean along axes."""
    d = _mean_type(self._d, dtype)
    if where is None:
        t = self._t if d is self._d else cast(self._t, d)
        if axis is None and not keepdims:
            return made(t.mean(), d)
        dims = axes_of(axis, t.ndim)
        return made(t.mean(dims, keepdim=bool(keepdims)) if dims else t, d)
    n = _count(self, axis, where)
    y = cast(self.sum(axis=axis, dtype=d, keepdims=True, where=where)._t, d) / (
        n if isinstance(n, int) else cast(n._t, d)
    )
    return made(y if keepdims else y.squeeze(axes_of(axis, self.ndim)), d)


@computed
def var(
    self: Array,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Array:
    """The mean square distance from the mean; of complex numbers, of the absolute value."""
    ddof = ddof if correction in _NONE else correction
    d = _mean_type(self._d, dtype)
    x = self if self._d.kind in "fc" else made(cast(self._t, d), d)
    masked = {} if where is None else {"where": where}
    m = x.mean(axis=axis, dtype=d, keepdims=True, **masked) if mean is None else wrap(as_constant(mean))
    c = x - m
    sq = c * c if c._d.kind != "c" else c.real * c.real + c.imag * c.imag
    n = _count(self, axis, where)
    s = sq.sum(axis=axis, dtype=dtype, keepdims=keepdims, **masked)
    if isinstance(n, int):
        return s / max(n - ddof, 0) if n - ddof > 0 else s * np.nan
    rest = n if keepdims else wrap(n._t.squeeze(axes_of(axis, self.ndim)))
    return s / (rest - ddof).astype(s._d)


@computed
def std(
    self: Array,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Array:
    """The square root of the variance."""
    v = self.var(axis, dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean, correction=correction)
    flat = (v == 0)._t  # all elements are equal: the derivative is 0, as PyTorch has it
    return made(PUBLIC["where"](flat, 0.0, PUBLIC["where"](flat, 1.0, v._t).sqrt()), v._d)


def ptp(self: Array, axis: Any = None, out: Any = None, keepdims: bool = False) -> Array:
    """The maximum less the minimum along axes."""
    y = self.max(axis=axis, keepdims=keepdims) - self.min(axis=axis, keepdims=keepdims)
    return y if out is None else write_out("ptp", out, y)


method(ptp)


def _argument(name: str) -> None:
    def reduction(self: Array, axis: Any = None, keepdims: bool = False) -> Array:
        t = self._t if self._d.kind != "b" else self._t.to(dt.uint8)
        find = (
            (lambda v, k: place_of_complex(v.movedim(k, -1), name[3:]))
            if self._d.kind == "c"
            else getattr(type(t), name)
        )
        if axis is None:
            y = find(t.reshape(-1), 0)
            return wrap(y.reshape((1,) * t.ndim) if keepdims else y)
        axis = operator.index(axis)
        y = find(t, axis)
        return wrap(y.unsqueeze(axis) if keepdims else y)

    reduction.__name__, reduction.__doc__ = name, "Where along an axis the first extreme element is."
    computed(reduction)


_argument("argmax")
_argument("argmin")


def _scan(name: str) -> None:
    def scan(self: Array, axis: Any = None, dtype: Any = None) -> Array:
        d = _sum_type(self._d, dtype)
        t = cast(self._t, d)
        return made(cast(getattr(t.reshape(-1), name)(0) if axis is None else getattr(t, name)(axis), d), d)

    scan.__name__, scan.__doc__ = name, "All the values on the way of the reduction."
    computed(scan)


_scan("cumsum")
_scan("cumprod")


# -- shapes ---------------------------------------------------------------------------------------------------------------


@view
def reshape(self: Array, *shape: Any, order: Any = "C", copy: Any = None, newshape: Any = None) -> Tensor:
    """The elements in another shape."""
    if newshape is not None:
        shape = (newshape,)
    if len(shape) == 2 and isinstance(shape[1], str):
        shape, order = shape[:1], shape[1]  # type: ignore[misc]
    s = shape[0] if len(shape) == 1 else shape
    s = tuple([int(k) for k in s]) if isinstance(s, tuple | list) or getattr(s, "ndim", 0) else (int(s),)  # type: ignore[arg-type]
    t = self._t
    if order == "F":
        k = t.ndim
        t = t.permute(tuple(range(k)[::-1]))
        t = t.reshape(s[::-1]).permute(tuple(range(len(s))[::-1]))
    else:
        t = t.reshape(s)
    return t.clone() if copy else t


@view
def ravel(self: Array, order: Any = "C") -> Tensor:
    """The elements in one dimension."""
    t = self._t
    return (t.permute(tuple(range(t.ndim)[::-1])) if order == "F" else t).reshape(-1)


@view
def flatten(self: Array, order: Any = "C") -> Tensor:
    """A copy in one dimension."""
    t = self._t
    return (t.permute(tuple(range(t.ndim)[::-1])) if order == "F" else t).reshape(-1).clone()


@view
def transpose(self: Array, *axes: Any) -> Tensor:
    """The dimensions in another order, by default the reverse."""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list | np.ndarray)):
        axes = axes[0]  # type: ignore[assignment]
    if axes is None or not len(axes):
        axes = tuple(range(self.ndim)[::-1])
    if len(axes) != self.ndim:
        raise ValueError("axes don't match array")
    return self._t.permute(tuple([int(k) for k in axes]))


@view
def swapaxes(self: Array, axis1: int, axis2: int) -> Tensor:
    """Two dimensions exchanged."""
    return self._t.transpose(axis1, axis2)


@view
def squeeze(self: Array, axis: Any = None) -> Tensor:
    """Without dimensions of size one."""
    t = self._t
    if axis is None:
        return t.squeeze()
    axes = axes_of(axis, t.ndim)
    if any(t.shape[k] != 1 for k in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return t.squeeze(axes) if axes else t


@view
def diagonal(self: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The elements whose two indices differ by `offset`."""
    return self._t.diagonal(offset, axis1, axis2)


@view
def copy(self: Array, order: Any = "C", subok: bool = False) -> Tensor:
    """A copy."""
    return self._t.clone()


@computed
def trace(self: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Array:
    """The sum of a diagonal."""
    return self.diagonal(offset, axis1, axis2).sum(-1, dtype=dtype)


@computed
def astype(
    self: Array,
    dtype: Any,
    order: Any = "K",
    casting: Any = "unsafe",
    subok: bool = True,
    copy: bool = True,
    device: Any = None,
) -> Array:
    """In another type."""
    d = np.dtype(dtype)
    t = cast(self._t, d)
    return made(t.clone() if t is self._t and copy else t, d)


@computed
def repeat(self: Array, repeats: Any, axis: Any = None) -> Array:
    """Each element several times."""
    r = repeats if isinstance(repeats, int) else as_constant(repeats)
    if isinstance(r, Tensor) and r.numel() == 1:
        r = int(r.reshape(()).item())
    t = self._t.reshape(-1) if axis is None else self._t
    return made(PUBLIC["repeat_interleave"](t, r, 0 if axis is None else axis), self._d)


@computed
def take(self: Array, indices: Any, axis: Any = None, mode: str = "raise") -> Array:
    """The elements at indices along an axis."""
    t = self._t.reshape(-1) if axis is None else self._t
    k = 0 if axis is None else axis % t.ndim
    i = cast(as_constant(indices), np.dtype(np.int64))
    n = t.shape[k]
    i = i % n if mode == "wrap" else i.clamp(0, n - 1) if mode == "clip" else i
    return made(t[(slice(None),) * k + (i,)], self._d)


@computed
def compress(self: Array, condition: Any, axis: Any = None) -> Array:
    """The slices along an axis for which the condition holds."""
    at = np.flatnonzero(np.asarray(to_numpy(condition)))
    return self.take(at, axis)


@computed
def nonzero(self: Array) -> Any:
    """The places of the elements that are not zero."""
    return tuple([from_numpy(v) for v in np.nonzero(agreed(self._t != 0, "nonzero"))])


@computed
def choose(self: Array, choices: Any, mode: str = "raise") -> Array:
    """From several arrays, at each place the one whose number stands there."""
    d = np.result_type(*[wrap(as_constant(c))._d for c in choices])
    every = PUBLIC["broadcast_tensors"](self._t, *[cast(as_constant(c), d) for c in choices])
    at = (
        every[0] % len(choices)
        if mode == "wrap"
        else every[0].clamp(0, len(choices) - 1)
        if mode == "clip"
        else every[0]
    )
    return made(PUBLIC["stack"](list(every[1:])).gather(0, cast(at, np.dtype(np.int64)).unsqueeze(0)).squeeze(0), d)


# -- arithmetic -------------------------------------------------------------------------------------------------------------


@computed
def clip(self: Array, min: Any = None, max: Any = None, a_min: Any = None, a_max: Any = None, **kw: Any) -> Array:
    """Between two bounds."""
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    y: Any = self
    if low is not None:
        y = operate(np.maximum, "__call__", (y, low), {})
    if high is not None:
        y = operate(np.minimum, "__call__", (y, high), {})
    return y


@computed
def round(self: Array, decimals: int = 0) -> Array:
    """To a number of decimals; the derivative is zero."""
    if self._d.kind in "bui":
        return (
            made(self._t.clone(), self._d)
            if decimals >= 0
            else from_numpy(np.round(self._t.concrete("round"), decimals))
        )
    if self._d.kind == "c":
        return made(
            PUBLIC["complex"](*[(v * 10.0**decimals).round() / 10.0**decimals for v in (self._t.real, self._t.imag)]),
            self._d,
        )
    return made(self._t.round(decimals=decimals) if decimals else self._t.round(), self._d)


def _conjugate(self: Array, out: Any = None) -> Array:
    """The complex conjugate."""
    y = operate(np.conjugate, "__call__", (self,), {})
    return y if out is None else write_out("conjugate", out, y)


Array.conjugate = Array.conj = _conjugate


def _dot(self: Array, b: Any, out: Any = None) -> Any:
    """The product of vectors, of matrices, and of an array's last axis with the second to last of another."""
    return np.dot(self, b) if out is None else np.dot(self, b, out=out)


Array.dot = _dot


def fill(self: Array, value: Any) -> None:
    """Write one value everywhere."""
    self[...] = value


method(fill)


def put(self: Array, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values to places of the flattened array."""
    i = np.asarray(to_numpy(ind)).reshape(-1)
    n = self.size
    i = i % n if mode == "wrap" else np.clip(i, 0, n - 1) if mode == "clip" else i
    x = cast(as_constant(v), self._d).reshape(-1)
    at = np.arange(i.size) % x.numel() if x.numel() else i[:0]
    flat = self.reshape(-1)
    flat[i] = made(x[Tensor(at)], self._d)
    self[...] = flat.reshape(self.shape)


method(put)


def resize(self: Array, *a: Any, **k: Any) -> None:
    """Refused: an array of a transform does not change its shape."""
    raise MissingRuleError(
        "resize: the shape of an array inside a transform cannot be changed; write np.resize(x, shape)"
    )


method(resize)


def _view_as(self: Array, dtype: Any = None, type: Any = None) -> Array:
    """Itself, or complex numbers as pairs of real ones; other readings of the memory have no derivative."""
    if dtype is None or dtype == self._d or (isinstance(dtype, builtin_type) and issubclass(dtype, np.ndarray)):
        return made(self._t.view(self.shape) if self.ndim else self._t, self._d)
    d = np.dtype(dtype)
    if self._d.kind == "c" and d.kind == "f" and d.itemsize * 2 == self._d.itemsize:
        r = PUBLIC["view_as_real"](self._t)
        return made(r.reshape((*self.shape[:-1], self.shape[-1] * 2)), d)
    if self._d.kind == "f" and d.kind == "c" and self._d.itemsize * 2 == d.itemsize:
        return made(PUBLIC["view_as_complex"](self._t.reshape((*self.shape[:-1], self.shape[-1] // 2, 2))), d)
    if self._t._interp is None:
        return from_numpy(self._t._value.copy().view(d))
    raise MissingRuleError(f"view: the memory of {self._d} read as {d} has no derivative; convert with x.astype({d})")


builtin_type = type
Array.view = _view_as


# -- attributes -----------------------------------------------------------------------------------------------------------


def _real(self: Array) -> Array:
    return wrap(self._t.real) if self._d.kind == "c" else self


def _imag(self: Array) -> Array:
    return wrap(self._t.imag) if self._d.kind == "c" else wrap(self._t * 0)


def _set_real(self: Array, v: Any) -> None:
    self.real[...] = v


def _set_imag(self: Array, v: Any) -> None:
    if self._d.kind != "c":
        raise TypeError("array does not have imaginary part to set")
    self.imag[...] = v


def _mt(self: Array) -> Array:
    if self.ndim < 2:
        raise ValueError("matrix transpose with ndim < 2 is undefined")
    return made(self._t.transpose(-2, -1), self._d)


Array.real = property(_real, _set_real)
Array.imag = property(_imag, _set_imag)
Array.T = property(lambda self: self.transpose())
Array.mT = property(_mt)
Array.flat = property(lambda self: self.reshape(-1))
