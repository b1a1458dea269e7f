"""What a value of a graph is while code is made: a number, memory with strides, or an expression of such, computed where it is read.

Views need no rules: a view op's body runs on an array of bytes that nobody reads, of the strides that the memory has; where its result
shows that memory, its strides and its offset are the view's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels.lang import Array, DType, Kernel, Value, bool_, i64


class Unrenderable(Exception):
    """There is no code for this; the op runs by itself."""


class Num:
    """One number everywhere."""

    def __init__(self, number: Any, shape: tuple[int, ...]) -> None:
        self.number, self.shape = number, shape

    cost = 0


class Mem:
    """Elements of an array, from an offset on, with strides in elements."""

    cost = 0

    def __init__(
        self, array: Array, shape: tuple[int, ...], strides: tuple[int, ...] | None = None, offset: Any = 0
    ) -> None:
        self.array, self.shape, self.offset = array, tuple(shape), offset
        self.strides = contiguous(self.shape) if strides is None else tuple(strides)

    def is_contiguous(self) -> bool:
        """Whether the elements lie one after the other."""
        return all(n == 1 or s == c for n, s, c in zip(self.shape, self.strides, contiguous(self.shape), strict=True))


class Ex:
    """``f(k, *elements)`` of values that broadcast to the shape; `cost` counts additions."""

    def __init__(
        self, f: Callable[..., Value], args: list[Any], shape: tuple[int, ...], cost: int, kind: str = ""
    ) -> None:
        self.f, self.args, self.shape, self.cost, self.kind = f, args, tuple(shape), cost, kind
        self.padded: bool = any(isinstance(a, Pad) or (isinstance(a, Ex) and a.padded) for a in args)
        self.readers = 0  # of a value that is computed once: how many read it; then where it is, once it is in memory
        self.mem: Mem | None = None


class Pad:
    """Zeros of a shape with `inner` at the place where ``view(array)`` shows: the transpose of a slice."""

    def __init__(self, inner: Any, shape: tuple[int, ...], view: Callable[[np.ndarray], np.ndarray]) -> None:
        self.inner, self.shape, self.view, self.cost = inner, tuple(shape), view, inner.cost + 1


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of an array without gaps."""
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= n
    return tuple(reversed(out))


def shown(shape: tuple[int, ...], strides: tuple[int, ...], view: Callable[[np.ndarray], np.ndarray]) -> Any:
    """(shape, strides, offset) of a view of memory with these strides; None if the op copies."""
    if any(s < 0 for s in strides) or 0 in shape:
        return None
    size = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    whole = np.empty(size, np.uint8)
    a = np.ndarray(shape, np.uint8, whole, 0, strides)
    try:
        v = view(a)
    except (ValueError, TypeError, IndexError):
        return None
    if type(v) is not np.ndarray:
        return None
    if v.size == 0 or not np.may_share_memory(v, whole):
        return None
    return v.shape, v.strides, v.__array_interface__["data"][0] - whole.__array_interface__["data"][0]


def resolved(v: Any) -> Any:
    """The memory of an expression that was put there, else the value itself."""
    return v.mem if isinstance(v, Ex) and v.mem is not None else v


def padded(v: Any) -> bool:
    """Whether a value is padded with zeros, or an expression of such."""
    return isinstance(v, Pad) or (isinstance(v, Ex) and v.mem is None and v.padded)


def broadcast(v: Any, shape: tuple[int, ...]) -> Any:
    """The value with a shape that it broadcasts to."""
    v = resolved(v)
    if v.shape == tuple(shape):
        return v
    if isinstance(v, Num):
        return Num(v.number, tuple(shape))
    if isinstance(v, Mem):
        lead = len(shape) - len(v.shape)
        strides = (0,) * lead + tuple(0 if n == 1 else s for n, s in zip(v.shape, v.strides, strict=True))
        return Mem(v.array, shape, strides, v.offset)
    if isinstance(v, Ex):
        return Ex(v.f, v.args, shape, v.cost, v.kind if v.shape == tuple(shape) else "")
    raise Unrenderable("a padded value is broadcast")


def viewed(v: Any, view: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...], done: Any = None) -> Any:
    """The value that a view op makes of another; None if it must be put into memory first.

    What is read in several places stays one expression (`done`): the places multiply along a chain.
    """
    v = resolved(v)
    done = {} if done is None else done
    if id(v) in done:
        return done[id(v)]
    done[id(v)] = got = _viewed(v, view, shape, done)
    return got


def _viewed(v: Any, view: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...], done: dict[int, Any]) -> Any:
    if isinstance(v, Num):
        return Num(v.number, shape)
    if isinstance(v, Mem):
        got = shown(v.shape, v.strides, view)
        if got is None:
            return None
        assert got[0] == tuple(shape)
        return Mem(v.array, got[0], got[1], v.offset + got[2] if got[2] or isinstance(v.offset, int) else v.offset)
    if isinstance(v, Ex):
        wide = [a if isinstance(a, Pad) else broadcast(a, v.shape) for a in v.args]
        done.setdefault(0, []).extend(wide)  # what is known by its number lives as long as the numbers
        args = [None if isinstance(a, Pad) else viewed(a, view, shape, done) for a in wide]
        return (
            None
            if any(a is None for a in args)
            else Ex(v.f, args, shape, v.cost, v.kind if v.kind == "product" else "")
        )
    return None


def leaves(v: Any, shape: tuple[int, ...], out: dict[int, Any] | None = None) -> dict[int, Any]:
    """The memory that an expression reads, each as it is seen from the shape that it is broadcast to."""
    out = {} if out is None else out
    seen: set[int] = set()
    stack = [v]
    while stack:
        v = resolved(stack.pop())
        if id(v) in seen:
            continue
        seen.add(id(v))
        if isinstance(v, Mem):
            out.setdefault(id(v), (v, broadcast(v, shape).strides))
        elif isinstance(v, Ex):
            stack.extend(reversed(v.args))
        elif isinstance(v, Pad):
            raise Unrenderable("a padded value inside an expression")
    return out


def shared(values: list[Any]) -> list[Ex]:
    """The parts of expressions that others read too, and that are nowhere in memory, in the order in which they are computed."""
    reads: dict[int, int] = {}
    found: dict[int, Ex] = {}

    def walk(v: Any) -> None:
        v = resolved(v)
        if not isinstance(v, Ex):
            return
        if v.readers:
            reads[id(v)] = reads.get(id(v), 0) + 1
            if id(v) in found:
                return
        for a in v.args:
            walk(a)
        if v.readers:
            found[id(v)] = v

    for v in values:
        walk(v)
    return [v for i, v in found.items() if reads[i] < v.readers]


def merged(shape: tuple[int, ...], strides: list[tuple[int, ...]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Neighbouring dims taken together where every one of the strides allows it; dims of size 1 dropped."""
    dims: list[int] = []
    cols: list[list[int]] = []
    for d, n in enumerate(shape):
        if n == 1:
            continue
        col = [s[d] for s in strides]
        if dims and all(p == n * c for p, c in zip(cols[-1], col, strict=True)):
            dims[-1] *= n
            cols[-1] = col
        else:
            dims.append(n)
            cols.append(col)
    return tuple(dims), [tuple(c[i] for c in cols) for i in range(len(strides))]


class Cell:
    """Evaluates an expression at one place: every part once."""

    def __init__(self, k: Kernel, at: dict[int, Any], compute: DType) -> None:
        self.k, self.at, self.compute = k, at, compute
        self.done: dict[int, Value] = {}
        self.arrays: dict[int, Array] = {}  # where memory is read that was copied

    def __call__(self, v: Any) -> Any:
        if isinstance(v, Num):
            return v.number
        v = resolved(v)
        found = self.done.get(id(v))
        if found is None:
            if isinstance(v, Mem):
                found = self.arrays.get(id(v), v.array)[self.at[id(v)]]
            else:
                found = apply(self.k, v.f, [self(a) for a in v.args], self.compute)
            self.done[id(v)] = found
        return found


def apply(k: Kernel, f: Callable[..., Any], args: list[Any], compute: DType) -> Any:
    """An element function on values and numbers, which become constants; a whole number in a float's company counts as one."""
    whole = getattr(f, "whole", False)

    def typed(a: Any) -> Value:
        if isinstance(a, Value):
            return a.to(compute) if a.dtype is i64 and not whole else a
        if isinstance(a, bool):
            return k.const(a, bool_)
        return k.const(int(a), i64) if whole else k.const(float(a), compute)

    return f(k, *map(typed, args))
