"""Indexing: rows by number, gather and scatter, and ``x[...]`` with everything PyTorch's takes.

All advanced indexing comes down to three primitives on rows: take them, add to them, replace them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core import views
from ...core.batching import lift_rank
from ...core.declare import op
from ...core.payload import COMPOSED
from ...core.primitives import clone_p, permute_p
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import broadcast_shapes, wrap_dim, zeros
from ...core.sizes import SEEN, is_ragged
from ...core.tensor import Tensor
from ...core.views import assign
from ..elementwise.select import where_p
from ..shape.in_each import in_each
from ..shape.slices import slice_p
from . import moving
from .moving import sums, take

# -- rows: x[..., N, rest], i[..., S] -> [..., S, rest]; r and s are the ranks of rest and S --------------------------------


def _aligned(size: int, args: list[Any], flags: list[bool], cores: list[int]) -> list[Any]:
    ranks = [a.ndim - f for a, f in zip(args, flags, strict=True)]
    n = max(k - c for k, c in zip(ranks, cores, strict=True))
    return [
        lift_rank(a, k, n + c) if f and k - c < n else a for a, f, k, c in zip(args, flags, ranks, cores, strict=True)
    ]


def _lead(x: Any, core: int) -> tuple[int, ...]:
    return x.shape[: x.ndim - core]


def _grid(lead: tuple[int, ...], have: tuple[int, ...], s: int) -> list[Any]:
    """Index arrays over the leading axes, for an array whose leading sizes are `have` (some of them 1)."""
    pad = len(lead) - len(have)
    out = []
    for k, n in enumerate(have):
        shape = [1] * (len(lead) + s)
        shape[k + pad] = n if n != 1 else 1
        out.append(np.arange(n).reshape(shape))
    return out


def _take(x: Any, i: Any, *, r: int, s: int, n: int) -> Any:
    lx, li = _lead(x, r + 1), _lead(i, s)
    if not li:
        return (
            take(x, i, x.ndim - r - 1)
            if i.size or x.shape[x.ndim - r - 1]
            else np.zeros(lx + i.shape + x.shape[x.ndim - r :], x.dtype)
        )
    if not lx:
        return x[i]
    lead = np.broadcast_shapes(lx, li)
    i = i.reshape((1,) * (len(lead) - len(li)) + i.shape)
    y = x[(*_grid(lead, lx, s), i)]
    want = lead + y.shape[len(lead) :]
    return y if y.shape == want else np.broadcast_to(y, want)


take_rows_p = op(
    "take_rows",
    batch=lambda size, xs, flags, *, r, s, n: take_rows_p.bind(*_aligned(size, xs, flags, [r + 1, s]), r=r, s=s, n=n),
    sizes="n",
)(_take)
take_rows_p.__doc__ = "Rows `i` of the `n` rows of `x`."


def _flat_rows(i: Any, lead: tuple[int, ...], s: int, n: int) -> Any:
    """Numbers of rows, `n` for each entry of the leading axes, as numbers in one big list."""
    if lead:
        count = int(np.prod(lead))
        i = np.broadcast_to(i, lead + i.shape[i.ndim - s :]).reshape((count, int(np.prod(i.shape[i.ndim - s :]))))
        i = i + np.arange(count).reshape(-1, 1) * n
    return i.reshape(-1)


def _add(g: Any, i: Any, *, n: int, r: int, s: int) -> Any:
    lead = np.broadcast_shapes(_lead(g, r + s), _lead(i, s))
    rest, i = g.shape[g.ndim - r :], _flat_rows(i, lead, s, n)
    g = np.broadcast_to(g, lead + g.shape[g.ndim - r - s :]).reshape((i.size, int(np.prod(rest))))
    return sums(g, i, int(np.prod(lead)) * n).reshape((*lead, n, *rest)).astype(g.dtype, copy=False)


add_rows_p = op(
    "add_rows",
    batch=lambda size, xs, flags, *, n, r, s: add_rows_p.bind(*_aligned(size, xs, flags, [r + s, s]), n=n, r=r, s=s),
    sizes="n",
)(_add)
add_rows_p.__doc__ = "Zeros of n rows with `g` added at rows `i`: the transpose of taking rows."


def _set(x: Any, i: Any, v: Any, *, r: int, s: int) -> Any:
    lx, li, lv = _lead(x, r + 1), _lead(i, s), _lead(v, r + s)
    lead = np.broadcast_shapes(lx, li, lv)
    out = np.array(np.broadcast_to(x, lead + x.shape[x.ndim - r - 1 :]), order="C")
    n = x.shape[x.ndim - r - 1]
    flat, rows = _flat_rows(i, lead, s, n), out.reshape((int(np.prod(lead)) * n, *out.shape[out.ndim - r :]))
    rows[flat] = np.broadcast_to(v, lead + v.shape[v.ndim - r - s :]).reshape((flat.size, *rows.shape[1:]))
    return out


set_rows_p = op(
    "set_rows",
    batch=lambda size, xs, flags, *, r, s: set_rows_p.bind(*_aligned(size, xs, flags, [r + 1, s, r + s]), r=r, s=s),
)(_set)
set_rows_p.__doc__ = "`x` with rows `i` replaced by `v`; of repeated rows the last wins."

take_rows_p.jvp([lambda t, y, x, i, **kw: take_rows_p(t, i, **kw), None])
take_rows_p.vjp([lambda g, y, x, i, *, r, s, n: add_rows_p(g, i, n=n, r=r, s=s), None])
add_rows_p.jvp([lambda t, y, g, i, **kw: add_rows_p(t, i, **kw), None])
add_rows_p.vjp([lambda c, y, g, i, *, n, r, s: take_rows_p(c, i, r=r, s=s, n=n), None])


@op("last_writes", batch="trailing", differentiable=False)
def last_writes_p(i: Any, *, s: int) -> Any:
    """True where an index is not repeated later on."""
    if i.size == 0:
        return np.zeros(i.shape, bool)
    flat = i.reshape((-1, int(np.prod(i.shape[i.ndim - s :]))))
    # Every index notes its place; of repeated ones the last note stays.
    place = np.broadcast_to(np.arange(flat.shape[1]), flat.shape)
    example = np.arange(len(flat))[:, None]
    note = np.empty((len(flat), int(flat.max()) + 1), np.int64)
    note[example, flat] = place
    return (note[example, flat] == place).reshape(i.shape)


@set_rows_p.jvp
def _(t: Any, y: Any, x: Any, i: Any, v: Any, *, r: int, s: int) -> Any:
    return set_rows_p(t[0], i, t[2], r=r, s=s)


@set_rows_p.vjp
def _(g: Any, y: Any, x: Any, i: Any, v: Any, *, r: int, s: int) -> Any:
    def written() -> Any:
        gv = take_rows_p(g, i, r=r, s=s, n=g.shape[g.ndim - r - 1])
        won = last_writes_p(i, s=s)
        return where_p.bind(won.reshape(*won.shape, *(1,) * r), gv, 0)

    def kept() -> Any:
        shape = (*i.shape, *g.shape[g.ndim - r :])
        if SEEN and g.is_nested:  # the rows of components: with a dim for these, and theirs in front
            shape = tuple(take_rows_p(g, i, r=r, s=s, n=g.shape[g.ndim - r - 1]).shape)
        return set_rows_p(g, i, zeros(shape, g.dtype), r=r, s=s)

    return kept, None, written


@op("wrap_index", differentiable=False, sizes="n")
def wrap_index_p(i: Any, *, n: int, dim: int) -> Any:
    """Negative indices counted from the end; an error for those out of range."""
    if moving.out_of_range(i, -n, n):
        bad = i[(i < -n) | (i >= n)].flat[0]
        raise IndexError(f"index {bad} is out of bounds for dimension {dim} with size {n}")
    return np.where(i < 0, i + n, i) if moving.has_negative(i) else i


def put_rows(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    """`x` (rows first) with rows `i` replaced by `v`."""
    return set_rows_p(x, i, v, r=x.ndim - 1, s=i.ndim)


# -- x[...] -----------------------------------------------------------------------------------------------------------


def _as_index(k: Any, pos: int) -> Any:
    if isinstance(k, Tensor):
        if k.dtype.category >= dt.FLOAT:
            raise IndexError(
                f"tensors used as indices must be long, int, byte or bool tensors, got {k.dtype} at position {pos}"
            )
        return k.to(dt.bool_) if k.dtype is dt.uint8 else k
    a = np.asarray(k) if not (isinstance(k, list | tuple) and len(k) == 0) else np.zeros(0, np.int64)
    if a.dtype.kind not in "iub":
        raise IndexError(
            f"only integers, slices, ellipsis, None and integer or boolean tensors are valid indices (got {k!r})"
        )
    return Tensor(a)


class Plan:
    """An index split into a basic part (a view) and advanced indices on some dims of that view."""

    __slots__ = ("basic", "dims", "shape", "tensors", "viewed")

    def __init__(self, x: Tensor, key: Any) -> None:
        items = list(key) if isinstance(key, tuple) else [key]
        if isinstance(key, list) and any(isinstance(k, slice | list | tuple | Tensor | type(None)) for k in key):
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
        shape = x.shape
        for k in items:
            if k is None:
                new.append(1)
            elif isinstance(k, bool | np.bool_):
                self.dims.append(len(new))
                self.tensors.append(Tensor(np.zeros(1 if k else 0, np.int64)))
                new.append(1)
            elif isinstance(k, slice):
                k = slice(*(v if v is None or is_ragged(v) else int(v) for v in (k.start, k.stop, k.step)))
                if k.step is not None and k.step <= 0:
                    raise ValueError("slice step must be positive; use flip() to reverse a dim")
                basic.append(k)
                n = shape[axis]
                new.append(n.sliced(k) if is_ragged(n) else len(range(*k.indices(n))))
                axis += 1
            elif isinstance(k, int | np.integer):
                n = shape[axis]
                if not (n.covers(max(k + 1, -k)) if is_ragged(n) else -n <= k < n):
                    raise IndexError(
                        f"index {k} is out of bounds for dimension {axis} with size {n}"
                        f"{n.less(max(k + 1, -k)) if is_ragged(n) else ''}"
                    )
                basic.append(int(k))
                axis += 1
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
        self.shape = tuple(shape)

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
        s = broadcast_shapes(
            *[t.shape for t in ts], what="shape mismatch: indexing tensors could not be broadcast together"
        )
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


def _getitem(self: Tensor, key: Any) -> Tensor:
    """``x[key]``: ints, slices, None, Ellipsis, boolean masks and index tensors, mixed."""
    if type(key) is int and self.ndim:
        return self.select(0, key)
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


def places(x: Tensor) -> Tensor:
    """The number of each element of `x` in row-major order, in the shape of `x`."""
    if SEEN and x.is_nested:
        from ..shape.create import arange

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
    place = places(x)[key]
    if not isinstance(value, Tensor):
        value = Tensor(np.asarray(value, x.dtype.np))
    shape = place.shape
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
    if value.dtype is not x.dtype:
        value = value.to(x.dtype)
    return put_at(x, place, value, accumulate)


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


Tensor.__getitem__ = _getitem  # type: ignore[method-assign, assignment]
Tensor.__setitem__ = _setitem  # type: ignore[method-assign, assignment]


@public("index_put", methods="index_put", inplace="index_put_", out=False)
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with ``input[indices]`` replaced by `values`, or with them added."""
    if values.dtype is not input.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {input.dtype} for the destination and {values.dtype} for the source (values)."
        )
    return index_write(input, tuple(slice(None) if i is None else i for i in indices), values, accumulate)


@public("index_select", methods="index_select", fresh=True)
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
    i = wrap_index_p(index.reshape(-1), n=input.shape[d], dim=d + n)
    if COMPOSED and input.layout.name.startswith("sparse"):
        from ...payloads.sparse import shape_forms

        return shape_forms.index_select(input, d + n, i)
    x = input.movedim(d, 0)
    return take_rows_p(x, i, r=n - 1, s=1, n=x.shape[0]).movedim(0, d)


# -- gather, scatter --------------------------------------------------------------------------------------------------


@op("gather", batch="expand", grows="old")
def gather_p(x: Any, i: Any, *, dim: int, old: tuple[int, ...]) -> Any:
    """``y[a][b] = x[i[a][b]][b]`` for dim 0, and so on, of an `x` of sizes `old`."""
    return moving.gather(x, i, dim)


@op("scatter_add", batch="expand", grows="ss")
def scatter_add_p(x: Any, i: Any, src: Any, *, dim: int, ss: tuple[int, ...]) -> Any:
    """`x` with ``src`` added at the places that gather would read."""
    return moving.scatter_add(x, i, src if src.shape == i.shape else src[tuple([slice(0, m) for m in i.shape])], dim)


@op("scatter", batch="expand", grows="ss")
def scatter_p(x: Any, i: Any, src: Any, *, dim: int, ss: tuple[int, ...]) -> Any:
    """`x` with ``src`` written at the places that gather would read."""
    return moving.scatter(x, i, src if src.shape == i.shape else src[tuple([slice(0, m) for m in i.shape])], dim)


def _zeros(shape: Any, like: Any) -> Any:
    return zeros(tuple(shape), like.dtype)


def _padded(v: Any, ss: tuple[int, ...]) -> Any:
    """`v` as the leading block of zeros of sizes `ss`."""
    if tuple(v.shape) == ss:
        return v
    from ..shape.slices import unslice_p

    return unslice_p(v, key=tuple(slice(0, m) for m in v.shape), old=ss)


gather_p.jvp([lambda t, y, x, i, *, dim, old: gather_p(t, i, dim=dim, old=old), None])
gather_p.vjp([lambda g, y, x, i, *, dim, old: scatter_add_p(_zeros(old, g), i, g, dim=dim, ss=tuple(g.shape)), None])


@scatter_add_p.jvp
def _(t: Any, y: Any, x: Any, i: Any, src: Any, *, dim: int, ss: tuple[int, ...]) -> Any:
    return scatter_add_p(t[0], i, t[2], dim=dim, ss=ss)


@scatter_add_p.vjp
def _(g: Any, y: Any, x: Any, i: Any, src: Any, *, dim: int, ss: tuple[int, ...]) -> Any:
    return g, None, lambda: _padded(gather_p(g, i, dim=dim, old=tuple(g.shape)), ss)


@scatter_p.jvp
def _(t: Any, y: Any, x: Any, i: Any, src: Any, *, dim: int, ss: tuple[int, ...]) -> Any:
    return scatter_p(t[0], i, t[2], dim=dim, ss=ss)


@op("scatter_winners", grows="old", differentiable=False)
def scatter_winners_p(i: Any, *, dim: int, old: tuple[int, ...]) -> Any:
    """True where a scatter's write is the last to its place."""
    return moving.winners(i, dim, old)


@scatter_p.vjp
def _(g: Any, y: Any, x: Any, i: Any, src: Any, *, dim: int, ss: tuple[int, ...]) -> Any:
    def written() -> Any:
        old = tuple(g.shape)
        return _padded(where_p.bind(scatter_winners_p(i, dim=dim, old=old), gather_p(g, i, dim=dim, old=old), 0), ss)

    return lambda: scatter_p(g, i, _zeros(i.shape, g), dim=dim, ss=tuple(i.shape)), None, written


def check_index(name: str, input: Tensor, dim: int, index: Tensor, src: Any = None, like: str = "input") -> int:
    """`dim` counted from the end, after the checks PyTorch makes of gather and scatter."""
    n = input.ndim
    d = wrap_dim(dim, n)
    if index.dtype not in (dt.int64, dt.int32) and index.numel():
        raise RuntimeError(f"{name}(): Expected dtype int32 or int64 for index, got {index.dtype}")
    if index.numel() == 0:
        return d
    if max(index.ndim, 1) != max(n, 1):
        raise RuntimeError(
            f"{name}(): Index tensor must have the same number of dimensions as {like} tensor: index has shape {list(index.shape)}, {like} {list(input.shape)}"
        )
    for k in range(n):
        if k - n != d and index.ndim and index.shape[k] > input.shape[k]:
            raise RuntimeError(
                f"{name}(): Size does not match at dimension {k}: expected index {list(index.shape)} to be no larger than "
                f"{like} {list(input.shape)} apart from dimension {d + n}"
            )
    if isinstance(src, Tensor):
        if max(src.ndim, 1) != max(index.ndim, 1):
            raise RuntimeError(
                f"{name}(): Index tensor must have the same number of dimensions as src tensor: {list(index.shape)} and {list(src.shape)}"
            )
        for k in range(index.ndim):
            if src.ndim and index.shape[k] > src.shape[k]:
                raise RuntimeError(
                    f"{name}(): Expected index {list(index.shape)} to be no larger than src {list(src.shape)} at dimension {k}"
                )
        if src.dtype is not input.dtype:
            raise RuntimeError(
                f"{name}(): Expected self.dtype to be equal to src.dtype, got {input.dtype} and {src.dtype}"
            )
    return d


def _one(x: Tensor) -> Tensor:
    return x.reshape(1) if x.ndim == 0 else x


def _gather_with_sparse_gradient(x: Tensor, i: Tensor, d: int) -> Tensor:
    """gather() whose gradient is sparse: the elements that were read."""
    from ...payloads.sparse.pattern import Pattern
    from ..sparse.build import index_data
    from ..sparse.values import values_p

    at = index_data("gather(sparse_grad=True)", "the indices", i)
    where = np.indices(at.shape).reshape(at.ndim, -1)
    where[d] = at.reshape(-1)
    p = Pattern("coo", tuple(x.shape), (where,), 0, None, False)
    return values_p.bind(x, pattern=p).reshape(at.shape)


@public("gather", methods="gather", fresh=True)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """``y[a][b] = input[index[a][b]][b]`` for dim 0, ``input[a][index[a][b]]`` for dim 1, and so on."""
    d = check_index("gather", input, dim, index)
    if index.numel() == 0:  # nothing of the input, and still a function of it
        return clone_p.bind(input.reshape(-1)[:0].reshape(tuple(index.shape)))
    x, i = _one(input), _one(index)
    _check_range("gather", i, x.shape[d], d + x.ndim)
    if sparse_grad:
        return _gather_with_sparse_gradient(x, i, d).reshape(index.shape)
    return gather_p(x, i, dim=d, old=tuple(x.shape)).reshape(index.shape)


@op("check_range", differentiable=False, sizes="n")
def check_range_p(i: Any, *, n: int, name: str, dim: int) -> Any:
    """The index itself, after checking that it lies in [0, n)."""
    if moving.out_of_range(i, 0, n):
        bad = i[(i < 0) | (i >= n)].flat[0]
        raise RuntimeError(f"{name}(): index {bad} is out of bounds for dimension {dim} with size {n}")
    return i


def _check_range(name: str, i: Tensor, n: int, dim: int) -> None:
    check_range_p.bind(i, n=n, name=name, dim=dim)


def _scatter(p: Any, name: str, input: Tensor, dim: int, index: Tensor, src: Any) -> Tensor:
    d = check_index(name, input, dim, index, src, "self")
    if index.numel() == 0:
        return input.clone()
    x, i = _one(input), _one(index)
    _check_range(name, i, x.shape[d], d + x.ndim)
    if not isinstance(src, Tensor):
        src = Tensor(np.asarray(src, x.dtype.np))
    s = src.expand(*i.shape) if src.ndim == 0 else src
    return p(x, i, s, dim=d, ss=tuple(s.shape)).reshape(input.shape)


@public("scatter", methods="scatter", inplace="scatter_")
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """`input` with `src` (a tensor or a number) written where gather would read."""
    v = value if src is None else src
    if reduce == "add":
        return _scatter(scatter_add_p, "scatter", input, dim, index, v)
    if reduce == "multiply":
        if not isinstance(v, Tensor):
            v = Tensor(np.full(index.shape, v, input.dtype.np))
        return input.scatter_reduce(dim, index, v, "prod")
    if reduce is not None:
        raise RuntimeError(f"scatter: reduce argument must be either add or multiply, got {reduce!r}")
    return _scatter(scatter_p, "scatter", input, dim, index, v)


@public("scatter_add", methods="scatter_add", inplace="scatter_add_")
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """`input` with `src` added where gather would read."""
    return _scatter(scatter_add_p, "scatter_add", input, dim, index, src)


# -- triangles --------------------------------------------------------------------------------------------------------


def _triangle(name: str, fn: Any) -> Any:
    @op(name)
    def p(x: Any, *, k: int) -> Any:
        return fn(x, k)

    p.jvp([lambda t, y, x, *, k: p(t, k=k)])
    p.vjp([lambda g, y, x, *, k: p(g, k=k)])

    def form(input: Tensor, diagonal: int = 0) -> Tensor:
        if input.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions, got {list(input.shape)}")
        return p(input, k=diagonal)

    form.__name__ = name
    form.__doc__ = f"The {'lower' if name == 'tril' else 'upper'} triangle of the last two dims, zeros elsewhere."
    return public(name, methods=name, inplace=f"{name}_")(form)


tril = _triangle("tril", np.tril)
triu = _triangle("triu", np.triu)

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
sample("gather", S(3, 4), 1, Given([[0, 1], [3, 3], [2, 0]]))
sample("gather", S(3, 4), 0, Given([[0, 2, 1]]))
sample("scatter", S(3, 4), 1, Given([[0, 1], [3, 2], [2, 0]]), S(3, 2))
sample("scatter", S(3, 4), 1, Given([[0, 1], [3, 2], [2, 0]]), 1.5)
sample("scatter_add", S(3, 4), 1, Given([[0, 0], [3, 2], [2, 0]]), S(3, 3))
sample("tril", S(3, 4), -1)
sample("triu", S(2, 3, 3), 1)
