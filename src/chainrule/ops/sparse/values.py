"""The numbers of a sparse tensor, and a sparse tensor from numbers: two linear ops, each the transpose of the other.

A pattern is static data, so a sparse tensor of any level is a pattern and a tensor of numbers. What is done with sparse tensors is
done with these: the ops of this file lead from one to the other, and move numbers between patterns and to and from dense tensors.

A cotangent of a sparse tensor is a sparse tensor of its pattern that holds the cotangents of its numbers (PyTorch's *masked*
derivatives); where one arrives dense, or in another pattern, the numbers at the pattern's places are what counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.dispatch import innermost
from ...core.errors import ChainruleError
from ...core.primitives import alias_p, detach_p
from ...core.tensor import Tensor
from ...core.views import scatter_view
from ...payloads.sparse.array import SparseArray
from ...payloads.sparse.pattern import Pattern, pick, place, relocate

detach_p.on(SparseArray)(lambda x: x)
alias_p.on(SparseArray)(lambda x: x)


@op("sparse_values", view=True)
def values_p(x: Any, *, pattern: Pattern) -> Any:
    """The numbers of `x`, sparse or dense, at the places of a pattern."""
    return pick(x, pattern)


@values_p.on(SparseArray)
def _(x: Any, *, pattern: Pattern) -> Any:
    return _numbers_at(x, pattern)


def _numbers_at(x: SparseArray, pattern: Pattern, summed: bool = False) -> np.ndarray:
    """The numbers of `x` at the places of a pattern, in its own pattern as they are unless those at one place are `summed`.

    Axes in front are dims of one of the two patterns, of both, or of none.
    """
    v, p, lead = x.values, x.pattern, x.lead
    more = p.ndim - pattern.ndim
    if more < 0:
        p, lead = p.repeated(lead[more:]), lead[:more]
        v = v.reshape((*lead, *p.values_shape))
    front = p.shape[:more] if more > 0 else ()
    at = pattern.repeated(front) if front else pattern
    y = v if not summed and p.same(at) else relocate(v, p, at)
    return y.reshape((*lead, *front, *pattern.values_shape)) if front else y


@op("with_values", view=True)
def with_values_p(v: Any, *, pattern: Pattern) -> Any:
    """The sparse tensor of a pattern with the numbers `v`."""
    want = pattern.values_shape
    if type(v) is not np.ndarray or v.shape[v.ndim - len(want) :] != want:
        raise ChainruleError(
            f"a sparse tensor of {pattern.nnz} stored entries holds numbers of shape {list(want)}, got shape {list(v.shape)}"
        )
    return SparseArray(v, pattern)


def _at(g: Tensor, pattern: Pattern) -> Tensor:
    """The numbers of a tangent or cotangent at a pattern's places: of a dense one by the op whose transpose is dense too."""
    return (values_p if is_sparse(g) else pick_p).bind(g, pattern=pattern)


values_p.jvp([lambda t, y, x, *, pattern: _at(t, pattern)])
values_p.vjp([lambda g, y, x, *, pattern: with_values_p.bind(g, pattern=pattern)])
with_values_p.jvp([lambda t, y, v, *, pattern: with_values_p.bind(t, pattern=pattern)])
with_values_p.vjp([lambda g, y, v, *, pattern: _at(g, pattern)])


def _written(root: Tensor, chain: tuple[Any, ...], new: Tensor) -> Tensor:
    """A sparse tensor with `new` written to the part of its numbers that a chain of views shows."""
    kw = chain[0][1]
    return with_values_p.bind(scatter_view(values_p.bind(root, **kw), chain[1:], new), **kw)


values_p.scatter = _written


def numbers(x: Tensor) -> Tensor:
    """The numbers as a view: what is written to them is written to the tensor."""
    p = innermost(x).pattern
    return values_p(x, pattern=p) if x.ndim == p.ndim else parts(x)[0]


@op("sparse_place", linear="each")
def place_p(v: Any, *, pattern: Pattern) -> Any:
    """The dense tensor of the numbers `v` of a pattern; those at one place add up."""
    return place(v, pattern)


@op("sparse_pick", linear="each")
def pick_p(x: Any, *, pattern: Pattern) -> Any:
    """The numbers of a dense tensor at the places of a pattern."""
    return pick(x, pattern)


place_p.vjp([lambda g, y, v, *, pattern: pick_p.bind(g, pattern=pattern)])
pick_p.vjp([lambda g, y, x, *, pattern: place_p.bind(g, pattern=pattern)])


@pick_p.on(SparseArray)
def _(x: Any, *, pattern: Pattern) -> Any:
    return _numbers_at(x, pattern, summed=True)


@op("sparse_relocate", view=True, linear="each")
def relocate_p(v: Any, *, src: Pattern, dst: Pattern) -> Any:
    """At each place of `dst` the sum of the numbers `v` of `src` that stand there."""
    return relocate(v, src, dst)


relocate_p.vjp([lambda g, y, v, *, src, dst: relocate_p.bind(g, src=dst, dst=src)])


@op("sparse_densify", view=True, linear="each")
def densify_p(x: Any, *, pattern: Pattern) -> Any:
    """The dense tensor of a sparse one, every element of which has a derivative: those that are not stored too."""
    return x


@densify_p.on(SparseArray)
def _(x: Any, *, pattern: Pattern) -> Any:
    return place(x.values, x.pattern)


densify_p.vjp([lambda g, y, x, *, pattern: g])


# -- a sparse tensor as its parts ---------------------------------------------------------------------------------------------


def is_sparse(x: Any) -> bool:
    """Whether a tensor of any level is sparse, in any layout."""
    return isinstance(x, Tensor) and type(innermost(x)) is SparseArray


def parts(x: Tensor) -> tuple[Tensor, Pattern]:
    """The numbers and the pattern; axes in front that share it (what a vmap left) become dims of the pattern."""
    p: Pattern = innermost(x).pattern
    v = values_p.bind(x, pattern=p)
    lead = tuple(x.shape[: x.ndim - p.ndim])
    if not lead:
        return v, p
    q = p.repeated(lead)
    return v.reshape(q.values_shape), q


def make(v: Tensor, p: Pattern) -> Tensor:
    """The sparse tensor of a pattern with the numbers `v`."""
    return with_values_p.bind(v, pattern=p)


def as_list(x: Tensor) -> tuple[Tensor, Pattern]:
    """The numbers as one list ``[count, *dense]`` with their coordinates."""
    v, p = parts(x)
    c = p.as_coo()
    return (v if c is p else v.reshape(c.values_shape)), c


def moved(v: Tensor, src: Pattern, dst: Pattern) -> Tensor:
    """The numbers of one pattern in another."""
    return v if src is dst else relocate_p.bind(v, src=src, dst=dst)


def coalesced(x: Tensor) -> Tensor:
    """Coordinates in order, each once; the numbers at one place added."""
    v, p = parts(x)
    q = p.coalesce()
    return x if q is p and x.ndim == innermost(x).pattern.ndim else make(moved(v, p, q), q)


def dense(x: Tensor, masked: bool = True) -> Tensor:
    """The dense tensor; `masked`: with a derivative at the stored elements alone."""
    if not masked:
        return densify_p.bind(x, pattern=innermost(x).pattern)
    v, p = parts(x)
    return place_p.bind(v, pattern=p)


def like(layout: str, v: Tensor, p: Pattern, block: Any = None) -> Tensor:
    """Numbers with coordinates as a sparse tensor of a layout: where its dims allow no compressed one, by coordinates."""
    from ...payloads.sparse.pattern import convert

    if layout == "coo" or len(p.sparse_shape) < 2:
        return make(v, p)
    q = convert(p, layout, block)
    return make(moved(v, p, q), q)


def index_tensor(a: Any) -> Tensor:
    """Index arrays as a tensor of integers."""
    a = np.ascontiguousarray(a)
    return Tensor(a if a.dtype in dt.FROM_NP else a.astype(np.int64))
