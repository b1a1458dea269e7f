"""One number of every sequence along some dims of a small array: a moment, a norm, a logarithm of a sum, in one call and in double precision.

NumPy takes four to eight calls for these, each a microsecond, and on sixty-four numbers that is all the time there is. Sequences are rows here: other
dims are copied to the end, so that the bits do not depend on the layout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import compiler, math, runtime
from .calls import Calls, NotSupported, kernel_type, prod
from .lang import DType, Kernel, Value, compute_type, f64

Fold = Callable[[str, Callable[[Value], Value]], Value]
MOST = 1 << 12  # entries: beyond, the loops over vectors of :mod:`.sums` are faster
ROWS = 16  # of so many even where rows are long


class Folds:
    """``f(x)``: what `body` makes of every sequence; ``body(k, n, first, fold, *scalars)``, where ``fold(kind, term)`` goes through the entries.

    `narrow`: not for float64, where double precision has no range or digits to spare. `exact`: nothing is rounded, so that the type of the
    entries will do, and rows of any length.
    """

    def __init__(
        self, name: str, body: Callable[..., Value], scalars: int = 0, narrow: bool = False, exact: bool = False
    ) -> None:
        self.name, self.body, self.scalars, self.narrow, self.exact = name, body, scalars, narrow, exact
        self.made: dict[DType, Callable[..., Any]] = {}
        self.calls = Calls(self.prepare)

    def build(self, dtype: DType) -> Kernel:
        own = compute_type(dtype) if self.exact else f64
        k = Kernel(f"fold_{self.name}_{dtype}", own)
        x, y = k.array("x", dtype), k.array("y", dtype)
        rows, n = k.size("rows"), k.size("n")
        scalars = [k.scalar(f"c{i}") for i in range(self.scalars)]
        with k.grid(rows, cost=n * 8) as row:
            base = row * n

            def fold(kind: str, term: Callable[[Value], Value]) -> Value:
                acc = k.acc(kind, wide=own)
                with k.reducing(n, [acc], unroll=4 if self.exact else 1) as j:
                    acc.add(term(x[base + j]))
                return acc.total()

            y[row] = self.body(k, n.to(own), x[base], fold, *scalars)
        return k

    def prepare(
        self, xd: np.dtype, shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool, *scalars: float
    ) -> Any:
        """The function of arrays of one type and shape."""
        dtype, ndim = kernel_type(xd), len(shape)
        summed = sorted(d % ndim for d in dim)
        if not prod(shape) or not summed or (self.narrow and dtype is f64):
            raise NotSupported
        if prod(shape) > MOST:
            own = summed == list(range(ndim - len(summed), ndim))
            if not self.exact or not own or prod(shape) < ROWS * prod(tuple([shape[d] for d in summed])):
                raise NotSupported
        f = self.made.get(dtype)
        if f is None:
            f = self.made[dtype] = compiler.compile_kernel(self.build(dtype))
        n = prod(tuple([shape[d] for d in summed]))
        rows = prod(shape) // n
        order: Any = (*[d for d in range(ndim) if d not in summed], *summed)
        order = None if order == tuple(range(ndim)) else order
        out = tuple([1 if d in summed else s for d, s in enumerate(shape) if keepdim or d not in summed])
        threads, new = runtime.pool, np.empty

        def go(x: np.ndarray) -> np.ndarray:
            a = x if order is None else x.transpose(order)
            y = new(out, xd)
            if f(threads(), a, y, rows, n, *scalars) is False:
                f(threads(), a.copy(), y, rows, n, *scalars)
            return y

        return go

    def at(self, x: np.ndarray, dim: tuple[int, ...], keepdim: bool, *scalars: float) -> Any:
        """The function for arrays like `x`, or None."""
        return self.calls[x.dtype, x.shape, dim, keepdim, *scalars]


def _spread(k: Kernel, n: Value, first: Value, fold: Fold) -> Value:
    """``sum((x - mean)**2)``; the mean is the first entry and a mean of differences: equal entries have no spread."""
    mean = fold("add", lambda v: v - first) / n

    def square(v: Value) -> Value:
        d = (v - first) - mean
        return d * d

    return fold("add", square)


def _log_sum_exp(k: Kernel, n: Value, first: Value, fold: Fold) -> Value:
    most = fold("max", lambda v: v)
    most = k.select(abs(most) < math.INF, most, 0.0)
    return math.log(k, fold("add", lambda v: math.exp(k, v - most))) + most


def _power(k: Kernel, x: Value, p: Value) -> Value:
    """``x**p`` of what is not below 0, for p above 0."""
    return k.select(x.eq(0.0), 0.0, math.exp(k, p * math.log(k, x)))


variance = Folds("var", lambda k, n, first, fold, dof: _spread(k, n, first, fold) / dof, 1)
deviation = Folds("std", lambda k, n, first, fold, dof: k.sqrt(_spread(k, n, first, fold) / dof), 1)


def _with_nan(k: Kernel, fold: Fold, y: Value) -> Value:
    """`y`, or NaN where there is one."""
    bad = fold("add", lambda v: k.select(v.ne(v), v, 0.0))
    return k.select(bad.ne(bad), bad, y)


largest = Folds("largest", lambda k, n, first, fold: _with_nan(k, fold, fold("max", lambda v: v)), exact=True)
smallest = Folds("smallest", lambda k, n, first, fold: _with_nan(k, fold, -fold("max", lambda v: -v)), exact=True)
total = Folds("sum", lambda k, n, first, fold: fold("add", lambda v: v), narrow=True)
valid = Folds("nansum", lambda k, n, first, fold: fold("add", lambda v: k.select(v.eq(v), v, 0.0)), narrow=True)
greatest = Folds("abs_max", lambda k, n, first, fold: _with_nan(k, fold, fold("max", abs)))
mean = Folds("mean", lambda k, n, first, fold: fold("add", lambda v: v) / n)
product = Folds("prod", lambda k, n, first, fold: fold("mul", lambda v: v))
log_sum_exp = Folds("logsumexp", _log_sum_exp, narrow=True)
norm_p = Folds(
    "norm_p",
    lambda k, n, first, fold, p: _power(k, fold("add", lambda v: _power(k, abs(v), p)), 1.0 / p),
    1,
    narrow=True,
)
norm_1 = Folds("norm_1", lambda k, n, first, fold: fold("add", abs), narrow=True)
norm_2 = Folds("norm_2", lambda k, n, first, fold: k.sqrt(fold("add", lambda v: v * v)), narrow=True)
