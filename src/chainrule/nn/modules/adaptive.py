"""Softmax over many classes, the rare ones in clusters of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.dispatch import active_vmaps
from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from .container import ModuleList, Sequential
from .linear import Linear


class _ASMoutput(NamedTuple):
    """The log-probabilities of the targets, and minus their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of classes sorted by frequency: those before ``cutoffs[0]`` in a head with one entry for each later cluster.

    ``log p(class) = log p(cluster) + log p(class | cluster)``; cluster i has ``in_features / div_value**(i + 1)`` features.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        ordered = cutoffs == sorted(set(cutoffs)) and min(cutoffs) > 0 and max(cutoffs) <= n_classes - 1
        if not ordered or any(int(c) != c for c in cutoffs):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                "where each value is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            features, size = int(in_features // div_value ** (i + 1)), self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, features, False, device, dtype), Linear(features, size, False, device, dtype)
                )
            )

    def reset_parameters(self) -> None:
        """Random weights in every layer."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """The log-probabilities of the targets, and minus their mean."""
        if input_.ndim == target_.ndim + 1 == 2:
            if input_.shape[0] != target_.shape[0]:
                raise RuntimeError(
                    f"Input and target should have the same size in the batch dimension, got {list(input_.shape)} and {list(target_.shape)}"
                )
            x, target = input_, target_
        elif input_.ndim == target_.ndim + 1 == 1:
            x, target = input_.unsqueeze(0), target_.unsqueeze(0)
        else:
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: expected input and target of 2 and 1 or of 1 and 0 dims, got {input_.ndim} and {target_.ndim}"
            )
        output = self._every(x, target) if active_vmaps() else self._some(x, target)
        return _ASMoutput(output if input_.ndim == 2 else output.squeeze(0), -output.mean())

    def _every(self, x: Tensor, target: Tensor) -> Tensor:
        """From the log-probabilities of all classes: where the targets are not known, as under vmap."""
        return self.log_prob(x).gather(1, target.unsqueeze(1)).squeeze(1)

    def _some(self, x: Tensor, target: Tensor) -> Tensor:
        """Each cluster computed for the examples whose targets are in it alone."""
        low, high = int(target.min()) if target.numel() else 0, int(target.max()) if target.numel() else 0
        if low < 0 or high >= self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{low}, {high}] were found. "
            )
        head = F.log_softmax(self.head(x), 1)
        place, inner = target, []
        for i in range(self.n_clusters):
            a, b = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= a) & (target < b)).nonzero().squeeze(1)
            if rows.numel():
                local = F.log_softmax(self.tail[i](x.index_select(0, rows)), 1)
                inner.append((rows, local.gather(1, (target[rows] - a).unsqueeze(1)).squeeze(1)))
                place = PUBLIC["where"]((target >= a) & (target < b), self.shortlist_size + i, place)
        out = head.gather(1, place.unsqueeze(1)).squeeze(1)
        for rows, local in inner:
            out = out.index_add(0, rows, local)
        return out

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i in range(self.n_clusters):
            at = self.shortlist_size + i
            parts.append(F.log_softmax(self.tail[i](input), 1) + head[:, at : at + 1])
        return PUBLIC["cat"](parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each example."""
        return self.log_prob(input).argmax(1)


__all__ = ["AdaptiveLogSoftmaxWithLoss"]
