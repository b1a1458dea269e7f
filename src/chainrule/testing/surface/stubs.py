"""The stubs: signatures as Python has them, types as the declaration and the vocabulary say, first lines of docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import chainrule
from chainrule.core import dtypes as dt
from chainrule.core.registry import METHODS, OPERATORS, PUBLIC
from chainrule.core.tensor import OWN, Tensor

from . import vocabulary as words

ROOT = Path(chainrule.__file__).parent
NAMESPACES = ("fft", "linalg", "masked", "nn.functional", "random", "signal.windows", "special")
# chainrule.float and Tensor.float are no types: annotations speak of Python's under another name.
_BUILTINS = ("bool", "complex", "float", "int", "object", "str", "tuple", "type")
_NAMED = re.compile(rf"(?<![.\w])({'|'.join(_BUILTINS)})\b(?!:)")
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
    out = {
        "__init__.pyi": _root(),
        "core/methods.pyi": _methods(),
        "return_types.pyi": _results(),
        "nn/modules/thin.pyi": _thin(),
    }
    for space in NAMESPACES:
        module = importlib.import_module(f"chainrule.{space}")
        parts = [_head(module, "." * (space.count(".") + 1)), _all(module.__all__)]
        parts += [_member(name, getattr(module, name)) for name in module.__all__]
        out[space.replace(".", "/") + ".pyi"] = "\n".join(parts) + "\n"
    return out


# -- files ------------------------------------------------------------------------------------------------------------


def _head(module: ModuleType, up: str) -> str:
    results = ", ".join(chainrule.return_types.__all__)
    imports = f"from {up}core.tensor import Size, Tensor\n"
    if module.__name__ != "chainrule":
        imports = f"from {up} import Generator\n" + imports
    if module.__name__ != "chainrule.return_types":
        imports += f"from {up}return_types import {results}\n"
    doc = _first_line(module)
    return _HEAD.format(doc=doc, up=up, imports=imports, builtins=", ".join(f"{b} as _{b}" for b in _BUILTINS))


def _all(names: Iterable[str]) -> str:
    return "__all__ = [" + ", ".join(f'"{n}"' for n in names) + "]\n"


def _root() -> str:
    parts = [_head(chainrule, "."), _all(chainrule.__all__), "__version__: _str\n"]
    for name in chainrule.__all__:
        value = getattr(chainrule, name)
        if name in PUBLIC or (isinstance(value, type) and value.__module__.startswith("chainrule.ops.")):
            parts.append(_member(name, value))
        elif isinstance(value, ModuleType):
            parts.append(f"from . import {name} as {name}")
        elif isinstance(value, dt.DType):
            parts.append(f"{name}: DType")
        elif callable(value):
            parts.append(_imported(name, inspect.unwrap(value)))
        else:
            parts.append(
                f"{name}: {_python('None' if value is None else type(value).__name__.replace('_Name', 'Layout'))}"
            )
    return "\n".join(parts) + "\n"


def _imported(name: str, value: Any) -> str:
    home = getattr(value, "__globals__", {}).get("__name__") or value.__module__
    if home == "chainrule":
        return _member(name, value)
    own = value.__code__.co_name if isinstance(value, FunctionType) else value.__name__
    if not hasattr(importlib.import_module(home), own):
        own = name
    return f"from {home.removeprefix('chainrule')} import {own} as {name}"


def _methods() -> str:
    module = ModuleType("chainrule.core.methods", "What the ops attach to Tensor: methods, operators, properties.")
    parts = [_head(module, ".."), "from .imperative import RemovableHandle\n\n", "class Methods:"]
    for name, value in sorted(vars(Tensor).items()):
        if name in OWN or name in ("__init__", "__doc__", "__module__"):
            continue
        if isinstance(value, property):
            parts.append(_property(name, value))
        elif isinstance(value, FunctionType):
            parts.append(_function(name, value, method=True))
        else:
            parts.append(f"    {name}: {_python(words.ATTRIBUTES.get(name, 'Any'))}")
    return "\n".join(parts) + "\n"


def _results() -> str:
    parts = [_head(chainrule.return_types, "."), _all(chainrule.return_types.__all__)]
    for name in chainrule.return_types.__all__:
        cls = getattr(chainrule.return_types, name)
        parts.append(f"class {name}(NamedTuple):\n    {_doc(cls)}")
        kinds = inspect.get_annotations(cls)
        for field in cls._fields:
            kind = kinds.get(field) or words.FIELDS.get(f"{name}.{field}", "Tensor")
            parts.append(
                f"    {field}: {_python(getattr(kind, '__forward_arg__', None) or getattr(kind, '__name__', kind))}"
            )
    return "\n".join(parts) + "\n"


def _thin() -> str:
    from chainrule.nn.modules import thin

    parts = [
        _head(thin, "..."),
        "from ..module import Module\nfrom ..parameter import Parameter\n",
        _all(thin.__all__),
        "class Thin(Module):\n    def forward(self, *inputs: Any) -> Any: ...\n",
    ]
    for name in thin.__all__:
        cls: Any = getattr(thin, name)
        if name == "Thin":
            continue
        parts.append(f"class {name}({'Thin' if issubclass(cls, thin.Thin) else 'Module'}):\n    {_doc(cls)}")
        if issubclass(cls, thin.Thin):
            options = ", ".join(_option(k, v) for k, v in cls.options.items())
            parts.append(
                f"    def __init__(self, {options}) -> None: ..." if options else "    def __init__(self) -> None: ..."
            )
        else:
            parts += [
                _function(k, v, method=True, plain=True) for k, v in vars(cls).items() if isinstance(v, FunctionType)
            ]
            if name == "PReLU":
                parts.append("    weight: Parameter")
    return "\n".join(parts) + "\n"


def _option(name: str, default: Any) -> str:
    if default is inspect.Parameter.empty:
        return f"{name}: Any"
    if type(default) in (bool, int, float, str):
        return f"{name}: {_python('float' if type(default) is int and name != 'dim' else type(default).__name__)} = {default!r}"
    return f"{name}: Any = {_default(default)}"


# -- members ----------------------------------------------------------------------------------------------------------


def _member(name: str, value: Any) -> str:
    return _class(name, value) if isinstance(value, type) else _function(name, value)


def _class(name: str, cls: Any) -> str:
    if cls.__module__ == "chainrule.core.device" or cls.__name__ != name:
        return f"{name} = Layout"
    if isinstance(cls, type) and type(cls) is not type:  # FloatTensor and its like are called, and asked by isinstance
        return f"class {name}(Tensor):\n    {_doc(cls)}\n    def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ..."
    parts = [
        f"class {name}({', '.join(b.__name__ for b in cls.__bases__ if b is not object)}):".replace("()", ""),
        f"    {_doc(cls)}",
    ]
    for k, v in vars(cls).items():
        if isinstance(v, FunctionType) and (k == "__init__" or not k.startswith("_")):
            parts.append(_function(k, v, method=True, plain=True))
        elif isinstance(v, property):
            parts.append(_property(k, v))
    return "\n".join(parts)


def _property(name: str, p: property) -> str:
    kind = words.ATTRIBUTES.get(name) or inspect.get_annotations(p.fget).get("return", "Any")  # type: ignore[arg-type]
    lines = [f"    @property\n    def {name}(self) -> {_python(kind)}:\n        {_doc(p.fget)}"]
    if p.fset is not None:
        lines.append(f"    @{name}.setter\n    def {name}(self, value: {_python(kind)}) -> None: ...")
    return "\n".join(lines)


def _function(name: str, f: Callable[..., Any], method: bool = False, plain: bool = False) -> str:
    """``def name(...)``, with a decorator for each where there are several ways to call it."""
    pad = "    " if method else ""
    ways = () if plain else words.SEVERAL.get(f"Tensor.{name}" if method else name) or words.SEVERAL.get(name, ())
    texts = [re.sub(r"^\(input: Tensor", "(self", w) if method else w for w in ways] or _signatures(
        name, f, method, plain
    )
    out = []
    for text in texts:
        mark = f"{pad}@overload\n" if len(texts) > 1 else ""
        body = "" if ": ..." in text else f":\n{pad}    {_doc(f)}"
        out.append(f"{mark}{pad}def {name}{_python(text)}{body}")
    return "\n".join(out)


def _signatures(name: str, f: Callable[..., Any], method: bool, plain: bool) -> list[str]:
    s = _source(name, f)
    returns = _returns(name, s, f, plain, method)
    parameters = list(s.parameters.values())
    text = f"({_parameters(parameters, returns, method)}) -> {returns}"
    if returns != "Any" or not any(p.name in words.FLAGS for p in parameters):
        return [text]
    without = [p.replace(annotation="Literal[False]") if p.name in words.FLAGS else p for p in parameters]
    return [f"({_parameters(without, 'Tensor', method)}) -> Tensor", text]


def _source(name: str, f: Callable[..., Any]) -> inspect.Signature:
    """The signature of `f`, or of the function it hands its arguments on to: relu_ takes what relu takes, view_copy what view does."""
    s = inspect.signature(f)
    names = [p.name for p in s.parameters.values() if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if names != ["args", "kw"]:
        return s
    base = re.sub("(_copy|_)$", "", name)
    full = f"{f.__module__.removeprefix('chainrule').lstrip('.')}.{base}".lstrip(".")
    like = PUBLIC.get(full) or METHODS.get(base)
    if base == name or like is None:
        return s
    t = inspect.signature(like)
    return t.replace(parameters=[p for p in t.parameters.values() if p.name != "inplace"])


def _returns(name: str, s: inspect.Signature, f: Any, plain: bool, method: bool) -> str:
    kind = "" if s.return_annotation is s.empty else str(s.return_annotation)
    if plain:
        return kind or "None"
    if (
        method
        and name.endswith("_")
        and kind == "Tensor"
        and (not name.startswith("__") or name.startswith("__i"))
        and name != "__invert__"
    ):
        return "Self"
    known = hasattr(f, "op") or name in OPERATORS or name in words.TENSORS
    return "Tensor" if known else kind or "Any"


def _parameters(parameters: list[inspect.Parameter], returns: str, method: bool) -> str:
    out: list[str] = []
    before: Any = None
    for i, p in enumerate(parameters):
        if before is p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_ONLY and out != ["self"]:
            out.append("/")
        if p.kind is p.KEYWORD_ONLY and before not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            out.append("*")
        before = p.kind
        if method and i == 0:
            out.append("self")
            continue
        if p.name.startswith("_") and p.default is not p.empty and len(p.name) > 1:
            continue  # not for callers
        star = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        out.append(
            f"{star}{p.name}: {_type(p, returns)}" + ("" if p.default is p.empty else f" = {_default(p.default)}")
        )
    if before is inspect.Parameter.POSITIONAL_ONLY and len(out) > 1:
        out.append("/")
    if out and out[-1] == "*":
        out.pop()
    return ", ".join(out)


def _type(p: inspect.Parameter, returns: str) -> str:
    kind = "Any" if p.annotation is p.empty else str(p.annotation)
    if p.name == "out":
        return "Tensor | None" if returns in ("Tensor", "Self") else "Tensor | Sequence[Tensor] | None"
    if kind == "Any":
        table = words.GATHERED if p.kind is p.VAR_POSITIONAL else {} if p.kind is p.VAR_KEYWORD else words.TYPES
        kind = table.get(p.name, "Any")
    if p.default is None and not kind.endswith("None") and kind != "Any":
        kind += " | None"
    return kind


def _default(value: Any) -> str:
    simple = value is None or type(value) in (bool, int, str) or (type(value) is float and abs(value) < 1e300)
    return repr(value) if simple or (type(value) is tuple and all(type(v) is int for v in value)) else "..."


def _python(kind: Any) -> str:
    """A type as the stub writes it."""
    return _NAMED.sub(
        r"_\1", str(kind).replace("dt.DType", "DType").replace("np.ndarray", "Any").replace("_Any", "Any")
    )


def _doc(f: Any) -> str:
    line = _first_line(f)
    return f'"""{line}"""' if line else "..."


def _first_line(f: Any) -> str:
    line = inspect.cleandoc(f.__doc__ or "").partition("\n")[0].replace("\\", "\\\\").replace('"""', "'''")
    return line + " " if line.endswith('"') else line
