"""One function, class or property as a stub writes it: Python's signature, the vocabulary's types, the docstring's first line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

import chainrule
from chainrule.core.registry import METHODS, OPERATORS, PUBLIC

from . import vocabulary as words

# chainrule.float and Tensor.float are no types: annotations speak of Python's under another name.
BUILTINS = ("bool", "complex", "float", "int", "object", "str", "tuple", "type")
_NAMED = re.compile(rf"(?<![.\w])({'|'.join(BUILTINS)})\b(?!:)")
_IN_PLACE = re.compile(r"[a-z]\w*_|__i(?!nvert)\w+__")


def function(name: str, f: Callable[..., Any], space: str = "") -> str:
    """``def name(...)`` of a published function, or of a method where `space` is "Tensor."; once for each way to call it."""
    method = space == "Tensor."
    ways: Any = words.SEVERAL.get(space + name) or (words.SEVERAL.get(name) if method else None)
    if ways is None:
        ways = _ways(name, f, method)
    elif method:
        ways = [w.replace("(input: Tensor", "(self", 1) for w in ways]
        if "out" not in inspect.signature(f).parameters:
            ways = [re.sub(r"(, \*)?, out: [^=]*= None", "", w) for w in ways]
    return "\n".join(_define(name, w, f, "    " * method, len(ways) > 1) for w in ways)


def own_method(name: str, f: Callable[..., Any]) -> str:
    """``def name(self, ...)`` of a class that says everything itself."""
    s = inspect.signature(f)
    returns = "None" if s.return_annotation is s.empty else s.return_annotation
    return _define(name, f"({_parameters([*s.parameters.values()], returns, True)}) -> {returns}", f, "    ", False)


def cls(name: str, c: Any) -> str:
    """A published class."""
    if c is chainrule.layout:
        return f"{name} = Layout"
    if type(c) is not type:  # FloatTensor and its like are called, and asked by isinstance
        made = "def __init__(self, *args: Any, device: DeviceLike | None = None) -> None: ..."
        return f"class {name}(Tensor):\n    {doc(c)}\n    {made}"
    bases = ", ".join(b.__name__ for b in c.__bases__ if b is not object)
    parts = [f"class {name}({bases}):" if bases else f"class {name}:", f"    {doc(c)}"]
    for k, v in vars(c).items():
        if isinstance(v, FunctionType) and (k == "__init__" or not k.startswith("_")):
            parts.append(own_method(k, v))
        elif isinstance(v, property):
            parts.append(prop(k, v))
    return "\n".join(parts)


def prop(name: str, p: property) -> str:
    """A property, and that it can be set."""
    kind = words.ATTRIBUTES.get(name) or inspect.get_annotations(p.fget).get("return", "Any")  # type: ignore[arg-type]
    text = f"    @property\n    def {name}(self) -> {python(kind)}:\n        {doc(p.fget)}"
    if p.fset is None:
        return text
    return f"{text}\n    @{name}.setter\n    def {name}(self, value: {python(kind)}) -> None: ..."


def python(text: Any) -> str:
    """A type or a signature with the names that the stub has for them."""
    return _NAMED.sub(
        r"_\1", str(text).replace("dt.DType", "DType").replace("np.ndarray", "Any").replace("_Any", "Any")
    )


def doc(f: Any) -> str:
    """The docstring that a stub shows: its first line."""
    line = first_line(f)
    return f'"""{line}"""' if line else "..."


def first_line(f: Any) -> str:
    """The first line of a docstring, such that it can stand between three quotes."""
    line = inspect.cleandoc(f.__doc__ or "").partition("\n")[0].replace("\\", "\\\\").replace('"""', "'''")
    return line + " " if line.endswith('"') else line


def default(value: Any) -> str:
    """A default that can be written down, or dots."""
    simple = value is None or type(value) in (bool, int, str) or (type(value) is float and abs(value) < 1e300)
    return repr(value) if simple or (type(value) is tuple and all(type(v) is int for v in value)) else "..."


def _define(name: str, text: str, f: Any, pad: str, one_of_several: bool) -> str:
    body = "" if text.endswith("]") and "# type" in text else f":\n{pad}    {doc(f)}"
    return f"{pad}@overload\n" * one_of_several + f"{pad}def {name}{python(text)}{body}"


def _ways(name: str, f: Callable[..., Any], method: bool) -> list[str]:
    """The signature; where flags decide what is returned, one without them and one for the rest."""
    s = _source(name, f)
    parameters = list(s.parameters.values())
    returns = "" if s.return_annotation is s.empty else str(s.return_annotation)
    if method and returns == "Tensor" and _IN_PLACE.fullmatch(name):
        returns = "Self"
    elif hasattr(f, "op") or name in OPERATORS or name in words.TENSORS:
        returns = "Tensor"
    returns = returns or "Any"
    text = f"({_parameters(parameters, returns, method)}) -> {returns}"
    if returns != "Any" or not any(p.name in words.FLAGS for p in parameters):
        return [text]
    without = [p.replace(annotation="Literal[False]") if p.name in words.FLAGS else p for p in parameters]
    return [f"({_parameters(without, 'Tensor', method)}) -> Tensor", text]


def _source(name: str, f: Callable[..., Any]) -> inspect.Signature:
    """The signature of `f`, or of what it hands its arguments on to: relu_ takes what relu takes, view_copy what view does."""
    s = inspect.signature(f)
    gathered = [p.name for p in s.parameters.values() if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    base = re.sub("(_copy|_)$", "", name)
    home = f.__module__.removeprefix("chainrule").lstrip(".")
    like = PUBLIC.get(f"{home}.{base}".lstrip(".")) or METHODS.get(base)
    if gathered != ["args", "kw"] or base == name or like is None:
        return s
    s = inspect.signature(like)
    return s.replace(parameters=[p for p in s.parameters.values() if p.name != "inplace"])


def _parameters(parameters: list[inspect.Parameter], returns: str, method: bool) -> str:
    """Parameters with their types; the first one of a method is self."""
    out: list[str] = []
    before: Any = None
    for i, p in enumerate(parameters):
        if before is p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_ONLY and len(out) > method:
            out.append("/")
        if p.kind is p.KEYWORD_ONLY and before not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            out.append("*")
        before = p.kind
        if method and i == 0:
            out.append("self")
            continue
        star = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        value = "" if p.default is p.empty else f" = {default(p.default)}"
        out.append(f"{star}{p.name}: {_type(p, returns)}{value}")
    if before is inspect.Parameter.POSITIONAL_ONLY and len(out) > method:
        out.append("/")
    return ", ".join(out)


def _type(p: inspect.Parameter, returns: str) -> str:
    """What the declaration says; where that is Any, what the parameter's name means."""
    kind = "Any" if p.annotation is p.empty else str(p.annotation)
    if p.name == "out":
        return "Tensor | None" if returns in ("Tensor", "Self") else "Tensor | Sequence[Tensor] | None"
    if kind == "Any" and p.kind is not p.VAR_KEYWORD:
        kind = (words.GATHERED if p.kind is p.VAR_POSITIONAL else words.TYPES).get(p.name, "Any")
    return f"{kind} | None" if p.default is None and kind != "Any" and not kind.endswith("None") else kind
