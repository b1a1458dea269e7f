"""Programs as users write them on ragged batches, in every mode, against a loop over the components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import func, nested, vmap
from chainrule.core.tree import flatten

F = cr.nn.functional
RNG = np.random.default_rng(8)
D = 4
SIZES = {"ragged": (3, 1, 5), "equal": (2, 2), "one": (4,)}


def randn(*s: int) -> Any:
    return cr.tensor(RNG.normal(size=s))


W, V, B, P = randn(D, D), randn(3, D), randn(D), randn(8, D)
W3, K1 = randn(3 * D, D), randn(D, D, 3)
TABLE = randn(6, D)


def heads(x: Any, n: int = 2) -> Any:
    return x.unflatten(-1, (n, D // n)).transpose(-2, -3)


def merged(x: Any) -> Any:
    return x.transpose(-2, -3).flatten(-2)


def attention(x: Any, w: Any) -> Any:
    q, k, v = (heads(t) for t in F.linear(x, W3 * w.repeat(3, 1)).chunk(3, -1))
    return merged(F.scaled_dot_product_attention(q, k, v))


def by_hand(x: Any, w: Any) -> Any:
    q, k = x @ w, x @ w.mT
    return (q @ k.mT / D**0.5).softmax(-1) @ x


def block(x: Any, w: Any) -> Any:
    x = x + attention(F.layer_norm(x, (D,)), w)
    return x + F.linear(F.gelu(F.linear(F.layer_norm(x, (D,)), V)), V.mT)


def written(x: Any, w: Any) -> Any:
    y = x @ w
    y[..., 0] = y[..., 1].sin()
    y[y > 1] = 0.5
    return y * y


def written_first(x: Any, w: Any) -> Any:
    y = (x * w[0]).clone()
    y[..., :1, :] = y[..., -1:, :] * 2
    y[..., 2:] += 1.0
    return y.tanh()


def added(x: Any, w: Any) -> Any:
    y = x * 1
    y += x @ w
    y *= B
    y.sub_(x.mean(-2, keepdim=True))
    return y


def cut(x: Any, w: Any) -> Any:
    with cr.no_grad():
        scale = x.abs().amax(-2, keepdim=True)
    return (x / (scale + 1)) @ w


def straight_through(x: Any, w: Any) -> Any:
    y = x @ w
    return y + (y.round() - y).detach()


def kept(x: Any, w: Any) -> Any:
    return cr.utils.checkpoint.checkpoint(lambda x: (x @ w).tanh() @ w, x, use_reentrant=False)


def compiled(x: Any, w: Any) -> Any:
    return cr.jit(lambda x, w: (x @ w).softmax(-1) * x)(x, w)


def masked_mean(x: Any, w: Any) -> Any:
    m = (x[..., :1] > 0).to(x.dtype)
    return (x * m).sum(-2) / (m.sum(-2) + 1) @ w


def pooled(x: Any, w: Any) -> Any:
    a = (x @ w[0]).softmax(-1)
    return (a.unsqueeze(-1) * x).sum(-2)


def normalised(x: Any, w: Any) -> Any:
    m, v = x.mean(-2, keepdim=True), x.var(-2, keepdim=True, unbiased=False)
    return (x - m) * (v + 1e-5).rsqrt() * w[0] + w[1]


def relative(x: Any, w: Any) -> Any:
    d = x.unsqueeze(-2) - x.unsqueeze(-3)
    return (d * d).sum(-1).neg().exp() @ (x @ w)


def distances(x: Any, w: Any) -> Any:
    y = x @ w
    return (cr.cdist(x, y) + 1).log().sum(-1)


def best(x: Any, w: Any) -> Any:
    s = (x @ w).sum(-1)
    return x.gather(-2, s.argmax(-1, keepdim=True).unsqueeze(-1).expand(*[-1] * (x.ndim - 1), D)) * 2


def sorted_rows(x: Any, w: Any) -> Any:
    i = (x @ w[0]).argsort(-1)
    return x.take_along_dim(i.unsqueeze(-1), -2).cumsum(-2)


def contrastive(x: Any, w: Any) -> Any:
    z = F.normalize(x @ w, dim=-1)
    return (z @ z.mT * 5).logsumexp(-1) - (z * z).sum(-1)


def gated(x: Any, w: Any) -> Any:
    a, b = F.linear(x, cr.cat([W, w])).chunk(2, -1)
    return a.sigmoid() * b


def residual(x: Any, w: Any) -> Any:
    for _ in range(3):
        x = x + 0.1 * (x @ w).tanh()
    return x


def energies(x: Any, w: Any) -> Any:
    """Forces inside: the derivative of a derivative outside."""
    return func.grad(lambda x: ((x @ w).sin() * x).sum())(x)


def pushed(x: Any, w: Any) -> Any:
    return func.jvp(lambda x: (x @ w).tanh(), (x,), (x.cos(),))[1]


def moments(x: Any, w: Any) -> Any:
    c = x - x.mean(-2, keepdim=True)
    return (c.mT @ c / x.shape[-2]) @ w


def whitened(x: Any, w: Any) -> Any:
    c = x.mT @ x + 3 * cr.eye(D, dtype=x.dtype)
    return cr.linalg.solve(c, (x @ w).mT).mT


def factored(x: Any, w: Any) -> Any:
    return cr.linalg.cholesky(x.mT @ x + 3 * cr.eye(D, dtype=x.dtype)) @ w


# Each means the same on a nest and on one component.
PROGRAMS: dict[str, Callable[..., Any]] = {
    "attention": attention,
    "attention by hand": by_hand,
    "block": block,
    "writes": written,
    "writes of slices": written_first,
    "augmented": added,
    "no_grad": cut,
    "straight through": straight_through,
    "checkpoint": kept,
    "jit": compiled,
    "masked mean": masked_mean,
    "attention pooling": pooled,
    "instance statistics": normalised,
    "relative": relative,
    "distances": distances,
    "best row": best,
    "sorted rows": sorted_rows,
    "contrastive": contrastive,
    "gates": gated,
    "residual": residual,
    "forces": energies,
    "pushed": pushed,
    "covariance": moments,
    "solve": whitened,
    "cholesky": factored,
    "linear": lambda x, w: F.linear(x, w, B),
    "two layers": lambda x, w: F.linear(F.relu(F.linear(x, w, B)), V),
    "mean pool": lambda x, w: (x @ w).mean(-2).tanh(),
    "max pool": lambda x, w: (x @ w).amax(-2),
    "last": lambda x, w: x[..., -1, :] @ w,
    "first minus last": lambda x, w: (x[..., 0, :] - x[..., -1, :]) @ w,
    "reversed": lambda x, w: x.flip(-2) @ w - x,
    "positions": lambda x, w: (x + cr.arange(x.size(-2)).unsqueeze(-1) * 0.1) @ w,
    "sizes": lambda x, w: x @ w / x.size(-2),
    "lengths": lambda x, w: (x @ w).sum(-2) / (x.size(-2) + 1.0),
    "softmax over rows": lambda x, w: (x @ w).softmax(-2) * x,
    "log_softmax": lambda x, w: F.log_softmax(x @ w, -1),
    "cumulative": lambda x, w: (x @ w).cumsum(-2) * x,
    "running maximum": lambda x, w: (x @ w).cummax(-2).values,
    "running logsumexp": lambda x, w: (x @ w).logcumsumexp(-2),
    "scores": lambda x, w: ((x @ w) @ x.mT).sigmoid(),
    "causal": lambda x, w: ((x @ w) @ x.mT).tril() @ x,
    "gram": lambda x, w: x.mT @ x @ w,
    "outer": lambda x, w: (x.unsqueeze(-1) * (x @ w).unsqueeze(-2)).sum(-3),
    "einsum": lambda x, w: cr.einsum("...ij,jk->...ik", x, w).exp(),
    "einsum of pairs": lambda x, w: cr.einsum("...id,de,...ie->...i", x, w, x),
    "norms": lambda x, w: (x @ w).norm(dim=-1),
    "rms": lambda x, w: F.rms_norm(x, (D,), w[0]),
    "cosine": lambda x, w: F.cosine_similarity(x, x @ w, dim=-1),
    "where": lambda x, w: cr.where(x > 0, x @ w, x.exp()),
    "clamp": lambda x, w: (x @ w).clamp(-1, 1) ** 2,
    "lerp": lambda x, w: x.lerp(x @ w, 0.3),
    "features apart": lambda x, w: cr.cat([x[..., :2].sin(), x[..., 2:] @ w[:2]], -1),
    "rows apart": lambda x, w: cr.cat([x @ w, x.flip(-2)], -2),
    "stack": lambda x, w: cr.stack([x, x @ w], -1).prod(-1),
    "heads": lambda x, w: merged(heads(x @ w)) * B,
    "rotary": lambda x, w: cr.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2) @ w,
    "var": lambda x, w: (x @ w).var(-1) + x.std(-1, unbiased=False),
    "smooth maximum": lambda x, w: (x @ w).logsumexp((-2, -1)),
    "all": lambda x, w: (x * (x @ w)).sum((-2, -1)),
    "dropout at rest": lambda x, w: F.dropout(x @ w, 0.5, training=False),
    "huber": lambda x, w: F.smooth_l1_loss(x @ w, x, reduction="none").sum(-1),
    "kept rows": lambda x, w: (x * (x.sum(-1, keepdim=True) > 0)) @ w,
    "top": lambda x, w: (x @ w).topk(2, -1).values.sum(-1),
    "median": lambda x, w: (x @ w).median(-1).values,
    "quantile": lambda x, w: (x @ w).quantile(0.3, -1),
    "repeat": lambda x, w: (x @ w).repeat_interleave(2, -1),
    "roll": lambda x, w: x.roll(1, -1) @ w,
    "pad": lambda x, w: F.pad(x @ w, (1, 2)),
    "unfold": lambda x, w: (x @ w).unfold(-1, 2, 1).prod(-1),
    "differences": lambda x, w: (x @ w).diff(dim=-1),
    "trapezoid": lambda x, w: cr.trapezoid(x @ w, dim=-1),
    "polar": lambda x, w: cr.atan2(x @ w, x * x + 1).hypot(x),
    "complex": lambda x, w: (cr.view_as_complex((x @ w).unflatten(-1, (2, 2))) * (1 + 2j)).abs(),
    "fourier": lambda x, w: cr.fft.rfft(x @ w, dim=-1).abs().pow(2),
    "addmm": lambda x, w: x.addcmul(x @ w, x, value=0.5).addcdiv(x, x * x + 1),
    "nan_to_num": lambda x, w: (x @ w / x.relu()).nan_to_num(0.0, 1.0, -1.0) + x,
}  # fmt: skip


def nest(case: str, seed: int = 0) -> tuple[Any, list[Any]]:
    rng = np.random.default_rng(seed)
    cs = [cr.tensor(rng.normal(size=(n, D))) for n in SIZES[case]]
    return nested.nested_tensor(cs), cs


def number(y: Any) -> Any:
    return (y * y).sum() / 2 + y.sin().sum()


def arrays(tree: Any) -> list[np.ndarray]:
    out: list[np.ndarray] = []
    for t in flatten(tree)[0]:
        out += [c.numpy(force=True) for c in t.unbind()] if t.is_nested else [t.numpy(force=True)]
    return out


def same(got: Any, want: Any, what: str) -> None:
    a, b = arrays(got), arrays(want)
    if len(a) == 1 and len(b) > 1:  # a dense result of one row for each component
        a = list(a[0])
    assert [u.shape for u in a] == [v.shape for v in b], what
    for u, v in zip(a, b, strict=True):
        np.testing.assert_allclose(u, v, rtol=1e-8, atol=1e-10, err_msg=what)


@pytest.mark.parametrize("case", SIZES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, case: str) -> None:
    f = PROGRAMS[name]
    (x, cs), (t, ts) = nest(case), nest(case, 1)
    total = lambda x, w: number(f(x, w))
    loop = lambda cs, w: sum((number(f(c, w)) for c in cs), cr.tensor(0.0, dtype=cr.float64))
    each = [f(c, W) for c in cs]
    rows = each if len(cs) > 1 else [each[0]]
    whole = f(x, W)
    same(list(whole.unbind()), rows, "value")
    same(list(vmap(f, (0, None))(x, W).unbind()), rows, "vmap")
    gx, gw = func.grad(loop, (0, 1))(cs, W)
    got = func.grad(total, (0, 1))(x, W)
    same([list(got[0].unbind()), got[1]], [gx, gw], "grad")
    assert got[0].shape == x.shape
    ones = [func.grad(total, (0, 1))(c, W) for c in cs]
    inside = vmap(func.grad(total, (0, 1)), (0, None))(x, W)
    same(
        [list(inside[0].unbind()), list(inside[1].unbind())], [[o[0] for o in ones], [o[1] for o in ones]], "vmap(grad)"
    )
    outside = func.grad(lambda x, w: number(vmap(f, (0, None))(x, w)), (0, 1))(x, W)
    same([list(outside[0].unbind()), outside[1]], [gx, gw], "grad(vmap)")
    second = lambda g, x, t: func.jvp(func.grad(g, (0, 1)), (x, W), (t, V[:1] * W))[1]
    hx, hw = second(loop, cs, ts)
    mine = second(total, x, t)
    same([list(mine[0].unbind()), mine[1]], [hx, hw], "jvp(grad)")
    ws = cr.stack([W, -0.5 * W, W.mT])
    members = vmap(func.grad(total, (0, 1)), (None, 0))(x, ws)
    for i, w in enumerate(ws.unbind()):
        a, b = func.grad(loop, (0, 1))(cs, w)
        same([list(members[0].select(0, i).unbind()), members[1][i]], [a, b], f"member {i}")
    leaf, p = x.detach().clone().requires_grad_(), W.clone().requires_grad_()
    total(leaf, p).backward()
    same([list(leaf.grad.unbind()), gw * 0 if p.grad is None else p.grad], [gx, gw], "backward")
    again = cr.jit(func.grad(total, (0, 1)))
    for _ in range(2):
        j = again(x, W)
        same([list(j[0].unbind()), j[1]], [gx, gw], "jit(grad)")
