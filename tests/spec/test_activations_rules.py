"""Rules of activations and dropout: first to third order, both sides of each kink."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, jvp, vjp, vmap

from .judge import array, case, gradient, gradients, judge, mathematics, require, row, same, values

X = np.array([[-2.3, -0.7, 0.4], [1.9, 3.6, -4.2]])
INF, NAN = float("inf"), float("nan")

ACTIVATIONS = {
    "elu": lambda F, x: F.elu(x, alpha=1.3),
    "celu": lambda F, x: F.celu(x, alpha=1.3),
    "selu": lambda F, x: F.selu(x),
    "softplus": lambda F, x: F.softplus(x),
    "softplus-beta": lambda F, x: F.softplus(x, beta=2.0, threshold=3.0),
    "logsigmoid": lambda F, x: F.logsigmoid(x),
    "softmax": lambda F, x: F.softmax(x, dim=-1),
    "softmax-first": lambda F, x: F.softmax(x, dim=0),
    "softmin": lambda F, x: F.softmin(x, dim=1),
    "log_softmax": lambda F, x: F.log_softmax(x, dim=-1),
    "log_softmax-first": lambda F, x: F.log_softmax(x, dim=0),
    "gelu": lambda F, x: F.gelu(x),
    "gelu-tanh": lambda F, x: F.gelu(x, approximate="tanh"),
    "threshold": lambda F, x: F.threshold(x, 0.5, -2.0),
    "relu": lambda F, x: F.relu(x),
    "relu6": lambda F, x: F.relu6(x),
    "hardtanh": lambda F, x: F.hardtanh(x, -1.0, 2.0),
    "hardswish": lambda F, x: F.hardswish(x),
    "hardsigmoid": lambda F, x: F.hardsigmoid(x),
    "leaky_relu": lambda F, x: F.leaky_relu(x, 0.2),
    "rrelu": lambda F, x: F.rrelu(x, training=False),
    "hardshrink": lambda F, x: F.hardshrink(x),
    "softshrink": lambda F, x: F.softshrink(x),
    "tanhshrink": lambda F, x: F.tanhshrink(x),
    "softsign": lambda F, x: F.softsign(x),
}
# Where the function bends: PyTorch says which side counts.
KINKS = {
    "elu": [0.0],
    "celu": [0.0],
    "selu": [0.0],
    "softplus-beta": [1.5, 1.5000001],
    "threshold": [0.5],
    "relu": [0.0, -0.0],
    "relu6": [0.0, 6.0],
    "hardtanh": [-1.0, 2.0],
    "hardswish": [-3.0, 3.0],
    "hardsigmoid": [-3.0, 3.0],
    "leaky_relu": [0.0],
    "rrelu": [0.0],
    "hardshrink": [0.5, -0.5],
    "softshrink": [0.5, -0.5],
    "softsign": [0.0],
}


@row("activations")
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_to_third_order(name: str) -> None:
    f = ACTIVATIONS[name]
    # PyTorch's constants in these two have 24 bits.
    rough = name in ("celu", "hardsigmoid")
    g = lambda m, x: f(m.nn.functional, x)
    judge(f"F.{name.split('-')[0]}", g, X, order=3, oracle="value" if rough else "value gradient")
    if rough:
        gradients(g, X, tol=1e-7)


@row("activations")
@pytest.mark.parametrize("name", KINKS)
def test_activation_at_its_kinks(name: str) -> None:
    f = ACTIVATIONS[name]
    rough = name in ("celu", "hardsigmoid")
    g = lambda m, x: f(m.nn.functional, x)
    at = np.array(KINKS[name])
    judge(f"F.{name.split('-')[0]}", g, at, smooth=False, oracle="value" if rough else "value gradient")
    if rough:
        gradients(g, at, tol=1e-7)


@row("activations")
@pytest.mark.parametrize("name", ["softplus", "logsigmoid", "gelu", "gelu-tanh", "elu", "softsign"])
def test_activation_far_out(name: str) -> None:
    f = ACTIVATIONS[name]
    far = np.array([-800.0, -40.0, 40.0, 800.0])
    judge(f"F.{name.split('-')[0]}", lambda m, x: f(m.nn.functional, x), far, smooth=False)


@row("activations")
def test_softmax_at_infinity_and_of_nothing() -> None:
    masked = np.array([[0.0, -INF, 1.0], [-INF, -INF, 2.0]])
    judge("F.softmax", lambda m, x: m.nn.functional.softmax(x, 1), masked, smooth=False)
    big = np.array([[1000.0, 1001.0, -1000.0]])
    for name in ("softmax", "log_softmax"):
        f = lambda m, x, name=name: getattr(m.nn.functional, name)(x, 1)
        judge(f"F.{name}", f, big, smooth=False)
        values(f, np.array([[-INF, -INF], [INF, 0.0], [NAN, 1.0]]))
        judge(f"F.{name}", f, np.zeros((2, 0)))
        judge(f"F.{name}", lambda m, x, name=name: getattr(m.nn.functional, name)(x, 0), np.array(2.0))


@row("activations")
@pytest.mark.parametrize("shape", [(1,), (3,)])
def test_prelu(shape: tuple[int, ...]) -> None:
    f = lambda m, x, w: m.nn.functional.prelu(x, w)
    judge("F.prelu", f, array(2, 3, 2), array(*shape, seed=1), order=3)
    judge("F.prelu", f, np.array([[0.0, -1.0, 2.0]]), array(*shape, seed=1), smooth=False)


@row("activations")
def test_rrelu_in_training_is_differentiable_with_its_own_noise() -> None:
    require("F.rrelu")
    x = cr.tensor(X)

    def f(v):
        cr.manual_seed(3)
        return cr.nn.functional.rrelu(v, 0.1, 0.4, training=True)

    slope = (f(x) / x).numpy()
    assert (slope[X > 0] == 1).all() and ((slope[X < 0] >= 0.1) & (slope[X < 0] <= 0.4)).all()
    assert len(np.unique(slope[X < 0])) > 1
    same(grad(lambda v: f(v).sum())(x).numpy(), slope, "gradient")
    mathematics(case("F.rrelu", lambda m, v: f(v), X), vmap=False)


@row("glu")
def test_glu() -> None:
    x = array(4, 6)
    for dim in (0, 1, -1):
        judge("F.glu", lambda m, x, d=dim: m.nn.functional.glu(x, d), x, order=3)
    judge("F.glu", lambda m, x: m.nn.functional.glu(x, 1), array(2, 2, 3))
    judge("F.glu", lambda m, x: m.nn.functional.glu(x), np.array([800.0, -800.0, 800.0, -800.0]), smooth=False)
    judge("F.glu", lambda m, x: m.nn.functional.glu(x, 0), np.zeros((0, 3)))
    with pytest.raises(RuntimeError, match="even"):
        cr.nn.functional.glu(cr.zeros(3))


@row("silu")
@pytest.mark.parametrize("name", ["silu", "mish", "logit", "logit-eps"])
def test_silu_mish_logit_to_third_order(name: str) -> None:
    if name.startswith("logit"):
        eps = 0.1 if name == "logit-eps" else None
        f = lambda m, x: m.logit(x, eps)
        judge("logit", f, np.array([0.2, 0.5, 0.83, 0.3]), order=3)
        values(f, np.array([0.0, 1.0, -0.1, 1.1, 0.05, 0.95, NAN]))
        judge("logit", f, np.array([0.05, 0.97, 0.5]), smooth=eps is None)
        if eps:
            judge("logit", f, np.array([0.1, 0.9]), smooth=False)
        return
    f = lambda m, x: getattr(m.nn.functional, name)(x)
    judge(f"F.{name}", f, X, order=3)
    judge(f"F.{name}", f, np.array([0.0, 1e-9]), order=3)
    judge(f"F.{name}", f, np.array([-800.0, 800.0, -30.0]), smooth=False)
    if name == "silu":
        # PyTorch has the value and no derivative.
        values(f, array(3, cx=True))
        mathematics(case("F.silu", f, array(3, cx=True)), order=3)


# -- dropout ------------------------------------------------------------------------------------------------------------

DROPOUTS = {
    "dropout": ((2, 3), {}),
    "alpha_dropout": ((2, 3), {}),
    "feature_alpha_dropout": ((2, 3, 2), {}),
    "dropout1d": ((2, 3, 2), {}),
    "dropout2d": ((2, 3, 2, 2), {}),
    "dropout3d": ((2, 3, 2, 2, 2), {}),
}


@row("dropout")
@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_with_certainty(name: str) -> None:
    shape, _ = DROPOUTS[name]
    for p in (0.0, 1.0):
        judge(f"F.{name}", lambda m, x, p=p: getattr(m.nn.functional, name)(x, p, True), array(*shape), order=3)
    judge(f"F.{name}", lambda m, x: getattr(m.nn.functional, name)(x, 0.5, False), array(*shape))
    judge(f"F.{name}", lambda m, x: getattr(m.nn.functional, name)(x, 0.5, True), np.zeros((0, *shape[1:])), vmap=False)


@row("dropout")
@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_is_affine_at_every_order(name: str) -> None:
    require(f"F.{name}")
    shape, _ = DROPOUTS[name]

    def f(m, x):
        cr.manual_seed(11)
        return getattr(cr.nn.functional, name)(x, 0.4, True)

    mathematics(case(name, f, array(*shape)), vmap=False, order=3)
    with pytest.raises((ValueError, RuntimeError), match="1\\.5"):
        getattr(cr.nn.functional, name)(cr.ones(*shape), 1.5, True)


@row("dropout")
def test_native_dropout() -> None:
    require("native_dropout")
    x = cr.tensor(array(4, 5))

    def f(m, v):
        cr.manual_seed(7)
        return cr.native_dropout(v, 0.4, True)[0]

    cr.manual_seed(7)
    y, mask = cr.native_dropout(x, 0.4, True)
    same(y.numpy(), np.where(mask.numpy(), x.numpy() / 0.6, 0), "value")
    same(gradient(f, x.numpy())[0], mask.numpy() / 0.6, "gradient")
    mathematics(case("native_dropout", f, x.numpy()), vmap=False, order=3)
    for p in (0.0, 1.0):
        judge("native_dropout", lambda m, v, p=p: m.native_dropout(v, p, True), x.numpy(), vmap=False)
    judge("native_dropout", lambda m, v: m.native_dropout(v, 0.5, False), x.numpy())


@row("dropout")
def test_dropout_under_vmap_and_in_forward_mode_uses_one_mask() -> None:
    x = cr.tensor(array(3, 50))
    cr.manual_seed(1)
    y, t = jvp(lambda v: cr.nn.functional.dropout(v, 0.5, True), (x,), (cr.ones_like(x),))
    same(y.numpy(), x.numpy() * t.numpy(), "the tangent has the mask of the value")
    y, pull = vjp(lambda v: cr.nn.functional.dropout(v, 0.5, True), x)
    same(y.numpy(), x.numpy() * pull(cr.ones_like(x))[0].numpy(), "the cotangent has the mask of the value")
    each = vmap(lambda v: cr.nn.functional.dropout(v, 0.5, True), randomness="different")(x).numpy() != 0
    assert (each[0] != each[1]).any()
    one = vmap(lambda v: cr.nn.functional.dropout(v, 0.5, True), randomness="same")(x).numpy() != 0
    assert (one == one[:1]).all()
