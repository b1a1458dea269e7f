"""``autograd.Function``: PyTorch's way to write an op of one's own, here with all modes and vmap."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.dispatch import CUT, active_vmaps
from ..core.imperative import is_grad_enabled, no_grad
from ..core.op import is_float
from ..core.reverse import Leaf
from ..core.tensor import Tensor
from ..core.views import assign, pin
from ..core.walk import fit_cotangent, kept_by
from ..core.watch import WATCHERS, Packed, pack
from ..custom import CustomOp, _as_tuple


class Context:
    """What ``forward`` leaves for ``backward`` and ``jvp``: saved tensors and any attributes."""

    # What belongs to one rule that is running, and not to the call: see `during`.
    __slots__ = ("__dict__", "__weakref__", "_now", "_pushing", "needs_input_grad")

    def __init__(self, need: tuple[bool, ...], given: tuple[Any, ...]) -> None:
        self.needs_input_grad = need
        self._given = given  # by weak reference: a tape must not keep what the caller lets go
        self.materialize_grads = True
        self._saved: list[tuple[str, Any]] = []
        self._now: tuple[list[Any], list[Any]] | None = None
        self._to_save: tuple[Any, ...] = ()
        self._to_forward: tuple[Any, ...] | None = None
        self._for_forward: list[tuple[str, Any]] | None = None
        self._pushing = False  # whether jvp asks, to which what was saved for forward belongs
        self._dirty: tuple[Any, ...] = ()
        self._dirty_places: list[tuple[int, int]] = []
        self._non_differentiable: tuple[Any, ...] = ()

    def during(self, full: list[Any], ys: list[Any], need: tuple[bool, ...], pushing: bool) -> Context:
        """This context as a rule sees it that runs on these tensors: rules of several threads may share it, and one within another."""
        c: Context = Context.__new__(Context)
        c.__dict__ = self.__dict__
        c._now, c._pushing, c.needs_input_grad = (full, ys), pushing, need
        return c

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep these tensors; they come back as ``ctx.saved_tensors``."""
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep these tensors for ``jvp``, where they are ``ctx.saved_tensors``; without it, ``jvp`` sees those saved for backward."""
        self._to_forward = tensors

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
        if self._now is None and (self._saved or self._to_save):
            if self._to_save:
                return self._to_save  # forward itself asks
            node = self.__dict__.get("_node")
            n = None if node is None else node()
            if n is not None:
                got, y = kept_by(n)
                xs, ys = n.op._full(got), list(_as_tuple(y))
        pick = {"in": lambda k: _itself(self._given[k], xs[k]), "out": lambda k: ys[k], "const": _constant}
        saved = self._for_forward if self._pushing and self._for_forward is not None else self._saved
        return tuple(pick[where](k) for where, k in saved)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of ``saved_tensors``."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def _remember(self, args: list[Any], out: tuple[Any, ...]) -> None:
        """Remember saved tensors by their place among inputs and outputs, so that every level finds its own."""
        hooks = WATCHERS.get().hooks

        def place(t: Any) -> tuple[str, Any]:
            i = next((k for k, a in enumerate(args) if a is t), None)
            j = next((k for k, o in enumerate(out) if o is t), None)
            if j is not None and any(t is d for d in self._dirty):
                i = None  # what was written to is saved as the result that it is
            if i is None and j is None and hooks and isinstance(t, Tensor):
                t = pack(t, hooks[-1])
            if i is not None or j is not None:
                return ("in", i) if i is not None else ("out", j)
            return "const", pin(t) if isinstance(t, Tensor) else t  # as it is now, whatever is written to it later

        for t in (*self._to_save, *(self._to_forward or ())):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables (tensors or None), but argument is of type {type(t).__name__}"
                )
        self._saved = [place(t) for t in self._to_save]
        self._for_forward = None if self._to_forward is None else [place(t) for t in self._to_forward]
        self._to_save, self._to_forward = (), None


FunctionCtx = Context


def _constant(t: Any) -> Any:
    return t.unpack(t.data) if type(t) is Packed else t


def _apart(xs: Any) -> list[Any]:
    """The tensors, each an object of its own: what is one here may be two on the levels above, and saved tensors are known by their places."""
    out: list[Any] = []
    for x in xs:
        out.append(Tensor(x._value, x._interp, x._aux) if any(x is y for y in out) else x)
    return out


def _itself(ref: Any, seen: Any) -> Any:
    """The leaf that was handed in, if it still is what a level sees, or differs from that by a record that is off now."""
    given = None if ref is None else ref()
    if given is None or type(given._aux) is not Leaf:
        return seen
    i = given._interp
    off = i is not None and i.alive and i.level <= CUT.get()
    return given if _alike(given, seen) or (off and _alike(given._value, seen)) else seen


def _alike(x: Any, y: Any) -> bool:
    """Whether two tensors have one value and one history."""
    return x._value is y._value and x._interp is y._interp and x._aux is y._aux


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

    def __init__(self, *args: Any, **kw: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the class "
            f"itself: {type(self).__name__}.apply(...)",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kw: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static forward "
            "method: call its `apply`."
        )

    @staticmethod
    def forward(*args: Any, **kw: Any) -> Any:
        """``forward(ctx, *args)``, or ``forward(*args)`` with a ``setup_context``."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save on `ctx` what ``backward`` and ``jvp`` need, where ``forward`` takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The cotangents of the inputs from those of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        )

    vjp = backward  # another name for it

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs from those of the inputs."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The outputs for a batch of inputs, and the dims of their batch."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, derive its rule or override the vmap staticmethod."
        )

    @classmethod
    def _own(cls, name: str) -> bool:
        """Whether a subclass wrote this method."""
        return getattr(cls, name) is not getattr(Function, name)

    @classmethod
    def apply(cls, *args: Any, **kw: Any) -> Any:
        """Run the function and record its derivative. Keywords are brought to their places; defaults are filled in with a ``setup_context``."""
        if cls._own("setup_context"):
            args = _with_defaults(cls, args, kw, defaults=True)
        elif kw:
            args = _with_defaults(cls, (None, *args), kw, defaults=False)[1:]
        if cls._own("backward") and cls._own("vjp"):
            raise RuntimeError(
                f"{cls.__name__}: Implementing both 'backward' and 'vjp' for a custom Function is not allowed: they are two names of one method"
            )
        tensors = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx = Context(
            tuple(isinstance(a, Tensor) and a._interp is not None and is_float(a) for a in args),
            tuple(weakref.ref(a) if isinstance(a, Tensor) else None for a in args),
        )
        op = FunctionOp(cls, ctx, args, tensors)
        out = op.bind(*[args[i] for i in tensors])
        for k, i in ctx._dirty_places:
            assign(args[i], _as_tuple(out)[k], cls.__name__)
            out = args[i] if not isinstance(out, tuple) else tuple(args[i] if j == k else o for j, o in enumerate(out))
        for first in _as_tuple(out):
            if isinstance(first, Tensor) and first.grad_fn is not None:
                ctx.__dict__["_node"] = weakref.ref(first.grad_fn)
                break
        return op.whole(out)


class InplaceFunction(Function):
    """A Function that can be told to work in place; kept for old programs."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def once_differentiable(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a ``backward`` whose result is no function of its arguments that can be differentiated again: doing so raises."""

    @functools.wraps(f)
    def run(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            out = f(ctx, *grads)
        tracked = [g for g in (*grads, *ctx.saved_tensors) if isinstance(g, Tensor) and g._recorded]
        if not tracked or not is_grad_enabled():
            return out
        several = isinstance(out, tuple)
        places = [k for k, v in enumerate(_as_tuple(out)) if isinstance(v, Tensor)]
        values = [_as_tuple(out)[k].detach() for k in places]
        op = CustomOp("once_differentiable", lambda *xs: tuple(x.clone() for x in xs[: len(values)]))

        def refuse(*a: Any) -> Any:
            raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")

        op.vjp_rule, op.jvp_rule = refuse, refuse
        tied = op.bind(*values, *tracked)
        full = list(_as_tuple(out))
        for k, v in zip(places, tied, strict=True):
            full[k] = v
        return tuple(full) if several else full[0]

    return run


def _with_defaults(cls: type[Function], args: tuple[Any, ...], kw: dict[str, Any], defaults: bool) -> tuple[Any, ...]:
    """The arguments of forward by position: with all `defaults`, or with those alone that stand before one given by keyword."""
    signature = inspect.signature(cls.forward)
    try:
        bound = signature.bind(*args, **kw)
    except TypeError as e:
        unknown = [k for k in kw if k not in signature.parameters]
        words = (
            f"got an unexpected keyword argument {unknown[0]!r}"
            if unknown
            else str(e).replace("multiple values", "got multiple values")
        )
        raise TypeError(f"{cls.__name__}.forward() {words}") from None
    if defaults or bound.kwargs:
        bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"{cls.__name__}.forward must not have keyword-only parameters, it has {', '.join(bound.kwargs)}"
        )
    return bound.args


class FunctionOp(CustomOp):
    """One call of a Function as an op of its tensor arguments."""

    form = "function"
    none_is_zero = False

    def __init__(self, cls: type[Function], ctx: Context, args: tuple[Any, ...], tensors: list[int]) -> None:
        super().__init__(cls.__name__, cls.forward)
        self.cls, self.ctx, self.tensors = cls, ctx, tensors
        self.args = tuple([None if isinstance(a, Tensor) else a for a in args])
        self.others: dict[int, Any] = {}  # outputs that are no tensors, by their place
        self.spec = self._forward
        c = weakref.proxy(self)  # the rules are methods: no cycle through the op
        if cls._own("jvp"):
            self.jvp_rule = lambda t, y, *xs: c._jvp(t, y, list(xs))
            self.sparse_jvp = True
        if cls._own("backward") or cls._own("vjp"):
            self.vjp_rule = lambda g, y, *xs, need=None: c._vjp(g, y, list(xs), need)
            self.sparse_vjp = self.asks_need = True

    def packs(self) -> tuple[set[int], set[int]]:
        """The tensors that the user saved, by their places among the tensor inputs and the outputs."""
        saved = self.ctx._saved
        return {self.tensors.index(k) for w, k in saved if w == "in"}, {k for w, k in saved if w == "out"}

    def attribute(self, node: Any, name: str) -> Any:
        """What the node of this call shows: its context's saved tensors and attributes."""
        ctx = self.ctx
        if name == "saved_tensors":
            xs, y = kept_by(node)
            return ctx.during(self._full(xs), list(_as_tuple(y)), ctx.needs_input_grad, False).saved_tensors
        if name.startswith("_") or not hasattr(ctx, name):
            raise AttributeError(f"{node.name()!r} object has no attribute {name!r}")
        return getattr(ctx, name)

    def _full(self, xs: Any) -> list[Any]:
        full = list(self.args)
        for i, x in zip(self.tensors, xs, strict=True):
            full[i] = x
        return full

    def _forward(self, *xs: Any) -> Any:
        full, ctx, cls = self._full(_apart(xs)), self.ctx, self.cls
        with no_grad():
            if cls._own("setup_context"):
                y = cls.forward(*full)
                cls.setup_context(ctx, tuple(full), y)
            else:
                y = cls.forward(ctx, *full)
        self.others = {k: o for k, o in enumerate(_as_tuple(y)) if not isinstance(o, Tensor)}
        out = tuple(o for o in _as_tuple(y) if isinstance(o, Tensor))
        ctx._remember(full, out)
        self._mark(ctx, out)
        ctx._dirty_places = [
            (k, i) for k, o in enumerate(out) for i, a in enumerate(full) if o is a and any(o is d for d in ctx._dirty)
        ]
        fresh = tuple(Tensor(o._value, o._interp, o._aux) if any(o is a for a in full) else o for o in out)
        return fresh if isinstance(y, tuple | list) or not fresh else fresh[0]

    def whole(self, y: Any, fill: bool = True) -> Any:
        """The outputs of forward from its tensors, with those that are none (or None) in their places."""
        if not self.others:
            return y
        it = iter(_as_tuple(y))
        n = len(_as_tuple(y)) + len(self.others)
        full = tuple((self.others[k] if fill else None) if k in self.others else next(it) for k in range(n))
        return full if n > 1 else full[0]

    def _mark(self, ctx: Context, out: tuple[Any, ...]) -> None:
        self.integer_outputs = frozenset(k for k, o in enumerate(out) if any(o is m for m in ctx._non_differentiable))
        self.differentiable = len(self.integer_outputs) < len(out)

    def _context(self, xs: list[Any], y: Any, need: Any = None, pushing: bool = False) -> Context:
        """The context for a rule that runs on the tensors of one level: of its own where ``setup_context`` can make it."""
        ctx, full = self.ctx, self._full(xs)
        wanted = ctx.needs_input_grad
        if need is not None:
            asked = dict(zip(self.tensors, need, strict=True))
            wanted = tuple([asked.get(i, False) for i in range(len(self.args))])
        if self.cls._own("setup_context"):
            ctx = Context(wanted, ctx._given)
            with no_grad():
                self.cls.setup_context(ctx, tuple(full), self.whole(y))
            ctx._remember(full, _as_tuple(y))
        return ctx.during(full, list(_as_tuple(y)), wanted, pushing)

    def _zeros(self, vs: Any, like: Any) -> list[Any]:
        from ..core.shapes import zeros_like_tensor

        if not self.ctx.materialize_grads:
            return list(vs)
        return [
            zeros_like_tensor(o) if v is None and isinstance(o, Tensor) and is_float(o) else v
            for v, o in zip(vs, like, strict=True)
        ]

    def _jvp(self, t: Any, y: Any, xs: list[Any]) -> Any:
        full: list[Any] = [None] * len(self.args)
        for i, v in zip(self.tensors, self._zeros(t, xs), strict=True):
            full[i] = v
        out = self.cls.jvp(self._context(xs, y, pushing=True), *full)
        return tuple(t for k, t in enumerate(_as_tuple(out)) if k not in self.others) if self.others else out

    def _vjp(self, g: Any, y: Any, xs: list[Any], need: Any = None) -> Any:
        ctx = self._context(xs, y, need)
        gs = list(_as_tuple(self.whole(tuple(self._zeros(_as_tuple(g), _as_tuple(y))), fill=False)))
        rule = self.cls.backward if self.cls._own("backward") else self.cls.vjp
        out = _as_tuple(rule(ctx, gs) if getattr(self.cls, "boxed_grads_call", False) else rule(ctx, *gs))
        if len(out) < len(self.args):
            raise RuntimeError(
                f"function {self.name}Backward returned an incorrect number of gradients (expected {len(self.args)}, got {len(out)})"
            )
        for i, (v, a) in enumerate(zip(out, self.args, strict=False)):
            if v is not None and i not in self.tensors:
                raise RuntimeError(
                    f"function {self.name}Backward returned a gradient different than None at position {i}, but the corresponding forward input "
                    f"was not a Variable (a tensor) but {type(a).__name__}; return None"
                )
        return tuple(self._checked(i, out[i], x) for i, x in zip(self.tensors, xs, strict=True))

    def _checked(self, i: int, g: Any, x: Any) -> Any:
        """A gradient that `backward` returned, of the shape of its input; summed where the input would have been broadcast to it."""
        if g is None or not isinstance(x, Tensor):
            return g
        if not isinstance(g, Tensor):
            raise TypeError(
                f"function {self.name}Backward returned {type(g).__name__} as the gradient at index {i}: expected a Tensor or None"
            )
        if g.shape == x.shape:
            return g
        a, b = tuple(x.shape), tuple(g.shape)
        fits = len(a) <= len(b) and all(m in (1, n) for m, n in zip(reversed(a), reversed(b), strict=False))
        if not fits:
            raise RuntimeError(
                f"Function {self.name}Backward returned an invalid gradient at index {i} - got {list(b)} but expected shape compatible with {list(a)}"
            )
        return fit_cotangent(g, a, g.dtype)

    def batched(self, size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
        if not self.cls._own("vmap"):
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
        both = self.cls.vmap(VmapInfo(size, active_vmaps()[-1].randomness), tuple(dims), *full)
        if not (isinstance(both, tuple) and len(both) == 2):
            raise RuntimeError(
                f"{self.name}.vmap: Expected the vmap staticmethod to have two returns, an output and out_dims (of the output's structure), "
                f"got {f'{len(both)} of them' if isinstance(both, tuple) else type(both).__name__}"
            )
        out, odims = both
        outs = _as_tuple(out)
        ds = odims if isinstance(odims, tuple | list) else (odims,) * len(outs)
        if isinstance(odims, tuple | list) and (len(ds) != len(outs) or not isinstance(out, tuple | list)):
            raise RuntimeError(
                f"{self.name}.vmap returned an incompatible (output, out_dims) tuple: {len(outs)} outputs "
                f"({type(out).__name__}) and out_dims={odims!r}"
            )
        moved = tuple(
            o.expand(size, *o.shape) if d is None else o.movedim(d, 0) if d else o
            for o, d in zip(outs, ds, strict=True)
        )
        y = moved if isinstance(out, tuple | list) else moved[0]
        self._mark(self._context(args, y), moved)
        return y
