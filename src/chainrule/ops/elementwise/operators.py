"""Sums, differences, products and quotients, and Python's operators."""

from __future__ import annotations

import functools
from cmath import isfinite
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import pointwise
from ...core.dispatch import innermost
from ...core.errors import ZERO
from ...core.op import Op
from ...core.registry import public
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.types import ALL_NUMS, COMPLEX_NUMS, FLOAT_NUMS, REAL_NUMS
from .bits import _swapped


def _sum(name: str, fn: Any, *rules: Any) -> Op:
    """``a + b`` or ``a - b``. PyTorch multiplies complex `b` by alpha = 1 + 0j first, which turns an infinite part into NaN."""

    def checked(a: Any, b: Any) -> Any:
        y = fn(a, b)
        # One product finds out whether there is anything to look for.
        if y.dtype.kind == "c" and not isfinite(np.vdot(w := np.asarray(y).ravel("K"), w)):
            return fn(a, b * y.dtype.type(1 + 0j))
        return y

    return pointwise(name, fn, *rules, fast=ALL_NUMS - COMPLEX_NUMS, other=checked)


add_p = _sum("add", np.add, lambda t, y, a, b: t, lambda t, y, a, b: t)
sub_p = _sum("sub", np.subtract, lambda t, y, a, b: t, lambda t, y, a, b: -t)
mul_p = pointwise(
    "mul",
    np.multiply,
    lambda t, y, a, b: t * b,
    lambda t, y, a, b: t * a,
    doc="``input * other``.",
)
div_p = pointwise(
    "div",
    np.true_divide,
    lambda t, y, a, b: t / b,
    lambda t, y, a, b: -t * (y / b),
    types="float",
)


def _negative(x: Any) -> Any:
    if x.dtype.kind == "b":
        raise RuntimeError(
            "neg: the `-` operator on a bool tensor (input) is not supported; invert a mask with `~` or logical_not()"
        )
    return np.negative(x)


neg = public("neg negative", methods="neg negative __neg__", inplace="neg_ negative_")(
    pointwise("neg", np.negative, lambda t, y, x: -t, fast=ALL_NUMS - {dt.bool_.np.num}, other=_negative, doc="``-x``.")
)


def _floor_divide(a: Any, b: Any) -> Any:
    if a.dtype.kind in "cb":
        raise NotImplementedError(f"floor_divide: not implemented for an input of type {dt.FROM_NP[a.dtype].name}")
    if a.dtype.kind in "iu" and np.any(np.asarray(b) == 0):
        raise RuntimeError("floor_divide: integer division by zero in other")
    return np.floor_divide(a, b)


floor_divide_p = pointwise(
    "floor_divide", _floor_divide, ZERO, ZERO, fast=REAL_NUMS, doc="``input // other``, rounded down."
)


def _trunc_divide(a: Any, b: Any) -> Any:
    if a.dtype.kind in "cb":
        raise NotImplementedError(
            f"div: with rounding_mode 'trunc' not implemented for an input of type {dt.FROM_NP[a.dtype].name}"
        )
    return _trunc_int(a, b) if a.dtype.kind in "iu" else np.trunc(a / b)


trunc_divide_p = pointwise("trunc_divide", _trunc_divide, ZERO, ZERO, fast=frozenset())


def _trunc_int(a: Any, b: Any) -> Any:
    if np.any(b == 0):
        raise RuntimeError("div: integer division by zero in other")
    q, r = np.divmod(a, b)
    return q + ((r != 0) & ((a < 0) != (b < 0))).astype(a.dtype)


def scaled(x: Any, alpha: Any, other: Any = None) -> Any:
    """``alpha * x`` for a sum with `other`, without the multiplication for 1; among booleans alpha is one too."""
    if isinstance(alpha, int | float) and alpha == 1:
        return x
    if _is_bool(x) and _is_bool(other):
        return mul_p.bind(x, bool(alpha)) if isinstance(x, Tensor) else x and bool(alpha)
    return mul_p.bind(x, alpha)


def _with_multiple(p: Op, a: Any, b: Any, alpha: Any) -> Any:
    """``p(a, alpha * b)``; 16-bit floats are multiplied in float32, so that they are rounded once."""
    if isinstance(alpha, int | float) and alpha == 1:
        return p.bind(a, b)
    types = [x.dtype for x in (a, b) if isinstance(x, Tensor)]
    d = types[0] if types else dt.float32
    if d.np not in dt.HALVES or d is not types[-1] or isinstance(alpha, complex | Tensor):
        return p.bind(a, scaled(b, alpha, a))
    a, b = (x.to(dt.float32) if isinstance(x, Tensor) else x for x in (a, b))
    return p.bind(a, scaled(b, alpha)).to(d)


def _is_bool(x: Any) -> bool:
    return x.dtype is dt.bool_ if isinstance(x, Tensor) else isinstance(x, bool)


@public("add", methods="add", inplace="add_")
@functools.partial(straight, taped=False)
def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """``input + alpha * other``.

    >>> chainrule.add(chainrule.tensor([1.0, 2.0]), 10, alpha=2)
    tensor([21., 22.])
    """
    _check_alpha("add", input, other, alpha)
    return _with_multiple(add_p, input, other, alpha)


def _check_alpha(name: str, a: Any, b: Any, alpha: Any) -> None:
    if alpha == 1 and not isinstance(alpha, bool):
        return
    if isinstance(alpha, float) and all(
        isinstance(x, int) or (isinstance(x, Tensor) and x.dtype.category <= dt.INT) for x in (a, b)
    ):
        raise RuntimeError(f"{name}: for integral input tensors, argument alpha must not be a floating point number")
    if isinstance(alpha, bool) and not all(isinstance(x, Tensor) and x.dtype is dt.bool_ for x in (a, b)):
        raise RuntimeError(f"{name}: Boolean alpha only supported for Boolean results.")


@public("sub subtract", methods="sub subtract", inplace="sub_ subtract_")
@functools.partial(straight, taped=False)
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """``input - alpha * other``."""
    for x in (input, other):
        if isinstance(x, bool) or (isinstance(x, Tensor) and x.dtype is dt.bool_):
            raise RuntimeError(
                "sub: subtraction, the `-` operator, with a bool tensor is not supported. Use `^`, logical_xor() or "
                "`~` for input or other instead."
            )
    _check_alpha("sub", input, other, alpha)
    return _with_multiple(sub_p, input, other, alpha)


@public("rsub", methods="rsub", out=False)
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """``other - alpha * input``."""
    if not isinstance(input, Tensor):
        raise TypeError(f"rsub: argument input must be a tensor, got {type(input).__name__}")
    return sub(other, input, alpha=alpha)


public("mul multiply", methods="mul multiply __mul__", inplace="mul_ multiply_")(mul_p)
public("", inplace="__imul__")(mul_p)


@public("div divide", methods="div divide", inplace="div_ divide_")
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """``input / other``; with ``rounding_mode`` "floor" or "trunc" rounded, and the derivative zero."""
    if rounding_mode is None:
        return div_p.bind(input, other)
    if rounding_mode == "floor":
        return floor_divide_p.bind(input, other)
    if rounding_mode == "trunc":
        return trunc_divide_p.bind(input, other)
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


@public("true_divide", methods="true_divide", inplace="true_divide_")
def true_divide(input: Any, other: Any) -> Tensor:
    """``input / other``."""
    return div_p.bind(input, other)


public("floor_divide", methods="floor_divide __floordiv__", inplace="floor_divide_ __ifloordiv__")(floor_divide_p)


# -- operators --------------------------------------------------------------------------------------------------------


def _reverse(p: Op) -> Any:
    def method(self: Tensor, other: Any) -> Tensor:
        if not isinstance(self, Tensor):
            raise TypeError(f"__r{p.name}__: argument self must be a tensor, got {type(self).__name__}")
        return p.bind(other, self)

    return method


def _sub_operator(self: Tensor, other: Any) -> Tensor:
    if innermost(self).dtype.num in FLOAT_NUMS and type(other) in (Tensor, int, float):
        return sub_p.bind(self, other)
    return sub(self, other)


public("", methods="__add__", inplace="__iadd__")(add_p)
public("", methods="__radd__", out=False)(_swapped(add_p))
public("", methods="__rmul__", out=False)(_swapped(mul_p))
public("", methods="__truediv__ __div__", inplace="__itruediv__ __idiv__")(div_p)
public("", methods="__sub__", inplace="__isub__")(_sub_operator)


def _rsub_operator(self: Tensor, other: Any) -> Tensor:
    if not isinstance(self, Tensor):
        raise TypeError(f"__rsub__: argument self must be a tensor, got {type(self).__name__}")
    if type(other) in (int, float) and innermost(self).dtype.num in FLOAT_NUMS:
        return sub_p.bind(other, self)
    return sub(other, self)


public("", methods="__rsub__")(_rsub_operator)
public("", methods="__rtruediv__ __rdiv__")(_reverse(div_p))
public("", methods="__rfloordiv__")(_reverse(floor_divide_p))
public("", methods="__pos__", out=False)(lambda self: self)
