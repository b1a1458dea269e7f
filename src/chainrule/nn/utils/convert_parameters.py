"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

from ...core.imperative import no_grad
from ...core.tensor import Tensor
from ...core.views import assign


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, one after the other, as a vector."""
    from ...ops.shape.slices import cat

    return cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the pieces of a vector to parameters."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: expected a tensor, got {type(vec).__name__}")
    at = 0
    with no_grad():
        for p in parameters:
            n = p.numel()
            assign(p, vec.narrow(0, at, n).reshape(*p.shape), "vector_to_parameters")
            at += n
