"""Extrema: max, min, argmax, argmin, aminmax.

Over a whole tensor the entries that tie share the derivative; by dim it goes to the entry whose index is returned.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from ... import kernels
from ...core import dtypes as dt
from ...core.declare import op
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import wrap_dim
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.compare import maximum, minimum
from ..index.gather import gather_p
from .adding import folded
from .empties import index_or, with_entry
from .reductions import axes, evenly, published, widen
from .scan import ValuesIndices


def ordered(name: str, x: Any, bools: bool = True) -> Tensor:
    """`x`, after checking that it is a tensor whose type has an order."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}(): argument 'input' must be a tensor, got {type(x).__name__}")
    if x.dtype.category == dt.COMPLEX:
        raise RuntimeError(f"{name}(): not implemented for complex input ({x.dtype}), which has no order")
    if not bools and x.dtype is dt.bool_:
        raise NotImplementedError(f"{name}(): not implemented for bool input; convert it to an integer type")
    return x


def check_size(name: str, shape: Any, d: int) -> None:
    """Raise unless `d`, a dim counted from the end, has entries to choose from."""
    if len(shape) and shape[d] == 0:
        raise IndexError(
            f"{name}(): Expected reduction dim {d + len(shape)} to have non-zero size, but input has shape {list(shape)}"
        )


def entries(x: Tensor, i: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The entries of `x` at `i`, one along `dim`, and `i`; with the dim dropped unless it is kept."""
    v = gather_p(x, i, dim=dim, old=tuple(x.shape))
    return (v, i) if keepdim else (v.squeeze(dim), i.squeeze(dim))


def chosen(name: str, p: Any, input: Tensor, dim: Any, keepdim: bool, **kw: Any) -> ValuesIndices:
    """Values and indices by dim, where ``p(x, dim=, **kw)`` gives the index of the entry to take, with its dim kept."""
    d = wrap_dim(dim, input.ndim)
    check_size(name, input.shape, d)
    if input.ndim == 0:
        v, i = entries(input.reshape(1), p(input.reshape(1), dim=-1, **kw), -1, False)
        return ValuesIndices(v, i)
    return ValuesIndices(*entries(input, p(input, dim=d, **kw), d, keepdim))


FILL = (
    "Where there are no entries, as in an empty component of a nest, the result is `fill`; without it that is an error."
)


def _over_dims(name: str, fn: Any) -> Any:
    fold = kernels.folds.largest if name == "amax" else kernels.folds.smallest

    def best(x: Any, *, axis: tuple[int, ...], keepdims: bool) -> Any:
        go = folded(fold, x, axis, keepdims) if x.size > kernels.folds.MOST else None
        return fn(x, axis=axis, keepdims=keepdims) if go is None else go(x)

    p = evenly(name, best)
    p.special = lambda xs, kw: folded(fold, xs[0], kw["dim"], kw["keepdim"])

    def public_form(input: Tensor, dim: Any = (), keepdim: bool = False, *, fill: Any = None) -> Tensor:
        if input.dtype.category == dt.COMPLEX:
            raise RuntimeError(f"{name}: not implemented for complex input")
        ds = axes(dim, input.ndim)
        if fill is not None:
            input = with_entry(name, input, ds, fill)
        s = input.shape
        if dim in ((), None) and 0 in s:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0; input has shape {list(s)}"
            )
        for d in ds:
            if s[d] == 0:
                raise IndexError(
                    f"{name}(): Expected reduction dim {d + len(s)} to have non-zero size (input has shape {list(s)})."
                )
        return p(input, dim=ds, keepdim=keepdim, old=tuple(s))

    public_form.__name__ = name
    what = "largest" if name == "amax" else "smallest"
    public_form.__doc__ = f"The {what} entry over `dim` (one, several or all); ties share the gradient.\n\n{FILL}"
    return p, published(name, straight(public_form, name))


amax_p, amax = _over_dims("amax", np.maximum.reduce)
amin_p, amin = _over_dims("amin", np.minimum.reduce)


@op("argmax", differentiable=False)
def argmax_p(x: Any, *, dim: int) -> Any:
    """The index of the largest entry along `dim` (the first, or the first NaN), with the dim kept."""
    return np.asarray(np.argmax(widen(x), axis=dim, keepdims=True))


argmax_p.special = lambda xs, kw: _by_method(xs[0], kw["dim"], lambda x, d: x.argmax(d))


@op("argmin", differentiable=False)
def argmin_p(x: Any, *, dim: int) -> Any:
    """The index of the smallest entry along `dim` (the first, or the first NaN), with the dim kept."""
    return np.asarray(np.argmin(widen(x), axis=dim, keepdims=True))


argmin_p.special = lambda xs, kw: _by_method(xs[0], kw["dim"], lambda x, d: x.argmin(d))


def _by_method(x: Any, dim: int, find: Any) -> Any:
    if x.dtype in dt.HALVES:
        return None
    shape = tuple([1 if d == dim % x.ndim else n for d, n in enumerate(x.shape)])
    return lambda x: np.asarray(find(x, dim)).reshape(shape)


def _arg(p: Any, what: str) -> Any:
    def form(input: Tensor, dim: int | None = None, keepdim: bool = False, *, fill: int | None = None) -> Tensor:
        x = ordered(p.name, input, bools=False)
        n = x.ndim
        if fill is not None and dim is not None and n:
            d = wrap_dim(dim, n)
            i = index_or(fill, p(with_entry(p.name, x, (d,), 0), dim=d), x, d)
            return i if keepdim else i.squeeze(d)
        if dim is None:
            if x.numel() == 0:
                raise IndexError(f"{p.name}(): Expected reduction dim to be specified for input.numel() == 0")
            i = p(x.reshape(-1), dim=-1)
            return i.reshape((1,) * n) if keepdim else i.reshape(())
        d = wrap_dim(dim, n)
        check_size(p.name, x.shape, d)
        if n == 0:
            return p(x.reshape(1), dim=-1).reshape(())
        i = p(x, dim=d)
        return i if keepdim else i.squeeze(d)

    form.__name__ = p.name
    form.__doc__ = (
        f"The index of the {what} entry along `dim`, or in the flattened tensor; the first of equals.\n\n" + FILL
    )
    return public(p.name, methods=p.name)(straight(form, p.name))


argmax = _arg(argmax_p, "largest")
argmin = _arg(argmin_p, "smallest")


def _extremum(name: str, over: Any, arg: Any, pair: Any, what: str) -> Any:
    def whole(x: Tensor) -> Tensor:
        if x.numel() == 0:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0; input has shape {list(x.shape)}"
            )
        n = x.ndim
        return over(x, dim=tuple(range(-n, 0)), keepdim=False, old=tuple(x.shape))

    def form(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        x = ordered(name, input)
        if isinstance(dim, Tensor):
            dim, other = None, dim
        if other is not None:
            if not isinstance(other, Tensor):
                raise TypeError(f"{name}(): argument 'other' must be a tensor, got {type(other).__name__}")
            return pair.bind(x, ordered(name, other))
        if dim is None:
            return whole(x)
        return chosen(name, arg, x, dim, keepdim)

    form.__name__ = name
    form.__doc__ = (
        f"The {what} entry of all; ``(values, indices)`` along `dim`; or, of two tensors, the {what} elementwise.\n\n"
        f"Entries that tie share the derivative, except by dim, where it goes to the entry at the returned index."
    )
    return public(name, methods=name)(straight(form, name))


max = _extremum("max", amax_p, argmax_p, maximum, "largest")
min = _extremum("min", amin_p, argmin_p, minimum, "smallest")

MinMax = namedtuple("MinMax", "min max")


def _aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
    """The smallest and the largest entry along `dim`, or of all: ``(min, max)``; ties share the derivative."""
    x = ordered("aminmax", input)
    n = x.ndim
    if dim is None:
        if x.numel() == 0:
            raise RuntimeError(
                f"aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity; "
                f"input has shape {list(x.shape)}"
            )
        dims = tuple(range(-n, 0))
    else:
        d = wrap_dim(dim, n)
        check_size("aminmax", x.shape, d)
        dims = (d,) if n else ()
    kw: Any = {"dim": dims, "keepdim": keepdim, "old": tuple(x.shape)}
    return MinMax(amin_p(x, **kw), amax_p(x, **kw))


_aminmax.__name__ = "aminmax"
aminmax = published("aminmax", _aminmax)


# -- samples ------------------------------------------------------------------------------------------------------------

for _n in ("amax", "amin"):
    sample(_n, S(2, 3), dim=-1, cx=False)
    sample(_n, S(2, 3, 2), dim=(0, -1), keepdim=True, cx=False)
    sample(_n, S(), 0, cx=False)
for _n in ("max", "min"):
    sample(_n, S(2, 3), cx=False)
    sample(_n, S(), cx=False)
    sample(_n, S(2, 3), 1, cx=False)
    sample(_n, S(2, 3), 0, True, cx=False)
    sample(_n, S(), 0, cx=False)
    sample(_n, S(2, 3), S(3), cx=False)
    sample(_n, Given([-1.0, 3.0, 2.0], grad=True), cx=False)
sample("aminmax", S(2, 3), cx=False)
sample("aminmax", S(2, 3), dim=0, keepdim=True, cx=False)
sample("aminmax", S(), dim=0, cx=False)
