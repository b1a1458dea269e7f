"""Averages of models: equal weights (SWA) or weights that fall exponentially (EMA), and the schedule that goes with them."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

from ..core import dtypes as dt
from ..core.imperative import no_grad
from ..core.tensor import Tensor
from ..nn.module import Module
from .optimizer import Optimizer
from .schedule_base import LRScheduler, per_group

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Any, Any, Any], Any]


def _many(average: Average) -> Callable[[Any, Any, Any], None]:
    """An average of two tensors as one of two lists, written to the first."""

    @no_grad()
    def update(averaged: Iterable[Tensor], now: Iterable[Tensor], num_averaged: Any) -> None:
        for a, p in zip(averaged, now, strict=True):
            new = average(a, p, num_averaged)
            a.copy_(new if a.dtype.category >= dt.FLOAT else new.to(a.dtype))

    return update


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """``decay a + (1 - decay) p``."""
    if not 0 <= decay <= 1:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
    return no_grad()(lambda ema_param, current_param, num_averaged: decay * ema_param + (1 - decay) * current_param)


def get_swa_avg_fn() -> Average:
    """``a + (p - a) / (n + 1)``, the mean of n + 1 models from that of n."""
    return no_grad()(lambda averaged, current, num_averaged: averaged + (current - averaged) / (num_averaged + 1))


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """``a = decay a + (1 - decay) p`` for lists of tensors."""
    return _many(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """``a = a + (p - a) / (n + 1)`` for lists of tensors."""
    return _many(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that ``update_parameters`` is shown."""

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Callable[[Any, Any, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        from ..core.registry import PUBLIC

        self.register_buffer("n_averaged", PUBLIC["tensor"](0, dtype=dt.int64))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's result."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take a model into the average; the first one is copied."""

        def of(m: Module) -> list[Tensor]:
            buffers = m.buffers() if self.use_buffers else ()
            return [p.detach() for p in itertools.chain(m.parameters(), buffers)]

        mine, theirs = of(self.module), of(model)
        if int(self.n_averaged) == 0:
            for a, p in zip(mine, theirs, strict=True):
                a.copy_(p)
        else:
            update = self.multi_avg_fn or _many(self.avg_fn or get_swa_avg_fn())
            kinds: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
            for a, p in zip(mine, theirs, strict=True):
                pair = kinds.setdefault(a.dtype, ([], []))
                pair[0].append(a)
                pair[1].append(p)
            for averaged, now in kinds.values():
                update(averaged, now, self.n_averaged)
        if not self.use_buffers:
            for a, p in zip(self.module.buffers(), model.buffers(), strict=True):
                a.detach().copy_(p.detach())
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of batch norms anew, as plain means over the batches of `loader`."""
    norms = [m for m in model.modules() if hasattr(m, "reset_running_stats") and "Instance" not in type(m).__name__]
    if not norms:
        return
    momenta, training = [m.momentum for m in norms], model.training
    model.train()
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    try:
        for batch in loader:
            x = batch[0] if isinstance(batch, list | tuple) else batch
            model(x if device is None else x.to(device))
    finally:
        for m, momentum in zip(norms, momenta, strict=True):
            m.momentum = momentum
        model.train(training)


class SWALR(LRScheduler):
    """From the rates of the groups to `swa_lr` in `anneal_epochs` steps, along a cosine or a line; then it stays there."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(per_group("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """The part of the way that is done after the part `t` of the time."""
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Any]:
        """The rates of the groups, from those that they have: a rate set by hand moves the line."""
        k = self._step_count - 1
        if not self.anneal_epochs:
            k = max(1, k)
        then, now = (self.anneal_func(max(0.0, min(1.0, s / max(1, self.anneal_epochs)))) for s in (k - 1, k))
        rates = []
        for g in self.optimizer.param_groups:
            lr, end = g["lr"], g["swa_lr"]
            start = end if then == 1 else (lr - then * end) / (1 - then)
            rates.append(end * now + start * (1 - now))
        return rates
