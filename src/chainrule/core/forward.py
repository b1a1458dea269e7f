"""Forward mode: dual numbers. A tensor of this level is a primal and a tangent, both one level down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import dtypes as dt
from .dispatch import CUT, Interpreter, constant
from .tensor import Tensor
from .views import pin

if TYPE_CHECKING:
    from .op import Op


class Forward(Interpreter):
    """The interpreter of ``jvp``: ``y = f(x)``, ``ty = Df(x) tx``; a missing tangent is zero."""

    kind = "jvp"

    def run(self, op: Op, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        if not self.alive:
            self.check(op.name)
        xs, ts, live = [], [], False
        for a in args:
            if isinstance(a, Tensor) and a._interp is self:
                xs.append(pin(a._value, True) if op.writes else a._value)
                t = a._aux
                ts.append(t)
                live = live or t is not None
            else:
                xs.append(a)
                ts.append(None)
        y = op.bind(*xs, **kw)
        if not live or not op.differentiable or (self.muted and self.is_muted()):
            return y
        t = op.push(ts, y, xs, kw)
        if type(y) is not tuple:
            return y if t is None else Tensor(y, self, fit_tangent(t, y) if CUT.get() < 0 else _made(t, y))
        if t is None:
            return y
        return tuple(
            v if i in op.integer_outputs or ti is None else Tensor(v, self, _made(ti, v))
            for i, (v, ti) in enumerate(zip(y, t, strict=True))
        )

    def run_unary(self, op: Op, x: Tensor) -> Any:
        if not self.alive:
            self.check(op.name)
        v, t = x._value, x._aux
        y = op.bind(v)
        if t is None or not op.differentiable or (self.muted and self.is_muted()):
            return y
        rule = op.rules[0]
        if not callable(rule):
            return y
        t = rule(t, y, v)
        return y if t is None else Tensor(y, self, fit_tangent(t, y) if CUT.get() < 0 else _made(t, y))

    def run_binary(self, op: Op, a: Any, b: Any) -> Any:
        if not self.alive:
            self.check(op.name)
        if not op.rules:
            return self.run(op, (a, b), {})
        va, ta, vb, tb = a, None, b, None
        if isinstance(a, Tensor) and a._interp is self:
            va, ta = a._value, a._aux
        if isinstance(b, Tensor) and b._interp is self:
            vb, tb = b._value, b._aux
        y = op.bind(va, vb)
        if not op.differentiable or (self.muted and self.is_muted()):
            return y
        t = None
        if ta is not None and callable(op.rules[0]):
            t = op.rules[0](ta, y, va, vb)
        if tb is not None and callable(op.rules[1]):
            u = op.rules[1](tb, y, va, vb)
            t = u if t is None else t if u is None else t + u
        return y if t is None else Tensor(y, self, fit_tangent(t, y) if CUT.get() < 0 else _made(t, y))

    def lift(self, x: Tensor, t: Tensor | None) -> Tensor:
        """The dual number ``x + t eps``."""
        return Tensor(x, self, t)


def _made(t: Tensor, y: Tensor) -> Tensor:
    """The tangent of a result where ``no_grad`` holds: its op's rule may have handed on the one that it was given."""
    return constant(fit_tangent(t, y))


def fit_tangent(t: Tensor, y: Tensor) -> Tensor:
    """A tangent with the shape and type of `y`."""
    if t._interp is None and y._interp is None:
        tv, yv = t._value, y._value
        if tv.shape == yv.shape and tv.dtype is yv.dtype:
            return t
    d = y.dtype
    if t.dtype is not d:
        t = t.to(d) if d.category == dt.COMPLEX or t.dtype.category != dt.COMPLEX else t.real.to(d)
    if t.shape != y.shape:
        t = t.expand(*y.shape)
    return t
