"""Segment functions: rows of a tensor reduced or normalised by the number of the segment that each belongs to, as on graphs."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...ops.shape.create import full, ones_like, zeros


def _count(ids: Tensor, num_segments: int | None) -> int:
    return int(ids.max().item()) + 1 if num_segments is None and ids.numel() else num_segments or 0


def segment_sum(data: Tensor, segment_ids: Tensor, num_segments: int | None = None) -> Tensor:
    """``y[s] = sum of data[i] with segment_ids[i] = s``, zero where there is none.

    >>> chainrule.nested.segment_sum(chainrule.tensor([1.0, 2.0, 4.0]), chainrule.tensor([0, 2, 0]), 3).tolist()
    [5.0, 0.0, 2.0]
    """
    n = _count(segment_ids, num_segments)
    return zeros(n, *data.shape[1:], dtype=data.dtype).index_add(0, segment_ids, data)


def segment_mean(data: Tensor, segment_ids: Tensor, num_segments: int | None = None) -> Tensor:
    """The mean of the rows of each segment, zero where there is none.

    >>> chainrule.nested.segment_mean(chainrule.tensor([1.0, 2.0, 4.0]), chainrule.tensor([0, 2, 0]), 3).tolist()
    [2.5, 0.0, 2.0]
    """
    n = _count(segment_ids, num_segments)
    count = segment_sum(ones_like(segment_ids), segment_ids, n).clamp(min=1).to(data.dtype)
    return segment_sum(data, segment_ids, n) / count.reshape(n, *(1,) * (data.ndim - 1))


def _extremum(how: str, data: Tensor, ids: Tensor, n: int, fill: Any) -> Tensor:
    start = full((n, *data.shape[1:]), fill, dtype=data.dtype)
    return start.index_reduce(0, ids, data, how, include_self=False)


def segment_max(
    data: Tensor, segment_ids: Tensor, num_segments: int | None = None, fill: float = float("-inf")
) -> Tensor:
    """The greatest entries of each segment, `fill` where there is none; equal ones share the derivative.

    With ``x.values()`` and ``nested.owners(x)`` this is the maximum over a ragged dim in which components may be empty.

    >>> chainrule.nested.segment_max(chainrule.tensor([1.0, 2.0, 4.0]), chainrule.tensor([0, 2, 0]), 3, fill=0.0).tolist()
    [4.0, 0.0, 2.0]
    """
    return _extremum("amax", data, segment_ids, _count(segment_ids, num_segments), fill)


def segment_min(
    data: Tensor, segment_ids: Tensor, num_segments: int | None = None, fill: float = float("inf")
) -> Tensor:
    """The least entries of each segment, `fill` where there is none; equal ones share the derivative.

    >>> chainrule.nested.segment_min(chainrule.tensor([1.0, 2.0, 4.0]), chainrule.tensor([0, 2, 0]), 3, fill=0.0).tolist()
    [1.0, 0.0, 2.0]
    """
    return _extremum("amin", data, segment_ids, _count(segment_ids, num_segments), fill)


def segment_softmax(data: Tensor, segment_ids: Tensor, num_segments: int | None = None) -> Tensor:
    """``exp(data)`` over its sum in each segment: attention weights over the neighbours of each node.

    >>> chainrule.nested.segment_softmax(chainrule.zeros(3), chainrule.tensor([0, 2, 0]), 3).tolist()
    [0.5, 1.0, 0.5]
    """
    n = _count(segment_ids, num_segments)
    top = segment_max(data.detach(), segment_ids, n)
    e = (data - top.index_select(0, segment_ids)).exp()
    return e / segment_sum(e, segment_ids, n).index_select(0, segment_ids)
