"""Distances: dist, cdist, pdist. The derivative at distance 0 is 0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.primitives import detach_p
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import broadcast_shapes
from ...core.tensor import Tensor
from ..elementwise.select import where
from .norms import vector_norm


@public("dist", methods="dist", out=False)
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The norm of order `p` of ``input - other``."""
    return vector_norm(input - other, p)


# -- Euclidean distances of many points: no array of all differences ----------------------------------------------------


@op("euclid", core="(p,m),(r,m)->(p,r)")
def euclid_p(a: Any, b: Any) -> Any:
    """``|a[i] - b[j]|`` for all rows, from inner products of centred points; close pairs again from their differences."""
    d = np.result_type(a, b)
    wide = np.float64
    a, b = a.astype(wide, copy=False), b.astype(wide, copy=False)
    if a.shape[-1] <= 8:
        total: Any = 0
        for k in range(a.shape[-1]):
            total = total + np.square(a[..., :, None, k] - b[..., None, :, k])
        return np.sqrt(total).astype(d, copy=False)
    c = b.mean(axis=-2, keepdims=True)
    u, v = a - c, b - c
    size = np.square(u).sum(-1)[..., :, None] + np.square(v).sum(-1)[..., None, :]
    y2 = size - 2 * (u @ np.swapaxes(v, -1, -2))
    # What cancels more than the result's type can bear is computed again.
    close = np.nonzero(y2 < size * (1e-3 if d == np.float64 else 1e-8))
    if close[0].size:
        left = np.broadcast_to(a, y2.shape[:-2] + a.shape[-2:])[close[:-1]]
        right = np.broadcast_to(b, y2.shape[:-2] + b.shape[-2:])[(*close[:-2], close[-1])]
        y2[close] = np.square(left - right).sum(-1)
    return np.sqrt(np.maximum(y2, 0)).astype(d, copy=False)


def _centred(a: Any, b: Any) -> tuple[Any, Any]:
    """Both sets of points moved to the middle of the second, which distances do not see."""
    c = detach_p.bind(b.mean(-2, True))
    return a - c, b - c


def _over(g: Any, y: Any) -> Any:
    dead = y == 0
    return where(dead, 0, g / where(dead, 1, y))


@euclid_p.jvp
def _(t: Any, y: Any, a: Any, b: Any) -> Any:
    (ta, tb), (u, v) = t, _centred(a, b)
    own = (u * ta).sum(-1).unsqueeze(-1) + (v * tb).sum(-1).unsqueeze(-2)
    return _over(own - u @ tb.transpose(-1, -2) - ta @ v.transpose(-1, -2), y)


@euclid_p.vjp
def _(g: Any, y: Any, a: Any, b: Any) -> Any:
    (u, v), w = _centred(a, b), _over(g, y)
    return (
        lambda: w.sum(-1).unsqueeze(-1) * u - w @ v,
        lambda: w.sum(-2).unsqueeze(-1) * v - w.transpose(-1, -2) @ u,
    )


_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
_MANY = 1 << 18  # differences of this many coordinates are kept in memory; of more, the matrix products take over


@public("cdist", out=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = _MODES[0]) -> Tensor:
    """``|x1[i] - x2[j]|`` of order `p` between all rows of two (batches of) matrices.

    Many Euclidean distances come from a matrix product, unless `compute_mode` is "donot_use_mm_for_euclid_dist".
    """
    for name, x in (("x1", x1), ("x2", x2)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
        if x.dtype.category != dt.FLOAT:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype}")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"cdist: x1 and x2 must have the same number of columns. x1: {x1.shape[-1]} x2: {x2.shape[-1]}"
        )
    if p < 0:
        raise RuntimeError(f"cdist only supports non-negative p values, got {p}")
    if compute_mode not in _MODES:
        raise ValueError(f"cdist: {compute_mode} is not a valid value for compute_mode; use one of {', '.join(_MODES)}")
    lead = broadcast_shapes(x1.shape[:-2], x2.shape[:-2], what="cdist: batch dimensions of x1 and x2")
    size = math.prod(lead) * x1.shape[-2] * x2.shape[-2] * x1.shape[-1]
    if size == 0:
        # A sum over nothing is 0, also where the norm has no value; it stays part of the graph.
        return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).sum(-1)
    if p == 2 and size > _MANY and compute_mode != _MODES[2]:
        return euclid_p(x1, x2)
    return vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


@public("_euclidean_dist", out=False)
def euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    """``|x1[i] - x2[j]|`` between all rows, by a matrix product."""
    return euclid_p(x1, x2)


@public("pdist nn.functional.pdist", out=False)
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """``|x[i] - x[j]|`` of order `p` for all pairs of rows ``i < j``."""
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got input of {input.ndim}D")
    if input.dtype.category != dt.FLOAT:
        raise RuntimeError(f"pdist only supports floating-point dtypes, got input of {input.dtype}")
    if p < 0:
        raise RuntimeError(f"pdist only supports non-negative p values, got {p}")
    i, j = (Tensor(k) for k in np.triu_indices(input.shape[0], 1))
    pairs = input.index_select(0, i) - input.index_select(0, j)
    return vector_norm(pairs, p, -1) if pairs.numel() else pairs.sum(-1)


# -- samples ------------------------------------------------------------------------------------------------------------

sample("dist", S(2, 3), S(3), 3)
for _p in (0.5, 1, 1.5, 2.0, 3.0, math.inf):
    sample("cdist", S(3, 2), S(2, 2), _p, cx=False)
    sample("pdist", S(4, 3), _p, cx=False)
sample("cdist", S(2, 1, 3, 2), S(4, 2), cx=False)
sample("_euclidean_dist", S(3, 2), S(4, 2), cx=False)
sample("_euclidean_dist", S(3, 9), S(2, 4, 9), cx=False)
