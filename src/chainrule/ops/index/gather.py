"""gather and scatter: one index for each element."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.primitives import clone_p
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import constant, wrap_dim
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.select import where_p
from . import moving
from .rows import blank


@op("gather", batch="expand", grows="old", moves=True)
def gather_p(x: Any, i: Any, *, dim: int, old: tuple[int, ...]) -> Any:
    """``y[a][b] = x[i[a][b]][b]`` for dim 0, and so on, of an `x` of sizes `old`."""
    return moving.gather(x, i, dim)


@op("scatter_add", batch="expand", grows="ss", moves=True)
def scatter_add_p(x: Any, i: Any, src: Any, *, dim: int, ss: tuple[int, ...]) -> Any:
    """`x` with ``src`` added at the places that gather would read."""
    return moving.scatter_add(x, i, src if src.shape == i.shape else src[tuple([slice(0, m) for m in i.shape])], dim)


@op("scatter", batch="expand", grows="ss", moves=True)
def scatter_p(x: Any, i: Any, src: Any, *, dim: int, ss: tuple[int, ...]) -> Any:
    """`x` with ``src`` written at the places that gather would read."""
    return moving.scatter(x, i, src if src.shape == i.shape else src[tuple([slice(0, m) for m in i.shape])], dim)


gather_p.special = lambda xs, kw: moving.quickly(moving.gather, "take", xs, kw["dim"])
scatter_p.special = lambda xs, kw: moving.quickly(moving.scatter, "put", xs, kw["dim"])
scatter_add_p.special = lambda xs, kw: moving.quickly(moving.scatter_add, "add", xs, kw["dim"])


def padded(v: Any, ss: tuple[int, ...]) -> Any:
    """`v` as the leading block of zeros of sizes `ss`."""
    if tuple(v.shape) == ss:
        return v
    from ..shape.slices import unslice_p

    return unslice_p(v, key=tuple(slice(0, m) for m in v.shape), old=ss)


gather_p.jvp([lambda t, y, x, i, *, dim, old: gather_p(t, i, dim=dim, old=old), None])
gather_p.vjp([lambda g, y, x, i, *, dim, old: scatter_add_p(blank(old, g), i, g, dim=dim, ss=tuple(g.shape)), None])


@scatter_add_p.jvp
def _(t: Any, y: Any, x: Any, i: Any, src: Any, *, dim: int, ss: tuple[int, ...]) -> Any:
    return scatter_add_p(t[0], i, t[2], dim=dim, ss=ss)


@scatter_add_p.vjp
def _(g: Any, y: Any, x: Any, i: Any, src: Any, *, dim: int, ss: tuple[int, ...]) -> Any:
    return g, None, lambda: padded(gather_p(g, i, dim=dim, old=tuple(g.shape)), ss)


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
        return padded(where_p.bind(scatter_winners_p(i, dim=dim, old=old), gather_p(g, i, dim=dim, old=old), 0), ss)

    return lambda: scatter_p(g, i, blank(i.shape, g), dim=dim, ss=tuple(i.shape)), None, written


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


def at_least_1d(x: Tensor) -> Tensor:
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
@straight
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """``y[a][b] = input[index[a][b]][b]`` for dim 0, ``input[a][index[a][b]]`` for dim 1, and so on."""
    d = check_index("gather", input, dim, index)
    if index.numel() == 0:  # nothing of the input, and still a function of it
        return clone_p.bind(input.reshape(-1)[:0].reshape(tuple(index.shape)))
    x, i = at_least_1d(input), at_least_1d(index)
    _check_range("gather", i, x.shape[d], d + x.ndim)
    if sparse_grad:
        return _gather_with_sparse_gradient(x, i, d).reshape(index.shape)
    y = gather_p.bind(x, i, dim=d, old=tuple(x.shape))
    return y if index.ndim else y.reshape(index.shape)


@op("check_range", differentiable=False, sizes="n")
def check_range_p(i: Any, *, n: int, name: str, dim: int, rank: int = 0) -> Any:
    """The index itself, after checking that it lies in [0, n); its last `rank` axes lie beside those that a ragged n is of."""
    if moving.out_of_range(i, 0, n):
        bad = i[(i < 0) | (i >= n)].flat[0]
        kind = IndexError if name.startswith("index_") else RuntimeError  # as PyTorch has it
        raise kind(f"{name}(): index {bad} is out of bounds for dimension {dim} with size {n}")
    return i


def _check_range_of(xs: list[Any], kw: dict[str, Any]) -> Any:
    """The check by one call of compiled code."""
    outside = moving.indexing.outside_of(xs[0], 0, kw["n"])
    if outside is None:
        return None

    def check(i: Any) -> Any:
        return check_range_p.body(i, **kw) if outside(i) != 0 else i  # and where it cannot tell

    return check


check_range_p.special = _check_range_of


def _check_range(name: str, i: Tensor, n: int, dim: int) -> None:
    check_range_p.bind(i, n=n, name=name, dim=dim, rank=i.ndim)


def _scatter(p: Any, name: str, input: Tensor, dim: int, index: Tensor, src: Any) -> Tensor:
    d = check_index(name, input, dim, index, src, "self")
    if index.numel() == 0:
        return input.clone()
    x, i = at_least_1d(input), at_least_1d(index)
    _check_range(name, i, x.shape[d], d + x.ndim)
    if not isinstance(src, Tensor):
        src = constant(src, x)
    s = src.expand(*i.shape) if src.ndim == 0 else src
    y = p.bind(x, i, s, dim=d, ss=tuple(s.shape))
    return y if input.ndim else y.reshape(input.shape)


@public("scatter", methods="scatter", inplace="scatter_")
@straight
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """`input` with `src` (a tensor or a number) written where gather would read."""
    v = value if src is None else src
    if reduce == "add":
        return _scatter(scatter_add_p, "scatter", input, dim, index, v)
    if reduce == "multiply":
        if not isinstance(v, Tensor):
            v = constant(np.full(index.shape, v), input)
        return input.scatter_reduce(dim, index, v, "prod")
    if reduce is not None:
        raise RuntimeError(f"scatter: reduce argument must be either add or multiply, got {reduce!r}")
    return _scatter(scatter_p, "scatter", input, dim, index, v)


@public("scatter_add", methods="scatter_add", inplace="scatter_add_")
@straight
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """`input` with `src` added where gather would read."""
    return _scatter(scatter_add_p, "scatter_add", input, dim, index, src)


# -- samples ------------------------------------------------------------------------------------------------------------


sample("gather", S(3, 4), 1, Given([[0, 1], [3, 3], [2, 0]]))
sample("gather", S(3, 4), 0, Given([[0, 2, 1]]))
sample("scatter", S(3, 4), 1, Given([[0, 1], [3, 2], [2, 0]]), S(3, 2))
sample("scatter", S(3, 4), 1, Given([[0, 1], [3, 2], [2, 0]]), 1.5)
sample("scatter_add", S(3, 4), 1, Given([[0, 0], [3, 2], [2, 0]]), S(3, 3))
