"""Every collective on all ranks against one process that holds all the data: value, vjp, jvp, second order, vmap and nestings of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.distributed as dist
from chainrule.distributed.nn import functional as F
from chainrule.func import grad, hessian, jvp, linearize, vjp, vmap

Checks = dict[str, Callable[[], None]]


def close(a: Any, b: Any, tol: float = 1e-12) -> None:
    a, b = (np.asarray(v.detach().numpy() if isinstance(v, cr.Tensor) else v) for v in (a, b))
    assert a.shape == b.shape, (a.shape, b.shape)
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def refused(f: Callable[[], Any], kind: type[Exception], word: str = "") -> None:
    """`f` raises an error that says so."""
    with pytest.raises(kind, match=word or None):
        f()


def whole(shape: tuple[int, ...], seed: int, cx: bool = False) -> cr.Tensor:
    """The data of all ranks, the same on each: [n, *shape]."""
    rng = np.random.default_rng(seed)
    n = dist.get_world_size()
    x = rng.standard_normal((n, *shape))
    return cr.tensor(x + 1j * rng.standard_normal((n, *shape)) if cx else x)


# Each collective: what a rank does with its x of shape [n, 2], and what that is for all ranks' x of shape [n, n, 2] at once.
def _cases() -> dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]:
    n, r = dist.get_world_size(), dist.get_rank()
    last = n - 1
    uneven = [[1 + (s + d) % 2 for d in range(n)] for s in range(n)]  # rows that rank s has for rank d

    def only(root: int, y: Any) -> Any:
        """y on the root, zeros elsewhere."""
        mask = cr.zeros(n, dtype=y.dtype)
        mask[root] = 1
        return y.unsqueeze(0) * mask.reshape(n, *[1] * y.ndim)

    def same(y: Any) -> Any:
        return y.unsqueeze(0).expand(n, *y.shape)

    def rows(x: Any) -> Any:  # 2n rows are enough for parts of one or two
        return x.repeat(*[1] * (x.ndim - 2), 2, 1)

    def uneven_here(x: Any) -> Any:
        x = rows(x)[: sum(uneven[r])]
        return F.all_to_all_single(None, x, [uneven[s][r] for s in range(n)], uneven[r]).sum(0)

    def uneven_all(x: Any) -> Any:
        out = []
        for d in range(n):
            parts = [rows(x[s])[sum(uneven[s][:d]) : sum(uneven[s][: d + 1])] for s in range(n)]
            out.append(cr.cat(parts).sum(0))
        return cr.stack(out)

    def ring(x: Any) -> Any:
        """x from the left neighbour; even ranks send first."""
        left, right = (r - 1) % n, (r + 1) % n
        if r % 2 == 0:
            token = F.send(x, right)
            y = F.recv(x, left)
        else:
            y = F.recv(x, left)
            token = F.send(x * 1.0, right)
        return y + token

    def lists(x: Any) -> Any:
        out = F.all_to_all([x[0]] * n, [x[d] * (d + 1) for d in range(n)])
        return cr.stack(list(out))

    def lists_all(x: Any) -> Any:
        return cr.stack([cr.stack([x[s, d] * (d + 1) for s in range(n)]) for d in range(n)])

    return {
        "all_reduce": (F.all_reduce, lambda x: same(x.sum(0))),
        "all_reduce_avg": (lambda x: F.all_reduce(x, dist.ReduceOp.AVG), lambda x: same(x.mean(0))),
        "all_reduce_product": (lambda x: F.all_reduce(x, dist.ReduceOp.PRODUCT), lambda x: same(x.prod(0))),
        "all_reduce_max": (lambda x: F.all_reduce(x, dist.ReduceOp.MAX), lambda x: same(x.amax(0))),
        "all_reduce_min": (lambda x: F.all_reduce(x, dist.ReduceOp.MIN), lambda x: same(x.amin(0))),
        "reduce": (lambda x: F.reduce(x, last), lambda x: only(last, x.sum(0))),
        "broadcast": (lambda x: F.broadcast(x, last), lambda x: same(x[last])),
        "all_gather": (lambda x: cr.stack(list(F.all_gather(x))), same),
        "all_gather_into_tensor": (F.all_gather_into_tensor, lambda x: same(x.flatten(0, 1))),
        "reduce_scatter": (lambda x: F.reduce_scatter(None, list(x)), lambda x: x.sum(0)),
        "reduce_scatter_max": (lambda x: F.reduce_scatter(None, list(x), dist.ReduceOp.MAX), lambda x: x.amax(0)),
        "reduce_scatter_tensor": (F.reduce_scatter_tensor, lambda x: x.sum(0).unsqueeze(1)),
        "all_to_all_single": (lambda x: F.all_to_all_single(None, x), lambda x: x.transpose(0, 1)),
        "all_to_all_uneven": (uneven_here, uneven_all),
        "all_to_all": (lists, lists_all),
        "gather": (lambda x: cr.stack(list(F.gather(x, last))), lambda x: only(last, x)),
        "scatter": (lambda x: F.scatter(list(x), last), lambda x: x[last]),
        "ring": (ring, lambda x: x.roll(1, 0)),
    }  # fmt: skip


def _laws(name: str, cx: bool = False) -> None:
    """The laws of one collective; the loss of a rank is not linear and uses other weights on each."""
    n, r = dist.get_world_size(), dist.get_rank()
    here, every = _cases()[name]
    x, t, v = whole((n, 2), 1, cx), whole((n, 2), 2, cx), whole((n, 2), 3, cx)
    pre = (lambda z: z.sin()) if not cx else (lambda z: z * z)
    y_all = every(pre(x))
    w = whole(tuple(y_all.shape[1:]), 4, cx)
    f = lambda z: here(pre(z))
    f_all = lambda z: every(pre(z))
    part = lambda y: y.real if cx else y
    loss = lambda z: part((f(z) ** 2 * w[r]).sum())
    total = lambda z: part((f_all(z) ** 2 * w).sum())
    close(f(x[r]), y_all[r])
    # reverse
    g_all = grad(total)(x)
    close(grad(loss)(x[r]), g_all[r])
    _, pull = vjp(f, x[r])
    close(pull(w[r])[0], vjp(f_all, x)[1](w)[0][r])
    # forward
    close(jvp(f, (x[r],), (t[r],))[1], jvp(f_all, (x,), (t,))[1][r])
    _, push = linearize(f, x[r])
    close(push(t[r]), jvp(f_all, (x,), (t,))[1][r])
    # second order, three ways
    inner = lambda a, b: part((a * b).sum())
    want = grad(lambda z: inner(grad(total)(z), v))(x)[r]
    close(grad(lambda z: inner(grad(loss)(z), v[r]))(x[r]), want)
    if not cx:
        close(jvp(grad(loss), (x[r],), (v[r],))[1], want)
        close(grad(lambda z: jvp(loss, (z,), (v[r],))[1])(x[r]), want)
    # batches
    xb = cr.stack([x, x * 0.5, x + 1], 1)
    tb = cr.stack([t, t * 2, t - 1], 1)
    fb = vmap(f_all, in_dims=1, out_dims=1)(xb)
    close(vmap(f)(xb[r]), fb[r])
    close(
        vmap(f, in_dims=1, out_dims=2 if fb.ndim > 3 else 1)(xb[r].transpose(0, 1)).movedim(2 if fb.ndim > 3 else 1, 0),
        fb[r],
    )
    close(vmap(grad(loss))(xb[r]), vmap(grad(total), in_dims=1, out_dims=1)(xb)[r])
    close(grad(lambda z: vmap(loss)(z).sum())(xb[r]), grad(lambda z: vmap(total, in_dims=1)(z).sum())(xb)[r])
    close(
        vmap(lambda a, b: jvp(f, (a,), (b,))[1])(xb[r], tb[r]),
        vmap(lambda a, b: jvp(f_all, (a,), (b,))[1], in_dims=1, out_dims=1)(xb, tb)[r],
    )
    close(jvp(vmap(f), (xb[r],), (tb[r],))[1], jvp(vmap(f_all, in_dims=1, out_dims=1), (xb,), (tb,))[1][r])
    # a batch on one rank's side of the mapped function only: the others' examples are equal
    share = vmap(lambda a: f(x[r] * a if r == 0 else x[r]))(cr.tensor([1.0, 2.0, 3.0], dtype=x.dtype))
    lead = lambda a: cr.cat([(x[:1] * a), x[1:]])
    close(share, cr.stack([f_all(lead(a))[r] for a in (1.0, 2.0, 3.0)]))


def _imperative(name: str) -> None:
    """The same by requires_grad: backward, and backward of a gradient."""
    n, r = dist.get_world_size(), dist.get_rank()
    here, every = _cases()[name]
    x, v = whole((n, 2), 1), whole((n, 2), 3)
    w = whole(tuple(every(x).shape[1:]), 4)
    a = x[r].clone().requires_grad_()
    (here(a.sin()) ** 2 * w[r]).sum().backward()
    b = x.clone().requires_grad_()
    (every(b.sin()) ** 2 * w).sum().backward()
    close(a.grad, b.grad[r])
    (ga,) = cr.autograd.grad((here(a.sin()) ** 2 * w[r]).sum(), a, create_graph=True)
    (gb,) = cr.autograd.grad((every(b.sin()) ** 2 * w).sum(), b, create_graph=True)
    a.grad = b.grad = None
    (ga * v[r]).sum().backward()
    (gb * v).sum().backward()
    close(a.grad, b.grad[r])


def check_constant_on_some_ranks() -> None:
    """A rank whose input is a constant, or that does not use the result, comes to every collective all the same."""
    n, r = dist.get_world_size(), dist.get_rank()
    x, t = whole((3,), 5), whole((3,), 6)
    every = x.sin()

    # Rank 0 alone has a variable; the others give constants.
    def loss(z: Any) -> Any:
        mine = z.sin() if r == 0 else x[r].sin()
        return (F.all_reduce(mine) ** 2).sum() * (r + 1)

    s = every.sum(0)
    want = 2 * s * x[0].cos() * sum(range(1, n + 1))
    close(grad(loss)(x[r]), want if r == 0 else cr.zeros(3))
    h = hessian(loss)(x[r])
    total = sum(range(1, n + 1))
    want2 = cr.diag(2 * (x[0].cos() ** 2 - s * x[0].sin()) * total)
    close(h, want2 if r == 0 else cr.zeros(3, 3))
    got = jvp(loss, (x[r],), (t[r],))[1]
    close(got, (2 * s * x[0].cos() * t[0]).sum() * (r + 1))
    # Only the last rank's loss uses what was gathered.
    mine = lambda z: (
        cr.stack(list(F.all_gather(z.sin()))).prod() if r == n - 1 else (F.all_gather(z.sin())[0] * 0).sum() + z.sum()
    )
    ref = grad(lambda z: z.sin().prod())(x)[r] + (0.0 if r == n - 1 else 1.0)
    close(grad(mine)(x[r]), ref)

    def unused(z: Any) -> Any:
        y = F.all_gather(z.sin())
        return cr.stack(list(y)).prod() if r == 0 else z.sum()

    close(grad(unused)(x[r]), grad(lambda z: z.sin().prod())(x)[r] + (0.0 if r == 0 else 1.0))
    # The same by requires_grad: the ranks agree.
    a = x[r].clone().requires_grad_()
    y = F.all_gather(a.sin())
    (cr.stack(list(y)).prod() if r == 0 else a.sum()).backward()
    close(a.grad, grad(lambda z: z.sin().prod())(x)[r] + (0.0 if r == 0 else 1.0))
    b = x[r].clone()
    if r == 0:
        b.requires_grad_()
    (F.all_reduce(b) ** 2).sum().backward()
    close(b.grad, 2 * n * x.sum(0)) if r == 0 else None
    # Nothing is recorded where grad mode is off, or where nobody asks.
    assert not F.all_reduce(x[r]).requires_grad
    with cr.no_grad():
        assert not F.all_reduce(a).requires_grad


def check_dropped_result() -> None:
    """A result that was dropped although its input matters is noticed; one whose input is a constant is made up for."""
    r = dist.get_rank()
    x = whole((2,), 7)
    a = x[r].clone().requires_grad_()
    y = F.all_reduce(a if r == 0 else x[r])
    if r:
        del y
        z = cr.zeros((), requires_grad=True)
    loss = (y**2).sum() if r == 0 else z * 1
    loss.backward()
    if r == 0:
        close(a.grad, 2 * x.sum(0))
    y = F.all_reduce(a)
    if r:
        del y
    loss = (y**2).sum() if r == 0 else cr.zeros((), requires_grad=True) * 1
    if r == 0:
        loss.backward()
    else:
        refused(loss.backward, RuntimeError, "dropped")
    dist.barrier()


def check_order_of_the_graph() -> None:
    """Each rank uses the results in an order of its own; the derivatives meet in one order."""
    n, r = dist.get_world_size(), dist.get_rank()
    x = whole((4,), 8)
    w = whole((4, 4), 9)

    def loss(z: Any) -> Any:
        ys = [F.all_reduce(z * w[r, k]) for k in range(4)]
        order = [(k + r) % 4 for k in range(4)]
        out = 0.0
        for k in order:
            out = out * 0.5 + (ys[k].sin() * (k + 1)).sum()
        return out

    def total(z: Any) -> Any:
        out = 0.0
        for s in range(n):
            part = 0.0
            for k in [(k + s) % 4 for k in range(4)]:
                part = part * 0.5 + ((z * w[:, k]).sum(0).sin() * (k + 1)).sum()
            out = out + part
        return out

    close(grad(loss)(x[r]), grad(total)(x)[r])
    a = x[r].clone().requires_grad_()
    loss(a).backward()
    close(a.grad, grad(total)(x)[r])


def check_inside_jit_and_checkpoint() -> None:
    """A collective in a compiled function runs at every call; in a checkpoint it runs again."""
    n, r = dist.get_world_size(), dist.get_rank()
    x = whole((3,), 10)
    f = lambda z: (F.all_reduce(z.sin()) ** 2).sum()
    jf = cr.jit(f)
    for k in range(3):
        close(jf(x[r] + k), f(x[r] + k))
    want = 2 * n * x.sin().sum(0) * x[r].cos()
    close(grad(jf)(x[r]), want)
    close(cr.jit(grad(f))(x[r]), want)
    g = lambda z: cr.utils.checkpoint.checkpoint(f, z)
    close(grad(g)(x[r]), want)
    # only rank 0 uses what the checkpoint gave; its collective runs again on all ranks
    only = lambda z: g(z) if r == 0 else g(z) * 0 + z.sum() if r % 2 else (g(z), z.sum())[1]
    close(grad(only)(x[r]), want / n + (0.0 if r == 0 else 1.0))
    second = lambda h: jvp(grad(h), (x[r],), (x[r],))[1]
    close(second(g), second(f))
    a = x[r].clone().requires_grad_()
    g(a).backward()
    close(a.grad, want)


def check_c10d_inside_transforms() -> None:
    """PyTorch's collectives, which write, have derivatives inside a transform."""
    n, r = dist.get_world_size(), dist.get_rank()
    x = whole((3,), 11)

    def loss(z: Any) -> Any:
        y = z.sin()
        dist.all_reduce(y)
        return (y**2).sum()

    close(grad(loss)(x[r]), 2 * n * x.sin().sum(0) * x[r].cos())
    a = x[r].clone().requires_grad_()
    y = a * 2
    refused(lambda: dist.all_reduce(y), RuntimeError, "functional")


def check_subgroups() -> None:
    """Groups of some ranks, at the same time and after one another."""
    n, r = dist.get_world_size(), dist.get_rank()
    x = whole((3,), 12)
    halves = [dist.new_group(range(n // 2)), dist.new_group(range(n // 2, n))]
    mine = halves[r >= n // 2]
    ranks = dist.get_process_group_ranks(mine)
    assert dist.get_rank(mine) == ranks.index(r) and dist.get_world_size(mine) == n // 2
    assert dist.get_rank(halves[r < n // 2]) == -1

    def loss(z: Any) -> Any:
        return (F.all_reduce(F.all_reduce(z, group=mine).sin()) ** 2).sum()

    def total(z: Any) -> Any:
        parts = [z[: n // 2].sum(0).sin(), z[n // 2 :].sum(0).sin()]
        return n * ((parts[0] + parts[1]) ** 2).sum() * (n // 2) ** 2

    close(grad(loss)(x[r]), grad(total)(x)[r])
    a = x[r].clone().requires_grad_()
    loss(a).backward()
    close(a.grad, grad(total)(x)[r])


def checks() -> Checks:
    names = list(NAMES)
    out: Checks = {f"laws_{k}": (lambda k=k: _laws(k)) for k in names}  # type: ignore[misc]
    out |= {f"complex_{k}": (lambda k=k: _laws(k, True)) for k in names if "max" not in k and "min" not in k}  # type: ignore[misc]
    out |= {f"imperative_{k}": (lambda k=k: _imperative(k)) for k in names}  # type: ignore[misc]
    return out | {k: f for k, f in globals().items() if k.startswith("check_")}


NAMES = """all_reduce all_reduce_avg all_reduce_product all_reduce_max all_reduce_min reduce broadcast all_gather all_gather_into_tensor
reduce_scatter reduce_scatter_max reduce_scatter_tensor all_to_all_single all_to_all_uneven all_to_all gather scatter ring""".split()
