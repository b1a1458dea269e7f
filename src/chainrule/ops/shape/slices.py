"""Parts of a tensor and their transposes: slices, narrow, split, diagonals; joining; another order of the entries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.device import channels_last, channels_last_3d
from ...core.dispatch import innermost
from ...core.primitives import alias, alias_p, clone_p, expand_p, permute_p, reshape_p  # noqa: F401
from ...core.registry import public
from ...core.remembered_views import viewing
from ...core.samples import S, sample
from ...core.shapes import sizes, wrap_dim, wrap_dims, zeros
from ...core.sizes import SEEN, is_ragged
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.views import write_out
from ...kernels.copies import contiguous as copied
from ...kernels.pool import MIN_BYTES, empty
from .in_each import all_dense, same_size
from .views import named, reshape

# -- primitives: reshape, permute, expand are in core/primitives.py ---------------------------------------------------


def _zeros_array(shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros, if there are many in pooled memory."""
    out = empty(shape, dtype)
    out.fill(0)
    return out


@op("slice", view=True, sizes="key old", linear="each")
def slice_p(x: Any, *, key: tuple[Any, ...], old: tuple[int, ...]) -> Any:
    """Basic indexing of the last axes, of sizes `old`: an int or a slice each."""
    return x[(..., *key)]


def _sliced(xs: list[Any], kw: dict[str, Any]) -> Any:
    key = (..., *kw["key"])
    return lambda x: x[key]


slice_p.special = _sliced
slice_p.vjp([lambda g, y, x, *, key, old: unslice_p(g, key=key, old=old)])


@op("unslice", sizes="key old", linear="each", moves=True)
def unslice_p(g: Any, *, key: tuple[Any, ...], old: tuple[int, ...]) -> Any:
    """Zeros of sizes `old` in the last axes, with `g` at ``[key]``: the transpose of slicing."""
    k = sum(isinstance(i, slice) for i in key)
    out = _zeros_array(g.shape[: g.ndim - k] + old, g.dtype)
    out[(..., *key)] = g
    return out


unslice_p.vjp([lambda g, y, x, *, key, old: slice_p(g, key=key, old=old)])


@op("diagonal", view=True, sizes="old", linear="each")
def diagonal_p(x: Any, *, offset: int, dim1: int, dim2: int, old: tuple[int, ...]) -> Any:
    """The diagonal of two axes of a tensor of sizes `old`, put last."""
    d = x.diagonal(offset, dim1, dim2)
    d.flags.writeable = x.flags.writeable
    return d


@op("undiagonal", sizes="old", linear="each", moves=True)
def undiagonal_p(g: Any, *, offset: int, dim1: int, dim2: int, old: tuple[int, ...]) -> Any:
    """Zeros of sizes `old` with `g` on a diagonal: the transpose of diagonal."""
    out = np.zeros(g.shape[: g.ndim - len(old) + 1] + old, g.dtype)
    d = out.diagonal(offset, dim1, dim2)
    d.flags.writeable = True
    d[...] = g
    return out


diagonal_p.vjp([lambda g, y, x, **kw: undiagonal_p(g, **kw)])
undiagonal_p.vjp([lambda g, y, x, **kw: diagonal_p(g, **kw)])


@op("flip", linear="each", moves=True)
def flip_p(x: Any, *, dims: tuple[int, ...]) -> Any:
    """The order of entries along `dims` reversed."""
    key = [slice(None)] * x.ndim
    for d in dims:
        key[d] = slice(None, None, -1)
    return copied(x[tuple(key)])


def _flipped(xs: list[Any], kw: dict[str, Any]) -> Any:
    dims = kw["dims"]
    key = tuple([slice(None, None, -1) if d - xs[0].ndim in dims else slice(None) for d in range(xs[0].ndim)])
    return (lambda x: x[key].copy()) if dims and xs[0].size < 1 << 12 else lambda x: copied(x[key])


flip_p.special = _flipped
flip_p.vjp([lambda g, y, x, *, dims: flip_p(g, dims=dims)])


@op("roll", sizes="shifts", linear="each", moves=True)
def roll_p(x: Any, *, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """Entries moved along `dims` by `shifts`, around the end."""
    for s, d in zip(shifts, dims, strict=True):
        n = x.shape[d]
        if n and s % n:
            rest = (slice(None),) * (-d - 1)
            x = np.concatenate((x[(..., slice(n - s % n, None), *rest)], x[(..., slice(None, n - s % n), *rest)]), d)
    return x.copy() if not any(x.shape[d] and s % x.shape[d] for s, d in zip(shifts, dims, strict=True)) else x


def _rolled(xs: list[Any], kw: dict[str, Any]) -> Any:
    """One dim of a small array by the numbers of its entries."""
    if len(kw["shifts"]) != 1 or not xs[0].size:
        return None
    (s,), (d,) = kw["shifts"], kw["dims"]
    n = xs[0].shape[d]
    if xs[0].size >= 1 << 12:
        return None
    order = np.arange(n) - s % n
    return lambda x: x.take(order, d)


roll_p.special = _rolled
roll_p.vjp([lambda g, y, x, *, shifts, dims: roll_p(g, shifts=tuple(-s for s in shifts), dims=dims)])


def _common(xs: Sequence[Any]) -> list[Any]:
    d = xs[0].dtype
    if all(x.dtype is d for x in xs):
        return list(xs)
    want = dt.result_of((dt.FROM_NP[x.dtype], x.ndim) for x in xs).np
    return [x.astype(want) if x.dtype != want else x for x in xs]


@op("cat", batch="expand", sizes="ns", moves=True)
def cat_p(*xs: Any, dim: int, ns: tuple[int, ...]) -> Any:
    """Tensors of sizes `ns` along `dim` joined."""
    xs = tuple(_common(xs))
    n = sum(x.shape[dim] for x in xs)
    shape = list(xs[0].shape)
    shape[dim] = n
    many = all(x.ndim == len(shape) for x in xs) and n * xs[0].itemsize > 1 << 10
    return np.concatenate(xs, axis=dim, out=empty(tuple(shape), xs[0].dtype) if many else None)


def _joined(xs: list[Any], kw: dict[str, Any]) -> Any:
    d, dim = xs[0].dtype, kw["dim"]
    if not all(x.dtype is d and x.ndim == xs[0].ndim for x in xs) or sum(x.nbytes for x in xs) >= MIN_BYTES:
        return None
    return lambda *xs: np.concatenate(xs, dim)


cat_p.special = _joined


@cat_p.jvp(sparse=True)
def _(t: Any, y: Any, *xs: Any, dim: int, ns: tuple[int, ...]) -> Any:
    return cat_p(*[_zeros(x) if ti is None else ti for ti, x in zip(t, xs, strict=True)], dim=dim, ns=ns)


def _zeros(x: Tensor) -> Tensor:
    d = x.dtype
    return zeros(tuple(x.shape), d if d.category >= dt.FLOAT else dt.get_default_dtype())


@cat_p.vjp
def _(g: Any, y: Any, *xs: Any, dim: int, ns: tuple[int, ...]) -> Any:
    out, at = [], 0
    for n in ns:
        out.append(functools.partial(_part, g, dim, at, n))
        at = at + n
    return tuple(out)


def _part(g: Tensor, d: int, at: Any, n: Any) -> Tensor:
    """`n` entries of the dim `d` from `at` on; of a ragged dim they are as many in every component where `n` is a number."""
    y = take_slice(g, d, slice(at, at + n))
    s = tuple(y.shape)
    if not is_ragged(s[d]) or is_ragged(n):
        return y
    return reshape_p(y, shape=(*s[:d], n, *s[len(s) + d + 1 :]), old=s)


# -- slicing ----------------------------------------------------------------------------------------------------------


@public("narrow", methods="narrow", out=False)
@viewing
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` entries of `dim` from `start` on."""
    n = input.ndim
    if n == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor")
    d = wrap_dim(dim, n)
    size = input.shape[d]
    if isinstance(start, Tensor) and (start.ndim or start.dtype.category != dt.INT):
        raise RuntimeError(
            f"narrow: start must be an 0-dim integral Tensor, got {start.dtype} of shape {list(start.shape)}"
        )
    start = start if is_ragged(start) else int(start)
    ragged = is_ragged(size)
    if not (size.covers(start) and size.covers(-start) if ragged else -size <= start <= size):
        raise IndexError(f"narrow: start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start += size if start < 0 else 0
    if not (length >= 0 and (size.covers(start + length) if ragged else start + length <= size)):
        raise RuntimeError(
            f"narrow: start ({start}) + length ({length}) exceeds dimension size ({size}) or length is negative"
            f"{size.less(start + length) if ragged else ''}"
        )
    return _part(input, d, start, length)


def take_slice(x: Tensor, d: int, k: Any) -> Tensor:
    """Entries `k` (an int or a slice) of the dim `d` (negative)."""
    return slice_p(x, key=(k, *(slice(None),) * (-d - 1)), old=tuple(x.shape[d:]))


@public("select", methods="select", out=False)
@viewing
def select(input: Tensor, dim: int, index: Any) -> Tensor:
    """Entry `index` of `dim`, which disappears."""
    n = input.ndim
    if n == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d, i = wrap_dim(dim, n), int(index)
    size = input.shape[d]
    if not (size.covers(max(i + 1, -i)) if is_ragged(size) else -size <= i < size):
        raise IndexError(
            f"select(): index {i} out of range for tensor of size {list(input.shape)} at dimension {d + n}"
            f"{size.less(max(i + 1, -i)) if is_ragged(size) else ''}"
        )
    return take_slice(input, d, i)


@public("unbind", methods="unbind", out=False)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """All entries of `dim`.

    Of a ragged dim of a nested tensor: first the first entries, then the second ones, of those components that have one.
    """
    n = input.ndim
    if n == 0:
        raise IndexError("unbind: Dimension specified as 0 but tensor has no dimensions")
    d = wrap_dim(dim, n)
    size = input.shape[d]
    if SEEN and hasattr(size, "each"):  # the components of a nested tensor, in one step
        from ...nested import components

        return components(input)
    if is_ragged(size) and size.agrees(size.most):  # as many in every component
        size = size.most
    elif hasattr(size, "most") and hasattr(input.shape[0], "each"):
        have = [Tensor(np.flatnonzero(size.values > i)) for i in range(size.most)]
        return tuple(take_slice(input.index_select(0, m), d, i) for i, m in enumerate(have))
    return tuple(take_slice(input, d, i) for i in range(size))


@public("split", methods="split", out=False)
@straight
def split(
    tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None
) -> tuple[Tensor, ...]:
    """Pieces of `dim`: of one size (the last may be smaller), or of the listed sizes."""
    ss = split_size if split_size_or_sections is None else split_size_or_sections
    if tensor.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = wrap_dim(dim, tensor.ndim)
    n = tensor.shape[d]
    if isinstance(ss, list | tuple):
        return split_with_sizes(tensor, ss, dim)
    ss = int(ss)
    if ss < 0 or (ss == 0 and n):
        raise RuntimeError(
            f"split expects split_size be non-negative (and positive unless the dim is empty), but got split_size={ss}"
        )
    if is_ragged(n):  # each component by itself, up to the end of the longest
        return tuple(take_slice(tensor, d, slice(a, a + ss)) for a in range(0, max(n.most, 1), ss))
    starts = range(0, n, ss) if n else (0,)
    return tuple(narrow(tensor, d, a, min(ss, n - a)) for a in starts)


@public("split_with_sizes", methods="split_with_sizes", out=False)
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of `dim` of the listed sizes."""
    d = wrap_dim(dim, input.ndim)
    n = input.shape[d]
    if any(s < 0 for s in split_sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(split_sizes)}"
        )
    if sum(split_sizes) != n:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {dim}), but got "
            f"split_sizes={list(split_sizes)}{n.unlike(sum(split_sizes)) if is_ragged(n) else ''}"
        )
    out, at = [], 0
    for s in split_sizes:
        out.append(narrow(input, d, at, s))
        at += s
    return tuple(out)


@public("chunk", methods="chunk", out=False)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` pieces of `dim`, of equal size but the last."""
    if input.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    d = wrap_dim(dim, input.ndim)
    n = input.shape[d]
    size = -(-n // chunks)
    if is_ragged(n):  # as many pieces as asked for, each a part of every component; short ones fill the first
        return tuple(take_slice(input, d, slice(i * size, (i + 1) * size)) for i in range(chunks))
    if size == 0:
        return tuple(narrow(input, d, 0, 0) for _ in range(chunks))
    return split(input, size, d)


@public("diagonal", methods="diagonal", out=False)
@viewing
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two dims, as the last dim."""
    n = input.ndim
    a, b = wrap_dim(dim1, n, "dim1"), wrap_dim(dim2, n, "dim2")
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return diagonal_p(input, offset=offset, dim1=a, dim2=b, old=tuple(input.shape))


# -- joining ----------------------------------------------------------------------------------------------------------


@public("cat concat concatenate", out=False)
def cat(tensors: Any, dim: int = 0, *, out: Any = None) -> Tensor:
    """Tensors joined along an existing dim.

    >>> chainrule.cat([chainrule.zeros(1, 2), chainrule.ones(2, 2)])
    tensor([[0., 0.],
            [1., 1.],
            [1., 1.]])
    """
    if out is not None:
        y = cat(tensors, dim)
        _check_out(out, tensors)
        return write_out(out, y)
    if isinstance(tensors, Tensor):
        raise TypeError("cat: argument 'tensors' must be tuple of Tensors, not Tensor")
    xs = tensors if isinstance(tensors, list | tuple) else list(tensors)
    return _cat(*xs, dim=dim) if len(xs) <= FEW else _cat.__wrapped__(*xs, dim=dim)  # type: ignore[attr-defined]


FEW = 16  # tensors whose kinds are worth looking at


@straight
def _cat(*xs: Any, dim: int) -> Tensor:
    if not xs:
        raise ValueError("cat: expected a non-empty list of Tensors")
    for i, x in enumerate(xs):
        if not isinstance(x, Tensor):
            raise TypeError(f"cat: expected tensors, but element {i} of tensors is a {type(x).__name__}")
        if x.ndim == 0:
            raise RuntimeError(f"cat: zero-dimensional tensor (at position {i}) cannot be concatenated")
    want = dt.result_of((x.dtype, x.ndim) for x in xs)
    kept = [x for x in xs if x.shape != (0,)]
    if not kept:  # nothing but empty vectors, which go along any dim
        kept, dim = [xs[0]], 0
    n = kept[0].ndim
    d = wrap_dim(dim, n)
    ref = kept[0].shape
    if len(kept) != len(xs):
        # Empty vectors go with anything: as nothing along `dim` they stay in the graph.
        kept = [reshape(x, (*ref[: d + n], 0, *ref[d + n + 1 :])) if x.shape == (0,) else x for x in xs]
    for i, x in enumerate(kept):
        s = x.shape
        if len(s) != n:
            raise RuntimeError(
                f"cat: tensors must have same number of dimensions: got {n} and {len(s)} (tensor number {i})"
            )
        # Whole components go one after the other, whatever their sizes.
        whole = SEEN and ((d == -n and (hasattr(ref[0], "each") or hasattr(s[0], "each"))) or _inner(ref, s, d))
        if not whole and any(not same_size(a, b) for k, (a, b) in enumerate(zip(ref, s, strict=True)) if k - n != d):
            raise RuntimeError(
                f"cat: Sizes of tensors must match except in dimension {d + n}. Expected {list(ref)} but got {list(s)} for tensor number {i} in the list"
            )
    y = cat_p(*kept, dim=d, ns=tuple([x.shape[d] for x in kept]))
    return y if y.dtype is want else y.to(want)


def _inner(ref: Any, s: Any, d: int) -> bool:
    """Whether whole inner components of nests of nests are joined: the sizes behind depend on this dim."""
    return is_ragged(ref[d]) and not hasattr(ref[d], "outer") and any(hasattr(m, "outer") for m in (*ref, *s))


def _check_out(out: Tensor, tensors: Any) -> None:
    v = innermost(out)
    if type(v) is np.ndarray and any(n > 1 and not k for n, k in zip(v.shape, v.strides, strict=True)):
        raise RuntimeError(
            "cat: unsupported operation: more than one element of the written-to tensor refers to a single memory location; clone `out` first"
        )
    for x in tensors:
        u = innermost(x)
        same = x is out or (type(u) is np.ndarray and np.may_share_memory(u, v) and np.shares_memory(u, v))
        if same:
            raise RuntimeError(
                "cat: unsupported operation: some elements of `tensors` and the written-to `out` refer to a single memory location; clone one of them first"
            )


@op("stack", batch="expand", linear="all", moves=True)
def stack_p(*xs: Any, dim: int) -> Any:
    """Tensors of one shape joined along a new axis, `dim` of the result."""
    xs = tuple(_common(xs))
    at = xs[0].ndim + 1 + dim
    y = empty((*xs[0].shape[:at], len(xs), *xs[0].shape[at:]), xs[0].dtype)
    key = (slice(None),) * at
    for i, x in enumerate(xs):
        y[(*key, i)] = x
    return y


def _stacked(xs: list[Any], kw: dict[str, Any]) -> Any:
    """Joined in front, and the new dim put where it belongs."""
    d, shape, n = xs[0].dtype, xs[0].shape, len(xs)
    at = xs[0].ndim + 1 + kw["dim"]
    if not all(x.dtype is d for x in xs) or xs[0].nbytes * n >= MIN_BYTES or not xs[0].ndim:
        return None
    rows = (*shape[:at], n * shape[at], *shape[at + 1 :]) if at < len(shape) else None
    new = (*shape[:at], n, *shape[at:])
    if rows is not None:
        return lambda *xs: np.concatenate(xs, at).reshape(new)
    return lambda *xs: np.concatenate([x[..., None] for x in xs], at)


stack_p.special = _stacked


@stack_p.vjp
def _(g: Any, y: Any, *xs: Any, dim: int) -> Any:
    return tuple([functools.partial(take_slice, g, dim, i) for i in range(len(xs))])


@public("stack")
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape joined along a new dim."""
    if isinstance(tensors, Tensor):
        raise TypeError("stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    xs = tensors if isinstance(tensors, list | tuple) else list(tensors)
    return _stack(*xs, dim=dim) if len(xs) <= FEW else _stack.__wrapped__(*xs, dim=dim)  # type: ignore[attr-defined]


@straight
def _stack(*xs: Tensor, dim: int) -> Tensor:
    if not xs:
        raise RuntimeError("stack expects a non-empty TensorList")
    s, s0 = xs[0].shape, xs[0].layout
    for i, x in enumerate(xs):
        if x.shape != s and (len(x.shape) != len(s) or not all(map(same_size, x.shape, s))):
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(s)} at entry 0 and {list(x.shape)} at entry {i}"
            )
    n = len(s) + 1
    d = wrap_dim(dim, n)
    at = d + n
    if all_dense(*xs) and all(type(x) is Tensor and x.layout is s0 for x in xs) and len({x.dtype for x in xs}) == 1:
        return stack_p.bind(*xs, dim=d)
    return cat([reshape(x, *x.shape[:at], 1, *x.shape[at:]) for x in xs], d)


# -- order ------------------------------------------------------------------------------------------------------------


@public("flip", methods="flip", out=False)
@straight
def flip(input: Tensor, *dims: Any, **kw: Any) -> Tensor:
    """The order of entries along `dims` reversed."""
    if not dims and not kw:
        raise TypeError("flip() missing 1 required positional argument: 'dims'")
    ds = sizes(dims if not kw else named("flip", "dims", dims, kw), "dims")
    return flip_p(input, dims=wrap_dims(ds, input.ndim, "dims") if ds and input.ndim else ())


def _reversed(self: Tensor) -> Tensor:
    """``reversed(x)``: the entries of dim 0 in the other order."""
    return flip(self, 0) if self.ndim else self


Tensor.__reversed__ = _reversed  # type: ignore[method-assign, assignment]


@public("fliplr", methods="fliplr", out=False)
def fliplr(input: Tensor) -> Tensor:
    """Dim 1 reversed."""
    if input.ndim < 2:
        raise RuntimeError(f"fliplr: Input must be >= 2-d, got {input.ndim}-d")
    return flip(input, 1)


@public("flipud", methods="flipud", out=False)
def flipud(input: Tensor) -> Tensor:
    """Dim 0 reversed."""
    if input.ndim < 1:
        raise RuntimeError("flipud: Input must be >= 1-d, got 0-d")
    return flip(input, 0)


@public("roll", methods="roll", out=False)
@straight
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Entries moved along `dims` by `shifts`, around the end; without dims, of the flattened tensor."""
    s = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    if not s:
        raise RuntimeError("roll: `shifts` required")
    if dims is None or (not isinstance(dims, int) and len(dims) == 0):
        if len(s) != 1:
            raise RuntimeError(f"roll: shifts and dimensions must align. shifts: {len(s)}, dims: 0")
        return reshape(roll_p(reshape(input, -1), shifts=s, dims=(-1,)), *input.shape)
    ds = (dims,) if isinstance(dims, int) else tuple(dims)
    if len(s) != len(ds):
        raise RuntimeError(f"roll: shifts and dimensions must align. shifts: {len(s)}, dims: {len(ds)}")
    if input.ndim == 0:
        raise IndexError(
            f"roll: Dimension specified as {ds[0]} but tensor has no dimensions; leave out dims for a 0-d input"
        )
    return roll_p(input, shifts=s, dims=tuple(wrap_dim(d, input.ndim, "dims") for d in ds))


@public("contiguous", methods="contiguous", out=False)
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """`input` itself if its elements lie in the order of `memory_format` (row-major), else a copy that does."""
    v = input._value
    if memory_format is None and type(v) is np.ndarray:
        return input if v.flags.c_contiguous else clone_p.bind(input, order="C")
    if input.is_contiguous(memory_format=memory_format):
        return input
    if memory_format is not None and memory_format.name.startswith("channels_last"):
        n = input.ndim
        y = clone_p.bind(input.permute(0, *range(2, n), 1), order="C")
        return permute_p.bind(y, dims=tuple(d - n for d in (0, n - 1, *range(1, n - 1))))

    return clone_p.bind(input, order="C")


def _channels_last(a: np.ndarray) -> bool:
    """Whether the strides of a batch of images descend from the batch over the sizes to the channels."""
    least = 0
    for d in (1, *range(a.ndim - 1, 1, -1), 0):
        n, s = a.shape[d], a.strides[d]
        if n == 0 or s < least or (d == 1 and s == 0) or (d == 0 and least == a.strides[1]):
            return False
        least = s * n if n > 1 else s
    return True


def keeps_format(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of images whose results have their channels last in memory where the images have, as layers of PyTorch carry it on.

    It stands outside of what runs as straight-line code, which does not ask how its arguments lie in memory.
    """

    @functools.wraps(f)
    def call(*args: Any, **kw: Any) -> Any:
        y = f(*args, **kw)
        for x in args[:2] or (kw.get("input"),):  # of a convolution its weight as well
            if (
                x.__class__ is Tensor
                and x._interp is None
                and type(x._value) is np.ndarray
                and x._value.flags.c_contiguous
            ):
                continue
            if isinstance(x, Tensor) and x.ndim in (4, 5):
                a = innermost(x)
                if type(a) is np.ndarray and a.ndim == x.ndim and not a.flags.c_contiguous:
                    order = channels_last if x.ndim == 4 else channels_last_3d
                    if _channels_last(a):
                        return tuple(contiguous(v, order) for v in y) if isinstance(y, tuple) else contiguous(y, order)
        return y

    return call


# -- samples ------------------------------------------------------------------------------------------------------------

sample("reshape", S(2, 6), f=lambda x: x.reshape(3, -1))
sample("view", S(2, 6), f=lambda x: x.contiguous().view(4, 3))
sample("permute", S(2, 3, 4), (2, 0, 1))
sample("transpose", S(2, 3, 4), 0, 2)
sample("expand", S(3, 1), f=lambda x: x.expand(2, 3, 4))
sample("squeeze", S(2, 1, 3, 1))
sample("squeeze", S(2, 1, 3, 1), 1)
sample("unsqueeze", S(2, 3), 1)
sample("flatten", S(2, 3, 4), 1)
sample("movedim", S(2, 3, 4), (0, 1), (2, 0))
sample("cat", [S(2, 3), S(1, 3)], 0)
sample("stack", [S(2, 3), S(2, 3)], 1)
sample("split", S(5, 2), 2)
sample("split", S(5, 2), [1, 4])
sample("chunk", S(5, 2), 3)
sample("unbind", S(2, 3), 1)
sample("select", S(2, 3), 1, -1)
sample("narrow", S(4, 3), 0, 1, 2)
sample("flip", S(2, 3), (0, 1))
sample("roll", S(2, 3), 1, 1)
sample("roll", S(2, 3), 4)
sample("diagonal", S(3, 4), 1)
sample("diagonal", S(2, 3, 4), 0, 0, 2)
