"""Reading PyTorch's checkpoints: a zip of one pickle and raw storages. Nothing of the file is run.

The pickle is read by an unpickler that knows a list of names and builds tensors and plain containers; every size is checked against the bytes that
are there before memory is asked for. Whatever else the file holds raises a :class:`CheckpointError`.
"""

from __future__ import annotations

import collections
import io
import pickle
import pickletools
import struct
import warnings
import zipfile
import zlib
from typing import Any

import ml_dtypes
import numpy as np

from ..core import dtypes as dt
from ..core.errors import ChainruleError
from ..core.tensor import Size, Tensor

_STORAGES = {
    "FloatStorage": np.float32, "DoubleStorage": np.float64, "HalfStorage": np.float16, "BFloat16Storage": ml_dtypes.bfloat16,
    "ByteStorage": np.uint8, "CharStorage": np.int8, "ShortStorage": np.int16, "IntStorage": np.int32, "LongStorage": np.int64,
    "BoolStorage": np.bool_, "ComplexFloatStorage": np.complex64, "ComplexDoubleStorage": np.complex128, "UntypedStorage": np.uint8,
}  # fmt: skip
_PLAIN = frozenset("set frozenset complex bytearray slice range".split())
_MAX_PICKLE = 1 << 28  # bytes: a pickle of names and shapes is far smaller
_MAX_RATIO = 1100  # what deflate can make of a byte, a little rounded up


class CheckpointError(ChainruleError, pickle.UnpicklingError):
    """A checkpoint that is broken, or that holds something else than tensors and plain containers."""


class _Kind:
    """A storage class of PyTorch's, by the type of its elements."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)


class _Storage:
    """The elements that a tensor is a view of."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = data


def _number(x: Any, what: str) -> int:
    if type(x) is not int or x < 0:
        raise CheckpointError(f"load: {what} must be a number of elements, got {str(x)[:60]!r}")
    return x


def _rebuild_tensor(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, *rest: Any
) -> Tensor:
    """A view of a storage, if it lies inside it."""
    if (
        not isinstance(storage, _Storage)
        or not isinstance(size, tuple)
        or not isinstance(stride, tuple)
        or len(size) != len(stride)
    ):
        raise CheckpointError("load: a tensor without a storage, sizes and strides of one length")
    if len(size) > 64:
        raise CheckpointError(f"load: a tensor of {len(size)} dimensions")
    start = _number(offset, "an offset")
    shape, steps = [_number(n, "a size") for n in size], [_number(n, "a stride") for n in stride]
    data = storage.data
    last = start
    for n, s in zip(shape, steps, strict=True):
        last += (n - 1) * s if n else 0
    if 0 not in shape and last >= data.size:
        raise CheckpointError(
            f"load: a tensor of sizes {shape} and strides {steps} reaches beyond its storage of {data.size} elements"
        )
    count = 1
    for n in shape:
        count *= n
    if count > max(data.size, 1) and count * data.itemsize > 1 << 30:
        raise CheckpointError(f"load: a tensor of sizes {shape} claims {count} elements of a storage of {data.size}")
    if 0 in shape:
        a = np.zeros(shape, data.dtype)
    else:
        a = np.lib.stride_tricks.as_strided(data[start:], shape, [s * data.itemsize for s in steps])
        a = a.copy() if any(s == 0 and n > 1 for s, n in zip(steps, shape, strict=True)) else a
    t = Tensor(a)
    return t.requires_grad_() if requires_grad is True and t.dtype.category >= dt.FLOAT else t


def _rebuild_parameter(data: Any, requires_grad: Any = True, *rest: Any) -> Any:
    """A parameter around a tensor."""
    if not isinstance(data, Tensor):
        raise CheckpointError("load: a parameter without a tensor")
    from ..nn.parameter import Parameter

    return Parameter(data.detach(), requires_grad=bool(requires_grad) and data.dtype.category >= dt.FLOAT)


def _size(x: Any = ()) -> Size:
    return Size([_number(n, "a size") for n in x])


class _Reader(pickle.Unpickler):
    """An unpickler that knows the names of tensors and of plain containers, and no other."""

    def __init__(self, file: Any, storages: Any) -> None:
        super().__init__(file)
        self.storages = storages

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in (("collections", "OrderedDict"), ("collections", "Counter")):
            return getattr(collections, name)
        if module == "builtins" and name in _PLAIN and name not in ("bytearray", "range"):
            return {"set": set, "frozenset": frozenset, "complex": complex, "slice": slice}[name]
        if module == "torch._utils" and name in ("_rebuild_tensor_v2", "_rebuild_tensor"):
            return _rebuild_tensor
        if module == "torch._utils" and name in ("_rebuild_parameter", "_rebuild_parameter_with_state"):
            return _rebuild_parameter
        if module in ("torch", "torch.storage") and name in _STORAGES:
            return _Kind(_STORAGES[name])
        if (module, name) == ("torch", "Size"):
            return _size
        if module == "torch" and name in dt.NAMES:
            return dt.NAMES[name]
        if (module, name) == ("torch", "device"):
            return str
        raise CheckpointError(
            f"load: the file names {module}.{name}, which is neither a tensor nor a plain container; nothing of it was run. "
            f"Save the state_dict() of a module rather than the module"
        )

    def persistent_load(self, pid: Any) -> Any:
        if not (isinstance(pid, tuple) and len(pid) >= 5 and pid[0] == "storage" and isinstance(pid[1], _Kind)):
            raise CheckpointError("load: a reference to data that is no storage")
        return self.storages(pid[1].dtype, pid[2], _number(pid[4], "the length of a storage"), pid[1])


def is_zip(file: Any) -> bool:
    """Whether a file begins as a zip archive does."""
    at = file.tell()
    head = file.read(4)
    file.seek(at)
    return head[:2] == b"PK"


def read_zip(file: Any) -> Any:
    """The object that ``torch.save`` wrote."""
    try:
        with zipfile.ZipFile(file) as z:
            return _read(z)
    except CheckpointError:
        raise
    except (
        zipfile.BadZipFile, zlib.error, pickle.UnpicklingError, EOFError, struct.error, KeyError, IndexError, ValueError, TypeError, AttributeError,
        NotImplementedError, RuntimeError, OverflowError, MemoryError, RecursionError, UnicodeError, OSError, AssertionError, ImportError,
    ) as e:  # fmt: skip
        raise CheckpointError(f"load: the checkpoint is broken ({type(e).__name__}: {str(e)[:200]})") from None


def _entry(z: zipfile.ZipFile, name: str, limit: int) -> bytes:
    info = z.getinfo(name)
    if info.file_size > limit or info.file_size > (info.compress_size + 1) * _MAX_RATIO:
        raise CheckpointError(f"load: {name!r} claims {info.file_size} bytes, from {info.compress_size} in the file")
    with z.open(info) as f:
        data = f.read(info.file_size + 1)
    if len(data) != info.file_size:
        raise CheckpointError(f"load: {name!r} has {len(data)} bytes where {info.file_size} are claimed")
    return data


def _read(z: zipfile.ZipFile) -> Any:
    names = z.namelist()
    found = [n for n in names if (n.endswith("/data.pkl") and n.count("/") == 1) or n == "data.pkl"]
    if len(found) != 1 or len(set(names)) != len(names):
        raise CheckpointError(
            "load: this zip is no checkpoint of PyTorch's: it must have one data.pkl, and no name twice"
        )
    root = found[0][: -len("data.pkl")]
    if any(f"{root}{n}" in names for n in ("constants.pkl", "code/")):
        raise CheckpointError("load: this is a TorchScript archive, which holds code; save the state_dict() instead")
    big = False
    if f"{root}byteorder" in names:
        order = _entry(z, f"{root}byteorder", 16).strip()
        if order not in (b"little", b"big"):
            raise CheckpointError(f"load: the byte order is {order[:16]!r}, neither little nor big")
        big = order == b"big"
    made: dict[str, np.ndarray] = {}

    def storage(d: np.dtype[Any], key: Any, count: int, kind: Any) -> _Storage:
        if not isinstance(key, str) or not key.isalnum():
            raise CheckpointError(f"load: {str(key)[:60]!r} is no name of a storage")
        if key not in made:
            raw = _entry(z, f"{root}data/{key}", 1 << 62)
            made[key] = np.frombuffer(bytearray(raw), np.uint8)
        raw_bytes = made[key]
        if raw_bytes.size < count * d.itemsize:
            raise CheckpointError(
                f"load: storage {key!r} has {raw_bytes.size} bytes, {count} elements of {d} are claimed"
            )
        a = raw_bytes[: count * d.itemsize].view(d)
        return _Storage(a.byteswap() if big and d.itemsize > 1 else a)

    data = _entry(z, found[0], _MAX_PICKLE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of strings in a broken pickle
        check_opcodes(data)
        return _Reader(io.BytesIO(data), storage).load()


def check_opcodes(data: bytes) -> None:
    """Refuse opcodes that no file of tensors has, and places of the memo so far away that making room for them takes all memory."""
    for count, (op, arg, _) in enumerate(pickletools.genops(data)):
        if op.name in _REFUSED:
            raise CheckpointError(f"load: the pickle uses {op.name}, which no checkpoint needs; nothing of it was run")
        if op.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(arg or 0) > count:
            raise CheckpointError(
                f"load: the pickle remembers an object under the number {arg}, with {count} steps before it"
            )


_REFUSED = frozenset("INST OBJ EXT1 EXT2 EXT4 NEXT_BUFFER READONLY_BUFFER NEWOBJ_EX".split())
