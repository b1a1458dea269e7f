"""Gradient descent with momentum."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .optimizer import Optimizer, positive


class SGD(Optimizer):
    """``p -= lr v`` with ``v = momentum v + (1 - dampening) g``; Nesterov: ``p -= lr (g + momentum v)``."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: Any = None,
        differentiable: bool = False,
        fused: Any = None,
    ) -> None:
        positive(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        options = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, options)

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any], xp: Any) -> None:
        """``p -= lr v``."""
        if group["weight_decay"]:
            g = g + group["weight_decay"] * p
        mu = group["momentum"]
        if mu:
            v = state.get("momentum_buffer")
            v = state["momentum_buffer"] = 1 * g if v is None else mu * v + (1 - group["dampening"]) * g
            g = g + mu * v if group["nesterov"] else v
        p -= group["lr"] * g
