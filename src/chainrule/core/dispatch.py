"""Levels: the stack of active transforms, and what every interpreter shares.

A transform pushes an :class:`Interpreter`. A tensor that belongs to it points at it, so an op finds its interpreter from
its arguments alone; the stack is consulted only to number a new level (and by random ops, which must know whether a
``vmap`` is active). The stack lives in a context variable: each thread and each async task has its own.
"""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .errors import escaped

if TYPE_CHECKING:
    from .op import Op
    from .tensor import Tensor

STACK: ContextVar[tuple[Interpreter, ...]] = ContextVar("chainrule_levels", default=())
GRAD_MODE: ContextVar[bool] = ContextVar("chainrule_grad_mode", default=True)
# What results pass on their way out of a transform, once eigenvalues were repeated (set by ops/linalg/germ.py).
SETTLE: Any = None


class Interpreter:
    """One level: runs ops on tensors that belong to it by running them (or their rules) one level down."""

    __slots__ = ("_tokens", "alive", "imperative", "level", "returned", "touched")
    kind = "transform"

    def __init__(self) -> None:
        self.alive = True
        self.level: float = 0
        self.touched: list[weakref.ref[Tensor]] | None = None
        self.returned: list[Any] = []
        self.imperative: Interpreter | None = None
        self._tokens: Any = None

    def __enter__(self) -> Any:
        stack = STACK.get()
        self.level = len(stack) + 1
        self._tokens = (STACK.set((*stack, self)), None if GRAD_MODE.get() else GRAD_MODE.set(True))
        return self

    def __exit__(self, et: type[BaseException] | None, ev: BaseException | None, tb: TracebackType | None) -> None:
        stack, mode = self._tokens
        STACK.reset(stack)
        if mode is not None:
            GRAD_MODE.reset(mode)
        self.alive = False
        if self.touched is not None:
            # Tensors made inside the function are gone by now, or are what it returns; the others come from outside.
            out = {id(y) for y in self.returned}
            # A returned view keeps its base, and through it the base's other views.
            out |= {id(y._meta.base) for y in self.returned if getattr(y, "_meta", None) is not None}
            alive = [
                b
                for b in (w() for w in self.touched)
                if b is not None and b._interp is self and out.isdisjoint(_family(b))
            ]
            self.touched = None
            self.restore(alive, failed=et is not None)
        if SETTLE is not None and et is None:
            for y in self.returned:
                if getattr(y, "_interp", None) is self:
                    if self.kind == "jvp":
                        y._aux = SETTLE(y._aux, y._value)
                    y._value = SETTLE(y._value)
        self.returned = []

    def touch(self, box: Tensor) -> None:
        """Remember a tensor of a lower level that a write lifted to this one."""
        if self.touched is None:
            self.touched = []
        self.touched.append(weakref.ref(box))

    def restore(self, boxes: list[Tensor], failed: bool) -> None:
        """When the level ends, tensors from outside keep the value that was written, without the derivative."""
        for box in boxes:
            inner = box._value
            box._value, box._interp, box._aux = inner._value, inner._interp, inner._aux

    def check(self, op: str) -> None:
        if not self.alive:
            raise escaped(self.kind, op)

    # What a subclass answers.
    def run(self, op: Op, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        """Run `op` on arguments of which at least one belongs to this level."""
        raise NotImplementedError

    def run_unary(self, op: Op, x: Tensor) -> Any:
        """`run` for a pointwise op of one argument; interpreters on the hot path override it."""
        return self.run(op, (x,), {})

    def run_binary(self, op: Op, a: Any, b: Any) -> Any:
        """`run` for a pointwise op of two arguments."""
        return self.run(op, (a, b), {})

    def shape_of(self, x: Tensor) -> tuple[int, ...]:
        v: Any = x._value
        return v._value.shape if v._interp is None else v._interp.shape_of(v)

    def strides_of(self, x: Tensor) -> tuple[int, ...]:
        return x._value.stride()


def _family(x: Tensor) -> tuple[int, ...]:
    """A tensor and the base it is a view of, by identity."""
    return (id(x),) if x._meta is None or x._meta.base is None else (id(x), id(x._meta.base))


def innermost(x: Any) -> Any:
    """The payload beneath all levels of a tensor."""
    while x._interp is not None:
        x = x._value
    return x._value


def active_vmaps() -> list[Any]:
    """The batching levels of this context, outermost first."""
    return [i for i in STACK.get() if i.kind == "vmap"]
