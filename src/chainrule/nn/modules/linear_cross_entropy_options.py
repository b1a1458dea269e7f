"""The options of LinearCrossEntropyLoss, under PyTorch's path."""

from .loss import LinearCrossEntropyOptions

__all__ = ["LinearCrossEntropyOptions"]
