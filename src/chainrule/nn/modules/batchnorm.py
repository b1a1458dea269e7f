"""Batch norm with running statistics; each module takes ``mask=`` or ``lengths=``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from ...core.views import assign
from .. import functional as F
from .. import init
from ..module import Module
from ..parameter import UninitializedBuffer, UninitializedParameter
from .lazy import LazyModuleMixin
from .linear import blank


class _Affine(Module):
    """A module with a weight and a bias, each of which may be None."""

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class _NormBase(_Affine):
    """A normalisation per channel that may learn running statistics.

    `momentum` None stands for the cumulative average of all batches. With ``track_running_stats=False`` there are no running
    statistics and those of the batch count in evaluation too.
    """

    _version = 2
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
        self.register_parameter("weight", blank(num_features, dtype=d, device=device) if affine else None)
        self.register_parameter("bias", blank(num_features, dtype=d, device=device) if affine and bias else None)
        track = track_running_stats
        zeros, ones = PUBLIC["zeros"], PUBLIC["ones"]
        self.register_buffer("running_mean", zeros(num_features, dtype=d, device=device) if track else None)
        self.register_buffer("running_var", ones(num_features, dtype=d, device=device) if track else None)
        self.register_buffer("num_batches_tracked", zeros((), dtype=dt.int64, device=device) if track else None)
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

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        key, version = prefix + "num_batches_tracked", local_metadata.get("version")
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            known = self.num_batches_tracked  # states from before there was a count
            state_dict[key] = known if known is not None else Tensor(np.zeros((), np.int64))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def extra_repr(self) -> str:
        """The options."""
        head = f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self.bias is not None}"
        return f"{head}, track_running_stats={self.track_running_stats}"


class _BatchNorm(_NormBase):
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


class SyncBatchNorm(_BatchNorm):
    """Batch norm of [N, C, ...] with the statistics of all processes of a group; where there is no group, of this one."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def forward(self, input: Tensor, *, mask: Tensor | None = None, lengths: Any = None) -> Tensor:
        """Batch norm; in training with the mean and variance over the batches of all processes, through which derivatives of every order go."""
        from ...distributed.groups import STATE, resolve

        use_batch = self.training or self.running_mean is None
        group = None if STATE.world is None else resolve(self.process_group)
        if not use_batch or group is None or group.size() == 1:
            return super().forward(input, mask=mask, lengths=lengths)
        if mask is not None or lengths is not None:
            raise ValueError("SyncBatchNorm: mask= and lengths= are of batch norms of one process")
        self._check(input)
        from ...distributed.nn.functional import all_reduce

        momentum = self._next_momentum()
        c = self.channel_dim % input.ndim
        dims, form = [k for k in range(input.ndim) if k != c], [-1 if k == c else 1 for k in range(input.ndim)]
        d = input.dtype
        x = input.to(dt.float32) if d in (dt.float16, dt.bfloat16) else input
        count = Tensor(np.asarray(float(x.numel() // max(x.shape[c], 1)), x.dtype.np))
        total = all_reduce(PUBLIC["cat"]([x.sum(dims), count.reshape(1)]), group=group)
        n = total[-1].detach()
        mean = total[:-1] / n
        h = x - mean.reshape(form)
        var = all_reduce((h * h).sum(dims), group=group) / n
        if self.running_mean is not None and self.training and self.track_running_stats:
            for running, new in ((self.running_mean, mean), (self.running_var, var * (n / (n - 1)))):
                assign(
                    running, running * (1 - momentum) + new.detach().to(running.dtype) * momentum, "running statistics"
                )
        y = h * (var + self.eps).rsqrt().reshape(form)
        if self.weight is not None:
            y = y * self.weight.reshape(form)
        if self.bias is not None:
            y = y + self.bias.reshape(form)
        return y.to(d)

    def _check(self, x: Tensor) -> None:
        if x.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {x.ndim}D input)")
        if x.shape[1] == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module, with every batch norm in it replaced by one of this class that has the same tensors."""
        new = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            new = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            new._parameters.update(module._parameters)
            new._buffers.update(module._buffers)
            new.training = module.training
        for name, child in module.named_children():
            new.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return new


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A norm whose number of channels the first input tells."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = Tensor(np.zeros((), np.int64))

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, statistics of nothing, once there is a shape."""
        if self.num_features and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kw: Any) -> None:
        """Take the number of channels from the input."""
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for x in (self.weight, self.bias, self.running_mean, self.running_var):
                if x is not None:
                    x.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """A BatchNorm1d whose `num_features` the first input tells."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """A BatchNorm2d whose `num_features` the first input tells."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """A BatchNorm3d whose `num_features` the first input tells."""

    cls_to_become = BatchNorm3d


__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "SyncBatchNorm",
]  # fmt: skip
