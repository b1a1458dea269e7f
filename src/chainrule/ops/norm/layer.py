"""Layer norm and RMS norm under PyTorch's names, with masks and lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import pointwise
from ...core.dispatch import innermost
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import constant, sizes_of
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.types import REAL_NUMS
from ..elementwise.elementary import rsqrt
from ..elementwise.numbers import run_with
from ..elementwise.select import where
from ..linalg.matmul import rounded_once
from .base import float_arg, narrow, returned, stats, tensor_arg, wide
from .rows import layer, mean_over, rms

# -- which positions count --------------------------------------------------------------------------------------------


def valid_positions(name: str, x: Tensor, mask: Any, lengths: Any, dim: int) -> Tensor | None:
    """The mask of the positions that count, of the rank of `x`: `mask`, or the first ``lengths[i]`` along `dim`; None for all."""
    if lengths is not None:
        if mask is not None:
            raise ValueError(f"{name}: give mask or lengths, not both")
        if not isinstance(lengths, Tensor):
            lengths = constant(lengths, x, dt.int64)
        if x.ndim <= dim:
            raise ValueError(f"{name}: lengths count along dim {dim} of the input, which has shape {tuple(x.shape)}")
        if lengths.ndim != 1 or lengths.shape[0] != x.shape[0]:
            raise ValueError(
                f"{name}: lengths must have one entry for each of the {x.shape[0]} examples, got shape {tuple(lengths.shape)}"
            )
        at = constant(np.arange(x.shape[dim]).reshape((-1,) + (1,) * (x.ndim - dim - 1)), lengths)
        return at < lengths.reshape(-1, *(1,) * (x.ndim - 1))
    if mask is None:
        return None
    tensor_arg(name, "mask", mask)
    if mask.dtype is not dt.bool_:
        raise TypeError(f"{name}: mask must be a bool tensor (True: the position counts), got {mask.dtype}")
    return mask


def masked_moments(
    x: Tensor, ok: Tensor, dims: tuple[int, ...], centre: bool = True
) -> tuple[Tensor, Any, Tensor, Tensor]:
    """x with zeros where it does not count; mean (None unless `centre`), biased variance and count of the rest over `dims`."""
    ok = ok.expand(*x.shape)
    x = where(ok, x, 0)  # before any arithmetic: what stands there may be NaN
    n = ok.to(x.dtype).sum(dims, True).clamp(min=1)
    if not centre:
        return x, None, (x * x).sum(dims, True) / n, n
    m = x.sum(dims, True) / n
    c = where(ok, x - m, 0)
    return x, m, (c * c).sum(dims, True) / n, n


def _masked(x: Tensor, nd: int, w: Any, b: Any, eps: float, ok: Any, centre: bool) -> Tensor:
    xw, m, v, _ = masked_moments(wide(x), ok, tuple(range(-nd, 0)), centre)
    y = (xw if m is None else xw - m) * rsqrt.bind(v + eps)
    y = y if w is None else y * w
    y = y if b is None else y + b
    return narrow(where(ok, y, 0), x)


# -- layer norm -------------------------------------------------------------------------------------------------------


def _check(
    name: str, input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None
) -> tuple[tuple[int, ...], int]:
    """The normalised sizes and the rank of the input, after checks that name the argument."""
    if not isinstance(input, Tensor):
        tensor_arg(name, "input", input, optional=False)
    if isinstance(normalized_shape, int):
        raise TypeError(
            f"{name}: normalized_shape must be a tuple of ints, got {normalized_shape}: write ({normalized_shape},)"
        )
    shape, have = tuple(normalized_shape), sizes_of(input)
    k = len(have) - len(shape)
    fits = shape and k >= 0 and have[k:] == shape
    for v in (weight, bias):
        fits = fits and (v is None or (isinstance(v, Tensor) and sizes_of(v) == shape))
    if fits:
        return shape, len(have)
    if not shape:
        raise RuntimeError(
            f"{name}: Expected normalized_shape to be at least 1-dimensional, i.e. containing at least one element, but got ()"
        )
    for arg, v in (("weight", weight), ("bias", bias)):
        tensor_arg(name, arg, v)
        if not _fits(v, shape):
            raise RuntimeError(
                f"{name}: Expected {arg} to be of same shape as normalized_shape, but got {arg} of shape {list(v.shape)} and "
                f"normalized_shape = {list(shape)}"
            )
    raise RuntimeError(
        f"{name}: Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but got "
        f"input of size {list(have)}"
    )


def _fits(v: Any, shape: tuple[int, ...]) -> bool:
    return v is None or (isinstance(v, Tensor) and sizes_of(v) == shape)


@public("nn.functional.layer_norm", out=False)
@straight
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    mask: Tensor | None = None,
    lengths: Any = None,
) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dims, those of `normalized_shape`.

    With `mask` (True where a position counts, broadcast to the input) or `lengths` (how many positions of dim 1 count, for
    each example) the statistics are those of the positions that count; the others give 0 and get no gradient.
    """
    shape, rank = _check("layer_norm", input, normalized_shape, weight, bias)
    if innermost(input).dtype.num not in REAL_NUMS:
        float_arg("layer_norm", input)
    if mask is not None or lengths is not None:
        ok = valid_positions("layer_norm", input, mask, lengths, 1)
        return _masked(input, len(shape), weight, bias, eps, ok, True)
    if eps.__class__ is float:
        return layer.forward.bind(input, weight, bias, nd=len(shape), rank=rank, eps=eps)[0]
    return run_with(layer.forward, input, weight, bias, number="eps", nd=len(shape), rank=rank, eps=eps)[0]


@public("layer_norm", out=False)
def layer_norm_aten(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dims, those of `normalized_shape`."""
    return layer_norm(input, normalized_shape, weight, bias, eps)


@public("native_layer_norm")
def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Layer norm, the mean and ``1 / sqrt(var + eps)``; derivatives of all three are counted."""
    shape, _ = _check("native_layer_norm", input, normalized_shape, weight, bias)
    float_arg("native_layer_norm", input)
    y, m, r = run_with(layer.forward, input, weight, bias, number="eps", nd=len(shape), rank=input.ndim, eps=eps)
    return y, returned(m, input, weight, bias), returned(r, input, weight, bias)


def pick(mask: Sequence[bool], got: Any) -> tuple[Any, ...]:
    """One result an entry of an output mask, None where it is not wanted."""
    it = iter(got)
    return tuple(next(it) if on else None for on in mask)


def three(name: str, mask: Any) -> tuple[bool, bool, bool]:
    """An output mask of three."""
    m = tuple(bool(v) for v in mask)
    if len(m) != 3:
        raise RuntimeError(f"{name}: output_mask must have three entries (input, weight, bias), got {list(mask)}")
    return m


@public("native_layer_norm_backward", out=False)
def native_layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Any,
    bias: Any,
    output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """The gradients of input, weight and bias that `output_mask` asks for, None for the others."""
    shape, _ = _check("native_layer_norm_backward", input, normalized_shape, weight, bias)
    want = three("native_layer_norm_backward", output_mask)
    mask = (want[0], want[1] and weight is not None, want[2] and bias is not None)
    if True not in mask:
        return None, None, None
    m, r = stats(mean, input), stats(rstd, input)
    return pick(
        mask,
        layer.backward.bind(grad_out, input, m, r, weight, None, None, nd=len(shape), rank=input.ndim, mask=mask),
    )


# -- RMS norm ---------------------------------------------------------------------------------------------------------


def _rms_eps(input: Tensor, eps: float | None) -> float:
    # PyTorch's default follows the type that the arithmetic is done in.
    if eps is not None:
        return eps
    d = input.dtype
    return dt.finfo(dt.float32 if d.np in dt.HALVES else d).eps


def _inverse_root(x: Any, eps: float) -> Any:
    return rsqrt.bind(x * x + eps)


# Of rows of one element the slope is eps / (x*x + eps)**1.5, the difference of two nearly equal numbers as a mean over a row would have it.
rms_of_one = pointwise(
    "rms_of_one",
    lambda x, *, eps: x / np.sqrt(x * x + eps),
    lambda t, y, x, *, eps: t * (_inverse_root(x, eps) ** 3 * eps),
    types="float real",
    static=True,
)


@rounded_once
def _of_one(input: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    y = rms_of_one.bind(input, eps=eps)
    return y if weight is None else y * weight


@public("nn.functional.rms_norm rms_norm", out=False)
@straight
def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    mask: Tensor | None = None,
    lengths: Any = None,
) -> Tensor:
    """``x / sqrt(mean(x**2) + eps) * weight`` over the last dims, those of `normalized_shape`; see layer_norm for `mask`."""
    shape, _ = _check("rms_norm", input, normalized_shape, weight)
    nd = len(shape)
    e = _rms_eps(input, eps)
    if mask is not None or lengths is not None:
        ok = valid_positions("rms_norm", input, mask, lengths, 1)
        return _masked(input, nd, weight, None, e, ok, False)
    if input.dtype.category == dt.COMPLEX or (weight is not None and weight.dtype.category == dt.COMPLEX):
        y = input * rsqrt.bind(mean_over(input * input, nd) + e)  # PyTorch squares, it does not take the modulus
        return y if weight is None else y * weight
    float_arg("rms_norm", input)
    if (
        all(type(n) is int and n == 1 for n in shape)
        and type(e) is float
        and (weight is None or weight.dtype is input.dtype)
    ):
        return _of_one(input, weight, e)
    return run_with(rms.forward, input, weight, None, number="eps", nd=nd, rank=input.ndim, eps=e)[0]


@public("_fused_rms_norm", out=False)
def fused_rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None
) -> tuple[Tensor, Tensor]:
    """RMS norm and ``1 / sqrt(mean(x**2) + eps)``; derivatives of both are counted."""
    shape, _ = _check("_fused_rms_norm", input, normalized_shape, weight)
    float_arg("_fused_rms_norm", input)
    return run_with(
        rms.forward, input, weight, None, number="eps", nd=len(shape), rank=input.ndim, eps=_rms_eps(input, eps)
    )


@public("_fused_rms_norm_backward", out=False)
def fused_rms_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    rstd: Tensor,
    weight: Any,
    output_mask: Sequence[bool],
) -> tuple[Any, Any]:
    """The gradients of input and weight that `output_mask` asks for, None for the others."""
    shape, _ = _check("_fused_rms_norm_backward", input, normalized_shape, weight)
    mask = (bool(output_mask[0]), bool(output_mask[1]) and weight is not None, False)
    if True not in mask:
        return None, None
    return pick(
        mask,
        rms.backward.bind(grad_out, input, None, rstd, weight, None, None, nd=len(shape), rank=input.ndim, mask=mask),
    )[:2]


sample("native_layer_norm", S(3, 4), (4,), S(4), S(4), 1e-5, cx=False)
sample("native_layer_norm", S(2, 3, 2), (3, 2), None, S(3, 2), 0.1, cx=False)
sample("native_layer_norm", S(4), (4,), S(4), None, 1e-2, cx=False)
sample("native_layer_norm_backward", S(3, 4), S(3, 4), (4,), S(3, 1), S(3, 1), S(4), S(4), (True, True, True), cx=False)
sample("nn.functional.layer_norm", S(0, 4), (4,), S(4), S(4), cx=False)
sample("nn.functional.layer_norm", S(2, 3, 4), (4,), S(4), S(4), cx=False, lengths=[2, 3])
sample("nn.functional.rms_norm", S(3, 4), (4,), S(4), cx=False)
sample("nn.functional.rms_norm", S(2, 3, 2), (3, 2), cx=False)
sample("nn.functional.rms_norm", S(3, 1), (1,), S(1), 0.1, cx=False)
sample("_fused_rms_norm", S(3, 4), (4,), S(4), 1e-3, cx=False)
sample("_fused_rms_norm_backward", S(3, 4), S(3, 4), (4,), S(3, 1), S(4), (True, True), cx=False)
