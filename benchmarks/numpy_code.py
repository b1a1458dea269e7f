"""Plain NumPy code: the gradient of a function of ten calls on 8x8, beside HIPS autograd, which wraps NumPy too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.common import OURS, Row, best_of, optional
from chainrule.func import grad

hips = optional("autograd")
hips_numpy: Any = None
if hips is not None:
    import autograd.numpy as hips_numpy  # type: ignore[import-not-found, no-redef]

rng = np.random.default_rng(0)
X = rng.standard_normal((8, 8)) * 0.3
W = rng.standard_normal((8, 8)) * 0.5


def ten_calls(lib: Any) -> Callable[[Any], Any]:
    """Ten calls of NumPy's functions."""

    def f(x: Any) -> Any:
        h = lib.tanh(lib.dot(lib.sin(x), W))
        h = lib.multiply(lib.exp(h), x)
        h = lib.log1p(lib.square(h))
        return lib.sum(lib.sqrt(lib.add(h, 1.0)))

    return f


def rows(only: str = "") -> Iterator[Row]:
    """The rows whose name contains `only`."""
    name = "NumPy code: gradient of ten calls, 8x8"
    if only not in name:
        return
    ours = grad(ten_calls(np))
    work: dict[str, Callable[[], object]] = {OURS: lambda: ours(X)}
    if hips is not None:
        theirs = hips.grad(ten_calls(hips_numpy))
        np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-10)
        work["autograd"] = lambda: theirs(X)
    yield Row(name, best_of(work), {"autograd": 0.5})
