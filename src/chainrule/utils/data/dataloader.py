"""DataLoader: batches of a dataset, made here or ahead of time by worker processes."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import pickle
import queue
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from ._utils.collate import default_collate, default_convert
from ._utils.fetch import Fetcher
from ._utils.worker import End, Failure, Resume, get_worker_info, work
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, fresh_seed

T_co = TypeVar("T_co", covariant=True)
LOOK = 2.0  # seconds after which the main process looks whether its workers are alive
GRACE = 2.0  # seconds that a worker is given to end by itself


class _InfiniteConstantSampler(Sampler[Any]):
    """None, for ever: an iterable dataset has no numbers."""

    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat(None)


class DataLoader(Generic[T_co]):
    """``for batch in DataLoader(dataset, batch_size=...)``: examples in the order of a sampler, collated to batches."""

    _iterator: Any = None
    _ready = False
    _fixed = frozenset(("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"))

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn, self.generator, self.in_order = worker_init_fn, generator, in_order
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers = persistent_workers
        iterable = isinstance(dataset, IterableDataset)
        if iterable:
            _refuse_order(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            made: Any = dataset
            sampler = _InfiniteConstantSampler() if iterable else SequentialSampler(made)
            if shuffle and not iterable:
                sampler = RandomSampler(made, generator=generator)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.sampler, self.batch_sampler = (
            batch_size,
            drop_last,
            sampler,
            batch_sampler,
        )
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self._ready = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._ready and name in self._fixed:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """How worker processes are started: "fork", "spawn", "forkserver", a context, or None for Python's default."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, how: Any) -> None:
        if how is not None:
            if not self.num_workers:
                raise ValueError(
                    f"multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers={self.num_workers}"
                )
            if isinstance(how, str):
                if how not in multiprocessing.get_all_start_methods():
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {multiprocessing.get_all_start_methods()!r}, but got {how!r}"
                    )
                how = multiprocessing.get_context(how)
            elif not isinstance(how, multiprocessing.context.BaseContext):
                raise TypeError(
                    f"multiprocessing_context option should be a valid context object or a string specifying the start method, but got {how!r}"
                )
        self._context = how

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __iter__(self) -> Iterator[Any]:
        if not self.num_workers:
            return _Here(self)
        if not self.persistent_workers:
            return _Workers(self)
        if self._iterator is None:
            self._iterator = _Workers(self)
        else:
            self._iterator.restart(self)
        return self._iterator

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)
        n = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if not num_workers and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. let num_workers > 0 to enable multiprocessing, otherwise "
            "set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and not num_workers:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _refuse_order(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """An iterable dataset has an order of its own."""
    for name, v in (("shuffle", shuffle), ("sampler", sampler), ("batch_sampler", batch_sampler)):
        if v not in (None, False):
            raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={v}")


class _Iterator:
    """A pass over the batches: the order of numbers, a seed for workers, and a look at what an iterable dataset promised."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._begin(loader)

    def _begin(self, loader: DataLoader[Any]) -> None:
        self.sampler = loader._index_sampler
        self.order = iter(self.sampler)
        self.seed = fresh_seed(loader.generator)
        self.given, self.expected, self.warned = 0, None, False
        if isinstance(loader.dataset, IterableDataset):
            with contextlib.suppress(TypeError, NotImplementedError):
                self.expected = len(loader)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        data = self._next()
        self.given += 1
        if self.expected is not None and self.given > self.expected and not self.warned:
            self.warned = True
            warnings.warn(
                f"Length of IterableDataset was reported to be {self.expected} (when accessing len(dataloader)), but {self.given} samples "
                f"have been fetched. With worker processes this may mean that each of them gives the whole dataset: use get_worker_info() "
                f"to give a part in each.",
                stacklevel=2,
            )
        return data

    next = __next__

    def _next(self) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.sampler)


class _Here(_Iterator):
    """Batches made in this process."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self.fetcher = Fetcher(loader.dataset, loader.batch_sampler is not None, loader.collate_fn, loader.drop_last)

    def _next(self) -> Any:
        return self.fetcher.fetch(next(self.order))


class _Workers(_Iterator):
    """Batches made by worker processes, some of them ahead of time.

    Tasks have numbers; workers get them in turn and answer through one queue. Answers wait in `waiting` until it is their turn,
    unless any order will do. Whatever goes wrong, the processes are ended: at the end of the pass, with this object, at exit.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self.timeout, self.persistent, self.in_order = loader.timeout, loader.persistent_workers, loader.in_order
        self.ahead = (loader.prefetch_factor or 1) * loader.num_workers
        self.results, self.stop = context.Queue(), context.Event()
        self.tasks: list[Any] = []
        self.processes: list[Any] = []
        self._end = weakref.finalize(self, _shut_down, os.getpid(), self.processes, self.tasks, self.results, self.stop)
        super().__init__(loader)
        how = (loader.batch_sampler is not None, loader.collate_fn, loader.drop_last)
        for k in range(loader.num_workers):
            q = context.Queue()
            q.cancel_join_thread()
            args = (
                loader.dataset,
                how,
                q,
                self.results,
                self.stop,
                self.seed,
                k,
                loader.num_workers,
                loader.worker_init_fn,
            )
            p = context.Process(target=work, args=args, daemon=True)
            p.start()  # raises here if the dataset cannot be sent
            self.tasks.append(q)
            self.processes.append(p)
        self._start()

    def _start(self) -> None:
        self.sent, self.wanted = 0, 0
        self.active = [True] * len(self.processes)
        self.turn = itertools.cycle(range(len(self.processes)))
        self.waiting: dict[int, Any] = {}
        self.open: dict[int, int] = {}  # task -> worker
        self.done = False
        for _ in range(self.ahead):
            self._send()

    def restart(self, loader: DataLoader[Any]) -> None:
        """A new pass with the same processes."""
        if not self._end.alive:
            raise RuntimeError("DataLoader: its persistent workers have ended with an error; make a new DataLoader")
        self._begin(loader)
        for q in self.tasks:
            q.put(Resume(self.seed))
        left = len(self.processes)
        while left:  # answers of a pass that was left early come before
            number, data = self._receive()
            left -= number is None and pickle.loads(data) == Resume(self.seed)
        self._start()

    def _send(self) -> None:
        """Give the next task to the next worker that has examples left."""
        if not any(self.active):
            return
        try:
            index = next(self.order)
        except StopIteration:
            return
        k = next(self.turn)
        while not self.active[k]:
            k = next(self.turn)
        self.open[self.sent] = k
        self.tasks[k].put((self.sent, index))
        self.sent += 1

    def _receive(self) -> tuple[Any, bytes]:
        """The next answer; an error if it takes too long, or if a worker is gone."""
        end = time.monotonic() + self.timeout if self.timeout else None
        while True:
            wait = LOOK if end is None else max(0.0, min(LOOK, end - time.monotonic()))
            try:
                return self.results.get(timeout=wait)
            except queue.Empty:
                dead = [p for k, p in enumerate(self.processes) if self.active[k] and not p.is_alive()]
                if dead:
                    pids = ", ".join(f"{p.pid} (exit code {p.exitcode})" for p in dead)
                    self._end()
                    raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from None
                if end is not None and time.monotonic() >= end:
                    self._end()
                    raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds") from None

    def _next(self) -> Any:
        while not self.done:
            if self.in_order:
                while self.wanted < self.sent and self.wanted not in self.open and self.wanted not in self.waiting:
                    self.wanted += 1  # a task that its worker had no more examples for
                if self.wanted in self.waiting:
                    self.wanted += 1
                    return self._give(self.waiting.pop(self.wanted - 1))
            elif self.waiting:
                return self._give(self.waiting.pop(next(iter(self.waiting))))
            if not self.open:
                break
            number, raw = self._receive()
            if number is None:
                continue
            data = pickle.loads(raw)
            k = self.open.pop(number, None)
            if isinstance(data, End):
                self.active[data.worker] = False
                self.open = {n: w for n, w in self.open.items() if w != data.worker}
                if not self.persistent:
                    self.tasks[data.worker].put(None)
                self._send()
            elif k is not None:
                self.waiting[number] = data
        self.done = True
        if not self.persistent:
            self._end()
        raise StopIteration

    def _give(self, data: Any) -> Any:
        self._send()
        if isinstance(data, Failure):
            if not self.persistent:
                self._end()
            data.reraise()
        return data


def _shut_down(owner: int, processes: list[Any], tasks: list[Any], results: Any, stop: Any) -> None:
    """End the worker processes: they are asked, then made to."""
    if os.getpid() != owner:  # a copy of the loader in a process that was forked
        return
    stop.set()
    for q in tasks:
        with contextlib.suppress(Exception):
            q.put(None)
    end = time.monotonic() + GRACE
    for p in processes:
        while p.is_alive() and time.monotonic() < end:
            with contextlib.suppress(Exception):  # a worker that is sending cannot end before its pipe is read
                results.get(timeout=0.02)
        if p.is_alive():
            p.terminate()
        p.join(1.0)
        if p.is_alive():
            p.kill()
            p.join()
    for q in (*tasks, results):
        with contextlib.suppress(Exception):
            q.cancel_join_thread()
            q.close()


__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
