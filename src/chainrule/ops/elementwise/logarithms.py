"""Powers and logarithms of two numbers: float_power, xlogy, logaddexp."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import pointwise
from ...core.errors import ChainruleError
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.tensor import Tensor
from ...core.types import REAL_NUMS
from ...core.views import assign
from .arithmetic import need_tensors, real_op
from .elementary import exp2, log, sigmoid
from .formulas import RoundedOnce
from .power import pow
from .publish import publish
from .select import where


@public("float_power", methods="float_power")
def float_power(input: Any, exponent: Any) -> Tensor:
    """``input ** exponent`` in double precision (complex where an argument is)."""
    if not isinstance(exponent, Tensor):
        need_tensors("float_power", input=input)
    d = dt.complex128 if any(_is_complex(x) for x in (input, exponent)) else dt.float64
    a, b = (x.to(d) if isinstance(x, Tensor) else x for x in (input, exponent))
    if not isinstance(a, Tensor):
        a = complex(a) if d is dt.complex128 else float(a)
    return pow(a, b)


def _is_complex(x: Any) -> bool:
    return x.dtype.category == dt.COMPLEX if isinstance(x, Tensor) else isinstance(x, complex)


@public("", methods="float_power_", out=False)
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """In-place version of :meth:`float_power`; `self` must have the double type of the result."""
    y = float_power(self, exponent)
    if y.dtype is not self.dtype:
        raise ChainruleError(
            f"the base given to float_power_ has dtype {dt.scalar_type(self.dtype)} but the operation's result requires dtype "
            f"{dt.scalar_type(y.dtype)}"
        )
    return assign(self, y, "float_power_")


def _xlogy(x: Any, y: Any) -> Any:
    r = x * np.log(np.where((x == 0) & (y == y), 1, y))
    return r.astype(x.dtype, copy=False)


def _xlogy_first(t: Any, r: Any, x: Any, y: Any) -> Any:
    y = y if isinstance(y, Tensor) else x.new_full((), y)
    flat = (x == 0) & (y <= 0)
    return where(flat, 0, t * log.bind(where(flat, 1, y)))


def _xlogy_second(t: Any, r: Any, x: Any, y: Any) -> Any:
    # Along x = 0 the function is the constant 0, also at y = 0.
    flat = (x == 0) & (y == 0)
    return where(flat, 0, t * (x / where(flat, 1, y)))


xlogy = publish(
    real_op(
        "xlogy",
        _xlogy,
        _xlogy_first,
        _xlogy_second,
        types="float",
        doc="``input * log(other)``, and 0 where `input` is 0.",
    ),
    "**",
    "special.xlogy",
)


def _logaddexp(a: Any, b: Any) -> Any:
    if a.dtype.kind == "f":
        return np.logaddexp(a, b)
    if a.dtype.kind != "c":
        raise NotImplementedError(f"logaddexp: not implemented for arguments of type {dt.FROM_NP[a.dtype].name}")
    first = a.real >= b.real
    high, low = np.where(first, a, b), np.where(first, b, a)
    same = (a.real == b.real) & np.isinf(a.real)
    y = high + np.log1p(np.exp(low - np.where(same, 0, high)))
    y = np.where(same, np.where(a.real > 0, np.log(np.exp(a) + np.exp(b)), low), y)
    return np.where(np.isnan(a) | np.isnan(b), complex(np.nan, np.nan), y).astype(a.dtype, copy=False)


def _share(t: Any, a: Any, b: Any) -> Any:
    """t times the share of exp(a) in exp(a) + exp(b); one half where both are the same infinity."""
    same = (a == b) & (_magnitude(a) == float("inf"))
    return t * sigmoid.bind(where(same, 0, a - b))


def _share2(t: Any, a: Any, b: Any) -> Any:
    """t times the share of 2**a in 2**a + 2**b: the difference, rounded once, is the only error."""
    same = (a == b) & (_magnitude(a) == float("inf"))
    d = where(same, 0, a - b)
    up = d >= 0
    e = exp2.bind(where(up, 0, d))  # 2**d without overflow
    return t * where(up, 1 / (1 + exp2.bind(-where(up, d, 0))), e / (1 + e))


def _magnitude(a: Any) -> Any:
    return a.abs() if isinstance(a, Tensor) else abs(a)


logaddexp = publish(
    pointwise(
        "logaddexp",
        _logaddexp,
        RoundedOnce(lambda t, y, a, b: _share(t, a, b)),
        RoundedOnce(lambda t, y, a, b: _share(t, b, a)),
        fast=REAL_NUMS,
        doc="``log(exp(input) + exp(other))`` without overflow.",
    ),
    "tt",
    inplace=False,
)
logaddexp2 = publish(
    real_op(
        "logaddexp2",
        np.logaddexp2,
        RoundedOnce(lambda t, y, a, b: _share2(t, a, b)),
        RoundedOnce(lambda t, y, a, b: _share2(t, b, a)),
        kinds="f",
        doc="``log2(2**input + 2**other)`` without overflow.",
    ),
    "tt",
    inplace=False,
)

# -- samples ------------------------------------------------------------------------------------------------------------

for _n in ("logaddexp", "logaddexp2", "xlogy"):
    sample(_n, S(2, 3, low=0.2), S(3, low=0.2), cx=_n == "logaddexp")
    sample(_n, S(), S(2, low=0.5), cx=False)
sample("logaddexp", Given([800.0, -900.0, 0.0], grad=True), Given([800.5, 900.0, 0.0], grad=True), cx=False)
sample("xlogy", Given([0.0, 2.0], grad=False), Given([3.0, 0.5], grad=True), cx=False)
sample("float_power", S(3, low=0.3), S(3))
