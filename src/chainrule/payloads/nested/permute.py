"""Dims of components in another order: by transposing components of one size together, or (often enough) by a list of places.

A list of all places is fast to use and slow to make, and takes several times the memory of the elements: it is made for a geometry that
has come up before, not for sizes that may never come again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .array import NestedArray, by_exact_size
from .sizes import Geometry, geometry_of

ndarray = np.ndarray
BEFORE = 2  # uses of a geometry before its places are listed
LISTED = 1 << 22  # elements up to which they are


def permuted(x: NestedArray, perm: list[int]) -> NestedArray:
    """The elements in the order of permuted dims of the components."""
    g = x.geometry
    memo, key = g.packing.memo, ("permute", g.trail, *perm)
    found = memo.get(key, 0)
    if type(found) is int:
        size = g.packing.total * g.width
        if found < BEFORE or size > LISTED:
            memo[key] = found + 1
            return _transposed(x, perm)
        found = memo[key] = _places(g, perm)
    order, width, h = found
    lead = x.lead
    flat_blocks = np.ascontiguousarray(x.rows).reshape(*lead, g.packing.total * g.width // width if width else 0, width)
    return NestedArray(flat_blocks.take(order if width else order[:0], axis=-2).reshape(*lead, *h.rows), h)


def _places(g: Geometry, perm: list[int]) -> tuple[ndarray, int, Geometry]:
    """Where each block of elements comes from, the size of a block, and the geometry of the result."""
    cols = tuple(g.columns[p] for p in perm)
    h = geometry_of(cols, g.n)
    # Whole blocks of dims that stay last move together.
    still = 0
    while still < len(g.trail) and still < len(h.trail) and perm[g.k - 1 - still] == g.k - 1 - still:
        still += 1
    width = int(np.prod(g.trail[len(g.trail) - still :]))
    blocks = Geometry(g.packing, g.trail[: len(g.trail) - still])
    owner, coords = geometry_of(cols[: g.k - still], g.n).elements()
    back = [perm.index(d) for d in range(g.k - still)]
    return blocks.element_at(owner, [coords[b] for b in back]), width, h


def _transposed(x: NestedArray, perm: list[int]) -> NestedArray:
    """The same, a transpose for each size that occurs."""
    g, lead = x.geometry, x.lead
    h = geometry_of(tuple(g.columns[p] for p in perm), g.n)
    out = np.empty((*lead, *h.rows), x.dtype)
    front: Any = (slice(None),) * len(lead)
    axes = [*range(len(lead) + 1), *[len(lead) + 1 + d for d in perm]]
    for m in by_exact_size(g):
        a, b = g.packing.span(m), h.packing.span(m)
        block = x.rows[(*front, a)].reshape((*lead, len(m), *g.packing.sizes[m[0]], *g.trail)).transpose(axes)
        out[(*front, b)] = block.reshape((*lead, len(m) * int(h.packing.counts[m[0]]), *h.trail))
    return NestedArray(out, h)
