"""Distances of vectors."""

from __future__ import annotations

from ..module import Module
from .thin import thin


@thin("pairwise_distance", "x1, x2")
class PairwiseDistance(Module):
    """``|x1 - x2 + eps|_p`` over the last dim."""

    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False


@thin("cosine_similarity", "x1, x2")
class CosineSimilarity(Module):
    """``<x1, x2> / (|x1| |x2|)`` along `dim`."""

    dim: int = 1
    eps: float = 1e-8


__all__ = ["CosineSimilarity", "PairwiseDistance"]
