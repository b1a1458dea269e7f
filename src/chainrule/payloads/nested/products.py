"""Nested bodies of matrix products: one product of all packed rows where the matrix is shared, else one for each bucket."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.errors import ChainruleError
from ...core.primitives import permute_p
from ...core.tensor import Tensor
from ...ops.activation import attention
from ...ops.linalg import matmul
from .array import NestedArray, differ, groups, join, padded, pick, target_shape
from .sizes import Geometry, Packing, RaggedInt, geometry_of, is_ragged

ndarray = np.ndarray


@matmul.matmul_p.on(NestedArray)
def _(a: Any, b: Any) -> Any:
    d = np.result_type(a.dtype, b.dtype)
    work = np.float32 if d in dt.HALVES else d
    if isinstance(a, NestedArray) and isinstance(b, ndarray) and a.geometry.trail and a.geometry.k >= 2:
        shared = _shared(b, a.geometry.k)
        if shared is not None:
            return _rows_times(a, shared, d, work)
    k = max(v.geometry.k for v in (a, b) if isinstance(v, NestedArray))
    n = (a if isinstance(a, NestedArray) else b).geometry.n
    ca, cb = _columns(a, k), _columns(b, k)
    if not _equal(ca[-1], cb[-2]):
        raise ChainruleError(
            f"matmul: the last dim of input ({ca[-1]!r}) must equal the second to last of other ({cb[-2]!r}) in every component"
        )
    out = (*target_shape([ca[:-2], cb[:-2]], "matmul"), ca[-2], cb[-1])
    lead = np.broadcast_shapes(_lead(a, k), _lead(b, k))
    parts = []
    for members, _ in groups(geometry_of(_distinct((*ca, *cb)), n)):
        y = np.matmul(
            _block(a, members, k, n).astype(work, copy=False), _block(b, members, k, n).astype(work, copy=False)
        )
        parts.append((members, y.astype(d, copy=False)))
    return join(parts, out, n, d, lead)


@matmul.linear_p.on(NestedArray)
def _(x: Any, w: Any, b: Any) -> Any:
    if isinstance(x, NestedArray) and isinstance(w, ndarray) and isinstance(b, ndarray) and w.ndim == 2 and b.ndim == 1:
        g, d = x.geometry, x.dtype
        if g.trail and g.k >= 2 and w.dtype == d == b.dtype:
            work = dt.WORK.get(d, d)
            return _rows_times(x, w.T, d, work, b.astype(work, copy=False))
    d = x.dtype
    x, w, b = (v.astype(np.float32) if d in dt.HALVES else v for v in (x, w, b))  # rounded once, in the end
    y = matmul.matmul_p.bind(Tensor(x), permute_p.bind(Tensor(w), dims=(-1, -2)))
    return (y + matmul.per_row(Tensor(b)))._value.astype(d, copy=False)


def _shared(b: ndarray, k: int) -> ndarray | None:
    """The matrices of a dense operand as ``[*lead, m, n]`` where all components share one, else None."""
    batch = b.shape[:-2]
    own = batch[max(len(batch) - (k - 1), 0) :]
    if any(m != 1 for m in own):
        return None
    return b.reshape((*batch[: max(len(batch) - (k - 1), 0)], *b.shape[-2:]))


def _rows_times(a: NestedArray, b: ndarray, d: Any, work: Any, bias: ndarray | None = None) -> NestedArray:
    """All packed rows times a matrix, plus a bias, in one product."""
    g = a.geometry
    count = g.packing.total * int(np.prod(g.trail[:-1]))
    rows = a.rows.reshape((*a.lead, count, g.trail[-1])).astype(work, copy=False)
    b = b.astype(work, copy=False)
    if rows.ndim == b.ndim == 2:
        y = matmul.times(rows, b, bias)
    else:
        y = np.matmul(rows, b)
        y = y if bias is None else y + bias
    h = g if b.shape[-1] == g.trail[-1] else Geometry(g.packing, (*g.trail[:-1], b.shape[-1]))
    return NestedArray(y.reshape((*y.shape[:-2], *h.rows)).astype(d, copy=False), h)


def _equal(a: Any, b: Any) -> bool:
    va, vb = (np.asarray(v.values if type(v) is RaggedInt else v) for v in (a, b))
    return bool((va == vb).all()) if va.shape == vb.shape or not (va.ndim and vb.ndim) else False


def _distinct(cols: tuple[Any, ...]) -> tuple[Any, ...]:
    """The ragged sizes among these, each once."""
    out: list[Any] = []
    for c in cols:
        if type(c) is RaggedInt and not any(c.values is o.values or c == o for o in out):
            out.append(c)
    return tuple(out)


def _columns(x: Any, k: int) -> tuple[Any, ...]:
    return x.geometry.columns if isinstance(x, NestedArray) else tuple(x.shape[max(x.ndim - k, 0) :])


def _lead(x: Any, k: int) -> tuple[int, ...]:
    return x.lead if isinstance(x, NestedArray) else tuple(x.shape[: max(x.ndim - k - 1, 0)])


def _block(x: Any, members: ndarray, k: int, n: int) -> ndarray:
    if isinstance(x, NestedArray):
        return padded(pick(x, members))
    if x.ndim <= k or x.shape[x.ndim - k - 1] == 1:
        return x
    return x.take(members, axis=x.ndim - k - 1)


# -- attention: buckets of sequences, padded; the padding is hidden ------------------------------------------------------------------


class _Bucket:
    """Sequences of similar lengths: the rows of their queries and keys as padded index arrays, and the pairs to hide."""

    def __init__(self, q: Packing, k: Packing, members: ndarray, causal: bool) -> None:
        self.queries, self.real_q = _padded_rows(q, members)
        self.keys, self.real_k = _padded_rows(k, members)
        short = k.sizes[members, -1]
        hide = None
        if (short != short.max(initial=0)).any():
            hide = (np.arange(int(short.max())) >= short[:, None])[:, None, :]
        if causal:
            late = ~np.tri(self.queries.shape[-1], self.keys.shape[-1], dtype=bool)
            hide = late if hide is None else hide | late
        heads = self.queries.ndim - 2
        self.hide = (
            hide if hide is None or hide.ndim == 2 else hide.reshape((len(members), *(1,) * heads, *hide.shape[1:]))
        )


def _padded_rows(p: Packing, members: ndarray) -> tuple[ndarray, ndarray | None]:
    """The packed rows of sequences as numbers ``[members, *heads, greatest length]``, and which of them are real."""
    heads = tuple(int(m) for m in p.columns[:-1])
    n = p.sizes[members, -1]
    step = np.arange(int(n.max(initial=0)))
    inside = step < n[:, None]
    place = np.minimum(step, np.maximum(n - 1, 0)[:, None])[:, None, :]
    head = np.arange(int(np.prod(heads)))[:, None] * n.reshape(-1, 1, 1)
    rows = p.offsets[:-1][members].reshape(-1, 1, 1) + head + place
    full = bool(inside.all())
    real = None if full else np.broadcast_to(inside[:, None], rows.shape).reshape((len(members), *heads, len(step)))
    return rows.reshape((len(members), *heads, len(step))), real


def _plan(q: NestedArray, k: NestedArray, causal: bool) -> list[_Bucket]:
    """The buckets of an attention, found once for a pair of packings."""
    p, r = q.geometry.packing, k.geometry.packing
    found = p.memo.get(("attention", causal))
    if found is None or found[0] is not r:
        cols = _distinct((p.columns[-1], r.columns[-1]))
        parts = [m for m, top in groups(geometry_of(cols, p.n), 32)]
        some = [m[(p.sizes[m, -1] > 0) & (r.sizes[m, -1] > 0)] for m in parts]
        found = p.memo["attention", causal] = (r, [_Bucket(p, r, m, causal) for m in some if len(m)])
    return found[1]


def _fused(*xs: Any) -> bool:
    """Whether operands are sequences ``[*heads, length, features]`` with only the length ragged, all alike."""
    if not all(isinstance(x, NestedArray) and len(x.geometry.trail) == 1 and x.geometry.u >= 1 for x in xs):
        return False
    heads = xs[0].geometry.packing.columns[:-1]
    return all(x.geometry.packing.columns[:-1] == heads and x.lead == xs[0].lead for x in xs) and not is_ragged(heads)


def _wide(x: NestedArray) -> ndarray:
    return x.rows.astype(np.float32) if x.dtype in dt.HALVES else x.rows


def _put(out: ndarray, rows: ndarray, real: ndarray | None, y: ndarray) -> None:
    """Padded results written to the packed rows that they belong to."""
    if real is None:
        out[..., rows, :] = y
    else:
        out[..., rows[real], :] = y[..., real, :]


@attention.attention_p.on(NestedArray)
def _(q: Any, k: Any, v: Any, *, scale: float, causal: bool) -> Any:
    if not _fused(q, k, v):
        return _composed(attention.compose, (q, k, v), scale, causal)
    _same_keys(k, v)
    a, b, c = (_wide(x) for x in (q, k, v))
    g = Geometry(q.geometry.packing, v.geometry.trail)
    out = np.zeros((*q.lead, *g.rows), a.dtype)
    for u in _plan(q, k, causal):
        y, _ = attention.attend(
            a.take(u.queries, axis=-2), b.take(u.keys, axis=-2), c.take(u.keys, axis=-2), scale, u.hide
        )
        _put(out, u.queries, u.real_q, y)
    return NestedArray(out.astype(q.dtype, copy=False), g)


@attention.attention_back_p.on(NestedArray)
def _(g: Any, q: Any, k: Any, v: Any, *, scale: float, causal: bool) -> Any:
    if not _fused(g, q, k, v):
        return _composed(None, (g, q, k, v), scale, causal)
    xs = [_wide(x) for x in (g, q, k, v)]
    outs = [np.zeros(x.shape, x.dtype) for x in xs[1:]]
    for u in _plan(q, k, causal):
        gr = xs[0].take(u.queries, axis=-2)
        if u.real_q is not None:
            gr[..., ~u.real_q, :] = 0  # queries after the end send nothing back
        back = attention.attend_back(
            gr, xs[1].take(u.queries, axis=-2), xs[2].take(u.keys, axis=-2), xs[3].take(u.keys, axis=-2), scale, u.hide
        )
        for out, rows, real, y in zip(
            outs, (u.queries, u.keys, u.keys), (u.real_q, u.real_k, u.real_k), back, strict=True
        ):
            _put(out, rows, real, y)
    return tuple(NestedArray(o.astype(x.dtype, copy=False), x.geometry) for o, x in zip(outs, (q, k, v), strict=True))


def _same_keys(k: NestedArray, v: NestedArray) -> None:
    if k.geometry.packing.columns != v.geometry.packing.columns:
        raise ChainruleError(
            differ(
                k.geometry.columns[-2],
                v.geometry.columns[-2],
                k.geometry.k - 2,
                "scaled_dot_product_attention: key and value",
            )
        )


def _composed(f: Any, xs: tuple[Any, ...], scale: float, causal: bool) -> Any:
    """The composition on payloads, for operands that the buckets do not cover."""
    ts = [Tensor(x) for x in xs]
    y = f(*ts, scale, causal) if len(xs) == 3 else attention._composed_back(scale, causal)(*ts)
    return tuple(t._value for t in y) if isinstance(y, tuple) else y._value
