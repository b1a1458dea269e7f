"""PyTorch's collectives, which write to the tensors they are given.

They go straight to MPI, on the tensors' own memory. Inside a transform they are the ops of :mod:`chainrule.distributed.nn.functional` and a write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.dispatch import STACK
from ..core.errors import ChainruleError
from ..core.held import shared_memory
from ..core.imperative import no_grad
from ..core.reverse import Leaf
from ..core.tensor import Tensor
from ..core.views import _saved_below, assign, meta, root_of
from . import wire
from .engine import ReduceOp
from .groups import ProcessGroup, get_group_rank, resolve, root_in
from .nn import functional as F
from .wire import Work


def inside() -> bool:
    """Whether a transform is active: then collectives are ops."""
    return bool(STACK.get())


def array(x: Any, name: str) -> np.ndarray:
    """The elements of a plain tensor, contiguous; of a leaf those of its value."""
    if not isinstance(x, Tensor):
        raise TypeError(f"distributed: {name} takes tensors, got {type(x).__name__}")
    t = x
    while t._interp is not None:
        if t._interp.kind != "reverse" or (
            type(t._aux) is not Leaf and t.requires_grad and x.requires_grad and _recording(t)
        ):
            raise ChainruleError(
                f"distributed: {name} writes to tensors and is not recorded, but this one of shape {list(x.shape)} is the result of recorded ops. "
                f"Use chainrule.distributed.nn.functional.{name}, which has derivatives, or pass x.detach()"
            )
        t = t._value
    if type(t._value) is not np.ndarray:
        raise TypeError(
            f"distributed: {name} takes dense tensors, got one that holds {type(t._value).__name__}; send its parts"
        )
    return np.ascontiguousarray(t._value).reshape(t._value.shape)


def _recording(t: Tensor) -> bool:
    from ..core.dispatch import CUT

    return t._interp is not None and t._interp.level > CUT.get()


class Target:
    """Memory that a result comes into: that of a tensor where nobody saved it, else a new one that is written to the tensor after."""

    def __init__(self, x: Tensor, name: str) -> None:
        self.tensor, self.name = x, name
        a, own = array(x, name), self._memory()
        self.direct = own is not None
        self.array = own if own is not None else a.copy()

    def _memory(self) -> Any:
        x = self.tensor
        if x._interp is not None:
            a = shared_memory(x)
        else:
            root = root_of(x)
            pinned = root._meta is not None and root._meta.pinned
            a = None if pinned or _saved_below(x) else x._value
        return a if type(a) is np.ndarray and a.flags.c_contiguous and a.flags.writeable else None

    def commit(self) -> None:
        """The result has come."""
        if self.direct:
            meta(root_of(self.tensor)).version += 1
            return
        with no_grad():
            assign(self.tensor, Tensor(self.array), self.name)


def _ended(work: Work, async_op: bool, *then: Any) -> Work | None:
    for f in then:
        work.then(f)
    if async_op:
        return work
    work.wait()
    return None


def _write(x: Tensor, y: Tensor, async_op: bool, g: ProcessGroup, name: str) -> Work | None:
    assign(x, y, name)
    return wire.done(g, name) if async_op else None


def _averaged(target: Target, g: ProcessGroup) -> Any:
    def divide() -> None:
        a = target.array
        if a.dtype.kind in "iub":
            raise TypeError(f"distributed: ReduceOp.AVG is for floating-point numbers, not for {a.dtype}")
        np.divide(a, g.size(), out=a) if a.dtype.kind in "fc" else np.copyto(
            a, a.astype(np.float32) / g.size(), casting="unsafe"
        )

    return divide


def _how(op: Any) -> tuple[str, bool]:
    return ("SUM", True) if op == ReduceOp.AVG else (op, False)


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """The reduction over ranks, written to the tensor of every rank."""
    g = resolve(group)
    if inside():
        return _write(tensor, F.all_reduce(tensor, op, g), async_op, g, "all_reduce")
    t = Target(tensor, "all_reduce")
    how, mean = _how(op)
    return _ended(wire.all_reduce(g, None, t.array, how), async_op, *([_averaged(t, g)] if mean else []), t.commit)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """The reduction over ranks, written to the tensor of rank `dst`."""
    g = resolve(group)
    root = root_in(g, dst, group_dst, "reduce")
    if inside():
        y = F.reduce(tensor, None, op, g, root)
        return _write(tensor, y if g.rank() == root else tensor + 0 * y, async_op, g, "reduce")
    how, mean = _how(op)
    if g.rank() != root:
        return _ended(wire.reduce(g, array(tensor, "reduce"), None, root, how), async_op)
    t = Target(tensor, "reduce")
    return _ended(wire.reduce(g, t.array, t.array, root, how), async_op, *([_averaged(t, g)] if mean else []), t.commit)


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """The tensor of rank `src`, written to that of every rank."""
    g = resolve(group)
    root = root_in(g, src, group_src, "broadcast")
    if inside():
        return _write(tensor, F.broadcast(tensor, None, g, root), async_op, g, "broadcast")
    if g.rank() == root:
        return _ended(wire.broadcast(g, array(tensor, "broadcast"), root), async_op)
    t = Target(tensor, "broadcast")
    return _ended(wire.broadcast(g, t.array, root), async_op, t.commit)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """The tensors of all ranks, written to the list."""
    g = resolve(group)
    if len(tensor_list) != g.size():
        raise ValueError(f"all_gather: a list of {len(tensor_list)} tensors for {g.size()} ranks; give one for each")
    if inside():
        for t, new in zip(tensor_list, F.all_gather(tensor, g), strict=True):
            assign(t, new, "all_gather")
        return wire.done(g, "all_gather") if async_op else None
    x = array(tensor, "all_gather")
    y = np.empty((g.size(), *x.shape), x.dtype)

    def spread() -> None:
        for t, part in zip(tensor_list, y, strict=True):
            with no_grad():
                assign(t, Tensor(np.asarray(part)), "all_gather")

    return _ended(wire.all_gather(g, x, y), async_op, spread)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """The tensors of all ranks, joined along the first dim (or stacked), written to the output."""
    g = resolve(group)
    if output_tensor.numel() != g.size() * input_tensor.numel() or output_tensor.dtype is not input_tensor.dtype:
        raise ValueError(
            f"all_gather_into_tensor: an output of shape {list(output_tensor.shape)} {output_tensor.dtype} does not hold {g.size()} inputs of shape "
            f"{list(input_tensor.shape)} {input_tensor.dtype}"
        )
    if inside():
        y = F.all_gather_into_tensor(input_tensor, g, stack=True).reshape(output_tensor.shape)
        return _write(output_tensor, y, async_op, g, "all_gather_into_tensor")
    t = Target(output_tensor, "all_gather_into_tensor")
    return _ended(wire.all_gather(g, array(input_tensor, "all_gather_into_tensor"), t.array), async_op, t.commit)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """The reduction over ranks of their ``input_list[this rank]``, written to the output."""
    g = resolve(group)
    if len(input_list) != g.size():
        raise ValueError(f"reduce_scatter: {len(input_list)} tensors for {g.size()} ranks; give one for each")
    if inside():
        return _write(output, F.reduce_scatter(output, input_list, op, g), async_op, g, "reduce_scatter")
    x = np.stack([array(t, "reduce_scatter") for t in input_list])
    return _reduce_scattered(output, x, op, g, async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """The reduction over ranks of this rank's part of the first dim, written to the output."""
    g = resolve(group)
    if input.numel() != g.size() * output.numel() or input.dtype is not output.dtype:
        raise ValueError(
            f"reduce_scatter_tensor: an input of shape {list(input.shape)} {input.dtype} is not {g.size()} outputs of shape {list(output.shape)} "
            f"{output.dtype}"
        )
    if inside():
        x = input.reshape(g.size(), *output.shape)
        return _write(output, F._reduce_scattered(x, op, g), async_op, g, "reduce_scatter_tensor")
    return _reduce_scattered(output, array(input, "reduce_scatter_tensor"), op, g, async_op)


def _reduce_scattered(output: Tensor, x: np.ndarray, op: str, g: ProcessGroup, async_op: bool) -> Work | None:
    how, mean = _how(op)
    t = Target(output, "reduce_scatter")
    work = wire.reduce_scatter(g, x, t.array, how)
    return _ended(work, async_op, *([_averaged(t, g)] if mean else []), t.commit)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Rows of the input to the ranks, and rows from them written to the output; in equal parts where no sizes are given."""
    g = resolve(group)
    n = g.size()
    if inside():
        y = F.all_to_all_single(output, input, output_split_sizes, input_split_sizes, g)
        return _write(output, y, async_op, g, "all_to_all_single")
    for what, x, sizes in (("input", input, input_split_sizes), ("output", output, output_split_sizes)):
        if not x.ndim or (not sizes and x.shape[0] % n) or (sizes and (len(sizes) != n or sum(sizes) != x.shape[0])):
            raise ValueError(
                f"all_to_all_single: {what} of shape {list(x.shape)} cannot be split into {sizes or 'equal parts'} for {n} ranks"
            )
    xs = input_split_sizes or [input.shape[0] // n] * n
    ys = output_split_sizes or [output.shape[0] // n] * n
    t = Target(output, "all_to_all_single")
    return _ended(wire.all_to_all(g, array(input, "all_to_all_single"), t.array, xs, ys), async_op, t.commit)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """``output_tensor_list[r]`` becomes what rank r has for this rank."""
    g = resolve(group)
    if len(output_tensor_list) != g.size() or len(input_tensor_list) != g.size():
        raise ValueError(
            f"all_to_all: {len(input_tensor_list)} inputs and {len(output_tensor_list)} outputs for {g.size()} ranks; give one for each"
        )
    if inside():
        for t, new in zip(output_tensor_list, F.all_to_all(output_tensor_list, input_tensor_list, g), strict=True):
            assign(t, new, "all_to_all")
        return wire.done(g, "all_to_all") if async_op else None
    parts = [array(t, "all_to_all").reshape(-1) for t in input_tensor_list]
    x = np.concatenate(parts)
    into = [t.numel() for t in output_tensor_list]
    y = np.empty(sum(into), x.dtype)

    def spread() -> None:
        at = 0
        for t, n in zip(output_tensor_list, into, strict=True):
            with no_grad():
                assign(t, Tensor(y[at : at + n].reshape(t.shape)), "all_to_all")
            at += n

    return _ended(wire.all_to_all(g, x, y, [p.size for p in parts], into), async_op, spread)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """The tensors of all ranks, written to the list of rank `dst`."""
    g = resolve(group)
    root = root_in(g, dst, group_dst, "gather")
    if (g.rank() == root) != bool(gather_list):
        raise ValueError(
            f"gather: gather_list must be given on rank {g.ranks[root]}, where the tensors arrive, and only there"
        )
    if inside():
        ys = F.gather(tensor, None, g, root)
        for t, new in zip(gather_list or (), ys, strict=False):
            assign(t, new, "gather")
        return wire.done(g, "gather") if async_op else None
    x = array(tensor, "gather")
    y = np.empty((g.size(), *x.shape), x.dtype) if g.rank() == root else None

    def spread() -> None:
        for t, part in zip(gather_list or (), y if y is not None else (), strict=False):
            with no_grad():
                assign(t, Tensor(np.asarray(part)), "gather")

    return _ended(wire.gather(g, x, y, root), async_op, spread)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """What rank `src` has for this rank, written to the tensor."""
    g = resolve(group)
    root = root_in(g, src, group_src, "scatter")
    if (g.rank() == root) != bool(scatter_list):
        raise ValueError(f"scatter: scatter_list must be given on rank {g.ranks[root]}, which sends, and only there")
    if inside():
        y = F.scatter(scatter_list or [tensor] * g.size(), None, g, root)
        return _write(tensor, y, async_op, g, "scatter")
    t = Target(tensor, "scatter")
    x = np.stack([array(v, "scatter") for v in scatter_list]) if scatter_list else None
    return _ended(wire.scatter(g, x, t.array, root), async_op, t.commit)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until every rank of the group has come."""
    return _ended(wire.barrier(resolve(group)), async_op)


monitored_barrier = barrier

# -- between two ranks ----------------------------------------------------------------------------------------------------


def _other(g: ProcessGroup, rank: int | None, in_group: int | None, what: str) -> int:
    if in_group is None and rank is None:
        raise ValueError(f"{what}: say which rank")
    other = root_in(g, rank, in_group, what)
    if other == g.rank() and g.size() > 1:
        raise ValueError(f"{what}: rank {g.ranks[other]} is this process itself")
    return other


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work:
    """Begin to send to rank `dst`; the tensor must not be written to before ``wait()``."""
    g = resolve(group)
    return wire.send(g, array(tensor, "send"), _other(g, dst, group_dst, "send"), tag)


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work:
    """Begin to receive from rank `src` (None: any); the tensor has the message after ``wait()``."""
    g = resolve(group)
    t = Target(tensor, "recv")
    source = None if src is None and group_src is None else _other(g, src, group_src, "recv")
    return wire.recv(g, t.array, source, tag).then(t.commit)


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send to rank `dst`."""
    isend(tensor, dst, group, tag, group_dst).wait()


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive from rank `src` (None: any); returns the sender's rank."""
    g = resolve(group)
    if src is None and group_src is None and g.comm is not None:
        from . import groups as module

        status = module.MPI.Status()
        g.wait(lambda: g.comm.Iprobe(module.MPI.ANY_SOURCE, tag, status), None, 0, "recv from any rank")
        group_src = status.Get_source()
    irecv(tensor, src, group, tag, group_src).wait()
    return src if src is not None else g.ranks[group_src or 0]


class P2POp(NamedTuple):
    """One message of ``batch_isend_irecv``: ``P2POp(isend, tensor, peer)``."""

    op: Any
    tensor: Tensor
    peer: int | None = None
    group: Any = None
    tag: int = 0
    group_peer: int | None = None


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begin all these messages; none waits for another."""
    for p in p2p_op_list:
        if p.op not in (isend, irecv):
            raise ValueError("batch_isend_irecv: the op of a P2POp must be distributed.isend or distributed.irecv")
    return [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]


__all__ = [
    "P2POp", "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv",
    "broadcast", "gather", "get_group_rank", "irecv", "isend", "monitored_barrier", "recv", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "send",
]  # fmt: skip
