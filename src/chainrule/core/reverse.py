"""Reverse mode: a tape of nodes, and a loop that walks it backwards.

A tensor of this level is a tensor one level down and the node that made it. A node keeps what its op's reverse rule names,
no more. The graph has no cycles, so it is freed as soon as nobody holds its outputs; walking it needs no recursion.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import dtypes as dt
from .dispatch import GRAD_MODE, STACK, Interpreter
from .errors import GraphFreedError
from .tensor import Tensor
from .views import meta, pin

if TYPE_CHECKING:
    from .op import Op

_count = itertools.count().__next__


class Node:
    """One application of an op on the tape."""

    __slots__ = ("__weakref__", "anomaly", "args", "fits", "hooks", "kw", "nout", "op", "outs", "parents", "seq", "y")

    def __init__(self, op: Any, args: Any, y: Any, parents: Any, kw: Any, fits: Any, nout: int = 0, outs: Any = None) -> None:
        self.op, self.args, self.y, self.parents, self.kw, self.fits = op, args, y, parents, kw, fits
        self.nout, self.outs = nout, outs
        self.hooks: list[Callable[..., Any]] | None = None
        self.anomaly: Any = None
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
        """Call ``f(grad_inputs, grad_outputs)`` after this node's rule has run."""
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

    def run(self, op: Op, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        if not self.alive:
            self.check(op.name)
        low, parents = [], []
        for a in args:
            if isinstance(a, Tensor) and a._interp is self:
                low.append(a._value)
                parents.append(a._aux)
            else:
                low.append(a)
                parents.append(None)
        y = op.bind(*low, **kw)
        if not op.differentiable or not GRAD_MODE.get():
            return y
        return self.record(op, args, low, parents, y, kw)

    def record(self, op: Op, args: Any, low: list[Any], parents: list[Any], y: Any, kw: dict[str, Any]) -> Any:
        need = tuple([p is not None for p in parents])
        keep_y, keep_x = (True, None) if self.keep_all else op.keeps(need)
        fits: list[Any] = []
        several = type(y) is tuple
        first = y[0] if several else y
        yv = first._value if first._interp is None else None
        kept: list[Any] = []
        i = 0
        for x, p in zip(low, parents, strict=True):
            if p is not None:
                xv = x._value
                if not several and yv is not None and x._interp is None and xv.shape == yv.shape and xv.dtype is yv.dtype:
                    fits.append(None)
                else:
                    fits.append((tuple(x.shape), x.dtype))
                kept.append(x if keep_x is None or keep_x[i] else None)
            else:
                fits.append(None)
                if not isinstance(x, Tensor):
                    kept.append(x)
                else:
                    kept.append(pin(x) if keep_x is None or keep_x[i] else None)
            i += 1
        if not several:
            node = Node(op, kept, y if keep_y else None, parents, kw, fits)
            if ANOMALY.on:
                ANOMALY.note(node, y)
            return Tensor(y, self, node)
        shapes = [(tuple(v.shape), v.dtype) for v in y]
        node = Node(op, kept, y if keep_y else None, parents, kw, fits, len(y), shapes)
        if ANOMALY.on:
            ANOMALY.note(node, y)
        return tuple(
            v if k in op.integer_outputs or v.dtype.category < dt.FLOAT else Tensor(v, self, Pick(node, k))
            for k, v in enumerate(y)
        )

    def lift(self, x: Tensor) -> Tensor:
        """A new variable of this level."""
        return Tensor(pin(x), self, Leaf())


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
    gd = g.dtype
    if gd is not d:
        if gd.category == dt.COMPLEX and d.category != dt.COMPLEX:
            g = g.real
        g = g.to(d)
    gs = g.shape
    if gs != shape:
        extra = len(gs) - len(shape)
        if extra > 0:
            g = g.sum(tuple(range(extra)))
        ones = tuple(k - len(shape) for k, n in enumerate(shape) if n == 1 and g.shape[k] != 1)
        if ones:
            g = g.sum(ones, True)
        if tuple(g.shape) != shape:
            g = g.expand(*shape)
    return g


def reachable(starts: Iterable[Node]) -> list[Node]:
    """The nodes that the starts depend on, in the order in which they were made."""
    seen: set[Node] = set()
    stack = [n for n in starts if n is not None]
    while stack:
        n = stack.pop()
        if n in seen:
            continue
        seen.add(n)
        for p in n.parents:
            if p is not None and p not in seen:
                stack.append(p)
    return sorted(seen, key=lambda n: n.seq)


def walk_back(
    starts: list[tuple[Node, Any]],
    *,
    wanted: Iterable[Node] | None = None,
    free: bool = True,
    rewrap: Reverse | None = None,
    captures: dict[Node, Any] | None = None,
) -> dict[Node, Any]:
    """Cotangents of leaves (and of the `wanted` nodes) from those of the starting nodes.

    ``rewrap`` is the level itself for ``create_graph=True``: rules then run on recorded tensors, so that their results
    can be differentiated again.
    """
    order = reachable(n for n, _ in starts)
    keep = None
    if wanted is not None:
        keep = set(wanted)
        live: set[Node] = set()
        for n in order:
            if n in keep or any(p in live for p in n.parents):
                live.add(n)
        order = [n for n in order if n in live]
    grads: dict[Node, Any] = {}
    masks: dict[Node, Any] = {}
    for n, g in starts:
        _accumulate(grads, masks, n, g)
    result: dict[Node, Any] = {}
    for n in reversed(order):
        g = grads.pop(n, None)
        if g is None:
            continue
        if n.hooks is not None and type(n) is not Node:
            g = _run_tensor_hooks(n, g)
        elif n.hooks is not None:
            g = _run_tensor_hooks(n, g)
        if keep is not None and n in keep:
            result[n] = g
        if captures is not None and n in captures:
            captures[n](g)
        if type(n) is Pick:
            p = n.parents[0]
            lst = grads.get(p)
            if lst is None:
                lst = grads[p] = [None] * p.nout
            lst[n.index] = g if lst[n.index] is None else lst[n.index] + g
            continue
        op = n.op
        if op is None:
            if keep is None:
                result[n] = g
            continue
        parents = n.parents
        if n.args is None:
            raise GraphFreedError(
                f"backward: the values that {op.name} saved were freed by an earlier backward() or grad(). "
                f"Pass retain_graph=True to the earlier call if you need to go through the graph a second time."
            )
        xs, y = n.args, n.y
        if rewrap is not None:
            xs = [Tensor(x, rewrap, p) if p is not None and x is not None else x for x, p in zip(xs, parents, strict=True)]
            if y is not None:
                y = tuple(Tensor(v, rewrap, Pick(n, k)) for k, v in enumerate(y)) if n.nout else Tensor(y, rewrap, n)
        need = [p is not None for p in parents] if keep is None else [p is not None and p in live for p in parents]
        if n.nout and not op.sparse_vjp:
            g = [v if v is not None else _zeros(s) for v, s in zip(g, n.outs, strict=True)]
        gs = op.pull(g, y, xs, n.kw, need)
        if ANOMALY.on:
            ANOMALY.check(n, gs)
        mask = masks.pop(n, None) if masks else None
        for p, gi, fit, wants in zip(parents, gs, n.fits, need, strict=False):
            if gi is None or not wants:
                continue
            m = None
            if type(gi) is Masked:
                gi, m = gi.g, gi.mask
            if mask is not None and op.form == "pointwise" and gi.shape == mask.shape:
                gi = gi.masked_fill(~mask, 0)
                m = mask if m is None else m & mask
            if fit is not None:
                if m is not None and fit[0] != tuple(gi.shape):
                    m = None
                gi = fit_cotangent(gi, *fit)
            prev = grads.get(p)
            if prev is None:
                grads[p] = gi
                if m is not None:
                    masks[p] = m
            else:
                grads[p] = prev + gi
                if masks and p in masks:
                    if m is None:
                        del masks[p]
                    else:
                        masks[p] = masks[p] | m
        if free:
            n.args = n.y = None
    return result


def _accumulate(grads: dict[Node, Any], masks: dict[Node, Any], n: Node, g: Any) -> None:
    prev = grads.get(n)
    grads[n] = g if prev is None else prev + g


def _zeros(s: tuple[tuple[int, ...], dt.DType]) -> Tensor:
    import numpy as np

    return Tensor(np.zeros(s[0], s[1].np))


def _run_tensor_hooks(n: Node, g: Any) -> Any:
    for h in list(n.hooks or ()):
        r = h(g)
        if r is not None:
            g = r
    return g


def walk_forward(inputs: list[tuple[Node, Any]], outputs: list[Tensor], level: Reverse, order: list[Node]) -> list[Any]:
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
        t = n.op.push(tin, n.y, n.args, n.kw)
        if t is None:
            continue
        ts[n] = tuple(None if v is None else fit_tangent(v, w) for v, w in zip(t, n.y, strict=True)) if n.nout else fit_tangent(t, n.y)
    return [ts.get(o._aux) if o._interp is level else None for o in outputs]


__all__ = ["EAGER", "Leaf", "Masked", "Node", "Pick", "Reverse", "fit_cotangent", "imperative", "meta", "reachable", "walk_back", "walk_forward"]
