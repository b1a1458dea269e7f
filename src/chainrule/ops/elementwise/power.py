"""Powers: ``a ** b`` in both arguments, whole exponents by squaring, the square."""

from __future__ import annotations

import builtins
import functools
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import pointwise
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.types import COMPLEX_NUMS, FLOAT_NUMS
from .elementary import log, sqrt
from .select import where


def _pow(a: Any, b: Any) -> Any:
    if a.dtype.kind in "iu":
        if np.any(b < 0):
            # Integers to a negative power: only 1 and -1 have one.
            with np.errstate(all="ignore"):
                r = np.where(
                    b < 0,
                    np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0)),
                    np.power(a, np.maximum(b, 0)),
                )
            return r.astype(a.dtype)
        return np.power(a, b)
    if a.dtype.kind == "b":
        return a | ~b
    if a.dtype.kind != "c":
        if np.ndim(b) == 0 and 0 < builtins.abs(n := float(b)) <= 64 and n.is_integer():
            return _whole_power(a, int(n))
        return np.power(a, b)
    # NumPy multiplies for integer exponents; in single precision that overflows half way.
    return np.power(a.astype(np.complex128), b).astype(np.complex64) if a.dtype == np.complex64 else np.power(a, b)


def _whole_power(a: Any, n: int) -> Any:
    """``a ** n`` by squaring: the library's power takes up to sixty times as long. Single precision in double from n = 5 on."""
    if n == 3:
        return a * (a * a)
    d = a.dtype
    x = a.astype(np.float64) if builtins.abs(n) > 4 and d == np.float32 else a
    if n < 0:
        x, n = np.reciprocal(x), -n
    y = None
    while True:
        if n & 1:
            y = x if y is None else y * x
        n >>= 1
        if not n:
            break
        x = x * x
    y = np.asarray(y)
    return y.copy() if y is a else y.astype(d, copy=False)


def _pow_complex(a: Any, b: Any) -> Any:
    """PyTorch's complex powers of two tensors are ``exp(b log a)``, which decides what they are at the branch point a = 0."""
    y = _pow(a, b)
    if np.all(a):
        return y
    at = (a == 0) & ~(b.real > 0)
    return np.where(at, np.where(b.real < 0, complex(np.inf, np.nan), complex(np.nan, np.nan)).astype(y.dtype), y)


def _pow_base(t: Any, y: Any, a: Any, b: Any) -> Any:
    if not isinstance(b, Tensor):
        if b == 0:
            return None
        if b == 1:
            return t
        return t * (a * 2 if b == 2 else pow_p.bind(a, b - 1) * b)
    # At exponent 0 the derivative is 0 even where base**-1 is infinite.
    zero = b == 0
    if y.dtype.category == dt.COMPLEX:
        return where(zero, 0, t * (b * pow_p.bind(a, where(zero, 1, b - 1))))
    # Below 1/2, b - 1 is rounded, which far from base 1 costs digits that y / a keeps.
    near = (b < 0.5) & (a != 0) & (a.abs() < float("inf"))
    power = where(near, y / where(near, a, 1), pow_p.bind(a, where(zero | near, 1, b - 1)))
    return where(zero, 0, t * (b * power))


def _pow_exponent(t: Any, y: Any, a: Any, b: Any) -> Any:
    if not isinstance(a, Tensor):
        if a == 0:
            # 0**b is constant (0, or 1 at 0) for b >= 0, infinite below.
            at = (b.real if b.dtype.category == dt.COMPLEX else b) >= 0
            return t * where(at, 0, y * float("-inf") if b.dtype.category != dt.COMPLEX else y)
        return t * (y * (complex(np.log(complex(a))) if b.dtype.category == dt.COMPLEX else complex_log(a)))
    flat = (a == 0) & ((b.real if b.dtype.category == dt.COMPLEX else b) >= 0)
    # In the type of the result: a negative base of a complex power has a logarithm.
    return where(flat, 0, t * (y * log.bind(where(flat, 1, a).to(y.dtype))))


def complex_log(a: Any) -> Any:
    """The logarithm of a Python number; NaN for negative reals, as for tensors."""
    if isinstance(a, complex):
        return complex(np.log(complex(a)))
    return float(np.log(a)) if a > 0 else float("nan")


pow_p = pointwise("pow", _pow, _pow_base, _pow_exponent, fast=FLOAT_NUMS)
# Only the value is PyTorch's NaN at 0 ** 0: derivatives, z' = 1 * z ** 0 among them, are those of pow_p.
pow_complex_p = pointwise(
    "pow_complex",
    _pow_complex,
    _pow_base,
    lambda t, y, a, b: _pow_exponent(t, pow_p.bind(a, b), a, b),
    fast=COMPLEX_NUMS & FLOAT_NUMS,
)


def _power(a: Any, b: Any) -> Tensor:
    if isinstance(b, Tensor) and (
        b.dtype.category == dt.COMPLEX or (isinstance(a, Tensor) and a.dtype.category == dt.COMPLEX)
    ):
        return pow_complex_p.bind(a, b)
    return pow_p.bind(a, b)


@public("pow", methods="pow", inplace="pow_")
@functools.partial(straight, taped=False)
def pow(input: Any, exponent: Any) -> Tensor:
    """``input ** exponent``; 0 ** 0 is 1 (NaN for a complex tensor as exponent), and its derivatives are 0."""
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        raise TypeError(
            f"pow: argument input or exponent must be a tensor, got {type(input).__name__} and {type(exponent).__name__}"
        )
    if isinstance(exponent, int) and exponent < 0 and isinstance(input, Tensor) and input.dtype.category == dt.INT:
        raise RuntimeError("pow: Integers to negative integer powers are not allowed. Convert input to a float type")
    if not isinstance(exponent, Tensor) and isinstance(input, Tensor):
        if exponent == 2 and type(exponent) in (int, float) and input.dtype.category >= dt.FLOAT:
            return square_p.bind(input)
        if exponent == 0.5 and input.dtype.category >= dt.FLOAT:
            return sqrt.bind(input)
    return _power(input, exponent)


square_p = pointwise(
    "square",
    lambda x: np.multiply(x, x),
    lambda t, y, x: t * (x * 2),
    types="count",  # as a power with an integer exponent, the square of a bool is an integer
    doc="``x * x``.",
)
public("square", methods="square", inplace="square_")(square_p)
public("", methods="__pow__", inplace="__ipow__")(pow)
public("", methods="__rpow__")(lambda self, other: _power(other, self))

sample("pow", S(3, low=0.3), S(3))
sample("pow", S(2, 3), 3)
sample("pow", S(2, 3, low=0.3), 2.5)
sample("pow", 2.0, S(3))
sample("pow", Given([-2.0, -0.5, 3.0], grad=True), S(3), cx=False, f=lambda a, b: pow(a, b * (1 + 0.5j)))
sample("pow", Given([0.0, 1.0, -2.0], grad=True), 2)
sample("pow", Given([0.0, 0.5, -2.0], grad=True), Given([1.0, 3.0, 2.0]))
