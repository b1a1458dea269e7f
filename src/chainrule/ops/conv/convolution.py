"""Convolution: three bilinear ops, each the derivative of the others, from which every order and mode follow.

With windows ``x[p s + k d - a]`` (stride s, dilation d, padding a)::

    conv          y[n, o, p] = sum_{c, k} w[o, c, k] x[n, c, p s + k d - a]
    conv_input    x[n, c, .] = the sum of w[o, c, k] y[n, o, p] over all windows that read the place
    conv_weight   w[o, c, k] = sum_{n, p} y[n, o, p] x[n, c, p s + k d - a]

Every op knows all sizes (of x, w and y) as static data and leaves leading axes alone, which broadcast: groups are one leading
axis, a batch is another. Bodies are windows, copied to columns block by block, and one matrix product a block.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.batching import lift_rank
from ...core.declare import op
from ...core.derive import vjp_through
from ...core.op import Op
from ...core.primitives import permute_p
from ...core.registry import public
from ...core.samples import S, sample
from ...core.straight import straight
from ...core.tensor import Tensor
from ...kernels import NotSupported
from ..shape.in_each import by_sizes
from ..shape.slices import keeps_format
from ..shape.views import reshape
from . import direct

SMALL = 1 << 13  # entries of columns that are added up in one call
BLOCK = 1 << 22  # bytes of columns at a time: they are written and read once, best without leaving the cache


# -- windows ------------------------------------------------------------------------------------------------------------


class Geometry:
    """How windows lie over the spatial axes: `stride`, `dilation`, padding before (`pad`), sizes of input, kernel and output."""

    __slots__ = ("d", "dilation", "kernel", "output", "pad", "size", "span", "stride")

    def __init__(self, size: Any, kernel: Any, output: Any, stride: Any, pad: Any, dilation: Any) -> None:
        self.size, self.kernel, self.output = tuple(size), tuple(kernel), tuple(output)
        self.stride, self.pad, self.dilation = tuple(stride), tuple(pad), tuple(dilation)
        self.d = len(self.size)
        # The stretch of padded input that windows touch.
        self.span = tuple(
            (p - 1) * s + (k - 1) * e + 1
            for p, s, k, e in zip(self.output, self.stride, self.kernel, self.dilation, strict=True)
        )

    def __repr__(self) -> str:
        return f"{self.size} * {self.kernel} -> {self.output}, stride {self.stride}, padding {self.pad}, dilation {self.dilation}"

    def cut(self) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Where input lies in the stretch that windows touch: (places in the input, places in the stretch)."""
        source, target = [], []
        for n, a, m in zip(self.size, self.pad, self.span, strict=True):
            k = max(0, min(n, m - a))
            source.append(slice(0, k))
            target.append(slice(min(a, m), min(a, m) + k))
        return tuple(source), tuple(target)

    def windows(self, x: Any) -> Any:
        """``(..., *size) -> (..., *kernel, *output)``, a view where there is no padding."""
        source, target = self.cut()
        if self.span == tuple(s.stop for s in source):
            x = x[(..., *source)]
        else:
            full: Any = np.zeros((*x.shape[: x.ndim - self.d], *self.span), x.dtype)
            full[(..., *target)] = x[(..., *source)]
            x = full
        lead, last = x.strides[: x.ndim - self.d], x.strides[x.ndim - self.d :]
        inner = [s * e for s, e in zip(last, self.dilation, strict=True)]
        outer = [s * e for s, e in zip(last, self.stride, strict=True)]
        shape = (*x.shape[: x.ndim - self.d], *self.kernel, *self.output)
        if x.flags.c_contiguous and x.size:  # what as_strided does, in a tenth of its time
            y = np.ndarray(shape, x.dtype, x, 0, (*lead, *inner, *outer))
            y.flags.writeable = False
            return y
        return np.lib.stride_tricks.as_strided(x, shape, (*lead, *inner, *outer), writeable=False)

    def add_up(self, cols: Any) -> Any:
        """``(..., *kernel, *output) -> (..., *size)``: the transpose of `windows`."""
        lead = cols.shape[: cols.ndim - 2 * self.d]
        if 0 < cols.size < SMALL and cols.dtype in dt.REALS:
            n, m = math.prod(lead), math.prod(self.size) + 1
            at = (
                _places(self.size, self.kernel, self.output, self.stride, self.pad, self.dilation)
                + m * np.arange(n)[:, None]
            ).reshape(-1)
            each = np.bincount(at, cols.reshape(-1), n * m).reshape(n, m)[:, 1:]
            return each.reshape((*lead, *self.size)).astype(cols.dtype)
        full: Any = np.zeros((*lead, *self.span), cols.dtype)
        for at in np.ndindex(*self.kernel):
            key = tuple(
                slice(k * e, k * e + (p - 1) * s + 1, s)
                for k, e, p, s in zip(at, self.dilation, self.output, self.stride, strict=True)
            )
            full[(..., *key)] += cols[(..., *at, *(slice(None),) * self.d)]
        source, target = self.cut()
        if self.size == tuple(s.stop for s in source):
            return full[(..., *target)]
        out: Any = np.zeros((*lead, *self.size), cols.dtype)
        out[(..., *source)] = full[(..., *target)]
        return out


@functools.lru_cache(maxsize=64)
def _places(*sizes: tuple[int, ...]) -> Any:
    """Which entries of the input, counted from 1, windows of a geometry read; 0 is padding."""
    geo = Geometry(*sizes)
    return geo.windows(np.arange(1, math.prod(geo.size) + 1).reshape(geo.size)).reshape(-1)


def _blocks(n: int, size: int) -> Iterator[slice]:
    """0..n in stretches whose columns, `size` bytes an entry, fill a block."""
    step = max(1, min(n, BLOCK // max(size, 1)))
    for k in range(0, max(n, 1), step):
        yield slice(k, min(n, k + step))


# -- the three ops --------------------------------------------------------------------------------------------------------


def _batched(which: int) -> Any:
    def batch(size: int, xs: list[Any], flags: list[bool], *, geo: Geometry) -> Any:
        core = geo.d + 2
        ranks = [x.ndim - f for x, f in zip(xs, flags, strict=True)]
        n = max(ranks)
        assert min(ranks) >= core
        xs = [lift_rank(x, r, n) if f and r < n else x for x, f, r in zip(xs, flags, ranks, strict=True)]
        return OPS3[which].bind(*xs, geo=geo)

    return batch


def _fold(x: Any, core: int) -> Any:
    return x.reshape(math.prod(x.shape[: x.ndim - core + 1]), *x.shape[x.ndim - core + 1 :])


@op("conv", batch=_batched(0))
def conv_p(x: Any, w: Any, *, geo: Geometry) -> Any:
    """``(..., N, C, *size), (..., O, C, *kernel) -> (..., N, O, *output)``."""
    try:
        return direct.conv(x, w, geo)
    except NotSupported:
        pass
    d = geo.d
    lead = x.shape[: x.ndim - d - 1]
    if w.ndim == d + 2:
        x = _fold(x, d + 2)
    n, c = x.shape[x.ndim - d - 2 : x.ndim - d]
    o, ck, p = w.shape[w.ndim - d - 2], c * math.prod(geo.kernel), math.prod(geo.output)
    wm = w.reshape(*w.shape[: w.ndim - d - 2], 1, o, ck)
    head = np.broadcast_shapes(x.shape[: x.ndim - d - 2], w.shape[: w.ndim - d - 2])
    y = np.empty((*head, n, o, p), x.dtype)
    at = (slice(None),) * (x.ndim - d - 2)
    for s in _blocks(n, math.prod(x.shape[: x.ndim - d - 2]) * ck * p * x.itemsize):
        part = x[(*at, s)]
        cols = geo.windows(part).reshape(*part.shape[: part.ndim - d - 1], ck, p)
        y[(..., s, slice(None), slice(None))] = np.matmul(wm, cols)
    return y.reshape(*(lead if w.ndim == d + 2 else (*head, n)), o, *geo.output)


@op("conv_input", batch=_batched(1))
def conv_input_p(y: Any, w: Any, *, geo: Geometry) -> Any:
    """``(..., N, O, *output), (..., O, C, *kernel) -> (..., N, C, *size)``: transposed convolution."""
    try:
        return direct.conv_input(y, w, geo)
    except NotSupported:
        pass
    d = geo.d
    lead = y.shape[: y.ndim - d - 1]
    if w.ndim == d + 2:
        y = _fold(y, d + 2)
    n, o = y.shape[y.ndim - d - 2 : y.ndim - d]
    c, p = w.shape[w.ndim - d - 1], math.prod(geo.output)
    ck = c * math.prod(geo.kernel)
    wm = w.reshape(*w.shape[: w.ndim - d - 2], 1, o, ck).swapaxes(-1, -2)
    head = np.broadcast_shapes(y.shape[: y.ndim - d - 2], w.shape[: w.ndim - d - 2])
    x: Any = np.empty((*head, n, c, *geo.size), y.dtype)
    ym = y.reshape(*y.shape[: y.ndim - d], p)
    for s in _blocks(n, math.prod(head) * ck * p * y.itemsize):
        cols = np.matmul(wm, ym[..., s, :, :])
        x[(..., s, *(slice(None),) * (d + 1))] = geo.add_up(cols.reshape(*cols.shape[:-2], c, *geo.kernel, *geo.output))
    return x.reshape(*(lead if w.ndim == d + 2 else (*head, n)), c, *geo.size)


@op("conv_weight", batch=_batched(2))
def conv_weight_p(x: Any, y: Any, *, geo: Geometry) -> Any:
    """``(..., N, C, *size), (..., N, O, *output) -> (..., O, C, *kernel)``: correlation of input and output."""
    try:
        return direct.conv_weight(x, y, geo)
    except NotSupported:
        pass
    d = geo.d
    n, c = x.shape[x.ndim - d - 2 : x.ndim - d]
    o, p = y.shape[y.ndim - d - 1], math.prod(geo.output)
    ck = c * math.prod(geo.kernel)
    head = np.broadcast_shapes(x.shape[: x.ndim - d - 2], y.shape[: y.ndim - d - 2])
    w = np.zeros((*head, o, ck), x.dtype)
    ym = y.reshape(*y.shape[: y.ndim - d], p).swapaxes(-2, -3)  # (..., O, N, P)
    at = (slice(None),) * (x.ndim - d - 2)
    for s in _blocks(n, math.prod(x.shape[: x.ndim - d - 2]) * ck * p * x.itemsize):
        part = np.moveaxis(geo.windows(x[(*at, s)]), len(at), len(at) + 1 + d)  # (..., C, *kernel, N, *output)
        m = part.shape[len(at) + 1 + d]
        cols = part.reshape(*part.shape[: len(at)], ck, m * p)
        some = ym[..., s, :].reshape(*ym.shape[:-2], m * p)
        w += np.matmul(some, cols.swapaxes(-1, -2))
    return w.reshape(*head, o, c, *geo.kernel)


OPS3: list[Op] = [conv_p, conv_input_p, conv_weight_p]


def _sides(x: Any, y: Any, w: Any, geo: Geometry) -> tuple[Any, Any]:
    """`x` and `y` with the leading axes that `w` lacks folded into N, so that the sum over them is part of the product."""
    extra = x.ndim - w.ndim
    if extra <= 0 or y.ndim != x.ndim or tuple(x.shape[:extra]) != tuple(y.shape[:extra]):
        return x, y
    k, n = x.ndim - geo.d - 2, x.ndim  # N is axis k
    order = (*range(extra, k), *range(extra), *range(k, n))
    out = []
    for v in (x, y):
        v = permute_p.bind(v, dims=tuple(i - n for i in order)) if k > extra else v
        out.append(reshape(v, *v.shape[: k - extra], math.prod(v.shape[k - extra : k + 1]), *v.shape[k + 1 :]))
    return out[0], out[1]


def _weight(x: Any, y: Any, w: Any, geo: Geometry) -> Any:
    x, y = _sides(x, y, w, geo)
    return conv_weight_p(x, y, geo=geo)


def _conj(x: Any) -> Any:
    return x.conj() if x.dtype.category == dt.COMPLEX else x


for _p in OPS3:
    _p.jvp([lambda t, y, a, b, *, geo, _p=_p: _p(t, b, geo=geo), lambda t, y, a, b, *, geo, _p=_p: _p(a, t, geo=geo)])
conv_p.vjp(
    [
        lambda g, y, x, w, *, geo: conv_input_p(g, _conj(w), geo=geo),
        lambda g, y, x, w, *, geo: _weight(_conj(x), g, w, geo),
    ]
)
conv_input_p.vjp(
    [
        lambda g, x, y, w, *, geo: conv_p(g, _conj(w), geo=geo),
        lambda g, x, y, w, *, geo: _weight(g, _conj(y), w, geo),
    ]
)
conv_weight_p.vjp(
    [
        lambda g, w, x, y, *, geo: conv_input_p(_conj(y), g, geo=geo),
        lambda g, w, x, y, *, geo: conv_p(_conj(x), g, geo=geo),
    ]
)


# -- arguments ------------------------------------------------------------------------------------------------------------


def spread(name: str, what: str, v: Any, d: int) -> tuple[int, ...]:
    """An int or a sequence of one or `d` ints, as `d` ints."""
    if isinstance(v, int | np.integer) and not isinstance(v, bool):
        return (int(v),) * d
    if not isinstance(v, Sequence):
        raise TypeError(f"{name}: {what} must be an int or a sequence of {d} ints, got {v!r}")
    if len(v) not in (1, d):
        raise RuntimeError(
            f"{name}: expected {what} to be a single integer value or a list of {d} values, got {tuple(v)}"
        )
    if not all(isinstance(k, int | np.integer) for k in v):
        raise TypeError(f"{name}: {what} must hold ints, got {v!r}")
    return tuple(int(k) for k in v) * (d if len(v) == 1 else 1)


def _check(name: str, x: Any, w: Any, bias: Any, d: int, groups: int, transposed: bool) -> None:
    for what, v in (("input", x), ("weight", w)):
        if not isinstance(v, Tensor):
            raise TypeError(f"{name}: {what} must be a tensor, got {type(v).__name__}")
    if groups <= 0:
        raise RuntimeError(
            f"{name}: expected groups to be greater than 0, but got groups={groups}: non-positive groups is not supported"
        )
    if w.ndim < 3 and d == 1:
        raise RuntimeError(f"{name}: weight should have at least three dimensions, got shape {list(w.shape)}")
    if w.ndim != d + 2:
        raise RuntimeError(
            f"{name}: expected a {d + 2}D weight (channels, channels / groups, *kernel), got {list(w.shape)}"
        )
    if x.ndim not in (d + 1, d + 2):
        raise RuntimeError(
            f"{name}: Expected {d + 1}D (unbatched) or {d + 2}D (batched) input to {name}, but got input of size: {list(x.shape)}"
        )
    given = [v for v in (x, w, bias) if v is not None]
    if any(v.dtype is not x.dtype for v in given):
        raise RuntimeError(
            f"{name}: input, weight and bias types should be the same, got {', '.join(str(v.dtype) for v in given)}"
        )
    c = x.shape[x.ndim - d - 1]
    if w.shape[0] < groups:
        raise RuntimeError(
            f"{name}: Given groups={groups}, expected weight to be at least {groups} at dimension 0, got {list(w.shape)}"
        )
    if w.shape[0] % groups:
        raise RuntimeError(
            f"{name}: Given groups={groups}, expected dimension 0 of weight {list(w.shape)} to be divisible by {groups}"
        )
    want = w.shape[0] if transposed else w.shape[1] * groups
    if c != want:
        raise RuntimeError(
            f"{name}: Given groups={groups}, weight of size {list(w.shape)}, expected input {list(x.shape)} to have {want} channels, but got {c} instead"
        )
    o = w.shape[1] * groups if transposed else w.shape[0]
    if bias is not None and tuple(bias.shape) != (o,):
        raise RuntimeError(
            f"{name}: given weight of size {list(w.shape)}, expected bias to be 1-dimensional with {o} elements, but got bias of size {list(bias.shape)}"
        )
    if any(k == 0 for k in w.shape[2:]):
        raise RuntimeError(
            f"{name}: calculated kernel size of weight {list(w.shape)} is zero in some dim; it should be greater than zero"
        )


def _settings(name: str, d: int, stride: Any, padding: Any, dilation: Any) -> tuple[Any, Any, Any]:
    s, p, e = (
        spread(name, what, v, d) for what, v in (("stride", stride), ("padding", padding), ("dilation", dilation))
    )
    if min(s) <= 0:
        raise RuntimeError(f"{name}: non-positive stride is not supported, got stride={s}")
    if min(p) < 0:
        raise RuntimeError(f"{name}: negative padding is not supported, got padding={p}")
    if min(e) <= 0:
        raise RuntimeError(f"{name}: dilation should be greater than zero, got dilation={e}")
    return s, p, e


def _apply(p: Op, x: Tensor, w: Tensor, bias: Tensor | None, groups: int, geo: Geometry) -> Tensor:
    """The op on input with or without batch axis, group by group along one leading axis, plus bias."""
    d, single, kind = geo.d, x.ndim == geo.d + 1, x.dtype
    wide = dt.WORK.get(kind.np)
    if wide is not None:
        # Computed wide and rounded once, bias included.
        x, w = x.to(dt.FROM_NP[wide]), w.to(dt.FROM_NP[wide])
        bias = None if bias is None else bias.to(dt.FROM_NP[wide])
    if single:
        x = reshape(x, 1, *x.shape)
    if groups == 1:
        y = p(x, w, geo=geo)
    else:
        n, c = x.shape[:2]
        rest = tuple(range(-d, 0))
        swap = (-d - 2, -d - 3, -d - 1, *rest)
        x = permute_p(reshape(x, n, groups, c // groups, *x.shape[2:]), dims=swap)
        w = reshape(w, groups, w.shape[0] // groups, *w.shape[1:])
        y = permute_p(p(x, w, geo=geo), dims=swap)
        y = reshape(y, n, y.shape[1] * y.shape[2], *y.shape[3:])
    if bias is not None:
        y = y + reshape(bias, -1, *(1,) * d)
    if single:
        y = reshape(y, *y.shape[1:])
    return y.to(kind) if wide is not None else y


def _conv(
    name: str, d: int, x: Tensor, w: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    if isinstance(padding, str) and padding not in ("same", "valid"):
        raise RuntimeError(f"{name}: invalid padding string {padding!r}, should be one of 'valid', 'same', or ints")
    same = padding == "same"
    s, p, e = _settings(name, d, stride, 0 if isinstance(padding, str) else padding, dilation)
    _check(name, x, w, bias, d, groups, False)
    if same and any(k != 1 for k in s):
        raise RuntimeError(f"{name}: padding='same' is not supported for strided convolutions, got stride={s}")
    size, kernel = tuple(x.shape[x.ndim - d :]), tuple(w.shape[2:])
    reach = [(k - 1) * f for k, f in zip(kernel, e, strict=True)]
    if same:
        p, out = tuple(r // 2 for r in reach), size
    else:
        if any(n + 2 * a < r + 1 for n, a, r in zip(size, p, reach, strict=True)):
            raise RuntimeError(
                f"{name}: Calculated padded input size per channel: ({' x '.join(str(n + 2 * a) for n, a in zip(size, p, strict=True))}). "
                f"Kernel size: ({' x '.join(str(r + 1) for r in reach)}). Kernel size can't be greater than actual input size"
            )
        out = tuple((n + 2 * a - r - 1) // t + 1 for n, a, r, t in zip(size, p, reach, s, strict=True))
    y = _apply(conv_p, x, w, bias, groups, Geometry(size, kernel, out, s, p, e))
    return y.narrow(-d - 1, 0, 0) if x.shape[-d - 1] == 0 else y  # PyTorch's result of no channels has none


def _conv_transpose(
    name: str,
    d: int,
    x: Tensor,
    w: Tensor,
    bias: Any,
    stride: Any,
    padding: Any,
    extra: Any,
    groups: int,
    dilation: Any,
) -> Tensor:
    s, p, e = _settings(name, d, stride, padding, dilation)
    o = spread(name, "output_padding", extra, d)
    _check(name, x, w, bias, d, groups, True)
    if min(o) < 0:
        raise RuntimeError(f"{name}: negative output_padding is not supported, got {o}")
    if any(k >= max(a, b) for k, a, b in zip(o, s, e, strict=True)):
        raise RuntimeError(
            f"{name}: output padding must be smaller than either stride or dilation, but got output_padding={o}, stride={s}, dilation={e}"
        )
    seen, kernel = tuple(x.shape[x.ndim - d :]), tuple(w.shape[2:])
    size = tuple(
        (n - 1) * t - 2 * a + f * (k - 1) + b + 1 for n, t, a, f, k, b in zip(seen, s, p, e, kernel, o, strict=True)
    )
    if any(n < 1 for n in size) or 0 in seen:
        raise RuntimeError(
            f"{name}: given input size per channel: {seen}. Calculated output size per channel: {size}. Output size is too small"
        )
    return _apply(conv_input_p, x, w, bias, groups, Geometry(size, kernel, seen, s, p, e))


# -- PyTorch's names ------------------------------------------------------------------------------------------------------


def _declare(d: int) -> None:
    axes = "DHW"[3 - d :] if d > 1 else "L"

    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        return _conv(f"conv{d}d", d, input, weight, bias, stride, padding, dilation, groups)

    def conv_transpose(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        return _conv_transpose(
            f"conv_transpose{d}d", d, input, weight, bias, stride, padding, output_padding, groups, dilation
        )

    conv.__name__ = conv.__qualname__ = f"conv{d}d"
    conv.__doc__ = (
        f"``y[n, o, p] = bias[o] + sum_(c, k) weight[o, c, k] input[n, c, stride p + dilation k - padding]`` over {axes}.\n\n"
        f"    `input` is ``(N, C, {', '.join(axes)})`` or without N, `weight` ``(O, C / groups, *kernel)``; `padding` may be 'valid' or 'same'.\n"
    )
    conv_transpose.__name__ = conv_transpose.__qualname__ = f"conv_transpose{d}d"
    conv_transpose.__doc__ = (
        f"The transpose of conv{d}d as a linear map of its input: every input entry adds its multiple of the kernel.\n\n"
        f"    `input` is ``(N, C, {', '.join(axes)})`` or without N, `weight` ``(C, O / groups, *kernel)``.\n"
    )
    public(f"conv{d}d nn.functional.conv{d}d", out=False)(keeps_format(straight(by_sizes(conv))))
    public(f"conv_transpose{d}d nn.functional.conv_transpose{d}d", out=False)(
        keeps_format(straight(by_sizes(conv_transpose)))
    )


for _d in (1, 2, 3):
    _declare(_d)


@public("convolution", out=False)
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensor:
    """conv or conv_transpose over all dims of `weight` but two."""
    d = weight.ndim - 2
    if d not in (1, 2, 3):
        raise RuntimeError(f"convolution: expected a weight of 3 to 5 dims, got {list(weight.shape)}")
    if transposed:
        return _conv_transpose("convolution", d, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _conv("convolution", d, input, weight, bias, stride, padding, dilation, groups)


@public("_convolution", out=False)
def _convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    *flags: bool,
) -> Tensor:
    """`convolution`; the flags choose among other systems' libraries."""
    return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


@public("_convolution_mode", out=False)
def _convolution_mode(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: str, dilation: Any, groups: int
) -> Tensor:
    """`convolution` with padding 'same' or 'valid'."""
    return convolution(input, weight, bias, stride, padding, dilation, False, 0, groups)


@public("convolution_backward", out=False)
def convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Any,
) -> tuple[Any, Any, Any]:
    """The gradients of input, weight and bias of `convolution` that `output_mask` asks for, None for the others."""

    def forward(x: Tensor, w: Tensor) -> Tensor:
        return convolution(x, w, None, stride, padding, dilation, transposed, output_padding, groups)

    mask = [bool(m) for m in output_mask]
    gx = gw = None
    if mask[0] or mask[1]:
        gx, gw = vjp_through(forward, grad_output, [input, weight], {}, mask[:2])
    d = weight.ndim - 2
    dims = (*range(-grad_output.ndim, -d - 1), *range(-d, 0))
    return gx, gw, grad_output.sum(dims) if mask[2] else None


@public("conv_tbc nn.functional.conv_tbc", out=False)
def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """conv1d of ``(time, batch, channels)`` with a weight ``(kernel, in, out)``."""
    if self.ndim != 3 or weight.ndim != 3:
        raise RuntimeError(
            f"conv_tbc: input and weight must have 3 dims: time, batch, in_channel, got {list(self.shape)} and {list(weight.shape)}"
        )
    y = _conv(
        "conv_tbc", 1, permute_p(self, dims=(-2, -1, -3)), permute_p(weight, dims=(-1, -2, -3)), bias, 1, pad, 1, 1
    )
    return permute_p(y, dims=(-1, -3, -2))


sample(
    "convolution_backward",
    S(2, 4, 3),
    S(2, 3, 7),
    S(4, 3, 3),
    [4],
    (2,),
    (0,),
    (1,),
    False,
    (0,),
    1,
    (True, True, True),
)
sample("nn.functional.conv1d", S(2, 3, 7), S(4, 3, 3), S(4), stride=2, padding=1)
sample("nn.functional.conv1d", S(2, 6), S(4, 1, 2), None, dilation=2, groups=2)
sample("nn.functional.conv1d", S(1, 2, 5), S(2, 2, 4), S(2), padding="same")
sample("nn.functional.conv2d", S(2, 4, 5, 4), S(4, 2, 3, 2), S(4), padding=(1, 0), stride=(2, 1), groups=2)
sample("nn.functional.conv2d", S(2, 2, 3, 3), S(3, 2, 1, 1))
sample("nn.functional.conv3d", S(1, 2, 3, 4, 3), S(2, 2, 2, 3, 2), padding="same", dilation=(1, 1, 2))
sample("nn.functional.conv_transpose1d", S(2, 2, 4), S(2, 3, 3), S(3), stride=2, padding=1, output_padding=1)
sample("nn.functional.conv_transpose1d", S(2, 4), S(2, 1, 2), None, 1, 0, 1, 2, 2)
sample("nn.functional.conv_transpose2d", S(1, 4, 3, 2), S(4, 1, 2, 3), S(2), stride=(1, 2), groups=2, dilation=(2, 1))
sample("nn.functional.conv_transpose3d", S(1, 2, 2, 3, 2), S(2, 1, 2, 2, 2), stride=2)
sample("conv_tbc", S(5, 2, 3), S(2, 3, 2), S(2), 1)
