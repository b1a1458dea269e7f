"""Sample inputs, declared beside the ops they exercise.

``sample("softmax", S(3, 4), dim=-1)`` says that ``chainrule.softmax`` is to be tested on a random 3 x 4 tensor. The laws
(:mod:`chainrule.testing.laws`) run over all samples at float64 and, where the sample says so, complex128.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class S:
    """A random floating tensor of this shape; ``low``/``high`` bound it, ``spd`` makes it Hermitian positive definite."""

    def __init__(self, *shape: int, low: float = -2.0, high: float = 2.0, spd: bool = False, grad: bool = True) -> None:
        self.shape, self.low, self.high, self.spd, self.grad = shape, low, high, spd, grad

    def make(self, rng: np.random.Generator, cx: bool) -> np.ndarray:
        """The array, real or complex."""
        a = rng.uniform(self.low, self.high, self.shape)
        if cx:
            a = a + 1j * rng.uniform(self.low, self.high, self.shape)
        if self.spd:
            a = a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(self.shape[-1])
        return np.asarray(a)

    def __repr__(self) -> str:
        return f"S{self.shape}"


class Given:
    """A given array: indices, masks, or values with ties and zeros. ``grad`` says whether to differentiate in it."""

    def __init__(self, value: Any, grad: bool = False) -> None:
        self.value, self.grad = np.asarray(value), grad
        if grad:
            self.value = self.value.astype(np.float64)

    def make(self, rng: np.random.Generator, cx: bool) -> np.ndarray:
        """The array; a complex one only where it is differentiated."""
        return self.value.astype(np.complex128) if cx and self.grad else self.value

    def __repr__(self) -> str:
        return f"Given{self.value.shape}"


class Sample:
    """A call of a public function: its name or the function, its arguments (specs or plain data), whether complex too."""

    def __init__(
        self, name: str, f: Callable[..., Any] | None, args: tuple[Any, ...], kw: dict[str, Any], cx: bool
    ) -> None:
        self.name, self.f, self.args, self.kw, self.cx = name, f, args, kw, cx

    def __repr__(self) -> str:
        inner = ", ".join([*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kw.items())])
        return f"{self.name}({inner})"


SAMPLES: list[Sample] = []


def sample(name: str, *args: Any, f: Callable[..., Any] | None = None, cx: bool = True, **kw: Any) -> None:
    """Declare a sample of the public function `name` (dotted, under chainrule), or of `f`."""
    SAMPLES.append(Sample(name, f, args, kw, cx))
