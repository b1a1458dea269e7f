"""Numbers that fill a cube more evenly than random ones: Sobol sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from .core import dtypes as dt
from .core.tensor import Tensor


class SobolEngine:
    """The Sobol sequence in [0, 1)^dimension: ``SobolEngine(2).draw(8)``; scrambled, it is random and just as even."""

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"SobolEngine: Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], got {dimension}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self._start()

    def _start(self) -> None:
        from scipy.stats import qmc

        from .ops.random.generator import default_generator

        seed = self.seed
        if seed is None and self.scramble:
            seed = int(default_generator.rng.integers(2**63))
        self._engine: Any = qmc.Sobol(
            self.dimension, scramble=self.scramble, bits=self.MAXBIT, rng=np.random.default_rng(seed)
        )
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next `n` points, one a row."""
        import warnings

        d = dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a number that is no power of two is the caller's choice
            points = Tensor(self._engine.random(n).astype(d.np)) if n else Tensor(np.zeros((0, self.dimension), d.np))
        self.num_generated += n
        return points if out is None else out.resize_(n, self.dimension).copy_(points)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next ``2**m`` points; their number so far must stay a power of two."""
        n = 2**m
        if (total := self.num_generated + n) & (total - 1):
            raise ValueError(
                f"draw_base2: the balance properties of Sobol' points require n to be a power of 2; {self.num_generated} points were "
                f"drawn, and {n} more make {total}. Call draw(), or reset() first"
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Begin anew."""
        self._start()
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out `n` points."""
        self._engine.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        notes = [f"dimension={self.dimension}"]
        if self.scramble:
            notes.append("scramble=True")
        if self.seed is not None:
            notes.append(f"seed={self.seed}")
        return f"SobolEngine({', '.join(notes)})"


__all__ = ["SobolEngine"]


def __dir__() -> list[str]:
    return __all__
