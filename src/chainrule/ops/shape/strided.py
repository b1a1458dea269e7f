"""as_strided: views by sizes, strides and an offset into the storage, overlapping or not, and their derivatives.

A geometry is ``(size, stride, offset)`` in elements of the storage, the memory at the bottom of a family of views. Under
vmap each example has its own storage: the one of the batch, moved by that example's place in it. The value is always a
view of that memory. Derivatives never look at memory: they follow the addresses of the two geometries. Elements that share
an address are one element of the storage, so a tangent there is their mean and a cotangent is divided between them;
elements outside of the input have no derivative.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.declare import op
from ...core.dispatch import innermost
from ...core.primitives import clone_p
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import sizes, zeros_beside
from ...core.tensor import Tensor
from ..elementwise.operators import mul_p
from ..elementwise.select import where_p
from ..index.rows import add_rows_p, take_rows_p
from .views import rebind_view, reshape

Geometry = tuple[tuple[int, ...], tuple[int, ...], int]


# -- memory -----------------------------------------------------------------------------------------------------------


def storage_of(x: np.ndarray) -> tuple[np.ndarray, int]:
    """The memory at the bottom of x's views as a row-major array, and the byte at which `x` begins in it."""
    root = x
    while isinstance(root.base, np.ndarray):
        root = root.base
    if root.flags.c_contiguous:
        flat = root
    else:
        flat = root.transpose(np.argsort([-abs(s) for s in root.strides], kind="stable"))
        if not flat.flags.c_contiguous:
            # Foreign memory with gaps: the storage is what lies between its first and last element.
            first, last = np.lib.array_utils.byte_bounds(root)
            return np.asarray(_Bytes(root, first, last - first)), x.__array_interface__["data"][0] - first
    return flat, 0 if root is x else x.__array_interface__["data"][0] - root.__array_interface__["data"][0]


class _Bytes:
    """Memory from an address on, as NumPy's array interface describes it; keeps `root` alive."""

    def __init__(self, root: np.ndarray, address: int, size: int) -> None:
        self.root = root
        self.__array_interface__ = {
            "data": (address, not root.flags.writeable),
            "shape": (size,),
            "typestr": "|u1",
            "version": 3,
        }


def memory_view(x: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...], shift: int, what: str) -> np.ndarray:
    """A view of x's storage with byte strides, `shift` bytes from the first element of `x`."""
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    flat, start = storage_of(x)
    start += shift
    end = start + x.itemsize
    for n, s in zip(shape, strides, strict=True):
        end += (n - 1) * s
    if start < 0 or end > flat.nbytes:
        raise RuntimeError(
            f"{what}: sizes {list(shape)} and strides {[s // x.itemsize for s in strides]} at storage offset {start // x.itemsize} "
            f"with itemsize {x.itemsize} requiring a storage size of {end} are out of bounds for storage of size {flat.nbytes}"
        )
    y = np.ndarray(shape, x.dtype, flat, start, strides)
    if not x.flags.writeable:
        y.flags.writeable = False
    return y


# -- addresses --------------------------------------------------------------------------------------------------------


def _addresses(g: Geometry) -> np.ndarray:
    size, stride, offset = g
    a = np.full((1,) * len(size), offset, np.int64)
    for k, (n, s) in enumerate(zip(size, stride, strict=True)):
        a = a + (np.arange(n, dtype=np.int64) * s).reshape([-1 if i == k else 1 for i in range(len(size))])
    return np.broadcast_to(a, size).reshape(-1)


@lru_cache(maxsize=256)
def _meet(
    source: Geometry, target: Geometry
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """Where two geometries meet: ``at, inside, group, count``.

    Target element i is source element ``at[i]`` if ``inside[i]`` (None: all are). If source elements share addresses, `at`
    numbers the distinct addresses instead, source element j lies at number ``group[j]``, and ``count`` of them at each.
    """
    a, b = _addresses(source), _addresses(target)
    cells, first, group, count = np.unique(a, return_index=True, return_inverse=True, return_counts=True)
    if not cells.size:
        return np.zeros(b.shape, np.int64), np.zeros(b.shape, bool), None, None
    at = np.searchsorted(cells, b).clip(max=cells.size - 1)
    inside = cells[at] == b
    at, mask = np.where(inside, at, 0), None if inside.all() else inside
    if cells.size == a.size:
        return first[at], mask, None, None
    return at, mask, group.reshape(-1).astype(np.int64), count


def _take(x: Tensor, i: np.ndarray, n: int) -> Tensor:
    return take_rows_p(x, Tensor(i), r=0, s=1, n=n)


def _add(x: Tensor, i: np.ndarray, n: int) -> Tensor:
    return add_rows_p(x, Tensor(i), n=n, r=0, s=1)


def _masked(inside: np.ndarray | None, x: Tensor) -> Tensor:
    return x if inside is None else where_p.bind(Tensor(inside), x, zeros_beside((), x))


def _shares(count: np.ndarray, x: Tensor) -> Tensor:
    return mul_p.bind(x, Tensor((1.0 / count).astype(np.empty(0, x.dtype.np).real.dtype)))


def read_through(x: Tensor, source: Geometry, target: Geometry) -> Tensor:
    """`x`, laid out by `source`, read by `target`: linear in x; 0 outside of the source, the mean where it overlaps.

    Axes in front of those that `source` speaks of are examples, each with a storage of its own.
    """
    at, inside, group, count = _meet(source, target)
    lead = tuple(x.shape[: x.ndim - len(source[0])])
    if 0 in source[0] or 0 in target[0]:
        return zeros_beside(lead + target[0], x)
    n = math.prod(source[0])
    x = reshape(x, (*lead, n))
    if group is not None and count is not None:
        n = count.size
        x = _shares(count, _add(x, group, n))
    return reshape(_masked(inside, _take(x, at, n)), lead + target[0])


def write_back(g: Tensor, source: Geometry, target: Geometry) -> Tensor:
    """The transpose of :func:`read_through`: `g`, laid out by `target`, added up in the elements of `source`."""
    at, inside, group, count = _meet(source, target)
    lead = tuple(g.shape[: g.ndim - len(target[0])])
    if 0 in source[0] or 0 in target[0]:
        return zeros_beside(lead + source[0], g)
    g = _masked(inside, reshape(g, (*lead, math.prod(target[0]))))
    if group is None or count is None:
        return reshape(_add(g, at, math.prod(source[0])), lead + source[0])
    return reshape(_take(_shares(count, _add(g, at, count.size)), group, count.size), lead + source[0])


# -- the op -----------------------------------------------------------------------------------------------------------


@op("as_strided", view=True, moves=True)
def as_strided_p(x: Any, *, source: Geometry, target: Geometry) -> Any:
    """The storage of `x`, whose last axes have the geometry `source`, read with the geometry `target`."""
    (old, istride, ioffset), (size, stride, offset) = source, target
    lead, item = x.ndim - len(old), x.itemsize
    bytes_in = tuple([s * item for s in istride])
    if _same_layout(x.shape[lead:], x.strides[lead:], bytes_in):
        strides = x.strides[:lead] + tuple([s * item for s in stride])
        return memory_view(x, x.shape[:lead] + size, strides, (offset - ioffset) * item, "as_strided")
    # The value moved to memory of another layout (a copy on write): follow the addresses instead.
    at, inside, group, _ = _meet(source, target)
    if inside is not None:
        raise RuntimeError(
            f"as_strided: sizes {list(size)} with strides {list(stride)} at offset {offset} read memory outside of the input, "
            f"which has been copied to another layout since; take the view of the base instead"
        )
    if group is not None:
        at = np.unique(group, return_index=True)[1][at]
    return x.reshape((*x.shape[:lead], -1))[..., at].reshape(x.shape[:lead] + size)


def _same_layout(shape: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(s == t or n <= 1 for n, s, t in zip(shape, a, b, strict=True))


as_strided_p.jvp([lambda t, y, x, *, source, target: read_through(t, source, target)])
as_strided_p.vjp([lambda g, y, x, *, source, target: write_back(g, source, target)])


def geometry(x: Tensor) -> Geometry:
    """Sizes, strides and storage offset of `x`; under vmap, of one example.

    Examples that lie side by side keep the strides and the offset of the batch. Interleaved ones (a batch axis inside the
    example's axes) count as if each stood in dense memory of its own: no example sees the memory of another.
    """
    shape, stride = tuple(x.shape), tuple(x.stride())
    v = innermost(x)
    lead = v.ndim - len(shape) if type(v) is np.ndarray else 0
    if lead:
        batch = [
            (n, abs(s) // v.itemsize) for n, s in zip(v.shape[:lead], v.strides[:lead], strict=True) if n > 1 and s
        ]
        span = sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        if any(s <= span for _, s in batch) and 0 not in shape:
            return shape, tuple([_without(batch, s) for s in stride]), _without(batch, x.storage_offset())
    return shape, stride, x.storage_offset()


def _without(batch: list[tuple[int, int]], address: int) -> int:
    """An address in memory from which the axes `batch` (size, stride) are taken out."""
    for n, s in sorted(batch, key=lambda b: -b[1]):
        address = address // (n * s) * s + address % s
    return address


def _target(name: str, size: Any, stride: Any, storage_offset: Any, source: Geometry) -> Geometry:
    n, s = sizes((size,), "size"), sizes((stride,), "stride")
    if len(n) != len(s):
        raise RuntimeError(f"{name}: mismatch in length of strides and shape: size {list(n)}, stride {list(s)}")
    if any(k < 0 for k in n):
        raise RuntimeError(f"{name}: size must not be negative, got {list(n)}")
    if any(k < 0 for k in s):
        raise RuntimeError(
            f"{name}: Negative strides are not supported at the moment, got strides: {list(s)}; use flip() for a reversed order"
        )
    offset = source[2] if storage_offset is None else int(storage_offset)
    if offset < 0:
        raise RuntimeError(f"{name}: tensor must have a non-negative storage offset, got {offset}")
    return n, s, offset


@public("as_strided", methods="as_strided", out=False)
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the storage of `input`: element i lies at ``storage_offset + sum(i * stride)``.

    >>> chainrule.arange(5).as_strided((3, 3), (1, 1))
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    source = geometry(input)
    return as_strided_p(input, source=source, target=_target("as_strided", size, stride, storage_offset, source))


@public("as_strided_", methods="as_strided_", out=False)
def as_strided_(self: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Make `self` the view of its storage that :func:`as_strided` gives."""
    return rebind_view(self, as_strided(self, size, stride, storage_offset), "as_strided_")


@public("as_strided_copy")
def as_strided_copy(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A copy of ``as_strided(input, size, stride, storage_offset)``."""
    return clone_p.bind(as_strided(input, size, stride, storage_offset), order="C")


@public("as_strided_scatter", methods="as_strided_scatter")
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A copy of `input` in whose storage `src` was written to ``as_strided(size, stride, storage_offset)``.

    Where several entries of `src` share a place, the last one is there, and it alone has a derivative.
    """
    source = geometry(input)
    if any(
        s == 0 and n > 1 for n, s in zip(*source[:2], strict=True)
    ):  # expanded: the copy has a place for each element
        input = clone_p.bind(input, order="C")
        source = geometry(input)
    target = _target("as_strided_scatter", size, stride, storage_offset, source)
    if tuple(src.shape) != target[0]:
        raise RuntimeError(
            f"as_strided_scatter: expected src to have a size equal to the slice of self: src has shape {list(src.shape)}, size is {list(target[0])}"
        )
    _check_bounds("as_strided_scatter", input, target)
    at, inside, shared, _ = _meet(target, source)
    if any(s == 0 and n > 1 for n, s in zip(*target[:2], strict=True)):
        raise RuntimeError(
            f"as_strided_scatter: more than one element of src would be written to one place (size {list(target[0])}, stride {list(target[1])})"
        )
    if shared is not None:
        last = np.empty(int(shared.max()) + 1, np.int64)
        last[shared] = np.arange(shared.size)
        at = last[at]
    if not src.numel() or not input.numel():
        return clone_p.bind(input)
    new = reshape(_take(reshape(src.to(input.dtype), -1), at, src.numel()), source[0])
    return new if inside is None else where_p.bind(Tensor(inside.reshape(source[0])), new, input)


def _check_bounds(name: str, x: Tensor, target: Geometry) -> None:
    v = innermost(x)
    if type(v) is not np.ndarray or 0 in target[0] or (not v.size and x.numel()):  # the last: a map over no examples
        return
    have = storage_of(v)[0].nbytes
    need = (target[2] + sum((n - 1) * s for n, s in zip(target[0], target[1], strict=True)) + 1) * v.itemsize
    if need > have:
        raise RuntimeError(
            f"{name}: sizes {list(target[0])}, strides {list(target[1])}, storage offset {target[2]}, and itemsize {v.itemsize} requiring "
            f"a storage size of {need} are out of bounds for storage of size {have}"
        )


# Storage belongs to the sample: a loop over rows of a batch would hand out views of the batch's storage.
sample("as_strided", S(3, 3), f=lambda x: x.clone().as_strided((2, 2), (1, 2), 1))
sample("as_strided", S(9), f=lambda x: x.clone().as_strided((3, 3), (1, 1)))
sample("as_strided", S(3, 1), f=lambda x: x.clone().expand(3, 4).as_strided((3, 2), (1, 0)))
sample("as_strided", S(4, 3), f=lambda x: (x * 2)[1:, ::2].as_strided((2, 2), (3, 2), 3))
sample("as_strided_scatter", S(3, 3), S(2, 2), f=lambda x, v: x.clone().as_strided_scatter(v, (2, 2), (1, 2), 1))
sample("as_strided_scatter", S(1), S(), f=lambda x, v: x.clone().as_strided_scatter(v, (), (), 0))
