"""Learning rates over time: ``scheduler.step()`` after each epoch (or batch) sets the rate of every group.

Most schedules change the rate that they find: ``lr`` times a factor of the step. So several of them compose, a rate set by hand in between is
kept, and a resumed one goes on from the rate that the optimiser's state brought back. ``step(epoch)`` jumps: it sets the rate
that the schedule alone would have there, from the group's ``initial_lr``.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from .optimizer import Optimizer
from .schedule_base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from .schedule_base import LRScheduler, need_optimizer, per_group, put, remembered, values

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler",
    "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip

_LRScheduler = LRScheduler  # the name that older code derives from


class LambdaLR(LRScheduler):
    """The initial rate times ``lr_lambda(t)``, one function or one a group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        need_optimizer(optimizer)
        n = len(optimizer.param_groups)
        self.lr_lambdas: list[Callable[[int], float]] = (
            list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * n
        )
        if len(self.lr_lambdas) != n:
            raise ValueError(f"Expected {n} lr_lambdas, but got {len(self.lr_lambdas)}")
        for f in self.lr_lambdas:
            if not callable(f):
                raise TypeError(f"lr_lambda should be a function, but got {type(f).__name__}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates of the groups."""
        return [b * f(self.last_epoch) for b, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser; of functions, the attributes of callable objects."""
        return super().state_dict() | {"lr_lambdas": [remembered(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what ``state_dict`` gave."""
        for f, kept in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            f.__dict__.update(kept or {})
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})


class MultiplicativeLR(LambdaLR):
    """The rate is multiplied by ``lr_lambda(t)`` at each step t."""

    def get_lr(self) -> list[Any]:
        """The rates of the groups."""
        now = values(self.optimizer, "lr")
        if self._is_initial:
            return now
        return [lr * f(self.last_epoch) for lr, f in zip(now, self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """``gamma ** (t // step_size)``."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _change(self, t: int) -> float:
        """gamma every `step_size` steps."""
        return self.gamma if t and not t % self.step_size else 1.0

    def _total(self, t: int) -> float:
        """``gamma ** (t // step_size)``."""
        return self.gamma ** (t // self.step_size)


class MultiStepLR(LRScheduler):
    """gamma to the number of milestones that were reached."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _change(self, t: int) -> float:
        """gamma to the number of milestones at t."""
        return self.gamma ** self.milestones[t] if t in self.milestones else 1.0

    def _total(self, t: int) -> float:
        """gamma to the number of milestones up to t."""
        return self.gamma ** sum(n for at, n in self.milestones.items() if at <= t)


class ExponentialLR(LRScheduler):
    """``gamma ** t``."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _change(self, t: int) -> float:
        """gamma."""
        return 1.0 if self._is_initial else self.gamma

    def _total(self, t: int) -> float:
        """``gamma ** t``."""
        return self.gamma**t


class ConstantLR(LRScheduler):
    """A factor for the first `total_iters` steps, then 1."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor must be between 0 and 1, got {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _change(self, t: int) -> float:
        """The factor at the start, its inverse at the end."""
        return self.factor if t == 0 else 1 / self.factor if t == self.total_iters else 1.0

    def _total(self, t: int) -> float:
        """The factor after t steps."""
        return self.factor if t < self.total_iters else 1.0


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

    def _change(self, t: int) -> float:
        """The ratio of the factors of t and t - 1 steps."""
        if t == 0:
            return self.start_factor
        if self._is_initial or t > self.total_iters:
            return 1.0
        d = self.end_factor - self.start_factor
        return 1 + d / (self.total_iters * self.start_factor + (t - 1) * d)

    def _total(self, t: int) -> float:
        """The factor after t steps."""
        return self.start_factor + (self.end_factor - self.start_factor) * min(t, self.total_iters) / self.total_iters


class PolynomialLR(LRScheduler):
    """``(1 - t / total_iters) ** power``, then 0."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _change(self, t: int) -> float:
        """The ratio of the factors of t and t - 1 steps."""
        n = self.total_iters
        return 1.0 if self._is_initial or t > n else ((1 - t / n) / (1 - (t - 1) / n)) ** self.power

    def _total(self, t: int) -> float:
        """The factor after t steps."""
        return (1 - min(t, self.total_iters) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """From the initial rate to `eta_min` and back, along a cosine of half-period `T_max`."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, t: float) -> float:
        return (1 + math.cos(math.pi * t / self.T_max)) / 2

    def get_lr(self) -> list[Any]:
        """The rates of the groups: their distance from `eta_min` changes as the cosine does."""
        now, t = values(self.optimizer, "lr"), self.last_epoch
        if self._is_initial:
            return now
        if (t - 1 - self.T_max) % (
            2 * self.T_max
        ) == 0:  # at the bottom no ratio leads up again: the first step is added
            up = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (b - self.eta_min) * up for lr, b in zip(now, self.base_lrs, strict=True)]
        c = self._height(t) / self._height(t - 1)
        return [self.eta_min + (lr - self.eta_min) * c for lr in now]

    def _get_closed_form_lr(self) -> list[Any]:
        return [self.eta_min + (b - self.eta_min) * self._height(self.last_epoch) for b in self.base_lrs]


def _check_members(what: str, schedulers: Sequence[Any], optimizer: Any) -> None:
    for i, s in enumerate(schedulers):
        if not hasattr(s, "optimizer"):
            raise TypeError(f"{what}: the scheduler at index {i} has no attribute `optimizer`")
        if isinstance(s, ReduceLROnPlateau):
            raise ValueError(f"{what} does not support ReduceLROnPlateau (at index {i}): its step needs a metric")
        if s.optimizer is not optimizer:
            raise ValueError(f"{what}: the scheduler {type(s).__name__} at index {i} belongs to another optimizer")


class _Several(LRScheduler):
    """Schedules of one optimiser under one ``step``."""

    _schedulers: list[Any]

    def state_dict(self) -> dict[str, Any]:
        """The state of this and of all schedules."""
        return super().state_dict() | {"_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what ``state_dict`` gave."""
        for s, d in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            s.load_state_dict(d)
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_schedulers"})


def _undo(schedulers: Iterable[Any]) -> None:
    """Take back the step of the constructor."""
    for s in schedulers:
        if isinstance(s, _Several):
            _undo(s._schedulers)
        else:
            s.last_epoch -= 1


class SequentialLR(_Several):
    """Several schedules, one after the other; the milestones say when the next one begins."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if not schedulers:
            raise ValueError("SequentialLR expects at least one scheduler, but got none")
        _check_members("SequentialLR", schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: expected one milestone less than schedulers, got {len(milestones)} and {len(schedulers)}"
            )
        self.optimizer = optimizer
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        # Every constructor made a step; that of the first schedule alone counts.
        for g in optimizer.param_groups:
            put(g, "lr", g["initial_lr"])
        _undo(self._schedulers)
        first = self._schedulers[bisect.bisect_right(self._milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Count a step and set the rates."""
        self.last_epoch += 1
        k = bisect.bisect_right(self._milestones, self.last_epoch)
        s = self._schedulers[k]
        if k and self._milestones[k - 1] == self.last_epoch:
            s._update_lr(0)
        else:
            s.step()
        self._last_lr = s.get_last_lr()


class ChainedScheduler(_Several):
    """Several schedules at once; each multiplies the rate by the change of its own."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got none")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        _check_members("ChainedScheduler", schedulers, self.optimizer)
        self._schedulers = list(schedulers)
        self._last_lr = values(self.optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Count a step of each schedule."""
        for s in self._schedulers:
            s.step()
        self._last_lr = values(self.optimizer, "lr")


class ReduceLROnPlateau(LRScheduler):
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
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1:
            raise ValueError(f"ReduceLROnPlateau: factor should be < 1.0, got {factor}")
        need_optimizer(optimizer)
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"ReduceLROnPlateau: mode is 'min' or 'max', threshold_mode 'rel' or 'abs', got {mode!r} and {threshold_mode!r}"
            )
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.default_min_lr = None if isinstance(min_lr, list | tuple) else min_lr
        self.min_lrs = per_group("min_lr", optimizer, min_lr)
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = values(optimizer, "lr")

    @property
    def in_cooldown(self) -> bool:
        """Whether bad steps do not count yet."""
        return self.cooldown_counter > 0

    def _better(self, x: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "rel":
            return sign * x < sign * (self.best * (1 - sign * self.threshold))
        return sign * x < sign * (self.best - sign * self.threshold)

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at the metric and set the rates."""
        x = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._better(x):
            self.best, self.num_bad_epochs = x, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = values(self.optimizer, "lr")

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"ReduceLROnPlateau: The number of param groups in the `optimizer` ({len(groups)}) differs from when min_lr was given ({len(self.min_lrs)})"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for g, least in zip(groups, self.min_lrs, strict=True):
            old = float(g["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                put(g, "lr", new)


def __dir__() -> list[str]:
    return __all__
