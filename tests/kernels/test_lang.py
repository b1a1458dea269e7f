"""The loop language itself: small kernels of every construct, and the mistakes it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule import kernels
from chainrule.kernels import compiler, lang, llvm
from chainrule.kernels.lang import BY_NAME, NUMPY_NAMES, Kernel, bool_, f32, f64, i32, i64

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no kernel compiler here")


def run(k: Kernel, *args):
    compiler.compile_kernel(k)(0, *args)


def elementwise(name, src, dst, body, compute=f32):
    k = Kernel(name, compute)
    x, y, n = k.array("x", src), k.array("y", dst), k.size("n")
    with k.grid(1) as _, k.lanes(n) as j:
        y[j] = body(k, x[j])
    return k


NUMBERS = np.array([0, 1, 2, 3, 100, 127, 7, 50, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20], np.float64)


@pytest.mark.parametrize("src", ["f64", "f32", "f16", "bf16", "i64", "i32", "u8", "bool"])
@pytest.mark.parametrize("dst", ["f64", "f32", "f16", "bf16", "i64", "i32", "u8", "bool"])
def test_casts(src, dst):
    import ml_dtypes

    to_numpy = {d: np.dtype(getattr(ml_dtypes, n, None) or n) for n, d in NUMPY_NAMES.items()}
    a, b = BY_NAME[src], BY_NAME[dst]
    x = NUMBERS.astype(to_numpy[a])
    y = np.empty(x.shape, to_numpy[b])
    run(elementwise(f"cast_{src}_{dst}", a, b, lambda k, v: v, f64), x, y, x.size)
    assert np.array_equal(y, x.astype(y.dtype))


@pytest.mark.parametrize("value", [0.0, -1.5, 3.14159, 1e-6, float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16"])
def test_constants(name, value):
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    k = Kernel("constant", f64)
    y, n = k.array("y", NUMPY_NAMES[name]), k.size("n")
    with k.grid(1), k.lanes(n) as j:
        y[j] = value
    out = np.empty(20, dtype)
    run(k, out, 20)
    assert np.array_equal(out.astype(np.float64), np.full(20, value).astype(dtype).astype(np.float64), equal_nan=True)


def test_float_to_int_saturates():
    x = np.array([1e30, -1e30, np.nan, 2.9, -2.9], np.float32)
    y = np.empty(5, np.int32)
    run(elementwise("saturate", f32, i32, lambda k, v: v), x, y, 5)
    assert y.tolist() == [2**31 - 1, -(2**31), 0, 2, -2]


def test_bfloat16_rounds_to_nearest_even_with_subnormals_and_nan():
    import ml_dtypes

    rng = np.random.default_rng(0)
    x = rng.integers(0, 2**32, 5000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x[:4] = [1e-40, -1e-40, 1.00390625, 1.01171875]
    y = np.empty(5000, ml_dtypes.bfloat16)
    run(elementwise("to_bf16", f32, lang.bf16, lambda k, v: v), x, y, 5000)
    with np.errstate(all="ignore"):
        want = x.astype(ml_dtypes.bfloat16)
    assert np.array_equal(y.astype(np.float32), want.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_doubles_are_rounded_to_16_bits_once(name):
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    rng = np.random.default_rng(0)
    with np.errstate(invalid="ignore"):
        every = np.arange(2**16, dtype=np.uint16).view(dtype).astype(np.float64)
    every = np.sort(every[np.isfinite(every)])
    ties = (every[:-1] + every[1:]) / 2
    x = np.concatenate(
        [
            ties,
            ties * (1 + 2.0**-50),
            ties * (1 - 2.0**-50),
            every,
            rng.normal(size=1000),
            [np.inf, -np.inf, np.nan, 1e300],
        ]
    )
    y = np.empty(x.shape, dtype)
    run(elementwise(f"once_{name}", f64, NUMPY_NAMES[name], lambda k, v: v, f64), x, y, x.size)
    got = y.astype(np.float64)
    # The nearest of the two neighbours, the even one at a tie.
    inside = np.abs(x) <= every[-1]
    right = np.clip(np.searchsorted(every, x), 1, len(every) - 1)
    low, high = every[right - 1], every[right]
    even = np.where((low.astype(dtype).view(np.uint16) & 1) == 0, low, high)
    want = np.where(x - low < high - x, low, np.where(x - low > high - x, high, even))
    assert np.array_equal(got[inside], want[inside])
    assert np.array_equal(got[-4:], [np.inf, -np.inf, np.nan, np.inf], equal_nan=True)


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 63, 64, 65, 100, 2048, 2049, 10000])
def test_sums_and_extremes_of_every_length(n):
    k = Kernel("reduce", f32)
    x, y, size = k.array("x", f32), k.array("y", f32), k.size("n")
    with k.grid(1):
        total, top, low = k.acc("add"), k.acc("max"), k.acc("min")
        with k.reducing(size, [total, top, low]) as j:
            total.add(x[j])
            top.add(x[j])
            low.add(x[j])
        for i, a in enumerate((total, top, low)):
            y[i] = a.total()
    v = np.random.default_rng(n).integers(-50, 50, n).astype(np.float32)
    out = np.empty(3, np.float32)
    run(k, v, out, n)
    assert out.tolist() == [v.sum(), v.max(initial=-np.inf), v.min(initial=np.inf)]
    if n:
        v[n // 2] = np.nan
        run(k, v, out, n)
        assert np.isnan(out).all()


@pytest.mark.parametrize("n", [1, 17, 33, 50, 96, 100])
@pytest.mark.parametrize("unroll", [1, 2, 4])
def test_an_aligned_loop_gives_each_place_its_own_partial_result(n, unroll):
    k = Kernel("places", f32)
    x, y, size = k.array("x", f32), k.array("y", f64), k.size("n")
    with k.grid(1):
        acc = k.acc(wide=f64)
        with k.lanes(size, unroll=unroll, aligned=True) as j:
            acc.add(x[j])
        y[0] = acc.total()
    v = np.exp2(np.random.default_rng(n).integers(-20, 20, n)).astype(np.float32)
    out = np.empty(1)
    run(k, v, out, n)
    places = np.zeros(16 * unroll, np.float32)
    for i, e in enumerate(v):
        places[i % len(places)] += e
    places = places.astype(np.float64)
    while len(places) > 1:
        places = places[: len(places) // 2] + places[len(places) // 2 :]
    assert out[0] == places[0]


@pytest.mark.parametrize("unroll", [0, 3, 6])
def test_loops_unroll_by_powers_of_two_only(unroll):
    k = Kernel("three", f32)
    n = k.size("n")
    with pytest.raises(ValueError, match="power of two"), k.grid(1), k.lanes(n, unroll=unroll):
        pass


@pytest.mark.parametrize("step", [-3, 0, 1, 2, 7])
def test_a_strided_array_is_read_with_any_step(step):
    k = Kernel("apart", f32)
    x, y, n, s = k.strided("x", f32), k.array("y", f32), k.size("n"), k.size("s")
    with k.grid(1), k.lanes(n) as j:
        y[j] = x[j * s]
    base = np.arange(400, dtype=np.float32)
    v = base[300:]
    out = np.empty(45, np.float32)
    if step > 2:
        v = base
    run(k, v, out, 45, step)
    assert np.array_equal(out, v[0] + np.arange(45) * step)


def test_loops_conditions_variables_and_uniform_arithmetic():
    k = Kernel("triangle", f64)
    y, n = k.array("y", i64), k.size("n")
    with k.grid(n) as i:
        total = k.var(i64, 0)
        with k.loop(0, i + 1) as j, k.when((j % 2).eq(0)):
            total.set(total.get() + j)
        y[i] = total.get()
    out = np.empty(20, np.int64)
    run(k, out, 20)
    assert out.tolist() == [sum(j for j in range(i + 1) if j % 2 == 0) for i in range(20)]


def test_phases_are_ordered():
    k = Kernel("phases", f64)
    a, b, n = k.array("a", f64), k.array("b", f64), k.size("n")
    with k.grid(n) as i:
        a[i] = i.to(f64)
    with k.grid(n) as i:
        b[i] = a[n - 1 - i]
    x, y = np.empty(50), np.empty(50)
    run(k, x, y, 50)
    assert np.array_equal(y, np.arange(50.0)[::-1])


def test_lane_numbers_are_values():
    k = Kernel("iota", f64)
    y, n = k.array("y", i64), k.size("n")
    with k.grid(1), k.lanes(n) as j:
        y[j] = j * 3 + 1
    out = np.empty(37, np.int64)
    run(k, out, 37)
    assert np.array_equal(out, np.arange(37) * 3 + 1)


def test_mistakes_are_named():
    k = Kernel("wrong", f32)
    x = k.array("x", f32)
    n = k.size("n")
    with pytest.raises(TypeError, match="different types"), k.grid(n) as i:
        x[i] = x[i] + i
    with pytest.raises(TypeError, match="nested"), k.grid(n), k.grid(n):
        pass
    with pytest.raises(TypeError, match="nested"), k.grid(n), k.lanes(n), k.lanes(n):
        pass
    with pytest.raises(TypeError, match="uniform"), k.grid(n), k.lanes(n) as j, k.when(x[j] > 0.0):
        pass


def test_a_value_cannot_leave_its_loop():
    k = Kernel("leak", f32)
    x, n = k.array("x", f32), k.size("n")
    with k.grid(n) as i:
        with k.loop(0, n) as j:
            inner = x[j]
        x[i] = inner
    with pytest.raises(TypeError, match="outside the block"):
        llvm.render(k)


def test_indices_that_are_not_unit_stride_are_refused():
    k = Kernel("stride", f32)
    x, n = k.array("x", f32), k.size("n")
    with k.grid(n), k.lanes(n) as j:
        x[j * 2] = 0.0
    with pytest.raises(NotImplementedError, match="uniform"):
        llvm.render(k)


def test_code_for_a_kernel_is_small() -> None:
    """What a compiler has to read and what it makes: a row kernel, the largest kind, stays near what it is today."""
    from chainrule.kernels import rows
    from chainrule.kernels.softmax import _Forward

    ir = llvm.render(rows.build(_Forward, (f32, True), f32, False))
    assert 100 < len(ir.splitlines()) < 2000
    assert len(compiler.object_code(ir)) < 20_000


def test_rendering_is_reproducible_and_debug_prints_it(capfd, monkeypatch):
    def make():
        return elementwise("printed", f32, f32, lambda k, v: v * 2.0)

    assert llvm.render(make()) == llvm.render(make())
    monkeypatch.setenv("CHAINRULE_DEBUG", "ir")
    compiler.compile_kernel(make())
    assert "define void @entry" in capfd.readouterr().err
    assert bool_.kind == "b"
