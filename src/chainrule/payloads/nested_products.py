"""Nested bodies of matrix products: one product of all packed rows where the matrix is shared, else one for each bucket."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.errors import ChainruleError
from ..ops import matmul
from .nested import NestedArray, groups, join, padded, pick, target_shape
from .ragged import Geometry, RaggedInt, geometry_of

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


def _shared(b: ndarray, k: int) -> ndarray | None:
    """The matrices of a dense operand as ``[*lead, m, n]`` where all components share one, else None."""
    batch = b.shape[:-2]
    own = batch[max(len(batch) - (k - 1), 0) :]
    if any(m != 1 for m in own):
        return None
    return b.reshape((*batch[: max(len(batch) - (k - 1), 0)], *b.shape[-2:]))


def _rows_times(a: NestedArray, b: ndarray, d: Any, work: Any) -> NestedArray:
    """All packed rows times a matrix, in one product."""
    g = a.geometry
    rows = a.rows.reshape((*a.lead, -1, g.trail[-1])).astype(work, copy=False)
    b = b.astype(work, copy=False)
    y = np.dot(rows, b) if rows.ndim == b.ndim == 2 else np.matmul(rows, b)
    h = Geometry(g.packing, (*g.trail[:-1], b.shape[-1]))
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
