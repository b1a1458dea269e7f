"""Modules under transforms: parameters and buffers as arguments, ensembles, running statistics."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import functional_call, grad, jvp, stack_module_state, vmap


def net() -> cr.nn.Module:
    return cr.nn.Sequential(cr.nn.Linear(3, 4), cr.nn.BatchNorm1d(4), cr.nn.Tanh(), cr.nn.Linear(4, 1)).double()


def loss(model: cr.nn.Module):
    return lambda p, b, x: (functional_call(model, (p, b), (x,)) ** 2).mean()


def parts(m: cr.nn.Module) -> tuple[dict, dict]:
    return {k: v.detach() for k, v in m.named_parameters()}, {k: v.detach().clone() for k, v in m.named_buffers()}


def test_gradients_equal_backward() -> None:
    m, x = net(), cr.randn(6, 3, dtype=cr.float64)
    p, b = parts(m)
    g = grad(loss(m))(p, b, x)
    (m(x) ** 2).mean().backward()
    for k, q in m.named_parameters():
        np.testing.assert_allclose(g[k].numpy(), q.grad.numpy(), rtol=1e-10, atol=1e-12)
    for k, v in m.named_buffers():  # the functional call wrote to what it was given
        np.testing.assert_allclose(b[k].numpy(), v.numpy(), rtol=1e-12)


@pytest.mark.parametrize("transform", ["grad", "jvp", "grad of grad"])
def test_running_statistics_are_updated_once(transform: str) -> None:
    bn, plain = cr.nn.BatchNorm1d(3).double(), cr.nn.BatchNorm1d(3).double()
    x = cr.randn(5, 3, dtype=cr.float64)
    plain(x)

    def f(x):
        return (bn(x) ** 3).sum()

    if transform == "grad":
        grad(f)(x)
    elif transform == "jvp":
        jvp(f, (x,), (x,))
    else:
        grad(lambda x: (grad(f)(x) ** 2).sum())(x)
    assert not bn.running_mean.requires_grad
    for k, v in plain.named_buffers():
        np.testing.assert_allclose(getattr(bn, k).numpy(), v.numpy(), rtol=1e-12)


def test_ensemble_with_batched_running_statistics() -> None:
    models = [net() for _ in range(4)]
    params, buffers = stack_module_state(models)
    x = cr.randn(4, 6, 3, dtype=cr.float64)
    p = {k: v.detach() for k, v in params.items()}

    def with_statistics(p, b, x):
        return loss(models[0])(p, b, x), b

    g, after = vmap(grad(with_statistics, has_aux=True))(p, buffers, x)
    for k, m in enumerate(models):
        (m(x[k]) ** 2).mean().backward()
        for name, q in m.named_parameters():
            np.testing.assert_allclose(g[name][k].numpy(), q.grad.numpy(), rtol=1e-9, atol=1e-12)
        for name, b in m.named_buffers():
            np.testing.assert_allclose(after[name][k].numpy(), b.numpy(), rtol=1e-12)


def test_shared_statistics_under_vmap_are_refused() -> None:
    m, x = net(), cr.randn(4, 6, 3, dtype=cr.float64)
    with pytest.raises(RuntimeError, match=r"(?s)running_mean.*not batched.*track_running_stats"):
        vmap(m)(x)
    m.eval()
    want = cr.stack([m(v) for v in x])
    np.testing.assert_allclose(vmap(m)(x).detach().numpy(), want.detach().numpy(), rtol=1e-10)


def test_no_running_statistics_under_vmap() -> None:
    m = cr.nn.BatchNorm1d(3, track_running_stats=False).double()
    x = cr.randn(4, 6, 3, dtype=cr.float64)
    np.testing.assert_allclose(vmap(m)(x).detach().numpy(), cr.stack([m(v) for v in x]).detach().numpy(), rtol=1e-10)


def test_tied_weights_and_errors() -> None:
    m = cr.nn.Sequential(cr.nn.Linear(2, 2, bias=False), cr.nn.Linear(2, 2, bias=False))
    m[1].weight = m[0].weight
    eye, x = cr.eye(2), cr.ones(1, 2)
    assert (functional_call(m, {"0.weight": 2 * eye}, (x,)) == 4).all()
    assert (
        functional_call(m, {"0.weight": 2 * eye, "1.weight": m[0].weight.detach() * 0}, (x,), tie_weights=False) == 0
    ).all()
    with pytest.raises(ValueError, match="tied"):
        functional_call(m, {"0.weight": eye, "1.weight": 2 * eye}, (x,))
    with pytest.raises(KeyError, match="nothing"):
        functional_call(m, {"nothing": eye}, (x,))
    with pytest.raises(RuntimeError, match="Missing"):
        functional_call(m, {"0.weight": eye}, (x,), strict=True, tie_weights=False)
    before = m[0].weight
    with pytest.raises(TypeError):
        functional_call(m, {"0.weight": 3}, (x,))
    assert m[0].weight is before


def test_what_the_module_assigns_is_in_the_dict_afterwards() -> None:
    class Counts(cr.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", cr.zeros(1))

        def forward(self, x: cr.Tensor) -> cr.Tensor:
            self.seen = self.seen + 1
            return x + self.seen

    m, given = Counts(), cr.tensor([2.0])
    state = {"seen": given}
    assert functional_call(m, state, cr.zeros(1)).item() == 3.0
    assert state["seen"].item() == 3.0 and given.item() == 2.0 and m.seen.item() == 0.0


def test_none_takes_a_parameter_away_and_every_name_of_one_serves() -> None:
    m = cr.nn.Sequential(cr.nn.Linear(1, 1))
    old = m[0].bias
    y = functional_call(m, {"0.weight": cr.ones(1, 1), "0.bias": None}, cr.full((2, 1), 3.0))
    assert (y == 3).all() and m[0].bias is old
    m[0].back = m  # a module that contains itself
    y = functional_call(m, {"0.back.0.weight": cr.ones(1, 1), "0.bias": cr.ones(1)}, cr.zeros(1), tie_weights=False)
    assert y.item() == 1.0


def test_a_tied_name_is_not_missing() -> None:
    m = cr.nn.Sequential(cr.nn.Linear(1, 1, bias=False), cr.nn.Linear(1, 1, bias=False))
    m[1].weight = m[0].weight
    y = functional_call(m, {"0.weight": cr.full((1, 1), 3.0)}, cr.ones(1), strict=True)
    assert y.item() == 9.0
    with pytest.raises(RuntimeError, match="Missing"):
        functional_call(m, {"0.weight": cr.ones(1, 1)}, cr.ones(1), tie_weights=False, strict=True)
