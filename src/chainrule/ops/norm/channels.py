"""Normalisation per channel, ``y = h w + b`` with ``h = (x - m) r``, of x [N, C, ...]: the ops of batch norm.

Means are over all dims but the channels', n elements each, and ``P(u) = u - mean(u) - h mean(u h)``:

    forward   m = mean(x), r = 1 / sqrt(mean((x - m)**2) + eps)
    tangent   ty = w r P(tx) + h tw + tb, tm = mean(tx), tr = -r**2 mean(h tx)
    reverse   gx = w r P(gy) + (gm - gr r**2 h) / n, gw = sum(gy h), gb = sum(gy)

So the tangent is the reverse rule applied to tx. With given statistics (evaluation) P is the identity. Examples in front, from
vmap, are an axis that the kernels know.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import kernels
from ...core.declare import fused
from ...core.derive import vjp_through
from ...core.shapes import sizes_of, zeros_like_tensor
from ...core.tensor import Tensor
from ...kernels import NotSupported
from ..elementwise.elementary import rsqrt
from .base import dense, narrow, reshape, stats, total, wide


def _over(rank: int) -> tuple[int, ...]:
    """All dims but the channels', counted from the end."""
    return tuple(d for d in range(-rank, 0) if d != 1 - rank)


def _count(x: Any, rank: int) -> int:
    n = 1
    for d in _over(rank):
        n *= x.shape[d]
    return n


def per_channel(v: Tensor, rank: int) -> Tensor:
    """A vector of channels [..., C] with the dims it needs to meet x [..., N, C, ...]."""
    s = tuple(sizes_of(v))
    return reshape(v, (*s[:-1], 1, s[-1], *(1,) * (rank - 2)))


def _mean(x: Tensor, rank: int) -> Tensor:
    n = _count(x, rank)
    return total(x, _over(rank)) / (n if n else float("nan"))


# -- bodies in plain ops ----------------------------------------------------------------------------------------------


def _forward(x: Any, w: Any, b: Any, *, rank: int, eps: float) -> Any:
    """y, mean, rstd and variance per channel."""
    xw = wide(x)
    m = _mean(xw, rank)
    c = xw - per_channel(m, rank)
    v = _mean(c * c, rank)
    r = rsqrt.bind(v + eps)
    y = _affine(c * per_channel(r, rank), w, b, rank)
    return narrow(y, x), stats(m, x), stats(r, x), stats(v, x)


def _affine(h: Tensor, w: Any, b: Any, rank: int) -> Tensor:
    if w is not None:
        h = h * per_channel(w, rank)
    return h if b is None else h + per_channel(b, rank)


def _given(x: Any, w: Any, b: Any, m: Any, r: Any, *, rank: int) -> Any:
    """y with given statistics."""
    h = (wide(x) - per_channel(m, rank)) * per_channel(r, rank)
    return (narrow(_affine(h, w, b, rank), x),)


def _backward(gy: Any, x: Any, m: Any, r: Any, w: Any, gm: Any, gr: Any, *, rank: int, mask: Any, train: bool) -> Any:
    """The cotangents of x, w and b that `mask` asks for."""
    xw, r1, n = wide(x), per_channel(r, rank), _count(x, rank)
    h = (xw - per_channel(m, rank)) * r1
    g = zeros_like_tensor(xw) if gy is None else wide(gy)
    gb = total(g, _over(rank))
    gw = total(g * h, _over(rank))
    out = []
    if mask[0]:
        gx = g
        if train:
            gx = gx - per_channel(gb / n, rank) - h * per_channel(gw / n, rank)
        gx = gx * (r1 if w is None else r1 * per_channel(w, rank))
        if gm is not None:
            gx = gx + per_channel(gm / n, rank)
        if gr is not None:
            gx = gx - per_channel(gr * r * r / n, rank) * h
        out.append(narrow(gx, x))
    like = x if w is None else w
    return tuple(out + [narrow(v, like) for v, on in ((gw, mask[1]), (gb, mask[2])) if on])


# -- kernels: examples in front become one axis ------------------------------------------------------------------------


def _lead(rank: int, arrays: Any, vectors: Any) -> tuple[int, ...]:
    shapes = [a.shape[: a.ndim - rank] for a in arrays if a is not None]
    shapes += [v.shape[:-1] for v in vectors if v is not None]
    return np.broadcast_shapes(*shapes)


def _fold(x: Any, lead: tuple[int, ...], rank: int) -> Any:
    """x [..., N, C, inner] as [examples, N, C, inner], `rank` counting the dims of one example; None stays None."""
    if x is None:
        return None
    core = x.shape[x.ndim - rank :]
    return dense(np.broadcast_to(x, (*lead, *core))).reshape(-1, *core)


def _forward_kernel(x: Any, w: Any, b: Any, *, rank: int, eps: float) -> Any:
    if not x.size:
        raise NotSupported
    flat = x.ndim == rank
    if flat and (w is None or w.ndim == 1) and (b is None or b.ndim == 1):
        y, m, r, v = kernels.batch_norm(dense(x), dense(w), dense(b), eps)
        return y, m, r, v
    lead = _lead(rank, (x,), (w, b))
    if flat and x.itemsize >= 4:  # the examples differ in their weights alone
        y, *kept = kernels.batch_norm(dense(x), None, None, eps)
        for a, f in ((w, np.multiply), (b, np.add)):
            if a is not None:
                y = f(y, a.reshape(*a.shape[:-1], 1, a.shape[-1], *(1,) * (rank - 2)))
        return y, *[np.broadcast_to(k, (*lead, k.size)) for k in kept]
    x = _fold(x, lead, rank)
    y, *kept = kernels.batch_norm(x, _fold(w, lead, 1), _fold(b, lead, 1), eps, len(x))
    return tuple([k.reshape(*lead, *k.shape[1:]) for k in (y, *kept)])


def _given_kernel(x: Any, w: Any, b: Any, m: Any, r: Any, *, rank: int) -> Any:
    if not x.size:
        raise NotSupported
    if x.ndim == rank and all(v is None or v.ndim == 1 for v in (w, b, m, r)):
        return (kernels.batch_norm_eval(dense(x), dense(w), dense(b), dense(m), dense(r)),)
    lead = _lead(rank, (x,), (w, b, m, r))
    x = _fold(x, lead, rank)
    w, b, m, r = [_fold(v, lead, 1) for v in (w, b, m, r)]
    y = kernels.batch_norm_eval(x, w, b, m, r, len(x))
    return (y.reshape(*lead, *y.shape[1:]),)


def _backward_kernel(
    gy: Any, x: Any, m: Any, r: Any, w: Any, gm: Any, gr: Any, *, rank: int, mask: Any, train: bool
) -> Any:
    if gy is None or not x.size or gy.shape[gy.ndim - rank :] != x.shape[x.ndim - rank :]:
        raise NotSupported
    vectors = (m, r, w, gm, gr)
    if x.ndim == rank and gy.ndim == rank and all(v is None or v.ndim == 1 for v in vectors):
        m, r, w, gm, gr = [dense(v) for v in vectors]
        got: Any = kernels.batch_norm_backward(dense(gy), dense(x), m, r, w, train, gm, gr)
    else:
        lead = _lead(rank, (gy, x), vectors)
        gy, x = _fold(gy, lead, rank), _fold(x, lead, rank)
        m, r, w, gm, gr = [_fold(v, lead, 1) for v in vectors]
        got = kernels.batch_norm_backward(gy, x, m, r, w, train, gm, gr, len(x))
        got = tuple([k.reshape(*lead, *k.shape[1:]) for k in got])
    return tuple([v for v, on in zip(got, mask, strict=True) if on])


# -- the ops ----------------------------------------------------------------------------------------------------------


batch = fused(
    "batch_norm",
    _forward,
    lambda rank, eps: (rank, 1, 1),
    lambda rank, eps: (rank, 1, 1, 1),
    _forward_kernel,
    integer_outputs=(3,),  # the variance is there for running statistics, which are not differentiated
)
given = fused("batch_norm_eval", _given, lambda rank: (rank, 1, 1, 1, 1), lambda rank: (rank,), _given_kernel)
backward = fused(
    "batch_norm_backward",
    _backward,
    lambda rank, mask, train: (rank, rank, 1, 1, 1, 1, 1),
    lambda rank, mask, train: tuple(r for r, on in zip((rank, 1, 1), mask, strict=True) if on),
    _backward_kernel,
)
_ALL = (True, True, True)


def _push(ts: list[Any], y: Any, *xs: Any, **kw: Any) -> Any:
    (x, w, _), (tx, tw, tb), rank = xs, ts, kw["rank"]
    _, m, r, _ = y
    ty: Any = None
    tm = tr = None
    if tx is not None:
        n = _count(x, rank)
        ty, s1, s0 = backward.bind(tx, x, m, r, w, None, None, rank=rank, mask=_ALL, train=True)
        tm, tr = stats(s0, x) / n, -(r * r) * (stats(s1, x) / n)
    if tw is not None:
        part = (x - per_channel(m, rank)) * per_channel(r, rank) * per_channel(tw, rank)
        ty = part if ty is None else ty + part
    if tb is not None:
        ty = per_channel(tb, rank) if ty is None else ty + per_channel(tb, rank)
    return ty, tm, tr, None


def _pull(g: Any, y: Any, *xs: Any, need: list[bool], **kw: Any) -> list[Any]:
    mask = tuple(need[:3])
    got = iter(backward.bind(g[0], xs[0], y[1], y[2], xs[1], g[1], g[2], rank=kw["rank"], mask=mask, train=True))
    return [next(got) if on else None for on in mask]


def _pull_given(g: Any, y: Any, *xs: Any, need: list[bool], **kw: Any) -> list[Any]:
    if need[3] or need[4]:
        return vjp_through(given.spec, g, list(xs), kw, need)
    x, w, _, m, r = xs
    mask = tuple(need[:3])
    got = iter(backward.bind(g[0], x, m, r, w, None, None, rank=kw["rank"], mask=mask, train=False))
    return [*[next(got) if on else None for on in mask], None, None]


batch.jvp(_push, sparse=True)
batch.vjp(_pull, sparse=True, keep=((False, True, True, False), (True, True, False)))
given.vjp(_pull_given, sparse=True, keep=(False, None))
