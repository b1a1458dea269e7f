"""``torch._tensor``."""

from __future__ import annotations

from ..core.tensor import Tensor

__all__ = ["Tensor"]
