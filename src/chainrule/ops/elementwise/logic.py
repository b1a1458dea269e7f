"""Logic, shifts, tests for special values, and comparing whole tensors: nothing here has a derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import pointwise
from ...core.op import Op
from ...core.registry import public
from ...core.tensor import Tensor
from ...core.types import ALL_NUMS, FLOAT_NUMS
from .arithmetic import need_tensors
from .operators import mul_p
from .power import pow_p
from .publish import INTS, publish

# -- logical operations: everything but 0 is true -------------------------------------------------------------------------


def _logical(name: str, fn: Any, doc: str) -> Op:
    return publish(pointwise(name, fn, fast=ALL_NUMS, doc=doc), "tt")


logical_and = _logical("logical_and", np.logical_and, "Whether both are true (not 0).")
logical_or = _logical("logical_or", np.logical_or, "Whether one is true (not 0).")
logical_xor = _logical("logical_xor", np.logical_xor, "Whether exactly one is true (not 0).")
logical_not = public("logical_not", methods="logical_not", inplace="logical_not_")(
    pointwise("logical_not", np.logical_not, fast=ALL_NUMS, doc="Whether it is 0.")
)

# -- shifts -----------------------------------------------------------------------------------------------------------


def _shift(name: str, fn: Any, doc: str) -> Op:
    def body(a: Any, b: Any) -> Any:
        if a.dtype.kind not in "iu":
            raise NotImplementedError(
                f"{name}: not implemented for arguments of type {dt.FROM_NP[a.dtype].name}; give integers"
            )
        return fn(a, b)

    return publish(pointwise(name, body, fast=INTS, doc=doc))


bitwise_left_shift = _shift(
    "bitwise_left_shift", np.left_shift, "``input << other``; bits that leave the type are lost."
)
bitwise_right_shift = _shift("bitwise_right_shift", np.right_shift, "``input >> other``, which keeps the sign.")


def _operator(shift: Op, sign: int) -> Any:
    def method(self: Tensor, other: Any) -> Tensor:
        """``self`` shifted; floating numbers are multiplied by a power of two."""
        if self.dtype.category >= dt.FLOAT:
            return mul_p.bind(
                self, pow_p.bind(2.0, other * sign) if isinstance(other, Tensor) else 2.0 ** (other * sign)
            )
        return shift.bind(self, other)

    return method


def _reverse(shift: Op) -> Any:
    def method(self: Tensor, other: Any) -> Tensor:
        """``other`` shifted by ``self``."""
        return shift.bind(other, self)

    return method


public("", methods="__lshift__", inplace="__ilshift__")(_operator(bitwise_left_shift, 1))
public("", methods="__rshift__", inplace="__irshift__")(_operator(bitwise_right_shift, -1))
public("", methods="__rlshift__")(_reverse(bitwise_left_shift))
public("", methods="__rrshift__")(_reverse(bitwise_right_shift))

# -- special values ---------------------------------------------------------------------------------------------------


def _test(name: str, fn: Any, otherwise: bool, doc: str, kinds: str = "fc", out: bool = False) -> Op:
    def body(x: Any) -> Any:
        if x.dtype.kind == "c" and "c" not in kinds:
            raise NotImplementedError(
                f"{name}: not implemented for an input of type {dt.FROM_NP[x.dtype].name}; ask it of a part, x.real or x.imag"
            )
        return fn(x) if x.dtype.kind in "fc" else np.full(x.shape, otherwise)

    return public(name, methods=name, out=out)(pointwise(name, body, fast=FLOAT_NUMS, doc=doc))


isfinite = _test("isfinite", np.isfinite, True, "Whether neither infinite nor NaN (in both parts).")
isinf = _test("isinf", np.isinf, False, "Whether infinite (in either part).")
isposinf = _test("isposinf", lambda x: x == np.inf, False, "Whether positive infinity.", kinds="f", out=True)
isneginf = _test("isneginf", lambda x: x == -np.inf, False, "Whether negative infinity.", kinds="f", out=True)

# -- comparing whole tensors ------------------------------------------------------------------------------------------


def _isclose(a: Any, b: Any, *, rtol: float, atol: float, equal_nan: bool) -> Any:
    if a.dtype.kind in "biu":
        close = (
            np.abs(np.subtract(a, b, dtype=np.float64)) <= atol + rtol * np.abs(b, dtype=np.float64)
            if a.dtype.kind != "b"
            else a == b
        )
        return close if a.dtype.kind == "b" else close | (a == b)
    error, bound = np.abs(a - b), atol + np.abs(rtol * b)
    close = (a == b) | (np.isfinite(error) & (error <= bound))
    return close | (np.isnan(a) & np.isnan(b)) if equal_nan else close


isclose_p = pointwise("isclose", _isclose, static=True, fast=frozenset())


@public("isclose", methods="isclose", out=False)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """``|input - other| <= atol + rtol |other|``, element by element; equal infinities are close."""
    need_tensors("isclose", input=input, other=other)
    if input.dtype is not other.dtype:
        raise RuntimeError(f"isclose: input and other must have one type, got {input.dtype} and {other.dtype}")
    for name, v in (("rtol", rtol), ("atol", atol)):
        if v < 0:
            raise RuntimeError(f"isclose: {name} must not be negative, got {v}")
    return isclose_p.bind(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)


@public("allclose", methods="allclose", out=False)
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close, see :func:`isclose`."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@public("equal", methods="equal", out=False)
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape and the same elements (NaN differs from itself)."""
    return input.shape == other.shape and bool((input == other).all())


@public("is_nonzero", methods="is_nonzero", out=False)
def is_nonzero(input: Tensor) -> bool:
    """Whether a tensor of one element is not 0."""
    if input.numel() != 1:
        raise RuntimeError(
            f"is_nonzero: Boolean value of Tensor with {'more than one value' if input.numel() else 'no values'} is ambiguous (shape {list(input.shape)})"
        )
    return bool(input)


@public("", methods="__contains__", out=False)
def _contains(self: Tensor, element: Any) -> bool:
    """Whether one of the elements equals `element`."""
    if not isinstance(element, Tensor | bool | int | float | complex | np.generic):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
    return bool((self == element).any())
