"""Sums along one axis of an array in any layout: one function of the sequence of its entries, whichever way the loops go.

The sum of x[0], x[1], ... is defined in one way for every layout, so that a view and its copy give the same bits. Entry i belongs
to lane ``i mod LANES``. A lane adds CHAIN entries in the type of the elements, then puts them aside in double precision; the lanes
are added in halves. Sequences longer than PIECE are cut there, and the sums of the pieces are the next sequence.

Two loops compute it: along `rows`, vectors lie on neighbouring entries of one sequence; along `columns`, on neighbouring sequences.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import F64, Calls, NotSupported, kernel_type, prod
from .lang import BY_NAME, Array, Kernel, Value, compute_type, f64
from .pool import empty

LANES = 32
CHAIN = 16  # entries that a lane adds before they are put aside
BLOCK = LANES * CHAIN
PIECE = 1 << 14  # a multiple of BLOCK
TILE = 512  # bytes of sequences side by side
NARROW = 32  # sequences side by side that lie close together
WIDE = 1 << 12  # the same for short ones
ROWS = 4  # entries of a sequence that are read at a time
FEW = 8  # entries up to which a sequence stays in registers
SHORT = 16  # sequences that do not fill a vector: their neighbours do

PLAIN, ABS, SQUARE, FACTOR, VALID = "x", "abs", "square", "factor", "valid"


def _plus(k: Kernel, term: str, total: Value | None, v: Value, m: Value | None) -> Value:
    """The total with one more term."""
    v = v if m is None else v - m
    if term is SQUARE:
        return v * v if total is None else k.fma(v, v, total)
    v = _term(k, term, v)
    return v if total is None else _join(term, total, v)


def _term(k: Kernel, term: str, v: Value) -> Value:
    """What is added of an entry, or multiplied."""
    return abs(v) if term is ABS else k.select(v.eq(v), v, 0.0) if term is VALID else v


def _join(term: str, a: Value, b: Value) -> Value:
    return a * b if term is FACTOR else a + b


def _nothing(term: str) -> float:
    return 1.0 if term is FACTOR else 0.0


def _rows(k: Kernel, x: Array, m: Array | None, y: Array, term: str, unit: bool) -> None:
    n, k1, k2, s1, s2, step = (k.size(s) for s in ("n", "k1", "k2", "s1", "s2", "step"))
    each = 1 if unit else step
    with k.grid((n + (PIECE - 1)) // PIECE * k1 * k2, cost=k.minimum(n, PIECE)) as g:
        column, row, first = g % k2, g // k2 % k1, g // (k1 * k2) * PIECE
        count = k.minimum(n - first, PIECE)
        base = row * s1 + column * s2 + first * each
        mean = None if m is None else m[row * k2 + column]
        acc = k.acc("mul" if term is FACTOR else "add", wide=f64)
        with k.loop(0, count, BLOCK) as b:
            with k.lanes(k.minimum(count - b, BLOCK), unroll=LANES // k.width, aligned=True) as j:
                v = x[base + b * each + j * each]
                v = v if mean is None else v - mean
                if term is SQUARE:
                    acc.fma(v, v)
                else:
                    acc.add(_term(k, term, v))
            with k.when(b + BLOCK <= count):
                acc.carry()
        y[g] = acc.total()


def _columns(k: Kernel, x: Array, m: Array | None, y: Array, term: str, unit: bool) -> None:
    n, k1, k2, s1, s2, step = (k.size(s) for s in ("n", "k1", "k2", "s1", "s2", "step"))
    side = 1 if unit else s2
    tile = TILE // k.compute.size
    chain, lane = k.local("chain", k.compute, LANES * tile), k.local("lane", f64, LANES * tile)
    tiles = (k2 + (tile - 1)) // tile
    cost = k.minimum(n, PIECE) * k.minimum(k2, tile)
    with k.grid((n + (PIECE - 1)) // PIECE * k1 * tiles, cost=cost) as g:
        start, row, piece = g % tiles * tile, g // tiles % k1, g // (tiles * k1)
        first = piece * PIECE
        count, width = k.minimum(n - first, PIECE), k.minimum(k2 - start, tile)
        base, kept = row * s1 + start * s2 + first * step, row * k2 + start
        pitch = k.maximum(width, k.width)  # vectors that overlap would wait for each other
        whole = count // BLOCK * BLOCK

        def at(i: Value, j: Value) -> Value:
            return x[base + i * step + j * side]

        def mean(j: Value) -> Value | None:
            return None if m is None else m[kept + j]

        with k.when(whole > 0), k.loop(0, LANES) as r, k.lanes(width) as j:
            lane[r * pitch + j] = _nothing(term)
        with k.loop(0, whole, BLOCK) as b:
            # A few distant rows at a time: more of them, a power of two apart, would drive each other out of the cache.
            for some in range(0, CHAIN, ROWS):
                with k.loop(0, LANES) as r, k.lanes(width, unroll=2) as j:
                    here, shift = r * pitch + j, mean(j)
                    t = chain.raw(here) if some else None
                    for c in range(some, some + ROWS):
                        t = _plus(k, term, t, at(b + (r + LANES * c), j), shift)
                    assert t is not None
                    if some + ROWS < CHAIN:
                        chain[here] = t
                    else:
                        lane[here] = _join(term, lane.raw(here), t.to(f64))
        with k.loop(0, k.minimum(count - whole, LANES)) as r:
            for more in (True, False):
                with k.when(whole > 0 if more else whole.eq(0)), k.lanes(width, unroll=2) as j:
                    shift, rest = mean(j), k.var(k.compute, _nothing(term), varying=True)
                    with k.loop(whole + r, count, LANES) as i:
                        rest.set(_plus(k, term, rest.get(), at(i, j), shift))
                    last = rest.get().to(f64)
                    lane[r * pitch + j] = _join(term, lane.raw(r * pitch + j), last) if more else last
        half = LANES // 2
        while half:
            with k.loop(half, k.minimum(count, 2 * half)) as r, k.lanes(width, unroll=2) as j:
                lane[(r - half) * pitch + j] = _join(term, lane.raw((r - half) * pitch + j), lane.raw(r * pitch + j))
            half //= 2
        with k.lanes(width, unroll=2) as j:
            y[piece * (k1 * k2) + kept + j] = lane.raw(j)


def _dense(k: Kernel, x: Array, m: Array | None, y: Array, term: str) -> None:
    """Columns of narrow rows that lie one after the other: those of all lanes are one vector. The mean comes once for each lane."""
    n, k1, k2, s1, _, _ = (k.size(s) for s in ("n", "k1", "k2", "s1", "s2", "step"))
    chain, lane = k.local("chain", k.compute, LANES * NARROW), k.local("lane", f64, LANES * NARROW)
    with k.grid((n + (PIECE - 1)) // PIECE * k1, cost=k.minimum(n, PIECE) * k2) as g:
        row, first = g % k1, g // k1 * PIECE
        count, width = k.minimum(n - first, PIECE), k2 * LANES
        base, kept = row * s1 + first * k2, row * width
        whole = count // BLOCK * BLOCK

        def plus(t: Value | None, i: Value, j: Value) -> Value:
            return _plus(k, term, t, x[base + i * k2 + j], None if m is None else m[kept + j])

        with k.lanes(width) as j:
            lane[j] = _nothing(term)
        with k.loop(0, whole, BLOCK) as b, k.lanes(width, unroll=2) as j:
            t = plus(None, b, j)
            for q in range(1, CHAIN):
                t = plus(t, b + LANES * q, j)
            lane[j] = _join(term, lane.raw(j), t.to(f64))
        with k.lanes(width) as j:
            chain[j] = _nothing(term)
        with k.loop(whole, count, LANES) as i, k.lanes(k.minimum(count - i, LANES) * k2) as j:
            chain[j] = plus(chain.raw(j), i, j)
        with k.lanes(width) as j:
            lane[j] = _join(term, lane.raw(j), chain.raw(j).to(f64))
        half = LANES // 2
        while half:
            with k.lanes(k2 * half) as j:
                lane[j] = _join(term, lane.raw(j), lane.raw(k2 * half + j))
            half //= 2
        with k.lanes(k2) as j:
            y[g * k2 + j] = lane.raw(j)


def _few(k: Kernel, x: Array, m: Array | None, y: Array, term: str, unit: bool, count: int) -> None:
    """The same for sequences of so few entries that each has a lane of its own."""
    _, k1, k2, s1, s2, step = (k.size(s) for s in ("n", "k1", "k2", "s1", "s2", "step"))
    tiles = (k2 + (WIDE - 1)) // WIDE
    with k.grid(k1 * tiles, cost=k.minimum(k2, WIDE) * count) as g:
        start, row = g % tiles * WIDE, g // tiles
        base, kept = row * s1 + start * s2, row * k2 + start
        width = k.minimum(k2 - start, WIDE)
        # Sequences that are apart are loaded number by number: that is what a processor makes of it in any case.
        with k.lanes(width, unroll=2) if unit else k.loop(0, width) as j:
            at = base + (j if unit else j * s2)
            shift = None if m is None else m[kept + j]
            v = [_plus(k, term, None, x[at + step * i], shift).to(f64) for i in range(count)]
            half = LANES // 2
            while half:
                v = [_join(term, a, v[i + half]) if i + half < len(v) else a for i, a in enumerate(v[:half])]
                half //= 2
            y[kept + j] = v[0]


def build(name: str, loops: str, term: str, shifted: bool, unit: bool) -> Kernel:
    """The sums of one axis of an array of type `x`, to an array of type `y`: ``name`` is "x_y"."""
    xd, yd = (BY_NAME[t] for t in name.split("_"))
    # Squares, products and differences are taken in double precision: they neither overflow nor lose what the sum keeps.
    k = Kernel(
        f"sum_{term}{'_shifted' if shifted else ''}_{loops}{'' if unit else '_apart'}_{name}",
        compute_type(xd) if term in (PLAIN, ABS, VALID) and not shifted else f64,
    )
    source = k.strided("x", xd)
    mean = k.array("m", f64) if shifted else None
    y = k.array("y", yd)
    if loops == "rows":
        _rows(k, source, mean, y, term, unit)
    elif loops == "columns":
        _columns(k, source, mean, y, term, unit)
    elif loops == "dense":
        _dense(k, source, mean, y, term)
    else:
        _few(k, source, mean, y, term, unit, int(loops))
    return k


_compiled: dict[tuple[Any, ...], Callable[..., Any]] = {}


def _merged(shape: tuple[int, ...], strides: tuple[int, ...], axes: Any) -> list[tuple[int, int]]:
    """(size, stride) of the axes, neighbours taken together where one continues the other."""
    out: list[tuple[int, int]] = []
    for a in axes:
        n, s = shape[a], strides[a]
        if n == 1:
            continue
        if out and out[-1][1] == n * s:
            out[-1] = (out[-1][0] * n, s)
        else:
            out.append((n, s))
    return out


def _prepare(
    xd: np.dtype,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    axes: tuple[int, ...],
    term: str,
    shifted: bool,
    yd: np.dtype,
) -> Any:
    x = kernel_type(xd)
    if any(s % x.size for s in strides):
        raise NotSupported
    steps = tuple([s // x.size for s in strides])
    summed = _merged(shape, steps, axes)
    kept = _merged(shape, steps, [a for a in range(len(shape)) if a not in axes])
    if len(summed) > 1 or len(kept) > 2:
        return None, ()
    (n, step), (k2, s2), (k1, s1) = [(summed or [(1, 0)])[0], *reversed([(1, 0), (1, 0), *kept][-2:])]
    rows = (step == 1 and n > SHORT) or (k2 < SHORT and s2 != 1) or k2 == 1
    dense = k2 <= NARROW and step == k2 and s2 == 1
    few = n <= (FEW if s2 == 1 else SHORT)
    loops = "rows" if rows else str(n) if few else "dense" if dense else "columns"
    unit = (step if rows else s2) == 1
    pieces = -(-n // PIECE)
    y = f64 if pieces > 1 else kernel_type(yd)
    key = (f"{x}_{y}", loops, term, shifted, unit)
    f = _compiled.get(key)
    if f is None:
        f = _compiled[key] = compiler.compile_kernel(build(*key))
    rest = tuple([1 if a in axes else s for a, s in enumerate(shape)])
    return f, (pieces, rest, (n, k1, k2, s1, s2, step), loops == "dense")


_calls = Calls(_prepare)


def _next(term: str) -> str:
    """What becomes of partial results."""
    return FACTOR if term is FACTOR else PLAIN


def along(x: np.ndarray, axes: tuple[int, ...], term: str, mean: np.ndarray | None, yd: np.dtype) -> np.ndarray:
    """The sums of `x`, ``|x|``, ``(x - mean)**2`` or of what is not NaN over neighbouring axes, kept as 1; `mean` is contiguous and of type float64.

    Its summed dims are 1. With it, sums are taken in double precision from the first entry on.
    """
    call = _calls[x.dtype, x.shape, x.strides, axes, term, mean is not None, yd] if x.flags.aligned else None
    if call is None:
        raise NotSupported
    f, sizes = call
    if f is None:  # too many strides for a loop
        return along(np.ascontiguousarray(x), axes, term, mean, yd)
    pieces, rest, numbers, dense = sizes
    if mean is not None and mean.shape != rest:  # what is summed later has the same one
        mean = np.ascontiguousarray(np.broadcast_to(mean, rest))
    if dense and mean is not None:
        mean = np.repeat(mean.reshape(numbers[1], 1, numbers[2]), LANES, 1)
    y = empty((pieces, *rest), F64 if pieces > 1 else yd)
    done = f(runtime.pool(), x, y, *numbers) if mean is None else f(runtime.pool(), x, mean, y, *numbers)
    if done is False:
        raise NotSupported
    return y[0] if pieces == 1 else along(y, (0,), _next(term), None, yd)[0]


def _prepare_at(
    xd: np.dtype, shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool, term: str, yd: np.dtype
) -> Any:
    """The sums over `dim` of contiguous arrays of a shape, in one stage and one piece, as a function; None where they lie otherwise."""
    todo, n = stages(shape, dim), len(shape)
    if len(todo) != 1 or 0 in shape:
        raise NotSupported
    size, strides = kernel_type(xd).size, []
    for s in reversed(shape):
        strides.append(size)
        size *= s
    f, sizes = _prepare(xd, shape, tuple(reversed(strides)), todo[0], term, False, yd)
    if f is None or sizes[0] != 1:
        raise NotSupported
    _, rest, numbers, _ = sizes
    out = rest if keepdim else tuple([s for d, s in enumerate(shape) if d not in dim and d - n not in dim])
    threads = runtime.pool

    def go(x: np.ndarray) -> Any:
        if not x.flags.c_contiguous or not x.flags.aligned:
            return None
        y = empty(out, yd)
        return None if f(threads(), x, y, *numbers) is False else y

    return go


_at = Calls(_prepare_at)


def at(x: np.ndarray, dim: tuple[int, ...], keepdim: bool, term: str, wide: bool = False) -> Any:
    """The function of `_prepare_at` for arrays like `x`, with results in float64 if `wide`; None where there is none."""
    return _at[x.dtype, x.shape, dim, keepdim, term, F64 if wide else x.dtype]


@lru_cache(1024)
def stages(shape: tuple[int, ...], dim: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """The axes of `dim` in the order in which they are summed, by shape only: the longest neighbours first."""
    n = len(shape)
    left = sorted(d % n for d in dim)
    out = []
    while left:
        runs: list[list[int]] = []
        for a in left:
            if runs and all(shape[b] == 1 for b in range(runs[-1][-1] + 1, a)):
                runs[-1].append(a)
            else:
                runs.append([a])
        run = max(runs, key=lambda r: prod(tuple([shape[a] for a in r])))
        take = 1
        # The innermost ones, as many as make a sequence of some length: what is left can have any stride.
        while take < len(run) and prod(tuple([shape[a] for a in run[-take:]])) < BLOCK:
            take += 1
        out.append(tuple(run[-take:]))
        left = [a for a in left if a not in out[-1]]
        shape = tuple([1 if a in out[-1] else s for a, s in enumerate(shape)])
    return tuple(out)


def total(x: np.ndarray, dim: tuple[int, ...], term: str, mean: np.ndarray | None, yd: np.dtype) -> np.ndarray:
    """The sums (of FACTOR the products) over any axes, kept as 1."""
    todo = stages(x.shape, dim)
    if not x.size or not todo:
        raise NotSupported
    for axes in todo[:-1]:
        x, term, mean = along(x, axes, term, mean, F64), _next(term), None
    return along(x, todo[-1], term, mean, yd)
