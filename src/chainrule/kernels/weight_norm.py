"""w = v g / |v|, the norm over all dims but one, and its reverse rule, fused.

A row of zeros has no direction. Here 1/|v| counts as 0 where |v| = 0: w = 0 there, and both gradients are 0 (finite, not NaN).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .calls import Calls, NotSupported, kernel_type, prod, stats_of
from .channels import Plan, prepare
from .lang import DType, Kernel, Value, stats_type
from .pool import empty


class _Forward(Plan):
    name = "weight_norm"

    def __init__(self, dtype: DType, gtype: DType):
        self.dtype, self.gtype = dtype, gtype

    def declare(self, k: Kernel, stream: bool) -> None:
        self.k = k
        self.inputs = [k.array("v", self.dtype)]
        self.g = k.array("g", self.gtype)
        self.outputs = [k.array("w", self.dtype, stream)]
        self.norm = k.array("norm", stats_type(self.dtype))

    def terms(self, stage: Any, x: Any, coef: Any) -> Any:
        return [(x[0], x[0])]

    def finish(self, stage: Any, c: Value, sums: Any, coef: Any) -> Any:
        s = self.k.sqrt(sums[0])
        self.norm[c] = s
        return [self.k.select(s.eq(0.0), 0.0, self.g[c] / s)]

    def apply(self, x: Any, coef: Any) -> Any:
        return [x[0] * coef[0]]


class _Backward(Plan):
    name = "weight_norm_backward"
    arrays = 3
    coefs = (2,)

    def __init__(self, dtype: DType, gtype: DType, norm_grad: bool):
        self.dtype, self.gtype, self.norm_grad = dtype, gtype, norm_grad

    def declare(self, k: Kernel, stream: bool) -> None:
        self.k = k
        self.inputs = [k.array("grad_w", self.dtype), k.array("v", self.dtype)]
        self.g, self.norm = k.array("g", self.gtype), k.array("norm", stats_type(self.dtype))
        self.grad_norm = k.array("grad_norm", stats_type(self.dtype)) if self.norm_grad else None
        self.outputs = [k.array("grad_v", self.dtype, stream)]
        self.grad_g = k.array("grad_g", self.gtype)

    def terms(self, stage: Any, x: Any, coef: Any) -> Any:
        return [(x[0], x[1])]

    def finish(self, stage: Any, c: Value, sums: Any, coef: Any) -> Any:
        k, norm = self.k, self.norm[c]
        inv = k.select(norm.eq(0.0), 0.0, 1.0 / norm)
        gg = sums[0] * inv
        self.grad_g[c] = gg
        a = self.g[c] * inv
        b = -(a * gg * inv)
        if self.grad_norm is not None:
            b = k.fma(self.grad_norm[c], inv, b)
        return [a, b]

    def apply(self, x: Any, coef: Any) -> Any:
        return [self.k.fma(x[0], coef[0], x[1] * coef[1])]


class _Reverse2(Plan):
    """Cotangents of grad_w, v, g and the norm from those (a, b) of the reverse rule's grad_v and grad_g. With i = 1/norm:

    s = sum(grad_w v), p = sum(a grad_w), q = sum(a v), c = i (b - g i² q)
    of grad_w: g i a + c v; of v: c grad_w - g i³ s a; of g: i p - i³ s q; of the norm: 3 g i⁴ s q - i² (g p + b s)
    """

    name = "weight_norm_reverse2"
    arrays = 5
    sums, coefs = (3,), (3,)

    def __init__(self, dtype: DType, gtype: DType, given: bool):
        self.dtype, self.gtype, self.given = dtype, gtype, given

    def declare(self, k: Kernel, stream: bool) -> None:
        self.k = k
        self.inputs = [k.array(s, self.dtype) for s in ("a", "grad_w", "v")]
        self.g, self.norm = k.array("g", self.gtype), k.array("norm", stats_type(self.dtype))
        self.b = k.array("b", self.gtype) if self.given else None
        self.outputs = [k.array(s, self.dtype, stream) for s in ("to_grad_w", "to_v")]
        self.to_g, self.to_norm = k.array("to_g", self.gtype), k.array("to_norm", stats_type(self.dtype))

    def terms(self, stage: Any, x: Any, coef: Any) -> Any:
        a, gw, v = x
        return [(gw, v), (a, gw), (a, v)]

    def finish(self, stage: Any, c: Value, sums: Any, coef: Any) -> Any:
        k, norm, g = self.k, self.norm[c], self.g[c]
        s, p, q = sums
        i = k.select(norm.eq(0.0), 0.0, 1.0 / norm)
        b = k.const(0.0, k.compute) if self.b is None else self.b[c]
        i2 = i * i
        sq = i2 * s * q
        self.to_g[c] = i * (p - sq)
        self.to_norm[c] = i2 * (3.0 * g * sq - g * p - b * s)
        return [g * i, i * (b - g * i2 * q), -(g * i * i2 * s)]

    def apply(self, x: Any, coef: Any) -> Any:
        a, gw, v = x
        own, cross, back = coef
        return [self.k.fma(own, a, cross * v), self.k.fma(back, a, cross * gw)]


class _Tangent2(Plan):
    """Tangents of the reverse rule's grad_v and grad_g along those (tgw, tv, tg, tn) of its arguments. With i = 1/norm:

    s = sum(grad_w v), t = sum(tgw v + grad_w tv), u = i tn
    grad_g: i (t - s u); grad_v: g i tgw - g i³ s tv + i (tg - g u) grad_w - i³ (tg s + g t - 3 g s u) v
    """

    name = "weight_norm_tangent_of_reverse"
    arrays = 5
    sums, coefs = (3,), (4,)

    def __init__(self, dtype: DType, gtype: DType):
        self.dtype, self.gtype = dtype, gtype

    def declare(self, k: Kernel, stream: bool) -> None:
        self.k = k
        self.inputs = [k.array(s, self.dtype) for s in ("grad_w", "tgw", "v", "tv")]
        self.g, self.tg = k.array("g", self.gtype), k.array("tg", self.gtype)
        self.norm, self.tn = k.array("norm", stats_type(self.dtype)), k.array("tn", stats_type(self.dtype))
        self.outputs = [k.array("to_v", self.dtype, stream)]
        self.to_g = k.array("to_g", self.gtype)

    def terms(self, stage: Any, x: Any, coef: Any) -> Any:
        gw, tgw, v, tv = x
        return [(gw, v), (tgw, v), (gw, tv)]

    def finish(self, stage: Any, c: Value, sums: Any, coef: Any) -> Any:
        k, norm, g, tg = self.k, self.norm[c], self.g[c], self.tg[c]
        s, t = sums[0], sums[1] + sums[2]
        i = k.select(norm.eq(0.0), 0.0, 1.0 / norm)
        u, i3 = i * self.tn[c], i * i * i
        self.to_g[c] = i * (t - s * u)
        return [g * i, -(g * i3 * s), i * (tg - g * u), -(i3 * (tg * s + g * t - 3.0 * g * s * u))]

    def apply(self, x: Any, coef: Any) -> Any:
        gw, tgw, v, tv = x
        k = self.k
        return [k.fma(coef[0], tgw, k.fma(coef[1], tv, k.fma(coef[2], gw, coef[3] * v)))]


def view(shape: tuple[int, ...], dim: int | None, batch: int | None) -> tuple[int, int, int, int]:
    """The shape as [batch, outer, n, inner] with n the kept dim; dim None or -1 keeps none."""
    if batch is not None:
        if not shape or shape[0] != batch:
            raise NotSupported
        return batch, *view(shape[1:], dim, None)[1:]
    if dim is None or dim == -1 or not shape:
        return 1, 1, 1, prod(shape)
    return 1, prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])


def _prepare(
    vdtype: np.dtype,
    shape: tuple[int, ...],
    gdtype: np.dtype,
    gshape: tuple[int, ...],
    dim: int | None,
    batch: int | None,
    plan: type[Plan] = _Forward,
    *flags: bool,
) -> Any:
    dtype, gtype = kernel_type(vdtype), kernel_type(gdtype)
    s4 = view(shape, dim, batch)
    if prod(gshape) != s4[0] * s4[2] or stats_of(gtype) != stats_of(dtype):
        raise NotSupported
    nbytes = prod(shape) * dtype.size
    return prepare(plan, (dtype, gtype, *flags), dtype, s4, nbytes), stats_of(dtype)


_calls = Calls(_prepare)


def weight_norm(
    v: np.ndarray, g: np.ndarray, dim: int | None = 0, batch: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """w = v g / norm and norm = |v| over all dims but `dim` (None or -1: over all), of g's shape; f32 for 16-bit types.

    `batch`: v and g have a leading axis of that length, which dim does not count.
    """
    shape, gshape, dtype = v.shape, g.shape, v.dtype
    call = _calls[dtype, shape, g.dtype, gshape, dim, batch]
    if call is None:
        raise NotSupported
    go, stats = call
    w, norm = empty(shape, dtype), np.empty(gshape, stats)
    if go(v, g, w, norm) is False:
        raise NotSupported
    return w, norm


def weight_norm_backward(
    grad_w: np.ndarray,
    v: np.ndarray,
    g: np.ndarray,
    norm: np.ndarray,
    dim: int | None = 0,
    grad_norm: np.ndarray | None = None,
    batch: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """grad_v = (g/norm) (grad_w - v s/norm²) [+ grad_norm v/norm], grad_g = s/norm, with s = sum(grad_w v)."""
    shape, gshape, dtype, gdtype = v.shape, g.shape, v.dtype, g.dtype
    call = _calls[dtype, shape, gdtype, gshape, dim, batch, _Backward, grad_norm is not None]
    if call is None:
        raise NotSupported
    go, stats = call
    if grad_w.shape != shape or grad_w.dtype != dtype or norm.dtype != stats or norm.shape != gshape:
        raise NotSupported
    grad_v, grad_g = empty(shape, dtype), np.empty(gshape, gdtype)
    if grad_norm is None:
        done = go(grad_w, v, g, norm, grad_v, grad_g)
    elif grad_norm.dtype != stats or grad_norm.shape != gshape:
        raise NotSupported
    else:
        done = go(grad_w, v, g, norm, grad_norm, grad_v, grad_g)
    if done is False:
        raise NotSupported
    return grad_v, grad_g


def _fit(like: np.ndarray, *others: np.ndarray | None) -> None:
    for o in others:
        if o is not None and (o.shape != like.shape or o.dtype != like.dtype):
            raise NotSupported


def weight_norm_double_backward(
    a: np.ndarray,
    b: np.ndarray | None,
    grad_w: np.ndarray,
    v: np.ndarray,
    g: np.ndarray,
    norm: np.ndarray,
    dim: int | None = 0,
    batch: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cotangents of grad_w, v, g and norm from those (a, b) of the reverse rule's grad_v and grad_g."""
    call = _calls[v.dtype, v.shape, g.dtype, g.shape, dim, batch, _Reverse2, b is not None]
    if call is None:
        raise NotSupported
    go, stats = call
    _fit(v, a, grad_w)
    _fit(g, b)
    if norm.dtype != stats or norm.shape != g.shape:
        raise NotSupported
    out = empty(v.shape, v.dtype), empty(v.shape, v.dtype), np.empty(g.shape, g.dtype), np.empty(g.shape, stats)
    if go(a, grad_w, v, g, norm, *(() if b is None else (b,)), *out) is False:
        raise NotSupported
    return out


def weight_norm_backward_tangent(
    grad_w: np.ndarray,
    tgw: np.ndarray,
    v: np.ndarray,
    tv: np.ndarray,
    g: np.ndarray,
    tg: np.ndarray,
    norm: np.ndarray,
    tn: np.ndarray,
    dim: int | None = 0,
    batch: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Tangents of the reverse rule's grad_v and grad_g."""
    call = _calls[v.dtype, v.shape, g.dtype, g.shape, dim, batch, _Tangent2]
    if call is None:
        raise NotSupported
    go, stats = call
    _fit(v, grad_w, tgw, tv)
    _fit(g, tg)
    _fit(norm, tn)
    if norm.dtype != stats or norm.shape != g.shape:
        raise NotSupported
    to_v, to_g = empty(v.shape, v.dtype), np.empty(g.shape, g.dtype)
    if go(grad_w, tgw, v, tv, g, tg, norm, tn, to_v, to_g) is False:
        raise NotSupported
    return to_v, to_g
