"""Collectives as functions of tensors, with derivatives of every order: ``grad``, ``jvp``, ``vmap`` and any nesting go through them.

What is differentiated is the sum of the losses of all ranks. Every rank calls the same collectives in the same order and the same transforms around
them; so the ranks' derivatives meet as well, whatever each rank does with the results. An imperative ``backward()`` through a collective is called
by every rank of its group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from .. import collectives as c
from ..engine import ReduceOp
from ..groups import ProcessGroup, resolve, root_in

_FOLDS = {
    "PRODUCT": lambda y: y.prod(0),
    "MIN": lambda y: y.amin(0) if y.dtype.is_floating_point or y.dtype.name != "bool" else y.all(0),
    "MAX": lambda y: y.amax(0) if y.dtype.is_floating_point or y.dtype.name != "bool" else y.any(0),
}


def _checked(name: str, x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"distributed: {name} takes a tensor, got {type(x).__name__}")
    return x


def _fold(op: str, y: Tensor, name: str) -> Tensor:
    if op not in _FOLDS:
        raise ValueError(
            f"distributed: {name} with a derivative combines by SUM, AVG, PRODUCT, MIN or MAX, not by {op!r}"
        )
    return _FOLDS[op](y)


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction over ranks, on every rank. Among equal extrema the derivative is shared, as by ``amax``."""
    g, x = resolve(group), _checked("all_reduce", tensor)
    if op in ("SUM", "AVG"):
        if x.dtype.name == "bool":
            return c.all_gather.bind(x, group=g).any(0)
        y = c.all_reduce.bind(x, group=g)
        return y if op == "SUM" else y / g.size()
    return _fold(op, c.all_gather.bind(x, group=g), "all_reduce")


def reduce(
    tensor: Tensor, dst: int | None = None, op: str = ReduceOp.SUM, group: Any = None, group_dst: int | None = None
) -> Tensor:
    """The reduction over ranks on rank `dst`, zeros elsewhere."""
    g, x = resolve(group), _checked("reduce", tensor)
    root = root_in(g, dst, group_dst, "reduce")
    if op in ("SUM", "AVG"):
        y = c.reduce.bind(x, group=g, root=root)
        return y if op == "SUM" else y / g.size()
    return _fold(op, c.gather.bind(x, group=g, root=root), "reduce")


def broadcast(tensor: Tensor, src: int | None = None, group: Any = None, group_src: int | None = None) -> Tensor:
    """The tensor of rank `src`, on every rank; the others give one of the same shape and type."""
    g = resolve(group)
    return c.broadcast.bind(_checked("broadcast", tensor), group=g, root=root_in(g, src, group_src, "broadcast"))


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks, on every rank."""
    return tuple(c.all_gather.bind(_checked("all_gather", tensor), group=resolve(group)).unbind(0))


def all_gather_into_tensor(tensor: Tensor, group: Any = None, stack: bool = False) -> Tensor:
    """The tensors of all ranks joined along the first dim (or, with `stack`, along a new one)."""
    y = c.all_gather.bind(_checked("all_gather_into_tensor", tensor), group=resolve(group))
    return y if stack or not tensor.ndim else y.flatten(0, 1)


def reduce_scatter(output: Any, input_list: Sequence[Tensor], op: str = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction over ranks of their ``input_list[this rank]``; `output` only says the shape, and may be None."""
    g = resolve(group)
    if len(input_list) != g.size():
        raise ValueError(f"reduce_scatter: {len(input_list)} tensors for {g.size()} ranks; give one for each")
    return _reduce_scattered(PUBLIC["stack"](list(input_list)), op, g)


def _reduce_scattered(x: Tensor, op: str, g: ProcessGroup) -> Tensor:
    if op in ("SUM", "AVG"):
        y = c.reduce_scatter.bind(x, group=g)
        return y if op == "SUM" else y / g.size()
    n = g.size()
    return _fold(op, c.all_to_all.bind(x, group=g, out=(1,) * n, into=(1,) * n), "reduce_scatter")


def reduce_scatter_tensor(input: Tensor, op: str = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction over ranks of this rank's part of the first dim."""
    g = resolve(group)
    x = _checked("reduce_scatter_tensor", input)
    if not x.ndim or x.shape[0] % g.size():
        raise ValueError(
            f"reduce_scatter_tensor: the first of the sizes {list(x.shape)} is no multiple of {g.size()} ranks"
        )
    return _reduce_scattered(x.unflatten(0, (g.size(), x.shape[0] // g.size())), op, g)


def all_to_all_single(
    output: Any,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """Rows of the input to the ranks and rows from them; in equal parts where no sizes are given."""
    g = resolve(group)
    x = _checked("all_to_all_single", input)
    n = g.size()
    if not x.ndim:
        raise ValueError("all_to_all_single: the input needs a first dim to be shared out, got a 0-d tensor")
    if input_split_sizes is None and x.shape[0] % n:
        raise ValueError(
            f"all_to_all_single: the first of the sizes {list(x.shape)} is no multiple of {n} ranks; give input_split_sizes"
        )
    out = tuple(input_split_sizes or (x.shape[0] // n,) * n)
    into = tuple(output_split_sizes or ((x.shape[0] // n,) * n if output is None else (output.shape[0] // n,) * n))
    if len(out) != n or len(into) != n or sum(out) != x.shape[0]:
        raise ValueError(
            f"all_to_all_single: parts of {list(out)} and {list(into)} rows do not fit {n} ranks and {x.shape[0]} rows"
        )
    return c.all_to_all.bind(x, group=g, out=out, into=into)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """``result[r]`` is what rank r has for this rank; ``output_tensor_list`` says the shapes."""
    g = resolve(group)
    x = PUBLIC["cat"]([t.reshape(-1) for t in input_tensor_list])
    out, into = tuple(t.numel() for t in input_tensor_list), tuple(t.numel() for t in output_tensor_list)
    y = c.all_to_all.bind(x, group=g, out=out, into=into)
    return tuple(p.reshape(t.shape) for p, t in zip(y.split(list(into)), output_tensor_list, strict=True))


def gather(
    tensor: Tensor, dst: int | None = None, group: Any = None, group_dst: int | None = None
) -> tuple[Tensor, ...]:
    """The tensors of all ranks on rank `dst`, zeros elsewhere."""
    g = resolve(group)
    return tuple(
        c.gather.bind(_checked("gather", tensor), group=g, root=root_in(g, dst, group_dst, "gather")).unbind(0)
    )


def scatter(
    tensors: Sequence[Tensor], src: int | None = None, group: Any = None, group_src: int | None = None
) -> Tensor:
    """The tensor that rank `src` has for this rank; the others give tensors of the same shapes."""
    g = resolve(group)
    if len(tensors) != g.size():
        raise ValueError(f"scatter: {len(tensors)} tensors for {g.size()} ranks; give one for each, on every rank")
    return c.scatter.bind(PUBLIC["stack"](list(tensors)), group=g, root=root_in(g, src, group_src, "scatter"))


def send(tensor: Tensor, dst: int, group: Any = None, tag: int = 0) -> Tensor:
    """Send to rank `dst`. Returns the token zero: a loss that is to be differentiated through what was sent adds it."""
    g = resolve(group)
    x = _checked("send", tensor)
    return c.send.bind(x, group=c.Pair(g, g.ranks.index(dst), tag), shape=tuple(x.shape))


def recv(like: Tensor, src: int, group: Any = None, tag: int = 0) -> Tensor:
    """Receive from rank `src` a tensor of the shape and type of `like`."""
    g = resolve(group)
    token = _checked("recv", like).detach().reshape(-1)[:0].sum().to(like.dtype)
    return c.recv.bind(token, group=c.Pair(g, g.ranks.index(src), tag), shape=tuple(like.shape))


__all__ = [
    "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "recv", "reduce",
    "reduce_scatter", "reduce_scatter_tensor", "scatter", "send",
]  # fmt: skip
