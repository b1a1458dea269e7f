"""Batching: vmap. A tensor of this level is a tensor one level down with a batch axis in front.

An op runs once for all examples: pointwise ops and ops over trailing axes simply see one more leading axis.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .captures import tensors_of
from .dispatch import Interpreter, innermost
from .errors import ChainruleError
from .shapes import sizes_of
from .tensor import PAYLOADS, Tensor
from .views import grow

if TYPE_CHECKING:
    from .op import Op


def untag(level: Batching, v: Any) -> Any:
    """Static data or an argument with the ragged sizes of this level as the level below sees them."""
    if type(v) in PAYLOADS:
        return type(v)(v.values) if v.level is level else v.moved(1) if v.level is None else v
    if type(v) is tuple:
        return tuple([untag(level, s) for s in v])
    return slice(*[untag(level, s) for s in (v.start, v.stop, v.step)]) if type(v) is slice else v


class Batching(Interpreter):
    """The interpreter of ``vmap`` over ``size`` examples."""

    __slots__ = ("before", "function", "randomness", "size")
    kind = "vmap"

    def __init__(self, size: int, randomness: str = "error") -> None:
        super().__init__()
        self.size, self.randomness = size, randomness
        self.function: Any = None  # what is mapped, and the arguments that are not
        self.before: list[tuple[weakref.ref[Tensor], tuple[Any, ...]]] = []  # what was written to, and what it was

    def run(self, op: Op, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        if not self.alive:
            self.check(op.name)
        low, flags = [], []
        for a in args:
            if isinstance(a, Tensor) and a._interp is self:
                low.append(a._value)
                flags.append(True)
            else:
                low.append(a)
                flags.append(False)
        if PAYLOADS:
            low, kw = [untag(self, a) for a in low], {k: untag(self, v) for k, v in kw.items()}
            if True not in flags:
                # Only a ragged size belongs to this level: the others get a batch axis.
                low = [grow(a, self.size) if isinstance(a, Tensor) else a for a in low]
                flags = [isinstance(a, Tensor) for a in low]
        y = op.batched(self.size, low, flags, kw)
        if type(y) is tuple:
            return tuple([Tensor(v, self) for v in y])
        return Tensor(y, self)

    def run_unary(self, op: Op, x: Tensor) -> Any:
        if not self.alive:
            self.check(op.name)
        return Tensor(op.call(x._value), self)  # type: ignore[attr-defined]

    def run_binary(self, op: Op, a: Any, b: Any) -> Any:
        if not self.alive:
            self.check(op.name)
        if type(b) in (int, float):
            return Tensor(op.call(a._value, b), self)  # type: ignore[attr-defined]
        if type(a) is Tensor and type(b) is Tensor and a._interp is self and b._interp is self:
            va, vb = a._value, b._value
            if len(sizes_of(va)) == len(sizes_of(vb)) and innermost(va).dtype is innermost(vb).dtype:
                return Tensor(op.call(va, vb), self)  # type: ignore[attr-defined]
        return self.run(op, (a, b), {})

    def shape_of(self, x: Tensor) -> tuple[int, ...]:
        v = x._value
        full = v._value.shape if v._interp is None else v._interp.shape_of(v)
        shape = full[1:]
        if PAYLOADS and full:
            # Where this level maps over the components of a nest, the ragged sizes are its own.
            own = hasattr(full[0], "each")
            shape = tuple(
                [
                    s
                    if type(s) not in PAYLOADS or s.level is not None
                    else type(s)(s.values, self)
                    if own
                    else s.moved(-1)
                    for s in shape
                ]
            )
        return shape

    def strides_of(self, x: Tensor) -> tuple[int, ...]:
        return x._value.stride()[1:]

    def touch(self, box: Tensor) -> None:
        super().touch(box)
        self.before.append((weakref.ref(box), (box._value, box._interp, box._aux)))

    def restore(self, boxes: list[Tensor], failed: bool) -> None:
        # A tensor that was made inside is of no use outside, and says so if it is used. One that the function was handed, or
        # holds, cannot have the value: that is said at once, and it has the one that it had.
        held = {id(t) for t in tensors_of(self.function)} if boxes else ()
        outside = [b for b in boxes if id(b) in held or (b._meta is not None and id(b._meta.base) in held)]
        for box in outside:
            box._value, box._interp, box._aux = next(old for ref, old in self.before if ref() is box)
        self.before = []
        if outside and not failed:
            raise ChainruleError(
                f"vmap: a tensor of shape {tuple(outside[0].shape)} from outside the mapped function was written to with a value "
                f"that differs between the {self.size} examples. Pass the tensor to the function with its own batch axis "
                f"(in_dims), or return the value instead of writing it."
            )


def map_over(size: int, f: Callable[..., Any], xs: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
    """``vmap(f)`` with the batch axes in front; results get one even where they do not depend on the batch."""
    with Batching(size, "different") as level:
        y = f(*[Tensor(x, level) if b and isinstance(x, Tensor) else x for x, b in zip(xs, flags, strict=True)], **kw)
        ys = [level.settle(v) for v in (y if isinstance(y, tuple | list) else [y])]
        out = [v._value if v._interp is level else grow(v, size) for v in ys]
    return tuple(out) if isinstance(y, tuple | list) else out[0]
