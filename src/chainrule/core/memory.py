"""Freed memory stays with the process: results of a few hundred kilobytes do not pay for page faults again and again.

The C library gives the top of its heap back to the system when more than 128 kB of it are free, and takes larger blocks from the
system one by one. A program that makes and drops arrays of that size then spends most of its time in page faults
(docs/decisions/005-memory.md has the numbers). When a program frees its first block of 32 MB, glibc raises both limits by itself;
here they are set to the same values at once, when the library is imported. ``CHAINRULE_MALLOC=0`` leaves them alone.
"""

from __future__ import annotations

import ctypes
import os

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 64 << 20  # free memory at the top of the heap that is kept
BLOCK_BYTES = 32 << 20  # larger blocks come from the system; the library allows no more


def keep_freed_memory() -> bool:
    """Raise the limits of the C library's allocator; whether it has them (glibc) and took them."""
    if os.environ.get("CHAINRULE_MALLOC", "1") == "0" or os.name != "posix":
        return False
    libc = ctypes.CDLL(None)
    if not (hasattr(libc, "mallopt") and hasattr(libc, "gnu_get_libc_version")):
        return False
    return bool(libc.mallopt(M_MMAP_THRESHOLD, BLOCK_BYTES) and libc.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES))
