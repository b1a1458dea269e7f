"""Collectives as ops: the same calls of MPI on every rank, whatever depends on what there.

A derivative of a collective is a collective, and every rank has to come to it: also one whose own input is a constant, or whose loss does
not use the result. Three things see to that.

* A collective lifts its argument to every transform that is active (`lifted`): a zero tangent, a variable nobody asks for, equal examples. Transforms
  are entered by all ranks alike, so this needs no word between them.
* Whether the imperative style records is known to each rank for itself: the ranks agree on it (one bit) before the collective.
* A walk back visits every collective of its tape, the last made first, with a zero cotangent where none arrives. Transforms keep a list of them
  (`Interpreter.effects`); of an imperative backward the ranks agree on those that somebody's loss depends on (`meet`).
"""

from __future__ import annotations

import weakref
from typing import Any

from ..core import dispatch
from ..core import dtypes as dt
from ..core.dispatch import BLOCKED, CUT, STACK, innermost
from ..core.errors import ChainruleError
from ..core.op import Op
from ..core.reverse import EAGER, Leaf, Node, Reverse
from ..core.shapes import sizes_of, zeros_like_tensor
from ..core.tensor import Tensor
from ..core.views import grow
from ..core.walk import _towards, reachable
from .groups import STATE, ProcessGroup


class Collective(Op):
    """A linear map over the tensors of all ranks of ``group=``; its reverse rule is another one."""

    effect = True

    def bind(self, x: Tensor, **kw: Any) -> Tensor:
        """Run at every level that is active and not at work."""
        blocked = BLOCKED.get()
        floats = dt.FROM_NP[innermost(x).dtype].category >= dt.FLOAT
        levels = [i for i in STACK.get() if i not in blocked and _takes(i, floats)]
        if floats and self.differentiable:
            levels = _with_imperative(levels, x, kw["group"], blocked)
        if levels:
            x = lifted(x, levels)
        top = x._interp
        if top is None:
            return self.run((x,), kw)
        token = BLOCKED.set(blocked | {i for i in STACK.get() if i.level >= top.level} | {top})
        try:
            y: Tensor = top.run(self, (x,), kw)
        finally:
            BLOCKED.reset(token)
        if top.kind == "reverse" and y._interp is top:
            note(top, y, kw["group"])
        return y


def _takes(level: Any, floats: bool) -> bool:
    """Whether a level is one that a collective's argument belongs to, on all ranks."""
    if level.kind == "reverse":
        return floats and not level.off()
    if level.kind == "jvp":
        return floats and not level.is_muted()
    return level.kind in ("vmap", "record")


def lifted(x: Tensor, levels: list[Any]) -> Tensor:
    """`x` as a value of all these levels, the lowest first: with the derivative zero and equal examples at those it is not of."""
    if not levels:
        return x
    top, i = levels[-1], x._interp
    if i is top or (i is not None and i.level > top.level):
        rest = levels[:-1] if i is top else levels
        inner = lifted(x._value, rest)
        aux = x._aux
        if i.kind == "jvp" and aux is None:
            aux = zeros_like_tensor(inner)
        return Tensor(inner, i, aux)
    inner = lifted(x, levels[:-1])
    if top.kind == "vmap":
        return Tensor(grow(inner, top.size), top)
    if top.kind == "jvp":
        return Tensor(inner, top, zeros_like_tensor(inner))
    if top.kind == "record":
        low, var = top.var_of(inner)
        return Tensor(low, top, var)
    return Tensor(inner, top, Leaf())


def _with_imperative(levels: list[Any], x: Tensor, group: ProcessGroup, blocked: frozenset[Any]) -> list[Any]:
    """The levels, and those of the imperative style at which the argument of some rank is recorded."""
    cut = CUT.get()
    hosts: list[Any] = [h for h in (None, *STACK.get()) if h is None or h not in blocked]
    hosts = [h for h in hosts if (0.0 if h is None else h.level + 0.5) > cut]
    hosts = [
        h
        for h in hosts
        if (EAGER if h is None else h.imperative) not in blocked or (h is not None and h.imperative is None)
    ]
    if not hosts:
        return levels
    bits = 0
    while x._interp is not None:
        for k, h in enumerate(hosts):
            if x._interp is (EAGER if h is None else h.imperative):
                bits |= 1 << k
        x = x._value
    agreed = group.agree(bits)
    for k, h in enumerate(hosts):
        if agreed >> k & 1:
            levels = [*levels, EAGER if h is None else _imperative_of(h)]
    return sorted(levels, key=lambda i: i.level)


def _imperative_of(host: Any) -> Reverse:
    """The imperative level just above a transform."""
    if host.imperative is None:
        r = Reverse()
        r.level = host.level + 0.5
        host.imperative = r
    return host.imperative


# -- what a walk must visit -----------------------------------------------------------------------------------------------


class Record:
    """A collective on an imperative tape, by its number: the node as long as it lives, and enough to take its part after that."""

    __slots__ = ("fits", "kw", "node", "op", "result", "seq", "tracked")

    def __init__(self, node: Node, tracked: bool) -> None:
        self.node = weakref.ref(node)
        self.op, self.kw, self.fits, self.seq, self.result = node.op, node.kw, node.fits, node.seq, node.result
        self.tracked = tracked

    def stand_in(self, level: Any) -> Node:
        """A node in place of one that was dropped: the ranks that go on need this one's part."""
        leaf = Leaf()
        if self.tracked:
            leaf.hooks, leaf.rare = [_refuse(self)], True
        node = Node(self.op, [None], None, [leaf], self.kw, [None])
        node.seq, node.result, node.level = self.seq, self.result, level
        return node


def _refuse(record: Record) -> Any:
    def refuse(g: Tensor) -> None:
        if (innermost(g) != 0).any():
            raise ChainruleError(
                f"backward: another rank's loss depends on what this rank gave to {record.op.name} (shape {list(record.result[0])}), but here its result was "
                f"dropped before backward. Keep the result until then, or let the loss use it: loss = loss + 0 * y.sum()"
            )

    return refuse


def note(level: Any, y: Tensor, group: ProcessGroup) -> None:
    """Remember a collective on the tape of a level."""
    node = y._aux
    node.level, node.result = level, (tuple(sizes_of(y)), y.dtype)
    if level.level == int(level.level) and level.level > 0:
        level.effects = [] if level.effects is None else level.effects
        level.effects.append(node)
        return
    records = level.__dict__.setdefault("records", {}).setdefault(group, [])
    records.append(Record(node, type(node.parents[0]) is not Leaf or node.parents[0].owner is not None))
    dispatch.MEET = meet
    if level.__dict__.get("made") is not None:
        level.made.append(node)
    if len(records) >= 1024 and not len(records) & (len(records) - 1):
        _drop_dead(records, group)


def _bits(records: list[Record], chosen: Any) -> int:
    return sum(1 << k for k, r in enumerate(records) if chosen(r.node()))


def _drop_dead(records: list[Record], group: ProcessGroup) -> None:
    """Forget the collectives whose results no rank holds."""
    alive = group.agree(_bits(records, lambda n: n is not None), len(records) // 63 + 1)
    records[:] = [r for k, r in enumerate(records) if alive >> k & 1]


def meet(level: Any, starts: list[tuple[Node, Any]], wanted: list[Node] | None) -> tuple[list[Node] | None, Any]:
    """The collectives that an imperative backward visits on this rank: those that some rank's loss depends on.

    With ``create_graph=True`` also a function of the gradients: they hold the collectives that the walk records, whose results may go nowhere here.
    """
    by_group: dict[ProcessGroup, list[Record]] = level.__dict__.get("records", {})
    if not any(by_group.values()):
        return None, None
    nodes = [n for n, _ in starts]
    reached = set(reachable(dict.fromkeys(nodes)) if wanted is None else _towards(nodes, set(wanted), False)[0])
    must: list[Node] = []
    for group in sorted(by_group, key=lambda g: g.order):
        records = by_group[group]
        if not records:
            continue
        if STATE.groups.get(group.inner.number) is not group.inner:
            records.clear()
            continue
        join = group.joined if level is EAGER and group is group.inner else None
        if join is not None:
            join.at_backward()
        words = len(records) // 63 + 1
        both = group.agree(
            _bits(records, lambda n: n in reached) | _bits(records, lambda n: n is not None) << 63 * words, 2 * words
        )
        agreed, alive = both & ((1 << 63 * words) - 1), both >> 63 * words
        if join is not None and join.lacks():
            _need_all(records, agreed)
        must += [r.node() or r.stand_in(level) for k, r in enumerate(records) if agreed >> k & 1]
        records[:] = [r for k, r in enumerate(records) if alive >> k & 1]
    if not must or level.level <= CUT.get():
        return must or None, None
    level.made = []

    def met(got: dict[Node, Any]) -> None:
        made, level.made = level.made, None
        for g in got.values():
            while isinstance(g, Tensor) and g._interp is not None:
                if g._interp is level:
                    g._aux.__dict__["also"] = made
                g = g._value

    return must, met


def is_met(group: ProcessGroup) -> bool:
    """Whether each imperative backward of the ranks of a group is a meeting now."""
    return bool(EAGER.__dict__.get("records", {}).get(group))


def attend(group: ProcessGroup) -> None:
    """The part in a meeting of a rank that has no loss: it tells which results it holds, and cannot visit what the others' losses depend on."""
    records: list[Record] = EAGER.__dict__["records"][group]
    words = len(records) // 63 + 1
    both = group.agree(_bits(records, lambda n: n is not None) << 63 * words, 2 * words)
    agreed, alive = both & ((1 << 63 * words) - 1), both >> 63 * words
    _need_all(records, agreed)
    records[:] = [r for k, r in enumerate(records) if alive >> k & 1]


def _need_all(records: list[Record], agreed: int) -> None:
    """Refuse, on every rank, a loss that depends on collectives where a rank has no more data."""
    names = sorted({r.op.name for k, r in enumerate(records) if agreed >> k & 1})
    if names:
        raise ChainruleError(
            f"DistributedDataParallel.join: the loss of a rank that still has data depends on the result of {', '.join(names)}, and a rank that has no more "
            f"data cannot take its part in the derivative. Inside join() let no loss depend on collectives of your own: detach() the result"
        )
