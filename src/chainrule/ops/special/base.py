"""What the special functions share: SciPy loaded at first use, quadrature nodes, declaration of functions of one argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.declare import pointwise
from ...core.op import Op
from ...core.registry import public
from ...core.tensor import Tensor


def scipy_special(name: str) -> Callable[..., Any]:
    """``scipy.special.<name>`` on real arrays; SciPy is imported at the first call, never with the package."""
    found: Any = None

    def body(*xs: Any) -> Any:
        nonlocal found
        if found is None:
            import scipy.special

            found = getattr(scipy.special, name)
        real_only(name, *xs)
        return found(*xs)

    body.__name__ = name
    return body


def real_only(name: str, *xs: Any) -> None:
    """Raise for complex arrays: these functions are defined on real tensors."""
    for x in xs:
        if np.asarray(x).dtype.kind == "c":
            raise RuntimeError(
                f"{name} is not implemented for complex tensors (input is {x.dtype}); it takes real ones"
            )


def one_tensor(name: str, **xs: Any) -> None:
    """Raise unless one of the arguments, given by name, is a tensor."""
    if not any(isinstance(x, Tensor) for x in xs.values()):
        kinds = ", ".join(f"{k} is {type(x).__name__}" for k, x in xs.items())
        raise TypeError(f"{name}: at least one of {' and '.join(xs)} must be a tensor, but {kinds}")


def in_double(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` computed in float64 and rounded once to the type of its (first) argument, without warnings."""

    @functools.wraps(fn)
    def body(*xs: Any, **kw: Any) -> Any:
        real_only(fn.__name__.strip("_"), *xs)
        with np.errstate(all="ignore"):
            r = np.asarray(fn(*[np.asarray(x, np.float64) for x in xs], **kw))
            return r.astype(xs[0].dtype)

    return body


@functools.cache
def gauss_legendre(n: int) -> tuple[tuple[float, float], ...]:
    """Nodes in (0, 1) and weights of the Gauss-Legendre rule with `n` points."""
    x, w = np.polynomial.legendre.leggauss(n)
    return tuple(zip(((x + 1) / 2).tolist(), (w / 2).tolist(), strict=True))


def unary(name: str, fn: Any, rule: Any, doc: str, names: str = "", methods: str = "") -> Op:
    """Declare a floating function of one argument, published under `names` (default ``special.<name>``) and as methods."""
    p = pointwise(name, fn, rule, types="float", doc=doc)
    inplace = " ".join(f"{m}_" for m in methods.split())
    return public(names or f"special.{name}", methods=methods, inplace=inplace)(p)
