"""Loops over values: expressions put into memory, sums and products, in the loop language.

A kernel is either one serial part, in which everything may follow everything, or (for large arrays) a sequence of parallel grids, one for
each result that is put into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from ..kernels.lang import NUMPY_NAMES, Kernel, Value
from .values import (
    Cell,
    Ex,
    Mem,
    Num,
    Pad,
    Unrenderable,
    broadcast,
    contiguous,
    leaves,
    merged,
    resolved,
    shared,
    shown,
    viewed,
)  # fmt: skip

LOCAL_BYTES = 4096  # arrays up to this size live on the stack,
STACK_BYTES = 1 << 16  # as long as all together take no more than this
BLOCK = 1 << 14  # elements a grid index, in large flat loops
ROWS = 4  # rows of a product side by side
COSTLY = 10  # additions an element from which fewer vectors run side by side,
HEAVY = 150  # and from which one does
FLAT = 1 << 10  # elements up to which short rows are laid out flat


def prod(xs: Any) -> int:
    """The product of sizes."""
    n = 1
    for x in xs:
        n *= x
    return n


class Nests:
    """Emits loops into a kernel."""

    def __init__(self, k: Kernel, parallel: bool) -> None:
        self.k, self.parallel = k, parallel
        self.stack = 0
        self.temps: list[tuple[str, tuple[int, ...], Any]] = []  # arrays that every call brings
        self.block: Any = None  # of a large product, a part of a factor

    # -- memory -----------------------------------------------------------------------------------------------------------
    def temp(self, shape: tuple[int, ...], dtype: Any) -> Mem:
        """Memory for an intermediate value."""
        d = NUMPY_NAMES[np.dtype(dtype).name]
        n = max(prod(shape), 1)
        name = f"t{len(self.k.locals)}_{len(self.temps)}"
        size = n * d.size
        if not self.parallel and size <= LOCAL_BYTES and self.stack + size <= STACK_BYTES:
            self.stack += size
            return Mem(self.k.local(name, d, n), shape)
        self.temps.append((name, (n,), np.dtype(dtype)))
        return Mem(self.k.array(name, d), shape)

    def state(self, name: str) -> Any:
        """One whole number that every call brings, 0 at first."""
        self.temps.append((name, (1,), np.dtype(np.int64)))
        return self.k.array(name, NUMPY_NAMES["int64"])

    # -- loops ------------------------------------------------------------------------------------------------------------
    @contextmanager
    def section(self, n: int, cost: int) -> Iterator[Any]:
        """A range of n independent indices: a grid in a parallel kernel, else a loop."""
        if self.parallel:
            with self.k.grid(n, cost=max(cost, 1)) as i:
                yield i
        elif n == 1:
            yield 0
        else:
            with self.k.loop(0, n) as i:
                yield i

    def over(self, dims: tuple[int, ...], cost: int, body: Callable[[list[Any], bool], None], unroll: int = 4) -> None:
        """``body(indices, lanes)`` for all indices, the last of which are lanes."""
        k = self.k
        if not dims:
            with self.section(1, cost):
                body([], False)
            return
        inner = dims[-1]
        if len(dims) == 1:
            if not self.parallel or inner <= BLOCK:
                with self.section(1, inner * cost), k.lanes(inner, unroll=_unroll(k, inner, unroll)) as j:
                    body([j], True)
            else:
                chunks = -(-inner // BLOCK)
                with self.section(chunks, BLOCK * cost) as g:
                    start = g * BLOCK
                    with k.lanes(k.minimum(inner - start, BLOCK) if inner % BLOCK else BLOCK, unroll=unroll) as j:
                        body([start + j], True)
            return
        with ExitStack() as s:
            at: list[Any] = [s.enter_context(self.section(dims[0], prod(dims[1:]) * cost))]
            for n in dims[1:-1]:
                at.append(s.enter_context(k.loop(0, n)))
            j = s.enter_context(k.lanes(inner, unroll=_unroll(k, inner, unroll)))
            body([*at, j], True)

    def index(self, offset: Any, strides: tuple[int, ...], at: list[Any]) -> Any:
        """offset + sum of index * stride; what is known is computed now."""
        fixed, total = (offset, None) if isinstance(offset, int) else (0, offset)
        lane: Any = None
        for i, s in zip(at, strides, strict=True):
            if s == 0:
                continue
            if isinstance(i, int):
                fixed += i * s
                continue
            if isinstance(i, Value) and i.varying:
                if i.op == "lane":
                    lane = i if s == 1 else i * s
                elif s == 1:  # start + lane
                    lane = i
                else:
                    start, j = i.args
                    total = start * s if total is None else total + start * s
                    lane = j * s
                continue
            term = i if s == 1 else i * s
            total = term if total is None else total + term
        if fixed:
            total = fixed if total is None else total + fixed
        if lane is None:
            return 0 if total is None else total
        return lane if total is None else total + lane

    # -- putting values into memory ---------------------------------------------------------------------------------------
    def put(self, v: Any, target: Mem) -> Mem:
        """Store a value in memory that has its shape."""
        if not prod(target.shape):
            return target
        v = resolved(v)
        if isinstance(v, Pad) or (isinstance(v, Ex) and v.kind == "add" and _has_pad(v)):
            return self._put_sum(v, target)
        self.put_all([(v, target)])
        return target

    def put_all(self, pairs: list[tuple[Any, Mem]]) -> None:
        """Values of one shape to their places in one nest; parts of them that are read elsewhere too are kept on the way."""
        extra = [s for s in shared([v for v, _ in pairs]) if s.shape == pairs[0][1].shape]
        roots = {id(v) for v, _ in pairs}
        pairs = [*pairs, *[(s, self.temp(s.shape, _numpy_of(self.k))) for s in extra if id(s) not in roots]]
        self._store(pairs)
        for v, t in pairs:
            if isinstance(v, Ex) and v.readers:
                v.mem = t

    def settle(self, v: Any) -> Any:
        """The value, its parts that are read elsewhere too being in memory."""
        parts = shared([v])
        for shape in dict.fromkeys(p.shape for p in parts):
            self.put_all([(p, self.temp(p.shape, _numpy_of(self.k))) for p in parts if p.shape == shape])
        return resolved(v)

    def memory(self, v: Any, dtype: Any) -> Mem:
        """The value in memory, where it is or in a new place."""
        return v if isinstance(v, Mem) else self.put(v, self.temp(v.shape, dtype))

    def _store(self, pairs: list[tuple[Any, Mem]], plus: bool = False) -> None:
        """Every value to its place, of one shape, in one nest; `plus`: added to what is there."""
        shape = pairs[0][1].shape
        seen: dict[int, Any] = {}
        for v, _ in pairs:
            leaves(v, shape, seen)
        reads = list(seen.values())
        strides = [t.strides for _, t in pairs] + [s for _, s in reads]
        dims, cols = merged(shape, strides)
        order = _order(dims, cols[: len(pairs)])
        dims, cols = tuple(dims[d] for d in order), [tuple(c[d] for d in order) for c in cols]
        if (dims and cols[0][-1] not in (0, 1)) or any(c and c[-1] != 1 for c in cols[: len(pairs)]):
            self._scalar(dims, cols, pairs, reads, plus)
            return
        cost = sum(_once([v for v, _ in pairs])) + 1
        small = len(dims) > 1 and dims[-1] <= self.k.width and prod(dims) <= FLAT and not self.parallel
        if small and cost >= COSTLY and all(t.is_contiguous() for _, t in pairs):
            swap = self._flattened(reads, shape)
            if swap is not None:
                return self._store_flat(
                    pairs, [swap.get(id(m), m) for m, _ in reads], [m for m, _ in reads], plus, cost
                )

        def body(at: list[Any], lanes: bool) -> None:
            places = {id(m): self.index(m.offset, c, at) for (m, _), c in zip(reads, cols[len(pairs) :], strict=True)}
            cell = Cell(self.k, places, self.k.compute)
            got = [
                (self._element(cell(v), t), t, self.index(t.offset, c, at))
                for (v, t), c in zip(pairs, cols, strict=False)
            ]
            for x, t, i in got:
                t.array[i] = t.array[i] + x if plus else x

        self.over(dims, cost, body, 4 if cost < COSTLY else 2 if cost < HEAVY else 1)

    def _flattened(self, reads: list[Any], shape: tuple[int, ...]) -> dict[int, Mem] | None:
        """What is broadcast to a small shape, in memory of that shape: short rows leave vectors empty, or one alone that waits for itself."""
        wide = [(m, s) for m, s in reads if s != contiguous(shape)]
        if len(wide) > 2 or any(m.array.dtype is not self.k.compute for m, _ in wide):
            return None
        swap = {id(m): self.temp(shape, _numpy_of(self.k)) for m, _ in wide}
        for m, _ in wide:
            self._store([(broadcast(m, shape), swap[id(m)])])
        return swap

    def _store_flat(self, pairs: Any, arrays: list[Mem], reads: list[Mem], plus: bool, cost: int) -> None:
        """Values of which all that they read lies row by row, in one loop."""

        def body(at: list[Any], lanes: bool) -> None:
            cell = Cell(
                self.k,
                {id(m): self.index(a.offset, (1,), at) for m, a in zip(reads, arrays, strict=True)},
                self.k.compute,
            )
            cell.arrays = {id(m): a.array for m, a in zip(reads, arrays, strict=True)}
            got = [(self._element(cell(v), t), t, self.index(t.offset, (1,), at)) for v, t in pairs]
            for x, t, i in got:
                t.array[i] = t.array[i] + x if plus else x

        self.over((prod(pairs[0][1].shape),), cost, body, 4 if cost < HEAVY else 1)

    def _element(self, x: Any, t: Mem) -> Value:
        return x if isinstance(x, Value) else self.k.const(x, t.array.dtype)

    def _scalar(self, dims: Any, cols: Any, pairs: Any, reads: Any, plus: bool) -> None:
        """The same, one element after the other: stores that are apart have no vectors."""
        k = self.k
        with ExitStack() as s:
            at: list[Any] = [s.enter_context(self.section(dims[0], prod(dims[1:])))]
            at += [s.enter_context(k.loop(0, n)) for n in dims[1:]]
            places = {id(m): self.index(m.offset, c, at) for (m, _), c in zip(reads, cols[len(pairs) :], strict=True)}
            cell = Cell(k, places, k.compute)
            for (v, t), c in zip(pairs, cols, strict=False):
                i = self.index(t.offset, c, at)
                x = self._element(cell(v), t)
                t.array[i] = t.array[i] + x if plus else x

    def _put_sum(self, v: Any, target: Mem) -> Mem:
        """A sum of which some terms are padded with zeros: the others first, then each of these where it is."""
        whole: list[Any] = []
        pads: list[Pad] = []
        _terms(v, target.shape, whole, pads)
        whole = [self.settle(t) for t in whole]
        for q in pads:
            q.inner = self.settle(q.inner)
        if self._put_pieces(whole, pads, target):
            return target
        first: Any = Num(0.0, target.shape)
        if whole:
            first = whole[0]
            for t in whole[1:]:
                first = Ex(lambda k, a, b: a + b, [first, t], target.shape, first.cost + t.cost + 1)
        self._store([(broadcast(first, target.shape), target)])
        for p in pads:
            part = viewed(target, p.view, p.inner.shape)
            if part is None:
                raise Unrenderable("a padded value of another layout")
            self._store([(p.inner, part)], plus=True)
        return target

    def _put_pieces(self, whole: list[Any], pads: list[Pad], target: Mem) -> bool:
        """The same in one pass where all paddings are along one axis: its range is cut where they begin and end."""
        cuts = [_range_of(p) for p in pads]
        axes = {c[0] for c in cuts if c is not None}
        if None in cuts or len(axes) != 1:
            return False
        axis = axes.pop()
        ends = sorted({0, target.shape[axis], *[e for c in cuts for e in c[1:]]})  # type: ignore[index]
        todo = []
        for a, b in pairwise(ends):
            shape = (*target.shape[:axis], b - a, *target.shape[axis + 1 :])

            def part(v: Any, a: int = a, b: int = b, shape: Any = shape) -> Any:
                key = (*[slice(None)] * axis, slice(a, b))
                return viewed(v, itemgetter(key), shape)

            terms = [part(broadcast(v, target.shape)) for v in whole]
            for p, (_, start, stop) in zip(pads, cuts, strict=True):  # type: ignore[misc]
                if start <= a and b <= stop:
                    terms.append(part(p.inner, a - start, b - start))
            if any(t is None for t in terms):
                return False
            total: Any = Num(0.0, shape)
            for i, t in enumerate(terms):
                total = t if not i else Ex(lambda k, x, y: x + y, [total, t], shape, total.cost + t.cost + 1)
            todo.append((total, part(target)))
        for v, t in todo:
            self._store([(v, t)])
        return True

    # -- sums -------------------------------------------------------------------------------------------------------------
    def reduce(self, v: Any, axes: tuple[int, ...], target: Mem) -> Mem:
        """The sum over the axes of an expression; the target has the other dims."""
        v = self.settle(v)
        n = len(v.shape)
        kept = [d for d in range(n) if d not in axes]
        order = (*kept, *axes)
        turned = viewed(v, lambda a: a.transpose(order), tuple(v.shape[d] for d in order))
        if turned is None:
            raise Unrenderable("a sum of a padded value")
        kd, rd = turned.shape[: len(kept)], turned.shape[len(kept) :]
        if not prod(kd) or not prod(rd):
            raise Unrenderable("a sum of nothing")
        seen = leaves(turned, turned.shape)
        reads = list(seen.values())
        # Kept and summed dims are merged apart.
        kdims, kcols = merged(kd, [target.strides, *[s[: len(kept)] for _, s in reads]])
        rdims, rcols = merged(rd, [s[len(kept) :] for _, s in reads])
        along = sum(bool(c) and c[-1] == 1 for c in rcols)
        across = sum(bool(c) and c[-1] == 1 for c in kcols[1:])
        k = self.k

        def value(at: list[Any], ra: list[Any]) -> Any:
            places = {
                id(m): self.index(m.offset, (*kc, *rc), [*at, *ra])
                for (m, _), kc, rc in zip(reads, kcols[1:], rcols, strict=True)
            }
            cell = Cell(k, places, k.compute)
            if turned.kind == "product" if isinstance(turned, Ex) else False:
                return [cell(x) for x in turned.args]
            return [cell(turned)]

        def plus(acc: Any, xs: list[Any]) -> None:
            """acc + x, or acc + x y rounded once."""
            if len(xs) == 2:
                acc.set(k.fma(xs[0], xs[1], acc.get()))
            else:
                acc.set(acc.get() + xs[0])

        cost = (turned.cost + 1) * prod(rdims)
        if kdims and kcols[0][-1] == 1 and (across > along or not rdims or (across == along and kdims[-1] >= k.width)):

            def columns(at: list[Any], lanes: bool) -> None:
                # Several sums side by side: one alone would wait for itself.
                m = rdims[-1] if rdims else 1
                ways = 4 if m >= 8 and turned.cost < COSTLY else 1
                accs = [k.var(k.compute, 0.0, varying=lanes) for _ in range(ways)]
                with ExitStack() as s:
                    ra: list[Any] = [s.enter_context(k.loop(0, q)) for q in rdims[:-1]]
                    if not rdims:
                        plus(accs[0], value(at, []))
                    else:
                        whole = m // ways * ways
                        with k.loop(0, whole, ways) as i:
                            for q, acc in enumerate(accs):
                                plus(acc, value(at, [*ra, i + q if q else i]))
                        for q in range(whole, m):
                            plus(accs[q - whole], value(at, [*ra, q]))
                total = accs[0].get()
                for acc in accs[1:]:
                    total = total + acc.get()
                target.array[self.index(target.offset, kcols[0], at)] = total

            self.over(kdims, cost, columns, 4 if turned.cost < COSTLY else 2)
            return target
        with ExitStack() as s:
            at: list[Any] = [s.enter_context(self.section(kdims[0] if kdims else 1, cost * prod(kdims[1:])))][
                : len(kdims)
            ]
            at += [s.enter_context(k.loop(0, m)) for m in kdims[1:]]
            total = self._rows(rdims, lambda ra: value(at, ra))
            target.array[self.index(target.offset, kcols[0], at)] = total
        return target

    def _rows(self, rdims: tuple[int, ...], value: Callable[[list[Any]], Any]) -> Any:
        k = self.k
        if not rdims:
            got = value([])
            return got[0] * got[1] if len(got) == 2 else got[0]
        acc = k.acc("add") if prod(rdims) <= 512 else k.sum()
        with ExitStack() as s:
            ra: list[Any] = [s.enter_context(k.loop(0, m)) for m in rdims[:-1]]
            with k.lanes(rdims[-1], unroll=_unroll(k, rdims[-1], 4)) as j:
                got = value([*ra, j])
                acc.fma(*got) if len(got) == 2 else acc.add(got[0])
        return acc.total().to(k.compute)

    # -- products ---------------------------------------------------------------------------------------------------------
    def product(self, a: Mem, b: Mem, target: Mem) -> Mem:
        """a b over the last two dims, lanes over the columns of b, some rows side by side."""
        k = self.k
        (m, depth), n = a.shape[-2:], b.shape[-1]
        lead = target.shape[:-2]
        a, b = broadcast(a, (*lead, m, depth)), broadcast(b, (*lead, depth, n))
        if b.strides[-1] != 1 and n > 1:
            b = self.put(b, self.temp(b.shape, _numpy(b)))
        block = min(ROWS, m)
        whole = m // block * block

        def rows(at: list[Any], first: Any, count: int) -> None:
            with k.lanes(n, unroll=1) as j:
                sums = [k.var(k.compute, 0.0, varying=True) for _ in range(count)]
                with k.loop(0, depth) as i:
                    column = b.array[self.index(b.offset, b.strides, [*at, i, j])]
                    for r, acc in enumerate(sums):
                        x = a.array[self.index(a.offset, a.strides, [*at, first + r if r else first, i])]
                        acc.set(k.fma(x, column, acc.get()))
                for r, acc in enumerate(sums):
                    t = self.index(target.offset, target.strides, [*at, first + r if r else first, j])
                    target.array[t] = acc.get()

        with ExitStack() as s:
            if lead:
                at: list[Any] = [s.enter_context(self.section(lead[0], prod(lead[1:]) * m * depth * n // 4))]
                at += [s.enter_context(k.loop(0, q)) for q in lead[1:]]
            else:
                at = []
                if self.parallel:
                    return self._in_blocks(m, block, depth * n, target, rows)
            with k.loop(0, whole, block) as i:
                rows(at, i, block)
            if whole < m:
                with k.loop(whole, m) as i:
                    rows(at, i, 1)
        return target

    def _in_blocks(self, m: int, block: int, cost: int, target: Mem, rows: Callable[..., None]) -> Mem:
        """The rows of one product on all threads."""
        whole = m // block
        with self.section(whole, cost * block // 4) as g:
            rows([], g * block, block)
        if m % block:
            with self.section(m % block, cost // 4) as g:
                rows([], g + whole * block, 1)
        return target


def _range_of(p: Pad) -> tuple[int, int, int] | None:
    """The axis along which a value is padded, and where it begins and ends; None if there are several, or it has gaps."""
    strides = contiguous(p.shape)
    got = shown(p.shape, strides, p.view)
    if got is None or len(got[0]) != len(p.shape):
        return None
    other = [d for d in range(len(p.shape)) if got[0][d] != p.shape[d]]
    if len(other) != 1 or any(got[1][d] != strides[d] for d in range(len(p.shape)) if got[0][d] > 1):
        return None
    d = other[0]
    start = got[2] // strides[d]
    return (d, start, start + got[0][d]) if start * strides[d] == got[2] else None


def _numpy(m: Mem) -> Any:
    return next(np.dtype(n) for n, d in NUMPY_NAMES.items() if d is m.array.dtype and n != "bfloat16")


def _unroll(k: Kernel, n: int, most: int) -> int:
    """As many vectors side by side as the range has."""
    u = 1
    while u < most and u * 2 * k.width <= n:
        u *= 2
    return u


def _order(dims: tuple[int, ...], targets: list[tuple[int, ...]]) -> list[int]:
    """Dims with the one in which the target's elements are neighbours last."""
    order = list(range(len(dims)))
    unit = [d for d in order if targets[0][d] == 1]
    return [d for d in order if d != unit[-1]] + [unit[-1]] if unit else order


def _has_pad(v: Any) -> bool:
    v = resolved(v)
    return isinstance(v, Pad) or (isinstance(v, Ex) and v.kind == "add" and any(map(_has_pad, v.args)))


def _once(values: list[Any]) -> list[int]:
    """What the parts of expressions cost, each counted once."""
    seen: dict[int, int] = {}
    stack = list(values)
    while stack:
        v = resolved(stack.pop())
        if isinstance(v, Ex) and id(v) not in seen:
            seen[id(v)] = max(v.cost - sum(a.cost for a in v.args), 0)
            stack.extend(v.args)
    return list(seen.values())


def _numpy_of(k: Kernel) -> Any:
    """The type in which a kernel computes."""
    return np.dtype({4: np.float32, 8: np.float64}[k.compute.size])


def _terms(v: Any, shape: tuple[int, ...], whole: list[Any], pads: list[Pad]) -> None:
    v = resolved(v)
    if isinstance(v, Pad) and v.shape == shape:
        pads.append(v)
    elif isinstance(v, Ex) and v.kind == "add" and _has_pad(v):
        for a in v.args:
            _terms(a, shape, whole, pads)
    else:
        whole.append(v)


__all__ = ["Nests", "contiguous", "prod"]
