"""The stubs, file by file: the root, the methods of Tensor, the namespaces, named tuples, modules made from a table."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import chainrule
from chainrule.core import dtypes as dt
from chainrule.core.registry import PUBLIC
from chainrule.core.tensor import OWN, Tensor

from . import vocabulary as words
from .signatures import BUILTINS, cls, doc, first_line, function, prop, python

ROOT = Path(chainrule.__file__).parent
NAMESPACES = ("fft", "linalg", "masked", "nn.functional", "random", "signal.windows", "sparse", "special")
_HEAD = '''"""{doc}"""

# Written by `make surface` from the declarations of the ops.
# ruff: noqa
# fmt: off
from builtins import {builtins}
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Self, overload

from {up}core.dtypes import DType
from {up}core.errors import ChainruleError
{imports}from {up}typing import DTypeLike, DeviceLike, Ints, Layout, Number, Operand
'''


def outdated() -> dict[Path, str]:
    """The stubs that differ from what would be written now, and their new text."""
    new = {ROOT / name: text for name, text in stubs().items()}
    return {path: text for path, text in new.items() if not path.exists() or path.read_text() != text}


def stubs() -> dict[str, str]:
    """Every stub: its path within the package and its text."""
    importlib.import_module("chainrule.nested")  # it attaches methods
    files = {
        "__init__.pyi": _root(),
        "core/methods.pyi": _methods(),
        "return_types.pyi": _results(),
        **{f"{space.replace('.', '/')}.pyi": _namespace(space) for space in NAMESPACES},
    }
    return {name: "\n".join(parts) + "\n" for name, parts in files.items()}


def _head(module: ModuleType, up: str) -> str:
    imports = f"from {up}core.tensor import Size, Tensor\n"
    if module is not chainrule:
        imports = f"from {up} import Generator\n" + imports
    if module is not chainrule.return_types:
        imports += f"from {up}return_types import {', '.join(chainrule.return_types.__all__)}\n"
    builtins = ", ".join(f"{b} as _{b}" for b in BUILTINS)
    return _HEAD.format(doc=first_line(module), up=up, imports=imports, builtins=builtins)


def _all(names: Iterable[str]) -> str:
    return "__all__ = [" + ", ".join(f'"{n}"' for n in names) + "]\n"


def _member(name: str, value: Any, space: str = "") -> str:
    return cls(name, value) if isinstance(value, type) else function(name, value, space)


def _namespace(space: str) -> list[str]:
    module = importlib.import_module(f"chainrule.{space}")
    members = [_member(name, getattr(module, name), f"{space}.") for name in module.__all__]
    return [_head(module, "." * (space.count(".") + 1)), _all(module.__all__), *members]


def _root() -> list[str]:
    # PyTorch's names with an underscore are there for the code that calls them; dir() does not show them.
    private = sorted(n for n in PUBLIC if n.startswith("_") and "." not in n)
    members = [_of_root(name, getattr(chainrule, name)) for name in [*chainrule.__all__, *private]]
    return [_head(chainrule, "."), _all(chainrule.__all__), "__version__: _str\n", *members]


def _of_root(name: str, value: Any) -> str:
    if isinstance(value, ModuleType):
        return f"from {value.__name__.rpartition('.')[0].removeprefix('chainrule') or '.'} import {name} as {name}"
    if isinstance(value, dt.DType):
        return f"{name}: DType"
    if not callable(value):
        kind = "None" if value is None else type(value).__name__
        return f"{name}: {'Layout' if value in _LAYOUTS else python(kind)}"
    value = value if name in PUBLIC else inspect.unwrap(value)
    home = getattr(value, "__globals__", {}).get("__name__") or value.__module__
    if name in PUBLIC or home == "chainrule" or home.startswith("chainrule.ops."):
        return _member(name, value)
    if isinstance(value, type) and value.__module__ == "chainrule.world.storages" and value.__name__ != "TypedStorage":
        return f"{name}: type[Any]"  # classes made in a loop
    own = value.__code__.co_name if isinstance(value, FunctionType) else value.__name__
    return f"from {home.removeprefix('chainrule')} import {own} as {name}"


_LAYOUTS = [v for v in vars(chainrule).values() if type(v) is chainrule.layout]


def _methods() -> list[str]:
    module = ModuleType("methods", "What the ops attach to Tensor: methods, operators, properties.")
    parts = [_head(module, ".."), "from .imperative import RemovableHandle\n", "class Methods:"]
    for name, value in sorted(vars(Tensor).items()):
        if name in OWN:
            continue
        if isinstance(value, property):
            parts.append(prop(name, value))
        elif isinstance(value, FunctionType):
            parts.append(function(name, value, "Tensor."))
        else:
            parts.append(f"    {name}: {python(words.ATTRIBUTES.get(name, 'Any'))}")
    return parts


def _results() -> list[str]:
    parts = [_head(chainrule.return_types, "."), _all(chainrule.return_types.__all__)]
    for name in chainrule.return_types.__all__:
        c: Any = getattr(chainrule.return_types, name)
        parts.append(f"class {name}(NamedTuple):\n    {doc(c)}")
        for field in c._fields:
            kind = inspect.get_annotations(c).get(field) or words.FIELDS.get(f"{name}.{field}", "Tensor")
            kind = getattr(kind, "__forward_arg__", None) or getattr(kind, "__name__", kind)
            parts.append(f"    {field}: {python(kind)}")
    return parts
