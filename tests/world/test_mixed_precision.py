"""autocast and GradScaler, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.core.registry import PUBLIC

torch = pytest.importorskip("torch")
X, W = np.linspace(-1, 1, 12).reshape(3, 4).astype(np.float32), np.linspace(-2, 1, 20).reshape(5, 4).astype(np.float32)


def types_of(t: Any, dtype: str) -> list[str]:
    x, w = t.tensor(X), t.tensor(W)
    square = t.eye(3).to(getattr(t, dtype)) * 2
    label = t.tensor([0, 1, 2])
    out = []
    with t.autocast("cpu", dtype=getattr(t, dtype)):
        y = t.nn.functional.linear(x, w)
        out += [y, x @ w.T, x.mm(w.T), t.einsum("ij,kj->ik", x, w), t.nn.functional.conv1d(x[None], t.ones(2, 3, 1))]
        out += [
            t.softmax(y, -1),
            t.nn.functional.layer_norm(y, (5,)),
            t.relu(y),
            y + x[:, :1],
            t.nn.functional.cross_entropy(y, label),
        ]
        out += [
            t.nn.functional.mse_loss(y, y),
            t.linalg.inv(square),
            t.trace(square),
            square.prod(),
            t.fft.fft(y),
            t.cdist(y, y),
        ]
        out += [x.double() @ w.double().T]
        with t.autocast("cpu", enabled=False):
            out.append(x @ w.T)
        assert t.is_autocast_enabled("cpu")
        assert t.get_autocast_dtype("cpu") is getattr(t, dtype)
    assert not t.is_autocast_enabled("cpu")
    out.append(x @ w.T)
    return [str(v.dtype).split(".")[-1] for v in out]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_types_are_those_of_pytorch(dtype: str) -> None:
    assert types_of(cr, dtype) == types_of(torch, dtype)


def step(t: Any) -> tuple[list[Any], list[float]]:
    model = t.nn.Sequential(t.nn.Linear(4, 8), t.nn.LayerNorm(8), t.nn.GELU(), t.nn.Linear(8, 3))
    with t.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(t.tensor(np.linspace(-1, 1 + i, p.numel()).reshape(tuple(p.shape)).astype(np.float32)))
    opt, scaler = t.optim.SGD(model.parameters(), lr=0.1), t.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    losses = []
    for _ in range(4):
        opt.zero_grad()
        with t.autocast("cpu"):
            loss = t.nn.functional.cross_entropy(model(t.tensor(X)), t.tensor([0, 1, 2]))
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        scaler.step(opt)
        scaler.update()
        losses.append(loss.item())
    assert all(p.grad.dtype is t.float32 for p in model.parameters())
    return [p.detach().numpy() for p in model.parameters()], [*losses, scaler.get_scale()]


def test_training_follows_pytorch() -> None:
    (ours, a), (theirs, b) = step(cr), step(torch)
    np.testing.assert_allclose(a, b, rtol=5e-3)
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p, q, atol=5e-3)


def test_a_step_with_infinite_gradients_is_left_out() -> None:
    w = cr.ones(2, requires_grad=True)
    opt, scaler = cr.optim.SGD([w], lr=1.0), cr.GradScaler("cpu", init_scale=4.0)
    (scaler.scale(w.sum()) * float("inf")).backward()
    scaler.step(opt)
    scaler.update()
    assert w.tolist() == [1, 1]
    assert scaler.get_scale() == 2
    other = cr.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 2


def test_custom_functions() -> None:
    seen = []

    class Product(cr.autograd.Function):
        @staticmethod
        @cr.amp.custom_fwd(device_type="cpu", cast_inputs=cr.float32)
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            seen.append(cr.is_autocast_enabled("cpu"))
            return a @ b

        @staticmethod
        @cr.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g @ b.T, a.T @ g

    a = cr.ones(2, 2, requires_grad=True)
    with cr.autocast("cpu"):
        y = Product.apply(a.bfloat16(), a)
    assert y.dtype is cr.float32
    assert seen == [False]
    y.sum().backward()
    assert a.grad.tolist() == [[4, 4], [4, 4]]


def test_transforms_inside() -> None:
    @cr.autocast("cpu", dtype=cr.bfloat16)
    def f(w: Any, x: Any) -> Any:
        return (x @ w).float().pow(2).sum()

    w, x = cr.ones(3, 2), cr.ones(4, 3)
    assert cr.func.grad(f)(w, x).dtype is cr.float32
    per = cr.func.vmap(cr.func.grad(f), (None, 0))(w, x[:, None])
    np.testing.assert_allclose(per.sum(0).numpy(), cr.func.grad(f)(w, x).numpy(), rtol=1e-2)


def test_a_function_of_several_names_stays_one() -> None:
    with cr.autocast("cpu", dtype=cr.bfloat16):
        y = cr.conv1d(cr.ones(1, 1, 4), cr.ones(1, 1, 2))
    assert y.dtype is cr.bfloat16
    assert cr.conv1d is cr.nn.functional.conv1d
    assert cr.slogdet is cr.linalg.slogdet


@pytest.mark.parametrize(
    "name", ["poisson_nll_loss", "kl_div", "margin_ranking_loss", "_C._nn.mse_loss", "_C._nn.linear"]
)
def test_functions_under_atens_names_are_converted_too(name: str) -> None:
    h = cr.ones(2, 2, dtype=cr.bfloat16)
    more = {"poisson_nll_loss": (h, True, False, 1e-8, 1), "margin_ranking_loss": (h, h)}.get(name, (h,))
    with cr.autocast("cpu"):
        y = PUBLIC[name](h.float() if name == "_C._nn.linear" else h, *more)
    assert y.dtype is (cr.bfloat16 if name == "_C._nn.linear" else cr.float32)
