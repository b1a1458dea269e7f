"""A worker process: it takes lists of numbers from its queue, makes batches, and sends them, or what went wrong."""

from __future__ import annotations

import pickle
import random
import traceback
from multiprocessing import parent_process
from queue import Empty
from typing import Any, NamedTuple

import numpy as np

from ....ops.random.generator import default_generator
from .fetch import Fetcher

POLL = 5.0  # seconds after which a worker looks whether anybody still waits for it


class WorkerInfo:
    """What a worker knows of itself: `id`, `num_workers`, `seed` and its copy of the `dataset`."""

    def __init__(self, **kw: Any) -> None:
        self.__dict__.update(kw)

    def __setattr__(self, name: str, value: Any) -> None:
        raise RuntimeError(f"Cannot assign attributes to {type(self).__name__} objects")

    def __repr__(self) -> str:
        return f"WorkerInfo({', '.join(f'{k}={v}' for k, v in self.__dict__.items())})"


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process, what it knows of itself; elsewhere None."""
    return _info


class Failure(NamedTuple):
    """An exception on its way to the main process."""

    kind: type[BaseException]
    text: str
    where: str

    @staticmethod
    def of(e: BaseException, where: str) -> Failure:
        return Failure(type(e), traceback.format_exc(), where)

    def reraise(self) -> None:
        """Raise it here, with the traceback it had there as its message."""
        text = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            raise KeyError(_Verbatim(text))
        if isinstance(getattr(self.kind, "message", None), property):
            raise self.kind(message=text)  # type: ignore[call-arg]
        try:
            e = self.kind(text)
        except Exception:  # an exception with a constructor of its own: the text says what it was
            raise RuntimeError(text) from None
        raise e


class _Verbatim(str):
    """A key that is shown with its line ends."""

    def __repr__(self) -> str:
        return str(self)


class End(NamedTuple):
    """A worker's iterable dataset has no more examples."""

    worker: int


class Resume(NamedTuple):
    """Start a new pass."""

    seed: int


def seed_all(seed: int) -> None:
    """Every source of random numbers that programs use."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    default_generator.manual_seed(seed)


def work(
    dataset: Any,
    how: tuple[Any, ...],
    tasks: Any,
    results: Any,
    stop: Any,
    seed: int,
    which: int,
    total: int,
    init: Any,
) -> None:
    """The life of a worker."""
    global _info
    from .... import set_num_threads

    set_num_threads(1)  # there are as many workers as the user wants to be busy
    where = f"in DataLoader worker process {which}"
    seed_all(seed + which)
    _info = WorkerInfo(id=which, num_workers=total, seed=seed + which, dataset=dataset)
    fetcher: Any = None
    try:
        if init is not None:
            init(which)
        fetcher = Fetcher(dataset, *how)
    except Exception as e:
        fetcher = Failure.of(e, where)
    ended = False
    try:
        while True:
            try:
                task = tasks.get(timeout=POLL)
            except Empty:
                parent = parent_process()
                if stop.is_set() or (parent is not None and not parent.is_alive()):
                    break
                continue
            if task is None:
                break
            if stop.is_set():
                continue
            if isinstance(task, Resume):
                seed_all(task.seed + which)
                ended = False
                try:
                    if not isinstance(fetcher, Failure):
                        fetcher = Fetcher(dataset, *how)
                except Exception as e:
                    fetcher = Failure.of(e, where)
                results.put((None, pickle.dumps(task)))
                continue
            if ended:
                continue
            number, index = task
            data: Any
            if isinstance(fetcher, Failure):
                data, ended = fetcher, True
            else:
                try:
                    data = fetcher.fetch(index)
                except StopIteration as e:
                    if fetcher.iterator is None:
                        data = Failure.of(e, where)
                    else:
                        data, ended = End(which), True
                except Exception as e:
                    data = Failure.of(e, where)
            results.put((number, _packed(data, where)))
    except KeyboardInterrupt:
        pass  # the main process has it too, and says so
    if stop.is_set():
        results.cancel_join_thread()
    results.close()


def _packed(data: Any, where: str) -> bytes:
    """Pickled here, and not in the queue's thread, which could tell nobody that it failed."""
    try:
        return pickle.dumps(data, protocol=5)
    except Exception as e:
        text = data.text if isinstance(data, Failure) else Failure.of(e, where).text
        return pickle.dumps(Failure(RuntimeError, text, where))
