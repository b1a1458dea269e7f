"""y = h w + b with h = (x - m) r: layer norm (m the mean, r = 1/sqrt(var + eps)) and RMS norm (m = 0, r = 1/sqrt(mean(x²) + eps)).

Forward, reverse, tangent, reverse of reverse and tangent of reverse, each in one pass over memory. Statistics are f32 for 16-bit
types. With P(t) = t - mean(t) - h mean(t h), the projection that every rule here is made of (RMS norm: without mean(t)):
reverse gx = r P(gy w); tangent of y = r P(tx) w + h tw + tb.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .calls import Calls, NotSupported, kernel_type, prod, stats_of, vector_type
from .lang import DType, Kernel, Value, f64, i64, stats_type, two
from .pool import empty
from .rows import RowPlan, prepare


class _Norm(RowPlan):
    """What the rules share. `center`: layer norm, otherwise RMS norm. `wt`, `bt`: types of weight and bias, or None."""

    center: bool

    def mean_of(self, total: Value) -> Value:
        return total / self.count

    def project(self, t: Value, h: Value, mean_t: Value | None, mean_th: Value) -> Value:
        """P(t)"""
        if mean_t is not None:
            t = t - mean_t
        return self.k.fma(-h, mean_th, t)

    def sizes(self, k: Kernel) -> None:
        # The plan needs n before the builder declares it; a parameter read by name is the same parameter.
        self.count = Value(k, "param", i64, (), "n", False).to(k.compute)


class _Forward(_Norm):
    """The mean is two numbers: the one that is subtracted, and what that is off by."""

    name = "layer_norm"
    exact = True

    def __init__(self, dtype: DType, wt: DType | None, bt: DType | None, center: bool):
        self.dtype, self.wt, self.bt, self.center = dtype, wt, bt, center
        self.reductions = (("add",), ("add",)) if center else (("add",),)

    def declare(self, k: Kernel, stream: bool) -> None:
        self.sizes(k)
        self.inputs = [k.array("x", self.dtype)]
        self.vectors = [k.array(s, t) for s, t in (("w", self.wt), ("b", self.bt)) if t is not None]
        self.outputs, self.columns = [k.array("y", self.dtype, stream)], []
        self.mean = k.array("mean", stats_type(self.dtype)) if self.center else None
        self.rstd = k.array("rstd", stats_type(self.dtype))
        self.eps = k.scalar("eps", f64)

    def terms(self, stage: Any, x: Any, vec: Any, coef: Any) -> Any:
        if self.center and stage == 0:
            return [(x[0], None)]
        d = x[0] - coef[0] if self.center else x[0]
        return [(d, d)]

    def finish(self, stage: Any, row: Any, sums: Any, coef: Any) -> Any:
        k = self.k
        m = sums[0] / self.count.to(f64)
        if self.mean is not None and stage == 0:
            self.mean[row] = m
            return two(k, m)
        off = coef[1].to(f64) if self.center else k.const(0.0, f64)
        r = 1.0 / k.sqrt(k.fma(-off, off, m) + self.eps)
        self.rstd[row] = r
        return [r.to(k.compute), (-off * r).to(k.compute)] if self.center else [r.to(k.compute)]

    def apply(self, x: Any, vec: Any, coef: Any) -> Any:
        h = self.k.fma(x[0] - coef[0], coef[2], coef[3]) if self.center else x[0] * coef[0]
        vec = list(vec)
        w = vec.pop(0) if self.wt is not None else None
        b = vec.pop(0) if self.bt is not None else None
        if w is not None:
            return [self.k.fma(h, w, b) if b is not None else h * w], []
        return [h if b is None else h + b], []


class _Backward(_Norm):
    """gx = r P(u) with u = gy w; gw = sum(gy h), gb = sum(gy); cotangents of the statistics add (gm - gr r² h)/n."""

    name = "layer_norm_backward"
    arrays = 3
    small = (2, 1)

    def __init__(
        self, dtype: DType, wt: DType | None, center: bool, gx: bool, gw: DType | None, gb: DType | None, stats: bool
    ):
        self.dtype, self.wt, self.center, self.gx, self.gw, self.gb, self.stats = dtype, wt, center, gx, gw, gb, stats
        self.reductions = ((("add", "add") if center else ("add",)),) if gx else ()

    def declare(self, k: Kernel, stream: bool) -> None:
        self.sizes(k)
        self.inputs = [k.array("gy", self.dtype), k.array("x", self.dtype)]
        self.mean = k.array("mean", stats_type(self.dtype)) if self.center else None
        self.rstd = k.array("rstd", stats_type(self.dtype))
        self.vectors = [k.array("w", self.wt)] if self.wt is not None else []
        self.gm = k.array("gm", stats_type(self.dtype)) if self.stats and self.center else None
        self.gr = k.array("gr", stats_type(self.dtype)) if self.stats else None
        self.outputs = [k.array("gx", self.dtype, stream)] if self.gx else []
        self.columns = [k.array(s, t) for s, t in (("gw", self.gw), ("gb", self.gb)) if t is not None]

    def start(self, row: Any) -> Any:
        return [self.rstd[row]] + ([self.mean[row]] if self.mean is not None else [])

    def h(self, x: Any, coef: Any) -> Any:
        return (x[1] - coef[1]) * coef[0] if self.center else x[1] * coef[0]

    def terms(self, stage: Any, x: Any, vec: Any, coef: Any) -> Any:
        u = x[0] * vec[0] if vec else x[0]
        return [(u, self.h(x, coef))] + ([(u, None)] if self.center else [])

    def finish(self, stage: Any, row: Any, sums: Any, coef: Any) -> Any:
        r = coef[0]
        c2 = self.mean_of(sums[0])
        if self.gr is not None:
            c2 = self.k.fma(self.gr[row], r / self.count, c2)
        if not self.center:
            return [c2]
        c1 = self.mean_of(sums[1])
        if self.gm is not None:
            c1 = c1 - self.gm[row] / (r * self.count)
        return [c2, c1]

    def apply(self, x: Any, vec: Any, coef: Any) -> Any:
        h = self.h(x, coef)
        out = []
        if self.gx:
            u = x[0] * vec[0] if vec else x[0]
            c2, c1 = (coef[2], coef[3]) if self.center else (coef[1], None)
            out = [coef[0] * self.project(u, h, c1, c2)]
        return out, ([(x[0], h)] if self.gw is not None else []) + ([(x[0], None)] if self.gb is not None else [])


def _prepare_forward(
    xd: np.dtype,
    shape: tuple[int, ...],
    wd: np.dtype | None,
    bd: np.dtype | None,
    n: int,
    center: bool,
    batch: int | None,
) -> Any:
    dtype = kernel_type(xd)
    rows = prod(shape) // n if n else 0
    args = (dtype, vector_type(wd, dtype), vector_type(bd, dtype), center)
    go = prepare(_Forward, args, rows, n, prod(shape) * dtype.size, batch or 1)
    return go, rows, n * (batch or 1), stats_of(dtype)


def _prepare_backward(
    xd: np.dtype,
    shape: tuple[int, ...],
    rows: int,
    wd: np.dtype | None,
    center: bool,
    mask: tuple[bool, bool, bool],
    stats: bool,
    batch: int | None,
) -> Any:
    dtype = kernel_type(xd)
    n = prod(shape) // rows if rows else 0
    wt = vector_type(wd, dtype)
    vt = dtype if wt is None else wt
    args = (dtype, wt, center, mask[0], vt if mask[1] else None, vt if mask[2] else None, stats)
    go = prepare(_Backward, args, rows, n, prod(shape) * dtype.size, batch or 1)
    return go, n if batch is None else (batch, n), n * (batch or 1), stats_of(dtype)


_forward_calls = Calls(_prepare_forward)
_backward_calls = Calls(_prepare_backward)


def layer_norm(
    x: np.ndarray,
    weight: np.ndarray | None,
    bias: np.ndarray | None,
    eps: float,
    n: int | None = None,
    batch: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y = h w + b, mean and rstd (of length rows) over the last n elements (default: the last dim) of contiguous x.

    `batch`: weight and bias are [batch, n], each for a batch-th of the rows (examples of a vmap).
    """
    shape, dtype = x.shape, x.dtype
    if n is None:
        n = shape[-1]
    call = _forward_calls[
        dtype, shape, None if weight is None else weight.dtype, None if bias is None else bias.dtype, n, True, batch
    ]
    if call is None:
        raise NotSupported
    go, rows, size, stats = call
    y, mean, rstd = empty(shape, dtype), np.empty(rows, stats), np.empty(rows, stats)
    if weight is None and bias is None:
        done = go(x, y, mean, rstd, eps)
    elif weight is not None and bias is not None and weight.size == bias.size == size:
        done = go(x, weight, bias, y, mean, rstd, eps)
    elif weight is None and bias is not None and bias.size == size:
        done = go(x, bias, y, mean, rstd, eps)
    elif bias is None and weight is not None and weight.size == size:
        done = go(x, weight, y, mean, rstd, eps)
    else:
        raise NotSupported
    if done is False:
        raise NotSupported
    return y, mean, rstd


def rms_norm(
    x: np.ndarray, weight: np.ndarray | None, eps: float, n: int | None = None, batch: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """y = x r w and r = 1/sqrt(mean(x²) + eps) over the last n elements."""
    shape, dtype = x.shape, x.dtype
    if n is None:
        n = shape[-1]
    call = _forward_calls[dtype, shape, None if weight is None else weight.dtype, None, n, False, batch]
    if call is None or not x.flags.c_contiguous:
        raise NotSupported
    go, rows, size, stats = call
    y, rstd = empty(shape, dtype), np.empty(rows, stats)
    if weight is None:
        go(x, y, rstd, eps)
    else:
        if weight.size != size or not weight.flags.c_contiguous:
            raise NotSupported
        go(x, weight, y, rstd, eps)
    return y, rstd


def _backward(
    gy: np.ndarray,
    x: np.ndarray,
    mean: np.ndarray | None,
    rstd: np.ndarray,
    weight: np.ndarray | None,
    mask: tuple[bool, bool, bool],
    gm: np.ndarray | None,
    gr: np.ndarray | None,
    batch: int | None,
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    shape, dtype, rows = x.shape, x.dtype, rstd.size
    center, given = mean is not None, gm is not None or gr is not None
    call = _backward_calls[dtype, shape, rows, None if weight is None else weight.dtype, center, mask, given, batch]
    if call is None or gy.shape != shape or gy.dtype != dtype or not (x.flags.c_contiguous and gy.flags.c_contiguous):
        raise NotSupported
    go, vshape, size, stats = call
    if given:
        zero = np.zeros(rows, stats)
        gm, gr = (zero if gm is None else gm) if center else None, zero if gr is None else gr
    arrays = [gy, x]
    for s in (mean, rstd):
        if s is not None:
            if s.size != rows or s.dtype != stats or not s.flags.c_contiguous:
                raise NotSupported
            arrays.append(s)
    vector = dtype
    if weight is not None:
        if weight.size != size or not weight.flags.c_contiguous:
            raise NotSupported
        arrays.append(weight)
        vector = weight.dtype
    if given:
        for s in (gm, gr):
            if s is not None:
                if s.size != rows or s.dtype != stats or not s.flags.c_contiguous:
                    raise NotSupported
                arrays.append(s)
    gx = gw = gb = None
    if mask[0]:
        gx = empty(shape, dtype)
        arrays.append(gx)
    if mask[1]:
        gw = np.empty(vshape, vector)
        arrays.append(gw)
    if mask[2]:
        gb = np.empty(vshape, vector)
        arrays.append(gb)
    go(*arrays)
    return gx, gw, gb


_EVERY = (True, True, True)


def layer_norm_backward(
    gy: np.ndarray,
    x: np.ndarray,
    mean: np.ndarray,
    rstd: np.ndarray,
    weight: np.ndarray | None,
    mask: tuple[bool, bool, bool] = _EVERY,
    gm: np.ndarray | None = None,
    gr: np.ndarray | None = None,
    batch: int | None = None,
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """gx = r P(gy w) + (gm - gr r² h)/n, gw = sum(gy h), gb = sum(gy); gm, gr are cotangents of mean and rstd.

    `batch`: weight, gw and gb are [batch, n].
    """
    if weight is None or gm is not None or gr is not None or mask != _EVERY:
        return _backward(gy, x, mean, rstd, weight, mask, gm, gr, batch)
    # The usual case, written out: this is a third of the time of a small problem.
    shape, dtype, rows, vector = x.shape, x.dtype, rstd.size, weight.dtype
    call = _backward_calls[dtype, shape, rows, vector, True, mask, False, batch]
    if call is None:
        raise NotSupported
    go, vshape, size, stats = call
    if (
        gy.shape != shape
        or gy.dtype != dtype
        or mean.dtype != stats
        or rstd.dtype != stats
        or mean.size != rows
        or weight.size != size
    ):
        raise NotSupported
    gx, gw, gb = empty(shape, dtype), np.empty(vshape, vector), np.empty(vshape, vector)
    if go(gy, x, mean, rstd, weight, gx, gw, gb) is False:
        raise NotSupported
    return gx, gw, gb


def rms_norm_backward(
    gy: np.ndarray,
    x: np.ndarray,
    rstd: np.ndarray,
    weight: np.ndarray | None,
    mask: tuple[bool, bool] = (True, True),
    gr: np.ndarray | None = None,
    batch: int | None = None,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """gx = r (u - h mean(u h)) - gr r² h/n with u = gy w, gw = sum(gy h); gr is the cotangent of rstd."""
    gx, gw, _ = _backward(gy, x, None, rstd, weight, (*mask, False), None, gr, batch)
    return gx, gw
