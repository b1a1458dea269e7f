"""The strides that values of a recording have without jit, where the example at hand is a stand-in that has none of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from .graph import Var
from .values import contiguous, shown


def strides_of(v: Var) -> tuple[int, ...]:
    """Steps in elements from one entry of a dimension to the next."""
    if v.strides is None:
        v.strides = _made(v)
    return v.strides


def in_elements(a: np.ndarray) -> tuple[int, ...]:
    """The strides of an array, in elements."""
    return tuple(s // a.itemsize for s in a.strides)


def _made(v: Var) -> tuple[int, ...]:
    if v.value is not None:
        return in_elements(v.value)
    n = v.node
    if n is None or 0 in v.shape:
        return contiguous(v.shape)
    arrays = [a for a in n.args if isinstance(a, Var)]
    if n.op.view and len(n.outs) == 1 and arrays[0] is n.args[0]:
        got = shown(arrays[0].shape, strides_of(arrays[0]), lambda a: n.op.body(a, **n.kw))
        return contiguous(v.shape) if got is None else tuple(got[1])
    if n.op.form == "pointwise" and n.kw.get("order") != "C":
        return _of_pointwise([a for a in arrays if a.shape], v.shape)
    return contiguous(v.shape)


def _of_pointwise(args: list[Var], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The layout that NumPy gives a result: that of the operands, as far as they agree."""
    if not args or all(strides_of(a) == contiguous(a.shape) for a in args):
        return contiguous(shape)
    like: list[Any] = []
    for a in args:
        strides = strides_of(a)
        size = 1 + sum((n - 1) * abs(s) for n, s in zip(a.shape, strides, strict=True))
        start = sum((n - 1) * -s for n, s in zip(a.shape, strides, strict=True) if s < 0)
        like.append(
            np.ndarray(a.shape, np.uint8, np.empty(size, np.uint8), start, strides)
        )  # memory that nobody touches
    got: Any = np.nditer([*like, None], flags=["zerosize_ok"], op_dtypes=[np.uint8] * (len(like) + 1)).operands[-1]
    return tuple(got.strides) if got.shape == shape else contiguous(shape)
