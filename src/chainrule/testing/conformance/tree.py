"""Flattening of the argument and result structures that the database uses: lists, tuples, named tuples, dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def map_tree(fn: Callable[[Any], Any], tree: Any) -> Any:
    """The same structure with `fn` applied to every leaf."""
    kind = type(tree)
    if kind in (list, tuple):
        return kind(map_tree(fn, x) for x in tree)
    if kind is dict:
        return {k: map_tree(fn, v) for k, v in tree.items()}
    if kind is slice:
        return slice(map_tree(fn, tree.start), map_tree(fn, tree.stop), map_tree(fn, tree.step))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return kind(*(map_tree(fn, x) for x in tree))
    return fn(tree)


def leaves(tree: Any) -> list[Any]:
    """All leaves, in order. Results of ops that are any kind of sequence of tensors are opened up."""
    if isinstance(tree, dict):
        return [leaf for v in tree.values() for leaf in leaves(v)]
    if isinstance(tree, (list, tuple)):
        return [leaf for x in tree for leaf in leaves(x)]
    return [tree]
