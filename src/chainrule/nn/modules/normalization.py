"""Batch, instance, group, layer and RMS norm as modules, with running statistics; each takes ``mask=`` or ``lengths=``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.tensor import Tensor
from ...core.views import assign
from .. import functional as F
from .. import init
from ..module import Module
from .linear import blank


class _Affine(Module):
    """A module with a weight and a bias, each of which may be None."""

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class _Running(_Affine):
    """A normalisation per channel that may learn running statistics.

    `momentum` None stands for the cumulative average of all batches. With ``track_running_stats=False`` there are no running
    statistics and those of the batch count in evaluation too.
    """

    ranks: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        d = dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)
        self.register_parameter("weight", blank(num_features, dtype=d) if affine else None)
        self.register_parameter("bias", blank(num_features, dtype=d) if affine and bias else None)
        track = track_running_stats
        self.register_buffer("running_mean", Tensor(np.zeros(num_features, d.np)) if track else None)
        self.register_buffer("running_var", Tensor(np.ones(num_features, d.np)) if track else None)
        self.register_buffer("num_batches_tracked", Tensor(np.zeros((), np.int64)) if track else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batch seen."""
        if self.running_mean is not None:
            assign(self.running_mean, Tensor(np.zeros(self.num_features, self.running_mean.dtype.np)))
            assign(self.running_var, Tensor(np.ones(self.num_features, self.running_var.dtype.np)))
            assign(self.num_batches_tracked, Tensor(np.zeros((), np.int64)))

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, statistics of nothing."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check(self, x: Tensor) -> None:
        if self.ranks and x.ndim not in self.ranks:
            raise ValueError(
                f"{type(self).__name__}: expected {' or '.join(f'{r}D' for r in self.ranks)} input (got {x.ndim}D input)"
            )

    def _next_momentum(self) -> Any:
        """The weight of this batch; counts it."""
        if self.num_batches_tracked is None or not (self.training and self.track_running_stats):
            return 0.0 if self.momentum is None else self.momentum
        assign(self.num_batches_tracked, self.num_batches_tracked + 1, "num_batches_tracked")
        if self.momentum is not None:
            return self.momentum
        return 1 / self.num_batches_tracked.to(self.running_mean.dtype)

    def _load_own(
        self,
        state: dict[str, Any],
        prefix: str,
        missing: list[str],
        unexpected: list[str],
        errors: list[str],
        by_assignment: bool,
    ) -> None:
        key = prefix + "num_batches_tracked"
        if self.num_batches_tracked is not None and key not in state:
            state[key] = self.num_batches_tracked  # states from before there was a count
        super()._load_own(state, prefix, missing, unexpected, errors, by_assignment)

    def extra_repr(self) -> str:
        """The options."""
        head = f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self.bias is not None}"
        return f"{head}, track_running_stats={self.track_running_stats}"


class _BatchNorm(_Running):
    channel_dim = 1

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
        channel_dim: int = 1,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.channel_dim = channel_dim

    def forward(self, input: Tensor, *, mask: Tensor | None = None, lengths: Any = None) -> Tensor:
        """Batch norm; in training with the statistics of the batch, which the running ones learn from."""
        self._check(input)
        momentum = self._next_momentum()
        use_batch = self.training or self.running_mean is None
        track = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if track else None,
            self.running_var if track else None,
            self.weight,
            self.bias,
            use_batch,
            momentum,
            self.eps,
            mask=mask,
            lengths=lengths,
            channel_dim=self.channel_dim,
        )

    def extra_repr(self) -> str:
        """The options."""
        where = "" if self.channel_dim == 1 else f", channel_dim={self.channel_dim}"
        return super().extra_repr() + where


class BatchNorm1d(_BatchNorm):
    """Batch norm of [N, C] or [N, C, L]; with ``channel_dim=-1`` of [N, L, C], where L may be ragged."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch norm of [N, C, H, W]."""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch norm of [N, C, D, H, W]."""

    ranks = (5,)


class _InstanceNorm(_Running):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check(self, x: Tensor) -> None:
        super()._check(x)
        c = x.shape[-(self.ranks[1] - 1)]
        if self.affine and c != self.num_features:
            raise ValueError(
                f"{type(self).__name__}: expected input's channel dim to match num_features ({self.num_features}), but got {c}"
            )

    def forward(self, input: Tensor, *, mask: Tensor | None = None, lengths: Any = None) -> Tensor:
        """Instance norm; an input without a batch dim counts as one example."""
        self._check(input)
        single = input.ndim == self.ranks[0]
        x = input.unsqueeze(0) if single else input
        y = F.instance_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
            mask=mask,
            lengths=lengths,
        )
        return y.squeeze(0) if single else y


class InstanceNorm1d(_InstanceNorm):
    """Instance norm of [N, C, L] or [C, L]."""

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance norm of [N, C, H, W] or [C, H, W]."""

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance norm of [N, C, D, H, W] or [C, D, H, W]."""

    ranks = (4, 5)


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
        self.register_parameter("weight", blank(num_channels, dtype=dtype) if affine else None)
        self.register_parameter("bias", blank(num_channels, dtype=dtype) if affine and bias else None)
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
        self.register_parameter("weight", blank(*self.normalized_shape, dtype=dtype) if elementwise_affine else None)
        self.register_parameter(
            "bias", blank(*self.normalized_shape, dtype=dtype) if elementwise_affine and bias else None
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
        self.register_parameter("weight", blank(*self.normalized_shape, dtype=dtype) if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor, *, mask: Tensor | None = None, lengths: Any = None) -> Tensor:
        """RMS norm."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps, mask=mask, lengths=lengths)

    def extra_repr(self) -> str:
        """The options."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
