"""Group, layer and RMS norm, each of which takes ``mask=`` or ``lengths=``, and local response norm."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from .. import init
from ..module import Module
from .batchnorm import _Affine
from .linear import blank
from .thin import thin


@thin("local_response_norm", text="{size}, alpha={alpha}, beta={beta}, k={k}")
class LocalResponseNorm(Module):
    """``x / (k + alpha mean(x**2))**beta``, the mean over neighbouring channels."""

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0


@thin("local_response_norm", text="{size}, alpha={alpha}, beta={beta}, k={k}")
class CrossMapLRN2d(Module):
    """LocalResponseNorm of images, by its older name."""

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1


class GroupNorm(_Affine):
    """``(x - mean) / sqrt(var + eps) * weight + bias``, statistics over each group of channels of each example."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"GroupNorm: num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.register_parameter("weight", blank(num_channels, dtype=dtype, device=device) if affine else None)
        self.register_parameter("bias", blank(num_channels, dtype=dtype, device=device) if affine and bias else None)
        self.reset_parameters()

    def forward(self, input: Tensor, *, mask: Tensor | None = None, lengths: Any = None) -> Tensor:
        """Group norm."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps, mask=mask, lengths=lengths)

    def extra_repr(self) -> str:
        """The options."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class LayerNorm(_Affine):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dims, those of `normalized_shape`."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter(
            "weight", blank(*self.normalized_shape, dtype=dtype, device=device) if elementwise_affine else None
        )
        self.register_parameter(
            "bias", blank(*self.normalized_shape, dtype=dtype, device=device) if elementwise_affine and bias else None
        )
        self.reset_parameters()

    def forward(self, input: Tensor, *, mask: Tensor | None = None, lengths: Any = None) -> Tensor:
        """Layer norm."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps, mask=mask, lengths=lengths)

    def extra_repr(self) -> str:
        """The options."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"


class RMSNorm(Module):
    """``x / sqrt(mean(x**2) + eps) * weight`` over the last dims, those of `normalized_shape`."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter(
            "weight", blank(*self.normalized_shape, dtype=dtype, device=device) if elementwise_affine else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor, *, mask: Tensor | None = None, lengths: Any = None) -> Tensor:
        """RMS norm."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps, mask=mask, lengths=lengths)

    def extra_repr(self) -> str:
        """The options."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]
