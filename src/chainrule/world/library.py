"""``library``: operators of a namespace, found again as ``torch.ops.ns.name``. With a rule they are differentiable in every mode, as
``autograd.Function`` is, on which they stand; without one they say at backward what is missing."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from .. import custom
from ..autograd.function import Function
from ..core.imperative import no_grad
from ..core.tensor import Tensor
from ..core.tree import flatten, unflatten
from .dispatcher import CUSTOM

_HERE = ("cpu", "CPU", "default", "CompositeImplicitAutograd", "CompositeExplicitAutograd")


class CustomOpDef:
    """An operator by name: its function, and what was registered for it."""

    def __init__(self, name: str, fn: Callable[..., Any] | None, mutates_args: Any = ()) -> None:
        if "::" not in name:
            raise ValueError(
                f"custom_op({name!r}): expected the name to have a namespace, as in 'mylib::{name}', by which torch.ops finds it"
            )
        self._name, self._qualname, self._init_fn = name.partition("::")[2], name, fn
        self._fn, self._mutates = fn, mutates_args
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self._fake: Callable[..., Any] | None = None
        self._vmap: Callable[..., Any] | None = None
        self._enabled: Callable[..., Any] | None = fn
        if fn is not None:
            functools.update_wrapper(self, fn, updated=())
        CUSTOM[name] = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """The function for a device; that for the CPU, or for all, is the one that runs."""
        kinds = (device_types,) if isinstance(device_types, str) or device_types is None else tuple(device_types)

        def take(f: Callable[..., Any]) -> Callable[..., Any]:
            if None in kinds or "cpu" in kinds or self._fn is None:
                self._fn = f
            return f

        return take if fn is None else take(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """The function for tensors without memory, on the meta device."""
        self._fake = fn
        return fn

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
        """``backward(ctx, *grads)``, and ``setup_context(ctx, inputs, output)`` that keeps what it reads."""
        if self._mutated():
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self._qualname}: it mutates {self._mutates!r}. "
                f"Write an operator that returns new tensors."
            )
        self._backward, self._setup = backward, setup_context

    def register_vmap(self, fn: Callable[..., Any] | None = None, /) -> Any:
        """``fn(info, in_dims, *args)``, which gives the batched result and its dims."""
        if fn is None:
            return self.register_vmap
        self._vmap = fn
        return fn

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """For the time of the block, run the kernel registered for a device, or else the function itself."""
        now = self._fn
        if not enabled:
            self._fn = self._init_fn
        try:
            yield
        finally:
            self._fn = now

    def _mutated(self) -> bool:
        return self._mutates == "unknown" or len(self._mutates) > 0

    def __call__(self, *args: Any, **kw: Any) -> Any:
        fn = self._fn
        if fn is None:
            raise NotImplementedError(f"{self._qualname}: no function was given for the CPU; write library.impl(...)")
        leaves, spec = flatten((args, kw))
        tensors = [v for v in leaves if isinstance(v, Tensor)]
        if self._fake is not None and any(t.is_meta for t in tensors):
            return self._fake(*args, **kw)
        if self._mutated() or not tensors:
            with no_grad():  # what writes to its arguments has no derivative
                return fn(*args, **kw)
        return _function(self, fn, spec).apply(*leaves)


def _function(op: CustomOpDef, fn: Callable[..., Any], spec: Any) -> Any:
    """The operator as an ``autograd.Function`` of the leaves of its arguments."""

    class Call(Function):
        @staticmethod
        def forward(*leaves: Any) -> Any:
            args, kw = unflatten(list(leaves), spec)
            return fn(*args, **kw)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            if op._setup is None:
                return
            args, kw = unflatten(list(inputs), spec)
            given = inspect.signature(fn).bind(*args, **kw)
            given.apply_defaults()
            if given.kwargs:
                op._setup(ctx=ctx, inputs=given.args, keyword_only_inputs=given.kwargs, output=output)
            else:
                op._setup(ctx, given.args, output)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if op._backward is None:
                raise RuntimeError(
                    f"Trying to backward through {op._qualname.replace('::', '.')}.default but no autograd formula was registered. "
                    f"Write torch.library.register_autograd({op._qualname!r}, backward, setup_context=...)."
                )
            got = op._backward(ctx, *grads)
            # One for each argument, of its structure; those of keywords have none.
            places = spec.children[0].children
            got = got if isinstance(got, tuple) else (got,)
            out: list[Any] = []
            for place, g in zip(places, got, strict=False):
                if place.kind is None:
                    out.append(g)
                else:
                    out.extend([None] * place.leaves if g is None else g)
            return tuple(out + [None] * (spec.leaves - len(out)))

    Call.__name__ = Call.__qualname__ = op._qualname.replace("::", "_")
    if op._vmap is not None:
        rule = op._vmap

        def batched(info: Any, in_dims: Any, *leaves: Any) -> Any:
            args, kw = unflatten(list(leaves), spec)
            return rule(info, unflatten(list(in_dims), spec)[0], *args, **kw)

        Call.vmap = staticmethod(batched)  # type: ignore[method-assign]
    return Call


def custom_op(name: Any = None, fn: Callable[..., Any] | None = None, /, *, mutates_args: Any = (), **kw: Any) -> Any:
    """``@custom_op("mylib::name", mutates_args=())``: the function as an operator by that name.

    Rules come by ``register_autograd`` and ``register_vmap``; a function by itself becomes an op of :func:`chainrule.custom_op`.
    """
    if not isinstance(name, str):
        return custom.custom_op(name, **kw)
    if fn is None:
        return lambda f: CustomOpDef(name, f, mutates_args)
    return CustomOpDef(name, fn, mutates_args)


def _op(op: Any, what: str) -> CustomOpDef:
    """The operator of a name."""
    if isinstance(op, CustomOpDef):
        return op
    op = getattr(op, "_fn", op) if not isinstance(op, str) else CUSTOM.get(op.partition(".")[0])
    if not isinstance(op, CustomOpDef):
        raise ValueError(
            f"{what}: there is no such operator; declare it with library.custom_op or library.define first"
        )
    return op


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """The function of an operator for a device."""
    return _op(op, "register_kernel").register_kernel(device_types, func)


def register_fake(
    op: Any, func: Any = None, /, *, lib: Any = None, _stacklevel: int = 1, allow_override: bool = False
) -> Any:
    """The function of an operator for tensors without memory; shapes follow from running it otherwise."""
    if isinstance(op, str) and not isinstance(CUSTOM.get(op), CustomOpDef):
        return (lambda f: f) if func is None else func  # an operator of PyTorch itself: its shapes are known
    found = _op(op, "register_fake")
    return found.register_fake if func is None else found.register_fake(func)


impl_abstract = register_fake


def register_autograd(op: Any, backward: Any, /, *, setup_context: Any = None, lib: Any = None) -> None:
    """The reverse rule of an operator."""
    _op(op, "register_autograd").register_autograd(backward, setup_context=setup_context)


def register_vmap(op: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """The batching rule of an operator."""
    return _op(op, "register_vmap").register_vmap(*([] if func is None else [func]))


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Accepted: under autocast an operator of one's own sees the types it is handed."""


def _mutates(schema: str) -> str | tuple[()]:
    """Whether a schema marks arguments that are written to, as in ``(Tensor(a!) x)``."""
    return "unknown" if "!" in schema.partition("->")[0] else ()


def define(qualname: Any, schema: Any = None, *rest: Any, lib: Any = None, tags: Any = ()) -> Any:
    """Name an operator, ``define("mylib::f", "(Tensor x) -> Tensor")``; its function comes by :func:`impl`."""
    if isinstance(qualname, Library):  # the older form, a decorator
        name = qualname.define(schema)

        def take(f: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(name, f)
            return f

        return take
    CustomOpDef(qualname, None, _mutates(schema or ""))
    return None


def impl(qualname: Any, types: Any = None, func: Any = None, *, lib: Any = None) -> Any:
    """Give the function of an operator, for the CPU or for all devices; of other devices it is accepted."""
    if isinstance(qualname, Library):
        where, name, key = qualname, types, func or ""

        def late(f: Callable[..., Any]) -> Callable[..., Any]:
            where.impl(name, f, key)
            return f

        return late
    found = _op(qualname, "impl")
    kinds = (types,) if isinstance(types, str) else tuple(types or ("default",))

    def take(f: Callable[..., Any]) -> Callable[..., Any]:
        if any(k in _HERE for k in kinds):
            found.register_kernel(None, f)
        return f

    return take if func is None else take(func)


class Library:
    """Operators of a namespace, by name: ``define("f(Tensor x) -> Tensor")``, then ``impl("f", fn)``; found as ``torch.ops.ns.f``.

    A function for a device, or one made of other operators, is the operator; functions for PyTorch's tracer are accepted and not used.
    """

    def __init__(self, ns: str, kind: str = "FRAGMENT", dispatch_key: str = "") -> None:
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Name an operator; its kernel comes by `impl`."""
        return schema.partition("(")[0].partition("::")[2] or schema.partition("(")[0]

    def impl(self, op_name: Any, fn: Any, dispatch_key: str = "", **kw: Any) -> None:
        """Give the function of an operator."""
        key = dispatch_key or self.dispatch_key
        if key in ("", *_HERE, "Autograd", "AutogradCPU"):
            name = str(op_name).rpartition("::")[2].partition(".")[0]
            if key.startswith("Autograd") or f"{self.ns}::{name}" not in CUSTOM:
                CUSTOM[f"{self.ns}::{name}"] = fn


__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "impl",
    "impl_abstract",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
]
