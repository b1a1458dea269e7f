"""Rounded once: derivatives of 16-bit floats, means in double precision, against the same numbers in float64."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr

F = cr.nn.functional


def gradient(f, *xs):
    return cr.func.grad(lambda *x: f(*x).sum().to(cr.float32), tuple(range(len(xs))))(*xs)


def in_units(got, exact, dtype):
    """The largest error in units in the last place of the exact result, or of the smallest normal number."""
    info = cr.finfo(dtype)
    exact = exact.numpy()
    return float((np.abs(got.double().numpy() - exact) / (info.eps * np.maximum(np.abs(exact), info.tiny))).max())


def drawn(shape, dtype, seed=0):
    return cr.tensor(np.random.default_rng(seed).uniform(1.0, 9.0, shape)).to(dtype)


def test_the_derivative_of_a_large_variance_does_not_overflow():
    x = drawn((260, 260), cr.float16)
    (g,) = gradient(lambda x: x.var() * 60000, x)
    assert bool(g.isfinite().all()) and float(g.abs().max()) > 0


@pytest.mark.parametrize("f", [cr.std_mean, cr.var_mean], ids=["std_mean", "var_mean"])
def test_the_mean_beside_a_variance_is_rounded_once(f):
    x = cr.tensor(np.random.default_rng(1).uniform(-9, 9, (45, 45, 45)).astype(np.float32))
    m = f(x, dim=1)[1]
    assert in_units(m, x.double().mean(1), cr.float32) <= 0.51


@pytest.mark.parametrize("shape", [(45, 45, 45), (300, 64), (8, 6, 3)])
def test_batch_norm_adds_in_double_precision(shape):
    x = cr.tensor(np.random.default_rng(2).uniform(-9, 9, shape).astype(np.float32) + 3)
    _, m, _ = cr.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
    exact = x.double().transpose(0, 1).reshape(shape[1], -1).mean(1)
    assert float((m.double() - exact).abs().max()) < 4e-7  # 1.5 units of entries of 3; a float32 chain has more


def test_layer_norm_of_nearly_equal_entries():
    a = np.random.default_rng(3).uniform(1, 9, 4096).astype(np.float32)
    x = cr.tensor(np.stack([a, np.nextafter(a, np.float32(10))], 1))
    y = F.layer_norm(x, (2,), eps=1e-12)
    exact = F.layer_norm(x.double(), (2,), eps=1e-12)
    assert float((y.double() - exact).abs().max()) < 1e-5


@pytest.mark.parametrize("dtype", [cr.float16, cr.bfloat16], ids=str)
def test_statistics_have_pytorchs_types(dtype):
    x = drawn((2, 4, 3), dtype)
    for w, kept in ((None, dtype), (cr.ones(4).to(dtype), dtype), (cr.ones(4), cr.float32)):
        w3 = None if w is None else w[:3]
        for y, m, r in (
            cr.native_layer_norm(x, (3,), w3, None, 1e-5),
            cr.native_group_norm(x, w, None, 2, 4, 3, 2, 1e-5),
            cr.native_batch_norm(x, w, None, None, None, True, 0.1, 1e-5),
        ):
            assert (y.dtype, m.dtype, r.dtype) == (dtype, kept, kept)


def test_slope_of_silu_at_its_minimum():
    x = cr.tensor(np.linspace(-1.2785, -1.2784, 20001).astype(np.float32))
    (got,), (exact,) = gradient(F.silu, x), gradient(F.silu, x.double())
    assert float((got.double() - exact).abs().max()) < 2.5e-8


@pytest.mark.parametrize("dtype", [cr.float16, cr.bfloat16], ids=str)
@pytest.mark.parametrize(
    "shapes", [((7, 9), (35, 9, 5)), ((35, 7, 9), (1, 9, 5)), ((4, 1, 7, 9), (1, 6, 9, 5))], ids=str
)
def test_cotangents_of_shared_matrices_are_rounded_after_their_sum(shapes, dtype):
    a, b = (drawn(s, dtype, seed) - 5 for seed, s in enumerate(shapes))
    got, exact = gradient(cr.matmul, a, b), gradient(cr.matmul, a.double(), b.double())
    for g, e in zip(got, exact, strict=True):
        error = np.abs(g.double().numpy() - e.numpy())
        # half a unit in the last place, and what float32 leaves where a sum cancels
        assert (error <= 0.51 * cr.finfo(dtype).eps * np.abs(e.numpy()) + 2e-4).all()


@pytest.mark.parametrize("dtype", [cr.float16, cr.bfloat16], ids=str)
def test_a_gate_is_rounded_once(dtype):
    x = drawn((64, 32), dtype) - 5
    assert in_units(F.glu(x), F.glu(x.double()), dtype) <= 0.501


@pytest.mark.parametrize("dtype", [cr.float16, cr.bfloat16, cr.float32], ids=str)
def test_rms_norm_of_one_element_has_a_slope(dtype):
    """``eps / (x*x + eps)**1.5``, where ``1 - x*x / (x*x + eps)`` has no digits."""
    x = drawn((50, 1), dtype)
    w = drawn((1,), dtype, 1)
    eps = 2.0**-20
    got, exact = (gradient(lambda x, w: F.rms_norm(x, (1,), w, eps), *v)[0] for v in ((x, w), (x.double(), w.double())))
    np.testing.assert_allclose(
        got.double().numpy(), exact.numpy(), rtol=3 * cr.finfo(dtype).eps, atol=cr.finfo(dtype).tiny
    )


def test_products_of_8_bit_floats():
    """Rounded once. PyTorch's results depend on the processor: some round twice, and overflow to NaN."""
    import torch

    a, b = (np.random.default_rng(k).uniform(-4, 4, s).astype(np.float32) for k, s in enumerate([(15, 16), (32, 16)]))
    for name in ("float8_e4m3fn", "float8_e5m2"):
        for out in (None, "bfloat16"):
            for scale in ((0.5, 3.0), (500.0, 1000.0)):
                x, y = (cr.tensor(v).to(getattr(cr, name)) for v in (a, b))
                kw = {} if out is None else {"out_dtype": getattr(cr, out)}
                got = cr._scaled_mm(x, y.T, *[cr.tensor(s) for s in scale], **kw)
                exact = torch.tensor(x.double().numpy() @ y.double().numpy().T * scale[0] * scale[1])
                want = exact.to(getattr(torch, out or name))
                assert str(got.dtype).split(".")[1] == str(want.dtype).split(".")[1]
                np.testing.assert_array_equal(got.float().numpy(), want.float().numpy())


@pytest.mark.parametrize("name", ["conv1d", "conv_transpose1d"])
def test_convolutions_of_many_taps_are_sums_of_sums(name):
    rng = np.random.default_rng(0)
    x, w = (cr.tensor(rng.uniform(-9, 9, s).astype(np.float32)) for s in ((1, 42, 56), (42, 42, 42)))
    f = getattr(F, name)
    exact = f(x.double(), w.double(), stride=2, padding=2)
    error = f(x, w, stride=2, padding=2).double() - exact
    assert (
        error.square().mean().sqrt() < 5 * 6e-8 * exact.square().mean().sqrt()
    )  # one chain of float32 errs by 8 to 12


def test_the_weight_of_a_convolution_sums_over_a_large_image_in_parts():
    rng = np.random.default_rng(0)
    x, g = (cr.tensor(rng.uniform(0, 1, (1, 1, 600, 600)).astype(np.float32)) for _ in range(2))
    slope = lambda x, g: cr.func.grad(lambda w: (F.conv2d(x, w, padding=1) * g).sum())(x.new_ones(1, 1, 3, 3))
    exact = slope(x.double(), g.double())
    assert ((slope(x, g).double() - exact) / exact).abs().max() < 4 * 6e-8  # one chain of each lane errs by 20
