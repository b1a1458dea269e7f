"""The standard's functions that act element by element."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from ..interop.numpy.value import Array, wrap
from .call import array, back, operand


def _one(name: str, ufunc: Any = None) -> Callable[[Any], Any]:
    u = ufunc or getattr(np, name)

    def f(x: Any, /) -> Any:
        return back(u(array(x, name)), x)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"``{name}(x)``, element by element."
    return f


def _two(name: str, ufunc: Any = None) -> Callable[[Any, Any], Any]:
    u = ufunc or getattr(np, name)

    def f(x1: Any, x2: Any, /) -> Any:
        if not any(type(x) is Array or isinstance(x, Tensor) for x in (x1, x2)):
            raise TypeError(f"{name}: one of the arguments must be an array, got two numbers")
        return back(u(operand(x1, name), operand(x2, name)), x1, x2)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"``{name}(x1, x2)``, element by element."
    return f


abs = _one("abs")
acos, acosh, asin, asinh, atan, atanh = (_one(n) for n in ("acos", "acosh", "asin", "asinh", "atan", "atanh"))
bitwise_invert, conj, cos, cosh, exp = (_one(n) for n in ("bitwise_invert", "conj", "cos", "cosh", "exp"))
isfinite, isinf, isnan, log, log1p, log2, log10 = (
    _one(n) for n in ("isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10")
)
logical_not, negative, positive, reciprocal, signbit = (
    _one(n) for n in ("logical_not", "negative", "positive", "reciprocal", "signbit")
)
sign, sin, sinh, square, sqrt, tan = (_one(n) for n in ("sign", "sin", "sinh", "square", "sqrt", "tan"))
add, atan2, bitwise_and, bitwise_left_shift = (_two(n) for n in ("add", "atan2", "bitwise_and", "bitwise_left_shift"))
bitwise_or, bitwise_right_shift, bitwise_xor, copysign = (
    _two(n) for n in ("bitwise_or", "bitwise_right_shift", "bitwise_xor", "copysign")
)
divide, equal, greater, greater_equal = (_two(n) for n in ("divide", "equal", "greater", "greater_equal"))
floor_divide = _two("floor_divide", operator.floordiv)  # the operator has the standard's infinities
hypot, less, less_equal, logaddexp, logical_and = (
    _two(n) for n in ("hypot", "less", "less_equal", "logaddexp", "logical_and")
)
logical_or, logical_xor, maximum, minimum, multiply = (
    _two(n) for n in ("logical_or", "logical_xor", "maximum", "minimum", "multiply")
)
nextafter, not_equal, pow, remainder, subtract = (
    _two(n) for n in ("nextafter", "not_equal", "pow", "remainder", "subtract")
)


def _mended(name: str, mend: Callable[[Any, Any], None]) -> Callable[[Any], Any]:
    """A function whose values at complex infinities NumPy leaves to the processor and the standard prescribes."""
    u = getattr(np, name)

    def f(x: Any, /) -> Any:
        a = array(x, name)
        y = u(a)
        if a.dtype.kind == "c" and a._t._interp is None:
            mend(a._t._value, y._t._value)
        return back(y, x)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"``{name}(x)``, element by element."
    return f


def _mend_expm1(z: Any, y: Any) -> None:
    low, high = np.isneginf(z.real), np.isposinf(z.real)
    odd = ~np.isfinite(z.imag)
    y[low & odd] = complex(-1.0, 0.0)
    y[high & odd] = complex(np.inf, np.nan)
    y[z == 0] = 0  # also where the real part is -0
    flat = (z.imag == 0) & (high | np.isnan(z.real))
    y[flat] = z[flat]


def _mend_tanh(z: Any, y: Any) -> None:
    y[np.isposinf(z.real) & np.isfinite(z.imag) & (z.imag > 0)] = complex(1.0, 0.0)


expm1, tanh = _mended("expm1", _mend_expm1), _mended("tanh", _mend_tanh)


def _whole(name: str) -> Callable[[Any], Any]:
    u = getattr(np, name)

    def f(x: Any, /) -> Any:
        a = array(x, name)
        return back(a.copy() if a.dtype.kind in "iu" else u(a), x)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"``{name}(x)``, element by element; integers stay as they are."
    return f


ceil, floor, trunc = _whole("ceil"), _whole("floor"), _whole("trunc")
round = _whole("round")


def real(x: Any, /) -> Any:
    """The real part."""
    return back(wrap(array(x, "real").real._t.clone()), x)


def imag(x: Any, /) -> Any:
    """The imaginary part."""
    return back(wrap(array(x, "imag").imag._t.clone()), x)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Between two bounds; the type is that of `x`."""
    a = array(x, "clip")
    y: Any = a
    for bound, u in ((min, np.maximum), (max, np.minimum)):
        if bound is not None:
            b = operand(bound, "clip")
            if isinstance(b, int) and a.dtype.kind in "iu":
                # A bound beyond what the type holds bounds nothing.
                info = np.iinfo(a.dtype)
                b = int(np.clip(b, info.min, info.max)) if not isinstance(b, bool) else b
            y = u(y, b)
    return back(y.astype(a.dtype) if y.dtype != a.dtype else y.copy() if y is a else y, x)
