"""Gradients of dual numbers in the imperative style: reverse mode runs on them, so the gradients are dual numbers too.

A dual number holds its primal and its tangent on the tape below. With y = p + e t and the cotangent G = G0 + e G1, the gradient is
``p'* G0 + e (t'* G0 + p'* G1)``: three walks over that tape, where the tangents that were given to ``make_dual`` are constants.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .reverse import Leaf
from .tensor import Tensor
from .views import grow
from .walk import reachable


def dual_level(ts: Any) -> Any:
    """The innermost level of dual numbers that one of the tensors belongs to; None where there is none."""
    found: Any = None
    for t in ts:
        i = getattr(t, "_interp", None)
        if i is not None and i.fades and (found is None or i.level > found.level):
            found = i
    return found


def _parts(level: Any, t: Any) -> tuple[Any, Any]:
    """Primal and tangent of a tensor, or of anything else."""
    if not isinstance(t, Tensor) or (i := t._interp) is None or i is not level:
        return t, None
    return t._value, t._aux if i.alive else None


@contextlib.contextmanager
def _given_tangents_apart(level: Any) -> Iterator[None]:
    """Meanwhile the tangents that were given to ``make_dual`` come from nowhere."""
    nodes = [n for w in level.given for n in (w(),) if n is not None]
    parents = [n.parents for n in nodes]
    for n in nodes:
        n.parents = (None,) * len(n.parents)
    try:
        yield
    finally:
        for n, p in zip(nodes, parents, strict=True):
            n.parents = p


@contextlib.contextmanager
def _quiet(nodes: list[Any]) -> Iterator[None]:
    """Meanwhile nobody's hooks are called."""
    hooks = [(n, n.hooks) for n in nodes if n.hooks is not None]
    for n, _ in hooks:
        n.hooks = None
    try:
        yield
    finally:
        for n, h in hooks:
            n.hooks = h


def tangents_of_leaves(
    level: Any, walk: Callable[..., Any], ys: list[Any], gs: list[Any], wanted: Any
) -> dict[Any, Any]:
    """The tangents of the gradients that ``backward()`` keeps: ``walk(ys, gs, wanted)`` gives the cotangents of nodes."""
    tops, tangents = zip(*[_parts(level, y) for y in ys], strict=True)
    high, low = zip(*[_parts(level, g) for g in gs], strict=True)
    on_tape = [y for y in (*tops, *tangents) if y is not None and y._interp is not None and y._interp.kind == "reverse"]
    nodes = reachable([y._aux for y in on_tape])
    leaves = [n for n in nodes if type(n) is Leaf] if wanted is None else list(wanted)
    total: dict[Any, Any] = {}

    def add(outputs: Any, cotangents: Any) -> None:
        some = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if y is not None and y.requires_grad]
        if some and leaves:
            for n, g in walk([y for y, _ in some], [g for _, g in some], leaves).items():
                total[n] = g if n not in total else total[n] + g

    with _quiet(nodes):
        with _given_tangents_apart(level):
            add(tangents, high)
        add([None if g is None else y for y, g in zip(tops, low, strict=True)], low)
    return total


def grad_over(
    level: Any, walk: Callable[..., tuple[Any, ...]], ys: list[Any], xs: list[Any], gs: list[Any], retain: bool
) -> list[Any]:
    """The gradients of dual numbers: ``walk(ys, xs, gs, retain, may be absent)`` gives those of what is below."""
    tops, tangents = zip(*[_parts(level, y) for y in ys], strict=True)
    below = [_parts(level, x)[0] for x in xs]
    high, low = zip(*[_parts(level, g) for g in gs], strict=True)
    total: list[Any] = [None] * len(xs)

    def add(outputs: Any, cotangents: Any) -> None:
        some = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if y is not None and y.requires_grad]
        if some:
            got = walk([y for y, _ in some], below, [g for _, g in some], True, True)
            total[:] = [b if a is None else a if b is None else a + b for a, b in zip(total, got, strict=True)]

    with _given_tangents_apart(level):
        add(tangents, high)
    add([None if g is None else y for y, g in zip(tops, low, strict=True)], low)
    primal = walk(list(tops), below, list(high), retain, False)
    return [p if p is None or t is None else _pair(level, p, t) for p, t in zip(primal, total, strict=True)]


def _pair(level: Any, primal: Tensor, tangent: Tensor) -> Tensor:
    """The dual number of both; where cotangents were mapped over inside the level, one for each example."""
    above = [
        i for x in (primal, tangent) if (i := x._interp) is not None and i.kind == "vmap" and i.level > level.level
    ]
    if not above:
        return Tensor(primal, level, tangent)
    top: Any = max(above, key=lambda i: i.level)
    p, t = (x._value if x._interp is top else grow(x, top.size) for x in (primal, tangent))
    return Tensor(_pair(level, p, t), top)
