"""Weight norm: ``w = v g / |v|``, the norm over all dims but one, and its derivatives.

A slice of zeros has no direction: there 1/|v| counts as 0, so that w and both gradients are 0, not NaN. With ``i = 1/|v|``,
``a = g i`` and sums over all dims but the kept one:

    tangent   tn = i sum(v tv), tw = a tv + v i (tg - a tn)
    reverse   s = sum(gw v), gv = a gw - v a s i**2 + gn v i, gg = s i

The reverse rule is an op of gw, v, g and |v|, whose own tangent and transpose are ops with kernels as well.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from ... import kernels
from ...core import dtypes as dt
from ...core.declare import fused
from ...core.derive import jvp_through, vjp_through
from ...core.dispatch import innermost
from ...core.payload import payload_of
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import sizes_of, zeros_like_tensor
from ...core.tensor import Tensor
from ...kernels import NotSupported
from ..elementwise.select import where
from ..linalg.norms import norm_except_dim, vector_norm_p
from .base import dense, float_arg, narrow, spread_lead, stats, tensor_arg, total, wide


def _others(dim: int | None, rank: int) -> tuple[int, ...]:
    """All dims but the kept one, counted from the end."""
    return tuple(d for d in range(-rank, 0) if d != dim)


def _inverse(norm: Tensor) -> Tensor:
    """1/norm, and 0 where the norm is 0."""
    dead = norm == 0
    return where(dead, 0, 1 / where(dead, 1, norm))


def _norm_of(v: Tensor, dim: int | None, rank: int) -> Tensor:
    return vector_norm_p.bind(v, ord=2, dim=_others(dim, rank), keepdim=True, old=tuple(sizes_of(v)))


def _forward(v: Any, g: Any, *, dim: int | None, rank: int) -> Any:
    """w = v g / |v| and the norm |v|, over all dims but `dim` (None: over all)."""
    n = _norm_of(wide(v), dim, rank)
    return narrow(wide(v) * (wide(g) * _inverse(n)), v), stats(n, v)


def _tangent(ts: list[Any], y: Any, *xs: Any, **kw: Any) -> Any:
    (v, g), n, dims = xs, y[1], _others(**kw)
    tv, tg = ts
    i = _inverse(n)
    if tv is None:
        return v * (tg * i), None
    tn = total(v * tv, dims, True) * i
    a = g * i
    return a * tv + v * (i * (-(a * tn) if tg is None else tg - a * tn)), tn


def _backward(gw: Any, v: Any, g: Any, n: Any, gn: Any, *, dim: int | None, rank: int) -> Any:
    """The cotangents of v and g from those of w and of the norm."""
    vw, i = wide(v), _inverse(n)
    gv: Any = None
    gg: Any = None
    if gw is not None:
        u, a = wide(gw), wide(g) * i
        gg = total(u * vw, _others(dim, rank), True) * i
        gv = a * u - vw * (a * gg * i)
    if gn is not None:
        part = vw * (gn * i)
        gv = part if gv is None else gv + part
    return narrow(gv, v), zeros_like_tensor(g) if gg is None else narrow(gg, g)


def _pull(g: Any, y: Any, *xs: Any, need: list[bool], **kw: Any) -> list[Any]:
    return list(weight_norm_backward_op.bind(g[0], xs[0], xs[1], y[1], g[1], **kw))


# -- second order: the reverse rule's own derivatives -------------------------------------------------------------------


def _double_backward(a: Any, b: Any, gw: Any, v: Any, g: Any, n: Any, *, dim: int | None, rank: int) -> Any:
    """The cotangents of gw, v, g and n from those (a, b) of the reverse rule's gv and gg."""
    dims, i, aw, u, vw, gg = _others(dim, rank), _inverse(n), wide(a), wide(gw), wide(v), wide(g)
    s, p, q = total(u * vw, dims, True), total(aw * u, dims, True), total(aw * vw, dims, True)
    i2 = i * i
    sq = i2 * s * q
    c, gn = -(gg * i2 * q), i2 * (3 * gg * sq - gg * p)
    if b is not None:
        c, gn = c + wide(b), gn - i2 * wide(b) * s
    c = c * i
    to_gw, to_v = gg * i * aw + c * vw, c * u - gg * i * i2 * s * aw
    return narrow(to_gw, gw), narrow(to_v, v), narrow(i * (p - sq), g), stats(gn, v)


def _backward_tangent(
    gw: Any, tgw: Any, v: Any, tv: Any, g: Any, tg: Any, n: Any, tn: Any, *, dim: int | None, rank: int
) -> Any:
    """The tangents of the reverse rule's gv and gg."""
    dims, i, u, vw, gg = _others(dim, rank), _inverse(n), wide(gw), wide(v), wide(g)
    s = total(u * vw, dims, True)
    t = total(wide(tgw) * vw + u * wide(tv), dims, True)
    x, i3 = i * tn, i * i * i
    to_v = gg * i * wide(tgw) - gg * i3 * s * wide(tv) + i * (wide(tg) - gg * x) * u
    to_v = to_v - i3 * (wide(tg) * s + gg * t - 3 * gg * s * x) * vw
    return narrow(to_v, v), narrow(i * (t - s * x), g)


def _pull2(c: Any, y: Any, *xs: Any, need: list[bool], **kw: Any) -> list[Any]:
    gw, v, g, n, gn = xs
    if gn is None and gw is not None and c[0] is not None:
        return [*double_backward_op.bind(c[0], c[1], gw, v, g, n, **kw), None]
    return vjp_through(weight_norm_backward_op.spec, c, list(xs), kw, need)


def _push2(ts: list[Any], y: Any, *xs: Any, **kw: Any) -> Any:
    gw, v, g, n, gn = xs
    tgw, tv, tg, tn, _ = ts
    if gn is None and gw is not None and tgw is not None and tv is not None:
        tg = zeros_like_tensor(g) if tg is None else tg
        tn = zeros_like_tensor(n) if tn is None else tn
        return backward_tangent_op.bind(gw, tgw, v, tv, g, tg, n, tn, **kw)
    return jvp_through(weight_norm_backward_op.spec, ts, list(xs), kw)


# -- kernels ----------------------------------------------------------------------------------------------------------


def _on_kernel(f: Any, v: Any, *arrays: Any, dim: int | None, rank: int) -> Any:
    """f(*arrays, dim[, examples]) with the examples in front of all arrays as one axis."""
    if not v.size:
        raise NotSupported
    at = None if dim is None else dim + rank
    if all(a is None or a.ndim == rank for a in arrays):
        try:
            return f(*arrays, at)
        except NotSupported:
            return f(*map(dense, arrays), at)
    v, *arrays = spread_lead(rank, v, *arrays)  # type: ignore[assignment]
    lead = v.shape[: v.ndim - rank]
    flat = [None if a is None else dense(a).reshape(-1, *a.shape[a.ndim - rank :]) for a in arrays]
    return tuple([y.reshape(*lead, *y.shape[1:]) for y in f(*flat, at, math.prod(lead))])


def _forward_kernel(v: Any, g: Any, *, dim: int | None, rank: int) -> Any:
    if v.ndim == rank == g.ndim and v.size:  # the usual case, by the shortest way
        try:
            return kernels.weight_norm(v, g, None if dim is None else dim + rank)
        except NotSupported:
            pass
    return _on_kernel(kernels.weight_norm, v, v, g, dim=dim, rank=rank)


def _backward_kernel(gw: Any, v: Any, g: Any, n: Any, gn: Any, *, dim: int | None, rank: int) -> Any:
    if gw is None:
        raise NotSupported
    if gn is None and v.ndim == rank == g.ndim and v.size:
        try:
            return kernels.weight_norm_backward(gw, v, g, n, None if dim is None else dim + rank)
        except NotSupported:
            pass
    return _on_kernel(_reverse, v, gw, v, g, n, gn, dim=dim, rank=rank)


def _reverse(gw: Any, v: Any, g: Any, n: Any, gn: Any, *at: Any) -> Any:
    return kernels.weight_norm_backward(gw, v, g, n, at[0], gn, *at[1:])


def _double_backward_kernel(a: Any, b: Any, gw: Any, v: Any, g: Any, n: Any, **kw: Any) -> Any:
    if a is None or gw is None:
        raise NotSupported
    return _on_kernel(kernels.weight_norm_double_backward, v, a, b, gw, v, g, n, **kw)


def _backward_tangent_kernel(*xs: Any, **kw: Any) -> Any:
    return _on_kernel(kernels.weight_norm_backward_tangent, xs[2], *xs, **kw)


def _two(dim: int | None, rank: int) -> tuple[int, ...]:
    return rank, rank


weight_norm_op = fused("weight_norm", _forward, _two, _two, _forward_kernel)
weight_norm_op.jvp(_tangent, sparse=True)
weight_norm_op.vjp(_pull, sparse=True, keep=((False, True), (True, True)))
weight_norm_backward_op = fused(
    "weight_norm_backward", _backward, lambda dim, rank: (rank,) * 5, _two, _backward_kernel
)
weight_norm_backward_op.jvp(_push2, sparse=True)
weight_norm_backward_op.vjp(_pull2, sparse=True, keep=(False, None))
double_backward_op = fused(
    "weight_norm_double_backward",
    _double_backward,
    lambda dim, rank: (rank,) * 6,
    lambda dim, rank: (rank,) * 4,
    _double_backward_kernel,
    expand=True,
)
backward_tangent_op = fused(
    "weight_norm_backward_tangent",
    _backward_tangent,
    lambda dim, rank: (rank,) * 8,
    _two,
    _backward_tangent_kernel,
    expand=True,
)

# -- the functions ----------------------------------------------------------------------------------------------------


@functools.lru_cache(4096)
def _kept(name: str, v: tuple[int, ...], g: tuple[int, ...], dim: int) -> tuple[int | None, bool]:
    """The kept dim counted from the end (None: none, PyTorch's dim -1), and whether g has one entry for each of its slices."""
    rank = len(v)
    if dim == -1 or not rank:
        return None, g == (1,) * rank
    if not -rank <= dim < rank:
        raise IndexError(f"{name}: dim must be in [{-rank}, {rank - 1}] for v of shape {v}, got {dim}")
    d = dim - rank if dim >= 0 else dim
    return d, g == tuple(s if i - rank == d else 1 for i, s in enumerate(v))


def _check(name: str, v: Any, g: Any, dim: int) -> tuple[int | None, bool, bool]:
    """The kept dim, whether g has the shape of the norm, and whether v and g have one type."""
    if not (isinstance(v, Tensor) and isinstance(g, Tensor)):
        tensor_arg(name, "v", v, optional=False)
        tensor_arg(name, "g", g, optional=False)
    a, b = innermost(v), innermost(g)
    if type(a) is not type(b) and payload_of(a).device != payload_of(b).device:
        raise RuntimeError(
            f"{name}: expected v and g to be on the same device, but v is on {payload_of(a).device} and g on {payload_of(b).device}. "
            f"Move one of them with .to()"
        )
    d = v.dtype
    same = g.dtype is d
    if not same or d.category != dt.FLOAT:
        float_arg(name, v)
        float_arg(name, g)
    return *_kept(name, sizes_of(v), sizes_of(g), dim), same


@public("_weight_norm", out=False)
def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """``v g / |v|``, the norm over all dims but `dim`; -1 stands for the norm of the whole tensor.

    Zero slices give zeros and zero gradients. Fused for every dim and float type where `g` has the shape of the norm.
    """
    d, canonical, same = _check("_weight_norm", v, g, dim)
    if d is None and not sizes_of(g):
        g, canonical = g.reshape(*(1,) * v.ndim), True
    if canonical and same:
        return weight_norm_op.bind(v, g, dim=d, rank=len(sizes_of(v)))[0]
    n = norm_except_dim(v, 2, dim)
    return v * (g * _inverse(n))


@public("_weight_norm_interface", out=False)
def weight_norm_interface(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """``v g / |v|`` and the norm ``|v|`` (float32 for 16-bit types); the norm is differentiable as well."""
    d, canonical, _ = _check("_weight_norm_interface", v, g, dim)
    if not canonical:
        raise RuntimeError(
            f"_weight_norm_interface: g must have the shape of the norm of v {tuple(v.shape)} over all dims but {dim}, got {tuple(g.shape)}"
        )
    return weight_norm_op.bind(v, g, dim=d, rank=v.ndim)


@public("_weight_norm_interface_backward _weight_norm_differentiable_backward", out=False)
def weight_norm_interface_backward(
    grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int = 0
) -> tuple[Tensor, Tensor]:
    """The gradients of v and g, differentiable in all arguments: the saved norm is a variable, not a constant."""
    d, canonical, _ = _check("_weight_norm_interface_backward", saved_v, saved_g, dim)
    if not canonical or saved_norms.shape != saved_g.shape:
        raise RuntimeError(
            f"_weight_norm_interface_backward: saved_g and saved_norms must have the shape of the norm of saved_v {tuple(saved_v.shape)} "
            f"over all dims but {dim}, got {tuple(saved_g.shape)} and {tuple(saved_norms.shape)}"
        )
    if grad_w.shape != saved_v.shape:
        raise RuntimeError(
            f"_weight_norm_interface_backward: grad_w has shape {tuple(grad_w.shape)}, saved_v {tuple(saved_v.shape)}"
        )
    return weight_norm_backward_op.bind(grad_w, saved_v, saved_g, saved_norms, None, dim=d, rank=saved_v.ndim)


sample("_weight_norm_interface", S(4, 3), S(4, 1), 0, cx=False)
sample("_weight_norm_interface", S(2, 3, 2), S(1, 3, 1), 1, cx=False)
sample("_weight_norm_interface", S(2, 3), S(1, 3), 1, cx=False)
sample("_weight_norm", S(2, 3), S(1, 1), -1, cx=False)
sample("_weight_norm", S(2, 3), S(), -1, cx=False)
sample("_weight_norm", S(3), S(3), 0, cx=False)
sample("_weight_norm", S(3, 2), S(1, 2), 0, cx=False)
sample("_weight_norm_interface_backward", S(4, 3), S(4, 3), S(4, 1), S(4, 1, low=0.5), 0, cx=False)
sample("_weight_norm_interface_backward", S(4, 3), S(4, 3), S(1, 3), S(1, 3, low=0.5), 1, cx=False)
sample("_weight_norm", Given([[0.0, 0.0], [1.0, -2.0]]), S(2, 1), 0, cx=False)
