"""Programs: inputs of random ragged shapes, and steps drawn from the table in :mod:`.steps`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.tensor import Tensor

Dim = Any  # an int, the same in all components, or an array of one size for each
Dims = tuple[Dim, ...]


@dataclass(frozen=True)
class Value:
    """What is known of a value: its number of components, their sizes, whether derivatives flow through it."""

    dims: Dims
    n: int
    real: bool = True

    @property
    def nested(self) -> bool:
        """Whether a dim is ragged; without one the value on a nest is a dense tensor ``[n, *dims]``."""
        return any(isinstance(d, np.ndarray) for d in self.dims)

    def sizes(self, d: int) -> np.ndarray:
        """The size of a dim in each component."""
        return np.broadcast_to(self.dims[d], (self.n,))

    def has(self, d: int, least: int = 1) -> bool:
        """Whether every component has at least that many entries in a dim."""
        m = self.dims[d]
        return bool((m >= least).all()) if isinstance(m, np.ndarray) else m >= least

    def ragged(self, d: int) -> bool:
        """Whether a dim is ragged."""
        return isinstance(self.dims[d], np.ndarray)


@dataclass(frozen=True)
class Step:
    """One line: `nest` on values of nests, `each` on those of one component, or `whole` on lists of all components."""

    text: str
    args: tuple[int, ...]
    nest: Callable[..., Any]
    each: Callable[..., Any] | None
    out: Value
    dense: tuple[int, ...] = ()
    whole: Callable[..., Any] | None = None


@dataclass
class Program:
    """Inputs and steps; `mixes` says that a step moves components, so that no function of one component exists."""

    n: int
    nests: list[Value] = field(default_factory=list)
    dense: list[np.ndarray] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    declared: bool = False

    @property
    def mixes(self) -> bool:
        return any(s.whole is not None for s in self.steps)

    @property
    def outputs(self) -> list[int]:
        """The last value that derivatives flow through, and all others that nobody uses."""
        used = {a for s in self.steps for a in s.args}
        return [i for i in range(len(self.nests), len(self.values)) if i not in used] or [len(self.values) - 1]

    def __str__(self) -> str:
        lines = [f"n = {self.n}"]
        lines += [f"v{i} = {_text(v)}" for i, v in enumerate(self.nests)]
        lines += [f"w{i} = {w.shape}" for i, w in enumerate(self.dense)]
        lines += [f"v{len(self.nests) + i} = {s.text}   # {_text(s.out)}" for i, s in enumerate(self.steps)]
        return "\n".join([*lines, "return " + ", ".join(f"v{i}" for i in self.outputs)])

    def on_nests(self, *inputs: Tensor) -> list[Tensor]:
        """The program on nests and dense operands."""
        k = len(self.nests)
        vals: list[Any] = list(inputs[:k])
        ws = inputs[k:]
        for s in self.steps:
            vals.append(s.nest(*[vals[a] for a in s.args], *[ws[j] for j in s.dense]))
        return [vals[i] for i in self.outputs]

    def on_one(self, *inputs: Tensor) -> list[Tensor]:
        """The program on one component and dense operands."""
        k = len(self.nests)
        vals: list[Any] = list(inputs[:k])
        ws = inputs[k:]
        for s in self.steps:
            assert s.each is not None
            vals.append(s.each(*[vals[a] for a in s.args], *[ws[j] for j in s.dense]))
        return [vals[i] for i in self.outputs]

    def on_lists(self, *inputs: Any) -> list[list[Tensor]]:
        """The program on lists of components and dense operands: the reference."""
        k = len(self.nests)
        vals: list[Any] = list(inputs[:k])
        ws = inputs[k:]
        for s in self.steps:
            args, more = [vals[a] for a in s.args], [ws[j] for j in s.dense]
            if s.whole is not None:
                vals.append(s.whole(*args, *more))
            else:
                assert s.each is not None
                vals.append([s.each(*[a[i] for a in args], *more) for i in range(s.out.n)])
        return [vals[i] for i in self.outputs]


def _text(v: Value) -> str:
    dims = ", ".join(str(d.tolist()) if isinstance(d, np.ndarray) else str(d) for d in v.dims)
    return f"{'nest' if v.nested else 'dense'}[{v.n}; {dims}]" + ("" if v.real else " int")


def _input(rng: np.random.Generator, n: int) -> Value:
    """Sizes of a random nest: one to four dims, one to three of them ragged."""
    k = int(rng.choice([1, 2, 3, 4], p=[0.2, 0.45, 0.25, 0.1]))
    ragged = int(min(k, rng.choice([1, 2, 3], p=[0.7, 0.2, 0.1])))
    where = set(rng.choice(k, ragged, replace=False).tolist())
    kind = rng.choice(["any", "some", "ones", "equal"], p=[0.35, 0.45, 0.1, 0.1])
    dims: list[Dim] = []
    for d in range(k):
        if d in where:
            low = 0 if kind == "any" else 1
            size = rng.integers(low, 5, n)
            dims.append(np.full(n, 1 if kind == "ones" else 3) if kind in ("ones", "equal") else size)
        else:
            dims.append(int(rng.choice([1, 2, 3, 4], p=[0.15, 0.35, 0.25, 0.25])))
    if ragged == 2 and rng.random() < 0.3:  # square components
        a, b = sorted(where)
        dims[b] = dims[a]
    return Value(tuple(dims), n)


def found(v: Value) -> Value:
    """The structure that joining components finds: ragged where sizes differ, in the first dim where none does."""
    sizes = [v.sizes(d).copy() for d in range(len(v.dims))]
    ragged = [bool((c != c[0]).any()) for c in sizes]
    if not any(ragged):
        ragged[0] = True
    return Value(tuple(c if r else int(c[0]) for c, r in zip(sizes, ragged, strict=True)), v.n)


def draw(seed: int, number: int) -> Program:
    """Program `number` of a seed."""
    from .steps import STEPS

    rng = np.random.default_rng([seed, number])
    n = int(rng.choice([0, 1, 2, 3, 4], p=[0.04, 0.1, 0.3, 0.4, 0.16]))
    first = _input(rng, n)
    p = Program(n, declared=bool(rng.random() < 0.7))
    if not p.declared and n:
        first = found(first)
    p.nests = [first] * int(rng.choice([1, 2], p=[0.6, 0.4]))
    p.values = list(p.nests)
    length = int(rng.integers(1, 6))
    names = list(STEPS)
    for _ in range(200):
        if len(p.steps) >= length:
            break
        name = names[int(rng.integers(len(names)))]
        step = STEPS[name](rng, p)
        if step is not None:
            p.steps.append(step)
            p.values.append(step.out)
    return p
