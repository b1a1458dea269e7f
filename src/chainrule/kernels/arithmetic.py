"""a + b, a - b, a b and a / b of large arrays, on all threads, into pooled memory: the same bits as NumPy's.

One operand is a contiguous array. The other is an array of its shape, one number (a scalar, or an array that repeats one: the
cotangent of a sum), one number for each row (a scale for each example) or one for each column (a bias).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported, kernel_type, prod, streams
from .lang import DType, Kernel
from .pointwise import BLOCK, OPS
from .pool import empty

NUMBER, ROWS, COLUMNS, ARRAY = "number", "rows", "columns", "array"


def build(name: str, kind: str, swapped: bool, dtype: DType, stream: bool) -> Kernel:
    """``y = x op c``, or ``c op x`` if swapped, over [rows, n]."""
    k = Kernel(f"{name}_{kind}{'_swapped' if swapped else ''}_{dtype}", dtype)
    x = k.array("x", dtype)
    c: Any = k.scalar("c") if kind is NUMBER else k.array("c", dtype)
    y = k.array("y", dtype, stream)
    rows, n = k.size("rows"), k.size("n")
    blocks = (n + (BLOCK - 1)) // BLOCK
    with k.grid(rows * blocks, cost=k.minimum(n, BLOCK)) as g:
        row, start = g // blocks, g % blocks * BLOCK
        at = row * n + start
        each = c[row] if kind is ROWS else c
        with k.lanes(k.minimum(n - start, BLOCK), unroll=4) as j:
            other = c[at + j] if kind is ARRAY else c[start + j] if kind is COLUMNS else each
            y[at + j] = OPS[name](k, other, x[at + j]) if swapped else OPS[name](k, x[at + j], other)
    return k


_compiled: dict[tuple[Any, ...], Any] = {}


def _prepare(name: str, swapped: bool, xd: np.dtype, shape: tuple[int, ...], cs: Any, strides: Any) -> Any:
    dtype, size = kernel_type(xd), prod(shape)
    if dtype.size < 4 or not size:
        raise NotSupported
    kind, n = (NUMBER, size) if cs is None else _kind(shape, cs, strides, dtype.size)
    key = (name, kind, swapped, dtype, streams(size * dtype.size, n * dtype.size, 3 if kind is ARRAY else 2))
    f = _compiled.get(key)
    if f is None:
        f = _compiled[key] = compiler.compile_kernel(build(*key))
    return f, kind, size // n, n


_calls = Calls(_prepare)


def _kind(shape: tuple[int, ...], cs: tuple[int, ...], strides: tuple[int, ...], item: int) -> tuple[str, int]:
    """How an operand of shape `cs` repeats itself over `shape`, and the length of a row."""
    if len(cs) > len(shape):
        raise NotSupported
    lack = len(shape) - len(cs)
    if any(c not in (1, s) for c, s in zip(cs, shape[lack:], strict=True)):
        raise NotSupported
    # The dims along which it moves, and their strides; all others repeat.
    moves = [(d + lack, b) for d, (c, b) in enumerate(zip(cs, strides, strict=True)) if c > 1 and b]
    if not moves:
        return NUMBER, prod(shape)
    first, last = moves[0][0], moves[-1][0]
    step = item
    for d, b in reversed(moves):
        if b != step:
            raise NotSupported
        step *= shape[d]
    if prod(shape[first : last + 1]) * item != step:
        raise NotSupported  # a dim between two that move repeats
    if prod(shape[:first]) == 1:
        return (ARRAY, prod(shape)) if prod(shape[last + 1 :]) == 1 else (ROWS, prod(shape[last + 1 :]))
    if prod(shape[last + 1 :]) == 1:
        return COLUMNS, prod(shape[first:])
    raise NotSupported


def run(name: str, a: Any, b: Any) -> np.ndarray | None:
    """The result, or None where there is no kernel for the operands, of which one at least is an array."""
    swapped = type(a) is not np.ndarray or (type(b) is np.ndarray and _less(a, b))
    x, c = (b, a) if swapped else (a, b)
    dense = type(c) is np.ndarray
    call = _calls[name, swapped, x.dtype, x.shape, c.shape if dense else None, c.strides if dense else None]
    if call is None:
        return None
    f, kind, rows, n = call
    y = empty(x.shape, x.dtype)
    if kind is NUMBER:
        done = f(runtime.pool(), x, c.item(0) if dense else float(c), y, rows, n)
    else:
        # What the kernel reads of it lies in memory without gaps, from its first entry on.
        done = f(runtime.pool(), x, c if c.flags.c_contiguous else _first(c), y, rows, n)
    return None if done is False else y


def _less(a: np.ndarray, b: np.ndarray) -> bool:
    """Is `a` the one that repeats?"""
    return a.size < b.size or (a.size == b.size and 0 in a.strides and 0 not in b.strides)


def _first(c: np.ndarray) -> np.ndarray:
    """The entries of a repeating array that lie one after the other."""
    return c[tuple([slice(None) if s and n > 1 else 0 for s, n in zip(c.strides, c.shape, strict=True)])]
