"""Reverse rules of the package's own ops on small arrays as straight-line code (:mod:`.straight`): noted by the walk, op by op."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import walk
from .op import Op
from .recall import static
from .reverse import Node
from .straight import (
    _PLANS,
    LIMIT,
    MANY,
    ONCE,
    PAUSED,
    UNFIT,
    _bare_name,
    _example,
    _function,
    _needed,
    _Noting,
    _Unfit,
)
from .tensor import Tensor

ndarray = np.ndarray
_PULLS: dict[Any, Any] = {}  # code, or a word
_PLANS.append(_PULLS)


def pulled(n: Node, g: Any, live: Any) -> Any:
    """The cotangents of the inputs of a node by straight-line code, where all that its rule reads are small plain arrays; else None."""
    op = n.op
    if op.pull_by_code is None:
        op.pull_by_code = _ours(op)
    if not op.pull_by_code or PAUSED:
        return None
    key: list[Any] = [op, id(op.pull_rules)]  # others may have come in their place
    arrays: list[Any] = []
    several = n.nout > 0
    y = n.y
    given = [*(g if several else (g,)), *(y if y.__class__ is list or y.__class__ is tuple else (y,)), *n.args]
    for v in given:
        if v is None:
            key.append(None)
        elif isinstance(v, Tensor):
            if v._interp is not None:
                return None
            a = v._value
            if a.__class__ is not ndarray or a.size > LIMIT:
                return None
            arrays.append(a)
            key += (a.shape, a.dtype.num)
        elif v.__class__ is float or v.__class__ is int:
            key += (v.__class__, v or repr(v))
        else:
            return None
    for p in n.parents:
        key.append(p is not None and (live is None or p in live))
    if n.kw:
        for k, v in n.kw.items():
            key.append(k)
            if not static(v, key):
                return None
    known = tuple(key)
    plan = _PULLS.get(known)
    if plan is None or plan is ONCE:
        if len(_PULLS) >= 4 * MANY:
            _PULLS.clear()
        if plan is None:
            _PULLS[known] = ONCE
            return None
        try:
            plan = _pull_code(n, g, live, arrays)
        except Exception:  # whatever a rule does that this has no words for
            plan = UNFIT
        _PULLS[known] = plan
    if isinstance(plan, str):
        return None
    try:
        out = plan(*arrays)
    except Exception:
        return None  # by the ops; where it is an error, in their words
    return [v if v is None else Tensor(v) for v in out]


def _ours(op: Op) -> bool:
    """Whether the reverse rule is one of those in the package, which are made of ops: others may compute with what they please."""
    by_hand = op.pull_rules or [op.vjp_rule or op.jvp_rule or op.spec]
    rules = by_hand if type(by_hand) is list else [by_hand]
    names = [getattr(getattr(r, "rule", r), "__module__", "") or "" for r in rules if callable(r)]
    return op.form != "function" and op.again is None and not op.effect and all(_of_house(m) for m in names)


def _of_house(module: str) -> bool:
    return module.startswith(_PACKAGE) and ".random" not in module and ".recurrent" not in module


_PACKAGE = f"{__name__.partition('.')[0]}.ops."


def _pull_code(n: Node, g: Any, live: Any, arrays: list[Any]) -> Any:
    """The reverse rule of a node as a function of the arrays that it reads."""
    level = _Noting()
    arrays = [_example(a) for a in arrays]
    boxes = iter([level.input(a, f"x{k}") for k, a in enumerate(arrays)])

    def boxed(v: Any) -> Any:
        return next(boxes) if isinstance(v, Tensor) else v

    with level:
        gs: Any = [boxed(v) for v in g] if n.nout else boxed(g)
        first = n.nout or 1
        y = n.y
        ys: Any = type(y)([boxed(v) for v in y]) if y.__class__ in (list, tuple) else boxed(y)
        xs = [boxed(x) for x in n.args]
        need = [p is not None and (live is None or p in live) for p in n.parents]
        out = n.op.pull(gs, ys, xs, n.kw, need)
    results = []
    for v in out:
        if v is None:
            results.append("None")
            continue
        if type(v) is not Tensor or v._interp is not level:
            raise _Unfit
        a = v._value._value
        others = [*arrays[first:], *level.constants]
        shared = v._aux.startswith("x") or any(np.may_share_memory(a, b) for b in others)
        results.append(level.own(v._aux, shared))
    lines = _needed(level.lines, {_bare_name(r) for r in results})
    if len(lines) < 2:
        n.op.pull_by_code = False  # one op is as quick by itself
    head = ", ".join(f"x{k}" for k in range(len(arrays)))
    return _function(f"pull({head})", lines, f"({', '.join(results)},)", level.names)


walk.STRAIGHT = pulled
