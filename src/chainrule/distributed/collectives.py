"""The collectives as ops: linear maps over the tensors of all ranks, each with its transpose.

A value and its cotangent on every rank: the scalar that is differentiated is the sum of the losses of all ranks. So the reverse of all_reduce is
all_reduce, of all_gather reduce_scatter, of broadcast reduce, of gather scatter, of send recv. A batch axis travels along in the buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import wire
from .groups import ProcessGroup
from .levels import Collective


def collective(name: str, along: bool = False) -> Callable[[Any], Collective]:
    """Declare a collective from its body on an array; `along` says that the first axis is that of the ranks (or is shared out)."""

    def declare(body: Any) -> Collective:
        o = Collective(name, _contiguous(body), batch=_second if along else "trailing", doc=body.__doc__, listed=False)
        o.linear = "each"
        o.jvp([lambda t, y, x, **kw: o.bind(t, **kw)])
        return o

    return declare


def _contiguous(body: Any) -> Any:
    return lambda x, **kw: body(np.ascontiguousarray(x).reshape(np.shape(x)), **kw)


def _second(o: Any, size: int, xs: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
    """The batch axis after that of the ranks, which stays the first."""
    x = xs[0]
    x = x.movedim(0, 1) if o.takes_ranks else x
    y = o.bind(x, **kw)
    return y.movedim(1, 0) if o.gives_ranks else y


def _axes(o: Any, takes: bool, gives: bool) -> None:
    o.takes_ranks, o.gives_ranks = takes, gives


@collective("all_reduce")
def all_reduce(x: Any, *, group: ProcessGroup) -> Any:
    """The sum of all ranks' x, on every rank."""
    y = np.empty_like(x)
    wire.all_reduce(group, x, y).wait()
    return y


@all_reduce.vjp
def _(g: Any, y: Any, x: Any, *, group: Any) -> Any:
    return all_reduce.bind(g, group=group)


@collective("broadcast")
def broadcast(x: Any, *, group: ProcessGroup, root: int) -> Any:
    """The root's x, on every rank."""
    y = x.copy()
    wire.broadcast(group, y, root).wait()
    return y


@collective("reduce")
def reduce(x: Any, *, group: ProcessGroup, root: int) -> Any:
    """The sum of all ranks' x on the root, zeros elsewhere."""
    mine = group.rank() == root
    y = np.empty_like(x) if mine else np.zeros_like(x)
    wire.reduce(group, x, y if mine else None, root).wait()
    return y


@broadcast.vjp
def _(g: Any, y: Any, x: Any, *, group: Any, root: Any) -> Any:
    return reduce.bind(g, group=group, root=root)


@reduce.vjp
def _(g: Any, y: Any, x: Any, *, group: Any, root: Any) -> Any:
    return broadcast.bind(g, group=group, root=root)


@collective("all_gather", along=True)
def all_gather(x: Any, *, group: ProcessGroup) -> Any:
    """``y[r] = x of rank r``, on every rank."""
    y = np.empty((group.size(), *x.shape), x.dtype)
    wire.all_gather(group, x, y).wait()
    return y


@collective("reduce_scatter", along=True)
def reduce_scatter(x: Any, *, group: ProcessGroup) -> Any:
    """The sum over ranks of their x[this rank]."""
    y = np.empty(x.shape[1:], x.dtype)
    wire.reduce_scatter(group, x, y).wait()
    return y


@all_gather.vjp
def _(g: Any, y: Any, x: Any, *, group: Any) -> Any:
    return reduce_scatter.bind(g, group=group)


@reduce_scatter.vjp
def _(g: Any, y: Any, x: Any, *, group: Any) -> Any:
    return all_gather.bind(g, group=group)


@collective("all_to_all", along=True)
def all_to_all(x: Any, *, group: ProcessGroup, out: tuple[int, ...], into: tuple[int, ...]) -> Any:
    """Rows of x to the ranks (``out[r]`` to rank r) and rows from them (``into[r]``), in the order of ranks."""
    y = np.empty((sum(into), *x.shape[1:]), x.dtype)
    wire.all_to_all(group, x, y, out, into).wait()
    return y


@all_to_all.vjp
def _(g: Any, y: Any, x: Any, *, group: Any, out: Any, into: Any) -> Any:
    return all_to_all.bind(g, group=group, out=into, into=out)


@collective("gather", along=True)
def gather(x: Any, *, group: ProcessGroup, root: int) -> Any:
    """``y[r] = x of rank r`` on the root, zeros elsewhere."""
    mine = group.rank() == root
    y = (np.empty if mine else np.zeros)((group.size(), *x.shape), x.dtype)
    wire.gather(group, x, y if mine else None, root).wait()
    return y


@collective("scatter", along=True)
def scatter(x: Any, *, group: ProcessGroup, root: int) -> Any:
    """``x[this rank]`` of the root's x."""
    y = np.empty(x.shape[1:], x.dtype)
    wire.scatter(group, x if group.rank() == root else None, y, root).wait()
    return y


@gather.vjp
def _(g: Any, y: Any, x: Any, *, group: Any, root: Any) -> Any:
    return scatter.bind(g, group=group, root=root)


@scatter.vjp
def _(g: Any, y: Any, x: Any, *, group: Any, root: Any) -> Any:
    return gather.bind(g, group=group, root=root)


# -- between two ranks: `group` here is that of the two, so that it is they who agree ---------------------------------------


class Pair(ProcessGroup):
    """This rank and one other, for what goes between them."""

    def __init__(self, group: ProcessGroup, other: int, tag: int) -> None:
        ranks = [group.ranks[group.rank()], group.ranks[other]]
        self.__dict__.update(group.__dict__)
        self.inner, self.other, self.tag = group, other, tag
        self.ranks = sorted(ranks)
        self.order = (1, group.number, *self.ranks, tag)

    def __hash__(self) -> int:
        return hash(self.order)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pair) and other.order == self.order

    def agree(self, bits: int, words: int = 1) -> int:
        """The bits that one of the two has set."""
        if self.comm is None:
            return bits
        x = np.array([(bits >> (63 * k)) & (2**63 - 1) for k in range(words)], np.int64)
        y = np.empty_like(x)
        works = (
            wire.send(self.inner, x, self.other, self.tag, True),
            wire.recv(self.inner, y, self.other, self.tag, True),
        )
        for w in works:
            w.wait()
        return bits | sum(int(v) << (63 * k) for k, v in enumerate(y))


def _send(x: Any, *, group: Pair, shape: tuple[int, ...]) -> Any:
    """x, which has this shape, to the other rank; returns the token zero, which carries the derivative back."""
    wire.send(group.inner, np.ascontiguousarray(x), group.other, group.tag).wait()
    return np.zeros((), x.dtype)


def _recv(token: Any, *, group: Pair, shape: tuple[int, ...]) -> Any:
    """What the other rank sends, of this shape and the token's type."""
    y = np.empty(shape, token.dtype)
    wire.recv(group.inner, y, group.other, group.tag).wait()
    return y


send = Collective("send", _send, grows=("shape",), doc=_send.__doc__, listed=False)
recv = Collective("recv", _recv, grows=("shape",), doc=_recv.__doc__, listed=False)
send.linear = recv.linear = "each"
send.jvp([lambda t, y, x, **kw: send.bind(t, **kw)])
recv.jvp([lambda t, y, token, **kw: recv.bind(t, **kw)])
# A batch goes in one message; each example has a token.
send.batch_rule = lambda o, size, xs, flags, kw: o.bind(xs[0], **kw).expand(size)
recv.batch_rule = lambda o, size, xs, flags, kw: o.bind(xs[0].sum(0), **kw)


@send.vjp
def _(g: Any, y: Any, x: Any, *, group: Any, shape: Any) -> Any:
    return recv.bind(g, group=group, shape=shape)


@recv.vjp
def _(g: Any, y: Any, token: Any, *, group: Any, shape: Any) -> Any:
    return send.bind(g, group=group, shape=shape)


for _o, _takes, _gives in (
    (all_gather, False, True), (reduce_scatter, True, False), (all_to_all, True, True), (gather, False, True), (scatter, True, False),
):  # fmt: skip
    _axes(_o, _takes, _gives)
