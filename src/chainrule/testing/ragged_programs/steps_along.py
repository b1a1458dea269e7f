"""Steps along one dim: functions, pieces, joining, padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ops.shape.create import tensor
from ...ops.shape.slices import cat, stack
from .choose import F, Rng, chosen, dim_of, dropped, one, pick, replaced, same, step
from .program import Dim, Program, Step, Value

# -- along a dim ---------------------------------------------------------------------------------------------------------------

ALONG: dict[str, Callable[[Any, int], Any]] = {
    "softmax": lambda x, d: x.softmax(d), "log_softmax": lambda x, d: x.log_softmax(d), "normalize": lambda x, d: F.normalize(x, dim=d),
    "cumsum": lambda x, d: x.cumsum(d), "cumprod": lambda x, d: x.cumprod(d), "logcumsumexp": lambda x, d: x.logcumsumexp(d),
    "sort": lambda x, d: x.sort(d).values, "sort down": lambda x, d: x.sort(d, descending=True).values, "flip": lambda x, d: x.flip(d),
    "roll": lambda x, d: x.roll(1, d), "roll back": lambda x, d: x.roll(-2, d), "gather": lambda x, d: x.gather(d, x.detach().argsort(d)),
    "take_along_dim": lambda x, d: x.take_along_dim((-x.detach()).argsort(d), d),
    "centred": lambda x, d: x - x.sum(d, keepdim=True), "index_fill": lambda x, d: x.index_fill(d, tensor([0]), 0.5),
    "scatter": lambda x, d: x.scatter(d, x.detach().argsort(d), 2 * x), "scatter_add": lambda x, d: x.scatter_add(d, x.detach().argsort(d), x * x),
    "select_scatter": lambda x, d: x.select_scatter(x.select(d, -1) * 2, d, 0),
    "slice_scatter": lambda x, d: x.slice_scatter(3 * x.narrow(d, 0, 1), d, 0, 1),
    "index_copy": lambda x, d: x.index_copy(d, tensor([0]), 2 * x.narrow(d, 0, 1)),
    "index_add": lambda x, d: x.index_add(d, tensor([0]), x.narrow(d, 0, 1) ** 2),
}  # fmt: skip
NEED = frozenset("index_fill select_scatter slice_scatter index_copy index_add cummax cummin".split())


@step
def along(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v, name = p.values[i], pick(rng, ALONG)
    d = dim_of(rng, v)
    if name in NEED and not v.has(d):
        return None
    return one(f"{name} {d}", i, lambda x: ALONG[name](x, d), v, v.dims)


@step
def running_extremum(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    f = pick(rng, (lambda x: x.cummax(d).values, lambda x: x.cummin(d).values))
    return one(f"cummax {d}", i, f, v, v.dims)


@step
def index_of(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None or rng.random() < 0.6:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    return one(f"argsort {d}", i, lambda x: x.argsort(d), v, v.dims, real=False)


@step
def fewer(rng: Rng, p: Program) -> Step | None:
    """A part of a dim: entries, slices, an index; fixed numbers that every component has."""
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    m = v.dims[d]
    t = (slice(None),) * (-d - 1)
    name = pick(
        rng,
        (
            "select",
            "last",
            "narrow",
            "head",
            "tail",
            "end",
            "steps",
            "index",
            "index list",
            "index_select",
            "topk",
            "diff",
            "none",
        ),
    )
    if name in ("select", "last", "narrow", "index", "index list", "index_select", "topk") and not v.has(d):
        return None
    at = int(np.min(v.sizes(d))) - 1 if v.n else 0
    at = int(rng.integers(at + 1)) if at > 0 else 0
    if name == "select":
        return one(f"select {d} {at}", i, lambda x: x.select(d, at), v, dropped(v.dims, (d,), False))
    if name == "last":
        return one(f"last {d}", i, lambda x: x[(..., -1, *t)], v, dropped(v.dims, (d,), False))
    if name == "narrow":
        return one(f"narrow {d}", i, lambda x: x.narrow(d, 0, 1), v, replaced(v.dims, d, 1))
    if name in ("head", "tail", "end", "steps", "none"):
        s = {
            "head": slice(None, 2),
            "tail": slice(1, None),
            "end": slice(-2, None),
            "steps": slice(None, None, 2),
            "none": slice(None, 0),
        }[name]
        size = np.array([len(range(int(q))[s]) for q in v.sizes(d)], np.int64)
        return one(
            f"{name} {d}",
            i,
            lambda x: x[(..., s, *t)],
            v,
            replaced(v.dims, d, size if v.ragged(d) else len(range(m)[s])),
        )
    if name in ("index", "index list", "index_select"):
        rows = [0, at, 0] if name == "index_select" or rng.random() < 0.5 else [at, -1]
        index: Any = rows if name == "index list" else tensor(rows)
        f = (lambda x: x.index_select(d, index)) if name == "index_select" else (lambda x: x[(..., index, *t)])
        return one(f"{name} {d} {rows}", i, f, v, replaced(v.dims, d, len(rows)))
    if name == "topk":
        return one(f"topk {d}", i, lambda x: x.topk(1, d).values, v, replaced(v.dims, d, 1))
    less: Dim = np.maximum(m - 1, 0) if v.ragged(d) else max(m - 1, 0)
    return one(f"diff {d}", i, lambda x: x.diff(dim=d), v, replaced(v.dims, d, less))


@step
def pieces(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1, lambda v: len(v.dims) > 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    if v.ragged(d):
        f = pick(rng, (lambda x: cat([2 * c for c in x.split(2, d)], d), lambda x: cat(x.tensor_split(2, d)[::-1], d)))
        return one(f"split {d}", i, f, v, v.dims, None) if v.has(d) and v.n else None
    if v.dims[d] == 0:
        return None
    f = pick(
        rng,
        (lambda x: stack(x.unbind(d)[::-1], d), lambda x: cat(x.chunk(2, d)[::-1], d), lambda x: cat(x.split(1, d), d)),
    )
    return one(f"unbind {d}", i, f, v, v.dims)


@step
def joined(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    fit = [
        j for j, w in enumerate(p.values)
        if w.real and w.n == v.n and len(w.dims) == len(v.dims)
        and all(same(a, b) for q, (a, b) in enumerate(zip(v.dims, w.dims, strict=True)) if q != d % len(v.dims))
    ]  # fmt: skip
    j = pick(rng, fit)
    w = p.values[j]
    out = v.dims[d] + w.dims[d]
    f = lambda a, b: cat([a, 2 * b, a], d)
    return Step(f"cat {d}(v{i}, v{j})", (i, j), f, f, Value(replaced(v.dims, d, out + v.dims[d]), v.n))


@step
def stacked(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 0, lambda v: len(v.dims) < 4)
    if i is None:
        return None
    v = p.values[i]
    fit = [j for j, w in enumerate(p.values) if w.real and w.n == v.n and len(w.dims) == len(v.dims)
           and all(same(a, b) for a, b in zip(v.dims, w.dims, strict=True))]  # fmt: skip
    j, d = pick(rng, fit), -1 - int(rng.integers(len(v.dims) + 1))
    at = len(v.dims) + 1 + d
    f = lambda a, b: stack([a, 2 * b], d)
    return Step(f"stack {d}(v{i}, v{j})", (i, j), f, f, Value((*v.dims[:at], 2, *v.dims[at:]), v.n))


@step
def padded(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    a, b = int(rng.integers(-1, 3)), int(rng.integers(0, 3))
    if not v.has(d, max(-a, 0)):
        return None
    return one(
        f"pad {d} {a} {b}",
        i,
        lambda x: F.pad(x, (0, 0) * (-d - 1) + (a, b), value=0.5),
        v,
        replaced(v.dims, d, v.dims[d] + (a + b)),
    )
