"""Rows by number, which all advanced indexing comes down to: take them, add to them, replace them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.batching import lift_rank
from ...core.declare import op
from ...core.dispatch import innermost
from ...core.payload import STRIDED, payload_of
from ...core.shapes import constant, zeros
from ...core.sizes import SEEN
from ...core.tensor import Tensor
from ...kernels.indexing import LEAST, MOST
from ..elementwise.select import where_p
from . import moving
from .moving import sums, take

# -- rows: x[..., N, rest], i[..., S] -> [..., S, rest]; r and s are the ranks of rest and S --------------------------------


def _aligned(size: int, args: list[Any], flags: list[bool], cores: list[int]) -> list[Any]:
    ranks = [a.ndim - f for a, f in zip(args, flags, strict=True)]
    n = max(k - c for k, c in zip(ranks, cores, strict=True))
    return [
        lift_rank(a, k, n + c) if f and k - c < n else a for a, f, k, c in zip(args, flags, ranks, cores, strict=True)
    ]


def _lead(x: Any, core: int) -> tuple[int, ...]:
    return x.shape[: x.ndim - core]


def _grid(lead: tuple[int, ...], have: tuple[int, ...], s: int) -> list[Any]:
    """Index arrays over the leading axes, for an array whose leading sizes are `have` (some of them 1)."""
    pad = len(lead) - len(have)
    out = []
    for k, n in enumerate(have):
        shape = [1] * (len(lead) + s)
        shape[k + pad] = n if n != 1 else 1
        out.append(np.arange(n).reshape(shape))
    return out


def _take(x: Any, i: Any, *, r: int, s: int, n: int) -> Any:
    lx, li = _lead(x, r + 1), _lead(i, s)
    if not li:
        return (
            take(x, i, x.ndim - r - 1)
            if i.size or x.shape[x.ndim - r - 1]
            else np.zeros(lx + i.shape + x.shape[x.ndim - r :], x.dtype)
        )
    if not lx:
        return x[i]
    lead = np.broadcast_shapes(lx, li)
    i = i.reshape((1,) * (len(lead) - len(li)) + i.shape)
    y = x[(*_grid(lead, lx, s), i)]
    want = lead + y.shape[len(lead) :]
    return y if y.shape == want else np.broadcast_to(y, want)


take_rows_p = op(
    "take_rows",
    batch=lambda size, xs, flags, *, r, s, n: take_rows_p.bind(*_aligned(size, xs, flags, [r + 1, s]), r=r, s=s, n=n),
    sizes="n",
    moves=True,
)(_take)
take_rows_p.__doc__ = "Rows `i` of the `n` rows of `x`."


def _taken(xs: list[Any], kw: dict[str, Any]) -> Any:
    """One call of NumPy's, or on larger arrays of compiled code, where there are no leading axes to be matched."""
    x, i = xs
    r = kw["r"]
    axis = x.ndim - r - 1
    if i.ndim != kw["s"] or not (i.size and x.size):
        return None
    if x.size < LEAST:
        return lambda x, i: x.take(i, axis)
    if max(x.size, i.size * (x.size // x.shape[axis])) > MOST:
        return None
    line = moving.indexing.line(x, i) if r == 0 and x.ndim > 1 else None

    def taken(x: Any, i: Any) -> Any:
        if not x.flags.c_contiguous:
            return _take(x, i, **kw)
        y = None if line is None else line(x, i)
        return x.take(i, axis) if y is None else y

    return taken


take_rows_p.special = _taken


def _flat_rows(i: Any, lead: tuple[int, ...], s: int, n: int) -> Any:
    """Numbers of rows, `n` for each entry of the leading axes, as numbers in one big list."""
    if lead:
        count = prod(lead)
        own = i.shape[i.ndim - s :]
        i = spread(i, lead + own).reshape((count, prod(own)))
        i = i + np.arange(0, count * n, n).reshape(-1, 1) if n else i
    return i.reshape(-1)


def spread(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` broadcast to a shape, or as it is where it has that."""
    return x if x.shape == shape else np.broadcast_to(x, shape)


def _add(g: Any, i: Any, *, n: int, r: int, s: int) -> Any:
    go = _summed([g, i], {"n": n, "r": r, "s": s})
    y = go(g, i) if go is not None and g.flags.c_contiguous else None
    if y is not None:
        return y
    lead, li = _lead(g, r + s), _lead(i, s)
    if lead != li:
        lead = np.broadcast_shapes(lead, li)
    rest, i = g.shape[g.ndim - r :], _flat_rows(i, lead, s, n)
    g = spread(g, lead + g.shape[g.ndim - r - s :]).reshape((i.size, prod(rest)))
    return sums(g, i, prod(lead) * n).reshape((*lead, n, *rest)).astype(g.dtype, copy=False)


add_rows_p = op(
    "add_rows",
    batch=lambda size, xs, flags, *, n, r, s: add_rows_p.bind(*_aligned(size, xs, flags, [r + s, s]), n=n, r=r, s=s),
    sizes="n",
    moves=True,
)(_add)
add_rows_p.__doc__ = "Zeros of n rows with `g` added at rows `i`: the transpose of taking rows."


def _summed(xs: list[Any], kw: dict[str, Any]) -> Any:
    """By one call of compiled code: the sums of `sums`, rounded once."""
    g, i = xs
    n, r, s = kw["n"], kw["r"], kw["s"]
    if i.ndim != s or i.dtype != np.int64 or g.dtype not in dt.REALS or g.dtype in dt.HALVES:
        return None
    lead = g.ndim - r - s
    return moving.indexing.summing(g.dtype, g.shape[:lead], i.size, n, g.shape[lead + s :])


def _add_quickly(xs: list[Any], kw: dict[str, Any]) -> Any:
    go = _summed(xs, kw)
    if go is None:
        return None

    def add(g: Any, i: Any) -> Any:
        y = go(g, i)
        return _add(g, i, **kw) if y is None else y

    return add


add_rows_p.special = _add_quickly


def _set(x: Any, i: Any, v: Any, *, r: int, s: int) -> Any:
    lx, li, lv = _lead(x, r + 1), _lead(i, s), _lead(v, r + s)
    lead = lx if lx == li == lv else np.broadcast_shapes(lx, li, lv)
    out = np.array(spread(x, lead + x.shape[x.ndim - r - 1 :]), order="C")
    n = x.shape[x.ndim - r - 1]
    flat, rows = _flat_rows(i, lead, s, n), out.reshape((prod(lead) * n, *out.shape[out.ndim - r :]))
    rows[flat] = spread(v, lead + v.shape[v.ndim - r - s :]).reshape((flat.size, *rows.shape[1:]))
    return out


def _set_quickly(xs: list[Any], kw: dict[str, Any]) -> Any:
    """One assignment of NumPy's, where there are no leading axes to be matched."""
    x, i, v = xs
    r, s = kw["r"], kw["s"]
    if x.ndim != r + 1 or i.ndim != s or v.shape != i.shape + x.shape[1:] or max(x.size, v.size) > MOST:
        return None

    def put(x: Any, i: Any, v: Any) -> Any:
        y = x.copy()  # in row-major order
        y[i] = v
        return y

    return put


set_rows_p = op(
    "set_rows",
    batch=lambda size, xs, flags, *, r, s: set_rows_p.bind(*_aligned(size, xs, flags, [r + 1, s, r + s]), r=r, s=s),
    moves=True,
)(_set)
set_rows_p.special = _set_quickly
set_rows_p.__doc__ = "`x` with rows `i` replaced by `v`; of repeated rows the last wins."

take_rows_p.jvp([lambda t, y, x, i, **kw: take_rows_p(t, i, **kw), None])
take_rows_p.vjp([lambda g, y, x, i, *, r, s, n: add_rows_p(g, i, n=n, r=r, s=s), None])
add_rows_p.jvp([lambda t, y, g, i, **kw: add_rows_p(t, i, **kw), None])
add_rows_p.vjp([lambda c, y, g, i, *, n, r, s: take_rows_p(c, i, r=r, s=s, n=n), None])


@op("last_writes", batch="trailing", differentiable=False)
def last_writes_p(i: Any, *, s: int) -> Any:
    """True where an index is not repeated later on."""
    if i.size == 0:
        return np.zeros(i.shape, bool)
    flat = i.reshape((-1, prod(i.shape[i.ndim - s :])))
    # Every index notes its place; of repeated ones the last note stays.
    place = np.broadcast_to(np.arange(flat.shape[1]), flat.shape)
    example = np.arange(len(flat))[:, None]
    note = np.empty((len(flat), int(flat.max()) + 1), np.int64)
    note[example, flat] = place
    return (note[example, flat] == place).reshape(i.shape)


@set_rows_p.jvp
def _(t: Any, y: Any, x: Any, i: Any, v: Any, *, r: int, s: int) -> Any:
    return set_rows_p(t[0], i, t[2], r=r, s=s)


@set_rows_p.vjp
def _(g: Any, y: Any, x: Any, i: Any, v: Any, *, r: int, s: int) -> Any:
    def written() -> Any:
        gv = take_rows_p(g, i, r=r, s=s, n=g.shape[g.ndim - r - 1])
        won = last_writes_p(i, s=s)
        return where_p.bind(won.reshape(*won.shape, *(1,) * r), gv, 0)

    def kept() -> Any:
        shape = (*i.shape, *g.shape[g.ndim - r :])
        if SEEN and g.is_nested:  # the rows of components: with a dim for these, and theirs in front
            shape = tuple(take_rows_p(g, i, r=r, s=s, n=g.shape[g.ndim - r - 1]).shape)
        return set_rows_p(g, i, blank(shape, g), r=r, s=s)

    return kept, None, written


@op("wrap_index", differentiable=False, sizes="n")
def wrap_index_p(i: Any, *, n: int, dim: int) -> Any:
    """Negative indices counted from the end; an error for those out of range."""
    if not moving.out_of_range(i, 0, n):  # the common case
        return i
    if moving.out_of_range(i, -n, n):
        bad = i[(i < -n) | (i >= n)].flat[0]
        if not n:
            raise IndexError(f"index is out of bounds for dimension with size 0 (index {bad}, dimension {dim})")
        raise IndexError(f"index {bad} is out of bounds for dimension {dim} with size {n}")
    return np.where(i < 0, i + n, i)


def _wrapped(xs: list[Any], kw: dict[str, Any]) -> Any:
    """The check by one call of compiled code."""
    outside = moving.indexing.outside_of(xs[0], 0, kw["n"])
    return None if outside is None else lambda i: i if outside(i) == 0 else wrap_index_p.body(i, **kw)


wrap_index_p.special = _wrapped


@op("blank", grows="shape", differentiable=False)
def blank_p(like: Any, *, shape: tuple[int, ...], value: Any = 0) -> Any:
    """An array of a shape and of the type of `like` that holds one number."""
    y = np.empty(shape, like.dtype)
    y.fill(value)
    return y


def blank(shape: Any, g: Tensor, value: Any = 0) -> Tensor:
    """A tensor of a shape, of the type of `g`, that holds one number: by an op where it can be, so that no code keeps it."""
    if SEEN or payload_of(innermost(g)) is not STRIDED:
        return zeros(tuple(shape), g.dtype) if value == 0 else constant(value, g).expand(*shape)
    return blank_p.bind(g, shape=tuple(shape), value=value)


def put_rows(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    """`x` (rows first) with rows `i` replaced by `v`."""
    return set_rows_p(x, i, v, r=x.ndim - 1, s=i.ndim)
