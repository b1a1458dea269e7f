"""Padding: more entries around the last dims."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from .utils import _ntuple


class _PadNd(Module):
    """``F.pad`` of the last `rank` dims in one `mode`."""

    rank = 0
    mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self.rank)(padding)

    def forward(self, input: Tensor) -> Tensor:
        """The padded input."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """The padding."""
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    """Padding with a value."""

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """The padded input."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """The padding and the value."""
        return f"padding={self.padding}, value={self.value}"


class _CircularPadNd(_PadNd):
    """Padding with what stands at the other end."""

    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """The padded input."""
        if input.ndim not in (self.rank + 1, self.rank + 2):
            raise ValueError(f"expected {self.rank + 1}D or {self.rank + 2}D input (got {input.ndim}D input)")
        return super().forward(input)


class _ReflectionPadNd(_PadNd):
    """Padding with the mirror image."""

    mode = "reflect"


class _ReplicationPadNd(_PadNd):
    """Padding with the last entry."""

    mode = "replicate"


class CircularPad1d(_CircularPadNd):
    """The last dim padded with what stands at the other end."""

    rank = 1


class CircularPad2d(_CircularPadNd):
    """The last 2 dims padded with what stands at the other end."""

    rank = 2


class CircularPad3d(_CircularPadNd):
    """The last 3 dims padded with what stands at the other end."""

    rank = 3


class ConstantPad1d(_ConstantPadNd):
    """The last dim padded with a value."""

    rank = 1


class ConstantPad2d(_ConstantPadNd):
    """The last 2 dims padded with a value."""

    rank = 2


class ConstantPad3d(_ConstantPadNd):
    """The last 3 dims padded with a value."""

    rank = 3


class ReflectionPad1d(_ReflectionPadNd):
    """The last dim padded with the mirror image."""

    rank = 1


class ReflectionPad2d(_ReflectionPadNd):
    """The last 2 dims padded with the mirror image."""

    rank = 2


class ReflectionPad3d(_ReflectionPadNd):
    """The last 3 dims padded with the mirror image."""

    rank = 3


class ReplicationPad1d(_ReplicationPadNd):
    """The last dim padded with the last entry."""

    rank = 1


class ReplicationPad2d(_ReplicationPadNd):
    """The last 2 dims padded with the last entry."""

    rank = 2


class ReplicationPad3d(_ReplicationPadNd):
    """The last 3 dims padded with the last entry."""

    rank = 3


class ZeroPad1d(ConstantPad1d):
    """The last dim padded with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The padding."""
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """The last 2 dims padded with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The padding."""
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """The last 3 dims padded with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The padding."""
        return f"{self.padding}"


__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]
