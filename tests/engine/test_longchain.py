"""Reverse mode needs no recursion, makes no cyclic garbage, and frees what it saved."""

from __future__ import annotations

import gc
import sys
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import kernels
from chainrule.func import grad, hessian, jvp, vjp, vmap

MILLION = 1_000_000


@pytest.fixture
def no_gc() -> Iterator[None]:
    """The collector off, and nothing left from before: what is freed is freed by reference counts alone."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def decay(x: Any, n: int) -> Any:
    """x (1 - 1/n)^n, one op at a time."""
    factor = 1 - 1 / n
    for _ in range(n):
        x = x * factor
    return x


def test_a_million_ops_backward() -> None:
    x = chainrule.tensor(1.5, dtype=chainrule.float64, requires_grad=True)
    y = decay(x, MILLION)
    y.backward()
    np.testing.assert_allclose(x.grad.item(), (1 - 1 / MILLION) ** MILLION, rtol=1e-9)


def test_a_million_ops_grad() -> None:
    g = grad(lambda x: decay(x, MILLION))(chainrule.tensor(1.5, dtype=chainrule.float64))
    np.testing.assert_allclose(g.item(), (1 - 1 / MILLION) ** MILLION, rtol=1e-9)


def test_a_long_graph_is_dropped_without_backward() -> None:
    """A graph that nobody goes through comes apart node by node, without deep recursion in the interpreter."""
    x = chainrule.tensor(1.5, dtype=chainrule.float64, requires_grad=True)
    y = decay(x, 300_000)
    node = weakref.ref(y)
    del y
    assert node() is None


def test_long_chain_in_place() -> None:
    """The same with in-place writes, through a view."""
    n = 5_000
    x = chainrule.ones(3, dtype=chainrule.float64, requires_grad=True)
    y = x.clone()
    view = y[1:]
    for _ in range(n):
        view.mul_(1 - 1 / n)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1, (1 - 1 / n) ** n, (1 - 1 / n) ** n], rtol=1e-9)


def test_deep_python_recursion_is_not_needed() -> None:
    """A low recursion limit is enough for a long chain, in both modes and both nestings."""
    x, n = chainrule.tensor(0.5, dtype=chainrule.float64), 5_000

    def square(x: Any) -> Any:
        return decay(x, n) ** 2

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        twice = grad(grad(square))(x)
        pushed = jvp(grad(square), (x,), (x,))[1]
        (pulled,) = vjp(lambda x: jvp(square, (x,), (x,))[1], x)[1](x)
    finally:
        sys.setrecursionlimit(limit)
    c = (1 - 1 / n) ** n
    np.testing.assert_allclose(twice.item(), 2 * c**2, rtol=1e-9)
    np.testing.assert_allclose(pushed.item(), 2 * c**2 * 0.5, rtol=1e-9)
    # jvp(square, x, x) = 2 c^2 x^2, whose derivative 4 c^2 x meets the cotangent x.
    np.testing.assert_allclose(pulled.item(), 4 * c**2 * 0.25, rtol=1e-9)


def loss(w: Any, x: Any) -> Any:
    y = chainrule.tanh(x @ w)
    y[0] = 0.5
    return (y * y).sum()


def backward_once() -> None:
    w = chainrule.ones(3, 3, requires_grad=True)
    loss(w, chainrule.ones(3, 3)).backward()


W, X, XS = chainrule.ones(3, 3), chainrule.ones(3, 3), chainrule.ones(2, 3, 3)
WORK: dict[str, Callable[[], object]] = {
    "backward": backward_once,
    "grad": lambda: grad(loss)(W, X),
    "jvp": lambda: jvp(lambda w: loss(w, X), (W,), (W,)),
    "vmap(grad)": lambda: vmap(grad(loss), in_dims=(None, 0))(W, XS),
    "grad(vmap)": lambda: grad(lambda w: vmap(loss, in_dims=(None, 0))(w, XS).sum())(W),
    "hessian": lambda: hessian(lambda x: (x * x * x).sum())(X[0]),
    "grad(grad)": lambda: grad(lambda x: grad(lambda y: (y**3).sum())(x).sum())(X),
    "create_graph": lambda: chainrule.autograd.grad(_twice(), _LEAF),
    "dropped graph": lambda: loss(_LEAF, X),
}
_LEAF = chainrule.ones(3, 3, requires_grad=True)


def _twice() -> Any:
    (g,) = chainrule.autograd.grad((_LEAF**3).sum(), _LEAF, create_graph=True)
    return g.sum()


@pytest.mark.usefixtures("no_gc")
@pytest.mark.parametrize("name", WORK)
def test_no_cyclic_garbage(name: str) -> None:
    """After a transform the collector finds nothing: every object went when its last reference did."""
    work = WORK[name]
    work()
    gc.collect()
    for _ in range(5):
        work()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        found = gc.collect()
        kinds = sorted({type(o).__qualname__ for o in gc.garbage})
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert found == 0, f"{found} objects in cycles: {kinds}"


@pytest.mark.usefixtures("no_gc")
def test_a_hundred_thousand_gradients_do_not_grow_memory() -> None:
    x = chainrule.tensor([0.1, 0.2, 0.3], dtype=chainrule.float64)
    leaf = chainrule.tensor([0.1, 0.2, 0.3], dtype=chainrule.float64, requires_grad=True)

    def f(x: Any) -> Any:
        return (chainrule.tanh(x) * x).sum()

    g = grad(f)

    def some(n: int) -> None:
        for _ in range(n):
            g(x)
            leaf.grad = None
            f(leaf).backward()

    some(2_000)
    tracemalloc.start()
    try:
        some(1_000)
        before, _ = tracemalloc.get_traced_memory()
        some(1_000)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # One object kept by each would be more than 16 bytes; to trace every allocation of all 100,000 would take minutes.
    assert after - before < 16_000, f"{after - before} bytes more after 2,000 gradients"

    objects, rss = len(gc.get_objects()), resident()
    some(50_000)
    assert len(gc.get_objects()) - objects < 100
    grown = resident() - rss
    assert grown < 8e6, f"resident memory grew by {grown / 1e6:.1f} MB over 100,000 gradients"


def resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say, which the object count above covers."""
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4096
    except OSError:
        return 0


@pytest.mark.usefixtures("no_gc")
def test_saved_values_are_freed_by_backward() -> None:
    """What the graph saved goes with the backward pass, although the result is still alive."""
    n = 1_000_000
    x = chainrule.ones(n, dtype=chainrule.float64, requires_grad=True)
    tracemalloc.start()
    try:
        y = x
        for _ in range(8):
            y = chainrule.tanh(y)
        total = y.sum()
        del y
        kernels.pool.clear()  # free buffers are nobody's
        saved, _ = tracemalloc.get_traced_memory()
        total.backward()
        kernels.pool.clear()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    array = 8 * n
    assert saved > 7 * array, "tanh saves its result"
    assert after < 2.5 * array, f"{after / array:.1f} arrays are left after backward, the gradient among them"


@pytest.mark.usefixtures("no_gc")
def test_only_named_values_are_saved() -> None:
    """A sum needs none of its input: the graph of `x.exp() + 1 + 1 + …` holds one array, not eight."""
    n = 1_000_000
    x = chainrule.ones(n, dtype=chainrule.float64, requires_grad=True)
    tracemalloc.start()
    try:
        y = x.exp()
        for _ in range(8):
            y = y + 1
        total = y.sum()
        del y
        kernels.pool.clear()  # free buffers are nobody's
        saved, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert saved < 1.5 * 8 * n, f"{saved / (8 * n):.1f} arrays are held"
    total.backward()
    np.testing.assert_allclose(x.grad.numpy(), np.e, rtol=1e-12)
