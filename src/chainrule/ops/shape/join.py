"""Tensors put together from others and taken apart: stacks, splits, repeats, grids, products of sets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.dispatch import innermost
from ...core.primitives import clone_p, expand_p
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import constant, sizes, wrap_dim
from ...core.sizes import SEEN, is_ragged
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.power import pow_p
from ..index.rows import take_rows_p
from .slices import cat, chunk, flip, narrow, split, split_with_sizes, stack, take_slice
from .views import expand, reshape, transpose

# -- at least so many dims ------------------------------------------------------------------------------------------------


def _each(f: Any, tensors: tuple[Any, ...]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return f(tensors[0])
    xs = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    return tuple(f(x) for x in xs)


def _one(x: Tensor) -> Tensor:
    return x if x.ndim else reshape(x, 1)


def _two(x: Tensor) -> Tensor:
    return x if x.ndim >= 2 else reshape(x, 1, -1) if x.ndim and x.numel() else reshape(x, (1, *_one(x).shape))


def _three(x: Tensor) -> Tensor:
    return x if x.ndim >= 3 else reshape(x, *x.shape, 1) if x.ndim == 2 else reshape(x, (1, *_one(x).shape, 1))


@public("atleast_1d", out=False)
def atleast_1d(*tensors: Any) -> Any:
    """0-d tensors as vectors of one element."""
    return _each(_one, tensors)


@public("atleast_2d", out=False)
def atleast_2d(*tensors: Any) -> Any:
    """Numbers and vectors as matrices of one row."""
    return _each(_two, tensors)


@public("atleast_3d", out=False)
def atleast_3d(*tensors: Any) -> Any:
    """Numbers and vectors as ``(1, n, 1)``, matrices as ``(m, n, 1)``."""
    return _each(_three, tensors)


# -- stacks -----------------------------------------------------------------------------------------------------------


def _some(name: str, tensors: Any) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    xs = list(tensors)
    if not xs:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return xs


@public("hstack")
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along dim 1, vectors along dim 0."""
    xs = [_one(x) for x in _some("hstack", tensors)]
    return cat(xs, 0 if xs[0].ndim == 1 else 1)


@public("vstack row_stack")
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along dim 0, vectors as rows."""
    return cat([_two(x) for x in _some("vstack", tensors)], 0)


@public("dstack")
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along dim 2."""
    return cat([_three(x) for x in _some("dstack", tensors)], 2)


@public("column_stack")
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Vectors as columns, joined along dim 1."""
    return hstack([x if x.ndim > 1 else reshape(x, (x.numel(), 1)) for x in _some("column_stack", tensors)])


@public("_chunk_cat")
def _chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> Tensor:
    """Each tensor cut along `dim` in `num_chunks` (padded with zeros) and flattened behind it, then joined."""
    from .pad import constant_pad_nd

    xs = _some("_chunk_cat", tensors)
    if num_chunks < 1:
        raise RuntimeError(f"_chunk_cat expects positive num_chunks, got {num_chunks}")
    parts = []
    for x in xs:
        if not x.numel():
            raise RuntimeError(f"_chunk_cat expects non-empty tensors, got one of shape {list(x.shape)}")
        if dim >= x.ndim:
            raise RuntimeError(
                f"_chunk_cat expects dim < ndim for all input tensors, got dim {dim} and a tensor of shape {list(x.shape)}"
            )
        d = wrap_dim(dim, x.ndim)
        at = d + x.ndim
        lead, n = tuple(x.shape[:at]), x.shape[at]
        size = -(-n // num_chunks)
        if size * num_chunks != n:
            x = constant_pad_nd(x, (0, 0) * (-d - 1) + (0, size * num_chunks - n))
        parts.append(reshape(x, *lead, num_chunks, size * math.prod(x.shape[at + 1 :])))
    return cat(parts, -1)


# -- splits -----------------------------------------------------------------------------------------------------------


@public("tensor_split", methods="tensor_split", out=False)
def tensor_split(
    input: Tensor,
    indices_or_sections: Any = None,
    dim: int = 0,
    *,
    indices: Any = None,
    sections: Any = None,
    tensor_indices_or_sections: Any = None,
) -> tuple[Tensor, ...]:
    """Pieces of `dim`: so many nearly equal ones, or cut at the listed indices."""
    where: Any = next(
        (v for v in (indices_or_sections, indices, sections, tensor_indices_or_sections) if v is not None), None
    )
    if input.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = wrap_dim(dim, input.ndim)
    n = input.shape[d]
    if isinstance(where, Tensor):
        if where.dtype is not dt.int64:
            raise RuntimeError(
                f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {dt.scalar_type(where.dtype)}"
            )
        if where.ndim > 1:
            raise RuntimeError(
                f"tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got {where.ndim} dims"
            )
        where = where.tolist()
    if isinstance(where, int):
        if where <= 0:
            raise RuntimeError(f"tensor_split: number of sections must be larger than 0, got {where}")
        cuts = list(itertools.accumulate([(n + where - 1 - i) // where for i in range(where)]))[:-1]
    else:
        cuts = [i if is_ragged(i) else int(i) for i in where]
    bounds = [0, *cuts, n]
    out = []
    for a, b in itertools.pairwise(bounds):
        if is_ragged(n):
            out.append(take_slice(input, d, slice(a, b)))
            continue
        a, b, _ = slice(a, b).indices(n)
        out.append(narrow(input, d, a, max(b - a, 0)))
    return tuple(out)


def _axis_split(name: str, least: int, axis: int, x: Tensor, where: Any) -> tuple[Tensor, ...]:
    if x.ndim < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension{'s' * (least > 1)}, but got a tensor with {x.ndim} dimensions!"
        )
    if isinstance(where, int):
        if where <= 0 or x.shape[axis] % where:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {axis}, but the size of the dimension {x.shape[axis]} is not divisible "
                f"by the split_size {where}!"
            )
    elif not isinstance(where, list | tuple):
        raise TypeError(f"{name}: indices_or_sections must be an int or a tuple of ints, got {type(where).__name__}")
    return tensor_split(x, where, axis)


def _pick(*choices: Any) -> Any:
    return next((c for c in choices if c is not None), None)


@public("hsplit", methods="hsplit", out=False)
def hsplit(
    input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None
) -> tuple[Tensor, ...]:
    """Equal pieces of dim 1 (of dim 0 for vectors), or cut at indices."""
    return _axis_split("hsplit", 1, 0 if input.ndim == 1 else 1, input, _pick(indices_or_sections, indices, sections))


@public("vsplit", methods="vsplit", out=False)
def vsplit(
    input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None
) -> tuple[Tensor, ...]:
    """Equal pieces of dim 0, or cut at indices."""
    return _axis_split("vsplit", 2, 0, input, _pick(indices_or_sections, indices, sections))


@public("dsplit", methods="dsplit", out=False)
def dsplit(
    input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None
) -> tuple[Tensor, ...]:
    """Equal pieces of dim 2, or cut at indices."""
    return _axis_split("dsplit", 3, 2, input, _pick(indices_or_sections, indices, sections))


@public("unsafe_split", methods="unsafe_split", out=False)
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """:func:`split`; here views are always safe."""
    return split(input, split_size, dim)


@public("unsafe_split_with_sizes", methods="unsafe_split_with_sizes", out=False)
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """:func:`split_with_sizes`; here views are always safe."""
    return split_with_sizes(input, split_sizes, dim)


@public("unsafe_chunk", methods="unsafe_chunk", out=False)
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """:func:`chunk`; here views are always safe."""
    return chunk(input, chunks, dim)


# -- repeats ----------------------------------------------------------------------------------------------------------


@public("", methods="repeat", out=False)
def repeat(self: Tensor, *sizes_: Any, repeats: Any = None) -> Tensor:
    """`self` laid side by side, so many times along each dim.

    >>> chainrule.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    times = sizes(sizes_ if repeats is None else (repeats,), "repeats")
    if len(times) < self.ndim:
        raise RuntimeError(
            f"repeat: number of dimensions of repeat dims ({len(times)}: {list(times)}) can not be smaller than number of dimensions of tensor ({self.ndim})"
        )
    if any(k < 0 for k in times):
        raise RuntimeError(f"repeat: repeats must be non-negative, got {list(times)}")
    if SEEN and times and times[0] != 1 and len(times) == self.ndim and hasattr(self.shape[0], "each"):
        n = int(self.shape[0])  # the components of a nested tensor, again and again
        return self[constant(np.tile(np.arange(n), times[0]), self, dt.int64)].repeat(1, *times[1:])
    have = (1,) * (len(times) - self.ndim) + tuple(self.shape)
    if all(k == 1 for k in times):
        return clone_p.bind(reshape(self, have), order="C")
    x = reshape(self, [k for n in have for k in (1, n)])
    wide = tuple(k for r, n in zip(times, have, strict=True) for k in (r, n))
    return _fresh(
        reshape(expand_p(x, shape=wide, old=tuple(x.shape)), [r * n for r, n in zip(times, have, strict=True)]), self
    )


def _fresh(y: Tensor, x: Tensor) -> Tensor:
    """`y`, copied if it still shares the memory of `x`."""
    a, b = innermost(x), innermost(y)
    return clone_p.bind(y, order="C") if type(a) is np.ndarray and np.may_share_memory(a, b) else y


@public("tile", methods="tile", out=False)
def tile(input: Tensor, *dims: Any) -> Tensor:
    """`input` laid side by side; missing leading counts are 1."""
    times = sizes(dims, "dims")
    return repeat(input, (1,) * (input.ndim - len(times)) + times)


@public("repeat_interleave", methods="repeat_interleave", out=False)
@straight
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each entry of `dim` (of the flattened tensor without one) repeated, all equally often or each by its own count.

    ``repeat_interleave(counts)`` alone gives the indices: ``[0] * counts[0] + [1] * counts[1] + ...``.
    """
    if repeats is None:
        return _entry_numbers(input, output_size)
    x = input
    if dim is None:
        x, dim = reshape(input, -1), 0
    d = wrap_dim(dim, x.ndim)
    if not x.ndim:
        x, d = reshape(x, 1), -1
    n = x.shape[d]
    if isinstance(repeats, list | tuple):
        repeats = constant(repeats, x, dt.int64)
    if isinstance(repeats, Tensor) and repeats.ndim == 1 and repeats.shape[0] != 1:
        if repeats.shape[0] != n:
            raise RuntimeError(
                f"repeat_interleave: repeats must have the same size as input along dim, but got "
                f"repeats.size(0) = {repeats.shape[0]} and input.size({dim}) = {n}"
            )
        return take_rows_p(x, _entry_numbers(repeats, output_size), r=-d - 1, s=1, n=n)
    if isinstance(repeats, Tensor):
        if repeats.ndim > 1:
            raise RuntimeError(f"repeat_interleave: repeats must be 0-dim or 1-dim tensor, got {repeats.ndim} dims")
        _check_counts(repeats)
        repeats = repeats.item()
    if repeats < 0:
        raise RuntimeError(f"repeat_interleave: repeats has to be non-negative, got {repeats}")
    if output_size is not None and output_size != n * repeats:
        raise RuntimeError(
            f"repeat_interleave: allocated size does not match required size: output_size {output_size}, needed {n * repeats}"
        )
    s, at = tuple(x.shape), d + x.ndim
    if SEEN and hasattr(n, "each"):  # the components of a nested tensor, each several times
        return x[constant(np.repeat(np.arange(int(n)), repeats), x, dt.int64)]
    y = expand(reshape(x, *s[: at + 1], 1, *s[at + 1 :]), *s[: at + 1], repeats, *s[at + 1 :])
    return _fresh(reshape(y, *s[:at], n * repeats, *s[at + 1 :]), input)


def _check_counts(counts: Tensor) -> None:
    if counts.dtype not in (dt.int32, dt.int64):
        raise RuntimeError(f"repeat_interleave: repeats has to be Long or Int tensor, got {counts.dtype}")


def _entry_numbers(counts: Tensor, output_size: int | None) -> Tensor:
    if counts.ndim != 1:
        raise RuntimeError(f"repeat_interleave only accepts 1D vectors as repeat, got {counts.ndim} dims")
    _check_counts(counts)
    return entry_numbers_p(counts, total=output_size)


@op("entry_numbers", differentiable=False)
def entry_numbers_p(counts: Any, *, total: int | None) -> Any:
    """``[0] * counts[0] + [1] * counts[1] + ...`` along the last axis; all counts must add up to one total."""
    if (counts < 0).any():
        raise RuntimeError("repeat_interleave: repeats can not be negative")
    sums = np.add.reduce(counts, axis=-1, dtype=np.int64)
    want = total if total is not None else int(sums.flat[0]) if sums.size else 0
    if (sums != want).any():
        raise RuntimeError(
            f"repeat_interleave: repeats add up to {np.unique(sums).tolist()}, expected {want} (output_size, and under vmap the size of every example)"
        )
    lead, n = counts.shape[:-1], counts.shape[-1]
    flat = np.repeat(np.tile(np.arange(n, dtype=counts.dtype), math.prod(lead)), counts.reshape(-1))
    return flat.reshape((*lead, want))


# -- turns, grids, products of sets -----------------------------------------------------------------------------------


@public("rot90", methods="rot90", out=False)
@straight
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turned by k quarter turns from ``dims[0]`` towards ``dims[1]``."""
    n = input.ndim
    if len(dims) != 2:
        raise RuntimeError(f"rot90: expected total rotation dims == 2, but got dims = {len(dims)}")
    if n < 2:
        raise RuntimeError(f"rot90: expected total dims >= 2, but got total dims = {n}")
    a, b = wrap_dim(dims[0], n, "dims"), wrap_dim(dims[1], n, "dims")
    if a == b:
        raise RuntimeError(
            f"rot90: expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    k %= 4
    if k == 1:
        return transpose(flip(input, b), a, b)
    if k == 2:
        return flip(input, a, b)
    if k == 3:
        return transpose(flip(input, a), a, b)
    return clone_p.bind(input, order="C")


@public("meshgrid", out=False)
@straight
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Grids of coordinates: tensor i varies along dim i ("ij"), with the first two exchanged for "xy"."""
    xs = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else list(tensors)
    if not xs:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for i, x in enumerate(xs):
        if x.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {list(x.shape)} at position {i}"
            )
        if x.dtype is not xs[0].dtype:
            raise RuntimeError(f"meshgrid expects all tensors to have the same dtype, got {xs[0].dtype} and {x.dtype}")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and len(xs) >= 2
    if swap:
        xs[0], xs[1] = xs[1], xs[0]
    shape = [x.numel() for x in xs]
    grids = [
        expand(reshape(x, [n if k == i else 1 for k in range(len(xs))]), *shape)
        for i, (x, n) in enumerate(zip(xs, shape, strict=True))
    ]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@public("cartesian_prod", out=False)
def cartesian_prod(*tensors: Any) -> Tensor:
    """All tuples with one element of each vector, as rows."""
    xs = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else list(tensors)
    for i, x in enumerate(xs):
        if x.ndim != 1:
            raise RuntimeError(f"cartesian_prod: expect a 1D vector, but got shape {list(x.shape)} at position {i}")
    if len(xs) == 1:
        return xs[0]
    return reshape(stack(meshgrid(xs), -1), (math.prod(x.shape[0] for x in xs), len(xs)))


@public("combinations", out=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All ways to take r elements of a vector, as rows in the order of :mod:`itertools`."""
    if input.ndim != 1:
        raise RuntimeError(f"combinations: expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"combinations: expect a non-negative number, but got {r}")
    n = input.shape[0]
    if r == 0:
        return constant(np.zeros(0), input)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(n), r)), np.int64).reshape(-1, r)
    return take_rows_p(input, Tensor(rows), r=0, s=2, n=n)


@public("vander", out=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of a vector as columns: ``x^(N-1), ..., x, 1``, or the other way round."""
    if x.ndim != 1:
        raise RuntimeError(f"vander: x must be a one-dimensional tensor, got shape {list(x.shape)}")
    n = x.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError(f"vander: N must be non-negative, got {n}")
    if not x.dtype.category >= dt.FLOAT:
        x = x.to(dt.int64)
    e = np.arange(n) if increasing else np.arange(n)[::-1]
    return pow_p.bind(reshape(x, (x.shape[0], 1)), Tensor(e.astype(np.empty(0, x.dtype.np).real.dtype)))


sample("atleast_2d", S(3))
sample("atleast_3d", S(), S(2, 3))
sample("hstack", [S(2, 3), S(2, 1)])
sample("vstack", [S(3), S(2, 3)])
sample("dstack", [S(3), S(3)])
sample("column_stack", [S(3), S(3, 2), S(3)])
sample("tensor_split", S(7, 2), 3)
sample("tensor_split", S(5), (1, -1, 7))
sample("hsplit", S(2, 4), 2)
sample("Tensor.repeat", S(2, 1), 2, 1, 3)
sample("Tensor.repeat", S(2), 0, 2)
sample("tile", S(2, 3), (2,))
sample("repeat_interleave", S(2, 3), 2, 1)
sample("repeat_interleave", S(2, 3), Given([2, 0, 1]), 1)
sample("repeat_interleave", S(2, 2), 3)
sample("rot90", S(2, 3), 1)
sample("rot90", S(2, 3), -1, (1, 0))
sample("meshgrid", S(2), S(3), indexing="xy")
sample("cartesian_prod", S(2), S(3))
sample("combinations", S(4), 2)
sample("combinations", S(3), 3, True)
sample("vander", Given([0.0, 1.5, -2.0], grad=True), 4)
