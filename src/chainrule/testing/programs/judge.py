"""The judge: the program on PyTorch's plain tensors, where a transform is a loop or a derivative of a scalar.

`grad`, `jvp`, `hessian`, … are written here with nothing but PyTorch's reverse mode, `vmap` is a loop. What has no
derivative is held fixed: its value is noted on the first run and returned on every later one, so that central
differences of the program, and of its gradient, are those of the function that is meant. Saved tensors are copied, so that
writes never stand in the way of a derivative.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .program import Program

torch.set_num_threads(1)


class NoOracle(Exception):
    """The judge cannot say what is right."""


# -- transforms, spelled out ------------------------------------------------------------------------------------------


def _fresh(x: Any) -> Any:
    y = x.clone()
    return y if y.requires_grad else y.requires_grad_()


def _pull(y: Any, x: Any, g: Any) -> Any:
    if not y.requires_grad:
        return torch.zeros_like(x)
    (r,) = torch.autograd.grad(y, x, g, create_graph=True, allow_unused=True)
    return torch.zeros_like(x) if r is None else r.clone(memory_format=torch.contiguous_format)


def _tuple(y: Any) -> tuple[Any, ...]:
    return y if isinstance(y, tuple) else (y,)


def vjp(f: Callable[..., Any], *xs: Any, has_aux: bool = False) -> Any:
    us = [_fresh(x) for x in xs]
    y = f(*us)
    if has_aux:
        y, aux = y

    def pull(g: Any) -> Any:
        return tuple(sum(_pull(a, u, b) for a, b in zip(_tuple(y), _tuple(g))) for u in us)

    return (y, pull, aux) if has_aux else (y, pull)


def grad_and_value(f: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Any:
    def run(*xs: Any) -> Any:
        nums = _tuple(argnums)
        full = list(xs)
        for i in nums:
            full[i] = _fresh(xs[i])
        y = f(*full)
        y, aux = y if has_aux else (y, None)
        gs = tuple(_pull(y, full[i], torch.ones_like(y)) for i in nums)
        g = gs[0] if isinstance(argnums, int) else gs
        return (g, (y, aux)) if has_aux else (g, y)

    return run


def grad(f: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Any:
    def run(*xs: Any) -> Any:
        g, y = grad_and_value(f, argnums, has_aux)(*xs)
        return (g, y[1]) if has_aux else g

    return run


def _push(y: Any, s: Any) -> Any:
    """dy/ds for a number s: the derivative of the pullback, which is linear, in the cotangent."""
    c = torch.full_like(y, 0.7).requires_grad_()
    return _pull(_pull(y, s, c), c, torch.ones_like(s))


def jacrev(f: Callable[..., Any], argnums: int = 0) -> Any:
    def run(*xs: Any) -> Any:
        full = list(xs)
        u = full[argnums] = _fresh(xs[argnums])
        y = f(*full)
        rows = [_pull(e, u, torch.ones_like(e)) for e in y.reshape(-1)]
        return torch.stack(rows).reshape((*y.shape, *u.shape))

    return run


def vmap(f: Callable[..., Any], in_dims: Any = 0, out_dims: int = 0, chunk_size: int | None = None) -> Any:
    def run(*xs: Any) -> Any:
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(xs)
        n = next(x.shape[d] for x, d in zip(xs, dims) if d is not None)
        rows = [f(*[x if d is None else x.select(d, i) for x, d in zip(xs, dims)]) for i in range(n)]
        if isinstance(rows[0], tuple):
            return tuple(torch.stack(list(c), out_dims) for c in zip(*rows))
        return torch.stack(rows, out_dims)

    return run


def _checkpoint(f: Callable[..., Any], *xs: Any, **kw: Any) -> Any:
    return f(*xs)


# -- one run of a program ---------------------------------------------------------------------------------------------


class Notes:
    """Values of what has no derivative, in the order in which the program meets them."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.at = 0
        self.replay = False

    def again(self) -> None:
        self.at, self.replay = 0, True

    def cut(self, v: Any) -> Any:
        if not self.replay:
            self.values.append(v.detach().clone())
            return v.detach()
        self.at += 1
        return self.values[self.at - 1].clone()


class Run:
    """What the judge's text of a program refers to.

    Forward mode is the derivative with respect to a number s of f(x + s t) at s = 0. This tells `cut`, which holds
    for both modes, from `ng` (no_grad, and gradients without create_graph), which cuts reverse mode alone: of what it
    cuts, the dependence on each s stays.
    """

    def __init__(self, cuts: Notes, modes: Notes | None) -> None:
        self.cuts, self.modes = cuts, modes
        self.numbers: list[Any] = []

    def cut(self, v: Any) -> Any:
        return self.cuts.cut(v)

    def ng(self, v: Any) -> Any:
        return self._ng(v, self.numbers)

    def _ng(self, v: Any, numbers: list[Any]) -> Any:
        if not numbers:
            return v.detach() if self.modes is None else self.modes.cut(v)
        *others, s = numbers
        return self._ng(v, others) + self._ng(_push(v, s), others) * s

    def jvp(self, f: Callable[..., Any], primals: Any, tangents: Any) -> Any:
        s = torch.zeros((), dtype=torch.float64, requires_grad=True)
        self.numbers.append(s)
        y = f(*[x + s * t for x, t in zip(primals, tangents)])
        ts = tuple(_push(v, s) for v in _tuple(y))
        self.numbers.pop()
        return y, ts if isinstance(y, tuple) else ts[0]

    def jacfwd(self, f: Callable[..., Any], argnums: int = 0) -> Any:
        def run(x: Any, *rest: Any) -> Any:
            columns = []
            for k in range(x.numel()):
                e = torch.zeros(x.numel(), dtype=x.dtype)
                e[k] = 1
                columns.append(self.jvp(lambda u: f(u, *rest), (x,), (e.reshape(x.shape),))[1])
            return torch.stack(columns, -1).reshape((*columns[0].shape, *x.shape))

        return run

    def hessian(self, f: Callable[..., Any]) -> Any:
        return self.jacfwd(jacrev(f))

    def space(self) -> dict[str, Any]:
        func = types.SimpleNamespace(
            grad=grad, grad_and_value=grad_and_value, vjp=vjp, jvp=self.jvp, jacrev=jacrev, jacfwd=self.jacfwd,
            hessian=self.hessian, vmap=vmap, functional_call=torch.func.functional_call,
        )  # fmt: skip
        return {
            "cr": torch, "func": func, "autograd": torch.autograd, "nn": torch.nn, "F": torch.nn.functional,
            "checkpoint": _checkpoint, "cut": self.cut, "ng": self.ng,
        }  # fmt: skip


class Judge:
    """A program's value and derivatives at points, as they should be."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.code = compile(program.text(judge=True), "<judge>", "exec")


def loss(outputs: tuple[Any, ...], weights: list[Any]) -> Any:
    """One number: the sum of all outputs, no two elements weighted alike."""
    total = 0.0
    for o, w in zip(outputs, weights):
        total = total + (o * w).sum()
    return total


@functools.cache
def weights_of(shapes: tuple[tuple[int, ...], ...]) -> list[np.ndarray]:
    return [np.cos(1.3 * np.arange(int(np.prod(s))) + i + 0.4).reshape(s) for i, s in enumerate(shapes)]


class Point:
    """Value and derivatives at one point."""

    step = 1e-3

    def __init__(self, judge: Judge, x: np.ndarray) -> None:
        self.judge, self.x = judge, x
        self.cuts, self.modes = Notes(), Notes()
        outputs, self.gradient = self._gradient(x, self.modes)
        self.outputs = [o.detach().numpy() for o in outputs]
        self.weights = weights_of(tuple(o.shape for o in self.outputs))
        self.switches = bool(self.modes.values)

    def _evaluate(self, x: Any, run: Run) -> tuple[Any, ...]:
        space = run.space()
        exec(self.judge.code, space)
        with (
            warnings.catch_warnings(),
            torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t),
        ):
            warnings.simplefilter("ignore")
            return space["program"](x)

    def _loss(self, x: Any, run: Run) -> Any:
        return self._sum(self._evaluate(x, run))

    def _sum(self, outputs: tuple[Any, ...]) -> Any:
        return loss(outputs, [torch.from_numpy(w) for w in weights_of(tuple(tuple(o.shape) for o in outputs))])

    def _gradient(self, x: np.ndarray, modes: Notes | None) -> tuple[tuple[Any, ...], np.ndarray]:
        leaf = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        outputs = self._evaluate(leaf, Run(self.cuts, modes))
        y = self._sum(outputs)
        return outputs, _pull(y, leaf, torch.ones_like(y)).detach().numpy()

    def _value(self, x: np.ndarray) -> float:
        self.cuts.again()
        self.modes.again()
        return float(self._loss(torch.tensor(x, dtype=torch.float64), Run(self.cuts, self.modes)).detach())

    def _difference(self, f: Callable[[np.ndarray], Any], t: np.ndarray) -> Any:
        """Central differences of fourth order; two step widths that disagree tell of a kink."""
        h = self.step
        near = (f(self.x + h * t) - f(self.x - h * t)) / (2 * h)
        far = (f(self.x + 2 * h * t) - f(self.x - 2 * h * t)) / (4 * h)
        if not np.allclose(near, far, rtol=1e-2, atol=1e-3 * (1 + np.abs(near).max())):
            raise NoOracle("central differences do not settle")
        return (4 * near - far) / 3

    def slope(self, t: np.ndarray) -> float:
        """d/dt of the value as reverse mode sees it, by central differences."""
        return float(self._difference(self._value, t))

    def tangent(self, t: np.ndarray) -> float:
        """d/dt of the value as forward mode sees it."""
        if not self.switches:
            return float((self.gradient * t).sum())
        self.cuts.again()
        run = Run(self.cuts, None)
        _, s = run.jvp(lambda x: self._loss(x, run), (torch.tensor(self.x),), (torch.tensor(t),))
        return float(s.detach())

    def curvature(self, t: np.ndarray, forward: bool = False) -> np.ndarray:
        """The derivative of the gradient along `t`, in reverse or forward mode, by central differences."""

        def gradient(x: np.ndarray) -> np.ndarray:
            self.cuts.again()
            self.modes.again()
            return self._gradient(x, None if forward else self.modes)[1]

        return self._difference(gradient, t)
