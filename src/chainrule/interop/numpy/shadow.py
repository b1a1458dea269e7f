"""NumPy's own Python code on Arrays: its functions run as they are, with the constructors they call replaced.

Most of NumPy's functions (gradient, quantile, cov, pad, insert, nanmean, ...) are Python over a small number of primitives. Their code is taken
from the NumPy that is installed and run with other globals, in which ``asarray`` lets Arrays through and ``zeros`` makes one; the primitives
reach :mod:`.functions` by NumPy's protocols. So the rules, the argument names and the results are NumPy's.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from .value import Array, as_constant, cast, from_numpy, holds_arrays, made, stack_nested, to_numpy, wrap


def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, device: Any = None, like: Any = None
) -> Any:
    """``np.asarray`` that lets Arrays through, and stacks lists of them."""
    if isinstance(a, Tensor):
        a = wrap(a)
    if type(a) is Array:
        t = a._t if dtype is None else cast(a._t, np.dtype(dtype))
        if copy:
            t = t.clone()
        return a if t is a._t else wrap(t)
    if isinstance(a, list | tuple) and holds_arrays(a):
        return wrap(stack_nested(a, dtype))
    return np.asarray(a, dtype, order) if copy is None else np.array(a, dtype, order=order, copy=copy)


def asanyarray(a: Any, dtype: Any = None, order: Any = None, **kw: Any) -> Any:
    """``np.asanyarray`` that lets Arrays through."""
    return asarray(a, dtype) if type(a) is Array or holds_arrays(a) else np.asanyarray(a, dtype, order)


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
) -> Any:
    """``np.array`` that takes Arrays, and lists of them."""
    if not holds_arrays(object):
        return np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin)
    y = asarray(object, dtype, copy=bool(copy))
    return wrap(y._t.reshape((1,) * (ndmin - y.ndim) + y.shape)) if y.ndim < ndmin else y


def _constant(f: Any) -> Any:
    def make(*args: Any, like: Any = None, **kw: Any) -> Any:
        return from_numpy(f(*to_numpy(args), **to_numpy(kw)))

    make.__name__, make.__doc__ = f.__name__, f"``np.{f.__name__}`` as an Array, which may be written to."
    return make


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """``np.full`` as an Array; the value may be one."""
    if not holds_arrays(fill_value):
        return from_numpy(np.full(to_numpy(shape), fill_value, dtype, order))
    s = (int(shape),) if not isinstance(shape, tuple | list) else tuple([int(n) for n in shape])
    v = as_constant(fill_value)
    return wrap((v if dtype is None else cast(v, np.dtype(dtype))).expand(s).clone())


class Converter:
    """What NumPy's code uses to turn arguments into arrays and results back."""

    def __init__(self, *args: Any) -> None:
        self.args = args
        self.arrays = tuple([asanyarray(a) for a in args])
        self.scalar_input = tuple([not isinstance(a, np.ndarray | Array | list | tuple) for a in args])

    def as_arrays(self, *, subok: bool = True, pyscalars: Any = "convert_if_no_array") -> Any:
        """The arguments as arrays; numbers stay numbers where an array decides the type."""
        keep = pyscalars == "preserve" or (pyscalars == "convert_if_no_array" and not all(self.scalar_input))
        return tuple(
            [
                a if keep and isinstance(a, int | float | complex) else b
                for a, b in zip(self.args, self.arrays, strict=True)
            ]
        )

    def result_type(self, extra_dtype: Any = None, ensure_inexact: bool = False) -> Any:
        """The common type."""
        kinds = [
            a if isinstance(a, int | float | complex) else b.dtype for a, b in zip(self.args, self.arrays, strict=True)
        ]
        d = np.result_type(*kinds, *([] if extra_dtype is None else [extra_dtype]))
        return np.result_type(d, 0.0) if ensure_inexact and d.kind in "biu" else d

    def wrap(self, arr: Any, to_scalar: Any = None) -> Any:
        """A result, as it is."""
        return arr

    def __getitem__(self, i: int) -> Any:
        return self.arrays[i]


def broadcast(*args: Any) -> Any:
    """``np.broadcast``, of shapes alone where Arrays are among the arguments."""
    return np.broadcast(*[np.broadcast_to(np.empty(()), a.shape) if type(a) is Array else a for a in args])


def _monotonicity(bins: Any) -> int:
    """Whether values rise (1), fall (-1) or do neither (0)."""
    return int(_direction(bins._t.concrete("the order of bins") if type(bins) is Array else bins))


_direction: Any = np._core.multiarray._monotonicity


class _Arrays(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Array | np.ndarray)


class AnyArray(metaclass=_Arrays):
    """What ``isinstance(x, np.ndarray)`` in NumPy's code is to mean: Arrays too."""


OVERRIDES: dict[Any, Any] = {
    np.ndarray: AnyArray,
    np.broadcast: broadcast,
    _direction: _monotonicity,
    getattr(np._core.shape_base, "_concatenate", np.concatenate): np.concatenate,
    np.asarray: asarray,
    np.asanyarray: asanyarray,
    np.ascontiguousarray: asarray,
    np.asfortranarray: asarray,
    np.array: array,
    np.full: full,
    **{f: _constant(f) for f in (np.zeros, np.ones, np.empty, np.eye, np.identity, np.tri)},
}
LIKE: dict[Any, Any] = {
    **{k: v for k, v in OVERRIDES.items() if k is not np.ndarray},
    **{
        f: _constant(f)
        for f in (np.arange, np.fromfunction, np.fromiter, np.frombuffer, np.fromstring, np.loadtxt, np.genfromtxt)
    },
}
_DISPATCHER = type(np.sum)
NATIVE: dict[Any, Any] = {}  # filled by .functions
_functions: dict[Any, Any] = {}
_globals: dict[str, Globals] = {}


class Globals(dict[str, Any]):
    """A module's names, each replaced by its shadow when first used."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(__name__=names.get("__name__"), __builtins__=names["__builtins__"])
        self.names = names

    def __missing__(self, name: str) -> Any:
        value = self[name] = shadow(self.names[name])
        return value


class Module:
    """A module of NumPy's, its functions replaced by their shadows."""

    def __init__(self, module: Any) -> None:
        self.__dict__["_module"] = module

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = shadow(getattr(self._module, name))
        return value


def shadow(x: Any) -> Any:
    """A function or module of NumPy's as its code should see it when it runs on Arrays."""
    try:
        if x in OVERRIDES:
            return OVERRIDES[x]
    except TypeError:
        return x
    if type(x) is _DISPATCHER:
        return _listed(x) if x in NATIVE else function(x) or x
    if isinstance(x, types.FunctionType) and (x.__module__ or "").startswith("numpy"):
        return function(x)
    if isinstance(x, types.ModuleType) and x.__name__.startswith("numpy") and "random" not in x.__name__:
        return Module(x)
    return Converter if getattr(x, "__name__", "") == "_array_converter" else x


def _listed(x: Any) -> Any:
    """A function of NumPy's that has a rule, of lists with Arrays in them too: where its protocol does not look into them, the rule is called."""

    def call(*args: Any, **kw: Any) -> Any:
        for a in args:
            if (type(a) is list or type(a) is tuple) and holds_arrays(a):
                return NATIVE[x](*args, **kw)
        return x(*args, **kw)

    return call


def function(x: Any) -> Any:
    """A function's code with the shadow of its module's globals; None where it is not Python."""
    f = getattr(x, "_implementation", x)
    if not isinstance(f, types.FunctionType):
        return None
    made_before = _functions.get(f)
    if made_before is None:
        module = f.__globals__["__name__"]
        space = _globals.get(module)
        if space is None:
            space = _globals[module] = Globals(f.__globals__)
        made_before = types.FunctionType(f.__code__, space, f.__name__, f.__defaults__, f.__closure__)
        made_before.__kwdefaults__ = f.__kwdefaults__
        _functions[f] = made_before
    return made_before


__all__ = ["LIKE", "NATIVE", "OVERRIDES", "PUBLIC", "array", "asarray", "full", "function", "made", "shadow"]
