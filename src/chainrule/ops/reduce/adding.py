"""How every reduction adds: pairwise or in double precision, in an order that depends on shapes and not on the layout in memory.

A view and its copy, one thread and many, give the same bits. Large arrays are added by a compiled loop (:mod:`..kernels.sums`), small
ones, and all where nothing can be compiled, by NumPy's pairwise sum of entries that lie next to each other.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ... import kernels
from ...core import dtypes as dt
from ...core.types import FLOAT_NUMS
from ...kernels.sums import ABS, FACTOR, PLAIN, SQUARE, VALID

__all__ = [
    "ABS",
    "FACTOR",
    "PLAIN",
    "SQUARE",
    "VALID",
    "WIDER",
    "add",
    "adds",
    "folded",
    "product",
    "shape_of",
    "side_by_side",
    "spreads",
    "total",
    "variance",
]

add: Any = np.add.reduce
multiply: Any = np.multiply.reduce

LARGE = 1 << 12  # elements from which the compiled loop is worth its call
F64, C128 = np.dtype(np.float64), np.dtype(np.complex128)
WIDER = {**dict.fromkeys((dt.float32.np, *dt.HALVES), F64), dt.complex64.np: C128, dt.complex32.np: C128}


def total(
    x: Any, dim: tuple[int, ...], keepdim: bool = False, *, term: str = PLAIN, mean: Any = None, wide: bool = False
) -> Any:
    """The sum of `x`, of ``|x|``, of ``(x - mean)**2`` or of what is not NaN over the negative dims `dim`; in float64 if `wide`.

    Integers and booleans are counted in int64. The last three want real numbers; `mean` has the dims of `x`, summed ones as 1.
    """
    d = x.dtype
    if d.num in FLOAT_NUMS and x.size < LARGE and term is PLAIN and not wide:
        return side_by_side(add, x, dim, keepdim)
    if d.kind in "iub":
        return add(x, axis=dim, keepdims=keepdim, dtype=np.int64)
    if d in dt.WORK and d not in dt.HALVES:  # complex numbers of 16-bit parts
        return total(x.astype(dt.WORK[d]), dim, keepdim).astype(d)
    if d.kind == "c":
        pairs = x[..., None].view(x.real.dtype)
        y = total(pairs, tuple([i - 1 for i in dim]), keepdim)
        return np.ascontiguousarray(y).view(d)[..., 0]
    yd = F64 if wide else d
    if x.size >= LARGE:
        try:
            y = kernels.sums.total(x, dim, term, mean, yd)
        except kernels.NotSupported:
            pass
        else:
            return y if keepdim else y.reshape(shape_of(x.shape, dim, False))
    a = x.astype(F64) if wide or term is SQUARE or mean is not None else x.astype(dt.WORK.get(d, d), copy=False)
    if mean is not None:
        a = a - mean
    if term is not PLAIN:
        a = np.square(a) if term is SQUARE else np.abs(a) if term is ABS else np.where(a == a, a, a.dtype.type(0))
    return np.asarray(side_by_side(add, a, dim, keepdim)).astype(yd, copy=False)


def product(x: Any, dim: tuple[int, ...], keepdim: bool = False, wide: bool = False) -> Any:
    """The product over `dim`, in double precision and rounded once, or not if `wide`; of integers and booleans in int64."""
    d = F64 if wide else x.dtype
    if not wide and (go := folded(kernels.folds.product, x, dim, keepdim)) is not None:
        return go(x)
    if d.kind in "iub":
        return multiply(x, axis=dim, keepdims=keepdim, dtype=np.int64)
    if x.size >= LARGE:
        try:
            return kernels.sums.total(x, dim, FACTOR, None, d).reshape(shape_of(x.shape, dim, keepdim))
        except kernels.NotSupported:
            pass
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(side_by_side(multiply, x, dim, keepdim, WIDER.get(x.dtype))).astype(d, copy=False)


def folded(f: Any, x: Any, dim: tuple[int, ...], keepdim: bool, *scalars: float) -> Any:
    """The compiled fold (:mod:`..kernels.folds`) for arrays like `x`, where there is one."""
    if (x.size > kernels.folds.MOST and not f.exact) or type(x) is not np.ndarray or x.dtype not in FOLDED:
        return None
    return f.at(x, dim, keepdim, *scalars)


def adds(fold: Any, body: Any, term: str) -> Any:
    """What an op of a sum over ``dim`` of real numbers asks but once of arrays like these: a fold of few, the loop of many."""

    def special(xs: list[Any], kw: dict[str, Any]) -> Any:
        x, dim, keepdim = xs[0], kw["dim"], kw["keepdim"]
        dim = dim if type(dim) is tuple else (dim,)
        if (go := folded(fold, x, dim, keepdim)) is not None or x.size < LARGE or x.dtype not in FOLDED:
            return go
        sums = kernels.sums.at(x, dim, keepdim, term)
        if sums is None:
            return None

        def quick(x: Any) -> Any:
            y = sums(x)
            return body(x, **kw) if y is None else y

        return quick

    return special


FOLDED = frozenset((dt.float32.np, dt.float64.np, *dt.HALVES))


def spreads(root: bool) -> Any:
    """The fold of a variance, or of its root."""
    return kernels.folds.deviation if root else kernels.folds.variance


def side_by_side(reduce: Any, x: Any, dim: tuple[int, ...], keepdim: bool, dtype: Any = None) -> Any:
    """NumPy's reduction of entries that are neighbours in memory, copied there if they are not: then a sum is pairwise."""
    order, axes = _last(x.ndim, dim)
    if order is None:
        return reduce(x if x.flags.c_contiguous else x.copy(), axes, dtype, None, keepdim)
    y = reduce(x.transpose(order).copy(), axes, dtype)
    return y.reshape(shape_of(x.shape, dim, True)) if keepdim else y


@lru_cache(256)
def _last(n: int, dim: tuple[int, ...]) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
    """The order of dims that puts those in `dim` last, None if they are, and where they are then."""
    dims = sorted(d % n for d in dim)
    order = (*(i for i in range(n) if i not in dims), *dims)
    return None if order == tuple(range(n)) else order, tuple(range(-len(dim), 0))


@lru_cache(1024)
def shape_of(shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    """The shape of a reduction over the negative dims `dim`."""
    n = len(shape)
    return tuple([1 if i - n in dim else s for i, s in enumerate(shape) if keepdim or i - n not in dim])


def variance(x: Any, dim: tuple[int, ...], keepdim: bool, n: Any, dof: float, root: bool) -> Any:
    """``sum(|x - mean|**2) / max(dof, 0)`` over `dim` or its square root, in two passes in double precision, rounded once."""
    d = x.dtype
    if (go := folded(spreads(root), x, dim, keepdim, max(float(dof), 0.0))) is not None:
        return go(x)
    with np.errstate(all="ignore"):
        s = _squares(x.real, dim, n) + _squares(x.imag, dim, n) if d.kind == "c" else _squares(x, dim, n)
        v = s / max(dof, 0.0)
        v = (np.sqrt(v) if root else v).astype(d if d.kind != "c" else np.finfo(d).dtype)
    return v.reshape(shape_of(x.shape, dim, keepdim))


def _squares(x: Any, dim: tuple[int, ...], n: Any) -> Any:
    """``sum((x - mean(x))**2)`` over `dim` in double precision; the summed dims are 1, or gone.

    The mean is the first entry and a mean of differences: it is as exact as the spread needs, and equal entries have none.
    """
    if x.size >= LARGE:
        first = x[tuple([slice(1) if i - x.ndim in dim else slice(None) for i in range(x.ndim)])].astype(F64, "C")
        mean = first + total(x, dim, True, mean=first, wide=True) / n
        return total(x, dim, True, term=SQUARE, mean=mean, wide=True)
    order, axes = _last(x.ndim, dim)
    a = x if order is None else x.transpose(order)
    # Sums of a few narrow numbers are exact.
    a = np.asarray(a - a[(..., *_FIRST[: len(axes)])]) if x.dtype is F64 and a.size else a.astype(F64, "C")
    if not a.flags.c_contiguous:
        a = a.copy()
    a -= add(a, axes, None, None, True) / n
    return add(np.square(a, a), axes)


_FIRST = (slice(1),) * 64
