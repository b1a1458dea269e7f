"""A value for reductions that have nothing to choose from: dims without entries, and components of nests that have none."""

from __future__ import annotations

from typing import Any

from ...core.errors import ChainruleError
from ...core.tensor import Tensor
from ..elementwise.select import where
from ..shape.create import full, full_like
from ..shape.slices import cat


def with_entry(name: str, x: Tensor, dims: tuple[int, ...], fill: Any) -> Tensor:
    """`x` with one entry `fill` along each of the negative dims in which it, or a component, has none."""
    for d in dims:
        m: Any = x.shape[d]
        if hasattr(m, "each"):
            raise ChainruleError(
                f"{name}: fill= is the value for components without entries; reduce over their dims first, then over the nesting dim"
            )
        none = m.none if hasattr(m, "none") else int(m == 0)
        if none:
            at = d + x.ndim
            shape = (*x.shape[:at], none, *x.shape[at + 1 :])
            x = cat([x, full(shape, fill, dtype=x.dtype)], d)
    return x


def index_or(fill: int, i: Tensor, x: Tensor, dim: int) -> Tensor:
    """Indices `i` along the dim of `x`, which is kept, and `fill` where there are no entries."""
    return where(full_like(x, 1, dtype=i.dtype).sum(dim, keepdim=True) == 0, fill, i)
