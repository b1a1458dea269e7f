"""The way in for pointwise ops of one and two arguments: for plain arrays of a type that needs no conversion, a few tests and NumPy's call.

A closure knows its op's body and types, so that nothing is looked up. Whatever is not the common case goes to :meth:`Op.bind`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .errors import FLOATING
from .op import Op, check_broadcast, quietly
from .payload import COMPOSED, composed
from .sizes import Ragged
from .tensor import Tensor
from .types import FLOAT_NUMS, as_scalar

ndarray = np.ndarray
SIZE = 1 << 62  # no array has so many elements
OPERANDS = (Tensor, bool, int, float, complex, ndarray, np.generic, Ragged)


def is_operand(x: Any) -> bool:
    """Whether an operator between tensors can do something with `x`; the rest is left to Python, and to the other operand."""
    return isinstance(x, OPERANDS)


def unary(op: Op, fn: Callable[..., Any], fast: frozenset[int]) -> Callable[..., Any]:
    """`op.bind` for one argument: `fn` on arrays of the types `fast`, else by the op's own way."""
    large = op.large
    least = SIZE if large is None else large.least

    def bind(x: Any) -> Any:
        if type(x) is Tensor:
            i = x._interp
            if i is None:
                v = x._value
                if v.dtype.num in fast and type(v) is ndarray:
                    r = large(v) if v.size >= least else None
                    if r is None:
                        try:
                            r = fn(v)
                        except FLOATING:
                            r = quietly(fn, v)
                    return Tensor(r if type(r) is ndarray else np.asarray(r))
                if type(v) is ndarray:
                    return op.run((x,), {})
        if COMPOSED and (y := composed(op, (x,), {})) is not None:
            return y
        if type(x) is Tensor:
            return op.run((x,), {}) if x._interp is None else x._interp.run_unary(op, x)
        if isinstance(x, Tensor) and (i := x._interp) is not None:
            return i.run_unary(op, x)
        return Op.bind(op, x)

    bind.__name__ = op.name
    return bind


def binary(
    op: Op,
    fn: Callable[..., Any],
    fast: frozenset[int],
    operator: bool = False,
) -> Callable[..., Any]:
    """`op.bind` for two arguments; as Python's `operator` it returns NotImplemented for what is no operand."""
    large = op.large
    least = SIZE if large is None else large.least
    floats = fast & FLOAT_NUMS
    number = (float, int) if isinstance(fn, np.ufunc) else ()

    def bind(a: Any, other: Any) -> Any:
        # Two plain arrays, or one and a number, are not looked at.
        if COMPOSED and not (
            type(a) is Tensor
            and a._interp is None
            and type(a._value) is ndarray
            and (
                type(other) is float
                or (type(other) is Tensor and other._interp is None and type(other._value) is ndarray)
            )
        ):
            y = composed(op, (a, other), {})
            if y is not None:
                return y
        if type(a) is Tensor:
            ia = a._interp
            if ia is None:
                va = a._value
                if type(other) is Tensor:
                    if other._interp is None:
                        vb = other._value
                        d = va.dtype
                        if vb.dtype is d and d.num in fast and type(va) is ndarray and type(vb) is ndarray:
                            if (va.size >= least or vb.size >= least) and (r := large(va, vb)) is not None:
                                return Tensor(r)
                            try:
                                r = fn(va, vb)
                            except FLOATING:
                                r = quietly(fn, va, vb)
                            except ValueError:
                                check_broadcast(op.name, va, vb)
                                raise
                            return Tensor(r if type(r) is ndarray else np.asarray(r))
                        return op.run((a, other), {})
                    return other._interp.run_binary(op, a, other)
                if type(other) in number:
                    if va.dtype.num in floats and type(va) is ndarray:
                        if va.size >= least and (r := large(va, other)) is not None:
                            return Tensor(r)
                        try:
                            r = fn(va, other)
                        except FLOATING:
                            r = quietly(fn, va, other)
                        return Tensor(r if type(r) is ndarray else np.asarray(r))
                    return op.run((a, other), {})
            elif type(other) is Tensor:
                ib = other._interp
                return (ib if ib is not None and ib.level > ia.level else ia).run_binary(op, a, other)
            elif type(other) is float or type(other) is int:
                return ia.run_binary(op, a, other)
        elif type(other) is Tensor and type(a) in number:
            ib = other._interp
            if ib is not None:
                return ib.run_binary(op, a, other)
            if other._value.dtype.num in floats and type(other._value) is ndarray:
                if other._value.size >= least and (r := large(a, other._value)) is not None:
                    return Tensor(r)
                try:
                    r = fn(a, other._value)
                except FLOATING:
                    r = quietly(fn, a, other._value)
                return Tensor(r if type(r) is ndarray else np.asarray(r))
        if isinstance(a, Tensor):  # a subclass, as parameters are
            top = a._interp
            if isinstance(other, Tensor):
                ib = other._interp
                if ib is not None and (top is None or ib.level > top.level):
                    top = ib
                if top is not None:
                    return top.run_binary(op, a, other)
            elif top is not None and (type(other) is float or type(other) is int):
                return top.run_binary(op, a, other)
        elif isinstance(other, Tensor) and other._interp is not None and type(a) in number:
            return other._interp.run_binary(op, a, other)
        if operator and not (is_operand(a) and is_operand(other)):
            return NotImplemented
        return Op.bind(op, a, other)

    bind.__name__ = op.name
    return bind


def several(op: Op) -> Callable[..., Any]:
    """`op.bind` as a function of its own, for more arguments or static data: the body on small plain arrays of one type, else by the op's own way."""
    body, fast, large = op.direct, op.fast, op.large
    choice, untyped = op.types.choice, op.types.promote == "none"  # type: ignore[union-attr]
    least = SIZE if large is None else large.least

    def bind(*args: Any, **kw: Any) -> Any:
        vals: list[Any] = []
        d: Any = None
        numbers = False
        for a in args:
            if type(a) is Tensor:
                v = a._value
                if a._interp is not None or type(v) is not ndarray or v.size >= least:
                    break
                if choice and not vals:
                    if v.dtype.kind != "b":
                        break
                elif d is None:
                    d = v.dtype
                    if d.num not in fast and not untyped:
                        break
                elif v.dtype is not d and not untyped:
                    break
                vals.append(v)
            elif (type(a) is float or type(a) is int) and not untyped:
                numbers = True
                vals.append(a)
            else:
                break
        else:
            if d is not None and (not numbers or d.kind == "f"):
                if numbers:
                    vals = [as_scalar(v, d) if type(v) is float or type(v) is int else v for v in vals]
                try:
                    y = body(*vals, **kw)
                except FLOATING:
                    y = quietly(body, *vals, **kw)
                except ValueError:
                    check_broadcast(op.name, *vals)
                    raise
                if type(y) is not tuple:
                    return Tensor(y if type(y) is ndarray else np.asarray(y))
        return Op.bind(op, *args, **kw)

    bind.__name__ = op.name
    return bind


def pair(op: Op, quick: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """`op.bind` for a structured op of two tensors without static data: ``quick(a, b)`` on plain arrays, unless that gives None."""

    def bind(a: Any, b: Any) -> Any:
        if COMPOSED and (y := composed(op, (a, b), {})) is not None:
            return y
        ia, ib = a._interp, b._interp
        if ia is None and ib is None:
            va, vb = a._value, b._value
            if type(va) is ndarray and type(vb) is ndarray:
                try:
                    r = quick(va, vb)
                except FLOATING:
                    r = quietly(quick, va, vb)
                if r is not None:
                    return Tensor(r if type(r) is ndarray else np.asarray(r))
            return op.run((a, b), {})
        top = ib if ia is None or (ib is not None and ib.level > ia.level) else ia
        return top.run_binary(op, a, b)

    bind.__name__ = op.name
    return bind
