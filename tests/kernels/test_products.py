"""Products of tall matrices with small ones and sums over rows: against float64, in every remainder, on one thread and on two."""

import numpy as np
import pytest

import chainrule as ct
from chainrule import kernels

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no compiler")
SHAPES = [
    (1, 1, 1),
    (5, 3, 2),
    (6, 4, 16),
    (61, 7, 65),
    (130, 64, 64),
    (517, 33, 10),
    (700, 5, 130),
    (1025, 66, 17),
    (700, 131, 130),
    (2200, 200, 71),
]
TYPES = {np.float32: 2e-6, np.float64: 1e-14}


def draw(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def close(got, want, dtype, depth):
    assert got.dtype == dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=TYPES[dtype] * 8 * np.sqrt(depth))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m,k,n", SHAPES)
def test_products(m, k, n, dtype):
    a, b, c, g = (
        draw(m, k, dtype=dtype),
        draw(k, n, dtype=dtype, seed=1),
        draw(n, dtype=dtype, seed=2),
        draw(m, n, dtype=dtype, seed=3),
    )
    wide = [x.astype(np.float64) for x in (a, b, c, g)]
    close(kernels.matmul.matmul(a, b), wide[0] @ wide[1], dtype, k)
    close(kernels.matmul.matmul(a, b, c), wide[0] @ wide[1] + wide[2], dtype, k)
    close(kernels.matmul.matmul_transposed(a, g), wide[0].T @ wide[3], dtype, m)


def sum_of(x, dim):
    return kernels.sums.total(x, dim, kernels.sums.PLAIN, None, x.dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m,n", [(1, 1), (33, 5), (64, 16), (1000, 100), (5000, 8)])
def test_sums_over_rows(m, n, dtype):
    x = draw(m, n, dtype=dtype)
    close(sum_of(x, (0,))[0], x.astype(np.float64).sum(0), dtype, m)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 63, 16384, 16385, 100_003])
def test_sums_of_everything(n, dtype):
    x = draw(n, dtype=dtype)
    got = sum_of(x, (0,))[0]
    assert got.dtype == dtype and abs(float(got) - x.astype(np.float64).sum()) <= TYPES[dtype] * np.sqrt(n)
    x[n // 2] = np.inf
    assert sum_of(x, (0,))[0] == np.inf
    x[0] = np.nan
    assert np.isnan(sum_of(x, (0,))[0])


@pytest.mark.parametrize("dtype", [ct.float32, ct.float64])
def test_a_large_sum_in_every_form(dtype):
    x = ct.from_numpy(draw(70, 1000, dtype=np.float64)).to(dtype)
    want = x.numpy().astype(np.float64).sum()
    for got, shape in (
        (x.sum(), ()),
        (x.sum((0, 1), True), (1, 1)),
        (x.T.sum(), ()),
        (x.reshape(7, -1, 10).sum((0, 1, 2)), ()),
    ):
        assert got.shape == shape and got.dtype is dtype
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-4 if dtype is ct.float32 else 1e-12)
    assert ct.func.grad(lambda x: x.sum())(x).numpy().min() == 1.0


def test_threads_change_no_bit():
    a, b, g = draw(3000, 140), draw(140, 150, seed=1), draw(3000, 150, seed=2)
    results = []
    before = kernels.get_num_threads()
    try:
        for threads in (1, 2, 3):
            kernels.set_num_threads(threads)
            results.append(
                [
                    f.tobytes()
                    for f in (
                        kernels.matmul.matmul(a, b),
                        kernels.matmul.matmul_transposed(a, g),
                        sum_of(a, (0,)),
                        sum_of(a, (0, 1)),
                    )
                ]
            )
    finally:
        kernels.set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_what_has_no_kernel_is_refused():
    a, b = draw(20, 6), draw(6, 4)
    for x, y in (
        (a, b.astype(np.float64)),
        (a, b[:5]),
        (a[:, ::2], b[:3]),
        (a[:0], b),
        (a.astype(np.float16), b.astype(np.float16)),
    ):
        with pytest.raises(kernels.NotSupported):
            kernels.matmul.matmul(x, y)


@pytest.mark.parametrize("dtype", [ct.float32, ct.float64, ct.complex64, ct.float16, ct.int64])
def test_the_ops_agree_whatever_the_layout(dtype):
    """matmul and linear with tall operands: contiguous, transposed, strided, broadcast, batched, of every type."""
    x = ct.from_numpy(draw(900, 40, dtype=np.float64) * 4).to(dtype)
    w = ct.from_numpy(draw(24, 40, dtype=np.float64, seed=1) * 4).to(dtype)
    b = ct.from_numpy(draw(24, dtype=np.float64, seed=2) * 4).to(dtype)
    tol = {"rtol": 2e-2, "atol": 5.0} if dtype is ct.float16 else {"rtol": 1e-4, "atol": 1e-3}

    def check(got, want):
        np.testing.assert_allclose(got.numpy().astype(np.complex128), want, **tol)

    def wide(t):
        return t.numpy().astype(np.complex128)

    layouts = {
        "plain": x,
        "transposed": x.T.contiguous().T,
        "strided": ct.cat([x, x], 1)[:, :40],
        "repeated": x[:1].expand(900, 40),
    }
    for v in layouts.values():
        check(v @ w.T, wide(v) @ wide(w).T)
        check(v.T @ (v @ w.T), wide(v).T @ (wide(v) @ wide(w).T)) if dtype not in (ct.float16,) else None
        if dtype is not ct.int64:
            check(ct.nn.functional.linear(v, w, b), wide(v) @ wide(w).T + wide(b))
            check(
                ct.nn.functional.linear(v.reshape(9, 100, 40), w, b),
                (wide(v) @ wide(w).T + wide(b)).reshape(9, 100, 24),
            )


def test_gradients_of_a_tall_layer():
    """All four results of a layer's backward through the compiled products, beside float64 in plain NumPy."""
    x, w, b, g = draw(900, 40, seed=1), draw(24, 40, seed=2), draw(24, seed=3), draw(900, 24, seed=4)
    ts = [ct.tensor(v).requires_grad_() for v in (x, w, b)]
    got = ct.autograd.grad(ct.nn.functional.linear(*ts), ts, ct.tensor(g))
    x, w, g = (v.astype(np.float64) for v in (x, w, g))
    for a, want, depth in zip(got, (g @ w, g.T @ x, g.sum(0)), (24, 900, 900), strict=True):
        close(a.numpy(), want, np.float32, depth)
