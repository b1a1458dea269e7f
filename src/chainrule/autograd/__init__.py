"""Imperative differentiation and its tools: grad, backward, Function, forward_ad, functional, gradcheck, detect_anomaly."""

from __future__ import annotations

from ..core.imperative import (
    backward,
    enable_grad,
    grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "backward", "enable_grad", "grad", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled",
]  # fmt: skip
