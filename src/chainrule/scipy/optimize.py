"""Roots and minima, differentiable with respect to what the functions depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..transforms.jacobian import hessian as _hessian
from ..transforms.jacobian import jacfwd
from ..transforms.reverse import grad
from .implicit import attach
from .kinds import hand_out, kind_of, result, seen_as, value


def _tuple(args: Any) -> tuple[Any, ...]:
    return args if isinstance(args, tuple) else (args,)


def _system(fun: Callable[..., Any], x0: Any, args: tuple[Any, ...]) -> tuple[Any, Any, str]:
    """The equations as a function of a tensor and as one of numbers, and what kind of values the user works with."""
    kind = kind_of(x0, *args)
    kind = "Tensor" if kind == "Tensor" else "Array"
    f = lambda t: result(fun(seen_as(t, kind), *args))
    numbers = lambda x: value(fun(seen_as(result(np.asarray(x, float)), kind), *args))
    return f, numbers, kind_of(x0, *args)


def root(fun: Callable[..., Any], x0: Any, args: Any = (), method: str = "hybr", jac: Any = None, **kw: Any) -> Any:
    """``fun(x, *args) = 0``: SciPy's result, whose ``x`` has the derivatives of the implicit function theorem."""
    from scipy.optimize import root as solve

    args = _tuple(args)
    f, numbers, kind = _system(fun, x0, args)
    exact = jac if callable(jac) else (lambda x: value(jacfwd(f)(result(np.asarray(x, float)))))
    r = solve(numbers, value(x0).astype(float), method=method, jac=exact if method in ("hybr", "lm") else None, **kw)
    r.x = hand_out(attach(f, r.x), _out(kind, f, r.x))
    return r


def _out(kind: str, f: Any, x: Any) -> str:
    """The kind of a solution: with values of a transform in a closure, it belongs to the transform."""
    if kind == "ndarray" and f(result(np.asarray(x, float)))._interp is not None:
        return "Array"
    return kind


def fsolve(func: Callable[..., Any], x0: Any, args: Any = (), **kw: Any) -> Any:
    """``func(x, *args) = 0``, the solution alone."""
    full = kw.pop("full_output", False)
    r = root(func, x0, args, **({"tol": kw.pop("xtol")} if "xtol" in kw else {}))
    if kw:
        raise TypeError(f"fsolve: {', '.join(kw)} is not taken here; use root(..., options=...)")
    if not r.success and not full:
        raise RuntimeError(f"fsolve: no solution was found: {r.message}")
    return (r.x, r, int(r.success), r.message) if full else r.x


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    **kw: Any,
) -> Any:
    """A minimum of ``fun(x, *args)``: SciPy's result, found with exact derivatives, whose ``x`` is a function of `args` too."""
    from scipy.optimize import minimize as solve

    args = _tuple(args)
    f, numbers, kind = _system(fun, x0, args)
    gradient = lambda x: value(grad(f)(result(np.asarray(x, float))))
    second = lambda x: value(_hessian(f)(result(np.asarray(x, float))))
    needs = str(method).lower() in ("trust-exact", "trust-ncg", "trust-krylov", "dogleg", "newton-cg")
    no_gradient = str(method).lower() in ("nelder-mead", "powell", "cobyla", "cobyqa")
    r = solve(
        lambda x: float(numbers(x)),
        value(x0).astype(float),
        method=method,
        jac=None if no_gradient else jac if callable(jac) else gradient,
        hess=hess if hess is not None else second if needs and hessp is None else None,
        hessp=hessp,
        bounds=bounds,
        constraints=constraints,
        **kw,
    )
    kind = _out(kind, f, r.x)
    if bounds is not None or constraints:
        if kind != "ndarray" and f(result(r.x))._interp is not None:
            raise NotImplementedError(
                "minimize: a minimum on a bound or constraint has no derivative rule here; write the constraint as a penalty, or solve the "
                "conditions of optimality with chainrule.scipy.optimize.root"
            )
        return r
    r.x = hand_out(attach(grad(f), r.x), kind)
    return r
