"""Linear systems with a few unknowns, written out: elimination on scalars, rows exchanged by selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels.lang import Value

SMALL_MATRICES = {"solve", "solve_triangular"}
MOST = 16  # elements of a matrix that is written out


def small_matrix(n: Any) -> bool:
    """Whether a node is about one matrix that is written out."""
    return all(len(v.shape) == 2 and v.size <= MOST for v in (*n.args, *n.outs))


def solved(k: Any, fail: Callable[[Value], None], n: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``x`` with ``a x = b`` on arrays of scalars; `fail` is told of a pivot that is zero."""

    def value(x: Any) -> Value:
        return x if isinstance(x, Value) else k.const(float(x), k.compute)

    rows = [[value(x) for x in (*ra, *rb)] for ra, rb in zip(a.tolist(), b.tolist(), strict=True)]
    m, width = a.shape[0], a.shape[0] + b.shape[1]
    if n.op.name == "solve_triangular":
        return _substituted(rows, m, width, n.kw["upper"], n.kw["unit"])
    for j in range(m):
        for i in range(j + 1, m):  # the largest pivot of the column comes up, as in LAPACK
            larger = abs(rows[i][j]) > abs(rows[j][j])
            for c in range(j, width):
                up, down = rows[j][c], rows[i][c]
                rows[j][c], rows[i][c] = k.select(larger, down, up), k.select(larger, up, down)
        zero = rows[j][j].eq(0.0)
        fail(k.any(zero) if zero.varying else zero)
        for i in range(j + 1, m):
            q = rows[i][j] / rows[j][j]
            for c in range(j + 1, width):
                rows[i][c] = rows[i][c] - q * rows[j][c]
    return _substituted(rows, m, width, True, False)


def _substituted(rows: list[list[Value]], m: int, width: int, upper: bool, unit: bool) -> np.ndarray:
    """From a triangle, one unknown after the other."""
    out = np.empty((m, width - m), object)
    for i in range(m - 1, -1, -1) if upper else range(m):
        for c in range(width - m):
            x = rows[i][m + c]
            for j in range(i + 1, m) if upper else range(i):
                x = x - rows[i][j] * out[j, c]
            out[i, c] = x if unit else x / rows[i][i]
    return out


def by_scalars(body: Any, n: Any) -> None:
    """A node of a body whose values are in memory: read, solved, and stored."""
    from .scalars import scalars

    a, b = (scalars(body, x) for x in n.args)
    m = body.place(n.outs[0])
    for ix, x in np.ndenumerate(solved(body.k, body.low.fail, n, a, b)):
        m.array[m.offset + sum(i * s for i, s in zip(ix, m.strides, strict=True))] = x
    body.env[n.outs[0]] = m
