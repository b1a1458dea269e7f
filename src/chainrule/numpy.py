"""NumPy's names with constructors that take the values of a transform: ``import chainrule.numpy as np``.

Plain ``import numpy as np`` works inside a transform for everything but the constructors, which NumPy lets nobody replace: ``np.array([x, y])`` of such
values raises there and ``np.zeros(n)`` cannot be written to. Here they do what is meant; all else is NumPy's own.
"""

from __future__ import annotations

import sys as _sys
import types as _types
from builtins import any as _any  # NumPy's own is a name of this module
from typing import Any

import numpy as _np

from .core.dispatch import STACK as _STACK
from .interop.numpy import shadow as _shadow
from .interop.numpy.functions import run as _run
from .interop.numpy.value import Array
from .interop.numpy.value import arrays_in as _arrays_in
from .interop.numpy.value import from_numpy as _from_numpy
from .interop.numpy.value import made as _made

__version__ = _np.__version__  # what programs ask whether a name is there
__all__ = [n for n in _np.__all__ if not n.startswith("_")] + ["Array", "stop_gradient"]


def stop_gradient(x: Any) -> Any:
    """The value without its derivative."""
    return _made(x._t.detach(), x._d) if type(x) is Array else x


def array(object: Any, dtype: Any = None, **kw: Any) -> Any:
    """``np.array``, of the values of a transform too."""
    return _inside(_shadow.array(object, dtype, **kw))


def asarray(a: Any, dtype: Any = None, **kw: Any) -> Any:
    """``np.asarray``, of the values of a transform too."""
    return _shadow.asarray(a, dtype, **kw)


def _inside(y: Any) -> Any:
    """A new array that may be written to: inside a transform it has to be able to hold a derivative."""
    return _from_numpy(y) if _STACK.get() and isinstance(y, _np.ndarray) else y


def _maker(f: Any) -> Any:
    def make(*args: Any, **kw: Any) -> Any:
        return _inside(f(*args, **kw))

    make.__name__, make.__doc__ = f.__name__, f"``np.{f.__name__}``; inside a transform it may be written to."
    return make


def _listed(f: Any) -> Any:
    """A function of NumPy's that takes lists with the values of a transform in them, which NumPy's protocol does not look into."""

    def call(*args: Any, **kw: Any) -> Any:
        if _any(type(a) is list or type(a) is tuple for a in args) and _arrays_in([args, kw], []) and f not in _JOINING:
            args = tuple([asarray(a) if isinstance(a, list | tuple) and _arrays_in(a, []) else a for a in args])
            return _run(f, args, kw) if not isinstance(f, _np.ufunc) else f(*args, **kw)
        return f(*args, **kw)

    call.__name__ = f.__name__
    call.__doc__ = f"``np.{f.__name__}``, of lists with the values of a transform in them too."
    return call


_JOINING = {
    _np.concatenate,
    _np.stack,
    _np.vstack,
    _np.hstack,
    _np.dstack,
    _np.column_stack,
    _np.block,
    _np.select,
    _np.broadcast_arrays,
    _np.meshgrid,
    _np.linalg.multi_dot,
    _np.einsum,
    _np.where,
    _np.choose,
    _np.piecewise,
}


class _Part(_types.ModuleType):
    """numpy.linalg or numpy.fft, whose functions take lists with the values of a transform in them."""

    def __getattr__(self, name: str) -> Any:
        f = getattr(getattr(_np, self.__name__), name)
        return _listed(f) if type(f) is type(_np.sum) else f


_AXIS = type(_np.r_).__mro__[1]


class _Rows(type(_np.r_)):  # type: ignore[misc]
    __getitem__ = _shadow.function(_AXIS.__getitem__)  # type: ignore[index]


class _Columns(type(_np.c_)):  # type: ignore[misc]
    __getitem__ = _shadow.function(_AXIS.__getitem__)  # type: ignore[index]


class vectorize(_np.vectorize):
    """``np.vectorize``, whose function is called with the values of a transform one by one."""

    def __call__(self, *args: Any, **kw: Any) -> Any:
        if not _arrays_in([args, kw], []):
            return super().__call__(*args, **kw)
        if self.signature is not None:
            raise TypeError("vectorize: inside a transform signature= is not taken; use chainrule.func.vmap")
        keys = [k for k in (*range(len(args)), *kw) if k not in self.excluded]
        every = dict(enumerate(args)) | kw
        parts = _np.broadcast_arrays(*[asarray(every[k]) for k in keys])
        results = []
        for at in _np.ndindex(parts[0].shape):
            now = every | {k: p[at] for k, p in zip(keys, parts, strict=True)}
            results.append(self.pyfunc(*[now[i] for i in range(len(args))], **{k: now[k] for k in kw}))
        shape = parts[0].shape
        if results and isinstance(results[0], tuple):
            return tuple([array(list(r)).reshape(shape) for r in zip(*results, strict=True)])
        return array(results).reshape(shape)


def ndenumerate(arr: Any) -> Any:
    """``np.ndenumerate``, of the values of a transform too."""
    return ((at, arr[at]) for at in _np.ndindex(arr.shape)) if type(arr) is Array else _np.ndenumerate(arr)


r_, c_ = _Rows(), _Columns()
polynomial = _shadow.Module(_np.polynomial)
linalg, fft, random = _Part("linalg"), _Part("fft"), _np.random
# Imported by name they are these, and no second copies of NumPy's.
_sys.modules |= {f"{__name__}.{n}": globals()[n] for n in ("linalg", "fft", "random", "polynomial")}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    f = getattr(_np, name)
    if name in ("zeros", "ones", "empty", "full", "eye", "identity"):
        f = _maker(f)
    elif type(f) is type(_np.sum):
        f = _listed(f)
    elif name in ("asanyarray", "ascontiguousarray"):
        f = asarray
    globals()[name] = f
    return f


def __dir__() -> list[str]:
    return __all__
