"""Steps: products and layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ops.shape.create import tensor
from ...ops.shape.ranges import arange
from .choose import F, Rng, chosen, dim_of, one, pick, step, weight
from .program import Program, Step

# -- products and layers -------------------------------------------------------------------------------------------------------


@step
def product(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 2)
    if i is None:
        return None
    v = p.values[i]
    name = pick(rng, ("gram", "outer gram", "right", "left", "vector", "linear"))
    a, b = v.dims[-2:]
    if name == "gram":
        return one("x @ x.mT", i, lambda x: x @ x.mT, v, (*v.dims[:-2], a, a))
    if name == "outer gram":
        return one("x.mT @ x", i, lambda x: x.mT @ x, v, (*v.dims[:-2], b, b))
    if name in ("right", "vector", "linear") and v.ragged(-1):
        return None
    if name == "right":
        return one("x @ w", i, lambda x, w: x @ w, v, (*v.dims[:-1], 3), dense=(weight(p, b, 3),))
    if name == "linear":
        return one("linear", i, F.linear, v, (*v.dims[:-1], 3), dense=(weight(p, 3, b), weight(p, 3)))
    if name == "vector":
        return one("x @ v", i, lambda x, w: x @ w, v, v.dims[:-1], dense=(weight(p, b),))
    if v.ragged(-2):
        return None
    return one("w @ x", i, lambda x, w: w @ x, v, (*v.dims[:-2], 3, b), dense=(weight(p, 3, a),))


@step
def attention(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 2, lambda v: not v.ragged(-1) and len(v.dims) < 4 and v.has(-1))
    if i is None:
        return None
    v, causal = p.values[i], bool(rng.random() < 0.5)
    return one(
        f"attention {causal}", i, lambda x: F.scaled_dot_product_attention(x, x.sin(), x, is_causal=causal), v, v.dims
    )


@step
def row_norm(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1, lambda v: not v.ragged(-1) and v.has(-1))
    if i is None:
        return None
    v = p.values[i]
    m, f = v.dims[-1], pick(rng, (F.layer_norm, F.rms_norm))
    w = (weight(p, m),) if rng.random() < 0.5 else ()
    return one(f.__name__, i, lambda x, *w: f(x, (m,), *w), v, v.dims, dense=w)


@step
def channel_norm(rng: Rng, p: Program) -> Step | None:
    """Norms of images ``[channels, ...]``, the first dim of a component uniform."""
    i = chosen(rng, p, 2, lambda v: not v.ragged(0) and len(v.dims) < 4 and v.has(0))
    if i is None:
        return None
    v = p.values[i]
    c = v.dims[0]
    size = np.prod([v.sizes(d) for d in range(1, len(v.dims))], axis=0)
    name = pick(rng, ("instance_norm", "group_norm", "batch_norm"))
    if (size < 2).any() or not v.n:
        return None
    if name == "instance_norm":
        f: Any = F.instance_norm
    elif name == "group_norm":
        f = lambda x: F.group_norm(x, 2 if c % 2 == 0 else 1)
    else:
        mean, var = tensor(np.linspace(-0.2, 0.3, c)), tensor(np.linspace(0.5, 2.0, c))
        f = lambda x: F.batch_norm(x, mean, var)
    return one(name, i, f, v, v.dims, lambda x: f(x.unsqueeze(0)).squeeze(0))


def _windows(name: str, d: int, c: int) -> tuple[Any, Callable[[Any], Any], int | None, tuple[int, ...]]:
    """A function of images ``[channels, *sizes]``, the size it makes of a size, its channels where they change, its weight's shape."""
    if name == "conv":
        f = F.conv1d if d == 1 else F.conv2d
        return lambda x, w: f(x, w, padding=1), lambda m: m, 2, (2, c, *(3,) * d)
    if name == "conv_transpose":
        f = F.conv_transpose1d if d == 1 else F.conv_transpose2d
        return lambda x, w: f(x, w, stride=2), lambda m: (m - 1) * 2 + 3, 2, (c, 2, *(3,) * d)
    if name == "max_pool":
        return (F.max_pool1d if d == 1 else F.max_pool2d), lambda m: m // 2, None, ()
    if name == "avg_pool":
        return (F.avg_pool1d if d == 1 else F.avg_pool2d), lambda m: m // 2, None, ()
    if name == "adaptive":
        f = F.adaptive_avg_pool1d if d == 1 else F.adaptive_avg_pool2d
        return (lambda x, k: f(x, (2,) * d)), lambda m: m * 0 + 2, None, ()
    return (
        (lambda x, k: F.interpolate(x, scale_factor=2.0, mode="linear" if d == 1 else "bilinear")),
        lambda m: m * 2,
        None,
        (),
    )


@step
def windows(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 2, lambda v: v.nested and not v.ragged(0) and v.has(0) and len(v.dims) < 4)
    if i is None:
        return None
    v = p.values[i]
    name = pick(rng, ("conv", "conv_transpose", "max_pool", "avg_pool", "adaptive", "interpolate"))
    if not all(v.has(e, 2) for e in range(1, len(v.dims))):
        return None
    f, size, channels, shape = _windows(name, len(v.dims) - 1, v.dims[0])
    g = f if shape else (lambda x: f(x, 2))
    dims = tuple(2 if name == "adaptive" else size(m) for m in v.dims[1:])
    out = (v.dims[0] if channels is None else channels, *dims)
    w = (weight(p, *shape),) if shape else ()
    return one(name, i, g, v, out, lambda x, *w: g(x.unsqueeze(0), *w).squeeze(0), dense=w)


@step
def classes(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 2, lambda v: len(v.dims) == 2 and not v.ragged(-1) and v.has(-1))
    if i is None:
        return None
    v = p.values[i]
    m = v.dims[-1]
    label = lambda x: (x.detach().sum(-1).abs() * 3).long() % m
    if rng.random() < 0.3:
        return one(
            "cross_entropy last",
            i,
            lambda x: F.cross_entropy(x, label(x), reduction="none", class_dim=-1),
            v,
            v.dims[:-1],
        )
    if rng.random() < 0.5:
        return one("cross_entropy", i, lambda x: F.cross_entropy(x.transpose(-1, -2), label(x), reduction="none"), v, v.dims[:-1],
                   lambda x: F.cross_entropy(x, label(x), reduction="none"))  # fmt: skip
    return one("nll", i, lambda x: -x.log_softmax(-1).gather(-1, label(x).unsqueeze(-1)).squeeze(-1), v, v.dims[:-1])


@step
def of_sizes(rng: Rng, p: Program) -> Step | None:
    """A size of each component in arithmetic."""
    i = chosen(rng, p, 1, lambda v: v.nested)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    return one(f"over size {d}", i, lambda x: x / (x.shape[d] + 1), v, v.dims)


@step
def positions(rng: Rng, p: Program) -> Step | None:
    """A table of positions cut to each component's size, and a range of it."""
    i = chosen(rng, p, 1, lambda v: v.ragged(0) and len(v.dims) <= 2 and not any(map(v.ragged, range(1, len(v.dims)))))
    if i is None:
        return None
    v = p.values[i]
    if (v.sizes(0) > 40).any():
        return None
    rest = tuple(v.dims[1:])
    if rng.random() < 0.5:
        w = (weight(p, 40, *rest),)
        return one(
            "positions", i, lambda x, w: x + w[: x.shape[1]], v, v.dims, lambda c, w: c + w[: c.shape[0]], dense=w
        )
    column = lambda r: r if not rest else r.unsqueeze(-1)
    f = lambda x: x * (column(arange(x.shape[1])) + 1)
    return one("range", i, f, v, v.dims, lambda c: c * (column(arange(c.shape[0])) + 1))
