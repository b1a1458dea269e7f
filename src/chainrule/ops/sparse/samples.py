"""Samples of the ops on sparse tensors: functions of stored numbers and dense operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.samples import S, sample
from ...core.tensor import Tensor
from ...payloads.sparse.pattern import Pattern
from .convert import sparse_mask, to_dense
from .products import mm, sampled_addmm
from .reduce import softmax
from .solve import spsolve
from .values import make, parts

# Four numbers in a 3 x 4 matrix, the same with a repeated coordinate, and the first by rows; a square one with its diagonal.
COO = Pattern("coo", (3, 4), (np.array([[0, 0, 1, 2], [0, 2, 1, 0]]),))
TWICE = Pattern("coo", (3, 4), (np.array([[0, 2, 0, 1], [1, 0, 1, 2]]),), 0, None, False)
CSR = Pattern("csr", (3, 4), (np.array([0, 2, 3, 4]), np.array([0, 2, 1, 0])))
SQUARE = Pattern("csc", (3, 3), (np.array([0, 2, 3, 5]), np.array([0, 1, 1, 0, 2])))
NONE = Pattern("coo", (3, 4), (np.zeros((2, 0), np.int64),))
HYBRID = Pattern("coo", (3, 4, 2), COO.index, 1)


def on(p: Pattern, f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a sparse tensor as one of its numbers."""
    return lambda v, *xs, **kw: f(make(v, p), *xs, **kw)


def _solve(v: Tensor, b: Tensor) -> Tensor:
    # A diagonal that outweighs the rest.
    return spsolve(make(v + Tensor(np.array([9.0, 0.0, 9.0, 0.0, 9.0])), SQUARE), b)


for _name, _p in (("coo", COO), ("repeated", TWICE), ("csr", CSR)):
    sample("Tensor.to_dense", S(4), f=on(_p, lambda s: to_dense(s * s)))
    sample("sparse.mm", S(4), S(4, 2), f=on(_p, mm))
    sample("sparse.mm", S(4), S(5, 3), f=on(_p, lambda s, x: mm(x, s)))
    sample("sparse.mm", S(4), S(4), f=lambda a, b, _p=_p: to_dense(mm(make(a, _p), make(b, COO.transposed()))))
    sample(
        "sparse.sampled_addmm",
        S(4),
        S(3, 2),
        S(2, 4),
        f=on(_p, lambda s, a, b: to_dense(sampled_addmm(s, a, b, beta=0.5))),
    )
    sample("Tensor.sparse_mask", S(4), S(3, 4), f=on(_p, lambda s, x: to_dense(sparse_mask(x, s) * s)))
sample("sparse.mm", S(0), S(4), f=lambda a, b: to_dense(mm(make(b, COO), make(a, NONE.transposed()))))
sample("sparse.mm", S(4), S(4, 0), f=on(COO, mm))
sample("Tensor.to_dense", S(4), f=on(COO, lambda s: to_dense(s, masked_grad=False)))
sample("Tensor.coalesce", S(4), f=on(TWICE, lambda s: parts(s.coalesce())[0]))
sample("Tensor.to_dense", S(4), S(4), f=lambda a, b: to_dense(make(a, COO) + make(b, TWICE)))
sample("Tensor.to_dense", S(4), S(4), f=lambda a, b: to_dense(make(a, COO) * make(b, TWICE)))
sample("Tensor.to_dense", S(4), S(3, 1, low=0.5), f=on(CSR, lambda s, x: to_dense(s / x)))
sample("sparse.softmax", S(4), f=on(COO, lambda s: to_dense(softmax(s, 1))), cx=False)
sample("sparse.softmax", S(4, 2), f=on(HYBRID, lambda s: to_dense(softmax(s, 0))), cx=False)
sample("sparse.sum", S(4, 2), f=on(HYBRID, lambda s: to_dense(s.sum(0))))
sample("sparse.spsolve", S(5), S(3, 2), f=_solve)
sample("sparse.spsolve", S(5), S(3), f=_solve)
