"""Losses on distances between examples: ranking, hinge, cosine, triplets."""

from __future__ import annotations

from collections.abc import Callable

from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import broadcast_shapes
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.compare import clamp_min_p, minimum
from ..elementwise.elementary import sqrt
from ..elementwise.select import where
from ..linalg.similarity import pairwise_distance
from .elements import REDUCTIONS, reduced, reduction_of

LEAST = 9.999999960041972e-13  # PyTorch's 1e-12, a float32 constant


@public("nn.functional.margin_ranking_loss", out=False)
@straight
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``."""
    r = reduction_of(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: {list(input1.shape)}, "
            f"input2: {list(input2.shape)}, target: {list(target.shape)}"
        )
    broadcast_shapes(input1.shape, input2.shape, target.shape, what="margin_ranking_loss of input1, input2 and target")
    return reduced(clamp_min_p.bind(-target * (input1 - input2) + margin, 0), r)


@public("nn.functional.hinge_embedding_loss", out=False)
@straight
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1."""
    r = reduction_of(reduction, size_average, reduce)
    broadcast_shapes(input.shape, target.shape, what="hinge_embedding_loss of input and target")
    apart = where(target != 1, clamp_min_p.bind(margin - input, 0), 0)
    return reduced(apart + where(target != -1, input, 0), r)


@public("nn.functional.cosine_embedding_loss", out=False)
@straight
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``1 - cos(input1, input2)`` where the target is 1, ``max(0, cos - margin)`` where it is -1."""
    r = reduction_of(reduction, size_average, reduce)
    if target.ndim > 1:
        raise RuntimeError(
            f"cosine_embedding_loss: 0D or 1D target tensor expected, multi-target not supported; got {list(target.shape)}"
        )
    want = target.ndim + 1
    if input1.ndim != want or input2.ndim != want:
        raise RuntimeError(
            f"cosine_embedding_loss: {target.ndim}D target tensor expects {want}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    broadcast_shapes(input1.shape, input2.shape, what="cosine_embedding_loss of input1 and input2")
    s1, s2 = ((x * x).sum(-1) + LEAST for x in (input1, input2))
    cos = (input1 * input2).sum(-1) / sqrt.bind(s1 * s2)
    return reduced(where(target == 1, 1 - cos, 0) + where(target == -1, clamp_min_p.bind(cos - margin, 0), 0), r)


def _triplet(
    distance: Callable[[Tensor, Tensor], Tensor],
    a: Tensor,
    p: Tensor,
    n: Tensor,
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    if margin <= 0:
        raise ValueError(f"triplet_margin_loss: margin must be greater than 0, got {margin}")
    if not a.ndim == p.ndim == n.ndim:
        raise RuntimeError(
            f"triplet_margin_loss: The anchor, positive, and negative tensors are expected to have the same number of dimensions, "
            f"but got: anchor {a.ndim}D, positive {p.ndim}D, and negative {n.ndim}D inputs"
        )
    broadcast_shapes(a.shape, p.shape, n.shape, what="triplet_margin_loss of anchor, positive and negative")
    near, far = distance(a, p), distance(a, n)
    if swap:
        far = minimum.bind(far, distance(p, n))
    return reduced(clamp_min_p.bind(margin + near - far, 0), reduction)


@public("nn.functional.triplet_margin_loss", out=False)
@straight
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, margin + d(anchor, positive) - d(anchor, negative))`` with the p-norm distance d.

    With ``swap`` the negative's distance is the lesser of those to the anchor and to the positive.
    """
    r = reduction_of(reduction, size_average, reduce)
    return _triplet(lambda a, b: pairwise_distance(a, b, p, eps), anchor, positive, negative, margin, swap, r)


@public("nn.functional.triplet_margin_with_distance_loss", out=False)
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """:func:`triplet_margin_loss` with any distance function of two tensors."""
    return _triplet(
        distance_function or pairwise_distance, anchor, positive, negative, margin, swap, reduction_of(reduction)
    )


# -- samples ------------------------------------------------------------------------------------------------------------

_signs = Given([1.0, -1.0, -1.0])
for _r in REDUCTIONS:
    sample("nn.functional.margin_ranking_loss", S(2, 3), S(2, 3), S(2, 3), 0.25, reduction=_r, cx=False)
    sample("nn.functional.hinge_embedding_loss", S(2, 3), _signs, reduction=_r, cx=False)
    sample("nn.functional.cosine_embedding_loss", S(3, 4), S(3, 4), _signs, -0.5, reduction=_r, cx=False)
    sample("nn.functional.triplet_margin_loss", S(3, 4), S(3, 4), S(3, 4), 2.0, swap=True, reduction=_r, cx=False)
sample("nn.functional.cosine_embedding_loss", S(4), S(4), Given(1.0), cx=False)
sample("nn.functional.triplet_margin_loss", S(4), S(4), S(4), p=3.0, cx=False)
sample("nn.functional.triplet_margin_with_distance_loss", S(2, 3), S(2, 3), S(2, 3), margin=3.0, cx=False)
