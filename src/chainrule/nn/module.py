"""Module: a tree of named parameters, buffers and submodules around a ``forward``."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from ..core import dtypes as dt
from ..core.imperative import no_grad
from ..core.tensor import Tensor
from ..core.views import assign
from ..ops.shape.create import as_tensor
from .hooks import Handle, Hooks
from .parameter import Buffer, Parameter

M = TypeVar("M", bound="Module")
_EXTRA = "_extra_state"


class LoadResult(NamedTuple):
    """The names that a state lacked, and those that it had too many."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Module:
    """The base of all networks: assign Parameters, Buffers and Modules as attributes, and write ``forward``."""

    training: bool
    _version = 1

    def __init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "training", True)
        set_(self, "_parameters", {})
        set_(self, "_buffers", {})
        set_(self, "_modules", {})
        set_(self, "_transient", set())
        set_(self, "_hooks", {})

    def forward(self, *args: Any, **kw: Any) -> Any:
        """What the module computes."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kw: Any) -> Any:
        hooks = self._hooks
        return Hooks.call(self, args, kw) if hooks else self.forward(*args, **kw)

    # -- attributes ---------------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        d = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind in d and name in d[kind]:
                return d[kind][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        d = self.__dict__
        ready = "_parameters" in d
        if isinstance(value, Parameter):
            if not ready:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name)
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if not ready:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            d["_modules"][name] = value
        elif isinstance(value, Buffer):
            if not ready:
                raise AttributeError("cannot assign buffers before Module.__init__() call")
            self._forget(name)
            self.register_buffer(name, value, value.persistent)
        elif ready and name in d["_parameters"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as parameter '{name}' (Parameter or None expected)"
                )
            d["_parameters"][name] = None
        elif ready and name in d["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as child module '{name}' (Module or None expected)"
                )
            d["_modules"][name] = None
        elif ready and name in d["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"cannot assign '{type(value).__name__}' as buffer '{name}' (Tensor or None expected)")
            d["_buffers"][name] = value
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__[kind]:
                del self.__dict__[kind][name]
                self._transient.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parameters, *self._buffers, *self._modules})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _forget(self, name: str, keep: str = "") -> None:
        """Make room for an attribute of another kind."""
        d = self.__dict__
        d.pop(name, None)
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind != keep:
                d[kind].pop(name, None)
        self._transient.discard(name)

    def _check_name(self, kind: str, name: str, table: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string, got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got {name!r}')
        if not name:
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in table and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter (or None, for one that is absent)."""
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{type(param).__name__}' object to parameter '{name}' (Parameter or None required)"
            )
        if param is not None and not param.is_leaf:
            raise ValueError(
                f"cannot assign a tensor with a history as parameter '{name}': it must be a leaf. Use Parameter(x.detach())."
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add state that is no weight; with ``persistent=False`` it stays out of ``state_dict``."""
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (Tensor or None required)"
            )
        self._buffers[name] = tensor
        (self._transient.discard if persistent else self._transient.add)(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a submodule (or None)."""
        self._check_name("module", name, self._modules)
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._modules[name] = module

    register_module = add_module

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

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        return (m for _, m in self.named_modules())

    def _named(self, table: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        for path, m in (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        ):
            for name, x in m.__dict__[table].items():
                if x is None or id(x) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(x))
                yield f"{path}.{name}" if path else name, x

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The parameters with dotted names."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """The parameters."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with dotted names."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module with this dotted name; "" is this one."""
        m: Any = self
        for part in target.split(".") if target else ():
            if not isinstance(m, Module) or part not in m._modules:
                raise AttributeError(f"{type(self).__name__} has no submodule '{target}' ('{part}' is missing)")
            m = m._modules[part]
        return m

    def set_submodule(self, target: str, module: Module) -> None:
        """Put a module in the place of the one with this dotted name."""
        if not target:
            raise ValueError("set_submodule: the name of the submodule is empty")
        head, _, tail = target.rpartition(".")
        self.get_submodule(head)._modules[tail] = module

    def _get(self, target: str, table: str, what: str) -> Tensor:
        head, _, tail = target.rpartition(".")
        m = self.get_submodule(head)
        if tail not in m.__dict__[table]:
            raise AttributeError(f"'{tail}' is not a {what} of {type(m).__name__}")
        return m.__dict__[table][tail]

    def get_parameter(self, target: str) -> Tensor:
        """The parameter with this dotted name."""
        return self._get(target, "_parameters", "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with this dotted name."""
        return self._get(target, "_buffers", "buffer")

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Call ``fn`` on every submodule and then on this module."""
        for m in self.children():
            m.apply(fn)
        fn(self)
        return self

    # -- conversion ---------------------------------------------------------------------------------------------------
    def _apply(self: M, fn: Callable[[Tensor], Tensor]) -> M:
        """Replace the value of every parameter, gradient and buffer by ``fn`` of it; parameters keep their identity."""
        done: set[int] = set()
        for m in self.modules():
            for p in m._parameters.values():
                if p is None or id(p) in done:
                    continue
                done.add(id(p))
                with no_grad():
                    new, on = fn(p.detach()), p.requires_grad
                    g = p.grad
                    p.requires_grad_(False)
                    p._value, p._interp, p._aux = new._value, new._interp, new._aux
                    p.grad = None if g is None else fn(g)
                p.requires_grad_(on)
            for name, b in m._buffers.items():
                if b is not None:
                    m._buffers[name] = fn(b)
        return self

    def to(self: M, *args: Any, **kw: Any) -> M:
        """Convert floating parameters and buffers: ``to(dtype)``, ``to(device)``, ``to(tensor)``."""
        d = kw.get("dtype")
        for a in args:
            if isinstance(a, Tensor):
                d = a.dtype
            elif isinstance(a, dt.DType):
                d = a
        if d is None:
            return self
        if d.category < dt.FLOAT:
            raise TypeError(f"Module.to only accepts floating point or complex dtypes, but got desired dtype={d}")
        return self._apply(lambda x: x.to(d) if x.dtype.category >= dt.FLOAT else x)

    def type(self: M, dst_type: Any) -> M:
        """Convert all parameters and buffers."""
        return self._apply(lambda x: x.to(dt.as_dtype(dst_type)))

    def double(self: M) -> M:
        """Floating parameters and buffers as float64."""
        return self.to(dt.float64)

    def float(self: M) -> M:
        """Floating parameters and buffers as float32."""
        return self.to(dt.float32)

    def half(self: M) -> M:
        """Floating parameters and buffers as float16."""
        return self.to(dt.float16)

    def bfloat16(self: M) -> M:
        """Floating parameters and buffers as bfloat16."""
        return self.to(dt.bfloat16)

    def cpu(self: M) -> M:
        """This module: its tensors are there already."""
        return self

    # -- modes --------------------------------------------------------------------------------------------------------
    def train(self: M, mode: bool = True) -> M:
        """Training mode, for this module and all below it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for m in self.modules():
            object.__setattr__(m, "training", mode)
        return self

    def eval(self: M) -> M:
        """Evaluation mode, for this module and all below it."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Whether gradients are recorded for the parameters."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of the parameters (or set them to zero)."""
        from ..optim.optimizer import clear_gradients

        clear_gradients(self.parameters(), set_to_none)

    # -- state --------------------------------------------------------------------------------------------------------
    def get_extra_state(self) -> Any:
        """State beside parameters and buffers, for ``state_dict``; override together with ``set_extra_state``."""
        raise NotImplementedError

    def set_extra_state(self, state: Any) -> None:
        """Take back what ``get_extra_state`` gave."""
        raise NotImplementedError

    def _has_extra(self) -> bool:
        return type(self).get_extra_state is not Module.get_extra_state

    def _own_state(self) -> Iterator[tuple[str, Tensor]]:
        for name, x in itertools.chain(self._parameters.items(), self._buffers.items()):
            if x is not None and name not in self._transient:
                yield name, x

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """All parameters and persistent buffers by dotted name; they share memory with the module."""
        out: Any = OrderedDict() if destination is None else destination
        for f in self._hooks.get("state_pre", {}).values():
            f(self, prefix, keep_vars)
        for name, x in self._own_state():
            out[prefix + name] = x if keep_vars else x.detach()
        if self._has_extra():
            out[prefix + _EXTRA] = self.get_extra_state()
        for name, m in self._modules.items():
            if m is not None:
                m.state_dict(destination=out, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for f in self._hooks.get("state", {}).values():
            f(self, out, prefix, {})
        return out

    def _load_own(
        self,
        state: dict[str, Any],
        prefix: str,
        missing: list[str],
        unexpected: list[str],
        errors: list[str],
        by_assignment: bool,
    ) -> None:
        """Take this module's own entries from `state`; override to rename or convert old ones."""
        for f in self._hooks.get("load_pre", {}).values():
            f(self, state, prefix, {}, True, missing, unexpected, errors)
        for name, x in list(self._own_state()):
            key = prefix + name
            if key not in state:
                missing.append(key)
                continue
            new = state[key]
            if not isinstance(new, Tensor) and hasattr(new, "__array__"):
                new = as_tensor(new)  # NumPy's, PyTorch's
            if not isinstance(new, Tensor):
                errors.append(
                    f'While copying the parameter named "{key}", expected a tensor from checkpoint but received {type(new).__name__}'
                )
                continue
            if tuple(new.shape) != tuple(x.shape):
                errors.append(
                    f"size mismatch for {key}: copying a param with shape {tuple(new.shape)} from checkpoint, the shape in current model is {tuple(x.shape)}."
                )
                continue
            if by_assignment:
                if name in self._parameters:
                    self._parameters[name] = new if isinstance(new, Parameter) else Parameter(new, x.requires_grad)
                else:
                    self._buffers[name] = new
            else:
                with no_grad():
                    assign(x, new.detach().to(x.dtype), "load_state_dict")
        if self._has_extra():
            if prefix + _EXTRA in state:
                self.set_extra_state(state[prefix + _EXTRA])
            else:
                missing.append(prefix + _EXTRA)

    def _known_keys(self, state: dict[str, Any]) -> set[str]:
        """The keys of a state that this module and those below it know."""
        known: set[str] = set()
        for path, m in self.named_modules(remove_duplicate=False):
            head = f"{path}." if path else ""
            known.update(head + name for name, _ in m._own_state())
            if m._has_extra():
                known.add(head + _EXTRA)
        return known

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> LoadResult:
        """Take the values of parameters and buffers from a ``state_dict``; with `strict` the names must be the same."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict).__name__}.")
        state = dict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        for path, m in self.named_modules(remove_duplicate=False):
            m._load_own(state, f"{path}." if path else "", missing, unexpected, errors, assign)
        known = self._known_keys(state)
        unexpected += [k for k in state if k not in known]
        result = LoadResult(missing, unexpected)
        for f in self._hooks.get("load_post", {}).values():
            f(self, result)
        if strict:
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {', '.join(map(repr, unexpected))}.")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {', '.join(map(repr, missing))}.")
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        return result

    # -- hooks --------------------------------------------------------------------------------------------------------
    def _hook(self, kind: str, f: Any, prepend: bool = False) -> Handle:
        return Hooks.add(self._hooks, kind, f, prepend)

    def register_forward_pre_hook(self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False) -> Handle:
        """Call ``hook(module, args)`` before forward; what it returns replaces the arguments."""
        return self._hook("pre", (hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """Call ``hook(module, args, output)`` after forward; what it returns replaces the output."""
        return self._hook("forward", (hook, with_kwargs), prepend)

    def register_full_backward_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are there."""
        return self._hook("backward", hook, prepend)

    def register_full_backward_pre_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Call ``hook(module, grad_output)`` when the gradients of the output are there; its result replaces them."""
        return self._hook("backward_pre", hook, prepend)

    def register_state_dict_pre_hook(self, hook: Any) -> Handle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict``."""
        return self._hook("state_pre", hook)

    def register_state_dict_post_hook(self, hook: Any) -> Handle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict``."""
        return self._hook("state", hook)

    def register_load_state_dict_pre_hook(self, hook: Any) -> Handle:
        """Call ``hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)`` before loading."""
        return self._hook("load_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Any) -> Handle:
        """Call ``hook(module, result)`` after loading."""
        return self._hook("load_post", hook)

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
