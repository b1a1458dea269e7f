"""Trees of tensors: what transforms take and give, and how to teach them your own containers.

    >>> import chainrule
    >>> from chainrule import tree
    >>> tree.map(lambda x: 2 * x, {"w": 1, "b": (2, None)})
    {'w': 2, 'b': (4, None)}

Tuples, lists, dicts, namedtuples, ``OrderedDict``, ``defaultdict``, ``deque`` and dataclasses are containers; a field of a dataclass
with ``metadata={"static": True}`` is part of the shape. ``None`` is a container without leaves. Other classes are leaves, until
``tree.register(cls, flatten, unflatten)``.
"""

from .core.registry import house as _house
from .core.tree import Spec, flatten, leaves, register, unflatten
from .core.tree import tree_map as map

__all__ = ["Spec", "flatten", "leaves", "map", "register", "unflatten"]

_house(__name__, __all__)


def __dir__() -> list[str]:
    return __all__
