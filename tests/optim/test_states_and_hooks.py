"""States that go to PyTorch and back, hooks around steps, names of parameters, averages of models."""

from __future__ import annotations

import copy
import importlib
import pickle
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr

NAMES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adam", {"amsgrad": True}), ("AdamW", {}), ("Adamax", {}), ("NAdam", {}), ("RAdam", {}),
    ("Adagrad", {}), ("Adadelta", {}), ("RMSprop", {"momentum": 0.5, "centered": True}), ("ASGD", {"t0": 2}), ("Rprop", {}), ("Adafactor", {}),
]  # fmt: skip
RNG = np.random.default_rng(0)
X, G = RNG.standard_normal((3, 4)), RNG.standard_normal((8, 3, 4))


def steps(lib: Any, p: Any, opt: Any, which: range) -> None:
    for k in which:
        p.grad = lib.tensor(G[k])
        opt.step()


@pytest.mark.parametrize(("name", "kw"), NAMES, ids=str)
def test_states_go_to_pytorch_and_back(name: str, kw: dict[str, Any]) -> None:
    """Four steps there and four here, from the state that was saved, are as eight there; and the other way round."""
    runs = []
    for first, second in ((torch, cr), (cr, torch), (torch, torch)):
        p = first.tensor(X).requires_grad_()
        opt = getattr(first.optim, name)([p], **kw)
        steps(first, p, opt, range(4))
        state = opt.state_dict()
        if first is cr:
            as_torch = lambda v: torch.from_numpy(v.numpy().copy()) if isinstance(v, cr.Tensor) else v
            state = {
                "param_groups": state["param_groups"],
                "state": {k: {n: as_torch(v) for n, v in s.items()} for k, s in state["state"].items()},
            }
        q = second.tensor(p.detach().numpy().copy()).requires_grad_()
        other = getattr(second.optim, name)([q], **kw)
        other.load_state_dict(state)
        steps(second, q, other, range(4, 8))
        runs.append(q.detach().numpy())
    for r in runs[:2]:
        np.testing.assert_allclose(r, runs[2], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "kw"), NAMES, ids=str)
def test_copies_and_pickles_go_on_by_themselves(name: str, kw: dict[str, Any]) -> None:
    p = cr.nn.Parameter(cr.tensor(X))
    opt = getattr(cr.optim, name)([p], **kw)
    steps(cr, p, opt, range(3))
    others = [copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))]
    steps(cr, p, opt, range(3, 6))
    for other in others:
        q = other.param_groups[0]["params"][0]
        assert q is not p and type(other.state) is defaultdict
        steps(cr, q, other, range(3, 6))
        np.testing.assert_array_equal(q.detach().numpy(), p.detach().numpy())


def test_a_step_sees_what_is_put_into_a_state() -> None:
    """The arrays of a step are found anew when the state, a buffer or the parameter's value is replaced."""
    ends = []
    for lib in (cr, torch):
        p = lib.nn.Parameter(lib.tensor(X))
        opt = lib.optim.Adam([p])
        steps(lib, p, opt, range(2))
        opt.state[p]["exp_avg"] = lib.ones_like(p)
        steps(lib, p, opt, range(2, 3))
        opt.state[p]["exp_avg_sq"].mul_(3)
        p.data = lib.tensor(X[::-1].copy())
        steps(lib, p, opt, range(3, 4))
        opt.state[p]["step"].zero_()
        opt.param_groups[0]["amsgrad"] = False
        steps(lib, p, opt, range(4, 5))
        opt.state.clear()
        p.grad = lib.tensor(np.asfortranarray(G[5]))
        opt.step()
        ends.append(p.detach().numpy())
    np.testing.assert_allclose(*ends, rtol=1e-12)


@pytest.mark.parametrize("lib", [cr, torch], ids=["chainrule", "torch"])
def test_hooks(lib: Any) -> None:
    seen: list[Any] = []
    everyone = importlib.import_module(f"{lib.__name__}.optim.optimizer")
    p = lib.nn.Parameter(lib.ones(2))
    opt = lib.optim.SGD([p], lr=0.1)
    handles = [
        opt.register_step_pre_hook(lambda o, a, k: seen.append(("pre", o is opt, len(a), k))),
        opt.register_step_post_hook(lambda o, a, k: seen.append(("post", float(p[0].detach()) < 1))),
        everyone.register_optimizer_step_pre_hook(lambda o, a, k: seen.append("all")),
        everyone.register_optimizer_step_post_hook(lambda o, a, k: seen.append("all after")),
    ]
    p.grad = lib.ones(2)
    opt.step()
    assert seen == ["all", ("pre", True, 1, {}), ("post", True), "all after"]
    for h in handles:
        h.remove()
    opt.step()
    assert len(seen) == 4
    opt.register_step_pre_hook(lambda o, a, k: ((*a, lambda: 7), {}))
    assert opt.step() == 7
    opt.register_step_pre_hook(lambda o, a, k: 1)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        opt.step()
    opt.register_state_dict_pre_hook(lambda o: seen.append("state"))
    opt.register_state_dict_post_hook(lambda o, d: {**d, "more": 1})
    opt.register_state_dict_post_hook(lambda o, d: seen.append(sorted(d)), prepend=True)
    d = opt.state_dict()
    assert d["more"] == 1 and seen[-2:] == ["state", ["param_groups", "state"]]
    opt.register_load_state_dict_pre_hook(lambda o, d: d["param_groups"][0].update(lr=0.5))
    opt.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    opt.load_state_dict(d)
    assert seen[-1] == "loaded" and opt.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize("lib", [cr, torch], ids=["chainrule", "torch"])
def test_parameters_with_names(lib: Any) -> None:
    m = lib.nn.Linear(2, 1)
    opt = lib.optim.SGD(m.named_parameters(), lr=0.1)
    assert opt.param_groups[0]["param_names"] == ["weight", "bias"]
    assert opt.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="with/without names"):
        opt.add_param_group({"params": [lib.nn.Parameter(lib.ones(1))]})
    with pytest.raises(ValueError, match="names are missing"):
        lib.optim.SGD([("a", lib.nn.Parameter(lib.ones(1))), lib.nn.Parameter(lib.ones(1))], lr=0.1)
    with pytest.raises(TypeError, match="ordered collections"):
        lib.optim.SGD([{"params": {lib.nn.Parameter(lib.ones(1))}}], lr=0.1)


def test_a_step_inside_a_transform() -> None:
    """Unrolled steps inside grad, one training for each example under vmap: the derivative of central differences."""
    target = cr.tensor(RNG.standard_normal((3, 2)))

    def train(lr: Any, t: Any) -> Any:
        p = cr.zeros(2, dtype=cr.float64) + t * 0
        opt = cr.optim.RMSprop([p], lr=0.1, momentum=0.5, centered=True, differentiable=True)
        for _ in range(3):
            p.grad = (p - t) * lr + (p - t) ** 3
            opt.step()
        return ((p - t) ** 2).sum()

    lr = cr.tensor(0.3, dtype=cr.float64)
    g = cr.func.grad(lambda a: cr.vmap(train, (None, 0))(a, target).sum())(lr)
    e = 1e-6
    ends = [sum(float(train(lr + s, t)) for t in target) for s in (e, -e)]
    np.testing.assert_allclose(float(g), (ends[0] - ends[1]) / (2 * e), rtol=1e-7)


@pytest.mark.parametrize("kw", [{}, {"ema": 0.9}, {"avg": True}, {"use_buffers": True}], ids=str)
def test_averages_of_models(kw: dict[str, Any]) -> None:
    ends = []
    for lib in (cr, torch):
        swa = lib.optim.swa_utils
        net = lib.nn.Sequential(lib.nn.Linear(4, 3), lib.nn.BatchNorm1d(3)).to(lib.float64)
        with lib.no_grad():
            net[0].weight.copy_(lib.tensor(X))
            net[0].bias.zero_()
        fns: dict[str, Any] = {}
        if "ema" in kw:
            fns["multi_avg_fn"] = swa.get_ema_multi_avg_fn(kw["ema"])
        if "avg" in kw:
            fns["avg_fn"] = lambda a, p, n: 0.1 * a + 0.9 * p
        mean = swa.AveragedModel(net, use_buffers=kw.get("use_buffers", False), **fns)
        opt = lib.optim.SGD(net.parameters(), lr=0.1)
        schedule = swa.SWALR(opt, swa_lr=0.05, anneal_epochs=3)
        rates = []
        for k in range(5):
            net.zero_grad()
            (net(lib.tensor(G[k, :, :]))[:, 0] ** 2).sum().backward()
            opt.step()
            mean.update_parameters(net)
            schedule.step()
            rates.append(opt.param_groups[0]["lr"])
        swa.update_bn([lib.tensor(g) for g in G], mean)
        state = mean.state_dict()
        ends.append((rates, sorted(state), *[state[k].numpy() for k in sorted(state)]))
    for a, b in zip(*ends, strict=True):
        if isinstance(a[0] if isinstance(a, list) else 0, str):
            assert a == b
        else:
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 1, 4])
def test_swalr(strategy: str, epochs: int) -> None:
    rates = []
    for lib in (cr, torch):
        ps = [lib.nn.Parameter(lib.ones(1)) for _ in range(2)]
        opt = lib.optim.SGD([{"params": [ps[0]]}, {"params": [ps[1]], "lr": 0.7}], lr=0.2)
        s = lib.optim.swa_utils.SWALR(opt, [0.05, 0.9], anneal_epochs=epochs, anneal_strategy=strategy)
        for _ in range(6):
            opt.step()
            s.step()
            rates.append([g["lr"] for g in opt.param_groups])
    np.testing.assert_allclose(rates[:6], rates[6:], rtol=1e-12)


def test_the_order_of_steps_is_watched() -> None:
    opt = cr.optim.SGD([cr.nn.Parameter(cr.ones(1))], lr=0.1)
    s = cr.optim.lr_scheduler.StepLR(opt, 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        s.step()
    with pytest.warns(UserWarning, match="epoch parameter"):
        s.step(3)


@pytest.mark.filterwarnings("ignore:Sparse invariant")
def test_sparse_adam() -> None:
    p, q = cr.tensor(X).requires_grad_(), torch.tensor(X).requires_grad_()
    ours, theirs = cr.optim.SparseAdam([p], lr=0.1), torch.optim.SparseAdam([q], lr=0.1)
    with pytest.raises(RuntimeError, match="dense gradients"):
        p.grad = cr.ones_like(p)
        ours.step()
    for k in range(5):
        at = np.array([[k % 3, (k + 1) % 3]])
        p.grad = cr.sparse_coo_tensor(cr.tensor(at), cr.tensor(G[k, :2]), (3, 4))
        q.grad = torch.sparse_coo_tensor(torch.tensor(at), torch.tensor(G[k, :2]), (3, 4))
        ours.step()
        theirs.step()
    np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-12)
    for n, v in theirs.state[q].items():
        np.testing.assert_allclose(np.asarray(ours.state[p][n]), np.asarray(v), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:Sparse invariant")
@pytest.mark.parametrize(
    ("name", "kw"), [("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adagrad", {"lr": 0.1})], ids=str
)
def test_sparse_gradients(name: str, kw: dict[str, Any]) -> None:
    ends = []
    for lib in (cr, torch):
        p = lib.tensor(X).requires_grad_()
        opt = getattr(lib.optim, name)([p], **kw)
        for k in range(4):
            at = lib.tensor(np.array([[k % 3, (k + 1) % 3]]))
            p.grad = lib.sparse_coo_tensor(at, lib.tensor(G[k, :2]), (3, 4))
            opt.step()
        ends.append(p.detach().numpy())
        with pytest.raises(RuntimeError, match="does not support sparse gradients"):
            lib.optim.Adam([p]).step()
    np.testing.assert_allclose(*ends, rtol=1e-12)
