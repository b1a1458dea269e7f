"""Products of few results and long sums: sums of sums, whatever the BLAS library does.

The loops that some libraries have for small products add all terms of a sum one after another: after 4096 of them the error of float32 is
some forty times that of one rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.types import REAL_NUMS
from ..reduce.adding import total

LONG, FEW = 1 << 10, 1 << 8  # terms of a sum, and results
PART = 64  # terms that are added at once


def is_long(a: Any, b: Any) -> bool:
    """Whether ``a @ b`` has few results and long sums."""
    return a.shape[-1] >= LONG and a.shape[-2] * b.shape[-1] <= FEW and a.dtype.num in REAL_NUMS


def in_parts(a: Any, b: Any) -> Any:
    """``a @ b`` over the last two axes, of equal leading axes, as the sum of products of PART columns and rows each."""
    (m, k), n = a.shape[-2:], b.shape[-1]
    q, rest = divmod(k, PART)
    y = np.empty((*a.shape[:-2], q + (rest > 0), m, n), a.dtype)
    parts = a[..., : k - rest].reshape(*a.shape[:-1], q, PART).swapaxes(-2, -3)
    np.matmul(parts, b[..., : k - rest, :].reshape(*b.shape[:-2], q, PART, n), out=y[..., :q, :, :])
    if rest:
        np.matmul(a[..., k - rest :], b[..., k - rest :, :], out=y[..., q, :, :])
    return total(y, (-3,), wide=True).astype(a.dtype, copy=False)
