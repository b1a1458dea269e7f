"""Padding: constant (negative pads crop), reflected, replicated, circular; and the shuffles of channels and pixels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.primitives import clone_p, permute_p
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import wrap_dim
from ...core.straight import straight
from ...core.tensor import Tensor
from ...kernels import indexing
from ...kernels.indexing import LEAST
from ...kernels.pool import MIN_BYTES
from ..elementwise.numbers import varies
from ..elementwise.select import where
from ..index.moving import take
from .create import ones_like
from .slices import keeps_format
from .views import reshape

Pads = tuple[tuple[int, int], ...]

# -- constant ---------------------------------------------------------------------------------------------------------


@op("constant_pad", sizes="pads", moves=True)
def constant_pad_p(x: Any, *, pads: Pads, value: Any) -> Any:
    """The last axes grown by ``(before, after)`` each, new entries being `value`; negative pads cut off."""
    lead = x.ndim - len(pads)
    shape = x.shape[:lead] + tuple([n + a + b for n, (a, b) in zip(x.shape[lead:], pads, strict=True)])
    out = np.full(shape, value, x.dtype) if value else np.zeros(shape, x.dtype)
    src: Any = tuple([slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape[lead:], pads, strict=True)])
    dst: Any = tuple([slice(max(a, 0), n - max(b, 0)) for n, (a, b) in zip(shape[lead:], pads, strict=True)])
    out[(..., *dst)] = x[(..., *src)]
    return out


def _padded(xs: list[Any], kw: dict[str, Any]) -> Any:
    """Into a copy of what is known of the result."""
    x, pads, value = xs[0], kw["pads"], kw["value"]
    like: Any = constant_pad_p.body(np.full(x.shape, value, x.dtype), pads=pads, value=value)
    if like.nbytes >= MIN_BYTES:
        return None
    few, shape, d = like.size < LEAST, like.shape, like.dtype
    like = like if few else None
    sizes = x.shape[x.ndim - len(pads) :]
    src = (..., *[slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(sizes, pads, strict=True)])
    dst = (..., *[slice(max(a, 0), n + a + b - max(b, 0)) for n, (a, b) in zip(sizes, pads, strict=True)])
    cut = any(a < 0 or b < 0 for a, b in pads)

    def pad(x: Any) -> Any:
        if few:
            out = like.copy()
        else:
            out = np.empty(shape, d)
            out.fill(value)
        out[dst] = x[src] if cut else x
        return out

    return pad


constant_pad_p.special = _padded

# What a pad adds, its negative cuts off: the transpose.
constant_pad_p.jvp([lambda t, y, x, *, pads, value: constant_pad_p(t, pads=pads, value=0)])
constant_pad_p.vjp(
    [lambda g, y, x, *, pads, value: constant_pad_p(g, pads=tuple([(-a, -b) for a, b in pads]), value=0)]
)


@public("constant_pad_nd", out=False)
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    """The last dims padded by ``pad = (before last, after last, before last but one, ...)`` with `value`."""
    p = [int(k) for k in pad]
    if len(p) % 2 or len(p) // 2 > input.ndim:
        raise RuntimeError(
            f"constant_pad_nd: length of pad should be even and no more than twice the number of dimensions of the input: "
            f"pad has {len(p)} entries, the input {input.ndim} dims {list(input.shape)}"
        )
    pads = tuple((p[2 * i], p[2 * i + 1]) for i in reversed(range(len(p) // 2)))
    for i, (n, (a, b)) in enumerate(zip(input.shape[input.ndim - len(pads) :], pads, strict=True)):
        if n + a + b < 0 or (n < max(-a, 0) + max(-b, 0)):
            raise RuntimeError(
                f"constant_pad_nd: the input size {n}, plus negative padding {a} and {b}, resulted in a negative output size "
                f"at dimension {input.ndim - len(pads) + i}"
            )
    if varies(value):
        inside = constant_pad_p(ones_like(input, dtype=dt.bool_), pads=pads, value=False)
        return where(inside, constant_pad_p(input, pads=pads, value=0), value)
    if isinstance(value, Tensor):
        value = value.item()
    return constant_pad_p(input, pads=pads, value=value)


@public("_nested_from_padded", out=False)
def nested_from_padded(padded: Tensor, cpu_nested_shape_example: Tensor, fuse_transform_0213: bool = False) -> Tensor:
    """:func:`nested.from_padded`, under the name of the operator."""
    from ...nested import from_padded

    return from_padded(padded, cpu_nested_shape_example, fuse_transform_0213=fuse_transform_0213)


# -- by index ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _sources(mode: str, n: int, a: int, b: int) -> np.ndarray:
    """For each entry of a dim of n entries padded by (a, b), the entry it comes from."""
    if mode == "circular":
        # What is left after cutting goes round as often as needed.
        kept = n + min(a, 0) + min(b, 0)
        return (np.arange(n + a + b) - max(a, 0)) % max(kept, 1) + max(-a, 0)
    j = np.arange(n + a + b)
    last = n + a - 1
    if mode == "reflect":
        j = np.where(j < a, 2 * a - j, np.where(j > last, 2 * last - j, j))
    else:
        j = np.where(j < a, a, np.where(j > last, last, j))
    return j - max(a, 0) + max(-a, 0)


@lru_cache(maxsize=512)
def _runs(mode: str, n: int, a: int, b: int) -> list[tuple[int, int, int, int]]:
    """The sources as runs ``(first, past the last, source of the first, step)`` with step -1, 0 or 1."""
    idx = _sources(mode, n, a, b)
    runs, k = [], 0
    while k < idx.size:
        step = int(idx[k + 1] - idx[k]) if k + 1 < idx.size else 1
        step = step if abs(step) <= 1 else 1
        e = k + 1
        while e < idx.size and idx[e] - idx[e - 1] == step:
            e += 1
        runs.append((k, e, int(idx[k]), step))
        k = e
    return runs


@op("index_pad", sizes="n", linear="each", moves=True)
def index_pad_p(x: Any, *, dim: int, mode: str, n: int, a: int, b: int) -> Any:
    """`dim`, of n entries, grown by `a` before and `b` after with entries of its own."""
    return take(x, _sources(mode, n, a, b), x.ndim + dim)


def _indexed(xs: list[Any], kw: dict[str, Any]) -> Any:
    """One call of compiled code along the last dim, of NumPy's along others."""
    x, dim = xs[0], kw["dim"]
    i = _sources(kw["mode"], kw["n"], kw["a"], kw["b"])
    if x.size < LEAST or not i.size:
        return lambda x: x.take(i, dim)
    line = indexing.line(x, i) if dim == -1 and x.ndim > 1 else None
    if line is None:
        return None

    def pad(x: Any) -> Any:
        y = line(x, i)
        return x.take(i, dim) if y is None else y

    return pad


index_pad_p.special = _indexed


@op("index_unpad", sizes="n", moves=True)
def index_unpad_p(g: Any, *, dim: int, mode: str, n: int, a: int, b: int) -> Any:
    """Padded entries added to those they came from: the transpose of padding."""
    g = np.moveaxis(g, dim, 0)
    d = np.float32 if g.dtype in dt.HALVES else g.dtype
    runs = _runs(mode, n, a, b)
    whole = [r for r in runs if r[3] == 1 and r[1] - r[0] == n]  # the entries themselves, where none is cut off
    out = g[whole[0][0] : whole[0][1]].astype(d) if whole else np.zeros((n, *g.shape[1:]), d)
    for first, past, source, step in runs:
        if whole and first == whole[0][0]:
            continue
        part = g[first:past]
        if step == 0:
            out[source] += np.add.reduce(part, axis=0, dtype=out.dtype)
        elif step == 1:
            out[source : source + past - first] += part
        else:
            out[source - (past - first) + 1 : source + 1] += part[::-1]
    return np.moveaxis(out, 0, dim).astype(g.dtype, copy=False)


def _unindexed(xs: list[Any], kw: dict[str, Any]) -> Any:
    """One call of compiled code: entries by number are added."""
    g, n, at = xs[0], kw["n"], xs[0].ndim + kw["dim"]
    i = _sources(kw["mode"], n, kw["a"], kw["b"])
    if g.dtype not in dt.REALS or g.dtype in dt.HALVES:
        return None
    sums = indexing.summing(g.dtype, g.shape[:at], i.size, n, g.shape[at + 1 :])
    if sums is None:
        return None

    def unpad(g: Any) -> Any:
        y = sums(g, i)
        return index_unpad_p.body(g, **kw) if y is None else y

    return unpad


index_unpad_p.special = _unindexed
index_pad_p.vjp([lambda g, y, x, **kw: index_unpad_p(g, **kw)])
index_unpad_p.jvp([lambda t, y, g, **kw: index_unpad_p(t, **kw)])
index_unpad_p.vjp([lambda c, y, g, **kw: index_pad_p(c, **kw)])


def _check_index_pad(x: Tensor, p: list[int], mode: str) -> None:
    k, nd = len(p) // 2, x.ndim
    if len(p) % 2 or not 1 <= k <= 3 or nd not in (k + 1, k + 2):
        raise NotImplementedError(
            f"pad: Padding size {len(p)} is not supported for {nd}D input tensor. Only 2D, 3D, 4D, 5D padding with non-constant padding are "
            f"supported for now: mode '{mode}' pads the last {k} dims of an "
            f"input with {k + 1} or {k + 2} dims, got {nd} dims {list(x.shape)} and pad {p}"
        )
    if any(n == 0 for n in x.shape[nd - k - (1 if nd == k + 2 and mode != "circular" else 0) :]):
        raise RuntimeError(
            f"pad: expected non-zero sizes in the padded dims and the channels of input, got {list(x.shape)}"
        )
    for i in range(k):
        n, a, b = x.shape[-1 - i], p[2 * i], p[2 * i + 1]
        if mode == "reflect" and (a >= n or b >= n):
            raise RuntimeError(
                f"pad: padding size should be less than the corresponding input dimension, but got: padding ({a}, {b}) at dimension "
                f"{nd - 1 - i} of input {list(x.shape)}"
            )
        if mode == "circular" and (a > n or b > n):
            raise RuntimeError(
                f"pad: padding value causes wrapping around more than once: padding ({a}, {b}) at dimension {nd - 1 - i} of size {n}"
            )
        if n + a + b < (0 if mode == "circular" else 1) or (
            mode == "circular" and n + min(a, 0) + min(b, 0) < 1 and (a > 0 or b > 0)
        ):
            raise RuntimeError(
                f"pad: input (size {n} at dimension {nd - 1 - i}) is too small for negative padding ({a}, {b})"
            )


@public("nn.functional.pad", out=False)
@straight
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """The last dims padded by ``pad = (before last, after last, before last but one, ...)``; negative pads cut off.

    `mode`: "constant" (with `value`), "reflect" (without repeating the edge), "replicate" (the edge), "circular".

    >>> chainrule.nn.functional.pad(chainrule.arange(3.0).reshape(1, 3), (2, 1), mode="reflect")
    tensor([[2., 1., 0., 1., 2., 1.]])
    """
    p = [int(k) for k in pad]
    if len(p) % 2:
        raise RuntimeError(f"pad: padding length must be divisible by 2, got pad={p}")
    if len(p) // 2 > input.ndim:
        raise RuntimeError(
            f"pad: padding length should be less than or equal to two times the input dimension: pad={p}, input {list(input.shape)}"
        )
    if mode == "constant":
        return constant_pad_nd(input, p, 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(
            f"pad: unrecognised padding mode {mode!r}; use 'constant', 'reflect', 'replicate' or 'circular'"
        )
    if value is not None and value != 0:
        raise RuntimeError(f"pad: padding mode '{mode}' doesn't take in value argument, got value={value}")
    _check_index_pad(input, p, mode)
    y = input
    for i in range(len(p) // 2):
        a, b = p[2 * i], p[2 * i + 1]
        if a or b:
            y = index_pad_p(y, dim=-1 - i, mode=mode, n=y.shape[-1 - i], a=a, b=b)
    return clone_p.bind(input) if y is input else y


# -- shuffles ---------------------------------------------------------------------------------------------------------


@public("pixel_shuffle nn.functional.pixel_shuffle")
@keeps_format
@straight
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """``(*, C r^2, H, W) -> (*, C, H r, W r)``."""
    r = upscale_factor
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    c, h, w = input.shape[-3:]
    if c % (r * r):
        raise RuntimeError(
            f"pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but {c} is not divisible by {r * r}"
        )
    lead = input.shape[:-3]
    y = permute_p(reshape(input, *lead, c // (r * r), r, r, h, w), dims=(-5, -2, -4, -1, -3))
    return reshape(y, *lead, c // (r * r), h * r, w * r)


@public("pixel_unshuffle nn.functional.pixel_unshuffle")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """``(*, C, H r, W r) -> (*, C r^2, H, W)``."""
    r = downscale_factor
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    c, h, w = input.shape[-3:]
    if h % r or w % r:
        raise RuntimeError(
            f"pixel_unshuffle expects height and width to be divisible by downscale_factor, but {h} or {w} is not divisible by {r}"
        )
    lead = input.shape[:-3]
    y = permute_p(reshape(input, *lead, c, h // r, r, w // r, r), dims=(-5, -3, -1, -4, -2))
    return reshape(y, *lead, c * r * r, h // r, w // r)


@public(
    "channel_shuffle native_channel_shuffle nn.functional.channel_shuffle nn.functional.native_channel_shuffle",
    out=False,
)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channel ``g k + i`` (of g groups) moved to ``i g + k``: the groups interleaved."""
    if input.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    c = input.shape[1]
    if groups <= 0:
        raise RuntimeError(
            f"channel_shuffle: Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    if c % groups:
        raise RuntimeError(
            f"channel_shuffle: number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        )
    rest = input.shape[2:]
    k = len(rest)
    y = reshape(input, input.shape[0], groups, c // groups, *rest)
    order = (-k - 3, wrap_dim(2, k + 3), wrap_dim(1, k + 3), *range(-k, 0))
    return reshape(permute_p(y, dims=order), *input.shape)


sample("constant_pad_nd", S(2, 3), (1, -1, 0, 2), 1.5)
sample("nn.functional.pad", S(2, 3, 4), (2, 1), mode="reflect")
sample("nn.functional.pad", S(1, 2, 3, 4), (3, 1, 0, 2), mode="reflect")
sample("nn.functional.pad", S(2, 3, 4), (-1, 5), mode="replicate")
sample("nn.functional.pad", S(1, 3, 4), (2, 4), mode="circular")
sample("nn.functional.pad", S(1, 3, 4), (-2, 2), mode="circular")
sample("pixel_shuffle", S(1, 8, 2, 3), 2)
sample("pixel_unshuffle", S(2, 4, 6), 2)
sample("channel_shuffle", S(1, 6, 2, 2), 3)
