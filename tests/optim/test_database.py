"""Every optimiser with the option sets of PyTorch's own tests, beside PyTorch: 20 steps in float64 to 1e-12, states included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.testing._internal.common_optimizers import optim_db

import chainrule as cr
from chainrule.kernels import compiler

WAYS: list[dict[str, Any]] = [{}, {"foreach": True}, {"fused": True}]
SHAPES = [(3, 4), (5,), (2, 3, 2), (), (40,), (0, 3)]


def ours(v: Any) -> Any:
    """An option of PyTorch's as one of ours."""
    if isinstance(v, tuple):
        return tuple(map(ours, v))
    return cr.tensor(v.numpy()) if isinstance(v, torch.Tensor) else v


def cases() -> Any:
    for info in optim_db:
        name = info.optim_cls.__name__
        if name in ("SparseAdam", "LBFGS", "Muon"):  # further below
            continue
        for way in WAYS:
            if way and next(iter(way)) not in info.supported_impls:
                continue
            for example in info.optim_inputs_func(device="cpu"):
                kw = dict(example.kwargs) | way
                tensors = any(isinstance(v, torch.Tensor | tuple) and "ensor" in str(v) for v in kw.values())
                if not (way and tensors) and not kw.get("capturable"):
                    yield name, kw


@pytest.fixture
def doubles() -> Any:
    """Numbers of states in float64: PyTorch's foreach does other roundings in float32 than its loop."""
    cr.set_default_dtype(cr.float64)
    torch.set_default_dtype(torch.float64)
    yield
    cr.set_default_dtype(cr.float32)
    torch.set_default_dtype(torch.float32)


def train(lib: Any, name: str, kw: dict[str, Any], xs: Any, gs: Any) -> tuple[Any, Any]:
    ps = [lib.tensor(x).requires_grad_() for x in xs]
    opt = getattr(lib.optim, name)(ps, **(kw if lib is torch else {k: ours(v) for k, v in kw.items()}))
    for t, at in enumerate(gs):
        for i, (p, g) in enumerate(zip(ps, at, strict=True)):
            p.grad = None if t and (t + i) % 7 == 3 else lib.tensor(g)  # so that the counts of steps differ
        opt.step()
    return [p.detach().numpy() for p in ps], opt.state_dict()


def data(kind: str, shapes: Any = SHAPES) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)

    def draw(s: Any) -> np.ndarray:
        return np.asarray(rng.standard_normal(s) + (1j * rng.standard_normal(s) if kind == "complex" else 0))

    return [draw(s) for s in shapes], [[draw(s) for s in shapes] for _ in range(20)]


def compare(a: Any, b: Any) -> None:
    for x, y in zip(a[0], b[0], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)
    ours_, theirs = a[1], b[1]
    assert ours_["state"].keys() == theirs["state"].keys()
    for k, s in theirs["state"].items():
        assert ours_["state"][k].keys() == s.keys()
        for n, v in s.items():
            w = ours_["state"][k][n]
            assert w.numpy().dtype == v.numpy().dtype and tuple(w.shape) == tuple(v.shape)
            np.testing.assert_allclose(w.numpy(), v.numpy(), rtol=1e-12, atol=1e-14)
    for g, h in zip(ours_["param_groups"], theirs["param_groups"], strict=True):
        assert g.keys() == h.keys()


@pytest.mark.usefixtures("doubles")
@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize(("name", "kw"), list(cases()), ids=str)
def test_twenty_steps(name: str, kw: dict[str, Any], kind: str) -> None:
    if kind == "complex" and (name == "Adafactor" or kw.get("fused")):
        return  # neither has them
    xs, gs = data(kind, SHAPES[:-1] if name == "Adafactor" else SHAPES)  # PyTorch divides by the size
    differs = {"differentiable": False} if "differentiable" in kw else {}
    compare(train(cr, name, kw | differs, xs, gs), train(torch, name, kw | differs, xs, gs))


@pytest.mark.parametrize("name", ["NAdam", "ASGD", "RAdam", "Adam"])
def test_numbers_of_states_in_float32(name: str) -> None:
    xs, gs = data("real")
    compare(train(cr, name, {"lr": 0.1}, xs, gs), train(torch, name, {"lr": 0.1}, xs, gs))


@pytest.mark.parametrize(("name", "kw"), [c for c in cases() if "foreach" not in c[1] and "fused" not in c[1]], ids=str)
def test_without_a_compiler(name: str, kw: dict[str, Any], monkeypatch: Any) -> None:
    """NumPy runs the same rule; so do tensors, in a step that can be differentiated."""
    xs, gs = data("real")
    fast = train(cr, name, kw, xs, gs)[0]
    monkeypatch.setattr(compiler, "_jit", None)
    monkeypatch.setattr(compiler, "_failed", True)
    for x, y in zip(fast, train(cr, name, kw, xs, gs)[0], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_narrow_numbers(dtype: str) -> None:
    """One rounding a step: closer to the step in float64 than PyTorch's, which rounds after every operation."""
    xs, gs = data("real", [(50,)])
    ends = []
    for lib in (cr, torch):
        p = lib.tensor(xs[0]).to(getattr(lib, dtype)).requires_grad_()
        opt = lib.optim.AdamW([p], lr=0.1, eps=1e-3)
        for (g,) in gs[:3]:
            p.grad = lib.tensor(g).to(p.dtype)
            opt.step()
        ends.append(p.detach().to(lib.float64).numpy())
    eps = {"bfloat16": 2e-2, "float32": 1e-6}[dtype]
    np.testing.assert_allclose(*ends, rtol=eps, atol=eps)


def lbfgs_cases() -> Any:
    info = next(i for i in optim_db if i.optim_cls.__name__ == "LBFGS")
    for example in info.optim_inputs_func(device="cpu"):
        for more in (
            {},
            {"line_search_fn": "strong_wolfe"},
            {"history_size": 2, "line_search_fn": "strong_wolfe", "max_iter": 7},
        ):
            kw = {k: v.double() if isinstance(v, torch.Tensor) else v for k, v in example.kwargs.items()}
            yield kw | more


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize(
    "kw", list(lbfgs_cases()) + [{"lr": 0.001}, {"lr": 1, "line_search_fn": "strong_wolfe"}], ids=str
)
def test_lbfgs(kw: dict[str, Any]) -> None:
    ends = []
    for lib in (cr, torch):
        ps = [lib.tensor(x).requires_grad_() for x in ([-1.2, 1.0, 0.5, 0.3], [0.3 + 1j, -1j])]
        ps = [p.detach().to(d).requires_grad_() for p, d in zip(ps, (lib.float64, lib.complex128), strict=True)]
        opt = lib.optim.LBFGS(ps, **(kw if lib is torch else {k: ours(v) for k, v in kw.items()}))

        def closure(opt: Any = opt, ps: Any = ps) -> Any:
            opt.zero_grad()
            loss = rosenbrock(ps[0]) + (ps[1] - 2).abs().pow(4).sum()
            loss.backward()
            return loss

        losses = [float(opt.step(closure)) for _ in range(4)]
        state = opt.state_dict()["state"][0]
        ends.append((losses, *[p.detach().numpy() for p in ps], state["func_evals"], state["n_iter"]))
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_lbfgs_goes_on_from_a_state() -> None:
    x = cr.tensor([-1.2, 1.0], dtype=cr.float64)

    def run(p: Any, opt: Any, steps: int) -> None:
        def closure() -> Any:
            opt.zero_grad()
            loss = rosenbrock(p)
            loss.backward()
            return loss

        for _ in range(steps):
            opt.step(closure)

    whole = x.clone().requires_grad_()
    run(whole, cr.optim.LBFGS([whole], max_iter=4, line_search_fn="strong_wolfe"), 5)
    part = x.clone().requires_grad_()
    first = cr.optim.LBFGS([part], max_iter=4, line_search_fn="strong_wolfe")
    run(part, first, 2)
    second = cr.optim.LBFGS([part], max_iter=4, line_search_fn="strong_wolfe")
    second.load_state_dict(first.state_dict())
    run(part, second, 3)
    assert whole.tolist() == part.tolist()


@pytest.mark.parametrize("kw", [{}, {"nesterov": False, "momentum": 0.8}, {"adjust_lr_fn": "match_rms_adamw"}], ids=str)
def test_muon(kw: dict[str, Any]) -> None:
    """The matrices are orthogonal to the precision of bfloat16, in which PyTorch computes them too."""
    xs, gs = data("real", [(3, 4), (6, 2), (5, 5)])
    a, b = (train(lib, "Muon", kw, xs, gs) for lib in (cr, torch))
    for x, y in zip(a[0], b[0], strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=20 * 1e-3 * 2**-8)
    assert a[1]["param_groups"][0].keys() == b[1]["param_groups"][0].keys()
    for k, s in b[1]["state"].items():
        np.testing.assert_allclose(
            a[1]["state"][k]["momentum_buffer"].numpy(), s["momentum_buffer"].numpy(), rtol=1e-12
        )


def error_cases() -> Any:
    for info in optim_db:
        if info.optim_error_inputs_func is not None:
            for e in info.optim_error_inputs_func("cpu", torch.float64):
                yield info.optim_cls.__name__, e


CASES = list(error_cases())


@pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{n}-{i}" for i, (n, _) in enumerate(CASES)])
def test_errors(name: str, case: Any) -> None:
    """PyTorch's refusals of options, by its own list of them."""
    example = case.optimizer_error_input
    regex = case.error_regex if hasattr(case, "error_regex") else example.error_regex
    same: dict[int, Any] = {}

    def convert(p: Any) -> Any:
        if isinstance(p, torch.Tensor):
            if p.is_sparse:
                q = p.detach().coalesce()
                return cr.sparse_coo_tensor(
                    cr.tensor(q.indices().numpy()), cr.tensor(q.values().numpy()), tuple(q.shape)
                )
            q = same.setdefault(id(p), cr.tensor(p.detach().numpy()).requires_grad_(p.requires_grad))
            if p.is_leaf and p.grad is not None:
                q.grad = cr.tensor(p.grad.numpy())
            return q
        if isinstance(p, dict):
            return {k: convert(v) if k == "params" else ours(v) for k, v in p.items()}
        return type(p)(map(convert, p)) if isinstance(p, list | tuple) else p

    made = convert(example.params)
    kw = {k: ours(v) for k, v in example.kwargs.items()}
    with pytest.raises(case.error_type, match=regex.replace("torch.Tensor", "chainrule.Tensor")):
        opt = getattr(cr.optim, name)(made, **kw)
        if str(case.error_on).endswith("STEP_ERROR"):
            opt.step()
