"""Linear maps along axes, as lists of which entries every result adds up: pools and resizing are such maps, and so are their transposes."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...core.declare import op
from ...kernels import NotSupported, axes


def _selection(i: np.ndarray) -> Any:
    """The indices as a slice where they are evenly spaced, which NumPy reads without a copy."""
    if len(i) == 1:
        return slice(int(i[0]), int(i[0]) + 1)
    step = int(i[1] - i[0]) if len(i) else 1
    if len(i) and step > 0 and np.all(np.diff(i) == step):
        return slice(int(i[0]), int(i[-1]) + 1, step)
    return i


class Taps:
    """The linear map ``y[o[j]] += weight[j] x[i[j]]`` from n to m entries; without `weight` all are one. `o` is sorted."""

    def __init__(self, n: int, m: int, o: np.ndarray, i: np.ndarray, weight: np.ndarray | None = None) -> None:
        self.n, self.m, self.o, self.i, self.weight = n, m, o, i, weight

    def __repr__(self) -> str:
        return f"<{self.n} to {self.m} entries, {len(self.o)} taps>"

    @functools.cached_property
    def first(self) -> np.ndarray:
        """Where the taps of each result begin."""
        return np.searchsorted(self.o, np.arange(self.m + 1))

    @functools.cached_property
    def steps(self) -> list[tuple[Any, Any, Any]]:
        """(results, entries, weights) of the first tap of every result, of the second, ..."""
        rank = np.arange(len(self.o)) - self.first[self.o]
        out = []
        for k in range(int(rank.max(initial=-1)) + 1):
            s = rank == k
            o = slice(None) if s.sum() == self.m else _selection(self.o[s])
            out.append((o, _selection(self.i[s]), None if self.weight is None else self.weight[s]))
        return out

    @functools.cached_property
    def rows(self) -> list[tuple[Any, Any]]:
        """(entries, weights) of every result."""
        return [
            (_selection(self.i[a:b]), None if self.weight is None else self.weight[a:b])
            for a, b in zip(self.first[:-1], self.first[1:], strict=True)
        ]

    @functools.cached_property
    def longest(self) -> int:
        """The most taps of any result."""
        return int(np.diff(self.first).max(initial=0))

    @functools.cached_property
    def transposed(self) -> Taps:
        """The transposed map, from m to n entries."""
        order = np.argsort(self.i, kind="stable")
        t = Taps(self.m, self.n, self.i[order], self.o[order], None if self.weight is None else self.weight[order])
        if self.longest <= 32 and all(isinstance(i, slice) for _, i, _ in self.steps):
            t.steps = [(i, o, w) for o, i, w in self.steps]  # slices again, which gathering would not be
            t.longest = self.longest
        t.transposed = self
        return t

    def apply(self, x: Any, dim: int) -> Any:
        """The map along axis `dim` (negative)."""
        axis = x.ndim + dim
        y: Any = np.zeros((*x.shape[:axis], self.m, *x.shape[axis + 1 :]), x.dtype)
        at = (slice(None),) * axis
        tail = (1,) * (x.ndim - axis - 1)
        if self.m < self.longest and "steps" not in self.__dict__:
            for k, (i, w) in enumerate(self.rows):
                part = x[(*at, i)]
                part = part if w is None else part * w.astype(x.dtype).reshape(-1, *tail)
                y[(*at, k)] = part.sum(axis)
            return y
        for o, i, w in self.steps:
            part = x[(*at, i)]
            y[(*at, o)] += part if w is None else part * w.astype(x.dtype).reshape(-1, *tail)
        return y


class Maps:
    """Maps along the last axes, one for each (None leaves an axis alone).

    The results (with `before` the entries) are divided by the product of the numbers `by` of their places along each axis.
    """

    def __init__(
        self, taps: tuple[Taps | None, ...], by: tuple[np.ndarray, ...] | None = None, before: bool = False
    ) -> None:
        self.taps, self.by, self.before = taps, by, before
        self._tables: dict[np.dtype, Any] = {}

    def __repr__(self) -> str:
        return f"<maps {', '.join(map(str, self.taps))}{', divided' if self.by is not None else ''}>"

    @functools.cached_property
    def transposed(self) -> Maps:
        t = Maps(tuple(None if t is None else t.transposed for t in self.taps), self.by, not self.before)
        t.transposed = self
        return t

    @functools.cached_property
    def divisors(self) -> np.ndarray:
        """One for each place along all axes."""
        assert self.by is not None
        return functools.reduce(np.multiply.outer, self.by)

    def tables(self, kind: np.dtype) -> tuple[axes.Tables, Any]:
        """What the compiled loops read: lists of lines for all axes but the last, a table for the last; the divisors."""
        found = self._tables.get(kind)
        if found is None:
            found = self._tables[kind] = self._made(kind)
        return found

    def _made(self, kind: np.dtype) -> tuple[axes.Tables, Any]:
        *outer, last = self.taps
        o, i, w, m = np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1), 1
        for t in outer:
            if t is None:
                raise NotSupported
            own = np.ones(len(t.o)) if t.weight is None else t.weight
            all_o = (o[:, None] * t.m + t.o).reshape(-1)
            sort = np.argsort(all_o, kind="stable")
            o, m = all_o[sort], m * t.m
            i, w = (i[:, None] * t.n + t.i).reshape(-1)[sort], (w[:, None] * own).reshape(-1)[sort]
        if last is None:
            raise NotSupported
        count = np.diff(last.first)
        rank = np.arange(len(last.o)) - last.first[last.o]
        entry = np.zeros((max(int(count.max(initial=0)), 1), last.m), np.int64)
        entry[rank, last.o] = last.i
        lines = columns = None
        if any(t.weight is not None for t in self.taps if t is not None):
            lines, columns = w.astype(kind), np.zeros(entry.shape, kind)
            columns[rank, last.o] = 1 if last.weight is None else last.weight
        by = None
        if self.by is not None:
            each = functools.reduce(np.multiply.outer, self.by[:-1], np.ones((), np.int64))
            by = np.ascontiguousarray(each.reshape(-1), kind), np.ascontiguousarray(self.by[-1], kind)
        return axes.Tables(np.searchsorted(o, np.arange(m + 1)), i, lines, entry, count, columns), by

    def sizes(self, x: Any) -> tuple[int, int, int]:
        """How many arrays, their lines, and the entries of a line."""
        d = x.ndim - len(self.taps)
        return math.prod(x.shape[:d]), math.prod(x.shape[d:-1]), x.shape[-1]

    def flat(self, x: Any) -> Any:
        """x as [arrays, lines, entries of a line]."""
        return np.ascontiguousarray(x).reshape(self.sizes(x))

    def apply(self, x: Any) -> Any:
        d = len(self.taps)
        if x.dtype.char in "fd" and x.size:
            try:
                tables, by = self.tables(x.dtype)
                y = axes.sums(self.flat(x), tables, by, "" if by is None else "x" if self.before else "y")
                return y.reshape(*x.shape[: x.ndim - d], *(t.m for t in self.taps))  # type: ignore[union-attr]
            except NotSupported:
                pass
        if self.by is not None and self.before:
            x = x / self.divisors.astype(x.dtype)
        # Those first that leave least to do.
        for k, t in sorted(enumerate(self.taps), key=lambda p: 1 if p[1] is None else p[1].m / max(p[1].n, 1)):
            if t is not None:
                x = t.apply(x, k - d)
        return x if self.by is None or self.before else x / self.divisors.astype(x.dtype)


@op("axes_map", linear="each")
def axes_map_p(x: Any, *, maps: Maps) -> Any:
    """The linear maps along the last axes."""
    return maps.apply(x)


def _special(xs: list[Any], kw: dict[str, Any]) -> Any:
    """The compiled loop with its tables."""
    x, maps = xs[0], kw["maps"]
    if x.dtype.char not in "fd" or not x.size or any(t is None for t in maps.taps):
        return None
    tables, by = maps.tables(x.dtype)
    shape = (*x.shape[: x.ndim - len(maps.taps)], *(t.m for t in maps.taps))
    go = axes.sums_at(x.dtype, maps.sizes(x), tables, by, "" if by is None else "x" if maps.before else "y", shape)

    def quick(x: Any) -> Any:
        y = go(x)
        return maps.apply(x) if y is None else y

    return None if go is None else quick


axes_map_p.special = _special
axes_map_p.vjp([lambda g, y, x, *, maps: axes_map_p(g, maps=maps.transposed)])


@functools.lru_cache(256)
def maps_of(taps: tuple[Taps | None, ...], by: tuple[tuple[int, ...], ...] | None = None) -> Maps:
    """The maps `taps`, whose results are divided by the numbers `by`; the same object for the same taps."""
    return Maps(taps, None if by is None else tuple(np.array(b) for b in by))
