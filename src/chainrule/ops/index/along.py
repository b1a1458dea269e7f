"""Indexing along one dim or over the flattened tensor: index_add, index_copy, index_fill, take, put, embedding and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.dispatch import values
from ...core.errors import ChainruleError
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import broadcast_shapes, constant, wrap_dim, zeros
from ...core.straight import straight
from ...core.tensor import Tensor
from ...kernels import indexing
from ..elementwise.select import where, where_p
from ..shape.in_each import in_each, same_size, whole_nest
from .gather import check_range_p, gather
from .getitem import index_write
from .rows import add_rows_p, blank, put_rows, set_rows_p, take_rows_p, wrap_index_p

# -- rows of one dim --------------------------------------------------------------------------------------------------


def _vector(name: str, index: Any, allow: tuple[dt.DType, ...] = (dt.int64, dt.int32)) -> Tensor:
    if not isinstance(index, Tensor):
        raise TypeError(f"{name}(): index must be a tensor, got {type(index).__name__}")
    if index.dtype not in allow:
        raise RuntimeError(
            f"{name}(): Expected dtype {' or '.join(d.name for d in allow)} for index, got {index.dtype}"
        )
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} for index")
    return index.reshape(-1)


def _rows_first(x: Tensor, d: int) -> Tensor:
    return x.reshape(1) if x.ndim == 0 else x if d == -x.ndim else x.movedim(d, 0)


def _back(y: Tensor, like: Tensor, d: int) -> Tensor:
    return y.reshape(()) if like.ndim == 0 else y if d == -like.ndim else y.movedim(0, d)


def _source(name: str, input: Tensor, d: int, index: Tensor, source: Tensor) -> Tensor:
    """The source with its indexed dim in front, after PyTorch's checks."""
    n = index.numel()
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}(): self and source expected to have the same dtype, but got (self) {input.dtype} and (source) {source.dtype}"
        )
    if source.ndim == 0:
        if n != 1:
            raise RuntimeError(f"{name}(): when source is scalar, index should have one element (got {n})")
        return source.reshape((1,) * max(input.ndim, 1))
    if source.ndim != max(input.ndim, 1):
        raise RuntimeError(
            f"{name}(): source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(input.shape)}, source.shape = {list(source.shape)}"
        )
    if not same_size(source.shape[d], n):
        kind = RuntimeError if name == "index_add" else IndexError
        raise kind(f"{name}(): Number of indices ({n}) should be equal to source.size(dim) ({source.shape[d]})")
    rest = [k for k in range(-source.ndim, 0) if k != d]
    if input.ndim and not all(same_size(source.shape[k], input.shape[k]) for k in rest):
        raise RuntimeError(
            f"{name}(): Source/destination tensor must have same slice shapes. Destination {list(input.shape)}, "
            f"source {list(source.shape)} at dimension {d + source.ndim}"
        )
    return source if d == -source.ndim else source.movedim(d, 0)


def _row_numbers(name: str, index: Tensor, n: int, d: int) -> Tensor:
    return check_range_p.bind(index, n=n, name=name, dim=d)


@public("index_add", methods="index_add", inplace="index_add_")
@straight
@in_each("source")
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """`input` with ``alpha * source`` added at the entries `index` of `dim`; repeated indices add up."""
    d = wrap_dim(dim, input.ndim)
    i = _vector("index_add", index)
    src = _source("index_add", input, d, i, source)
    x = _rows_first(input, d)
    i = _row_numbers("index_add", i, x.shape[0], d + input.ndim)
    grown = add_rows_p(src if alpha == 1 else src * alpha, i, n=x.shape[0], r=x.ndim - 1, s=1)
    return _back(x + grown.to(x.dtype), input, d)


@public("index_copy", methods="index_copy", inplace="index_copy_")
@straight
@in_each("source")
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`input` with the entries `index` of `dim` replaced by those of `source`."""
    d = wrap_dim(dim, input.ndim)
    i = _vector("index_copy", index, (dt.int64,))
    src = _source("index_copy", input, d, i, source)
    x = _rows_first(input, d)
    return _back(put_rows(x, _row_numbers("index_copy", i, x.shape[0], d + input.ndim), src), input, d)


@public("index_fill", methods="index_fill", inplace="index_fill_", out=False)
@straight
@in_each()
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """`input` with the entries `index` of `dim` set to `value`, a number or a 0-d tensor."""
    d = wrap_dim(dim, input.ndim)
    i = _vector("index_fill", index, (dt.int64,))
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
            )
        v = value.to(input.dtype)
    else:
        if isinstance(value, complex) and input.dtype.category != dt.COMPLEX:
            raise RuntimeError(
                f"index_fill: Converting complex Scalar to non-complex type {input.dtype} is not supported"
            )
        v = value
    x = _rows_first(input, d)
    i = wrap_index_p(i, n=x.shape[0], dim=d)
    shape = (i.shape[0], *x.shape[1:])
    return _back(put_rows(x, i, v.expand(*shape) if isinstance(value, Tensor) else blank(shape, x, v)), input, d)


@public("take_along_dim", methods="take_along_dim")
@straight
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """gather with the other dims broadcast; without `dim`, of the flattened input."""
    if indices.dtype is not dt.int64:
        raise RuntimeError(f"take_along_dim(): dtype of indices should be Long but got {indices.dtype}")
    if dim is None:
        return gather(input.reshape(-1), 0, wrap_index_p(indices.reshape(-1), n=input.numel(), dim=0))
    if input.ndim != indices.ndim:
        raise RuntimeError(
            f"take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    n = input.ndim
    d = wrap_dim(dim, n) + n
    shape = list(
        broadcast_shapes(
            [1 if k == d else s for k, s in enumerate(input.shape)],
            [1 if k == d else s for k, s in enumerate(indices.shape)],
            what="take_along_dim",
        )
    )
    xs, js = list(shape), list(shape)
    xs[d], js[d] = input.shape[d], indices.shape[d]
    return gather(input.expand(*xs), d, wrap_index_p(indices.expand(*js), n=input.shape[d], dim=d))


# -- the flattened tensor ---------------------------------------------------------------------------------------------


def _flat_index(name: str, input: Tensor, index: Tensor) -> Tensor:
    if index.dtype is not dt.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {index.dtype}")
    if input.numel() == 0 and index.numel():
        raise IndexError(f"{name}(): tried to take from an empty tensor")
    return wrap_index_p(index, n=input.numel(), dim=0) if index.numel() else index


@public("take", methods="take", fresh=True)
@straight
def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements of the flattened input at `index`, in the shape of index."""
    i = _flat_index("take", input, index)
    return take_rows_p(input.reshape(-1), i.reshape(-1), r=0, s=1, n=input.numel()).reshape(*index.shape)


@public("put", methods="put", inplace="put_", out=False)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with its flattened elements at `index` replaced by (or increased by) `source`."""
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"put(): self and source expected to have the same dtype, but got self.dtype = {input.dtype} and source.dtype = {source.dtype}"
        )
    if source.numel() != index.numel():
        raise RuntimeError(
            f"put(): Expected source and index to have the same number of elements, but got source.numel() = {source.numel()}, index.numel() = {index.numel()}"
        )
    i = _flat_index("put", input, index).reshape(-1)
    x, v = input.reshape(-1), source.reshape(-1)
    y = x + add_rows_p(v, i, n=input.numel(), r=0, s=1) if accumulate else set_rows_p(x, i, v, r=0, s=1)
    return y.reshape(*input.shape)


# -- masks ------------------------------------------------------------------------------------------------------------


@public("masked_select", methods="masked_select", fresh=True)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements of `input` where the mask holds, in one dim."""
    if mask.dtype is not dt.bool_:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask, got {mask.dtype}")
    if input._interp is None and mask._interp is None and input.__class__ is Tensor and mask.__class__ is Tensor:
        x, m = input._value, mask._value
        if (
            type(x) is np.ndarray
            and type(m) is np.ndarray
            and x.shape == m.shape
            and m.ndim
            and x.size < indexing.LEAST
        ):
            return Tensor(x[m])
    if input.shape == mask.shape:
        return input[mask] if mask.ndim else input.reshape(1)[mask.reshape(1)]
    shape = broadcast_shapes(input.shape, mask.shape, what="masked_select")
    return input.expand(*shape).reshape(-1)[mask.expand(*shape).reshape(-1)]


@public("masked_scatter", methods="masked_scatter", inplace="masked_scatter_", out=False)
@straight
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`input` with the elements of `source`, one after the other, where the mask holds."""
    if mask.dtype is not dt.bool_:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {input.dtype} and {source.dtype}"
        )
    shape = broadcast_shapes(input.shape, mask.shape, what="masked_scatter")
    x, m = input.expand(*shape), mask.expand(*shape)
    n = source.numel()
    nth = m.reshape(-1).to(dt.int64).cumsum(0) - 1
    if x.numel():
        check_range_p.bind(
            nth.clamp(min=0),
            n=max(n, 1),
            name="masked_scatter: number of elements of source < number of ones in mask;",
            dim=0,
        )
    if n == 0:
        return x.clone()
    v = take_rows_p(source.reshape(-1), nth.clamp(0, n - 1), r=0, s=1, n=n)
    return where_p.bind(m, v.reshape(*shape), x)


@public("_unsafe_masked_index", out=False)
def unsafe_masked_index(input: Tensor, mask: Tensor, indices: Any, fill: Any) -> Tensor:
    """``input[indices]`` where the mask holds, else `fill`; indices need only be in range where it holds."""
    return where(mask, input[_clamped(input, indices)], fill)


@public("_unsafe_masked_index_put_accumulate", out=False)
def unsafe_masked_index_put_accumulate(input: Tensor, mask: Tensor, indices: Any, values: Tensor) -> Tensor:
    """`input` with `values` added at `indices` where the mask holds."""
    return index_write(input, _clamped(input, indices), where(mask, values, 0), accumulate=True)


def _clamped(x: Tensor, indices: Any) -> tuple[Any, ...]:
    return tuple(slice(None) if i is None else i.clamp(-x.shape[k], x.shape[k] - 1) for k, i in enumerate(indices))


# -- where the nonzeros are: shapes that depend on data -----------------------------------------------------------------


@public("nonzero", methods="nonzero", fresh=True)
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The positions of nonzero elements: a row each, or with ``as_tuple`` an index tensor for each dim."""
    v = input.concrete("nonzero()")
    if whole_nest(input):  # the number of the component, then the place in it
        from ...payloads.nested.index import places

        found = places(v)
        return tuple(Tensor(i) for i in found.T.copy()) if as_tuple else Tensor(found)
    if as_tuple:
        return tuple(Tensor(i) for i in np.nonzero(v if v.ndim else v.reshape(1)))
    at = (v if v.ndim else v.reshape(1)).nonzero()
    found = np.empty((len(at[0]), v.ndim), np.int64)
    for k in range(v.ndim):
        found[:, k] = at[k]
    return Tensor(found)


@public("argwhere", methods="argwhere", out=False)
def argwhere(input: Tensor) -> Tensor:
    """The positions of nonzero elements, a row each."""
    return nonzero(input)


@op(
    "nonzero_static",
    differentiable=False,
    batch=lambda _, xs, flags, **kw: nonzero_static_p.bind(*xs, **{**kw, "lead": kw["lead"] + 1}),
)
def nonzero_static_p(x: Any, *, size: int, fill: int, lead: int) -> Any:
    """The first `size` positions of nonzeros of each example, padded with `fill`."""
    k = x.ndim - lead
    flat = (x != 0).reshape((*x.shape[:lead], -1))
    # A stable sort by "is zero" brings the nonzeros to the front in order.
    order = np.argsort(~flat, axis=-1, kind="stable")[..., :size]
    found = np.take_along_axis(flat, order, -1)
    coords = np.stack(np.unravel_index(order, x.shape[lead:]), -1) if k else np.zeros((*order.shape, 0), np.int64)
    out = np.full((*x.shape[:lead], size, k), fill, np.int64)
    out[..., : order.shape[-1], :] = np.where(found[..., None], coords, fill)
    return out


@public("nonzero_static", methods="nonzero_static")
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The positions of the first `size` nonzero elements, padded with rows of `fill_value`."""
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    return nonzero_static_p(input, size=size, fill=fill_value, lead=0)


@public("unravel_index", out=False)
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates in a tensor of `shape` of elements given by their place in row-major order."""
    if not isinstance(indices, Tensor) or indices.dtype.category != dt.INT:
        raise TypeError(
            f"unravel_index: expected 'indices' to be integer dtype, but got {getattr(indices, 'dtype', type(indices).__name__)}"
        )
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(isinstance(n, int) for n in sizes):
        raise TypeError(f"unravel_index: expected 'shape' to be an int or a sequence of ints, got {shape!r}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"unravel_index: 'shape' cannot have negative values, got {sizes}")
    out, left = [], indices
    for n in reversed(sizes):
        out.append(left % n)
        left = left.div(n, rounding_mode="floor")
    return tuple(reversed(out))


# -- tables -----------------------------------------------------------------------------------------------------------


_least: Any = np.minimum.reduce
_most: Any = np.maximum.reduce


def _classes(tensor: Tensor) -> int:
    """One more than the largest class; under vmap every example must have the same number, as rows of one result do."""
    v = values(tensor, "one_hot without num_classes")
    if type(v) is not np.ndarray:
        v = tensor.concrete("one_hot without num_classes")
    each = v.max(axis=tuple(range(v.ndim - tensor.ndim, v.ndim))) + 1
    few, many = int(each.min()), int(each.max())
    if few != many:
        raise ChainruleError(
            f"one_hot without num_classes takes the largest class of each example, and under vmap the examples here have from "
            f"{few} to {many} classes: their results have different shapes. Pass the number of classes, num_classes={many}."
        )
    return many


@public("nn.functional.one_hot", out=False)
@straight
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Zeros with a one at the class's place in a new last dim."""
    if tensor.dtype is not dt.int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor, got {tensor.dtype}")
    v = tensor._value
    if tensor.__class__ is Tensor and tensor._interp is None and type(v) is np.ndarray and v.size:
        n = int(_most(v, None)) + 1 if num_classes == -1 else num_classes
        if _least(v, None) >= 0 and n > 0 and (num_classes == -1 or _most(v, None) < n):
            y = np.zeros((v.size, n), np.int64)
            y.reshape(-1)[v.reshape(-1) + np.arange(0, v.size * n, n)] = 1
            return Tensor(y.reshape((*v.shape, n)))
    if num_classes == -1:
        if tensor.numel() == 0:
            raise RuntimeError("one_hot: can not infer total number of classes from empty tensor; pass num_classes")
        num_classes = _classes(tensor)
    check_range_p.bind(tensor, n=num_classes, name="one_hot", dim=0)
    classes = constant(np.arange(num_classes), tensor)
    return (tensor.unsqueeze(-1) == classes).to(dt.int64)


@public("nn.functional.embedding embedding", out=False)
@straight
def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:  # fmt: skip
    """Rows of the table `weight` by number; the row `padding_idx` gets no gradient."""
    if (
        isinstance(weight, Tensor)
        and isinstance(input, Tensor)
        and weight.dtype.category <= dt.INT
        and input.dtype.category >= dt.FLOAT
    ):
        input, weight = weight, input  # chainrule.embedding(weight, indices), as torch.embedding has it
    if input.dtype not in (dt.int64, dt.int32):
        raise RuntimeError(
            f"embedding: expected tensor for argument 'input' (indices) to be of type Long or Int, got {input.dtype}"
        )
    if weight.ndim != 2:
        raise RuntimeError(f"embedding: 'weight' must be 2-D, got shape {list(weight.shape)}")
    n = weight.shape[0]
    if padding_idx is not None:
        if not -n <= padding_idx < n:
            raise AssertionError(f"padding_idx must be within num_embeddings ({n}), got {padding_idx}")
        padding_idx %= n
    try:
        i = check_range_p.bind(input, n=n, name="embedding", dim=0)
    except RuntimeError as e:
        raise IndexError(f"index out of range in self: {e}") from None
    if max_norm is not None:
        weight = _limit_rows(weight, i, max_norm, norm_type)
    if sparse:
        y = _rows_with_sparse_gradient(weight, i)
    else:
        y = take_rows_p(weight, i, r=1, s=input.ndim, n=n)
    if padding_idx is not None:
        y = where((i == padding_idx).unsqueeze(-1), y.detach(), y)
    if scale_grad_by_freq:
        count = add_rows_p(zeros(tuple(i.shape), dt.float64) + 1, i, n=n, r=0, s=input.ndim)
        share = take_rows_p(count, i, r=0, s=input.ndim, n=n).unsqueeze(-1).to(weight.dtype)
        y = _scaled_gradient(y, share)
    return y


def _rows_with_sparse_gradient(weight: Tensor, i: Tensor) -> Tensor:
    """Rows of a table whose gradient is sparse: the rows that were used, one for each use (coalesce() adds them up)."""
    from ...payloads.sparse.pattern import Pattern
    from ..sparse.build import index_data
    from ..sparse.values import values_p

    if whole_nest(i):  # the rows of all components are one list
        from ...nested import nest_p, values

        y = _rows_with_sparse_gradient(weight, values(i).reshape(-1))
        return nest_p(y.reshape(-1), shape=(*i.shape, weight.shape[1]))
    at = index_data("embedding(sparse=True)", "the row numbers", i)
    p = Pattern("coo", tuple(weight.shape), (at.reshape(1, -1),), 1, None, False)
    return values_p.bind(weight, pattern=p).reshape((*at.shape, weight.shape[1]))


def _scaled_gradient(y: Tensor, share: Tensor) -> Tensor:
    """`y`, whose gradient is divided by `share`: how often PyTorch's scale_grad_by_freq saw the row."""
    part = y / share
    return part + (y - part).detach()


def _limit_rows(weight: Tensor, i: Tensor, limit: float, p: float) -> Tensor:
    """Rows in use scaled down to a norm of at most `limit`, in the table itself, as PyTorch does: the derivative is that of the
    table after that. Inside a transform the table is an argument, which is not written to."""
    from ...core.imperative import no_grad
    from ...core.reverse import EAGER

    w = weight.detach()
    norms = (w.abs() ** p).sum(1) ** (1.0 / p)
    used = add_rows_p(zeros(tuple(i.shape), dt.float64) + 1, i, n=w.shape[0], r=0, s=i.ndim) > 0
    over = ((norms > limit) & used).unsqueeze(-1)
    limited = w * (limit / (norms + 1e-7)).unsqueeze(-1)
    if i._interp is None and (weight._interp is None or (weight._interp is EAGER and weight.is_leaf)):
        with no_grad():
            weight.copy_(where(over, limited, w))
        return weight
    return where(over, limited + (weight - w), weight)  # the value is `limited`, the derivative that of `weight`


@public("embedding_dense_backward", out=False)
def embedding_dense_backward(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """The gradient of an embedding's table: row k is the sum of the rows of `grad_output` whose index is k."""
    i = check_range_p.bind(indices, n=num_weights, name="embedding_dense_backward", dim=0)
    g = where((i == padding_idx).unsqueeze(-1), 0, grad_output)
    if scale_grad_by_freq:
        count = add_rows_p(zeros(tuple(i.shape), dt.float64) + 1, i, n=num_weights, r=0, s=i.ndim)
        g = g / take_rows_p(count, i, r=0, s=i.ndim, n=num_weights).unsqueeze(-1).to(g.dtype)
    return add_rows_p(g, i, n=num_weights, r=1, s=i.ndim)


# -- samples ----------------------------------------------------------------------------------------------------------

sample("embedding_dense_backward", S(2, 3, 2), Given([[0, 2, 2], [1, 0, 2]]), 4, 1, True)
sample("nn.functional.embedding", Given([0, 2, 2]), S(3, 4), None, 100.0, cx=False)
sample("nn.functional.embedding_bag", Given([[0, 2], [1, 2]]), S(3, 4), None, 100.0, cx=False)
sample("index_add", S(3, 4), 1, Given([0, 2, 2]), S(3, 3), alpha=2.0)
sample("index_add", S(), 0, Given([0]), S(1))
sample("index_copy", S(3, 4), 0, Given([2, 0]), S(2, 4))
sample("index_fill", S(3, 4), 1, Given([0, 2]), S())
sample("index_fill", S(3, 4), 1, Given([0, -1]), 2.0)
sample("take", S(3, 4), Given([[0, 11], [-1, 5]]))
sample("put", S(3, 4), Given([[0, 11], [-2, 5]]), S(2, 2))
sample("put", S(3, 4), Given([0, 0, 5]), S(3), accumulate=True)
sample("take_along_dim", S(3, 4), Given([[0, 1]]), 1)
sample("masked_select", S(3, 4), Given([True, False, True, True]))
sample("masked_scatter", S(3, 4), Given([True, False, True, True]), S(10))
sample("nn.functional.embedding", Given([[0, 2], [2, 1]]), S(4, 3))
