"""``chainrule.masked``: reductions, scans and normalisations that skip the entries where a mask is False.

A masked-out entry is replaced by the identity of the operation, through `where`, so that no derivative reaches it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.payload import COMPOSED
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import constant
from ...core.tensor import Tensor
from ..elementwise.compare import maximum
from ..elementwise.parts import real
from ..elementwise.select import where
from ..linalg import norms
from ..shape.create import ones_like
from . import extrema, scan
from . import order as statistics
from . import reductions as reduce
from .reductions import axes, root, to_dtype

M = Given([[True, False, True], [False, True, True]])


def _mask(name: str, input: Tensor, mask: Tensor) -> Tensor:
    """`mask` as booleans of the shape of `input`."""
    if mask.ndim > input.ndim:
        raise IndexError(
            f"masked.{name}: expected a broadcastable mask, got mask of shape {list(mask.shape)}, which has more dimensions "
            f"than input of shape {list(input.shape)}"
        )
    if mask.layout.name != "strided":
        mask = mask.to_dense()
    return mask.to(dt.bool_).expand(*input.shape)


def _stored(name: str, input: Tensor, dim: Any, keepdim: bool, dtype: Any, mask: Tensor | None) -> Tensor | None:
    """The reduction over the stored numbers of a sparse tensor, whose mask is its pattern; None for a dense one."""
    if not COMPOSED or input.layout.name in ("strided", "jagged"):
        return None
    from ..sparse.reduce import over_stored

    return over_stored(name, to_dtype(input, dtype), dim, bool(keepdim), mask)


def _extreme(input: Tensor, sign: int) -> Any:
    if input.dtype.category == dt.FLOAT:
        return sign * math.inf
    if input.dtype.category != dt.INT:
        raise NotImplementedError(f"masked extrema: not implemented for input of {input.dtype}, which has no order")
    info = np.iinfo(input.dtype.np)
    return int(info.max if sign > 0 else info.min)


def filled(name: str, input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """`input` with `value` where the mask is False."""
    if mask is None:
        return input
    fill = value(input) if callable(value) else value
    return where(_mask(name, input, mask), input, constant(fill, input))


def lowest(input: Tensor) -> Any:
    """The identity of max."""
    return _extreme(input, -1)


def highest(input: Tensor) -> Any:
    """The identity of min."""
    return _extreme(input, 1)


def _count(name: str, input: Tensor, mask: Tensor | None, dim: Any, keepdim: bool) -> Tensor:
    inside = ones_like(input, dtype=dt.bool_) if mask is None else _mask(name, input, mask)
    return reduce.sum(inside, dim, keepdim)


def _named(name: str) -> Any:
    """Publish ``masked.name``; the function goes by its public name, though here it must not hide another."""

    def register(f: Any) -> Any:
        f.__name__ = f.__qualname__ = name
        return public(f"masked.{name}", out=False)(f)

    return register


# -- reductions -------------------------------------------------------------------------------------------------------


@_named("sum")
def masked_sum(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The sum over `dim` of the entries where `mask` holds; 0 where none does."""
    if (y := _stored("sum", input, dim, keepdim, dtype, mask)) is not None:
        return y
    return reduce.sum(filled("sum", input, mask, 0), dim, bool(keepdim), dtype=dtype)


@_named("prod")
def masked_prod(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The product over `dim` of the entries where `mask` holds; 1 where none does."""
    if (y := _stored("prod", input, dim, keepdim, dtype, mask)) is not None:
        return y
    x = to_dtype(filled("prod", input, mask, 1), dtype)
    dims = axes(dim, x.ndim)
    if not dims:
        return x.to(dt.int64) if x.dtype.category < dt.FLOAT and dtype is None else x
    for d in sorted(dims):  # from the front, so that dims counted from the end stay right
        x = reduce.prod(x, d, bool(keepdim))
    return x


def _over(name: str, p: Any, identity: Any, what: str) -> None:
    def form(
        input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
    ) -> Tensor:
        if (y := _stored(name, input, dim, keepdim, dtype, mask)) is not None:
            return y
        return to_dtype(p(filled(name, input, mask, identity), dim, bool(keepdim)), dtype)

    form.__doc__ = f"The {what} over `dim` of the entries where `mask` holds."
    _named(name)(form)


_over("amax", lambda x, d, k: extrema.amax(x, () if d is None else d, k), lowest, "largest entry")
_over("amin", lambda x, d, k: extrema.amin(x, () if d is None else d, k), highest, "smallest entry")


def _arg(name: str, f: Any, identity: Any, what: str) -> None:
    def form(
        input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
    ) -> Tensor:
        # The index comes back in the type of the input, as in PyTorch.
        return f(filled(name, input, mask, identity), dim, bool(keepdim)).to(dt.as_dtype(dtype or input.dtype))

    form.__doc__ = f"The index of the {what} entry over `dim` where `mask` holds."
    _named(name)(form)


_arg("argmax", extrema.argmax, lowest, "largest")
_arg("argmin", extrema.argmin, highest, "smallest")


@_named("mean")
def masked_mean(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The mean over `dim` of the entries where `mask` holds; NaN where none does."""
    d = dt.as_dtype(dtype or input.dtype)
    if d.category < dt.FLOAT:
        raise ValueError(f"masked.mean: the result must have a floating point or complex dtype, got {d}; pass dtype=")
    if (y := _stored("mean", input, dim, keepdim, dtype, mask)) is not None:
        return y
    total = masked_sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _count("mean", input, mask, dim, bool(keepdim))


@_named("median")
def masked_median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The lower median along `dim` of the entries where `mask` holds; NaN where none does."""
    floating = input.dtype.category == dt.FLOAT
    x = input if floating else input.to(dt.float32)
    y = statistics.nanmedian(filled("median", x, mask, math.nan), dim, keepdim).values
    if floating:
        return y
    if bool((y != y).any()):
        raise ValueError(f"masked.median: a row is masked out in full, and {input.dtype} has no NaN to say so")
    return y.to(dt.as_dtype(dtype or input.dtype))


@_named("logsumexp")
def masked_logsumexp(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """``log(sum(exp(x)))`` over `dim` of the entries where `mask` holds; -inf where none does."""
    none = -math.inf if input.dtype.category >= dt.FLOAT else lowest
    y = reduce.logsumexp(filled("logsumexp", input, mask, none), dim, bool(keepdim))
    return y.to(dt.as_dtype(dtype or input.dtype))


@_named("logaddexp")
def masked_logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """``log(exp(input) + exp(other))`` of the entries where their masks hold; -inf where neither does."""
    a = filled("logaddexp", input, input_mask, lowest)
    b = filled("logaddexp", other, other_mask, lowest)
    return a.logaddexp(b).to(dt.as_dtype(dtype or input.dtype))


@_named("norm")
def masked_norm(
    input: Tensor,
    ord: Any = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The norm of order `ord` over `dim` of the entries where `mask` holds."""
    x = filled("norm", input, mask, math.inf if ord == -math.inf else 0)
    return norms.vector_norm(x, 2.0 if ord is None else ord, dim, bool(keepdim), dtype=dtype)


def _spread(
    name: str, input: Tensor, dim: Any, unbiased: Any, correction: Any, keepdim: bool, dtype: Any, mask: Tensor | None
) -> Tensor:
    """The masked variance, real."""
    if unbiased is not None and correction is not None:
        raise AssertionError(f"masked.{name}: Only one of unbiased and correction may be given")
    correction = (1 if unbiased is None else int(unbiased)) if correction is None else correction
    d = dt.as_dtype(dtype or input.dtype)
    x = input.to(d if d.category >= dt.FLOAT else dt.float32)
    n = _count(name, x, mask, dim, True)
    c = x - masked_sum(x, dim, keepdim=True, mask=mask) / n
    if mask is not None:
        c = where(_mask(name, x, mask), c, 0)  # before the square: what is masked out may be infinite
    total = reduce.sum(real(c * c.conj()), dim, keepdim)
    free = (n.reshape(total.shape) - correction).clamp(min=0)
    return total / free


@_named("var")
def masked_var(
    input: Tensor,
    dim: Any = None,
    unbiased: Any = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """``sum(|x - mean|**2) / (n - correction)`` over `dim` of the n entries where `mask` holds; NaN where none does."""
    v = _spread("var", input, dim, unbiased, correction, bool(keepdim), dtype, mask)
    return v.to(_var_dtype(input, dtype))


@_named("std")
def masked_std(
    input: Tensor,
    dim: Any = None,
    unbiased: Any = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The square root of the masked variance; its derivative where it is 0 is 0."""
    v = _spread("std", input, dim, unbiased, correction, bool(keepdim), dtype, mask)
    return root(v).to(_var_dtype(input, dtype))


def _var_dtype(input: Tensor, dtype: Any) -> dt.DType:
    d = dt.as_dtype(dtype or input.dtype)
    return d if d.category >= dt.FLOAT or dtype is not None else dt.float32


# -- scans and normalisations -----------------------------------------------------------------------------------------


def _along(name: str, f: Any, identity: Any, what: str, integers: bool = False) -> None:
    def form(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
        d = dt.as_dtype(dtype or input.dtype)
        y = f(filled(name, input, mask, identity), dim, dtype=d if integers or d.category >= dt.FLOAT else None)
        return y.to(d) if integers else y

    form.__doc__ = f"{what} along `dim`, of the entries where `mask` holds."
    _named(name)(form)


_along("cumsum", scan.cumsum, 0, "Running sums", True)
_along("cumprod", scan.cumprod, 1, "Running products", True)
_along("softmax", reduce.softmax, lowest, "``exp(x) / sum(exp(x))``")
_along("log_softmax", reduce.log_softmax, lowest, "``x - log(sum(exp(x)))``")
_along("softmin", lambda x, dim, dtype: reduce.softmax(-x, dim, dtype), highest, "``exp(-x) / sum(exp(-x))``")


@_named("normalize")
def masked_normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """``x / max(|x|, eps)`` along `dim`, the norm of order `ord` taken over the entries where `mask` holds."""
    n = masked_norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return filled("normalize", input, mask, 0) / maximum.bind(n, constant(eps, n))


# -- samples ------------------------------------------------------------------------------------------------------------

for _n in ("sum", "prod", "mean", "amax", "amin", "logsumexp", "norm", "var", "std", "median"):
    _cx = _n not in ("amax", "amin", "median")
    sample(f"masked.{_n}", S(2, 3), dim=1, mask=M, cx=_cx)
    sample(f"masked.{_n}", S(2, 3), dim=0, cx=_cx)
for _n in ("cumsum", "cumprod", "softmax", "softmin"):
    sample(f"masked.{_n}", S(2, 3), 1, mask=M, cx=_n[:3] == "cum")
sample("masked.log_softmax", S(2, 3), 1, cx=False)
sample("masked.norm", S(2, 3), -math.inf, 1, mask=M, cx=False)
sample("masked.normalize", S(2, 3), 2.0, 1, mask=M)
sample("masked.std", S(2, 3), mask=M, correction=0, keepdim=True)
