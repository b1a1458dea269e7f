"""Learning rates over time: ``scheduler.step()`` after each epoch (or batch) sets the rate of every group.

Most schedules are functions of the number of steps; the rate is computed from it anew each time, so that loading a state or
stepping in any order gives the same rate.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from typing import Any

from .optimizer import Optimizer


class LRScheduler:
    """The base of schedules: ``factor(t)`` gives what the initial rate is multiplied by after t steps."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for g in optimizer.param_groups:
            if last_epoch == -1:
                g["initial_lr"] = g["lr"] if "initial_lr" not in g else g["initial_lr"]
            elif "initial_lr" not in g:
                raise KeyError("param 'initial_lr' is not specified in param_groups when resuming a scheduler")
        self.base_lrs = [g["initial_lr"] for g in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def factor(self, t: int) -> float:
        """What the initial rate is multiplied by after t steps."""
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        """The rates of the groups after the present number of steps."""
        return [b * self.factor(self.last_epoch) for b in self.base_lrs]

    def step(self, epoch: int | None = None) -> None:
        """Count a step and set the rates."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr())

    def _set(self, rates: Sequence[float]) -> None:
        for g, lr in zip(self.optimizer.param_groups, rates, strict=True):
            g["lr"] = lr
        self._last_lr = list(rates)

    def get_last_lr(self) -> list[float]:
        """The rates as they were set last."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser and functions."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer" and not callable(v)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what ``state_dict`` gave."""
        self.__dict__.update(state_dict)


class LambdaLR(LRScheduler):
    """The initial rate times ``lr_lambda(t)``, one function or one a group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        n = len(optimizer.param_groups)
        self.lr_lambdas: list[Callable[[int], float]] = (
            list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * n
        )
        if len(self.lr_lambdas) != n:
            raise ValueError(f"Expected {n} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of the groups."""
        return [b * f(self.last_epoch) for b, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser and the functions."""
        return {k: v for k, v in super().state_dict().items() if k != "lr_lambdas"}


class MultiplicativeLR(LambdaLR):
    """The rate is multiplied by ``lr_lambda(t)`` at each step t."""

    def get_lr(self) -> list[float]:
        """The rates of the groups."""
        now = [g["lr"] for g in self.optimizer.param_groups]
        return (
            now
            if self.last_epoch <= 0
            else [lr * f(self.last_epoch) for lr, f in zip(now, self.lr_lambdas, strict=True)]
        )


class StepLR(LRScheduler):
    """``gamma ** (t // step_size)``."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, t: int) -> float:
        """``gamma ** (t // step_size)``."""
        return self.gamma ** (t // self.step_size)


class MultiStepLR(LRScheduler):
    """gamma to the number of milestones that were reached."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, t: int) -> float:
        """gamma to the number of milestones that were reached."""
        return self.gamma ** bisect.bisect_right(self.milestones, t)


class ExponentialLR(LRScheduler):
    """``gamma ** t``."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, t: int) -> float:
        """``gamma ** t``."""
        return self.gamma**t


class ConstantLR(LRScheduler):
    """A factor for the first `total_iters` steps, then 1."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor must be between 0 and 1, got {factor}")
        self.start, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, t: int) -> float:
        """The factor after t steps."""
        return self.start if t < self.total_iters else 1.0


class LinearLR(LRScheduler):
    """From `start_factor` to `end_factor` in `total_iters` steps, along a line."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(f"LinearLR: start_factor must be in (0, 1], got {start_factor}")
        if not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: end_factor must be between 0 and 1, got {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, t: int) -> float:
        """The factor after t steps."""
        return self.start_factor + (self.end_factor - self.start_factor) * min(t, self.total_iters) / self.total_iters


class PolynomialLR(LRScheduler):
    """``(1 - t / total_iters) ** power``, then 0."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self, t: int) -> float:
        """The factor after t steps."""
        return (1 - min(t, self.total_iters) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """From the initial rate to `eta_min` and back, along a cosine of half-period `T_max`."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of the groups."""
        c = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (b - self.eta_min) * c for b in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosines from the initial rate to `eta_min`, of length ``T_0``, ``T_0 T_mult``, ``T_0 T_mult**2``, ..."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or T_mult < 1:
            raise ValueError(
                f"CosineAnnealingWarmRestarts: expected positive T_0 and T_mult >= 1, got {T_0} and {T_mult}"
            )
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of the groups."""
        t, length = self.last_epoch, self.T_0
        while t >= length:
            t -= length
            length *= self.T_mult
        c = (1 + math.cos(math.pi * t / length)) / 2
        return [self.eta_min + (b - self.eta_min) * c for b in self.base_lrs]


class OneCycleLR(LRScheduler):
    """Up to `max_lr` and down to almost nothing in `total_steps` steps; momentum is left alone."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = False,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        last_epoch: int = -1,
    ) -> None:
        if cycle_momentum:
            raise NotImplementedError("OneCycleLR: cycle_momentum is not supported; pass cycle_momentum=False")
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR: give total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}")
        self.max_lr, self.total_steps, self.anneal_strategy = max_lr, total_steps, anneal_strategy
        self.top = float(pct_start * total_steps) - 1
        self.first, self.final = max_lr / div_factor, max_lr / div_factor / final_div_factor
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of the groups."""
        t = self.last_epoch
        if t >= self.total_steps:
            raise ValueError(f"Tried to step {t + 1} times. The specified number of total steps is {self.total_steps}")
        a, b, s = (self.first, self.max_lr, t / self.top if self.top else 1.0) if t <= self.top else (
            self.max_lr,
            self.final,
            (t - self.top) / (self.total_steps - 1 - self.top),
        )  # fmt: skip
        c = (1 - math.cos(math.pi * s)) / 2 if self.anneal_strategy == "cos" else s
        return [a + (b - a) * c] * len(self.base_lrs)


class SequentialLR(LRScheduler):
    """Several schedules, one after the other; the milestones say when the next one begins."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: expected one milestone less than schedulers, got {len(milestones)} and {len(schedulers)}"
            )
        self.schedulers, self.milestones = list(schedulers), list(milestones)
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: int | None = None) -> None:
        """Count a step and set the rates."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        k = bisect.bisect_right(self.milestones, self.last_epoch)
        self.schedulers[k].step(self.last_epoch - (self.milestones[k - 1] if k else 0))
        self._last_lr = self.schedulers[k].get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """The state of this and of all schedules."""
        return {k: v for k, v in super().state_dict().items() if k != "schedulers"} | {
            "schedulers": [s.state_dict() for s in self.schedulers]
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what ``state_dict`` gave."""
        state = dict(state_dict)
        for s, d in zip(self.schedulers, state.pop("schedulers"), strict=True):
            s.load_state_dict(d)
        self.__dict__.update(state)


class ChainedScheduler:
    """Several schedules at once; each multiplies the rate by the change of its own."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._schedulers = list(schedulers)
        self.optimizer = optimizer or self._schedulers[0].optimizer
        self._combine()

    def _combine(self) -> None:
        for k, g in enumerate(self.optimizer.param_groups):
            base = g["initial_lr"]
            lr = base
            for s in self._schedulers:
                lr *= s.get_last_lr()[k] / base
            g["lr"] = lr
        self._last_lr = [g["lr"] for g in self.optimizer.param_groups]

    def step(self) -> None:
        """Count a step of each schedule and set the rates."""
        for s in self._schedulers:
            s.step()
        self._combine()

    def get_last_lr(self) -> list[float]:
        """The rates as they were set last."""
        return self._last_lr


class ReduceLROnPlateau:
    """The rate times `factor` when a metric has not improved for `patience` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1:
            raise ValueError(f"ReduceLROnPlateau: factor should be < 1.0, got {factor}")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"ReduceLROnPlateau: mode is 'min' or 'max', threshold_mode 'rel' or 'abs', got {mode!r} and {threshold_mode!r}"
            )
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.min_lr, self.eps = (
            threshold,
            threshold_mode,
            cooldown,
            min_lr,
            eps,
        )
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = [g["lr"] for g in optimizer.param_groups]

    def _better(self, x: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        slack = self.threshold * (abs(self.best) if self.threshold_mode == "rel" and math.isfinite(self.best) else 1)
        return sign * x < sign * self.best - (slack if math.isfinite(self.best) else 0)

    def step(self, metrics: Any) -> None:
        """Look at the metric and set the rates."""
        x = float(metrics)
        self.last_epoch += 1
        if self._better(x):
            self.best, self.num_bad_epochs = x, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for g in self.optimizer.param_groups:
                new = max(g["lr"] * self.factor, self.min_lr)
                if g["lr"] - new > self.eps:
                    g["lr"] = new
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [g["lr"] for g in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """The rates as they were set last."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what ``state_dict`` gave."""
        self.__dict__.update(state_dict)
