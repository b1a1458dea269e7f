"""DistributedSampler: every process sees a part of the examples of its own, all of them parts of one length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...ops.random.generator import Generator, randperm
from .sampler import Sampler


class DistributedSampler(Sampler[int]):
    """The numbers ``rank, rank + num_replicas, ...`` of an order that all processes know, filled up (or cut) to one length."""

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            from ...distributed.groups import get_rank, get_world_size, is_initialized

            if not is_initialized():
                raise RuntimeError(
                    "DistributedSampler: there is no process group to ask; call distributed.init_process_group(), or give num_replicas= and rank= "
                    "(of how many processes this is which)"
                )
            num_replicas = get_world_size() if num_replicas is None else num_replicas
            rank = get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last and n % num_replicas else -(-n // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        order = list(range(n))
        if self.shuffle:
            order = randperm(n, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        while len(order) < self.total_size and order:
            order += order[: self.total_size - len(order)]
        return iter(order[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Another order for another pass: the same one in all processes."""
        self.epoch = epoch


__all__ = ["DistributedSampler"]
