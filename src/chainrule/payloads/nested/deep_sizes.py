"""Sizes in nests of nests: one for each component of each nest (the words of each sentence of each document)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import ChainruleError
from ...core.tensor import Tensor
from .sizes import Nest, RaggedInt, bound, geometry_of, packing_of, plain

ndarray = np.ndarray


class DeepInt(RaggedInt):
    """A size with one value for each inner component; `outer` says how many of these each outer component has.

    Inside a map over the inner components `level` is that one, and `under` the one that maps over the outer ones.
    """

    __slots__ = ("outer", "under")

    def __init__(self, values: Any, outer: ndarray, level: Any = None, at: int = 0, under: Any = None) -> None:
        super().__init__(values, level, at)
        self.outer, self.under = outer, under
        nests: Any = RaggedInt.payload
        if not nests.deep:
            nests.deep.append(DeepInt.payload)

    def lowered(self, level: Any) -> DeepInt:
        if self.level is level:
            return DeepInt(self.values, self.outer, self.under)
        return self.moved(1) if self.level is None else self

    def raised(self, level: Any, own: bool) -> DeepInt:
        if self.level is not None:
            return self
        return DeepInt(self.values, self.outer, level) if own else self.moved(-1)

    def entered(self, level: Any) -> DeepInt:
        if self.under is not None:
            return self
        return DeepInt(self.values, self.outer, level, self.at, self.level)

    def moved(self, by: int) -> DeepInt:
        return DeepInt(self.values, self.outer, self.level, self.at + by, self.under)

    def like(self, values: ndarray) -> DeepInt:
        return DeepInt(values, self.outer, self.level, self.at, self.under)

    def whole(self) -> tuple[Any, ...]:
        full = (RaggedInt(self.outer), self)
        return (Nest(np.ones(len(self.outer), np.int64), full), *full)

    def as_tensor(self, others: list[Tensor]) -> Tensor:
        from .array import NestedArray

        # Behind the dims of the components and the inner ones, as many of these as are in sight, stand ones.
        nd = 0 if self.under is not None else max(t.ndim for t in others) - (2 + self.at if self.level is None else 1)
        v = self.values.astype(others[0].dtype.np) if self.values.dtype.kind == "f" else self.values
        nest = NestedArray(
            v.reshape((-1, *(1,) * nd)), geometry_of((RaggedInt(self.outer), *(1,) * nd), len(self.outer))
        )
        if self.under is not None:
            return Tensor(Tensor(Tensor(nest), self.under), self.level)
        return Tensor(nest) if self.level is None else Tensor(Tensor(nest), self.level)

    def __repr__(self) -> str:
        ends = np.cumsum(self.outer)[:3]
        parts = [
            "/".join(map(str, v[:4].tolist())) + ("/…" if len(v) > 4 else "") for v in np.split(self.values, ends)[:3]
        ]
        return "j(" + ", ".join(parts[: len(self.outer)]) + (", …" if len(self.outer) > 3 else "") + ")"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DeepInt):
            same = self.outer is other.outer or np.array_equal(self.outer, other.outer)
            return same and (self.values is other.values or np.array_equal(self.values, other.values))
        return not isinstance(other, RaggedInt) and super().__eq__(other)

    def __hash__(self) -> int:
        return hash((self.values.tobytes(), self.outer.tobytes()))

    def _with(self, other: Any, f: Any) -> Any:
        if isinstance(other, DeepInt) or not isinstance(other, RaggedInt):
            o = plain(other)
        else:
            o = np.repeat(other.values, self.outer)
        with np.errstate(divide="ignore", invalid="ignore"):
            y = np.asarray(f(self.values, o))
        if self.level is None and getattr(other, "level", None) is not None:
            return DeepInt(y, self.outer, other.level, self.at, getattr(other, "under", None))
        return self.like(y)

    def __mul__(self, o: Any) -> Any:
        if type(o) is Nest:
            return o * self
        if type(o) is not RaggedInt:
            return self._with(o, np.multiply)
        each, within = self.many(o.values, o.within)
        y = RaggedInt(each, o.level or self.level, max(o.at, self.at))
        y.within = within
        return y

    __rmul__ = __mul__

    def __neg__(self) -> DeepInt:
        return self.like(-self.values)

    def many(self, each: ndarray, within: ndarray | None) -> tuple[ndarray, ndarray]:
        # Of `each` entries the inner components are a factor: instead of each of these stand its own entries.
        if within is None:
            within = np.repeat(each // np.maximum(self.outer, 1), self.outer)
        within = within * self.values
        ends = np.concatenate([[0], np.cumsum(within)])[np.concatenate([[0], np.cumsum(self.outer)])]
        return np.diff(ends), within

    def chosen(self, size: Any, key: Any) -> Any:
        if type(size) is Nest and self.level is None:
            members = np.atleast_1d(np.arange(len(self.outer))[key])
            v = self.values[packing_of((RaggedInt(self.outer),), len(self.outer)).rows_of(members)]
            return (
                DeepInt(v, self.outer[members], None, self.at)
                if isinstance(key, slice)
                else RaggedInt(v, None, self.at)
            )
        if type(size) is not RaggedInt or not np.array_equal(size.values, self.outer):
            return self
        p = packing_of((RaggedInt(self.outer),), len(self.outer))
        at = np.arange(p.total) - p.offsets[:-1][p.owner]
        if not isinstance(key, slice):
            keep = at == np.where(key < 0, key + self.outer, key)[p.owner]
            return RaggedInt(self.values[keep], self.level, self.at)
        low, high = (bound(v, self.outer, d)[p.owner] for v, d in ((key.start, 0), (key.stop, self.outer)))
        keep = (at >= low) & (at < high) & ((at - low) % (key.step or 1) == 0)
        counts = np.bincount(p.owner[keep], minlength=p.n)
        return DeepInt(self.values[keep], counts, self.level, self.at)

    @property
    def none(self) -> DeepInt:
        return self.like((self.values == 0).astype(np.int64))

    def sliced(self, key: slice) -> DeepInt:
        return self.like(super().sliced(key).values)


def is_deep(shape: Any) -> bool:
    """Whether a shape is that of a nest of nests."""
    return any(type(s) is DeepInt for s in shape)


def inner_size(s: Any) -> Any:
    """A size as the nest of all inner components has it."""
    return RaggedInt(s.values, None, s.at) if type(s) is DeepInt else s


def deep_infer(shape: tuple[Any, ...], have: Any) -> tuple[Any, ...] | None:
    """`shape` of a nest of nests with a -1 behind the inner components replaced, by a size of its own in each; None where there is none."""
    at = next((i for i, s in enumerate(shape) if type(s) is int and s == -1), 0)
    if at < 2 or not is_deep(have) or type(shape[1]) is not RaggedInt or shape[1] != have[1]:
        return None
    outer = have[1].values
    m = int(outer.sum())
    total, known = np.ones(m, np.int64), np.ones(m, np.int64)
    for s in have[2:]:
        total = total * plain(s)
    for i, s in enumerate(shape[2:], 2):
        known = known if i == at else known * plain(s)
    bad = np.flatnonzero(total % np.maximum(known, 1) != 0)
    if len(bad):
        raise ChainruleError(
            f"reshape: inner component {bad[0]} has {total[bad[0]]} elements, which is no multiple of {known[bad[0]]}"
        )
    size = DeepInt(total // np.maximum(known, 1), outer)
    gone = [s for s in have if type(s) is DeepInt and not any(s == q for q in shape if type(q) is DeepInt)]
    same: Any = next((s for s in have if type(s) is DeepInt and s == size), size)
    if not gone and m and (size.values == size.values[0]).all():
        same = int(size.values[0])
    return (*shape[:at], same, *shape[at + 1 :])


Nest.deep_infer = staticmethod(deep_infer)
