"""Channels in another order."""

from __future__ import annotations

from ..module import Module
from .thin import thin


@thin("channel_shuffle", text="groups={groups}")
class ChannelShuffle(Module):
    """The channels of groups interleaved."""

    groups: int


__all__ = ["ChannelShuffle"]
