"""Conversions between dense and sparse tensors and between the layouts, and what a sparse tensor says of itself."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...core.dispatch import innermost
from ...core.dispatch import values as values_of
from ...core.errors import ChainruleError
from ...core.registry import prop, public
from ...core.shapes import zeros_beside
from ...core.tensor import Tensor
from ...core.views import adopt
from ...payloads.sparse.array import NAMES
from ...payloads.sparse.pattern import Pattern, at_places, compress, convert
from .values import coalesced, dense, index_tensor, is_sparse, make, moved, numbers, parts, pick_p


def _sparse(name: str, x: Tensor, *wanted: str) -> Pattern:
    """The pattern of a sparse tensor of one of these layouts, or an error."""
    if not is_sparse(x):
        raise RuntimeError(
            f"{name} expected a sparse tensor, got a dense one of shape {list(x.shape)}: write x.to_sparse()"
        )
    p = parts(x)[1]
    if wanted and p.layout not in wanted:
        raise RuntimeError(
            f"{name} expected the layout {' or '.join(f'sparse_{w}' for w in wanted)}, got sparse_{p.layout}"
        )
    return p


def _stored(x: Tensor, dense_dims: int) -> np.ndarray:
    """The places of a dense tensor where something is not zero: in any example, where a vmap maps over them."""
    a = values_of(x, "a conversion to a sparse layout, which looks where something is not zero,")
    lead = a.ndim - x.ndim
    hit = a != 0
    if lead or dense_dims:
        hit = hit.any(axis=(*range(lead), *range(a.ndim - dense_dims, a.ndim)))
    return np.flatnonzero(hit)


def _to(name: str, x: Tensor, layout: str, block: Any = None, dense_dims: int | None = None) -> Tensor:
    if layout in ("bsr", "bsc"):
        if block is None and not (is_sparse(x) and parts(x)[1].block):
            raise RuntimeError(f"{name}: the layout sparse_{layout} needs blocksize, a pair of ints")
        block = tuple(int(b) for b in block) if block is not None else parts(x)[1].block
    else:
        block = None
    if is_sparse(x):
        v, p = parts(x)
        if p.layout == layout and p.block == block:
            return x
        q = convert(p, layout, block)
        return make(moved(v, p, q), q)
    k = dense_dims or 0
    need = 2 + k if layout != "coo" else k
    if x.ndim < need:
        raise RuntimeError(f"{name}: a tensor of {x.ndim} dims with {k} dense ones has no layout sparse_{layout}")
    shape = tuple(x.shape)
    keys = _stored(x, k)
    if layout == "coo":
        p = at_places(keys, shape[: len(shape) - k], shape[len(shape) - k :])
    else:
        p = compress(keys, shape, k, layout, block)
    return make(pick_p.bind(x, pattern=p), p)


@public("", methods="to_sparse", out=False)
def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None) -> Tensor:  # fmt: skip
    """The tensor in a sparse layout, by coordinates unless told: of a dense one the elements that are not zero.

    Under vmap all examples share one pattern: the places where any of them is not zero.

    >>> chainrule.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse().indices()
    tensor([[0],
            [1]])
    """
    if layout is None and isinstance(sparse_dim, int):
        if not 0 < sparse_dim <= max(self.ndim, 1):
            raise RuntimeError(f"to_sparse: sparse_dim must be in [1, {self.ndim}], got {sparse_dim}")
        dense_dim = self.ndim - sparse_dim
    elif sparse_dim is not None and not isinstance(sparse_dim, int):
        layout = sparse_dim
    name = "coo" if layout is None else layout.name.removeprefix("sparse_")
    if name == "strided":
        return dense(self) if is_sparse(self) else self
    if name != "coo" and name not in NAMES:
        raise RuntimeError(f"to_sparse: {layout!r} is no sparse layout")
    return _to("to_sparse", self, name, blocksize, dense_dim)


@public("", methods="to_sparse_coo", out=False)
def to_sparse_coo(self: Tensor) -> Tensor:
    """The tensor by coordinates."""
    return _to("to_sparse_coo", self, "coo")


def _converter(layout: str) -> None:
    def plain(self: Tensor, dense_dim: int | None = None) -> Tensor:
        return _to(f"to_sparse_{layout}", self, layout, None, dense_dim)

    def blocked(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
        return _to(f"to_sparse_{layout}", self, layout, blocksize, dense_dim)

    f = blocked if layout in ("bsr", "bsc") else plain
    what = {"csr": "rows", "csc": "columns", "bsr": "rows of blocks", "bsc": "columns of blocks"}[layout]
    f.__doc__ = f"The tensor by {what}; dims in front of the last two are a batch."
    f.__name__ = f.__qualname__ = f"to_sparse_{layout}"
    public("", methods=f"to_sparse_{layout}", out=False)(f)


for _layout in NAMES:
    _converter(_layout)


@public("", methods="to_dense", out=False)
def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool = True) -> Tensor:
    """The dense tensor. `masked_grad`: the derivative is that of the stored elements alone; else of all of them, and dense.

    >>> chainrule.sparse_coo_tensor([[1]], [3.0], (3,)).to_dense()
    tensor([0., 3., 0.])
    """
    y = dense(self, True if masked_grad is None else masked_grad) if is_sparse(self) else self
    return y if dtype is None else y.to(dtype)


@public("", methods="coalesce", out=False)
def coalesce(self: Tensor) -> Tensor:
    """Coordinates in order, each once; the numbers at one place added up."""
    p = _sparse("coalesce", self, "coo")
    y = coalesced(self)
    if y is self and not p.coalesced:
        p.coalesced = True
    return y


@public("", methods="is_coalesced", out=False)
def is_coalesced(self: Tensor) -> bool:
    """Whether coordinates are known to be in order, each once."""
    return _sparse("is_coalesced", self, "coo").coalesced


@public("", methods="values", out=False)
def values(self: Tensor) -> Tensor:
    """The stored numbers of a sparse tensor, or the packed rows of a nested one; derivatives flow through them.

    >>> chainrule.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse().values()
    tensor([2., 3.])
    """
    if self.is_nested:
        from ...nested import values as rows

        return rows(self)
    p = _sparse("values", self)
    _need_coalesced("values", p)
    return numbers(self)


def _need_coalesced(name: str, p: Pattern) -> None:
    if p.layout == "coo" and not p.coalesced:
        raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")


@public("", methods="indices", out=False)
def indices(self: Tensor) -> Tensor:
    """The coordinates of the stored numbers, ``[sparse dims, nnz]``."""
    p = _sparse("indices", self, "coo")
    _need_coalesced("indices", p)
    return index_tensor(p.index[0])


@public("", methods="_indices", out=False)
def _indices(self: Tensor) -> Tensor:
    """The coordinates as they are, repeated ones too."""
    return index_tensor(_sparse("_indices", self, "coo").index[0])


@prop("_values")
def _values(self: Tensor) -> Any:
    """``x._values()``: the stored numbers as they are, those of repeated coordinates too; ``x._values``: the rows of a nest."""
    if self.is_nested:
        return self.values()
    _sparse("_values", self)
    return functools.partial(numbers, self)


def _part(name: str, k: int, *wanted: str) -> None:
    def form(self: Tensor) -> Tensor:
        return index_tensor(_sparse(name, self, *wanted).index[k])

    kind = "columns" if name.startswith(("ccol", "col")) else "rows"
    form.__doc__ = f"Where the {kind} begin." if k == 0 else f"The {kind} that the stored entries stand in."
    form.__name__ = form.__qualname__ = name
    public("", methods=name, out=False)(form)


_part("crow_indices", 0, "csr", "bsr")
_part("col_indices", 1, "csr", "bsr")
_part("ccol_indices", 0, "csc", "bsc")
_part("row_indices", 1, "csc", "bsc")


def _copies(name: str) -> None:
    def form(input: Tensor) -> Tensor:
        return getattr(input, name)().clone()

    form.__doc__ = f"A copy of ``input.{name}()``."
    form.__name__ = form.__qualname__ = f"{name}_copy"
    public(f"{name}_copy", out=False)(form)


for _name in ("indices", "values", "crow_indices", "col_indices", "ccol_indices", "row_indices"):
    _copies(_name)


@public("", methods="_nnz", out=False)
def _nnz(self: Tensor) -> int:
    """The number of stored entries: coordinates, or blocks."""
    return _sparse("_nnz", self).nnz


@public("", methods="nnz", out=False)
def nnz(self: Tensor) -> int:
    """The number of stored entries."""
    return _sparse("nnz", self).nnz


@public("", methods="sparse_dim _dimI", out=False)
def sparse_dim(self: Tensor) -> int:
    """The number of sparse dims; 0 of a dense tensor. The dims of a batch are none."""
    p = parts(self)[1] if is_sparse(self) else None
    return 0 if p is None else len(p.sparse_shape) - len(p.batch)


@public("", methods="dense_dim _dimV", out=False)
def dense_dim(self: Tensor) -> int:
    """The number of dense dims: all of a dense tensor."""
    return parts(self)[1].dense if is_sparse(self) else self.ndim


@public("", methods="sparse_mask", out=False)
def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The elements of `self`, dense or sparse, at the places of the sparse tensor `mask`.

    >>> m = chainrule.eye(2).to_sparse()
    >>> chainrule.ones(2, 2).sparse_mask(m).to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    p = _sparse("sparse_mask: mask", mask)
    if tuple(self.shape) != p.shape:
        raise RuntimeError(
            f"sparse_mask: operands have incompatible sizes; self {list(self.shape)} and mask {list(p.shape)}"
        )
    if not is_sparse(self):
        return make(pick_p.bind(self, pattern=p), p)
    v, q = parts(self)
    if q.dense != p.dense:
        raise RuntimeError(f"sparse_mask: self has {q.dense} dense dims and mask {p.dense}")
    return make(moved(v, q, p), p)


@public("", methods="sparse_resize_", out=False)
def sparse_resize_(self: Tensor, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    """Other sizes for a tensor by coordinates, in place; what is stored must fit, and new dims need one without numbers."""
    p = _sparse("sparse_resize_", self, "coo")
    shape = tuple(int(n) for n in size)
    if len(shape) != sparse_dim + dense_dim:
        raise RuntimeError(f"sparse_resize_: {sparse_dim} sparse and {dense_dim} dense dims, but size {list(shape)}")
    index = p.index[0]
    if p.nnz and (len(index) != sparse_dim or p.dense != dense_dim):
        raise RuntimeError(
            "sparse_resize_: changing the number of sparse or dense dims of a non-empty tensor is not supported"
        )
    if p.nnz and any(c.max() >= n for c, n in zip(index, shape, strict=False)):
        raise RuntimeError(f"sparse_resize_: shrinking to {list(shape)} would cut off stored elements")
    v = parts(self)[0]
    tail = shape[sparse_dim:]
    if tuple(v.shape[1:]) != tail:
        grown = zeros_beside((p.nnz, *tail), v)
        grown[(slice(None), *[slice(0, min(a, b)) for a, b in zip(v.shape[1:], tail, strict=False)])] = (
            v if p.nnz else 0
        )
        v = grown
    if len(index) != sparse_dim:
        index = np.zeros((sparse_dim, 0), np.int64)
    adopt(self, make(v, Pattern("coo", shape, (index,), dense_dim, None, p.coalesced)))
    return self


@public("", methods="sparse_resize_and_clear_", out=False)
def sparse_resize_and_clear_(self: Tensor, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    """Other sizes for a tensor by coordinates, in place, with nothing stored."""
    _sparse("sparse_resize_and_clear_", self, "coo")
    shape = tuple(int(n) for n in size)
    empty = Pattern("coo", shape, (np.zeros((sparse_dim, 0), np.int64),), dense_dim)
    adopt(self, make(Tensor(np.zeros((0, *shape[sparse_dim:]), self.dtype.np)), empty))
    return self


@public("resize_as_sparse_", methods="resize_as_sparse_", out=False)
def resize_as_sparse_(self: Tensor, the_template: Tensor) -> Tensor:
    """`self` with the sizes of another sparse tensor, in place."""
    p = _sparse("resize_as_sparse_", the_template, "coo")
    return sparse_resize_(self, p.shape, len(p.sparse_shape), p.dense)


def unstack(x: Tensor, name: str = "vmap") -> Tensor:
    """The first dim of a sparse tensor as an axis in front that shares one pattern, as vmap maps over it; refused where patterns differ."""
    whole = innermost(x)
    if x.ndim > whole.pattern.ndim:
        return x  # it is one already
    v, p = parts(x)
    size = p.shape[0]
    if p.layout != "coo" and p.batch:
        if all((i == i[:1]).all() for i in p.index):
            q = Pattern(p.layout, p.shape[1:], tuple(i[0] for i in p.index), p.dense, p.block)
            return make(v, q)
        raise _differ(name, p, size)
    if p.layout != "coo" or len(p.sparse_shape) < 2:
        raise ChainruleError(
            f"{name}: cannot map over dim 0 of a sparse tensor of shape {list(p.shape)} in the layout sparse_{p.layout}: its examples have "
            f"patterns of their own. Map over the dense rows (x.to_dense()), or over its values()"
        )
    x = coalesced(x)
    v, p = parts(x)
    n = p.nnz // max(size, 1)
    index = p.index[0]
    if n * size != p.nnz or not (index[0] == np.repeat(np.arange(size), n)).all():
        raise _differ(name, p, size)
    each = index[1:].reshape(len(index) - 1, size, n)
    if not (each == each[:, :1]).all():
        raise _differ(name, p, size)
    q = Pattern("coo", p.shape[1:], (np.ascontiguousarray(each[:, 0]),), p.dense)
    return make(v.reshape((size, n, *p.dense_shape)), q)


def _differ(name: str, p: Pattern, size: int) -> Exception:
    return ChainruleError(
        f"{name}: the {size} examples of a sparse tensor of shape {list(p.shape)} have different patterns, and examples must share one. "
        f"Store explicit zeros so that they do (x.sparse_mask(common)), map over x.to_dense(), or use a product that takes batches "
        f"(chainrule.bmm)"
    )
