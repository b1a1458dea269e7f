"""The address of a BLAS function for compiled code: of the library that NumPy has loaded, or of the one that SciPy brings.

NumPy's is in the process already; SciPy's costs an import of a tenth of a second, and brings threads of its own.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

# How a library may name its functions: with 64-bit whole numbers and with 32-bit ones, built for NumPy's wheels or for a system.
NAMES = ("scipy_{}_64_", "{}_64_", "scipy_{}_", "{}_")
_addresses: dict[str, int] = {}


def blas(name: str) -> int:
    """The address of ``name`` ("dgemm"), 0 where there is none. Whole numbers are passed in 64 bits: a library that reads 32 sees the lower ones."""
    if name not in _addresses:
        ways: tuple[Callable[[str], int], ...] = (of_numpy, of_scipy) if sys.byteorder == "little" else ()
        _addresses[name] = next((a for way in ways if (a := way(name))), 0)
    return _addresses[name]


def of_numpy(name: str) -> int:
    """That of the library that NumPy's own code was linked with, where its names can be looked up."""
    try:
        from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

        library = ctypes.CDLL(_multiarray_umath.__file__)
    except (ImportError, OSError, AttributeError):
        return 0
    for form in NAMES:
        f = getattr(library, form.format(name), None)
        if f is not None:
            return ctypes.cast(f, ctypes.c_void_p).value or 0
    return 0


def of_scipy(name: str) -> int:
    """That which SciPy exports for compiled code: the capsule's name is the function's signature."""
    try:
        from scipy.linalg import cython_blas

        capsule = cython_blas.__pyx_capi__[name]
    except (ImportError, AttributeError, KeyError):
        return 0
    title = ctypes.pythonapi.PyCapsule_GetName
    title.restype, title.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, title(capsule)) or 0
