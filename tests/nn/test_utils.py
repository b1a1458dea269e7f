"""Parametrizations, weight norm and spectral norm as modules use them; bounds on gradients."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule.nn.utils import parametrizations, parametrize


def close(a: Any, b: Any, tol: float = 1e-5) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tol, atol=tol)


def pair(*size: int) -> tuple[Any, Any]:
    theirs, ours = torch.nn.Linear(*size), cr.nn.Linear(*size)
    ours.load_state_dict({k: cr.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    return ours, theirs


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("old", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_weight_norm_like_pytorch(dim: int | None, old: bool) -> None:
    ours, theirs = pair(4, 3)
    if old:
        cr.nn.utils.weight_norm(ours, dim=dim)
        torch.nn.utils.weight_norm(theirs, dim=dim)
    else:
        parametrizations.weight_norm(ours, dim=dim)
        torch.nn.utils.parametrizations.weight_norm(theirs, dim=dim)
    assert {k: tuple(v.shape) for k, v in ours.state_dict().items()} == {
        k: tuple(v.shape) for k, v in theirs.state_dict().items()
    }
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    y, z = ours(cr.tensor(x)), theirs(torch.tensor(x))
    close(y, z)
    (y**2).sum().backward()
    (z**2).sum().backward()
    for (n, p), (k, q) in zip(sorted(ours.named_parameters()), sorted(theirs.named_parameters()), strict=True):
        assert n == k
        close(p.grad, q.grad, 1e-4)


@pytest.mark.parametrize("make", [cr.nn.utils.weight_norm, parametrizations.weight_norm], ids=["old", "new"])
def test_weight_norm_copies(make: Any) -> None:
    m = make(cr.nn.Linear(4, 3), dim=-1)  # the last dim, not the whole
    assert any(p.shape == (1, 4) for p in m.parameters())
    x = cr.randn(2, 4)
    y = m(x)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        close(other(x), y)
        assert type(other) is type(m)
        assert list(other.state_dict()) == list(m.state_dict())
        for p in other.parameters():
            p.grad = None
        other(x).sum().backward()
        assert all(p.grad is not None for p in other.parameters())
    fresh = make(cr.nn.Linear(4, 3), dim=-1)
    fresh.load_state_dict(m.state_dict())
    close(fresh(x), y)
    with pytest.raises(RuntimeError, match="Cannot register two"):
        make(m)


def test_weight_norm_removal() -> None:
    m = cr.nn.Linear(4, 3)
    w = m.weight.detach().clone()
    cr.nn.utils.weight_norm(m)
    assert sorted(n for n, _ in m.named_parameters()) == ["bias", "weight_g", "weight_v"]
    cr.nn.utils.remove_weight_norm(m)
    assert type(m) is cr.nn.Linear and list(m._parameters) == ["bias", "weight"]
    close(m.weight, w)
    with pytest.raises(ValueError, match="not found"):
        cr.nn.utils.remove_weight_norm(m)
    parametrizations.weight_norm(m)
    parametrize.remove_parametrizations(m, "weight")
    assert type(m) is cr.nn.Linear and not parametrize.is_parametrized(m)
    close(m.weight, w)


def test_new_weight_norm_takes_old_states() -> None:
    old, new = cr.nn.utils.weight_norm(cr.nn.Linear(4, 3)), parametrizations.weight_norm(cr.nn.Linear(4, 3))
    new.load_state_dict(old.state_dict())
    x = cr.randn(2, 4)
    close(new(x), old(x))


def test_weight_norm_of_zeros() -> None:
    m = cr.nn.Linear(4, 3)
    with cr.no_grad():
        m.weight[1] = 0
    parametrizations.weight_norm(m)
    m(cr.ones(1, 4)).sum().backward()
    assert np.isfinite(m.weight.detach().numpy()).all()
    assert all(np.isfinite(p.grad.numpy()).all() for p in m.parameters())


class Symmetric(cr.nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, a):
        return a.triu()


class Twice(cr.nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, y):
        return y / 2


class Wrong(cr.nn.Module):
    def forward(self, x):
        return x[0]


def test_parametrize() -> None:
    m = cr.nn.Linear(3, 3)
    parametrize.register_parametrization(m, "weight", Symmetric())
    close(m.weight, m.weight.T)
    assert "parametrizations.weight.original" in m.state_dict() and isinstance(m, cr.nn.Linear)
    assert parametrize.is_parametrized(m, "weight") and parametrize.type_before_parametrizations(m) is cr.nn.Linear
    before = m.weight.detach()
    parametrize.register_parametrization(m, "weight", Twice())
    close(m.weight, 2 * before)
    m.weight = cr.eye(3) * 3
    close(m.weight, cr.eye(3) * 3)
    m.weight.sum().backward()
    assert m.parametrizations.weight.original.grad is not None
    with parametrize.cached():
        assert m.weight is m.weight
    with pytest.raises(ValueError, match="shape"):
        parametrize.register_parametrization(cr.nn.Linear(3, 3), "weight", Wrong())
    with pytest.raises(ValueError, match="nothing"):
        parametrize.register_parametrization(m, "nothing", Twice())
    parametrize.remove_parametrizations(m, "weight")
    close(m.weight, cr.eye(3) * 3)
    assert m.weight.requires_grad and isinstance(m.weight, cr.nn.Parameter)


@pytest.mark.parametrize("old", [True, False])
def test_spectral_norm(old: bool) -> None:
    cr.manual_seed(0)
    m = cr.nn.Linear(4, 6)
    (cr.nn.utils.spectral_norm if old else parametrizations.spectral_norm)(m, n_power_iterations=30)
    m(cr.randn(2, 4)).sum().backward()
    assert abs(np.linalg.norm(m.weight.detach().numpy(), 2) - 1) < 1e-4
    m.eval()
    close(m.weight, m.weight, 0)
    other = pickle.loads(pickle.dumps(m))
    close(other.weight, m.weight)
    w = m.weight.detach()
    if old:
        cr.nn.utils.remove_spectral_norm(m)
    else:
        parametrize.remove_parametrizations(m, "weight")
    close(m.weight, w)


@pytest.mark.parametrize("old", [True, False])
def test_spectral_norm_takes_pytorchs_steps(old: bool) -> None:
    """From the same vectors: the older form updates v first and makes its step in forward; a look at the weight makes none."""
    ours, theirs = pair(4, 3)
    for lib, m in ((cr, ours), (torch, theirs)):
        (lib.nn.utils.spectral_norm if old else lib.nn.utils.parametrizations.spectral_norm)(m)
    ours.load_state_dict({k: cr.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x = np.random.default_rng(0).standard_normal((5, 4)).astype("f4")
    for _ in range(3):
        y, z = ours(cr.tensor(x)), theirs(torch.tensor(x))
        close(y, z)
        if old:
            close(ours.weight, theirs.weight)
        y.sum().backward(), z.sum().backward()
        for (n, p), (m, q) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
            assert n == m
            close(p.grad, q.grad, 1e-4)
    if old:
        assert [type(h).__name__ for h in ours._forward_pre_hooks.values()] == ["SpectralNorm"]
        cr.nn.utils.remove_spectral_norm(ours)
        assert not ours._forward_pre_hooks


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder"])
def test_orthogonal(shape: tuple[int, int], how: str) -> None:
    if how == "matrix_exp" and not hasattr(cr, "matrix_exp"):
        pytest.skip("there is no matrix_exp")
    m = cr.nn.Linear(*reversed(shape)).double()
    parametrizations.orthogonal(m, orthogonal_map=how)

    def check() -> None:
        w = m.weight.detach().numpy()
        w = w if w.shape[0] >= w.shape[1] else w.T
        np.testing.assert_allclose(w.T @ w, np.eye(w.shape[1]), atol=1e-10)

    check()
    (m.weight * cr.randn(*shape, dtype=cr.float64)).sum().backward()
    p = m.parametrizations.weight.original
    with cr.no_grad():
        p -= 0.1 * p.grad
    check()
    target = np.linalg.qr(np.random.default_rng(1).standard_normal((5, 5)))[0][: shape[0], : shape[1]]
    target = np.linalg.qr(target if shape[0] >= shape[1] else target.T)[0]
    target = target if shape[0] >= shape[1] else target.T
    m.weight = cr.tensor(np.ascontiguousarray(target))
    np.testing.assert_allclose(m.weight.detach().numpy(), target, atol=1e-10)


def test_clip_and_vectors() -> None:
    ours, theirs = pair(4, 3)
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    for limit, order in ((0.5, 2.0), (0.1, float("inf")), (1e9, 1.0)):
        for m, t in ((ours, cr.tensor(x)), (theirs, torch.tensor(x))):
            m.zero_grad()
            (m(t) ** 2).sum().backward()
        a = cr.nn.utils.clip_grad_norm_(ours.parameters(), limit, order)
        close(a, torch.nn.utils.clip_grad_norm_(theirs.parameters(), limit, order))
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            close(p.grad, q.grad)
    cr.nn.utils.clip_grad_value_(ours.parameters(), 0.01)
    assert all(abs(p.grad.numpy()).max() <= 0.01 for p in ours.parameters())
    v = cr.nn.utils.parameters_to_vector(ours.parameters())
    assert v.shape == (15,) and v.requires_grad
    cr.nn.utils.vector_to_parameters(cr.arange(15.0), ours.parameters())
    assert ours.bias.tolist() == [12, 13, 14] and ours.bias.is_leaf and ours.bias.requires_grad


def compositions(lib: Any) -> list[Any]:
    """What is seen of modules with one to three parametrizations of a weight, for either library."""
    P = lib.nn.utils.parametrize

    class Double(lib.nn.Module):
        def forward(self, x):
            return 2 * x

        def right_inverse(self, y):
            return y / 2

    class Shift(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.by = lib.nn.Parameter(lib.tensor(1.5))

        def forward(self, x):
            return x + self.by

    class Product(lib.nn.Module):
        def forward(self, a, b):
            return a * b

        def right_inverse(self, w):
            return w, lib.ones_like(w)

    seen: list[Any] = []
    w = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
    for steps in (
        [Double], [Double, Double], [Double, Shift], [Shift, Double], [Shift, Shift, Double], [Product, Double], [Product, Shift, Double],
    ):  # fmt: skip
        m = lib.nn.Linear(2, 2)
        with lib.no_grad():
            m.weight.copy_(w)
            m.bias.zero_()
        first = m.weight
        for s in steps:
            P.register_parametrization(m, "weight", s())
        seen.append((m.weight.tolist(), list(m.state_dict()), [n for n, _ in m.named_parameters()]))
        if steps[0] is not Product:
            assert m.parametrizations.weight.original is first
        if Shift in steps:
            with pytest.raises(RuntimeError, match="right_inverse"):
                m.weight = w * 3
        else:
            m.weight = w * 3
            seen.append(m.weight.tolist())
        other = copy.deepcopy(m)
        with lib.no_grad():
            for p in other.parameters():
                p.add_(1)
        seen.append((m.weight.tolist(), other.weight.tolist()))
        m.load_state_dict(other.state_dict())
        seen.append(m.weight.tolist())
        with P.cached():
            once = m.weight
            with P.cached():
                assert once is m.weight
            assert once is m.weight
        assert m.weight is not once
        (m(w) ** 2).sum().backward()
        seen.append([p.grad.tolist() for p in m.parameters()])
        P.remove_parametrizations(m, "weight")
        seen.append((m.weight.tolist(), type(m).__name__, sorted(n for n, _ in m.named_parameters())))
        assert (m.weight is first) == (steps[0] is not Product)
    return seen


def test_compositions_of_parametrizations_like_pytorch() -> None:
    for ours, theirs in zip(compositions(cr), compositions(torch), strict=True):
        assert ours == theirs


def test_copies_of_parametrized_modules_go_their_own_way() -> None:
    m = cr.nn.Linear(2, 2)
    parametrize.register_parametrization(m, "weight", Twice())
    parametrize.register_parametrization(m, "weight", Twice())
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        close(other.weight, m.weight)
        parametrize.remove_parametrizations(other, "weight")
        assert not parametrize.is_parametrized(other) and parametrize.is_parametrized(m, "weight")
        close(other.weight, m.weight)
        assert type(other.weight) is cr.nn.Parameter
    to = cr.nn.Linear(2, 2)
    parametrize.transfer_parametrizations_and_params(m, to)
    close(to.weight, m.weight)
    assert list(to.state_dict()) == list(m.state_dict())


def test_refused_parametrizations_leave_the_module_alone() -> None:
    class Half(cr.nn.Module):
        def forward(self, x):
            return x

        def right_inverse(self, y):
            return y[0]

    for before in ([], [Twice]):
        for bad in (Wrong, Half):
            m = cr.nn.Linear(3, 3)
            for b in before:
                parametrize.register_parametrization(m, "weight", b())
            w = m.weight.detach().clone()
            with pytest.raises(ValueError, match="shape"):
                parametrize.register_parametrization(m, "weight", bad())
            close(m.weight, w, 0)


def test_what_right_inverses_may_not_return() -> None:
    class Identity(cr.nn.Module):
        def forward(self, *xs: Any) -> Any:
            return xs[0]

    def inverse(f: Any) -> Any:
        return type("Inverse", (Identity,), {"right_inverse": lambda self, w: f(w)})()

    for f, words in (
        (lambda w: None, "Tensor or a Sequence of"),
        (lambda w: (None, w), "of the sequence with type"),
        (lambda w: w.bool(), "outputs one tensor, it may not change the dtype"),
    ):
        m = cr.nn.Linear(3, 4)
        with pytest.raises(ValueError, match=words):
            parametrize.register_parametrization(m, "weight", inverse(f))
        assert not parametrize.is_parametrized(m)
    m = cr.nn.Linear(3, 4)
    parametrize.register_parametrization(m, "weight", Identity())
    for f, words in (
        (lambda w: (w, w), "right_inverse must return a tensor"),
        (lambda w: w.bool(), "must have the same dtype"),
        (lambda w: w[:-1], "must have the same shape"),
    ):
        with pytest.raises(ValueError, match=words):
            parametrize.register_parametrization(m, "weight", inverse(f))
        assert len(m.parametrizations.weight) == 1
