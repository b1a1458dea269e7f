"""Storages: the memory that a family of views shares, as bytes (UntypedStorage) or as elements (TypedStorage)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.device import CPU, META, place
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
    """The bytes of a tensor's memory; views of one tensor have the same. On the meta device only their number is known."""

    filename: str | None = None
    _lent = False  # whether the memory is a tensor's

    def __init__(self, size: Any = 0, *, device: Any = None, _bytes: Any = None, _lent: bool = False) -> None:
        self._meta = device is not None and place(device) is not None
        if _bytes is None and not isinstance(size, int | np.integer):
            _bytes = np.asarray(list(size), np.uint8)
        self._bytes = np.zeros(int(size), np.uint8) if _bytes is None else _bytes
        if self._meta:
            self._bytes = np.broadcast_to(np.zeros((), np.uint8), (self._bytes.size,))
        self._lent = _lent

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    _untyped = property(untyped)

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file; with `shared`, what is written goes to the file."""
        mode: Any = "r+" if shared else "c"
        made = cls(_bytes=np.asarray(np.memmap(filename, np.uint8, mode, shape=(nbytes,) if nbytes else None)))
        made.filename = str(filename) if shared else None
        return made

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._bytes.__array_interface__["data"][0] if self._bytes.size and not self._meta else 0

    _cdata = property(data_ptr)

    def nbytes(self) -> int:
        """The number of bytes."""
        return int(self._bytes.size)

    size = __len__ = nbytes

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    @property
    def device(self) -> Any:
        """The CPU, or the meta device."""
        return META if self._meta else CPU

    is_cuda = is_hpu = False

    def is_pinned(self, device: Any = "cuda") -> bool:
        """No."""
        return False

    def _readable(self, what: str = "Not available for") -> np.ndarray:
        if self._meta:
            raise NotImplementedError(f"{what} 'meta' device type: a storage there has no bytes")
        return self._bytes

    def __getitem__(self, i: Any) -> Any:
        r = self._readable()[i]
        return UntypedStorage(_bytes=r) if isinstance(i, slice) else int(r)

    def __setitem__(self, i: Any, v: Any) -> None:
        self._readable()[i] = v

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        return self._readable().tolist()

    def fill_(self, v: int) -> UntypedStorage:
        """Write one byte everywhere."""
        self._readable()[...] = v
        return self

    def copy_(self, source: UntypedStorage, non_blocking: Any = None) -> UntypedStorage:
        """Write the bytes of another."""
        self._readable()[...] = source._readable("Cannot copy out of")
        return self

    def byteswap(self, dtype: Any) -> None:
        """Turn the bytes of every number around, or of every part of a complex one."""
        width = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        self._bytes[...] = self._readable().reshape(-1, width)[:, ::-1].reshape(-1)

    def as_tensor(self, dtype: Any) -> Tensor:
        """The memory itself as a tensor of numbers of a type."""
        return Tensor(self._readable().view(dtype.np))

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage(_bytes=self._bytes.copy(), device=self.device)

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        for x in memo.get(id(memo), ()):  # what was copied before: a tensor's copy has the copy of its memory
            if isinstance(x, Tensor) and not x.is_meta and not x.is_nested and x.layout.name == "strided":
                whole = x.is_contiguous() and x.numel() * x.dtype.itemsize == self.nbytes()
                if whole and x.data_ptr() == self.data_ptr() != 0:
                    return untyped_storage(memo[id(x)])
        # Copies of one memory are one.
        copies = memo.setdefault("torch", {})  # type: ignore[call-overload]
        key = self.data_ptr() or id(self)
        if key not in copies:
            copies[key] = self.clone()
        return copies[key]

    def cpu(self) -> UntypedStorage:
        """Itself."""
        self._readable("Cannot copy out of")
        return self

    def is_shared(self) -> bool:
        """No: processes share memory by other means."""
        return False

    def share_memory_(self) -> UntypedStorage:
        """Itself: a process that is started later begins with a copy of all memory."""
        if self._meta:
            raise RuntimeError("share_memory_: only available on CPU")
        return self

    def resizable(self) -> bool:
        """Whether the memory is no tensor's."""
        return not self._lent

    def resize_(self, size: int) -> UntypedStorage:
        """Another number of bytes. A tensor's storage keeps the one it has: tensors hold arrays, whose memory cannot grow under them."""
        have = self.nbytes()
        if size == have:
            return self
        if self._lent:
            raise NotImplementedError(f"UntypedStorage.resize_: from {have} to {size} bytes; make a new tensor instead")
        if self._meta:
            self._bytes = np.broadcast_to(np.zeros((), np.uint8), (size,))
        else:
            new = np.zeros(size, np.uint8)
            new[:have] = self._bytes[:size]
            self._bytes = new
        return self

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, UntypedStorage)
            and self.data_ptr() == other.data_ptr()
            and self.nbytes() == other.nbytes()
        )

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def __reduce__(self) -> Any:
        return _untyped_of, (self._readable("Cannot copy out of").tobytes(),)

    def __repr__(self) -> str:
        return f"UntypedStorage(nbytes={self.nbytes()})"


def _untyped_of(data: bytes) -> UntypedStorage:
    return UntypedStorage(_bytes=np.frombuffer(data, np.uint8).copy())


def _typed_of(data: bytes, dtype: Any) -> TypedStorage:
    return TypedStorage(wrap_storage=_untyped_of(data), dtype=dtype)


class TypedStorage:
    """The elements of a tensor's memory, one after the other."""

    dtype: Any
    is_sparse = is_cuda = is_hpu = False

    def __init__(
        self, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None, _internal: bool = False
    ) -> None:
        name = type(self).__name__
        if dtype is not None and not isinstance(dtype, dt.DType):
            raise TypeError(f"{name}: Argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
        if wrap_storage is not None:
            if args:
                raise RuntimeError(f"{name}: No positional arguments should be given when using 'wrap_storage'")
            if dtype is None:
                raise RuntimeError(f"{name}: Argument 'dtype' must be specified with 'wrap_storage'")
            if device is not None:
                raise RuntimeError(f"{name}: Argument 'device' should not be specified when 'wrap_storage' is given")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"{name}: Argument 'wrap_storage' must be UntypedStorage, not {type(wrap_storage).__name__}"
                )
        self.dtype = dt.get_default_dtype() if dtype is None else dtype
        if len(args) > 1:
            raise RuntimeError(f"{name}: Too many positional arguments: a size or a sequence of elements")
        if wrap_storage is not None:
            self._untyped = wrap_storage
        elif not args or isinstance(args[0], int | np.integer):
            self._untyped = UntypedStorage((args[0] if args else 0) * self.dtype.itemsize, device=_known(device))
        else:
            self._untyped = UntypedStorage(_bytes=_elements(name, args[0], self.dtype), device=_known(device))

    @property
    def _array(self) -> np.ndarray:
        whole = self._untyped.nbytes() // self.dtype.itemsize * self.dtype.itemsize
        return self._untyped._readable()[:whole].view(self.dtype.np)

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped

    _untyped_storage = property(untyped)
    _cdata = property(lambda self: self._untyped._cdata)

    @property
    def device(self) -> Any:
        """The CPU, or the meta device."""
        return self._untyped.device

    @property
    def filename(self) -> str | None:
        """The file that the memory is mapped to, if it is."""
        return self._untyped.filename

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped.data_ptr()

    def size(self) -> int:
        """The number of elements."""
        return self._untyped.nbytes() // self.dtype.itemsize

    __len__ = size

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._untyped.nbytes()

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def pickle_storage_type(self) -> str:
        """The name of the class for elements of this type."""
        return _NAMES[self.dtype.name]

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the class for elements of this type; or a copy with elements of another type."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        return self.to_type(dtype if isinstance(dtype, dt.DType) else _DTYPES[str(dtype).rpartition(".")[2]])

    def to_type(self, dtype: dt.DType) -> TypedStorage:
        """A copy with elements of another type."""
        a = Tensor(self._array).to(dtype)._value
        return TypedStorage(wrap_storage=UntypedStorage(_bytes=a.copy().view(np.uint8)), dtype=dtype)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            self._untyped._readable()
            raise RuntimeError(
                f"slices are only supported in UntypedStorage.__getitem__, got {i}; write storage.tolist()"
            )
        if not isinstance(i, int | np.integer):
            raise RuntimeError(f"can't index a {type(self).__name__} with {type(i).__name__}")
        return self._array[i].item()

    def __setitem__(self, i: Any, v: Any) -> None:
        if isinstance(v, TypedStorage | UntypedStorage):
            raise RuntimeError(f"cannot set item with value type {type(v).__name__}")
        if not isinstance(i, int | np.integer | slice):
            raise RuntimeError(f"can't index a {type(self).__name__} with {type(i).__name__}")
        self._array[i] = v

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        return self._array.tolist()

    def as_tensor(self, dtype: Any) -> Tensor:
        """The memory itself as a tensor of its numbers, which must be of that type."""
        if dtype is not self.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {dtype} or an UntypedStorage, but got one of type {self.dtype} for argument 'storage'"
            )
        return Tensor(self._array)

    def fill_(self, v: Any) -> TypedStorage:
        """Write one number everywhere."""
        self[:] = v
        return self

    def copy_(self, source: Any, non_blocking: Any = None) -> TypedStorage:
        """Write the elements of another."""
        source.untyped()._readable("Cannot copy out of")
        self._array[...] = source._array if isinstance(source, TypedStorage) else source._bytes.view(self.dtype.np)
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        return TypedStorage(wrap_storage=self._untyped.clone(), dtype=self.dtype)

    __copy__ = clone

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self._untyped.nbytes()

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped.__deepcopy__(memo), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        """Itself."""
        self._untyped.cpu()
        return self

    def resize_(self, size: int) -> None:
        """Another number of elements, where the memory is no tensor's."""
        self._untyped.resize_(size * self.dtype.itemsize)

    def resizable(self) -> bool:
        """Whether the memory is no tensor's."""
        return self._untyped.resizable()

    def is_pinned(self, device: Any = "cuda") -> bool:
        """No."""
        return False

    def is_shared(self) -> bool:
        """No: processes share memory by other means."""
        return False

    def share_memory_(self) -> TypedStorage:
        """Itself: a process that is started later begins with a copy of all memory."""
        self._untyped.share_memory_()
        return self

    @classmethod
    def from_buffer(cls, *args: Any, **kw: Any) -> Any:
        """A copy of the elements in a buffer: of the classes for one type."""
        raise RuntimeError("from_buffer: only available for the classes of one type, FloatStorage and so on")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.dtype is other.dtype and self._untyped == other._untyped

    def __hash__(self) -> int:
        return hash(self._untyped)

    def __reduce__(self) -> Any:
        return _typed_of, (self._untyped._readable("Cannot copy out of").tobytes(), self.dtype)

    def __repr__(self) -> str:
        return f"TypedStorage(dtype={self.dtype}, size={self.size()})"

    # Under these names PyTorch's own modules call them.
    _size, _nbytes, _element_size, _data_ptr, _resize_ = size, nbytes, element_size, data_ptr, resize_
    _getitem, _setitem, _is_shared, _share_memory_ = __getitem__, __setitem__, is_shared, share_memory_
    _pickle_storage_type, _deepcopy = pickle_storage_type, __deepcopy__


def _known(device: Any) -> Any:
    try:
        return None if device is None else (place(device) and "meta")
    except RuntimeError:
        raise RuntimeError(f"TypedStorage: Storage device not recognized: {device}") from None


def _elements(name: str, data: Any, dtype: dt.DType) -> np.ndarray:
    """The bytes of a sequence of numbers."""
    if isinstance(data, str | bytes):
        raise TypeError(f"{name}: invalid data type '{type(data).__name__}'")
    if not isinstance(data, Sequence):
        raise TypeError(
            f"{name}: Argument type not recognized: {type(data).__name__}; a size or a sequence of elements"
        )
    from ..core.registry import PUBLIC

    return np.ascontiguousarray(PUBLIC["tensor"](list(data), dtype=dtype)._value).view(np.uint8)


class _OfOneType(type):
    """The class of FloatStorage and its like: storages of that type are instances, whatever class they were made by."""

    def __instancecheck__(cls, x: Any) -> bool:
        return type.__instancecheck__(cls, x) or (
            isinstance(x, TypedStorage) and x.dtype is cls.__dict__.get("dtype", x)
        )


class _LegacyStorage(TypedStorage, metaclass=_OfOneType):
    """Memory for elements of one type."""

    def __init__(self, *args: Any, **kw: Any) -> None:
        name, d = type(self).__name__, type(self).__dict__.get("dtype")
        if d is None:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        for k in ("device", "dtype"):
            if k in kw:
                raise RuntimeError(f"{name}: '{k}' cannot be specified: it belongs to the class")
        if "wrap_storage" in kw and not isinstance(kw["wrap_storage"], UntypedStorage) and not args:
            raise TypeError(
                f"{name}: Argument 'wrap_storage' must be UntypedStorage, not {type(kw['wrap_storage']).__name__}"
            )
        super().__init__(*args, **kw, dtype=d)

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, size: int = 0) -> TypedStorage:
        """The elements of a file; with `shared`, what is written goes to the file."""
        d = cls.__dict__["dtype"]
        return cls(wrap_storage=UntypedStorage.from_file(filename, shared, size * d.itemsize))

    @classmethod
    def from_buffer(cls, buffer: Any, byte_order: str = "native", count: int = -1, offset: int = 0) -> TypedStorage:
        """A copy of the elements in a buffer of bytes, which lie there in "native", "little" or "big" order."""
        d = cls.__dict__["dtype"]
        data = np.frombuffer(buffer, np.uint8, offset=offset)
        data = data[: count * d.itemsize if count >= 0 else data.size // d.itemsize * d.itemsize].copy()
        made = UntypedStorage(_bytes=(data != 0).view(np.uint8) if d is dt.bool_ else data)
        if byte_order not in ("native", sys.byteorder):
            made.byteswap(d)
        return cls(wrap_storage=made)


_DTYPES = {
    f"{n}Storage": d
    for n, d in {
        "Float": dt.float32, "Double": dt.float64, "Half": dt.float16, "BFloat16": dt.bfloat16, "Byte": dt.uint8, "Char": dt.int8,
        "Short": dt.int16, "Int": dt.int32, "Long": dt.int64, "Bool": dt.bool_, "ComplexFloat": dt.complex64, "ComplexDouble": dt.complex128,
    }.items()
}  # fmt: skip
_NAMES = {d.name: n for n, d in _DTYPES.items()}
BY_TYPE = {
    n: _OfOneType(
        n, (_LegacyStorage,), {"dtype": d, "_dtype": d, "__doc__": f"The elements of memory, of type {d.name}."}
    )
    for n, d in _DTYPES.items()
}
globals().update(BY_TYPE)
Storage = BY_TYPE["FloatStorage"]
for _name, _d in _DTYPES.items():  # storage.float(), storage.complex_double(), ...
    _method = {"ComplexFloatStorage": "complex_float", "ComplexDoubleStorage": "complex_double"}.get(
        _name, _name.removesuffix("Storage").lower()
    )
    setattr(TypedStorage, _method, lambda self, _d=_d: self.to_type(_d))


def _dtype_to_storage_type_map() -> dict[dt.DType, str]:
    """The names of the classes for one type, by type."""
    return {d: n for n, d in _DTYPES.items()}


def _storage_type_to_dtype_map() -> dict[str, dt.DType]:
    """The types of the classes for one type, by name."""
    return dict(_DTYPES)


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes of the memory that this tensor's family of views shares."""
    if self.is_meta:
        return UntypedStorage(self.numel() * self.dtype.itemsize, device="meta")
    return UntypedStorage(_bytes=_memory(self), _lent=True)


def storage(self: Tensor) -> TypedStorage:
    """The elements of the memory that this tensor's family of views shares."""
    return TypedStorage(wrap_storage=untyped_storage(self), dtype=self.dtype)


def over(storage: Any, offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor over a storage."""
    a = storage._array
    steps = [s * a.itemsize for s in stride]
    return Tensor(np.lib.stride_tricks.as_strided(a[offset:], tuple(size), steps))
