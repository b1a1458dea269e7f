"""``SummaryWriter`` of tensorboardX, where that is installed."""

from __future__ import annotations

try:
    from tensorboardX import FileWriter, SummaryWriter
except ImportError as e:  # pragma: no cover
    raise ImportError("utils.tensorboard needs tensorboardX: pip install tensorboardX") from e

__all__ = ["FileWriter", "SummaryWriter"]
