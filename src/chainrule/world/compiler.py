"""``compile``, which is chainrule's, and what else is asked of PyTorch's compiler."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ..jit import compile


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself."""
    return (lambda f: f) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """The function itself."""
    return fn


assume_constant_result = nested_compile_region = graph_break_on = allow_in_graph


def is_compiling() -> bool:
    """False: functions run as they are."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset() -> None:
    """Nothing is kept that could be forgotten."""


def graph_break(msg: str = "") -> None:
    """Nothing: there is no graph to break."""


cudagraph_mark_step_begin = reset


def list_backends(exclude_tags: Any = None) -> list[str]:
    """None: an empty list."""
    return []


@contextlib.contextmanager
def set_stance(*args: Any, **kw: Any) -> Iterator[None]:
    """Accepted, in a ``with``."""
    yield


def substitute_in_graph(original_fn: Any, **kw: Any) -> Callable[[Any], Any]:
    """The decorated function itself."""
    return lambda f: f


def mark_dynamic(t: Any, index: Any, **kw: Any) -> None:
    """Nothing: no size is fixed."""


mark_static = maybe_mark_dynamic = mark_static_address = mark_dynamic


class config:
    """Settings of PyTorch's compiler: can be set, and have no effect."""

    suppress_errors = False
    cache_size_limit = 8
    verbose = False


__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_dynamo_compiling",
    "is_exporting", "list_backends", "nested_compile_region", "reset", "set_stance", "substitute_in_graph",
]  # fmt: skip
