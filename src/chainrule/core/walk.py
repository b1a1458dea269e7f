"""The walk back over the tape with cotangents. (The one forwards, for linearize, is in :mod:`chainrule.transforms.tangents`.)

The first result of a node is the node itself; the others are :class:`Pick` nodes. So most cotangents arrive as one tensor.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any

from numpy import ndarray

from . import dispatch
from . import dtypes as dt
from .dispatch import BLOCKED, CUT, constant
from .errors import ZERO, GraphFreedError, see
from .reverse import Leaf, Masked, Node, Pick, Reverse
from .shapes import zeros
from .steps import FUSE_SIZE, let_go, quickly, shortly
from .steps import fit_cotangent as fit_cotangent
from .tensor import Tensor
from .types import COMPLEX_NUMS
from .watch import WATCHED, WATCHERS

_by_seq = operator.attrgetter("seq")
# A pointwise rule on large arrays as one loop: ``FUSE(op, which, rule, g, y, xs, kw)``, or None; set by ops/elementwise/fusing.py.
FUSE: Any = None
# Reverse rules of other ops on small arrays as straight-line code: ``STRAIGHT(node, g, live)``, or None; set by pulls.py.
STRAIGHT: Any = None


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


# -- backwards ----------------------------------------------------------------------------------------------------------


def walk_back(
    starts: list[tuple[Node, Any]],
    *,
    wanted: Iterable[Node] | None = None,
    stop: bool = False,
    free: bool = True,
    rewrap: Reverse | None = None,
    skipped: list[Node] | None = None,
    must: Iterable[Node] | None = None,
    early: dict[Node, list[Any]] | None = None,
    absent: dict[Node, Any] | None = None,
) -> dict[Node, Any]:
    """Cotangents of leaves (and of the `wanted` nodes) from those of the starting nodes.

    ``stop`` says that the walk ends at the wanted nodes: what made them, and their hooks, are left to another walk.
    ``skipped`` collects the nodes whose cotangent a rule declared to be zero: nothing is computed for them.
    ``rewrap`` is the level itself for ``create_graph=True``: rules then run on recorded tensors, so that their results
    can be differentiated again. ``must`` are nodes that are visited even if no cotangent arrives: another process waits there.
    ``early`` says of nodes which leaves get their last cotangent from them, as functions of it.
    A start may be :class:`Masked`, and ``absent`` collects where the cotangents of leaves are present: so a walk is a part of another.
    """
    due = set(must) if must else None
    grads: dict[Node, Any] = {}  # of nodes, and so of their first results
    others: dict[Node, dict[int, Any]] = {}  # of the other results of a node
    masks: dict[Node, Any] = {}  # where a cotangent is absent
    todo: list[Any] = []  # the nodes to visit, the last made first: all in order where they are known, else a heap
    result: dict[Node, Any] = {}
    keep: set[Node] | None = None
    live: set[Node] | None = None
    plain = rewrap is None and not WATCHED.on
    quick = plain and due is None and early is None and not stop
    visited: list[Node] = []
    inner: set[Node] | None = None  # nodes to keep that are no leaves
    if wanted is not None:
        keep = set(wanted)
        inner = {n for n in keep if type(n) is not Leaf} or None
        if quick and len(starts) == 1 and (g := starts[0][1]).__class__ is Tensor:
            n = starts[0][0]
            grads[n] = g
            n = quickly(n, grads, todo, None, inner, keep, free, skipped, visited)
            starts = [] if n is None else [(n, grads.pop(n))]
        todo, live = _towards([n for n, _ in starts], keep, stop, due)
        if free and visited and (not starts or starts[0][0] in live):
            let_go(visited)
    for n, g in starts:
        prev = grads.get(n)
        if g.__class__ is Masked:
            g, m = g.g, g.mask
            if prev is None:
                masks[n] = m
            elif n in masks:
                _join_masks(masks, n, m)
        elif n in masks:
            del masks[n]
        grads[n] = g if prev is None else prev + g
        if prev is None and live is None and (type(n) is not Leaf or n.hooks is not None):
            heappush(todo, (-n.seq, n))
    if due is not None and live is None:
        for n in due:
            heappush(todo, (-n.seq, n))
    while todo:
        n = heappop(todo)[1] if live is None else todo.pop()
        if quick and not masks and (g := grads.get(n)) is not None and g._interp is None:
            n = quickly(n, grads, todo, live, inner, None, free, skipped)
            if n is None:
                continue
        g = grads.pop(n, None)
        if g is None and n not in others:
            if due is None or n not in due:
                continue
            g = zeros(*n.result)
        if due is not None:
            due.discard(n)
        if stop and n in keep:  # type: ignore[operator]
            result[n] = g
            continue
        if n.rare and n.hooks is not None and g is not None:
            g = _run_hooks(n, g)
        if keep is not None and g is not None and n in keep:
            result[n] = g
            if live is not None and live.isdisjoint(n.parents):
                continue  # nothing beyond is asked for
        op = n.op
        if op is None:
            if type(n) is Pick:
                p = n.parents[0]
                parts = others.setdefault(p, {})
                if live is None and not parts and p not in grads:
                    heappush(todo, (-p.seq, p))
                parts[n.index] = g if n.index not in parts else parts[n.index] + g
            elif keep is None:
                result[n] = g
            continue
        if n.rare:
            if n.nout:
                g = _of_all_results(n, g, others.pop(n, None))
            if n.around is not None:
                g = _run_before(n, g)
        gs = _cotangents(n, g, masks, plain, rewrap, live)
        if n.rare and n.around is not None:
            gs = _run_after(n, gs, g)
        mask = masks.pop(n, None) if masks else None
        moved = _moved(n, g, mask, live) if mask is not None and op.moves else None
        if free:
            n.release()
        _hand_on(n, gs, mask, moved, grads, masks, todo if live is None else None, skipped)
        if early is not None and n in early:
            for leaf, tell in early.pop(n):
                tell(leaf, grads.get(leaf))
    # Leaves without hooks were not visited: what has come together is theirs.
    for n in grads if keep is None else keep:
        if type(n) is Leaf and n not in result and (g := grads.get(n)) is not None:
            result[n] = g
    if absent is not None:
        absent.update([(n, m) for n, m in masks.items() if n in result])
    if plain and CUT.get() >= 0:
        result = {n: constant(g) for n, g in result.items()}
    if dispatch.SETTLE is not None:
        result = {n: dispatch.SETTLE(g) for n, g in result.items()}
    return result


def _cotangents(
    n: Node, g: Any, masks: dict[Node, Any], plain: bool, rewrap: Reverse | None, live: set[Node] | None
) -> Any:
    """The cotangents of the inputs of a node, by the shortest way there is: code on arrays, its rules one by one, the op's `pull`."""
    op, rules = n.op, n.op.pull_rules
    if masks:
        hidden = masks.get(n) if op.through and not n.nout else None
        return _pulled(n, g if hidden is None else Masked(g, hidden), rewrap, live)
    if plain and n.args is not None:
        if rules is not None and (gs := shortly(n, g, rules, live)) is not None:
            return gs
        if op.pull_by_code is not False and n.level is None and STRAIGHT is not None:
            if (gs := STRAIGHT(n, g, live)) is not None:
                return gs
        if rules is not None:
            return _by_rules(n, g, rules, live)
    return _pulled(n, g, rewrap, live)


def _hand_on(
    n: Node, gs: Any, mask: Any, moved: Any, grads: dict[Node, Any], masks: dict[Node, Any], heap: list[Any] | None,
    skipped: list[Node] | None,
) -> None:  # fmt: skip
    """Add the cotangents of a node's inputs to what has come together for them; with a `heap`, those that are new are to be visited."""
    i = 0
    for p in n.parents:
        gi, fit = gs[i] if i < len(gs) else None, n.fits[i]
        i += 1
        if p is None:
            continue
        if gi is None:
            if skipped is not None and n.op.none_is_zero:
                skipped.append(p)
            continue
        m = None
        if moved is not None:
            m = moved[i - 1]
        elif mask is not None or gi.__class__ is Masked:
            gi, m = _masked(gi, mask, n.op)
        if fit is not None and not (type(v := gi._value) is ndarray and v.shape == fit[0] and v.dtype is fit[1].np):
            if m is not None and fit[0] != tuple(gi.shape):
                m = fit_cotangent(m.to(gi.dtype), *fit) != 0
            gi = fit_cotangent(gi, *fit)
        prev = grads.get(p)
        if prev is None:
            grads[p] = gi
            if heap is not None and (type(p) is not Leaf or p.hooks is not None):
                heappush(heap, (-p.seq, p))
            if m is not None:
                masks[p] = m
        else:
            grads[p] = prev + gi
            if masks and p in masks:
                _join_masks(masks, p, m)


def walk_lean(n: Any, g: Tensor) -> dict[Node, Any]:
    """`walk_back` from one lean node to the leaves, with little to set up."""
    grads: dict[Node, Any] = {n: g}
    todo: list[Any] = []
    while not WATCHED.on:
        n = quickly(n, grads, todo, None, None, None, True, None)
        if n is not None:
            break
        if not todo:
            return grads
        n = heappop(todo)[1]
    return walk_back(list(grads.items()))


def _towards(
    starts: list[Node], keep: set[Node], stop: bool, due: set[Node] | None = None
) -> tuple[list[Node], set[Node]]:
    """The nodes to visit between the starts and those to keep, the last made last; and the set of those that get a cotangent.

    With `stop` nothing that lies beyond a node to keep is looked at. Those that are `due` are visited, and what leads to them.
    """
    if due:
        starts = [*starts, *due]
    order, seen, stray = list(dict.fromkeys(starts)), set(starts), False
    for n in order:
        if stop and n in keep:
            continue
        for p in n.parents:
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
        order.sort(key=_by_seq)
    if not stray:
        return order, seen
    live = seen & keep if due is None else seen & (keep | due)
    for n in order:
        if n not in live and not live.isdisjoint(n.parents):
            live.add(n)
    return [n for n in order if n in live], live


def _by_rules(n: Node, g: Any, rules: Any, live: set[Node] | None) -> list[Any]:
    """Cotangents of the inputs where there is one rule an input: the common case. Those of a pointwise op are its forward rules, conjugated."""
    y, xs, kw = n.y, n.args, n.kw
    cx = n.op.conjugated and (
        g._value.dtype.num in COMPLEX_NUMS if g._interp is None else g.dtype.category == dt.COMPLEX
    )
    if cx:
        g = g.conj()
    fuse = FUSE if g._interp is None and g._value.size >= FUSE_SIZE and n.op.form == "pointwise" else None
    gs: list[Any] = []
    i, count = 0, len(xs)
    for p in n.parents:
        rule = rules[i]
        i += 1
        if p is None or rule is None or rule is ZERO or (live is not None and p not in live):
            gs.append(None)
            continue
        gi = None if fuse is None else fuse(n.op, i, rule, g, y, xs, kw)
        if gi is not None:
            pass
        elif kw:
            gi = rule(g, y, *xs, **kw)
        elif count == 2:
            gi = rule(g, y, xs[0], xs[1])
        else:
            gi = rule(g, y, xs[0]) if count == 1 else rule(g, y, *xs)
        gs.append(gi.conj() if cx and gi is not None else gi)
    return gs


def _pulled(n: Node, g: Any, rewrap: Reverse | None, live: set[Node] | None) -> list[Any]:
    """Cotangents of the inputs by the op's own `pull`, on recorded tensors where they are to be differentiated again."""
    op, parents, xs, y = n.op, n.parents, n.args, n.y
    if xs is None:
        xs, y = kept_by(n)
    if op.again is not None:
        return op.again(g, rewrap)
    if rewrap is not None:
        xs = [Tensor(x, rewrap, p) if p is not None and x is not None else x for x, p in zip(xs, parents, strict=True)]
        if n.nout and y is not None:
            y = tuple([v if v is None else Tensor(v, rewrap, Pick(n, k) if k else n) for k, v in enumerate(y)])
        elif y is not None:
            y = Tensor(y, rewrap, n)
    need = []
    for p in parents:
        need.append(p is not None and (live is None or p in live))
    if n.level is not None and rewrap is None:  # the level of the tape is done with, also where it is active
        token = BLOCKED.set(BLOCKED.get() | {n.level})
        try:
            return op.pull(g, y, xs, n.kw, need)
        finally:
            BLOCKED.reset(token)
    gs = op.pull(g, y, xs, n.kw, need)
    if WATCHED.on and (check := WATCHERS.get().check) is not None:
        check(n, gs)
    return gs


def kept_by(n: Node) -> tuple[Any, Any]:
    """What a node kept, its arguments and its result; refused where an earlier walk let it go."""
    if n.args is not None:
        return n.args, n.y
    if n.store is None:
        raise GraphFreedError(
            f"backward: Trying to backward through the graph a second time, but the saved values of {n.op.name} have already been freed by an "
            f"earlier backward() or grad(). Specify retain_graph=True in that call if you need to go through the graph again."
            + see("Backward a second time")
        )
    return n.store.values()


def _run_before(n: Node, g: Any) -> Any:
    """Hooks on the node itself, which see the cotangents of all its results and may replace them."""
    gs = tuple(g) if n.nout else (g,)
    for h in list(n.around[0] if n.around is not None else ()):
        r = h(gs)
        if r is not None:
            gs = (r,) if isinstance(r, Tensor) else tuple(r)
    return list(gs) if n.nout else gs[0]


def _run_after(n: Node, gs: Any, g: Any) -> Any:
    """Hooks on the node itself, which see the cotangents of its inputs and results and may replace the former."""
    got = []
    for k, fit in enumerate(n.fits):
        v = gs[k] if k < len(gs) else None
        v = v.g if type(v) is Masked else v
        got.append(v if v is None or fit is None else fit_cotangent(v, *fit))
    ins, outs = tuple(got), tuple(g) if n.nout else (g,)
    changed = False
    for h in list(n.around[1]):  # type: ignore[index]
        r = h(ins, outs)
        if r is not None:
            ins, changed = (r,) if isinstance(r, Tensor) else tuple(r), True
    return list(ins) if changed else gs


def _of_all_results(n: Node, g: Any, parts: dict[int, Any] | None) -> list[Any]:
    """The cotangents of all results of a node: of its first, and of the others that have one."""
    gs = [g] + [None] * (n.nout - 1)
    for k, v in (parts or {}).items():
        gs[k] = v if gs[k] is None else gs[k] + v
    return gs if n.outs is None else [v if v is not None else zeros(*s) for v, s in zip(gs, n.outs, strict=True)]


def _run_hooks(n: Node, g: Any) -> Any:
    # What retain_grad keeps is what the other hooks leave.
    for h in sorted(n.hooks or (), key=lambda h: getattr(h, "last", False)):
        r = h(g)
        if r is not None:
            g = r
    return g


def _masked(g: Any, mask: Any, op: Any) -> tuple[Any, Any]:
    """A cotangent and where it is present: a pointwise op passes the mask of its result on to its inputs."""
    m = None
    if type(g) is Masked:
        g, m = g.g, g.mask
    if mask is not None and op.form == "pointwise" and g.shape == mask.shape:
        g = g.masked_fill(~mask, 0)
        m = mask if m is None else m & mask
    return g, m


def _moved(n: Node, g: Any, mask: Any, live: set[Node] | None) -> list[Any]:
    """Where the cotangents of the inputs are present, of an op that moves and adds elements: the places move alike."""
    return [m if m is None else m != 0 for m in _pulled(n, mask.to(g.dtype), None, live)]


def _join_masks(masks: dict[Node, Any], p: Node, m: Any) -> None:
    """A sum of cotangents is present where one of them is."""
    if m is None:
        del masks[p]
    else:
        masks[p] = masks[p] | m
