"""Normalisation per example and group of channels of x [N, C, ...]: the ops of group norm (instance norm: a channel a group).

``y = h w + b``, ``h = (x - m) r`` with mean m and ``r = 1 / sqrt(var + eps)`` of each of the N G groups, w and b one a channel.
With ``P(u) = u - mean(u) - h mean(u h)`` and means over a group of n elements:

    tangent   ty = r P(tx) w + h tw + tb, tm = mean(tx), tr = -r**2 mean(h tx)
    reverse   gx = r P(gy w) + (gm - gr r**2 h) / n, gw = sum(gy h), gb = sum(gy)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import kernels
from ...core.declare import fused
from ...core.shapes import sizes_of, zeros_like_tensor
from ...core.tensor import Tensor
from ...kernels import NotSupported
from ..elementwise.elementary import rsqrt
from ..reduce import adding as sums
from .base import dense, narrow, reshape, spread_lead, stats, total, wide
from .channels import _affine, _over, per_channel

# -- bodies in plain ops ----------------------------------------------------------------------------------------------


def _split(x: Tensor, groups: int, rank: int) -> Tensor:
    """x [..., N, C, inner] as [..., N, G, elements of a group]."""
    s = tuple(sizes_of(x))
    k = len(s) - rank
    n = 1
    for d in s[k + 1 :]:
        n *= d
    return reshape(x, (*s[: k + 1], groups, n // groups))


def _joined(g: Tensor, x: Tensor, rank: int) -> Tensor:
    """What was computed by group, in the shape of `x`; examples may lie in front that `x` does not have."""
    return reshape(g, (*sizes_of(g)[:-2], *sizes_of(x)[len(sizes_of(x)) - rank + 1 :]))


def _per_group(v: Tensor) -> Tensor:
    """A statistic [..., N, G] beside the elements of a group."""
    return reshape(v, (*sizes_of(v), 1))


def _mean(x: Tensor) -> Tensor:
    n = sizes_of(x)[-1]
    return total(x, (-1,)) / (n if n else float("nan"))


def _forward(x: Any, w: Any, b: Any, *, groups: int, rank: int, eps: float) -> Any:
    """y [N, C, ...], mean and rstd [N, G]."""
    xw = wide(x)
    g = _split(xw, groups, rank)
    m = _mean(g)
    c = g - _per_group(m)
    r = rsqrt.bind(_mean(c * c) + eps)
    h = _joined(c * _per_group(r), xw, rank)
    return narrow(_affine(h, w, b, rank), x), stats(m, x), stats(r, x)


def _tangent(ts: list[Any], y: Any, *xs: Any, **kw: Any) -> Any:
    (x, w, _), (tx, tw, tb), (_, m, r) = xs, ts, y
    groups, rank = kw["groups"], kw["rank"]
    r1 = _per_group(r)
    h = (_split(wide(x), groups, rank) - _per_group(m)) * r1
    ty: Any = None
    tm = tr = None
    if tx is not None:
        t = _split(wide(tx), groups, rank)
        tm, th = _mean(t), _mean(h * t)
        ty = _joined(r1 * (t - _per_group(tm) - h * _per_group(th)), x, rank)
        ty = ty if w is None else ty * per_channel(w, rank)
        tr = -(r * r) * th
    if tw is not None:
        part = _joined(h, x, rank) * per_channel(tw, rank)
        ty = part if ty is None else ty + part
    if tb is not None:
        ty = per_channel(tb, rank) if ty is None else ty + per_channel(tb, rank)
    return ty, tm, tr


def _backward(gy: Any, x: Any, m: Any, r: Any, w: Any, gm: Any, gr: Any, *, groups: int, rank: int, mask: Any) -> Any:
    """The cotangents of x, w and b that `mask` asks for."""
    xw, r1 = wide(x), _per_group(r)
    h = (_split(xw, groups, rank) - _per_group(m)) * r1
    n = sizes_of(h)[-1]
    g = zeros_like_tensor(xw) if gy is None else wide(gy)
    out = []
    if mask[0]:
        u = _split(g if w is None else g * per_channel(w, rank), groups, rank)
        gx = r1 * (u - _per_group(_mean(u)) - h * _per_group(_mean(u * h)))
        if gm is not None:
            gx = gx + _per_group(gm / n)
        if gr is not None:
            gx = gx - _per_group(gr * r * r / n) * h
        out.append(narrow(_joined(gx, x, rank), x))
    like = x if w is None else w
    if mask[1]:
        out.append(narrow(total(g * _joined(h, x, rank), _over(rank)), like))
    if mask[2]:
        out.append(narrow(total(g, _over(rank)), like))
    return tuple(out)


# -- kernels: examples in front are examples --------------------------------------------------------------------------


def _channel_array(v: Any, rank: int) -> Any:
    return v.reshape(*v.shape[:-1], 1, v.shape[-1], *(1,) * (rank - 2))


def _forward_kernel(x: Any, w: Any, b: Any, *, groups: int, rank: int, eps: float) -> Any:
    if not x.size:
        raise NotSupported
    x = dense(x)
    k = x.ndim - rank
    flat = x.reshape(-1, *x.shape[k + 1 :])
    shape = (*x.shape[: k + 1], groups)
    if (w is None or w.ndim == 1) and (b is None or b.ndim == 1):
        y, m, r = kernels.group_norm(flat, groups, dense(w), dense(b), eps)
        return y.reshape(x.shape), m.reshape(shape), r.reshape(shape)
    if x.itemsize < 4:
        raise NotSupported
    y, m, r = kernels.group_norm(flat, groups, None, None, eps)
    y = y.reshape(x.shape)
    if w is not None:
        y = y * _channel_array(w, rank)
    if b is not None:
        y = y + _channel_array(b, rank)
    lead = y.shape[: y.ndim - rank]
    return y, *[np.broadcast_to(s.reshape(shape), lead + shape[k:]) for s in (m, r)]


def _backward_kernel(
    gy: Any, x: Any, m: Any, r: Any, w: Any, gm: Any, gr: Any, *, groups: int, rank: int, mask: Any
) -> Any:
    if gy is None or not x.size:
        raise NotSupported
    if gy.shape != x.shape:
        x, gy = spread_lead(rank, x, gy)
        m, r, gm, gr = [
            v if v is None else np.broadcast_to(v, (*x.shape[: x.ndim - rank], *v.shape[v.ndim - 2 :]))
            for v in (m, r, gm, gr)
        ]
    shape = (*x.shape[: x.ndim - rank + 1], groups)
    if any(s is not None and s.shape != shape for s in (m, r, gm, gr)):
        raise NotSupported
    gy, x = dense(gy), dense(x)
    stat = [dense(s) for s in (m, r)]
    cot = [dense(s) for s in (gm, gr)]
    if x.ndim == rank and (w is None or w.ndim == 1):
        got = kernels.group_norm_backward(gy, x, stat[0], stat[1], dense(w), groups, cot[0], cot[1])
        return tuple([v for v, on in zip(got, mask, strict=True) if on])
    lead = x.shape[: x.ndim - rank]
    # Examples that only the weight has still belong to every result.
    if x.itemsize < 4 or (w is not None and np.broadcast_shapes(w.shape[:-1], lead) != lead):
        raise NotSupported
    out = []
    tail = x.shape[x.ndim - rank + 1 :]
    if mask[0]:
        u = gy if w is None else dense(gy * _channel_array(w, rank))
        if u.shape != x.shape:
            raise NotSupported
        two = [s.reshape(-1, groups) for s in stat]
        one = [None if s is None else s.reshape(-1, groups) for s in cot]
        gx, _, _ = kernels.group_norm_backward(
            u.reshape(-1, *tail), x.reshape(-1, *tail), two[0], two[1], None, groups, one[0], one[1]
        )
        out.append(gx.reshape(x.shape))
    if mask[1]:
        n = int(np.prod(tail)) // groups
        h = x.reshape(*shape, n) - m[..., None]
        h *= r[..., None]
        h = h.reshape(x.shape)
        h *= gy
        out.append(sums.total(h, _over(rank)))
    if mask[2]:
        out.append(sums.total(gy, _over(rank)))
    return tuple(out)


group = fused(
    "group_norm",
    _forward,
    lambda groups, rank, eps: (rank, 1, 1),
    lambda groups, rank, eps: (rank, 2, 2),
    _forward_kernel,
)
backward = fused(
    "group_norm_backward",
    _backward,
    lambda groups, rank, mask: (rank, rank, 2, 2, 1, 2, 2),
    lambda groups, rank, mask: tuple(r for r, on in zip((rank, 1, 1), mask, strict=True) if on),
    _backward_kernel,
)


def _pull(g: Any, y: Any, *xs: Any, need: list[bool], **kw: Any) -> list[Any]:
    mask = tuple(need[:3])
    got = iter(
        backward.bind(g[0], xs[0], y[1], y[2], xs[1], g[1], g[2], groups=kw["groups"], rank=kw["rank"], mask=mask)
    )
    return [next(got) if on else None for on in mask]


group.jvp(_tangent, sparse=True)
group.vjp(_pull, sparse=True, keep=((False, True, True), (True, True, False)))
