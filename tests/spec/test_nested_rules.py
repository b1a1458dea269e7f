"""Rules of nested tensors: a function of a nest is the function of each component, derivatives included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule.func import grad, jvp, vjp, vmap

from .judge import TORCH, array, number, require, row, same

ROWS = [(3, 4), (1, 4), (5, 4)]
GAPS = [(2, 4), (0, 4), (3, 4)]
INNER = [(4, 3), (4, 1), (4, 5)]
IMAGES = [(2, 3, 2), (3, 1, 2), (1, 4, 2)]


def components(shapes: list[tuple[int, ...]], seed: int = 0) -> list[np.ndarray]:
    return [array(*s, seed=seed + 10 * i) for i, s in enumerate(shapes)]


def nest(parts: list[np.ndarray]) -> Any:
    return cr.nested.nested_tensor(parts, dtype=cr.float64)


def unnest(y: Any, n: int) -> list[np.ndarray]:
    """A result by component, nested or with one entry each."""
    return [c.numpy() for c in y.unbind()] if y.is_nested else [y[i].numpy() for i in range(n)]


def judge_nest(f: Callable[..., Any], nests: list[list[np.ndarray]], *dense: np.ndarray, vmaps: bool = True) -> None:
    """``f(m, *nests, *dense)`` with negative dims against the same on each component: PyTorch for values and gradients, and
    our own dense rules, tested elsewhere, for forward mode, second order and vmap."""
    k, n = len(nests), len(nests[0])
    xs = [*[nest(p) for p in nests], *[cr.tensor(d) for d in dense]]
    each = [[*[p[i] for p in nests], *dense] for i in range(n)]

    y, pull = vjp(lambda *a: f(cr, *a), *xs)
    # Values, and reverse mode, by PyTorch on each component.
    leaves = [[torch.tensor(a, requires_grad=True) for a in e] for e in each]
    outs = [f(TORCH, *e) for e in leaves]
    for i, (a, b) in enumerate(zip(unnest(y, n), outs, strict=True)):
        same(a, number(b), f"component {i}")
    cots = [array(*o.shape, seed=40 + i) for i, o in enumerate(outs)]
    g = nest(cots) if y.is_nested else cr.tensor(np.stack(cots))
    got = pull(g)
    theirs = [
        torch.autograd.grad(o, e, torch.tensor(c), allow_unused=True)
        for o, e, c in zip(outs, leaves, cots, strict=True)
    ]
    zero = lambda t, e: np.zeros(e.shape) if t is None else number(t)
    for j in range(k):
        for i, a in enumerate(got[j].unbind()):
            same(a.numpy(), zero(theirs[i][j], leaves[i][j]), f"gradient {j}, component {i}")
    for j in range(k, len(xs)):
        same(got[j].numpy(), sum(zero(t[j], e[j]) for t, e in zip(theirs, leaves, strict=True)), f"gradient {j}")

    # Forward mode and the mixes of second order, by our dense rules on each component.
    tn = [components([p.shape for p in ps], 70 + j) for j, ps in enumerate(nests)]
    td = [array(*d.shape, seed=80 + j) for j, d in enumerate(dense)]
    ts = [*[nest(p) for p in tn], *[cr.tensor(d) for d in td]]
    ct = [[cr.tensor(a) for a in e] for e in each]
    tt = [[cr.tensor(a) for a in (*[p[i] for p in tn], *td)] for i in range(n)]
    run = lambda *a: f(cr, *a)
    fwd = jvp(run, tuple(xs), tuple(ts))[1]
    for a, c, t in zip(unnest(fwd, n), ct, tt, strict=True):
        same(a, jvp(run, tuple(c), tuple(t))[1].numpy(), "forward mode")
    back = lambda *a: vjp(run, *a)[1](g)
    push = lambda *a: jvp(run, a, tuple(ts))[1]
    hess = jvp(back, tuple(xs), tuple(ts))[1]
    again = vjp(push, *xs)[1](g)
    # A rule that is wrong for nests and dense tensors alike is seen by differences of the gradient.
    step = 1e-6
    moved = [[x + s * t for x, t in zip(xs, ts, strict=True)] for s in (step, -step)]
    high, low = (unnest(run(*x), n) for x in moved)
    for p, a, b in zip(unnest(fwd, n), high, low, strict=True):
        same(p, (a - b) / (2 * step), "differences of the value", 1e-6)
    ahead, behind = (back(*x) for x in moved)
    for j, (h, a, b) in enumerate(zip(hess, ahead, behind, strict=True)):
        for p, q in zip(
            unnest(h, n) if j < k else [h.numpy()],
            unnest((a - b) / (2 * step), n) if j < k else [((a - b) / (2 * step)).numpy()],
            strict=True,
        ):
            same(p, q, f"differences of gradient {j}", 1e-6)
    wants = []
    for i, (c, t) in enumerate(zip(ct, tt, strict=True)):
        wants.append(jvp(lambda *a, i=i: vjp(run, *a)[1](cr.tensor(cots[i])), tuple(c), tuple(t))[1])
    for what, h in (("forward over reverse", hess), ("reverse over forward", again)):
        for j in range(k):
            for a, w in zip(h[j].unbind(), wants, strict=True):
                same(a.numpy(), w[j].numpy(), what)
        for j in range(k, len(xs)):
            same(h[j].numpy(), sum(w[j].numpy() for w in wants), what)
    if vmaps:
        dims = (*(0,) * k, *(None,) * len(dense))
        for a, e in zip(unnest(vmap(run, in_dims=dims)(*xs), n), outs, strict=True):
            same(a, number(e), "vmap")
        per = vmap(lambda *a: grad(lambda *b: (run(*b) ** 2).sum(), argnums=tuple(range(len(xs))))(*a), in_dims=dims)(
            *xs
        )
        for i, c in enumerate(ct):
            w = grad(lambda *b: (run(*b) ** 2).sum(), argnums=tuple(range(len(xs))))(*c)
            for j in range(len(xs)):
                same(unnest(per[j], n)[i], w[j].numpy(), "vmap of grad")


@row("nested.matmul")
def test_matmul() -> None:
    require("nested.nested_tensor matmul")
    f = lambda m, a, b: m.matmul(a, b)
    judge_nest(f, [components(ROWS), components(INNER, 1)])
    judge_nest(f, [components(ROWS)], array(4, 3, seed=2))
    judge_nest(f, [components([(2, 3, 4), (2, 1, 4)]), components([(2, 4, 3), (2, 4, 2)], 1)])
    judge_nest(lambda m, a: m.matmul(a, a.transpose(-1, -2)), [components(ROWS)])
    judge_nest(f, [components(GAPS)], array(4, 3, seed=2))


@row("nested.linear")
@pytest.mark.parametrize("shapes", [ROWS, GAPS, [(2, 3, 4), (2, 1, 4)]], ids=["rows", "gaps", "deep"])
def test_linear(shapes: list[tuple[int, ...]]) -> None:
    require("nested.nested_tensor F.linear")
    w, b = array(3, 4, seed=2), array(3, seed=3)
    judge_nest(lambda m, x, w, b: m.nn.functional.linear(x, w, b), [components(shapes)], w, b)
    judge_nest(lambda m, x, w: m.nn.functional.linear(x, w), [components(shapes)], w)
    # Each gradient alone: what is not asked for is not needed.
    x = nest(components(shapes))
    full = grad(lambda x, w, b: (cr.nn.functional.linear(x, w, b) ** 2).sum(), argnums=(0, 1, 2))(
        x, cr.tensor(w), cr.tensor(b)
    )
    for k in range(3):
        one = grad(lambda x, w, b: (cr.nn.functional.linear(x, w, b) ** 2).sum(), argnums=k)(
            x, cr.tensor(w), cr.tensor(b)
        )
        for u, v in zip(
            unnest(one, 3) if k == 0 else [one.numpy()],
            unnest(full[k], 3) if k == 0 else [full[k].numpy()],
            strict=True,
        ):
            same(u, v, f"gradient {k} alone")


@row("nested.softmax")
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name: str) -> None:
    require(f"nested.nested_tensor F.{name}")
    for shapes in (ROWS, INNER, IMAGES, GAPS):
        for dim in range(-len(shapes[0]), 0):
            judge_nest(lambda m, x, d=dim: getattr(m.nn.functional, name)(x, d), [components(shapes)])
    f = lambda x: getattr(cr.nn.functional, name)(x, -1)
    empty = cr.nested.nested_tensor([], dtype=cr.float64)
    assert f(empty).size(0) == 0
    assert grad(lambda x: f(x).sum())(empty).size(0) == 0
    with pytest.raises((RuntimeError, IndexError), match="dim"):
        getattr(cr.nn.functional, name)(nest(components(ROWS)), 0)


@row("nested.sum")
@pytest.mark.parametrize("keepdim", [True, False])
def test_sum(keepdim: bool) -> None:
    require("nested.nested_tensor sum")
    for shapes in (ROWS, GAPS, INNER, IMAGES):
        judge_nest(lambda m, x: m.sum(x, -1, keepdim=keepdim) * 2, [components(shapes)])
        judge_nest(lambda m, x: m.sum(x * x, -1, keepdim=keepdim), [components(shapes)])


@row("nested.select")
def test_select() -> None:
    require("nested.nested_tensor select")
    for index in (0, 2, -1):
        judge_nest(lambda m, x, i=index: m.select(x * x, -1, i), [components(ROWS)])
    judge_nest(lambda m, x: m.select(x, -2, 0), [components(ROWS)])
    x = nest(components(ROWS))
    g = grad(lambda x: (x[1] ** 2).sum() + 3 * x.select(0, 2).sum())(x)
    for a, w in zip(g.unbind(), [np.zeros((3, 4)), 2 * x[1].numpy(), np.full((5, 4), 3.0)], strict=True):
        same(a.numpy(), w, "gradient in the selected component")
    g = grad(lambda x: x.select(-1, 1).sum())(x)
    for a in g.unbind():
        same(a.numpy(), np.broadcast_to([0.0, 1, 0, 0], tuple(a.shape)).copy(), "gradient in the selected column")


@row("nested.activations")
@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "relu", "silu", "threshold"])
def test_activations(name: str) -> None:
    f = {
        "gelu": lambda F, x: F.gelu(x),
        "gelu_tanh": lambda F, x: F.gelu(x, approximate="tanh"),
        "relu": lambda F, x: F.relu(x),
        "silu": lambda F, x: F.silu(x),
        "threshold": lambda F, x: F.threshold(x, 0.2, -1.0),
    }[name]
    require(f"nested.nested_tensor F.{name.split('_')[0]}")
    for shapes in (ROWS, GAPS, IMAGES):
        judge_nest(lambda m, x: f(m.nn.functional, x), [components(shapes)])


@row("nested.layer_norm")
def test_layer_norm() -> None:
    require("nested.nested_tensor F.layer_norm")
    w, b = array(4, seed=2), array(4, seed=3)
    for shapes in (ROWS, GAPS, [(2, 3, 4), (2, 1, 4)]):
        judge_nest(lambda m, x, w, b: m.nn.functional.layer_norm(x, (4,), w, b), [components(shapes)], w, b)
    judge_nest(lambda m, x: m.nn.functional.layer_norm(x, (4,)), [components(ROWS)])
    judge_nest(lambda m, x, b: m.nn.functional.layer_norm(x, (4,), None, b), [components(ROWS)], b)
    w2 = array(3, 4, seed=2)
    judge_nest(lambda m, x, w: m.nn.functional.layer_norm(x, (3, 4), w), [components([(2, 3, 4), (1, 3, 4)])], w2)
    # Nothing to normalise: empty results, zero gradients.
    empty = nest([np.zeros((0, 4)), np.zeros((0, 4))])
    gx, gw, gb = grad(lambda x, w, b: cr.nn.functional.layer_norm(x, (4,), w, b).sum(), argnums=(0, 1, 2))(
        empty, cr.tensor(w), cr.tensor(b)
    )
    assert gx.is_nested and not gw.numpy().any() and not gb.numpy().any()


@row("nested.from_padded")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_from_padded() -> None:
    require("nested.from_padded nested.nested_tensor")
    sizes = np.array([[2, 3], [1, 2], [3, 0]])
    x = array(3, 3, 3, 2)
    f = lambda p: cr.nested.from_padded(p, cr.tensor(sizes))
    y = f(cr.tensor(x))
    for i, c in enumerate(y.unbind()):
        same(c.numpy(), x[i, : sizes[i, 0], : sizes[i, 1]].copy(), "corner")
    g = grad(lambda p: (f(p) ** 2).sum())(cr.tensor(x)).numpy()
    want = np.zeros_like(x)
    for i, (a, b) in enumerate(sizes):
        want[i, :a, :b] = 2 * x[i, :a, :b]
    same(g, want, "what was padding has no gradient")
    t = jvp(f, (cr.tensor(x),), (cr.tensor(2 * x),))[1]
    for c, d in zip(t.unbind(), y.unbind(), strict=True):
        same(c.numpy(), 2 * d.numpy(), "forward mode")
    h = jvp(grad(lambda p: (f(p) ** 3).sum()), (cr.tensor(x),), (cr.tensor(x),))[1].numpy()
    same(h, np.where(want != 0, 6 * x * x, 0), "second order")
    back = cr.nested.to_padded_tensor(y, 0.0)
    same(
        grad(lambda p: (cr.nested.to_padded_tensor(f(p), 7.0) ** 2).sum())(cr.tensor(x)).numpy(), want, "there and back"
    )
    same(back.numpy(), want / 2, "padded again")
    # As PyTorch's operator, whose gradient is the same.
    flat = torch.tensor(x[..., 0], requires_grad=True)
    ours = cr.nested.from_padded(cr.tensor(x[..., 0]), cr.tensor(sizes[:2].tolist() + [[3, 1]]))
    theirs = torch._nested_from_padded(flat, torch.tensor(sizes[:2].tolist() + [[3, 1]]))
    for a, b in zip(ours.unbind(), theirs.unbind(), strict=True):
        same(a.numpy(), number(b), "PyTorch's")
