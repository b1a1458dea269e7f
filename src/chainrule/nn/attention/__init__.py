"""Which kernel computes attention: a choice that PyTorch offers, and that changes no value."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class SDPBackend(enum.IntEnum):
    """PyTorch's kernels of scaled dot product attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Taken and checked; there is one way to compute attention here."""
    for b in backends if isinstance(backends, list | tuple) else [backends]:
        if not isinstance(b, SDPBackend):
            raise AssertionError(
                f"Backends must be an instance of SDPBackend or a list of SDPBackend instances, got {b!r}"
            )
    yield


__all__ = ["SDPBackend", "sdpa_kernel"]


def __dir__() -> list[str]:
    return __all__
