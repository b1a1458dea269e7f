"""y = (x - m) r w + b per channel of x [N, C, inner]: training, evaluation, and the reverse rule of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from .calls import Calls, NotSupported, kernel_type, prod, stats_of, vector_type
from .channels import Plan, prepare
from .lang import Array, DType, Kernel, Value, f64, stats_type, two
from .pool import empty


class _Channelwise(Plan):
    k: Kernel

    def vector(self, name: str, dtype: DType | None) -> Any:
        return None if dtype is None else self.k.array(name, dtype)

    def at(self, a: Any, c: Value, default: float) -> Value:
        return self.k.const(default, self.k.compute) if a is None else a[c]


class _Training(_Channelwise):
    """The mean is two numbers: the one that is subtracted, and what that is off by, which goes into the bias."""

    name = "batch_norm"
    stages, sums, coefs, exact = 2, (1, 1), (2, 2), True

    def __init__(self, dtype: DType, wt: DType | None, bt: DType | None):
        self.dtype, self.wt, self.bt = dtype, wt, bt

    def declare(self, k: Kernel, stream: bool) -> None:
        self.k = k
        self.inputs = [k.array("x", self.dtype)]
        self.w, self.b = self.vector("w", self.wt), self.vector("b", self.bt)
        self.outputs = [k.array("y", self.dtype, stream)]
        self.mean, self.var, self.rstd = (k.array(s, stats_type(self.dtype)) for s in ("mean", "var", "rstd"))
        self.count, self.eps = k.scalar("count", f64), k.scalar("eps", f64)

    def terms(self, stage: Any, x: Any, coef: Any) -> Any:
        if stage == 0:
            return [(x[0], None)]
        d = x[0] - coef[0]
        return [(d, d)]

    def finish(self, stage: Any, c: Any, sums: Any, coef: Any) -> Any:
        k = self.k
        m = sums[0] / self.count
        if stage == 0:
            self.mean[c] = m
            return two(k, m)
        off = coef[1].to(f64)
        v = k.fma(-off, off, m)
        r = 1.0 / k.sqrt(v + self.eps)
        self.var[c], self.rstd[c] = v, r
        a = r * self.at(self.w, c, 1.0).to(f64)
        return [a.to(k.compute), k.fma(-off, a, self.at(self.b, c, 0.0).to(f64)).to(k.compute)]

    def apply(self, x: Any, coef: Any) -> Any:
        return [self.k.fma(x[0] - coef[0], coef[-2], coef[-1])]


class _Evaluation(_Channelwise):
    """The statistics are given: a map without a reduction."""

    name = "batch_norm_eval"
    stages, starts, sums, coefs = 0, 3, (), ()

    def __init__(self, dtype: DType, wt: DType | None, bt: DType | None):
        self.dtype, self.wt, self.bt = dtype, wt, bt

    def declare(self, k: Kernel, stream: bool) -> None:
        self.k = k
        self.inputs = [k.array("x", self.dtype)]
        self.w, self.b = self.vector("w", self.wt), self.vector("b", self.bt)
        self.mean, self.rstd = k.array("mean", stats_type(self.dtype)), k.array("rstd", stats_type(self.dtype))
        self.outputs = [k.array("y", self.dtype, stream)]

    def start(self, c: Any) -> Any:
        return [self.mean[c], self.rstd[c] * self.at(self.w, c, 1.0), self.at(self.b, c, 0.0)]

    apply = _Training.apply


class _Backward(_Channelwise):
    """gw = sum(gy h), gb = sum(gy); gx = w r (gy - gb/n - h gw/n) + (gm - gr r² h)/n in training, w r gy in evaluation."""

    name = "batch_norm_backward"
    arrays = 3
    starts, sums, coefs = 2, (2,), (3,)

    def __init__(self, dtype: DType, wt: DType | None, train: bool, stats: bool):
        self.dtype, self.wt, self.train, self.stats = dtype, wt, train, stats

    def declare(self, k: Kernel, stream: bool) -> None:
        self.k = k
        self.inputs = [k.array("gy", self.dtype), k.array("x", self.dtype)]
        self.mean, self.rstd = k.array("mean", stats_type(self.dtype)), k.array("rstd", stats_type(self.dtype))
        self.w = self.vector("w", self.wt)
        self.gm: Array | None
        self.gr: Array | None
        self.gm, self.gr = (
            (k.array("gm", stats_type(self.dtype)), k.array("gr", stats_type(self.dtype)))
            if self.stats
            else (None, None)
        )
        self.outputs = [k.array("gx", self.dtype, stream)]
        self.gw, self.gb = (k.array(s, self.wt or self.dtype) for s in ("gw", "gb"))
        self.count = k.scalar("count")

    def start(self, c: Any) -> Any:
        return [self.mean[c], self.rstd[c]]

    def terms(self, stage: Any, x: Any, coef: Any) -> Any:
        return [(x[0], x[1] - coef[0]), (x[0], None)]  # scaled by r once, at the end

    def finish(self, stage: Any, c: Any, sums: Any, coef: Any) -> Any:
        k = self.k
        r = coef[1]
        gw, gb = sums[0] * r, sums[1]
        self.gw[c], self.gb[c] = gw, gb
        a = r * self.at(self.w, c, 1.0)
        if not self.train:
            return [a, k.const(0.0, k.compute), k.const(0.0, k.compute)]
        # gx = a gy - p (x - m) - q
        p, q = a * r * gw / self.count, a * gb / self.count
        if self.gm is not None and self.gr is not None:
            p = p + self.gr[c] * r * r * r / self.count
            q = q - self.gm[c] / self.count
        return [a, -p, -q]

    def apply(self, x: Any, coef: Any) -> Any:
        m, _, a, p, q = coef
        return [self.k.fma(x[0], a, self.k.fma(x[1] - m, p, q))]


def _view(shape: tuple[int, ...], batch: int | None) -> tuple[int, int, int, int]:
    """[N, C, ...] or, with a batch, [batch, N, C, ...] as [batch, outer, n, inner]"""
    if batch is None:
        return 1, shape[0], shape[1], prod(shape[2:])
    if shape[0] != batch:
        raise NotSupported
    return batch, shape[1], shape[2], prod(shape[3:])


def _prepare(
    plan: type[Plan], xd: np.dtype, shape: tuple[int, ...], batch: int | None, wd: np.dtype | None, *rest: Any
) -> Any:
    dtype = kernel_type(xd)
    wt = vector_type(wd, dtype)
    if plan is not _Backward:
        rest = (vector_type(rest[0], dtype),)
    b, n, c, inner = s4 = _view(shape, batch)
    go = prepare(plan, (dtype, wt, *rest), dtype, s4, prod(shape) * dtype.size)
    return go, c if batch is None else (b, c), float(n * inner), stats_of(dtype)


_calls = Calls(_prepare)


def _vectors(c: int | tuple[int, int], *vectors: np.ndarray | None) -> list[np.ndarray]:
    """Those that are there, contiguous and of shape c."""
    size = c if isinstance(c, int) else c[0] * c[1]
    given = []
    for v in vectors:
        if v is not None:
            if v.size != size or not v.flags.c_contiguous:
                raise NotSupported
            given.append(v)
    return given


def batch_norm(
    x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, eps: float, batch: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """y, mean, rstd and (biased) variance per channel of x [N, C, ...], statistics of the batch.

    `batch`: every array has a leading axis of that length, examples of a vmap: x [batch, N, C, ...], weight [batch, C].
    """
    call = _calls[
        _Training,
        x.dtype,
        x.shape,
        batch,
        None if weight is None else weight.dtype,
        None if bias is None else bias.dtype,
    ]
    if call is None or not x.flags.c_contiguous:
        raise NotSupported
    go, c, count, stats = call
    y = empty(x.shape, x.dtype)
    mean, var, rstd = np.empty(c, stats), np.empty(c, stats), np.empty(c, stats)
    go(x, *_vectors(c, weight, bias), y, mean, var, rstd, count, eps)
    return y, mean, rstd, var


def batch_norm_eval(
    x: np.ndarray,
    weight: np.ndarray | None,
    bias: np.ndarray | None,
    mean: np.ndarray,
    rstd: np.ndarray,
    batch: int | None = None,
) -> np.ndarray:
    """y = (x - mean) rstd w + b with given statistics."""
    call = _calls[
        _Evaluation,
        x.dtype,
        x.shape,
        batch,
        None if weight is None else weight.dtype,
        None if bias is None else bias.dtype,
    ]
    if call is None or not x.flags.c_contiguous:
        raise NotSupported
    go, c, _, stats = call
    if mean.dtype != stats or rstd.dtype != stats:
        raise NotSupported
    y = empty(x.shape, x.dtype)
    go(x, *_vectors(c, weight, bias, mean, rstd), y)
    return y


def batch_norm_backward(
    gy: np.ndarray,
    x: np.ndarray,
    mean: np.ndarray,
    rstd: np.ndarray,
    weight: np.ndarray | None,
    train: bool = True,
    gm: np.ndarray | None = None,
    gr: np.ndarray | None = None,
    batch: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """gx, gw, gb; gm and gr are cotangents of the saved mean and rstd (training only)."""
    shape, dtype = x.shape, x.dtype
    given = gm is not None or gr is not None
    call = _calls[_Backward, dtype, shape, batch, None if weight is None else weight.dtype, train, given]
    if call is None or gy.shape != shape or gy.dtype != dtype or not (x.flags.c_contiguous and gy.flags.c_contiguous):
        raise NotSupported
    go, c, count, stats = call
    if given:
        zero = np.zeros(c, stats)
        gm, gr = zero if gm is None else gm, zero if gr is None else gr
        if gm.dtype != stats or gr.dtype != stats:
            raise NotSupported
    if mean.dtype != stats or rstd.dtype != stats:
        raise NotSupported
    vector = dtype if weight is None else weight.dtype
    gx, gw, gb = empty(shape, dtype), np.empty(c, vector), np.empty(c, vector)
    go(gy, x, *_vectors(c, mean, rstd, weight, gm, gr), gx, gw, gb, count)
    return gx, gw, gb
