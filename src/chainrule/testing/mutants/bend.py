"""The mutants of an op: which there are, and how one is put in the place of the rule.

A rule is taken apart into *slots*: the linear map of one input, the cotangent of one input, the cotangent of one output, one
argument of a batching rule. `recording` notes which slots a program goes through and whether anything in them can be bent there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.dispatch import innermost
from ...core.op import OPS, Op
from ...core.tensor import Tensor

FACTOR = 1.001


@dataclass(frozen=True, order=True)
class Slot:
    """A place in the rules of an op: ``push``, ``pull``, ``saved`` (a cotangent of an output) or ``batch``, and its number."""

    op: str
    part: str
    number: int


@dataclass(frozen=True, order=True)
class Mutant:
    """One slot bent in one way."""

    slot: Slot
    way: str

    def __str__(self) -> str:
        where = {
            "push": "forward rule, input",
            "pull": "reverse rule, input",
            "saved": "reverse rule, cotangent of output",
            "batch": "batching rule, argument",
        }
        return f"{self.slot.op}: {where[self.slot.part]} {self.slot.number}, {self.way}"


def ways(slot: Slot, kinds: frozenset[str]) -> list[Mutant]:
    """The mutants of a slot, given what was seen in it: ``nonzero``, ``complex``."""
    if slot.part in ("push", "pull"):
        names = ["scaled by 1.001", "dropped", *(["conjugated"] if "complex" in kinds else [])]
    elif slot.part == "saved":
        names = ["dropped"]
    else:
        names = ["of another example"]
    return [Mutant(slot, n) for n in names]


def has_rules(o: Op) -> bool:
    """Whether the op has a rule that could be bent: not if its derivative is zero, or that of a body in other ops."""
    if o.form == "pointwise":
        return any(callable(r) and not isinstance(r, type) for r in o.rules)
    return o.form != "fused" or o.jvp_rule is not None or o.vjp_rule is not None


# -- bending ----------------------------------------------------------------------------------------------------------

# slot, what is in it and, for the cotangent of an input, that input -> what takes its place
Bend = Callable[[Slot, Any, Any], Any]


def _bent(way: str, v: Any) -> Any:
    """A tangent or a cotangent bent; `None` is the zero."""
    if v is None or way == "dropped":
        return None
    return v * FACTOR if way.startswith("scaled") else v.conj()


def _through(v: Any, see: Callable[[Any], Any]) -> Any:
    """`see` of a value, or of what a function of no arguments will return."""
    if callable(v) and not isinstance(v, Tensor):
        return lambda: see(v())
    return see(v)


def _list_rule(o: Op, part: str, rule: Any, bend: Bend) -> list[Any]:
    def each(i: int, r: Any) -> Any:
        if not callable(r) or isinstance(r, type):
            return r

        def bent(t: Any, y: Any, *xs: Any, **kw: Any) -> Any:
            return bend(Slot(o.name, part, i), r(t, y, *xs, **kw), xs[i] if part == "pull" else None)

        return bent

    return [each(i, r) for i, r in enumerate(rule)]


def _pull_rule(o: Op, rule: Any, bend: Bend) -> Any:
    """A reverse rule whose results, and whose cotangents of further outputs, go through `bend`."""

    def bent(g: Any, y: Any, *xs: Any, **kw: Any) -> Any:
        if isinstance(g, tuple | list):
            seen = [g[0], *(bend(Slot(o.name, "saved", j), v, None) for j, v in enumerate(g[1:], 1))]
            dense = [
                v * 0 if s is None and v is not None and not o.sparse_vjp else s for s, v in zip(seen, g, strict=True)
            ]
            g = type(g)(dense)
        gs = rule(g, y, *xs, **kw)
        one = type(gs) is not tuple and type(gs) is not list

        def see(i: int) -> Callable[[Any], Any]:
            return lambda v: bend(Slot(o.name, "pull", i), v, xs[i])

        out = [_through(v, see(i)) for i, v in enumerate((gs,) if one else gs)]
        return out[0] if one else tuple(out)

    return bent


def _push_rule(o: Op, rule: Any, bend: Bend) -> Any:
    """A forward rule whose tangents of inputs go through `bend`."""

    def bent(ts: Any, y: Any, *xs: Any, **kw: Any) -> Any:
        seen = [bend(Slot(o.name, "push", i), t, None) for i, t in enumerate(ts)]
        dense = [
            t * 0 if s is None and t is not None and not o.sparse_jvp else s for s, t in zip(seen, ts, strict=True)
        ]
        return rule(dense, y, *xs, **kw)

    return bent


@contextlib.contextmanager
def bending(o: Op, bend: Bend) -> Iterator[None]:
    """The op with every slot of its rules handed to `bend`, which returns what takes its place."""
    before = dict(o.__dict__)
    if type(o.jvp_rule) is list:
        o.jvp_rule = o.rules = _list_rule(o, "push", o.jvp_rule, bend)
        if o.conjugated:
            o.pull_rules = o.rules
    elif o.jvp_rule is not None:
        o.jvp_rule = _push_rule(o, o.jvp_rule, bend)
    if type(o.vjp_rule) is list:
        o.vjp_rule = o.pull_rules = _list_rule(o, "pull", o.vjp_rule, bend)
    elif o.vjp_rule is not None:
        o.vjp_rule = _pull_rule(o, o.vjp_rule, bend)
    original, inside = o.batched, [False]

    def batched(size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
        # The bend may call the op itself (a roll is made of slices): only its first call is bent.
        if inside[0] or sum(flags) < 2:
            return original(size, args, flags, kw)
        inside[0] = True
        try:
            seen = [
                bend(Slot(o.name, "batch", i), a, None) if f else a
                for i, (a, f) in enumerate(zip(args, flags, strict=True))
            ]
        finally:
            inside[0] = False
        return original(size, seen, flags, kw)

    o.batched = batched  # type: ignore[method-assign]
    o._keeps, o.keep_one = {}, None
    try:
        yield
    finally:
        o.__dict__.clear()
        o.__dict__.update(before)
        o._keeps, o.keep_one = {}, None


@contextlib.contextmanager
def mutated(m: Mutant) -> Iterator[None]:
    """The library with this one mistake in it."""

    def bend(slot: Slot, v: Any, x: Any) -> Any:
        if slot != m.slot:
            return v
        if slot.part == "batch":
            return v.roll(1, 0)
        return _bent(m.way, v)

    with bending(OPS[m.slot.op], bend):
        yield


# -- recording --------------------------------------------------------------------------------------------------------


_SEEN: list[dict[Slot, set[str]]] = []


@contextlib.contextmanager
def watching() -> Iterator[None]:
    """The slots of all ops are watched inside; see `recording`."""
    with contextlib.ExitStack() as stack:
        for o in list(OPS.values()):
            stack.enter_context(bending(o, _note))
        yield


def watch_everything() -> None:
    """From now on, and for good in this process, the slots of all ops are watched."""
    _FOR_GOOD.enter_context(watching())


_FOR_GOOD = contextlib.ExitStack()


@contextlib.contextmanager
def recording() -> Iterator[dict[Slot, set[str]]]:
    """The slots that are gone through inside, with what was seen in them, inside `watching` or once `watch_everything` was called."""
    _SEEN.append({})
    try:
        yield _SEEN[-1]
    finally:
        _SEEN.pop()


def _note(slot: Slot, v: Any, x: Any) -> Any:
    if not _SEEN:
        return v
    kinds = _SEEN[-1].setdefault(slot, set())
    if isinstance(v, Tensor):
        kinds.add("tensor")
    if isinstance(v, Tensor) and not ("nonzero" in kinds and (slot.part == "batch" or "complex" in kinds)):
        a = innermost(v)
        a = a if isinstance(a, np.ndarray) else np.ones(1)
        # Rolled by one, a batch of equal examples stays as it is.
        if a.size and (np.any(a != np.roll(a, 1, 0)) if slot.part == "batch" and a.ndim else bool(np.any(a != 0))):
            kinds.add("nonzero")
            # Of a real input's cotangent only the real part is kept: conjugated, it is the same.
            real = isinstance(x, Tensor) and x.dtype.category != dt.COMPLEX
            if a.dtype.kind == "c" and np.any(a.imag) and not real:
                kinds.add("complex")
    return v
