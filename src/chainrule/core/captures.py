"""What a function holds: the tensors in its closure, its object, its defaults, the globals it names, and in the containers and modules there.

Of the library's own functions, and of NumPy's and Python's, only closures are looked at: they hold a user's function, and no tensors of their own.
"""

from __future__ import annotations

import functools
import os
import sys
from collections import deque
from collections.abc import Iterator
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from numpy import dtype, generic, ndarray

from .tensor import Tensor

_PLAIN = (str, bytes, int, float, complex, type(None), dtype, generic, ndarray, BuiltinFunctionType, type, ModuleType)
_STANDARD = os.path.dirname(os.__file__)


def tensors_of(holder: Any, most: int = 100_000) -> Iterator[Tensor]:
    """The tensors that can be reached from a function (or any object), and the bases they are views of, each once."""
    seen: set[int] = set()
    queue = [holder]
    for x in queue:
        if isinstance(x, _PLAIN) or id(x) in seen:
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
            queue.extend([c.cell_contents for c in x.__closure__ or () if _filled(c)])
            queue.append(x.__dict__)
            if not of_library(x.__globals__.get("__name__", "")):
                queue.extend(_named(x))
                queue.extend([x.__defaults__, x.__kwdefaults__])
        elif isinstance(x, MethodType):
            queue.extend([x.__self__, x.__func__])
        elif isinstance(x, partial):
            queue.extend([x.func, x.args, x.keywords])
        elif (module := type(x).__module__).startswith("chainrule.jit"):
            queue.append(getattr(x, "__wrapped__", None))  # of a compiled function, what it is made from
        elif not module.startswith("chainrule.core"):
            queue.append(getattr(x, "__dict__", None))
            queue.extend([getattr(x, k, None) for k in slots_of(x)])
            for c in type(x).__mro__:
                if not of_library(c.__module__):
                    queue.extend([v for v in vars(c).values() if isinstance(v, Tensor | list | tuple | dict | deque)])


def _named(f: FunctionType) -> list[Any]:
    """The globals that a function names; of modules and classes among them, what it names of these."""
    used = names_in(f.__code__)
    there = [f.__globals__[k] for k in used if k in f.__globals__]
    for m in list(there):
        inside = isinstance(m, ModuleType) and not of_library(m.__name__)
        if inside or (isinstance(m, type) and not of_library(m.__module__)):
            there += [vars(m)[k] for k in used if k in vars(m)]
    return there


@functools.cache
def of_library(module: str) -> bool:
    """Whether a module holds no tensors of its users: of this library, of NumPy and SciPy, and of Python's own that nobody has shadowed."""
    top = module.partition(".")[0]
    if top not in sys.stdlib_module_names:
        return top in ("chainrule", "numpy", "scipy")
    file = getattr(sys.modules.get(top), "__file__", None)
    return file is None or (file.startswith(_STANDARD) and "-packages" not in file)


def names_in(code: CodeType) -> set[str]:
    """The names that code and the functions defined in it look up; those that nobody can write are of tools that rewrite code."""
    out = {n for n in code.co_names if n.isidentifier()}
    for c in code.co_consts:
        if isinstance(c, CodeType):
            out |= names_in(c)
    return out


def slots_of(x: Any) -> list[str]:
    """The names of the slots of an object of a user's class. One that begins with two underscores is another one in the object."""
    names = []
    for c in type(x).__mro__:
        if not of_library(c.__module__):
            slots = vars(c).get("__slots__", ())
            for s in (slots,) if isinstance(slots, str) else slots:
                if s not in ("__dict__", "__weakref__"):
                    hidden = s.startswith("__") and not s.endswith("__")
                    names.append(f"_{c.__name__.lstrip('_')}{s}" if hidden else s)
    return names


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
