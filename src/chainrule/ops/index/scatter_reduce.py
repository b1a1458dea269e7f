"""Reductions into chosen places: scatter_reduce, index_reduce, segment_reduce, embedding_bag.

Ties of an extremum share the gradient evenly. Products go through a segmented scan made of multiplications, so that any
number of zeros is right at every order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import kernels
from ...core import dtypes as dt
from ...core.declare import fused, op
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import constant, wrap_dim, zeros
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.select import where
from ..linalg.matmul import rounded_once
from ..shape.in_each import whole_nest
from ..shape.slices import cat
from . import moving
from .along import _source, _vector
from .gather import at_least_1d, check_index, check_range_p, gather_p, scatter_add_p
from .rows import add_rows_p, blank, take_rows_p

_NAMES = ("sum", "prod", "mean", "amax", "amin")


def _extremum(name: str, fn: Any) -> Any:
    @op(name, batch="expand")
    def p(x: Any, i: Any, src: Any, *, dim: int, include: bool) -> Any:
        if not i.size:
            return x.copy()
        try:
            a, at_ = moving.folded(x, i, dim)
            own = np.ascontiguousarray(src if src.shape == i.shape else src[tuple(slice(0, m) for m in i.shape)])
            return moving.indexing.extreme(a, at_, own.reshape(at_.shape), fn is np.minimum, include).reshape(x.shape)
        except moving.NotSupported:
            pass
        n = i.ndim
        grid: list[Any] = [np.arange(m).reshape([-1 if k == a else 1 for k in range(n)]) for a, m in enumerate(i.shape)]
        grid[dim] = i
        at = tuple(grid)
        out = x.copy()
        if not include:
            out[at] = _worst(x.dtype, fn)
        fn.at(out, at, src[tuple(slice(0, m) for m in i.shape)])
        return out

    def special(xs: list[Any], kw: dict[str, Any]) -> Any:
        """One call of compiled code for arrays that lie as they should."""
        what = f"extreme{' low' if fn is np.minimum else ''}{'' if kw['include'] else ' alone'}"
        if xs[0].dtype not in dt.REALS or xs[0].dtype in dt.HALVES:
            return None
        return moving.quickly(lambda *vals: p.body(*vals[:-1], **kw), what, xs, kw["dim"])

    p.special = special

    def share(y: Any, x: Any, i: Any, src: Any, dim: int, include: bool, like: Any) -> tuple[Any, Any, Any]:
        """How much each place and each source element takes part, and how many do."""
        old = tuple(y.shape)
        s = src if src.shape == i.shape else src[tuple(slice(0, m) for m in i.shape)]
        d = like.dtype
        top = gather_p(y, i, dim=dim, old=old)
        from_src = ((s == top) | ((s != s) & (top != top))).to(d)  # a NaN result comes from the NaNs
        own = (x == y) | ((x != x) & (y != y))
        if not include:
            hit = scatter_add_p(blank(old, from_src), i, from_src * 0 + 1, dim=dim, ss=tuple(i.shape)) > 0
            own = own & ~hit
        own = own.to(d)
        return own, from_src, own + scatter_add_p(blank(old, from_src), i, from_src, dim=dim, ss=tuple(i.shape))

    @p.jvp
    def _(t: Any, y: Any, x: Any, i: Any, src: Any, *, dim: int, include: bool) -> Any:
        own, part, count = share(y, x, i, src, dim, include, t[0])
        ts = t[2] if t[2].shape == i.shape else t[2][tuple(slice(0, m) for m in i.shape)]
        return (t[0] * own + scatter_add_p(blank(y.shape, t[0]), i, ts * part, dim=dim, ss=tuple(i.shape))) / count

    @p.vjp
    def _(g: Any, y: Any, x: Any, i: Any, src: Any, *, dim: int, include: bool) -> Any:
        own, part, count = share(y, x, i, src, dim, include, g)
        g = g / count

        def back() -> Any:
            from .gather import padded

            return padded(gather_p(g, i, dim=dim, old=tuple(g.shape)) * part, tuple(src.shape))

        return g * own, None, back

    return p


def _worst(d: np.dtype, fn: Any) -> Any:
    low = fn is np.maximum
    if dt.FROM_NP[d].category == dt.FLOAT:  # NumPy's kind of bfloat16 is that of an unknown type
        return -np.inf if low else np.inf
    if d.kind == "b":
        return not low
    return np.iinfo(d).min if low else np.iinfo(d).max


_EXTREMA = {"amax": _extremum("scatter_amax", np.maximum), "amin": _extremum("scatter_amin", np.minimum)}


@op("sort_slots", differentiable=False)
def sort_slots_p(i: Any, *, dim: int) -> Any:
    """The order that sorts slots along `dim`, stably."""
    return np.argsort(i, axis=dim, kind="stable")


@op("slot_ends", differentiable=False)
def slot_ends_p(i: Any, *, dim: int, n: int) -> Any:
    """For sorted slots, the position of the last entry of each of the n slots, or -1."""
    i = np.moveaxis(i, dim, -1)
    count = (i[..., None, :] <= np.arange(n)[:, None]).sum(-1)
    own = (i[..., None, :] == np.arange(n)[:, None]).any(-1)
    return np.moveaxis(np.where(own, count - 1, -1), -1, dim)


@rounded_once
def _scatter_prod(x: Tensor, dim: int, index: Tensor, src: Tensor, include: bool) -> Tensor:
    """Products of what lands in each place, by a segmented scan over the sorted entries."""
    n = x.shape[dim]
    cut = tuple(slice(0, x.shape[k] if k - x.ndim == dim else index.shape[k]) for k in range(x.ndim))
    inside = x[cut]
    slots = constant(np.arange(n).reshape([-1 if k - x.ndim == dim else 1 for k in range(x.ndim)]), index, dt.int64)
    slots = slots.expand(*inside.shape)
    ss = src if src.shape == index.shape else src[tuple(slice(0, m) for m in index.shape)]
    if include:
        entries, where_to = cat([inside, ss], dim), cat([slots, index.to(dt.int64)], dim)
    else:
        entries, where_to = ss, index.to(dt.int64)
    m = entries.shape[dim]
    if m == 0:
        return x.clone()
    order = sort_slots_p(where_to, dim=dim)
    old = tuple(entries.shape)
    v, slot = gather_p(entries, order, dim=dim, old=old), gather_p(where_to, order, dim=dim, old=old)
    step = 1
    while step < m:
        same = slot.narrow(dim, step, m - step) == slot.narrow(dim, 0, m - step)
        head, tail = v.narrow(dim, 0, step), v.narrow(dim, step, m - step)
        v = cat([head, tail * where(same, v.narrow(dim, 0, m - step), 1)], dim)
        step *= 2
    ends = slot_ends_p(slot, dim=dim, n=n)
    got = where(ends >= 0, gather_p(v, ends.clamp(min=0), dim=dim, old=tuple(v.shape)), inside)
    if tuple(got.shape) == tuple(x.shape):
        return got
    y = x.clone()
    y[cut] = got
    return y


def reduce_into(name: str, input: Tensor, d: int, index: Tensor, src: Tensor, reduce: str, include: bool) -> Tensor:
    """`input` with `src` reduced into the places that gather would read."""
    if index.numel() == 0 and not src._recorded:
        return input.clone()
    x, i, s = at_least_1d(input), at_least_1d(index), at_least_1d(src)
    check_range_p.bind(i, n=x.shape[d], name=name, dim=d + x.ndim, rank=i.ndim)
    ss = tuple(s.shape)
    if index.numel() == 0:  # nothing is added, but what depends on `src` stays in the graph
        y = scatter_add_p(x, i, s, dim=d, ss=ss)
    elif reduce == "prod":
        y = _scatter_prod(x, d, i, s, include)
    elif reduce in _EXTREMA:
        if x.dtype.category == dt.COMPLEX:
            raise RuntimeError(f"{name}: {reduce} is not defined for complex input")
        y = _EXTREMA[reduce](x, i, s, dim=d, include=include)
    else:
        ones = zeros(tuple(i.shape), dt.float64) + 1
        hits = scatter_add_p(zeros(tuple(x.shape), dt.float64), i, ones, dim=d, ss=tuple(i.shape))
        base = x if include else where(hits > 0, 0, x)
        y = scatter_add_p(base, i, s, dim=d, ss=ss)
        if reduce == "mean":
            count = hits + 1 if include else hits.clamp(min=1)
            y = (
                y / count.to(x.dtype.to_real())
                if x.dtype.category >= dt.FLOAT
                else y.div(count.to(x.dtype), rounding_mode="floor")
            )
    return y.to(input.dtype).reshape(*input.shape)


@public("scatter_reduce", methods="scatter_reduce", inplace="scatter_reduce_")
@straight
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`input` with `src` reduced ("sum", "prod", "mean", "amax", "amin") into the places that gather would read."""
    if reduce not in _NAMES:
        raise RuntimeError(
            f"scatter_reduce: reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    d = check_index("scatter_reduce", input, dim, index, src, "self")
    return reduce_into("scatter_reduce", input, d, index, src, reduce, include_self)


@public("index_reduce", methods="index_reduce", inplace="index_reduce_")
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`input` with `source` reduced ("prod", "mean", "amax", "amin") into the entries `index` of `dim`."""
    if reduce not in _NAMES[1:]:
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    d = wrap_dim(dim, input.ndim)
    i = _vector("index_reduce", index)
    src = _source("index_reduce", input, d, i, source)
    src = src.movedim(0, d) if input.ndim else src
    x = input if input.ndim else input.reshape(1)
    shape = [1] * x.ndim
    shape[d] = i.shape[0]
    full = list(x.shape)
    full[d] = i.shape[0]
    return reduce_into(
        "index_reduce", x, d, i.reshape(*shape).expand(*full), src.expand(*full), reduce, include_self
    ).reshape(*input.shape)


# -- segments ---------------------------------------------------------------------------------------------------------


@op("segment_ids", differentiable=False, sizes="n")
def segment_ids_p(lengths: Any, *, n: int, whole: bool = False) -> Any:
    """The segment of each of n entries, from the segments' lengths (last axis); `whole` if they have to add up to n."""
    if whole and (lengths < 0).any():
        raise RuntimeError("segment_reduce(): lengths contains negative value!")
    if whole and (lengths.sum(-1) != n).any():
        raise RuntimeError(
            f"segment_reduce(): Expected all rows of lengths along axis to sum to data.size(axis) = {n} when !unsafe."
        )
    ends = np.cumsum(lengths, -1).reshape((-1, lengths.shape[-1]))
    marks = np.zeros((len(ends), n + 1), np.int64)
    np.add.at(marks, (np.arange(len(ends))[:, None], np.clip(ends, 0, n)), 1)
    return np.cumsum(marks[:, :n], -1).reshape((*lengths.shape[:-1], n))  # how many segments have ended


def _lengths(offsets: Any) -> Tensor:
    n = offsets.shape[-1]
    return offsets.narrow(-1, 1, n - 1) - offsets.narrow(-1, 0, n - 1)


@op("bag_lengths", differentiable=False)
def bag_lengths_p(offsets: Any, *, n: int) -> Any:
    """The lengths of bags that begin and end at `offsets` (last axis) among n entries."""
    if offsets.shape[-1] > 1 and offsets[..., 0].any():
        raise RuntimeError(
            f"embedding_bag: offsets[0] has to be 0, since the first bag begins with the first entry of input; got {offsets[..., 0]}"
        )
    lengths = np.diff(offsets)
    if (lengths < 0).any() or (offsets > n).any():
        raise RuntimeError(f"embedding_bag: offsets have to ascend to at most the {n} entries of input, got {offsets}")
    return lengths


_START = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}


@public("segment_reduce", out=False)
def segment_reduce(data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Any = None, offsets: Tensor | None = None,
                   axis: int = 0, unsafe: bool = False, initial: Any = None) -> Tensor:  # fmt: skip
    """Consecutive entries of `axis` reduced ("sum", "mean", "max", "min", "prod") in segments of the given lengths (or offsets)."""
    if reduce not in _START:
        raise RuntimeError(f"segment_reduce: unsupported reduction {reduce!r}: use sum, mean, max, min or prod")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined")
    ls = _lengths(offsets) if lengths is None else lengths
    ax = wrap_dim(axis, data.ndim) + data.ndim
    n, k = data.shape[ax], ls.shape[-1]
    ids = segment_ids_p(ls, n=n, whole=not unsafe and lengths is not None)
    full = (
        ids.reshape(*ids.shape, *(1,) * (data.ndim - ax - 1)).expand(*data.shape)
        if ids.ndim == ax + 1
        else ids.reshape(*(1,) * ax, n, *(1,) * (data.ndim - ax - 1)).expand(*data.shape)
    )
    # Entries after the last segment fall into one more, which is dropped.
    shape = (*data.shape[:ax], k + 1, *data.shape[ax + 1 :])
    start = zeros(shape, data.dtype) + (_START[reduce] if initial is None else initial)
    how = {"max": "amax", "min": "amin", "mean": "sum"}.get(reduce, reduce)
    y = reduce_into("segment_reduce", start, ax - data.ndim, full, data, how, True).narrow(ax, 0, k)
    if reduce == "mean":
        count = ls.to(data.dtype)
        count = count.reshape(*count.shape, *(1,) * (data.ndim - ax - 1))
        empty = count == 0
        # A mean over nothing is the initial value if there is one, else NaN.
        y = where(empty, float("nan") if initial is None else initial, y / where(empty, 1, count))
    return y


public("_segment_reduce", out=False)(segment_reduce)


def _bags(w: Any, i: Any, lengths: Any, *, n: int, bags: int) -> tuple[Any, ...]:
    """The sums of rows `i` of the `n` of a table, as many in each of the bags as its length says."""
    places = segment_ids_p(lengths, n=i.shape[-1])
    return (add_rows_p(take_rows_p(w, i, r=1, s=1, n=n), places, n=bags, r=1, s=1),)


def _bags_kernel(w: Any, i: Any, lengths: Any, *, n: int, bags: int) -> tuple[Any, ...]:
    if w.ndim != 2 or i.ndim != 1 or lengths.shape != (bags,):
        raise kernels.NotSupported
    return (kernels.indexing.bags(w, i, lengths),)


bags_p = fused("bags", _bags, lambda **kw: (2, 1, 1), lambda **kw: (2,), _bags_kernel)


@bags_p.jvp
def _(t: Any, y: Any, w: Any, i: Any, lengths: Any, *, n: int, bags: int) -> Any:
    return bags_p(t[0], i, lengths, n=n, bags=bags)


@bags_p.vjp
def _(g: Any, y: Any, w: Any, i: Any, lengths: Any, *, n: int, bags: int) -> Any:
    places = segment_ids_p(lengths, n=i.shape[-1])
    return add_rows_p(take_rows_p(g[0], places, r=1, s=1, n=bags), i, n=n, r=1, s=1), None, None


@public("nn.functional.embedding_bag", out=False)
@straight
def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
                  scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
                  include_last_offset: bool = False, padding_idx: int | None = None) -> Tensor:  # fmt: skip
    """Rows of the table `weight` summed, averaged or maximised in bags: the rows of a 2-D input, or segments from `offsets`."""
    if input.dtype.category >= dt.FLOAT and weight.dtype.category <= dt.INT:
        input, weight = weight, input
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: mode has to be one of sum, mean or max, got {mode!r}")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='{mode}')."
        )
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({list(per_sample_weights.shape)}) is not None, then it must have "
            f"the same shape as the input ({list(input.shape)})"
        )
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            f"embedding_bag: expected `weight` and `per_sample_weights` to have the same type as each other, got {weight.dtype} and "
            f"{per_sample_weights.dtype}"
        )
    if weight.ndim != 2:
        raise ValueError(f"embedding_bag: weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise RuntimeError(
            f"embedding_bag: padding_idx must be within the number of embeddings, {-weight.shape[0]} through {weight.shape[0] - 1}, got {padding_idx}"
        )
    if whole_nest(input) and input.ndim == 2:  # bags of sizes of their own
        lengths, input = input.lengths(), input.values()
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.values()
    elif input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "embedding_bag: if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences."
            )
        bags, n = input.shape
        lengths = constant(np.full(bags, n), input, dt.int64)
        input = input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    elif input.ndim == 1:
        if offsets is None:
            raise ValueError("embedding_bag: offsets has to be a 1D Tensor but got None")
        if offsets.ndim != 1:
            raise ValueError(f"embedding_bag: offsets has to be a 1D Tensor, got shape {list(offsets.shape)}")
        ends = offsets if include_last_offset else cat([offsets, constant([input.shape[0]], offsets)])
        lengths = bag_lengths_p(ends, n=input.shape[0])
    else:
        raise ValueError(f"embedding_bag: input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    from .along import embedding

    n = weight.shape[0]
    pad = None if padding_idx is None else padding_idx % n
    # Entries after the last offset fall into one more bag, which is dropped.
    total, bags = input.shape[0], lengths.shape[0] + include_last_offset
    alike = mode != "max" and pad is None and per_sample_weights is None and not (sparse or scale_grad_by_freq)
    if (
        alike
        and max_norm is None
        and weight.dtype in (dt.float32, dt.float64)
        and not include_last_offset
        and not (weight.is_nested or input.is_nested)
    ):
        try:
            i = check_range_p.bind(input.to(dt.int64), n=n, name="embedding_bag", dim=0)
        except RuntimeError as e:
            raise RuntimeError(f"embedding_bag: Expected idx >= 0 && idx < num_embeddings ({n}): {e}") from None
        y = bags_p(weight, i, lengths, n=n, bags=bags)[0]
        return y / lengths.clamp(min=1).to(y.dtype).unsqueeze(-1) if mode == "mean" else y
    try:
        rows = embedding(input, weight, None, max_norm, norm_type, scale_grad_by_freq, sparse)
    except IndexError as e:
        raise RuntimeError(f"embedding_bag: Expected idx >= 0 && idx < num_embeddings ({n}): {e}") from None
    half = rows.dtype if rows.dtype.np in dt.HALVES else None
    if half:  # rounded once, at the end
        rows = rows.to(dt.float32)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.to(dt.float32)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    places = segment_ids_p(lengths, n=total)
    ids = places.reshape(total, 1).expand(*rows.shape)
    keep = (input != pad).unsqueeze(-1) if pad is not None else None

    def dropped(y: Tensor) -> Tensor:
        return y.narrow(0, 0, bags - 1) if include_last_offset else y

    if mode == "max":
        start = zeros((bags, rows.shape[1]), rows.dtype) + float("-inf")
        each = rows if keep is None else where(keep, rows, float("-inf"))
        y = dropped(reduce_into("embedding_bag", start, -2, ids, each, "amax", True))
        y = where(y == float("-inf"), 0, y)
    else:
        y = dropped(add_rows_p(rows if keep is None else where(keep, rows, 0), places, n=bags, r=1, s=1))
    if mode == "mean":
        if keep is None:
            count = lengths.to(rows.dtype).unsqueeze(-1)
        else:
            count = dropped(add_rows_p(keep.to(rows.dtype), places, n=bags, r=1, s=1))
        y = y / count.clamp(min=1)
    return y.to(half) if half else y


# -- samples ----------------------------------------------------------------------------------------------------------

_I = Given([[0, 1, 0, 3], [2, 2, 1, 0]])
for _r in _NAMES:
    sample("scatter_reduce", S(4, 4), 0, _I, S(2, 4), _r, cx=_r in ("sum", "prod", "mean"))
    sample("scatter_reduce", S(4, 4), 0, _I, S(2, 4), _r, include_self=False, cx=False)
sample(
    "scatter_reduce",
    Given([0.0, 2.0, 0.0], grad=True),
    0,
    Given([0, 0, 2, 2]),
    Given([0.0, 3.0, 0.0, 1.0], grad=True),
    "prod",
)
for _r in _NAMES[1:]:
    sample("index_reduce", S(4, 3), 0, Given([0, 2, 0]), S(3, 3), _r, cx=False)
for _r in _START:
    sample(
        "segment_reduce", S(5, 2), _r, lengths=Given([2, 0, 3]) if _r in ("sum", "prod") else Given([2, 1, 2]), cx=False
    )
    # Unchecked lengths need not add up to the entries: those that are left over belong to no segment.
    sample("segment_reduce", S(5, 2), _r, lengths=Given([2, 1, 1]), unsafe=True, cx=False)
for _r in ("sum", "mean", "max"):
    sample("nn.functional.embedding_bag", Given([0, 2, 2, 1]), S(4, 3), Given([0, 1]), mode=_r, cx=False)
