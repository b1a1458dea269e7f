"""Random programs of views, writes and ops, as Python source that runs on any library with PyTorch's names.

A program is a function body over tensors `t0, t1, …`: inputs first, then whatever the lines bind. The same text runs
with `lib=torch` and `lib=chainrule`, so a failing program is a reproduction that can be pasted into a prompt.

While it is being drawn, a program runs line by line on PyTorch: this tells the shapes, and a line that PyTorch refuses
(a reshape as a view that has no strides, say) is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

MAX_ELEMENTS = 64


@dataclass(frozen=True)
class Program:
    """Lines over inputs `t0 … t{len(shapes)-1}`; running it returns every tensor that is alive at the end."""

    shapes: tuple[tuple[int, ...], ...]
    lines: tuple[str, ...]
    names: tuple[str, ...]
    seed: int

    @cached_property
    def source(self) -> str:
        inputs = [f"t{i}" for i in range(len(self.shapes))]
        body = [f"{name} = {name}.clone()" for name in inputs] + list(self.lines)
        text = "\n".join(f"    {line}" for line in body)
        return f"def program(lib, {', '.join(inputs)}):\n{text}\n    return ({', '.join(self.names)},)\n"

    def __repr__(self) -> str:
        return f"# inputs: normal, seed {self.seed}, shapes {self.shapes}\n{self.source}"

    def on(self, lib: Any) -> Callable[..., tuple[Any, ...]]:
        """The program as a function of its inputs, on one library."""
        namespace: dict[str, Any] = {}
        exec(compile(self.source, "<program>", "exec"), namespace)
        return lambda *inputs: namespace["program"](lib, *inputs)

    def inputs(self, batch: int | None = None) -> list[np.ndarray]:
        """float64 inputs of the program's shapes; with `batch`, that many of each, stacked in front."""
        rng = np.random.default_rng(self.seed)
        return [rng.standard_normal(shape if batch is None else (batch, *shape)) for shape in self.shapes]

    def weights(self, outputs: Sequence[Any]) -> list[np.ndarray]:
        """A fixed cotangent of about unit size for each output, no two alike."""
        return [np.cos(np.arange(np.prod(o.shape)) + i).reshape(tuple(o.shape)) for i, o in enumerate(outputs)]


class _Writer:
    """Draws lines, runs each on PyTorch, keeps those that PyTorch accepts."""

    def __init__(self, shapes: tuple[tuple[int, ...], ...], seed: int) -> None:
        self.random = Random(seed)
        self.shapes = shapes
        self.seed = seed
        self.lines: list[str] = []
        self.names = [f"t{i}" for i in range(len(shapes))]
        self.space: dict[str, Any] = {"lib": torch}
        rng = np.random.default_rng(seed)
        for name, shape in zip(self.names, shapes):
            self.space[name] = torch.from_numpy(rng.standard_normal(shape)).clone()

    def finish(self) -> Program:
        return Program(self.shapes, tuple(self.lines), tuple(self.names), self.seed)

    # what can be drawn

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def choice(self, options: Sequence[Any]) -> Any:
        return self.random.choice(list(options))

    def tensor(self, want: Callable[[torch.Tensor], bool] = lambda t: True) -> str | None:
        """The name of a live tensor that fulfils a wish, or None."""
        fitting = [n for n in self.names if want(self.space[n])]
        return self.choice(fitting) if fitting else None

    def constant(self) -> float:
        # Nothing near zero and nothing that the values of a program hit exactly: no program sits on a kink.
        return self.choice([0.37, -0.53, 1.3, -1.7, 2.1])

    def dim(self, t: torch.Tensor) -> int:
        return self.integer(-t.dim(), t.dim() - 1)

    def index(self, shape: Sequence[int], *, advanced: bool, distinct: bool = False) -> str:
        """What stands between the brackets of `t[...]`: ints, slices with steps, None, Ellipsis, lists, fixed masks.

        A list to be written to has no place twice: PyTorch leaves open which value wins.
        """
        parts, ellipsis, lists = [], False, False
        for size in shape:
            kinds = ["all", "slice", "slice"] + (["int"] if size else [])
            if not ellipsis:
                kinds.append("ellipsis")
            if advanced and size and not lists:
                kinds += ["list", "mask"]
            kind = self.choice(kinds)
            if kind == "all":
                parts.append(":")
            elif kind == "slice":
                start, stop = sorted((self.integer(0, size), self.integer(0, size)))
                low = str(start - size) if start < size and self.integer(0, 3) == 0 else str(start)
                parts.append(f"{low}:{max(stop, start)}:{self.choice([1, 1, 2])}" if stop > start else f"{low}:")
            elif kind == "int":
                parts.append(str(self.integer(-size, size - 1)))
            elif kind == "list":
                lists = True
                places = {k % size: k for k in (self.integer(-size, size - 1) for _ in range(self.integer(1, 3)))}
                parts.append(
                    f"lib.tensor({list(places.values())})"
                    if distinct
                    else f"lib.tensor({[*places.values(), *places.values()][:3]})"
                )
            elif kind == "mask":
                lists = True
                parts.append(f"lib.tensor({[bool(self.integer(0, 1)) for _ in range(size)]})")
            else:
                ellipsis = True
                parts.append("...")
                break
            if self.integer(0, 7) == 0:
                parts.append("None")
        return ", ".join(parts) or "..."

    def value(self, target: torch.Tensor, owner: torch.Tensor) -> str:
        """Something that may be written to `target`: a number, or a live tensor that broadcasts to its shape.

        A source in the memory of `owner` is copied: what an overlapping write gives is not defined in PyTorch.
        """

        def fits(u: torch.Tensor) -> bool:
            tail = target.shape[target.dim() - u.dim() :] if u.dim() <= target.dim() else None
            return tail is not None and all(m in (1, n) for m, n in zip(u.shape, tail))

        def shared(u: torch.Tensor) -> bool:
            return u.untyped_storage().data_ptr() == owner.untyped_storage().data_ptr()

        name = self.tensor(lambda u: fits(u) and not shared(u)) if self.integer(0, 3) else None
        if name is not None:
            return name
        # A constant over the whole of a tensor wipes it out, and with it what there is to differentiate.
        name = self.tensor(fits) if self.integer(0, 1) or target.numel() == owner.numel() else None
        return str(self.constant()) if name is None else f"({name} * {self.constant()})"

    # what a line can be

    def view(self) -> str | None:
        name = self.tensor()
        t = self.space[name]
        kind = self.choice(_VIEWS_0D if t.dim() == 0 else _VIEWS)
        if kind == "index":
            return f"{name}[{self.index(t.shape, advanced=False)}]"
        if kind == "gather":
            return f"{name}[{self.index(t.shape, advanced=True)}]"
        if kind == "unsqueeze":
            return f"{name}.unsqueeze({self.integer(-t.dim() - 1, t.dim())})"
        if kind == "expand":
            shape = [2 if n == 1 and self.integer(0, 1) else n for n in t.shape]
            return f"{name}.expand({self.choice([[], [2]]) + shape})"
        if kind == "reshape":
            return f"{name}.{self.choice(['reshape', 'view'])}({_other_shape(self, t.shape)})"
        d = self.dim(t)
        size = t.shape[d]
        if kind == "select":
            return f"{name}.select({d}, {self.integer(-size, size - 1)})" if size else None
        if kind == "narrow":
            start = self.integer(0, size)
            return f"{name}.narrow({d}, {start}, {self.integer(0, size - start)})"
        if kind == "transpose":
            return f"{name}.{self.choice(['transpose', 'swapaxes'])}({d}, {self.dim(t)})"
        if kind == "permute":
            return f"{name}.permute({self.random.sample(range(t.dim()), t.dim())})"
        if kind == "movedim":
            return f"{name}.movedim({d}, {self.dim(t)})"
        if kind == "squeeze":
            return f"{name}.squeeze({self.choice(['', str(d)])})"
        if kind == "flatten":
            low, high = sorted((self.integer(0, t.dim() - 1), self.integer(0, t.dim() - 1)))
            return f"{name}.flatten({low}, {high})"
        if kind == "diagonal":
            e = self.dim(t)
            return f"{name}.diagonal({self.integer(-1, 1)}, {d}, {e})"
        if not size:
            return None
        if kind == "unbind":
            return f"{name}.unbind({d})[{self.integer(0, size - 1)}]"
        n = self.integer(1, size)
        pieces = len(t.chunk(n, d) if kind == "chunk" else t.split(n, d))
        return f"{name}.{kind}({n}, {d})[{self.integer(0, pieces - 1)}]"

    def write(self) -> str | None:
        name = self.tensor(lambda t: not _overlaps(t))
        if name is None:
            return None
        t = self.space[name]
        kind = self.choice(_WRITES)
        if kind in ("add_", "sub_", "mul_", "copy_"):
            v = self.value(t, t)
            if kind == "copy_" and "t" not in v:
                return f"{name}.fill_({v})"
            alpha = ", alpha=0.7" if kind in ("add_", "sub_") and self.integer(0, 3) == 0 else ""
            return f"{name}.{kind}({v}{alpha})"
        if kind == "operator":
            return f"{name} {self.choice(['+=', '-=', '*='])} {self.value(t, t)}"
        if kind == "div_":
            return f"{name}.div_({self.constant()})"
        if kind in ("fill_", "zero_") and t.numel() == t.untyped_storage().nbytes() // t.element_size():
            return None  # wiping a tensor with all its views leaves little to differentiate
        if kind == "fill_":
            return f"{name}.fill_({self.constant()})"
        if kind in ("zero_", "neg_", "tanh_"):
            return f"{name}.{kind}()"
        if kind == "clamp_":
            return f"{name}.clamp_({self.choice(['-0.53, 0.37', 'min=-0.53', 'max=0.37'])})"
        if kind == "setmask":
            return f"{name}[{name} > {self.choice([0.37, 1.3])}] = {self.constant()}"
        if kind == "masked_fill_":
            return f"{name}.masked_fill_({name} < {self.choice([-0.53, -1.7])}, {self.constant()})"
        if kind == "setitem":
            index = self.index(t.shape, advanced=self.integer(0, 2) == 0, distinct=True)
            part = eval(f"t[{index}]", {"t": t, "lib": torch})
            return f"{name}[{index}] = {self.value(part, t)}"
        if not t.dim() or not t.shape[0]:
            return None
        size = t.shape[0]
        # Without accumulation, repeated indices leave it open which value wins: draw them without repetition.
        accumulate = bool(self.integer(0, 1))
        count = self.integer(1, 3) if accumulate else self.integer(1, min(3, size))
        where = self.random.choices(range(size), k=count) if accumulate else self.random.sample(range(size), count)
        v = self.value(t[torch.tensor(where)], t)
        v = v if "t" in v else f"lib.tensor({v}, dtype=lib.float64)"
        return f"{name}.index_put_((lib.tensor({where}),), {v}, accumulate={accumulate})"

    def compute(self) -> str | None:
        name = self.tensor()
        t = self.space[name]
        kind = self.choice(_OPS)
        if kind in ("tanh", "sin", "exp"):
            return f"lib.{kind}({f'-({name} * {name})' if kind == 'exp' else name})"
        if kind == "clone":
            return f"{name}.{self.choice(['clone', 'contiguous'])}()"
        if kind == "scale":
            return f"{self.constant()} {self.choice(['*', '-', '+'])} {name}"
        if kind in ("add", "sub", "mul", "div", "where"):
            other = self.tensor(lambda u: _broadcast(t.shape, u.shape))
            if kind == "div":
                return f"{name} / ({other} * {other} + 1)"
            if kind == "where":
                return f"lib.where({name} > {self.constant()}, {name}, {self.choice([other, self.constant()])})"
            return f"{name} {_SIGNS[kind]} {other}"
        if kind == "matmul":
            left = self.tensor(lambda u: u.dim() == 2)
            right = left and self.tensor(lambda u: u.dim() in (1, 2) and u.shape[0] == self.space[left].shape[1])
            return f"{left} @ {right}" if right else None
        if kind == "stack":
            other = self.tensor(lambda u: u.shape == t.shape)
            return f"lib.stack([{name}, {other}], {self.integer(-t.dim() - 1, t.dim())})"
        if t.dim() == 0:
            return None
        d = self.dim(t)
        if kind == "cat":
            other = self.tensor(lambda u: u.dim() == t.dim() and _without(u.shape, d) == _without(t.shape, d))
            return f"lib.cat([{name}, {other}], {d})"
        if kind in ("sum", "mean"):
            if kind == "mean" and not t.shape[d]:
                return None
            return f"{name}.{kind}({self.choice([f'{d}', f'{d}, keepdim=True'] + ([''] if t.numel() else []))})"
        if kind == "flip":
            return f"{name}.flip({d})"
        return f"{name}.cumsum({d})"

    def step(self, seed: int) -> None:
        """Adds one line, or none when what was drawn does not fit; a step that matters not shrinks to 0, no line."""
        if seed == 0:
            return
        self.random = Random(seed + 7919 * len(self.lines))
        form = self.choice(["view", "view", "write", "write", "write", "compute"])
        text = getattr(self, form)()
        if text is None:
            return
        name = f"t{len(self.names)}"
        line = text if form == "write" else f"{name} = {text}"
        try:
            exec(line, self.space)
        except (RuntimeError, IndexError, ValueError):
            return  # PyTorch refuses it; a refused in-place call has written nothing
        if form != "write":
            t = self.space[name]
            if t.numel() > MAX_ELEMENTS or t.dim() > 5:
                return
            self.names.append(name)
        self.lines.append(line)
        self._calm()

    def _calm(self) -> None:
        # Products of products overflow; a tensor that grew is scaled down by a line of the program.
        for name in self.names:
            t = self.space[name]
            if t.numel() and not _overlaps(t) and t.abs().max() > 50:
                self.lines.append(f"{name}.mul_(0.01)")
                exec(self.lines[-1], self.space)


_SIGNS = {"add": "+", "sub": "-", "mul": "*"}
_VIEWS_0D = ["unsqueeze", "expand", "index", "reshape"]
_VIEWS = (
    "index index index select narrow transpose permute movedim reshape reshape flatten expand diagonal squeeze "
    "unsqueeze unbind chunk split gather"
).split()
_WRITES = (
    "add_ add_ sub_ mul_ mul_ copy_ operator operator div_ fill_ zero_ neg_ tanh_ clamp_ setmask masked_fill_ "
    "setitem setitem setitem setitem index_put_ index_put_"
).split()
_OPS = "tanh sin exp clone scale add sub mul mul div where matmul stack cat sum mean flip cumsum".split()


def _overlaps(t: torch.Tensor) -> bool:
    """Whether several elements share memory, as after `expand`: writing there has no defined meaning."""
    return any(stride == 0 and size > 1 for stride, size in zip(t.stride(), t.shape))


def _broadcast(a: Sequence[int], b: Sequence[int]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1]))


def _without(shape: Sequence[int], d: int) -> list[int]:
    sizes = list(shape)
    del sizes[d]
    return sizes


def _other_shape(w: _Writer, shape: Sequence[int]) -> list[int]:
    """Another shape with as many elements, one size perhaps left to be worked out (-1)."""
    total = int(np.prod(shape))
    options = [[total], [-1]] + [[k, total // k] for k in (1, 2, 3, 4, 6) if total and total % k == 0]
    options += [[k, -1] for k in (2, 3) if total and total % k == 0] + (
        [[2, total // 4, 2]] if total and total % 4 == 0 else []
    )
    return w.choice(options)


def build(shapes: tuple[tuple[int, ...], ...], seed: int, steps: Sequence[int]) -> Program:
    """The program that these numbers stand for: one step each, whose choices all follow from its number."""
    writer = _Writer(shapes, seed)
    for step in steps:
        writer.step(step)
    return writer.finish()


SHAPES = [(3,), (2, 3), (3, 3), (2, 1, 3), (4, 2), (3, 2, 2), (1, 4), (), (2, 3, 4), (1,)]


def programs(max_lines: int = 14) -> st.SearchStrategy[Program]:
    """Programs of up to `max_lines` lines over one or two inputs of up to three dimensions.

    A step is drawn as one number, so that the examples are as varied as the random choices behind it, and a failing
    program shrinks by losing lines.
    """
    shapes = st.lists(st.sampled_from(SHAPES), min_size=1, max_size=2).map(tuple)
    steps = st.lists(st.integers(0, 2**32 - 1), min_size=6, max_size=max_lines)
    return st.builds(build, shapes, st.integers(0, 10_000), steps)
