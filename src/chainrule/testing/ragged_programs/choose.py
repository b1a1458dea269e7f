"""How a step is made: the table of steps, and the choice of a value, a dim, a weight that fits.

Dims are negative, so that a function means the same on a nest and on a component; where the two are written differently a step
has both forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ... import nn
from .program import Dim, Dims, Program, Step, Value

F: Any = nn.functional
Rng = np.random.Generator
Maker = Callable[[Rng, Program], Step | None]
STEPS: dict[str, Maker] = {}
EDGE = 0.0137  # where masks begin: not at 0, nor where two values are equal, which they may be up to rounding


def step(f: Maker) -> Maker:
    """Put a step into the table."""
    STEPS[f.__name__] = f
    return f


def pick(rng: Rng, options: Iterable[Any]) -> Any:
    """One of the options."""
    options = list(options)
    return options[int(rng.integers(len(options)))]


def chosen(rng: Rng, p: Program, least: int = 0, ok: Callable[[Value], bool] = lambda v: True) -> int | None:
    """A real value with at least that many dims; the newest is the likeliest."""
    fit = [i for i, v in enumerate(p.values) if v.real and len(v.dims) >= least and ok(v)]
    if not fit:
        return None
    return fit[-1] if rng.random() < 0.6 else pick(rng, fit)


def weight(p: Program, *shape: int) -> int:
    """A new dense operand."""
    p.dense.append(np.zeros(shape))
    return len(p.dense) - 1


def one(
    text: str, i: int, f: Any, v: Value, dims: Dims, each: Any = None, real: bool = True, dense: tuple[int, ...] = ()
) -> Step:
    """A step of one value."""
    args = ", ".join([f"v{i}", *[f"w{j}" for j in dense]])
    return Step(f"{text}({args})", (i,), f, each or f, Value(dims, v.n, real), dense)


def replaced(dims: Dims, d: int, m: Dim) -> Dims:
    d %= len(dims)
    return (*dims[:d], m, *dims[d + 1 :])


def dropped(dims: Dims, ds: Iterable[int], keep: bool) -> Dims:
    gone = {d % len(dims) for d in ds}
    return tuple(1 if i in gone else m for i, m in enumerate(dims) if keep or i not in gone)


def same(a: Dim, b: Dim) -> bool:
    """Whether two sizes are the same, ragged ones too."""
    return isinstance(a, np.ndarray) == isinstance(b, np.ndarray) and bool(np.array_equal(a, b))


def dim_of(rng: Rng, v: Value) -> int:
    return -1 - int(rng.integers(len(v.dims)))
