"""Integers bit by bit, and truth values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import pointwise
from ...core.op import Op
from ...core.registry import public
from ...core.tensor import Tensor
from .publish import INTS, publish


def _bitwise(name: str, fn: Any, dunder: str) -> Op:
    def checked(a: Any, b: Any) -> Any:
        if a.dtype.kind in "fc" or np.asarray(b).dtype.kind in "fc":
            raise NotImplementedError(
                f"{name} is not implemented for floating-point or complex tensors (input or other)"
            )
        return fn(a, b)

    doc = f"The {dunder} of two integers, bit by bit, or of two truth values."
    p = pointwise(name, fn, other=checked, fast=frozenset(INTS | {dt.bool_.np.num}), doc=doc)
    public("", methods=f"__{dunder}__", inplace=f"__i{dunder}__")(p)
    public("", methods=f"__r{dunder}__", out=False)(_swapped(p))
    return publish(p)


def _swapped(p: Op) -> Any:
    """The reflected operator of a commutative op."""
    call = p.bind

    def method(self: Tensor, other: Any) -> Tensor:
        if not isinstance(self, Tensor):
            raise TypeError(f"__r{p.name}__: argument self must be a tensor, got {type(self).__name__}")
        return call(self, other)

    return method


bitwise_and = _bitwise("bitwise_and", np.bitwise_and, "and")
bitwise_or = _bitwise("bitwise_or", np.bitwise_or, "or")
bitwise_xor = _bitwise("bitwise_xor", np.bitwise_xor, "xor")


def _invert(x: Any) -> Any:
    if x.dtype.kind in "fc":
        raise NotImplementedError("bitwise_not is not implemented for floating-point or complex tensors (input)")
    return np.invert(x)


bitwise_not = public("bitwise_not", methods="bitwise_not", inplace="bitwise_not_")(
    pointwise(
        "bitwise_not",
        np.invert,
        other=_invert,
        fast=frozenset(INTS | {dt.bool_.np.num}),
        doc="An integer with every bit turned around, or the other truth value.",
    )
)


@public("", methods="__invert__", out=False)
def invert(self: Tensor) -> Tensor:
    """``~x``: an integer with every bit turned around, or the other truth value."""
    if self.dtype.category > dt.INT:
        raise TypeError(
            f"~ (operator.invert) is only implemented on integer and Boolean-type tensors, got {self.dtype}"
        )
    return bitwise_not(self)
