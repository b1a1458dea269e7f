"""Constructors of sparse tensors, through whose numbers derivatives flow; conversion from and to scipy.sparse without a copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes as dt
from ...core.dispatch import innermost
from ...core.errors import ChainruleError
from ...core.registry import public
from ...core.tensor import Tensor
from ...payloads.sparse.array import NAMES
from ...payloads.sparse.pattern import Pattern
from .values import is_sparse, make, parts

if TYPE_CHECKING:
    from ...typing import Operand


def index_data(name: str, what: str, i: Any) -> np.ndarray:
    """Index data as an array of integers; they are data, the same for all examples of a vmap."""
    if isinstance(i, Tensor):
        x: Any = i
        while x._interp is not None:
            if x._interp.kind == "vmap":
                raise ChainruleError(
                    f"{name}: under vmap {what} differ between the examples. Examples share one pattern and differ in their "
                    f"numbers: build the tensor from common indices (explicit zeros may fill up), or call it outside of vmap"
                )
            x = x._value
        i = x._value
    a = np.asarray(i)
    if a.size and a.dtype.kind not in "iu":
        raise TypeError(f"{name}: {what} must be integers, got {a.dtype}")
    # A copy: what was checked stays as it is, whatever is written to the tensor later.
    return a.copy() if a.dtype in (np.dtype(np.int32), np.dtype(np.int64)) else a.astype(np.int64)


def _numbers(values: Any, dtype: Any) -> Tensor:
    from ..shape.create import tensor

    v = values if isinstance(values, Tensor) else tensor(values)
    return v if dtype is None else v.to(dtype)


def _done(v: Tensor, p: Pattern, requires_grad: bool) -> Tensor:
    y = make(v, p)
    return y.requires_grad_() if requires_grad else y


@public("sparse_coo_tensor", out=False)
def sparse_coo_tensor(indices: Any, values: Operand | Sequence[Any] | None = None,
                      size: Sequence[int] | None = None, *, dtype: Any = None, device: Any = None,
                      pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
                      is_coalesced: bool | None = None) -> Tensor:  # fmt: skip
    """A sparse tensor from coordinates ``[sparse dims, nnz]`` and numbers ``[nnz, *dense dims]``; coordinates may repeat.

    Derivatives flow to `values`. With a size alone nothing is stored.

    >>> chainrule.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    name = "sparse_coo_tensor"
    if values is None:
        shape = tuple(int(n) for n in (indices if size is None else size))
        d = dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)
        empty = Pattern("coo", shape, (np.zeros((len(shape), 0), np.int64),))
        return _done(Tensor(np.zeros(0, d.np)), empty, requires_grad)
    i, v = index_data(name, "the indices", indices), _numbers(values, dtype)
    if i.ndim == 1 and not i.size and size is not None:
        i = i.reshape(len(size) - max(v.ndim - 1, 0), 0)
    if i.ndim != 2:
        raise RuntimeError(f"{name}: indices must have shape [sparse dims, nnz], got shape {list(i.shape)}")
    if not v.ndim:
        v = v.reshape(1)
    if v.shape[0] != i.shape[1]:
        raise RuntimeError(
            f"{name}: number of dimensions must be sparse_dim + dense_dim: {i.shape[1]} coordinates, but values of shape {list(v.shape)}"
        )
    dense = tuple(v.shape[1:])
    if size is None:
        shape = (*[int(c.max(initial=-1)) + 1 for c in i], *dense)
    else:
        shape = tuple(int(n) for n in size)
        if len(shape) != len(i) + len(dense) or tuple(shape[len(i) :]) != dense:
            raise RuntimeError(
                f"{name}: size {list(shape)} does not fit {len(i)} sparse dims and values of shape {list(v.shape)}"
            )
    if i.shape[1] and (i < 0).any():
        raise RuntimeError(f"{name}: found negative index {int(i.min())}")
    for k, (c, n) in enumerate(zip(i, shape, strict=False)):
        if c.size and int(c.max()) >= n:
            raise RuntimeError(
                f"{name}: size is inconsistent with indices: index {int(c.max())} in dim {k} of size {n}"
            )
    p = Pattern("coo", shape, (i,), len(dense), None, i.shape[1] < 2 and len(i) > 0)
    if is_coalesced:
        f = p.flat
        if len(f) > 1 and not (f[1:] > f[:-1]).all():
            raise RuntimeError(f"{name}: is_coalesced=True, but the coordinates are not in order, or repeat")
        p.coalesced = True
    return _done(v, p, requires_grad)


def _compressed(
    name: str,
    layout: str,
    compressed: Any,
    plain: Any,
    values: Any,
    size: Any,
    dtype: Any,
    requires_grad: bool,
    shared: bool = False,
) -> Tensor:
    words = NAMES[layout]
    a, b = (
        (compressed, plain) if shared else (index_data(name, words[0], compressed), index_data(name, words[1], plain))
    )
    v = _numbers(values, dtype)
    batch = b.shape[:-1]
    blocked = layout in ("bsr", "bsc")
    k = len(batch)
    if (
        a.ndim < 1
        or b.ndim < 1
        or a.shape[:-1] != batch
        or v.ndim < k + 1 + 2 * blocked
        or tuple(v.shape[: k + 1]) != b.shape
    ):
        raise RuntimeError(
            f"{name}: {words[0]} {list(a.shape)}, {words[1]} {list(b.shape)} and values {list(v.shape)} do not fit each other"
        )
    block = (int(v.shape[k + 1]), int(v.shape[k + 2])) if blocked else None
    h, w = block or (1, 1)
    dense = tuple(v.shape[k + 1 + 2 * blocked :])
    n, m = a.shape[-1] - 1, int(b.max(initial=-1)) + 1
    by_row = layout in ("csr", "bsr")
    if size is None:
        shape = (*batch, *((n * h, m * w) if by_row else (m * h, n * w)), *dense)
    else:
        shape = tuple(int(s) for s in size)
        if len(shape) != k + 2 + len(dense) or shape[:k] != tuple(batch) or shape[k + 2 :] != dense:
            raise RuntimeError(f"{name}: size {list(shape)} does not fit values of shape {list(v.shape)}")
    rows, columns = shape[k] // h, shape[k + 1] // w
    major, minor = (rows, columns) if by_row else (columns, rows)
    if shape[k] % h or shape[k + 1] % w or major != n:
        raise RuntimeError(
            f"{name}: {words[0]} has {n + 1} entries for a size of {list(shape)}{f' in blocks {block}' if block else ''}: expected {major + 1}"
        )
    steps = np.diff(a, axis=-1)
    if a.size and ((a[..., 0] != 0).any() or (a[..., -1] != b.shape[-1]).any() or (steps < 0).any()):
        raise RuntimeError(f"{name}: {words[0]} must rise from 0 to {b.shape[-1]}, the number of stored entries")
    if b.size and (int(b.min()) < 0 or int(b.max()) >= minor):
        raise RuntimeError(f"{name}: {words[1]} must lie in [0, {minor}), got {int(b.min())} to {int(b.max())}")
    return _done(v, Pattern(layout, shape, (a, b), len(dense), block), requires_grad)


@public("sparse_csr_tensor", out=False)
def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Operand | Sequence[Any],
                      size: Sequence[int] | None = None, *, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Tensor:  # fmt: skip
    """A sparse tensor by rows: where each begins, the columns of its entries, and the numbers. Dims in front are a batch.

    >>> chainrule.sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    return _compressed("sparse_csr_tensor", "csr", crow_indices, col_indices, values, size, dtype, requires_grad)


@public("sparse_csc_tensor", out=False)
def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Operand | Sequence[Any],
                      size: Sequence[int] | None = None, *, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Tensor:  # fmt: skip
    """A sparse tensor by columns: where each begins, the rows of its entries, and the numbers. Dims in front are a batch."""
    return _compressed("sparse_csc_tensor", "csc", ccol_indices, row_indices, values, size, dtype, requires_grad)


@public("sparse_bsr_tensor", out=False)
def sparse_bsr_tensor(crow_indices: Any, col_indices: Any, values: Operand | Sequence[Any],
                      size: Sequence[int] | None = None, *, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Tensor:  # fmt: skip
    """A sparse tensor by rows of blocks: where each begins, the columns of its entries, and the numbers. Dims in front are a batch."""
    return _compressed("sparse_bsr_tensor", "bsr", crow_indices, col_indices, values, size, dtype, requires_grad)


@public("sparse_bsc_tensor", out=False)
def sparse_bsc_tensor(ccol_indices: Any, row_indices: Any, values: Operand | Sequence[Any],
                      size: Sequence[int] | None = None, *, dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Tensor:  # fmt: skip
    """A sparse tensor by columns of blocks: where each begins, the rows of its entries, and the numbers. Dims in front are a batch."""
    return _compressed("sparse_bsc_tensor", "bsc", ccol_indices, row_indices, values, size, dtype, requires_grad)


@public("sparse_compressed_tensor", out=False)
def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Operand | Sequence[Any],
                             size: Sequence[int] | None = None, *,
                             dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
                             requires_grad: bool = False, check_invariants: bool | None = None) -> Tensor:  # fmt: skip
    """A sparse tensor in the compressed layout `layout`: sparse_csr, sparse_csc, sparse_bsr or sparse_bsc."""
    name = getattr(layout, "name", "").removeprefix("sparse_")
    if name not in NAMES:
        raise RuntimeError(f"sparse_compressed_tensor: layout must be a compressed sparse layout, got {layout!r}")
    return _compressed(
        "sparse_compressed_tensor", name, compressed_indices, plain_indices, values, size, dtype, requires_grad
    )


# -- scipy.sparse -------------------------------------------------------------------------------------------------------------


@public("sparse.from_scipy", out=False)
def from_scipy(matrix: Any, requires_grad: bool = False) -> Tensor:
    """A sparse tensor that shares its numbers with one of scipy.sparse, and but for coo its indices, which must not be written to.

    >>> import scipy.sparse
    >>> chainrule.sparse.from_scipy(scipy.sparse.eye_array(2, format="csr")).to_dense()
    tensor([[1., 0.],
            [0., 1.]], dtype=chainrule.float64)
    """
    m = matrix if matrix.format in ("coo", "csr", "csc", "bsr") else matrix.tocsr()
    v = Tensor(m.data)
    if m.format == "coo":
        return sparse_coo_tensor(
            np.stack([m.row, m.col]),
            v,
            m.shape,
            requires_grad=requires_grad,
            is_coalesced=m.has_canonical_format or None,
        )
    return _compressed("sparse.from_scipy", m.format, m.indptr, m.indices, v, m.shape, None, requires_grad, shared=True)


@public("sparse.to_scipy", out=False)
def to_scipy(input: Tensor) -> Any:
    """A sparse matrix as an array of scipy.sparse that shares its numbers and indices; blocks of columns become rows of blocks."""
    import scipy.sparse as ss

    if not is_sparse(input):
        raise TypeError("sparse.to_scipy: expected a sparse tensor: write x.to_sparse_csr()")
    input.concrete("sparse.to_scipy()")
    if input._recorded:
        raise ChainruleError(
            "sparse.to_scipy: the tensor requires grad, and the derivative would be lost: write x.detach()"
        )
    v, p = parts(input)
    if len(p.shape) != 2 or p.dense:
        raise ChainruleError(f"sparse.to_scipy: scipy.sparse has matrices only, got a tensor of shape {list(p.shape)}")
    a = innermost(v)
    if p.layout == "coo":
        return ss.coo_array((a, (p.index[0][0], p.index[0][1])), shape=p.shape)
    if p.layout == "bsc":
        return to_scipy(input.to_sparse_bsr(p.block))
    kind = {"csr": ss.csr_array, "csc": ss.csc_array, "bsr": ss.bsr_array}[p.layout]
    return kind((a, p.index[1], p.index[0]), shape=p.shape)


@public("sparse.check_sparse_tensor_invariants", out=False)
class check_sparse_tensor_invariants:
    """PyTorch's switch for checks of index data. Here they are always checked, since compiled loops trust them."""

    def __init__(self, enable: bool = True) -> None:
        pass

    @staticmethod
    def is_enabled() -> bool:
        """True: the checks are always on."""
        return True

    @staticmethod
    def enable() -> None:
        """Nothing to do: the checks are always on."""

    @staticmethod
    def disable() -> None:
        """Nothing is done: the checks are always on."""

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return f

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        pass
