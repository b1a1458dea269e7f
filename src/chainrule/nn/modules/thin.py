"""Modules that only hold the options of a function: a class with its options as fields, and `thin` writes the rest.

    @thin("leaky_relu", text="negative_slope={negative_slope}")
    class LeakyReLU(Module):
        negative_slope: float = 0.01
        inplace: bool = False

gets an ``__init__`` with these arguments, a ``forward(input)`` that is ``F.leaky_relu(input, negative_slope=..., inplace=...)``, and its
text. Both are written as source once, when the class is made, as dataclasses do it: a call costs no more than one written by hand.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY
from typing import Any, TypeVar, dataclass_transform

from ...core.tensor import Tensor
from .. import functional as F

T = TypeVar("T", bound=type)


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction, also where it is asked for by the two flags that came before it."""
    if size_average is None and reduce is None:
        return reduction
    import warnings

    size_average, reduce = size_average is not False, reduce is not False
    now = ("mean" if size_average else "sum") if reduce else "none"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{now}' instead.", stacklevel=4
    )
    return now


# How a field with this name becomes an attribute; None: not at all.
_LEGACY = {"size_average": None, "reduce": None, "reduction": "reduction_of(size_average, reduce, reduction)"}


def _written(cls: Any, name: str, parameters: str, body: list[str], known: dict[str, Any]) -> Any:
    """A method of `cls` from its source."""
    lines = [f"def {name}(self{', ' if parameters else ''}{parameters}):", *(f"    {line}" for line in body)]
    space = {"F": F, "cls": cls, "Tensor": Tensor, "reduction_of": reduction_of, **known}
    exec("\n".join(lines), space)  # the source is made of the names of fields alone
    f = space[name]
    f.__qualname__, f.__module__ = f"{cls.__name__}.{name}", cls.__module__
    return f


def _fields(cls: Any) -> tuple[list[inspect.Parameter], dict[str, Any]]:
    """The options of a class, and their defaults, which leave the class: they would hide buffers of that name."""
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    out, defaults = [], {}
    for name, annotation in inspect.get_annotations(cls).items():
        if annotation == "KW_ONLY" or annotation is KW_ONLY:
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        default = cls.__dict__.get(name, inspect.Parameter.empty)
        if name in cls.__dict__:
            delattr(cls, name)
            defaults[name] = default
        out.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
    return out, defaults


def _init(cls: Any, parameters: list[inspect.Parameter], convert: Mapping[str, Any], extra: dict[str, Any]) -> Any:
    names = [p.name for p in parameters]
    made = {**(_LEGACY if "size_average" in names else {}), **convert}
    body = ["super(cls, self).__init__()"]
    for p in parameters:
        value = made.get(p.name, p.name)
        if value is not None:
            tensor = "Tensor" in str(p.annotation)
            body.append(f"self.register_buffer('{p.name}', {value})" if tensor else f"self.{p.name} = {value}")
    if hasattr(cls, "_check_options"):
        body.append("self._check_options()")
    shown, star = [], False
    for p in parameters:
        if p.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        shown.append(p.name if p.default is p.empty else f"{p.name}=_{p.name}")
    known = {f"_{p.name}": p.default for p in parameters} | extra
    f = _written(cls, "__init__", ", ".join(shown), body, known)
    f.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": None}
    return f


@dataclass_transform()
def thin(
    function: str,
    inputs: str = "input",
    *,
    text: str | None = None,
    also: str = "",
    convert: Mapping[str, str | None] | None = None,
    **known: Any,
) -> Callable[[T], T]:
    """Make a class with annotated options the module of ``nn.functional.<function>`` of `inputs`.

    `text` is what stands in the parentheses, a format of the attributes; `convert` says how an option becomes an attribute
    (None: not at all), as an expression in which the names in `known` may be used; `also` is a further argument.
    """

    def build(cls: Any) -> Any:
        parameters, _ = _fields(cls)
        changes = convert or {}
        if "__init__" not in cls.__dict__:
            cls.__init__ = _init(cls, parameters, changes, known)
        skipped = {k for k in (*changes, *_LEGACY) if {**_LEGACY, **changes}[k] is None}
        options = [p.name for p in parameters if p.name not in skipped]
        given = [*(i.split("=")[0].strip() for i in inputs.split(",")), *(f"{k}=self.{k}" for k in options), also]
        call = f"return F.{function}({', '.join(g for g in given if g)})"
        if "forward" not in cls.__dict__:
            cls.forward = _written(cls, "forward", inputs, [call], {})
            cls.forward.__doc__ = cls.__doc__
        if text is not None and "extra_repr" not in cls.__dict__:
            flagged = "inplace" in options and "inplace" not in text

            def extra_repr(self: Any) -> str:
                """The options."""
                parts = [text.format_map(self.__dict__)] if text else []
                return ", ".join([*parts, "inplace=True"] if flagged and self.inplace else parts)

            cls.extra_repr = extra_repr
        cls.__constants__ = options
        return cls

    return build
