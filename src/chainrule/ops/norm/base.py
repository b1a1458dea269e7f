"""What the normalisations share: 16-bit floats computed in wider ones, statistics, checks of arguments.

Their ops are declared with ``fused``: a kernel, and a body in plain ops as its specification. Arguments may be None (no weight, no
bias, a cotangent that is zero).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.primitives import reshape_p
from ...core.shapes import broadcast_array, sizes_of
from ...core.tensor import Tensor

# -- arrays -----------------------------------------------------------------------------------------------------------


def dense(a: Any) -> Any:
    """The array in row-major order, which the kernels need; None stays None."""
    return a if a is None or a.flags.c_contiguous else np.ascontiguousarray(a)


def all_dense(*arrays: Any) -> list[Any]:
    """`dense` of each."""
    out = []
    for a in arrays:
        out.append(a if a is None or a.flags.c_contiguous else np.ascontiguousarray(a))
    return out


def spread_lead(rank: int, like: Any, *arrays: Any) -> tuple[Any, ...]:
    """Arrays of one rank with the leading axes of them all, without a copy: a cotangent may have fewer than what it belongs to.

    The kernels work on arrays of one shape. `like` comes first, and None stays None.
    """
    lead = like.shape[: like.ndim - rank]
    for a in arrays:
        if a is not None and a.ndim > rank and a.shape[: a.ndim - rank] != lead:
            lead = np.broadcast_shapes(lead, a.shape[: a.ndim - rank])
    out = []
    for a in (like, *arrays):
        if a is not None and a.shape[: a.ndim - rank] != lead:
            a = broadcast_array(a, lead + a.shape[a.ndim - rank :])
        out.append(a)
    return tuple(out)


def spaced(some: Any, mask: Any) -> list[Any]:
    """Values for the places where the mask holds, None for the others."""
    out: list[Any] = [None] * len(mask)
    k = 0
    for v in some:
        while not mask[k]:
            k += 1
        out[k] = v
        k += 1
    return out


# -- tensors ----------------------------------------------------------------------------------------------------------


def wide(x: Tensor) -> Tensor:
    """16-bit floats as float64: what is computed from them is rounded once."""
    return x.to(dt.float64) if x.dtype.np in dt.HALVES else x


def narrow(y: Tensor, like: Tensor) -> Tensor:
    """The result with the type of `like`."""
    return y if y.dtype is like.dtype else y.to(like.dtype)


def stats(s: Tensor, like: Tensor) -> Tensor:
    """A kept statistic: float32 beside 16-bit floats, else of the type of `like`."""
    d = dt.float32 if like.dtype.np in dt.HALVES else like.dtype
    return s if s.dtype is d else s.to(d)


def returned(s: Tensor, x: Tensor, *parameters: Any) -> Tensor:
    """A statistic as PyTorch returns it: of the type of `x`, but float32 beside 16-bit floats if a parameter is of float32."""
    return stats(s, x) if any(p is not None and p.dtype is dt.float32 for p in parameters) else narrow(s, x)


def reshape(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`x` with another shape, as an op of the level of `x`."""
    old = tuple(sizes_of(x))
    return x if old == shape else reshape_p.bind(x, shape=shape, old=old)


def total(x: Tensor, dims: tuple[int, ...], keepdim: bool = False) -> Tensor:
    """The sum over dims counted from the end; over none, `x`."""
    from ..reduce.reductions import sum_p

    return sum_p.bind(x, dim=dims, keepdim=keepdim, old=tuple(sizes_of(x))) if dims else x


def tensor_arg(name: str, arg: str, x: Any, optional: bool = True) -> None:
    """Refuse what is no tensor."""
    if not (isinstance(x, Tensor) or (optional and x is None)):
        raise TypeError(f"{name}: {arg} must be a tensor{' or None' if optional else ''}, got {type(x).__name__}")


def float_arg(name: str, x: Tensor) -> None:
    """Refuse integers and complex numbers."""
    if x.dtype.category != dt.FLOAT:
        raise RuntimeError(
            f"{name}: not implemented for {x.dtype}: convert the input to a floating type, input.to(chainrule.float32)"
        )
