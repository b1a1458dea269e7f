"""Trees: containers of containers, and anything else as leaves.

Containers are tuples, lists, dicts, namedtuples, ``OrderedDict``, ``defaultdict``, ``deque``, dataclasses and what was registered.
``None`` is a container without leaves. Subclasses of the builtin ones that nobody registered are leaves. The leaves of a dict come
in the order of its keys where these can be sorted: dicts that are equal have equal shapes.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from .tensor import Tensor

Flatten = Callable[[Any], tuple[Sequence[Any], Any]]
Unflatten = Callable[[list[Any], Any], Any]


def _sorted(order: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(order))
    except TypeError:  # keys that cannot be compared stay as they are
        return order


def _from_dict(x: dict[Any, Any]) -> tuple[list[Any], Any]:
    keys = _sorted(tuple(x))
    return [x[k] for k in keys], keys


def _from_defaultdict(x: defaultdict[Any, Any]) -> tuple[list[Any], Any]:
    children, keys = _from_dict(x)
    return children, (x.default_factory, keys)


_NODES: dict[type, tuple[Flatten, Unflatten]] = {
    tuple: (lambda x: (x, None), lambda children, _: tuple(children)),
    list: (lambda x: (x, None), lambda children, _: list(children)),
    dict: (_from_dict, lambda children, keys: dict(zip(keys, children, strict=True))),
    OrderedDict: (lambda x: (list(x.values()), tuple(x)), lambda c, keys: OrderedDict(zip(keys, c, strict=True))),
    defaultdict: (_from_defaultdict, lambda c, context: defaultdict(context[0], zip(context[1], c, strict=True))),
    deque: (lambda x: (x, x.maxlen), deque),
    type(None): (lambda x: ((), None), lambda children, _: None),
}


def register(cls: type, flatten: Flatten, unflatten: Unflatten) -> None:
    """Teach trees a container: ``flatten(x) -> (children, context)``, ``unflatten(children, context) -> x``.

    The context is what two containers must have in common to be of one shape; it is compared with ``==``.
    """
    if cls in _NODES:
        raise ValueError(f"register: {cls.__name__} is a container already")
    _NODES[cls] = (flatten, unflatten)


class _Rest:
    """What a dataclass has beside its fields: carried along, and no part of the shape."""

    def __init__(self, attributes: dict[str, Any]) -> None:
        self.attributes = attributes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Rest)

    __hash__ = None  # type: ignore[assignment]


def _from_dataclass(x: Any) -> tuple[list[Any], Any]:
    data = [f.name for f in fields(x) if not f.metadata.get("static")]
    static = {f.name: getattr(x, f.name) for f in fields(x) if f.metadata.get("static")}
    known = {*data, *static}
    rest = {k: v for k, v in getattr(x, "__dict__", {}).items() if k not in known}
    return [getattr(x, n) for n in data], (type(x), data, static, _Rest(rest))


def _to_dataclass(children: list[Any], context: Any) -> Any:
    cls, data, static, rest = context
    x = object.__new__(cls)  # the fields are those of an instance: its constructor has run
    for k, v in (*zip(data, children, strict=True), *static.items(), *rest.attributes.items()):
        object.__setattr__(x, k, v)
    return x


_DATACLASS = (_from_dataclass, _to_dataclass)


def _node(kind: type) -> tuple[Flatten, Unflatten] | None:
    """How a class is taken apart and put together; None for leaves."""
    known = _NODES.get(kind)
    if known is not None:
        return known
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return (lambda x: (x, None)), (lambda children, _: kind(*children))
    if is_dataclass(kind) and not issubclass(kind, tuple | list | dict | set):
        return _DATACLASS
    return None


class Spec:
    """The shape of a tree: what `flatten` took away and `unflatten` needs."""

    __slots__ = ("children", "context", "kind", "leaves", "order")

    def __init__(
        self, kind: type | None, context: Any, children: tuple[Spec, ...], leaves: int, order: Any = None
    ) -> None:
        self.kind = kind
        self.context = context
        self.children = children
        self.leaves = leaves
        self.order = order  # the keys of a dict as it had them, which is no part of the shape

    def flat(self) -> bool:
        """Whether all that the container holds is a leaf."""
        return len(self.children) == self.leaves == self.children.count(LEAF)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Spec)
            and self.kind is other.kind
            and self.leaves == other.leaves
            and self.children == other.children
            and bool(self.context == other.context)
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.children))

    def __repr__(self) -> str:
        if self.kind is None or self.kind is type(None):
            return "*" if self.kind is None else "None"
        keys = self.context[1] if self.kind is defaultdict else self.context
        names = keys if isinstance(keys, tuple) and len(keys) == len(self.children) else None
        parts = (
            [f"{k!r}: {c!r}" for k, c in zip(names, self.children, strict=True)] if names else map(repr, self.children)
        )
        return f"{self.kind.__name__}({', '.join(parts)})"


LEAF = Spec(None, None, (), 1)
NONE = Spec(type(None), None, (), 0)


def _flatten(x: Any, out: list[Any]) -> Spec:
    kind = type(x)
    if x is None:
        return NONE
    order: Any = None
    if kind is tuple or kind is list:
        children, context = x, None
    elif kind is dict:
        order = tuple(x)
        context = _sorted(order)
        if context == order:
            children, order = x.values(), None
        else:
            children = [x[k] for k in context]
    else:
        node = _node(kind)
        if node is None:
            out.append(x)
            return LEAF
        children, context = node[0](x)
        if kind is defaultdict:
            order = tuple(x)
    before = len(out)
    specs: list[Spec] = []
    for c in children:
        if isinstance(c, Tensor):
            out.append(c)
            specs.append(LEAF)
        else:
            specs.append(_flatten(c, out))
    return Spec(kind, context, tuple(specs), len(out) - before, order)


def flatten(tree: Any) -> tuple[list[Any], Spec]:
    """The leaves of `tree` from left to right, and its shape.

    >>> flatten({"b": (1, None), "a": [2, 3]})
    ([2, 3, 1], dict('a': list(*, *), 'b': tuple(*, None)))
    """
    if isinstance(tree, Tensor):
        return [tree], LEAF
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _unflatten(spec: Spec, leaves: Iterator[Any]) -> Any:
    children = [next(leaves) if s.kind is None else _unflatten(s, leaves) for s in spec.children]
    kind: Any = spec.kind
    if kind is tuple:
        return tuple(children)
    if kind is list:
        return children
    if kind is dict:
        made = dict.fromkeys(spec.order) if spec.order is not None else {}
        made.update(zip(spec.context, children, strict=True))
        return made
    x = _node(kind)[1](children, spec.context)  # type: ignore[index]
    if spec.order is not None:
        for k in spec.order:
            x[k] = x.pop(k)
    return x


def unflatten(leaves: list[Any] | tuple[Any, ...], spec: Spec) -> Any:
    """The tree of shape `spec` with these leaves."""
    if len(leaves) != spec.leaves:
        raise ValueError(f"unflatten: {len(leaves)} leaves for a tree of shape {spec}, which has {spec.leaves}")
    if spec.kind is None:
        return leaves[0]
    if spec.kind is tuple and spec.flat():
        return tuple(leaves)
    return _unflatten(spec, iter(leaves))


def leaves(tree: Any) -> list[Any]:
    """The leaves of `tree` from left to right."""
    return flatten(tree)[0]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """`f` applied leaf by leaf to trees of one shape.

    >>> chainrule.tree.map(lambda a, b: a + b, {"x": 1, "y": (2, 3)}, {"x": 10, "y": (20, 30)})
    {'x': 11, 'y': (22, 33)}
    """
    first, spec = flatten(tree)
    others = []
    for r in rest:
        ls, s = flatten(r)
        if s != spec:
            raise ValueError(f"tree_map: trees differ in shape: {spec} and {s}")
        others.append(ls)
    return unflatten([f(*xs) for xs in zip(first, *others, strict=True)], spec)


def match(tree: Any, spec: Spec) -> list[Any] | None:
    """One leaf of `tree` for each of `spec`, ``None`` in `tree` standing for any part of it; None if the shapes differ."""
    if spec.kind is None:
        return [tree] if tree is None or _node(type(tree)) is None else None
    if tree is None:
        return [None] * spec.leaves
    if type(tree) is not spec.kind:
        return None
    children, context = _node(spec.kind)[0](tree)  # type: ignore[index]
    if context != spec.context or len(children) != len(spec.children):
        return None
    out: list[Any] = []
    for c, s in zip(children, spec.children, strict=True):
        part = match(c, s)
        if part is None:
            return None
        out += part
    return out


def broadcast_prefix(prefix: Any, tree: Any, is_leaf: Callable[[Any], bool] = lambda x: False) -> list[Any]:
    """One value of `prefix` per leaf of `tree`; a leaf of `prefix` (or None) covers the whole subtree below it."""
    node = None if prefix is None or is_leaf(prefix) else _node(type(prefix))
    if node is None:
        return [prefix] * len(flatten(tree)[0])
    children, context = node[0](prefix)
    below = _node(type(tree))
    parts, other = ((), None) if below is None else below[0](tree)
    kinds = {type(prefix), type(tree)}
    alike = len(kinds) == 1 or kinds == {tuple, list} or (issubclass(type(tree), tuple) and type(prefix) is tuple)
    if below is None or not alike or len(parts) != len(children) or (None not in (context, other) and context != other):
        raise ValueError(f"the structure of {prefix!r} does not match that of the inputs {flatten(tree)[1]}")
    out = []
    for p, t in zip(children, parts, strict=True):
        out.extend(broadcast_prefix(p, t, is_leaf))
    return out
