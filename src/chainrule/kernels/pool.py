"""Memory for large results, reused: `empty(shape, dtype)` is np.empty whose memory comes back when its last user is gone.

The kernel maps fresh memory page by page; for a 64 MB result that costs more than computing it. An array from the pool has as
its base a small owner object, and so has every view of it; when the owner dies, nobody can reach the memory any more, and only
then does it return to the free list. The list is bounded; what does not fit is given back to the system.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from typing import Any

import numpy as np

MIN_BYTES = 1 << 20  # below, the allocator's own reuse is as good and twice as fast
ALIGN = 64


def _default_limit() -> int:
    env = os.environ.get("CHAINRULE_POOL_BYTES", "")
    if env.isdigit():
        return int(env)
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        memory = 4 << 30
    return min(2 << 30, memory // 8)


class BufferPool:
    """A bounded free list of buffers by size class. Every operation on the shared state is one atomic deque call or is locked."""

    def __init__(self, limit: int):
        self.limit = limit
        self._free: dict[int, deque[np.ndarray]] = {}
        self._types: dict[int, Any] = {}
        # Reentrant: a garbage collection inside a locked section may run a buffer's __del__.
        self._lock = threading.RLock()
        self._held = self._used = self._hits = self._misses = self._dropped = 0

    def _class_of(self, nbytes: int) -> int:
        """Round up to one of eight sizes per power of two: at most an eighth is wasted."""
        step = 1 << max(12, nbytes.bit_length() - 4)
        return -(-nbytes // step) * step

    def _owner_type(self, size: int) -> Any:
        """The buffer type of a size class, whose instances give their memory back when they die."""
        pool = self

        def __del__(self: Any) -> None:
            pool._give_back(size, self.storage)

        t = type("Buffer", (ctypes.c_char * size,), {"__del__": __del__, "__slots__": ("storage",)})
        self._types[size] = t
        return t

    def _give_back(self, size: int, storage: np.ndarray) -> None:
        with self._lock:
            self._used -= size
            if self._held + size > self.limit:
                self._dropped += 1
                return
            self._held += size
            self._free.setdefault(size, deque()).append(storage)

    def _evict(self, need: int) -> None:
        """Make room below the limit for a buffer in use by dropping free ones of other sizes, the largest first."""
        for size in sorted(self._free, reverse=True):
            q = self._free[size]
            while q and self._held + need > self.limit:
                q.popleft()
                self._held -= size
                self._dropped += 1

    def empty(self, shape: tuple[int, ...], dtype: Any, least: int = MIN_BYTES) -> np.ndarray:
        """An uninitialised C-contiguous array; from the pool and 64-byte aligned if it has `least` bytes."""
        dt = dtype if type(dtype) is np.dtype else np.dtype(dtype)
        n = dt.itemsize
        for s in shape:
            n *= s
        if n < least:
            return np.empty(shape, dt)
        size = self._class_of(n)
        storage = None
        with self._lock:
            q = self._free.get(size)
            if q:
                storage = q.pop()
                self._held -= size
                self._hits += 1
            else:
                self._misses += 1
                self._evict(size)
            self._used += size
        if storage is None:
            raw = np.empty(size + ALIGN, np.uint8)
            shift = -raw.ctypes.data % ALIGN
            storage = raw[shift : shift + size]
        owner = (self._types.get(size) or self._owner_type(size)).from_buffer(storage)
        owner.storage = storage
        return np.ndarray(shape, dt, owner)

    def stats(self) -> dict[str, int]:
        """Bytes held free, bytes handed out, the limit, and how often a request was served from the free list."""
        with self._lock:
            return {
                "held_bytes": self._held,
                "used_bytes": self._used,
                "limit_bytes": self.limit,
                "hits": self._hits,
                "misses": self._misses,
                "dropped": self._dropped,
            }

    def clear(self) -> None:
        """Give all free buffers back to the system."""
        with self._lock:
            self._free.clear()
            self._held = 0


default = BufferPool(_default_limit())
if hasattr(os, "register_at_fork"):
    # Another thread may have held the lock at the moment of the fork: the child gets one that is free.
    os.register_at_fork(after_in_child=lambda: setattr(default, "_lock", threading.RLock()))
empty = default.empty
stats = default.stats
clear = default.clear
