"""The values that a node keeps, by PyTorch's names: ``y.grad_fn._saved_self``, ``_saved_other``, ``_saved_result``, ``_saved_dim``."""

from __future__ import annotations

import inspect
from typing import Any

from .reverse import Leaf, Masked, Node, Pick, imperative
from .tensor import Tensor
from .walk import _pulled, fit_cotangent, kept_by
from .watch import Packed, Store, lowered, pack

_RESULT = ("result", "output", "values")
_PLACES = {"self": 0, "input": 0, "other": 1, "mat1": 0, "mat2": 1, "exponent": 1, "weight": 1, "target": 1, "index": 1}


class SavedTensor:
    """One value that a node keeps; hooks can be set on it alone."""

    def __init__(self, node: Node | None = None, place: Any = 0) -> None:
        if node is None:
            raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden: nodes make them.")
        self._node, self._place = node, place

    def register_hooks(self, pack_hook: Any, unpack_hook: Any) -> None:
        """Replace the value by ``pack_hook(value)``; ``unpack_hook`` makes it a tensor again when it is needed."""
        n = self._node
        kept_by(n)
        if n.store is None:
            n.store = Store(imperative(), list(n.args), list(n.y) if isinstance(n.y, tuple) else n.y)
            n.args = n.y = None
        store = n.store
        held = store.y if self._place == "y" else store.args[self._place]
        if isinstance(held, Packed):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set: hooks are set once."
            )
        packed = pack(_shown(n, self._place, held), (pack_hook, unpack_hook))
        if self._place == "y":
            store.y = packed
        else:
            store.args[self._place] = packed


def _shown(n: Node, place: Any, x: Any) -> Any:
    """A kept value as the caller's level sees it: with its history, a leaf as itself."""
    if not isinstance(x, Tensor):
        return x
    p = n if place == "y" else n.parents[place]
    if p is None or (level := imperative()) is None:
        return x
    if (
        type(p) is Leaf
        and p.owner is not None
        and (t := p.owner()) is not None
        and lowered(t, level)._value is x._value
    ):
        return t
    return Tensor(x, level, p)


def _place(n: Node, key: str) -> Any:
    if key in _RESULT:
        return "y"
    if key in _PLACES:
        return _PLACES[key]
    try:
        names = list(inspect.signature(n.op.body or n.op.spec).parameters)
    except (TypeError, ValueError):
        return None
    return names.index(key) if key in names[: len(n.parents)] else None


def attribute(n: Node, name: str) -> Any:
    """``node._saved_self`` and the like, ``node._raw_saved_self``; of a Function's node whatever its context has."""
    op = n.op
    if op is not None and op.form == "function":
        return op.attribute(n, name)
    raw = name.startswith("_raw_saved_")
    key = name[11:] if raw else name[7:] if name.startswith("_saved_") else None
    if op is not None and key:
        if not raw and key in n.kw:
            return n.kw[key]
        place = _place(n, key)
        if place is not None and (place == "y" or place < len(n.parents)):
            if raw:
                return SavedTensor(n, place)
            xs, y = kept_by(n)
            x = y if place == "y" else xs[place]
            if isinstance(x, tuple | list):
                return tuple(_shown(n if not k else Pick(n, k), "y", v) for k, v in enumerate(x))
            if x is not None:
                return _shown(n, place, x)
    raise AttributeError(f"{n.name()!r} object has no attribute {name!r}")


__all__ = ["SavedTensor", "attribute"]


def pulled_by_hand(n: Node, grads: tuple[Any, ...]) -> Any:
    """A node called as a function of the cotangents of its results."""
    wanted = max(n.nout, 1)
    if len(grads) != wanted:
        raise TypeError(f"{n.name()} expected {wanted} arguments, got {len(grads)} instead")
    if n.op is None:
        raise TypeError(f"{n.name()} cannot be called: it has no rule")
    gs = _pulled(n, list(grads) if n.nout else grads[0], None, None)
    gs = [g.g if g.__class__ is Masked else g for g in gs]
    out = [g if g is None or fit is None else fit_cotangent(g, *fit) for g, fit in zip(gs, n.fits, strict=False)]
    return out[0] if len(out) == 1 else tuple(out)
