"""Finite differences: diff and gradient."""

from __future__ import annotations

from numbers import Number
from typing import Any

from ...core import dtypes as dt
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import wrap_dim
from ...core.sizes import is_ragged
from ...core.straight import straight
from ...core.tensor import Tensor
from ..shape.slices import cat, take_slice


def steps(x: Tensor, d: int) -> Tensor:
    """``x[k + 1] - x[k]`` along `d`; for booleans whether they differ."""
    n = x.shape[d]
    if n == 0:
        return x
    a, b = take_slice(x, d, slice(1, None)), take_slice(x, d, slice(None, -1))
    return a != b if x.dtype is dt.bool_ else a - b


def _check_part(name: str, part: Tensor, x: Tensor, d: int) -> None:
    if part.ndim != x.ndim:
        raise RuntimeError(
            f"diff expects prepend or append to be the same dimension as input: {name} has {part.ndim} dims, input {x.ndim}"
        )
    for i, (a, b) in enumerate(zip(part.shape, x.shape, strict=True)):
        if a != b and i - x.ndim != d:
            raise RuntimeError(
                f"diff expects the shape of tensor to prepend or append to match that of input except along the differencing dimension: {name} has "
                f"{list(part.shape)} and {list(x.shape)}"
            )


@public("diff", methods="diff")
@straight
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The `n`-th differences ``x[k + 1] - x[k]`` along `dim`, of `input` between what is prepended and appended."""
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"diff: order n must be non-negative but got {n}")
    d = wrap_dim(dim, input.ndim)
    if n == 0:
        return input.clone()
    parts = [(name, p) for name, p in (("prepend", prepend), ("input", input), ("append", append)) if p is not None]
    for name, p in parts:
        _check_part(name, p, input, d)
    x = cat([p for _, p in parts], d) if len(parts) > 1 else input
    size = x.shape[d]
    for _ in range(min(n, size.most if is_ragged(size) else size)):
        x = steps(x, d)
    return x


def _uniform(x: Tensor, d: int, h: Any, order: int) -> Tensor:
    """Central differences with spacing `h`, one-sided of the given order at both ends."""
    n = x.shape[d]

    def at(i: int, k: int = 1) -> Tensor:
        return x.narrow(d, i, k)

    middle = (at(2, n - 2) - at(0, n - 2)) / (2 * h) if n > 2 else None
    if order == 1:
        first, last = (at(1) - at(0)) / h, (at(n - 1) - at(n - 2)) / h
    else:
        first = (-1.5 * at(0) + 2 * at(1) - 0.5 * at(2)) / h
        last = (0.5 * at(n - 3) - 2 * at(n - 2) + 1.5 * at(n - 1)) / h
    return cat([first, last] if middle is None else [first, middle, last], d)


def _uneven(x: Tensor, d: int, u: Tensor, order: int) -> Tensor:
    """The derivative of the parabola through neighbours at the points `u`; one-sided of the given order at both ends."""
    n = x.shape[d]
    shape = [1] * x.ndim

    def at(i: int, k: int = 1) -> Tensor:
        return x.narrow(d, i, k)

    def sized(v: Tensor) -> Tensor:
        shape[d] = v.shape[0]
        return v.reshape(tuple(shape))

    h = sized(steps(u, -1))

    def gap(i: int, k: int = 1) -> Tensor:
        return h.narrow(d, i, k)

    middle = None
    if n > 2:
        p, q = gap(0, n - 2), gap(1, n - 2)
        middle = (
            at(0, n - 2) * (-q / (p * (p + q)))
            + at(1, n - 2) * ((q - p) / (p * q))
            + at(2, n - 2) * (p / (q * (p + q)))
        )
    if order == 1:
        first, last = (at(1) - at(0)) / gap(0), (at(n - 1) - at(n - 2)) / gap(n - 2)
    else:
        p, q = gap(0), gap(1)
        first = at(0) * (-(2 * p + q) / (p * (p + q))) + at(1) * ((p + q) / (p * q)) + at(2) * (-p / (q * (p + q)))
        p, q = gap(n - 3), gap(n - 2)
        last = (
            at(n - 3) * (q / (p * (p + q)))
            + at(n - 2) * (-(p + q) / (p * q))
            + at(n - 1) * ((2 * q + p) / (q * (p + q)))
        )
    return cat([first, last] if middle is None else [first, middle, last], d)


@public("gradient", out=False)
def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Partial derivatives of sampled values along each of `dim`, by central differences.

    `spacing` is the distance between samples, one distance a dim, or a vector of coordinates a dim; at the ends the
    differences are one-sided, of first or second order.
    """
    n = input.ndim
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient only supports edge_order=1 and edge_order=2, got {edge_order}")
    given = dim is not None
    dims = list(range(n)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    ds = [wrap_dim(d, n) for d in dims]
    if len(set(ds)) != len(ds):
        raise RuntimeError(f"gradient: dim {dims} appears multiple times in the list of dims")
    many = isinstance(spacing, list | tuple)
    if many and len(spacing) != len(ds):
        raise RuntimeError(
            f"gradient expected spacing to be unspecified, a scalar, or a list of length {len(ds)}, one entry for each of "
            f"{'dim' if given else 'the dims of input'}, but got a list of length {len(spacing)}"
        )
    hs = list(spacing) if many else [1 if spacing is None else spacing] * len(ds)
    out = []
    for d, h in zip(ds, hs, strict=True):
        m = input.shape[d] if n else 1
        if m < edge_order + 1:
            raise RuntimeError(
                f"gradient expected each dimension size of input to be at least edge_order+1 = {edge_order + 1}, got {m}"
            )
        if not isinstance(h, Tensor):
            if not isinstance(h, Number):
                raise TypeError(f"gradient expected spacing to hold numbers or tensors, got {type(h).__name__}")
            out.append(_uniform(input, d, h, edge_order))
            continue
        if h.device != input.device:
            raise RuntimeError(
                f"gradient: expected each tensor of spacing to be on the device of input, {input.device}, got one on {h.device}"
            )
        if h.ndim != 1 or h.shape[0] != m:
            raise RuntimeError(
                f"gradient expected spacing to hold {m} coordinates for dim {d + n}, got shape {list(h.shape)}"
            )
        out.append(_uneven(input, d, h, edge_order))
    return tuple(out)


# -- samples ------------------------------------------------------------------------------------------------------------

sample("diff", S(2, 4))
sample("diff", S(4, 2), 2, 0, S(1, 2), S(2, 2))
sample("diff", S(3), 5)
sample("gradient", S(3, 4))
sample("gradient", S(3, 4), spacing=(0.5, 2.0), edge_order=2)
sample("gradient", S(2, 4), spacing=(S(4, low=0.5, high=3.0),), dim=1, edge_order=2, cx=False)
sample("gradient", S(4), spacing=(S(4, low=0.5, high=3.0),), dim=0, cx=False)
