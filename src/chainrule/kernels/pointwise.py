"""Fused elementwise kernels on contiguous arrays: a function of the loop language per element, any number of inputs and outputs.

`Pointwise` takes the body as a Python function on kernel values; `fuse` takes it as a recorded graph, a list of operator names and
operand numbers, which is what a recording of array code amounts to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import compiler, math, runtime
from .calls import Calls, NotSupported, kernel_type, prod, streams
from .lang import DType, Kernel, Value, compute_type
from .pool import MIN_BYTES, empty

BLOCK = 1 << 14  # elements per grid index

Body = Callable[..., Any]


def build(
    name: str, body: Body, inputs: Sequence[DType], outputs: Sequence[DType], stream: bool = False, cost: int = 1
) -> Kernel:
    """outputs = body(kernel, *inputs) for every element; cost: arithmetic per element, relative to a copy."""
    k = Kernel(name, compute_type(inputs[0]))
    xs = [k.array(f"x{i}", t) for i, t in enumerate(inputs)]
    ys = [k.array(f"y{i}", t, stream) for i, t in enumerate(outputs)]
    n = k.size("n")
    with k.grid((n + (BLOCK - 1)) // BLOCK, cost=BLOCK * cost) as g:
        start = g * BLOCK
        with k.lanes(k.minimum(n - start, BLOCK), unroll=4) as j:
            out = body(k, *(x[start + j] for x in xs))
            for y, v in zip(ys, (out,) if isinstance(out, Value) else out, strict=True):
                y[start + j] = v
    return k


class Pointwise:
    """A compiled elementwise function: f(*arrays) -> array, or arrays. They are contiguous, of one shape and one float type."""

    def __init__(self, name: str, body: Body, cost: int = 8, outputs: int = 1):
        self.name, self.body, self.cost, self.outputs = name, body, cost, outputs
        self.kernels: dict[tuple[Any, ...], Callable[..., None]] = {}
        self.calls = Calls(self.prepare)

    def prepare(self, xd: np.dtype, shape: tuple[int, ...], inputs: int) -> Callable[..., Any]:
        dtype, n = kernel_type(xd), prod(shape)
        if not n:
            raise NotSupported
        key = (dtype, inputs, streams(n * dtype.size, 64, inputs + self.outputs))
        f = self.kernels.get(key)
        if f is None:
            name = f"{self.name}_{dtype}"
            k = build(name, self.body, (dtype,) * inputs, (dtype,) * self.outputs, key[2], self.cost)
            f = self.kernels[key] = compiler.compile_kernel(k)
        threads = runtime.pool
        if self.outputs > 1:
            return lambda *arrays: f(threads(), *arrays, n)
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
        return self.calls[dtype, shape, inputs] if self.outputs == 1 else None

    def __call__(self, *arrays: np.ndarray) -> Any:
        x = arrays[0]
        shape, dtype = x.shape, x.dtype
        go = self.calls[dtype, shape, len(arrays)]
        if go is None:
            raise NotSupported
        for a in arrays[1:]:
            if a.shape != shape or a.dtype != dtype:
                raise NotSupported
        if self.outputs == 1:
            y = go(*arrays)
            if y is None:
                raise NotSupported
            return y
        ys = tuple([empty(shape, dtype) for _ in range(self.outputs)])
        if go(*arrays, *ys) is False:
            raise NotSupported
        return ys


FUNCTIONS: dict[str, Pointwise] = {name: Pointwise(name, f) for name, f in math.FUNCTIONS.items()}

# g times the derivative at x (or written in terms of the result y where that is cheaper and as accurate)
BACKWARD: dict[str, Pointwise] = {
    "exp": Pointwise("exp_backward", lambda k, g, y: g * y, 1),
    "tanh": Pointwise("tanh_backward", lambda k, g, y: g * k.fma(-y, y, 1.0), 1),
    "sigmoid": Pointwise("sigmoid_backward", lambda k, g, y: g * ((1.0 - y) * y), 1),
    "gelu": Pointwise("gelu_backward", lambda k, g, x: g * math.gelu_derivative(k, x)),
    "gelu_tanh": Pointwise("gelu_tanh_backward", lambda k, g, x: g * math.gelu_tanh_derivative(k, x)),
    "silu": Pointwise("silu_backward", lambda k, g, x: g * math.silu_derivative(k, x)),
}

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

Node = tuple[str, tuple["int | float", ...]]
_fused: dict[Any, Pointwise] = {}


def fuse(inputs: int, nodes: Sequence[Node], outputs: Sequence[int]) -> Pointwise:
    """One kernel for a graph: values 0..inputs-1 are the inputs, then one per node (op, operands).

    An int operand is the number of a value, a float operand a constant. `outputs` are numbers of values.

    >>> f = fuse(2, [("mul", (0, 1)), ("tanh", (2,)), ("add", (3, 1.0))], [4])    # tanh(x y) + 1
    """
    key = (inputs, tuple(nodes), tuple(outputs))
    f = _fused.get(key)
    if f is None:

        def body(k: Kernel, *xs: Value) -> list[Value]:
            values: list[Value] = list(xs)
            for op, operands in key[1]:
                args = [values[a] if isinstance(a, int) else k.const(a, k.compute) for a in operands]
                values.append(OPS[op](k, *args))
            return [values[i] for i in key[2]]

        name = "fused_" + "_".join(op for op, _ in nodes)
        cost = 1 + sum(8 if op in math.FUNCTIONS else 1 for op, _ in nodes) // 4
        f = _fused[key] = Pointwise(name, body, cost, len(outputs))
    return f
