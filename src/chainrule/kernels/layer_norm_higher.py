"""Second-order rules of layer norm and RMS norm: tangent, reverse of the reverse rule, tangent of the reverse rule, each fused.

The reverse rule is a function of (gy, x, mean, rstd, w): gx = r P(u), u = gy w, P(t) = t - mean(t) - h mean(t h), h = (x - m) r.
Here m and r are independent arguments, with tangents and cotangents of their own, as they are for the operators that call these.
RMS norm is the same without m: `mean` is None and P(t) = t - h mean(t h). With `batch`, per-column arrays are [batch, n], each for
a batch-th of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .calls import Calls, NotSupported, kernel_type, prod, stats_of, vector_type
from .lang import DType, Kernel, Value, stats_type
from .layer_norm import _Norm
from .pool import empty
from .rows import prepare


class _Second(_Norm):
    """Common to the rules below: optional arrays by name, statistics as the first coefficients."""

    arrays = 4

    small, large = (2, 1), (1, 2)

    def __init__(self, dtype: DType, center: bool, *types: DType | None):
        self.dtype, self.center, self.types = dtype, center, types

    def elements(self, k: Kernel, *names: str | None) -> list[Any]:
        return [k.array(n, self.dtype) for n in names if n is not None]

    def per_row(self, k: Kernel, *names: str) -> list[Any]:
        return [k.array(n, stats_type(self.dtype)) for n in names]

    def per_column(self, k: Kernel, names: tuple[str, ...]) -> None:
        """Arrays for the names whose type is not None; `self.at[name]` is their place among the vectors."""
        self.vectors, self.at = [], {}
        for n, t in zip(names, self.types, strict=True):
            if t is not None:
                self.at[n] = len(self.vectors)
                self.vectors.append(k.array(n, t))

    def pick(self, vec: list[Value], name: str) -> Value | None:
        return vec[self.at[name]] if name in self.at else None

    def normalised(self, x: Value, coef: list[Value]) -> Value:
        return (x - coef[1]) * coef[0] if self.center else x * coef[0]


class _Tangent(_Second):
    """ty = r P(tx) w + h tw + tb, tm = mean(tx), tr = -r² mean(h tx)"""

    name = "layer_norm_tangent"

    def declare(self, k: Kernel, stream: bool) -> None:
        self.sizes(k)
        self.reductions = (("add", "add") if self.center else ("add",),)
        self.inputs = self.elements(k, "x", "tx")
        self.stats = self.per_row(k, "rstd", *(("mean",) if self.center else ()))
        self.per_column(k, ("w", "tw", "tb"))
        self.outputs, self.columns = [k.array("ty", self.dtype, stream)], []
        self.out = self.per_row(k, "tr", *(("tm",) if self.center else ()))

    def start(self, row: Any) -> Any:
        return [s[row] for s in self.stats]

    def terms(self, stage: Any, x: Any, vec: Any, coef: Any) -> Any:
        return [(self.normalised(x[0], coef), x[1])] + ([(x[1], None)] if self.center else [])

    def finish(self, stage: Any, row: Any, sums: Any, coef: Any) -> Any:
        means = [self.mean_of(s) for s in sums]
        self.out[0][row] = -(coef[0] * coef[0] * means[0])
        if self.center:
            self.out[1][row] = means[1]
        return means

    def apply(self, x: Any, vec: Any, coef: Any) -> Any:
        h = self.normalised(x[0], coef)
        means = coef[2:] if self.center else coef[1:]
        t = coef[0] * self.project(x[1], h, means[1] if self.center else None, means[0])
        w, tw, tb = (self.pick(vec, n) for n in ("w", "tw", "tb"))
        if w is not None:
            t = t * w
        if tw is not None:
            t = self.k.fma(h, tw, t)
        return [t if tb is None else t + tb], []


class _Reverse2(_Second):
    """From cotangents a, b, d of gx, gw, gb: those of gy, x, mean, rstd and w.

    of gy: r P(a) w + b h + d. Of w: sum over rows of gy r P(a). Through h: e = b gy - r (a mean(u h) + u mean(a h)), which gives
    x: r e, mean: -r sum(e), rstd: s + sum(e h)/r, with s = sum(a P(u)).
    """

    name = "layer_norm_reverse2"

    def __init__(self, dtype: DType, center: bool, a: bool, weight_out: DType | None, *types: DType | None):
        super().__init__(dtype, center, *types)
        self.a, self.weight_out = a, weight_out

    def declare(self, k: Kernel, stream: bool) -> None:
        self.sizes(k)
        self.inputs = self.elements(k, "gy", "x", "a" if self.a else None)
        self.stats = self.per_row(k, "rstd", *(("mean",) if self.center else ()))
        self.per_column(k, ("w", "b", "d"))
        self.outputs = [k.array("ggy", self.dtype, stream), k.array("gx", self.dtype, stream)]
        self.out = self.per_row(k, "gr", *(("gm",) if self.center else ()))
        self.columns = [k.array("gw", self.weight_out)] if self.weight_out is not None else []
        self.names = (["ah", "uh", "au"] + (["a", "u"] if self.center else [])) if self.a else []
        if "b" in self.at:
            self.names += ["eh"] + (["e"] if self.center else [])
        self.reductions = (("add",) * len(self.names),) if self.names else ()
        self.zero = k.const(0.0, k.compute)

    def start(self, row: Any) -> Any:
        if not self.names:  # nothing reaches the statistics
            for o in self.out:
                o[row] = 0.0
        return [s[row] for s in self.stats]

    def parts(self, x: Any, vec: Any, coef: Any) -> Any:
        h, w = self.normalised(x[1], coef), self.pick(vec, "w")
        return x[0], h, x[0] if w is None else x[0] * w, x[2] if self.a else None

    def terms(self, stage: Any, x: Any, vec: Any, coef: Any) -> Any:
        gy, h, u, a = self.parts(x, vec, coef)
        b = self.pick(vec, "b")
        e = None if b is None else b * gy
        have = {"ah": (a, h), "uh": (u, h), "au": (a, u), "a": (a, None), "u": (u, None), "eh": (e, h), "e": (e, None)}
        return [have[n] for n in self.names]

    def finish(self, stage: Any, row: Any, sums: Any, coef: Any) -> Any:
        r, n = coef[0], self.count
        m = {name: self.mean_of(s) for name, s in zip(self.names, sums, strict=True)}
        eh, e = m.get("eh", self.zero), m.get("e", self.zero)
        s = self.zero
        if self.a:
            s = m["au"] - m["ah"] * m["uh"]
            eh = eh - 2.0 * r * m["ah"] * m["uh"]
            if self.center:
                s = s - m["a"] * m["u"]
                e = e - r * (m["a"] * m["uh"] + m["u"] * m["ah"])
        self.out[0][row] = n * (s + eh / r)
        if self.center:
            self.out[1][row] = -(r * n * e)
        return [m[name] for name in ("ah", "uh") + (("a",) if self.center else ())] if self.a else []

    def apply(self, x: Any, vec: Any, coef: Any) -> Any:
        k, r = self.k, coef[0]
        gy, h, u, a = self.parts(x, vec, coef)
        w, b, d = (self.pick(vec, n) for n in ("w", "b", "d"))
        mine = coef[2:] if self.center else coef[1:]
        ggy, e, column = d if d is not None else self.zero, self.zero, self.zero
        if b is not None:
            ggy, e = k.fma(b, h, ggy), b * gy
        if a is not None:
            p = r * self.project(a, h, mine[2] if self.center else None, mine[0])
            ggy = ggy + p if w is None else k.fma(p, w, ggy)
            e = e - r * k.fma(a, mine[1], u * mine[0])
            column = p
        return [ggy, r * e], [(gy, column)] if self.columns else []


class _TangentOfReverse(_Second):
    """With u = gy w, tu = tgy w + gy tw, th = r (tx - tm) + h tr/r:

    tgx = tr P(u) + r (tu - mean(tu) - h (mean(tu h) + mean(u th)) - th mean(u h)), tgw = sum(tgy h + gy th), tgb = sum(tgy)
    """

    name = "layer_norm_tangent_of_reverse"

    def __init__(
        self, dtype: DType, center: bool, tgy: bool, tx: bool, gw: DType | None, gb: DType | None, *types: DType | None
    ):
        super().__init__(dtype, center, *types)
        self.tgy, self.tx, self.gw, self.gb = tgy, tx, gw, gb if tgy else None

    def declare(self, k: Kernel, stream: bool) -> None:
        self.sizes(k)
        self.inputs = self.elements(k, "gy", "x", "tgy" if self.tgy else None, "tx" if self.tx else None)
        self.stats = self.per_row(
            k, "rstd", *(("mean",) if self.center else ()), "tr", *(("tm",) if self.center else ())
        )
        self.per_column(k, ("w", "tw"))
        self.outputs = [k.array("tgx", self.dtype, stream)]
        self.columns = [k.array(s, t) for s, t in (("tgw", self.gw), ("tgb", self.gb)) if t is not None]
        self.known = 4 if self.center else 2
        self.reductions = (("add", "add", "add", "add", "add") if self.center else ("add", "add", "add"),)

    def start(self, row: Any) -> Any:
        return [s[row] for s in self.stats]

    def parts(self, x: Any, vec: Any, coef: Any) -> Any:
        k, r = self.k, coef[0]
        gy, h, w, tw = x[0], self.normalised(x[1], coef), self.pick(vec, "w"), self.pick(vec, "tw")
        rest = list(x[2:])
        tgy = rest.pop(0) if self.tgy else None
        tx = rest.pop(0) if self.tx else None
        u = gy if w is None else gy * w
        tu = k.const(0.0, k.compute) if tgy is None else tgy if w is None else tgy * w
        if tw is not None:
            tu = k.fma(gy, tw, tu)
        th = h * (coef[2 if self.center else 1] / r)
        if self.center:
            th = k.fma(r, -coef[3] if tx is None else tx - coef[3], th)
        elif tx is not None:
            th = k.fma(r, tx, th)
        return gy, tgy, h, u, tu, th

    def terms(self, stage: Any, x: Any, vec: Any, coef: Any) -> Any:
        _, _, h, u, tu, th = self.parts(x, vec, coef)
        return [(u, h), (tu, h), (u, th)] + ([(u, None), (tu, None)] if self.center else [])

    def finish(self, stage: Any, row: Any, sums: Any, coef: Any) -> Any:
        m = [self.mean_of(s) for s in sums]
        return [m[0], m[1] + m[2], *m[3:]]

    def apply(self, x: Any, vec: Any, coef: Any) -> Any:
        k, r = self.k, coef[0]
        gy, tgy, h, u, tu, th = self.parts(x, vec, coef)
        tr, m = coef[2 if self.center else 1], coef[self.known :]
        plain = self.project(u, h, m[2] if self.center else None, m[0])
        moved = k.fma(-h, m[1], k.fma(-th, m[0], tu - m[3] if self.center else tu))
        columns = []
        if self.gw is not None:
            columns.append((k.fma(tgy, h, gy * th) if tgy is not None else gy * th, None))
        if self.gb is not None:
            columns.append((tgy, None))
        return [k.fma(r, moved, tr * plain)], columns


def _prepare(
    plan: type[_Second],
    xd: np.dtype,
    shape: tuple[int, ...],
    rows: int,
    batch: int | None,
    center: bool,
    flags: tuple[Any, ...],
    *vectors: Any,
) -> Any:
    dtype = kernel_type(xd)
    n = prod(shape) // rows if rows else 0
    types = tuple(vector_type(v, dtype) for v in vectors)
    flags = tuple(vector_type(f, dtype) if isinstance(f, np.dtype) else f for f in flags)
    go = prepare(plan, (dtype, center, *flags, *types), rows, n, prod(shape) * dtype.size, batch or 1)
    return go, n if batch is None else (batch, n), n * (batch or 1), stats_of(dtype)


_calls = Calls(_prepare)


def _dt(a: np.ndarray | None) -> np.dtype | None:
    return None if a is None else a.dtype


def _given(arrays: tuple[np.ndarray | None, ...], size: int, dtype: np.dtype | None) -> list[np.ndarray]:
    """Those that are there, contiguous, of the size and (unless None) the type."""
    out = []
    for a in arrays:
        if a is not None:
            if a.size != size or not a.flags.c_contiguous or (dtype is not None and a.dtype != dtype):
                raise NotSupported
            out.append(a)
    return out


def layer_norm_tangent(
    x: np.ndarray,
    tx: np.ndarray,
    mean: np.ndarray | None,
    rstd: np.ndarray,
    weight: np.ndarray | None,
    tw: np.ndarray | None = None,
    tb: np.ndarray | None = None,
    batch: int | None = None,
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """ty = r P(tx) w + h tw + tb, tmean = mean(tx), trstd = -r² mean(h tx); mean None: RMS norm"""
    rows, center = rstd.size, mean is not None
    call = _calls[_Tangent, x.dtype, x.shape, rows, batch, center, (), _dt(weight), _dt(tw), _dt(tb)]
    if call is None:
        raise NotSupported
    go, _, size, stats = call
    given = [
        *_given((x, tx), x.size, x.dtype),
        *_given((rstd, mean), rows, stats),
        *_given((weight, tw, tb), size, None),
    ]
    ty, tr, tm = empty(x.shape, x.dtype), np.empty(rows, stats), np.empty(rows, stats) if center else None
    go(*given, ty, tr, *([tm] if center else []))
    return ty, tm, tr


def layer_norm_double_backward(
    a: np.ndarray | None,
    b: np.ndarray | None,
    d: np.ndarray | None,
    gy: np.ndarray,
    x: np.ndarray,
    mean: np.ndarray | None,
    rstd: np.ndarray,
    weight: np.ndarray | None,
    batch: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray, np.ndarray | None]:
    """Cotangents of gy, x, mean, rstd and weight from those (a, b, d) of the reverse rule's gx, gw, gb; None is zero."""
    rows, center = rstd.size, mean is not None
    flags = (a is not None, _dt(weight) if a is not None else None)
    call = _calls[_Reverse2, x.dtype, x.shape, rows, batch, center, flags, _dt(weight), _dt(b), _dt(d)]
    if call is None:
        raise NotSupported
    go, vshape, size, stats = call
    given = [
        *_given((gy, x, a), x.size, x.dtype),
        *_given((rstd, mean), rows, stats),
        *_given((weight, b, d), size, None),
    ]
    ggy, gx, gr = empty(x.shape, x.dtype), empty(x.shape, x.dtype), np.empty(rows, stats)
    gm = np.empty(rows, stats) if center else None
    gw = None if weight is None else np.zeros(vshape, weight.dtype) if a is None else np.empty(vshape, weight.dtype)
    given += [ggy, gx, gr, gm] if gm is not None else [ggy, gx, gr]
    go(*given, *([gw] if gw is not None and a is not None else []))
    return ggy, gx, gm, gr, gw


def layer_norm_backward_tangent(
    gy: np.ndarray,
    tgy: np.ndarray | None,
    x: np.ndarray,
    tx: np.ndarray | None,
    mean: np.ndarray | None,
    tmean: np.ndarray | None,
    rstd: np.ndarray,
    trstd: np.ndarray | None,
    weight: np.ndarray | None,
    tw: np.ndarray | None = None,
    batch: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Tangents of gx, gw, gb from those of the reverse rule's arguments; None is zero (tgb is None when tgy is)."""
    rows, center = rstd.size, mean is not None
    vector = x.dtype if weight is None else weight.dtype
    flags = (tgy is not None, tx is not None, vector, vector)
    call = _calls[_TangentOfReverse, x.dtype, x.shape, rows, batch, center, flags, _dt(weight), _dt(tw)]
    if call is None:
        raise NotSupported
    go, vshape, size, stats = call
    if trstd is None or (center and tmean is None):
        zero = np.zeros(rows, stats)
        trstd, tmean = zero if trstd is None else trstd, zero if center and tmean is None else tmean
    given = [
        *_given((gy, x, tgy, tx), x.size, x.dtype),
        *_given((rstd, mean, trstd, tmean if center else None), rows, stats),
    ]
    given += _given((weight, tw), size, None)
    tgx, tgw = empty(x.shape, x.dtype), np.empty(vshape, vector)
    tgb = np.empty(vshape, vector) if tgy is not None else None
    go(*given, tgx, tgw, *([tgb] if tgb is not None else []))
    return tgx, tgw, tgb
