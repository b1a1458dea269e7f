"""scipy.interpolate: splines and tables, differentiable in the points, in the values and in where they are asked for."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ..core.registry import PUBLIC
from ..core.tensor import Tensor
from .kinds import floating, hand_out, kind_of, value


def _p(name: str) -> Any:
    return PUBLIC[name]


def _together(*kinds: str) -> str:
    """The kind of what is made of values of these kinds."""
    return next((k for k in ("Array", "Tensor") if k in kinds), "ndarray")


def _left_of(x: Tensor, at: Tensor) -> Tensor:
    """The interval of a point: the number of its left end."""
    found = _p("searchsorted")(x.detach().contiguous(), at.detach().contiguous(), right=True) - 1
    return found.clamp(0, x.shape[0] - 2)


def _column(t: Tensor, like: Tensor) -> Tensor:
    """A tensor along the first dimensions of another."""
    return t.reshape((*t.shape, *([1] * (like.ndim - t.ndim))))


class PPoly:
    """Polynomials on intervals: ``sum_k c[k] (x - x[i])^(n - k)`` between ``x[i]`` and ``x[i + 1]``."""

    def __init__(self, c: Any, x: Any, extrapolate: Any = True, axis: int = 0) -> None:
        self._c, self._x, self._kind = floating(c), floating(x), kind_of(c, x)
        self.extrapolate, self.axis = extrapolate, axis

    @property
    def c(self) -> Any:
        """The coefficients, highest power first."""
        return hand_out(self._c, self._kind)

    @property
    def x(self) -> Any:
        """The ends of the intervals."""
        return hand_out(self._x, self._kind)

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        kind = _together(kind_of(x), self._kind)
        at = floating(x)
        flat, mode = at.reshape(-1), self.extrapolate if extrapolate is None else extrapolate
        first, last = self._x[0], self._x[-1]
        if mode == "periodic":
            flat = first + _p("remainder")(flat - first, last - first)
        i = _left_of(self._x, flat)
        c = self.derivative(nu)._c if nu > 0 else self.antiderivative(-nu)._c if nu < 0 else self._c
        h = flat - self._x[i]
        y = c[0][i]
        for k in range(1, c.shape[0]):
            y = y * _column(h, y) + c[k][i]
        if mode is False or mode is None:
            inside = (flat >= first) & (flat <= last)
            y = _p("where")(_column(inside, y), y, np.nan)
        y = y.reshape((*at.shape, *y.shape[1:]))
        if at.ndim and self.axis:
            y = y.movedim(tuple(range(at.ndim)), tuple(range(self.axis, self.axis + at.ndim)))
        return hand_out(y, kind)

    def _like(self, c: Tensor) -> PPoly:
        new = PPoly(c, self._x, self.extrapolate, self.axis)
        new._kind = self._kind
        return new

    def derivative(self, nu: int = 1) -> PPoly:
        """The derivative, a polynomial of a lower degree."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = self._c
        for _ in range(nu):
            n = c.shape[0] - 1
            c = c[:-1] * _column(Tensor(np.arange(n, 0, -1.0)), c) if n else c * 0
        return self._like(c)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """The integral from the first end on."""
        if nu < 0:
            return self.derivative(-nu)
        c = self._c
        for _ in range(nu):
            n = c.shape[0]
            c = c / _column(Tensor(np.arange(n, 0, -1.0)), c)
            h = _column(self._x.diff(), c[0])
            whole = c[0] * h
            for k in range(1, n):
                whole = (whole + c[k]) * h
            start = _p("cat")([whole[:1] * 0, whole.cumsum(0)[:-1]])
            c = _p("cat")([c, start.unsqueeze(0)])
        return self._like(c)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral between two points."""
        whole = self.antiderivative()
        mode = self.extrapolate if extrapolate is None else extrapolate
        if mode == "periodic":
            raise NotImplementedError("integrate: periodic splines have no rule here; integrate one period")
        return whole(b, extrapolate=mode) - whole(a, extrapolate=mode)


def _points(x: Any, y: Any, axis: int, least: int = 2) -> tuple[Tensor, Tensor, str]:
    """Points and values with the axis of the points first."""
    tx, ty, kind = floating(x), floating(y), kind_of(x, y)
    ty = ty.movedim(axis, 0)
    if tx.ndim != 1 or tx.shape[0] < least:
        raise ValueError(f"`x` must be 1-dimensional and contain at least {least} elements.")
    if tx.shape[0] != ty.shape[0]:
        raise ValueError(f"The length of `y` along `axis`={axis} doesn't match the length of `x`")
    return tx, ty, kind


def _hermite(x: Tensor, y: Tensor, slopes: Tensor) -> Tensor:
    """The coefficients of the cubics with these values and slopes at the ends."""
    h = _column(x.diff(), y)
    m = y.diff(dim=0) / h
    t = (slopes[:-1] + slopes[1:] - 2 * m) / h
    return _p("stack")([t / h, (m - slopes[:-1]) / h - t, slopes[:-1], y[:-1]])


class _Cubic(PPoly):
    def _set(self, x: Tensor, y: Tensor, slopes: Tensor, kind: str, axis: int, extrapolate: Any) -> None:
        self._c, self._x, self._kind, self.axis = _hermite(x, y, slopes), x, kind, axis % y.ndim
        self.extrapolate = True if extrapolate is None else extrapolate


class CubicHermiteSpline(_Cubic):
    """Cubics with given values and slopes."""

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
        tx, ty, _ = _points(x, y, axis)
        self._set(tx, ty, floating(dydx).movedim(axis, 0), kind_of(x, y, dydx), axis, extrapolate)


class CubicSpline(_Cubic):
    """Cubics with two continuous derivatives."""

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> None:
        tx, ty, kind = _points(x, y, axis)
        if extrapolate is None:
            extrapolate = "periodic" if isinstance(bc_type, str) and bc_type == "periodic" else True
        self._set(tx, ty, _slopes(tx, ty, bc_type), kind, axis, extrapolate)


_NAMED: dict[str, tuple[int, float]] = {"clamped": (1, 0.0), "natural": (2, 0.0)}


def _slopes(x: Tensor, y: Tensor, bc_type: Any) -> Tensor:
    """The slopes of a cubic spline: the second derivatives agree at the inner points, and the ends are as `bc_type` says."""
    n = x.shape[0]
    h = x.diff()
    hy = _column(h, y)
    m = y.diff(dim=0) / hy
    if isinstance(bc_type, str) and bc_type == "periodic":
        return _periodic(h, m, n)
    ends = [bc_type, bc_type] if isinstance(bc_type, str) else list(bc_type)
    ends = [_NAMED.get(e, e) if isinstance(e, str) else e for e in ends]
    if n == 2:
        ends = [(1, m[0]) if e == "not-a-knot" else e for e in ends]
    if n == 3 and ends == ["not-a-knot", "not-a-knot"]:
        # A parabola through three points.
        c = (m[1] - m[0]) / (hy[0] + hy[1])
        return _p("stack")([m[0] - c * hy[0], m[0] + c * hy[0], m[1] + c * hy[1]])
    one = h[0] * 0 + 1
    main, upper, lower, right = [], [h[:-1]], [h[1:]], []
    for k, e in enumerate(ends):
        # Both ends alike, seen from the end inwards: the first interval a, the second b.
        a, ma = (h[-1], m[-1]) if k else (h[0], m[0])
        if e == "not-a-knot":
            b, mb = (h[-2], m[-2]) if k else (h[1], m[1])
            d = a + b
            row = b, d, ((a + 2 * d) * b * ma + a * a * mb) / d
        elif isinstance(e, tuple | list) and int(e[0]) == 1:
            row = one, 0 * one, floating(e[1]) + 0 * ma
        elif isinstance(e, tuple | list) and int(e[0]) == 2:
            row = 2 * a, a, 3 * ma * a + (0.5 if k else -0.5) * floating(e[1]) * a * a
        else:
            raise ValueError(
                f"bc_type={e!r} is not known; there are not-a-knot, clamped, natural, periodic, (order, value)"
            )
        main.append(row[0].reshape(1))
        if k:
            lower.append(row[1].reshape(1))
        else:
            upper.insert(0, row[1].reshape(1))
        right.append(row[2])
    inner = 3 * (hy[1:] * m[:-1] + hy[:-1] * m[1:])
    matrix = (
        _p("diag_embed")(_p("cat")([main[0], 2 * (h[:-1] + h[1:]), main[1]]))
        + _p("diag_embed")(_p("cat")(upper), 1)
        + _p("diag_embed")(_p("cat")(lower), -1)
    )
    b = _p("cat")([right[0].unsqueeze(0), inner, right[1].unsqueeze(0)])
    return _solved(matrix, b)


def _solved(matrix: Tensor, b: Tensor) -> Tensor:
    return _p("linalg.solve")(matrix.to(b.dtype), b.reshape(b.shape[0], -1)).reshape(b.shape)


def _periodic(h: Tensor, m: Tensor, n: int) -> Tensor:
    before, mb = h.roll(1, 0), m.roll(1, 0)
    k = n - 1
    shift = Tensor(np.roll(np.eye(k), 1, 0))  # the row of a point has its left neighbour's column
    matrix = _p("diag_embed")(2 * (before + h)) + h.unsqueeze(-1) * shift + before.unsqueeze(-1) * shift.mT
    b = 3 * (_column(h, m) * mb + _column(before, m) * m)
    s = _solved(matrix, b)
    return _p("cat")([s, s[:1]])


class PchipInterpolator(_Cubic):
    """Cubics that are monotonic where the values are."""

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        tx, ty, kind = _points(x, y, axis)
        h = _column(tx.diff(), ty)
        m = ty.diff(dim=0) / h
        where = _p("where")
        if ty.shape[0] == 2:
            s = _p("cat")([m, m])
        else:
            a, b = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
            ok = m[:-1].sign() * m[1:].sign() > 0
            mean = (a / where(ok, m[:-1], 1.0) + b / where(ok, m[1:], 1.0)) / (a + b)
            s = where(ok, 1 / where(ok, mean, 1.0), 0.0)
            ends = []
            for h0, h1, m0, m1 in ((h[0], h[1], m[0], m[1]), (h[-1], h[-2], m[-1], m[-2])):
                d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
                d = where((m0.sign() != m1.sign()) & (d.abs() > 3 * m0.abs()) & (d.sign() == m0.sign()), 3 * m0, d)
                ends.append(where(d.sign() != m0.sign(), 0.0, d).unsqueeze(0))
            s = _p("cat")([ends[0], s, ends[1]])
        self._set(tx, ty, s, kind, axis, extrapolate)


class Akima1DInterpolator(_Cubic):
    """Cubics whose slopes are means of the neighbours', less where these change much."""

    def __init__(self, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None) -> None:
        if method not in ("akima", "makima"):
            raise NotImplementedError(f"`method`={method} is unsupported.")
        tx, ty, kind = _points(x, y, axis)
        m = ty.diff(dim=0) / _column(tx.diff(), ty)
        if ty.shape[0] == 2:
            s = _p("cat")([m, m])
        else:
            first, last = 2 * m[0] - m[1], 2 * m[-1] - m[-2]
            rows = [2 * first - m[0], first, *m.unbind(0), last, 2 * last - m[-1]]
            m = _p("stack")(rows)
            dm = m.diff(dim=0).abs()
            if method == "makima":
                dm = dm + 0.5 * (m[1:] + m[:-1]).abs()
            f1, f2 = dm[2:], dm[:-2]
            both = f1 + f2
            changes = both > 1e-9 * both.detach().amax()
            mean = (f1 * m[1:-2] + f2 * m[2:-1]) / _p("where")(changes, both, 1.0)
            flat = 0.0 if method == "makima" else 0.5 * (m[3:] + m[:-3])
            s = _p("where")(changes, mean, flat)
        self._set(tx, ty, s, kind, axis, False if extrapolate is None else extrapolate)


class BSpline:
    """``sum_j c[j] B_j(x)`` with B-splines of degree `k` on the knots `t`."""

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        if axis:
            raise NotImplementedError("BSpline: only axis=0 has a rule here; move the axis of the coefficients")
        self._t, self._c, self.k, self._kind = floating(t), floating(c), int(k), kind_of(t, c)
        self.extrapolate, self.axis = extrapolate, axis

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        kind = _together(kind_of(x), self._kind)
        if nu:
            return self.derivative(nu)(x, 0, extrapolate)
        t, k, at = self._t, self.k, floating(x)
        flat, mode = at.reshape(-1), self.extrapolate if extrapolate is None else extrapolate
        n = t.shape[0] - k - 1
        first, last = t[k], t[n]
        if mode == "periodic":
            flat = first + _p("remainder")(flat - first, last - first)
        i = _left_of(t[k : n + 1], flat) + k
        d = [self._c[i - k + j] for j in range(k + 1)]
        for r in range(1, k + 1):
            for j in range(k, r - 1, -1):
                low, high = t[i - k + j], t[i + 1 + j - r]
                w = _column((flat - low) / (high - low), d[j])
                d[j] = (1 - w) * d[j - 1] + w * d[j]
        y = d[k]
        if mode is False:
            y = _p("where")(_column((flat >= first) & (flat <= last), y), y, np.nan)
        return hand_out(y.reshape((*at.shape, *y.shape[1:])), kind)

    @property
    def c(self) -> Any:
        """The coefficients."""
        return hand_out(self._c, self._kind)

    @property
    def t(self) -> Any:
        """The knots."""
        return hand_out(self._t, self._kind)

    def derivative(self, nu: int = 1) -> BSpline:
        """The derivative, a spline of a lower degree."""
        t, c, k = self._t, self._c, self.k
        for _ in range(nu):
            n = t.shape[0] - k - 1
            c = c[:n]
            c = k * c.diff(dim=0) / _column(t[k + 1 : k + n] - t[1:n], c) if k else c * 0
            t, k = (t[1:-1], k - 1) if k else (t, k)
        new = BSpline(t, c, k, self.extrapolate)
        new._kind = self._kind
        return new


def make_interp_spline(x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, **kw: Any) -> Any:
    """The spline of degree 1 or 3 through the points, as a :class:`PPoly`."""
    if k not in (1, 3) or t is not None:
        raise NotImplementedError("make_interp_spline: k=1 and k=3 without knots have a rule here")
    return _linear(x, y, axis) if k == 1 else CubicSpline(x, y, axis, "not-a-knot" if bc_type is None else bc_type)


def _linear(x: Any, y: Any, axis: int, extrapolate: Any = True) -> PPoly:
    tx, ty, kind = _points(x, y, axis)
    new = PPoly(_p("stack")([ty.diff(dim=0) / _column(tx.diff(), ty), ty[:-1]]), tx, extrapolate, axis % ty.ndim)
    new._kind = kind
    return new


class interp1d:
    """A table: linear or cubic between the points."""

    def __init__(
        self, x: Any, y: Any, kind: str = "linear", axis: int = -1, copy: bool = True, bounds_error: Any = None,
        fill_value: Any = np.nan, assume_sorted: bool = False,
    ) -> None:  # fmt: skip
        if kind not in ("linear", "cubic"):
            raise NotImplementedError(f"interp1d: kind={kind!r} has no derivative here; there are 'linear' and 'cubic'")
        if not assume_sorted:
            order = Tensor(np.argsort(value(x), kind="mergesort"))
            x, y = floating(x)[order], hand_out(floating(y).movedim(axis, 0)[order].movedim(0, axis), kind_of(x, y))
        self.fill_value = fill_value
        beyond = isinstance(fill_value, str) and fill_value == "extrapolate"
        self.bounds_error = not beyond and bounds_error is not False and fill_value is np.nan
        self._spline = (_linear if kind == "linear" else CubicSpline)(x, y, axis)

    def __call__(self, x: Any) -> Any:
        s = self._spline
        y, at = s(x), floating(x)
        first, last = s._x[0], s._x[-1]
        if self.bounds_error:
            v, ends = value(at), value(s._x)
            if (v < ends[0]).any() or (v > ends[-1]).any():
                raise ValueError("A value in x_new is outside of the interpolation range.")
        elif not isinstance(self.fill_value, str):
            low, high = self.fill_value if isinstance(self.fill_value, tuple) else (self.fill_value, self.fill_value)
            t = floating(y)
            rest = t.ndim - at.ndim - s.axis
            spread = lambda m: m.reshape((1,) * s.axis + tuple(m.shape) + (1,) * rest)
            t = _p("where")(spread(at < first), floating(low), t)
            y = hand_out(_p("where")(spread(at > last), floating(high), t), kind_of(y))
        return y


class RegularGridInterpolator:
    """Values on a grid of any dimension: linear between them."""

    def __init__(
        self, points: Any, values: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
    ) -> None:
        if method != "linear":
            raise NotImplementedError(
                f"RegularGridInterpolator: method {method!r} has no derivative here; use 'linear'"
            )
        self._points, self._values = [floating(p) for p in points], floating(values)
        self._kind = kind_of(*points, values)
        self.bounds_error, self.fill_value = bounds_error, fill_value

    def __call__(self, xi: Any) -> Any:
        if isinstance(xi, tuple | list) and any(np.ndim(v) for v in xi):
            kind = _together(*[kind_of(v) for v in xi], self._kind)
            at = _p("stack")(_p("broadcast_tensors")(*[floating(v) for v in xi]), -1)
        else:
            kind, at = (
                _together(kind_of(xi), self._kind),
                floating(np.stack(xi) if isinstance(xi, tuple | list) else xi),
            )
        n = len(self._points)
        lead = at.shape[:-1]
        flat = at.reshape(-1, n)
        places, parts = [], []
        inside: Any = None
        for k, p in enumerate(self._points):
            v = flat[:, k]
            i = _left_of(p, v)
            places.append(i)
            parts.append((v - p[i]) / (p[i + 1] - p[i]))
            ok = (v >= p[0]) & (v <= p[-1])
            inside = ok if inside is None else inside & ok
        if self.bounds_error and not value(inside).all():
            raise ValueError("One of the requested xi is out of bounds")
        y: Any = 0.0
        for corner in product((0, 1), repeat=n):
            v = self._values[tuple([i + c for i, c in zip(places, corner, strict=True)])]
            for c, w in zip(corner, parts, strict=True):
                v = v * _column(w if c else 1 - w, v)
            y = y + v
        if self.fill_value is not None:
            y = _p("where")(_column(inside, y), y, self.fill_value)
        return hand_out(y.reshape((*lead, *y.shape[1:])), kind)


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """A spline ``(t, c, k)`` or its derivative at points; `ext` 0 extrapolates, 1 gives zero outside."""
    if not isinstance(tck, tuple | list):
        return tck(x, der)
    if ext not in (0, 1):
        raise NotImplementedError("splev: ext=0 and ext=1 have a rule here")
    t, c, k = tck
    y = BSpline(t, c, k)(x, der)
    if ext:
        at, knots = floating(x), floating(t)
        y = hand_out(_p("where")((at >= knots[k]) & (at <= knots[-k - 1]), floating(y), 0.0), kind_of(y))
    return y


def __getattr__(name: str) -> Any:
    import scipy.interpolate

    return getattr(scipy.interpolate, name)


__all__ = [
    "Akima1DInterpolator", "BSpline", "CubicHermiteSpline", "CubicSpline", "PPoly", "PchipInterpolator", "RegularGridInterpolator", "interp1d",
    "make_interp_spline", "splev",
]  # fmt: skip
