"""Module: a tree of named parameters, buffers and submodules around a ``forward``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..core.tensor import Tensor
from .conversion import Conversion
from .hooks import CALLS, EVERYWHERE, Handle, add, call
from .parameter import Buffer, Parameter
from .state import State

M = TypeVar("M", bound="Module")
_KINDS = ("_parameters", "_buffers", "_modules")
_HOOKS = (
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks", "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip


def _instead(parent: Any, given: Any) -> str:
    """What to write where something else than a module was given."""
    if isinstance(given, type) and issubclass(given, Module):
        return f": {given.__name__} is the class, write {given.__name__}(...)"
    if isinstance(given, list | tuple):
        return f": write {type(parent).__name__}(*modules)"
    if callable(given):
        return f": {getattr(given, '__name__', 'it')} is a function; nn has a module for each activation, or call it in forward"
    return ""


class Module(State, Conversion):
    """The base of all networks: assign Parameters, Buffers and Modules as attributes, and write ``forward``."""

    training: bool
    _is_full_backward_hook: bool | None
    dump_patches = False
    call_super_init = False

    def __init__(self, *args: Any, **kw: Any) -> None:
        if not self.call_super_init and (args or kw):
            name = type(self).__name__
            raise TypeError(
                f"{name}.__init__() got an unexpected keyword argument '{next(iter(kw))}'"
                if kw
                else f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given"
            )
        # Past __setattr__, which asks what kind of thing is assigned.
        self.__dict__.update(
            training=True, _parameters={}, _buffers={}, _modules={}, _non_persistent_buffers_set=set(),
            _is_full_backward_hook=None, **{k: {} for k in _HOOKS},
        )  # fmt: skip
        if self.call_super_init:
            super().__init__(*args, **kw)

    def forward(self, *args: Any, **kw: Any) -> Any:
        """What the module computes."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kw: Any) -> Any:
        if self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks or CALLS:
            return call(self, args, kw)
        return self.forward(*args, **kw)

    _call_impl = _wrapped_call_impl = __call__

    # -- attributes ---------------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        d = self.__dict__
        if "_parameters" in d and name in d["_parameters"]:
            return d["_parameters"][name]
        if "_buffers" in d and name in d["_buffers"]:
            return d["_buffers"][name]
        if "_modules" in d and name in d["_modules"]:
            return d["_modules"][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        d = self.__dict__
        ready = "_parameters" in d
        if isinstance(value, Parameter):
            if not ready:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if not ready:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            d["_modules"][name] = EVERYWHERE.registered("module", self, name, value)
        elif ready and name in d["_parameters"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as parameter '{name}' (Parameter or None expected); write nn.Parameter(value)"
                )
            d["_parameters"][name] = None
        elif ready and name in d["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as child module '{name}' (Module or None expected)"
                )
            d["_modules"][name] = EVERYWHERE.registered("module", self, name, None)
        elif isinstance(value, Buffer):
            if not ready:
                raise AttributeError("cannot assign buffers before Module.__init__() call")
            self._register_buffer_object(name, value)
        elif ready and name in d["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"cannot assign '{type(value).__name__}' as buffer '{name}' (Tensor or None expected)")
            d["_buffers"][name] = EVERYWHERE.registered("buffer", self, name, value)
        else:
            object.__setattr__(self, name, value)

    def _register_buffer_object(self, name: str, value: Any) -> None:
        """``self.name = Buffer(...)``, also where a subclass has a ``register_buffer`` of its own, from before `persistent`."""
        own = self.register_buffer
        if (
            getattr(own, "__func__", None) is Module.register_buffer
            or "persistent" in inspect.signature(own).parameters
        ):
            self.register_buffer(name, value, value.persistent)
        elif value.persistent:
            self.register_buffer(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without the persistent parameter is not allowed."
            )

    def __delattr__(self, name: str) -> None:
        for kind in _KINDS:
            if name in self.__dict__[kind]:
                del self.__dict__[kind][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parameters, *self._buffers, *self._modules})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for k in _HOOKS:  # of a state from before there was such a hook
            self.__dict__.setdefault(k, {})
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def _forget(self, name: str, keep: str = "") -> None:
        """Make room for an attribute of another kind."""
        d = self.__dict__
        d.pop(name, None)
        for kind in _KINDS:
            if kind != keep:
                d[kind].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _check_name(self, kind: str, name: str) -> dict[str, Any]:
        """The table of things of this kind, to which a thing with this name can be added."""
        table = self.__dict__.get(f"_{kind}s")
        if table is None:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got {name!r}')
        if not name:
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in table and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        return table

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter (or None, for one that is absent)."""
        table = self._check_name("parameter", name)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{type(param).__name__}' object to parameter '{name}' (Parameter or None required); write nn.Parameter(value)"
            )
        if param is not None and not param.is_leaf:
            raise ValueError(
                f"cannot assign a tensor with a history as parameter '{name}': it must be a leaf. Use Parameter(x.detach())."
            )
        table[name] = EVERYWHERE.registered("parameter", self, name, param)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add state that is no weight; with ``persistent=False`` it stays out of ``state_dict``."""
        table = self._check_name("buffer", name)
        if tensor is not None and not isinstance(tensor, Tensor) and not hasattr(tensor, "__torch_function__"):
            raise TypeError(
                f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (Tensor or None required)"
            )
        table[name] = EVERYWHERE.registered("buffer", self, name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a submodule (or None)."""
        table = self._check_name("module", name)
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass{_instead(self, module)}")
        table[name] = EVERYWHERE.registered("module", self, name, module)

    def register_module(self, name: str, module: Any) -> None:
        """Another name of `add_module`."""
        self.add_module(name, module)

    # -- the tree -----------------------------------------------------------------------------------------------------
    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The submodules of this module, each once, with their names."""
        seen: set[int] = set()
        for name, m in self._modules.items():
            if m is not None and id(m) not in seen:
                seen.add(id(m))
                yield name, m

    def children(self) -> Iterator[Module]:
        """The submodules of this module."""
        return (m for _, m in self.named_children())

    def named_modules(
        self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with dotted names."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, m in self._modules.items():
            if m is not None:
                yield from m.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it."""
        return (m for _, m in self.named_modules(remove_duplicate=remove_duplicate))

    def _named_members(
        self, get_members_fn: Any, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """What ``get_members_fn(module)`` gives for this module and those below it, with dotted names."""
        seen: set[int] = set()
        below = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, m in below:
            for name, x in get_members_fn(m):
                if x is None or id(x) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(x))
                yield f"{path}.{name}" if path else name, x

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The parameters with dotted names."""
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """The parameters."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with dotted names."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module with this dotted name; "" is this one."""
        m: Any = self
        for part in target.split(".") if target else ():
            if not hasattr(m, part):
                raise AttributeError(f"{m._get_name()} has no attribute `{part}`")
            m = getattr(m, part)
            if not isinstance(m, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return m

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module in the place of the one with this dotted name; with `strict` there must be one."""
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        head, _, tail = target.rpartition(".")
        parent = self.get_submodule(head)
        if strict and not hasattr(parent, tail):
            raise AttributeError(f"{parent._get_name()} has no attribute `{tail}`")
        if hasattr(parent, tail) and not isinstance(getattr(parent, tail), Module):
            raise AttributeError(f"`{tail}` is not an nn.Module")
        setattr(parent, tail, module)

    def _get(self, target: str) -> tuple[Module, str]:
        """The module that has the attribute with this dotted name, and the attribute's own name."""
        head, _, tail = target.rpartition(".")
        m = self.get_submodule(head)
        if not hasattr(m, tail):
            raise AttributeError(f"{m._get_name()} has no attribute `{tail}`")
        return m, tail

    def get_parameter(self, target: str) -> Tensor:
        """The parameter with this dotted name."""
        m, name = self._get(target)
        p = getattr(m, name)
        if not isinstance(p, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return p

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with this dotted name."""
        m, name = self._get(target)
        if name not in m._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return m._buffers[name]

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Call ``fn`` on every submodule and then on this module."""
        for m in self.children():
            m.apply(fn)
        fn(self)
        return self

    # -- hooks --------------------------------------------------------------------------------------------------------
    def register_forward_pre_hook(self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False) -> Handle:
        """Call ``hook(module, args)`` before forward; what it returns replaces the arguments."""
        return add(self._forward_pre_hooks, hook, prepend, kw=(with_kwargs, self._forward_pre_hooks_with_kwargs))

    def register_forward_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """Call ``hook(module, args, output)`` after forward; what it returns replaces the output."""
        return add(
            self._forward_hooks,
            hook,
            prepend,
            kw=(with_kwargs, self._forward_hooks_with_kwargs),
            always=(always_call, self._forward_hooks_always_called),
        )

    def _register_backward(self, hook: Any, prepend: bool, full: bool) -> Handle:
        if self._is_full_backward_hook is not None and self._is_full_backward_hook is not full:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
            )
        self._is_full_backward_hook = full
        return add(self._backward_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are there."""
        return self._register_backward(hook, prepend, True)

    def register_backward_hook(self, hook: Any) -> Handle:
        """PyTorch's older name; the hook sees what one of `register_full_backward_hook` sees."""
        return self._register_backward(hook, False, False)

    def register_full_backward_pre_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Call ``hook(module, grad_output)`` when the gradients of the output are there; its result replaces them."""
        return add(self._backward_pre_hooks, hook, prepend)

    def _replicate_for_data_parallel(self) -> Any:
        """A module of the same class with tables of its own, whose parameters are left to be set."""
        new = self.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.__dict__.update(
            _parameters={}, _buffers=dict(self._buffers), _modules=dict(self._modules), _is_replica=True
        )
        return new

    def compile(self, *args: Any, **kw: Any) -> None:
        """Taken for PyTorch's sake: the kernels of a module's operators are compiled when they are first used anyhow."""

    # -- text ---------------------------------------------------------------------------------------------------------
    def extra_repr(self) -> str:
        """What stands between the parentheses of the module's text."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        inner = [f"({k}): " + repr(m).replace("\n", "\n  ") for k, m in self._modules.items()]
        if not inner and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return "\n  ".join([f"{self._get_name()}(", *lines, *inner]) + "\n)"
