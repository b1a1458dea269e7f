"""DLPack: memory handed from library to library, with what NumPy's own export lacks (bfloat16, memory that may not be written to)."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

_BFLOAT, _UINT = 4, 1  # DLPack's numbers of kinds of types
# Where the kind of the element type stands in DLManagedTensor and in DLManagedTensorVersioned.
_AT = {"dltensor": 20, "dltensor_versioned": 52}
_BF16 = np.dtype(ml_dtypes.bfloat16)
_NEWER = (
    np.lib.NumpyVersion(np.__version__) >= "2.1.0"
)  # NumPy 2.0 speaks the protocol's first version alone: shared, to be written to

_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _kind(capsule: Any) -> Any:
    """The byte of a capsule that says what kind its elements are."""
    name = _name(capsule)
    return ctypes.c_uint8.from_address(_pointer(capsule, name) + _AT[name.decode()])


def export(a: Any, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """The capsule of an array."""
    if type(a) is not np.ndarray:
        raise BufferError(f"__dlpack__: {type(a).__name__} has no memory of one shape; export its values, x.values()")
    bf = a.dtype == _BF16
    v = a.view(np.uint16) if bf else a
    if not v.flags.writeable and (max_version is None or not _NEWER) and copy is not False:
        v = v.copy()  # the old protocol cannot say that memory must not be written to
    if _NEWER:
        c = v.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
    else:
        c = (v.copy() if copy else v).__dlpack__(stream=stream)
    if bf:
        _kind(c).value = _BFLOAT
    return c


class _Given:
    """A capsule as an object of the protocol."""

    def __init__(self, capsule: Any, device: Any) -> None:
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **kw: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> Any:
        return self.device


def _array_of(x: Any, copy: bool | None) -> np.ndarray:
    """``np.from_dlpack(x, copy=copy)``."""
    if _NEWER:
        return np.from_dlpack(x, copy=copy)
    a = np.from_dlpack(x)
    return a.copy() if copy else a


def take(x: Any, copy: bool | None = None) -> np.ndarray:
    """The array of another library's object with ``__dlpack__``, or of a capsule of main memory."""
    if type(x).__name__ == "PyCapsule":
        x = _Given(x, (1, 0))
    try:
        return _array_of(x, copy)
    except (RuntimeError, BufferError, TypeError) as e:
        try:
            c = x.__dlpack__(**({"max_version": (1, 0)} if _NEWER else {}))
        except (TypeError, AttributeError):
            c = x.__dlpack__()
        kind = _kind(c)
        if kind.value != _BFLOAT:
            raise e from None
        kind.value = _UINT
        a = np.from_dlpack(_Given(c, x.__dlpack_device__())).view(_BF16)
        return a.copy() if copy else a
