"""Schedules beside PyTorch's, step by step: random ones, two at a time, with rates set by hand and states saved and loaded."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, on the order of steps and on step(epoch)


class Decay:
    """A callable with state."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, t: float) -> float:
        return 1 / (1 + self.rate * t)


def pick(r: random.Random, groups: int, momentum: bool) -> tuple[str, dict[str, Any]]:
    """A schedule's name and arguments."""
    lam: Any = r.choice([Decay(r.uniform(0.1, 1)), lambda t: 0.9**t, [Decay(0.1 * k + 0.2) for k in range(groups)]])
    each = lambda f: f() if r.random() < 0.5 else [f() for _ in range(groups)]
    table = [
        ("LambdaLR", {"lr_lambda": lam}),
        ("MultiplicativeLR", {"lr_lambda": lam}),
        ("StepLR", {"step_size": r.randint(1, 4), "gamma": r.uniform(0.1, 1.2)}),
        ("MultiStepLR", {"milestones": [r.randint(1, 9) for _ in range(3)], "gamma": r.uniform(0.1, 1)}),
        ("ConstantLR", {"factor": r.uniform(0.1, 1), "total_iters": r.randint(0, 6)}),
        (
            "LinearLR",
            {"start_factor": r.uniform(0.1, 1), "end_factor": r.uniform(0.1, 1), "total_iters": r.randint(1, 8)},
        ),
        ("ExponentialLR", {"gamma": r.uniform(0.5, 1.1)}),
        ("PolynomialLR", {"total_iters": r.randint(1, 15), "power": r.choice([0.5, 1.0, 2.0])}),
        ("CosineAnnealingLR", {"T_max": r.randint(2, 8), "eta_min": r.choice([0.0, 0.01])}),
        (
            "CosineAnnealingWarmRestarts",
            {"T_0": r.randint(1, 4), "T_mult": r.randint(1, 3), "eta_min": r.choice([0.0, 0.01])},
        ),
        (
            "OneCycleLR",
            {
                "max_lr": each(lambda: r.uniform(0.1, 1)),
                "total_steps": r.randint(40, 60),
                "pct_start": r.uniform(0.2, 0.45),
                "anneal_strategy": r.choice(["cos", "linear"]),
                "cycle_momentum": momentum,
                "base_momentum": each(lambda: r.uniform(0.5, 0.7)),
                "three_phase": r.random() < 0.5,
            },
        ),
        (
            "CyclicLR",
            {
                "base_lr": each(lambda: r.uniform(0.01, 0.1)),
                "max_lr": each(lambda: r.uniform(0.1, 1)),
                "step_size_up": r.randint(1, 5),
                "step_size_down": r.choice([None, 3]),
                "mode": r.choice(["triangular", "triangular2", "exp_range"]),
                "gamma": 0.9,
                "scale_fn": r.choice([None, Decay(0.3)]),
                "scale_mode": r.choice(["cycle", "iterations"]),
                "cycle_momentum": momentum,
                "max_momentum": each(lambda: r.uniform(0.8, 0.95)),
            },
        ),
    ]
    return r.choice(table)


def make(lib: Any, opt: Any, spec: Any, **more: Any) -> Any:
    sch = lib.optim.lr_scheduler
    name, kw = spec
    if name == "SequentialLR":
        return sch.SequentialLR(opt, [make(lib, opt, s) for s in kw["members"]], kw["milestones"])
    if name == "ChainedScheduler":
        return sch.ChainedScheduler([make(lib, opt, s) for s in kw["members"]])
    return getattr(sch, name)(opt, **copy.deepcopy(kw), **more)


def optimizer(lib: Any, kind: str, rates: list[float]) -> Any:
    groups = [{"params": [lib.ones(2, requires_grad=True)], "lr": lr} for lr in rates]
    kw = {"momentum": 0.9} if kind == "momentum" else {}
    return {"plain": lib.optim.SGD, "momentum": lib.optim.SGD, "adam": lib.optim.Adam, "adamw": lib.optim.AdamW}[kind](
        groups, lr=0.1, **kw
    )


def options(opt: Any) -> list[float]:
    return [
        float(x)
        for g in opt.param_groups
        for x in (g["lr"], g.get("momentum", 0), *g.get("betas", ()), g["initial_lr"])
    ]


@pytest.mark.parametrize("seed", range(250))
def test_random_compositions_like_pytorch(seed: int) -> None:
    r = random.Random(seed)
    kind, rates = r.choice(["plain", "momentum", "adam", "adamw"]), [r.uniform(0.01, 1) for _ in range(r.randint(1, 2))]
    specs = [pick(r, len(rates), True) for _ in range(r.randint(1, 2))]
    if r.random() < 0.4:
        members = [pick(r, len(rates), True) for _ in range(r.randint(1, 3))]
        marks = sorted(r.sample(range(1, 12), len(members) - 1))
        specs[r.randrange(len(specs))] = r.choice(
            [("SequentialLR", {"members": members, "milestones": marks}), ("ChainedScheduler", {"members": members})]
        )
    simple = [n not in ("SequentialLR", "ChainedScheduler") for n, _ in specs]
    plan = []
    for t in range(16):
        for k in range(len(specs)):
            jump = r.randint(0, 12) if simple[k] and r.random() < 0.05 else None
            plan.append(("step", k, jump))
        if r.random() < 0.1:
            plan.append(("set", r.randrange(len(rates)), r.uniform(0.01, 1)))
        if t == seed % 16:
            plan.append((r.choice(["state", "fresh"]), 0, None))
    histories = []
    for lib in (cr, torch):
        opt = optimizer(lib, kind, rates)
        scheds = [make(lib, opt, s) for s in specs]
        seen = [options(opt)]
        for what, k, x in plan:
            if what == "step":
                scheds[k].step() if x is None else scheds[k].step(x)
                seen.append([float(v) for v in scheds[k].get_last_lr()])
            elif what == "set":
                opt.param_groups[k]["lr"] = x
            else:
                saved = copy.deepcopy((opt.state_dict(), [s.state_dict() for s in scheds]))
                opt = optimizer(lib, kind, rates)
                if what == "fresh" and all(simple):  # resumed by last_epoch alone
                    opt.load_state_dict(saved[0])
                    scheds = [
                        make(lib, opt, s, last_epoch=d["last_epoch"]) for s, d in zip(specs, saved[1], strict=True)
                    ]
                else:
                    scheds = [make(lib, opt, s) for s in specs]
                    opt.load_state_dict(saved[0])
                    for s, d in zip(scheds, saved[1], strict=True):
                        s.load_state_dict(d)
            seen.append(options(opt))
        histories.append(seen)
    for ours, theirs in zip(*histories, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14, err_msg=str(specs))


@pytest.mark.parametrize("seed", range(40))
def test_plateaus_like_pytorch(seed: int) -> None:
    r = random.Random(seed)
    kw = {
        "mode": r.choice(["min", "max"]),
        "factor": r.uniform(0.1, 0.9),
        "patience": r.randint(0, 2),
        "threshold": r.choice([1e-4, 0.1]),
        "threshold_mode": r.choice(["rel", "abs"]),
        "cooldown": r.randint(0, 2),
        "min_lr": r.choice([0, 0.05, [0.2, 0.01]]),
    }
    metrics = [r.uniform(-1, 1) for _ in range(25)]
    histories = []
    for lib in (cr, torch):
        opt = optimizer(lib, "plain", [0.3, 0.8])
        s, seen = lib.optim.lr_scheduler.ReduceLROnPlateau(opt, **kw), []
        for t, x in enumerate(metrics):
            s.step(lib.tensor(x, dtype=lib.float64))
            seen.append([*s.get_last_lr(), s.best, s.num_bad_epochs, s.last_epoch])
            if t == 12:
                state = copy.deepcopy(s.state_dict())
                s = lib.optim.lr_scheduler.ReduceLROnPlateau(opt)
                s.load_state_dict(state)
        histories.append(seen)
    np.testing.assert_allclose(*histories, rtol=1e-12)


def test_what_is_refused() -> None:
    opt, other, sch = optimizer(cr, "plain", [0.1]), optimizer(cr, "plain", [0.1]), cr.optim.lr_scheduler
    with pytest.raises(KeyError, match="initial_lr"):
        sch.ExponentialLR(opt, 0.9, last_epoch=3)
    with pytest.raises(TypeError, match="not an Optimizer"):
        sch.ExponentialLR(object(), 0.9)
    a, b = sch.ExponentialLR(opt, 0.9), sch.ExponentialLR(other, 0.9)
    with pytest.raises(ValueError, match="another optimizer"):
        sch.ChainedScheduler([a, b])
    with pytest.raises(ValueError, match="milestone"):
        sch.SequentialLR(opt, [a], [3])
    with pytest.raises(ValueError, match="ReduceLROnPlateau"):
        sch.ChainedScheduler([a, sch.ReduceLROnPlateau(opt)])
    with pytest.raises(ValueError, match="min_lr"):
        sch.ReduceLROnPlateau(opt, min_lr=[0.1, 0.2])
    with pytest.raises(ValueError, match="Tried to step"):
        one = sch.OneCycleLR(optimizer(cr, "adam", [0.1]), 0.1, total_steps=3)
        for _ in range(4):
            one.step()


def test_a_rate_that_is_a_tensor_stays_one() -> None:
    p = cr.ones(2, requires_grad=True)
    rate = cr.tensor(0.5, dtype=cr.float64)
    opt = cr.optim.SGD([p], lr=rate)
    s = cr.optim.lr_scheduler.ExponentialLR(opt, 0.5)
    s.step()
    assert opt.param_groups[0]["lr"] is rate and float(rate) == 0.25 and float(opt.param_groups[0]["initial_lr"]) == 0.5
    (p.sum()).backward()
    opt.step()
    assert p.tolist() == [0.75, 0.75]


def test_schedules_of_ones_own() -> None:
    class Half(cr.optim.lr_scheduler.LRScheduler):
        def get_lr(self) -> list[float]:
            return [b / (1 + self.last_epoch) for b in self.base_lrs]

    opt = optimizer(cr, "plain", [1.0])
    s = Half(opt)
    s.step()
    assert s.get_last_lr() == [0.5]
    s.step(3)
    assert s.get_last_lr() == [0.25]


def test_options_that_are_tensors_are_copied() -> None:
    lr, top, low, high = (cr.tensor(v) for v in (0.1, 0.2, 0.8, 0.9))
    opt = cr.optim.SGD([cr.nn.Parameter(cr.randn(1))], lr=lr, momentum=0.9)
    cycle = cr.optim.lr_scheduler.CyclicLR(opt, lr, top, base_momentum=low, max_momentum=high)
    for t in (lr, top, low, high):
        t.multiply_(0.5)
    opt.step()
    cycle.step()
    (group,) = opt.param_groups
    assert [round(float(v), 6) for v in (group["max_momentum"], group["base_momentum"])] == [0.9, 0.8]
    assert [round(float(v), 6) for v in (*cycle.base_lrs, *cycle.max_lrs)] == [0.1, 0.2]
    opt = cr.optim.SGD([cr.nn.Parameter(cr.randn(1))], lr=0.1)
    swa = cr.tensor(0.05)
    cr.optim.swa_utils.SWALR(opt, swa_lr=swa)
    swa.multiply_(0.5)
    assert float(opt.param_groups[0]["swa_lr"]) == pytest.approx(0.05)


def test_states_of_schedules_with_counters_load_without_pickled_code(tmp_path) -> None:
    opt = cr.optim.SGD([cr.nn.Parameter(cr.randn(1))], lr=0.1)
    steps = cr.optim.lr_scheduler.MultiStepLR(opt, [2, 2, 5])
    cr.save(steps.state_dict(), tmp_path / "steps")
    assert cr.load(tmp_path / "steps", weights_only=True) == steps.state_dict()
