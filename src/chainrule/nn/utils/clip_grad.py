"""Bounds on gradients."""

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
    with no_grad():
        total = vector_norm(stack([vector_norm(t, norm_type) for t in ts]), norm_type)
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise RuntimeError(
            f"The total norm of order {float(norm_type)} for gradients from `parameters` is non-finite, so it cannot be clipped. To disable "
            f"this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Tensor:
    """Scale the gradients so that their norm, as one vector, is at most `max_norm`; returns the norm before."""
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Tensor, foreach: Any = None) -> None:
    """Scale the gradients by ``max_norm / total_norm`` where that is below 1."""
    with no_grad():
        factor = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
        for g in _grads(parameters):
            assign(g, g * factor.to(g.dtype), "clip_grad_norm_")


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Bring every entry of the gradients into [-clip_value, clip_value]."""
    with no_grad():
        for g in _grads(parameters):
            assign(g, g.clamp(-clip_value, clip_value), "clip_grad_value_")


clip_grad_norm = clip_grad_norm_
