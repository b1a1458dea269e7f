"""DistributedDataParallel: every process has the module and a part of the data; gradients are averaged while backward goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...core.dispatch import grad_enabled, innermost
from ...core.imperative import no_grad
from ...core.tensor import Tensor
from ...core.views import assign
from ...distributed import wire
from ...distributed.groups import ProcessGroup, resolve
from ...distributed.levels import attend, is_met
from ...distributed.reducer import Reducer
from ..module import Module


class DistributedDataParallel(Module):
    """``module`` on every rank of a group: the same parameters everywhere, and after ``backward()`` the mean of the ranks' gradients.

    Buckets of about `bucket_cap_mb` go as soon as backward has completed them. Parameters that a rank does not use need no switch: they count as zero
    there, and one that no rank uses keeps ``grad`` as it is (`find_unused_parameters` is taken and not needed). Buffers are those of rank 0 at every
    forward pass, with `broadcast_buffers`. The gradient of ``backward(create_graph=True)`` can be differentiated again.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
    ) -> None:
        super().__init__()
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        params = {n: p for n, p in module.named_parameters() if p.requires_grad and n not in ignored}
        if not params:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        self.module, self.dim, self.broadcast_buffers = module, dim, broadcast_buffers
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.process_group: ProcessGroup = resolve(process_group)
        self._ignored = ignored
        cap = 25.0 if bucket_cap_mb is None else bucket_cap_mb
        self.__dict__["reducer"] = Reducer(list(params.values()), self.process_group, cap, min(1.0, cap))
        self.require_backward_grad_sync = True
        self._joined: Join | None = None
        if init_sync:
            self._check_sizes()
            self._spread([p for n, p in module.named_parameters() if n not in ignored] + self._buffers_of(), 0)
        self.reducer.attach()

    def _buffers_of(self) -> list[Tensor]:
        return [b for n, b in self.module.named_buffers() if n not in self._ignored]

    def _check_sizes(self) -> None:
        """All ranks have a module of the same form."""
        import zlib

        text = repr([(n, tuple(p.shape), str(p.dtype)) for n, p in self.module.named_parameters()])
        mine = np.array(zlib.crc32(text.encode()), np.int64)
        every = np.empty(self.process_group.size(), np.int64)
        wire.all_gather(self.process_group, mine, every).wait()
        if (every != mine).any():
            odd = [self.process_group.ranks[k] for k in np.flatnonzero(every != every[0])]
            raise RuntimeError(
                f"DistributedDataParallel: the parameters of rank {', '.join(map(str, odd))} have other names, shapes or types than those of "
                f"rank {self.process_group.ranks[0]}"
            )

    def _spread(self, tensors: list[Tensor], root: int) -> None:
        """The tensors of one rank on all, in one message for each type."""
        by_type: dict[Any, list[Tensor]] = {}
        for t in tensors:
            by_type.setdefault(innermost(t).dtype, []).append(t)
        for d, ts in by_type.items():
            flat = np.concatenate([innermost(t).reshape(-1) for t in ts]) if ts else np.empty(0, d)
            wire.broadcast(self.process_group, flat, root).wait()
            if self.process_group.rank() == root:
                continue
            at = 0
            for t in ts:
                with no_grad():
                    assign(t, Tensor(flat[at : at + t.numel()].reshape(t.shape)), "broadcast")
                at += t.numel()

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module's result; backward through it averages the gradients."""
        sync = self.require_backward_grad_sync and grad_enabled()
        r = self.reducer
        r.sync = self.require_backward_grad_sync
        root = 0
        if self._joined is not None and grad_enabled():
            active, root = self._joined.meet(2 if sync else 1)
            r.divisor = self.process_group.size() if self._joined.by_initial else active
        if (
            self.broadcast_buffers
            and self.require_backward_grad_sync
            and self.training
            and (buffers := self._buffers_of())
        ):
            self._spread(buffers, root)
        if grad_enabled():
            r.attach()
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Forward passes inside leave their gradients on this rank; the next backward outside averages what has come together."""
        old, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = old

    @contextmanager
    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Iterator[None]:
        """Inside, ranks may have unequal numbers of batches: one that has no more takes its part with zeros until all are done."""
        if not enable:
            yield
            return
        group = self.process_group.inner
        before = group.joined
        self._joined = group.joined = Join(self, divide_by_initial_world_size, throw_on_early_termination)
        try:
            yield
            self._joined.finish()
        finally:
            self._joined, group.joined = None, before
            self.reducer.divisor = self.process_group.size()

    def state_dict(self, *args: Any, **kw: Any) -> Any:
        """The state of the module, under ``module.``, as PyTorch has it."""
        return super().state_dict(*args, **kw)


_AT = {0: "no more data", 1: "a forward pass", 2: "a forward pass", 3: "backward"}


class Join:
    """Who still has data: every rank says so before each forward pass, those that have none go on saying so."""

    def __init__(self, ddp: DistributedDataParallel, by_initial: bool, throw: bool) -> None:
        self.ddp, self.by_initial, self.throw = ddp, by_initial, throw
        self.last = 0

    def meet(self, mine: int) -> tuple[int, int]:
        """How many ranks have data, and the first that does.

        `mine` is 0 (none), 1 (a forward pass alone), 2 (one whose gradients follow) or 3 (a backward at which the ranks meet).
        """
        g = self.ddp.process_group
        every = np.empty(g.size(), np.int64)
        wire.all_gather(g, np.array(mine, np.int64), every).wait()
        self.every = every
        active = np.flatnonzero(every)
        if every.max() == 3 and (every[active] != 3).any():
            raise RuntimeError(
                "DistributedDataParallel.join: some of the ranks that have data are at backward and others at a forward pass: "
                + ", ".join(f"rank {r}: {_AT[int(k)]}" for r, k in zip(g.ranks, every, strict=True))
            )
        if len(active):
            self.last = int(active[0])
        if self.throw and 0 < len(active) < g.size():
            raise RuntimeError(
                f"DistributedDataParallel.join: rank {', '.join(str(g.ranks[k]) for k in np.flatnonzero(every == 0))} has no more data"
            )
        return len(active), self.last

    def at_backward(self) -> None:
        """A backward at which the ranks meet, since some hold results of collectives: those that have no more data are told."""
        self.meet(3)

    def lacks(self) -> bool:
        """Whether some rank had no more data when the ranks met last."""
        return bool((self.every == 0).any())

    def finish(self) -> None:
        """This rank has no more data: take part until nobody has, then take the module of one that had data last."""
        ddp, due = self.ddp, False
        while True:
            active, root = self.meet(0)
            if not active:
                break
            if self.every.max() == 3:
                attend(ddp.process_group)
                if due:
                    ddp.reducer.shadow()
                due = False
                continue
            gradients = int(self.every.max()) == 2
            if ddp.broadcast_buffers and gradients and ddp.training and (buffers := ddp._buffers_of()):
                ddp._spread(buffers, root)
            due = gradients and is_met(ddp.process_group)  # then the buckets go after the meeting
            if gradients and not due:
                ddp.reducer.shadow()
        ddp._spread([*ddp.module.parameters(), *ddp._buffers_of()], self.last)


__all__ = ["DistributedDataParallel"]
