"""Loops for small arrays against NumPy: folds, orders, running extremes, entries by number, LU and triangular systems; and code that settles shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.core.op import OPS
from chainrule.kernels import NotSupported, available, folds, indexing, matrices, ranks, scans

pytestmark = pytest.mark.skipif(not available(), reason="no kernels here")
rng = np.random.default_rng(11)
SHAPES = [(1,), (7,), (64,), (3, 5), (8, 8), (2, 3, 4), (5, 1, 33), (4, 16, 17)]
KINDS = ["plain", "NaN", "infinities", "equal", "turned"]


def array(shape: tuple[int, ...], kind: str, dtype: Any = np.float32) -> Any:
    x = rng.standard_normal(shape).astype(dtype)
    if kind == "NaN":
        x.reshape(-1)[:: max(x.size // 3, 1)] = np.nan
    elif kind == "infinities":
        x.reshape(-1)[0], x.reshape(-1)[-1] = np.inf, -np.inf
    elif kind == "equal":
        x = np.round(x)
    elif kind == "turned":
        x = np.asarray(x.T.copy()).T[..., ::-1]
    return x


def log_sum_exp(x: Any, dim: tuple[int, ...]) -> Any:
    m = x.max(dim, keepdims=True)
    m = np.where(np.isfinite(m), m, 0)
    return np.log(np.exp(x - m).sum(dim)) + m.reshape(np.log(np.exp(x - m).sum(dim)).shape)


FOLDS = {
    "total": (lambda x, d: x.sum(d), ()),
    "mean": (lambda x, d: x.mean(d), ()),
    "product": (lambda x, d: x.prod(d), ()),
    "largest": (lambda x, d: x.max(d), ()),
    "smallest": (lambda x, d: x.min(d), ()),
    "greatest": (lambda x, d: np.abs(x).max(d), ()),
    "norm_1": (lambda x, d: np.abs(x).sum(d), ()),
    "norm_2": (lambda x, d: np.sqrt((x * x).sum(d)), ()),
    "norm_p": (lambda x, d: (np.abs(x) ** 3).sum(d) ** (1 / 3), (3.0,)),
    "variance": (lambda x, d: ((x - x.mean(d, keepdims=True)) ** 2).sum(d) / 3, (3.0,)),
    "deviation": (lambda x, d: np.sqrt(((x - x.mean(d, keepdims=True)) ** 2).sum(d) / 3), (3.0,)),
    "log_sum_exp": (log_sum_exp, ()),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FOLDS)
def test_folds(name: str, kind: str) -> None:
    want, scalars = FOLDS[name]
    f = getattr(folds, name)
    for shape in SHAPES:
        x = array(shape, kind)
        n = x.ndim
        for dim in {(-1,), (-n,), tuple(range(-n, 0))}:
            for keepdim in (False, True):
                with np.errstate(all="ignore"):
                    expected = np.asarray(want(x.astype(np.float64), dim))
                y = f.at(x, dim, keepdim, *scalars)(x)
                assert y.dtype == x.dtype
                assert y.shape == (
                    expected.shape if not keepdim else tuple(1 if d - n in dim else s for d, s in enumerate(shape))
                )
                np.testing.assert_allclose(
                    y.reshape(expected.shape), expected.astype(np.float32), rtol=3e-7, atol=1e-37
                )


def test_folds_keep_the_sign_of_zero_and_do_not_depend_on_the_layout() -> None:
    x = np.full((2, 3), -0.0, np.float32)
    assert np.signbit(folds.largest.at(x, (-1,), False)(x)).all()
    x = rng.standard_normal((6, 40)).astype(np.float32)
    go = folds.variance.at(x, (-1,), False, 39.0)
    assert (go(x) == go(np.asfortranarray(x))).all()
    assert folds.norm_2.at(x.astype(np.float64), (-1,), False) is None  # no range to spare


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
@pytest.mark.parametrize("kind", KINDS)
def test_orders(kind: str, dtype: Any) -> None:
    if dtype in (np.int64, np.int32) and kind in ("NaN", "infinities"):
        kind = "equal"
    for shape in SHAPES:
        x = array(shape, kind, np.float32)
        x = np.round(3 * x).astype(dtype) if dtype in (np.int64, np.int32) else x.astype(dtype)
        for dim in {-1, -x.ndim}:
            n = x.shape[dim]
            order = np.argsort(x, axis=dim, kind="stable")
            y, place = ranks.first(x, dim, n, False)(x)
            np.testing.assert_array_equal(place, order)
            np.testing.assert_array_equal(y, np.take_along_axis(x, order, dim))
            m = max(1, n // 2)
            top = ranks.first(x, dim, m, True)(x)[0]
            np.testing.assert_array_equal(top, np.take(np.flip(np.sort(x, axis=dim), dim), range(m), dim))
            k = n // 3
            at = ranks.place("nth", x, dim, k)(x)
            v = np.take(np.sort(x, axis=dim), [k], dim)
            np.testing.assert_array_equal(np.take_along_axis(x, at, dim), v)
            np.testing.assert_array_equal(at, np.argmax((x == v) | ((x != x) & (v != v)), axis=dim, keepdims=True))


def test_medians_and_modes() -> None:
    x = np.array([[3, np.nan, 1, 2], [4, 4, 1, 1], [np.nan, np.nan, np.nan, np.nan], [2, 1, 2, 0]], np.float32)
    assert ranks.place("median", x, -1, 1)(x).ravel().tolist() == [1, 2, 0, 1]
    assert ranks.place("nanmedian", x, -1, 1)(x).ravel().tolist() == [3, 2, 0, 1]
    assert (
        ranks.place("mode", x, -1)(x).ravel().tolist()[1] == 3
    )  # of equally frequent ones the smallest, where it stands last
    assert ranks.place("mode", x, -1)(x).ravel().tolist()[3] == 2


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_running_extremes(kind: str, largest: bool) -> None:
    for shape in SHAPES:
        x = array(shape, kind)
        for dim in {-1, -x.ndim}:
            v = np.moveaxis(x, dim, -1)
            hit = (v == (np.maximum if largest else np.minimum).accumulate(v, axis=-1)) | (v != v)
            want = np.maximum.accumulate(np.where(hit, np.arange(v.shape[-1]), 0), axis=-1)
            np.testing.assert_array_equal(scans.extremes(x, dim, largest)(x), np.moveaxis(want, -1, dim))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_, np.complex64])
def test_entries_by_number(dtype: Any) -> None:
    for shape, m in (((5,), 3), ((4, 6), 1), ((4, 6), 7), ((2, 3, 4), 2), ((3, 1), 2)):
        for dim in range(-len(shape), 0):
            x = (rng.standard_normal(shape) * 5).astype(dtype)
            own = tuple(m if d == dim % len(shape) else s for d, s in enumerate(shape))
            i = rng.integers(0, shape[dim], own)
            src = (rng.standard_normal(own) * 5).astype(dtype)
            np.testing.assert_array_equal(indexing.at("take", x, i, dim)(x, i), np.take_along_axis(x, i, dim))
            put = x.copy()
            for at in np.ndindex(*own):  # in order: of equal places the last one counts
                to = list(at)
                to[dim] = i[at]
                put[tuple(to)] = src[at]
            np.testing.assert_array_equal(indexing.at("put", x, i, dim)(x, i, src), put)
            if dtype in (np.float32, np.float64):
                add = x.astype(np.float64)
                for at in np.ndindex(*own):
                    to = list(at)
                    to[dim] = i[at]
                    add[tuple(to)] += src[at]
                np.testing.assert_allclose(indexing.at("add", x, i, dim)(x, i, src), add.astype(dtype), rtol=1e-15)
    i = np.array([0, 4, -1, 5])
    assert indexing.outside_of(i, 0, 5)(i) == 1
    assert indexing.outside_of(i, 0, 5)(np.array([0, 4, 1, 3])) == 0
    assert indexing.outside_of(i, 0, 5)(i[::-1]) is None  # it cannot tell


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (3, 7), (7, 3), (4, 32, 32), (2, 3, 4, 4)])
def test_lu(shape: tuple[int, ...], dtype: Any) -> None:
    a = rng.standard_normal(shape).astype(dtype)
    m, n = shape[-2:]
    k = min(m, n)
    lu, piv, info, perm, back = matrices.lu(a)
    low, up = np.tril(lu[..., :k], -1) + np.eye(m, k), np.triu(lu[..., :k, :])
    rows = np.take_along_axis(a, perm[..., None], -2)
    np.testing.assert_allclose(low @ up, rows, atol=40 * np.finfo(dtype).eps, rtol=0)
    assert not info.any()
    assert piv.dtype == np.int32
    assert (np.abs(np.tril(lu[..., :k], -1)) <= 1).all()
    np.testing.assert_array_equal(np.take_along_axis(perm, back, -1), np.broadcast_to(np.arange(m), perm.shape))


def test_lu_of_singular_matrices_and_of_nan() -> None:
    a = np.array([[[0.0, 1.0], [0.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [2.0, 4.0]]])
    assert matrices.lu(a)[2].tolist() == [1, 1, 2]
    assert np.isnan(matrices.lu(np.array([[np.nan, 1.0], [1.0, 2.0]]))[0]).any()
    with pytest.raises(NotSupported):
        matrices.lu(np.zeros((2, 2), complex))


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("upper", [False, True])
def test_triangular_systems(upper: bool, unit: bool) -> None:
    for shape, k in (((1, 1), 1), ((6, 6), 3), ((4, 9, 9), 20)):
        a = rng.standard_normal(shape) + 4 * np.eye(shape[-1])
        b = rng.standard_normal((*shape[:-1], k))
        t = np.triu(a) if upper else np.tril(a)
        t = t - t * np.eye(shape[-1]) + np.eye(shape[-1]) if unit else t
        for v in (b, np.asfortranarray(b)):
            np.testing.assert_allclose(t @ matrices.triangular(a, v, upper, unit), b, atol=1e-9)


SETTLED: dict[str, tuple[list[tuple[int, ...]], dict[str, Any]]] = {
    "tril": ([(3, 4)], {"k": -1}),
    "triu": ([(2, 3, 3)], {"k": 1}),
    "flip": ([(3, 4)], {"dims": (-1,)}),
    "roll": ([(3, 4)], {"shifts": (2,), "dims": (-2,)}),
    "constant_pad": ([(3, 4)], {"pads": ((1, 2), (-1, 1)), "value": 2.5}),
    "cat": ([(3, 4), (3, 2)], {"dim": -1, "ns": (4, 2)}),
    "stack": ([(3, 4), (3, 4)], {"dim": -2}),
    "matmul": ([(3, 4), (4, 5)], {}),
    "softmax": ([(3, 4)], {"dim": -1}),
    "log_softmax": ([(3, 4)], {"dim": -1}),
    "cumsum": ([(3, 4)], {"dim": -2}),
    "sum": ([(3, 4)], {"dim": (-2,), "keepdim": True, "old": (3, 4)}),
    "vector_norm": ([(3, 4)], {"ord": np.inf, "dim": (-1,), "keepdim": False, "old": (3, 4)}),
    "lerp": ([(3, 4), (3, 4), (3, 4)], {}),
    "addcmul": ([(3, 4), (3, 4), (3, 4)], {"value": 0.5}),
    "nan_to_num": ([(3, 4)], {"nan": 0.5, "posinf": 2.0, "neginf": -2.0}),
    "argmax": ([(3, 4)], {"dim": -2}),
}


@pytest.mark.parametrize("layout", ["C", "F", "reversed"])
@pytest.mark.parametrize("name", SETTLED)
def test_what_is_settled_for_a_shape_is_the_body(name: str, layout: str) -> None:
    """Made for one array, called with others of the shape in any layout."""
    op, (shapes, kw) = OPS[name], SETTLED[name]
    first = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    body = op.direct or op.body
    f = op.settled(body, first, kw)
    assert f is not None
    xs = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    xs = [np.asfortranarray(x) if layout == "F" else x[..., ::-1] if layout == "reversed" else x for x in xs]
    y, want = f(*xs), body(*xs, **kw)
    assert y.dtype == want.dtype
    np.testing.assert_allclose(y, want, rtol=1e-6)


def test_views_that_are_remembered_are_views() -> None:
    x = cr.arange(12.0).reshape(3, 4)
    for _ in range(3):
        y = x.t()[1:, ::2]
        assert y._meta is not None
        y.mul_(2)
    assert x[0].tolist() == [0.0, 8.0, 16.0, 24.0]
    assert x[1].tolist() == [4.0, 5.0, 6.0, 7.0]
    z = cr.ones(4, 3)
    for w in (z, z.t().contiguous().t()):  # the same shape in another layout is another kind of call
        for _ in range(3):
            v = w.reshape(12)
            v.add_(1)
    assert z.sum().item() == 48.0
