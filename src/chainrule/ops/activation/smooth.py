"""Smooth activations: elu and its relatives, silu, mish, gelu, softplus, log-sigmoid, soft signs, gates.

Each has its slope as an op of its own: one pass for the gradient, 16-bit floats rounded once, and no overflow or
cancellation in the tails at any order.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import wrap_dim
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.compare import clamp_p
from ..elementwise.elementary import _sigmoid, exp, km, ks, reciprocal, sigmoid, sigmoid_pull, tanh, tanh_slope
from ..elementwise.formulas import compiled, smooth
from ..elementwise.numbers import varies
from ..elementwise.parts import abs, sgn
from ..elementwise.select import where
from ..linalg.matmul import rounded_once
from ..random.generator import draw
from ..reduce.extrema import amax
from ..reduce.reductions import _soft, is_nested, log_softmax_p, softmax_p
from ..shape.slices import cat_p, slice_p
from ..special.erf import bell, plain_ndtr
from .piecewise import finish, in_place_function, need_float

# -- elu, celu, selu ----------------------------------------------------------------------------------------------------


def _elu(x: Any, *, alpha: float, scale: float, rate: float) -> Any:
    return np.where(x > 0, x * scale, np.expm1(np.minimum(x, 0) * rate) * (alpha * scale))


def _elu_slope(x: Any, *, alpha: float, scale: float, rate: float) -> Any:
    return np.where(x > 0, x.dtype.type(scale), np.exp(np.minimum(x, 0) * rate) * (alpha * scale * rate))


def _elu_curve(x: Any, *, alpha: float, scale: float, rate: float) -> Any:
    up = x > 0
    return where(up, 0, exp.bind(where(up, 0, x) * rate) * (alpha * scale * rate * rate))


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
elu_p = smooth(
    "elu",
    (
        _elu,
        lambda k, x, *, alpha, scale, rate: k.select(
            x > 0.0, x * scale, km().expm1(k, k.select(x > 0.0, 0.0, x) * rate) * (alpha * scale)
        ),
    ),
    (
        _elu_slope,
        lambda k, x, *, alpha, scale, rate: k.select(
            x > 0.0, scale, km().exp(k, k.select(x > 0.0, 0.0, x) * rate) * (alpha * scale * rate)
        ),
    ),
    _elu_curve,
    static=True,
    usual=(
        {"alpha": 1.0, "scale": 1.0, "rate": 1.0},
        {"alpha": SELU_ALPHA, "scale": SELU_SCALE, "rate": 1.0},
    ),
)


@public("nn.functional.elu", out=False)
@straight
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``input`` where positive, else ``alpha * (e**input - 1)``."""
    need_float("elu", input)
    return finish("elu", input, _elu_of(input, alpha, 1.0, 1.0), inplace)


def _elu_of(input: Tensor, alpha: Any, scale: Any, rate: Any) -> Tensor:
    if varies(alpha, scale, rate):
        low = where(input > 0, 0, input)  # no overflow where it is not looked at
        return where(input > 0, input * scale, (low * rate).expm1() * (alpha * scale))
    return elu_p.bind(input, alpha=float(alpha), scale=float(scale), rate=float(rate))


@public("_C._nn.elu")
def scaled_elu(input: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """``scale * input`` where positive, else ``scale * alpha * (e**(input_scale * input) - 1)``."""
    need_float("elu", input)
    return _elu_of(input, alpha, scale, input_scale)


@public("celu", out=False)
@straight
def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """``max(input, 0) + min(alpha * (e**(input / alpha) - 1), 0)``."""
    need_float("celu", input)
    if alpha == 0:
        raise RuntimeError("celu: alpha cannot be 0 (ZeroDivisionError)")
    return _elu_of(input, alpha, 1.0, 1.0 / alpha)


@public("nn.functional.celu", out=False)
@straight
def functional_celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``max(input, 0) + min(alpha * (e**(input / alpha) - 1), 0)``."""
    return finish("celu", input, celu(input, alpha), inplace)


@public("selu", out=False)
@straight
def selu(input: Tensor) -> Tensor:
    """elu with the alpha and the scale that keep mean 0 and variance 1."""
    need_float("selu", input)
    return elu_p.bind(input, alpha=SELU_ALPHA, scale=SELU_SCALE, rate=1.0)


@public("nn.functional.selu", out=False)
@straight
def functional_selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu with the alpha and the scale that keep mean 0 and variance 1."""
    return finish("selu", input, selu(input), inplace)


# -- softplus, log-sigmoid ------------------------------------------------------------------------------------------------


def _log_sigmoid(x: Any) -> Any:
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def sigmoid_slope(x: Any) -> Any:
    """``s(x) s(-x)``, the slope of the sigmoid s, accurate in both tails."""
    return sigmoid.bind(x) * sigmoid.bind(-x)


log_sigmoid_p = smooth(
    "log_sigmoid",
    (_log_sigmoid, lambda k, x: km().log_sigmoid(k, x)),
    (lambda x: _sigmoid(-x), lambda k, x: km().sigmoid(k, -x)),
    lambda x: -sigmoid_slope(x),
    least=0,
)
softplus_p = smooth(
    "softplus",
    (
        lambda x, *, beta, top: np.where(x * beta > top, x, _softplus(x * beta) / beta),
        lambda k, x, *, beta, top: k.select(x * beta > top, x, km().softplus(k, x * beta) / beta),
    ),
    (
        lambda x, *, beta, top: np.where(x * beta > top, x.dtype.type(1), _sigmoid(x * beta)),
        lambda k, x, *, beta, top: k.select(x * beta > top, 1.0, km().sigmoid(k, x * beta)),
    ),
    lambda x, *, beta, top: where(x * beta > top, 0, sigmoid_slope(x * beta) * beta),
    static=True,
    usual=({"beta": 1.0, "top": 20.0},),
)


@public("nn.functional.softplus _C._nn.softplus")
@straight
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + e**(beta * input)) / beta``, and ``input`` itself where ``beta * input > threshold``."""
    need_float("softplus", input)
    if varies(beta):
        a = input * beta
        return where(a > threshold, input, softplus_p.bind(where(a > threshold, 0, a), beta=1.0, top=math.inf) / beta)
    return softplus_p.bind(input, beta=float(beta), top=float(threshold))


@public("nn.functional.logsigmoid _C._nn.log_sigmoid log_sigmoid")
@straight
def logsigmoid(input: Tensor) -> Tensor:
    """``log(1 / (1 + e**-input))``, accurate in both tails."""
    need_float("logsigmoid", input)
    return log_sigmoid_p.bind(input)


# -- silu, mish -----------------------------------------------------------------------------------------------------------


def _silu_slope(x: Any) -> Any:
    if x.dtype.kind == "c":
        s = _sigmoid(x)
        return s * (1 + x * (1 - s))
    # One sum of small terms: at the minimum, near -1.28, they cancel, and the errors of two products would not.
    z, e = np.clip(x, -1000, 1000), np.exp(-np.abs(x))
    return np.where(x < 0, e * (z + 1 + e), z * e + (1 + e)) / np.square(1 + e)


def _silu_curve(x: Any) -> Any:
    s = sigmoid.bind(x)
    if x.dtype.category == dt.COMPLEX:
        return s * (1 - s) * (x * (1 - s * 2) + 2)
    # 1 - 2 s = -tanh(x/2); beyond 800 the slope of the sigmoid is 0 in every type.
    z = clamp_p.bind(x, -800.0, 800.0)
    return sigmoid_slope(x) * (2 - z * tanh.bind(z * 0.5))


def _silu(x: Any) -> Any:
    # Far out in the complex plane e**-x has no direction: NaN, as in PyTorch.
    return x * (1 / (1 + np.exp(-x))) if x.dtype.kind == "c" else x * _sigmoid(x)


INF = float("inf")
silu_p = smooth(
    "silu",
    # At -inf the limit is 0; PyTorch's product is NaN.
    (_silu, lambda k, x: k.select(x.eq(-INF), x * 0.0, km().silu(k, x))),
    (_silu_slope, lambda k, x: km().silu_derivative(k, x)),
    _silu_curve,
    least=0,
)


@public("nn.functional.silu _C._nn.silu")
@straight
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * sigmoid(input)``, real or complex."""
    if input.dtype.category < dt.FLOAT:
        need_float("silu", input)
    return finish("silu", input, silu_p.bind(input), inplace)


def _mish_slope(x: Any) -> Any:
    w = np.tanh(_softplus(x))
    d = _sigmoid(x) * (1 - w * w)
    return w + np.where(d == 0, 0, x).astype(x.dtype, copy=False) * d


def _mish_curve(x: Any) -> Any:
    s, p = sigmoid.bind(x), -log_sigmoid_p.bind(-x)
    w, z = tanh.bind(p), clamp_p.bind(x, -800.0, 800.0)
    return tanh_slope.bind(s, p) * (z * (sigmoid.bind(-x) - w * s * 2) + 2)


mish_p = smooth(
    "mish",
    (lambda x: x * np.tanh(_softplus(x)), lambda k, x: k.select(x.eq(-INF), x * 0.0, ks().mish(k, x))),
    (_mish_slope, lambda k, x: ks().mish_slope(k, x)),
    _mish_curve,
    least=0,
)


@public("nn.functional.mish _C._nn.mish")
@straight
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * tanh(softplus(input))``."""
    need_float("mish", input)
    return finish("mish", input, mish_p.bind(input), inplace)


# -- gelu -----------------------------------------------------------------------------------------------------------------

_NORMAL = 1 / math.sqrt(2 * math.pi)
_K0 = 2 * math.sqrt(2 / math.pi)
_K1 = _K0 * 0.044715


def _gelu_slope(x: Any) -> Any:
    e = np.exp(x * x * -0.5)
    return plain_ndtr(x) + np.where(e == 0, 0, x).astype(x.dtype, copy=False) * (e * _NORMAL)


def _gelu_curve(x: Any) -> Any:
    # Beyond 100 the bell is 0 in every type; the bound keeps x * x finite.
    z = clamp_p.bind(x, -100.0, 100.0)
    z2 = z * z
    return bell(z, 0.5) * ((2 - z2) * _NORMAL)


gelu_p = smooth(
    "gelu",
    (lambda x: x * plain_ndtr(x), lambda k, x: k.select(x.eq(-INF), x * 0.0, km().gelu(k, x))),
    (_gelu_slope, lambda k, x: km().gelu_derivative(k, x)),
    _gelu_curve,
    least=0,
)


def _gelu_tanh(x: Any) -> Any:
    z = np.minimum(np.maximum(x, -100), 100)
    # (1 + tanh(u)) / 2 = sigmoid(2 u), which does not cancel on the left.
    return x * _sigmoid(z * (z * z * _K1 + _K0))


def _gelu_tanh_slope(x: Any) -> Any:
    z = np.minimum(np.maximum(x, -100), 100)
    z2 = z * z
    u = z * (z2 * _K1 + _K0)
    return _sigmoid(u) * (1 + z * (_sigmoid(-u) * (z2 * (3 * _K1) + _K0)))


def _gelu_tanh_curve(x: Any) -> Any:
    z = clamp_p.bind(x, -100.0, 100.0)
    z2 = z * z
    s = sigmoid.bind(z * (z2 * _K1 + _K0))
    d = z2 * (3 * _K1) + _K0
    return s * (1 - s) * (d * 2 + z * (d * d * (1 - s * 2) + z * (6 * _K1)))


def _gelu_tanh_kernel(k: Any, x: Any) -> Any:
    return x * km().sigmoid(k, x * k.fma(x * x, _K1, _K0))


gelu_tanh_p = smooth(
    "gelu_tanh",
    (_gelu_tanh, _gelu_tanh_kernel),
    (_gelu_tanh_slope, lambda k, x: km().gelu_tanh_derivative(k, x)),
    _gelu_tanh_curve,
    least=0,
)


@public("nn.functional.gelu _C._nn.gelu")
@straight
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """``input * Phi(input)`` with the normal distribution function Phi, or its "tanh" approximation."""
    need_float("gelu", input)
    if approximate == "none":
        return gelu_p.bind(input)
    if approximate == "tanh":
        return gelu_tanh_p.bind(input)
    raise RuntimeError(f"gelu: approximate argument must be either 'none' or 'tanh', got {approximate!r}")


# -- soft signs, gates ------------------------------------------------------------------------------------------------------

softsign_p = smooth(
    "softsign",
    (lambda x: x / (1 + np.abs(x)), lambda k, x: x / (builtins.abs(x) + 1.0)),
    (
        lambda x: np.square(1 / (1 + np.abs(x))),
        lambda k, x: (1.0 / (builtins.abs(x) + 1.0)) * (1.0 / (builtins.abs(x) + 1.0)),
    ),
    lambda x: sgn.bind(x) * -2 * reciprocal.bind(abs.bind(x) + 1) ** 3,
    cost=1,
)
tanhshrink_p = smooth(
    "tanhshrink",
    (lambda x: x - np.tanh(x), lambda k, x: ks().tanhshrink(k, x)),
    (lambda x: np.square(np.tanh(x)), lambda k, x: km().tanh(k, x) * km().tanh(k, x)),
    lambda x: tanh_slope.bind(tanh.bind(x), x) * 2,
    least=0,
)


def _floating(x: Tensor) -> Tensor:
    return x if x.dtype.category >= dt.FLOAT else x.to(dt.get_default_dtype())


@public("nn.functional.softsign", out=False)
@straight
def softsign(input: Tensor) -> Tensor:
    """``input / (1 + |input|)``."""
    x = _floating(input)
    return x / (abs.bind(x) + 1) if x.dtype.category == dt.COMPLEX else softsign_p.bind(x)


@public("nn.functional.tanhshrink", out=False)
@straight
def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""
    return tanhshrink_p.bind(_floating(input))


SMALL = 1 << 12  # elements below which a copy of a half costs less than finding the loop for it
_gated = compiled("gated", lambda a, b: a * sigmoid.body(b), lambda k, a, b: a * km().sigmoid(k, b))


@op("glu")
def glu_p(x: Any, *, dim: int) -> Any:
    """``a * sigmoid(b)`` with `a` and `b` the halves of `dim`."""
    return _gate([x], {"dim": dim})(x)


def _gate(xs: list[Any], kw: dict[str, Any]) -> Any:
    x = xs[0]
    a, b = [(..., *key) for key in _keys(x.shape[kw["dim"] :])]
    if x.size >= SMALL or x.dtype not in dt.REALS:
        return lambda x: _gated(x[a], x[b])
    s = sigmoid.settled(sigmoid.direct, [x[b].copy()], {}) or sigmoid.body
    return lambda x: x[a] * s(x[b].copy())


glu_p.special = _gate


def _keys(shape: Any) -> tuple[Any, Any]:
    """The halves of the first of some dims."""
    n, rest = shape[0], (slice(None),) * (len(shape) - 1)
    return (slice(n // 2), *rest), (slice(n // 2, n), *rest)


def _halves(x: Any, dim: int) -> tuple[Any, Any]:
    old = tuple(x.shape[dim:])
    a, b = _keys(old)
    return slice_p(x, key=a, old=old), slice_p(x, key=b, old=old)


@glu_p.jvp
def _(t: Any, y: Any, x: Any, *, dim: int) -> Any:
    (ta, tb), (a, b) = _halves(t[0], dim), _halves(x, dim)
    return ta * sigmoid.bind(b) + a * sigmoid_pull.bind(tb, b)


@glu_p.vjp
def _(g: Any, y: Any, x: Any, *, dim: int) -> Any:
    a, b = (v.conj() for v in _halves(x, dim))
    n = g.shape[dim]
    return (cat_p(g * sigmoid.bind(b), sigmoid_pull.bind(g * a, b), dim=dim, ns=(n, n)),)


@public("nn.functional.glu _C._nn.glu")
@straight
@rounded_once
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """``a * sigmoid(b)`` with `a` and `b` the halves of the input along `dim`."""
    if input.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors, because input must be halved along dim")
    need_float("glu", input)
    d = wrap_dim(dim, input.ndim)
    n = input.shape[d]
    if n % 2:
        raise RuntimeError(
            f"glu: Halving dimension must be even, but dimension {d + input.ndim} of input {list(input.shape)} is size {n}"
        )
    if is_nested(input):
        return input.narrow(d, 0, n // 2) * sigmoid.bind(input.narrow(d, n // 2, n // 2))
    return glu_p.bind(input, dim=d)


# -- softmax in nn.functional -------------------------------------------------------------------------------------------------


def implicit_dim(name: str, x: Tensor, dim: int | None) -> int:
    """`dim`, or with a warning the one that PyTorch takes without."""
    if dim is not None:
        return dim
    import warnings

    warnings.warn(f"{name}: implicit dimension choice has been deprecated; pass dim=", UserWarning, stacklevel=4)
    return 0 if x.ndim in (0, 1, 3) else 1


@public("nn.functional.softmax", out=False)
@straight
def functional_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` over `dim`."""
    return _soft(softmax_p, input, implicit_dim("softmax", input, dim), dtype)


@public("nn.functional.softmin", out=False)
@straight
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """``softmax(-input)`` over `dim`."""
    return _soft(softmax_p, -input, implicit_dim("softmin", input, dim), dtype)


@public("nn.functional.log_softmax", out=False)
@straight
def functional_log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """``log(softmax(x))`` over `dim`, without underflow."""
    return _soft(log_softmax_p, input, implicit_dim("log_softmax", input, dim), dtype)


@public("_safe_softmax")
def safe_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """softmax over `dim`, with zeros instead of NaN where all entries are ``-inf``."""
    x = input if dtype is None else input.to(dtype)
    if x.dtype.category < dt.FLOAT:
        x = x.to(dt.get_default_dtype())
    if x.numel() == 0:
        return _soft(softmax_p, x, dim, None)
    empty = amax(x, dim, True) == float("-inf")
    return where(empty, 0, _soft(softmax_p, where(empty, 0, x), dim, None))


@public("_softmax")
def private_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """softmax over `dim`; with ``half_to_float`` a 16-bit input gives a float32 result."""
    return _soft(softmax_p, input, dim, dt.float32 if half_to_float else None)


@public("_log_softmax")
def private_log_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """log_softmax over `dim`; with ``half_to_float`` a 16-bit input gives a float32 result."""
    return _soft(log_softmax_p, input, dim, dt.float32 if half_to_float else None)


@op("one_hot_max", differentiable=False)
def one_hot_max_p(x: Any, *, dim: int) -> Any:
    """1 at the first largest entry along `dim`, else 0."""
    y = np.zeros_like(x)
    if x.size:
        np.put_along_axis(y, np.expand_dims(np.argmax(x, dim), dim), 1, dim)
    return y


@public("nn.functional.gumbel_softmax", out=False)
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax of ``(logits + gumbel noise) / tau``; ``hard`` gives one-hot values with the soft one's derivative."""
    need_float("gumbel_softmax", logits, "logits")
    d = logits.dtype.np

    def gumbel(rng: Any, shape: Any) -> Any:
        return np.asarray(-np.log(np.maximum(rng.standard_exponential(shape), np.finfo(np.float64).tiny))).astype(d)

    soft = _soft(softmax_p, (logits + draw("gumbel_softmax", tuple(logits.shape), gumbel)) / tau, dim, None)
    if not hard:
        return soft
    top = one_hot_max_p(soft.detach(), dim=wrap_dim(dim, soft.ndim)) if soft.ndim else soft.detach() * 0 + 1
    return top - soft.detach() + soft


in_place_function("elu", "nn.functional.", elu)
in_place_function("elu", "_C._nn.", scaled_elu)
in_place_function("celu", ",nn.functional.", celu)
in_place_function("selu", ",nn.functional.", selu)
for _f in (silu, mish, gelu):
    in_place_function(_f.__name__, "_C._nn.", _f)

# -- samples ------------------------------------------------------------------------------------------------------------

for _n in "elu celu selu softplus logsigmoid silu mish gelu softsign tanhshrink".split():
    sample(f"nn.functional.{_n}", S(2, 3, low=-4.0, high=4.0), cx=_n in ("silu", "softsign", "tanhshrink"))
    sample(f"nn.functional.{_n}", S(), cx=False)
    sample(f"nn.functional.{_n}", S(0, 2), cx=False)
    sample(f"nn.functional.{_n}", Given([-800.0, -50.0, 50.0, 800.0], grad=True), cx=False)
sample("nn.functional.gelu", S(2, 3, low=-4.0, high=4.0), approximate="tanh", cx=False)
sample("nn.functional.gelu", Given([-800.0, -50.0, 0.0, 800.0], grad=True), approximate="tanh", cx=False)
sample("nn.functional.elu", S(4), -0.5, cx=False)
sample("nn.functional.celu", S(4), 1.5, cx=False)
sample("nn.functional.softplus", S(4), 3.0, 2.0, cx=False)
sample("nn.functional.glu", S(2, 4), cx=False)
sample("nn.functional.glu", S(2, 3, 2), 0, cx=False)
for _n in ("softmax", "log_softmax", "softmin"):
    sample(f"nn.functional.{_n}", S(2, 3), dim=-1, cx=False)
    sample(f"nn.functional.{_n}", Given([[-2e3, 0.0, 2e3]], grad=True), dim=1, cx=False)
sample("_safe_softmax", S(2, 3), 0, cx=False)
sample("_softmax_backward_data", S(2, 3), S(2, 3), 1, dt.float64, cx=False)
sample("_log_softmax_backward_data", S(2, 3), S(2, 3), 1, dt.float64, cx=False)
