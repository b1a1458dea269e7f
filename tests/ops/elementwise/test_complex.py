"""Complex numbers: parts are views under every transform, angles at 0, the half-precision type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule.func import grad, jvp, vmap

Z = np.array([1 + 2j, 3 - 1j, 0.5 + 0.25j])


def writes(lib: Any, z: Any, v: Any) -> Any:
    """A program that writes to a complex tensor through its parts, and to a real one through its complex view."""
    z = z * 1
    z.real[1:] = v
    z.imag.mul_(2)
    lib.view_as_real(z)[0, 1] = v * 3
    x = lib.stack([z.real, z.imag], -1)
    w = lib.view_as_complex(x)
    w[0] = 5.0 + 2j
    w.imag[2] = v
    return (z * z).real.sum() + (x**3).sum()


def test_writes_through_parts() -> None:
    z, v = torch.tensor(Z, requires_grad=True), torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    y = writes(torch, z, v)
    want = [g.resolve_conj().numpy() for g in torch.autograd.grad(y, (z, v))]
    x, u = cr.tensor(Z), cr.tensor(1.5, dtype=cr.float64)
    assert np.allclose(writes(cr, x, u).item(), y.item())
    got = grad(lambda z, v: writes(cr, z, v), argnums=(0, 1))(x, u)
    for a, b in zip(got, want, strict=True):
        assert np.allclose(a.numpy(), b)
    t = np.array([1j, 2, 3 + 1j])
    _, dy = jvp(lambda z, v: writes(cr, z, v), (x, u), (cr.tensor(t), cr.tensor(1.0, dtype=cr.float64)))
    assert np.isclose(dy.item(), (want[0].conj() * t).real.sum() + want[1])
    both = vmap(lambda z, v: writes(cr, z, v))(cr.tensor(np.stack([Z, 2 * Z])), cr.tensor([1.5, 3.0], dtype=cr.float64))
    one = writes(cr, cr.tensor(2 * Z), cr.tensor(3.0, dtype=cr.float64))
    assert np.allclose(both.numpy(), [y.item(), one.item()])


def test_parts_share_memory() -> None:
    z = cr.tensor(Z)
    re = z.real
    z.zero_()
    assert (re.numpy() == 0).all()
    re.fill_(7)
    assert (z.numpy() == 7).all()


@pytest.mark.parametrize("name", ["angle", "sgn", "abs"])
def test_derivative_at_zero_is_zero(name: str) -> None:
    g = grad(lambda z: getattr(z, name)().sum().real)(cr.zeros(2, dtype=cr.complex128))
    assert (g.numpy() == 0).all()


def test_complex32_is_rounded_once() -> None:
    x = cr.tensor([1.0, 1e-3], dtype=cr.float64)
    z = x.chalf() * (1 + 1j)
    assert z.dtype is cr.complex32 and z.real.dtype is cr.float16 and z.abs().dtype is cr.float16
    assert np.allclose(z.to(cr.complex64).numpy(), np.float16(x.numpy()) * (1 + 1j), rtol=1e-3)
    assert (z + z.to(cr.complex64)).dtype is cr.complex64
    assert np.allclose(grad(lambda x: (x.chalf() * (2 + 1j)).imag.sum())(x).numpy(), 1)


def test_view_as_complex_refuses() -> None:
    with pytest.raises(RuntimeError, match="size 2"):
        cr.view_as_complex(cr.zeros(3))
    with pytest.raises(RuntimeError, match="stride 1"):
        cr.view_as_complex(cr.zeros(2, 3).t())
    with pytest.raises(RuntimeError, match="complex"):
        cr.view_as_real(cr.zeros(3))
