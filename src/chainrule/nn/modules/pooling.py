"""Pooling: the maximum, mean or norm over windows."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from .thin import thin
from .utils import _pair, _single, _triple

_STRIDE = {"stride": "kernel_size if stride is None else stride"}
_MAX = "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, ceil_mode={ceil_mode}"
_PLAIN = "kernel_size={kernel_size}, stride={stride}, padding={padding}"


class _MaxPoolNd(Module):
    """A module that takes the maximum over windows."""


class _MaxUnpoolNd(Module):
    """A module that puts maxima back to their places."""


class _AvgPoolNd(Module):
    """A module that takes the mean over windows."""


class _LPPoolNd(Module):
    """A module that takes the norm over windows."""


class _AdaptiveMaxPoolNd(Module):
    """A module that takes the maximum over as many windows as are asked for."""


class _AdaptiveAvgPoolNd(Module):
    """A module that takes the mean over as many windows as are asked for."""


@thin("max_pool1d", text=_MAX, convert=_STRIDE)
class MaxPool1d(_MaxPoolNd):
    """The maximum over windows of the last dim."""

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    dilation: Any = 1
    return_indices: bool = False
    ceil_mode: bool = False


@thin("max_pool2d", text=_MAX, convert=_STRIDE)
class MaxPool2d(_MaxPoolNd):
    """The maximum over windows of the last 2 dims."""

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    dilation: Any = 1
    return_indices: bool = False
    ceil_mode: bool = False


@thin("max_pool3d", text=_MAX, convert=_STRIDE)
class MaxPool3d(_MaxPoolNd):
    """The maximum over windows of the last 3 dims."""

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    dilation: Any = 1
    return_indices: bool = False
    ceil_mode: bool = False


class MaxUnpool1d(_MaxUnpoolNd):
    """Zeros with the input at the places that MaxPool1d found."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size, self.padding = _single(kernel_size), _single(padding)
        self.stride = _single(kernel_size if stride is None else stride)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """The input put back to its places."""
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        """The windows."""
        return _PLAIN.format_map(self.__dict__)


class MaxUnpool2d(_MaxUnpoolNd):
    """Zeros with the input at the places that MaxPool2d found."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size, self.padding = _pair(kernel_size), _pair(padding)
        self.stride = _pair(kernel_size if stride is None else stride)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """The input put back to its places."""
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        """The windows."""
        return _PLAIN.format_map(self.__dict__)


class MaxUnpool3d(_MaxUnpoolNd):
    """Zeros with the input at the places that MaxPool3d found."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size, self.padding = _triple(kernel_size), _triple(padding)
        self.stride = _triple(kernel_size if stride is None else stride)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """The input put back to its places."""
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        """The windows."""
        return _PLAIN.format_map(self.__dict__)


@thin(
    "avg_pool1d",
    text=_PLAIN,
    convert={
        "kernel_size": "_single(kernel_size)",
        "stride": "_single(kernel_size if stride is None else stride)",
        "padding": "_single(padding)",
    },
    _single=_single,
)
class AvgPool1d(_AvgPoolNd):
    """The mean over windows of the last dim."""

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True


@thin("avg_pool2d", text=_PLAIN, convert=_STRIDE)
class AvgPool2d(_AvgPoolNd):
    """The mean over windows of the last 2 dims."""

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None


@thin("avg_pool3d", text=_PLAIN, convert=_STRIDE)
class AvgPool3d(_AvgPoolNd):
    """The mean over windows of the last 3 dims."""

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None


class FractionalMaxPool2d(Module):
    """The maximum over windows of the last 2 dims whose places are random."""

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.return_indices = _pair(kernel_size), return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else _pair(output_size)
        self.output_ratio = None if output_ratio is None else _pair(output_ratio)
        _check_fractional(type(self).__name__, self.kernel_size, self.output_size, self.output_ratio)

    def forward(self, input: Tensor) -> Any:
        """The maxima."""
        return F.fractional_max_pool2d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool3d(Module):
    """The maximum over windows of the last 3 dims whose places are random."""

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.return_indices = _triple(kernel_size), return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else _triple(output_size)
        self.output_ratio = None if output_ratio is None else _triple(output_ratio)
        _check_fractional(type(self).__name__, self.kernel_size, self.output_size, self.output_ratio)

    def forward(self, input: Tensor) -> Any:
        """The maxima."""
        return F.fractional_max_pool3d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


def _check_fractional(name: str, kernel: Any, size: Any, ratio: Any) -> None:
    if any(isinstance(k, int) and k <= 0 for k in kernel):
        raise ValueError(f"{name}: kernel_size must greater than 0, got {tuple(kernel)}")
    if size is None and ratio is None:
        raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
    if size is not None and ratio is not None:
        raise ValueError(f"{name}: only one of output_size and output_ratio may be specified")
    if ratio is not None and not all(0 < r < 1 for r in ratio):
        raise ValueError(f"{name}: output_ratio must be between 0 and 1 (got {ratio})")


@thin("lp_pool1d", text="norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}")
class LPPool1d(_LPPoolNd):
    """``(sum x^p)^(1/p)`` over windows of the last dim."""

    norm_type: float
    kernel_size: Any
    stride: Any = None
    ceil_mode: bool = False


@thin("lp_pool2d", text="norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}")
class LPPool2d(_LPPoolNd):
    """``(sum x^p)^(1/p)`` over windows of the last 2 dims."""

    norm_type: float
    kernel_size: Any
    stride: Any = None
    ceil_mode: bool = False


@thin("lp_pool3d", text="norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}")
class LPPool3d(_LPPoolNd):
    """``(sum x^p)^(1/p)`` over windows of the last 3 dims."""

    norm_type: float
    kernel_size: Any
    stride: Any = None
    ceil_mode: bool = False


@thin("adaptive_max_pool1d", text="output_size={output_size}")
class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The maximum over `output_size` windows of the last dim."""

    output_size: Any
    return_indices: bool = False


@thin("adaptive_max_pool2d", text="output_size={output_size}")
class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The maximum over `output_size` windows of the last 2 dims."""

    output_size: Any
    return_indices: bool = False


@thin("adaptive_max_pool3d", text="output_size={output_size}")
class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The maximum over `output_size` windows of the last 3 dims."""

    output_size: Any
    return_indices: bool = False


@thin("adaptive_avg_pool1d", text="output_size={output_size}")
class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The mean over `output_size` windows of the last dim."""

    output_size: Any


@thin("adaptive_avg_pool2d", text="output_size={output_size}")
class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The mean over `output_size` windows of the last 2 dims."""

    output_size: Any


@thin("adaptive_avg_pool3d", text="output_size={output_size}")
class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The mean over `output_size` windows of the last 3 dims."""

    output_size: Any


__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d",
    "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d",
    "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip
