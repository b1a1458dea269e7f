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
WORK = 1 << 9  # multiplications below which a call of NumPy is shorter


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
        # An axis that is split is a view, always (NumPy 2.0 knows no reshape(copy=False)).
        lines = out[..., : math.prod(self.lengths)].reshape(*lead, len(self.phases), *self.lengths)
        for i, (source, target) in enumerate(self.phases):
            lines[(..., i, *target)] = x[(..., *source)]
        return out


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


@lru_cache(maxsize=512)
def _numbers(lead: tuple[int, ...], head: tuple[int, ...], n: int, size: int = 1) -> Any:
    """For each of ``(*head, n)`` where its image of `size` entries starts among ``(*lead, n)``, where `lead` broadcasts to `head`."""
    own = np.arange(math.prod(lead) * n).reshape(*(1,) * (len(head) - len(lead)), *lead, n)
    return np.ascontiguousarray(np.broadcast_to(own, (*head, n)).reshape(-1)) * size


@lru_cache(maxsize=512)
def _matrices(lead: tuple[int, ...], head: tuple[int, ...], n: int) -> Any:
    return np.repeat(_numbers(lead, head, 1), n)


@lru_cache(maxsize=512)
def _taps(key: tuple[Any, ...], c: int) -> tuple[Layout, int, Any]:
    """The layout, the size of a channel in it, and where the taps of all channels lie."""
    lay = Layout(key)
    block = len(lay.phases) * lay.plane
    return lay, block, (np.arange(c)[:, None] * block + lay.tap).reshape(-1)


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
    lay, block, at = _taps(_key(geo), c)
    planes = lay.fill(x)
    images = _numbers(xl, head, n, c * block)
    y = empty((len(images), o, math.prod(lay.first)), x.dtype)
    taps.sums(
        planes.reshape(-1),
        w.reshape(-1, o, len(at)),
        at,
        images,
        _matrices(wl, head, n),
        y,
        lay.places,
    )
    if lay.first != geo.output:
        y = np.ascontiguousarray(_crop(y, lay.first, geo.output))
    return y.reshape(*head, n, o, *geo.output)


class Back:
    """How results of a convolution lie for its transpose: padded in front as far as taps go back, and one sum for each remainder.

    Place T of a remainder reads place ``T - tap // stride`` of y.
    """

    __slots__ = ("block", "inner", "lengths", "sums", "target")

    def __init__(self, key: tuple[Any, ...], o: int) -> None:
        size, kernel, output, stride, pad, dilation = key
        back = [(k - 1) * e // s for k, e, s in zip(kernel, dilation, stride, strict=True)]
        least = [a // s for a, s in zip(pad, stride, strict=True)]  # the first place that lies in the image
        lengths = [
            (m + a - 1) // s + 1 - first + b for m, a, s, first, b in zip(size, pad, stride, least, back, strict=True)
        ]
        front = [max(0, b - f) for f, b in zip(least, back, strict=True)]
        starts = [max(0, f - b) for f, b in zip(least, back, strict=True)]
        counts = [max(0, min(p - x, m - a)) for p, x, m, a in zip(output, starts, lengths, front, strict=True)]
        tail = min(front[-1], lengths[-1] - front[-1] - counts[-1]) if len(size) > 1 else 0  # lines share their padding
        lengths[-1] -= tail
        self.lengths = tuple(lengths)
        self.block = math.prod(lengths) + tail
        self.inner = tuple(slice(x, x + n) for x, n in zip(starts, counts, strict=True))
        self.target = tuple(slice(a, a + n) for a, n in zip(front, counts, strict=True))
        steps = _steps(self.lengths)
        self.sums = []
        for phase in np.ndindex(*stride):
            target, many, shift, chosen = [], [], 0, []
            for f, m, a, s, k, e, b, low, step in zip(
                phase, size, pad, stride, kernel, dilation, back, least, steps, strict=True
            ):
                first = max(0, -(-(a - f) // s))
                start = first * s + f - a
                count = max(0, -(-(m - start) // s))
                target.append(slice(start, start + max(count - 1, 0) * s + 1, s))
                many.append(count)
                shift += (first - low + b) * step
                chosen.append([q for q in range(k) if q * e % s == f])
            if 0 in many:
                continue
            places = [
                shift - sum(q * e // s * step for q, e, s, step in zip(at, dilation, stride, steps, strict=True))
                for at in itertools.product(*chosen)
            ]
            at = (np.arange(o)[:, None] * self.block + np.array(places, np.int64)).reshape(-1)
            part = np.ix_(*chosen) if max(stride) > 1 else ()
            lines = (many[0], *self.lengths[1:])
            self.sums.append((tuple(target), tuple(many), part, at, lines, _reach(tuple(many), steps)))


_back = lru_cache(maxsize=512)(Back)


def conv_input(y: Any, w: Any, geo: Any) -> Any:
    """``(..., N, O, *output), (..., O, C, *kernel) -> (..., N, C, *size)``, one sum for each remainder modulo the stride."""
    d = geo.d
    n, o = y.shape[-d - 2 : -d]
    c = w.shape[-d - 1]
    yl, wl = y.shape[: -d - 2], w.shape[: -d - 2]
    head = np.broadcast_shapes(yl, wl)
    _supported(geo, math.prod(head) * n * o * c * math.prod(geo.kernel) * math.prod(geo.output), y, w)
    plan = _back(_key(geo), o)
    flat: Any = empty((*y.shape[:-d], plan.block), y.dtype)
    flat.fill(0)
    padded = flat[..., : math.prod(plan.lengths)].reshape(*y.shape[:-d], *plan.lengths)
    padded[(..., *plan.target)] = y[(..., *plan.inner)]
    images, matrices = _numbers(yl, head, n, o * plan.block), _matrices(wl, head, n)
    x: Any = empty((len(images), c, *geo.size), y.dtype)
    wt = w.reshape(-1, o, c, *geo.kernel).swapaxes(1, 2)
    for target, counts, part, at, lines, places in plan.sums:
        if not len(at):
            x[(..., *target)] = 0
            continue
        out = empty((len(images), c, math.prod(lines)), y.dtype)
        weights = (wt[(..., *part)] if part else wt).reshape(len(wt), c, len(at))
        taps.sums(flat.reshape(-1), weights, at, images, matrices, out, places)
        x[(..., *target)] = _crop(out, lines, counts)
    return x.reshape(*head, n, c, *geo.size)


def conv_weight(x: Any, y: Any, geo: Any) -> Any:
    """``(..., N, C, *size), (..., N, O, *output) -> (..., O, C, *kernel)``."""
    d = geo.d
    n, c = x.shape[-d - 2 : -d]
    o = y.shape[-d - 1]
    xl, yl = x.shape[: -d - 2], y.shape[: -d - 2]
    head = np.broadcast_shapes(xl, yl)
    _supported(geo, math.prod(head) * n * o * c * math.prod(geo.kernel) * math.prod(geo.output), x, y)
    lay, block, at = _taps(_key(geo), c)
    planes = lay.fill(x)
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
        _numbers(xl, head, n, c * block),
        _numbers(yl, head, n),
        w,
        lay.places,
    )
    return w.reshape(*head, o, c, *geo.kernel)
