"""Nests of nests (documents of sentences of words), against the same function of each nest by itself, in every mode."""

import copy
import io
import pickle

import numpy as np
import pytest

import chainrule as cr
from chainrule import nested
from chainrule.core.errors import ChainruleError
from chainrule.func import grad, hessian, jvp, vmap

F = cr.nn.functional
CASES = {
    "ragged": [[3, 1], [2], [1, 2, 3]],
    "empty": [[2, 0], [1], [], [3, 1, 2]],
    "equal": [[2, 2], [2, 2]],
    "one": [[2, 3]],
}
RNG = np.random.default_rng(5)
W, B, V = cr.tensor(RNG.normal(size=(3, 3))), cr.tensor(RNG.normal(size=3)), cr.tensor(RNG.normal(size=(2, 3)))


def nests(name, trail=(), seed=0):
    """The documents of a case, as nests."""
    rng = np.random.default_rng(seed)
    out = []
    for sizes in CASES[name]:
        rows = cr.tensor(rng.normal(size=(sum(sizes), *trail)))
        out.append(nested.nested_tensor_from_jagged(rows, lengths=cr.tensor(sizes, dtype=cr.int64)))
    return out


def arrays(y):
    """A result as a flat list of arrays."""
    if isinstance(y, tuple | list):
        return [a for v in y for a in arrays(v)]
    return [a for c in y.unbind() for a in arrays(c)] if y.is_nested else [y.numpy()]


def same(got, want, what=""):
    a, b = arrays(got), arrays(want)
    assert [v.shape for v in a] == [v.shape for v in b], what
    for u, v in zip(a, b, strict=True):
        np.testing.assert_allclose(u, v, rtol=1e-9, atol=1e-11, err_msg=what)


# Functions of one document [j, jj] and [j, jj, 3], which mean the same on all of them: dims from the end.
WORDS = {
    "arithmetic": lambda x: (x * x.sin() + 2) / (1 + x.exp()),
    "sum": lambda x: x.sum(-1),
    "keepdim": lambda x: x - x.sum(-1, keepdim=True),
    "all": lambda x: x.sum((-2, -1)),
    "mean of all": lambda x: x * x.exp().sum((-2, -1), keepdim=True),
    "softmax": lambda x: x.softmax(-1) * x,
    "log_softmax": lambda x: x.log_softmax(-1) * x,
    "logsumexp": lambda x: x.exp().logsumexp(-1).sin(),
    "sizes": lambda x: x / (x.size(-1) + 1),
    "size of a sum": lambda x: x.sum(-1) / (x.size(-1) + 1),
    "cumsum": lambda x: x.cumsum(-1),
    "sort": lambda x: x.sort(-1)[0] * 2,
    "flip": lambda x: x.flip(-1) * x,
    "where": lambda x: cr.where(x > 0.1, x * x, -x),
    "masked_fill": lambda x: x.masked_fill(x > 0.1, 0.5),
    "twice": lambda x: x.cos().sum(-1).exp().sum(-1),
    "after": lambda x: x.sum(-1).softmax(-1),
    "unsqueeze": lambda x: x.unsqueeze(-1).exp(),
    "stack": lambda x: cr.stack([x, x * x], -1),
    "cat": lambda x: cr.cat([x, x.sin()], -1),
    "cat of sentences": lambda x: cr.cat([x, x.sin()], -2),
    "slice": lambda x: x[..., 1:] * 3,
    "later sentences": lambda x: x[..., 1:, :] * 3,
    "norm": lambda x: (x * x + 1).norm(dim=-1),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
}
VECTORS = {
    "linear": lambda x: F.linear(x, V) ** 2,
    "bias": lambda x: F.linear(x, W, B).tanh(),
    "product": lambda x: (x @ W).sin(),
    "layer_norm": lambda x: F.layer_norm(x, (3,), B, B + 1) ** 3,
    "rms_norm": lambda x: F.rms_norm(x, (3,), B) ** 3,
    "softmax of features": lambda x: x.softmax(-1) * x,
    "softmax of words": lambda x: x.softmax(-2) * x,
    "sum of words": lambda x: x.sum(-2).exp(),
    "sum of features": lambda x: x.exp().sum(-1),
    "mean": lambda x: (x - x.mean(-1, keepdim=True)) * B,
    "all words": lambda x: x.exp().sum((-3, -2)),
    "all": lambda x: x.exp().sum((-3, -2, -1)),
    "moments": lambda x: (x - x.sum((-3, -2), keepdim=True)) ** 2,
    "transpose": lambda x: x.mT.exp(),
    "gram": lambda x: x.mT @ x,
    "scores": lambda x: (x @ x.mT).softmax(-1) @ x,
    "gelu": lambda x: F.gelu(x) * B,
    "first feature": lambda x: x[..., 0] * x[..., 1:].sum(-1),
    "reversed features": lambda x: x[..., cr.tensor([2, 0])] * 2,
    "var": lambda x: x.var(-1),
}
TABLE = [(n, f, ()) for n, f in WORDS.items()] + [(n, f, (3,)) for n, f in VECTORS.items()]


def number(y):
    return (y * y).sum() / 2 + y.sin().sum()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("name", "f", "trail"), TABLE, ids=[t[0] for t in TABLE])
def test_function(name, f, trail, case):
    docs, ts = nests(case, trail), nests(case, trail, 1)
    x, t = nested.nested_tensor(docs), nested.nested_tensor(ts)
    want = [f(d) for d in docs]
    same(f(x), want, "value")
    same(vmap(f)(x), want, "vmap")
    total = lambda x: number(f(x))
    slopes = [grad(total)(d) for d in docs]
    for got, what in (
        (grad(total)(x), "grad"),
        (vmap(grad(total))(x), "vmap(grad)"),
        (grad(lambda x: number(vmap(f)(x)))(x), "grad(vmap)"),
    ):
        same(got, slopes, what)
        assert got.shape == x.shape, what
    same(jvp(f, (x,), (t,))[1], [jvp(f, (d,), (v,))[1] for d, v in zip(docs, ts, strict=True)], "jvp")
    second = lambda x, t: jvp(grad(total), (x,), (t,))[1]
    seconds = [second(d, v) for d, v in zip(docs, ts, strict=True)]
    same(second(x, t), seconds, "jvp(grad)")
    same(vmap(second)(x, t), seconds, "vmap(jvp(grad))")
    scales = cr.tensor([0.5, 2.0, -1.0])
    members = vmap(lambda s: f(x * s))(scales)
    for s, y in zip(scales, members.unbind(0), strict=True):
        same(y, [f(d * s) for d in docs], "ensemble")
    of_members = vmap(grad(lambda s, x: number(f(x * s)), argnums=(0, 1)), in_dims=(0, None))(scales, x)
    for i, s in enumerate(scales):
        a, b = grad(lambda s, x: number(f(x * s)), argnums=(0, 1))(s, x)
        same([of_members[0][i], of_members[1].select(0, i)], [a, b], "gradient of an ensemble")
    leaf = x.detach().clone().requires_grad_()
    number(f(leaf)).backward()
    same(leaf.grad, slopes, "backward")
