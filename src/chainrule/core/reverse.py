"""Reverse mode: a tape of nodes. The loop that walks it backwards is in :mod:`chainrule.core.walk`.

A tensor of this level is a tensor one level down and the node that made it. A node keeps what its op's reverse rule names,
no more. The graph has no cycles, so it is freed as soon as nobody holds its outputs; walking it needs no recursion.
"""

from __future__ import annotations

import functools
import itertools
import operator
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy import may_share_memory, ndarray

from . import dtypes as dt
from .dispatch import CUT, STACK, Interpreter, innermost
from .shapes import sizes_of as sizes
from .sizes import SEEN
from .tensor import Tensor
from .views import meta, pin, root_of, with_history
from .watch import WATCHED, Store, look

if TYPE_CHECKING:
    from .op import Op

_FIRST, _SECOND, _BOTH = (True, False), (False, True), (True, True)
_FLOATS = frozenset(d.np.num for d in dt.FROM_NP.values() if d.category >= dt.FLOAT)
_NONE: dict[str, Any] = {}
_count = itertools.count().__next__
_by_seq = operator.attrgetter("seq")


class Node:
    """One application of an op on the tape."""

    __slots__ = ("__dict__", "__weakref__", "args", "fits", "kw", "op", "parents", "rare", "seq", "y")
    # What few nodes have lives in their __dict__; a node that has hooks or several results is `rare`.
    hooks: list[Callable[..., Any]] | None = None
    around: tuple[list[Any], list[Any]] | None = None  # hooks on the node itself: before its rule, and after
    store: Store | None = None  # what the node keeps, where hooks packed it
    anomaly: Any = None
    cut: float | None = None  # the grad mode of the levels below, on a tape that forward mode walks later
    nout = 0
    outs: Any = None
    level: Any = None  # of a node that every process visits: the level of its tape, and shape and type of its result
    result: Any = None

    def __init__(self, op: Any, args: Any, y: Any, parents: Any, kw: Any, fits: Any) -> None:
        self.op = op
        self.args = args
        self.y = y
        self.parents = parents
        self.kw = kw
        self.fits = fits
        self.rare = False
        self.seq = _count()

    def release(self) -> None:
        """Let go of what was kept; where that was something, a second walk is refused."""
        if self.args is None:
            self.store = None
            return
        if self.y is None and self.op.again is None:
            for x in self.args:
                if isinstance(x, Tensor):
                    break
            else:
                return
        self.args = self.y = None

    def name(self) -> str:
        """The name PyTorch would show: ``MulBackward0``."""
        n = self.op.name if self.op is not None else type(self).__name__
        if self.op is not None and self.op.form == "function":
            return f"{n}Backward"
        return "".join(p.capitalize() for p in n.strip("_").split("_")) + "Backward0"

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes of the inputs, each with the number of its result that the input is."""
        return tuple((None, 0) if p is None else edge_of(p) for p in self.parents)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for notes of one's own."""
        return self.__dict__.setdefault("notes", {})

    def __call__(self, *grads: Any) -> Any:
        """The cotangents of the inputs from those of the results."""
        from .saved import pulled_by_hand

        return pulled_by_hand(self, grads)

    def register_hook(self, fn: Callable[..., Any]) -> Handle:
        """Call ``fn(grad_inputs, grad_outputs)`` after this node's rule has run; what it returns replaces `grad_inputs`."""
        return self._hook(1, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> Handle:
        """Call ``fn(grad_outputs)`` before this node's rule runs; what it returns replaces `grad_outputs`."""
        return self._hook(0, fn)

    def _hook(self, when: int, fn: Callable[..., Any]) -> Handle:
        if self.around is None:
            self.around, self.rare = ([], []), True
        self.around[when].append(fn)
        return Handle(self.around[when], fn)


class Handle:
    """What registering a hook returns: ``handle.remove()`` takes the hook away again."""

    def __init__(self, hooks: list[Any], hook: Any) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Take the hook away."""
        for k, h in enumerate(self._hooks):
            if h is self._hook:
                del self._hooks[k]
                return

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


class Pick(Node):
    """Output `index` of a node with several outputs; the first is the node itself."""

    __slots__ = ("index",)

    def __init__(self, node: Node, index: int) -> None:
        self.op = self.args = self.y = self.kw = self.fits = None
        self.parents = (node,)
        self.rare = False
        self.seq = _count()
        self.index = index

    def name(self) -> str:
        return self.parents[0].name()


class Leaf(Node):
    """A tensor that derivatives are taken with respect to."""

    __slots__ = ("owner",)
    early: Any = None  # called with the cotangent as soon as a walk has completed it

    def __init__(self, owner: Tensor | None = None) -> None:
        self.op = self.args = self.y = self.kw = self.fits = None
        self.parents = ()
        self.rare = False
        self.seq = _count()
        self.owner = weakref.ref(owner) if owner is not None else None

    def name(self) -> str:
        return "AccumulateGrad"

    @property
    def variable(self) -> Tensor | None:
        """The tensor whose gradient is accumulated here."""
        return None if self.owner is None else self.owner()


class Shown(Node):
    """A node that somebody looks at: it answers to PyTorch's names of what it keeps. (The others are quicker without.)"""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from .saved import attribute

        return attribute(self, name)


_CLASSES: dict[str, type[Node]] = {}


def named(node: Any) -> Any:
    """The node as an object of a class that bears its name, as PyTorch's do; made when somebody looks."""
    if type(node) is Node:
        name = node.name()
        cls = _CLASSES.get(name)
        if cls is None:
            cls = _CLASSES[name] = type(name, (Shown,), {"__slots__": (), "__doc__": f"A node that {name} made."})
        node.__class__ = cls
    return node


def edge_of(node: Node) -> tuple[Node, int]:
    """The node that a result belongs to, and the number of the result."""
    return (named(node.parents[0]), node.index) if type(node) is Pick else (named(node), 0)


class Masked:
    """A cotangent that is absent, not merely zero, where the mask is false: no rule may turn it into NaN there."""

    __slots__ = ("g", "mask")

    def __init__(self, g: Any, mask: Any) -> None:
        self.g, self.mask = g, mask


class Reverse(Interpreter):
    """The interpreter of ``vjp``, ``grad`` and, at level 0, of ``backward()``."""

    kind = "reverse"
    keep_all = False  # for `linearize`, which walks forward

    def off(self) -> bool:
        """Whether nothing is recorded now. A tape that forward mode walks is not concerned by ``no_grad``, as forward mode is not."""
        return self.level <= CUT.get() and (self.is_muted() or not self.keep_all)

    def run(self, op: Op, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        if not self.alive:
            self.check(op.name)
        if len(args) == 1 and self.open > CUT.get() and (y := self._run_one(op, args[0], kw)) is not None:
            return y
        low: list[Any] = []
        parents: list[Any] = []
        marks: list[bool] = []
        deeper = False
        for a in args:
            p = None
            if isinstance(a, Tensor):
                if a._interp is self:
                    p, a = a._aux, a._value
                    if op.writes:  # and not to what nodes have kept
                        a = pin(a, True)
                deeper = deeper or a._interp is not None
            low.append(a)
            parents.append(p)
            marks.append(p is not None)
        # Where nothing lies between this level and the payloads, the body runs at once.
        y = op.bind(*low, **kw) if deeper or (SEEN and op.sizes) else op.run(low, kw)
        if not op.differentiable or (self.level <= CUT.get() and self.off()):
            return y
        need = tuple(marks)
        keep_y, keep_x = (True, None) if self.keep_all else op._keeps.get(need) or op.keeps(need)
        several = type(y) is tuple
        if op.results is None and len(low) == 1:
            op.results = 0 if several else 1
        if op.view:
            _hold(low[0], y)
        yv = None if several or y._interp is not None else y._value
        even = op.even or len(low) == 1  # the cotangent of an input that is shaped as the result is shaped so too
        fits: list[Any] = []
        kept: list[Any] = []
        for i, x in enumerate(low):
            if need[i]:
                if yv is not None and x._interp is None:
                    xv = x._value
                    same = even and xv.shape == yv.shape and xv.dtype is yv.dtype
                    fits.append(None if same else (xv.shape, dt.FROM_NP[xv.dtype]))
                else:
                    plain = several or not even
                    fits.append((sizes(x), dt.FROM_NP[innermost(x).dtype]) if plain else _fit(x, y))
                kept.append(x if keep_x is None or keep_x[i] else None)
            else:
                fits.append(None)
                if not isinstance(x, Tensor):
                    kept.append(x)
                else:
                    kept.append(pin(x) if keep_x is None or keep_x[i] else None)
        held: Any = y if keep_y else None
        bare: list[int] = []
        if several:
            # Results without a derivative leave as they are: what the caller writes to them the tape must not see.
            for k in range(len(y)):
                v = y[k]
                if k in op.integer_outputs or (op.form != "fused" and innermost(v).dtype.num not in _FLOATS):
                    bare.append(k)
            part = keep_y if type(keep_y) is tuple else None
            if keep_y and (part or bare):
                some: list[Any] = []
                for v in y:
                    k = len(some)
                    some.append(None if part and not part[k] else pin(v) if k in bare else v)
                held = tuple(some)
        node = Node(op, kept, held, parents, kw, fits)
        if self.keep_all:
            self._note_mode(node)
        if WATCHED.on:
            look(self, node, y, low, args)
        if not several:
            return Tensor(y, self, node)
        node.nout, node.rare = len(y), True
        if not op.sparse_vjp:
            node.outs = [(tuple(v.shape), v.dtype) for v in y]
        out: list[Any] = []
        for v in y:
            k = len(out)
            if k in bare:
                out.append(v)
            else:
                out.append(Tensor(v, self, Pick(node, k) if k else node))
        return tuple(out)

    def _run_one(self, op: Op, x: Any, kw: dict[str, Any]) -> Any:
        """An op of one tensor with one result, where nobody looks on; None of all else."""
        low = x._value
        if op.results != 1 or WATCHED.on or SEEN or op.view or op.effect or op.writes or not op.differentiable:
            return None
        i = low._interp
        y = op.run((low,), kw) if i is None else op.bind(low, **kw)
        if type(y) is tuple:
            op.results = 0
            return None
        keep_y, keep_x = op.keep_one or op.keeps_one()
        if i is None:
            a, b = low._value, y._value
            fit = None if a.dtype is b.dtype and a.shape == b.shape else (a.shape, dt.FROM_NP[a.dtype])
        else:
            fit = _fit(low, y)
        kept = (low if keep_x else None,)
        return Tensor(y, self, Node(op, kept, y if keep_y else None, (x._aux,), kw, (fit,)))

    def run_unary(self, op: Op, x: Tensor) -> Any:
        if not self.alive:
            self.check(op.name)
        low = x._value
        y = op.bind(low)
        if not op.differentiable or (self.level <= CUT.get() and self.off()):
            return y
        if WATCHED.on or self.keep_all:
            return self._note(op, y, (low,), (x._aux,), (x,))
        keep_y, keep_x = op.keep_one or op.keeps_one()
        if y._interp is None and y._value.dtype is low._value.dtype:
            fit = None
        else:
            fit = _fit(low, y)
            _hold(low, y)  # the parts of complex numbers show their memory
        return Tensor(y, self, Node(op, (low if keep_x else None,), y if keep_y else None, (x._aux,), _NONE, (fit,)))

    def run_binary(self, op: Op, a: Any, b: Any) -> Any:
        if not self.alive:
            self.check(op.name)
        la, pa, lb, pb = a, None, b, None
        if isinstance(a, Tensor) and a._interp is self:
            la, pa = a._value, a._aux
        if isinstance(b, Tensor) and b._interp is self:
            lb, pb = b._value, b._aux
        y = op.bind(la, lb)
        if not op.differentiable or (self.level <= CUT.get() and self.off()):
            return y
        if WATCHED.on or self.keep_all:
            return self._note(op, y, (la, lb), (pa, pb), (a, b))
        fa = fb = None
        if not op.even:
            # Operands of just their core ranks have cotangents of their own shapes.
            direct = (
                y._interp is None
                and la._value.ndim == op.core[0]
                and lb._value.ndim == op.core[1]
                and la._value.dtype is lb._value.dtype is y._value.dtype
            )
            if not direct:
                fa = None if pa is None else (sizes(la), dt.FROM_NP[innermost(la).dtype])
                fb = None if pb is None else (sizes(lb), dt.FROM_NP[innermost(lb).dtype])
        elif y._interp is None:
            yv = y._value
            if pa is not None and not (la._value.dtype is yv.dtype and la._value.shape == yv.shape):
                fa = (la._value.shape, la.dtype)
            if pb is not None and not (lb._value.dtype is yv.dtype and lb._value.shape == yv.shape):
                fb = (lb._value.shape, lb.dtype)
        else:
            fa = None if pa is None else _fit(la, y)
            fb = None if pb is None else _fit(lb, y)
        need = _SECOND if pa is None else _FIRST if pb is None else _BOTH
        keep_y, keep_x = op._keeps.get(need) or op.keeps(need)
        if keep_x is not None:
            if not keep_x[0] and (pa is not None or isinstance(la, Tensor)):
                la = None
            elif pa is None and isinstance(la, Tensor):
                la = pin(la)
            if not keep_x[1] and (pb is not None or isinstance(lb, Tensor)):
                lb = None
            elif pb is None and isinstance(lb, Tensor):
                lb = pin(lb)
        return Tensor(y, self, Node(op, (la, lb), y if keep_y else None, (pa, pb), _NONE, (fa, fb)))

    def _note(self, op: Op, y: Tensor, low: tuple[Any, ...], parents: tuple[Any, ...], args: tuple[Any, ...]) -> Tensor:
        """Record with everything kept, for linearize; or with somebody looking on."""
        keep_y: Any
        keep_y, keep_x = (True, None) if self.keep_all else op.keeps(tuple([p is not None for p in parents]))
        kept: list[Any] = []
        for i, x in enumerate(low):
            if isinstance(x, Tensor) and keep_x is not None and not keep_x[i]:
                kept.append(None)
            else:
                kept.append(pin(x) if parents[i] is None and isinstance(x, Tensor) else x)
        fits = [None if p is None else (tuple(x.shape), x.dtype) for x, p in zip(low, parents, strict=True)]
        node = Node(op, kept, y if keep_y else None, parents, _NONE, fits)
        if self.keep_all:
            self._note_mode(node)
        if WATCHED.on:
            look(self, node, y, low, args)
        return Tensor(y, self, node)

    def _note_mode(self, node: Node) -> None:
        """Forward mode would run the rule now, where ``no_grad`` may hold for the levels below."""
        if (cut := CUT.get()) >= 0:
            node.cut = min(cut, self.level - 0.5)

    def written(self, x: Tensor, new: Tensor, low: Tensor) -> Tensor:
        """`x` after a write that the levels below do not record: `low` one level down; its tangent is written in the same way."""
        node = Node(_written(), (None, None), low, (x._aux, new._aux), _NONE, (None, None))
        self._note_mode(node)
        return Tensor(low, self, node)

    def lift(self, x: Tensor) -> Tensor:
        """A new variable of this level."""
        return Tensor(pin(x), self, Leaf())


@functools.cache
def _written() -> Op:
    """What stands on a tape that forward mode walks for a write under ``no_grad``."""
    from .op import Op

    o = Op("written", None, listed=False)
    o.jvp(lambda t, y, x, new: t[1] if t[0] is None or t[1] is None else with_history(*t), sparse=True)
    return o


def _fit(x: Tensor, y: Tensor) -> tuple[tuple[int, ...], dt.DType] | None:
    """What a cotangent shaped like `y` must be brought to for the input `x`; None if nothing."""
    i, j = x._interp, y._interp
    s = x._value.shape if i is None else i.shape_of(x)
    d = innermost(x).dtype
    same = (y._value.shape if j is None else j.shape_of(y)) == s and innermost(y).dtype is d
    return None if same else (s, dt.FROM_NP[d])


def _hold(x: Tensor, y: Any) -> None:
    """Let a view hold the plain tensor whose memory it shows: who would write there sees that it is held."""
    if x._interp is None and type(y) is Tensor and y._interp is None:
        a, b = x._value, y._value
        if not type(a) is type(b) is ndarray or b.base is a or may_share_memory(a, b):  # a reshape may have made a copy
            meta(y).base = root_of(x)


EAGER = Reverse()
EAGER.level = EAGER.open = 0.0


def host(of: Any = None) -> Interpreter | None:
    """The level that leaves made here belong to: the innermost, but for dual numbers, whose leaves are those of the level around.

    `of` is the level of a value that becomes a leaf: it cannot lie above that.
    """
    for top in reversed(STACK.get()):
        if not top.fades or top is of:
            return top
    return None


def imperative(of: Any = None) -> Reverse:
    """The reverse level of ``requires_grad_()`` here: level 0, or just above the innermost active transform."""
    top = host(of)
    if top is None:
        return EAGER
    if top.imperative is None:
        r = Reverse()
        r.level = r.open = top.level + 0.5
        top.imperative = r
    return top.imperative  # type: ignore[return-value]


__all__ = [
    "EAGER",
    "Leaf",
    "Masked",
    "Node",
    "Pick",
    "Reverse",
    "imperative",
    "meta",
]
