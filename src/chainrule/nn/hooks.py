"""What runs around a module's forward and backward, of one module and of all."""

from __future__ import annotations

import itertools
from typing import Any

from ..core.tensor import Tensor

_ids = itertools.count()
Table = dict[int, Any]


class Handle:
    """Removes a hook: ``handle.remove()``, or at the end of a ``with``."""

    id: int
    _table: Table
    _marks: tuple[Table, ...]

    def __init__(self, table: Table, key: int, marks: tuple[Table, ...] = ()) -> None:
        self._table, self.id, self._marks = table, key, marks

    def hooks_dict_ref(self) -> Table:
        """The table that the hook is in."""
        return self._table

    def remove(self) -> None:
        """Take the hook away."""
        for table in (self._table, *self._marks):
            table.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


def add(table: Table, hook: Any, prepend: bool = False, **marks: Any) -> Handle:
    """Put a hook into its table, and its number into the tables of the marks that are set: ``with_kwargs=(True, table)``."""
    key = next(_ids)
    if prepend:
        old = dict(table)
        table.clear()
        table[key] = hook
        table.update(old)
    else:
        table[key] = hook
    tables = tuple(t for on, t in marks.values() if on)
    for t in tables:
        t[key] = True
    return Handle(table, key, tables)


class Everywhere:
    """The hooks that run for every module."""

    def __init__(self) -> None:
        self.forward_pre: Table = {}
        self.forward: Table = {}
        self.forward_with_kwargs: Table = {}
        self.forward_always: Table = {}
        self.backward: Table = {}
        self.backward_pre: Table = {}
        self.registration: dict[str, Table] = {"buffer": {}, "module": {}, "parameter": {}}

    def registered(self, kind: str, module: Any, name: str, value: Any) -> Any:
        """What is to be registered, after the hooks that may replace it."""
        for hook in list(self.registration[kind].values()):
            new = hook(module, name, value)
            if new is not None:
                value = new
        return value


EVERYWHERE = Everywhere()
CALLS: Table = {}  # the numbers of those that run around calls: a call of a module looks here alone


def register_module_forward_pre_hook(hook: Any) -> Handle:
    """Call ``hook(module, args)`` before the forward of every module."""
    return add(EVERYWHERE.forward_pre, hook, call=(True, CALLS))


def register_module_forward_hook(hook: Any, *, with_kwargs: bool = False, always_call: bool = False) -> Handle:
    """Call ``hook(module, args, output)`` after the forward of every module."""
    e = EVERYWHERE
    return add(
        e.forward,
        hook,
        call=(True, CALLS),
        kw=(with_kwargs, e.forward_with_kwargs),
        always=(always_call, e.forward_always),
    )


def register_module_full_backward_hook(hook: Any) -> Handle:
    """Call ``hook(module, grad_input, grad_output)`` for every module when the gradients of its inputs are there."""
    return add(EVERYWHERE.backward, hook, call=(True, CALLS))


register_module_backward_hook = register_module_full_backward_hook


def register_module_full_backward_pre_hook(hook: Any) -> Handle:
    """Call ``hook(module, grad_output)`` for every module when the gradients of its output are there."""
    return add(EVERYWHERE.backward_pre, hook, call=(True, CALLS))


def register_module_buffer_registration_hook(hook: Any) -> Handle:
    """Call ``hook(module, name, buffer)`` when a buffer is registered; what it returns takes its place."""
    return add(EVERYWHERE.registration["buffer"], hook)


def register_module_module_registration_hook(hook: Any) -> Handle:
    """Call ``hook(module, name, submodule)`` when a submodule is registered; what it returns takes its place."""
    return add(EVERYWHERE.registration["module"], hook)


def register_module_parameter_registration_hook(hook: Any) -> Handle:
    """Call ``hook(module, name, parameter)`` when a parameter is registered; what it returns takes its place."""
    return add(EVERYWHERE.registration["parameter"], hook)


# -- a call between its hooks -----------------------------------------------------------------------------------------


def _before(module: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments after the pre-hooks."""
    with_kw = module._forward_pre_hooks_with_kwargs
    for key, f in [*EVERYWHERE.forward_pre.items(), *module._forward_pre_hooks.items()]:
        if key in with_kw:
            r = f(module, args, kw)
            if r is not None:
                if not isinstance(r, tuple) or len(r) != 2:
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {r}."
                    )
                args, kw = r
        else:
            r = f(module, args)
            if r is not None:
                args = r if isinstance(r, tuple) else (r,)
    return args, kw


def call(module: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """``module.forward`` between its hooks; those with ``always_call`` run when something raises, too."""
    called: set[int] = set()
    after = [*EVERYWHERE.forward.items(), *module._forward_hooks.items()]
    always = EVERYWHERE.forward_always.keys() | module._forward_hooks_always_called.keys()
    with_kw = EVERYWHERE.forward_with_kwargs.keys() | module._forward_hooks_with_kwargs.keys()
    out = None
    try:
        args, kw = _before(module, args, kw)
        pre = [*EVERYWHERE.backward_pre.values(), *module._backward_pre_hooks.values()]
        post = [*EVERYWHERE.backward.values(), *module._backward_hooks.values()]
        watch = Watch(module, pre, post) if pre or post else None
        if watch is not None:
            args = watch.inputs(args)
        out = module.forward(*args, **kw)
        for key, f in after:
            called.add(key)
            r = f(module, args, kw, out) if key in with_kw else f(module, args, out)
            if r is not None:
                out = r
        return out if watch is None else watch.outputs(out)
    except Exception:
        for key, f in after:
            if key in always and key not in called:
                try:
                    f(module, args, kw, out) if key in with_kw else f(module, args, out)
                except Exception as e:
                    import warnings

                    warnings.warn(
                        f"module forward hook with ``always_call=True`` raised an exception that was silenced as "
                        f"another error was raised in forward: {e}",
                        stacklevel=3,
                    )
        raise


# -- gradients on their way through a module --------------------------------------------------------------------------


class _Boundary:
    """Made when first needed: an autograd.Function imports what this file is imported by."""

    function: Any = None

    @classmethod
    def get(cls) -> Any:
        if cls.function is None:
            from ..autograd.function import Function

            class ModuleBoundary(Function):
                """The tensors themselves; on the way back all their cotangents at once, None for zero, go through `see`."""

                @staticmethod
                def forward(see: Any, *xs: Tensor) -> tuple[Tensor, ...]:
                    return tuple(x.view_as(x) for x in xs)

                @staticmethod
                def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                    ctx.see = inputs[0]
                    ctx.set_materialize_grads(False)

                @staticmethod
                def backward(ctx: Any, *gs: Any) -> Any:
                    return None, *ctx.see(gs)

                @staticmethod
                def jvp(ctx: Any, _: Any, *ts: Any) -> Any:
                    return ts

            cls.function = ModuleBoundary
        return cls.function


def _through(xs: list[Tensor], see: Any) -> tuple[Tensor, ...]:
    return _Boundary.get().apply(see, *xs)


def _replace(things: Any, make: Any, dicts: bool = False) -> Any:
    """`things` (a tensor, tuple, named tuple or list) with those of its tensors that carry gradients made anew together."""
    if dicts and isinstance(things, dict):
        return dict(zip(things, _replace(tuple(things.values()), make), strict=True))
    if not isinstance(things, Tensor | tuple | list):
        import warnings

        warnings.warn(
            "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
            f"but received {type(things)}",
            stacklevel=4,
        )
        return things
    several = isinstance(things, tuple | list)
    items = list(things) if several else [things]
    places = [k for k, x in enumerate(items) if isinstance(x, Tensor) and x._recorded]
    if places:
        for k, x in zip(places, make([items[k] for k in places], places, len(items)), strict=True):
            items[k] = x
    if not several:
        return items[0]
    return type(things)(*items) if hasattr(things, "_fields") else type(things)(items)


class _Shape:
    """What is needed of an argument to make zeros like it, without keeping it."""

    def __init__(self, x: Tensor) -> None:
        self.shape, self.dtype = tuple(x.shape), x.dtype

    def zeros(self) -> Tensor:
        from ..core.shapes import zeros

        return zeros(self.shape, self.dtype)


class Watch:
    """Follows the gradients of one call of a module, for its backward hooks."""

    def __init__(self, module: Any, pre: list[Any], post: list[Any]) -> None:
        self.module, self.pre, self.post = module, pre, post
        self.args: tuple[Any, ...] = ()
        self.has_input = False
        self.grad_out: Any = None

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments as new tensors whose gradients are seen."""
        self.args = (
            tuple(_Shape(a) if isinstance(a, Tensor) else None for a in args) if self.post else (None,) * len(args)
        )

        def make(xs: list[Tensor], places: list[int], n: int) -> tuple[Tensor, ...]:
            self.has_input = True
            return _through(xs, lambda gs: self._arrived(gs, places, n))

        return _replace(args, make) if self.post else args

    def _arrived(self, gs: tuple[Any, ...], places: list[int], n: int) -> tuple[Any, ...]:
        if self.grad_out is None:  # the output's gradient never came: it reached the inputs some other way
            return gs
        grads: Any = [None] * n
        for k, g in zip(places, gs, strict=True):
            grads[k] = g
        # PyTorch shows zeros for the tensors that nothing depends on, and None for what is no tensor.
        grads = tuple(g if g is not None or a is None else a.zeros() for g, a in zip(grads, self.args, strict=True))
        for f in self.post:
            r = f(self.module, grads, self.grad_out)
            if r is None:
                continue
            r = r if isinstance(r, tuple) else (r,)
            if len(r) != n:
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(r)}, but expected {n}"
                )
            grads = r
        self.grad_out = None
        return tuple(grads[k] for k in places)

    def outputs(self, out: Any) -> Any:
        """The results, whose gradients are seen."""
        older = self.module._is_full_backward_hook is False  # hooks of PyTorch's older kind see results in a dict, too
        return _replace(out, lambda xs, places, n: _through(xs, lambda gs: self._started(gs, places, n)), older)

    def _started(self, gs: tuple[Any, ...], places: list[int], n: int) -> tuple[Any, ...]:
        grads: Any = [None] * n
        for k, g in zip(places, gs, strict=True):
            grads[k] = g
        grads = tuple(grads)
        for f in self.pre:
            r = f(self.module, grads)
            if r is None:
                continue
            r = r if isinstance(r, tuple) else (r,)
            if len(r) != n:
                raise RuntimeError(
                    f"Backward pre hook returned an invalid number of grad_output, got {len(r)}, but expected {n}"
                )
            grads = r
        self.grad_out = grads
        if not self.has_input:
            none = (None,) * len(self.args)
            if self.post:
                import warnings

                warnings.warn(
                    "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require gradients.",
                    stacklevel=2,
                )
            for f in self.post:
                r = f(self.module, none, grads)
                if r is not None and any(x is not None for x in (r if isinstance(r, tuple) else (r,))):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None for all gradients."
                    )
            self.grad_out = None
        return tuple(grads[k] for k in places)
