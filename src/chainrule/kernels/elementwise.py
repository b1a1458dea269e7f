"""One function of the elements of several operands, in any layout and broadcast: an operator declares the formula and gets the loops.

An operand is an array or a number. What lies in memory in one go, or repeats itself, is taken together into at most three dims: the innermost is
the lanes, along which an operand moves by one entry or not at all. Whatever else there is (a transposed operand beside a plain one) is left to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import bessel, compiler, functions, math, runtime
from .calls import Calls, NotSupported, kernel_type, prod, streams
from .lang import DType, Kernel, Value, bool_, compute_type
from .pointwise import BLOCK, OPS
from .pool import MIN_BYTES, empty

SHORT = 16  # entries of an innermost dim below which a loop over them is not worth its beginning
DIMS = 3
CHEAP, COSTLY = 1 << 15, 1 << 11  # elements from which a compiled loop is worth its call
NUMBERS = (float, int, np.floating, np.integer)
CONTIGUOUS, ALIGNED = 1, 256  # NumPy's flags
NUMBER, EACH, SAME = "n", "e", "s"  # a number; along the lanes an operand moves, or repeats

Formula = Callable[..., Value]
FORMULAS: dict[str, Formula] = {
    **OPS,
    "logical_and": lambda k, a, b: a & b,
    "logical_or": lambda k, a, b: a | b,
    "logical_not": lambda k, a: a ^ True,
    "bitwise_and": lambda k, a, b: a & b,
    "bitwise_or": lambda k, a, b: a | b,
    "bitwise_not": lambda k, a: a ^ True,
    "isnan": lambda k, a: a.ne(a),
    "isfinite": lambda k, a: abs(a) < math.INF,
    "sign": lambda k, a: k.select(a > 0.0, 1.0, k.select(a < 0.0, -1.0, k.const(0.0, a.dtype))),
}
FORMULAS["sgn"] = FORMULAS["sign"]
FORMULAS.update(functions.FUNCTIONS)
FORMULAS.update(bessel.FUNCTIONS)


def build(
    name: str, formula: Formula, kinds: Sequence[tuple[str, DType]], compute: DType, out: DType, stream: bool, cost: int
) -> Kernel:
    """``y[a, b, j] = formula(operands at a, b, j)`` over [n0, n1, n]."""
    k = Kernel(name, compute_type(compute))
    operands: list[Any] = []
    for i, (kind, dtype) in enumerate(kinds):
        operands.append(k.scalar(f"c{i}") if kind == NUMBER else k.strided(f"x{i}", dtype))
    y = k.array("y", out, stream)
    n0, n1, n = k.size("n0"), k.size("n1"), k.size("n")
    steps = [None if kind == NUMBER else (k.size(f"s{i}"), k.size(f"t{i}")) for i, (kind, _) in enumerate(kinds)]
    blocks = (n + (BLOCK - 1)) // BLOCK
    with k.grid(n0 * n1 * blocks, cost=k.minimum(n, BLOCK) * cost) as g:
        row, start = g // blocks, g % blocks * BLOCK
        a, b = row // n1, row % n1
        at = row * n + start
        bases: list[Any] = []
        for (kind, _), x, step in zip(kinds, operands, steps, strict=True):
            if step is None:
                bases.append(x)
            else:
                base = a * step[0] + b * step[1]
                bases.append(x[base] if kind == SAME else base + start)
        with k.lanes(k.minimum(n - start, BLOCK), unroll=4 if cost < 16 else 2) as j:
            values = [x[c + j] if kind == EACH else c for (kind, _), x, c in zip(kinds, operands, bases, strict=True)]
            y[at + j] = formula(k, *values)
    return k


def _collapse(shape: tuple[int, ...], strides: list[tuple[int, ...]]) -> tuple[list[int], list[list[int]]]:
    """Neighbouring dims taken together where every operand allows it: sizes, and for each operand its steps."""
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for d, n in enumerate(shape):
        if n == 1:
            continue
        if sizes and all(s[-1] == t[d] * n for s, t in zip(steps, strides, strict=True)):
            sizes[-1] *= n
            for s, t in zip(steps, strides, strict=True):
                s[-1] = t[d]
        else:
            sizes.append(n)
            for s, t in zip(steps, strides, strict=True):
                s.append(t[d])
    return sizes, steps


def _spread(shape: tuple[int, ...], own: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an operand broadcast to `shape`."""
    lack = len(shape) - len(own)
    return (0,) * lack + tuple([0 if s == 1 else t for s, t in zip(own, strides, strict=True)])


def _dense(dtype: np.dtype, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a contiguous array."""
    strides, step = [], dtype.itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


class Elementwise:
    """``f(*operands)``: the compiled formula on arrays and numbers that broadcast, or None where there is no code for them.

    Arrays are of one float type, or of truth values where the formula takes these. `boolean`: the result is of truth values.
    """

    def __init__(
        self, name: str, formula: Formula, cost: int = 1, boolean: bool = False, least: int | None = None
    ) -> None:
        self.name, self.formula, self.cost, self.boolean = name, formula, cost, boolean
        self.least = (CHEAP if cost < 4 else COSTLY) if least is None else least
        self.compiled: dict[Any, Callable[..., Any]] = {}
        self.calls = Calls(self.prepare)

    def prepare(self, *operands: Any) -> Any:
        """The function of operands given as (dtype, shape, strides or None for a contiguous one), or None for a number."""
        arrays = [o if o[2] is not None else (*o[:2], _dense(*o[:2])) for o in operands if o is not None]
        floats = {o[0] for o in arrays if o[0].kind != "b"}
        if len(floats) != 1:
            raise NotSupported
        compute = kernel_type(floats.pop())
        try:
            shape = np.broadcast_shapes(*[o[1] for o in arrays])
        except ValueError:
            raise NotSupported from None
        size = prod(shape)
        if not size:
            raise NotSupported
        strides = [_spread(shape, s, t) for _, s, t in arrays]
        # In the order in which the largest operand lies in memory, as NumPy goes.
        lead = strides[max(range(len(arrays)), key=lambda i: (prod(arrays[i][1]), -i))]
        order = sorted(range(len(shape)), key=lambda d: -abs(lead[d]) if lead[d] else 0) if 0 not in lead else None
        if order is not None and order != list(range(len(shape))):
            shape = tuple([shape[d] for d in order])
            strides = [tuple([s[d] for d in order]) for s in strides]
            back: Any = tuple([order.index(d) for d in range(len(shape))])
        else:
            back = None
        sizes, steps = _collapse(shape, strides)
        sizes, steps = sizes or [1], [s or [0] for s in steps]
        if len(sizes) > DIMS or (len(sizes) > 1 and sizes[-1] < SHORT):
            raise NotSupported
        types = [bool_ if o[0].kind == "b" else compute for o in arrays]
        kinds, numbers, at = [], [], 0
        for o in operands:
            if o is None:
                kinds.append((NUMBER, compute))
                continue
            item, own = types[at].size, steps[at]
            if own[-1] not in (0, item) or any(s % item for s in own):
                raise NotSupported
            kinds.append((EACH if own[-1] or size == 1 else SAME, types[at]))
            outer = [s // item for s in own[:-1]]
            numbers += [0] * (DIMS - 1 - len(outer)) + outer
            at += 1
        out = bool_ if self.boolean else compute
        n = sizes[-1]
        row = n * out.size if len(sizes) > 1 else 64
        key = (tuple(kinds), compute, out, streams(size * out.size, row, len(arrays) + 1))
        f = self.compiled.get(key)
        if f is None:
            tag = "".join(kind for kind, _ in kinds)
            f = compiler.compile_kernel(build(f"{self.name}_{tag}_{compute}", self.formula, *key, self.cost))
            self.compiled[key] = f
        yd = np.dtype(bool) if self.boolean else next(o[0] for o in arrays if o[0].kind != "b")
        steps_ = (*[1] * (DIMS - len(sizes)), *sizes, *numbers)
        new, threads = np.empty if size * out.size < MIN_BYTES else empty, runtime.pool

        def go(*given: Any) -> Any:
            y = new(shape, yd)
            if f(threads(), *given, y, *steps_) is False:
                return None
            return y if back is None else y.transpose(back)

        return go

    def __call__(self, *operands: Any) -> Any:
        key: list[Any] = []
        numbers = False
        for x in operands:
            if type(x) is np.ndarray and x.ndim:
                flags = x.flags.num
                if not flags & ALIGNED:
                    return None
                key.append((x.dtype, x.shape, None if flags & CONTIGUOUS else x.strides))
            elif isinstance(x, NUMBERS) or (type(x) is np.ndarray and x.dtype.kind == "f"):
                numbers = True
                key.append(None)
            else:
                return None
        go = self.calls[tuple(key)]
        if go is None:
            return None
        return (
            go(*[x if type(x) is np.ndarray and x.ndim else float(x) for x in operands]) if numbers else go(*operands)
        )

    def at(self, *operands: Any) -> Any:
        """The function for contiguous operands of these types and shapes, or None: it asks nothing of them."""
        key = [(x.dtype, x.shape, None) if type(x) is np.ndarray and x.ndim else None for x in operands]
        return self.calls[tuple(key)] if any(key) else None
