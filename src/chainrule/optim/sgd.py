"""Steps along the gradient: SGD, averaged (ASGD), and by its sign alone (Rprop)."""

from __future__ import annotations

from typing import Any

from ..core.dtypes import get_default_dtype
from ..core.tensor import Tensor
from .adam import decay, decayed
from .elementwise import Elementwise, Functions, times
from .optimizer import options


class SGD(Elementwise):
    """``p -= lr v`` with ``v = momentum v + (1 - dampening) g``; Nesterov: ``p -= lr (g + momentum v)``."""

    scalars = ()
    takes_sparse = True

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        kw = options(locals(), "momentum", "weight_decay")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, kw)

    def buffers(self, group: dict[str, Any]) -> dict[str, float]:
        """The velocity, where there is one."""
        return {"momentum_buffer": 0.0} if group["momentum"] else {}

    def coefficients(self, group: dict[str, Any], s: Any) -> dict[str, Any]:
        """The first gradient is not damped."""
        numbers = {"mu": group["momentum"], "gain": 1.0 if s.fresh else 1 - group["dampening"], "lr": group["lr"]}
        return decay(group) | numbers | {"nesterov": bool(group["nesterov"])}

    @staticmethod
    def rule(xp: Functions, c: Any, p: Any, g: Any, v: Any = None) -> tuple[Any, ...]:
        """``p - lr v``."""
        p, g = decayed(c, p, g)
        if v is None:
            return (p - c.lr * g,)
        v = c.mu * v + c.gain * g
        return p - c.lr * (g + c.mu * v if c.nesterov else v), v


def started(lr: Any) -> Any:
    """What a state starts with: the rate as a number, or itself where it is differentiated."""
    return lr if isinstance(lr, Tensor) and lr.requires_grad else float(lr)


class ASGD(Elementwise):
    """``p = (1 - lambd eta) p - eta g`` with a rate that falls, and the mean of p from the step `t0` on."""

    scalars = ("step", "eta", "mu")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options(locals(), "weight_decay"))

    def scalar(self, name: str, group: dict[str, Any]) -> Any:
        """The rate starts as `lr`, the weight of the newest in the mean as 1."""
        return started(group["lr"]) if name == "eta" else float(name == "mu")

    def buffers(self, group: dict[str, Any]) -> dict[str, float]:
        """The mean of the parameter."""
        return {"ax": 0.0}

    def coefficients(self, group: dict[str, Any], s: Any) -> dict[str, Any]:
        """The rate and weight that the last step left, and those for the next one."""
        eta, mu = map(times, (s.eta, s.mu))
        now = decay(group) | {"eta": eta, "keep": 1 - group["lambd"] * eta, "mu": mu, "averages": mu != 1}
        s.step = s.step + 1
        n, lr = times(s.step), group["lr"]
        since = n - group["t0"]
        s.eta = lr / (1 + group["lambd"] * lr * n) ** group["alpha"]
        s.mu = 1 / (since.clamp(min=1.0) if isinstance(since, Tensor) else max(1.0, since))
        if not isinstance(s.eta, Tensor):  # numbers of the default type, whatever type the state has: as PyTorch's
            s.eta, s.mu = map(get_default_dtype().np.type, (s.eta, s.mu))
        return now

    @staticmethod
    def rule(xp: Functions, c: Any, p: Any, g: Any, mean: Any) -> tuple[Any, ...]:
        """A step, and its part in the mean."""
        if c.decays:
            g = g + c.decay * p
        p = p * c.keep - c.eta * g
        if isinstance(c.averages, Tensor):  # of a step that is being recorded
            return p, xp.where(c.averages, mean + (p - mean) * c.mu, p)
        return p, mean + (p - mean) * c.mu if c.averages else p


class Rprop(Elementwise):
    """``p -= sign(g) size``; an element's size grows while its gradient keeps its sign and shrinks when that changes."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        kw = options(locals())
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, kw)

    def buffers(self, group: dict[str, Any]) -> dict[str, Any]:
        """The gradient before, and the sizes of steps."""
        return {"prev": 0.0, "step_size": started(group["lr"])}

    def coefficients(self, group: dict[str, Any], s: Any) -> dict[str, Any]:
        """The factors of sizes, and their bounds."""
        s.step = s.step + 1
        (down, up), (least, most) = group["etas"], group["step_sizes"]
        return {"down": down, "up": up, "least": least, "most": most}

    @staticmethod
    def rule(xp: Functions, c: Any, p: Any, g: Any, before: Any, size: Any) -> tuple[Any, ...]:
        """Where the sign has changed the size shrinks, and the parameter waits."""
        same = g * before
        size = xp.where(same > 0, size * c.up, xp.where(same < 0, size * c.down, size))
        size = xp.where(size < c.least, c.least, xp.where(size > c.most, c.most, size))
        g = xp.where(same < 0, 0.0, g)
        return p - xp.sign(g) * size, g, size
