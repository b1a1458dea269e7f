"""Comparison; the larger and the smaller of two; clamping. Where two inputs tie, each gets half."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.declare import pointwise
from ...core.registry import public
from ...core.straight import straight
from ...core.tensor import Tensor
from .publish import publish
from .select import where

eq = publish(pointwise("eq", np.equal, doc="Where both are equal."), "t*")
ne = publish(pointwise("ne", np.not_equal, doc="Where both differ."), "t*", "not_equal")
public("", methods="__eq__", out=False)(eq)
public("", methods="__ne__", out=False)(ne)
lt = publish(pointwise("lt", np.less, types="real", doc="``input < other``."), "t*", "less", "__lt__")
le = publish(pointwise("le", np.less_equal, types="real", doc="``input <= other``."), "t*", "less_equal", "__le__")
gt = publish(pointwise("gt", np.greater, types="real", doc="``input > other``."), "t*", "greater", "__gt__")
ge = publish(
    pointwise("ge", np.greater_equal, types="real", doc="``input >= other``."), "t*", "greater_equal", "__ge__"
)
isnan = public("isnan", methods="isnan")(
    pointwise(
        "isnan",
        lambda x: np.isnan(x) if x.dtype.kind in "fc" else np.zeros(x.shape, bool),
        doc="Whether it is NaN; a complex number is where a part of it is.",
    )
)


# -- maximum, minimum, clamp: where two inputs tie, each gets half ------------------------------------------------------


def _choose(worse: Any) -> tuple[Any, Any]:
    # Where one is NaN, neither is worse and both get the whole, as in PyTorch.
    def first(t: Any, y: Any, a: Any, b: Any) -> Any:
        return where(a == b, t / 2, where(worse(a, b), 0, t))

    def second(t: Any, y: Any, a: Any, b: Any) -> Any:
        return where(a == b, t / 2, where(worse(b, a), 0, t))

    return first, second


maximum = publish(
    pointwise(
        "maximum",
        np.maximum,
        *_choose(lambda a, b: a < b),
        types="real",
        doc="The larger one; NaN wins; a tie is shared.",
    ),
    "tt",
    inplace=False,
)
minimum = publish(
    pointwise(
        "minimum",
        np.minimum,
        *_choose(lambda a, b: a > b),
        types="real",
        doc="The smaller one; NaN wins; a tie is shared.",
    ),
    "tt",
    inplace=False,
)

clamp_min_p = pointwise(
    "clamp_min",
    np.maximum,
    lambda t, y, x, lo: where(x >= lo, t, 0),
    lambda t, y, x, lo: where(x < lo, t, 0),
    types="real",
    doc="``max(input, min)``.",
)
clamp_max_p = pointwise(
    "clamp_max",
    np.minimum,
    lambda t, y, x, hi: where(x <= hi, t, 0),
    lambda t, y, x, hi: where(x > hi, t, 0),
    types="real",
    doc="``min(input, max)``.",
)
clamp_p = pointwise(
    "clamp",
    lambda x, lo, hi: np.minimum(np.maximum(x, lo), hi),
    lambda t, y, x, lo, hi: where((x >= lo) & (x <= hi), t, 0),
    lambda t, y, x, lo, hi: where((x < lo) & (lo < hi), t, 0),
    lambda t, y, x, lo, hi: where((x > hi) | (hi < lo), t, 0),
    types="real",
)


@public("clamp clip", methods="clamp clip", inplace="clamp_ clip_")
@straight
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """``input`` limited to [min, max], numbers or tensors; the bounds get the gradient where they are taken."""
    if min is None and max is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")
    if max is None:
        return clamp_min_p.bind(input, min)
    return clamp_max_p.bind(input, max) if min is None else clamp_p.bind(input, min, max)


@public("clamp_min", methods="clamp_min", inplace="clamp_min_")
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """``max(input, min)``."""
    if not isinstance(input, Tensor):
        raise TypeError(f"clamp_min: argument input must be a tensor, got {type(input).__name__}")
    return clamp_min_p.bind(input, min)


@public("clamp_max", methods="clamp_max", inplace="clamp_max_")
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """``min(input, max)``."""
    if not isinstance(input, Tensor):
        raise TypeError(f"clamp_max: argument input must be a tensor, got {type(input).__name__}")
    return clamp_max_p.bind(input, max)
