"""Jacobians, Hessians and products with them, in the style of ``torch.autograd.functional``.

``strict=True`` refuses results that do not depend on an input, where otherwise their derivative is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import func as F
from ..core import dtypes as dt
from ..core.dispatch import constant, grad_cut
from ..core.imperative import enable_grad, no_grad
from ..core.primitives import alias
from ..core.reverse import Leaf, Node
from ..core.shapes import zeros_like_tensor
from ..core.tensor import Tensor
from ..core.walk import reachable


def _tensors(name: str, what: str, x: Any) -> tuple[tuple[Any, ...], bool]:
    """One tensor or several as a tuple, and whether there were several."""
    many = isinstance(x, tuple | list)
    xs = tuple(x) if many else (x,)
    for i, v in enumerate(xs):
        if not isinstance(v, Tensor):
            kind = f"{what} must be either a Tensor or a tuple of Tensors"
            raise TypeError(
                f"{name}: The {kind}, but the value at index {i} has type {type(v)}."
                if many
                else f"{name}: The {kind}, but the given value has type {type(v)}."
            )
    return xs, many


def _vectors(name: str, v: Any, like: tuple[Any, ...], many: bool) -> tuple[Any, ...]:
    """The vectors of a product, one for each of the tensors `like`."""
    vs, _ = _tensors(name, f"v given to {name}", v)
    if len(vs) != len(like):
        if many:
            raise RuntimeError(f"{name}: v is a tuple of invalid length: should be {len(like)} but got {len(vs)}.")
        raise RuntimeError(f"{name}: The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(vs, like, strict=True)):
        if a.shape != b.shape:
            raise RuntimeError(f"{name}: v has invalid size: should be {b.shape} but got {a.shape} (entry {i}).")
    return vs


class _Run:
    """A function run once on variables of its own: its results, their tape, and what they depend on."""

    def __init__(self, name: str, f: Callable[..., Any], inputs: Any, strict: bool, create_graph: bool) -> None:
        self.name, self.f, self.strict, self.create_graph = name, f, strict, create_graph
        self.xs, self.many = _tensors(name, f"inputs given to {name}", inputs)
        if create_graph:  # what is handed out has a history, whether or not the caller's inputs have one
            ask = lambda x: x if x.requires_grad or x.dtype.category < dt.FLOAT else alias(x).requires_grad_()
            self.xs = tuple(ask(x) for x in self.xs)

    def outputs(self, y: Any) -> tuple[tuple[Any, ...], bool]:
        """The results of the function, which must be tensors."""
        return _tensors(self.name, f"outputs of the user-provided function given to {self.name}", y)

    def one(self, y: Any) -> None:
        """Refuse results that are not one number."""
        ys, _ = self.outputs(y)
        if len(ys) != 1:
            raise RuntimeError(f"{self.name}: The function given to {self.name} should return a single Tensor")
        if ys[0].numel() != 1:
            raise RuntimeError(
                f"{self.name}: The Tensor returned by the function given to {self.name} should contain a single element"
            )

    def check(self, f: Callable[..., Any], order: int = 1) -> None:
        """With strict=True: every result depends on every input, and so do the gradients for products with second derivatives."""
        if not self.strict:
            return
        with enable_grad():
            leaves = [x.detach().requires_grad_() for x in self.xs]
            ys, _ = self.outputs(f(*leaves))
            self._depends(
                ys,
                leaves,
                "Output {} of the user-provided function",
                "The output of the user-provided function is independent of input {}"
                if self.name != "hessian"
                else "The jacobian of the user-provided function with respect to input {0} is independent of input {0}",
            )
            if order == 2 or self.create_graph:
                from ..core.imperative import grad

                total = sum(((y.real if y.is_complex() else y) * 1.0).sum() for y in ys)
                gs = grad(total, leaves, create_graph=True, allow_unused=True)
                for i, g in enumerate(gs):
                    if g is None or not g.requires_grad or _leaf(leaves[i]) not in _behind(g):
                        raise RuntimeError(
                            f"{self.name}: The jacobian of the user-provided function with respect to input {i} is independent of the input, "
                            f"that is: the jacobian of the user-provided function is independent of input {i}. This is not allowed in strict mode."
                        )

    def _depends(self, ys: Any, leaves: Any, where: str, message: str) -> None:
        for k, y in enumerate(ys):
            if not y.requires_grad:
                raise RuntimeError(
                    f"{self.name}: {where.format(k)} does not require gradients. The outputs must be computed in a differentiable manner from the "
                    f"input when running in strict mode."
                )
            behind = _behind(y)
            for i, x in enumerate(leaves):
                if _leaf(x) not in behind:
                    raise RuntimeError(
                        f"{self.name}: {message.format(i)}. (Output {k} of the user-provided function is independent of input {i}.) "
                        f"This is not allowed in strict mode."
                    )

    def result(self, x: Any) -> Any:
        """What is handed out: with its history only where that was asked for."""
        if isinstance(x, tuple | list):
            return tuple(self.result(v) for v in x)
        return x if self.create_graph else constant(x, grad_cut(False))

    def mode(self) -> Any:
        """The recording that the results are made under."""
        return enable_grad() if self.create_graph else no_grad()


def _leaf(x: Tensor) -> Leaf:
    return x._aux


def _behind(y: Tensor) -> set[Node]:
    return set(reachable([y._aux]))


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``(f(x), v^T J(x))``; v may be left out for a scalar output."""
    run = _Run("vjp", func, inputs, strict, create_graph)
    run.check(func)
    with run.mode():
        y, pull = F.vjp(_tupled(run), *run.xs)
        ys, many = run.outputs(y)
        if v is None:
            if len(ys) != 1 or ys[0].numel() != 1:
                raise RuntimeError(
                    "vjp: The vector v can only be None if the user-provided function returns a single Tensor with a single element."
                )
            vs: tuple[Any, ...] = (zeros_like_tensor(ys[0]) + 1,)
        else:
            vs = _vectors("vjp", v, ys, many)
        g = pull(vs if many else vs[0])
        g = g if isinstance(g, tuple) else (g,)
    return run.result(y), run.result(g if run.many else g[0])


def _tupled(run: _Run) -> Callable[..., Any]:
    """The function of a run with its results checked, and lists of them made tuples."""

    def f(*xs: Any) -> Any:
        y = run.f(*xs)
        run.outputs(y)
        return tuple(y) if isinstance(y, list) else y

    return f


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``(f(x), J(x) v)``; v may be left out for an input with a single element."""
    run = _Run("jvp", func, inputs, strict, create_graph)
    if v is None:
        if len(run.xs) != 1 or run.xs[0].numel() != 1:
            raise RuntimeError(
                "jvp: The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
            )
        vs: tuple[Any, ...] = (zeros_like_tensor(run.xs[0]) + 1,)
    else:
        vs = _vectors("jvp", v, run.xs, run.many)
    run.check(func)

    with run.mode():
        y, t = F.jvp(_tupled(run), run.xs, vs)
    return run.result(y), run.result(t)


def _strategy(name: str, strategy: str, strict: bool, vectorize: bool, what: str) -> Callable[..., Any]:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise ValueError(f"{name}: Expected {what} to be either 'forward-mode' or 'reverse-mode', got {strategy!r}.")
    if strict and vectorize:
        raise RuntimeError(
            f"{name}: `strict=True` and `vectorize=True` are not supported together: set one of them to False."
        )
    if strategy == "forward-mode":
        if strict:
            raise RuntimeError(f"{name}: `strict=True` and {what}='forward-mode' are not supported together.")
        return F.jacfwd
    return F.jacrev


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
             strategy: str = "reverse-mode") -> Any:  # fmt: skip
    """``J(x)``: a tensor, or tuples over outputs and inputs where there are several. It is always computed for all rows at once."""
    run = _Run("jacobian", func, inputs, strict, create_graph)
    make = _strategy("jacobian", strategy, strict, vectorize, "strategy")
    run.check(func)

    with run.mode():
        return run.result(make(_tupled(run), tuple(range(len(run.xs))) if run.many else 0)(*run.xs))


def _scalar(run: _Run) -> Callable[..., Any]:
    """The function of a Hessian, as one number."""

    def f(*xs: Any) -> Any:
        y = run.f(*xs)
        run.one(y)
        return (y[0] if isinstance(y, tuple | list) else y).reshape(())

    return f


def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode") -> Any:  # fmt: skip
    """The matrix of second derivatives of a scalar function; tuples of tuples where there are several inputs."""
    run = _Run("hessian", func, inputs, strict, create_graph)
    outer = _strategy("hessian", outer_jacobian_strategy, strict, vectorize, "outer_jacobian_strategy")
    f = _scalar(run)
    run.check(f, order=2)
    nums = tuple(range(len(run.xs))) if run.many else 0
    with run.mode():
        return run.result(outer(F.jacrev(f, nums), nums)(*run.xs))


def _second(name: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool) -> Any:
    run = _Run(name, func, inputs, strict, create_graph)
    f = _scalar(run)
    if v is None:
        if len(run.xs) != 1 or run.xs[0].numel() != 1:
            raise RuntimeError(
                f"{name}: The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
            )
        vs: tuple[Any, ...] = (zeros_like_tensor(run.xs[0]) + 1,)
    else:
        vs = _vectors(name, v, run.xs, run.many)
    run.check(f, order=2)
    return run, f, vs, tuple(range(len(run.xs)))


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``(f(x), H(x) v)``, forward over reverse."""
    run, f, vs, nums = _second("hvp", func, inputs, v, create_graph, strict)
    with run.mode():
        y = func(*run.xs)
        t = F.jvp(F.grad(f, nums), run.xs, vs)[1]
    return run.result(y), run.result(t if run.many else t[0])


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``(f(x), v^T H(x))``, reverse over reverse."""
    run, f, vs, nums = _second("vhp", func, inputs, v, create_graph, strict)
    with run.mode():
        y = func(*run.xs)
        g = F.vjp(F.grad(f, nums), *run.xs)[1](vs)
    return run.result(y), run.result(g if run.many else g[0])


__all__ = [
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "vhp",
    "vjp",
]


def __dir__() -> list[str]:
    return __all__
