"""An identity that warns when it is differentiated: programs test with it that warnings reach them out of a backward pass."""

from __future__ import annotations

import warnings
from typing import Any

from ...core.declare import op
from ...core.registry import public
from ...core.tensor import Tensor


def warn_backwards(g: Tensor) -> Tensor:
    """`g`, with a warning."""
    warnings.warn("Warn from backward", UserWarning, stacklevel=2)
    return g


@op("_test_warn_in_autograd")
def warns_p(x: Any) -> Any:
    """A copy of x."""
    return x.copy()


warns_p.jvp([lambda t, y, x: warn_backwards(t)])
warns_p.vjp([lambda g, y, x: warn_backwards(g)])


@public("_test_warn_in_autograd", out=False)
def identity_that_warns(self: Tensor) -> Tensor:
    """`self`; whoever differentiates it is warned, once for each derivative that is taken."""
    return warns_p.bind(self)
