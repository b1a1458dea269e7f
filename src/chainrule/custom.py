"""Custom ops: a forward, and *either* a forward rule *or* a reverse rule *or* neither; the rest is derived and batched.

>>> @custom_op
... def log1pexp(x):
...     return (1 + x.exp()).log()
>>> @log1pexp.vjp
... def _(g, y, x):
...     return g * x.sigmoid()
>>> chainrule.func.jvp(log1pexp, (chainrule.tensor(100.0, dtype=chainrule.float64),), (chainrule.tensor(1.0, dtype=chainrule.float64),))[1]
tensor(1., dtype=chainrule.float64)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .core import dtypes as dt
from .core.batching import Batching
from .core.derive import jvp_through, vjp_through
from .core.op import Op
from .core.tensor import Tensor

__all__ = ["CustomOp", "custom_op"]


class CustomOp(Op):
    """An op whose body is a function of tensors. Rules are optional; batching maps body and rules alike."""

    form = "custom"

    def __init__(self, name: str, body: Callable[..., Any]) -> None:
        # Not in the table of ops: custom ops come and go.
        self.name = self.__name__ = name
        self.impl = self.body = body
        self.impls = {}
        self.view, self.differentiable, self.integer_outputs = False, True, frozenset()
        self.jvp_rule = self.vjp_rule = None
        self.sparse_jvp = self.sparse_vjp = False
        self._keeps = {}
        self.__doc__ = body.__doc__
        functools.update_wrapper(self, body, updated=())

    def __call__(self, *args: Any, **kw: Any) -> Any:
        """Run the op; tensors positional, everything else by keyword or as plain positional data."""
        tensors = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        if len(tensors) == len(args):
            return self.bind(*args, **kw)
        return self.with_constants(args, tensors).bind(*[args[i] for i in tensors], **kw)

    def with_constants(self, args: tuple[Any, ...], tensors: list[int]) -> CustomOp:
        """The op with the arguments that are no tensors filled in."""

        def fill(xs: Any) -> list[Any]:
            full = list(args)
            for i, x in zip(tensors, xs, strict=True):
                full[i] = x
            return full

        o = CustomOp(self.name, lambda *xs, **kw: self.body(*fill(xs), **kw))
        jvp, vjp = self.jvp_rule, self.vjp_rule
        if jvp is not None:
            o.jvp_rule = lambda t, y, *xs, **kw: jvp(fill_none(t, tensors, len(args)), y, *fill(xs), **kw)
        if vjp is not None:
            o.vjp_rule = lambda g, y, *xs, **kw: tuple(_as_tuple(vjp(g, y, *fill(xs), **kw))[i] for i in tensors)
        return o

    def concrete(self, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        y = self.body(*args, **kw)
        return tuple(y) if isinstance(y, tuple | list) else y

    def push(self, ts: list[Any], y: Any, xs: list[Any], kw: dict[str, Any]) -> Any:
        if self.jvp_rule is None and self.vjp_rule is None:
            return jvp_through(self.body, ts, xs, kw)
        return Op.push(self, ts, y, xs, kw)

    def pull(self, g: Any, y: Any, xs: list[Any], kw: dict[str, Any], need: list[bool]) -> list[Any]:
        if self.jvp_rule is None and self.vjp_rule is None:
            return vjp_through(self.body, g, xs, kw, need)
        return Op.pull(self, g, y, xs, kw, need)

    def keeps(self, need: tuple[bool, ...]) -> tuple[bool, tuple[bool, ...] | None]:
        return True, None

    def batched(self, size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
        return self.mapped(size, flags).bind(*args, **kw)

    def mapped(self, size: int, flags: list[bool]) -> CustomOp:
        """The op for a batch: body and rules mapped, cotangents of arguments without a batch summed over it."""
        o = CustomOp(self.name, lambda *xs, **kw: _map(size, self.body, list(xs), flags, kw))
        jvp, vjp = self.jvp_rule, self.vjp_rule
        if jvp is not None:

            def mapped_jvp(t: Any, y: Any, *xs: Any, **kw: Any) -> Any:
                ys, n = list(_as_tuple(y)), len(xs)

                def rule(*a: Any, **k: Any) -> Any:
                    yy = tuple(a[n : n + len(ys)]) if isinstance(y, tuple) else a[n]
                    return jvp(list(a[n + len(ys) :]), yy, *a[:n], **k)

                return _map(size, rule, [*xs, *ys, *t], [*flags, *[True] * len(ys), *flags], kw)

            o.jvp_rule = mapped_jvp
        if vjp is not None:

            def mapped_vjp(g: Any, y: Any, *xs: Any, **kw: Any) -> Any:
                ys, gs, n = list(_as_tuple(y)), list(_as_tuple(g)), len(xs)
                m = n + len(ys)
                present: list[int] = []

                def rule(*a: Any, **k: Any) -> Any:
                    yy = tuple(a[n:m]) if isinstance(y, tuple) else a[n]
                    gg = list(a[m:]) if isinstance(y, tuple) else a[m]
                    r = [
                        v() if callable(v) and not isinstance(v, Tensor) else v
                        for v in _as_tuple(vjp(gg, yy, *a[:n], **k))
                    ]
                    present[:] = [i for i, v in enumerate(r) if v is not None]
                    return tuple(r[i] for i in present)

                out = _map(size, rule, [*xs, *ys, *gs], [*flags, *[True] * len(ys), *[True] * len(gs)], kw)
                full: list[Any] = [None] * n
                for i, v in zip(present, out, strict=True):
                    full[i] = v if flags[i] else v.sum(0)
                return tuple(full)

            o.vjp_rule = mapped_vjp
        return o

    def check(self, *args: Any, seed: int = 0, **kw: Any) -> None:
        """Run the laws on the op at these arguments: derivatives of both orders in all modes, and vmap."""
        from .testing.laws import Case, check

        free = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.dtype.category >= dt.FLOAT]

        def f(*xs: Any) -> Any:
            full = list(args)
            for i, x in zip(free, xs, strict=True):
                full[i] = x
            return self(*full, **kw)

        check(
            Case(
                self.name,
                f,
                [
                    args[i].to(dt.complex128 if args[i].dtype.category == dt.COMPLEX else dt.float64).numpy()
                    for i in free
                ],
            ),
            seed,
        )


def fill_none(t: Any, where: list[int], n: int) -> list[Any]:
    """A list of length n with `t` at the given places and None elsewhere."""
    full: list[Any] = [None] * n
    for i, v in zip(where, t, strict=True):
        full[i] = v
    return full


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def _map(size: int, f: Callable[..., Any], xs: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
    """``vmap(f)`` with the batch axes in front; results get one even where they do not depend on the batch."""
    with Batching(size, "different") as level:
        y = f(*[Tensor(x, level) if b and isinstance(x, Tensor) else x for x, b in zip(xs, flags, strict=True)], **kw)
        ys = [level.settle(v) for v in _as_tuple(y)]
        out = [v._value if v._interp is level else v.expand(size, *v.shape) for v in ys]
    return tuple(out) if isinstance(y, tuple | list) else out[0]


def custom_op(f: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Make a function of tensors an op with its own derivative rule.

    ``@op.jvp`` declares ``rule(t, y, *xs)`` (t: a list with a tangent for each input), ``@op.vjp`` declares
    ``rule(g, y, *xs)`` (one cotangent for each input). One of them is enough, the other is its transpose; with neither the
    derivative goes through the body. ``op.check(*args)`` runs the laws.
    """
    if f is None:
        return lambda g: custom_op(g, name=name)
    return CustomOp(name or f.__name__, f)
