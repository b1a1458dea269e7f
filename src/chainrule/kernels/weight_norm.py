"""w = v g / |v|, the norm over all dims but one, and its reverse rule, fused.

A row of zeros has no direction. Here 1/|v| counts as 0 where |v| = 0: w = 0 there, and both gradients are 0 (finite, not NaN).
"""

from __future__ import annotations

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

    def terms(self, stage, x, coef):
        return [(x[0], x[0])]

    def finish(self, stage, c: Value, sums, coef):
        s = self.k.sqrt(sums[0])
        self.norm[c] = s
        return [self.k.select(s.eq(0.0), 0.0, self.g[c] / s)]

    def apply(self, x, coef):
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

    def terms(self, stage, x, coef):
        return [(x[0], x[1])]

    def finish(self, stage, c: Value, sums, coef):
        k, norm = self.k, self.norm[c]
        inv = k.select(norm.eq(0.0), 0.0, 1.0 / norm)
        gg = sums[0] * inv
        self.grad_g[c] = gg
        a = self.g[c] * inv
        b = -(a * gg * inv)
        if self.grad_norm is not None:
            b = k.fma(self.grad_norm[c], inv, b)
        return [a, b]

    def apply(self, x, coef):
        return [self.k.fma(x[0], coef[0], x[1] * coef[1])]


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
    *grad_norm: bool,
):
    dtype, gtype = kernel_type(vdtype), kernel_type(gdtype)
    s4 = view(shape, dim, batch)
    if prod(gshape) != s4[0] * s4[2] or stats_of(gtype) != stats_of(dtype):
        raise NotSupported
    nbytes = prod(shape) * dtype.size
    plan: type[Plan] = _Backward if grad_norm else _Forward
    return prepare(plan, (dtype, gtype, *grad_norm), dtype, s4, nbytes), stats_of(dtype)


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
    call = _calls[dtype, shape, gdtype, gshape, dim, batch, grad_norm is not None]
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
