"""Batching: vmap. A tensor of this level is a tensor one level down with a batch axis in front.

An op runs once for all examples: pointwise ops and ops over trailing axes simply see one more leading axis.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .captures import tensors_of
from .dispatch import Interpreter, innermost
from .errors import ChainruleError, missing
from .shapes import broadcast_shapes, sizes_of
from .sizes import SEEN, Ragged, has_ragged, lowered
from .spec import led
from .tensor import Tensor
from .views import grow

if TYPE_CHECKING:
    from .op import Op


class Batching(Interpreter):
    """The interpreter of ``vmap`` over ``size`` examples."""

    kind = "vmap"

    def __init__(self, size: int, randomness: str = "error") -> None:
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
        if SEEN:
            low = [lowered(self, a) for a in low]
            kw = {k: lowered(self, v) if k in op.sizes else v for k, v in kw.items()} if op.sizes else kw
            if True not in flags:
                # Only a ragged size belongs to this level: the others get a batch axis.
                low = [grow(a, self.size) if isinstance(a, Tensor) else a for a in low]
                flags = [isinstance(a, Tensor) for a in low]
        y = op.batched(self.size, low, flags, kw)
        if type(y) is not tuple:
            return Tensor(y, self)
        out = []
        for v in y:
            out.append(Tensor(v, self))
        return tuple(out)

    def run_unary(self, op: Op, x: Tensor) -> Any:
        if not self.alive:
            self.check(op.name)
        return Tensor(op.bind(x._value), self)

    def run_binary(self, op: Op, a: Any, b: Any) -> Any:
        if not self.alive:
            self.check(op.name)
        if type(b) in (int, float):
            return Tensor(op.bind(a._value, b), self)
        if op.even and type(a) is Tensor and type(b) is Tensor and a._interp is self and b._interp is self:
            va, vb = a._value, b._value
            if len(sizes_of(va)) == len(sizes_of(vb)) and innermost(va).dtype is innermost(vb).dtype:
                return Tensor(op.bind(va, vb), self)
        return self.run(op, (a, b), {})

    def shape_of(self, x: Tensor) -> tuple[int, ...]:
        v = x._value
        full = v._value.shape if v._interp is None else v._interp.shape_of(v)
        shape = full[1:]
        if SEEN and has_ragged(shape):
            # Where this level maps over the components of a nest, the ragged sizes are its own.
            own = hasattr(full[0], "each")
            if isinstance(full[0], Ragged):
                shape = tuple([s.entered(self) if isinstance(s, Ragged) else s for s in shape])
            shape = tuple([s.raised(self, own) if isinstance(s, Ragged) else s for s in shape])
        return shape

    def strides_of(self, x: Tensor) -> tuple[int, ...]:
        return x._value.stride()[1:]

    def touch(self, box: Tensor, of: float | None = None) -> None:
        super().touch(box, of)
        self.before.append((weakref.ref(box), (box._value, box._interp, box._aux)))

    def held(self, boxes: list[Tensor]) -> list[Tensor]:
        """Those of the tensors that the function was handed for all examples, or holds; the others were made inside."""
        held = {id(t) for t in tensors_of(self.function)}
        return [b for b in boxes if id(b) in held or (b._meta is not None and id(b._meta.base) in held)]

    def restore(self, boxes: list[Tensor], failed: bool) -> None:
        # A tensor that was made inside is of no use outside, and says so if it is used. One that the function was handed, or
        # holds, cannot have the value: that is said at once, and it has the one that it had.
        outside = self.held(boxes) if boxes else boxes
        for box in outside:
            box._value, box._interp, box._aux = next(old for ref, old in self.before if ref() is box)
        self.before = []
        if outside and not failed:
            raise ChainruleError(
                f"vmap: a tensor of shape {tuple(outside[0].shape)} from outside the mapped function was written to with a value "
                f"that differs between the {self.size} examples. Pass the tensor to the function with its own batch axis "
                f"(in_dims), or return the value instead of writing it."
            )


# -- how an op sees a batch: ``rule(op, size, args, flags, kw)``, the batch axes in front -------------------------------------


def _trailing(op: Op, size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
    """The body leaves leading axes alone."""
    return op.bind(*args, **kw)


def _expand(op: Op, size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
    """All tensors get the batch axis."""
    return op.bind(
        *[grow(a, size) if isinstance(a, Tensor) and not f else a for a, f in zip(args, flags, strict=True)], **kw
    )


def _aligned(op: Op, size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
    """Pointwise: examples broadcast against each other from the end, and promotion looks at the ranks that they have."""
    ranks = [a.ndim - f if isinstance(a, Tensor) else -1 for a, f in zip(args, flags, strict=True)]
    types, n = op.types, max(ranks)
    ds = [a.dtype for a in args if isinstance(a, Tensor)]
    if types is not None and types.promote != "none" and any(d is not ds[0] for d in ds):
        d, k = types.common(args, ranks), types.choice
        args = [a.to(d) if i >= k and isinstance(a, Tensor) and a.dtype is not d else a for i, a in enumerate(args)]
    return op.bind(
        *[lift_rank(a, r, n) if f and r < n else a for a, f, r in zip(args, flags, ranks, strict=True)], **kw
    )


def _core(op: Op, size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
    """Leading axes broadcast against each other; the core axes are the body's business."""
    core = op.core if type(op.core) is list else op.core(**kw)
    leads: list[int] = []
    for a, f, c in zip(args, flags, core, strict=False):
        if not isinstance(a, Tensor):
            leads.append(0)
        else:
            leads.append((a._value.ndim if a._interp is None else a.ndim) - f - c)
    n = max(leads)
    if n:
        args = [
            lift_rank(a, r + c, n + c) if f and r < n else a
            for a, f, r, c in zip(args, flags, leads, core, strict=False)
        ]
    y = op.bind(*args, **kw)
    return y if size != 1 or op.form != "fused" else _led(op, n + 1, y, args, core, kw)


def _led(op: Op, n: int, ys: tuple[Tensor, ...], args: list[Any], core: Any, kw: dict[str, Any]) -> tuple[Tensor, ...]:
    """The results with the `n` leading axes of the arguments: a kernel that counts elements does not see an axis of one."""
    outs = op.spec.outs(**kw)
    if all(len(sizes_of(y)) - r == n for y, r in zip(ys, outs, strict=True)):
        return ys
    shapes = [tuple(sizes_of(a))[: a.ndim - c] for a, c in zip(args, core, strict=False) if isinstance(a, Tensor)]
    lead = broadcast_shapes(*shapes)
    return tuple([led(y, lead, r) for y, r in zip(ys, outs, strict=True)])


def _none(op: Op, size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
    raise missing(op.name, "batching rule")


BATCH = {"trailing": _trailing, "expand": _expand, "aligned": _aligned, "core": _core, "missing": _none}


def lift_rank(a: Tensor, have: int, want: int) -> Tensor:
    """A batched tensor with ones inserted after its batch axis, so that its example has rank `want`."""
    from .primitives import reshape_p

    shape = a.shape
    return reshape_p.bind(a, shape=(shape[0], *(1,) * (want - have), *shape[1:]), old=tuple(shape))


def map_over(size: int, f: Callable[..., Any], xs: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
    """``vmap(f)`` with the batch axes in front; results get one even where they do not depend on the batch."""
    with Batching(size, "different") as level:
        y = f(*[Tensor(x, level) if b and isinstance(x, Tensor) else x for x, b in zip(xs, flags, strict=True)], **kw)
        ys = [level.settle(v) for v in (y if isinstance(y, tuple | list) else [y])]
        out = [v._value if v._interp is level else grow(v, size) for v in ys]
    return tuple(out) if isinstance(y, tuple | list) else out[0]
