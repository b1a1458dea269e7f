"""Sizes: what stands in a shape. Mostly ints; a ragged size is one number for each component of a nest.

Ops say which of their static data are sizes (``op(sizes="shape old")``), and only those are looked at: for the level that a ragged
size belongs to, for the payload that can run the op on it, and by ``vmap``, for which sizes move by an axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .dispatch import Interpreter
    from .payload import Payload
    from .tensor import Tensor

SEEN: list[bool] = []  # not empty once a ragged size was made: whoever has none does not pay for looking


class Ragged:
    """A size that is no int: it adds, multiplies and compares like one, and knows the level that maps over its components."""

    __slots__ = ()
    level: Interpreter | None
    payload: Payload  # which runs ops on dense tensors whose static data speak of such a size

    def lowered(self, level: Any) -> Ragged:
        """The size as the level below `level` sees it."""
        raise NotImplementedError(f"{type(self).__name__}.lowered")

    def raised(self, level: Any, own: bool) -> Ragged:
        """The size as `level` sees it; `own` says that the level maps over the components."""
        raise NotImplementedError(f"{type(self).__name__}.raised")

    def entered(self, level: Any) -> Ragged:
        """The size as `level` sees it, which maps over a ragged dim in front."""
        return self

    def chosen(self, size: Any, key: Any) -> Any:
        """What is left of the size where of a dim of `size` in front of it `key` (an int or a slice) is taken."""
        return self

    def as_tensor(self, others: list[Tensor]) -> Tensor:
        """The size as an operand beside other tensors: a number for each component."""
        raise NotImplementedError(f"{type(self).__name__}.as_tensor")


def ragged_in(v: Any) -> Iterator[Ragged]:
    """The ragged sizes in a static datum: in tuples and slices too."""
    if isinstance(v, Ragged):
        yield v
    elif type(v) is tuple or type(v) is list:
        for s in v:
            if type(s) is not int:
                yield from ragged_in(s)
    elif type(v) is slice:
        yield from ragged_in((v.start, v.stop, v.step))


def is_ragged(n: Any) -> bool:
    """Whether a size differs between components."""
    return isinstance(n, Ragged)


def has_ragged(shape: Any) -> bool:
    """Whether a shape has a ragged size."""
    return bool(SEEN) and any(isinstance(n, Ragged) for n in shape)


def first_ragged(names: tuple[str, ...], kw: dict[str, Any]) -> Ragged | None:
    """The first ragged size among the static data of these names; shapes of ints, the common case, are passed over quickly."""
    for k in names:
        v = kw.get(k)
        for s in v if v.__class__ is tuple else (v,):
            if s.__class__ is not int and s is not None and (r := next(ragged_in(s), None)) is not None:
                return r
    return None


def highest_level(names: tuple[str, ...], kw: dict[str, Any]) -> Any:
    """The innermost level that ragged sizes in these static data belong to."""
    top: Any = None
    for k in names:
        for r in ragged_in(kw.get(k)):
            if r.level is not None and (top is None or r.level.level > top.level):
                top = r.level
    return top


def lowered(level: Any, v: Any) -> Any:
    """A static datum or an argument with its ragged sizes as the level below `level` sees them."""
    if isinstance(v, Ragged):
        return v.lowered(level)
    if type(v) is tuple:
        return tuple([s if type(s) is int else lowered(level, s) for s in v])
    return slice(*[lowered(level, s) for s in (v.start, v.stop, v.step)]) if type(v) is slice else v
