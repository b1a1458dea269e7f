"""Channels as pixels and pixels as channels."""

from __future__ import annotations

from ..module import Module
from .thin import thin


@thin("pixel_shuffle", text="upscale_factor={upscale_factor}")
class PixelShuffle(Module):
    """[C r r, H, W] as [C, H r, W r]."""

    upscale_factor: int


@thin("pixel_unshuffle", text="downscale_factor={downscale_factor}")
class PixelUnshuffle(Module):
    """[C, H r, W r] as [C r r, H, W]."""

    downscale_factor: int


__all__ = ["PixelShuffle", "PixelUnshuffle"]
