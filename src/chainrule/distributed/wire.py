"""Collectives on arrays: each begins a call of MPI on the memory itself and returns a handle (`Work`) to wait for its end.

An array that MPI reads or writes is contiguous (C order). In a group of one process a collective is a copy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import engine, groups
from .engine import call, raw, reduction
from .errors import DistError
from .groups import ProcessGroup

IN_PLACE = None


class Work:
    """A collective that was begun: ``wait()`` for its end, or ask with ``is_completed()``."""

    def __init__(self, group: ProcessGroup, name: str, requests: list[Any], held: Any = None, nbytes: int = 0) -> None:
        self._group, self._what, self._requests, self._held, self._nbytes = (
            group,
            group.signature(),
            requests,
            held,
            nbytes,
        )
        self._name, self._then = name, []
        self._over = False
        self._ready = 0.0
        if engine.LINK is not None and requests:
            self._ready = engine.over_the_link(nbytes)

    _then: list[Callable[[], Any]]
    guard: Any = None  # a lock, where a second thread asks too

    def _test(self) -> bool:
        if self.guard is not None:
            with self.guard:
                return self._ask()
        return self._ask()

    def _ask(self) -> bool:
        left = self._requests
        while left and call(left[-1].Test):
            left.pop()
        return not left and (not self._ready or time.perf_counter() >= self._ready)

    def _finish(self) -> None:
        if not self._over:
            self._over = True
            self._held = None
            for f in self._then:
                f()

    def is_completed(self) -> bool:
        """Whether it is over; this also lets it go on."""
        if not self._over and self._test():
            self._finish()
        return self._over

    def is_success(self) -> bool:
        """Whether it is over."""
        return self.is_completed()

    def exception(self) -> None:
        """None: what goes wrong is raised by wait()."""
        return None

    def wait(self, timeout: Any = None) -> bool:
        """Wait for the end; raises a DistTimeoutError after `timeout` (the group's, if not given)."""
        if not self._over:
            self._group.wait(self._test, None if timeout is None else engine.seconds(timeout), self._nbytes, self._what)
            self._finish()
        return True

    synchronize = wait

    def then(self, f: Callable[[], Any]) -> Work:
        """Call `f` when it is over."""
        if self._over:
            f()
        else:
            self._then.append(f)
        return self

    def get_future(self) -> Any:
        """The end as a Future."""
        from ..world.futures import Future

        future: Any = Future()
        self.then(lambda: future.set_result(None))
        inner = future.wait
        future.wait = lambda: (self.wait(), inner())[1]
        return future


def done(g: ProcessGroup, name: str) -> Work:
    """A collective that was over at once."""
    w = Work(g, name, [])
    w._over = True
    return w


def typed(x: np.ndarray, how: str) -> tuple[list[Any], Any]:
    """What MPI is told of an array that is reduced: memory, number, type; and the operation."""
    kind, operation = reduction(groups.MPI, x.dtype, how)
    view = x.reshape(-1)
    if x.dtype.kind == "b" or kind is groups.MPI.BYTE:
        return [view.view(np.uint8), x.size, kind], operation
    if x.dtype.kind not in "iufc" or operation not in (groups.MPI.SUM, groups.MPI.PROD, groups.MPI.MIN, groups.MPI.MAX):
        if x.dtype.kind not in "iu":
            view = view.view(np.uint16 if x.dtype.itemsize == 2 else np.uint32)
    return [view, x.size, kind], operation


def all_reduce(g: ProcessGroup, x: np.ndarray | None, y: np.ndarray, how: str = "SUM") -> Work:
    """``y = reduction of all x``; in place where x is None."""
    g.begin("all_reduce", y, "" if how == "SUM" else how)
    if g.comm is None:
        if x is not None:
            np.copyto(y, x)
        return done(g, "all_reduce")
    target, operation = typed(y, how)
    source = groups.MPI.IN_PLACE if x is None else typed(x, how)[0]
    return Work(g, "all_reduce", [call(g.comm.Iallreduce, source, target, operation)], (x, y), y.nbytes)


def reduce(g: ProcessGroup, x: np.ndarray, y: np.ndarray | None, root: int, how: str = "SUM") -> Work:
    """``y = reduction of all x`` on the root; y is None elsewhere, and may be x."""
    g.begin("reduce", x, f"to rank {g.ranks[root]}" + ("" if how == "SUM" else f" {how}"))
    if g.comm is None:
        if y is not x:
            np.copyto(y, x)  # type: ignore[arg-type]
        return done(g, "reduce")
    source, operation = typed(x, how)
    if g.rank() == root:
        target = typed(y, how)[0]  # type: ignore[arg-type]
        source = groups.MPI.IN_PLACE if y is x else source
    else:
        target = None
    return Work(g, "reduce", [call(g.comm.Ireduce, source, target, operation, root)], (x, y), x.nbytes)


def broadcast(g: ProcessGroup, x: np.ndarray, root: int) -> Work:
    """The root's x becomes everybody's."""
    g.begin("broadcast", x, f"from rank {g.ranks[root]}")
    if g.comm is None:
        return done(g, "broadcast")
    return Work(g, "broadcast", [call(g.comm.Ibcast, raw(x), root)], x, x.nbytes)


def all_gather(g: ProcessGroup, x: np.ndarray, y: np.ndarray) -> Work:
    """``y[r] = x of rank r``."""
    g.begin("all_gather", x)
    if g.comm is None:
        np.copyto(y.reshape(x.shape), x)
        return done(g, "all_gather")
    return Work(g, "all_gather", [call(g.comm.Iallgather, raw(x), raw(y))], (x, y), y.nbytes)


def reduce_scatter(g: ProcessGroup, x: np.ndarray, y: np.ndarray, how: str = "SUM") -> Work:
    """``y = reduction over ranks of x[this rank]``."""
    g.begin("reduce_scatter", x, "" if how == "SUM" else how)
    if g.comm is None:
        np.copyto(y, x.reshape(y.shape))
        return done(g, "reduce_scatter")
    (source, operation), target = typed(x, how), typed(y, how)[0]
    source[1] = y.size  # MPI counts a block
    return Work(g, "reduce_scatter", [call(g.comm.Ireduce_scatter_block, source, target, operation)], (x, y), x.nbytes)


def all_to_all(g: ProcessGroup, x: np.ndarray, y: np.ndarray, xs: Sequence[int], ys: Sequence[int]) -> Work:
    """Rows of x go to the ranks, ``xs[r]`` to rank r; rows of y come from them, ``ys[r]`` from rank r."""
    g.begin("all_to_all", x, "" if len(set(xs)) == 1 else "in uneven parts", sizes=len(set(xs)) == 1)
    if g.comm is None:
        np.copyto(y, x)
        return done(g, "all_to_all")
    row = x.dtype.itemsize * int(np.prod(x.shape[1:], dtype=np.int64))
    cut = lambda sizes: ([n * row for n in sizes], [int(sum(sizes[:r])) * row for r in range(len(sizes))])
    byte = groups.MPI.BYTE
    request = call(g.comm.Ialltoallv, [raw(x), *cut(xs), byte], [raw(y), *cut(ys), byte])
    return Work(g, "all_to_all", [request], (x, y), x.nbytes)


def gather(g: ProcessGroup, x: np.ndarray, y: np.ndarray | None, root: int) -> Work:
    """``y[r] = x of rank r`` on the root; y is None elsewhere."""
    g.begin("gather", x, f"to rank {g.ranks[root]}")
    if g.comm is None:
        np.copyto(y.reshape(x.shape), x)  # type: ignore[union-attr]
        return done(g, "gather")
    target = None if y is None else raw(y)
    return Work(g, "gather", [call(g.comm.Igather, raw(x), target, root)], (x, y), x.nbytes)


def scatter(g: ProcessGroup, x: np.ndarray | None, y: np.ndarray, root: int) -> Work:
    """``y = x[this rank]`` of the root's x; x is None elsewhere."""
    g.begin("scatter", y, f"from rank {g.ranks[root]}")
    if g.comm is None:
        np.copyto(y, x.reshape(y.shape))  # type: ignore[union-attr]
        return done(g, "scatter")
    source = None if x is None else raw(x)
    return Work(g, "scatter", [call(g.comm.Iscatter, source, raw(y), root)], (x, y), y.nbytes)


def send(g: ProcessGroup, x: np.ndarray, to: int, tag: int = 0, control: bool = False) -> Work:
    """Send x to a rank of the group."""
    g_comm = g.control if control else g.comm
    if g_comm is None:
        g.to_self.setdefault(tag, []).append(x.copy())
        return done(g, "send")
    w = Work(g, "send", [call(g_comm.Isend, raw(x), to, tag)], x, x.nbytes)
    w._what = f"send of shape {list(x.shape)} {x.dtype} to rank {g.ranks[to]}"
    return w


def recv(g: ProcessGroup, x: np.ndarray, source: int | None, tag: int = 0, control: bool = False) -> Work:
    """Receive into x from a rank of the group, or (None) from any."""
    g_comm = g.control if control else g.comm
    if g_comm is None:
        waiting = g.to_self.get(tag)
        if not waiting:
            raise DistError("distributed: recv: a process alone has sent itself nothing to receive")
        sent = waiting.pop(0)
        if sent.size != x.size or sent.dtype != x.dtype:
            raise DistError(
                f"distributed: recv: a tensor of shape {list(x.shape)} {x.dtype} cannot take what was sent: {list(sent.shape)} {sent.dtype}"
            )
        np.copyto(x, sent.reshape(x.shape))
        return done(g, "recv")
    request = call(g_comm.Irecv, raw(x), groups.MPI.ANY_SOURCE if source is None else source, tag)
    w = Work(g, "recv", [request], x, x.nbytes)
    w._what = (
        f"recv of shape {list(x.shape)} {x.dtype} from {'any rank' if source is None else f'rank {g.ranks[source]}'}"
    )
    return w


def barrier(g: ProcessGroup) -> Work:
    """Over when every rank has come."""
    g.begin("barrier")
    if g.comm is None:
        return done(g, "barrier")
    return Work(g, "barrier", [call(g.comm.Ibarrier)])
