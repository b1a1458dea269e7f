"""Trees: nested tuples, lists, dicts and namedtuples with anything else as leaves."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

_REGISTRY: dict[type, tuple[Callable[[Any], tuple[list[Any], Any]], Callable[[list[Any], Any], Any]]] = {}


def register(
    cls: type, flatten: Callable[[Any], tuple[list[Any], Any]], unflatten: Callable[[list[Any], Any], Any]
) -> None:
    """Teach trees a container: `flatten(x) -> (children, context)`, `unflatten(children, context) -> x`."""
    _REGISTRY[cls] = (flatten, unflatten)


class Spec:
    """The shape of a tree: what `flatten` took away and `unflatten` needs."""

    __slots__ = ("children", "context", "kind", "leaves")

    def __init__(self, kind: type | None, context: Any, children: tuple[Spec, ...], leaves: int) -> None:
        self.kind, self.context, self.children, self.leaves = kind, context, children, leaves

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and (self.kind, self.context, self.children) == (
            other.kind,
            other.context,
            other.children,
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.children))

    def __repr__(self) -> str:
        return "*" if self.kind is None else f"{self.kind.__name__}({', '.join(map(repr, self.children))})"


LEAF = Spec(None, None, (), 1)


def _node(x: Any) -> tuple[list[Any], Any] | None:
    kind = type(x)
    if kind is tuple or kind is list or kind is deque:
        return list(x), None
    if kind is dict or kind is OrderedDict:
        return list(x.values()), tuple(x.keys())
    if kind is defaultdict:
        return list(x.values()), (x.default_factory, tuple(x.keys()))
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return list(x), None
    if kind in _REGISTRY:
        return _REGISTRY[kind][0](x)
    return None


def flatten(tree: Any) -> tuple[list[Any], Spec]:
    """The leaves of `tree` from left to right, and its shape."""
    node = _node(tree)
    if node is None:
        return [tree], LEAF
    children, context = node
    leaves: list[Any] = []
    specs = []
    for child in children:
        ls, s = flatten(child)
        leaves.extend(ls)
        specs.append(s)
    return leaves, Spec(type(tree), context, tuple(specs), len(leaves))


def unflatten(leaves: list[Any] | tuple[Any, ...], spec: Spec) -> Any:
    """The tree of shape `spec` with these leaves."""
    if spec.kind is None:
        return leaves[0]
    children, at = [], 0
    for s in spec.children:
        children.append(unflatten(leaves[at : at + s.leaves], s))
        at += s.leaves
    kind = spec.kind
    if kind in _REGISTRY:
        return _REGISTRY[kind][1](children, spec.context)
    if kind is dict or kind is OrderedDict:
        return kind(zip(spec.context, children, strict=True))
    if kind is defaultdict:
        return defaultdict(spec.context[0], zip(spec.context[1], children, strict=True))
    if hasattr(kind, "_fields"):
        return kind(*children)
    return kind(children)


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """`f` applied leaf by leaf to trees of one shape.

    >>> tree_map(lambda a, b: a + b, {"x": 1, "y": (2, 3)}, {"x": 10, "y": (20, 30)})
    {'x': 11, 'y': (22, 33)}
    """
    leaves, spec = flatten(tree)
    others = []
    for r in rest:
        ls, s = flatten(r)
        if s != spec:
            raise ValueError(f"tree_map: trees differ in shape: {spec} and {s}")
        others.append(ls)
    return unflatten([f(*xs) for xs in zip(leaves, *others, strict=True)], spec)


def broadcast_prefix(prefix: Any, tree: Any, is_leaf: Callable[[Any], bool] = lambda x: False) -> list[Any]:
    """One value of `prefix` per leaf of `tree`; a leaf of `prefix` covers the whole subtree below it."""
    node = None if prefix is None or is_leaf(prefix) else _node(prefix)
    if node is None:
        return [prefix] * len(flatten(tree)[0])
    tnode = _node(tree)
    if (
        tnode is None
        or len(tnode[0]) != len(node[0])
        or (tnode[1] is not None and node[1] is not None and tnode[1] != node[1])
    ):
        raise ValueError(f"the structure of {prefix!r} does not match that of the inputs {flatten(tree)[1]}")
    out = []
    for p, t in zip(node[0], tnode[0], strict=True):
        out.extend(broadcast_prefix(p, t, is_leaf))
    return out
