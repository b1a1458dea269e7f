"""Steps divided by the size that gradients had: Adagrad, Adadelta, RMSprop."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .adam import decay, decayed
from .elementwise import Elementwise, Functions, times
from .optimizer import options


class Adagrad(Elementwise):
    """``p -= lr g / (sqrt(sum of g**2) + eps)``."""

    takes_sparse = True

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, options(locals(), "lr_decay", "weight_decay", "initial_accumulator_value", "eps"))
        for group in self.param_groups:
            for p in group["params"]:
                self._start(p, group)

    def share_memory(self) -> None:
        """Nothing: states are sent to other processes as they are."""

    def buffers(self, group: dict[str, Any]) -> dict[str, float]:
        """The sum of squares."""
        return {"sum": group["initial_accumulator_value"]}

    def coefficients(self, group: dict[str, Any], s: Any) -> dict[str, Any]:
        """A rate that falls with the steps."""
        s.step = s.step + 1
        return decay(group) | {"lr": group["lr"] / (1 + (times(s.step) - 1) * group["lr_decay"]), "eps": group["eps"]}

    @staticmethod
    def rule(xp: Functions, c: Any, p: Any, g: Any, total: Any) -> tuple[Any, ...]:
        """``g / (sqrt(sum) + eps)``."""
        p, g = decayed(c, p, g)
        total = total + g * g
        return p - c.lr * (g / (xp.sqrt(total) + c.eps)), total


class Adadelta(Elementwise):
    """``p -= lr d`` with ``d = g sqrt((mean of d**2 + eps) / (mean of g**2 + eps))``."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        kw = options(locals(), "eps", "weight_decay")
        if not 0 <= rho <= 1:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, kw)

    def buffers(self, group: dict[str, Any]) -> dict[str, float]:
        """Running means of the squares of gradients and of steps."""
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def coefficients(self, group: dict[str, Any], s: Any) -> dict[str, Any]:
        """The same at every step."""
        s.step = s.step + 1
        rho = group["rho"]
        return decay(group) | {"lr": group["lr"], "rho": rho, "rest": 1 - rho, "eps": group["eps"]}

    @staticmethod
    def rule(xp: Functions, c: Any, p: Any, g: Any, v: Any, w: Any) -> tuple[Any, ...]:
        """The steps so far give the unit of the next one."""
        p, g = decayed(c, p, g)
        v = c.rho * v + c.rest * (g * g)
        d = xp.sqrt(w + c.eps) / xp.sqrt(v + c.eps) * g
        return p - c.lr * d, v, c.rho * w + c.rest * (d * d)


class RMSprop(Elementwise):
    """``p -= lr g / (sqrt(v) + eps)``, v the running mean of g**2 or, centered, the variance; with momentum if wanted."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals(), "eps", "momentum", "weight_decay", "alpha"))

    def buffers(self, group: dict[str, Any]) -> dict[str, float]:
        """The running mean of squares, the velocity, the running mean."""
        names = {"square_avg": True, "momentum_buffer": group["momentum"] > 0, "grad_avg": group["centered"]}
        return {k: 0.0 for k, on in names.items() if on}

    def coefficients(self, group: dict[str, Any], s: Any) -> dict[str, Any]:
        """The same at every step."""
        s.step = s.step + 1
        a = group["alpha"]
        numbers = {"a": a, "rest": 1 - a, "lr": group["lr"], "eps": group["eps"], "mu": group["momentum"]}
        return decay(group) | numbers | {"moves": group["momentum"] > 0, "centered": bool(group["centered"])}

    @staticmethod
    def rule(xp: Functions, c: Any, p: Any, g: Any, v: Any, *others: Any) -> tuple[Any, ...]:
        """``g / (sqrt(v) + eps)``."""
        p, g = decayed(c, p, g)
        v = c.a * v + c.rest * (g * g)
        spread, mean = v, others[-1] if c.centered else None
        if mean is not None:
            mean = mean + c.rest * (g - mean)
            spread = v - mean * mean
        d = g / (xp.sqrt(spread) + c.eps)
        if c.moves:
            d = c.mu * others[0] + d
        return p - c.lr * d, v, *([d] if c.moves else []), *([] if mean is None else [mean])
