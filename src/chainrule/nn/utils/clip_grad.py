"""Bounds on gradients, and parameters as one vector."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...core.imperative import no_grad
from ...core.tensor import Tensor
from ...core.views import assign


def _grads(parameters: Any) -> list[Tensor]:
    ps = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in ps if p.grad is not None]


def get_total_norm(
    tensors: Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Tensor:
    """The norm of all tensors as one vector."""
    from ...ops.linalg.norms import vector_norm
    from ...ops.shape.slices import stack

    ts = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not ts:
        return Tensor(np.zeros((), np.float32))
    total = vector_norm(stack([vector_norm(t, norm_type) for t in ts]), norm_type)
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise RuntimeError(f"The total norm of order {norm_type} for gradients is non-finite, so it cannot be clipped")
    return total


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Tensor:
    """Scale the gradients so that their norm, as one vector, is at most `max_norm`; returns the norm before."""
    gs = _grads(parameters)
    with no_grad():
        total = get_total_norm(gs, norm_type, error_if_nonfinite)
        factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for g in gs:
            assign(g, g * factor.to(g.dtype), "clip_grad_norm_")
    return total


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Bring every entry of the gradients into [-clip_value, clip_value]."""
    with no_grad():
        for g in _grads(parameters):
            assign(g, g.clamp(-clip_value, clip_value), "clip_grad_value_")


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
