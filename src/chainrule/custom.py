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
import inspect
from collections.abc import Callable
from typing import Any

from .core import dtypes as dt
from .core.batching import map_over
from .core.errors import ChainruleError
from .core.op import Op
from .core.reverse import Leaf, _count
from .core.tensor import Tensor
from .core.tree import flatten, unflatten
from .core.views import meta, share_memory
from .core.walk import reachable

__all__ = ["CustomOp", "custom_op"]


_WORDS = {"reverse": "reverse mode (requires_grad, or grad)", "jvp": "forward mode", "vmap": "vmap"}


def _is_top(spec: Any, i: int) -> bool:
    """Whether leaf `i` of ``(args, kw)`` is a positional argument itself."""
    for s in spec.children[0].children:
        if i < s.leaves:
            return s.kind is None
        i -= s.leaves
    return False


def _own(t: Any) -> Any:
    """Another tensor with the value of `t`, for a user's rule: what the rule writes to it nobody else sees."""
    if type(t) is not Tensor:
        return t
    if type(t._aux) is Leaf:
        return t.clone()  # a leaf is not to be written to
    own = Tensor(t._value, t._interp, t._aux)
    if own._interp is None:
        meta(own).pinned = True
    return own


def _apart(y: Any, args: Any) -> Any:
    """A result that shows an argument's memory is no view of it, at no level: a write to it goes to a copy."""
    if type(y) is Tensor and y._interp is None and any(isinstance(a, Tensor) and share_memory(y, a) for a in args):
        y = Tensor(y._value)
        meta(y).pinned = True
    return y


def _owned(v: Any) -> Any:
    return type(v)([_own(x) for x in v]) if type(v) in (tuple, list) else _own(v)


class CustomOp(Op):
    """An op whose body is a function of tensors. Rules are optional; batching maps body and rules alike."""

    form = "custom"
    writes = True

    def __init__(self, name: str, body: Callable[..., Any]) -> None:
        # Not in the table of ops: custom ops come and go.
        super().__init__(name, None, spec=body, listed=False)
        functools.update_wrapper(self, body, updated=())

    def __call__(self, *args: Any, **kw: Any) -> Any:
        """Run the op. Tensors may stand anywhere among the arguments: by position, by keyword, inside lists and dicts."""
        if not kw and all(type(a) is Tensor for a in args):
            return self.bind(*args)
        if kw and (self.jvp_rule is not None or self.vjp_rule is not None):
            args, kw = self._by_position(args, kw)
        leaves, spec = flatten((args, kw))
        places = [i for i, a in enumerate(leaves) if isinstance(a, Tensor)]
        return self.with_constants(leaves, spec, places).bind(*[leaves[i] for i in places])

    def _by_position(self, args: tuple[Any, ...], kw: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Tensors that were passed by keyword moved to their position, where rules look for them."""
        kw = dict(kw)
        for p in list(inspect.signature(self.spec).parameters.values())[len(args) :]:
            if p.kind is not p.POSITIONAL_OR_KEYWORD or not isinstance(kw.get(p.name), Tensor):
                break
            args = (*args, kw.pop(p.name))
        return args, kw

    def with_constants(self, leaves: list[Any], spec: Any, places: list[int]) -> CustomOp:
        """The op as a function of its tensors alone, the other arguments filled in."""

        def fill(xs: Any, blank: Any = None) -> tuple[Any, dict[str, Any]]:
            full = list(leaves) if blank is None else [None] * len(leaves)
            for i, x in zip(places, xs, strict=True):
                full[i] = x
            return unflatten(full, spec)

        def body(*xs: Any) -> Any:
            args, kw = fill(xs)
            return self.spec(*args, **kw)

        o = type(self).__new__(type(self))
        CustomOp.__init__(o, self.name, body)
        o.sparse_jvp, o.sparse_vjp = self.sparse_jvp, self.sparse_vjp
        jvp, vjp = self.jvp_rule, self.vjp_rule
        if (jvp is not None or vjp is not None) and any(not _is_top(spec, i) for i in places):
            raise TypeError(
                f"{self.name}: a rule speaks of positional arguments, but a tensor was passed by keyword or inside a container. "
                f"Pass every tensor as a positional argument of its own."
            )
        if jvp is not None:

            def push(t: Any, y: Any, *xs: Any) -> Any:
                args, kw = fill(xs)
                return jvp(list(fill(t, blank=True)[0]), y, *args, **kw)

            o.jvp_rule = push
        if vjp is not None:

            def pull(g: Any, y: Any, *xs: Any) -> Any:
                args, kw = fill(xs)
                out = _as_tuple(vjp(g, y, *args, **kw))
                if len(out) < len(places):
                    raise RuntimeError(
                        f"{self.name}: the reverse rule gave {len(out)} cotangents for {len(places)} tensors"
                    )
                # One for each argument, or for each tensor among them.
                return tuple(out[i] for i in places) if len(out) >= len(args) else out

            o.vjp_rule = pull
        return o

    def run(self, args: Any, kw: dict[str, Any]) -> Any:
        start = _count()
        y = self.spec(*args, **kw)
        out = tuple([_apart(self._settled(v, start), args) for v in _as_tuple(y)])
        return out if isinstance(y, tuple | list) else out[0]

    def _settled(self, y: Any, start: int) -> Any:
        """A result of the body, which must be made of the arguments: what else is tracked would lose its derivative."""
        while isinstance(y, Tensor) and y._interp is not None:
            i = y._interp
            own = i.kind == "reverse" and all(type(n) is not Leaf or n.seq > start for n in reachable([y._aux]))
            if not own:
                raise ChainruleError(
                    f"{self.name}: the body uses a tensor that is tracked by {_WORDS.get(i.kind, i.kind)} and is not among the arguments of "
                    f"the call. Its derivative would be lost: pass the tensor as an argument."
                )
            y = y._value
        return y

    def push(self, ts: list[Any], y: Any, xs: list[Any], kw: dict[str, Any]) -> Any:
        out = super().push(_owned(ts), _owned(y), _owned(xs), kw)
        for t, v in zip(_as_tuple(out), _as_tuple(y), strict=False):
            self._fits("forward rule gave a tangent", t, "a result", v)
        return out

    def pull(self, g: Any, y: Any, xs: list[Any], kw: dict[str, Any], need: list[bool]) -> list[Any]:
        out = super().pull(tuple(_owned(g)) if type(g) is list else _owned(g), _owned(y), _owned(xs), kw, need)
        for i, (v, x) in enumerate(zip(out, xs, strict=False)):
            self._fits("reverse rule gave a cotangent", v, f"argument {i}", x, summed=True)
        return out

    def _fits(self, what: str, v: Any, whose: str, x: Any, summed: bool = False) -> None:
        """What a user's rule gave has the shape of what it belongs to; a cotangent may have more axes, over which it is summed."""
        if not isinstance(v, Tensor) or not isinstance(x, Tensor) or v.shape == x.shape:
            return
        a, b = x.shape, v.shape
        if summed and len(a) <= len(b) and all(m in (1, n) for m, n in zip(reversed(a), reversed(b), strict=False)):
            return
        raise RuntimeError(f"{self.name}: the {what} of shape {list(b)} for {whose} of shape {list(a)}")

    def keeps(self, need: tuple[bool, ...]) -> tuple[bool, tuple[bool, ...] | None]:
        return True, None

    def batched(self, size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
        return self.mapped(size, flags).bind(*args, **kw)

    def mapped(self, size: int, flags: list[bool]) -> CustomOp:
        """The op for a batch: body and rules mapped, cotangents of arguments without a batch summed over it."""
        o = CustomOp(self.name, lambda *xs, **kw: map_over(size, self.spec, list(xs), flags, kw))
        jvp, vjp = self.jvp_rule, self.vjp_rule
        if jvp is not None:

            def mapped_jvp(t: Any, y: Any, *xs: Any, **kw: Any) -> Any:
                ys, n = list(_as_tuple(y)), len(xs)

                def rule(*a: Any, **k: Any) -> Any:
                    yy = tuple(a[n : n + len(ys)]) if isinstance(y, tuple) else a[n]
                    return jvp(list(a[n + len(ys) :]), yy, *a[:n], **k)

                return map_over(size, rule, [*xs, *ys, *t], [*flags, *[True] * len(ys), *flags], kw)

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

                out = map_over(size, rule, [*xs, *ys, *gs], [*flags, *[True] * len(ys), *[True] * len(gs)], kw)
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


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def custom_op(f: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Make a function of tensors an op with its own derivative rule.

    ``@op.jvp`` declares ``rule(t, y, *xs)`` (t: a list with a tangent for each input), ``@op.vjp`` declares
    ``rule(g, y, *xs)`` (one cotangent for each input). One of them is enough, the other is its transpose; with neither the
    derivative goes through the body. ``op.check(*args)`` runs the laws.
    """
    if f is None:
        return lambda g: custom_op(g, name=name)
    return CustomOp(name or f.__name__, f)


def __dir__() -> list[str]:
    return __all__
