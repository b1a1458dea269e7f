"""Weight norm: ``w = v g / |v|``, the norm over all dims but one, and its derivatives.

A slice of zeros has no direction: there 1/|v| counts as 0, so that w and both gradients are 0, not NaN. With ``i = 1/|v|``,
``a = g i`` and sums over all dims but the kept one:

    tangent   tn = i sum(v tv), tw = a tv + v i (tg - a tn)
    reverse   s = sum(gw v), gv = a gw - v a s i**2 + gn v i, gg = s i
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import kernels
from ..core import dtypes as dt
from ..core.op import zeros_like_tensor
from ..core.registry import public
from ..core.samples import Given, S, sample
from ..core.shapes import sizes_of
from ..core.tensor import Tensor
from ..kernels import NotSupported
from .norm_base import Fused, dense, float_arg, narrow, stats, tensor_arg, total, wide
from .norms import norm_except_dim, vector_norm_p
from .pointwise import where


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


def _tangent(ts: list[Any], y: Any, xs: list[Any], kw: dict[str, Any]) -> Any:
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


def _pull(g: Any, y: Any, xs: list[Any], kw: dict[str, Any], need: list[bool]) -> list[Any]:
    return list(weight_norm_backward_op.bind(g[0], xs[0], xs[1], y[1], g[1], **kw))


# -- kernels ----------------------------------------------------------------------------------------------------------


def _folded(v: Any, dim: int | None, rank: int, *small: Any) -> tuple[Any, int | None]:
    """`v` and the kept dim for the kernel; examples in front are folded into the kept dim where that is the first one."""
    if v.ndim == rank:
        return v, None if dim is None else dim + rank
    lead = v.shape[: v.ndim - rank]
    if (dim is not None and dim != -rank) or any(s is not None and s.shape[: s.ndim - rank] != lead for s in small):
        raise NotSupported
    return v.reshape(-1, int(np.prod(v.shape[v.ndim - rank + (dim is not None) :]))), 0


def _forward_kernel(v: Any, g: Any, *, dim: int | None, rank: int) -> Any:
    if not v.size or g.ndim != v.ndim:
        raise NotSupported
    if v.ndim == rank:
        try:
            return kernels.weight_norm(v, g, None if dim is None else dim + rank)
        except NotSupported:
            return kernels.weight_norm(dense(v), dense(g), None if dim is None else dim + rank)
    v, g = dense(v), dense(g)
    f, k = _folded(v, dim, rank, g)
    w, n = kernels.weight_norm(f, g.reshape(-1, 1), k)
    return w.reshape(v.shape), n.reshape(g.shape)


def _backward_kernel(gw: Any, v: Any, g: Any, n: Any, gn: Any, *, dim: int | None, rank: int) -> Any:
    if gw is None or not v.size or g.ndim != v.ndim or gw.shape != v.shape:
        raise NotSupported
    if v.ndim == rank:
        at = None if dim is None else dim + rank
        try:
            return kernels.weight_norm_backward(gw, v, g, n, at, gn)
        except NotSupported:
            return kernels.weight_norm_backward(dense(gw), dense(v), dense(g), dense(n), at, dense(gn))
    gw, v, g, n, gn = dense(gw), dense(v), dense(g), dense(n), dense(gn)
    f, k = _folded(v, dim, rank, g, n, gn)
    flat = None if gn is None else gn.reshape(-1, 1)
    gv, gg = kernels.weight_norm_backward(gw.reshape(f.shape), f, g.reshape(-1, 1), n.reshape(-1, 1), k, flat)
    return gv.reshape(v.shape), gg.reshape(g.shape)


def _two(dim: int | None, rank: int) -> tuple[int, ...]:
    return rank, rank


weight_norm_op = Fused("weight_norm", _forward, _two, _two, _forward_kernel)
weight_norm_op.keep = (True, (True, True))
weight_norm_op.push_rule, weight_norm_op.pull_rule = _tangent, _pull
weight_norm_op.solo_rule = lambda g, xs, kept, kw, need: weight_norm_backward_op.bind(g, *xs, kept[0], None, **kw)
weight_norm_backward_op = Fused(
    "weight_norm_backward", _backward, lambda dim, rank: (rank,) * 5, _two, _backward_kernel
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
        return weight_norm_op.first(v, g, dim=d, rank=len(sizes_of(v)))
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
