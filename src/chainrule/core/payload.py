"""Payloads: what a concrete tensor may hold, and what an array type must offer for that.

NumPy's arrays are one payload, ragged arrays another; more register themselves with :func:`register`. The core asks a payload for
zeros, constants and writes, and for how it runs an op, and never looks inside. An op's body is written with functions that NumPy's
protocols carry to other array types, so most payloads need a body of their own (``op.on(ArrayType)``) for few ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .op import Op

ndarray = np.ndarray


class Payload:
    """An array type as what tensors hold; this one is NumPy's, others override what differs.

    An array has ``shape`` (a tuple of sizes), ``ndim``, ``dtype`` (a NumPy type) and ``astype``.
    """

    array: type = ndarray
    layout = "strided"
    device = "cpu"
    empty = False  # whether there are no elements

    def body(self, op: Op) -> Callable[..., Any]:
        """How `op` runs on arrays of this type: the body declared for it, or by default the op's own."""
        return op.bodies.get(self.array) or op.body

    def body_for(self, op: Op, vals: Any, kw: dict[str, Any]) -> Callable[..., Any]:
        """`body`, for these operands and static data: where arrays of another type are among them, that type's may come first."""
        return self.body(op)

    def zeros(self, like: Any, shape: tuple[Any, ...], dtype: np.dtype[Any]) -> Any:
        """Zeros of a shape, where `like` is."""
        return np.zeros(shape, dtype)

    def asarray(self, like: Any, x: Any, dtype: np.dtype[Any]) -> Any:
        """A number or an array as an array of this type, where `like` is."""
        return np.asarray(x, dtype)

    def write(self, target: Any, value: Any) -> bool:
        """Put `value` into the memory of `target`; False if that cannot be done, and the tensor is to hold `value` instead."""
        np.copyto(target, value, casting="unsafe")
        return True

    def numpy(self, x: Any) -> Any:
        """The elements as NumPy arrays."""
        return x

    def layout_of(self, x: Any) -> str:
        """The name of the layout of one array."""
        return self.layout

    def mapped(self, x: Any) -> Any:
        """A tensor of such an array as ``vmap`` maps over its first dim."""
        return x

    def form(self, op: Op, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        """`op` on tensors that hold such arrays as a composition of other ops, or None where a body runs."""
        return None


STRIDED = Payload()
PAYLOADS: dict[type, Payload] = {}  # beside NumPy's
EMPTY: set[type] = set()  # of these, arrays without elements: a write changes nothing


def register(payload: Payload) -> Payload:
    """Let tensors hold arrays of ``payload.array``."""
    PAYLOADS[payload.array] = payload
    if payload.empty:
        EMPTY.add(payload.array)
    return payload


def payload_of(v: Any) -> Payload:
    """The payload that an array belongs to."""
    return STRIDED if type(v) is ndarray else PAYLOADS.get(type(v), STRIDED)


# The types among them of which a tensor was made and whose ops are compositions (``Payload.form``): whoever has none does not pay.
COMPOSED: list[type] = []


def composed(op: Op, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """`op` by the composition that a payload of `COMPOSED` has for it, at the level of the arguments; None where there is none."""
    for a in args:
        if type(a) in _NUMBERS or not hasattr(a, "_interp"):
            continue
        while a._interp is not None:
            a = a._value
        kind = type(a._value)
        if kind is not ndarray and kind in COMPOSED:
            return PAYLOADS[kind].form(op, args, kw)
    return None


_NUMBERS = (float, int)


def as_payload(v: Any) -> Any:
    """A result of a body as what a tensor may hold: NumPy's scalars become arrays."""
    return v if type(v) is ndarray or type(v) in PAYLOADS else np.asarray(v)
