"""Whole training steps as machine code: large products in blocks, results handed over instead of copied, graphs that were walked."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import func
from chainrule.core.errors import GraphFreedError
from chainrule.utils.checkpoint import checkpoint


def _parts(f: Any, *args: Any) -> list[Any]:
    return list(cr.explain(f, *args).recording.program._run.parts)


# -- products -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [cr.float32, cr.float64], ids=str)
@pytest.mark.parametrize("turned", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize(
    "m, depth, n", [(200, 300, 250), (6, 64, 4096), (7, 65, 500), (97, 5, 701), (1003, 31, 70), (400, 128, 33)]
)
def test_a_large_product(m: int, depth: int, n: int, turned: str, dtype: Any) -> None:
    a = cr.randn(*((m, depth) if turned[0] == "N" else (depth, m)), dtype=dtype)
    b = cr.randn(*((depth, n) if turned[1] == "N" else (n, depth)), dtype=dtype)
    big = cr.randn(40_000, dtype=dtype)  # a function of large arrays runs on all threads

    def f(a: Any, b: Any, big: Any) -> Any:
        x, y = (a if turned[0] == "N" else a.T), (b if turned[1] == "N" else b.T)
        return x @ y, big * 2

    y, z = cr.jit(f)(a, b, big)
    tol = 1e-4 if dtype is cr.float32 else 1e-12
    assert y.allclose(f(a, b, big)[0], rtol=tol, atol=tol * depth**0.5)
    assert z.equal(big * 2)


@pytest.mark.parametrize("lead", [(300,), (12, 25), (3, 4, 25)])
def test_a_large_layer(lead: tuple[int, ...]) -> None:
    x, w, b = cr.randn(*lead, 130), cr.randn(140, 130), cr.randn(140)

    def loss(w: Any, b: Any, x: Any) -> Any:
        return cr.nn.functional.linear(x, w, b).tanh().square().sum()

    g = func.grad(loss, argnums=(0, 1, 2))
    for got, want in zip(cr.jit(g)(w, b, x), g(w, b, x), strict=True):
        assert got.allclose(want, rtol=1e-3, atol=1e-3)
    assert [p.run is not None for p in _parts(g, w, b, x)] == [True]


def test_views_of_matrices_are_factors() -> None:
    a, b = cr.randn(400, 300), cr.randn(600, 500)

    def f(a: Any, b: Any) -> Any:
        return a[10:210, ::2] @ b[50:200, 3:403], (a * 2)[5:] @ b[:300].relu()

    for got, want in zip(cr.jit(f)(a, b), f(a, b), strict=True):
        assert got.allclose(want, rtol=1e-3, atol=1e-3)


# -- what a step writes -------------------------------------------------------------------------------------------------------


def _network() -> tuple[Any, Any, Any]:
    cr.manual_seed(0)
    net = cr.nn.Sequential(
        cr.nn.Linear(20, 200), cr.nn.Tanh(), cr.nn.Linear(200, 200), cr.nn.ReLU(), cr.nn.Linear(200, 3)
    )
    return net, cr.optim.Adam(net.parameters(), lr=1e-2), (cr.randn(30, 20), cr.randn(30, 3))


def _step(net: Any, optimizer: Any) -> Any:
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


HOLDERS: dict[str, Any] = {
    "an array": lambda t: t.detach().numpy(),
    "a part of an array": lambda t: t.detach().numpy()[1],
    "a view": lambda t: t.detach().view(-1),
    "a row": lambda t: t.data[0],
    "data": lambda t: t.data,
    "a buffer": lambda t: memoryview(t.detach().numpy()),
    "a tensor of the array": lambda t: cr.from_numpy(t.detach().numpy()),
}


@pytest.mark.parametrize("of", ["weight", "state"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_whoever_holds_the_memory_sees_the_step(holder: str, of: str) -> None:
    net, optimizer, data = _network()
    step = cr.jit(_step(net, optimizer))
    for _ in range(3):
        step(*data)
    p = net[2].weight
    t = p if of == "weight" else optimizer.state[p]["exp_avg"]
    kept, held = t.detach().clone(), HOLDERS[holder](t)
    for _ in range(2):
        step(*data)
        assert not kept.equal(t.detach())
        now = HOLDERS[holder](t)
        assert np.array_equal(np.asarray(held), np.asarray(now))


def test_what_was_saved_before_a_step_stays() -> None:
    net, optimizer, data = _network()
    step = cr.jit(_step(net, optimizer))
    for _ in range(3):
        step(*data)
    p = net[2].weight
    before = p.detach().clone()
    y = (p * p).sum()  # saves p
    z = func.vjp(lambda t: t * p.detach(), cr.ones(200, 200))[1]
    step(*data)
    assert not p.detach().equal(before)
    y.backward(inputs=[p])
    assert z(cr.ones(200, 200))[0].equal(before)


def test_steps_are_those_without_jit() -> None:
    losses = []
    for jit in (False, True):
        net, optimizer, data = _network()
        step = _step(net, optimizer)
        step = cr.jit(step) if jit else step
        losses.append([float(step(*data).detach()) for _ in range(30)])
        last = net.state_dict(), optimizer.state_dict()["state"]
        if not jit:
            first = last
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3)
    for k, v in first[0].items():
        assert v.allclose(last[0][k], rtol=1e-2, atol=1e-3)
    for k, s in first[1].items():
        assert s["step"].equal(last[1][k]["step"])


def test_old_weights_are_not_kept_by_losses() -> None:
    net, optimizer, data = _network()
    step = cr.jit(_step(net, optimizer))
    losses = [step(*data) for _ in range(4)]
    old = weakref.ref(net[2].weight._value._value)
    losses.append(step(*data))
    gc.collect()
    assert old() is None and losses[-1].requires_grad


def test_a_graph_is_walked_once() -> None:
    p = cr.randn(3, requires_grad=True)

    def f(x: Any, again: bool) -> Any:
        p.grad = None
        loss = ((p * x) ** 2).sum()
        loss.backward(retain_graph=again)
        return loss

    for g in (f, cr.jit(f)):
        loss = g(cr.ones(3), True)
        loss.backward()
        assert p.grad is not None and p.grad.allclose(4 * p.detach())
        loss = g(cr.ones(3), False)
        with pytest.raises(GraphFreedError, match="second time"):
            loss.backward()


def test_one_walked_graph_beside_one_that_is_not() -> None:
    p = cr.randn(3, requires_grad=True)

    def f(x: Any) -> Any:
        p.grad = None
        loss = ((p * x) ** 2).sum()
        loss.backward()
        return loss, (p * p * x).sum()

    for g in (f, cr.jit(f)):
        for _ in range(2):
            _, other = g(cr.ones(3))
            other.backward()
            assert p.grad is not None and p.grad.allclose(4 * p.detach())


def test_a_tensor_made_inside_and_written_at_a_level_above_is_no_hidden_write() -> None:
    def f(x: Any) -> Any:
        def inner(t: Any) -> Any:
            v = x.sin()
            v.mul_(t.exp())
            return (checkpoint(lambda a: a * v, t, use_reentrant=False) ** 2).sum()

        return func.grad(inner)(x)

    got = []
    for g in (f, cr.jit(f)):
        x = cr.linspace(-1, 1, 5, dtype=cr.float64).requires_grad_()
        g(x).sum().backward()
        got.append(x.grad)
    assert got[0].allclose(got[1])
