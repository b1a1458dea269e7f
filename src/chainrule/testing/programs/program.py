"""A program: statements over named tensors of known shapes, and the two texts that it stands for.

`source("chainrule")` is what a person would write, and runs on PyTorch too when the import says so. `source("judge")` says
the same in words that need no grad mode: `cut(e)` for what has no derivative, `ng(e)` for what has none in reverse mode.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace

Shape = tuple[int, ...]

HEADER = """\
import numpy as np
import {lib} as cr
from {lib} import autograd, func, nn
from {lib}.autograd import forward_ad
from {lib}.nn import functional as F
from {lib}.utils.checkpoint import checkpoint
"""


@dataclass(frozen=True)
class Var:
    """A tensor by name; `root` names the memory that it shares with its views."""

    name: str
    shape: Shape
    root: int


@dataclass(frozen=True)
class Fn:
    """A function defined in the program: parameters, lines, and the expression that it returns."""

    name: str
    params: tuple[Var, ...]
    body: tuple[Line, ...]
    result: str
    args: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """One statement. In its text, `{0}`, `{1}` are the arguments, `{o}`, `{p}` the results, `{f}` the function."""

    kind: str
    text: str
    args: tuple[str, ...] = ()
    outs: tuple[Var, ...] = ()
    fn: Fn | None = None
    body: tuple[Line, ...] = ()
    judge: str | None = None
    marks: frozenset[str] = frozenset()

    def names(self) -> dict[str, str]:
        return {key: v.name for key, v in zip("opq", self.outs)} | ({"f": self.fn.name} if self.fn else {})


@dataclass(frozen=True)
class Program:
    """Lines over the input `x`; the program returns the tensors named in `returns`."""

    shape: Shape
    lines: tuple[Line, ...]
    returns: tuple[str, ...]
    seed: int

    @functools.cached_property
    def body(self) -> str:
        return self._body(judge=False)

    def _body(self, judge: bool) -> str:
        rows = list(render(self.lines, judge))
        rows.append(f"return {', '.join(self.returns)},")
        return "def program(x):\n" + textwrap.indent("\n".join(rows), "    ") + "\n"

    def text(self, judge: bool = False) -> str:
        """The function alone, as it is run."""
        return self._body(True) if judge else self.body

    def source(self, lib: str = "chainrule") -> str:
        """The function with its imports: paste it, and call it with a float64 tensor."""
        return HEADER.format(lib=lib) + f"\n# x: float64, shape {self.shape}, seed {self.seed}\n" + self.body

    @functools.cached_property
    def marks(self) -> frozenset[str]:
        return frozenset(m for line in walk(self.lines) for m in line.marks)

    @functools.cached_property
    def kinds(self) -> tuple[str, ...]:
        return tuple(line.kind for line in walk(self.lines))

    def with_lines(self, lines: tuple[Line, ...], returns: tuple[str, ...] | None = None) -> Program:
        return replace(self, lines=lines, returns=self.returns if returns is None else returns)


def walk(lines: tuple[Line, ...]) -> Iterator[Line]:
    """All statements, those inside functions and blocks after the statement that holds them."""
    for line in lines:
        yield line
        yield from walk(line.body)
        if line.fn:
            yield from walk(line.fn.body)


def render(lines: tuple[Line, ...], judge: bool) -> Iterator[str]:
    """The text of statements, row by row. Lines that enable grad inside no_grad come last in their block."""
    for line in lines:
        if line.fn:
            yield f"def {line.fn.name}({', '.join(p.name for p in line.fn.params)}):"
            inner = [*render(line.fn.body, judge), "return " + line.fn.result.format(*line.fn.args)]
            yield textwrap.indent("\n".join(inner), "    ")
        if line.body and judge:
            plain = tuple(ln for ln in line.body if "enable_grad" not in ln.marks)
            yield from render(plain, judge)
            if "no_grad" in line.marks:
                word = "cut" if "inference" in line.text else "ng"
                yield from (f"{v.name} = {word}({v.name})" for ln in plain for v in ln.outs)
            yield from render(line.body[len(plain) :], judge)
            continue
        text = line.judge if judge and line.judge is not None else line.text
        if text:
            yield text.format(*line.args, **line.names())
        if line.body:
            yield textwrap.indent("\n".join(render(line.body, judge)), "    ")
