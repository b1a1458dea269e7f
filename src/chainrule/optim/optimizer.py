"""Optimizer: groups of parameters with options, state for each, and a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dispatch import innermost
from ..core.imperative import enable_grad, no_grad
from ..core.tensor import Tensor
from ..core.views import assign


class Optimizer:
    """The base of optimisers: ``update(p, g, state, group)`` returns the new value of one parameter, as arrays."""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: dict[Tensor, dict[str, Any]] = {}
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
            if not p.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
            if id(p) in known:
                raise ValueError("some parameters appear in more than one parameter group")
            known.add(id(p))
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients (or set them to zero)."""
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is not None:
                    p.grad = None if set_to_none else p.grad.detach() * 0

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient; `closure` computes the loss anew."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        payload, g = innermost(p), innermost(p.grad)
                        value, g = (
                            getattr(payload, "rows", payload),
                            getattr(g, "rows", g),
                        )  # a nest moves as its packed rows
                        new = self.update(
                            value, -g if group.get("maximize") else g, self.state.setdefault(p, {}), group
                        ).astype(value.dtype, copy=False)
                        if value is not payload:
                            new = type(payload)(new, payload.geometry)
                        assign(p, Tensor(new), type(self).__name__)
        return loss

    def update(self, p: np.ndarray, g: np.ndarray, state: dict[str, Any], group: dict[str, Any]) -> np.ndarray:
        """The new value of a parameter."""
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
        state = {
            numbers[id(p)]: {k: _shown(v) for k, v in s.items()} for p, s in self.state.items() if id(p) in numbers
        }
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
        for new, group in zip(groups, self.param_groups, strict=True):
            at.update(zip(new["params"], group["params"], strict=True))
            group.update({k: v for k, v in new.items() if k != "params"})
        self.state = {at[int(k)]: {n: _stored(v) for n, v in s.items()} for k, s in state_dict["state"].items()}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for k, g in enumerate(self.param_groups):
            lines.append(f"Parameter Group {k}")
            lines += [f"    {n}: {v}" for n, v in sorted(g.items()) if n != "params"]
        return "\n".join([*lines, ")"])


def _shown(v: Any) -> Any:
    return Tensor(v.copy()) if isinstance(v, np.ndarray) else v


def _stored(v: Any) -> Any:
    return innermost(v).copy() if isinstance(v, Tensor) else v


def positive(**values: Any) -> None:
    """Refuse negative options."""
    for k, v in values.items():
        if isinstance(v, (int, float)) and not v >= 0:
            raise ValueError(f"Invalid {k} value: {v}")
