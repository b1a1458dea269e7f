"""Classification losses: negative log-likelihood, cross entropy, margins between classes."""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import constant, wrap_dim
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.types import REAL_NUMS
from ...kernels import indexing
from ...kernels.pool import empty
from ..activation.piecewise import relu_p
from ..activation.smooth import log_sigmoid_p
from ..elementwise.select import where
from ..index.gather import gather
from ..linalg.matmul import linear
from ..reduce.adding import add, total
from ..reduce.reductions import _soft, log_softmax_p
from ..shape.in_each import all_dense, nest_like, whole_nest
from .elements import REDUCTIONS, reduced, reduction_of

# -- class indices ------------------------------------------------------------------------------------------------------


@op("check_classes", differentiable=False, sizes="n")
def check_classes_p(t: Any, *, n: int, ignore: int | None, name: str) -> Any:
    """The class indices, after checking that they lie in [0, n) or are the ignored one."""
    bad = (t < 0) | (t >= n) if ignore is None else ((t < 0) | (t >= n)) & (t != ignore)
    if bad.any():
        raise IndexError(
            f"{name}: Target {t[bad].flat[0]} is out of bounds for {n} classes (dim of input that counts classes)"
        )
    return t


def check_indices(name: str, target: Tensor) -> None:
    """Raise unless the target holds class indices."""
    if target.dtype.category != dt.INT:
        raise RuntimeError(
            f"{name}: expected scalar type Long but found {target.dtype} for target; class indices are integers, write target.long()"
        )


def picked(x: Tensor, target: Tensor, dim: int) -> Tensor:
    """``x[..., target, ...]`` along `dim`, one entry for each target; of none, still part of the graph."""
    if target.numel() == 0:
        return x.sum(dim)
    return gather(x, dim, target.unsqueeze(dim)).squeeze(dim)


# Of trailing axes: x[n, classes, ...] or x[classes], t[n, ...] or t[], k axes; what is left over n, ... if there is a sum.


@op("likelihood", batch="expand")
def likelihood_p(x: Any, t: Any, *, k: int, ignore: int, how: str, name: str) -> Any:
    """Minus the entries `t` of the class axis of `x`, 0 where t is `ignore`; their sum, or the mean of those that count."""
    axis = x.ndim - max(k, 1)
    i, keep = _targets(t, x.shape[axis], ignore, name)
    if k == 1 and x.ndim == 2:
        y = -x[np.arange(len(i)), i]
    else:
        y = -np.take_along_axis(x, np.expand_dims(i, axis), axis).squeeze(axis)
    if keep is not None:
        y = np.where(keep, y, y.dtype.type(0))
    if how == "none":
        return y
    dims = tuple(range(-k, 0))
    y = total(y, dims) if k else y
    if how == "sum":
        return y
    with np.errstate(all="ignore"):
        return (y / _counted(t, keep, k)).astype(x.dtype, copy=False)


def _likely(xs: list[Any], kw: dict[str, Any]) -> Any:
    """Of rows of classes, all of which count."""
    x, t = xs
    k, how, ignore = kw["k"], kw["how"], kw["ignore"]
    if k != 1 or x.ndim != 2 or how == "none" or not x.size or 0 <= ignore < x.shape[1] or x.dtype.num not in REAL_NUMS:
        return None
    outside = indexing.outside_of(t, 0, x.shape[1])
    if outside is None:
        return None
    rows, n = np.arange(x.shape[0]) * x.shape[1], float(x.shape[0])

    def quick(x: Any, t: Any) -> Any:
        if outside(t) != 0:
            return likelihood_p.body(x, t, **kw)
        y = add(-x.take(rows + t), 0)
        return y / n if how == "mean" else y

    return quick


likelihood_p.special = _likely


@op("likelihood_pull", batch="expand")
def likelihood_pull_p(g: Any, t: Any, *, k: int, ignore: int, how: str, name: str, old: tuple[int, ...]) -> Any:
    """The transpose of the likelihood in an `x` whose trailing axes have the sizes `old`."""
    lead = t.shape[: t.ndim - k]
    axis = len(lead) + (k > 0)
    i, keep = _targets(t, old[k > 0], ignore, name)
    out = empty(lead + old, g.dtype)
    out.fill(0)
    v = -g
    if how == "mean":
        with np.errstate(all="ignore"):
            v = (v / _counted(t, keep, k)).astype(g.dtype, copy=False)
    if how != "none":
        v = np.asarray(v).reshape(v.shape + (1,) * k)
    if keep is not None:
        v = np.where(keep, v, v.dtype.type(0))
    if k == 1 and not lead:
        out[np.arange(len(i)), i] = v
        return out
    np.put_along_axis(out, np.expand_dims(i, axis), np.expand_dims(np.broadcast_to(v, t.shape), axis), axis)
    return out


def _targets(t: Any, n: int, ignore: int, name: str) -> tuple[Any, Any]:
    """The classes, checked, and which of them count; None where all do."""
    t = t.astype(np.int64, copy=False)
    if t.size and (t.min() < 0 or t.max() >= n or 0 <= ignore < n):
        check_classes_p.body(t, n=n, ignore=ignore, name=name)
        keep = t != ignore
        if not keep.all():
            return np.where(keep, t, 0), keep
    return t, None


def _counted(t: Any, keep: Any, k: int) -> Any:
    """How many of the targets of each example count."""
    if keep is None:
        return float(prod(t.shape[t.ndim - k :]))
    return keep.sum(tuple(range(-k, 0)), dtype=np.float64) if k else keep.astype(np.float64)


likelihood_p.jvp([lambda s, y, x, t, **kw: likelihood_p(s, t, **kw), None])
likelihood_p.vjp(
    [lambda g, y, x, t, *, k, **kw: likelihood_pull_p(g, t, k=k, old=tuple(x.shape[x.ndim - k - 1 :]), **kw), None]
)
likelihood_pull_p.jvp([lambda s, y, g, t, **kw: likelihood_pull_p(s, t, **kw), None])
likelihood_pull_p.vjp([lambda c, y, g, t, *, old, **kw: likelihood_p(c, t, **kw), None])


def class_weights(weight: Tensor, target: Tensor) -> Tensor:
    """``weight[target]``."""
    return gather(weight, 0, target.reshape(-1)).reshape(target.shape)


def _check_weight(name: str, weight: Tensor | None, n: int) -> None:
    if weight is not None and tuple(weight.shape) != (n,):
        raise RuntimeError(
            f"{name}: weight tensor should be defined either for all {n} classes or no classes but got weight tensor of shape: {list(weight.shape)}"
        )


def _likelihood(
    name: str, x: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore: int, smoothing: float = 0.0
) -> Tensor:
    """Minus the log-likelihood of the targets under log-probabilities `x`, smoothed with the mean over the classes."""
    dim = 0 if x.ndim == 1 else 1
    n = x.shape[dim]
    _check_weight(name, weight, n)
    plain = weight is None and not smoothing and all_dense(x, target) and target.numel()
    if plain and reduction in ("none", "sum", "mean") and x.dtype.category == dt.FLOAT:
        return likelihood_p(x, target, k=target.ndim, ignore=ignore, how=reduction, name=name)
    if target.dtype is not dt.int64:
        target = target.to(dt.int64)
    check_classes_p.bind(target, n=n, ignore=ignore, name=name)
    keep = target != ignore
    index = where(keep, target, 0)
    w = None if weight is None else class_weights(weight, index)
    loss = -picked(x, index, dim)
    if w is not None:
        loss = loss * w
    if smoothing:
        every = x if weight is None else x * weight.reshape(n, *(1,) * (x.ndim - dim - 1))
        loss = loss * (1 - smoothing) - every.sum(dim) * (smoothing / n)
    loss = where(keep, loss, 0)
    if reduction != "mean":
        return reduced(loss, reduction)
    return loss.sum() / (keep.to(x.dtype) if w is None else where(keep, w, 0)).sum()


def _check_shapes(name: str, input: Tensor, target: Tensor) -> None:
    if input.ndim == 0:
        raise RuntimeError(f"{name}: input must have at least one dim, of classes; got a 0-dim tensor")
    s, t = tuple(input.shape), tuple(target.shape)
    want = () if len(s) == 1 else (s[0], *s[2:])
    if t == want:
        return
    if len(s) == len(t) == 1:
        raise ValueError(f"{name}: For 1D input, 1D target must have size 1, or no dim at all; got {t[0]}")
    if len(s) == len(t) == 2 and s[0] == t[0]:
        raise RuntimeError(
            f"{name}: 1D target tensor expected, multi-target not supported; got target {list(t)} for input {list(s)}"
        )
    if len(s) > 1 and (not t or t[0] != s[0]):
        raise ValueError(
            f"{name}: Expected input batch_size ({s[0]}) to match target batch_size ({t[0] if t else 'none, it is 0-dim'}); input {list(s)}, target {list(t)}"
        )
    raise RuntimeError(f"{name}: Expected target size {list(want)} for input {list(s)}, got target {list(t)}")


def _by_class_dim(f: Any, input: Tensor, target: Tensor, dim: int, **kw: Any) -> Tensor:
    """``f(input, target)`` with the classes of `input` in `dim` instead of 1; of all packed rows where it is the last of a nest."""
    d = wrap_dim(dim, input.ndim)
    soft = tuple(target.shape) == tuple(input.shape)
    if d != -1 or not whole_nest(input) or not isinstance(input.shape[-1], int):
        return f(input.movedim(d, 1), target.movedim(d, 1) if soft else target, **kw)
    want, n = tuple(input.shape[:-1]), input.shape[-1]
    if not soft and tuple(target.shape) != want:
        raise RuntimeError(
            f"{f.__name__}: Expected target size {list(want)} for input {list(input.shape)} with class_dim={dim}, got target {list(target.shape)}"
        )
    y = f(input.values().reshape(-1, n), target.values().reshape(*(-1, n) if soft else (-1,)), **kw)
    return nest_like(y, input.select(-1, 0) if n else input.sum(-1)) if kw["reduction"] == "none" else y


@public("nn.functional.nll_loss", out=False)
@functools.partial(straight, most=1 << 22)
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    *,
    class_dim: int = 1,
) -> Tensor:
    """``-weight[target] * input[target]`` for log-probabilities with classes in `class_dim`; "mean" divides by the weights."""
    r = reduction_of(reduction, size_average, reduce)
    if class_dim != 1 and input.ndim > 1:
        return _by_class_dim(nll_loss, input, target, class_dim, weight=weight, ignore_index=ignore_index, reduction=r)
    if input.ndim == 1 and tuple(target.shape) == (1,):
        # PyTorch takes one target in either form; the result has no dims in both.
        target = target.reshape(())
    _check_shapes("nll_loss", input, target)
    check_indices("nll_loss", target)
    return _likelihood("nll_loss", input, target, weight, r, ignore_index)


@public("nn.functional.cross_entropy", out=False)
@straight
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    *,
    class_dim: int = 1,
) -> Tensor:
    """``-sum_c weight[c] target[c] log_softmax(input)[c]`` with classes in `class_dim`, for class indices or probabilities.

    >>> chainrule.nn.functional.cross_entropy(chainrule.zeros(2, 4), chainrule.tensor([0, 3]))
    tensor(1.3863)
    >>> chainrule.nn.functional.cross_entropy(chainrule.zeros(2, 3, 4), chainrule.zeros(2, 3).long(), class_dim=-1)
    tensor(1.3863)
    """
    r = reduction_of(reduction, size_average, reduce)
    if class_dim != 1 and input.ndim > 1:
        return _by_class_dim(cross_entropy, input, target, class_dim, weight=weight, ignore_index=ignore_index, reduction=r,
                             label_smoothing=label_smoothing)  # fmt: skip
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if input.ndim == 0:
        raise RuntimeError("cross_entropy: input must have at least one dim, of classes; got a 0-dim tensor")
    dim = 0 if input.ndim == 1 else 1
    n = input.shape[dim]
    logp = _soft(log_softmax_p, input, dim, None)
    if tuple(input.shape) != tuple(target.shape):
        if input.ndim == 1 and tuple(target.shape) == (1,):
            target = target.reshape(())
        _check_shapes("cross_entropy", input, target)
        check_indices("cross_entropy", target)
        return _likelihood("cross_entropy", logp, target, weight, r, ignore_index, label_smoothing)
    if target.dtype.category < dt.FLOAT:
        raise RuntimeError(
            f"cross_entropy: Expected floating point type for target with class probabilities, got {target.dtype}"
        )
    if ignore_index >= 0:
        raise RuntimeError(
            f"cross_entropy: ignore_index is not supported for floating point target, got ignore_index={ignore_index}"
        )
    _check_weight("cross_entropy", weight, n)
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / n
    each = logp * target
    if weight is not None:
        each = each * weight.reshape(n, *(1,) * (input.ndim - dim - 1))
    loss = -each.sum(dim)
    return loss.sum() / loss.numel() if r == "mean" else reduced(loss, r)


@public("nn.functional.linear_cross_entropy", out=False)
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``; `options` are hints and change no value."""
    if not 1 <= input.ndim <= 2:
        raise RuntimeError(f"linear_cross_entropy: expected input with dimensionality 1 or 2, got {input.ndim}")
    if linear_weight.ndim < 2:
        raise RuntimeError(
            f"linear_cross_entropy: expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}"
        )
    k = input.shape[-1]
    if linear_weight.shape[-1] != k:
        raise RuntimeError(
            f"linear_cross_entropy: expected equal input and linear_weight last dimensions (in_features), got {k} and "
            f"{linear_weight.shape[-1]}, respectively"
        )
    out = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != out:
        raise RuntimeError(f"linear_cross_entropy: expected linear_bias shape {out}, got {tuple(linear_bias.shape)}")
    if len(out) > 1 and input.ndim == 1:
        raise RuntimeError(
            f"linear_cross_entropy: K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched "
            f"input, (N, {k}), got unbatched input with shape {tuple(input.shape)}"
        )
    shape = (*input.shape[:-1], *out)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("linear_cross_entropy: ignore_index cannot be specified when target contains probabilities")
    flat = linear(input, linear_weight.reshape(-1, k), None if linear_bias is None else linear_bias.reshape(-1))
    return cross_entropy(
        flat.reshape(*shape),
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


# -- margins between classes ----------------------------------------------------------------------------------------------


def _check_matrix(name: str, input: Tensor) -> None:
    s = tuple(input.shape)
    if len(s) > 2 or (s and s[-1] == 0):
        raise RuntimeError(
            f"{name}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(s)} for input"
        )


@public("nn.functional.multi_margin_loss", out=False)
@straight
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``sum_{j != y} weight[y] * max(0, margin - x[y] + x[j])**p / C`` for a row x of C scores and its class y."""
    name = "multi_margin_loss"
    r = reduction_of(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError(f"{name}: only p == 1 and p == 2 supported, got p={p}")
    if weight is not None and weight.ndim != 1:
        raise ValueError(f"{name}: weight must be one-dimensional, got {list(weight.shape)}")
    _check_matrix(name, input)
    x = input.reshape(1) if input.ndim == 0 else input
    n = x.shape[-1]
    lead = tuple(x.shape[:-1])
    if tuple(target.shape) != lead and not (not lead and target.numel() == 1 and target.ndim <= 1):
        raise RuntimeError(
            f"{name}: target tensor should be 1-D with size equal to input's batch size. Expected target size {list(lead)}, "
            f"but got {list(target.shape)}"
        )
    if weight is not None and weight.shape[0] != n:
        raise RuntimeError(f"{name}: inconsistent weight size, expected {n} but got {list(weight.shape)}")
    check_indices(name, target)
    t = target.reshape(*lead).to(dt.int64)
    check_classes_p.bind(t, n=n, ignore=None, name=name)
    column = t.unsqueeze(-1)
    gap = relu_p.bind(margin - gather(x, -1, column) + x)
    each = where(column == constant(np.arange(n), column), 0, gap if p == 1 else gap * gap)
    loss = each.sum(-1) / n
    if weight is not None:
        loss = loss * class_weights(weight, t)
    return reduced(loss.reshape(target.shape), r)


@public("nn.functional.multilabel_margin_loss", out=False)
@straight
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """``sum_{j in T} sum_{i not in T} max(0, 1 - x[j] + x[i]) / C``: T are the row's targets before its first -1."""
    name = "multilabel_margin_loss"
    r = reduction_of(reduction, size_average, reduce)
    _check_matrix(name, input)
    if tuple(target.shape) != tuple(input.shape) and not (
        input.ndim <= 1 and target.ndim <= 1 and target.numel() == input.numel()
    ):
        raise RuntimeError(
            f"{name}: inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    check_indices(name, target)
    x = input.reshape(1) if input.ndim == 0 else input
    n = x.shape[-1]
    t = target.reshape(*x.shape).to(dt.int64)
    check_classes_p.bind(t, n=n, ignore=-1, name=name)
    live = (t < 0).to(dt.int64).cumsum(-1) == 0
    index = where(live, t, 0)
    hit = (index.unsqueeze(-1) == constant(np.arange(n), index)) & live.unsqueeze(-1)
    other = hit.to(dt.int64).sum(-2) == 0
    gap = relu_p.bind(1 - gather(x, -1, index).unsqueeze(-1) + x.unsqueeze(-2))
    loss = where(live.unsqueeze(-1) & other.unsqueeze(-2), gap, 0).sum((-2, -1)) / n
    return reduced(loss, r)


@public("nn.functional.multilabel_soft_margin_loss", out=False)
@straight
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-mean_c weight[c] * (target[c] log s(x[c]) + (1 - target[c]) log s(-x[c]))`` with s the sigmoid, over the last dim."""
    r = reduction_of(reduction, size_average, reduce)
    loss = (target - 1) * log_sigmoid_p.bind(-input) - target * log_sigmoid_p.bind(input)
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(-1) / input.shape[-1], r)


# -- samples ------------------------------------------------------------------------------------------------------------

_rows = Given([2, 0, 3])
for _r in REDUCTIONS:
    sample("nn.functional.nll_loss", S(3, 4), _rows, reduction=_r, cx=False)
    sample("nn.functional.nll_loss", S(3, 4), _rows, S(4, low=0.5), ignore_index=0, reduction=_r, cx=False)
    sample("nn.functional.cross_entropy", S(3, 4), _rows, S(4, low=0.5), reduction=_r, label_smoothing=0.2, cx=False)
    sample("nn.functional.cross_entropy", S(3, 4), _rows, ignore_index=2, reduction=_r, label_smoothing=0.2, cx=False)
    sample("nn.functional.cross_entropy", S(2, 3), S(2, 3), S(3, low=0.5), reduction=_r, label_smoothing=0.2, cx=False)
    sample("nn.functional.multi_margin_loss", S(3, 4), _rows, 2, 0.5, S(4), reduction=_r, cx=False)
    sample(
        "nn.functional.multilabel_margin_loss", S(2, 4), Given([[2, 0, -1, 3], [1, 1, 3, -1]]), reduction=_r, cx=False
    )
    sample("nn.functional.multilabel_soft_margin_loss", S(2, 3), S(2, 3), S(3), reduction=_r, cx=False)
sample("nn.functional.nll_loss", S(4), Given(2), cx=False)
sample("nn.functional.nll_loss", S(2, 3, 2), Given([[0, 2], [1, -100]]), S(3, low=0.5), cx=False)
sample("nn.functional.cross_entropy", S(4), Given(2), cx=False)
sample("nn.functional.cross_entropy", S(2, 3, 2), S(2, 3, 2), S(3), cx=False)
sample("nn.functional.cross_entropy", Given([[-2e3, 0.0, 2e3]], grad=True), Given([0]), cx=False)
sample("nn.functional.linear_cross_entropy", S(2, 3), S(4, 3), Given([1, 3]), linear_bias=S(4), cx=False)
sample("nn.functional.linear_cross_entropy", S(2, 3), S(4, 2, 3), Given([[1, 3], [0, 0]]), cx=False)
sample("nn.functional.multi_margin_loss", S(4), Given(1), cx=False)
sample("nn.functional.multilabel_margin_loss", S(4), Given([3, -1, 0, 0]), cx=False)
sample(
    "nn.functional.multilabel_soft_margin_loss",
    Given([[-800.0, -40.0, 40.0, 800.0]], grad=True),
    Given([[1.0, 0.0, 1.0, 0.0]]),
    cx=False,
)
sample("nn.functional.nll_loss", S(3, 4), Given([0, 3, 1]), cx=False)
sample("nn.functional.nll_loss", S(3, 4, 2), Given([[0, 3], [1, 1], [2, 0]]), ignore_index=1, cx=False)
sample("nn.functional.nll_loss", S(4), Given(2), reduction="none", cx=False)
