"""Ensembles over a shared nest: operations along the axis of the members, and operands that each member has of its own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nested, vmap
from chainrule.func import grad, hessian, jacrev, jvp

F = cr.nn.functional
RNG = np.random.default_rng(6)
D = 4


def randn(*s: int) -> Any:
    return cr.tensor(RNG.normal(size=s))


def nest(*sizes: int, d: tuple[int, ...] = (D,)) -> Any:
    return nested.nested_tensor([randn(n, *d) for n in sizes])


def documents(d: tuple[int, ...] = (D,)) -> Any:
    return nested.nested_tensor([nest(3, 1, d=d), nest(2, d=d), nest(1, 4, 2, d=d)])


def leaves(x: Any) -> list[Any]:
    """The components of a nest, the inner ones of a nest of nests."""
    return [c for part in x.unbind() for c in (leaves(part) if part.is_nested else [part])]


def number(y: Any) -> Any:
    return (y * y).sum() / 2 + y.sin().sum()


def same(got: Any, want: Any, what: str = "") -> None:
    assert got.shape == want.shape, what
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-8, atol=1e-9, err_msg=what)


# -- along the axis of the members --------------------------------------------------------------------------------------

ALONG: dict[str, Callable[[Any], Any]] = {
    "sum": lambda y: y.sum(0), "mean": lambda y: y.mean(0), "var": lambda y: y.var(0, correction=0), "prod": lambda y: y.prod(0),
    "amax": lambda y: y.amax(0), "max": lambda y: y.max(0).values, "argmax": lambda y: y.argmax(0), "logsumexp": lambda y: y.logsumexp(0),
    "norm": lambda y: y.norm(dim=0), "median": lambda y: y.median(0).values, "quantile": lambda y: y.quantile(0.3, 0),
    "all": lambda y: (y > 0).all(0), "last": lambda y: y[-1], "apart": lambda y: y.movedim(0, -1),
    "softmax": lambda y: y.softmax(0), "cumsum": lambda y: y.cumsum(0), "logcumsumexp": lambda y: y.logcumsumexp(0),
    "sort": lambda y: y.sort(0).values, "topk": lambda y: y.topk(1, 0).values, "cummax": lambda y: y.cummax(0).values,
    "flip": lambda y: y.flip(0), "roll": lambda y: y.roll(1, 0), "slice": lambda y: y[:1], "index": lambda y: y[cr.tensor([0, -1, 0])],
    "index_select": lambda y: y.index_select(0, cr.tensor([0, 0])), "cat": lambda y: cr.cat([y, 2 * y], 0),
    "stack": lambda y: cr.stack(list(y.unbind(0))[::-1], 0), "centred": lambda y: y - y.mean(0, keepdim=True),
    "gather": lambda y: y.gather(0, y.detach().argsort(0)),
}  # fmt: skip
DROP = frozenset("sum mean var prod amax max argmax logsumexp norm median quantile all last apart".split())


@pytest.mark.parametrize("members", [1, 2, 3])
@pytest.mark.parametrize("kind", ["nest", "documents"])
@pytest.mark.parametrize("name", ALONG)
def test_along_the_members(name: str, kind: str, members: int) -> None:
    """The axis of the members stands in front of the nesting dims; what works along it is the same on packed rows."""
    f, x = ALONG[name], nest(3, 1, 5) if kind == "nest" else documents()
    ws = cr.tensor(np.random.default_rng(members).normal(size=members))
    together = lambda x: f(vmap(lambda w: (x * w).sin())(ws))
    y, rows = together(x), together(x.values())
    assert y.is_nested
    if name in DROP:
        same(y.values(), rows)
    else:
        for i in range(rows.shape[0]):
            same(y.select(0, i).values(), rows[i])
    if not rows.dtype.is_floating_point:
        return
    slope = grad(lambda x: number(together(x)))
    assert slope(x).shape == x.shape
    same(slope(x).values(), slope(x.values()))
    t = x.cos()
    same(jvp(slope, (x,), (t,))[1].values(), jvp(slope, (x.values(),), (t.values(),))[1])


def test_repeats_of_the_members() -> None:
    x, ws = nest(3, 1), cr.tensor([1.0, 2.0], dtype=cr.float64)
    y = vmap(lambda w: x * w)(ws).repeat(2, 1, 1, 1)
    assert int(y.shape[0]) == 4
    same(y.select(0, 3).values(), 2 * x.values())


# -- operands of each member's own, nests of nests shared -------------------------------------------------------------------


def _written(c: Any, key: Any, v: Any) -> Any:
    y = c * 1
    y[key] = v
    return y


W, B, S = randn(D, D), randn(D), randn()
OWN: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "product": (lambda c, w: c @ w, (W,)),
    "product from the left": (lambda c, w: w @ c.mT, (W,)),
    "linear": (F.linear, (W, B)),
    "vector": (lambda c, b: c @ b, (B,)),
    "scale": (lambda c, s: (c * s).sin(), (S,)),
    "norm": (lambda c, w, b: F.layer_norm(c, (D,), w, b), (B, B)),
    "attention": (lambda c, w: F.scaled_dot_product_attention(c @ w, c, 2 * c), (W,)),
    "einsum": (lambda c, w: cr.einsum("jd,de,ke->jk", c, w, c), (W,)),
    "distances": (lambda c, w: cr.cdist(c, w[:2]), (W,)),
    "solve": (lambda c, w: cr.linalg.solve(c.mT @ c + 3 * cr.eye(D, dtype=c.dtype) + w @ w.mT, c.mT), (W,)),
    "addmm": (lambda c, w, b: cr.addmm(b, c, w), (W, B)),
    "convolution": (lambda c, w: F.conv1d(c.mT, w, padding=1), (randn(2, D, 3),)),
    "first row": (lambda c, b: _written(c, 0, b), (B,)),
    "column": (lambda c, s: _written(c, (slice(None), 0), s), (S,)),
    "columns": (lambda c, b: _written(c, (slice(None), [0, 2]), b[:2]), (B,)),
    "rows joined": (lambda c, b: cr.cat([c, b.unsqueeze(0)], 0), (B,)),
    "columns joined": (lambda c, b: cr.cat([c, b.expand(c.shape[0], D)], 1), (B,)),
    "added at places": (
        lambda c, b: c.index_put((cr.tensor([0, 0]), cr.tensor([1, 3])), b[:2], accumulate=True),
        (B,),
    ),
    "where": (lambda c, b: cr.where(c > 0, c, b), (B,)),
    "index_copy": (lambda c, b: c.index_copy(-1, cr.tensor([1, 2]), b[:2].expand(c.shape[0], 2)), (B,)),
    "chosen columns": (lambda c, i: c[:, i].sin(), (cr.tensor([0, 2, 3]),)),
    "index_select": (lambda c, i: c.index_select(-1, i).sin(), (cr.tensor([0, 2, 3]),)),
    "diagonal": (lambda c, w: (c @ w @ c.mT).diagonal(), (W,)),
}


@pytest.mark.parametrize("name", OWN)
def test_operands_of_members_beside_documents(name: str) -> None:
    f, ws = OWN[name]
    x, t = documents(), documents()
    cs, ts = leaves(x), leaves(t)
    own = [cr.stack([w, 0.5 * w + 0.1, -w]) if w.dtype.is_floating_point else cr.stack([w, w.flip(0), w]) for w in ws]
    dims = (None, *(0,) * len(ws))
    of_all = lambda x, *w: vmap(vmap(f, dims_of(w)), dims_of(w))(x, *w)
    members = vmap(of_all, dims)(x, *own)
    args = tuple(i for i, w in enumerate((x, *ws)) if w.dtype.is_floating_point)
    whole, loop = (lambda x, *w: number(of_all(x, *w))), (lambda cs, *w: sum(number(f(c, *w)) for c in cs))
    slopes = vmap(grad(whole, args), dims)(x, *own)
    push = lambda g, x, t, *w: jvp(lambda x: grad(g)(x, *w), (x,), (t,))[1]
    twice = vmap(lambda *w: push(whole, x, t, *w))(*own)
    total: list[Any] = [0.0] * len(cs)
    for e in range(3):
        mine = [w[e] for w in own]
        for c, y in zip(cs, leaves(members.select(0, e)), strict=True):
            same(y, f(c, *mine), "value")
        want = grad(loop, args)(cs, *mine)
        for i, g, w in zip(args, slopes, want, strict=True):
            for a, b in zip(leaves(g.select(0, e)) if not i else [g[e]], w if not i else [w], strict=True):
                same(a, b, f"gradient of argument {i}")
        for a, b in zip(leaves(twice.select(0, e)), push(loop, cs, ts, *mine), strict=True):
            same(a, b, "jvp(grad)")
        total = [a + b for a, b in zip(total, want[0], strict=True)]
    outside = grad(lambda x: vmap(lambda *w: whole(x, *w))(*own).sum())(x)
    for a, b in zip(leaves(outside), total, strict=True):
        same(a, b, "grad(vmap)")


def dims_of(w: tuple[Any, ...]) -> tuple[Any, ...]:
    return (0, *(None,) * len(w))


def test_sizes_of_documents_beside_members() -> None:
    x = documents()
    y = vmap(lambda w: x * w)(cr.tensor([1.0, 2.0], dtype=cr.float64))
    for a, c in zip(leaves((y / y.shape[3]).select(0, 1)), leaves(x), strict=True):
        same(a, 2 * c / c.shape[0])
    with pytest.raises(cr.core.errors.ChainruleError, match="between those of the outer and of the inner"):
        x.reshape(3, 1, *x.shape[1:])


@pytest.mark.parametrize("components", [3, 16])
@pytest.mark.parametrize("f", [F.instance_norm, lambda x: F.group_norm(x, 2)], ids=["instance_norm", "group_norm"])
def test_statistics_of_components_under_many_cotangents(f: Any, components: int) -> None:
    """Sixteen cotangents of statistics of three components, and of sixteen, for which their sizes could be mistaken."""
    x = nest(*(2 + i % 3 for i in range(components)))
    on_nest = lambda w: number(f((x @ w).mT))
    on_each = lambda w: sum(number(f((c @ w).mT.unsqueeze(0))) for c in x.unbind())
    for slopes in (lambda g: jacrev(grad(g))(W), lambda g: hessian(g)(W)):
        same(slopes(on_nest), slopes(on_each))


# -- maps over the rows of components ---------------------------------------------------------------------------------------

OF_ROWS: dict[str, tuple[Callable[..., Any], Any]] = {
    "vector": (lambda r, w: (w @ r).tanh(), W),
    "distances": (lambda r, w: cr.cdist(r.unsqueeze(0), w)[0], W),
    "convolution": (lambda r, b: F.conv1d(r.reshape(1, 1, -1), b[:3].reshape(1, 1, 3)).flatten(), B),
    "solve": (lambda r, w: cr.linalg.solve(w @ w.mT + cr.outer(r, r), r), W),
    "written": (lambda r, b: _written(r, 0, b[1]), B),
}


@pytest.mark.parametrize("sizes", [(3, 1, 5), (2, 2), (3, 0, 2)], ids=str)
@pytest.mark.parametrize("name", OF_ROWS)
def test_maps_over_rows(name: str, sizes: tuple[int, ...]) -> None:
    """Functions of one row: Hessians of numbers of it, and weights of each member beside."""
    f, w = OF_ROWS[name]
    x = nest(*sizes)
    rows = lambda f: vmap(vmap(f, (0, None)), (0, None))
    curvature = lambda r, w: hessian(lambda r: number(f(r, w)))(r)
    got = rows(curvature)(x, w)
    ws = cr.stack([w, -w, 0.5 * w])
    whole = lambda x, w: number(rows(f)(x, w))
    loop = lambda cs, w: sum((number(f(r, w)) for c in cs for r in c.unbind()), cr.zeros((), dtype=cr.float64))
    slopes, values = vmap(grad(whole, (0, 1)), (None, 0))(x, ws), vmap(rows(f), (None, 0))(x, ws)
    for i, c in enumerate(x.unbind()):
        for j, r in enumerate(c.unbind()):
            same(got[i][j], curvature(r, w), "Hessian")
            for e in range(3):
                same(values.select(0, e)[i][j], f(r, ws[e]), "value")
    for e in range(3):
        gx, gw = grad(loop, (0, 1))(list(x.unbind()), ws[e])
        for a, b in zip(slopes[0].select(0, e).unbind(), gx, strict=True):
            same(a, b, "gradient")
        same(slopes[1][e], gw, "gradient of the weight")


# -- over the members and dims of the components together, and writes along their axis ---------------------------------------

TOGETHER: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sum": (lambda y: y.sum((0, 2)), lambda z: z.sum((0, 1))),
    "mean": (lambda y: y.mean((0, 2)), lambda z: z.mean((0, 1))),
    "mean of all": (lambda y: y.mean((0, 2, 3)), lambda z: z.mean()),
    "mean, kept": (lambda y: (y - y.mean((0, 2), keepdim=True))[0], lambda z: (z - z.mean((0, 1), keepdim=True))[0]),
    "var": (lambda y: y.var((0, 2), correction=0), lambda z: z.var((0, 1), correction=0)),
    "var, kept": (lambda y: (y / y.var((0, 2), keepdim=True))[0], lambda z: (z / z.var((0, 1), keepdim=True))[0]),
    "var of features": (lambda y: y.var((0, -1)), lambda z: z.var((0, -1))),
    "amax": (lambda y: y.amax((0, 2)), lambda z: z.amax((0, 1))),
    "logsumexp": (lambda y: y.logsumexp((0, 2)), lambda z: z.logsumexp((0, 1))),
    "norm": (lambda y: y.norm(dim=(0, 2)), lambda z: z.norm(dim=(0, 1))),
    "index_fill": (lambda y: y.index_fill(0, cr.tensor([1]), 0.5)[1], lambda z: z.index_fill(0, cr.tensor([1]), 0.5)[1]),
    "index_copy": (lambda y: y.index_copy(0, cr.tensor([2, 1]), y[:2])[2], lambda z: z[0]),
    "select_scatter": (lambda y: y.select_scatter(3 * y[0], 0, 2)[2], lambda z: 3 * z[0]),
    "slice_scatter": (lambda y: y.slice_scatter(3 * y[:1], 0, 1, 2).sum(0), lambda z: 4 * z[0] + z[2]),
}  # fmt: skip


@pytest.mark.parametrize("sizes", [(3, 2, 5), (2, 2), (3,), (3, 2, 5, 4)], ids=str)
@pytest.mark.parametrize("name", TOGETHER)
def test_members_together_with_rows(name: str, sizes: tuple[int, ...]) -> None:
    """As many components as features too, where one axis could be taken for the other."""
    f, g = TOGETHER[name]
    x, scales = nest(*sizes), cr.tensor([1.0, -0.5, 2.0], dtype=cr.float64)
    spread = lambda c: vmap(lambda s: (c * s).sin())(scales)
    on_nest, on_each = (lambda x: f(spread(x))), (lambda c: g(spread(c)))
    for a, c in zip(on_nest(x).unbind(), x.unbind(), strict=True):
        same(a, on_each(c), "value")
    slope, slopes = grad(lambda x: number(on_nest(x))), grad(lambda c: number(on_each(c)))
    for a, c in zip(slope(x).unbind(), x.unbind(), strict=True):
        same(a, slopes(c), "gradient")


OF_DOCUMENTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sum": (lambda y: y.sum((0, 3)), lambda z: z.sum((0, 1))),
    "mean": (lambda y: y.mean((0, 3)), lambda z: z.mean((0, 1))),
    "var": (lambda y: y.var((0, 3), correction=0), lambda z: z.var((0, 1), correction=0)),
    "logsumexp": (lambda y: y.logsumexp((0, 3)), lambda z: z.logsumexp((0, 1))),
    "mean, kept": (lambda y: (y - y.mean((0, 3), keepdim=True))[1], lambda z: (z - z.mean((0, 1), keepdim=True))[1]),
    "select_scatter": (lambda y: y.select_scatter(3 * y[0], 0, 2)[2], lambda z: 3 * z[0]),
}
OF_WHOLE: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "mean": (lambda y: y.mean((0, 2, 3)), lambda z: z.mean(0)),
    "var": (lambda y: y.var((0, 2, 3)), lambda z: z.var(0)),
    "amax": (lambda y: y.amax((0, 2, 3)), lambda z: z.amax(0)),
}


@pytest.mark.parametrize(
    "sizes", [[(3, 1), (2,), (1, 4, 2)], [(2, 2), (2, 2)], [(3, 1), (2,), (1, 4), (2, 2)]], ids=str
)
@pytest.mark.parametrize("name", [*OF_DOCUMENTS, *[f"whole {n}" for n in OF_WHOLE]])
def test_members_together_with_words(name: str, sizes: Any) -> None:
    """Over the members and the words of a sentence, or of a document."""
    x, scales = nested.nested_tensor([nest(*s) for s in sizes]), cr.tensor([1.0, -0.5, 2.0], dtype=cr.float64)
    spread = lambda c: vmap(lambda s: (c * s).sin())(scales)
    if name in OF_DOCUMENTS:
        f, g = OF_DOCUMENTS[name]
        loop = lambda cs: [g(spread(c)) for c in cs]
        got = [s for document in f(spread(x)).unbind() for s in document.unbind()]
    else:
        f, g = OF_WHOLE[name[6:]]
        ends = np.cumsum([0, *map(len, sizes)])
        loop = lambda cs: [g(cr.cat([spread(c).reshape(-1, D) for c in cs[a:b]])) for a, b in pairwise(ends)]
        got = list(f(spread(x)).unbind())
    for a, b in zip(got, loop(leaves(x)), strict=True):
        same(a, b, "value")
    slope = grad(lambda x: number(f(spread(x))))(x)
    assert slope.shape == x.shape
    for a, b in zip(leaves(slope), grad(lambda cs: sum(map(number, loop(cs))))(leaves(x)), strict=True):
        same(a, b, "gradient")
