"""Diagonals and blocks: diag, diag_embed, block_diag, trace, kron, triangle indices."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.device import place
from ...core.primitives import clone_p
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import wrap_dim
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.views import assign
from ..elementwise.operators import mul_p
from ..elementwise.select import where
from .pad import constant_pad_nd
from .slices import cat, diagonal, undiagonal_p
from .views import reshape


@public("diag_embed", methods="diag_embed")
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices with the last dim of `input` on a diagonal of the new dims `dim1` and `dim2`, zero elsewhere.

    >>> chainrule.diag_embed(chainrule.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    if input.ndim == 0:
        raise RuntimeError("diag_embed: input must have at least 1 dim, got a 0-d tensor")
    n = input.ndim + 1
    a, b = wrap_dim(dim1, n, "dim1"), wrap_dim(dim2, n, "dim2")
    if a == b:
        raise RuntimeError(f"diag_embed: diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = input.shape[-1] + abs(offset)
    rest = iter(input.shape[:-1])
    old = tuple(size if k in (a, b) else next(rest) for k in range(-n, 0))
    return undiagonal_p(input, offset=offset, dim1=a, dim2=b, old=old)


@public("diag", methods="diag")
@straight
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The matrix with the vector `input` on a diagonal, or the diagonal of the matrix `input`."""
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        raise RuntimeError(f"diag: input must be 1D or 2D, got {input.ndim}D {list(input.shape)}")
    return _diagonal_copy(input, diagonal)


def _diagonal_copy(x: Tensor, offset: int) -> Tensor:
    return clone_p.bind(diagonal(x, offset), order="C")


@public("diagflat", methods="diagflat", out=False)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all elements of `input` on a diagonal."""
    return diag_embed(reshape(input, -1), offset)


@public("", methods="fill_diagonal_", out=False)
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write one number to the diagonal; with `wrap` it starts again below a tall matrix."""
    n, s = self.ndim, self.shape
    if n < 2:
        raise RuntimeError(f"fill_diagonal_: self must have at least 2 dimensions, got {n}")
    if n > 2 and any(k != s[0] for k in s):
        raise RuntimeError(f"fill_diagonal_: all dimensions of self must be of equal length, got {list(s)}")
    at = np.zeros(tuple(s), bool)
    k = np.arange(min(s))
    at[(k,) * n] = True
    if wrap and n == 2 and s[0] > s[1] + 1:
        rows = np.arange(s[0])
        rows = rows[rows % (s[1] + 1) < s[1]]
        at[rows, rows % (s[1] + 1)] = True
    return assign(self, where(Tensor(at), fill_value, self).to(self.dtype), "fill_diagonal_")


@public("trace", methods="trace")
@functools.partial(straight, most=1 << 22)
def trace(input: Tensor) -> Tensor:
    """``sum_i x[i, i]`` of a matrix."""
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected input to be a matrix, but got shape {list(input.shape)}")
    return diagonal(input).sum()


@public("block_diag", out=False)
def block_diag(*tensors: Any) -> Tensor:
    """The matrix with the given matrices (or rows, or numbers) on its diagonal, zero elsewhere."""
    xs = []
    for i, x in enumerate(tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"block_diag: expected tensors, but argument {i} is a {type(x).__name__}")
        if x.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {x.ndim} dimensions"
            )
        xs.append(reshape(x, (1,) * (2 - x.ndim) + tuple(x.shape)))
    if not xs:
        return Tensor(np.zeros((1, 0), dt.get_default_dtype().np))
    width, at, rows = sum(x.shape[1] for x in xs), 0, []
    for x in xs:
        n = x.shape[1]
        rows.append(constant_pad_nd(x, (at, width - at - n)))
        at += n
    return cat(rows, 0)


@public("kron", methods="kron")
@straight
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: every element of `input` times the whole of `other`."""
    n = max(input.ndim, other.ndim)
    a = (1,) * (n - input.ndim) + tuple(input.shape)
    b = (1,) * (n - other.ndim) + tuple(other.shape)
    y = mul_p.bind(reshape(input, [k for m in a for k in (m, 1)]), reshape(other, [k for m in b for k in (1, m)]))
    return reshape(y, [m * k for m, k in zip(a, b, strict=True)])


def _triangle(name: str, row: Any, col: Any, offset: Any, dtype: Any, device: Any, layout: Any, lower: bool) -> Tensor:
    if row < 0 or col < 0:
        raise RuntimeError(f"{name}: row and col must be non-negative, got row {row}, col {col}")
    if device is not None:
        place(device)
    if layout is not None and layout.name != "strided":
        raise RuntimeError(f"{name}: only layout=strided is supported, got {layout!r}")
    d = dt.int64 if dtype is None else dt.as_dtype(dtype)
    if d not in (dt.int32, dt.int64):
        raise RuntimeError(f"{name}: dtype must be int32 or int64, got {d!r}")
    i, j = np.arange(row).reshape(-1, 1), np.arange(col)
    return Tensor(np.stack(np.nonzero(j - i <= offset if lower else j - i >= offset)).astype(d.np))


@public("tril_indices", out=False)
def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
    pin_memory: Any = None,
) -> Tensor:
    """Row and column numbers of the elements on and below a diagonal, in row-major order."""
    return _triangle("tril_indices", row, col, offset, dtype, device, layout, True)


@public("triu_indices", out=False)
def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
    pin_memory: Any = None,
) -> Tensor:
    """Row and column numbers of the elements on and above a diagonal, in row-major order."""
    return _triangle("triu_indices", row, col, offset, dtype, device, layout, False)


sample("diag_embed", S(2, 3), 1, 0, 2)
sample("diag_embed", S(0))
sample("diag", S(3), -1)
sample("diag", S(3, 4), 1)
sample("diagflat", S(2, 2))
sample("trace", S(3, 4))
sample("block_diag", S(2, 3), S(2), S())
sample("kron", S(2, 3), S(4))
sample("kron", S(2, 1), S(2, 2))
