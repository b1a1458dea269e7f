"""Memory shared with other libraries."""

from __future__ import annotations

from ..interop.exchange import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
