"""Levels: the stack of active transforms, and what every interpreter shares.

A transform pushes an :class:`Interpreter`. A tensor that belongs to it points at it, so an op finds its interpreter from
its arguments alone; the stack is consulted only to number a new level (and by random ops, which must know whether a
``vmap`` is active). The stack lives in a context variable: each thread and each async task has its own.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from .errors import escaped

if TYPE_CHECKING:
    from .op import Op
    from .tensor import Tensor

STACK: ContextVar[tuple[Interpreter, ...]] = ContextVar("chainrule_levels", default=())
# Grad mode belongs to levels: reverse levels up to this one record nothing. ``no_grad`` raises it to the levels that are
# active, so a transform that starts inside is above it; ``enable_grad`` takes back what was cut since the innermost
# transform began.
CUT: ContextVar[float] = ContextVar("chainrule_cut", default=-1.0)
# Forward mode stops at levels up to this one (``inference_mode``); read only at levels that somebody has `muted` once.
MUTE: ContextVar[float] = ContextVar("chainrule_mute", default=-1.0)

# The levels that an op over several processes is not lifted to, since one of them is running it (see distributed/levels.py).
BLOCKED: ContextVar[frozenset[Any]] = ContextVar("chainrule_blocked", default=frozenset())
# Whether a walk back runs a part of the program again (utils/checkpoint.py).
AGAIN: ContextVar[bool] = ContextVar("chainrule_again", default=False)
# What looks at the nodes of an imperative backward before it begins, once processes share a graph: ``(level, starts, wanted)`` to the nodes
# that must be visited, and what is called with the result; and what is told of leaves whose cotangent is complete (set by distributed/).
MEET: Any = None
EARLY: Any = None

# What results pass on their way out of a transform, once eigenvalues were repeated (set by ops/linalg/germ.py).
SETTLE: Any = None


def leaving(x: Any, ref: Any = None) -> Any:
    """A result on its way out of a transform; `ref` is the primal of a tangent."""
    return x if SETTLE is None or getattr(x, "_interp", None) is None else SETTLE(x, ref)


def constant(x: Any, cut: float | None = None) -> Any:
    """`x`, which a transform or a rule hands on as it is, as an op would give it now: cut off where ``no_grad`` holds."""
    at = CUT.get() if cut is None else cut
    if at < 0 or not _recorded(x, at):
        return x
    from .primitives import alias_p

    token = CUT.set(at)
    try:
        return alias_p.bind(x)
    finally:
        CUT.reset(token)


def _recorded(x: Any, cut: float) -> bool:
    """Whether a level that now records nothing has recorded what `x` is made of."""
    while (i := getattr(x, "_interp", None)) is not None:
        if i.level <= cut and (i.kind == "record" or (i.kind == "reverse" and i.alive and not i.keep_all)):
            return True
        if i.kind == "jvp" and x._aux is not None and _recorded(x._aux, cut):
            return True
        x = x._value
    return False


def grad_cut(enabled: bool) -> float:
    """The value of CUT with which the levels that are active now record, or do not."""
    stack = STACK.get()
    if enabled:
        return stack[-1].floor if stack else -1.0
    return (stack[-1].level if stack else 0) + 0.5


def grad_enabled() -> bool:
    """Whether the innermost active level records."""
    stack = STACK.get()
    return CUT.get() < (stack[-1].level if stack else 0)


# Levels have numbers in the order in which they begin, whatever context they begin in: one that begins inside another is above it,
# also in a thread of its own, whose stack is empty.
_number = itertools.count(1).__next__


def mute(on: bool) -> None:
    """Stop forward mode at the levels that are active, in this context, or let it go on."""
    if on:
        for i in STACK.get():
            i.muted = True
    MUTE.set(grad_cut(False) if on else -1.0)


class Interpreter:
    """One level: runs ops on tensors that belong to it by running them (or their rules) one level down."""

    kind = "transform"
    strict = False  # of a recording: whether what it would leave out gives it up
    fades = False  # whether a value that outlives the level is the one below
    # What few levels change has its default here: making a level is on the way of every transform.
    alive = True
    level: float = 0
    open = -2.0  # the level, of one that records by nodes alone, while it does: what is asked on the shortest way
    touched: list[weakref.ref[Tensor]] | None = None
    since: dict[int, float] | None = None  # the levels that these were of
    imperative: Interpreter | None = None
    leaves: list[weakref.ref[Tensor]] | None = None  # of the imperative level just above this one
    floor = -1.0
    muted = False  # whether forward mode was ever stopped here, in some context: then `is_muted` knows
    effects: list[Any] | None = None  # nodes of collectives: a walk visits them, whether or not a cotangent arrives

    def __enter__(self) -> Any:
        self.level = _number()
        self.floor = CUT.get()
        STACK.set((*STACK.get(), self))
        return self

    def __exit__(self, et: type[BaseException] | None, ev: BaseException | None, tb: TracebackType | None) -> None:
        stack = STACK.get()
        if stack and stack[-1] is self:
            STACK.set(stack[:-1])
            if CUT.get() != self.floor:
                CUT.set(self.floor)
        elif self in stack:  # a generator, say, has left a level open, or leaves one that is not the innermost
            k = stack.index(self)
            STACK.set((*stack[:k], *(stack[k + 1 :] if self.fades else ())))
            if not self.fades:
                CUT.set(self.floor)
        self.alive, self.open = False, -2.0
        if self.leaves is not None:
            self._rehome()
        above = self.imperative
        if self.touched is not None or (above is not None and above.touched is not None):
            boxes = living(self.touched)
            if above is not None:
                boxes += _lowered(living(above.touched), above)
                above.touched = None
            self.touched = None
            boxes[:] = [b for b in boxes if b._interp is self]
            self.restore(boxes, failed=et is not None)

    def settle(self, y: Any) -> Any:
        """`y` brought down to this level: what the imperative style recorded above it is a constant to the transforms around."""
        i = getattr(y, "_interp", None)
        while i is not None and i.level > self.level:
            if i.level % 1 == 0 and not i.fades:  # no imperative level
                raise escaped(i.kind, "the result of a transformed function")
            y = y._value
            i = y._interp
        return y

    def _rehome(self) -> None:
        """Leaves that outlive this level become leaves of the imperative level around it."""
        from .reverse import imperative

        outer = imperative()
        for t in living(self.leaves):
            if t._interp is self.imperative and t._value._interp is not self:
                t._interp = outer
                if t._meta is not None and t._meta.grad is not None and t._meta.grad._interp is self:
                    t._meta.grad = t._meta.grad._value
        self.leaves = None

    def touch(self, box: Tensor, of: float | None = None) -> None:
        """Remember a tensor of a lower level that a write lifted to this one; `of`: the level that it was made at, if not the one it is of now."""
        if self.touched is None or self.since is None:
            self.touched, self.since = [], {}
        self.touched.append(weakref.ref(box))
        if of is None:
            of = -1.0 if box._interp is None else box._interp.level
        self.since[id(box)] = min(of, self.since.get(id(box), of))

    def restore(self, boxes: list[Tensor], failed: bool) -> None:
        """When the level ends, tensors from outside keep the value that was written, without the derivative."""
        _lowered(boxes, self)

    def check(self, op: str) -> None:
        if not self.alive:
            raise escaped(self.kind, op)

    def is_muted(self) -> bool:
        """Whether forward mode stops at this level here and now."""
        return self.muted and self.level <= MUTE.get()

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

    def is_walked(self, x: Tensor) -> bool:
        """Whether a tensor of this level, which is none of reverse mode, stands for one of such a level."""
        return self.fades and x._value.requires_grad

    def hooked(self) -> None:
        """Somebody puts a hook on a tensor: whoever only notes what ops do gives up here."""

    def is_made(self, x: Tensor) -> bool:
        """Whether a tensor of this level stands for what an op has made at a level of reverse mode around."""
        return False


def living(refs: list[weakref.ref[Tensor]] | None) -> list[Tensor]:
    """The tensors that are still there."""
    return [t for t in [w() for w in refs or ()] if t is not None]


def _lowered(boxes: list[Tensor], level: Interpreter) -> list[Tensor]:
    """The tensors of a level, each made one of the level below, which is told in turn."""
    from .views import pin

    boxes = [b for b in boxes if b._interp is level]
    for b in boxes:
        b._value, b._interp, b._aux = b._value._value, b._value._interp, b._value._aux
        if b._interp is None:  # the tape that ends may have saved this memory: the next write goes to a copy
            pin(b)
        of = -1.0 if level.since is None else level.since.get(id(b), -1.0)
        if b._interp is not None and b._interp.level > max(
            of, 0
        ):  # back at the level that it was made at, it is no longer lifted
            b._interp.touch(b, of)
    return boxes


@contextmanager
def revived(stack: tuple[Interpreter, ...], cut: float) -> Iterator[None]:
    """The levels that were active at an earlier time, active once more."""
    tokens = STACK.set(stack), CUT.set(cut)
    alive = [i.alive for i in stack]
    for i in stack:
        i.alive = True
    try:
        yield
    finally:
        for i, a in zip(stack, alive, strict=True):
            i.alive = a
        STACK.reset(tokens[0])
        CUT.reset(tokens[1])


def innermost(x: Any) -> Any:
    """The payload beneath all levels of a tensor."""
    while x._interp is not None:
        x = x._value
    return x._value


def flat_array(x: Any) -> Any:
    """The NumPy array whose shape is the tensor's own; None under vmap, which adds an axis, and of other payloads."""
    while (i := x._interp) is not None:
        if i.kind == "vmap":
            return None
        x = x._value
    v = x._value
    return v if type(v) is ndarray else None


def recorder_of(x: Any) -> Any:
    """The recording level beneath a tensor, if there is one."""
    while (i := x._interp) is not None:
        if i.kind == "record":
            return i
        x = x._value
    return None


def unseen(x: Any, what: str) -> bool:
    """Whether the elements of `x` are those of an example, and `what` cannot be asked; where it must be, the recording is given up."""
    level = recorder_of(x)
    if level is not None and level.strict:
        raise level.refusal(what)
    return level is not None


def recorder() -> Any:
    """The innermost recording level of this context, if there is one."""
    return next((i for i in reversed(STACK.get()) if i.kind == "record"), None)


def values(x: Any, what: str) -> Any:
    """`innermost` for whoever looks at the elements, and not only at their type and number: refused while a function is recorded."""
    if (level := recorder_of(x)) is not None:
        raise level.refusal(what)
    return innermost(x)


def look(x: Any, check: Any) -> bool:
    """``check(payload)``, which raises where the elements are not what they must be; recorded, it looks again at every call.

    Whether elements were looked at now: while a function is recorded, those of its example say nothing of the others.
    """
    if (level := recorder_of(x)) is None:
        check(innermost(x))
        return True
    level.look(x, check)
    return False


def active_vmaps() -> list[Any]:
    """The batching levels of this context, outermost first."""
    return [i for i in STACK.get() if i.kind == "vmap"]
