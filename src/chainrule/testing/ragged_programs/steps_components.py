"""Steps along the nesting dim."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops.shape.create import tensor
from ...ops.shape.slices import cat
from .choose import Rng, chosen, pick, step
from .program import Program, Step, Value, found

# -- along the nesting dim ------------------------------------------------------------------------------------------------------


def _moved(v: Value, order: np.ndarray) -> Value:
    return Value(tuple(d[order] if isinstance(d, np.ndarray) else d for d in v.dims), len(order))


@step
def components_moved(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None or rng.random() < 0.5:
        return None
    v = p.values[i]
    n = v.n
    if not n:
        return None
    name = pick(rng, ("flip", "roll", "index", "slice"))
    order = {
        "flip": np.arange(n)[::-1],
        "roll": np.roll(np.arange(n), 1),
        "index": rng.integers(0, n, n),
        "slice": np.arange(n)[1:],
    }[name]
    f: Any = {
        "flip": lambda x: x.flip(0),
        "roll": lambda x: x.roll(1, 0),
        "index": lambda x: x[tensor(order)],
        "slice": lambda x: x[1:],
    }[name]
    return Step(
        f"components {name} {order.tolist()}(v{i})",
        (i,),
        f,
        None,
        _moved(v, order),
        whole=lambda c: [c[j] for j in order],
    )


@step
def components_joined(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None or rng.random() < 0.5:
        return None
    v = p.values[i]
    fit = [j for j, w in enumerate(p.values) if w.real and len(w.dims) == len(v.dims) and w.nested == v.nested
           and all(isinstance(a, np.ndarray) == isinstance(b, np.ndarray) and (isinstance(a, np.ndarray) or a == b)
                   for a, b in zip(v.dims, w.dims, strict=True))]  # fmt: skip
    j = pick(rng, fit)
    w = p.values[j]
    dims = tuple(
        np.concatenate([a, b]) if isinstance(a, np.ndarray) else a for a, b in zip(v.dims, w.dims, strict=True)
    )
    return Step(
        f"cat 0(v{i}, v{j})",
        (i, j),
        lambda a, b: cat([a, 2 * b], 0),
        None,
        Value(dims, v.n + w.n),
        whole=lambda a, b: [*a, *[2 * c for c in b]],
    )


@step
def taken_apart(rng: Rng, p: Program) -> Step | None:
    """Components as tensors, changed and joined again."""
    from ...nested import as_nested_tensor

    i = chosen(rng, p, 1, lambda v: v.nested and v.n > 0)
    if i is None or rng.random() < 0.5:
        return None
    v = p.values[i]
    f = lambda x: as_nested_tensor([(q + 1) * c for q, c in enumerate(x.unbind())])
    return Step(
        f"unbind and join(v{i})", (i,), f, None, found(v), whole=lambda c: [(q + 1) * a for q, a in enumerate(c)]
    )


@step
def packed_values(rng: Rng, p: Program) -> Step | None:
    """A number of all packed rows spread to the components."""
    i = chosen(rng, p, 1, lambda v: v.nested)
    if i is None or rng.random() < 0.5:
        return None
    v = p.values[i]
    f = lambda x: x * (x.values() if x.is_nested else x).sum()  # windows give a dense tensor where their sizes agree
    return Step(
        f"times sum of values(v{i})", (i,), f, None, v, whole=lambda c: [a * sum(b.sum() for b in c) for a in c]
    )
