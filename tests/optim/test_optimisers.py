"""Optimisers and schedules beside PyTorch's: the same steps from the same gradients."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr

OPTIMISERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "betas": (0.5, 0.7), "weight_decay": 0.1, "amsgrad": True}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.2}),
    ("AdamW", {"lr": 0.1, "amsgrad": True, "maximize": True}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1, "betas": (0.5, 0.9), "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("Adadelta", {"lr": 0.5, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.5, "centered": True}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "t0": 2}),
    ("Rprop", {"lr": 0.1}),
]


def problem(lib: Any, x: np.ndarray) -> tuple[Any, Any]:
    p = lib.tensor(x).requires_grad_()
    return p, lambda: ((p - 1) ** 4).sum() + (p[0] * p[1]).sum()


@pytest.mark.parametrize(("name", "kw"), OPTIMISERS, ids=str)
def test_like_pytorch(name: str, kw: dict[str, Any]) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4))
    runs = []
    for lib in (cr, torch):
        p, f = problem(lib, x)
        opt = getattr(lib.optim, name)([p], **kw)
        for _ in range(5):
            opt.zero_grad()
            f().backward()
            opt.step()
        runs.append(p.detach().numpy())
    np.testing.assert_allclose(*runs, rtol=1e-10)


def test_groups_closures_and_states() -> None:
    a, b = cr.nn.Parameter(cr.ones(2)), cr.nn.Parameter(cr.ones(2))
    opt = cr.optim.Adam([{"params": [a], "lr": 0.5}, {"params": b}], lr=0.1)

    def closure() -> Any:
        opt.zero_grad()
        loss = (a**2).sum() + (b**2).sum()
        loss.backward()
        return loss

    assert float(opt.step(closure)) == 4
    np.testing.assert_allclose(a.detach().numpy(), 0.5, rtol=1e-5)
    np.testing.assert_allclose(b.detach().numpy(), 0.9, rtol=1e-5)
    saved, values = copy.deepcopy(opt.state_dict()), (a.detach().clone(), b.detach().clone())
    opt.step(closure)
    want = a.detach().clone(), b.detach().clone()
    with cr.no_grad():
        a.copy_(values[0])
        b.copy_(values[1])
    again = cr.optim.Adam([{"params": [a]}, {"params": [b]}], lr=9.0)
    again.load_state_dict(saved)
    opt = again
    opt.step(closure)
    assert (a == want[0]).all() and (b == want[1]).all() and a.is_leaf and a.requires_grad
    with pytest.raises(ValueError, match="more than one"):
        opt.add_param_group({"params": [a]})
    with pytest.raises(ValueError, match="empty"):
        cr.optim.SGD([])
    with pytest.raises(ValueError, match="learning rate"):
        cr.optim.SGD([a], lr=-1.0)


SCHEDULES = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 3}),
    ("LinearLR", {"start_factor": 0.25, "total_iters": 4}),
    ("PolynomialLR", {"total_iters": 6, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2}),
    ("LambdaLR", {"lr_lambda": lambda t: 1 / (1 + t)}),
    ("MultiplicativeLR", {"lr_lambda": lambda t: 0.9}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 12, "cycle_momentum": False}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 12, "cycle_momentum": False, "anneal_strategy": "linear"}),
]


@pytest.mark.parametrize(("name", "kw"), SCHEDULES, ids=[s[0] for s in SCHEDULES])
@pytest.mark.filterwarnings("ignore")
def test_schedules_like_pytorch(name: str, kw: dict[str, Any]) -> None:
    rates = []
    for lib in (cr, torch):
        opt = lib.optim.SGD([lib.ones(1).requires_grad_()], lr=0.3)
        s = getattr(lib.optim.lr_scheduler, name)(opt, **kw)
        rates.append([])
        for _ in range(10):
            rates[-1].append(opt.param_groups[0]["lr"])
            opt.step()
            s.step()
    np.testing.assert_allclose(*rates, rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_combined_schedules_like_pytorch() -> None:
    rates = []
    for lib in (cr, torch):
        sch = lib.optim.lr_scheduler
        for kind in ("sequential", "chained", "plateau"):
            opt = lib.optim.SGD([lib.ones(1).requires_grad_()], lr=0.3)
            if kind == "sequential":
                s = sch.SequentialLR(opt, [sch.LinearLR(opt, 0.1, total_iters=3), sch.ExponentialLR(opt, 0.9)], [3])
            elif kind == "chained":
                s = sch.ChainedScheduler([sch.ConstantLR(opt, 0.1, 3), sch.ExponentialLR(opt, 0.9)])
            else:
                s = sch.ReduceLROnPlateau(opt, patience=1, factor=0.5, cooldown=1)
            for t in range(10):
                rates.append(opt.param_groups[0]["lr"])
                opt.step()
                s.step(*([1.0 if t < 3 else 0.5] if kind == "plateau" else []))
    np.testing.assert_allclose(rates[:30], rates[30:], rtol=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda ps: cr.optim.SGD(ps, lr=0.1, momentum=0.9),
        lambda ps: cr.optim.Adam(ps, lr=0.1),
        lambda ps: cr.optim.AdamW(ps, lr=0.1, amsgrad=True),
    ],
    ids=["SGD", "Adam", "AdamW"],
)
def test_a_nested_parameter_moves_like_its_components(make):
    parts = [np.random.default_rng(i).standard_normal((n, 3)) for i, n in enumerate((2, 0, 4))]
    nest = cr.nested.nested_tensor(parts).requires_grad_()
    apart = [cr.tensor(p).requires_grad_() for p in parts]
    one, many = make([nest]), make(apart)
    for _ in range(4):
        one.zero_grad()
        many.zero_grad()
        (nest * nest).sin().sum((1, 2)).sum().backward()
        for p in apart:
            (p * p).sin().sum().backward()
        one.step()
        many.step()
    for a, b in zip(nest.unbind(), apart, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize(("name", "kw"), OPTIMISERS, ids=str)
def test_complex_parameters_like_pytorch(name: str, kw: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))
    runs = []
    for lib in (cr, torch):
        p = lib.tensor(x).T.detach().requires_grad_()  # strides of its own
        opt = getattr(lib.optim, name)([p], **kw)
        for _ in range(4):
            opt.zero_grad()
            ((p - 1) ** 2).abs().sum().backward()
            opt.step()
        runs.append(p.detach().numpy())
    np.testing.assert_allclose(*runs, rtol=1e-9)


OPTIONS: dict[str, Any] = {"SGD": {"momentum": 0.9}, "Adam": {"amsgrad": True}, "AdamW": {"amsgrad": True}}
MAKERS = [lambda lib: lib.optim.SGD, lambda lib: lib.optim.Adam, lambda lib: lib.optim.AdamW]
LOSSES = [
    lambda p: (p**2).sum(),
    lambda p: (p.T @ p).sin().sum(),
    lambda p: p[0].sin().sum(),
    lambda p: p.reshape(-1)[1:].exp().sum(),
    lambda p: sum(u.exp().sum() for u in p.unbind(0)),
    lambda p: (p.detach() * p).sum(),
    lambda p: p.expand(3, 2, 2).sin().sum(),
    lambda p: p.diagonal().exp().sum(),
]
DETACHED = 5


@pytest.mark.parametrize("make", MAKERS, ids=["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize("lib", [cr, torch], ids=["chainrule", "torch"])
def test_a_step_writes_into_the_memory_of_the_parameter(lib: Any, make: Any) -> None:
    for k, loss in enumerate(LOSSES):
        p = lib.nn.Parameter(lib.tensor([[1.0, 2.0], [3.0, 4.0]]))
        seen, data, first = p.detach().numpy(), p.data, p.detach()[0]
        opt = make(lib)([p], lr=0.1)
        before = seen.copy()
        for _ in range(3):
            y = loss(p)
            opt.zero_grad()
            y.backward()
            opt.step()
        now = p.detach().numpy()
        assert (now != before).any()
        np.testing.assert_array_equal(data.numpy(), now)
        np.testing.assert_array_equal(first.numpy(), now[0])
        if (
            lib is torch or k != DETACHED
        ):  # the mark of a saved detached value outlives its tape: the family moves to a copy
            np.testing.assert_array_equal(seen, now)


@pytest.mark.parametrize("make", MAKERS, ids=["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize("k", range(len(LOSSES)))
def test_a_step_leaves_alone_what_a_tape_saved(make: Any, k: int) -> None:
    p, q = cr.nn.Parameter(cr.tensor([[1.0, 2.0], [3.0, 4.0]])), cr.ones(2, 2, requires_grad=True)
    opt = make(cr)([p], lr=0.1)
    for _ in range(2):
        y = (LOSSES[k](p) * q).sum()
        p.grad = None
        y.backward(retain_graph=True)
        want = p.grad.clone()
        opt.step()
        p.grad = None
        y.backward()
        np.testing.assert_array_equal(p.grad.numpy(), want.numpy())
    assert p.is_leaf and p.requires_grad


def test_a_step_leaves_alone_what_was_saved_of_others() -> None:
    x, q = cr.tensor([1.0, 2.0]), cr.ones(2, requires_grad=True)
    y = (x * q).sum()
    p = cr.nn.Parameter(x)  # shares the memory that the tape of y keeps
    (p * p).sum().backward()
    cr.optim.SGD([p], lr=0.1).step()
    y.backward()
    assert q.grad.tolist() == [1.0, 2.0] and (p != x).all()
    p = cr.nn.Parameter(cr.ones(2))
    pull = cr.func.vjp(lambda w: w**3, p)[1]
    y = p.exp()
    (p * p).sum().backward()
    cr.optim.SGD([p], lr=0.1).step()
    assert pull(cr.ones(2))[0].tolist() == [3.0, 3.0]
    np.testing.assert_allclose(cr.autograd.grad(y.sum(), p)[0].numpy(), np.exp(np.ones(2)), rtol=1e-6)


@pytest.mark.parametrize(("name", "kw"), OPTIMISERS, ids=str)
def test_differentiable_steps(name: str, kw: dict[str, Any]) -> None:
    """The same values as other steps; the derivative of three of them is that of central differences."""
    rng = np.random.default_rng(0)
    x, c, w = (rng.standard_normal((2, 3)) for _ in range(3))

    def train(start: Any, target: Any, differentiable: bool) -> Any:
        p = start.clone() if differentiable else start.detach().clone().requires_grad_()
        opt = getattr(cr.optim, name)([p], differentiable=differentiable, **kw)
        for _ in range(3):
            (g,) = cr.autograd.grad(((p - target) ** 4 / 50).sum(), p, create_graph=differentiable)
            p.grad = g
            opt.step()
            p.grad = None
        return p

    start, target = cr.tensor(x).requires_grad_(), cr.tensor(c).requires_grad_()
    p = train(start, target, True)
    np.testing.assert_allclose(
        p.detach().numpy(), train(start, target.detach(), False).detach().numpy(), rtol=1e-12, atol=1e-14
    )
    (p * cr.tensor(w)).sum().backward()
    eps = 1e-6
    for got, at in ((start.grad, 0), (target.grad, 1)):
        for i in np.ndindex(2, 3):
            ends = []
            for e in (eps, -eps):
                a = [x.copy(), c.copy()]
                a[at][i] += e
                ends.append(float((train(cr.tensor(a[0]), cr.tensor(a[1]), False).detach() * cr.tensor(w)).sum()))
            np.testing.assert_allclose(got.numpy()[i], (ends[0] - ends[1]) / (2 * eps), rtol=2e-6, atol=1e-8)


def test_the_rate_of_a_differentiable_step_has_a_gradient() -> None:
    lr, start = cr.tensor(0.1, dtype=cr.float64, requires_grad=True), cr.tensor([1.0, -2.0], dtype=cr.float64)
    p = start.clone().requires_grad_() * 1
    opt = cr.optim.SGD([p], lr=lr, differentiable=True)
    (p.grad,) = cr.autograd.grad((p**2).sum(), p, create_graph=True)
    opt.step()
    p.sum().backward()
    assert float(lr.grad) == -2 * float(start.sum())


def test_leaves_and_others() -> None:
    p = cr.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="non-leaf"):
        cr.optim.SGD([p * 1], lr=0.1)
    y = p * 1
    y.retain_grad()
    opt = cr.optim.SGD([y], lr=0.1)
    (y * 3).sum().backward()
    opt.step()
    np.testing.assert_allclose(y.detach().numpy(), 0.7, rtol=1e-6)
    d = cr.tensor([1.0, 2.0])
    p = d.detach().requires_grad_()
    (d * cr.ones(2, requires_grad=True)).sum()  # saves d
    opt = cr.optim.SGD([p], lr=0.1)
    (p * p).sum().backward()
    opt.step()
    assert p.requires_grad and p.is_leaf and d.tolist() == [1.0, 2.0]
    np.testing.assert_allclose(p.detach().numpy(), [0.8, 1.6], rtol=1e-6)


@pytest.mark.parametrize("lib", [cr, torch], ids=["chainrule", "torch"])
def test_optimisers_of_ones_own(lib: Any) -> None:
    class Heavy(lib.optim.Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        def step(self, closure: Any = None) -> None:
            with lib.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        state = self.state[p]
                        v = state.setdefault("v", lib.zeros_like(p))
                        v.mul_(0.5).add_(p.grad)
                        p.add_(v, alpha=-group["lr"])

    p = lib.nn.Parameter(lib.ones(2))
    opt = Heavy([p], 0.1)
    for _ in range(2):
        opt.zero_grad()
        (p * 2).sum().backward()
        opt.step()
    np.testing.assert_allclose(p.detach().numpy(), 0.5, rtol=1e-6)
    assert opt.state[object()] == {} and isinstance(opt.state[p]["v"], lib.Tensor)


@pytest.mark.parametrize("name", list(dict.fromkeys(n for n, _ in OPTIMISERS)))
def test_states_have_the_keys_of_pytorch(name: str) -> None:
    states = []
    for lib in (cr, torch):
        p = lib.nn.Parameter(lib.ones(2))
        opt = getattr(lib.optim, name)([p], lr=0.1, **OPTIONS.get(name, {}))
        (p**2).sum().backward()
        opt.step()
        states.append(opt.state_dict())
    ours, theirs = states
    assert ours["param_groups"] == theirs["param_groups"]
    assert ours["state"][0].keys() == theirs["state"][0].keys()
    for k, v in theirs["state"][0].items():
        np.testing.assert_allclose(ours["state"][0][k].numpy(), v.numpy(), rtol=1e-6)


@pytest.mark.parametrize("lib", [cr, torch], ids=["chainrule", "torch"])
def test_gradients_set_to_zero(lib: Any) -> None:
    m = lib.nn.Linear(2, 1)
    opt = lib.optim.SGD(m.parameters(), lr=0.1)
    for clear in (m.zero_grad, opt.zero_grad):
        g = m.weight.grad = lib.tensor([[float("nan"), float("inf")]])
        clear(set_to_none=False)
        assert m.weight.grad is g and g.tolist() == [[0.0, 0.0]] and m.bias.grad is None
        (g,) = lib.autograd.grad((m.weight**2).sum(), m.weight, create_graph=True)
        m.weight.grad = g
        clear(set_to_none=False)
        assert not m.weight.grad.requires_grad and m.weight.grad.tolist() == [[0.0, 0.0]]
        clear()
        assert m.weight.grad is None
