"""Normalisation over trailing dims, ``y = h w + b`` with ``h = (x - m) r``: the ops of layer norm and of RMS norm (m = 0).

With ``P(u) = u - mean(u) - h mean(u h)`` (RMS norm: without the first mean), means over the normalised dims:

    forward   m = mean(x), r = 1 / sqrt(mean((x - m)**2) + eps)
    tangent   ty = r P(tx) w + h tw + tb, tm = mean(tx), tr = -r**2 mean(h tx)
    reverse   gx = r P(gy w) + (gm - gr r**2 h) / n, gw = sum(gy h), gb = sum(gy)

The reverse rule is an op of gy, x, m, r, w, gm and gr, so the dependence of m and r on x is counted at every order. What is
differentiated next, the tangent and the transpose of the reverse rule, are ops with kernels as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import kernels
from ...core.declare import fused
from ...core.derive import jvp_through, vjp_through
from ...core.shapes import sizes_of, zeros_like_tensor
from ...core.tensor import Tensor
from ...kernels import NotSupported
from ..elementwise.elementary import rsqrt
from ..reduce import adding as sums
from .base import all_dense, dense, narrow, reshape, spaced, spread_lead, stats, total, wide

_ALL = (True, True, True)
DIMS = [tuple(range(-n, 0)) for n in range(16)]


def _size(x: Any, nd: int) -> int:
    n = 1
    for s in x.shape[x.ndim - nd :]:
        n *= s
    return n


def mean_over(x: Tensor, nd: int) -> Tensor:
    """The mean over the last `nd` dims, kept as size 1."""
    n = _size(x, nd)
    return total(x, DIMS[nd], True) / (n if n else float("nan"))


def aligned(w: Tensor, nd: int, rank: int) -> Tensor:
    """A weight with leading axes: ones inserted so that they meet those of the input."""
    s = tuple(sizes_of(w))
    return w if len(s) == nd else reshape(w, (*s[: len(s) - nd], *(1,) * (rank - nd), *s[len(s) - nd :]))


def _aligned_array(w: Any, nd: int, rank: int) -> Any:
    if w is None or w.ndim == nd:
        return w
    s = w.shape
    return w.reshape(*s[: len(s) - nd], *(1,) * (rank - nd), *s[len(s) - nd :])


class Rows:
    """The five ops of one of the two normalisations: `centre` says whether the mean is taken off."""

    def __init__(self, name: str, centre: bool) -> None:
        self.centre = centre
        k = 2 if centre else 1  # the number of kept statistics
        self.forward = fused(
            name,
            self._forward,
            lambda nd, rank, eps: (rank, nd, nd),
            lambda nd, rank, eps: (rank,) * (1 + k),
            self._forward_kernel,
        )
        self.forward.jvp(self._push, sparse=True)
        self.forward.vjp(self._pull, sparse=True, keep=((False, *(True,) * k), (True, True, False)))
        self.tangent = fused(
            f"{name}_tangent",
            self._tangent,
            lambda nd, rank: (rank, rank, rank, rank, nd, nd, nd),
            lambda nd, rank: (rank,) * (1 + k),
            self._tangent_kernel,
        )
        self.backward = fused(
            f"{name}_backward",
            self._backward,
            lambda nd, rank, mask: (rank, rank, rank, rank, nd, rank, rank),
            lambda nd, rank, mask: tuple(r for r, m in zip((rank, nd, nd), mask, strict=True) if m),
            self._backward_kernel,
        )
        self.backward.jvp(self._push2, sparse=True)
        self.backward.vjp(self._pull2, sparse=True, keep=(False, None))
        self.backward_tangent = fused(
            f"{name}_backward_tangent",
            self._backward_tangent,
            lambda nd, rank, mask: (*(rank,) * 8, nd, nd),
            self.backward.spec.outs,
            self._backward_tangent_kernel,
            expand=True,
        )
        self.double_backward = fused(
            f"{name}_double_backward",
            self._double_backward,
            lambda nd, rank, mask, weight: (rank, nd, nd, rank, rank, rank, rank, nd),
            lambda nd, rank, mask, weight: (rank,) * (3 + centre) + ((nd,) if weight else ()),
            self._double_backward_kernel,
            expand=True,
        )

    # -- bodies in plain ops ------------------------------------------------------------------------------------------
    def _normal(self, x: Tensor, m: Any, r: Tensor) -> Tensor:
        return (x if m is None else x - m) * r

    def _project(self, u: Tensor, h: Tensor, nd: int) -> Tensor:
        p = u - h * mean_over(u * h, nd)
        return p - mean_over(u, nd) if self.centre else p

    def _forward(self, x: Any, w: Any, b: Any, *, nd: int, rank: int, eps: float) -> Any:
        """y = h w + b and the kept statistics."""
        xw = wide(x)
        m = mean_over(xw, nd) if self.centre else None
        c = xw if m is None else xw - m
        r = rsqrt.bind(mean_over(c * c, nd) + eps)
        y = c * r
        if w is not None:
            y = y * aligned(w, nd, rank)
        if b is not None:
            y = y + aligned(b, nd, rank)
        y = narrow(y, x)
        return (y, stats(r, x)) if m is None else (y, stats(m, x), stats(r, x))

    def _tangent(self, x: Any, tx: Any, m: Any, r: Any, w: Any, tw: Any, tb: Any, *, nd: int, rank: int) -> Any:
        """The tangents of y and of the kept statistics."""
        h = self._normal(wide(x), m, r)
        ty: Any = None
        tm: Any
        if tx is not None:
            t = wide(tx)
            tm, th = (mean_over(t, nd) if self.centre else None), mean_over(h * t, nd)
            ty = r * ((t if tm is None else t - tm) - h * th)
            ty = ty if w is None else ty * aligned(w, nd, rank)
            tr = -(r * r) * th
        else:
            tm = tr = zeros_like_tensor(r)
        for part in (None if tw is None else h * aligned(tw, nd, rank), None if tb is None else aligned(tb, nd, rank)):
            if part is not None:
                ty = part if ty is None else ty + part
        if len(sizes_of(ty)) < rank:  # a tangent of the bias alone
            ty = ty.expand(*sizes_of(x))
        return (narrow(ty, x), *([stats(tm, x)] if self.centre else []), stats(tr, x))

    def _backward(
        self, gy: Any, x: Any, m: Any, r: Any, w: Any, gm: Any, gr: Any, *, nd: int, rank: int, mask: Any
    ) -> Any:
        """The cotangents of x, w and b that `mask` asks for."""
        g = None if gy is None else wide(gy)
        h = self._normal(wide(x), m, r)
        rows = tuple(range(-rank, -nd))
        out = []
        if mask[0]:
            gx: Any = None
            if g is not None:
                gx = r * self._project(g if w is None else g * aligned(w, nd, rank), h, nd)
            part = None if gm is None else gm
            if gr is not None:
                c = -gr * (r * r) * h
                part = c if part is None else part + c
            if part is not None:
                part = part / _size(x, nd)
                gx = part if gx is None else gx + part
            gx = zeros_like_tensor(x) if gx is None else narrow(gx, x)
            out.append(gx if sizes_of(gx) == sizes_of(h) else gx + zeros_like_tensor(h).to(gx.dtype))
        like = x if w is None else w
        if mask[1]:
            out.append(
                narrow(total(h * g, rows), like) if g is not None else zeros_like_tensor(total(h, rows)).to(like.dtype)
            )
        if mask[2]:
            out.append(
                narrow(total(g, rows), like) if g is not None else zeros_like_tensor(total(h, rows)).to(like.dtype)
            )
        return tuple(out)

    def _backward_tangent(
        self,
        gy: Any,
        tgy: Any,
        x: Any,
        tx: Any,
        m: Any,
        tm: Any,
        r: Any,
        tr: Any,
        w: Any,
        tw: Any,
        *,
        nd: int,
        rank: int,
        mask: Any,
    ) -> Any:
        """The tangents of the reverse rule's results."""
        xs, kw = [gy, x, m, r, w, None, None], {"nd": nd, "rank": rank, "mask": mask}
        ts = jvp_through(self.backward.spec, [tgy, tx, tm, tr, tw, None, None], xs, kw)
        if ts is None or any(t is None for t in ts):
            ys = self.backward.spec(*xs, **kw)
            ts = [zeros_like_tensor(y) if t is None else t for t, y in zip(ts or [None] * len(ys), ys, strict=True)]
        return tuple(ts)

    def _double_backward(
        self,
        a: Any,
        b: Any,
        d: Any,
        gy: Any,
        x: Any,
        m: Any,
        r: Any,
        w: Any,
        *,
        nd: int,
        rank: int,
        mask: Any,
        weight: bool,
    ) -> Any:
        """The cotangents of gy, x, m, r and w from those of the reverse rule's results."""
        need = [True, True, self.centre, True, weight, False, False]
        g = [c for c, on in zip((a, b, d), mask, strict=True) if on]
        xs = [gy, x, m, r, w, None, None]
        gs = vjp_through(self.backward.spec, g, xs, {"nd": nd, "rank": rank, "mask": mask}, need)
        return tuple([zeros_like_tensor(v) if c is None else c for c, v, n in zip(gs, xs, need, strict=True) if n])

    # -- kernels ------------------------------------------------------------------------------------------------------
    def _forward_kernel(self, x: Any, w: Any, b: Any, *, nd: int, rank: int, eps: float) -> Any:
        if not x.size:
            raise NotSupported
        if (w is None or w.ndim == nd) and (b is None or b.ndim == nd):
            try:
                return self._normalised(x, w, b, nd, eps)
            except NotSupported:
                return self._normalised(dense(x), dense(w), dense(b), nd, eps)
        if x.itemsize < 4:
            raise NotSupported
        y, *kept = self._normalised(dense(x), None, None, nd, eps)
        y = _affine(y, w, b, nd, rank)
        lead = y.shape[: y.ndim - rank]
        return y, *[np.broadcast_to(s, lead + s.shape[s.ndim - rank :]) for s in kept]

    def _normalised(self, x: Any, w: Any, b: Any, nd: int, eps: float) -> Any:
        if nd == 1:
            n, shape = x.shape[-1], (*x.shape[:-1], 1)
        else:
            n, shape = _size(x, nd), (*x.shape[: x.ndim - nd], *(1,) * nd)
        if self.centre:
            y, m, r = kernels.layer_norm(x, w, b, eps, n)
            return y, m.reshape(shape), r.reshape(shape)
        if b is not None:
            raise NotSupported
        y, r = kernels.rms_norm(x, w, eps, n)
        return y, r.reshape(shape)

    def _tangent_kernel(self, x: Any, tx: Any, m: Any, r: Any, w: Any, tw: Any, tb: Any, *, nd: int, rank: int) -> Any:
        if tx is None or tx.shape != x.shape or not x.size or any(v is not None and v.ndim != nd for v in (w, tw, tb)):
            raise NotSupported
        if r.shape[: r.ndim - nd] != x.shape[: x.ndim - nd]:
            raise NotSupported
        ty, tm, tr = kernels.layer_norm_tangent(dense(x), dense(tx), dense(m), dense(r), dense(w), dense(tw), dense(tb))
        return (ty, tm.reshape(r.shape), tr.reshape(r.shape)) if self.centre else (ty, tr.reshape(r.shape))  # type: ignore[union-attr]

    def _backward_kernel(
        self, gy: Any, x: Any, m: Any, r: Any, w: Any, gm: Any, gr: Any, *, nd: int, rank: int, mask: Any
    ) -> Any:
        if gy is None or not x.size:
            raise NotSupported
        if gy.ndim != x.ndim or gy.shape != x.shape:
            x, gy, m, r, gm, gr = spread_lead(rank, x, gy, m, r, gm, gr)
        if self.centre and nd == 1 and x.ndim == rank and w is not None and w.ndim == 1 and gm is None and gr is None:
            try:
                got = kernels.layer_norm_backward(gy, x, m, r, w, mask)
                return got if mask == _ALL else tuple([v for v in got if v is not None])
            except NotSupported:
                pass
        if gy.shape != x.shape or r.shape[: r.ndim - nd] != x.shape[: x.ndim - nd]:
            raise NotSupported
        if (gm is not None and gm.ndim != x.ndim) or (gr is not None and gr.ndim != x.ndim):
            raise NotSupported
        gy, x, m, r, gm, gr = all_dense(gy, x, m, r, gm, gr)
        each = x.ndim != rank  # examples in front: their weights' gradients are not summed
        late = w is not None and w.ndim != nd
        if (each or late) and x.itemsize < 4:
            raise NotSupported
        if late:
            u, wk = dense(gy * _aligned_array(w, nd, rank)), None
            if u.shape != x.shape:
                raise NotSupported
        else:
            u, wk = gy, dense(w)
        sub = (mask[0], False, False) if each or late else mask
        gx = gw = gb = None
        if True in sub:
            if self.centre:
                gx, gw, gb = kernels.layer_norm_backward(u, x, m, r, wk, sub, gm, gr)
            elif sub[2]:
                raise NotSupported
            else:
                gx, gw = kernels.rms_norm_backward(u, x, r, wk, sub[:2], dense(gr))
        shape = x.shape[x.ndim - nd :]
        if sub is mask:
            out = [gx] if mask[0] else []
            out += [v.reshape(shape) for v in (gw, gb) if v is not None]
            return tuple(out)
        rows = tuple(range(-rank, -nd))
        out = [gx] if mask[0] else []
        if mask[1]:
            h = (x if m is None else x - m) * r
            h *= gy
            out.append(sums.total(h, rows))
        if mask[2]:
            out.append(sums.total(gy, rows))
        return tuple(out)

    def _backward_tangent_kernel(
        self,
        gy: Any,
        tgy: Any,
        x: Any,
        tx: Any,
        m: Any,
        tm: Any,
        r: Any,
        tr: Any,
        w: Any,
        tw: Any,
        *,
        nd: int,
        rank: int,
        mask: Any,
    ) -> Any:
        if (
            x.ndim != rank
            or not x.size
            or any(v is not None and v.shape != x.shape for v in (gy, tgy, tx))
            or gy is None
        ):
            raise NotSupported
        if any(v is not None and v.ndim != nd for v in (w, tw)):
            raise NotSupported
        gx, gw, gb = kernels.layer_norm_backward_tangent(
            dense(gy), dense(tgy), dense(x), dense(tx), dense(m), dense(tm), dense(r), dense(tr), dense(w), dense(tw)
        )
        if mask[2] and gb is None:
            gb = np.zeros(gw.shape, gw.dtype)
        shape = x.shape[x.ndim - nd :]
        return tuple([v if v is gx else v.reshape(shape) for v, on in zip((gx, gw, gb), mask, strict=True) if on])  # type: ignore[union-attr]

    def _double_backward_kernel(
        self,
        a: Any,
        b: Any,
        d: Any,
        gy: Any,
        x: Any,
        m: Any,
        r: Any,
        w: Any,
        *,
        nd: int,
        rank: int,
        mask: Any,
        weight: bool,
    ) -> Any:
        if gy is None or gy.shape != x.shape or x.ndim != rank or not x.size or not (a is None or a.shape == x.shape):
            raise NotSupported
        if any(v is not None and v.ndim != nd for v in (b, d, w)) or (a is None and b is None and d is None):
            raise NotSupported
        ggy, gx, gm, gr, gw = kernels.layer_norm_double_backward(
            dense(a), dense(b), dense(d), dense(gy), dense(x), dense(m), dense(r), dense(w)
        )
        out = [ggy, gx, *([gm.reshape(r.shape)] if self.centre else []), gr.reshape(r.shape)]  # type: ignore[union-attr]
        return (*out, gw.reshape(w.shape)) if weight else tuple(out)  # type: ignore[union-attr]

    # -- rules --------------------------------------------------------------------------------------------------------
    def _saved(self, y: Any) -> tuple[Any, Any]:
        return (y[1], y[2]) if self.centre else (None, y[1])

    def _push(self, ts: list[Any], y: Any, *xs: Any, **kw: Any) -> Any:
        m, r = self._saved(y)
        return self.tangent.bind(xs[0], ts[0], m, r, xs[1], ts[1], ts[2], nd=kw["nd"], rank=kw["rank"])

    def _pull(self, g: Any, y: Any, *xs: Any, need: list[bool], **kw: Any) -> list[Any]:
        m, r = self._saved(y)
        gm, gr = (g[1], g[2]) if self.centre else (None, g[1])
        mask = (need[0], need[1], need[2])
        got = self.backward.bind(g[0], xs[0], m, r, xs[1], gm, gr, nd=kw["nd"], rank=kw["rank"], mask=mask)
        return got if mask == _ALL else spaced(got, mask)

    def _push2(self, ts: list[Any], y: Any, *xs: Any, **kw: Any) -> Any:
        gy, x, m, r, w, gm, gr = xs
        tgy, tx, tm, tr, tw, *_ = ts
        if gm is None and gr is None and gy is not None:
            return self.backward_tangent.bind(gy, tgy, x, tx, m, tm, r, tr, w, tw, **kw)
        return jvp_through(self.backward.spec, ts, list(xs), kw)

    def _pull2(self, g: Any, y: Any, *xs: Any, need: list[bool], **kw: Any) -> list[Any]:
        gy, x, m, r, w, gm, gr = xs
        if gm is None and gr is None and gy is not None:
            mask = kw["mask"]
            full = iter(g)
            a, b, d = [next(full) if on else None for on in mask]
            got = self.double_backward.bind(a, b, d, gy, x, m, r, w, weight=w is not None, **kw)
            ggy, gx, *rest = got
            out = [ggy, gx, *(rest if self.centre else [None, *rest])]
            return out + [None] * (7 - len(out))
        return vjp_through(self.backward.spec, g, list(xs), kw, need)


def _affine(y: Any, w: Any, b: Any, nd: int, rank: int) -> Any:
    """y w + b for weights with leading axes."""
    w, b = _aligned_array(w, nd, rank), _aligned_array(b, nd, rank)
    if w is not None:
        y = y * w
    return y if b is None else y + b


layer = Rows("layer_norm", True)
rms = Rows("rms_norm", False)
