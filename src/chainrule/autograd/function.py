"""``autograd.Function``: PyTorch's way to write an op of one's own, here with all modes and vmap."""

from __future__ import annotations

import inspect
import weakref
from typing import Any, NamedTuple

from ..core.dispatch import CUT, active_vmaps
from ..core.imperative import no_grad
from ..core.op import is_float
from ..core.tensor import Tensor
from ..core.views import assign
from ..custom import CustomOp, _as_tuple


class Context:
    """What ``forward`` leaves for ``backward`` and ``jvp``: saved tensors and any attributes."""

    def __init__(self, need: tuple[bool, ...], given: tuple[Any, ...]) -> None:
        self.needs_input_grad = need
        self._given = given  # by weak reference: a tape must not keep what the caller lets go
        self.materialize_grads = True
        self._saved: list[tuple[str, Any]] = []
        self._now: tuple[list[Any], list[Any]] | None = None
        self._to_save: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._dirty_places: list[tuple[int, int]] = []
        self._non_differentiable: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep these tensors; they come back as ``ctx.saved_tensors``."""
        self._to_save = tensors

    save_for_forward = save_for_backward

    def mark_dirty(self, *tensors: Any) -> None:
        """Say that forward wrote to these inputs."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say that these outputs have no derivative."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing cotangents arrive as zeros (the default) or as None."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors, as the level that asks sees them; an input that the level sees as it was handed in, itself."""
        xs, ys = self._now or ([], [])
        pick = {"in": lambda k: _itself(self._given[k], xs[k]), "out": lambda k: ys[k], "const": lambda k: k}
        return tuple(pick[where](k) for where, k in self._saved)

    def _remember(self, args: list[Any], out: tuple[Any, ...]) -> None:
        """Remember saved tensors by their place among inputs and outputs, so that every level finds its own."""
        self._saved = []
        for t in self._to_save:
            i = next((k for k, a in enumerate(args) if a is t), None)
            j = next((k for k, o in enumerate(out) if o is t), None)
            self._saved.append(("in", i) if i is not None else ("out", j) if j is not None else ("const", t))
        self._to_save = ()


def _itself(ref: Any, seen: Any) -> Any:
    """The tensor that was handed in, if it still is what a level sees, or differs from that by a record that is off now."""
    given = None if ref is None else ref()
    if given is None or seen is given:
        return seen
    same = given._value is seen._value and given._interp is seen._interp and given._aux is seen._aux
    i = given._interp
    off = i is not None and given._value is seen and i.kind == "reverse" and i.alive and i.level <= CUT.get()
    return given if same or off else seen


class VmapInfo(NamedTuple):
    """What a ``vmap`` staticmethod is told of the batch."""

    batch_size: int
    randomness: str


class Function:
    """Subclass with static methods ``forward`` (and ``setup_context``), ``backward`` and/or ``jvp``; call ``apply``.

    Whichever of ``backward`` and ``jvp`` is missing is derived from the other. The batching rule is derived too, unless there is a
    static method ``vmap(info, in_dims, *args) -> output, out_dims``.
    """

    generate_vmap_rule = False

    @staticmethod
    def forward(*args: Any, **kw: Any) -> Any:
        """``forward(ctx, *args)``, or ``forward(*args)`` with a ``setup_context``."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @classmethod
    def apply(cls, *args: Any, **kw: Any) -> Any:
        """Run the function and record its derivative. Keywords and defaults are for functions with a ``setup_context``."""
        if hasattr(cls, "setup_context"):
            args = _with_defaults(cls, args, kw)
        elif kw:
            raise TypeError(
                f"{cls.__name__}.apply() takes no keyword arguments without a setup_context, got {', '.join(kw)}"
            )
        tensors = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx = Context(
            tuple(isinstance(a, Tensor) and a._interp is not None and is_float(a) for a in args),
            tuple(weakref.ref(a) if isinstance(a, Tensor) else None for a in args),
        )
        out = FunctionOp(cls, ctx, args, tensors).bind(*[args[i] for i in tensors])
        for k, i in ctx._dirty_places:
            assign(args[i], _as_tuple(out)[k], cls.__name__)
            out = args[i] if not isinstance(out, tuple) else tuple(args[i] if j == k else o for j, o in enumerate(out))
        return out


def _with_defaults(cls: type[Function], args: tuple[Any, ...], kw: dict[str, Any]) -> tuple[Any, ...]:
    bound = inspect.signature(cls.forward).bind(*args, **kw)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"{cls.__name__}.forward must not have keyword-only parameters, it has {', '.join(bound.kwargs)}"
        )
    return bound.args


class FunctionOp(CustomOp):
    """One call of a Function as an op of its tensor arguments."""

    none_is_zero = False

    def __init__(self, cls: type[Function], ctx: Context, args: tuple[Any, ...], tensors: list[int]) -> None:
        super().__init__(cls.__name__, cls.forward)
        self.cls, self.ctx, self.tensors = cls, ctx, tensors
        self.args = tuple([None if isinstance(a, Tensor) else a for a in args])
        self.spec = self._forward
        c = weakref.proxy(self)  # the rules are methods: no cycle through the op
        if hasattr(cls, "jvp"):
            self.jvp_rule = lambda t, y, *xs: c._jvp(t, y, list(xs))
            self.sparse_jvp = True
        if hasattr(cls, "backward"):
            self.vjp_rule = lambda g, y, *xs: c._vjp(g, y, list(xs))
            self.sparse_vjp = True

    def _full(self, xs: Any) -> list[Any]:
        full = list(self.args)
        for i, x in zip(self.tensors, xs, strict=True):
            full[i] = x
        return full

    def _forward(self, *xs: Any) -> Any:
        full, ctx, cls = self._full(xs), self.ctx, self.cls
        with no_grad():
            if hasattr(cls, "setup_context"):
                y = cls.forward(*full)
                cls.setup_context(ctx, tuple(full), y)
            else:
                y = cls.forward(ctx, *full)
        out = _as_tuple(y)
        ctx._remember(full, out)
        self._mark(ctx, out)
        ctx._dirty_places = [
            (k, i) for k, o in enumerate(out) for i, a in enumerate(full) if o is a and any(o is d for d in ctx._dirty)
        ]
        fresh = tuple(Tensor(o._value, o._interp, o._aux) if any(o is a for a in full) else o for o in out)
        return fresh if isinstance(y, tuple | list) else fresh[0]

    def _mark(self, ctx: Context, out: tuple[Any, ...]) -> None:
        self.integer_outputs = frozenset(k for k, o in enumerate(out) if any(o is m for m in ctx._non_differentiable))
        self.differentiable = len(self.integer_outputs) < len(out)

    def _context(self, xs: list[Any], y: Any) -> Context:
        """The context for a rule that runs on the tensors of one level: of its own where ``setup_context`` can make it."""
        ctx, full = self.ctx, self._full(xs)
        if hasattr(self.cls, "setup_context"):
            ctx = Context(ctx.needs_input_grad, ctx._given)
            with no_grad():
                self.cls.setup_context(ctx, tuple(full), y)
            ctx._remember(full, _as_tuple(y))
        ctx._now = (full, list(_as_tuple(y)))
        return ctx

    def pull(self, g: Any, y: Any, xs: list[Any], kw: dict[str, Any], need: list[bool]) -> list[Any]:
        wanted = [False] * len(self.args)
        for i, n in zip(self.tensors, need, strict=True):
            wanted[i] = n
        before, self.ctx.needs_input_grad = self.ctx.needs_input_grad, tuple(wanted)
        try:
            return super().pull(g, y, xs, kw, need)
        finally:
            self.ctx.needs_input_grad = before

    def _zeros(self, vs: Any, like: Any) -> list[Any]:
        from ..core.shapes import zeros_like_tensor

        if not self.ctx.materialize_grads:
            return list(vs)
        return [
            zeros_like_tensor(o) if v is None and isinstance(o, Tensor) else v for v, o in zip(vs, like, strict=True)
        ]

    def _jvp(self, t: Any, y: Any, xs: list[Any]) -> Any:
        ctx = self._context(xs, y)
        full: list[Any] = [None] * len(self.args)
        for i, v in zip(self.tensors, self._zeros(t, xs), strict=True):
            full[i] = v
        try:
            return self.cls.jvp(ctx, *full)  # type: ignore[attr-defined]
        finally:
            ctx._now = None

    def _vjp(self, g: Any, y: Any, xs: list[Any]) -> Any:
        ctx = self._context(xs, y)
        gs = self._zeros(_as_tuple(g), _as_tuple(y))
        try:
            out = _as_tuple(self.cls.backward(ctx, *gs))  # type: ignore[attr-defined]
        finally:
            ctx._now = None
        if len(out) < len(self.args):
            raise RuntimeError(
                f"function {self.name}.backward returned an incorrect number of gradients (expected {len(self.args)}, got {len(out)})"
            )
        for i, (v, a) in enumerate(zip(out, self.args, strict=False)):
            if v is not None and i not in self.tensors:
                raise RuntimeError(
                    f"function {self.name}.backward returned a gradient for argument {i}, which is no tensor but {type(a).__name__}; return None"
                )
        return tuple(out[i] for i in self.tensors)

    def batched(self, size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
        if not hasattr(self.cls, "vmap"):
            o = self.mapped(size, flags)
            o.sparse_jvp = o.sparse_vjp = False
            return o.bind(*args)
        if self.cls.generate_vmap_rule:
            raise RuntimeError(
                f"function {self.name} has both generate_vmap_rule=True and a vmap staticmethod: keep one of them"
            )
        full = self._full(args)
        dims: list[Any] = [None] * len(full)
        for i, f in zip(self.tensors, flags, strict=True):
            dims[i] = 0 if f else None
        out, odims = self.cls.vmap(VmapInfo(size, active_vmaps()[-1].randomness), tuple(dims), *full)
        outs = _as_tuple(out)
        ds = odims if isinstance(odims, tuple | list) else (odims,) * len(outs)
        moved = tuple(
            o.expand(size, *o.shape) if d is None else o.movedim(d, 0) if d else o
            for o, d in zip(outs, ds, strict=True)
        )
        y = moved if isinstance(out, tuple | list) else moved[0]
        self._mark(self._context(args, y), moved)
        return y
