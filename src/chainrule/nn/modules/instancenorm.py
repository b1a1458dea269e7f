"""Instance norm: the statistics of each channel of each example; each module takes ``mask=`` or ``lengths=``."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase


class _InstanceNorm(_NormBase):
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


class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d):
    """An InstanceNorm1d whose `num_features` the first input tells."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d):
    """An InstanceNorm2d whose `num_features` the first input tells."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d):
    """An InstanceNorm3d whose `num_features` the first input tells."""

    cls_to_become = InstanceNorm3d


__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d",
]  # fmt: skip
