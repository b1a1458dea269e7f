"""NumPy's compiled functions that are no ufuncs, with ops: products, einsum, interp, correlate, bincount, unique."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from .direct import product
from .functions import common, native
from .shadow import function
from .ufuncs import operate, write_out
from .value import Array, as_constant, batched, cast, from_numpy, made, to_numpy, wrap


@native(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """The product of vectors, of matrices, and of an array's last axis with the second to last of another."""
    if out is None and (z := product(a, b)) is not None:
        return z
    (x, y), d = common([a, b])
    if not x.ndim or not y.ndim:
        r = x * y
    elif (x.ndim <= 2 and y.ndim <= 2) or y.ndim == 1:
        r = PUBLIC["matmul"](x, y)
    else:
        r = PUBLIC["tensordot"](x, y, dims=([x.ndim - 1], [y.ndim - 2]))
    z = made(r, d)
    return z if out is None else write_out("dot", out, z)


@native(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    """Products along the last axis of both."""
    (x, y), d = common([a, b])
    return made(x * y if not x.ndim or not y.ndim else PUBLIC["tensordot"](x, y, dims=([x.ndim - 1], [y.ndim - 1])), d)


@native(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    """``sum(conj(a) b)`` of all elements."""
    (x, y), d = common([a, b])
    return made((x.reshape(-1).conj() * y.reshape(-1)).sum(), d)


@native(np.outer, np.linalg.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Every element of one with every element of the other."""
    (x, y), d = common([a, b])
    z = made(x.reshape(-1, 1) * y.reshape(1, -1), d)
    return z if out is None else write_out("outer", out, z)


@native(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Products summed over pairs of axes."""
    (x, y), d = common([a, b])
    if isinstance(axes, int | np.integer):
        n = int(axes)
        pairs = (list(range(x.ndim - n, x.ndim)), list(range(n)))
    else:
        pairs = tuple([list(k) if isinstance(k, list | tuple | np.ndarray) else [int(k)] for k in axes])  # type: ignore[assignment]
    return made(PUBLIC["tensordot"](x, y, dims=pairs), d)


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@native(np.einsum)
def einsum(
    *operands: Any, out: Any = None, dtype: Any = None, order: Any = "K", casting: Any = "safe", optimize: Any = False
) -> Any:
    """Sums of products, by the names of axes."""
    if isinstance(operands[0], str):
        equation, xs = operands[0], list(operands[1:])
    else:
        rest = list(operands)
        last = rest.pop() if len(rest) % 2 else None
        xs, subs = rest[::2], rest[1::2]
        word = lambda s: "".join("..." if i is Ellipsis else _LETTERS[i] for i in s)
        equation = ",".join(word(s) for s in subs) + ("" if last is None else "->" + word(last))
    ts, d = common(xs, dtype)
    y = made(PUBLIC["einsum"](equation, *ts), d)
    return y if out is None else write_out("einsum", out, y)


@native(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    """A matrix with this diagonal, or the diagonal of a matrix."""
    x = wrap(as_constant(v))
    if x.ndim not in (1, 2):
        raise ValueError("Input must be 1- or 2-d.")
    return made(PUBLIC["diag_embed"](x._t, k) if x.ndim == 1 else x._t.diagonal(k).clone(), x._d)


@native(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    """A matrix with all the elements on a diagonal."""
    x = wrap(as_constant(v))
    return made(PUBLIC["diag_embed"](x._t.reshape(-1), k), x._d)


@native(np.sinc)
def sinc(x: Any) -> Any:
    """``sin(pi x)/(pi x)``, 1 at 0."""
    a = wrap(as_constant(x))
    return wrap(PUBLIC["sinc"](a._t if a._d.kind in "fc" else cast(a._t, np.dtype(float))))


@native(np.i0)
def i0(x: Any) -> Any:
    """The modified Bessel function of order 0."""
    a = wrap(as_constant(x))
    return wrap(PUBLIC["special.i0"](a._t if a._d.kind == "f" else cast(a._t, np.dtype(float))))


def _real(x: Any, what: str) -> Any:
    """What NumPy takes as real numbers."""
    if (wrap(as_constant(x)))._d.kind == "c":
        raise TypeError(f"{what}: complex numbers cannot be cast to float64 here; pass x.real")
    return x


@native(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Piecewise linear interpolation; at a breakpoint the derivative is that of the piece to the right, outside it is zero."""
    (tx, txp), _ = common([_real(x, "interp"), _real(xp, "interp")], np.float64)
    f = wrap(as_constant(fp))
    d = np.dtype(complex if f._d.kind == "c" else float)
    tf = cast(f._t, d)
    if period is not None:
        p = abs(float(period))
        tx, txp = PUBLIC["remainder"](tx, p), PUBLIC["remainder"](txp, p)
        order = txp.detach().argsort()
        txp, tf = txp[order], tf[order]
        txp = PUBLIC["cat"]([txp[-1:] - p, txp, txp[:1] + p])
        tf = PUBLIC["cat"]([tf[-1:], tf, tf[:1]])
    n = txp.shape[0]
    if n == 1:
        y = tf[0] + tx * 0
    else:
        at = (PUBLIC["searchsorted"](txp.detach(), tx.detach(), right=True) - 1).clamp(0, n - 2)
        x0, x1, f0, f1 = txp[at], txp[at + 1], tf[at], tf[at + 1]
        y = f0 + (f1 - f0) * ((tx - x0) / (x1 - x0))
    low = tf[0] if left is None else cast(as_constant(left), d)
    high = tf[-1] if right is None else cast(as_constant(right), d)
    if period is None:
        y = PUBLIC["where"](tx < txp[0], low, PUBLIC["where"](tx > txp[-1], high, y))
    return made(cast(y, d), d)


def _correlate(a: Tensor, v: Tensor, mode: Any) -> Tensor:
    """``sum_n a[n + k] v[n]`` for all overlaps, as many as `a` has elements, or the complete ones; `a` is the longer."""
    k = v.shape[0]
    # All shifts of one operand as rows of a strided view, then one product.
    y = PUBLIC["matmul"](PUBLIC["constant_pad_nd"](a, (k - 1, k - 1)).unfold(0, k, 1), v)
    n = a.shape[0]
    mode = {0: "valid", 1: "same", 2: "full"}.get(
        mode, {"v": "valid", "s": "same", "f": "full"}.get(str(mode)[:1], mode)
    )
    if mode == "full":
        return y
    start = k - 1 if mode == "valid" else k - 1 - k // 2
    return y[start : n if mode == "valid" else start + n]


@native(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    """Products of one sequence with the conjugate of the shifts of another, summed."""
    (x, y), d = common([a, v])
    if d.kind == "c":
        y = y.conj()
    # The shorter one slides; then the shifts come in the reverse order.
    return made(_correlate(x, y, mode) if x.shape[0] >= y.shape[0] else _correlate(y, x, mode).flip(0), d)


@native(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    """The polynomial product of two sequences."""
    (x, y), d = common([np.atleast_1d(a), np.atleast_1d(v)])
    if not x.numel() or not y.numel():
        raise ValueError(f"convolve: {'a' if not x.numel() else 'v'} cannot be empty")
    if x.shape[0] < y.shape[0]:
        x, y = y, x
    return made(_correlate(x, y.flip(0), mode), d)


@native(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    """The product of polynomials."""
    return convolve(np.trim_zeros(np.atleast_1d(a1), "f"), np.trim_zeros(np.atleast_1d(a2), "f"))


@native(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """How often each number occurs, or the sum of its weights."""
    at = as_constant(x)
    if weights is None:
        return from_numpy(np.bincount(at.concrete("bincount"), minlength=minlength))
    w = cast(as_constant(_real(weights, "bincount")), np.dtype(float))
    v = at.concrete("bincount: the number of bins")
    n = max(int(v.max()) + 1 if v.size else 0, minlength)
    return wrap(PUBLIC["zeros"](n, dtype=w.dtype).index_add(0, cast(at, np.dtype(np.int64)), w))


@native(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """The places in an array of some shape of the elements with these numbers."""
    i = as_constant(indices)
    if not batched(i):
        return from_numpy(np.unravel_index(i.concrete("unravel_index"), shape, order))  # type: ignore[call-overload]
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    found = []
    for n in sizes if order == "F" else sizes[::-1]:
        found.append(wrap(PUBLIC["remainder"](i, int(n))))
        i = PUBLIC["floor_divide"](i, int(n))
    return tuple(found if order == "F" else found[::-1])


@native(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Any:
    """Whether each element is among others."""
    (x, y), _ = common([element, test_elements])
    if batched(x) or batched(y):
        r = (x.unsqueeze(-1) == y.reshape(-1)).any(-1)
        return wrap(~r if invert else r)
    return from_numpy(np.isin(x.concrete("isin"), y.concrete("isin"), assume_unique, invert, kind=kind))


@native(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The sorted different elements; the derivative is that of the first of equal ones."""
    x = wrap(as_constant(ar))
    v = x._t.concrete("unique")
    y = np.unique(v, True, return_inverse, return_counts, axis, equal_nan=equal_nan)  # type: ignore[call-overload]
    values = x.take(y[1], axis)
    rest = [from_numpy(r) for r in y[1 if return_index else 2 :]]
    return (values, *rest) if rest else values


@native(np.unique_values)
def unique_values(x: Any, /) -> Any:
    """The sorted different elements."""
    return unique(x, equal_nan=False)


@native(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    """The different elements of both."""
    return unique(np.concatenate((ar1, ar2), axis=None))


@native(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Whether elements are equal within a tolerance."""
    (x, y), _ = common([a, b])
    return wrap(PUBLIC["isclose"](x, y, rtol=float(rtol), atol=float(atol), equal_nan=equal_nan))


@native(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are equal within a tolerance."""
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


@native(np.nansum)
def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """The sum of what is not NaN."""
    x = wrap(as_constant(a))
    if x._d.kind in "fc":
        x = made(PUBLIC["where"](x._t.isnan(), Tensor(np.zeros((), x._d)), x._t), x._d)
    kw = {k: v for k, v in (("initial", initial), ("where", where)) if v is not None and v is not np._NoValue}
    return x.sum(axis=axis, dtype=dtype, out=out, keepdims=keepdims is True, **kw)


@native(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Functions by condition. Under vmap, where no example can choose for the others, each is applied everywhere and what its condition selects is taken."""
    conds = condlist if isinstance(condlist, list | tuple) else [condlist]
    a = wrap(as_constant(x))
    if not batched(a._t) and not any(batched(c._t) for c in conds if type(c) is Array):
        return function(np.piecewise)(x, condlist, funclist, *args, **kw)
    if a.ndim and not hasattr(conds[0], "shape") and not isinstance(conds[0], list):
        conds = [conds]
    masks = [cast(as_constant(c), np.dtype(bool)) for c in conds]
    if len(masks) == 1 and masks[0].ndim == a.ndim + 1:
        masks = list(masks[0].unbind(0))
    if len(masks) == len(funclist) - 1:
        masks.append(~PUBLIC["stack"](masks).any(0))
    if len(masks) != len(funclist):
        raise ValueError(
            f"with {len(masks)} condition(s), either {len(masks)} or {len(masks) + 1} functions are expected, got {len(funclist)}"
        )
    y = Tensor(np.zeros((), a._d)).expand(a.shape)
    for mask, f in zip(masks, funclist, strict=True):
        v = f(a, *args, **kw) if callable(f) else f
        y = PUBLIC["where"](mask, cast(as_constant(v), a._d), y)
    return made(y, a._d)


__all__ = ["Array", "operate", "to_numpy"]
