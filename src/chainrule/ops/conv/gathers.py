"""Weighted sums of entries by number: three bilinear ops, each the derivative of the others, from which every order and mode follow::

    gather_sum   y[c, p] = sum_t w[t, p] x[c, at[t, p]]
    gather_add   x[c, s] = the sum of w[t, p] y[c, p] over all (t, p) with at[t, p] = s
    gather_dot   w[t, p] = sum_c y[c, p] x[c, at[t, p]]

A number below zero reads nothing, and nothing is added there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...kernels import NotSupported
from ...kernels import gathers as kernels


def _conj(x: Any) -> Any:
    return x.conj() if x.dtype.category == dt.COMPLEX else x


def _compiled(kind: str, a: Any, b: Any, at: Any, entries: int) -> Any:
    """The compiled sum over all leading axes, which broadcast."""
    if a.dtype.char not in "fd" or not at.size:
        raise NotSupported
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], at.shape[:-2])
    a, b, at = (
        np.ascontiguousarray(v if v.shape[:-2] == lead else np.broadcast_to(v, (*lead, *v.shape[-2:])))
        for v in (a, b, at)
    )
    channels = (a if kind != "dot" else b).shape[-2]
    out = kernels.run(kind, a, b, at, (math.prod(lead), channels, entries, *at.shape[-2:]))
    return out.reshape(*lead, *out.shape[1:])


def _lead(*arrays: Any) -> list[Any]:
    lead = np.broadcast_shapes(*(v.shape[:-2] for v in arrays))
    return [np.broadcast_to(v, (*lead, *v.shape[-2:])) for v in arrays]


def _taken(x: Any, at: Any) -> Any:
    """x[c, at[t, p]], as ``(..., c, t, p)``, and 0 where nothing is read."""
    x, at = _lead(x, at)
    flat = np.maximum(at, 0).reshape(*at.shape[:-2], 1, at.shape[-2] * at.shape[-1])
    y = np.take_along_axis(x, np.broadcast_to(flat, (*x.shape[:-1], flat.shape[-1])), -1)
    y = y.reshape(*x.shape[:-1], *at.shape[-2:])
    return np.where(at[..., None, :, :] >= 0, y, x.dtype.type(0))


@op("gather_sum", core="(c,s),(t,p),(t,p)->(c,p)")
def gather_sum_p(x: Any, w: Any, at: Any, *, entries: int) -> Any:
    """``y[c, p] = sum_t w[t, p] x[c, at[t, p]]``."""
    try:
        return _compiled("sum", x, w, at, entries)
    except NotSupported:
        w = np.where(at >= 0, w, w.dtype.type(0))
        return (_taken(x, at) * w[..., None, :, :]).sum(-2)


@op("gather_add", core="(c,p),(t,p),(t,p)->(c,s)")
def gather_add_p(y: Any, w: Any, at: Any, *, entries: int) -> Any:
    """``x[c, s]``: the sum of ``w[t, p] y[c, p]`` over all (t, p) with ``at[t, p] = s``."""
    try:
        return _compiled("add", y, w, at, entries)
    except NotSupported:
        pass
    y, w, at = _lead(y, w, at)
    kind = np.result_type(y, w)
    each = y[..., :, None, :] * np.where(at >= 0, w, w.dtype.type(0))[..., None, :, :]
    n, c = math.prod(y.shape[:-2]), y.shape[-2]
    x = np.zeros((n * c, entries + 1), kind)
    k = at.shape[-2] * at.shape[-1]
    number: Any = np.broadcast_to(np.where(at >= 0, at, entries).reshape(n, 1, k), (n, c, k)).reshape(n * c, k)
    np.add.at(x, (np.arange(n * c)[:, None], number), each.reshape(n * c, k))
    return x[:, :entries].reshape(*y.shape[:-1], entries)


@op("gather_dot", core="(c,s),(c,p),(t,p)->(t,p)")
def gather_dot_p(x: Any, y: Any, at: Any, *, entries: int) -> Any:
    """``w[t, p] = sum_c y[c, p] x[c, at[t, p]]``."""
    try:
        return _compiled("dot", x, y, at, entries)
    except NotSupported:
        return (_taken(x, at) * y[..., :, None, :]).sum(-3)


for _p in (gather_sum_p, gather_add_p, gather_dot_p):
    _p.jvp(
        [
            lambda t, y, a, b, at, *, entries, _p=_p: _p(t, b, at, entries=entries),
            lambda t, y, a, b, at, *, entries, _p=_p: _p(a, t, at, entries=entries),
            None,
        ]
    )
gather_sum_p.vjp(
    [
        lambda g, y, x, w, at, *, entries: gather_add_p(g, _conj(w), at, entries=entries),
        lambda g, y, x, w, at, *, entries: gather_dot_p(_conj(x), g, at, entries=entries),
        None,
    ]
)
gather_add_p.vjp(
    [
        lambda g, x, y, w, at, *, entries: gather_sum_p(g, _conj(w), at, entries=entries),
        lambda g, x, y, w, at, *, entries: gather_dot_p(g, _conj(y), at, entries=entries),
        None,
    ]
)
gather_dot_p.vjp(
    [
        lambda g, w, x, y, at, *, entries: gather_add_p(_conj(y), g, at, entries=entries),
        lambda g, w, x, y, at, *, entries: gather_sum_p(_conj(x), g, at, entries=entries),
        None,
    ]
)
