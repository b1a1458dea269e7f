"""The judge: the program on PyTorch's plain tensors, where a transform is a loop or a derivative of a scalar.

`grad`, `jvp`, `hessian`, … are written here with nothing but PyTorch's reverse mode on scalars, `vmap` is a loop. What has no derivative is held fixed:
`cut` notes the value on the first run and returns that note on every later one, so that central differences of the
program, and of its gradient, are those of the function that is meant. Saved tensors are copied, so that writes never
stand in the way of a derivative.
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
        total: list[Any] = []
        for u in us:
            total.append(sum(_pull(a, u, b) for a, b in zip(_tuple(y), _tuple(g))))
        return tuple(total)

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


def linearize(f: Callable[..., Any], *xs: Any) -> Any:
    """The tangent is the derivative of the pullback, which is linear, in the cotangent."""
    us = [_fresh(x) for x in xs]
    y = f(*us)

    def push(*ts: Any) -> Any:
        out = []
        for a in _tuple(y):
            c = torch.zeros_like(a).requires_grad_()
            total = torch.zeros_like(a)
            for u, t in zip(us, ts):
                total = total + _pull(_pull(a, u, c), c, t)
            out.append(total)
        return tuple(out) if isinstance(y, tuple) else out[0]

    return y, push


def jvp(f: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    y, push = linearize(f, *primals)
    return y, push(*tangents)


def jacrev(f: Callable[..., Any], argnums: int = 0) -> Any:
    def run(*xs: Any) -> Any:
        full = list(xs)
        u = full[argnums] = _fresh(xs[argnums])
        y = f(*full)
        rows = [_pull(e, u, torch.ones_like(e)) for e in y.reshape(-1)]
        return torch.stack(rows).reshape(*y.shape, *u.shape)

    return run


def hessian(f: Callable[..., Any]) -> Any:
    return jacrev(jacrev(f))


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


FUNC = types.SimpleNamespace(
    grad=grad, grad_and_value=grad_and_value, vjp=vjp, jvp=jvp, linearize=linearize, jacrev=jacrev, jacfwd=jacrev,
    hessian=hessian, vmap=vmap, functional_call=torch.func.functional_call,
)  # fmt: skip


# -- what is cut off --------------------------------------------------------------------------------------------------


class _Notes:
    """Values of what has no derivative, in the order in which the program meets them."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.at = 0
        self.replay = False

    def cut(self, v: Any) -> Any:
        if not self.replay:
            self.values.append(v.detach().clone())
            return v.detach()
        self.at += 1
        return self.values[self.at - 1].clone()


class Judge:
    """A program's value and derivatives at points, as they should be."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.code = compile(program.text(judge=True), "<judge>", "exec")
        self.cuts = "cut" in program.marks or "imp" in program.marks

    def function(self, notes: _Notes, imperative: bool) -> Callable[[Any], tuple[Any, ...]]:
        space: dict[str, Any] = {
            "cr": torch, "func": FUNC, "autograd": torch.autograd, "nn": torch.nn, "F": torch.nn.functional,
            "checkpoint": _checkpoint, "cut": notes.cut, "imp": notes.cut if imperative else lambda v: v,
        }  # fmt: skip
        exec(self.code, space)
        return space["program"]

    def run(self, x: np.ndarray, imperative: bool = False) -> Point:
        """Everything at the point `x`."""
        return Point(self, x, imperative)


def loss(outputs: tuple[Any, ...], weights: list[Any]) -> Any:
    total = 0.0
    for o, w in zip(outputs, weights):
        total = total + (o * w).sum()
    return total


@functools.cache
def _weights(shapes: tuple[tuple[int, ...], ...]) -> list[np.ndarray]:
    return [np.cos(1.3 * np.arange(int(np.prod(s))) + i + 0.4).reshape(s) for i, s in enumerate(shapes)]


class Point:
    """Value, gradient and Hessian times a direction, at one point."""

    step = 1e-3

    def __init__(self, judge: Judge, x: np.ndarray, imperative: bool) -> None:
        self.judge, self.x, self.imperative = judge, x, imperative
        self.notes = _Notes()
        outputs, g = self._gradient(x, first=True)
        self.outputs = [o.detach().numpy() for o in outputs]
        self.weights = _weights(tuple(o.shape for o in self.outputs))
        self.gradient = g

    def _evaluate(self, x: Any, first: bool) -> tuple[Any, ...]:
        self.notes.replay, self.notes.at = not first, 0
        f = self.judge.function(self.notes, self.imperative)
        with (
            warnings.catch_warnings(),
            torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t),
        ):
            warnings.simplefilter("ignore")
            return f(x)

    def _gradient(self, x: np.ndarray, first: bool = False) -> tuple[tuple[Any, ...], np.ndarray]:
        leaf = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        outputs = self._evaluate(leaf, first)
        weights = [torch.from_numpy(w) for w in _weights(tuple(tuple(o.shape) for o in outputs))]
        y = loss(outputs, weights)
        return outputs, _pull(y, leaf, torch.ones_like(y)).detach().numpy()

    def _value(self, x: np.ndarray) -> float:
        outputs = self._evaluate(torch.tensor(x, dtype=torch.float64), False)
        return float(loss(tuple(o.detach() for o in outputs), [torch.from_numpy(w) for w in self.weights]))

    def _difference(self, f: Callable[[np.ndarray], Any], t: np.ndarray) -> Any:
        """Central differences of fourth order; two step widths that disagree tell of a kink."""
        h = self.step
        near = (f(self.x + h * t) - f(self.x - h * t)) / (2 * h)
        far = (f(self.x + 2 * h * t) - f(self.x - 2 * h * t)) / (4 * h)
        if not np.allclose(near, far, rtol=1e-2, atol=1e-3 * (1 + np.abs(near).max())):
            raise NoOracle("central differences do not settle")
        return (4 * near - far) / 3

    def slope(self, t: np.ndarray) -> float:
        """d/dt of the value, by central differences."""
        return float(self._difference(self._value, t))

    def curvature(self, t: np.ndarray) -> np.ndarray:
        """The Hessian times `t`, by central differences of the gradient."""
        return self._difference(lambda x: self._gradient(x)[1], t)
