"""Reverse mode: a tape of nodes, and a loop that walks it backwards.

A tensor of this level is a tensor one level down and the node that made it. A node keeps what its op's reverse rule names,
no more. The graph has no cycles, so it is freed as soon as nobody holds its outputs; walking it needs no recursion.
"""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from numpy import may_share_memory, ndarray

from . import dispatch
from . import dtypes as dt
from .dispatch import CUT, STACK, Interpreter, innermost
from .errors import ZERO, GraphFreedError
from .shapes import sizes_of as sizes
from .shapes import zeros
from .tensor import PAYLOADS, Tensor
from .views import meta, pin, root_of

if TYPE_CHECKING:
    from .op import Op

_FIRST, _SECOND, _BOTH = (True, False), (False, True), (True, True)
_COMPLEX = frozenset((dt.complex32.np.num, dt.complex64.np.num, dt.complex128.np.num))
_NONE: dict[str, Any] = {}
_count = itertools.count().__next__
_by_seq = operator.attrgetter("seq")


class Node:
    """One application of an op on the tape."""

    __slots__ = ("__dict__", "__weakref__", "args", "fits", "kw", "op", "parents", "seq", "y")
    # What few nodes have lives in their __dict__.
    hooks: list[Callable[..., Any]] | None = None
    anomaly: Any = None
    cut: float | None = None  # the grad mode of the levels below, on a tape that forward mode walks later
    nout = 0
    outs: Any = None

    def __init__(self, op: Any, args: Any, y: Any, parents: Any, kw: Any, fits: Any) -> None:
        self.op = op
        self.args = args
        self.y = y
        self.parents = parents
        self.kw = kw
        self.fits = fits
        self.seq = _count()

    def name(self) -> str:
        """The name PyTorch would show: ``MulBackward``."""
        n = self.op.name if self.op is not None else type(self).__name__
        return "".join(p.capitalize() for p in n.strip("_").split("_")) + "Backward0"

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes of the inputs."""
        return tuple((p, 0) for p in self.parents)

    def register_hook(self, f: Callable[..., Any]) -> None:
        """Call ``f(grad)`` with the cotangent that arrives at this node."""
        self.hooks = [*(self.hooks or ()), f]


class Pick(Node):
    """Output `index` of a node with several outputs."""

    __slots__ = ("index",)

    def __init__(self, node: Node, index: int) -> None:
        super().__init__(None, None, None, (node,), None, None)
        self.index = index

    def name(self) -> str:
        return self.parents[0].name()


class Leaf(Node):
    """A tensor that derivatives are taken with respect to."""

    __slots__ = ("owner",)

    def __init__(self, owner: Tensor | None = None) -> None:
        super().__init__(None, None, None, (), None, None)
        self.owner = weakref.ref(owner) if owner is not None else None

    def name(self) -> str:
        return "AccumulateGrad"


class Masked:
    """A cotangent that is absent, not merely zero, where the mask is false: no rule may turn it into NaN there."""

    __slots__ = ("g", "mask")

    def __init__(self, g: Any, mask: Any) -> None:
        self.g, self.mask = g, mask


class Reverse(Interpreter):
    """The interpreter of ``vjp``, ``grad`` and, at level 0, of ``backward()``."""

    __slots__ = ("anomaly", "keep_all")
    kind = "reverse"

    def __init__(self, keep_all: bool = False) -> None:
        super().__init__()
        self.keep_all = keep_all
        self.anomaly = ANOMALY.on

    def off(self) -> bool:
        """Whether nothing is recorded now. A tape that forward mode walks is not concerned by ``no_grad``, as forward mode is not."""
        return self.level <= CUT.get() and (self.muted or not self.keep_all)

    def run(self, op: Op, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        if not self.alive:
            self.check(op.name)
        low, parents, deeper = [], [], False
        for a in args:
            p = None
            if isinstance(a, Tensor):
                if a._interp is self:
                    p, a = a._aux, a._value
                deeper = deeper or a._interp is not None
            low.append(a)
            parents.append(p)
        # Where nothing lies between this level and the payloads, the body runs at once.
        y = op.bind(*low, **kw) if deeper or PAYLOADS else op.concrete(low, kw)
        if not op.differentiable or (self.level <= CUT.get() and self.off()):
            return y
        need = tuple([p is not None for p in parents])
        keep_y, keep_x = (True, None) if self.keep_all else op.keeps(need)
        several = type(y) is tuple
        if op.view:
            _hold(low[0], y)
        yv = None if several or y._interp is not None else y._value
        fits: list[Any] = []
        kept: list[Any] = []
        for i, x in enumerate(low):
            if need[i]:
                if yv is not None and x._interp is None and x._value.shape == yv.shape and x._value.dtype is yv.dtype:
                    fits.append(None)
                else:
                    fits.append((sizes(x), x.dtype) if several else _fit(x, y))
                kept.append(x if keep_x is None or keep_x[i] else None)
            else:
                fits.append(None)
                if not isinstance(x, Tensor):
                    kept.append(x)
                else:
                    kept.append(pin(x) if keep_x is None or keep_x[i] else None)
        node = Node(op, kept, y if keep_y else None, parents, kw, fits)
        if self.keep_all:
            self._note_mode(node)
        if ANOMALY.on:
            ANOMALY.note(node, y)
        if not several:
            return Tensor(y, self, node)
        node.nout = len(y)
        if not op.sparse_vjp:
            node.outs = [(tuple(v.shape), v.dtype) for v in y]
        return tuple(
            v if k in op.integer_outputs or v.dtype.category < dt.FLOAT else Tensor(v, self, Pick(node, k))
            for k, v in enumerate(y)
        )

    def run_unary(self, op: Op, x: Tensor) -> Any:
        if not self.alive:
            self.check(op.name)
        low = x._value
        y = op.call(low)  # type: ignore[attr-defined]
        if not op.differentiable or (self.level <= CUT.get() and self.off()):
            return y
        if ANOMALY.on or self.keep_all:
            return self._note(op, y, (low,), (x._aux,))
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
        y = op.call(la, lb)  # type: ignore[attr-defined]
        if not op.differentiable or (self.level <= CUT.get() and self.off()):
            return y
        if ANOMALY.on or self.keep_all:
            return self._note(op, y, (la, lb), (pa, pb))
        fa = fb = None
        if y._interp is None:
            yv = y._value
            if pa is not None and not (la._value.dtype is yv.dtype and la._value.shape == yv.shape):
                fa = (la._value.shape, la.dtype)
            if pb is not None and not (lb._value.dtype is yv.dtype and lb._value.shape == yv.shape):
                fb = (lb._value.shape, lb.dtype)
        else:
            fa = None if pa is None else _fit(la, y)
            fb = None if pb is None else _fit(lb, y)
        keep_y, keep_x = op.keeps(_SECOND if pa is None else _FIRST if pb is None else _BOTH)
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

    def _note(self, op: Op, y: Tensor, low: tuple[Any, ...], parents: tuple[Any, ...]) -> Tensor:
        """Record with everything kept: for linearize, and under detect_anomaly."""
        kept = [pin(x) if p is None and isinstance(x, Tensor) else x for x, p in zip(low, parents, strict=True)]
        fits = [None if p is None else (tuple(x.shape), x.dtype) for x, p in zip(low, parents, strict=True)]
        node = Node(op, kept, y, parents, _NONE, fits)
        if self.keep_all:
            self._note_mode(node)
        if ANOMALY.on:
            ANOMALY.note(node, y)
        return Tensor(y, self, node)

    def _note_mode(self, node: Node) -> None:
        """Forward mode would run the rule now, where ``no_grad`` may hold for the levels below."""
        if (cut := CUT.get()) >= 0:
            node.cut = min(cut, self.level - 0.5)

    def lift(self, x: Tensor) -> Tensor:
        """A new variable of this level."""
        return Tensor(pin(x), self, Leaf())


def _fit(x: Tensor, y: Tensor) -> tuple[tuple[int, ...], dt.DType] | None:
    """What a cotangent shaped like `y` must be brought to for the input `x`; None if nothing."""
    s, d = sizes(x), innermost(x).dtype
    return None if d is innermost(y).dtype and s == sizes(y) else (s, dt.FROM_NP[d])


def _hold(x: Tensor, y: Any) -> None:
    """Let a view hold the plain tensor whose memory it shows: who would write there sees that it is held."""
    if x._interp is None and type(y) is Tensor and y._interp is None:
        a, b = x._value, y._value
        if not type(a) is type(b) is ndarray or b.base is a or may_share_memory(a, b):  # a reshape may have made a copy
            meta(y).base = root_of(x)


class _Anomaly:
    """State of ``detect_anomaly``: off, or a function that notes where a node was made (set by chainrule.autograd)."""

    on = False

    @staticmethod
    def note(node: Node, y: Any) -> None: ...

    @staticmethod
    def check(node: Node, gs: Any) -> None: ...


ANOMALY = _Anomaly()
EAGER = Reverse()
EAGER.level = 0.0


def imperative() -> Reverse:
    """The reverse level of ``requires_grad_()`` here: level 0, or just above the innermost active transform."""
    stack = STACK.get()
    if not stack:
        return EAGER
    top = stack[-1]
    if top.imperative is None:
        r = Reverse()
        r.level = top.level + 0.5
        top.imperative = r
    return top.imperative  # type: ignore[return-value]


def fit_cotangent(g: Tensor, shape: tuple[int, ...], d: dt.DType) -> Tensor:
    """The cotangent brought back to its input's space: realness, type, and a sum over what was broadcast."""
    if g._interp is None and g._value.shape == shape and g._value.dtype is d.np:
        return g
    gd = g.dtype
    if gd is not d:
        if gd.category == dt.COMPLEX and d.category != dt.COMPLEX:
            g = g.real
        g = g.to(d)
    gs = g.shape
    if gs != shape:
        extra = len(gs) - len(shape)
        # Dims of size 1 first: only then may the nesting dim of ragged components be one of the others.
        ones = tuple(k - len(shape) for k, n in enumerate(shape) if n == 1 and gs[k + extra] != 1)
        if ones and extra > 0 and not g.is_nested:
            g = g.sum((*range(extra), *[k + len(gs) for k in ones]), True).reshape(shape)  # in one sum, rounded once
        else:
            if ones:
                g = g.sum(ones, True)
            if extra > 0:
                g = g.sum(tuple(range(extra)))
        if tuple(g.shape) != shape:
            g = g.expand(*shape)
    return g


def reachable(starts: Iterable[Node]) -> list[Node]:
    """The nodes that the starts depend on, in the order in which they were made."""
    stack = [n for n in starts if n is not None]
    seen: set[Any] = {None, *stack}
    order = list(stack)
    while stack:
        for p in stack.pop().parents:
            if p not in seen:
                seen.add(p)
                order.append(p)
                stack.append(p)
    order.sort(key=_by_seq)
    return order


def _towards(starts: list[Node], keep: set[Node], stop: bool) -> tuple[list[Node], set[Node]]:
    """The nodes to visit between the starts and those to keep, the last made first; and the set of those that get a cotangent.

    With `stop` nothing that lies beyond a node to keep is looked at.
    """
    order, seen, stray = list(starts), set(starts), False
    for n in order:
        for p in () if stop and n in keep else n.parents:
            if p is not None and p not in seen:
                seen.add(p)
                if type(p) is not Leaf:
                    order.append(p)
                    continue
                if p.hooks is not None:
                    order.append(p)
                if p not in keep:
                    stray = True
    if len(order) > 1:
        order.sort(key=_by_seq, reverse=True)
    if not stray:
        return order, seen
    live = seen & keep
    for n in reversed(order):
        if n not in live and not live.isdisjoint(n.parents):
            live.add(n)
    return [n for n in order if n in live], live


def walk_back(
    starts: list[tuple[Node, Any]],
    *,
    wanted: Iterable[Node] | None = None,
    stop: bool = False,
    free: bool = True,
    rewrap: Reverse | None = None,
    skipped: list[Node] | None = None,
) -> dict[Node, Any]:
    """Cotangents of leaves (and of the `wanted` nodes) from those of the starting nodes.

    ``stop`` says that the walk ends at the wanted nodes: what made them, and their hooks, are left to another walk.

    ``skipped`` collects the nodes whose cotangent a rule declared to be zero: nothing is computed for them.

    ``rewrap`` is the level itself for ``create_graph=True``: rules then run on recorded tensors, so that their results
    can be differentiated again.
    """
    keep = None
    order: Iterable[Node]
    grads: dict[Node, Any] = {}
    masks: dict[Node, Any] = {}
    heap: list[tuple[int, Node]] = []
    if wanted is not None:
        keep = set(wanted)
        order, live = _towards([n for n, _ in starts], keep, stop)
    else:
        order = _latest_first(heap)
    simple = rewrap is None and not ANOMALY.on
    for n, g in starts:
        prev = grads.get(n)
        grads[n] = g if prev is None else prev + g
        if prev is None and keep is None and (type(n) is not Leaf or n.hooks is not None):
            heappush(heap, (-n.seq, n))
    result: dict[Node, Any] = {}
    for n in order:
        g = grads.pop(n, None)
        if g is None:
            continue
        if stop and n in keep:  # type: ignore[operator]
            result[n] = g
            continue
        if n.hooks is not None:
            g = _run_hooks(n, g)
        if keep is not None and n in keep:
            result[n] = g
        op = n.op
        if op is None:
            if type(n) is Pick:
                p = n.parents[0]
                lst = grads.get(p)
                if lst is None:
                    lst = grads[p] = [None] * p.nout
                    if keep is None:
                        heappush(heap, (-p.seq, p))
                lst[n.index] = g if lst[n.index] is None else lst[n.index] + g
            elif keep is None:
                result[n] = g
            continue
        parents, xs, y = n.parents, n.args, n.y
        if xs is None:
            raise GraphFreedError(
                f"backward: the values that {op.name} saved were freed by an earlier backward() or grad(). "
                f"Pass retain_graph=True to the earlier call if you need to go through the graph a second time."
            )
        rules = op.pull_rules
        if rules is not None and simple and not masks:
            # The common case: one rule an input. Those of a pointwise op are its forward rules, conjugated.
            cx = op.linear_rules and (
                g._value.dtype.num in _COMPLEX if g._interp is None else g.dtype.category == dt.COMPLEX
            )
            if cx:
                g = g.conj()
            if free and (y is not None or xs[0].__class__ is Tensor or (len(xs) > 1 and _saved(xs))):
                n.args = n.y = None
            kw = n.kw
            i = 0
            for p in parents:
                rule, fit = rules[i], n.fits[i]
                i += 1
                if p is None or rule is None or rule is ZERO or (keep is not None and p not in live):
                    if skipped is not None and p is not None:
                        skipped.append(p)
                    continue
                gi = rule(g, y, *xs, **kw) if kw else rule(g, y, *xs)
                if gi is None:
                    if skipped is not None:
                        skipped.append(p)
                    continue
                if cx:
                    gi = gi.conj()
                if fit is not None:
                    gi = fit_cotangent(gi, *fit)
                prev = grads.get(p)
                if prev is None:
                    grads[p] = gi
                    if keep is None and (type(p) is not Leaf or p.hooks is not None):
                        heappush(heap, (-p.seq, p))
                else:
                    grads[p] = prev + gi
            continue
        if rewrap is not None:
            xs = [
                Tensor(x, rewrap, p) if p is not None and x is not None else x for x, p in zip(xs, parents, strict=True)
            ]
            if y is not None:
                y = tuple([Tensor(v, rewrap, Pick(n, k)) for k, v in enumerate(y)]) if n.nout else Tensor(y, rewrap, n)
        need = [p is not None and (keep is None or p in live) for p in parents]
        if n.nout and not op.sparse_vjp:
            g = [v if v is not None else zeros(*s) for v, s in zip(g, n.outs, strict=True)]
        gs = op.pull(g, y, xs, n.kw, need) if op.form != "again" else op.pull_again(g, rewrap)
        if ANOMALY.on:
            ANOMALY.check(n, gs)
        if free and (y is not None or op.form == "again" or _saved(xs)):
            n.args = n.y = None
        mask = masks.pop(n, None) if masks else None
        for p, gi, fit in zip(parents, gs, n.fits, strict=False):
            if gi is None or p is None:
                if skipped is not None and p is not None and op.none_is_zero:
                    skipped.append(p)
                continue
            m = None
            if type(gi) is Masked:
                gi, m = gi.g, gi.mask
            if mask is not None and op.form == "pointwise" and gi.shape == mask.shape:
                gi = gi.masked_fill(~mask, 0)
                m = mask if m is None else m & mask
            if fit is not None and not (type(v := gi._value) is ndarray and v.shape == fit[0] and v.dtype is fit[1].np):
                if m is not None and fit[0] != tuple(gi.shape):
                    m = None
                gi = fit_cotangent(gi, *fit)
            prev = grads.get(p)
            if prev is None:
                grads[p] = gi
                if keep is None and (type(p) is not Leaf or p.hooks is not None):
                    heappush(heap, (-p.seq, p))
                if m is not None:
                    masks[p] = m
            else:
                grads[p] = prev + gi
                if masks and p in masks:
                    if m is None:
                        del masks[p]
                    else:
                        masks[p] = masks[p] | m
    # Leaves without hooks were not visited: what has come together is theirs.
    for n in grads if keep is None else keep:
        if type(n) is Leaf and n not in result and (g := grads.get(n)) is not None:
            result[n] = g
    if dispatch.SETTLE is not None:
        result = {n: dispatch.SETTLE(g) for n, g in result.items()}
    return result


def _saved(xs: Any) -> bool:
    """Whether a node keeps tensors of its arguments: only then is there something to free, and a second walk to refuse."""
    return Tensor in [x.__class__ for x in xs]


def _latest_first(heap: list[tuple[int, Node]]) -> Iterable[Node]:
    """The nodes of a heap that grows while it is walked, the last made first."""
    while heap:
        yield heappop(heap)[1]


def _run_hooks(n: Node, g: Any) -> Any:
    # What retain_grad keeps is what the other hooks leave.
    for h in sorted(n.hooks or (), key=lambda h: getattr(h, "last", False)):
        r = h(g)
        if r is not None:
            g = r
    return g


def walk_forward(inputs: list[tuple[Node, Any]], outputs: list[Node | None], order: list[Node]) -> list[Any]:
    """Tangents of outputs from tangents of inputs along a tape that kept everything (see ``linearize``)."""
    ts: dict[Node, Any] = {n: t for n, t in inputs if t is not None}
    from .forward import fit_tangent

    for n in order:
        if n.op is None:
            if type(n) is Pick and n.parents[0] in ts:
                t = ts[n.parents[0]][n.index]
                if t is not None:
                    ts[n] = t
            continue
        tin = [ts.get(p) if p is not None else None for p in n.parents]
        if all(t is None for t in tin):
            continue
        token = CUT.set(max(CUT.get(), n.cut)) if n.cut is not None else None
        try:
            t = n.op.push(tin, n.y, n.args, n.kw)
        finally:
            if token is not None:
                CUT.reset(token)
        if t is None:
            continue
        ts[n] = (
            tuple(None if v is None else fit_tangent(v, w) for v, w in zip(t, n.y, strict=True))
            if n.nout
            else fit_tangent(t, n.y)
        )
    return [None if n is None else ts.get(n) for n in outputs]


__all__ = [
    "EAGER",
    "Leaf",
    "Masked",
    "Node",
    "Pick",
    "Reverse",
    "fit_cotangent",
    "imperative",
    "meta",
    "reachable",
    "walk_back",
    "walk_forward",
]
