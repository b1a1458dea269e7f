"""Optimisers that look at whole matrices: Adafactor (means over rows and columns) and Muon (orthogonal steps)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..core import dtypes as dt
from ..core.imperative import no_grad
from ..core.registry import PUBLIC
from ..core.tensor import Tensor
from .elementwise import has_pattern
from .optimizer import Optimizer, closure_value, options, require


class _PerParameter(Optimizer):
    """A step that is written on tensors, one parameter after the other."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient; `closure` computes the loss anew."""
        loss = closure_value(closure)
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    if p.is_complex():
                        raise RuntimeError(f"{type(self).__name__} does not support complex parameters")
                    if has_pattern(p) or has_pattern(p.grad):
                        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")
                    self.update(p, -p.grad if group.get("maximize") else p.grad, self.state[p], group)
        return loss

    def update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Move `p` along the gradient `g`."""
        raise NotImplementedError


def _not_below_zero(*values: tuple[str, Any]) -> None:
    for name, v in values:
        if isinstance(v, Tensor) and v.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        require(v, lambda v: v >= 0, f"{name} should be >= 0 but is: {{}}", v)


def _rms(x: Tensor) -> Any:
    return (x * x).mean().sqrt()


class Adafactor(_PerParameter):
    """``p -= a g / sqrt(v)``, v the product of the running means of g**2 over rows and over columns; steps are as long as p is."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        _not_below_zero(("Learning rate", lr), ("weight_decay", weight_decay))
        if beta2_decay > 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and eps[0] < 0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if eps[1] < 0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if d < 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        super().__init__(params, options(locals()))

    def update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """A step whose root mean square is that of p times the rate, or less."""
        zeros, maximum, full_like = PUBLIC["zeros"], PUBLIC["maximum"], PUBLIC["full_like"]
        if not state:
            kind = dt.float64 if dt.get_default_dtype() is dt.float64 else dt.float32
            state["step"] = zeros((), dtype=kind)
            if g.ndim > 1:
                *lead, m, n = g.shape
                state["row_var"] = zeros((*lead, m, 1), dtype=g.dtype)
                state["col_var"] = zeros((*lead, 1, n), dtype=g.dtype)
            else:
                state["variance"] = PUBLIC["zeros_like"](g)
        state["step"] += 1
        t, lr = float(state["step"]), float(group["lr"])
        least, unit = group["eps"]
        least = dt.finfo(p.dtype).eps if least is None else least
        size = _rms(p)
        size = maximum(size, full_like(size, unit))
        new = t ** group["beta2_decay"]
        if group["weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        squares = g * g
        if g.ndim > 1:
            r, c = state["row_var"], state["col_var"]
            r.lerp_(squares.mean(-1, keepdim=True), new)
            c.lerp_(squares.mean(-2, keepdim=True), new)
            v = (r @ c) / r.mean(-2, keepdim=True).clamp(min=least)
        else:
            v = state["variance"].lerp_(squares, new)
        u = g * v.clamp(min=least * least).rsqrt()
        clip = _rms(u) / group["d"]
        p.sub_(u * (size * min(lr, t**-0.5) / maximum(clip, full_like(clip, 1.0))))


ORTHOGONAL = (3.4445, -4.7750, 2.0315)  # the quintic whose slope at 0 is steep, and which stays near 1


def orthogonal(g: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """About ``u v'`` of ``g = u s v'``: ``x <- a x + (b x x' + c (x x')**2) x``, in bfloat16."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if g.ndim != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = g.to(dt.bfloat16)
    tall = g.shape[0] > g.shape[1]
    if tall:
        x = x.mT
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        square = x @ x.mT
        x = PUBLIC["addmm"](x, PUBLIC["addmm"](square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class Muon(_PerParameter):
    """``p -= lr o``, o the orthogonal matrix next to the velocity; for matrices."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = ORTHOGONAL,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        kw = {k: v for k, v in locals().items() if k not in ("self", "params", "__class__")}
        _not_below_zero(("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay))
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                f"Adjust learning rate function {adjust_lr_fn} is not supported: write 'original' or 'match_rms_adamw'"
            )
        super().__init__(params, kw)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.shape}"
                    )

    def update(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """A step of one length in all directions."""
        mu, lr = group["momentum"], float(group["lr"])
        v = state.setdefault("momentum_buffer", PUBLIC["zeros_like"](g))
        v.lerp_(g, 1 - mu)
        u = g.lerp(v, mu) if group["nesterov"] else v
        o = orthogonal(u, group["ns_coefficients"], group["ns_steps"], group["eps"])
        m, n = p.shape
        scale = 0.2 * math.sqrt(max(m, n)) if group["adjust_lr_fn"] == "match_rms_adamw" else math.sqrt(max(1, m / n))
        p.mul_(1 - lr * group["weight_decay"])
        p.sub_(o.to(p.dtype) * (lr * scale))
