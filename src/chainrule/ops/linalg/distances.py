"""Distances: dist, cdist, pdist. The derivative at distance 0 is 0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op, pointwise
from ...core.primitives import detach_p
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import broadcast_shapes
from ...core.straight import straight
from ...core.tensor import Tensor
from ...kernels import NotSupported, pairs
from .matmul import rounded_once
from .norms import vector_norm


@public("dist", methods="dist", out=False)
@straight
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The norm of order `p` of ``input - other``."""
    return vector_norm(input - other, p)


# -- Euclidean distances of many points: no array of all differences ----------------------------------------------------


@op("euclid", core="(p,m),(r,m)->(p,r)")
def euclid_p(a: Any, b: Any) -> Any:
    """``|a[i] - b[j]|`` for all rows; without a compiler from inner products of centred points, close pairs again from their differences."""
    try:
        return pairs.distances(a, b)
    except NotSupported:
        pass
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


@rounded_once
def _euclid(a: Tensor, b: Tensor) -> Any:
    return euclid_p(a, b)


@op("pull", core="(p,r),(p,m),(r,m)->(p,m)")
def pull_p(w: Any, a: Any, b: Any) -> Any:
    """``sum_j w[i, j] (a[i] - b[j])``: without a compiler by a product, of points moved to the middle of b."""
    try:
        return pairs.pull(w, a, b)
    except NotSupported:
        c = b.mean(axis=-2, keepdims=True)
        return w.sum(-1)[..., None] * (a - c) - w @ (b - c)


def _safe_quotient(g: Any, y: Any) -> Any:
    return np.divide(g, y, out=np.zeros(np.broadcast_shapes(g.shape, y.shape), np.result_type(g, y)), where=y != 0)


over_p = pointwise(
    "over",
    _safe_quotient,
    lambda t, q, g, y: over_p.bind(t, y),
    lambda t, q, g, y: -t * over_p.bind(q, y),
    doc="g / y, and 0 where y is 0.",
)


def _centred(a: Any, b: Any) -> tuple[Any, Any]:
    """Both sets of points moved to the middle of the second, which distances do not see."""
    c = detach_p.bind(b.mean(-2, True))
    return a - c, b - c


def _apart(t: Any, a: Any, b: Any) -> Any:
    """``sum_k t[i, k] (a[i, k] - b[j, k])``."""
    u, v = _centred(a, b)
    return (t * u).sum(-1).unsqueeze(-1) - t @ v.transpose(-1, -2)


@euclid_p.jvp
def _(t: Any, y: Any, a: Any, b: Any) -> Any:
    (ta, tb), (u, v) = t, _centred(a, b)
    own = (u * ta).sum(-1).unsqueeze(-1) + (v * tb).sum(-1).unsqueeze(-2)
    return over_p(own - u @ tb.transpose(-1, -2) - ta @ v.transpose(-1, -2), y)


@euclid_p.vjp
def _(g: Any, y: Any, a: Any, b: Any) -> Any:
    w = over_p(g, y)
    return lambda: pull_p(w, a, b), lambda: pull_p(w.transpose(-1, -2), b, a)


pull_p.jvp(
    [
        lambda t, y, w, a, b: pull_p(t, a, b),
        lambda t, y, w, a, b: w.sum(-1).unsqueeze(-1) * t,
        lambda t, y, w, a, b: -(w @ t),
    ]
)
pull_p.vjp(
    [
        lambda g, y, w, a, b: _apart(g, a, b),
        lambda g, y, w, a, b: w.sum(-1).unsqueeze(-1) * g,
        lambda g, y, w, a, b: -(w.transpose(-1, -2) @ g),
    ]
)


_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


@public("cdist", out=False)
@straight
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = _MODES[0]) -> Tensor:
    """``|x1[i] - x2[j]|`` of order `p` between all rows of two (batches of) matrices.

    Euclidean distances are computed from differences, whatever `compute_mode` says.
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
    if p == 2:
        return _euclid(x1, x2)
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
