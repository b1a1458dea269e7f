"""differentiable=True with a learning rate that is a tensor: the derivative of what was learnt by the rate, for every optimiser."""

from __future__ import annotations

import pytest

import chainrule as cr
from chainrule import optim

RULES = "SGD Adam AdamW Adamax NAdam RAdam Adagrad Adadelta RMSprop ASGD Rprop".split()


def learnt(name: str, lr: cr.Tensor) -> cr.Tensor:
    w = cr.tensor([1.0, 2.0, -3.0], dtype=cr.float64, requires_grad=True).clone()
    optimiser = getattr(optim, name)([w], lr=lr, differentiable=True)
    for _ in range(3):
        w.grad = w * cr.tensor([1.0, 2.0, 3.0], dtype=cr.float64)
        optimiser.step()
    return (w**2).sum()


@pytest.mark.parametrize("name", RULES)
def test_the_derivative_by_the_rate(name: str) -> None:
    lr = cr.tensor(0.1, dtype=cr.float64, requires_grad=True)
    (got,) = cr.autograd.grad(learnt(name, lr), lr)
    up, down = (learnt(name, cr.tensor(0.1 + h, dtype=cr.float64, requires_grad=True)).item() for h in (1e-5, -1e-5))
    want = (up - down) / 2e-5
    assert abs(want) > 0.01
    assert got.item() == pytest.approx(want, rel=1e-6)
