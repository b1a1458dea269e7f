"""Where the numbers of a sparse array stand: index arrays in one of five layouts, and all that is worked out from them.

A pattern is static data. It never changes, so what follows from it (the transpose, the order by rows, how two patterns meet) is
worked out once and kept with it. The numbers of an array lie in an array ``values[*head, *dense]``; ``flat`` says where in the
sparse dims each of them stands, in row-major order. Everything that is not about one layout is about ``flat``.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

ndarray = np.ndarray
COMPRESSED = ("csr", "csc", "bsr", "bsc")


def _fixed(i: ndarray) -> ndarray:
    """Index data that nobody writes to through this array: compiled loops trust them."""
    if i.flags.writeable:
        i = i.view()
        i.flags.writeable = False
    return i


class Pattern:
    """Coordinates ``index[0][sparse_dim, nnz]`` (coo), or compressed and plain indices ``index`` of rows or columns, of numbers or blocks."""

    __slots__ = ("__weakref__", "block", "coalesced", "dense", "index", "layout", "memo", "plans", "shape")

    def __init__(
        self,
        layout: str,
        shape: tuple[int, ...],
        index: tuple[ndarray, ...],
        dense: int = 0,
        block: tuple[int, int] | None = None,
        coalesced: bool = True,
    ) -> None:
        self.layout, self.shape, self.dense, self.block = layout, shape, dense, block
        self.index = tuple([_fixed(i) for i in index])
        self.coalesced = coalesced  # sorted, and no coordinate twice
        self.memo: dict[Any, Any] = {}
        self.plans: Any = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"<pattern {self.layout} {list(self.shape)}, {self.count} numbers>"

    # -- sizes --------------------------------------------------------------------------------------------------------
    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def sparse_shape(self) -> tuple[int, ...]:
        """The sizes of the dims that are not dense."""
        return self.shape[: len(self.shape) - self.dense]

    @property
    def dense_shape(self) -> tuple[int, ...]:
        return self.shape[len(self.shape) - self.dense :]

    @property
    def batch(self) -> tuple[int, ...]:
        """The batch dims of the compressed layouts."""
        return () if self.layout == "coo" else self.index[1].shape[:-1]

    @property
    def nnz(self) -> int:
        """The number of entries (of each matrix of a batch): coordinates, or blocks."""
        return self.index[-1].shape[-1]

    @property
    def head(self) -> tuple[int, ...]:
        """The shape of the numbers in front of the dense dims."""
        return (*self.batch, self.nnz, *(self.block or ()))

    @property
    def count(self) -> int:
        """How many numbers there are, dense dims not counted."""
        return math.prod(self.head)

    @property
    def values_shape(self) -> tuple[int, ...]:
        return (*self.head, *self.dense_shape)

    # -- where --------------------------------------------------------------------------------------------------------
    @property
    def coordinates(self) -> ndarray:
        """The coordinates of all numbers, ``[sparse dims, count]``."""
        if self.layout == "coo":
            return self.index[0]
        found = self.memo.get("coordinates")
        if found is None:
            found = self.memo["coordinates"] = self._coordinates()
        return found

    def _coordinates(self) -> ndarray:
        compressed, plain = self.index
        batch, nnz = self.batch, self.nnz
        major = len(compressed.shape) and compressed.shape[-1] - 1
        counts = np.diff(compressed.reshape(-1, major + 1), axis=-1).reshape(-1)
        b = len(counts) // max(major, 1) if major else math.prod(batch)
        rows = np.repeat(np.tile(np.arange(major), b), counts).reshape(b, nnz)
        cols = plain.reshape(b, nnz).astype(np.int64)
        which = np.broadcast_to(np.arange(b)[:, None], (b, nnz))
        pair = [rows, cols] if self.layout in ("csr", "bsr") else [cols, rows]
        if self.block is not None:
            h, w = self.block
            full = (b, nnz, h, w)
            pair = [pair[0][..., None, None] * h + np.arange(h)[:, None], pair[1][..., None, None] * w + np.arange(w)]
            pair = [np.broadcast_to(p, full) for p in pair]
            which = np.broadcast_to(which[..., None, None], full)
        each = np.unravel_index(which.reshape(-1), batch) if batch else ()
        return np.stack([*each, *[p.reshape(-1) for p in pair]])

    @property
    def flat(self) -> ndarray:
        """Where each number stands in the sparse dims, counted in row-major order."""
        found = self.memo.get("flat")
        if found is None:
            found = np.zeros(self.count, np.int64)
            for c, n in zip(self.coordinates, self.sparse_shape, strict=True):
                found = found * n + c
            self.memo["flat"] = found
        return found

    def places(self) -> tuple[ndarray, ndarray | None, ndarray | None]:
        """The distinct places in order, with how to reach them: an order of the numbers, and where the groups of equal ones begin."""
        found = self.memo.get("places")
        if found is None:
            f = self.flat
            if (self.layout == "coo" and self.coalesced) or (len(f) < 2 or bool((f[1:] > f[:-1]).all())):
                found = (f, None, None)
            else:
                order = np.argsort(f, kind="stable")
                s = f[order]
                new = np.ones(len(s), bool)
                new[1:] = s[1:] != s[:-1]
                if new.all():
                    found = (s, order, None)
                else:
                    starts = np.flatnonzero(new)
                    found = (s[starts], order, starts)
            self.memo["places"] = found
        return found

    @property
    def distinct(self) -> bool:
        """Whether no place occurs twice."""
        return (self.layout == "coo" and self.coalesced) or self.places()[2] is None

    def same(self, other: Pattern) -> bool:
        """Whether two patterns say the same."""
        return self is other or (
            self.layout == other.layout
            and self.shape == other.shape
            and self.dense == other.dense
            and self.block == other.block
            and all(
                a is b or (a.shape == b.shape and bool((a == b).all()))
                for a, b in zip(self.index, other.index, strict=True)
            )
        )

    # -- related patterns ---------------------------------------------------------------------------------------------
    def as_coo(self) -> Pattern:
        """The numbers in the order they lie in, by coordinates."""
        if self.layout == "coo":
            return self
        found = self.memo.get("coo")
        if found is None:
            f = self.flat
            ordered = len(f) < 2 or bool((f[1:] > f[:-1]).all())
            found = self.memo["coo"] = Pattern("coo", self.shape, (self.coordinates,), self.dense, None, ordered)
        return found

    def coalesce(self) -> Pattern:
        """The same places in order, each once."""
        if self.layout != "coo" or self.coalesced:
            return self
        found = self.memo.get("coalesced")
        if found is None:
            keys = self.places()[0]
            found = self.memo["coalesced"] = at_places(keys, self.sparse_shape, self.dense_shape)
        return found

    def repeated(self, lead: tuple[int, ...]) -> Pattern:
        """The pattern with dims of sizes `lead` in front, the same for each of their entries."""
        key = ("repeated", lead)
        found = self.memo.get(key)
        if found is None:
            shape = (*lead, *self.shape)
            if self.layout == "coo":
                n, k = self.nnz, math.prod(lead)
                front = np.repeat(np.stack(np.unravel_index(np.arange(k), lead)), n, axis=1)
                index = np.concatenate([front, np.tile(self.index[0], (1, k))])
                found = Pattern("coo", shape, (index,), self.dense, None, self.coalesced)
            else:
                wide = tuple(np.broadcast_to(i, (*lead, *i.shape)) for i in self.index)
                found = Pattern(self.layout, shape, wide, self.dense, self.block)
            self.memo[key] = found
        return found

    def transposed(self) -> Pattern:
        """Rows and columns exchanged, the numbers where they are: rows become columns, coordinates change places."""
        found = self.memo.get("transposed")
        if found is None:
            d = self.dense
            s = self.shape[: self.ndim - d]
            shape = (*s[:-2], s[-1], s[-2], *self.dense_shape)
            if self.layout == "coo":
                i = self.index[0]
                found = Pattern("coo", shape, (np.concatenate([i[:-2], i[-1:], i[-2:-1]]),), d, None, False)
            else:
                name = {"csr": "csc", "csc": "csr", "bsr": "bsc", "bsc": "bsr"}[self.layout]
                found = Pattern(name, shape, self.index, d, self.block and (self.block[1], self.block[0]))
            self.memo["transposed"] = found
        return found

    # -- as a matrix --------------------------------------------------------------------------------------------------
    def rows(self) -> tuple[ndarray, ndarray, ndarray | None]:
        """By rows: where each begins, the columns, and the order of the numbers (None: as they lie). Matrices of a batch stand on a diagonal."""
        found = self.memo.get("rows")
        if found is None:
            found = self.memo["rows"] = self._by(-2)
        return found

    def columns(self) -> tuple[ndarray, ndarray, ndarray | None]:
        """By columns: where each begins, the rows, and the order of the numbers."""
        found = self.memo.get("columns")
        if found is None:
            found = self.memo["columns"] = self._by(-1)
        return found

    def _by(self, axis: int) -> tuple[ndarray, ndarray, ndarray | None]:
        if self.layout == ("csr" if axis == -2 else "csc") and not self.batch:
            return (*[np.ascontiguousarray(i, np.int64) for i in self.index], None)  # type: ignore[return-value]
        c = self.coordinates.astype(np.int64, copy=False)
        s = self.sparse_shape
        which = np.zeros(self.count, np.int64)
        for b, n in zip(c[:-2], s[:-2], strict=True):
            which = which * n + b
        major, minor = which * s[axis] + c[axis], which * s[-3 - axis] + c[-3 - axis]
        n = math.prod(s[:-2]) * s[axis]
        start = np.zeros(n + 1, np.int64)
        np.cumsum(np.bincount(major, minlength=n), out=start[1:])
        if len(major) < 2 or bool((major[1:] >= major[:-1]).all()):
            return start, np.ascontiguousarray(minor), None
        order = np.argsort(major, kind="stable")
        return start, minor[order], order


def at_places(keys: ndarray, sparse_shape: tuple[int, ...], dense_shape: tuple[int, ...] = ()) -> Pattern:
    """The coalesced pattern of the places `keys`, sorted and distinct, of an array of these sizes."""
    index = np.stack(np.unravel_index(keys, sparse_shape)) if sparse_shape else np.zeros((0, len(keys)), np.int64)
    p = Pattern("coo", (*sparse_shape, *dense_shape), (index.astype(np.int64, copy=False),), len(dense_shape))
    p.memo["flat"] = keys
    return p


def union(a: Pattern, b: Pattern) -> Pattern:
    """All places of two patterns of one shape."""
    found = a.plans.setdefault(b, {}).get("union")
    if found is None:
        keys = np.union1d(a.places()[0], b.places()[0])
        found = a.plans[b]["union"] = at_places(keys, a.sparse_shape, a.dense_shape)
    return found


def meet(a: Pattern, b: Pattern) -> Pattern:
    """The places that two patterns of one shape share."""
    found = a.plans.setdefault(b, {}).get("meet")
    if found is None:
        keys = np.intersect1d(a.places()[0], b.places()[0], assume_unique=True)
        found = a.plans[b]["meet"] = at_places(keys, a.sparse_shape, a.dense_shape)
    return found


# -- numbers between patterns, and between a pattern and a dense array ---------------------------------------------------------


def listed(v: ndarray, p: Pattern) -> ndarray:
    """The numbers as one list, ``[*lead, count, *dense]``."""
    lead = v.shape[: v.ndim - len(p.head) - p.dense]
    return v.reshape((*lead, p.count, *p.dense_shape))


def along(v: ndarray, i: ndarray, p: Pattern) -> ndarray:
    """Entries `i` of the list of numbers."""
    return v.take(i, axis=v.ndim - p.dense - 1)


def grouped(v: ndarray, p: Pattern) -> ndarray:
    """The numbers at the distinct places of `p`, in order; those at one place added."""
    _, order, starts = p.places()
    if order is not None:
        v = along(v, order, p)
    if starts is not None:
        v = np.add.reduceat(v, starts, axis=v.ndim - p.dense - 1).astype(v.dtype, copy=False)
    return v


def relocate(v: ndarray, src: Pattern, dst: Pattern) -> ndarray:
    """At each number of `dst`, the sum of the numbers of `src` that stand there."""
    lead = v.shape[: v.ndim - len(src.head) - src.dense]
    want = (*lead, *dst.values_shape)
    if src is dst and src.distinct:
        return v
    plan = src.plans.setdefault(dst, {}).get("relocate")
    if plan is None:
        keys = src.places()[0]
        if len(keys):
            at = np.searchsorted(keys, dst.flat)
            at[at == len(keys)] = 0
            gone = keys[at] != dst.flat
            same = len(at) == len(keys) and not gone.any() and bool((at == np.arange(len(at))).all())
            plan = (None if same else at, gone if gone.any() else None)
        else:
            plan = (None, None)
        src.plans[dst]["relocate"] = plan
    v = listed(v, src)
    if not src.count:
        return np.zeros(want, v.dtype)
    v = grouped(v, src)
    at, gone = plan
    rest: Any = (slice(None),) * src.dense
    if at is not None:
        v = along(v, at, src)
        if gone is not None:
            v[(..., gone, *rest)] = 0
    return v.reshape(want)


def place(v: ndarray, p: Pattern) -> ndarray:
    """The dense array."""
    v = grouped(listed(v, p), p)
    lead = v.shape[: v.ndim - p.dense - 1]
    out = np.zeros((*lead, math.prod(p.sparse_shape), *p.dense_shape), v.dtype)
    key: Any = (..., p.places()[0], *(slice(None),) * p.dense)
    out[key] = v
    return out.reshape((*lead, *p.shape))


def pick(x: ndarray, p: Pattern) -> ndarray:
    """The numbers of a dense array at the places of `p`."""
    lead = x.shape[: x.ndim - p.ndim]
    rows = x.reshape((*lead, math.prod(p.sparse_shape), *p.dense_shape))
    if not rows.shape[len(lead)]:
        return np.zeros((*lead, *p.values_shape), x.dtype)
    return rows.take(p.flat, axis=len(lead)).reshape((*lead, *p.values_shape))


# -- layouts ----------------------------------------------------------------------------------------------------------------


def compress(keys: ndarray, shape: tuple[int, ...], dense: int, layout: str, block: Any = None) -> Pattern:
    """The pattern in a compressed layout that holds the places `keys` of the sparse dims (matrices, of a batch in front).

    The matrices of a batch have as many entries each: where their patterns differ, explicit zeros fill up.
    """
    s = shape[: len(shape) - dense]
    batch, (n, m) = s[:-2], s[-2:]
    h, w = block if block is not None else (1, 1)
    if n % h or m % w:
        raise RuntimeError(f"to_sparse_{layout}: the blocks {block} do not tile a matrix of shape {[n, m]}")
    b = math.prod(batch)
    mat, rest = np.divmod(keys, max(n * m, 1))
    r, c = np.divmod(rest, max(m, 1))
    r, c = r // h, c // w
    n, m = n // h, m // w
    if layout in ("csc", "bsc"):
        r, c, n, m = c, r, m, n
    cells = np.unique((mat * n + r) * m + c) if len(keys) else keys
    counts = np.bincount(cells // max(n * m, 1), minlength=b) if len(cells) else np.zeros(b, np.int64)
    most = int(counts.max(initial=0))
    if len(counts) and (counts != most).any():
        cells = np.concatenate([_filled(cells[cells // (n * m) == k], k * n * m, n * m, most) for k in range(b)])
    mat, rest = np.divmod(cells, max(n * m, 1))
    r, plain = np.divmod(rest, max(m, 1))
    start = np.zeros((b, n + 1), np.int64)
    if n:
        np.cumsum(np.bincount(mat * n + r, minlength=b * n).reshape(b, n), axis=1, out=start[:, 1:])
    index = (start.reshape((*batch, n + 1)), plain.reshape((*batch, most)))
    return Pattern(layout, shape, index, dense, (h, w) if layout in ("bsr", "bsc") else None)


def _filled(cells: ndarray, first: int, n: int, most: int) -> ndarray:
    """`most` cells of one matrix: those given, and the first others."""
    lack = most - len(cells)
    if not lack:
        return cells
    free = np.ones(n, bool)
    free[cells - first] = False
    return np.sort(np.concatenate([cells, first + np.flatnonzero(free)[:lack]]))


def convert(p: Pattern, layout: str, block: Any = None) -> Pattern:
    """The same places in another layout."""
    key = (layout, block)
    found = p.memo.get(key)
    if found is None:
        if layout == p.layout and block == p.block:
            found = p
        elif layout == "coo":
            found = at_places(p.places()[0], p.sparse_shape, p.dense_shape)
        else:
            found = compress(p.places()[0], p.shape, p.dense, layout, block)
        p.memo[key] = found
    return found
