"""PyTorch's names: each is here or has a reason, and code written for it runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule.cli.coverage import gaps
from chainrule.func import grad, vmap


def test_every_missing_name_has_a_reason() -> None:
    assert [g for g in gaps() if g[2] == "MISSING"] == []


def test_numpy_numbers_to_the_left() -> None:
    """``np.sqrt(2.0) * x`` is a tensor of the tensor's type, and has a derivative."""
    x = cr.tensor([1.0, 2.0])
    y = np.sqrt(2.0) * x
    assert isinstance(y, cr.Tensor)
    assert y.dtype is cr.float32
    assert isinstance(np.ones(2) - x, cr.Tensor)
    assert np.allclose(grad(lambda v: (np.float64(3) * v - np.array([1.0, 2.0]) / v).sum())(x).numpy(), [4.0, 3.5])
    assert vmap(lambda v: np.float64(2) ** v)(cr.ones(3, 2)).shape == (3, 2)


def test_equality_with_what_is_no_number() -> None:
    x = cr.tensor([1.0])
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711
    assert (x == "a") is False
    assert (x == np.array([1.0])).tolist() == [True]
    with pytest.raises(RuntimeError, match="eq"):
        cr.ones(2) == cr.ones(3)  # noqa: B015


def test_dlpack() -> None:
    a = cr.arange(3.0)
    t = torch.from_dlpack(a)
    t[0] = 7
    assert a.tolist() == [7, 1, 2]
    back = cr.from_dlpack(torch.arange(4))
    assert back.dtype is cr.int64
    assert np.from_dlpack(a).tolist() == [7, 1, 2]
    with pytest.raises(BufferError, match="detach"):
        np.from_dlpack(cr.ones(2, requires_grad=True))
    with pytest.raises(TypeError, match="ext_tensor"):
        cr.from_dlpack([1, 2])


def test_constructors_named_after_a_type() -> None:
    assert cr.LongTensor([1, 2]).dtype is cr.int64
    assert cr.HalfTensor(2, 3).shape == (2, 3)
    assert isinstance(cr.zeros(2), cr.FloatTensor)
    assert not isinstance(cr.zeros(2), cr.DoubleTensor)
    cr.set_default_tensor_type("torch.DoubleTensor")
    try:
        assert cr.tensor(1.5).dtype is cr.float64
    finally:
        cr.set_default_tensor_type(cr.FloatTensor)
    with pytest.raises(TypeError, match="floating"):
        cr.set_default_tensor_type(cr.LongTensor)


def test_settings_and_forked_random_numbers() -> None:
    cr.set_deterministic_debug_mode("warn")
    assert cr.are_deterministic_algorithms_enabled()
    assert cr.get_deterministic_debug_mode() == 1
    cr.use_deterministic_algorithms(False)
    assert cr.get_deterministic_debug_mode() == 0
    with cr.random.fork_rng():
        a = cr.rand(3)
    assert cr.equal(a, cr.rand(3))


def test_filling_keeps_the_history() -> None:
    x = cr.ones(2, requires_grad=True)
    y = x * 2
    y.zero_()
    assert y.requires_grad
    (y + x).sum().backward()
    assert x.grad.tolist() == [1, 1]
    assert vmap(lambda v: (v * 1).fill_(3.0) + v)(cr.ones(2, 2)).tolist() == [[4, 4], [4, 4]]
