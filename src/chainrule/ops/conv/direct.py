"""The three bodies of convolution on compiled sums over taps (:mod:`chainrule.kernels.taps`): how images lie in memory for them.

An image is padded and its places are sorted by remainder: place t of a padded axis with stride s is place ``t // s`` of plane ``t % s``.
Then the taps of a kernel are distances, the same ones for every place of the output.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any

import numpy as np

from ...kernels import NotSupported, taps
from ...kernels.pool import empty

PLANES = 16  # remainders from which on windows hardly overlap, and columns are better
WORK = 1 << 14  # multiplications below which a call of NumPy's is shorter


def _steps(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """How far apart neighbours along each axis of a contiguous block are."""
    return tuple(math.prod(lengths[i + 1 :]) for i in range(len(lengths)))


def _reach(counts: tuple[int, ...], steps: tuple[int, ...]) -> int:
    """How many places a block of so many along each axis stretches over."""
    return sum((n - 1) * s for n, s in zip(counts, steps, strict=True)) + 1


class Layout:
    """Images of `geo` for a sum over taps: planes by remainder, their lengths, and where taps lie.

    Lines share their padding: what lies behind one is what lies before the next, so that few places are computed in vain.
    """

    __slots__ = ("copied", "first", "lengths", "phases", "places", "plane", "size", "steps", "tap")

    def __init__(self, key: tuple[Any, ...]) -> None:
        size, kernel, output, stride, pad, dilation = key
        span = [(p - 1) * s + (k - 1) * e + 1 for p, s, k, e in zip(output, stride, kernel, dilation, strict=True)]
        lengths = [-(-m // s) for m, s in zip(span, stride, strict=True)]
        # For each remainder: what is read of the image, and where that goes in the plane.
        self.phases = []
        for phase in np.ndindex(*stride):
            source, target = [], []
            for f, n, a, s, m in zip(phase, size, pad, stride, lengths, strict=True):
                first = max(0, -(-(a - f) // s))  # the first place of the plane that is not padding
                start = first * s + f - a
                count = max(0, min(m - first, -(-(n - start) // s)))
                source.append(slice(start, start + (count - 1) * s + 1, s) if count else slice(0, 0))
                target.append(slice(first, first + count) if count else slice(m, m))
            self.phases.append((tuple(source), tuple(target)))
        ends = [t[-1] for _, t in self.phases]
        pitch = max(*(t.stop for t in ends), lengths[-1] - min(t.start for t in ends), output[-1])
        tail = lengths[-1] - pitch if len(lengths) > 1 else 0
        if len(lengths) > 1:
            lengths[-1] = pitch
        self.size = size
        self.lengths = tuple(lengths)
        self.steps = _steps(self.lengths)
        self.plane = math.prod(lengths) + tail
        self.copied = any(a for a in pad) or self.lengths != size or any(s != 1 for s in stride)
        self.first = (output[0], *self.lengths[1:])  # of the output, before it is cropped
        self.places = _reach(output, self.steps)
        turns = _steps(stride)
        # For each tap: the number of its plane times the plane's size, plus its place there.
        self.tap = np.array(
            [
                sum(
                    (k * e % s) * turn * self.plane + k * e // s * step
                    for k, e, s, turn, step in zip(at, dilation, stride, turns, self.steps, strict=True)
                )
                for at in np.ndindex(*kernel)
            ],
            np.int64,
        )

    def fill(self, x: Any) -> Any:
        """``(..., *size) -> (..., remainders, places)``, contiguous; padding is zero."""
        lead = x.shape[: x.ndim - len(self.size)]
        if not self.copied:
            return np.ascontiguousarray(x).reshape(*lead, 1, self.plane)
        out: Any = empty((*lead, len(self.phases), self.plane), x.dtype)
        out.fill(0)
        lines = out[..., : math.prod(self.lengths)].reshape(*lead, len(self.phases), *self.lengths, copy=False)
        for i, (source, target) in enumerate(self.phases):
            lines[(..., i, *target)] = x[(..., *source)]
        return out


layout = lru_cache(maxsize=512)(Layout)


def _key(geo: Any) -> tuple[Any, ...]:
    return geo.size, geo.kernel, geo.output, geo.stride, geo.pad, geo.dilation


def _supported(geo: Any, work: int, *arrays: Any) -> None:
    kind = arrays[0].dtype
    if (
        work < WORK
        or kind.char not in "fd"
        or any(a.dtype is not kind for a in arrays)
        or math.prod(geo.stride) > PLANES
    ):
        raise NotSupported


def _numbers(lead: tuple[int, ...], head: tuple[int, ...], n: int) -> Any:
    """For each of ``(*head, n)`` the number of its image among ``(*lead, n)``, where `lead` broadcasts to `head`."""
    own = np.arange(math.prod(lead) * n).reshape(*(1,) * (len(head) - len(lead)), *lead, n)
    return np.ascontiguousarray(np.broadcast_to(own, (*head, n)).reshape(-1))


def _matrices(lead: tuple[int, ...], head: tuple[int, ...], n: int) -> Any:
    return np.repeat(_numbers(lead, head, 1), n)


def _crop(y: Any, lengths: tuple[int, ...], counts: tuple[int, ...]) -> Any:
    """The first `counts` places of blocks of `lengths`, whose trailing axis is flat."""
    return y.reshape(*y.shape[:-1], *lengths)[(..., *(slice(0, n) for n in counts))]


def conv(x: Any, w: Any, geo: Any) -> Any:
    """``(..., N, C, *size), (..., O, C, *kernel) -> (..., N, O, *output)``."""
    d = geo.d
    n, c = x.shape[-d - 2 : -d]
    o = w.shape[-d - 2]
    xl, wl = x.shape[: -d - 2], w.shape[: -d - 2]
    head = np.broadcast_shapes(xl, wl)
    _supported(geo, math.prod(head) * n * o * c * math.prod(geo.kernel) * math.prod(geo.output), x, w)
    lay = layout(_key(geo))
    planes = lay.fill(x)
    block = planes.shape[-2] * lay.plane
    at = (np.arange(c)[:, None] * block + lay.tap).reshape(-1)
    images = _numbers(xl, head, n)
    y = empty((len(images), o, math.prod(lay.first)), x.dtype)
    taps.sums(
        planes.reshape(-1),
        w.reshape(-1, o, len(at)),
        at,
        images * (c * block),
        _matrices(wl, head, n),
        y,
        lay.places,
    )
    if lay.first != geo.output:
        y = np.ascontiguousarray(_crop(y, lay.first, geo.output))
    return y.reshape(*head, n, o, *geo.output)


def conv_input(y: Any, w: Any, geo: Any) -> Any:
    """``(..., N, O, *output), (..., O, C, *kernel) -> (..., N, C, *size)``, one sum for each remainder modulo the stride."""
    d = geo.d
    n, o = y.shape[-d - 2 : -d]
    c = w.shape[-d - 1]
    yl, wl = y.shape[: -d - 2], w.shape[: -d - 2]
    head = np.broadcast_shapes(yl, wl)
    _supported(geo, math.prod(head) * n * o * c * math.prod(geo.kernel) * math.prod(geo.output), y, w)
    # Place T of a remainder reads place T - (tap // stride) of y: images are padded in front as far as taps go back.
    back = tuple((k - 1) * e // s for k, e, s in zip(geo.kernel, geo.dilation, geo.stride, strict=True))
    least = tuple(a // s for a, s in zip(geo.pad, geo.stride, strict=True))
    full = [
        (m + a - 1) // s + 1 - first + b
        for m, a, s, first, b in zip(geo.size, geo.pad, geo.stride, least, back, strict=True)
    ]
    source = [slice(max(0, f - b), max(0, f - b) + m) for f, b, m in zip(least, back, full, strict=True)]
    inner = y[(..., *source)]
    front = tuple(max(0, b - f) for f, b in zip(least, back, strict=True))
    inner = inner[(..., *(slice(0, m - a) for m, a in zip(full, front, strict=True)))]
    tail = 0
    if d > 1:
        tail = min(front[-1], full[-1] - front[-1] - inner.shape[-1])
        full[-1] -= tail
    steps = _steps(tuple(full))
    block = math.prod(full) + tail
    flat: Any = empty((*y.shape[:-d], block), y.dtype)
    flat.fill(0)
    padded = flat[..., : math.prod(full)].reshape(*y.shape[:-d], *full, copy=False)
    padded[(..., *(slice(a, a + p) for a, p in zip(front, inner.shape[-d:], strict=True)))] = inner
    images, matrices = _numbers(yl, head, n), _matrices(wl, head, n)
    x: Any = empty((len(images), c, *geo.size), y.dtype)
    wt = np.moveaxis(w.reshape(-1, o, c, *geo.kernel), 1, 2)  # (matrices, C, O, *kernel)
    for phase in np.ndindex(*geo.stride):
        target, counts, shift, chosen = [], [], 0, []
        for f, m, a, s, k, e, b, low, step in zip(
            phase, geo.size, geo.pad, geo.stride, geo.kernel, geo.dilation, back, least, steps, strict=True
        ):
            first = max(0, -(-(a - f) // s))
            start = first * s + f - a
            count = max(0, -(-(m - start) // s))
            target.append(slice(start, start + max(count - 1, 0) * s + 1, s) if count else slice(0, 0))
            counts.append(count)
            shift += (first - low + b) * step
            chosen.append([q for q in range(k) if q * e % s == f])
        if 0 in counts:
            continue
        if not all(chosen):
            x[(..., *target)] = 0
            continue
        places = [
            shift - sum(q * e // s * step for q, e, s, step in zip(at, geo.dilation, geo.stride, steps, strict=True))
            for at in itertools.product(*chosen)
        ]
        at = (np.arange(o)[:, None] * block + np.array(places, np.int64)).reshape(-1)
        part = wt[(..., *np.ix_(*chosen))] if any(s != 1 for s in geo.stride) else wt
        lines = (counts[0], *full[1:])
        out = empty((len(images), c, math.prod(lines)), y.dtype)
        taps.sums(
            flat.reshape(-1),
            part.reshape(len(wt), c, len(at)),
            at,
            images * (o * block),
            matrices,
            out,
            _reach(tuple(counts), steps),
        )
        x[(..., *target)] = _crop(out, lines, tuple(counts))
    return x.reshape(*head, n, c, *geo.size)


def conv_weight(x: Any, y: Any, geo: Any) -> Any:
    """``(..., N, C, *size), (..., N, O, *output) -> (..., O, C, *kernel)``."""
    d = geo.d
    n, c = x.shape[-d - 2 : -d]
    o = y.shape[-d - 1]
    xl, yl = x.shape[: -d - 2], y.shape[: -d - 2]
    head = np.broadcast_shapes(xl, yl)
    _supported(geo, math.prod(head) * n * o * c * math.prod(geo.kernel) * math.prod(geo.output), x, y)
    lay = layout(_key(geo))
    planes = lay.fill(x)
    block = planes.shape[-2] * lay.plane
    at = (np.arange(c)[:, None] * block + lay.tap).reshape(-1)
    if lay.first != geo.output:
        full: Any = empty((*y.shape[:-d], *lay.first), y.dtype)
        full.fill(0)
        full[(..., *(slice(0, p) for p in geo.output))] = y
        y = full
    w = np.empty((math.prod(head), o, len(at)), x.dtype)
    taps.products(
        planes.reshape(-1),
        np.ascontiguousarray(y).reshape(-1, o, math.prod(lay.first)),
        at,
        _numbers(xl, head, n) * (c * block),
        _numbers(yl, head, n),
        w,
        lay.places,
    )
    return w.reshape(*head, o, c, *geo.kernel)
