"""What a function holds: the tensors in its closure, its object, its defaults, and in the containers and modules there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from numpy import ndarray

from .tensor import Tensor


def tensors_of(holder: Any, most: int = 100_000) -> Iterator[Tensor]:
    """The tensors that can be reached from a function (or any object), and the bases they are views of, each once."""
    seen: set[int] = set()
    queue = [holder]
    for x in queue:
        if id(x) in seen:
            continue
        seen.add(id(x))
        if len(seen) > most:
            return
        if isinstance(x, Tensor):
            yield x
            if x._meta is not None:
                queue.append(x._meta.base)
        elif isinstance(x, list | tuple | set | frozenset | deque):
            queue.extend(x)
        elif isinstance(x, dict):
            queue.extend(x.values())
        elif isinstance(x, FunctionType):
            used = set(_names(x.__code__))
            queue.extend([c.cell_contents for c in x.__closure__ or () if _filled(c)])
            there = [x.__globals__[k] for k in used if k in x.__globals__]
            queue.extend(there)
            # Of a module or a class that the function names, what it names too.
            queue.extend([vars(m)[k] for m in there if isinstance(m, type | ModuleType) for k in used if k in vars(m)])
            queue.extend([x.__defaults__, x.__kwdefaults__, x.__dict__])
        elif isinstance(x, MethodType):
            queue.extend([x.__self__, x.__func__])
        elif isinstance(x, partial):
            queue.extend([x.func, x.args, x.keywords])
        elif not isinstance(x, type | ModuleType | ndarray | str | bytes | int | float | None):
            queue.append(getattr(x, "__dict__", None))
            for c in type(x).__mro__:
                queue.extend([getattr(x, k, None) for k in _slots(c)])
                queue.extend([v for v in vars(c).values() if isinstance(v, Tensor | list | tuple | dict)])


def _names(code: CodeType) -> Iterator[str]:
    """The names that a function's code uses, with that of the functions and comprehensions inside."""
    yield from code.co_names
    for c in code.co_consts:
        if isinstance(c, CodeType):
            yield from _names(c)


def _slots(cls: type) -> Iterator[str]:
    slots = vars(cls).get("__slots__", ())
    for k in (slots,) if isinstance(slots, str) else slots:
        if not k.startswith("__"):
            yield k


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
