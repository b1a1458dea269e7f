"""Elementwise kernels on contiguous arrays: a function of the loop language per element, any number of inputs.

`elementwise.py` has those for operands in any layout, which broadcast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import compiler, math, runtime
from .calls import Calls, NotSupported, kernel_type, prod, streams
from .lang import DType, Kernel, compute_type
from .pool import MIN_BYTES, empty

BLOCK = 1 << 14  # elements per grid index

Body = Callable[..., Any]


def build(name: str, body: Body, dtype: DType, inputs: int, stream: bool = False, cost: int = 1) -> Kernel:
    """``y = body(kernel, *xs)`` for every element; cost: arithmetic per element, relative to a copy."""
    k = Kernel(name, compute_type(dtype))
    xs = [k.array(f"x{i}", dtype) for i in range(inputs)]
    y = k.array("y0", dtype, stream)
    n = k.size("n")
    with k.grid((n + (BLOCK - 1)) // BLOCK, cost=BLOCK * cost) as g:
        start = g * BLOCK
        with k.lanes(k.minimum(n - start, BLOCK), unroll=4) as j:
            y[start + j] = body(k, *(x[start + j] for x in xs))
    return k


class Pointwise:
    """A compiled elementwise function: ``f(*arrays) -> array``. They are contiguous, of one shape and one float type."""

    def __init__(self, name: str, body: Body, cost: int = 8):
        self.name, self.body, self.cost = name, body, cost
        self.kernels: dict[tuple[Any, ...], Callable[..., None]] = {}
        self.calls = Calls(self.prepare)

    def prepare(self, xd: np.dtype, shape: tuple[int, ...], inputs: int) -> Callable[..., Any]:
        dtype, n = kernel_type(xd), prod(shape)
        if not n:
            raise NotSupported
        key = (dtype, inputs, streams(n * dtype.size, 64, inputs + 1))
        f = self.kernels.get(key)
        if f is None:
            name = f"{self.name}_{dtype}"
            k = build(name, self.body, dtype, inputs, key[2], self.cost)
            f = self.kernels[key] = compiler.compile_kernel(k)
        threads = runtime.pool
        new: Any = np.empty if n * dtype.size < MIN_BYTES else empty
        if inputs == 1:

            def one(x: np.ndarray) -> Any:
                y = new(shape, xd)
                return None if f(threads(), x, y, n) is False else y

            return one

        def several(*arrays: np.ndarray) -> Any:
            y = new(shape, xd)
            return None if f(threads(), *arrays, y, n) is False else y

        return several

    def call(self, dtype: np.dtype, shape: tuple[int, ...], inputs: int) -> Any:
        """The function for arrays of one type and shape, if there is one: it gives None for those that are not contiguous."""
        return self.calls[dtype, shape, inputs]

    def __call__(self, *arrays: np.ndarray) -> Any:
        x = arrays[0]
        shape, dtype = x.shape, x.dtype
        go = self.calls[dtype, shape, len(arrays)]
        if go is None:
            raise NotSupported
        for a in arrays[1:]:
            if a.shape != shape or a.dtype != dtype:
                raise NotSupported
        y = go(*arrays)
        if y is None:
            raise NotSupported
        return y


# Operators a recorded graph may use, by name.
OPS: dict[str, Body] = {
    "add": lambda k, a, b: a + b,
    "sub": lambda k, a, b: a - b,
    "mul": lambda k, a, b: a * b,
    "div": lambda k, a, b: a / b,
    "neg": lambda k, a: -a,
    "abs": lambda k, a: abs(a),
    "reciprocal": lambda k, a: 1.0 / a,
    "square": lambda k, a: a * a,
    "relu": lambda k, a: k.select(a < 0.0, 0.0, a),
    "maximum": lambda k, a, b: k.select(a.ne(a), a, k.maximum(a, b)),
    "minimum": lambda k, a, b: k.select(a.ne(a), a, k.minimum(a, b)),
    "lt": lambda k, a, b: a < b,
    "le": lambda k, a, b: a <= b,
    "gt": lambda k, a, b: a > b,
    "ge": lambda k, a, b: a >= b,
    "eq": lambda k, a, b: a.eq(b),
    "ne": lambda k, a, b: a.ne(b),
    "where": lambda k, c, a, b: k.select(c, a, b),
    **math.FUNCTIONS,
}
