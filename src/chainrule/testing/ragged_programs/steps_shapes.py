"""Steps: other shapes."""

from __future__ import annotations

import numpy as np

from .choose import Rng, chosen, dim_of, dropped, one, pick, replaced, step
from .program import Program, Step

# -- shapes -------------------------------------------------------------------------------------------------------------------


@step
def swapped(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 2)
    if i is None:
        return None
    v = p.values[i]
    a, b = (int(d) - len(v.dims) for d in rng.choice(len(v.dims), 2, replace=False))
    dims = list(v.dims)
    if rng.random() < 0.5:
        dims[a], dims[b] = dims[b], dims[a]
        return one(f"transpose {a} {b}", i, lambda x: x.transpose(a, b), v, tuple(dims))
    dims.insert(b % len(v.dims), dims.pop(a))
    return one(f"movedim {a} {b}", i, lambda x: x.movedim(a, b), v, tuple(dims))


@step
def more_dims(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 0, lambda v: len(v.dims) < 4)
    if i is None:
        return None
    v = p.values[i]
    d = -1 - int(rng.integers(len(v.dims) + 1))
    at = len(v.dims) + 1 + d
    if rng.random() < 0.5:
        return one(f"unsqueeze {d}", i, lambda x: x.unsqueeze(d), v, (*v.dims[:at], 1, *v.dims[at:]))
    rest = (-1,) * len(v.dims)
    f = lambda x: x.unsqueeze(d).expand(*(-1,) * (x.ndim - len(rest)), *rest[:at], 3, *rest[at:])
    return one(f"expand {d}", i, f, v, (*v.dims[:at], 3, *v.dims[at:]))


@step
def fewer_dims(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 2)
    if i is None:
        return None
    v = p.values[i]
    d = -1 - int(rng.integers(len(v.dims)))
    if not v.ragged(d) and v.dims[d] == 1:
        return one(f"squeeze {d}", i, lambda x: x.squeeze(d), v, dropped(v.dims, (d,), False))
    if d == -len(v.dims):
        return None
    e = d % len(v.dims)
    size = v.dims[e - 1] * v.dims[e]
    return one(f"flatten {d - 1}", i, lambda x: x.flatten(d - 1, d), v, (*v.dims[: e - 1], size, *v.dims[e + 1 :]))


@step
def repeated(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    times = tuple(2 if q == d % len(v.dims) else 1 for q in range(len(v.dims)))
    return one(
        f"repeat {d}",
        i,
        lambda x: x.repeat(*(1,) * (x.ndim - len(times)), *times),
        v,
        replaced(v.dims, d, v.dims[d] * 2),
    )


@step
def triangle(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 2)
    if i is None:
        return None
    v, q = p.values[i], int(rng.integers(-1, 2))
    name = pick(rng, ("tril", "triu", "diagonal"))
    if name != "diagonal":
        return one(f"{name} {q}", i, lambda x: getattr(x, name)(q), v, v.dims)
    size = np.minimum(v.sizes(-2), v.sizes(-1))
    ragged = v.ragged(-1) or v.ragged(-2)
    return one(
        "diagonal",
        i,
        lambda x: x.diagonal(dim1=-2, dim2=-1),
        v,
        (*v.dims[:-2], size.copy() if ragged else int(min(v.dims[-2:]))),
    )
