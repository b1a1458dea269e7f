"""Sorting, the k greatest and the k-th of every row, by the bits of the numbers: stable, NaN greatest, -0 equal to 0.

A float is ordered as the integer that its bits make, once those of negative numbers are turned round. A sort is by radix, a byte at a time, from the
last to the first. A selection finds the threshold bit by bit, counting with vectors how many are above, and looks at those alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported, kernel_type
from .lang import BY_NAME, Array, DType, Kernel, Value, Variable, compute_type, f32, f64, i32, i64
from .pool import empty

LEAST = 1 << 10  # entries from which a compiled loop is worth its call
PARTS = 64  # grid indices that share the rows: each has memory of its own
RADIX = 256
FEW = 64  # candidates up to which each is compared with all


def key_type(t: DType) -> DType:
    return i64 if t in (f64, i64) else i32


def key(k: Kernel, x: Array, at: Value, turned: bool) -> Value:
    """The integer whose order is that of the entry; of its complement where the order is turned round."""
    v = x[at]
    key = v
    if x.dtype.kind == "f":
        bits = (v + 0.0).bits(key_type(x.dtype))  # -0 becomes 0
        top = 8 * bits.dtype.size - 1  # type: ignore[union-attr]
        greatest = (1 << top) - 1
        key = k.select(v.ne(v), greatest, bits ^ ((bits >> top) & greatest))
    return key ^ -1 if turned else key


class _Rows:
    """What the kernels of this file have in common: rows of n entries, shared by parts that have memory of their own."""

    def __init__(self, what: str, name: str, turned: bool) -> None:
        self.t = BY_NAME[name]
        self.key = key_type(self.t)
        self.k = k = Kernel(
            f"{what}_{'down' if turned else 'up'}_{name}",
            compute_type(self.t) if self.t.kind == "f" else f64 if self.key is i64 else f32,
        )
        self.turned = turned
        self.x = k.array("x", self.t)

    def memory(self) -> None:
        k = self.k
        self.keys, self.at = k.array("keys", self.key), k.array("at", i32)
        self.rows, self.n, self.each = k.size("rows"), k.size("n"), k.size("each")

    def every(self, work: Callable[[Value, Value], None]) -> None:
        """``work(row, where its memory begins)`` for every row."""
        k = self.k
        with k.grid((self.rows + self.each - 1) // self.each, cost=self.each * self.n * 16) as part:
            first = part * self.each
            with k.loop(first, k.minimum(first + self.each, self.rows)) as row:
                work(row, part * self.n * 2)

    def keyed(self, row: Value, base: Value) -> None:
        """The keys of the row, in memory."""
        with self.k.lanes(self.n, unroll=4) as j:
            self.keys[base + j] = key(self.k, self.x, row * self.n + j, self.turned)

    def sorted(self, base: Value, count: Value, counts: Array) -> Value:
        """The first `count` keys in memory and their positions brought into order, by radix; where they are then."""
        k, bits = self.k, 8 * self.key.size
        source, target = k.var(i64, base), k.var(i64, base + self.n)
        for shift in range(0, bits, 8):
            with k.loop(0, RADIX) as d:
                counts[d] = 0

            def digit(key: Value, shift: int = shift) -> Value:
                # The sign bit the other way round: negative keys come first.
                byte = ((key >> shift) & (RADIX - 1)) ^ (RADIX // 2 if shift == bits - 8 else 0)
                return byte if byte.dtype is i64 else byte.to(i64)

            here = source.get()
            with k.loop(0, count) as j:
                d = digit(self.keys[here + j])
                counts[d] = counts[d] + 1
            # Keys that agree in this byte stay where they are.
            with k.when(counts[digit(self.keys[here])] < count):
                there, total = target.get(), k.var(i64, 0)
                with k.loop(0, RADIX) as d:
                    many = counts[d]
                    counts[d] = total.get()
                    total.set(total.get() + many)
                with k.loop(0, count) as j:
                    key = self.keys[here + j]
                    d = digit(key)
                    to = counts[d]
                    counts[d] = to + 1
                    self.keys[there + to] = key
                    self.at[there + to] = self.at[here + j]
                source.set(there)
                target.set(here)
        return source.get()

    def above(self, base: Value, wanted: Value, exact: bool) -> Variable:
        """The greatest threshold that `wanted` keys reach; unless `exact`, any that so many reach and no more."""
        k, bits = self.k, 8 * self.key.size
        low = -(1 << (bits - 1))
        t = k.var(self.key, low)
        done = k.var(i64, 0)
        with k.loop(0, bits) as b, k.when(done.get().eq(0)):
            step = k.value(1, self.key) << ((bits - 1) - b).to(self.key)
            new = t.get() ^ step  # the bit is not set yet; the first one is the sign, which is
            s = k.acc("add", wide=f64)
            with k.lanes(self.n, unroll=4) as j:
                s.add(k.select(self.keys[base + j] >= new, k.const(1.0, k.compute), 0.0))
            count = s.total().to(i64)
            with k.when(count >= wanted):
                t.set(new)
            if not exact:
                with k.when(count.eq(wanted)):
                    done.set(1)
        return t


def build_sort(name: str, turned: bool) -> Kernel:
    """``y[row, j]`` and ``place[row, j]``: the entries of a row in order, and where they were."""
    r = _Rows("sort", name, turned)
    k = r.k
    y, place = k.array("y", r.t), k.array("place", i64)
    r.memory()
    counts = k.local("counts", i64, RADIX)

    def work(row: Value, base: Value) -> None:
        r.keyed(row, base)
        with k.loop(0, r.n) as j:
            r.at[base + j] = j.to(i32)
        done = r.sorted(base, r.n, counts)
        with k.loop(0, r.n) as j:
            p = r.at[done + j].to(i64)
            place[row * r.n + j] = p
            y[row * r.n + j] = r.x.raw(row * r.n + p)

    r.every(work)
    return k


def build_top(name: str, turned: bool) -> Kernel:
    """``y[row, j]`` and ``place[row, j]`` for j below m: the first m entries of a row in (descending, for keys) order."""
    r = _Rows("top", name, turned)
    k = r.k
    y, place = k.array("y", r.t), k.array("place", i64)
    r.memory()
    m = k.size("m")
    counts = k.local("counts", i64, RADIX)

    def work(row: Value, base: Value) -> None:
        r.keyed(row, base)
        t = r.above(base, m, False).get()
        found = k.var(i64, 0)
        with k.loop(0, r.n) as j, k.when(r.keys[base + j] >= t):
            # Complements, so that the greatest come first; there are never more of them than were looked at.
            r.keys[base + found.get()] = r.keys[base + j] ^ -1
            r.at[base + found.get()] = j.to(i32)
            found.set(found.get() + 1)
        count = found.get()

        def out(j: Value, p: Value) -> None:
            place[row * m + j] = p
            y[row * m + j] = r.x.raw(row * r.n + p)

        with k.when(count <= FEW), k.loop(0, count) as a:
            mine = r.keys[base + a]
            before = k.acc("add", wide=f64)
            with k.lanes(count, unroll=1) as b:
                other = r.keys[base + b]
                less = (other < mine) | (other.eq(mine) & (b < a))
                before.add(k.select(less, k.const(1.0, k.compute), 0.0))
            rank = before.total().to(i64)
            with k.when(rank < m):
                out(rank, r.at[base + a].to(i64))
        with k.when(count > FEW):
            done = r.sorted(base, count, counts)
            with k.loop(0, m) as j:
                out(j, r.at[done + j].to(i64))

    r.every(work)
    return k


def build_nth(name: str) -> Kernel:
    """``place[row]``: where the first entry stands that equals the one with `m` entries not less than it, by order."""
    r = _Rows("nth", name, False)
    k = r.k
    place = k.array("place", i64)
    r.memory()
    m = k.size("m")

    def work(row: Value, base: Value) -> None:
        r.keyed(row, base)
        t = r.above(base, m, True).get()
        at = k.var(i64, 0)
        with k.loop(0, r.n) as j:
            i = r.n - 1 - j
            at.set(k.select(r.keys[base + i].eq(t), i, at.get()))
        place[row] = at.get()

    r.every(work)
    return k


BUILDERS: dict[str, Callable[..., Kernel]] = {"sort": build_sort, "top": build_top, "nth": build_nth}


def _prepare(what: str, *args: Any) -> Callable[..., Any]:
    return compiler.compile_kernel(BUILDERS[what](*args))


_calls = Calls(_prepare)
INTS = {np.dtype(np.int64): "i64", np.dtype(np.int32): "i32"}


def _rows(x: np.ndarray) -> tuple[np.ndarray, str, tuple[int, int, int], list[np.ndarray]]:
    """The rows of the last axis, the name of their type, how they are shared, and the memory for it."""
    name = INTS.get(x.dtype) or kernel_type(x.dtype).name
    n = x.shape[-1]
    rows = x.size // max(n, 1)
    if not x.size or n >= 1 << 31:
        raise NotSupported
    each = -(-rows // PARTS)
    parts = -(-rows // each)
    wide = np.int64 if key_type(BY_NAME[name]) is i64 else np.int32
    memory = [empty((parts * n * 2,), d) for d in (wide, np.int32)]
    return np.ascontiguousarray(x), name, (rows, n, each), memory


def _run(what: str, args: tuple[Any, ...], *given: Any) -> None:
    f = _calls[what, *args]
    if f is None or f(runtime.pool(), *given) is False:
        raise NotSupported


def sort(x: np.ndarray, descending: bool) -> tuple[np.ndarray, np.ndarray]:
    """The last axis in order, equal entries as they were, and where each was."""
    x, name, sizes, memory = _rows(x)
    y, place = empty(x.shape, x.dtype), empty(x.shape, np.int64)
    _run("sort", (name, descending), x, y, place, *memory, *sizes)
    return y, place


def top(x: np.ndarray, m: int, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """The first m entries that a sort of the last axis would give, descending where the `largest` are asked for; 0 < m."""
    x, name, sizes, memory = _rows(x)
    if not 0 < m <= x.shape[-1]:
        raise NotSupported
    shape = (*x.shape[:-1], m)
    y, place = empty(shape, x.dtype), empty(shape, np.int64)
    _run("top", (name, not largest), x, y, place, *memory, *sizes, m)
    return y, place


def nth(x: np.ndarray, n: int) -> np.ndarray:
    """Where, in the last axis, the first entry stands that equals the n-th of a sort (counted from 0); the axis is kept as 1."""
    x, name, sizes, memory = _rows(x)
    place = empty((*x.shape[:-1], 1), np.int64)
    _run("nth", (name,), x, place, *memory, *sizes, x.shape[-1] - n)
    return place
