"""``make_tensor``: random tensors of any type, in a range."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.shapes import sizes
from ..core.tensor import Tensor


def make_tensor(
    *shape: Any,
    dtype: dt.DType,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Numbers drawn uniformly from [low, high): by default [-9, 9), for types without a sign [0, 10), for bool {0, 1}."""
    from ..ops.random.generator import default_generator

    rng = default_generator.rng
    size = sizes(shape)
    if noncontiguous and memory_format is not None:
        raise ValueError("make_tensor: The parameters `noncontiguous` and `memory_format` are mutually exclusive")
    if requires_grad and dtype.category < dt.FLOAT:
        raise ValueError(f"make_tensor: `requires_grad` must be False for integral and boolean types, not {dtype}")
    whole = dtype.category < dt.FLOAT
    unsigned = dtype.category == dt.BOOL or not dtype.is_signed
    lo = (0 if unsigned else -9) if low is None else low
    hi = (2 if dtype is dt.bool_ else 10 if whole else 9) if high is None else high
    if whole and dtype.category == dt.INT:
        info = np.iinfo(dtype.np)
        lo, hi = max(lo, info.min), min(hi, info.max)
    if not lo < hi and not (lo == hi and low is not None):
        raise ValueError(f"make_tensor: `low` must be less than `high`, but got {low} >= {high}")
    full = (*size[:-1], 2 * size[-1]) if noncontiguous and size and np.prod(size) > 1 else size
    a: Any
    if whole:
        a = rng.integers(int(np.ceil(lo)), max(int(np.ceil(hi)), int(np.ceil(lo)) + 1), full)
    elif dtype.category == dt.COMPLEX:
        a = rng.uniform(lo, hi, full) + 1j * rng.uniform(lo, hi, full)
    else:
        a = rng.uniform(lo, hi, full)
    a = np.asarray(a)
    if full is not size:
        a = a[..., ::2]
    a = a.astype(dtype.np) if full is size else _strided(a, dtype)
    if exclude_zero:
        a[a == 0] = 1 if whole else dt.finfo(dtype).tiny
    t = Tensor(a)
    if memory_format is not None:
        t = t.clone(memory_format=memory_format)
    return t.requires_grad_() if requires_grad else t


def _strided(a: np.ndarray, dtype: dt.DType) -> np.ndarray:
    """Every second element of memory twice as long."""
    wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), dtype.np)
    wide[..., ::2] = a
    return wide[..., ::2]
