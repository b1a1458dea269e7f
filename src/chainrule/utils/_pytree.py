"""PyTorch's trees: like :mod:`chainrule.tree`, but None is a leaf, and dicts keep the order of their keys."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

PyTree = Any
Context = Any
KeyPath = tuple[Any, ...]


class NodeDef(NamedTuple):
    """How a container is taken apart and put together."""

    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]


def _is_namedtuple(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(type(x), "_fields")


SUPPORTED_NODES: dict[Any, NodeDef] = {
    dict: NodeDef(lambda d: (list(d.values()), list(d)), lambda v, k: dict(zip(k, v, strict=True))),
    list: NodeDef(lambda x: (x, None), lambda v, _: list(v)),
    tuple: NodeDef(lambda x: (list(x), None), lambda v, _: tuple(v)),
    namedtuple: NodeDef(lambda x: (list(x), type(x)), lambda v, kind: kind(*v)),
    OrderedDict: NodeDef(lambda d: (list(d.values()), list(d)), lambda v, k: OrderedDict(zip(k, v, strict=True))),
    defaultdict: NodeDef(
        lambda d: (list(d.values()), [d.default_factory, list(d)]),
        lambda v, c: defaultdict(c[0], zip(c[1], v, strict=True)),
    ),
    deque: NodeDef(lambda d: (list(d), d.maxlen), lambda v, n: deque(v, maxlen=n)),
}


class TreeSpec:
    """The shape of a tree."""

    num_leaves: int
    num_nodes: int

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type, self.context, self.children_specs = type, context, children_specs
        self.num_leaves = sum(c.num_leaves for c in children_specs) if type is not None else 1
        self.num_children = len(children_specs)
        self.num_nodes = 1 + sum(c.num_nodes for c in children_specs)

    def is_leaf(self) -> bool:
        """Whether this is a leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The shapes of the parts."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """The shape of one part."""
        return self.children_specs[index]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The parts of `tree` where this shape has leaves."""
        if self.type is None:
            return [tree]
        kind = _kind(tree)
        if kind is not self.type:
            raise ValueError(f"flatten_up_to: expected {self.type}, got {type(tree).__name__}")
        parts, _ = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(parts) != len(self.children_specs):
            raise ValueError(f"flatten_up_to: expected {len(self.children_specs)} parts, got {len(parts)}")
        return [x for part, spec in zip(parts, self.children_specs, strict=True) for x in spec.flatten_up_to(part)]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and self.type is other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, self.num_nodes))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        return f"TreeSpec({getattr(self.type, '__name__', self.type)}, {self.context}, {self.children_specs})"


class LeafSpec(TreeSpec):
    """The shape of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])


def register_pytree_node(cls: type, flatten_fn: Any, unflatten_fn: Any, **_: Any) -> None:
    """Teach trees a container; :mod:`chainrule.tree`, which the transforms use, learns it too."""
    from ..core import tree

    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn)
    if cls not in tree._NODES:
        tree.register(cls, flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node


def _kind(x: Any) -> Any:
    return namedtuple if _is_namedtuple(x) and type(x) not in SUPPORTED_NODES else type(x)


def _is_leaf(x: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    return (is_leaf is not None and is_leaf(x)) or _kind(x) not in SUPPORTED_NODES


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether `tree` is a leaf."""
    return _is_leaf(tree, is_leaf)


def _flatten(tree: Any, out: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    if _is_leaf(tree, is_leaf):
        out.append(tree)
        return LeafSpec()
    kind = _kind(tree)
    parts, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(p, out, is_leaf) for p in parts])


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves and the shape."""
    out: list[Any] = []
    return out, _flatten(tree, out, is_leaf)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of a shape with these leaves."""
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(given)}, the spec {treespec.num_leaves}"
        )
    it = iter(given)

    def build(spec: TreeSpec) -> Any:
        if spec.type is None:
            return next(it)
        return SUPPORTED_NODES[spec.type].unflatten_fn([build(c) for c in spec.children_specs], spec.context)

    return build(treespec)


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterable[Any]:
    """The leaves, one after the other."""
    return iter(tree_flatten(tree, is_leaf)[0])


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The shape."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """``func`` of every leaf, and of what stands in its place in the other trees."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten([func(*xs) for xs in zip(leaves, *[spec.flatten_up_to(r) for r in rests], strict=True)])


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Call ``func`` for every leaf; returns the tree as it was."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(kinds: Any) -> Callable[[Any], Any]:
    """A function that leaves all but instances of `kinds` alone."""
    test = kinds if callable(kinds) and not isinstance(kinds, type) else (lambda x: isinstance(x, kinds))

    def wrap(f: Any) -> Any:
        return lambda x: f(x) if test(x) else x

    return wrap


def tree_map_only(
    kinds: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """``func`` of the leaves that are instances of `kinds`; the others stay."""
    return tree_map(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    kinds: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Call ``func`` for the leaves that are instances of `kinds`; returns the tree."""
    return tree_map_(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether all leaves fulfil `pred`."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether a leaf fulfils `pred`."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(
    kinds: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """Whether all leaves that are instances of `kinds` fulfil `pred`."""
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, kinds))


def tree_any_only(
    kinds: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """Whether a leaf that is an instance of `kinds` fulfils `pred`."""
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, kinds))


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any] | None:
    """`tree`, a prefix of the shape, with every leaf as often as the shape has leaves below it; None if it is no prefix."""
    if _is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = _kind(tree)
    if treespec.type is not kind:
        return None
    parts, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(parts) != len(treespec.children_specs) or context != treespec.context:
        return None
    out: list[Any] = []
    for part, spec in zip(parts, treespec.children_specs, strict=True):
        below = _broadcast_to_and_flatten(part, spec, is_leaf)
        if below is None:
            return None
        out += below
    return out


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of arguments."""
    return [*tree_leaves(args), *tree_leaves(kwargs)]
