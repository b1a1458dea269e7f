"""The dropout family: multiplication by random numbers that are constants of the derivative, so any order is right."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.tensor import Tensor
from ...core.views import assign
from ..shape.create import ones_like
from ..shape.slices import keeps_format
from .generator import draw

# The negative saturation value of SELU, which alpha dropout keeps.
_ALPHA = 1.7580993408473766


def _probability(p: float, kind: type[Exception] = RuntimeError) -> None:
    if p < 0 or p > 1:
        raise kind(f"dropout probability has to be between 0 and 1, but got p={p}")


def _mask(name: str, shape: tuple[int, ...], p: float, generator: Any = None) -> Tensor:
    return draw(name, shape, lambda rng, s: rng.random(s, dtype=np.float32) >= p, generator)


def _noise_shape(name: str, input: Tensor, feature: bool) -> tuple[int, ...]:
    if not feature:
        return tuple(input.shape)
    if input.ndim < 2:
        raise RuntimeError(
            f"{name}: feature dropout requires at least 2 dimensions in the input, got shape {list(input.shape)}"
        )
    return (*input.shape[:2], *(1,) * (input.ndim - 2))


def _apply(name: str, input: Tensor, p: float, train: bool, feature: bool = False, alpha: bool = False) -> Tensor:
    _probability(p)
    if p == 0 or not train or not input.numel():
        return input
    shape = _noise_shape(name, input, feature)
    if p == 1:
        return input * 0
    real = input.dtype.to_real().np
    if not alpha:
        noise = draw(
            name, shape, lambda rng, s: np.multiply(rng.random(s, dtype=np.float32) >= p, 1 / (1 - p)).astype(real)
        )
        return input * noise
    if input.dtype.category != dt.FLOAT:
        raise RuntimeError(
            f"{name}: only floating-point tensors are supported in training, got {input.dtype} for input"
        )
    a = 1 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    keep = draw(name, shape, lambda rng, s: (rng.random(s, dtype=np.float32) >= p).astype(real))
    return input * (keep * a) + ((keep - 1) * (_ALPHA * a) + _ALPHA * a * p)


def _family(name: str, feature: bool, alpha: bool, doc: str) -> Any:
    def f(input: Tensor, p: float, train: bool) -> Tensor:
        return _apply(name, input, p, train, feature, alpha)

    def f_(input: Tensor, p: float, train: bool) -> Tensor:
        return assign(input, _apply(name, input, p, train, feature, alpha), f"{name}_")

    f.__name__, f.__doc__ = name, doc
    f_.__name__, f_.__doc__ = f"{name}_", f"In-place version of :func:`{name}`."
    public(name, out=False)(f)
    public(f"{name}_", out=False)(f_)
    return f


_family(
    "dropout",
    False,
    False,
    "`input` with elements set to 0 with probability `p`, the others scaled by ``1 / (1 - p)``.",
)
_family("feature_dropout", True, False, ":func:`dropout` of whole channels (dimension 1).")
_family("alpha_dropout", False, True, "Dropout to the negative saturation value of SELU that keeps mean and variance.")
_family("feature_alpha_dropout", True, True, ":func:`alpha_dropout` of whole channels (dimension 1).")


_RANKS = {"dropout2d": (3, 4), "dropout3d": (4, 5)}


def _check_rank(name: str, ndim: int) -> None:
    """Warn of an input whose channels may not be where the caller thinks."""
    low, high = _RANKS[name]
    if not low <= ndim <= high:
        warnings.warn(
            f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an error in a future release. To retain the "
            f"behavior and silence this warning, please use dropout instead. Note that {name} exists to provide channel-wise dropout on inputs "
            f"with {high - 2} spatial dimensions, a channel dimension, and an optional batch dimension (i.e. {low}D or {high}D inputs).",
            stacklevel=3,
        )
    elif name == "dropout2d" and ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3-D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is interpreted as "
            "shape (N, C, L), where C is the channel dim. Use dropout1d for such inputs, or add a batch dimension.",
            stacklevel=3,
        )


def _functional(name: str, training: bool, feature: bool, alpha: bool, ranks: tuple[int, int] | None, doc: str) -> None:
    """`ranks` are those of one example and of a batch, for functions that take both."""

    def f(input: Tensor, p: float = 0.5, training: bool = training, inplace: bool = False) -> Tensor:
        _probability(p, ValueError)
        if name == "dropout1d" and input.ndim not in (2, 3):
            raise RuntimeError(
                f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input of shape {list(input.shape)}"
            )
        if name in _RANKS:
            _check_rank(name, input.ndim)
        one = ranks is not None and input.ndim == ranks[0]
        y = _apply(name, input.unsqueeze(0) if one else input, p, training, feature, alpha)
        y = input if p == 0 or not training else y.squeeze(0) if one else y
        return assign(input, y, name) if inplace and y is not input else y

    f.__name__, f.__doc__ = name, doc
    public(f"nn.functional.{name}", out=False)(f if alpha else keeps_format(f))


_functional(
    "dropout", True, False, False, None, "`input` with elements set to 0 with probability `p`, the others scaled."
)
_functional("dropout1d", True, True, False, (2, 3), "Dropout of whole channels of (N, C, L) or (C, L).")
_functional("dropout2d", True, True, False, None, "Dropout of whole channels of (N, C, H, W).")
_functional("dropout3d", True, True, False, (4, 5), "Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W).")
_functional("alpha_dropout", False, False, True, None, "Dropout for SELU, which keeps mean and variance.")
_functional("feature_alpha_dropout", False, True, True, None, "Alpha dropout of whole channels.")


@public("native_dropout", out=False)
def native_dropout(input: Tensor, p: float, train: bool | None = True) -> tuple[Tensor, Tensor]:
    """``(input * mask / (1 - p), mask)``; without training ``(input, ones)``."""
    _probability(p)
    if train is not None and not train:
        return input, ones_like(input, dtype=dt.bool_)
    mask = _mask("native_dropout", tuple(input.shape), p)
    return (input * 0 if p == 1 else input * mask.to(input.dtype.to_real()) * (1 / (1 - p))), mask


@public("_fused_dropout", out=False)
def _fused_dropout(input: Tensor, p: float, generator: Any = None) -> tuple[Tensor, Tensor]:
    """``(input * mask / p, mask)`` where `p` is the probability to keep; the mask is of type uint8."""
    _probability(p)
    mask = _mask("_fused_dropout", tuple(input.shape), 1 - p, generator)
    return (input * 0 if p == 0 else input * mask.to(input.dtype.to_real()) * (1 / p)), mask.to(dt.uint8)


@public("native_dropout_backward _masked_scale", out=False)
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """``grad_output * mask * scale``."""
    return grad_output * mask.to(grad_output.dtype.to_real()) * scale


# -- samples: with p = 0 and p = 1, where nothing is random -------------------------------------------------------------

for _n in ("dropout", "alpha_dropout"):
    sample(f"nn.functional.{_n}", S(3, 2), p=1.0, training=True, cx=False)
    sample(f"nn.functional.{_n}", S(3, 2), p=0.0, training=True)
sample("nn.functional.dropout2d", S(2, 3, 1, 2), p=0.0)
sample("native_dropout_backward", S(3), Given([True, False, True]), 2.0)
