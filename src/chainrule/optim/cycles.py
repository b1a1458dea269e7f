"""Schedules that go up and down: cosines with restarts, cycles, one cycle; the latter two move the momentum against the rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..core.tensor import Tensor
from .optimizer import Optimizer
from .schedule_base import LRScheduler, need_momentum, need_optimizer, per_group, put, put_momentum, remembered


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosines from the initial rate to `eta_min`, of length ``T_0``, ``T_0 T_mult``, ``T_0 T_mult**2``, ..."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0 or not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(
                f"CosineAnnealingWarmRestarts: expected integers T_0 > 0 and T_mult >= 1, got {T_0} and {T_mult}"
            )
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates of the groups, `T_cur` steps into a cosine of length `T_i`."""
        c = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (b - self.eta_min) * c for b in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Count a step, or jump to `epoch`, which may lie between two."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self.T_cur, self.T_i = epoch, self.T_0
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())

    def _update_lr(self, epoch: float | None = None) -> None:
        self.step(epoch)


class CyclicLR(LRScheduler):
    """Up from `base_lr` to `max_lr` in `step_size_up` steps and down again in `step_size_down`, over and over."""

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        need_optimizer(optimizer)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"CyclicLR: mode is 'triangular', 'triangular2' or 'exp_range', got {mode!r}")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.total_size = float(step_size_up + (step_size_up if step_size_down is None else step_size_down))
        self.step_ratio = step_size_up / self.total_size
        lows, self.max_lrs = per_group("base_lr", optimizer, base_lr), per_group("max_lr", optimizer, max_lr)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            need_momentum(optimizer)
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
        if last_epoch == -1:
            for k, g in enumerate(optimizer.param_groups):
                put(g, "lr", lows[k])
                if cycle_momentum:
                    for name, v in (("max_momentum", self.max_momentums[k]), ("base_momentum", self.base_momentums[k])):
                        g[name] = v.clone() if isinstance(v, Tensor) else v
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def scale_fn(self, x: float) -> float:
        """How high a cycle goes, of its number (or of the number of steps, in the mode "iterations")."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": 1.0, "triangular2": 0.5 ** (x - 1), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self) -> list[Any]:
        """The rates of the groups; sets their momentum too."""
        turns = self.last_epoch / self.total_size
        cycle = math.floor(1 + turns)
        x = 1 + turns - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for g, low, top in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True):
                put_momentum(self.optimizer, g, top - (top - low) * height)
        return [low + (top - low) * height for low, top in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser; of a function, the attributes of a callable object."""
        return super().state_dict() | {"_scale_fn_custom": remembered(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what ``state_dict`` gave."""
        if self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(state_dict["_scale_fn_custom"] or {})
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})


class OneCycleLR(LRScheduler):
    """Up to `max_lr` and down to almost nothing in `total_steps` steps; the momentum goes down and up."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        need_optimizer(optimizer)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR: you must define either total_steps OR (epochs AND steps_per_epoch)")
            total_steps = epochs * steps_per_epoch
        if not isinstance(total_steps, int) or total_steps <= 0:
            raise ValueError(f"OneCycleLR: expected a positive integer number of steps, but got {total_steps}")
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR: expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR: anneal_strategy must be one of 'cos' or 'linear', got {anneal_strategy!r}")
        self.total_steps, self._anneal_func_type, self.cycle_momentum = total_steps, anneal_strategy, cycle_momentum
        up = float(pct_start * total_steps) - 1
        # When a phase ends, between which rates of the group it goes, and between which momenta.
        first = (up, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        self.phases: list[tuple[float, str, str, str, str]] = [
            first,
            (total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"),
        ]
        if three_phase:
            self.phases = [
                first,
                (float(2 * pct_start * total_steps) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                (total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        tops = per_group("max_lr", optimizer, max_lr)
        if cycle_momentum:
            need_momentum(optimizer)
            high = per_group("max_momentum", optimizer, max_momentum)
            low = per_group("base_momentum", optimizer, base_momentum)
        if last_epoch == -1:
            for k, g in enumerate(optimizer.param_groups):
                g["initial_lr"], g["max_lr"] = tops[k] / div_factor, tops[k]
                g["min_lr"] = g["initial_lr"] / final_div_factor
                if cycle_momentum:
                    g["max_momentum"], g["base_momentum"] = high[k], low[k]
        super().__init__(optimizer, last_epoch)

    def _between(self, a: float, b: float, s: float) -> float:
        return b + (a - b) / 2 * (math.cos(math.pi * s) + 1) if self._anneal_func_type == "cos" else a + (b - a) * s

    def get_lr(self) -> list[Any]:
        """The rates of the groups; sets their momentum too."""
        t = self.last_epoch
        if t > self.total_steps:
            raise ValueError(f"Tried to step {t} times. The specified number of total steps is {self.total_steps}")
        start = 0.0
        for phase in self.phases:
            end, lr, next_lr, momentum, next_momentum = phase
            if t <= end or phase is self.phases[-1]:
                break
            start = end
        s = (t - start) / (end - start) if end != start else 1.0
        if self.cycle_momentum:
            for g in self.optimizer.param_groups:
                put_momentum(self.optimizer, g, self._between(g[momentum], g[next_momentum], s))
        return [self._between(g[lr], g[next_lr], s) for g in self.optimizer.param_groups]
