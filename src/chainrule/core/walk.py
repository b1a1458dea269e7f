"""The walk over the tape: backwards with cotangents, forwards (for linearize) with tangents.

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
from .batching import Batching
from .dispatch import BLOCKED, CUT, innermost
from .errors import FLOATING, ZERO, GraphFreedError, see
from .reverse import Leaf, Masked, Node, Pick, Reverse
from .shapes import sizes_of, zeros, zeros_like_tensor
from .short import Lean, short_rule
from .sizes import SEEN, first_ragged, has_ragged, is_ragged
from .tensor import Tensor
from .types import COMPLEX_NUMS, REAL_NUMS
from .views import meta
from .watch import WATCHED, WATCHERS

_by_seq = operator.attrgetter("seq")
SMALL = (
    1 << 14
)  # elements below which a rule runs as straight-line code: beyond, ops have kernels, and their calls cost nothing beside them

# A pointwise rule on large arrays as one loop: ``FUSE(op, which, rule, g, y, xs, kw)``, or None; set by ops/elementwise/fusing.py.
FUSE: Any = None
FUSE_SIZE = 1 << 12
# Reverse rules of other ops on small arrays as straight-line code: ``STRAIGHT(node, g, live)``, or None; set by straight.py.
STRAIGHT: Any = None


def fit_cotangent(g: Tensor, shape: tuple[int, ...], d: dt.DType) -> Tensor:
    """The cotangent brought back to its input's space: realness, type, and a sum over what was broadcast."""
    gd = dt.FROM_NP[innermost(g).dtype]
    if gd is d and sizes_of(g) == shape:
        # A ragged size that is the same in all components equals an int, but a gradient has the structure of its input.
        return g if not SEEN or [*map(is_ragged, sizes_of(g))] == [*map(is_ragged, shape)] else g.reshape(shape)
    if gd is not d:
        if gd.category == dt.COMPLEX and d.category != dt.COMPLEX:
            g = g.real
        if d.np.itemsize >= g.dtype.np.itemsize or sizes_of(g) == shape:
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
        if gd is not d and g.dtype is not d:  # a wider type is summed before it is rounded
            g = g.to(d)
    if SEEN and [*map(is_ragged, sizes_of(g))] != [*map(is_ragged, shape)]:
        g = g.reshape(shape)
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
    inner: set[Node] | None = None  # nodes to keep that are no leaves
    if wanted is not None:
        keep = set(wanted)
        inner = {n for n in keep if type(n) is not Leaf} or None
        if quick and len(starts) == 1 and (g := starts[0][1]).__class__ is Tensor:
            n = starts[0][0]
            grads[n] = g
            n = _quickly(n, grads, todo, None, inner, keep, free, skipped)
            starts = [] if n is None else [(n, grads.pop(n))]
        todo, live = _towards([n for n, _ in starts], keep, stop, due)
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
            n = _quickly(n, grads, todo, live, inner, None, free, skipped)
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
        rules = op.pull_rules
        if rules is not None and plain and not masks and n.args is not None:
            gs = _shortly(n, g, rules, live)
            if gs is None and op.pull_by_code is not False and STRAIGHT is not None:
                gs = STRAIGHT(n, g, live)
            if gs is None:
                gs = _by_rules(n, g, rules, live)
        else:
            gs = None
            if (
                plain
                and op.pull_by_code is not False
                and not masks
                and n.args is not None
                and n.level is None
                and STRAIGHT is not None
            ):
                gs = STRAIGHT(n, g, live)
            if gs is None:
                hidden = masks.get(n) if op.through and masks and not n.nout else None
                gs = _pulled(n, g if hidden is None else Masked(g, hidden), rewrap, live)
        if n.rare and n.around is not None:
            gs = _run_after(n, gs, g)
        mask = masks.pop(n, None) if masks else None
        moved = _moved(n, g, mask, live) if mask is not None and op.moves else None
        if free:
            n.release()
        i = 0
        for p in n.parents:
            gi, fit = gs[i] if i < len(gs) else None, n.fits[i]
            i += 1
            if p is None:
                continue
            if gi is None:
                if skipped is not None and op.none_is_zero:
                    skipped.append(p)
                continue
            m = None
            if moved is not None:
                m = moved[i - 1]
            elif mask is not None or gi.__class__ is Masked:
                gi, m = _masked(gi, mask, op)
            if fit is not None and not (type(v := gi._value) is ndarray and v.shape == fit[0] and v.dtype is fit[1].np):
                if m is not None and fit[0] != tuple(gi.shape):
                    m = fit_cotangent(m.to(gi.dtype), *fit) != 0
                gi = fit_cotangent(gi, *fit)
            prev = grads.get(p)
            if prev is None:
                grads[p] = gi
                if live is None and (type(p) is not Leaf or p.hooks is not None):
                    heappush(todo, (-p.seq, p))
                if m is not None:
                    masks[p] = m
            else:
                grads[p] = prev + gi
                if masks and p in masks:
                    _join_masks(masks, p, m)
        if early is not None and n in early:
            for leaf, tell in early.pop(n):
                tell(leaf, grads.get(leaf))
    # Leaves without hooks were not visited: what has come together is theirs.
    for n in grads if keep is None else keep:
        if type(n) is Leaf and n not in result and (g := grads.get(n)) is not None:
            result[n] = g
    if absent is not None:
        absent.update([(n, m) for n, m in masks.items() if n in result])
    if dispatch.SETTLE is not None:
        result = {n: dispatch.SETTLE(g) for n, g in result.items()}
    return result


def _quickly(
    n: Any,
    grads: dict[Node, Any],
    todo: list[Any],
    live: set[Node] | None,
    inner: set[Node] | None,
    alone: set[Node] | None,
    free: bool,
    skipped: list[Node] | None,
) -> Any:
    """Nodes one after the other whose rule is straight-line code on small arrays. The first that is something else is handed back.

    With `live`, `todo` is the list of nodes in their order, else a heap. The nodes of `inner` are handed back. With `alone`, the nodes whose
    cotangents are wanted, it goes on only as long as there is one way on, and what is reached is wanted.
    """
    given = grads[n]
    v = first = given._value
    if v.__class__ is not ndarray or v.dtype.num not in REAL_NUMS:
        return n
    del grads[n]
    while True:
        op = n.op
        if op is None or n.rare or v.size >= SMALL or (inner is not None and n in inner):
            break
        lean = n.__class__ is Lean
        noted = op.short
        if noted is None or noted[0] is not op.pull_rules:
            noted = short_rule(op)
        short = noted[2] if lean else noted[1]
        if short is None or (n.raw if lean else n.args) is None or (SEEN and _is_ragged(n)):
            break
        parents = n.parents
        p = parents[0]
        at = 0
        if len(parents) > 1:
            # Where one operand is a number or a constant, the op has one input like any other.
            if p is None:
                p, at = parents[1], 1
            elif parents[1] is not None:
                at = 2
                if alone is not None:
                    if not _one_way(parents, alone):
                        break
                elif live is not None and not (p in live and parents[1] in live):
                    break
        if alone is not None and p.__class__ is Leaf and (p not in alone or p.hooks is not None):
            break
        try:
            out = short(n, v)
        except FLOATING:
            break  # by the rules, whose ops know what to do
        if out is None:
            break
        if out.__class__ is not ndarray and at != 2:
            out = out[at]
            if out is None:
                break
        if free:
            if lean:
                n.raw = n.kept = None
            elif n.y is not None or n.args[0].__class__ is Tensor:
                n.args = n.y = None
            else:
                n.release()
        fit = n.fits
        if at == 2:
            q, r = parents[1], out[1]
            if r is v and v is not first:
                given, first = Tensor(v), v  # several get this very cotangent
            out = out[0]
            if out is not None and fit[0] is not None:
                out = _fitted(out, fit[0])
            if r is None:
                if skipped is not None and op.none_is_zero:
                    skipped.append(q)
            else:
                if fit[1] is not None:
                    r = _fitted(r, fit[1])
                if q is p and out is not None:
                    if p in grads:  # in the order in which all ways add
                        _add(grads, p, given if out is first else _boxed(out), todo, live)
                        out = r
                    else:
                        out = (Tensor(out) + Tensor(r))._value
                elif out is None or (q.__class__ is not Leaf and q.seq > p.seq) or p.__class__ is Leaf:
                    # The one that was made later comes next.
                    if out is not None:
                        _add(grads, p, given if out is first else _boxed(out), todo, live)
                    elif skipped is not None and op.none_is_zero:
                        skipped.append(p)
                    p, out = q, r
                else:
                    _add(grads, q, given if r is first else _boxed(r), todo, live)
            if out is None:
                if skipped is not None and op.none_is_zero:
                    skipped.append(p)
                return None
        elif fit[at] is not None:
            out = _fitted(out, fit[at])
        if p.__class__ is Leaf or (todo if live is None else not todo or todo[-1] is not p or p in grads):
            if p.__class__ is Leaf or live is not None or p in grads or -todo[0][0] > p.seq:
                _add(grads, p, given if out is first else _boxed(out), todo, live)
                return None
        elif live is not None:
            todo.pop()
        n, v = p, out
    grads[n] = given if v is first else _boxed(v)
    return n


def _is_ragged(n: Any) -> bool:
    """Whether ragged sizes are among what the node's op was told, or among those of its inputs."""
    op = n.op
    return (bool(op.sizes) and first_ragged(op.sizes, n.kw) is not None) or any(
        f is not None and has_ragged(f[0]) for f in n.fits
    )


def _fitted(v: Any, fit: Any) -> Any:
    """`fit_cotangent` of an array."""
    return v if v.shape == fit[0] and v.dtype is fit[1].np else fit_cotangent(Tensor(v), *fit)._value


def _add(grads: dict[Node, Any], n: Node, g: Any, todo: list[Any], live: set[Node] | None) -> None:
    """Add a cotangent to that of a node, which is visited later."""
    prev = grads.get(n)
    if prev is not None:
        grads[n] = prev + g
        return
    grads[n] = g
    if live is None and (n.__class__ is not Leaf or n.hooks is not None):
        heappush(todo, (-n.seq, n))


def _boxed(v: Any) -> Tensor:
    """A cotangent as a tensor; what shows other memory shares it with somebody."""
    g = Tensor(v)
    if v.base is not None:
        meta(g).pinned = True
    return g


def _one_way(parents: Any, keep: set[Node]) -> bool:
    """Whether one node at most is to be visited next, and leaves beside it are to be kept."""
    ways = None
    for p in parents:
        if p is None:
            continue
        if p.__class__ is Leaf:
            if p not in keep or p.hooks is not None:
                return False
        elif ways is None or ways is p:
            ways = p
        else:
            return False
    return True


def _all_live(parents: Any, live: set[Node]) -> bool:
    """Whether all inputs that have a node get a cotangent."""
    for p in parents:
        if p is not None and p not in live:
            return False
    return True


def _shortly(n: Node, g: Any, rules: Any, live: set[Node] | None) -> Any:
    """The cotangents of the inputs of a pointwise op by straight-line code on small real arrays; None where there is none for them."""
    op = n.op
    if op.form != "pointwise" or n.__class__ is Lean:
        return None
    i, v = g._interp, g._value
    if i is not None:
        return _of_examples(n, i, v._value, rules, live) if i.__class__ is Batching else None
    if type(v) is not ndarray or v.size >= FUSE_SIZE or v.dtype.num not in REAL_NUMS:
        return None
    noted = op.short
    if noted is None or noted[0] is not rules:
        noted = short_rule(op)
    short = noted[1]
    if short is None:
        return None
    if live is not None and len(n.parents) > 1 and not _all_live(n.parents, live):
        return None
    try:
        out = short(n, v)
    except FLOATING:
        return None  # by the rules, whose ops know what to do
    if out is None:
        return _of_examples(n, None, v, rules, live)
    if out.__class__ is ndarray:
        return (g if out is v else Tensor(out),)
    return [None if r is None else g if r is v else Tensor(r) for r in out]


def _of_examples(n: Node, level: Any, v: Any, rules: Any, live: set[Node] | None) -> Any:
    """The same with a vmap between the tape and the arrays: `v` is the cotangent of all examples at `level`, or of none in particular (None)."""
    op = n.op
    if v.__class__ is not ndarray or v.size >= FUSE_SIZE or v.dtype.num not in REAL_NUMS or SEEN:
        return None
    noted = op.short
    if noted is None or noted[0] is not rules:
        noted = short_rule(op)
    short = noted[2]
    if short is None or (live is not None and not _all_live([p for p in n.parents if p is not None], live)):
        return None
    # Examples are aligned with what is the same for all of them from the end: where all have one rank, or that has a lower one.
    rank, other = (v.ndim, -1) if level is not None else (-1, v.ndim)
    arrays: list[Any] = []
    for x in (n.y, *n.args):
        if isinstance(x, Tensor):
            i, x = x._interp, x._value
            if i is None:
                other = max(other, x.ndim)
            elif level is None and i.__class__ is Batching:
                level, x = i, x._value
                rank = x.ndim
            elif i is level:
                x = x._value
                if x.ndim != rank:
                    return None
            else:
                return None
            if x.__class__ is not ndarray or x.dtype is not v.dtype:
                return None
        arrays.append(x)
    if level is None or other >= rank:
        return None
    try:
        out = short(Lean(op, arrays[1:], arrays[0], n.parents, _NOTHING), v)
    except FLOATING:
        return None
    if out.__class__ is ndarray:
        out = (out,)
    return None if out is None else [_at(level, rank, r) for r in out]


_NOTHING = (None,)


def _at(level: Any, rank: int, r: Any) -> Any:
    """An array as a tensor: of all examples, where it has their rank."""
    return None if r is None else Tensor(r) if r.ndim < rank else Tensor(Tensor(r), level)


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


def pulled_by_hand(n: Node, grads: tuple[Any, ...]) -> Any:
    """A node called as a function of the cotangents of its results."""
    wanted = max(n.nout, 1)
    if len(grads) != wanted:
        raise TypeError(f"{n.name()} expected {wanted} arguments, got {len(grads)} instead")
    if n.op is None:
        raise TypeError(f"{n.name()} cannot be called: it has no rule")
    gs = _pulled(n, list(grads) if n.nout else grads[0], None, None)
    gs = [g.g if g.__class__ is Masked else g for g in gs]
    out = [g if g is None or fit is None else fit_cotangent(g, *fit) for g, fit in zip(gs, n.fits, strict=False)]
    return out[0] if len(out) == 1 else tuple(out)


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


# -- forwards -----------------------------------------------------------------------------------------------------------


def walk_forward(inputs: list[tuple[Node, Any]], outputs: list[Node | None], order: list[Node]) -> list[Any]:
    """Tangents of outputs from tangents of inputs along a tape that kept everything (see ``linearize``)."""
    from .forward import fit_tangent

    ts: dict[Node, Any] = {n: t for n, t in inputs if t is not None}
    others: dict[Node, Any] = {}
    for n in order:
        if n.op is None:
            if type(n) is Pick and (all_of := others.get(n.parents[0])) is not None and all_of[n.index] is not None:
                ts[n] = all_of[n.index]
            continue
        tin = [ts.get(p) if p is not None else None for p in n.parents]
        if all(t is None for t in tin):
            if n.result is None:
                continue
            tin = [zeros_like_tensor(x) for x in n.args]
        token = CUT.set(max(CUT.get(), n.cut)) if n.cut is not None else None
        try:
            t = n.op.push(tin, n.y, n.args, n.kw)
        finally:
            if token is not None:
                CUT.reset(token)
        if t is None:
            continue
        if n.nout:
            others[n] = [None if v is None else fit_tangent(v, w) for v, w in zip(t, n.y, strict=True)]
            t = others[n][0]
            if t is not None:
                ts[n] = t
        else:
            ts[n] = fit_tangent(t, n.y)
    return [None if n is None else ts.get(n) for n in outputs]
