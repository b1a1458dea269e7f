"""Training from the same weights on the same data: the losses are PyTorch's, step by step, as it is and compiled."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import chainrule
from benchmarks.training import PROGRAMS, batches, both, curves, step_of
from chainrule import optim

torch = pytest.importorskip("torch")


def close(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert np.isfinite(ours).all()
    assert ours[-1] < ours[0]  # it learns
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_first_steps(name: str) -> None:
    both_curves = curves(torch, name, 15)
    close(both_curves["chainrule"], both_curves["PyTorch"])


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_two_hundred_steps(name: str) -> None:
    both_curves = curves(torch, name, 200)
    close(both_curves["chainrule"], both_curves["PyTorch"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiled_step_of_adam(name: str) -> None:
    """The whole step in jit: recorded once more when the state exists, then never again."""
    net, loss, draw = both(torch, name)["chainrule"]
    step = chainrule.jit(step_of(chainrule, net, loss))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = [step(*map(chainrule.tensor, batch)).item() for _, batch in zip(range(8), batches(draw), strict=False)]
    as_it_is = curves(torch, name, 8)
    np.testing.assert_allclose(ours, as_it_is["chainrule"], rtol=1e-5)
    np.testing.assert_allclose(ours, as_it_is["PyTorch"], rtol=1e-5)


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "Adamax", "NAdam", "Adagrad", "RMSprop", "Adadelta", "SGD"])
def test_compiled_steps_are_the_steps(kind: str) -> None:
    def run(compiled: bool) -> chainrule.Tensor:
        p = chainrule.nn.Parameter(chainrule.tensor([1.0, -2.0, 3.0], dtype=chainrule.float64))
        optimiser = getattr(optim, kind)([p], lr=0.1)

        def step(scale: chainrule.Tensor) -> chainrule.Tensor:
            optimiser.zero_grad()
            loss = (scale * p.pow(4)).sum()
            loss.backward()
            optimiser.step()
            return loss

        f = chainrule.jit(step) if compiled else step
        for i in range(6):
            f(chainrule.tensor(1.0 + i, dtype=chainrule.float64))
        return p.detach()

    assert (run(True) - run(False)).abs().max() < 1e-12
