"""PyTorch's collectives, which write: values for every type, async, between two ranks, objects; the memory is the tensor's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule as cr
import chainrule.distributed as dist
from tests.distributed.checks_ops import refused

FLOATS = [cr.float64, cr.float32, cr.float16, cr.bfloat16, cr.complex64, cr.complex128]
TYPES = [*FLOATS, cr.int64, cr.int32, cr.int16, cr.int8, cr.uint8, cr.bool]


def rows(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    """Small whole numbers, exact in every type: the data of all ranks."""
    n = dist.get_world_size()
    x = np.random.default_rng(seed).integers(0, 3, (n, *shape))
    return cr.tensor(x).to(dtype)


def equal(a: Any, b: Any) -> None:
    assert a.dtype is b.dtype, (a.dtype, b.dtype)
    np.testing.assert_array_equal(a.detach().to(cr.complex128).numpy(), b.detach().to(cr.complex128).numpy())


def check_every_type() -> None:
    n, r = dist.get_world_size(), dist.get_rank()
    for d in TYPES:
        x = rows((n, 3), d)
        y = x[r].clone()
        dist.all_reduce(y)
        equal(y, x.any(0) if d is cr.bool else x.sum(0).to(d))
        y = x[r].clone()
        dist.reduce(y, n - 1)
        equal(y, (x.any(0) if d is cr.bool else x.sum(0).to(d)) if r == n - 1 else x[r])
        y = x[r].clone()
        dist.broadcast(y, n - 1)
        equal(y, x[n - 1])
        out = [cr.zeros(n, 3, dtype=d) for _ in range(n)]
        dist.all_gather(out, x[r])
        equal(cr.stack(out), x)
        flat = cr.zeros(n * n, 3, dtype=d)
        dist.all_gather_into_tensor(flat, x[r])
        equal(flat, x.reshape(n * n, 3))
        y = cr.zeros(3, dtype=d)
        dist.reduce_scatter(y, list(x[r]))
        equal(y, x[:, r].any(0) if d is cr.bool else x[:, r].sum(0).to(d))
        dist.reduce_scatter_tensor(y, x[r].reshape(-1))
        equal(y, x[:, r].any(0) if d is cr.bool else x[:, r].sum(0).to(d))
        y = cr.zeros(n, 3, dtype=d)
        dist.all_to_all_single(y, x[r])
        equal(y, x[:, r])
        out = [cr.zeros(3, dtype=d) for _ in range(n)]
        dist.all_to_all(out, list(x[r]))
        equal(cr.stack(out), x[:, r])
        out = [cr.zeros(n, 3, dtype=d) for _ in range(n)]
        dist.gather(x[r], out if r == 0 else None, 0)
        if r == 0:
            equal(cr.stack(out), x)
        y = cr.zeros(3, dtype=d)
        dist.scatter(y, list(x[r]) if r == n - 1 else None, n - 1)
        equal(y, x[n - 1, r])


def check_reductions() -> None:
    n, r = dist.get_world_size(), dist.get_rank()
    op = dist.ReduceOp
    for d in (cr.float64, cr.float32, cr.float16, cr.bfloat16, cr.int64, cr.uint8):
        x = rows((5,), d, 1)
        for how, f in ((op.PRODUCT, lambda v: v.prod(0)), (op.MIN, lambda v: v.amin(0)), (op.MAX, lambda v: v.amax(0))):
            y = x[r].clone()
            dist.all_reduce(y, how)
            equal(y, f(x).to(d))
    for d in (cr.float64, cr.float32, cr.bfloat16, cr.complex128):
        x = rows((5,), d, 2) * n
        y = x[r].clone()
        dist.all_reduce(y, op.AVG)
        equal(y, (x.sum(0) / n).to(d))
    x = rows((5,), cr.int32, 3)
    for how, f in ((op.BAND, np.bitwise_and), (op.BOR, np.bitwise_or), (op.BXOR, np.bitwise_xor)):
        y = x[r].clone()
        dist.all_reduce(y, how)
        equal(y, cr.tensor(f.reduce(x.numpy(), 0)))
    for bad, how in ((cr.ones(2), op.BOR), (cr.ones(2, dtype=cr.complex64), op.MAX), (cr.ones(2), "MEDIAN")):
        refused(lambda bad=bad, how=how: dist.all_reduce(bad, how), Exception, "distributed")


def check_memory() -> None:
    """The result is in the tensor's own memory, seen by its views and by NumPy; what a tape saved stays."""
    n, r = dist.get_world_size(), dist.get_rank()
    x = cr.full((4,), float(r))
    a = x.numpy()
    view = x[1:3]
    dist.all_reduce(x)
    total = n * (n - 1) / 2
    assert x.numpy() is a or np.shares_memory(x.numpy(), a)
    assert a.tolist() == [total] * 4 and view.tolist() == [total] * 2
    # part of a tensor, a transposed one, one without elements, a number
    m = cr.zeros(3, 2) + r
    dist.all_reduce(m[1])
    assert m.tolist() == [[r, r], [total, total], [r, r]]
    m = cr.zeros(2, 3).t() + r
    dist.all_reduce(m)
    assert m.tolist() == [[total] * 2] * 3
    t = (cr.zeros(2, 3) + r).t()
    dist.all_reduce(t)
    assert t.tolist() == [[total] * 2] * 3
    e = cr.zeros(0, 3)
    dist.all_reduce(e)
    s = cr.tensor(float(r))
    dist.all_reduce(s)
    assert s.item() == total and e.shape == (0, 3)
    # a parameter, and one that a tape has saved
    p = cr.nn.Parameter(cr.full((2,), float(r)))
    dist.broadcast(p, n - 1)
    assert p.is_leaf and p.requires_grad and p.tolist() == [n - 1.0] * 2
    y = (p * p).sum()
    with cr.no_grad():
        dist.all_reduce(p)
    y.backward()
    assert p.grad.tolist() == [2.0 * (n - 1)] * 2 and p.tolist() == [n * (n - 1.0)] * 2


def check_async() -> None:
    n, r = dist.get_world_size(), dist.get_rank()
    xs = [cr.full((1000,), float(r + k)) for k in range(4)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    for k, (x, w) in enumerate(zip(xs, works, strict=True)):
        assert w.wait() and w.is_completed()
        assert x[0].item() == n * (n - 1) / 2 + n * k
    w = dist.all_reduce(xs[0], dist.ReduceOp.AVG, async_op=True)
    w.get_future().wait()
    dist.barrier()
    dist.barrier(async_op=True).wait()


def check_between_two() -> None:
    n, r = dist.get_world_size(), dist.get_rank()
    right, left = (r + 1) % n, (r - 1) % n
    a, b = cr.full((3,), float(r), dtype=cr.bfloat16), cr.zeros(3, dtype=cr.bfloat16)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, a, right), dist.P2POp(dist.irecv, b, left)])
    for w in works:
        w.wait()
    assert b.tolist() == [left] * 3
    if r == 0:
        for _ in range(n - 1):
            x = cr.zeros(2)
            source = dist.recv(x)
            assert x.tolist() == [source] * 2
    else:
        dist.send(cr.full((2,), float(r)), 0)
    dist.barrier()
    if r == 0:
        dist.send(cr.ones(2), 1, tag=5)
        dist.send(cr.zeros(2), 1, tag=6)
    if r == 1:
        x, y = cr.zeros(2), cr.ones(2)
        dist.irecv(y, 0, tag=6).wait()
        assert dist.recv(x, 0, tag=5) == 0
        assert x.tolist() == [1, 1] and y.tolist() == [0, 0]


def check_objects() -> None:
    n, r = dist.get_world_size(), dist.get_rank()
    mine = {
        "rank": r,
        "t": (1, 2.5, None, "é"),
        3: [cr.tensor([r]), np.ones((2, r), np.float32)],
        "z": 1j,
        "b": b"\x00\xff",
    }
    out: list[Any] = []
    dist.all_gather_object(out, mine)
    assert [o["rank"] for o in out] == list(range(n))
    assert out[-1]["t"] == (1, 2.5, None, "é") and out[-1]["z"] == 1j and out[-1]["b"] == b"\x00\xff"
    assert out[-1][3][0].tolist() == [n - 1] and out[-1][3][1].shape == (2, n - 1)
    box = [mine, "x"] if r == 1 else [None, None]
    dist.broadcast_object_list(box, 1)
    assert box[0]["rank"] == 1 and box[1] == "x"
    got: list[Any] = [None]
    dist.scatter_object_list(got, [{"for": k} for k in range(n)] if r == 0 else None, 0)
    assert got == [{"for": r}]
    many: list[Any] = []
    dist.gather_object(r, many if r == 0 else None, 0)
    assert many == (list(range(n)) if r == 0 else [])
    if r == 0:
        dist.send_object_list([1, "two"], 1)
    if r == 1:
        two: list[Any] = [None, None]
        assert dist.recv_object_list(two, 0) == 0 and two == [1, "two"]
    refused(lambda: dist.all_gather_object(out, object()), TypeError, "pickle")


def check_refusals() -> None:
    n = dist.get_world_size()
    for f in (
        lambda: dist.all_gather([cr.zeros(2)], cr.zeros(2)),
        lambda: dist.all_gather_into_tensor(cr.zeros(3), cr.zeros(2)),
        lambda: dist.all_to_all_single(cr.zeros(n + 1), cr.zeros(n + 1)) if n > 1 else 1 / 0,
        lambda: dist.broadcast(cr.zeros(2), n),
        lambda: dist.new_group([0, n]),
        lambda: dist.init_process_group("mpi"),
    ):
        refused(f, ValueError)


def checks() -> dict[str, Callable[[], None]]:
    return {k: f for k, f in globals().items() if k.startswith("check_")}
