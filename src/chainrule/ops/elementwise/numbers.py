"""Numbers given as tensors: a parameter that is a number to an op (a slope, an eps, a padding value) and that is differentiated.

Such a parameter is static data of an op, which has no derivative in it. Where a tensor that somebody differentiates (or maps over) is
given, the function goes by its formula in plain ops instead, so that no derivative is lost.
"""

from __future__ import annotations

from typing import Any

from ...core import dtypes as dt
from ...core.op import Op
from ...core.tensor import Tensor


def varies(*values: Any) -> bool:
    """Whether one of these numbers is a tensor that a transform or a leaf of the imperative style looks at."""
    return any(isinstance(v, Tensor) and v._interp is not None and v.dtype.category >= dt.FLOAT for v in values)


def run_with(o: Op, *xs: Any, number: str, **kw: Any) -> Any:
    """``o(*xs, **kw)``, by its specification in plain ops if the static datum `number` varies."""
    return o.spec(*xs, **kw) if isinstance(v := kw[number], Tensor) and varies(v) else o.bind(*xs, **kw)
