"""Pools that pick an entry of every window: max_pool, adaptive and fractional, and max_unpool.

The op returns the maxima and where they are, as indices into the flattened spatial dims; its derivatives take and add entries
at these places, so every order works. Over several dims the maximum is taken along each in turn, which keeps the first of
equal entries in the order of memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.registry import PUBLIC, public
from ...core.samples import Given, S, sample
from ...core.shapes import zeros
from ...core.straight import straight
from ...core.tensor import Tensor
from ...kernels import NotSupported, axes
from ..elementwise.select import where_p
from ..index.gather import check_range_p
from ..index.rows import add_rows_p, take_rows_p
from ..random.generator import rand
from ..shape.in_each import by_sizes
from ..shape.slices import keeps_format
from ..shape.views import reshape
from .convolution import spread
from .maps import Taps, maps_of
from .pool_sum import adaptive_taps, check_adaptive, check_input, pooled, settings, target_sizes, window_taps

# -- the largest entry of every window --------------------------------------------------------------------------------------


def _greater(v: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Where v replaces the best so far: where it is greater, or not a number."""
    return (v > best) | (v != v) if v.dtype.kind == "f" else v > best


def _largest(part: np.ndarray, axis: int) -> np.ndarray:
    """The position of the first maximum, or of the last NaN."""
    i = part.argmax(axis)
    if part.dtype.kind == "f":
        bad = np.isnan(part)
        if bad.any():
            last = part.shape[axis] - 1 - np.flip(bad, axis).argmax(axis)
            i = np.where(bad.any(axis), last, i)
    return i


def _along(x: Any, i: Any, axis: int, taps: Taps, unit: int) -> tuple[Any, Any]:
    """The maxima over windows of one axis; `i` are the places of the entries of x, along which a step here counts `unit`."""
    at = (slice(None),) * axis
    tail = (1,) * (x.ndim - axis - 1)
    shape = (*x.shape[:axis], taps.m, *x.shape[axis + 1 :])
    places = np.arange(taps.n).reshape(-1, *tail) * unit
    i = np.broadcast_to(places if i is None else i + places, x.shape)
    if taps.m < taps.longest:
        y: Any = np.empty(shape, x.dtype)
        where: Any = np.empty(shape, np.int64)
        for k, (s, _) in enumerate(taps.rows):
            part = x[(*at, s)]
            j = np.expand_dims(_largest(part, axis), axis)
            y[(*at, k)] = np.take_along_axis(part, j, axis).squeeze(axis)
            where[(*at, k)] = np.take_along_axis(i[(*at, s)], j, axis).squeeze(axis)
        return y, where
    steps: Any = iter(taps.steps)
    o, s, _ = next(steps, (None, None, None))
    if o != slice(None):
        raise RuntimeError("max_pool: a window holds nothing but padding; use a smaller dilation or padding")
    y, where = x[(*at, s)].copy(), i[(*at, s)].copy()
    for o, s, _ in steps:
        v, best, here = x[(*at, s)], y[(*at, o)], where[(*at, o)]
        new = _greater(v, best)
        np.copyto(best, v, where=new)
        np.copyto(here, i[(*at, s)], where=new)
        if not isinstance(o, slice):
            y[(*at, o)], where[(*at, o)] = best, here
    return y, where


@op("max_windows", integer_outputs=(1,))
def max_windows_p(x: Any, *, taps: tuple[Taps, ...]) -> Any:
    """The maxima over windows of the last axes, and their places in these axes, flattened."""
    if x.dtype.char in "fd" and x.size and all(t.m and np.diff(t.first).min() for t in taps):
        try:
            maps = maps_of(taps)
            y, i = axes.maxima(maps.flat(x), maps.tables(x.dtype)[0])
            shape = (*x.shape[: x.ndim - len(taps)], *(t.m for t in taps))
            return y.reshape(shape), i.reshape(shape)
        except NotSupported:
            pass
    i = None
    unit = 1
    for k in range(len(taps) - 1, -1, -1):
        x, i = _along(x, i, x.ndim - len(taps) + k, taps[k], unit)
        unit *= taps[k].n
    return x, i


def _special(xs: list[Any], kw: dict[str, Any]) -> Any:
    """The compiled loop with its tables."""
    x, taps = xs[0], kw["taps"]
    if x.dtype.char not in "fd" or not x.size or not all(t.m and np.diff(t.first).min() for t in taps):
        return None
    maps = maps_of(taps)
    tables = maps.tables(x.dtype)[0]
    shape = (*x.shape[: x.ndim - len(taps)], *(t.m for t in taps))
    go = axes.maxima_at(x.dtype, maps.sizes(x), tables, shape)

    def quick(x: Any) -> Any:
        return go(x) or max_windows_p.body(x, taps=taps)

    return None if go is None else quick


max_windows_p.special = _special


def _flat(x: Tensor, d: int) -> Tensor:
    shape = x.shape[: x.ndim - d]
    return reshape(x, *shape, math.prod(x.shape[x.ndim - d :]))


def _picked(x: Tensor, i: Tensor, d: int) -> Tensor:
    """The entries of the last `d` dims, flattened, at `i`."""
    n = math.prod(x.shape[x.ndim - d :])
    y = take_rows_p(_flat(x, d), _flat(i, d), r=0, s=1, n=n)
    return reshape(y, *y.shape[:-1], *i.shape[i.ndim - d :])


def _put_back(g: Tensor, i: Tensor, size: tuple[int, ...]) -> Tensor:
    """Zeros of spatial sizes `size` with `g` added at the places `i`."""
    d = len(size)
    y = add_rows_p(_flat(g, d), _flat(i, d), n=math.prod(size), r=0, s=1)
    return reshape(y, *y.shape[:-1], *size)


@max_windows_p.jvp
def _(t: Any, y: Any, x: Any, *, taps: tuple[Taps, ...]) -> Any:
    return _picked(t[0], y[1], len(taps)), None


@max_windows_p.vjp
def _(g: Any, y: Any, x: Any, *, taps: tuple[Taps, ...]) -> Any:
    return (_put_back(g[0], y[1], tuple(t.n for t in taps)),)


def _ordered(name: str, x: Tensor) -> None:
    if x.dtype.category == dt.COMPLEX or x.dtype is dt.bool_:
        raise RuntimeError(f"{name}: not implemented for input of type {x.dtype}")


def max_pool(
    name: str, d: int, x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> tuple[Tensor, Tensor]:
    check_input(name, x, d)
    k, s, p, e = settings(name, d, kernel_size, stride, padding, dilation)
    _ordered(name, x)
    taps = tuple(
        window_taps(n, k1, s1, p1, e1, pooled(name, n, k1, s1, p1, e1, ceil))
        for n, k1, s1, p1, e1 in zip(x.shape[x.ndim - d :], k, s, p, e, strict=True)
    )
    return max_windows_p(x, taps=taps)


def _adaptive_max_pool(name: str, d: int, x: Any, output_size: Any) -> tuple[Tensor, Tensor]:
    check_adaptive(name, x, d)
    _ordered(name, x)
    out = target_sizes(name, x, output_size, d)
    if 0 in out:
        shape = (*x.shape[: x.ndim - d], *out)
        return zeros(shape, x.dtype), zeros(shape, dt.int64)
    return max_windows_p(x, taps=tuple(adaptive_taps(n, m) for n, m in zip(x.shape[x.ndim - d :], out, strict=True)))


def _declare(d: int) -> None:
    name = f"max_pool{d}d"

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = True,
    ) -> tuple[Tensor, Tensor]:
        return max_pool(name, d, input, kernel_size, stride, padding, dilation, ceil_mode)

    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        both = max_pool(name, d, input, kernel_size, stride, padding, dilation, ceil_mode)
        return both if return_indices else both[0]

    def adaptive_with_indices(input: Tensor, output_size: Any, return_indices: bool = True) -> tuple[Tensor, Tensor]:
        return _adaptive_max_pool(f"adaptive_{name}", d, input, output_size)

    def adaptive(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        both = _adaptive_max_pool(f"adaptive_{name}", d, input, output_size)
        return both if return_indices else both[0]

    dims = f"the last {d} dim(s)"
    _publish(pool, name, f"{name} nn.functional.{name}", f"The maximum over windows of {dims}; padding never wins.")
    _publish(
        with_indices,
        f"{name}_with_indices",
        f"{name}_with_indices nn.functional.{name}_with_indices",
        f"The maxima over windows of {dims}, and their places in these dims, flattened.",
    )
    _publish(
        adaptive,
        f"adaptive_{name}",
        f"nn.functional.adaptive_{name}",
        f"The maximum over `output_size` windows that share {dims} as evenly as they can.",
    )
    _publish(
        adaptive_with_indices,
        f"adaptive_{name}_with_indices",
        f"nn.functional.adaptive_{name}_with_indices" + (" adaptive_max_pool1d" if d == 1 else ""),
        f"adaptive_{name} and the places of the maxima in {dims}, flattened.",
    )


def _publish(f: Callable[..., Any], name: str, names: str, doc: str) -> None:
    f.__name__ = f.__qualname__ = name
    f.__doc__ = doc
    public(names, out=False)(keeps_format(straight(by_sizes(f), name)))


for _d in (1, 2, 3):
    _declare(_d)


@public("max_pool2d_with_indices_backward ops.aten.max_pool2d_with_indices_backward", out=False)
def max_pool2d_with_indices_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """Zeros like `self` with `grad_output` added at the places `indices` of the last two dims, flattened."""
    if tuple(grad_output.shape) != tuple(indices.shape):
        raise RuntimeError(
            f"max_pool2d_with_indices_backward: grad_output and indices must have the same shape, got {list(grad_output.shape)} and {list(indices.shape)}"
        )
    return _put_back(grad_output, indices, tuple(self.shape[-2:]))


_BACK = PUBLIC["ops.aten.max_pool2d_with_indices_backward"]
_BACK.default = _BACK  # its only overload


# -- windows at random places -------------------------------------------------------------------------------------------------


@op("fractional_starts", differentiable=False)
def fractional_starts_p(u: Any, *, n: int, kernel: int, m: int) -> Any:
    """Where m windows of `kernel` among n entries begin, from one uniform number each along the last axis."""
    if m == 1:
        return np.full((*u.shape, 1), n - kernel, np.int64)
    if u.dtype in dt.HALVES:  # whose rounding would move a window
        u = u.astype(np.float32)
    alpha = np.asarray(n - kernel).astype(u.dtype) / np.asarray(m - 1).astype(u.dtype)
    u = u[..., None]
    at = ((np.arange(m).astype(u.dtype) + u) * alpha).astype(np.int64) - (u * alpha).astype(np.int64)
    at[..., m - 1 :] = n - kernel
    return at


@op("fractional_max", batch="expand", integer_outputs=(1,))
def fractional_max_p(x: Any, *starts: Any, kernel: tuple[int, ...], size: tuple[int, ...]) -> Any:
    """The maxima over windows that begin at `starts` (..., m) along each of the last axes, and their places."""
    d = len(size)
    i: Any = None
    unit = 1
    for k in range(d - 1, -1, -1):
        axis = x.ndim - d + k
        s = starts[k]
        s = s.reshape(*s.shape[:-1], *(1,) * k, s.shape[-1], *(1,) * (d - 1 - k))
        s = np.broadcast_to(s, (*x.shape[:axis], s.shape[axis], *x.shape[axis + 1 :]))
        y: Any = None
        where: Any = None
        for step in range(kernel[k]):
            v = np.take_along_axis(x, s + step, axis)
            here = (s + step) * unit + (0 if i is None else np.take_along_axis(i, s + step, axis))
            if y is None:
                y, where = v, here
                continue
            new = _greater(v, y)
            np.copyto(y, v, where=new)
            np.copyto(where, here, where=new)
        x, i = y, where
        unit *= size[k]
    return x, i


@fractional_max_p.jvp
def _(t: Any, y: Any, x: Any, *starts: Any, kernel: tuple[int, ...], size: tuple[int, ...]) -> Any:
    return _picked(t[0], y[1], len(size)), None


@fractional_max_p.vjp
def _(g: Any, y: Any, x: Any, *starts: Any, kernel: tuple[int, ...], size: tuple[int, ...]) -> Any:
    return (_put_back(g[0], y[1], size), *(None,) * len(size))


def _fractional(
    d: int, x: Any, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Tensor | None
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{d}d"
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: input must be a tensor, got {type(x).__name__}")
    if (output_size is None) == (output_ratio is None):
        if output_size is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        raise ValueError(f"{name}: give only one of output_size={output_size} and output_ratio={output_ratio}")
    check_adaptive(name, x, d)
    _ordered(name, x)
    size = tuple(x.shape[x.ndim - d :])
    if output_ratio is not None:
        ratio = (output_ratio,) * d if isinstance(output_ratio, int | float) else tuple(output_ratio)
        if len(ratio) != d:
            raise ValueError(
                f"{name} requires output_ratio to either be a single Int or tuple of Ints. It must be a number or {d} of them, got {output_ratio!r}"
            )
        out = tuple(int(n * r) for n, r in zip(size, ratio, strict=True))
    else:
        out = spread(name, "output_size", output_size, d)
    if not isinstance(kernel_size, int) and len(kernel_size) != d:
        raise RuntimeError(
            f"{name}: kernel_size must either be a single Int or tuple of Ints, one or {d}, got {kernel_size!r}"
        )
    kernel = spread(name, "kernel_size", kernel_size, d)
    if min(kernel) < 1 or min(out) < 0:
        raise RuntimeError(
            f"{name}: kernel_size and output_size must be greater than zero, got kernel_size={kernel}, output_size={out}"
        )
    for n, k, m in zip(size, kernel, out, strict=True):
        if m + k - 1 > n:
            raise RuntimeError(
                f"{name}: kernel_size {k} and output_size {m} too large relative to input size {n} (of {list(x.shape)})"
            )
    lead = (1, *x.shape[:1]) if x.ndim == d + 1 else tuple(x.shape[:2])
    if samples is None:
        samples = rand(*lead, d, dtype=x.dtype)
    _check_samples(name, samples, lead, d, x.dtype)
    if x.ndim == d + 1:
        samples = samples.select(0, 0)
    elif samples.shape[0] > lead[0]:
        samples = samples.narrow(0, 0, lead[0])
    # In two dims the first number is for the last dim, in three dims for the first.
    columns = reversed(range(d)) if d == 2 else range(d)
    starts = [
        fractional_starts_p(samples.select(-1, c), n=n, kernel=k, m=m)
        for c, n, k, m in zip(columns, size, kernel, out, strict=True)
    ]
    return fractional_max_p(x, *starts, kernel=kernel, size=size)


def _check_samples(name: str, samples: Tensor, lead: tuple[int, ...], d: int, kind: dt.DType) -> None:
    if samples.dtype is not kind:
        raise RuntimeError(
            f"{name}: Expect _random_samples to have the same dtype as input, got {samples.dtype} and {kind}"
        )
    if samples.ndim != 3:
        raise RuntimeError(f"{name}: Expect _random_samples to have 3 dimensions, got {list(samples.shape)}")
    n, c, k = samples.shape
    if n < lead[0]:
        raise RuntimeError(f"{name}: Expect _random_samples.size(0) no less then input batch size {lead[0]}, got {n}")
    if c != lead[1]:
        raise RuntimeError(f"{name}: Expect _random_samples.size(1) equals to input channel size {lead[1]}, got {c}")
    if k != d:
        raise RuntimeError(f"{name}: Expect _random_samples.size(2) equals to {d}; got {k}")


def _declare_fractional(d: int) -> None:
    name = f"fractional_max_pool{d}d"

    def pool(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        both = _fractional(d, input, kernel_size, output_size, output_ratio, _random_samples)
        return both if return_indices else both[0]

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = True,
        _random_samples: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        return _fractional(d, input, kernel_size, output_size, output_ratio, _random_samples)

    doc = f"The maximum over windows of the last {d} dims whose places are random, `output_size` or `output_ratio` of them."
    _publish(pool, name, f"nn.functional.{name}", doc)
    _publish(with_indices, f"{name}_with_indices", f"nn.functional.{name}_with_indices", f"{doc} With their places.")


for _d in (2, 3):
    _declare_fractional(_d)


# -- unpooling ----------------------------------------------------------------------------------------------------------------


def _linear(i: np.ndarray, n: int) -> np.ndarray:
    """Indices into the last axis as indices into memory."""
    rows = math.prod(i.shape[:-1])
    return (i.reshape(rows, i.shape[-1]) + np.arange(rows)[:, None] * n).reshape(-1)


@op("unpool", batch="expand")
def unpool_p(v: Any, i: Any, *, n: int) -> Any:
    """n zeros along the last axis with `v` written at `i`; of equal places the last wins."""
    y = np.zeros((*v.shape[:-1], n), v.dtype)
    y.reshape(-1)[_linear(i, n)] = v.reshape(-1)
    return y


@op("last_at", differentiable=False)
def last_at_p(i: Any, *, n: int) -> Any:
    """True where an index does not come again in the last axis."""
    flat = _linear(i, n)
    last = np.full(math.prod(i.shape[:-1]) * n, -1)
    last[flat] = np.arange(len(flat))
    return (last[flat] == np.arange(len(flat))).reshape(i.shape)


unpool_p.jvp([lambda t, y, v, i, *, n: unpool_p(t, i, n=n), None])
unpool_p.vjp(
    [
        lambda g, y, v, i, *, n: where_p.bind(last_at_p(i, n=n), take_rows_p(g, i, r=0, s=1, n=n), 0),
        None,
    ]
)


def _unpool_sizes(name: str, x: Tensor, k: Any, s: Any, p: Any, output_size: Any, d: int) -> tuple[int, ...]:
    usual = tuple((n - 1) * s1 - 2 * p1 + k1 for n, k1, s1, p1 in zip(x.shape[x.ndim - d :], k, s, p, strict=True))
    if output_size is None:
        return usual
    out = tuple(int(n) for n in output_size)
    if len(out) == d + 2:
        out = out[2:]
    if len(out) != d:
        raise ValueError(
            f"{name}: output_size should be a sequence containing {d} or {d + 2} elements, but it has {len(out)}"
        )
    for n, m, s1 in zip(out, usual, s, strict=True):
        if not m - s1 < n < m + s1:
            raise ValueError(
                f"{name}: invalid output_size {out}: each size must lie between {tuple(a - b for a, b in zip(usual, s, strict=True))} "
                f"and {tuple(a + b for a, b in zip(usual, s, strict=True))}, exclusive"
            )
    return out


def _max_unpool(d: int, x: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Tensor:
    name = f"max_unpool{d}d"
    for what, v in (("input", x), ("indices", indices)):
        if not isinstance(v, Tensor):
            raise TypeError(f"{name}: {what} must be a tensor, got {type(v).__name__}")
    if not isinstance(kernel_size, int) and len(kernel_size) not in (1, d):
        raise RuntimeError(f"{name}: There should be exactly {d} elements in kernel_size, got {kernel_size!r}")
    k = spread(name, "kernel_size", kernel_size, d)
    s = k if stride is None else spread(name, "stride", stride, d)
    p = spread(name, "padding", padding, d)
    if x.ndim not in (d + 1, d + 2) or 0 in x.shape[x.ndim - d :]:
        raise RuntimeError(
            f"{name}: expected input of {d + 1} or {d + 2} dims with non-zero spatial sizes, but got {list(x.shape)}"
        )
    if min(s) <= 0:
        raise RuntimeError(f"{name}: strides should be greater than zero, but got stride={s}")
    if indices.dtype is not dt.int64:
        raise RuntimeError(f"{name}: elements in indices should be type int64 but got: {indices.dtype}")
    if tuple(indices.shape) != tuple(x.shape):
        raise RuntimeError(
            f"{name}: Expected shape of indices to be same as that of the input tensor {list(x.shape)} but got indices tensor with shape: {list(indices.shape)}"
        )
    out = _unpool_sizes(name, x, k, s, p, output_size, d)
    n = math.prod(out)
    i = check_range_p.bind(_flat(indices, d), n=n, name=f"{name}: found an invalid max index; indices", dim=-1)
    y = unpool_p(_flat(x, d), i, n=n)
    return reshape(y, *x.shape[: x.ndim - d], *out)


def _declare_unpool(d: int) -> None:
    def unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Tensor:
        return _max_unpool(d, input, indices, kernel_size, stride, padding, output_size)

    doc = f"Zeros with `input` written at the places `indices` that max_pool{d}d found: its partial inverse."
    _publish(unpool, f"max_unpool{d}d", f"nn.functional.max_unpool{d}d", doc)


for _d in (1, 2, 3):
    _declare_unpool(_d)


sample("nn.functional.max_pool1d", S(2, 7), 3, 2, 1, cx=False)
sample("nn.functional.max_pool1d", S(2, 8), 2, 3, dilation=2, ceil_mode=True, cx=False)
sample("nn.functional.max_pool2d", S(1, 2, 5, 4), (3, 2), stride=(2, 1), padding=1, cx=False)
sample("nn.functional.max_pool2d", S(2, 6, 5), 2, return_indices=True, cx=False)
sample("nn.functional.max_pool3d", S(1, 4, 3, 5), 2, stride=1, cx=False)
sample("nn.functional.adaptive_max_pool1d", S(2, 7), 3, cx=False)
sample("nn.functional.adaptive_max_pool2d", S(2, 1, 5, 4), (7, None), cx=False)
sample("nn.functional.adaptive_max_pool3d", S(2, 5, 4, 3), (1, 2, 3), True, cx=False)
sample("nn.functional.max_unpool1d", S(1, 3), Given([[1, 2, 5]]), 2, cx=False)
sample("nn.functional.max_unpool1d", S(1, 3), Given([[1, 1, 5]]), 2)
sample("nn.functional.max_unpool2d", S(1, 2, 2), Given([[[1, 3], [12, 15]]]), 2)
sample(
    "nn.functional.fractional_max_pool2d",
    S(2, 2, 6, 5),
    (2, 3),
    output_size=(3, 2),
    _random_samples=S(2, 2, 2, low=0, high=1, grad=False),
    cx=False,
)
sample(
    "nn.functional.fractional_max_pool3d",
    S(1, 6, 5, 4),
    2,
    output_ratio=0.5,
    _random_samples=S(1, 1, 3, low=0, high=1, grad=False),
    cx=False,
)
