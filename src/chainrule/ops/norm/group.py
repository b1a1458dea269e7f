"""Group norm, instance norm and local response norm under PyTorch's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.registry import public
from ...core.samples import S, sample
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.elementary import rsqrt
from ..elementwise.numbers import run_with
from ..elementwise.select import where
from ..shape.slices import keeps_format
from .base import narrow, returned, stats, tensor_arg, wide
from .batch import _check, refuse_unbatched, unbiased, update_running
from .batch import batch_norm as batch_norm_function
from .channels import per_channel
from .groups import backward
from .groups import group as group_op
from .layer import masked_moments, pick, three, valid_positions

# -- group norm -------------------------------------------------------------------------------------------------------


def _groups(name: str, x: Tensor, groups: int) -> None:
    if groups <= 0:
        raise RuntimeError(f"{name}: Expected num_groups to be greater than 0, got {groups}")
    if x.shape[1] % groups:
        raise RuntimeError(
            f"{name}: Expected number of channels in input to be divisible by num_groups, but got input of shape {list(x.shape)} and num_groups={groups}"
        )


def _masked(
    x: Tensor, groups: int, weight: Any, bias: Any, eps: float, ok: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """y and, for each group, mean, variance and count of what counts."""
    n, shape = x.shape[0], tuple(x.shape)
    flat = wide(x).reshape(n, groups, -1)
    xw, m, v, k = masked_moments(flat, ok.expand(*shape).reshape(n, groups, -1), (2,))
    y = ((xw - m) * rsqrt.bind(v + eps)).reshape(*shape)
    y = y if weight is None else y * per_channel(weight, x.ndim)
    y = y if bias is None else y + per_channel(bias, x.ndim)
    return narrow(where(ok, y, 0), x), m, v, k


@public("nn.functional.group_norm", out=False)
@keeps_format
@straight
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    mask: Tensor | None = None,
    lengths: Any = None,
) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias``, statistics over each group of channels of each example of x [N, C, ...].

    `mask` and `lengths` (how many positions of dim 2 count, for each example) as in batch_norm.
    """
    _check("group_norm", input, weight=weight, bias=bias)
    _groups("group_norm", input, num_groups)
    if input.numel() and input.numel() // input.shape[1] * (input.shape[1] // num_groups) == 1:
        raise ValueError(
            f"group_norm: Expected more than 1 value per channel when training, got input size {tuple(input.shape)}"
        )
    ok = valid_positions("group_norm", input, mask, lengths, 2)
    if ok is not None:
        return _masked(input, num_groups, weight, bias, eps, ok)[0]
    return run_with(group_op, input, weight, bias, number="eps", groups=num_groups, rank=input.ndim, eps=eps)[0]


@public("group_norm", out=False)
def group_norm_aten(
    input: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn_enabled: bool = True
) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias``, statistics over each group of channels of each example."""
    _check("group_norm", input, weight=weight, bias=bias)
    _groups("group_norm", input, num_groups)
    return run_with(group_op, input, weight, bias, number="eps", groups=num_groups, rank=input.ndim, eps=eps)[0]


def _sizes(name: str, x: Tensor, n: int, c: int, hxw: int) -> tuple[int, ...]:
    if n * c * hxw != x.numel():
        raise RuntimeError(f"{name}: N={n}, C={c} and HxW={hxw} do not fit an input of shape {tuple(x.shape)}")
    return tuple(x.shape) if tuple(x.shape[:2]) == (n, c) else (n, c, hxw)


@public("native_group_norm")
def native_group_norm(
    input: Tensor,
    weight: Any,
    bias: Any,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Group norm, mean and ``1 / sqrt(var + eps)`` [N, groups]; derivatives of all three are counted."""
    tensor_arg("native_group_norm", "input", input, optional=False)
    shape = _sizes("native_group_norm", input, N, C, HxW)
    x = input if tuple(input.shape) == shape else input.reshape(*shape)
    _check("native_group_norm", x, weight=weight, bias=bias)
    _groups("native_group_norm", x, group)
    y, m, r = run_with(group_op, x, weight, bias, number="eps", groups=group, rank=x.ndim, eps=eps)
    y = y if x is input else y.reshape(*input.shape)
    return y, returned(m, input, weight, bias), returned(r, input, weight, bias)


@public("native_group_norm_backward", out=False)
def native_group_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Any,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """The gradients of input, weight and bias that `output_mask` asks for, None for the others."""
    name = "native_group_norm_backward"
    mask = three(name, output_mask)
    if True not in mask:
        return None, None, None
    shape = _sizes(name, input, N, C, HxW)
    x, gy = input.reshape(*shape), grad_out.reshape(*shape)
    _check(name, x, weight=weight)
    _groups(name, x, group)
    m, r = (stats(v, input).reshape(N, group) for v in (mean, rstd))
    gx, gw, gb = pick(mask, backward.bind(gy, x, m, r, weight, None, None, groups=group, rank=x.ndim, mask=mask))
    return (None if gx is None else gx.reshape(*input.shape)), gw, gb


# -- instance norm ----------------------------------------------------------------------------------------------------


@public("nn.functional.instance_norm", out=False)
@straight
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    mask: Tensor | None = None,
    lengths: Any = None,
) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias``, statistics of each channel of each example of x [N, C, ...].

    Running statistics learn the averages over the examples. `mask` and `lengths` as in batch_norm.
    """
    _check("instance_norm", input, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError(
                "instance_norm: Expected running_mean and running_var to be defined when use_input_stats is false, got None"
            )
        return batch_norm_function(
            input, running_mean, running_var, weight, bias, False, momentum, eps, mask=mask, lengths=lengths
        )
    n, c = input.shape[0], input.shape[1]
    per = input.numel() // (n * c) if n * c else 0
    if per == 1:
        raise ValueError(
            f"instance_norm: Expected more than 1 spatial element when training, got input size {tuple(input.shape)}"
        )
    track = running_mean is not None or running_var is not None
    if track:
        refuse_unbatched("instance_norm", input, running_mean=running_mean, running_var=running_var)
    ok = valid_positions("instance_norm", input, mask, lengths, 2)
    if ok is not None:
        y, m, v, k = _masked(input, c, weight, bias, eps, ok)
        m, v = m.reshape(n, c), (v * unbiased(k)).reshape(n, c)
    else:
        y, m, _ = run_with(group_op, input, weight, bias, number="eps", groups=c, rank=input.ndim, eps=eps)
        if track:
            flat = wide(input.detach()).reshape(n, c, -1)
            v = ((flat - m.detach().unsqueeze(-1)) ** 2).mean(-1) * unbiased(per)
    if track:
        update_running(running_mean, m.mean(0), momentum)
        update_running(running_var, v.mean(0), momentum)
    return y


@public("instance_norm", out=False)
def instance_norm_aten(
    input: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` of each channel of each example, in ATen's order of arguments."""
    return instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


# -- local response norm ----------------------------------------------------------------------------------------------


@public("nn.functional.local_response_norm", out=False)
@straight
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """``x / (k + alpha mean(x**2))**beta``, the mean over `size` neighbouring channels, zeros beyond the ends."""
    tensor_arg("local_response_norm", "input", input, optional=False)
    if input.ndim < 3:
        raise ValueError(
            f"local_response_norm: Expected 3D or higher dimensionality input (got {input.ndim} dimensions)"
        )
    if not input.numel():
        return input
    x = wide(input)
    square = x * x
    c = x.shape[1]
    before, after = size // 2, (size - 1) // 2
    # A window's sum is a sum of shifted copies: the size of the window decides how many, not the input.
    window: Any = None
    for shift in range(-before, after + 1):
        lo, hi = max(0, -shift), min(c, c - shift)
        if hi > lo:
            part = _placed(square.narrow(1, lo + shift, hi - lo), lo, c - hi)
            window = part if window is None else window + part
    return narrow(x / ((window / size) * alpha + k) ** beta, input)


def _placed(x: Tensor, before: int, after: int) -> Tensor:
    """x with zero channels before and after."""
    if not before and not after:
        return x
    from ...core.registry import PUBLIC

    return PUBLIC["nn.functional.pad"](x, [0, 0] * (x.ndim - 2) + [before, after])


def _train(x: Tensor, w: Any, b: Any, groups: int) -> tuple[Tensor, Tensor, Tensor]:
    n, c = x.shape[:2]
    return native_group_norm(x, w, b, n, c, x.numel() // (n * c), groups, 1e-3)


def _grad(gy: Tensor, x: Tensor, m: Tensor, r: Tensor, w: Any) -> tuple[Any, ...]:
    n, c = x.shape[:2]
    return native_group_norm_backward(gy, x, m, r, w, n, c, x.numel() // (n * c), m.shape[1], (True, True, True))


sample("native_group_norm", S(2, 4, 3), S(4), S(4), 2, f=_train, cx=False)
sample("native_group_norm", S(2, 4), None, S(4), 2, f=_train, cx=False)
sample("native_group_norm", S(2, 2, 2, 2), S(2), None, 1, f=_train, cx=False)
sample("native_group_norm_backward", S(2, 4, 3), S(2, 4, 3), S(2, 2), S(2, 2), S(4), f=_grad, cx=False)
sample("nn.functional.group_norm", S(2, 4, 3), 2, S(4), S(4), cx=False, lengths=[1, 3])
sample("nn.functional.instance_norm", S(2, 3, 4), None, None, S(3), S(3), cx=False)
sample("nn.functional.instance_norm", S(2, 3, 4), cx=False, lengths=[2, 4])
sample("nn.functional.local_response_norm", S(2, 5, 2), 3, cx=False)
sample("nn.functional.local_response_norm", S(2, 3, 2), 6, 0.5, 0.5, 2.0, cx=False)
