"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

from ...core.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, one after the other, as a vector."""
    from ...ops.shape.slices import cat

    return cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make the parameters the pieces of a vector: they show its memory, so that a write to either is seen in both."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: expected a tensor, got {type(vec).__name__}")
    at = 0
    for p in parameters:
        n = p.numel()
        p.data = vec.narrow(0, at, n).view_as(p).data
        at += n
