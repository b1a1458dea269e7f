"""y = (x - m) r w + b of x [N, C, inner], statistics over each of G groups of channels, weight and bias per channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import compiler, pool, runtime
from .calls import NotSupported, kernel_type, scratch_of, stats_of, streams, vector_type
from .lang import DType, Kernel, Value, f64, precise_type, stats_type

# With fewer elements per channel than this, lanes run along the whole group and weights are spread out to match.
FLAT = 16


def _forward(dtype: DType, wt: DType | None, bt: DType | None, flat: bool, stream: bool) -> Kernel:
    k = Kernel(f"group_norm{'_flat' if flat else ''}_{dtype}", precise_type(dtype))
    x = k.array("x", dtype)
    w = None if wt is None else k.array("w", wt)
    b = None if bt is None else k.array("b", bt)
    y, mean, rstd = k.array("y", dtype, stream), k.array("mean", stats_type(dtype)), k.array("rstd", stats_type(dtype))
    eps, rows, examples = k.scalar("eps"), k.size("rows"), k.size("examples")
    groups, per, inner = k.size("groups"), k.size("per"), k.size("inner")
    n = per * inner
    with k.grid(rows, cost=n) as i:
        base = i * n
        acc = k.acc(wide=f64)
        with k.reducing(n, [acc]) as j:
            acc.add(x[base + j])
        m = acc.total().to(k.compute) / n.to(k.compute)
        acc = k.acc(wide=f64)
        with k.reducing(n, [acc]) as j:
            d = x[base + j] - m
            acc.fma(d, d)
        r = 1.0 / k.sqrt(acc.total().to(k.compute) / n.to(k.compute) + eps)
        mean[i], rstd[i] = m, r
        group = i // (examples * groups) * groups + i % groups  # of all groups of all batches

        def put(at: Value, j: Value, c: Value) -> None:
            wc = None if w is None else w[c]
            bc = k.const(0.0, k.compute) if b is None else b[c]
            y[at + j] = k.fma(x[at + j] - m, r if wc is None else wc * r, bc)

        if flat:
            with k.lanes(n) as j:
                put(base, j, group * n + j)
        else:
            with k.loop(0, per) as d, k.lanes(inner) as j:
                put(base + d * inner, j, group * per + d)
    return k


def _backward(dtype: DType, wt: DType | None, stats: bool, stream: bool) -> Kernel:
    """Per channel of a row: ds = sum(gy h), db = sum(gy); they make the row's c1, c2 and, summed over N, gw and gb."""
    k = Kernel(f"group_norm_backward_{dtype}", precise_type(dtype))
    gy, x, mean, rstd = (
        k.array("gy", dtype),
        k.array("x", dtype),
        k.array("mean", stats_type(dtype)),
        k.array("rstd", stats_type(dtype)),
    )
    w = None if wt is None else k.array("w", wt)
    gm, gr = (k.array("gm", stats_type(dtype)), k.array("gr", stats_type(dtype))) if stats else (None, None)
    gx, gw, gb = k.array("gx", dtype, stream), k.array("gw", wt or dtype), k.array("gb", wt or dtype)
    ds, db = k.array("ds", k.compute), k.array("db", k.compute)
    rows, examples, groups, per, inner = (k.size(s) for s in ("rows", "examples", "groups", "per", "inner"))
    with k.grid(rows, cost=per * inner) as i:
        m, r = mean[i], rstd[i]
        group = i // (examples * groups) * groups + i % groups
        c1, c2 = k.var(k.compute, 0.0), k.var(k.compute, 0.0)

        def weight(d: Value) -> Value:
            return k.const(1.0, k.compute) if w is None else w[group * per + d]

        with k.loop(0, per) as d:
            base = (i * per + d) * inner
            s, t = k.acc(wide=f64), k.acc(wide=f64)
            with k.reducing(inner, [s, t]) as j:
                g = gy[base + j]
                s.fma(g, x[base + j] - m)
                t.add(g)
            st, tt = s.total().to(k.compute) * r, t.total().to(k.compute)
            ds[i * per + d], db[i * per + d] = st, tt
            c1.set(c1.get() + tt * weight(d))
            c2.set(c2.get() + st * weight(d))
        count = (per * inner).to(k.compute)
        p, q = -(r * r * c2.get() / count), -(r * c1.get() / count)
        if gm is not None and gr is not None:
            p, q = p - gr[i] * r * r * r / count, q + gm[i] / count
        with k.loop(0, per) as d:
            base, a = (i * per + d) * inner, r * weight(d)
            with k.lanes(inner) as j:
                gx[base + j] = k.fma(gy[base + j], a, k.fma(x[base + j] - m, p, q))
    channels = groups * per
    wide = 4 * k.width
    blocks = (channels + (wide - 1)) // wide
    with k.grid(rows // (examples * groups) * blocks, cost=examples * wide) as b:
        batch, start = b // blocks, b % blocks * wide
        with k.lanes(k.minimum(channels - start, wide), unroll=1) as j:
            for part, out in ((ds, gw), (db, gb)):
                total = k.var(k.compute, 0.0, varying=True)
                with k.loop(0, examples) as e:
                    total.set(total.get() + part[(batch * examples + e) * channels + start + j])
                out[batch * channels + start + j] = total.get()
    return k


def _backward_flat(dtype: DType, wt: DType | None, stats: bool, stream: bool) -> Kernel:
    """Lanes along the whole group, weights spread out; one grid index per group, so that it owns its columns of gw and gb."""
    k = Kernel(f"group_norm_backward_flat_{dtype}", precise_type(dtype))
    gy, x, mean, rstd = (
        k.array("gy", dtype),
        k.array("x", dtype),
        k.array("mean", stats_type(dtype)),
        k.array("rstd", stats_type(dtype)),
    )
    w = None if wt is None else k.array("w", wt)
    gm, gr = (k.array("gm", stats_type(dtype)), k.array("gr", stats_type(dtype))) if stats else (None, None)
    gx, gw, gb = k.array("gx", dtype, stream), k.array("gw", k.compute), k.array("gb", k.compute)
    rows, examples, groups, n = k.size("rows"), k.size("examples"), k.size("groups"), k.size("n")
    with k.grid(rows // examples, cost=examples * n) as g:
        column = g * n
        with k.lanes(n) as j:
            gw[column + j], gb[column + j] = 0.0, 0.0
        with k.loop(0, examples) as e:
            i = (g // groups * examples + e) * groups + g % groups
            base, m, r = i * n, mean[i], rstd[i]
            s, t = k.acc(wide=f64), k.acc(wide=f64)
            with k.reducing(n, [s, t]) as j:
                u = gy[base + j] if w is None else gy[base + j] * w[column + j]
                s.fma(u, x[base + j] - m)
                t.add(u)
            count = n.to(k.compute)
            p, q = -(r * r * r * s.total().to(k.compute) / count), -(r * t.total().to(k.compute) / count)
            if gm is not None and gr is not None:
                p, q = p - gr[i] * r * r * r / count, q + gm[i] / count
            with k.lanes(n, unroll=2) as j:
                v, d = gy[base + j], x[base + j] - m
                a = r if w is None else r * w[column + j]
                gx[base + j] = k.fma(v, a, k.fma(d, p, q))
                gw[column + j] = k.fma(v, d * r, gw[column + j])
                gb[column + j] = gb[column + j] + v
    return k


_compiled: dict[tuple[Any, ...], Callable[..., None]] = {}


def _kernel(build: Callable[..., Kernel], *args: Any) -> Callable[..., None]:
    f = _compiled.get((build, *args))
    if f is None:
        f = _compiled[(build, *args)] = compiler.compile_kernel(build(*args))
    return f


def _check(
    x: np.ndarray,
    groups: int,
    batch: int | None,
    vectors: tuple[Any, ...],
    stats: tuple[Any, ...],
    like: tuple[Any, ...],
) -> tuple[DType, int, int, int, int]:
    """The element type, rows, examples, channels per group and elements per channel, if there is a kernel for these arrays."""
    if not compiler.available() or not x.size:
        raise NotSupported
    dtype = kernel_type(x.dtype)
    n, c = x.shape[:2] if batch is None else x.shape[1:3]
    b = 1 if batch is None else batch
    if c % groups or not x.flags.c_contiguous or (batch is not None and x.shape[0] != batch):
        raise NotSupported
    for v in vectors:
        if v is not None and (v.size != b * c or not v.flags.c_contiguous):
            raise NotSupported
    for s in stats:
        if s is not None and (s.size != b * n * groups or not s.flags.c_contiguous or s.dtype != stats_of(dtype)):
            raise NotSupported
    for a in like:
        if a.dtype != x.dtype or a.shape != x.shape or not a.flags.c_contiguous:
            raise NotSupported
    return dtype, b * n * groups, n, c // groups, x.size // (b * n * c)


def _type(a: np.ndarray | None, like: DType) -> DType | None:
    return None if a is None else vector_type(a.dtype, like)


def _spread(v: np.ndarray | None, inner: int) -> np.ndarray | None:
    return v if v is None or inner == 1 else np.repeat(v.reshape(-1), inner)


def group_norm(
    x: np.ndarray,
    groups: int,
    weight: np.ndarray | None,
    bias: np.ndarray | None,
    eps: float,
    batch: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y, mean and rstd (of shape [N, G]) of x [N, C, ...].

    `batch`: every array has a leading axis of that length, examples of a vmap: x [batch, N, C, ...], weight [batch, C].
    """
    dtype, rows, examples, per, inner = _check(x, groups, batch, (weight, bias), (), ())
    flat = inner < FLAT
    if flat:
        weight, bias = _spread(weight, inner), _spread(bias, inner)
    y = pool.empty(x.shape, x.dtype)
    mean, rstd = (np.empty((*x.shape[: 1 if batch is None else 2], groups), stats_of(dtype)) for _ in range(2))
    stream = streams(y.nbytes, (per if flat else 1) * inner * y.itemsize)
    f = _kernel(_forward, dtype, _type(weight, dtype), _type(bias, dtype), flat, stream)
    arrays = (a for a in (x, weight, bias, y, mean, rstd) if a is not None)
    f(runtime.pool(), *arrays, eps, rows, examples, groups, per, inner)
    return y, mean, rstd


def group_norm_backward(
    gy: np.ndarray,
    x: np.ndarray,
    mean: np.ndarray,
    rstd: np.ndarray,
    weight: np.ndarray | None,
    groups: int,
    gm: np.ndarray | None = None,
    gr: np.ndarray | None = None,
    batch: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """gx = r P(gy w) + (gm - gr r² h)/n, gw = sum(gy h), gb = sum(gy); gm and gr are cotangents of mean and rstd."""
    dtype, rows, examples, per, inner = _check(x, groups, batch, (weight,), (mean, rstd, gm, gr), (gy,))
    stats = gm is not None or gr is not None
    if stats:
        zero = np.zeros(rows, rstd.dtype)
        gm, gr = zero if gm is None else gm, zero if gr is None else gr
    gx, vector = pool.empty(x.shape, x.dtype), x.dtype if weight is None else weight.dtype
    c = groups * per
    vshape: tuple[int, ...] = (c,) if batch is None else (batch, c)
    if inner < FLAT:
        wide = _spread(weight, inner)
        gw, gb = (np.empty((*vshape, inner), scratch_of(dtype)) for _ in range(2))
        stream = streams(gx.nbytes, per * inner * gx.itemsize, 3)
        f = _kernel(_backward_flat, dtype, _type(wide, dtype), stats, stream)
        arrays = (a for a in (gy, x, mean, rstd, wide, gm, gr, gx, gw, gb) if a is not None)
        f(runtime.pool(), *arrays, rows, examples, groups, per * inner)
        return gx, *(g.sum(-1).astype(vector, copy=False) for g in (gw, gb))
    gw, gb = np.empty(vshape, vector), np.empty(vshape, vector)
    ds, db = (np.empty(rows * per, scratch_of(dtype)) for _ in range(2))
    stream = streams(gx.nbytes, inner * gx.itemsize, 3)
    f = _kernel(_backward, dtype, _type(weight, dtype), stats, stream)
    arrays = (a for a in (gy, x, mean, rstd, weight, gm, gr, gx, gw, gb, ds, db) if a is not None)
    f(runtime.pool(), *arrays, rows, examples, groups, per, inner)
    return gx, gw, gb
