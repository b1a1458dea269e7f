"""Integrals and differential equations, differentiable with respect to limits, initial values, and whatever the integrand depends on.

SciPy chooses the steps on numbers; the formula on these steps is then evaluated with ops. So the derivative is that of the computed result (the discrete
adjoint, in reverse mode), to any order, and values from closures count too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..core.registry import PUBLIC
from ..core.tensor import Tensor
from ..transforms.batch import vmap
from .kinds import hand_out, kind_of, on_tensors, result, seen_as, value


def _kind(*xs: Any) -> tuple[str, str]:
    kind = kind_of(*xs)
    return kind, "Tensor" if kind == "Tensor" else "Array"


def _out(kind: str, y: Tensor) -> str:
    return "Array" if kind == "ndarray" and y._interp is not None else kind


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    **options: Any,
) -> Any:
    """``y' = fun(t, y, *args)`` by an explicit Runge-Kutta method: SciPy's result, whose ``y`` has derivatives."""
    from scipy import integrate

    if method not in ("RK45", "RK23", "DOP853"):
        raise NotImplementedError(
            f"solve_ivp: method {method!r} has no derivative here; use 'RK45', 'RK23' or 'DOP853', with a smaller max_step if stiff"
        )
    if events is not None or dense_output or vectorized:
        raise NotImplementedError("solve_ivp: events, dense_output and vectorized have no derivative here; pass t_eval")
    args = () if args is None else tuple(args)
    kind, inner = _kind(y0, t_span[0], t_span[1], t_eval, *args)
    start = result(y0)
    start = start if start.dtype.np.kind in "fc" else start.to(PUBLIC["zeros"](1, dtype=np.float64).dtype)
    f = lambda t, y: result(fun(t, seen_as(y, inner), *args))
    ends = [float(value(t)) for t in t_span]
    numbers = lambda t, y: value(f(t, Tensor(np.asarray(y)))).reshape(-1)
    r = integrate.solve_ivp(numbers, ends, value(start), method=method, **options)
    if not r.success:
        return r
    wanted = None if t_eval is None else value(t_eval).astype(float)
    times = r.t if wanted is None else np.unique(np.concatenate([r.t, wanted]))
    if ends[1] < ends[0]:
        times = times[::-1] if times[0] != ends[0] else times
    knots = _knots(times, ends, wanted, t_span, t_eval)
    ys = [start]
    rk: Any = {"RK45": integrate.RK45, "RK23": integrate.RK23, "DOP853": integrate.DOP853}[method]
    for (_, a), (_, b) in pairwise(knots):
        ys.append(_step(f, a, ys[-1], b - a, rk, inner))
    found = {t: k for k, (t, _) in enumerate(knots)}  # of two at the start the second one is the wanted one
    y = PUBLIC["stack"]([ys[found[t]] for t in map(float, times if wanted is None else wanted)], -1)
    r.y = hand_out(y, _out(kind, y))
    r.t = times if wanted is None else wanted
    return r


def _knots(times: np.ndarray, ends: list[float], wanted: Any, t_span: Any, t_eval: Any) -> list[tuple[float, Any]]:
    """The times of the steps, as numbers and as what they are functions of: the ends, wanted times, and between two of these their mean."""
    first, last = (result(t) for t in t_span)
    asked = None if wanted is None else result(t_eval)
    if first._interp is None and last._interp is None and (asked is None or asked._interp is None):
        return [(t, t) for t in map(float, times)]
    marks = {} if asked is None else {float(t): asked[k] for k, t in enumerate(wanted)}
    knots: list[tuple[float, Any]] = [(ends[0], first)]
    for t in map(float, times):
        if t in marks or t != ends[0]:
            knots.append((t, marks.get(t, last if t == ends[1] else None)))
    fixed = [k for k, (_, v) in enumerate(knots) if v is not None]
    for i, j in pairwise(fixed):
        (a, low), (b, high) = knots[i], knots[j]
        for k in range(i + 1, j):
            knots[k] = (knots[k][0], low + (high - low) * ((knots[k][0] - a) / (b - a)))
    return knots


def _step(f: Any, t: Any, y: Tensor, h: Any, rk: Any, inner: str) -> Tensor:
    """One step of an explicit Runge-Kutta method."""
    ks: list[Tensor] = []
    a, b, c = np.asarray(rk.A), np.asarray(rk.B), np.asarray(rk.C)
    for i in range(len(b)):
        z = y
        if i:
            row = [(float(w), k) for w, k in zip(a[i], ks, strict=False) if w]
            z = y + h * sum((k * w for w, k in row[1:]), start=row[0][1] * row[0][0])
        s = t + h * float(c[i])
        ks.append(f(seen_as(s, inner) if isinstance(s, Tensor) else s, z))
    parts = [(float(w), k) for w, k in zip(b, ks, strict=True) if w]
    return y + h * sum((k * w for w, k in parts[1:]), start=parts[0][1] * parts[0][0])


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: Any = (),
    *,
    rtol: float = 1.49e-8,
    atol: float = 1.49e-8,
    tfirst: bool = False,
    **kw: Any,
) -> Any:
    """``y' = func(y, t, *args)`` at the times `t`, one row for each."""
    if kw:
        raise TypeError(f"odeint: {', '.join(kw)} is not taken here")
    args = args if isinstance(args, tuple) else (args,)
    g = func if tfirst else (lambda s, y, *a: func(y, s, *a))
    kind, _ = _kind(y0, t, *args)
    r = solve_ivp(g, (t[0], t[-1]), y0, method="DOP853", t_eval=t, args=args, rtol=rtol, atol=atol)
    if not r.success:
        raise RuntimeError(f"odeint: {r.message}")
    y = result(r.y)
    return hand_out(y.movedim(-1, 0), _out(kind, y))


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(21)


def quad(func: Callable[..., Any], a: Any, b: Any, args: Any = (), **options: Any) -> Any:
    """The integral of a function of a number, and SciPy's estimate of the error.

    SciPy divides the range into pieces until the error is small; on these pieces Gauss's rule with 21 points is evaluated with ops.
    """
    from scipy.integrate import quad as divide

    args = args if isinstance(args, tuple) else (args,)
    kind, inner = _kind(a, b, *args)
    low, high = (result(v) for v in (a, b))
    ends = [float(value(v)) for v in (low, high)]
    f, low, high, ends = _finite(lambda x: result(func(seen_as(x, inner), *args)), low, high, ends)
    got = divide(lambda x: float(value(f(Tensor(np.asarray(x, float))))), ends[0], ends[1], full_output=1, **options)
    info = got[2]
    n = info["last"]
    pieces = np.stack([np.asarray(info[k][:n]) for k in ("alist", "blist")], 1)
    width = ends[1] - ends[0]
    if not width:
        width = 1.0
    # Nodes and weights on all pieces, as parts of the range.
    mid, half = pieces.mean(1), (pieces[:, 1] - pieces[:, 0]) / 2
    nodes = ((mid[:, None] + half[:, None] * _NODES).reshape(-1) - ends[0]) / width
    weights = (half[:, None] * _WEIGHTS).reshape(-1) / width
    x = low + (high - low) * Tensor(nodes)
    y = (vmap(f)(x) * Tensor(weights)).sum() * (high - low)
    return hand_out(y, _out(kind, y)), got[1]


def _finite(f: Any, low: Tensor, high: Tensor, ends: list[float]) -> Any:
    """An integral over a finite range: infinite ends are brought to finite ones by a substitution."""
    inf = [np.isinf(e) for e in ends]
    if not any(inf):
        return f, low, high, ends
    zero, one = Tensor(np.zeros(())), Tensor(np.ones(()))
    if all(inf):
        if ends[0] > 0 or ends[1] < 0:
            raise ValueError(f"quad: the range from {ends[0]} to {ends[1]} is not supported; exchange the ends")
        # x = t / (1 - t^2)
        g = lambda t: f(t / (1 - t * t)) * (1 + t * t) / ((1 - t * t) * (1 - t * t))
        return g, -one, one, [-1.0, 1.0]
    if inf[1]:
        s = 1.0 if ends[1] > 0 else -1.0
        g = lambda t: f(low + s * t / (1 - t)) * s / ((1 - t) * (1 - t))
        return g, zero, one, [0.0, 1.0]
    s = -1.0 if ends[0] < 0 else 1.0
    g = lambda t: f(high + s * t / (1 - t)) * -s / ((1 - t) * (1 - t))
    return g, zero, one, [0.0, 1.0]


@on_tensors(1)
def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    """The trapezoidal rule."""
    return PUBLIC["trapezoid"](y, dim=axis, dx=dx) if x is None else PUBLIC["trapezoid"](y, result(x), dim=axis)


@on_tensors(2)
def simpson(y: Any, x: Any = None, *, dx: float = 1.0, axis: int = -1) -> Any:
    """Simpson's rule: parabolas through three points each; where the number of intervals is odd, the last one by the parabola of the last three points."""
    y = y.movedim(axis, -1)
    n = y.shape[-1]
    if x is None:
        h = Tensor(np.full(max(n - 1, 0), dx, y.dtype.np))
    else:
        h = (x if x.ndim == 1 else x.movedim(axis, -1)).diff(dim=-1)
    if n < 3:
        return (h * (y[..., :-1] + y[..., 1:])).sum(-1) * 0.5
    m = n - 1 + n % 2  # points in pairs of intervals
    a, b = h[..., 0 : m - 1 : 2], h[..., 1 : m - 1 : 2]
    left, mid, right = y[..., 0 : m - 2 : 2], y[..., 1 : m - 1 : 2], y[..., 2:m:2]
    s = ((a + b) / 6 * ((2 - b / a) * left + (a + b) * ((a + b) / (a * b)) * mid + (2 - a / b) * right)).sum(-1)
    if n % 2:
        return s
    a, b = h[..., -2], h[..., -1]
    last = (2 * b * b + 3 * a * b) / (6 * (a + b)) * y[..., -1] + (b * b + 3 * a * b) / (6 * a) * y[..., -2]
    return s + last - b * b * b / (6 * a * (a + b)) * y[..., -3]
