"""Running sums and products, and linear recurrences, along one axis, in order and in double precision, rounded at the end.

Sums and products have the bits of NumPy's ``accumulate`` in float64. Each goes from the beginning to the end or back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported, kernel_type, prod
from .lang import BY_NAME, Array, Kernel, Value, Variable, compute_type, f64, i64
from .pool import empty

ROWS = 8  # sequences at a time: each waits for its last addition
TILE = 64  # the same where they lie side by side
SUM, PRODUCT, LINEAR = "sum", "product", "linear"

Step = Callable[[Value, Value, Value], Value]


def build(name: str, what: str, back: bool, columns: bool) -> Kernel:
    """``y[a, i, b] = step(y[a, i - 1, b], x[a, i, b])`` over [k1, n, k2]; k2 is 1 unless `columns`.

    A linear one is ``y[i] = c[i] y[i - 1] + x[i]``, and back ``y[i] = c[i + 1] y[i + 1] + x[i]``.
    """
    t = BY_NAME[name]
    k = Kernel(f"scan_{what}{'_back' if back else ''}_{'columns' if columns else 'rows'}_{name}", f64)
    c = k.array("c", t) if what is LINEAR else None
    x, y = k.array("x", t), k.array("y", t)
    k1, n, k2 = k.size("k1"), k.size("n"), k.size("k2")
    start = 1.0 if what is PRODUCT else 0.0

    def join(total: Value, here: Value, factor: Value | None) -> Value:
        if factor is not None:
            return k.fma(factor, total, x[here])
        return total * x[here] if what is PRODUCT else total + x[here]

    def along(states: list[tuple[Variable, Callable[[Value], Value]]]) -> None:
        """One step after the other; a state and where its i-th entry is."""

        def step(i: Value, first: bool) -> None:
            for state, at in states:
                here = at(i)
                factor = None if c is None or first else _factor(c, at, i, back)
                total = x[here] if first and c is not None else join(state.get(), here, factor)
                state.set(total)
                y[here] = total

        if c is None:
            with k.loop(0, n) as i:
                step(n - 1 - i if back else i, False)
            return
        step(n - 1 if back else k.value(0, n.dtype), True)  # type: ignore[arg-type]
        with k.loop(1, n) as i:
            step(n - 1 - i if back else i, False)

    if columns:
        tiles = (k2 + (TILE - 1)) // TILE
        with k.grid(k1 * tiles, cost=n * k.minimum(k2, TILE)) as g:
            first = g % tiles * TILE
            base = g // tiles * n * k2 + first
            with k.lanes(k.minimum(k2 - first, TILE), unroll=4) as j:
                along([(k.var(f64, start, varying=True), lambda i: base + i * k2 + j)])
        return k

    def rows(at: Value, count: int) -> None:
        along([(k.var(f64, start), lambda i, r=r: (at + r) * n + i) for r in range(count)])  # type: ignore[misc]

    with k.grid((k1 + (ROWS - 1)) // ROWS, cost=n * ROWS) as g:
        at = g * ROWS
        with k.when(at + ROWS <= k1):
            rows(at, ROWS)
        with k.when(at + ROWS > k1), k.loop(at, k1) as one:
            rows(one, 1)
    return k


def _factor(c: Array, at: Callable[[Value], Value], i: Value, back: bool) -> Value:
    return c[at(i + 1)] if back else c[at(i)]


_compiled: dict[tuple[Any, ...], Callable[..., Any]] = {}


def _prepare(xd: np.dtype, shape: tuple[int, ...], dim: int, what: str, back: bool) -> Any:
    k1, n, k2 = prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :]) if dim != -1 else 1
    key = (str(kernel_type(xd)), what, back, k2 > 1)
    if not k1 * n * k2:
        raise NotSupported
    f = _compiled.get(key)
    if f is None:
        f = _compiled[key] = compiler.compile_kernel(build(*key))
    return f, (k1, n, k2)


_calls = Calls(_prepare)


def scan(x: np.ndarray, dim: int, what: str, back: bool = False, factor: np.ndarray | None = None) -> np.ndarray:
    """The running sums, products, or with a `factor` linear recurrences, of `x` along `dim`, which is negative."""
    call = _calls[x.dtype, x.shape, dim, what, back]
    if call is None or (factor is not None and (factor.dtype != x.dtype or factor.shape != x.shape)):
        raise NotSupported
    arrays = [np.ascontiguousarray(a) for a in (factor, x) if a is not None]
    y = empty(x.shape, x.dtype)
    if call[0](runtime.pool(), *arrays, y, *call[1]) is False:
        raise NotSupported
    return y


# -- running extremes ---------------------------------------------------------------------------------------------------------


def build_extreme(name: str, largest: bool) -> Kernel:
    """``y[a, i]``: where the greatest (or smallest) of x[a, 0 .. i] stands, the last of equals; a NaN stays."""
    t = BY_NAME[name]
    k = Kernel(f"running_{'max' if largest else 'min'}_{name}", compute_type(t) if t.kind == "f" else f64)
    x, y = k.array("x", t), k.array("y", i64)
    k1, n, k2 = k.size("k1"), k.size("n"), k.size("k2")
    own = k.compute if t.kind == "f" else t

    def along(bases: list[Value]) -> None:
        """Several sequences at a time: each waits for its last comparison."""
        states = [(base, k.var(own, x[base]), k.var(i64, 0)) for base in bases]
        with k.loop(0, n) as i:
            for base, best, at in states:
                here = base + i * k2
                v, old = x[here], best.get()
                better = ((v >= old) if largest else (v <= old)) | v.ne(v)
                best.set(k.select(better, v, old))
                at.set(k.select(better, i, at.get()))
                y[here] = at.get()

    with k.grid((k1 * k2 + (ROWS - 1)) // ROWS, cost=n * 4 * ROWS) as g:
        first = g * ROWS

        def base(e: Value) -> Value:
            return e // k2 * n * k2 + e % k2

        with k.when(first + ROWS <= k1 * k2):
            along([base(first + r) for r in range(ROWS)])
        with k.when(first + ROWS > k1 * k2), k.loop(first, k1 * k2) as one:
            along([base(one)])
    return k


def _extreme(name: str, largest: bool) -> Any:
    return compiler.compile_kernel(build_extreme(name, largest))


def _prepare_extreme(xd: np.dtype, shape: tuple[int, ...], dim: int, largest: bool) -> Any:
    f = _extremes[{np.dtype(np.int64): "i64", np.dtype(np.int32): "i32"}.get(xd) or kernel_type(xd).name, largest]
    d = dim % len(shape)
    sizes = (prod(shape[:d]), shape[d], prod(shape[d + 1 :]))
    if f is None or not prod(shape):
        raise NotSupported
    threads, place = runtime.pool, np.dtype(np.int64)

    def go(x: np.ndarray) -> np.ndarray:
        y = empty(shape, place)
        if f(threads(), x, y, *sizes) is False:
            f(threads(), x.copy(), y, *sizes)
        return y

    return go


_extremes, _running = Calls(_extreme), Calls(_prepare_extreme)


def extremes(x: np.ndarray, dim: int, largest: bool) -> Any:
    """Where the running extremes along `dim` stand, as a function of arrays like `x`; None where there is none."""
    return _running[x.dtype, x.shape, dim, largest]
