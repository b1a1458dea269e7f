"""The functions of neural networks, without state: what the ops publish under ``nn.functional``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
