"""The steps of the walk on small arrays give what the rules of the ops give, to the last bit, and let the general way do what they cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.core import steps
from chainrule.core.op import OPS
from chainrule.func import grad, vmap

RNG = np.random.default_rng(3)
W = cr.tensor(RNG.uniform(-0.5, 0.5, (4, 4)))
B = cr.tensor(RNG.uniform(-0.5, 0.5, (4,)))
X = cr.tensor(RNG.uniform(0.2, 0.8, (4,)))

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "a chain": lambda x: cr.tanh(W @ cr.tanh(W @ x + B) + B).sum(),
    "from both sides": lambda x: ((x @ W) @ (W @ x)).exp(),
    "a way that divides": lambda x: ((y := x.sin()) * y.exp() + y).sum(),
    "twice the same": lambda x: (x * x + x * x * x - x).sum(),
    "broadcast": lambda x: ((x + 1.0) * x.sum() / (2.0 - x[:1])).sum(),
    "numbers": lambda x: (2.0 / (1.0 + (-x).exp()) - 3).sum(),
    "outer": lambda x: cr.outer(x, x.cos()).tanh().sum(),
    "rows": lambda x: (x.reshape(2, 2) @ W[:2] + B).sigmoid().sum(),
    "numbers beside vectors": lambda x: (
        x.sum() * B + x.prod() / X + X[:1] * x.exp() + (W + x[0]) @ B * x.amax()
    ).sum(),
    "what chooses": lambda x: cr.where(x > 0.5, x.log(), x * x).sum(),
    "what has no slope": lambda x: (x.floor() + x.sign() * x).sum(),
}


@pytest.fixture
def long_way(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Any]:
    def run(f: Callable[[], Any]) -> Any:
        with monkeypatch.context() as m:
            m.setattr(steps, "SMALL", 0)
            m.setattr(steps, "FUSE_SIZE", 0)
            return f()

    return run


def _leaf() -> Any:
    return X.clone().requires_grad_()


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_ways_to_a_gradient(name: str, long_way: Any) -> None:
    f = PROGRAMS[name]

    def backward(**kw: Any) -> Any:
        x = _leaf()
        f(x).backward(**kw)
        return x.grad

    def wanted(**kw: Any) -> Any:
        x = _leaf()
        return cr.autograd.grad(f(x), x, **kw)[0]

    def beside() -> Any:
        x, other = _leaf(), _leaf()
        return cr.autograd.grad(f(x) + f(other), x)[0]

    def inside() -> Any:
        x = _leaf()
        y = x * 1.0
        return cr.autograd.grad(f(y), y)[0]

    many = cr.stack([X, X * 0.5, X + 0.1, X * X])  # as many as one has elements: what is not aligned still broadcasts
    ways: list[Callable[[], Any]] = [
        lambda: grad(f)(X),
        backward,
        lambda: backward(retain_graph=True),
        wanted,
        lambda: wanted(retain_graph=True),
        beside,
        inside,
        lambda: vmap(grad(f))(many),
        lambda: grad(lambda v: vmap(f)(v).sum())(many),
        lambda: vmap(grad(lambda w, x: f(w * x)), in_dims=(None, 0))(X, many),
    ]
    for way in ways:
        np.testing.assert_array_equal(way().numpy(), long_way(way).numpy())
    want = grad(f)(X).numpy()
    for way in ways[1:7]:
        np.testing.assert_array_equal(way().numpy(), want)
    each = cr.stack([grad(f)(row) for row in many]).numpy()
    for way in ways[7:9]:
        np.testing.assert_allclose(way().numpy(), each, rtol=1e-12)
    weighed = cr.stack([grad(lambda w, x=row: f(w * x))(X) for row in many]).numpy()
    np.testing.assert_allclose(ways[9]().numpy(), weighed, rtol=1e-12)
    e = 1e-6
    slopes = [(f(X + e * d) - f(X - e * d)).item() / (2 * e) for d in cr.eye(4, dtype=cr.float64)]
    np.testing.assert_allclose(want, slopes, rtol=1e-6, atol=1e-8)


def test_hooks_see_every_cotangent() -> None:
    seen: list[str] = []

    def run(only: bool) -> Any:
        x, w = _leaf(), W.clone().requires_grad_()
        x.register_hook(lambda g: seen.append("x"))
        w.register_hook(lambda g: (seen.append("w"), g * 2)[1])
        h = w @ x
        h.register_hook(lambda g: seen.append("h"))
        y = h.tanh().sum()
        return cr.autograd.grad(y, x if only else (x, w))

    run(True)
    assert seen == ["h", "x"]
    seen.clear()
    doubled = run(False)[1]
    assert sorted(seen) == ["h", "w", "x"] and seen[0] == "h"
    x, w = _leaf(), W.clone().requires_grad_()
    np.testing.assert_array_equal(doubled.numpy(), 2 * cr.autograd.grad((w @ x).tanh().sum(), w)[0].numpy())


def test_a_graph_is_walked_once() -> None:
    x = _leaf()
    y = (x.sin() * 2).sum()
    cr.autograd.grad(y, x)
    with pytest.raises(RuntimeError, match="second time"):
        cr.autograd.grad(y, x)


def test_what_is_not_asked_for_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of an input costs no gradient of the weights."""
    op, ran = OPS["matvec"], []
    rules = [lambda *a, r=r, k=k: (ran.append(k), r(*a))[1] for k, r in enumerate(op.pull_rules)]
    monkeypatch.setattr(op, "pull_rules", rules)
    x, w = _leaf(), W.clone().requires_grad_()
    cr.autograd.grad((w @ x).tanh().sum(), x)
    assert ran == [1]


def test_a_cotangent_that_several_get_is_written_to_alone() -> None:
    """Who writes to one gradient after a tape has saved it leaves what was saved."""
    a, b = _leaf(), _leaf()
    ga, gb = cr.autograd.grad(((a + b) * 2.0).sum(), (a, b))
    t = _leaf()
    y = (t * ga).sum()  # keeps ga
    gb.mul_(100.0)
    np.testing.assert_array_equal(cr.autograd.grad(y, t)[0].numpy(), np.full(4, 2.0))
    g = cr.ones(4, dtype=cr.float64)
    y = (t * g).sum()
    (gx,) = cr.autograd.grad(a + 1.0, a, g)
    gx.mul_(5.0)
    np.testing.assert_array_equal(cr.autograd.grad(y, t)[0].numpy(), np.ones(4))


def test_levels_that_ended_and_modes() -> None:
    kept: list[Any] = []
    grad(lambda x: (kept.append(x.sin()), x.sum())[1])(X)
    for f in (lambda: kept[0] * 2.0, lambda: kept[0].exp(), lambda: kept[0].sum(), lambda: W @ kept[0]):
        with pytest.raises(cr.ChainruleError, match="already returned"):
            f()
    x = _leaf()
    with cr.no_grad():
        assert not (x * 2.0).requires_grad and not (W @ x).requires_grad and not x.exp().requires_grad
    with cr.no_grad():
        np.testing.assert_array_equal(grad(lambda v: (v * v).sum())(X).numpy(), 2 * X.numpy())


def test_what_does_not_lead_to_what_is_asked_for_is_not_freed() -> None:
    x, other = _leaf(), _leaf()
    y = (x.sin() * 2.0).exp()
    assert cr.autograd.grad(y.sum(), other, allow_unused=True) == (None,)
    v = (y * y).detach().requires_grad_()
    cr.autograd.grad(((v + y).tanh() * v).sum(), v)
    cr.autograd.grad((v * y).sum(), v)
    cr.autograd.grad(y.sum(), x)  # its graph is whole
    with pytest.raises(RuntimeError, match="second time"):
        cr.autograd.grad(y.sum(), x)


@pytest.mark.parametrize("f", [lambda t, c: t * c, lambda t, c: c * t, lambda t, c: c / t, lambda t, c: cr.dot(t, c)])
def test_a_constant_that_a_tape_under_vmap_saved_is_written_to(f: Any) -> None:
    """The tape lies above the map, and keeps what the constant was: each example's own, or the same for all."""
    rows = cr.stack([X, X * 0.5])

    def slope(x: Any, c: Any) -> Any:
        def g(t: Any) -> Any:
            y = f(t, c)
            c.mul_(0.0)
            return y.sum()

        return grad(g)(x)

    want = cr.stack([grad(lambda t, c=row * 2.0: f(t, c).sum())(row) for row in rows])
    np.testing.assert_array_equal(vmap(lambda x: slope(x, x * 2.0))(rows).numpy(), want.numpy())
    want = cr.stack([grad(lambda t: f(t, B).sum())(row) for row in rows])
    np.testing.assert_array_equal(vmap(lambda x: slope(x, B.clone()))(rows).numpy(), want.numpy())


def test_a_value_of_a_map_that_ended_beside_a_tape() -> None:
    kept: list[Any] = []
    vmap(lambda x: (kept.append(x * 2.0), x)[1])(cr.stack([X, X]))
    for f in (lambda t: t * kept[0], lambda t: kept[0] - t, lambda t: cr.dot(t, kept[0]), lambda t: kept[0].exp() * t):
        with pytest.raises(cr.ChainruleError, match="already returned"):
            grad(lambda t: f(t).sum())(X)  # noqa: B023


@pytest.mark.parametrize("f", [lambda t, c: t * c, lambda t, c: c - t, lambda t, c: cr.dot(t, c)])
def test_a_gradient_that_is_one_op_on_a_value_of_a_map_that_ended(f: Any) -> None:
    """Nothing that follows the op would say so: the tape itself asks whether the map is there."""
    one = X if f(X, X).ndim == 0 else X[0]
    kept: list[Any] = []
    vmap(lambda x: (kept.append(x * 2.0), x)[1])(cr.stack([one, one]))
    with pytest.raises(cr.ChainruleError, match="already returned"):
        grad(lambda t: f(t, kept[0]))(one)
