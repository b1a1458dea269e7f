"""Gradients of all ranks averaged in buckets, each on its way as soon as backward has completed it.

A walk says of each parameter when its last cotangent has come (``core/walk.py``, `early`). The ranks' buckets go in one order, whatever the order of a
rank's graph. A parameter that a rank did not use counts as zero there; one that no rank used keeps the gradient it has.
"""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any

import numpy as np

from ..core import dispatch
from ..core.dispatch import innermost
from ..core.reverse import Leaf, Node
from ..core.shapes import zeros_like_tensor
from ..core.tensor import Tensor
from ..core.walk import reachable
from . import wire
from .groups import ProcessGroup
from .wire import Work

MB = 1 << 20


class Bucket:
    """Parameters whose gradients are reduced together, in one buffer: their elements, then one number each, whether it was used."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype, self.params, self.places, self.size = dtype, [], [], 0
        self.buffer: Any = None
        self.missing = 0
        self.work: Work | None = None

    params: list[int]
    places: list[slice]

    def add(self, index: int, p: Tensor) -> None:
        """Another parameter."""
        self.params.append(index)
        self.places.append(slice(self.size, self.size + p.numel()))
        self.size += p.numel()

    def begin(self) -> None:
        """A new buffer: the gradients of the last backward are parts of the one before."""
        self.buffer = np.empty(self.size + len(self.params), self.dtype)
        self.buffer[self.size :] = 0
        self.missing = len(self.params)
        self.work = None


class Reducer:
    """The buckets of a module's parameters, the last ones first, since backward begins at the end."""

    def __init__(self, params: list[Tensor], group: ProcessGroup, cap: float, first: float) -> None:
        self.params, self.group = params, group
        self.divisor = group.size()
        self.sync = True
        self.buckets: list[Bucket] = []
        self.place: dict[int, tuple[Bucket, int]] = {}
        open_: dict[Any, Bucket] = {}
        for index in reversed(range(len(params))):
            p = params[index]
            d = innermost(p).dtype
            limit = first if not self.buckets or self.buckets[0] is open_.get(d) else cap
            b = open_.get(d)
            if b is None or (b.size and (b.size + p.numel()) * d.itemsize > limit * MB):
                b = open_[d] = Bucket(d)
                self.buckets.append(b)
            self.place[index] = (b, len(b.params))
            b.add(index, p)
        self.leaves: dict[Leaf, int] = {}
        self._sent = 0
        self._told: set[int] = set()
        self._lock = threading.Lock()
        LIVING.add(self)

    def attach(self) -> None:
        """Have walks tell when a gradient of ours is complete."""
        self.leaves = {}
        for k, p in enumerate(self.params):
            if type(p._aux) is Leaf:
                p._aux.early = self
                self.leaves[p._aux] = k
        dispatch.EARLY = begin_walk

    # -- one backward -------------------------------------------------------------------------------------------------
    def begin(self) -> None:
        """A backward begins."""
        self._sent, self._told = 0, set()
        for b in self.buckets:
            b.begin()

    def tell(self, leaf: Leaf, g: Tensor | None) -> None:
        """The gradient of a parameter is complete: into its bucket, which goes when it is full and its turn has come."""
        if g is None:
            return
        self._put(self.leaves[leaf], innermost(g))
        self._send_ready()

    def _put(self, index: int, g: Any) -> None:
        if index in self._told:
            return
        self._told.add(index)
        bucket, k = self.place[index]
        part = bucket.buffer[bucket.places[k]].reshape(self.params[index].shape)
        old = self.params[index].grad
        if g is None and old is None:
            part[...] = 0
        elif g is None or old is None:
            part[...] = innermost(old) if g is None else g
        else:
            np.add(innermost(old), g, out=part)
        bucket.buffer[bucket.size + k] = 0 if g is None and old is None else 1
        bucket.missing -= 1

    def _send_ready(self) -> None:
        while self._sent < len(self.buckets) and not self.buckets[self._sent].missing:
            b = self.buckets[self._sent]
            self._sent += 1
            with self._lock:
                b.work = wire.all_reduce(self.group, None, b.buffer)
            PUMP.add(b.work)
        PUMP.poke()

    def finish(self, got: dict[Node, Any]) -> None:
        """The rest of the buckets goes, all come back, and the averages take the place of the gradients."""
        for index in range(len(self.params)):
            self._put(index, None)
        self._send_ready()
        node_of = {k: leaf for leaf, k in self.leaves.items()}
        for b in self.buckets:
            assert b.work is not None
            b.work.wait()
            if self.divisor != 1:
                np.divide(b.buffer[: b.size], self.divisor, out=b.buffer[: b.size], casting="unsafe")
            for k, index in enumerate(b.params):
                if not b.buffer[b.size + k]:
                    continue  # no rank used it
                p = self.params[index]
                p.grad = None
                got[node_of[index]] = Tensor(b.buffer[b.places[k]].reshape(p.shape))
            b.buffer = b.work = None

    def finish_recorded(self, got: dict[Node, Any]) -> None:
        """The averages as functions that can be differentiated in turn (``create_graph=True``)."""
        from .nn.functional import all_reduce

        for leaf, k in sorted(self.leaves.items(), key=lambda i: i[1]):
            p = self.params[k]
            g = got.get(leaf)
            old = p.grad
            total = zeros_like_tensor(p) if g is None else g
            total = total if old is None else total + old
            got[leaf] = all_reduce(total, group=self.group) / self.divisor
            p.grad = None

    def shadow(self) -> None:
        """The part of a rank that has no more data: its gradients are zero."""
        for b in self.buckets:
            b.begin()
            b.buffer[:] = 0
            b.work = wire.all_reduce(self.group, None, b.buffer)
        for b in self.buckets:
            b.work.wait()  # type: ignore[union-attr]
            b.buffer = b.work = None


LIVING: weakref.WeakSet[Reducer] = weakref.WeakSet()


class Early:
    """What a walk tells of leaves: `turns` says after which node each is complete."""

    def __init__(self, reducers: list[Reducer], turns: dict[Node, list[Any]], recorded: bool) -> None:
        self.reducers, self.turns, self.recorded = reducers, turns, recorded

    def finish(self, got: dict[Node, Any]) -> None:
        """The walk is over."""
        for r in self.reducers:
            r.finish_recorded(got) if self.recorded else r.finish(got)


def begin_walk(starts: list[tuple[Node, Any]], create_graph: bool) -> Early | None:
    """Which reducers a backward concerns, and when the gradient of each of their parameters is complete."""
    if not LIVING:
        dispatch.EARLY = None
        return None
    turns: dict[Node, list[Any]] = {}
    seen: set[Leaf] = set()
    reducers: dict[Reducer, None] = {}
    for n in reachable(dict.fromkeys(n for n, _ in starts)):  # in the order in which they were made
        for p in n.parents:
            if type(p) is Leaf and p.early is not None and p not in seen:
                seen.add(p)
                if not p.early.sync:
                    continue
                reducers[p.early] = None
                if not create_graph:
                    turns.setdefault(n, []).append((p, p.early.tell))
    if not reducers:
        return None
    if not create_graph:
        for r in reducers:
            r.begin()
    return Early(list(reducers), turns, create_graph)


# -- progress -------------------------------------------------------------------------------------------------------------


class Pump:
    """A thread that lets messages go on while this one computes; it sleeps when there are none."""

    def __init__(self) -> None:
        self._works: list[Work] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self.pause = (
            1e-3  # each look takes the interpreter from the thread that computes: at 0.1 ms that cost more than it hid
        )
        self.threaded = True

    def add(self, work: Work) -> None:
        """Look after a message."""
        if work._over or not work._requests:
            return
        work.guard = threading.Lock()
        with self._lock:
            self._works.append(work)
        if self.threaded and self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="chainrule-pump")
            self._thread.start()
        self._wake.set()

    def poke(self) -> None:
        """Let all messages go on a little."""
        with self._lock:
            self._works = [w for w in self._works if not w._over and not w._test()]

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            while self._works:
                try:
                    self.poke()
                except Exception:  # whoever waits gets it
                    self._works = []
                time.sleep(self.pause)


PUMP = Pump()
