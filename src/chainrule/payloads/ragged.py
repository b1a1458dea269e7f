"""Ragged sizes: a size that differs between the components of a nest, and the geometry of a nest.

A :class:`RaggedInt` stands where an ordinary tensor has an int in its shape. It adds, multiplies and compares like one,
component by component, so that code written for ordinary shapes runs on ragged ones; what needs one concrete number raises.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..core.errors import ChainruleError


class RaggedInt:
    """A size with one value for each component; inside ``vmap`` it knows the level that maps over the components."""

    __slots__ = ("level", "values")

    def __init__(self, values: Any, level: Any = None) -> None:
        self.values, self.level = values, level

    def __repr__(self) -> str:
        return "j" + "/".join(map(str, self.values[:4].tolist())) + ("/…" if len(self.values) > 4 else "")

    def _concrete(self, what: str) -> Any:
        raise ChainruleError(
            f"{what} needs one concrete size, but this dimension is ragged: its size is {self!r}, one for each component. "
            f"Reduce over it, use negative dims or -1 sizes, or convert with to_padded_tensor() first."
        )

    def __index__(self) -> int:
        return self._concrete("an index, a range or a shape")

    def __int__(self) -> int:
        return self._concrete("int()")

    def __float__(self) -> float:
        return self._concrete("float()")

    def __bool__(self) -> bool:
        return bool(self.values.any())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RaggedInt):
            return self.values is other.values or np.array_equal(self.values, other.values)
        return isinstance(other, int) and bool((self.values == other).all())

    def __hash__(self) -> int:
        return hash(self.values.tobytes())

    def _with(self, other: Any, f: Any) -> Any:
        level = self.level or getattr(other, "level", None)
        return RaggedInt(np.asarray(f(self.values, other.values if isinstance(other, RaggedInt) else other)), level)

    def __add__(self, o: Any) -> Any:
        return self._with(o, np.add)

    def __mul__(self, o: Any) -> Any:
        return self._with(o, np.multiply)

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, o: Any) -> Any:
        return self._with(o, np.subtract)

    def __rsub__(self, o: Any) -> Any:
        return self._with(o, lambda a, b: b - a)

    def __floordiv__(self, o: Any) -> Any:
        return self._with(o, np.floor_divide)

    def __rfloordiv__(self, o: Any) -> Any:
        return self._with(o, lambda a, b: b // a)

    def __mod__(self, o: Any) -> Any:
        return self._with(o, np.mod)

    def sliced(self, key: slice) -> RaggedInt:
        """The size after slicing."""
        a, b = (_clip(v, self.values, d) for v, d in ((key.start, 0), (key.stop, self.values)))
        step = 1 if key.step is None else int(key.step)
        return RaggedInt(np.maximum(-(-(b - a) // step), 0), self.level)

    def __neg__(self) -> Any:
        return RaggedInt(-self.values, self.level)

    def __lt__(self, o: Any) -> bool:
        return bool((self.values < _plain(o)).all())

    def __le__(self, o: Any) -> bool:
        return bool((self.values <= _plain(o)).all())

    def __gt__(self, o: Any) -> bool:
        return bool((self.values > _plain(o)).all())

    def __ge__(self, o: Any) -> bool:
        return bool((self.values >= _plain(o)).all())


def _clip(v: Any, size: Any, default: Any) -> Any:
    if v is None:
        return default
    a = np.asarray(v.values if isinstance(v, RaggedInt) else v)
    return np.clip(np.where(a < 0, a + size, a), 0, size)


def _plain(o: Any) -> Any:
    return o.values if isinstance(o, RaggedInt) else o


def is_ragged(shape: Any) -> bool:
    """Whether a shape has a ragged size."""
    for s in shape:
        if type(s) is RaggedInt:
            return True
    return False


class Geometry:
    """The sizes of all components: a matrix ``[components, dims]``, and which dims are ragged; the rest is derived, once.

    The dims up to the last ragged one make packed rows, the uniform dims after it make a row's shape. ``template`` has the
    sizes of the uniform dims, for a nest without components.
    """

    def __init__(self, sizes: np.ndarray, ragged: tuple[bool, ...], template: tuple[int, ...] = ()) -> None:
        self.sizes, self.ragged = sizes, ragged
        self.n, self.k = sizes.shape
        self.template = template or (0,) * self.k

    @functools.cached_property
    def columns(self) -> tuple[Any, ...]:
        """The size of each dim of a component: an int for a uniform dim, a RaggedInt for a ragged one."""
        first = self.sizes[0] if self.n else self.template
        return tuple(RaggedInt(np.ascontiguousarray(self.sizes[:, d])) if r else int(first[d]) for d, r in enumerate(self.ragged))

    @functools.cached_property
    def shape(self) -> tuple[Any, ...]:
        """The logical shape, the nesting dim first."""
        return (self.n, *self.columns)

    @functools.cached_property
    def ragged_until(self) -> int:
        """The number of leading dims of a component up to and including the last ragged one."""
        return max((d + 1 for d, r in enumerate(self.ragged) if r), default=0)

    @functools.cached_property
    def trail(self) -> tuple[int, ...]:
        """The shape of a packed row."""
        return tuple(int(c) for c in self.columns[self.ragged_until :])

    @functools.cached_property
    def counts(self) -> np.ndarray:
        """Packed rows of each component."""
        return self.sizes[:, : self.ragged_until].prod(1, dtype=np.int64)

    @functools.cached_property
    def offsets(self) -> np.ndarray:
        """Where each component's packed rows start; one more entry for the end."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    @functools.cached_property
    def total(self) -> int:
        """Packed rows altogether."""
        return int(self.counts.sum())

    @functools.cached_property
    def owner(self) -> np.ndarray:
        """The component of each packed row."""
        return np.repeat(np.arange(self.n), self.counts)

    @functools.cached_property
    def coordinates(self) -> tuple[np.ndarray, ...]:
        """The position of each packed row in each of the leading dims of its component."""
        inside = np.arange(self.total) - self.offsets[:-1][self.owner]
        out = []
        for d in range(self.ragged_until - 1, -1, -1):
            size = self.sizes[self.owner, d]
            out.append(inside % np.maximum(size, 1))
            inside = inside // np.maximum(size, 1)
        return tuple(reversed(out))

    def row_of(self, owner: np.ndarray, coords: list[np.ndarray]) -> np.ndarray:
        """The packed row at a position of a component."""
        at = np.zeros(len(owner), np.int64)
        for d, c in enumerate(coords):
            at = at * self.sizes[owner, d] + c
        return self.offsets[:-1][owner] + at

    def same(self, other: Geometry) -> bool:
        """Whether two nests have components of the same sizes."""
        return self is other or (
            self.ragged == other.ragged and self.sizes.shape == other.sizes.shape and bool((self.sizes == other.sizes).all())
        )

    def take(self, members: np.ndarray) -> Geometry:
        """The geometry of some of the components."""
        return Geometry(self.sizes[members], self.ragged, tuple(0 if r else int(c) for r, c in zip(self.ragged, self.columns, strict=True)))


def geometry_of(shape: tuple[Any, ...], n: int) -> Geometry:
    """The geometry of `n` components of sizes ``shape``, some of them ragged."""
    sizes = np.empty((n, len(shape)), np.int64)
    for d, s in enumerate(shape):
        sizes[:, d] = s.values if type(s) is RaggedInt else s
    return Geometry(sizes, tuple(type(s) is RaggedInt for s in shape), tuple(0 if type(s) is RaggedInt else int(s) for s in shape))
