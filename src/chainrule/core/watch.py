"""What looks on while a tape is made and walked: detect_anomaly and saved_tensors_hooks, each in the thread that asked for it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .dispatch import CUT, grad_cut
from .tensor import Tensor

if TYPE_CHECKING:
    from .reverse import Node, Reverse


class Watchers(NamedTuple):
    """Who looks on in this thread (or async task)."""

    note: Callable[[Any, Any, Any], None] | None = None  # of a node that was made: the node, its result, its inputs
    check: Callable[[Any, Any], None] | None = None  # of the cotangents that a node gave
    hooks: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] = ()  # pairs of pack and unpack; the last holds
    refused: str | None = None  # why no hooks may be set here


NOBODY = Watchers()
WATCHERS: ContextVar[Watchers] = ContextVar("chainrule_watchers", default=NOBODY)


class _Watched:
    """Whether anybody, in any thread, looks on: the only question that is asked for each op."""

    on = 0


WATCHED = _Watched()


def watch(**changes: Any) -> None:
    """Change who looks on in this thread; `unwatch` takes it back."""
    WATCHED.on += 1
    WATCHERS.set(WATCHERS.get()._replace(**changes))


def unwatch(before: Watchers) -> None:
    """Take back what `watch` changed."""
    WATCHERS.set(before)
    WATCHED.on = max(0, WATCHED.on - 1)


class Packed:
    """What a pack hook made of a saved tensor, and the hook that makes a tensor of it again."""

    __slots__ = ("below", "data", "unpack")

    def __init__(self, data: Any, unpack: Callable[..., Any]) -> None:
        self.data, self.unpack = data, unpack
        self.below: Tensor | None = None  # what the saved tensor was at the levels below its tape, without its elements

    def tensor(self, level: Reverse) -> Tensor:
        """The tensor as the tape's own level keeps it: one level down."""
        x = self.unpack(self.data)
        if not isinstance(x, Tensor):
            raise TypeError(
                f"saved_tensors_hooks: Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(x).__name__}"
            )
        y = lowered(x, level)
        return y if self.below is None else _joined(self.below, y)


def _bare(x: Tensor) -> Tensor | None:
    """The levels of a tensor with what it is there, and none of its elements; None of a plain one."""
    if (i := x._interp) is None or i.kind == "record":
        return None
    below = _bare(x._value)
    return Tensor(_NO_ELEMENTS if below is None else below, i, x._aux)


def _joined(bare: Tensor, new: Tensor) -> Tensor:
    """What a hook gives back is a value, and mostly a detached one: it has the derivatives of what was saved."""
    if (i := bare._interp) is None:
        return new
    if i.kind == "vmap":
        from .views import grow

        return Tensor(_joined(bare._value, new._value if new._interp is i else grow(new, i.size)), i)  # type: ignore[attr-defined]
    return Tensor(_joined(bare._value, new._value if new._interp is i else new), i, bare._aux)


_NO_ELEMENTS = Tensor(np.empty(0))


def lowered(x: Tensor, level: Reverse) -> Tensor:
    """The value of `x` below a level."""
    x = level.settle(x)
    while x._interp is level:
        x = x._value
    return x


def pack(x: Tensor, hooks: tuple[Callable[..., Any], Callable[..., Any]], low: Tensor | None = None) -> Packed:
    """A saved tensor handed to a pack hook; nothing that the hook does is recorded. `low` is the tensor one level below its tape."""
    token = CUT.set(grad_cut(False))
    try:
        p = Packed(hooks[0](x), hooks[1])
    finally:
        CUT.reset(token)
    if low is not None:
        p.below = _bare(low)
    return p


class Store:
    """The values that a node keeps, packed."""

    __slots__ = ("args", "level", "y")

    def __init__(self, level: Reverse, args: list[Any], y: Any) -> None:
        self.level, self.args, self.y = level, args, y

    def values(self) -> tuple[list[Any], Any]:
        """What the node kept, unpacked: its arguments and its result."""
        y = self.y
        return [self._value(x) for x in self.args], [self._value(v) for v in y] if type(y) is list else self._value(y)

    def _value(self, x: Any) -> Any:
        return x.tensor(self.level) if type(x) is Packed else x


def look(level: Reverse, node: Node, y: Any, low: Any, args: Any) -> None:
    """Show a node that was just made to whoever looks on in this thread."""
    w = WATCHERS.get()
    if w.note is not None:
        w.note(node, y, low)
    if w.hooks and (level.level == 0 or level.level % 1):  # of the imperative style; transforms keep to themselves
        _store(level, node, args, w.hooks[-1])


def _store(level: Reverse, node: Node, args: Any, hooks: Any) -> None:
    """Let hooks pack what a node keeps: an input as the caller sees it, a result without its derivative."""
    ins, outs = node.op.packs() if node.op.packs is not None else (None, None)
    xs: list[Any] = [
        pack(args[i], hooks, x) if isinstance(x, Tensor) and (ins is None or i in ins) else x
        for i, x in enumerate(node.args)
    ]
    y: Any = node.y
    if isinstance(y, tuple | list):
        y = [pack(v, hooks, v) if isinstance(v, Tensor) and (outs is None or k in outs) else v for k, v in enumerate(y)]
    elif isinstance(y, Tensor) and (outs is None or 0 in outs):
        y = pack(y, hooks, y)
    node.store = Store(level, xs, y)
    node.args = node.y = None


__all__ = ["WATCHED", "WATCHERS", "Packed", "Store", "Watchers", "look", "lowered", "pack", "unwatch", "watch"]
