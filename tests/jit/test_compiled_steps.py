"""Compiled steps of training leave what the steps leave: parameters, states, gradients and buffers; so does a recording that is given up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import Tensor, nn, optim
from chainrule.jit.record import JitError

pytestmark = pytest.mark.filterwarnings("ignore:jit.*changes Python objects")
rng = np.random.default_rng(0)
DATA = [(rng.standard_normal((8, 80)), rng.integers(0, 5, 8)) for _ in range(6)]


def plain() -> nn.Module:
    return nn.Sequential(
        nn.Linear(80, 60), nn.Tanh(), nn.Linear(60, 5)
    )  # one weight is large: its example is one number


def noisy() -> nn.Module:
    return nn.Sequential(nn.Linear(80, 60, bias=False), nn.BatchNorm1d(60), nn.Dropout(0.3), nn.Linear(60, 5))


class Tied(nn.Module):
    """One weight in two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(80, 80), nn.Linear(80, 80), nn.Linear(80, 5)
        self.b.weight = self.a.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.c(self.b(self.a(x).tanh()).tanh())


def whole(net: Any, o: Any, none: bool = True, clip: bool = False) -> Any:
    def step(x: Tensor, y: Tensor) -> Tensor:
        o.zero_grad(set_to_none=none)
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        o.step()
        return loss

    return step, lambda i: None


def zeros(net: Any, o: Any) -> Any:
    return whole(net, o, none=False)


def clipped(net: Any, o: Any) -> Any:
    return whole(net, o, clip=True)


def scheduled(net: Any, o: Any) -> Any:
    schedule = optim.lr_scheduler.StepLR(o, 2, 0.5)
    return whole(net, o)[0], lambda i: schedule.step()


def cleared(net: Any, o: Any) -> Any:
    return whole(net, o)[0], lambda i: o.state.clear() if i == 2 else None


def loaded(net: Any, o: Any) -> Any:
    return whole(net, o)[0], lambda i: o.load_state_dict(o.state_dict()) if i == 2 else None


def accumulated(net: Any, o: Any, none: bool = True) -> Any:
    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        return loss

    def after(i: int) -> None:
        if i == 2:
            o.step()
            o.zero_grad(set_to_none=none)

    return step, after


def accumulated_on_zeros(net: Any, o: Any) -> Any:
    return accumulated(net, o, False)


def never_cleared(net: Any, o: Any) -> Any:
    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        o.step()
        return loss

    return step, lambda i: None


def results(net_of: Callable[[], Any], optimiser: Any, how: Any, compiled: bool) -> dict[str, Any]:
    chainrule.manual_seed(0)
    net = net_of().double()
    o = optimiser(net.parameters())
    step, after = how(net, o)
    f = chainrule.jit(step) if compiled else step
    out: dict[str, Any] = {}
    for i, (x, y) in enumerate(DATA):
        out[f"loss {i}"] = f(chainrule.tensor(x), chainrule.tensor(y)).item()
        after(i)
    out |= {k: v.detach().numpy() for k, v in net.state_dict().items()}
    out |= {f"gradient of {k}": p.grad.numpy() for k, p in net.named_parameters() if p.grad is not None}
    states = [(k, p, o.state[p]) for k, p in net.named_parameters() if p in o.state]
    return out | {f"{name} of {k}": v.numpy() for k, _, s in states for name, v in s.items() if v is not None}


OPTIMISERS: dict[str, Any] = {
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "AMSGrad": lambda p: optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
    "Adam, rate a tensor": lambda p: optim.Adam(p, lr=chainrule.tensor(0.01)),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01),
    "RAdam": lambda p: optim.RAdam(p, lr=0.01),
    "RAdam, scaled": lambda p: optim.RAdam(p, lr=0.01, betas=(0.9, 0.5)),
    "RAdam, soon scaled": lambda p: optim.RAdam(p, lr=0.01, betas=(0.9, 0.9)),
    "ASGD": lambda p: optim.ASGD(p, lr=0.1, lambd=0.1),
    "ASGD, averages": lambda p: optim.ASGD(p, lr=0.1, lambd=0.1, t0=1),
    "NAdam": lambda p: optim.NAdam(p, lr=0.01),
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, maximize=True),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01, centered=True, momentum=0.9),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.01, lr_decay=0.1),
}
HOW = [zeros, clipped, scheduled, cleared, loaded, accumulated, accumulated_on_zeros, never_cleared]
CASES = [
    *[(plain, o, whole) for o in OPTIMISERS],
    *[(plain, o, how) for o in ("Adam", "momentum") for how in HOW],
    *[(net, o, how) for net in (noisy, Tied) for o in ("Adam", "momentum") for how in (whole, zeros)],
]


@pytest.mark.parametrize(("net", "optimiser", "how"), CASES)
def test_compiled_steps_leave_what_the_steps_leave(net: Any, optimiser: str, how: Any) -> None:
    ours, true = (results(net, OPTIMISERS[optimiser], how, compiled) for compiled in (True, False))
    assert ours.keys() == true.keys()
    for k, v in true.items():
        np.testing.assert_allclose(ours[k], v, rtol=1e-10, atol=1e-10 * np.abs(v).max(), err_msg=k)


def test_a_step_that_looks_at_numbers_is_refused_and_leaves_nothing() -> None:
    p = nn.Parameter(chainrule.ones(3))
    o = optim.LBFGS([p])

    def step() -> Tensor:
        def loss() -> Tensor:
            o.zero_grad()
            value = (p * p).sum()
            value.backward()
            return value

        return o.step(loss)

    f = chainrule.jit(step)
    with pytest.raises(JitError, match="needs the elements"):
        f(), f()
    assert p.is_leaf and all(not v.requires_grad for s in o.state.values() for v in s.values() if isinstance(v, Tensor))
    step()  # what there is can go on without jit


def test_looking_at_the_code_of_a_step_makes_no_step() -> None:
    p = nn.Parameter(chainrule.ones(3))
    o = optim.Adam([p])

    def step(x: Tensor) -> None:
        (p * x).sum().backward()
        o.step()

    chainrule.jit(step).lower(chainrule.ones(3))
    assert not o.state and p.grad is None and p.tolist() == [1, 1, 1]


def test_what_changes_an_attribute_changes_it_at_every_call() -> None:
    class Turn:
        on = False

        def __call__(self, x: Tensor) -> Tensor:
            self.on = not self.on
            return x * (2 if self.on else 3)

    f = chainrule.jit(Turn())
    assert [f(chainrule.tensor(1.0)).item() for _ in range(6)] == [2, 3, 2, 3, 2, 3]


@pytest.mark.parametrize("kind", [list, deque, set])
def test_what_fills_a_container_fills_it_at_every_call(kind: Any) -> None:
    filled = kind()

    def f(x: Tensor) -> Tensor:
        filled.add(len(filled)) if kind is set else filled.append(len(filled))
        return x + len(filled)

    compiled = chainrule.jit(f)
    assert [compiled(chainrule.tensor(0.0)).item() for _ in range(3)] == [1, 2, 3]
    with pytest.raises(JitError):
        chainrule.jit(lambda x: x if f(x) > 0 else -x)(chainrule.tensor(0.0))
    assert filled == kind(range(3))


def test_gradients_of_arguments_add_up() -> None:
    def add(p: Tensor, x: Tensor) -> None:
        (p * x).sum().backward()

    f, p = chainrule.jit(add), chainrule.ones(3, requires_grad=True)
    for i in range(4):
        f(p, chainrule.full((3,), float(i)))
    assert p.grad.tolist() == [6, 6, 6]


def test_an_argument_that_is_held_too() -> None:
    w = chainrule.tensor([2.0, 3.0], requires_grad=True)
    f, v = chainrule.jit(lambda x: x * w), chainrule.tensor([10.0, 10.0], requires_grad=True)
    assert [f(x).tolist() for x in (w, v, w)] == [[4, 9], [20, 30], [4, 9]]
