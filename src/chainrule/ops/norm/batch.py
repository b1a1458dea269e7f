"""Batch norm under PyTorch's names: training and evaluation, running statistics, masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import constant, wrap_dim
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.views import assign
from ..elementwise.elementary import rsqrt
from ..elementwise.numbers import run_with
from ..elementwise.select import where
from ..shape.in_each import nest_like, whole_nest
from ..shape.slices import keeps_format
from .base import float_arg, narrow, returned, stats, tensor_arg, wide
from .channels import backward, batch, given, per_channel
from .layer import masked_moments, pick, three, valid_positions

# -- running statistics -----------------------------------------------------------------------------------------------


def _vmaps(x: Tensor) -> list[Any]:
    """The vmap levels that a tensor has a batch axis of."""
    out = []
    while x._interp is not None:
        if x._interp.kind == "vmap":
            out.append(x._interp)
        x = x._value
    return out


def refuse_unbatched(name: str, x: Tensor, **running: Any) -> None:
    """Refuse to write statistics that differ between the examples of a vmap to a tensor from outside that they share."""
    if x._interp is None:
        return
    levels = _vmaps(x)
    for k, r in running.items():
        if r is not None and levels and any(i.held([r]) for i in levels if i not in _vmaps(r)):
            raise RuntimeError(
                f"{name}: Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, "
                f"were not batched: {k} is shared by the {levels[0].size} examples of a vmap. Pass running statistics with a batch axis "
                f"(func.stack_module_state for an ensemble), or set track_running_stats=False (running_mean=None, running_var=None), or "
                f"evaluate with training=False."
            )


def refuse_tangents(name: str, **running: Any) -> None:
    """Refuse tangents of statistics that are about to be overwritten: they are values, not variables, in training."""
    for k, r in running.items():
        if r is not None and r._has_tangent():
            raise RuntimeError(
                f"{name}: {k} is not differentiable in training, where it is updated in place: it cannot have a tangent. Give it none, "
                f"or evaluate with training=False, where it counts."
            )


def update_running(running: Any, fresh: Tensor, momentum: float) -> None:
    """running <- (1 - momentum) running + momentum fresh, of values only."""
    if running is not None:
        old = running.detach()
        assign(running, narrow(old * (1 - momentum) + fresh.detach() * momentum, running), "running statistics")


def unbiased(n: Any) -> Any:
    """n / (n - 1), the factor from biased to unbiased variances; NaN for a single value."""
    if isinstance(n, Tensor):
        return n / where(n > 1, n - 1, float("nan"))
    return n / (n - 1) if n > 1 else float("nan")


# -- the operator -----------------------------------------------------------------------------------------------------


def _check(name: str, x: Any, **vectors: Any) -> None:
    tensor_arg(name, "input", x, optional=False)
    float_arg(name, x)
    if x.ndim < 2:
        raise RuntimeError(
            f"{name}: expected an input of at least 2 dims, [batch, channels, ...], got shape {tuple(x.shape)}"
        )
    for k, v in vectors.items():
        tensor_arg(name, k, v)
        if v is not None and v.numel() != x.shape[1]:
            raise RuntimeError(f"{name}: {k} should contain {x.shape[1]} elements, one a channel, not {v.numel()}")


def _run(
    name: str, x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Any, Any]:
    """y and, in training, mean and rstd; running statistics are updated in training."""
    _check(name, x, weight=weight, bias=bias, running_mean=mean, running_var=var)
    rank = x.ndim
    if not training:
        if mean is None or var is None:
            raise RuntimeError(
                f"{name}: Expected running_mean and running_var to be defined when training=False, got None"
            )
        r = rsqrt.bind(stats(wide(var), x) + eps)
        return given.bind(x, weight, bias, stats(mean, x), r, rank=rank)[0], None, None
    learns = (mean is not None or var is not None) and not (type(momentum) is float and momentum == 0)
    if learns:
        refuse_unbatched(name, x, running_mean=mean, running_var=var)
        refuse_tangents(name, running_mean=mean, running_var=var)
    y, m, r, v = run_with(batch, x, weight, bias, number="eps", rank=rank, eps=eps)
    if learns:
        update_running(mean, m, momentum)
        update_running(var, v.detach() * unbiased(x.numel() // max(x.shape[1], 1)), momentum)
    return y, m, r


def _masked(
    x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float, ok: Tensor
) -> Tensor:
    rank = x.ndim
    if training:
        refuse_unbatched("batch_norm", x, running_mean=mean, running_var=var)
        dims = tuple(d for d in range(rank) if d != 1)
        xw, m, v, n = masked_moments(wide(x), ok, dims)
        update_running(mean, m.reshape(-1), momentum)
        update_running(var, (v.detach() * unbiased(n)).reshape(-1), momentum)
    elif mean is None or var is None:
        raise RuntimeError(
            "batch_norm: Expected running_mean and running_var to be defined when training=False, got None"
        )
    else:
        xw, m, v = where(ok, wide(x), 0), per_channel(mean, rank), per_channel(var, rank)
    y = (xw - m) * rsqrt.bind(v + eps)
    y = y if weight is None else y * per_channel(weight, rank)
    y = y if bias is None else y + per_channel(bias, rank)
    return narrow(where(ok, y, 0), x)


@public("nn.functional.batch_norm", out=False)
@keeps_format
@straight
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    mask: Tensor | None = None,
    lengths: Any = None,
    channel_dim: int = 1,
) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` for each channel of x [N, C, ...], or with channels in `channel_dim`.

    In training the statistics are the batch's and the running ones are updated in place (once, under any transform; under vmap
    they must have a batch axis of their own). With `mask` (True where a position counts, broadcast to the input) or `lengths`
    (how many positions of dim 2 count, for each example) the others take no part, give 0 and get no gradient.
    """
    tensor_arg("batch_norm", "input", input, optional=False)
    if channel_dim != 1 and (d := wrap_dim(channel_dim, input.ndim)) != 1 - input.ndim:
        rest = (running_mean, running_var, weight, bias, training, momentum, eps)
        if d == -1 and mask is None and lengths is None and whole_nest(input) and isinstance(input.shape[-1], int):
            return nest_like(batch_norm(input.values().reshape(-1, input.shape[-1]), *rest), input)
        mask = mask.movedim(d, 1) if mask is not None and mask.ndim == input.ndim else mask
        return batch_norm(input.movedim(d, 1), *rest, mask=mask, lengths=lengths).movedim(1, d)
    if not input.numel():  # nothing to normalise and no statistics to learn from
        y = input.clone()
        each = (-1, *(1,) * (input.ndim - 2))
        if weight is not None:  # which has a gradient all the same, of zeros
            y = y * weight.reshape(*each).to(y.dtype)
        return y if bias is None else y + bias.reshape(*each).to(y.dtype)
    _check("batch_norm", input, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    if training and input.numel() // max(input.shape[1], 1) == 1:
        raise ValueError(
            f"batch_norm: Expected more than 1 value per channel when training, got input size {tuple(input.shape)}"
        )
    ok = valid_positions("batch_norm", input, mask, lengths, 2)
    if ok is not None:
        return _masked(input, weight, bias, running_mean, running_var, training, momentum, eps, ok)
    return _run("batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@public("batch_norm", out=False)
def batch_norm_aten(
    input: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` for each channel, in ATen's order of arguments."""
    return _run("batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@public("native_batch_norm")
def native_batch_norm(
    input: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch norm, the mean and ``1 / sqrt(var + eps)`` (empty in evaluation); derivatives of all three are counted."""
    y, m, r = _run("native_batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps)
    if m is None or r is None:
        m = r = constant(np.zeros(0), input)
    parameters = weight, bias, running_mean, running_var
    return y, returned(m, input, *parameters), returned(r, input, *parameters)


@public("_native_batch_norm_legit")
def native_batch_norm_legit(
    input: Tensor, weight: Any, bias: Any, *args: Any, **kw: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch norm with statistics to update, ``(..., running_mean, running_var, training, momentum, eps)``, or without the two."""
    names = ["running_mean", "running_var", "training", "momentum", "eps"]
    if "running_mean" not in kw and (not args or isinstance(args[0], bool | int)):
        names = names[2:]
    given_args = dict(zip(names, args, strict=False)) | kw
    return native_batch_norm(
        input,
        weight,
        bias,
        given_args.get("running_mean"),
        given_args.get("running_var"),
        given_args["training"],
        given_args["momentum"],
        given_args["eps"],
    )


@public("_native_batch_norm_legit_no_training", out=False)
def native_batch_norm_legit_no_training(
    input: Tensor, weight: Any, bias: Any, running_mean: Tensor, running_var: Tensor, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch norm in evaluation."""
    return native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


@public("_native_batch_norm_legit_functional", out=False)
def native_batch_norm_legit_functional(
    input: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """Batch norm that returns new running statistics, as results four and five, and writes to nothing.

    So statistics shared by the examples of a vmap are no matter: each gets its own; and they have derivatives.
    """
    name = "_native_batch_norm_legit_functional"
    if not training:
        y = native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
        return (*y, running_mean.clone(), running_var.clone())
    _check(name, input, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    y, m, r, v = run_with(batch, input, weight, bias, number="eps", rank=input.ndim, eps=eps)
    n = input.numel() // max(input.shape[1], 1)
    spread = 1 / (r * r)  # the op's variance is a value; the derivative comes from r
    v = v.detach() + (spread - spread.detach())
    mean = narrow(running_mean * (1 - momentum) + m * momentum, running_mean)
    var = narrow(running_var * (1 - momentum) + v * (unbiased(n) * momentum), running_var)
    parameters = weight, bias, running_mean, running_var
    return y, returned(m, input, *parameters), returned(r, input, *parameters), mean, var


@public("_batch_norm_with_update", out=False)
def batch_norm_with_update(
    input: Tensor, weight: Any, bias: Any, running_mean: Tensor, running_var: Tensor, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Batch norm in training; the fourth result, what another device would reserve, is empty."""
    return (
        *native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps),
        Tensor(np.zeros(0, np.uint8)),
    )


@public("_batch_norm_no_update", out=False)
def batch_norm_no_update(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Batch norm in evaluation; the fourth result, what another device would reserve, is empty."""
    return (
        *native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps),
        Tensor(np.zeros(0, np.uint8)),
    )


@public("native_batch_norm_backward", out=False)
def native_batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    save_mean: Any,
    save_invstd: Any,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """The gradients of input, weight and bias that `output_mask` asks for, None for the others."""
    name = "native_batch_norm_backward"
    _check(name, input, weight=weight)
    if tuple(grad_out.shape) != tuple(input.shape):
        raise RuntimeError(f"{name}: grad_out has shape {tuple(grad_out.shape)}, input {tuple(input.shape)}")
    mask = three(name, output_mask)
    m, r = save_mean, save_invstd
    if not train:
        if running_mean is None or running_var is None:
            raise RuntimeError(f"{name}: running_mean and running_var are needed with train=False, got None")
        m, r = stats(running_mean, input), rsqrt.bind(stats(wide(running_var), input) + eps)
    if m is None or r is None:
        raise RuntimeError(f"{name}: save_mean and save_invstd are needed with train=True, got None")
    if True not in mask:
        return None, None, None
    m, r = stats(m, input), stats(r, input)
    return pick(mask, backward.bind(grad_out, input, m, r, weight, None, None, rank=input.ndim, mask=mask, train=train))


@public("batch_norm_backward", out=False)
def batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor,
    running_mean: Any,
    running_var: Any,
    save_mean: Any,
    save_var: Any,
    update: bool,
    eps: float,
    output_mask: Sequence[bool],
    reserve: Any,
) -> tuple[Any, Any, Any]:
    """The gradients of batch norm; `reserve` belongs to other devices."""
    return native_batch_norm_backward(
        grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask
    )


def _train(x: Tensor, w: Any, b: Any) -> tuple[Tensor, Tensor, Tensor]:
    return native_batch_norm(x, w, b, None, None, True, 0.1, 1e-3)


def _evaluate(x: Tensor, w: Any, b: Any, m: Tensor, v: Tensor) -> Tensor:
    return batch_norm(x, m, v, w, b)


def _train_masked(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return batch_norm(x, None, None, w, b, True, lengths=[1, 3, 2])


sample("native_batch_norm", S(3, 2), S(2), S(2), f=_train, cx=False)
sample("native_batch_norm", S(3, 2, 2), S(2), None, f=_train, cx=False)
sample("native_batch_norm", S(2, 3, 2, 2), None, S(3), f=_train, cx=False)
sample("nn.functional.batch_norm", S(3, 2, 2), S(2), S(2), S(2), S(2, low=0.5), f=_evaluate, cx=False)
sample("nn.functional.batch_norm", S(3, 2, 3), S(2), S(2), f=_train_masked, cx=False)
sample(
    "native_batch_norm_backward",
    S(3, 2, 2),
    S(3, 2, 2),
    S(2),
    None,
    None,
    S(2),
    S(2),
    True,
    1e-3,
    (True, True, True),
    cx=False,
)
sample(
    "native_batch_norm_backward",
    S(3, 2),
    S(3, 2),
    None,
    S(2),
    S(2, low=0.5),
    None,
    None,
    False,
    1e-3,
    (True, False, False),
    cx=False,
)
