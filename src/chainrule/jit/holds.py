"""What a function holds beside its arguments: tensors, which become inputs, and the rest, which a recording takes for granted.

The walk follows closures, the globals that code names, defaults, bound objects, containers and attributes. Every reference on the way
is noted: a recording is used as long as all of them are what they were.
"""

from __future__ import annotations

import sys
from collections import deque
from functools import partial
from operator import is_
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..core.captures import names_in, of_library, slots_of
from ..core.op import Op
from ..core.tensor import Tensor

MOST = 100_000  # objects to look at
_PLAIN = (str, bytes, int, float, complex, type(None), np.dtype, np.generic, np.ndarray, type, BuiltinFunctionType, Op)
_SIMPLE = (int, float, complex, str, bool, bytes, tuple)


def _same(a: Any, b: Any) -> bool:
    return (
        a is b
        or (type(a) is type(b) and type(a) in _SIMPLE and a == b and _no_tensor(a))
        or (outlived(a) and outlived(b))  # one is as unreadable as the other
    )


def outlived(x: Any) -> bool:
    """Whether a value is a tensor of a transform that has returned."""
    while isinstance(x, Tensor) and x._interp is not None:
        if not x._interp.alive and not x._interp.fades:
            return True
        x = x._value
    return False


def _no_tensor(a: Any) -> bool:
    return type(a) is not tuple or all(type(x) in _SIMPLE and _no_tensor(x) for x in a)


def gradient(x: Any) -> Any:
    """The gradient that a tensor has now, or None."""
    m = getattr(x, "_meta", None)
    return None if m is None else m.grad


def looks(g: Any) -> Any:
    """What a recording takes for granted of a gradient: that there is one, its shape, its type, and whether it has a derivative."""
    return None if g is None else (g.shape, g.dtype, g._interp is None)


class Held:
    """The tensors that a function holds, and the references that led to them."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.owners: dict[
            int, Tensor
        ] = {}  # of a tensor that is reached as a gradient alone, whose it is: calls have others there
        self._known: frozenset[int] = frozenset()
        self._gradients: list[tuple[Tensor, Any, Any]] = []
        self._dicts: list[tuple[dict[Any, Any], tuple[Any, ...], tuple[Any, ...]]] = []
        self._lists: list[tuple[Any, tuple[Any, ...]]] = []
        self._names: list[tuple[dict[str, Any], str, Any]] = []
        self._cells: list[tuple[Any, Any]] = []
        self._codes: list[tuple[FunctionType, Any, Any, Any]] = []
        self._classes: list[tuple[type, str, Any]] = []
        self._slots: list[tuple[Any, str, Any]] = []

    def among(self, leaves: list[Any]) -> list[tuple[int, int]]:
        """Which of the leaves (those with derivatives, which are tensors by identity) are held too: their places, and who they are."""
        return [(k, id(x)) for k, x in enumerate(leaves) if id(x) in self._known and x._interp is not None]

    def hold(self) -> bool:
        """Whether every reference is what it was."""
        for x, g, seen in self._gradients:
            now = gradient(x)
            if now is not g and (looks(now) != seen or (g is not None and id(g) not in self.owners)):
                return False
        for c, v in self._cells:
            if not _same(_content(c), v):
                return False
        for d, k, v in self._names:
            if d.get(k, _NOTHING) is not v and not _same(d.get(k, _NOTHING), v):
                return False
        for x, k, v in self._slots:
            if not _same(getattr(x, k, _NOTHING), v):
                return False
        for f, code, defaults, kwdefaults in self._codes:
            if f.__code__ is not code or f.__defaults__ is not defaults or f.__kwdefaults__ is not kwdefaults:
                return False
        for d, keys, vals in self._dicts:
            if len(d) != len(keys) or (keys and not all(map(is_, d.values(), vals))):
                if tuple(d) != keys or not all(map(_same, d.values(), vals)):
                    return False
        return all(len(x) == len(vals) and all(map(_same, x, vals)) for x, vals in self._lists)

    def restore(self) -> None:
        """Make every reference what it was: a recording that is given up leaves nothing behind."""
        for c, v in self._cells:
            if _content(c) is not v:
                if v is _NOTHING:
                    del c.cell_contents
                else:
                    c.cell_contents = v
        for x, k, v in self._slots:
            if getattr(x, k, _NOTHING) is not v:
                delattr(x, k) if v is _NOTHING else setattr(x, k, v)
        for cls, k, v in self._classes:
            if vars(cls).get(k, _NOTHING) is not v:
                setattr(cls, k, v)
        for d, k, v in self._names:
            if isinstance(d, dict) and d.get(k, _NOTHING) is not v:
                d[k] = v
        for d, keys, vals in self._dicts:
            if len(d) != len(keys) or not all(map(is_, d, keys)) or not all(map(is_, d.values(), vals)):
                d.clear()
                d.update(zip(keys, vals, strict=True))
        for x, vals in self._lists:
            if len(x) != len(vals) or not all(map(is_, x, vals)):
                x.clear()
                (x.update if isinstance(x, set) else x.extend)(vals)


class _Nothing:
    pass


_NOTHING = _Nothing()


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _NOTHING


def survey(*holders: Any) -> Held:
    """All that can be reached from the holders."""
    held = Held()
    seen: set[int] = set()
    queue: list[Any] = list(holders)
    for x in queue:
        if isinstance(x, _PLAIN) or id(x) in seen:
            continue
        seen.add(id(x))
        if len(seen) > MOST:
            raise RuntimeError(f"jit: the function holds more than {MOST} objects; pass what it needs as arguments")
        if isinstance(x, Tensor):
            if not outlived(x):  # who reads one is told so by the op
                held.tensors.append(x)
        elif isinstance(x, list | set | deque | frozenset | tuple):
            if not isinstance(x, tuple | frozenset):
                held._lists.append((x, tuple(x)))
            queue.extend(x)
        elif isinstance(x, dict):
            _dict(held, x, queue)
        elif isinstance(x, FunctionType):
            _function(held, x, queue)
        elif isinstance(x, MethodType):
            queue.extend((x.__self__, x.__func__))
        elif isinstance(x, partial):
            queue.extend((x.func, x.args, x.keywords))
        elif isinstance(x, ModuleType):
            continue
        elif type(x).__module__ == "chainrule.jit.api":
            queue.append(x.__wrapped__)  # of a compiled function, what it is made from; its recordings are its own
        else:
            d = getattr(x, "__dict__", None)
            if isinstance(d, dict):
                _dict(held, d, queue)
            _in_slots(held, x, queue)
            _class(held, type(x), queue)
    _find_gradients(held, seen)
    held._known = frozenset(map(id, held.tensors))
    return held


def _find_gradients(held: Held, seen: set[int]) -> None:
    """The gradients of the tensors: places, unless somebody else has the tensor that lies there too."""
    twice: set[int] = set()
    for x in list(held.tensors):
        g = gradient(x)
        held._gradients.append((x, g, looks(g)))
        if g is not None and outlived(g):
            continue
        if g is not None and id(g) not in seen:
            seen.add(id(g))
            held.tensors.append(g)
            held.owners[id(g)] = x
        elif g is not None:
            twice.add(id(g))
    for i in twice:
        held.owners.pop(i, None)


def _in_slots(held: Held, x: Any, queue: list[Any]) -> None:
    """What an object of a user's class has in slots."""
    for name in slots_of(x):
        v = getattr(x, name, _NOTHING)
        held._slots.append((x, name, v))
        queue.append(v)


def _class(held: Held, cls: type, queue: list[Any]) -> None:
    """What methods of a user's class use, and what the class itself has."""
    for c in cls.__mro__:
        if not of_library(c.__module__):
            for k, v in list(vars(c).items()):
                if not k.startswith("__") or isinstance(v, FunctionType):
                    held._names.append((vars(c), k, v))  # type: ignore[arg-type]
                    held._classes.append((c, k, v))
                    queue.append(v.__func__ if isinstance(v, staticmethod | classmethod) else v)


def _named(held: Held, v: Any, names: set[str], queue: list[Any]) -> None:
    """Of a user's class that a function speaks of, what it has under a name that the function speaks of too."""
    if not isinstance(v, type):
        return
    for c in v.__mro__:
        if not of_library(c.__module__):
            for k in names & set(vars(c)):
                x = vars(c)[k]
                held._names.append((vars(c), k, x))  # type: ignore[arg-type]
                held._classes.append((c, k, x))
                queue.append(x.__func__ if isinstance(x, staticmethod | classmethod) else x)


def _dict(held: Held, d: dict[Any, Any], queue: list[Any]) -> None:
    held._dicts.append((d, tuple(d), tuple(d.values())))
    queue.extend(d.values())
    queue.extend(k for k in d if isinstance(k, Tensor))


def _function(held: Held, f: FunctionType, queue: list[Any]) -> None:
    ours = of_library(f.__globals__.get("__name__", ""))
    home = sys.modules.get(f.__module__ or "")
    if ours and home is not None and vars(home).get(f.__name__) is f:
        return  # the library's own: what it is made of is nobody else's
    for c in f.__closure__ or ():
        v = _content(c)
        if not ours:  # what the library counts and remembers is its own
            held._cells.append((c, v))
        queue.append(v)
    if f.__dict__:
        queue.extend(f.__dict__.values())
    if ours:
        return  # the library holds no tensors of its users
    held._codes.append((f, f.__code__, f.__defaults__, f.__kwdefaults__))
    queue.extend(f.__defaults__ or ())
    queue.extend((f.__kwdefaults__ or {}).values())
    names = names_in(f.__code__)
    for c in f.__closure__ or ():
        _named(held, _content(c), names, queue)
    for k in names:
        if k in f.__globals__:
            v = f.__globals__[k]
            held._names.append((f.__globals__, k, v))
            _named(held, v, names, queue)
            if isinstance(v, ModuleType):
                if not of_library(v.__name__) and getattr(v, "__spec__", None) is not None:
                    for a in names & set(vars(v)):
                        if isinstance(vars(v)[a], Tensor | FunctionType | int | float):
                            held._names.append((vars(v), a, vars(v)[a]))
                            queue.append(vars(v)[a])
            else:
                queue.append(v)
