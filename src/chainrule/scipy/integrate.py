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
    kind, inner = _kind(y0, t_span[0], t_span[1], *args)
    start = result(y0)
    start = start if start.dtype.np.kind in "fc" else start.to(PUBLIC["zeros"](1, dtype=np.float64).dtype)
    f = lambda t, y: result(fun(t, seen_as(y, inner), *args))
    ends = [float(value(t)) for t in t_span]
    numbers = lambda t, y: value(f(t, Tensor(np.asarray(y)))).reshape(-1)
    r = integrate.solve_ivp(numbers, ends, value(start), method=method, **options)
    if not r.success:
        return r
    wanted = None if t_eval is None else value(t_eval)
    times = r.t if wanted is None else np.unique(np.concatenate([r.t, wanted]))
    if ends[1] < ends[0]:
        times = times[::-1] if times[0] != ends[0] else times
    # Times as functions of the ends of the span, if these have derivatives.
    moving = [isinstance(result(t), Tensor) and result(t)._interp is not None for t in t_span]
    if any(moving):
        t0, t1 = result(t_span[0]), result(t_span[1])
        at: list[Any] = [t0 + (t1 - t0) * float((t - ends[0]) / (ends[1] - ends[0])) for t in times]
    else:
        at = [float(t) for t in times]
    ys = [start]
    rk: Any = {"RK45": integrate.RK45, "RK23": integrate.RK23, "DOP853": integrate.DOP853}[method]
    for a, b in pairwise(at):
        ys.append(_step(f, a, ys[-1], b - a, rk, inner))
    keep = range(len(times)) if wanted is None else [int(np.flatnonzero(times == t)[0]) for t in wanted]
    y = PUBLIC["stack"]([ys[k] for k in keep], -1)
    r.y = hand_out(y, _out(kind, y))
    r.t = times if wanted is None else wanted
    return r


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
    times = value(t)
    g = func if tfirst else (lambda s, y, *a: func(y, s, *a))
    kind, _ = _kind(y0, t, *args)
    moving = result(t)
    if moving._interp is not None:
        raise NotImplementedError(
            "odeint: for derivatives with respect to times use solve_ivp, with the ends of t_span"
        )
    r = solve_ivp(g, (times[0], times[-1]), y0, method="DOP853", t_eval=times, args=args, rtol=rtol, atol=atol)
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


@on_tensors(1)
def simpson(y: Any, x: Any = None, *, dx: float = 1.0, axis: int = -1) -> Any:
    """Simpson's rule: exact weights for the points, which are numbers, times the values."""
    from scipy.integrate import simpson as rule

    n = y.shape[axis]
    w = rule(np.eye(n), dx=dx, axis=-1) if x is None else rule(np.eye(n), x=value(x), axis=-1)
    return (y.movedim(axis, -1) * Tensor(np.asarray(w, y.dtype.np))).sum(-1)
