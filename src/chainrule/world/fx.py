"""``fx``: marks are accepted; graphs of Python programs are not made."""

from __future__ import annotations

from typing import Any

from ..nn.module import Module
from .refusal import refuse, refused_class


def wrap(fn_or_name: Any) -> Any:
    """The function, or the name, itself."""
    return fn_or_name


class Proxy:
    """Of a traced program: there is none, so nothing is one."""


class Node(Proxy):
    """Of a graph: there is none, so nothing is one."""


class GraphModule(Module):
    """A module made of a graph: there is none, so nothing is one."""

    def __init__(self, *args: Any, **kw: Any) -> None:
        refuse("fx.GraphModule", "fx")()


symbolic_trace = refuse("fx.symbolic_trace", "fx")
Tracer = refused_class("fx.Tracer", "fx")
Graph = refused_class("fx.Graph", "fx")
replace_pattern = refuse("fx.replace_pattern", "fx")
Interpreter = Transformer = refused_class("fx.Interpreter", "fx")


def get_proxy_mode() -> None:
    """None: no program is traced."""
