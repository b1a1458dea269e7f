"""A body in plain ops: the specification of an op that has a kernel.

It runs where there is no kernel for the arrays, and derivatives without a rule of their own are taken through it; a law asserts that
kernel and specification agree. Leading axes, which vmap adds, broadcast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..fallback import NotSupported
from .shapes import broadcast_shapes, sizes_of
from .tensor import Tensor

Ranks = Callable[..., tuple[int, ...]]


class Spec:
    """``body(*tensors, **static)`` over arguments of the ranks that the static data decide, with any leading axes.

    ``ranks(**static)`` gives the rank of each argument without leading axes, ``outs(**static)`` that of each result. `expand`
    gives all arguments the same leading axes before the body runs: for bodies that are derivatives, in which a cotangent or a
    tangent must have the shape of what it belongs to. Arguments may be None (no weight, a cotangent that is zero).
    """

    def __init__(self, body: Callable[..., Any], ranks: Ranks, outs: Ranks, expand: bool = False) -> None:
        self.body, self.ranks, self.outs, self.expand = body, ranks, outs, expand
        self.__doc__ = body.__doc__

    def __call__(self, *xs: Any, **kw: Any) -> Any:
        ranks = self.ranks(**kw)
        lead: tuple[int, ...] = ()
        for x, r in zip(xs, ranks, strict=True):
            if isinstance(x, Tensor):
                s = sizes_of(x)
                if len(s) > r:
                    lead = broadcast_shapes(lead, s[: len(s) - r])
        if not lead:
            return self.body(*xs, **kw)
        if self.expand:
            xs = tuple([led(x, lead, r) if isinstance(x, Tensor) else x for x, r in zip(xs, ranks, strict=True)])
        return tuple([led(y, lead, r) for y, r in zip(self.body(*xs, **kw), self.outs(**kw), strict=True)])


def led(x: Tensor, lead: tuple[int, ...], rank: int) -> Tensor:
    """`x` with the leading axes `lead` before its last `rank` dims."""
    from .primitives import expand_p

    s = tuple(sizes_of(x))
    own = s[: len(s) - rank]
    k = len(lead) - len(own)
    # A nesting dim stays one, also where there is one component.
    mine = tuple(b if hasattr(b, "each") else a for a, b in zip(lead[k:], own, strict=True)) if k >= 0 else lead
    full = (*lead[: max(k, 0)], *mine, *s[len(own) :])
    return x if s == full else expand_p.bind(x, shape=full, old=s)


def with_kernel(spec: Spec, kernel: Callable[..., Any] | None) -> Callable[..., Any]:
    """The body on arrays: the kernel, which raises NotSupported for those it has no code for, or the specification."""

    def plain(*xs: Any, **kw: Any) -> Any:
        ys = spec(*[Tensor(x) if isinstance(x, np.ndarray) else x for x in xs], **kw)
        return tuple([y._value for y in ys])

    if kernel is None:
        return plain

    def body(*xs: Any, **kw: Any) -> Any:
        try:
            return kernel(*xs, **kw)
        except NotSupported:
            return plain(*xs, **kw)

    return body
