"""Ragged data: a block of a network, attention, and reductions over ragged dims, beside PyTorch's ways of doing the same.

The lengths follow a Pareto law up to 128: most sequences are short, a few are long, as in text. "packed" is PyTorch on rows packed
by hand, "jagged" and "strided" are its nested layouts, "padded" is attention on a padded batch with a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import chainrule as ct
from benchmarks.common import OURS, Row, best_of, optional

SEQUENCES, LONGEST, FEATURES, HEADS = 256, 128, 64, 4
F = ct.nn.functional


def lengths(n: int = SEQUENCES, longest: int = LONGEST) -> np.ndarray:
    """Pareto lengths from 4 to `longest`."""
    return np.minimum((np.random.default_rng(0).pareto(1.1, n) + 1) * 4, longest).astype(np.int64)


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape, dtype=np.float32)


def block(torch: Any) -> dict[str, Callable[[], Any]]:
    """layer_norm, linear, gelu, softmax, forward and backward, with the gradients of the input and of all weights."""
    ls = lengths()
    total = int(ls.sum())
    values, grads = draw(total, FEATURES), draw(total, FEATURES)
    params = [draw(FEATURES) * 0.1 + 1, draw(FEATURES) * 0.1, draw(FEATURES, FEATURES) * 0.1, draw(FEATURES) * 0.1]
    offsets = ct.tensor(np.concatenate([[0], np.cumsum(ls)]))
    x = ct.nested.nested_tensor_from_jagged(ct.tensor(values), offsets).detach().requires_grad_()
    g = ct.nested.nested_tensor_from_jagged(ct.tensor(grads), offsets)
    ps = [ct.tensor(p).requires_grad_() for p in params]

    def ours() -> Any:
        h = F.layer_norm(x, (FEATURES,), ps[0], ps[1])
        y = F.gelu(F.linear(h, ps[2], ps[3])).softmax(-1)
        return ct.autograd.grad(y, (x, *ps), g)

    work: dict[str, Callable[[], Any]] = {OURS: ours}
    if torch is None:
        return work
    tf = torch.nn.functional
    tps = [torch.from_numpy(p).requires_grad_() for p in params]
    parts = [int(n) for n in ls]
    tv = torch.from_numpy(values)
    inputs = {"packed": tv.clone()}
    grad_of = {"packed": torch.from_numpy(grads)}
    for name, layout in (("jagged", torch.jagged), ("strided", torch.strided)):
        inputs[name] = torch.nested.nested_tensor(list(tv.split(parts)), layout=layout)
    for v in inputs.values():
        v.requires_grad_()

    def theirs(name: str) -> Callable[[], Any]:
        v = inputs[name]
        if name == "jagged":
            cot = torch.nested.nested_tensor_from_jagged(torch.from_numpy(grads), v.offsets())
        elif name == "strided":
            cot = torch.nested.nested_tensor(list(torch.from_numpy(grads).split(parts)))
        else:
            cot = grad_of[name]

        def run() -> Any:
            h = tf.layer_norm(v, (FEATURES,), tps[0], tps[1])
            y = tf.gelu(tf.linear(h, tps[2], tps[3])).softmax(-1)
            return torch.autograd.grad(y, (v, *tps), cot)

        return run

    work |= {name: theirs(name) for name in inputs}
    a, b = ours(), work["packed"]()
    for u, v in zip(a, b, strict=True):
        np.testing.assert_allclose(u.values().numpy() if u.is_nested else u.numpy(), v.numpy(), rtol=2e-3, atol=2e-4)
    return work


def attention(torch: Any) -> dict[str, Callable[[], Any]]:
    """Attention of 4 heads, forward and backward, on ragged sequences; PyTorch pads them and masks the padding."""
    ls, d = lengths(), FEATURES // HEADS
    comps = [[draw(HEADS, int(n), d) for n in ls] for _ in range(4)]
    q, k, v, g = (ct.nested.nested_tensor(c, dtype=ct.float32) for c in comps)
    q, k, v = (t.requires_grad_() for t in (q, k, v))

    def ours() -> Any:
        return ct.autograd.grad(F.scaled_dot_product_attention(q, k, v), (q, k, v), g)

    work: dict[str, Callable[[], Any]] = {OURS: ours}
    if torch is None:
        return work
    top = int(ls.max())
    padded = [torch.zeros(len(ls), HEADS, top, d) for _ in range(4)]
    for p, c in zip(padded, comps, strict=True):
        for i, a in enumerate(c):
            p[i, :, : a.shape[1]] = torch.from_numpy(a)
    mask = (torch.arange(top) < torch.from_numpy(ls)[:, None])[:, None, None, :]
    tq, tk, tv = (p.requires_grad_() for p in padded[:3])

    def theirs() -> Any:
        return torch.autograd.grad(
            torch.nn.functional.scaled_dot_product_attention(tq, tk, tv, attn_mask=mask), (tq, tk, tv), padded[3]
        )

    work["padded"] = theirs
    for u, w in zip(ours(), theirs(), strict=True):
        for i in (0, 7, 100):
            np.testing.assert_allclose(u[i].numpy(), w[i, :, : ls[i]].numpy(), rtol=2e-3, atol=2e-4)
    return work


def many(torch: Any, what: str) -> dict[str, Callable[[], Any]]:
    """A softmax or a sum over the ragged dim of 10^5 components."""
    ls = lengths(100_000, 64)
    values = draw(int(ls.sum()))
    x = ct.nested.nested_tensor_from_jagged(ct.tensor(values), lengths=ct.tensor(ls))
    work: dict[str, Callable[[], Any]] = {OURS: (lambda: x.softmax(-1)) if what == "softmax" else (lambda: x.sum(-1))}
    if torch is not None:
        t = torch.nested.nested_tensor(list(torch.from_numpy(values).split([int(n) for n in ls])))
        work["strided"] = (lambda: t.softmax(-1)) if what == "softmax" else (lambda: t.sum(-1, keepdim=True))
    return work


def growth() -> dict[str, Callable[[], Any]]:
    """The same elements in 10^5 components of 10 and in 10^3 of 1000: softmax and sum of squares over the ragged dim, backward."""

    def grad_of(n: int, size: int) -> Callable[[], Any]:
        ls = np.full(n, size) + np.arange(n) % 3 - 1
        x = ct.nested.nested_tensor_from_jagged(ct.tensor(draw(int(ls.sum()))), lengths=ct.tensor(ls))
        return lambda: ct.func.grad(lambda x: (x.softmax(-1) ** 2).sum(-1).sum())(x)

    return {OURS: grad_of(100_000, 10), "in 1000 components": grad_of(1000, 1000)}


def rows(only: str = "") -> Iterable[Row]:
    """One row for each piece of work whose name contains `only`."""
    torch = optional("torch")
    if torch is not None:
        import warnings

        torch.set_num_threads(2)
        warnings.filterwarnings("ignore", ".*nested tensors.*")
    works: dict[str, tuple[Callable[[], dict[str, Callable[[], Any]]], dict[str, float], int]] = {
        "nested block, 256 sequences, fwd+bwd": (
            lambda: block(torch),
            {"packed": 1.0, "jagged": 0.5, "strided": 0.25},
            40,
        ),
        "ragged attention, 4 heads, fwd+bwd": (lambda: attention(torch), {"padded": 0.5}, 15),
        "ragged softmax, 100,000 components": (lambda: many(torch, "softmax"), {"strided": 0.05}, 4),
        "ragged sum, 100,000 components": (lambda: many(torch, "sum"), {"strided": 0.05}, 4),
        "ragged softmax, gradient, 10^6 elements in 10^5 components": (growth, {"in 1000 components": 2.0}, 10),
    }
    for name, (make, budgets, rounds) in works.items():
        if only in name:
            yield Row(name, best_of(make(), rounds), budgets)
