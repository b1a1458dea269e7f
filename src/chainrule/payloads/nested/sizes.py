"""Ragged sizes: a size that differs between the components of a nest, and the geometry of a nest.

A :class:`RaggedInt` stands where an ordinary tensor has an int in its shape. It adds, multiplies and compares like one,
component by component, so that code written for ordinary shapes runs on ragged ones; what needs one concrete number raises.
A :class:`Nest` is the size of the nesting dim: an int that, multiplied by ragged sizes, counts elements of all components.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dispatch import innermost
from ...core.errors import ChainruleError
from ...core.sizes import SEEN, Ragged
from ...core.tensor import Tensor

ndarray = np.ndarray


class lazy:
    """A property that is computed once: functools.cached_property without its lock, which costs more than most of these."""

    def __init__(self, f: Callable[[Any], Any]) -> None:
        self.f, self.name, self.__doc__ = f, f.__name__, f.__doc__

    def __get__(self, x: Any, owner: type | None = None) -> Any:
        if x is None:
            return self
        v = x.__dict__[self.name] = self.f(x)
        return v


class RaggedInt(Ragged):
    """A size with one value for each component; inside ``vmap`` it knows the level that maps over the components.

    `at` is the axis of the components in the arrays that the size speaks of: other vmaps put theirs in front.
    """

    __slots__ = ("at", "level", "values", "within")

    def __init__(self, values: Any, level: Any = None, at: int = 0) -> None:
        self.values, self.level, self.at = values, level, at
        self.within: ndarray | None = None  # of a number of elements of nests of nests: that of each inner component
        if not SEEN:
            SEEN.append(True)

    def lowered(self, level: Any) -> RaggedInt:
        return RaggedInt(self.values) if self.level is level else self.moved(1) if self.level is None else self

    def raised(self, level: Any, own: bool) -> RaggedInt:
        return self if self.level is not None else RaggedInt(self.values, level) if own else self.moved(-1)

    def as_tensor(self, others: list[Tensor]) -> Tensor:
        v = self.values
        if v.dtype.kind == "f":
            v = v.astype(next((innermost(t).dtype for t in others if innermost(t).dtype.kind in "fcV"), v.dtype))
        if self.level is not None:
            return Tensor(Tensor(v), self.level)
        return Tensor(v.reshape(self.tensor_shape(max(t.ndim for t in others))))

    def moved(self, by: int) -> RaggedInt:
        """The size as a level sees it for which the components are `by` axes further back."""
        return RaggedInt(self.values, self.level, self.at + by)

    def tensor_shape(self, nd: int) -> tuple[int, ...]:
        """The shape in which the sizes broadcast against an array of `nd` axes."""
        return (*(1,) * self.at, -1, *(1,) * (nd - 1 - self.at))

    def __repr__(self) -> str:
        return "j" + "/".join(map(str, self.values[:4].tolist())) + ("/…" if len(self.values) > 4 else "")

    def _concrete(self, what: str) -> Any:
        raise ChainruleError(
            f"{what} needs one concrete size, but this dimension is ragged: its size is {self!r}, one for each component. "
            f"Reduce over it, take slices, use negative dims, -1 sizes or like-functions (zeros_like), or to_padded_tensor() first; "
            f"in arithmetic write x.shape[0] ** 0.5 for math.sqrt(...), and x.shape[0] for len(x)."
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
        # Never equal to 1, even where all components have size 1: a ragged dim is not one that broadcasts.
        return isinstance(other, int) and other != 1 and len(self.values) > 0 and bool((self.values == other).all())

    def __hash__(self) -> int:
        return hash(self.values.tobytes())

    def _with(self, other: Any, f: Any) -> Any:
        level, at = self.level or getattr(other, "level", None), max(self.at, getattr(other, "at", 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return RaggedInt(
                np.asarray(f(self.values, other.values if isinstance(other, RaggedInt) else other)), level, at
            )

    def __add__(self, o: Any) -> Any:
        return self._with(o, np.add)

    def __mul__(self, o: Any) -> Any:
        if type(o) is Nest:
            return o * self
        y = self._with(o, np.multiply)
        if self.within is not None and isinstance(o, int):
            y.within = self.within * o
        return y

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, o: Any) -> Any:
        return self._with(o, np.subtract)

    def __rsub__(self, o: Any) -> Any:
        return self._with(o, lambda a, b: b - a)

    def __floordiv__(self, o: Any) -> Any:
        return self._with(o, np.floor_divide)

    def __rfloordiv__(self, o: Any) -> Any:
        return self._with(o, lambda a, b: b // a)

    def __truediv__(self, o: Any) -> Any:
        return self._with(o, np.true_divide)

    def __rtruediv__(self, o: Any) -> Any:
        return self._with(o, lambda a, b: b / a)

    def __pow__(self, o: Any) -> Any:
        return self._with(o, lambda a, b: a.astype(np.float64) ** b)

    def __mod__(self, o: Any) -> Any:
        return self._with(o, np.mod)

    def __neg__(self) -> Any:
        return RaggedInt(-self.values, self.level, self.at)

    def __lt__(self, o: Any) -> bool:
        return self._truth(self.values < plain(o), "<", o, False)

    def __le__(self, o: Any) -> bool:
        return self._truth(self.values <= plain(o), "<=", o, True)

    def __gt__(self, o: Any) -> bool:
        return self._truth(self.values > plain(o), ">", o, False)

    def __ge__(self, o: Any) -> bool:
        return self._truth(self.values >= plain(o), ">=", o, True)

    def _truth(self, each: ndarray, sign: str, other: Any, empty: bool) -> bool:
        """What all components agree on; Python code cannot go two ways at once."""
        if not len(each):
            return empty
        first = bool(each[0])
        if (each == first).all():
            return first
        i = int(np.argmax(each != first))
        raise ChainruleError(
            f"the size {self!r} {sign} {other!r} is {first} in component 0 and {not first} in component {i}, of size {self.values[i]}: "
            f"a function that branches on a ragged size needs the same answer for all components. Use where(), masks or slices, "
            f"which stop at each component's end, or sort the components into nests that agree."
        )

    def chosen(self, size: Any, key: Any) -> Any:
        if type(size) is not Nest or self.level is not None:
            return self
        return RaggedInt(self.values[key], None, self.at) if isinstance(key, slice) else int(self.values[key])

    def like(self, values: ndarray) -> RaggedInt:
        """Another size of the same components."""
        return RaggedInt(values, self.level, self.at)

    def whole(self) -> tuple[Any, ...]:
        """The shape of a nest of vectors of this size."""
        return geometry_of((self,), len(self.values)).shape

    def many(self, each: ndarray, within: ndarray | None) -> tuple[ndarray, ndarray | None]:
        """The number of elements where each of `each` has this size: of each component, and of each inner one where these differ."""
        return each * self.values, None

    @property
    def most(self) -> int:
        """The greatest size."""
        return int(self.values.max(initial=0))

    @property
    def none(self) -> RaggedInt:
        """1 in the components whose size is 0, and 0 in the others."""
        return RaggedInt((self.values == 0).astype(np.int64), self.level, self.at)

    def agrees(self, other: Any) -> bool:
        """Whether the size is `other` in every component: as `==`, but also of 1, where nothing is to be repeated."""
        v = plain(other)
        return (np.ndim(v) == 0 or len(v) == len(self.values)) and bool(np.all(self.values == v))

    def covers(self, other: Any) -> bool:
        """Whether every component has at least the size `other`."""
        return bool((self.values >= plain(other)).all())

    def unlike(self, other: Any) -> str:
        """The end of a message: the first component whose size is not `other`."""
        return self._first(self.values != plain(other))

    def less(self, other: Any) -> str:
        """The end of a message: the first component whose size is less than `other`."""
        return self._first(self.values < plain(other))

    def _first(self, bad: ndarray) -> str:
        i = int(np.argmax(bad))
        return f"; component {i} has size {self.values[i]} there" if bad.any() else ""

    def sliced(self, key: slice) -> RaggedInt:
        """The size after slicing."""
        a, b = (bound(v, self.values, d) for v, d in ((key.start, 0), (key.stop, self.values)))
        step = 1 if key.step is None else int(key.step)
        return RaggedInt(np.maximum(-(-(b - a) // step), 0), self.level, self.at)


def bound(v: Any, size: ndarray, default: Any) -> ndarray:
    """A slice's start or stop in each component: from the end where it is negative, and no further than the end."""
    if v is None:
        return np.broadcast_to(np.asarray(default), size.shape)
    a = np.asarray(v.values if isinstance(v, RaggedInt) else int(v))
    return np.clip(np.where(a < 0, a + size, a), 0, size)


def plain(o: Any) -> Any:
    """The values of a ragged size, or the number itself."""
    return o.values if isinstance(o, RaggedInt) else o


class Nest(int):
    """The number of components, or (multiplied by sizes) of elements in all of them; ``each`` has every component's share.

    As the size of a nesting dim it also knows the sizes of the components: `columns`.
    """

    each: ndarray
    columns: tuple[Any, ...] | None
    within: ndarray | None = None
    deep_infer: Any = None  # the same for nests of nests, which declare it

    def __new__(cls, each: ndarray, columns: tuple[Any, ...] | None = None) -> Nest:
        n = super().__new__(cls, int(each.sum()) if columns is None else len(each))
        n.each, n.columns = each, columns
        return n

    def __reduce__(self) -> Any:
        return int, (int(self),)

    def __mul__(self, o: Any) -> Any:
        if type(o) is int and o == 1:
            return self
        if type(o) is Nest:
            return Nest(self.each * o.each)
        if not isinstance(o, int | RaggedInt):
            return int.__mul__(self, o)
        # Nests of nests count what each inner component has, to be multiplied by its own sizes.
        each, within = o.many(self.each, self.within) if isinstance(o, RaggedInt) else (self.each * o, None)
        if self.within is not None and isinstance(o, int):
            within = self.within * o
        y = Nest(each)
        y.within = within
        return y

    __rmul__ = __mul__

    def _behind(self, shape: tuple[Any, ...], have: Any, here: int) -> tuple[Any, ...] | None:
        """`shape` with the nesting dim at `here`, behind as many elements of other dims as it is now; None where that is not so."""
        was = next((i for i, s in enumerate(have) if type(s) is Nest), None)
        if was is None or math.prod(shape[:here]) != math.prod(have[:was]):
            return None
        own: Any = Nest(_ones(len(have[was].each)))
        for s in have[was + 1 :]:
            own = own * s
        return (*shape[:here], *own.infer_size(shape[here:], have[was:]))

    def infer_size(self, shape: tuple[Any, ...], have: Any) -> tuple[Any, ...]:
        """`shape` with its -1 replaced: in front it stands for all components' rows, elsewhere for a size of its own in each."""
        if self.deep_infer is not None and (found := self.deep_infer(shape, have)) is not None:
            return found
        at = next((i for i, s in enumerate(shape) if not isinstance(s, RaggedInt) and s == -1), None)
        here = next((i for i, s in enumerate(shape) if type(s) is Nest), 0)
        if here and at is None and (y := self._behind(shape, have, here)) is not None:
            return y
        known = 1
        for i, s in enumerate(shape):
            if i != at and (i or at == 0):
                known = known * s
        if at == 0:
            if is_ragged(shape):
                raise ChainruleError(f"reshape: the nesting dim cannot be inferred beside ragged sizes: {list(shape)}")
            if not known or int(self) % known:
                raise RuntimeError(
                    f"shape '{list(shape)}' is invalid for a nested tensor of {int(self)} elements (shape {list(have)})"
                )
            return (int(self) // known, *shape[1:])
        if not is_ragged(shape) and at is None:
            if known * shape[0] == int(self):
                return shape
        count = next((s for s in have if type(s) is Nest), have[0])
        if shape[0] != count:
            raise RuntimeError(
                f"reshape: the first size is the number of components and must stay {int(count)}, or be -1 to join all rows; got {list(shape)}"
            )
        first = (count, *shape[1:])
        k = plain(known)
        if at is None:
            bad = np.flatnonzero(self.each != k)
        else:
            bad = np.flatnonzero((self.each % np.maximum(k, 1) != 0) | (np.asarray(k) == 0) & (self.each > 0))
        if len(bad):
            raise RuntimeError(
                f"shape '{list(shape)}' is invalid: component {bad[0]} has {self.each[bad[0]]} elements (input of shape {list(have)})"
            )
        if at is None:
            return first
        size = RaggedInt(self.each // np.maximum(k, 1))
        # The inferred size is an old ragged one where they agree, and uniform where the ragged dims are all named.
        same: Any = next((s for s in have if type(s) is RaggedInt and s == size), size)
        named = [s for s in shape if type(s) is RaggedInt]
        gone = [s for s in have if type(s) is RaggedInt and not any(s == m for m in named)]
        if not gone and len(size.values) and (size.values == size.values[0]).all():
            same = int(size.values[0])
        return (*first[:at], same, *first[at + 1 :])


def is_ragged(shape: Any) -> bool:
    """Whether a shape has a ragged size."""
    return any(isinstance(s, RaggedInt) for s in shape)


class Packing:
    """How components lie in one buffer: their sizes in the dims up to the last ragged one; the rest is derived, once."""

    def __init__(self, columns: tuple[Any, ...], n: int) -> None:
        self.columns, self.n, self.u = columns, n, len(columns)
        self.memo: dict[Any, Any] = {}

    @lazy
    def sizes(self) -> ndarray:
        """The matrix ``[components, dims]`` of sizes."""
        out = np.empty((self.n, self.u), np.int64)
        for d, s in enumerate(self.columns):
            out[:, d] = plain(s)
        return out

    @lazy
    def counts(self) -> ndarray:
        """Packed rows of each component."""
        return self.columns[0].values if self.u == 1 else self.sizes.prod(1, dtype=np.int64)

    @lazy
    def offsets(self) -> ndarray:
        """Where each component's packed rows start; one more entry for the end."""
        out = np.zeros(self.n + 1, np.int64)
        np.cumsum(self.counts, out=out[1:])
        return out

    @lazy
    def total(self) -> int:
        """Packed rows altogether."""
        return int(self.offsets[-1])

    @lazy
    def owner(self) -> ndarray:
        """The component of each packed row."""
        return np.repeat(np.arange(self.n), self.counts)

    @lazy
    def coordinates(self) -> tuple[ndarray, ...]:
        """The position of each packed row in each dim of its component."""
        # From the outermost dim inwards by repeating: dividing the numbers of the rows costs several times as much.
        owner = np.arange(self.n)
        coords: list[ndarray] = []
        for d in range(self.u):
            size = self.sizes[owner, d]
            starts = np.cumsum(size) - size
            coords = [np.repeat(c, size) for c in coords]
            coords.append(np.arange(int(size.sum())) - np.repeat(starts, size))
            if d < self.u - 1:
                owner = np.repeat(owner, size)
        return tuple(coords)

    def row_of(self, owner: ndarray, coords: list[ndarray]) -> ndarray:
        """The packed row at a position of a component."""
        at = np.zeros(len(owner), np.int64)
        for d, c in enumerate(coords):
            at = at * self.sizes[owner, d] + c
        return self.offsets[:-1][owner] + at

    def rows_of(self, members: ndarray) -> ndarray:
        """The packed rows of some of the components, one after the other."""
        counts = self.counts[members]
        starts = np.cumsum(counts) - counts
        return np.repeat(self.offsets[:-1][members] - starts, counts) + np.arange(int(counts.sum()))

    def span(self, members: ndarray) -> Any:
        """The same as an index, a slice where there is one member."""
        if len(members) != 1:
            return self.rows_of(members)
        return slice(int(self.offsets[members[0]]), int(self.offsets[members[0] + 1]))


_PACKINGS: weakref.WeakValueDictionary[Any, Packing] = weakref.WeakValueDictionary()


class Geometry:
    """The sizes of all components: the dims up to the last ragged one make packed rows, the dims after it a row's shape."""

    __slots__ = ("__dict__", "k", "n", "packing", "trail", "u")

    def __init__(self, packing: Packing, trail: tuple[int, ...]) -> None:
        self.packing, self.trail = packing, trail
        self.n, self.u = packing.n, packing.u
        self.k = packing.u + len(trail)
        if not SEEN:
            SEEN.append(True)

    @lazy
    def columns(self) -> tuple[Any, ...]:
        """The size of each dim of a component: an int for a uniform dim, a RaggedInt for a ragged one."""
        return (*self.packing.columns, *self.trail)

    @lazy
    def shape(self) -> tuple[Any, ...]:
        """The logical shape, the nesting dim first."""
        return (Nest(_ones(self.n), self.columns), *self.columns)

    @lazy
    def sizes(self) -> ndarray:
        """The matrix ``[components, dims]`` of all sizes."""
        t = np.broadcast_to(np.array(self.trail, np.int64), (self.n, len(self.trail)))
        return np.concatenate([self.packing.sizes, t], 1)

    @property
    def width(self) -> int:
        """Elements of a packed row."""
        w = 1
        for m in self.trail:
            w *= m
        return w

    @property
    def rows(self) -> tuple[int, ...]:
        """The shape of the buffer."""
        return (self.packing.total, *self.trail)

    def same(self, other: Geometry) -> bool:
        """Whether two nests have components of the same sizes."""
        if self.packing is other.packing:
            return self.trail == other.trail
        return self.n == other.n and self.columns == other.columns

    def take(self, members: ndarray) -> Geometry:
        """The geometry of some of the components."""
        return Geometry(
            packing_of(
                tuple(RaggedInt(c.values[members]) if type(c) is RaggedInt else c for c in self.packing.columns),
                len(members),
            ),
            self.trail,
        )

    def elements(self) -> tuple[ndarray, list[ndarray]]:
        """Owner and coordinates of every single element."""
        p, w = self.packing, self.width
        inner = np.indices(self.trail).reshape(len(self.trail), -1) if self.trail else np.zeros((0, 1), np.int64)
        return np.repeat(p.owner, w), [*[np.repeat(c, w) for c in p.coordinates], *[np.tile(i, p.total) for i in inner]]

    def element_at(self, owner: ndarray, coords: list[ndarray]) -> ndarray:
        """The place of an element in the flat buffer."""
        at: Any = 0
        for d, c in enumerate(coords):
            size = self.columns[d]
            at = c if d == 0 else at * (size.values.take(owner) if type(size) is RaggedInt else size) + c
        return (self.packing.offsets[:-1] * self.width).take(owner) + at


def packing_of(columns: tuple[Any, ...], n: int) -> Packing:
    """The packing of `n` components; nests with the same ragged sizes share one and what is derived from it."""
    key = (n, *[id(c.values) if type(c) is RaggedInt else -c - 1 for c in columns])
    p = _PACKINGS.get(key)
    if p is None:
        p = _PACKINGS[key] = Packing(
            tuple([RaggedInt(c.values) if type(c) is RaggedInt else int(c) for c in columns]), n
        )
    return p


@functools.lru_cache(256)
def _ones(n: int) -> ndarray:
    return np.ones(n, np.int64)


def geometry_of(shape: tuple[Any, ...], n: int) -> Geometry:
    """The geometry of `n` components of sizes ``shape``, some of them ragged."""
    u = 0
    for d, s in enumerate(shape):
        if type(s) is RaggedInt:
            u = d + 1
            if len(s.values) != n:
                raise ChainruleError(f"a ragged size {s!r} of {len(s.values)} components does not fit a nest of {n}")
    if u == 0:
        # No ragged dim: every component is one row.
        return Geometry(packing_of((), n), tuple([int(s) for s in shape]))
    return Geometry(packing_of(tuple(shape[:u]), n), tuple([int(s) for s in shape[u:]]))
