"""ZeroRedundancyOptimizer: each rank keeps the optimiser's state of its share of the parameters, and moves those for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dispatch import innermost
from ..core.imperative import no_grad
from ..core.tensor import Tensor
from ..core.views import assign
from ..optim.optimizer import Optimizer
from . import wire
from .groups import resolve
from .objects import _gathered


class ZeroRedundancyOptimizer(Optimizer):
    """``optimizer_class`` over all ranks: the state is shared out, so a rank holds about a part 1/n of it.

    Every rank calls ``step()`` with the same gradients (DistributedDataParallel sees to that); each moves its share and the ranks exchange the result.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: Any,
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        self.process_group = resolve(process_group)
        self._class, self._options = optimizer_class, defaults
        self._inner: Any = None
        super().__init__(params, defaults)
        self._share()
        self._all_states: list[Any] | None = None

    def _share(self) -> None:
        """Who has which parameter: the largest first, each to the rank that has least."""
        n = self.process_group.size()
        load = [0] * n
        self._owner: dict[int, int] = {}
        every = [p for g in self.param_groups for p in g["params"]]
        for p in sorted(every, key=lambda p: -p.numel()):
            k = load.index(min(load))
            load[k] += p.numel()
            self._owner[id(p)] = k
        me = self.process_group.rank()
        groups = [
            {k: v for k, v in g.items() if k not in ("params", "param_names")}
            | {"params": [p for p in g["params"] if self._owner[id(p)] == me]}
            for g in self.param_groups
        ]
        self._groups = groups
        self.optim = self._inner = self._class(groups, **self._options) if any(g["params"] for g in groups) else None
        if self._inner is not None:
            for outer, inner in zip(self.param_groups, self._inner.param_groups, strict=True):
                for k, v in inner.items():
                    if k != "params":
                        outer.setdefault(k, v)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """More parameters; the shares are dealt anew, before the first step."""
        super().add_param_group(param_group)
        if self.__dict__.get("_inner") is not None:
            if self._inner.state:
                raise RuntimeError(
                    "ZeroRedundancyOptimizer: add_param_group after the first step would move state between ranks"
                )
            self._share()

    def step(self, closure: Callable[[], Any] | None = None, **kw: Any) -> Any:
        """Move this rank's share, and take the others' from them."""
        loss = None
        if self._inner is not None:
            for outer, inner in zip(self.param_groups, self._inner.param_groups, strict=True):
                inner.update(
                    {k: v for k, v in outer.items() if k in inner and k != "params"}
                )  # schedules change the outer ones
            loss = self._inner.step(closure, **kw) if closure is not None else self._inner.step(**kw)
        elif closure is not None:
            loss = closure()
        self._exchange()
        return loss

    def _exchange(self) -> None:
        g = self.process_group
        if g.size() == 1:
            return
        works = []
        for k in range(g.size()):
            by_type: dict[Any, list[Tensor]] = {}
            for group in self.param_groups:
                for p in group["params"]:
                    if self._owner[id(p)] == k:
                        by_type.setdefault(innermost(p).dtype, []).append(p)
            for ps in by_type.values():
                flat = np.concatenate([innermost(p).reshape(-1) for p in ps])
                works.append((wire.broadcast(g, flat, k), flat, ps if k != g.rank() else []))
        for work, flat, ps in works:
            work.wait()
            at = 0
            for p in ps:
                with no_grad():
                    assign(p, Tensor(flat[at : at + p.numel()].reshape(p.shape)), "step")
                at += p.numel()

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the state of all ranks together on rank `to` (of the group), for ``state_dict`` there; every rank calls this."""
        every = _gathered(None if self._inner is None else self._by_position(), self.process_group)
        self._all_states = every if self.process_group.rank() == to else None

    def _by_position(self) -> dict[str, Any]:
        numbers = {id(p): k for k, p in enumerate(p for g in self.param_groups for p in g["params"])}
        return {str(numbers[id(p)]): dict(s) for p, s in self._inner.state.items() if isinstance(p, Tensor)}

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters, after ``consolidate_state_dict`` on the rank that it named."""
        if self._all_states is None:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to={self.process_group.rank()})` on "
                f"all ranks beforehand if you meant to save the global state."
            )
        state = {int(k): s for part in self._all_states if part for k, s in part.items()}
        base = super().state_dict()
        return {"state": dict(sorted(state.items())), "param_groups": base["param_groups"]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back the state of all parameters; each rank keeps its share."""
        super().load_state_dict(state_dict)
        mine = {
            p: s
            for p, s in self.state.items()
            if isinstance(p, Tensor) and self._owner[id(p)] == self.process_group.rank()
        }
        self.state.clear()
        if self._inner is not None:
            self._inner.state.clear()
            self._inner.state.update(mine)


__all__ = ["ZeroRedundancyOptimizer"]
