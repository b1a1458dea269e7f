"""What a function holds beside its arguments: modules and tensors in its closure, its globals, its object. For a while all of it is float64."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.dispatch import innermost
from ..core.tensor import Tensor
from ..nn.module import Module

_WIDE = {dt.float32: dt.float64, dt.complex64: dt.complex128}
_MANY = 1000  # elements of a container that are looked at


def _names(code: CodeType) -> set[str]:
    """The names that a function and the functions in it may look up globally."""
    found = set(code.co_names)
    for c in code.co_consts:
        if isinstance(c, CodeType):
            found |= _names(c)
    return found


def _inside(x: Any) -> list[Any]:
    """What an object leads to."""
    if isinstance(x, MethodType):
        return [x.__func__, x.__self__]
    if isinstance(x, functools.partial):
        return [x.func, *x.args, *x.keywords.values()]
    if isinstance(x, FunctionType):
        if x.__module__.partition(".")[0] == "chainrule" and not hasattr(x, "__wrapped__"):
            return [c.cell_contents for c in x.__closure__ or () if _filled(c)]  # of a transform, the function
        reach = [c.cell_contents for c in x.__closure__ or () if _filled(c)]
        reach += [x.__globals__[n] for n in _names(x.__code__) if n in x.__globals__]
        return [*reach, *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values(), getattr(x, "__wrapped__", None)]
    if isinstance(x, dict):
        return list(x.values())[:_MANY]
    if isinstance(x, list | tuple | set):
        return list(x)[:_MANY]
    owner = type(x).__module__.partition(".")[0]
    if owner in sys.stdlib_module_names or owner in ("chainrule", "numpy") or isinstance(x, type):
        return []
    return list(vars(x).values())[:_MANY] if hasattr(x, "__dict__") else []


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def tensors_of(f: Any) -> list[Tensor]:
    """The tensors that `f` holds: what they are when it runs decides its value."""
    seen: set[int] = set()
    found: dict[int, Tensor] = {}
    todo: list[Any] = [f]
    while todo:
        x = todo.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, Module):
            for t in [*x.parameters(), *x.buffers()]:
                found[id(t)] = t
            todo += [v for k, v in vars(x).items() if isinstance(v, Tensor | list | dict) and not k.startswith("_")]
        elif isinstance(x, Tensor):
            found[id(x)] = x
        else:
            todo += _inside(x)
    return [t for t in found.values() if isinstance(innermost(t), np.ndarray)]


class Held:
    """The tensors that a function holds, to be float64 while it is judged, and as they were when it is run in float32."""

    def __init__(self, f: Any) -> None:
        self.found = [t for t in tensors_of(f) if t.is_leaf]
        self.before: list[tuple[Any, Any, Any]] = []

    @contextmanager
    def in_double(self) -> Iterator[None]:
        """Inside, what the function holds is float64, and so are the tensors that it makes; what it writes to them is gone afterwards."""
        default = dt.get_default_dtype()
        self.before = [(t._value, t._interp, t._aux) for t in self.found]
        try:
            for t in self.found:
                new = t.detach().to(
                    _WIDE.get(t.dtype, t.dtype), copy=True
                )  # a counter that the function moves on is moved back
                t._value, t._interp, t._aux = new._value, new._interp, new._aux
            dt.set_default_dtype(dt.float64)
            yield
        finally:
            dt.set_default_dtype(default)
            self._restore()

    def _restore(self) -> None:
        for t, (value, interp, aux) in zip(self.found, self.before, strict=True):
            t._value, t._interp, t._aux = value, interp, aux

    @contextmanager
    def as_it_was(self) -> Iterator[None]:
        """Within ``in_double``: everything as the function had it; what it writes to it is gone afterwards."""
        wide = [(t._value, t._interp, t._aux) for t in self.found]
        default = dt.get_default_dtype()
        try:
            for t, (value, _, _) in zip(self.found, self.before, strict=True):
                plain = Tensor(innermost(value) if isinstance(value, Tensor) else value).clone()
                t._value, t._interp, t._aux = plain._value, plain._interp, plain._aux
            dt.set_default_dtype(dt.float32)
            yield
        finally:
            dt.set_default_dtype(default)
            for t, (value, interp, aux) in zip(self.found, wide, strict=True):
                t._value, t._interp, t._aux = value, interp, aux
