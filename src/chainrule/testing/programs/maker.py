"""Draws programs: each line from a table of statements, over tensors that are alive and fit.

Every choice goes through one function `choose(n)`, a number below n: a random generator's, or hypothesis's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .program import Fn, Line, Program, Shape, Var

MAX_ELEMENTS = 18
INPUTS: list[Shape] = [(3,), (2, 3), (2, 2), (4,), (2,), (1, 3)]

Make = Callable[["Maker"], "Line | None"]


class Scope:
    """The names of one function, and whether it may write to tensors of the functions around it."""

    def __init__(self, writes_out: bool) -> None:
        self.vars: list[Var] = []
        self.writes_out = writes_out


class Maker:
    """The state of a program that is being drawn."""

    max_depth = 3

    def __init__(self, choose: Callable[[int], int]) -> None:
        self.choose = choose
        self.scopes = [Scope(True)]
        self.readonly: set[int] = set()
        self.overlapping: set[str] = set()
        self.home: dict[int, int] = {}
        self.counter = 0
        self.depth = 0
        self.no_grad = False
        self.recorded = (
            0  # functions around that jit records: no random numbers are drawn in them, and no values looked at
        )
        self.before_no_grad = -1
        # What each name depends on, of the input and the parameters: a program about nothing finds nothing.
        self.depends: dict[str, frozenset[str]] = {"x": frozenset({"x"})}
        self.transforms = 0

    # -- drawing

    def one(self, options: Sequence[Any]) -> Any:
        return options[self.choose(len(options))]

    def flip(self, n: int = 2) -> bool:
        """True once in n times; what shrinks is False."""
        return self.choose(n) == n - 1

    def pick(self, want: Callable[[Var], bool] = lambda v: True) -> Var | None:
        fitting = [v for s in self.scopes for v in s.vars if want(v)]
        live = [v for v in fitting if self.depends[v.name]]
        if live and not self.flip(5):
            fitting = live
        # The latest first: programs are chains rather than stars.
        return fitting[-1 - min(self.choose(len(fitting)), self.choose(len(fitting)))] if fitting else None

    def dim(self, v: Var) -> int:
        return self.choose(2 * len(v.shape)) - len(v.shape)

    def writable(self, v: Var) -> bool:
        """Whether the program may write to v here."""
        if v.root in self.readonly or v.name in self.overlapping:
            return False
        if v.root <= self.before_no_grad:
            return False  # what no_grad makes of a write to something outside is a statement of its own
        home = self.home[v.root]
        return all(s.writes_out for s in self.scopes[home + 1 :])

    # -- naming

    def name(self, letter: str = "v") -> str:
        self.counter += 1
        return f"{letter}{self.counter}"

    def var(self, shape: Sequence[int], like: Var | None = None, readonly: bool = False) -> Var:
        """A name for a result: in the memory of `like`, or in its own."""
        if like is not None:
            root = like.root
        else:
            root = self.counter + 1
            self.home[root] = len(self.scopes) - 1
        if readonly:
            self.readonly.add(root)
        out = Var(self.name(), tuple(shape), root)
        if like is not None and like.name in self.overlapping:
            self.overlapping.add(out.name)
        return out

    def constant(self, shape: Sequence[int]) -> str:
        n = int(np.prod(shape))
        if not shape:
            return f"cr.tensor({self.one([0.7, -0.6, 1.3])}, dtype=cr.float64)"
        low, high = self.one([(-0.9, 1.1), (0.3, 1.2), (1.0, -0.7)])
        flat = f"cr.linspace({low}, {high}, {n}, dtype=cr.float64)"
        return flat if len(shape) == 1 else f"{flat}.reshape({tuple(shape)})"

    # -- functions

    def function(
        self, params: Sequence[Shape], *, scalar: bool = False, writes_out: bool = False, transform: bool = True, recorded: bool = False,
        want: Callable[[Var], bool] = lambda v: True,
    ) -> tuple[Fn, Shape] | None:  # fmt: skip
        """A function of tensors of these shapes, and the shape of what it returns."""
        scope = Scope(writes_out)
        self.scopes.append(scope)
        self.depth += 1
        self.transforms += transform
        self.recorded += recorded
        no_grad = self.no_grad
        name = self.name("f")
        ps = tuple(Var(self.name("p"), tuple(s), -self.counter - 1) for s in params)
        for p in ps:
            self.home[p.root] = len(self.scopes) - 1
            self.readonly.add(p.root)
            self.depends[p.name] = frozenset({p.name})
        scope.vars.extend(ps)
        lines = [self.line() for _ in range(1 + self.choose(3))]
        mine = {p.name for p in ps}
        fitting = [v for v in scope.vars if scalar or want(v)]
        out = self.pick(lambda v: v in fitting and bool(self.depends[v.name] & mine))
        if out is None or self.flip(8):
            out = self.pick(lambda v: v in fitting)
        self.scopes.pop()
        self.depth -= 1
        self.transforms -= transform
        self.recorded -= recorded
        self.no_grad = no_grad
        if out is None:
            return None
        # A fresh tensor: whether a transform's result shares memory with what the function merely hands on is left open,
        # and so is whether no_grad around the transform cuts it off.
        ours = (
            self.home[out.root] == len(self.scopes)
            and out.root not in self.readonly
            and out.name not in self.overlapping
        )
        result, shape = "{0}" if ours else "{0} * 1.0", out.shape
        if scalar:
            whole = [result, "cr.sin({0})", "{0} * {0}"]
            parts = ["{0}.sum()", "({0} * {0}).sum()", "cr.sin({0}).sum()", "{0}.mean()"]
            result, shape = self.one(parts if out.shape else whole), ()
        self.depends[name] = self.depends[out.name] - mine
        return Fn(name, ps, tuple(ln for ln in lines if ln), result, (out.name,)), shape

    def block(self, count: int) -> tuple[Line, ...]:
        """Lines of a with-block; their results stay alive after it."""
        self.depth += 1
        lines = [self.line() for _ in range(count)]
        self.depth -= 1
        return tuple(ln for ln in lines if ln)

    # -- lines

    def line(self) -> Line | None:
        """One more line, or None when nothing fits after a few tries."""
        from .tables import FAMILIES

        families = [f for f in FAMILIES if self.depth < self.max_depth or not f.nests]
        total = sum(f.weight for f in families)
        for _ in range(6):
            k = self.choose(total)
            for family in families:
                k -= family.weight
                if k < 0:
                    break
            made = self.one(family.makers)(self)
            if made is not None:
                made = replace(made, kind=f"{family.name}/{made.kind}")
                self._note(made)
                if not made.body:
                    self.scopes[-1].vars.extend(made.outs)
                return made
        return None

    def _note(self, line: Line) -> None:
        of = frozenset().union(*(self.depends[a] for a in line.args))
        if line.fn:
            of |= self.depends[line.fn.name]
        if "const" in line.marks:
            of = frozenset()
        for v in line.outs:
            self.depends[v.name] = of
        if "write" in line.marks:
            for a in line.args:
                self.depends[a] |= of
        if "no_grad" in line.marks:
            for inner in line.body:
                for v in inner.outs:
                    self.depends[v.name] = frozenset()


def draw(choose: Callable[[int], int], seed: int = 0, max_lines: int = 8) -> Program:
    """A program whose choices are all made by `choose`."""
    m = Maker(choose)
    shape = m.one(INPUTS)
    x = Var("x", shape, 0)
    m.home[0] = 0
    m.readonly.add(0)
    m.scopes[0].vars.append(x)
    lines: list[Line] = []
    for _ in range(3 + choose(max_lines - 2)):
        made = m.line()
        if made is not None:
            lines.append(made)
    alive = m.scopes[0].vars
    returns = [next((v.name for v in reversed(alive[1:]) if m.depends[v.name]), alive[-1].name)]
    for v in reversed(alive[1:]):
        if len(returns) < 3 and v.name not in returns and choose(2):
            returns.append(v.name)
    return Program(shape, tuple(lines), tuple(returns), seed)


def from_seed(seed: int) -> Program:
    """The program that a seed stands for."""
    rng = random.Random(seed)
    # Not randrange: a third of the time of drawing would go there.
    return draw(lambda n: int(rng.random() * n), seed)
