"""Python's operators between Arrays: the common case by the shortest way, the rest by NumPy's ufunc of that name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.fast import is_operand
from ...core.tensor import Tensor
from ...core.types import FLOAT_NUMS, REAL_NUMS
from .ufuncs import _DIRECT, OPS_OF, operate, public_bind, write_out
from .value import Array, holds_arrays, made, wrap

BOOL = np.dtype(bool)
ARITHMETIC = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}


def _known(x: Any) -> bool:
    return type(x) is Array or is_operand(x) or (isinstance(x, list | tuple) and not hasattr(x, "__array_ufunc__"))


def _general(ufunc: Any, a: Any, b: Any) -> Any:
    for x in (a, b):
        if not _known(x):
            return NotImplemented
    a, b = (
        wrap(x)
        if isinstance(x, Tensor)
        else np.asarray(x)
        if isinstance(x, list | tuple) and not holds_arrays(x)
        else x
        for x in (a, b)
    )
    return operate(ufunc, "__call__", (a, b), {})


def _operator(ufunc: Any, compares: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    op = public_bind(OPS_OF[ufunc.__name__])
    fast = (
        frozenset()
        if ufunc.__name__ in ("matmul", "power")
        else REAL_NUMS
        if ufunc.__name__ in ("floor_divide", "remainder", *COMPARISONS.values())
        else FLOAT_NUMS
    )
    both = FLOAT_NUMS if ufunc.__name__ in ("matmul", "power") else fast
    power = ufunc is np.power

    direct = _DIRECT.get(ufunc)

    def forward(self: Array, other: Any) -> Any:
        if direct is not None and (y := direct(self, other)) is not None:
            return y
        d, k = self._d, type(other)
        if k is Array:
            if (other._d is d or other._d == d) and d.num in both:
                return made(op(self._t, other._t), BOOL if compares else d)
        elif (k is float and (d.num in fast or (power and d.num in REAL_NUMS))) or (
            k is int and (d.num in fast or (power and d.num in FLOAT_NUMS))
        ):
            return made(op(self._t, other), BOOL if compares else d)
        return _general(ufunc, self, other)

    def backward(self: Array, other: Any) -> Any:
        if direct is not None and (y := direct(other, self)) is not None:
            return y
        d, k = self._d, type(other)
        if (k is float or k is int) and d.num in fast:
            return made(op(other, self._t), d)
        return _general(ufunc, other, self)

    return forward, backward


def floordiv(a: Any, b: Any) -> Any:
    """``floor(a / b)``: at infinities as the Array API standard and IEEE division have it, where np.floor_divide says NaN or -1."""
    y = _general(np.floor_divide, a, b)
    if y is NotImplemented or y._d.kind != "f" or y._t._interp is not None:
        return y
    x, z = (np.asarray(v._t._value if type(v) is Array else v._value if isinstance(v, Tensor) else v) for v in (a, b))
    odd = (np.isinf(x) & np.isfinite(z) & (z != 0)) | (np.isfinite(x) & np.isinf(z))
    if odd.any():
        with np.errstate(all="ignore"):
            y._t._value[...] = np.where(odd, np.trunc(np.divide(x, z, dtype=y._d)), y._t._value)
    return y


def _in_place(ufunc: Any, forward: Callable[..., Any]) -> Callable[..., Any]:
    def write(self: Array, other: Any) -> Any:
        t = self._t
        if not t.ndim and (t._meta is None or t._meta.base is None):
            # NumPy's scalars are values: a += b names a new one. What shows a part of an array, as x[..., 0] does, is none.
            return forward(self, other)
        y = forward(self, other)
        return y if y is NotImplemented else write_out(ufunc.__name__, self, y)

    return write


for _n, _u in ARITHMETIC.items():
    _f, _b = _operator(getattr(np, _u), False)
    setattr(Array, f"__{_n}__", _f)
    setattr(Array, f"__r{_n}__", _b)
    setattr(Array, f"__i{_n}__", _in_place(getattr(np, _u), _f))
Array.__floordiv__ = floordiv
Array.__rfloordiv__ = lambda self, other: floordiv(other, self)
Array.__ifloordiv__ = _in_place(np.floor_divide, floordiv)
for _n, _u in COMPARISONS.items():
    setattr(Array, f"__{_n}__", _operator(getattr(np, _u), True)[0])


def _unary(name: str, ufunc: Any) -> None:
    op = public_bind(OPS_OF[ufunc.__name__])

    direct = _DIRECT.get(ufunc)

    def method(self: Array) -> Any:
        if direct is not None and (y := direct(self)) is not None:
            return y
        if self._d.num in REAL_NUMS:
            return made(op(self._t), self._d)
        return operate(ufunc, "__call__", (self,), {})

    setattr(Array, name, method)


for _n, _u in {"__neg__": "negative", "__pos__": "positive", "__abs__": "absolute", "__invert__": "invert"}.items():
    _unary(_n, getattr(np, _u))
Array.__divmod__ = lambda self, other: operate(np.divmod, "__call__", (self, other), {})
Array.__rdivmod__ = lambda self, other: operate(np.divmod, "__call__", (other, self), {})
