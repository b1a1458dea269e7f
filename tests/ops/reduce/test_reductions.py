"""Reductions, scans, norms and distances where they are delicate: zeros, ties, infinities, cancellation, long scans."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule.func import grad, hessian, jvp, vmap

INF = math.inf


def grad_of(f, *x):
    return grad(lambda v: f(v).sum())(cr.tensor(np.array(x, float))).numpy()


def torch_grad(f, *x):
    v = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    f(v).sum().backward()
    return np.zeros(v.shape) if v.grad is None else v.grad.numpy()


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, 4, INF, -INF, -1, -2])
@pytest.mark.parametrize("x", [(0.0, 0.0, 0.0), (3.0, -3.0, 0.0), (3.0, 1.0, 2.0), (1.0, 1.0, 1.0)])
def test_norm_subgradients_are_pytorchs(p, x):
    got = grad_of(lambda v: cr.linalg.vector_norm(v, p), *x)
    np.testing.assert_allclose(got, torch_grad(lambda v: torch.linalg.vector_norm(v, p), *x), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1.0, 1e160, 1e200])
@pytest.mark.parametrize("p", [2, 3, 1.5])
def test_norms_neither_overflow_nor_underflow(scale, p):
    x = np.array([3.0, -4.0, 12.0])
    y = cr.linalg.vector_norm(cr.tensor(x * scale), p).item()
    assert y == pytest.approx(np.linalg.norm(x, p) * scale, rel=1e-13)
    np.testing.assert_allclose(
        grad_of(lambda v: cr.linalg.vector_norm(v, p), *x * scale), grad_of(lambda v: v.norm(p), *x)
    )


def test_even_norms_are_smooth_at_zero_entries():
    h = hessian(lambda v: cr.linalg.vector_norm(v, 4) ** 4)(cr.tensor([0.0, 2.0], dtype=cr.float64)).numpy()
    np.testing.assert_allclose(h, [[0, 0], [0, 48]], atol=1e-12)


@pytest.mark.parametrize(
    "f", [lambda m, v: m.nanmedian(v), lambda m, v: m.max(v), lambda m, v: m.median(v), lambda m, v: m.min(v)]
)
@pytest.mark.parametrize("x", [(1.0, 3.0, 3.0, 1.0), (2.0, 2.0, 2.0), (math.nan, 1.0, math.nan)])
def test_ties_share(f, x):
    np.testing.assert_allclose(grad_of(lambda v: f(cr, v), *x), torch_grad(lambda v: f(torch, v), *x))


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("correction", [0, 1, 3, 4])
@pytest.mark.parametrize("dim", [None, 0])
def test_variance_without_degrees_of_freedom(correction, dim):
    for x in ((1.0, 2.0, 4.0), (2.0, 2.0, 2.0)):
        got = grad_of(lambda v: cr.var(v, dim, correction=correction), *x)
        np.testing.assert_array_equal(got, torch_grad(lambda v: torch.var(v, dim, correction=correction), *x))


def test_std_at_zero():
    assert grad_of(cr.std, 2.0, 2.0, 2.0).tolist() == [0, 0, 0]


def test_cumprod_through_zeros_at_second_order():
    x = cr.tensor([2.0, 0.0, 3.0, 0.0, 5.0], dtype=cr.float64)
    h = hessian(lambda v: v.cumprod(0).sum())(x).numpy()
    v = torch.tensor(x.numpy(), requires_grad=True)
    want = torch.autograd.functional.hessian(lambda u: sum(torch.stack(list(u[:k])).prod() for k in range(1, 6)), v)
    np.testing.assert_allclose(h, want.numpy(), atol=1e-12)


def test_cumprod_overflow_stays_where_it_is():
    # Products of later entries overflow, but the zero in front keeps them out of the values.
    x = cr.tensor([0.0] + [1e10] * 100, dtype=cr.float64)
    _, t = jvp(lambda v: v.cumprod(0), (x,), (cr.tensor([0.0] + [1.0] * 100, dtype=cr.float64),))
    np.testing.assert_array_equal(t.numpy(), np.zeros(101))


def test_long_linear_scans_agree_with_short_ones():
    rng = np.random.default_rng(0)
    x = cr.tensor(rng.uniform(0.8, 1.2, (3, 200)))
    g = grad(lambda v: (v.cumprod(-1) * v).sum())
    one = np.stack([g(x.narrow(0, i, 1)).numpy()[0] for i in range(3)])
    many = g(cr.tensor(np.repeat(x.numpy(), 100, 0))).numpy()[::100]
    np.testing.assert_allclose(one, many, rtol=1e-12)


def test_logcumsumexp_far_from_zero():
    x = (-INF, -800.0, 900.0, -800.0, 901.0)
    got = grad_of(lambda v: v.logcumsumexp(0), *x)
    y = np.logaddexp.accumulate(np.array(x))
    want = [sum(math.exp(a - y[k]) for k in range(i, 5) if y[k] != -INF) for i, a in enumerate(x)]
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_cdist_of_close_and_equal_points():
    rng = np.random.default_rng(1)
    a = rng.standard_normal((300, 20)) + 1e3
    b = np.concatenate([a[:100], a[100:200] + 1e-7, a[200:] + 1])
    y = cr.cdist(cr.tensor(a), cr.tensor(b)).numpy()
    want = np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))
    np.testing.assert_allclose(y, want, rtol=1e-9)
    assert (np.diag(y)[:100] == 0).all()
    assert np.isfinite(grad(lambda v: cr.cdist(v, cr.tensor(b)).sum())(cr.tensor(a)).numpy()).all()


def test_means_of_half_precision_do_not_overflow():
    x = cr.full((70000,), 2.0, dtype=cr.float16)
    assert x.mean().item() == 2.0
    assert x.std().item() == 0.0


def test_bincount_under_vmap_needs_a_length():
    x = cr.tensor([[0, 1, 1], [2, 2, 2]])
    assert vmap(lambda v: cr.bincount(v, minlength=3))(x).tolist() == [[1, 2, 0], [0, 0, 3]]
    with pytest.raises(RuntimeError, match="minlength"):
        vmap(cr.bincount)(x)


def test_quantile_is_differentiable_in_q():
    x = cr.tensor([1.0, 5.0, 2.0, 10.0], dtype=cr.float64)
    assert grad(lambda q: cr.quantile(x, q))(cr.tensor(0.5, dtype=cr.float64)).item() == pytest.approx(9.0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "amax", "logsumexp", "mean", "std", "norm", "prod"])
def test_masked_out_entries_do_not_count(name):
    f = getattr(cr.masked, name)
    x, m = np.array([[1.0, math.nan, 3.0]]), cr.tensor([[True, False, True]])
    y = f(cr.tensor(x), dim=1, mask=m).numpy()
    np.testing.assert_allclose(y[..., [0, -1]] if y.ndim == 2 else y, f(cr.tensor(x[:, [0, 2]]), dim=1).numpy())
    g = grad(lambda v: f(v, dim=1, mask=m).nan_to_num(neginf=0.0).sum())(cr.tensor(x)).numpy()
    assert np.isfinite(g).all() and g[0, 1] == 0


# -- rounding: long axes, every layout, every type ------------------------------------------------------------------------

NARROW = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


MANY = 2**24 + 64  # one by one, a float32 gets no further than 2**24


def test_long_leading_axes_keep_every_entry():
    x = cr.ones(MANY, 2)
    assert x.sum(0).tolist() == [MANY] * 2
    assert x.T.sum(1).tolist() == [MANY] * 2
    assert x.mean(0).tolist() == [1.0, 1.0]


def test_gradients_of_what_is_broadcast_keep_every_entry():
    x = cr.ones(1, 1).expand(MANY, 1)
    assert grad(lambda w: (x * w).sum())(cr.ones(1)).tolist() == [MANY]
    assert grad(lambda b: (x + b).sum())(cr.ones(1, 1)).tolist() == [[MANY]]


@pytest.mark.parametrize("rows", [10**4, 10**6])
def test_variances_of_shifted_data(rows):
    a = np.random.default_rng(0).normal(1e4, 1, (rows, 3)).astype(np.float32)
    x, want = cr.from_numpy(a), a.astype(np.float64).var(0, ddof=1)
    for got in (x.var(0), x.T.var(1), x.flip(0).var(0), x.std(0) ** 2, cr.var_mean(x, 0).var, cr.cov(x.T).diagonal()):
        np.testing.assert_allclose(got.numpy(), want, rtol=3e-5)
    for got in (x.var(0), x.T.var(1), x.flip(0).var(0)):
        np.testing.assert_allclose(got.numpy(), want, rtol=2e-7)


def test_equal_entries_have_no_variance():
    for n in (7, 9, 5000):
        x = cr.full((n, 3), 0.1, dtype=cr.float64)
        assert x.var(0).tolist() == [0, 0, 0] and x.T.std(1).tolist() == [0, 0, 0] and x.std().item() == 0
        assert not grad(lambda v: v.std())(x).any()


@pytest.mark.parametrize("scale", [1e20, 1e-22, 1e35, 1e-37])
@pytest.mark.parametrize("shape", [(40, 5), (400, 50)])
def test_squares_of_large_and_small_numbers(scale, shape):
    a = (np.random.default_rng(0).normal(size=shape) * scale).astype(np.float32)
    x, wide = cr.from_numpy(a), a.astype(np.float64)
    for dim in (0, 1, None):
        np.testing.assert_allclose(x.std(dim).numpy(), wide.std(dim, ddof=1), rtol=1e-6)
        np.testing.assert_allclose(cr.linalg.vector_norm(x, 2, dim).numpy(), np.sqrt((wide**2).sum(dim)), rtol=1e-6)
        np.testing.assert_allclose(
            cr.linalg.vector_norm(x, 3, dim).numpy(), (np.abs(wide) ** 3).sum(dim) ** (1 / 3), rtol=1e-6
        )
    g = grad(lambda v: v.std())(x).numpy()
    np.testing.assert_allclose(g, (wide - wide.mean()) / (wide.size - 1) / wide.std(ddof=1), rtol=2e-4, atol=1e-8)
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_allclose(x.var().numpy(), np.float32(wide.var(ddof=1)), rtol=1e-6, atol=2e-45)


def views(x):
    """One tensor, and the same numbers in other layouts."""
    n = x.ndim
    turned = x.permute(*reversed(range(n))).contiguous().permute(*reversed(range(n)))
    apart = cr.stack([x, x], -1).flatten(-2)[..., ::2]
    return [x, turned, apart, x.transpose(0, -1).contiguous().transpose(0, -1), x.flip(-1).contiguous().flip(-1)]


@pytest.mark.parametrize(
    "shape,dtype",
    [
        *[(s, d) for s in ((5, 9, 3), (60, 50, 40)) for d in ("float32", "float64", "bfloat16", "complex64")],
        ((3, 4000, 2), "float32"),
    ],
)
def test_layouts_change_no_bit(shape, dtype):
    rng = np.random.default_rng(1)
    a = rng.normal(size=shape) * rng.choice([1, 1e4], size=shape)
    x = cr.tensor(a + 1j * a[::-1] if dtype == "complex64" else a).to(getattr(cr, dtype))
    names = ["sum", "mean", "var", "std"] + ["norm", "logsumexp", "nansum", "prod"] * (dtype != "complex64")
    for name in names:
        for dim in (0, 1, 2) if name == "prod" else (0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2)):
            f = {"norm": lambda v, d: cr.linalg.vector_norm(v, 2, d)}.get(name, lambda v, d: getattr(v, name)(d))  # noqa: B023
            first, *others = (f(v, dim).contiguous().view_as(f(x, dim)).to(cr.complex128).numpy() for v in views(x))
            for y in others:
                np.testing.assert_array_equal(y, first, err_msg=f"{name} over {dim}")


def test_a_sum_does_not_depend_on_where_its_axis_stands():
    x = cr.tensor(np.random.default_rng(0).normal(size=(300, 200)).astype(np.float32))
    assert (x.sum(0) == x.T.sum(1)).all() and (x.sum(0) == x.T.contiguous().sum(1)).all()
    assert (vmap(lambda v: v.sum(), in_dims=1)(x) == x.sum(0)).all()


@pytest.mark.parametrize("kernels", [True, False])
def test_sums_are_right_with_and_without_kernels(kernels, monkeypatch):
    from chainrule.kernels import sums

    if not kernels:

        def none(*args):
            raise cr.kernels.NotSupported

        monkeypatch.setattr(sums, "total", none)
    for dtype, eps in NARROW.items():
        a = cr.tensor(np.random.default_rng(0).normal(0.5, 1, (9000, 6))).to(getattr(cr, dtype))
        wide = a.to(cr.float64).numpy()
        for x, w in ((a, wide), (a.T, wide.T)):
            for dim in (0, 1, None):
                size = np.abs(wide if dim is None else w).sum(dim)
                off = np.abs(x.sum(dim).to(cr.float64).numpy() - w.sum(dim)) / size / eps
                assert off.max() <= (2.5 if kernels and cr.kernels.available() else 4), (dtype, dim)
                np.testing.assert_allclose(x.var(dim).to(cr.float64).numpy(), w.var(dim, ddof=1), rtol=3 * eps)
                np.testing.assert_allclose(x.to(cr.float64).prod(-1).numpy(), w.prod(-1), rtol=1e-12)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
@pytest.mark.parametrize("dim", [0, 1])
def test_long_scans_are_rounded_once(name, dim):
    f = {"cumsum": np.add, "cumprod": np.multiply, "logcumsumexp": np.logaddexp}[name]
    a = np.random.default_rng(0).uniform(0, 1, (3, 200_000) if dim else (200_000, 3))
    a = (np.exp((a - 0.5) / 100) if name == "cumprod" else a).astype(np.float32)
    want = f.accumulate(a.astype(np.float64), axis=dim)
    for x in (cr.from_numpy(a), cr.from_numpy(np.asfortranarray(a))):
        np.testing.assert_allclose(getattr(x, name)(dim).numpy(), want, rtol=2.0**-23)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
def test_integers_in_the_type_that_is_asked_for(name, dtype):
    x = [[3, 100, 100], [7, 2, 90]]
    got = getattr(cr, name)(cr.tensor(x), 1, dtype=getattr(cr, dtype))
    want = getattr(torch, name)(torch.tensor(x), 1, dtype=getattr(torch, dtype))
    assert got.dtype is getattr(cr, dtype) and got.tolist() == want.tolist()
    assert getattr(cr, name)(cr.tensor(x, dtype=cr.int8), 1).dtype is cr.int64


def test_scans_of_booleans_count_or_are_refused():
    x = cr.tensor([True, False, True])
    assert x.cumsum(0).tolist() == [1, 1, 2]
    with pytest.raises(NotImplementedError, match="int64"):
        x.cumsum(0, dtype=cr.bool)


def test_a_narrow_scan_takes_no_wide_memory():
    import tracemalloc

    x = cr.ones(4_000_000, dtype=cr.int8)
    tracemalloc.start()
    y = x.cumsum(0, dtype=cr.int8)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert y[126].item() == 127 and peak < 2.5 * x.numel()


def once(f, *xs):
    """How many results of 16-bit inputs are not the rounded result of the same numbers in float64, and how many there are."""
    y = f(*xs)
    want = f(*[x.to(cr.float64) for x in xs]).to(y.dtype)
    return (y != want).sum().item(), y.numel()


@pytest.mark.parametrize("dtype", [cr.float16, cr.bfloat16])
def test_products_and_sums_in_16_bits_are_rounded_once(dtype):
    rng = np.random.default_rng(0)
    x, w, b = (cr.tensor(rng.normal(size=s)).to(dtype) for s in ((64, 128), (32, 128), (32,)))
    b = b * 8
    f = cr.nn.functional
    for g, *xs in (
        (f.linear, x, w, b),
        (f.linear, x[0], w, b),
        (lambda b, x, w: cr.addmm(b, x, w.T, beta=0.7, alpha=1.3), b, x, w),
        (lambda b, x, w: cr.baddbmm(b, x.reshape(4, 16, 128), w.T.expand(4, 128, 32)), b, x, w),
        (lambda b, x, w: cr.addbmm(b, x.reshape(4, 16, 128), w.T.expand(4, 128, 32)), b, x, w),
        (lambda b, x, w: cr.addmv(b[:1], x, w[0]), b, x, w),
        (lambda x: x.std(0), x),
        (lambda x: x.norm(dim=1), x),
    ):
        wrong, n = once(g, *xs)
        assert wrong <= max(1, 0.004 * n)


@pytest.mark.parametrize("dtype", [cr.float16, cr.bfloat16])
def test_attention_in_16_bits_is_rounded_once(dtype):
    rng = np.random.default_rng(0)
    q, k, v = (cr.tensor(rng.normal(size=(2, 3, 40, 32)) * 2).to(dtype) for _ in range(3))
    f = cr.nn.functional.scaled_dot_product_attention
    mask = cr.tensor(rng.random((40, 40)) < 0.7)
    for g in (f, lambda q, k, v: f(q, k, v, is_causal=True), lambda q, k, v: f(q, k, v, mask)):
        wrong, n = once(g, q, k, v)
        assert wrong <= 0.01 * n
    assert all(g.dtype is dtype for g in grad(lambda *a: f(*a).sum(), argnums=(0, 1, 2))(q, k, v))


def test_quantiles_in_16_bits():
    x = cr.tensor([[4.0, 1.0, 3.0], [2.0, 8.0, 5.0]])
    for dtype in (cr.float16, cr.bfloat16):
        y = x.to(dtype).quantile(cr.tensor([0.0, 0.5, 1.0]).to(dtype), 1)
        assert y.dtype is dtype and y.tolist() == [[1, 2], [3, 5], [4, 8]]
    with pytest.raises(RuntimeError, match="float or double"):
        cr.tensor([1, 2]).quantile(0.5)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_convolutions_of_no_channels_are_pytorchs(d):
    x, w, size = (2, 0, *(5,) * d), (3, 0, *(2,) * d), (4,) * d
    y = getattr(cr.nn.functional, f"conv{d}d")(cr.ones(*x), cr.ones(*w), cr.ones(3))
    want = getattr(torch.nn.functional, f"conv{d}d")(torch.ones(*x), torch.ones(*w), torch.ones(3))
    assert tuple(y.shape) == tuple(want.shape) == (2, 0, *size)


def test_the_table_of_errors_finds_none_worse_than_pytorchs(capsys):
    from chainrule.testing.precision import __main__ as precision

    assert precision.main(["reductions", "--sizes", "1e4", "--types", "float32", "--only", "sum,var,cumsum"]) == 0
    assert "0 of them worse" in capsys.readouterr().out
    assert precision.main(["nothing"]) == 2


@pytest.mark.parametrize(
    "row",
    [
        [1e-30, 1e-30, 1.0],
        [0.0, 2.0, 3.0],
        [0.0, 0.0, 3.0],
        [1e30, 1e30, 1e-30],
        [2.0, -3.0, 0.5],
        [1e-20] * 40,
        [1e20] * 3,
    ],
)
@pytest.mark.parametrize("others", [None, [0.0, 1.0], [1.0, 1.0], [1e-38, 1e-38]])
def test_derivatives_of_products_beyond_the_range_of_the_whole(row, others):
    """The product of all may be 0 or infinite where that of all but one is not."""
    rows = [row] if others is None else [row, (others * len(row))[: len(row)]]
    x = np.array(rows, np.float32)
    with np.errstate(over="ignore", under="ignore"):
        want = [[np.delete(r.astype(np.longdouble), k).prod() for k in range(len(r))] for r in x]
        want = np.array(want, np.longdouble).astype(np.float32)
    t = cr.tensor(x, requires_grad=True)
    t.prod(1).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), want, rtol=1e-6, atol=1e-45)


@pytest.mark.parametrize("shape", [(8, 8), (128, 128), (3, 2000), (40, 1, 300)])
def test_sums_without_nan_of_any_size(shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x[np.random.default_rng(1).random(shape) < 0.3] = np.nan
    t = cr.tensor(x, requires_grad=True)
    for dim in (None, *range(len(shape))):
        np.testing.assert_allclose(
            t.nansum(dim).detach().numpy(), np.nansum(x.astype(np.float64), dim), rtol=2e-6, atol=2e-5
        )
    t.nansum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), ~np.isnan(x))


def test_running_extremes_of_many_sequences():
    x = np.random.default_rng(0).integers(0, 50, (19, 70, 3)).astype(np.float32)
    x[3, 20:30] = np.nan
    for dim in range(3):
        values, indices = cr.tensor(x).cummax(dim)
        np.testing.assert_array_equal(values.numpy(), np.maximum.accumulate(x, dim))
        np.testing.assert_array_equal(np.take_along_axis(x, indices.numpy(), dim), values.numpy())
