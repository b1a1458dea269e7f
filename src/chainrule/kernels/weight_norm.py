"""w = v g / |v|, the norm over all dims but one, and its reverse rule, fused.

A row of zeros has no direction. Here 1/|v| counts as 0 where |v| = 0: w = 0 there, and both gradients are 0 (finite, not NaN).
"""

from __future__ import annotations

import numpy as np

from . import pool
from .channels import STREAM_BYTES, NotSupported, Plan, check, run
from .lang import NUMPY_NAMES, DType, Kernel, Value, compute_type

_TYPES = {np.dtype(n): d for n, d in NUMPY_NAMES.items() if n in ("float32", "float64", "float16")}


def kernel_type(dtype: np.dtype) -> DType | None:
    """The kernels' name of a NumPy float type, None if there is none."""
    t = _TYPES.get(dtype)
    if t is None and dtype.name == "bfloat16":
        t = _TYPES[dtype] = NUMPY_NAMES["bfloat16"]
    return t


_STATS = {4: np.dtype(np.float32), 8: np.dtype(np.float64), 2: np.dtype(np.float32)}


class _Forward(Plan):
    name = "weight_norm"

    def __init__(self, dtype: DType, gtype: DType):
        self.dtype, self.gtype = dtype, gtype

    def declare(self, k: Kernel, stream: bool) -> None:
        self.k = k
        self.inputs = [k.array("v", self.dtype)]
        self.g = k.array("g", self.gtype)
        self.outputs = [k.array("w", self.dtype, stream)]
        self.norm = k.array("norm", k.compute)

    def terms(self, stage, x, coef):
        return [(x[0], x[0])]

    def finish(self, stage, c: Value, sums, coef):
        s = self.k.sqrt(sums[0])
        self.norm[c] = s
        return [self.k.select(s.eq(0.0), 0.0, self.g[c].to(self.k.compute) / s)]

    def apply(self, x, coef):
        return [x[0] * coef[0]]


class _Backward(Plan):
    name = "weight_norm_backward"
    coefs = (2,)

    def __init__(self, dtype: DType, gtype: DType, norm_grad: bool):
        self.dtype, self.gtype, self.norm_grad = dtype, gtype, norm_grad

    def declare(self, k: Kernel, stream: bool) -> None:
        self.k = k
        self.inputs = [k.array("grad_w", self.dtype), k.array("v", self.dtype)]
        self.g, self.norm = k.array("g", self.gtype), k.array("norm", k.compute)
        self.grad_norm = k.array("grad_norm", k.compute) if self.norm_grad else None
        self.outputs = [k.array("grad_v", self.dtype, stream)]
        self.grad_g = k.array("grad_g", self.gtype)

    def terms(self, stage, x, coef):
        return [(x[0], x[1])]

    def finish(self, stage, c: Value, sums, coef):
        k, norm = self.k, self.norm[c]
        inv = k.select(norm.eq(0.0), 0.0, 1.0 / norm)
        gg = sums[0] * inv
        self.grad_g[c] = gg
        a = self.g[c].to(k.compute) * inv
        b = -(a * gg * inv)
        if self.grad_norm is not None:
            b = k.fma(self.grad_norm[c], inv, b)
        return [a, b]

    def apply(self, x, coef):
        return [self.k.fma(x[0], coef[0], x[1] * coef[1])]


def view3(shape: tuple[int, ...], dim: int | None) -> tuple[int, int, int]:
    """The shape as [outer, n, inner] with n the kept dim; dim None or -1 keeps none."""
    if dim is None or dim == -1 or not shape:
        total = 1
        for s in shape:
            total *= s
        return 1, 1, total
    outer = inner = 1
    for s in shape[:dim]:
        outer *= s
    for s in shape[dim + 1 :]:
        inner *= s
    n = shape[dim]
    # A channel of one contiguous piece is a row.
    return outer, n, inner


def _ready(*arrays: np.ndarray) -> None:
    for a in arrays:
        if not a.flags.c_contiguous:
            raise NotSupported


def weight_norm(v: np.ndarray, g: np.ndarray, dim: int | None = 0) -> tuple[np.ndarray, np.ndarray]:
    """w = v g / norm and norm = |v| over all dims but `dim` (None or -1: over all), of g's shape; f32 for 16-bit types."""
    dtype, gtype = check(kernel_type(v.dtype)), check(kernel_type(g.dtype))
    shape = v.shape
    s3 = view3(shape, dim)
    if g.size != s3[1] or not v.size or compute_type(gtype) is not compute_type(dtype):
        raise NotSupported
    _ready(v, g)
    w, norm = pool.empty(shape, v.dtype), np.empty(g.shape, _STATS[dtype.size])
    run(_Forward, (dtype, gtype), dtype, s3, (v, g, w, norm), stream=streams(w, s3))
    return w, norm


def weight_norm_backward(
    grad_w: np.ndarray,
    v: np.ndarray,
    g: np.ndarray,
    norm: np.ndarray,
    dim: int | None = 0,
    grad_norm: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """grad_v = (g/norm) (grad_w - v s/norm²) [+ grad_norm v/norm], grad_g = s/norm, with s = sum(grad_w v)."""
    dtype, gtype = check(kernel_type(v.dtype)), check(kernel_type(g.dtype))
    shape = v.shape
    s3 = view3(shape, dim)
    stats = _STATS[dtype.size]
    if g.size != s3[1] or not v.size or grad_w.shape != shape or compute_type(gtype) is not compute_type(dtype):
        raise NotSupported
    if grad_w.dtype != v.dtype or norm.dtype != stats or norm.size != g.size:
        raise NotSupported
    _ready(grad_w, v, g, norm)
    grad_v, grad_g = pool.empty(shape, v.dtype), np.empty(g.shape, g.dtype)
    extra: tuple[np.ndarray, ...] = ()
    if grad_norm is not None:
        if grad_norm.dtype != stats or grad_norm.size != g.size:
            raise NotSupported
        _ready(grad_norm)
        extra = (grad_norm,)
    arrays = (grad_w, v, g, norm, *extra, grad_v, grad_g)
    run(_Backward, (dtype, gtype, bool(extra)), dtype, s3, arrays, stream=streams(grad_v, s3))
    return grad_v, grad_g


def streams(out: np.ndarray, shape: tuple[int, int, int]) -> bool:
    """Should the result bypass the cache: it is large and its rows start at cache lines."""
    outer, n, inner = shape
    row = n if inner == 1 else inner
    return out.nbytes >= STREAM_BYTES and row * out.itemsize % 64 == 0
