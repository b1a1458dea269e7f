"""Ragged batches in the words of other layouts: padding and masks, packed rows and segments, layers, losses, training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import func, nested, vmap
from chainrule.core.tree import flatten

F, nn = cr.nn.functional, cr.nn
RNG = np.random.default_rng(18)
D = 4
SIZES = (3, 1, 5)


def randn(*s: int) -> Any:
    return cr.tensor(RNG.normal(size=s))


ROWS = [randn(n, D) for n in SIZES]
X = nested.nested_tensor(ROWS)
PAD = nested.to_padded_tensor(X, 0.0)
MASK = cr.tensor(np.arange(max(SIZES)) < np.array(SIZES)[:, None])  # True: a row that there is
W, B = randn(D, D), randn(D)


def number(y: Any) -> Any:
    return (y * y).sum() / 2 + y.sin().sum()


def parts(y: Any) -> list[np.ndarray]:
    return [c.numpy(force=True) for c in y.unbind()] if y.is_nested else list(y.numpy(force=True))


def same(a: Any, b: Any, what: str = "") -> None:
    a, b = flatten(a)[0], flatten(b)[0]
    for u, v in zip(a, b, strict=True):
        p, q = (parts(t) if t.ndim else [t.numpy(force=True)] for t in (u, v))
        for r, s in zip(p, q, strict=True):
            np.testing.assert_allclose(r, s, rtol=1e-8, atol=1e-10, err_msg=what)


def cut(y: Any) -> list[Any]:
    """The rows that there are, of a padded result."""
    return [c[:n] for c, n in zip(y.unbind(), SIZES, strict=True)]


# -- padding and masks: (nest, weight) and (padded, weight) give the same -----------------------------------------------

minus = cr.where(MASK, 0.0, -np.inf).to(cr.float64)
PADDED = {
    "attention": (
        lambda x, w: F.scaled_dot_product_attention(x @ w, x, x),
        lambda x, w: F.scaled_dot_product_attention(x @ w, x, x, attn_mask=MASK[:, None, :]),
    ),
    "additive mask": (
        lambda x, w: (x @ w @ x.mT).softmax(-1) @ x,
        lambda x, w: (x @ w @ x.mT + minus[:, None, :]).softmax(-1) @ x,
    ),
    "causal": (
        lambda x, w: F.scaled_dot_product_attention(x @ w, x, x, is_causal=True),
        lambda x, w: F.scaled_dot_product_attention(x @ w, x, x, is_causal=True),
    ),
    "mean": (
        lambda x, w: (x @ w).mean(1),
        lambda x, w: ((x @ w) * MASK.unsqueeze(-1)).sum(1) / MASK.sum(1, keepdim=True),
    ),
    "max": (
        lambda x, w: (x @ w).amax(1),
        lambda x, w: (x @ w).masked_fill(~MASK.unsqueeze(-1), -np.inf).amax(1),
    ),
    "softmax over rows": (
        lambda x, w: ((x @ w).softmax(1) * x).sum(1),
        lambda x, w: ((x @ w + minus.unsqueeze(-1)).softmax(1) * x).sum(1),
    ),
    "logsumexp": (
        lambda x, w: (x @ w).logsumexp(1),
        lambda x, w: (x @ w + minus.unsqueeze(-1)).logsumexp(1),
    ),
    "last row": (
        lambda x, w: (x @ w)[:, -1],
        lambda x, w: (x @ w)[cr.arange(3), MASK.sum(1) - 1],
    ),
    "positions": (
        lambda x, w: (x + w[cr.arange(x.size(1)) % D]) @ w,
        lambda x, w: (x + w[cr.arange(5) % D]) @ w,
    ),
    "statistics": (
        lambda x, w: (x - x.mean(1, keepdim=True)) @ w,
        lambda x, w: (x - (x * MASK.unsqueeze(-1)).sum(1, keepdim=True) / MASK.sum(1)[:, None, None]) @ w,
    ),
    "over all rows": (
        lambda x, w: (x @ w) * (x @ w).sum((0, 1)),
        lambda x, w: (x @ w) * (x @ w).mul(MASK.unsqueeze(-1)).sum((0, 1)),
    ),
    "back and forth": (
        lambda x, w: nested.from_padded(nested.to_padded_tensor(x @ w, 0.0), [3, 1, 5]).tanh(),
        lambda x, w: (x @ w).tanh(),
    ),
    "selected": (
        lambda x, w: nested.masked_select((PAD @ w)[..., 0], MASK).sum(1).unsqueeze(-1) * x.sum(1),
        lambda x, w: ((PAD @ w)[..., 0] * MASK).sum(1, keepdim=True) * x.mul(MASK.unsqueeze(-1)).sum(1),
    ),
    "narrow": (
        lambda x, w: nested.narrow(PAD @ w, 1, 0, cr.tensor([3, 1, 5]), layout=cr.jagged) * x,
        lambda x, w: (PAD @ w) * x,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PADDED)
def test_padded(name: str) -> None:
    f, g = PADDED[name]
    y, z = f(X, W), g(PAD, W)
    ragged = y.is_nested
    same(list(y.unbind()), cut(z) if ragged else list(z.unbind()))
    weigh = lambda z: z * MASK.unsqueeze(-1) if ragged else z
    a = lambda x, w: number(f(x, w))
    b = lambda x, w: number(weigh(g(x, w)))
    ga, gb = func.grad(a, (0, 1))(X, W), func.grad(b, (0, 1))(PAD, W)
    same([list(ga[0].unbind()), ga[1]], [cut(gb[0]), gb[1]], "grad")
    second = lambda h, x: func.jvp(func.grad(h, (0, 1)), (x, W), (x * 0.5, B * W))[1]
    ha, hb = second(a, X), second(b, PAD)
    same([list(ha[0].unbind()), ha[1]], [cut(hb[0]), hb[1]], "jvp(grad)")
    ws = cr.stack([W, W.mT, 0.3 * W])
    same(vmap(func.grad(a, 1), (None, 0))(X, ws), vmap(func.grad(b, 1), (None, 0))(PAD, ws), "ensemble")
    same(func.grad(lambda w: vmap(a, (None, 0))(X, w).sum())(ws), vmap(func.grad(b, 1), (None, 0))(PAD, ws), "members")


# -- graphs: messages along edges, nodes of several graphs in one batch ---------------------------------------------------

SOURCE, TARGET = cr.tensor([0, 1, 2, 4, 5, 8, 3]), cr.tensor([1, 2, 0, 5, 4, 7, 3])
NODES = 9
DENSE = np.zeros((NODES, NODES))
for _s, _t in zip(SOURCE.tolist(), TARGET.tolist(), strict=True):
    DENSE[_t, _s] += 1
A = cr.tensor(DENSE)
COUNT = A.sum(1, keepdim=True)


def _attended(h: Any, w: Any) -> Any:
    e = ((h @ w)[SOURCE] * h[TARGET]).sum(-1)
    return nested.segment_sum(nested.segment_softmax(e, TARGET, NODES).unsqueeze(-1) * h[SOURCE], TARGET, NODES)


def _attended_dense(h: Any, w: Any) -> Any:
    e = (h @ (h @ w).mT).exp() * A
    return e @ h / (e.sum(1, keepdim=True) + (COUNT == 0))


GRAPHS = {
    "sum": (lambda h, w: nested.segment_sum((h @ w)[SOURCE], TARGET, NODES), lambda h, w: A @ (h @ w)),
    "mean": (
        lambda h, w: nested.segment_mean((h @ w)[SOURCE], TARGET, NODES),
        lambda h, w: A @ (h @ w) / COUNT.clamp(1),
    ),
    "max": (
        lambda h, w: nested.segment_max((h @ w)[SOURCE], TARGET, NODES, fill=0.0),
        lambda h, w: cr.where(
            COUNT > 0, cr.where(A[..., None] > 0, (h @ w)[None], -np.inf).amax(1).nan_to_num(0, 0, 0), 0.0
        ),
    ),
    "attention": (_attended, _attended_dense),
    "two layers": (
        lambda h, w: nested.segment_sum(nested.segment_sum((h @ w)[SOURCE], TARGET, NODES).tanh()[SOURCE], TARGET, NODES),
        lambda h, w: A @ (A @ (h @ w)).tanh(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_graph(name: str) -> None:
    f, g = GRAPHS[name]
    h = X.values()
    same(f(h, W), g(h, W))
    a, b = (lambda h, w, k=k: number(k(h, w)) for k in (f, g))
    same(func.grad(a, (0, 1))(h, W), func.grad(b, (0, 1))(h, W), "grad")
    second = lambda k: func.jvp(func.grad(k, (0, 1)), (h, W), (h * 0.5, B * W))[1]
    same(second(a), second(b), "jvp(grad)")
    ws = cr.stack([W, W.mT])
    same(vmap(func.grad(a, 1), (None, 0))(h, ws), vmap(func.grad(b, 1), (None, 0))(h, ws), "ensemble")
    hs = cr.stack([h, h.flip(0)])
    same(vmap(func.grad(a), (0, None))(hs, W), vmap(func.grad(b), (0, None))(hs, W), "graphs at once")
    # The nodes as a nest of graphs, their messages by rows of all graphs.
    on_nest = lambda x: a(x.values(), W)
    assert func.grad(on_nest)(X).is_nested
    same(func.grad(on_nest)(X).values(), func.grad(a)(h, W))


# -- layers, each component by itself -------------------------------------------------------------------------------------


def _layers() -> dict[str, tuple[Any, Any]]:
    cr.manual_seed(0)
    mha = nn.MultiheadAttention(D, 2, batch_first=True, dtype=cr.float64)
    return {
        "multihead": (mha, lambda m, x: m(x, x, x, need_weights=False)[0]),
        "encoder layer": (
            nn.TransformerEncoderLayer(D, 2, 8, dropout=0.0, batch_first=True, dtype=cr.float64), lambda m, x: m(x)
        ),
        "encoder": (
            nn.TransformerEncoder(
                nn.TransformerEncoderLayer(D, 2, 8, dropout=0.0, batch_first=True, norm_first=True, dtype=cr.float64), 2
            ),
            lambda m, x: m(x),
        ),
        "lstm": (nn.LSTM(D, 3, batch_first=True, dtype=cr.float64), lambda m, x: m(x)[0]),
        "gru both ways": (
            nn.GRU(D, 3, batch_first=True, bidirectional=True, dtype=cr.float64), lambda m, x: m(x)[0]
        ),
        "rnn": (nn.RNN(D, 3, 2, batch_first=True, dtype=cr.float64), lambda m, x: m(x)[0]),
        "perceptron": (
            nn.Sequential(nn.Linear(D, 8), nn.SiLU(), nn.LayerNorm(8), nn.Linear(8, 2)).double(), lambda m, x: m(x)
        ),
        "convolution": (nn.Conv1d(D, 2, 3, padding=1, dtype=cr.float64), lambda m, x: m(x.mT).mT),
    }  # fmt: skip


@pytest.mark.parametrize("name", _layers())
def test_layer(name: str) -> None:
    m, f = _layers()[name]
    one = lambda m, c: f(m, c.unsqueeze(0)).squeeze(0)
    same(list(f(m, X).unbind()), [one(m, c) for c in ROWS])
    x = X.clone().requires_grad_()
    number(f(m, x)).backward()
    got = [x.grad, *[p.grad.clone() for p in m.parameters()]]
    m.zero_grad()
    cs = [c.clone().requires_grad_() for c in ROWS]
    sum(number(one(m, c)) for c in cs).backward()
    same(list(got[0].unbind()), [c.grad for c in cs], "input")
    for g, p in zip(got[1:], m.parameters(), strict=True):
        same(g, p.grad, "parameter")
    params = {k: p.detach() for k, p in m.named_parameters()}
    stacked = {k: cr.stack([p, -p]) for k, p in params.items()}
    loss = lambda params, x: number(func.functional_call(_Called(m, f), {f"m.{k}": v for k, v in params.items()}, (x,)))
    members = vmap(func.grad(loss), (0, None))(stacked, X)
    for i, s in enumerate((1, -1)):
        want = func.grad(loss)({k: s * p for k, p in params.items()}, X)
        for k, v in want.items():
            same(members[k][i], v, f"member {i}: {k}")


class _Called(nn.Module):
    def __init__(self, m: Any, f: Any) -> None:
        super().__init__()
        self.m, self.f = m, f

    def forward(self, x: Any) -> Any:
        return self.f(self.m, x)


# -- losses and training --------------------------------------------------------------------------------------------------

LABELS = nested.nested_tensor([cr.tensor(RNG.integers(0, D, n)) for n in SIZES])
LOSSES = {
    "cross_entropy": lambda y, t: F.cross_entropy(y, t),
    "smoothed": lambda y, t: F.cross_entropy(y, t, label_smoothing=0.1, weight=B.abs()),
    "nll": lambda y, t: F.nll_loss(F.log_softmax(y, -1), t),
    "mse": lambda y, t: F.mse_loss(y, F.one_hot(t, D).to(y.dtype)),
    "logits": lambda y, t: F.binary_cross_entropy_with_logits(y, F.one_hot(t, D).to(y.dtype)),
    "embedding": lambda y, t: ((F.embedding(t, W) - y) ** 2).mean(),
    "picked": lambda y, t: y.gather(-1, t.unsqueeze(-1)).mean(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_loss(name: str) -> None:
    f = LOSSES[name]
    if name == "cross_entropy":
        g = lambda x, w: F.cross_entropy(x @ w, LABELS, class_dim=-1)
    elif name == "smoothed":
        g = lambda x, w: F.cross_entropy(x @ w, LABELS, label_smoothing=0.1, weight=B.abs(), class_dim=-1)
    elif name == "nll":
        g = lambda x, w: F.nll_loss(F.log_softmax(x @ w, -1), LABELS, class_dim=-1)
    else:
        g = lambda x, w: f(x @ w, LABELS)
    h = lambda rows, w: f(rows @ w, LABELS.values())
    same(g(X, W), h(X.values(), W))
    a, b = func.grad(g, (0, 1))(X, W), func.grad(h, (0, 1))(X.values(), W)
    same([a[0].values(), a[1]], b, "grad")
    same(vmap(lambda w: g(X, w))(cr.stack([W, 2 * W])), cr.stack([h(X.values(), W), h(X.values(), 2 * W)]))


def test_training() -> None:
    """Steps of an optimiser on a nest, on packed rows, and compiled: the same numbers."""
    losses = []
    for kind in ("nest", "rows", "jit"):
        w = W.clone().requires_grad_()
        opt = cr.optim.Adam([w], lr=0.1)
        loss = (
            (lambda w: (X @ w).tanh().pow(2).sum(-1).mean(1).sum())
            if kind != "rows"
            else (lambda w: sum((c @ w).tanh().pow(2).sum(-1).mean() for c in ROWS))
        )
        slope = cr.jit(func.grad(loss)) if kind == "jit" else func.grad(loss)
        for _ in range(5):
            w.grad = slope(w.detach())
            opt.step()
        losses.append(loss(w).item())
    np.testing.assert_allclose(losses, losses[0], rtol=1e-10)
