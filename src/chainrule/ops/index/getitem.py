"""``x[...]`` and writing to it, with everything PyTorch's takes."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core import views
from ...core.payload import COMPOSED
from ...core.primitives import permute_p, reshape_p
from ...core.registry import public
from ...core.remembered_views import viewing
from ...core.samples import Given, S, sample
from ...core.shapes import broadcast_shapes, constant, wrap_dim
from ...core.sizes import SEEN, is_ragged
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.views import assign
from ..elementwise.select import where_p
from ..shape.functional import set_slice_p
from ..shape.in_each import all_dense, in_each
from ..shape.slices import slice_p, unslice_p
from .rows import add_rows_p, set_rows_p, take_rows_p, wrap_index_p


def _as_index(k: Any, pos: int) -> Any:
    if isinstance(k, Tensor):
        if k.dtype.category >= dt.FLOAT:
            raise IndexError(
                f"tensors used as indices must be long, int, byte or bool tensors, got {k.dtype} at position {pos}"
            )
        if k.dtype is dt.uint8:
            warnings.warn(
                "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                stacklevel=2,
            )
            return k.to(dt.bool_)
        return k
    a = np.asarray(k) if not (isinstance(k, list | tuple) and len(k) == 0) else np.zeros(0, np.int64)
    if a.dtype.kind not in "iub":
        raise IndexError(
            f"only integers, slices, ellipsis, None and integer or boolean tensors are valid indices (got {k!r})"
        )
    return Tensor(a)


def _bound(v: Any) -> int:
    """An end of a slice, which is an int or a tensor of one."""
    if isinstance(v, Tensor):
        return int(v)
    try:
        return operator.index(v)
    except TypeError:
        raise TypeError(f"slice indices must be integers or None or have an __index__ method, got {v!r}") from None


def _is_many(key: list[Any]) -> bool:
    """Whether a list is an index for each dim, as a tuple is: a short one in which not all are numbers."""
    return len(key) < 32 and any(
        k is None or k is Ellipsis or isinstance(k, slice | Sequence | Tensor | np.ndarray) for k in key
    )


class Plan:
    """An index split into a basic part (a view) and advanced indices on some dims of that view."""

    __slots__ = ("basic", "dims", "shape", "tensors", "viewed")

    def __init__(self, x: Tensor, key: Any) -> None:
        items = list(key) if isinstance(key, tuple) else [key]
        if isinstance(key, list) and _is_many(key):
            items = list(key)
        n = x.ndim
        take = 0
        for pos, k in enumerate(items):
            if isinstance(k, bool | np.bool_) or k is None or k is Ellipsis or isinstance(k, slice | int | np.integer):
                take += not (k is None or k is Ellipsis or isinstance(k, bool | np.bool_))
            else:
                items[pos] = k = _as_index(k, pos)
                take += k.ndim if k.dtype is dt.bool_ else 1
                if k._interp is None and not k.ndim and k.dtype not in (dt.bool_, dt.uint8):
                    items[pos] = int(k._value)  # one known number: a view, as with an int
        if take > n:
            if n == 0 and take == 1:
                raise IndexError(
                    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert a 0-dim tensor to a number"
                )
            raise IndexError(f"too many indices for tensor of dimension {n} (shape {list(x.shape)}): {take} given")
        dots = [p for p, k in enumerate(items) if k is Ellipsis]
        if len(dots) > 1:
            raise IndexError("an index can only have a single ellipsis ('...')")
        fill = [slice(None)] * (n - take)
        items = items[: dots[0]] + fill + items[dots[0] + 1 :] if dots else items + fill
        self._split(x, items)

    def _split(self, x: Tensor, items: list[Any]) -> None:
        basic: list[Any] = []
        new: list[int] = []  # sizes of the view
        self.dims: list[int] = []
        self.tensors: list[Tensor] = []
        axis = 0
        shape: Any = x.shape
        self.shape = tuple(shape)
        for k in items:
            if k is None:
                new.append(1)
            elif isinstance(k, bool | np.bool_):
                self.dims.append(len(new))
                self.tensors.append(Tensor(np.zeros(1 if k else 0, np.int64)))
                new.append(1)
            elif isinstance(k, slice):
                k = slice(*(v if v is None or is_ragged(v) else _bound(v) for v in (k.start, k.stop, k.step)))
                if k.step is not None and k.step <= 0:
                    raise ValueError("slice step must be positive; use flip() to reverse a dim")
                basic.append(k)
                n = shape[axis]
                new.append(n.sliced(k) if is_ragged(n) else len(range(*k.indices(n))))
                axis += 1
                if type(n) is not int and k != slice(None):
                    shape = _left(shape, axis, k)
            elif isinstance(k, int | np.integer):
                n = shape[axis]
                if not (n.covers(max(k + 1, -k)) if is_ragged(n) else -n <= k < n):
                    raise IndexError(
                        f"index {k} is out of bounds for dimension {axis} with size {n}"
                        f"{n.less(max(k + 1, -k)) if is_ragged(n) else ''}"
                    )
                basic.append(int(k))
                axis += 1
                if type(n) is not int:
                    shape = _left(shape, axis, int(k))
            elif k.dtype is dt.bool_:
                for j, m in enumerate(k.shape):
                    if m != shape[axis + j]:
                        raise IndexError(
                            f"the shape of the mask {list(k.shape)} at index {j} does not match that of the tensor {list(shape)} at index {axis + j}"
                        )
                if k.ndim == 0:
                    self.dims.append(len(new))
                    self.tensors.append(Tensor(np.zeros(1 if bool(k) else 0, np.int64)))
                    new.append(1)
                    continue
                found = np.nonzero(k.concrete("indexing with a boolean mask"))
                for f in found:
                    basic.append(slice(None))
                    self.dims.append(len(new))
                    self.tensors.append(Tensor(f))
                    new.append(shape[axis])
                    axis += 1
            else:
                basic.append(slice(None))
                self.dims.append(len(new))
                self.tensors.append(k)
                new.append(shape[axis])
                axis += 1
        self.basic = tuple(basic)
        self.viewed = tuple(new)

    def view(self, x: Tensor) -> Tensor:
        """The basic part applied."""
        if any(not isinstance(k, slice) or k != slice(None) for k in self.basic):
            x = slice_p(x, key=self.basic, old=self.shape)
        if tuple(x.shape) != self.viewed:
            x = x.reshape(self.viewed)
        elif x.ndim == 0 or all(isinstance(k, slice) and k == slice(None) for k in self.basic):
            x = slice_p(x, key=(slice(None),) * x.ndim, old=tuple(x.shape))
        return x

    def rows(self, v: Tensor) -> tuple[Tensor, Tensor, tuple[int, ...], int]:
        """The view with indexed dims in front as rows, the row numbers, the index shape, and where it goes."""
        n = v.ndim
        sizes = [v.shape[d] for d in self.dims]
        ts = [wrap_index_p(t.to(dt.int64), n=m, dim=d) for t, m, d in zip(self.tensors, sizes, self.dims, strict=True)]
        try:
            s = broadcast_shapes(*[t.shape for t in ts])
        except RuntimeError:
            raise IndexError(
                "shape mismatch: indexing tensors could not be broadcast together with shapes "
                + ", ".join(str(list(t.shape)) for t in ts)
            ) from None
        lin = ts[0]
        for t, m in zip(ts[1:], sizes[1:], strict=True):
            lin = lin * m + t
        if tuple(lin.shape) != s:
            lin = lin.expand(*s)
        order = [*self.dims, *(d for d in range(n) if d not in self.dims)]
        p = permute_p(v, dims=tuple(d - n for d in order)) if order != list(range(n)) else v
        total = 1
        for m in sizes:
            total *= m
        rest = tuple(v.shape[d] for d in order[len(self.dims) :])
        adjacent = self.dims == list(range(self.dims[0], self.dims[0] + len(self.dims)))
        return p.reshape(total, *rest), lin, s, self.dims[0] if adjacent else 0


# How an item of an index is written where index tensors stand beside it: what moves no tensor, and the tensors in their order.
_TENSOR, _WHOLE, _NEW, _DOTS, _INT = range(5)


def _coded(key: Any) -> tuple[tuple[int, ...], list[Tensor]] | None:
    """An index with tensors of numbers in it as numbers and these tensors; None for others, and for what is not plain."""
    pattern: list[int] = []
    tensors: list[Tensor] = []
    for k in key if type(key) is tuple else (key,):
        c = k.__class__
        if c is Tensor or c is np.ndarray:
            if c is np.ndarray:
                k = Tensor(k)
            if not k.ndim or k.dtype is not dt.int64:
                return None
            tensors.append(k)
            pattern.append(_TENSOR)
        elif c is slice:
            if k != _ALL:
                return None
            pattern.append(_WHOLE)
        elif k is None:
            pattern.append(_NEW)
        elif k is Ellipsis:
            pattern.append(_DOTS)
        elif c is int:
            pattern += (_INT, k)
        else:
            return None
    return (tuple(pattern), tensors) if tensors else None


def _decoded(pattern: Any, tensors: Any) -> tuple[Any, ...]:
    """The index that was coded."""
    items, given, key = iter(pattern), iter(tensors), []
    for kind in items:
        key.append(next(given) if kind == _TENSOR else next(items) if kind == _INT else _ITEMS[kind])
    return tuple(key)


_ALL = slice(None)
_ITEMS = {_WHOLE: _ALL, _NEW: None, _DOTS: Ellipsis}


@functools.partial(straight, most=1 << 22)
def _chosen(x: Tensor, pattern: Any, *tensors: Tensor) -> Tensor:
    """``x[key]`` of a coded index."""
    return _indexed(x, _decoded(pattern, tensors))


@straight
def _written(x: Tensor, value: Tensor, accumulate: bool, pattern: Any, *tensors: Tensor) -> Tensor:
    """``x[key] = value`` of a coded index."""
    return _rewritten(x, _decoded(pattern, tensors), value, accumulate)


@straight
def _by_number(x: Tensor, i: Tensor) -> Tensor:
    """``x[i]``: rows by number."""
    n = x.shape[0]
    return take_rows_p.bind(x, wrap_index_p.bind(i, n=n, dim=0), r=x.ndim - 1, s=i.ndim, n=n)


def _getitem(self: Tensor, key: Any) -> Tensor:
    """``x[key]``: ints, slices, None, Ellipsis, boolean masks and index tensors, mixed."""
    if type(key) is int and self.ndim:
        return self.select(0, key)
    if (
        type(key) is Tensor
        and not COMPOSED
        and all_dense(self, key)
        and key.dtype is dt.int64
        and key.ndim
        and self.ndim
    ):
        return _by_number(self, key)  # no view to be taken before
    if SEEN and self.is_nested:
        from ...payloads.nested.public_forms import index_nested

        y = index_nested(self, key)
        if y is not None:
            return y
    elif SEEN and type(key) in (tuple, slice):
        from ...payloads.nested.public_forms import slice_dense

        y = slice_dense(self, key)
        if y is not None:
            return y
    if type(key) is tuple or type(key) is np.ndarray:
        if (code := _coded(key)) is not None:
            return _chosen(self, code[0], *code[1])
    elif (
        type(key) is Tensor
        and key.dtype is dt.bool_
        and key._interp is None
        and key.ndim
        and not COMPOSED
        and all_dense(self, key)
        and key.shape == self.shape[: key.ndim]
    ):
        # The places of a mask in the dims that it is for, taken together: no number for each of them.
        mask, rest = key._value, self.shape[key.ndim :]
        rows = reshape_p.bind(self, shape=(mask.size, *rest), old=self.shape) if key.ndim > 1 else self
        return take_rows_p.bind(rows, Tensor(mask.ravel().nonzero()[0]), r=len(rest), s=1, n=mask.size)
    return _indexed(self, key)


def _indexed(self: Tensor, key: Any) -> Tensor:
    plan = Plan(self, key)
    v = plan.view(self)
    if not plan.tensors:
        return v
    rows, lin, s, at = plan.rows(v)
    y = take_rows_p(rows, lin, r=rows.ndim - 1, s=len(s), n=rows.shape[0])
    if at:
        k, n = len(s), y.ndim
        y = permute_p(y, dims=tuple(d - n for d in [*range(k, k + at), *range(k), *range(k + at, n)]))
    return y


def _left(shape: Any, axis: int, k: Any) -> list[Any]:
    """A shape whose ragged sizes from `axis` on may depend on the dim in front, of which `k` is taken."""
    return [*shape[:axis], *[s.chosen(shape[axis - 1], k) if is_ragged(s) else s for s in shape[axis:]]]


def places(x: Tensor) -> Tensor:
    """The number of each element of `x` in row-major order, in the shape of `x`."""
    if SEEN and x.is_nested:
        from ..shape.ranges import arange

        return arange(x.numel()).reshape(x.shape)
    return Tensor(np.arange(x.numel(), dtype=np.int64).reshape(x.shape))


def put_at(x: Tensor, place: Tensor, value: Tensor, accumulate: bool = False) -> Tensor:
    """`x` with the elements of the numbers `place` replaced by (or increased by) `value`."""
    i, w = place.reshape(-1), value.reshape(-1)
    base = x.reshape(-1)
    out = base + add_rows_p(w, i, n=base.shape[0], r=0, s=1) if accumulate else set_rows_p(base, i, w, r=0, s=1)
    return out.reshape(x.shape)


views.SCATTER = views.Scatter(places, put_at)


def index_write(x: Tensor, key: Any, value: Any, accumulate: bool = False) -> Tensor:
    """`x` with ``x[key]`` replaced by (or increased by) `value`."""
    if not isinstance(value, Tensor):
        value = constant(value, x)
    if (type(key) is tuple or type(key) is Tensor) and (code := _coded(key)) is not None:
        return _written(x, value, accumulate, code[0], *code[1])
    return _rewritten(x, key, value, accumulate)


def _rewritten(x: Tensor, key: Any, value: Tensor, accumulate: bool) -> Tensor:
    if not (SEEN and (x.is_nested or value.is_nested)):
        plan = Plan(x, key)
        if not plan.tensors:
            return _write_slice(x, plan, value, accumulate)
        whole = all(isinstance(k, slice) and k == slice(None) for k in plan.basic)
        if whole and plan.viewed == plan.shape and plan.dims == list(range(len(plan.dims))):
            rows, lin, s, _ = plan.rows(x)
            v, r = _fitted(value, (*s, *rows.shape[1:]), x), rows.ndim - 1
            if accumulate:
                y = rows + add_rows_p(v, lin, n=rows.shape[0], r=r, s=len(s))
            else:
                y = set_rows_p(rows, lin, v, r=r, s=len(s))
            return y.reshape(x.shape)
    place = places(x)[key]
    return put_at(x, place, _fitted(value, tuple(place.shape), x), accumulate)


def _write_slice(x: Tensor, plan: Plan, value: Tensor, accumulate: bool) -> Tensor:
    """The part of `x` that an index without tensors speaks of replaced by (or increased by) `value`."""
    pairs = zip(plan.basic, plan.shape, strict=True)
    part = tuple([len(range(*k.indices(n))) for k, n in pairs if isinstance(k, slice)])
    v = _fitted(value, plan.viewed, x).reshape(part)
    if accumulate:
        return x + unslice_p(v, key=plan.basic, old=plan.shape)
    return set_slice_p(x, v, key=plan.basic, old=plan.shape)


def _fitted(value: Tensor, shape: tuple[int, ...], x: Tensor) -> Tensor:
    """What is written to a part of `x` of this shape, in that shape and the type of `x`."""
    extra = value.ndim - len(shape)
    if extra > 0 and all(k == 1 for k in value.shape[:extra]):
        value = value.reshape(value.shape[extra:])
    if value.shape != shape:
        try:
            value = value.expand(*shape)
        except RuntimeError:
            raise RuntimeError(
                f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing result of shape {list(shape)}"
            ) from None
    return value if value.dtype is x.dtype else value.to(x.dtype)


def _setitem(self: Tensor, key: Any, value: Any) -> None:
    """``x[key] = value``."""
    if isinstance(value, np.ndarray | list | tuple):
        value = Tensor(np.asarray(value))
    if (
        isinstance(key, Tensor)
        and key.dtype is dt.bool_
        and key.shape == self.shape
        and (not isinstance(value, Tensor) or tuple(value.shape) in ((), (1,)))
    ):
        # A mask with one value for all needs no positions, so that it works under vmap too.
        v = value.reshape(()).to(self.dtype) if isinstance(value, Tensor) else value
        assign(self, where_p.bind(key, v, self).to(self.dtype), "x[mask] = value")
        return
    dense = not (SEEN and (self.is_nested or (isinstance(value, Tensor) and value.is_nested)))
    if dense and self._interp is None and (not isinstance(value, Tensor) or value._interp is None):
        plan = Plan(self, key)
        if not plan.tensors:
            target = plan.view(self)
            if isinstance(value, Tensor) and value.ndim > target.ndim:
                value = value.reshape(value.shape[value.ndim - target.ndim :])
            assign(target, value, "x[key] = value")
            return
    assign(self, index_write(self, key, value), "x[key] = value")


def _delitem(self: Tensor, key: Any) -> None:
    """No element of a tensor can be taken away."""
    raise TypeError("Tensor does not support deleting items")


Tensor.__getitem__ = viewing(_getitem)  # type: ignore[method-assign, assignment]
Tensor.__setitem__ = _setitem  # type: ignore[method-assign, assignment]
Tensor.__delitem__ = _delitem  # type: ignore[method-assign, assignment]


@public("index_put", methods="index_put", inplace="index_put_", out=False)
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with ``input[indices]`` replaced by `values`, or with them added."""
    if values.dtype is not input.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {input.dtype} for the destination and {values.dtype} for the source (values)."
        )
    return index_write(input, tuple(slice(None) if i is None else i for i in indices), values, accumulate)


@public("index_select", methods="index_select", fresh=True)
@straight
@in_each()
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Entries `index` (a vector) of `dim`."""
    if index.ndim > 1:
        raise IndexError(f"index_select(): Index is supposed to be a vector, but got dim: {index.ndim} for index")
    if index.dtype.name not in ("int32", "int64"):
        raise RuntimeError(f"index_select(): Expected dtype int32 or int64 for index, got {index.dtype}")
    n = input.ndim
    if n == 0:
        wrap_dim(dim, 0)
        return take_rows_p(input.reshape(1), wrap_index_p(index.reshape(-1), n=1, dim=0), r=0, s=1, n=1).reshape(())
    d = wrap_dim(dim, n)
    i = wrap_index_p.bind(index if index.ndim else index.reshape(-1), n=input.shape[d], dim=d + n)
    if COMPOSED and input.layout.name.startswith("sparse"):
        from ...payloads.sparse import shape_forms

        return shape_forms.index_select(input, d + n, i)
    return take_rows_p.bind(input, i, r=-d - 1, s=1, n=input.shape[d])


# -- samples ------------------------------------------------------------------------------------------------------------

sample("getitem", S(4, 3), f=lambda x: x[1:, ::2])
sample("getitem", S(4, 3), f=lambda x: x[..., None, 0])
sample("getitem", S(4, 3), Given([0, 2, 2, -1]), f=lambda x, i: x[i])
sample("getitem", S(4, 3, 2), Given([[0, 2], [1, 1]]), f=lambda x, i: x[:, i, 1])
sample("getitem", S(3, 4, 3), Given([0, 2]), Given([1, 1]), f=lambda x, i, j: x[i, :, j])
sample("getitem", S(4, 3), Given(np.arange(12).reshape(4, 3) % 2 == 0), f=lambda x, m: x[m])
sample("index_put", S(4, 3), (Given([0, 2]),), S(2, 3))
sample("index_put", S(4, 3), (Given([2, 0, 2]),), S(3, 3))  # of repeated rows the last wins, in every mode
sample("index_put", S(4, 3), (Given([0, 2, 0]),), S(2 + 1, 3), True)
sample("index_select", S(4, 3), 0, Given([0, 2, 2]))
sample("index_select", S(4, 3), 1, Given([2, 0]))
