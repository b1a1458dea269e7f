"""Rounding to decimals, and replacing what is not finite."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import pointwise
from ...core.errors import ZERO
from ...core.registry import public
from ...core.samples import S, sample
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.types import FLOAT_NUMS
from .numbers import varies
from .parts import rounding
from .select import where

round_p = rounding("round", np.rint)


def _round_decimals(x: Any, *, decimals: int) -> Any:
    if x.dtype.kind != "f":
        raise NotImplementedError(
            f"round: with decimals={decimals}, input must be floating, got {dt.FROM_NP[x.dtype].name}"
        )
    ten = x.dtype.type(10.0 ** abs(decimals))
    return np.rint(x * ten) / ten if decimals > 0 else np.rint(x / ten) * ten


round_decimals_p = pointwise("round_decimals", _round_decimals, ZERO, static=True, fast=frozenset())


@public("round special.round", methods="round", inplace="round_")
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest integer, or number with so many decimals; halves go to the even one."""
    return round_p.bind(input) if decimals == 0 else round_decimals_p.bind(input, decimals=decimals)


def _nan_to_num(x: Any, *, nan: float, posinf: float, neginf: float) -> Any:
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf) if x.dtype.kind in "fc" else x.copy()


def _finite_part(t: Any, y: Any, x: Any, **kw: Any) -> Any:
    return where(x.isfinite(), t, 0)


nan_to_num_p = pointwise("nan_to_num", _nan_to_num, _finite_part, static=True, fast=FLOAT_NUMS)


@public("nan_to_num", methods="nan_to_num", inplace="nan_to_num_")
@straight
def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """`input` with NaN replaced (default 0), and the infinities (default the largest and smallest number of the type)."""
    if input.dtype.category < dt.FLOAT:
        return input.clone()
    info = dt.finfo(input.dtype)
    if varies(nan, posinf, neginf):
        finite = nan_to_num_p.bind(input, nan=0.0, posinf=0.0, neginf=0.0)
        for at, v, default in (
            (input != input, nan, 0.0),
            (input == float("inf"), posinf, info.max),
            (input == -float("inf"), neginf, info.min),
        ):
            finite = where(at, default if v is None else v, finite)
        return finite
    return nan_to_num_p.bind(
        input,
        nan=0.0 if nan is None else nan,
        posinf=info.max if posinf is None else posinf,
        neginf=info.min if neginf is None else neginf,
    )


# -- samples ------------------------------------------------------------------------------------------------------------

for _n in ("round", "nan_to_num"):
    sample(_n, S(4), cx=_n == "nan_to_num")
sample("round", S(4), decimals=2, cx=False)
