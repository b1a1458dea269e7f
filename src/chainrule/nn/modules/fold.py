"""Images as columns of patches, and back."""

from __future__ import annotations

from typing import Any

from ..module import Module
from .thin import thin


@thin(
    "fold",
    text="output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}",
)
class Fold(Module):
    """Columns added up to images, the transpose of Unfold."""

    output_size: Any
    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1


@thin("unfold", text="kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}")
class Unfold(Module):
    """Patches of images as columns: (N, C, H, W) -> (N, C kh kw, patches)."""

    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1


__all__ = ["Fold", "Unfold"]
