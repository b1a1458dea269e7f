"""One rule from the other: forward from reverse and reverse from forward, by transposing what is linear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import dtypes as dt
from .dispatch import look
from .errors import ChainruleError
from .reverse import Leaf, Masked, Reverse
from .tensor import Tensor
from .walk import walk_back

if TYPE_CHECKING:
    from .op import Op


def _transpose(op: Op, f: Any, like: list[Any], gs: list[Any], rule: str) -> list[Any]:
    """The transpose of the linear map `f` (of a list of tensors shaped `like`), applied to cotangents `gs`; `rule` is what it runs, in words."""
    from .shapes import zeros_like_tensor

    level = Reverse()
    with level:
        # A user's rule is run at ones: what it gives there and leads to none of them is not zero by chance.
        xs = [
            None
            if v is None
            else Tensor(zeros_like_tensor(v) + 1 if op.writes else zeros_like_tensor(v), level, Leaf())
            for v in like
        ]
        leaves = [None if x is None else x._aux for x in xs]
        ys = [level.settle(y) for y in f(xs)]
        if op.writes:
            for y in ys:
                if isinstance(y, Tensor) and y._interp is not level and y.dtype.category >= dt.FLOAT:
                    look(y, lambda values: _refuse_cut(op.name, rule, values))
        starts = [
            (y._aux, g)
            for y, g in zip(ys, gs, strict=True)
            if isinstance(y, Tensor) and y._interp is level and g is not None
        ]
    got = walk_back(starts, must=level.effects)
    return [None if n is None else got.get(n) for n in leaves]


def _refuse_cut(name: str, rule: str, values: Any) -> None:
    """A linear function that leads to none of its arguments is zero: other values say that the rule has cut its graph."""
    a = getattr(values, "rows", values)
    if isinstance(a, np.ndarray) and a.any():
        what, other = ("tangents", "reverse mode") if rule == "forward rule" else ("cotangents", "forward mode")
        raise ChainruleError(
            f"{name}: its {rule} is no differentiable function of the {what} (detach, numpy(), or backward() without create_graph=True cuts it), "
            f"so {other} cannot be derived from it. Write the other rule too, or this one in operations on tensors."
        )


def vjp_from_jvp(op: Op, g: Any, y: Any, xs: list[Any], kw: dict[str, Any], need: list[bool]) -> list[Any]:
    """Transpose ``t -> jvp(t)``: the tape of the forward rule, which is linear in t, walked backwards."""
    gs = list(g) if isinstance(g, list | tuple) else [g]

    def push(ts: list[Any]) -> list[Any]:
        t = op.push(ts, y, xs, kw)
        return list(t) if isinstance(t, tuple | list) else [t]

    return _transpose(op, push, [x if n else None for x, n in zip(xs, need, strict=True)], gs, "forward rule")


def jvp_from_vjp(op: Op, ts: list[Any], y: Any, xs: list[Any], kw: dict[str, Any]) -> Any:
    """Transpose ``g -> vjp(g)``, which is linear in g."""
    ys = list(y) if isinstance(y, tuple) else [y]
    need = [t is not None for t in ts]

    def pull(gs: list[Any]) -> list[Any]:
        full = [gi if gi is not None else None for gi in gs]
        return op.pull(full if isinstance(y, tuple) else full[0], y, xs, kw, need)

    like = [v if v.dtype.category >= dt.FLOAT and i not in op.integer_outputs else None for i, v in enumerate(ys)]
    out = _transpose(op, pull, like, ts, "reverse rule")
    return tuple(out) if isinstance(y, tuple) else out[0]


def jvp_through(body: Any, ts: list[Any], xs: list[Any], kw: dict[str, Any]) -> Any:
    """Tangents of ``body(*xs)`` by running it on dual numbers."""
    from .forward import Forward

    with Forward() as level:
        y = body(*[Tensor(x, level, t) if t is not None else x for x, t in zip(xs, ts, strict=True)], **kw)
        ys = [level.settle(v) for v in (y if isinstance(y, tuple | list) else [y])]
        out = tuple(v._aux if isinstance(v, Tensor) and v._interp is level else None for v in ys)
    if not isinstance(y, tuple | list):
        return out[0]
    return None if all(t is None for t in out) else out


def vjp_through(
    body: Any, g: Any, xs: list[Any], kw: dict[str, Any], need: list[bool], masked: bool = False
) -> list[Any]:
    """Cotangents of ``body(*xs)`` by recording it anew: nothing but its inputs is kept between forward and backward.

    With `masked` those that a choice makes absent in places say where they are present.
    """
    absent: dict[Any, Any] | None = {} if masked else None
    with Reverse() as level:
        ins = [Tensor(x, level, Leaf()) if n else x for x, n in zip(xs, need, strict=True)]
        leaves = [x._aux if n else None for x, n in zip(ins, need, strict=True)]  # the body may write to its arguments
        y = body(*ins, **kw)
        several = isinstance(y, tuple | list)
        ys = [level.settle(v) for v in (y if several else [y])]
        pairs = zip(ys, g if several else [g], strict=True)
        starts = [(v._aux, gi) for v, gi in pairs if isinstance(v, Tensor) and v._interp is level and gi is not None]
        got = walk_back(starts, must=level.effects, absent=absent)
    for n, mask in (absent or {}).items():
        got[n] = Masked(got[n], mask)
    return [None if n is None else got.get(n) for n in leaves]
