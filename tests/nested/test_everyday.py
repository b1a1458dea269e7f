"""The everyday operations on ragged data: forward, backward, forward mode and vmap, one test for each.

PyTorch's jagged layout manages 19 of these and its strided layout 13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as ct

from .harness import close

F, func, nested = ct.nn.functional, ct.func, ct.nested
RNG = np.random.default_rng(11)
COMPS = [ct.tensor(RNG.normal(size=(n, 4))) for n in (3, 1, 5, 2)]
X = nested.as_nested_tensor(COMPS)
T = nested.as_nested_tensor([ct.tensor(RNG.normal(size=tuple(c.shape))) for c in COMPS])
W, B = ct.tensor(RNG.normal(size=(4, 3))), ct.tensor(RNG.normal(size=(4,)))
V = ct.tensor(RNG.normal(size=(3, 4)))
LABELS = [ct.tensor(RNG.integers(0, 4, size=c.shape[0])) for c in COMPS]
Y = nested.as_nested_tensor(LABELS)

# On the nest [N, n, 4] and on one component [n, 4].
EVERYDAY: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "add": (lambda x: x + 2 * x, lambda c: c + 2 * c),
    "mul": (lambda x: x * x, lambda c: c * c),
    "broadcast": (lambda x: x + B, lambda c: c + B),
    "relu": (F.relu, F.relu),
    "gelu": (F.gelu, F.gelu),
    "exp": (lambda x: x.exp(), lambda c: c.exp()),
    "where": (lambda x: ct.where(x > 0, x, 0.0), lambda c: ct.where(c > 0, c, 0.0)),
    "clamp": (lambda x: x.clamp(-1, 1), lambda c: c.clamp(-1, 1)),
    "pow": (lambda x: x**3, lambda c: c**3),
    "linear": (lambda x: F.linear(x, V), lambda c: F.linear(c, V)),
    "dense matmul": (lambda x: x @ W, lambda c: c @ W),
    "a @ aT": (lambda x: x @ x.transpose(1, 2), lambda c: c @ c.t()),
    "einsum": (lambda x: ct.einsum("bij,jk->bik", x, W), lambda c: ct.einsum("ij,jk->ik", c, W)),
    "layer_norm": (lambda x: F.layer_norm(x, (4,)), lambda c: F.layer_norm(c, (4,))),
    "softmax": (lambda x: x.softmax(-1), lambda c: c.softmax(-1)),
    "softmax over the ragged dim": (lambda x: x.softmax(1), lambda c: c.softmax(0)),
    "log_softmax": (lambda x: x.log_softmax(-1), lambda c: c.log_softmax(-1)),
    "sum over the ragged dim": (lambda x: x.sum(1), lambda c: c.sum(0)),
    "mean over the ragged dim": (lambda x: x.mean(1), lambda c: c.mean(0)),
    "amax over the ragged dim": (lambda x: x.amax(1), lambda c: c.amax(0)),
    "std over the ragged dim": (lambda x: ct.cat([x, -x], 1).std(1), lambda c: ct.cat([c, -c]).std(0)),
    "var over the ragged dim": (lambda x: x.var(1, correction=0), lambda c: c.var(0, correction=0)),
    "logsumexp over the ragged dim": (lambda x: x.logsumexp(1), lambda c: c.logsumexp(0)),
    "sort over the ragged dim": (lambda x: x.sort(1).values, lambda c: c.sort(0).values),
    "cumsum over the ragged dim": (lambda x: x.cumsum(1), lambda c: c.cumsum(0)),
    "norm": (lambda x: x.norm(dim=(1, 2)), lambda c: c.norm()),
    "cat on the ragged dim": (lambda x: ct.cat([x, x * x], 1), lambda c: ct.cat([c, c * c], 0)),
    "stack": (lambda x: ct.stack([x, x * x], -1), lambda c: ct.stack([c, c * c], -1)),
    "flip": (lambda x: x.flip(1), lambda c: c.flip(0)),
    "x[:, 0]": (lambda x: x[:, 0], lambda c: c[0]),
    "x[:, :1]": (lambda x: x[:, :1], lambda c: c[:1]),
    "index by a tensor": (lambda x: x[:, ct.tensor([0, -1, 0])], lambda c: c[ct.tensor([0, -1, 0])]),
    "diff": (lambda x: x.diff(dim=1), lambda c: c.diff(dim=0)),
    "pad": (lambda x: F.pad(x, (0, 0, 1, 2)), lambda c: F.pad(c, (0, 0, 1, 2))),
    "transpose": (lambda x: x.transpose(1, 2), lambda c: c.t()),
    "unsqueeze": (lambda x: x.unsqueeze(1), lambda c: c.unsqueeze(0)),
    "reshape": (lambda x: x.reshape(4, -1, 2, 2), lambda c: c.reshape(-1, 2, 2)),
    "chunk": (lambda x: x.chunk(2, -1)[1], lambda c: c.chunk(2, -1)[1]),
    "to_padded": (lambda x: x.to_padded_tensor(0.0).sum(1), lambda c: c.sum(0)),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), lambda c: F.scaled_dot_product_attention(c, c, c, is_causal=True)),
}  # fmt: skip


def listed(y: Any) -> list[Any]:
    return list(y.unbind())


@pytest.mark.parametrize("name", EVERYDAY)
def test_everyday(name: str) -> None:
    f, g = EVERYDAY[name]
    close(listed(f(X)), [g(c) for c in COMPS], "forward")
    loss = lambda h: lambda x: (h(x).sin() ** 2).sum()
    want = [func.grad(loss(g))(c) for c in COMPS]
    close(listed(func.grad(loss(f))(X)), want, "backward")
    leaf = X.detach().requires_grad_()
    loss(f)(leaf).backward()
    close(listed(leaf.grad), want, "backward()")
    _y, t = func.jvp(f, (X,), (T,))
    close(listed(t), [func.jvp(g, (c,), (d,))[1] for c, d in zip(COMPS, T.unbind(), strict=True)], "forward mode")
    if name != "to_padded":
        close(listed(ct.vmap(g)(X)), [g(c) for c in COMPS], "vmap")
        close(listed(ct.vmap(func.grad(loss(g)))(X)), want, "vmap of grad")


def test_losses() -> None:
    flat, target = X.values(), T.values()
    close(F.mse_loss(X, T), F.mse_loss(flat, target), "mse_loss")
    close(
        listed(func.grad(F.mse_loss)(X, T)),
        list(func.grad(F.mse_loss)(flat, target).split([3, 1, 5, 2])),
        "mse_loss backward",
    )
    close(F.cross_entropy(X.transpose(1, 2), Y), F.cross_entropy(flat, Y.values()), "cross_entropy")
    want = list(func.grad(F.cross_entropy)(flat, Y.values()).split([3, 1, 5, 2]))
    close(listed(func.grad(lambda x: F.cross_entropy(x.transpose(1, 2), Y))(X)), want, "cross_entropy backward")
    close(
        func.jvp(lambda x: F.cross_entropy(x.transpose(1, 2), Y), (X,), (T,))[1],
        func.jvp(lambda x: F.cross_entropy(x, Y.values()), (flat,), (target,))[1],
        "jvp",
    )
    close(
        ct.vmap(F.cross_entropy)(X, Y),
        ct.stack([F.cross_entropy(c, y) for c, y in zip(COMPS, LABELS, strict=True)]),
        "vmap",
    )
    close(
        ct.vmap(F.mse_loss)(X, T),
        ct.stack([F.mse_loss(c, t) for c, t in zip(COMPS, T.unbind(), strict=True)]),
        "vmap of mse_loss",
    )


def test_embedding() -> None:
    table = ct.tensor(RNG.normal(size=(4, 3)))
    close(listed(F.embedding(Y, table)), [table[y] for y in LABELS], "forward")
    loss = lambda w: (F.embedding(Y, w) ** 2).sum()
    close(func.grad(loss)(table), func.grad(lambda w: (w[ct.cat(LABELS)] ** 2).sum())(table), "backward")
    per = ct.vmap(func.grad(lambda w, y: (F.embedding(y, w) ** 2).sum()), (None, 0))(table, Y)
    close(per, ct.stack([func.grad(lambda w, y=y: (w[y] ** 2).sum())(table) for y in LABELS]), "per example")


def test_comparison_allclose_and_numpy() -> None:
    assert ct.allclose(X, X + 1e-12) and not ct.allclose(X, X + 1) and ct.equal(X, X.clone())
    assert (X == X).all() and (X == X).is_nested
    for a, c in zip(X.numpy(), COMPS, strict=True):
        np.testing.assert_array_equal(a, c.numpy())
    close(listed(nested.nested_tensor(X.numpy())), COMPS, "from NumPy")
    assert X.argmax(1).tolist() == [c.argmax(0).tolist() for c in COMPS]


def test_whole_reductions() -> None:
    flat = X.values()
    for name in ("sum", "mean", "std", "var", "amax", "norm", "max"):
        close(getattr(X, name)(), getattr(flat, name)(), name)
        close(
            func.grad(lambda x, name=name: getattr(x, name)())(X).values(),
            func.grad(lambda x, name=name: getattr(x, name)())(flat),
            name,
        )
    close(X.sum((0, 1)), flat.sum(0), "over the nesting and the ragged dim")
    close(X.mean((0, 1)), flat.mean(0), "mean over the nesting and the ragged dim")
    close(X.amax((0, 1)), flat.amax(0), "amax over the nesting and the ragged dim")


def test_embedding_with_a_sparse_gradient() -> None:
    i = ct.nested.nested_tensor([ct.tensor([0, 2]), ct.tensor([], dtype=ct.int64), ct.tensor([3, 3, 0])])
    tables = [ct.tensor(np.arange(20.0).reshape(5, 4), requires_grad=True) for _ in range(2)]
    for w, sparse in zip(tables, (True, False), strict=True):
        ct.nn.functional.embedding(i, w, sparse=sparse).sin().sum().backward()
    assert tables[0].grad.is_sparse
    assert tables[0].grad.to_dense().tolist() == tables[1].grad.tolist()


def test_covariances_and_chains_of_products_of_each_component() -> None:
    rng = np.random.default_rng(0)
    parts = [ct.tensor(rng.standard_normal((n, 3))) for n in (4, 6, 2)]
    x = ct.nested.nested_tensor(parts)
    w, v = ct.tensor(rng.standard_normal((3, 5))), ct.tensor(rng.standard_normal((5, 2)))
    for f in (
        lambda c: ct.cov(c.mT),
        lambda c: ct.corrcoef(c.mT),
        lambda c: ct.linalg.multi_dot([c, w, v]),
        lambda c: ct.linalg.multi_dot([w.mT, c.mT, c]),
    ):
        slope = ct.func.grad(lambda c, f=f: (f(c) ** 2).sum())
        for whole, one in ((ct.func.vmap(f)(x), f), (ct.func.vmap(slope)(x), slope)):
            for a, c in zip(whole.unbind(), parts, strict=True):
                assert ct.allclose(a, one(c), rtol=1e-12, atol=1e-12)
