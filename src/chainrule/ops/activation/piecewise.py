"""Activations that are straight lines in pieces: relu and its relatives, shrinkage, thresholds.

At a kink the derivative is PyTorch's: that of the flat side where there is one. Second derivatives are zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import pointwise
from ...core.errors import ZERO
from ...core.registry import METHODS, public
from ...core.samples import Given, S, sample
from ...core.shapes import constant
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.views import assign
from ..elementwise.formulas import LEAST, compiled, piecewise, smooth
from ..elementwise.numbers import varies
from ..elementwise.select import where
from ..random.generator import draw


def need_float(name: str, x: Tensor, what: str = "input") -> None:
    """Raise unless `x` is a real floating tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: {what} must be a tensor, got {type(x).__name__}")
    if x.dtype.category != dt.FLOAT:
        raise NotImplementedError(f"{name}: not implemented for {what} of {x.dtype}; convert it with .float()")


def need_real(name: str, x: Tensor) -> None:
    """Raise for boolean and complex tensors."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: input must be a tensor, got {type(x).__name__}")
    if x.dtype is dt.bool_ or x.dtype.category == dt.COMPLEX:
        raise NotImplementedError(
            f"{name}: not implemented for input of {x.dtype}; convert it first, for example with .float()"
        )


def finish(name: str, x: Tensor, y: Tensor, inplace: bool) -> Tensor:
    """The result of an activation with PyTorch's ``inplace`` argument."""
    return assign(x, y, f"{name}_") if inplace else y


def in_place_function(name: str, spaces: str, f: Any) -> None:
    """Publish ``name_(input, ...)`` under `spaces`: `f` with its result written to its first argument."""

    def function(input: Tensor, *args: Any, **kw: Any) -> Tensor:
        return assign(input, f(input, *args, **kw), f"{name}_")

    function.__name__ = f"{name}_"
    function.__doc__ = f"In-place version of :func:`{name}`."
    public(" ".join(f"{s}{name}_" for s in spaces.split(",")), out=False)(function)


# -- relu -------------------------------------------------------------------------------------------------------------

# `x <= 0` and not `x > 0` decides: a NaN passes its cotangent on, as in PyTorch.
relu_p = piecewise(
    "relu",
    (lambda x: np.maximum(x, 0), lambda k, x: k.select(x < 0.0, 0.0, x)),
    (lambda t, x: np.where(x <= 0, t.dtype.type(0), t), lambda k, t, x: k.select(x <= 0.0, 0.0, t)),
)


@public("relu", methods="relu", inplace="relu_", out=False)
@straight
def relu(input: Tensor) -> Tensor:
    """``max(input, 0)``; the derivative at 0 is 0.

    >>> chainrule.tensor([-1.0, 2.0]).relu()
    tensor([0., 2.])
    """
    need_real("relu", input)
    return relu_p.bind(input)


public("relu_ nn.functional.relu_", out=False)(METHODS["relu_"])


@public("nn.functional.relu", out=False)
@straight
def functional_relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(input, 0)``; the derivative at 0 is 0."""
    return finish("relu", input, relu(input), inplace)


hardtanh_p = piecewise(
    "hardtanh",
    (
        lambda x, *, lo, hi: np.minimum(np.maximum(x, x.dtype.type(lo)), x.dtype.type(hi)),
        lambda k, x, *, lo, hi: k.select(x < lo, lo, k.select(x > hi, hi, x)),
    ),
    (
        lambda t, x, *, lo, hi: np.where((x <= lo) | (x >= hi), t.dtype.type(0), t),
        lambda k, t, x, *, lo, hi: k.select(x <= lo, 0.0, k.select(x >= hi, 0.0, t)),
    ),
    static=True,
    usual=({"lo": -1.0, "hi": 1.0}, {"lo": 0.0, "hi": 6.0}),
)


@public("nn.functional.hardtanh _C._nn.hardtanh", out=False)
@straight
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """``min(max(input, min_val), max_val)``; unlike clamp's, its derivative at the bounds is 0."""
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val cannot be greater than max_val, got min_val={min_val}, max_val={max_val}")
    need_real("hardtanh", input)
    if input.dtype is dt.uint8 and (min_val < 0 or max_val < 0):
        raise RuntimeError(
            f"hardtanh: cannot do hardtanh on an unsigned type with negative limits, got min_val={min_val}, max_val={max_val}"
        )
    if varies(min_val, max_val):
        y = where(input <= min_val, min_val, where(input >= max_val, max_val, input))
    else:
        y = hardtanh_p.bind(input, lo=float(min_val), hi=float(max_val))
    return finish("hardtanh", input, y, inplace)


@public("nn.functional.relu6 _C._nn.relu6", out=False)
@straight
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(input, 0), 6)``; the derivative at 0 and at 6 is 0."""
    need_real("relu6", input)
    return finish("relu6", input, hardtanh_p.bind(input, lo=0.0, hi=6.0), inplace)


leaky_relu_p = piecewise(
    "leaky_relu",
    (lambda x, *, slope: np.where(x > 0, x, x * slope), lambda k, x, *, slope: k.select(x > 0.0, x, x * slope)),
    (lambda t, x, *, slope: np.where(x > 0, t, t * slope), lambda k, t, x, *, slope: k.select(x > 0.0, t, t * slope)),
    static=True,
    usual=({"slope": 0.01},),
)


@public("nn.functional.leaky_relu _C._nn.leaky_relu", out=False)
@straight
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``input`` where positive, else ``negative_slope * input``."""
    need_float("leaky_relu", input)
    return finish("leaky_relu", input, _leaky(input, negative_slope), inplace)


def _leaky(input: Tensor, slope: Any) -> Tensor:
    return where(input > 0, input, input * slope) if varies(slope) else leaky_relu_p.bind(input, slope=float(slope))


# -- rrelu, prelu: a slope for every element, or for every channel ------------------------------------------------------


def _spread(body: Any) -> Any:
    """`body` whose last array, the slopes, is spread over the first where compiled loops want arrays of one shape."""

    def spread(*xs: Any) -> Any:
        *rest, w = xs
        if rest[-1].size >= LEAST and w.shape != rest[-1].shape:
            w = np.broadcast_to(w, np.broadcast_shapes(w.shape, rest[-1].shape))
        return body(*rest, w)

    return spread


prelu_p = pointwise(
    "prelu",
    _spread(
        compiled("prelu", lambda x, w: np.where(x > 0, x, w * x), lambda k, x, w: k.select(x > 0.0, x, w * x), cost=1)
    ),
    lambda t, y, x, w: prelu_pull_p.bind(t, x, w),
    lambda t, y, x, w: prelu_weight_pull_p.bind(t, x),
)
prelu_pull_p = pointwise(
    "prelu_pull",
    _spread(
        compiled(
            "prelu_pull",
            lambda t, x, w: np.where(x > 0, t, t * w),
            lambda k, t, x, w: k.select(x > 0.0, t, t * w),
            cost=1,
        )
    ),
    lambda s, y, t, x, w: prelu_pull_p.bind(s, x, w),
    ZERO,
    lambda s, y, t, x, w: where(x > 0, 0, s * t),
)
prelu_weight_pull_p = pointwise(
    "prelu_weight_pull",
    compiled(
        "prelu_weight_pull",
        lambda t, x: np.where(x > 0, t.dtype.type(0), t * x),
        lambda k, t, x: k.select(x > 0.0, 0.0, t * x),
        cost=1,
    ),
    lambda s, y, t, x: prelu_weight_pull_p.bind(s, x),
    lambda s, y, t, x: where(x > 0, 0, s * t),
)


@public("prelu nn.functional.prelu", methods="prelu", out=False)
@straight
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``input`` where positive, else ``weight * input``, with one weight in all or one for every entry of dim 1."""
    need_float("prelu", input)
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got input of {input.dtype} and weight of {weight.dtype}"
        )
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    n = weight.numel()
    if n != 1:
        if input.ndim == 0:
            raise RuntimeError(
                "prelu: Not allow zero-dim input tensor. A weight for every channel needs channels, in dim 1 of input."
            )
        channels = input.shape[1] if input.ndim > 1 else 1
        if channels != n:
            raise RuntimeError(
                f"prelu: Mismatch of parameter numbers and input channel size. Found parameter numbers = {n}, and channel size = "
                f"{channels} (dim 1 of input, {list(input.shape)})."
            )
    if input.ndim > 1:
        weight = weight.reshape(n, *(1,) * (input.ndim - 2))
    elif input.ndim == 0:
        weight = weight.reshape(())
    return prelu_p.bind(input, weight)


public("_prelu_kernel", out=False)(prelu_p)


@public("rrelu", out=False)
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, generator: Any = None
) -> Tensor:
    """``input`` where positive, else ``a * input`` with a uniform in [lower, upper], or its mean without ``training``."""
    need_float("rrelu", input)
    for what, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {what} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError(
            f"rrelu: Lower bound should be less than or equal to the upper bound, got lower={lower}, upper={upper}"
        )
    if not training:
        return _leaky(input, (lower + upper) / 2)
    return prelu_p.bind(input, _slopes(input, lower, upper, generator))


def _slopes(x: Tensor, lower: float, upper: float, generator: Any) -> Tensor:
    d = x.dtype.np
    return draw("rrelu", tuple(x.shape), lambda rng, s: np.asarray(rng.uniform(lower, upper, s)).astype(d), generator)


@public("nn.functional.rrelu", out=False)
def functional_rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """``input`` where positive, else ``a * input`` with a uniform in [lower, upper], or its mean without ``training``."""
    return finish("rrelu", input, rrelu(input, lower, upper, training), inplace)


@public("_C._nn.rrelu_with_noise", out=False)
def rrelu_with_noise(
    input: Tensor,
    noise: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """:func:`rrelu` that also writes the slopes to `noise` (1 where the input is positive)."""
    if not training:
        return rrelu(input, lower, upper)
    need_float("rrelu_with_noise", input)
    noise.copy_(where(input > 0, 1, _slopes(input, lower, upper, generator)))
    return prelu_p.bind(input, noise.clone())


# -- thresholds and shrinkage -------------------------------------------------------------------------------------------

threshold_p = piecewise(
    "threshold",
    (
        lambda x, *, at, value: np.where(x <= at, x.dtype.type(value), x),
        lambda k, x, *, at, value: k.select(x <= at, value, x),
    ),
    (
        lambda t, x, *, at, value: np.where(x <= at, t.dtype.type(0), t),
        lambda k, t, x, *, at, value: k.select(x <= at, 0.0, t),
    ),
    static=True,
)


@public("threshold")
@straight
def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """``input`` where it is above the threshold, else ``value``."""
    need_real("threshold", input)
    return _threshold(input, threshold, value)


_not_in_place = threshold


def _threshold(input: Tensor, at: Any, value: Any) -> Tensor:
    return where(input <= at, value, input) if varies(at, value) else threshold_p.bind(input, at=at, value=value)


@public("nn.functional.threshold", out=False)
def functional_threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``input`` where it is above the threshold, else ``value``."""
    if not inplace:
        return _not_in_place(input, threshold, value)
    need_real("threshold", input)
    return finish("threshold", input, _threshold(input, threshold, value), inplace)


_shrunk = (
    lambda t, x, *, by: np.where((x >= -by) & (x <= by), t.dtype.type(0), t),
    lambda k, t, x, *, by: k.select(x >= -by, k.select(x <= by, 0.0, t), t),
)
hardshrink_p = piecewise(
    "hardshrink",
    (lambda x, *, by: _shrunk[0](x, x, by=by), lambda k, x, *, by: _shrunk[1](k, x, x, by=by)),
    _shrunk,
    static=True,
    usual=({"by": 0.5},),
)
# x * 0 and not 0 in the middle: it keeps a NaN.
softshrink_p = piecewise(
    "softshrink",
    (
        lambda x, *, by: np.where(x > by, x - by, np.where(x < -by, x + by, x * 0)),
        lambda k, x, *, by: k.select(x > by, x - by, k.select(x < -by, x + by, x * 0.0)),
    ),
    _shrunk,
    static=True,
    usual=({"by": 0.5},),
)


@public("hardshrink nn.functional.hardshrink", methods="hardshrink")
@straight
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``input`` where ``|input| > lambd``, else 0."""
    need_float("hardshrink", input)
    if varies(lambd):
        return where(input.abs() <= lambd, 0, input)
    # The threshold is a number of the input's type, so that one equal to it is shrunk, in 16 bits too.
    return hardshrink_p.bind(input, by=float(np.asarray(lambd).astype(input.dtype.np)))


@public("nn.functional.softshrink _C._nn.softshrink")
@straight
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``sign(input) * max(|input| - lambd, 0)``."""
    need_float("softshrink", input)
    top = float(dt.finfo(input.dtype).max)
    if not 0 <= lambd <= top:
        raise RuntimeError(
            f"softshrink: lambda must be in range [0, {top:g}] for input dtype {input.dtype}, but found {lambd}"
        )
    if varies(lambd):
        return where(input > lambd, input - lambd, where(input < -lambd, input + lambd, input * 0))
    return softshrink_p.bind(input, by=float(lambd))


# -- hard sigmoid, hard swish -------------------------------------------------------------------------------------------

hardsigmoid_p = piecewise(
    "hardsigmoid",
    (
        lambda x: np.minimum(np.maximum(x + 3, 0), 6) / 6,
        lambda k, x: k.select(x <= -3.0, 0.0, k.select(x >= 3.0, 1.0, (x + 3.0) / 6.0)),
    ),
    (
        lambda t, x: np.where((x > -3) & (x < 3), t / 6, t.dtype.type(0)),
        lambda k, t, x: k.select(x > -3.0, k.select(x < 3.0, t / 6.0, 0.0), 0.0),
    ),
    least=0,
)
hardswish_p = smooth(
    "hardswish",
    (
        lambda x: x * (np.minimum(np.maximum(x + 3, 0), 6) / 6),
        lambda k, x: x * k.select(x <= -3.0, 0.0, k.select(x >= 3.0, 1.0, (x + 3.0) / 6.0)),
    ),
    (
        lambda x: np.where(x <= -3, x.dtype.type(0), np.where(x < 3, x / 3 + x.dtype.type(0.5), x.dtype.type(1))),
        lambda k, x: k.select(x <= -3.0, 0.0, k.select(x < 3.0, x / 3.0 + 0.5, 1.0)),
    ),
    lambda x: where((x > -3) & (x < 3), constant(1 / 3, x), 0),
    # Not t times the slope: an infinite cotangent times 0 would be NaN.
    pull=(
        lambda t, x: np.where(x <= -3, t.dtype.type(0), np.where(x < 3, t * (x / 3 + x.dtype.type(0.5)), t)),
        lambda k, t, x: k.select(x <= -3.0, 0.0, k.select(x < 3.0, t * (x / 3.0 + 0.5), t)),
    ),
    cost=1,
    least=0,
)


@public("nn.functional.hardsigmoid _C._nn.hardsigmoid")
@straight
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(input + 3, 0), 6) / 6``."""
    need_float("hardsigmoid", input)
    return finish("hardsigmoid", input, hardsigmoid_p.bind(input), inplace)


@public("nn.functional.hardswish _C._nn.hardswish")
@straight
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * min(max(input + 3, 0), 6) / 6``."""
    need_float("hardswish", input)
    return finish("hardswish", input, hardswish_p.bind(input), inplace)


in_place_function("rrelu", ",nn.functional.", rrelu)
in_place_function("threshold", ",nn.functional.", threshold)
in_place_function("hardtanh", "nn.functional.,_C._nn.", hardtanh)
in_place_function("leaky_relu", "nn.functional.,_C._nn.", leaky_relu)
for _f in (relu6, hardsigmoid, hardswish):
    in_place_function(_f.__name__, "_C._nn.", _f)

# -- samples ------------------------------------------------------------------------------------------------------------

for _n in "relu relu6 hardtanh leaky_relu hardshrink softshrink hardsigmoid hardswish rrelu".split():
    sample(f"nn.functional.{_n}", S(2, 3, low=-5.0, high=7.0), cx=False)
    sample(f"nn.functional.{_n}", S(), cx=False)
    sample(f"nn.functional.{_n}", S(0, 2), cx=False)
sample("nn.functional.hardtanh", S(4), -0.25, 0.5, cx=False)
sample("nn.functional.leaky_relu", S(4), -0.5, cx=False)
for _n in ("hardshrink", "softshrink"):
    sample(f"nn.functional.{_n}", Given([-1.5, -0.25, 0.75, 0.125], grad=True), cx=False)
sample("threshold", S(5), 0.25, -3.0, cx=False)
sample("prelu", S(2, 3, 2), S(3), cx=False)
sample("prelu", S(2, 3), S(1), cx=False)
sample("prelu", S(3), S(), cx=False)
sample("prelu", S(), S(1), cx=False)
sample("_prelu_kernel", S(2, 3), Given([[0.25, 0.5, -1.0]], grad=True), cx=False)
