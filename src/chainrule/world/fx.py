"""``fx``: marks are accepted; graphs of Python programs are not made."""

from __future__ import annotations

from typing import Any

from .refusal import refuse, refused_class


def wrap(fn_or_name: Any) -> Any:
    """The function, or the name, itself."""
    return fn_or_name


class Proxy:
    """Of a traced program: there is none, so nothing is one."""


class Node(Proxy):
    """Of a graph: there is none, so nothing is one."""


symbolic_trace = refuse("fx.symbolic_trace", "fx")
Tracer = refused_class("fx.Tracer", "fx")
GraphModule = refused_class("fx.GraphModule", "fx")
Graph = refused_class("fx.Graph", "fx")
replace_pattern = refuse("fx.replace_pattern", "fx")
Interpreter = Transformer = refused_class("fx.Interpreter", "fx")
