"""The sparse payload: numbers, and the pattern they stand in."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core import payload
from ...core.errors import ChainruleError
from .pattern import Pattern, place

ndarray = np.ndarray
# The compressed and the plain indices of each layout.
NAMES = {
    "csr": ["crow_indices", "col_indices"],
    "csc": ["ccol_indices", "row_indices"],
    "bsr": ["crow_indices", "col_indices"],
    "bsc": ["ccol_indices", "row_indices"],
}


class SparseArray:
    """``values[*lead, *pattern.head, *dense]`` in a pattern; `lead` are axes in front that share it (a batch of vmap)."""

    __slots__ = ("__weakref__", "pattern", "values")
    is_nested = False
    printed_as = "tensor"
    base = None

    def __init__(self, values: ndarray, pattern: Pattern) -> None:
        if not payload.COMPOSED:
            payload.COMPOSED.append(SparseArray)
        self.values, self.pattern = values, pattern

    @property
    def layout(self) -> str:
        return f"sparse_{self.pattern.layout}"

    @property
    def lead(self) -> tuple[int, ...]:
        """The sizes of the axes in front that share the pattern."""
        return self.values.shape[: self.values.ndim - len(self.pattern.head) - self.pattern.dense]

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.lead, *self.pattern.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def itemsize(self) -> int:
        return self.values.itemsize

    @property
    def size(self) -> int:
        """The number of elements, those that are not stored counted too."""
        n = 1
        for s in self.shape:
            n *= s
        return n

    @property
    def strides(self) -> tuple[int, ...]:
        raise ChainruleError("a sparse tensor has no strides: look at its indices and values()")

    @property
    def flags(self) -> Any:
        return self.values.flags

    def astype(self, d: Any, copy: bool = True) -> SparseArray:
        return SparseArray(self.values.astype(d, copy=copy), self.pattern)

    def copy(self, order: str = "C") -> SparseArray:
        return SparseArray(self.values.copy(), self.pattern)

    def tolist(self) -> Any:
        raise ChainruleError("tolist() of a sparse tensor: write x.to_dense().tolist(), or x.values().tolist()")

    def reshape(self, *shape: Any) -> Any:
        """For numbers read off a tensor of one element."""
        return place(self.values, self.pattern).reshape(*shape)

    def text(self) -> str:
        """Indices, numbers and sizes, as they print."""
        from ...core import device
        from ...core.printing import array_text

        p, v = self.pattern, self.values
        if self.lead:
            p = p.repeated(self.lead)
            v = v.reshape(p.values_shape)
        names = ["indices"] if p.layout == "coo" else NAMES[p.layout]
        arrays = [
            *zip(names, p.index, strict=True),
            ("values", v.astype(dt.WORK[v.dtype]) if v.dtype in dt.WORK else v),
        ]
        lines = [f"{n}=tensor({array_text(np.asarray(a), 15 + len(n))})" for n, a in arrays]
        return ",\n       ".join([*lines, f"size={p.shape}, nnz={p.nnz}, layout={getattr(device, self.layout)!r}"])

    def __len__(self) -> int:
        return self.shape[0]

    def __reduce__(self) -> Any:
        p = self.pattern
        return _rebuild, (self.values, p.layout, p.shape, p.index, p.dense, p.block, p.coalesced)

    def __deepcopy__(self, memo: Any) -> SparseArray:
        return self.copy()

    def _no_array(self) -> ndarray:
        raise ChainruleError("a sparse tensor is not one array: write x.to_dense().numpy() or x.values().numpy()")


def _rebuild(values: Any, layout: str, shape: Any, index: Any, dense: int, block: Any, coalesced: bool) -> SparseArray:
    """What a pickle holds, checked as what a user gives is: compiled loops follow the indices wherever they point."""
    from ...core.registry import PUBLIC
    from ...core.tensor import Tensor

    parts = [Tensor(np.asarray(a)) for a in (*index, values)]
    if layout == "coo":
        made = PUBLIC["sparse_coo_tensor"](*parts, tuple(shape), is_coalesced=coalesced or None)
    else:
        made = PUBLIC[f"sparse_{layout}_tensor"](*parts, tuple(shape))
    return made._value


class SparsePayload(payload.Payload):
    """Sparse arrays as what tensors hold. Few ops have a body on them: the others are compositions of ops on the numbers."""

    array = SparseArray
    layout = "sparse_coo"

    def body(self, op: Any) -> Any:
        body = op.bodies.get(SparseArray)
        if body is None:
            raise _refused(op)
        return body

    def form(self, op: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        if SparseArray in op.bodies:
            return None
        from . import forms

        y = forms.run(op, args, kw)
        if y is None:
            raise _refused(op)
        return y

    def mapped(self, x: Any) -> Any:
        from ...ops.sparse.convert import unstack

        return unstack(x)

    def layout_of(self, x: Any) -> str:
        return x.layout

    def zeros(self, like: Any, shape: tuple[Any, ...], dtype: np.dtype[Any]) -> Any:
        p = like.pattern
        return SparseArray(np.zeros((*shape[: len(shape) - p.ndim], *p.values_shape), dtype), p)

    def write(self, target: Any, value: Any) -> bool:
        return False

    def numpy(self, x: Any) -> Any:
        return x._no_array()


def _refused(op: Any) -> Exception:
    return NotImplementedError(
        f"{op.name}: not available for sparse tensors. Write x.to_dense() for a dense one, or work on x.values()"
    )


payload.register(SparsePayload())
