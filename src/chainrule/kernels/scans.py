"""Running sums and products along one axis, in order and in double precision: the bits of NumPy's ``accumulate`` in float64, rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported, kernel_type, prod
from .lang import BY_NAME, Kernel, Value, f64
from .pool import empty

ROWS = 8  # sequences at a time: each waits for its last addition
TILE = 64  # the same where they lie side by side


def build(name: str, product: bool, columns: bool) -> Kernel:
    """``y[a, i, b] = x[a, 0, b] + ... + x[a, i, b]`` over [k1, n, k2]; k2 is 1 unless `columns`."""
    k = Kernel(f"scan_{'product' if product else 'sum'}_{'columns' if columns else 'rows'}_{name}", f64)
    x, y = k.array("x", BY_NAME[name]), k.array("y", BY_NAME[name])
    k1, n, k2 = k.size("k1"), k.size("n"), k.size("k2")

    def join(a: Value, b: Value) -> Value:
        return a * b if product else a + b

    start = 1.0 if product else 0.0
    if columns:
        tiles = (k2 + (TILE - 1)) // TILE
        with k.grid(k1 * tiles, cost=n * k.minimum(k2, TILE)) as g:
            first = g % tiles * TILE
            base = g // tiles * n * k2 + first
            with k.lanes(k.minimum(k2 - first, TILE), unroll=4) as j:
                t = k.var(f64, start, varying=True)
                with k.loop(0, n) as i:
                    t.set(join(t.get(), x[base + i * k2 + j]))
                    y[base + i * k2 + j] = t.get()
        return k

    def rows(at: Value, count: int) -> None:
        ts = [k.var(f64, start) for _ in range(count)]
        with k.loop(0, n) as i:
            for r, t in enumerate(ts):
                here = (at + r) * n + i
                t.set(join(t.get(), x[here]))
                y[here] = t.get()

    with k.grid((k1 + (ROWS - 1)) // ROWS, cost=n * ROWS) as g:
        at = g * ROWS
        with k.when(at + ROWS <= k1):
            rows(at, ROWS)
        with k.when(at + ROWS > k1), k.loop(at, k1) as one:
            rows(one, 1)
    return k


_compiled: dict[tuple[Any, ...], Callable[..., Any]] = {}


def _prepare(xd: np.dtype, shape: tuple[int, ...], dim: int, product: bool) -> Any:
    k1, n, k2 = prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :]) if dim != -1 else 1
    key = (str(kernel_type(xd)), product, k2 > 1)
    if not k1 * n * k2:
        raise NotSupported
    f = _compiled.get(key)
    if f is None:
        f = _compiled[key] = compiler.compile_kernel(build(*key))
    return f, (k1, n, k2)


_calls = Calls(_prepare)


def scan(x: np.ndarray, dim: int, product: bool) -> np.ndarray:
    """The running sums, or products, of `x` along `dim`, which is negative."""
    call = _calls[x.dtype, x.shape, dim, product]
    if call is None:
        raise NotSupported
    x = np.ascontiguousarray(x)
    y = empty(x.shape, x.dtype)
    if call[0](runtime.pool(), x, y, *call[1]) is False:
        raise NotSupported
    return y
