"""Steps of the walk on small arrays, where a rule is straight-line code: no op, and no tensor between one node and the next.

What a step cannot do (other payloads, several results, hooks, masks, rules that look at values) is left to the walk: each says so by handing
the node back, or by None. Both ways give the same to the last bit.
"""

from __future__ import annotations

from heapq import heappush
from typing import Any

from numpy import ndarray

from . import dtypes as dt
from .batching import Batching
from .dispatch import innermost
from .errors import FLOATING
from .reverse import Leaf, Node
from .shapes import sizes_of
from .short import Lean, short_rule
from .sizes import SEEN, first_ragged, has_ragged, is_ragged
from .tensor import Meta, Tensor
from .types import REAL_NUMS

# Elements below which a rule runs as straight-line code: beyond, ops have kernels, and their calls cost nothing beside them.
SMALL = 1 << 14
FUSE_SIZE = 1 << 12  # elements from which the rule of a pointwise op is one loop
_NOTHING = (None,)


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


def quickly(
    n: Any,
    grads: dict[Node, Any],
    todo: list[Any],
    live: set[Node] | None,
    inner: set[Node] | None,
    alone: set[Node] | None,
    free: bool,
    skipped: list[Node] | None,
    visited: list[Node] | None = None,
) -> Any:
    """Nodes one after the other whose rule is straight-line code on small arrays. The first that is something else is handed back.

    With `live`, `todo` is the list of nodes in their order, else a heap. The nodes of `inner` are handed back. With `alone`, the nodes whose
    cotangents are wanted, it goes on only as long as there is one way on, and notes whom it `visited`: whether the way leads anywhere is not known.
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
        if visited is not None:
            visited.append(n)
        elif free:
            if lean:
                n.raw = n.kept = None
            elif n.y is not None or n.args[0].__class__ is Tensor:
                n.args = n.y = None
            elif len(parents) > 1 or n.args[0] is not None:
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
        elif (f := fit[at]) is not None and (out.shape != f[0] or out.dtype is not f[1].np):
            out = _fitted(out, f)
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
        g._meta = Meta()
        g._meta.pinned = True
    return g


def _one_way(parents: Any, wanted: set[Node]) -> bool:
    """Whether two inputs are one, or both leaves whose cotangents are wanted: of other ways nothing is known yet."""
    p, q = parents
    if p.__class__ is Leaf and q.__class__ is Leaf:
        return p in wanted and q in wanted and p.hooks is q.hooks is None
    return p is q


def let_go(nodes: list[Node]) -> None:
    """Let go of what nodes kept that were visited."""
    for n in nodes:
        if n.__class__ is Lean:
            n.raw = n.kept = None
        else:
            n.release()


def _all_live(parents: Any, live: set[Node]) -> bool:
    """Whether all inputs that have a node get a cotangent."""
    return all(p is None or p in live for p in parents)


def shortly(n: Node, g: Any, rules: Any, live: set[Node] | None) -> Any:
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


def _at(level: Any, rank: int, r: Any) -> Any:
    """An array as a tensor: of all examples, where it has their rank."""
    return None if r is None else Tensor(r) if r.ndim < rank else Tensor(Tensor(r), level)
