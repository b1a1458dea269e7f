"""Activations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from ..parameter import Parameter
from .thin import thin


@thin("threshold", text="threshold={threshold}, value={value}")
class Threshold(Module):
    """x above a threshold, else a value."""

    threshold: float
    value: float
    inplace: bool = False


@thin("relu", text="")
class ReLU(Module):
    """``max(x, 0)``."""

    inplace: bool = False


@thin("rrelu", text="lower={lower}, upper={upper}", also="training=self.training")
class RReLU(Module):
    """Leaky ReLU with a random slope in training."""

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False


@thin(
    "hardtanh",
    text="min_val={min_val}, max_val={max_val}",
    convert={
        "min_val": "min_val if min_value is None else min_value",
        "max_val": "max_val if max_value is None else max_value",
        "min_value": None,
        "max_value": None,
    },
)
class Hardtanh(Module):
    """x clipped to an interval; `min_value` and `max_value` are its older names."""

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False
    min_value: float | None = None
    max_value: float | None = None

    def _check_options(self) -> None:
        if self.max_val <= self.min_val:
            raise AssertionError(
                f"Hardtanh: max_val must be greater than min_val, got {self.max_val} and {self.min_val}"
            )


class ReLU6(Hardtanh):
    """``min(max(x, 0), 6)``."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Whether it works in place."""
        return "inplace=True" if self.inplace else ""


@thin("hardsigmoid")
class Hardsigmoid(Module):
    """``clip(x / 6 + 1/2, 0, 1)``."""

    inplace: bool = False


@thin("silu", text="")
class SiLU(Module):
    """``x sigmoid(x)``."""

    inplace: bool = False


@thin("mish", text="")
class Mish(Module):
    """``x tanh(softplus(x))``."""

    inplace: bool = False


@thin("hardswish")
class Hardswish(Module):
    """``x hardsigmoid(x)``."""

    inplace: bool = False


@thin("elu", text="alpha={alpha}")
class ELU(Module):
    """``x`` above 0, ``alpha (exp(x) - 1)`` below."""

    alpha: float = 1.0
    inplace: bool = False


@thin("celu", text="alpha={alpha}")
class CELU(Module):
    """``max(x, 0) + min(0, alpha (exp(x / alpha) - 1))``."""

    alpha: float = 1.0
    inplace: bool = False


@thin("selu", text="")
class SELU(Module):
    """The self-normalising ELU."""

    inplace: bool = False


@thin("glu", text="dim={dim}")
class GLU(Module):
    """The first half of `dim` times the sigmoid of the second."""

    dim: int = -1


@thin("gelu", text="approximate={approximate!r}")
class GELU(Module):
    """``x Phi(x)`` with the normal distribution function."""

    approximate: str = "none"


@thin("hardshrink", text="{lambd}")
class Hardshrink(Module):
    """0 within +-lambd, x outside."""

    lambd: float = 0.5


@thin("leaky_relu", text="negative_slope={negative_slope}")
class LeakyReLU(Module):
    """``x`` above 0, ``negative_slope x`` below."""

    negative_slope: float = 1e-2
    inplace: bool = False


@thin("softplus", text="beta={beta}, threshold={threshold}")
class Softplus(Module):
    """``log(1 + exp(beta x)) / beta``."""

    beta: float = 1.0
    threshold: float = 20.0


@thin("softshrink", text="{lambd}")
class Softshrink(Module):
    """x moved towards 0 by lambd."""

    lambd: float = 0.5


@thin("softmin", text="dim={dim}")
class Softmin(Module):
    """The softmax of ``-x`` along `dim`."""

    dim: int | None = None


@thin("softmax", text="dim={dim}")
class Softmax(Module):
    """``exp(x) / sum(exp(x))`` along `dim`."""

    dim: int | None = None


@thin("log_softmax", text="dim={dim}")
class LogSoftmax(Module):
    """``x - log(sum(exp(x)))`` along `dim`."""

    dim: int | None = None


class Tanhshrink(Module):
    """``x - tanh(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        """``x - tanh(x)``."""
        return F.tanhshrink(input)


class Softsign(Module):
    """``x / (1 + |x|)``."""

    def forward(self, input: Tensor) -> Tensor:
        """``x / (1 + |x|)``."""
        return F.softsign(input)


class LogSigmoid(Module):
    """``log(sigmoid(x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """``log(sigmoid(x))``."""
        return F.logsigmoid(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """``1 / (1 + exp(-x))``."""
        return input.sigmoid()


class Tanh(Module):
    """``tanh(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        """``tanh(x)``."""
        return input.tanh()


class Softmax2d(Module):
    """Softmax over the channels of [N, C, H, W] or [C, H, W]."""

    def forward(self, input: Tensor) -> Tensor:
        """Softmax over dim -3."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D (got {input.ndim}D input)")
        return input.softmax(-3)


class PReLU(Module):
    """``max(x, 0) + a min(x, 0)`` with a learned `a`, one or one a channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        d = dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)
        self.weight = Parameter(Tensor(np.zeros(num_parameters, d.np)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The weight that was asked for."""
        from .. import init

        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """``max(x, 0) + a min(x, 0)``."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of parameters."""
        return f"num_parameters={self.num_parameters}"


from .multihead import MultiheadAttention  # noqa: E402

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softmax", "Softmax2d",
    "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip
