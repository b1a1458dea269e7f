"""Parameters are instances of their class, and stay that when they are copied, pickled and computed with."""

from __future__ import annotations

import copy
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr


class Scaled(cr.nn.Parameter):
    """A parameter with a constructor of its own."""

    def __new__(cls, data: Any, scale: float, extra: str = "") -> Any:
        x = super().__new__(cls, data)
        x.scale = scale
        return x

    def __init__(self, data: Any, scale: float, extra: str = "") -> None:
        super().__init__()
        self.extra = extra


class Named(cr.Tensor):
    """A tensor class that knows nothing of parameters."""


def everyone() -> list[Any]:
    return [
        cr.nn.Parameter(cr.randn(2, 3)),
        cr.nn.Parameter(cr.randn(2, 3), requires_grad=False),
        cr.nn.Parameter(cr.randn(2, 3, dtype=cr.complex128)),
        Scaled(cr.randn(2, 3), 2.0, extra="x"),
    ]


@pytest.mark.parametrize("lib", [cr, torch], ids=["chainrule", "torch"])
def test_classes(lib: Any) -> None:
    p, q = lib.nn.Parameter(lib.ones(2)), lib.ones(2, requires_grad=True)
    assert type(p) is lib.nn.Parameter and isinstance(p, lib.Tensor) and not isinstance(q, lib.nn.Parameter)
    assert issubclass(lib.nn.Parameter, lib.Tensor) and p.requires_grad and p.is_leaf
    assert type(lib.nn.Parameter(p)) is lib.nn.Parameter
    for y in (p + 1, p * p, p.sum(), p[0], p.reshape(2, 1), p.detach(), p.clone(), -p, 2 - p, p.data):
        assert type(y) is lib.Tensor
    assert repr(p).startswith("Parameter containing:\n")
    b = lib.nn.Buffer(lib.ones(2), persistent=False)
    assert isinstance(b, lib.nn.Buffer) and not isinstance(b, lib.nn.Parameter) and not b.requires_grad
    assert not isinstance(p, lib.nn.Buffer)
    with pytest.raises(RuntimeError, match=r"[Oo]nly"):
        lib.nn.Parameter(lib.ones(2, dtype=lib.int64))
    assert not lib.nn.Parameter(lib.ones(2, dtype=lib.int64), requires_grad=False).requires_grad


@pytest.mark.parametrize(
    "how", [copy.deepcopy, copy.copy, lambda p: pickle.loads(pickle.dumps(p))], ids=["deepcopy", "copy", "pickle"]
)
def test_copies(how: Any) -> None:
    for p in everyone():
        p.note = ["kept"]
        p.grad = cr.ones_like(p.detach())
        q = how(p)
        assert type(q) is type(p) and q is not p and q.requires_grad == p.requires_grad and q.is_leaf
        assert q.note == p.note and (q.note is p.note) == (how is copy.copy)
        assert q.grad is None  # as in PyTorch
        assert getattr(q, "extra", "") == getattr(p, "extra", "")
        np.testing.assert_array_equal(q.detach().numpy(), p.detach().numpy())
        assert np.shares_memory(q.detach().numpy(), p.detach().numpy()) == (how is copy.copy)
        if q.requires_grad:
            (q * q).abs().sum().backward()
            assert q.grad is not None and (p.grad == 1).all()


def test_one_copy_of_a_shared_parameter() -> None:
    m = cr.nn.Sequential(cr.nn.Linear(3, 3), cr.nn.Linear(3, 3))
    m[1].weight = m[0].weight
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert other[1].weight is other[0].weight and type(other[0].weight) is cr.nn.Parameter
        assert len(list(other.parameters())) == 3


def test_files_keep_parameters(tmp_path: Any) -> None:
    p = cr.nn.Parameter(cr.ones(2))
    p.note = "kept"
    cr.save({"p": p}, tmp_path / "p.pt")
    q = cr.load(tmp_path / "p.pt")["p"]
    assert type(q) is cr.nn.Parameter and q.note == "kept" and q.requires_grad


def test_other_classes_become_parameters() -> None:
    x = cr.ones(2).as_subclass(Named)
    p = cr.nn.Parameter(x)
    assert (
        type(p) is Named and isinstance(p, cr.nn.Parameter) and p.requires_grad and not isinstance(x, cr.nn.Parameter)
    )
    m = cr.nn.Module()
    m.p = p
    assert list(m._parameters) == ["p"]
    assert not isinstance(p, Scaled)
    m.q = Scaled(cr.ones(2), 1.0)
    assert list(m._parameters) == ["p", "q"] and isinstance(m.q, Scaled) and "Parameter containing" in repr(m.q)


def test_every_transform_takes_parameters() -> None:
    p, x = cr.nn.Parameter(cr.randn(3, dtype=cr.float64)), cr.randn(3, dtype=cr.float64)
    plain = p.detach().clone()
    f = lambda w, x: ((w * 2 + w / x).tanh() * w).sum()
    for t in (
        lambda w: cr.func.grad(f)(w, x),
        lambda w: cr.func.grad(f, 1)(x, w),
        lambda w: cr.func.jvp(lambda w: f(w, x), (w,), (x,))[1],
        lambda w: cr.func.vmap(f)(w, x),
        lambda w: cr.func.vmap(f, in_dims=(None, 0))(w, x),
        lambda w: cr.func.hessian(f)(w, x),
        lambda w: cr.func.jacrev(cr.func.jacfwd(f))(w, x),
        lambda w: cr.func.vjp(f, w, x)[1](cr.tensor(1.0, dtype=cr.float64))[0],
    ):
        np.testing.assert_allclose(t(p).detach().numpy(), t(plain).numpy(), rtol=1e-12)
    (g,) = cr.autograd.grad(f(p, x), p, create_graph=True)
    (h,) = cr.autograd.grad(g.sum(), p)
    np.testing.assert_allclose(h.numpy(), cr.func.hessian(f)(plain, x).sum(0).numpy(), rtol=1e-12)


@pytest.mark.parametrize("level", ["plain", "leaf"])
def test_subclasses_compute_like_tensors(level: str) -> None:
    """The same numbers; what an op makes of a subclass is of that subclass, as in PyTorch."""

    def make(cls: type) -> Any:
        x = cr.tensor([1.0, -2.0]).as_subclass(cls)
        return x.requires_grad_() if level == "leaf" else x

    a, b, n = make(Named), make(cr.Tensor), cr.tensor([3.0, 4.0])
    for f in (
        lambda x: x + 1,
        lambda x: 1.5 - x,
        lambda x: x * n,
        lambda x: n / x,
        lambda x: x.abs(),
        lambda x: x * x,
        lambda x: x**2,
        lambda x: x > 0,
        lambda x: x + 1j,
        lambda x: x * True,
    ):
        y, z = f(a), f(b)
        assert type(y) is Named and type(z) is cr.Tensor and y.dtype is z.dtype and y.requires_grad == z.requires_grad
        np.testing.assert_array_equal(y.detach().numpy(), z.detach().numpy())


WRITES = [
    lambda lib, p: p.add_(1),
    lambda lib, p: p.mul_(p),
    lambda lib, p: p.__setitem__(0, 7.0),
    lambda lib, p: p.copy_(lib.zeros(2, 2)),
    lambda lib, p: p.T.copy_(lib.arange(4.0).reshape(2, 2)),
    lambda lib, p: p.detach().mul_(2),
    lambda lib, p: p.reshape(-1)[1:].zero_(),
    lambda lib, p: lib.nn.init.constant_(p, 3.0),
    lambda lib, p: p.data.copy_(lib.ones(2, 2)),
]


def test_writes_without_recording_go_into_the_memory_like_pytorch() -> None:
    seen: list[Any] = []
    for lib in (cr, torch):
        p = lib.nn.Parameter(lib.tensor([[1.0, 2.0], [3.0, 4.0]]))
        array, row = p.detach().numpy(), p.detach()[0]
        seen.append([])
        for write in WRITES:
            (p**2).sum().backward()
            with lib.no_grad():
                write(lib, p)
            assert p.is_leaf and p.requires_grad
            seen[-1].append((array.tolist(), p.tolist(), row.tolist()))
        m = lib.nn.Linear(2, 2)
        array = m.weight.detach().numpy()
        m.load_state_dict({"weight": lib.ones(2, 2), "bias": lib.ones(2)})
        seen[-1].append(array.tolist())
    assert seen[0] == seen[1]


@pytest.mark.parametrize("k", range(len(WRITES)))
def test_writes_leave_alone_what_a_tape_saved(k: int) -> None:
    for f in (
        lambda p: p**2,
        lambda p: p.T @ p,
        lambda p: p[0].exp(),
        lambda p: p.detach() * p,
        lambda p: p.unbind(0)[1].sin(),
    ):
        p = cr.nn.Parameter(cr.tensor([[1.0, 2.0], [3.0, 4.0]]))
        y = f(p).sum()
        (want,) = cr.autograd.grad(y, p, retain_graph=True)
        want = want.clone()
        with cr.no_grad():
            WRITES[k](cr, p)
        np.testing.assert_array_equal(cr.autograd.grad(y, p)[0].numpy(), want.numpy())


def test_a_copy_on_a_tape_does_not_keep_what_it_was_made_from() -> None:
    p = cr.ones(3, 4, requires_grad=True)
    y = p * 2
    flat = y.T.reshape(-1)  # a copy
    held = weakref.ref(y._value)
    out = flat.sin().sum()
    del y, flat
    assert held() is None
    assert cr.autograd.grad(out, p)[0].shape == (3, 4)
