"""Scans along one dim."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.op import op
from ..core.registry import public
from ..core.shapes import wrap_dim
from ..core.samples import S, sample
from ..core.tensor import Tensor
from .reduce import to_dtype
from .shape import cat, flip_p


@op("cumsum")
def cumsum_p(x: Any, *, dim: int) -> Any:
    """Running sums along `dim`."""
    d = x.dtype
    if d in dt.HALVES:
        return np.add.accumulate(x, axis=dim, dtype=np.float32).astype(d)
    return np.add.accumulate(x, axis=dim, dtype=np.int64 if d.kind in "iub" else None)


cumsum_p.jvp([lambda t, y, x, *, dim: cumsum_p(t, dim=dim)])
cumsum_p.vjp([lambda g, y, x, *, dim: flip_p(cumsum_p(flip_p(g, dims=(dim,)), dim=dim), dims=(dim,))])


@public("cumsum", methods="cumsum", inplace="cumsum_")
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """``y[k] = x[0] + ... + x[k]`` along `dim`."""
    x = to_dtype(input, dtype)
    d = wrap_dim(dim, x.ndim)
    return cumsum_p(x, dim=d) if x.ndim else cumsum_p(x.reshape(1), dim=-1).reshape(())


def running_product(x: Tensor, dim: int) -> Tensor:
    """``y[k] = x[0] * ... * x[k]`` along `dim` in log2(n) multiplications, differentiable through zeros to any order."""
    n, k = x.shape[dim], 1
    while k < n:
        x = cat([x.narrow(dim, 0, k), x.narrow(dim, k, n - k) * x.narrow(dim, 0, n - k)], dim)
        k *= 2
    return x

# -- samples ------------------------------------------------------------------------------------------------------------

sample("cumsum", S(2, 3), dim=1)
sample("cumsum", S(2, 3), dim=0)
sample("cumsum", S(), dim=0)
