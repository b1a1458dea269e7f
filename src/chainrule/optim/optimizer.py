"""Optimizer: groups of parameters with options, state for each, a step, and hooks around it."""

from __future__ import annotations

import copy
import functools
import itertools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.dispatch import look
from ..core.imperative import enable_grad
from ..core.tensor import Tensor

required = object()  # an option that every group must give
_Hooks = OrderedDict[int, Callable[..., Any]]
_numbers = itertools.count().__next__
_before: _Hooks = OrderedDict()
_after: _Hooks = OrderedDict()


class Handle:
    """What registering a hook returns: ``remove()`` takes it away again."""

    def __init__(self, hooks: _Hooks, hook: Callable[..., Any], first: bool = False) -> None:
        self.id, self._hooks = _numbers(), hooks
        hooks[self.id] = hook
        if first:
            hooks.move_to_end(self.id, last=False)

    def remove(self) -> None:
        """Take the hook away."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(optimizer, args, kwargs)`` before every step of every optimiser."""
    return Handle(_before, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(optimizer, args, kwargs)`` after every step of every optimiser."""
    return Handle(_after, hook)


def _hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step between its hooks; one that calls the step of a base class runs them once."""

    @functools.wraps(step)
    def run(self: Any, *args: Any, **kw: Any) -> Any:
        before, after = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
        if self._in_step or not (before or after or _before or _after):
            return step(self, *args, **kw)
        self._in_step = True
        args = (self, *args)
        try:
            for hook in (*_before.values(), *before.values()):
                new = hook(self, args, kw)
                if new is not None:
                    if not (isinstance(new, tuple) and len(new) == 2):
                        raise RuntimeError(
                            f"{step} must return None or a tuple of (new_args, new_kwargs), but got {new}: so must its pre hooks"
                        )
                    args, kw = new
            result = step(*args, **kw)
            for hook in (*after.values(), *_after.values()):
                hook(self, args, kw)
        finally:
            self._in_step = False
        return result

    run.hooked = True  # type: ignore[attr-defined]
    return run


class Optimizer:
    """The base of optimisers: `param_groups`, `state` for each parameter, and what they share; ``step`` is theirs."""

    _in_step = False
    param_groups: list[dict[str, Any]]
    state: defaultdict[Any, Any]

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        if "step" in vars(cls):
            cls.step = _hooked(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got chainrule.Tensor"
            )
        self.defaults = defaults
        self._add_hooks()
        self.state = defaultdict(dict)
        self.param_groups = []
        if not isinstance(params, Iterable):
            hint = "; write model.parameters()" if hasattr(params, "parameters") else ""
            raise TypeError(
                f"{type(self).__name__}: argument params must be tensors or dicts, not {type(params).__name__}{hint}"
            )
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for g in groups:
            self.add_param_group(g)

    def _add_hooks(self) -> None:
        for when in ("step_pre", "step_post", "state_dict_pre", "state_dict_post"):
            self.__dict__.setdefault(f"_optimizer_{when}_hooks", OrderedDict())
        for when in ("load_state_dict_pre", "load_state_dict_post"):
            self.__dict__.setdefault(f"_optimizer_{when}_hooks", OrderedDict())

    def _patch_step_function(self) -> None:
        """Let a step that was assigned to the class run its hooks."""
        cls = type(self)
        if not hasattr(cls.step, "hooked"):
            cls.step = _hooked(cls.step)  # type: ignore[method-assign]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will change "
                "between runs. Please use a list instead."
            )
        entries = [given] if isinstance(given, Tensor) else list(given)
        names = [p[0] for p in entries if isinstance(p, tuple)]
        param_group["params"] = params = [p[1] if isinstance(p, tuple) else p for p in entries]
        if names:
            if len(names) != len(params):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param names are missing: give all of them as (name, tensor)"
                )
            param_group["param_names"] = names
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
                raise ValueError(
                    f"{type(self).__name__}: can't optimize a non-leaf Tensor: one of shape {list(p.shape)} is the result of an op. "
                    f"Give the tensor that it was made from, or a new leaf: p.detach().requires_grad_()"
                )
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        own = {id(p) for p in params}
        if len(own) != len(params):
            warnings.warn("optimizer contains a parameter group with duplicate parameters", stacklevel=3)
        for g in self.param_groups:
            if ("param_names" in g) != bool(names):
                raise ValueError(
                    f"all optimizer param groups should be with/without names. cannot add param group {'with' if names else 'without'} names to the optimizer"
                )
            if any(id(p) in own for p in g["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients (or set them to zero)."""
        clear_gradients((p for g in self.param_groups for p in g["params"]), set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient; `closure` computes the loss anew."""
        raise NotImplementedError(f"{type(self).__name__} needs a method step()")

    # -- hooks --------------------------------------------------------------------------------------------------------
    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return other ``(args, kwargs)``."""
        return Handle(self._optimizer_step_pre_hooks, hook)  # type: ignore[attr-defined]

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return Handle(self._optimizer_step_post_hooks, hook)  # type: ignore[attr-defined]

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call ``hook(optimizer)`` before ``state_dict``."""
        return Handle(self._optimizer_state_dict_pre_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call ``hook(optimizer, state_dict)`` after ``state_dict``; what it returns is returned instead."""
        return Handle(self._optimizer_state_dict_post_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call ``hook(optimizer, state_dict)`` before a state is loaded; what it returns is loaded instead."""
        return Handle(self._optimizer_load_state_dict_pre_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call ``hook(optimizer)`` after a state was loaded."""
        return Handle(self._optimizer_load_state_dict_post_hooks, hook, prepend)  # type: ignore[attr-defined]

    # -- states -------------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """State and options; parameters are numbered in the order of the groups."""
        for hook in self._optimizer_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for g in self.param_groups:
            for p in g["params"]:
                numbers.setdefault(id(p), len(numbers))
            groups.append(
                {k: v for k, v in g.items() if k != "params"} | {"params": [numbers[id(p)] for p in g["params"]]}
            )
        state = {numbers[id(p)] if isinstance(p, Tensor) else p: s for p, s in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            new = hook(self, result)
            result = result if new is None else new
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what ``state_dict`` gave, here or in PyTorch."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            new = hook(self, state_dict)
            state_dict = state_dict if new is None else new
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, self.param_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        at: dict[Any, Tensor] = {}
        merged = []
        for new, group in zip(groups, self.param_groups, strict=True):
            at.update(zip(new["params"], group["params"], strict=True))
            g = {k: _own(copy.deepcopy(v)) for k, v in new.items() if k != "params"} | {"params": group["params"]}
            if "param_names" in group:
                g.setdefault("param_names", group["param_names"])
            merged.append(g)
        state: defaultdict[Any, Any] = defaultdict(dict)
        for k, s in state_dict["state"].items():
            state[at.get(k, k)] = _cast(s, at[k]) if k in at else s
        self.__setstate__({"state": state, "param_groups": merged})
        for hook in self._optimizer_load_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {k: self.__dict__[k] for k in ("defaults", "state", "param_groups")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._add_hooks()
        for group in self.param_groups:
            for name, default in self.defaults.items():
                if name in LATER and name not in group:
                    group[name] = type(default)() if isinstance(default, bool) else None

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for k, g in enumerate(self.param_groups):
            lines.append(f"Parameter Group {k}")
            lines += [f"    {n}: {g[n]}" for n in sorted(g) if n != "params"]
        return "\n".join([*lines, ")"])


# Options that states of earlier versions do not have.
LATER = frozenset("foreach maximize capturable differentiable fused decoupled_weight_decay amsgrad nesterov".split())


def _own(v: Any) -> Any:
    """Another library's tensor as one of ours; anything else as it is."""
    if isinstance(v, Tensor) or not (hasattr(v, "detach") and hasattr(v, "numpy")):
        return v
    v = v.detach()
    if "bfloat16" in str(v.dtype):  # which NumPy's protocols do not carry
        return Tensor(v.float().numpy().astype(dt.bfloat16.np))
    return Tensor(np.array(v.numpy()))


def _cast(value: Any, p: Tensor, key: Any = None) -> Any:
    """A copy of a state's entry; what has the parameter's kind of numbers gets its type, but for the count of steps."""
    value = _own(value)
    if isinstance(value, Tensor):
        value = value.detach().clone()
        if key != "step" and p.dtype.category >= dt.FLOAT and value.dtype.category >= dt.FLOAT:
            return value.to(p.dtype)
        return value
    if isinstance(value, dict):
        return {k: _cast(v, p, k) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_cast(v, p) for v in value])
    return value


def closure_value(closure: Callable[[], Any] | None) -> Any:
    """What the closure of a step returns, computed with recording on."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def clear_gradients(params: Iterable[Any], set_to_none: bool) -> None:
    """Drop gradients, or write zeros to them."""
    for p in params:
        if p.grad is not None:
            if set_to_none:
                p.grad = None
            else:
                if p.grad.requires_grad:
                    p.grad = p.grad.detach()
                p.grad.zero_()


_NAMES = {"lr": "learning rate", "eps": "epsilon value"}


def require(value: Any, holds: Callable[[Any], Any], words: str, shown: Any) -> None:
    """Refuse a number for which something does not hold, in these words; a tensor may be a number for each example, or an input of jit's."""

    def check(v: Any) -> None:
        if not np.all(holds(v)):
            raise ValueError(words.format(shown))

    if isinstance(value, Tensor):
        look(value, check)
    else:
        check(value)


def options(given: dict[str, Any], *nonnegative: str) -> dict[str, Any]:
    """The options among the arguments of a constructor (its ``locals()``), checked: these are not below zero."""
    kw = {k: v for k, v in given.items() if k not in ("self", "params", "__class__")}
    lr = kw.get("lr")
    if isinstance(lr, Tensor):
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if kw.get("foreach") and not kw.get("capturable"):
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    for k in ("lr", *nonnegative):
        for v in _numbers_of(kw[k]):
            if isinstance(v, str):
                raise TypeError(f"Invalid {_NAMES.get(k, k + ' value')}: {kw[k]!r} is a string, not a number")
            require(v, lambda v: v >= 0, f"Invalid {_NAMES.get(k, k + ' value')}: {{}}", kw[k])
    if "betas" in kw:
        _check_betas(kw)
    if kw.get("fused"):
        for other in ("differentiable", "foreach"):
            if kw.get(other):
                raise RuntimeError(
                    "`fused` does not support `differentiable`"
                    if other == "differentiable"
                    else "`fused` and `foreach` cannot be `True` together."
                )
    return kw


def _check_betas(kw: dict[str, Any]) -> None:
    betas = kw["betas"]
    kinds = {isinstance(b, Tensor) for b in betas}
    if len(kinds) > 1:
        raise ValueError("betas must be either both floats or both Tensors")
    for i, b in enumerate(betas):
        require(b, lambda b: (b >= 0) & (b < 1), f"Invalid beta parameter at index {i}: {{}}", b)
        if isinstance(b, Tensor):
            if b.numel() != 1:
                raise ValueError(f"Tensor betas[{i}] must be 1-element")
            if kw.get("foreach") and not kw.get("capturable"):
                raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")


def _numbers_of(v: Any) -> Iterator[Any]:
    yield from (x for x in (v if isinstance(v, tuple) else (v,)) if x is not None)
