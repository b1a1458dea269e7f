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
    with pytest.raises(ValueError, match="lr"):
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
