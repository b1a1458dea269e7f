"""Steps: pointwise functions and reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ops.elementwise.select import where
from .choose import EDGE, F, Rng, chosen, dim_of, dropped, one, pick, same, step, weight
from .program import Program, Step, Value

# -- pointwise ----------------------------------------------------------------------------------------------------------------

UNARY: dict[str, Callable[[Any], Any]] = {
    "sin": lambda x: x.sin(), "tanh": lambda x: x.tanh(), "exp": lambda x: x.tanh().exp(), "sigmoid": lambda x: x.sigmoid(),
    "abs": lambda x: x.abs(), "relu": lambda x: x.relu(), "gelu": F.gelu, "affine": lambda x: (2 * x + 1) / 3 - 0.5,
    "cube": lambda x: x.tanh() ** 3, "clamp": lambda x: x.clamp(-0.5, 0.7), "sqrt": lambda x: (x * x + 0.3).sqrt(),
    "where": lambda x: where(x > EDGE, x, 0.1 * x * x), "masked_fill": lambda x: x.masked_fill(x > 0.3, 2.0), "softplus": F.softplus,
    "reciprocal": lambda x: 1 / (x * x + 1), "sign": lambda x: x * x.sign(),
}  # fmt: skip


@step
def unary(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p)
    name = pick(rng, UNARY)
    return None if i is None else one(name, i, UNARY[name], p.values[i], p.values[i].dims)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - 2 * b, "mul": lambda a, b: a * b, "div": lambda a, b: a / (b * b + 1),
    "maximum": lambda a, b: a.maximum(b + EDGE), "hypot": lambda a, b: (a * a + b * b + 0.1).sqrt(), "where": lambda a, b: where(a > b + EDGE, a, 2 * b),
    "mse": lambda a, b: F.mse_loss(a, b, reduction="none"), "huber": lambda a, b: F.huber_loss(a, b, reduction="none"),
}  # fmt: skip


@step
def binary(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p)
    if i is None:
        return None
    v = p.values[i]
    fit = []
    for j, w in enumerate(p.values):
        if w.real and w.n == v.n and len(w.dims) == len(v.dims):
            if all(
                same(a, b) or (not isinstance(b, np.ndarray) and b == 1) for a, b in zip(v.dims, w.dims, strict=True)
            ):
                fit.append(j)
    j, name = pick(rng, fit), pick(rng, BINARY)
    f = BINARY[name]
    a, b = (i, j) if rng.random() < 0.5 or name in ("mse", "huber") else (j, i)
    if name in ("mse", "huber") and not all(same(a, b) for a, b in zip(v.dims, p.values[j].dims, strict=True)):
        return None
    return Step(f"{name}(v{a}, v{b})", (a, b), f, f, Value(v.dims, v.n))


@step
def with_dense(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p)
    if i is None:
        return None
    v = p.values[i]
    k = int(rng.integers(len(v.dims) + 1))
    tail = v.dims[len(v.dims) - k :]
    shape = tuple(1 if isinstance(m, np.ndarray) or rng.random() < 0.3 else m for m in tail)
    name = pick(rng, ("add", "mul", "hypot"))
    return one(name, i, BINARY[name], v, v.dims, dense=(weight(p, *shape),))


# -- reductions ---------------------------------------------------------------------------------------------------------------

REDUCE: dict[str, tuple[int, Callable[..., Any]]] = {
    "sum": (0, lambda x, d, k: x.sum(d, keepdim=k)), "mean": (1, lambda x, d, k: x.mean(d, keepdim=k)),
    "amax": (1, lambda x, d, k: x.amax(d, keepdim=k)), "amin": (1, lambda x, d, k: x.amin(d, keepdim=k)),
    "amax or": (0, lambda x, d, k: x.amax(d, keepdim=k, fill=0.5)), "amin or": (0, lambda x, d, k: x.amin(d, keepdim=k, fill=0.5)),
    "logsumexp": (1, lambda x, d, k: x.logsumexp(d, keepdim=k)), "norm": (1, lambda x, d, k: x.norm(dim=d, keepdim=k)),
    "norm1": (0, lambda x, d, k: x.norm(1, dim=d, keepdim=k)), "norm3": (1, lambda x, d, k: x.norm(3, dim=d, keepdim=k)),
    "var": (2, lambda x, d, k: x.var(d, keepdim=k)), "var0": (1, lambda x, d, k: x.var(d, correction=0, keepdim=k)),
    "std": (2, lambda x, d, k: (x.var(d, keepdim=k) + 0.1).sqrt()), "nansum": (0, lambda x, d, k: x.nansum(d, keepdim=k)),
}  # fmt: skip
REDUCE_ONE: dict[str, tuple[int, Callable[..., Any]]] = {
    "prod": (0, lambda x, d, k: x.prod(d, keepdim=k)), "max": (1, lambda x, d, k: x.max(d, keepdim=k).values),
    "min": (1, lambda x, d, k: x.min(d, keepdim=k).values), "median": (1, lambda x, d, k: x.median(d, keepdim=k).values),
    "kthvalue": (2, lambda x, d, k: x.kthvalue(2, d, keepdim=k).values), "quantile": (1, lambda x, d, k: x.quantile(0.3, d, keepdim=k)),
    "nanquantile": (1, lambda x, d, k: x.nanquantile(0.6, d, keepdim=k)), "quantile lower": (1, lambda x, d, k: x.quantile(0.4, d, k, interpolation="lower")),
}  # fmt: skip
COUNT: dict[str, Callable[..., Any]] = {
    "argmax": lambda x, d, k: x.argmax(d, keepdim=k), "argmin": lambda x, d, k: x.argmin(d, keepdim=k),
    "place of max or": lambda x, d, k: x.argmax(d, keepdim=k, fill=-1),
    "any": lambda x, d, k: (x > EDGE).any(d, keepdim=k), "all": lambda x, d, k: (x > EDGE).all(d, keepdim=k),
    "count": lambda x, d, k: (x > EDGE).sum(d, keepdim=k),
}  # fmt: skip


@step
def reduction(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v, keep, name = p.values[i], bool(rng.random() < 0.5), pick(rng, REDUCE)
    many = int(rng.integers(1, len(v.dims) + 1)) if rng.random() < 0.4 else 1
    ds = tuple(sorted(-1 - int(d) for d in rng.choice(len(v.dims), many, replace=False)))
    least, f = REDUCE[name]
    if name == "norm" and many > 2:
        return None
    size = np.prod([v.sizes(d) for d in ds], axis=0)
    if (size < least).any() or (least and not all(v.has(d) for d in ds)):
        return None
    d: Any = ds[0] if len(ds) == 1 and rng.random() < 0.5 else ds
    return one(f"{name} {d} {keep}", i, lambda x: f(x, d, keep), v, dropped(v.dims, ds, keep))


@step
def reduction_one(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v, keep, name = p.values[i], bool(rng.random() < 0.5), pick(rng, REDUCE_ONE)
    d = dim_of(rng, v)
    least, f = REDUCE_ONE[name]
    if not v.has(d, least) or (name.endswith("quantile") and not all(v.has(e) for e in range(len(v.dims)))):
        return None
    if "quantile" in name and not (v.n and all(v.has(e) for e in range(len(v.dims)))):
        return None
    return one(f"{name} {d} {keep}", i, lambda x: f(x, d, keep), v, dropped(v.dims, (d,), keep))


@step
def counting(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None or rng.random() < 0.6:
        return None
    v, keep, name = p.values[i], bool(rng.random() < 0.5), pick(rng, COUNT)
    d = dim_of(rng, v)
    if name.startswith("arg") and not v.has(d):
        return None
    return one(f"{name} {d} {keep}", i, lambda x: COUNT[name](x, d, keep), v, dropped(v.dims, (d,), keep), real=False)
