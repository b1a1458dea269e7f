"""Rows and entries by number: read, written, added to. What is added belongs to who owns the place: no atomics, one order.

Arrays are ``x[a, n, b]``, indices ``i[a, m, b]`` into the middle dim; an index may repeat itself along `a` and `b` (a step of 0). Entries that are only
moved are bits of their size. Sums are taken in double precision, in the order of the indices, and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported, kernel_type, prod
from .lang import BY_NAME, Array, DType, Kernel, Value, bool_, f16, f32, f64, i32, i64, u8
from .pool import empty

LEAST = 1 << 12  # entries from which a compiled loop is worth its call
PARTS = 64  # grid indices that share the rows where each needs memory of its own
TILE = 64  # columns that one of them owns
MOVED: dict[int, DType] = {1: u8, 2: f16, 4: i32, 8: i64}
UNROLL = 8  # entries of a line in one turn of its loop


def _sizes(k: Kernel) -> list[Value]:
    return [k.size(s) for s in ("rows", "n", "m", "width", "ia", "ij", "ib")]


def build_take(name: str, loops: str) -> Kernel:
    """``y[a, j, b] = x[a, i[a, j, b], b]``; for `rows` the index does not depend on b, for `line` there is one b and indices are neighbours."""
    t = BY_NAME[name]
    k = Kernel(f"take_{loops}_{name}", f64 if t.size == 8 else f32)
    x, i, y = k.array("x", t), k.strided("i", i64), k.array("y", t)
    rows, n, m, width, ia, ij, ib = _sizes(k)
    if loops == "line":
        with k.grid(rows, cost=m * 2) as a:
            from_, to, at, whole = a * n, a * m, a * ia, m // UNROLL * UNROLL
            for begin, end, step in ((0, whole, UNROLL), (whole, m, 1)):
                with k.loop(begin, end, step) as j:
                    for r in range(step):
                        y[to + j + r] = x.raw(from_ + i[at + j + r])
        return k
    if loops == "rows":
        with k.grid(rows * m, cost=width) as g:
            a, j = g // m, g % m
            at = (a * n + i[a * ia + j * ij]) * width
            with k.lanes(width, unroll=4) as b:
                y[g * width + b] = x.raw(at + b)
        return k
    with k.grid(rows, cost=m * width * 2) as a, k.loop(0, m) as j, k.loop(0, width) as b:
        y[(a * m + j) * width + b] = x.raw((a * n + i[a * ia + j * ij + b * ib]) * width + b)
    return k


def _owned(
    k: Kernel, rows: Value, width: Value, work: Callable[[Value, Value, Value, Value], None], cost: Value
) -> None:
    """``work(a, first column, columns, which)`` for every row and tile of columns; `which` is the number of its memory."""
    tiles = (width + (TILE - 1)) // TILE
    each = (rows * tiles + (PARTS - 1)) // PARTS
    with (
        k.grid((rows * tiles + each - 1) // each, cost=each * cost) as part,
        k.loop(part * each, k.minimum(part * each + each, rows * tiles)) as g,
    ):
        first = g % tiles * TILE
        work(g // tiles, first, k.minimum(width - first, TILE), part)


def build_add(name: str) -> Kernel:
    """``y = x`` with ``src[a, j, b]`` added at ``[a, i[a, j, b], b]``."""
    t = BY_NAME[name]
    k = Kernel(f"add_each_{name}", f64)
    x, i, src = k.array("x", t), k.strided("i", i64), k.array("src", t)
    y, memory = k.array("y", t), k.array("memory", f64)
    rows, n, m, width, ia, ij, ib = _sizes(k)

    def work(a: Value, first: Value, columns: Value, part: Value) -> None:
        here = part * n * k.minimum(width, TILE)

        def whole(body: Callable[[Value, Value], None]) -> None:
            """Every entry of these columns: in memory, in the array."""
            with k.when(width.eq(columns)), k.lanes(n * width, unroll=4) as e:
                body(here + e, a * n * width + e)
            with k.when(width.ne(columns)), k.loop(0, n) as r, k.lanes(columns, unroll=4) as e:
                body(here + r * columns + e, (a * n + r) * width + first + e)

        def begin(mine: Value, at: Value) -> None:
            memory[mine] = x[at]

        def end(mine: Value, at: Value) -> None:
            y[at] = memory[mine]

        whole(begin)
        with k.when(width.eq(1)), k.loop(0, m) as j:
            at = here + i[a * ia + j * ij]
            memory[at] = memory[at] + src[a * m + j]
        with k.when(width > 1), k.loop(0, m) as j, k.loop(0, columns) as b:
            at = here + i[a * ia + j * ij + (first + b) * ib] * columns + b
            memory[at] = memory[at] + src[(a * m + j) * width + first + b]
        whole(end)

    _owned(k, rows, width, work, (n + m) * k.minimum(width, TILE))
    return k


def build_put(name: str) -> Kernel:
    """``y[a, i[a, j, b], b] = src[a, j, b]``, in the order of j; y holds what stays."""
    t = BY_NAME[name]
    k = Kernel(f"put_each_{name}", f64 if t.size == 8 else f32)
    i, src, y = k.strided("i", i64), k.array("src", t), k.array("y", t)
    rows, n, m, width, ia, ij, ib = _sizes(k)

    def work(a: Value, first: Value, columns: Value, part: Value) -> None:
        with k.when(width.eq(1)), k.loop(0, m) as j:
            y[a * n + i[a * ia + j * ij]] = src.raw(a * m + j)
        with k.when(width > 1), k.loop(0, m) as j, k.loop(first, first + columns) as b:
            y[(a * n + i[a * ia + j * ij + b * ib]) * width + b] = src.raw((a * m + j) * width + b)

    _owned(k, rows, width, work, m * k.minimum(width, TILE))
    return k


def build_extreme(name: str, low: bool, include: bool) -> Kernel:
    """`y`, which holds what is compared with, raised (lowered, if `low`) to ``src[a, j, b]`` at ``[a, i[a, j, b], b]``; NaN wins.

    Unless `include`, what was there before does not count where anything is written.
    """
    t = BY_NAME[name]
    k = Kernel(f"extreme_{'low' if low else 'high'}{'' if include else '_alone'}_{name}", f64 if t.size == 8 else f32)
    i, src, y = k.strided("i", i64), k.array("src", t), k.array("y", t)
    rows, n, m, width, ia, ij, ib = _sizes(k)

    def work(a: Value, first: Value, columns: Value, part: Value) -> None:
        def each(do: Callable[[Value, Value], None]) -> None:
            with k.loop(0, m) as j, k.loop(first, first + columns) as b:
                do((a * n + i[a * ia + j * ij + b * ib]) * width + b, (a * m + j) * width + b)

        def begin(at: Value, of: Value) -> None:
            y[at] = src[of]

        def compare(at: Value, of: Value) -> None:
            old, new = y[at], src[of]
            better = (new < old if low else new > old) | new.ne(new)
            y[at] = k.select(better, new, old)

        if not include:
            each(begin)
        each(compare)

    _owned(k, rows, width, work, m * k.minimum(width, TILE) * 2)
    return k


def build_bisect(name: str, right: bool) -> Kernel:
    """How many entries of a sequence of n lie before each of m values, by halving it as often as `turns` says."""
    t = BY_NAME[name]
    k = Kernel(f"bisect_{'right' if right else 'left'}_{name}", f64 if t.size == 8 else f32)
    x, v, y = k.array("x", t), k.array("v", t), k.array("y", i64)
    n, m, turns = k.size("n"), k.size("m"), k.size("turns")
    with k.grid((m + 255) // 256, cost=turns * 2048) as g, k.loop(g * 256, k.minimum(g * 256 + 256, m)) as e:
        low, high, value = k.var(i64, 0), k.var(i64, n), v[e]
        with k.loop(0, turns):
            middle = (low.get() + high.get()) // 2
            entry = x[k.minimum(middle, n - 1)]
            after = ((entry > value if right else entry >= value) ^ True) & (low.get() < high.get())
            begin, end = k.select(after, middle + 1, low.get()), k.select(after, high.get(), middle)
            low.set(begin)
            high.set(end)
        y[e] = low.get()
    return k


def build_last() -> Kernel:
    """``y[a, j, b]``: is no later index of the column the same; `memory` is n entries of a tile for each part."""
    k = Kernel("last_each", f64)
    i, y, memory = k.strided("i", i64), k.array("y", bool_), k.array("memory", i64)
    rows, n, m, width, ia, ij, ib = _sizes(k)

    def work(a: Value, first: Value, columns: Value, part: Value) -> None:
        here = part * n * k.minimum(width, TILE)

        def place(j: Value, b: Value) -> Value:
            return here + i[a * ia + j * ij + (first + b) * ib] * columns + b

        with k.loop(0, m) as j, k.loop(0, columns) as b:
            memory[place(j, b)] = j
        with k.loop(0, m) as j, k.loop(0, columns) as b:
            y[(a * m + j) * width + first + b] = memory[place(j, b)].eq(j)

    _owned(k, rows, width, work, m * k.minimum(width, TILE) * 2)
    return k


def build_order() -> Kernel:
    """Where each of n rows begins among the sorted indices, and the positions of the indices in that order."""
    k = Kernel("order_rows", f64)
    i, start, place, order = k.strided("i", i64), k.array("start", i64), k.array("place", i64), k.array("order", i64)
    n, m, step = k.size("n"), k.size("m"), k.size("step")
    with k.grid(1, cost=m):
        with k.loop(0, n + 1) as r:
            start[r] = 0
        with k.loop(0, m) as j:
            r = i[j * step] + 1
            start[r] = start[r] + 1
        place[0] = 0
        with k.loop(1, n + 1) as r:
            start[r] = start[r] + start[r - 1]
            place[r] = start[r]
        with k.loop(0, m) as j:
            r = i[j * step]
            at = place[r]
            order[at] = j
            place[r] = at + 1
    return k


def build_count() -> Kernel:
    """``y[r] = how many indices are r``, of all that are below n."""
    k = Kernel("count_each", f64)
    i, y = k.strided("i", i64), k.array("y", i64)
    n, m, step = k.size("n"), k.size("m"), k.size("step")
    with k.grid(1, cost=m):
        with k.lanes(n, unroll=4) as r:
            y[r] = k.const(0, i64)
        with k.loop(0, m) as j:
            r = i[j * step]
            y[r] = y[r] + 1
    return k


def build_add_rows(name: str) -> Kernel:
    """``y[r] = the sum of the rows g[order[p]] for p in start[r] .. start[r + 1]``."""
    t = BY_NAME[name]
    k = Kernel(f"add_rows_{name}", f64)
    start, order = k.array("start", i64), k.array("order", i64)
    g, y = k.array("g", t), k.array("y", t)
    n, width = k.size("n"), k.size("width")
    with k.grid(n, cost=width * 4) as r:
        first, last = start[r], start[r + 1]
        with k.lanes(width, unroll=4) as b:
            s = k.var(f64, 0.0, varying=True)
            with k.loop(first, last) as p:
                s.set(s.get() + g[order[p] * width + b])
            y[r * width + b] = s.get()
    return k


def build_add_few(name: str) -> Kernel:
    """``y[i[j]] += g[j]`` for few rows of many that are 0; of `memory` only what belongs to these rows is touched."""
    t = BY_NAME[name]
    k = Kernel(f"add_few_{name}", f64)
    i, g, y, memory = k.array("i", i64), k.array("g", t), k.array("y", t), k.array("memory", f64)
    m, width = k.size("m"), k.size("width")
    with k.grid(1, cost=m * width * 4):

        def each(do: Callable[[Value, Value], None]) -> None:
            with k.loop(0, m) as j:
                at, of = i[j] * width, j * width
                with k.when(width.eq(1)):
                    do(at, of)
                with k.when(width > 1), k.lanes(width, unroll=2) as b:
                    do(at + b, of + b)

        def begin(at: Value, of: Value) -> None:
            memory[at] = 0.0

        def add(at: Value, of: Value) -> None:
            memory[at] = memory[at] + g[of]

        def end(at: Value, of: Value) -> None:
            y[at] = memory[at]

        for step in (begin, add, end):
            each(step)
    return k


def build_outside() -> Kernel:
    """1 for each block of indices of which one is below `low` or not below `high`."""
    k = Kernel("outside", f64)
    i, y = k.array("i", i64), k.array("y", i64)
    n, low, high = k.size("n"), k.size("low"), k.size("high")
    with k.grid((n + 4095) // 4096, cost=4096) as g:
        start = g * 4096
        s = k.acc("add")
        with k.lanes(k.minimum(n - start, 4096), unroll=4) as j:
            v = i.raw(start + j)
            s.add(k.select((v < low) | (v >= high), 1.0, k.const(0.0, f64)))
        y[g] = k.select(s.total() > 0.0, k.const(1, i64), 0)
    return k


BUILDERS: dict[str, Callable[..., Kernel]] = {
    "take": build_take,
    "add": build_add,
    "put": build_put,
    "extreme": build_extreme,
    "bisect": build_bisect,
    "last": build_last,
    "order": build_order,
    "count": build_count,
    "add_rows": build_add_rows,
    "add_few": build_add_few,
    "outside": build_outside,
}


def _prepare(what: str, *args: Any) -> Callable[..., Any]:
    return compiler.compile_kernel(BUILDERS[what](*args))


_calls = Calls(_prepare)


def _code(what: str, *args: Any) -> Callable[..., Any]:
    f = _calls[what, *args]
    if f is None:
        raise NotSupported
    return f


def _moved(d: np.dtype) -> str:
    t = MOVED.get(d.itemsize)
    if t is None or d.hasobject:
        raise NotSupported
    return t.name


def _floats(d: np.dtype) -> str:
    return kernel_type(d).name


def _steps(i: np.ndarray, shape: tuple[int, int, int]) -> tuple[int, int, int]:
    """How far apart neighbouring indices lie along each of three dims; an index of fewer entries repeats itself."""
    if i.dtype != np.int64 or not i.flags.aligned or any(s % 8 for s in i.strides):
        raise NotSupported
    return tuple([0 if n == 1 else s // 8 for n, s in zip(i.shape, i.strides, strict=True)])  # type: ignore[return-value]


def _plain(*arrays: np.ndarray) -> None:
    for a in arrays:
        if not a.flags.c_contiguous or not a.flags.aligned:
            raise NotSupported


def _scratch(rows: int, n: int, width: int, dtype: Any) -> np.ndarray:
    """Memory for n entries of a tile of columns, for each part of the work."""
    tiles = -(-width // TILE)
    each = -(-rows * tiles // PARTS)
    return empty((-(-rows * tiles // each) * n * min(width, TILE),), dtype)


def take(x: np.ndarray, i: np.ndarray, m: int) -> np.ndarray:
    """``y[a, j, b] = x[a, i[a, j, b], b]`` for x[a, n, b] and an index of three dims, m of them in the middle; in range."""
    _plain(x)
    rows, n, width = x.shape
    steps = _steps(i, (rows, m, width))
    y = empty((rows, m, width), x.dtype)
    if not y.size:
        raise NotSupported
    loops = ("line" if steps[1] == 1 else "each") if width == 1 else "each" if steps[2] else "rows"
    f = _code("take", _moved(x.dtype), loops)
    f(runtime.pool(), x, i, y, rows, n, m, width, *steps)
    return y


def add(x: np.ndarray, i: np.ndarray, src: np.ndarray) -> np.ndarray:
    """`x` with ``src[a, j, b]`` added at ``[a, i[a, j, b], b]``."""
    _plain(x, src)
    rows, n, width = x.shape
    m = src.shape[1]
    if not x.size or not src.size:
        raise NotSupported
    f, y = _code("add", _floats(x.dtype)), empty(x.shape, x.dtype)
    f(runtime.pool(), x, i, src, y, _scratch(rows, n, width, np.float64), rows, n, m, width, *_steps(i, src.shape))
    return y


def put(x: np.ndarray, i: np.ndarray, src: np.ndarray) -> np.ndarray:
    """`x` with ``src[a, j, b]`` written to ``[a, i[a, j, b], b]``; of equal indices the last one counts."""
    _plain(x, src)
    rows, n, width = x.shape
    if not x.size or not src.size or x.dtype != src.dtype:
        raise NotSupported
    f, y = _code("put", _moved(x.dtype)), empty(x.shape, x.dtype)
    steps = _steps(i, src.shape)
    np.copyto(y, x)
    f(runtime.pool(), i, src, y, rows, n, src.shape[1], width, *steps)
    return y


def extreme(x: np.ndarray, i: np.ndarray, src: np.ndarray, low: bool, include: bool) -> np.ndarray:
    """`x` raised, or lowered, to ``src[a, j, b]`` at ``[a, i[a, j, b], b]``."""
    _plain(x, src)
    rows, n, width = x.shape
    if not x.size or not src.size or x.dtype != src.dtype:
        raise NotSupported
    f, y = _code("extreme", _floats(x.dtype), low, include), empty(x.shape, x.dtype)
    steps = _steps(i, src.shape)
    np.copyto(y, x)
    f(runtime.pool(), i, src, y, rows, n, src.shape[1], width, *steps)
    return y


def bisect(x: np.ndarray, v: np.ndarray, right: bool) -> np.ndarray:
    """Where each value belongs in a sequence, which is halved whether or not it is sorted."""
    _plain(x, v)
    if not x.size or not v.size or x.dtype != v.dtype:
        raise NotSupported
    f, y = _code("bisect", _floats(x.dtype), right), empty(v.shape, np.int64)
    f(runtime.pool(), x, v, y, x.size, v.size, x.size.bit_length())
    return y


def last(i: np.ndarray, n: int) -> np.ndarray:
    """Where no later index of the column is the same, for an index into n entries of ``[a, m, b]``."""
    rows, m, width = i.shape
    if not i.size:
        raise NotSupported
    f, y = _code("last"), empty(i.shape, np.bool_)
    f(runtime.pool(), i, y, _scratch(rows, n, width, np.int64), rows, n, m, width, *_steps(i, i.shape))
    return y


def add_rows(g: np.ndarray, i: np.ndarray, n: int) -> np.ndarray:
    """``y[r] = the sum of g[j] with i[j] = r`` for r below n; g[m, width]."""
    _plain(g)
    m, width = g.shape
    if not g.size or i.dtype != np.int64 or i.strides[0] % 8 or not i.flags.aligned:
        raise NotSupported
    f, sort = _code("add_rows", _floats(g.dtype)), _code("order")
    start, place, order = (np.empty(s, np.int64) for s in (n + 1, n + 1, m))
    sort(runtime.pool(), i, start, place, order, n, m, i.strides[0] // 8)
    y = empty((n, width), g.dtype)
    f(runtime.pool(), start, order, g, y, n, width)
    return y


def bags(x: np.ndarray, i: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The sums of rows of a table by number, of so many numbers each; numbers in range."""
    _plain(x, i)
    if not x.size or not i.size or not lengths.size or i.dtype != np.int64:
        raise NotSupported
    start = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=start[1:])
    if start[-1] > i.size or lengths.min() < 0:
        raise NotSupported
    y = empty((lengths.size, x.shape[1]), x.dtype)
    _code("add_rows", _floats(x.dtype))(runtime.pool(), start, i, x, y, lengths.size, x.shape[1])
    return y


def count(i: np.ndarray, n: int) -> np.ndarray:
    """How often each of the numbers below n occurs in a vector of them."""
    if i.dtype != np.int64 or not i.size or i.strides[0] % 8 or not i.flags.aligned:
        raise NotSupported
    y = empty((n,), np.int64)
    _code("count")(runtime.pool(), i, y, n, i.size, i.strides[0] // 8)
    return y


def outside(i: np.ndarray, low: int, high: int) -> bool:
    """Is an index below `low` or not below `high`."""
    if i.dtype != np.int64 or not i.size:
        raise NotSupported
    _plain(i)
    y = np.empty(-(-i.size // 4096), np.int64)
    _code("outside")(runtime.pool(), i, y, i.size, low, high)
    return bool(y.any())


# -- arrays of one kind: what their shapes decide is decided once ---------------------------------------------------------------

FEW = 4  # times as many rows as are added to
MANY = 1 << 23  # entries of all rows: the scratch memory is of so many
MOST = 1 << 17  # entries: beyond, what is worked out again for each call is nothing beside the loops


def _prepare_at(what: str, xd: np.dtype, shape: tuple[int, ...], own: tuple[int, ...], dim: int) -> Any:
    """ "take", "put", "add" or "extreme" (" low", " alone") along `dim` of arrays of a shape by contiguous indices of the shape `own`.

    It is a function of the arrays, and gives None where the arrays do not lie as they must.
    """
    d = dim % len(shape)
    if len(own) != len(shape) or shape[:d] != own[:d] or shape[d + 1 :] != own[d + 1 :] or 0 in shape or 0 in own:
        raise NotSupported
    rows, n, m, width = prod(shape[:d]), shape[d], own[d], prod(shape[d + 1 :])
    if max(rows * n * width, rows * m * width) > MOST:
        raise NotSupported
    steps = (m * width if rows > 1 else 0, width if m > 1 else 0, 1 if width > 1 else 0)
    sizes = (rows, n, m, width, *steps)
    threads, new = runtime.pool, np.empty
    if what == "take":
        f = _code("take", _moved(xd), "line" if width == 1 and steps[1] == 1 else "each")

        def take(x: np.ndarray, i: np.ndarray) -> Any:
            if not i.flags.c_contiguous or not i.flags.aligned:
                return None
            y = new(own, xd)
            return None if f(threads(), x, i, y, *sizes) is False else y

        return take
    if what == "put":
        f = _code("put", _moved(xd))

        def put(x: np.ndarray, i: np.ndarray, src: np.ndarray) -> Any:
            if not i.flags.c_contiguous or not i.flags.aligned:
                return None
            y = x.copy()
            return None if f(threads(), i, src, y, *sizes) is False else y

        return put
    if what.startswith("extreme"):
        g = _code("extreme", _floats(xd), "low" in what, "alone" not in what)

        def extreme(x: np.ndarray, i: np.ndarray, src: np.ndarray) -> Any:
            if not i.flags.c_contiguous or not i.flags.aligned:
                return None
            y = x.copy()
            return None if g(threads(), i, src, y, *sizes) is False else y

        return extreme
    f = _code("add", _floats(xd))

    def add(x: np.ndarray, i: np.ndarray, src: np.ndarray) -> Any:
        if not i.flags.c_contiguous or not i.flags.aligned:
            return None
        y = new(shape, xd)
        done = f(threads(), x, i, src, y, _scratch(rows, n, width, np.float64), *sizes)
        return None if done is False else y

    return add


def _prepare_outside(low: int, high: int, shape: tuple[int, ...]) -> Any:
    f, size, threads, new, flag = _code("outside"), prod(shape), runtime.pool, np.empty, np.dtype(np.int64)
    if not 0 < size <= MOST:
        raise NotSupported
    blocks = -(-size // 4096)

    def outside(i: np.ndarray) -> Any:
        y = new(blocks, flag)
        if f(threads(), i, y, size, low, high) is False:
            return None
        return y.item() if blocks == 1 else any(y.tolist())

    return outside


def _prepare_line(xd: np.dtype, shape: tuple[int, ...], m: int) -> Any:
    """Entries ``x[..., i]`` of the last axis by a contiguous vector of m indices, as a function of the arrays."""
    n, out = shape[-1], (*shape[:-1], m)
    rows = prod(shape[:-1])
    if not (rows and n and m) or rows * max(n, m) > MOST:
        raise NotSupported
    f, threads, new, sizes = _code("take", _moved(xd), "line"), runtime.pool, np.empty, (rows, n, m, 1, 0, 1, 0)

    def line(x: np.ndarray, i: np.ndarray) -> Any:
        if not i.flags.c_contiguous or not i.flags.aligned:
            return None
        y = new(out, xd)
        return None if f(threads(), x, i, y, *sizes) is False else y

    return line


def _prepare_sums(xd: np.dtype, lead: tuple[int, ...], m: int, n: int, rest: tuple[int, ...]) -> Any:
    """``y[a, r] = the sum of g[a, j] with i[j] = r`` for r below n, of m rows of the shape `rest`, as a function of the arrays."""
    width, rows = prod(rest), prod(lead)
    if not (m and n and width and rows):
        raise NotSupported
    threads, new, out = runtime.pool, np.empty, (*lead, n, *rest)
    if rows == 1 and FEW * m <= n and m * width <= MOST and n * width <= MANY:
        few = _code("add_few", _floats(xd))

        def few_sums(g: np.ndarray, i: np.ndarray) -> Any:
            if not i.flags.c_contiguous or not i.flags.aligned:
                return None
            y = empty(out, xd)
            y.fill(0)
            return None if few(threads(), i, g, y, empty((n * width,), np.float64), m, width) is False else y

        return few_sums
    if rows * max(m, n) * width > MOST:
        raise NotSupported
    if m * width >= LEAST and width > 1 and rows == 1:
        add, sort, place = _code("add_rows", _floats(xd)), _code("order"), np.dtype(np.int64)

        def sorted_sums(g: np.ndarray, i: np.ndarray) -> Any:
            if not i.flags.c_contiguous or not i.flags.aligned:
                return None
            start, order, y = new(n + 1, place), new(m, place), new(out, xd)
            if sort(threads(), i, start, new(n + 1, place), order, n, m, 1) is False:
                return None
            return None if add(threads(), start, order, g, y, n, width) is False else y

        return sorted_sums
    f, base = _code("add", _floats(xd)), (rows, n, width)
    kept = np.zeros(base, xd) if prod(base) <= LEAST else None
    size = _scratch(rows, n, width, np.float64).size

    def sums(g: np.ndarray, i: np.ndarray) -> Any:
        if not i.flags.c_contiguous or not i.flags.aligned:
            return None
        y, zeros = new(out, xd), np.zeros(base, xd) if kept is None else kept
        done = f(threads(), zeros, i, g, y, new(size), rows, n, m, width, 0, 1, 0)
        return None if done is False else y

    return sums


_at, _outside, _sums, _line = Calls(_prepare_at), Calls(_prepare_outside), Calls(_prepare_sums), Calls(_prepare_line)


def line(x: np.ndarray, i: np.ndarray) -> Any:
    """The function of `_prepare_line` for arrays like these, or None."""
    return _line[x.dtype, x.shape, i.size] if i.dtype == np.int64 and i.ndim == 1 else None


def summing(xd: np.dtype, lead: tuple[int, ...], m: int, n: int, rest: tuple[int, ...]) -> Any:
    """The function of `_prepare_sums`, or None."""
    return _sums[xd, lead, m, n, rest]


def at(what: str, x: np.ndarray, i: np.ndarray, dim: int) -> Any:
    """The function of `_prepare_at` for arrays like these; None where there is none."""
    return _at[what, x.dtype, x.shape, i.shape, dim] if i.dtype == np.int64 and i.ndim else None


def outside_of(i: np.ndarray, low: int, high: int) -> Any:
    """`outside` as a function of arrays like `i`, which gives None where it cannot tell; None where there is none."""
    return _outside[low, high, i.shape] if i.dtype == np.int64 else None


__all__ = [
    "LEAST",
    "Array",
    "add",
    "add_rows",
    "at",
    "bags",
    "bisect",
    "count",
    "extreme",
    "last",
    "line",
    "outside",
    "outside_of",
    "put",
    "summing",
    "take",
]
