"""Layers that a compiled function makes have new initial values at every call: those that they have without jit."""

from __future__ import annotations

from typing import Any

import numpy as np

import chainrule as cr
from chainrule.func import grad

X = cr.tensor([0.3, 0.4], dtype=cr.float64)


def _seeded(x: Any) -> Any:
    cr.manual_seed(5)
    layer, cell = cr.nn.Linear(2, 3, dtype=cr.float64), cr.nn.LSTMCell(2, 2, dtype=cr.float64)
    w = cr.nn.init.orthogonal_(cr.empty(3, 3, dtype=cr.float64))
    cr.nn.init.sparse_(w[:, :2], 0.5)
    w[2:].normal_()
    return (layer(x).tanh() @ w).sum() + cell(x[None])[0].sum()


def test_of_a_seed() -> None:
    compiled = cr.jit(_seeded)
    slopes = [cr.jit(grad(_seeded)), grad(compiled)]
    for k in range(3):
        x = X + k
        np.testing.assert_allclose(compiled(x).detach().numpy(), _seeded(x).detach().numpy(), rtol=1e-12)
        for slope in slopes:
            np.testing.assert_allclose(slope(x).numpy(), grad(_seeded)(x).numpy(), rtol=1e-12)


def test_of_every_call() -> None:
    def f(x: Any) -> Any:
        return cr.nn.Linear(2, 1, dtype=cr.float64)(x).sum().detach()

    runs = []
    for g in (f, cr.jit(f)):
        cr.manual_seed(0)
        runs.append([float(g(X)) for _ in range(4)])
    assert len(set(runs[0])) == 4
    np.testing.assert_allclose(runs[1], runs[0], rtol=1e-14)


def test_backward_inside() -> None:
    def slope(x: Any) -> Any:
        layer = cr.nn.Linear(2, 1, dtype=cr.float64)
        layer(x).sum().backward()
        return layer.weight.grad

    assert cr.jit(slope)(X).tolist() == [X.tolist()]
