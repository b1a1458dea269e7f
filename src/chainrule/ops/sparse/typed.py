"""``sparse.FloatTensor(indices, values, size)`` and its like: the constructors of older programs, and tests of a type and layout."""

from __future__ import annotations

from typing import Any

from ...core import dtypes as dt
from ...core.registry import public
from ...core.tensor import Tensor
from ..shape.create import zeros
from .build import sparse_coo_tensor


class _OfType(type):
    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        if args and isinstance(args[0], Tensor):  # indices and values, whose type is that of the result, as in PyTorch
            return sparse_coo_tensor(*args, device=device)
        return zeros(*(args or (0,)), dtype=cls.dtype, device=device).to_sparse()  # type: ignore[attr-defined]

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor) and x.is_sparse and x.dtype is cls.dtype  # type: ignore[attr-defined]


def _of_type(name: str, d: dt.DType) -> None:
    doc = (
        f"``sparse.{name}(indices, values, size)`` or ``sparse.{name}(*sizes)``: a sparse tensor, of sizes alone one of type "
        f"{d.name} without entries; ``isinstance(x, sparse.{name})`` tests for type and layout. New code: sparse_coo_tensor."
    )
    public(f"sparse.{name}", out=False)(_OfType(name, (), {"dtype": d, "__doc__": doc}))


for _name, _d in {
    "FloatTensor": dt.float32, "DoubleTensor": dt.float64, "HalfTensor": dt.float16, "BFloat16Tensor": dt.bfloat16,
    "ByteTensor": dt.uint8, "CharTensor": dt.int8, "ShortTensor": dt.int16, "IntTensor": dt.int32, "LongTensor": dt.int64,
}.items():  # fmt: skip
    _of_type(_name, _d)
