"""Numerical mathematics of the judge: inner products, central differences with an error estimate, comparisons."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Arrays = list[np.ndarray]

# PyTorch's own default tolerances by dtype (relative, absolute).
TOLERANCES = {
    "float64": (1e-7, 1e-7),
    "complex128": (1e-7, 1e-7),
    "float32": (1.3e-6, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "float16": (1e-3, 1e-5),
    "complex32": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
}
# What rounding leaves of an element that is a sum of large ones, relative to the largest.
CANCELLATION = {"float64": 1e-12, "complex128": 1e-12}
DIFFERENCE_TOLERANCE = 1e-5
LOW_PRECISION = frozenset(TOLERANCES) - {"float64", "complex128"}


def mismatch(
    got: np.ndarray, want: np.ndarray, dtype: str, *, ignore: np.ndarray | None = None, relative_to_all: bool = False
) -> str | None:
    """None where the arrays agree, else a sentence that tells how far apart they are and where.

    `relative_to_all` is for derivatives, whose elements are sums: each is held to its own size, and to what rounding leaves of
    the largest.
    """
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if got.size == 0:
        return None
    if want.dtype.kind in "biu" or got.dtype.kind in "biu":
        bad = got != want
        rtol = atol = 0.0
    else:
        rtol, atol = TOLERANCES.get(dtype, (1e-7, 1e-7))
        if relative_to_all:
            finite = np.abs(want[np.isfinite(want)])
            atol = CANCELLATION.get(dtype, atol) * max(1.0, float(finite.max(initial=0.0)))
        bad = ~_close(got, want, rtol, atol)
    if ignore is not None:
        bad &= ~ignore
    if not bad.any():
        return None
    where = tuple(int(i) for i in np.argwhere(bad)[0]) if bad.ndim else ()
    count = f"{int(bad.sum())} of {bad.size} elements differ"
    return f"{count}, at {list(where)} got {_short(got[where])}, expected {_short(want[where])}"


def _close(got: np.ndarray, want: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    """Elementwise closeness; complex numbers that are not finite part by part, since one part may be a rounded number."""
    close = np.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    if got.dtype.kind == "c" and want.dtype.kind == "c":
        pairs = ((got.real, want.real), (got.imag, want.imag))
        parts = [np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True) for a, b in pairs]
        return np.where(np.isfinite(want), close, parts[0] & parts[1])
    return close


def _short(value: np.generic) -> str:
    return f"{value:.6g}" if np.asarray(value).dtype.kind in "fc" else str(value)


def inner(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> float:
    """Re sum conj(a) b over all arrays: the pairing of cotangents and tangents under PyTorch's complex convention."""
    return float(sum(np.sum((np.conj(x) * y).real) for x, y in zip(a, b, strict=True)))


def magnitude(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> float:
    """sum |a||b|: what rounding errors of `inner` are relative to."""
    return float(sum(np.sum(np.abs(x) * np.abs(y)) for x, y in zip(a, b, strict=True)))


def random_like(rng: np.random.Generator, like: Sequence[tuple[tuple[int, ...], np.dtype]]) -> Arrays:
    """Standard normal arrays of the given shapes and dtypes, complex where the dtype is."""
    out = []
    for shape, dtype in like:
        x = rng.standard_normal(shape)
        if dtype.kind == "c":
            x = (x + 1j * rng.standard_normal(shape)) / np.sqrt(2)
        out.append(np.asarray(x, dtype))
    return out


@dataclass
class Differences:
    """A directional derivative by central differences: estimate, its error, and where it can be trusted, per output."""

    estimate: Arrays
    error: Arrays
    usable: list[np.ndarray]
    finite: bool = True
    finer: Callable[[], Differences] | None = None

    def refined(self) -> Differences:
        """The same, trusted only where steps two hundred times smaller agree: coarse steps can jump over kinks and knots.

        A staircase whose steps are as wide as the difference's looks like a line.
        """
        if self.finer is None:
            return self
        fine = self.finer()
        usable = []
        for k, u in enumerate(self.usable):
            with np.errstate(all="ignore"):
                gap = np.abs(self.estimate[k] - fine.estimate[k])
                far = ~(gap <= 1e-6 * np.abs(self.estimate[k]) + 3 * (self.error[k] + fine.error[k]) + 1e-9)
            usable.append(u & ~far)
        return Differences(self.estimate, self.error, usable, self.finite)

    @property
    def all_usable(self) -> bool:
        return all(bool(u.all()) for u in self.usable)

    @property
    def none_usable(self) -> bool:
        return not any(bool(u.any()) for u in self.usable)

    def masked(self, cotangents: Sequence[np.ndarray]) -> Arrays:
        """The cotangents, zero where the differences cannot be trusted."""
        return [np.where(u, g, 0).astype(g.dtype) for u, g in zip(self.usable, cotangents, strict=True)]

    def mismatch(self, got: Sequence[np.ndarray]) -> str | None:
        """None where `got` agrees at every usable element, else a sentence."""
        for k, (y, d, e, u) in enumerate(zip(got, self.estimate, self.error, self.usable, strict=True)):
            if y.shape != d.shape:
                return f"output {k}: shape {y.shape}, expected {d.shape}"
            scale = float(np.abs(np.where(u, d, 0)).max(initial=0.0))
            size = np.abs(np.where(u, d, 0)) + 1e-4 * max(scale, 1.0)
            tolerance = DIFFERENCE_TOLERANCE * size + 3 * np.where(u, e, 0)
            with np.errstate(all="ignore"):
                bad = u & ~(np.abs(y - np.where(u, d, 0)) <= tolerance)
            if bad.any():
                at = tuple(int(i) for i in np.argwhere(bad)[0]) if bad.ndim else ()
                return (
                    f"output {k}: {int(bad.sum())} of {bad.size} elements differ from central differences, "
                    f"at {list(at)} got {_short(y[at])}, expected {_short(d[at])}"
                )
        return None

    def pairing(self, masked: Sequence[np.ndarray]) -> tuple[float, float]:
        """(Re <g, D>, tolerance) for cotangents that are zero where D cannot be trusted."""
        d = [np.where(u, x, 0) for u, x in zip(self.usable, self.estimate, strict=True)]
        e = [np.where(u, x, 0) for u, x in zip(self.usable, self.error, strict=True)]
        return inner(masked, d), DIFFERENCE_TOLERANCE * max(magnitude(masked, d), 1e-2) + 3 * magnitude(masked, e)


def differences(
    f: Callable[[Arrays], Arrays], x: Sequence[np.ndarray], t: Sequence[np.ndarray], *, hopeless: bool = False
) -> Differences:
    """d/dh f(x + h t) at 0 by Richardson-extrapolated central differences at two scales.

    An element is usable where its error estimate is small and the one-sided differences approach each other as h
    shrinks: at a kink they stay apart, at a jump they grow. Outputs of low precision are not usable, nothing is if
    `hopeless`.
    """
    with np.errstate(all="ignore"):
        f0 = f(list(x))
        if hopeless:
            nothing = [np.zeros(y.shape, bool) for y in f0]
            return Differences([np.zeros(y.shape, y.dtype) for y in f0], [np.zeros(y.shape) for y in f0], nothing)
        ladder = functools.cache(functools.partial(_ladder, f, f0, x, t))
        coarse, fine, finest = 4e-4, 2e-6, 1e-8
        try:
            best = ladder(coarse)
        except Exception:  # whatever the library raises
            # A coarse step may leave the domain (a probability above 1). A fine one stays inside, or the error is real.
            best, by_fine = ladder(fine), [np.ones(y.shape, bool) for y in f0]
        else:
            by_fine = [np.zeros(y.shape, bool) for y in f0]
            if not best.all_usable:
                by_fine = [u & ~v for u, v in zip(ladder(fine).usable, best.usable, strict=True)]
                best = _chosen(by_fine, ladder(fine), best)
        best.finite = all(bool(np.isfinite(y).all()) for y in f0)

        def finer() -> Differences:
            if not any(bool(m.any()) for m in by_fine):
                return ladder(fine)
            return _chosen(by_fine, ladder(finest), ladder(fine))

        best.finer = finer
        return best


def _chosen(first: Sequence[np.ndarray], a: Differences, b: Differences) -> Differences:
    """`a` at the elements marked in `first`, `b` at the others."""

    def pick(xs: Arrays, ys: Arrays) -> Arrays:
        return [np.where(m, x, y) for m, x, y in zip(first, xs, ys, strict=True)]

    return Differences(pick(a.estimate, b.estimate), pick(a.error, b.error), pick(a.usable, b.usable))


def _ladder(
    f: Callable[[Arrays], Arrays], f0: Arrays, x: Sequence[np.ndarray], t: Sequence[np.ndarray], h: float
) -> Differences:
    plus, minus, plus2, minus2 = (
        f([np.asarray(a + s * b, a.dtype) for a, b in zip(x, t, strict=True)]) for s in (h, -h, h / 2, -h / 2)
    )
    estimates, errors, usable = [], [], []
    for y, p, m, p2, m2 in zip(f0, plus, minus, plus2, minus2, strict=True):
        wide, narrow = (p - m) / (2 * h), (p2 - m2) / h
        estimate = np.asarray((4 * narrow - wide) / 3)
        noise = 4e-15 * np.maximum(np.abs(p), np.abs(m)) / h
        error = np.asarray(np.abs(narrow - wide) / 3 + noise)
        # The largest slope that is one: at a jump the estimate is large and means nothing.
        sure = error <= 1e-4 * np.maximum(np.abs(estimate), 1e-2)
        scale = np.abs(np.where(sure, estimate, 0)).max(initial=0.0)
        bend, bend2 = np.abs(p - 2 * y + m) / h, np.abs(p2 - 2 * y + m2) / (h / 2)
        size = np.abs(estimate)
        smooth = (bend2 <= 0.75 * bend) | (bend2 <= 1e-4 * np.maximum(size, 1e-3) + 1e-7 * scale + 8 * noise)
        small = error <= 1e-4 * np.maximum(size, 1e-2) + 1e-8 * scale
        ok = np.isfinite(estimate) & np.isfinite(error) & smooth & small & (y.dtype.name not in LOW_PRECISION)
        estimates.append(estimate)
        errors.append(error)
        usable.append(np.asarray(ok))
    return Differences(estimates, errors, usable)
