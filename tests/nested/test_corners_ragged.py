"""Corners of nested tensors that random programs found, each in its shortest form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as ct

F, nested, func = ct.nn.functional, ct.nested, ct.func


def nest(*shapes: tuple[int, ...], seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return nested.nested_tensor([rng.normal(size=s) for s in shapes])


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got.numpy(force=True), want.numpy(force=True), rtol=1e-9, atol=1e-12)


def alike(got: Any, want: Any) -> None:
    for a, b in zip(got.unbind(), want, strict=True):
        assert a.shape == b.shape
        close(a, b)


def test_quantile_over_a_ragged_dim() -> None:
    x = nested.nested_tensor([[1.0, 2.0, 3.0], [4.0, 7.0]], dtype=ct.float64)
    assert x.quantile(0.5, 1).tolist() == [2.0, 5.5]
    q = ct.tensor([0.0, 1.0], dtype=ct.float64)
    assert x.quantile(q, 1).tolist() == [[1.0, 4.0], [3.0, 7.0]]


@pytest.mark.parametrize("members", [1, 2, 3])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.var(1),
        lambda x: F.instance_norm(x.mT),
        lambda x: F.group_norm(x.mT, 2),
        lambda x: F.layer_norm(x, (4,)),
        lambda x: x[:, [0]],
        lambda x: x / x.shape[1],
        lambda x: x.unbind()[1],
        lambda x: nested.as_nested_tensor([2 * c for c in x]),
    ],
)
def test_ensemble_over_a_shared_nest(f: Any, members: int) -> None:
    """A vmap that does not map the nest: values, gradients inside and outside, with as many members as components and not."""
    x, s = nest((3, 4), (2, 4)), ct.tensor(np.arange(members) + 1.5)

    def number(x: Any, s: Any) -> Any:
        y = f(x * s)
        return (y * y.sin()).sum()

    close(ct.vmap(number, in_dims=(None, 0))(x, s), ct.stack([number(x, v) for v in s]))
    inside = ct.vmap(func.grad(number, (0, 1)), in_dims=(None, 0))(x, s)
    for i, v in enumerate(s):
        gx, gs = func.grad(number, (0, 1))(x, v)
        assert inside[0][i].is_nested
        alike(inside[0][i], gx.unbind())
        close(inside[1][i], gs)
    gx, gs = func.grad(lambda x, s: ct.vmap(number, in_dims=(None, 0))(x, s).sum(), (0, 1))(x, s)
    wx, ws = func.grad(lambda x, s: sum(number(x, v) for v in s), (0, 1))(x, s)
    alike(gx, wx.unbind())
    close(gs, ws)


@pytest.mark.parametrize("members", [1, 2])
def test_ensemble_over_one_component(members: int) -> None:
    """One component is one component, whatever the number of members."""
    x, w = nest((3, 2)), ct.tensor(np.random.default_rng(5).normal(size=(members, 2)))
    f = lambda c, w: (F.layer_norm(c, (2,), w).sin() * c).sum()
    got = ct.vmap(ct.vmap(func.grad(f, (0, 1)), in_dims=(0, None)), in_dims=(None, 0))(x, w)
    for i, v in enumerate(w):
        gx, gw = func.grad(f, (0, 1))(x[0], v)
        close(got[0][i][0], gx)
        close(got[1][i][0], gw)


def test_cat_of_components_of_any_sizes() -> None:
    a, b = nest((3, 4), (2, 4)), nest((1, 4), (5, 4), (0, 4), seed=1)
    alike(ct.cat([a, b]), [*a.unbind(), *b.unbind()])
    c = nest((2, 3), (2, 3), seed=2)  # uniform in a dim in which the other is not
    d = nest((2, 1), (2, 5), seed=3)
    y = ct.cat([c.sin(), d])
    alike(y, [*c.sin().unbind(), *d.unbind()])
    g = func.grad(lambda c: (ct.cat([c, d]) ** 2).sum())(c)
    assert g.shape == c.shape
    alike(g, (2 * c).unbind())


def test_ragged_ones_beside_uniform_ones() -> None:
    x = nest((1, 3), (1, 3))  # ragged in a dim of ones
    y = ct.ones(2, 1, 3, dtype=ct.float64)
    alike(ct.cat([x, y], 2), [ct.cat([c, ct.ones(1, 3, dtype=ct.float64)], 1) for c in x.unbind()])
    alike(ct.stack([x, y], 1), [ct.stack([c, ct.ones(1, 3, dtype=ct.float64)]) for c in x.unbind()])
    alike(x.mT @ y, [c.mT @ ct.ones(1, 3, dtype=ct.float64) for c in x.unbind()])


@pytest.mark.parametrize("offset", [-1, 0, 2])
def test_diagonal_keeps_the_structure(offset: int) -> None:
    x = nest((2, 4, 1), (2, 4, 3))
    f = lambda x: (x.diagonal(offset, -2, -1) ** 2).sum()
    alike(x.diagonal(offset, -2, -1), [c.diagonal(offset, -2, -1) for c in x.unbind()])
    g = func.grad(f)(x)
    assert [type(s) for s in g.shape] == [type(s) for s in x.shape]
    alike(g, [func.grad(f)(c) for c in x.unbind()])


def test_products_of_no_width() -> None:
    x = nest((2, 3), (1, 3))[..., :0]
    w = ct.ones(0, 2, dtype=ct.float64)
    alike(x @ w, [ct.zeros(2, 2, dtype=ct.float64), ct.zeros(1, 2, dtype=ct.float64)])
    assert func.grad(lambda x: (x @ w).sum())(x).shape == x.shape
    y = nest((2, 3), (1, 3)).mT[:, 3:]
    assert [c.shape for c in y[..., [0, -1]].unbind()] == [(0, 2), (0, 2)]
    assert y.transpose(1, 2).shape == x.shape


@pytest.mark.parametrize("d", [-1, -2, -3])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, d: x.index_select(d, ct.tensor([0, 0])),
        lambda x, d: x.index_fill(d, ct.tensor([0]), 0.5),
        lambda x, d: x.index_add(d, ct.tensor([0]), x.narrow(d, 0, 1).sin()),
        lambda x, d: x.index_copy(d, ct.tensor([0]), x.narrow(d, 0, 1).sin()),
        lambda x, d: x.select_scatter(x.select(d, 0).sin(), d, -1),
        lambda x, d: x.slice_scatter(x.narrow(d, 0, 1).sin(), d, 0, 1),
        lambda x, d: x.slice_scatter(x.sin(), d),
    ],
)
def test_entries_of_ragged_dims_and_beside_them(f: Any, d: int) -> None:
    x = nest((2, 1, 3), (2, 4, 1))
    alike(f(x, d), [f(c, d) for c in x.unbind()])
    alike(ct.vmap(lambda c: f(c, d))(x), [f(c, d) for c in x.unbind()])
    g = func.grad(lambda x: (f(x, d) ** 2).sum())
    alike(g(x), [g(c) for c in x.unbind()])


@pytest.mark.parametrize("name", "sort cummax max min median topk gather scatter cross_entropy".split())
def test_reverse_mode_outside_of_a_map_over_components(name: str) -> None:
    x = nest((3, 4), (2, 4))
    f = {
        "sort": lambda c: c.sort(0).values, "cummax": lambda c: c.cummax(0).values, "max": lambda c: c.max(0).values,
        "min": lambda c: c.min(0).values, "median": lambda c: c.median(0).values, "topk": lambda c: c.topk(2, 0).values,
        "gather": lambda c: c.gather(0, c.detach().argsort(0)), "scatter": lambda c: c.scatter(0, c.detach().argsort(0), c.sin()),
        "cross_entropy": lambda c: F.cross_entropy(c, c.detach().argmax(1)),
    }[name]  # fmt: skip
    number = lambda c: (f(c) ** 2).sum()
    g = func.grad(lambda x: ct.vmap(number)(x).sum())
    alike(g(x), [func.grad(number)(c) for c in x.unbind()])
    t = nest((3, 4), (2, 4), seed=1)
    _, twice = func.jvp(g, (x,), (t,))
    alike(twice, [func.jvp(func.grad(number), (c,), (d,))[1] for c, d in zip(x.unbind(), t.unbind(), strict=True)])


@pytest.mark.parametrize("shape", [(), (1,)])
def test_masks_under_a_map_take_one_value(shape: Any) -> None:
    x, v = nest((3, 2), (5, 2)), ct.tensor(np.array([0.5, 2.0]).reshape(2, *shape))

    def f(c: Any, v: Any) -> Any:
        y = c * 1
        y[y > 0] = v
        return (y**2).sum()

    gx, gv = ct.vmap(func.grad(f, (0, 1)))(x, v)
    each = [func.grad(f, (0, 1))(c, w) for c, w in zip(x.unbind(), v, strict=True)]
    alike(gx, [e[0] for e in each])
    close(gv, ct.stack([e[1] for e in each]))


@pytest.mark.parametrize("name", ["gather", "scatter", "scatter_add"])
def test_nested_indices_of_other_sizes(name: str) -> None:
    x, s = nest((3, 2), (5, 2)), nest((1, 2), (3, 2), seed=1)
    i = nested.nested_tensor([ct.tensor([[0, 1]]), ct.tensor([[4, 0], [1, 1], [2, 3]])])
    f = lambda c, j, v: c.gather(-2, j) * v if name == "gather" else getattr(c, name)(-2, j, v)
    number = lambda c, v, j: (f(c, j, v) ** 2).sum()
    alike(f(x, i, s), [f(*a) for a in zip(x.unbind(), i.unbind(), s.unbind(), strict=True)])
    each = [func.grad(number, (0, 1))(c, v, j) for c, v, j in zip(x.unbind(), s.unbind(), i.unbind(), strict=True)]
    for got in (func.grad(number, (0, 1))(x, s, i), ct.vmap(func.grad(number, (0, 1)))(x, s, i)):
        alike(got[0], [e[0] for e in each])
        alike(got[1], [e[1] for e in each])


def test_type_and_layout() -> None:
    m = ct.ones(2, 3)
    assert nested.as_nested_tensor(m, dtype=ct.float64).dtype is ct.float64
    assert nested.as_nested_tensor([m, m[:1]], dtype=ct.int64).dtype is ct.int64
    assert nested.nested_tensor([m, m[:1]]).layout is ct.jagged
    assert m.layout is ct.strided


def test_joined_components_are_copies() -> None:
    a = ct.ones(2)
    x = nested.nested_tensor([a, ct.ones(3)])
    a.add_(1)
    x[1].mul_(5)
    assert x.tolist() == [[1.0, 1.0], [5.0, 5.0, 5.0]]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_attention_of_an_ensemble_over_a_shared_nest(n: int) -> None:
    """Three members, and components of which there may be one or three too."""
    rng = np.random.default_rng(n)
    x = ct.nested.nested_tensor([ct.tensor(rng.normal(size=(k + 1, 2))) for k in range(n)])
    attend = ct.nn.functional.scaled_dot_product_attention
    g = lambda a: (ct.func.grad(lambda q: (attend(q * a, x, x) * x).sum())(x) * x).sum()
    members = ct.tensor([0.5, 1.0, 2.0], dtype=ct.float64)
    for f in (g, ct.func.grad(g), lambda a: ct.func.jvp(g, (a,), (a,))[1]):
        ct.testing.assert_close(ct.vmap(f)(members), ct.stack([f(a) for a in members]))


def test_attention_whose_features_are_ragged() -> None:
    """Each component has a scale of its own."""
    rng = np.random.default_rng(0)
    parts = [ct.tensor(rng.normal(size=(3, k))) for k in (2, 2, 3)]
    attend = ct.nn.functional.scaled_dot_product_attention
    f = lambda x: (attend(x, x, x) ** 2).sum()
    nest = ct.nested.nested_tensor(parts)
    for g in (ct.func.grad(f), ct.func.grad(lambda x: (ct.func.grad(f)(x) ** 2).sum())):
        for got, part in zip(ct.vmap(g)(nest).unbind(), parts, strict=True):
            ct.testing.assert_close(got, g(part))
    for got, part in zip(ct.func.grad(f)(nest).unbind(), parts, strict=True):
        ct.testing.assert_close(got, ct.func.grad(f)(part))
