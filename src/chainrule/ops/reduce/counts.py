"""Sums in other clothes: all, any, counts, NaN-skipping sums, sum_to_size, trapezoids, covariance."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from ... import kernels
from ...core import dtypes as dt
from ...core.arguments import around, checked
from ...core.declare import op
from ...core.registry import public, signed
from ...core.samples import Given, S, sample
from ...core.shapes import constant, sizes, sizes_of, wrap_dim
from ...core.sizes import is_ragged
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.views import write_out
from ..elementwise.select import where
from ..linalg.matmul import product
from .adding import VALID, adds, folded, total
from .reductions import axes, is_nested, sum, sum_p, to_dtype, unsum_p

# -- truth ------------------------------------------------------------------------------------------------------------


@op("all", differentiable=False)
def all_p(x: Any, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    """Whether all entries over `dim` are not 0."""
    return np.logical_and.reduce(x, axis=dim, keepdims=keepdim)  # type: ignore[call-overload]


@op("any", differentiable=False)
def any_p(x: Any, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    """Whether any entry over `dim` is not 0."""
    return np.logical_or.reduce(x, axis=dim, keepdims=keepdim)  # type: ignore[call-overload]


def _truth(p: Any) -> Any:
    def form(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        n = input.ndim
        # Here, unlike in sums, an empty list of dims reduces nothing.
        dims = () if isinstance(dim, list | tuple) and not dim else axes(dim, n)
        x = input if input.dtype is dt.bool_ else input != 0
        y = p(x, dim=dims, keepdim=keepdim)
        return y.to(dt.uint8) if input.dtype is dt.uint8 else y

    def writing(form: Any) -> Any:
        def call(*args: Any, out: Any = None, **kw: Any) -> Tensor:
            y = form(*args, **kw)
            if out is None:
                return y
            if out.dtype not in (dt.bool_, dt.uint8):
                raise RuntimeError(f"{p.name} only supports bool tensor for result, got: {dt.scalar_type(out.dtype)}")
            return write_out(out, y)

        return checked(signed(functools.wraps(form)(call), form, out=True))

    form.__name__, form.__doc__ = (
        p.name,
        f"Whether {p.name} of the entries over `dim` (one, several, None: all) are not 0.",
    )
    code = straight(form, p.name)
    public("", methods=p.name, out=False)(code)
    return public(p.name, out=False)(around(code, writing))


all = _truth(all_p)
any = _truth(any_p)


@public("count_nonzero", methods="count_nonzero", out=False)
@straight
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """The number of entries over `dim` that are not 0."""
    return sum(input if input.dtype is dt.bool_ else input != 0, dim)


@op("hash_tensor", differentiable=False)
def hash_p(x: Any, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    """The exclusive or, over `dim`, of the bits of the entries as 64-bit numbers."""
    wide = x.astype(
        np.float64 if x.dtype in dt.HALVES or x.dtype.kind == "f" else np.int64 if x.dtype.kind == "i" else np.uint64
    )
    bits: Any = np.ascontiguousarray(wide).view(np.uint64).reshape(x.shape)
    return np.bitwise_xor.reduce(bits, axis=dim, keepdims=keepdim)  # type: ignore[call-overload]


@public("hash_tensor", methods="hash_tensor")
def hash_tensor(input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """The exclusive or, over `dim` or all, of the bits of the entries as 64-bit numbers; a uint64."""
    if mode != 0:
        raise RuntimeError(f"hash_tensor(): mode 0 (exclusive or) is the only one there is, got mode={mode}")
    if input.dtype.category == dt.COMPLEX:
        raise NotImplementedError(f"hash_tensor(): not implemented for complex input ({input.dtype})")
    dims = axes(dim, input.ndim)
    for d in dims:
        if input.shape[d] == 0:
            kind = IndexError if dim not in ((), None) else RuntimeError
            raise kind(
                f"hash_tensor(): Expected reduction dim {d + input.ndim} of input to have non-zero size, got {list(input.shape)}"
            )
    return hash_p(input, dim=dims, keepdim=keepdim)


# -- without NaN ------------------------------------------------------------------------------------------------------


@op("nansum", sizes="old")
def nansum_p(x: Any, *, dim: tuple[int, ...], keepdim: bool, old: tuple[int, ...]) -> Any:
    """The sum over `dim` with NaN counted as 0."""
    if (go := folded(kernels.folds.valid, x, dim, keepdim)) is not None:
        return go(x)
    return total(x, dim, keepdim, term=VALID)


nansum_p.special = adds(kernels.folds.valid, nansum_p.body, VALID)
nansum_p.jvp([lambda t, y, x, *, dim, keepdim, old: sum_p.bind(where(x != x, 0, t), dim=dim, keepdim=keepdim, old=old)])
nansum_p.vjp(
    [lambda g, y, x, *, dim, keepdim, old: where(x != x, 0, unsum_p.bind(g, dim=dim, keepdim=keepdim, old=old))]
)


@public("nansum", methods="nansum")
@straight
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over `dim` with NaN counted as 0, and without derivative."""
    if input.dtype.category == dt.COMPLEX:
        raise RuntimeError(f"nansum(): does not support complex input ({input.dtype})")
    if input.dtype.category < dt.FLOAT:
        return sum(input, dim, keepdim, dtype=dtype)
    # NaN first: as an integer it would be some number.
    if dtype is not None or is_nested(input):
        return sum(where(input != input, 0, input), dim, keepdim, dtype=dtype)
    old = sizes_of(input)
    return nansum_p.bind(input, dim=axes(dim, len(old)), keepdim=keepdim, old=old)


@public("nanmean", methods="nanmean")
@straight
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over `dim` of the entries that are not NaN."""
    if input.dtype.category < dt.FLOAT:
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype}")
    x = to_dtype(input, dtype)
    if x.dtype.np in dt.HALVES:  # rounded once
        return nanmean(x.to(dt.float32), dim, keepdim).to(x.dtype)
    nan = x != x
    return sum(where(nan, 0, x), dim, keepdim) / sum(~nan, dim, keepdim)


@public("", methods="sum_to_size", out=False)
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """The sum over the dims along which `size` would have to be expanded to the shape of `self`."""
    want = sizes(size)
    have = self.shape
    lead = len(have) - len(want)
    if lead < 0 or not _fits(have[lead:], want):
        raise RuntimeError(f"sum_to_size: size {list(want)} is not expandable to size {list(have)} of self")
    dims = [*range(lead), *(i + lead for i, n in enumerate(want) if n == 1 and have[i + lead] != 1)]
    y = sum(self, dims, True) if dims else self
    return y.reshape(want) if lead else y


def _fits(have: Any, want: Any) -> bool:
    return not [0 for a, b in zip(have, want, strict=True) if b not in (1, a)]


# -- trapezoids -------------------------------------------------------------------------------------------------------


def _strips(name: str, y: Tensor, x: Any, dx: Any, dim: int) -> Tensor:
    """Twice the area between neighbours along `dim`, put last."""
    if x is not None and dx is not None:
        raise RuntimeError(f"{name}(): pass either x= or dx=, not both")
    if y.dtype is dt.bool_ or (x is not None and x.dtype is dt.bool_):
        raise RuntimeError(f"{name}(): received a bool input for `x` or `y`, but bool is not supported")
    if y.ndim == 0:
        raise IndexError(f"{name}(): y must have at least one dimension")
    d = wrap_dim(dim, y.ndim)
    v = y.movedim(d, -1)
    n = v.shape[-1]
    if n == 0:
        pair = v
    else:
        pair = v.narrow(-1, 1, n - 1) + v.narrow(-1, 0, n - 1)
    if x is None:
        if isinstance(dx, bool):
            raise RuntimeError(f"{name}(): Currently, we only support dx as a real number, got {dx}")
        return pair * (1 if dx is None else dx)
    if x.ndim == 0:
        raise IndexError(f"{name}(): x must have at least one dimension")
    if x.ndim == 1:
        if x.shape[0] != n:
            raise RuntimeError(f"{name}(): There must be one `x` value for each sample point: {x.shape[0]} and {n}")
        u = x
    else:
        # As many dims as y, so that both mean the same by `dim`.
        u = x.reshape((1,) * (y.ndim - x.ndim) + tuple(x.shape)).movedim(d, -1)
    m = u.shape[-1]
    return pair * (u.narrow(-1, 1, m - 1) - u.narrow(-1, 0, m - 1) if m else u)


@public("trapezoid trapz", out=False)
@straight
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral of `y` along `dim` by the trapezoidal rule, over points `x` or with spacing `dx`."""
    return sum(_strips("trapezoid", y, x, dx, dim), -1) / 2.0


@public("cumulative_trapezoid", out=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The running integral of `y` along `dim` by the trapezoidal rule, over points `x` or with spacing `dx`."""
    return (_strips("cumulative_trapezoid", y, x, dx, dim).cumsum(-1) / 2.0).movedim(-1, wrap_dim(dim, y.ndim))


# -- covariance -------------------------------------------------------------------------------------------------------


def _observation_weights(name: str, w: Tensor, n: int, floating: bool) -> Tensor:
    if w.ndim > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {w.ndim}")
    if (w.dtype.category == dt.INT) == floating or w.dtype.category == dt.COMPLEX or w.dtype is dt.bool_:
        kind = "floating point" if floating else "integral"
        raise RuntimeError(f"cov(): expected {name} to have {kind} dtype but got {name} with {w.dtype}")
    if w.numel() != n:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations: {w.numel()} and {n}"
        )
    check_weights_p.bind(w, name=name)
    return w.reshape(n)


@op("check_weights", differentiable=False)
def check_weights_p(w: Any, *, name: str) -> Any:
    """`w` itself, after checking that no entry is negative."""
    if w.size and w.min() < 0:
        raise RuntimeError(f"cov(): {name} cannot be negative")
    return w


@public("cov", methods="cov", out=False)
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """``X X^H / (n - correction)`` of centred variables (rows) and observations (columns), weighted where asked."""
    if input.ndim > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got an input with {input.ndim}")
    if input.dtype is dt.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input if input.ndim == 2 else input.reshape(1, -1)
    if x.dtype.category < dt.FLOAT:
        x = x.to(dt.get_default_dtype())
    n = x.shape[1]
    w: Any = None
    if fweights is not None:
        w = _observation_weights("fweights", fweights, n, False)
    if aweights is not None:
        a = _observation_weights("aweights", aweights, n, True)
        w = a if w is None else w * a
    real = x.dtype.to_real()
    if w is None:
        mean, left, c = sum(x, 1, True) / (n or float("nan")), n - correction, x
        free = left if is_ragged(left) else constant(left if left > 0 else 0, x, real)
    else:
        total = sum(w)
        mean = sum(x * w, 1, True) / total
        used = 1 if aweights is None else sum(w * aweights) / total
        free = total - correction * used if correction else total
        free = where(free > 0, free, 0)
    if isinstance(free, Tensor) and free._interp is None and not float(free.numpy()) > 0:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations."
        )
    c = x - mean
    right = c if w is None else c * w
    y = product(c, right.transpose(0, 1).conj()) / free
    return y.squeeze()


@public("corrcoef", methods="corrcoef", out=False)
def corrcoef(input: Tensor) -> Tensor:
    """``cov_ij / sqrt(cov_ii cov_jj)``, limited to [-1, 1]."""
    if input.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.ndim}"
        )
    c = cov(input)
    if c.ndim == 0:
        return c / c
    s = c.diagonal().real.sqrt()
    y = c / s.unsqueeze(1) / s.unsqueeze(0)
    if y.dtype.category != dt.COMPLEX:
        return y.clamp(-1, 1)
    return y.real.clamp(-1, 1) + y.imag.clamp(-1, 1) * 1j


# -- samples ------------------------------------------------------------------------------------------------------------

sample("nansum", S(2, 3), 1, cx=False)
sample("nansum", S(2, 3), cx=False)
sample("nanmean", S(2, 3), 1)
sample("nanmean", S(), cx=False)
sample("sum_to_size", S(2, 3, 4), f=lambda x: x.sum_to_size(3, 1))
sample("trapezoid", S(2, 4), dim=0)
sample("trapezoid", S(2, 4), S(4))
sample("trapezoid", S(2, 4), S(2, 4), dim=0)
sample("cumulative_trapezoid", S(2, 4), dx=0.5)
sample("cumulative_trapezoid", S(3, 4), S(3), dim=0)
sample("cov", S(3, 5))
sample("cov", S(5))
sample("cov", S(3, 4), fweights=Given([1, 2, 1, 3]), aweights=S(4, low=0.5, high=1.5), correction=0, cx=False)
sample("corrcoef", S(3, 5))
