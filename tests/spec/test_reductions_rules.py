"""Rules of reductions, norms, scans and sorting: zeros, ties, infinities, empty dims, too few degrees of freedom."""

from __future__ import annotations

import math

import numpy as np
import pytest

import chainrule as cr

from .judge import array, case, gradient, gradients, judge, mathematics, require, row, same, values

INF, NAN = math.inf, math.nan
CX = pytest.mark.parametrize("cx", [False, True], ids=["real", "complex"])
ORDERS = [0, 0.5, 1, 1.5, 2, 2.5, 3, 4, INF, -INF, -1]


@row("norm")
@pytest.mark.parametrize("p", ORDERS)
@CX
def test_norm_at_ordinary_points(p: float, cx: bool) -> None:
    x = array(3, 4, cx=cx)
    for f in (
        lambda m, x: m.linalg.vector_norm(x, p),
        lambda m, x: m.linalg.vector_norm(x, p, dim=-1, keepdim=True),
        lambda m, x: m.linalg.vector_norm(x, p, dim=(0, 1)),
        lambda m, x: m.norm(x, p, dim=0),
    ):
        judge("norm linalg.vector_norm", f, x)


@row("norm")
@pytest.mark.parametrize("p", [*ORDERS, 1.0, 2.0])
@CX
def test_norm_of_zeros_has_zero_subgradient(p: float, cx: bool) -> None:
    dtype = complex if cx else float
    f = lambda m, x: m.linalg.vector_norm(x, p, dim=-1)
    zero = np.zeros((2, 3), dtype)
    judge("linalg.vector_norm", f, zero, smooth=False)
    if p >= 0:
        assert not gradient(f, zero)[0].any()
    # A zero among others: the norm is not differentiable there below order 2, but PyTorch's choice holds and nothing is NaN.
    mixed = np.array([[0, 3, -4], [1, 0, 0]], dtype)
    judge("linalg.vector_norm", f, mixed, smooth=False)
    judge("norm", lambda m, x: m.norm(x, p), mixed, smooth=False)
    assert np.isfinite(gradient(f, mixed)[0]).all()


@row("norm")
@pytest.mark.parametrize("p", [INF, -INF])
@CX
def test_ties_share_at_infinity(p: float, cx: bool) -> None:
    f = lambda m, x: m.linalg.vector_norm(x, p, dim=-1)
    tied = np.array([[3, -3, 3, 3], [2, -2, 2, -2]]) * (1j if cx else 1.0)
    judge("linalg.vector_norm", f, tied, smooth=False)
    same(np.abs(gradient(f, tied)[0]), np.full((2, 4), 0.25), "shared")
    partly = np.array([3.0, -3.0, 1.0, 3.0] if p > 0 else [1.0, -1.0, 3.0, 1.0])
    same(gradient(f, partly)[0], np.sign(partly) * (np.abs(partly) == (3 if p > 0 else 1)) / 3, "shared among three")
    values(f, np.array([[INF, 1, -INF, 2], [NAN, 1, 2, 3]]))


@row("norm")
def test_the_squared_norm_is_smooth_at_zero() -> None:
    z = np.array([[0j, 0j], [1 + 1j, 0j]])
    judge("linalg.vector_norm", lambda m, x: m.linalg.vector_norm(x, 4) ** 4, np.array([0.0, 2.0, -1.0]))
    judge("linalg.vector_norm", lambda m, x: m.linalg.vector_norm(x, 2) ** 2, z)
    values(lambda m, x: m.linalg.vector_norm(x, 2, dim=1), np.zeros((3, 0)))
    values(lambda m, x: m.linalg.vector_norm(x, 2, dim=()), array(2, 3))


EXTREMA = {
    "amax": lambda m, x, **k: m.amax(x, **k),
    "amin": lambda m, x, **k: m.amin(x, **k),
    "aminmax": lambda m, x, **k: m.aminmax(x, **k),
}


@row("extrema")
@pytest.mark.parametrize("name", EXTREMA)
def test_ties_of_extrema_share(name: str) -> None:
    f = EXTREMA[name]
    dims = [{}, {"dim": 0}, {"dim": -1, "keepdim": True}] + (
        [{"dim": (0, 1)}, {"dim": ()}] if name != "aminmax" else []
    )
    for kw in dims:
        judge(name, lambda m, x, kw=kw: f(m, x, **kw), array(3, 4))
        for tied in (
            np.array([[2.0, 2.0, 1.0, 1.0], [0.0, 2.0, 2.0, 1.0]]),
            np.ones((2, 3)),
            np.array([[INF, INF, -INF, 0.0]]),
        ):
            judge(name, lambda m, x, kw=kw: f(m, x, **kw), tied, smooth=False)
    g = gradient(lambda m, x: m.amax(x, 0), np.array([2.0, 2.0, 1.0, 2.0]))[0]
    same(g, np.array([1, 1, 0, 1]) / 3, "shared")
    nans = np.array([[1.0, NAN, 2.0, NAN], [1.0, 5.0, 2.0, 5.0]])
    values(lambda m, x: f(m, x, dim=1), nans)
    # The NaN that were chosen share; PyTorch gives NaN to their neighbours too.
    got = gradient(lambda m, x: f(m, x, dim=1), nans)[0]
    same(got[0], np.array([0, 1, 0, 1]) * (1.0 if name == "aminmax" else 0.5), "shared by NaN")


@row("extrema", "whole_extrema")
@pytest.mark.parametrize("name", ["max", "min"])
def test_max_and_min(name: str) -> None:
    whole = lambda m, x: getattr(m, name)(x)
    by_dim = lambda m, x: getattr(m, name)(x, 1)
    pair = lambda m, x, y: getattr(m, name)(x, y)
    judge(name, whole, array(3, 4))
    judge(name, by_dim, array(3, 4))
    judge(name, pair, array(3, 4), array(4, seed=1))
    tied = np.array([[1.0, 3.0, 3.0, 1.0], [3.0, 1.0, 3.0, 1.0]])
    judge(name, whole, tied, smooth=False)
    judge(name, by_dim, tied, smooth=False)
    judge(name, pair, tied, np.array([[1.0, 3.0, 1.0, 1.0]]), smooth=False)
    same(gradient(whole, tied)[0], (tied == (3 if name == "max" else 1)) / 4, "shared")
    same(gradient(pair, np.ones(2), np.ones(2))[0], np.full(2, 0.5), "shared by two")
    for bad in (np.array([1.0, NAN, 3.0, NAN]), np.array([INF, -INF, INF, -INF])):
        values(whole, bad)
        gradients(whole, bad)


@row("whole_extrema")
@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_median(name: str) -> None:
    whole = lambda m, x: getattr(m, name)(x)
    by_dim = lambda m, x: getattr(m, name)(x, 1, True)
    for x in (array(3, 5), array(2, 4), array(1, 1)):
        judge(name, whole, x)
        judge(name, by_dim, x)
    tied = np.array([[2.0, 1.0, 2.0, 3.0, 2.0], [2.0, 2.0, 2.0, 2.0, 2.0]])
    judge(name, whole, tied, smooth=False)
    # Which of equal elements is chosen is left open: only the law of the choice holds.
    mathematics(case(name, lambda m, x: getattr(m, name)(x, 1)[0], tied), smooth=False)
    same(gradient(whole, tied)[0], (tied == 2) / 8, "shared")
    for bad in (np.array([[NAN, 1.0, 2.0, NAN, 1.0]]), np.array([[NAN, NAN, NAN]]), np.array([[INF, 1.0, -INF]])):
        values(whole, bad)
        gradients(whole, bad)


@row("whole_extrema", "chosen_indices")
def test_kthvalue_and_mode() -> None:
    x = array(3, 5)
    for k in (1, 3, 5):
        judge("kthvalue", lambda m, x, k=k: m.kthvalue(x, k, 1), x)
        judge("kthvalue", lambda m, x, k=k: m.kthvalue(x, k, 0, keepdim=True).values, array(5, 2))
    judge("kthvalue", lambda m, x: m.kthvalue(x, 1), np.array(2.0))
    judge(
        "kthvalue",
        lambda m, x: m.kthvalue(x, 2, 0).values,
        np.array([2.0, 1.0, 2.0, 1.0]),
        smooth=False,
        oracle="value",
    )
    often = np.array([[1.0, 2.0, 2.0, 3.0], [5.0, 5.0, 4.0, 4.0]])
    judge("mode", lambda m, x: m.mode(x, 1), often, smooth=False)
    judge("mode", lambda m, x: m.mode(x, -1, True).values, array(2, 1), smooth=False)


SUMS = [
    {},
    {"dim": 0},
    {"dim": (0, 2)},
    {"dim": (-1, 0), "keepdim": True},
    {"dim": ()},
    {"dim": [1], "keepdim": True},
    {"dim": None, "keepdim": True},
]


@row("sum")
@pytest.mark.parametrize("name", ["sum", "nansum", "mean"])
@pytest.mark.parametrize("kw", SUMS, ids=str)
@CX
def test_sums(name: str, kw: dict, cx: bool) -> None:
    if cx and name == "nansum":
        with pytest.raises(RuntimeError, match="complex"):
            cr.nansum(cr.tensor(array(2, cx=True)))
        return
    f = lambda m, x: getattr(m, name)(x, **kw)
    judge(name, f, array(2, 3, 2, cx=cx))
    if kw == {"dim": 0}:
        judge(name, f, array(3, cx=cx))
        judge(name, f, np.array(2.0))
    # Empty dims: an empty sum is 0, an empty mean NaN.
    for shape in ((0, 3, 2), (2, 3, 0)):
        values(f, np.zeros(shape))
        gradients(f, np.zeros(shape))


@row("sum")
def test_nan_is_left_out_of_nansum_and_its_gradient() -> None:
    x = np.array([[NAN, 1.0, 2.0], [NAN, NAN, NAN]])
    for kw in ({}, {"dim": 1}, {"dim": (0,), "keepdim": True}):
        f = lambda m, x, kw=kw: m.nansum(x, **kw)
        values(f, x)
        gradients(f, x)
        mathematics(case("nansum", f, x), smooth=False)
    assert gradient(lambda m, x: m.nansum(x), x)[0].tolist() == [[0, 1, 1], [0, 0, 0]]


ZEROS = {
    "none": [[2.0, -1.0, 3.0], [0.5, 4.0, -2.0]],
    "one": [[2.0, 0.0, 3.0], [0.5, 4.0, -2.0]],
    "many": [[0.0, 5.0, 0.0], [0.0, 0.0, 0.0]],
}


@row("prod")
@pytest.mark.parametrize("zeros", ZEROS)
@CX
def test_prod(zeros: str, cx: bool) -> None:
    x = np.array(ZEROS[zeros]) * (1 + 0.5j if cx else 1)
    judge("prod", lambda m, x: m.prod(x), x, order=3)
    for dim in (0, 1, -1):
        judge("prod", lambda m, x, dim=dim: m.prod(x, dim), x)
        judge("prod", lambda m, x, dim=dim: m.prod(x, dim, keepdim=True), x)
    judge("prod", lambda m, x: m.prod(x), np.array(0.0))
    judge("prod", lambda m, x: m.prod(x, 0), np.array(x[0, 1]))
    for shape in ((0,), (2, 0), (0, 2)):
        judge("prod", lambda m, x: m.prod(x, 0), np.zeros(shape, x.dtype))


@row("cumulative")
@CX
def test_cumsum(cx: bool) -> None:
    for dim in (0, 1, -1):
        judge("cumsum", lambda m, x, dim=dim: m.cumsum(x, dim), array(2, 3, cx=cx))
    judge("cumsum", lambda m, x: m.cumsum(x, 0), array(cx=cx))
    judge("cumsum", lambda m, x: m.cumsum(x, 1), np.zeros((2, 0)))


@row("cumulative")
@pytest.mark.parametrize("zeros", [*ZEROS, "inside", "ends", "all"])
@CX
def test_cumprod_through_zeros(zeros: str, cx: bool) -> None:
    points = {**ZEROS, "inside": [[2.0, 0.0, 3.0, 0.0, 5.0]], "ends": [[0.0, 2.0, 0.0]], "all": [[0.0, 0.0, 0.0, 0.0]]}
    x = np.array(points[zeros]) * (1 - 0.3j if cx else 1)
    for dim in (0, 1):
        judge("cumprod", lambda m, x, dim=dim: m.cumprod(x, dim), x)
    judge("cumprod", lambda m, x: m.cumprod(x, 0), np.array(0.0))
    judge("cumprod", lambda m, x: m.cumprod(x, 1), np.zeros((2, 0)))


@row("logsumexp")
@CX
def test_logsumexp(cx: bool) -> None:
    x = array(2, 3, 2, cx=cx)
    for dim in (0, (0, 2), (-1, 0), 1):
        judge("logsumexp", lambda m, x, dim=dim: m.logsumexp(x, dim, keepdim=dim == 1), x)
    judge("logsumexp", lambda m, x: m.logsumexp(x, 0), array(cx=cx))
    big = np.array([[1000.0, 1000.5, -1000.0], [-2000.0, -2001.0, -1999.5]])
    judge("logsumexp", lambda m, x: m.logsumexp(x, 1), big, smooth=False)
    mathematics(case("logsumexp", lambda m, x: m.logsumexp(x, 1), big[:, :2]))


@row("logsumexp")
def test_logsumexp_at_infinity() -> None:
    f = lambda m, x: m.logsumexp(x, 1)
    some = np.array([[-INF, 1.0, 2.0], [0.0, -INF, -INF]])
    judge("logsumexp", f, some, smooth=False)
    none = np.array([[-INF, -INF, -INF]])
    values(f, none)
    assert gradient(f, none)[0].tolist() == [[0, 0, 0]]
    values(f, np.array([[INF, 1.0, 2.0], [INF, INF, 0.0], [INF, -INF, 0.0], [NAN, 1.0, 2.0]]))
    gradients(f, np.array([[INF, 1.0, 2.0]]))
    values(f, np.zeros((2, 0)))
    # The weights are a softmax, also where they underflow.
    want = [[0, 1 / (1 + math.e), math.e / (1 + math.e)], [1, 0, 0]]
    same(gradient(f, some)[0], np.array(want), "softmax")


@row("logsumexp")
@CX
def test_logcumsumexp(cx: bool) -> None:
    for dim in (0, 1, -1):
        judge("logcumsumexp", lambda m, x, dim=dim: m.logcumsumexp(x, dim), array(2, 3, cx=cx))
    judge("logcumsumexp", lambda m, x: m.logcumsumexp(x, 0), array())
    values(lambda m, x: m.logcumsumexp(x, 1), np.zeros((2, 0)))


@row("logsumexp")
def test_logcumsumexp_at_infinity() -> None:
    f = lambda m, x: m.logcumsumexp(x, 0)
    for x in ([-INF, 1.0, 2.0], [1.0, -INF, 2.0], [0.0, 1.0, -INF], [900.0, -900.0, 901.0]):
        # A scan that starts at -inf has NaN for its gradient there in PyTorch.
        judge("logcumsumexp", f, np.array(x), smooth=False, oracle="value" if x[0] == -INF else "value gradient")
    values(f, np.array([-INF, -INF, 0.0, INF, 1.0]))
    # By hand, since d logcumsumexp(x)_k / d x_i = exp(x_i - y_k), and 0 where y_k is -inf.
    same(gradient(f, np.array([-INF, -INF, 0.0]))[0], np.array([0.0, 0.0, 1.0]), "behind -inf")


VARIANCES = [{}, {"dim": 0}, {"dim": (0, 1)}, {"dim": -1, "keepdim": True}, {"dim": 1, "unbiased": False}]


@row("variance")
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@CX
def test_variance(name: str, cx: bool) -> None:
    for kw in VARIANCES + [{"dim": 1, "correction": c} for c in (0, 1, 2, 0.5)]:
        judge(name, lambda m, x, kw=kw: getattr(m, name)(x, **kw), array(3, 4, cx=cx))


@row("variance")
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("correction", [0, 1, 3, 4, 10])
def test_variance_with_a_correction_as_large_as_the_count(name: str, correction: int) -> None:
    f = lambda m, x: getattr(m, name)(x, 0, correction=correction)
    for x in ([[1.0], [2.0], [4.0]], [[2.0], [2.0], [2.0]], [[3.0]], np.zeros((0, 1))):
        values(f, np.array(x))
        gradients(f, np.array(x))


@row("variance")
@pytest.mark.parametrize("name", ["std", "std_mean"])
def test_std_of_equal_numbers_has_zero_gradient(name: str) -> None:
    f = lambda m, x: getattr(m, name)(x, 1)
    equal = np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]])
    judge(name, f, equal, smooth=False)
    assert not gradient(lambda m, x: m.std(x, 1), equal)[0][0].any()
    judge("var", lambda m, x: m.var(x, 1), equal)


@row("renorm")
@pytest.mark.parametrize("p", [1, 1.5, 2, 3, INF])
@CX
def test_renorm(p: float, cx: bool) -> None:
    x = array(3, 4, 2, cx=cx)
    for dim in (0, 1, -1):
        # Slices are cut by large, medium and no amounts.
        judge(
            "renorm",
            lambda m, x, dim=dim: m.renorm(x, p, dim, 2.0),
            x * np.array([0.1, 1.0, 3.0])[:, None, None],
            oracle="value" if p == INF else "value gradient",
        )
    judge(
        "renorm", lambda m, x: m.renorm(x, p, 0, 1.0), np.array([[0.0, 0.0], [3.0, 4.0]]), smooth=False, oracle="value"
    )


@row("chosen_indices")
def test_sorting() -> None:
    x = array(3, 4)
    for dim in (0, 1, -1):
        for down in (False, True):
            judge("sort", lambda m, x, d=dim, r=down: m.sort(x, d, r), x)
            judge("sort msort", lambda m, x, d=dim, r=down: m.sort(x, stable=True, dim=d, descending=r).values, x)
        judge("topk", lambda m, x, d=dim: m.topk(x, 2, d), x)
        judge("topk", lambda m, x, d=dim: m.topk(x, 2, d, largest=False).values, x)
        judge("cummax", lambda m, x, d=dim: m.cummax(x, d), x)
        judge("cummin", lambda m, x, d=dim: m.cummin(x, d), x)
    judge("sort", lambda m, x: m.sort(x), np.array(3.0))
    judge("topk", lambda m, x: m.topk(x, 0), x)
    for name in ("cummax", "cummin"):
        judge(name, lambda m, x, name=name: getattr(m, name)(x, 0), array())
        judge(name, lambda m, x, name=name: getattr(m, name)(x, 1), np.zeros((2, 0)))


@row("chosen_indices")
def test_sorting_with_ties_and_nan() -> None:
    tied = np.array([[2.0, 1.0, 2.0, 1.0], [0.0, -0.0, 0.0, 0.0]])
    judge("sort", lambda m, x: m.sort(x, stable=True, dim=1), tied, smooth=False)
    for name in ("cummax", "cummin"):
        judge(name, lambda m, x, name=name: getattr(m, name)(x, 1), tied, smooth=False)
        f = lambda m, x, name=name: getattr(m, name)(x, 0)
        bad = np.array([1.0, NAN, 3.0, 0.0, NAN])
        values(f, bad)
        gradients(f, bad)
    bad = np.array([3.0, NAN, -INF, INF, 1.0])
    values(lambda m, x: m.sort(x), bad)
    gradients(lambda m, x: m.sort(x).values, bad)
    # The tangent follows the indices: that of the k-th result is that of the element chosen.
    require("topk sort kthvalue")
    x, t = cr.tensor(array(6)), cr.tensor(array(6, seed=1))
    for f in (lambda v: cr.sort(v), lambda v: cr.topk(v, 3), lambda v: cr.kthvalue(v, 2), lambda v: cr.cummax(v, 0)):
        _, ty = cr.func.jvp(lambda v, f=f: next(iter(f(v))), (x,), (t,))
        same(ty.numpy(), t.numpy()[tuple(f(x))[1].numpy()], "tangent by indices")
