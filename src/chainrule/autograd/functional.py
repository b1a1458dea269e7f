"""Jacobians, Hessians and products with them, in the style of ``torch.autograd.functional``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import func as F
from ..core.tensor import Tensor


def _tuple(x: Any) -> tuple[tuple[Any, ...], bool]:
    return (tuple(x), True) if isinstance(x, tuple | list) else ((x,), False)


def _finish(x: Any, create_graph: bool) -> Any:
    if isinstance(x, tuple):
        return tuple(_finish(v, create_graph) for v in x)
    return x if create_graph else x.detach()


def _one(name: str, ys: Any) -> None:
    if not isinstance(ys, Tensor) or ys.numel() != 1:
        raise RuntimeError(f"{name}: the function must return one tensor with a single element")


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``(f(x), v^T J(x))``; v may be left out for a scalar output."""
    xs, many = _tuple(inputs)
    y, pull = F.vjp(func, *xs)
    if v is None:
        _one("vjp", y)
        v = y.detach() * 0 + 1
    g = pull(v)
    return _finish(y, create_graph), _finish(g if many else g[0], create_graph)


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``(f(x), J(x) v)``; v may be left out for an input with a single element."""
    xs, _ = _tuple(inputs)
    if v is None:
        if len(xs) != 1 or xs[0].numel() != 1:
            raise RuntimeError("jvp: v can only be omitted for one input with a single element")
        v = xs[0].detach() * 0 + 1
    y, t = F.jvp(func, xs, _tuple(v)[0])
    return _finish(y, create_graph), _finish(t, create_graph)


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
             strategy: str = "reverse-mode") -> Any:  # fmt: skip
    """``J(x)``: a tensor, or tuples over outputs and inputs where there are several."""
    xs, many = _tuple(inputs)
    make = F.jacrev if strategy == "reverse-mode" else F.jacfwd
    return _finish(make(func, tuple(range(len(xs))) if many else 0)(*xs), create_graph)


def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode") -> Any:  # fmt: skip
    """The matrix of second derivatives of a scalar function."""
    xs, many = _tuple(inputs)
    _one("hessian", func(*xs))
    nums = tuple(range(len(xs))) if many else 0
    outer = F.jacrev if outer_jacobian_strategy == "reverse-mode" else F.jacfwd
    return _finish(outer(F.jacrev(lambda *a: func(*a).reshape(()), nums), nums)(*xs), create_graph)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``(f(x), H(x) v)``, forward over reverse."""
    xs, many = _tuple(inputs)
    y = func(*xs)
    _one("hvp", y)
    vs = _tuple(v)[0] if v is not None else tuple(x.detach() * 0 + 1 for x in xs)
    nums = tuple(range(len(xs)))
    t = F.jvp(F.grad(lambda *a: func(*a).reshape(()), nums), xs, vs)[1]
    return _finish(y, create_graph), _finish(t if many else t[0], create_graph)


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``(f(x), v^T H(x))``, reverse over reverse."""
    xs, many = _tuple(inputs)
    y = func(*xs)
    _one("vhp", y)
    vs = _tuple(v)[0] if v is not None else tuple(x.detach() * 0 + 1 for x in xs)
    g = F.vjp(F.grad(lambda *a: func(*a).reshape(()), tuple(range(len(xs)))), *xs)[1](vs)
    return _finish(y, create_graph), _finish(g if many else g[0], create_graph)


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
