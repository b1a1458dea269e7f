"""Adam and AdamW: steps scaled by running means of the gradient and of its square."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.tensor import Tensor
from .optimizer import Optimizer, positive


class Adam(Optimizer):
    """``p -= lr m^ / (sqrt(v^) + eps)``, m^ and v^ the unbiased running means of g and g**2; decay is part of the gradient."""

    decoupled = False

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: Any = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: Any = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        positive(lr=lr, eps=eps, weight_decay=weight_decay)
        for k, b in enumerate(betas):
            if not 0 <= b < 1:
                raise ValueError(f"Invalid beta parameter at index {k}: {b}")
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, options | {"decoupled_weight_decay": decoupled_weight_decay or self.decoupled})

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any], xp: Any) -> None:
        """``p -= lr m^ / (sqrt(v^) + eps)``; the parts of a complex number are two real ones."""
        (b1, b2), lr, decay = group["betas"], group["lr"], group["weight_decay"]
        if decay:
            if group["decoupled_weight_decay"]:
                p *= 1 - lr * decay
            else:
                g = g + decay * p
        n = int(state.get("step", 0)) + 1
        state["step"] = np.array(n, np.float32)
        if n == 1:
            state["exp_avg"], state["exp_avg_sq"] = xp.zeros_like(g), xp.zeros_like(g)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = xp.zeros_like(g)
        m, v, top = state["exp_avg"], state["exp_avg_sq"], state.get("max_exp_avg_sq")
        if xp.is_complex(p):
            p, g, m, v = (xp.view_as_real(x) for x in (p, g, m, v))
            top = None if top is None else xp.view_as_real(top)
        m *= b1
        m += (1 - b1) * g
        v *= b2
        v += (1 - b2) * (g * g)
        if top is not None:
            top[...] = xp.maximum(top, v)
            v = top
        scale = xp.sqrt(v)
        scale *= 1 / (1 - b2**n) ** 0.5
        scale += group["eps"]
        p -= (lr / (1 - b1**n)) * (m / scale)


class AdamW(Adam):
    """Adam whose weight decay acts on the parameter, not through the gradient."""

    decoupled = True

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **kw: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **kw)
