"""Steps that write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.tensor import Tensor
from ...ops.shape.create import tensor
from .choose import EDGE, Rng, chosen, dim_of, one, pick, step, weight
from .program import Program, Step

# -- writes -------------------------------------------------------------------------------------------------------------------


def written(change: Callable[..., Any]) -> Callable[..., Any]:
    def f(x: Tensor, *w: Any) -> Tensor:
        y = x * 1
        change(y, *w)
        return y

    return f


@step
def write(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    t = (slice(None),) * (-d - 1)
    name = pick(rng, ("tail", "mask", "in place", "first", "shift", "view", "select", "index", "masked one", "fill"))
    if name in ("first", "select", "index") and not v.has(d):
        return None
    if name == "view" and len(v.dims) < 2:
        return None
    change: Any = {
        "tail": lambda y: y.__setitem__((..., slice(1, None), *t), 2.0),
        "mask": lambda y: y.__setitem__(y > EDGE, -1.0),
        "in place": lambda y: y.mul_(2).add_(1).clamp_(-1, 3),
        "first": lambda y: y.__setitem__((..., 0, *t), y[(..., -1, *t)] ** 2),
        "shift": lambda y: y.__setitem__((..., slice(None, -1), *t), 3 * y[(..., slice(1, None), *t)]),
        "view": lambda y: y.transpose(-1, -2).mul_(y.transpose(-1, -2).sin()),
        "select": lambda y: y.select(d, 0).mul_(y.select(d, -1)),
        "index": lambda y: y.__setitem__((..., tensor([0, -1]), *t), y[(..., tensor([0]), *t)] * 3),
        "masked one": lambda y: y.masked_fill_(y < -EDGE, 0.3),
        "fill": lambda y: y[(..., slice(0, 1), *t)].fill_(0.7),
    }[name]  # fmt: skip
    return one(f"write {name} {d}", i, written(change), v, v.dims)


@step
def write_dense(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    if not v.has(d):
        return None
    t = (slice(None),) * (-d - 1)
    rest = v.dims[len(v.dims) + d + 1 :] if d != -1 else ()
    shape = tuple(1 if isinstance(m, np.ndarray) else m for m in rest)
    return one(
        f"write dense {d}",
        i,
        written(lambda y, w: y.__setitem__((..., 0, *t), w)),
        v,
        v.dims,
        dense=(weight(p, *shape),),
    )
