"""Training over several processes ends at the weights of one process that has all the data."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.distributed as dist
from chainrule import nn
from chainrule.distributed import engine, wire
from chainrule.func import functional_call, grad, jvp
from chainrule.nn.parallel import DistributedDataParallel as DDP
from chainrule.optim import SGD, Adam, ZeroRedundancyOptimizer
from chainrule.utils.data.distributed import DistributedSampler
from tests.distributed.checks_ops import close, refused


def mlp(seed: int, norm: Any = None, wide: int = 8) -> Any:
    """A network with the weights of a seed, in float64."""
    cr.manual_seed(seed)
    layers: list[Any] = [nn.Linear(5, wide), nn.Tanh()]
    if norm is not None:
        layers.append(norm(wide))
    return nn.Sequential(*layers, nn.Linear(wide, wide), nn.Tanh(), nn.Linear(wide, 2)).double()


def data(count: int, seed: int = 3) -> tuple[Any, Any]:
    """Examples, the same on every rank."""
    rng = np.random.default_rng(seed)
    return cr.tensor(rng.standard_normal((count, 5))), cr.tensor(rng.standard_normal((count, 2)))


def same_everywhere(model: Any) -> None:
    for p in (*model.parameters(), *model.buffers()):
        for other in dist_list(p):
            np.testing.assert_array_equal(other, p.detach().numpy())


def dist_list(p: Any) -> list[Any]:
    out: list[Any] = []
    dist.all_gather_object(out, p.detach().numpy())
    return out


def mse(y: Any, t: Any) -> Any:
    return ((y - t) ** 2).mean()


def _train(make: Callable[[Any], Any], norm: Any = None, steps: int = 8, sync: bool = False, cap: float = 25) -> None:
    n, r = dist.get_world_size(), dist.get_rank()
    x, t = data(8 * n)
    alone = mlp(0, norm)
    ours = mlp(r, norm)  # other weights on every rank: those of rank 0 count
    if sync:
        ours = nn.SyncBatchNorm.convert_sync_batchnorm(ours)
    ddp = DDP(ours, bucket_cap_mb=cap)
    one, many = Adam(alone.parameters(), lr=0.02), make(ddp.parameters())
    for _ in range(steps):
        one.zero_grad()
        mse(alone(x), t).backward()
        one.step()
        many.zero_grad()
        mse(ddp(x[r::n]), t[r::n]).backward()
        many.step()
    for p, q in zip(alone.parameters(), ours.parameters(), strict=True):
        close(q, p)
    for p, q in zip(alone.buffers(), ours.buffers(), strict=True):
        close(q, p)
    same_everywhere(ddp)


def check_ddp() -> None:
    _train(lambda ps: Adam(ps, lr=0.02))


def check_ddp_small_buckets() -> None:
    _train(lambda ps: Adam(ps, lr=0.02), cap=1e-4)


def check_zero() -> None:
    _train(lambda ps: ZeroRedundancyOptimizer(ps, Adam, lr=0.02))


def check_sync_batch_norm() -> None:
    _train(lambda ps: Adam(ps, lr=0.02), nn.BatchNorm1d, sync=True)


def check_zero_state() -> None:
    """The state is shared out, comes together, and goes on after loading in another order of ranks."""
    n, r = dist.get_world_size(), dist.get_rank()
    x, t = data(8 * n)
    model, again = mlp(0), mlp(0)
    a = ZeroRedundancyOptimizer(model.parameters(), Adam, lr=0.02)
    plain = Adam(again.parameters(), lr=0.02)
    for _ in range(3):
        for m, o in ((model, a), (again, plain)):
            o.zero_grad()
            mse(m(x), t).backward()
            o.step()
    held = sum(v.numel() for s in a.optim.state.values() for v in s.values() if isinstance(v, cr.Tensor) and v.ndim)
    total = sum(v.numel() for s in plain.state.values() for v in s.values() if isinstance(v, cr.Tensor) and v.ndim)
    assert held <= total * 0.7, (held, total)
    a.consolidate_state_dict(to=0)
    box: list[Any] = [None]
    if r == 0:
        state = a.state_dict()
        assert sorted(state["state"]) == sorted(plain.state_dict()["state"])
        for k, s in plain.state_dict()["state"].items():
            close(state["state"][k]["exp_avg"], s["exp_avg"])
        box = [state]
    else:
        refused(a.state_dict, RuntimeError, "consolidate")
    dist.broadcast_object_list(box, 0)
    b = ZeroRedundancyOptimizer(model.parameters(), Adam, lr=0.5)
    b.load_state_dict(box[0])
    for m, o in ((model, b), (again, plain)):
        o.zero_grad()
        mse(m(x), t).backward()
        o.step()
    for p, q in zip(model.parameters(), again.parameters(), strict=True):
        close(p, q)


def check_no_sync() -> None:
    """Gradients of several passes are added up here, and averaged once."""
    n, r = dist.get_world_size(), dist.get_rank()
    x, t = data(8 * n)
    alone, ours = mlp(0), mlp(0)
    ddp = DDP(ours)
    mse(alone(x), t).backward()
    mine, target = x[r::n], t[r::n]
    with ddp.no_sync():
        (mse(ddp(mine[:4]), target[:4]) / 2).backward()
    (local,) = cr.autograd.grad(mse(ours(mine[:4]), target[:4]) / 2, [ours[0].weight])
    close(ours[0].weight.grad, local)
    (mse(ddp(mine[4:]), target[4:]) / 2).backward()
    for p, q in zip(alone.parameters(), ours.parameters(), strict=True):
        close(q.grad, p.grad)


class Forked(nn.Module):
    """Uses a part of its parameters, by choice; one part never."""

    def __init__(self) -> None:
        super().__init__()
        cr.manual_seed(0)
        self.a, self.b, self.never = nn.Linear(5, 2).double(), nn.Linear(5, 2).double(), nn.Linear(5, 2).double()

    def forward(self, x: Any, which: str) -> Any:
        return sum(getattr(self, k)(x) for k in which)


def check_unused_parameters() -> None:
    """What a rank does not use counts as zero; what nobody uses keeps no gradient."""
    n, r = dist.get_world_size(), dist.get_rank()
    x, t = data(8 * n)
    alone, ours = Forked(), Forked()
    ddp = DDP(ours, find_unused_parameters=True)
    uses = ["a" if k == 0 else "ab" if k % 2 else "b" for k in range(n)]
    sum(mse(alone(x[k::n], uses[k]), t[k::n]) / n for k in range(n)).backward()
    mse(ddp(x[r::n], uses[r]), t[r::n]).backward()
    for k in "ab":
        close(getattr(ours, k).weight.grad, getattr(alone, k).weight.grad)
    assert ours.never.weight.grad is None


def check_shared_parameters_and_graph() -> None:
    """A parameter that is used twice; a gradient that is differentiated again."""
    n, r = dist.get_world_size(), dist.get_rank()
    x, t = data(8 * n)

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            cr.manual_seed(0)
            self.w = nn.Linear(5, 5).double()

        def forward(self, x: Any) -> Any:
            return self.w(self.w(x).tanh())[:, :2]

    alone, ours = Twice(), Twice()
    ddp = DDP(ours)
    mse(alone(x), t).backward(create_graph=True)
    mse(ddp(x[r::n]), t[r::n]).backward(create_graph=True)
    close(ours.w.weight.grad, alone.w.weight.grad)
    penalty = [(m.w.weight.grad**2).sum() for m in (alone, ours)]
    alone.zero_grad()
    ours.zero_grad()
    want = cr.autograd.grad(penalty[0], alone.w.weight)[0]
    got = cr.autograd.grad(penalty[1], ours.w.weight)[0]
    total = cr.distributed.nn.functional.all_reduce(got.detach()) / n
    # every rank's penalty is the same function, of which each differentiates the sum over ranks
    close(total, want)


def check_buffers_of_rank_zero() -> None:
    r = dist.get_rank()
    m = nn.BatchNorm1d(3).double()
    with cr.no_grad():
        m.running_mean.fill_(float(r))
    ddp = DDP(m)
    close(m.running_mean, cr.zeros(3, dtype=cr.float64))
    x = cr.tensor(np.random.default_rng(r).standard_normal((6, 3)))
    ddp(x).sum().backward()
    with cr.no_grad():
        ddp(x)
    first = dist_list(m.running_mean)[0]
    x0 = np.random.default_rng(0).standard_normal((6, 3)).mean(0)
    np.testing.assert_allclose(first, x0 * 0.1 * 0.9 + x0 * 0.1, rtol=1e-12)


def check_join() -> None:
    """Ranks with unequal numbers of batches."""
    n, r = dist.get_world_size(), dist.get_rank()
    for by_initial in (True, False):
        alone, ours = mlp(0), mlp(0)
        ddp = DDP(ours)
        one, many = SGD(alone.parameters(), lr=0.1), SGD(ours.parameters(), lr=0.1)
        batches = [[data(4, 10 * k + b) for b in range(1 + k)] for k in range(n)]  # rank k has k + 1
        for b in range(n):
            active = [k for k in range(n) if b < len(batches[k])]
            one.zero_grad()
            total = sum(mse(alone(batches[k][b][0]), batches[k][b][1]) for k in active)
            (total / (n if by_initial else len(active))).backward()
            one.step()
        with ddp.join(divide_by_initial_world_size=by_initial):
            for x, t in batches[r]:
                many.zero_grad()
                mse(ddp(x), t).backward()
                many.step()
        for p, q in zip(alone.parameters(), ours.parameters(), strict=True):
            close(q, p)


def check_join_while_a_result_is_held() -> None:
    """Somebody holds the result of a collective, so that every backward is a meeting: ranks that have no more data come to it too."""
    n, r = dist.get_world_size(), dist.get_rank()
    held = cr.distributed.nn.functional.all_reduce(cr.ones(2, requires_grad=True))
    if r == 0:
        del held
    check_join()
    ddp = DDP(mlp(0))
    with ddp.join():
        for b in range(1 + r):
            x, t = data(4, b)
            with ddp.no_sync():  # a forward pass whose gradients stay, two backward passes for one
                loss = mse(ddp(x), t)
            loss.backward(retain_graph=True)
            loss.backward()
            with cr.no_grad():
                ddp(x)
            mse(ddp(x), t).backward()
    if r == n - 1 and n > 1:
        del held
    check_join()


def check_join_refuses_a_loss_of_collectives() -> None:
    """A loss that depends on a collective needs the part of a rank that has no more data: said, not waited for."""
    if dist.get_world_size() == 1:
        return
    ddp = DDP(mlp(0))
    seen = cr.distributed.nn.functional.all_reduce(cr.ones(2, requires_grad=True, dtype=cr.float64))
    x, t = data(4)
    with pytest.raises(cr.ChainruleError, match="has no more data cannot take its part"), ddp.join():
        if dist.get_rank():
            (mse(ddp(x), t) + seen.sum()).backward()
    del seen
    check_join()


def check_sync_batch_norm_derivatives() -> None:
    """First, second and third derivatives of SyncBatchNorm are those of batch norm on all the data."""
    n, r = dist.get_world_size(), dist.get_rank()
    rng = np.random.default_rng(5)
    x, w = cr.tensor(rng.standard_normal((n, 2, 2, 3))), cr.tensor(rng.standard_normal((n, 2, 2, 3)))
    v = cr.tensor(rng.standard_normal((n, 2, 2, 3)))
    sync, plain = nn.SyncBatchNorm(2, dtype=cr.float64), nn.BatchNorm1d(2, dtype=cr.float64)
    here = lambda z: (sync(z) ** 3 * w[r]).sum()
    every = lambda z: (plain(z.flatten(0, 1)) ** 3 * w.flatten(0, 1)).sum()
    close(grad(here)(x[r]), grad(every)(x)[r], 1e-11)
    close(jvp(grad(here), (x[r],), (v[r],))[1], jvp(grad(every), (x,), (v,))[1][r], 1e-10)
    third = lambda f, a, b: jvp(lambda z: jvp(grad(f), (z,), (b,))[1], (a,), (b,))[1]
    close(third(here, x[r], v[r]), third(every, x, v)[r], 1e-9)
    # with respect to the parameters, one after the other
    ps = {k: p.detach() for k, p in sync.named_parameters()}
    loss = lambda m, z, u: lambda q: (functional_call(m, q, (z,)) ** 3 * u).sum()
    got = grad(loss(sync, x[r], w[r]))(ps)["weight"]
    want = grad(loss(plain, x.flatten(0, 1), w.flatten(0, 1)))(ps)["weight"]
    close(cr.distributed.nn.functional.all_reduce(got), want, 1e-11)


class Slow(cr.autograd.Function):
    """Nothing, with a backward that takes its time and leaves the cores alone."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        time.sleep(0.03)
        return g


def check_overlap() -> None:
    """Buckets travel while backward goes on: behind a slow link, at least half of the communication is not seen."""
    cr.manual_seed(0)
    layers = nn.ModuleList([nn.Linear(16, 16).double() for _ in range(10)])

    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = layers

        def forward(self, x: Any) -> Any:
            for f in self.layers:
                x = f(Slow.apply(x)).tanh()
            return x

    ddp = DDP(Deep(), bucket_cap_mb=0.0021)
    assert len(ddp.reducer.buckets) == 10
    x = cr.ones(4, 16, dtype=cr.float64, requires_grad=True)

    def alone() -> None:
        with ddp.no_sync():
            ddp(x).sum().backward()

    def after() -> None:
        alone()
        for b in ddp.reducer.buckets:
            b.begin()
            wire.all_reduce(ddp.process_group, None, b.buffer).wait()

    def took(f: Callable[[], None]) -> float:
        best = 1e9
        for _ in range(2):
            ddp.zero_grad()
            dist.barrier()
            begin = time.perf_counter()
            f()
            best = min(best, time.perf_counter() - begin)
        return best

    engine.LINK = (1e-4, 274 * 8 / 0.03)  # a bucket takes as long as a layer's backward
    try:
        times = {f.__name__: took(f) for f in (alone, after)} | {"ddp": took(lambda: ddp(x).sum().backward())}
    finally:
        engine.LINK = None
    hidden = (times["after"] - times["ddp"]) / (times["after"] - times["alone"])
    assert hidden > 0.5, times


def check_sampler() -> None:
    s = DistributedSampler(range(10), seed=1)
    out: list[Any] = []
    dist.all_gather_object(out, list(s))
    assert {i for part in out for i in part} == set(range(10))
    assert len({len(part) for part in out}) == 1


def checks() -> dict[str, Callable[[], None]]:
    return {k: f for k, f in globals().items() if k.startswith("check_")}
