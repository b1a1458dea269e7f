"""``futures.Future``: a result that is there, or that somebody sets."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any


class Future:
    """A result to come: ``wait()`` gives it."""

    def __init__(self, *, devices: Any = None) -> None:
        self._inner: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def set_result(self, result: Any) -> None:
        """Say what the result is."""
        self._inner.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Say what went wrong."""
        self._inner.set_exception(result)

    def done(self) -> bool:
        """Whether the result is there."""
        return self._inner.done()

    def wait(self) -> Any:
        """The result, once it is there."""
        return self._inner.result()

    value = wait

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A future of ``callback(self)``."""
        new = Future()

        def run(_: Any) -> None:
            try:
                new.set_result(callback(self))
            except BaseException as e:
                new.set_exception(e)

        self._inner.add_done_callback(run)
        return new

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call ``callback(self)`` once the result is there."""
        self._inner.add_done_callback(lambda _: callback(self))


def wait_all(futures: list[Future]) -> list[Any]:
    """The results of all."""
    return [f.wait() for f in futures]


def collect_all(futures: list[Future]) -> Future:
    """A future of the list of futures, there once all are."""
    out = Future()
    for f in futures:
        f.wait()
    out.set_result(futures)
    return out
