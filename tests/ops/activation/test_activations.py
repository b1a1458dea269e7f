"""What the laws cannot see: kernels against NumPy, tails, in-place forms, cotangents at flat pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule.core.op import OPS
from chainrule.ops.elementwise import formulas as compiled

F = cr.nn.functional
EDGES = [
    -np.inf,
    -1e30,
    -200.0,
    -6.0,
    -3.0,
    -1.0,
    -0.5,
    -1e-8,
    -0.0,
    0.0,
    1e-8,
    0.5,
    1.0,
    3.0,
    6.0,
    20.5,
    200.0,
    1e30,
    np.inf,
    np.nan,
]
COMPILED = [
    ("relu", {}),
    ("hardtanh", {"lo": -1.0, "hi": 2.0}),
    ("leaky_relu", {"slope": 0.01}),
    ("hardsigmoid", {}),
    ("hardswish", {}),
    ("elu", {"alpha": 1.5, "scale": 1.05, "rate": 0.5}),
    ("log_sigmoid", {}),
    ("softplus", {"beta": 2.0, "top": 5.0}),
    ("silu", {}),
    ("mish", {}),
    ("gelu", {}),
    ("gelu_tanh", {}),
    ("huber", {"delta": 0.75}),
    ("softsign", {}),
    ("tanhshrink", {}),
]
SMOOTH = ["elu", "celu", "selu", "softplus", "logsigmoid", "silu", "mish", "gelu", "softsign", "tanhshrink"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("name", "static"), COMPILED, ids=[n for n, _ in COMPILED])
def test_kernels_agree_with_numpy(name, static, dtype, monkeypatch):
    from chainrule.kernels import available

    if not available():
        pytest.skip("no llvmlite")
    rng = np.random.default_rng(0)
    x = np.concatenate([EDGES, rng.standard_normal(1000) * 4, rng.standard_normal(1000) * 30]).astype(dtype)
    t = rng.standard_normal(x.shape).astype(dtype)
    for op, args in ((name, (x,)), (f"{name}_pull", (t, x))):
        found = {}
        for least in (1, 1 << 40):
            monkeypatch.setattr(compiled, "LEAST", least)
            found[least] = OPS[op].bind(*map(cr.from_numpy, args), **static).numpy()
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(found[1], found[1 << 40], rtol=2000 * eps, atol=4 * eps, err_msg=op)


@pytest.mark.parametrize("name", SMOOTH)
def test_tails_are_finite_to_third_order(name):
    x = cr.tensor([-1e200, -750.0, -50.0, 0.0, 50.0, 750.0, 1e200], dtype=cr.float64)
    f = getattr(F, name)
    for _ in range(3):
        f = cr.func.grad(lambda x, f=f: f(x).sum())
        y = f(x).numpy()
        assert np.isfinite(y).all(), y
    assert np.all(np.abs(y[[0, -1]]) < 1e-12)


def test_tails_keep_their_digits():
    x = cr.tensor([-50.0, -600.0], dtype=cr.float64)
    slope = cr.func.grad(lambda x: F.softplus(x).sum())
    curve = cr.func.grad(lambda x: slope(x).sum())
    np.testing.assert_allclose(slope(x).numpy(), np.exp([-50.0, -600.0]), rtol=1e-13)
    np.testing.assert_allclose(curve(x).numpy(), np.exp([-50.0, -600.0]), rtol=1e-13)
    loss = cr.func.grad(
        lambda x: F.binary_cross_entropy_with_logits(x, cr.tensor([0.0, 1.0], dtype=cr.float64), reduction="sum")
    )
    np.testing.assert_allclose(
        loss(x * cr.tensor([1.0, -1.0], dtype=cr.float64)).numpy(), [np.exp(-50.0), -np.exp(-600.0)], rtol=1e-13
    )


@pytest.mark.parametrize("name", ["relu", "celu", "elu", "hardtanh", "leaky_relu", "rrelu", "selu"])
def test_in_place(name):
    x = cr.tensor([-1.0, 2.0], dtype=cr.float64)
    want = getattr(F, name)(x).numpy()
    for write in (getattr(F, f"{name}_"), lambda y: getattr(F, name)(y, inplace=True)):
        y = x.clone()
        assert write(y) is y
        np.testing.assert_array_equal(y.numpy(), want)


def test_random_slopes_follow_the_seed_and_the_bounds():
    x = -cr.ones(1000, dtype=cr.float64)
    cr.manual_seed(0)
    a = cr.rrelu(x, 0.1, 0.3, training=True)
    cr.manual_seed(0)
    np.testing.assert_array_equal(a.numpy(), cr.rrelu(x, 0.1, 0.3, training=True).numpy())
    assert -0.3 <= a.numpy().min() < -0.29 and -0.11 < a.numpy().max() <= -0.1


def test_hard_gumbel_is_one_hot_with_a_soft_gradient():
    logits = cr.zeros(5, 4, dtype=cr.float64)

    def f(x, hard):
        cr.manual_seed(3)
        return F.gumbel_softmax(x, tau=0.5, hard=hard)

    y = f(logits, True).numpy()
    np.testing.assert_allclose(np.sort(y, -1), np.broadcast_to([0.0, 0, 0, 1], (5, 4)), atol=1e-15)
    w = cr.arange(4, dtype=cr.float64)
    hard, soft = (cr.func.grad(lambda x, h=h: (f(x, h) * w).sum())(logits) for h in (True, False))
    np.testing.assert_allclose(hard.numpy(), soft.numpy())


@pytest.mark.parametrize("name", ["hardswish", "hardshrink", "softshrink", "hardsigmoid", "hardtanh", "leaky_relu"])
def test_infinite_cotangents_stop_at_flat_pieces(name: str) -> None:
    x = [-4.0, -3.0, -0.25, 0.25, 3.0, 4.0]
    a, b = torch.tensor(x, requires_grad=True), cr.tensor(x, requires_grad=True)
    for lib, t in ((torch, a), (cr, b)):
        y = getattr(lib.nn.functional, name)(t)
        y.backward(lib.full_like(y, float("inf")))
    assert np.array_equal(b.grad.numpy(), a.grad.numpy(), equal_nan=True)


@pytest.mark.parametrize("name", ["hardshrink", "softshrink", "threshold", "prelu", "hardswish"])
def test_large_arrays_as_small_ones(name: str) -> None:
    """Compiled loops agree with NumPy's formulas, for values and gradients, NaN and infinities included."""
    x = cr.linspace(-4, 4, 20001, dtype=cr.float64)
    x[0], x[1], x[2], x[3] = float("nan"), float("inf"), -float("inf"), 0.5
    more = {"threshold": (0.25, -2.0), "prelu": (cr.tensor([0.3], dtype=cr.float64),)}.get(name, ())
    f = getattr(cr.nn.functional, name)

    def both(v: Any) -> tuple[Any, Any]:
        y, pull = cr.func.vjp(lambda v: f(v, *more), v)
        return y, pull(v + 1)[0]

    whole, parts = both(x), [both(p) for p in x.split(1000)]
    for k in range(2):
        assert cr.equal(whole[k].nan_to_num(7.0), cr.cat([p[k] for p in parts]).nan_to_num(7.0))
