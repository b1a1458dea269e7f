"""Every formula that stands for an op on large arrays agrees with the op's body: all types, layouts, sizes around vectors, numbers that are none."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import chainrule as cr
from chainrule import kernels
from chainrule.core.declare import LARGE
from chainrule.core.op import OPS
from chainrule.ops.elementwise import fusing

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no kernel compiler here")

DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
SIZES = [1, 15, 16, 17, 63, 64, 65, 130]
ODD = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 1e-3, 30.0, -30.0]
STATIC = {
    "nan_to_num": {"nan": 0.5, "posinf": 3.0, "neginf": -2.0},
    "addcmul": {"value": 0.5},
    "addcdiv": {"value": 0.5},
    "polygamma": {"n": 1},
    "bessel_in": {"n": 2},
    "scaled_i": {"n": 2},
    "erfc_integral": {"n": 1},
}
ULPS = {"logaddexp": 1e9, "logaddexp2": 1e9}  # of the sum, where it is small beside its terms: see there
ONE_ROUNDING = {"lerp", "addcmul", "addcdiv"}  # differences may cancel


def draw(name, dtype, size, seed):
    x = np.random.default_rng(seed).standard_normal(size) * 2
    n = min(size, len(ODD))
    x[:n] = np.roll(ODD, seed)[:n]
    return x.astype(dtype)


def layouts(x):
    """The same entries, laid out in other ways."""
    n = len(x)
    wide = np.zeros((2 * n,), x.dtype)
    wide[::2] = x
    raw = np.zeros(x.nbytes + 1, np.uint8)
    apart = raw[1:].view(x.dtype) if x.dtype.itemsize > 1 else x
    apart[:] = x
    return {
        "contiguous": x,
        "strided": wide[::2],
        "reversed": x[::-1].copy()[::-1],
        "misaligned": apart,
        "column": np.ascontiguousarray(np.stack([x, x], 1))[:, 0],
    }


def operands(name, dtype, size):
    p = OPS[name]
    xs = [draw(name, dtype, size, i) for i in range(p.arity)]
    if name == "where":
        xs[0] = np.nan_to_num(xs[0].astype(np.float32)) > 0
    return xs


def wanted(name, xs):
    """The body in double precision, rounded to the type."""
    dtype = xs[-1].dtype
    wide = [x if x.dtype == bool else x.astype(np.float64) for x in xs]
    with np.errstate(all="ignore"):
        y = np.asarray(OPS[name].body(*wide, **STATIC.get(name, {})))
        return y if y.dtype == bool else y.astype(dtype)


def close(name, got, want, xs):
    if want.dtype == bool:
        return np.array_equal(got, want)
    a, b = got.astype(np.float64), want.astype(np.float64)
    eps = float(ml_dtypes.finfo(want.dtype).eps)
    tiny = float(ml_dtypes.finfo(want.dtype).smallest_subnormal)
    with np.errstate(all="ignore"):
        size = np.abs(b)
        if name in ULPS or name in ONE_ROUNDING:  # of the terms
            size = np.maximum(size, np.max([np.abs(x.astype(np.float64)) for x in xs], axis=0) * 2)
        near = np.abs(a - b) <= 4 * eps * size + 2 * tiny
        if name in ONE_ROUNDING:  # one may overflow where the other, in double precision, does not
            near |= ~np.isfinite(a) & (size > 1e30)
    return bool(np.all((a == b) | (np.isnan(a) & np.isnan(b)) | near))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("name", sorted(set(LARGE) - {"clone"}))
def test_a_formula_agrees_with_its_body(name, dtype):
    ran = 0
    for size in SIZES:
        xs = operands(name, dtype, size)
        want = wanted(name, xs)
        for label in layouts(xs[-1]):
            given = [layouts(x)[label] for x in xs]
            got = LARGE[name](*given, **STATIC.get(name, {}))
            if got is None:
                assert label not in ("contiguous", "column") or dtype is np.float64 or size < 16 or label == "column"
                continue
            ran += 1
            assert got.shape == want.shape and got.dtype == want.dtype
            assert close(name, got, want, xs), (label, size, [x[:20] for x in xs], got[:20], want[:20])
    assert ran or dtype is np.float64


@pytest.mark.parametrize("name", ["mul", "hypot", "where", "lerp", "lt"])
def test_operands_broadcast_and_lie_in_any_order(name):
    rng = np.random.default_rng(0)
    shape = (5, 33, 40)
    arity = OPS[name].arity
    full = [rng.standard_normal(shape).astype(np.float32) for _ in range(arity)]
    small = rng.standard_normal(40).astype(np.float32)
    for others in (
        [x.transpose(2, 1, 0).copy().transpose(2, 1, 0) for x in full],
        [*full[:-1], small],
        [*full[:-1], full[-1][:, :, :1]],
        [*full[:-1], full[-1][:, :1]],
        [*full[:-1], np.broadcast_to(np.float32(1.5), shape)],
        [*full[:-1], 2.5],
        [x[:, ::2] for x in full],
        [x[::-1] for x in full],
    ):
        xs = list(others)
        if name == "where":
            xs[0] = xs[0] > 0
        got = LARGE[name](*xs)
        assert got is not None
        np.testing.assert_allclose(got, OPS[name].body(*xs), rtol=1e-6, atol=1e-6)


def test_there_is_no_loop_over_nothing():
    empty = np.zeros((0, 3), np.float32)
    assert LARGE["exp"](empty) is None and LARGE["mul"](empty, 2.0) is None
    assert cr.tensor(empty).exp().shape == (0, 3)


@pytest.mark.parametrize(
    "name", ["sin", "hypot", "atan2", "sqrt", "maximum", "clamp", "lgamma", "silu", "log1p", "div"]
)
def test_a_rule_as_one_loop_is_the_rule(name, monkeypatch):
    f = {
        "clamp": lambda a, b: cr.clamp(a, -0.5, 0.5),
        "silu": lambda a, b: cr.nn.functional.silu(a),
        "maximum": lambda a, b: cr.maximum(a, b * 0.5 + a.detach() * 0.5),
    }.get(name) or (lambda a, b: getattr(cr, name)(*([a, b] if name in ("hypot", "atan2", "div") else [a])))
    rng = np.random.default_rng(0)
    values = [rng.uniform(0.2, 2.0, (64, 80)).astype(np.float32) for _ in range(2)]

    def gradients():
        xs = [cr.tensor(v, requires_grad=True) for v in values]
        y = f(*xs)
        return [g for g in cr.autograd.grad(y, xs, cr.ones_like(y) * 0.7, allow_unused=True) if g is not None]

    got = gradients()
    monkeypatch.setattr(fusing.walk, "FUSE", None)
    for a, b in zip(got, gradients(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.uint8, np.complex64])
def test_copies_in_tiles(dtype):
    x = (np.random.default_rng(0).standard_normal((40, 66, 33)) * 10).astype(dtype)
    for y in (
        x,
        x[0].T,
        x.transpose(0, 2, 1),
        x.transpose(2, 1, 0),
        x[:, ::-1].transpose(0, 2, 1),
        x[::2, ::3].T,
        x[:, :1].T,
        x[:, :, ::-1],
        x[::-1, 3:, ::-1],
        x[1:, ::-1, :0:-1],
        x[0, 0, ::-1],
        x[0].T[::-1],
        x[0].T[:, ::-1],
        x[:, :, ::-1].transpose(0, 2, 1)[:, 5:, 1:],
    ):
        got = kernels.copies.contiguous(y)
        assert got.flags.c_contiguous and got.tobytes() == y.tobytes()


@pytest.mark.parametrize("d", [-40, -1, 0, 3, 50])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.bool_])
def test_triangles(dtype, d):
    x = (np.random.default_rng(0).standard_normal((3, 17, 33)) * 10).astype(dtype)
    np.testing.assert_array_equal(kernels.copies.triangle(x, d, True), np.tril(x, d))
    np.testing.assert_array_equal(kernels.copies.triangle(x, d, False), np.triu(x, d))
