"""The way from a public function to compiled code in about two microseconds.

What a call needs to know (is there a kernel for these types, which loops, which sizes, how much scratch memory) depends only on
types and shapes. It is worked out once per such key and kept, so that a call is a dictionary look-up, a few flag tests, the
allocation of results and one foreign call.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod as prod
from typing import Any

import numpy as np

from ..fallback import NotSupported as NotSupported
from . import compiler
from .lang import NUMPY_NAMES, DType, bf16, f16, f64, precise_type

LIMIT = 4096

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
_TYPES: dict[Any, DType] = {np.dtype(n): NUMPY_NAMES[n] for n in ("float32", "float64", "float16")}


class Calls(dict[Any, Any]):
    """prepare(*key), remembered; None where it raised NotSupported. Bounded: forgotten as a whole when full."""

    def __init__(self, prepare: Callable[..., Any]):
        super().__init__()
        self.prepare = prepare

    def __missing__(self, key: tuple[Any, ...]) -> Any:
        if not compiler.available():
            return None
        if len(self) >= LIMIT:
            self.clear()
        try:
            value = self.prepare(*key)
        except NotSupported:
            if compiler.paused.on:
                return None
            value = None
        self[key] = value
        return value


def kernel_type(dtype: np.dtype | None) -> DType:
    """The kernels' name of a NumPy float type; NotSupported if there is none on this machine."""
    t = _TYPES.get(dtype)
    if t is None and dtype is not None and dtype.name == "bfloat16":
        t = _TYPES[dtype] = bf16
    if t is None or (t is f16 and not compiler.has_feature("f16c")):
        raise NotSupported
    return t


def vector_type(dtype: np.dtype | None, like: DType) -> DType | None:
    """The type of an optional per-channel array beside elements of type `like`: any float, but f64 only with f64."""
    if dtype is None:
        return None
    t = kernel_type(dtype)
    if (t is f64) != (like is f64):
        raise NotSupported
    return t


def stats_of(t: DType) -> np.dtype:
    """NumPy's name of the type of kept statistics."""
    return F64 if t is f64 else F32


def scratch_of(t: DType) -> np.dtype:
    """NumPy's name of the type that partial sums of elements of type t have."""
    return F64 if precise_type(t) is f64 else F32


def _cache_bytes() -> int:
    """The size of the last cache before memory; 32 MB where the system does not tell."""
    try:
        with open("/sys/devices/system/cpu/cpu0/cache/index3/size") as f:
            return int(f.read().strip().removesuffix("K")) << 10
    except (OSError, ValueError):
        return 32 << 20


STREAM_BYTES = _cache_bytes() // 4 * 3  # work that goes through more than this does not stay in the cache


def streams(nbytes: int, row_bytes: int, arrays: int = 2) -> bool:
    """Should a result of this size bypass the cache, where its rows start at cache lines: the kernel goes through so many such arrays."""
    return nbytes * arrays >= STREAM_BYTES and row_bytes % 64 == 0
