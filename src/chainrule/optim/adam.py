"""Steps scaled by running means of the gradient and of its size: Adam, AdamW, Adamax, NAdam, RAdam, SparseAdam."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ..core.imperative import no_grad
from ..core.registry import PUBLIC
from ..core.tensor import Tensor
from .elementwise import Elementwise, Functions, tensors, times
from .optimizer import Optimizer, closure_value, options

Betas = tuple[float | Tensor, float | Tensor]


def decay(group: dict[str, Any], decoupled: bool = False) -> dict[str, Any]:
    """The numbers of weight decay: a part of the gradient, or (decoupled) a factor of the parameter."""
    w = group["weight_decay"]
    on = isinstance(w, Tensor) or w != 0
    return {
        "decays": on and not decoupled,
        "shrinks": on and decoupled,
        "decay": w,
        "keep": 1 - group["lr"] * w if on and decoupled else 1.0,
    }


def decayed(c: Any, p: Any, g: Any) -> tuple[Any, Any]:
    """The parameter and its gradient after weight decay."""
    if c.shrinks:
        p = p * c.keep
    if c.decays:
        g = g + c.decay * p
    return p, g


def means(group: dict[str, Any]) -> dict[str, Any]:
    """The numbers of two running means."""
    b1, b2 = group["betas"]
    return {"b1": b1, "a1": 1 - b1, "b2": b2, "a2": 1 - b2, "eps": group["eps"]}


class Adam(Elementwise):
    """``p -= lr m^ / (sqrt(v^) + eps)``, m^ and v^ the unbiased running means of g and g**2; decay is part of the gradient."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(params, options(locals(), "eps", "weight_decay"))

    def buffers(self, group: dict[str, Any]) -> dict[str, float]:
        """Running means, and the largest one of the squares so far."""
        return dict.fromkeys(["exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else [])], 0.0)

    def coefficients(self, group: dict[str, Any], s: Any) -> dict[str, Any]:
        """What is left of the start, 0, in the running means is divided out."""
        s.step = s.step + 1
        n, (b1, b2) = times(s.step), group["betas"]
        unbias = {"rate": group["lr"] / (1 - b1**n), "root": 1 / (1 - b2**n) ** 0.5}
        return means(group) | decay(group, bool(group["decoupled_weight_decay"])) | unbias

    @staticmethod
    def rule(xp: Functions, c: Any, p: Any, g: Any, m: Any, v: Any, top: Any = None) -> tuple[Any, ...]:
        """``m / (sqrt(v) + eps)``."""
        p, g = decayed(c, p, g)
        m = c.b1 * m + c.a1 * g
        v = c.b2 * v + c.a2 * (g * g)
        if top is None:
            return p - c.rate * (m / (xp.sqrt(v) * c.root + c.eps)), m, v
        top = xp.maximum(top, v)
        return p - c.rate * (m / (xp.sqrt(top) * c.root + c.eps)), m, v, top


class AdamW(Adam):
    """Adam whose weight decay acts on the parameter, not through the gradient."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        Elementwise.__init__(self, params, options(locals(), "eps", "weight_decay") | {"decoupled_weight_decay": True})

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


class Adamax(Elementwise):
    """``p -= lr m^ / u``, u the running maximum of ``|g| + eps``."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options(locals(), "eps", "weight_decay"))

    def buffers(self, group: dict[str, Any]) -> dict[str, float]:
        """A running mean and a running maximum."""
        return {"exp_avg": 0.0, "exp_inf": 0.0}

    def coefficients(self, group: dict[str, Any], s: Any) -> dict[str, Any]:
        """The mean is unbiased; the maximum is."""
        s.step = s.step + 1
        return means(group) | decay(group) | {"rate": group["lr"] / (1 - group["betas"][0] ** times(s.step))}

    @staticmethod
    def rule(xp: Functions, c: Any, p: Any, g: Any, m: Any, u: Any) -> tuple[Any, ...]:
        """``m / u``."""
        p, g = decayed(c, p, g)
        m, u = c.b1 * m + c.a1 * g, xp.maximum(c.b2 * u, xp.abs(g) + c.eps)
        return p - c.rate * (m / u), m, u


class NAdam(Elementwise):
    """Adam with Nesterov's momentum, which grows with the steps."""

    scalars = ("step", "mu_product")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals(), "eps", "weight_decay", "momentum_decay"))

    def scalar(self, name: str, group: dict[str, Any]) -> float:
        """The empty product."""
        return 1.0 if name == "mu_product" else 0.0

    def buffers(self, group: dict[str, Any]) -> dict[str, float]:
        """Running means."""
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def coefficients(self, group: dict[str, Any], s: Any) -> dict[str, Any]:
        """The momentum of this step and of the next, and the product of those so far."""
        s.step = s.step + 1
        n, (b1, b2), lr = times(s.step), group["betas"], group["lr"]
        now, then = (b1 * (1 - 0.5 * 0.96 ** (k * group["momentum_decay"])) for k in (n, n + 1))
        # In the state's type, as the state is what is kept.
        s.mu_product = s.mu_product * (now.to(s.mu_product.dtype) if isinstance(now, Tensor) else now)
        product = times(s.mu_product)
        both = {"of_g": lr * (1 - now) / (1 - product), "of_m": lr * then / (1 - product * then)}
        return means(group) | decay(group, group["decoupled_weight_decay"]) | both | {"unbias": 1 - b2**n}

    @staticmethod
    def rule(xp: Functions, c: Any, p: Any, g: Any, m: Any, v: Any) -> tuple[Any, ...]:
        """A step along the gradient and one along its mean."""
        p, g = decayed(c, p, g)
        m = c.b1 * m + c.a1 * g
        v = c.b2 * v + c.a2 * (g * g)
        return p - (c.of_g * g + c.of_m * m) / (xp.sqrt(v / c.unbias) + c.eps), m, v


class RAdam(Elementwise):
    """Adam that takes plain steps until the mean of squares has seen enough to scale by."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals(), "eps", "weight_decay"))

    def buffers(self, group: dict[str, Any]) -> dict[str, float]:
        """Running means."""
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def coefficients(self, group: dict[str, Any], s: Any) -> dict[str, Any]:
        """The variance of the scale, by the length that the running mean amounts to."""
        s.step = s.step + 1
        n, (b1, b2) = times(s.step), group["betas"]
        left = 1 - b2**n
        most = 2 / (1 - b2) - 1
        length = most - 2 * n * b2**n / left
        scaled: Any = length > 5
        rate = group["lr"] / (1 - b1**n)
        scale = left * (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
        if isinstance(scaled, Tensor):  # of a step that is being recorded
            rate = PUBLIC["where"](scaled, rate * PUBLIC["relu"](scale) ** 0.5, rate)
        else:
            scaled, rate = bool(scaled), rate * scale**0.5 if scaled else rate
        return means(group) | decay(group, group["decoupled_weight_decay"]) | {"scaled": scaled, "rate": rate}

    @staticmethod
    def rule(xp: Functions, c: Any, p: Any, g: Any, m: Any, v: Any) -> tuple[Any, ...]:
        """``m``, or ``m / (sqrt(v) + eps)``."""
        p, g = decayed(c, p, g)
        m = c.b1 * m + c.a1 * g
        v = c.b2 * v + c.a2 * (g * g)
        if isinstance(c.scaled, Tensor):
            return p - c.rate * xp.where(c.scaled, m / (xp.sqrt(v) + c.eps), m), m, v
        return p - c.rate * (m / (xp.sqrt(v) + c.eps) if c.scaled else m), m, v


class SparseAdam(Optimizer):
    """Adam for sparse gradients: where the gradient has no entry, neither the parameter nor its means change."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        for name, v in (("lr", lr), ("eps", eps)):
            if not isinstance(v, Tensor) and not v > 0:
                raise ValueError(f"Invalid {'learning rate' if name == 'lr' else 'epsilon value'}: {v}")
        super().__init__(params, options(locals(), "eps"))
        at = [(i, j, p) for i, g in enumerate(self.param_groups) for j, p in enumerate(g["params"])]
        if bad := [[i, j] for i, j, p in at if p.is_sparse]:
            raise ValueError(f"Sparse params at indices {bad}: SparseAdam requires dense parameter tensors")
        if bad := [[i, j] for i, j, p in at if p.is_complex()]:
            raise ValueError(f"Complex params at indices {bad}: SparseAdam does not support complex parameters")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move the entries of every parameter that have a gradient; `closure` computes the loss anew."""
        loss = closure_value(closure)
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        if not p.grad.is_sparse:
                            raise RuntimeError(
                                "SparseAdam does not support dense gradients, please consider Adam instead"
                            )
                        self._step_entries(p, group)
        return loss

    def _step_entries(self, p: Tensor, group: dict[str, Any]) -> None:
        state: dict[str, Any] = self.state[p]
        if not state:
            state |= {"step": 0, "exp_avg": PUBLIC["zeros_like"](p), "exp_avg_sq": PUBLIC["zeros_like"](p)}
        state["step"] += 1
        n, (b1, b2) = int(state["step"]), group["betas"]
        g = p.grad.coalesce()  # type: ignore[union-attr]  # the step is not linear: an entry must not come in parts
        at, values = tuple(g.indices()), g.values()
        if not values.numel():
            return
        rate = float(group["lr"]) * (1 - b2**n) ** 0.5 / (1 - b1**n)
        c = SimpleNamespace(**means(group), **decay({"weight_decay": 0, "lr": 0}), rate=rate, root=1.0)
        entries = [p[at], -values if group["maximize"] else values, state["exp_avg"][at], state["exp_avg_sq"][at]]
        for whole, part in zip(
            (p, state["exp_avg"], state["exp_avg_sq"]), Adam.rule(tensors(), c, *entries), strict=True
        ):
            whole[at] = part
