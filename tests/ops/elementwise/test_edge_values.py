"""PyTorch's values at the edges: infinities in complex sums, branch points, arguments beyond all precision."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr

INF, NAN = float("inf"), float("nan")
EDGES = np.array([complex(a, b) for a, b in itertools.product((INF, -INF, 1.0, NAN, 0.0), repeat=2)])
LEFT, RIGHT = (np.ascontiguousarray(a) for a in np.broadcast_arrays(EDGES[:, None], EDGES))


def agree(got: Any, want: Any) -> None:
    """Equal, part by part, NaN with NaN."""
    got, want = got.numpy(), want.resolve_conj().numpy()
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got.real, want.real, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(got.imag, want.imag, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "f", [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a.add(b.real), lambda a, b: a.real - b]
)
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_infinities_in_complex_sums(f: Any, dtype: Any) -> None:
    a, b = LEFT.astype(dtype), RIGHT.astype(dtype)
    agree(f(cr.tensor(a), cr.tensor(b)), f(torch.tensor(a), torch.tensor(b)))


@pytest.mark.parametrize("f", [lambda a: a + 1.0, lambda a: 1.0 - a, lambda a: a - (1 + 2j), lambda a: 2 + a])
def test_infinities_in_complex_sums_with_numbers(f: Any) -> None:
    agree(f(cr.tensor(EDGES)), f(torch.tensor(EDGES)))


def test_complex_sums_of_other_shapes() -> None:
    a = cr.tensor(LEFT[:2, :3])
    with pytest.raises(RuntimeError, match="add"):
        a + cr.tensor(LEFT[:2, :2])
    assert (cr.zeros(0, dtype=cr.complex64) + cr.zeros(0, dtype=cr.complex64)).shape == (0,)


@pytest.mark.parametrize("exponent", [0.0, 2.0, -1.0, 0.5 + 1j, -0.5 - 1j, 1j])
def test_complex_zero_to_a_power(exponent: complex) -> None:
    z, e = np.array([0.0, -0.0, 1 + 1j], complex), np.full(3, exponent)
    agree(cr.tensor(z) ** cr.tensor(e), torch.tensor(z) ** torch.tensor(e))


def test_complex_zero_to_the_number_zero() -> None:
    assert (cr.zeros(2, dtype=cr.complex128) ** 0).tolist() == [1, 1]
    assert (cr.zeros(2, dtype=cr.float64) ** cr.zeros(2, dtype=cr.float64)).tolist() == [1, 1]


def test_complex_sigmoid_far_out() -> None:
    z = np.array([-800 + 1j, -800, 800 + 2j, complex(-INF, 1), -709 + 3j, 0.5 - 2j])
    agree(cr.sigmoid(cr.tensor(z)), torch.sigmoid(torch.tensor(z)))


def test_complex_ldexp_where_both_products_overflow() -> None:
    x, e = np.array([-1e20 - 1e20j, 1e20 - 1e20j, 1e300]), np.array([1001.2 - 501j, 1001.2 + 501j, 100j])
    y = cr.ldexp(cr.tensor(x), cr.tensor(e)).numpy()
    mantissa = cr.ldexp(cr.tensor(x), cr.tensor(e - 100)).numpy()
    assert not np.isnan(y).any()
    assert (np.sign(y.real) == np.sign(mantissa.real)).all()
    assert (np.sign(y.imag) == np.sign(mantissa.imag)).all()


def test_zeta_and_airy_beyond_precision() -> None:
    s = np.array([1e12, 2e13, 1e14, 1e20, INF])
    for q in (2.0, 1e9, 1e20):
        agree(cr.special.zeta(cr.tensor(s), q), torch.special.zeta(torch.tensor(s), q))
    x = np.array([-1e12, -1e15, -1e20, -1e200, -INF, INF, 100.0, 200.0])
    agree(cr.special.airy_ai(cr.tensor(x)), torch.special.airy_ai(torch.tensor(x)))


def test_out_within_an_input_is_refused() -> None:
    b = cr.arange(6.0)
    with pytest.raises(RuntimeError, match="out shares memory"):
        cr.atan2(b[:5], b[:5], out=b[1:])
    assert cr.maximum(b, b, out=b) is b


@pytest.mark.parametrize("exponent", [1.0, 2.0])
def test_derivative_of_complex_powers_at_zero(exponent: float) -> None:
    """Only the value 0 ** 0 is PyTorch's NaN: z ** 1 has the derivative 1 there."""
    z, e = cr.zeros(2, dtype=cr.complex128), cr.full((2,), exponent, dtype=cr.complex128)
    _, t = cr.func.jvp(lambda z: z**e, (z,), (cr.ones_like(z),))
    assert t.tolist() == [1, 1] if exponent == 1 else t.tolist() == [0, 0]
    assert cr.vander(z, 2).tolist() == [[0, 1], [0, 1]]


def test_a_negative_base_has_complex_powers_and_their_slopes():
    a = cr.tensor([-2.0, -0.5, 3.0], dtype=cr.float64, requires_grad=True)
    b = cr.tensor([1 + 1j, 2 - 0.5j, 0.5j], dtype=cr.complex128, requires_grad=True)
    cr.pow(a, b).real.sum().backward()
    ta = torch.tensor([-2.0, -0.5, 3.0], dtype=torch.float64, requires_grad=True)
    tb = torch.tensor([1 + 1j, 2 - 0.5j, 0.5j], dtype=torch.complex128, requires_grad=True)
    torch.pow(ta, tb).real.sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), ta.grad.numpy(), rtol=1e-13)
    np.testing.assert_allclose(b.grad.numpy(), tb.grad.numpy(), rtol=1e-13)


@pytest.mark.parametrize("alpha", [0, 1, 2, True, False])
def test_a_sum_of_booleans_is_boolean_whatever_alpha_is(alpha):
    for other in ([True, True], [False, True]):
        got = cr.add(cr.tensor([True, False]), cr.tensor(other), alpha=alpha)
        want = torch.add(torch.tensor([True, False]), torch.tensor(other), alpha=alpha)
        assert got.dtype is cr.bool and got.tolist() == want.tolist()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_hardshrink_shrinks_what_equals_its_threshold(dtype):
    values = [0.3, -0.3, 0.31, 0.1]

    def run(lib):
        x = lib.tensor(values, dtype=getattr(lib, dtype), requires_grad=True)
        y = lib.nn.functional.hardshrink(x, 0.3)
        y.sum().backward()
        return y.detach().float().tolist(), x.grad.float().tolist()

    assert run(cr) == run(torch)


@pytest.mark.filterwarnings("ignore:index_reduce:UserWarning")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_extrema_of_16_bits_without_what_stood_there(dtype, reduce):
    def run(lib):
        d = getattr(lib, dtype)
        src = lib.tensor([[1.0, 2, 3, 4], [-4, 3, 2, 2]], dtype=d, requires_grad=True)
        index = lib.tensor([[0, 1, 1, 2], [0, 0, 1, 1]])
        y = lib.zeros(2, 3, dtype=d).scatter_reduce(1, index, src, reduce, include_self=False)
        z = lib.zeros(2, 3, dtype=d).index_reduce(1, lib.tensor([0, 2, 2, 0]), src, reduce, include_self=False)
        (y.sum() + z.sum()).backward()
        return y.detach().float().tolist(), z.detach().float().tolist(), src.grad.float().tolist()

    assert run(cr) == run(torch)


def _losses(lib, x):
    target = lib.zeros(0, dtype=lib.int64)
    f = lib.nn.functional
    for reduction in ("none", "sum", "mean"):
        yield f.cross_entropy(x, target, reduction=reduction)
        yield f.cross_entropy(x, target, lib.ones(5), reduction=reduction, label_smoothing=0.1)
        yield f.nll_loss(x, target, reduction=reduction)
    yield lib.cdist(x, lib.zeros(3, 5))
    yield lib.cdist(lib.zeros(3, 5), x, p=float("inf"))


def test_an_empty_batch_stays_in_the_graph():
    x, t = cr.zeros(0, 5, requires_grad=True), torch.zeros(0, 5, requires_grad=True)
    for got, want in zip(_losses(cr, x), _losses(torch, t), strict=True):
        assert got.requires_grad and tuple(got.shape) == tuple(want.shape)
        np.testing.assert_array_equal(got.detach().numpy(), want.detach().numpy())
        (g,) = cr.autograd.grad(got.sum(), x)
        assert tuple(g.shape) == (0, 5)
    for shape in ((0, 5), (1, 5), (3, 0)):
        x = cr.zeros(*shape, requires_grad=True)
        (g,) = cr.autograd.grad(cr.pdist(x).sum(), x)
        assert tuple(g.shape) == shape and not g.numpy().any()


@pytest.mark.parametrize("name", ["rand", "randn"])
def test_random_numbers_are_drawn_in_the_type_of_out(name):
    out = cr.empty(50, dtype=cr.complex64)
    assert getattr(cr, name)(50, out=out) is out
    assert out.numpy().imag.any()
    wide = getattr(cr, name)(50, out=cr.empty(50, dtype=cr.float64)).numpy()
    assert (wide != wide.astype(np.float32)).any()
    with pytest.raises(RuntimeError, match="does not match that of out"):
        getattr(cr, name)(3, dtype=cr.float64, out=cr.empty(3))


def test_renorm_keeps_what_two_terms_leave_of_each_other():
    x = cr.tensor([[0.0, 4.0, 0.0]], requires_grad=True)
    (cr.renorm(x, 2, 0, 0.7) ** 2).sum().backward()
    # d/dx (0.7 x / (x + 1e-7))**2 at 4: all but 1e-7 of it cancels
    np.testing.assert_allclose(x.grad.numpy()[0, 1], 2 * 0.7 * 0.7e-7 / 4**2, rtol=1e-5)
