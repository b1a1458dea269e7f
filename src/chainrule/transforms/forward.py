"""jvp, linearize: tangents pushed through a function, or along its tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.dispatch import constant, leaving
from ..core.forward import Forward, fit_tangent
from ..core.reverse import Reverse
from ..core.tensor import Tensor
from ..core.tree import flatten, tree_map, unflatten
from ..core.views import given_back, pin
from ..core.walk import reachable
from .common import (
    are_arrays,
    below,
    leave,
    lift,
    lower,
    need_diff,
    results_of,
    with_aux,
    write_back,
    written_to,
    zeros_of,
)
from .tangents import walk_forward


def jvp(f: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """``(f(x), J(x) t)``: the value and the derivative in the direction of the tangents.

    >>> jvp(lambda x: x * x, (chainrule.tensor(3.0),), (chainrule.tensor(1.0),))
    (tensor(9.), tensor(6.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"jvp: Expected primals to be a tuple, e.g. jvp(f, (x,), (t,)), got {type(primals).__name__}"
        )
    if not isinstance(tangents, tuple):
        raise RuntimeError(
            f"jvp: Expected primals and tangents to have the same python structure, both a tuple, e.g. jvp(f, (x,), (t,)), got "
            f"{type(tangents).__name__} as tangents"
        )
    xs, spec = flatten(primals)
    ts, tspec = flatten(tangents)
    if spec != tspec:
        raise RuntimeError(
            f"jvp: Expected primals and tangents to have the same python structure, got {spec} and {tspec}"
        )
    if not xs:
        raise RuntimeError("jvp: Expected at least one Tensor among the primals, got none")
    for x in (*xs, *ts):
        if not isinstance(x, Tensor) and are_arrays([*xs, *ts]):
            from ..interop.numpy.transform import pushforward

            return pushforward(jvp, f, primals, tangents, strict, has_aux)
    for x, t in zip(xs, ts, strict=True):
        need_diff("jvp", x)
        if not isinstance(t, Tensor):
            raise RuntimeError(f"jvp: expected the tangents to only contain Tensors, got {type(t).__name__}")
        if t.shape != x.shape:
            raise RuntimeError(f"jvp: a tangent has shape {list(t.shape)}, but its primal has shape {list(x.shape)}")
    with Forward() as level:
        duals = [Tensor(pin(x, True), level, pin(fit_tangent(t, x), True)) for x, t in zip(xs, ts, strict=True)]
        entered = [d._value for d in duals]
        out = f(*unflatten(duals, spec))
        aux: Any = None
        if has_aux:
            out, aux = with_aux("jvp(f, primals, tangents)", out)
        ys, yspec = results_of("jvp(f, primals, tangents)", level, out)
        if strict and any(y._interp is not level for y in ys):
            raise RuntimeError("jvp: with strict=True, an output is independent of the inputs")
        low = [lower(level, y) for y in ys]
        ts = [
            below(level, given_back(y._aux)) if y._interp is level and y._aux is not None else zeros_of(y) for y in ys
        ]
        aux = tree_map(lambda a: lower(level, a), aux) if has_aux else None
        written = written_to(level, xs, duals, entered)
    tangent = unflatten([leaving(t, y) for t, y in zip(ts, low, strict=True)], yspec)
    primal, aux = unflatten(leave(low), yspec), tree_map(leaving, aux) if has_aux else None
    write_back(written)
    return (primal, tangent, aux) if has_aux else (primal, tangent)


def linearize(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """``(f(x), t -> J(x) t)``: runs f once, and pushes tangents along its tape as often as you like."""
    leaves, spec = flatten(primals)
    for x in leaves:
        if not isinstance(x, Tensor) and are_arrays(leaves):
            from ..interop.numpy.transform import linear_map

            return linear_map(linearize, f, primals)
    with Reverse() as level:
        level.keep_all = True
        xs = lift(level, "linearize", leaves)
        inputs, like = [x._aux for x in xs], [x._value for x in xs]
        ys, yspec = results_of("linearize(f, *primals)", level, f(*unflatten(xs, spec)))
        nodes = [y._aux if y._interp is level else None for y in ys]
        low = [lower(level, y) for y in ys]
        written = written_to(level, leaves, xs, like)
    low = leave(low)
    write_back(written)
    order = reachable(dict.fromkeys([*(n for n in nodes if n is not None), *(level.effects or ())]))

    def push(*tangents: Any) -> Any:
        """Tangents of the output from those of the inputs."""
        ts, tspec = flatten(tangents)
        if tspec != spec:
            raise RuntimeError(f"linearize: the tangents have the structure {tspec}, but the inputs have {spec}")
        for t, x in zip(ts, like, strict=True):
            if not isinstance(t, Tensor):
                raise RuntimeError(f"linearize: expected the tangents to be tensors, got {type(t).__name__}")
            if t.shape != x.shape:
                raise RuntimeError(
                    f"linearize: a tangent has shape {list(t.shape)}, but its input has shape {list(x.shape)}"
                )
        out = walk_forward(list(zip(inputs, ts, strict=True)), nodes, order)
        return unflatten(
            [zeros_of(y) if t is None else leaving(constant(t), y) for t, y in zip(out, low, strict=True)], yspec
        )

    return unflatten(low, yspec), push
