"""softmax and log_softmax over the last dim, and their reverse rules (in terms of the result y)."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import math
from .calls import Calls, NotSupported, kernel_type, prod
from .lang import DType, Kernel, compute_type
from .pool import empty
from .rows import RowPlan, prepare


class _Forward(RowPlan):
    """y = exp(x - m)/s or (x - m) - log(s), with m = max(x), s = sum(exp(x - m))"""

    name = "softmax"
    reductions = (("max",), ("add",))
    small, large = (4, 1), (1, 2)
    precise = False

    def __init__(self, dtype: DType, log: bool):
        self.dtype, self.log = dtype, log

    def declare(self, k: Kernel, stream: bool) -> None:
        self.inputs, self.vectors, self.columns = [k.array("x", self.dtype)], [], []
        self.outputs = [k.array("y", self.dtype, stream)]
        # The exponentials wait in the output for their sum, unless they would be rounded there or leave the cache.
        self.stored = 1 if not (self.log or stream) and compute_type(self.dtype) is self.dtype else None

    def terms(self, stage: Any, x: Any, vec: Any, coef: Any) -> Any:
        return [(x[0], None)] if stage == 0 else [(math.exp(self.k, x[0] - coef[0]), None)]

    def finish(self, stage: Any, row: Any, sums: Any, coef: Any) -> Any:
        if stage == 0:
            return [sums[0]]
        return [math.log(self.k, sums[0]) if self.log else 1.0 / sums[0]]

    def apply(self, x: Any, vec: Any, coef: Any) -> Any:
        if self.stored is not None:
            return [x[0] * coef[1]], []
        d = x[0] - coef[0]
        return [d - coef[1] if self.log else math.exp(self.k, d) * coef[1]], []


class _Backward(RowPlan):
    """gx = y (g - sum(g y)), or g - exp(y) sum(g) for log_softmax"""

    name = "softmax_backward"
    arrays = 3
    reductions = (("add",),)
    precise = False

    def __init__(self, dtype: DType, log: bool):
        self.dtype, self.log = dtype, log

    def declare(self, k: Kernel, stream: bool) -> None:
        self.inputs, self.vectors, self.columns = [k.array("g", self.dtype), k.array("y", self.dtype)], [], []
        self.outputs = [k.array("gx", self.dtype, stream)]

    def terms(self, stage: Any, x: Any, vec: Any, coef: Any) -> Any:
        return [(x[0], None if self.log else x[1])]

    def finish(self, stage: Any, row: Any, sums: Any, coef: Any) -> Any:
        return [sums[0]]

    def apply(self, x: Any, vec: Any, coef: Any) -> Any:
        g, y = x
        return [self.k.fma(-math.exp(self.k, y), coef[0], g) if self.log else (g - coef[0]) * y], []


def _prepare(plan: type[RowPlan], xd: np.dtype, shape: tuple[int, ...], log: bool) -> Any:
    dtype = kernel_type(xd)
    if not shape or not shape[-1]:
        raise NotSupported
    n = shape[-1]
    return prepare(plan, (dtype, log), prod(shape) // n, n, prod(shape) * dtype.size)


_calls = Calls(_prepare)


def _prepare_last(xd: np.dtype, shape: tuple[int, ...], log: bool) -> Any:
    """The function of arrays of one type and shape."""
    go = _prepare(_Forward, xd, shape, log)

    def last(x: np.ndarray) -> np.ndarray:
        y = empty(shape, xd)
        if go(x, y) is False:
            go(x.copy(), y)
        return y

    return last


_last = Calls(_prepare_last)


def along(x: np.ndarray, dim: int, log: bool) -> Any:
    """softmax or log_softmax over the last dim, as a function of arrays like `x`; None where there is none."""
    return _last[x.dtype, x.shape, log] if dim == -1 else None


def _forward(x: np.ndarray, log: bool) -> np.ndarray:
    go = _calls[_Forward, x.dtype, x.shape, log]
    y = empty(x.shape, x.dtype)
    if go is None or go(x, y) is False:
        raise NotSupported
    return y


def _backward(g: np.ndarray, y: np.ndarray, log: bool) -> np.ndarray:
    go = _calls[_Backward, y.dtype, y.shape, log]
    if go is None or g.shape != y.shape or g.dtype != y.dtype:
        raise NotSupported
    gx = empty(y.shape, y.dtype)
    if go(g, y, gx) is False:
        raise NotSupported
    return gx


def softmax(x: np.ndarray) -> np.ndarray:
    """exp(x - max)/sum over the last dim"""
    return _forward(x, False)


def log_softmax(x: np.ndarray) -> np.ndarray:
    """x - log(sum(exp(x))) over the last dim"""
    return _forward(x, True)


def softmax_backward(g: np.ndarray, y: np.ndarray) -> np.ndarray:
    """y (g - sum(g y))"""
    return _backward(g, y, False)


def log_softmax_backward(g: np.ndarray, y: np.ndarray) -> np.ndarray:
    """g - exp(y) sum(g)"""
    return _backward(g, y, True)
