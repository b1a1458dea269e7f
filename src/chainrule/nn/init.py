"""Initial values of weights: each function fills a tensor in place, without recording, and returns it."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dispatch import recorder
from ..core.imperative import no_grad
from ..core.tensor import Tensor
from ..core.views import assign
from ..ops.random.generator import default_generator, draw_p


def _fill(x: Tensor, value: Any) -> Tensor:
    with no_grad():
        return assign(x, Tensor(np.asarray(value).astype(x.dtype.np)), "init")


def _draw(
    x: Tensor, name: str, generator: Any, sample: Callable[[np.random.Generator, tuple[int, ...]], Any]
) -> Tensor:
    """Fill with ``sample(rng, shape)``; a function that is recorded draws anew at every call."""
    source, d = default_generator if generator is None else generator, x.dtype.np

    def fresh(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return np.asarray(sample(rng, shape)).astype(d)

    shape, level = tuple(x.shape), recorder()
    if level is None:
        value = Tensor(fresh(source.rng, shape))
    else:
        value = level.note(
            draw_p, (), {"name": name, "shape": shape, "sample": fresh, "source": source, "shared": True}
        )
    with no_grad():
        return assign(x, value, "init")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform numbers in [a, b)."""
    return _draw(tensor, "uniform_", generator, lambda rng, shape: rng.uniform(a, b, shape))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normal numbers."""
    return _draw(tensor, "normal_", generator, lambda rng, shape: mean + std * rng.standard_normal(shape))


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Normal numbers, drawn again until they lie in [a, b]: by the inverse of the distribution function."""
    from scipy.special import ndtr, ndtri

    low, high = ndtr((a - mean) / std), ndtr((b - mean) / std)

    def sample(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return np.clip(mean + std * ndtri(rng.uniform(low, high, shape)), a, b)

    return _draw(tensor, "trunc_normal_", generator, sample)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere."""
    return _fill(tensor, np.full(tuple(tensor.shape), val))


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor.ndim != 2:
        raise ValueError(f"eye_: only tensors with 2 dimensions are supported, got shape {tuple(tensor.shape)}")
    return _fill(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution's weight [out, in, ...] that keeps as many channels as it can."""
    if not 3 <= tensor.ndim <= 5:
        raise ValueError(
            f"dirac_: only tensors with 3, 4 or 5 dimensions are supported, got shape {tuple(tensor.shape)}"
        )
    out, channels = tensor.shape[:2]
    if out % groups:
        raise ValueError(f"dirac_: dim 0 ({out}) must be divisible by groups ({groups})")
    w = np.zeros(tuple(tensor.shape))
    middle = tuple(s // 2 for s in tensor.shape[2:])
    per = out // groups
    for g in range(groups):
        for d in range(min(per, channels)):
            w[(g * per + d, d, *middle)] = 1
    return _fill(tensor, w)


def _slope(p: Any) -> float:
    if p is None:
        return 0.01
    if isinstance(p, bool) or not isinstance(p, int | float):
        raise ValueError(f"negative_slope {p} not a valid number")
    return p


_GAINS: dict[str, Callable[[Any], float]] = {
    "tanh": lambda p: 5 / 3,
    "relu": lambda p: math.sqrt(2),
    "leaky_relu": lambda p: math.sqrt(2 / (1 + _slope(p) ** 2)),
    "selu": lambda p: 3 / 4,
}
_LINEAR = {
    "linear",
    "sigmoid",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
}


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The factor that keeps the variance of a layer followed by this nonlinearity."""
    if nonlinearity in _LINEAR:
        return 1.0
    if nonlinearity not in _GAINS:
        raise ValueError(
            f"calculate_gain: unsupported nonlinearity {nonlinearity!r}; known: {', '.join(sorted({*_GAINS, *_LINEAR}))}"
        )
    return _GAINS[nonlinearity](param)


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output of this weight has, and how many outputs an input."""
    if tensor.ndim < 2:
        raise ValueError(
            f"Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, got shape {tuple(tensor.shape)}"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of fan_in, fan_out")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform in +-gain sqrt(6 / (fan_in + fan_out))."""
    a = gain * math.sqrt(6 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -a, a, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with standard deviation gain sqrt(2 / (fan_in + fan_out))."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def _empty(tensor: Tensor) -> bool:
    if tensor.numel():
        return False
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return True


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Uniform in +-gain sqrt(3 / fan)."""
    if _empty(tensor):
        return tensor
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3 / _calculate_correct_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Normal with standard deviation gain / sqrt(fan)."""
    if _empty(tensor):
        return tensor
    return normal_(
        tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode)), generator
    )


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A random matrix with orthonormal rows or columns (dims after the first count as columns), times `gain`."""
    if tensor.ndim < 2:
        raise ValueError(
            f"orthogonal_: only tensors with 2 or more dimensions are supported, got shape {tuple(tensor.shape)}"
        )
    if not tensor.numel():
        return tensor
    rows, cols = tensor.shape[0], tensor.numel() // tensor.shape[0]

    def sample(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        q, r = np.linalg.qr(rng.standard_normal((max(rows, cols), min(rows, cols))))
        q = q * np.sign(np.diagonal(r))  # uniform over the orthogonal matrices
        return gain * (q if rows >= cols else q.T).reshape(shape)

    return _draw(tensor, "orthogonal_", generator, sample)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal numbers, of which the fraction `sparsity` of each column is zero."""
    if tensor.ndim != 2:
        raise ValueError(f"sparse_: only tensors with 2 dimensions are supported, got shape {tuple(tensor.shape)}")

    def sample(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        w = std * rng.standard_normal(shape)
        w[np.argsort(rng.random(shape), axis=0) < math.ceil(sparsity * shape[0])] = 0
        return w

    return _draw(tensor, "sparse_", generator, sample)


def _older(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function by its name of PyTorch's first days, without the underscore."""

    @functools.wraps(f)
    def call(*args: Any, **kw: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{call.__name__}` is now deprecated in favor of `nn.init.{f.__name__}`.",
            FutureWarning,
            stacklevel=2,
        )
        return f(*args, **kw)

    call.__name__ = f.__name__.rstrip("_")
    return call


uniform, normal, constant = _older(uniform_), _older(normal_), _older(constant_)
eye, dirac = _older(eye_), _older(dirac_)
xavier_uniform, xavier_normal = _older(xavier_uniform_), _older(xavier_normal_)
kaiming_uniform, kaiming_normal = _older(kaiming_uniform_), _older(kaiming_normal_)
orthogonal, sparse = _older(orthogonal_), _older(sparse_)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    return constant_(tensor, val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    return zeros_(tensor)


_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_ = uniform_, normal_, trunc_normal_

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def __dir__() -> list[str]:
    return __all__
