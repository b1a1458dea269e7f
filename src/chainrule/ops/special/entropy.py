"""Entropy, logit, ``x log(1 + y)``."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...core.declare import pointwise
from ...core.op import Op
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.types import FLOAT_NUMS
from ..elementwise.elementary import km, log1p, slope
from ..elementwise.formulas import compiled
from ..elementwise.select import where
from .base import one_tensor, scipy_special, unary

# 1/e in two parts: where -1 - log(x) passes through 0, x - 1/e has all its digits.
_E = {4: (0.3678794503211975, -9.149755188170102e-09), 8: (0.36787944117144233, -1.2428753672788363e-17)}


def _entr_slope(t: Any, x: Any) -> Any:
    if x.dtype.itemsize == 2:
        return _entr_slope(np.asarray(t, np.float32), np.asarray(x, np.float32)).astype(x.dtype)
    high, low = _E[x.dtype.itemsize]
    u = (x - high) - low
    near = np.abs(u) < 0.05
    return t * np.where(near, -np.log1p(np.where(near, u * math.e, 0)), -1 - np.log(x))


def _entr_slope_loop(k: Any, t: Any, x: Any) -> Any:
    high, low = _E[x.dtype.size]
    u = (x - high) - low
    return t * k.select(abs(u) < 0.05, -km().log1p(k, u * math.e), -1.0 - km().log(k, x))


entr_slope: Op = pointwise(
    "entr_slope",
    compiled("entr_slope", _entr_slope, _entr_slope_loop),
    lambda s, y, t, x: entr_slope.bind(s, x),
    lambda s, y, t, x: -s * t / x,
    fast=FLOAT_NUMS,
)
entr = unary(
    "entr",
    scipy_special("entr"),
    lambda t, y, x: entr_slope.bind(t, x),
    "``-x log(x)``, 0 at 0 and -inf for negative x; its derivative at 0 is infinite.",
)

NAN = float("nan")

# -- logit ------------------------------------------------------------------------------------------------------------


logit_slope = slope(
    "logit_slope",
    lambda t, x: t / np.where((x < 0) | (x > 1), x.dtype.type(np.nan), x * (1 - x)),
    lambda k, t, x: t / k.select(x < 0.0, NAN, k.select(x > 1.0, NAN, x * (1.0 - x))),
    # One factor at a time: the square of x (1 - x) would underflow.
    lambda x: (x * 2 - 1) / (x * (1 - x)),
)
logit_p = pointwise("logit", scipy_special("logit"), lambda t, y, x: logit_slope.bind(t, x), types="float")


@public("logit special.logit", methods="logit", inplace="logit_")
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``, NaN outside [0, 1]; with `eps`, x is first limited to [eps, 1 - eps], and constant beyond.

    >>> chainrule.logit(chainrule.tensor([0.0, 0.5, 0.9]), eps=0.1)
    tensor([-2.1972,  0.0000,  2.1972])
    """
    if eps is None or eps < 0:
        return logit_p.bind(input)
    x: Any = input if input.is_floating_point() else input.to(_default())
    # In this order `eps` wins over ``1 - eps`` should they cross.
    return logit_p.bind(where(x < eps, eps, where(x > 1 - eps, 1 - eps, x)))


def _default() -> Any:
    from ...core.dtypes import get_default_dtype

    return get_default_dtype()


# -- x log(1 + y) -----------------------------------------------------------------------------------------------------


def _in_factor(t: Any, out: Any, x: Any, y: Any) -> Any:
    """``log(1 + y)``, but 0 where x is 0 and the logarithm does not exist."""
    if not isinstance(y, Tensor):
        y = out * 0 + y
    flat = (x == 0) & (y <= -1)
    return where(flat, 0, t * log1p.bind(where(flat, 0, y)))


def _in_argument(t: Any, out: Any, x: Any, y: Any) -> Any:
    return t * (x / (y + 1))


xlog1py_p = pointwise("xlog1py", scipy_special("xlog1py"), _in_factor, _in_argument, types="float")


@public("special.xlog1py")
@functools.partial(straight, taped=False)
def xlog1py(input: Any, other: Any) -> Tensor:
    """``input * log(1 + other)``, and 0 where `input` is 0 (NaN where `other` is NaN)."""
    one_tensor("xlog1py", input=input, other=other)
    return xlog1py_p.bind(input, other)


# -- samples ----------------------------------------------------------------------------------------------------------

sample("special.entr", S(2, 3, low=0.2, high=3.0), cx=False)
sample("special.entr", S(low=0.2, high=3.0), cx=False)
sample("logit", S(2, 3, low=0.1, high=0.9), cx=False)
sample("logit", Given([0.01, 0.3, 0.95], grad=True), 0.1, cx=False)
sample("logit", S(0), cx=False)
sample("special.xlog1py", S(2, 3), S(3, low=-0.5, high=3.0), cx=False)
sample("special.xlog1py", 2.5, S(3, low=-0.5, high=3.0), cx=False)
sample("special.xlog1py", S(3), 2.5, cx=False)
sample("special.xlog1py", Given([0.0, 0.0], grad=True), Given([-0.5, 2.0], grad=True), cx=False)
