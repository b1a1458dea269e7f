"""Implicit differentiation: a solution found by other means, made a function of all that the equation depends on.

At a root x0 of f(x, p), known as a number, Newton's step ``x0 - J(x0, p)^-1 f(x0, p)`` leaves the value as it is and has the derivative of the implicit
function theorem with respect to p. k steps have derivatives up to order 2^k - 1; as many are made as there are levels that could ask.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..core.dispatch import STACK
from ..core.registry import PUBLIC
from ..core.tensor import Tensor
from ..transforms.jacobian import jacfwd


def orders() -> int:
    """How many derivatives could be asked for: the levels that differentiate now, and ``backward()`` with its graph."""
    return sum(1 for i in STACK.get() if i.kind != "vmap") + 1


def attach(f: Callable[[Tensor], Tensor], x0: np.ndarray) -> Tensor:
    """The root of `f` near `x0` as a function of whatever `f` depends on."""
    x = Tensor(np.array(x0, dtype=float))
    n = x.numel()
    probe = f(x)
    if probe._interp is None:
        return x  # nothing to differentiate with respect to
    flat: Callable[[Tensor], Tensor] = lambda v: f(v.reshape(x.shape)).reshape(-1)
    y = x.reshape(-1)
    for _ in range(max(1, math.ceil(math.log2(orders() + 1)))):
        jac = jacfwd(flat)(y).reshape(n, n)
        y = y - PUBLIC["linalg.solve"](jac, flat(y))
    return y.reshape(x.shape)
