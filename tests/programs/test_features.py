"""Parts of the library beside the operators, mixed by hand: what they give is differentiable and maps over examples like anything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import autograd, nn
from chainrule.autograd import forward_ad
from chainrule.func import functional_call, grad, jvp, stack_module_state, vjp
from chainrule.nn.utils import parametrizations

D: Any = cr.float64
W = cr.tensor(np.random.default_rng(1).normal(size=(5, 4)))
cr.manual_seed(0)
LAYER = nn.Linear(4, 4, dtype=D)
NET = nn.Sequential(nn.Linear(4, 6, dtype=D), nn.Tanh(), nn.Linear(6, 4, dtype=D))
NORMED = parametrizations.weight_norm(nn.Linear(4, 4, dtype=D))
ORTHOGONAL = parametrizations.orthogonal(nn.Linear(4, 4, dtype=D))
GRU = nn.GRU(4, 3, batch_first=True, dtype=D)
MANY = [nn.Linear(4, 2, dtype=D) for _ in range(3)]


def stepped(kind: str, **options: Any) -> Callable[[Any], Any]:
    """Two steps of an optimiser, differentiated."""

    def f(x: Any) -> Any:
        q = cr.tensor([0.3, -0.2, 0.5, 0.7], dtype=D, requires_grad=True) * 1
        q.retain_grad()
        optimizer = getattr(cr.optim, kind)([q], lr=0.1, differentiable=True, **options)
        for _ in range(2):
            loss = ((q * x).sin() ** 2 + q**2 * x.exp()).sum()
            q.grad = autograd.grad(loss, q, create_graph=True)[0]
            optimizer.step()
        return q * x

    return f


def meta_learning(x: Any) -> Any:
    p = dict(NET.named_parameters())
    g = grad(lambda p: (functional_call(NET, p, (x,)) ** 2).sum())(p)
    return functional_call(NET, {k: p[k] - 0.1 * g[k] for k in p}, (x,))


def parametrized(layer: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        p = {k: v * (1 + 0.1 * x[0]) for k, v in layer.named_parameters()}
        return functional_call(layer, p, (x,)) * x

    return f


def packed(x: Any) -> Any:
    rows = (W * x).unsqueeze(0).expand(2, 5, 4)
    y, _ = GRU(nn.utils.rnn.pack_padded_sequence(rows, cr.tensor([5, 3]), batch_first=True))
    return nn.utils.rnn.pad_packed_sequence(y, batch_first=True)[0]


def ensemble(x: Any) -> Any:
    p, b = stack_module_state(MANY)
    return cr.vmap(lambda p, b: functional_call(MANY[0], (p, b), (x,)))(p, b)


def saved_by_hooks(x: Any) -> Any:
    with autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t * 1):
        y = (x.sin() * x).exp()
    return y * x


def dual(x: Any) -> Any:
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x, x * 2)
        t = forward_ad.unpack_dual(grad(lambda z: (z.sin() * d).sum())(d)).tangent
    return t + x


def drawn(x: Any) -> Any:
    cr.manual_seed(3)
    tril = cr.outer(x, x).tril() + cr.diag(x.exp())
    normal = cr.distributions.MultivariateNormal(x, scale_tril=tril)
    z = normal.rsample((2,))
    return normal.log_prob(z).sum() + z.sum(0)


def scanned(x: Any) -> Any:
    last, ys = cr.scan(
        lambda c, w: (c + 0.1 * grad(lambda c: ((c * w).sin() * x).sum())(c), c.sum()), x * 2, W, checkpoint=2
    )
    return last * ys.sum()


def running_statistics(x: Any) -> Any:
    norm = nn.BatchNorm1d(4, dtype=D).eval()
    return functional_call(norm, {**dict(norm.named_parameters()), "running_mean": x, "running_var": x.exp()}, (W,))


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "sgd": stepped("SGD", momentum=0.9), "adam": stepped("Adam"), "rmsprop": stepped("RMSprop"), "radam": stepped("RAdam"),
    "meta learning": meta_learning, "weight norm": parametrized(NORMED), "orthogonal": parametrized(ORTHOGONAL), "packed": packed,
    "ensemble": ensemble, "saved by hooks": saved_by_hooks, "dual": dual, "drawn": drawn, "scan of gradients": scanned,
    "running statistics": running_statistics,
}  # fmt: skip


def difference(f: Callable[[Any], Any], x: Any, v: Any, h: float = 1e-3) -> np.ndarray:
    """The derivative along `v` from central differences at two scales."""
    one, half = ((f(x + k * v) - f(x - k * v)).detach().numpy() / (2 * k) for k in (h, h / 2))
    return (4 * half - one) / 3


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    f = PROGRAMS[name]
    rng = np.random.default_rng(2)
    xs, vs = (cr.tensor(rng.uniform(-1, 1, (3, 4))) for _ in range(2))
    x, v = xs[0].clone(), vs[0].clone()

    def loss(x: Any) -> Any:
        y = f(x)
        return (y * cr.arange(y.numel(), dtype=D).reshape(y.shape).cos()).sum()

    def same(got: Any, want: Any, tol: float) -> None:
        np.testing.assert_allclose(got.detach().numpy(), np.asarray(want), rtol=tol, atol=tol)

    def mapped(g: Callable[..., Any], *args: Any) -> Any:
        return cr.vmap(g, randomness="same")(*args)

    push, gradient = (lambda x, v: jvp(f, (x,), (v,))[1]), grad(loss)
    same(push(x, v), difference(f, x, v), 1e-8)
    same((gradient(x) * v).sum(), difference(loss, x, v), 1e-8)
    curved = difference(gradient, x, v)
    same(jvp(gradient, (x,), (v,))[1], curved, 1e-7)
    same(vjp(gradient, x)[1](v)[0], curved, 1e-7)
    leaf = x.clone().requires_grad_()
    (g,) = autograd.grad(loss(leaf), leaf, create_graph=True)
    (h,) = (
        autograd.grad((g * v).sum(), leaf, allow_unused=True, materialize_grads=True)
        if g.requires_grad
        else (leaf * 0,)
    )
    same(h, curved, 1e-7)
    each = np.stack([gradient(x.clone()).detach().numpy() for x in xs])
    same(mapped(gradient, xs), each, 1e-10)
    same(grad(lambda xs: mapped(loss, xs).sum())(xs), each, 1e-10)
    pushed = np.stack([push(x.clone(), v.clone()).detach().numpy() for x, v in zip(xs, vs, strict=True)])
    same(jvp(lambda xs: mapped(f, xs), (xs,), (vs,))[1], pushed, 1e-10)
    same(mapped(push, xs, vs), pushed, 1e-10)
