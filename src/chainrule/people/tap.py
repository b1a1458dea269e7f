"""A tap: every run of an op on arrays, seen by whoever listens. Nobody pays while nobody does.

While a tap is open, the two ways to an array (:meth:`Op.run`, and the bodies that the closures of :mod:`chainrule.core.fast` hold) lead
through it. Levels need no notice: by the time an op runs on arrays, every transform has done its work, so derivatives are seen as the ops they
are made of. The tape's nodes are told the line that made them, so that an op of a backward pass belongs to a line of the forward pass.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

from ..core.dispatch import innermost
from ..core.op import OPS, Op
from ..core.tensor import Tensor
from ..core.watch import WATCHERS, unwatch, watch
from .frames import Place, place

_CELLS = ("fn", "large", "quick")
_LOCK = threading.RLock()


class Event:
    """One run of an op: where, on what, from when to when (seconds), and which events made its arguments."""

    __slots__ = (
        "backward", "children", "end", "index", "inputs", "kept", "live", "op", "outputs", "parent", "parents", "place", "start", "thread",
    )  # fmt: skip

    def __init__(self, index: int, op: Op, start: float, parent: Event | None) -> None:
        self.index, self.op, self.start, self.parent = index, op, start, parent
        self.end = start
        self.place: Place
        self.parents: list[tuple[int, int]] = []  # (number of the argument, index of the event that made it)
        self.inputs: list[Any] = []
        self.outputs: list[tuple[tuple[Any, ...], str, int]] = []  # shape, type and bytes
        self.children = self.live = self.kept = self.thread = 0
        self.backward = ""

    @property
    def seconds(self) -> float:
        """From beginning to end."""
        return self.end - self.start


class Tap:
    """What is heard: events in the order in which they began, and the memory that their results hold."""

    def __init__(
        self, stack: bool = False, on_event: Callable[[Event, list[Any], list[Any]], None] | None = None
    ) -> None:
        self.events: list[Event] = []
        self.stack, self.on_event = stack, on_event
        self.makers: dict[int, int] = {}  # id of a payload that is alive -> index of the event that made it
        self.live = self.peak = 0
        self.peak_event: Event | None = None
        self.timeline: list[tuple[float, int]] = []
        self.kept: dict[int, int] = {}  # id of an owner of memory that a node keeps -> bytes
        self.begin = perf_counter()
        self._owned: dict[int, int] = {}
        self._local = threading.local()
        self._refs: list[Any] = []
        self._nodes: list[tuple[weakref.ref[Any], list[tuple[int, int]], int]] = []
        self._settled = False

    # -- hearing ------------------------------------------------------------------------------------------------------
    def hear(self, op: Op, payloads: Any, call: Callable[[], Any], depth: int) -> Any:
        """Run `call`, which is `op` on arrays, and note it."""
        local = self._local
        if getattr(local, "quiet", False):
            return call()
        parent = getattr(local, "top", None)
        e = Event(len(self.events), op, 0.0, parent)
        self.events.append(e)
        e.thread = threading.get_ident()
        local.quiet = True
        try:
            e.place = place(depth + 1, self.stack)
            e.backward = e.place.backward
            if e.backward and not self._settled:
                self.settle()
            for k, v in enumerate(payloads):
                if (maker := self.makers.get(id(v))) is not None:
                    e.parents.append((k, maker))
        finally:
            local.quiet = False
        local.top = e
        e.start = perf_counter()
        try:
            y = call()
        finally:
            e.end = perf_counter()
            local.top = parent
        if y is None:  # a body for some arrays only: another one runs, and is heard
            e.op = None  # type: ignore[assignment]
            return None
        if parent is not None:
            parent.children += 1
        local.quiet = True
        try:
            results = [_payload(v) for v in (y if isinstance(y, tuple | list) else (y,))]
            for v in results:
                e.outputs.append(
                    (tuple(getattr(v, "shape", ())), str(getattr(v, "dtype", "?")), int(getattr(v, "nbytes", 0) or 0))
                )
                self._own(e, v, payloads)
            e.live = self.live
            if self.live > self.peak:
                self.peak, self.peak_event = self.live, e
            if self.on_event is not None:
                self.on_event(e, list(payloads), results)
        finally:
            local.quiet = False
        return y

    def _own(self, e: Event, v: Any, inputs: Any) -> None:
        """Remember who made an array, and count its memory until it is freed."""
        if v is None or any(v is x for x in inputs):
            return
        if not self._follow(v, id(v)):
            return
        self.makers[id(v)] = e.index
        owner = v
        while isinstance(getattr(owner, "base", None), np.ndarray):
            owner = owner.base
        if id(owner) not in self._owned and (n := int(getattr(owner, "nbytes", 0) or 0)):
            if (
                isinstance(v, np.ndarray)
                and owner is not v
                and any(isinstance(x, np.ndarray) and np.may_share_memory(x, v) for x in inputs)
            ):
                return  # a view of something that was there before
            self._owned[id(owner)] = n
            self.live += n
            self.timeline.append((perf_counter() - self.begin, self.live))
            self._follow(owner, id(owner), freed=True)

    def _follow(self, v: Any, key: int, freed: bool = False) -> bool:
        def gone() -> None:
            if freed:
                self.live -= self._owned.pop(key, 0)
                self.timeline.append((perf_counter() - self.begin, self.live))
            else:
                self.makers.pop(key, None)

        try:
            self._refs.append(weakref.finalize(v, gone))
            self._refs[-1].atexit = False
        except TypeError:
            self._refs.append(v)  # held, where it cannot be followed: its id stays its own
        return True

    def note(self, node: Any, y: Any, low: Any) -> None:
        """A node of a tape was made: it is told its line, and what it keeps of what was made on the way is counted."""
        p = place(2)
        node.__dict__["site"] = p.site
        if p.backward:  # a checkpoint that runs again: what it keeps is not kept from the forward pass on
            return
        held = [*(node.args or ()), *(node.y if isinstance(node.y, tuple | list) else (node.y,))]
        owners: list[tuple[int, int]] = []
        for x in held:
            if isinstance(x, Tensor):
                v = innermost(x)
                while isinstance(getattr(v, "base", None), np.ndarray):
                    v = v.base
                if id(v) in self._owned:  # inputs and parameters are there anyway
                    owners.append((id(v), int(getattr(v, "nbytes", 0) or 0)))
        results = y if isinstance(y, tuple | list) else (y,)
        maker = next(
            (m for r in results if isinstance(r, Tensor) and (m := self.makers.get(id(innermost(r)))) is not None), -1
        )
        if maker >= 0:
            node.__dict__["event"] = maker
        if not self._settled:
            self._nodes.append((weakref.ref(node), owners, maker))

    def settle(self) -> None:
        """Count what the tape keeps: called when the first op of a backward pass runs. Nodes that are gone by then keep nothing."""
        self._settled = True
        for ref, owners, maker in self._nodes:
            if ref() is None:
                continue
            for key, n in owners:
                if key not in self.kept:
                    self.kept[key] = n
                    if maker >= 0:
                        self.events[maker].kept += n
        self._nodes.clear()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside, this thread is not heard."""
        before = getattr(self._local, "quiet", False)
        self._local.quiet = True
        try:
            yield
        finally:
            self._local.quiet = before

    def leaves(self) -> list[Event]:
        """The events that consist of no others."""
        return [e for e in self.events if e.op is not None and not e.children]

    def close(self) -> None:
        """Let go of what was followed, and of what was tried in vain."""
        for r in self._refs:
            if isinstance(r, weakref.finalize):
                r.detach()
        self._refs.clear()


def _payload(v: Any) -> Any:
    return v._value if isinstance(v, Tensor) else v


# -- opening -------------------------------------------------------------------------------------------------------------

_OPEN: list[Tap] = []
_UNDO: list[tuple[Any, Any]] = []


def _tapped_run(op: Op, run: Callable[..., Any]) -> Callable[..., Any]:
    def tapped(args: Any, kw: dict[str, Any]) -> Any:
        call = lambda: run(args, kw)
        payloads = [_payload(a) for a in args]
        for tap in _OPEN:
            call = lambda tap=tap, inner=call: tap.hear(op, payloads, inner, 2)  # type: ignore[misc]
        return call()

    return tapped


def _tapped_body(op: Op, fn: Callable[..., Any]) -> Callable[..., Any]:
    def tapped(*args: Any) -> Any:
        def plain() -> Any:
            y = fn(*args)
            return np.asarray(y) if isinstance(y, np.generic) else y  # the array that the tensor will hold

        call: Callable[[], Any] = plain
        for tap in _OPEN:
            call = lambda tap=tap, inner=call: tap.hear(op, args, inner, 2)  # type: ignore[misc]
        return call()

    return tapped


def _cells(op: Op) -> Iterator[Any]:
    for name in ("bind", "operator"):
        f: Any = op.__dict__.get(name)
        code = getattr(f, "__code__", None)
        if code is not None and f.__closure__:
            for var, cell in zip(code.co_freevars, f.__closure__, strict=True):
                if var in _CELLS and callable(cell.cell_contents):
                    yield cell


def _install() -> None:
    seen: set[int] = set()
    for op in list(OPS.values()):
        op.__dict__["run"] = _tapped_run(op, type(op).run.__get__(op))
        for cell in _cells(op):
            if id(cell) in seen:  # an operator may be the same function as `bind`
                continue
            seen.add(id(cell))
            _UNDO.append((cell, cell.cell_contents))
            cell.cell_contents = _tapped_body(op, cell.cell_contents)


def _remove() -> None:
    for op in OPS.values():
        op.__dict__.pop("run", None)
    while _UNDO:
        cell, fn = _UNDO.pop()
        cell.cell_contents = fn


@contextmanager
def listening(tap: Tap) -> Iterator[Tap]:
    """Inside, `tap` hears every op that runs on arrays, in any thread."""
    with _LOCK:
        if not _OPEN:
            _install()
        _OPEN.append(tap)
    before = WATCHERS.get()
    watch(note=tap.note if before.note is None else _both(before.note, tap.note))
    tap.begin = perf_counter()
    try:
        yield tap
    finally:
        unwatch(before)
        with _LOCK:
            _OPEN.remove(tap)
            if not _OPEN:
                _remove()
        tap.close()


def _both(first: Callable[..., None], second: Callable[..., None]) -> Callable[..., None]:
    def note(node: Any, y: Any, low: Any) -> None:
        second(node, y, low)
        first(node, y, low)

    return note
