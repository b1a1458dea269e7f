"""More ops of nested tensors: activations, losses, joins and pieces of ragged dims, products, indices, writes, whole programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import chainrule as ct

from .harness import Case

F = ct.nn.functional

ACTIVATIONS = (
    "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu sigmoid silu softplus "
    "softshrink softsign tanh tanhshrink"
)
LOSSES = "l1_loss mse_loss smooth_l1_loss huber_loss soft_margin_loss poisson_nll_loss binary_cross_entropy_with_logits"


def activations() -> Iterator[Case]:
    for name in ACTIVATIONS.split():
        for s in ("gaps", "planes"):
            yield Case(name, getattr(F, name), s)
    yield Case("threshold", lambda x: F.threshold(x, 0.1, 2.0), "gaps")
    for s in ("rows", "gaps", "inner"):
        yield Case("softmin", lambda x: F.softmin(x, -1), s)
    yield Case("glu", lambda x: F.glu(x, -1), "gaps")
    yield Case("glu over a ragged dim", lambda x: F.glu(ct.cat([x, x.sin()], -2), -2), "rows")
    yield Case("swiglu", lambda x, w, v: F.silu(x @ w) * (x @ v), "gaps", dense=((4, 3), (4, 3)))


def losses() -> Iterator[Case]:
    for name in LOSSES.split():
        f = getattr(F, name)
        for s in ("gaps", "planes"):
            yield Case(name, lambda x, y, f=f: f(x, y, reduction="none"), s, nests=2)
        # The mean of a component is that of one call on it: by vmap alone, since on a nest it is the mean of all elements.
        yield Case(f"{name} sum", lambda x, y, f=f: f(x, y, reduction="none").sum((-2, -1)), "rows", nests=2)
    prob = lambda f: lambda x, y: f(x.sigmoid(), y.sigmoid())
    yield Case(
        "binary_cross_entropy", prob(lambda p, q: F.binary_cross_entropy(p, q, reduction="none")), "gaps", nests=2
    )
    yield Case("gaussian_nll", lambda x, y: F.gaussian_nll_loss(x, y, x * x + 0.1, reduction="none"), "gaps", nests=2)
    yield Case("gaussian_nll number", lambda x, y: F.gaussian_nll_loss(x, y, 0.5, reduction="none"), "gaps", nests=2)
    yield Case("kl_div", lambda x, y: F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="none"), "gaps", nests=2)
    yield Case("soft labels", lambda x, y: -(y.softmax(-1) * x.log_softmax(-1)).sum(-1), "gaps", nests=2)
    yield Case("cosine_similarity", lambda x, y: F.cosine_similarity(x, y, dim=-2), "rows", nests=2)
    yield Case("pairwise_distance", lambda x, y: (x - y + 1e-6).norm(dim=-1), "gaps", nests=2)
    labels = lambda x: (x.detach().sum(-1).abs() * 3).long() % 4
    yield Case("nll", lambda x: -x.log_softmax(-1).gather(-1, labels(x).unsqueeze(-1)).squeeze(-1), "gaps")
    yield Case(
        "cross_entropy",
        lambda x: F.cross_entropy(x.transpose(1, 2), labels(x), reduction="none"),
        "gaps",
        component=lambda c: F.cross_entropy(c, labels(c), reduction="none"),
    )
    yield Case(
        "cross_entropy smooth",
        lambda x, w: F.cross_entropy(x.transpose(1, 2), labels(x), w * w + 1, reduction="none", label_smoothing=0.1),
        "gaps",
        dense=((4,),),
        component=lambda c, w: F.cross_entropy(c, labels(c), w * w + 1, reduction="none", label_smoothing=0.1),
    )


def pieces() -> Iterator[Case]:
    for s in ("rows", "gaps", "vectors", "images"):
        yield Case("split ragged", lambda x: ct.cat([2 * p for p in x.split(2, 1)], 1), s, component=lambda c: 2 * c)
        yield Case(
            "chunk ragged", lambda x: x.chunk(2, 1)[0], s, component=lambda c: c[: (c.shape[0] + 1) // 2], vmap=False
        )
        yield Case("tensor_split", lambda x: x.tensor_split(3, 1)[1], s,
                   component=lambda c: c.tensor_split(3, 0)[1], vmap=s != "gaps")  # fmt: skip
        yield Case(
            "cat of parts", lambda x: ct.cat([x[:, 1:], x[:, :1]], 1), s, component=lambda c: ct.cat([c[1:], c[:1]])
        )
        yield Case("shifted", lambda x: x[:, 1:] - x[:, :-1], s, component=lambda c: c[1:] - c[:-1])
        yield Case("repeat ragged", lambda x: x.repeat(1, 2, *(1,) * (x.ndim - 2)), s,
                   component=lambda c: c.repeat(2, *(1,) * (c.ndim - 1)))  # fmt: skip
        yield Case("flatten all", lambda x: x.flatten(1), s, component=lambda c: c.flatten())
        yield Case("reshape -1", lambda x: x.reshape(x.shape[0], -1), s, component=lambda c: c.reshape(-1))
    for s in ("rows", "gaps"):
        yield Case("reshape", lambda x: x.reshape(x.shape[0], -1, 2, 2), s, component=lambda c: c.reshape(-1, 2, 2))
        yield Case("view", lambda x: x.view(x.shape[0], -1, 2), s, component=lambda c: c.view(-1, 2))
        yield Case("heads", lambda x: x.unflatten(-1, (2, 2)).transpose(1, 2), s,
                   component=lambda c: c.unflatten(-1, (2, 2)).transpose(0, 1))  # fmt: skip
        yield Case(
            "heads back",
            lambda x: x.unflatten(-1, (2, 2)).transpose(1, 2).transpose(1, 2).flatten(-2),
            s,
            component=lambda c: c,
        )
        yield Case("unbind", lambda x: ct.stack(x.unbind(-1)[::-1], -1), s)
        yield Case("squeeze", lambda x: x.unsqueeze(-1).squeeze(-1).unsqueeze(1).squeeze(1), s, component=lambda c: c)
        yield Case("pad all", lambda x: F.pad(x, (1, 0, 2, 1), value=0.5), s)
        yield Case("pad less", lambda x: F.pad(x, (-1, 0)), s)
        yield Case("cat dense", lambda x: ct.cat([x, ct.ones(x.shape[0], 2, 4, dtype=x.dtype)], 1), s,
                   component=lambda c: ct.cat([c, ct.ones(2, 4, dtype=c.dtype)]))  # fmt: skip
        yield Case("stack in front", lambda x: ct.stack([x, x.sin()], 1).sum(1), s, component=lambda c: c + c.sin())
        yield Case(
            "expand", lambda x: x.unsqueeze(1).expand(-1, 3, *x.shape[1:]), s, component=lambda c: c.expand(3, *c.shape)
        )
    yield Case("permute images", lambda x: x.permute(0, 2, 1, 3), "images", component=lambda c: c.permute(1, 0, 2))
    yield Case("flip images", lambda x: x.flip(1, 2), "images", component=lambda c: c.flip(0, 1))
    yield Case("crop", lambda x: x[:, :2, 1:], "images", component=lambda c: c[:2, 1:])
    yield Case("image pad", lambda x: F.pad(x, (0, 0, 1, 0, 0, 2)), "images")
    yield Case("image mean", lambda x: x - x.mean((-3, -2), keepdim=True), "images")
    yield Case("image norm", lambda x: x / x.norm(dim=(-3, -2), keepdim=True), "images")
    yield Case("image softmax", lambda x: x.flatten(-3, -2).softmax(-2), "images")
    yield Case(
        "image standardise",
        lambda x: (x - x.mean((-3, -2), True)) / (x.var((-3, -2), correction=0, keepdim=True) + 1).sqrt(),
        "images",
    )


def chosen() -> Iterator[Case]:
    for s in ("rows", "gaps", "vectors"):
        tail = () if s == "vectors" else (slice(None),)
        yield Case("clone and write", written(lambda y, tail=tail: y.__setitem__((..., slice(1, None), *tail), 2.0)), s)
        yield Case(
            "write own",
            written(lambda y, t=tail: y.__setitem__((..., slice(None, -1), *t), 3 * y[(..., slice(1, None), *t)])),
            s,
        )
        yield Case("mask write", written(lambda y: y.__setitem__(y > 0, -1.0)), s)
        yield Case("in place", written(lambda y: y.mul_(2).add_(1).clamp_(-1, 3)), s)
    yield Case("write first", written(lambda y: y.__setitem__((..., 0, slice(None)), y[..., -1, :] ** 2)), "rows")
    yield Case("write column", written(lambda y: y.__setitem__((..., 1), y[..., 0] * y[..., 2])), "gaps")
    yield Case("write by tensor", written(lambda y: y.__setitem__((..., ct.tensor([0, 2])), 3 * y[..., 1:3])), "gaps")
    yield Case(
        "write dense", lambda x, w: written(lambda y: y.__setitem__((..., 0, slice(None)), w))(x), "rows", dense=((4,),)
    )
    yield Case("view write", written(lambda y: y.transpose(-1, -2).mul_(2)), "gaps")
    yield Case("select write", written(lambda y: y.select(-1, 1).mul_(y.select(-1, 0))), "gaps")
    yield Case("gather", lambda x: x.gather(-2, x.detach().argsort(-2)), "rows")
    yield Case("take_along_dim", lambda x: ct.take_along_dim(x, x.detach().argsort(-1), -1), "gaps")
    yield Case("topk", lambda x: x.topk(2, -1).values, "gaps")
    yield Case("argsort", lambda x: x.argsort(-1), "gaps", differentiable=False)
    yield Case("cummax", lambda x: x.cummax(-2).values, "rows")
    yield Case("median", lambda x: x.median(-2).values, "rows")
    yield Case("where rows", lambda x: ct.where(x.sum(-1, keepdim=True) > 0, x, -x), "gaps")
    yield Case("index_select", lambda x: x.index_select(-1, ct.tensor([2, 0])), "gaps")
    yield Case("masked_fill row", lambda x: x.masked_fill(x.amax(-1, keepdim=True) > 1, 0.5), "rows")


def written(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that writes to a copy of its argument."""

    def f(x: Any) -> Any:
        y = x * 1
        change(y)
        return y

    return f


def products() -> Iterator[Case]:
    for s in ("rows", "gaps", "ones"):
        yield Case("bmm", lambda x, y: ct.bmm(x, y.mT), s, nests=2, component=lambda x, y: x @ y.mT)
        yield Case(
            "einsum gram",
            lambda x: ct.einsum("bij,bik->bjk", x, x),
            s,
            component=lambda c: ct.einsum("ij,ik->jk", c, c),
        )
        yield Case("einsum three", lambda x, w: ct.einsum("bij,jk,bik->b", x, w, x), s, dense=((4, 4),),
                   component=lambda c, w: ct.einsum("ij,jk,ik->", c, w, c))  # fmt: skip
        yield Case("einsum heads", lambda x, w: ct.einsum("bnd,dhe->bhne", x, w), s, dense=((4, 2, 3),),
                   component=lambda c, w: ct.einsum("nd,dhe->hne", c, w))  # fmt: skip
        yield Case("own matrices", lambda x, y: x @ (y.mT @ y), s, nests=2)
    yield Case("einsum images", lambda x, w: ct.einsum("bhwc,cd->bhwd", x, w), "images", dense=((2, 3),),
               component=lambda c, w: ct.einsum("hwc,cd->hwd", c, w))  # fmt: skip
    yield Case("two ragged", lambda x: x @ x.mT @ x, "planes")
    yield Case("quadratic", lambda x: (x.unsqueeze(-2) @ x.unsqueeze(-1)).squeeze(-1).squeeze(-1), "gaps")
    yield Case("outer", lambda x: x.unsqueeze(-1) * x.unsqueeze(-2), "vectors")
    sdpa = F.scaled_dot_product_attention
    yield Case("sdpa own mask", lambda q, k, v: sdpa(q, k, v, attn_mask=(q @ k.mT).detach() > 0), "gaps", nests=3)
    yield Case("sdpa alibi", lambda q, k: sdpa(q, k, k, attn_mask=(q @ k.mT).tril() * 0.1), "heads gap", nests=2)
    yield Case("cross attention", lambda q, k: sdpa(q, k[..., ::2, :], k[..., ::2, :]), "rows", nests=2)


def programs() -> Iterator[Case]:
    def block(x: Any, w: Any, v: Any, a: Any) -> Any:
        h = F.layer_norm(x, (4,), a)
        q = (h @ w).unflatten(-1, (2, 2)).transpose(-3, -2)
        y = F.scaled_dot_product_attention(q, q, q, is_causal=True).transpose(-3, -2).flatten(-2)
        x = x + y @ v
        return x + F.gelu(F.rms_norm(x, (4,)) @ w) @ v

    for s in ("rows", "gaps"):
        yield Case("transformer", block, s, dense=((4, 4), (4, 4), (4,)))

    def pooled(x: Any, w: Any) -> Any:
        a = (x @ w).softmax(-2)
        return F.normalize((a * x).sum(-2), dim=-1)

    yield Case("attention pooling", pooled, "rows", dense=((4, 1),))

    def scan(x: Any, w: Any) -> Any:
        gate = (x @ w).sigmoid()
        return ((1 - gate) * x).cumsum(-2) / (1 + gate.cumsum(-2))

    yield Case("linear recurrence", scan, "gaps", dense=((4, 4),))
    yield Case("point cloud", lambda x, w: F.relu((x - x.mean(-2, keepdim=True)) @ w).amax(-2), "rows", dense=((4, 5),))
    yield Case("distances", lambda x: ((x.unsqueeze(-2) - x.unsqueeze(-3)) ** 2).sum(-1).add(1e-3).sqrt(), "rows")
    yield Case("kernel", lambda x: (-((x.unsqueeze(-2) - x.unsqueeze(-3)) ** 2).sum(-1)).exp().mean((-1, -2)), "rows")


MORE = [*activations(), *losses(), *pieces(), *chosen(), *products(), *programs()]
