"""The lower and upper triangle of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import kernels
from ...core.declare import op
from ...core.registry import public
from ...core.samples import S, sample
from ...core.sizes import is_ragged
from ...core.straight import straight
from ...core.tensor import Tensor

LEAST = 1 << 10  # entries from which a compiled loop is worth its call


def _triangle(name: str, fn: Any) -> Any:
    @op(name, moves=True)
    def p(x: Any, *, k: int) -> Any:
        if x.size >= LEAST:
            try:
                return kernels.copies.triangle(x, k, fn is np.tril)
            except kernels.NotSupported:
                pass
        return fn(x, k)

    def special(xs: list[Any], kw: dict[str, Any]) -> Any:
        """By a mask that is known, of which a number is taken or not."""
        x, k = xs[0], kw["k"]
        if x.ndim < 2 or x.size >= LEAST:
            return None
        mask, zero = fn(np.ones(x.shape[-2:], bool), k), x.dtype.type(0)
        return lambda x: np.where(mask, x, zero)

    p.special = special
    p.jvp([lambda t, y, x, *, k: p(t, k=k)])
    p.vjp([lambda g, y, x, *, k: p(g, k=k)])

    def form(input: Tensor, diagonal: int = 0) -> Tensor:
        if input.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions, got {list(input.shape)}")
        r, c = input.shape[-2:]
        far = is_ragged(r) or is_ragged(c)  # diagonals beyond the corners are all alike
        return p(input, k=diagonal if far else max(-r, min(int(diagonal), c)))

    form.__name__ = name
    form.__doc__ = f"The {'lower' if name == 'tril' else 'upper'} triangle of the last two dims, zeros elsewhere."
    return public(name, methods=name, inplace=f"{name}_")(straight(form, name))


tril = _triangle("tril", np.tril)
triu = _triangle("triu", np.triu)

# -- samples ------------------------------------------------------------------------------------------------------------


sample("tril", S(3, 4), -1)
sample("triu", S(2, 3, 3), 1)
