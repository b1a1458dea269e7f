"""Storages: the memory that a family of views shares, as bytes (UntypedStorage) or as elements (TypedStorage)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.device import CPU
from ..core.dispatch import innermost
from ..core.tensor import Tensor


def _memory(x: Tensor) -> np.ndarray:
    """The whole allocation that a tensor lies in, as bytes."""
    v = innermost(x)
    if not isinstance(v, np.ndarray):
        raise NotImplementedError(f"untyped_storage: a tensor of layout {x.layout} on {x.device} has no single memory")
    while isinstance(v.base, np.ndarray):
        v = v.base
    if not v.size:
        return np.zeros(0, np.uint8)
    low, high = np.lib.array_utils.byte_bounds(v)
    return np.lib.stride_tricks.as_strided(_bytes_at(v), (high - low,), (1,))


def _bytes_at(v: np.ndarray) -> np.ndarray:
    first = np.lib.stride_tricks.as_strided(v, (1,), (v.itemsize,))
    return first.view(np.uint8)


class UntypedStorage:
    """The bytes of a tensor's memory; views of one tensor have the same."""

    def __init__(self, size: Any = 0, *, device: Any = None, _bytes: Any = None) -> None:
        self._bytes = np.zeros(int(size), np.uint8) if _bytes is None else _bytes

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    _untyped = property(untyped)

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file; with `shared`, what is written goes to the file."""
        mode: Any = "r+" if shared else "c"
        return cls(_bytes=np.asarray(np.memmap(filename, np.uint8, mode, shape=(nbytes,) if nbytes else None)))

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._bytes.__array_interface__["data"][0] if self._bytes.size else 0

    _cdata = property(data_ptr)

    def nbytes(self) -> int:
        """The number of bytes."""
        return int(self._bytes.size)

    size = __len__ = nbytes

    @property
    def device(self) -> Any:
        """The CPU."""
        return CPU

    is_cuda = is_pinned = False

    def __getitem__(self, i: Any) -> Any:
        r = self._bytes[i]
        return UntypedStorage(_bytes=r) if isinstance(i, slice) else int(r)

    def __setitem__(self, i: Any, v: Any) -> None:
        self._bytes[i] = v

    def __iter__(self) -> Any:
        return iter(self._bytes.tolist())

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        return self._bytes.tolist()

    def fill_(self, v: int) -> UntypedStorage:
        """Write one byte everywhere."""
        self._bytes[...] = v
        return self

    def copy_(self, source: UntypedStorage, non_blocking: Any = None) -> UntypedStorage:
        """Write the bytes of another."""
        self._bytes[...] = source._bytes
        return self

    def as_tensor(self, dtype: Any) -> Tensor:
        """The memory itself as a tensor of numbers of a type."""
        return Tensor(self._bytes.view(dtype.np))

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage(_bytes=self._bytes.copy())

    def cpu(self) -> UntypedStorage:
        """Itself."""
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Only to the size it has: tensors hold arrays, whose memory cannot grow under them."""
        if size != self.nbytes():
            raise NotImplementedError(
                f"UntypedStorage.resize_: from {self.nbytes()} to {size} bytes; make a new tensor instead"
            )
        return self

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, UntypedStorage)
            and self.data_ptr() == other.data_ptr()
            and self.nbytes() == other.nbytes()
        )

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def __repr__(self) -> str:
        return f"UntypedStorage(nbytes={self.nbytes()})"


class TypedStorage:
    """The elements of a tensor's memory, one after the other."""

    def __init__(
        self, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None, _internal: bool = False
    ) -> None:
        self.dtype = dt.get_default_dtype() if dtype is None else dtype
        self._untyped = wrap_storage or UntypedStorage((args[0] if args else 0) * self.dtype.itemsize)
        self._array = self._untyped._bytes.view(self.dtype.np)

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped

    _untyped_storage = property(untyped)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped.data_ptr()

    def size(self) -> int:
        """The number of elements."""
        return int(self._array.size)

    __len__ = size

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._untyped.nbytes()

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def __getitem__(self, i: Any) -> Any:
        return self._array[i].item() if not isinstance(i, slice) else self._array[i].tolist()

    def __setitem__(self, i: Any, v: Any) -> None:
        self._array[i] = v

    def __iter__(self) -> Any:
        return iter(self._array.tolist())

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        return self._array.tolist()

    def as_tensor(self, dtype: Any) -> Tensor:
        """The memory itself as a tensor of its numbers."""
        return Tensor(self._array)

    def fill_(self, v: Any) -> TypedStorage:
        """Write one number everywhere."""
        self._array[...] = v
        return self

    def __repr__(self) -> str:
        return f"TypedStorage(dtype={self.dtype}, size={self.size()})"


_LegacyStorage = TypedStorage


def _of_type(name: str, d: dt.DType) -> type:
    def __init__(self: Any, *args: Any, **kw: Any) -> None:
        TypedStorage.__init__(self, *args, **{**kw, "dtype": d})

    return type(name, (TypedStorage,), {"__init__": __init__, "__doc__": f"The elements of memory, of type {d.name}."})


BY_TYPE = {
    f"{n}Storage": _of_type(f"{n}Storage", d)
    for n, d in {
        "Float": dt.float32, "Double": dt.float64, "Half": dt.float16, "BFloat16": dt.bfloat16, "Byte": dt.uint8, "Char": dt.int8,
        "Short": dt.int16, "Int": dt.int32, "Long": dt.int64, "Bool": dt.bool_, "ComplexFloat": dt.complex64, "ComplexDouble": dt.complex128,
    }.items()
}  # fmt: skip
globals().update(BY_TYPE)


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes of the memory that this tensor's family of views shares."""
    return UntypedStorage(_bytes=_memory(self))


def storage(self: Tensor) -> TypedStorage:
    """The elements of the memory that this tensor's family of views shares."""
    return TypedStorage(wrap_storage=untyped_storage(self), dtype=self.dtype)


def over(storage: Any, offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor over a storage."""
    a = storage._array
    steps = [s * a.itemsize for s in stride]
    return Tensor(np.lib.stride_tricks.as_strided(a[offset:], tuple(size), steps))
