"""vmap of the normalisations and of their gradients: every combination of batched arguments, nested, in one op call."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, jvp, vmap

F = cr.nn.functional
rng = np.random.default_rng(0)
B = 3


def draw(*shape: int) -> Any:
    return cr.tensor(rng.uniform(0.2, 1.5, shape))


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "native_batch_norm": (
        lambda x, w, b, m, v: cr.cat([t.reshape(-1) for t in cr.native_batch_norm(x, w, b, m, v, False, 0.1, 0.1)[:1]]),
        ((4, 2, 3), (2,), (2,), (2,), (2,)),
    ),
    "batch_norm training": (
        lambda x, w, b: cr.cat([t.reshape(-1) for t in cr.native_batch_norm(x, w, b, None, None, True, 0.1, 0.1)]),
        ((4, 2, 3), (2,), (2,)),
    ),
    "native_group_norm": (
        lambda x, w, b: cr.cat([t.reshape(-1) for t in cr.native_group_norm(x, w, b, 2, 4, 3, 2, 0.1)]),
        ((2, 4, 3), (4,), (4,)),
    ),
    "native_layer_norm": (
        lambda x, w, b: cr.cat([t.reshape(-1) for t in cr.native_layer_norm(x, (4,), w, b, 0.1)]),
        ((2, 3, 4), (4,), (4,)),
    ),
    "rms_norm": (lambda x, w: F.rms_norm(x, (4,), w, 0.1), ((3, 4), (4,))),
    "weight_norm": (lambda v, g: cr.cat([t.reshape(-1) for t in cr._weight_norm_interface(v, g, 1)]), ((3, 4), (1, 4))),
    "weight_norm dim 0": (
        lambda v, g: cr.cat([t.reshape(-1) for t in cr._weight_norm_interface(v, g, 0)]),
        ((3, 4), (3, 1)),
    ),
    "native_batch_norm_backward": (
        lambda g, x, w, m, r: cr.cat(
            [
                t.reshape(-1)
                for t in cr.native_batch_norm_backward(g, x, w, None, None, m, r, True, 0.1, (True, True, True))
            ]
        ),
        ((4, 2, 3), (4, 2, 3), (2,), (2,), (2,)),
    ),
    "native_layer_norm_backward": (
        lambda g, x, m, r, w: cr.cat(
            [t.reshape(-1) for t in cr.native_layer_norm_backward(g, x, (4,), m, r, w, w, (True, True, True))]
        ),
        ((3, 4), (3, 4), (3, 1), (3, 1), (4,)),
    ),
    "native_group_norm_backward": (
        lambda g, x, m, r, w: cr.cat(
            [t.reshape(-1) for t in cr.native_group_norm_backward(g, x, m, r, w, 2, 4, 3, 2, (True, True, True))]
        ),
        ((2, 4, 3), (2, 4, 3), (2, 2), (2, 2), (4,)),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [cr.float64, cr.float32], ids=str)
def test_every_combination(name: str, dtype: Any) -> None:
    f, shapes = CASES[name]
    tol = 1e-10 if dtype is cr.float64 else 2e-4

    def loss(*xs: Any) -> Any:
        return (f(*xs) ** 2).sum()

    for batched in itertools.product([True, False], repeat=len(shapes)):
        if True not in batched:
            continue
        xs = [draw(B, *s).to(dtype) if on else draw(*s).to(dtype) for s, on in zip(shapes, batched, strict=True)]
        dims = tuple(0 if on else None for on in batched)
        nums = tuple(range(len(xs)))
        for h in (f, grad(loss, argnums=nums), lambda *a: jvp(f, a, a)[1]):
            got = vmap(h, in_dims=dims)(*xs)
            for k in range(B):
                want = h(*[x[k] if on else x for x, on in zip(xs, batched, strict=True)])
                for a, b in zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]:
                    np.testing.assert_allclose(a[k].numpy(), b.numpy(), rtol=tol, atol=tol)


@pytest.mark.parametrize("name", ["batch_norm training", "native_group_norm", "native_layer_norm", "weight_norm"])
def test_nested(name: str) -> None:
    f, shapes = CASES[name]
    x, rest = draw(2, B, *shapes[0]), [draw(B, *s) for s in shapes[1:]]

    def loss(*xs: Any) -> Any:
        return (f(*xs) ** 3).sum()

    for h in (f, grad(loss)):
        inner = vmap(h, in_dims=(0, *[0] * len(rest)))
        got = vmap(inner, in_dims=(0, *[None] * len(rest)))(x, *rest)
        flipped = vmap(vmap(h, in_dims=(0, *[None] * len(rest))), in_dims=(1, *[0] * len(rest)), out_dims=1)(x, *rest)
        for i, j in itertools.product(range(2), range(B)):
            want = h(x[i, j], *[r[j] for r in rest]).numpy()
            np.testing.assert_allclose(got[i, j].numpy(), want, rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(flipped[i, j].numpy(), want, rtol=1e-9, atol=1e-10)


def test_running_statistics_with_a_batch_axis() -> None:
    x, m, v = draw(B, 6, 2), draw(B, 2), draw(B, 2)

    def f(x: Any, m: Any, v: Any) -> Any:
        y = F.batch_norm(x, m, v, training=True, momentum=0.3)
        return y, m, v

    m0, v0 = m.clone(), v.clone()
    got = vmap(f)(x, m, v)
    for k in range(B):
        want = f(x[k], m0[k].clone(), v0[k].clone())
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a[k].numpy(), b.numpy(), rtol=1e-12)
    # What was written to the mapped arguments shows in them, as without vmap.
    assert bool((m == got[1]).all()) and bool((v == got[2]).all()) and not bool((m == m0).all())


@pytest.mark.parametrize("shared", ["running_mean", "running_var"])
def test_shared_running_statistics_are_refused(shared: str) -> None:
    x = draw(B, 6, 2)
    stats = {"running_mean": draw(B, 2), "running_var": draw(B, 2)}
    stats[shared] = stats[shared][0]
    dims = {k: (None if k == shared else 0) for k in stats}
    with pytest.raises(RuntimeError, match=shared + r" is shared(?s:.*)track_running_stats=False"):
        vmap(
            lambda x, m, v: F.batch_norm(x, m, v, training=True), in_dims=(0, dims["running_mean"], dims["running_var"])
        )(x, stats["running_mean"], stats["running_var"])
    evaluate = vmap(lambda x, m, v: F.batch_norm(x, m, v), in_dims=(0, dims["running_mean"], dims["running_var"]))
    assert evaluate(x, stats["running_mean"], stats["running_var"]).shape == (B, 6, 2)


def test_statistics_made_inside_are_those_of_each_example() -> None:
    """Only what all examples share cannot take statistics that differ; a layer that is made inside is each example's own."""

    def f(x):
        layer = cr.nn.BatchNorm1d(2, dtype=cr.float64)
        y = layer(x)
        mean, var = cr.zeros(2, dtype=cr.float64), cr.ones(2, dtype=cr.float64)
        z = cr.nn.functional.instance_norm(x.mT[None], mean, var, use_input_stats=True)
        return (y**3).sum() + (z * layer.running_mean[:, None]).sum(), layer.running_var, mean + var

    x = cr.tensor(np.random.default_rng(0).normal(size=(3, 4, 2)))
    for got, want in zip(vmap(f)(x), zip(*map(f, x), strict=True), strict=True):
        np.testing.assert_allclose(got.detach().numpy(), cr.stack(want).detach().numpy(), rtol=1e-12)
    slope = grad(lambda x: f(x)[0])
    np.testing.assert_allclose(vmap(slope)(x).numpy(), cr.stack([*map(slope, x)]).numpy(), rtol=1e-12)
