"""vjp, grad: a function's tape, and walks back along it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import ndarray

from ..core import dispatch
from ..core import dtypes as dt
from ..core.dispatch import innermost, leaving
from ..core.errors import see
from ..core.reverse import Reverse
from ..core.shapes import sizes_of, unit
from ..core.tensor import Tensor
from ..core.tree import flatten, match, tree_map, unflatten
from ..core.walk import walk_back
from .common import (
    Argnums,
    are_arrays,
    as_tensor_result,
    below,
    door,
    leave,
    lift,
    lower,
    named_as,
    results_of,
    split_args,
    with_aux,
    write_back,
    written_to,
    zeros_of,
)


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``(f(x), g -> J(x)^T g)``: the value and the function that pulls cotangents back, as often as you like.

    >>> y, pull = vjp(lambda x: x.sin(), chainrule.tensor([0.0, 1.0])); pull(chainrule.ones(2))[0]
    tensor([1.0000, 0.5403])
    """
    leaves, spec = flatten(primals)
    for x in leaves:
        if not isinstance(x, Tensor) and are_arrays(leaves):
            return door().pullback(vjp, f, primals, has_aux)
    with Reverse() as level:
        level.open = level.level
        xs = lift(level, "vjp", leaves)
        inputs, like = [x._aux for x in xs], [x._value for x in xs]
        out = f(*unflatten(xs, spec))
        aux: Any = None
        if has_aux:
            out, aux = with_aux("vjp(f, *primals)", out)
        ys, yspec = results_of("vjp(f, *primals)", level, out)
        nodes = [y._aux if y._interp is level else None for y in ys]
        low = [lower(level, y) for y in ys]
        aux = tree_map(lambda a: lower(level, a), aux) if has_aux else None
        written = written_to(level, leaves, xs, like)
    low, aux = leave(low), tree_map(leaving, aux) if has_aux else None
    write_back(written)

    def pull(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        """Cotangents of the inputs from those of the output."""
        tree = cotangents[0] if len(cotangents) == 1 else cotangents
        gs = match(tree, yspec)
        if gs is None:
            gs, gspec = flatten(tree)
            if not len(gs) == len(ys) == 1:
                raise RuntimeError(
                    f"vjp: Expected pytree structure of the cotangents to be that of the output: they have {gspec}, the output has {yspec}"
                )
        starts = []
        for n, g, y in zip(nodes, gs, low, strict=True):
            if n is not None and g is not None:
                starts.append((n, _check_cotangent("vjp", g, y)))
        got = walk_back(starts, free=not retain_graph, must=level.effects)
        return unflatten([got[n] if n in got else zeros_of(v) for n, v in zip(inputs, like, strict=True)], spec)

    result = unflatten(low, yspec)
    return (result, pull, aux) if has_aux else (result, pull)


def _check_cotangent(name: str, g: Any, y: Tensor) -> Tensor:
    if not isinstance(g, Tensor):
        raise RuntimeError(f"{name}: expected a tensor as the cotangent, got {type(g).__name__}")
    if g.shape != y.shape:
        raise RuntimeError(
            f"{name}: the cotangent has shape {list(g.shape)}, but the output it belongs to has shape {list(y.shape)}"
        )
    d = y.dtype
    if g.dtype is not d:
        if g.dtype.category == dt.COMPLEX and d.category != dt.COMPLEX:
            g = g.real
        g = g.to(d)
    return g


def _left_the_graph(out: Any) -> str:
    """What to write instead, for a function that returns no tensor."""
    if isinstance(out, tuple):
        return "; use has_aux=True to return more than the loss"
    if isinstance(out, int | float | complex):
        return (
            "; math.sin(x), float(x) and x.item() take a number out of its tensor, and its derivative is lost: write x.sin(), and return a tensor"
            + see("Nothing to differentiate")
        )
    return "; does it end with `return`?" if out is None else ""


def scalar_of(level: Reverse, out: Any) -> tuple[Any, Tensor, dt.DType]:
    """What a function to be differentiated returned: its node (None where nothing leads to the level), its value one level down, its type."""
    if not isinstance(out, Tensor) and not isinstance(out := as_tensor_result(out), Tensor):
        raise RuntimeError(
            f"grad: expected the function to return a tensor, got {type(out).__name__}" + _left_the_graph(out)
        )
    if sizes_of(out):
        raise RuntimeError(
            f"grad: expected the function to return a scalar (0-d) tensor, got one of shape {list(out.shape)}; sum it, or use vjp or jacrev"
        )
    if out._interp is not level:
        out = level.settle(out)
    node, value = (out._aux, out._value) if out._interp is level else (None, out)
    d = dt.FROM_NP[innermost(value).dtype]
    if d.category == dt.COMPLEX and not (node is None and level.effects is None):
        raise RuntimeError(f"grad: expected a real result, got {d}; take .real or .abs() of it, or use vjp")
    return node, value, d


def _gradient(
    f: Any, argnums: Argnums, has_aux: bool, args: tuple[Any, ...], kw: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """Gradient, value and auxiliary output of `f`."""
    one = argnums == 0 and args and isinstance(args[0], Tensor)
    if one:
        leaves = [args[0]]
    else:
        if argnums == 0 and args and type(args[0]) is ndarray and not has_aux:
            return door().of_first(_gradient, f, args, kw)
        nums = split_args(argnums, args, "grad")
        leaves, spec = flatten(tuple([args[i] for i in nums]))
        for x in leaves:
            if not isinstance(x, Tensor) and are_arrays(leaves):
                return door().gradient(_gradient, f, argnums, nums, has_aux, args, kw)
    with Reverse() as level:
        level.open = level.level
        xs = lift(level, "grad", leaves)
        # The function may write to its arguments: what they are now is noted here.
        if one:
            inputs, like = [xs[0]._aux], [xs[0]._value]
            out = f(xs[0], *args[1:], **kw)
        else:
            inputs, like = [x._aux for x in xs], [x._value for x in xs]
            full = list(args)
            for i, v in zip(nums, unflatten(xs, spec), strict=True):
                full[i] = v
            out = f(*full, **kw)
        aux: Any = None
        if has_aux:
            out, aux = with_aux("grad_and_value(f)(*args)", out)
        node, value, d = scalar_of(level, out)
        if has_aux:
            aux = tree_map(lambda a: lower(level, a), aux)
        same = len(xs) == 1 and xs[0]._value is like[0]
        written = [] if same else written_to(level, leaves, xs, like)
    if level.floor >= 0 and node is not None:
        value = below(level, value)
    if dispatch.SETTLE is not None:
        value, aux = leaving(value), tree_map(leaving, aux) if has_aux else None
    if written:
        write_back(written)
    if node is None and level.effects is None:
        got: dict[Any, Any] = {}
    else:
        got = walk_back([] if node is None else [(node, unit(d))], must=level.effects)
    if one:
        g = got.get(inputs[0])
        return zeros_of(like[0]) if g is None else g, value, aux
    gs = [got[n] if n in got else zeros_of(x) for n, x in zip(inputs, like, strict=True)]
    result = unflatten(gs, spec)
    return result[0] if isinstance(argnums, int) else result, value, aux


def grad_and_value(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """``x -> (df/dx, f(x))`` for a function with a scalar result; with ``has_aux``, ``(df/dx, (f(x), aux))``."""

    @functools.wraps(f)
    def gradient(*args: Any, **kw: Any) -> Any:
        g, value, aux = _gradient(f, argnums, has_aux, args, kw)
        return (g, (value, aux)) if has_aux else (g, value)

    return gradient


def grad(
    f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, argnum: Argnums | None = None
) -> Callable[..., Any]:
    """``x -> df/dx`` for a function with a scalar result. `argnum` is HIPS autograd's name of `argnums`.

    >>> grad(grad(lambda x: x ** 3))(chainrule.tensor(2.0))
    tensor(12.)
    """

    if argnum is not None:
        argnums = argnum

    def gradient(*args: Any, **kw: Any) -> Any:
        g, _, aux = _gradient(f, argnums, has_aux, args, kw)
        return (g, aux) if has_aux else g

    return named_as(gradient, f)


def value_and_grad(
    f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, argnum: Argnums | None = None
) -> Callable[..., Any]:
    """``x -> (f(x), df/dx)`` for a function with a scalar result; with ``has_aux``, ``((f(x), aux), df/dx)``."""
    if argnum is not None:
        argnums = argnum

    def both(*args: Any, **kw: Any) -> Any:
        g, value, aux = _gradient(f, argnums, has_aux, args, kw)
        return ((value, aux), g) if has_aux else (value, g)

    return named_as(both, f)


def elementwise_grad(
    f: Callable[..., Any], argnums: Argnums = 0, *, argnum: Argnums | None = None
) -> Callable[..., Any]:
    """``x -> d sum(f(x)) / dx``: the derivative of each element of a function that acts element by element.

    >>> elementwise_grad(lambda x: x.sin())(chainrule.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """

    def total(*args: Any, **kw: Any) -> Any:
        return f(*args, **kw).sum()

    return named_as(grad(total, argnums, argnum=argnum), f)
