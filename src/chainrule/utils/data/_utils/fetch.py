"""Fetch: from numbers of examples to a batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ..dataset import IterableDataset


class Fetcher:
    """``fetch(index)``: the batch of a list of numbers, or one example where there are no batches.

    Of an iterable dataset the numbers say only how many examples there are in a batch; StopIteration is its end.
    """

    def __init__(self, dataset: Any, batched: bool, collate_fn: Callable[..., Any], drop_last: bool) -> None:
        self.dataset, self.batched, self.collate_fn, self.drop_last = dataset, batched, collate_fn, drop_last
        self.iterator = iter(dataset) if isinstance(dataset, IterableDataset) else None
        self.ended = False

    def fetch(self, index: Any) -> Any:
        """The batch, collated."""
        if self.iterator is not None:
            return self.collate_fn(self._next(index))
        if not self.batched:
            return self.collate_fn(self.dataset[index])
        many = getattr(self.dataset, "__getitems__", None)
        return self.collate_fn(many(index) if many else [self.dataset[i] for i in index])

    def _next(self, index: Any) -> Any:
        it: Any = self.iterator
        if not self.batched:
            return next(it)
        if self.ended:
            raise StopIteration
        data = list(itertools.islice(it, len(index)))
        self.ended = len(data) < len(index)
        if not data or (self.drop_last and self.ended):
            raise StopIteration
        return data
