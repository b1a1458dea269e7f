"""Other examples of a sample's arguments: floating ones nearby, index and mask arguments with other values in range."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .calculus import Arrays


def noisy(rng: np.random.Generator, x: np.ndarray, k: int) -> np.ndarray:
    """x (1 + 20 % noise); integers rolled by k places."""
    if x.dtype.kind in "fc":
        return np.asarray(x * (1 + 0.2 * rng.uniform(-1, 1, x.shape)), x.dtype)
    return np.roll(x, k, axis=-1) if x.ndim else x


def scaled(rng: np.random.Generator, x: np.ndarray, k: int) -> np.ndarray:
    """x shrunk by 3 k percent, for arguments that noise takes out of their domain; integers as they are."""
    if x.dtype.kind in "fc":
        return np.asarray(x * (1 - 0.03 * k), x.dtype)
    return x


def index_variants(x: np.ndarray, size: int) -> Iterator[Arrays]:
    """Lists of `size` arrays that begin with `x` and differ from example to example, the likeliest to be valid first."""
    for change in _CHANGES:
        variants = [x, *(np.asarray(change(x, k), x.dtype) for k in range(1, size))]
        if any(not np.array_equal(v, x) for v in variants[1:]):
            yield variants


def _rotated(x: np.ndarray, k: int) -> np.ndarray:
    """Values moved by k within the range that occurs: as unique and as valid as before."""
    if x.dtype.kind == "b" or not x.size:
        return _rolled(x, k)
    low, high = int(x.min()), int(x.max())
    return low + (x - low + k) % (high - low + 1)


def _rolled(x: np.ndarray, k: int) -> np.ndarray:
    return np.roll(x.ravel(), k).reshape(x.shape)


def _reversed(x: np.ndarray, k: int) -> np.ndarray:
    return x.ravel()[::-1].reshape(x.shape) if k % 2 else x


def _raised(x: np.ndarray, k: int) -> np.ndarray:
    """One more or one less in every second example, or the mask turned over: for indices that are all the same."""
    if x.dtype.kind == "b":
        return ~x if k % 2 else x
    return x + k % 2


def _lowered(x: np.ndarray, k: int) -> np.ndarray:
    return x if x.dtype.kind == "b" else x - k % 2


_CHANGES: tuple[Callable[[np.ndarray, int], np.ndarray], ...] = (_rotated, _rolled, _reversed, _raised, _lowered)
