"""The ops of nested tensors, each with kinds of shapes to try."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import chainrule as ct

from .harness import Case

F = ct.nn.functional
MEAN, VAR = ct.tensor([0.1, -0.2, 0.3, 0.0], dtype=ct.float64), ct.tensor([1.0, 0.5, 2.0, 1.5], dtype=ct.float64)


def unary(names: str, f: Callable[[Any], Any] | None = None, **kw: Any) -> Iterator[Case]:
    for name in names.split():
        for shapes in ("rows", "gaps", "images"):
            yield Case(name, f or (lambda x, name=name: getattr(x, name)()), shapes, **kw)


def along(name: str, f: Callable[..., Any], *, gaps: bool = True, **kw: Any) -> Iterator[Case]:
    """``f(x, dim)`` over every dim of several kinds of nests."""
    for shapes, dims in (
        ("rows", 2),
        ("vectors", 1),
        ("inner", 2),
        ("images", 3),
        ("ones", 2),
        ("equal", 2),
        ("gaps", 2),
    ):
        if shapes == "gaps" and not gaps:
            continue
        for d in range(-dims, 0):
            yield Case(f"{name}({d})", lambda x, d=d: f(x, d), shapes, **kw)


def pointwise() -> Iterator[Case]:
    yield from unary("exp sin tanh sigmoid square neg abs relu")
    yield from unary("sqrt log rsqrt", make=lambda a: np.abs(a) + 0.1)
    yield from unary("gelu", F.gelu)
    yield from unary("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"))
    yield from unary("silu", F.silu)
    yield from unary("leaky_relu", F.leaky_relu)
    yield from unary("softplus", F.softplus)
    yield from unary("numbers", lambda x: (2 * x + 1) / 3 - 0.5)
    yield from unary("pow", lambda x: x**2 + x**3)
    yield from unary("clamp", lambda x: x.clamp(-0.5, 0.7))
    yield from unary("where", lambda x: ct.where(x > 0, x, 0.1 * x * x))
    yield from unary("masked_fill", lambda x: x.masked_fill(x > 0.3, 2.0))
    yield from unary("compare", lambda x: (x == x, x > 0, x <= 0.2, x != 0), differentiable=False)
    for shapes in ("rows", "gaps", "images", "vectors"):
        for name, f in {
            "add": lambda x, y: x + y,
            "mul": lambda x, y: x * y,
            "div": lambda x, y: x / (y * y + 1),
            "atan2": ct.atan2,
            "maximum": ct.maximum,
        }.items():
            yield Case(name, f, shapes, nests=2)
    yield Case("mul dense", lambda x, w: x * w, "rows", dense=((4,),))
    yield Case("mul dense", lambda x, w: x * w, "gaps", dense=((4,),))
    yield Case("mul dense", lambda x, w: x * w, "images", dense=((2,),))
    yield Case("mul scalar", lambda x, w: x * w + w, "images", dense=((),))
    yield Case("mul column", lambda x, w: x * w, "inner", dense=((4, 1),))
    yield Case("centred", lambda x: x - x.mean(-2, keepdim=True), "rows")
    yield Case("centred", lambda x: x / (1 + x.amax(-1, keepdim=True) ** 2), "images")
    yield Case("outer", lambda x: x.unsqueeze(-1) * x.unsqueeze(-2), "rows")
    yield Case("pairs", lambda x: x.unsqueeze(-1) - x.unsqueeze(-2), "vectors")


def reductions() -> Iterator[Case]:
    for keep in (False, True):
        k = " keepdim" if keep else ""
        yield from along(f"sum{k}", lambda x, d, keep=keep: x.sum(d, keepdim=keep))
        yield from along(f"mean{k}", lambda x, d, keep=keep: x.mean(d, keepdim=keep), gaps=False)
        yield from along(f"logsumexp{k}", lambda x, d, keep=keep: x.logsumexp(d, keepdim=keep), gaps=False)
        yield from along(f"amax{k}", lambda x, d, keep=keep: x.amax(d, keepdim=keep), gaps=False)
        yield from along(f"prod{k}", lambda x, d, keep=keep: x.prod(d, keepdim=keep))
        yield from along(f"norm{k}", lambda x, d, keep=keep: x.norm(dim=d, keepdim=keep))
    yield from along("amin", lambda x, d: x.amin(d), gaps=False)
    yield from along("var0", lambda x, d: x.var(d, correction=0), gaps=False)
    for d in (-1, -2):
        yield Case(f"var({d})", lambda x, d=d: x.var(d), "long")
        yield Case(f"std({d})", lambda x, d=d: x.std(d), "long")
    yield Case("var(both)", lambda x: x.var((-2, -1)), "long")
    yield from along("norm1", lambda x, d: x.norm(1, dim=d))
    yield from along("norm3", lambda x, d: x.norm(3, dim=d))
    yield from along("max", lambda x, d: x.max(d), gaps=False)
    yield from along("min", lambda x, d: x.min(d), gaps=False)
    yield from along("argmax", lambda x, d: x.argmax(d), gaps=False, differentiable=False)
    yield from along("any", lambda x, d: ((x > 0).any(d), (x > 0).all(d)), differentiable=False)
    yield Case("sum(two)", lambda x: x.sum((-2, -1)), "images")
    yield Case("sum(two)", lambda x: x.sum((-3, -2)), "images")
    yield Case("sum(apart)", lambda x: x.sum((-3, -1)), "images")
    yield Case("sum(all)", lambda x: x.sum((-3, -2, -1)), "images")
    yield Case("logsumexp(two)", lambda x: x.logsumexp((-3, -2)), "images")


def normalised() -> Iterator[Case]:
    yield from along("softmax", lambda x, d: x.softmax(d))
    yield from along("log_softmax", lambda x, d: x.log_softmax(d))
    yield from along("normalize", lambda x, d: F.normalize(x, dim=d))
    yield Case("layer_norm", lambda x, w, b: F.layer_norm(x, (4,), w, b), "rows", dense=((4,), (4,)))
    yield Case("layer_norm", lambda x, w, b: F.layer_norm(x, (4,), w, b), "gaps", dense=((4,), (4,)))
    yield Case("layer_norm", lambda x: F.layer_norm(x, (2,)), "images")
    yield Case("rms_norm", lambda x, w: F.rms_norm(x, (4,), w), "rows", dense=((4,),))
    yield Case("rms_norm", lambda x, w: F.rms_norm(x, (4,), w), "gaps", dense=((4,),))

    one = lambda f: lambda c, *p: f(c.unsqueeze(0), *p).squeeze(0)
    for s, n in (("channels", 1), ("pictures", 2)):
        gn = lambda x, w, b: F.group_norm(x, 2, w, b)
        yield Case("group_norm", gn, s, dense=((4,), (4,)), component=one(gn))
        yield Case("instance_norm", F.instance_norm, s, component=one(F.instance_norm))
        yield Case(
            "batch_norm eval",
            lambda x: F.batch_norm(x, MEAN, VAR),
            s,
            component=one(lambda x: F.batch_norm(x, MEAN, VAR)),
        )
        yield Case(
            "layer_norm ragged", lambda x: F.layer_norm(x, x.shape[1:]), s, component=lambda c: F.layer_norm(c, c.shape)
        )
        yield Case("layer_norm last", lambda x, n=n: F.layer_norm(x, x.shape[-n:]), s)
        yield Case(
            "rms_norm ragged", lambda x: F.rms_norm(x, x.shape[1:]), s, component=lambda c: F.rms_norm(c, c.shape)
        )


def scans() -> Iterator[Case]:
    yield from along("cumsum", lambda x, d: x.cumsum(d))
    yield from along("cumprod", lambda x, d: x.cumprod(d))
    yield from along("logcumsumexp", lambda x, d: x.logcumsumexp(d))
    yield from along("sort", lambda x, d: x.sort(d))
    yield from along("sort descending", lambda x, d: x.sort(d, descending=True))
    yield from along("flip", lambda x, d: x.flip(d))
    yield from along("roll", lambda x, d: x.roll(1, d))
    yield from along("diff", lambda x, d: x.diff(dim=d), gaps=False)


def shapes() -> Iterator[Case]:
    yield from along("first", lambda x, d: x.select(d, 0), gaps=False)
    yield from along("last", lambda x, d: x.select(d, -1), gaps=False)
    yield from along("narrow", lambda x, d: x.narrow(d, 0, 1), gaps=False)
    yield from along("cat", lambda x, d: ct.cat([x, 2 * x, x.sin()], d))
    yield from along("stack", lambda x, d: ct.stack([x, 2 * x], d))
    yield from along("unsqueeze", lambda x, d: x.unsqueeze(d).squeeze(d) * x)
    yield from along("pad", lambda x, d: F.pad(x, (0, 0) * (-d - 1) + (1, 2)))
    for name, f in {
        "head": lambda x: x[:2],
        "tail": lambda x: x[1:],
        "end": lambda x: x[-2:],
        "steps": lambda x: x[::2],
    }.items():
        for s in ("rows", "gaps", "images", "vectors"):
            yield Case(
                f"slice {name}",
                {
                    "head": lambda x: x[:, :2],
                    "tail": lambda x: x[:, 1:],
                    "end": lambda x: x[:, -2:],
                    "steps": lambda x: x[:, ::2],
                }[name],
                s,
                component=f,
            )
    for s in ("rows", "gaps", "inner", "square", "images"):
        yield Case("mT", lambda x: x.mT * 2, s)
        yield Case("unflatten", lambda x: x.unsqueeze(-1).transpose(-1, -2), s)
    yield Case("permute", lambda x: x.permute(0, 2, 3, 1), "images", component=lambda x: x.permute(1, 2, 0))
    yield Case("permute", lambda x: x.permute(0, 3, 1, 2), "images", component=lambda x: x.permute(2, 0, 1))
    yield Case("unflatten(-1)", lambda x: x.unflatten(-1, (2, 2)), "gaps")
    yield Case("flatten", lambda x: x.flatten(-2), "images")
    yield Case("flatten", lambda x: x.flatten(-2), "rows")
    yield Case("split", lambda x: x.split(2, -1), "gaps")
    yield Case("chunk", lambda x: x.chunk(2, -1), "gaps")
    yield Case("split sizes", lambda x: x.split([1, 3], -1), "rows")
    yield Case("repeat", lambda x: x.repeat(1, 1, 2), "gaps", component=lambda x: x.repeat(1, 2))
    yield Case("expand", lambda x: x.unsqueeze(-1).expand(*x.shape, 3), "gaps")
    yield Case("diagonal", lambda x: x.diagonal(dim1=-2, dim2=-1), "square")
    yield Case("tril", lambda x: (x.tril(), x.triu(1)), "square")
    yield Case("index last", lambda x: x[..., ct.tensor([0, 2, 0])], "gaps")
    yield Case(
        "index ragged", lambda x: x[..., ct.tensor([0, -1]), :], "rows", component=lambda x: x[ct.tensor([0, -1])]
    )


def products() -> Iterator[Case]:
    for s in ("rows", "gaps", "ones"):
        yield Case("matmul dense", lambda x, w: x @ w, s, dense=((4, 3),))
        yield Case("linear", F.linear, s, dense=((3, 4), (3,)))
        yield Case("x @ xT", lambda x: x @ x.mT, s)
        yield Case("xT @ y", lambda x, y: x.mT @ y, s, nests=2)
        yield Case("matvec", lambda x, w: x @ w, s, dense=((4,),))
    yield Case("matmul left", lambda x, w: w @ x, "inner", dense=((3, 4),))
    yield Case("matmul square", lambda x, y: x @ y, "square", nests=2)
    yield Case("matmul images", lambda x, w: x @ w, "images", dense=((2, 3),))
    yield Case(
        "einsum",
        lambda x, w: ct.einsum("bij,jk->bik", x, w),
        "gaps",
        dense=((4, 3),),
        component=lambda x, w: ct.einsum("ij,jk->ik", x, w),
    )
    yield Case(
        "einsum pair",
        lambda x, y: ct.einsum("bij,bkj->bik", x, y),
        "rows",
        nests=2,
        component=lambda x, y: ct.einsum("ij,kj->ik", x, y),
    )
    yield Case("mse_loss none", lambda x, y: F.mse_loss(x, y, reduction="none"), "gaps", nests=2)
    yield Case("cosine", lambda x, y: F.cosine_similarity(x, y, dim=-1), "rows", nests=2)
    yield Case(
        "block", lambda x, w, b: F.gelu(F.linear(F.layer_norm(x, (4,)), w, b)).softmax(-1), "gaps", dense=((3, 4), (3,))
    )
    yield Case("attention", lambda x: (x @ x.mT / 2).softmax(-1) @ x, "gaps")


def attention() -> Iterator[Case]:
    sdpa = F.scaled_dot_product_attention
    for s in ("rows", "gaps", "heads", "heads gap"):
        yield Case("sdpa", lambda q, k, v: sdpa(q, k, v), s, nests=3)
        yield Case("sdpa causal", lambda q, k, v: sdpa(q, k, v, is_causal=True), s, nests=3)
        yield Case("sdpa scale", lambda q, v: sdpa(q, q, v, scale=0.3), s, nests=2)
    yield Case("sdpa mask", lambda q, k, v: sdpa(q, k, v, attn_mask=(q @ k.mT) > -1), "heads", nests=3)
    yield Case("sdpa bias", lambda q, k, v: sdpa(q, k, v, attn_mask=k @ q.mT), "gaps", nests=3)
    yield Case("sdpa cross", lambda q, k: sdpa(q, k[..., 1:, :], k[..., 1:, :]), "heads", nests=2)
    yield Case("sdpa gqa", lambda q, k: sdpa(q, k[..., :1, :, :], k[..., :1, :, :], enable_gqa=True), "heads", nests=2)


CASES = [*attention(), *pointwise(), *reductions(), *normalised(), *scans(), *shapes(), *products()]
