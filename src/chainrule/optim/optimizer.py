"""Optimizer: groups of parameters with options, state for each, and a step."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..core.dispatch import innermost
from ..core.held import rebind, rows, shared_memory
from ..core.imperative import enable_grad, set_grad_enabled
from ..core.payload import COMPOSED
from ..core.registry import PUBLIC
from ..core.tensor import Tensor


def _view_as_real(a: np.ndarray) -> np.ndarray:
    return np.lib.stride_tricks.as_strided(a.real, (*a.shape, 2), (*a.strides, a.itemsize // 2))


# What an update needs beside arithmetic, for arrays and, in a differentiable step, for tensors.
ARRAYS = SimpleNamespace(
    sqrt=np.sqrt,
    maximum=np.maximum,
    zeros_like=np.zeros_like,
    is_complex=np.iscomplexobj,
    view_as_real=_view_as_real,
)


def _tensors() -> SimpleNamespace:
    return SimpleNamespace(**{n: PUBLIC[n] for n in vars(ARRAYS)})


class Optimizer:
    """The base of optimisers: ``update(p, g, state, group, xp)`` moves one parameter in place."""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got a Tensor"
            )
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for g in groups:
            self.add_param_group(g)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group).__name__}")
        group = dict(self.defaults) | param_group
        ps = group["params"]
        group["params"] = [ps] if isinstance(ps, Tensor) else [p[1] if isinstance(p, tuple) else p for p in ps]
        known = {id(p) for g in self.param_groups for p in g["params"]}
        for p in group["params"]:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
            if id(p) in known:
                raise ValueError("some parameters appear in more than one parameter group")
            known.add(id(p))
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients (or set them to zero)."""
        clear_gradients((p for g in self.param_groups for p in g["params"]), set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient; `closure` computes the loss anew."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        on_arrays = not group.get("differentiable") and self._is_plain(p)
                        (self._step_array if on_arrays else self._step_tensor)(p, group)
        return loss

    def _is_plain(self, p: Tensor) -> bool:
        """Whether a parameter, its gradient and its state are arrays, and not tensors of a transform that is active."""
        if COMPOSED and any(v.layout.name.startswith("sparse") for v in (p, p.grad) if v is not None):
            return False  # a sparse gradient: the same formula on tensors
        return all(_is_array(v) for v in (p, p.grad, *self.state[p].values()) if isinstance(v, Tensor))

    def _step_array(self, p: Tensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        arrays = {k: _array(v) for k, v in state.items()}
        payload = shared_memory(p)
        value = rows(innermost(p)).copy() if payload is None else rows(payload)
        g = rows(innermost(p.grad)).astype(value.dtype, copy=False)
        lr = group["lr"]
        if isinstance(lr, Tensor):
            group = group | {"lr": float(lr)}
        self.update(value, -g if group.get("maximize") else g, arrays, group, ARRAYS)
        if payload is None:
            old = innermost(p)
            rebind(p, value if isinstance(old, np.ndarray) else type(old)(value, old.geometry), type(self).__name__)
        for k, v in arrays.items():
            if not isinstance(v, np.ndarray):
                state[k] = v
            elif not (isinstance(t := state.get(k), Tensor) and t._value is v):
                state[k] = Tensor(v)

    def _step_tensor(self, p: Tensor, group: dict[str, Any]) -> None:
        """A step that can be differentiated: the same formula on tensors, recorded."""
        state = self.state[p]
        g: Any = p.grad
        self.update(p, -g if group.get("maximize") else g, state, group, _tensors())
        for k, v in state.items():
            if isinstance(v, np.ndarray):
                state[k] = Tensor(v)

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any], xp: Any) -> None:
        """Move `p` in place along the gradient `g`: arrays, or tensors in a differentiable step; `xp` has their functions."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """State and options; parameters are numbered in the order of the groups."""
        numbers: dict[int, int] = {}
        groups = []
        for g in self.param_groups:
            for p in g["params"]:
                numbers.setdefault(id(p), len(numbers))
            groups.append(
                {k: v for k, v in g.items() if k != "params"} | {"params": [numbers[id(p)] for p in g["params"]]}
            )
        state = {numbers[id(p)]: dict(s) for p, s in self.state.items() if id(p) in numbers}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what ``state_dict`` gave."""
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, self.param_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        at: dict[int, Tensor] = {}
        merged = []
        for new, group in zip(groups, self.param_groups, strict=True):
            at.update(zip(new["params"], group["params"], strict=True))
            merged.append(copy.deepcopy({k: v for k, v in new.items() if k != "params"}) | {"params": group["params"]})
        self.param_groups = merged
        self.state = defaultdict(dict)
        for k, s in state_dict["state"].items():
            self.state[at[int(k)]] = {n: v.detach().clone() if isinstance(v, Tensor) else v for n, v in s.items()}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for k, g in enumerate(self.param_groups):
            lines.append(f"Parameter Group {k}")
            lines += [f"    {n}: {v}" for n, v in sorted(g.items()) if n != "params"]
        return "\n".join([*lines, ")"])


def _is_array(x: Tensor) -> bool:
    """Whether a tensor is an array, or recorded by ``requires_grad`` right above one."""
    i = x._interp
    imperative = (
        i is not None and i.kind == "reverse" and (i.level == 0 or i.level % 1 != 0)
    )  # and no transform's level
    return i is None or (imperative and x._value._interp is None)


def _array(v: Any) -> Any:
    """What an update works on in place of a tensor of the state: its memory, or a copy where that was saved."""
    if not isinstance(v, Tensor):
        return v
    a = rows(innermost(v))
    return a.copy() if v._interp is not None or (v._meta is not None and v._meta.pinned) else a


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


def positive(**values: Any) -> None:
    """Refuse negative options."""
    for k, v in values.items():
        if isinstance(v, (int, float)) and not v >= 0:
            raise ValueError(f"Invalid {k} value: {v}")
