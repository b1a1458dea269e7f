"""One elementwise function over many groups of arrays in one call: a step of an optimiser over all of its parameters.

The arrays of a group (a parameter, its gradient, its state) are contiguous and have one size; groups have sizes of their own. The
function writes all of them but the second. What differs from group to group beside the arrays is a row of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from . import compiler, runtime
from .calls import Calls, NotSupported, kernel_type
from .lang import DType, Kernel, Value, compute_type, f64, i64

CHUNK = 1 << 14  # elements per grid index
READ_ONLY = 1  # the place of the gradient


def build(name: str, body: Callable[..., Sequence[Value]], dtype: DType, roles: int, numbers: int) -> Kernel:
    """``arrays[i] = body(kernel, numbers, *arrays)[i]`` in every group of `roles` arrays."""
    k = Kernel(f"{name}_{dtype}", compute_type(dtype))
    ids, chunks, table = k.array("ids", i64), k.array("chunks", i64), k.array("numbers", f64)
    row, groups, n, cost = k.size("row"), k.size("groups"), k.size("n"), k.size("cost")
    with k.grid(n, cost=cost) as c:
        which, start, size = (chunks[c * 3 + i] for i in range(3))
        arrays = [k.array_at(ids, which + groups * i, dtype) for i in range(roles)]
        at = [table[which * row + i] for i in range(numbers)]
        with k.lanes(size, unroll=2) as j:
            out = body(k, at, *(a[start + j] for a in arrays))
            for a, v in zip([a for i, a in enumerate(arrays) if i != READ_ONLY], out, strict=True):
                a[start + j] = v
    return k


def _chunks(sizes: tuple[int, ...]) -> np.ndarray:
    """Group, first element and number of elements of the pieces that all groups are cut into."""
    pieces = [(g, s, min(CHUNK, n - s)) for g, n in enumerate(sizes) for s in range(0, n, CHUNK)]
    return np.array(pieces, np.int64).reshape(-1, 3)


_compiled: dict[tuple[Any, ...], Any] = {}
_cuts: Calls = Calls(lambda *sizes: (_chunks(sizes), sum(sizes)))


def run(
    key: Hashable,
    name: str,
    body: Callable[..., Sequence[Value]],
    arrays: Sequence[Sequence[np.ndarray]],
    numbers: np.ndarray,
) -> None:
    """Run over the groups ``zip(*arrays)``; `numbers` has one row for each group, or one for all. `key` stands for `body`."""
    first = arrays[0]
    dtype = kernel_type(first[0].dtype)
    cut = _cuts[tuple([a.size for a in first])]
    if cut is None:
        raise NotSupported
    chunks, total = cut
    if not total:
        return
    which = (key, dtype, len(arrays))
    f = _compiled.get(which)
    if f is None:
        kernel = build(name, body, dtype, len(arrays), numbers.shape[-1])
        f = _compiled[which] = compiler.compile_kernel(kernel)
    ids = np.array([list(map(id, role)) for role in arrays], np.int64)
    n = len(chunks)
    row = numbers.shape[-1] if len(numbers) == len(first) else 0
    if f(runtime.pool(), ids, chunks, numbers, row, len(first), n, 4 * max(1, total // n)) is False:
        raise NotSupported
