"""Convolutions, their transposes, and those whose channels the first input tells."""

from __future__ import annotations

import math
from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from .. import init
from ..module import Module
from ..parameter import UninitializedParameter
from .lazy import LazyModuleMixin
from .linear import blank
from .utils import _ntuple, _reverse_repeat_tuple

_MODES = ("zeros", "reflect", "replicate", "circular")


def _check(groups: int, inside: int, outside: int, padding: Any, stride: Any, padding_mode: str) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if inside % groups:
        raise ValueError(f"in_channels must be divisible by groups, got {inside} and {groups}")
    if outside % groups:
        raise ValueError(f"out_channels must be divisible by groups, got {outside} and {groups}")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of 'same', 'valid'")
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in _MODES:
        raise ValueError(f"padding_mode must be one of {_MODES}, but got padding_mode='{padding_mode}'")


class _ConvNd(Module):
    """The weight, the bias and the options of a convolution."""

    rank = 0

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: Any,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check(groups, in_channels, out_channels, padding, stride, padding_mode)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.transposed, self.output_padding, self.padding_mode = transposed, output_padding, padding_mode
        self._reversed_padding_repeated_twice = self._around()
        channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = blank(*channels, *kernel_size, dtype=dtype, device=device)
        self.register_parameter("bias", blank(out_channels, dtype=dtype, device=device) if bias else None)
        self.reset_parameters()

    def _around(self) -> list[int]:
        """The padding in the order in which ``F.pad`` takes it."""
        if not isinstance(self.padding, str):
            return list(_reverse_repeat_tuple(self.padding, 2))
        out: list[int] = []
        for d, k in zip(reversed(self.dilation), reversed(self.kernel_size), strict=True):
            total = d * (k - 1) if self.padding == "same" else 0
            out += [total // 2, total - total // 2]
        return out

    def reset_parameters(self) -> None:
        """Uniform numbers in +-1/sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """The sizes and the options that were chosen."""
        s = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        ones, zeros = (1,) * len(self.dilation), (0,) * len(self.output_padding)
        if self.padding != (0,) * len(self.padding):
            s += f", padding={self.padding}"
        if self.dilation != ones:
            s += f", dilation={self.dilation}"
        if self.output_padding != zeros:
            s += f", output_padding={self.output_padding}"
        if self.groups != 1:
            s += f", groups={self.groups}"
        if self.bias is None:
            s += ", bias=False"
        return s if self.padding_mode == "zeros" else f"{s}, padding_mode={self.padding_mode}"

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    """A convolution of the last `rank` dims."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        each = _ntuple(self.rank)
        super().__init__(
            in_channels,
            out_channels,
            each(kernel_size),
            each(stride),
            padding if isinstance(padding, str) else each(padding),
            each(dilation),
            False,
            each(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        conv = getattr(F, f"conv{self.rank}d")
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), 0
        return conv(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        """The convolution."""
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Convolution of [N, C, L] or [C, L]."""

    rank = 1


class Conv2d(_Conv):
    """Convolution of [N, C, H, W] or [C, H, W]."""

    rank = 2


class Conv3d(_Conv):
    """Convolution of [N, C, D, H, W] or [C, D, H, W]."""

    rank = 3


class _ConvTransposeNd(_ConvNd):
    """The transpose of a convolution of the last `rank` dims, as a linear map of its input."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        each = _ntuple(self.rank)
        sizes = each(kernel_size), each(stride), each(padding), each(dilation)
        super().__init__(
            in_channels, out_channels, *sizes, True, each(output_padding), groups, bias, padding_mode, device, dtype
        )

    def _output_padding(
        self,
        input: Tensor,
        output_size: Any,
        stride: Any,
        padding: Any,
        kernel_size: Any,
        num_spatial_dims: int,
        dilation: Any = None,
    ) -> Any:
        """What is added on one side so that the output has the size that is asked for."""
        if output_size is None:
            return self.output_padding
        n = num_spatial_dims
        batched = input.ndim == n + 2
        sizes = list(output_size)
        if len(sizes) == (n + 2 if batched else n + 1):
            sizes = sizes[2 if batched else 1 :]
        if len(sizes) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.ndim}D input, output_size must have {n} or {n + (2 if batched else 1)} elements (got {len(sizes)})"
            )
        out = []
        for d in range(n):
            span = (1 if dilation is None else dilation[d]) * (kernel_size[d] - 1) + 1
            low = (input.shape[d - n] - 1) * stride[d] - 2 * padding[d] + span
            if not low <= sizes[d] <= low + stride[d] - 1:
                raise ValueError(
                    f"requested an output size of {sizes}, but dim {d} of it must be from {low} to {low + stride[d] - 1} for an "
                    f"input of {list(input.shape[input.ndim - n :])}"
                )
            out.append(sizes[d] - low)
        return out

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """The transposed convolution; of several possible sizes of the output, `output_size`."""
        extra = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self.rank, self.dilation
        )
        conv = getattr(F, f"conv_transpose{self.rank}d")
        return conv(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of [N, C, L] or [C, L]."""

    rank = 1


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution of [N, C, H, W] or [C, H, W]."""

    rank = 2


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution of [N, C, D, H, W] or [C, D, H, W]."""

    rank = 3


class _LazyConvXdMixin(LazyModuleMixin):
    """Gives a convolution its number of channels when it sees the first input."""

    groups: int
    transposed: bool
    rank: int
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    weight: Any
    bias: Any

    def reset_parameters(self) -> None:
        """Random weights, once there is a shape."""
        if self.in_channels and not self.has_uninitialized_params():
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kw: Any) -> None:
        """Take the number of channels from the input."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups:
            raise ValueError(f"in_channels must be divisible by groups, got {self.in_channels} and {self.groups}")
        a, b = self.in_channels, self.out_channels
        channels = (a, b // self.groups) if self.transposed else (b, a // self.groups)
        self.weight.materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((b,))
        self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        n = self.rank
        if input.ndim not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, but got input of size: {list(input.shape)}"
            )
        return input.shape[-n - 1]


class _LazyConv(_LazyConvXdMixin, _Conv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        _unknown(self, out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin, _ConvTransposeNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        super().__init__(0, 0, *options)
        _unknown(self, out_channels, bias, device, dtype)


def _unknown(m: Any, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
    m.out_channels = out_channels
    m.weight = UninitializedParameter(device=device, dtype=dtype)
    if bias:
        m.bias = UninitializedParameter(device=device, dtype=dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A Conv1d whose `in_channels` the first input tells."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A Conv2d whose `in_channels` the first input tells."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A Conv3d whose `in_channels` the first input tells."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A ConvTranspose1d whose `in_channels` the first input tells."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A ConvTranspose2d whose `in_channels` the first input tells."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A ConvTranspose3d whose `in_channels` the first input tells."""

    cls_to_become = ConvTranspose3d


__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
    "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip
