"""Matrix products of groups of different sizes, as mixtures of experts need them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.registry import public
from ...core.samples import S, sample
from ...core.tensor import Tensor
from ..shape.slices import cat, stack
from .matmul import matmul

NAME = "grouped_mm"


def _bounds(offs: Any, n: int, what: str) -> list[tuple[int, int]]:
    """Where each group begins and ends, from the ends."""
    if not isinstance(offs, Tensor) or offs.ndim != 1 or offs.dtype.is_floating_point:
        raise RuntimeError(f"{NAME}: offs must be a 1-D tensor of integers, the ends of the groups, got {offs!r}")
    ends = offs.tolist()
    starts = [0, *ends[:-1]]
    if any(b < a for a, b in zip(starts, ends, strict=True)) or (ends and not 0 <= ends[-1] <= n):
        raise RuntimeError(f"{NAME}: offs must rise from 0 to at most {n}, {what}, got {ends}")
    return list(zip(starts, ends, strict=True))


@public("nn.functional.grouped_mm", out=False)
def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """A product for each group: `offs` has the ends of the groups in that dim of a 2-D matrix which the other's groups answer to.

    ``(M, K), (G, K, N)`` groups rows of `mat_a` and gives ``(M, N)``; ``(G, M, K), (K, N)`` groups columns of `mat_b` and gives
    ``(M, N)``; ``(M, K), (K, N)`` groups K and gives ``(G, M, N)``; ``(G, M, K), (G, K, N)`` has no `offs`. What is in no group is 0.
    """
    ranks = mat_a.ndim, mat_b.ndim
    if not set(ranks) <= {2, 3} or mat_a.shape[-1] != mat_b.shape[-2] or mat_a.dtype is not mat_b.dtype:
        raise RuntimeError(
            f"{NAME}: expected 2-D or 3-D matrices of one type that can be multiplied, got {list(mat_a.shape)} of {mat_a.dtype} "
            f"and {list(mat_b.shape)} of {mat_b.dtype}"
        )
    if (offs is None) != (ranks == (3, 3)):
        raise RuntimeError(
            f"{NAME}: Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if bias is not None:
        raise RuntimeError(f"{NAME}: Bias not supported yet; add it to the result")
    if out_dtype is not None and out_dtype is not mat_a.dtype:
        raise RuntimeError(f"{NAME}: output dtype must match `mat_a` dtype; write .to({out_dtype})")
    if ranks == (3, 3):
        return matmul(mat_a, mat_b)
    m, n = mat_a.shape[-2], mat_b.shape[-1]
    if ranks == (2, 2):
        groups = _bounds(offs, mat_a.shape[1], "the size of K")
        parts = [matmul(mat_a[:, a:b], mat_b[a:b]) for a, b in groups]
        return stack(parts) if parts else mat_a.new_zeros(0, m, n)
    rows = ranks == (2, 3)
    total, count = (m, mat_b.shape[0]) if rows else (n, mat_a.shape[0])
    groups = _bounds(offs, total, "the rows of mat_a" if rows else "the columns of mat_b")
    if len(groups) != count:
        raise RuntimeError(f"{NAME}: {len(groups)} ends of groups in offs, but {count} matrices")
    if rows:
        parts = [matmul(mat_a[a:b], mat_b[g]) for g, (a, b) in enumerate(groups)]
    else:
        parts = [matmul(mat_a[g], mat_b[:, a:b]) for g, (a, b) in enumerate(groups)]
    rest = total - (groups[-1][1] if groups else 0)
    if rest:
        parts.append(mat_a.new_zeros((rest, n) if rows else (m, rest)))
    return cat(parts, 0 if rows else 1)


def _ends(*ends: int) -> Tensor:
    return Tensor(np.array(ends, np.int32))


sample("nn.functional.grouped_mm", S(6, 3), S(3, 3, 2), f=lambda a, b: grouped_mm(a, b, offs=_ends(2, 2, 5)))
sample("nn.functional.grouped_mm", S(2, 3, 2), S(2, 5), f=lambda a, b: grouped_mm(a, b, offs=_ends(1, 5)))
sample("nn.functional.grouped_mm", S(3, 5), S(5, 2), f=lambda a, b: grouped_mm(a, b, offs=_ends(2, 5)))
