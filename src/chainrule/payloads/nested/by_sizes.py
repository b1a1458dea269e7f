"""Functions that need concrete sizes, mapped over ragged components: once for each size that occurs, on all components that have it.

One op carries the function itself. Its derivatives are the same op with the function's derivative, its batching the same op with
``vmap`` of the function, so that every transform works in any nesting; at the bottom components of equal sizes are one dense array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.declare import op
from ...core.errors import ChainruleError
from ...core.op import is_float
from ...core.tensor import Tensor
from ...core.tree import flatten, unflatten
from ...ops.shape.in_each import nest_in_sight, whole_nest
from .array import NestedArray, pick
from .bodies import _same_size, assembled
from .deep import DeepArray, grouped, rows_of
from .deep_sizes import is_deep
from .sizes import RaggedInt

ndarray = np.ndarray
Function = Callable[..., Any]
PRETENDED = (64, 96)  # sizes from which a nest without components learns the structure of its results


def _batch(
    size: int, xs: list[Any], flags: list[bool], *, f: Function, axes: Any, at: int, shared: bool, like: Any
) -> Any:
    from ...func import vmap

    if axes is not None:  # the components are mapped already: this axis stands in front of them
        axes = tuple(a if not b else a + 1 if a >= 0 else a - 1 for a, b in zip(axes, flags, strict=True))
        at += 1
    elif any(b and nest_in_sight(x) for x, b in zip(xs, flags, strict=True)):
        axes = tuple(0 if b else -1 for b in flags)
    g = vmap(f, in_dims=tuple(0 if b else None for b in flags))
    return by_sizes_p.bind(*xs, f=g, axes=axes, at=at, shared=shared, like=like)


@op("by_sizes", batch=_batch)
def by_sizes_p(*xs: Any, f: Function, axes: Any, at: int, shared: bool, like: Any) -> Any:
    """``f(*xs)``. `axes` say where each argument has the components, `at` where the results have them.

    An argument that all components share, with ``k`` axes of other vmaps in front, has the axis ``-1 - k``. A `shared` result is one
    for all components: the sum of those of the groups. Its ragged dims are those of argument `like`, where there is one.
    """
    return _values(f(*[Tensor(x) for x in xs]))


def _values(y: Any) -> Any:
    return tuple([v._value for v in y]) if isinstance(y, tuple | list) else y._value


@by_sizes_p.on(NestedArray)
def _(*vals: Any, f: Function, axes: Any, at: int, shared: bool, like: Any) -> Any:
    nests = [v for v in vals if isinstance(v, NestedArray)]
    if axes is None or any(isinstance(v, NestedArray) and a < 0 for v, a in zip(vals, axes, strict=True)):
        raise ChainruleError(
            "a function that needs concrete sizes takes the components of a nested tensor: map over them"
        )
    n = nests[0].geometry.n
    if not n and like is not None:
        return _nothing(vals, axes, at, shared, like)
    results = [(m, f(*[Tensor(v) for v in xs])) for m, xs in _groups(vals, axes, n)]
    if shared:
        return sum(y._value for _, y in results)
    many = isinstance(results[0][1], tuple | list)
    model = nests[0] if like is None and len(results) == 1 else None if like is None else vals[like]
    outs = [
        _joined([(m, (y[j] if many else y)._value) for m, y in results], n, at, model)
        for j in range(len(results[0][1]) if many else 1)
    ]
    return tuple(outs) if many else outs[0]


@by_sizes_p.on(DeepArray)
def _(*vals: Any, f: Function, axes: Any, at: int, shared: bool, like: Any) -> Any:
    # The inner components of all outer ones are one axis.
    outer = next(v for v in vals if isinstance(v, DeepArray)).outer
    mapped = [isinstance(v, DeepArray | NestedArray) for v in vals]
    ahead = 0 if axes is None else max([-1 - a for a, m in zip(axes, mapped, strict=True) if not m], default=0)
    top = 0 if axes is None else max(a for a, m in zip(axes, mapped, strict=True) if m)
    # A sum over inner components is one for each outer one or for all: the axes of other maps tell, where what is mapped has them all.
    if (
        axes is None
        or any(a < 1 if m else a >= 0 for a, m in zip(axes, mapped, strict=True))
        or (shared and ahead > top - 1)
    ):
        raise ChainruleError(
            "a function that needs concrete sizes takes the inner components of a nest of nests, and what all of them share: join the "
            "nests, cat(x.unbind()), and map over the components of that"
        )
    inner = tuple(a - 1 if m else a for a, m in zip(axes, mapped, strict=True))
    xs = [rows_of(v, outer, 0, "a map over inner components") for v in vals]

    def g(*xs: Tensor) -> Any:
        # The function is mapped over outer components too: here they are one, which holds all the inner ones.
        y = f(*[x.unsqueeze(a - 1) if m else x for x, a, m in zip(xs, axes, mapped, strict=True)])
        if shared:
            return y
        return tuple([v.squeeze(at - 1) for v in y]) if isinstance(y, tuple | list) else y.squeeze(at - 1)

    run: Any = by_sizes_p.bodies[NestedArray]
    if shared and at == top:  # a sum for each outer component, of its inner ones
        each = []
        for i in range(outer.n):
            members = np.arange(*outer.offsets[i : i + 2])
            own = [
                pick(x, members) if isinstance(x, NestedArray) else x.take(members, axis=a) if m else x
                for x, a, m in zip(xs, inner, mapped, strict=True)
            ]
            each.append(run(*own, f=g, axes=inner, at=at, shared=True, like=like))
        return np.concatenate(
            [y if y.shape[at - 1] else np.zeros((*y.shape[: at - 1], 1, *y.shape[at:]), y.dtype) for y in each],
            axis=at - 1,
        )
    y = run(*xs, f=g, axes=inner, at=at if shared else at - 1, shared=shared, like=like)
    if shared:
        return y
    return tuple([grouped(v, outer, at - 1) for v in y]) if isinstance(y, tuple) else grouped(y, outer, at - 1)


def _front(axis: int) -> int:
    """How many axes of other vmaps stand in front."""
    return axis if axis >= 0 else -1 - axis


def _nothing(vals: tuple[Any, ...], axes: Any, at: int, shared: bool, like: int) -> Any:
    """The derivative of no components: zeros with the structure of an argument, after `at` axes of other vmaps."""
    x, own = vals[like], _front(axes[like])
    most = max(range(len(vals)), key=lambda i: _front(axes[i]))
    lead = (*vals[most].shape[: at - own], *x.shape[:own])
    if isinstance(x, NestedArray):
        return NestedArray(np.zeros((*lead, *x.geometry.rows), x.dtype), x.geometry)
    none = () if shared or axes[like] >= 0 else (0,)  # a derivative for each component of what they share
    return np.zeros((*lead, *none, *x.shape[own:]), x.dtype)


def _groups(vals: tuple[Any, ...], axes: Any, n: int) -> list[tuple[ndarray, list[Any]]]:
    """Components of one size each: which they are, and the arguments with these alone, as arrays."""
    if not n:
        none = np.zeros(0, np.int64)
        return [(none, [_pretended(v, a, size) for v, a in zip(vals, axes, strict=True)]) for size in PRETENDED]
    key = np.concatenate([v.geometry.packing.sizes for v in vals if isinstance(v, NestedArray)], 1)
    kinds, which = np.unique(key, axis=0, return_inverse=True)
    which = which.reshape(-1)
    order = np.argsort(which, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(which, minlength=len(kinds)))[:-1])
    return [
        (
            m,
            [
                _same_size(v, m, n, 0) if isinstance(v, NestedArray) else v if a < 0 else v.take(m, axis=a)
                for v, a in zip(vals, axes, strict=True)
            ],
        )
        for m in parts
    ]


def _pretended(v: Any, axis: int, size: int) -> Any:
    """An argument with one component where there is none."""
    if not isinstance(v, NestedArray):
        return v if axis < 0 else np.ones((*v.shape[:axis], 1, *v.shape[axis + 1 :]), v.dtype)
    return np.ones((*v.lead, 1, *[size if type(c) is RaggedInt else c for c in v.geometry.columns]), v.dtype)


def _joined(parts: list[tuple[ndarray, ndarray]], n: int, at: int, model: Any) -> Any:
    """The results of all groups, in the order of the components; ragged where they differ, or where the `model` is."""
    if not n:  # what was pretended to be there
        parts = [(m, y.take(m, axis=at)) for m, y in parts]
    shapes = [y.shape[at + 1 :] for _, y in parts]
    alike = isinstance(model, NestedArray) and model.geometry.k == len(shapes[0])
    known = model.geometry.columns if alike else None
    cols: list[Any] = []
    for j, m in enumerate(shapes[0]):
        ragged = any(s[j] != m for s in shapes) or (known is not None and type(known[j]) is RaggedInt)
        each = np.zeros(n, np.int64)
        for (members, _), s in zip(parts, shapes, strict=True):
            each[members] = s[j]
        cols.append(RaggedInt(each) if ragged else m)
    return assembled(parts, cols, n, parts[0][1].shape[:at])


@by_sizes_p.jvp(sparse=True)
def _(t: Any, y: Any, *xs: Any, f: Function, axes: Any, at: int, shared: bool, like: Any) -> Any:
    from ...func import jvp

    moving = [i for i, v in enumerate(t) if v is not None]
    real = [j for j, v in enumerate(y) if is_float(v)] if isinstance(y, tuple) else None

    def push(*a: Any) -> Any:
        def along(*m: Any) -> Any:
            full = list(a[: len(xs)])
            for i, v in zip(moving, m, strict=True):
                full[i] = v
            return _real(f(*full), real)

        return jvp(along, tuple(a[i] for i in moving), tuple(a[len(xs) :]))[1]

    more = None if axes is None else (*axes, *[axes[i] for i in moving])
    ty = by_sizes_p.bind(*xs, *[t[i] for i in moving], f=push, axes=more, at=at, shared=shared, like=like)
    return ty if real is None else tuple(ty[real.index(j)] if j in real else None for j in range(len(y)))


def _real(y: Any, which: list[int] | None) -> Any:
    """Those of several results that have a derivative."""
    return y if which is None else tuple([y[j] for j in which])


@by_sizes_p.vjp
def _(g: Any, y: Any, *xs: Any, f: Function, axes: Any, at: int, shared: bool, like: Any) -> Any:
    from ...func import vjp

    real = [j for j, v in enumerate(y) if is_float(v)] if isinstance(y, tuple) else None
    gs = [g] if real is None else [g[j] for j in real]
    k = len(gs)

    def pull(i: int) -> Any:
        def back(*a: Any) -> Any:
            of = lambda v: _real(f(*[v if q == i else x for q, x in enumerate(a[k:])]), real)
            return vjp(of, a[k + i])[1](a[0] if real is None else tuple(a[:k]))[0]

        if axes is None:
            return by_sizes_p.bind(*gs, *xs, f=back, axes=None, at=0, shared=False, like=k + i)
        mine = (*(-1 - at if shared else at,) * k, *axes)
        return by_sizes_p.bind(*gs, *xs, f=back, axes=mine, at=_front(axes[i]), shared=axes[i] < 0, like=k + i)

    return tuple((lambda i=i: pull(i)) if is_float(x) else None for i, x in enumerate(xs))


def call_by_sizes(f: Function, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """``f(*args, **kw)`` of one component, whose sizes may differ from those of others."""
    leaves, spec = flatten((args, kw))
    spots = [i for i, v in enumerate(leaves) if isinstance(v, Tensor)]

    def g(*xs: Any) -> Any:
        full = list(leaves)
        for i, x in zip(spots, xs, strict=True):
            full[i] = x
        a, k = unflatten(full, spec)
        return f(*a, **k)

    return by_sizes_p.bind(*[leaves[i] for i in spots], f=g, axes=None, at=0, shared=False, like=None)


def call_on_batch(f: Function, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """``f(input, ...)`` of a batch ``(N, ...)`` that is a nest: of each component as a batch of one."""
    from ...func import vmap

    if whole_nest(args[0]) and is_deep(args[0].shape):
        return vmap(lambda c: call_on_batch(f, (c, *args[1:]), kw))(args[0])

    def one(c: Tensor) -> Any:
        y = call_by_sizes(f, (c.unsqueeze(0), *args[1:]), kw)
        return tuple([v.squeeze(0) for v in y]) if isinstance(y, tuple | list) else y.squeeze(0)

    return vmap(one)(args[0])
