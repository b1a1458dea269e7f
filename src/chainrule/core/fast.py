"""The way in for pointwise ops of one and two arguments: for plain arrays of a type that needs no conversion, a few tests and NumPy's call.

A closure knows its op's body and types, so that nothing is looked up. Whatever is not the common case goes to :meth:`Op.bind`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import dtypes as dt
from .batching import Batching
from .dispatch import CUT
from .errors import FLOATING
from .op import Op, check_broadcast, quietly
from .payload import COMPOSED, composed
from .reverse import _BOTH, _FIRST, _NONE, _SECOND, Node
from .sizes import SEEN, Ragged
from .tensor import Tensor
from .types import FLOAT_NUMS, as_scalar
from .views import pin
from .watch import WATCHED

ndarray = np.ndarray
SIZE = 1 << 62  # no array has so many elements
OPERANDS = (Tensor, bool, int, float, complex, ndarray, np.generic, Ragged)


def is_operand(x: Any) -> bool:
    """Whether an operator between tensors can do something with `x`; the rest is left to Python, and to the other operand."""
    return isinstance(x, OPERANDS)


_ONE = (None,)


def noter(op: Op, fn: Callable[..., Any], nums: frozenset[int], least: int, numbers: bool) -> Callable[..., Any]:
    """``run_binary`` of a level: at a tape with nothing but small arrays of one float type beneath (and numbers) it is NumPy's call and a node."""
    core = op.core if op.form == "core" else None  # of operands of just their core ranks cotangents have the shapes
    body = fn if core is None else op.body

    def mapped(i: Any, a: Any, b: Any) -> Any:
        """With one vmap between the tape and the arrays: NumPy's call on all examples, and the node."""
        pa = pb = j = None
        la = va = a
        lb = vb = b
        ra = rb = 0
        if a.__class__ is not float and a.__class__ is not int:
            if a._interp is i:
                la, pa = a._value, a._aux
            va, ja = la._value, la._interp
            if ja is not None:
                j, va, ra = ja, va._value, 1
        if b.__class__ is not float and b.__class__ is not int:
            if b._interp is i:
                lb, pb = b._value, b._aux
            vb, jb = lb._value, lb._interp
            if jb is not None:
                if ra and jb is not j:
                    return i.run_binary(op, a, b)
                j, vb, rb = jb, vb._value, 1
        if j.__class__ is not Batching or not j.alive or SEEN:
            return i.run_binary(op, a, b)
        if va.__class__ is ndarray:
            d = va.dtype
            if vb.__class__ is ndarray:
                na, nb = va.ndim - ra, vb.ndim - rb
                if core is None:
                    fit = (nb >= na or not rb) and (na >= nb or not ra)  # aligned from the end
                else:
                    fit = na == core[0] and nb == core[1]
                fit = fit and vb.dtype is d and vb.size < least and va.size < least
            else:
                fit = numbers and va.size < least
        elif vb.__class__ is ndarray:
            d = vb.dtype
            fit = numbers and vb.size < least
        else:
            fit = False
        if not fit or d.num not in nums:
            return i.run_binary(op, a, b)
        try:
            r = body(va, vb)
        except Exception:  # by the level, in whose way there are words for it
            return i.run_binary(op, a, b)
        if r.__class__ is not ndarray or r.dtype is not d:
            return i.run_binary(op, a, b)
        fa = fb = None
        if core is None:
            shape = r.shape[1:]
            if pa is not None and va.shape[ra:] != shape:
                fa = (va.shape[ra:], dt.FROM_NP[d])
            if pb is not None and vb.shape[rb:] != shape:
                fb = (vb.shape[rb:], dt.FROM_NP[d])
        need = _SECOND if pa is None else _FIRST if pb is None else _BOTH
        keep_y, keep_x = op._keeps.get(need) or op.keeps(need)
        if keep_x is not None:
            la = la if not isinstance(la, Tensor) else None if not keep_x[0] else pin(la) if pa is None else la
            lb = lb if not isinstance(lb, Tensor) else None if not keep_x[1] else pin(lb) if pb is None else lb
        y = Tensor(Tensor(r), j)
        return Tensor(y, i, Node(op, (la, lb), y if keep_y else None, (pa, pb), _NONE, (fa, fb)))

    if not op.differentiable:
        return lambda i, a, b: i.run_binary(op, a, b)

    def noted(i: Any, a: Any, b: Any) -> Any:
        if i.open <= CUT.get() or WATCHED.on:
            return i.run_binary(op, a, b)
        pa = pb = None
        la = va = a
        lb = vb = b
        fa = fb = None
        if a.__class__ is float or a.__class__ is int:
            lb, pb = b._value, b._aux
            vb = lb._value
            if vb.__class__ is not ndarray:
                return mapped(i, a, b)
            if not numbers or vb.size >= least or (d := vb.dtype).num not in nums:
                return i.run_binary(op, a, b)
            need = _SECOND
        else:
            if a._interp is i:
                la, pa = a._value, a._aux
            va = la._value
            if va.__class__ is not ndarray:
                return mapped(i, a, b)
            if va.size >= least or (d := va.dtype).num not in nums:
                return i.run_binary(op, a, b)
            if b.__class__ is float or b.__class__ is int:
                if not numbers:
                    return i.run_binary(op, a, b)
                need = _FIRST
            else:
                if b._interp is i:
                    lb, pb = b._value, b._aux
                    need = _BOTH if pa is not None else _SECOND
                else:
                    need = _FIRST
                vb = lb._value
                if vb.__class__ is not ndarray:
                    return mapped(i, a, b)
                if vb.dtype is not d or vb.size >= least:
                    return i.run_binary(op, a, b)
        try:
            r = fn(va, vb)
        except Exception:  # by the level, in whose way there are words for it
            return i.run_binary(op, a, b)
        if r.__class__ is not ndarray:
            if r is None:
                return i.run_binary(op, a, b)
            r = np.asarray(r)
        if r.dtype is not d:
            return i.run_binary(op, a, b)
        if core is None:
            shape = r.shape
            if pa is not None and va.shape != shape:
                fa = (va.shape, dt.FROM_NP[d])
            if pb is not None and vb.shape != shape:
                fb = (vb.shape, dt.FROM_NP[d])
        elif va.ndim != core[0] or vb.ndim != core[1]:
            return i.run_binary(op, a, b)
        keep_y, keep_x = op._keeps.get(need) or op.keeps(need)
        if keep_x is not None:
            if not keep_x[0]:
                la = None if pa is not None or isinstance(la, Tensor) else la
            elif pa is None and isinstance(la, Tensor):
                la = pin(la)
            if not keep_x[1]:
                lb = None if pb is not None or isinstance(lb, Tensor) else lb
            elif pb is None and isinstance(lb, Tensor):
                lb = pin(lb)
        y = Tensor(r)
        return Tensor(y, i, Node(op, (la, lb), y if keep_y else None, (pa, pb), _NONE, (fa, fb)))

    return noted


def unary(op: Op, fn: Callable[..., Any], fast: frozenset[int]) -> Callable[..., Any]:
    """`op.bind` for one argument: `fn` on arrays of the types `fast`, else by the op's own way."""
    large = op.large
    least = SIZE if large is None else large.least
    floats = fast & FLOAT_NUMS if op.differentiable else frozenset()

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
            elif i.open > CUT.get() and not WATCHED.on:
                # As in `noter`.
                low = x._value
                v, j = low._value, low._interp
                if j is not None:  # a vmap between the tape and the array
                    v = v._value if j.__class__ is Batching and j.alive and not SEEN else None
                if v.__class__ is ndarray and v.dtype.num in floats and v.size < least:
                    try:
                        r = fn(v)
                    except FLOATING:
                        return i.run_unary(op, x)
                    r = r if type(r) is ndarray else np.asarray(r)
                    if r.dtype is v.dtype:
                        keep_y, keep_x = op.keep_one or op.keeps_one()
                        y = Tensor(r) if j is None else Tensor(Tensor(r), j)
                        kept = (low,) if keep_x else _ONE
                        return Tensor(y, i, Node(op, kept, y if keep_y else None, (x._aux,), _NONE, _ONE))
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
    ufunc = isinstance(fn, np.ufunc)
    number = (float, int) if ufunc else ()
    noted = noter(op, fn, floats, least, ufunc)

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
                    return noted(other._interp, a, other)
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
                return noted(ib if ib is not None and ib.level > ia.level else ia, a, other)
            elif type(other) is float or type(other) is int:
                return noted(ia, a, other)
        elif type(other) is Tensor and type(a) in number:
            ib = other._interp
            if ib is not None:
                return noted(ib, a, other)
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
                    return noted(top, a, other)
            elif top is not None and (type(other) is float or type(other) is int):
                return noted(top, a, other)
        elif isinstance(other, Tensor) and other._interp is not None and type(a) in number:
            return noted(other._interp, a, other)
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

    noted = noter(op, quick, FLOAT_NUMS, SIZE, False)

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
        return noted(top, a, b)

    bind.__name__ = op.name
    return bind
