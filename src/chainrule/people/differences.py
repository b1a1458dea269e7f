"""Directional derivatives by differences, with how far they may be off: the judge of ``verify``, of a whole function and of a single op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core import dtypes as dt
from ..core.device import strided
from ..core.tensor import Tensor

# The first is right for most functions. Where it is not, the smaller ones see what is steep or bent, the larger ones what is noisy or large. Powers of
# two, and directions of few bits: then x + h t is not rounded, but for the smallest steps.
STEPS = [2.0**k for k in (-13, -17, -10, -20, -7, -23, -3, -27, 0, -30, 3, -33, 7, -37, -40)]
MOVED = 1e-3
SETTLED, ROUGH = 0.2, 1e-3  # of the tolerance: as good as exact; of the slope: still something to judge by


class Slopes(NamedTuple):
    """The derivative along a direction for each result, how far it may be off, and what is as good as zero beside the values it came from."""

    values: list[np.ndarray]
    off: list[np.ndarray]
    zero: list[float]

    def scale(self, k: int) -> np.ndarray:
        """What an error of result `k` is measured by."""
        v = np.abs(self.values[k])
        return v + 1e-2 * np.max(v, initial=0.0, where=np.isfinite(v)) + self.zero[k]

    def doubt(self, zero: float = 1e4) -> float:
        """The largest relative error that they may have, where what is below `zero` times the least is not told from zero."""
        worst = 0.0
        for k, o in enumerate(self.off):
            if not np.isfinite(o).all():
                return float("inf")
            rough = o > 0
            worst = max(worst, float(np.max(o[rough] / (self.scale(k) + zero * self.zero[k])[rough], initial=0.0)))
        return worst


def numbers(x: Any) -> np.ndarray:
    """The elements of a tensor as one row of float64 or complex128."""
    if x.is_nested:
        return np.asarray(x.values().numpy()).reshape(-1)
    return np.asarray((x if x.layout is strided else x.to_dense()).numpy()).reshape(-1)


def directions(xs: Sequence[Any], rng: np.random.Generator, weight: Any = 1.0) -> list[Tensor]:
    """A random tensor for each of `xs`, of its kind; its numbers times `weight`."""
    out = []
    for x in xs:
        noise = rng.standard_normal(numbers(x).shape)
        if x.dtype.category == dt.COMPLEX:
            noise = noise + 1j * rng.standard_normal(numbers(x).shape)
        noise = _few_bits(noise * weight)
        if x.is_nested:
            from ..nested import nest_p

            out.append(nest_p(Tensor(np.asarray(noise, x.dtype.np)), shape=tuple(x.shape)))
            continue
        t = Tensor(np.asarray(noise.reshape(tuple(x.shape)), x.dtype.np))
        out.append(t if x.layout is strided else t.sparse_mask(x))  # the zeros of a sparse tensor are no variables
    return out


def _few_bits(v: np.ndarray) -> np.ndarray:
    if v.dtype.kind == "c":
        return _few_bits(v.real) + 1j * _few_bits(v.imag)
    mantissa, exponent = np.frexp(v)
    return np.ldexp(np.round(mantissa * 64), exponent - 6)


def slopes(f: Callable[..., Any], xs: Sequence[Any], ts: Sequence[Any], tolerance: float) -> Slopes:
    """The derivative of `f` along `ts` by central differences extrapolated once, each number by the step that serves it best.

    Where no step does (a kink, a tie, the edge of where the function is defined, noise) there is `doubt`.
    """

    def at(step: float) -> list[np.ndarray]:
        return [numbers(y) for y in f(*[x + step * t for x, t in zip(xs, ts, strict=True)])]

    mid = [numbers(y) for y in f(*xs)]
    try:
        still = [v == m if v.shape == m.shape else False for v, m in zip(at(1.0), mid, strict=True)]
    except (ArithmeticError, ValueError, RuntimeError):
        still = [False] * len(mid)
    # What is not finite has no slope, and needs none.
    off = [np.where(np.isfinite(m), np.inf, 0.0) for m in mid]
    doubt, step = [o.copy() for o in off], [o.copy() for o in off]
    found = Slopes([np.full(m.shape, np.nan, np.result_type(m, float)) for m in mid], off, [0.0] * len(mid))
    with np.errstate(all="ignore"):
        for h in STEPS:
            try:
                far, near = (at(2 * h), at(-2 * h)), (at(h), at(-h))
            except (ArithmeticError, ValueError, RuntimeError):  # beyond what the function takes
                continue
            lost = max((_rounded(numbers(x), h * numbers(t)) for x, t in zip(xs, ts, strict=True)), default=0.0)
            for k, m in enumerate(mid):
                if any(v[k].shape != m.shape for v in (*far, *near)):  # how many there are depends on the values
                    continue
                d2, bend2 = _quotients(far[0][k], m, far[1][k], 2 * h)
                d1, bend1 = _quotients(near[0][k], m, near[1][k], h)
                size = max(
                    float(np.max(np.abs(v), initial=0.0, where=np.isfinite(v))) for v in (m, near[0][k], near[1][k])
                )
                found.zero[k] = max(found.zero[k], 1e-9 * size)
                # The slopes from both sides differ in proportion to the step; where there is a kink within it, they do not.
                noise = np.where(still[k], 0.0, 1e-15 * size / h)
                best = (4 * d1 - d2) / 3
                rough = np.abs(d1 - d2) + np.abs(bend2 - 2 * bend1) + np.abs(best) * lost + noise
                # By relative doubt: quotients of a function that oscillates get smaller with larger steps, and their doubt with them.
                # Where two steps contradict each other, the larger one jumps over something.
                relative = rough / np.maximum(np.abs(best), found.zero[k] + 1e-300)
                agrees = ~(np.abs(best - found.values[k]) > 4 * (rough + off[k]))
                better = np.isfinite(best) & (relative < doubt[k]) & (agrees | (h < step[k]))
                step[k] = np.where(better, h, step[k])
                found.values[k] = np.where(better, best, found.values[k])
                doubt[k] = np.where(better, relative, doubt[k])
                off[k] = np.where(better, rough, off[k])
            if found.doubt(0.0) <= SETTLED * tolerance:
                break
    return found


def _quotients(up: np.ndarray, mid: np.ndarray, down: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """The central quotient, and by how much the slopes from both sides differ."""
    return (up - down) / (2 * h), ((up - mid) - (mid - down)) / h


def _rounded(x: np.ndarray, step: np.ndarray) -> float:
    """How much of a step is lost when it is added to `x`, at most."""
    return float(np.max(np.abs((x + step) - x - step)[step != 0] / np.abs(step)[step != 0], initial=0.0))


def beside(xs: Sequence[Any], rng: np.random.Generator) -> list[list[Any]]:
    """Points a little beside `xs`: each number larger, each smaller, at random. No two numbers move alike, so that ties are broken."""
    out = []
    for sign in (1.0, -1.0, 0.0):
        ts = directions(xs, rng)
        out.append([x + MOVED * (t if sign == 0.0 else sign * _sizes(t)) for x, t in zip(xs, ts, strict=True)])
    return out


def _sizes(t: Any) -> Any:
    return t.abs().to(t.dtype)


class Verdict(NamedTuple):
    """The relative error of a derivative beyond what differences may be off, a word on the worst number, and that doubt."""

    error: float
    text: str
    doubt: float
    moved: bool = False


def forward(f: Callable[..., Any], xs: Sequence[Any], tolerance: float, rng: np.random.Generator) -> Verdict:
    """Forward mode along a random direction."""
    from ..func import jvp

    ts = directions(xs, rng)
    want = slopes(f, xs, ts, tolerance)
    got = [numbers(t) for t in jvp(f, tuple(xs), tuple(ts))[1]]
    worst, text = 0.0, ""
    for k, (a, b, off) in enumerate(zip(got, want.values, want.off, strict=True)):
        if a.shape != b.shape:
            return Verdict(float("inf"), f"{a.size} numbers where {b.size} are expected", 0.0)
        lost = np.isnan(a) & (off > 0)  # a kink has no slope, an edge an infinite one, but none has NaN
        gap = np.where(lost, np.inf, _relative(np.abs(a - b) - 4 * off, want.scale(k), off))
        if gap.size and not gap.max() <= worst:
            i = int(np.argmax(gap))
            label = f"result {k} " if len(got) > 1 else ""
            worst, text = float(gap[i]), f"{label}element {i}: {a[i]:.6g}, differences say {b[i]:.6g}"
            if lost[i]:
                return Verdict(worst, f"{text} (chainrule.find_nan says where)", 0.0)
    return Verdict(worst, text, want.doubt())


def reverse(
    f: Callable[..., Any], xs: Sequence[Any], tolerance: float, rng: np.random.Generator, names: Sequence[str] = ()
) -> Verdict:
    """Reverse mode of a random combination of the results, for each argument along two directions."""
    from ..func import vjp

    ys, pull = vjp(f, *xs)
    gs = directions(ys, rng)
    weights = [numbers(g) for g in gs]
    worst, text, doubt = 0.0, "", 0.0
    for k, (x, back) in enumerate(zip(xs, pull(tuple(gs)), strict=True)):
        label, b = f"{names[k]}: " if k < len(names) else "", numbers(back)
        if tuple(back.shape) != tuple(x.shape):
            said = f"a gradient of shape {list(back.shape)} for an argument of shape {list(x.shape)}"
            return Verdict(float("inf"), label + said, 0.0)
        if np.isnan(b).any() and all(np.isfinite(numbers(y)).all() for y in ys):
            said = f"nan at element {int(np.argmax(np.isnan(b)))} (chainrule.find_nan says where)"
            return Verdict(float("inf"), label + said, 0.0)
        size = np.nan_to_num(np.abs(b))
        few = 1 / (size + 1e-3 * np.max(size, initial=0.0) + 1e-300)
        # The numbers alike, then such that those with a small gradient count too.
        for weight in (1.0, few / np.max(few, initial=0.0)):
            t = directions([x], rng, weight)[0]
            want = slopes(f, xs, [t if i == k else v * 0 for i, v in enumerate(xs)], tolerance)
            pairs = list(zip(weights, want.values, want.off, want.zero, strict=True))
            left = sum(float(np.sum((np.conj(c) * w)[o < np.inf].real)) for c, w, o, _ in pairs)
            right = float(np.sum((np.conj(b) * numbers(t)).real))
            off = sum(float(np.sum(np.abs(c) * o)) for c, _, o, _ in pairs)
            scale = sum(float(np.sum(np.abs(c) * (np.abs(w) + z))) for c, w, _, z in pairs) + abs(right)
            doubt = max(doubt, want.doubt())
            error = float(_relative(np.asarray(abs(left - right) - 4 * off), np.asarray(scale), np.asarray(off)))
            if not error <= worst:
                worst, text = error, f"{label}slope {right:.6g} along a random direction, differences say {left:.6g}"
    return Verdict(worst, text, doubt)


def _relative(gap: np.ndarray, scale: np.ndarray, off: np.ndarray) -> np.ndarray:
    """`gap` in units of `scale`, where there is any; zero where differences say nothing."""
    with np.errstate(all="ignore"):
        return np.where((gap > 0) & np.isfinite(off), gap / scale, 0.0)


def judged(
    law: Callable[..., Verdict],
    f: Callable[..., Any],
    xs: Sequence[Any],
    tolerance: float,
    rng: np.random.Generator,
    *more: Any,
) -> Verdict:
    """The verdict of a law on `f` at `xs`; where differences say nothing there, at a point beside."""
    best = law(f, xs, tolerance, rng, *more)
    for p in beside(xs, rng):
        if best.doubt <= SETTLED * tolerance:
            break
        try:
            v = law(f, p, tolerance, rng, *more)
        except Exception:  # outside of where it is defined
            continue
        if v.doubt < best.doubt:
            best = v._replace(moved=True)
    return best
