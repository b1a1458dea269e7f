"""Dropout: random zeros in training."""

from __future__ import annotations

from ..module import Module
from .thin import thin


class _DropoutNd(Module):
    """A module with a probability `p`, and whether it writes to its input."""

    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.p, self.inplace = p, inplace
        self._check_options()

    def _check_options(self) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"{type(self).__name__}: dropout probability has to be between 0 and 1, but got {self.p}")

    def extra_repr(self) -> str:
        """The options."""
        return f"p={self.p}, inplace={self.inplace}"


@thin("dropout", also="training=self.training")
class Dropout(_DropoutNd):
    """In training, zero with probability p, else ``x / (1 - p)``."""

    p: float = 0.5
    inplace: bool = False


@thin("dropout1d", also="training=self.training")
class Dropout1d(_DropoutNd):
    """Dropout of whole channels of [N, C, L]."""

    p: float = 0.5
    inplace: bool = False


@thin("dropout2d", also="training=self.training")
class Dropout2d(_DropoutNd):
    """Dropout of whole channels of [N, C, H, W]."""

    p: float = 0.5
    inplace: bool = False


@thin("dropout3d", also="training=self.training")
class Dropout3d(_DropoutNd):
    """Dropout of whole channels of [N, C, D, H, W]."""

    p: float = 0.5
    inplace: bool = False


@thin("alpha_dropout", also="training=self.training")
class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance behind a SELU."""

    p: float = 0.5
    inplace: bool = False


@thin("feature_alpha_dropout", also="training=self.training")
class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels."""

    p: float = 0.5
    inplace: bool = False


__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]
