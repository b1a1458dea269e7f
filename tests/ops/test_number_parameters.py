"""A tensor in the place of a number: it is differentiated in every mode, or refused; never taken for a constant without a word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import func

F = cr.nn.functional
X = cr.tensor(np.array([[-1.7, 0.3, 2.4], [0.8, -0.4, 1.1]]))
Y = cr.tensor(np.array([[0.2, -1.3, 0.4], [1.9, 0.6, -0.7]]))
IMG = cr.tensor(np.random.default_rng(0).standard_normal((2, 4, 3)))
NAN = cr.tensor([float("nan"), 1.0, float("inf"), -float("inf")], dtype=cr.float64)

CASES: dict[str, tuple[Any, float]] = {
    "pad": (lambda v: F.pad(X, (1, 1), value=v), 0.7),
    "pad cut": (lambda v: F.pad(X, (1, -1, 0, 2), value=v), 0.7),
    "leaky_relu": (lambda v: F.leaky_relu(X, v), 0.1),
    "rrelu": (lambda v: F.rrelu(X, v, 0.3), 0.2),
    "elu": (lambda v: F.elu(X, v), 1.3),
    "scaled elu": (lambda v: cr._C._nn.elu(X, 1.2, v, v), 1.3),
    "celu": (lambda v: F.celu(X, v), 1.3),
    "softplus": (lambda v: F.softplus(X, v, 1.5), 1.2),
    "huber": (lambda v: F.huber_loss(X, 0.6 * Y, delta=v), 1.2),
    "smooth_l1": (lambda v: F.smooth_l1_loss(X, 0.6 * Y, beta=v), 1.2),
    "layer_norm": (lambda v: F.layer_norm(X, (3,), Y[0], Y[1], v) ** 3, 0.1),
    "rms_norm": (lambda v: F.rms_norm(X, (3,), eps=v), 0.1),
    "batch_norm": (lambda v: F.batch_norm(IMG, None, None, training=True, eps=v) ** 3, 0.1),
    "batch_norm evaluated": (lambda v: F.batch_norm(X, Y[0], Y[1] ** 2, eps=v) ** 3, 0.1),
    "group_norm": (lambda v: F.group_norm(IMG, 2, eps=v) ** 3, 0.1),
    "instance_norm": (lambda v: F.instance_norm(IMG, eps=v) ** 3, 0.1),
    "full": (lambda v: cr.full((2, 3), v, dtype=cr.float64), 1.5),
    "full_like": (lambda v: cr.full_like(X, v), 1.5),
    "new_full": (lambda v: X.new_full((2,), v), 1.5),
    "fill": (lambda v: cr.fill(X, v), 1.5),
    "masked_fill": (lambda v: X.masked_fill(X > 0, v), 1.5),
    "threshold": (lambda v: F.threshold(X, 0.1, v), 1.5),
    "hardtanh": (lambda v: F.hardtanh(X, -v, 2 * v), 0.9),
    "softshrink": (lambda v: F.softshrink(X, v), 0.5),
    "nan_to_num": (lambda v: cr.nan_to_num(NAN, v, 2 * v, -v), 0.5),
    "addcmul": (lambda v: cr.addcmul(X, X, Y, value=v), 0.5),
    "addcdiv": (lambda v: cr.addcdiv(X, X, Y, value=v), 0.5),
    "add": (lambda v: cr.add(X, Y, alpha=v), 0.5),
    "addmm": (lambda v: cr.addmm(X @ X.mT, X, Y.mT, beta=v, alpha=2 * v), 0.5),
    "arange": (lambda v: cr.arange(v, 6.0, 2 * v, dtype=cr.float64), 1.3),
    "linspace": (lambda v: cr.linspace(v, 4 * v, 4, dtype=cr.float64), 1.3),
    "cosine_similarity": (lambda v: F.cosine_similarity(X, Y, eps=v), 4.0),
    "margin": (lambda v: F.triplet_margin_loss(X, Y, X * 2, margin=v), 5.0),
    "label_smoothing": (lambda v: F.cross_entropy(X, cr.tensor([0, 1]), label_smoothing=v), 0.2),
    "attention": (lambda v: F.scaled_dot_product_attention(IMG, IMG, IMG, scale=v), 0.7),
    "pad_sequence": (lambda v: cr.nn.utils.rnn.pad_sequence([X[0], X[1, :1]], padding_value=v), 1.5),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_differentiated(name: str) -> None:
    f, at = CASES[name]

    def loss(v: Any) -> Any:
        y = f(v)
        return (y * cr.arange(1.0, y.numel() + 1, dtype=cr.float64).reshape(y.shape)).sum()

    value = lambda v: float(loss(cr.tensor(v, dtype=cr.float64)))
    assert value(at) == pytest.approx(float(loss(at)), rel=1e-12), "a tensor that nobody differentiates is a number"
    want = (value(at + 1e-5) - value(at - 1e-5)) / 2e-5
    t = cr.tensor(at, dtype=cr.float64)
    assert abs(want) > 1e-3
    close = pytest.approx(want, rel=1e-6, abs=1e-6)
    assert float(func.grad(loss)(t)) == close
    assert float(func.jvp(loss, (t,), (cr.ones_like(t),))[1]) == close
    assert func.vjp(f, t)[0].numpy() == pytest.approx(f(at).numpy(), rel=1e-12, abs=1e-14, nan_ok=True)
    second = func.jvp(func.grad(loss), (t,), (cr.ones_like(t),))[1]
    steps = [float(func.grad(loss)(cr.tensor(at + h, dtype=cr.float64))) for h in (1e-5, -1e-5)]
    assert float(second) == pytest.approx((steps[0] - steps[1]) / 2e-5, rel=1e-5, abs=1e-5)
    t.requires_grad_()
    loss(t).backward()
    assert float(t.grad) == close


@pytest.mark.parametrize(
    "f",
    [
        lambda v: cr.norm(X, v),
        lambda v: cr.cdist(X, Y, v),
        lambda v: cr.kaiser_window(5, beta=v),
        lambda v: cr.gradient(X, spacing=v, dim=1)[0],
    ],
)
def test_or_refused(f: Any) -> None:
    t = cr.tensor(2.5, dtype=cr.float64)
    with pytest.raises((TypeError, RuntimeError)):
        func.grad(lambda v: f(v).sum())(t)
    with pytest.raises((TypeError, RuntimeError)):
        func.jvp(lambda v: f(v).sum(), (t,), (t,))
