"""Filters of scipy.ndimage and splines of scipy.interpolate: SciPy's values, both modes against central differences of SciPy's, vmap, second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.ndimage

import chainrule
from chainrule.func import grad, hessian, jvp, vmap
from chainrule.scipy import interpolate, ndimage

R = np.random.default_rng(0)
IMAGE = R.normal(size=(7, 6))
MODES = ("reflect", "mirror", "nearest", "wrap", "constant", "grid-wrap", "grid-mirror", "grid-constant")
ROW, EVEN, KERNEL = R.normal(size=5), R.normal(size=4), R.normal(size=(3, 4))
FILTERS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("gaussian_filter", ([0.8, 2.0],), {"order": [1, 0]}),
    ("gaussian_filter", (3.0,), {"truncate": 2.0, "mode": ["wrap", "nearest"]}),
    ("gaussian_filter", (1.0,), {"radius": 2, "axes": 0}),
    ("uniform_filter", ([2, 5],), {"origin": [0, 1]}),
    *[("gaussian_filter1d", (1.1,), {"order": k}) for k in range(4)],
]
for _m in MODES:
    for _o in (0, 1, -1):
        FILTERS += [
            ("correlate1d", (ROW,), {"mode": _m, "origin": _o, "axis": 0, "cval": 0.7}),
            ("convolve1d", (EVEN,), {"mode": _m, "origin": _o, "cval": 0.3}),
            ("correlate", (KERNEL,), {"mode": _m, "origin": _o, "cval": 0.2}),
            ("convolve", (KERNEL,), {"mode": _m, "origin": _o}),
        ]
    FILTERS += [
        ("gaussian_filter", (1.2,), {"mode": _m}),
        ("uniform_filter", (3,), {"mode": _m}),
        ("uniform_filter1d", (4,), {"mode": _m, "origin": 1}),
        ("sobel", (), {"mode": _m, "axis": 0}),
        ("prewitt", (), {"mode": _m}),
        ("laplace", (), {"mode": _m}),
        ("gaussian_laplace", (0.9,), {"mode": _m}),
        ("gaussian_gradient_magnitude", (0.9,), {"mode": _m}),
    ]


def slopes(f: Any, args: tuple[np.ndarray, ...], k: int, d: np.ndarray, e: float = 1e-6) -> Any:
    """The derivative of a function along a direction in one argument, by central differences."""
    at = lambda s: f(*[v + s * d if j == k else v for j, v in enumerate(args)])
    return (at(e) - at(-e)) / (2 * e)


@pytest.mark.parametrize("name", sorted({n for n, _, _ in FILTERS}))
def test_filters(name: str) -> None:
    for _, args, kw in [c for c in FILTERS if c[0] == name]:
        agrees(name, args, kw)


def agrees(name: str, args: tuple[Any, ...], kw: dict[str, Any]) -> None:
    d = R.normal(size=IMAGE.shape)
    ours = lambda x: getattr(ndimage, name)(x, *args, **kw)
    theirs = lambda x: getattr(scipy.ndimage, name)(x, *args, **kw)
    try:
        want = theirs(IMAGE)
    except ValueError as error:  # an origin that leaves the window
        with pytest.raises(ValueError, match=str(error).partition("(")[0]):
            grad(lambda x: np.sum(ours(x)))(IMAGE)
        return
    y, t = jvp(ours, (IMAGE,), (d,))
    np.testing.assert_allclose(y, want, atol=1e-13)
    np.testing.assert_allclose(t, slopes(theirs, (IMAGE,), 0, d), atol=2e-8)
    g = grad(lambda x: np.sum(ours(x) * want))(IMAGE)
    assert np.sum(g * d) == pytest.approx(np.sum(t * want), rel=1e-9)


def test_widths_weights_batches_and_kinds() -> None:
    wide = lambda s: np.sum(ndimage.gaussian_filter(IMAGE, s) ** 2)
    plain = lambda s: np.sum(scipy.ndimage.gaussian_filter(IMAGE, s) ** 2)
    for s in (np.array(1.1), np.array([1.1, 0.8])):
        d = np.ones_like(s)
        assert np.sum(grad(wide)(s)) == pytest.approx(slopes(plain, (s,), 0, d), rel=1e-6)
    f = lambda k: np.sum(ndimage.convolve(IMAGE, k) ** 3)
    d = R.normal(size=KERNEL.shape)
    assert np.sum(grad(f)(KERNEL) * d) == pytest.approx(slopes(f, (KERNEL,), 0, d), rel=1e-6)
    got = vmap(lambda x: ndimage.sobel(x))(np.stack([IMAGE, 2 * IMAGE]))
    np.testing.assert_allclose(got[1], 2 * scipy.ndimage.sobel(IMAGE), atol=1e-13)
    assert isinstance(ndimage.sobel(chainrule.tensor(IMAGE)), chainrule.Tensor)
    assert type(ndimage.sobel(IMAGE)) is np.ndarray and ndimage.median_filter(IMAGE, 3).shape == IMAGE.shape


X = np.cumsum(R.uniform(0.5, 1.0, 7))
Y, MANY = R.normal(size=7), R.normal(size=(7, 3))
Q = X[0] + np.array([-0.2, 0.3, 1.1, 2.3, 3.9, 4.6])
T = np.concatenate([np.full(4, X[0]), X[2:5], np.full(4, X[-1])])
GRID, TABLE = (np.linspace(0, 1, 4) ** 1.2, np.linspace(0, 2, 5)), R.normal(size=(4, 5))
PLACES = R.uniform(0.02, 0.98, size=(6, 2)) * [1, 2]
ENDS = ("not-a-knot", "natural", "clamped", ((1, 0.3), (2, -0.4)), ((2, 0.5), "not-a-knot"), ("not-a-knot", (1, 0.2)))
SPLINES: dict[str, tuple[Any, tuple[np.ndarray, ...]]] = {
    **{f"cubic {e} {n}": (lambda m, x, y, q, e=e, n=n: m.CubicSpline(x[:n], y[:n], bc_type=e)(q), (X, Y, Q[:4])) for e in ENDS for n in (3, 4, 7)},
    **{f"cubic {e} 2": (lambda m, x, y, q, e=e: m.CubicSpline(x[:2], y[:2], bc_type=e)(q), (X, Y, Q[:3])) for e in ENDS[:3]},
    "cubic periodic": (
        lambda m, x, y, q: m.CubicSpline(x, np.concatenate([y[:-1], y[:1]]), bc_type="periodic")(q),
        (X, Y, np.append(Q, X[-1] + 1.3)),
    ),
    "cubic columns": (lambda m, x, y, q: m.CubicSpline(x, y)(q), (X, MANY, Q)),
    "cubic rows": (lambda m, x, y, q: m.CubicSpline(x, y.T, axis=1)(q.reshape(2, 3)), (X, MANY, Q)),
    "cubic at a number": (lambda m, x, y, q: m.CubicSpline(x, y.T, axis=1)(q[1]), (X, MANY, Q)),
    "cubic slope": (lambda m, x, y, q: m.CubicSpline(x, y)(q, 1), (X, Y, Q)),
    "cubic second slope": (lambda m, x, y, q: m.CubicSpline(x, y).derivative(2)(q), (X, Y, Q)),
    "cubic integral": (lambda m, x, y, q: m.CubicSpline(x, y).integrate(q[1], q[3]), (X, Y, Q)),
    "cubic antiderivative": (lambda m, x, y, q: m.CubicSpline(x, y).antiderivative()(q), (X, MANY, Q)),
    "hermite": (lambda m, x, y, q: m.CubicHermiteSpline(x, y, np.sin(y))(q), (X, Y, Q)),
    **{f"pchip {n}": (lambda m, x, y, q, n=n: m.PchipInterpolator(x[:n], y[:n])(q), (X, MANY, Q[:4])) for n in (2, 3, 7)},
    **{f"{k} {n}": (lambda m, x, y, q, n=n, k=k: m.Akima1DInterpolator(x[:n], y[:n], method=k, extrapolate=True)(q), (X, MANY, Q[:4]))
       for n in (2, 3, 7) for k in ("akima", "makima")},
    "outside": (lambda m, x, y, q: np.nan_to_num(m.Akima1DInterpolator(x, y)(q)), (X, Y, Q)),
    **{f"through points {k}": (lambda m, x, y, q, k=k: m.make_interp_spline(x, y, k)(q), (X, Y, Q)) for k in (1, 3)},
    "bspline": (lambda m, t, c, q: m.BSpline(t, c, 3)(q), (T, MANY, Q)),
    "bspline slope": (lambda m, t, c, q: m.BSpline(t, c, 3)(q, 1), (T, Y, Q)),
    "splev": (lambda m, t, c, q: m.splev(q, (t, c, 3), 1, 1), (T, Y, Q)),
    "table": (lambda m, x, y, q: m.interp1d(x, y)(q), (X, Y, Q[1:5])),
    "table, filled": (lambda m, x, y, q: m.interp1d(x, y.T, bounds_error=False, fill_value=(1.0, 2.0))(q), (X, MANY, Q)),
    "table, cubic": (lambda m, x, y, q: m.interp1d(x[::-1], y, "cubic", fill_value="extrapolate")(q), (X, Y, Q)),
    "grid": (lambda m, p, v, q: m.RegularGridInterpolator((p, GRID[1]), np.stack([v, v**2], -1))(q), (GRID[0], TABLE, PLACES)),
    "grid, outside": (
        lambda m, p, v, q: m.RegularGridInterpolator((p, GRID[1]), v, bounds_error=False, fill_value=0.5)(q * 1.3),
        (GRID[0], TABLE, PLACES),
    ),
    "grid, beyond": (
        lambda m, p, v, q: m.RegularGridInterpolator((p, GRID[1]), v, bounds_error=False, fill_value=None)((q[:, 0] * 1.3, q[:, 1])),
        (GRID[0], TABLE, PLACES),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPLINES)
def test_splines(name: str) -> None:
    f, args = SPLINES[name]
    theirs = lambda *a: np.asarray(f(scipy.interpolate, *a))
    want = theirs(*args)
    if name.endswith("akima 2") and scipy.interpolate.Akima1DInterpolator([0.0, 1.0], [1.0, 3.0])(0.25) != 1.5:
        # SciPy's was no line before 1.16.
        theirs = lambda x, y, q: y[0] + np.multiply.outer((q - x[0]) / (x[1] - x[0]), y[1] - y[0])
        want = theirs(*args)
    w = np.random.default_rng(1).normal(size=want.shape)
    gs = grad(lambda *a: np.sum(f(interpolate, *a) * w), (0, 1, 2))(*args)
    for k, (x, g) in enumerate(zip(args, gs, strict=True)):
        d = np.random.default_rng(k).normal(size=x.shape)
        if k == 0 and args[0] is T:  # knots at one place stay together
            d[:4], d[-4:] = d[0], d[-1]
        differences = np.sum(slopes(theirs, args, k, d) * w)
        assert np.sum(g * d) == pytest.approx(differences, rel=3e-6, abs=1e-6 * (1 + np.abs(want).max()))
        y, t = jvp(lambda v, k=k: f(interpolate, *args[:k], v, *args[k + 1 :]), (x,), (d,))  # type: ignore[misc]
        np.testing.assert_allclose(y, want, rtol=1e-9, atol=1e-10)
        assert np.sum(t * w) == pytest.approx(np.sum(g * d), rel=1e-8, abs=1e-9)


def test_splines_under_vmap_and_twice() -> None:
    f = lambda y: np.sum(interpolate.CubicSpline(X, y)(Q) ** 2)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([Y, 2 * Y])), [grad(f)(Y), grad(f)(2 * Y)], rtol=1e-12)
    basis = scipy.interpolate.CubicSpline(X, np.eye(7))(Q)
    np.testing.assert_allclose(hessian(f)(Y), 2 * basis.T @ basis, atol=1e-12)
    s = interpolate.CubicSpline(chainrule.tensor(X), chainrule.tensor(Y))
    assert isinstance(s(chainrule.tensor(Q)), chainrule.Tensor) and type(interpolate.CubicSpline(X, Y)(Q)) is np.ndarray
    with pytest.raises(NotImplementedError, match="k=1 and k=3"):
        interpolate.make_interp_spline(X, Y, 5)
    with pytest.raises(ValueError, match="outside"):
        grad(lambda y: np.sum(interpolate.interp1d(X, y)(Q)))(Y)
