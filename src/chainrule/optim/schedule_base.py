"""The base of schedules, and what they share: values of groups, functions in states."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..core.imperative import no_grad
from ..core.tensor import Tensor
from .optimizer import Optimizer


def values(optimizer: Optimizer, key: str) -> list[Any]:
    """The option `key` of every group, as it is now."""
    return [v.clone() if isinstance(v := g[key], Tensor) else v for g in optimizer.param_groups]


def put(group: dict[str, Any], key: str, value: Any) -> None:
    """Set an option of a group; one that is a tensor stays the same tensor."""
    if isinstance(group[key], Tensor):
        with no_grad():
            group[key].fill_(float(value))
    else:
        group[key] = value


def put_momentum(optimizer: Optimizer, group: dict[str, Any], value: float) -> None:
    """Set the momentum of a group: the first of the betas where the optimiser has those."""
    if "betas" in optimizer.defaults:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def need_momentum(optimizer: Optimizer) -> None:
    """Refuse an optimiser without momentum."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")


def need_optimizer(optimizer: Any) -> None:
    """Refuse what is no optimiser."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"argument optimizer: {type(optimizer).__name__} is not an Optimizer")


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value for each group, from one for all or a list; of tensors copies, so that a group's own may be written to."""
    n = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        value = [value] * n
    if len(value) != n:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups has {n}."
        )
    return [v.clone() if isinstance(v, Tensor) else v for v in value]


def remembered(f: Any) -> dict[str, Any] | None:
    """What a state keeps of a function: nothing, or the attributes of a callable object."""
    return None if f is None or isinstance(f, FunctionType) else dict(f.__dict__)


def _watch(optimizer: Optimizer) -> None:
    """Let the optimiser's step leave a mark, for `_check_order`."""
    step = optimizer.step
    if hasattr(step, "_wrapped_by_lr_sched"):
        return
    optimizer._opt_called = False  # type: ignore[attr-defined]
    ref, f = weakref.ref(optimizer), step.__func__  # type: ignore[attr-defined]

    @functools.wraps(f)
    def run(*args: Any, **kw: Any) -> Any:
        own = ref()
        own._opt_called = True  # type: ignore[union-attr]
        return f(own, *args, **kw)

    run._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = run  # type: ignore[method-assign]


def _check_order(optimizer: Any) -> None:
    """Warn if the schedule moves before the optimiser: the first rate is never used then."""
    if not hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        warnings.warn(
            "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make sure to call "
            "`optimizer.step()` before `lr_scheduler.step()`. See more details at "
            "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
            UserWarning,
            stacklevel=3,
        )
    elif not getattr(optimizer, "_opt_called", False):
        warnings.warn(
            "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the opposite order: "
            "`optimizer.step()` before `lr_scheduler.step()`. Otherwise the first value of the learning rate schedule is skipped. See more "
            "details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
            UserWarning,
            stacklevel=3,
        )


EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler."
)


class LRScheduler:
    """The base of schedules: ``get_lr()`` gives the rates of the groups after the present number of steps.

    A schedule says by what step t multiplies the rate, ``_change(t)``, and by what t steps multiply the initial one, ``_total(t)``;
    or it overrides ``get_lr`` (and ``_get_closed_form_lr``, for ``step(epoch)``).
    """

    _total: Callable[[int], float] | None = None
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        need_optimizer(optimizer)
        self.optimizer = optimizer
        for i, g in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = g["lr"]
                g.setdefault("initial_lr", lr.clone() if isinstance(lr, Tensor) else lr)
            elif "initial_lr" not in g:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0: "
                    f"load the optimizer's state first, or leave last_epoch at -1 for a fresh run"
                )
        self.base_lrs = values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _watch(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """The step of the constructor, which brings a fresh schedule to its first rate and leaves a resumed one where it is."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _change(self, t: int) -> float:
        raise NotImplementedError(f"{type(self).__name__} needs get_lr()")

    def get_lr(self) -> list[Any]:
        """The rates of the groups after the present number of steps, from those before the last one."""
        c = self._change(self.last_epoch)
        return [lr * c for lr in values(self.optimizer, "lr")]

    def _get_closed_form_lr(self) -> list[Any]:
        """The rates of the groups after the present number of steps, from the initial ones."""
        if self._total is None:
            return self.get_lr()
        c = self._total(self.last_epoch)
        return [lr * c for lr in self.base_lrs]

    def step(self, epoch: int | None = None) -> None:
        """Count a step (or jump to one) and set the rates."""
        if self._step_count == 1:
            _check_order(self.optimizer)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr() if epoch is None else self._get_closed_form_lr())

    def _set(self, rates: list[Any]) -> None:
        for g, lr in zip(self.optimizer.param_groups, rates, strict=True):
            put(g, "lr", lr)
        self._last_lr = values(self.optimizer, "lr")

    def get_last_lr(self) -> list[Any]:
        """The rates as they were set last."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser; of functions, the attributes of callable objects."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what ``state_dict`` gave."""
        self.__dict__.update(state_dict)


__all__ = ["LRScheduler", "need_momentum", "need_optimizer", "per_group", "put", "put_momentum", "remembered", "values"]
