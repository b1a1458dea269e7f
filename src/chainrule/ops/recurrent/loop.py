"""The loop over time of one recurrent layer in one direction: an op, and its reverse rule, which is an op again.

With ``q = h w^T + b`` and ``a = x + q`` for the rows x of a step (the input's products) and the state h:

    lstm   i, f, m, o = sigmoid(a1), sigmoid(a2), tanh(a3), sigmoid(a4);  c' = f c + i m;  h' = o tanh(c') [wr^T]
    gru    r, z = sigmoid(x1 + q1), sigmoid(x2 + q2);  m = tanh(x3 + r q3);  h' = m + z (h - m)
    tanh   h' = tanh(a);   relu   h' = max(a, 0)

Rows are packed: step t has ``steps[t]`` sequences, the first ones, and states have a row for each sequence. Cells and gates are kept
for the reverse rule and are results, whose cotangents it counts: so derivatives of every order are right. Forward and reverse rule
have compiled loops; higher orders, and forward mode, go through the bodies in plain ops.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ...core.declare import fused
from ...core.shapes import broadcast_shapes, zeros_like_tensor
from ...core.tensor import Tensor
from ...kernels import NotSupported
from ...kernels.matmul import matmul_transposed
from ...kernels.recurrent import KEPT, backward_loop, forward_loop
from ..elementwise.elementary import sigmoid, tanh
from ..elementwise.select import where
from ..linalg.matmul import times
from ..norm.base import dense
from ..reduce.adding import total
from ..shape.slices import cat, narrow
from ..shape.views import unsqueeze

HAS_CELLS = {"lstm": True, "gru": False, "tanh": False, "relu": False}


@lru_cache(maxsize=256)
def _order(steps: tuple[int, ...], reverse: bool) -> tuple[Any, Any, Any]:
    """Where the rows of each step start and how many there are, in the order of the steps; and the row of (states, y) that each
    row starts from."""
    count = np.array(steps, np.int64)
    at = np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int64)
    ways = np.arange(len(steps))[:: -1 if reverse else 1]
    n = int(count.max())
    latest, before = np.arange(n), np.empty(int(count.sum()), np.int64)
    for t in ways:
        a, k = at[t], count[t]
        before[a : a + k] = latest[:k]
        latest[:k] = n + a + np.arange(k)
    return np.ascontiguousarray(at[ways]), np.ascontiguousarray(count[ways]), before


def _rows(x: Any, start: int, n: int) -> Any:
    return x if n == x.shape[-2] else narrow(x, -2, start, n)


def _replaced(state: Any, new: Any, n: int) -> Any:
    """The state with its first `n` rows replaced."""
    return new if n == state.shape[-2] else cat([new, narrow(state, -2, n, state.shape[-2] - n)], -2)


def _parts(x: Any, n: int) -> list[Any]:
    k = x.shape[-1] // n
    return [narrow(x, -1, q * k, k) for q in range(n)]


# -- the forward loop ---------------------------------------------------------------------------------------------------


def _step(mode: str, x: Any, h: Any, c: Any, w: Any, b: Any, wr: Any) -> tuple[Any, Any, Any]:
    """The new state, the new cell and the gates to keep, from the rows of one step."""
    q = h @ w.mT
    q = q if b is None else q + unsqueeze(b, -2)
    if mode == "gru":
        xs, qs = _parts(x, 3), _parts(q, 3)
        r, z = sigmoid.bind(xs[0] + qs[0]), sigmoid.bind(xs[1] + qs[1])
        m = tanh.bind(xs[2] + r * qs[2])
        return m + z * (h - m), None, cat([r, z, m, qs[2]], -1)
    if mode != "lstm":
        a = x + q
        return (tanh.bind(a) if mode == "tanh" else a.relu()), None, None
    i, f, m, o = _parts(x + q, 4)
    i, f, m, o = sigmoid.bind(i), sigmoid.bind(f), tanh.bind(m), sigmoid.bind(o)
    c = f * c + i * m
    y = o * tanh.bind(c)
    return (y if wr is None else y @ wr.mT), c, cat([i, f, m, o], -1)


def _forward(
    x: Any, h: Any, c: Any, w: Any, b: Any, wr: Any, *, mode: str, steps: tuple[int, ...], reverse: bool
) -> Any:
    """The states of all rows, the last state of each sequence; of an LSTM the last cells and all cells; the gates that are kept."""
    at, count, _ = _order(steps, reverse)
    got: dict[int, tuple[Any, Any, Any]] = {}
    for a, n in zip(at.tolist(), count.tolist(), strict=True):
        cell = None if c is None else _rows(c, 0, n)
        got[a] = new = _step(mode, _rows(x, a, n), _rows(h, 0, n), cell, w, b, wr)
        h = _replaced(h, new[0], n)
        c = None if c is None else _replaced(c, new[1], n)
    y, cells, gates = ([got[a][k] for a in sorted(got)] for k in range(3))
    out = [cat(y, -2), h]
    if c is not None:
        out += [c, cat(cells, -2)]
    return (*out, cat(gates, -2)) if KEPT[mode] else tuple(out)


# -- the reverse rule ---------------------------------------------------------------------------------------------------


def _backward(
    gy: Any, gh: Any, gc: Any, gcells: Any, ggates: Any, y: Any, cells: Any, gates: Any, h: Any, c: Any, w: Any, wr: Any,
    *, mode: str, steps: tuple[int, ...], reverse: bool, mask: tuple[bool, bool, bool],
) -> Any:  # fmt: skip
    """The cotangents of x, h, of an LSTM's c, and those of w, b and wr that `mask` asks for."""
    at, count, before = _order(steps, reverse)
    index = Tensor(before)
    h_before = cat([h, y], -2).index_select(-2, index)
    c_before = None if c is None else cat([c, cells], -2).index_select(-2, index)
    dh = zeros_like_tensor(h) if gh is None else gh
    dc = None if c is None else zeros_like_tensor(c) if gc is None else gc
    got: dict[int, tuple[Any, Any, Any]] = {}
    for a, n in zip(at[::-1].tolist(), count[::-1].tolist(), strict=True):
        u = _rows(dh, 0, n) if gy is None else _rows(dh, 0, n) + _rows(gy, a, n)
        own: list[Any] = [None] * 4 if ggates is None else _parts(_rows(ggates, a, n), 4)
        plus = lambda v, q, own=own: v if own[q] is None else v + own[q]
        direct = None
        if mode == "lstm":
            m_u = u if wr is None else u @ wr
            i, f, m, o = _parts(_rows(gates, a, n), 4)
            tc = tanh.bind(_rows(cells, a, n))
            d = _rows(dc, 0, n) + m_u * o * (1 - tc * tc)
            d = d if gcells is None else d + _rows(gcells, a, n)
            each = [
                plus(d * m, 0) * i * (1 - i),
                plus(d * _rows(c_before, a, n), 1) * f * (1 - f),
                plus(d * i, 2) * (1 - m * m),
                plus(m_u * tc, 3) * o * (1 - o),
            ]
            dx = dq = cat(each, -1)
            dc = _replaced(dc, d * f, n)
        elif mode == "gru":
            r, z, m, inner = _parts(_rows(gates, a, n), 4)
            dn = plus(u * (1 - z), 2) * (1 - m * m)
            dz = plus(u * (_rows(h_before, a, n) - m), 1) * z * (1 - z)
            dr = plus(dn * inner, 0) * r * (1 - r)
            dx, dq, direct = cat([dr, dz, dn], -1), cat([dr, dz, plus(dn * r, 3)], -1), u * z
        else:
            v = _rows(y, a, n)
            dx = dq = u * (1 - v * v) if mode == "tanh" else where(v > 0, u, 0)
        back = dq @ w
        dh = _replaced(dh, back if direct is None else back + direct, n)
        got[a] = dx, dq, u
    dx, dq, us = (cat([got[a][k] for a in sorted(got)], -2) for k in range(3))
    out = [dx, dh] if dc is None else [dx, dh, dc]
    if mask[0]:
        out.append(dq.mT @ h_before)
    if mask[1]:
        out.append(dq.sum(-2))
    if mask[2]:
        out.append(us.mT @ _unprojected(cells, gates))
    return tuple(out)


def _unprojected(cells: Any, gates: Any) -> Any:
    """o tanh(c), what the projection is applied to."""
    return _parts(gates, 4)[3] * tanh.bind(cells)


# -- kernels ------------------------------------------------------------------------------------------------------------


def _spread(a: Any, lead: tuple[int, ...], rank: int) -> Any:
    """An array with the leading axes as one."""
    own = a.shape[a.ndim - rank :]
    return np.broadcast_to(a, lead + own).reshape(-1, *own)


def _side_by_side(a: Any, lead: tuple[int, ...]) -> Any:
    """[*lead, rows, n] as [rows, examples, n], which the kernels want."""
    if a is None:
        return None
    if not lead:
        return dense(a)[:, None]
    return np.ascontiguousarray(_spread(a, lead, 2).transpose(1, 0, 2))


def _in_front(a: Any, lead: tuple[int, ...]) -> Any:
    return a.reshape(a.shape[0], a.shape[2]) if not lead else np.ascontiguousarray(a.transpose(1, 0, 2)).reshape(*lead, a.shape[0], a.shape[2])  # fmt: skip


def _lead(*pairs: tuple[Any, int]) -> tuple[int, ...]:
    return broadcast_shapes(*[a.shape[: a.ndim - r] for a, r in pairs if a is not None])


def _check(x: Any, *arrays: Any) -> None:
    """The kernels take arrays of one type with elements in them."""
    if not isinstance(x, np.ndarray) or any(a is not None and (a.dtype != x.dtype or not a.size) for a in (x, *arrays)):
        raise NotSupported


def _matrices(lead: tuple[int, ...], *pairs: tuple[Any, int]) -> list[Any]:
    """The weights with one leading axis: of size 1 where all examples share them."""
    shared = all(a is None or a.ndim == r for a, r in pairs)
    return [
        None if a is None else dense(a)[None] if shared else np.ascontiguousarray(_spread(a, lead, r)) for a, r in pairs
    ]


def _forward_kernel(
    x: Any, h: Any, c: Any, w: Any, b: Any, wr: Any, *, mode: str, steps: tuple[int, ...], reverse: bool
) -> Any:
    _check(x, h, c, w, b, wr)
    lead = _lead((x, 2), (h, 2), (c, 2), (w, 2), (b, 1), (wr, 2))
    at, count, _ = _order(steps, reverse)
    if b is None:
        b = np.zeros(w.shape[-2], w.dtype)
    ws, bs, wrs = _matrices(lead, (w, 2), (b, 1), (wr, 2))
    hs = np.array(_side_by_side(h, lead))
    cs = None if c is None else np.array(_side_by_side(c, lead))
    y, cells, gates = forward_loop(mode, _side_by_side(x, lead), hs, cs, ws, bs, wrs, at, count)
    return tuple([_in_front(v, lead) for v in (y, hs, cs, cells, gates) if v is not None])


def _backward_kernel(
    gy: Any, gh: Any, gc: Any, gcells: Any, ggates: Any, y: Any, cells: Any, gates: Any, h: Any, c: Any, w: Any, wr: Any,
    *, mode: str, steps: tuple[int, ...], reverse: bool, mask: tuple[bool, bool, bool],
) -> Any:  # fmt: skip
    _check(w, gy, gh, gc, gcells, ggates, y, cells, gates, h, c, wr)
    every = (gy, gh, gc, gcells, ggates, y, cells, gates, h, c, w, wr)
    lead = _lead(*[(a, 2) for a in every])
    at, count, _ = _order(steps, reverse)
    gy, gh, gc, gcells, ggates, y, cells, gates, h, c = [_side_by_side(a, lead) for a in every[:10]]
    batch = y.shape[1] if lead else 1
    zeros = lambda like: np.zeros((like.shape[0], batch, like.shape[2]), like.dtype)
    dh = zeros(h) if gh is None else np.array(gh)
    dc = None if c is None else zeros(c) if gc is None else np.array(gc)
    if gcells is not None or ggates is not None:
        ggates = zeros(gates) if ggates is None else ggates
        gcells = zeros(cells) if gcells is None and cells is not None else gcells
    state = h if mode == "gru" else c
    ws, wrs = _matrices(lead, (w, 2), (wr, 2))
    gy = zeros(y) if gy is None else gy
    dx, dq, us = backward_loop(mode, gy, dh, dc, gcells, ggates, y, cells, gates, state, ws, wrs, at, count)
    dq = dx if dq is None else dq
    out = [_in_front(v, lead) for v in (dx, dh, dc) if v is not None]
    if mask[0]:
        out.append(_outer_before(dq, h, y, steps, reverse, lead))
    if mask[1]:
        out.append(total(dq.reshape(len(dq), -1), (-2,)).reshape(*lead, dq.shape[2]))
    if mask[2]:
        o = gates[..., gates.shape[2] // 4 * 3 :]
        out.append(_outer(us, o * np.tanh(cells), lead))
    return tuple(out)


def _outer(a: Any, b: Any, lead: tuple[int, ...]) -> Any:
    """The sum over the rows of a^T b, for each example."""
    if not lead:
        return times(a.reshape(len(a), -1).T, b.reshape(len(b), -1))
    return np.matmul(a.transpose(1, 2, 0), b.transpose(1, 0, 2)).reshape(*lead, a.shape[2], b.shape[2])


def _outer_before(dq: Any, h: Any, y: Any, steps: tuple[int, ...], reverse: bool, lead: tuple[int, ...]) -> Any:
    """The same of what each row started from: the state, or a row of y."""
    n = len(h)
    if steps[-1] < n or n == len(y):  # sequences end early, or at once
        return _outer(dq, np.concatenate([h, y])[_order(steps, reverse)[2]], lead)
    first, later, y = (dq[-n:], dq[:-n], y[n:]) if reverse else (dq[:n], dq[n:], y[:-n])
    out = _outer(later, y, lead)
    # A product as small as this one is not worth waking the threads of BLAS, which then turn in circles beside ours.
    if lead:
        out += _outer(first, h, lead)
    else:
        out += matmul_transposed(first.reshape(n, -1), h.reshape(n, -1))
    return out


# -- the ops ------------------------------------------------------------------------------------------------------------


def _outs(mode: str, **kw: Any) -> tuple[int, ...]:
    return (2,) * (2 + 2 * HAS_CELLS[mode] + bool(KEPT[mode]))


recurrent_p = fused("recurrent", _forward, lambda **kw: (2, 2, 2, 2, 1, 2), _outs, _forward_kernel, expand=True)
recurrent_backward_p = fused(
    "recurrent_backward",
    _backward,
    lambda **kw: (2,) * 12,
    lambda mode, mask, **kw: (
        (2,) * (2 + HAS_CELLS[mode]) + tuple(r for r, on in zip((2, 1, 2), mask, strict=True) if on)
    ),
    _backward_kernel,
    expand=True,
)


@recurrent_p.vjp(sparse=True)
def _(
    g: Any, ys: Any, x: Any, h: Any, c: Any, w: Any, b: Any, wr: Any, *, mode: Any, steps: Any, reverse: Any, need: Any
) -> Any:
    cell = HAS_CELLS[mode]
    (gy, gh), (gc, gcells), ggates = g[:2], g[2:4] if cell else (None, None), g[-1] if KEPT[mode] else None
    y, cells, gates = ys[0], ys[3] if cell else None, ys[-1] if KEPT[mode] else None
    mask = (need[3], need[4] and b is not None, need[5] and wr is not None)
    got = list(
        recurrent_backward_p.bind(
            gy, gh, gc, gcells, ggates, y, cells, gates, h, c, w, wr, mode=mode, steps=steps, reverse=reverse, mask=mask
        )
    )
    gx, gh0 = got[:2]
    rest = iter(got[2 + cell :])
    return (gx, gh0, got[2] if cell else None, *[next(rest) if on else None for on in mask])
